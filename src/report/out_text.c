/* SPDX-License-Identifier: MIT */

/* The text report: findings first, then the sections that were asked for. */

#include "src/report/out_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/report/report_out.h"

enum { TEXT_WIDTH = 100 };

static const char *const styles[] = {
	[TEXT_PLAIN] = "",	   [TEXT_BOLD] = "\x1b[1m",	 [TEXT_DIM] = "\x1b[2m",
	[TEXT_RED] = "\x1b[1;31m", [TEXT_YELLOW] = "\x1b[1;33m", [TEXT_CYAN] = "\x1b[36m",
};

static void put_safe(struct out *o, const char *text, size_t len)
{
	size_t used;

	for (size_t i = 0; i < len; i += used) {
		char safe[16];

		utf8_next(text + i, len - i, &used);
		utf8_escape(text + i, used, safe, sizeof(safe));
		out_text(o, safe);
	}
}

void text_put(struct out *o, enum text_style style, const char *text)
{
	bool styled = o->colour && style != TEXT_PLAIN;

	out_text(o, styled ? styles[style] : "");
	put_safe(o, text, strlen(text));
	out_text(o, styled ? "\x1b[0m" : "");
}

void text_head(struct out *o, const char *name)
{
	out_char(o, '\n');
	text_put(o, TEXT_BOLD, name);
	out_char(o, '\n');
}

void text_wrap(struct out *o, size_t indent, const char *mark, const char *text)
{
	size_t margin = indent + strlen(mark), at = margin;
	bool first = true;

	out_printf(o, "%*s%s", (int)indent, "", mark);
	for (text += strspn(text, " \n"); *text; text += strspn(text, " \n")) {
		size_t len = strcspn(text, " \n");

		if (!first && at + 1 + len > TEXT_WIDTH) {
			out_printf(o, "\n%*s", (int)margin, "");
			at = margin;
		} else if (!first) {
			out_char(o, ' ');
			at++;
		}
		put_safe(o, text, len);
		at += len;
		text += len;
		first = false;
	}
	out_char(o, '\n');
}

void text_more(struct out *o, size_t shown, const struct an_value *array, size_t top,
	       const char *what)
{
	/* The analyzer may have cut the list already. */
	if (array && shown < array->count)
		out_printf(o, "  ... %zu more %s: --top 0 shows all\n", array->count - shown, what);
	else if (top && shown == top)
		out_printf(o, "  ... the first %zu %s: --top 0 shows all\n", top, what);
}

bool text_has(const struct an_value *v, const char *path)
{
	const struct an_value *m = an_get(v, path);

	return m && m->kind != AN_NULL;
}

static const char not_recorded[] = "not recorded";

void text_number(const struct an_value *v, const char *path, char *buf, size_t size)
{
	const struct an_value *m = an_get(v, path);

	if (m && m->kind == AN_UINT)
		snprintf(buf, size, "%" PRIu64, m->u);
	else if (m && m->kind == AN_INT)
		snprintf(buf, size, "%" PRId64, m->i);
	else if (m && m->kind == AN_DOUBLE)
		snprintf(buf, size, m->decimals == AN_SHORTEST ? "%.*g" : "%.*f",
			 m->decimals == AN_SHORTEST ? 6 : (int)m->decimals, m->f);
	else
		snprintf(buf, size, "%s", not_recorded);
}

void text_ms(const struct an_value *v, const char *path, char *buf, size_t size)
{
	double ms = an_get_f64(v, path, 0);

	if (!text_has(v, path))
		snprintf(buf, size, "%s", not_recorded);
	else if (ms < 1000)
		snprintf(buf, size, "%.*f ms", ms < 10 ? 3 : ms < 100 ? 2 : 1, ms);
	else if (ms < 600000)
		snprintf(buf, size, "%.*f s", ms < 10000 ? 2 : 1, ms / 1000);
	else
		snprintf(buf, size, "%.1f min", ms / 60000);
}

void text_bytes(const struct an_value *v, const char *path, char *buf, size_t size)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double n = an_get_f64(v, path, 0);
	size_t unit = 0;

	if (!text_has(v, path)) {
		snprintf(buf, size, "%s", not_recorded);
		return;
	}
	for (; n >= 1024 && unit < 5; unit++)
		n /= 1024;
	snprintf(buf, size, "%.*f %s", unit && n < 100 ? 1 : 0, n, units[unit]);
}

size_t text_rows(const struct an_value *array, size_t top)
{
	if (!array || array->kind != AN_ARRAY)
		return 0;
	return top && array->count > top ? top : array->count;
}

const struct an_value *text_first(const struct an_value *array, size_t rows)
{
	return rows ? array->first : NULL;
}

typedef void text_fn(const struct an_value *v, const char *path, char *buf, size_t size);

static void put_cell(struct table *t, const struct an_value *v, const char *path, text_fn *as_text)
{
	char text[48];

	as_text(v, path, text, sizeof(text));
	table_cell(t, "%s", text_has(v, path) ? text : "-");
}

void text_table(struct out *o, struct table *t, const char *layout, const char *const *names)
{
	out_char(o, '\n');
	table_init(t, layout);
	for (; *names; names++)
		table_cell(t, "%s", *names);
}

void text_cell_ms(struct table *t, const struct an_value *v, const char *path)
{
	put_cell(t, v, path, text_ms);
}

void text_cell_number(struct table *t, const struct an_value *v, const char *path)
{
	put_cell(t, v, path, text_number);
}

void text_cell_bytes(struct table *t, const struct an_value *v, const char *path)
{
	put_cell(t, v, path, text_bytes);
}

static void put_finding(struct out *o, const struct an_value *f)
{
	const char *severity = an_get_text(f, "severity", "info");
	enum text_style style = TEXT_CYAN;

	if (strcmp(severity, "critical") == 0)
		style = TEXT_RED;
	else if (strcmp(severity, "warning") == 0)
		style = TEXT_YELLOW;
	out_text(o, "  ");
	text_put(o, style, severity);
	out_printf(o, "%*s", (int)(10 - strlen(severity)), "");
	text_put(o, TEXT_BOLD, an_get_text(f, "title", ""));
	out_printf(o, "  [%s]\n", an_get_text(f, "id", ""));
	if (*an_get_text(f, "evidence", ""))
		text_wrap(o, 12, "", an_get_text(f, "evidence", ""));
	if (*an_get_text(f, "advice", ""))
		text_wrap(o, 12, "-> ", an_get_text(f, "advice", ""));
}

/* Findings that rest on other limits than usual are not taken for the usual ones. */
static void put_limits(struct out *o, const struct an_value *limits)
{
	if (!limits)
		return;
	out_text(o, "\n  Limits moved:");
	for (const struct an_value *v = limits->first; v; v = v->next)
		out_printf(o, "%s %s=%g", v == limits->first ? "" : ",", v->name, v->f);
	out_char(o, '\n');
}

/* Silence of sections that were not looked at says nothing. */
static void put_all_clear(struct out *o, const struct report_choice *choice)
{
	if (!choice->count) {
		out_text(o, "  Nothing stands out in what was recorded.\n");
		return;
	}
	out_text(o, "  Nothing stands out in what was asked for:");
	for (size_t i = 0; i < choice->count; i++)
		out_printf(o, "%s %s", i ? "," : "", choice->sections[i]);
	out_text(o, ".\n");
}

static void put_findings(struct out *o, const struct an_value *root,
			 const struct report_choice *choice)
{
	const struct an_value *findings = an_get(root, "findings");

	text_put(o, TEXT_BOLD, "FINDINGS");
	out_char(o, '\n');
	if (!findings || !findings->count)
		put_all_clear(o, choice);
	for (const struct an_value *f = findings ? findings->first : NULL; f; f = f->next) {
		put_finding(o, f);
		out_text(o, f->next ? "\n" : "");
	}
	put_limits(o, an_get(root, "limits"));
}

/* Sections that have a form of their own; the others are shown as they are in the tree. */
static const struct {
	const char *name;
	void (*put)(struct out *o, const struct an_value *section, size_t top);
} writers[] = {
	{ "cpu", text_cpu },
	{ "gc", text_gc },
	{ "alloc", text_alloc },
	{ "exceptions", text_exceptions },
	{ "jit", text_jit },
	{ "counters", text_counters },
	{ "tasks", text_tasks },
	{ "locks", text_locks },
	{ "threadpool", text_threadpool },
	{ "threads", text_threads },
};

static void put_section(struct out *o, const struct an_value *v, const struct report_choice *choice)
{
	if (strcmp(v->name, "stacks") == 0) {
		text_stacks(o, v, choice);
		return;
	}
	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++) {
		if (strcmp(writers[i].name, v->name) == 0) {
			writers[i].put(o, v, choice->top);
			return;
		}
	}
	text_any(o, v, choice->top);
}

bool report_chosen(const struct report_choice *choice, const char *section)
{
	bool chosen = !choice->count;

	for (size_t i = 0; i < choice->count && !chosen; i++)
		chosen = strcmp(choice->sections[i], section) == 0;
	return chosen;
}

/* Members of the report that are no sections: the summary and the findings show them. */
static bool is_section(const struct an_value *v)
{
	return (v->kind == AN_OBJECT || strcmp(v->name, "counters") == 0 ||
		strcmp(v->name, "stacks") == 0) &&
	       strcmp(v->name, "trace") != 0 && strcmp(v->name, "child") != 0 &&
	       strcmp(v->name, "limits") != 0;
}

/* Nothing in it that a person asked for who named no sections. */
static bool is_empty(const struct an_value *v)
{
	if (strcmp(v->name, "tasks") == 0)
		return !text_rows(an_get(v, "pending"), 0);
	if (strcmp(v->name, "locks") == 0)
		return !text_rows(an_get(v, "waiting"), 0);
	return false;
}

void report_text(struct out *o, const struct an_value *root, const struct report_choice *choice)
{
	put_findings(o, root, choice);
	if (report_chosen(choice, "summary"))
		text_summary(o, root);
	for (size_t i = 0; choice->in_order && i < choice->count; i++) {
		const struct an_value *v = an_get(root, choice->sections[i]);

		if (v && is_section(v) && !is_empty(v))
			put_section(o, v, choice);
	}
	for (const struct an_value *v = root->first; v && !choice->in_order; v = v->next)
		if (is_section(v) && report_chosen(choice, v->name))
			put_section(o, v, choice);
}
