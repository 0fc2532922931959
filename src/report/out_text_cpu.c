/* SPDX-License-Identifier: MIT */

/* The section of the text report on CPU use. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/report/out_text.h"

enum {
	HOT_PATH_ROWS = 25,
	THREAD_ROWS = 8,
	PROCESS_ROWS = 10,
	GROUPS = 5,
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

/* "20 waiting (1.0 %)" */
static void put_class(struct out *o, const struct an_value *cpu, const char *path, const char *word)
{
	uint64_t n = an_get_u64(cpu, path, 0);

	out_printf(o, "%" PRIu64 " %s (%.1f %%)", n, word,
		   percent(n, an_get_u64(cpu, "samples", 0)));
}

/* Whether there is anything but running samples to tell of. */
static bool has_classes(const struct an_value *cpu)
{
	return an_get_u64(cpu, "samples_waiting", 0) || an_get_u64(cpu, "samples_unknown", 0);
}

static bool is_by_time(const struct an_value *cpu)
{
	return !strcmp(an_get_text(cpu, "weighted_by", ""), "cpu-time");
}

static void put_head_lines(struct out *o, const struct an_value *cpu)
{
	const struct an_value *waits = an_get(cpu, "waits_recorded");
	char text[48];

	out_printf(o, "  %" PRIu64 " samples by %s", an_get_u64(cpu, "samples", 0),
		   an_get_text(cpu, "source", "an unknown source"));
	if (text_has(cpu, "interval_ms"))
		out_printf(o, ", one every %.2f ms", an_get_f64(cpu, "interval_ms", 0));
	if (text_has(cpu, "samples_left_out"))
		out_printf(o, "; %" PRIu64 " others are left out, as asked for",
			   an_get_u64(cpu, "samples_left_out", 0));
	out_text(o, "\n  ");
	put_class(o, cpu, "samples_on_cpu", "running");
	if (text_has(cpu, "samples_waiting")) {
		out_text(o, ", ");
		put_class(o, cpu, "samples_waiting", "waiting");
	}
	if (text_has(cpu, "samples_waiting") || an_get_u64(cpu, "samples_unknown", 0)) {
		out_text(o, ", ");
		put_class(o, cpu, "samples_unknown", "unknown");
	}
	if (!text_has(cpu, "samples_waiting"))
		out_text(o, waits && waits->u ? "; who waits: --view waiting"
					      : "; who waits was not recorded");
	if (an_get_u64(cpu, "samples_unresolved", 0)) {
		out_text(o, "; ");
		put_class(o, cpu, "samples_unresolved", "in code without a name");
	}
	out_char(o, '\n');
	if (text_has(cpu, "context_switches")) {
		text_ms(cpu, "blocked_ms", text, sizeof(text));
		out_printf(o,
			   "  %" PRIu64 " context switches: threads were off the CPU for %s, which "
			   "counts as waiting samples\n",
			   an_get_u64(cpu, "context_switches", 0), text);
	}
	if (is_by_time(cpu))
		out_text(o, "  percents are of measured CPU time\n");
}

/* Code that was never optimized is worth a word. */
static const char *tier_mark(const struct an_value *v)
{
	const char *tier = an_get_text(v, "tier", "");

	if (!strcmp(tier, "QuickJitted") || !strcmp(tier, "QuickJittedInstrumented"))
		return "  (tier 0)";
	return strcmp(tier, "MinOptJitted") == 0 ? "  (not optimized)" : "";
}

static void put_methods(struct out *o, const struct an_value *cpu, size_t top)
{
	static const char *const few[] = { "exclusive", "%", "inclusive", "%", "method", NULL };
	static const char *const all[] = { "exclusive", "%",	   "inclusive", "%", "running",
					   "waiting",	"unknown", "method",	NULL };
	const struct an_value *methods = an_get(cpu, "methods");
	bool classes = has_classes(cpu);
	size_t rows = text_rows(methods, top);
	const struct an_value *v = text_first(methods, rows);
	struct table t;

	if (!rows)
		return;
	text_table(o, &t, classes ? "rrrrrrrl" : "rrrrl", classes ? all : few);
	for (size_t i = 0; i < rows; i++, v = v->next) {
		cells_share(&t, v, "exclusive_samples", "exclusive_percent");
		cells_share(&t, v, "inclusive_samples", "inclusive_percent");
		if (classes) {
			text_cell_number(&t, v, "on_cpu");
			text_cell_number(&t, v, "waiting");
			text_cell_number(&t, v, "unknown");
		}
		table_cell(&t, "%s%s%s", an_get_text(v, "method", "?"), an_get_text(v, "args", ""),
			   tier_mark(v));
	}
	table_print(&t, o, true);
	text_more(o, rows, methods, top, "methods");
}

static void put_frame(struct out *o, const struct an_value *v, size_t depth)
{
	out_printf(o, "  %6.1f %%  %*s", an_get_f64(v, "inclusive_percent", 0), (int)depth, "");
	text_put(o, TEXT_PLAIN, an_get_text(v, "method", "?"));
	text_put(o, TEXT_PLAIN, an_get_text(v, "args", ""));
	if (text_has(v, "resumed"))
		text_put(o, TEXT_DIM, "  (after an await)");
	out_char(o, '\n');
}

static void put_hot_path(struct out *o, const struct an_value *path, size_t top)
{
	size_t rows = text_rows(path, top ? HOT_PATH_ROWS : 0);
	const struct an_value *v = text_first(path, rows);

	if (!rows)
		return;
	out_text(o, "\n  hot path, from the outermost caller inwards\n");
	for (size_t i = 0; i < rows; i++, v = v->next)
		put_frame(o, v, i);
	text_more(o, rows, path, 0, "frames");
}

static void put_tree(struct out *o, const struct an_value *cpu)
{
	const struct an_value *tree = an_get(cpu, "tree");
	bool callers = strcmp(an_get_text(cpu, "tree_kind", ""), "callers") == 0;

	if (!tree)
		return;
	out_text(o, callers ? "\n  who called what ran, innermost first\n"
			    : "\n  callees by caller, outermost first\n");
	for (const struct an_value *v = tree->first; v; v = v->next)
		put_frame(o, v, (size_t)an_get_u64(v, "depth", 0));
	if (!tree->count)
		out_text(o, "  nothing that large: --min-percent 0 shows all\n");
	if (!an_get(cpu, "tree_complete")->u)
		out_text(o, "  ... the tree goes on: --include, or a higher --min-percent\n");
}

/* "  by module: Shop 99.0 %, System.Private.CoreLib 0.8 %" */
static void put_groups(struct out *o, const struct an_value *list, const char *member)
{
	size_t rows = text_rows(list, GROUPS);
	const struct an_value *v = text_first(list, rows);

	if (!rows)
		return;
	out_printf(o, "  by %s: ", member);
	for (size_t i = 0; i < rows; i++, v = v->next) {
		const char *name = an_get_text(v, member, "");

		out_text(o, i ? ", " : "");
		text_put(o, TEXT_PLAIN, *name ? name : "(none)");
		out_printf(o, " %.1f %%", an_get_f64(v, "exclusive_percent", 0));
	}
	out_text(o, list->count > rows ? ", ...\n" : "\n");
}

static void put_threads(struct out *o, const struct an_value *cpu, size_t top)
{
	static const char *const columns[] = { "samples_on_cpu", "samples_waiting",
					       "samples_unknown", "samples" };
	static const char *const few[] = { "thread",  "running",  "waiting", "unknown",
					   "samples", "CPU time", "name",    NULL };
	static const char *const all[] = { "thread",   "running", "waiting", "unknown", "samples",
					   "CPU time", "blocked", "name",    NULL };
	const struct an_value *threads = an_get(cpu, "threads");
	bool blocked = text_has(cpu, "context_switches");
	size_t rows = text_rows(threads, top > THREAD_ROWS ? THREAD_ROWS : top);
	const struct an_value *v = text_first(threads, rows);
	struct table t;
	char text[48];

	if (!rows)
		return;
	text_table(o, &t, blocked ? "rrrrrrrl" : "rrrrrrl", blocked ? all : few);
	for (size_t i = 0; i < rows; i++, v = v->next) {
		text_number(v, "thread_id", text, sizeof(text));
		table_cell(&t, "%s", text_has(v, "thread_id") ? text : "?");
		for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++)
			text_cell_number(&t, v, columns[c]);
		text_cell_ms(&t, v, "cpu_time_ms");
		if (blocked)
			text_cell_ms(&t, v, "blocked_ms");
		table_cell(&t, "%s", an_get_text(v, "name", ""));
	}
	table_print(&t, o, true);
	text_more(o, rows, threads, 0, "threads");
}

static void put_processes(struct out *o, const struct an_value *list, size_t top)
{
	size_t rows = text_rows(list, top ? PROCESS_ROWS : 0);
	const struct an_value *v = text_first(list, rows);
	struct table t;

	if (!list || list->count < 2)
		return;
	text_table(o, &t, "rrrl",
		   (const char *const[]){ "process", "running", "samples", "name", NULL });
	for (size_t i = 0; i < rows; i++, v = v->next) {
		text_cell_number(&t, v, "process_id");
		text_cell_number(&t, v, "samples_on_cpu");
		text_cell_number(&t, v, "samples");
		table_cell(&t, "%s", an_get_text(v, "name", ""));
	}
	table_print(&t, o, true);
	text_more(o, rows, list, 0, "processes");
}

/* The samples that the view ranks. */
static uint64_t ranked(const struct an_value *cpu)
{
	const char *view = an_get_text(cpu, "view", "cpu");

	if (strcmp(view, "wall") == 0)
		return an_get_u64(cpu, "samples", 0);
	return an_get_u64(cpu, strcmp(view, "cpu") == 0 ? "samples_on_cpu" : "samples_waiting", 0);
}

/* A sample of measured time is worth as much as one that was counted. */
static bool is_few(const struct an_value *cpu)
{
	double ms = an_get_f64(cpu, "interval_ms", 1) * FEW_SAMPLES;

	return ranked(cpu) < FEW_SAMPLES ||
	       (is_by_time(cpu) && an_get_f64(cpu, "cpu_time_ms", 0) < ms);
}

/* Why the order of the methods means little. */
static void put_few(struct out *o, const struct an_value *cpu)
{
	char text[48];

	if (!an_get_u64(cpu, "samples", 0) && an_get_u64(cpu, "samples_left_out", 0)) {
		out_text(o, "  no sample is left of what was asked for\n");
	} else if (!an_get_u64(cpu, "samples", 0)) {
		out_text(o, "  nothing ran for as long as one sample is worth\n");
	} else if (ranked(cpu) >= FEW_SAMPLES) {
		text_ms(cpu, "cpu_time_ms", text, sizeof(text));
		out_printf(o, "  only %s of CPU time were measured: their order means little\n",
			   text);
	} else if (strcmp(an_get_text(cpu, "view", ""), "waiting") != 0 ||
		   text_has(cpu, "samples_waiting")) {
		out_printf(o,
			   "  only %" PRIu64
			   " of them count in this view: their order means little\n",
			   ranked(cpu));
	}
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
	put_head_lines(o, cpu);
	few = top && is_few(cpu);
	if (few || !an_get_u64(cpu, "samples", 0)) {
		put_few(o, cpu);
	} else {
		put_groups(o, an_get(cpu, "modules"), "module");
		put_groups(o, an_get(cpu, "namespaces"), "namespace");
	}
	put_methods(o, cpu, few && top > FEW_ROWS ? FEW_ROWS : top);
	if (!few)
		put_hot_path(o, an_get(cpu, "hot_path"), top);
	put_tree(o, cpu);
	put_threads(o, cpu, top);
	put_processes(o, an_get(cpu, "processes"), top);
}
