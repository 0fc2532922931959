/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_GC_ALLOC_INTERNAL_H
#define ANALYZERS_GC_ALLOC_INTERNAL_H

/* Inside of the allocation analyzer: alloc.c sums up, alloc_report.c writes the section. */

#include "analyzers/profile.h"
#include "analyzers/rate.h"
#include "analyzers/sites.h"
#include "analyzers/textset.h"

enum alloc_source { ALLOC_NONE, ALLOC_TICKS, ALLOC_SAMPLED };

/* Bytes and objects are estimates. */
struct alloc_sum {
	uint64_t samples, large_samples;
	double bytes, large_bytes;
	double objects; /* sampled only */
	double variance; /* of bytes; sampled only */
};

struct alloc_type {
	uint32_t text; /* AN_TEXT_OTHER: too many types, or without a name */
	bool named;
	uint64_t type_id;
	struct alloc_sum sum;
};

/* One type at one stack. */
struct alloc_cell {
	uint32_t type, node;
	struct alloc_sum sum;
};

struct alloc {
	struct an_shared *shared;
	enum alloc_source source;
	struct alloc_sum sum;
	uint64_t ticks_ignored; /* in a trace with sampled allocations */
	uint64_t with_stack; /* samples */
	uint64_t unnamed; /* samples of types without a name */
	struct an_textset names;
	struct alloc_type *types; /* [0] takes what did not fit */
	size_t type_count, type_cap;
	struct nt_idmap by_name, by_id;
	struct alloc_cell *cells;
	size_t cell_count, cell_cap;
	struct nt_idmap by_place;
	uint64_t crowded; /* samples counted without their stack: too many cells */
	struct an_rate rate;
};

void alloc_sum_add(struct alloc_sum *to, const struct alloc_sum *what);
/* With --tree: lines by bytes, of the built profile p; whole: all bytes. */
NT_MUST_CHECK enum nt_status alloc_add_tree(const struct an_shared *s, const struct an_profile *p,
					    double whole, struct an_value *alloc);
NT_MUST_CHECK enum nt_status alloc_report(const struct alloc *a, struct an_report *out);

#endif
