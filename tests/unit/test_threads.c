/* SPDX-License-Identifier: MIT */
/* Threads: counts, growth, and groups that were started and forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failalloc.h"
#include "tests/support/scene.h"

enum { FIRST = 1000, STEP_MS = 100, END_MS = 5000 };

struct stage {
	struct scene s;
	uint64_t wait, mine, other, callback, start, boss, dispatch;
};

static bool prepare(struct stage *g, const struct nt_alloc *alloc)
{
	if (!scene_begin(&g->s, alloc))
		return false;
	g->wait = scene_code(&g->s, "System.Threading.ManualResetEventSlim", "Wait");
	g->mine = scene_code(&g->s, "Shop.Courier", "Deliver");
	g->other = scene_code(&g->s, "Shop.Courier", "Drive");
	g->callback = scene_code(&g->s, "System.Threading.Thread", "StartCallback");
	g->start = scene_code(&g->s, "System.Threading.Thread", "Start");
	g->boss = scene_code(&g->s, "Shop.Boss", "Hire");
	g->dispatch = scene_code(&g->s, "System.Threading.ThreadPoolWorkQueue", "Dispatch");
	return true;
}

static void begin(struct stage *g)
{
	assert_true(prepare(g, NULL));
}

static void create(struct stage *g, uint64_t os, double ms)
{
	play_stack(&g->s.play, 2, g->start, g->boss);
	scene_thread_creating(&g->s, os, ms);
	g->s.play.frame_count = 0;
	scene_thread_created(&g->s, os, (uint32_t)(os - FIRST + 4), 0, ms);
}

static void sample_waiting(struct stage *g, uint64_t from, uint64_t to, double ms)
{
	play_stack(&g->s.play, 3, g->wait, g->mine, g->callback);
	for (uint64_t os = from; os < to; os++)
		play_sample(&g->s.play, os, ms, 1);
}

/*
 * So many threads are there from the start, so many are created, one each step; of those so many
 * end at once.  All others wait in one place.
 */
static void hire(struct stage *g, unsigned before, unsigned created, unsigned ended)
{
	uint64_t next = FIRST + before;

	for (double ms = 0; ms < END_MS; ms += STEP_MS) {
		if (created && ms >= STEP_MS) {
			create(g, next, ms);
			if (ended) {
				sample_waiting(g, next, next + 1, ms + 1);
				scene_thread_ended(&g->s, next, ms + 2);
				ended--;
			}
			next++;
			created--;
		}
		sample_waiting(g, FIRST, next, ms + 5);
	}
	scene_end(&g->s, 10, END_MS);
}

static bool leaks(unsigned before, unsigned created, unsigned ended)
{
	struct stage g;
	bool found;

	begin(&g);
	hire(&g, before, created, ended);
	found = play_finds(&g.s.play, "threads.leak");
	if (found)
		assert_string_equal(scene_severity(&g.s, "threads.leak"), "warning");
	else
		scene_is_silent(&g.s);
	scene_done(&g.s);
	return found;
}

static void many_alike_that_wait_ever_since_are_a_leak(void **state)
{
	(void)state;
	assert_true(leaks(5, 5, 0));
	assert_false(leaks(4, 5, 0)); /* nine */
	assert_false(leaks(6, 4, 0)); /* four of them new: may be a start-up */
	assert_false(leaks(40, 0, 0)); /* parked, all the time */
}

static void the_group_is_described(void **state)
{
	struct stage g;
	const struct an_value *row;

	(void)state;
	begin(&g);
	hire(&g, 10, 30, 0);
	assert_int_equal(scene_number(&g.s, "threads.created"), 30);
	assert_int_equal(scene_number(&g.s, "threads.ended"), 0);
	assert_int_equal(scene_number(&g.s, "threads.sampled_at_end"), 40);
	assert_int_equal(scene_number(&g.s, "threads.growth_per_minute"), 360);
	scene_is_null(&g.s, "threads.alive_at_end");
	assert_int_equal(scene_count(&g.s, "threads.leaked"), 1);
	row = play_row(&g.s.play, "threads.leaked", 0);
	assert_string_equal(an_get_text(row, "method", ""), "Shop.Courier.Deliver");
	assert_string_equal(an_get_text(row, "waits_in", ""), "Shop.Courier.Deliver");
	assert_string_equal(an_get_text(row, "call", ""),
			    "System.Threading.ManualResetEventSlim.Wait");
	assert_string_equal(an_get_text(row, "started_by", ""), "Shop.Boss.Hire");
	assert_int_equal(an_get_u64(row, "threads", 0), 40);
	assert_int_equal(an_get_u64(row, "created_in_session", 0), 30);
	assert_int_equal(an_get(row, "thread_ids")->count, 8);
	scene_done(&g.s);
}

static void threads_that_end_are_no_leak(void **state)
{
	struct stage g;

	(void)state;
	begin(&g);
	/* 20 created, 9 of them end; those are not sampled again */
	for (unsigned i = 0; i < 20; i++) {
		create(&g, FIRST + i, 10);
		sample_waiting(&g, FIRST + i, FIRST + i + 1, 20);
	}
	for (unsigned i = 0; i < 9; i++)
		scene_thread_ended(&g.s, FIRST + i, 100);
	for (double ms = 100; ms < END_MS; ms += STEP_MS)
		sample_waiting(&g, FIRST + 9, FIRST + 20, ms);
	scene_end(&g.s, 10, END_MS);
	scene_is_silent(&g.s);
	assert_int_equal(scene_number(&g.s, "threads.ended"), 9);
	assert_int_equal(scene_count(&g.s, "threads.leaked"), 0);
	assert_int_equal(scene_count(&g.s, "threads.parked"), 1);
	scene_done(&g.s);
}

/* A stack that changes later than a second after the first sample: it does something. */
static void threads_that_move_do_not_count(void **state)
{
	for (unsigned late = 0; late < 2; late++) {
		struct stage g;
		double move_ms = late ? 1100 : 1000;

		(void)state;
		begin(&g);
		for (unsigned i = 0; i < 20; i++)
			create(&g, FIRST + i, 0);
		for (double ms = 0; ms < END_MS; ms += STEP_MS) {
			if (ms < move_ms) {
				play_stack(&g.s.play, 3, g.other, g.mine, g.callback);
				for (unsigned i = 0; i < 20; i++)
					play_sample(&g.s.play, FIRST + i, ms, 2);
			} else {
				sample_waiting(&g, FIRST, FIRST + 20, ms);
			}
		}
		scene_end(&g.s, 10, END_MS);
		assert_int_equal(play_finds(&g.s.play, "threads.leak"), !late);
		scene_done(&g.s);
	}
}

static void workers_of_the_pool_do_not_count(void **state)
{
	struct stage g;

	(void)state;
	begin(&g);
	for (unsigned i = 0; i < 40; i++) {
		create(&g, FIRST + i, 10);
		scene_thread_created(&g.s, 5000 + i, 100 + i, 4, 10);
	}
	for (double ms = 20; ms < END_MS; ms += STEP_MS) {
		play_stack(&g.s.play, 4, g.wait, g.mine, g.dispatch, g.callback);
		for (unsigned i = 0; i < 40; i++)
			play_sample(&g.s.play, FIRST + i, ms, 1);
		play_stack(&g.s.play, 3, g.wait, g.mine, g.callback);
		for (unsigned i = 0; i < 40; i++)
			play_sample(&g.s.play, 5000 + i, ms, 1);
	}
	scene_end(&g.s, 3, END_MS);
	assert_false(play_finds(&g.s.play, "threads.leak"));
	assert_int_equal(scene_count(&g.s, "threads.leaked"), 0);
	scene_done(&g.s);
}

/* Without events about threads, new ones are those that appear later in samples. */
static void samples_alone_tell_who_is_new(void **state)
{
	struct stage g;
	const struct an_value *row;

	(void)state;
	begin(&g);
	for (double ms = 0; ms < END_MS; ms += STEP_MS)
		sample_waiting(&g, FIRST, FIRST + 5 + (uint64_t)(ms / 500), ms);
	scene_end(&g.s, 10, END_MS);
	row = play_row(&g.s.play, "threads.leaked", 0);
	assert_int_equal(an_get_u64(row, "threads", 0), 14);
	assert_int_equal(an_get_u64(row, "created_in_session", 0), 9);
	assert_int_equal(an_get(row, "started_by")->kind, AN_NULL);
	assert_true(play_finds(&g.s.play, "threads.leak"));
	scene_is_null(&g.s, "threads.created");
	scene_is_null(&g.s, "threads.growth_per_minute");
	scene_done(&g.s);
}

static bool grows(unsigned n, uint32_t flags)
{
	struct scene s;
	bool found;

	assert_true(scene_begin(&s, NULL));
	for (unsigned i = 0; i < n; i++)
		scene_thread_created(&s, FIRST + i, 4 + i, flags, i);
	scene_end(&s, 10, END_MS);
	found = play_finds(&s.play, "threads.growth");
	if (!found)
		scene_is_silent(&s);
	scene_is_null(&s, "threads.leaked"); /* no samples */
	scene_done(&s);
	return found;
}

static void growth_without_samples(void **state)
{
	(void)state;
	assert_true(grows(50, 0));
	assert_false(grows(49, 0));
	assert_false(grows(100, 4)); /* of the pool */
}

static bool churns(unsigned created, unsigned ended, double until_ms)
{
	struct scene s;
	bool found;

	assert_true(scene_begin(&s, NULL));
	for (unsigned i = 0; i < created; i++) {
		scene_thread_created(&s, FIRST + i, 4 + i, 0, 1 + i * 0.1);
		if (i < ended)
			scene_thread_ended(&s, FIRST + i, 1 + i * 0.1 + 0.05);
	}
	scene_end(&s, 10, until_ms);
	found = play_finds(&s.play, "threads.churn");
	if (!found && created - ended < 50)
		scene_is_silent(&s);
	scene_done(&s);
	return found;
}

static void short_lives_are_churn(void **state)
{
	(void)state;
	assert_true(churns(200, 160, 2000));
	assert_false(churns(199, 199, 1900)); /* fewer than 200 */
	assert_false(churns(200, 200, 2001)); /* fewer than 100 each second */
	assert_false(churns(200, 159, 2000)); /* fewer than 80 % ended */
}

static void the_rundown_counts_who_is_alive(void **state)
{
	struct scene s;

	(void)state;
	assert_true(scene_begin(&s, NULL));
	scene_thread_alive(&s, FIRST, 1, 999);
	scene_thread_alive(&s, FIRST + 1, 2, 999);
	scene_end(&s, 11, 1000);
	assert_int_equal(scene_number(&s, "threads.alive_at_end"), 2);
	scene_is_null(&s, "threads.sampled_at_end");
	scene_is_null(&s, "threads.created");
	scene_done(&s);
}

/* Ids are used again: the newest user counts, and ended threads make room. */
static void a_hundred_thousand_threads_one_after_the_other(void **state)
{
	struct scene s;

	(void)state;
	assert_true(scene_begin(&s, NULL));
	for (unsigned i = 0; i < 100000; i++) {
		scene_thread_created(&s, FIRST + i, 4 + i % 10, 0, i);
		scene_thread_ended(&s, FIRST + i, i + 0.5);
	}
	scene_end(&s, 10, 100000);
	assert_int_equal(scene_number(&s, "threads.created"), 100000);
	assert_int_equal(scene_number(&s, "threads.ended"), 100000);
	assert_null(an_get(play_report(&s.play), "threads.not_followed"));
	scene_done(&s);
}

static void more_threads_at_a_time_than_followed_are_counted(void **state)
{
	struct stage g;

	(void)state;
	begin(&g);
	for (unsigned i = 0; i < 40000; i++) {
		scene_thread_created(&g.s, FIRST + i, 4 + i, 0, 1);
		play_sample(&g.s.play, FIRST + i, 2, 1);
	}
	scene_end(&g.s, 10, END_MS);
	assert_int_equal(scene_number(&g.s, "threads.created"), 40000);
	assert_true(scene_number(&g.s, "threads.not_followed") >= 2 * (40000 - 32768));
	scene_done(&g.s);
}

static void times_may_be_anything(void **state)
{
	static const double times[] = { -9.2e12, 9.2e12, 0, -5, 9e12, 1 };
	struct stage g;

	(void)state;
	begin(&g);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		create(&g, FIRST + i, times[i]);
		sample_waiting(&g, FIRST, FIRST + 8, times[i]);
		scene_thread_ended(&g.s, FIRST + i, -times[i]);
	}
	scene_end(&g.s, 8, 1000);
	scene_done(&g.s);
}

static void every_failing_allocation_is_survived(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct stage g;

		if (prepare(&g, &fa.alloc)) {
			scene_wait_start(&g.s, FIRST, 1);
			hire(&g, 6, 6, 0);
			(void)play_report(&g.s.play);
			assert_int_equal(g.s.play.status, fa.failed ? NT_ENOMEM : NT_OK);
		}
		play_end(&g.s.play);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_alike_that_wait_ever_since_are_a_leak),
		cmocka_unit_test(the_group_is_described),
		cmocka_unit_test(threads_that_end_are_no_leak),
		cmocka_unit_test(threads_that_move_do_not_count),
		cmocka_unit_test(workers_of_the_pool_do_not_count),
		cmocka_unit_test(samples_alone_tell_who_is_new),
		cmocka_unit_test(growth_without_samples),
		cmocka_unit_test(short_lives_are_churn),
		cmocka_unit_test(the_rundown_counts_who_is_alive),
		cmocka_unit_test(a_hundred_thousand_threads_one_after_the_other),
		cmocka_unit_test(more_threads_at_a_time_than_followed_are_counted),
		cmocka_unit_test(times_may_be_anything),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
