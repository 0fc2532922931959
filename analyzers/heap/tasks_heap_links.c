/* SPDX-License-Identifier: MIT */

/*
 * Who waits for whom among the objects of one walk.
 *
 * What an async method awaits is the last edge behind the edge of its variables to its own box.
 * Combinations (WhenAll and the like) do not know their parts: those are the tasks whose
 * continuation is the combination.  What stands in front of the edge to the box is a mere variable.
 */

#include "analyzers/heap/tasks_heap_internal.h"

enum {
	CONTINUATION_AT = 6, /* a task's continuation is one of its first edges */
	SOURCE_EDGES = 64, /* of a ValueTask's source, to find the way back */
	MAX_STEPS = 256 << 20, /* elements of lists looked at, in all */
};

/* A task whose continuation is a combination. */
struct th_link {
	uint32_t child, parent; /* objects */
};

struct scan {
	struct th_nodes *n;
	size_t steps;
};

static enum th_kind kind_at(const struct th_nodes *n, uint32_t object)
{
	if (object == AN_HEAP_NONE)
		return TH_OTHER;
	return (enum th_kind)n->kinds[an_heapgraph_object(n->g, object)->type];
}

static const char *type_name(const struct th_nodes *n, uint32_t object)
{
	const char *name = n->types->types[an_heapgraph_object(n->g, object)->type].name;

	return name ? name : "";
}

static bool refers_to(const struct th_nodes *n, uint32_t object, uint32_t target, size_t max)
{
	size_t edge, end;

	an_heapgraph_edges(n->g, object, &edge, &end);
	for (; edge < end && max--; edge++)
		if (an_heapgraph_edge(n->g, edge) == target)
			return true;
	return false;
}

/* --- nodes --- */

/* AN_HEAP_NONE when there are too many. */
static enum nt_status take_node(struct th_nodes *n, uint32_t object, uint32_t *ret)
{
	struct th_node *nodes;
	enum nt_status st;

	*ret = nt_idmap_get(&n->by_object, object);
	if (*ret != NT_IDMAP_NONE)
		return NT_OK;
	if (n->count >= TH_MAX_NODES) {
		n->beyond++;
		return NT_OK;
	}
	nodes = an_mem_grow(n->alloc, n->nodes, &n->cap, n->count + 1, sizeof(*nodes));
	if (!nodes)
		return NT_ENOMEM;
	n->nodes = nodes;
	st = nt_idmap_put(&n->by_object, object, (uint32_t)n->count);
	if (st < 0)
		return st;
	nodes[n->count] = (struct th_node){
		.object = object,
		.awaits = AN_HEAP_NONE,
		.class_ = AN_HEAP_NONE,
		.kind = (uint8_t)kind_at(n, object),
	};
	*ret = (uint32_t)n->count++;
	return NT_OK;
}

/* --- what a method awaits --- */

/* The last edge of variables behind the one to their box; AN_HEAP_NONE: none. */
static uint32_t last_behind(const struct th_nodes *n, uint32_t variables, uint32_t box,
			    bool *ret_self)
{
	uint32_t last = AN_HEAP_NONE;
	size_t edge, end;

	*ret_self = false;
	an_heapgraph_edges(n->g, variables, &edge, &end);
	for (; edge < end; edge++) {
		uint32_t to = an_heapgraph_edge(n->g, edge);

		if (*ret_self)
			last = to;
		else
			*ret_self = to == box;
	}
	return last;
}

/* In Debug builds, and in iterators, the variables are an object of their own. */
static uint32_t find_awaited(const struct th_nodes *n, uint32_t box, bool *ret_self)
{
	uint32_t awaited = last_behind(n, box, box, ret_self);
	size_t edge, end;

	an_heapgraph_edges(n->g, box, &edge, &end);
	for (; edge < end && !*ret_self; edge++) {
		uint32_t to = an_heapgraph_edge(n->g, edge);

		if (kind_at(n, to) == TH_HOLDER &&
		    th_is_holder_of(type_name(n, box), type_name(n, to)))
			awaited = last_behind(n, to, box, ret_self);
	}
	return awaited;
}

/* The box of an iterator's variables. */
static uint32_t box_of(const struct th_nodes *n, uint32_t holder)
{
	size_t edge, end;

	an_heapgraph_edges(n->g, holder, &edge, &end);
	for (; edge < end; edge++) {
		uint32_t to = an_heapgraph_edge(n->g, edge);

		if (kind_at(n, to) == TH_BOX &&
		    th_is_holder_of(type_name(n, to), type_name(n, holder)))
			return to;
	}
	return AN_HEAP_NONE;
}

/* Whether an object that is no task leads back to the box: then it is what the box awaits. */
static bool leads_back(const struct th_nodes *n, uint32_t object, uint32_t box)
{
	size_t edge, end;

	an_heapgraph_edges(n->g, object, &edge, &end);
	if (end - edge > SOURCE_EDGES)
		end = edge + SOURCE_EDGES;
	for (; edge < end; edge++) {
		uint32_t to = an_heapgraph_edge(n->g, edge);
		enum th_kind kind = kind_at(n, to);

		if (to == box)
			return true;
		if ((kind == TH_ACTION || kind == TH_WRAPPER) &&
		    refers_to(n, to, box, SOURCE_EDGES))
			return true;
	}
	return false;
}

static bool has_timer(const struct th_nodes *n, uint32_t object)
{
	size_t edge, end;

	an_heapgraph_edges(n->g, object, &edge, &end);
	if (end - edge > SOURCE_EDGES)
		end = edge + SOURCE_EDGES;
	for (; edge < end; edge++)
		if (kind_at(n, an_heapgraph_edge(n->g, edge)) == TH_TIMER)
			return true;
	return false;
}

static enum nt_status add_box(struct th_nodes *n, uint32_t box)
{
	bool self;
	uint32_t awaited = find_awaited(n, box, &self), node, target = AN_HEAP_NONE;
	enum th_kind kind;
	enum nt_status st;

	if (!self)
		return NT_OK; /* it has ended, or its edges were lost */
	if (kind_at(n, awaited) == TH_HOLDER)
		awaited = box_of(n, awaited);
	kind = kind_at(n, awaited);
	if (awaited == AN_HEAP_NONE || awaited == box ||
	    (!th_is_task(kind) && !leads_back(n, awaited, box))) {
		n->unknown++;
		return NT_OK;
	}
	n->suspended++;
	st = take_node(n, box, &node);
	if (st == NT_OK)
		st = take_node(n, awaited, &target);
	if (st < 0 || node == AN_HEAP_NONE || target == AN_HEAP_NONE)
		return st;
	n->nodes[node].awaits = target;
	n->nodes[target].awaited = true;
	return NT_OK;
}

/* --- continuations --- */

static enum nt_status add_link(struct th_nodes *n, uint32_t child, uint32_t parent)
{
	struct th_link *links;

	if (n->link_count >= TH_MAX_NODES) {
		n->beyond++;
		return NT_OK;
	}
	links = an_mem_grow(n->alloc, n->links, &n->link_cap, n->link_count + 1, sizeof(*links));
	if (!links)
		return NT_ENOMEM;
	n->links = links;
	links[n->link_count++] = (struct th_link){ child, parent };
	return NT_OK;
}

/* One continuation of a task: is it a combination, or a thread that waits? */
static enum nt_status on_continuation(struct th_nodes *n, uint32_t task, uint32_t to)
{
	enum th_kind kind = kind_at(n, to);
	enum nt_status st = NT_OK;
	size_t edge, end;
	uint32_t node;

	if (th_is_combined(kind))
		return add_link(n, task, to);
	if (kind == TH_BLOCKED) {
		st = take_node(n, task, &node);
		if (st == NT_OK && node != AN_HEAP_NONE)
			n->nodes[node].blocked = true;
		return st;
	}
	if (kind != TH_CONTINUATION)
		return NT_OK;
	an_heapgraph_edges(n->g, to, &edge, &end);
	for (; edge < end && st == NT_OK; edge++) {
		uint32_t behind = an_heapgraph_edge(n->g, edge);

		if (kind_at(n, behind) == TH_CONTINUE_WITH)
			return add_link(n, task, behind);
	}
	return st;
}

static enum nt_status scan_array(struct scan *s, uint32_t task, uint32_t array)
{
	enum nt_status st = NT_OK;
	size_t edge, end;

	an_heapgraph_edges(s->n->g, array, &edge, &end);
	for (; edge < end && st == NT_OK && s->steps < MAX_STEPS; edge++, s->steps++)
		st = on_continuation(s->n, task, an_heapgraph_edge(s->n->g, edge));
	return st;
}

static enum nt_status scan_list(struct scan *s, uint32_t task, uint32_t list)
{
	enum nt_status st = NT_OK;
	size_t edge, end;

	an_heapgraph_edges(s->n->g, list, &edge, &end);
	for (; edge < end && st == NT_OK; edge++)
		if (kind_at(s->n, an_heapgraph_edge(s->n->g, edge)) == TH_ARRAY)
			st = scan_array(s, task, an_heapgraph_edge(s->n->g, edge));
	return st;
}

static enum nt_status scan_task(struct scan *s, uint32_t task)
{
	enum nt_status st = NT_OK;
	size_t edge, end;

	an_heapgraph_edges(s->n->g, task, &edge, &end);
	if (end - edge > CONTINUATION_AT)
		end = edge + CONTINUATION_AT;
	for (; edge < end && st == NT_OK; edge++) {
		uint32_t to = an_heapgraph_edge(s->n->g, edge);

		if (to == task)
			break; /* variables of the method follow */
		if (kind_at(s->n, to) == TH_LIST)
			st = scan_list(s, task, to);
		else
			st = on_continuation(s->n, task, to);
	}
	return st;
}

static enum nt_status scan_objects(struct th_nodes *n)
{
	struct scan s = { .n = n };
	enum nt_status st = NT_OK;

	for (size_t i = 0; i < n->g->objects.count && st == NT_OK; i++) {
		const struct an_heap_object *o = an_heapgraph_object(n->g, (uint32_t)i);
		enum th_kind kind = (enum th_kind)n->kinds[o->type];
		const char *name = n->types->types[o->type].name;

		n->unnamed += !name || !*name;
		if (kind == TH_BOX)
			st = add_box(n, (uint32_t)i);
		if (st == NT_OK && th_is_task(kind))
			st = scan_task(&s, (uint32_t)i);
	}
	if (s.steps >= MAX_STEPS)
		n->beyond++;
	return st;
}

/* --- parts of combinations --- */

static bool is_part(const struct th_nodes *n, const struct th_link *link)
{
	uint32_t child = nt_idmap_get(&n->by_object, link->child);
	uint32_t parent = nt_idmap_get(&n->by_object, link->parent);

	/* A method that awaits a combination has it as a variable, too. */
	return child == NT_IDMAP_NONE || parent == NT_IDMAP_NONE ||
	       n->nodes[child].awaits != parent;
}

/* Counts the parts of each, then puts them one behind the other. */
static enum nt_status place_parts(struct th_nodes *n)
{
	uint32_t at = 0;

	n->children = an_mem_array(n->alloc, n->link_count, sizeof(*n->children));
	if (!n->children)
		return NT_ENOMEM;
	n->child_count = n->link_count;
	for (size_t i = 0; i < n->link_count; i++)
		if (n->links[i].parent != AN_HEAP_NONE)
			n->nodes[n->links[i].parent].child_count++;
	for (size_t i = 0; i < n->count; i++) {
		n->nodes[i].first_child = at;
		at += n->nodes[i].child_count;
		n->nodes[i].child_count = 0;
	}
	for (size_t i = 0; i < n->link_count; i++) {
		struct th_node *parent;

		if (n->links[i].parent == AN_HEAP_NONE)
			continue;
		parent = &n->nodes[n->links[i].parent];
		n->children[parent->first_child + parent->child_count++] = n->links[i].child;
		n->nodes[n->links[i].child].awaited = true;
	}
	return NT_OK;
}

/* From here on links are between nodes. */
static enum nt_status link_parts(struct th_nodes *n)
{
	for (size_t i = 0; i < n->link_count; i++) {
		struct th_link *link = &n->links[i];
		uint32_t child = AN_HEAP_NONE, parent = AN_HEAP_NONE;
		enum nt_status st = NT_OK;

		if (is_part(n, link)) {
			st = take_node(n, link->child, &child);
			if (st == NT_OK)
				st = take_node(n, link->parent, &parent);
			if (st < 0)
				return st;
		}
		if (child == AN_HEAP_NONE)
			parent = AN_HEAP_NONE;
		*link = (struct th_link){ child, parent };
	}
	return place_parts(n);
}

/* --- leaves --- */

static enum an_leaf leaf_kind(const struct th_nodes *n, const struct th_node *x)
{
	size_t edge, end;

	switch (x->kind) {
	case TH_BOX:
		return AN_LEAF_NONE;
	case TH_DELAY:
		return AN_LEAF_DELAY;
	case TH_SEMAPHORE:
		return AN_LEAF_SEMAPHORE;
	case TH_CHANNEL_READ:
		return AN_LEAF_CHANNEL_READ;
	case TH_CHANNEL_WRITE:
		return AN_LEAF_CHANNEL_WRITE;
	case TH_IO:
		return AN_LEAF_IO;
	case TH_TASK:
		break;
	default:
		if (th_is_combined((enum th_kind)x->kind))
			return AN_LEAF_COMBINED;
		return has_timer(n, x->object) ? AN_LEAF_TIMER : AN_LEAF_VALUE_TASK;
	}
	an_heapgraph_edges(n->g, x->object, &edge, &end);
	if (edge < end) {
		enum th_kind first = kind_at(n, an_heapgraph_edge(n->g, edge));

		/* Its code is in front of all else; an Action may be a continuation as well. */
		if (first == TH_DELEGATE || (first == TH_ACTION && end - edge > 1))
			return AN_LEAF_WORK;
	}
	return AN_LEAF_TASK;
}

static void mark_leaves(struct th_nodes *n)
{
	for (size_t i = 0; i < n->count; i++) {
		struct th_node *x = &n->nodes[i];

		x->is_leaf = x->awaits == AN_HEAP_NONE && !x->child_count;
		if (x->is_leaf)
			x->leaf = (uint8_t)leaf_kind(n, x);
	}
}

/* Tasks that a TaskCompletionSource, still there, could complete. */
static void mark_sources(struct th_nodes *n)
{
	for (size_t i = 0; i < n->g->objects.count; i++) {
		size_t edge, end;

		if (kind_at(n, (uint32_t)i) != TH_SOURCE)
			continue;
		an_heapgraph_edges(n->g, (uint32_t)i, &edge, &end);
		for (; edge < end; edge++) {
			uint32_t to = an_heapgraph_edge(n->g, edge), node;

			node = to == AN_HEAP_NONE ? NT_IDMAP_NONE : nt_idmap_get(&n->by_object, to);
			if (node != NT_IDMAP_NONE && n->nodes[node].leaf == AN_LEAF_TASK)
				n->nodes[node].leaf = AN_LEAF_SOURCE;
		}
	}
}

enum nt_status th_nodes_make(struct th_nodes *n, const struct nt_alloc *alloc,
			     const struct an_heapgraph *g, const struct an_heap_types *types)
{
	enum nt_status st;

	*n = (struct th_nodes){ .alloc = alloc, .g = g, .types = types };
	nt_idmap_init(&n->by_object, alloc);
	n->kinds = an_mem_array(alloc, types->count, 1);
	if (!n->kinds)
		return NT_ENOMEM;
	for (size_t i = 1; i < types->count; i++)
		n->kinds[i] = (uint8_t)th_kind_of(&types->types[i]);
	st = scan_objects(n);
	if (st == NT_OK)
		st = link_parts(n);
	if (st < 0)
		return st;
	mark_leaves(n);
	mark_sources(n);
	return NT_OK;
}

void th_nodes_done(struct th_nodes *n)
{
	if (!n->alloc)
		return;
	an_mem_free(n->alloc, n->kinds);
	an_mem_free(n->alloc, n->nodes);
	an_mem_free(n->alloc, n->children);
	an_mem_free(n->alloc, n->links);
	nt_idmap_done(&n->by_object);
	n->alloc = NULL;
}
