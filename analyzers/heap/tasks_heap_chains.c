/* SPDX-License-Identifier: MIT */

/*
 * Equal chains merged into one.
 *
 * First each object gets the number of its class: what it is, and the classes of what it awaits.
 * Thousands of equal chains of thousands of methods are one chain of classes then.  Next the paths
 * from the outermost classes to the innermost ones are the rows.  Nothing here calls itself: chains
 * may be of any length, and may be circles.
 */

#include <stdlib.h>

#include "analyzers/heap/tasks_heap_internal.h"

enum {
	MAX_ROWS = 4096,
	MAX_BYTES = 64 << 20,
	MAX_STEPS = 4 << 20, /* classes on paths, in all */
	MAX_HEADS = 1 << 20, /* addresses kept, of all rows */
	FRAMES = 64, /* of a row; the innermost */
	NAME_BYTES = 512,
	CYCLE_CLASS = 0,
};

enum { WHITE, GREY, BLACK };

struct part {
	uint32_t class_;
	uint64_t count;
};

struct class_ {
	uint64_t hash;
	uint32_t node; /* one of its members */
	uint32_t first_part, part_count;
	uint32_t heads, first_head; /* members that nobody awaits; in heads */
};

struct frame {
	uint32_t at; /* node, or class */
	uint32_t next; /* part to be looked at */
	uint64_t hash, count; /* of the path so far */
};

struct build {
	struct th_rows *rows;
	struct th_nodes *n;
	struct class_ *classes;
	size_t class_count, class_cap;
	struct nt_idmap by_hash;
	struct part *parts;
	size_t part_count, part_cap;
	struct part *now; /* of one node */
	size_t now_cap;
	struct frame *stack;
	size_t depth, stack_cap;
	uint32_t *heads; /* nodes, by class */
	struct nt_idmap names; /* type -> place in name_list */
	const char **name_list;
	size_t name_count, name_cap;
	size_t steps;
};

static uint64_t mix(uint64_t h, uint64_t v)
{
	h ^= v + UINT64_C(0x9e3779b97f4a7c15) + (h << 6) + (h >> 2);
	h *= UINT64_C(0xff51afd7ed558ccd);
	return h ^ (h >> 33);
}

/* What a node is, whatever it awaits. */
static uint64_t label_of(const struct build *b, const struct th_node *x)
{
	uint64_t h = mix(17, x->kind);

	h = mix(h, (uint64_t)x->blocked << 8 | (x->is_leaf ? x->leaf + 1u : 0));
	return mix(h, an_heapgraph_object(b->n->g, x->object)->type);
}

/* --- classes --- */

static size_t parts_of(const struct th_node *x)
{
	return x->awaits != AN_HEAP_NONE ? 1 : x->child_count;
}

static uint32_t part_at(const struct build *b, const struct th_node *x, size_t i)
{
	return x->awaits != AN_HEAP_NONE ? x->awaits : b->n->children[x->first_child + i];
}

static bool push(struct build *b, struct frame f)
{
	struct frame *stack =
		an_mem_grow(b->n->alloc, b->stack, &b->stack_cap, b->depth + 1, sizeof(*stack));

	if (!stack)
		return false;
	b->stack = stack;
	stack[b->depth++] = f;
	return true;
}

static int by_class(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return (x->class_ > y->class_) - (x->class_ < y->class_);
}

/* The classes of what a node awaits, each once, in b->now; SIZE_MAX when out of memory. */
static size_t gather_parts(struct build *b, const struct th_node *x)
{
	size_t count = parts_of(x), n = 0;
	struct part *now = an_mem_grow(b->n->alloc, b->now, &b->now_cap, count + 1, sizeof(*now));

	if (!now)
		return SIZE_MAX;
	b->now = now;
	for (size_t i = 0; i < count; i++) {
		const struct th_node *part = &b->n->nodes[part_at(b, x, i)];

		now[i] = (struct part){ part->color == BLACK ? part->class_ : CYCLE_CLASS, 1 };
	}
	if (count > 1)
		qsort(now, count, sizeof(*now), by_class);
	for (size_t i = 0; i < count; i++) {
		if (n && now[n - 1].class_ == now[i].class_)
			now[n - 1].count++;
		else
			now[n++] = now[i];
	}
	return n;
}

static enum nt_status new_class(struct build *b, uint64_t hash, uint32_t node, size_t parts,
				uint32_t *ret)
{
	struct class_ *classes;
	struct part *list;
	enum nt_status st;

	classes = an_mem_grow(b->n->alloc, b->classes, &b->class_cap, b->class_count + 1,
			      sizeof(*classes));
	if (!classes)
		return NT_ENOMEM;
	b->classes = classes;
	list = an_mem_grow(b->n->alloc, b->parts, &b->part_cap, b->part_count + parts + 1,
			   sizeof(*list));
	if (!list)
		return NT_ENOMEM;
	b->parts = list;
	st = nt_idmap_put(&b->by_hash, hash, (uint32_t)b->class_count);
	if (st < 0)
		return st;
	if (parts)
		memcpy(list + b->part_count, b->now, parts * sizeof(*list));
	classes[b->class_count] = (struct class_){
		.hash = hash,
		.node = node,
		.first_part = (uint32_t)b->part_count,
		.part_count = (uint32_t)parts,
	};
	b->part_count += parts;
	*ret = (uint32_t)b->class_count++;
	return NT_OK;
}

static enum nt_status classify(struct build *b, uint32_t node)
{
	struct th_node *x = &b->n->nodes[node];
	size_t parts = gather_parts(b, x);
	uint64_t hash = label_of(b, x);
	enum nt_status st = NT_OK;

	if (parts == SIZE_MAX)
		return NT_ENOMEM;
	for (size_t i = 0; i < parts; i++) {
		hash = mix(hash, b->classes[b->now[i].class_].hash);
		hash = mix(hash, b->now[i].count);
	}
	x->class_ = nt_idmap_get(&b->by_hash, hash);
	if (x->class_ == NT_IDMAP_NONE)
		st = new_class(b, hash, node, parts, &x->class_);
	x->color = BLACK;
	x->end = node;
	if (x->awaits != AN_HEAP_NONE && b->n->nodes[x->awaits].color == BLACK)
		x->end = b->n->nodes[x->awaits].end;
	return st;
}

static enum nt_status add_cycle(struct build *b, uint32_t node);

static enum nt_status visit(struct build *b, uint32_t from)
{
	enum nt_status st = NT_OK;

	if (!push(b, (struct frame){ .at = from }))
		return NT_ENOMEM;
	b->n->nodes[from].color = GREY;
	while (b->depth && st == NT_OK) {
		struct frame *top = &b->stack[b->depth - 1];
		const struct th_node *x = &b->n->nodes[top->at];

		if (top->next == parts_of(x)) {
			st = classify(b, top->at);
			b->depth--;
			continue;
		}
		uint32_t part = part_at(b, x, top->next++);

		if (b->n->nodes[part].color == GREY) {
			st = add_cycle(b, part);
		} else if (b->n->nodes[part].color == WHITE) {
			b->n->nodes[part].color = GREY;
			st = push(b, (struct frame){ .at = part }) ? NT_OK : NT_ENOMEM;
		}
	}
	return st;
}

/* --- names --- */

static const char *combination(enum th_kind kind)
{
	switch (kind) {
	case TH_WHEN_ALL:
		return "Task.WhenAll";
	case TH_WHEN_ANY:
		return "Task.WhenAny";
	case TH_UNWRAP:
		return "Task.Run";
	case TH_CONTINUE_WITH:
		return "Task.ContinueWith";
	case TH_WAIT_ASYNC:
		return "Task.WaitAsync";
	default:
		return NULL;
	}
}

/* The method of a box, kept once for each type; NULL when out of memory. */
static const char *box_name(struct build *b, uint32_t type)
{
	const char *raw = b->n->types->types[type].name;
	uint32_t at = nt_idmap_get(&b->names, type);
	char buf[NAME_BYTES];
	const char **list;

	if (at != NT_IDMAP_NONE)
		return b->name_list[at];
	th_box_method(raw ? raw : "", buf, sizeof(buf));
	list = an_mem_grow(b->n->alloc, b->name_list, &b->name_cap, b->name_count + 1,
			   sizeof(*list));
	if (!list)
		return NULL;
	b->name_list = list;
	list[b->name_count] = nt_arena_text(&b->rows->arena, buf, strlen(buf));
	if (!list[b->name_count]) {
		if (!b->rows->arena.full)
			return NULL;
		list[b->name_count] = "[a method]";
	}
	if (nt_idmap_put(&b->names, type, (uint32_t)b->name_count) < 0)
		return NULL;
	return list[b->name_count++];
}

/* *ret NULL: it is no frame, but what is waited for. */
static enum nt_status frame_name(struct build *b, uint32_t node, const char **ret)
{
	const struct th_node *x = &b->n->nodes[node];

	*ret = combination((enum th_kind)x->kind);
	if (x->kind != TH_BOX)
		return NT_OK;
	*ret = box_name(b, an_heapgraph_object(b->n->g, x->object)->type);
	return *ret ? NT_OK : NT_ENOMEM;
}

/* --- rows --- */

static enum nt_status new_row(struct th_rows *r, uint64_t hash, struct th_row **ret)
{
	struct th_row *rows;
	enum nt_status st;

	*ret = NULL;
	if (r->count >= MAX_ROWS || r->arena.full)
		return NT_OK;
	rows = an_mem_grow(r->alloc, r->rows, &r->cap, r->count + 1, sizeof(*rows));
	if (!rows)
		return NT_ENOMEM;
	r->rows = rows;
	st = nt_idmap_put(&r->by_hash, hash, (uint32_t)r->count);
	if (st < 0)
		return st;
	rows[r->count] =
		(struct th_row){ .chain.hash = hash, .sample = AN_HEAP_NONE, .leaf = AN_HEAP_NONE };
	*ret = &rows[r->count++];
	return NT_OK;
}

static enum nt_status set_leaf(struct build *b, struct an_heap_chain *c, enum an_leaf leaf,
			       uint32_t object)
{
	char buf[NAME_BYTES];
	const char *type = NULL;

	if (object != AN_HEAP_NONE)
		type = b->n->types->types[an_heapgraph_object(b->n->g, object)->type].name;
	th_describe(leaf, type, buf, sizeof(buf));
	c->leaf = leaf;
	c->waiting_on = nt_arena_text(&b->rows->arena, buf, strlen(buf));
	if (!c->waiting_on && !b->rows->arena.full)
		return NT_ENOMEM;
	if (!c->waiting_on)
		c->waiting_on = "[not kept]";
	return NT_OK;
}

/* Frames of the path on the stack, from the innermost outwards.  nodes: of frames, not classes. */
static enum nt_status set_frames(struct build *b, struct an_heap_chain *c, size_t from, bool nodes)
{
	const char *kept[FRAMES], *outermost = NULL, *method = NULL;
	const char **frames;

	for (size_t i = b->depth; i-- > from;) {
		uint32_t at = b->stack[i].at;
		const char *name;

		if (!nodes && at == CYCLE_CLASS)
			continue;
		if (frame_name(b, nodes ? at : b->classes[at].node, &name) < 0)
			return NT_ENOMEM;
		if (!name)
			continue;
		if (c->depth < FRAMES)
			kept[c->depth] = name;
		c->depth++;
		outermost = name;
		if (b->n->nodes[nodes ? at : b->classes[at].node].kind == TH_BOX)
			method = name;
	}
	c->frame_count = c->depth < FRAMES ? c->depth : FRAMES;
	frames = nt_arena_array(&b->rows->arena, c->frame_count, sizeof(*frames));
	if (!frames && !b->rows->arena.full)
		return NT_ENOMEM;
	c->frame_count = frames ? c->frame_count : 0;
	if (c->frame_count)
		memcpy(frames, kept, c->frame_count * sizeof(*frames));
	c->frames = frames;
	c->method = method ? method : outermost;
	return NT_OK;
}

/* The ends of each call: the same ones in another walk are the same call, still waiting. */
static enum nt_status set_heads(struct build *b, struct th_row *row, const struct class_ *head)
{
	struct th_rows *r = b->rows;
	struct th_ends *list;

	row->sample = b->n->nodes[b->heads[head->first_head]].object;
	if (head->heads > MAX_HEADS - r->heads)
		return NT_OK;
	list = nt_arena_array(&r->arena, head->heads, sizeof(*list));
	if (!list)
		return r->arena.full ? NT_OK : NT_ENOMEM;
	for (uint32_t i = 0; i < head->heads; i++) {
		const struct th_node *x = &b->n->nodes[b->heads[head->first_head + i]];

		list[i].outer = an_heapgraph_address(b->n->g, x->object);
		list[i].inner = an_heapgraph_address(b->n->g, b->n->nodes[x->end].object);
	}
	qsort(list, head->heads, sizeof(*list), th_compare_ends);
	row->heads = list;
	row->head_count = head->heads;
	r->heads += head->heads;
	return NT_OK;
}

static const char thread_only[] = "[a thread]";

/* The path on the stack, from an outermost class to an innermost one, is a row. */
static enum nt_status add_path(struct build *b, const struct class_ *head)
{
	const struct frame *top = &b->stack[b->depth - 1];
	const struct th_node *outer = &b->n->nodes[head->node];
	uint64_t count = top->count;
	uint32_t at = nt_idmap_get(&b->rows->by_hash, top->hash);
	struct th_row *row;
	enum an_leaf leaf = AN_LEAF_CYCLE;
	uint32_t object = AN_HEAP_NONE;
	enum nt_status st;

	b->rows->chains += count;
	if (at != NT_IDMAP_NONE) {
		b->rows->rows[at].chain.count += count;
		b->rows->rows[at].chain.calls += head->heads;
		return NT_OK;
	}
	st = new_row(b->rows, top->hash, &row);
	if (st < 0)
		return st;
	if (!row) {
		b->rows->beyond += count;
		return NT_OK;
	}
	if (top->at != CYCLE_CLASS) {
		leaf = (enum an_leaf)b->n->nodes[b->classes[top->at].node].leaf;
		object = b->n->nodes[b->classes[top->at].node].object;
	}
	row->chain.count = count;
	row->chain.calls = head->heads;
	row->chain.blocked = outer->blocked;
	row->leaf = object;
	st = set_leaf(b, &row->chain, leaf, object);
	if (st == NT_OK)
		st = set_frames(b, &row->chain, 0, false);
	if (!row->chain.method)
		row->chain.method = thread_only;
	return st == NT_OK ? set_heads(b, row, head) : st;
}

/* The circle from that node, which is on the stack, to the top and back. */
static enum nt_status add_cycle(struct build *b, uint32_t node)
{
	uint64_t hash = 0;
	size_t from = b->depth;
	struct th_row *row;
	uint32_t at;
	enum nt_status st;

	while (from && b->stack[from - 1].at != node)
		from--;
	if (!from)
		return NT_OK;
	from--;
	/* Wherever a circle is entered, it is the same one. */
	for (size_t i = from; i < b->depth; i++)
		hash += mix(3, label_of(b, &b->n->nodes[b->stack[i].at]));
	hash = mix(hash, b->depth - from);
	b->rows->chains++;
	at = nt_idmap_get(&b->rows->by_hash, hash);
	if (at != NT_IDMAP_NONE) {
		b->rows->rows[at].chain.count++;
		b->rows->rows[at].chain.calls++;
		return NT_OK;
	}
	st = new_row(b->rows, hash, &row);
	if (st < 0)
		return st;
	if (!row) {
		b->rows->beyond++;
		return NT_OK;
	}
	row->chain.count = row->chain.calls = 1;
	row->sample = b->n->nodes[node].object;
	st = set_leaf(b, &row->chain, AN_LEAF_CYCLE, AN_HEAP_NONE);
	if (st == NT_OK)
		st = set_frames(b, &row->chain, from, true);
	if (!row->chain.method)
		row->chain.method = thread_only;
	return st;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t n;

	return __builtin_mul_overflow(a, b, &n) ? UINT64_MAX : n;
}

/* All paths from one outermost class inwards. */
static enum nt_status walk_paths(struct build *b, uint32_t from)
{
	const struct class_ *head = &b->classes[from];
	struct frame first = { .at = from, .count = head->heads };
	enum nt_status st = NT_OK;

	first.hash = mix(5, label_of(b, &b->n->nodes[head->node]));
	if (!push(b, first))
		return NT_ENOMEM;
	while (b->depth && st == NT_OK) {
		struct frame *top = &b->stack[b->depth - 1];
		const struct class_ *c = &b->classes[top->at];
		const struct part *part;
		struct frame next;

		if (c->part_count == 0)
			st = add_path(b, head);
		if (top->next == c->part_count) {
			b->depth--;
			continue;
		}
		part = &b->parts[c->first_part + top->next++];
		if (b->steps >= MAX_STEPS) {
			b->rows->beyond += top->count;
			continue;
		}
		b->steps++;
		next = (struct frame){ .at = part->class_,
				       .count = times(top->count, part->count) };
		next.hash = mix(top->hash, 1);
		if (part->class_ != CYCLE_CLASS)
			next.hash = mix(top->hash,
					label_of(b, &b->n->nodes[b->classes[part->class_].node]));
		st = push(b, next) ? NT_OK : NT_ENOMEM;
	}
	b->depth = 0;
	return st;
}

/* Nobody awaits it; or a thread does, whoever else. */
static bool is_head(const struct th_node *x)
{
	if (x->blocked)
		return true;
	return !x->awaited && !x->is_leaf;
}

static enum nt_status gather_heads(struct build *b)
{
	uint32_t at = 0;

	b->heads = an_mem_array(b->n->alloc, b->n->count, sizeof(*b->heads));
	if (!b->heads)
		return NT_ENOMEM;
	for (size_t i = 0; i < b->n->count; i++)
		if (is_head(&b->n->nodes[i]))
			b->classes[b->n->nodes[i].class_].heads++;
	for (size_t i = 0; i < b->class_count; i++) {
		b->classes[i].first_head = at;
		at += b->classes[i].heads;
		b->classes[i].heads = 0;
	}
	for (size_t i = 0; i < b->n->count; i++) {
		struct class_ *c = &b->classes[b->n->nodes[i].class_];

		if (is_head(&b->n->nodes[i]))
			b->heads[c->first_head + c->heads++] = (uint32_t)i;
	}
	return NT_OK;
}

static enum nt_status build_rows(struct build *b)
{
	uint32_t cycle;
	enum nt_status st = new_class(b, mix(11, 13), 0, 0, &cycle);

	for (size_t i = 0; i < b->n->count && st == NT_OK; i++)
		if (b->n->nodes[i].color == WHITE)
			st = visit(b, (uint32_t)i);
	b->depth = 0;
	if (st == NT_OK)
		st = gather_heads(b);
	for (size_t i = 1; i < b->class_count && st == NT_OK; i++)
		if (b->classes[i].heads)
			st = walk_paths(b, (uint32_t)i);
	return st;
}

enum nt_status th_rows_make(struct th_rows *r, struct th_nodes *n)
{
	struct build b = { .rows = r, .n = n };
	enum nt_status st;

	*r = (struct th_rows){ .alloc = n->alloc };
	nt_arena_init(&r->arena, n->alloc, MAX_BYTES);
	nt_idmap_init(&r->by_hash, n->alloc);
	nt_idmap_init(&b.by_hash, n->alloc);
	nt_idmap_init(&b.names, n->alloc);
	st = n->count ? build_rows(&b) : NT_OK;
	an_mem_free(n->alloc, b.classes);
	an_mem_free(n->alloc, b.parts);
	an_mem_free(n->alloc, b.now);
	an_mem_free(n->alloc, b.stack);
	an_mem_free(n->alloc, b.heads);
	an_mem_free(n->alloc, b.name_list);
	nt_idmap_done(&b.by_hash);
	nt_idmap_done(&b.names);
	return st;
}

void th_rows_done(struct th_rows *r)
{
	if (!r->alloc)
		return;
	an_mem_free(r->alloc, r->rows);
	nt_idmap_done(&r->by_hash);
	nt_arena_done(&r->arena);
	r->alloc = NULL;
}
