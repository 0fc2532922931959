/* SPDX-License-Identifier: MIT */
/* What one collection did: each member of its record, and what is told of the whole session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/gc/gc_internal.h"
#include "tests/support/failalloc.h"
#include "tests/support/gc_play.h"

static const struct an_class *const classes[] = { &an_class_gc, NULL };

static struct play p;

static void begin(void)
{
	assert_true(play_begin(&p, NULL, classes, NULL));
}

static double value(const char *path)
{
	return an_get_f64(play_report(&p), path, -1);
}

static bool near(double a, double b)
{
	return a > b - 1e-6 && a < b + 1e-6;
}

static bool has_text(const struct an_value *list, const char *text)
{
	for (const struct an_value *v = list ? list->first : NULL; v; v = v->next)
		if (v->kind == AN_TEXT && strcmp(v->text, text) == 0)
			return true;
	return false;
}

/* One collection of generation 1 by a server collector with two heaps. */
static void play_one(void)
{
	static const uint32_t us[] = { 0, 324, 1, 2, 3, 147, 1329418690, 694 };
	const struct gc_play_heap heap = { .before = { 100, 200, 300, 400, 50 },
					   .free_before = { 0, 20, 30, 0, 0 },
					   .after = { 0, 80, 480, 400, 50 },
					   .free_after = { 0, 8, 40, 100, 0 },
					   .condemned1 = 1u << 5,
					   .compact = 1u << 31 | 2 };
	struct gc_play_heap second = heap;
	const struct gc_play_heap_stats stats = { .size = { 0, 160, 960, 800, 100 },
						  .promoted = { 160, 360, 0, 0, 0 },
						  .finalizable = 12,
						  .finalizable_bytes = 480,
						  .pinned = 7,
						  .handles = 99 };

	second.heap = 1;
	play_stack(&p, 2, UINT64_C(0x1010), UINT64_C(0x2010));
	gc_play_triggered(&p, 77, 9, 0);
	p.frame_count = 0;
	gc_play_suspend(&p, 1, 10, 1);
	gc_play_simple(&p, 8, 1, 10.25);
	gc_play_committed(&p, 2, 10.3, 5000000);
	gc_play_start(&p, 1, 10.5, 7, 1, 0, 0);
	gc_play_mark(&p, 2, 10.6, 0, 0, 1000);
	gc_play_mark(&p, 3, 10.75, 1, 0, 500);
	gc_play_mark(&p, 2, 10.9, 0, 3, 2000);
	gc_play_mark(&p, 2, 11.0, 0, 0, 10);
	gc_play_global(&p, 2, 11.5, 2, 2, 1 << 4 | 1 << 2, 1u << 7, us, 8);
	gc_play_per_heap(&p, 2, 11.6, &heap);
	gc_play_per_heap(&p, 2, 11.7, &second);
	gc_play_committed(&p, 2, 11.8, 4000000);
	gc_play_end(&p, 3, 12, 7);
	gc_play_heap_stats(&p, 3, 12.1, &stats);
	gc_play_simple(&p, 7, 1, 12.4);
	gc_play_simple(&p, 3, 1, 12.5);
	play_method(&p, true, 0x1000, 0x100, "System.GC", "AllocateNewArray", "void  ()", 90);
	play_method(&p, true, 0x2000, 0x100, "Shop.Orders", "Load", "void  ()", 90);
	play_event(&p, NT_PROV_OTHER, 1, 0, 1, 100, NULL);
}

static void a_record_has_everything(void **state)
{
	const struct an_value *v, *list;

	(void)state;
	begin();
	play_one();
	v = play_row(&p, "gc.collections", 0);
	assert_true(near(an_get_f64(v, "suspend_ms", 0), 0.25));
	assert_true(near(an_get_f64(v, "pause_ms", 0), 2.5));
	assert_int_equal(an_get_u64(v, "heap_before_bytes", 0), 2100);
	assert_int_equal(an_get_u64(v, "heap_after_bytes", 0), 2020);
	assert_int_equal(an_get_u64(v, "promoted_bytes", 0), 520);
	assert_int_equal(an_get_u64(v, "promoted_by_generation.gen0", 0), 160);
	assert_int_equal(an_get_u64(v, "promoted_by_generation.gen1", 0), 360);
	assert_int_equal(an_get_u64(v, "promoted_by_generation.loh", 1), 0);
	assert_int_equal(an_get_u64(v, "fragmentation_bytes", 0), 296);
	assert_true(near(an_get_f64(v, "fragmentation_percent", 0), 100.0 * 296 / 2020));
	assert_int_equal(an_get_u64(v, "pinned_objects", 0), 7);
	assert_int_equal(an_get_u64(v, "finalizable_survivors", 0), 12);
	assert_int_equal(an_get_u64(v, "finalizable_survivors_bytes", 0), 480);
	assert_int_equal(an_get_u64(v, "handles", 0), 99);
	assert_int_equal(an_get_u64(v, "heap_count", 0), 2);
	assert_int_equal(an_get(v, "compacting")->u, 1);
	assert_string_equal(an_get_text(v, "pause_mode", ""), "interactive");
	assert_int_equal(an_get_u64(v, "memory_load_percent", 0), 37);
	assert_int_equal(an_get_u64(v, "committed_bytes", 0), 4000000);
	assert_true(near(an_get_f64(v, "phases.compact_ms", 0), 0.694));
	assert_true(near(an_get_f64(v, "phases.mark_roots_ms", 0), 0.324));
	assert_int_equal(an_get(v, "phases.relocate_ms")->kind, AN_NULL); /* cannot be */
	assert_string_equal(an_get_text(v, "triggered_by", ""), "Shop.Orders.Load");
	assert_int_equal(an_get_u64(v, "triggered_by_thread", 0), 77);
	list = an_get(v, "condemned_because");
	assert_true(has_text(list, "generation 1 is over its budget"));
	assert_true(has_text(list, "few of the marked cards were of use"));
	assert_true(has_text(list, "generation 2 is fragmented"));
	assert_int_equal(list->count, 3);
	play_end(&p);
}

static const struct an_value *find_mark(const struct an_value *list, uint64_t heap,
					const char *roots)
{
	for (const struct an_value *v = list->first; v; v = v->next)
		if (an_get_u64(v, "heap", 99) == heap &&
		    strcmp(an_get_text(v, "roots", ""), roots) == 0)
			return v;
	return NULL;
}

/* From the start, or from the last mark of that heap; a second mark of one kind adds up. */
static void marking_is_timed_by_heap_and_roots(void **state)
{
	const struct an_value *list, *v;

	(void)state;
	begin();
	play_one();
	list = an_get(play_row(&p, "gc.collections", 0), "marking");
	assert_int_equal(list->count, 3);
	v = find_mark(list, 0, "stack");
	assert_true(near(an_get_f64(v, "time_ms", 0), 0.2));
	assert_int_equal(an_get_u64(v, "bytes", 0), 1010);
	v = find_mark(list, 1, "stack");
	assert_true(near(an_get_f64(v, "time_ms", 0), 0.25));
	v = find_mark(list, 0, "older-generation");
	assert_true(near(an_get_f64(v, "time_ms", 0), 0.3));
	v = play_find(&p, "gc.marking", "roots", "stack");
	assert_true(near(an_get_f64(v, "time_ms", 0), 0.45));
	assert_int_equal(an_get_u64(v, "bytes", 0), 1510);
	play_end(&p);
}

static void the_session_sums_up(void **state)
{
	const struct an_value *v;

	(void)state;
	begin();
	play_one();
	assert_string_equal(an_get_text(play_report(&p), "gc.mode", ""), "server");
	assert_true(value("gc.heap_count") == 2);
	assert_true(value("gc.committed_bytes") == 4000000);
	assert_true(value("gc.committed_max_bytes") == 5000000);
	v = play_find(&p, "gc.heap", "generation", "gen1");
	assert_int_equal(an_get_u64(v, "bytes", 0), 160);
	assert_true(near(an_get_f64(v, "free_percent", 0), 10));
	assert_true(near(an_get_f64(v, "survived_percent", 0), 100)); /* 360 of 2 x (200 - 20) */
	v = play_find(&p, "gc.heap", "generation", "loh");
	assert_true(near(an_get_f64(v, "free_percent", 0), 25));
	assert_int_equal(an_get(v, "survived_percent")->kind, AN_NULL); /* was not collected */
	assert_int_equal(an_get_u64(v, "collected", 1), 0);
	v = play_find(&p, "gc.heap", "generation", "gen0");
	assert_int_equal(an_get(v, "free_percent")->kind, AN_NULL); /* of nothing */
	assert_true(value("gc.pinned.average") == 7);
	assert_int_equal(an_get(play_report(&p), "gc.pinned.types")->kind, AN_NULL);
	assert_true(value("gc.finalizers.survivors") == 12);
	assert_int_equal(an_get(play_report(&p), "gc.finalizers.finalized")->kind, AN_NULL);
	play_end(&p);
}

/* A trace of a lower level or an old runtime: members without their events are null. */
static void what_a_record_lacks_is_null(void **state)
{
	static const char *const names[] = { "promoted_by_generation",
					     "fragmentation_bytes",
					     "fragmentation_percent",
					     "sizes",
					     "finalizable_survivors",
					     "handles",
					     "condemned_because",
					     "heap_count",
					     "compacting",
					     "pause_mode",
					     "memory_load_percent",
					     "committed_bytes",
					     "phases",
					     "marking",
					     "triggered_by",
					     "triggered_by_thread" };
	const struct an_value *v;

	(void)state;
	begin();
	gc_play_start(&p, 1, 10.5, 7, 1, 0, 0);
	gc_play_end(&p, 1, 11, 7);
	v = play_row(&p, "gc.collections", 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_non_null(an_get(v, names[i]));
		assert_int_equal(an_get(v, names[i])->kind, AN_NULL);
	}
	assert_int_equal(an_get(play_report(&p), "gc.heap")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "gc.marking")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "gc.pinned")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "gc.finalizers")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "gc.mode")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "gc.allocation_over_time")->kind, AN_NULL);
	play_end(&p);
}

/* What a trace without any event of the collector says of it. */
static void a_section_that_was_not_recorded_is_all_null(void **state)
{
	const struct an_value *gc;

	(void)state;
	begin();
	play_event(&p, NT_PROV_OTHER, 1, 0, 1, 100, NULL);
	gc = an_get(play_report(&p), "gc");
	assert_true(gc->count > 30);
	for (const struct an_value *v = gc->first; v; v = v->next)
		assert_int_equal(v->kind, AN_NULL);
	play_end(&p);
}

/* A pause of 6 ms in the middle, and one of 3 ms that ends 9 ms after it. */
static void the_worst_windows_are_found(void **state)
{
	static const struct gc_play_collection first = { .number = 1, .length = 6 };
	static const struct gc_play_collection second = { .number = 2, .length = 3 };

	(void)state;
	begin();
	gc_play_blocking(&p, 1, 50, &first);
	gc_play_blocking(&p, 1, 62, &second);
	play_event(&p, NT_PROV_OTHER, 1, 0, 1, 99, NULL);
	assert_true(
		near(an_get_f64(play_row(&p, "gc.mutator_utilisation", 0), "minimum_percent", 0),
		     40)); /* [46, 56] */
	assert_true(
		near(an_get_f64(play_row(&p, "gc.mutator_utilisation", 1), "minimum_percent", 0),
		     82)); /* 9 of 50 */
	/* The session was shorter than the longest window. */
	assert_int_equal(an_get(play_row(&p, "gc.mutator_utilisation", 2), "minimum_percent")->kind,
			 AN_NULL);
	play_end(&p);
}

/* Against all windows that begin or end with a pause, one by one. */
static void the_worst_window_of_many_is_right(void **state)
{
	static struct gc_mutator m;
	enum { N = 500 };
	int64_t begin_ns[N], end_ns[N], now = 0;
	uint32_t seed = 7;

	(void)state;
	memset(&m, 0, sizeof(m));
	for (int i = 0; i < N; i++) {
		seed = seed * 1664525 + 1013904223;
		begin_ns[i] = now + 1000 + seed % 9000000;
		seed = seed * 1664525 + 1013904223;
		end_ns[i] = now = begin_ns[i] + 1000 + seed % 6000000;
		gc_mutator_add(&m, begin_ns[i], end_ns[i]);
	}
	for (size_t w = 0; w < GC_WINDOWS; w++) {
		int64_t window = gc_window_ms[w] * INT64_C(1000000), worst = 0;

		for (int i = 0; i < 2 * N; i++) {
			int64_t from = i < N ? begin_ns[i] : end_ns[i - N] - window, sum = 0;

			for (int k = 0; k < N; k++) {
				int64_t a = begin_ns[k] > from ? begin_ns[k] : from;
				int64_t b = end_ns[k] < from + window ? end_ns[k] : from + window;

				sum += b > a ? b - a : 0;
			}
			worst = sum > worst ? sum : worst;
		}
		assert_int_equal(m.worst_ns[w], worst);
	}
}

/* Without ticks the growth of generation 0 between two collections says what was allocated. */
static void growth_tells_what_was_allocated(void **state)
{
	struct gc_play_collection c = { .number = 1, .length = 1 };

	(void)state;
	begin();
	c.heap.before[0] = 5000000;
	c.heap.after[0] = 1000000;
	gc_play_blocking(&p, 1, 100, &c);
	c.number = 2;
	c.heap.before[0] = 6000000; /* 5 MB more than before */
	c.heap.before[GC_LARGE] = 3000000; /* and 3 MB */
	gc_play_blocking(&p, 1, 300, &c);
	play_event(&p, NT_PROV_OTHER, 1, 0, 1, 1000, NULL);
	assert_int_equal(an_get(play_report(&p), "gc.allocated_bytes")->kind, AN_NULL);
	assert_true(near(value("gc.allocation_rate_bytes_per_s"), 8e6 / 0.2));
	assert_string_equal(an_get_text(play_report(&p), "gc.allocation_source", ""), "heap-sizes");
	play_end(&p);
}

static void ticks_tell_more_than_growth(void **state)
{
	struct gc_play_collection c = { .number = 1, .length = 1 };

	(void)state;
	begin();
	gc_play_tick(&p, 1, 50, 3000000, 0, "System.Byte[]");
	gc_play_blocking(&p, 1, 100, &c);
	c.number = 2;
	c.heap.before[0] = 1000000;
	gc_play_blocking(&p, 1, 300, &c);
	play_event(&p, NT_PROV_OTHER, 1, 0, 1, 1000, NULL);
	assert_true(value("gc.allocated_bytes") == 3000000);
	assert_true(near(value("gc.allocation_rate_bytes_per_s"), 3e6));
	assert_string_equal(an_get_text(play_report(&p), "gc.allocation_source", ""), "ticks");
	assert_int_equal(an_get(play_report(&p), "gc.allocation_over_time")->kind, AN_OBJECT);
	play_end(&p);
}

/* Who still allocates after the request to stop has not stopped. */
static void a_thread_that_runs_on_is_named(void **state)
{
	const struct an_value *v;

	(void)state;
	begin();
	gc_play_suspend(&p, 1, 10, 1);
	gc_play_tick(&p, 42, 15, 102400, 0, "System.Byte[]");
	gc_play_simple(&p, 8, 1, 30);
	gc_play_start(&p, 1, 31, 5, 0, 0, 0);
	gc_play_end(&p, 1, 32, 5);
	gc_play_simple(&p, 3, 1, 33);
	v = play_row(&p, "gc.slow_suspensions", 0);
	assert_true(near(an_get_f64(v, "suspend_ms", 0), 20));
	assert_int_equal(an_get_u64(v, "collection", 0), 5);
	assert_int_equal(an_get_u64(v, "thread_id", 0), 1);
	assert_int_equal(an_get_u64(v, "still_running_thread", 0), 42);
	assert_true(play_finds(&p, "gc.slow-suspension"));
	play_end(&p);
}

static void pauses_have_a_histogram(void **state)
{
	static const double lengths[] = { 0.1, 0.2, 0.2, 3, 5000 };
	const struct an_value *v;

	(void)state;
	begin();
	for (uint32_t i = 0; i < 5; i++) {
		const struct gc_play_collection c = { .number = i, .length = lengths[i] };

		gc_play_blocking(&p, 1, i * 10.0, &c);
	}
	assert_int_equal(an_get(play_report(&p), "gc.pause_histogram")->count, 4);
	v = play_row(&p, "gc.pause_histogram", 1);
	assert_true(near(an_get_f64(v, "from_ms", 0), 0.125));
	assert_true(near(an_get_f64(v, "below_ms", 0), 0.25));
	assert_int_equal(an_get_u64(v, "count", 0), 2);
	v = play_row(&p, "gc.pause_histogram", 3);
	assert_int_equal(an_get(v, "below_ms")->kind, AN_NULL);
	play_end(&p);
}

/* 50 rows of marking in each of very many collections: the longest keep theirs. */
static void marking_stays_bounded(void **state)
{
	enum { N = 4000 };
	struct failalloc fa;
	size_t with_marks = 0;

	(void)state;
	failalloc_init(&fa, 0);
	assert_true(play_begin(&p, &fa.alloc, classes, NULL));
	for (uint32_t i = 0; i < N; i++) {
		double ms = i * 10.0;

		gc_play_suspend(&p, 1, ms, 1);
		gc_play_start(&p, 1, ms + 0.1, i, 0, 0, 0);
		for (uint32_t k = 0; k < 50; k++)
			gc_play_mark(&p, 1, ms + 0.2, k, k % 10, 1);
		gc_play_mark(&p, 1, ms + 0.2, UINT32_MAX, 1, 1);
		gc_play_mark(&p, 1, ms + 0.2, 1, UINT32_MAX, 1);
		gc_play_end(&p, 1, ms + 0.3, i);
		gc_play_simple(&p, 3, 1, ms + (i % 100 ? 1 : 5));
	}
	assert_true(value("gc.count") == N);
	for (const struct an_value *v = an_get(play_report(&p), "gc.collections")->first; v;
	     v = v->next) {
		if (an_get(v, "marking")->kind == AN_ARRAY)
			with_marks++;
		else
			assert_true(an_get_f64(v, "pause_ms", 0) < 5);
	}
	assert_in_range(with_marks, GC_MAX_MARKS / 50 / 4, GC_MAX_MARKS / 50 + GC_RECENT);
	play_end(&p);
	assert_int_equal(fa.live, 0);
}

/* Every event that has details, cut at each byte. */
static void cut_events_are_survived(void **state)
{
	static const struct {
		uint32_t id, version, bytes;
	} kinds[] = { { 4, 2, 110 },  { 204, 3, 486 }, { 205, 4, 82 }, { 202, 0, 18 },
		      { 39, 0, 100 }, { 33, 0, 40 },   { 5, 1, 22 },   { 13, 1, 6 },
		      { 14, 1, 2 },   { 203, 2, 18 } };

	(void)state;
	begin();
	gc_play_start(&p, 1, 1, 1, 2, 0, 1);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		for (uint32_t n = 0; n <= kinds[i].bytes; n++) {
			struct build b = { 0 };

			build_repeat(&b, 0xff, n);
			play_event(&p, NT_PROV_RUNTIME, kinds[i].id, kinds[i].version, 1, 2, &b);
			build_repeat(&b, 3, n);
			play_event(&p, NT_PROV_RUNTIME, kinds[i].id, kinds[i].version, 1, 2, &b);
		}
	}
	play_report(&p);
	assert_int_equal(p.status, NT_OK);
	play_end(&p);
}

static void every_failing_allocation_is_survived(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		if (play_begin(&p, &fa.alloc, classes, NULL)) {
			play_one();
			play_report(&p);
			assert_int_equal(p.status, fa.failed ? NT_ENOMEM : NT_OK);
		}
		play_end(&p);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_has_everything),
		cmocka_unit_test(marking_is_timed_by_heap_and_roots),
		cmocka_unit_test(the_session_sums_up),
		cmocka_unit_test(what_a_record_lacks_is_null),
		cmocka_unit_test(a_section_that_was_not_recorded_is_all_null),
		cmocka_unit_test(the_worst_windows_are_found),
		cmocka_unit_test(the_worst_window_of_many_is_right),
		cmocka_unit_test(growth_tells_what_was_allocated),
		cmocka_unit_test(ticks_tell_more_than_growth),
		cmocka_unit_test(a_thread_that_runs_on_is_named),
		cmocka_unit_test(pauses_have_a_histogram),
		cmocka_unit_test(marking_stays_bounded),
		cmocka_unit_test(cut_events_are_survived),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
