/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_OPEN_WAITS_H
#define ANALYZERS_OPEN_WAITS_H

/*
 * Which threads wait at the moment, by the events that begin and end waits.  It tells more than
 * stacks: up to .NET 9 a thread at a lock has no frame of the lock.
 */

#include "nettrace/idmap.h"
#include "nettrace/nettrace.h"

struct an_open_waits {
	const struct nt_alloc *alloc;
	struct an_open_wait {
		uint64_t thread;
		uint32_t locks, waits;
		uint64_t lost; /* events lost when it began: later ones may miss its end */
	} * rows;
	size_t count, cap;
	struct nt_idmap by_thread;
	uint64_t dropped; /* events of threads that found no room */
};

void an_open_waits_init(struct an_open_waits *w, const struct nt_alloc *alloc);
void an_open_waits_done(struct an_open_waits *w);
bool an_open_waits_wants(const struct nt_event_def *def);
/* lost: events lost so far.  Takes only what it wants. */
NT_MUST_CHECK enum nt_status an_open_waits_event(struct an_open_waits *w, const struct nt_event *ev,
						 uint64_t lost);
bool an_open_waits_has(const struct an_open_waits *w, uint64_t thread, uint64_t lost);

#endif
