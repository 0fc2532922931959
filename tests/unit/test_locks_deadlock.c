/* SPDX-License-Identifier: MIT */
/* Deadlocks and what only looks like one, orphaned locks, threads that never get on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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

static void two_threads_that_wait_for_each_other_are_a_deadlock(void **state)
{
	struct scene s;
	const struct an_value *d, *t;

	(void)state;
	begin(&s);
	cross(&s, 100, 200);
	scene_end(&s, 10, 1200);
	d = play_row(&s.play, "locks.deadlocks", 0);
	assert_non_null(d);
	assert_int_equal(an_get_u64(d, "length", 0), 2);
	assert_int_equal(an_get_f64(d, "waiting_ms", 0), 1000);
	t = an_get(d, "threads")->first;
	assert_int_equal(an_get_u64(t, "thread_id", 0), A);
	assert_int_equal(an_get_u64(t, "owner_thread_id", 0), B);
	assert_string_equal(an_get_text(t, "method", ""), "Shop.Till.Open");
	assert_string_equal(an_get_text(t, "lock", ""), "0x1000");
	assert_int_equal(an_get_u64(t->next, "thread_id", 0), B);
	assert_string_equal(an_get(d, "locks")->first->text, "0x1000");
	assert_int_equal(scene_count(&s, "locks.suspected_deadlocks"), 0);
	assert_string_equal(scene_severity(&s, "locks.deadlock"), "critical");
	assert_false(play_finds(&s.play, "locks.blocked"));
	scene_done(&s);
}

static void shorter_than_a_second_is_none_yet(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	cross(&s, 100, 200);
	scene_end(&s, 10, 1199.999);
	assert_int_equal(scene_count(&s, "locks.deadlocks"), 0);
	assert_int_equal(scene_count(&s, "locks.suspected_deadlocks"), 0);
	scene_is_silent(&s);
	scene_done(&s);
}

static void a_cycle_of_three_with_threads_queued_behind_it(void **state)
{
	struct scene s;
	const struct an_value *d;

	(void)state;
	begin(&s);
	scene_lock_start(&s, D, 50, LOCK_B, C); /* waits for a member */
	scene_lock_start(&s, A, 100, LOCK_A, B);
	scene_lock_start(&s, E, 150, 0x9000, D); /* waits for who waits for one */
	scene_lock_start(&s, B, 200, LOCK_B, C);
	scene_lock_start(&s, C, 300, LOCK_C, A);
	scene_end(&s, 8, 5000);
	assert_int_equal(scene_count(&s, "locks.deadlocks"), 1);
	d = play_row(&s.play, "locks.deadlocks", 0);
	assert_int_equal(an_get_u64(d, "length", 0), 3);
	assert_int_equal(an_get_u64(d, "queued_count", 0), 2);
	assert_int_equal(an_get_u64(an_get(d, "queued")->first, "thread_id", 0), D);
	assert_int_equal(an_get_u64(an_get(d, "queued")->first->next, "thread_id", 0), E);
	assert_false(play_finds(&s.play, "locks.blocked")); /* they are explained */
	scene_done(&s);
}

static void two_deadlocks_are_told_apart(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	cross(&s, 100, 200);
	scene_lock_start(&s, C, 100, 0x7000, D);
	scene_lock_start(&s, D, 100, 0x8000, C);
	scene_end(&s, 8, 5000);
	assert_int_equal(scene_count(&s, "locks.deadlocks"), 2);
	scene_done(&s);
}

static void managed_owners_are_mapped_by_created_threads_and_the_rundown(void **state)
{
	struct scene s;
	const struct an_value *t;

	(void)state;
	begin(&s);
	scene_thread_created(&s, A, 4, 0, 10);
	scene_lock_start(&s, A, 100, LOCK_A, 5);
	scene_lock_start(&s, B, 200, LOCK_B, 4);
	scene_end(&s, 11, 3000);
	scene_thread_alive(&s, A, 4, 3001);
	scene_thread_alive(&s, B, 5, 3001);
	assert_int_equal(scene_count(&s, "locks.deadlocks"), 1);
	t = an_get(play_row(&s.play, "locks.deadlocks", 0), "threads")->first;
	assert_int_equal(an_get_u64(t, "managed_id", 0), 4);
	assert_int_equal(an_get_u64(t, "owner_thread_id", 0), B);
	assert_int_equal(an_get_u64(t, "owner_managed_id", 0), 5);
	scene_done(&s);
}

static void a_managed_owner_without_mapping_is_named_but_leads_nowhere(void **state)
{
	struct scene s;
	const struct an_value *w;

	(void)state;
	begin(&s);
	scene_lock_start(&s, A, 100, LOCK_A, B); /* on 11: managed thread 102, whoever that is */
	scene_lock_start(&s, B, 200, LOCK_B, A);
	scene_end(&s, 11, 3000);
	assert_int_equal(scene_count(&s, "locks.deadlocks"), 0);
	w = play_row(&s.play, "locks.waiting", 0);
	assert_int_equal(an_get(w, "owner_thread_id")->kind, AN_NULL);
	assert_int_equal(an_get_u64(w, "owner_managed_id", 0), B);
	scene_done(&s);
}

/* Ids that could be either: no proof without the runtime's version. */
static void ambiguous_owners_prove_nothing(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	scene_thread_created(&s, A, B, 0, 10); /* the managed id of A is the OS id of B */
	scene_thread_created(&s, B, A, 0, 10);
	cross(&s, 100, 200);
	scene_end(&s, 0, 3000);
	assert_int_equal(scene_count(&s, "locks.deadlocks"), 0);
	assert_int_equal(scene_count(&s, "locks.suspected_deadlocks"), 1);
	assert_string_equal(scene_severity(&s, "locks.suspected-deadlock"), "warning");
	scene_done(&s);
}

static void without_a_version_owners_are_read_as_they_make_sense(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	scene_thread_created(&s, A, 4, 0, 10);
	scene_thread_created(&s, B, 5, 0, 10);
	scene_lock_start(&s, A, 100, LOCK_A, 5);
	scene_lock_start(&s, B, 200, LOCK_B, 4);
	scene_end(&s, 0, 3000);
	assert_int_equal(scene_count(&s, "locks.deadlocks"), 1);
	scene_done(&s);
}

static void an_unknown_owner_is_no_edge(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	scene_lock_start(&s, A, 100, LOCK_A, 0);
	scene_lock_start(&s, B, 200, LOCK_B, A);
	scene_end(&s, 8, 3000);
	assert_int_equal(scene_count(&s, "locks.deadlocks"), 0);
	assert_true(play_finds(&s.play, "locks.blocked"));
	scene_done(&s);
}

/* A later waiter's answer is newer; one that cannot tell changes nothing. */
static void the_newest_naming_of_an_owner_counts(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	scene_lock_start(&s, A, 100, LOCK_A, C); /* C has left it since, B has it */
	scene_lock_start(&s, D, 150, LOCK_A, B);
	scene_lock_start(&s, E, 160, LOCK_A, 0);
	scene_lock_start(&s, B, 200, LOCK_B, A);
	scene_end(&s, 8, 3000);
	assert_int_equal(scene_count(&s, "locks.deadlocks"), 1);
	assert_int_equal(an_get_u64(play_row(&s.play, "locks.deadlocks", 0), "queued_count", 0), 2);
	scene_done(&s);
}

static void a_lock_that_changed_hands_is_suspected_only(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	scene_lock_start(&s, A, 100, LOCK_A, C);
	scene_lock_start(&s, B, 110, LOCK_A, C);
	scene_lock_stop(&s, B, 150, 40); /* B has it now, or has had it */
	scene_lock_start(&s, B, 200, LOCK_B, A);
	scene_end(&s, 8, 3000);
	assert_int_equal(scene_count(&s, "locks.deadlocks"), 0);
	assert_int_equal(scene_count(&s, "locks.suspected_deadlocks"), 1);
	assert_false(play_finds(&s.play, "locks.deadlock"));
	assert_true(play_finds(&s.play, "locks.suspected-deadlock"));
	scene_done(&s);
}

static void events_lost_while_waiting_take_the_proof(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	scene_lock_start(&s, A, 100, LOCK_A, B);
	scene_lost(&s, 1);
	scene_lock_start(&s, B, 200, LOCK_B, A);
	scene_end(&s, 8, 3000);
	assert_int_equal(scene_count(&s, "locks.deadlocks"), 0);
	assert_int_equal(scene_count(&s, "locks.suspected_deadlocks"), 1);
	scene_done(&s);
}

static void events_lost_before_do_not(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	scene_lost(&s, 1);
	cross(&s, 100, 200);
	scene_end(&s, 8, 3000);
	assert_int_equal(scene_count(&s, "locks.deadlocks"), 1);
	scene_done(&s);
}

/* Both were named owner of the one lock for which both wait: old news. */
static void waiters_of_one_lock_are_no_cycle(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	scene_lock_start(&s, A, 100, LOCK_A, B);
	scene_lock_start(&s, B, 200, LOCK_A, 0);
	scene_end(&s, 8, 5000);
	assert_int_equal(scene_count(&s, "locks.deadlocks"), 0);
	assert_int_equal(scene_count(&s, "locks.suspected_deadlocks"), 0);
	scene_done(&s);
}

static void a_wait_that_ends_is_no_deadlock(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	cross(&s, 100, 200);
	scene_lock_stop(&s, B, 2500, 2300);
	scene_lock_stop(&s, A, 2501, 2400);
	scene_end(&s, 8, 3000);
	assert_int_equal(scene_count(&s, "locks.deadlocks"), 0);
	assert_int_equal(scene_count(&s, "locks.waiting"), 0);
	scene_done(&s);
}

/* 10,000 threads in one ring, each waiting for the next. */
static void a_long_cycle_takes_no_recursion(void **state)
{
	enum { RING = 10000 };
	struct scene s;
	const struct an_value *d;

	(void)state;
	begin(&s);
	for (uint64_t i = 0; i < RING; i++)
		scene_lock_start(&s, 1000 + i, 100, 0x100000 + 16 * i, 1000 + (i + 1) % RING);
	scene_end(&s, 8, 3000);
	d = play_row(&s.play, "locks.deadlocks", 0);
	assert_non_null(d);
	assert_int_equal(an_get_u64(d, "length", 0), RING);
	assert_int_equal(an_get(d, "threads")->count, 1000); /* the list is capped */
	scene_done(&s);
}

/* --- orphans, blocked threads, threads that stood there before --- */

static void a_lock_of_an_ended_thread_is_orphaned(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	scene_thread_created(&s, B, 7, 0, 10);
	scene_lock_start(&s, A, 100, LOCK_A, B);
	scene_thread_ended(&s, B, 200);
	scene_end(&s, 8, 1100);
	assert_int_equal(scene_count(&s, "locks.orphaned"), 1);
	assert_string_equal(scene_severity(&s, "locks.orphaned"), "critical");
	scene_done(&s);
}

static void it_takes_a_second_until_it_is(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	scene_thread_created(&s, B, 7, 0, 10);
	scene_lock_start(&s, A, 100, LOCK_A, B);
	scene_thread_ended(&s, B, 200);
	scene_end(&s, 8, 1099.999);
	assert_int_equal(scene_count(&s, "locks.orphaned"), 0);
	scene_is_silent(&s);
	scene_done(&s);
}

static void an_owner_missing_in_the_rundown_has_ended(void **state)
{
	for (unsigned alive = 0; alive < 2; alive++) {
		struct scene s;

		(void)state;
		begin(&s);
		scene_lock_start(&s, A, 100, LOCK_A, 5);
		scene_thread_alive(&s, A, 4, 3000);
		if (alive)
			scene_thread_alive(&s, B, 5, 3000);
		scene_end(&s, 11, 3001);
		assert_int_equal(scene_count(&s, "locks.orphaned"), !alive);
		scene_done(&s);
	}
}

static void two_seconds_at_a_lock_are_worth_a_word(void **state)
{
	for (unsigned longer = 0; longer < 2; longer++) {
		struct scene s;

		(void)state;
		begin(&s);
		scene_lock_start(&s, A, 100, LOCK_A, B);
		scene_end(&s, 8, longer ? 2100 : 2099.999);
		assert_int_equal(play_finds(&s.play, "locks.blocked"), longer);
		if (longer)
			assert_string_equal(scene_severity(&s, "locks.blocked"), "warning");
		else
			scene_is_silent(&s);
		scene_done(&s);
	}
}

/* Threads with the same stack from the first sample on. */
static void stand(struct scene *s, size_t threads, double until_ms, bool move)
{
	uint64_t slow = scene_code(s, "System.Threading.Monitor", "Enter_Slowpath");
	uint64_t mine = scene_code(s, "Shop.Till", "Close");

	for (double ms = 0; ms <= until_ms; ms += until_ms / 20) {
		play_stack(&s->play, 2, slow, mine);
		for (size_t i = 0; i < threads; i++)
			play_sample(&s->play, A + i, ms, 1);
		if (move && ms > until_ms / 2) {
			play_stack(&s->play, 1, mine);
			play_sample(&s->play, A, ms + 1, 1);
		}
	}
}

static void threads_at_locks_since_before_are_suspected(void **state)
{
	for (unsigned longer = 0; longer < 2; longer++) {
		struct scene s;

		(void)state;
		begin(&s);
		stand(&s, 2, longer ? 2000 : 1999, false);
		scene_end(&s, 10, 2100);
		assert_int_equal(scene_count(&s, "locks.stuck_since_start"), longer ? 2 : 0);
		assert_int_equal(play_finds(&s.play, "locks.suspected-deadlock"), longer);
		assert_false(play_finds(&s.play, "locks.deadlock"));
		scene_is_null(&s, "locks.deadlocks"); /* no events: nothing is known of them */
		scene_done(&s);
	}
}

static void one_such_thread_is_blocked_and_one_that_moves_is_not(void **state)
{
	for (unsigned move = 0; move < 2; move++) {
		struct scene s;

		(void)state;
		begin(&s);
		stand(&s, 1, 2000, move);
		scene_end(&s, 10, 2100);
		assert_int_equal(play_finds(&s.play, "locks.blocked"), !move);
		assert_false(play_finds(&s.play, "locks.suspected-deadlock"));
		scene_done(&s);
	}
}

/* What the system says of A and B, and what is found then; .NET before 10 has no frame of a lock.
 */
static bool suspects(unsigned major, double until_ms, char state, uint64_t cpu_ns, bool library)
{
	const struct an_os_thread os[] = {
		{ .id = A, .name = "", .state = 'S', .cpu_known = true },
		{ .id = B, .name = "", .state = state, .cpu_known = true, .cpu_ns = cpu_ns },
	};
	struct scene s;
	bool found;

	begin(&s);
	s.play.threads = os;
	s.play.thread_count = 2;
	s.play.watched_ns = 2000000000;
	if (library)
		play_stack(&s.play, 2, scene_code(&s, "System.IO.Stream", "Read"), 0x7f0000000001);
	for (double ms = 10; ms <= until_ms + 10; ms += until_ms / 4) {
		play_sample(&s.play, A, ms, 1);
		play_sample(&s.play, B, ms, 1);
	}
	scene_end(&s, major, until_ms + 20);
	found = play_finds(&s.play, "locks.suspected-deadlock");
	if (found) {
		assert_string_equal(scene_severity(&s, "locks.suspected-deadlock"), "warning");
		assert_int_equal(scene_count(&s, "locks.stuck_since_start"), 2);
	}
	assert_false(play_finds(&s.play, "locks.deadlock"));
	scene_done(&s);
	return found;
}

static void threads_asleep_in_the_program_are_suspected_before_10(void **state)
{
	(void)state;
	assert_true(suspects(8, 1000, 'S', 0, false));
	assert_true(suspects(9, 1000, 'D', 0, false));
	assert_false(suspects(8, 999, 'S', 0, false));
	assert_false(suspects(8, 1000, 'S', 1, false)); /* it ran for a moment */
	assert_false(suspects(8, 1000, 'R', 0, false));
	assert_false(suspects(10, 3000, 'S', 0, false)); /* there is a frame there */
	assert_false(suspects(0, 3000, 'S', 0, false));
	assert_false(suspects(8, 3000, 'S', 0, true)); /* it waits for something else */
}

/* With the system's word a second is enough; without it, two. */
static void who_slept_all_the_time_needs_less(void **state)
{
	static const struct an_os_thread os[] = {
		{ .id = A, .name = "", .state = 'S', .cpu_known = true },
		{ .id = B, .name = "", .state = 'S', .cpu_known = true },
	};

	(void)state;
	for (unsigned known = 0; known < 2; known++) {
		struct scene s;

		begin(&s);
		s.play.threads = known ? os : NULL;
		s.play.thread_count = known ? 2 : 0;
		play_stack(&s.play, 2, scene_code(&s, "System.Threading.Monitor", "Enter_Slowpath"),
			   scene_code(&s, "Shop.Till", "Close"));
		for (double ms = 10; ms <= 1010; ms += 250) {
			play_sample(&s.play, A, ms, 1);
			play_sample(&s.play, B, ms, 1);
		}
		scene_end(&s, 10, 1020);
		assert_int_equal(play_finds(&s.play, "locks.suspected-deadlock"), known);
		scene_done(&s);
	}
}

static const int64_t ms_ns = 1000000;

static bool is_said(struct scene *s, double ms, struct an_live *live)
{
	return an_engine_live(s->play.engine, (int64_t)(ms * (double)ms_ns), live);
}

/* While it goes on: two seconds, by the clock and not by events, of which there may be none. */
static void a_deadlock_is_said_while_it_goes_on(void **state)
{
	struct an_live live = { 0 };
	struct scene s;

	(void)state;
	begin(&s);
	assert_false(is_said(&s, 5000, &live));
	cross(&s, 100, 200);
	assert_false(is_said(&s, 2199.9, &live));
	assert_true(is_said(&s, 2200, &live));
	assert_string_equal(live.id, "locks.deadlock");
	assert_string_equal(live.text,
			    "deadlock: threads 101, 102 wait for each other's locks, for 2 s");
	scene_lock_start(&s, C, 300, LOCK_A, B);
	assert_true(is_said(&s, 9200, &live));
	assert_string_equal(live.text, "deadlock: threads 101, 102 wait for each other's locks, "
				       "for 9 s, 1 more behind them");
	scene_lock_stop(&s, A, 9300, 9200); /* it was none */
	assert_false(is_said(&s, 9400, &live));
	scene_end(&s, 10, 9500);
	assert_false(play_finds(&s.play, "locks.deadlock"));
	scene_done(&s);
}

/* Only what is proven is worth an alarm. */
static void a_suspicion_is_not_said(void **state)
{
	struct an_live live = { 0 };
	struct scene s;

	(void)state;
	begin(&s);
	scene_lock_start(&s, C, 50, LOCK_A, B);
	cross(&s, 100, 200);
	scene_lock_stop(&s, C, 300, 250); /* the lock has changed hands */
	assert_false(is_said(&s, 9000, &live));
	scene_lost(&s, 1);
	scene_end(&s, 10, 9500);
	scene_done(&s);
}

static void a_long_cycle_is_said_in_one_line(void **state)
{
	struct an_live live = { 0 };
	struct scene s;

	(void)state;
	begin(&s);
	for (uint64_t i = 0; i < 1000; i++)
		scene_lock_start(&s, 1000 + i, 100, LOCK_A + i, 1000 + (i + 1) % 1000);
	assert_true(is_said(&s, 4000, &live));
	assert_non_null(strstr(live.text, " and 996 more wait for each other's locks, for 4 s"));
	scene_end(&s, 10, 4000);
	scene_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_threads_that_wait_for_each_other_are_a_deadlock),
		cmocka_unit_test(shorter_than_a_second_is_none_yet),
		cmocka_unit_test(a_cycle_of_three_with_threads_queued_behind_it),
		cmocka_unit_test(two_deadlocks_are_told_apart),
		cmocka_unit_test(managed_owners_are_mapped_by_created_threads_and_the_rundown),
		cmocka_unit_test(a_managed_owner_without_mapping_is_named_but_leads_nowhere),
		cmocka_unit_test(ambiguous_owners_prove_nothing),
		cmocka_unit_test(without_a_version_owners_are_read_as_they_make_sense),
		cmocka_unit_test(an_unknown_owner_is_no_edge),
		cmocka_unit_test(the_newest_naming_of_an_owner_counts),
		cmocka_unit_test(a_lock_that_changed_hands_is_suspected_only),
		cmocka_unit_test(events_lost_while_waiting_take_the_proof),
		cmocka_unit_test(events_lost_before_do_not),
		cmocka_unit_test(waiters_of_one_lock_are_no_cycle),
		cmocka_unit_test(a_wait_that_ends_is_no_deadlock),
		cmocka_unit_test(a_long_cycle_takes_no_recursion),
		cmocka_unit_test(a_lock_of_an_ended_thread_is_orphaned),
		cmocka_unit_test(it_takes_a_second_until_it_is),
		cmocka_unit_test(an_owner_missing_in_the_rundown_has_ended),
		cmocka_unit_test(two_seconds_at_a_lock_are_worth_a_word),
		cmocka_unit_test(threads_asleep_in_the_program_are_suspected_before_10),
		cmocka_unit_test(who_slept_all_the_time_needs_less),
		cmocka_unit_test(a_deadlock_is_said_while_it_goes_on),
		cmocka_unit_test(a_suspicion_is_not_said),
		cmocka_unit_test(a_long_cycle_is_said_in_one_line),
		cmocka_unit_test(threads_at_locks_since_before_are_suspected),
		cmocka_unit_test(one_such_thread_is_blocked_and_one_that_moves_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
