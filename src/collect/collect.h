/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_COLLECT_H
#define SRC_COLLECT_COLLECT_H

/*
 * Records sessions of processes: each stream goes to a file as it comes, and through the decoder
 * into the analyzers; at the end stands the report.  A run may hold several, see collection.h.
 */

#include <stdbool.h>
#include <stdint.h>

#include "analyzers/report.h"
#include "src/collect/event_ids.h"
#include "src/collect/profiles.h"
#include "src/collect/stop_when.h"
#include "src/ipc/ipc_conn.h"
#include "src/ipc/ipc_find.h"
#include "src/ipc/ipc_wire.h"
#include "src/ipc/port_address.h"
#include "src/trace/analysis.h"

/* Who says what used the CPU. */
enum collect_cpu_source {
	COLLECT_CPU_AUTO, /* the best that there is */
	COLLECT_CPU_PERF, /* samples that the kernel takes for us */
	COLLECT_CPU_PROC, /* the runtime's samples, weighed by what /proc says of each thread */
	COLLECT_CPU_EVENTPIPE, /* the runtime's samples alone */
};

/* Who hears the events as they come, besides the analysis; no events: NT_STOPPED ends the
 * recording. */
struct collect_tap {
	enum nt_status (*event)(void *ctx, const struct nt_trace_info *info,
				const struct nt_event *ev);
	void *ctx;
};

/* What came of one process, for who wants more than a printed report. */
struct collect_outcome {
	const struct collect_subject *who;
	const struct an_value *report; /* sealed, dead afterwards; NULL: there is none */
	const char *path; /* of the trace; NULL: none */
	uint64_t file_bytes;
	uint64_t duration_ns; /* from the start of the session to the stop */
	int code; /* of the recording */
};

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
	unsigned heap_walks; /* 0, 1 or 2 */
	bool heap_only; /* when they have ended the recording ends, too */
	bool early_symbols; /* names of methods at the start, too */
	int zstd_level; /* 0: its default */
	uint64_t timeout_ms, stop_timeout_ms;
	const char *output; /* a pattern of trace_name.h; "-"; NULL: no file */
	bool output_is_default;
	bool force;
	const char *report; /* NULL: standard output, unless the trace goes there */
	enum report_format format;
	struct an_options options;
	enum collect_cpu_source cpu_source;
	enum profile_sampler sampler; /* what else the runtime's is wanted for */
	bool kernel_frames; /* in samples of the kernel */
	unsigned cpu_frequency; /* samples of the kernel, in a second of CPU time */
	const struct fail_if *conditions; /* for exit code 4; NULL: none */
	const struct collect_tap *tap; /* then there is no report; NULL: none */
	const char *const *sections; /* to be analysed */
	size_t section_count; /* 0: all */
	/*
	 * Takes each outcome instead of the printed report, and the file's name is not said; NULL:
	 * nobody does.
	 */
	void (*outcome)(void *ctx, const struct collect_outcome *outcome);
	void *outcome_ctx;
	/*
	 * Set when a signal or a key has ended the run.  INT, TERM and HUP are blocked when the run
	 * is over, until the caller has his own handlers again.  NULL: nothing comes afterwards.
	 */
	bool *ret_interrupted;
	bool quiet;
	bool resume; /* a runtime that waits at the port we reach it by is told to go on */
};

/* Who is recorded. */
struct collect_subject {
	const struct ipc_target *target; /* NULL: nothing of it can be seen in /proc */
	int32_t pid; /* as we see it, else as it sees itself */
	const char *name;
	const struct ipc_source *source; /* instead of the target's sockets; NULL: these */
};

/* Whose processes a run records. */
struct collect_plan {
	const struct collect_subject *subjects; /* from the start */
	size_t count;
	const struct port_address *port; /* runtimes that connect to it; NULL: none */
	const char *const *command; /* to be started, then recorded; ends at NULL; NULL: none */
	bool show_child_io;
	bool pass_exit_code; /* of the command, when ours is 0 */
	int32_t tree; /* with its descendants; 0: none */
	const char *wait_for; /* a process of that name, once there is one; NULL: none */
	bool children; /* of the command: every runtime in it, not only the first */
	uint64_t wait_ms; /* for the first process to come; 0 without limit */
};

/* Everything from opening the files to the reports.  Returns the worst exit code. */
int collect_run(const struct collect_settings *s, const struct collect_plan *plan);

#endif
