/* SPDX-License-Identifier: MIT */
#include "analyzers/heap/heap_events.h"

#include "nettrace/span.h"

enum {
	GC_START = 1,
	GC_END = 2,
	BULK_TYPE = 15,
	BULK_ROOT_EDGE = 16,
	BULK_WEAK = 17,
	BULK_NODE = 18,
	BULK_EDGE = 19,
	BULK_STATIC = 38,
	MAX_OPEN = 2, /* walks that are mixed */
	GENERATION_ALL = 2,
	TYPE_BACKGROUND = 1,
	FIELD_BYTES = 256, /* of a static's name */
};

/* Numbered events of one kind: each is one more than the last. */
struct row_of_events {
	bool any;
	uint32_t next;
};

struct open_walk {
	bool used;
	struct an_heapwalk info;
	struct an_heapgraph graph;
	struct row_of_events nodes, edges, roots, weak;
	uint64_t age; /* the higher the newer */
};

struct an_heap_events {
	const struct nt_alloc *alloc;
	const struct an_heap_sink *sink;
	void *ctx;
	size_t max_objects;
	struct an_heap_types types;
	struct open_walk open[MAX_OPEN];
	uint64_t ages, dropped;
	/* the collection that began last and has not ended */
	bool in_gc;
	int64_t gc_ns;
	uint32_t gc, gc_generation, gc_reason, gc_type;
};

bool an_heapwalk_is_full(const struct an_heapwalk *w)
{
	return !w->gc_known || w->generation >= GENERATION_ALL;
}

bool an_heapwalk_is_whole(const struct an_heapwalk *w, const struct an_heapgraph *g)
{
	return w->ended && an_heapwalk_is_full(w) && !w->lost_objects && !w->lost_edges &&
	       !w->lost_roots && !w->lost_weak && !g->objects_beyond && !g->addresses_beyond &&
	       g->edges_declared == g->edge_total;
}

struct an_heap_events *an_heap_events_new(const struct nt_alloc *alloc, size_t max_objects,
					  const struct an_heap_sink *sink, void *ctx)
{
	struct an_heap_events *h = an_mem_get(alloc, sizeof(*h));

	if (!h)
		return NULL;
	h->alloc = alloc;
	h->sink = sink;
	h->ctx = ctx;
	h->max_objects = max_objects;
	return an_heap_types_init(&h->types, alloc) == NT_OK ? h : an_heap_events_free(h);
}

static void drop(struct open_walk *w)
{
	if (w->used)
		an_heapgraph_done(&w->graph);
	w->used = false;
}

struct an_heap_events *an_heap_events_free(struct an_heap_events *h)
{
	const struct nt_alloc *al;

	if (!h)
		return NULL;
	al = h->alloc;
	for (size_t i = 0; i < MAX_OPEN; i++)
		drop(&h->open[i]);
	an_heap_types_done(&h->types);
	an_mem_free(al, h);
	return NULL;
}

bool an_heap_events_wants(const struct nt_event_def *def)
{
	if (def->provider_id != NT_PROV_RUNTIME)
		return false;
	switch (def->event_id) {
	case GC_START:
	case GC_END:
	case BULK_TYPE:
	case BULK_ROOT_EDGE:
	case BULK_WEAK:
	case BULK_NODE:
	case BULK_EDGE:
	case BULK_STATIC:
		return true;
	default:
		return false;
	}
}

uint64_t an_heap_events_dropped(const struct an_heap_events *h)
{
	return h->dropped;
}

/* --- walks --- */

/* What only has statics so far is no walk: those are sent for every collection of all. */
static bool has_content(const struct open_walk *w)
{
	return w->nodes.any || w->edges.any || w->roots.any;
}

static enum nt_status end_walk(struct an_heap_events *h, struct open_walk *w, int64_t end_ns)
{
	enum nt_status st = NT_OK;

	if (w->used && has_content(w)) {
		w->info.end_ns = end_ns;
		st = an_heapgraph_finish(&w->graph);
		if (st == NT_OK)
			st = h->sink->walk(h->ctx, &w->info, &w->graph, &h->types);
	}
	drop(w);
	return st;
}

static void start_walk(struct an_heap_events *h, struct open_walk *w, const struct nt_event *ev)
{
	/* The walk's thread may be another than the one that began the collection. */
	*w = (struct open_walk){
		.used = true,
		.age = ++h->ages,
		.info = {
			.begin_ns = h->in_gc ? h->gc_ns : ev->time_ns,
			.first_ns = ev->time_ns,
			.last_ns = ev->time_ns,
			.end_ns = ev->time_ns,
			.thread = ev->thread_id,
			.gc_known = h->in_gc,
			.gc = h->gc,
			.generation = h->gc_generation,
			.reason = h->gc_reason,
			.type = h->gc_type,
		},
	};
	an_heapgraph_init(&w->graph, h->alloc, ev->trace->pointer_size, h->max_objects);
}

static struct open_walk *walk_of(struct an_heap_events *h, uint64_t thread)
{
	for (size_t i = 0; i < MAX_OPEN; i++)
		if (h->open[i].used && h->open[i].info.thread == thread)
			return &h->open[i];
	return NULL;
}

/* The walk of this event's thread, begun when there is none. */
static struct open_walk *take_walk(struct an_heap_events *h, const struct nt_event *ev)
{
	struct open_walk *w = walk_of(h, ev->thread_id);

	if (!w) {
		w = &h->open[0];
		for (size_t i = 0; i < MAX_OPEN; i++) {
			if (!h->open[i].used) {
				w = &h->open[i];
				break;
			}
			if (h->open[i].age < w->age)
				w = &h->open[i];
		}
		if (w->used) {
			h->dropped += has_content(w);
			drop(w);
		}
		start_walk(h, w, ev);
	}
	w->info.last_ns = ev->time_ns;
	return w;
}

/*
 * Numbers begin at 0 in each walk.  Returns how many events are missing in front of this one.
 * *again: it is the first of another walk.
 */
static uint32_t check_index(struct row_of_events *row, uint32_t index, bool *again)
{
	uint32_t missing;

	*again = row->any && index == 0;
	if (*again)
		return 0;
	missing = index - row->next;
	/* A number that goes back is one that was lost as well: nothing fits any more. */
	if (index < row->next)
		missing = 1;
	row->any = true;
	row->next = index + 1;
	return missing;
}

/* --- rows --- */

struct bulk {
	struct nt_span s;
	uint32_t index, count;
};

static struct bulk open_bulk(const struct nt_event *ev)
{
	struct bulk b = { .s = nt_span_of(ev->payload, ev->payload_bytes) };

	b.index = nt_u32(&b.s);
	b.count = nt_u32(&b.s);
	nt_u16(&b.s);
	return b;
}

static enum nt_status add_nodes(struct an_heap_events *h, struct open_walk *w, struct bulk *b)
{
	enum nt_status st = NT_OK;

	for (uint32_t i = 0; i < b->count && st == NT_OK; i++) {
		uint64_t address = nt_pointer(&b->s, w->graph.pointer_size);
		uint64_t bytes = nt_u64(&b->s);
		uint64_t type_id = nt_u64(&b->s);
		uint64_t edges = nt_u64(&b->s);
		uint32_t type;

		if (b->s.bad) { /* cut: as if the rest had been lost */
			w->info.lost_objects++;
			an_heapgraph_lost_objects(&w->graph);
			break;
		}
		st = an_heap_types_find(&h->types, type_id, &type);
		if (st == NT_OK)
			st = an_heapgraph_add_object(&w->graph, address, bytes, type, edges);
	}
	return st;
}

static enum nt_status add_edges(struct open_walk *w, struct bulk *b)
{
	enum nt_status st = NT_OK;

	for (uint32_t i = 0; i < b->count && st == NT_OK; i++) {
		uint64_t target = nt_pointer(&b->s, w->graph.pointer_size);

		nt_u32(&b->s); /* the field, always 0 */
		if (b->s.bad) {
			w->info.lost_edges++;
			an_heapgraph_lost_edges(&w->graph);
			break;
		}
		st = an_heapgraph_add_edge(&w->graph, target);
	}
	return st;
}

static enum nt_status add_roots(struct open_walk *w, struct bulk *b)
{
	enum nt_status st = NT_OK;

	for (uint32_t i = 0; i < b->count && st == NT_OK; i++) {
		uint64_t address = nt_pointer(&b->s, w->graph.pointer_size);
		unsigned kind = nt_u8(&b->s);
		uint32_t flags = nt_u32(&b->s);
		uint64_t id = nt_pointer(&b->s, w->graph.pointer_size);

		if (b->s.bad) {
			w->info.lost_roots++;
			break;
		}
		w->info.root_rows++;
		st = an_heapgraph_add_root(&w->graph, address,
					   kind < AN_ROOT_STATIC ? (enum an_root_kind)kind
								 : AN_ROOT_OTHER,
					   flags & 0xf, id, NULL, 0);
	}
	return st;
}

static enum nt_status add_weak(struct open_walk *w, struct bulk *b)
{
	enum nt_status st = NT_OK;

	for (uint32_t i = 0; i < b->count && st == NT_OK; i++) {
		uint64_t key = nt_pointer(&b->s, w->graph.pointer_size);
		uint64_t value = nt_pointer(&b->s, w->graph.pointer_size);

		nt_pointer(&b->s, w->graph.pointer_size);
		if (b->s.bad) {
			w->info.lost_weak++;
			break;
		}
		st = an_heapgraph_add_weak(&w->graph, key, value);
	}
	return st;
}

static size_t text_bytes(struct nt_span *s)
{
	size_t n = 0;

	while (nt_left(s) >= 2 && nt_u16(s))
		n += 2;
	return n;
}

static enum nt_status add_statics(struct open_walk *w, const struct nt_event *ev)
{
	struct nt_span s = nt_span_of(ev->payload, ev->payload_bytes);
	uint32_t count = nt_u32(&s);
	enum nt_status st = NT_OK;

	nt_u64(&s);
	nt_u16(&s);
	for (uint32_t i = 0; i < count && st == NT_OK; i++) {
		char field[FIELD_BYTES];
		const uint8_t *text;
		uint64_t id = nt_u64(&s);
		uint64_t object = nt_u64(&s);
		uint32_t flags;
		size_t n;

		nt_u64(&s); /* the type of the object, which the object says itself */
		flags = nt_u32(&s);
		text = s.cur;
		n = text_bytes(&s);
		if (s.bad) {
			w->info.lost_roots++;
			break;
		}
		w->info.static_rows++;
		n = nt_utf16_to_utf8(text, n, field, sizeof(field));
		st = an_heapgraph_add_root(&w->graph, object, AN_ROOT_STATIC,
					   flags & 1 ? AN_ROOT_THREAD_LOCAL : 0, id, field, n);
	}
	return st;
}

/* --- events --- */

static struct row_of_events *row_for(struct open_walk *w, uint32_t event_id, uint64_t **ret_lost)
{
	switch (event_id) {
	case BULK_NODE:
		*ret_lost = &w->info.lost_objects;
		return &w->nodes;
	case BULK_EDGE:
		*ret_lost = &w->info.lost_edges;
		return &w->edges;
	case BULK_ROOT_EDGE:
		*ret_lost = &w->info.lost_roots;
		return &w->roots;
	default:
		*ret_lost = &w->info.lost_weak;
		return &w->weak;
	}
}

static enum nt_status on_bulk(struct an_heap_events *h, const struct nt_event *ev)
{
	struct open_walk *w = take_walk(h, ev);
	struct bulk b = open_bulk(ev);
	uint32_t id = ev->def->event_id, missing;
	uint64_t *lost;
	bool again;
	struct row_of_events *row = row_for(w, id, &lost);
	enum nt_status st;

	if (b.s.bad)
		return NT_OK;
	missing = check_index(row, b.index, &again);
	if (again) {
		st = end_walk(h, w, w->info.last_ns);
		if (st < 0)
			return st;
		w = take_walk(h, ev);
		row = row_for(w, id, &lost);
		missing = check_index(row, b.index, &again);
	}
	*lost += missing;
	if (missing && id == BULK_NODE)
		an_heapgraph_lost_objects(&w->graph);
	if (missing && id == BULK_EDGE)
		an_heapgraph_lost_edges(&w->graph);
	switch (id) {
	case BULK_NODE:
		return add_nodes(h, w, &b);
	case BULK_EDGE:
		return add_edges(w, &b);
	case BULK_ROOT_EDGE:
		return add_roots(w, &b);
	default:
		return add_weak(w, &b);
	}
}

/* Statics come first in a walk. */
static enum nt_status on_statics(struct an_heap_events *h, const struct nt_event *ev)
{
	struct open_walk *w = take_walk(h, ev);
	enum nt_status st = NT_OK;

	if (w->nodes.any) {
		st = end_walk(h, w, w->info.last_ns);
		w = take_walk(h, ev);
	}
	return st == NT_OK ? add_statics(w, ev) : st;
}

/* One that the same thread had not ended has lost its end. */
static enum nt_status on_gc_start(struct an_heap_events *h, const struct nt_event *ev)
{
	struct open_walk *w = walk_of(h, ev->thread_id);
	struct nt_value v[8];
	size_t n = nt_payload_read(ev, v, 8, NULL);
	enum nt_status st = w ? end_walk(h, w, w->info.last_ns) : NT_OK;

	h->in_gc = true;
	h->gc_ns = ev->time_ns;
	h->gc = (uint32_t)nt_value_u64(v, n, "Count", 0);
	h->gc_generation = (uint32_t)nt_value_u64(v, n, "Depth", 0);
	h->gc_reason = (uint32_t)nt_value_u64(v, n, "Reason", 0);
	h->gc_type = (uint32_t)nt_value_u64(v, n, "Type", 0);
	if (h->gc_type == TYPE_BACKGROUND)
		h->in_gc = false; /* others run inside of it, and it walks nothing */
	return st;
}

static enum nt_status on_gc_end(struct an_heap_events *h, const struct nt_event *ev)
{
	struct nt_value v[4];
	size_t n = nt_payload_read(ev, v, 4, NULL);
	uint32_t gc = (uint32_t)nt_value_u64(v, n, "Count", 0);
	enum nt_status st = NT_OK;

	for (size_t i = 0; i < MAX_OPEN && st == NT_OK; i++) {
		struct open_walk *w = &h->open[i];

		if (!w->used || (w->info.gc_known && w->info.gc != gc))
			continue;
		w->info.ended = true;
		st = end_walk(h, w, ev->time_ns);
	}
	if (h->in_gc && h->gc == gc)
		h->in_gc = false;
	return st;
}

enum nt_status an_heap_events_event(struct an_heap_events *h, const struct nt_event *ev)
{
	switch (ev->def->event_id) {
	case GC_START:
		return on_gc_start(h, ev);
	case GC_END:
		return on_gc_end(h, ev);
	case BULK_TYPE:
		return an_heap_types_event(&h->types, ev);
	case BULK_STATIC:
		return on_statics(h, ev);
	case BULK_ROOT_EDGE:
	case BULK_WEAK:
	case BULK_NODE:
	case BULK_EDGE:
		return on_bulk(h, ev);
	default:
		return NT_OK;
	}
}

enum nt_status an_heap_events_finish(struct an_heap_events *h)
{
	enum nt_status st = NT_OK;

	for (size_t i = 0; i < MAX_OPEN && st == NT_OK; i++)
		st = end_walk(h, &h->open[i], h->open[i].info.last_ns);
	return st;
}
