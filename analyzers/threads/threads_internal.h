/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_THREADS_THREADS_INTERNAL_H
#define ANALYZERS_THREADS_THREADS_INTERNAL_H

/*
 * Inside of the thread analyzer: threads.c follows events and samples, threads_report.c finds the
 * threads that nobody needs any more and writes the section.
 */

#include "analyzers/analyzer.h"
#include "analyzers/stacks.h"
#include "analyzers/thread_ids.h"
#include "analyzers/threads/last_samples.h"

struct threads {
	struct an_shared *shared;
	struct an_stacks stacks; /* when reporting */
	struct an_thread_ids ids;
	struct an_last_samples samples;
	bool recorded; /* any event about threads that is not of the rundown */
};

/* --- threads_report.c --- */

NT_MUST_CHECK enum nt_status threads_report(struct threads *t, struct an_report *out);

#endif
