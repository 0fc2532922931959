/* SPDX-License-Identifier: MIT */
#include "analyzers/heap/tasks_heap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzers/heap/tasks_heap_internal.h"
#include "analyzers/names.h"

enum { GC_END = 2, MOVED_RANGES = 22, TEXT_BYTES = 512 };

static enum nt_status on_walk(void *ctx, const struct an_heapwalk *w, const struct an_heapgraph *g,
			      const struct an_heap_types *types);

static const struct an_heap_sink sink = { .walk = on_walk };

struct an_heap_tasks *an_heap_tasks_new(const struct nt_alloc *alloc)
{
	struct an_heap_tasks *h;

	if (!alloc)
		alloc = &nt_alloc_default;
	h = an_mem_get(alloc, sizeof(*h));
	if (!h)
		return NULL;
	h->alloc = alloc;
	h->events = an_heap_events_new(alloc, 0, &sink, h);
	return h->events ? h : an_heap_tasks_free(h);
}

static void drop_walk(struct th_walk *w)
{
	if (w->used)
		th_rows_done(&w->rows);
	*w = (struct th_walk){ 0 };
}

struct an_heap_tasks *an_heap_tasks_free(struct an_heap_tasks *h)
{
	if (!h)
		return NULL;
	an_heap_events_free(h->events);
	an_mem_free(h->alloc, h->moves.items);
	for (size_t i = 0; i < TH_WALKS; i++)
		drop_walk(&h->walks[i]);
	an_mem_free(h->alloc, h);
	return NULL;
}

bool an_heap_tasks_wants(const struct nt_event_def *def)
{
	if (def->provider_id == NT_PROV_RUNTIME && def->event_id == MOVED_RANGES)
		return true;
	return an_suspension_wants(def) || an_heap_events_wants(def);
}

static void on_suspension(struct an_heap_tasks *h, const struct nt_event *ev)
{
	struct an_heap_walk_facts *facts = &h->walks[0].facts;

	if (an_suspension_ends(&h->suspension, ev) && h->walks[0].used && facts->pause_ns < 0)
		facts->pause_ns = an_suspension_around(&h->suspension, facts->info.begin_ns,
						       facts->info.end_ns, ev->time_ns);
}

enum nt_status an_heap_tasks_event(struct an_heap_tasks *h, const struct nt_event *ev)
{
	enum nt_status st;

	if (an_suspension_wants(ev->def)) {
		on_suspension(h, ev);
		return NT_OK;
	}
	if (ev->def->event_id == MOVED_RANGES) {
		th_moves_event(&h->moves, ev);
		return NT_OK;
	}
	st = an_heap_events_event(h->events, ev);
	if (ev->def->event_id == GC_END)
		th_moves_commit(&h->moves);
	return st;
}

/* --- one walk --- */

static void root_text(const struct an_heapgraph *g, const struct an_heap_types *types,
		      const struct an_heap_root *r, char *buf, size_t size)
{
	const char *raw = NULL;
	char type[TEXT_BYTES / 2];

	if (r->object != AN_HEAP_NONE)
		raw = types->types[an_heapgraph_object(g, r->object)->type].name;
	an_name_type(an_slice_of(raw && *raw ? raw : "unknown type"), type, sizeof(type));
	switch (r->kind) {
	case AN_ROOT_STATIC:
		snprintf(buf, size, "%s field '%s', %s",
			 r->flags & AN_ROOT_THREAD_LOCAL ? "thread-static" : "static",
			 r->field ? r->field : "?", type);
		break;
	case AN_ROOT_HANDLE:
		snprintf(buf, size, "a %sGC handle, %s",
			 r->flags & AN_ROOT_PINNING ? "pinning " : "", type);
		break;
	case AN_ROOT_STACK:
		snprintf(buf, size, "a variable of a running method, %s", type);
		break;
	case AN_ROOT_FINALIZER:
		snprintf(buf, size, "the finalizer's queue");
		break;
	default:
		snprintf(buf, size, "the runtime (root of kind %u)", r->kind);
		break;
	}
}

static enum nt_status name_roots(struct th_rows *rows, const struct an_heapgraph *g,
				 const struct an_heap_types *types)
{
	struct an_chunks labels;
	enum nt_status st;

	if (!rows->count)
		return NT_OK;
	st = an_heapgraph_label_roots(g, &labels);
	for (size_t i = 0; i < rows->count && st == NT_OK; i++) {
		struct th_row *row = &rows->rows[i];
		uint32_t object = row->leaf != AN_HEAP_NONE ? row->leaf : row->sample;
		uint32_t label = AN_HEAP_NONE;
		char buf[TEXT_BYTES];

		if (object != AN_HEAP_NONE)
			label = *(const uint32_t *)an_chunks_at(&labels, object);
		if (label == AN_HEAP_NONE)
			continue;
		root_text(g, types, &g->roots[label], buf, sizeof(buf));
		row->chain.kept_by = nt_arena_text(&rows->arena, buf, strlen(buf));
		if (!row->chain.kept_by && !rows->arena.full)
			st = NT_ENOMEM;
	}
	an_chunks_done(&labels, g->alloc);
	return st;
}

static void note_facts(struct an_heap_walk_facts *f, const struct an_heapwalk *w,
		       const struct an_heapgraph *g, const struct an_heap_types *types,
		       const struct th_nodes *nodes, const struct th_rows *rows)
{
	*f = (struct an_heap_walk_facts){
		.info = *w,
		.objects = g->object_total,
		.edges = g->edge_total,
		.roots = w->root_rows,
		.statics = w->static_rows,
		.bytes = g->bytes_total,
		.types = types->count - 1,
		.unnamed = nodes->unnamed,
		.objects_beyond = g->objects_beyond + g->addresses_beyond,
		.memory_bytes = an_heapgraph_memory(g),
		.pause_ns = -1,
		.whole = an_heapwalk_is_whole(w, g),
		.chains = rows->chains,
		.suspended = nodes->suspended,
		.unknown = nodes->unknown,
		.beyond = rows->beyond + nodes->beyond,
	};
}

static enum nt_status read_walk(struct an_heap_tasks *h, struct th_walk *walk,
				const struct an_heapwalk *w, const struct an_heapgraph *g,
				const struct an_heap_types *types)
{
	struct th_nodes nodes;
	enum nt_status st = th_nodes_make(&nodes, h->alloc, g, types);

	walk->used = true;
	walk->rows = (struct th_rows){ 0 };
	if (st == NT_OK)
		st = th_rows_make(&walk->rows, &nodes);
	if (st == NT_OK)
		note_facts(&walk->facts, w, g, types, &nodes, &walk->rows);
	th_nodes_done(&nodes);
	if (st == NT_OK)
		st = name_roots(&walk->rows, g, types);
	return st;
}

/* --- two walks --- */

static const struct th_row *find_row(const struct th_walk *w, uint64_t hash)
{
	uint32_t at = nt_idmap_get(&w->rows.by_hash, hash);

	return at == NT_IDMAP_NONE ? NULL : &w->rows.rows[at];
}

/* Calls in both; *ret_stayed: an outermost object is where it was, so not everything has moved. */
static uint64_t common(const struct th_row *a, const struct th_row *b, bool *ret_stayed)
{
	uint64_t n = 0;

	for (size_t i = 0, k = 0; i < a->head_count && k < b->head_count;) {
		int order = th_compare_ends(&a->heads[i], &b->heads[k]);

		if (a->heads[i].outer == b->heads[k].outer && a->heads[i].outer)
			*ret_stayed = true;
		n += order == 0 && a->heads[i].outer && a->heads[i].inner;
		i += order <= 0;
		k += order >= 0;
	}
	return n;
}

/* What is completed by somebody else, and by nobody so far. */
static bool can_be_stuck(enum an_leaf leaf)
{
	return leaf == AN_LEAF_TASK || leaf == AN_LEAF_SOURCE || leaf == AN_LEAF_SEMAPHORE ||
	       leaf == AN_LEAF_CHANNEL_WRITE || leaf == AN_LEAF_CYCLE;
}

/*
 * Objects are told by their addresses.  Where the trace does not say what has moved and no address
 * is the same, all that can be said is that there were as many of the same shape before.
 */
static void compare(struct th_walk *now, const struct th_walk *base, bool moves_told)
{
	bool stayed = moves_told; /* then addresses tell all */

	for (size_t i = 0; i < now->rows.count; i++) {
		struct th_row *row = &now->rows.rows[i];
		const struct th_row *before = find_row(base, row->chain.hash);

		if (!before)
			continue;
		row->chain.count_before = before->chain.count;
		row->chain.same = common(row, before, &stayed);
		/* One outermost object may have several chains. */
		if (row->chain.same && row->chain.same == row->head_count)
			row->chain.same = row->chain.count < before->chain.count
						  ? row->chain.count
						  : before->chain.count;
	}
	for (size_t i = 0; i < now->rows.count; i++) {
		struct an_heap_chain *c = &now->rows.rows[i].chain;

		if (!can_be_stuck(c->leaf) || !c->count_before)
			continue;
		c->by_shape = !stayed && c->count_before >= c->count;
		c->stuck = c->same || c->by_shape;
	}
}

/* --- all walks --- */

/* The first one of all generations is kept, and the newest: the longer in between the better. */
static enum nt_status on_walk(void *ctx, const struct an_heapwalk *w, const struct an_heapgraph *g,
			      const struct an_heap_types *types)
{
	struct an_heap_tasks *h = ctx;
	struct th_walk walk = { 0 };
	enum nt_status st;

	if (h->walks[0].used && !an_heapwalk_is_full(w))
		return NT_OK;
	st = read_walk(h, &walk, w, g, types);
	if (st < 0) {
		drop_walk(&walk);
		return st;
	}
	if (h->walks[0].used && !an_heapwalk_is_full(&h->walks[0].facts.info))
		drop_walk(&h->walks[0]);
	if (h->walks[1].used)
		drop_walk(&h->walks[0]);
	else
		h->walks[1] = h->walks[0];
	h->walks[0] = walk;
	if (!h->walks[1].used)
		return th_moves_start(&h->moves, h->alloc, &h->walks[0].rows);
	th_moves_commit(&h->moves);
	th_moves_apply(&h->moves, &h->walks[1].rows);
	compare(&h->walks[0], &h->walks[1], h->moves.told);
	h->compared = true;
	return NT_OK;
}

static int worst_first(const void *a, const void *b)
{
	const struct an_heap_chain *x = &((const struct th_row *)a)->chain;
	const struct an_heap_chain *y = &((const struct th_row *)b)->chain;

	if ((x->leaf == AN_LEAF_CYCLE) != (y->leaf == AN_LEAF_CYCLE))
		return x->leaf == AN_LEAF_CYCLE ? -1 : 1;
	if (x->stuck != y->stuck)
		return x->stuck ? -1 : 1;
	if (can_be_stuck(x->leaf) != can_be_stuck(y->leaf))
		return can_be_stuck(x->leaf) ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	if (strcmp(x->method, y->method) != 0)
		return strcmp(x->method, y->method);
	return (x->hash > y->hash) - (x->hash < y->hash);
}

enum nt_status an_heap_tasks_finish(struct an_heap_tasks *h)
{
	enum nt_status st = an_heap_events_finish(h->events);
	struct th_rows *rows = &h->walks[0].rows;

	if (st < 0 || h->finished)
		return st;
	h->finished = true;
	for (size_t i = 0; i < rows->count; i++)
		if (rows->rows[i].chain.leaf == AN_LEAF_CYCLE)
			rows->rows[i].chain.stuck = true; /* that can never end */
	if (rows->count)
		qsort(rows->rows, rows->count, sizeof(*rows->rows), worst_first);
	return NT_OK;
}

/* --- asking --- */

const struct an_heap_walk_facts *an_heap_tasks_facts(const struct an_heap_tasks *h, size_t i)
{
	return i < TH_WALKS && h->walks[i].used ? &h->walks[i].facts : NULL;
}

size_t an_heap_tasks_count(const struct an_heap_tasks *h)
{
	return h->walks[0].used ? h->walks[0].rows.count : 0;
}

const struct an_heap_chain *an_heap_tasks_chain(const struct an_heap_tasks *h, size_t i)
{
	return &h->walks[0].rows.rows[i].chain;
}
