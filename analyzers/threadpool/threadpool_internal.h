/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_THREADPOOL_THREADPOOL_INTERNAL_H
#define ANALYZERS_THREADPOOL_THREADPOOL_INTERNAL_H

/*
 * Inside of the thread-pool analyzer: threadpool.c follows the pool's own events,
 * threadpool_samples.c counts samples of its workers, threadpool_queue.c measures how long work
 * waits, threadpool_report.c judges and writes the section.
 */

#include "analyzers/analyzer.h"
#include "analyzers/open_waits.h"
#include "analyzers/spread.h"
#include "analyzers/stacks.h"
#include "nettrace/idmap.h"

/* --- threadpool_samples.c --- */

/*
 * Which stacks belong to workers is known only at the end, so samples are counted by stack in
 * windows of time.  A window has a quarter of a second at first; when there are too many windows
 * or stacks, two become one.
 */
enum { POOL_WINDOWS = 128, POOL_NONE = UINT32_MAX };

struct pool_cell {
	uint32_t window, node;
	bool by_event; /* the thread was waiting, by events */
	uint32_t count;
};

/* Who was sampled where. */
struct pool_slot {
	uint32_t thread, node;
	bool by_event;
	uint64_t count;
};

struct pool_thread {
	uint64_t id;
	/* Of the newest sample, since the next one is most likely alike. */
	uint32_t node, cell, slot;
	bool by_event;
};

struct pool_samples {
	const struct nt_alloc *alloc;
	int64_t start_ns, last_ns;
	uint64_t width_ns;
	bool any;
	uint32_t rounds[POOL_WINDOWS];
	struct pool_cell *cells;
	size_t cell_count, cell_cap;
	struct nt_idmap cell_by_key;
	struct pool_slot *slots;
	size_t slot_count, slot_cap;
	struct nt_idmap slot_by_key;
	struct pool_thread *threads;
	size_t thread_count, thread_cap, last_thread;
	struct nt_idmap thread_by_id;
	uint64_t dropped; /* samples that found no room */
};

void pool_samples_init(struct pool_samples *s, const struct nt_alloc *alloc);
void pool_samples_done(struct pool_samples *s);
NT_MUST_CHECK enum nt_status pool_samples_add(struct pool_samples *s, int64_t time_ns,
					      uint64_t thread, uint32_t node, bool by_event);

/* --- threadpool_queue.c --- */

/* Where the times come from: events of tasks, or of the pool itself. */
enum pool_source { POOL_TASKS, POOL_WORK, POOL_SOURCES };

enum { POOL_QUEUE_SLOTS = 32 * 1024 }; /* a power of two */

struct pool_entry {
	uint64_t id; /* 0: free */
	int64_t queued_ns;
};

struct pool_queue {
	struct pool_entry *entries; /* POOL_QUEUE_SLOTS by hash of the id, or NULL: never used */
	uint64_t queued, started; /* in the session; started: only what was queued in it */
	uint64_t waiting; /* entries in use */
	uint64_t evicted; /* had no room: neither started nor waiting */
	struct an_spread delays;
};

void pool_queue_done(struct pool_queue *q, const struct nt_alloc *alloc);
NT_MUST_CHECK enum nt_status pool_queue_put(struct pool_queue *q, const struct nt_alloc *alloc,
					    uint64_t id, int64_t now_ns);
NT_MUST_CHECK enum nt_status pool_queue_take(struct pool_queue *q, const struct nt_alloc *alloc,
					     uint64_t id, int64_t now_ns);
/* How long the oldest one waits; 0 when none does. */
uint64_t pool_queue_oldest_ns(const struct pool_queue *q, int64_t now_ns);

/* --- threadpool.c --- */

enum {
	POOL_REASONS = 9,
	POOL_STARVATION = 6, /* reasons that say that workers are blocked */
	POOL_COOPERATIVE = 8,
	POOL_HISTORY = 256, /* the newest ones are kept */
	POOL_SETTINGS = 16,
};

struct pool_adjustment {
	int64_t time_ns;
	uint32_t workers, reason;
	double throughput;
};

struct pool_setting {
	int64_t time_ns;
	uint32_t min_workers, max_workers, min_io, max_io;
};

struct pool {
	struct an_shared *shared;
	struct an_stacks stacks; /* when reporting */
	struct an_open_waits waits;
	struct pool_samples samples;
	struct pool_queue queues[POOL_SOURCES];
	/* adjustments */
	uint64_t adjustments, by_reason[POOL_REASONS], other_reasons;
	struct pool_adjustment first, history[POOL_HISTORY]; /* modulo POOL_HISTORY */
	uint32_t workers_max;
	uint64_t injected; /* adjustments for blocked workers that raised the count */
	/* workers */
	bool have_active;
	uint32_t active_last, active_max;
	struct pool_setting settings[POOL_SETTINGS];
	size_t setting_count;
	uint64_t settings_dropped;
	bool recorded; /* any event of the pool */
};

/* --- threadpool_report.c --- */

NT_MUST_CHECK enum nt_status pool_report(struct pool *p, struct an_report *out);

#endif
