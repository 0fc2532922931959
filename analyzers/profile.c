/* SPDX-License-Identifier: MIT */
#include "analyzers/profile.h"

#include <stdio.h>
#include <stdlib.h>

#include "analyzers/grow.h"
#include "analyzers/names.h"
#include "analyzers/textset.h"
#include "nettrace/idmap.h"

enum { NO_ROW = UINT32_MAX, FOLD_BYTES = 512 };

enum nt_status an_profile_init(struct an_profile *p, const struct an_shared *shared)
{
	const struct nt_alloc *al = shared->alloc;
	size_t n = an_calltree_count(shared->tree);

	*p = (struct an_profile){ .shared = shared, .node_count = n };
	p->self = an_mem_array(al, n, sizeof(*p->self));
	p->total = an_mem_array(al, n, sizeof(*p->total));
	p->first_child = an_mem_array(al, n, sizeof(*p->first_child));
	p->next_sibling = an_mem_array(al, n, sizeof(*p->next_sibling));
	p->row_of = an_mem_array(al, n, sizeof(*p->row_of));
	if (p->self && p->total && p->first_child && p->next_sibling && p->row_of)
		return NT_OK;
	an_profile_done(p);
	return NT_ENOMEM;
}

void an_profile_done(struct an_profile *p)
{
	const struct nt_alloc *al = p->shared->alloc;

	an_mem_free(al, p->self);
	an_mem_free(al, p->total);
	an_mem_free(al, p->first_child);
	an_mem_free(al, p->next_sibling);
	an_mem_free(al, p->row_of);
	an_mem_free(al, p->rows);
	an_mem_free(al, p->order);
	*p = (struct an_profile){ .shared = p->shared };
}

void an_profile_add(struct an_profile *p, uint32_t node, unsigned state, uint64_t weight)
{
	p->self[node][state] += weight;
}

uint64_t an_profile_sum(const uint64_t weight[AN_STATES], unsigned states)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < AN_STATES; i++)
		if (states & 1u << i)
			sum += weight[i];
	return sum;
}

static void add_weight(uint64_t to[AN_STATES], const uint64_t what[AN_STATES])
{
	for (unsigned i = 0; i < AN_STATES; i++)
		to[i] += what[i];
}

/* Callers come before their callees, so one walk from the end sums up all. */
static void sum_nodes(struct an_profile *p)
{
	for (size_t i = p->node_count; i-- > 1;) {
		uint32_t parent = an_calltree_node(p->shared->tree, (uint32_t)i)->parent;

		add_weight(p->total[i], p->self[i]);
		add_weight(p->total[parent], p->total[i]);
		p->next_sibling[i] = p->first_child[parent];
		p->first_child[parent] = (uint32_t)i;
	}
	add_weight(p->total[0], p->self[0]);
}

static enum nt_status new_row(struct an_profile *p, const struct an_method *method, uint32_t node)
{
	struct an_profile_row *rows = an_mem_grow(p->shared->alloc, p->rows, &p->row_cap,
						  p->row_count + 1, sizeof(*rows));

	if (!rows)
		return NT_ENOMEM;
	p->rows = rows;
	rows[p->row_count++] = (struct an_profile_row){ .method = method, .node = node };
	return NT_OK;
}

/* Frames without a name are one row for each address, or for the mapped file they are in. */
static uint64_t nameless_key(const struct an_profile *p, uint32_t node)
{
	const struct an_node *n = an_calltree_node(p->shared->tree, node);
	uint64_t addr = n->address - !n->leaf;
	const char *module = an_methods_module_at(p->shared->methods, addr, n->epoch);

	if (n->other)
		return UINT64_MAX;
	if (*module)
		return (uint64_t)(uintptr_t)module; /* each name is kept once */
	return addr ^ ((uint64_t)n->epoch << 44 | n->epoch >> 20);
}

static uint64_t method_key(const struct an_profile *p, const struct an_method *m)
{
	char folded[FOLD_BYTES];
	uint64_t h;

	if (!p->fold)
		return m->index;
	an_name_fold(an_slice_of(m->raw), folded, sizeof(folded));
	h = an_hash(m->module, strlen(m->module) + 1, 0);
	h = an_hash(folded, strlen(folded) + 1, h);
	return an_hash(m->args, strlen(m->args), h);
}

/* by_method: rows of methods by their index; nameless: of frames without a name. */
static enum nt_status find_row(struct an_profile *p, struct nt_idmap *by_method,
			       struct nt_idmap *nameless, uint32_t node)
{
	const struct an_method *m = an_calltree_method(p->shared->tree, node);
	struct nt_idmap *map = m ? by_method : nameless;
	uint64_t key = m ? method_key(p, m) : nameless_key(p, node);
	uint32_t row = nt_idmap_get(map, key);

	if (row == NT_IDMAP_NONE) {
		row = (uint32_t)p->row_count;
		if (new_row(p, m, node) < 0 || nt_idmap_put(map, key, row) < 0)
			return NT_ENOMEM;
	}
	p->row_of[node] = row;
	return NT_OK;
}

static enum nt_status find_rows(struct an_profile *p)
{
	struct nt_idmap by_method, nameless;
	enum nt_status st = NT_OK;

	nt_idmap_init(&by_method, p->shared->alloc);
	nt_idmap_init(&nameless, p->shared->alloc);
	p->row_of[0] = NO_ROW;
	for (size_t i = 1; i < p->node_count && st == NT_OK; i++) {
		p->row_of[i] = NO_ROW;
		if (an_profile_sum(p->total[i], ~0u)) /* not a stack of something else */
			st = find_row(p, &by_method, &nameless, (uint32_t)i);
	}
	nt_idmap_done(&by_method);
	nt_idmap_done(&nameless);
	return st;
}

/* Walks the tree depth first, without recursion; on_path counts the open frames of each row. */
static enum nt_status sum_rows(struct an_profile *p)
{
	uint32_t *on_path = an_mem_array(p->shared->alloc, p->row_count, sizeof(*on_path));
	uint32_t node = p->first_child[0];

	if (!on_path)
		return NT_ENOMEM;
	while (node != AN_NODE_NONE) {
		uint32_t row = p->row_of[node];

		if (row != NO_ROW) {
			add_weight(p->rows[row].self, p->self[node]);
			if (!on_path[row]++)
				add_weight(p->rows[row].total, p->total[node]);
			if (p->first_child[node] != AN_NODE_NONE) {
				node = p->first_child[node];
				continue;
			}
		}
		/* leave this node, and all callers of which it was the last callee */
		while (node != AN_NODE_NONE) {
			row = p->row_of[node];
			if (row != NO_ROW)
				on_path[row]--;
			if (p->next_sibling[node] != AN_NODE_NONE)
				break;
			node = an_calltree_node(p->shared->tree, node)->parent;
		}
		node = p->next_sibling[node];
	}
	an_mem_free(p->shared->alloc, on_path);
	return NT_OK;
}

enum nt_status an_profile_build(struct an_profile *p)
{
	enum nt_status st;

	sum_nodes(p);
	st = find_rows(p);
	return st == NT_OK ? sum_rows(p) : st;
}

/* --- order --- */

struct ranked {
	uint64_t self, total; /* the first of them counts first */
	const struct an_profile_row *row;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	if (x->row->method && y->row->method) {
		int c = strcmp(x->row->method->name, y->row->method->name);

		if (c)
			return c;
	}
	return (x->row->node > y->row->node) - (x->row->node < y->row->node);
}

enum nt_status an_profile_sort(struct an_profile *p, unsigned states)
{
	const struct nt_alloc *al = p->shared->alloc;
	struct ranked *ranked = an_mem_array(al, p->row_count, sizeof(*ranked));

	if (!p->order)
		p->order = an_mem_array(al, p->row_count, sizeof(*p->order));
	if (!ranked || !p->order) {
		an_mem_free(al, ranked);
		return NT_ENOMEM;
	}
	for (size_t i = 0; i < p->row_count; i++) {
		uint64_t self = an_profile_sum(p->rows[i].self, states);
		uint64_t total = an_profile_sum(p->rows[i].total, states);

		ranked[i] = (struct ranked){ p->total_first ? total : self,
					     p->total_first ? self : total, &p->rows[i] };
	}
	qsort(ranked, p->row_count, sizeof(*ranked), compare_ranked);
	for (size_t i = 0; i < p->row_count; i++)
		p->order[i] = (uint32_t)(ranked[i].row - p->rows);
	an_mem_free(al, ranked);
	return NT_OK;
}

/* --- the hottest path --- */

/* Nodes are on the path when they are marked with the number of its last frame. */
struct walk {
	const struct an_profile *p;
	unsigned states;
	uint32_t *nodes; /* of the last frame of the path */
	uint32_t *next; /* of the frame to come */
	size_t count;
	uint64_t *sums; /* by row: what its nodes under the path hold */
	uint32_t *touched; /* rows whose sum is not 0 */
	size_t touched_count;
};

static void collect_callees(struct walk *w)
{
	const struct an_profile *p = w->p;

	w->touched_count = 0;
	for (size_t i = 0; i < w->count; i++) {
		for (uint32_t c = p->first_child[w->nodes[i]]; c; c = p->next_sibling[c]) {
			uint64_t sum = an_profile_sum(p->total[c], w->states);
			uint32_t row = p->row_of[c];

			if (!sum)
				continue;
			if (!w->sums[row])
				w->touched[w->touched_count++] = row;
			w->sums[row] += sum;
		}
	}
}

/* The callee with most, the first of equals. */
static uint32_t choose_callee(struct walk *w, uint64_t *ret_sum)
{
	uint32_t best = NO_ROW;

	*ret_sum = 0;
	for (size_t i = 0; i < w->touched_count; i++) {
		uint32_t row = w->touched[i];

		if (w->sums[row] > *ret_sum) {
			*ret_sum = w->sums[row];
			best = row;
		}
	}
	for (size_t i = 0; i < w->touched_count; i++)
		w->sums[w->touched[i]] = 0;
	return best;
}

/* Goes on to the nodes of row; returns what is spent in them alone. */
static uint64_t step(struct walk *w, uint32_t row)
{
	const struct an_profile *p = w->p;
	uint32_t *swap = w->nodes;
	uint64_t self = 0;
	size_t n = 0;

	for (size_t i = 0; i < w->count; i++) {
		for (uint32_t c = p->first_child[w->nodes[i]]; c; c = p->next_sibling[c]) {
			if (p->row_of[c] != row || !an_profile_sum(p->total[c], w->states))
				continue;
			w->next[n++] = c;
			self += an_profile_sum(p->self[c], w->states);
		}
	}
	w->nodes = w->next;
	w->next = swap;
	w->count = n;
	return self;
}

static void walk_done(struct walk *w)
{
	const struct nt_alloc *al = w->p->shared->alloc;

	an_mem_free(al, w->nodes);
	an_mem_free(al, w->next);
	an_mem_free(al, w->sums);
	an_mem_free(al, w->touched);
}

enum nt_status an_profile_hot_path(const struct an_profile *p, unsigned states, bool merge,
				   struct an_hot_frame *frames, size_t max, size_t *ret_count)
{
	const struct nt_alloc *al = p->shared->alloc;
	struct walk w = { .p = p, .states = states, .count = 1 };
	uint64_t self = 0, sum;
	size_t n = 0;

	w.nodes = an_mem_array(al, p->node_count, sizeof(*w.nodes)); /* [0] is the root */
	w.next = an_mem_array(al, p->node_count, sizeof(*w.next));
	w.sums = an_mem_array(al, p->row_count, sizeof(*w.sums));
	w.touched = an_mem_array(al, p->row_count, sizeof(*w.touched));
	if (!w.nodes || !w.next || !w.sums || !w.touched) {
		walk_done(&w);
		return NT_ENOMEM;
	}
	while (n < max) {
		uint32_t row;

		collect_callees(&w);
		row = choose_callee(&w, &sum);
		if (row == NO_ROW || (n && sum < self))
			break;
		self = step(&w, row);
		if (merge && n && frames[n - 1].row == row)
			frames[n - 1].self += self;
		else
			frames[n++] = (struct an_hot_frame){ row, self, sum };
	}
	walk_done(&w);
	*ret_count = n;
	return NT_OK;
}

const char *an_profile_name(const struct an_profile *p, const struct an_profile_row *row, char *buf,
			    size_t size)
{
	const struct an_node *n = an_calltree_node(p->shared->tree, row->node);
	const char *module;

	if (row->method && p->fold) {
		an_name_fold(an_slice_of(row->method->name), buf, size);
		return buf;
	}
	if (row->method)
		return row->method->name;
	if (n->other)
		return "[other]";
	module = an_profile_module(p, row);
	if (*module)
		snprintf(buf, size, "%s![unnamed]", module);
	else
		an_methods_describe_at(p->shared->methods, n->address, n->epoch, buf, size);
	return buf;
}

const char *an_profile_module(const struct an_profile *p, const struct an_profile_row *row)
{
	const struct an_node *n = an_calltree_node(p->shared->tree, row->node);

	if (row->method)
		return row->method->module;
	if (n->other)
		return "";
	return an_methods_module_at(p->shared->methods, n->address - !n->leaf, n->epoch);
}
