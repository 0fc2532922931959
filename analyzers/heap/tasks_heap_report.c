/* SPDX-License-Identifier: MIT */

/* What heap walks say of pending work: rows, facts of the walks, findings. */

#include <inttypes.h>

#include "analyzers/heap/tasks_heap_internal.h"

enum { MANY_STUCK = 3, MAX_FINDINGS = 10, CHAIN_SHOWN = 6 };

#define UNNAMED_PERCENT 1.0 /* of the objects: more makes chains invisible */

static double ms(int64_t ns)
{
	return (double)ns / 1e6;
}

/* How long apart the two walks are; -1 with one. */
static int64_t apart_ns(const struct an_heap_tasks *h)
{
	if (!h->compared)
		return -1;
	return h->walks[0].facts.info.begin_ns - h->walks[1].facts.info.begin_ns;
}

static const char *leaf_name(enum an_leaf leaf)
{
	static const char *const names[] = {
		"none",	      "task",	  "source",	  "work",	   "semaphore",
		"delay",      "timer",	  "channel-read", "channel-write", "io",
		"value-task", "combined", "cycle",
	};

	return names[leaf];
}

static const char *state_name(const struct an_heap_chain *c)
{
	if (c->blocked)
		return "blocked";
	return c->stuck ? "stuck" : "pending";
}

static void add_optional(struct an_value *v, const char *name, bool known, uint64_t n)
{
	if (known)
		an_add_uint(v, name, n);
	else
		an_add_null(v, name);
}

static void add_row(const struct an_heap_tasks *h, const struct an_heap_chain *c,
		    struct an_value *list)
{
	struct an_value *v = an_add_object(list, NULL), *chain;

	an_add_null(v, "task_id");
	an_add_text(v, "method", c->method);
	an_add_text(v, "state", state_name(c));
	if (h->compared && (c->same || c->by_shape))
		an_add_double(v, "age_ms", ms(apart_ns(h)), 1);
	else
		an_add_null(v, "age_ms");
	an_add_bool(v, "age_at_least", true);
	an_add_uint(v, "count", c->count);
	chain = an_add_array(v, "chain");
	for (size_t i = 0; i < c->frame_count; i++)
		an_add_text(chain, NULL, c->frames[i]);
	an_add_text(v, "waiting_on", c->waiting_on);
	an_add_null(v, "thread_id");
	an_add_text(v, "source", "heap");
	an_add_text(v, "leaf", leaf_name(c->leaf));
	an_add_uint(v, "depth", c->depth);
	if (c->kept_by)
		an_add_text(v, "kept_by", c->kept_by);
	else
		an_add_null(v, "kept_by");
	if (h->compared)
		an_add_bool(v, "stuck", c->stuck);
	else
		an_add_null(v, "stuck");
	an_add_uint(v, "calls", c->calls);
	add_optional(v, "count_before", h->compared, c->count_before);
	add_optional(v, "same_objects", h->compared, c->same);
}

void an_heap_tasks_add_rows(const struct an_heap_tasks *h, struct an_value *pending, size_t top)
{
	for (size_t i = 0; i < an_heap_tasks_count(h) && (!top || i < top); i++)
		add_row(h, an_heap_tasks_chain(h, i), pending);
}

static uint64_t events_lost(const struct an_heapwalk *w)
{
	return w->lost_objects + w->lost_edges + w->lost_roots + w->lost_weak;
}

static void add_walk(const struct an_heap_walk_facts *f, struct an_value *list)
{
	struct an_value *v = an_add_object(list, NULL);

	an_add_double(v, "start_ms", ms(f->info.begin_ns), 3);
	an_add_double(v, "duration_ms", ms(f->info.end_ns - f->info.begin_ns), 3);
	if (f->pause_ns >= 0)
		an_add_double(v, "pause_ms", ms(f->pause_ns), 3);
	else
		an_add_null(v, "pause_ms");
	add_optional(v, "collection", f->info.gc_known, f->info.gc);
	add_optional(v, "generation", f->info.gc_known, f->info.generation);
	an_add_uint(v, "objects", f->objects);
	an_add_uint(v, "edges", f->edges);
	an_add_uint(v, "bytes", f->bytes);
	an_add_uint(v, "roots", f->roots);
	an_add_uint(v, "statics", f->statics);
	an_add_uint(v, "types", f->types);
	an_add_uint(v, "objects_without_type_name", f->unnamed);
	an_add_uint(v, "objects_not_read", f->objects_beyond);
	an_add_uint(v, "lost_events", events_lost(&f->info));
	an_add_bool(v, "complete", f->whole);
	an_add_uint(v, "chains", f->chains);
	an_add_uint(v, "chains_not_kept", f->beyond);
	an_add_uint(v, "methods_waiting", f->suspended);
	an_add_uint(v, "methods_unknown", f->unknown);
	an_add_uint(v, "memory_bytes", f->memory_bytes);
}

void an_heap_tasks_add_facts(const struct an_heap_tasks *h, struct an_value *section)
{
	struct an_value *v, *list;

	if (!h->walks[0].used) {
		an_add_null(section, "heap");
		return;
	}
	v = an_add_object(section, "heap");
	an_add_uint(v, "kinds", h->walks[0].rows.count);
	if (h->compared)
		an_add_double(v, "apart_ms", ms(apart_ns(h)), 1);
	else
		an_add_null(v, "apart_ms");
	list = an_add_array(v, "walks");
	if (h->walks[1].used)
		add_walk(&h->walks[1].facts, list);
	add_walk(&h->walks[0].facts, list);
}

/* --- findings --- */

static const char *chain_text(const struct an_heap_chain *c, struct an_report *out)
{
	const char *text = "";
	size_t shown = c->frame_count < CHAIN_SHOWN ? c->frame_count : CHAIN_SHOWN;

	for (size_t i = 0; i < shown; i++)
		text = an_report_printf(out, "%s%s%s", text, i ? " <- " : "", c->frames[i]);
	if (c->depth > shown)
		text = an_report_printf(out, "%s <- ... (%zu more)", text, c->depth - shown);
	return text;
}

static const char *evidence(const struct an_heap_tasks *h, const struct an_heap_chain *c,
			    struct an_report *out)
{
	const char *text = chain_text(c, out);

	text = an_report_printf(out, "%s%swaiting for %s", text, *text ? "; " : "", c->waiting_on);
	if (c->same)
		text = an_report_printf(
			out, "%s; %" PRIu64 " of %" PRIu64 " are the same objects as %.1f s before",
			text, c->same, c->count, ms(apart_ns(h)) / 1e3);
	else if (c->by_shape)
		text = an_report_printf(
			out,
			"%s; %" PRIu64 " of this shape %.1f s before (objects move, and the trace "
			"does not say where: that they are the same is likely, not certain)",
			text, c->count_before, ms(apart_ns(h)) / 1e3);
	if (c->kept_by)
		text = an_report_printf(out, "%s; kept alive by %s", text, c->kept_by);
	return text;
}

static const char *advice(enum an_leaf leaf)
{
	switch (leaf) {
	case AN_LEAF_SEMAPHORE:
		return "Look for who holds the semaphore: a path without Release(), or one that "
		       "waits itself.";
	case AN_LEAF_CHANNEL_WRITE:
		return "The channel is full: look at who should read it.";
	default:
		return "Look for who should complete that task: a lost callback, an exception on "
		       "the way to SetResult, a missing timeout.";
	}
}

static bool add_finding(const struct an_heap_tasks *h, const struct an_heap_chain *c,
			struct an_report *out)
{
	if (c->leaf == AN_LEAF_CYCLE) {
		an_add_finding(out, AN_CRITICAL, "tasks.deadlock",
			       "Tasks wait for each other in a circle", evidence(h, c, out),
			       "None of them can ever go on: break the circle.");
		return true;
	}
	if (c->stuck && c->blocked) {
		an_add_finding(
			out, AN_WARNING, "tasks.sync-over-async",
			an_report_printf(out, "%s a thread until %s ends",
					 c->count == 1
						 ? "A call blocks"
						 : an_report_printf(out, "%" PRIu64 " calls block",
								    c->count),
					 c->method),
			evidence(h, c, out),
			"Await the task instead of .Result or .Wait(): a blocked pool thread "
			"cannot "
			"run the work that would release it.");
		return true;
	}
	if (!c->stuck || c->count < MANY_STUCK)
		return false;
	an_add_finding(out, AN_WARNING, "tasks.stuck",
		       c->calls == 1
			       ? an_report_printf(out, "A call of %s does not get on", c->method)
			       : an_report_printf(out, "%" PRIu64 " calls of %s do not get on",
						  c->calls, c->method),
		       evidence(h, c, out), advice(c->leaf));
	return true;
}

static void check_walks(const struct an_heap_tasks *h, struct an_report *out)
{
	const struct an_heap_walk_facts *f = &h->walks[0].facts;
	double unnamed = f->objects ? 100.0 * (double)f->unnamed / (double)f->objects : 0;

	if (!f->whole)
		an_add_finding(out, AN_WARNING, "tasks.heap-partial",
			       "The heap walk is not complete: what is pending may be more",
			       an_report_printf(out,
						"%" PRIu64 " events of it lost, %" PRIu64
						" objects not read, %s; %" PRIu64
						" objects and %" PRIu64 " references came",
						events_lost(&f->info), f->objects_beyond,
						f->info.ended ? "its collection ended"
							      : "its collection did not end",
						f->objects, f->edges),
			       "Record it again with a larger --buffersize.");
	if (unnamed >= UNNAMED_PERCENT)
		an_add_finding(out, AN_WARNING, "tasks.heap-unnamed",
			       "The types of many objects are unknown: chains may be missing",
			       an_report_printf(out, "%.1f %% of %" PRIu64 " objects", unnamed,
						f->objects),
			       "Another session that listens to types keeps the runtime from "
			       "telling them again: end it, then record once more.");
}

void an_heap_tasks_add_findings(const struct an_heap_tasks *h, struct an_report *out)
{
	size_t shown = 0;
	uint64_t waiting = 0;

	if (!h->walks[0].used)
		return;
	check_walks(h, out);
	for (size_t i = 0; i < an_heap_tasks_count(h); i++) {
		const struct an_heap_chain *c = an_heap_tasks_chain(h, i);

		waiting += c->count;
		if (shown < MAX_FINDINGS)
			shown += add_finding(h, c, out);
	}
	if (!h->compared && waiting)
		an_add_finding(out, AN_INFO, "tasks.one-walk",
			       an_report_printf(out,
						"%" PRIu64
						" asynchronous calls are pending; one heap walk "
						"cannot tell stuck from busy",
						waiting),
			       "the trace has one heap walk",
			       "Record two, some seconds apart (collect --heap): what is in both "
			       "is stuck.");
}
