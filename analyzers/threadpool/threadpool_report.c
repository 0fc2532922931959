/* SPDX-License-Identifier: MIT */

/* Judges the thread pool and writes its section; the thresholds are in docs/findings.md. */

#include <inttypes.h>
#include <stdlib.h>

#include "analyzers/grow.h"
#include "analyzers/stacks.h"
#include "analyzers/threadpool/threadpool_internal.h"
#include "analyzers/wait_frames.h"

enum {
	MIN_ROUNDS = 3, /* of samples in a window that says something */
	MIN_INJECTED = 2, /* adjustments that raised the number of threads */
	QUEUE_STARTED = 20,
	MAX_ROWS = 1000,
	MAX_FRAMES = 24,
	RUNTIME_3 = 3, /* its idle workers have no frame: they are never sampled */
};

enum worker { WORKER_NONE, WORKER_IDLE, WORKER_WAITS, WORKER_RUNS };

struct blocker {
	const struct an_method *method;
	uint32_t node; /* the stack with most samples */
	uint64_t node_samples, samples;
	uint32_t threads;
};

struct judged {
	uint8_t *workers; /* by node: enum worker + 1 */
	bool any_worker; /* sampled */
	uint32_t min_workers;
	bool min_known; /* not assumed */
	/* the longest time without a break in which all workers were blocked */
	uint64_t blocked_ns, blocked_all_ns;
	double blocked_workers; /* on average, in the window with most */
	double blocked_percent; /* of all samples of workers in those windows */
	bool by_samples, by_adjustments, by_queue;
	const struct pool_queue *queue; /* the one that is recorded, or NULL */
	uint64_t queue_p95_ns, queue_oldest_ns;
	struct blocker *blockers; /* most threads first */
	size_t blocker_count;
};

static enum worker look(const struct an_stacks *s, uint32_t node)
{
	unsigned frames = an_stack_pool(s, node);

	if (frames & AN_POOL_WORK)
		return an_stack_waits(s, node) ? WORKER_WAITS : WORKER_RUNS;
	return frames & AN_POOL_LOOP ? WORKER_IDLE : WORKER_NONE;
}

static enum worker worker_of(const struct pool *p, struct judged *j, uint32_t node, bool by_event)
{
	enum worker w;

	if (!j->workers[node])
		j->workers[node] = (uint8_t)(look(&p->stacks, node) + 1);
	w = (enum worker)(j->workers[node] - 1);
	return w == WORKER_RUNS && by_event ? WORKER_WAITS : w;
}

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

/* --- samples: windows in which every worker waits --- */

struct window {
	uint64_t waits, all;
};

/* More blocked workers than the pool starts at once: it added them because work was waiting. */
static bool is_starved(const struct pool *p, const struct window *w, uint32_t rounds,
		       uint32_t min_workers)
{
	return rounds >= MIN_ROUNDS &&
	       100.0 * (double)w->waits >=
		       (double)w->all * an_limit(p->shared, AN_LIMIT_POOL_STARVATION_BLOCKED) &&
	       w->waits * 2 > (uint64_t)rounds * (2 * (uint64_t)min_workers + 1);
}

static uint64_t window_ns(const struct pool_samples *s, size_t i)
{
	uint64_t end = an_ns_between(s->start_ns, s->last_ns), start = i * s->width_ns;

	if (end < start)
		return 0;
	return end - start < s->width_ns ? end - start : s->width_ns;
}

static void judge_windows(const struct pool *p, struct judged *j)
{
	const struct pool_samples *s = &p->samples;
	struct window windows[POOL_WINDOWS] = { 0 };
	uint64_t run_ns = 0, waits = 0, all = 0;

	for (size_t i = 0; i < s->cell_count; i++) {
		const struct pool_cell *c = &s->cells[i];
		enum worker w = worker_of(p, j, c->node, c->by_event);

		if (w == WORKER_NONE)
			continue;
		j->any_worker = true;
		windows[c->window].all += c->count;
		if (w == WORKER_WAITS)
			windows[c->window].waits += c->count;
	}
	for (size_t i = 0; i < POOL_WINDOWS; i++) {
		double workers;

		if (!is_starved(p, &windows[i], s->rounds[i], j->min_workers)) {
			run_ns = 0;
			continue;
		}
		run_ns += window_ns(s, i);
		j->blocked_all_ns += window_ns(s, i);
		if (run_ns > j->blocked_ns)
			j->blocked_ns = run_ns;
		workers = (double)windows[i].waits / (double)s->rounds[i];
		if (workers > j->blocked_workers)
			j->blocked_workers = workers;
		waits += windows[i].waits;
		all += windows[i].all;
	}
	j->blocked_percent = all ? 100.0 * (double)waits / (double)all : 0;
}

/* --- who blocks --- */

static int compare_blockers(const void *a, const void *b)
{
	const struct blocker *x = a, *y = b;

	if (x->threads != y->threads)
		return x->threads < y->threads ? 1 : -1;
	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return (x->node > y->node) - (x->node < y->node);
}

static enum nt_status count_blocker(struct judged *j, struct nt_idmap *rows, struct nt_idmap *pairs,
				    const struct an_method *m, const struct pool_slot *slot)
{
	uint64_t key = m ? m->index + UINT64_C(1) : 0;
	uint32_t row = nt_idmap_get(rows, key);
	struct blocker *b;

	if (row == NT_IDMAP_NONE) {
		row = (uint32_t)j->blocker_count;
		if (nt_idmap_put(rows, key, row) < 0)
			return NT_ENOMEM;
		j->blockers[j->blocker_count++] = (struct blocker){ .method = m };
	}
	b = &j->blockers[row];
	b->samples += slot->count;
	if (slot->count > b->node_samples) {
		b->node_samples = slot->count;
		b->node = slot->node;
	}
	key = (uint64_t)row << 32 | slot->thread;
	if (nt_idmap_get(pairs, key) != NT_IDMAP_NONE)
		return NT_OK;
	b->threads++;
	return nt_idmap_put(pairs, key, 1);
}

static enum nt_status find_blockers(const struct pool *p, struct judged *j)
{
	const struct pool_samples *s = &p->samples;
	struct nt_idmap rows, pairs;
	enum nt_status st = NT_OK;

	j->blockers = an_mem_array(p->shared->alloc, s->slot_count, sizeof(*j->blockers));
	if (!j->blockers)
		return NT_ENOMEM;
	nt_idmap_init(&rows, p->shared->alloc);
	nt_idmap_init(&pairs, p->shared->alloc);
	for (size_t i = 0; i < s->slot_count && st == NT_OK; i++) {
		const struct pool_slot *slot = &s->slots[i];

		if (worker_of(p, j, slot->node, slot->by_event) == WORKER_WAITS)
			st = count_blocker(j, &rows, &pairs, an_stack_place(&p->stacks, slot->node),
					   slot);
	}
	nt_idmap_done(&rows);
	nt_idmap_done(&pairs);
	if (j->blocker_count)
		qsort(j->blockers, j->blocker_count, sizeof(*j->blockers), compare_blockers);
	return st;
}

/* --- all evidence --- */

static void judge_min(const struct pool *p, struct judged *j)
{
	j->min_known = p->setting_count > 0;
	if (j->min_known)
		j->min_workers = p->settings[p->setting_count - 1].min_workers;
	else if (p->shared->trace.processors > 0)
		j->min_workers = (uint32_t)p->shared->trace.processors;
	if (!j->min_workers)
		j->min_workers = 1;
}

/* Items that were started had waited long. */
static bool was_slow(const struct pool *p, const struct judged *j)
{
	return j->queue->started >= QUEUE_STARTED &&
	       ms(j->queue_p95_ns) >= an_limit(p->shared, AN_LIMIT_POOL_QUEUE_DELAY);
}

/* Items are queued that should have been started long ago. */
static bool is_old(const struct pool *p, const struct judged *j)
{
	return (double)j->queue->waiting >=
		       an_limit(p->shared, AN_LIMIT_POOL_QUEUE_DELAY_WAITING) &&
	       ms(j->queue_oldest_ns) >= an_limit(p->shared, AN_LIMIT_POOL_QUEUE_DELAY_OLDEST);
}

static void judge_queue(struct pool *p, struct judged *j)
{
	for (size_t i = 0; i < POOL_SOURCES; i++) {
		struct pool_queue *q = &p->queues[i];

		if (!q->queued || (j->queue && j->queue->queued >= q->queued))
			continue;
		j->queue = q;
		j->queue_p95_ns = an_spread_percentile(&q->delays, 95);
		j->queue_oldest_ns = pool_queue_oldest_ns(q, an_observed_ns(p->shared));
	}
	j->by_queue = j->queue && (was_slow(p, j) || is_old(p, j));
}

static enum nt_status judge(struct pool *p, struct judged *j)
{
	uint64_t blocked = p->by_reason[POOL_STARVATION] + p->by_reason[POOL_COOPERATIVE];
	enum nt_status st;

	*j = (struct judged){ 0 };
	j->workers = an_mem_array(p->shared->alloc, an_calltree_count(p->shared->tree), 1);
	if (!j->workers)
		return NT_ENOMEM;
	judge_min(p, j);
	judge_queue(p, j);
	judge_windows(p, j);
	st = find_blockers(p, j);
	j->by_samples = ms(j->blocked_ns) >= an_limit(p->shared, AN_LIMIT_POOL_STARVATION) &&
			p->shared->runtime_major != RUNTIME_3;
	j->by_adjustments =
		(double)blocked >= an_limit(p->shared, AN_LIMIT_POOL_STARVATION_ADJUSTMENTS) &&
		p->injected >= MIN_INJECTED;
	return st;
}

/* --- findings --- */

static const char * and (struct an_report * out, const char *text)
{
	return *text ? an_report_printf(out, "%s; ", text) : "";
}

static const char *describe(const struct pool *p, const struct judged *j, struct an_report *out)
{
	uint64_t blocked = p->by_reason[POOL_STARVATION] + p->by_reason[POOL_COOPERATIVE];
	const char *text = "";

	if (j->by_samples)
		text = an_report_printf(out,
					"for %.1f s all workers, about %.0f, were waiting inside "
					"of work and none was idle",
					(double)j->blocked_ns / 1e9, j->blocked_workers);
	if (blocked)
		text = an_report_printf(out,
					"%s%" PRIu64 " changes of the number of threads because "
					"workers were blocked, up to %" PRIu32 " threads",
					and(out, text), blocked, p->workers_max);
	if (j->queue && j->queue->waiting)
		text = an_report_printf(
			out, "%s%" PRIu64 " items were still queued, for up to %.1f s",
			and(out, text), j->queue->waiting, (double)j->queue_oldest_ns / 1e9);
	for (size_t i = 0; i < j->blocker_count && i < 3; i++)
		text = an_report_printf(
			out, "%s%s%s (%" PRIu32 " thread%s)", text,
			i	? ", "
			: *text ? "; they wait in "
				: "they wait in ",
			j->blockers[i].method ? j->blockers[i].method->name : "code without a name",
			j->blockers[i].threads, j->blockers[i].threads == 1 ? "" : "s");
	return text;
}

/* Whether the method waits for a task to end: await would do. */
static bool waits_for_task(const struct an_shared *s, uint32_t node)
{
	for (; node != AN_NODE_NONE; node = an_calltree_node(s->tree, node)->parent) {
		const struct an_method *m = an_calltree_method(s->tree, node);

		if (m && an_frame_waits_for_task(m))
			return true;
		if (m && !an_frame_is_library(m))
			return false;
	}
	return false;
}

static void check(const struct pool *p, const struct judged *j, struct an_report *out)
{
	if (j->by_samples || j->by_adjustments) {
		bool task = j->blocker_count && waits_for_task(p->shared, j->blockers[0].node);

		an_add_finding(out, j->by_samples ? AN_CRITICAL : AN_WARNING,
			       "threadpool.starvation",
			       "The thread pool is starved: its threads are blocked, work waits",
			       describe(p, j, out),
			       task ? "Await these tasks instead of Wait() and Result: a blocked "
				      "thread cannot do the work it waits for."
				    : "Do not block in the pool's threads: await instead, or give "
				      "blocking work threads of its own (LongRunning).");
		return;
	}
	if (!j->by_queue)
		return;
	an_add_finding(out, AN_WARNING, "threadpool.queue-delay",
		       "Work waits long until a thread of the pool takes it",
		       an_report_printf(out,
					"%" PRIu64 " items started, 95 %% within %.1f ms; %" PRIu64
					" still queued at the end, the oldest for %.1f ms",
					j->queue->started, (double)j->queue_p95_ns / 1e6,
					j->queue->waiting, (double)j->queue_oldest_ns / 1e6),
		       "Either all cores are busy (see the CPU section), or the pool's threads "
		       "are blocked: record samples to tell which.");
}

/* --- the section --- */

static void add_evidence(const struct judged *j, struct an_value *v)
{
	struct an_value *e = an_add_object(v, "evidence");

	if (j->any_worker) {
		an_add_ms(e, "blocked_ms", j->blocked_ns);
		an_add_ms(e, "blocked_total_ms", j->blocked_all_ns);
	} else {
		an_add_null(e, "blocked_ms");
		an_add_null(e, "blocked_total_ms");
	}
	if (j->blocked_all_ns) {
		an_add_double(e, "blocked_workers", j->blocked_workers, 1);
		an_add_double(e, "blocked_percent", j->blocked_percent, 1);
	} else {
		an_add_null(e, "blocked_workers");
		an_add_null(e, "blocked_percent");
	}
	an_add_uint(e, "min_workers", j->min_workers);
	an_add_bool(e, "min_workers_assumed", !j->min_known);
	an_add_bool(e, "by_samples", j->by_samples);
	an_add_bool(e, "by_adjustments", j->by_adjustments);
	an_add_bool(e, "by_queue", j->by_queue);
}

static void add_adjustments(const struct pool *p, struct an_value *v)
{
	static const char *const names[POOL_REASONS] = {
		"warmup",	 "initializing", "random_move",
		"climbing_move", "change_point", "stabilizing",
		"starvation",	 "timed_out",	 "cooperative_blocking",
	};
	struct an_value *a, *reasons, *list;
	uint64_t n = p->adjustments < POOL_HISTORY ? p->adjustments : POOL_HISTORY;

	if (!p->recorded) {
		an_add_null(v, "adjustments");
		return;
	}
	a = an_add_object(v, "adjustments");
	an_add_uint(a, "count", p->adjustments);
	reasons = an_add_object(a, "by_reason");
	for (size_t i = 0; i < POOL_REASONS; i++)
		if (p->by_reason[i])
			an_add_uint(reasons, names[i], p->by_reason[i]);
	if (p->other_reasons)
		an_add_uint(reasons, "other", p->other_reasons);
	if (n) {
		an_add_uint(a, "workers_first", p->first.workers);
		an_add_uint(a, "workers_last",
			    p->history[(p->adjustments - 1) % POOL_HISTORY].workers);
		an_add_uint(a, "workers_max", p->workers_max);
	}
	list = an_add_array(a, "history");
	for (uint64_t i = p->adjustments - n; i < p->adjustments; i++) {
		const struct pool_adjustment *x = &p->history[i % POOL_HISTORY];
		struct an_value *row = an_add_object(list, NULL);

		an_add_double(row, "time_ms", (double)x->time_ns / 1e6, 3);
		an_add_uint(row, "workers", x->workers);
		an_add_text(row, "reason", x->reason < POOL_REASONS ? names[x->reason] : "other");
		an_add_double(row, "throughput", x->throughput, 3);
	}
	an_add_uint(a, "history_dropped", p->adjustments - n);
}

static void add_workers(const struct pool *p, struct an_value *v)
{
	struct an_value *list;

	if (p->have_active) {
		an_add_uint(v, "active_last", p->active_last);
		an_add_uint(v, "active_max", p->active_max);
	} else {
		an_add_null(v, "active_last");
		an_add_null(v, "active_max");
	}
	list = an_add_array(v, "settings");
	for (size_t i = 0; i < p->setting_count; i++) {
		const struct pool_setting *s = &p->settings[i];
		struct an_value *row = an_add_object(list, NULL);

		an_add_double(row, "time_ms", (double)s->time_ns / 1e6, 3);
		an_add_uint(row, "min_workers", s->min_workers);
		an_add_uint(row, "max_workers", s->max_workers);
		an_add_uint(row, "min_io", s->min_io);
		an_add_uint(row, "max_io", s->max_io);
	}
	if (p->settings_dropped)
		an_add_uint(v, "settings_dropped", p->settings_dropped);
}

static void add_queue(const struct pool *p, const struct judged *j, struct an_value *v)
{
	const struct pool_queue *q = j->queue;
	struct an_value *o;

	if (!q) {
		an_add_null(v, "queue");
		return;
	}
	o = an_add_object(v, "queue");
	an_add_text(o, "source", q == &p->queues[POOL_TASKS] ? "tasks" : "pool");
	an_add_uint(o, "queued", q->queued);
	an_add_uint(o, "started", q->started);
	if (q->started) {
		an_add_ms(o, "p95_ms", j->queue_p95_ns);
		an_add_ms(o, "max_ms", q->delays.max_ns);
	} else {
		an_add_null(o, "p95_ms");
		an_add_null(o, "max_ms");
	}
	an_add_uint(o, "waiting", q->waiting);
	if (q->waiting)
		an_add_ms(o, "oldest_ms", j->queue_oldest_ns);
	else
		an_add_null(o, "oldest_ms");
	an_add_uint(o, "not_followed", q->evicted);
}

static void add_blockers(const struct pool *p, const struct judged *j, struct an_value *v)
{
	size_t top = p->shared->options.top;
	struct an_value *list;

	if (!j->any_worker) {
		an_add_null(v, "blockers");
		return;
	}
	if (!top || top > MAX_ROWS)
		top = MAX_ROWS;
	list = an_add_array(v, "blockers");
	for (size_t i = 0; i < j->blocker_count && i < top; i++) {
		const struct blocker *b = &j->blockers[i];
		struct an_value *row = an_add_object(list, NULL);

		an_add_method(row, "method", b->method);
		an_add_method(row, "call", an_stack_call(&p->stacks, b->node));
		an_add_uint(row, "threads", b->threads);
		an_add_uint(row, "samples", b->samples);
		an_stack_add(&p->stacks, b->node, MAX_FRAMES, row, "frames");
	}
	if (p->samples.dropped)
		an_add_uint(v, "samples_not_told_apart", p->samples.dropped);
}

enum nt_status pool_report(struct pool *p, struct an_report *out)
{
	struct an_value *v = an_add_object(an_report_root(out), "threadpool");
	struct judged j;
	enum nt_status st = an_stacks_init(&p->stacks, p->shared);

	if (st < 0)
		return st;
	st = judge(p, &j);
	if (st == NT_OK) {
		if (j.any_worker || p->recorded) {
			an_add_bool(v, "starvation", j.by_samples || j.by_adjustments);
			add_evidence(&j, v);
		} else {
			an_add_null(v, "starvation");
			an_add_null(v, "evidence");
		}
		add_blockers(p, &j, v);
		add_adjustments(p, v);
		add_workers(p, v);
		add_queue(p, &j, v);
		check(p, &j, out);
	}
	an_mem_free(p->shared->alloc, j.workers);
	an_mem_free(p->shared->alloc, j.blockers);
	return st;
}
