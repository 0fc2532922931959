/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nettrace/arena.h"
#include "tests/support/failalloc.h"

enum { PAGE = 64 * 1024 };

static void what_is_got_is_aligned_and_apart(void **state)
{
	struct failalloc fa;
	struct nt_arena a;
	unsigned char *last = NULL;

	(void)state;
	failalloc_init(&fa, 0);
	nt_arena_init(&a, &fa.alloc, 1 << 20);
	for (size_t size = 1; size < 100; size++) {
		unsigned char *p = nt_arena_get(&a, size);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 16, 0);
		if (last)
			assert_true(p >= last + size - 1);
		memset(p, 0xcc, size);
		last = p;
	}
	assert_int_equal(fa.live, 1);
	nt_arena_done(&a);
	assert_int_equal(fa.live, 0);
}

static void more_than_a_page_gets_pages(void **state)
{
	struct failalloc fa;
	struct nt_arena a;

	(void)state;
	failalloc_init(&fa, 0);
	nt_arena_init(&a, &fa.alloc, 1 << 20);
	assert_non_null(nt_arena_get(&a, PAGE - 16));
	assert_non_null(nt_arena_get(&a, 16));
	assert_int_equal(fa.live, 1);
	assert_non_null(nt_arena_get(&a, 1));
	assert_int_equal(fa.live, 2);
	memset(nt_arena_get(&a, 3 * PAGE), 1, 3 * PAGE);
	assert_int_equal(fa.live, 3);
	assert_int_equal(a.bytes, 5 * PAGE);
	nt_arena_done(&a);
	assert_int_equal(fa.live, 0);
}

static void the_cap_is_kept_and_told_from_no_memory(void **state)
{
	struct failalloc fa;
	struct nt_arena a;

	(void)state;
	failalloc_init(&fa, 0);
	nt_arena_init(&a, &fa.alloc, PAGE + 100);
	assert_non_null(nt_arena_get(&a, PAGE));
	assert_non_null(nt_arena_get(&a, 96)); /* the last bit before the cap */
	assert_false(a.full);
	assert_null(nt_arena_get(&a, 16));
	assert_true(a.full);
	assert_true(a.bytes <= PAGE + 100);
	nt_arena_done(&a);
}

static void no_memory_is_not_the_cap(void **state)
{
	struct failalloc fa;
	struct nt_arena a;

	(void)state;
	failalloc_init(&fa, 1);
	nt_arena_init(&a, &fa.alloc, 1 << 20);
	assert_null(nt_arena_get(&a, 8));
	assert_false(a.full);
	assert_non_null(nt_arena_get(&a, 8));
	nt_arena_done(&a);
	assert_int_equal(fa.live, 0);
}

static void arrays_are_zeroed_and_their_size_is_checked(void **state)
{
	struct failalloc fa;
	struct nt_arena a;
	unsigned char *p;

	(void)state;
	failalloc_init(&fa, 0);
	nt_arena_init(&a, &fa.alloc, 1 << 20);
	memset(nt_arena_get(&a, 1000), 0xff, 1000);
	nt_arena_clear(&a);
	p = nt_arena_array(&a, 10, 100);
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(p[i], 0);
	assert_null(nt_arena_array(&a, SIZE_MAX / 8 + 2, 8));
	assert_null(nt_arena_get(&a, SIZE_MAX));
	nt_arena_done(&a);
}

static void clearing_keeps_one_page_for_the_next_round(void **state)
{
	struct failalloc fa;
	struct nt_arena a;
	size_t calls;

	(void)state;
	failalloc_init(&fa, 0);
	nt_arena_init(&a, &fa.alloc, 1 << 20);
	nt_arena_clear(&a); /* an empty one */
	for (int i = 0; i < 3; i++)
		assert_non_null(nt_arena_get(&a, PAGE));
	nt_arena_clear(&a);
	assert_int_equal(fa.live, 1);
	assert_int_equal(a.bytes, PAGE);
	calls = fa.calls;
	assert_non_null(nt_arena_get(&a, PAGE));
	assert_int_equal(fa.calls, calls);
	nt_arena_done(&a);
}

static void clearing_gives_a_huge_page_back(void **state)
{
	struct failalloc fa;
	struct nt_arena a;

	(void)state;
	failalloc_init(&fa, 0);
	nt_arena_init(&a, &fa.alloc, 1 << 20);
	assert_non_null(nt_arena_get(&a, 5 * PAGE));
	nt_arena_clear(&a);
	assert_int_equal(fa.live, 0);
	assert_int_equal(a.bytes, 0);
	assert_non_null(nt_arena_get(&a, 5 * PAGE));
	nt_arena_done(&a);
	assert_int_equal(fa.live, 0);
}

static void text_is_copied_with_a_terminator(void **state)
{
	struct failalloc fa;
	struct nt_arena a;
	const char *empty, *text;

	(void)state;
	failalloc_init(&fa, 0);
	nt_arena_init(&a, &fa.alloc, 1 << 20);
	text = nt_arena_text(&a, "abcdef", 3);
	empty = nt_arena_text(&a, "abcdef", 0);
	assert_string_equal(text, "abc");
	assert_string_equal(empty, "");
	assert_null(nt_arena_text(&a, "", SIZE_MAX));
	nt_arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_got_is_aligned_and_apart),
		cmocka_unit_test(more_than_a_page_gets_pages),
		cmocka_unit_test(the_cap_is_kept_and_told_from_no_memory),
		cmocka_unit_test(no_memory_is_not_the_cap),
		cmocka_unit_test(arrays_are_zeroed_and_their_size_is_checked),
		cmocka_unit_test(clearing_keeps_one_page_for_the_next_round),
		cmocka_unit_test(clearing_gives_a_huge_page_back),
		cmocka_unit_test(text_is_copied_with_a_terminator),
	};

	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
