/* SPDX-License-Identifier: MIT */
#include "tests/support/failalloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Before each block; keeps the 16-byte alignment of malloc(). */
union head {
	size_t size;
	max_align_t align;
};

static void *failalloc_realloc(void *ctx, void *ptr, size_t size)
{
	struct failalloc *fa = ctx;
	union head *h = ptr ? (union head *)ptr - 1 : NULL;
	size_t old = h ? h->size : 0;

	if (size == 0) {
		if (h) {
			fa->live--;
			fa->bytes -= old;
		}
		free(h);
		return NULL;
	}
	if (++fa->calls == fa->fail_at) {
		fa->failed = true;
		return NULL;
	}
	if (size > SIZE_MAX - sizeof(*h))
		return NULL;
	h = realloc(h, sizeof(*h) + size);
	if (!h)
		return NULL;
	h->size = size;
	if (!ptr)
		fa->live++;
	fa->bytes = fa->bytes - old + size;
	if (fa->bytes > fa->peak_bytes)
		fa->peak_bytes = fa->bytes;
	return h + 1;
}

void failalloc_init(struct failalloc *fa, size_t fail_at)
{
	*fa = (struct failalloc){ .fail_at = fail_at };
	fa->alloc = (struct nt_alloc){ .realloc = failalloc_realloc, .ctx = fa };
}

bool failalloc_next(struct failalloc *fa)
{
	assert_int_equal(fa->live, 0);
	if (fa->fail_at && !fa->failed) {
		assert_true(fa->fail_at > 1);
		return false;
	}
	failalloc_init(fa, fa->fail_at + 1);
	return true;
}
