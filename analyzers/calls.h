/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_CALLS_H
#define ANALYZERS_CALLS_H

/*
 * A profile as a tree for people: who calls whom, one node a (caller, method).
 *
 * Recursion is one node, frames by which the runtime carries async methods on are left out, and
 * what an async method does after an await stands under that method, not under whatever woke it.
 */

#include "analyzers/profile.h"

struct an_call {
	uint32_t row; /* of the profile; UINT32_MAX in the root */
	uint32_t parent; /* 0 is the root */
	uint32_t first_child, next_sibling; /* 0: none */
	bool resumed; /* an async method, after an await */
	uint64_t self, total;
};

struct an_calls {
	const struct an_profile *p;
	struct an_call *calls; /* [0] is the root: all */
	size_t count, cap;
	size_t left_out; /* callers for which there was no room */
};

/* From the outermost caller inwards; of the weights in states. */
NT_MUST_CHECK enum nt_status an_calls_init(struct an_calls *c, const struct an_profile *p,
					   unsigned states);
/* From where the time is spent outwards: at most depth callers of each. */
NT_MUST_CHECK enum nt_status an_calls_invert(struct an_calls *ret, const struct an_calls *c,
					     size_t depth);
/* Accepts all zeros. */
void an_calls_done(struct an_calls *c);

/* One line of a tree. */
struct an_call_line {
	const struct an_call *call;
	size_t depth;
};

/*
 * Lines depth first, the heaviest callees first, down to depth and to callees with at least least.
 * Writes at most max; *ret_more says whether there were more.
 */
NT_MUST_CHECK enum nt_status an_calls_lines(const struct an_calls *c, size_t depth, uint64_t least,
					    struct an_call_line *lines, size_t max,
					    size_t *ret_count, bool *ret_more);

/* The heaviest callee at each step, until more is spent in the method itself. */
size_t an_calls_hot_path(const struct an_calls *c, const struct an_call **path, size_t max);

#endif
