/* SPDX-License-Identifier: MIT */

/* Who calls whom, what is in which module, and how the code was compiled. */

#include <stdlib.h>

#include "analyzers/calls.h"
#include "analyzers/cpu/cpu_internal.h"
#include "analyzers/grow.h"
#include "analyzers/text.h"
#include "analyzers/textset.h"

enum {
	MAX_HOT_FRAMES = 512,
	NAME_BYTES = 512,
	USUAL_DEPTH = 16,
	MAX_LINES = 2000, /* of the tree; more is no help to anybody */
	MAX_GROUPS = 20000,
};

/* --- the tree --- */

static void add_call(const struct cpu_rows *r, const struct an_call *call, size_t depth,
		     bool in_tree, struct an_value *list)
{
	const struct an_profile_row *row = &r->p->rows[call->row];
	struct an_value *v = an_add_object(list, NULL);
	char buf[NAME_BYTES];

	if (in_tree)
		an_add_uint(v, "depth", depth);
	an_add_text(v, "method", an_profile_name(r->p, row, buf, sizeof(buf)));
	an_add_text(v, "args", row->method ? row->method->args : "");
	if (call->resumed)
		an_add_bool(v, "resumed", true);
	if (r->rank == 1u << CPU_ON_NS) {
		an_add_null(v, "inclusive_samples");
		an_add_null(v, "exclusive_samples");
		an_add_double(v, "inclusive_cpu_ms", (double)call->total / 1e6, 3);
		an_add_double(v, "exclusive_cpu_ms", (double)call->self / 1e6, 3);
	} else {
		an_add_uint(v, "inclusive_samples", call->total);
		an_add_uint(v, "exclusive_samples", call->self);
	}
	cpu_add_percent(v, "inclusive_percent", call->total, r->whole);
	cpu_add_percent(v, "exclusive_percent", call->self, r->whole);
}

static enum nt_status add_lines(const struct cpu_rows *r, const struct an_calls *calls,
				struct an_value *cpu)
{
	const struct an_cpu_options *o = &r->c->shared->options.cpu;
	struct an_call_line *lines = an_mem_array(r->c->shared->alloc, MAX_LINES, sizeof(*lines));
	double least = (double)r->whole * o->min_percent / 100;
	uint64_t at_least = (uint64_t)least;
	struct an_value *list;
	bool more = false;
	size_t n = 0;
	enum nt_status st;

	if (!lines)
		return NT_ENOMEM;
	at_least += (double)at_least < least;
	st = an_calls_lines(calls, o->depth ? o->depth : USUAL_DEPTH, at_least, lines, MAX_LINES,
			    &n, &more);
	an_add_text(cpu, "tree_kind", o->tree == AN_TREE_CALLERS ? "callers" : "callees");
	an_add_bool(cpu, "tree_complete", !more && !calls->left_out);
	list = an_add_array(cpu, "tree");
	for (size_t i = 0; i < n; i++)
		add_call(r, lines[i].call, lines[i].depth, true, list);
	an_mem_free(r->c->shared->alloc, lines);
	return st;
}

static enum nt_status add_inverted(const struct cpu_rows *r, const struct an_calls *calls,
				   struct an_value *cpu)
{
	const struct an_cpu_options *o = &r->c->shared->options.cpu;
	struct an_calls callers = { 0 };
	enum nt_status st =
		an_calls_invert(&callers, calls, o->depth ? o->depth - 1 : USUAL_DEPTH - 1);

	if (st == NT_OK)
		st = add_lines(r, &callers, cpu);
	an_calls_done(&callers);
	return st;
}

static enum nt_status add_hot_path(const struct cpu_rows *r, const struct an_calls *calls,
				   struct an_value *cpu)
{
	const struct nt_alloc *al = r->c->shared->alloc;
	const struct an_call **path = an_mem_array(al, MAX_HOT_FRAMES, sizeof(*path));
	struct an_value *list = an_add_array(cpu, "hot_path");
	size_t n = path ? an_calls_hot_path(calls, path, MAX_HOT_FRAMES) : 0;

	for (size_t i = 0; i < n; i++)
		add_call(r, path[i], i, false, list);
	an_mem_free(al, path);
	return path ? NT_OK : NT_ENOMEM;
}

enum nt_status cpu_add_paths(const struct cpu_rows *r, struct an_value *cpu)
{
	enum an_tree tree = r->c->shared->options.cpu.tree;
	struct an_calls calls = { 0 };
	enum nt_status st = an_calls_init(&calls, r->p, r->rank);

	if (st == NT_OK)
		st = add_hot_path(r, &calls, cpu);
	if (st == NT_OK && tree == AN_TREE_CALLEES)
		st = add_lines(r, &calls, cpu);
	if (st == NT_OK && tree == AN_TREE_CALLERS)
		st = add_inverted(r, &calls, cpu);
	an_calls_done(&calls);
	return st;
}

/* --- modules and namespaces --- */

struct group {
	char name[128];
	uint64_t samples; /* of the view */
	uint64_t weight; /* what it is ranked by */
};

struct groups {
	struct group *items;
	size_t count, cap;
	struct nt_idmap by_name;
};

static enum nt_status add_to_group(const struct cpu_rows *r, struct groups *g, struct an_slice name,
				   const struct an_profile_row *row)
{
	struct group *items;
	uint64_t h;
	uint32_t i;

	if (name.n >= sizeof(g->items->name))
		name.n = sizeof(g->items->name) - 1;
	h = an_hash(name.p, name.n, 0);
	i = nt_idmap_get(&g->by_name, h);
	if (i == NT_IDMAP_NONE) {
		if (g->count >= MAX_GROUPS)
			return NT_OK;
		items = an_mem_grow(r->c->shared->alloc, g->items, &g->cap, g->count + 1,
				    sizeof(*items));
		if (!items)
			return NT_ENOMEM;
		g->items = items;
		i = (uint32_t)g->count;
		if (nt_idmap_put(&g->by_name, h, i) < 0)
			return NT_ENOMEM;
		g->count++;
		memcpy(items[i].name, name.p, name.n);
	}
	g->items[i].samples += an_profile_sum(row->self, r->states);
	g->items[i].weight += an_profile_sum(row->self, r->rank);
	return NT_OK;
}

/* "System.Text" of "System.Text.StringBuilder+Chunk.Append": up to the type, without the method. */
static struct an_slice namespace_of(const char *raw)
{
	size_t end = strcspn(raw, "[`+<("), dots = 0, at = 0, before = 0;

	for (size_t i = 0; i < end; i++) {
		if (raw[i] != '.')
			continue;
		before = at;
		at = i;
		dots++;
	}
	if (!dots)
		return (struct an_slice){ "", 0 };
	/* A nested or generic type: what was cut off holds the method already. */
	return (struct an_slice){ raw, raw[end] ? at : before };
}

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void write_groups(const struct cpu_rows *r, struct groups *g, const char *name,
			 const char *member, struct an_value *cpu)
{
	struct an_value *list = an_add_array(cpu, name);
	size_t top = r->c->shared->options.top;

	if (g->count)
		qsort(g->items, g->count, sizeof(*g->items), compare_groups);
	for (size_t i = 0; i < g->count && (!top || i < top); i++) {
		struct an_value *v = an_add_object(list, NULL);

		an_add_text(v, member, g->items[i].name);
		an_add_uint(v, "exclusive_samples", g->items[i].samples);
		cpu_add_percent(v, "exclusive_percent", g->items[i].weight, r->whole);
	}
}

static enum nt_status add_groups(const struct cpu_rows *r, bool by_module, struct an_value *cpu)
{
	struct groups g = { 0 };
	enum nt_status st = NT_OK;

	nt_idmap_init(&g.by_name, r->c->shared->alloc);
	for (size_t i = 0; i < r->p->row_count && st == NT_OK; i++) {
		const struct an_profile_row *row = &r->p->rows[i];

		if (!an_profile_sum(row->self, r->rank))
			continue;
		if (by_module)
			st = add_to_group(r, &g, an_slice_of(an_profile_module(r->p, row)), row);
		else
			st = add_to_group(r, &g, namespace_of(row->method ? row->method->raw : ""),
					  row);
	}
	if (st == NT_OK)
		write_groups(r, &g, by_module ? "modules" : "namespaces",
			     by_module ? "module" : "namespace", cpu);
	nt_idmap_done(&g.by_name);
	an_mem_free(r->c->shared->alloc, g.items);
	return st;
}

enum nt_status cpu_add_modules(const struct cpu_rows *r, struct an_value *cpu)
{
	enum nt_status st = add_groups(r, true, cpu);

	return st < 0 ? st : add_groups(r, false, cpu);
}

/* --- tiers --- */

enum nt_status cpu_rows_tiers(struct cpu_rows *r)
{
	const struct an_profile *p = r->p;

	r->tiers = an_mem_array(r->c->shared->alloc, p->row_count, sizeof(*r->tiers));
	if (!r->tiers)
		return NT_ENOMEM;
	for (size_t i = 1; i < p->node_count; i++) {
		const struct an_node *n = an_calltree_node(p->shared->tree, (uint32_t)i);
		uint64_t self = p->self[i][CPU_ON] - r->t->moved[i];

		if (self && p->row_of[i] != UINT32_MAX)
			r->tiers[p->row_of[i]][an_methods_tier(
				p->shared->methods, n->address - !n->leaf, n->epoch)] += self;
	}
	return NT_OK;
}
