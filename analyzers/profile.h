/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_PROFILE_H
#define ANALYZERS_PROFILE_H

/*
 * Weights on the call tree, summed up by method.  Made when reporting, when names are known.
 *
 * A row is a method, or an address without a name.  self is what was counted with the method as
 * leaf, total what was counted with it anywhere on the stack: each method once a stack, recursion
 * or not.
 */

#include "analyzers/analyzer.h"

enum { AN_STATES = 4 }; /* kinds of weights kept apart */

struct an_profile_row {
	const struct an_method *method; /* NULL: no name */
	uint32_t node; /* one of its nodes */
	uint64_t self[AN_STATES], total[AN_STATES];
};

struct an_profile {
	const struct an_shared *shared;
	bool fold; /* all instantiations of a generic are one row; set before an_profile_build() */
	bool total_first; /* for an_profile_sort(): by total, then self */
	size_t node_count;
	uint64_t (*self)[AN_STATES]; /* by node */
	uint64_t (*total)[AN_STATES]; /* by node, its descendants included */
	uint32_t *first_child, *next_sibling; /* AN_NODE_NONE ends a list */
	uint32_t *row_of; /* by node */
	struct an_profile_row *rows;
	size_t row_count, row_cap;
	uint32_t *order; /* row numbers, see an_profile_sort() */
};

NT_MUST_CHECK enum nt_status an_profile_init(struct an_profile *p, const struct an_shared *shared);
void an_profile_done(struct an_profile *p);
void an_profile_add(struct an_profile *p, uint32_t node, unsigned state, uint64_t weight);
/* Once, after the last add. */
NT_MUST_CHECK enum nt_status an_profile_build(struct an_profile *p);

/* What of a weight counts: states whose bit is set. */
uint64_t an_profile_sum(const uint64_t weight[AN_STATES], unsigned states);

/* Puts the numbers of the rows into order: by self, then total, then name, of those states. */
NT_MUST_CHECK enum nt_status an_profile_sort(struct an_profile *p, unsigned states);

/* A frame of the hottest path: nodes of one method under one path. */
struct an_hot_frame {
	uint32_t row;
	uint64_t self, total;
};

/*
 * From the outermost caller to where most is spent: at each step the callee with most, down to
 * where more is spent in the method itself.  merge: equal neighbours are one frame.  Writes at most
 * max frames; *ret_count is 0 when nothing counts.
 */
NT_MUST_CHECK enum nt_status an_profile_hot_path(const struct an_profile *p, unsigned states,
						 bool merge, struct an_hot_frame *frames,
						 size_t max, size_t *ret_count);

/* The module of a row, or "". */
const char *an_profile_module(const struct an_profile *p, const struct an_profile_row *row);
/* The name of a row for people; buf is used where there is none, and for folded ones. */
const char *an_profile_name(const struct an_profile *p, const struct an_profile_row *row, char *buf,
			    size_t size);

#endif
