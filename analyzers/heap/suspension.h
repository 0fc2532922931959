/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_HEAP_SUSPENSION_H
#define ANALYZERS_HEAP_SUSPENSION_H

/*
 * The pause around a walk of the heap: from SuspendEEBegin to RestartEEEnd on one thread.
 *
 * The sampler suspends, too, and may be in the middle of it when a collection asks for its turn.
 * (Section gc follows all suspensions there are.)
 */

#include "nettrace/nettrace.h"

struct an_suspension {
	bool open;
	uint64_t thread;
	int64_t begin_ns;
};

enum { AN_EVENT_RESTARTED = 3, AN_EVENT_SUSPENDING = 9 };

static inline bool an_suspension_wants(const struct nt_event_def *def)
{
	return def->provider_id == NT_PROV_RUNTIME &&
	       (def->event_id == AN_EVENT_RESTARTED || def->event_id == AN_EVENT_SUSPENDING);
}

/* True when the suspension ends with this event: begin_ns is still there. */
static inline bool an_suspension_ends(struct an_suspension *s, const struct nt_event *ev)
{
	if (ev->def->event_id == AN_EVENT_SUSPENDING) {
		struct nt_value v[4];
		size_t n = nt_payload_read(ev, v, 4, NULL);

		if (nt_value_u64(v, n, "Reason", 0) != 0) /* 0: not for a collection */
			*s = (struct an_suspension){ true, ev->thread_id, ev->time_ns };
		return false;
	}
	if (!s->open || ev->thread_id != s->thread)
		return false;
	s->open = false;
	return true;
}

/*
 * How long the suspension was that has ended at restart_ns, if it held the program all the while
 * from begin_ns to end_ns; -1: it was another one.
 */
static inline int64_t an_suspension_around(const struct an_suspension *s, int64_t begin_ns,
					   int64_t end_ns, int64_t restart_ns)
{
	if (s->begin_ns > begin_ns || end_ns > restart_ns)
		return -1;
	return restart_ns - s->begin_ns;
}

#endif
