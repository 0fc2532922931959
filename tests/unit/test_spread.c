/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyzers/spread.h"
#include "tests/support/failalloc.h"

static void add(struct an_spread *s, uint64_t ns)
{
	assert_int_equal(an_spread_add(s, &nt_alloc_default, ns), NT_OK);
}

static void few_are_exact(void **state)
{
	struct an_spread s = { 0 };

	(void)state;
	assert_int_equal(an_spread_percentile(&s, 99), 0);
	for (uint64_t i = 100; i > 0; i--)
		add(&s, i * 1000);
	assert_int_equal(s.count, 100);
	assert_int_equal(s.total_ns, 5050 * 1000);
	assert_int_equal(s.max_ns, 100 * 1000);
	assert_int_equal(an_spread_percentile(&s, 0), 1000);
	assert_int_equal(an_spread_percentile(&s, 50), 50 * 1000);
	assert_int_equal(an_spread_percentile(&s, 99), 99 * 1000);
	assert_int_equal(an_spread_percentile(&s, 100), 100 * 1000);
	an_spread_done(&s, &nt_alloc_default);
}

static void the_last_exact_one_and_the_first_beyond(void **state)
{
	struct an_spread s = { 0 };

	(void)state;
	for (uint64_t i = 1; i <= AN_SPREAD_EXACT; i++)
		add(&s, i);
	assert_null(s.histogram);
	assert_int_equal(an_spread_percentile(&s, 50), AN_SPREAD_EXACT / 2);
	add(&s, AN_SPREAD_EXACT + 1);
	assert_non_null(s.histogram);
	assert_null(s.exact);
	an_spread_done(&s, &nt_alloc_default);
}

/* Beyond that: within 0.8 %, over all magnitudes. */
static void many_are_near(void **state)
{
	for (uint64_t unit = 1; unit < UINT64_C(1) << 30; unit *= 1000) {
		struct an_spread s = { 0 };

		(void)state;
		for (uint64_t i = 1; i <= 10000; i++)
			add(&s, i * unit);
		for (unsigned p = 1; p <= 100; p++) {
			double want = 100.0 * p * (double)unit;
			double got = (double)an_spread_percentile(&s, p);

			assert_true(got >= want * 0.992 && got <= want * 1.008);
		}
		assert_int_equal(s.total_ns, unit * 50005000);
		an_spread_done(&s, &nt_alloc_default);
	}
}

static void the_longest_is_never_exceeded(void **state)
{
	struct an_spread s = { 0 };

	(void)state;
	for (size_t i = 0; i < 2000; i++)
		add(&s, 1000001);
	assert_int_equal(an_spread_percentile(&s, 100), 1000001);
	assert_true(an_spread_percentile(&s, 50) <= 1000001);
	an_spread_done(&s, &nt_alloc_default);
}

static void sums_and_lengths_without_end_stay_at_the_end(void **state)
{
	struct an_spread s = { 0 };

	(void)state;
	for (size_t i = 0; i < 2000; i++)
		add(&s, UINT64_MAX);
	assert_int_equal(s.total_ns, UINT64_MAX);
	assert_int_equal(an_spread_percentile(&s, 100), UINT64_MAX);
	assert_true(an_spread_percentile(&s, 50) >= UINT64_C(1) << 45);
	an_spread_done(&s, &nt_alloc_default);
}

static void merging_is_adding(void **state)
{
	for (uint64_t n = 10; n <= 10000; n *= 10) {
		struct an_spread one = { 0 }, two = { 0 }, all = { 0 };

		(void)state;
		for (uint64_t i = 0; i < n; i++) {
			add(i % 3 ? &one : &two, i * 777);
			add(&all, i * 777);
		}
		assert_int_equal(an_spread_merge(&two, &nt_alloc_default, &one), NT_OK);
		assert_int_equal(two.count, all.count);
		assert_int_equal(two.total_ns, all.total_ns);
		assert_int_equal(two.max_ns, all.max_ns);
		for (unsigned p = 0; p <= 100; p++)
			assert_int_equal(an_spread_percentile(&two, p),
					 an_spread_percentile(&all, p));
		an_spread_done(&one, &nt_alloc_default);
		an_spread_done(&two, &nt_alloc_default);
		an_spread_done(&all, &nt_alloc_default);
	}
}

static void memory_is_bounded_and_may_fail(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct an_spread s = { 0 };
		enum nt_status st = NT_OK;

		for (uint64_t i = 0; i < 5000 && st == NT_OK; i++)
			st = an_spread_add(&s, &fa.alloc, i);
		assert_int_equal(st, fa.failed ? NT_ENOMEM : NT_OK);
		assert_true(fa.bytes <= 11 * 1024);
		an_spread_done(&s, &fa.alloc);
	}
}

static void nothing_ends_before_it_begins(void **state)
{
	(void)state;
	assert_int_equal(an_ns_between(5, 7), 2);
	assert_int_equal(an_ns_between(7, 5), 0);
	assert_int_equal(an_ns_between(INT64_MIN, INT64_MAX), UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_are_exact),
		cmocka_unit_test(the_last_exact_one_and_the_first_beyond),
		cmocka_unit_test(many_are_near),
		cmocka_unit_test(the_longest_is_never_exceeded),
		cmocka_unit_test(sums_and_lengths_without_end_stay_at_the_end),
		cmocka_unit_test(merging_is_adding),
		cmocka_unit_test(memory_is_bounded_and_may_fail),
		cmocka_unit_test(nothing_ends_before_it_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
