/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_HEAP_HEAPGRAPH_H
#define ANALYZERS_HEAP_HEAPGRAPH_H

/*
 * The objects of one heap walk and what refers to what: the base of everything said about a heap.
 *
 * Objects keep the order in which they came, edges the order of an object's fields.  Memory is 20
 * bytes an object and 4 bytes an edge, and a bitmap of the addresses that takes a sixty-fourth of
 * the heap at most: an address is kept as a number of 32 bits, its page's number and its place in
 * the page (4 MiB with 8-byte pointers, so 32 GiB of touched pages fit).
 *
 * Fill with an_heapgraph_add_...(), call an_heapgraph_finish(), then ask.  Who fills it (the
 * runtime's events, Mono's, a .gcdump file) is not its business.
 */

#include "analyzers/chunks.h"
#include "analyzers/heap/heap_types.h"
#include "nettrace/idmap.h"

#define AN_HEAP_NONE UINT32_MAX

struct an_heap_object {
	uint32_t address; /* compact: an_heapgraph_address() has the real one */
	uint32_t type; /* place in the table of types */
	uint32_t bytes; /* UINT32_MAX: an_heapgraph_bytes() knows */
	uint32_t first_edge;
};

/* GCRootKind of GCBulkRootEdge, and the one of GCBulkRootStaticVar. */
enum an_root_kind {
	AN_ROOT_STACK,
	AN_ROOT_FINALIZER,
	AN_ROOT_HANDLE,
	AN_ROOT_OTHER,
	AN_ROOT_SIZED_REF,
	AN_ROOT_OVERFLOW,
	AN_ROOT_STATIC,
	AN_ROOT_KINDS
};

enum an_root_flags {
	AN_ROOT_PINNING = 1,
	AN_ROOT_WEAK = 2,
	AN_ROOT_INTERIOR = 4,
	AN_ROOT_REF_COUNTED = 8,
	AN_ROOT_THREAD_LOCAL = 16, /* of statics */
};

struct an_heap_root {
	uint64_t address; /* what it refers to, as the walk said */
	uint64_t id; /* method of a local, address of a handle or a static */
	const char *field; /* of a static; NULL otherwise */
	uint32_t object; /* index; AN_HEAP_NONE: none, or not among the objects */
	uint8_t kind, flags;
};

struct an_heap_leaf;

struct an_heapgraph {
	const struct nt_alloc *alloc;
	unsigned pointer_size;
	unsigned align_shift, page_shift;
	struct an_chunks objects; /* struct an_heap_object */
	struct an_chunks edges; /* uint32_t: compact address; index of an object once finished */
	struct an_chunks order; /* uint32_t: index of an object by the rank of its address */
	struct nt_idmap pages; /* number of a page by the upper bits of its addresses */
	uint64_t *page_bits; /* those bits, by number */
	size_t page_count, page_cap, bits_cap;
	uint32_t **page_leaves; /* by number; NULL, or leaf of each part of the page */
	size_t leaves_cap;
	struct an_chunks leaves; /* struct an_heap_leaf */
	struct nt_idmap large; /* object -> place in large_bytes */
	uint64_t *large_bytes;
	size_t large_count, large_cap;
	struct an_heap_root *roots;
	size_t root_count, root_cap;
	struct an_chunks weak; /* struct an_heap_pair: key keeps value (ConditionalWeakTable) */
	struct nt_arena names;
	size_t max_objects; /* more are counted, not kept */
	bool finished;

	/* What there was, and what of it is missing here. */
	uint64_t object_total, edge_total, bytes_total;
	uint64_t objects_beyond; /* more than max_objects */
	uint64_t addresses_beyond; /* outside of what can be numbered */
	uint64_t duplicates; /* objects at an address that is taken */
	uint64_t dangling; /* edges to something that is no object here */
	uint64_t roots_beyond;
	uint64_t weak_beyond;
	uint64_t edges_declared; /* sum of what the objects say */
	size_t trusted_objects, trusted_edges; /* before the first loss; SIZE_MAX: none */
};

struct an_heap_pair {
	uint32_t key, value; /* as edges: addresses, then indexes */
};

/* max_objects 0: the default, 400 million. */
void an_heapgraph_init(struct an_heapgraph *g, const struct nt_alloc *alloc, unsigned pointer_size,
		       size_t max_objects);
void an_heapgraph_done(struct an_heapgraph *g);

NT_MUST_CHECK enum nt_status an_heapgraph_add_object(struct an_heapgraph *g, uint64_t address,
						     uint64_t bytes, uint32_t type,
						     uint64_t edge_count);
/* The next edge of all: objects take theirs in the order in which they came. */
NT_MUST_CHECK enum nt_status an_heapgraph_add_edge(struct an_heapgraph *g, uint64_t target);
/* field, of a static, is copied.  Rows without an object are left out. */
NT_MUST_CHECK enum nt_status an_heapgraph_add_root(struct an_heapgraph *g, uint64_t address,
						   enum an_root_kind kind, unsigned flags,
						   uint64_t id, const char *field, size_t len);
NT_MUST_CHECK enum nt_status an_heapgraph_add_weak(struct an_heapgraph *g, uint64_t key,
						   uint64_t value);
/* Some were lost here: edges that come later cannot be told whose they are. */
void an_heapgraph_lost_objects(struct an_heapgraph *g);
void an_heapgraph_lost_edges(struct an_heapgraph *g);

/* Addresses become indexes.  Nothing can be added afterwards. */
NT_MUST_CHECK enum nt_status an_heapgraph_finish(struct an_heapgraph *g);

static inline const struct an_heap_object *an_heapgraph_object(const struct an_heapgraph *g,
							       uint32_t i)
{
	return an_chunks_at(&g->objects, i);
}

/* Index of the object that edge leads to, or AN_HEAP_NONE. */
static inline uint32_t an_heapgraph_edge(const struct an_heapgraph *g, size_t edge)
{
	return *(const uint32_t *)an_chunks_at(&g->edges, edge);
}

/* Edges [*ret_first, *ret_end) of an object; none where they are not known. */
void an_heapgraph_edges(const struct an_heapgraph *g, uint32_t i, size_t *ret_first,
			size_t *ret_end);
/* Whether the edges of that object are known: no loss before them. */
bool an_heapgraph_has_edges(const struct an_heapgraph *g, uint32_t i);
uint64_t an_heapgraph_address(const struct an_heapgraph *g, uint32_t i);
uint64_t an_heapgraph_bytes(const struct an_heapgraph *g, uint32_t i);
/* The object at that address; with interior, the one around it. */
uint32_t an_heapgraph_find(const struct an_heapgraph *g, uint64_t address, bool interior);
/* Memory held for objects, edges and addresses. */
size_t an_heapgraph_memory(const struct an_heapgraph *g);

/*
 * The root nearest to each object: labels gets one uint32_t an object, an index of roots, or
 * AN_HEAP_NONE where nothing leads.  Statics come before handles, those before the rest.
 */
NT_MUST_CHECK enum nt_status an_heapgraph_label_roots(const struct an_heapgraph *g,
						      struct an_chunks *labels);

#endif
