/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_COLLECT_PROGRESS_H
#define SRC_COLLECT_COLLECT_PROGRESS_H

/*
 * What is said about a running session: on a terminal one line that is rewritten in place,
 * elsewhere a line a minute.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct collect_progress {
	uint64_t elapsed_ns;
	uint64_t duration_ms; /* 0: until a signal */
	uint64_t bytes, events, events_per_s, lost;
	bool stopping;
	unsigned heap_walk; /* the walk of the heap that goes on; 0: none */
	uint64_t heap_objects; /* of it, so far */
	bool waiting; /* for a slow disk */
	bool keys; /* Enter and q stop */
	uint64_t rundown_bytes; /* since the stop */
	const char *live; /* what needs to be known at once; NULL: nothing */
};

/* Whether there is a line that is rewritten in place. */
bool collect_progress_in_place(void);

/* How often it is due; 0: never. */
unsigned collect_progress_ms(bool quiet);
void collect_progress_show(const struct collect_progress *p);
/* Before anything else is said. */
void collect_progress_clear(bool quiet);

/* The text alone; returns buf. */
const char *collect_progress_text(const struct collect_progress *p, char *buf, size_t size);
/* "4.2 MB"; returns buf. */
const char *collect_format_bytes(uint64_t bytes, char *buf, size_t size);

#endif
