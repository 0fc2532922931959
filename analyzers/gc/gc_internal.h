/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_GC_GC_INTERNAL_H
#define ANALYZERS_GC_GC_INTERNAL_H

/*
 * Inside of the GC analyzer: gc.c pairs events to collections and pauses, gc_detail.c reads what
 * one collection did, gc_pauses.c keeps the lengths of pauses and gc_mutator.c how little time the
 * program got, gc_report.c writes the section, gc_rows.c its collections, gc_findings.c judges.
 */

#include "analyzers/analyzer.h"
#include "analyzers/rate.h"
#include "analyzers/textset.h"
#include "nettrace/idmap.h"

/* --- gc_pauses.c: percentiles of any number of lengths in bounded memory --- */

/*
 * Exact up to GC_MAX_EXACT pauses.  Beyond that a histogram whose steps are below 1 % wide answers
 * for percentiles; count, total and maximum are always exact.
 */
enum {
	GC_MAX_EXACT = 128 * 1024,
	GC_STEPS = 128,
	GC_POWERS = 64 - 7,
	GC_BUCKETS = 16, /* of the histogram in the report: below 0.125 ms, twice that, … */
};

struct gc_pauses {
	const struct nt_alloc *alloc;
	uint64_t count, total_ns, max_ns;
	uint64_t *exact; /* NULL once the histogram has taken over */
	size_t exact_cap;
	uint32_t *histogram; /* GC_POWERS * GC_STEPS, or NULL */
	bool sorted;
	uint64_t bucket[GC_BUCKETS];
};

void gc_pauses_init(struct gc_pauses *p, const struct nt_alloc *alloc);
void gc_pauses_done(struct gc_pauses *p);
NT_MUST_CHECK enum nt_status gc_pauses_add(struct gc_pauses *p, uint64_t ns);
/* The smallest length that percent of all do not exceed; 0 when there are none. */
uint64_t gc_pauses_percentile(struct gc_pauses *p, unsigned percent);
/* The length below which the pauses of a bucket are, in ms; the last bucket has no end. */
double gc_pauses_bucket_ms(size_t bucket);

/* --- gc_mutator.c: the least that the program ran in any window of some length --- */

enum { GC_WINDOWS = 3, GC_WINDOW_PAUSES = 4096 };

extern const unsigned gc_window_ms[GC_WINDOWS];

struct gc_mutator {
	/* The newest pauses, modulo GC_WINDOW_PAUSES; from[] is the oldest in each window. */
	struct gc_span {
		int64_t begin_ns, end_ns;
	} pause[GC_WINDOW_PAUSES];
	uint64_t count, from[GC_WINDOWS];
	uint64_t sum_ns[GC_WINDOWS], worst_ns[GC_WINDOWS];
};

/* In the order of their ends. */
void gc_mutator_add(struct gc_mutator *m, int64_t begin_ns, int64_t end_ns);
/* Percent of the worst window in which the program ran. */
double gc_mutator_percent(const struct gc_mutator *m, size_t window);

/* --- gc.c --- */

enum gc_type { GC_BLOCKING, GC_BACKGROUND, GC_FOREGROUND, GC_TYPES };

enum {
	GC_SIZES = 5, /* generations 0, 1, 2, large objects, pinned objects */
	GC_LARGE = 3,
	GC_PINNED = 4,
	GC_PHASES = 8,
	GC_ROOTS = 10, /* kinds of roots */
	GC_HEAPS = 64, /* whose marking is told apart */
};

struct gc_sizes {
	uint64_t before, free_before, after, free_after, survived;
};

/* What marking from one kind of roots took in one heap. */
struct gc_mark {
	uint32_t heap, roots;
	int64_t until_ns; /* the last event */
	uint64_t ns, bytes;
};

struct gc_collection {
	uint32_t number, generation, reason, type;
	int64_t start_ns, end_ns;
	uint64_t suspend_ns, pause_ns; /* sums over its pauses */
	uint32_t pauses;
	bool used, ended;
	/* From HeapStats. */
	bool have_stats;
	unsigned size_count; /* GC_SIZES, or one less before there were pinned objects' heaps */
	uint64_t promoted_bytes, heap_after_bytes, pinned_objects, handles;
	uint64_t finalizable, finalizable_bytes; /* that survived to be finalized */
	uint64_t promoted[GC_SIZES];
	/* From PerHeapHistory, sums over heaps. */
	uint32_t heaps; /* events seen; 0: nothing is known */
	uint64_t heap_before_bytes;
	struct gc_sizes sizes[GC_SIZES];
	uint32_t compact; /* bits of CompactMechanisms of any heap */
	/* From GlobalHeapHistory. */
	bool have_global, have_pause_mode, have_condemned;
	uint32_t heap_count, mechanisms, pause_mode, memory_load;
	uint64_t budget_bytes;
	uint32_t condemned0, condemned1; /* why this generation */
	uint32_t phases, phase_us[GC_PHASES];
	uint64_t committed_bytes; /* from CommittedUsage; 0: not known */
	/* From GCTriggered. */
	bool triggered;
	uint32_t trigger_node;
	uint64_t trigger_thread;
	struct gc_mark *marks;
	size_t mark_count, mark_cap;
};

/* A suspension whose restart has not been seen. */
struct gc_open_pause {
	uint64_t thread;
	int64_t begin_ns, suspended_ns; /* suspended_ns < begin_ns: not yet */
	uint64_t lost; /* events lost when it began */
	uint64_t runner; /* thread that allocated after the request to stop; UINT64_MAX: none */
	bool restarting; /* RestartEEBegin was seen */
	bool for_gc;
	uint32_t reason;
	bool started; /* a collection began in it */
	uint32_t number, type; /* of the collection to charge, if started */
};

enum {
	GC_RECENT = 32, /* collections that later events may still refer to */
	GC_MAX_OPEN = 64,
	GC_MAX_KEPT = 8192, /* collections in the report */
	GC_MIN_KEPT = 256, /* as many in any case */
	GC_MAX_MARKS = 64 * 1024, /* of all collections kept */
	GC_MAX_CALLERS = 4096,
	GC_MAX_PINNED_TYPES = 500,
	GC_GENERATIONS = 3,
	GC_SLOW = 10, /* suspensions that are listed */
	GC_SUSPEND_REASONS = 9, /* the last one: unknown */
};

struct gc_class_sum {
	uint64_t count, pause_ns, pause_max_ns;
};

/* Suspensions for something else than a collection. */
struct gc_other_sum {
	uint64_t count, ns, max_ns;
};

struct gc_slow_suspension {
	int64_t begin_ns;
	uint64_t ns, thread, runner;
	uint32_t number; /* of the collection */
};

/* Sums over all collections of which sizes are known, by generation. */
struct gc_generation_sum {
	uint64_t live_before, survived; /* where it was collected */
	uint64_t after, free_after, after_max; /* the newest; the largest */
	uint64_t promoted;
	int64_t until_ns; /* of the newest */
	uint32_t collected;
	bool known;
};

struct gc_finalizers {
	bool recorded;
	uint64_t runs, count, ns, max_ns;
	int64_t since_ns; /* running since; -1: not */
	uint64_t survivors_max; /* after one collection */
	uint64_t survivors; /* of all */
};

struct gc {
	struct an_shared *shared;
	bool recorded; /* any event of the GC keyword */
	struct gc_collection recent[GC_RECENT]; /* in order of start, modulo GC_RECENT */
	uint64_t started;
	uint32_t last_number, last_type; /* that ended, for HeapStats */
	bool have_last_ended;
	struct gc_open_pause open[GC_MAX_OPEN]; /* in order of begin */
	size_t open_count;
	struct gc_collection *kept;
	size_t kept_count, kept_cap;
	uint64_t not_kept;
	size_t marks_kept;
	struct gc_pauses pauses;
	struct gc_mutator mutator;
	uint64_t incomplete_start, incomplete_end;
	uint64_t
		dropped_pauses; /* suspensions without an end, or of a collection without a start */
	uint64_t by_generation[GC_GENERATIONS];
	uint64_t background, induced, large;
	uint64_t walks; /* of the heap: these collections a tool asked for */
	struct gc_class_sum sums[GC_GENERATIONS][GC_TYPES];
	uint64_t suspend_max_ns;
	struct gc_slow_suspension slow[GC_SLOW]; /* longest first */
	size_t slow_count;
	struct gc_other_sum other[GC_SUSPEND_REASONS];
	bool have_promoted;
	uint64_t promoted_bytes;
	struct gc_generation_sum generations[GC_SIZES];
	uint64_t root_ns[GC_ROOTS], root_bytes[GC_ROOTS];
	bool have_roots;
	uint32_t heap_count; /* the most */
	uint64_t committed_bytes, committed_max_bytes; /* 0: not known */
	uint64_t budget_bytes; /* of generation 0, the newest */
	/* Allocation. */
	uint64_t ticks, allocated_bytes;
	struct an_rate rate;
	uint64_t sampled; /* AllocationSampled events: ticks are suppressed then */
	/* ... and from how much generations grew between two collections. */
	bool have_after;
	uint64_t after[GC_SIZES]; /* the last collection that was no background one left */
	int64_t after_ns;
	uint64_t grown_bytes, grown_ns;
	struct an_rate grown;
	/* Who asked for collections: stacks of GCTriggered with an induced reason. */
	struct nt_idmap callers;
	struct gc_caller {
		uint32_t node;
		uint64_t count;
	} * caller;
	size_t caller_count, caller_cap;
	uint64_t callers_dropped;
	/* The newest GCTriggered whose collection has not begun. */
	bool triggered;
	uint32_t trigger_node;
	uint64_t trigger_thread;
	/* Pinned objects. */
	uint64_t pinned, pinned_max, pinned_collections;
	struct an_textset pinned_names;
	struct nt_idmap pinned_types; /* by text: index of pinned_type */
	struct gc_pinned {
		uint32_t name;
		uint64_t count, bytes;
	} * pinned_type;
	size_t pinned_count, pinned_cap;
	bool pinned_recorded;
	struct gc_finalizers finalizers;
	uint64_t joins; /* only a server collector has them */
	uint64_t smallest_segment; /* of small objects; 0: none was made */
};

bool gc_is_induced(uint32_t reason);
/* The newest collection of that number that has not ended, or NULL. */
struct gc_collection *gc_find_running(struct gc *g, uint32_t number);
struct gc_collection *gc_find_background(struct gc *g);
/* The newest of that number and type, or NULL. */
struct gc_collection *gc_find(struct gc *g, uint32_t number, uint32_t type);
/* The collection that the collector works on now, or NULL. */
struct gc_collection *gc_current(struct gc *g);
/* Sums up what is still in recent; once, when reporting. */
NT_MUST_CHECK enum nt_status gc_finish(struct gc *g);

/* --- gc_detail.c: each takes the event its name says --- */

void gc_heap_stats(struct gc *g, const struct nt_event *ev);
void gc_per_heap(struct gc *g, const struct nt_event *ev);
void gc_global(struct gc *g, const struct nt_event *ev);
NT_MUST_CHECK enum nt_status gc_mark(struct gc *g, const struct nt_event *ev);
void gc_dynamic(struct gc *g, const struct nt_event *ev);
void gc_segment(struct gc *g, const struct nt_event *ev);
NT_MUST_CHECK enum nt_status gc_pinned_object(struct gc *g, const struct nt_event *ev);
void gc_finalizers_begin(struct gc *g, const struct nt_event *ev);
void gc_finalizers_end(struct gc *g, const struct nt_event *ev);
/* Adds what a whole collection did to the sums of generations. */
void gc_sum_sizes(struct gc *g, const struct gc_collection *c);

/* --- gc_rows.c --- */

const char *gc_reason_name(uint32_t reason);
const char *gc_type_name(uint32_t type);
const char *gc_size_name(size_t size); /* "gen0", …, "loh", "poh" */
const char *gc_roots_name(uint32_t roots);
void gc_add_known_ms(struct an_value *v, const char *name, bool known, double ms);
/* The longest pauses first; all of them (top 0) in the order of time. */
void gc_add_collections(struct gc *g, struct an_value *v);
/* The innermost frame outside the base library, or else the first outside System.GC; or NULL. */
const struct an_method *gc_caller_of(const struct an_calltree *tree, uint32_t node);

/* --- gc_findings.c --- */

struct gc_caller_row {
	const struct an_method *method; /* NULL: no stack, or no names */
	uint64_t count;
};

/* Callers by count, most first. */
void gc_findings(struct gc *g, const struct gc_caller_row *callers, size_t count,
		 struct an_report *out);
/* Bytes in a second as far as known, from the best source; -1 unknown. */
double gc_allocation_rate(const struct gc *g);

/* --- gc_report.c --- */

NT_MUST_CHECK enum nt_status gc_report(struct gc *g, struct an_report *out);
/* After the other sections: who allocates is known now. */
void gc_conclude(struct gc *g, struct an_report *out);

static inline double gc_ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

#endif
