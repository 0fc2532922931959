/* SPDX-License-Identifier: MIT */
#ifndef SRC_IPC_IPC_CONN_H
#define SRC_IPC_IPC_CONN_H

/*
 * One connection to a diagnostic port on a loop: connect, send one request, get its first answer;
 * what follows is a stream.
 *
 * The runtime serves one request at a time and reads it without a limit of time, so the request
 * goes out in one write as soon as the connection stands.  A listener whose queue is full is tried
 * again until the time is over.  Nothing here blocks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "src/ipc/ipc_wire.h"

struct ipc_conn;

enum ipc_conn_why {
	IPC_CONN_EOF, /* the other side closed; after the answer that is the end of the stream */
	IPC_CONN_CONNECT, /* connecting failed: error */
	IPC_CONN_TIMEOUT, /* no answer in time */
	IPC_CONN_IO, /* reading or writing failed: error */
	IPC_CONN_PROTOCOL, /* not an answer: status */
};

struct ipc_conn_end {
	enum ipc_conn_why why;
	int error; /* negative, as of libuv */
	enum ipc_status status;
	bool connected; /* the request may have reached the other side */
	bool answered;
};

/*
 * Called from the loop, never from ipc_conn_open().  Each may close the connection.  What they are
 * given is dead when they return.
 */
struct ipc_conn_events {
	void (*reply)(void *ctx, const struct ipc_reply *reply); /* once at most */
	void (*data)(void *ctx, const uint8_t *bytes, size_t len); /* behind the answer */
	/* Last and once, unless closed before; the connection still has to be closed. */
	void (*end)(void *ctx, const struct ipc_conn_end *end);
};

/* Where connections come from, when it is not the path of a socket. */
struct ipc_source {
	/* A connected descriptor for the caller to close; -EAGAIN: none yet, ask again; else a
	 * negative errno. */
	int (*connect)(void *ctx);
	void *ctx;
};

/*
 * path: of the socket.  The request is copied.  timeout_ms: for everything up to the answer, 0
 * without limit.  events must outlive the connection.  NULL: out of memory.
 */
struct ipc_conn *ipc_conn_open(uv_loop_t *loop, const char *path, const uint8_t *request,
			       size_t request_bytes, uint64_t timeout_ms,
			       const struct ipc_conn_events *events, void *ctx);

/* The same from a source, whose ctx must outlive the connection. */
struct ipc_conn *ipc_conn_open_from(uv_loop_t *loop, const struct ipc_source *source,
				    const uint8_t *request, size_t request_bytes,
				    uint64_t timeout_ms, const struct ipc_conn_events *events,
				    void *ctx);

/* No more callbacks from now on except closed(ctx), which may be NULL; the memory goes then. */
void ipc_conn_close(struct ipc_conn *c, void (*closed)(void *ctx), void *ctx);

/* Stops and goes on reading; the kernel's buffer fills meanwhile. */
void ipc_conn_pause(struct ipc_conn *c);
void ipc_conn_resume(struct ipc_conn *c);

#endif
