/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_THREADS_THREAD_STACKS_INTERNAL_H
#define ANALYZERS_THREADS_THREAD_STACKS_INTERNAL_H

/*
 * Inside of the analyzer of threads' stacks: thread_stacks.c follows the events,
 * thread_stacks_report.c says what each thread is doing and writes the section "stacks".
 */

#include "analyzers/analyzer.h"
#include "analyzers/stacks.h"
#include "analyzers/thread_ids.h"
#include "analyzers/threads/last_samples.h"

struct thread_stacks {
	struct an_shared *shared;
	struct an_stacks stacks; /* when reporting */
	struct an_thread_ids ids;
	struct an_last_samples samples;
};

/* --- thread_stacks_report.c --- */

NT_MUST_CHECK enum nt_status thread_stacks_report(struct thread_stacks *t, struct an_report *out);

#endif
