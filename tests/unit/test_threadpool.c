/* SPDX-License-Identifier: MIT */
/* The thread pool: starvation by samples and by the pool's own events, who blocks, the queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failalloc.h"
#include "tests/support/scene.h"

enum { WORKER = 1000, STEP_MS = 10 };
enum { WARMUP, STARVATION = 6, TIMED_OUT = 7, COOPERATIVE = 8 };

struct stage {
	struct scene s;
	uint64_t wait, mine, other, dispatch, worker, idle;
};

static bool prepare(struct stage *g, const struct nt_alloc *alloc)
{
	if (!scene_begin(&g->s, alloc))
		return false;
	g->wait = scene_code(&g->s, "System.Threading.Tasks.Task", "InternalWaitCore");
	g->mine = scene_code(&g->s, "Shop.Order", "Handle");
	g->other = scene_code(&g->s, "Shop.Order", "Compute");
	g->dispatch = scene_code(&g->s, "System.Threading.ThreadPoolWorkQueue", "Dispatch");
	g->worker = scene_code(&g->s, "System.Threading.PortableThreadPool+WorkerThread",
			       "WorkerThreadStart");
	g->idle = scene_code(&g->s, "System.Threading.LowLevelLifoSemaphore", "WaitForSignal");
	return true;
}

static void begin(struct stage *g)
{
	assert_true(prepare(g, NULL));
}

/* One round of samples: so many workers wait in Handle, run in Compute, and idle. */
static void sample(struct stage *g, double ms, unsigned waiting, unsigned running, unsigned idle)
{
	uint64_t thread = WORKER;

	play_stack(&g->s.play, 4, g->wait, g->mine, g->dispatch, g->worker);
	while (waiting--)
		play_sample(&g->s.play, thread++, ms, 1);
	play_stack(&g->s.play, 3, g->other, g->dispatch, g->worker);
	while (running--)
		play_sample(&g->s.play, thread++, ms, 2);
	play_stack(&g->s.play, 2, g->idle, g->worker);
	while (idle--)
		play_sample(&g->s.play, thread++, ms, 1);
}

static void sample_for(struct stage *g, double from_ms, double to_ms, unsigned waiting,
		       unsigned running, unsigned idle)
{
	for (double ms = from_ms; ms <= to_ms; ms += STEP_MS)
		sample(g, ms, waiting, running, idle);
}

static bool starves(unsigned waiting, unsigned running, unsigned idle, double for_ms)
{
	struct stage g;
	bool found;

	begin(&g);
	sample_for(&g, 100, 100 + for_ms, waiting, running, idle);
	scene_end(&g.s, 8, 5000);
	found = play_finds(&g.s.play, "threadpool.starvation");
	assert_int_equal(an_get(play_report(&g.s.play), "threadpool.starvation")->u, found);
	if (found)
		assert_string_equal(scene_severity(&g.s, "threadpool.starvation"), "critical");
	else
		scene_is_silent(&g.s);
	scene_done(&g.s);
	return found;
}

/* Two processors: the pool starts two threads at once, a third because work waits. */
static void all_workers_waiting_for_a_second_is_starvation(void **state)
{
	(void)state;
	assert_true(starves(3, 0, 0, 1000));
	assert_false(starves(3, 0, 0, 990));
	assert_false(starves(2, 0, 0, 4000)); /* no more than it starts by itself */
	assert_true(starves(38, 1, 1, 1000)); /* 95 % */
	assert_false(starves(37, 1, 1, 4000));
	assert_false(starves(8, 0, 1, 4000)); /* one idles */
	assert_false(starves(0, 40, 0, 4000)); /* busy is not blocked */
}

static void the_minimum_of_the_pool_counts_when_it_is_known(void **state)
{
	for (unsigned min = 9; min <= 10; min++) {
		struct stage g;

		(void)state;
		begin(&g);
		scene_min_max(&g.s, 10, min, 100);
		sample_for(&g, 100, 2000, 10, 0, 0);
		scene_end(&g.s, 8, 2100);
		assert_int_equal(play_finds(&g.s.play, "threadpool.starvation"), min == 9);
		assert_int_equal(scene_number(&g.s, "threadpool.evidence.min_workers"), min);
		assert_int_equal(
			an_get(play_report(&g.s.play), "threadpool.evidence.min_workers_assumed")
				->u,
			0);
		scene_done(&g.s);
	}
}

/* Half a second each, with a pause between: no second of it without a break. */
static void short_blocks_do_not_add_up(void **state)
{
	struct stage g;

	(void)state;
	begin(&g);
	for (double ms = 0; ms < 8000; ms += 1000) {
		sample_for(&g, ms, ms + 490, 4, 0, 0);
		sample_for(&g, ms + 500, ms + 990, 0, 4, 0);
	}
	scene_end(&g.s, 8, 8000);
	assert_true(scene_number(&g.s, "threadpool.evidence.blocked_ms") <= 500);
	assert_true(scene_number(&g.s, "threadpool.evidence.blocked_total_ms") >= 3900);
	scene_is_silent(&g.s);
	scene_done(&g.s);
}

static void a_long_recording_still_has_its_starved_minutes(void **state)
{
	struct stage g;

	(void)state;
	begin(&g);
	for (double ms = 0; ms < 600000; ms += 100)
		sample(&g, ms, ms >= 200000 && ms < 400000 ? 5 : 0, 5, ms < 200000 ? 5 : 0);
	for (double ms = 600000; ms < 900000; ms += 100)
		sample(&g, ms, 5, 0, 0);
	scene_end(&g.s, 8, 900000);
	assert_true(play_finds(&g.s.play, "threadpool.starvation"));
	assert_true(scene_number(&g.s, "threadpool.evidence.blocked_ms") > 280000);
	assert_true(scene_number(&g.s, "threadpool.evidence.blocked_ms") <= 300000);
	scene_done(&g.s);
}

/* Idle workers of 3.1 have no frames, so that none idles there says nothing. */
static void core_3_1_cannot_be_judged_by_samples(void **state)
{
	struct stage g;

	(void)state;
	begin(&g);
	sample_for(&g, 100, 3000, 8, 0, 0);
	scene_end(&g.s, 4, 3100);
	scene_is_silent(&g.s);
	scene_done(&g.s);
}

/* Up to .NET 9 a thread at a lock has no frame of it: the event tells. */
static void workers_at_locks_are_blocked_too(void **state)
{
	struct stage g;

	(void)state;
	begin(&g);
	play_stack(&g.s.play, 3, g.other, g.dispatch, g.worker);
	for (unsigned i = 0; i < 4; i++)
		scene_lock_start(&g.s, WORKER + i, 50, 0x1000, 1);
	sample_for(&g, 100, 1200, 0, 4, 0);
	for (unsigned i = 0; i < 4; i++)
		scene_lock_stop(&g.s, WORKER + i, 1210, 1160);
	scene_end(&g.s, 8, 1300);
	assert_true(play_finds(&g.s.play, "threadpool.starvation"));
	assert_string_equal(
		an_get_text(play_row(&g.s.play, "threadpool.blockers", 0), "method", ""),
		"Shop.Order.Compute");
	scene_done(&g.s);
}

static void blockers_are_merged_by_method(void **state)
{
	struct stage g;
	const struct an_value *b;

	(void)state;
	begin(&g);
	sample(&g, 10, 3, 1, 0);
	play_stack(&g.s.play, 5, g.wait + 1, g.wait, g.mine, g.dispatch, g.worker);
	play_sample(&g.s.play, WORKER, 20, 1); /* the same thread, another stack */
	play_sample(&g.s.play, WORKER + 7, 20, 1);
	play_stack(&g.s.play, 2, g.wait, g.mine); /* not of the pool */
	play_sample(&g.s.play, 5, 20, 1);
	scene_end(&g.s, 8, 1000);
	assert_int_equal(scene_count(&g.s, "threadpool.blockers"), 1);
	b = play_row(&g.s.play, "threadpool.blockers", 0);
	assert_string_equal(an_get_text(b, "method", ""), "Shop.Order.Handle");
	assert_string_equal(an_get_text(b, "call", ""),
			    "System.Threading.Tasks.Task.InternalWaitCore");
	assert_int_equal(an_get_u64(b, "threads", 0), 4);
	assert_int_equal(an_get_u64(b, "samples", 0), 5);
	assert_int_equal(an_get(b, "frames")->count, 4);
	scene_done(&g.s);
}

/* --- the pool's own events --- */

static bool starves_by_adjustments(unsigned n, unsigned raises, uint32_t reason)
{
	struct scene s;
	uint32_t workers = 4;
	bool found;

	assert_true(scene_begin(&s, NULL));
	scene_adjustment(&s, 1, workers, reason);
	for (unsigned i = 1; i < n; i++)
		scene_adjustment(&s, 1 + 500 * i, i <= raises ? ++workers : --workers, reason);
	scene_end(&s, 8, 5000);
	found = play_finds(&s.play, "threadpool.starvation");
	if (found)
		assert_string_equal(scene_severity(&s, "threadpool.starvation"), "warning");
	else
		scene_is_silent(&s);
	scene_done(&s);
	return found;
}

static void threads_added_for_blocked_workers_are_starvation(void **state)
{
	(void)state;
	assert_true(starves_by_adjustments(3, 2, STARVATION));
	assert_true(starves_by_adjustments(3, 2, COOPERATIVE));
	assert_false(starves_by_adjustments(2, 2, COOPERATIVE)); /* too few */
	assert_false(starves_by_adjustments(3, 1, COOPERATIVE)); /* does not climb */
	assert_false(starves_by_adjustments(9, 9, WARMUP));
	assert_false(starves_by_adjustments(9, 9, TIMED_OUT));
}

static void the_history_keeps_the_newest(void **state)
{
	struct scene s;

	(void)state;
	assert_true(scene_begin(&s, NULL));
	for (unsigned i = 0; i < 300; i++)
		scene_adjustment(&s, i, 10 + i % 7, i % 2 ? WARMUP : TIMED_OUT);
	scene_adjustment(&s, 300, 3, 77);
	scene_end(&s, 8, 1000);
	assert_int_equal(scene_number(&s, "threadpool.adjustments.count"), 301);
	assert_int_equal(scene_number(&s, "threadpool.adjustments.by_reason.warmup"), 150);
	assert_int_equal(scene_number(&s, "threadpool.adjustments.by_reason.timed_out"), 150);
	assert_int_equal(scene_number(&s, "threadpool.adjustments.by_reason.other"), 1);
	assert_int_equal(scene_number(&s, "threadpool.adjustments.workers_first"), 10);
	assert_int_equal(scene_number(&s, "threadpool.adjustments.workers_last"), 3);
	assert_int_equal(scene_number(&s, "threadpool.adjustments.workers_max"), 16);
	assert_int_equal(scene_count(&s, "threadpool.adjustments.history"), 256);
	assert_int_equal(scene_number(&s, "threadpool.adjustments.history_dropped"), 45);
	assert_int_equal(
		an_get_f64(play_row(&s.play, "threadpool.adjustments.history", 0), "time_ms", 0),
		45);
	scene_done(&s);
}

static void changes_of_settings_are_listed_once(void **state)
{
	struct scene s;

	(void)state;
	assert_true(scene_begin(&s, NULL));
	scene_min_max(&s, 1, 2, 100);
	scene_min_max(&s, 2, 2, 100);
	scene_min_max(&s, 3, 50, 100);
	scene_worker(&s, 50, 4, 7);
	scene_worker(&s, 57, 5, 4);
	scene_end(&s, 8, 1000);
	assert_int_equal(scene_count(&s, "threadpool.settings"), 2);
	assert_int_equal(an_get_u64(play_row(&s.play, "threadpool.settings", 1), "min_workers", 0),
			 50);
	assert_int_equal(scene_number(&s, "threadpool.active_max"), 7);
	assert_int_equal(scene_number(&s, "threadpool.active_last"), 4);
	scene_done(&s);
}

static void more_settings_than_kept_leave_the_newest(void **state)
{
	struct scene s;

	(void)state;
	assert_true(scene_begin(&s, NULL));
	for (unsigned i = 0; i < 20; i++)
		scene_min_max(&s, i, 1 + i, 100);
	scene_end(&s, 8, 1000);
	assert_int_equal(scene_count(&s, "threadpool.settings"), 16);
	assert_int_equal(scene_number(&s, "threadpool.settings_dropped"), 4);
	assert_int_equal(scene_number(&s, "threadpool.evidence.min_workers"), 20);
	scene_done(&s);
}

/* --- the queue --- */

static bool queue_is_slow(unsigned n, double delay_ms)
{
	struct scene s;
	bool found;

	assert_true(scene_begin(&s, NULL));
	for (unsigned i = 0; i < n; i++) {
		scene_task_queued(&s, 10 * i, 1 + i, 0);
		scene_task_started(&s, 10 * i + delay_ms, 1 + i);
	}
	scene_end(&s, 8, 5000);
	found = play_finds(&s.play, "threadpool.queue-delay");
	if (!found)
		scene_is_silent(&s);
	scene_done(&s);
	return found;
}

static bool queue_is_stuck(unsigned n, double age_ms)
{
	struct scene s;
	bool found;

	assert_true(scene_begin(&s, NULL));
	for (unsigned i = 0; i < n; i++)
		scene_task_queued(&s, 100, 1 + i, 0);
	scene_end(&s, 8, 100 + age_ms);
	found = play_finds(&s.play, "threadpool.queue-delay");
	assert_int_equal(scene_number(&s, "threadpool.queue.waiting"), n);
	scene_is_null(&s, "threadpool.queue.p95_ms");
	scene_done(&s);
	return found;
}

static void a_slow_queue_is_worth_a_word(void **state)
{
	(void)state;
	assert_true(queue_is_slow(20, 100));
	assert_false(queue_is_slow(19, 100));
	assert_false(queue_is_slow(20, 99.999));
	assert_true(queue_is_stuck(10, 1000));
	assert_false(queue_is_stuck(9, 1000));
	assert_false(queue_is_stuck(10, 999.999));
}

static void long_running_tasks_do_not_wait_for_the_pool(void **state)
{
	struct scene s;

	(void)state;
	assert_true(scene_begin(&s, NULL));
	for (unsigned i = 0; i < 20; i++)
		scene_task_queued(&s, 100, 1 + i, 2);
	scene_end(&s, 8, 5000);
	scene_is_null(&s, "threadpool.queue");
	scene_is_silent(&s);
	scene_done(&s);
}

static void the_queue_is_bounded(void **state)
{
	struct scene s;
	double waiting, evicted;

	(void)state;
	assert_true(scene_begin(&s, NULL));
	for (unsigned i = 0; i < 50000; i++)
		scene_task_queued(&s, 100, 1 + i, 0);
	for (unsigned i = 0; i < 50000; i += 5)
		scene_task_started(&s, 200, 1 + i);
	scene_task_started(&s, 300, 900000); /* queued before the session */
	scene_end(&s, 8, 5000);
	waiting = scene_number(&s, "threadpool.queue.waiting");
	evicted = scene_number(&s, "threadpool.queue.not_followed");
	assert_true(waiting <= 32 * 1024);
	assert_true(evicted > 0);
	assert_int_equal(waiting + evicted + scene_number(&s, "threadpool.queue.started"), 50000);
	scene_done(&s);
}

/* --- bounds and failures --- */

static void nothing_recorded_is_null(void **state)
{
	struct stage g;

	(void)state;
	begin(&g);
	play_stack(&g.s.play, 1, g.mine); /* samples, but of no worker */
	play_sample(&g.s.play, 5, 100, 2);
	scene_end(&g.s, 8, 1000);
	scene_is_null(&g.s, "threadpool.starvation");
	scene_is_null(&g.s, "threadpool.evidence");
	scene_is_null(&g.s, "threadpool.blockers");
	scene_is_null(&g.s, "threadpool.adjustments");
	scene_is_null(&g.s, "threadpool.queue");
	scene_is_null(&g.s, "threadpool.active_max");
	scene_done(&g.s);
}

/* More different stacks than there is room for: windows are merged, then samples are counted. */
static void stacks_beyond_the_cap_are_counted(void **state)
{
	struct stage g;
	uint64_t deep = 0;

	(void)state;
	begin(&g);
	for (unsigned i = 0; i < 70000; i++) {
		play_stack(&g.s.play, 3, 0x500000 + (uint64_t)i * 16, g.dispatch, g.worker);
		play_sample(&g.s.play, WORKER + i % 50, 1 + i / 10, 2);
	}
	scene_end(&g.s, 8, 8000);
	deep = (uint64_t)scene_number(&g.s, "threadpool.samples_not_told_apart");
	assert_true(deep >= 70000 - 64 * 1024 && deep < 70000);
	scene_done(&g.s);
}

static void times_may_be_anything(void **state)
{
	static const double times[] = { -9.2e12, 9.2e12, 0, -5, 9e12, 1 };
	struct stage g;

	(void)state;
	begin(&g);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		sample(&g, times[i], 4, 0, 0);
		scene_adjustment(&g.s, times[i], 4, STARVATION);
		scene_task_queued(&g.s, times[i], 7, 0);
		scene_task_started(&g.s, -times[i], 7);
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
			scene_wait_start(&g.s, 7, 1);
			sample_for(&g, 100, 1300, 4, 0, 0);
			scene_adjustment(&g.s, 1400, 4, STARVATION);
			scene_task_queued(&g.s, 1400, 7, 0);
			scene_task_started(&g.s, 1500, 7);
			scene_end(&g.s, 8, 2000);
			(void)play_report(&g.s.play);
			assert_int_equal(g.s.play.status, fa.failed ? NT_ENOMEM : NT_OK);
		}
		play_end(&g.s.play);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_workers_waiting_for_a_second_is_starvation),
		cmocka_unit_test(the_minimum_of_the_pool_counts_when_it_is_known),
		cmocka_unit_test(short_blocks_do_not_add_up),
		cmocka_unit_test(a_long_recording_still_has_its_starved_minutes),
		cmocka_unit_test(core_3_1_cannot_be_judged_by_samples),
		cmocka_unit_test(workers_at_locks_are_blocked_too),
		cmocka_unit_test(blockers_are_merged_by_method),
		cmocka_unit_test(threads_added_for_blocked_workers_are_starvation),
		cmocka_unit_test(the_history_keeps_the_newest),
		cmocka_unit_test(changes_of_settings_are_listed_once),
		cmocka_unit_test(more_settings_than_kept_leave_the_newest),
		cmocka_unit_test(a_slow_queue_is_worth_a_word),
		cmocka_unit_test(long_running_tasks_do_not_wait_for_the_pool),
		cmocka_unit_test(the_queue_is_bounded),
		cmocka_unit_test(nothing_recorded_is_null),
		cmocka_unit_test(stacks_beyond_the_cap_are_counted),
		cmocka_unit_test(times_may_be_anything),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
