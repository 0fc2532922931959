/* SPDX-License-Identifier: MIT */
#ifndef SRC_IPC_IPC_CALL_H
#define SRC_IPC_IPC_CALL_H

/*
 * Questions with one answer, for commands that have nothing else to do meanwhile.
 *
 * A caller is set up once for a target: its sockets are tried in turn, one limit of time covers
 * everything it asks, and SIGINT, SIGTERM and SIGHUP end the waiting.  ipc_call() runs the loop
 * until the answer is there.  The connection is closed before it returns, whatever happened: the
 * runtime serves one client at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "src/ipc/ipc_conn.h"

enum ipc_call_why {
	IPC_CALL_ANSWERED, /* reply is valid; it may be an error of the runtime */
	IPC_CALL_FAILED, /* end says why there was no answer */
	IPC_CALL_CUT, /* answered, but what must follow the answer did not come whole */
	IPC_CALL_TIMEOUT,
	IPC_CALL_INTERRUPTED, /* signal */
	IPC_CALL_NO_MEMORY,
};

struct ipc_answer {
	enum ipc_call_why why;
	struct ipc_conn_end end;
	struct ipc_reply reply; /* points into bytes */
	uint8_t *bytes; /* the whole answer */
	uint8_t *more; /* what followed it; see ipc_call() */
	size_t more_bytes, more_wanted, more_room;
};

enum { IPC_CALL_SIGNALS = 3, IPC_CALL_MAX_MORE = 64 << 20 };

struct ipc_caller {
	uv_loop_t *loop;
	const char *const *sockets;
	size_t socket_count, socket; /* the one that answers connections */
	const struct ipc_source *source; /* instead of sockets; NULL: sockets */
	uint64_t deadline_ms; /* on the loop's clock; 0: none */
	uv_signal_t signals[IPC_CALL_SIGNALS];
	uv_timer_t timer;
	int signal; /* that ended it; 0 none.  Later calls end at once */
	/* The call being made. */
	struct ipc_conn *conn;
	struct ipc_answer *answer;
	bool (*more_wanted)(const struct ipc_reply *reply, size_t *ret_bytes);
	bool done;
	unsigned closing;
};

/* The loop must not run yet.  sockets must outlive the caller.  timeout_ms 0: without limit. */
bool ipc_caller_init(struct ipc_caller *c, uv_loop_t *loop, const char *const *sockets,
		     size_t count, uint64_t timeout_ms);
void ipc_caller_done(struct ipc_caller *c);
/* From now on; 0: without limit. */
void ipc_caller_limit(struct ipc_caller *c, uint64_t timeout_ms);

/*
 * Sends the request and waits for the answer.  more, if not NULL, says for an answer how many
 * bytes follow it (false: none); they are awaited too.  *ret is filled whatever happens; free it
 * with ipc_answer_done().
 */
void ipc_call(struct ipc_caller *c, const uint8_t *request, size_t request_bytes,
	      bool (*more)(const struct ipc_reply *reply, size_t *ret_bytes),
	      struct ipc_answer *ret);
void ipc_answer_done(struct ipc_answer *a);

/* Whether the runtime answered that it does not know the command. */
bool ipc_answer_unknown(const struct ipc_answer *a);
/* For people, about anything but success: "it did not answer in time". */
void ipc_answer_describe(const struct ipc_answer *a, char *buf, size_t size);

#endif
