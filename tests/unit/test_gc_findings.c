/* SPDX-License-Identifier: MIT */
/* Findings about collections: there from their limit on, not just below it, and not in peace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/gc/gc_internal.h"
#include "tests/support/gc_play.h"

static const struct an_class *const classes[] = { &an_class_gc, NULL };
static const struct an_class *const both[] = { &an_class_gc, &an_class_alloc, NULL };

static struct play p;

static void begin(void)
{
	assert_true(play_begin(&p, NULL, classes, NULL));
}

/* The session ends there; was there that finding? */
static bool found(const char *id, double end_ms)
{
	bool yes;

	play_event(&p, NT_PROV_OTHER, 1, 0, 1, end_ms, NULL);
	yes = play_finds(&p, id);
	play_end(&p);
	return yes;
}

static void blocking(double ms, uint32_t number, uint32_t gen, uint32_t reason, double length)
{
	const struct gc_play_collection c = {
		.number = number, .generation = gen, .reason = reason, .length = length
	};

	gc_play_blocking(&p, 1, ms, &c);
}

static bool one(const char *id, uint32_t gen, uint32_t reason, double length, double end_ms)
{
	begin();
	blocking(1, 1, gen, reason, length);
	return found(id, end_ms);
}

static void time_standing_still(void **state)
{
	(void)state;
	assert_true(one("gc.time", 0, 0, 100, 1000));
	assert_false(one("gc.time", 0, 0, 99.9, 1000));
	assert_false(one("gc.time", 0, 0, 100, 499)); /* too short a session for shares */
}

static void a_long_pause(void **state)
{
	(void)state;
	assert_true(one("gc.long-pause", 0, 0, 200, 100000));
	assert_false(one("gc.long-pause", 0, 0, 199.9, 100000));
}

/* The two longest of 100 or more pauses. */
static bool p99(uint32_t count, double length)
{
	begin();
	for (uint32_t i = 0; i < count; i++)
		blocking(i * 1000.0, i, 0, 0, i < 2 ? length : 1);
	return found("gc.long-pause", count * 1000.0);
}

static void many_long_pauses(void **state)
{
	(void)state;
	assert_true(p99(100, 100));
	assert_false(p99(100, 99.9));
	assert_false(p99(99, 100)); /* too few for a percentile */
}

static bool full(uint32_t count, double length, double end_ms)
{
	begin();
	for (uint32_t i = 0; i < count; i++)
		blocking(1 + i * 100.0, i, 2, 0, length);
	return found("gc.full-blocking", end_ms);
}

static void full_collections(void **state)
{
	(void)state;
	assert_true(full(1, 20, 1000));
	assert_false(full(1, 19.9, 1000));
	/* often: one a second, five at least */
	assert_true(full(5, 1, 5000));
	assert_false(full(5, 1, 5001));
	assert_false(full(4, 1, 1000));
}

static bool large(uint32_t count, double end_ms)
{
	begin();
	for (uint32_t i = 0; i < count; i++)
		blocking(1 + i * 10.0, i, 2, 4, 0.1);
	return found("gc.loh-churn", end_ms);
}

static void large_objects(void **state)
{
	(void)state;
	assert_true(large(5, 5000));
	assert_false(large(5, 5001));
	assert_false(large(4, 1000));
}

static bool induced(uint32_t count)
{
	const struct an_value *v;
	bool warning;

	begin();
	for (uint32_t i = 0; i < count; i++)
		blocking(1 + i * 10.0, i, 0, 1, 0.1);
	v = play_find(&p, "findings", "id", "gc.induced");
	warning = v && strcmp(an_get_text(v, "severity", ""), "warning") == 0;
	assert_true((v != NULL) == (count > 0));
	play_end(&p);
	return warning;
}

static void asked_for_by_code(void **state)
{
	(void)state;
	assert_false(induced(0));
	assert_false(induced(4));
	assert_true(induced(5));
}

static bool slow(double suspend)
{
	begin();
	gc_play_suspend(&p, 1, 10, 1);
	gc_play_simple(&p, 8, 1, 10 + suspend);
	gc_play_start(&p, 1, 50, 5, 0, 0, 0);
	gc_play_end(&p, 1, 51, 5);
	gc_play_simple(&p, 3, 1, 52);
	return found("gc.slow-suspension", 10000);
}

static void slow_suspensions(void **state)
{
	(void)state;
	assert_true(slow(10));
	assert_false(slow(9.9));
}

static bool fragmented(size_t size, uint64_t after, uint64_t holes)
{
	struct gc_play_collection c = { .number = 1, .generation = 2, .length = 1 };

	begin();
	c.heap.after[size] = after;
	c.heap.free_after[size] = holes;
	gc_play_blocking(&p, 1, 10, &c);
	return found("gc.fragmentation", 10000);
}

static void fragmentation(void **state)
{
	(void)state;
	assert_true(fragmented(2, 40000000, 20000000));
	assert_false(fragmented(2, 40000000, 19999999));
	assert_false(fragmented(2, 40000001, 20000000));
	assert_true(fragmented(GC_LARGE, 40000000, 20000000));
	assert_false(fragmented(0, 40000000, 20000000)); /* is empty again soon */
	assert_false(fragmented(2, 0, 0));
}

static bool pinned(uint32_t count, uint32_t objects)
{
	begin();
	for (uint32_t i = 0; i < count; i++) {
		const struct gc_play_collection c = { .number = i,
						      .length = 0.1,
						      .stats.pinned = objects };

		gc_play_blocking(&p, 1, 10 + i, &c);
	}
	return found("gc.pinning", 10000);
}

static void pinning(void **state)
{
	(void)state;
	assert_true(pinned(3, 500));
	assert_false(pinned(3, 499));
	assert_false(pinned(2, 500));
}

static void finalizers_end(double ms, uint32_t count)
{
	struct build b = { 0 };

	build_u32(&b, count);
	build_u16(&b, 0);
	play_event(&p, NT_PROV_RUNTIME, 13, 1, 9, ms, &b);
}

static bool finalizers(double length, double end_ms)
{
	begin();
	gc_play_simple(&p, 14, 9, 100);
	if (length > 0)
		finalizers_end(100 + length, 5);
	return found("gc.finalizer-backlog", end_ms);
}

static bool waiting(uint32_t survivors, uint32_t finalized)
{
	const struct gc_play_collection c = { .number = 1,
					      .length = 1,
					      .stats.finalizable = survivors };

	begin();
	gc_play_blocking(&p, 1, 10, &c);
	gc_play_simple(&p, 14, 9, 100);
	finalizers_end(101, finalized);
	return found("gc.finalizer-backlog", 10000);
}

static void a_backlog_of_finalizers(void **state)
{
	(void)state;
	assert_true(finalizers(1000, 5000));
	assert_false(finalizers(999, 5000));
	/* still running at the end */
	assert_true(finalizers(0, 1100));
	assert_false(finalizers(0, 1099));
	assert_true(waiting(10005, 5));
	assert_false(waiting(10004, 5));
}

/* mb of generation 1 become old, and so much of 1000 bytes of generation 2 survives, twice. */
static bool mid_life(uint64_t bytes, uint64_t survives, uint32_t count)
{
	begin();
	for (uint32_t i = 0; i < count; i++) {
		struct gc_play_collection c = { .number = i, .generation = 2, .length = 0.1 };

		c.heap.before[2] = 1000;
		c.stats.promoted[1] = bytes / count;
		c.stats.promoted[2] = survives;
		gc_play_blocking(&p, 1, 10 + i, &c);
	}
	return found("gc.mid-life", 1000);
}

static void mid_life_objects(void **state)
{
	(void)state;
	assert_true(mid_life(10000000, 500, 2));
	assert_false(mid_life(9999998, 500, 2));
	assert_false(mid_life(10000000, 501, 2));
	assert_false(mid_life(10000000, 500, 1));
}

/* What a program does that is well: some short collections, little that survives. */
static void a_healthy_program_has_no_findings(void **state)
{
	(void)state;
	begin();
	for (uint32_t i = 0; i < 20; i++) {
		struct gc_play_collection c = { .number = i, .generation = i % 3, .length = 0.4 };

		c.heap.before[0] = 6000000;
		c.stats.promoted[0] = 300000;
		c.stats.pinned = 3;
		gc_play_blocking(&p, 1, 10 + i * 400.0, &c);
	}
	play_event(&p, NT_PROV_OTHER, 1, 0, 1, 10000, NULL);
	assert_int_equal(an_get(play_report(&p), "findings")->count, 0);
	play_end(&p);
}

/* A tool walks the heap: the collection before it was asked for by that tool. */
static void walk(double ms)
{
	struct build b = { 0 };

	build_u32(&b, 0); /* the first of its events */
	build_u32(&b, 0);
	build_u16(&b, 0);
	play_event(&p, NT_PROV_RUNTIME, 18, 0, 1, ms, &b);
}

/* Collections, who allocates and who calls GC.Collect, in one sentence. */
static void causes_are_joined(void **state)
{
	const struct an_value *v;

	(void)state;
	assert_true(play_begin(&p, NULL, both, NULL));
	play_stack(&p, 1, UINT64_C(0x1010));
	gc_play_triggered(&p, 1, 0.5, 1);
	blocking(1, 1, 2, 1, 10);
	p.frame_count = 0;
	for (uint32_t i = 0; i < 3; i++)
		blocking(100 + i * 100.0, i + 2, 0, i == 2, 100);
	walk(450);
	play_stack(&p, 1, UINT64_C(0x2010));
	gc_play_tick(&p, 1, 900, 900000000, 0, "System.Byte[]");
	play_method(&p, true, 0x1000, 0x100, "Shop.Gc", "Run", "void  ()", 950);
	play_method(&p, true, 0x2000, 0x100, "Shop.Gc", "Make", "void  ()", 950);
	play_event(&p, NT_PROV_OTHER, 1, 0, 1, 1000, NULL);
	v = play_find(&p, "findings", "id", "gc.time");
	assert_string_equal(an_get_text(v, "title", ""),
			    "Garbage collections cost 31 % of the time");
	assert_string_equal(
		an_get_text(v, "evidence", ""),
		"75 % of 4 collections are of generation 0 because Shop.Gc.Make allocates "
		"900 MB/s of System.Byte[]; 1 was induced by GC.Collect from Shop.Gc.Run; "
		"310.0 ms of pauses in 1000.0 ms");
	assert_ptr_equal(v, an_get(play_report(&p), "findings")->first);
	play_end(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_standing_still),
		cmocka_unit_test(a_long_pause),
		cmocka_unit_test(many_long_pauses),
		cmocka_unit_test(full_collections),
		cmocka_unit_test(large_objects),
		cmocka_unit_test(asked_for_by_code),
		cmocka_unit_test(slow_suspensions),
		cmocka_unit_test(fragmentation),
		cmocka_unit_test(pinning),
		cmocka_unit_test(a_backlog_of_finalizers),
		cmocka_unit_test(mid_life_objects),
		cmocka_unit_test(a_healthy_program_has_no_findings),
		cmocka_unit_test(causes_are_joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
