/* SPDX-License-Identifier: MIT */
#ifndef SRC_IPC_SESSION_H
#define SRC_IPC_SESSION_H

/*
 * One EventPipe session on a loop: start it, take its stream, stop it.
 *
 * The runtime stops a session on its only server thread and answers when everything, the rundown
 * included, has been written to the stream.  A client that stops reading meanwhile blocks all
 * diagnostics of the process for ever.  So once a stop is asked for, reading never pauses again,
 * and goes on until the stream ends or the time for it is over.
 *
 * Whoever starts a session ends it with session_close(); closing early makes the runtime end it at
 * its next write.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "src/ipc/ipc_conn.h"
#include "src/ipc/ipc_wire.h"

struct session;

enum session_why {
	SESSION_ENDED, /* the stream ended; whether whole, its decoder knows */
	SESSION_CANCELLED, /* stopped before it had begun */
	SESSION_UNREACHABLE, /* no connection: error */
	SESSION_TIMEOUT, /* no answer in time */
	SESSION_REFUSED, /* the runtime answered with an error: hresult */
	SESSION_PROTOCOL, /* the other side does not speak the protocol: status */
	SESSION_BROKEN, /* reading the stream failed: error */
	SESSION_SILENT, /* not one byte came, so the stop was not sent */
	SESSION_STOP_TIMEOUT, /* the stream did not end in time after the stop */
	SESSION_STOP_FAILED, /* the stop could not be sent (error), and the stream went on */
	SESSION_NO_MEMORY,
	SESSION_BAD_REQUEST, /* too many providers, or text that is not UTF-8 */
};

struct session_end {
	enum session_why why;
	int error; /* negative, as of libuv */
	uint32_t hresult;
	enum ipc_status status;
	bool started; /* the runtime had opened the session */
	bool stop_sent;
	bool stop_answered;
};

/* Called from the loop, or (end only) from session_stop(). */
struct session_events {
	/* The runtime opened the session; gave_up: bits of enum ipc_gave_up. */
	void (*started)(void *ctx, unsigned version, unsigned gave_up);
	/* The stream, as it comes.  bytes are dead when this returns. */
	void (*data)(void *ctx, const uint8_t *bytes, size_t len);
	/* Once and last; the session still has to be closed. */
	void (*end)(void *ctx, const struct session_end *end);
};

struct session_config {
	const char *const *sockets; /* tried in turn while connecting is refused */
	size_t socket_count;
	const struct ipc_source *source; /* instead of sockets; copied; NULL: none */
	struct ipc_collect collect; /* its providers must outlive the session */
	uint64_t timeout_ms; /* in all: connecting, sending, first answer, older commands */
	uint64_t stop_timeout_ms; /* from session_stop() to the end of the stream */
};

/* The config is copied, the texts of sockets too.  NULL: out of memory. */
struct session *session_start(uv_loop_t *loop, const struct session_config *config,
			      const struct session_events *events, void *ctx);

/* Asks the runtime to end the session, once its stream has begun.  More calls change nothing. */
void session_stop(struct session *s);

/* Back-pressure: the runtime then drops events.  Without effect once a stop was asked for. */
void session_pause(struct session *s);
void session_resume(struct session *s);

/* No more callbacks from now on except closed(ctx), which may be NULL; the memory goes then. */
void session_close(struct session *s, void (*closed)(void *ctx), void *ctx);

/* One line for people about an end that is not SESSION_ENDED: "it did not answer in time". */
void session_describe(const struct session_end *end, char *buf, size_t size);

#endif
