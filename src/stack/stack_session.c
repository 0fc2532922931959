/* SPDX-License-Identifier: MIT */
#include "src/stack/stack_session.h"

#include <signal.h>
#include <stdlib.h>

#include "src/base/log.h"
#include "src/collect/heap_walk.h"
#include "src/proc/proc.h"

enum {
	LOOK_MS = 100,
	SIGNALS = 3,
	BUFFER_MB = 64,
	MIN_ROUNDS = 2, /* one alone does not show whether anything moves */
	ROUND_GAP_NS = 500 * 1000, /* half of the sampler's period */
	SAME_MS = 250, /* one wish, not two */
};

/* The default, and the threads with their managed ids (0x10800). */
#define RUNDOWN UINT64_C(0x80030939)

struct stack_session {
	const struct stack_session_config *config;
	struct stack_session_result *result;
	uv_loop_t loop;
	uv_timer_t look;
	uv_signal_t signals[SIGNALS];
	struct session *session;
	struct heap_walk *walk; /* NULL: none goes on or is to come */
	struct nt_decoder *decoder; /* of the analysis */
	struct nt_decoder *counter; /* does not hold events back */
	uint64_t begin_ns, start_ns, signal_ns;
	int64_t last_sample_ns;
	bool stopping, over, walks_over;
};

static void finish(struct stack_session *s)
{
	if (s->over)
		return;
	s->over = true;
	if (s->session)
		session_close(s->session, NULL, NULL);
	s->session = NULL;
	if (s->walk)
		heap_walk_close(s->walk);
	s->walk = NULL;
	uv_close((uv_handle_t *)&s->look, NULL);
	for (size_t i = 0; i < SIGNALS; i++)
		uv_close((uv_handle_t *)&s->signals[i], NULL);
}

/* The threads as they are now, once. */
static void read_after(struct stack_session *s)
{
	struct stack_session_result *r = s->result;

	if (!r->threads_known || r->after.rows)
		return;
	r->threads_known = proc_threads_read(&r->after, PROC_ROOT, s->config->target->pid);
	r->watched_ns = uv_hrtime() - s->start_ns;
}

static void stop(struct stack_session *s)
{
	if (s->stopping)
		return;
	s->stopping = true;
	read_after(s);
	if (s->session) {
		session_stop(s->session);
		return;
	}
	s->result->end.why = SESSION_CANCELLED; /* not yet begun */
	finish(s);
}

/* --- the session --- */

static void on_started(void *ctx, unsigned version, unsigned gave_up)
{
	struct stack_session *s = ctx;

	(void)version;
	(void)gave_up;
	s->start_ns = uv_hrtime();
	if (s->walk)
		heap_walk_opened(s->walk);
	if (!s->config->target->foreign)
		s->result->threads_known =
			proc_threads_read(&s->result->before, PROC_ROOT, s->config->target->pid);
}

static void on_data(void *ctx, const uint8_t *bytes, size_t len)
{
	struct stack_session *s = ctx;

	/* Errors stick in the decoders; the rest is taken off the runtime all the same. */
	(void)!nt_decoder_push(s->decoder, bytes, len);
	(void)!nt_decoder_push(s->counter, bytes, len);
	if (s->walk)
		heap_walk_push(s->walk, bytes, len);
}

static void on_end(void *ctx, const struct session_end *end)
{
	struct stack_session *s = ctx;

	s->result->end = *end;
	read_after(s);
	finish(s);
}

static const struct session_events session_events = { on_started, on_data, on_end };

static enum nt_status count(void *ctx, const struct nt_event *ev)
{
	struct stack_session *s = ctx;

	if (ev->def->provider_id != NT_PROV_SAMPLER)
		return NT_OK;
	if (!s->result->samples++ || ev->time_ns - s->last_sample_ns > ROUND_GAP_NS)
		s->result->rounds++;
	s->last_sample_ns = ev->time_ns;
	return NT_OK;
}

static const struct nt_sink counter_sink = { .event = count };

/* --- time --- */

/* NativeAOT has no sampler: there is nothing to wait for. */
static bool never_comes(const struct stack_session *s)
{
	const struct nt_trace_info *t = nt_decoder_borrow_trace(s->counter);

	return t && t->processors == UINT16_MAX;
}

static void on_look(uv_timer_t *timer)
{
	struct stack_session *s = timer->data;
	uint64_t now = uv_hrtime(), half_ns = s->config->timeout_ms * UINT64_C(500000);
	uint64_t watched;

	if (process_is_held(PROC_ROOT, s->config->target, &s->result->hold)) {
		s->result->held = true;
		s->result->end.why = SESSION_TIMEOUT;
		finish(s);
		return;
	}
	if (!s->start_ns || s->stopping)
		return;
	watched = now - s->start_ns;
	if (now - s->begin_ns >= half_ns) {
		stop(s);
		return;
	}
	if (watched < s->config->watch_ms * UINT64_C(1000000) || (s->walk && !s->walks_over))
		return;
	if (s->result->rounds >= MIN_ROUNDS || never_comes(s))
		stop(s);
}

static void on_signal(uv_signal_t *signal, int number)
{
	struct stack_session *s = signal->data;
	uint64_t now = uv_hrtime();

	(void)number;
	s->result->interrupted = true;
	if (s->signal_ns && now - s->signal_ns > SAME_MS * UINT64_C(1000000))
		finish(s);
	else if (!s->signal_ns)
		stop(s);
	s->signal_ns = s->signal_ns ? s->signal_ns : now;
}

/* The caller frees the array, not the names. */
static const char **borrow_sockets(const struct ipc_target *t)
{
	const char **sockets = calloc(t->socket_count + 1, sizeof(*sockets));

	for (size_t i = 0; sockets && i < t->socket_count; i++)
		sockets[i] = t->sockets[i].path;
	return sockets;
}

static bool start_session(struct stack_session *s)
{
	const char **sockets = borrow_sockets(s->config->target);
	struct session_config config = {
		.sockets = sockets,
		.socket_count = s->config->target->socket_count,
		.collect = {
			.buffer_mb = s->walk ? HEAP_WALK_BUFFER_MB : BUFFER_MB,
			.rundown_keywords = RUNDOWN,
			.stacks = true,
			.providers = s->config->providers,
			.provider_count = s->config->provider_count,
		},
		.timeout_ms = s->config->timeout_ms / 2,
		.stop_timeout_ms = s->config->timeout_ms / 2,
	};

	if (sockets)
		s->session = session_start(&s->loop, &config, &session_events, s);
	free(sockets);
	return s->session != NULL;
}

/* --- walks of the heap --- */

static void on_walk_ready(void *ctx, bool answers)
{
	struct stack_session *s = ctx;

	(void)answers; /* however large the heap: our own limit of time stands */
	if (start_session(s))
		return;
	s->result->end.why = SESSION_NO_MEMORY;
	finish(s);
}

static void on_walked(void *ctx, unsigned number, const struct heap_walk_facts *facts)
{
	struct stack_session *s = ctx;

	s->result->walked = number;
	if (!s->config->quiet)
		heap_walk_say(number, s->config->heap_walks, facts);
}

/* Closed when the session is: it may be in the middle of a push. */
static void on_walks_done(void *ctx, enum heap_walk_why why)
{
	struct stack_session *s = ctx;

	s->walks_over = true;
	if (why != HEAP_WALK_DONE)
		log_warn("%s", heap_walk_describe(why));
}

static const struct heap_walk_events walk_events = { on_walk_ready, on_walked, on_walks_done };

static bool start_walks(struct stack_session *s)
{
	const char **sockets = borrow_sockets(s->config->target);
	const struct heap_walk_config config = {
		.sockets = sockets,
		.socket_count = s->config->target->socket_count,
		.walks = s->config->heap_walks,
		.apart_ms = HEAP_WALK_APART_MS,
		.timeout_ms = s->config->timeout_ms / 4,
	};

	if (!s->config->quiet)
		heap_walk_announce(config.walks, "; --no-heap leaves that out");
	if (sockets)
		s->walk = heap_walk_start(&s->loop, &config, &walk_events, s);
	free(sockets);
	return s->walk != NULL;
}

/* --- the whole --- */

static bool begin(struct stack_session *s)
{
	static const int numbers[SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

	uv_timer_init(&s->loop, &s->look);
	s->look.data = s;
	uv_timer_start(&s->look, on_look, LOOK_MS, LOOK_MS);
	for (size_t i = 0; i < SIGNALS; i++) {
		uv_signal_init(&s->loop, &s->signals[i]);
		s->signals[i].data = s;
		uv_signal_start(&s->signals[i], on_signal, numbers[i]);
	}
	s->begin_ns = uv_hrtime();
	return s->config->heap_walks ? start_walks(s) : start_session(s);
}

bool stack_session_run(const struct stack_session_config *config, struct analysis *analysis,
		       struct stack_session_result *ret)
{
	struct stack_session s = { .config = config, .result = ret };
	bool ok = false;

	*ret = (struct stack_session_result){ 0 };
	s.decoder = analysis_decoder(analysis);
	s.counter = nt_decoder_new(NULL, NULL, NT_SKIP_STACKS, &counter_sink, &s);
	if (s.counter && uv_loop_init(&s.loop) == 0) {
		ok = begin(&s);
		if (!ok)
			finish(&s);
		uv_run(&s.loop, UV_RUN_DEFAULT);
		uv_loop_close(&s.loop);
	}
	nt_decoder_free(s.counter);
	if (!ok)
		log_error("cannot take stacks: out of memory");
	return ok;
}

void stack_session_done(struct stack_session_result *r)
{
	proc_threads_done(&r->before);
	proc_threads_done(&r->after);
}
