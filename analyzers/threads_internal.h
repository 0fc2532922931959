/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_THREADS_INTERNAL_H
#define ANALYZERS_THREADS_INTERNAL_H

/*
 * Inside of the thread analyzer: threads.c follows events and samples, threads_report.c finds the
 * threads that nobody needs any more and writes the section.
 */

#include "analyzers/analyzer.h"
#include "analyzers/open_waits.h"
#include "analyzers/spread.h"
#include "analyzers/stacks.h"
#include "analyzers/thread_ids.h"
#include "nettrace/idmap.h"

/* What samples say of a thread. */
struct seen_thread {
	uint64_t id;
	int64_t first_ns, last_ns; /* samples */
	uint32_t node; /* of the newest sample */
	int64_t since_ns; /* all samples from then on have that stack */
	bool waits_by_event; /* the newest sample was inside a wait */
};

struct threads {
	struct an_shared *shared;
	struct an_stacks stacks; /* when reporting */
	struct an_thread_ids ids;
	struct an_open_waits waits;
	struct seen_thread *seen;
	size_t seen_count, seen_cap, last_seen;
	struct nt_idmap by_id;
	int64_t last_sample_ns;
	bool sampled;
	uint64_t dropped; /* samples of threads that found no room */
	bool recorded; /* any event about threads that is not of the rundown */
};

/* --- threads_report.c --- */

NT_MUST_CHECK enum nt_status threads_report(struct threads *t, struct an_report *out);

#endif
