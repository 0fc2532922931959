/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_GROW_H
#define ANALYZERS_GROW_H

/* Arrays that double as they fill, with every multiplication checked. */

#include <string.h>

#include "nettrace/nettrace.h"

static inline void *an_mem_get(const struct nt_alloc *al, size_t size)
{
	void *p = al->realloc(al->ctx, NULL, size);

	if (p)
		memset(p, 0, size);
	return p;
}

static inline void an_mem_free(const struct nt_alloc *al, void *p)
{
	if (p)
		al->realloc(al->ctx, p, 0);
}

/* A zeroed array of n (at least one) elements; NULL when out of memory. */
static inline void *an_mem_array(const struct nt_alloc *al, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n ? n : 1, size, &bytes))
		return NULL;
	return an_mem_get(al, bytes);
}

/*
 * Makes room for need elements in items[0..*cap), a pointer or NULL; new elements are zeroed.
 * Returns the array, which may have moved, or NULL when out of memory: items then stays valid.
 */
static inline void *an_mem_grow(const struct nt_alloc *al, void *items, size_t *cap, size_t need,
				size_t size)
{
	size_t n = *cap ? *cap : 16;
	size_t bytes;
	char *p;

	if (items && need <= *cap)
		return items;
	while (n < need)
		if (__builtin_mul_overflow(n, (size_t)2, &n))
			return NULL;
	if (__builtin_mul_overflow(n, size, &bytes))
		return NULL;
	p = al->realloc(al->ctx, items, bytes);
	if (!p)
		return NULL;
	memset(p + *cap * size, 0, bytes - *cap * size);
	*cap = n;
	return p;
}

#endif
