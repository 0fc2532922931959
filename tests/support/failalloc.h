/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_FAILALLOC_H
#define TESTS_SUPPORT_FAILALLOC_H

/*
 * An allocator for tests: counts what is asked for, fails on demand, and knows what was not given
 * back.  A test in which every single allocation fails once, and then none:
 *
 *	struct failalloc fa = { 0 };
 *
 *	while (failalloc_next(&fa))
 *		the work, with &fa.alloc, and what is right when fa.failed;
 */

#include "nettrace/nettrace.h"

struct failalloc {
	struct nt_alloc alloc; /* hand &fa.alloc to the library */
	size_t calls; /* requests for memory so far; frees do not count */
	size_t fail_at; /* the request that fails, counted from 1; 0: none */
	bool failed; /* a request has failed */
	size_t live; /* blocks not yet freed */
	size_t bytes; /* in them */
	size_t peak_bytes;
};

/* In place; fa must not move afterwards.  Only the fail_at-th request fails, later ones work. */
void failalloc_init(struct failalloc *fa, size_t fail_at);

/*
 * The next round.  Everything must have been given back in the one before; false when that was one
 * in which nothing failed, and there must have been another.
 */
bool failalloc_next(struct failalloc *fa);

#endif
