/* SPDX-License-Identifier: MIT */
#include "src/collect/early_symbols.h"

#include <stdlib.h>

#include "src/collect/providers.h"

enum { BUFFER_MB = 256 }; /* an upper limit: what does not fit would be lost */

struct early_symbols {
	const struct early_symbols_events *events;
	void *ctx;
	struct session *session;
	struct nt_decoder *decoder;
	uint64_t start_ns;
	bool closing;
};

/* Next to nothing, so that the rundown is all there is. */
static const struct ipc_provider nothing = { .name = PROVIDER_RUNTIME, .level = 1 };

static void on_started(void *ctx, unsigned version, unsigned gave_up)
{
	struct early_symbols *e = ctx;

	(void)version;
	(void)gave_up;
	session_stop(e->session);
}

static void on_data(void *ctx, const uint8_t *bytes, size_t len)
{
	struct early_symbols *e = ctx;

	/* The error sticks in the decoder; the rest has to be taken off the runtime all the same.
	 */
	(void)!nt_decoder_push(e->decoder, bytes, len);
}

static void on_end(void *ctx, const struct session_end *end)
{
	struct early_symbols *e = ctx;
	enum nt_status st = nt_decoder_finish(e->decoder);
	const struct nt_stats *stats = nt_decoder_borrow_stats(e->decoder);
	const struct early_symbols_result result = {
		.complete = st == NT_OK && stats->ended && end->why == SESSION_ENDED,
		.bytes = stats->bytes,
		.events = stats->events,
		.took_ns = uv_hrtime() - e->start_ns,
		.end = *end,
	};

	e->events->done(e->ctx, &result);
}

static enum nt_status on_event(void *ctx, const struct nt_event *ev)
{
	struct early_symbols *e = ctx;

	return e->closing ? NT_STOPPED : e->events->event(e->ctx, ev);
}

static const struct session_events session_events = { on_started, on_data, on_end };
static const struct nt_sink sink = { .event = on_event };

static void release(void *ctx)
{
	struct early_symbols *e = ctx;

	nt_decoder_free(e->decoder);
	free(e);
}

struct early_symbols *early_symbols_start(uv_loop_t *loop,
					  const struct early_symbols_config *config,
					  const struct early_symbols_events *events, void *ctx)
{
	struct early_symbols *e = calloc(1, sizeof(*e));
	const struct session_config session = {
		.sockets = config->sockets,
		.socket_count = config->socket_count,
		.source = config->source,
		.collect = {
			.buffer_mb = BUFFER_MB,
			.rundown_keywords = IPC_RUNDOWN_DEFAULT,
			.stacks = true,
			.providers = &nothing,
			.provider_count = 1,
		},
		.timeout_ms = config->timeout_ms,
		.stop_timeout_ms = config->stop_timeout_ms,
	};

	if (!e)
		return NULL;
	e->events = events;
	e->ctx = ctx;
	e->start_ns = uv_hrtime();
	e->decoder = nt_decoder_new(NULL, NULL, NT_SKIP_STACKS, &sink, e);
	if (e->decoder)
		e->session = session_start(loop, &session, &session_events, e);
	if (e->session)
		return e;
	release(e);
	return NULL;
}

void early_symbols_close(struct early_symbols *e)
{
	e->closing = true;
	session_close(e->session, release, e);
}
