/* SPDX-License-Identifier: MIT */

/*
 * How long work waits for a worker.
 *
 * Ids of work are hashes or wrap, and what is never started is never heard of again, so the table
 * has a fixed size: an item that would not fit pushes out the oldest of its neighbours.
 */

#include "analyzers/grow.h"
#include "analyzers/threadpool/threadpool_internal.h"

enum { NEIGHBOURS = 8 };

void pool_queue_done(struct pool_queue *q, const struct nt_alloc *alloc)
{
	an_mem_free(alloc, q->entries);
	q->entries = NULL;
	an_spread_done(&q->delays, alloc);
}

static size_t place_of(uint64_t id, size_t i)
{
	uint64_t h = id * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)((h >> 40) + i) & (POOL_QUEUE_SLOTS - 1);
}

enum nt_status pool_queue_put(struct pool_queue *q, const struct nt_alloc *alloc, uint64_t id,
			      int64_t now_ns)
{
	struct pool_entry *at = NULL;

	if (!id)
		return NT_OK;
	if (!q->entries)
		q->entries = an_mem_array(alloc, POOL_QUEUE_SLOTS, sizeof(*q->entries));
	if (!q->entries)
		return NT_ENOMEM;
	q->queued++;
	for (size_t i = 0; i < NEIGHBOURS && (!at || at->id); i++) {
		struct pool_entry *e = &q->entries[place_of(id, i)];

		if (!e->id || !at || e->queued_ns < at->queued_ns)
			at = e;
	}
	if (at->id)
		q->evicted++;
	else
		q->waiting++;
	*at = (struct pool_entry){ id, now_ns };
	return NT_OK;
}

/* First in, first out: of items with one id the oldest was started. */
enum nt_status pool_queue_take(struct pool_queue *q, const struct nt_alloc *alloc, uint64_t id,
			       int64_t now_ns)
{
	struct pool_entry *at = NULL;
	uint64_t ns;

	if (!id || !q->entries)
		return NT_OK;
	for (size_t i = 0; i < NEIGHBOURS; i++) {
		struct pool_entry *e = &q->entries[place_of(id, i)];

		if (e->id == id && (!at || e->queued_ns < at->queued_ns))
			at = e;
	}
	if (!at)
		return NT_OK; /* queued before the session */
	ns = an_ns_between(at->queued_ns, now_ns);
	at->id = 0;
	q->waiting--;
	q->started++;
	return an_spread_add(&q->delays, alloc, ns);
}

uint64_t pool_queue_oldest_ns(const struct pool_queue *q, int64_t now_ns)
{
	uint64_t oldest = 0;

	for (size_t i = 0; q->entries && i < POOL_QUEUE_SLOTS; i++) {
		uint64_t ns = an_ns_between(q->entries[i].queued_ns, now_ns);

		if (q->entries[i].id && ns > oldest)
			oldest = ns;
	}
	return oldest;
}
