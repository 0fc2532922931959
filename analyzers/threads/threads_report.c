/* SPDX-License-Identifier: MIT */

/*
 * Finds threads that were started and have waited at one place ever since, many alike, and writes
 * the section "threads".  The thresholds are in docs/findings.md.
 */

#include <inttypes.h>
#include <stdlib.h>

#include "analyzers/grow.h"
#include "analyzers/spread.h"
#include "analyzers/stacks.h"
#include "analyzers/threads/threads_internal.h"

#define MS	    UINT64_C(1000000)
#define ALIVE_NS    (500 * MS) /* sampled so short before the end */
#define SETTLE_NS   (1000 * MS) /* a thread may take so long to get to where it waits */
#define APPEAR_NS   (100 * MS) /* first sampled so long after the first sample of all: new */
#define MIN_RATE_NS (1000 * MS) /* watched for less: no rate */

enum {
	MIN_ALIKE = 5, /* threads of a group that is shown */
	MAX_ROWS = 1000,
	MAX_FRAMES = 24,
	MAX_IDS = 8,
};

/* Threads that began in one method and wait in one method. */
struct group {
	const struct an_method *start, *site;
	uint32_t node; /* the stack of the first of them */
	uint32_t creator; /* a stack that started one of them */
	uint32_t threads, created, ended;
	uint64_t oldest_ns; /* at that place */
	uint64_t ids[MAX_IDS];
};

struct groups {
	struct group *rows;
	size_t count, cap;
	size_t alive; /* threads that were sampled at the end */
};

static bool is_alive(const struct threads *t, const struct an_last_sample *s,
		     const struct an_thread_id *id)
{
	return an_ns_between(s->last_ns, t->samples.last_ns) <= ALIVE_NS && !(id && id->ended);
}

/* The pool's and the runtime's own threads wait because there is nothing to do. */
static bool is_housekeeping(const struct threads *t, const struct an_last_sample *s,
			    const struct an_thread_id *id)
{
	return (id && id->flags & (AN_THREAD_GC | AN_THREAD_FINALIZER | AN_THREAD_POOL)) ||
	       an_stack_pool(&t->stacks, s->node);
}

static bool is_new(const struct threads *t, const struct an_last_sample *s,
		   const struct an_thread_id *id, int64_t first_ns)
{
	if (t->recorded)
		return id && id->created;
	return an_ns_between(first_ns, s->first_ns) >= APPEAR_NS;
}

/* It waits, and has done so from (nearly) the moment it was first seen. */
static bool is_parked(const struct threads *t, const struct an_last_sample *s)
{
	return an_ns_between(s->first_ns, s->since_ns) <= SETTLE_NS &&
	       (s->waits_by_event || an_stack_waits(&t->stacks, s->node));
}

static struct group *find_group(const struct threads *t, struct groups *g,
				const struct an_method *start, const struct an_method *site)
{
	struct group *rows;

	for (size_t i = 0; i < g->count; i++)
		if (g->rows[i].start == start && g->rows[i].site == site)
			return &g->rows[i];
	if (g->count >= MAX_ROWS)
		return NULL;
	rows = an_mem_grow(t->shared->alloc, g->rows, &g->cap, g->count + 1, sizeof(*rows));
	if (!rows)
		return NULL;
	g->rows = rows;
	rows[g->count] = (struct group){ .start = start, .site = site };
	return &rows[g->count++];
}

static void join(const struct threads *t, struct group *g, const struct an_last_sample *s,
		 const struct an_thread_id *id, bool created)
{
	uint64_t ns = an_ns_between(s->since_ns, t->samples.last_ns);

	if (!g->threads)
		g->node = s->node;
	if (g->threads < MAX_IDS)
		g->ids[g->threads] = s->id;
	g->threads++;
	g->created += created;
	if (ns > g->oldest_ns)
		g->oldest_ns = ns;
	if (id && id->creator != AN_NODE_NONE && g->creator == AN_NODE_NONE)
		g->creator = id->creator;
}

/* Threads that ended, or do something: alike ones may well be of use. */
static void count_ended(const struct threads *t, struct groups *g)
{
	for (size_t i = 0; i < t->samples.count; i++) {
		const struct an_last_sample *s = &t->samples.rows[i];
		const struct an_thread_id *id = an_thread_by_os(&t->ids, s->id);
		const struct an_method *start;

		if (is_alive(t, s, id))
			continue;
		start = an_stack_start(&t->stacks, s->node);
		for (size_t k = 0; start && k < g->count; k++)
			g->rows[k].ended += g->rows[k].start == start;
	}
}

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->threads != y->threads)
		return x->threads < y->threads ? 1 : -1;
	return (x->node > y->node) - (x->node < y->node);
}

static enum nt_status find_groups(const struct threads *t, struct groups *g)
{
	int64_t first_ns = t->samples.count ? t->samples.rows[0].first_ns : 0;

	*g = (struct groups){ 0 };
	for (size_t i = 0; i < t->samples.count; i++)
		if (t->samples.rows[i].first_ns < first_ns)
			first_ns = t->samples.rows[i].first_ns;
	for (size_t i = 0; i < t->samples.count; i++) {
		const struct an_last_sample *s = &t->samples.rows[i];
		const struct an_thread_id *id = an_thread_by_os(&t->ids, s->id);
		const struct an_method *start;
		struct group *row;

		if (!is_alive(t, s, id))
			continue;
		g->alive++;
		start = an_stack_start(&t->stacks, s->node);
		if (!start || is_housekeeping(t, s, id) || !is_parked(t, s))
			continue;
		row = find_group(t, g, start, an_stack_site(&t->stacks, s->node));
		if (!row && g->count < MAX_ROWS)
			return NT_ENOMEM;
		if (row)
			join(t, row, s, id, is_new(t, s, id, first_ns));
	}
	count_ended(t, g);
	if (g->count)
		qsort(g->rows, g->count, sizeof(*g->rows), compare_groups);
	return NT_OK;
}

/* Such threads are started and not needed: more come than go. */
static bool is_leak(const struct group *g)
{
	return g->created > 2 * (uint64_t)g->ended;
}

/* --- the section --- */

static void add_group(const struct threads *t, const struct group *g, struct an_value *list)
{
	struct an_value *v = an_add_object(list, NULL), *ids;

	an_add_method(v, "method", g->start);
	an_add_method(v, "waits_in", g->site);
	an_add_method(v, "call", an_stack_call(&t->stacks, g->node));
	an_add_uint(v, "threads", g->threads);
	an_add_uint(v, "created_in_session", g->created);
	an_add_uint(v, "ended", g->ended);
	an_add_ms(v, "oldest_ms", g->oldest_ns);
	an_add_method(v, "started_by", an_stack_site(&t->stacks, g->creator));
	ids = an_add_array(v, "thread_ids");
	for (uint32_t i = 0; i < g->threads && i < MAX_IDS; i++)
		an_add_uint(ids, NULL, g->ids[i]);
	an_stack_add(&t->stacks, g->node, MAX_FRAMES, v, "frames");
}

static void add_lists(const struct threads *t, const struct groups *g, struct an_value *v)
{
	size_t top = t->shared->options.top;
	struct an_value *leaked, *parked;

	if (!t->samples.count) {
		an_add_null(v, "leaked");
		an_add_null(v, "parked");
		return;
	}
	if (!top || top > MAX_ROWS)
		top = MAX_ROWS;
	leaked = an_add_array(v, "leaked");
	parked = an_add_array(v, "parked");
	for (size_t i = 0; i < g->count; i++) {
		struct an_value *list = is_leak(&g->rows[i]) ? leaked : parked;

		if (g->rows[i].threads >= MIN_ALIKE && list && list->count < top)
			add_group(t, &g->rows[i], list);
	}
}

static void add_section(const struct threads *t, const struct groups *g, struct an_value *v)
{
	int64_t observed = an_observed_ns(t->shared);
	double net = (double)t->ids.created - (double)t->ids.ended;

	an_add_known(v, "created", t->recorded, t->ids.created);
	an_add_known(v, "ended", t->recorded, t->ids.ended);
	an_add_known(v, "alive_at_end", t->ids.at_end > 0, t->ids.at_end);
	an_add_known(v, "sampled_at_end", t->samples.count, g->alive);
	if (t->recorded && observed >= (int64_t)MIN_RATE_NS)
		an_add_double(v, "growth_per_minute", net * 60e9 / (double)observed, 1);
	else
		an_add_null(v, "growth_per_minute");
	add_lists(t, g, v);
	if (t->samples.dropped || t->ids.dropped)
		an_add_uint(v, "not_followed", t->samples.dropped + t->ids.dropped);
}

/* --- findings --- */

static size_t check_leaks(const struct threads *t, const struct groups *g, struct an_report *out)
{
	size_t found = 0;

	for (size_t i = 0; i < g->count; i++) {
		const struct group *x = &g->rows[i];
		const struct an_method *by = an_stack_site(&t->stacks, x->creator);
		const char *evidence;

		if (x->threads < an_limit(t->shared, AN_LIMIT_THREADS_LEAK) ||
		    x->created < an_limit(t->shared, AN_LIMIT_THREADS_LEAK_CREATED) || !is_leak(x))
			continue;
		evidence = an_report_printf(out,
					    "%" PRIu32 " of them were started during the "
					    "recording, %" PRIu32 " alike ended; the oldest wait "
					    "lasts %.1f s",
					    x->created, x->ended, (double)x->oldest_ns / 1e9);
		if (by)
			evidence = an_report_printf(out, "%s; started by %s", evidence, by->name);
		an_add_finding(
			out, AN_WARNING, "threads.leak",
			an_report_printf(out,
					 "Threads pile up: %" PRIu32
					 " were started and wait in %s ever since",
					 x->threads, x->site->name),
			evidence,
			"Each holds a stack, and what it refers to. End them when their work "
			"is done, or use the thread pool.");
		found++;
	}
	return found;
}

static void check_growth(const struct threads *t, struct an_report *out)
{
	size_t n = 0;

	for (size_t i = 0; i < t->ids.count; i++) {
		const struct an_thread_id *id = &t->ids.rows[i];

		n += id->created && !id->ended && !(id->flags & AN_THREAD_POOL);
	}
	if ((double)n < an_limit(t->shared, AN_LIMIT_THREADS_GROWTH))
		return;
	an_add_finding(
		out, AN_WARNING, "threads.growth",
		an_report_printf(out, "%zu threads were started and none of them has ended", n),
		an_report_printf(out, "%" PRIu64 " threads created, %" PRIu64 " ended",
				 t->ids.created, t->ids.ended),
		"Threads of the pool do not count here. See who starts them; samples would "
		"say what they do.");
}

static void check_churn(const struct threads *t, struct an_report *out)
{
	double seconds = (double)an_observed_ns(t->shared) / 1e9;
	double rate = seconds > 0 ? (double)t->ids.created / seconds : 0;

	if ((double)t->ids.created < an_limit(t->shared, AN_LIMIT_THREADS_CHURN_CREATED) ||
	    rate < an_limit(t->shared, AN_LIMIT_THREADS_CHURN) ||
	    100.0 * (double)t->ids.ended <
		    (double)t->ids.created * an_limit(t->shared, AN_LIMIT_THREADS_CHURN_ENDED))
		return;
	an_add_finding(
		out, AN_WARNING, "threads.churn",
		an_report_printf(out, "Threads live shortly: %.0f are started each second", rate),
		an_report_printf(out, "%" PRIu64 " threads created, %" PRIu64 " ended",
				 t->ids.created, t->ids.ended),
		"Starting a thread costs much more than queueing work: use the thread "
		"pool.");
}

enum nt_status threads_report(struct threads *t, struct an_report *out)
{
	struct an_value *v = an_add_object(an_report_root(out), "threads");
	struct groups g;
	enum nt_status st = an_stacks_init(&t->stacks, t->shared);

	if (st < 0)
		return st;
	st = find_groups(t, &g);
	if (st == NT_OK) {
		add_section(t, &g, v);
		if (!check_leaks(t, &g, out))
			check_growth(t, out);
		check_churn(t, out);
	}
	an_mem_free(t->shared->alloc, g.rows);
	return st;
}
