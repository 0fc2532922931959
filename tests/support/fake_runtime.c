/* SPDX-License-Identifier: MIT */
#include "tests/support/fake_runtime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { HEADER = 20, ADVERTISE = 34, ENDLESS_MS = 2 };

#define UNKNOWN_COMMAND	  0x80131385u
#define NOT_YET_AVAILABLE 0x8013135bu
#define FAILED		  0x80004005u

struct fake_conn {
	struct fake_conn *next;
	struct fake_runtime *runtime;
	uv_pipe_t pipe;
	uv_write_t write;
	uv_connect_t connect;
	uint8_t in[70000];
	size_t in_len;
	uint8_t *out;
	size_t out_len, out_at;
	bool writing, closing, close_after;
	struct fake_conn *answer_after; /* the stop waiting for this stream's end */
};

static void on_conn_closed(uv_handle_t *h)
{
	struct fake_conn *c = h->data;
	struct fake_conn **at = &c->runtime->conns;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	if (c->runtime->stream == c)
		c->runtime->stream = NULL;
	c->runtime->open--;
	free(c->out);
	free(c);
}

static void close_conn(struct fake_conn *c)
{
	if (!c->closing)
		uv_close((uv_handle_t *)&c->pipe, on_conn_closed);
	c->closing = true;
}

static void pump(struct fake_conn *c);
static void dial(struct fake_runtime *f);

static void queue(struct fake_conn *c, const void *data, size_t len)
{
	if (len == 0)
		return;
	c->out = realloc(c->out, c->out_len + len);
	assert_non_null(c->out);
	memcpy(c->out + c->out_len, data, len);
	c->out_len += len;
}

static void answer(struct fake_conn *c, uint8_t command, const void *payload, size_t len)
{
	const struct fake_script *s = &c->runtime->script;
	uint8_t head[HEADER] = "DOTNET_IPC_V1";

	if (s->silent)
		return;
	if (s->wrong_magic)
		memcpy(head, "HTTP/1.1 400", 12);
	head[14] = (uint8_t)(HEADER + len);
	head[15] = (uint8_t)((HEADER + len) >> 8);
	head[16] = 0xff;
	head[17] = command;
	queue(c, head, sizeof(head));
	queue(c, payload, len);
	if (s->cut_answer) {
		c->out_len = s->cut_at;
		c->close_after = true;
	}
}

static void answer_error(struct fake_conn *c, uint32_t hresult)
{
	uint8_t payload[8] = { (uint8_t)hresult, (uint8_t)(hresult >> 8), (uint8_t)(hresult >> 16),
			       (uint8_t)(hresult >> 24) };

	answer(c, 0xff, payload,
	       c->runtime->script.error_bytes ? c->runtime->script.error_bytes : 4);
}

static void answer_id(struct fake_conn *c, uint64_t id)
{
	uint8_t payload[8];

	for (size_t i = 0; i < 8; i++)
		payload[i] = (uint8_t)(id >> (8 * i));
	answer(c, 0, payload, 8);
}

static void on_written(uv_write_t *req, int status)
{
	struct fake_conn *c = req->data;

	c->writing = false;
	if (status < 0 && c == c->runtime->stream)
		c->runtime->stream_lost = true;
	if (status < 0)
		close_conn(c);
	else
		pump(c);
}

/* As a real runtime does: the stop is answered when the stream has been written and closed. */
static void all_written(struct fake_conn *c)
{
	struct fake_conn *stop = c->answer_after;

	c->answer_after = NULL;
	if (c->close_after)
		close_conn(c);
	if (!stop)
		return;
	if (c->runtime->script.stop == FAKE_STOP_ERROR)
		answer_error(stop, FAILED);
	else
		answer_id(stop, c->runtime->script.session_id);
	stop->close_after = true;
	pump(stop);
}

static void pump(struct fake_conn *c)
{
	size_t chunk = c->runtime->script.chunk, left = c->out_len - c->out_at;
	uv_buf_t buf;

	if (c->writing || c->closing)
		return;
	if (left == 0) {
		all_written(c);
		return;
	}
	if (chunk == 0 || chunk > left)
		chunk = left;
	buf = uv_buf_init((char *)c->out + c->out_at, (unsigned)chunk);
	c->out_at += chunk;
	c->write.data = c;
	c->writing = true;
	assert_int_equal(uv_write(&c->write, (uv_stream_t *)&c->pipe, &buf, 1, on_written), 0);
}

static void on_endless(uv_timer_t *timer)
{
	struct fake_runtime *f = timer->data;

	if (f->stream && !f->stream->writing) {
		queue(f->stream, "more", 4);
		pump(f->stream);
	}
}

static void serve_collect(struct fake_conn *c, unsigned version)
{
	struct fake_runtime *f = c->runtime;
	const struct fake_script *s = &f->script;

	if (f->script.starting > 0) {
		f->script.starting--;
		answer_error(c, NOT_YET_AVAILABLE);
		f->script.silent = f->script.starting == 0 && s->then_silent;
	} else if (s->error) {
		answer_error(c, s->error);
	} else if (version > s->knows) {
		answer_error(c, UNKNOWN_COMMAND);
	} else {
		answer_id(c, s->session_id);
		if (s->silent || s->cut_answer)
			return;
		f->stream = c;
		if (s->suspended)
			return;
		queue(c, s->stream, s->stream_bytes);
		c->close_after = s->closes;
	}
}

void fake_runtime_resume(struct fake_runtime *f)
{
	if (!f->script.suspended)
		return;
	f->script.suspended = false;
	if (!f->stream)
		return;
	queue(f->stream, f->script.stream, f->script.stream_bytes);
	f->stream->close_after = f->script.closes;
	pump(f->stream);
}

static void serve_resume(struct fake_conn *c)
{
	static const uint8_t zero[4];
	struct fake_runtime *f = c->runtime;

	f->resumes++;
	answer(c, 0, zero, sizeof(zero));
	c->close_after = true;
	fake_runtime_resume(f);
}

static void end_stream(struct fake_conn *stream, struct fake_conn *stop)
{
	const struct fake_script *s = &stream->runtime->script;

	queue(stream, s->rest, s->rest_bytes);
	stream->close_after = true;
	stream->answer_after = stop;
	pump(stream);
}

static void serve_stop(struct fake_conn *c)
{
	struct fake_runtime *f = c->runtime;

	for (size_t i = 0; i < 8; i++)
		f->stopped_id |= (uint64_t)c->in[HEADER + i] << (8 * i);
	if (!f->stream)
		return;
	switch (f->script.stop) {
	case FAKE_STOP_PROPER:
	case FAKE_STOP_ERROR:
		end_stream(f->stream, c);
		break;
	case FAKE_STOP_ANSWER_FIRST:
		answer_id(c, f->script.session_id);
		end_stream(f->stream, NULL);
		break;
	case FAKE_STOP_NO_ANSWER:
		end_stream(f->stream, NULL);
		break;
	case FAKE_STOP_IGNORED:
		break;
	case FAKE_STOP_ENDLESS:
		answer_id(c, f->script.session_id);
		uv_timer_start(&f->timer, on_endless, ENDLESS_MS, ENDLESS_MS);
		break;
	case FAKE_STOP_HANG_UP:
		close_conn(c);
		break;
	}
}

/* pid 7, cookie, "x" "Linux" as absent texts, "x64"; then what each version adds. */
static void serve_info(struct fake_conn *c, unsigned version)
{
	static const uint8_t one[8] = { 1 }, pid[8] = { 7 }, cookie[16] = { 9 };
	static const uint8_t text[] = "\x02\0\0\0x\0\0\0\0\0\0\0\x04\0\0\0x\0006\0004\0\0\0";
	static const uint8_t two[] = "\x02\0\0\0E\0\0\0\x02\0\0\0008\0\0\0";
	uint8_t payload[200];
	size_t n = 0;

	if (version > c->runtime->script.info_knows) {
		answer_error(c, UNKNOWN_COMMAND);
		return;
	}
	if (version == 3) {
		memcpy(payload, one, 4);
		n = 4;
	}
	memcpy(payload + n, pid, 8);
	memcpy(payload + n + 8, cookie, 16);
	n += 24;
	memcpy(payload + n, text, sizeof(text) - 1);
	n += sizeof(text) - 1;
	if (version >= 2) {
		memcpy(payload + n, two, sizeof(two) - 1);
		n += sizeof(two) - 1;
	}
	if (version == 3) {
		memset(payload + n, 0, 4);
		n += 4;
	}
	answer(c, 0, payload, n);
}

static void serve_other(struct fake_conn *c, uint16_t command)
{
	const struct fake_answer *a = c->runtime->script.answers;

	while (a && a->command && a->command != command)
		a++;
	if (!a || !a->command) {
		answer_error(c, UNKNOWN_COMMAND);
	} else if (c->runtime->script.starting > 0) {
		c->runtime->script.starting--;
		answer_error(c, NOT_YET_AVAILABLE);
	} else {
		answer(c, a->error ? 0xff : 0, a->payload, a->bytes);
		if (c->runtime->script.cut_answer)
			return;
		queue(c, a->more, a->more_bytes);
		c->close_after = a->closes;
	}
}

static void serve(struct fake_conn *c)
{
	uint16_t command = (uint16_t)(c->in[16] << 8 | c->in[17]);

	assert_true(c->runtime->command_count < FAKE_MAX_COMMANDS);
	c->runtime->commands[c->runtime->command_count++] = command;
	if (c->runtime->script.dial)
		dial(c->runtime);
	if (command == 0x0201)
		serve_stop(c);
	else if (command >= 0x0202 && command <= 0x0207)
		serve_collect(c, (unsigned)(command - 0x0201));
	else if (command == 0x0401)
		serve_resume(c);
	else if (command == 0x0400 || command == 0x0404 || command == 0x0408)
		serve_info(c, command == 0x0400 ? 1 : command == 0x0404 ? 2 : 3);
	else
		serve_other(c, command);
	if (c->out_len > 0)
		pump(c);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
	struct fake_conn *c = h->data;

	(void)suggested;
	*buf = uv_buf_init((char *)c->in + c->in_len, (unsigned)(sizeof(c->in) - c->in_len));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct fake_conn *c = stream->data;
	bool before = c->in_len >= HEADER && c->in_len >= (c->in[14] | (size_t)c->in[15] << 8);

	(void)buf;
	if (n < 0) {
		if (c == c->runtime->stream)
			c->runtime->stream_lost = true;
		close_conn(c);
		return;
	}
	c->in_len += (size_t)n;
	if (!before && c->in_len >= HEADER && c->in_len >= (c->in[14] | (size_t)c->in[15] << 8))
		serve(c);
}

static struct fake_conn *new_conn(struct fake_runtime *f)
{
	struct fake_conn *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->runtime = f;
	assert_int_equal(uv_pipe_init(f->loop, &c->pipe, 0), 0);
	c->pipe.data = c;
	c->next = f->conns;
	f->conns = c;
	f->open++;
	return c;
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct fake_runtime *f = listener->data;
	struct fake_conn *c = new_conn(f);

	assert_int_equal(status, 0);
	assert_int_equal(uv_accept(listener, (uv_stream_t *)&c->pipe), 0);
	f->accepted++;
	uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read);
}

/* --- connecting by itself --- */

static void on_dialled(uv_connect_t *connect, int status)
{
	struct fake_conn *c = connect->data;
	const struct fake_script *s = &c->runtime->script;
	uint8_t advertise[ADVERTISE] = "ADVR_V1";

	if (c->closing)
		return;
	if (status < 0) {
		close_conn(c);
		return;
	}
	if (s->wrong_advertise)
		memcpy(advertise, "GET / H", 7);
	memset(advertise + 8, s->cookie, 16);
	for (size_t i = 0; i < 8; i++)
		advertise[24 + i] = (uint8_t)(s->pid >> (8 * i));
	queue(c, advertise, s->advertise_bytes ? s->advertise_bytes : ADVERTISE);
	c->close_after = s->advertise_bytes > 0 || s->dies;
	pump(c);
	if (!c->closing)
		uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read);
}

static void dial(struct fake_runtime *f)
{
	struct fake_conn *c = new_conn(f);

	f->dialled++;
	c->connect.data = c;
	uv_pipe_connect(&c->connect, &c->pipe, f->script.dial, on_dialled);
}

void fake_runtime_start(struct fake_runtime *f, uv_loop_t *loop, const struct fake_script *script)
{
	memset(f, 0, sizeof(*f));
	f->loop = loop;
	f->script = *script;
	assert_int_equal(uv_timer_init(loop, &f->timer), 0);
	f->timer.data = f;
	if (f->script.dial) {
		dial(f);
		return;
	}
	snprintf(f->dir, sizeof(f->dir), "/tmp/drd-fake-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/port", f->dir);
	assert_int_equal(uv_pipe_init(loop, &f->listener, 0), 0);
	f->listener.data = f;
	assert_int_equal(uv_pipe_bind(&f->listener, f->path), 0);
	assert_int_equal(uv_listen((uv_stream_t *)&f->listener, 16, on_connection), 0);
}

void fake_runtime_stop(struct fake_runtime *f)
{
	if (!f->script.dial)
		uv_close((uv_handle_t *)&f->listener, NULL);
	uv_close((uv_handle_t *)&f->timer, NULL);
	for (struct fake_conn *c = f->conns; c; c = c->next)
		close_conn(c);
	if (f->script.dial)
		return;
	unlink(f->path);
	rmdir(f->dir);
}
