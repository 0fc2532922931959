/* SPDX-License-Identifier: MIT */
/* Collections and pauses from made-up events, in every order that real runtimes send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/gc/gc_internal.h"
#include "tests/support/failalloc.h"
#include "tests/support/play.h"

static const struct an_class *const classes[] = { &an_class_gc, NULL };

static struct play p;

static void begin(void)
{
	assert_true(play_begin(&p, NULL, classes, NULL));
}

static void simple(uint32_t id, uint64_t thread, double ms)
{
	struct build b = { 0 };

	build_u16(&b, 0);
	play_event(&p, NT_PROV_RUNTIME, id, 1, thread, ms, &b);
}

static void suspend(uint64_t thread, double ms, uint32_t reason)
{
	struct build b = { 0 };

	build_u32(&b, reason);
	build_u32(&b, 0);
	build_u16(&b, 0);
	play_event(&p, NT_PROV_RUNTIME, 9, 1, thread, ms, &b);
}

/* 8, 7 and 3: from begin to end, with a hundredth of a millisecond to stop all threads. */
static void suspended(uint64_t thread, double ms)
{
	simple(8, thread, ms);
}

static void restart(uint64_t thread, double ms)
{
	simple(7, thread, ms - 0.01);
	simple(3, thread, ms);
}

static void start(uint64_t thread, double ms, uint32_t number, uint32_t gen, uint32_t reason,
		  uint32_t type)
{
	struct build b = { 0 };

	build_u32(&b, number);
	build_u32(&b, gen);
	build_u32(&b, reason);
	build_u32(&b, type);
	build_u16(&b, 0);
	build_u64(&b, 0);
	play_event(&p, NT_PROV_RUNTIME, 1, 2, thread, ms, &b);
}

static void end(uint64_t thread, double ms, uint32_t number)
{
	struct build b = { 0 };

	build_u32(&b, number);
	build_u32(&b, 0);
	build_u16(&b, 0);
	play_event(&p, NT_PROV_RUNTIME, 2, 1, thread, ms, &b);
}

static void heap_stats(uint64_t thread, double ms, uint64_t size, uint64_t promoted)
{
	struct build b = { 0 };

	for (int gen = 0; gen < 4; gen++) {
		build_u64(&b, size);
		build_u64(&b, promoted);
	}
	build_u64(&b, 0);
	build_u64(&b, 0);
	build_u32(&b, 3); /* pinned */
	build_u32(&b, 0);
	build_u32(&b, 0);
	build_u16(&b, 0);
	build_u64(&b, size);
	build_u64(&b, promoted);
	play_event(&p, NT_PROV_RUNTIME, 4, 2, thread, ms, &b);
}

static void per_heap(uint64_t thread, double ms, uint64_t before)
{
	struct build b = { 0 };

	build_u16(&b, 0);
	for (int i = 0; i < 6; i++)
		build_u64(&b, 0);
	for (int i = 0; i < 6; i++)
		build_u32(&b, 0);
	build_u64(&b, 0);
	build_u32(&b, 5);
	for (int gen = 0; gen < 5; gen++) {
		build_u64(&b, before);
		for (int i = 0; i < 9; i++)
			build_u64(&b, 0);
	}
	play_event(&p, NT_PROV_RUNTIME, 204, 3, thread, ms, &b);
}

static void blocking(uint64_t thread, double ms, uint32_t number, uint32_t gen, uint32_t reason,
		     double length)
{
	suspend(thread, ms, 1);
	suspended(thread, ms + 0.01);
	start(thread, ms + 0.02, number, gen, reason, 0);
	per_heap(thread, ms + 0.03, 100);
	end(thread, ms + 0.04, number);
	heap_stats(thread, ms + 0.05, 10, 2);
	restart(thread, ms + length);
}

static double value(const char *path)
{
	return an_get_f64(play_report(&p), path, -1);
}

static bool near(double a, double b)
{
	return a > b - 1e-6 && a < b + 1e-6;
}

static bool is_null(const char *path)
{
	const struct an_value *v = an_get(play_report(&p), path);

	return v && v->kind == AN_NULL;
}

static void a_blocking_collection_is_one_pause(void **state)
{
	const struct an_value *row;

	(void)state;
	begin();
	blocking(1, 10, 7, 1, 4, 2.5);
	play_event(&p, NT_PROV_OTHER, 1, 0, 1, 100, NULL);
	assert_true(value("gc.count") == 1);
	assert_true(value("gc.gen1") == 1);
	assert_true(near(value("gc.pause_total_ms"), 2.5));
	assert_true(near(value("gc.pause_percent"), 2.5));
	assert_true(near(value("gc.pause_p50_ms"), 2.5));
	assert_true(value("gc.promoted_bytes") == 10);
	assert_true(is_null("gc.allocated_bytes"));
	assert_true(value("gc.incomplete_at_start") == 0);
	assert_true(value("gc.incomplete_at_end") == 0);
	row = play_row(&p, "gc.collections", 0);
	assert_int_equal(an_get_u64(row, "number", 0), 7);
	assert_string_equal(an_get_text(row, "reason", ""), "AllocLarge");
	assert_string_equal(an_get_text(row, "type", ""), "blocking");
	assert_true(near(an_get_f64(row, "start_ms", 0), 10.02));
	assert_true(near(an_get_f64(row, "duration_ms", 0), 0.02));
	assert_true(near(an_get_f64(row, "suspend_ms", 0), 0.01));
	assert_true(near(an_get_f64(row, "pause_ms", 0), 2.5));
	assert_int_equal(an_get_u64(row, "heap_before_bytes", 0), 500);
	assert_int_equal(an_get_u64(row, "heap_after_bytes", 0), 50);
	assert_int_equal(an_get_u64(row, "pinned_objects", 0), 3);
	play_end(&p);
}

/* The first pause also holds an ephemeral collection; a third one follows while it is marking. */
static void a_background_collection_has_several_pauses(void **state)
{
	const struct an_value *row;

	(void)state;
	begin();
	suspend(1, 10, 1);
	suspended(1, 10.1);
	start(1, 10.2, 5, 2, 0, GC_BACKGROUND);
	start(1, 10.3, 6, 0, 0, GC_BLOCKING);
	end(1, 10.4, 6);
	heap_stats(1, 10.5, 10, 1);
	restart(1, 11); /* 1 ms: of number 6 */
	suspend(9, 20, 6);
	suspended(9, 20.5);
	restart(9, 22); /* 2 ms: of number 5 */
	blocking(1, 30, 7, 1, 0, 4); /* type 0, while number 5 runs */
	suspend(9, 40, 6);
	suspended(9, 40.1);
	restart(9, 43); /* 3 ms: of number 5 */
	per_heap(9, 49, 1000);
	end(9, 50, 5);
	heap_stats(9, 51, 20, 3);
	assert_true(value("gc.count") == 3);
	assert_true(value("gc.gen0") == 1 && value("gc.gen1") == 1 && value("gc.gen2") == 1);
	assert_true(value("gc.background") == 1);
	assert_true(value("gc.pauses") == 4);
	assert_true(near(value("gc.pause_total_ms"), 1 + 2 + 4 + 3));
	assert_true(near(value("gc.pause_max_ms"), 4));
	row = play_row(&p, "gc.collections", 0);
	assert_int_equal(an_get_u64(row, "number", 0), 5);
	assert_string_equal(an_get_text(row, "type", ""), "background");
	assert_true(near(an_get_f64(row, "pause_ms", 0), 5));
	assert_true(near(an_get_f64(row, "suspend_ms", 0), 0.6));
	assert_true(near(an_get_f64(row, "duration_ms", 0), 39.8));
	assert_int_equal(an_get_u64(row, "heap_before_bytes", 0), 5000);
	assert_int_equal(an_get_u64(row, "heap_after_bytes", 0), 100);
	row = play_row(&p, "gc.collections", 1);
	assert_int_equal(an_get_u64(row, "number", 0), 6);
	assert_true(near(an_get_f64(row, "pause_ms", 0), 1));
	play_end(&p);
}

/* Two heaps; suspension, start and end each on a thread of its own. */
static void a_server_collection_runs_on_many_threads(void **state)
{
	const struct an_value *row;

	(void)state;
	begin();
	suspend(10, 5, 1);
	suspended(10, 5.5);
	start(11, 6, 3, 2, 1, 0);
	per_heap(10, 7, 100);
	per_heap(11, 7, 200);
	end(12, 8, 3);
	heap_stats(13, 8.5, 10, 1);
	restart(10, 9);
	assert_true(value("gc.count") == 1);
	assert_true(near(value("gc.pause_total_ms"), 4));
	row = play_row(&p, "gc.collections", 0);
	assert_true(near(an_get_f64(row, "pause_ms", 0), 4));
	assert_int_equal(an_get_u64(row, "heap_before_bytes", 0), 1500);
	assert_int_equal(an_get_u64(row, "heap_after_bytes", 0), 50);
	play_end(&p);
}

static void other_suspensions_are_no_pauses(void **state)
{
	(void)state;
	begin();
	suspend(7, 1, 0); /* the sampler, whose request waits for a collection */
	blocking(1, 1.5, 1, 0, 0, 3);
	suspended(7, 5);
	restart(7, 6);
	assert_true(value("gc.pauses") == 1);
	assert_true(near(value("gc.pause_total_ms"), 3));
	assert_true(value("gc.other_suspensions") == 1);
	assert_true(near(value("gc.other_suspensions_ms"), 5));
	play_end(&p);
}

static void what_is_cut_off_at_the_ends_is_counted_apart(void **state)
{
	const struct an_value *row;

	(void)state;
	begin();
	restart(1, 0.5); /* of a pause before the session */
	end(1, 0.6, 4);
	heap_stats(1, 0.7, 1, 1);
	suspend(1, 1, 1); /* a collection whose start was not enabled yet */
	suspended(1, 1.1);
	end(1, 1.5, 5);
	restart(1, 2);
	blocking(1, 3, 6, 0, 0, 1);
	suspend(1, 8, 1);
	suspended(1, 8.1);
	start(1, 8.2, 7, 0, 0, 0);
	assert_true(value("gc.count") == 2);
	assert_true(value("gc.pauses") == 1);
	assert_true(near(value("gc.pause_total_ms"), 1));
	assert_true(value("gc.incomplete_at_start") == 2);
	assert_true(value("gc.incomplete_at_end") == 1);
	assert_true(value("gc.pauses_dropped") == 1);
	row = play_row(&p, "gc.collections", 1);
	assert_int_equal(an_get_u64(row, "number", 0), 7);
	assert_int_equal(an_get(row, "duration_ms")->kind, AN_NULL);
	assert_int_equal(an_get(row, "pause_ms")->kind, AN_NULL);
	assert_int_equal(an_get(row, "promoted_bytes")->kind, AN_NULL);
	play_end(&p);
}

static void a_pause_without_its_end_is_dropped(void **state)
{
	(void)state;
	begin();
	suspend(1, 1, 1);
	suspended(1, 1.1);
	blocking(1, 10, 3, 0, 0, 2); /* the end of the first was lost */
	assert_true(value("gc.pauses") == 1);
	assert_true(near(value("gc.pause_total_ms"), 2));
	assert_true(value("gc.pauses_dropped") == 1);
	play_end(&p);
	/* Lost events in the middle: begin and end may belong to different pauses. */
	begin();
	suspend(1, 1, 1);
	start(1, 1.2, 3, 0, 0, 0);
	assert_int_equal(an_engine_sink.lost(p.engine, 1, 9, 0), NT_OK);
	simple(3, 1, 50);
	assert_true(value("gc.pauses") == 0);
	assert_true(value("gc.pauses_dropped") == 1);
	play_end(&p);
}

static void old_versions_of_the_events_count_too(void **state)
{
	struct build b = { 0 };

	(void)state;
	begin();
	build_u32(&b, 3); /* GCStart v0: count, reason */
	build_u32(&b, 1);
	play_event(&p, NT_PROV_RUNTIME, 1, 0, 1, 1, &b);
	build_u32(&b, 3); /* GCEnd v0 */
	build_u16(&b, 0);
	play_event(&p, NT_PROV_RUNTIME, 2, 0, 1, 2, &b);
	play_event(&p, NT_PROV_RUNTIME, 1, 2, 1, 3, NULL); /* no payload at all */
	assert_true(value("gc.count") == 1);
	assert_true(value("gc.induced") == 1);
	assert_true(value("gc.incomplete_at_end") == 0);
	assert_true(is_null("gc.pause_max_ms"));
	assert_true(is_null("gc.promoted_bytes"));
	play_end(&p);
}

static void tick(uint32_t version, uint64_t bytes)
{
	struct build b = { 0 };

	build_u32(&b, (uint32_t)bytes);
	build_u32(&b, 0);
	build_u16(&b, 0);
	if (version >= 2)
		build_u64(&b, bytes);
	play_event(&p, NT_PROV_RUNTIME, 10, version, 1, 1, &b);
}

static void allocation_comes_from_ticks(void **state)
{
	(void)state;
	begin();
	tick(1, 100000);
	tick(4, UINT64_C(5000000000));
	play_event(&p, NT_PROV_OTHER, 1, 0, 1, 2000, NULL);
	assert_true(value("gc.allocated_bytes") == 5000100000.0);
	assert_true(near(value("gc.allocation_rate_bytes_per_s"), 2500050000.0));
	assert_true(value("gc.count") == 0);
	play_end(&p);
	/* While allocations are sampled, the few ticks left tell nothing. */
	begin();
	tick(4, 100000);
	play_event(&p, NT_PROV_RUNTIME, 303, 0, 1, 1, NULL);
	assert_true(is_null("gc.allocated_bytes"));
	assert_true(play_finds(&p, "gc.allocation-unknown"));
	play_end(&p);
}

static void triggered(uint32_t reason, double ms)
{
	struct build b = { 0 };

	build_u32(&b, reason);
	build_u16(&b, 0);
	play_event(&p, NT_PROV_RUNTIME, 35, 0, 1, ms, &b);
}

static void who_called_collect_is_named(void **state)
{
	const struct an_value *row;

	(void)state;
	begin();
	play_stack(&p, 3, UINT64_C(0x1010), UINT64_C(0x2010), UINT64_C(0x3010));
	triggered(1, 1);
	triggered(7, 2);
	triggered(0, 3); /* by need */
	play_stack(&p, 2, UINT64_C(0x1010), UINT64_C(0x2020));
	triggered(1, 4); /* from another line of the same method */
	p.frame_count = 0;
	triggered(1, 5); /* no stack */
	start(1, 6, 1, 2, 1, 0);
	start(1, 7, 2, 2, 7, 0);
	play_method(&p, true, 0x1000, 0x100, "System.GC", "Collect", "void  ()", 9);
	play_method(&p, true, 0x2000, 0x100, "Shop.Cache", "Trim", "void  ()", 9);
	play_method(&p, true, 0x3000, 0x100, "Shop.Program", "Main", "void  ()", 9);
	assert_true(value("gc.induced") == 2);
	assert_int_equal(an_get(play_report(&p), "gc.induced_by")->count, 2);
	row = play_row(&p, "gc.induced_by", 0);
	assert_string_equal(an_get_text(row, "method", ""), "Shop.Cache.Trim");
	assert_int_equal(an_get_u64(row, "count", 0), 3);
	assert_int_equal(an_get(play_row(&p, "gc.induced_by", 1), "method")->kind, AN_NULL);
	assert_true(play_finds(&p, "gc.induced"));
	play_end(&p);
}

static void what_was_not_recorded_is_null(void **state)
{
	static const char *const names[] = { "gc.count",	   "gc.gen0",
					     "gc.pause_total_ms",  "gc.pause_percent",
					     "gc.induced",	   "gc.promoted_bytes",
					     "gc.allocated_bytes", "gc.pause_p99_ms" };

	(void)state;
	begin();
	play_event(&p, NT_PROV_OTHER, 1, 0, 1, 100, NULL);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_true(is_null(names[i]));
	assert_int_equal(an_get(play_report(&p), "gc.collections")->count, 0);
	assert_true(play_finds(&p, "gc.not-recorded"));
	play_end(&p);
}

/* More collections than are kept: the longest stay, and all are counted. */
static void the_longest_of_very_many_are_kept(void **state)
{
	enum { N = 20000 };
	const struct an_value *list;
	size_t long_ones = 0;

	(void)state;
	begin();
	for (uint32_t i = 0; i < N; i++)
		blocking(1, i * 10.0, i, 0, 0, i % 100 ? 1 : 5);
	list = an_get(play_report(&p), "gc.collections");
	assert_true(value("gc.count") == N);
	assert_true(value("gc.pauses") == N);
	assert_true(list->count <= GC_MAX_KEPT);
	assert_true(list->count >= GC_MAX_KEPT / 2);
	assert_true(value("gc.collections_not_shown") == (double)(N - list->count));
	for (const struct an_value *v = list->first; v; v = v->next)
		long_ones += near(an_get_f64(v, "pause_ms", 0), 5);
	assert_int_equal(long_ones, N / 100);
	play_end(&p);
}

static void only_the_top_rows_are_shown(void **state)
{
	const struct an_options two = { .top = 2 };

	(void)state;
	assert_true(play_begin(&p, NULL, classes, &two));
	for (uint32_t i = 0; i < 10; i++)
		blocking(1, i * 10.0, i, 0, 0, i == 3 ? 7 : i == 8 ? 6 : 1);
	assert_int_equal(an_get(play_report(&p), "gc.collections")->count, 2);
	assert_int_equal(an_get_u64(play_row(&p, "gc.collections", 0), "number", 0), 3);
	assert_int_equal(an_get_u64(play_row(&p, "gc.collections", 1), "number", 0), 8);
	assert_true(value("gc.collections_not_shown") == 8);
	play_end(&p);
}

static uint64_t rng(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 20;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void percentiles_are_right_in_bounded_memory(void **state)
{
	static const unsigned percents[] = { 0, 1, 50, 95, 99, 100 };
	static const size_t counts[] = {
		1, 2, 99, 100, 101, GC_MAX_EXACT, GC_MAX_EXACT + 1, GC_MAX_EXACT * 4
	};
	uint64_t *all = malloc(sizeof(*all) * GC_MAX_EXACT * 4), seed = 1;
	struct failalloc fa;

	(void)state;
	assert_non_null(all);
	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		struct gc_pauses pauses;

		failalloc_init(&fa, 0);
		gc_pauses_init(&pauses, &fa.alloc);
		assert_int_equal(gc_pauses_percentile(&pauses, 50), 0);
		for (size_t i = 0; i < counts[c]; i++) {
			all[i] = rng(&seed) % 1000000 << rng(&seed) % 10;
			assert_int_equal(gc_pauses_add(&pauses, all[i]), NT_OK);
		}
		qsort(all, counts[c], sizeof(*all), compare);
		for (size_t k = 0; k < sizeof(percents) / sizeof(percents[0]); k++) {
			size_t rank = (counts[c] * percents[k] + 99) / 100;
			uint64_t want = all[rank ? rank - 1 : 0];
			uint64_t got = gc_pauses_percentile(&pauses, percents[k]);

			if (counts[c] <= GC_MAX_EXACT)
				assert_int_equal(got, want);
			else
				assert_true(got >= want && got - want <= want / 100);
		}
		assert_int_equal(pauses.max_ns, all[counts[c] - 1]);
		assert_true(fa.peak_bytes <= 4 << 20);
		gc_pauses_done(&pauses);
		assert_int_equal(fa.live, 0);
	}
	free(all);
}

static void extreme_lengths_have_a_place(void **state)
{
	static const uint64_t lengths[] = { 0,	       1, 127, 128, 129, 255, 256, UINT64_MAX - 1,
					    UINT64_MAX };
	struct gc_pauses pauses;

	(void)state;
	gc_pauses_init(&pauses, &nt_alloc_default);
	for (size_t i = 0; i < GC_MAX_EXACT + 9; i++)
		assert_int_equal(gc_pauses_add(&pauses, lengths[i % 9]), NT_OK);
	assert_int_equal(gc_pauses_percentile(&pauses, 1), 0);
	assert_int_equal(gc_pauses_percentile(&pauses, 100), UINT64_MAX);
	gc_pauses_done(&pauses);
}

/* Ends without begins, begins without ends, on very many threads. */
static void nonsense_is_survived_in_bounded_memory(void **state)
{
	struct failalloc fa;
	uint64_t seed = 7;

	(void)state;
	failalloc_init(&fa, 0);
	assert_true(play_begin(&p, &fa.alloc, classes, NULL));
	for (int i = 0; i < 60000; i++) {
		uint64_t thread = rng(&seed) % 1000;
		uint32_t n = (uint32_t)(rng(&seed) % 50);

		switch (rng(&seed) % 8) {
		case 0:
			suspend(thread, i, (uint32_t)(rng(&seed) % 8));
			break;
		case 1:
			suspended(thread, i);
			break;
		case 2:
			restart(thread, i);
			break;
		case 3:
			start(thread, i, n, n % 5, n % 17, n % 4);
			break;
		case 4:
			end(thread, i, n);
			break;
		case 5:
			heap_stats(thread, i, UINT64_MAX, UINT64_MAX);
			break;
		case 6:
			per_heap(thread, i, UINT64_MAX);
			break;
		default:
			triggered(n % 14, i);
		}
	}
	play_report(&p);
	assert_int_equal(p.status, NT_OK);
	assert_true(fa.peak_bytes < 32 << 20);
	play_end(&p);
	assert_int_equal(fa.live, 0);
}

static void every_failing_allocation_is_survived(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		if (play_begin(&p, &fa.alloc, classes, NULL)) {
			play_stack(&p, 1, UINT64_C(0x1000));
			for (uint32_t i = 0; i < 100; i++)
				blocking(1, i * 10.0, i, i % 3, 1, 1);
			triggered(1, 2000);
			play_report(&p);
			assert_int_equal(p.status, fa.failed ? NT_ENOMEM : NT_OK);
		}
		play_end(&p);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_blocking_collection_is_one_pause),
		cmocka_unit_test(a_background_collection_has_several_pauses),
		cmocka_unit_test(a_server_collection_runs_on_many_threads),
		cmocka_unit_test(other_suspensions_are_no_pauses),
		cmocka_unit_test(what_is_cut_off_at_the_ends_is_counted_apart),
		cmocka_unit_test(a_pause_without_its_end_is_dropped),
		cmocka_unit_test(old_versions_of_the_events_count_too),
		cmocka_unit_test(allocation_comes_from_ticks),
		cmocka_unit_test(who_called_collect_is_named),
		cmocka_unit_test(what_was_not_recorded_is_null),
		cmocka_unit_test(the_longest_of_very_many_are_kept),
		cmocka_unit_test(only_the_top_rows_are_shown),
		cmocka_unit_test(percentiles_are_right_in_bounded_memory),
		cmocka_unit_test(extreme_lengths_have_a_place),
		cmocka_unit_test(nonsense_is_survived_in_bounded_memory),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
