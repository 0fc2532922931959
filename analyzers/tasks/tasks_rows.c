/* SPDX-License-Identifier: MIT */

/* What is pending at the end of the trace, equal things merged into one row. */

#include <stdlib.h>

#include "analyzers/grow.h"
#include "analyzers/tasks/tasks_internal.h"

enum {
	MAX_ROWS = 4096,
	HALF_PATH = 32,
	MAX_PATH = 2 * HALF_PATH, /* tasks awaiting each other that are kept: both ends */
	MAX_STEPS = 32 * 1024 * 1024, /* along what tasks await, for all rows */
	MAX_BYTES = 16 << 20,
};

static const int64_t ms_ns = 1000000;
/* A timer pending longer than this is shown. */
static const int64_t timer_ns = INT64_C(10) * 1000 * 1000000;
/* A thread whose newest sample is older than this before the last one of all has ended. */
static const int64_t gone_ns = INT64_C(500) * 1000000;

/* From a task along what it awaits to the one that awaits nothing. */
struct path {
	uint32_t slots[MAX_PATH]; /* the first half and the last one of a long path */
	size_t count;
	size_t depth; /* how long it really is */
	bool cut; /* it ends nowhere: a cycle, or too much to follow */
};

/* The newest HALF_PATH of the tail are kept in a ring. */
static void unroll(struct path *p, const uint32_t *ring, size_t tail)
{
	size_t n = tail < HALF_PATH ? tail : HALF_PATH;

	for (size_t i = 0; i < n; i++)
		p->slots[p->count++] = ring[(tail - n + i) % HALF_PATH];
}

/* A circle is seen by a mark that is set anew at twice the distance each time (Brent). */
static void find_path(struct tasks_rows *r, uint32_t slot, struct path *p)
{
	const struct task_table *t = &r->tasks->table;
	uint32_t ring[HALF_PATH], mark = slot;
	size_t tail = 0, since = 0, limit = 1;

	p->count = 0;
	p->depth = 0;
	p->cut = false;
	for (; slot != TASK_NONE; slot = t->tasks[slot].awaits) {
		p->cut = r->steps >= MAX_STEPS || (p->depth && slot == mark);
		if (p->cut)
			break;
		r->steps++;
		p->depth++;
		if (since++ == limit) {
			mark = slot;
			limit *= 2;
			since = 0;
		}
		if (p->count < HALF_PATH)
			p->slots[p->count++] = slot;
		else
			ring[tail++ % HALF_PATH] = slot;
	}
	unroll(p, ring, tail);
}

static const struct task *task_at(const struct tasks *t, const struct path *p, size_t i)
{
	return &t->table.tasks[p->slots[i]];
}

static const struct task *root_of(const struct tasks *t, const struct path *p)
{
	return task_at(t, p, p->count - 1);
}

/* A method of somebody's, not only a promise that something else completes. */
static bool is_method(const struct tasks *t, const struct task *x)
{
	return (x->begun || x->scheduled || x->started || x->ready || x->awaits != TASK_NONE) &&
	       !tasks_is_timer(t, x) && !tasks_combinator(t, x);
}

/* It could go on if only a thread of the pool were free. */
static bool waits_for_worker(const struct task *root)
{
	return root->done || root->ready || root->scheduled;
}

static const char *describe_root(const struct tasks *t, const struct path *p)
{
	const struct task *x = root_of(t, p);

	if (p->cut)
		return "more tasks than can be shown, or each other";
	if (x->done)
		return "its turn: what it awaited has ended";
	if (tasks_is_timer(t, x))
		return "a timer (Task.Delay)";
	if (tasks_combinator(t, x))
		return tasks_combinator(t, x);
	if (x->scheduled)
		return "a free thread of the pool: the task has not been started";
	if (x->ready)
		return "a free thread of the pool: its continuation has not been started";
	if (x->started)
		return "nothing: the task is running";
	if (x->begun)
		return "something that raises no events (I/O, a ValueTask, or code that runs)";
	return "a task without a begin event: a TaskCompletionSource, I/O, a lock or semaphore, "
	       "or older than the recording";
}

/*
 * A loop that awaits again and again is healthy while its present wait is not out of line with the
 * ones before; so is a timer that is not old.
 */
static bool is_healthy(const struct tasks *t, const struct path *p, int64_t end_ns)
{
	const struct task *root = root_of(t, p);
	const struct task *waiter = p->count > 1 ? task_at(t, p, p->count - 2) : NULL;

	if (p->cut)
		return false;
	if (tasks_is_timer(t, root) && end_ns - root->begun_ns < timer_ns)
		return true;
	if (!waiter || !waiter->waits_done)
		return false;
	return end_ns - waiter->wait_ns <= 2 * waiter->longest_wait_ns + 100 * ms_ns;
}

/* --- rows --- */

static uint64_t hash_text(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 1099511628211u;
	return (h ^ 0xff) * 1099511628211u;
}

/* Names of the path from its root outwards; the first from_ of the path are left out. */
static enum nt_status name_path(struct tasks_rows *r, const struct path *p, size_t from,
				const char **names, size_t *ret_count)
{
	const struct tasks *t = r->tasks;
	size_t n = 0;

	for (size_t i = p->count; i-- > from;) {
		const struct task *x = task_at(t, p, i);

		if (i == HALF_PATH - 1 && p->depth > p->count)
			names[n++] = "...";
		if (i == p->count - 1 && !is_method(t, x))
			continue;
		if (tasks_name(r, x, &names[n]) < 0)
			return NT_ENOMEM;
		n++;
	}
	*ret_count = n;
	return NT_OK;
}

static enum nt_status new_row(struct tasks_rows *r, const struct tasks_row *row,
			      const char *const *names)
{
	struct tasks_row *rows;
	const char **chain;

	if (r->count >= MAX_ROWS) {
		r->not_kept++;
		return NT_OK;
	}
	chain = nt_arena_array(&r->arena, row->chain_count + 1, sizeof(*chain));
	if (!chain) {
		if (!r->arena.full)
			return NT_ENOMEM;
		r->not_kept++;
		return NT_OK;
	}
	rows = an_mem_grow(r->arena.alloc, r->rows, &r->cap, r->count + 1, sizeof(*rows));
	if (!rows)
		return NT_ENOMEM;
	r->rows = rows;
	for (size_t i = 0; i < row->chain_count; i++)
		chain[i] = names[i];
	rows[r->count] = *row;
	rows[r->count].chain = chain;
	rows[r->count].count = 1;
	if (nt_idmap_put(&r->by_hash, row->hash, (uint32_t)r->count) < 0)
		return NT_ENOMEM;
	r->count++;
	return NT_OK;
}

/* Adds one to the row of its kind.  row has everything but the chain and the hash. */
static enum nt_status add_row(struct tasks_rows *r, struct tasks_row *row, const char *const *names,
			      size_t count)
{
	uint64_t h = hash_text(14695981039346656037u + row->state, row->method);
	struct tasks_row *same;
	uint32_t at;

	row->chain_count = count;
	row->youngest_ns = row->age_ns;
	/* Threads blocked in one method are one row, whatever is known of what they wait for. */
	for (size_t i = 0; i < count && row->state != TASKS_BLOCKED; i++)
		h = hash_text(h, names[i]);
	if (row->state != TASKS_BLOCKED)
		h = hash_text(h, row->waiting_on);
	row->hash = h;
	at = nt_idmap_get(&r->by_hash, h);
	if (at == NT_IDMAP_NONE)
		return new_row(r, row, names);
	same = &r->rows[at];
	same->count++;
	if (row->age_ns < same->youngest_ns)
		same->youngest_ns = row->age_ns;
	if (!same->chain_count && same->state == TASKS_BLOCKED && row->task_id) {
		const char **chain = nt_arena_array(&r->arena, count + 1, sizeof(*chain));

		if (!chain && !r->arena.full)
			return NT_ENOMEM;
		for (size_t i = 0; chain && i < count; i++)
			chain[i] = names[i];
		same->chain = chain ? chain : same->chain;
		same->chain_count = chain ? count : 0;
		same->waiting_on = row->waiting_on;
	}
	same->starved = same->starved || row->starved;
	if (row->age_ns <= same->age_ns)
		return NT_OK;
	same->age_ns = row->age_ns;
	same->node = row->node;
	same->age_at_least = row->age_at_least;
	same->thread = row->thread;
	if (row->task_id)
		same->task_id = row->task_id;
	return NT_OK;
}

/* --- threads that block --- */

static enum nt_status add_sync_wait(struct tasks_rows *r, const struct tasks_thread *thread,
				    int64_t end_ns)
{
	const struct tasks *t = r->tasks;
	const struct tasks_sync_wait *w = &thread->waits[thread->depth - 1];
	const char *names[MAX_PATH + 1];
	struct path p;
	size_t n;
	struct tasks_row row = {
		.task_id = w->task_id,
		.method = tasks_blocking_name(t, w->node),
		.state = TASKS_BLOCKED,
		.age_ns = end_ns - w->since_ns,
		.thread = thread->id,
		.node = w->node,
		.op_name = TASK_NO_NAME,
	};

	find_path(r, task_find(&t->table, w->task_id), &p);
	if (!p.count)
		return NT_OK;
	if (name_path(r, &p, 0, names, &n) < 0)
		return NT_ENOMEM;
	row.waiting_on = describe_root(t, &p);
	row.timer = tasks_is_timer(t, root_of(t, &p));
	row.starved = !p.cut && waits_for_worker(root_of(t, &p));
	return add_row(r, &row, names, n);
}

static enum nt_status add_threads(struct tasks_rows *r, int64_t end_ns, int64_t last_sample_ns)
{
	const struct tasks *t = r->tasks;

	for (size_t i = 0; i < t->thread_count; i++) {
		const struct tasks_thread *thread = &t->threads[i];
		enum nt_status st = NT_OK;

		if (thread->depth) {
			st = add_sync_wait(r, thread, end_ns);
		} else if (thread->sampled && thread->last_ns + gone_ns >= last_sample_ns &&
			   tasks_blocks(t, thread->node)) {
			struct tasks_row row = {
				.method = tasks_blocking_name(t, thread->node),
				.state = TASKS_BLOCKED,
				.age_ns = end_ns - thread->since_ns,
				.age_at_least = true,
				.thread = thread->id,
				.node = thread->node,
				.op_name = TASK_NO_NAME,
				.waiting_on = "a task; the wait began before it could be recorded",
			};

			st = add_row(r, &row, NULL, 0);
		}
		if (st < 0)
			return st;
	}
	return NT_OK;
}

/* A running task whose thread blocks is told by the row of its thread. */
static bool runs_blocked(const struct tasks *t, const struct task *x)
{
	uint32_t i = x->started ? nt_idmap_get(&t->threads_by_id, x->thread) : NT_IDMAP_NONE;

	return i != NT_IDMAP_NONE && (t->threads[i].depth || (t->threads[i].sampled &&
							      tasks_blocks(t, t->threads[i].node)));
}

/* --- tasks --- */

static enum tasks_state state_of(const struct tasks *t, const struct task *x)
{
	if (x->awaits != TASK_NONE)
		return t->table.tasks[x->awaits].done ? TASKS_READY : TASKS_AWAITING;
	if (x->ready)
		return TASKS_READY;
	if (x->scheduled)
		return TASKS_QUEUED;
	return x->started ? TASKS_RUNNING : TASKS_AWAITING;
}

static void find_age(const struct task *x, int64_t end_ns, struct tasks_row *row)
{
	if (x->begun)
		row->age_ns = end_ns - x->begun_ns;
	else if (x->scheduled)
		row->age_ns = end_ns - x->scheduled_ns;
	else if (x->started)
		row->age_ns = end_ns - x->started_ns;
	else
		row->age_ns = end_ns - x->wait_ns;
	row->age_at_least = !x->begun && !x->scheduled;
}

static enum nt_status add_task(struct tasks_rows *r, uint32_t slot, int64_t end_ns, bool cycle)
{
	const struct tasks *t = r->tasks;
	const struct task *x = &t->table.tasks[slot];
	struct tasks_row row = { .task_id = x->id, .thread = UINT64_MAX, .op_name = x->op_name };
	const char *names[MAX_PATH + 1];
	struct path p;
	size_t n;

	find_path(r, slot, &p);
	if (!cycle && is_healthy(t, &p, end_ns)) {
		r->healthy++;
		return NT_OK;
	}
	if (!is_method(t, x) || runs_blocked(t, x))
		return NT_OK; /* nobody waits for it, or somebody else's row tells it */
	if (tasks_name(r, x, &row.method) < 0 || name_path(r, &p, 0, names, &n) < 0)
		return NT_ENOMEM;
	row.state = state_of(t, x);
	row.waiting_on = cycle ? "itself: these tasks await each other" : describe_root(t, &p);
	row.timer = tasks_is_timer(t, root_of(t, &p));
	row.cycle = cycle;
	find_age(x, end_ns, &row);
	return add_row(r, &row, names, n);
}

static enum nt_status add_tasks(struct tasks_rows *r, int64_t end_ns)
{
	const struct tasks *t = r->tasks;

	for (size_t i = 0; i < t->table.count; i++) {
		const struct task *x = &t->table.tasks[i];
		enum nt_status st;

		/* The outermost ones; the others are in their chains. */
		if (!x->used || x->done || x->first_waiter != TASK_NONE || x->sync_waiters)
			continue;
		st = add_task(r, (uint32_t)i, end_ns, false);
		if (st < 0)
			return st;
	}
	return NT_OK;
}

/* Each task awaits at most one other, so a walk that meets its own mark is in a cycle. */
static enum nt_status add_cycles(struct tasks_rows *r, struct tasks *t, int64_t end_ns)
{
	uint32_t walk = 0;

	for (size_t i = 0; i < t->table.count; i++) {
		uint32_t slot = (uint32_t)i;

		if (!t->table.tasks[i].used)
			continue;
		walk++;
		while (slot != TASK_NONE && !t->table.tasks[slot].visited) {
			t->table.tasks[slot].visited = walk;
			slot = t->table.tasks[slot].awaits;
		}
		if (slot != TASK_NONE && t->table.tasks[slot].visited == walk &&
		    add_task(r, slot, end_ns, true) < 0)
			return NT_ENOMEM;
	}
	return NT_OK;
}

static double weight(const struct tasks_row *row)
{
	return (double)row->count * (double)(row->age_ns > 0 ? row->age_ns : 0);
}

static int compare(const void *a, const void *b)
{
	const struct tasks_row *x = a, *y = b;

	if (x->cycle != y->cycle)
		return x->cycle ? -1 : 1;
	if (weight(x) > weight(y) || weight(x) < weight(y))
		return weight(x) < weight(y) ? 1 : -1;
	return strcmp(x->method, y->method);
}

enum nt_status tasks_rows_make(struct tasks_rows *r, struct tasks *t)
{
	int64_t end_ns = an_observed_ns(t->shared), last_sample_ns = 0;
	enum nt_status st;

	*r = (struct tasks_rows){ .tasks = t };
	nt_arena_init(&r->arena, t->shared->alloc, MAX_BYTES);
	nt_idmap_init(&r->by_hash, t->shared->alloc);
	nt_idmap_init(&r->name_by_key, t->shared->alloc);
	for (size_t i = 0; i < t->thread_count; i++)
		if (t->threads[i].last_ns > last_sample_ns)
			last_sample_ns = t->threads[i].last_ns;
	st = add_threads(r, end_ns, last_sample_ns);
	if (st == NT_OK)
		st = add_tasks(r, end_ns);
	if (st == NT_OK)
		st = add_cycles(r, t, end_ns);
	if (st == NT_OK && r->count)
		qsort(r->rows, r->count, sizeof(*r->rows), compare);
	return st;
}

void tasks_rows_done(struct tasks_rows *r)
{
	const struct nt_alloc *al = r->arena.alloc;

	an_mem_free(al, r->rows);
	an_mem_free(al, r->names);
	nt_idmap_done(&r->by_hash);
	nt_idmap_done(&r->name_by_key);
	nt_arena_done(&r->arena);
}
