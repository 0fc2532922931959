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
#include "src/event_ids.h"
#include "src/ipc_find.h"
#include "src/ipc_wire.h"
#include "src/stop_when.h"

/* What all collections of a run share. */
struct collect_settings {
	struct ipc_collect session;
	/*
	 * The same without events of tasks, for a process that has too many of them; without any
	 * provider: they are wanted whatever they cost, or not wanted at all.
	 */
	struct ipc_collect without_tasks;
	const struct event_ids_set *event_ids; /* NULL: no filter */
	const struct stop_when_config *stop_event; /* NULL: none */
	uint64_t duration_ms; /* 0: until a signal */
	uint64_t max_bytes; /* of the file, or of each piece; 0: any */
	uint64_t keep; /* pieces; 0: one file, and max_bytes ends it */
	bool early_symbols; /* names of methods at the start, too */
	int zstd_level; /* 0: its default */
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
