/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_CHUNKS_H
#define ANALYZERS_CHUNKS_H

/*
 * Arrays of millions of small things: they grow piece by piece and never move, so that no second
 * copy is ever held.  Only the list of the pieces doubles.
 */

#include "analyzers/grow.h"

enum { AN_CHUNK_SHIFT = 14, AN_CHUNK_ITEMS = 1 << AN_CHUNK_SHIFT };

struct an_chunks {
	void **chunk;
	size_t chunk_count, chunk_cap;
	size_t count; /* items */
	size_t item; /* bytes of one */
};

static inline void an_chunks_init(struct an_chunks *c, size_t item)
{
	*c = (struct an_chunks){ .item = item };
}

static inline void *an_chunks_at(const struct an_chunks *c, size_t i)
{
	return (char *)c->chunk[i >> AN_CHUNK_SHIFT] + (i & (AN_CHUNK_ITEMS - 1)) * c->item;
}

/* Room for one more at the end, zeroed; NULL when out of memory. */
static inline void *an_chunks_add(struct an_chunks *c, const struct nt_alloc *al)
{
	size_t at = c->count >> AN_CHUNK_SHIFT;

	if (at == c->chunk_count) {
		void **list = an_mem_grow(al, c->chunk, &c->chunk_cap, at + 1, sizeof(*list));

		if (!list)
			return NULL;
		c->chunk = list;
		list[at] = an_mem_get(al, AN_CHUNK_ITEMS * c->item);
		if (!list[at])
			return NULL;
		c->chunk_count++;
	}
	return an_chunks_at(c, c->count++);
}

/* All of n items at once, zeroed; false when out of memory: what is there stays. */
static inline bool an_chunks_fill(struct an_chunks *c, const struct nt_alloc *al, size_t n)
{
	while (c->count < n) {
		if (!an_chunks_add(c, al))
			return false;
		c->count--;
		c->count += n - c->count < AN_CHUNK_ITEMS ? n - c->count : AN_CHUNK_ITEMS;
	}
	return true;
}

static inline void an_chunks_done(struct an_chunks *c, const struct nt_alloc *al)
{
	for (size_t i = 0; i < c->chunk_count; i++)
		an_mem_free(al, c->chunk[i]);
	an_mem_free(al, c->chunk);
	an_chunks_init(c, c->item);
}

#endif
