/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_THREADS_LAST_SAMPLES_H
#define ANALYZERS_THREADS_LAST_SAMPLES_H

/*
 * The newest sample of each thread, and since when its stack has been the same: who asks what
 * threads do needs no more of a recording of any length.
 */

#include "analyzers/analyzer.h"
#include "analyzers/open_waits.h"
#include "nettrace/idmap.h"

struct an_last_sample {
	uint64_t id; /* of the thread */
	int64_t first_ns, last_ns; /* samples */
	int64_t since_ns; /* all samples from then on have that stack */
	uint32_t node; /* of the newest sample */
	bool managed; /* it was taken in managed code, if the runtime is right */
	bool waits_by_event; /* it was inside a wait */
};

struct an_last_samples {
	struct an_shared *shared;
	struct an_open_waits waits;
	struct an_last_sample *rows;
	size_t count, cap, last;
	struct nt_idmap by_id;
	int64_t last_ns; /* the newest of all */
	uint64_t dropped; /* samples of threads that found no room */
};

void an_last_samples_init(struct an_last_samples *l, struct an_shared *shared);
void an_last_samples_done(struct an_last_samples *l);
/* Samples, and the events that begin and end waits. */
bool an_last_samples_wants(const struct nt_event_def *def);
/* Takes only what it wants. */
NT_MUST_CHECK enum nt_status an_last_samples_event(struct an_last_samples *l,
						   const struct nt_event *ev);

#endif
