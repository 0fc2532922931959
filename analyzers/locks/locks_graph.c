/* SPDX-License-Identifier: MIT */

/*
 * Who waits for whom when the observation ends.
 *
 * Each thread waits for one lock and each lock has one owner, so from each waiter one edge leads
 * on: following it either ends, or goes round.  Going round is a deadlock when the edges are true
 * (runtime-events.md §8.4.2): every wait stays open to the end, no waiter has got one of these
 * locks after its owner was named, and no event was lost that could say otherwise.
 */

#include <stdlib.h>

#include "analyzers/grow.h"
#include "analyzers/locks/locks_internal.h"

enum {
	RUNTIME_11 = 11, /* names owners by managed id */
	PROVEN_NS = 1000 * 1000 * 1000, /* shorter waits may yet end */
};

enum lock_reading lock_owner_reading(const struct locks *l)
{
	if (l->shared->runtime_major)
		return l->shared->runtime_major >= RUNTIME_11 ? READ_MANAGED : READ_OS;
	/* Managed ids are small numbers, and only 11 names threads with ids that none has. */
	for (size_t i = 0; i < l->site_count; i++)
		for (size_t k = 0; k < LOCK_OWNERS; k++)
			if (l->sites[i].owners[k].count &&
			    nt_idmap_get(&l->thread_by_id, l->sites[i].owners[k].id) ==
				    NT_IDMAP_NONE &&
			    an_thread_by_managed(&l->ids, l->sites[i].owners[k].id))
				return READ_MANAGED;
	return READ_OS;
}

uint64_t lock_owner_os(const struct locks *l, uint64_t named, uint64_t *ret_managed)
{
	const struct an_thread_id *id;

	*ret_managed = 0;
	if (!named)
		return 0;
	if (l->reading == READ_OS) {
		id = an_thread_by_os(&l->ids, named);
		*ret_managed = id ? id->managed : 0;
		return named;
	}
	*ret_managed = named;
	id = an_thread_by_managed(&l->ids, named);
	return id ? id->os : 0;
}

/* Its end was announced, or a complete rundown of threads does not have it. */
static bool is_gone(const struct locks *l, uint64_t os, uint64_t managed)
{
	const struct an_thread_id *id = an_thread_by_os(&l->ids, os);

	if (!id)
		id = an_thread_by_managed(&l->ids, managed);
	if (id && id->ended)
		return true;
	if (!l->ids.at_end || l->ids.dropped || !an_methods_rundown_complete(l->shared->methods))
		return false;
	return !id || !id->at_end;
}

/* Both kinds of ids may be small numbers, and the runtime's version is not known. */
static bool is_ambiguous(const struct locks *l, uint64_t named)
{
	const struct an_thread_id *id = an_thread_by_managed(&l->ids, named);

	return !l->shared->runtime_major && id && id->os != named &&
	       nt_idmap_get(&l->thread_by_id, named) != NT_IDMAP_NONE;
}

static void find_owner(const struct locks *l, struct lock_waiter *w, const struct nt_idmap *index,
		       const struct lock_waiter *waiters)
{
	const struct lock *k = &l->locks[w->thread->lock];

	if (k->shared || k->basis == OWNER_UNKNOWN)
		return;
	if (k->basis == OWNER_ENTERED) {
		const struct an_thread_id *id = an_thread_by_os(&l->ids, k->owner);

		w->owner_os = k->owner;
		w->owner_managed = id ? id->managed : 0;
	} else {
		w->owner_os = lock_owner_os(l, k->owner, &w->owner_managed);
	}
	w->proven = k->basis == OWNER_NAMED && w->age_ns >= PROVEN_NS &&
		    w->thread->lost == l->shared->lost && !is_ambiguous(l, k->owner);
	w->orphaned = w->proven && is_gone(l, w->owner_os, w->owner_managed);
	if (w->owner_os)
		w->owner = nt_idmap_get(index, w->owner_os);
	/* Who waits for a lock does not hold it. */
	if (w->owner != LOCK_NONE && waiters[w->owner].thread->lock == w->thread->lock)
		w->owner = LOCK_NONE;
}

static int compare_waiters(const void *a, const void *b)
{
	const struct lock_waiter *x = a, *y = b;

	if (x->age_ns != y->age_ns)
		return x->age_ns < y->age_ns ? 1 : -1;
	return (x->thread->id > y->thread->id) - (x->thread->id < y->thread->id);
}

static enum nt_status collect_waiters(struct lock_graph *g, const struct locks *l, int64_t end_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < l->thread_count; i++)
		n += l->threads[i].lock != LOCK_NONE;
	g->waiters = an_mem_array(l->shared->alloc, n, sizeof(*g->waiters));
	if (!g->waiters)
		return NT_ENOMEM;
	for (size_t i = 0; i < l->thread_count; i++) {
		const struct lock_thread *t = &l->threads[i];

		if (t->lock == LOCK_NONE)
			continue;
		g->waiters[g->waiter_count++] = (struct lock_waiter){
			.thread = t,
			.owner = LOCK_NONE,
			.cycle = LOCK_NONE,
			.age_ns = an_ns_between(t->since_ns, end_ns),
		};
	}
	if (n)
		qsort(g->waiters, n, sizeof(*g->waiters), compare_waiters);
	return NT_OK;
}

/* A new cycle that goes through waiter first. */
static enum nt_status add_cycle(struct lock_graph *g, const struct locks *l, size_t *cap,
				uint32_t first)
{
	struct lock_cycle *cycles =
		an_mem_grow(l->shared->alloc, g->cycles, cap, g->cycle_count + 1, sizeof(*cycles));
	struct lock_cycle c = { .first = first, .age_ns = UINT64_MAX, .proven = true };
	uint32_t w = first;

	if (!cycles)
		return NT_ENOMEM;
	g->cycles = cycles;
	do {
		struct lock_waiter *x = &g->waiters[w];

		x->cycle = (uint32_t)g->cycle_count;
		x->member = true;
		c.length++;
		c.proven = c.proven && x->proven;
		if (x->age_ns < c.age_ns)
			c.age_ns = x->age_ns;
		w = x->owner;
	} while (w != first);
	c.suspected = !c.proven && c.age_ns >= PROVEN_NS;
	g->cycles[g->cycle_count++] = c;
	return NT_OK;
}

/*
 * Walks from each waiter until it meets one that was met before: in the same walk that closes a
 * cycle, else its fate is known.  Then everybody on the way shares it.
 */
static enum nt_status find_cycles(struct lock_graph *g, const struct locks *l, uint32_t *met)
{
	size_t cap = 0;

	for (uint32_t i = 0; i < g->waiter_count; i++) {
		uint32_t w = i;

		while (w != LOCK_NONE && !met[w]) {
			met[w] = i + 1;
			w = g->waiters[w].owner;
		}
		if (w != LOCK_NONE && met[w] == i + 1 && g->waiters[w].cycle == LOCK_NONE &&
		    add_cycle(g, l, &cap, w) < 0)
			return NT_ENOMEM;
		if (w == LOCK_NONE || g->waiters[w].cycle == LOCK_NONE)
			continue;
		for (uint32_t k = i, c = g->waiters[w].cycle; !g->waiters[k].member && k != w;
		     k = g->waiters[k].owner) {
			g->waiters[k].cycle = c;
			g->cycles[c].queued++;
		}
	}
	return NT_OK;
}

enum nt_status lock_graph_init(struct lock_graph *g, const struct locks *l, int64_t end_ns)
{
	const struct nt_alloc *al = l->shared->alloc;
	struct nt_idmap index;
	uint32_t *met = NULL;
	enum nt_status st;

	*g = (struct lock_graph){ 0 };
	nt_idmap_init(&index, al);
	st = collect_waiters(g, l, end_ns);
	for (size_t i = 0; i < g->waiter_count && st == NT_OK; i++)
		st = nt_idmap_put(&index, g->waiters[i].thread->id, (uint32_t)i);
	if (st == NT_OK) {
		met = an_mem_array(al, g->waiter_count, sizeof(*met));
		st = met ? NT_OK : NT_ENOMEM;
	}
	if (st == NT_OK) {
		for (size_t i = 0; i < g->waiter_count; i++)
			find_owner(l, &g->waiters[i], &index, g->waiters);
		st = find_cycles(g, l, met);
	}
	an_mem_free(al, met);
	nt_idmap_done(&index);
	if (st < 0)
		lock_graph_done(g, l);
	return st;
}

void lock_graph_done(struct lock_graph *g, const struct locks *l)
{
	an_mem_free(l->shared->alloc, g->waiters);
	an_mem_free(l->shared->alloc, g->cycles);
	*g = (struct lock_graph){ 0 };
}
