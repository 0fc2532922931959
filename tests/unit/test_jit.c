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

static const struct an_class *const classes[] = { &an_class_jit, NULL };

enum {
	DYNAMIC = 1,
	JITTED = 8,
	REJECTED = 0x40,
	QUICK = 3 << 7,
	TIER1 = 4 << 7,
	OSR = 5 << 7,
	EXTERNAL = 1,
	MANAGED = 2,
};

static void started(struct play *p, double ms, uint64_t thread, uint64_t id, uint32_t il)
{
	struct build b = { 0 };

	build_u64(&b, id);
	build_u64(&b, 1);
	build_u32(&b, 0x06000001);
	build_u32(&b, il);
	build_utf16(&b, "Shop.Gc");
	build_utf16(&b, "Any");
	build_utf16(&b, "void  ()");
	build_u16(&b, 0);
	play_event(p, NT_PROV_RUNTIME, 145, 1, thread, ms, &b);
}

static void code(struct play *p, bool rundown, uint32_t event, double ms, uint64_t thread,
		 uint64_t id, uint64_t start, const char *name, uint32_t flags)
{
	struct build b = { 0 };

	build_u64(&b, id);
	build_u64(&b, 1);
	build_u64(&b, start);
	build_u32(&b, 0x100);
	build_u32(&b, 0x06000001);
	build_u32(&b, flags);
	build_utf16(&b, flags & DYNAMIC ? "dynamicClass" : "Shop.Gc");
	build_utf16(&b, name);
	build_utf16(&b, "void  ()");
	build_u16(&b, 0);
	play_event(p, rundown ? NT_PROV_RUNDOWN : NT_PROV_RUNTIME, event, 1, thread, ms, &b);
}

static void loaded(struct play *p, double ms, uint64_t thread, uint64_t id, uint64_t start,
		   const char *name, uint32_t flags)
{
	code(p, false, 143, ms, thread, id, start, name, flags);
}

/* The session ends at that time. */
static void end(struct play *p, double ms)
{
	struct build b = { 0 };

	build_u16(&b, 0);
	play_event(p, NT_PROV_RUNDOWN, 148, 1, 1, ms, &b);
}

static void nothing(void **state)
{
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	play_stack(&p, 1, UINT64_C(0x1010));
	play_sample(&p, 1, 1, MANAGED);
	code(&p, true, 144, 100, 1, 1, 0x1000, "Make", JITTED | QUICK);
	assert_int_equal(an_get(play_report(&p), "jit.count")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "jit.time_ms")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "jit.methods")->kind, AN_NULL);
	play_end(&p);
}

/* Compilations nest: the inner one's time is its own. */
static void times(void **state)
{
	const struct an_value *r, *row;
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	started(&p, 10, 1, 100, 50);
	started(&p, 12, 1, 200, 20);
	started(&p, 13, 2, 100, 50); /* another thread */
	loaded(&p, 15, 1, 200, 0x2000, "Inner", JITTED | QUICK);
	loaded(&p, 17, 2, 100, 0x3000, "Outer", JITTED | TIER1);
	loaded(&p, 20, 1, 100, 0x1000, "Outer", JITTED | QUICK);
	loaded(&p, 25, 1, 300, 0x4000, "NoStart", JITTED | QUICK);
	loaded(&p, 30, 1, 400, 0x5000, "Before", 2 << 7); /* precompiled */
	end(&p, 100);
	r = play_report(&p);
	assert_int_equal(an_get_u64(r, "jit.count", 0), 4);
	assert_int_equal(an_get_u64(r, "jit.precompiled", 0), 1);
	assert_true(an_get_f64(r, "jit.time_ms", 0) == 14);
	assert_true(an_get_f64(r, "jit.waited_ms", 0) == 10); /* not for tier 1 */
	assert_true(an_get_f64(r, "jit.time_percent", 0) == 14);
	assert_int_equal(an_get_u64(r, "jit.il_bytes", 0), 120);
	assert_int_equal(an_get_u64(r, "jit.code_bytes", 0), 0x400);
	assert_int_equal(an_get_u64(r, "jit.by_tier.QuickJitted", 0), 3);
	assert_int_equal(an_get_u64(r, "jit.by_tier.OptimizedTier1", 0), 1);
	row = play_row(&p, "jit.methods", 0);
	assert_string_equal(an_get_text(row, "method", ""), "Shop.Gc.Outer");
	assert_int_equal(an_get_u64(row, "count", 0), 2);
	assert_true(an_get_f64(row, "time_ms", 0) == 11);
	assert_true(an_get_f64(row, "max_ms", 0) == 7);
	assert_int_equal(an_get_u64(row, "il_bytes", 0), 50);
	assert_int_equal(an_get(row, "tiers")->count, 2);
	row = play_find(&p, "jit.methods", "method", "Shop.Gc.NoStart");
	assert_int_equal(an_get(row, "time_ms")->kind, AN_NULL);
	play_end(&p);
}

/* A start of a program compiles much at once; what comes a second later is not part of it. */
static void first_second(void **state)
{
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	started(&p, 10, 1, 100, 50);
	loaded(&p, 15, 1, 100, 0x1000, "First", JITTED | QUICK);
	started(&p, 1012, 1, 200, 50);
	loaded(&p, 1014, 1, 200, 0x2000, "Second", JITTED | QUICK);
	started(&p, 1014, 1, 300, 50);
	loaded(&p, 1015, 1, 300, 0x3000, "Later", JITTED | QUICK);
	end(&p, 2000);
	assert_true(an_get_f64(play_report(&p), "jit.first_second.start_ms", 0) == 15);
	assert_int_equal(an_get_u64(play_report(&p), "jit.first_second.count", 0), 2);
	assert_true(an_get_f64(play_report(&p), "jit.first_second.time_ms", 0) == 7);
	play_end(&p);
}

/* At the level Informational there are no starts. */
static void no_times(void **state)
{
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	loaded(&p, 15, 1, 200, 0x2000, "Inner", JITTED | QUICK);
	end(&p, 100);
	assert_int_equal(an_get_u64(play_report(&p), "jit.count", 0), 1);
	assert_int_equal(an_get(play_report(&p), "jit.time_ms")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "jit.time_percent")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "jit.unoptimized")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "jit.tiering")->kind, AN_NULL);
	play_end(&p);
}

static void tiering(void **state)
{
	struct build b = { 0 };
	const struct an_value *row;
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	build_u16(&b, 0);
	play_event(&p, NT_PROV_RUNTIME, 281, 0, 1, 10, &b);
	build_u16(&b, 0);
	build_u32(&b, 5);
	play_event(&p, NT_PROV_RUNTIME, 282, 0, 1, 110, &b);
	build_u16(&b, 0);
	build_u32(&b, 5);
	play_event(&p, NT_PROV_RUNTIME, 283, 0, 3, 120, &b);
	build_u16(&b, 0);
	build_u32(&b, 0);
	build_u32(&b, 5);
	play_event(&p, NT_PROV_RUNTIME, 284, 0, 3, 123, &b);
	loaded(&p, 130, 1, 200, 0x2000, "Loop", JITTED | OSR);
	end(&p, 1000);
	assert_true(an_get_f64(play_report(&p), "jit.tiering.pause_ms", 0) == 100);
	assert_true(an_get_f64(play_report(&p), "jit.tiering.background_ms", 0) == 3);
	assert_int_equal(an_get_u64(play_report(&p), "jit.tiering.background_methods", 0), 5);
	row = play_row(&p, "jit.osr", 0);
	assert_string_equal(an_get_text(row, "method", ""), "Shop.Gc.Loop");
	play_end(&p);
}

static void dynamic(struct play *p, size_t count, const char *prefix)
{
	char name[32];

	for (size_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s%zu", prefix, i);
		loaded(p, 10 + (double)i / 100, 1, 1000 + i, 0x100000 + i * 0x100, name,
		       DYNAMIC | JITTED | 2 << 7);
	}
}

static void dynamic_methods(void **state)
{
	const struct an_value *row;
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	play_stack(&p, 1, UINT64_C(0x2010));
	dynamic(&p, 3, "Gen");
	dynamic(&p, 2, "IL_STUB_PInvoke");
	code(&p, false, 144, 50, 1, 1000, 0x100000, "Gen0", DYNAMIC | JITTED);
	play_stack(&p, 0);
	code(&p, true, 144, 100, 1, 1, 0x2000, "Make", JITTED | TIER1);
	assert_int_equal(an_get_u64(play_report(&p), "jit.count", 0), 5);
	assert_int_equal(an_get_u64(play_report(&p), "jit.dynamic.count", 0), 3);
	assert_int_equal(an_get_u64(play_report(&p), "jit.dynamic.unloaded", 0), 1);
	assert_int_equal(an_get_u64(play_report(&p), "jit.dynamic.il_stubs", 0), 2);
	row = play_row(&p, "jit.dynamic.names", 0);
	assert_string_equal(an_get_text(row, "name", ""), "Gen#");
	assert_int_equal(an_get_u64(row, "count", 0), 3);
	row = play_row(&p, "jit.dynamic.sites", 0);
	assert_string_equal(an_get_text(row, "method", ""), "Shop.Gc.Make");
	assert_int_equal(an_get_u64(row, "count", 0), 3);
	play_end(&p);
}

static bool finds_dynamic(size_t count, double ms)
{
	struct play p;
	bool found;

	assert_true(play_begin(&p, NULL, classes, NULL));
	dynamic(&p, count, "Regex");
	end(&p, ms);
	found = play_finds(&p, "jit.dynamic-methods");
	play_end(&p);
	return found;
}

static void many_dynamic(void **state)
{
	(void)state;
	assert_true(finds_dynamic(200, 20000)); /* 10 a second */
	assert_false(finds_dynamic(199, 10000));
	assert_false(finds_dynamic(200, 20001));
}

static bool finds_storm(size_t methods, double jit_ms, double ms, uint32_t tier)
{
	struct play p;
	bool found;

	assert_true(play_begin(&p, NULL, classes, NULL));
	for (size_t i = 0; i < methods; i++)
		loaded(&p, 10, 1, 200 + i, 0x20000 + 0x100 * i, "Many", JITTED | TIER1);
	if (jit_ms > 0) {
		started(&p, 10, 1, 100, 50);
		loaded(&p, 10 + jit_ms, 1, 100, 0x1000, "Slow", JITTED | tier);
	}
	end(&p, ms);
	found = play_finds(&p, "jit.storm");
	play_end(&p);
	return found;
}

static void storm(void **state)
{
	(void)state;
	assert_true(finds_storm(1000, 0, 10000, TIER1));
	assert_false(finds_storm(999, 0, 10000, TIER1));
	assert_true(finds_storm(0, 600, 3000, QUICK)); /* 20 % */
	assert_false(finds_storm(0, 600, 3001, QUICK));
	assert_false(finds_storm(0, 499, 1000, QUICK)); /* not half a second */
	assert_false(finds_storm(0, 600, 700, TIER1)); /* in the background */
}

/* slow and fast: samples in code of tier 0 and of tier 1. */
static bool finds_slow(size_t slow, size_t fast, bool by_rundown)
{
	struct play p;
	bool found;

	assert_true(play_begin(&p, NULL, classes, NULL));
	if (!by_rundown)
		loaded(&p, 1, 1, 100, 0x1000, "Slow", JITTED | QUICK);
	loaded(&p, 1, 1, 200, 0x2000, "Fast", JITTED | TIER1);
	play_stack(&p, 1, UINT64_C(0x1010));
	for (size_t i = 0; i < slow; i++)
		play_sample(&p, 1, 10 + (double)i, MANAGED);
	for (size_t i = 0; i < 500; i++)
		play_sample(&p, 1, 10 + (double)i, EXTERNAL); /* waiting, most likely */
	play_stack(&p, 1, UINT64_C(0x2010));
	for (size_t i = 0; i < fast; i++)
		play_sample(&p, 1, 10 + (double)i, MANAGED);
	play_stack(&p, 0);
	if (by_rundown)
		code(&p, true, 144, 1000, 1, 100, 0x1000, "Slow", JITTED | QUICK);
	found = play_finds(&p, "jit.tier0-loop");
	if (found)
		assert_string_equal(
			an_get_text(play_row(&p, "jit.unoptimized.methods", 0), "method", ""),
			"Shop.Gc.Slow");
	play_end(&p);
	return found;
}

static void tier0_loop(void **state)
{
	(void)state;
	assert_true(finds_slow(20, 80, false));
	assert_true(finds_slow(20, 80, true));
	assert_false(finds_slow(19, 81, false));
	assert_false(finds_slow(99, 0, false)); /* too few samples to tell */
}

static bool finds_rejected(size_t rejected, size_t all)
{
	struct play p;
	bool found;

	assert_true(play_begin(&p, NULL, classes, NULL));
	for (size_t i = 0; i < all; i++)
		loaded(&p, (double)i * 10, 1, 200 + i, 0x20000 + 0x100 * i, "Old",
		       JITTED | TIER1 | (i < rejected ? (uint32_t)REJECTED : 0));
	end(&p, 100000);
	assert_int_equal(an_get_u64(play_report(&p), "jit.r2r_rejected", 0), rejected);
	found = play_finds(&p, "jit.r2r-rejected");
	play_end(&p);
	return found;
}

static void rejected(void **state)
{
	(void)state;
	assert_true(finds_rejected(50, 500)); /* 10 % */
	assert_false(finds_rejected(50, 501));
	assert_false(finds_rejected(49, 100));
}

static void loader(void **state)
{
	struct build b = { 0 };
	const struct an_value *r;
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	build_u64(&b, 1);
	build_u64(&b, 2);
	build_u64(&b, 0);
	build_u32(&b, 8);
	build_utf16(&b, "Plugin, Version=1.0.0.0");
	build_u16(&b, 0);
	play_event(&p, NT_PROV_RUNTIME, 154, 1, 1, 5, &b);
	for (uint32_t i = 1; i <= 2; i++) { /* one load inside of another */
		build_u32(&b, i);
		build_u16(&b, 0);
		play_event(&p, NT_PROV_RUNTIME, 73, 0, 1, 10 + i, &b);
	}
	for (uint32_t i = 2; i >= 1; i--) {
		build_u32(&b, i);
		build_u16(&b, 0);
		build_u16(&b, 6);
		build_u64(&b, 0x70);
		build_utf16(&b, "Shop.Order");
		play_event(&p, NT_PROV_RUNTIME, 74, 0, 1, 20 - i, &b);
	}
	end(&p, 100);
	r = play_report(&p);
	assert_int_equal(an_get_u64(r, "jit.assemblies.loaded", 0), 1);
	assert_int_equal(an_get_u64(r, "jit.assemblies.collectible", 0), 1);
	assert_string_equal(an_get_text(play_row(&p, "jit.assemblies.first", 0), "name", ""),
			    "Plugin, Version=1.0.0.0");
	assert_int_equal(an_get_u64(r, "jit.types.loaded", 0), 2);
	assert_true(an_get_f64(r, "jit.types.time_ms", 0) == 8);
	play_end(&p);
}

static void damaged(void **state)
{
	static const uint32_t ids[] = { 73, 74, 143, 144, 145, 154, 155, 281, 282, 283, 284 };
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		play_event(&p, NT_PROV_RUNTIME, ids[i], 0, 1, 1, NULL);
	for (uint64_t i = 0; i < 100; i++) /* deeper than is kept */
		started(&p, 2, 1, i, 1);
	loaded(&p, 3, 1, 99, UINT64_MAX - 5, "End", JITTED | QUICK);
	loaded(&p, 3, 1, 98, 0, "", JITTED | REJECTED | QUICK);
	end(&p, 100);
	assert_int_equal(an_get_u64(play_report(&p), "jit.count", 0), 2);
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
			started(&p, 10, 1, 100, 50);
			loaded(&p, 20, 1, 100, 0x1000, "Outer", JITTED | QUICK);
			play_stack(&p, 1, UINT64_C(0x1010));
			play_sample(&p, 1, 30, MANAGED);
			dynamic(&p, 1, "Gen");
			play_stack(&p, 0);
			end(&p, 100);
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
		cmocka_unit_test(nothing),	 cmocka_unit_test(times),
		cmocka_unit_test(first_second),	 cmocka_unit_test(no_times),
		cmocka_unit_test(tiering),	 cmocka_unit_test(dynamic_methods),
		cmocka_unit_test(many_dynamic),	 cmocka_unit_test(storm),
		cmocka_unit_test(tier0_loop),	 cmocka_unit_test(rejected),
		cmocka_unit_test(loader),	 cmocka_unit_test(damaged),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
