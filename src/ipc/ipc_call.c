/* SPDX-License-Identifier: MIT */
#include "src/ipc/ipc_call.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 50, MAX_RETRIES = 600 };

/* Ends the call; the loop goes on until the connection is closed. */
static void on_conn_closed(void *ctx)
{
	struct ipc_caller *c = ctx;

	c->done = true;
}

static void finish(struct ipc_caller *c, enum ipc_call_why why)
{
	struct ipc_conn *conn = c->conn;

	if (!conn)
		return;
	c->conn = NULL;
	c->answer->why = why;
	uv_timer_stop(&c->timer);
	ipc_conn_close(conn, on_conn_closed, c);
}

static bool keep(struct ipc_answer *a, const uint8_t *bytes, size_t len)
{
	size_t room = a->more_room ? a->more_room : 4096, need;
	uint8_t *grown;

	if (len > a->more_wanted - a->more_bytes)
		len = a->more_wanted - a->more_bytes;
	need = a->more_bytes + len;
	while (room < need)
		room *= 2;
	if (room > a->more_room) {
		grown = realloc(a->more, room);
		if (!grown)
			return false;
		a->more = grown;
		a->more_room = room;
	}
	memcpy(a->more + a->more_bytes, bytes, len);
	a->more_bytes = need;
	return true;
}

static void on_reply(void *ctx, const struct ipc_reply *reply)
{
	struct ipc_caller *c = ctx;
	struct ipc_answer *a = c->answer;

	a->bytes = malloc(reply->payload_bytes ? reply->payload_bytes : 1);
	if (!a->bytes) {
		finish(c, IPC_CALL_NO_MEMORY);
		return;
	}
	memcpy(a->bytes, reply->payload, reply->payload_bytes);
	a->reply = *reply;
	a->reply.payload = a->bytes;
	if (!c->more_wanted || !c->more_wanted(reply, &a->more_wanted) || a->more_wanted == 0)
		finish(c, IPC_CALL_ANSWERED);
	else if (a->more_wanted > IPC_CALL_MAX_MORE)
		finish(c, IPC_CALL_CUT);
}

static void on_data(void *ctx, const uint8_t *bytes, size_t len)
{
	struct ipc_caller *c = ctx;

	if (!keep(c->answer, bytes, len))
		finish(c, IPC_CALL_NO_MEMORY);
	else if (c->answer->more_bytes == c->answer->more_wanted)
		finish(c, IPC_CALL_ANSWERED);
}

static void on_end(void *ctx, const struct ipc_conn_end *end)
{
	struct ipc_caller *c = ctx;

	c->answer->end = *end;
	if (end->answered)
		finish(c, IPC_CALL_CUT);
	else
		finish(c, end->why == IPC_CONN_TIMEOUT ? IPC_CALL_TIMEOUT : IPC_CALL_FAILED);
}

static const struct ipc_conn_events events = { .reply = on_reply, .data = on_data, .end = on_end };

static void on_timer(uv_timer_t *timer)
{
	finish(timer->data, IPC_CALL_TIMEOUT);
}

static void on_signal(uv_signal_t *signal, int number)
{
	struct ipc_caller *c = signal->data;

	c->signal = number;
	finish(c, IPC_CALL_INTERRUPTED);
}

/* --- set-up --- */

static void start_signals(struct ipc_caller *c)
{
	static const int numbers[IPC_CALL_SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; i < IPC_CALL_SIGNALS; i++) {
		struct sigaction old;

		c->signals[i].data = c;
		/* nohup stays nohup. */
		if (numbers[i] == SIGHUP && sigaction(SIGHUP, NULL, &old) == 0 &&
		    old.sa_handler == SIG_IGN)
			continue;
		uv_signal_start(&c->signals[i], on_signal, numbers[i]);
		uv_unref((uv_handle_t *)&c->signals[i]);
	}
}

void ipc_caller_limit(struct ipc_caller *c, uint64_t timeout_ms)
{
	uv_update_time(c->loop);
	c->deadline_ms = timeout_ms ? uv_now(c->loop) + timeout_ms : 0;
}

static void on_closed(uv_handle_t *h)
{
	struct ipc_caller *c = h->data;

	c->closing--;
}

void ipc_caller_done(struct ipc_caller *c)
{
	uv_close((uv_handle_t *)&c->timer, on_closed);
	c->closing = 1;
	for (size_t i = 0; i < IPC_CALL_SIGNALS; i++) {
		uv_close((uv_handle_t *)&c->signals[i], on_closed);
		c->closing++;
	}
	while (c->closing > 0)
		uv_run(c->loop, UV_RUN_ONCE);
}

bool ipc_caller_init(struct ipc_caller *c, uv_loop_t *loop, const char *const *sockets,
		     size_t count, uint64_t timeout_ms)
{
	size_t made = 0;

	memset(c, 0, sizeof(*c));
	c->loop = loop;
	c->sockets = sockets;
	c->socket_count = count;
	if (uv_timer_init(loop, &c->timer) < 0)
		return false;
	c->timer.data = c;
	while (made < IPC_CALL_SIGNALS && uv_signal_init(loop, &c->signals[made]) == 0)
		made++;
	if (made < IPC_CALL_SIGNALS) {
		c->closing = 1;
		uv_close((uv_handle_t *)&c->timer, on_closed);
		for (size_t i = 0; i < made; i++, c->closing++) {
			c->signals[i].data = c;
			uv_close((uv_handle_t *)&c->signals[i], on_closed);
		}
		while (c->closing > 0)
			uv_run(loop, UV_RUN_ONCE);
		return false;
	}
	start_signals(c);
	ipc_caller_limit(c, timeout_ms);
	return true;
}

/* --- calling --- */

/* One socket.  The timer covers what follows the answer, too. */
static void call_one(struct ipc_caller *c, const uint8_t *request, size_t request_bytes,
		     struct ipc_answer *ret)
{
	uint64_t now, left = 0;

	*ret = (struct ipc_answer){ .why = IPC_CALL_NO_MEMORY };
	if (c->signal) {
		ret->why = IPC_CALL_INTERRUPTED;
		return;
	}
	uv_update_time(c->loop);
	now = uv_now(c->loop);
	if (c->deadline_ms)
		left = c->deadline_ms > now ? c->deadline_ms - now : 1;
	c->answer = ret;
	c->done = false;
	if (c->source)
		c->conn = ipc_conn_open_from(c->loop, c->source, request, request_bytes, left,
					     &events, c);
	else
		c->conn = ipc_conn_open(c->loop, c->sockets[c->socket], request, request_bytes,
					left, &events, c);
	if (!c->conn)
		return;
	if (left)
		uv_timer_start(&c->timer, on_timer, left, 0);
	while (!c->done)
		uv_run(c->loop, UV_RUN_ONCE);
}

/* A file that a dead process left behind; the next is older. */
static bool try_next_socket(struct ipc_caller *c, const struct ipc_answer *a)
{
	if (a->why != IPC_CALL_FAILED || a->end.why != IPC_CONN_CONNECT ||
	    a->end.error != -ECONNREFUSED || c->socket + 1 >= c->socket_count)
		return false;
	c->socket++;
	return true;
}

static void on_pause_over(uv_timer_t *timer)
{
	struct ipc_caller *c = timer->data;

	c->done = true;
}

/* A runtime that is still starting is asked again; false when the time is over. */
static bool try_again_later(struct ipc_caller *c, const struct ipc_answer *a)
{
	if (a->why != IPC_CALL_ANSWERED || a->reply.ok ||
	    (a->reply.hresult != IPC_H_NOT_YET_AVAILABLE &&
	     a->reply.hresult != IPC_H_RUNTIME_UNINITIALIZED))
		return false;
	uv_update_time(c->loop);
	if (c->deadline_ms && uv_now(c->loop) + RETRY_MS >= c->deadline_ms)
		return false;
	c->done = false;
	uv_timer_start(&c->timer, on_pause_over, RETRY_MS, 0);
	while (!c->done && !c->signal)
		uv_run(c->loop, UV_RUN_ONCE);
	uv_timer_stop(&c->timer);
	return true;
}

void ipc_call(struct ipc_caller *c, const uint8_t *request, size_t request_bytes,
	      bool (*more)(const struct ipc_reply *reply, size_t *ret_bytes),
	      struct ipc_answer *ret)
{
	c->more_wanted = more;
	call_one(c, request, request_bytes, ret);
	for (unsigned i = 0; i < MAX_RETRIES; i++) {
		if (!try_next_socket(c, ret) && !try_again_later(c, ret))
			break;
		ipc_answer_done(ret);
		call_one(c, request, request_bytes, ret);
	}
}

void ipc_answer_done(struct ipc_answer *a)
{
	free(a->bytes);
	free(a->more);
	*a = (struct ipc_answer){ .why = IPC_CALL_FAILED };
}

bool ipc_answer_unknown(const struct ipc_answer *a)
{
	return a->why == IPC_CALL_ANSWERED && !a->reply.ok &&
	       a->reply.hresult == IPC_H_UNKNOWN_COMMAND;
}

static void describe_end(const struct ipc_conn_end *end, char *buf, size_t size)
{
	switch (end->why) {
	case IPC_CONN_EOF:
		snprintf(buf, size, "it closed the connection without an answer");
		break;
	case IPC_CONN_CONNECT:
		if (end->error == -ECONNREFUSED)
			snprintf(buf, size, "its diagnostic socket is dead, or it is just ending");
		else
			snprintf(buf, size, "cannot connect: %s", uv_strerror(end->error));
		break;
	case IPC_CONN_TIMEOUT:
		snprintf(buf, size, "it did not answer in time");
		break;
	case IPC_CONN_IO:
		snprintf(buf, size, "the connection broke: %s", uv_strerror(end->error));
		break;
	case IPC_CONN_PROTOCOL:
		snprintf(buf, size, "%s", ipc_status_text(end->status));
		break;
	}
}

void ipc_answer_describe(const struct ipc_answer *a, char *buf, size_t size)
{
	const char *name;

	switch (a->why) {
	case IPC_CALL_ANSWERED:
		name = ipc_hresult_name(a->reply.hresult);
		snprintf(buf, size, "%s (%s 0x%08x)", ipc_hresult_text(a->reply.hresult),
			 name ? name : "error", (unsigned)a->reply.hresult);
		break;
	case IPC_CALL_FAILED:
		describe_end(&a->end, buf, size);
		break;
	case IPC_CALL_CUT:
		snprintf(buf, size, "the answer is cut: %zu of %zu bytes came", a->more_bytes,
			 a->more_wanted);
		break;
	case IPC_CALL_TIMEOUT:
		snprintf(buf, size, "it did not answer in time");
		break;
	case IPC_CALL_INTERRUPTED:
		snprintf(buf, size, "interrupted");
		break;
	case IPC_CALL_NO_MEMORY:
		snprintf(buf, size, "out of memory");
		break;
	}
}
