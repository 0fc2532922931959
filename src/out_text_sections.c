/* SPDX-License-Identifier: MIT */

/* The sections of the text report on CPU use and garbage collection. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/out_text.h"

enum {
	HOT_PATH_ROWS = 25,
	THREAD_ROWS = 8,
	FEW_SAMPLES = 100, /* below that the order of methods is chance */
	FEW_ROWS = 5,
};

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
					       "samples_unknown", "samples" };
	size_t rows = text_rows(threads, top > THREAD_ROWS ? THREAD_ROWS : top);
	const struct an_value *v = rows ? threads->first : NULL;
	struct table t;
	char text[48];

	if (!rows)
		return;
	out_char(o, '\n');
	table_init(&t, "rrrrrrl");
	table_cell(&t, "thread");
	table_cell(&t, "running");
	table_cell(&t, "waiting");
	table_cell(&t, "unknown");
	table_cell(&t, "samples");
	table_cell(&t, "CPU time");
	table_cell(&t, "name");
	for (size_t i = 0; i < rows; i++, v = v->next) {
		for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++) {
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

/* The samples that the view ranks. */
static uint64_t ranked(const struct an_value *cpu)
{
	const char *view = an_get_text(cpu, "view", "cpu");

	if (strcmp(view, "wall") == 0)
		return an_get_u64(cpu, "samples", 0);
	return an_get_u64(cpu, strcmp(view, "cpu") == 0 ? "samples_on_cpu" : "samples_waiting", 0);
}

void text_cpu(struct out *o, const struct an_value *cpu, size_t top)
{
	char head[64];
	bool few;

	snprintf(head, sizeof(head), "CPU (view: %s)", an_get_text(cpu, "view", "cpu"));
	text_head(o, head);
	if (!text_has(cpu, "samples")) {
		out_text(o, "  not recorded\n");
		return;
	}
	put_sample_line(o, cpu);
	few = top && ranked(cpu) < FEW_SAMPLES;
	if (few)
		out_printf(o,
			   "  only %" PRIu64
			   " of them count in this view: their order means little\n",
			   ranked(cpu));
	put_methods(o, cpu, few && top > FEW_ROWS ? FEW_ROWS : top);
	if (!few)
		put_hot_path(o, an_get(cpu, "hot_path"), top);
	put_cpu_threads(o, an_get(cpu, "threads"), top);
}
