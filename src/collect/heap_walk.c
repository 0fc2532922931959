/* SPDX-License-Identifier: MIT */
#include "src/collect/heap_walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzers/heap/suspension.h"
#include "nettrace/nettrace.h"
#include "src/base/log.h"
#include "src/collect/providers.h"
#include "src/ipc/session.h"

enum {
	GC_START = 1,
	GC_END = 2,
	BULK_NODE = 18,
	GENERATION_ALL = 2,
	STOP_MS = 30000, /* for the end of an empty session; a collection may be in between */
	GRACE_MS = 200, /* from the end of a walk to the program's going on */
};

enum state {
	ST_FLUSHING, /* so that the runtime tells the names of types again */
	ST_OPENING, /* the owner opens the session */
	ST_WALKING, /* waiting for a walk, or in it */
	ST_ENDING, /* the walk has ended; the program goes on in a moment */
	ST_RESTING, /* between the two */
	ST_OVER
};

struct heap_walk {
	const struct heap_walk_events *events;
	void *ctx;
	struct heap_walk_config config;
	char **sockets;
	struct ipc_source source;
	uv_loop_t *loop;
	uv_timer_t timer;
	struct session *helper;
	struct nt_decoder *decoder;
	enum state state;
	unsigned walked;
	bool in_walk;
	struct heap_walk_facts facts;
	uint64_t objects; /* of the walk that goes on */
	uint64_t objects_before; /* when the timer looked last */
	int64_t begin_ns, end_ns; /* of the collection that walks, or walked */
	struct an_suspension suspension;
	bool partial; /* the collection that goes on is of young objects */
	unsigned open; /* handles and sessions that are not closed */
	bool closing;
};

/* Asks for nothing but a first sample: opening it makes the runtime forget what types it told. */
static const struct ipc_provider flush_provider = { .name = PROVIDER_SAMPLER, .level = 4 };
static const struct ipc_provider collect_provider = { .name = PROVIDER_RUNTIME,
						      .keywords = 0x800001,
						      .level = 4 };

/* --- memory --- */

static void release(struct heap_walk *w)
{
	for (size_t i = 0; i < w->config.socket_count; i++)
		free(w->sockets[i]);
	free(w->sockets);
	nt_decoder_free(w->decoder);
	free(w);
}

static void on_part_closed(void *ctx)
{
	struct heap_walk *w = ctx;

	if (--w->open == 0 && w->closing)
		release(w);
}

static void on_timer_closed(uv_handle_t *h)
{
	on_part_closed(h->data);
}

static void close_helper(struct heap_walk *w)
{
	if (w->helper)
		session_close(w->helper, on_part_closed, w);
	w->helper = NULL;
}

void heap_walk_close(struct heap_walk *w)
{
	w->closing = true;
	close_helper(w);
	uv_close((uv_handle_t *)&w->timer, on_timer_closed);
}

/* --- states --- */

static void over(struct heap_walk *w, enum heap_walk_why why)
{
	if (w->state == ST_OVER || w->closing)
		return;
	w->state = ST_OVER;
	uv_timer_stop(&w->timer);
	w->events->done(w->ctx, why);
}

static void on_timer(uv_timer_t *timer);

static void wait_for_walk(struct heap_walk *w)
{
	w->state = ST_WALKING;
	w->objects_before = w->objects;
	uv_update_time(w->loop);
	uv_timer_start(&w->timer, on_timer, HEAP_WALK_STALL_MS, 0);
}

/* --- the helping session: empty, stopped as soon as it is there --- */

static void on_started(void *ctx, unsigned version, unsigned gave_up)
{
	struct heap_walk *w = ctx;

	(void)version;
	(void)gave_up;
	session_stop(w->helper);
}

static void on_data(void *ctx, const uint8_t *bytes, size_t len)
{
	(void)ctx; /* what comes goes to the other session as well */
	(void)bytes;
	(void)len;
}

static void on_end(void *ctx, const struct session_end *end)
{
	struct heap_walk *w = ctx;
	bool flushing = w->state == ST_FLUSHING;

	close_helper(w);
	if (flushing) {
		/* Who cannot be reached is told so by the session itself. */
		w->state = ST_OPENING;
		w->events->ready(w->ctx, end->started);
	} else if (!end->started) {
		over(w, HEAP_WALK_FAILED);
	}
}

static const struct session_events helper_events = { on_started, on_data, on_end };

static bool start_helper(struct heap_walk *w, const struct ipc_provider *provider)
{
	const struct session_config config = {
		.sockets = (const char *const *)w->sockets,
		.socket_count = w->config.socket_count,
		.source = w->config.source,
		.collect = {
			.buffer_mb = 4,
			.rundown_keywords = IPC_RUNDOWN_NONE,
			.stacks = true,
			.providers = provider,
			.provider_count = 1,
		},
		.timeout_ms = w->state == ST_FLUSHING ? w->config.timeout_ms
							: HEAP_WALK_ANSWER_MS,
		.stop_timeout_ms = STOP_MS,
	};

	w->helper = session_start(w->loop, &config, &helper_events, w);
	w->open += w->helper != NULL;
	return w->helper != NULL;
}

/* --- the walks --- */

static void end_walk(struct heap_walk *w)
{
	struct heap_walk_facts facts = w->facts;

	w->walked++;
	w->objects = 0;
	w->state = w->walked < w->config.walks ? ST_RESTING : ST_OVER;
	if (w->state == ST_RESTING) {
		uv_update_time(w->loop);
		uv_timer_start(&w->timer, on_timer, w->config.apart_ms, 0);
	} else {
		uv_timer_stop(&w->timer);
	}
	w->events->walked(w->ctx, w->walked, &facts);
	if (w->state == ST_OVER && !w->closing)
		w->events->done(w->ctx, HEAP_WALK_DONE);
}

static void on_timer(uv_timer_t *timer)
{
	struct heap_walk *w = timer->data;

	switch (w->state) {
	case ST_WALKING:
		if (w->objects == w->objects_before)
			over(w, HEAP_WALK_TIMEOUT);
		else
			wait_for_walk(w);
		break;
	case ST_ENDING:
		end_walk(w);
		break;
	case ST_RESTING:
		wait_for_walk(w);
		if (!start_helper(w, &collect_provider))
			over(w, HEAP_WALK_FAILED);
		break;
	default:
		break;
	}
}

/* Counts are enough here; rows are for who analyses. */
static uint64_t bulk_count(const struct nt_event *ev)
{
	const uint8_t *p = ev->payload;

	if (ev->payload_bytes < 8)
		return 0;
	return (uint64_t)p[4] | (uint64_t)p[5] << 8 | (uint64_t)p[6] << 16 | (uint64_t)p[7] << 24;
}

static uint64_t generation(const struct nt_event *ev)
{
	struct nt_value v[8];
	size_t n = nt_payload_read(ev, v, 8, NULL);

	return nt_value_u64(v, n, "Depth", GENERATION_ALL);
}

static enum nt_status on_event(void *ctx, const struct nt_event *ev)
{
	struct heap_walk *w = ctx;

	if (ev->def->provider_id != NT_PROV_RUNTIME)
		return NT_OK;
	switch (ev->def->event_id) {
	case GC_START:
		w->partial = generation(ev) < GENERATION_ALL;
		if (!w->in_walk)
			w->begin_ns = ev->time_ns;
		break;
	case BULK_NODE:
		if (!w->partial) {
			w->in_walk = true;
			w->objects += bulk_count(ev);
		}
		break;
	case AN_EVENT_SUSPENDING:
	case AN_EVENT_RESTARTED:
		/* Another collection may come at once: the first that fits. */
		if (an_suspension_ends(&w->suspension, ev) && w->state == ST_ENDING &&
		    w->facts.pause_ns < 0)
			w->facts.pause_ns = an_suspension_around(&w->suspension, w->begin_ns,
								 w->end_ns, ev->time_ns);
		break;
	case GC_END:
		if (!w->in_walk || w->state != ST_WALKING)
			break;
		w->in_walk = false;
		w->end_ns = ev->time_ns;
		w->facts = (struct heap_walk_facts){ .objects = w->objects, .pause_ns = -1 };
		w->state = ST_ENDING;
		uv_update_time(w->loop);
		uv_timer_start(&w->timer, on_timer, GRACE_MS, 0);
		break;
	default:
		break;
	}
	return NT_OK;
}

static const struct nt_sink sink = { .event = on_event };

void heap_walk_opened(struct heap_walk *w)
{
	if (w->state == ST_OPENING)
		wait_for_walk(w);
}

void heap_walk_push(struct heap_walk *w, const uint8_t *bytes, size_t len)
{
	if (w->state == ST_OVER)
		return;
	/* A stream that cannot be read has no walk: the timer says so. */
	(void)!nt_decoder_push(w->decoder, bytes, len);
	if (w->state == ST_ENDING && w->facts.pause_ns >= 0)
		end_walk(w);
}

unsigned heap_walk_progress(const struct heap_walk *w, uint64_t *ret_objects)
{
	*ret_objects = w->objects;
	return w->state == ST_WALKING ? w->walked + 1 : 0;
}

/* --- the whole --- */

static bool copy_config(struct heap_walk *w, const struct heap_walk_config *config)
{
	w->config = *config;
	w->config.socket_count = 0;
	if (config->source) {
		w->source = *config->source;
		w->config.source = &w->source;
		return true;
	}
	w->sockets = calloc(config->socket_count + 1, sizeof(*w->sockets));
	for (size_t i = 0; w->sockets && i < config->socket_count; i++) {
		w->sockets[i] = strdup(config->sockets[i]);
		if (!w->sockets[i])
			return false;
		w->config.socket_count++;
	}
	return w->sockets != NULL;
}

struct heap_walk *heap_walk_start(uv_loop_t *loop, const struct heap_walk_config *config,
				  const struct heap_walk_events *events, void *ctx)
{
	struct heap_walk *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->loop = loop;
	w->events = events;
	w->ctx = ctx;
	w->decoder = nt_decoder_new(NULL, NULL, NT_SKIP_STACKS | NT_RECOVER, &sink, w);
	if (!w->decoder || !copy_config(w, config)) {
		release(w);
		return NULL;
	}
	uv_timer_init(loop, &w->timer);
	w->timer.data = w;
	w->open = 1;
	if (start_helper(w, &flush_provider))
		return w;
	heap_walk_close(w);
	return NULL;
}

/* --- for people --- */

void heap_walk_announce(unsigned walks, const char *more)
{
	log_info("the heap is walked %s: %s a full collection, for which the whole process stands "
		 "still%s",
		 walks == 1 ? "once" : "twice, 2 s apart", walks == 1 ? "that is" : "each is",
		 more);
}

void heap_walk_say(unsigned number, unsigned walks, const struct heap_walk_facts *facts)
{
	char pause[64] = "for a time that is not known";

	if (facts->pause_ns >= 0)
		snprintf(pause, sizeof(pause), "for %.1f ms", (double)facts->pause_ns / 1e6);
	log_info("heap walk %u of %u: %" PRIu64 " objects; the process stood still %s", number,
		 walks, facts->objects, pause);
}

const char *heap_walk_describe(enum heap_walk_why why)
{
	return why == HEAP_WALK_TIMEOUT
		       ? "the heap was not walked in time; what came is reported"
		       : "the heap was not walked again: the process did not answer";
}
