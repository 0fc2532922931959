/* SPDX-License-Identifier: MIT */
#ifndef SRC_COUNTERS_COUNTERS_WRITE_H
#define SRC_COUNTERS_COUNTERS_WRITE_H

/*
 * Readings to a file, each as soon as it comes and with one system call, so that the file is valid
 * whenever we are killed.  JSON ends after every reading; the next one overwrites that end, which
 * takes a file.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzers/counters/counter_event.h"

enum counters_format { COUNTERS_CSV, COUNTERS_JSON, COUNTERS_NDJSON };

struct counters_reading {
	const struct counter_row *row;
	int64_t start_unix_ns; /* of the session; 0 unknown */
	uint32_t twin; /* the n-th instrument of its name and tags in one collection */
	int64_t gap_ns; /* so much longer than it should be since the last one; 0: none */
	double interval_s; /* what a counter's delta belongs to */
};

struct counters_writer;

/* path: NULL or "-" for standard output.  NULL: said on standard error. */
struct counters_writer *counters_writer_open(const char *path, enum counters_format format,
					     bool force);
/* What the file says of the process; before any reading. */
bool counters_writer_begin(struct counters_writer *w, int32_t pid, const char *name);
/* False: it cannot be written any more; why is said at the end. */
bool counters_writer_put(struct counters_writer *w, const struct counters_reading *r);
/* Returns code, or EXIT_FAILED when something could not be written, said.  Frees. */
int counters_writer_close(struct counters_writer *w, int code);

#endif
