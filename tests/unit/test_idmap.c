/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nettrace/idmap.h"
#include "tests/support/failalloc.h"

static void an_empty_map_has_nothing(void **state)
{
	struct nt_idmap m;

	(void)state;
	nt_idmap_init(&m, &nt_alloc_default);
	assert_int_equal(nt_idmap_get(&m, 0), NT_IDMAP_NONE);
	nt_idmap_clear(&m);
	nt_idmap_done(&m);
}

static void extreme_keys_are_keys_like_any_other(void **state)
{
	static const uint64_t keys[] = { 0, 1, UINT32_MAX, (uint64_t)1 << 63, UINT64_MAX };
	struct nt_idmap m;

	(void)state;
	nt_idmap_init(&m, &nt_alloc_default);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(nt_idmap_put(&m, keys[i], i), NT_OK);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(nt_idmap_get(&m, keys[i]), i);
	assert_int_equal(nt_idmap_get(&m, 2), NT_IDMAP_NONE);
	nt_idmap_done(&m);
}

static void a_second_put_replaces(void **state)
{
	struct nt_idmap m;

	(void)state;
	nt_idmap_init(&m, &nt_alloc_default);
	assert_int_equal(nt_idmap_put(&m, 7, 1), NT_OK);
	assert_int_equal(nt_idmap_put(&m, 7, 2), NT_OK);
	assert_int_equal(nt_idmap_get(&m, 7), 2);
	assert_int_equal(m.used, 1);
	nt_idmap_done(&m);
}

/* Multiples of a large power of two, dense numbers, and a wild mix. */
static uint64_t key_of(uint64_t i, unsigned pattern)
{
	if (pattern == 0)
		return i;
	if (pattern == 1)
		return i << 40;
	return i * 0x9e3779b97f4a7c15u;
}

static void many_keys_stay_apart(void **state)
{
	(void)state;
	for (unsigned pattern = 0; pattern < 3; pattern++) {
		struct nt_idmap m;

		nt_idmap_init(&m, &nt_alloc_default);
		for (uint32_t i = 0; i < 20000; i++)
			assert_int_equal(nt_idmap_put(&m, key_of(i, pattern), i), NT_OK);
		for (uint32_t i = 0; i < 20000; i++)
			assert_int_equal(nt_idmap_get(&m, key_of(i, pattern)), i);
		assert_int_equal(nt_idmap_get(&m, key_of(20000, pattern)), NT_IDMAP_NONE);
		nt_idmap_done(&m);
	}
}

static void clearing_forgets_all(void **state)
{
	struct failalloc fa;
	struct nt_idmap m;

	(void)state;
	failalloc_init(&fa, 0);
	nt_idmap_init(&m, &fa.alloc);
	for (uint32_t n = 100; n <= 100000; n *= 1000) { /* the second one is given back whole */
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(nt_idmap_put(&m, i, i), NT_OK);
		nt_idmap_clear(&m);
		for (uint32_t i = 0; i < n; i += 7)
			assert_int_equal(nt_idmap_get(&m, i), NT_IDMAP_NONE);
		assert_int_equal(nt_idmap_put(&m, 5, 6), NT_OK);
		assert_int_equal(nt_idmap_get(&m, 5), 6);
	}
	nt_idmap_done(&m);
	assert_int_equal(fa.live, 0);
}

static void no_memory_leaves_the_map_as_it_was(void **state)
{
	(void)state;
	for (size_t fail_at = 1; fail_at <= 4; fail_at++) {
		struct failalloc fa;
		struct nt_idmap m;
		uint32_t kept = 0;

		failalloc_init(&fa, fail_at);
		nt_idmap_init(&m, &fa.alloc);
		while (nt_idmap_put(&m, kept, kept) == NT_OK)
			kept++;
		assert_true(fa.failed);
		for (uint32_t i = 0; i < kept; i++)
			assert_int_equal(nt_idmap_get(&m, i), i);
		assert_int_equal(nt_idmap_get(&m, kept), NT_IDMAP_NONE);
		assert_int_equal(nt_idmap_put(&m, kept, kept), NT_OK); /* only one fails */
		nt_idmap_done(&m);
		assert_int_equal(fa.live, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_map_has_nothing),
		cmocka_unit_test(extreme_keys_are_keys_like_any_other),
		cmocka_unit_test(a_second_put_replaces),
		cmocka_unit_test(many_keys_stay_apart),
		cmocka_unit_test(clearing_forgets_all),
		cmocka_unit_test(no_memory_leaves_the_map_as_it_was),
	};

	return cmocka_run_group_tests_name("idmap", tests, NULL, NULL);
}
