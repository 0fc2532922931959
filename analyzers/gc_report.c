/* SPDX-License-Identifier: MIT */

/* The GC section of the report, and its findings. */

#include <inttypes.h>
#include <stdlib.h>

#include "analyzers/gc_internal.h"
#include "analyzers/grow.h"
#include "analyzers/wait_frames.h"

enum { MIN_OBSERVED_MS = 500 };

static const char *reason_name(uint32_t reason)
{
	static const char *const names[] = {
		"AllocSmall",	     "Induced",
		"LowMemory",	     "Empty",
		"AllocLarge",	     "OutOfSpaceSOH",
		"OutOfSpaceLOH",     "InducedNotForced",
		"Internal",	     "InducedLowMemory",
		"InducedCompacting", "LowMemoryHost",
		"PMFullGC",	     "LowMemoryHostBlocking",
	};

	return reason < sizeof(names) / sizeof(names[0]) ? names[reason] : "Unknown";
}

static const char *type_name(uint32_t type)
{
	static const char *const names[] = { "blocking", "background", "foreground" };

	return type < GC_TYPES ? names[type] : "unknown";
}

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

/* --- the section --- */

static void add_known(struct an_value *v, const char *name, bool known, uint64_t n)
{
	if (known)
		an_add_uint(v, name, n);
	else
		an_add_null(v, name);
}

static void add_known_ms(struct an_value *v, const char *name, bool known, double n)
{
	if (known)
		an_add_double(v, name, n, 4);
	else
		an_add_null(v, name);
}

static void add_pauses(struct gc *g, struct an_value *v)
{
	bool any = g->pauses.count > 0;
	int64_t observed = an_observed_ns(g->shared);

	an_add_uint(v, "pauses", g->pauses.count);
	an_add_double(v, "pause_total_ms", ms(g->pauses.total_ns), 4);
	add_known_ms(v, "pause_max_ms", any, ms(g->pauses.max_ns));
	add_known_ms(v, "pause_p50_ms", any, ms(gc_pauses_percentile(&g->pauses, 50)));
	add_known_ms(v, "pause_p95_ms", any, ms(gc_pauses_percentile(&g->pauses, 95)));
	add_known_ms(v, "pause_p99_ms", any, ms(gc_pauses_percentile(&g->pauses, 99)));
	if (observed > 0)
		an_add_double(v, "pause_percent",
			      100.0 * (double)g->pauses.total_ns / (double)observed, 3);
	else
		an_add_null(v, "pause_percent");
}

/* While allocations are sampled (AllocationSampled), ticks are suppressed and tell nothing. */
static bool knows_allocation(const struct gc *g)
{
	return g->ticks && !g->sampled;
}

static void add_allocation(const struct gc *g, struct an_value *v)
{
	int64_t observed = an_observed_ns(g->shared);

	add_known(v, "allocated_bytes", knows_allocation(g), g->allocated_bytes);
	if (knows_allocation(g) && observed > 0)
		an_add_double(v, "allocation_rate_bytes_per_s",
			      (double)g->allocated_bytes * 1e9 / (double)observed, 0);
	else
		an_add_null(v, "allocation_rate_bytes_per_s");
	add_known(v, "promoted_bytes", g->have_promoted, g->promoted_bytes);
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
			an_add_text(row, "type", type_name(type));
			an_add_uint(row, "count", s->count);
			an_add_double(row, "pause_total_ms", ms(s->pause_ns), 4);
			an_add_double(row, "pause_max_ms", ms(s->pause_max_ns), 4);
		}
	}
}

static void add_collection(struct an_value *list, const struct gc_collection *c)
{
	struct an_value *v = an_add_object(list, NULL);

	an_add_uint(v, "number", c->number);
	an_add_uint(v, "generation", c->generation);
	an_add_text(v, "reason", reason_name(c->reason));
	an_add_text(v, "type", type_name(c->type));
	an_add_double(v, "start_ms", (double)c->start_ns / 1e6, 4);
	add_known_ms(v, "duration_ms", c->ended, (double)(c->end_ns - c->start_ns) / 1e6);
	add_known_ms(v, "suspend_ms", c->pauses, ms(c->suspend_ns));
	add_known_ms(v, "pause_ms", c->pauses, ms(c->pause_ns));
	add_known(v, "promoted_bytes", c->have_stats, c->promoted_bytes);
	add_known(v, "heap_before_bytes", c->have_before, c->heap_before_bytes);
	add_known(v, "heap_after_bytes", c->have_stats, c->heap_after_bytes);
	add_known(v, "pinned_objects", c->have_stats, c->pinned_objects);
}

static int compare_pause(const void *a, const void *b)
{
	const struct gc_collection *x = a, *y = b;

	if (x->pause_ns != y->pause_ns)
		return x->pause_ns < y->pause_ns ? 1 : -1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int compare_start(const void *a, const void *b)
{
	const struct gc_collection *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns > y->start_ns ? 1 : -1;
	return (x->number > y->number) - (x->number < y->number);
}

/* Those with the longest pauses, in the order of time. */
static void add_collections(struct gc *g, struct an_value *v)
{
	struct an_value *list = an_add_array(v, "collections");
	size_t n = g->kept_count, top = g->shared->options.top;

	if (n && top && top < n) {
		qsort(g->kept, n, sizeof(*g->kept), compare_pause);
		n = top;
	}
	if (n)
		qsort(g->kept, n, sizeof(*g->kept), compare_start);
	for (size_t i = 0; i < n; i++)
		add_collection(list, &g->kept[i]);
	an_add_uint(v, "collections_not_shown", g->not_kept + g->kept_count - n);
}

/* --- who called GC.Collect --- */

struct caller_row {
	const struct an_method *method; /* NULL: no stack, or no names */
	uint64_t count;
};

/* The innermost frame outside the base library, or else the first outside System.GC. */
static const struct an_method *caller_of(const struct an_calltree *tree, uint32_t node)
{
	const struct an_method *fallback = NULL;

	while (node != AN_NODE_NONE) {
		const struct an_method *m = an_calltree_method(tree, node);

		if (m && !an_frame_is_library(m))
			return m;
		if (m && !fallback && strncmp(m->raw, "System.GC.", 10) != 0)
			fallback = m;
		node = an_calltree_node(tree, node)->parent;
	}
	return fallback;
}

static int compare_callers(const void *a, const void *b)
{
	const struct caller_row *x = a, *y = b;

	return (x->count < y->count) - (x->count > y->count);
}

/* Callers with their counts, most first, into rows (as many as there are stacks). */
static size_t sum_callers(const struct gc *g, struct caller_row *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < g->caller_count; i++) {
		const struct an_method *m = caller_of(g->shared->tree, g->caller[i].node);
		size_t k = 0;

		while (k < n && rows[k].method != m)
			k++;
		if (k == n)
			rows[n++] = (struct caller_row){ .method = m };
		rows[k].count += g->caller[i].count;
	}
	if (n)
		qsort(rows, n, sizeof(*rows), compare_callers);
	return n;
}

static void add_callers(const struct gc *g, const struct caller_row *rows, size_t n,
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

/* --- findings --- */

static void check_pauses(const struct gc *g, struct an_report *out)
{
	double longest = ms(g->pauses.max_ns);

	if (!g->pauses.count || longest < an_limit(g->shared, AN_LIMIT_GC_LONG_PAUSE))
		return;
	an_add_finding(out,
		       longest >= an_limit(g->shared, AN_LIMIT_GC_LONG_PAUSE_CRITICAL) ? AN_CRITICAL
										       : AN_WARNING,
		       "gc.long-pause",
		       an_report_printf(out, "A garbage collection stopped the program for %.0f ms",
					longest),
		       an_report_printf(out, "%" PRIu64 " pauses, %.1f ms in total",
					g->pauses.count, ms(g->pauses.total_ns)),
		       "The list of collections shows its generation and reason. Much surviving "
		       "memory makes pauses long.");
}

static void check_time(const struct gc *g, struct an_report *out)
{
	int64_t observed = an_observed_ns(g->shared);
	double percent;

	if (!g->pauses.count || observed < MIN_OBSERVED_MS * INT64_C(1000000))
		return;
	percent = 100.0 * (double)g->pauses.total_ns / (double)observed;
	if (percent < an_limit(g->shared, AN_LIMIT_GC_TIME))
		return;
	an_add_finding(
		out,
		percent >= an_limit(g->shared, AN_LIMIT_GC_TIME_CRITICAL) ? AN_CRITICAL
									  : AN_WARNING,
		"gc.time",
		an_report_printf(out,
				 "The program stood still for garbage collection %.0f %% of "
				 "the time",
				 percent),
		an_report_printf(out,
				 "%.1f ms of pauses in %.1f ms; %" PRIu64 " collections: %" PRIu64
				 " of generation 0, %" PRIu64 " of 1, %" PRIu64 " of 2",
				 ms(g->pauses.total_ns), (double)observed / 1e6, g->started,
				 g->by_generation[0], g->by_generation[1], g->by_generation[2]),
		"Allocate less: see which types and methods allocate. Many short collections call "
		"for fewer temporary objects, long ones for less that survives.");
}

static void check_induced(const struct gc *g, const struct caller_row *rows, size_t n,
			  struct an_report *out)
{
	const char *who = "";

	if (!g->induced)
		return;
	for (size_t i = 0; i < n && i < 3; i++)
		if (rows[i].method)
			who = an_report_printf(out, "%s%s%s (%" PRIu64 ")", who,
					       *who ? ", " : "; asked for by ",
					       rows[i].method->name, rows[i].count);
	an_add_finding(
		out,
		(double)g->induced >= an_limit(g->shared, AN_LIMIT_GC_INDUCED_WARNING) ? AN_WARNING
										       : AN_INFO,
		"gc.induced",
		g->induced == 1
			? "One collection was asked for by code, not by need"
			: an_report_printf(out,
					   "%" PRIu64
					   " collections were asked for by code, not by need",
					   g->induced),
		an_report_printf(out, "of %" PRIu64 " collections%s", g->started, who),
		"GC.Collect() makes the collector work harder for nothing in nearly all "
		"programs: remove the call.");
}

static void check_full(const struct gc *g, struct an_report *out)
{
	const struct gc_class_sum *full = &g->sums[GC_GENERATIONS - 1][GC_BLOCKING];
	int64_t observed = an_observed_ns(g->shared);
	double percent = observed > 0 ? 100.0 * (double)full->pause_ns / (double)observed : 0;

	if (!full->count || observed < MIN_OBSERVED_MS * INT64_C(1000000) ||
	    percent < an_limit(g->shared, AN_LIMIT_GC_FULL))
		return;
	an_add_finding(
		out, AN_WARNING, "gc.full-blocking",
		full->count == 1
			? "A full collection stopped the program while it looked at the whole heap"
			: an_report_printf(out,
					   "%" PRIu64
					   " full collections stopped the program while they "
					   "looked at the whole heap",
					   full->count),
		an_report_printf(out, "%.1f ms in total, longest %.1f ms, %.1f %% of the time",
				 ms(full->pause_ns), ms(full->pause_max_ns), percent),
		"Their reasons are in the list of collections: Induced is a call of "
		"GC.Collect(), AllocLarge comes from objects of 85,000 bytes and more, "
		"LowMemory from a memory limit.");
}

static void check_suspension(const struct gc *g, struct an_report *out)
{
	if (!g->pauses.count || ms(g->suspend_max_ns) < an_limit(g->shared, AN_LIMIT_GC_SUSPENSION))
		return;
	an_add_finding(out, AN_WARNING, "gc.slow-suspension",
		       an_report_printf(out, "Stopping all threads took up to %.1f ms",
					ms(g->suspend_max_ns)),
		       "time from the request to stop until the last thread stood still",
		       "Some thread ran long without a point to stop at, or the machine had no "
		       "free core for it.");
}

static void check_sampled(const struct gc *g, struct an_report *out)
{
	if (!g->sampled)
		return;
	an_add_finding(out, AN_INFO, "gc.allocation-unknown", "How much was allocated is not known",
		       an_report_printf(out,
					"%" PRIu64 " AllocationSampled events, %" PRIu64
					" AllocationTick events",
					g->sampled, g->ticks),
		       "While allocations are sampled the runtime leaves out nearly all ticks. "
		       "Record without the AllocationSampling keyword for totals.");
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
		"pauses",
		"pause_total_ms",
		"pause_max_ms",
		"pause_p50_ms",
		"pause_p95_ms",
		"pause_p99_ms",
		"pause_percent",
		"allocated_bytes",
		"allocation_rate_bytes_per_s",
		"promoted_bytes",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		an_add_null(v, names[i]);
	an_add_array(v, "collections");
	an_add_finding(out, AN_INFO, "gc.not-recorded", "No garbage collector events were recorded",
		       "the trace has none: either they were not enabled, or nothing happened",
		       "To see collections and pauses, record with the gc profile.");
}

static void add_section(struct gc *g, const struct caller_row *rows, size_t n, struct an_value *v)
{
	an_add_uint(v, "count", g->started);
	an_add_uint(v, "gen0", g->by_generation[0]);
	an_add_uint(v, "gen1", g->by_generation[1]);
	an_add_uint(v, "gen2", g->by_generation[2]);
	an_add_uint(v, "background", g->background);
	an_add_uint(v, "induced", g->induced);
	add_pauses(g, v);
	add_allocation(g, v);
	add_classes(g, v);
	add_callers(g, rows, n, v);
	an_add_uint(v, "incomplete_at_start", g->incomplete_start);
	an_add_uint(v, "incomplete_at_end", g->incomplete_end);
	an_add_uint(v, "pauses_dropped", g->dropped_pauses);
	an_add_uint(v, "other_suspensions", g->other_count);
	an_add_double(v, "other_suspensions_ms", ms(g->other_ns), 4);
	add_collections(g, v);
}

enum { KEYWORD_GC = 0x1 };

enum nt_status gc_report(struct gc *g, struct an_report *out)
{
	struct an_value *v = an_add_object(an_report_root(out), "gc");
	struct caller_row *rows;
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
	add_section(g, rows, n, v);
	check_pauses(g, out);
	check_time(g, out);
	check_induced(g, rows, n, out);
	check_full(g, out);
	check_suspension(g, out);
	check_sampled(g, out);
	an_mem_free(g->shared->alloc, rows);
	return NT_OK;
}
