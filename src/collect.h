/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_H
#define SRC_COLLECT_H

/*
 * Records one session of one process: the stream goes to a file as it comes, and through the
 * decoder into the analyzers; at the end stands the report.
 */

#include <stdbool.h>
#include <stdint.h>

#include "src/analysis.h"
#include "src/ipc_find.h"
#include "src/ipc_wire.h"

struct collect_settings {
	const struct ipc_target *target;
	const char *process_name;
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

/* Everything from opening the file to the report.  Returns the exit code. */
int collect_run(const struct collect_settings *s);

#endif
