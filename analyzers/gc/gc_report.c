/* SPDX-License-Identifier: MIT */

/* The GC section of the report. */

#include <stdlib.h>

#include "analyzers/gc/gc_internal.h"
#include "analyzers/grow.h"

enum {
	KEYWORD_GC = 0x1,
	STARTUP_CONCURRENT = 1,
	STARTUP_SERVER = 0x1000,
	FIRST_WITH_REGIONS = 7, /* version of the runtime */
	MAX_REGION_BYTES = 64 << 20,
};

/* --- pauses --- */

static void add_histogram(const struct gc_pauses *p, struct an_value *v)
{
	struct an_value *list = an_add_array(v, "pause_histogram");
	double from = 0;

	for (size_t i = 0; i < GC_BUCKETS; i++) {
		struct an_value *row;

		if (p->bucket[i]) {
			row = an_add_object(list, NULL);
			an_add_double(row, "from_ms", from, 4);
			if (i + 1 < GC_BUCKETS)
				an_add_double(row, "below_ms", gc_pauses_bucket_ms(i), 4);
			else
				an_add_null(row, "below_ms");
			an_add_uint(row, "count", p->bucket[i]);
		}
		from = gc_pauses_bucket_ms(i);
	}
}

static void add_mutator(const struct gc *g, struct an_value *v)
{
	int64_t observed = an_observed_ns(g->shared);
	struct an_value *list = an_add_array(v, "mutator_utilisation");

	for (size_t i = 0; i < GC_WINDOWS; i++) {
		struct an_value *row = an_add_object(list, NULL);

		an_add_uint(row, "window_ms", gc_window_ms[i]);
		if (observed >= (int64_t)gc_window_ms[i] * 1000000)
			an_add_double(row, "minimum_percent", gc_mutator_percent(&g->mutator, i),
				      2);
		else
			an_add_null(row, "minimum_percent");
	}
}

static void add_pauses(struct gc *g, struct an_value *v)
{
	bool any = g->pauses.count > 0;
	int64_t observed = an_observed_ns(g->shared);

	an_add_uint(v, "pauses", g->pauses.count);
	an_add_double(v, "pause_total_ms", gc_ms(g->pauses.total_ns), 4);
	gc_add_known_ms(v, "pause_max_ms", any, gc_ms(g->pauses.max_ns));
	gc_add_known_ms(v, "pause_p50_ms", any, gc_ms(gc_pauses_percentile(&g->pauses, 50)));
	gc_add_known_ms(v, "pause_p95_ms", any, gc_ms(gc_pauses_percentile(&g->pauses, 95)));
	gc_add_known_ms(v, "pause_p99_ms", any, gc_ms(gc_pauses_percentile(&g->pauses, 99)));
	if (observed > 0)
		an_add_double(v, "pause_percent",
			      100.0 * (double)g->pauses.total_ns / (double)observed, 3);
	else
		an_add_null(v, "pause_percent");
	add_histogram(&g->pauses, v);
	add_mutator(g, v);
}

static void add_slow(const struct gc *g, struct an_value *v)
{
	struct an_value *list = an_add_array(v, "slow_suspensions");

	for (size_t i = 0; i < g->slow_count; i++) {
		const struct gc_slow_suspension *s = &g->slow[i];
		struct an_value *row;

		if (gc_ms(s->ns) < an_limit(g->shared, AN_LIMIT_GC_SUSPENSION))
			break;
		row = an_add_object(list, NULL);
		an_add_double(row, "start_ms", (double)s->begin_ns / 1e6, 4);
		an_add_double(row, "suspend_ms", gc_ms(s->ns), 4);
		an_add_uint(row, "collection", s->number);
		an_add_uint(row, "thread_id", s->thread);
		an_add_known(row, "still_running_thread", s->runner != UINT64_MAX, s->runner);
	}
}

/* The sampler stops all threads as well, and the debugger: no pauses of the collector. */
static void add_others(const struct gc *g, struct an_value *v)
{
	static const char *const names[GC_SUSPEND_REASONS] = {
		"Other",    "GC",     "AppDomainShutdown", "CodePitching", "Shutdown",
		"Debugger", "GCPrep", "DebuggerSweep",	   "Unknown",
	};
	struct an_value *list;
	uint64_t count = 0, ns = 0;

	for (size_t i = 0; i < GC_SUSPEND_REASONS; i++) {
		count += g->other[i].count;
		ns += g->other[i].ns;
	}
	an_add_uint(v, "other_suspensions", count);
	an_add_double(v, "other_suspensions_ms", gc_ms(ns), 4);
	list = an_add_array(v, "other_suspensions_by_reason");
	for (size_t i = 0; i < GC_SUSPEND_REASONS; i++) {
		struct an_value *row;

		if (!g->other[i].count)
			continue;
		row = an_add_object(list, NULL);
		an_add_text(row, "reason", names[i]);
		an_add_uint(row, "count", g->other[i].count);
		an_add_double(row, "total_ms", gc_ms(g->other[i].ns), 4);
		an_add_double(row, "max_ms", gc_ms(g->other[i].max_ns), 4);
	}
}

/* --- memory --- */

static void add_allocation(const struct gc *g, struct an_value *v)
{
	int64_t observed = an_observed_ns(g->shared);
	bool by_ticks = g->ticks && !g->sampled;
	double rate = gc_allocation_rate(g);

	an_add_known(v, "allocated_bytes", by_ticks, g->allocated_bytes);
	if (rate >= 0)
		an_add_double(v, "allocation_rate_bytes_per_s", rate, 0);
	else
		an_add_null(v, "allocation_rate_bytes_per_s");
	if (rate >= 0)
		an_add_text(v, "allocation_source", by_ticks ? "ticks" : "heap-sizes");
	else
		an_add_null(v, "allocation_source");
	an_rate_report(by_ticks ? &g->rate : &g->grown, observed, v, "allocation_over_time");
	an_add_known(v, "promoted_bytes", g->have_promoted, g->promoted_bytes);
}

static void add_generations(const struct gc *g, struct an_value *v)
{
	struct an_value *list;
	bool any = false;

	for (size_t i = 0; i < GC_SIZES; i++)
		any |= g->generations[i].known;
	if (!any) {
		an_add_null(v, "heap");
		return;
	}
	list = an_add_array(v, "heap");
	for (size_t i = 0; i < GC_SIZES; i++) {
		const struct gc_generation_sum *s = &g->generations[i];
		struct an_value *row;

		if (!s->known)
			continue;
		row = an_add_object(list, NULL);
		an_add_text(row, "generation", gc_size_name(i));
		an_add_uint(row, "bytes", s->after);
		an_add_uint(row, "max_bytes", s->after_max);
		an_add_uint(row, "free_bytes", s->free_after);
		if (s->after)
			an_add_double(row, "free_percent",
				      100.0 * (double)s->free_after / (double)s->after, 2);
		else
			an_add_null(row, "free_percent");
		an_add_uint(row, "collected", s->collected);
		if (s->live_before)
			an_add_double(row, "survived_percent",
				      100.0 * (double)s->survived / (double)s->live_before, 2);
		else
			an_add_null(row, "survived_percent");
		an_add_known(row, "promoted_bytes", g->have_promoted, s->promoted);
	}
}

static void add_roots(const struct gc *g, struct an_value *v)
{
	struct an_value *list;

	if (!g->have_roots) {
		an_add_null(v, "marking");
		return;
	}
	list = an_add_array(v, "marking");
	for (size_t i = 0; i < GC_ROOTS; i++) {
		struct an_value *row;

		if (!g->root_ns[i] && !g->root_bytes[i])
			continue;
		row = an_add_object(list, NULL);
		an_add_text(row, "roots", gc_roots_name((uint32_t)i));
		an_add_double(row, "time_ms", gc_ms(g->root_ns[i]), 4);
		an_add_uint(row, "bytes", g->root_bytes[i]);
	}
}

static int compare_pinned(const void *a, const void *b)
{
	const struct gc_pinned *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (x->name > y->name) - (x->name < y->name);
}

static void add_pinned(struct gc *g, struct an_value *parent)
{
	size_t top = g->shared->options.top;
	struct an_value *v, *list;

	if (!g->pinned_collections) {
		an_add_null(parent, "pinned");
		return;
	}
	v = an_add_object(parent, "pinned");
	an_add_double(v, "average", (double)g->pinned / (double)g->pinned_collections, 2);
	an_add_uint(v, "max", g->pinned_max);
	if (!g->pinned_recorded) {
		an_add_null(v, "types");
		return;
	}
	if (g->pinned_count)
		qsort(g->pinned_type, g->pinned_count, sizeof(*g->pinned_type), compare_pinned);
	list = an_add_array(v, "types");
	for (size_t i = 0; i < g->pinned_count && (!top || i < top); i++) {
		struct an_value *row = an_add_object(list, NULL);

		an_add_text(row, "type", an_textset_get(&g->pinned_names, g->pinned_type[i].name));
		an_add_uint(row, "count", g->pinned_type[i].count);
		an_add_uint(row, "bytes", g->pinned_type[i].bytes);
	}
}

static void add_finalizers(const struct gc *g, struct an_value *parent)
{
	const struct gc_finalizers *f = &g->finalizers;
	struct an_value *v;

	if (!f->recorded && !g->have_promoted) {
		an_add_null(parent, "finalizers");
		return;
	}
	v = an_add_object(parent, "finalizers");
	an_add_known(v, "survivors", g->have_promoted, f->survivors);
	an_add_known(v, "survivors_max", g->have_promoted, f->survivors_max);
	an_add_known(v, "finalized", f->recorded, f->count);
	an_add_known(v, "runs", f->recorded, f->runs);
	gc_add_known_ms(v, "time_ms", f->recorded, gc_ms(f->ns));
	gc_add_known_ms(v, "max_ms", f->recorded && f->runs, gc_ms(f->max_ns));
	gc_add_known_ms(v, "running_at_end_ms", f->since_ns >= 0,
			gc_ms(an_elapsed(f->since_ns, an_observed_ns(g->shared))));
}

/* --- what collector it is --- */

static void add_mode(const struct gc *g, struct an_value *v)
{
	const struct an_runtime *r = &g->shared->runtime;
	bool server = r->startup_flags & STARTUP_SERVER || g->joins || g->heap_count > 1;
	unsigned major = g->shared->runtime_major;

	if (server || r->known)
		an_add_text(v, "mode", server ? "server" : "workstation");
	else
		an_add_null(v, "mode");
	if (g->background || r->startup_flags & STARTUP_CONCURRENT)
		an_add_bool(v, "concurrent", true);
	else
		an_add_null(v, "concurrent"); /* .NET Core 3.1 does not tell */
	an_add_known(v, "heap_count", g->heap_count, g->heap_count);
	if (g->smallest_segment)
		an_add_text(v, "memory",
			    g->smallest_segment <= MAX_REGION_BYTES ? "regions" : "segments");
	else if (major)
		an_add_text(v, "memory", major >= FIRST_WITH_REGIONS ? "regions" : "segments");
	else
		an_add_null(v, "memory");
}

static void add_classes(const struct gc *g, struct an_value *v)
{
	struct an_value *list = an_add_array(v, "by_generation");

	for (uint32_t gen = 0; gen < GC_GENERATIONS; gen++) {
		for (uint32_t type = 0; type < GC_TYPES; type++) {
			const struct gc_class_sum *s = &g->sums[gen][type];
			struct an_value *row;

			if (!s->count)
				continue;
			row = an_add_object(list, NULL);
			an_add_uint(row, "generation", gen);
			an_add_text(row, "type", gc_type_name(type));
			an_add_uint(row, "count", s->count);
			an_add_double(row, "pause_total_ms", gc_ms(s->pause_ns), 4);
			an_add_double(row, "pause_max_ms", gc_ms(s->pause_max_ns), 4);
		}
	}
}

/* --- who called GC.Collect --- */

static int compare_callers(const void *a, const void *b)
{
	const struct gc_caller_row *x = a, *y = b;

	return (x->count < y->count) - (x->count > y->count);
}

/* Callers with their counts, most first, into rows (as many as there are stacks). */
static size_t sum_callers(const struct gc *g, struct gc_caller_row *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < g->caller_count; i++) {
		const struct an_method *m = gc_caller_of(g->shared->tree, g->caller[i].node);
		size_t k = 0;

		while (k < n && rows[k].method != m)
			k++;
		if (k == n)
			rows[n++] = (struct gc_caller_row){ .method = m };
		rows[k].count += g->caller[i].count;
	}
	if (n)
		qsort(rows, n, sizeof(*rows), compare_callers);
	return n;
}

static void add_callers(const struct gc *g, const struct gc_caller_row *rows, size_t n,
			struct an_value *v)
{
	struct an_value *list = an_add_array(v, "induced_by");
	size_t top = g->shared->options.top;

	for (size_t i = 0; i < n && (!top || i < top); i++) {
		struct an_value *row = an_add_object(list, NULL);

		if (rows[i].method)
			an_add_text(row, "method", rows[i].method->name);
		else
			an_add_null(row, "method");
		an_add_uint(row, "count", rows[i].count);
	}
}

/* --- both --- */

static void add_nothing(struct an_value *v, struct an_report *out)
{
	static const char *const names[] = {
		"count",
		"gen0",
		"gen1",
		"gen2",
		"background",
		"induced",
		"mode",
		"concurrent",
		"heap_count",
		"memory",
		"pauses",
		"pause_total_ms",
		"pause_max_ms",
		"pause_p50_ms",
		"pause_p95_ms",
		"pause_p99_ms",
		"pause_percent",
		"pause_histogram",
		"mutator_utilisation",
		"allocated_bytes",
		"allocation_rate_bytes_per_s",
		"allocation_source",
		"allocation_over_time",
		"promoted_bytes",
		"heap",
		"committed_bytes",
		"committed_max_bytes",
		"marking",
		"pinned",
		"finalizers",
		"by_generation",
		"induced_by",
		"slow_suspensions",
		"other_suspensions",
		"other_suspensions_ms",
		"collections",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		an_add_null(v, names[i]);
	an_add_finding(out, AN_INFO, "gc.not-recorded", "No garbage collector events were recorded",
		       "the trace has none: either they were not enabled, or nothing happened",
		       "To see collections and pauses, record with the gc profile.");
}

static void add_section(struct gc *g, const struct gc_caller_row *rows, size_t n,
			struct an_value *v)
{
	an_add_uint(v, "count", g->started);
	an_add_uint(v, "gen0", g->by_generation[0]);
	an_add_uint(v, "gen1", g->by_generation[1]);
	an_add_uint(v, "gen2", g->by_generation[2]);
	an_add_uint(v, "background", g->background);
	an_add_uint(v, "induced", g->induced);
	add_mode(g, v);
	add_pauses(g, v);
	add_allocation(g, v);
	add_generations(g, v);
	an_add_known(v, "committed_bytes", g->committed_bytes, g->committed_bytes);
	an_add_known(v, "committed_max_bytes", g->committed_bytes, g->committed_max_bytes);
	add_roots(g, v);
	add_pinned(g, v);
	add_finalizers(g, v);
	add_classes(g, v);
	add_callers(g, rows, n, v);
	add_slow(g, v);
	an_add_uint(v, "incomplete_at_start", g->incomplete_start);
	an_add_uint(v, "incomplete_at_end", g->incomplete_end);
	an_add_uint(v, "pauses_dropped", g->dropped_pauses);
	add_others(g, v);
	gc_add_collections(g, v);
}

enum nt_status gc_report(struct gc *g, struct an_report *out)
{
	struct an_value *v = an_add_object(an_report_root(out), "gc");
	struct gc_caller_row *rows;
	size_t n;

	if (!g->recorded &&
	    !an_was_enabled(g->shared, "Microsoft-Windows-DotNETRuntime", KEYWORD_GC, 4)) {
		add_nothing(v, out);
		return NT_OK;
	}
	rows = an_mem_array(g->shared->alloc, g->caller_count, sizeof(*rows));
	if (!rows)
		return NT_ENOMEM;
	n = sum_callers(g, rows);
	gc_findings(g, rows, n, out);
	add_section(g, rows, n, v);
	an_mem_free(g->shared->alloc, rows);
	return NT_OK;
}
