/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "analyzers/gc/gc_internal.h"
#include "analyzers/grow.h"

void gc_pauses_init(struct gc_pauses *p, const struct nt_alloc *alloc)
{
	*p = (struct gc_pauses){ .alloc = alloc };
}

void gc_pauses_done(struct gc_pauses *p)
{
	an_mem_free(p->alloc, p->exact);
	an_mem_free(p->alloc, p->histogram);
	gc_pauses_init(p, p->alloc);
}

/* Lengths below GC_STEPS have a step of their own; above, each power of two has GC_STEPS of them.
 */
static size_t step_of(uint64_t ns)
{
	unsigned power;

	if (ns < GC_STEPS)
		return (size_t)ns;
	power = 63 - (unsigned)__builtin_clzll(ns); /* at least 7 */
	return (size_t)(power - 6) * GC_STEPS + (size_t)((ns >> (power - 7)) & (GC_STEPS - 1));
}

/* The largest length of a step. */
static uint64_t step_end(size_t step)
{
	unsigned power;

	if (step < GC_STEPS)
		return step;
	power = (unsigned)(step / GC_STEPS) + 6;
	return ((GC_STEPS + (uint64_t)(step % GC_STEPS) + 1) << (power - 7)) - 1;
}

static enum nt_status make_histogram(struct gc_pauses *p)
{
	p->histogram =
		an_mem_array(p->alloc, (size_t)(GC_POWERS + 1) * GC_STEPS, sizeof(*p->histogram));
	if (!p->histogram)
		return NT_ENOMEM;
	for (size_t i = 0; i < p->count; i++)
		p->histogram[step_of(p->exact[i])]++;
	an_mem_free(p->alloc, p->exact);
	p->exact = NULL;
	return NT_OK;
}

/* Below an eighth of a millisecond, below twice that, and so on. */
static size_t bucket_of(uint64_t ns)
{
	size_t i = 0;

	while (i + 1 < GC_BUCKETS && (double)ns / 1e6 >= gc_pauses_bucket_ms(i))
		i++;
	return i;
}

double gc_pauses_bucket_ms(size_t bucket)
{
	return 0.125 * (double)(UINT64_C(1) << bucket);
}

enum nt_status gc_pauses_add(struct gc_pauses *p, uint64_t ns)
{
	uint64_t *exact;

	if (!p->histogram && p->count >= GC_MAX_EXACT && make_histogram(p) < 0)
		return NT_ENOMEM;
	if (p->histogram) {
		p->histogram[step_of(ns)]++;
	} else {
		exact = an_mem_grow(p->alloc, p->exact, &p->exact_cap, (size_t)p->count + 1,
				    sizeof(*exact));
		if (!exact)
			return NT_ENOMEM;
		p->exact = exact;
		exact[p->count] = ns;
		p->sorted = false;
	}
	p->bucket[bucket_of(ns)]++;
	p->count++;
	p->total_ns += ns;
	if (ns > p->max_ns)
		p->max_ns = ns;
	return NT_OK;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t gc_pauses_percentile(struct gc_pauses *p, unsigned percent)
{
	uint64_t rank = p->count / 100 * percent + (p->count % 100 * percent + 99) / 100;
	uint64_t seen = 0;

	if (!p->count)
		return 0;
	if (!rank)
		rank = 1;
	if (!p->histogram) {
		if (!p->sorted)
			qsort(p->exact, (size_t)p->count, sizeof(*p->exact), compare);
		p->sorted = true;
		return p->exact[rank - 1];
	}
	for (size_t step = 0; step < (size_t)(GC_POWERS + 1) * GC_STEPS; step++) {
		seen += p->histogram[step];
		if (seen >= rank)
			return step_end(step) < p->max_ns ? step_end(step) : p->max_ns;
	}
	return p->max_ns;
}
