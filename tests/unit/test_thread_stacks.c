/* SPDX-License-Identifier: MIT */
/* What each thread was doing: from its newest stack, events of locks, and the system. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failalloc.h"
#include "tests/support/scene.h"

enum { A = 100, B = 101, C = 102, D = 103, END_MS = 2000 };

static const uint64_t second = 1000000000;

struct stage {
	struct scene s;
	uint64_t main, callback, till, count, sleep, mres, spin, wait, lock, loop, idle;
};

static bool prepare(struct stage *g, const struct nt_alloc *alloc)
{
	if (!scene_begin(&g->s, alloc))
		return false;
	g->main = scene_code(&g->s, "Shop.Program", "Main");
	g->callback = scene_code(&g->s, "System.Threading.Thread", "StartCallback");
	g->till = scene_code(&g->s, "Shop.Till", "Open");
	g->count = scene_code(&g->s, "Shop.Till", "Count");
	g->sleep = scene_code(&g->s, "System.Threading.Thread", "Sleep");
	g->mres = scene_code(&g->s, "System.Threading.ManualResetEventSlim", "Wait");
	g->spin = scene_code(&g->s, "System.Threading.Tasks.Task", "SpinThenBlockingWait");
	g->wait = scene_code(&g->s, "System.Threading.Monitor", "Wait");
	g->lock = scene_code(&g->s, "System.Threading.Monitor", "Enter_Slowpath");
	g->loop = scene_code(&g->s, "System.Threading.PortableThreadPool+WorkerThread",
			     "WorkerThreadStart");
	g->idle = scene_code(&g->s, "System.Threading.LowLevelLifoSemaphore", "WaitNative");
	return true;
}

static void begin(struct stage *g)
{
	assert_true(prepare(g, NULL));
}

/* Samples of one thread with the present stack, all the time. */
static void sample(struct stage *g, uint64_t thread, unsigned type)
{
	for (double ms = 1; ms < END_MS; ms += 100)
		play_sample(&g->s.play, thread, ms, type);
}

static const struct an_value *row(struct stage *g, uint64_t thread)
{
	const struct an_value *list = an_get(play_report(&g->s.play), "stacks");

	assert_non_null(list);
	for (const struct an_value *v = list->first; v; v = v->next)
		if (an_get_u64(v, "thread_id", 0) == thread)
			return v;
	fail_msg("thread %d is not there", (int)thread);
	return NULL;
}

static void does(struct stage *g, uint64_t thread, const char *state, const char *what)
{
	const struct an_value *v = row(g, thread);

	assert_string_equal(an_get_text(v, "state", ""), state);
	if (what)
		assert_string_equal(an_get_text(v, "waiting_on", ""), what);
	else
		assert_int_equal(an_get(v, "waiting_on")->kind, AN_NULL);
}

static void frames_say_what_a_thread_waits_for(void **state)
{
	struct stage g;

	(void)state;
	begin(&g);
	play_stack(&g.s.play, 3, g.sleep, g.till, g.main);
	sample(&g, A, 1);
	/* The outermost of the library's knows best. */
	play_stack(&g.s.play, 5, g.wait, g.mres, g.spin, g.till, g.main);
	sample(&g, B, 1);
	play_stack(&g.s.play, 3, g.lock, g.till, g.main);
	sample(&g, C, 1);
	play_stack(&g.s.play, 3, g.idle, g.loop, g.callback);
	sample(&g, D, 1);
	scene_end(&g.s, 10, END_MS);
	does(&g, A, "waiting", "Thread.Sleep");
	does(&g, B, "waiting", "a task");
	does(&g, C, "waiting", "a lock");
	does(&g, D, "waiting", "work");
	assert_true(an_get_u64(row(&g, A), "own_code", 0));
	assert_false(an_get_u64(row(&g, D), "own_code", 1));
	/* Who runs no code of the program comes last. */
	assert_int_equal(an_get_u64(play_row(&g.s.play, "stacks", 3), "thread_id", 0), D);
	assert_int_equal(an_get(row(&g, B), "frames")->count, 5);
	assert_string_equal(an_get(row(&g, B), "frames")->last->text, "Shop.Program.Main");
	assert_int_equal(an_get_f64(row(&g, A), "unchanged_ms", 0), 1900);
	scene_done(&g.s);
}

/* .NET 9 says of no sample that it was in managed code: then only the stack counts. */
static void what_a_sample_alone_says(void **state)
{
	static const struct {
		unsigned major, type;
		const char *state;
	} rows[] = {
		{ 10, 2, "running" },
		{ 10, 1, "unknown" },
		{ 9, 2, "unknown" },
		{ 9, 1, "unknown" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stage g;

		begin(&g);
		play_stack(&g.s.play, 2, g.till, g.main);
		sample(&g, A, rows[i].type);
		scene_end(&g.s, rows[i].major, END_MS);
		does(&g, A, rows[i].state, NULL);
		assert_int_equal(an_get(row(&g, A), "cpu_ms")->kind, AN_NULL);
		scene_done(&g.s);
	}
}

/* The newest stack counts, and since when it is the same. */
static void the_newest_stack_is_shown(void **state)
{
	struct stage g;

	(void)state;
	begin(&g);
	play_stack(&g.s.play, 2, g.till, g.main);
	play_sample(&g.s.play, A, 10, 2);
	play_stack(&g.s.play, 2, g.count, g.main);
	play_sample(&g.s.play, A, 20, 2);
	play_sample(&g.s.play, A, 50, 2);
	scene_end(&g.s, 10, 60);
	assert_string_equal(an_get(row(&g, A), "frames")->first->text, "Shop.Till.Count");
	assert_int_equal(an_get_f64(row(&g, A), "unchanged_ms", 0), 30);
	scene_done(&g.s);
}

/* One that is not sampled any more, while others are, has ended. */
static void who_has_ended_is_left_out(void **state)
{
	struct stage g;

	(void)state;
	begin(&g);
	play_stack(&g.s.play, 2, g.till, g.main);
	play_sample(&g.s.play, A, 10, 2);
	play_sample(&g.s.play, B, 11, 2);
	play_sample(&g.s.play, C, 511, 2);
	scene_end(&g.s, 10, 600);
	assert_int_equal(scene_count(&g.s, "stacks"), 2);
	scene_done(&g.s);
}

static void the_owner_of_the_lock_is_named(void **state)
{
	struct stage g;

	(void)state;
	begin(&g);
	play_stack(&g.s.play, 2, g.till, g.main);
	scene_lock_start(&g.s, A, 5, 0x1000, B);
	sample(&g, A, 1);
	sample(&g, B, 2);
	scene_end(&g.s, 8, END_MS);
	does(&g, A, "waiting", "a lock"); /* on 8 there is no frame of it */
	assert_string_equal(an_get_text(row(&g, A), "lock", ""), "0x1000");
	assert_int_equal(an_get_u64(row(&g, A), "owner_thread_id", 0), B);
	does(&g, B, "running", NULL);
	assert_null(an_get(row(&g, B), "lock"));
	scene_done(&g.s);
}

/* --- the system --- */

static void watch(struct stage *g, const struct an_os_thread *threads, size_t count)
{
	g->s.play.threads = threads;
	g->s.play.thread_count = count;
	g->s.play.watched_ns = 2 * second;
}

static void the_system_knows_better(void **state)
{
	static const struct {
		char state;
		uint64_t cpu_ns;
		unsigned type; /* of the samples in a plain method */
		const char *does, *what;
	} rows[] = {
		{ 'R', 1900000000, 2, "running", NULL },
		{ 'S', 100000000, 1, "running", NULL }, /* 5 % */
		{ 'S', 99999999, 2, "running", NULL },
		{ 'S', 0, 2, "waiting", "a lock, or native code" },
		{ 'S', 0, 1, "waiting", "a lock, or native code" },
		{ 'S', 1000, 1, "waiting", "a lock, or native code" },
		{ 'D', 0, 1, "waiting", "a lock, or native code" },
		{ 'R', 0, 1, "ready", NULL },
		{ 'T', 0, 1, "stopped", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct an_os_thread os = { .id = A,
					   .name = "till",
					   .state = rows[i].state,
					   .cpu_known = true,
					   .cpu_ns = rows[i].cpu_ns };
		struct stage g;

		begin(&g);
		watch(&g, &os, 1);
		play_stack(&g.s.play, 2, g.till, g.main);
		sample(&g, A, rows[i].type);
		scene_end(&g.s, 8, END_MS);
		does(&g, A, rows[i].does, rows[i].what);
		assert_string_equal(an_get_text(row(&g, A), "name", ""), "till");
		assert_int_equal(an_get_f64(row(&g, A), "cpu_ms", -1) * 1000,
				 rows[i].cpu_ns / 1000);
		scene_done(&g.s);
	}
}

static void threads_without_managed_code_are_listed(void **state)
{
	static const struct an_os_thread os[] = {
		{ .id = 50, .name = "native", .state = 'S', .cpu_known = true },
		{ .id = A, .name = "till", .state = 'S', .cpu_known = true },
		{ .id = 150,
		  .name = "busy",
		  .state = 'R',
		  .cpu_known = true,
		  .cpu_ns = 2000000000 },
	};
	struct stage g;

	(void)state;
	begin(&g);
	watch(&g, os, 3);
	play_stack(&g.s.play, 2, g.sleep, g.main);
	sample(&g, A, 1);
	sample(&g, B, 1); /* the system does not have it any more */
	scene_end(&g.s, 10, END_MS);
	assert_int_equal(scene_count(&g.s, "stacks"), 3);
	assert_int_equal(an_get_u64(play_row(&g.s.play, "stacks", 0), "thread_id", 0), A);
	does(&g, 50, "waiting", NULL);
	does(&g, 150, "running", NULL);
	assert_false(an_get_u64(row(&g, 50), "managed", 1));
	assert_int_equal(an_get(row(&g, 50), "unchanged_ms")->kind, AN_NULL);
	assert_int_equal(an_get(row(&g, 50), "frames")->count, 0);
	scene_done(&g.s);
}

/* --- much, and too little --- */

static void ten_thousand_threads(void **state)
{
	enum { MANY = 10000 };
	struct stage g;

	(void)state;
	begin(&g);
	play_stack(&g.s.play, 3, g.sleep, g.till, g.main);
	for (double ms = 1; ms < 500; ms += 100)
		for (uint64_t t = 0; t < MANY; t++)
			play_sample(&g.s.play, A + t, ms, 1);
	scene_end(&g.s, 10, 500);
	assert_int_equal(scene_count(&g.s, "stacks"), MANY);
	scene_done(&g.s);
}

static void every_failing_allocation_is_survived(void **state)
{
	static const struct an_os_thread os[] = {
		{ .id = 50, .name = "native", .state = 'S' },
		{ .id = A, .name = "till", .state = 'S' },
	};
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct stage g;

		if (prepare(&g, &fa.alloc)) {
			watch(&g, os, 2);
			play_stack(&g.s.play, 2, g.till, g.main);
			scene_lock_start(&g.s, A, 5, 0x1000, B);
			sample(&g, A, 1);
			scene_end(&g.s, 10, END_MS);
			(void)play_report(&g.s.play);
			assert_int_equal(g.s.play.status, fa.failed ? NT_ENOMEM : NT_OK);
		}
		play_end(&g.s.play);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_say_what_a_thread_waits_for),
		cmocka_unit_test(what_a_sample_alone_says),
		cmocka_unit_test(the_newest_stack_is_shown),
		cmocka_unit_test(who_has_ended_is_left_out),
		cmocka_unit_test(the_owner_of_the_lock_is_named),
		cmocka_unit_test(the_system_knows_better),
		cmocka_unit_test(threads_without_managed_code_are_listed),
		cmocka_unit_test(ten_thousand_threads),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
