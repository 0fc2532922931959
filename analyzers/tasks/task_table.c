/* SPDX-License-Identifier: MIT */
#include "analyzers/tasks/task_table.h"

#include "analyzers/grow.h"

enum { MAX_TASKS = 128 * 1024, FIRST_BUCKETS = 256 };

enum nt_status task_table_init(struct task_table *t, const struct nt_alloc *alloc)
{
	*t = (struct task_table){ .alloc = alloc, .free = TASK_NONE };
	t->history = an_mem_array(alloc, TASK_HISTORY, sizeof(*t->history));
	return t->history ? NT_OK : NT_ENOMEM;
}

void task_table_done(struct task_table *t)
{
	an_mem_free(t->alloc, t->tasks);
	an_mem_free(t->alloc, t->buckets);
	an_mem_free(t->alloc, t->history);
	*t = (struct task_table){ .alloc = t->alloc, .free = TASK_NONE };
}

static size_t bucket_of(uint32_t id, size_t buckets)
{
	return (size_t)(id * UINT32_C(2654435769) >> 8) & (buckets - 1);
}

uint32_t task_find(const struct task_table *t, uint32_t id)
{
	uint32_t i;

	if (!t->bucket_count)
		return TASK_NONE;
	i = t->buckets[bucket_of(id, t->bucket_count)];
	while (i != TASK_NONE && t->tasks[i].id != id)
		i = t->tasks[i].next;
	return i;
}

static enum nt_status make_buckets(struct task_table *t)
{
	size_t n = t->bucket_count ? t->bucket_count * 2 : FIRST_BUCKETS;
	uint32_t *buckets;

	if (t->bucket_count && t->live < t->bucket_count)
		return NT_OK;
	buckets = an_mem_array(t->alloc, n, sizeof(*buckets));
	if (!buckets)
		return NT_ENOMEM;
	memset(buckets, 0xff, n * sizeof(*buckets));
	for (size_t i = 0; i < t->count; i++) {
		struct task *x = &t->tasks[i];

		if (!x->used)
			continue;
		x->next = buckets[bucket_of(x->id, n)];
		buckets[bucket_of(x->id, n)] = (uint32_t)i;
	}
	an_mem_free(t->alloc, t->buckets);
	t->buckets = buckets;
	t->bucket_count = n;
	return NT_OK;
}

enum nt_status task_take(struct task_table *t, uint32_t id, uint32_t *ret)
{
	struct task *tasks;
	uint32_t slot = task_find(t, id), *bucket;
	const struct task_history *h = &t->history[id % TASK_HISTORY];

	*ret = slot;
	if (slot != TASK_NONE || !id) /* 0 means no task */
		return NT_OK;
	if (t->live >= MAX_TASKS) {
		t->untracked++;
		return NT_OK;
	}
	if (make_buckets(t) < 0)
		return NT_ENOMEM;
	if (t->free != TASK_NONE) {
		slot = t->free;
		t->free = t->tasks[slot].next;
	} else {
		tasks = an_mem_grow(t->alloc, t->tasks, &t->cap, t->count + 1, sizeof(*tasks));
		if (!tasks)
			return NT_ENOMEM;
		t->tasks = tasks;
		slot = (uint32_t)t->count++;
	}
	bucket = &t->buckets[bucket_of(id, t->bucket_count)];
	t->tasks[slot] = (struct task){ .id = id,
					.next = *bucket,
					.op_name = TASK_NO_NAME,
					.awaits = TASK_NONE,
					.first_waiter = TASK_NONE,
					.next_waiter = TASK_NONE,
					.prev_waiter = TASK_NONE,
					.used = true };
	if (h->waits_done && h->id == id) {
		t->tasks[slot].waits_done = h->waits_done;
		t->tasks[slot].longest_wait_ns = h->longest_wait_ns;
	}
	*bucket = slot;
	t->live++;
	*ret = slot;
	return NT_OK;
}

void task_prune(struct task_table *t, uint32_t slot)
{
	struct task *x = &t->tasks[slot];
	uint32_t *link;

	if (x->begun || x->scheduled || x->started || x->ready || x->awaits != TASK_NONE ||
	    x->first_waiter != TASK_NONE || x->sync_waiters)
		return;
	if (x->waits_done)
		t->history[x->id % TASK_HISTORY] =
			(struct task_history){ x->id, x->waits_done, x->longest_wait_ns };
	link = &t->buckets[bucket_of(x->id, t->bucket_count)];
	while (*link != slot)
		link = &t->tasks[*link].next;
	*link = x->next;
	x->used = false;
	x->next = t->free;
	t->free = slot;
	t->live--;
}

/* Takes c out of the list of those that await what it awaits. */
static void unlink_waiter(struct task_table *t, uint32_t c)
{
	struct task *x = &t->tasks[c];

	if (x->prev_waiter != TASK_NONE)
		t->tasks[x->prev_waiter].next_waiter = x->next_waiter;
	else
		t->tasks[x->awaits].first_waiter = x->next_waiter;
	if (x->next_waiter != TASK_NONE)
		t->tasks[x->next_waiter].prev_waiter = x->prev_waiter;
	x->next_waiter = x->prev_waiter = TASK_NONE;
}

void task_await(struct task_table *t, uint32_t c, uint32_t on)
{
	struct task *x = &t->tasks[c];
	uint32_t old = x->awaits;

	if (old != TASK_NONE)
		unlink_waiter(t, c);
	x->awaits = on;
	if (on != TASK_NONE) {
		x->next_waiter = t->tasks[on].first_waiter;
		if (x->next_waiter != TASK_NONE)
			t->tasks[x->next_waiter].prev_waiter = c;
		t->tasks[on].first_waiter = c;
	}
	if (old != TASK_NONE && old != on)
		task_prune(t, old);
}

void task_resume_waiters(struct task_table *t, uint32_t slot, int64_t time_ns)
{
	uint32_t c = t->tasks[slot].first_waiter;

	t->tasks[slot].first_waiter = TASK_NONE;
	while (c != TASK_NONE) {
		struct task *x = &t->tasks[c];
		uint32_t next = x->next_waiter;

		x->awaits = TASK_NONE;
		x->next_waiter = x->prev_waiter = TASK_NONE;
		x->waits_done++;
		if (time_ns - x->wait_ns > x->longest_wait_ns)
			x->longest_wait_ns = time_ns - x->wait_ns;
		task_prune(t, c);
		c = next;
	}
}
