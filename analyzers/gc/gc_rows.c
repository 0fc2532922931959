/* SPDX-License-Identifier: MIT */

/* The collections in the report, one row each, and the words for numbers of events. */

#include <stdlib.h>

#include "analyzers/gc/gc_internal.h"
#include "analyzers/wait_frames.h"

const char *gc_reason_name(uint32_t reason)
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

const char *gc_type_name(uint32_t type)
{
	static const char *const names[] = { "blocking", "background", "foreground" };

	return type < GC_TYPES ? names[type] : "unknown";
}

const char *gc_size_name(size_t size)
{
	static const char *const names[GC_SIZES] = { "gen0", "gen1", "gen2", "loh", "poh" };

	return names[size];
}

const char *gc_roots_name(uint32_t roots)
{
	static const char *const names[GC_ROOTS] = {
		"stack",
		"finalizer-queue",
		"handles",
		"older-generation",
		"sized-references",
		"overflow",
		"dependent-handles",
		"newly-finalizable",
		"stolen",
		"background",
	};

	return names[roots];
}

static const char *pause_mode_name(uint32_t mode)
{
	static const char *const names[] = { "batch", "interactive", "low-latency",
					     "sustained-low-latency", "no-gc" };

	return mode < sizeof(names) / sizeof(names[0]) ? names[mode] : "unknown";
}

void gc_add_known_ms(struct an_value *v, const char *name, bool known, double ms)
{
	if (known)
		an_add_double(v, name, ms, 4);
	else
		an_add_null(v, name);
}

const struct an_method *gc_caller_of(const struct an_calltree *tree, uint32_t node)
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

/* --- members of a row --- */

/* Why the collector took this generation and not a younger one. */
static void add_reasons(const struct gc_collection *c, struct an_value *v)
{
	static const char *const words[] = {
		"a full collection was induced",
		"a heap could not grow",
		"memory load is high",
		"memory load is very high",
		"little room for young generations",
		"few of the marked cards were of use",
		"young generations are fragmented",
		"generation 2 is fragmented",
		"generation 2 is fragmented, for a young collection",
		"generation 2 is fragmented, with medium memory load",
		"generation 2 is fragmented, with high memory load",
		"generation 1 at most",
		"before running out of memory",
		"generation 2 is too small for a background collection",
		"induced, not forced",
		"before a background collection",
		"nearly all of the allowed memory is used",
		"an unproductive full collection was avoided",
		"provisional mode: a full collection was induced",
		"provisional mode: large objects",
		"provisional mode: generation 1",
		"memory limit: before running out of memory",
		"memory limit: large objects are fragmented",
		"memory limit: large objects can be reclaimed",
		"tuning: first collection",
		"tuning: blocking collection",
		"tuning: background collection",
		"tuning: postponed",
		"stress",
		"stress",
		"an aggressive collection was induced",
	};
	struct an_value *list;
	uint32_t budget = c->condemned0 >> 4 & 3, time = c->condemned0 >> 6 & 3;

	if (!c->have_condemned) {
		an_add_null(v, "condemned_because");
		return;
	}
	list = an_add_array(v, "condemned_because");
	if (budget)
		an_add_text(list, NULL,
			    budget == 1 ? "generation 1 is over its budget"
					: "generation 2 is over its budget");
	if (time)
		an_add_text(list, NULL,
			    time == 1 ? "the last collection of generation 1 was long ago"
				      : "the last collection of generation 2 was long ago");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (c->condemned1 & 1u << i)
			an_add_text(list, NULL, words[i]);
	if (list && !list->count)
		an_add_text(list, NULL, "generation 0 is over its budget");
}

static void add_sizes(const struct gc_collection *c, struct an_value *v)
{
	struct an_value *list;
	uint64_t free_bytes = 0, after = 0;

	if (!c->have_stats) {
		an_add_null(v, "promoted_by_generation");
	} else {
		list = an_add_object(v, "promoted_by_generation");
		for (unsigned i = 0; i < c->size_count; i++)
			an_add_uint(list, gc_size_name(i), c->promoted[i]);
	}
	if (!c->heaps) {
		an_add_null(v, "fragmentation_bytes");
		an_add_null(v, "fragmentation_percent");
		an_add_null(v, "sizes");
		return;
	}
	for (size_t i = 0; i < GC_SIZES; i++) {
		free_bytes += c->sizes[i].free_after;
		after += c->sizes[i].after;
	}
	an_add_uint(v, "fragmentation_bytes", free_bytes);
	if (after)
		an_add_double(v, "fragmentation_percent",
			      100.0 * (double)free_bytes / (double)after, 2);
	else
		an_add_null(v, "fragmentation_percent");
	list = an_add_array(v, "sizes");
	for (unsigned i = 0; i < GC_SIZES && (i < GC_PINNED || c->size_count != GC_PINNED); i++) {
		const struct gc_sizes *s = &c->sizes[i];
		struct an_value *row = an_add_object(list, NULL);

		an_add_text(row, "generation", gc_size_name(i));
		an_add_uint(row, "before_bytes", s->before);
		an_add_uint(row, "after_bytes", s->after);
		an_add_uint(row, "free_bytes", s->free_after);
	}
}

/* .NET 8 writes a time of day for the last phase of some collections of generation 1. */
static bool is_possible(const struct gc_collection *c, uint32_t us)
{
	return !c->ended || us * UINT64_C(1000) <= an_elapsed(c->start_ns, c->end_ns) + 1000000;
}

static void add_phases(const struct gc_collection *c, struct an_value *v)
{
	/* A sweeping collection has "sweep" instead of the last two. */
	static const char *const names[GC_PHASES] = {
		"mark_sized_references_ms",
		"mark_roots_ms",
		"short_weak_ms",
		"finalization_ms",
		"long_weak_ms",
		"plan_ms",
		"relocate_ms",
		"compact_ms",
	};
	struct an_value *o;

	if (!c->phases) {
		an_add_null(v, "phases");
		return;
	}
	o = an_add_object(v, "phases");
	for (uint32_t i = 0; i < c->phases; i++)
		gc_add_known_ms(o, i == 6 && c->phases == 7 ? "sweep_ms" : names[i],
				is_possible(c, c->phase_us[i]), c->phase_us[i] / 1e3);
}

static void add_marks(const struct gc_collection *c, struct an_value *v)
{
	struct an_value *list;

	if (!c->mark_count) {
		an_add_null(v, "marking");
		return;
	}
	list = an_add_array(v, "marking");
	for (size_t i = 0; i < c->mark_count; i++) {
		struct an_value *row = an_add_object(list, NULL);

		an_add_uint(row, "heap", c->marks[i].heap);
		an_add_text(row, "roots", gc_roots_name(c->marks[i].roots));
		an_add_double(row, "time_ms", gc_ms(c->marks[i].ns), 4);
		an_add_uint(row, "bytes", c->marks[i].bytes);
	}
}

static void add_trigger(const struct gc *g, const struct gc_collection *c, struct an_value *v)
{
	const struct an_method *m = NULL;

	if (c->triggered && g->shared->tree)
		m = gc_caller_of(g->shared->tree, c->trigger_node);
	if (m)
		an_add_text(v, "triggered_by", m->name);
	else
		an_add_null(v, "triggered_by");
	an_add_known(v, "triggered_by_thread", c->triggered, c->trigger_thread);
}

static void add_global(const struct gc_collection *c, struct an_value *v)
{
	enum { COMPACTED = 2 };

	an_add_known(v, "heap_count", c->have_global, c->heap_count);
	an_add_known(v, "gen0_budget_bytes", c->have_global, c->budget_bytes);
	if (c->have_global)
		an_add_bool(v, "compacting", (c->mechanisms & COMPACTED) != 0);
	else
		an_add_null(v, "compacting");
	if (c->have_pause_mode)
		an_add_text(v, "pause_mode", pause_mode_name(c->pause_mode));
	else
		an_add_null(v, "pause_mode");
	an_add_known(v, "memory_load_percent", c->have_pause_mode, c->memory_load);
	an_add_known(v, "committed_bytes", c->committed_bytes, c->committed_bytes);
}

static void add_collection(const struct gc *g, struct an_value *list, const struct gc_collection *c)
{
	struct an_value *v = an_add_object(list, NULL);

	an_add_uint(v, "number", c->number);
	an_add_uint(v, "generation", c->generation);
	an_add_text(v, "reason", gc_reason_name(c->reason));
	an_add_text(v, "type", gc_type_name(c->type));
	an_add_double(v, "start_ms", (double)c->start_ns / 1e6, 4);
	gc_add_known_ms(v, "duration_ms", c->ended, (double)(c->end_ns - c->start_ns) / 1e6);
	gc_add_known_ms(v, "suspend_ms", c->pauses, gc_ms(c->suspend_ns));
	gc_add_known_ms(v, "pause_ms", c->pauses, gc_ms(c->pause_ns));
	an_add_uint(v, "pauses", c->pauses);
	an_add_known(v, "promoted_bytes", c->have_stats, c->promoted_bytes);
	an_add_known(v, "heap_before_bytes", c->heaps, c->heap_before_bytes);
	an_add_known(v, "heap_after_bytes", c->have_stats, c->heap_after_bytes);
	an_add_known(v, "pinned_objects", c->have_stats, c->pinned_objects);
	an_add_known(v, "finalizable_survivors", c->have_stats, c->finalizable);
	an_add_known(v, "finalizable_survivors_bytes", c->have_stats, c->finalizable_bytes);
	an_add_known(v, "handles", c->have_stats, c->handles);
	add_sizes(c, v);
	add_reasons(c, v);
	add_global(c, v);
	add_phases(c, v);
	add_marks(c, v);
	add_trigger(g, c, v);
}

/* --- the list --- */

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

void gc_add_collections(struct gc *g, struct an_value *v)
{
	struct an_value *list = an_add_array(v, "collections");
	size_t n = g->kept_count, top = g->shared->options.top;
	uint64_t shown_ns = 0, all_ns = g->pauses.total_ns;

	if (n)
		qsort(g->kept, n, sizeof(*g->kept), top ? compare_pause : compare_start);
	if (top && top < n)
		n = top;
	for (size_t i = 0; i < n; i++) {
		add_collection(g, list, &g->kept[i]);
		shown_ns += g->kept[i].pause_ns;
	}
	an_add_uint(v, "collections_not_shown", g->not_kept + g->kept_count - n);
	an_add_double(v, "collections_not_shown_ms",
		      gc_ms(all_ns > shown_ns ? all_ns - shown_ns : 0), 4);
}
