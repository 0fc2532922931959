/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_TASKS_TASKS_INTERNAL_H
#define ANALYZERS_TASKS_TASKS_INTERNAL_H

/*
 * Inside of the tasks analyzer: tasks.c follows the events, tasks_rows.c makes rows of what is
 * pending at the end, tasks_report.c writes the section and its findings.
 */

#include "analyzers/analyzer.h"
#include "analyzers/heap/tasks_heap.h"
#include "analyzers/tasks/task_table.h"
#include "nettrace/arena.h"
#include "nettrace/idmap.h"

/* A name of operations, as the runtime wrote it: "Async: <Fetch>d__2". */
struct task_op_name {
	const char *text;
	uint64_t begun, ended;
	int64_t longest_ns;
};

enum { TASKS_SYNC_DEPTH = 8 };

struct tasks_sync_wait {
	uint32_t task_id;
	uint32_t node; /* stack */
	int64_t since_ns;
};

struct tasks_thread {
	uint64_t id;
	/* waits of this thread that have not ended (10 with Behavior 1), the newest last */
	struct tasks_sync_wait waits[TASKS_SYNC_DEPTH];
	unsigned depth;
	/* samples: the newest stack, and since when it has not changed */
	bool sampled;
	uint32_t node;
	int64_t since_ns, last_ns;
};

struct tasks {
	struct an_shared *shared;
	struct task_table table;
	struct nt_arena name_arena;
	struct task_op_name *names;
	size_t name_count, name_cap;
	struct nt_idmap names_by_hash;
	struct tasks_thread *threads;
	size_t thread_count, thread_cap;
	struct nt_idmap threads_by_id;
	struct an_heap_tasks *heap; /* what heap walks show, whatever events there are */
	bool recorded; /* any event of TplEventSource */
	bool operations; /* any TraceOperationBegin: .NET Core 3.1 sends none */
	uint64_t begun, ended, scheduled, started, abandoned;
};

/* --- tasks_rows.c --- */

enum tasks_state { TASKS_AWAITING, TASKS_BLOCKED, TASKS_QUEUED, TASKS_RUNNING, TASKS_READY };

/* Pending work of one kind: everything that waits in the same way. */
struct tasks_row {
	uint32_t task_id; /* of the oldest; 0 unknown */
	const char *method;
	enum tasks_state state;
	int64_t age_ns, youngest_ns; /* of the oldest, and of the youngest */
	bool age_at_least; /* it began before it was first seen */
	uint64_t count;
	const char **chain; /* names from the innermost wait outwards */
	size_t chain_count;
	const char *waiting_on;
	uint64_t thread; /* UINT64_MAX: none */
	uint32_t node; /* its stack, of a blocked thread; else AN_NODE_NONE */
	uint32_t op_name; /* of the outermost task, or TASK_NO_NAME */
	bool timer; /* waits for a timer in the end */
	bool cycle; /* waits for itself */
	bool starved; /* of blocked threads: what one waits for only needs a free thread */
	uint64_t hash; /* of what makes rows equal */
};

struct tasks_rows {
	const struct tasks *tasks;
	struct nt_arena arena; /* names and chains */
	struct tasks_row *rows; /* most important first */
	size_t count, cap;
	struct nt_idmap by_hash; /* row by its hash */
	struct nt_idmap name_by_key; /* place in names, by what a name is made from */
	const char **names;
	size_t name_count, name_cap;
	uint64_t healthy; /* recurring waits, left out */
	uint64_t not_kept; /* kinds beyond the cap */
	uint64_t steps; /* along what tasks await, so far */
};

/* NT_OK, or NT_ENOMEM; tasks_rows_done() either way. */
NT_MUST_CHECK enum nt_status tasks_rows_make(struct tasks_rows *r, struct tasks *t);
void tasks_rows_done(struct tasks_rows *r);

/* --- tasks_names.c --- */

/* The name of a task for people, kept in the arena. */
NT_MUST_CHECK enum nt_status tasks_name(struct tasks_rows *r, const struct task *x,
					const char **ret);
/* The program's frame in which a thread waits for a task. */
const char *tasks_blocking_name(const struct tasks *t, uint32_t node);
/* Whether the thread of this stack waits for a task. */
bool tasks_blocks(const struct tasks *t, uint32_t node);
bool tasks_is_timer(const struct tasks *t, const struct task *x);
/* Task.WhenAll, Task.WhenAny: the name of the combination, or NULL. */
const char *tasks_combinator(const struct tasks *t, const struct task *x);

/* --- tasks_report.c --- */

NT_MUST_CHECK enum nt_status tasks_report(struct tasks *t, struct an_report *out);

#endif
