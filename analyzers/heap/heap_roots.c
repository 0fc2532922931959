/* SPDX-License-Identifier: MIT */

/* Which root is nearest to each object: breadth first from all of them at once. */

#include "analyzers/heap/heapgraph.h"

enum { MAX_ROUNDS = 64 /* of weak tables that keep each other's keys */ };

struct walk {
	const struct an_heapgraph *g;
	struct an_chunks *labels;
	struct an_chunks queue; /* indexes of objects; behind the place of reading they are free */
	size_t read;
};

static uint32_t *label_at(const struct walk *w, uint32_t i)
{
	return an_chunks_at(w->labels, i);
}

static enum nt_status reach(struct walk *w, uint32_t object, uint32_t label)
{
	uint32_t *at, *slot;

	if (object == AN_HEAP_NONE)
		return NT_OK;
	at = label_at(w, object);
	if (*at != AN_HEAP_NONE)
		return NT_OK;
	slot = an_chunks_add(&w->queue, w->g->alloc);
	if (!slot)
		return NT_ENOMEM;
	*at = label;
	*slot = object;
	return NT_OK;
}

/* Names of fields say most, then handles; what is only on a stack comes and goes. */
static enum nt_status reach_roots(struct walk *w)
{
	static const uint8_t order[AN_ROOT_KINDS] = { AN_ROOT_STATIC,	 AN_ROOT_HANDLE,
						      AN_ROOT_STACK,	 AN_ROOT_OTHER,
						      AN_ROOT_SIZED_REF, AN_ROOT_OVERFLOW,
						      AN_ROOT_FINALIZER };
	enum nt_status st = NT_OK;

	for (size_t k = 0; k < AN_ROOT_KINDS; k++)
		for (size_t i = 0; i < w->g->root_count && st == NT_OK; i++) {
			const struct an_heap_root *r = &w->g->roots[i];

			if (r->kind == order[k] && !(r->flags & AN_ROOT_WEAK))
				st = reach(w, r->object, (uint32_t)i);
		}
	return st;
}

static enum nt_status run(struct walk *w)
{
	enum nt_status st = NT_OK;

	while (w->read < w->queue.count && st == NT_OK) {
		uint32_t object = *(const uint32_t *)an_chunks_at(&w->queue, w->read++);
		uint32_t label = *label_at(w, object);
		size_t edge, end;

		an_heapgraph_edges(w->g, object, &edge, &end);
		for (; edge < end && st == NT_OK; edge++)
			st = reach(w, an_heapgraph_edge(w->g, edge), label);
	}
	return st;
}

/* A value of a weak table lives as long as its key. */
static enum nt_status run_weak(struct walk *w)
{
	enum nt_status st = NT_OK;

	for (unsigned round = 0; round < MAX_ROUNDS && st == NT_OK; round++) {
		size_t before = w->queue.count;

		for (size_t i = 0; i < w->g->weak.count && st == NT_OK; i++) {
			const struct an_heap_pair *pair = an_chunks_at(&w->g->weak, i);
			uint32_t label = AN_HEAP_NONE;

			if (pair->key != AN_HEAP_NONE)
				label = *label_at(w, pair->key);
			if (label != AN_HEAP_NONE)
				st = reach(w, pair->value, label);
		}
		if (w->queue.count == before)
			break;
		if (st == NT_OK)
			st = run(w);
	}
	return st;
}

enum nt_status an_heapgraph_label_roots(const struct an_heapgraph *g, struct an_chunks *labels)
{
	struct walk w = { .g = g, .labels = labels };
	enum nt_status st = NT_OK;

	an_chunks_init(&w.queue, sizeof(uint32_t));
	an_chunks_init(labels, sizeof(uint32_t));
	if (!an_chunks_fill(labels, g->alloc, g->objects.count))
		return NT_ENOMEM;
	for (size_t i = 0; i < labels->count; i++)
		*(uint32_t *)an_chunks_at(labels, i) = AN_HEAP_NONE;
	st = reach_roots(&w);
	if (st == NT_OK)
		st = run(&w);
	if (st == NT_OK)
		st = run_weak(&w);
	an_chunks_done(&w.queue, g->alloc);
	return st;
}
