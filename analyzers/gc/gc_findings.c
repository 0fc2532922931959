/* SPDX-License-Identifier: MIT */

/* What stands out among collections.  The limits are in limit.c and docs/findings.md. */

#include <inttypes.h>

#include "analyzers/gc/gc_internal.h"

enum {
	MIN_OBSERVED_MS = 500,
	MIN_PAUSES = 100, /* that a 99th percentile needs */
	MIN_COLLECTIONS = 3, /* that an average needs */
	MIN_FULL = 5, /* that a frequency needs */
	MIN_OLD = 2, /* collections of generation 2 that say how much of it dies */
	EVIDENCE_ROWS = 3,
};

static double limit(const struct gc *g, enum an_limit which)
{
	return an_limit(g->shared, which);
}

/* Seconds watched; 0 when it was too short for rates. */
static double seconds(const struct gc *g)
{
	int64_t observed = an_observed_ns(g->shared);

	return observed < MIN_OBSERVED_MS * INT64_C(1000000) ? 0 : (double)observed / 1e9;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* The collection with the longest pauses, where it was kept. */
static const struct gc_collection *longest(const struct gc *g)
{
	const struct gc_collection *best = NULL;

	for (size_t i = 0; i < g->kept_count; i++)
		if (!best || g->kept[i].pause_ns > best->pause_ns)
			best = &g->kept[i];
	return best;
}

static const char *describe(const struct gc *g, const struct gc_collection *c,
			    struct an_report *out)
{
	const struct an_method *m = NULL;
	const char *text;

	if (!c)
		return "";
	text = an_report_printf(
		out, "; the longest: number %" PRIu32 ", generation %" PRIu32 ", %s, %s", c->number,
		c->generation, gc_type_name(c->type), gc_reason_name(c->reason));
	if (c->triggered && g->shared->tree)
		m = gc_caller_of(g->shared->tree, c->trigger_node);
	return m ? an_report_printf(out, "%s, in %s", text, m->name) : text;
}

static void check_pauses(struct gc *g, struct an_report *out)
{
	double max = gc_ms(g->pauses.max_ns), p99 = gc_ms(gc_pauses_percentile(&g->pauses, 99));
	bool often = g->pauses.count >= MIN_PAUSES && p99 >= limit(g, AN_LIMIT_GC_LONG_PAUSE_P99);
	bool critical = max >= limit(g, AN_LIMIT_GC_LONG_PAUSE_CRITICAL);

	if (!g->pauses.count || (max < limit(g, AN_LIMIT_GC_LONG_PAUSE) && !often))
		return;
	an_add_finding(
		out, critical ? AN_CRITICAL : AN_WARNING, "gc.long-pause",
		an_report_printf(out, "A garbage collection stopped the program for %.0f ms", max),
		an_report_printf(out,
				 "%" PRIu64 " pause%s, %.1f ms in total, 1 %% of them "
				 "%.1f ms and more%s",
				 g->pauses.count, plural(g->pauses.count),
				 gc_ms(g->pauses.total_ns), p99, describe(g, longest(g), out)),
		"The list of collections shows its generation and reason. Much surviving "
		"memory makes pauses long.");
}

static const char *pauses_text(const struct gc *g, struct an_report *out)
{
	return an_report_printf(out, "%.1f ms of pauses in %.1f ms", gc_ms(g->pauses.total_ns),
				seconds(g) * 1e3);
}

static void check_time(const struct gc *g, struct an_report *out)
{
	double percent;

	if (!g->pauses.count || seconds(g) <= 0)
		return;
	percent = gc_ms(g->pauses.total_ns) / 10 / seconds(g);
	if (percent < limit(g, AN_LIMIT_GC_TIME))
		return;
	an_add_finding(
		out, percent >= limit(g, AN_LIMIT_GC_TIME_CRITICAL) ? AN_CRITICAL : AN_WARNING,
		"gc.time",
		an_report_printf(out, "Garbage collections cost %.0f %% of the time", percent),
		pauses_text(g, out),
		"Allocate less: see which types and methods allocate. Many short collections call "
		"for fewer temporary objects, long ones for less that survives.");
}

static const char *callers_text(const struct gc_caller_row *rows, size_t n, const char *first,
				struct an_report *out)
{
	const char *text = "";

	for (size_t i = 0; i < n && i < EVIDENCE_ROWS; i++)
		if (rows[i].method)
			text = an_report_printf(out, "%s%s%s (%" PRIu64 ")", text,
						*text ? ", " : first, rows[i].method->name,
						rows[i].count);
	return text;
}

/* Walks of the heap are asked for by tools, not by the program's code. */
static uint64_t induced_by_code(const struct gc *g)
{
	return g->induced > g->walks ? g->induced - g->walks : 0;
}

static void check_induced(const struct gc *g, const struct gc_caller_row *rows, size_t n,
			  struct an_report *out)
{
	uint64_t by_code = induced_by_code(g);
	bool many = (double)by_code >= limit(g, AN_LIMIT_GC_INDUCED_WARNING);
	const char *walks = "";

	if (!by_code)
		return;
	if (g->walks)
		walks = an_report_printf(out, ", without %" PRIu64 " for walks of the heap",
					 g->walks);
	an_add_finding(
		out, many ? AN_WARNING : AN_INFO, "gc.induced",
		by_code == 1 ? "One collection was asked for by code, not by need"
			     : an_report_printf(out,
						"%" PRIu64
						" collections were asked for by code, not by need",
						by_code),
		an_report_printf(out, "of %" PRIu64 " collections%s%s", g->started, walks,
				 callers_text(rows, n, "; asked for by ", out)),
		"GC.Collect() makes the collector work harder for nothing in nearly all "
		"programs: remove the call.");
}

static void check_full(const struct gc *g, struct an_report *out)
{
	const struct gc_class_sum *full = &g->sums[GC_GENERATIONS - 1][GC_BLOCKING];
	double time = seconds(g), percent, rate;

	if (!full->count || time <= 0)
		return;
	percent = gc_ms(full->pause_ns) / 10 / time;
	rate = (double)full->count / time;
	if (percent < limit(g, AN_LIMIT_GC_FULL) &&
	    (full->count < MIN_FULL || rate < limit(g, AN_LIMIT_GC_FULL_RATE)))
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
				 gc_ms(full->pause_ns), gc_ms(full->pause_max_ns), percent),
		"Their reasons are in the list of collections: Induced is a call of "
		"GC.Collect(), AllocLarge comes from objects of 85,000 bytes and more, "
		"LowMemory from a memory limit.");
}

static void check_suspension(const struct gc *g, struct an_report *out)
{
	const struct gc_slow_suspension *s = g->slow;
	const char *who = "";

	if (!g->slow_count || gc_ms(s->ns) < limit(g, AN_LIMIT_GC_SUSPENSION))
		return;
	if (s->runner != UINT64_MAX)
		who = an_report_printf(out, "; thread %" PRIu64 " was still running meanwhile",
				       s->runner);
	an_add_finding(
		out, AN_WARNING, "gc.slow-suspension",
		an_report_printf(out, "Stopping all threads took up to %.1f ms", gc_ms(s->ns)),
		an_report_printf(out,
				 "from the request at %.1f ms until the last thread "
				 "stood still%s",
				 (double)s->begin_ns / 1e6, who),
		"Some thread ran long without a point to stop at, or the machine had no "
		"free core for it.");
}

static void check_large(const struct gc *g, struct an_report *out)
{
	double rate = seconds(g) > 0 ? (double)g->large / seconds(g) : 0;

	if (!g->large || (double)g->large < limit(g, AN_LIMIT_GC_LOH) ||
	    rate < limit(g, AN_LIMIT_GC_LOH_RATE))
		return;
	an_add_finding(out, AN_WARNING, "gc.loh-churn",
		       an_report_printf(out,
					"Large objects made the collector look at the whole heap "
					"%" PRIu64 " times",
					g->large),
		       an_report_printf(out,
					"%.1f collections a second with reason AllocLarge; the "
					"heap of large objects grew up to %.1f MB",
					rate, (double)g->generations[GC_LARGE].after_max / 1e6),
		       "Objects of 85,000 bytes and more are only freed together with generation "
		       "2. Rent such buffers from an ArrayPool, or work in pieces.");
}

static void check_fragmentation(const struct gc *g, struct an_report *out)
{
	static const size_t old[] = { GC_GENERATIONS - 1, GC_LARGE };
	const struct gc_generation_sum *worst = NULL;
	const char *pinned = "";
	size_t which = 0;

	for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
		const struct gc_generation_sum *s = &g->generations[old[i]];

		if (!s->known || !s->after ||
		    100.0 * (double)s->free_after <
			    limit(g, AN_LIMIT_GC_FRAGMENTATION) * (double)s->after ||
		    (double)s->free_after < limit(g, AN_LIMIT_GC_FRAGMENTATION_SIZE) * 1e6)
			continue;
		if (worst && s->free_after <= worst->free_after)
			continue;
		worst = s;
		which = old[i];
	}
	if (!worst)
		return;
	if (g->pinned_collections)
		pinned = an_report_printf(out, "; %.1f objects pinned on average",
					  (double)g->pinned / (double)g->pinned_collections);
	an_add_finding(
		out, AN_WARNING, "gc.fragmentation",
		an_report_printf(out, "%.0f %% of the %s is holes between objects",
				 100.0 * (double)worst->free_after / (double)worst->after,
				 which == GC_LARGE ? "heap of large objects" : "old generation"),
		an_report_printf(out, "%.1f of %.1f MB are free after the last collection%s",
				 (double)worst->free_after / 1e6, (double)worst->after / 1e6,
				 pinned),
		which == GC_LARGE
			? "Large objects are not moved unless told to: reuse them, make them of "
			  "equal sizes, or set GCSettings.LargeObjectHeapCompactionMode once."
			: "Objects that are pinned for long, or that die in the middle of old "
			  "ones, "
			  "leave holes. Pin shortly, or allocate pinned buffers with "
			  "GC.AllocateArray(pinned: true).");
}

static const char *pinned_types(const struct gc *g, struct an_report *out)
{
	const struct gc_pinned *best = NULL;

	for (size_t i = 0; i < g->pinned_count; i++)
		if (!best || g->pinned_type[i].count > best->count)
			best = &g->pinned_type[i];
	return best ? an_report_printf(out, "; most are %s",
				       an_textset_get(&g->pinned_names, best->name))
		    : "";
}

static void check_pinning(const struct gc *g, struct an_report *out)
{
	double average;

	if (g->pinned_collections < MIN_COLLECTIONS)
		return;
	average = (double)g->pinned / (double)g->pinned_collections;
	if (average <= 0 || average < limit(g, AN_LIMIT_GC_PINNING))
		return;
	an_add_finding(out, AN_WARNING, "gc.pinning",
		       an_report_printf(out, "%.0f objects are pinned whenever memory is collected",
					average),
		       an_report_printf(
			       out, "on average of %" PRIu64 " collections, %" PRIu64 " at most%s",
			       g->pinned_collections, g->pinned_max, pinned_types(g, out)),
		       "Pinned objects cannot be moved and leave holes around them. Pin for short, "
		       "pool the buffers of I/O, or allocate them with GC.AllocateArray(pinned: "
		       "true).");
}

static void check_finalizers(const struct gc *g, struct an_report *out)
{
	const struct gc_finalizers *f = &g->finalizers;
	uint64_t open_ns = 0, waiting = 0;
	double slowest;

	if (!f->recorded)
		return;
	if (f->since_ns >= 0)
		open_ns = an_elapsed(f->since_ns, an_observed_ns(g->shared));
	if (f->survivors > f->count)
		waiting = f->survivors - f->count;
	slowest = gc_ms(open_ns > f->max_ns ? open_ns : f->max_ns);
	if ((slowest <= 0 || slowest < limit(g, AN_LIMIT_GC_FINALIZERS)) &&
	    (!waiting || (double)waiting < limit(g, AN_LIMIT_GC_FINALIZERS_OBJECTS)))
		return;
	an_add_finding(
		out, AN_WARNING, "gc.finalizer-backlog",
		slowest >= limit(g, AN_LIMIT_GC_FINALIZERS)
			? an_report_printf(out, "Finalizers ran for %.1f s without a break",
					   slowest / 1e3)
			: an_report_printf(out, "%" PRIu64 " objects wait to be finalized",
					   waiting),
		an_report_printf(out,
				 "%" PRIu64 " objects survived to be finalized, %" PRIu64
				 " were finalized%s",
				 f->survivors, f->count,
				 open_ns ? "; they were still running at the end" : ""),
		"One thread runs all finalizers: one that blocks holds up all others, and what "
		"waits for them stays in memory. Dispose objects instead, and never wait in a "
		"finalizer.");
}

/* Objects that live just long enough to get old, and die then. */
static void check_mid_life(const struct gc *g, struct an_report *out)
{
	const struct gc_generation_sum *old = &g->generations[GC_GENERATIONS - 1];
	double died, rate;

	if (seconds(g) <= 0 || old->collected < MIN_OLD || !old->live_before)
		return;
	died = old->survived < old->live_before
		       ? 100.0 - 100.0 * (double)old->survived / (double)old->live_before
		       : 0;
	rate = (double)g->generations[1].promoted / 1e6 / seconds(g);
	if (rate <= 0 || died < limit(g, AN_LIMIT_GC_MID_LIFE) ||
	    rate < limit(g, AN_LIMIT_GC_MID_LIFE_RATE))
		return;
	an_add_finding(out, AN_WARNING, "gc.mid-life",
		       "Objects live just long enough to become old, and die then",
		       an_report_printf(out,
					"%.1f MB a second were promoted to generation 2; of that "
					"generation %.0f %% had died when it was collected",
					rate, died),
		       "They cost most: each is copied twice and then needs a full collection. "
		       "Look at caches with short expiry, queues, and requests that hold much for "
		       "long.");
}

static void check_sampled(const struct gc *g, struct an_report *out)
{
	if (!g->sampled || g->grown_ns)
		return;
	an_add_finding(out, AN_INFO, "gc.allocation-unknown", "How much was allocated is not known",
		       an_report_printf(out,
					"%" PRIu64 " AllocationSampled events, %" PRIu64
					" AllocationTick events",
					g->sampled, g->ticks),
		       "While allocations are sampled the runtime leaves out nearly all ticks. "
		       "Record without the AllocationSampling keyword for totals.");
}

void gc_findings(struct gc *g, const struct gc_caller_row *callers, size_t count,
		 struct an_report *out)
{
	check_time(g, out);
	check_pauses(g, out);
	check_induced(g, callers, count, out);
	check_full(g, out);
	check_large(g, out);
	check_suspension(g, out);
	check_fragmentation(g, out);
	check_pinning(g, out);
	check_finalizers(g, out);
	check_mid_life(g, out);
	check_sampled(g, out);
}

double gc_allocation_rate(const struct gc *g)
{
	int64_t observed = an_observed_ns(g->shared);

	/* While allocations are sampled (AllocationSampled), ticks are suppressed. */
	if (g->ticks && !g->sampled && observed > 0)
		return (double)g->allocated_bytes * 1e9 / (double)observed;
	return g->grown_ns ? (double)g->grown_bytes * 1e9 / (double)g->grown_ns : -1;
}

/* --- the sentence that joins collections, allocations and calls of GC.Collect --- */

/* "2.1 GB", with as many digits as mean something. */
static const char *per_second(double bytes, struct an_report *out)
{
	if (bytes >= 1e9)
		return an_report_printf(out, "%.1f GB/s", bytes / 1e9);
	return an_report_printf(out, "%.0f MB/s", bytes / 1e6);
}

/* Who allocates what, as far as the section about allocations knows. */
static const char *allocating(const struct gc *g, const struct an_value *root,
			      struct an_report *out)
{
	const struct an_value *sites = an_get(root, "alloc.sites"), *site = NULL, *types;
	double rate = gc_allocation_rate(g);
	const char *type, *method;

	if (sites && sites->kind == AN_ARRAY)
		site = sites->first;
	types = an_get(site ? site : an_get(root, "alloc"), "types");
	type = types && types->first ? an_get_text(types->first, "type", NULL) : NULL;
	method = site ? an_get_text(site, "method", NULL) : NULL;
	if (site && seconds(g) > 0)
		rate = an_get_f64(site, "bytes", 0) / seconds(g);
	if (rate <= 0)
		return "";
	return an_report_printf(out, "%s allocates %s%s%s", method ? method : "the program",
				per_second(rate, out), type ? " of " : "", type ? type : "");
}

void gc_conclude(struct gc *g, struct an_report *out)
{
	const struct an_value *root = an_report_borrow_root(out);
	const struct an_value *by = an_get(root, "gc.induced_by");
	const char *who = by && by->first ? an_get_text(by->first, "method", NULL) : NULL;
	uint64_t by_code = induced_by_code(g);
	const char *text, *why;
	uint32_t most = 0;

	if (!g->started || !an_report_has_finding(out, "gc.time"))
		return;
	for (uint32_t i = 1; i < GC_GENERATIONS; i++)
		if (g->by_generation[i] > g->by_generation[most])
			most = i;
	text = an_report_printf(
		out, "%.0f %% of %" PRIu64 " collections are of generation %" PRIu32,
		100.0 * (double)g->by_generation[most] / (double)g->started, g->started, most);
	why = allocating(g, root, out);
	if (*why)
		text = an_report_printf(out, "%s%s%s", text, most ? "; " : " because ", why);
	if (by_code)
		text = an_report_printf(out, "%s; %" PRIu64 " %s induced by GC.Collect%s%s", text,
					by_code, by_code == 1 ? "was" : "were", who ? " from " : "",
					who ? who : "");
	an_report_set_evidence(out, "gc.time",
			       an_report_printf(out, "%s; %s", text, pauses_text(g, out)));
}
