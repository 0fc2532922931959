/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_PROGRESS_H
#define SRC_COLLECT_PROGRESS_H

/* The one line about a running session that is rewritten in place; only on a terminal. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct collect_progress {
	uint64_t elapsed_ns;
	uint64_t duration_ms; /* 0: until a signal */
	uint64_t bytes, events, lost;
	bool stopping;
	uint64_t rundown_bytes; /* since the stop */
};

bool collect_progress_wanted(bool quiet);
void collect_progress_show(const struct collect_progress *p);
void collect_progress_clear(bool quiet);

/* "4.2 MB"; returns buf. */
const char *collect_format_bytes(uint64_t bytes, char *buf, size_t size);

#endif
