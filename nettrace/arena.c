/* SPDX-License-Identifier: MIT */
#include "nettrace/arena.h"

#include <string.h>

enum { PAGE_BYTES = 64 * 1024, ALIGN = 16 };

struct nt_arena_page {
	struct nt_arena_page *older;
	size_t size; /* of data */
	size_t used;
	_Alignas(ALIGN) unsigned char data[];
};

void nt_arena_init(struct nt_arena *a, const struct nt_alloc *alloc, size_t max_bytes)
{
	*a = (struct nt_arena){ .alloc = alloc, .max_bytes = max_bytes };
}

void nt_arena_done(struct nt_arena *a)
{
	while (a->pages) {
		struct nt_arena_page *older = a->pages->older;

		a->alloc->realloc(a->alloc->ctx, a->pages, 0);
		a->pages = older;
	}
	a->bytes = 0;
	a->full = false;
}

void nt_arena_clear(struct nt_arena *a)
{
	struct nt_arena_page *keep = a->pages;

	if (!keep)
		return;
	a->pages = keep->older;
	nt_arena_done(a);
	if (keep->size > PAGE_BYTES) {
		a->alloc->realloc(a->alloc->ctx, keep, 0);
		return;
	}
	keep->older = NULL;
	keep->used = 0;
	a->pages = keep;
	a->bytes = keep->size;
}

static struct nt_arena_page *add_page(struct nt_arena *a, size_t size)
{
	size_t data = size > PAGE_BYTES ? size : PAGE_BYTES;
	struct nt_arena_page *page;

	if (data > a->max_bytes - a->bytes) {
		data = size; /* the last bit before the cap */
		if (data > a->max_bytes - a->bytes) {
			a->full = true;
			return NULL;
		}
	}
	page = a->alloc->realloc(a->alloc->ctx, NULL, sizeof(*page) + data);
	if (!page)
		return NULL;
	page->size = data;
	page->used = 0;
	page->older = a->pages;
	a->pages = page;
	a->bytes += data;
	return page;
}

void *nt_arena_get(struct nt_arena *a, size_t size)
{
	struct nt_arena_page *page = a->pages;
	void *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (!page || size > page->size - page->used)
		page = add_page(a, size);
	if (!page)
		return NULL;
	p = page->data + page->used;
	page->used += size;
	return p;
}

void *nt_arena_array(struct nt_arena *a, size_t n, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(n, size, &bytes))
		return NULL;
	p = nt_arena_get(a, bytes);
	if (p)
		memset(p, 0, bytes);
	return p;
}

char *nt_arena_text(struct nt_arena *a, const char *text, size_t len)
{
	char *p;

	if (len == SIZE_MAX)
		return NULL;
	p = nt_arena_get(a, len + 1);
	if (p) {
		memcpy(p, text, len);
		p[len] = '\0';
	}
	return p;
}
