/* SPDX-License-Identifier: MIT */
/* The sorted list of ranges against a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/ranges.h"
#include "tests/support/failalloc.h"

enum { SPAN = 4096 }; /* addresses in the model */

static uint32_t rng(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Which range holds each address; 0: none. */
static void check(const struct an_ranges *r, const uint32_t *model)
{
	for (uint64_t addr = 0; addr < SPAN; addr++) {
		const struct an_range *x = an_ranges_at(r, 1, addr);

		assert_int_equal(x ? x->value : 0, model[addr]);
	}
}

static void it_agrees_with_a_plain_array(void **state)
{
	static uint32_t model[SPAN];
	struct an_ranges r;
	uint32_t seed = 1;
	size_t count = 0;

	(void)state;
	memset(model, 0, sizeof(model));
	an_ranges_init(&r, &nt_alloc_default, 1000000);
	for (uint32_t i = 1; i < 6000; i++) {
		uint64_t start = rng(&seed) % (SPAN - 8), last = start + rng(&seed) % 8;
		struct an_range *there = an_ranges_first(&r, 1, start, last);
		uint64_t first = start;

		while (first <= last && !model[first])
			first++;
		assert_int_equal(there != NULL, first <= last);
		if (there) {
			assert_int_equal(there->value, model[first]);
			for (uint64_t a = there->start; a <= there->last; a++)
				model[a] = 0;
			an_ranges_remove(&r, there);
			count--;
		} else {
			const struct an_range x = {
				.start = start, .last = last, .space = 1, .value = i
			};

			assert_int_equal(an_ranges_add(&r, &x), NT_OK);
			for (uint64_t a = start; a <= last; a++)
				model[a] = i;
			count++;
		}
		assert_int_equal(r.count, count);
		if (i % 500 == 0)
			check(&r, model);
	}
	check(&r, model);
	an_ranges_done(&r);
}

static void spaces_do_not_see_each_other(void **state)
{
	struct an_ranges r;

	(void)state;
	an_ranges_init(&r, &nt_alloc_default, 1000000);
	for (uint32_t space = 0; space < 500; space++) {
		const struct an_range x = {
			.start = 100, .last = 199, .space = space * 2, .value = space
		};

		assert_int_equal(an_ranges_add(&r, &x), NT_OK);
	}
	for (uint32_t space = 0; space < 500; space++) {
		assert_int_equal(an_ranges_at(&r, space * 2, 150)->value, space);
		assert_int_equal(an_ranges_first(&r, space * 2, 0, UINT64_MAX)->value, space);
		assert_null(an_ranges_at(&r, space * 2 + 1, 150));
		assert_null(an_ranges_first(&r, space * 2 + 1, 0, UINT64_MAX));
		assert_null(an_ranges_at(&r, space * 2, 200));
		assert_null(an_ranges_at(&r, space * 2, 99));
	}
	an_ranges_done(&r);
}

static void the_ends_of_the_address_space_belong_to_it(void **state)
{
	const struct an_range low = { .start = 0, .last = 0, .value = 1 };
	const struct an_range high = { .start = UINT64_MAX, .last = UINT64_MAX, .value = 2 };
	struct an_ranges r;

	(void)state;
	an_ranges_init(&r, &nt_alloc_default, 2);
	assert_null(an_ranges_at(&r, 0, 0));
	assert_int_equal(an_ranges_add(&r, &high), NT_OK);
	assert_int_equal(an_ranges_add(&r, &low), NT_OK);
	assert_int_equal(an_ranges_at(&r, 0, 0)->value, 1);
	assert_int_equal(an_ranges_at(&r, 0, UINT64_MAX)->value, 2);
	assert_null(an_ranges_at(&r, 0, 1));
	assert_int_equal(an_ranges_first(&r, 0, 1, UINT64_MAX)->value, 2);
	assert_int_equal(an_ranges_add(&r, &(struct an_range){ .start = 5, .last = 5 }), NT_ELIMIT);
	an_ranges_done(&r);
}

/* Ascending, descending and mixed: blocks split wherever they fill. */
static void any_order_of_adding_is_fine(void **state)
{
	enum { N = 20000 };

	(void)state;
	for (int order = 0; order < 3; order++) {
		struct an_ranges r;

		an_ranges_init(&r, &nt_alloc_default, N);
		for (uint32_t i = 0; i < N; i++) {
			uint32_t k = order == 0 ? i : order == 1 ? N - 1 - i : i * 7919 % N;
			const struct an_range x = { .start = k * 10,
						    .last = k * 10 + 8,
						    .value = k };

			assert_int_equal(an_ranges_add(&r, &x), NT_OK);
		}
		for (uint32_t k = 0; k < N; k++) {
			assert_int_equal(an_ranges_at(&r, 0, k * 10 + 8)->value, k);
			assert_null(an_ranges_at(&r, 0, k * 10 + 9));
		}
		while (r.count)
			an_ranges_remove(&r, an_ranges_first(&r, 0, 0, UINT64_MAX));
		assert_int_equal(r.block_count, 0);
		an_ranges_done(&r);
	}
}

static void a_failing_allocation_changes_nothing(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct an_ranges r;
		size_t added = 0;

		an_ranges_init(&r, &fa.alloc, 100000);
		for (uint32_t i = 0; i < 3000; i++) {
			const struct an_range x = { .start = i * 7919 % 3000,
						    .last = i * 7919 % 3000 };

			if (an_ranges_add(&r, &x) == NT_OK)
				added++;
		}
		assert_int_equal(r.count, added);
		for (size_t k = 0; k < added; k++)
			an_ranges_remove(&r, an_ranges_first(&r, 0, 0, UINT64_MAX));
		an_ranges_done(&r);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_agrees_with_a_plain_array),
		cmocka_unit_test(spaces_do_not_see_each_other),
		cmocka_unit_test(the_ends_of_the_address_space_belong_to_it),
		cmocka_unit_test(any_order_of_adding_is_fine),
		cmocka_unit_test(a_failing_allocation_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
