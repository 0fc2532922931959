/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_THREAD_STACKS_INTERNAL_H
#define ANALYZERS_THREAD_STACKS_INTERNAL_H

/*
 * Inside of the analyzer of threads' stacks: thread_stacks.c keeps the newest sample of each
 * thread, thread_stacks_report.c says what the thread is doing and writes the section "stacks".
 */

#include "analyzers/analyzer.h"
#include "analyzers/open_waits.h"
#include "analyzers/spread.h"
#include "analyzers/stacks.h"
#include "analyzers/thread_ids.h"
#include "nettrace/idmap.h"

struct sampled_thread {
	uint64_t id;
	int64_t first_ns, last_ns; /* samples */
	int64_t since_ns; /* all samples from then on have that stack */
	uint32_t node; /* of the newest sample */
	uint64_t samples;
	bool managed; /* the newest sample was taken in managed code, if the runtime is right */
	bool waits_by_event;
};

struct thread_stacks {
	struct an_shared *shared;
	struct an_stacks stacks; /* when reporting */
	struct an_thread_ids ids;
	struct an_open_waits waits;
	struct sampled_thread *threads;
	size_t count, cap, last;
	struct nt_idmap by_id;
	int64_t last_ns;
	uint64_t dropped; /* samples of threads that found no room */
};

/* --- thread_stacks_report.c --- */

NT_MUST_CHECK enum nt_status thread_stacks_report(struct thread_stacks *t, struct an_report *out);

#endif
