/* SPDX-License-Identifier: MIT */
#ifndef SRC_BASE_TRACE_NAME_H
#define SRC_BASE_TRACE_NAME_H

/* Names of output files: what %p, %n, %t, %h stand for, and names that do not collide. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define TRACE_NAME_DEFAULT "./%n_%p_%t.nettrace"

struct trace_name {
	int32_t pid; /* %p */
	const char *process; /* %n; slashes and what a file name should not hold become '_' */
	time_t time; /* %t: UTC, 20260131T235959Z */
	const char *host; /* %h; NULL: ask the system */
};

/* Whether each % in it stands before one of these letters, or before another: "%%" is a percent
 * sign. */
bool trace_name_is_pattern(const char *text);
#define TRACE_NAME_PATTERN                                                                         \
	"a name in which % stands before p (pid), n (name), t (time), h (host) or % (a percent "   \
	"sign)"

/* Of such a pattern; whatever else follows a % stays as it is.  The caller frees it; NULL: no
 * memory. */
char *trace_name_expand(const char *pattern, const struct trace_name *values);

/* "a.nettrace.zst", 2 -> "a-2.nettrace.zst".  The caller frees it; NULL: no memory. */
char *trace_name_numbered(const char *path, unsigned number);

/* The file of a rotation: "a.nettrace.zst", 2 -> "a.0002.nettrace.zst". */
char *trace_name_piece(const char *path, uint64_t number);

/* Where a number goes: ".nettrace.zst", ".nettrace", ".zst", or the end of the path. */
const char *trace_name_ending(const char *path);

bool trace_name_is_compressed(const char *path);

#endif
