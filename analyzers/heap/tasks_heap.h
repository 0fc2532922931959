/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_HEAP_TASKS_HEAP_H
#define ANALYZERS_HEAP_TASKS_HEAP_H

/*
 * Pending asynchronous work as a heap walk shows it: every async method that waits for something,
 * whenever that began (runtime-events.md §5.8).
 *
 * Feed it the runtime's events, in the order of each thread.  One walk is a picture of a moment and
 * says what is pending; what two walks some seconds apart have in common is stuck.
 *
 *	ht = an_heap_tasks_new(alloc);
 *	for each event: if (an_heap_tasks_wants(ev->def)) an_heap_tasks_event(ht, ev);
 *	an_heap_tasks_finish(ht);
 *	for (i = 0; i < an_heap_tasks_count(ht); i++) an_heap_tasks_chain(ht, i);
 */

#include "analyzers/heap/heap_events.h"
#include "analyzers/report.h"

/* What the innermost method of a chain waits for. */
enum an_leaf {
	AN_LEAF_NONE, /* nothing that can be seen: it runs, or its turn comes */
	AN_LEAF_TASK, /* a task that somebody has to complete */
	AN_LEAF_SOURCE, /* a TaskCompletionSource that somebody has to complete */
	AN_LEAF_WORK, /* a task with code of its own: queued, or running */
	AN_LEAF_SEMAPHORE, /* SemaphoreSlim.WaitAsync */
	AN_LEAF_DELAY, /* Task.Delay */
	AN_LEAF_TIMER, /* PeriodicTimer and the like */
	AN_LEAF_CHANNEL_READ,
	AN_LEAF_CHANNEL_WRITE,
	AN_LEAF_IO, /* sockets, files */
	AN_LEAF_VALUE_TASK, /* another source of a ValueTask */
	AN_LEAF_COMBINED, /* Task.WhenAll and the like, of which no part was found */
	AN_LEAF_CYCLE, /* itself: these methods await each other */
};

/* Equal chains merged into one. */
struct an_heap_chain {
	uint64_t count; /* in the newest walk */
	uint64_t calls; /* of the outermost method; it may wait for several at a time */
	uint64_t count_before; /* in the one before it; 0 when there is only one */
	uint64_t same; /* of these: the same objects in both, at the same addresses */
	const char *method; /* the outermost; a phrase where no method is known */
	const char *const *frames; /* from the innermost outwards; the innermost 64 at most */
	size_t frame_count;
	size_t depth; /* how many there are */
	enum an_leaf leaf;
	const char *waiting_on; /* for people: "SemaphoreSlim.WaitAsync" */
	const char *kept_by; /* the root that keeps alive what is waited for; NULL: not found */
	bool blocked; /* a thread blocks until the outermost one ends (.Result, .Wait()) */
	/* In both walks, and waits for what others should do; with one walk: a circle only. */
	bool stuck;
	bool by_shape; /* stuck, told by shape and number: all objects had moved in between */
	uint64_t hash; /* what makes chains equal */
};

/* What is said of one walk. */
struct an_heap_walk_facts {
	struct an_heapwalk info;
	uint64_t objects, edges, roots, statics, bytes;
	uint64_t types; /* known by then */
	uint64_t unnamed; /* objects whose type has no name */
	uint64_t objects_beyond; /* not looked at, as there were too many */
	uint64_t memory_bytes; /* that the graph took */
	int64_t pause_ns; /* of the collection; -1 not known */
	bool whole; /* of all generations, and nothing is missing */
	uint64_t chains; /* pending, before merging */
	uint64_t suspended; /* async methods that wait */
	uint64_t unknown; /* async methods that wait for nothing that can be seen */
	uint64_t beyond; /* chains not kept: more than there is room for */
};

struct an_heap_tasks;

/* NULL when out of memory. */
struct an_heap_tasks *an_heap_tasks_new(const struct nt_alloc *alloc);
struct an_heap_tasks *an_heap_tasks_free(struct an_heap_tasks *h); /* returns NULL */
bool an_heap_tasks_wants(const struct nt_event_def *def);
NT_MUST_CHECK enum nt_status an_heap_tasks_event(struct an_heap_tasks *h,
						 const struct nt_event *ev);
/* No more events; compares the walks.  Needed before anything below is asked. */
NT_MUST_CHECK enum nt_status an_heap_tasks_finish(struct an_heap_tasks *h);

/* The newest walk: 0; the one it was compared with: 1; NULL when there is none. */
const struct an_heap_walk_facts *an_heap_tasks_facts(const struct an_heap_tasks *h, size_t i);
/* Chains of the newest walk, the worst first. */
size_t an_heap_tasks_count(const struct an_heap_tasks *h);
const struct an_heap_chain *an_heap_tasks_chain(const struct an_heap_tasks *h, size_t i);

/* Rows of tasks.pending[], with "source": "heap"; at most top of them, 0: all. */
void an_heap_tasks_add_rows(const struct an_heap_tasks *h, struct an_value *pending, size_t top);
/* Member "heap" of the section: what the walks were; null where there was none. */
void an_heap_tasks_add_facts(const struct an_heap_tasks *h, struct an_value *section);
void an_heap_tasks_add_findings(const struct an_heap_tasks *h, struct an_report *out);

#endif
