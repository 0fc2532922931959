/* SPDX-License-Identifier: MIT */

/* The sections of the text report, one function each. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/out_text.h"

enum { HOT_PATH_ROWS = 25, THREAD_ROWS = 8, CHAIN_ROWS = 12 };

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

/* "1787  59.8 %" in two cells. */
static void cells_share(struct table *t, const struct an_value *v, const char *count,
			const char *share)
{
	char text[48];

	text_number(v, count, text, sizeof(text));
	table_cell(t, "%s", text);
	if (text_has(v, share))
		table_cell(t, "%.1f", an_get_f64(v, share, 0));
	else
		table_cell(t, "-");
}

/* ", 20 waiting (1.0 %)"; nothing when there are none. */
static void put_class(struct out *o, const struct an_value *cpu, const char *path, const char *word)
{
	uint64_t n = an_get_u64(cpu, path, 0);

	if (n)
		out_printf(o, ", %" PRIu64 " %s (%.1f %%)", n, word,
			   percent(n, an_get_u64(cpu, "samples", 0)));
}

static void put_sample_line(struct out *o, const struct an_value *cpu)
{
	out_printf(o, "  %" PRIu64 " samples by %s", an_get_u64(cpu, "samples", 0),
		   an_get_text(cpu, "source", "an unknown source"));
	if (text_has(cpu, "interval_ms"))
		out_printf(o, ", one every %.2f ms", an_get_f64(cpu, "interval_ms", 0));
	put_class(o, cpu, "samples_on_cpu", "running");
	put_class(o, cpu, "samples_waiting", "waiting");
	put_class(o, cpu, "samples_unknown", "unknown");
	put_class(o, cpu, "samples_unresolved", "in code without a name");
	out_char(o, '\n');
}

static void put_methods(struct out *o, const struct an_value *cpu, size_t top)
{
	const struct an_value *methods = an_get(cpu, "methods");
	bool waits = strcmp(an_get_text(cpu, "view", "cpu"), "cpu") != 0;
	size_t rows = text_rows(methods, top);
	const struct an_value *v = rows ? methods->first : NULL;
	struct table t;
	char text[48];

	if (!rows)
		return;
	table_init(&t, waits ? "rrrrrl" : "rrrrl");
	table_cell(&t, "exclusive");
	table_cell(&t, "%%");
	table_cell(&t, "inclusive");
	table_cell(&t, "%%");
	if (waits)
		table_cell(&t, "waiting");
	table_cell(&t, "method");
	for (size_t i = 0; i < rows; i++, v = v->next) {
		cells_share(&t, v, "exclusive_samples", "exclusive_percent");
		cells_share(&t, v, "inclusive_samples", "inclusive_percent");
		text_number(v, "waiting", text, sizeof(text));
		if (waits)
			table_cell(&t, "%s", text);
		table_cell(&t, "%s%s", an_get_text(v, "method", "?"), an_get_text(v, "args", ""));
	}
	out_char(o, '\n');
	table_print(&t, o, true);
	text_more(o, rows, methods, top, "methods");
}

static void put_hot_path(struct out *o, const struct an_value *path, size_t top)
{
	size_t rows = text_rows(path, top ? HOT_PATH_ROWS : 0);
	const struct an_value *v = rows ? path->first : NULL;

	if (!rows)
		return;
	out_text(o, "\n  hot path, from the outermost caller inwards\n");
	for (size_t i = 0; i < rows; i++, v = v->next) {
		out_printf(o, "  %6.1f %%  %*s", an_get_f64(v, "inclusive_percent", 0), (int)i, "");
		text_put(o, TEXT_PLAIN, an_get_text(v, "method", "?"));
		text_put(o, TEXT_PLAIN, an_get_text(v, "args", ""));
		out_char(o, '\n');
	}
	text_more(o, rows, path, 0, "frames");
}

static void put_cpu_threads(struct out *o, const struct an_value *threads, size_t top)
{
	static const char *const columns[] = { "thread_id", "samples_on_cpu", "samples_waiting",
					       "samples" };
	size_t rows = text_rows(threads, top > THREAD_ROWS ? THREAD_ROWS : top);
	const struct an_value *v = rows ? threads->first : NULL;
	struct table t;
	char text[48];

	if (!rows)
		return;
	out_char(o, '\n');
	table_init(&t, "rrrrrl");
	table_cell(&t, "thread");
	table_cell(&t, "running");
	table_cell(&t, "waiting");
	table_cell(&t, "samples");
	table_cell(&t, "CPU time");
	table_cell(&t, "name");
	for (size_t i = 0; i < rows; i++, v = v->next) {
		for (size_t c = 0; c < 4; c++) {
			text_number(v, columns[c], text, sizeof(text));
			table_cell(&t, "%s", text_has(v, columns[c]) ? text : "?");
		}
		text_ms(v, "cpu_time_ms", text, sizeof(text));
		table_cell(&t, "%s", text_has(v, "cpu_time_ms") ? text : "-");
		table_cell(&t, "%s", an_get_text(v, "name", ""));
	}
	table_print(&t, o, true);
	text_more(o, rows, threads, 0, "threads");
}

void text_cpu(struct out *o, const struct an_value *cpu, size_t top)
{
	char head[64];

	snprintf(head, sizeof(head), "CPU (view: %s)", an_get_text(cpu, "view", "cpu"));
	text_head(o, head);
	if (!text_has(cpu, "samples")) {
		out_text(o, "  not recorded\n");
		return;
	}
	put_sample_line(o, cpu);
	put_methods(o, cpu, top);
	put_hot_path(o, an_get(cpu, "hot_path"), top);
	put_cpu_threads(o, an_get(cpu, "threads"), top);
}

static void put_collections(struct out *o, const struct an_value *list, size_t top)
{
	static const char *const columns[] = { "number", "generation", "type", "reason" };
	size_t rows = text_rows(list, top);
	const struct an_value *v = rows ? list->first : NULL;
	struct table t;
	char text[64];

	if (!rows)
		return;
	out_char(o, '\n');
	table_init(&t, "rrllrrrrr");
	table_cell(&t, "gc");
	table_cell(&t, "gen");
	table_cell(&t, "type");
	table_cell(&t, "reason");
	table_cell(&t, "start");
	table_cell(&t, "pause");
	table_cell(&t, "before");
	table_cell(&t, "after");
	table_cell(&t, "promoted");
	for (size_t i = 0; i < rows; i++, v = v->next) {
		for (size_t c = 0; c < 4; c++) {
			text_number(v, columns[c], text, sizeof(text));
			table_cell(&t, "%s", an_get_text(v, columns[c], text));
		}
		text_ms(v, "start_ms", text, sizeof(text));
		table_cell(&t, "%s", text);
		text_ms(v, "pause_ms", text, sizeof(text));
		table_cell(&t, "%s", text_has(v, "pause_ms") ? text : "-");
		text_bytes(v, "heap_before_bytes", text, sizeof(text));
		table_cell(&t, "%s", text_has(v, "heap_before_bytes") ? text : "-");
		text_bytes(v, "heap_after_bytes", text, sizeof(text));
		table_cell(&t, "%s", text_has(v, "heap_after_bytes") ? text : "-");
		text_bytes(v, "promoted_bytes", text, sizeof(text));
		table_cell(&t, "%s", text_has(v, "promoted_bytes") ? text : "-");
	}
	table_print(&t, o, true);
	text_more(o, rows, list, top, "collections");
}

static void put_pauses(struct out *o, const struct an_value *gc)
{
	char total[48], max[48], p50[48], p95[48], p99[48], text[48];

	text_ms(gc, "pause_total_ms", total, sizeof(total));
	text_ms(gc, "pause_max_ms", max, sizeof(max));
	text_ms(gc, "pause_p50_ms", p50, sizeof(p50));
	text_ms(gc, "pause_p95_ms", p95, sizeof(p95));
	text_ms(gc, "pause_p99_ms", p99, sizeof(p99));
	out_printf(o, "  pauses     %s in all", total);
	if (text_has(gc, "pause_percent"))
		out_printf(o, ", %.1f %% of the time", an_get_f64(gc, "pause_percent", 0));
	out_printf(o, "; longest %s, half under %s, 95 %% under %s, 99 %% under %s\n", max, p50,
		   p95, p99);
	text_bytes(gc, "allocated_bytes", text, sizeof(text));
	out_printf(o, "  allocated  %s", text);
	if (text_has(gc, "allocation_rate_bytes_per_s")) {
		text_bytes(gc, "allocation_rate_bytes_per_s", text, sizeof(text));
		out_printf(o, ", %s a second", text);
	}
	text_bytes(gc, "promoted_bytes", text, sizeof(text));
	out_printf(o, "; promoted %s\n", text);
}

void text_gc(struct out *o, const struct an_value *gc, size_t top)
{
	text_head(o, "GARBAGE COLLECTION");
	if (!text_has(gc, "count")) {
		out_text(o, "  not recorded\n");
		return;
	}
	out_printf(o,
		   "  count      %" PRIu64 ": gen0 %" PRIu64 ", gen1 %" PRIu64 ", gen2 %" PRIu64
		   "; %" PRIu64 " in the background, %" PRIu64 " induced\n",
		   an_get_u64(gc, "count", 0), an_get_u64(gc, "gen0", 0), an_get_u64(gc, "gen1", 0),
		   an_get_u64(gc, "gen2", 0), an_get_u64(gc, "background", 0),
		   an_get_u64(gc, "induced", 0));
	put_pauses(o, gc);
	put_collections(o, an_get(gc, "collections"), top);
}

static void put_chain(struct out *o, const struct an_value *chain)
{
	size_t rows = text_rows(chain, CHAIN_ROWS);
	const struct an_value *v = rows ? chain->first : NULL;

	for (size_t i = 0; i < rows; i++, v = v->next) {
		out_text(o, "      awaited by ");
		text_put(o, TEXT_PLAIN,
			 v->kind == AN_TEXT ? v->text : an_get_text(v, "method", "?"));
		out_char(o, '\n');
	}
	text_more(o, rows, chain, 0, "frames");
}

static void put_pending(struct out *o, const struct an_value *v)
{
	char count[48], age[48];

	text_number(v, "count", count, sizeof(count));
	text_ms(v, "age_ms", age, sizeof(age));
	out_printf(o, "  %6s  ", text_has(v, "count") ? count : "1");
	text_put(o, TEXT_BOLD, an_get_text(v, "method", "?"));
	out_printf(o, "  %s", an_get_text(v, "state", "pending"));
	if (text_has(v, "age_ms"))
		out_printf(o, ", oldest %s", age);
	if (text_has(v, "waiting_on")) {
		out_text(o, ", waits on ");
		text_put(o, TEXT_PLAIN, an_get_text(v, "waiting_on", ""));
	}
	out_char(o, '\n');
	put_chain(o, an_get(v, "chain"));
}

void text_tasks(struct out *o, const struct an_value *tasks, size_t top)
{
	const struct an_value *pending = an_get(tasks, "pending");
	size_t rows = text_rows(pending, top);
	const struct an_value *v = rows ? pending->first : NULL;

	text_head(o, "TASKS");
	if (!pending || pending->kind == AN_NULL) {
		out_text(o, "  not recorded\n");
		return;
	}
	if (!rows)
		out_text(o, "  nothing was pending when the recording ended\n");
	for (size_t i = 0; i < rows; i++, v = v->next)
		put_pending(o, v);
	text_more(o, rows, pending, top, "groups");
}
