/* SPDX-License-Identifier: MIT */
#ifndef SRC_BASE_TABLE_H
#define SRC_BASE_TABLE_H

/*
 * Columns that line up.  Cells are given row by row; text that came from outside is made safe to
 * show.  Running out of memory shows in the table itself: table_print() says so.
 */

#include <stdbool.h>
#include <stddef.h>

#include "src/base/output.h"

enum { TABLE_MAX_COLUMNS = 12 };

struct table {
	size_t columns;
	const char *layout; /* a letter a column: 'l' left, 'r' right */
	char **cells; /* row by row, the head first */
	size_t count, room;
	bool failed;
};

/* layout: as many letters as columns, "rrl". */
void table_init(struct table *t, const char *layout);
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Heads are in bold on a terminal; every line is indented by two columns.  Frees the cells. */
void table_print(struct table *t, struct out *o, bool head);

#endif
