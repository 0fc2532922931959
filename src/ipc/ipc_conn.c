/* SPDX-License-Identifier: MIT */
#include "src/ipc/ipc_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/ipc/ipc_find.h"

enum {
	READ_BYTES = 256 * 1024, /* more than the longest answer */
	RETRY_MS = 20,
};

struct ipc_conn {
	uv_pipe_t pipe;
	uv_timer_t timer;
	uv_write_t write;
	const struct ipc_conn_events *events;
	void *ctx;
	void (*closed)(void *ctx);
	void *closed_ctx;
	char *path; /* NULL: from the source */
	struct ipc_source source;
	uint64_t deadline_ms; /* on the loop's clock; 0 none */
	size_t request_bytes;
	size_t held; /* bytes of an incomplete answer in buffer */
	unsigned handles; /* not yet closed */
	struct ipc_conn_end so_far;
	bool ended, closing, paused, reading;
	uint8_t *request;
	uint8_t buffer[READ_BYTES];
};

static void start_reading(struct ipc_conn *c);

static void end(struct ipc_conn *c, enum ipc_conn_why why, int error, enum ipc_status status)
{
	if (c->ended || c->closing)
		return;
	c->ended = true;
	uv_timer_stop(&c->timer);
	if (c->reading)
		uv_read_stop((uv_stream_t *)&c->pipe);
	c->reading = false;
	c->so_far.why = why;
	c->so_far.error = error;
	c->so_far.status = status;
	c->events->end(c->ctx, &c->so_far);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
	struct ipc_conn *c = h->data;

	(void)suggested;
	buf->base = (char *)c->buffer + c->held;
	buf->len = sizeof(c->buffer) - c->held;
}

/* The first answer, once it is complete; the bytes behind it begin the stream. */
static void take_answer(struct ipc_conn *c, size_t len)
{
	struct ipc_reply reply;
	enum ipc_status st = ipc_reply_read(c->buffer, len, &reply);

	if (st == IPC_MORE) {
		c->held = len;
		return;
	}
	c->held = 0;
	if (st != IPC_OK) {
		end(c, IPC_CONN_PROTOCOL, 0, st);
		return;
	}
	c->so_far.answered = true;
	uv_timer_stop(&c->timer);
	c->events->reply(c->ctx, &reply);
	if (!c->closing && len > reply.size && c->events->data)
		c->events->data(c->ctx, c->buffer + reply.size, len - reply.size);
}

/* A connection over TCP is asked for first, and stands or fails later. */
static bool is_connect_error(const struct ipc_conn *c, int error)
{
	return !c->so_far.answered && (error == UV_ECONNREFUSED || error == UV_EHOSTUNREACH ||
				       error == UV_ENETUNREACH || error == UV_ETIMEDOUT);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct ipc_conn *c = stream->data;

	(void)buf;
	if (n == 0)
		return;
	if (n == UV_EOF || n == UV_ECONNRESET)
		end(c, IPC_CONN_EOF, (int)n, IPC_MORE);
	else if (n < 0 && is_connect_error(c, (int)n))
		end(c, IPC_CONN_CONNECT, (int)n, IPC_MORE);
	else if (n < 0)
		end(c, IPC_CONN_IO, (int)n, IPC_MORE);
	else if (!c->so_far.answered)
		take_answer(c, c->held + (size_t)n);
	else if (c->events->data)
		c->events->data(c->ctx, c->buffer, (size_t)n);
}

static void start_reading(struct ipc_conn *c)
{
	if (c->ended || c->closing || c->paused || c->reading || !c->so_far.connected)
		return;
	c->reading = true;
	uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read);
}

/* A server that answers and closes before it has read all of the request is heard all the same. */
static void on_written(uv_write_t *req, int status)
{
	struct ipc_conn *c = req->data;

	if (status < 0 && is_connect_error(c, status))
		end(c, IPC_CONN_CONNECT, status, IPC_MORE);
	else if (status < 0 && status != UV_EPIPE && status != UV_ECONNRESET)
		end(c, IPC_CONN_IO, status, IPC_MORE);
}

/* A Unix socket connects at once or not at all: -EAGAIN means that the listener's queue is full. */
static int connect_now(const char *path, int *ret_fd)
{
	struct sockaddr_un addr;
	int dir, fd, error = ipc_socket_address(path, &addr, &dir);

	if (error < 0)
		return error;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		error = -errno;
	else if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) != 0)
		error = -errno;
	if (dir >= 0)
		close(dir);
	if (error < 0 && fd >= 0)
		close(fd);
	*ret_fd = error < 0 ? -1 : fd;
	return error;
}

static void on_timeout(uv_timer_t *timer)
{
	struct ipc_conn *c = timer->data;

	end(c, IPC_CONN_TIMEOUT, UV_ETIMEDOUT, IPC_MORE);
}

static void wait_for_answer(struct ipc_conn *c)
{
	uint64_t now = uv_now(c->timer.loop);

	if (c->deadline_ms != 0)
		uv_timer_start(&c->timer, on_timeout,
			       c->deadline_ms > now ? c->deadline_ms - now : 0, 0);
}

static void on_connect(uv_timer_t *timer)
{
	struct ipc_conn *c = timer->data;
	uv_buf_t buf = uv_buf_init((char *)c->request, (unsigned)c->request_bytes);
	uint64_t now = uv_now(timer->loop);
	int fd = -1, error;

	if (c->path) {
		error = connect_now(c->path, &fd);
	} else {
		fd = c->source.connect(c->source.ctx);
		error = fd < 0 ? fd : 0;
	}

	if (error == -EAGAIN) {
		if (c->deadline_ms != 0 && now >= c->deadline_ms)
			end(c, IPC_CONN_TIMEOUT, UV_ETIMEDOUT, IPC_MORE);
		else
			uv_timer_start(timer, on_connect, RETRY_MS, 0);
		return;
	}
	if (error == 0) {
		error = uv_pipe_open(&c->pipe, fd);
		if (error < 0)
			close(fd);
	}
	if (error < 0) {
		end(c, IPC_CONN_CONNECT, error, IPC_MORE);
		return;
	}
	c->so_far.connected = true;
	c->write.data = c;
	error = uv_write(&c->write, (uv_stream_t *)&c->pipe, &buf, 1, on_written);
	if (error < 0) {
		end(c, IPC_CONN_IO, error, IPC_MORE);
		return;
	}
	start_reading(c);
	wait_for_answer(c);
}

static struct ipc_conn *open_conn(uv_loop_t *loop, const char *path,
				  const struct ipc_source *source, const uint8_t *request,
				  size_t request_bytes, uint64_t timeout_ms)
{
	struct ipc_conn *c = malloc(sizeof(*c));

	if (!c)
		return NULL;
	memset(c, 0, offsetof(struct ipc_conn, buffer));
	c->path = path ? strdup(path) : NULL;
	if (source)
		c->source = *source;
	c->request = malloc(request_bytes);
	if ((path && !c->path) || !c->request || uv_timer_init(loop, &c->timer) < 0)
		goto fail;
	if (uv_pipe_init(loop, &c->pipe, 0) < 0)
		goto fail;
	memcpy(c->request, request, request_bytes);
	c->request_bytes = request_bytes;
	c->handles = 2;
	c->pipe.data = c;
	c->timer.data = c;
	uv_update_time(loop);
	if (timeout_ms != 0)
		c->deadline_ms = uv_now(loop) + timeout_ms;
	uv_timer_start(&c->timer, on_connect, 0, 0);
	return c;
fail:
	free(c->path);
	free(c->request);
	free(c);
	return NULL;
}

struct ipc_conn *ipc_conn_open(uv_loop_t *loop, const char *path, const uint8_t *request,
			       size_t request_bytes, uint64_t timeout_ms,
			       const struct ipc_conn_events *events, void *ctx)
{
	struct ipc_conn *c = open_conn(loop, path, NULL, request, request_bytes, timeout_ms);

	if (c) {
		c->events = events;
		c->ctx = ctx;
	}
	return c;
}

struct ipc_conn *ipc_conn_open_from(uv_loop_t *loop, const struct ipc_source *source,
				    const uint8_t *request, size_t request_bytes,
				    uint64_t timeout_ms, const struct ipc_conn_events *events,
				    void *ctx)
{
	struct ipc_conn *c = open_conn(loop, NULL, source, request, request_bytes, timeout_ms);

	if (c) {
		c->events = events;
		c->ctx = ctx;
	}
	return c;
}

/* Runs last: libuv lets go of the handles only here, so only here may memory go. */
static void on_closed(uv_handle_t *h)
{
	struct ipc_conn *c = h->data;
	void (*closed)(void *ctx) = c->closed;
	void *ctx = c->closed_ctx;

	if (--c->handles > 0)
		return;
	free(c->path);
	free(c->request);
	free(c);
	if (closed)
		closed(ctx);
}

void ipc_conn_close(struct ipc_conn *c, void (*closed)(void *ctx), void *ctx)
{
	c->closing = true;
	c->closed = closed;
	c->closed_ctx = ctx;
	uv_close((uv_handle_t *)&c->timer, on_closed);
	uv_close((uv_handle_t *)&c->pipe, on_closed);
}

void ipc_conn_pause(struct ipc_conn *c)
{
	c->paused = true;
	if (c->reading)
		uv_read_stop((uv_stream_t *)&c->pipe);
	c->reading = false;
}

void ipc_conn_resume(struct ipc_conn *c)
{
	c->paused = false;
	start_reading(c);
}
