/* SPDX-License-Identifier: MIT */
#ifndef SRC_STACK_STACK_SESSION_H
#define SRC_STACK_STACK_SESSION_H

/*
 * A short session with samples of all threads, watched from /proc meanwhile.
 *
 * It lasts until stacks have come, however busy the machine is, but never beyond its time limit: a
 * process that is stopped, or that gets no processor, answers nobody.
 */

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "src/ipc/ipc_find.h"
#include "src/ipc/ipc_wire.h"
#include "src/ipc/process_list.h"
#include "src/ipc/session.h"
#include "src/proc/proc_threads.h"
#include "src/trace/analysis.h"

struct stack_session_config {
	const struct ipc_target *target;
	const struct ipc_provider *providers;
	size_t provider_count;
	uint64_t watch_ms; /* how long threads are watched, once the session has begun */
	uint64_t timeout_ms; /* for everything */
	unsigned heap_walks; /* 0: none; else the providers ask for them, see heap_walk.h */
	bool quiet; /* walks are not said */
};

struct stack_session_result {
	struct session_end end;
	bool interrupted; /* by a signal: taken as it is */
	bool held; /* it cannot answer: hold says why */
	struct process_hold hold;
	unsigned walked; /* walks of the heap that have ended */
	uint64_t samples, rounds; /* of samples */
	bool threads_known;
	struct proc_threads before, after;
	uint64_t watched_ns;
};

/* Pushes into the decoder of the analysis.  False: out of memory, said. */
bool stack_session_run(const struct stack_session_config *config, struct analysis *analysis,
		       struct stack_session_result *ret);
void stack_session_done(struct stack_session_result *r);

#endif
