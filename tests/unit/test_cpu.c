/* SPDX-License-Identifier: MIT */
/* Who was running: samples of made-up threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failalloc.h"
#include "tests/support/play.h"

static const struct an_class *const classes[] = { &an_class_cpu, NULL };

static struct play p;
static double end_ms; /* of the session: the rundown comes then */

enum { EXTERNAL = 1, MANAGED = 2 };

/* Code of the world these tests play in. */
enum {
	MAIN = 0x1000,
	HOT = 0x2000,
	WARM = 0x3000,
	SLEEP = 0x4000,
	INTEROP = 0x5000,
	SPIN = 0x6000,
	RECURSE = 0x7000,
	WAITSLOW = 0x8000,
	POLL = 0x9000,
	WORKER = 0xa000,
	SEMAPHORE = 0xb000,
	NOWHERE = 0xf000
};

static void begin(enum an_view view)
{
	const struct an_options options = { .view = view };

	assert_true(play_begin(&p, NULL, classes, &options));
	end_ms = 100000;
}

static void method(uint64_t start, const char *type, const char *name)
{
	p.frame_count = 0;
	play_method(&p, true, start, 0x1000, type, name, "void  ()", end_ms);
}

/* The rundown, with the version of the runtime; 0: not told. */
static void finish(unsigned major)
{
	struct build b = { 0 };

	method(MAIN, "Shop.Program", "Main");
	method(HOT, "Shop.Cpu", "Hot");
	method(WARM, "Shop.Cpu", "Warm");
	method(SLEEP, "System.Threading.Thread", "Sleep");
	method(INTEROP, "Interop+Sys", "Compress");
	method(SPIN, "System.Threading.SpinWait", "SpinOnceCore");
	method(RECURSE, "Shop.Tree", "Walk");
	method(WAITSLOW, "System.Threading.Monitor", "Enter_Slowpath");
	method(POLL, "System.Threading.Thread", "PollGC");
	method(WORKER, "System.Threading.PortableThreadPool+WorkerThread", "WorkerThreadStart");
	method(SEMAPHORE, "System.Threading.LowLevelLifoSemaphore", "WaitNative");
	if (!major)
		return;
	for (int i = 0; i < 6; i++)
		build_u16(&b, 2);
	build_u16(&b, major);
	for (int i = 0; i < 3; i++)
		build_u16(&b, 0);
	play_event(&p, NT_PROV_RUNDOWN, 187, 0, 1, end_ms, &b);
}

/* count samples of a thread, one a millisecond, with leaf (its address counts up) under Main. */
static double samples(uint64_t thread, double ms, int count, uint64_t leaf, bool moves,
		      unsigned type)
{
	for (int i = 0; i < count; i++) {
		play_stack(&p, 2, leaf + (moves ? (uint64_t)i : 0), (uint64_t)MAIN + 0x10);
		play_sample(&p, thread, ms + i, type);
	}
	return ms + count;
}

static uint64_t number(const char *path)
{
	return an_get_u64(play_report(&p), path, UINT64_MAX);
}

static uint64_t of_method(const char *name, const char *member)
{
	const struct an_value *row = play_find(&p, "cpu.methods", "method", name);

	return row ? an_get_u64(row, member, UINT64_MAX) : 0;
}

static void check_states(uint64_t on_cpu, uint64_t waiting, uint64_t unknown)
{
	assert_int_equal(number("cpu.samples_on_cpu"), on_cpu);
	assert_int_equal(number("cpu.samples_waiting"), waiting);
	assert_int_equal(number("cpu.samples_unknown"), unknown);
	assert_int_equal(number("cpu.samples"),
			 on_cpu + (waiting == UINT64_MAX ? 0 : waiting) + unknown);
}

static void managed_samples_run(void **state)
{
	double ms = 0;

	(void)state;
	begin(AN_VIEW_CPU);
	ms = samples(1, ms, 60, HOT, true, MANAGED);
	ms = samples(1, ms, 40, WARM, true, MANAGED);
	samples(2, 0, 100, SLEEP, false, EXTERNAL);
	finish(10);
	check_states(100, 100, 0);
	assert_int_equal(of_method("Shop.Cpu.Hot", "exclusive_samples"), 60);
	assert_int_equal(of_method("Shop.Cpu.Warm", "exclusive_samples"), 40);
	assert_int_equal(of_method("Shop.Program.Main", "exclusive_samples"), 0);
	assert_int_equal(of_method("Shop.Program.Main", "inclusive_samples"), 100);
	assert_int_equal(of_method("Shop.Program.Main", "waiting"), 100);
	assert_null(play_find(&p, "cpu.methods", "method", "System.Threading.Thread.Sleep"));
	assert_true(an_get_f64(play_row(&p, "cpu.methods", 0), "exclusive_percent", 0) == 60);
	assert_string_equal(an_get_text(play_report(&p), "cpu.source", ""), "sample-profiler");
	assert_string_equal(an_get_text(play_report(&p), "cpu.view", ""), "cpu");
	assert_true(play_finds(&p, "cpu.hot-method"));
	play_end(&p);
}

static void views_choose_what_is_ranked(void **state)
{
	(void)state;
	for (enum an_view view = AN_VIEW_CPU; view <= AN_VIEW_WAITING; view++) {
		static const char *const first[] = { "Shop.Cpu.Hot",
						     "System.Threading.Thread.Sleep",
						     "System.Threading.Thread.Sleep" };
		static const uint64_t of_main[] = { 30, 100, 70 };

		begin(view);
		samples(1, 0, 30, HOT, true, MANAGED);
		samples(2, 0, 70, SLEEP, false, EXTERNAL);
		finish(8);
		check_states(30, 70, 0);
		assert_string_equal(an_get_text(play_row(&p, "cpu.methods", 0), "method", ""),
				    first[view]);
		assert_int_equal(of_method("Shop.Program.Main", "inclusive_samples"),
				 of_main[view]);
		play_end(&p);
	}
}

static void native_code_is_unknown(void **state)
{
	(void)state;
	begin(AN_VIEW_WALL);
	samples(1, 0, 200, INTEROP, false, EXTERNAL); /* may compute: not called parked */
	samples(2, 0, 20, HOT, true, EXTERNAL); /* an inlined call, or a helper of the runtime */
	samples(3, 0, 10, SPIN, false, EXTERNAL); /* burns CPU */
	finish(10);
	check_states(10, 0, 220);
	play_end(&p);
}

/* On 8 and 9 a lock leaves no frame: the leaf is the program's method, and it does not move. */
static void a_stack_that_does_not_move_is_parked(void **state)
{
	(void)state;
	begin(AN_VIEW_WALL);
	samples(1, 0, 60, HOT, false, EXTERNAL);
	samples(2, 0, 40, HOT, false, EXTERNAL); /* too short to tell */
	finish(8);
	check_states(0, 60, 40);
	play_end(&p);
	/* In managed code it is a loop, however long it stays at one address. */
	begin(AN_VIEW_WALL);
	samples(1, 0, 800, HOT, false, MANAGED);
	finish(8);
	check_states(800, 0, 0);
	play_end(&p);
	/* Few samples far apart say nothing about what was between. */
	begin(AN_VIEW_WALL);
	for (int i = 0; i < 5; i++)
		samples(1, i * 30.0, 1, HOT, false, EXTERNAL);
	finish(8);
	check_states(0, 0, 5);
	play_end(&p);
}

/* .NET 9 says "external" always. */
static void on_net9_the_stack_alone_decides(void **state)
{
	(void)state;
	begin(AN_VIEW_CPU);
	samples(1, 0, 200, HOT, true, EXTERNAL);
	samples(2, 0, 70, HOT, false, EXTERNAL); /* one call of a tight loop */
	samples(3, 0, 300, SLEEP, false, EXTERNAL);
	samples(4, 0, 20, SLEEP, false, MANAGED); /* seen on waiting threads there */
	samples(5, 0, 600, WARM, false, EXTERNAL); /* a lock, or a very long loop */
	samples(6, 0, 15, INTEROP, true, EXTERNAL);
	samples(7, 0, 5, NOWHERE, true, EXTERNAL);
	finish(9);
	check_states(270, 320, 620);
	assert_int_equal(of_method("Shop.Cpu.Hot", "exclusive_samples"), 270);
	assert_int_equal(number("cpu.samples_unresolved"), 5);
	assert_true(play_finds(&p, "cpu.state-estimated"));
	play_end(&p);
}

static void without_a_version_managed_samples_tell(void **state)
{
	(void)state;
	begin(AN_VIEW_CPU);
	samples(1, 0, 100, HOT, true, EXTERNAL);
	finish(0);
	check_states(100, 0, 0); /* as on 9 */
	play_end(&p);
	begin(AN_VIEW_CPU);
	samples(1, 0, 100, HOT, true, EXTERNAL);
	samples(1, 200, 10, HOT, true, MANAGED);
	finish(0);
	check_states(10, 0, 100);
	assert_false(play_finds(&p, "cpu.state-estimated"));
	play_end(&p);
}

/* A running thread stopped in Sleep(0) or at a poll: the work is that of its caller. */
static void work_belongs_to_the_program(void **state)
{
	(void)state;
	begin(AN_VIEW_CPU);
	for (int i = 0; i < 30; i++) {
		play_stack(&p, 3, (uint64_t)SLEEP, (uint64_t)HOT + 8, (uint64_t)MAIN + 8);
		play_sample(&p, 1, i, MANAGED);
		play_stack(&p, 3, (uint64_t)POLL, (uint64_t)WARM + 8, (uint64_t)MAIN + 8);
		play_sample(&p, 2, i, MANAGED);
		/* The runtime's own thread looks for work: no work of the program. */
		play_stack(&p, 2, (uint64_t)SEMAPHORE, (uint64_t)WORKER + 8);
		play_sample(&p, 3, i, MANAGED);
	}
	finish(10);
	check_states(60, 0, 30);
	assert_int_equal(of_method("Shop.Cpu.Hot", "exclusive_samples"), 30);
	assert_int_equal(of_method("Shop.Cpu.Warm", "exclusive_samples"), 30);
	play_end(&p);
	/* The wall view shows leaves as they are. */
	begin(AN_VIEW_WALL);
	play_stack(&p, 3, (uint64_t)SLEEP, (uint64_t)HOT + 8, (uint64_t)MAIN + 8);
	play_sample(&p, 1, 0, MANAGED);
	finish(10);
	assert_int_equal(of_method("System.Threading.Thread.Sleep", "exclusive_samples"), 1);
	play_end(&p);
}

static void event(uint32_t id, uint64_t thread, double ms)
{
	struct build b = { 0 };

	p.frame_count = 0;
	build_u8(&b, 0);
	build_u16(&b, 0);
	play_event(&p, NT_PROV_RUNTIME, id, 1, thread, ms, &b);
}

static void waits_told_by_events_are_waits(void **state)
{
	(void)state;
	begin(AN_VIEW_WALL);
	samples(1, 0, 10, HOT, true, MANAGED);
	event(81, 1, 10.5);
	samples(1, 11, 10, HOT, true, MANAGED); /* whatever its type and stack */
	samples(2, 11, 10, HOT, true, MANAGED); /* another thread */
	event(91, 1, 21.5);
	samples(1, 22, 10, HOT, true, MANAGED);
	event(301, 1, 40);
	event(301, 1, 40.1); /* nested */
	event(302, 1, 40.2);
	samples(1, 41, 5, HOT, true, EXTERNAL);
	event(302, 1, 47);
	event(302, 1, 47.1); /* one too many */
	samples(1, 48, 5, HOT, true, MANAGED);
	finish(10);
	check_states(10 + 10 + 10 + 5, 10 + 5, 0);
	play_end(&p);
}

/* When events were lost the end of the wait may be among them. */
static void a_wait_across_a_loss_is_not_believed(void **state)
{
	(void)state;
	begin(AN_VIEW_WALL);
	event(81, 1, 1);
	samples(1, 2, 5, HOT, true, MANAGED);
	assert_int_equal(an_engine_sink.lost(p.engine, 1, 3, 0), NT_OK);
	samples(1, 10, 5, HOT, true, MANAGED);
	event(81, 1, 20);
	samples(1, 21, 5, HOT, true, MANAGED);
	finish(10);
	check_states(5, 10, 0);
	play_end(&p);
}

static void recursion_counts_once_a_stack(void **state)
{
	(void)state;
	begin(AN_VIEW_CPU);
	for (int i = 0; i < 10; i++) {
		p.frame_count = 5000;
		for (size_t k = 0; k < 4999; k++)
			p.stack[k] = RECURSE + 1 + k % 7;
		p.stack[4999] = MAIN + 8;
		play_sample(&p, 1, i, MANAGED);
	}
	finish(10);
	assert_int_equal(of_method("Shop.Tree.Walk", "inclusive_samples"), 10);
	assert_int_equal(of_method("Shop.Tree.Walk", "exclusive_samples"), 10);
	assert_int_equal(of_method("Shop.Program.Main", "inclusive_samples"), 10);
	assert_true(an_get(play_report(&p), "cpu.hot_path")->count <= 512);
	play_end(&p);
}

static void the_hot_path_goes_to_where_most_is_spent(void **state)
{
	const struct an_value *v;

	(void)state;
	begin(AN_VIEW_CPU);
	samples(1, 0, 30, HOT, true, MANAGED);
	samples(1, 40, 20, WARM, true, MANAGED);
	samples(2, 0, 500, SLEEP, false, EXTERNAL);
	finish(10);
	v = an_get(play_report(&p), "cpu.hot_path");
	assert_int_equal(v->count, 2);
	assert_string_equal(an_get_text(v->first, "method", ""), "Shop.Program.Main");
	assert_int_equal(an_get_u64(v->first, "inclusive_samples", 0), 50);
	assert_string_equal(an_get_text(v->last, "method", ""), "Shop.Cpu.Hot");
	assert_int_equal(an_get_u64(v->last, "exclusive_samples", 0), 30);
	assert_true(an_get_f64(v->last, "exclusive_percent", 0) == 60);
	play_end(&p);
}

/* Time is measured between rounds, and a thread that only waits has none. */
static void time_comes_from_the_rounds(void **state)
{
	const struct an_value *v;

	(void)state;
	begin(AN_VIEW_CPU);
	for (int i = 0; i < 100; i++) {
		play_stack(&p, 1, (uint64_t)HOT + (uint64_t)i);
		play_sample(&p, 1, i * 2.0, MANAGED);
		play_stack(&p, 1, (uint64_t)SLEEP);
		play_sample(&p, 2, i * 2.0 + 0.05, EXTERNAL);
	}
	finish(10);
	assert_true(an_get_f64(play_report(&p), "cpu.interval_ms", 0) > 1.98);
	assert_true(an_get_f64(play_report(&p), "cpu.interval_ms", 0) < 2.02);
	v = play_row(&p, "cpu.threads", 0);
	assert_int_equal(an_get_u64(v, "thread_id", 0), 1);
	assert_int_equal(an_get_u64(v, "samples", 0), 100);
	assert_true(an_get_f64(v, "cpu_time_ms", 0) > 199);
	assert_true(an_get_f64(v, "cpu_time_ms", 0) < 201);
	v = play_row(&p, "cpu.threads", 1);
	assert_int_equal(an_get_u64(v, "samples_on_cpu", 9), 0);
	assert_true(an_get_f64(v, "cpu_time_ms", 9) == 0);
	play_end(&p);
}

/* Five threads ready on two processors cannot have used more than two. */
static void time_is_not_more_than_the_processors_have(void **state)
{
	double sum = 0;

	(void)state;
	begin(AN_VIEW_CPU);
	for (int i = 0; i < 100; i++) {
		for (uint64_t thread = 1; thread <= 5; thread++) {
			play_stack(&p, 1, (uint64_t)HOT + (uint64_t)i);
			play_sample(&p, thread, i + (double)thread * 0.01, MANAGED);
		}
	}
	end_ms = 100;
	finish(10);
	for (size_t i = 0; i < 5; i++)
		sum += an_get_f64(play_row(&p, "cpu.threads", i), "cpu_time_ms", -1000);
	assert_true(sum > 199 && sum < 200.1);
	play_end(&p);
}

static void samples_without_stack_or_name_are_counted(void **state)
{
	(void)state;
	begin(AN_VIEW_WALL);
	p.frame_count = 0;
	play_sample(&p, 1, 1, MANAGED);
	play_event(&p, NT_PROV_SAMPLER, 0, 0, 1, 2, NULL); /* no payload */
	samples(1, 3, 2, NOWHERE, true, MANAGED);
	samples(1, 9, 1, HOT, true, MANAGED);
	finish(10);
	assert_int_equal(number("cpu.samples"), 5);
	assert_int_equal(number("cpu.samples_unresolved"), 4);
	assert_non_null(play_find(&p, "cpu.methods", "method", "[unknown 0xf000]"));
	assert_non_null(play_find(&p, "cpu.methods", "method", "[unknown 0xf001]"));
	play_end(&p);
}

static void no_samples_is_said_and_null(void **state)
{
	static const char *const names[] = { "cpu.source", "cpu.samples", "cpu.samples_on_cpu",
					     "cpu.samples_unresolved", "cpu.interval_ms" };

	(void)state;
	begin(AN_VIEW_CPU);
	finish(10);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(an_get(play_report(&p), names[i])->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "cpu.methods")->count, 0);
	assert_true(play_finds(&p, "cpu.not-recorded"));
	play_end(&p);
	/* NativeAOT cannot have any. */
	begin(AN_VIEW_CPU);
	p.trace.processors = -1;
	assert_int_equal(an_engine_sink.trace(p.engine, &p.trace), NT_OK);
	play_event(&p, NT_PROV_RUNTIME, 1, 2, 1, 1, NULL);
	assert_non_null(strstr(
		an_get_text(play_find(&p, "findings", "id", "cpu.not-recorded"), "title", ""),
		"NativeAOT"));
	play_end(&p);
}

/* Files of version 6: samples of running threads only, from outside. */
static void universal_samples_all_run(void **state)
{
	static const struct nt_field value = { .name = "Value", .type = NT_T_VARUINT };
	static const char *const members[] = { "cpu.samples_waiting", "cpu.context_switches" };
	const struct an_value *v;

	(void)state;
	begin(AN_VIEW_CPU);
	p.trace.format = 6;
	assert_int_equal(an_engine_sink.trace(p.engine, &p.trace), NT_OK);
	p.thread_name = "worker";
	for (int i = 0; i < 50; i++) {
		struct build b = { 0 };

		build_varuint(&b, 1);
		play_stack(&p, 1, (uint64_t)SLEEP);
		play_own(&p, NT_PROV_UNIVERSAL_EVENTS, "cpu", 1, &value, 1, 7, i, &b);
		play_own(&p, NT_PROV_UNIVERSAL_EVENTS, "cswitch", 2, &value, 1, 7, i, NULL);
	}
	finish(10);
	assert_string_equal(an_get_text(play_report(&p), "cpu.source", ""), "universal");
	check_states(50, UINT64_MAX, 0); /* who waits is not known */
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		v = an_get(play_report(&p), members[i]);
		assert_non_null(v);
		assert_int_equal(v->kind, AN_NULL);
	}
	v = play_row(&p, "cpu.methods", 0);
	assert_int_equal(an_get(v, "waiting")->kind, AN_NULL);
	assert_int_equal(an_get(v, "exclusive_waiting")->kind, AN_NULL);
	v = play_row(&p, "cpu.threads", 0);
	assert_int_equal(an_get(v, "samples_waiting")->kind, AN_NULL);
	assert_true(an_get_f64(play_report(&p), "cpu.interval_ms", 0) == 1);
	assert_true(an_get_f64(play_row(&p, "cpu.threads", 0), "cpu_time_ms", 0) == 50);
	assert_string_equal(an_get_text(play_row(&p, "cpu.threads", 0), "name", ""), "worker");
	play_end(&p);
}

/* More threads and stacks than are kept apart: all samples are still counted. */
static void very_many_threads_and_stacks_are_bounded(void **state)
{
	struct failalloc fa;
	const struct an_options options = { .view = AN_VIEW_WALL, .top = 5 };

	(void)state;
	failalloc_init(&fa, 0);
	assert_true(play_begin(&p, &fa.alloc, classes, &options));
	for (uint64_t i = 0; i < 150000; i++) {
		play_stack(&p, 1, HOT + i % 4096);
		play_sample(&p, i % 20000, (double)i, MANAGED);
	}
	finish(10);
	check_states(150000, 0, 0);
	assert_true(play_finds(&p, "cpu.too-many-stacks"));
	assert_int_equal(an_get(play_report(&p), "cpu.threads")->count, 5);
	assert_true(fa.peak_bytes < 48 << 20);
	play_end(&p);
	assert_int_equal(fa.live, 0);
}

static void every_failing_allocation_is_survived(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		if (play_begin(&p, &fa.alloc, classes, NULL)) {
			for (uint64_t thread = 0; thread < 40; thread++)
				samples(thread, 0, 3, HOT, true, MANAGED);
			samples(1, 5, 60, SLEEP, false, EXTERNAL);
			finish(10);
			play_report(&p);
			assert_int_equal(p.status, fa.failed ? NT_ENOMEM : NT_OK);
		}
		play_end(&p);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(managed_samples_run),
		cmocka_unit_test(views_choose_what_is_ranked),
		cmocka_unit_test(native_code_is_unknown),
		cmocka_unit_test(a_stack_that_does_not_move_is_parked),
		cmocka_unit_test(on_net9_the_stack_alone_decides),
		cmocka_unit_test(without_a_version_managed_samples_tell),
		cmocka_unit_test(work_belongs_to_the_program),
		cmocka_unit_test(waits_told_by_events_are_waits),
		cmocka_unit_test(a_wait_across_a_loss_is_not_believed),
		cmocka_unit_test(recursion_counts_once_a_stack),
		cmocka_unit_test(the_hot_path_goes_to_where_most_is_spent),
		cmocka_unit_test(time_comes_from_the_rounds),
		cmocka_unit_test(time_is_not_more_than_the_processors_have),
		cmocka_unit_test(samples_without_stack_or_name_are_counted),
		cmocka_unit_test(no_samples_is_said_and_null),
		cmocka_unit_test(universal_samples_all_run),
		cmocka_unit_test(very_many_threads_and_stacks_are_bounded),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
