/* SPDX-License-Identifier: MIT */

/* Section of the text report: garbage collection. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/report/out_text.h"

enum { SLOW_ROWS = 3 };

/* A number in a table: its column says the unit.  "-" for what was not recorded. */
static void cell_ms(struct table *t, const struct an_value *v, const char *path, int decimals)
{
	if (text_has(v, path))
		table_cell(t, "%.*f", decimals, an_get_f64(v, path, 0));
	else
		table_cell(t, "-");
}

static void cell_percent(struct table *t, const struct an_value *v, const char *path)
{
	if (text_has(v, path))
		table_cell(t, "%.0f %%", an_get_f64(v, path, 0));
	else
		table_cell(t, "-");
}

static void cell_any(struct table *t, const struct an_value *v, const char *path)
{
	char text[48];

	text_number(v, path, text, sizeof(text));
	table_cell(t, "%s", an_get_text(v, path, text_has(v, path) ? text : "-"));
}

static void put_classes(struct out *o, const struct an_value *list)
{
	static const char *const names[] = { "gen", "type", "count", "pause ms", "longest", NULL };
	const struct an_value *v = list ? list->first : NULL;
	struct table t;

	if (!v)
		return;
	text_table(o, &t, "rlrrr", names);
	for (; v; v = v->next) {
		cell_any(&t, v, "generation");
		cell_any(&t, v, "type");
		cell_any(&t, v, "count");
		cell_ms(&t, v, "pause_total_ms", 3);
		cell_ms(&t, v, "pause_max_ms", 3);
	}
	table_print(&t, o, true);
}

/* After the last collection; what survived, of all that were of that generation. */
static void put_heap(struct out *o, const struct an_value *list)
{
	static const char *const names[] = { "heap",	 "size",     "largest", "free",
					     "survives", "promoted", NULL };
	const struct an_value *v = list ? list->first : NULL;
	struct table t;

	if (!v)
		return;
	text_table(o, &t, "lrrrrr", names);
	for (; v; v = v->next) {
		cell_any(&t, v, "generation");
		text_cell_bytes(&t, v, "bytes");
		text_cell_bytes(&t, v, "max_bytes");
		cell_percent(&t, v, "free_percent");
		cell_percent(&t, v, "survived_percent");
		text_cell_bytes(&t, v, "promoted_bytes");
	}
	table_print(&t, o, true);
}

static void put_collections(struct out *o, const struct an_value *gc, size_t top)
{
	static const char *const names[] = { "gc",	 "gen",		 "type",   "reason",
					     "start ms", "pause ms",	 "before", "after",
					     "promoted", "asked for in", NULL };
	const struct an_value *list = an_get(gc, "collections");
	uint64_t hidden = an_get_u64(gc, "collections_not_shown", 0);
	size_t rows = text_rows(list, top);
	const struct an_value *v = rows ? list->first : NULL;
	char ms[48];
	struct table t;

	if (!rows)
		return;
	out_printf(o, "\n  %s",
		   hidden ? "the collections with the longest pauses"
		   : top  ? "all collections, longest pauses first"
			  : "all collections");
	text_table(o, &t, "rrllrrrrrl", names);
	for (size_t i = 0; i < rows; i++, v = v->next) {
		cell_any(&t, v, "number");
		cell_any(&t, v, "generation");
		cell_any(&t, v, "type");
		cell_any(&t, v, "reason");
		cell_ms(&t, v, "start_ms", 1);
		cell_ms(&t, v, "pause_ms", 3);
		text_cell_bytes(&t, v, "heap_before_bytes");
		text_cell_bytes(&t, v, "heap_after_bytes");
		text_cell_bytes(&t, v, "promoted_bytes");
		table_cell(&t, "%s", an_get_text(v, "triggered_by", "-"));
	}
	table_print(&t, o, true);
	if (!hidden)
		return;
	text_ms(gc, "collections_not_shown_ms", ms, sizeof(ms));
	out_printf(o,
		   "  ... %" PRIu64 " more with %s of pauses: --top 0 shows all that were kept\n",
		   hidden, ms);
}

/* --- lines --- */

static void put_mode(struct out *o, const struct an_value *gc)
{
	const char *mode = an_get_text(gc, "mode", NULL), *memory = an_get_text(gc, "memory", NULL);
	uint64_t heaps = an_get_u64(gc, "heap_count", 0);

	if (!mode && !memory && !heaps)
		return;
	out_printf(o, "  collector    %s", mode ? mode : "mode not recorded");
	if (text_has(gc, "concurrent"))
		out_text(o, ", concurrent");
	if (memory)
		out_printf(o, ", %s", memory);
	if (heaps)
		out_printf(o, ", %" PRIu64 " heap%s", heaps, heaps == 1 ? "" : "s");
	out_char(o, '\n');
}

static void put_pauses(struct out *o, const struct an_value *gc)
{
	char total[48], max[48], p50[48], p95[48], p99[48];

	text_ms(gc, "pause_total_ms", total, sizeof(total));
	text_ms(gc, "pause_max_ms", max, sizeof(max));
	text_ms(gc, "pause_p50_ms", p50, sizeof(p50));
	text_ms(gc, "pause_p95_ms", p95, sizeof(p95));
	text_ms(gc, "pause_p99_ms", p99, sizeof(p99));
	out_printf(o, "  pauses       %s in all", total);
	if (text_has(gc, "pause_percent"))
		out_printf(o, ", %.1f %% of the time", an_get_f64(gc, "pause_percent", 0));
	if (text_has(gc, "pause_max_ms"))
		out_printf(o,
			   "; longest %s\n               half under %s, 95 %% under %s, 99 %% "
			   "under %s",
			   max, p50, p95, p99);
	out_char(o, '\n');
}

static void put_mutator(struct out *o, const struct an_value *list)
{
	const char *before = "  program ran  at least ";

	for (const struct an_value *v = list ? list->first : NULL; v; v = v->next) {
		if (!text_has(v, "minimum_percent"))
			continue;
		out_printf(o, "%s%.0f %% of any %" PRIu64 " ms", before,
			   an_get_f64(v, "minimum_percent", 0), an_get_u64(v, "window_ms", 0));
		before = ", ";
	}
	if (strcmp(before, ", ") == 0)
		out_char(o, '\n');
}

static void put_stops(struct out *o, const struct an_value *gc)
{
	const struct an_value *slow = an_get(gc, "slow_suspensions");
	size_t rows = text_rows(slow, SLOW_ROWS);
	const struct an_value *v = text_first(slow, rows);
	char ms[48];

	if (an_get_u64(gc, "pauses_dropped", 0))
		out_printf(o,
			   "               %" PRIu64
			   " more, of collections that the recording cut at "
			   "its start or end, not counted\n",
			   an_get_u64(gc, "pauses_dropped", 0));
	if (an_get_u64(gc, "other_suspensions", 0)) {
		text_ms(gc, "other_suspensions_ms", ms, sizeof(ms));
		out_printf(o,
			   "  other stops  %" PRIu64
			   ", %s in all (the sampler stops the program too)\n",
			   an_get_u64(gc, "other_suspensions", 0), ms);
	}
	for (size_t i = 0; i < rows; i++, v = v->next) {
		text_ms(v, "suspend_ms", ms, sizeof(ms));
		out_printf(o, "  slow to stop %s at %.1f ms", ms, an_get_f64(v, "start_ms", 0));
		if (text_has(v, "still_running_thread"))
			out_printf(o, ", thread %" PRIu64 " ran on",
				   an_get_u64(v, "still_running_thread", 0));
		out_char(o, '\n');
	}
}

static void put_bytes(struct out *o, const struct an_value *gc)
{
	char text[48];

	text_bytes(gc, "allocated_bytes", text, sizeof(text));
	out_printf(o, "  allocated    %s", text);
	if (text_has(gc, "allocation_rate_bytes_per_s")) {
		text_bytes(gc, "allocation_rate_bytes_per_s", text, sizeof(text));
		out_printf(o, ", %s%s a second",
			   text_has(gc, "allocated_bytes") ? "" : "between collections about ",
			   text);
	}
	text_bytes(gc, "promoted_bytes", text, sizeof(text));
	out_printf(o, "\n  promoted     %s\n", text);
	if (!text_has(gc, "committed_bytes"))
		return;
	text_bytes(gc, "committed_bytes", text, sizeof(text));
	out_printf(o, "  committed    %s", text);
	text_bytes(gc, "committed_max_bytes", text, sizeof(text));
	out_printf(o, ", %s at most\n", text);
}

static void put_others(struct out *o, const struct an_value *gc)
{
	char ms[48];

	if (an_get_u64(gc, "pinned.max", 0))
		out_printf(o, "  pinned       %.1f objects on average, %" PRIu64 " at most\n",
			   an_get_f64(gc, "pinned.average", 0), an_get_u64(gc, "pinned.max", 0));
	if (!an_get_u64(gc, "finalizers.runs", 0))
		return;
	text_ms(gc, "finalizers.max_ms", ms, sizeof(ms));
	out_printf(o, "  finalizers   %" PRIu64 " objects in %" PRIu64 " runs, the longest %s\n",
		   an_get_u64(gc, "finalizers.finalized", 0), an_get_u64(gc, "finalizers.runs", 0),
		   ms);
}

void text_gc(struct out *o, const struct an_value *gc, size_t top)
{
	text_head(o, "GARBAGE COLLECTION");
	if (!text_has(gc, "count")) {
		out_text(o, "  not recorded\n");
		return;
	}
	out_printf(o, "  collections  %" PRIu64, an_get_u64(gc, "count", 0));
	if (an_get_u64(gc, "count", 0))
		out_printf(o,
			   ": %" PRIu64 " of generation 0, %" PRIu64 " of 1, %" PRIu64
			   " of 2; %" PRIu64 " in the background, %" PRIu64 " induced",
			   an_get_u64(gc, "gen0", 0), an_get_u64(gc, "gen1", 0),
			   an_get_u64(gc, "gen2", 0), an_get_u64(gc, "background", 0),
			   an_get_u64(gc, "induced", 0));
	out_char(o, '\n');
	put_mode(o, gc);
	if (an_get_u64(gc, "pauses", 1)) {
		put_pauses(o, gc);
		put_mutator(o, an_get(gc, "mutator_utilisation"));
	}
	put_stops(o, gc);
	put_bytes(o, gc);
	put_others(o, gc);
	put_classes(o, an_get(gc, "by_generation"));
	put_heap(o, an_get(gc, "heap"));
	put_collections(o, gc, top);
}
