/* SPDX-License-Identifier: MIT */
#ifndef SRC_REPORT_OUT_TEXT_H
#define SRC_REPORT_OUT_TEXT_H

/* Pieces of the text report, shared by its sections. */

#include <stddef.h>

#include "analyzers/report.h"
#include "src/base/output.h"
#include "src/base/table.h"
#include "src/report/report_out.h"

enum text_style { TEXT_PLAIN, TEXT_BOLD, TEXT_DIM, TEXT_RED, TEXT_YELLOW, TEXT_CYAN };

/* Text from outside, safe to show. */
void text_put(struct out *o, enum text_style style, const char *text);
/* An empty line, then the name of a section. */
void text_head(struct out *o, const char *name);
/* Words in lines of 100 columns at most, indented; the mark stands before the first. */
void text_wrap(struct out *o, size_t indent, const char *mark, const char *text);
/* "... 133 more methods: --top 0 shows all" when rows were, or may have been, left out. */
void text_more(struct out *o, size_t shown, const struct an_value *array, size_t top,
	       const char *what);

/* "not recorded" for what is null or absent. */
void text_number(const struct an_value *v, const char *path, char *buf, size_t size);
/* "12.345 ms", "1.20 s" */
void text_ms(const struct an_value *v, const char *path, char *buf, size_t size);
/* "1.5 MiB" */
void text_bytes(const struct an_value *v, const char *path, char *buf, size_t size);
bool text_has(const struct an_value *v, const char *path); /* there, and not null */

/* Rows to show of an array, and the first of them (NULL when there are none). */
size_t text_rows(const struct an_value *array, size_t top);
const struct an_value *text_first(const struct an_value *array, size_t rows);

/* A cell of a row's table with that member of it; "-" for what is null or absent. */
void text_cell_ms(struct table *t, const struct an_value *v, const char *path);
void text_cell_number(struct table *t, const struct an_value *v, const char *path);
void text_cell_bytes(struct table *t, const struct an_value *v, const char *path);

/* An empty line, and a table with its heads (names ends at NULL). */
void text_table(struct out *o, struct table *t, const char *layout, const char *const *names);

void text_summary(struct out *o, const struct an_value *root);
/* Any section: its numbers, then its lists as tables. */
void text_any(struct out *o, const struct an_value *section, size_t top);
void text_cpu(struct out *o, const struct an_value *cpu, size_t top);
void text_gc(struct out *o, const struct an_value *gc, size_t top);
void text_alloc(struct out *o, const struct an_value *alloc, size_t top);
void text_exceptions(struct out *o, const struct an_value *exceptions, size_t top);
void text_jit(struct out *o, const struct an_value *jit, size_t top);
void text_counters(struct out *o, const struct an_value *counters, size_t top);
void text_tasks(struct out *o, const struct an_value *tasks, size_t top);
void text_locks(struct out *o, const struct an_value *locks, size_t top);
void text_threadpool(struct out *o, const struct an_value *pool, size_t top);
void text_threads(struct out *o, const struct an_value *threads, size_t top);
void text_stacks(struct out *o, const struct an_value *list, const struct report_choice *choice);

#endif
