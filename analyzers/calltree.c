/* SPDX-License-Identifier: MIT */
#include "analyzers/calltree.h"

#include "analyzers/grow.h"

enum {
	MAX_NODES = 400 * 1000,
	FIRST_SLOTS = 1024,
	CACHE_SLOTS = 16 * 1024, /* a power of two; ids of stacks are dense */
};

/* Which node a stack id was; good while the stamp is the tree's. */
struct cached {
	uint64_t stamp;
	uint32_t stack_id;
	uint32_t base;
	uint32_t node;
};

struct an_calltree {
	const struct nt_alloc *alloc;
	const struct an_methods *methods;
	struct an_node *nodes;
	size_t count, cap;
	uint32_t *slots; /* node numbers by (parent, address, epoch, leaf); 0 free */
	size_t slot_count;
	uint32_t other; /* its node, or AN_NODE_NONE while there is none */
	uint64_t folded;
	struct cached *cache;
	uint64_t stamp; /* rises when cached nodes turn stale */
	uint64_t stack_epoch; /* of the cached ids */
	uint64_t changes; /* of the methods, ditto */
};

struct an_calltree *an_calltree_new(const struct nt_alloc *alloc, const struct an_methods *methods)
{
	struct an_calltree *t;

	if (!alloc)
		alloc = &nt_alloc_default;
	t = an_mem_get(alloc, sizeof(*t));
	if (!t)
		return NULL;
	t->alloc = alloc;
	t->methods = methods;
	t->stamp = 1;
	t->slot_count = FIRST_SLOTS;
	t->slots = an_mem_array(alloc, t->slot_count, sizeof(*t->slots));
	t->cache = an_mem_array(alloc, CACHE_SLOTS, sizeof(*t->cache));
	t->nodes = an_mem_grow(alloc, NULL, &t->cap, 1, sizeof(*t->nodes));
	if (!t->slots || !t->cache || !t->nodes)
		return an_calltree_free(t);
	t->count = 1; /* the root */
	return t;
}

struct an_calltree *an_calltree_free(struct an_calltree *t)
{
	if (!t)
		return NULL;
	an_mem_free(t->alloc, t->nodes);
	an_mem_free(t->alloc, t->slots);
	an_mem_free(t->alloc, t->cache);
	an_mem_free(t->alloc, t);
	return NULL;
}

static size_t slot_of(const struct an_node *n, size_t slot_count)
{
	uint64_t h = n->address * 0x9e3779b97f4a7c15u;

	h = (h ^ (h >> 32) ^ ((uint64_t)n->parent << 32 | n->epoch)) * 0xbf58476d1ce4e5b9u;
	h = (h ^ (h >> 29) ^ n->leaf) * 0x94d049bb133111ebu;
	return (size_t)(h ^ (h >> 32)) & (slot_count - 1);
}

static bool same_node(const struct an_node *a, const struct an_node *b)
{
	return a->address == b->address && a->parent == b->parent && a->epoch == b->epoch &&
	       a->leaf == b->leaf && a->other == b->other;
}

/* The slot that holds the node, or the free one where it belongs. */
static size_t find_slot(const struct an_calltree *t, const struct an_node *n)
{
	size_t i = slot_of(n, t->slot_count);

	while (t->slots[i] && !same_node(&t->nodes[t->slots[i]], n))
		i = (i + 1) & (t->slot_count - 1);
	return i;
}

static enum nt_status grow_slots(struct an_calltree *t)
{
	size_t n = t->slot_count * 2;
	uint32_t *slots = an_mem_array(t->alloc, n, sizeof(*slots));

	if (!slots)
		return NT_ENOMEM;
	for (size_t k = 1; k < t->count; k++) {
		size_t i = slot_of(&t->nodes[k], n);

		while (slots[i])
			i = (i + 1) & (n - 1);
		slots[i] = (uint32_t)k;
	}
	an_mem_free(t->alloc, t->slots);
	t->slots = slots;
	t->slot_count = n;
	return NT_OK;
}

/* The node equal to want, new if need be.  NT_ELIMIT when there is no room for it. */
static enum nt_status child(struct an_calltree *t, const struct an_node *want, uint32_t *ret)
{
	size_t slot = find_slot(t, want);
	struct an_node *nodes;

	if (t->slots[slot]) {
		*ret = t->slots[slot];
		return NT_OK;
	}
	if (t->count >= MAX_NODES && !want->other)
		return NT_ELIMIT;
	nodes = an_mem_grow(t->alloc, t->nodes, &t->cap, t->count + 1, sizeof(*nodes));
	if (!nodes)
		return NT_ENOMEM;
	t->nodes = nodes;
	if ((t->count + 1) * 3 > t->slot_count * 2) {
		if (grow_slots(t) < 0)
			return NT_ENOMEM;
		slot = find_slot(t, want);
	}
	nodes[t->count] = *want;
	t->slots[slot] = (uint32_t)t->count;
	*ret = (uint32_t)t->count++;
	return NT_OK;
}

static enum nt_status fold(struct an_calltree *t, uint32_t *ret)
{
	const struct an_node other = { .other = true, .leaf = true };

	t->folded++;
	if (t->other) {
		*ret = t->other;
		return NT_OK;
	}
	if (child(t, &other, &t->other) < 0)
		return NT_ENOMEM;
	*ret = t->other;
	return NT_OK;
}

enum nt_status an_calltree_intern_frames(struct an_calltree *t, uint32_t base,
					 const uint64_t *frames, size_t count, uint32_t *ret)
{
	uint32_t node = AN_NODE_NONE;

	for (size_t i = count; i-- > 0;) {
		struct an_node want = { .address = frames[i], .parent = node, .leaf = !i };
		enum nt_status st;

		/* A return address may be the first byte of whatever comes next. */
		want.epoch = an_methods_epoch_in(t->methods, base, want.address - !want.leaf);
		st = child(t, &want, &node);
		if (st == NT_ELIMIT)
			return fold(t, ret);
		if (st < 0)
			return st;
	}
	*ret = node;
	return NT_OK;
}

static struct cached *cache_slot(struct an_calltree *t, const struct nt_event *ev)
{
	uint64_t changes = an_methods_changes(t->methods);

	if (ev->stack_epoch != t->stack_epoch || changes != t->changes) {
		t->stack_epoch = ev->stack_epoch;
		t->changes = changes;
		t->stamp++;
	}
	return &t->cache[ev->stack_id & (CACHE_SLOTS - 1)];
}

enum nt_status an_calltree_intern(struct an_calltree *t, const struct nt_event *ev,
				  uint32_t *ret_node)
{
	uint32_t base;
	struct cached *c;
	enum nt_status st;

	if (!ev->frame_count) {
		*ret_node = AN_NODE_NONE;
		return NT_OK;
	}
	base = an_methods_base(t->methods, ev);
	if (!ev->stack_id)
		return an_calltree_intern_frames(t, base, ev->stack, ev->frame_count, ret_node);
	c = cache_slot(t, ev);
	if (c->stamp == t->stamp && c->stack_id == ev->stack_id && c->base == base) {
		*ret_node = c->node;
		if (c->node == t->other && c->node)
			t->folded++;
		return NT_OK;
	}
	st = an_calltree_intern_frames(t, base, ev->stack, ev->frame_count, ret_node);
	if (st == NT_OK)
		*c = (struct cached){ t->stamp, ev->stack_id, base, *ret_node };
	return st;
}

size_t an_calltree_count(const struct an_calltree *t)
{
	return t->count;
}

const struct an_node *an_calltree_node(const struct an_calltree *t, uint32_t node)
{
	return &t->nodes[node];
}

const struct an_method *an_calltree_method(const struct an_calltree *t, uint32_t node)
{
	const struct an_node *n = &t->nodes[node];

	if (node == AN_NODE_NONE || n->other)
		return NULL;
	return an_methods_find(t->methods, n->address - !n->leaf, n->epoch);
}

uint64_t an_calltree_folded(const struct an_calltree *t)
{
	return t->folded;
}
