/* SPDX-License-Identifier: MIT */

/* A section of the report as it is in the tree: its numbers, then its lists as tables. */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "src/report/out_text.h"

static bool is_nested(const struct an_value *v)
{
	return v->kind == AN_OBJECT || v->kind == AN_ARRAY;
}

static void text_of(const struct an_value *v, const char *missing, char *buf, size_t size);

/* "A, B, C": a list inside a row. */
static void join(const struct an_value *list, char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	for (const struct an_value *v = list->first; v && n + 1 < size; v = v->next) {
		if (is_nested(v))
			continue;
		n += (size_t)snprintf(buf + n, size - n, "%s", n ? ", " : "");
		if (n + 1 < size)
			text_of(v, "-", buf + n, size - n);
		n = strlen(buf);
	}
}

static void text_of(const struct an_value *v, const char *missing, char *buf, size_t size)
{
	const char *text = missing;

	switch (v->kind) {
	case AN_UINT:
		snprintf(buf, size, "%llu", (unsigned long long)v->u);
		return;
	case AN_INT:
		snprintf(buf, size, "%lld", (long long)v->i);
		return;
	case AN_DOUBLE:
		snprintf(buf, size, "%.*f", (int)v->decimals, v->f);
		return;
	case AN_BOOL:
		text = v->u ? "yes" : "no";
		break;
	case AN_TEXT:
		text = v->text;
		break;
	case AN_NULL:
	case AN_OBJECT:
	case AN_ARRAY:
		break;
	}
	snprintf(buf, size, "%s", text);
}

static void put_scalars(struct out *o, const struct an_value *section)
{
	struct table t;
	char text[1024];

	table_init(&t, "ll");
	for (const struct an_value *v = section->first; v; v = v->next) {
		if (is_nested(v))
			continue;
		text_of(v, "not recorded", text, sizeof(text));
		table_cell(&t, "%s", v->name);
		table_cell(&t, "%s", text);
	}
	table_print(&t, o, false);
}

/* The columns are the members of the first row that a table can hold. */
static size_t choose_columns(const struct an_value *row, const char **names, char *layout)
{
	size_t n = 0;

	for (const struct an_value *v = row->first; v && n < TABLE_MAX_COLUMNS; v = v->next) {
		if (v->kind == AN_OBJECT)
			continue;
		names[n] = v->name;
		layout[n++] = v->kind == AN_TEXT || v->kind == AN_ARRAY ? 'l' : 'r';
	}
	layout[n] = '\0';
	return n;
}

static void put_row(struct table *t, const struct an_value *row, const char **names, size_t count)
{
	char text[1024];

	for (size_t i = 0; i < count; i++) {
		const struct an_value *v = an_get(row, names[i]);

		if (!v)
			snprintf(text, sizeof(text), "-");
		else if (v->kind == AN_ARRAY)
			join(v, text, sizeof(text));
		else
			text_of(v, "-", text, sizeof(text));
		table_cell(t, "%s", text);
	}
}

static void put_list(struct out *o, const struct an_value *list, size_t top)
{
	const char *names[TABLE_MAX_COLUMNS];
	char layout[TABLE_MAX_COLUMNS + 1];
	size_t rows = text_rows(list, top), columns;
	const struct an_value *v = rows ? list->first : NULL;
	struct table t;

	if (!v || v->kind != AN_OBJECT)
		return;
	columns = choose_columns(v, names, layout);
	if (!columns)
		return;
	out_printf(o, "\n  %s\n", list->name);
	table_init(&t, layout);
	for (size_t i = 0; i < columns; i++)
		table_cell(&t, "%s", names[i]);
	for (size_t i = 0; i < rows; i++, v = v->next)
		put_row(&t, v, names, columns);
	table_print(&t, o, true);
	text_more(o, rows, list, top, list->name);
}

void text_any(struct out *o, const struct an_value *section, size_t top)
{
	char head[64];
	size_t n = 0;

	for (; section->name[n] && n + 1 < sizeof(head); n++)
		head[n] = (char)toupper((unsigned char)section->name[n]);
	head[n] = '\0';
	text_head(o, head);
	put_scalars(o, section);
	for (const struct an_value *v = section->first; v; v = v->next)
		if (v->kind == AN_ARRAY)
			put_list(o, v, top);
}
