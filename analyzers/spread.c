/* SPDX-License-Identifier: MIT */
#include "analyzers/spread.h"

#include <stdlib.h>

#include "analyzers/grow.h"

enum { STEP_BITS = 6 }; /* of AN_SPREAD_STEPS */

void an_spread_done(struct an_spread *s, const struct nt_alloc *alloc)
{
	an_mem_free(alloc, s->exact);
	an_mem_free(alloc, s->histogram);
	*s = (struct an_spread){ 0 };
}

/* Below AN_SPREAD_STEPS each length has its own; above, each power of two has that many. */
static size_t bucket_of(uint64_t ns)
{
	unsigned power;
	size_t i;

	if (ns < AN_SPREAD_STEPS)
		return (size_t)ns;
	power = 63u - (unsigned)__builtin_clzll(ns) - STEP_BITS;
	i = ((size_t)power << STEP_BITS) + (size_t)(ns >> power);
	return i < AN_SPREAD_BUCKETS ? i : AN_SPREAD_BUCKETS - 1;
}

/* The middle of a bucket. */
static uint64_t length_of(size_t bucket)
{
	unsigned power;

	if (bucket < (size_t)2 * AN_SPREAD_STEPS)
		return bucket;
	power = (unsigned)(bucket >> STEP_BITS) - 1;
	return ((uint64_t)(bucket - ((size_t)power << STEP_BITS)) << power) +
	       (UINT64_C(1) << (power - 1));
}

static void count_in(uint32_t *bucket, uint32_t n)
{
	if (__builtin_add_overflow(*bucket, n, bucket))
		*bucket = UINT32_MAX;
}

static enum nt_status use_histogram(struct an_spread *s, const struct nt_alloc *alloc)
{
	s->histogram = an_mem_array(alloc, AN_SPREAD_BUCKETS, sizeof(*s->histogram));
	if (!s->histogram)
		return NT_ENOMEM;
	for (size_t i = 0; i < s->count; i++)
		count_in(&s->histogram[bucket_of(s->exact[i])], 1);
	an_mem_free(alloc, s->exact);
	s->exact = NULL;
	s->exact_cap = 0;
	return NT_OK;
}

enum nt_status an_spread_add(struct an_spread *s, const struct nt_alloc *alloc, uint64_t ns)
{
	if (!s->histogram && s->count >= AN_SPREAD_EXACT && use_histogram(s, alloc) < 0)
		return NT_ENOMEM;
	if (s->histogram) {
		count_in(&s->histogram[bucket_of(ns)], 1);
	} else {
		uint64_t *exact =
			an_mem_grow(alloc, s->exact, &s->exact_cap, s->count + 1, sizeof(*exact));

		if (!exact)
			return NT_ENOMEM;
		s->exact = exact;
		exact[s->count] = ns;
	}
	s->count++;
	if (__builtin_add_overflow(s->total_ns, ns, &s->total_ns))
		s->total_ns = UINT64_MAX;
	if (ns > s->max_ns)
		s->max_ns = ns;
	return NT_OK;
}

enum nt_status an_spread_merge(struct an_spread *s, const struct nt_alloc *alloc,
			       const struct an_spread *from)
{
	enum nt_status st = NT_OK;

	if (!from->histogram) {
		for (size_t i = 0; i < from->count && st == NT_OK; i++)
			st = an_spread_add(s, alloc, from->exact[i]);
		return st;
	}
	if (!s->histogram && use_histogram(s, alloc) < 0)
		return NT_ENOMEM;
	for (size_t i = 0; i < AN_SPREAD_BUCKETS; i++)
		count_in(&s->histogram[i], from->histogram[i]);
	s->count += from->count;
	if (__builtin_add_overflow(s->total_ns, from->total_ns, &s->total_ns))
		s->total_ns = UINT64_MAX;
	if (from->max_ns > s->max_ns)
		s->max_ns = from->max_ns;
	return NT_OK;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t an_spread_percentile(struct an_spread *s, unsigned percent)
{
	uint64_t rank, seen = 0;

	if (!s->count)
		return 0;
	/* ceil(count * percent / 100), without overflow */
	rank = s->count / 100 * percent + (s->count % 100 * percent + 99) / 100;
	if (!rank)
		rank = 1;
	if (rank >= s->count)
		return s->max_ns;
	if (!s->histogram) {
		qsort(s->exact, s->count, sizeof(*s->exact), compare);
		return s->exact[rank - 1];
	}
	for (size_t i = 0; i < AN_SPREAD_BUCKETS; i++) {
		seen += s->histogram[i];
		if (seen >= rank)
			return length_of(i) < s->max_ns ? length_of(i) : s->max_ns;
	}
	return s->max_ns;
}
