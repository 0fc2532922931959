/* SPDX-License-Identifier: MIT */
#include "src/ipc/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/ipc/ipc_conn.h"

enum {
	RETRY_MS = 20, /* a runtime that is still starting */
	MAX_REFUSED = 10, /* its socket is there a moment before it listens */
	LAST_ANSWER_MS = 1000, /* the answer to the stop, once the stream has ended */
	LAST_BYTES_MS = 2000, /* the end of a stream whose stop could not be sent */
	FIRST_BYTES_MS = 2000, /* the begin of a stream that is to be stopped */
};

enum state { ST_STARTING, ST_STREAMING, ST_STOPPING, ST_DRAINED, ST_OVER };

struct session {
	const struct session_events *events;
	void *ctx;
	void (*closed)(void *ctx);
	void *closed_ctx;
	enum state state;
	struct ipc_conn *stream, *stop;
	uv_timer_t timer; /* starting: next try; stopping: the limit */
	unsigned open; /* connections and handles not yet closed */
	bool closing, stop_failed;
	bool began; /* the stream */
	unsigned refused; /* so often by the last socket */
	int spare; /* a descriptor kept for the stop, should there be no other then; -1 none */
	char **sockets;
	size_t socket_count, socket;
	struct ipc_source source; /* where there are no sockets */
	struct ipc_collect collect;
	uint64_t stop_timeout_ms, deadline_ms;
	unsigned version, gave_up;
	uint64_t id; /* opaque */
	struct session_end result;
	struct ipc_conn_end stream_end;
	uint8_t request[IPC_MAX_MESSAGE];
};

static void try_start(struct session *s);

static void over(struct session *s, enum session_why why)
{
	if (s->state == ST_OVER || s->closing)
		return;
	s->state = ST_OVER;
	uv_timer_stop(&s->timer);
	s->result.why = why;
	s->events->end(s->ctx, &s->result);
}

/* --- memory --- */

static void release(struct session *s)
{
	void (*closed)(void *ctx) = s->closed;
	void *ctx = s->closed_ctx;

	if (s->spare >= 0)
		close(s->spare);
	for (size_t i = 0; i < s->socket_count; i++)
		free(s->sockets[i]);
	free(s->sockets);
	free(s);
	if (closed)
		closed(ctx);
}

static void on_part_closed(void *ctx)
{
	struct session *s = ctx;

	if (--s->open == 0 && s->closing)
		release(s);
}

static void on_timer_closed(uv_handle_t *h)
{
	on_part_closed(h->data);
}

static void close_conn(struct session *s, struct ipc_conn **conn)
{
	if (*conn)
		ipc_conn_close(*conn, on_part_closed, s);
	*conn = NULL;
}

void session_close(struct session *s, void (*closed)(void *ctx), void *ctx)
{
	s->closing = true;
	s->closed = closed;
	s->closed_ctx = ctx;
	close_conn(s, &s->stream);
	close_conn(s, &s->stop);
	uv_close((uv_handle_t *)&s->timer, on_timer_closed);
}

static struct ipc_conn *open_conn(struct session *s, size_t request_bytes, uint64_t timeout_ms,
				  const struct ipc_conn_events *events)
{
	uv_loop_t *loop = s->timer.loop;

	if (s->socket_count == 0)
		return ipc_conn_open_from(loop, &s->source, s->request, request_bytes, timeout_ms,
					  events, s);
	return ipc_conn_open(loop, s->sockets[s->socket], s->request, request_bytes, timeout_ms,
			     events, s);
}

/* --- stopping --- */

static void finish_drained(struct session *s)
{
	switch (s->stream_end.why) {
	case IPC_CONN_EOF:
		over(s, SESSION_ENDED);
		break;
	default:
		s->result.error = s->stream_end.error;
		over(s, SESSION_BROKEN);
	}
}

static void on_stop_timeout(uv_timer_t *timer)
{
	struct session *s = timer->data;

	if (s->state == ST_DRAINED)
		finish_drained(s);
	else if (!s->result.stop_sent)
		over(s, SESSION_SILENT);
	else
		over(s, s->stop_failed ? SESSION_STOP_FAILED : SESSION_STOP_TIMEOUT);
}

static void on_stop_reply(void *ctx, const struct ipc_reply *reply)
{
	struct session *s = ctx;

	/* Old runtimes may answer with an error although they stopped: the stream decides. */
	s->result.stop_answered = true;
	if (!reply->ok)
		s->result.hresult = reply->hresult;
	close_conn(s, &s->stop);
	if (s->state == ST_DRAINED)
		finish_drained(s);
}

static void on_stop_end(void *ctx, const struct ipc_conn_end *end)
{
	struct session *s = ctx;

	close_conn(s, &s->stop);
	if (s->state == ST_DRAINED) {
		finish_drained(s);
	} else if (end->why == IPC_CONN_CONNECT) {
		/* Either the process is going away and its stream ends, or nobody can stop it. */
		s->result.error = end->error;
		s->stop_failed = true;
		uv_timer_start(&s->timer, on_stop_timeout, LAST_BYTES_MS, 0);
	}
}

static const struct ipc_conn_events stop_events = {
	.reply = on_stop_reply,
	.end = on_stop_end,
};

static void send_stop(struct session *s)
{
	size_t n = ipc_put_stop(s->request, sizeof(s->request), s->id);

	uv_update_time(s->timer.loop);
	uv_timer_start(&s->timer, on_stop_timeout, s->stop_timeout_ms, 0);
	if (s->spare >= 0)
		close(s->spare);
	s->spare = -1;
	s->stop = open_conn(s, n, 0, &stop_events);
	if (!s->stop) {
		over(s, SESSION_NO_MEMORY);
		return;
	}
	s->open++;
	s->result.stop_sent = true;
}

/*
 * A runtime that is suspended at its start sends nothing, and puts a stop off until it goes on:
 * .NET 9 and 10 crash then if there is another session.  One that has no reader any more does no
 * harm.  So the stop waits for the first bytes, which a runtime that runs sends at once.
 */
void session_stop(struct session *s)
{
	uint64_t wait_ms =
		FIRST_BYTES_MS < s->stop_timeout_ms ? FIRST_BYTES_MS : s->stop_timeout_ms;

	if (s->state == ST_STARTING) {
		over(s, SESSION_CANCELLED);
		return;
	}
	if (s->state != ST_STREAMING)
		return;
	s->state = ST_STOPPING;
	ipc_conn_resume(s->stream);
	if (s->began) {
		send_stop(s);
		return;
	}
	uv_update_time(s->timer.loop);
	uv_timer_start(&s->timer, on_stop_timeout, wait_ms, 0);
}

void session_pause(struct session *s)
{
	if (s->state == ST_STREAMING)
		ipc_conn_pause(s->stream);
}

void session_resume(struct session *s)
{
	if (s->state == ST_STREAMING)
		ipc_conn_resume(s->stream);
}

/* --- starting and streaming --- */

/* A runtime that has said why it cannot yet has answered, even if the last try found it busy. */
static void over_in_time(struct session *s)
{
	bool starting = s->result.hresult == IPC_H_NOT_YET_AVAILABLE ||
			s->result.hresult == IPC_H_RUNTIME_UNINITIALIZED;

	over(s, starting ? SESSION_REFUSED : SESSION_TIMEOUT);
}

static void on_retry(uv_timer_t *timer)
{
	try_start(timer->data);
}

static void on_refused(struct session *s, uint32_t hresult)
{
	s->result.hresult = hresult;
	close_conn(s, &s->stream);
	if (hresult == IPC_H_UNKNOWN_COMMAND &&
	    ipc_collect_fall_back(&s->collect, &s->version, &s->gave_up)) {
		try_start(s);
		return;
	}
	if (hresult == IPC_H_NOT_YET_AVAILABLE || hresult == IPC_H_RUNTIME_UNINITIALIZED) {
		uv_timer_start(&s->timer, on_retry, RETRY_MS, 0);
		return;
	}
	over(s, SESSION_REFUSED);
}

static void on_reply(void *ctx, const struct ipc_reply *reply)
{
	struct session *s = ctx;

	if (!reply->ok) {
		on_refused(s, reply->hresult);
		return;
	}
	s->result.status = ipc_session_id_read(reply, &s->id);
	if (s->result.status != IPC_OK) {
		over(s, SESSION_PROTOCOL);
		return;
	}
	s->result.hresult = IPC_H_OK;
	s->result.started = true;
	s->state = ST_STREAMING;
	s->events->started(s->ctx, s->version, s->gave_up);
}

static void on_data(void *ctx, const uint8_t *bytes, size_t len)
{
	struct session *s = ctx;
	bool first = !s->began;

	s->began = true;
	if (s->state != ST_STREAMING && s->state != ST_STOPPING)
		return;
	if (first && s->state == ST_STOPPING)
		send_stop(s);
	if (s->state != ST_OVER)
		s->events->data(s->ctx, bytes, len);
}

/* The end of the stream.  The answer to a stop follows at once: the session is gone by then. */
static void on_stream_end(struct session *s, const struct ipc_conn_end *end)
{
	s->stream_end = *end;
	if (s->stop && !s->result.stop_answered) {
		s->state = ST_DRAINED;
		uv_timer_start(&s->timer, on_stop_timeout, LAST_ANSWER_MS, 0);
		return;
	}
	finish_drained(s);
}

static bool may_still_listen(struct session *s, int error)
{
	if (error != -ECONNREFUSED || s->refused++ == MAX_REFUSED)
		return false;
	uv_update_time(s->timer.loop);
	return uv_now(s->timer.loop) + RETRY_MS < s->deadline_ms;
}

static void on_end(void *ctx, const struct ipc_conn_end *end)
{
	struct session *s = ctx;

	if (s->result.started) {
		on_stream_end(s, end);
		return;
	}
	s->result.error = end->error;
	s->result.status = end->status;
	close_conn(s, &s->stream);
	switch (end->why) {
	case IPC_CONN_CONNECT:
		if ((end->error == -ECONNREFUSED || end->error == -ENOENT) &&
		    s->socket + 1 < s->socket_count) {
			s->socket++;
			try_start(s);
			return;
		}
		if (may_still_listen(s, end->error)) {
			uv_timer_start(&s->timer, on_retry, RETRY_MS, 0);
			return;
		}
		over(s, SESSION_UNREACHABLE);
		break;
	case IPC_CONN_TIMEOUT:
		over_in_time(s);
		break;
	case IPC_CONN_PROTOCOL:
		over(s, SESSION_PROTOCOL);
		break;
	case IPC_CONN_EOF:
	case IPC_CONN_IO:
		over(s, SESSION_BROKEN);
		break;
	}
}

static const struct ipc_conn_events stream_events = {
	.reply = on_reply,
	.data = on_data,
	.end = on_end,
};

/* One more try with what is left of the time. */
static void try_start(struct session *s)
{
	uv_loop_t *loop = s->timer.loop;
	uint64_t now;
	size_t n;

	uv_update_time(loop);
	now = uv_now(loop);
	if (now >= s->deadline_ms) {
		over_in_time(s);
		return;
	}
	n = ipc_put_collect(s->request, sizeof(s->request), &s->collect, s->version);
	if (n == 0) {
		over(s, SESSION_BAD_REQUEST);
		return;
	}
	s->stream = open_conn(s, n, s->deadline_ms - now, &stream_events);
	if (!s->stream) {
		over(s, SESSION_NO_MEMORY);
		return;
	}
	s->open++;
}

struct session *session_start(uv_loop_t *loop, const struct session_config *config,
			      const struct session_events *events, void *ctx)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (config->source)
		s->source = *config->source;
	s->sockets = calloc(config->socket_count + 1, sizeof(*s->sockets));
	if (!s->sockets)
		goto fail;
	for (; s->socket_count < config->socket_count; s->socket_count++) {
		s->sockets[s->socket_count] = strdup(config->sockets[s->socket_count]);
		if (!s->sockets[s->socket_count])
			goto fail;
	}
	if (uv_timer_init(loop, &s->timer) < 0)
		goto fail;
	s->events = events;
	s->ctx = ctx;
	s->open = 1;
	s->timer.data = s;
	s->collect = config->collect;
	s->version = ipc_collect_version(&s->collect);
	s->stop_timeout_ms = config->stop_timeout_ms;
	uv_update_time(loop);
	s->deadline_ms = uv_now(loop) + config->timeout_ms;
	/* The first try comes from the loop, so that no callback runs before this returns. */
	uv_timer_start(&s->timer, on_retry, 0, 0);
	return s;
fail:
	release(s);
	return NULL;
}

void session_describe(const struct session_end *end, char *buf, size_t size)
{
	const char *name;

	switch (end->why) {
	case SESSION_ENDED:
		snprintf(buf, size, "the session ended");
		break;
	case SESSION_CANCELLED:
		snprintf(buf, size, "stopped before the session had begun");
		break;
	case SESSION_UNREACHABLE:
		snprintf(buf, size, "cannot connect: %s", uv_strerror(end->error));
		break;
	case SESSION_TIMEOUT:
		snprintf(buf, size, "it did not answer in time");
		break;
	case SESSION_REFUSED:
		name = ipc_hresult_name(end->hresult);
		snprintf(buf, size, "%s (%s 0x%08x)", ipc_hresult_text(end->hresult),
			 name ? name : "error", (unsigned)end->hresult);
		break;
	case SESSION_PROTOCOL:
		snprintf(buf, size, "%s", ipc_status_text(end->status));
		break;
	case SESSION_BROKEN:
		if (end->error == UV_EOF)
			snprintf(buf, size, "it closed the connection without an answer");
		else
			snprintf(buf, size, "the connection broke: %s", uv_strerror(end->error));
		break;
	case SESSION_SILENT:
		snprintf(buf, size,
			 "the runtime sent nothing: it is suspended until it is told to resume");
		break;
	case SESSION_STOP_TIMEOUT:
		snprintf(buf, size, "the stream did not end in time after the stop");
		break;
	case SESSION_STOP_FAILED:
		snprintf(buf, size, "the stop could not be sent: %s", uv_strerror(end->error));
		break;
	case SESSION_NO_MEMORY:
		snprintf(buf, size, "out of memory");
		break;
	case SESSION_BAD_REQUEST:
		snprintf(buf, size, "the providers do not fit into a request, or are not UTF-8");
		break;
	}
}
