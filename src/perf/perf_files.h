/* SPDX-License-Identifier: MIT */
#ifndef SRC_PERF_PERF_FILES_H
#define SRC_PERF_PERF_FILES_H

/*
 * Which files a process has mapped as code, and the way to them.  The way is kept from the start:
 * the process may be gone, and its container with it, when their symbols are wanted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/perf/perf_record.h"

struct perf_file_map {
	uint64_t start, last, offset;
	uint8_t build_id[PERF_BUILD_ID_BYTES];
	uint8_t build_id_bytes;
	char *file;
};

struct perf_files {
	struct perf_file_map *maps; /* in the order in which they came: later ones count */
	size_t count, cap;
	uint64_t dropped;
	int root; /* the process's root directory, or -1 */
	int32_t inner_pid; /* as the process sees itself */
	int64_t started; /* when it was started, in s since 1970; what is older is not its own */
};

/* Opens the root and reads what is mapped now. */
void perf_files_init(struct perf_files *f, int32_t pid);
void perf_files_done(struct perf_files *f);

/* A line of /proc/PID/maps without its end; false: no code of a file.  Pure. */
bool perf_files_parse(const char *line, struct perf_mapping *ret);
/* Keeps it, unless it is no code of a file. */
void perf_files_add(struct perf_files *f, const struct perf_mapping *m);

/*
 * Opens a file as the process sees it, never leaving its root whatever links say; a descriptor or
 * -errno.  Only ordinary files.
 */
int perf_files_open(const struct perf_files *f, const char *path);

#endif
