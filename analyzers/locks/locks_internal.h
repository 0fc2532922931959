/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_LOCKS_LOCKS_INTERNAL_H
#define ANALYZERS_LOCKS_LOCKS_INTERNAL_H

/*
 * Inside of the lock analyzer: locks.c follows the events, locks_graph.c finds out at the end who
 * waits for whom, locks_report.c writes the section, locks_findings.c judges.
 *
 * Who holds a lock is known only from others: each thread that begins to wait names the owner of
 * that moment.  The newest naming counts, until a waiter gets the lock (runtime-events.md §8.4).
 */

#include "analyzers/analyzer.h"
#include "analyzers/spread.h"
#include "analyzers/stacks.h"
#include "analyzers/thread_ids.h"
#include "nettrace/idmap.h"

enum {
	LOCK_OWNERS = 4, /* told apart at each call site */
	LOCK_NONE = UINT32_MAX,
};

/* What of a lock's owner is known. */
enum lock_basis {
	OWNER_UNKNOWN,
	OWNER_NAMED, /* by the newest waiter that could tell */
	OWNER_ENTERED, /* it waited and has got the lock since: it may have left it unseen */
};

struct lock {
	uint64_t id, object; /* 0: not recorded */
	uint64_t owner; /* by its basis: as the waiter named it, or an OS thread id */
	enum lock_basis basis;
	bool native; /* a lock of the runtime itself */
	bool shared; /* takes all locks for which there was no room */
	uint32_t changes; /* rises when another thread holds it */
	uint32_t waiting, waiting_max; /* threads, now and at most */
	uint32_t threads; /* different ones that have ever waited */
	/* Convoy: its queue does not empty although the lock goes from one to the next. */
	int64_t queue_since_ns;
	uint32_t queue_stops, queue_max;
	uint32_t convoys;
	uint64_t convoy_ns, convoy_max_ns;
};

struct lock_owner {
	uint64_t id; /* as the event has it */
	uint64_t count;
};

/* One lock at one stack. */
struct lock_site {
	uint32_t lock, node;
	uint64_t starts, open;
	struct an_spread waits;
	struct lock_owner owners[LOCK_OWNERS];
	uint64_t owner_unknown, owner_other;
};

/* Waits for anything else: events, semaphores, other threads (.NET 9 and later). */
struct lock_wait_site {
	uint32_t node;
	uint64_t starts, open;
	struct an_spread waits;
};

/* The two ways to read an owner's id; which is right is known at the end. */
enum lock_reading { READ_OS, READ_MANAGED, READINGS };

/* Samples of the thread that held a lock while others waited. */
struct lock_holder {
	uint32_t lock, node;
	enum lock_reading reading;
	uint64_t samples;
};

/* A lock that a thread was said to hold, while the lock's changes stay the same. */
struct lock_held {
	uint32_t lock; /* or LOCK_NONE */
	uint32_t changes;
};

struct lock_thread {
	uint64_t id;
	/* Waits for a lock; lock is LOCK_NONE when not. */
	uint32_t lock, site;
	int64_t since_ns;
	uint64_t lost; /* events lost when it began: later ones may miss its end */
	/* Waits for something else; depth counts them inside each other. */
	uint32_t wait_depth, wait_site; /* wait_site: LOCK_NONE where it is part of a lock */
	int64_t wait_since_ns;
	struct lock_held holds[READINGS];
	/* Samples: whether it was ever seen elsewhere. */
	uint32_t node;
	bool sampled, moved, contended;
	int64_t first_sample_ns, last_sample_ns;
};

struct locks {
	struct an_shared *shared;
	struct an_stacks stacks; /* when reporting */
	struct an_thread_ids ids;
	struct lock *locks;
	size_t lock_count, lock_cap;
	struct nt_idmap lock_by_id;
	struct lock_site *sites;
	size_t site_count, site_cap;
	struct nt_idmap site_by_key; /* lock and node */
	struct lock_thread *threads;
	size_t thread_count, thread_cap, last_thread;
	struct nt_idmap thread_by_id;
	struct lock_wait_site *waits;
	size_t wait_count, wait_cap;
	struct nt_idmap wait_by_node;
	struct lock_holder *holders;
	size_t holder_count, holder_cap;
	struct nt_idmap holder_by_key;
	struct nt_idmap pairs; /* lock and thread: who has ever waited */
	enum lock_reading reading; /* of owners; set when reporting */
	bool waits_recorded;
	uint64_t starts, stops, stops_without_start, lost_stops;
	uint64_t total_ns, max_ns;
	/* What found no room. */
	uint64_t locks_dropped, sites_dropped, threads_dropped, waits_dropped, holders_dropped;
	bool pairs_full;
	int64_t last_sample_ns;
	size_t waiting; /* threads, for any lock */
};

/* --- locks_live.c --- */

bool locks_live(struct locks *l, int64_t now_ns, struct an_live *ret);

/* --- locks_graph.c --- */

/* A thread that waited for a lock when the observation ended. */
struct lock_waiter {
	const struct lock_thread *thread;
	uint32_t owner; /* index of the waiter that holds what this one waits for, or LOCK_NONE */
	uint64_t owner_os; /* 0: not known */
	uint64_t owner_managed; /* 0: not known */
	uint64_t age_ns;
	uint32_t cycle; /* number of the cycle it is in or queues behind, or LOCK_NONE */
	bool member; /* of the cycle */
	bool orphaned; /* the owner has ended */
	bool proven; /* nothing speaks against the edge to the owner */
};

struct lock_cycle {
	uint32_t first; /* one of its waiters; owner leads to the next */
	uint32_t length, queued;
	uint64_t age_ns; /* of its youngest wait */
	bool proven;
	bool suspected; /* not proven, yet it has lasted */
};

struct lock_graph {
	struct lock_waiter *waiters; /* the longest waits first */
	size_t waiter_count;
	struct lock_cycle *cycles;
	size_t cycle_count;
};

/* Who waits for whom at that time, or at the end. */
NT_MUST_CHECK enum nt_status lock_graph_init(struct lock_graph *g, const struct locks *l,
					     int64_t end_ns);
void lock_graph_done(struct lock_graph *g, const struct locks *l);
/* How owners are named in this trace; for l->reading. */
enum lock_reading lock_owner_reading(const struct locks *l);
/* The OS id of an owner as an event named it; 0: not known.  *ret_managed likewise. */
uint64_t lock_owner_os(const struct locks *l, uint64_t named, uint64_t *ret_managed);

/* --- locks_report.c --- */

/* One lock at one method. */
struct lock_row {
	uint32_t lock, node;
	const struct an_method *site; /* NULL: no name */
	uint64_t starts, open;
	struct an_spread waits;
	struct lock_owner owners[LOCK_OWNERS];
	uint64_t owner_unknown, owner_other;
};

struct lock_rows {
	struct lock_row *rows; /* most time first */
	size_t count;
};

/* The frame to show for a thread at a lock, or NULL. */
const struct an_method *lock_waiter_site(const struct locks *l, const struct lock_waiter *w);
NT_MUST_CHECK enum nt_status locks_report(struct locks *l, struct an_report *out);

/* --- locks_findings.c --- */

void locks_findings(const struct locks *l, const struct lock_graph *g, const struct lock_rows *rows,
		    struct an_report *out);

/* --- locks_stuck.c --- */

/* How one knows that a thread stands at a lock. */
enum lock_stuck {
	STUCK_NOT,
	STUCK_BY_FRAME, /* of the lock */
	STUCK_ASLEEP, /* in a method of the program, before .NET 10: where locks have no frames */
};

/* Of a thread that stood there from its first sample to its last, without a wait that an event
 * began. */
enum lock_stuck lock_thread_is_stuck(const struct locks *l, const struct lock_thread *t);
void locks_check_stuck(const struct locks *l, struct an_report *out);

#endif
