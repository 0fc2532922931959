/* SPDX-License-Identifier: MIT */

/* What was compiled, summed up by method, and which methods ran in code that is not optimised. */

#include <stdlib.h>

#include "analyzers/grow.h"
#include "analyzers/jit/jit_internal.h"

static enum nt_status find_row(struct jit_rows *r, const struct jit *j, uint64_t address,
			       uint32_t epoch, struct jit_row **ret)
{
	const struct an_method *m = an_methods_find(j->shared->methods, address, epoch);
	uint64_t key = m ? m->index : (address ^ (uint64_t)epoch << 40) | UINT64_C(1) << 63;
	uint32_t at = nt_idmap_get(&r->by_method, key);
	struct jit_row *row;

	if (at == NT_IDMAP_NONE) {
		row = an_mem_grow(j->shared->alloc, r->row, &r->cap, r->count + 1, sizeof(*row));
		if (!row)
			return NT_ENOMEM;
		r->row = row;
		at = (uint32_t)r->count;
		if (nt_idmap_put(&r->by_method, key, at) < 0)
			return NT_ENOMEM;
		row[r->count++] =
			(struct jit_row){ .method = m, .address = address, .epoch = epoch };
	}
	*ret = &r->row[at];
	return NT_OK;
}

static enum nt_status add_load(struct jit_rows *r, const struct jit *j, const struct jit_load *load)
{
	struct jit_row *row;
	enum nt_status st = find_row(r, j, load->address, load->epoch, &row);

	if (st < 0)
		return st;
	row->count++;
	row->code_bytes += load->code_bytes;
	if (load->il_bytes)
		row->il_bytes = load->il_bytes;
	row->tiers |= 1u << load->tier;
	row->rejected |= load->rejected;
	if (!load->timed)
		return NT_OK;
	row->timed = true;
	row->ns += load->jit_ns;
	if (load->jit_ns > row->max_ns)
		row->max_ns = load->jit_ns;
	return NT_OK;
}

static enum nt_status add_samples(struct jit_rows *r, struct jit *j)
{
	for (size_t i = 0; i < j->sample_count; i++) {
		const struct jit_sample *s = &j->samples[i];
		struct jit_row *row;
		enum nt_status st;

		if (!an_tier_is_quick(an_methods_tier(j->shared->methods, s->address, s->epoch)))
			continue;
		st = find_row(r, j, s->address, s->epoch, &row);
		if (st < 0)
			return st;
		row->samples += s->count;
		r->slow_samples += s->count;
	}
	return NT_OK;
}

enum nt_status jit_rows_init(struct jit_rows *r, struct jit *j)
{
	enum nt_status st = NT_OK;

	*r = (struct jit_rows){ 0 };
	nt_idmap_init(&r->by_method, j->shared->alloc);
	for (size_t i = 0; i < j->load_count && st == NT_OK; i++)
		st = add_load(r, j, &j->loads[i]);
	return st == NT_OK ? add_samples(r, j) : st;
}

void jit_rows_done(struct jit_rows *r, const struct jit *j)
{
	an_mem_free(j->shared->alloc, r->row);
	nt_idmap_done(&r->by_method);
}
