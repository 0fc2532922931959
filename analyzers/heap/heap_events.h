/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_HEAP_HEAP_EVENTS_H
#define ANALYZERS_HEAP_HEAP_EVENTS_H

/*
 * Heap walks out of the runtime's events (runtime-events.md §5.2): the events of one walk come from
 * one thread, between the start and the end of its collection.  There may be several walks in a
 * trace, one after the other or, rarely, mixed; and some are no walk of all generations.
 *
 * Each walk is handed over when it has ended, and gone when that call returns.
 */

#include "analyzers/heap/heapgraph.h"

struct an_heapwalk {
	int64_t begin_ns, end_ns; /* of its collection, or of its events */
	int64_t first_ns, last_ns; /* of its events */
	uint64_t thread;
	bool gc_known; /* the start of its collection was seen; else the next four are unknown */
	uint32_t gc, generation, reason, type;
	bool ended; /* its collection has ended: nothing is missing at the end */
	uint64_t lost_objects, lost_edges, lost_roots, lost_weak; /* events missing in between */
	uint64_t root_rows, static_rows; /* as sent, with those that refer to nothing */
};

/* Whether a walk is of the whole heap and nothing of it is missing. */
bool an_heapwalk_is_whole(const struct an_heapwalk *w, const struct an_heapgraph *g);
/* Whether it can be one of all generations. */
bool an_heapwalk_is_full(const struct an_heapwalk *w);

struct an_heap_events;

struct an_heap_sink {
	/* A walk has ended; the graph is finished.  types: those known so far. */
	enum nt_status (*walk)(void *ctx, const struct an_heapwalk *w, const struct an_heapgraph *g,
			       const struct an_heap_types *types);
};

/* NULL when out of memory. */
struct an_heap_events *an_heap_events_new(const struct nt_alloc *alloc, size_t max_objects,
					  const struct an_heap_sink *sink, void *ctx);
struct an_heap_events *an_heap_events_free(struct an_heap_events *h);
bool an_heap_events_wants(const struct nt_event_def *def);
/* In the order of each thread; threads may be mixed in any way. */
NT_MUST_CHECK enum nt_status an_heap_events_event(struct an_heap_events *h,
						  const struct nt_event *ev);
/* No more will come: walks that did not end are handed over as they are. */
NT_MUST_CHECK enum nt_status an_heap_events_finish(struct an_heap_events *h);
/* Walks that were dropped, as too many were mixed. */
uint64_t an_heap_events_dropped(const struct an_heap_events *h);

#endif
