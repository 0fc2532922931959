/* SPDX-License-Identifier: MIT */
#include "analyzers/calls.h"

#include <stdlib.h>

#include "analyzers/grow.h"
#include "analyzers/wait_frames.h"
#include "nettrace/idmap.h"

enum {
	MAX_CALLS = 400 * 1000,
	ROOT = 0,
	NO_ROW = UINT32_MAX,
	RESUMED = 1u << 31, /* in the row of a key */
};

/* What a tree is made with. */
struct builder {
	struct an_calls *c;
	struct nt_idmap by_key; /* parent and row -> call */
};

static const struct nt_alloc *alloc_of(const struct an_calls *c)
{
	return c->p->shared->alloc;
}

void an_calls_done(struct an_calls *c)
{
	if (c->p)
		an_mem_free(alloc_of(c), c->calls);
	*c = (struct an_calls){ 0 };
}

static enum nt_status begin(struct builder *b, struct an_calls *c, const struct an_profile *p)
{
	*c = (struct an_calls){ .p = p };
	b->c = c;
	nt_idmap_init(&b->by_key, p->shared->alloc);
	c->calls = an_mem_grow(p->shared->alloc, NULL, &c->cap, 1, sizeof(*c->calls));
	if (!c->calls)
		return NT_ENOMEM;
	c->calls[ROOT].row = NO_ROW;
	c->count = 1;
	return NT_OK;
}

static enum nt_status end(struct builder *b, enum nt_status st)
{
	nt_idmap_done(&b->by_key);
	if (st < 0)
		an_calls_done(b->c);
	return st;
}

/* The call of row under parent; the parent itself when there is no room. */
static enum nt_status child(struct builder *b, uint32_t parent, uint32_t row, bool resumed,
			    uint32_t *ret)
{
	struct an_calls *c = b->c;
	uint64_t key = (uint64_t)parent << 32 | row | (resumed ? RESUMED : 0);
	struct an_call *calls;

	*ret = nt_idmap_get(&b->by_key, key);
	if (*ret != NT_IDMAP_NONE)
		return NT_OK;
	*ret = parent;
	if (c->count >= MAX_CALLS) {
		c->left_out++;
		return NT_OK;
	}
	calls = an_mem_grow(alloc_of(c), c->calls, &c->cap, c->count + 1, sizeof(*calls));
	if (!calls)
		return NT_ENOMEM;
	c->calls = calls;
	*ret = (uint32_t)c->count;
	if (nt_idmap_put(&b->by_key, key, *ret) < 0)
		return NT_ENOMEM;
	c->count++;
	calls[*ret] = (struct an_call){ .row = row,
					.parent = parent,
					.next_sibling = calls[parent].first_child,
					.resumed = resumed };
	calls[parent].first_child = *ret;
	return NT_OK;
}

/* --- from the outside in --- */

/* By method: what its frames mean in a tree for people. */
struct frames {
	uint8_t *kinds; /* enum an_async_frame + 1; 0: not yet known */
};

static enum an_async_frame kind_of(struct frames *f, const struct an_method *m)
{
	if (!m)
		return AN_ASYNC_NONE;
	if (!f->kinds[m->index])
		f->kinds[m->index] = (uint8_t)(an_frame_async(m) + 1);
	return (enum an_async_frame)(f->kinds[m->index] - 1);
}

/* A state machine under the method that started it: people see one method. */
static bool is_its_body(const struct an_profile *p, uint32_t row, const struct an_method *m)
{
	const struct an_method *outer = row == NO_ROW ? NULL : p->rows[row].method;

	return outer && !strcmp(outer->name, m->name) && !strcmp(outer->module, m->module);
}

/* By node of the call tree: the call it is part of, and whether an async method is resumed there.
 */
struct place {
	uint32_t call;
	bool resumes;
};

static enum nt_status place_node(struct builder *b, struct frames *f, struct place *places,
				 uint32_t node)
{
	const struct an_profile *p = b->c->p;
	const struct an_calltree *tree = p->shared->tree;
	const struct an_node *n = an_calltree_node(tree, node);
	const struct an_method *m = an_calltree_method(tree, node);
	struct place outer = places[n->parent];
	uint32_t row = p->row_of[node];
	enum an_async_frame kind = kind_of(f, m);

	places[node] = outer;
	if (row == NO_ROW)
		return NT_OK;
	if ((kind == AN_ASYNC_CARRIER || kind == AN_ASYNC_RESUMER) && !n->leaf) {
		places[node].resumes = outer.resumes || kind == AN_ASYNC_RESUMER;
		return NT_OK;
	}
	places[node].resumes = false;
	if (b->c->calls[outer.call].row == row)
		return NT_OK; /* calls itself, or the same method in two tiers */
	if (kind != AN_ASYNC_BODY)
		return child(b, outer.call, row, false, &places[node].call);
	if (outer.resumes)
		return child(b, ROOT, row, true, &places[node].call);
	if (is_its_body(p, b->c->calls[outer.call].row, m))
		return NT_OK;
	return child(b, outer.call, row, false, &places[node].call);
}

/* Callers have lower numbers than their callees. */
static void sum_up(struct an_calls *c)
{
	for (size_t i = c->count; i-- > 0;) {
		c->calls[i].total += c->calls[i].self;
		if (i)
			c->calls[c->calls[i].parent].total += c->calls[i].total;
	}
}

enum nt_status an_calls_init(struct an_calls *c, const struct an_profile *p, unsigned states)
{
	const struct nt_alloc *al = p->shared->alloc;
	struct frames f = { an_mem_array(al, an_methods_count(p->shared->methods), 1) };
	struct place *places = an_mem_array(al, p->node_count, sizeof(*places));
	struct builder b;
	enum nt_status st = begin(&b, c, p);

	if (st == NT_OK && (!f.kinds || !places))
		st = NT_ENOMEM;
	for (size_t i = 1; i < p->node_count && st == NT_OK; i++) {
		st = place_node(&b, &f, places, (uint32_t)i);
		if (st == NT_OK)
			c->calls[places[i].call].self += an_profile_sum(p->self[i], states);
	}
	if (st == NT_OK)
		c->calls[ROOT].self += an_profile_sum(p->self[0], states);
	if (st == NT_OK)
		sum_up(c);
	an_mem_free(al, f.kinds);
	an_mem_free(al, places);
	return end(&b, st);
}

/* --- from the inside out --- */

enum nt_status an_calls_invert(struct an_calls *ret, const struct an_calls *c, size_t depth)
{
	struct builder b;
	enum nt_status st = begin(&b, ret, c->p);

	for (size_t i = 1; i < c->count && st == NT_OK; i++) {
		uint64_t weight = c->calls[i].self;
		uint32_t at = (uint32_t)i, to = ROOT;

		for (size_t k = 0; weight && at != ROOT && k <= depth && st == NT_OK; k++) {
			uint32_t was = to;

			st = child(&b, to, c->calls[at].row, c->calls[at].resumed, &to);
			if (st < 0 || to == was)
				break;
			ret->calls[to].total += weight;
			at = c->calls[at].parent;
		}
		if (st == NT_OK)
			ret->calls[ROOT].total += weight;
	}
	/* What was spent in a method itself is all of it: these are sums of that. */
	for (size_t i = 1; st == NT_OK && i < ret->count; i++)
		ret->calls[i].self = ret->calls[i].parent == ROOT ? ret->calls[i].total : 0;
	return end(&b, st);
}

/* --- lines --- */

static int compare_calls(const void *a, const void *b)
{
	const struct an_call *x = *(const struct an_call *const *)a;
	const struct an_call *y = *(const struct an_call *const *)b;

	if (x->total != y->total)
		return x->total < y->total ? -1 : 1;
	return (x < y) - (x > y); /* the older is the last, so the first to be taken */
}

/* Calls still to be shown; the last is next. */
struct pending {
	const struct an_call **calls;
	size_t count;
};

static void push_children(const struct an_calls *c, const struct an_call *call, uint64_t least,
			  struct pending *s)
{
	size_t from = s->count;

	for (uint32_t i = call->first_child; i; i = c->calls[i].next_sibling)
		if (c->calls[i].total && c->calls[i].total >= least)
			s->calls[s->count++] = &c->calls[i];
	qsort(s->calls + from, s->count - from, sizeof(*s->calls), compare_calls);
}

static size_t depth_of(const struct an_calls *c, const struct an_call *call)
{
	size_t depth = 0;

	for (; call->parent != ROOT; call = &c->calls[call->parent])
		depth++;
	return depth;
}

enum nt_status an_calls_lines(const struct an_calls *c, size_t depth, uint64_t least,
			      struct an_call_line *lines, size_t max, size_t *ret_count,
			      bool *ret_more)
{
	struct pending s = { an_mem_array(alloc_of(c), c->count, sizeof(*s.calls)), 0 };

	*ret_count = 0;
	*ret_more = false;
	if (!s.calls)
		return NT_ENOMEM;
	push_children(c, &c->calls[ROOT], least, &s);
	while (s.count && *ret_count < max) {
		const struct an_call *call = s.calls[--s.count];
		struct an_call_line *line = &lines[(*ret_count)++];

		line->call = call;
		line->depth = *ret_count > 1 && line[-1].call == &c->calls[call->parent]
				      ? line[-1].depth + 1
				      : depth_of(c, call);
		if (line->depth + 1 < depth)
			push_children(c, call, least, &s);
	}
	*ret_more = s.count > 0;
	an_mem_free(alloc_of(c), s.calls);
	return NT_OK;
}

size_t an_calls_hot_path(const struct an_calls *c, const struct an_call **path, size_t max)
{
	const struct an_call *at = &c->calls[ROOT];
	size_t n = 0;

	while (n < max) {
		const struct an_call *best = NULL;

		/* The newest child comes first in the list: of equals the oldest counts. */
		for (uint32_t i = at->first_child; i; i = c->calls[i].next_sibling)
			if (c->calls[i].total && (!best || c->calls[i].total >= best->total))
				best = &c->calls[i];
		if (!best || (n && best->total < at->self))
			break;
		path[n++] = best;
		at = best;
	}
	return n;
}
