/* SPDX-License-Identifier: MIT */
#ifndef NETTRACE_ARENA_H
#define NETTRACE_ARENA_H

/* Memory that is given back all at once: event definitions, stacks of one epoch, labels. */

#include "nettrace/nettrace.h"

struct nt_arena_page;

struct nt_arena {
	const struct nt_alloc *alloc;
	struct nt_arena_page *pages; /* newest first */
	size_t max_bytes; /* of all pages */
	size_t bytes; /* of all pages now */
	bool full; /* a request failed because of max_bytes, not of memory */
};

void nt_arena_init(struct nt_arena *a, const struct nt_alloc *alloc, size_t max_bytes);
void nt_arena_done(struct nt_arena *a);
/* Forgets all content; keeps one page for the next round. */
void nt_arena_clear(struct nt_arena *a);
/* 16-byte aligned, not zeroed.  NULL: out of memory, or max_bytes reached (then a->full is set). */
void *nt_arena_get(struct nt_arena *a, size_t size);
/* Zeroed array; checks n * size. */
void *nt_arena_array(struct nt_arena *a, size_t n, size_t size);
/* A NUL-terminated copy. */
char *nt_arena_text(struct nt_arena *a, const char *text, size_t len);

#endif
