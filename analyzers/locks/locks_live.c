/* SPDX-License-Identifier: MIT */

/* A deadlock, while the recording still goes on: nobody should have to wait for its end. */

#include <inttypes.h>
#include <stdio.h>

#include "analyzers/locks/locks_internal.h"
#include "analyzers/text.h"

#define LIVE_NS (2000 * UINT64_C(1000000)) /* it has lasted: clocks may differ by a little */

enum { MAX_NAMED = 4 };

static void describe(const struct lock_graph *g, const struct lock_cycle *c, struct an_live *ret)
{
	struct an_text t = an_text_of(ret->text, sizeof(ret->text));
	uint32_t w = c->first;
	char piece[64];

	an_text_str(&t, "deadlock: threads ");
	for (uint32_t i = 0; i < c->length && i < MAX_NAMED; i++) {
		snprintf(piece, sizeof(piece), "%s%" PRIu64, i ? ", " : "",
			 g->waiters[w].thread->id);
		an_text_str(&t, piece);
		w = g->waiters[w].owner;
	}
	if (c->length > MAX_NAMED) {
		snprintf(piece, sizeof(piece), " and %" PRIu32 " more", c->length - MAX_NAMED);
		an_text_str(&t, piece);
	}
	snprintf(piece, sizeof(piece), " wait for each other's locks, for %.0f s",
		 (double)c->age_ns / 1e9);
	an_text_str(&t, piece);
	if (c->queued) {
		snprintf(piece, sizeof(piece), ", %" PRIu32 " more behind them", c->queued);
		an_text_str(&t, piece);
	}
	ret->id = "locks.deadlock";
}

bool locks_live(struct locks *l, int64_t now_ns, struct an_live *ret)
{
	struct lock_graph g;
	bool found = false;

	if (l->waiting < 2)
		return false;
	l->reading = lock_owner_reading(l);
	if (lock_graph_init(&g, l, now_ns) < 0)
		return false; /* the next look may have more memory; the report says it */
	for (size_t i = 0; i < g.cycle_count && !found; i++) {
		found = g.cycles[i].proven && g.cycles[i].age_ns >= LIVE_NS;
		if (found)
			describe(&g, &g.cycles[i], ret);
	}
	lock_graph_done(&g, l);
	return found;
}
