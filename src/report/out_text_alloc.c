/* SPDX-License-Identifier: MIT */

/* Sections of the text report: allocations, exceptions, the JIT compiler, counters. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/report/out_text.h"

enum { PATH_ROWS = 25, SITE_ROWS = 3, NAME_ROWS = 5, SHORT_ROWS = 5 };

/* --- allocations --- */

/* "+-12 %": half of the interval that holds the true value in 95 of 100 cases. */
static void put_cell_error(struct table *t, const struct an_value *v)
{
	double bytes = an_get_f64(v, "bytes", 0);

	if (text_has(v, "bytes_low") && bytes > 0)
		table_cell(t, "±%.0f %%",
			   50 * (an_get_f64(v, "bytes_high", 0) - an_get_f64(v, "bytes_low", 0)) /
				   bytes);
	else
		table_cell(t, "-");
}

/* site: of call sites; else of types. */
static void put_alloc_rows(struct out *o, const struct an_value *list, bool site, size_t top)
{
	size_t rows = text_rows(list, top);
	const struct an_value *v = text_first(list, rows);
	struct table t;

	if (!rows)
		return;
	text_table(o, &t, "rrrrl",
		   (const char *const[]){ "bytes", "%", "samples", "error",
					  site ? "allocated in" : "type", NULL });
	for (; rows--; v = v->next) {
		text_cell_bytes(&t, v, "bytes");
		table_cell(&t, "%.1f", an_get_f64(v, "percent", 0));
		text_cell_number(&t, v, "samples");
		put_cell_error(&t, v);
		if (site)
			table_cell(&t, "%s%s", an_get_text(v, "method", "?"),
				   an_get_text(v, "args", ""));
		else if (text_has(v, "type"))
			table_cell(&t, "%s", an_get_text(v, "type", "?"));
		else
			table_cell(&t, "[type %s without a name]", an_get_text(v, "type_id", "?"));
	}
	table_print(&t, o, true);
	text_more(o, text_rows(list, top), list, top, site ? "sites" : "types");
}

static void put_large(struct out *o, const struct an_value *large)
{
	const struct an_value *sites = an_get(large, "sites");
	size_t rows = text_rows(sites, SITE_ROWS);
	const struct an_value *v = text_first(sites, rows);
	char bytes[48];

	if (!an_get_u64(large, "samples", 0))
		return;
	text_bytes(large, "bytes", bytes, sizeof(bytes));
	out_printf(o, "  large objects %s (%.1f %%, %" PRIu64 " samples)", bytes,
		   an_get_f64(large, "percent", 0), an_get_u64(large, "samples", 0));
	for (size_t i = 0; i < rows; i++, v = v->next) {
		out_text(o, i ? ", " : ": ");
		text_put(o, TEXT_PLAIN, an_get_text(v, "method", "?"));
	}
	out_char(o, '\n');
}

static void put_path(struct out *o, const struct an_value *path, size_t top)
{
	size_t rows = text_rows(path, top ? PATH_ROWS : 0);
	const struct an_value *v = text_first(path, rows);

	if (!rows)
		return;
	out_text(o, "\n  where most is allocated, from the outermost caller inwards\n");
	for (size_t i = 0; i < rows; i++, v = v->next) {
		out_printf(o, "  %6.1f %%  %*s", an_get_f64(v, "inclusive_percent", 0), (int)i, "");
		text_put(o, TEXT_PLAIN, an_get_text(v, "method", "?"));
		text_put(o, TEXT_PLAIN, an_get_text(v, "args", ""));
		out_char(o, '\n');
	}
	text_more(o, rows, path, 0, "frames");
}

static void put_alloc_tree(struct out *o, const struct an_value *alloc)
{
	const struct an_value *tree = an_get(alloc, "tree");

	if (!tree)
		return;
	out_text(o, strcmp(an_get_text(alloc, "tree_kind", ""), "callers") == 0
			    ? "\n  who called what allocates, by bytes, innermost first\n"
			    : "\n  callees by caller, by bytes, outermost first\n");
	for (const struct an_value *v = tree->first; v; v = v->next) {
		out_printf(o, "  %6.1f %%  %*s", an_get_f64(v, "inclusive_percent", 0),
			   (int)an_get_u64(v, "depth", 0), "");
		text_put(o, TEXT_PLAIN, an_get_text(v, "method", "?"));
		text_put(o, TEXT_PLAIN, an_get_text(v, "args", ""));
		if (text_has(v, "resumed"))
			text_put(o, TEXT_DIM, "  (after an await)");
		out_char(o, '\n');
	}
	if (!tree->count)
		out_text(o, "  nothing that large: --min-percent 0 shows all\n");
	if (!an_get(alloc, "tree_complete")->u)
		out_text(o, "  ... the tree goes on: a higher --min-percent\n");
}

void text_alloc(struct out *o, const struct an_value *alloc, size_t top)
{
	char bytes[48], rate[48], low[48], high[48];

	text_head(o, "ALLOCATIONS");
	if (!text_has(alloc, "source")) {
		out_text(o, "  not recorded\n");
		return;
	}
	text_bytes(alloc, "bytes", bytes, sizeof(bytes));
	text_bytes(alloc, "rate_bytes_per_s", rate, sizeof(rate));
	out_printf(o, "  about %s, %s a second: estimated from %" PRIu64 " samples (%s)\n", bytes,
		   rate, an_get_u64(alloc, "samples", 0), an_get_text(alloc, "source", "?"));
	if (text_has(alloc, "bytes_low")) {
		text_bytes(alloc, "bytes_low", low, sizeof(low));
		text_bytes(alloc, "bytes_high", high, sizeof(high));
		out_printf(o, "  between %s and %s with 95 %% certainty, %" PRIu64 " objects\n",
			   low, high, an_get_u64(alloc, "objects", 0));
	}
	put_large(o, an_get(alloc, "large_objects"));
	put_alloc_rows(o, an_get(alloc, "types"), false, top);
	if (text_has(alloc, "sites"))
		put_alloc_rows(o, an_get(alloc, "sites"), true, top);
	else
		out_text(o, "\n  call sites: not recorded\n");
	put_path(o, an_get(alloc, "hot_path"), top);
	put_alloc_tree(o, alloc);
}

/* --- exceptions --- */

static void put_counted(struct out *o, const struct an_value *list, const char *word,
			const char *name)
{
	size_t rows = text_rows(list, SHORT_ROWS);
	const struct an_value *v = text_first(list, rows);

	for (size_t i = 0; i < rows; i++, v = v->next) {
		out_printf(o, "      %s ", word);
		text_put(o, TEXT_PLAIN, an_get_text(v, name, "?"));
		out_printf(o, "  (%" PRIu64 ")\n", an_get_u64(v, "count", 0));
	}
	if (list && rows < list->count)
		out_printf(o, "      ... %zu more\n", list->count - rows);
}

static void put_exception(struct out *o, const struct an_value *v)
{
	uint64_t again = an_get_u64(v, "rethrown", 0), async = an_get_u64(v, "rethrown_async", 0);

	out_printf(o, "  %7" PRIu64 "  ", an_get_u64(v, "thrown", 0));
	text_put(o, TEXT_BOLD, an_get_text(v, "type", "?"));
	if (again + async)
		out_printf(o, "  and thrown again %" PRIu64 " times, %" PRIu64 " of them by await",
			   again + async, async);
	out_char(o, '\n');
	put_counted(o, an_get(v, "messages"), "says, for example,", "text");
	put_counted(o, an_get(v, "sites"), "thrown in", "method");
	put_counted(o, an_get(v, "caught_by"), "caught in", "method");
}

void text_exceptions(struct out *o, const struct an_value *ex, size_t top)
{
	const struct an_value *types = an_get(ex, "types");
	size_t rows = text_rows(types, top);
	const struct an_value *v = text_first(types, rows);

	text_head(o, "EXCEPTIONS");
	if (!text_has(ex, "count")) {
		out_text(o, "  not recorded\n");
		return;
	}
	out_printf(o, "  %" PRIu64 " thrown", an_get_u64(ex, "thrown", 0));
	if (text_has(ex, "rate_per_s"))
		out_printf(o, ", %.1f a second", an_get_f64(ex, "rate_per_s", 0));
	out_printf(o, ", %" PRIu64 " in the busiest second; %" PRIu64 " events in all\n",
		   an_get_u64(ex, "peak_per_s", 0), an_get_u64(ex, "count", 0));
	for (size_t i = 0; i < rows; i++, v = v->next)
		put_exception(o, v);
	text_more(o, rows, types, top, "types");
}

/* --- JIT --- */

static void put_jit_methods(struct out *o, const struct an_value *list, size_t top)
{
	size_t rows = text_rows(list, top);
	const struct an_value *v = text_first(list, rows);
	struct table t;

	if (!rows)
		return;
	text_table(o, &t, "rrrrl",
		   (const char *const[]){ "time", "longest", "times", "code", "method", NULL });
	for (size_t i = 0; i < rows; i++, v = v->next) {
		text_cell_ms(&t, v, "time_ms");
		text_cell_ms(&t, v, "max_ms");
		text_cell_number(&t, v, "count");
		text_cell_bytes(&t, v, "code_bytes");
		table_cell(&t, "%s%s", an_get_text(v, "method", "?"), an_get_text(v, "args", ""));
	}
	table_print(&t, o, true);
	text_more(o, rows, list, top, "methods");
}

static void put_jit_counts(struct out *o, const struct an_value *jit)
{
	const struct an_value *tiers = an_get(jit, "by_tier");
	char time[48], code[48], waited[48];

	text_ms(jit, "time_ms", time, sizeof(time));
	text_ms(jit, "waited_ms", waited, sizeof(waited));
	text_bytes(jit, "code_bytes", code, sizeof(code));
	if (!text_has(jit, "count"))
		out_printf(o, "  compiled   methods: not recorded, time %s", time);
	else
		out_printf(o, "  compiled   %" PRIu64 " methods, %s of code, time %s",
			   an_get_u64(jit, "count", 0), code, time);
	if (text_has(jit, "waited_ms"))
		out_printf(o, ", of which the program waited %s", waited);
	out_char(o, '\n');
	if (tiers && tiers->first)
		out_text(o, "  tiers      ");
	for (const struct an_value *t = tiers ? tiers->first : NULL; t; t = t->next)
		out_printf(o, "%s %" PRIu64 "%s", t->name, t->u, t->next ? ", " : "\n");
	if (an_get_u64(jit, "r2r_rejected", 0))
		out_printf(o, "  rejected   precompiled code of %" PRIu64 " methods\n",
			   an_get_u64(jit, "r2r_rejected", 0));
	if (an_get_u64(jit, "first_second.count", 0) && text_has(jit, "first_second.time_ms")) {
		text_ms(jit, "first_second.time_ms", time, sizeof(time));
		out_printf(o, "  at first   %" PRIu64 " methods in %s, within a second\n",
			   an_get_u64(jit, "first_second.count", 0), time);
	}
	if (text_has(jit, "tiering")) {
		text_ms(jit, "tiering.background_ms", time, sizeof(time));
		out_printf(o, "  tier-up    %" PRIu64 " methods in the background in %s\n",
			   an_get_u64(jit, "tiering.background_methods", 0), time);
	}
}

static void put_dynamic(struct out *o, const struct an_value *dynamic)
{
	const struct an_value *names = an_get(dynamic, "names");
	size_t rows = text_rows(names, NAME_ROWS);
	const struct an_value *v = text_first(names, rows);

	if (!an_get_u64(dynamic, "count", 0))
		return;
	out_printf(o, "  dynamic    %" PRIu64 " methods, %" PRIu64 " freed: ",
		   an_get_u64(dynamic, "count", 0), an_get_u64(dynamic, "unloaded", 0));
	for (size_t i = 0; i < rows; i++, v = v->next) {
		out_text(o, i ? ", " : "");
		text_put(o, TEXT_PLAIN, an_get_text(v, "name", "?"));
		out_printf(o, " (%" PRIu64 ")", an_get_u64(v, "count", 0));
	}
	out_char(o, '\n');
}

/* Not the base library's: nearly everything is in some way unoptimised for a moment. */
static void put_slow(struct out *o, const struct an_value *slow)
{
	const struct an_value *list = an_get(slow, "methods");
	size_t rows = text_rows(list, NAME_ROWS);
	const struct an_value *v = text_first(list, rows);

	if (!rows)
		return;
	out_printf(o,
		   "  tier 0     %.1f %% of the running samples: ", an_get_f64(slow, "percent", 0));
	for (size_t i = 0; i < rows; i++, v = v->next) {
		out_text(o, i ? ", " : "");
		text_put(o, TEXT_PLAIN, an_get_text(v, "method", "?"));
		out_printf(o, " (%.1f %%)", an_get_f64(v, "percent", 0));
	}
	out_char(o, '\n');
}

void text_jit(struct out *o, const struct an_value *jit, size_t top)
{
	text_head(o, "JIT AND LOADER");
	if (!text_has(jit, "methods")) {
		out_text(o, "  not recorded\n");
		return;
	}
	put_jit_counts(o, jit);
	put_slow(o, an_get(jit, "unoptimized"));
	put_dynamic(o, an_get(jit, "dynamic"));
	if (text_has(jit, "assemblies.loaded"))
		out_printf(o, "  assemblies %" PRIu64 " loaded, %" PRIu64 " unloaded\n",
			   an_get_u64(jit, "assemblies.loaded", 0),
			   an_get_u64(jit, "assemblies.unloaded", 0));
	put_jit_methods(o, an_get(jit, "methods"), top);
}

/* --- counters --- */

static const struct an_value *last_of(const struct an_value *points)
{
	return points && points->kind == AN_ARRAY ? points->last : NULL;
}

/* "a minute", "in 0.5 s": what the rates of a series are per. */
static void rate_unit(const struct an_value *series, char *buf, size_t size)
{
	static const struct {
		double seconds;
		const char *name;
	} units[] = {
		{ 1, "a second" }, { 60, "a minute" }, { 3600, "an hour" }, { 86400, "a day" }
	};
	double seconds = an_get_f64(series, "rate_scale_s", 0);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (seconds == units[i].seconds) {
			snprintf(buf, size, "%s", units[i].name);
			return;
		}
	snprintf(buf, size, "in %.6g s", seconds);
}

/* What a reading says, in a few words. */
static void put_reading(struct table *t, const struct an_value *series, const struct an_value *p)
{
	const char *kind = an_get_text(series, "kind", "");
	char unit[32];

	if (!p) {
		table_cell(t, "-");
	} else if (strstr(kind, "histogram")) {
		table_cell(t, "%" PRIu64 " with the sum %.6g", (uint64_t)an_get_f64(p, "count", 0),
			   an_get_f64(p, "sum", 0));
	} else if (strcmp(kind, "sum") == 0 && text_has(p, "rate")) {
		rate_unit(series, unit, sizeof(unit));
		table_cell(t, "%.6g (%.6g %s)", an_get_f64(p, "value", 0), an_get_f64(p, "rate", 0),
			   unit);
	} else if (text_has(p, "value")) {
		table_cell(t, "%.6g", an_get_f64(p, "value", 0));
	} else {
		table_cell(t, "%.6g more than before", an_get_f64(p, "delta", 0));
	}
}

static void put_series(struct table *t, const struct an_value *v)
{
	const struct an_value *points = an_get(v, "points");
	const struct an_value *tags = an_get(v, "tags");
	char text[256] = "";
	size_t n = 0;

	for (const struct an_value *m = tags ? tags->first : NULL; m && n + 1 < sizeof(text);
	     m = m->next)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s=%s", n ? "," : " ", m->name,
				      m->text);
	table_cell(t, "%s", an_get_text(v, "provider", "?"));
	table_cell(t, "%s%s", an_get_text(v, "name", "?"), text);
	table_cell(t, "%zu", points ? points->count : 0);
	put_reading(t, v, last_of(points));
	table_cell(t, "%s", an_get_text(v, "unit", ""));
}

void text_counters(struct out *o, const struct an_value *counters, size_t top)
{
	size_t rows = text_rows(counters, top);
	const struct an_value *v = text_first(counters, rows);
	struct table t;

	text_head(o, "COUNTERS");
	if (!rows) {
		out_text(o, "  not recorded\n");
		return;
	}
	table_init(&t, "llrll");
	table_cell(&t, "provider");
	table_cell(&t, "name");
	table_cell(&t, "readings");
	table_cell(&t, "last");
	table_cell(&t, "unit");
	for (size_t i = 0; i < rows; i++, v = v->next)
		put_series(&t, v);
	table_print(&t, o, true);
	text_more(o, rows, counters, top, "series");
}
