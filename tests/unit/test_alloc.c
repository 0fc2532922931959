/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failalloc.h"
#include "tests/support/play.h"

static const struct an_class *const classes[] = { &an_class_alloc, NULL };

enum { SMALL, LARGE };

static void tick(struct play *p, double ms, const char *type, uint64_t type_id, unsigned kind,
		 uint64_t amount)
{
	struct build b = { 0 };

	build_u32(&b, (uint32_t)amount);
	build_u32(&b, kind);
	build_u16(&b, 0);
	build_u64(&b, amount);
	build_u64(&b, type_id);
	build_utf16(&b, type);
	build_u32(&b, 0); /* HeapIndex */
	build_u64(&b, 0x5000);
	build_u64(&b, 100); /* ObjectSize */
	play_event(p, NT_PROV_RUNTIME, 10, 4, 1, ms, &b);
}

static void sampled(struct play *p, double ms, const char *type, unsigned kind, uint64_t size)
{
	struct build b = { 0 };

	build_u32(&b, kind);
	build_u16(&b, 0);
	build_u64(&b, 0x70);
	build_utf16(&b, type);
	build_u64(&b, 0x5000);
	build_u64(&b, size);
	build_u64(&b, 1);
	play_event(p, NT_PROV_RUNTIME, 303, 0, 1, ms, &b);
}

/* Make at 0x1000, Run at 0x2000, String.Concat at 0x3000; the session ends at that time. */
static void names(struct play *p, double ms)
{
	play_stack(p, 0);
	play_method(p, true, 0x1000, 0x100, "Shop.Gc", "Make", "void  (int32)", ms);
	play_method(p, true, 0x2000, 0x100, "Shop.Gc", "Run", "void  ()", ms);
	play_method(p, true, 0x3000, 0x100, "System.String", "Concat", "string  ()", ms);
}

static void near(const struct an_value *v, const char *path, double expected, double percent)
{
	double got = an_get_f64(v, path, -1);

	if (fabs(got - expected) > expected * percent / 100)
		fail_msg("%s is %f, not %f", path, got, expected);
}

static void nothing(void **state)
{
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	names(&p, 1000);
	assert_int_equal(an_get(play_report(&p), "alloc.source")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "alloc.bytes")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "alloc.types")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "alloc.sites")->kind, AN_NULL);
	assert_int_equal(p.status, NT_OK);
	play_end(&p);
}

static void ticks(void **state)
{
	const struct an_value *r, *row;
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	play_stack(&p, 2, UINT64_C(0x1010), UINT64_C(0x2010));
	tick(&p, 10, "System.Byte[]", 0x70, SMALL, 300000);
	tick(&p, 20, "System.Byte[]", 0x70, SMALL, 100000);
	/* what the base library allocates is the business of its caller */
	play_stack(&p, 3, UINT64_C(0x3010), UINT64_C(0x1020), UINT64_C(0x2010));
	tick(&p, 30, "System.String", 0x71, SMALL, 150000);
	play_stack(&p, 1, UINT64_C(0x2030));
	tick(&p, 40, "System.Byte[]", 0x70, LARGE, 450000);
	names(&p, 1000);
	r = play_report(&p);
	assert_string_equal(an_get_text(r, "alloc.source", ""), "allocation-tick");
	assert_int_equal(an_get_u64(r, "alloc.bytes", 0), 1000000);
	assert_int_equal(an_get_u64(r, "alloc.samples", 0), 4);
	assert_int_equal(an_get_u64(r, "alloc.rate_bytes_per_s", 0), 1000000);
	assert_int_equal(an_get(r, "alloc.bytes_low")->kind, AN_NULL);
	assert_int_equal(an_get(r, "alloc.types")->count, 2);
	row = play_row(&p, "alloc.types", 0);
	assert_string_equal(an_get_text(row, "type", ""), "System.Byte[]");
	assert_int_equal(an_get_u64(row, "bytes", 0), 850000);
	assert_int_equal(an_get_u64(row, "samples", 0), 3);
	assert_int_equal(an_get_u64(row, "large_bytes", 0), 450000);
	assert_true(an_get_f64(row, "percent", 0) == 85);
	assert_int_equal(an_get(r, "alloc.sites")->count, 2);
	row = play_row(&p, "alloc.sites", 0);
	assert_string_equal(an_get_text(row, "method", ""), "Shop.Gc.Make");
	assert_string_equal(an_get_text(row, "args", ""), "(int)");
	assert_int_equal(an_get_u64(row, "bytes", 0), 550000);
	assert_int_equal(an_get_u64(an_get(row, "types")->first, "bytes", 0), 400000);
	assert_int_equal(an_get_u64(r, "alloc.large_objects.bytes", 0), 450000);
	row = play_row(&p, "alloc.large_objects.sites", 0);
	assert_string_equal(an_get_text(row, "method", ""), "Shop.Gc.Run");
	assert_int_equal(an_get(r, "alloc.large_objects.sites")->count, 1);
	row = play_row(&p, "alloc.hot_path", 0);
	assert_string_equal(an_get_text(row, "method", ""), "Shop.Gc.Run");
	assert_int_equal(an_get_u64(row, "inclusive_bytes", 0), 1000000);
	assert_int_equal(p.status, NT_OK);
	play_end(&p);
}

/* Version 1 has the amount only, version 2 the type as well. */
static void old_ticks(void **state)
{
	struct build b = { 0 };
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	build_u32(&b, 120000);
	build_u32(&b, LARGE);
	build_u16(&b, 0);
	play_event(&p, NT_PROV_RUNTIME, 10, 1, 1, 5, &b);
	build_u32(&b, 0xffffffff);
	build_u32(&b, SMALL);
	build_u16(&b, 0);
	build_u64(&b, UINT64_C(0x200000000));
	build_u64(&b, 0x70);
	build_utf16(&b, "Shop.Order");
	build_u32(&b, 0);
	play_event(&p, NT_PROV_RUNTIME, 10, 2, 1, 6, &b);
	names(&p, 1000);
	assert_int_equal(an_get_u64(play_report(&p), "alloc.bytes", 0), 0x200000000 + 120000);
	assert_int_equal(an_get_u64(play_report(&p), "alloc.samples_of_unnamed_types", 9), 1);
	assert_non_null(play_find(&p, "alloc.types", "type", "Shop.Order"));
	assert_int_equal(an_get(play_report(&p), "alloc.sites")->kind, AN_NULL);
	play_end(&p);
}

/* NativeAOT: every name is "NULL", no event has a stack. */
static void no_names(void **state)
{
	const struct an_value *row;
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	tick(&p, 5, "NULL", 0x70, SMALL, 100000);
	tick(&p, 6, "NULL", 0x71, SMALL, 200000);
	tick(&p, 7, "NULL", 0x70, SMALL, 300000);
	assert_int_equal(an_get(play_report(&p), "alloc.types")->count, 2);
	row = play_row(&p, "alloc.types", 0);
	assert_int_equal(an_get(row, "type")->kind, AN_NULL);
	assert_string_equal(an_get_text(row, "type_id", ""), "0x70");
	assert_int_equal(an_get_u64(row, "bytes", 0), 400000);
	assert_int_equal(an_get(play_report(&p), "alloc.sites")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "alloc.hot_path")->kind, AN_NULL);
	play_end(&p);
}

/* The figures of §8.2: 100 samples of small objects mean 8.3e6 to 1.23e7 bytes. */
static void estimates(void **state)
{
	const struct an_value *r, *row;
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	play_stack(&p, 1, UINT64_C(0x1010));
	tick(&p, 1, "System.Byte[]", 0x70, SMALL, 100000);
	for (int i = 0; i < 100; i++)
		sampled(&p, 10 + i, "Shop.Order", SMALL, 24);
	tick(&p, 200, "System.Byte[]", 0x70, SMALL, 100000);
	names(&p, 1000);
	r = play_report(&p);
	assert_string_equal(an_get_text(r, "alloc.source", ""), "allocation-sampled");
	assert_int_equal(an_get_u64(r, "alloc.ticks_ignored", 0), 2);
	assert_int_equal(an_get_u64(r, "alloc.samples", 0), 100);
	near(r, "alloc.bytes", 1.024e7, 0.1);
	near(r, "alloc.objects", 1.024e7 / 24, 0.1);
	near(r, "alloc.bytes_low", 8.33e6, 0.5);
	near(r, "alloc.bytes_high", 1.23e7, 1.5);
	assert_int_equal(an_get(r, "alloc.types")->count, 1);
	row = play_row(&p, "alloc.sites", 0);
	near(row, "bytes", 1.024e7, 0.1);
	assert_int_equal(an_get_u64(row, "samples", 0), 100);
	play_end(&p);
}

/* Few samples of small objects say nothing; one of a large object says nearly all. */
static void too_rare(void **state)
{
	const struct an_value *row;
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	for (int i = 0; i < 4; i++)
		sampled(&p, i, "Four", SMALL, 24);
	for (int i = 0; i < 3; i++)
		sampled(&p, i, "Three", SMALL, 24);
	sampled(&p, 9, "Big", LARGE, 2000000);
	assert_null(play_find(&p, "alloc.types", "type", "Three"));
	assert_non_null(play_find(&p, "alloc.types", "type", "Four"));
	row = play_find(&p, "alloc.types", "type", "Big");
	assert_non_null(row);
	near(row, "bytes", 2000000, 0.01);
	near(row, "bytes_low", 2000000, 0.1);
	assert_int_equal(an_get_u64(play_report(&p), "alloc.types_too_rare", 0), 1);
	play_end(&p);
}

static bool finds_rate(uint64_t bytes, double ms)
{
	struct play p;
	bool found;

	assert_true(play_begin(&p, NULL, classes, NULL));
	play_stack(&p, 1, UINT64_C(0x1010));
	tick(&p, 10, "System.Byte[]", 0x70, SMALL, bytes);
	names(&p, ms);
	found = play_finds(&p, "alloc.rate");
	assert_false(play_finds(&p, "alloc.large-objects"));
	if (found)
		assert_non_null(strstr(
			an_get_text(play_find(&p, "findings", "id", "alloc.rate"), "evidence", ""),
			"Shop.Gc.Make (100 %)"));
	play_end(&p);
	return found;
}

static void rate(void **state)
{
	(void)state;
	assert_true(finds_rate(200000000, 1000));
	assert_false(finds_rate(199999999, 1000));
	assert_false(finds_rate(200000000, 499)); /* too short to tell */
}

static bool finds_large(uint64_t small, uint64_t large)
{
	struct play p;
	bool found;

	assert_true(play_begin(&p, NULL, classes, NULL));
	tick(&p, 10, "System.Byte[]", 0x70, SMALL, small);
	tick(&p, 20, "System.Byte[]", 0x70, LARGE, large);
	names(&p, 1000);
	found = play_finds(&p, "alloc.large-objects");
	play_end(&p);
	return found;
}

static void large(void **state)
{
	(void)state;
	assert_true(finds_large(60000000, 20000000)); /* 25 % and 20 MB a second */
	assert_false(finds_large(60000003, 20000000)); /* less than 25 % */
	assert_false(finds_large(20000000, 19999999)); /* not enough to matter */
}

/* A payload that is cut, or has nothing, makes no figure up. */
static void damaged(void **state)
{
	struct build b = { 0 };
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	play_event(&p, NT_PROV_RUNTIME, 10, 4, 1, 1, NULL);
	build_u32(&b, 7);
	play_event(&p, NT_PROV_RUNTIME, 10, 4, 1, 2, &b);
	assert_int_equal(an_get_u64(play_report(&p), "alloc.bytes", 9), 7);
	play_event(&p, NT_PROV_RUNTIME, 303, 0, 1, 3, NULL);
	sampled(&p, 4, "X", 77, UINT64_MAX);
	assert_int_equal(p.status, NT_OK);
	play_end(&p);
}

/* Of a tick that is cut anywhere, what is whole counts: the amount is there twice, then the type.
 */
static void cut_ticks(void **state)
{
	static const unsigned pointers[] = { 4, 8 };
	const struct an_value *types;

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		size_t to_name = 18 + pointers[k], whole = to_name + sizeof("X.Y") * 2;

		for (size_t n = 0; n <= whole; n++) {
			struct build b = { 0 };
			struct play p;

			assert_true(play_begin(&p, NULL, classes, NULL));
			p.trace.pointer_size = pointers[k];
			build_u32(&b, 100);
			build_u32(&b, LARGE);
			build_u16(&b, 0);
			build_u64(&b, UINT64_C(0x100000064));
			build_u32(&b, 0x70);
			if (pointers[k] == 8)
				build_u32(&b, 0);
			build_utf16(&b, "X.Y");
			assert_int_equal(b.count, whole);
			b.count = n;
			play_event(&p, NT_PROV_RUNTIME, 10, 4, 1, 1, &b);
			assert_int_equal(an_get_u64(play_report(&p), "alloc.bytes", 0),
					 n < 4	  ? 0
					 : n < 18 ? 100
						  : 0x100000064);
			types = an_get(play_report(&p), "alloc.types");
			if (n >= to_name + 6)
				assert_non_null(play_find(&p, "alloc.types", "type", "X.Y"));
			else if (n >= to_name)
				assert_string_equal(
					an_get_text(play_row(&p, "alloc.types", 0), "type_id", ""),
					n < to_name + 2 ? "0x70" : "");
			else
				assert_int_equal(types->kind, n < 4 ? AN_NULL : AN_ARRAY);
			assert_int_equal(p.status, NT_OK);
			play_end(&p);
		}
	}
}

static void out_of_memory(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct play p;

		if (play_begin(&p, &fa.alloc, classes, NULL)) {
			play_stack(&p, 2, UINT64_C(0x1010), UINT64_C(0x2010));
			tick(&p, 10, "System.Byte[]", 0x70, SMALL, 300000);
			tick(&p, 20, "NULL", 0x71, LARGE, 450000);
			sampled(&p, 30, "Shop.Order", SMALL, 240000);
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
		cmocka_unit_test(nothing),	 cmocka_unit_test(ticks),
		cmocka_unit_test(old_ticks),	 cmocka_unit_test(no_names),
		cmocka_unit_test(estimates),	 cmocka_unit_test(too_rare),
		cmocka_unit_test(rate),		 cmocka_unit_test(large),
		cmocka_unit_test(damaged),	 cmocka_unit_test(cut_ticks),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
