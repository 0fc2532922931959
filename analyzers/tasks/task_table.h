/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_TASKS_TASK_TABLE_H
#define ANALYZERS_TASKS_TASK_TABLE_H

/*
 * Tasks that are not finished, by id, with who awaits whom.
 *
 * A task is kept only while something about it is open; finished ones leave, so that the table
 * holds what is pending and not what the trace has seen.
 */

#include "nettrace/nettrace.h"

enum { TASK_NONE = UINT32_MAX, TASK_NO_NAME = UINT32_MAX };

struct task {
	uint32_t id;
	uint32_t next; /* in its bucket, or in the free list */
	/* the operation (14), or the scheduling (7): name and stack */
	uint32_t op_name;
	uint32_t op_node;
	int64_t begun_ns, scheduled_ns, started_ns; /* meaning only with the flag */
	uint64_t thread; /* that started it */
	/* what it awaits: as the ContinueWithTaskID of its newest wait (10) */
	uint32_t awaits; /* slot, or TASK_NONE */
	uint32_t wait_node; /* stack of that wait */
	int64_t wait_ns;
	uint32_t waits_done;
	int64_t longest_wait_ns;
	/* who awaits it */
	uint32_t first_waiter;
	uint32_t next_waiter, prev_waiter; /* the list of waiters runs through them */
	uint32_t sync_waiters; /* threads blocked on it */
	bool used;
	bool begun, scheduled, started;
	bool done; /* ended, but a waiter has not been seen to go on */
	bool ready; /* its continuation is queued (12) and has not started (19) */
	uint32_t visited; /* while reporting: the walk that came by */
};

/* Waits of a task that has left, in case it comes back: loops await again and again. */
struct task_history {
	uint32_t id;
	uint32_t waits_done;
	int64_t longest_wait_ns;
};

enum { TASK_HISTORY = 4096 };

struct task_table {
	const struct nt_alloc *alloc;
	struct task *tasks;
	size_t count, cap; /* slots, free ones included */
	size_t live;
	uint32_t free;
	uint32_t *buckets;
	size_t bucket_count;
	struct task_history *history; /* TASK_HISTORY, by id modulo their number */
	uint64_t untracked; /* tasks for which there was no room */
};

NT_MUST_CHECK enum nt_status task_table_init(struct task_table *t, const struct nt_alloc *alloc);
void task_table_done(struct task_table *t);

/* The slot of a task, or TASK_NONE. */
uint32_t task_find(const struct task_table *t, uint32_t id);
/* Ditto, new if need be; TASK_NONE when the table is full, and for id 0, which is no task. */
NT_MUST_CHECK enum nt_status task_take(struct task_table *t, uint32_t id, uint32_t *ret);
/* Removes a task about which nothing is open.  Slots of other tasks stay. */
void task_prune(struct task_table *t, uint32_t slot);
/* c awaits on from now on; TASK_NONE: nothing. */
void task_await(struct task_table *t, uint32_t c, uint32_t on);
/* All that await the task go on. */
void task_resume_waiters(struct task_table *t, uint32_t slot, int64_t time_ns);

#endif
