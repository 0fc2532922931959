/* SPDX-License-Identifier: MIT */
#include "src/base/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"

enum { CELL_BYTES = 2048 };

void table_init(struct table *t, const char *layout)
{
	memset(t, 0, sizeof(*t));
	t->layout = layout;
	t->columns = strlen(layout);
	assert(t->columns && t->columns <= TABLE_MAX_COLUMNS);
}

static bool make_room(struct table *t)
{
	size_t room = t->room ? t->room * 2 : 64;
	char **grown;

	if (t->count < t->room)
		return true;
	grown = reallocarray(t->cells, room, sizeof(*grown));
	if (!grown)
		return false;
	t->cells = grown;
	t->room = room;
	return true;
}

void table_cell(struct table *t, const char *fmt, ...)
{
	char text[CELL_BYTES], safe[CELL_BYTES];
	char *copy;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	utf8_escape(text, strlen(text), safe, sizeof(safe));
	copy = make_room(t) ? strdup(safe) : NULL;
	if (copy)
		t->cells[t->count++] = copy;
	else
		t->failed = true;
}

static void measure(const struct table *t, size_t *width)
{
	for (size_t i = 0; i < t->count; i++) {
		size_t n = utf8_columns(t->cells[i]);

		if (n > width[i % t->columns])
			width[i % t->columns] = n;
	}
}

/* Blanks are written only when something follows them. */
static void print_row(const struct table *t, struct out *o, size_t row, const size_t *width)
{
	size_t blanks = 0;

	for (size_t c = 0; c < t->columns; c++) {
		const char *cell = t->cells[row * t->columns + c];
		size_t gap = width[c] - utf8_columns(cell);

		blanks += 2 + (t->layout[c] == 'r' ? gap : 0);
		if (*cell) {
			out_printf(o, "%*s%s", (int)blanks, "", cell);
			blanks = 0;
		}
		blanks += t->layout[c] == 'r' ? 0 : gap;
	}
}

void table_print(struct table *t, struct out *o, bool head)
{
	size_t width[TABLE_MAX_COLUMNS] = { 0 };

	measure(t, width);
	for (size_t row = 0; (row + 1) * t->columns <= t->count; row++) {
		bool bold = head && !row && o->colour;

		out_text(o, bold ? "\x1b[1m" : "");
		print_row(t, o, row, width);
		out_text(o, bold ? "\x1b[0m\n" : "\n");
	}
	if (t->failed)
		out_text(o, "  (out of memory: rows are missing)\n");
	for (size_t i = 0; i < t->count; i++)
		free(t->cells[i]);
	free(t->cells);
	table_init(t, t->layout);
}
