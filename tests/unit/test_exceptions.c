/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failalloc.h"
#include "tests/support/play.h"

static const struct an_class *const classes[] = { &an_class_exceptions, NULL };

enum { PLAIN = 16 };

static void thrown(struct play *p, double ms, uint64_t thread, const char *type,
		   const char *message, unsigned flags)
{
	struct build b = { 0 };

	build_utf16(&b, type);
	build_utf16(&b, message);
	build_u64(&b, 0);
	build_u32(&b, 0x80131500);
	build_u16(&b, flags);
	build_u16(&b, 0);
	play_event(p, NT_PROV_RUNTIME, 80, 1, thread, ms, &b);
}

static void caught(struct play *p, double ms, uint64_t thread, const char *method)
{
	struct build b = { 0 };

	build_u64(&b, 0x2020);
	build_u64(&b, 1);
	build_utf16(&b, method);
	build_u16(&b, 0);
	play_event(p, NT_PROV_RUNTIME, 250, 0, thread, ms, &b);
}

static void left(struct play *p, double ms, uint64_t thread)
{
	play_event(p, NT_PROV_RUNTIME, 251, 0, thread, ms, NULL);
	play_event(p, NT_PROV_RUNTIME, 256, 0, thread, ms, NULL);
}

/* Reserve at 0x1000, Run at 0x2000, what await throws with at 0x3000; ends at that time. */
static void names(struct play *p, double ms)
{
	play_stack(p, 0);
	play_method(p, true, 0x1000, 0x100, "Shop.Stock", "Reserve", "void  (int32)", ms);
	play_method(p, true, 0x2000, 0x100, "Shop.Stock", "Run", "void  ()", ms);
	play_method(p, true, 0x3000, 0x100,
		    "System.Runtime.ExceptionServices.ExceptionDispatchInfo", "Throw", "void  ()",
		    ms);
}

static void nothing(void **state)
{
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	names(&p, 1000);
	assert_int_equal(an_get(play_report(&p), "exceptions.count")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "exceptions.types")->kind, AN_NULL);
	play_end(&p);
}

static void by_type(void **state)
{
	const struct an_value *r, *row;
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	play_stack(&p, 2, UINT64_C(0x1010), UINT64_C(0x2010));
	thrown(&p, 10, 1, "Shop.OutOfStock", "item 7", PLAIN);
	thrown(&p, 20, 1, "Shop.OutOfStock", "item 14", PLAIN);
	thrown(&p, 30, 1, "Shop.OutOfStock", "no such shelf", PLAIN | 1);
	play_stack(&p, 1, UINT64_C(0x2030));
	thrown(&p, 40, 2, "System.Exception", "", PLAIN);
	names(&p, 2000);
	r = play_report(&p);
	assert_int_equal(an_get_u64(r, "exceptions.count", 0), 4);
	assert_int_equal(an_get_u64(r, "exceptions.thrown", 0), 4);
	assert_true(an_get_f64(r, "exceptions.rate_per_s", 0) == 2);
	assert_int_equal(an_get(r, "exceptions.caught")->kind, AN_NULL);
	row = play_row(&p, "exceptions.types", 0);
	assert_string_equal(an_get_text(row, "type", ""), "Shop.OutOfStock");
	assert_string_equal(an_get_text(row, "message", ""), "item 7");
	assert_string_equal(an_get_text(row, "hresult", ""), "0x80131500");
	assert_int_equal(an_get_u64(row, "count", 0), 3);
	assert_int_equal(an_get_u64(row, "with_inner", 0), 1);
	/* numbers apart, two messages */
	assert_int_equal(an_get(row, "messages")->count, 2);
	assert_int_equal(an_get_u64(an_get(row, "messages")->first, "count", 0), 2);
	assert_int_equal(an_get(row, "sites")->count, 1);
	row = an_get(row, "sites")->first;
	assert_string_equal(an_get_text(row, "method", ""), "Shop.Stock.Reserve");
	assert_int_equal(an_get_u64(row, "count", 0), 3);
	assert_int_equal(an_get_u64(row, "thrown", 0), 3);
	play_end(&p);
}

/* As .NET 10 writes it: each awaiting method throws again while the one before still catches. */
static void async_levels(void **state)
{
	const struct an_value *row;
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	play_stack(&p, 1, UINT64_C(0x1010));
	thrown(&p, 1, 7, "Deep", "boom", PLAIN);
	caught(&p, 2, 7, "void [app] P::A()");
	for (int i = 0; i < 3; i++) {
		play_stack(&p, 4 + (size_t)i, UINT64_C(0x3010), UINT64_C(0x2010), UINT64_C(0x1010),
			   UINT64_C(0x1010), UINT64_C(0x1010), UINT64_C(0x1010));
		thrown(&p, 3 + i, 7, "Deep", "boom", PLAIN | 2);
		caught(&p, 3.5 + i, 7, "void [app] P::B()");
	}
	for (int i = 0; i < 4; i++)
		left(&p, 10 + i, 7);
	play_stack(&p, 1, UINT64_C(0x1010));
	thrown(&p, 20, 7, "Deep", "boom", PLAIN); /* a new one */
	names(&p, 1000);
	assert_int_equal(an_get_u64(play_report(&p), "exceptions.count", 0), 5);
	assert_int_equal(an_get_u64(play_report(&p), "exceptions.thrown", 0), 2);
	assert_int_equal(an_get_u64(play_report(&p), "exceptions.rethrown_async", 0), 3);
	assert_int_equal(an_get_u64(play_report(&p), "exceptions.deepest_nesting", 0), 4);
	assert_int_equal(an_get_u64(play_report(&p), "exceptions.caught", 0), 4);
	row = play_row(&p, "exceptions.types", 0);
	assert_int_equal(an_get_u64(row, "thrown", 0), 2);
	row = an_get(row, "sites")->first;
	assert_string_equal(an_get_text(row, "method", ""), "Shop.Stock.Reserve");
	assert_int_equal(an_get_u64(row, "thrown", 0), 2);
	play_end(&p);
}

/* What a catch block does with the exception: throw it, throw it on, throw another one. */
static void catch_and_throw(void **state)
{
	const struct an_value *r, *row;
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	/* catch and "throw e": an event; the same exception */
	play_stack(&p, 3, UINT64_C(0x1010), UINT64_C(0x2010), UINT64_C(0x2020));
	thrown(&p, 1, 7, "A", "x 1", PLAIN);
	play_stack(&p, 2, UINT64_C(0x2010), UINT64_C(0x2020));
	caught(&p, 2, 7, "void [Shop] Shop.Stock::Inner(int32)");
	thrown(&p, 3, 7, "A", "x 1", PLAIN);
	play_stack(&p, 1, UINT64_C(0x2020));
	caught(&p, 4, 7, "void [Shop] Shop.Stock::Run()");
	left(&p, 5, 7);
	/* catch and "throw": no event, but a second catch block, further out */
	play_stack(&p, 3, UINT64_C(0x1010), UINT64_C(0x2010), UINT64_C(0x2020));
	thrown(&p, 11, 7, "B", "y", PLAIN);
	play_stack(&p, 2, UINT64_C(0x2010), UINT64_C(0x2020));
	caught(&p, 12, 7, "void [Shop] Shop.Stock::Inner(int32)");
	play_stack(&p, 1, UINT64_C(0x2020));
	caught(&p, 13, 7, "void [Shop] Shop.Stock::Run()");
	left(&p, 14, 7);
	/* another exception out of a catch block */
	play_stack(&p, 2, UINT64_C(0x1010), UINT64_C(0x2020));
	thrown(&p, 21, 7, "B", "y", PLAIN);
	caught(&p, 22, 7, "void [Shop] Shop.Stock::Inner(int32)");
	thrown(&p, 23, 7, "C", "wrapped", PLAIN | 3);
	names(&p, 1000);
	r = play_report(&p);
	assert_int_equal(an_get_u64(r, "exceptions.count", 0), 5);
	assert_int_equal(an_get_u64(r, "exceptions.thrown", 0), 4);
	assert_int_equal(an_get_u64(r, "exceptions.rethrown", 0), 1);
	assert_int_equal(an_get_u64(r, "exceptions.rethrown_async", 0), 0);
	assert_int_equal(an_get_u64(r, "exceptions.passed_on", 0), 1);
	assert_int_equal(an_get_u64(r, "exceptions.thrown_in_catch", 0), 1);
	row = play_find(&p, "exceptions.types", "type", "B");
	assert_int_equal(an_get(row, "caught_by")->count, 2);
	row = an_get(row, "caught_by")->first;
	assert_string_equal(an_get_text(row, "method", ""), "Shop.Stock.Inner");
	assert_int_equal(an_get_u64(row, "count", 0), 2);
	play_end(&p);
}

static void many(struct play *p, size_t count, double ms)
{
	char text[32];

	play_stack(p, 1, UINT64_C(0x1010));
	for (size_t i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "item %zu", i);
		thrown(p, ms + (double)i / 1000, 1, "Shop.OutOfStock", text, PLAIN);
	}
}

static bool finds_storm(size_t first, size_t then, double at)
{
	struct play p;
	bool found;

	assert_true(play_begin(&p, NULL, classes, NULL));
	many(&p, first, 50);
	many(&p, then, at);
	names(&p, 10000);
	found = play_finds(&p, "exceptions.storm");
	play_end(&p);
	return found;
}

static void storm(void **state)
{
	(void)state;
	assert_true(finds_storm(100, 0, 0));
	assert_false(finds_storm(99, 0, 0));
	assert_true(finds_storm(60, 40, 950)); /* within one second */
	assert_false(finds_storm(60, 40, 1150));
	assert_false(finds_storm(99, 99, 5000)); /* many, but slowly */
}

/* Awaited again and again, they are no storm of new ones. */
static void no_storm_of_awaits(void **state)
{
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	many(&p, 30, 50);
	play_stack(&p, 2, UINT64_C(0x3010), UINT64_C(0x2010));
	for (int i = 0; i < 300; i++)
		thrown(&p, 60, 2, "Shop.OutOfStock", "awaited", PLAIN | 2);
	names(&p, 1000);
	assert_int_equal(an_get_u64(play_report(&p), "exceptions.thrown", 0), 30);
	assert_int_equal(an_get_u64(play_report(&p), "exceptions.peak_per_s", 0), 30);
	assert_false(play_finds(&p, "exceptions.storm"));
	play_end(&p);
}

/* The decoder of a stream that has no end. */
static void cut(struct play *p)
{
	static const struct nt_sink deaf;
	struct build b = { 0 };

	build_begin(&b, 4);
	nt_decoder_free(p->decoder);
	p->decoder = nt_decoder_new(NULL, NULL, 0, &deaf, NULL);
	assert_non_null(p->decoder);
	assert_int_equal(nt_decoder_push(p->decoder, b.bytes, b.count), NT_OK);
	assert_int_equal(nt_decoder_finish(p->decoder), NT_ETRUNC);
	build_done(&b);
}

static bool finds_unhandled(bool is_cut, bool handled)
{
	struct play p;
	bool found;

	assert_true(play_begin(&p, NULL, classes, NULL));
	if (is_cut)
		cut(&p);
	play_stack(&p, 1, UINT64_C(0x1010));
	thrown(&p, 1, 7, "A", "x", PLAIN);
	caught(&p, 2, 7, "void [app] P::A()");
	left(&p, 3, 7);
	thrown(&p, 4, 7, "Last", "words", PLAIN);
	if (handled)
		caught(&p, 5, 7, "void [app] P::A()");
	found = play_finds(&p, "exceptions.unhandled");
	play_end(&p);
	return found;
}

static void unhandled(void **state)
{
	(void)state;
	assert_true(finds_unhandled(true, false));
	assert_false(finds_unhandled(false, false));
	assert_false(finds_unhandled(true, true));
}

static void damaged(void **state)
{
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	play_event(&p, NT_PROV_RUNTIME, 80, 0, 1, 1, NULL);
	for (unsigned i = 0; i < 100; i++) /* deeper than is kept */
		caught(&p, 2, 1, "");
	left(&p, 3, 2);
	assert_int_equal(an_get_u64(play_report(&p), "exceptions.count", 0), 1);
	assert_int_equal(an_get_u64(play_report(&p), "exceptions.deepest_nesting", 0), 32);
	assert_int_equal(p.status, NT_OK);
	play_end(&p);
}

static void out_of_memory(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct play p;

		if (play_begin(&p, &fa.alloc, classes, NULL)) {
			play_stack(&p, 2, UINT64_C(0x1010), UINT64_C(0x2010));
			thrown(&p, 10, 1, "Shop.OutOfStock", "item 7", PLAIN);
			caught(&p, 20, 1, "void [app] P::A()");
			names(&p, 1000);
			play_report(&p);
			assert_true(p.status == (fa.failed ? NT_ENOMEM : NT_OK));
		}
		play_end(&p);
	}
	assert_true(fa.fail_at > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing),	 cmocka_unit_test(by_type),
		cmocka_unit_test(async_levels),	 cmocka_unit_test(catch_and_throw),
		cmocka_unit_test(storm),	 cmocka_unit_test(no_storm_of_awaits),
		cmocka_unit_test(unhandled),	 cmocka_unit_test(damaged),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
