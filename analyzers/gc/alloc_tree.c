/* SPDX-License-Identifier: MIT */

/* Who calls whom where memory is allocated, by bytes: --tree and --inverted. */

#include "analyzers/calls.h"
#include "analyzers/gc/alloc_internal.h"
#include "analyzers/grow.h"

enum { USUAL_DEPTH = 16, MAX_LINES = 2000, NAME_BYTES = 512 };

static void add_line(const struct an_profile *p, const struct an_call_line *line, double whole,
		     struct an_value *list)
{
	const struct an_call *call = line->call;
	const struct an_profile_row *row = &p->rows[call->row];
	struct an_value *v = an_add_object(list, NULL);
	char buf[NAME_BYTES];

	an_add_uint(v, "depth", line->depth);
	an_add_text(v, "method", an_profile_name(p, row, buf, sizeof(buf)));
	an_add_text(v, "args", row->method ? row->method->args : "");
	if (call->resumed)
		an_add_bool(v, "resumed", true);
	an_add_uint(v, "inclusive_bytes", call->total);
	an_add_uint(v, "exclusive_bytes", call->self);
	an_add_double(v, "inclusive_percent", whole > 0 ? 100 * (double)call->total / whole : 0, 2);
}

static enum nt_status add_lines(const struct an_shared *s, const struct an_profile *p,
				const struct an_calls *calls, double whole, struct an_value *alloc)
{
	const struct an_cpu_options *o = &s->options.cpu;
	struct an_call_line *lines = an_mem_array(s->alloc, MAX_LINES, sizeof(*lines));
	struct an_value *list;
	bool more = false;
	size_t n = 0;
	enum nt_status st;

	if (!lines)
		return NT_ENOMEM;
	st = an_calls_lines(calls, o->depth ? o->depth : USUAL_DEPTH,
			    (uint64_t)(whole * o->min_percent / 100), lines, MAX_LINES, &n, &more);
	an_add_text(alloc, "tree_kind", o->tree == AN_TREE_CALLERS ? "callers" : "callees");
	an_add_bool(alloc, "tree_complete", !more && !calls->left_out);
	list = an_add_array(alloc, "tree");
	for (size_t i = 0; i < n; i++)
		add_line(p, &lines[i], whole, list);
	an_mem_free(s->alloc, lines);
	return st;
}

enum nt_status alloc_add_tree(const struct an_shared *s, const struct an_profile *p, double whole,
			      struct an_value *alloc)
{
	const struct an_cpu_options *o = &s->options.cpu;
	struct an_calls calls = { 0 }, callers = { 0 };
	enum nt_status st;

	if (o->tree != AN_TREE_CALLEES && o->tree != AN_TREE_CALLERS)
		return NT_OK;
	st = an_calls_init(&calls, p, 1);
	if (st == NT_OK && o->tree == AN_TREE_CALLERS)
		st = an_calls_invert(&callers, &calls, o->depth ? o->depth - 1 : USUAL_DEPTH - 1);
	if (st == NT_OK)
		st = add_lines(s, p, o->tree == AN_TREE_CALLERS ? &callers : &calls, whole, alloc);
	an_calls_done(&callers);
	an_calls_done(&calls);
	return st;
}
