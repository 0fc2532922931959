/* SPDX-License-Identifier: MIT */
#include "analyzers/heap/heapgraph.h"

enum {
	MAX_OBJECTS = 400 * 1000 * 1000,
	MAX_ROOTS = 4 << 20,
	MAX_WEAK = 64 << 20,
	MAX_NAME_BYTES = 16 << 20,
	PLACE_BITS = 19, /* of a compact address: which unit of its page */
	MAX_PAGES = (1 << (32 - PLACE_BITS)) - 1, /* the last one is never used: AN_HEAP_NONE */
	LEAF_BITS = 9, /* units of one leaf: 512 */
	LEAF_WORDS = (1 << LEAF_BITS) / 64,
	PAGE_LEAVES = 1 << (PLACE_BITS - LEAF_BITS),
};

#define MAX_EDGES ((size_t)UINT32_MAX - 1)

/* Which units of 512 have an object, and how many objects have lower addresses. */
struct an_heap_leaf {
	uint64_t bits[LEAF_WORDS];
	uint32_t rank;
};

void an_heapgraph_init(struct an_heapgraph *g, const struct nt_alloc *alloc, unsigned pointer_size,
		       size_t max_objects)
{
	*g = (struct an_heapgraph){
		.alloc = alloc,
		.pointer_size = pointer_size,
		.align_shift = pointer_size == 4 ? 2 : 3,
		.max_objects = max_objects ? max_objects : MAX_OBJECTS,
		.trusted_objects = SIZE_MAX,
		.trusted_edges = SIZE_MAX,
	};
	g->page_shift = g->align_shift + PLACE_BITS;
	an_chunks_init(&g->objects, sizeof(struct an_heap_object));
	an_chunks_init(&g->edges, sizeof(uint32_t));
	an_chunks_init(&g->order, sizeof(uint32_t));
	an_chunks_init(&g->leaves, sizeof(struct an_heap_leaf));
	an_chunks_init(&g->weak, sizeof(struct an_heap_pair));
	nt_idmap_init(&g->pages, alloc);
	nt_idmap_init(&g->large, alloc);
	nt_arena_init(&g->names, alloc, MAX_NAME_BYTES);
}

void an_heapgraph_done(struct an_heapgraph *g)
{
	const struct nt_alloc *al = g->alloc;

	if (!al)
		return;
	an_chunks_done(&g->objects, al);
	an_chunks_done(&g->edges, al);
	an_chunks_done(&g->order, al);
	an_chunks_done(&g->leaves, al);
	an_chunks_done(&g->weak, al);
	for (size_t i = 0; i < g->page_count; i++)
		an_mem_free(al, g->page_leaves[i]);
	an_mem_free(al, g->page_leaves);
	an_mem_free(al, g->page_bits);
	an_mem_free(al, g->large_bytes);
	an_mem_free(al, g->roots);
	nt_idmap_done(&g->pages);
	nt_idmap_done(&g->large);
	nt_arena_done(&g->names);
	g->alloc = NULL;
}

/* --- addresses --- */

static enum nt_status add_page(struct an_heapgraph *g, uint64_t bits, uint32_t *ret)
{
	uint64_t *page_bits;
	uint32_t **leaves;
	enum nt_status st;

	*ret = AN_HEAP_NONE;
	if (g->page_count >= MAX_PAGES)
		return NT_OK;
	page_bits = an_mem_grow(g->alloc, g->page_bits, &g->bits_cap, g->page_count + 1,
				sizeof(*page_bits));
	if (!page_bits)
		return NT_ENOMEM;
	g->page_bits = page_bits;
	leaves = an_mem_grow(g->alloc, g->page_leaves, &g->leaves_cap, g->page_count + 1,
			     sizeof(*leaves));
	if (!leaves)
		return NT_ENOMEM;
	g->page_leaves = leaves;
	st = nt_idmap_put(&g->pages, bits, (uint32_t)g->page_count);
	if (st < 0)
		return st;
	page_bits[g->page_count] = bits;
	leaves[g->page_count] = NULL;
	*ret = (uint32_t)g->page_count++;
	return NT_OK;
}

static uint32_t place_of(const struct an_heapgraph *g, uint64_t address)
{
	return (uint32_t)(address >> g->align_shift) & ((UINT32_C(1) << PLACE_BITS) - 1);
}

static bool is_aligned(const struct an_heapgraph *g, uint64_t address)
{
	return (address & ((UINT64_C(1) << g->align_shift) - 1)) == 0;
}

/* AN_HEAP_NONE for what cannot be an object's address. */
static enum nt_status compact(struct an_heapgraph *g, uint64_t address, uint32_t *ret)
{
	uint64_t bits = address >> g->page_shift;
	uint32_t page;
	enum nt_status st = NT_OK;

	*ret = AN_HEAP_NONE;
	if (!address || !is_aligned(g, address))
		return NT_OK;
	page = nt_idmap_get(&g->pages, bits);
	if (page == NT_IDMAP_NONE)
		st = add_page(g, bits, &page);
	if (st < 0)
		return st;
	if (page == AN_HEAP_NONE)
		g->addresses_beyond++;
	else
		*ret = page << PLACE_BITS | place_of(g, address);
	return NT_OK;
}

/* --- filling --- */

static enum nt_status note_large(struct an_heapgraph *g, uint32_t object, uint64_t bytes)
{
	uint64_t *list = an_mem_grow(g->alloc, g->large_bytes, &g->large_cap, g->large_count + 1,
				     sizeof(*list));

	if (!list)
		return NT_ENOMEM;
	g->large_bytes = list;
	list[g->large_count] = bytes;
	return nt_idmap_put(&g->large, object, (uint32_t)g->large_count++);
}

enum nt_status an_heapgraph_add_object(struct an_heapgraph *g, uint64_t address, uint64_t bytes,
				       uint32_t type, uint64_t edge_count)
{
	struct an_heap_object *o;
	uint64_t first = g->edges_declared;
	uint32_t at;
	enum nt_status st;

	g->object_total++;
	g->bytes_total += bytes;
	if (__builtin_add_overflow(g->edges_declared, edge_count, &g->edges_declared))
		g->edges_declared = UINT64_MAX;
	if (g->objects.count >= g->max_objects || first > MAX_EDGES) {
		g->objects_beyond++;
		return NT_OK;
	}
	st = compact(g, address, &at);
	if (st < 0)
		return st;
	o = an_chunks_add(&g->objects, g->alloc);
	if (!o)
		return NT_ENOMEM;
	*o = (struct an_heap_object){
		.address = at,
		.type = type,
		.bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX,
		.first_edge = (uint32_t)first,
	};
	return bytes < UINT32_MAX ? NT_OK : note_large(g, (uint32_t)g->objects.count - 1, bytes);
}

enum nt_status an_heapgraph_add_edge(struct an_heapgraph *g, uint64_t target)
{
	uint32_t at, *edge;
	enum nt_status st;

	g->edge_total++;
	if (g->edges.count >= MAX_EDGES)
		return NT_OK;
	st = compact(g, target, &at);
	if (st < 0)
		return st;
	edge = an_chunks_add(&g->edges, g->alloc);
	if (!edge)
		return NT_ENOMEM;
	*edge = at;
	return NT_OK;
}

enum nt_status an_heapgraph_add_root(struct an_heapgraph *g, uint64_t address,
				     enum an_root_kind kind, unsigned flags, uint64_t id,
				     const char *field, size_t len)
{
	struct an_heap_root *roots;
	const char *copy = NULL;

	if (!address)
		return NT_OK;
	if (g->root_count >= MAX_ROOTS) {
		g->roots_beyond++;
		return NT_OK;
	}
	if (field) {
		copy = nt_arena_text(&g->names, field, len);
		if (!copy && !g->names.full)
			return NT_ENOMEM;
	}
	roots = an_mem_grow(g->alloc, g->roots, &g->root_cap, g->root_count + 1, sizeof(*roots));
	if (!roots)
		return NT_ENOMEM;
	g->roots = roots;
	roots[g->root_count++] = (struct an_heap_root){
		.address = address,
		.id = id,
		.field = copy,
		.object = AN_HEAP_NONE,
		.kind = (uint8_t)kind,
		.flags = (uint8_t)flags,
	};
	return NT_OK;
}

enum nt_status an_heapgraph_add_weak(struct an_heapgraph *g, uint64_t key, uint64_t value)
{
	struct an_heap_pair pair, *p;
	enum nt_status st;

	if (g->weak.count >= MAX_WEAK) {
		g->weak_beyond++;
		return NT_OK;
	}
	st = compact(g, key, &pair.key);
	if (st == NT_OK)
		st = compact(g, value, &pair.value);
	if (st < 0)
		return st;
	p = an_chunks_add(&g->weak, g->alloc);
	if (!p)
		return NT_ENOMEM;
	*p = pair;
	return NT_OK;
}

void an_heapgraph_lost_objects(struct an_heapgraph *g)
{
	if (g->trusted_objects == SIZE_MAX)
		g->trusted_objects = g->objects.count;
}

void an_heapgraph_lost_edges(struct an_heapgraph *g)
{
	if (g->trusted_edges == SIZE_MAX)
		g->trusted_edges = g->edges.count;
}

/* --- finishing --- */

static struct an_heap_leaf *leaf_of(const struct an_heapgraph *g, uint32_t address)
{
	const uint32_t *leaves = g->page_leaves[address >> PLACE_BITS];
	uint32_t leaf;

	if (!leaves)
		return NULL;
	leaf = leaves[(address >> LEAF_BITS) & (PAGE_LEAVES - 1)];
	return leaf ? an_chunks_at(&g->leaves, leaf - 1) : NULL;
}

static struct an_heap_leaf *make_leaf(struct an_heapgraph *g, uint32_t address)
{
	uint32_t **leaves = &g->page_leaves[address >> PLACE_BITS];
	struct an_heap_leaf *leaf = leaf_of(g, address);

	if (leaf)
		return leaf;
	if (!*leaves)
		*leaves = an_mem_array(g->alloc, PAGE_LEAVES, sizeof(**leaves));
	if (!*leaves)
		return NULL;
	leaf = an_chunks_add(&g->leaves, g->alloc);
	if (leaf)
		(*leaves)[(address >> LEAF_BITS) & (PAGE_LEAVES - 1)] = (uint32_t)g->leaves.count;
	return leaf;
}

static unsigned bit_of(uint32_t address)
{
	return address & ((1u << LEAF_BITS) - 1);
}

/* How many objects of the leaf are in front of that bit. */
static uint32_t ones_before(const struct an_heap_leaf *leaf, unsigned bit)
{
	uint32_t n = 0;

	for (unsigned w = 0; w < bit / 64; w++)
		n += (uint32_t)__builtin_popcountll(leaf->bits[w]);
	if (bit % 64)
		n += (uint32_t)__builtin_popcountll(leaf->bits[bit / 64] << (64 - bit % 64));
	return n;
}

static uint32_t look_up(const struct an_heapgraph *g, uint32_t address)
{
	const struct an_heap_leaf *leaf = leaf_of(g, address);
	unsigned bit = bit_of(address);

	if (!leaf || !(leaf->bits[bit / 64] >> (bit % 64) & 1))
		return AN_HEAP_NONE;
	return *(const uint32_t *)an_chunks_at(&g->order, leaf->rank + ones_before(leaf, bit));
}

static enum nt_status mark_objects(struct an_heapgraph *g)
{
	for (size_t i = 0; i < g->objects.count; i++) {
		struct an_heap_object *o = an_chunks_at(&g->objects, i);
		struct an_heap_leaf *leaf;
		unsigned bit = bit_of(o->address);

		if (o->address == AN_HEAP_NONE)
			continue;
		leaf = make_leaf(g, o->address);
		if (!leaf)
			return NT_ENOMEM;
		if (leaf->bits[bit / 64] >> (bit % 64) & 1) {
			g->duplicates++;
			o->address = AN_HEAP_NONE;
			continue;
		}
		leaf->bits[bit / 64] |= UINT64_C(1) << (bit % 64);
	}
	return NT_OK;
}

static enum nt_status rank_objects(struct an_heapgraph *g)
{
	uint32_t rank = 0;

	for (size_t page = 0; page < g->page_count; page++) {
		const uint32_t *leaves = g->page_leaves[page];

		for (size_t i = 0; leaves && i < PAGE_LEAVES; i++) {
			struct an_heap_leaf *leaf;

			if (!leaves[i])
				continue;
			leaf = an_chunks_at(&g->leaves, leaves[i] - 1);
			leaf->rank = rank;
			for (size_t w = 0; w < LEAF_WORDS; w++)
				rank += (uint32_t)__builtin_popcountll(leaf->bits[w]);
		}
	}
	if (!an_chunks_fill(&g->order, g->alloc, rank))
		return NT_ENOMEM;
	for (size_t i = 0; i < g->objects.count; i++) {
		const struct an_heap_object *o = an_chunks_at(&g->objects, i);
		const struct an_heap_leaf *leaf;

		if (o->address == AN_HEAP_NONE)
			continue;
		leaf = leaf_of(g, o->address);
		*(uint32_t *)an_chunks_at(&g->order,
					  leaf->rank + ones_before(leaf, bit_of(o->address))) =
			(uint32_t)i;
	}
	return NT_OK;
}

static uint32_t resolve(const struct an_heapgraph *g, uint32_t address)
{
	return address == AN_HEAP_NONE ? AN_HEAP_NONE : look_up(g, address);
}

static void resolve_edges(struct an_heapgraph *g)
{
	for (size_t i = 0; i < g->edges.count; i++) {
		uint32_t *edge = an_chunks_at(&g->edges, i);

		*edge = resolve(g, *edge);
		g->dangling += *edge == AN_HEAP_NONE;
	}
	for (size_t i = 0; i < g->weak.count; i++) {
		struct an_heap_pair *pair = an_chunks_at(&g->weak, i);

		pair->key = resolve(g, pair->key);
		pair->value = resolve(g, pair->value);
	}
}

enum nt_status an_heapgraph_finish(struct an_heapgraph *g)
{
	enum nt_status st = mark_objects(g);

	if (st == NT_OK)
		st = rank_objects(g);
	if (st < 0)
		return st;
	resolve_edges(g);
	g->finished = true;
	for (size_t i = 0; i < g->root_count; i++)
		g->roots[i].object = an_heapgraph_find(g, g->roots[i].address,
						       g->roots[i].flags & AN_ROOT_INTERIOR);
	return NT_OK;
}

/* --- asking --- */

static uint64_t end_of_edges(const struct an_heapgraph *g, uint32_t i)
{
	if (i + 1 < g->objects.count)
		return an_heapgraph_object(g, i + 1)->first_edge;
	return g->objects_beyond ? an_heapgraph_object(g, i)->first_edge : g->edges_declared;
}

bool an_heapgraph_has_edges(const struct an_heapgraph *g, uint32_t i)
{
	uint64_t end = end_of_edges(g, i);

	return i < g->trusted_objects && end <= g->trusted_edges && end <= g->edges.count;
}

void an_heapgraph_edges(const struct an_heapgraph *g, uint32_t i, size_t *ret_first,
			size_t *ret_end)
{
	*ret_first = *ret_end = 0;
	if (!an_heapgraph_has_edges(g, i))
		return;
	*ret_first = an_heapgraph_object(g, i)->first_edge;
	*ret_end = (size_t)end_of_edges(g, i);
}

static uint64_t address_of(const struct an_heapgraph *g, uint32_t compact_address)
{
	uint64_t place = compact_address & ((UINT32_C(1) << PLACE_BITS) - 1);

	return g->page_bits[compact_address >> PLACE_BITS] << g->page_shift |
	       place << g->align_shift;
}

uint64_t an_heapgraph_address(const struct an_heapgraph *g, uint32_t i)
{
	uint32_t address = an_heapgraph_object(g, i)->address;

	return address == AN_HEAP_NONE ? 0 : address_of(g, address);
}

uint64_t an_heapgraph_bytes(const struct an_heapgraph *g, uint32_t i)
{
	uint32_t bytes = an_heapgraph_object(g, i)->bytes, at = NT_IDMAP_NONE;

	if (bytes == UINT32_MAX)
		at = nt_idmap_get(&g->large, i);
	return at == NT_IDMAP_NONE ? bytes : g->large_bytes[at];
}

/* The last object of that page whose place is at most limit. */
static uint32_t last_in_page(const struct an_heapgraph *g, uint32_t page, uint32_t limit)
{
	const uint32_t *leaves = g->page_leaves[page];

	for (size_t i = limit >> LEAF_BITS, first = i; leaves && i != SIZE_MAX; i--) {
		unsigned last = i == first ? bit_of(limit) : (1u << LEAF_BITS) - 1;
		const struct an_heap_leaf *leaf;
		uint32_t n;

		if (!leaves[i])
			continue;
		leaf = an_chunks_at(&g->leaves, leaves[i] - 1);
		n = ones_before(leaf, last) + (leaf->bits[last / 64] >> (last % 64) & 1);
		if (n)
			return *(const uint32_t *)an_chunks_at(&g->order, leaf->rank + n - 1);
	}
	return AN_HEAP_NONE;
}

/* The object around an address: large ones reach over many pages, of which some are not known. */
static uint32_t find_around(const struct an_heapgraph *g, uint64_t address)
{
	enum { MAX_BACK = 1 << 12 }; /* pages: 16 GiB */
	uint64_t bits = address >> g->page_shift;
	uint32_t limit = place_of(g, address), found = AN_HEAP_NONE;

	for (unsigned back = 0; back < MAX_BACK && found == AN_HEAP_NONE && bits >= back; back++) {
		uint32_t page = nt_idmap_get(&g->pages, bits - back);

		if (page != NT_IDMAP_NONE)
			found = last_in_page(g, page, limit);
		limit = (UINT32_C(1) << PLACE_BITS) - 1;
	}
	if (found != AN_HEAP_NONE &&
	    address - an_heapgraph_address(g, found) >= an_heapgraph_bytes(g, found))
		return AN_HEAP_NONE;
	return found;
}

uint32_t an_heapgraph_find(const struct an_heapgraph *g, uint64_t address, bool interior)
{
	uint32_t page, found = AN_HEAP_NONE;

	page = nt_idmap_get(&g->pages, address >> g->page_shift);
	if (page != NT_IDMAP_NONE && is_aligned(g, address))
		found = look_up(g, page << PLACE_BITS | place_of(g, address));
	return found == AN_HEAP_NONE && interior ? find_around(g, address) : found;
}

static size_t held(const struct an_chunks *c)
{
	return c->chunk_count * AN_CHUNK_ITEMS * c->item + c->chunk_cap * sizeof(void *);
}

size_t an_heapgraph_memory(const struct an_heapgraph *g)
{
	size_t n = held(&g->objects) + held(&g->edges) + held(&g->order) + held(&g->leaves) +
		   held(&g->weak);

	for (size_t i = 0; i < g->page_count; i++)
		n += g->page_leaves[i] ? PAGE_LEAVES * sizeof(uint32_t) : 0;
	return n + g->root_cap * sizeof(*g->roots);
}
