/* SPDX-License-Identifier: MIT */
/* Locks: contention, who holds them, convoys, other waits, caps, failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/failalloc.h"
#include "tests/support/scene.h"

enum { A = 101, B = 102, C = 103, D = 104, E = 105 }; /* OS threads */
enum { LOCK_A = 0x1000, LOCK_B = 0x2000, LOCK_C = 0x3000 };

static void begin(struct scene *s)
{
	assert_true(scene_begin(s, NULL));
	play_stack(&s->play, 1, scene_code(s, "Shop.Till", "Open"));
}

/* A has taken LOCK_B and wants LOCK_A, B the other way round. */
static void cross(struct scene *s, double ms_a, double ms_b)
{
	scene_lock_start(s, A, ms_a, LOCK_A, B);
	scene_lock_start(s, B, ms_b, LOCK_B, A);
}

/* --- contention --- */

static void waits_are_summed_up_by_lock_and_method(void **state)
{
	struct scene s;
	uint64_t slow, open, close;
	const struct an_value *row;

	(void)state;
	begin(&s);
	slow = scene_code(&s, "System.Threading.Monitor", "Enter_Slowpath");
	open = scene_code(&s, "Shop.Till", "Open");
	close = scene_code(&s, "Shop.Till", "Close");
	play_stack(&s.play, 2, slow, open);
	scene_lock_start(&s, A, 100, LOCK_A, B);
	scene_lock_stop(&s, A, 103, 3.5); /* the event's own time counts */
	play_stack(&s.play, 2, slow + 1, open); /* another place of the same method */
	scene_lock_start(&s, C, 110, LOCK_A, 0);
	scene_lock_stop(&s, C, 115, 5);
	play_stack(&s.play, 2, slow, close);
	scene_lock_start(&s, A, 120, LOCK_A, B);
	scene_lock_stop(&s, A, 121, 1);
	scene_lock_start(&s, A, 130, LOCK_B, B);
	scene_end(&s, 8, 1000);
	assert_int_equal(scene_number(&s, "locks.count"), 4);
	assert_int_equal(scene_number(&s, "locks.ended"), 3);
	assert_true(scene_number(&s, "locks.total_ms") == 9.5);
	assert_true(scene_number(&s, "locks.max_ms") == 5);
	assert_int_equal(scene_count(&s, "locks.contention"), 3);
	row = play_row(&s.play, "locks.contention", 0);
	assert_string_equal(an_get_text(row, "site", ""), "Shop.Till.Open");
	assert_string_equal(an_get_text(row, "kind", ""), "monitor");
	assert_int_equal(an_get_u64(row, "count", 0), 2);
	assert_true(an_get_f64(row, "total_ms", 0) == 8.5);
	assert_true(an_get_f64(row, "p99_ms", 0) == 5);
	assert_int_equal(an_get_u64(row, "threads", 0), 2);
	assert_int_equal(an_get(row, "owners")->count, 1);
	assert_int_equal(an_get_u64(row, "owners_unknown", 0), 1);
	row = play_row(&s.play, "locks.contention", 2);
	assert_string_equal(an_get_text(row, "lock", ""), "0x2000");
	assert_int_equal(an_get_u64(row, "still_waiting", 0), 1);
	assert_int_equal(an_get(row, "total_ms")->kind, AN_NULL); /* none has ended */
	scene_is_silent(&s);
	scene_done(&s);
}

/* n waits of so many ms on one lock, in a second. */
static void contend(struct scene *s, unsigned n, double ms, bool many_locks)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t lock = many_locks ? LOCK_A + 0x100 * i : LOCK_A;

		scene_lock_start(s, A + i % 2, 10 + 20 * i, lock, C);
		scene_lock_stop(s, A + i % 2, 10 + 20 * i + ms, ms);
	}
}

static bool contention(unsigned n, double ms, double until_ms, bool many_locks)
{
	struct scene s;
	bool found;

	begin(&s);
	contend(&s, n, ms, many_locks);
	scene_end(&s, 8, until_ms);
	found = play_finds(&s.play, "locks.contention");
	if (found)
		assert_string_equal(scene_severity(&s, "locks.contention"), "warning");
	else
		scene_is_silent(&s);
	scene_done(&s);
	return found;
}

static void contention_is_a_matter_of_count_time_and_share(void **state)
{
	(void)state;
	assert_true(contention(10, 10, 1000, false)); /* ten waits, 100 ms, a tenth */
	assert_false(contention(9, 12, 1000, false));
	assert_false(contention(10, 9.99, 900, false)); /* less than 100 ms */
	assert_false(contention(10, 10, 1001, false)); /* less than a tenth */
}

static void locks_taken_in_one_method_count_together(void **state)
{
	(void)state;
	assert_true(contention(10, 10, 1000, true));
	assert_false(contention(9, 12, 1000, true));
}

/* Samples of an owner tell where the lock is held while others wait. */
static void the_holder_is_seen_in_samples(void **state)
{
	for (unsigned major = 10; major <= 11; major++) {
		struct scene s;
		uint64_t hold;
		const struct an_value *held;

		(void)state;
		begin(&s);
		hold = scene_code(&s, "Shop.Till", "Count");
		scene_thread_created(&s, B, 5, 0, 1);
		play_sample(&s.play, B, 2, 2);
		scene_lock_start(&s, A, 100, LOCK_A, major == 10 ? B : 5);
		play_stack(&s.play, 1, hold);
		for (unsigned i = 0; i < 7; i++)
			play_sample(&s.play, B, 110 + i, 2);
		scene_lock_stop(&s, A, 120, 20);
		play_sample(&s.play, B, 130, 2); /* nobody waits any more */
		scene_end(&s, major, 1000);
		held = an_get(play_row(&s.play, "locks.contention", 0), "held_in");
		assert_int_equal(held->count, 1);
		assert_string_equal(an_get_text(held->first, "method", ""), "Shop.Till.Count");
		assert_int_equal(an_get_u64(held->first, "samples", 0), 7);
		scene_done(&s);
	}
}

static void a_stop_without_a_start_counts_with_its_length(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	scene_lock_stop(&s, A, 100, 250);
	scene_end(&s, 8, 1000);
	assert_int_equal(scene_number(&s, "locks.count"), 0);
	assert_int_equal(scene_number(&s, "locks.ended"), 1);
	assert_int_equal(scene_number(&s, "locks.started_before"), 1);
	assert_true(scene_number(&s, "locks.total_ms") == 250);
	assert_int_equal(scene_count(&s, "locks.contention"), 0);
	scene_done(&s);
}

static void a_start_after_a_lost_stop_ends_the_wait_before(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	scene_lock_start(&s, A, 100, LOCK_A, B);
	scene_lock_start(&s, A, 200, LOCK_B, B);
	scene_end(&s, 8, 1000);
	assert_int_equal(scene_count(&s, "locks.waiting"), 1);
	assert_string_equal(an_get_text(play_row(&s.play, "locks.waiting", 0), "lock", ""),
			    "0x2000");
	scene_done(&s);
}

/* Version 0 of the stop has no length, version 1 of the start no lock. */
static void old_events_have_times_only(void **state)
{
	struct scene s;
	struct build b = { 0 };

	(void)state;
	begin(&s);
	for (unsigned i = 0; i < 2; i++) {
		build_u8(&b, 0);
		build_u16(&b, 0);
		play_event(&s.play, NT_PROV_RUNTIME, i ? 91 : 81, i ? 0 : 1, A, i ? 107 : 100, &b);
	}
	scene_end(&s, 3, 1000);
	assert_true(scene_number(&s, "locks.total_ms") == 7);
	assert_int_equal(an_get(play_row(&s.play, "locks.contention", 0), "lock")->kind, AN_NULL);
	scene_done(&s);
}

static void nothing_recorded_is_null(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	scene_end(&s, 8, 1000);
	scene_is_null(&s, "locks.count");
	scene_is_null(&s, "locks.contention");
	scene_is_null(&s, "locks.deadlocks");
	scene_is_null(&s, "locks.waits");
	scene_is_silent(&s);
	scene_done(&s);
}

/* --- convoys --- */

/* Three threads take turns: at every moment one or two more wait. */
static bool convoy(unsigned turns, double turn_ms, unsigned threads)
{
	struct scene s;
	double ms = 100;
	bool found;

	begin(&s);
	for (unsigned i = 0; i < threads; i++)
		scene_lock_start(&s, A + i, ms, LOCK_A, 0);
	for (unsigned i = 0; i < turns; i++) {
		ms += turn_ms;
		scene_lock_stop(&s, A + i % threads, ms, turn_ms);
		if (i + threads < turns)
			scene_lock_start(&s, A + i % threads, ms, LOCK_A, 0);
	}
	for (unsigned i = turns; i < threads; i++)
		scene_lock_stop(&s, A + i, ms, turn_ms);
	scene_end(&s, 8, 100000);
	found = play_finds(&s.play, "locks.convoy");
	assert_int_equal(scene_count(&s, "locks.convoys"), found);
	scene_done(&s);
	return found;
}

static void a_convoy_is_long_wide_and_moves(void **state)
{
	(void)state;
	assert_true(convoy(10, 10, 3));
	assert_false(convoy(10, 9.99, 3)); /* under 100 ms */
	assert_false(convoy(9, 20, 3)); /* too few turns */
	assert_false(convoy(10, 10, 2)); /* never three at a time */
}

/* --- other waits --- */

static void waits_for_other_things_are_kept_apart_from_locks(void **state)
{
	struct scene s;
	uint64_t wait, mine;
	const struct an_value *row;

	(void)state;
	begin(&s);
	wait = scene_code(&s, "System.Threading.SemaphoreSlim", "Wait");
	mine = scene_code(&s, "Shop.Till", "Queue");
	play_stack(&s.play, 2, wait, mine);
	scene_wait_start(&s, A, 100);
	scene_wait_start(&s, A, 101); /* inside */
	scene_wait_stop(&s, A, 102);
	scene_wait_stop(&s, A, 150);
	scene_wait_start(&s, B, 100);
	scene_lock_start(&s, C, 100, LOCK_A, 0);
	scene_wait_start(&s, C, 100); /* how the lock waits */
	scene_wait_stop(&s, C, 900);
	scene_lock_stop(&s, C, 900, 800);
	scene_end(&s, 10, 1000);
	assert_int_equal(scene_count(&s, "locks.waits"), 1);
	row = play_row(&s.play, "locks.waits", 0);
	assert_string_equal(an_get_text(row, "site", ""), "Shop.Till.Queue");
	assert_string_equal(an_get_text(row, "call", ""), "System.Threading.SemaphoreSlim.Wait");
	assert_int_equal(an_get_u64(row, "count", 0), 2);
	assert_int_equal(an_get_u64(row, "still_waiting", 0), 1);
	assert_true(an_get_f64(row, "total_ms", 0) == 50);
	scene_done(&s);
}

/* --- bounds and failures --- */

static void caps_are_counted(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	for (uint64_t i = 0; i < 20000; i++) {
		scene_lock_start(&s, 1000 + i, 10, 0x100000 + 16 * i, 1);
		scene_lock_stop(&s, 1000 + i, 11, 1);
	}
	for (uint64_t i = 0; i < 40000; i++) /* more threads wait than there is room for */
		scene_lock_start(&s, 100000 + i, 20, LOCK_A, 1);
	scene_end(&s, 8, 1000);
	assert_int_equal(scene_number(&s, "locks.count"), 60000);
	assert_true(scene_number(&s, "locks.not_told_apart") > 0);
	assert_int_equal(scene_number(&s, "locks.waiting_count"), 32 * 1024);
	scene_done(&s);
}

static void times_may_be_anything(void **state)
{
	static const double times[] = { 9e12, -9e12, 0, 9.2e12, -9.2e12, 5 };
	struct scene s;

	(void)state;
	begin(&s);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		scene_lock_start(&s, A + i % 3, times[i], LOCK_A, B);
		play_sample(&s.play, A, times[i], 1);
		scene_wait_start(&s, D, times[i]);
		scene_lock_stop(&s, A + (i + 1) % 3, -times[i], -1);
		scene_wait_stop(&s, D, -times[i]);
	}
	scene_end(&s, 8, 9.2e12);
	scene_done(&s);
}

static void a_cut_payload_is_no_harm(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	for (unsigned n = 0; n < 27; n++) {
		struct build b = { 0 };

		build_repeat(&b, 0xff, n);
		play_event(&s.play, NT_PROV_RUNTIME, 81, 2, A, n, &b);
		build_repeat(&b, 0xff, n);
		play_event(&s.play, NT_PROV_RUNTIME, 91, 1, A, n, &b);
		build_repeat(&b, 0xff, n);
		play_event(&s.play, NT_PROV_RUNTIME, 85, 0, A, n, &b);
		build_repeat(&b, 0xff, n);
		play_event(&s.play, NT_PROV_RUNTIME, 86, 0, A, n, &b);
	}
	scene_end(&s, 8, 1000);
	scene_done(&s);
}

static void every_failing_allocation_is_survived(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct scene s;

		if (scene_begin(&s, &fa.alloc)) {
			play_stack(&s.play, 1, scene_code(&s, "Shop.Till", "Open"));
			scene_thread_created(&s, A, 4, 0, 10);
			scene_wait_start(&s, C, 20);
			cross(&s, 100, 200);
			play_sample(&s.play, A, 300, 1);
			scene_wait_stop(&s, C, 400);
			contend(&s, 12, 10, true);
			scene_end(&s, 10, 3000);
			(void)play_report(&s.play);
			assert_int_equal(s.play.status, fa.failed ? NT_ENOMEM : NT_OK);
		}
		play_end(&s.play);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_are_summed_up_by_lock_and_method),
		cmocka_unit_test(contention_is_a_matter_of_count_time_and_share),
		cmocka_unit_test(locks_taken_in_one_method_count_together),
		cmocka_unit_test(the_holder_is_seen_in_samples),
		cmocka_unit_test(a_stop_without_a_start_counts_with_its_length),
		cmocka_unit_test(a_start_after_a_lost_stop_ends_the_wait_before),
		cmocka_unit_test(old_events_have_times_only),
		cmocka_unit_test(nothing_recorded_is_null),
		cmocka_unit_test(a_convoy_is_long_wide_and_moves),
		cmocka_unit_test(waits_for_other_things_are_kept_apart_from_locks),
		cmocka_unit_test(caps_are_counted),
		cmocka_unit_test(times_may_be_anything),
		cmocka_unit_test(a_cut_payload_is_no_harm),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
