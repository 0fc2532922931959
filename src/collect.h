/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_H
#define SRC_COLLECT_H

/*
 * Records sessions of processes: each stream goes to a file as it comes, and through the decoder
 * into the analyzers; at the end stands the report.  A run may hold several, see collection.h.
 */

#include <stdbool.h>
#include <stdint.h>

#include "src/analysis.h"
#include "src/ipc_find.h"
#include "src/ipc_wire.h"

/* What all collections of a run share. */
struct collect_settings {
	struct ipc_collect session;
	uint64_t duration_ms; /* 0: until a signal */
	uint64_t timeout_ms, stop_timeout_ms;
	const char *output; /* a pattern of trace_name.h; "-"; NULL: no file */
	bool output_is_default;
	bool force;
	const char *report; /* NULL: standard output, unless the trace goes there */
	enum report_format format;
	struct an_options options;
	bool quiet;
};

/* Who is recorded. */
struct collect_subject {
	const struct ipc_target *target;
	int32_t pid;
	const char *name;
};

/* Everything from opening the files to the reports.  Returns the worst exit code. */
int collect_run(const struct collect_settings *s, const struct collect_subject *subjects,
		size_t count);

#endif
