/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_RANGES_H
#define ANALYZERS_RANGES_H

/*
 * A sorted list of address ranges that do not overlap, in blocks: adding or removing one moves at
 * most one block's worth of others, whatever the order in which they come.
 *
 * A space keeps apart what may use the same addresses: processes, or epochs.
 */

#include "nettrace/nettrace.h"

struct an_range {
	uint64_t start, last; /* both belong to it */
	uint32_t space;
	uint32_t value; /* the caller's */
	uint32_t epoch;
	bool used;
	bool whole; /* last was not cut: the range is as it was loaded */
	uint8_t tier; /* enum an_tier, of code */
};

struct an_range_block;

struct an_ranges {
	const struct nt_alloc *alloc;
	struct an_range_block **blocks;
	size_t block_count, block_cap;
	size_t count, max;
};

void an_ranges_init(struct an_ranges *r, const struct nt_alloc *alloc, size_t max);
void an_ranges_done(struct an_ranges *r);

/* What these return is valid until a range is added or removed. */

/* The range that holds addr, or NULL. */
struct an_range *an_ranges_at(const struct an_ranges *r, uint32_t space, uint64_t addr);
/* The first that has an address in [start, last], or NULL. */
struct an_range *an_ranges_first(const struct an_ranges *r, uint32_t space, uint64_t start,
				 uint64_t last);
/* Adds a range that overlaps none.  NT_ELIMIT when there are max already. */
NT_MUST_CHECK enum nt_status an_ranges_add(struct an_ranges *r, const struct an_range *range);
/* Removes one of the list. */
void an_ranges_remove(struct an_ranges *r, const struct an_range *range);

#endif
