/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_GC_INTERNAL_H
#define ANALYZERS_GC_INTERNAL_H

/*
 * Inside of the GC analyzer: gc.c pairs events to collections and pauses, gc_pauses.c keeps the
 * lengths of pauses, gc_report.c writes the section.
 */

#include "analyzers/analyzer.h"
#include "nettrace/idmap.h"

/* --- gc_pauses.c: percentiles of any number of lengths in bounded memory --- */

/*
 * Exact up to GC_MAX_EXACT pauses.  Beyond that a histogram whose steps are below 1 % wide answers
 * for percentiles; count, total and maximum are always exact.
 */
enum { GC_MAX_EXACT = 128 * 1024, GC_STEPS = 128, GC_POWERS = 64 - 7 };

struct gc_pauses {
	const struct nt_alloc *alloc;
	uint64_t count, total_ns, max_ns;
	uint64_t *exact; /* NULL once the histogram has taken over */
	size_t exact_cap;
	uint32_t *histogram; /* GC_POWERS * GC_STEPS, or NULL */
	bool sorted;
};

void gc_pauses_init(struct gc_pauses *p, const struct nt_alloc *alloc);
void gc_pauses_done(struct gc_pauses *p);
NT_MUST_CHECK enum nt_status gc_pauses_add(struct gc_pauses *p, uint64_t ns);
/* The smallest length that percent of all do not exceed; 0 when there are none. */
uint64_t gc_pauses_percentile(struct gc_pauses *p, unsigned percent);

/* --- gc.c --- */

enum gc_type { GC_BLOCKING, GC_BACKGROUND, GC_FOREGROUND, GC_TYPES };

struct gc_collection {
	uint32_t number, generation, reason, type;
	int64_t start_ns, end_ns;
	uint64_t suspend_ns, pause_ns; /* sums over its pauses */
	uint32_t pauses;
	bool used, ended;
	bool have_stats; /* promoted, heap_after, pinned */
	bool have_before;
	uint64_t promoted_bytes, heap_before_bytes, heap_after_bytes, pinned_objects;
};

/* A suspension whose restart has not been seen. */
struct gc_open_pause {
	uint64_t thread;
	int64_t begin_ns, suspended_ns; /* suspended_ns < begin_ns: not yet */
	uint64_t lost; /* events lost when it began */
	bool restarting; /* RestartEEBegin was seen */
	bool for_gc;
	bool started; /* a collection began in it */
	uint32_t number, type; /* of the collection to charge, if started */
};

enum {
	GC_RECENT = 32, /* collections that later events may still refer to */
	GC_MAX_OPEN = 64,
	GC_MAX_KEPT = 8192, /* collections in the report */
	GC_MAX_CALLERS = 4096,
	GC_GENERATIONS = 3,
};

struct gc_class_sum {
	uint64_t count, pause_ns, pause_max_ns;
};

struct gc {
	struct an_shared *shared;
	bool recorded; /* any event of the GC keyword */
	struct gc_collection recent[GC_RECENT]; /* in order of start, modulo GC_RECENT */
	uint64_t started;
	struct gc_collection last_ended; /* a copy for HeapStats: number and type tell which */
	bool have_last_ended;
	struct gc_open_pause open[GC_MAX_OPEN]; /* in order of begin */
	size_t open_count;
	struct gc_collection *kept;
	size_t kept_count, kept_cap;
	uint64_t not_kept;
	struct gc_pauses pauses;
	uint64_t incomplete_start, incomplete_end;
	uint64_t
		dropped_pauses; /* suspensions without an end, or of a collection without a start */
	uint64_t by_generation[GC_GENERATIONS];
	uint64_t background, induced;
	struct gc_class_sum sums[GC_GENERATIONS][GC_TYPES];
	uint64_t suspend_max_ns;
	bool have_promoted;
	uint64_t promoted_bytes;
	uint64_t ticks, allocated_bytes;
	uint64_t sampled; /* AllocationSampled events: ticks are suppressed then */
	uint64_t other_count, other_ns; /* suspensions for other reasons than GC */
	/* Who asked for collections: stacks of GCTriggered with an induced reason. */
	struct nt_idmap callers;
	struct gc_caller {
		uint32_t node;
		uint64_t count;
	} * caller;
	size_t caller_count, caller_cap;
	uint64_t callers_dropped;
};

bool gc_is_induced(uint32_t reason);
/* Sums up what is still in recent; once, when reporting. */
NT_MUST_CHECK enum nt_status gc_finish(struct gc *g);

/* --- gc_report.c --- */

NT_MUST_CHECK enum nt_status gc_report(struct gc *g, struct an_report *out);

#endif
