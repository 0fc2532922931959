/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/rate.h"
#include "analyzers/textset.h"
#include "tests/support/failalloc.h"

static const int64_t ms = 1000000;

static uint64_t sum(const struct an_rate *r)
{
	uint64_t n = 0;

	for (size_t i = 0; i < AN_RATE_INTERVALS; i++)
		n += r->sums[i];
	return n;
}

static void intervals(void **state)
{
	struct an_rate r = { 0 };

	(void)state;
	an_rate_add(&r, -5, 1);
	an_rate_add(&r, 99 * ms, 2);
	an_rate_add(&r, 100 * ms, 4);
	assert_true(r.interval_ns == 100 * ms);
	assert_int_equal(r.sums[0], 3);
	assert_int_equal(r.sums[1], 4);
	assert_int_equal(r.used, 2);
	/* just within, then just beyond what 256 intervals hold */
	an_rate_add(&r, 25599 * ms, 8);
	assert_true(r.interval_ns == 100 * ms);
	assert_int_equal(r.sums[255], 8);
	an_rate_add(&r, 25600 * ms, 16);
	assert_true(r.interval_ns == 200 * ms);
	assert_int_equal(r.sums[0], 7);
	assert_int_equal(r.sums[127], 8);
	assert_int_equal(r.sums[128], 16);
	assert_int_equal(r.used, 129);
	an_rate_add(&r, INT64_MAX, 32);
	assert_int_equal(sum(&r), 63);
	assert_true(r.used <= AN_RATE_INTERVALS);
}

static void busiest_second(void **state)
{
	struct an_rate r = { 0 };

	(void)state;
	an_rate_add(&r, 950 * ms, 5);
	an_rate_add(&r, 1850 * ms, 6); /* within one second of it */
	assert_int_equal(r.peak, 11);
	an_rate_add(&r, 1960 * ms, 3); /* the first is forgotten */
	assert_int_equal(r.peak, 11);
	assert_int_equal(r.second, 9);
	an_rate_add(&r, 60000 * ms, 10);
	assert_int_equal(r.second, 10);
	an_rate_add(&r, 1000 * ms, 100); /* much too late */
	assert_int_equal(r.second, 10);
	assert_int_equal(r.peak, 11);
	an_rate_add(&r, 59950 * ms, 2); /* a little late */
	assert_int_equal(r.peak, 12);
}

static void reported(void **state)
{
	struct an_report *out = an_report_new(NULL);
	struct an_rate r = { 0 };

	(void)state;
	an_rate_report(&r, 1000 * ms, an_report_root(out), "none");
	an_rate_add(&r, 150 * ms, 7);
	an_rate_report(&r, 1000 * ms, an_report_root(out), "some");
	an_rate_report(&r, INT64_MAX, an_report_root(out), "all");
	assert_int_equal(an_get(an_report_borrow_root(out), "none")->kind, AN_NULL);
	assert_int_equal(an_get(an_report_borrow_root(out), "some.sums")->count, 10);
	assert_int_equal(an_get(an_report_borrow_root(out), "some.sums")->first->next->u, 7);
	assert_true(an_get_f64(an_report_borrow_root(out), "some.interval_ms", 0) == 100);
	assert_int_equal(an_get(an_report_borrow_root(out), "all.sums")->count, AN_RATE_INTERVALS);
	an_report_free(out);
}

static void elapsed(void **state)
{
	(void)state;
	assert_int_equal(an_elapsed(5, 12), 7);
	assert_int_equal(an_elapsed(12, 5), 0);
	assert_true(an_elapsed(INT64_MIN, INT64_MAX) == UINT64_MAX);
}

/* --- texts --- */

static void texts(void **state)
{
	struct an_textset s;
	char longest[2 * AN_TEXT_BYTES];
	uint32_t a, b, c;

	(void)state;
	an_textset_init(&s, &nt_alloc_default, 3);
	assert_int_equal(an_textset_add(&s, "one", &a), NT_OK);
	assert_int_equal(an_textset_add(&s, "", &b), NT_OK);
	assert_int_equal(an_textset_add(&s, "one", &c), NT_OK);
	assert_int_equal(a, c);
	assert_int_not_equal(a, b);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(an_textset_add(&s, longest, &c), NT_OK);
	assert_int_equal(strlen(an_textset_get(&s, c)), AN_TEXT_BYTES - 1);
	assert_string_equal(an_textset_get(&s, a), "one");
	assert_string_equal(an_textset_get(&s, b), "");
	/* full: what is known stays known */
	assert_int_equal(an_textset_add(&s, "four", &c), NT_OK);
	assert_int_equal(c, AN_TEXT_OTHER);
	assert_int_equal(s.refused, 1);
	assert_string_equal(an_textset_get(&s, c), "[other]");
	assert_int_equal(an_textset_add(&s, "one", &c), NT_OK);
	assert_int_equal(a, c);
	assert_int_equal(an_textset_add_value(&s, NULL, &c), NT_OK);
	assert_int_equal(b, c);
	an_textset_done(&s);
}

static void no_memory(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct an_textset s;
		enum nt_status st = NT_OK;
		uint32_t id;

		an_textset_init(&s, &fa.alloc, 100);
		for (int i = 0; i < 50 && st == NT_OK; i++) {
			char text[16];

			snprintf(text, sizeof(text), "text %d", i);
			st = an_textset_add(&s, text, &id);
		}
		assert_int_equal(st, fa.failed ? NT_ENOMEM : NT_OK);
		an_textset_done(&s);
	}
	assert_true(fa.fail_at > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals), cmocka_unit_test(busiest_second),
		cmocka_unit_test(reported),  cmocka_unit_test(elapsed),
		cmocka_unit_test(texts),     cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
