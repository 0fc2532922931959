/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_SPREAD_H
#define ANALYZERS_SPREAD_H

/*
 * Lengths of time with count, sum, maximum and percentiles, any number in bounded memory: there is
 * one for each lock and call site, so it starts with nothing and never exceeds 11 KiB.
 *
 * Percentiles are exact up to AN_SPREAD_EXACT lengths; beyond that they come from a histogram whose
 * steps are 1.6 % wide.  Count, sum and maximum are always exact.
 */

#include "nettrace/nettrace.h"

enum {
	AN_SPREAD_EXACT = 1024,
	AN_SPREAD_STEPS = 64, /* a power of two is cut into as many */
	AN_SPREAD_BUCKETS = 41 * AN_SPREAD_STEPS, /* up to 2^46 ns: 19 hours */
};

/* Times of a damaged trace may be anything: no overflow, and nothing ends before it begins. */
static inline uint64_t an_ns_between(int64_t from_ns, int64_t to_ns)
{
	return to_ns > from_ns ? (uint64_t)to_ns - (uint64_t)from_ns : 0;
}

/* All zeros is an empty one. */
struct an_spread {
	uint64_t count, total_ns, max_ns;
	uint64_t *exact; /* NULL once the histogram has taken over, and while empty */
	size_t exact_cap;
	uint32_t *histogram; /* AN_SPREAD_BUCKETS, or NULL */
};

void an_spread_done(struct an_spread *s, const struct nt_alloc *alloc);
NT_MUST_CHECK enum nt_status an_spread_add(struct an_spread *s, const struct nt_alloc *alloc,
					   uint64_t ns);
/* Adds all lengths of from. */
NT_MUST_CHECK enum nt_status an_spread_merge(struct an_spread *s, const struct nt_alloc *alloc,
					     const struct an_spread *from);
/* The smallest length that percent of all do not exceed; 0 when there are none. */
uint64_t an_spread_percentile(struct an_spread *s, unsigned percent);

#endif
