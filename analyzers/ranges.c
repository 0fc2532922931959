/* SPDX-License-Identifier: MIT */
#include "analyzers/ranges.h"

#include <assert.h>

#include "analyzers/grow.h"

enum { BLOCK_RANGES = 128 };

struct an_range_block {
	size_t count; /* at least one */
	struct an_range items[BLOCK_RANGES];
};

/* Where a range is, or would be added. */
struct place {
	size_t block, item;
};

void an_ranges_init(struct an_ranges *r, const struct nt_alloc *alloc, size_t max)
{
	*r = (struct an_ranges){ .alloc = alloc, .max = max };
}

void an_ranges_done(struct an_ranges *r)
{
	for (size_t i = 0; i < r->block_count; i++)
		an_mem_free(r->alloc, r->blocks[i]);
	an_mem_free(r->alloc, r->blocks);
	an_ranges_init(r, r->alloc, r->max);
}

static bool starts_after(const struct an_range *x, uint32_t space, uint64_t addr)
{
	return x->space != space ? x->space > space : x->start > addr;
}

/* Behind the last range that starts at or before addr: (b, i) with 0 <= i <= count of b. */
static struct place find(const struct an_ranges *r, uint32_t space, uint64_t addr)
{
	size_t low = 0, high = r->block_count;
	struct place at = { 0, 0 };
	const struct an_range_block *b;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (starts_after(&r->blocks[mid]->items[0], space, addr))
			high = mid;
		else
			low = mid + 1;
	}
	if (!low)
		return at;
	at.block = low - 1;
	b = r->blocks[at.block];
	low = 0;
	high = b->count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (starts_after(&b->items[mid], space, addr))
			high = mid;
		else
			low = mid + 1;
	}
	at.item = low;
	return at;
}

struct an_range *an_ranges_at(const struct an_ranges *r, uint32_t space, uint64_t addr)
{
	struct place at = find(r, space, addr);
	struct an_range *x;

	if (!at.item)
		return NULL;
	x = &r->blocks[at.block]->items[at.item - 1];
	return x->space == space && x->last >= addr ? x : NULL;
}

struct an_range *an_ranges_first(const struct an_ranges *r, uint32_t space, uint64_t start,
				 uint64_t last)
{
	struct an_range *x = an_ranges_at(r, space, start);
	struct place at;

	if (x)
		return x;
	at = find(r, space, start);
	if (at.block < r->block_count && at.item == r->blocks[at.block]->count) {
		at.block++;
		at.item = 0;
	}
	if (at.block == r->block_count)
		return NULL;
	x = &r->blocks[at.block]->items[at.item];
	return x->space == space && x->start <= last ? x : NULL;
}

/* A new block behind number at, holding the ranges of at from item on. */
static enum nt_status split(struct an_ranges *r, size_t at, size_t item)
{
	struct an_range_block **blocks, *b, *fresh;

	blocks = an_mem_grow(r->alloc, r->blocks, &r->block_cap, r->block_count + 1,
			     sizeof(struct an_range_block *));
	if (!blocks)
		return NT_ENOMEM;
	r->blocks = blocks;
	fresh = r->alloc->realloc(r->alloc->ctx, NULL, sizeof(*fresh));
	if (!fresh)
		return NT_ENOMEM;
	fresh->count = 0;
	if (r->block_count) {
		b = blocks[at];
		fresh->count = b->count - item;
		memcpy(fresh->items, b->items + item, fresh->count * sizeof(b->items[0]));
		b->count = item;
		at++;
	}
	memmove(blocks + at + 1, blocks + at, (r->block_count - at) * sizeof(*blocks));
	blocks[at] = fresh;
	r->block_count++;
	return NT_OK;
}

enum nt_status an_ranges_add(struct an_ranges *r, const struct an_range *range)
{
	struct place at = find(r, range->space, range->start);
	struct an_range_block *b;

	if (r->count >= r->max)
		return NT_ELIMIT;
	if (!r->block_count) {
		if (split(r, 0, 0) < 0)
			return NT_ENOMEM;
	} else if (r->blocks[at.block]->count == BLOCK_RANGES) {
		/* What comes in ascending order fills its blocks. */
		bool append = at.block + 1 == r->block_count && at.item == BLOCK_RANGES;
		size_t half = append ? BLOCK_RANGES : BLOCK_RANGES / 2;

		if (split(r, at.block, half) < 0)
			return NT_ENOMEM;
		if (at.item > half || append) {
			at.block++;
			at.item -= half;
		}
	}
	b = r->blocks[at.block];
	memmove(b->items + at.item + 1, b->items + at.item,
		(b->count - at.item) * sizeof(b->items[0]));
	b->items[at.item] = *range;
	b->count++;
	r->count++;
	return NT_OK;
}

void an_ranges_remove(struct an_ranges *r, const struct an_range *range)
{
	struct place at = find(r, range->space, range->start);
	struct an_range_block *b;

	assert(at.item);
	b = r->blocks[at.block];
	at.item--;
	assert(&b->items[at.item] == range);
	memmove(b->items + at.item, b->items + at.item + 1,
		(b->count - at.item - 1) * sizeof(b->items[0]));
	b->count--;
	r->count--;
	if (b->count)
		return;
	an_mem_free(r->alloc, b);
	memmove(r->blocks + at.block, r->blocks + at.block + 1,
		(r->block_count - at.block - 1) * sizeof(struct an_range_block *));
	r->block_count--;
}
