/* SPDX-License-Identifier: MIT */
#include "src/ipc/process_info.h"

#include <stdlib.h>
#include <string.h>

struct process_question {
	uv_loop_t *loop;
	struct ipc_conn *conn;
	char *socket; /* NULL: from the source */
	struct ipc_source source;
	uint64_t deadline_ms;
	unsigned version; /* being asked */
	struct process_info *ret;
	void (*done)(void *ctx);
	void *ctx;
	bool next; /* an older version is to be asked */
};

void process_info_done(struct process_info *i)
{
	free(i->entry_assembly);
	free(i->runtime_version);
	free(i->arch);
	free(i->os);
	free(i->command_line);
	*i = (struct process_info){ 0 };
}

char *ipc_text_copy(const struct ipc_text *t)
{
	size_t room = t->bytes / 2 * 3 + 1;
	char *text = t->bytes ? malloc(room) : NULL;

	if (text)
		ipc_text_utf8(t, text, room);
	return text;
}

static bool ask(struct process_question *q);

static void on_closed(void *ctx)
{
	struct process_question *q = ctx;

	if (q->next && ask(q))
		return;
	q->done(q->ctx);
	free(q->socket);
	free(q);
}

static void close_question(struct process_question *q, bool next)
{
	q->next = next;
	ipc_conn_close(q->conn, on_closed, q);
}

static void on_reply(void *ctx, const struct ipc_reply *reply)
{
	struct process_question *q = ctx;
	struct process_info *r = q->ret;
	struct ipc_process_info info;

	r->answered = true;
	if (!reply->ok && reply->hresult == IPC_H_UNKNOWN_COMMAND && q->version > 1) {
		q->version--;
		close_question(q, true);
		return;
	}
	if (reply->ok && ipc_process_info_read(reply, q->version, &info) == IPC_OK) {
		r->version = q->version;
		r->pid = info.pid;
		r->entry_assembly = ipc_text_copy(&info.entry_assembly);
		r->runtime_version = ipc_text_copy(&info.runtime_version);
		r->arch = ipc_text_copy(&info.arch);
		r->os = ipc_text_copy(&info.os);
		r->command_line = ipc_text_copy(&info.command_line);
	}
	close_question(q, false);
}

static void on_end(void *ctx, const struct ipc_conn_end *end)
{
	struct process_question *q = ctx;

	q->ret->end = *end;
	close_question(q, false);
}

static const struct ipc_conn_events events = { .reply = on_reply, .end = on_end };

static bool ask(struct process_question *q)
{
	uint8_t request[IPC_HEADER_BYTES];
	size_t n = ipc_put_plain(request, sizeof(request), IPC_SET_PROCESS,
				 ipc_process_info_command(q->version));
	uint64_t left;

	uv_update_time(q->loop);
	left = q->deadline_ms > uv_now(q->loop) ? q->deadline_ms - uv_now(q->loop) : 1;
	q->conn = q->socket ? ipc_conn_open(q->loop, q->socket, request, n, left, &events, q)
			    : ipc_conn_open_from(q->loop, &q->source, request, n, left, &events, q);
	return q->conn != NULL;
}

static bool start(uv_loop_t *loop, const char *socket, const struct ipc_source *source,
		  uint64_t timeout_ms, struct process_info *ret, void (*done)(void *ctx), void *ctx)
{
	struct process_question *q = calloc(1, sizeof(*q));

	if (!q)
		return false;
	*ret = (struct process_info){ 0 };
	uv_update_time(loop);
	q->loop = loop;
	q->socket = socket ? strdup(socket) : NULL;
	if (source)
		q->source = *source;
	q->deadline_ms = uv_now(loop) + timeout_ms;
	q->version = 3;
	q->ret = ret;
	q->done = done;
	q->ctx = ctx;
	if ((q->socket || source) && ask(q))
		return true;
	free(q->socket);
	free(q);
	return false;
}

bool process_info_ask(uv_loop_t *loop, const char *socket, uint64_t timeout_ms,
		      struct process_info *ret, void (*done)(void *ctx), void *ctx)
{
	return start(loop, socket, NULL, timeout_ms, ret, done, ctx);
}

bool process_info_ask_from(uv_loop_t *loop, const struct ipc_source *source, uint64_t timeout_ms,
			   struct process_info *ret, void (*done)(void *ctx), void *ctx)
{
	return start(loop, NULL, source, timeout_ms, ret, done, ctx);
}
