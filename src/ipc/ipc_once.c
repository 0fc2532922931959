/* SPDX-License-Identifier: MIT */
#include "src/ipc/ipc_once.h"

#include <stdlib.h>

struct ipc_once {
	struct ipc_conn *conn;
	ipc_once_done done;
	void *ctx;
};

static void on_closed(void *ctx)
{
	free(ctx);
}

static void finish(struct ipc_once *o, const struct ipc_reply *reply,
		   const struct ipc_conn_end *end)
{
	o->done(o->ctx, reply, end);
	ipc_conn_close(o->conn, on_closed, o);
}

static void on_reply(void *ctx, const struct ipc_reply *reply)
{
	finish(ctx, reply, NULL);
}

static void on_end(void *ctx, const struct ipc_conn_end *end)
{
	finish(ctx, NULL, end);
}

static const struct ipc_conn_events events = { .reply = on_reply, .end = on_end };

struct ipc_once *ipc_once_start(uv_loop_t *loop, const char *path, const struct ipc_source *source,
				const uint8_t *request, size_t request_bytes, uint64_t timeout_ms,
				ipc_once_done done, void *ctx)
{
	struct ipc_once *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->done = done;
	o->ctx = ctx;
	o->conn = path ? ipc_conn_open(loop, path, request, request_bytes, timeout_ms, &events, o)
		       : ipc_conn_open_from(loop, source, request, request_bytes, timeout_ms,
					    &events, o);
	if (o->conn)
		return o;
	free(o);
	return NULL;
}
