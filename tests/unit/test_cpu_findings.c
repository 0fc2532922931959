/* SPDX-License-Identifier: MIT */
/* Findings about CPU: each there from its limit on, and silent just below. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/play.h"

static const struct an_class *const classes[] = { &an_class_cpu, NULL };

static struct play p;
static double now[300]; /* by thread, ms */

enum { EXTERNAL = 1, MANAGED = 2 };
enum { TIER_MINOPT = 1, TIER_QUICK = 3, TIER_1 = 4 };

enum {
	MAIN = 0x1000,
	HOT = 0x2000,
	WARM = 0x3000,
	SLEEP = 0x4000,
	SPIN = 0x5000,
	TIER0 = 0x6000,
	MINOPT = 0x7000,
	JIT = 0x8000,
	GC = 0x9000,
	MANY = 0x100000, /* methods of their own, 0x100 bytes each: none of them is hot */
	NOWHERE = 0xf000000
};

static void begin(void)
{
	memset(now, 0, sizeof(now));
	assert_true(play_begin(&p, NULL, classes, NULL));
}

static void method(uint64_t start, uint32_t size, const char *type, const char *name, unsigned tier)
{
	struct build b = { 0 };

	p.frame_count = 0;
	build_u64(&b, start);
	build_u64(&b, 0);
	build_u64(&b, start);
	build_u32(&b, size);
	build_u32(&b, 0);
	build_u32(&b, tier << 7);
	build_utf16(&b, type);
	build_utf16(&b, name);
	build_utf16(&b, "void  ()");
	build_u16(&b, 0);
	build_u64(&b, 0);
	play_event(&p, NT_PROV_RUNDOWN, 144, 1, 1, p.trace.format == 6 ? 0 : 1e6, &b);
}

static void finish(double end_ms)
{
	struct build b = { 0 };

	method(MAIN, 0x1000, "Shop.Program", "Main", TIER_1);
	method(HOT, 0x1000, "Shop.Cpu", "Hot", TIER_1);
	method(WARM, 0x1000, "Shop.Cpu", "Warm", TIER_1);
	method(SLEEP, 0x1000, "System.Threading.Thread", "Sleep", TIER_1);
	method(SPIN, 0x1000, "System.Threading.SpinWait", "SpinOnceCore", TIER_1);
	method(TIER0, 0x1000, "Shop.Slow", "Loop", TIER_QUICK);
	method(MINOPT, 0x1000, "Shop.Debug", "Loop", TIER_MINOPT);
	for (unsigned i = 0; i < 100; i++) {
		char name[2] = { (char)('A' + i % 26), 0 };

		method(MANY + i * 0x100, 0x100,
		       i < 26	? "Many.A"
		       : i < 52 ? "Many.B"
		       : i < 78 ? "Many.C"
				: "Many.D",
		       name, TIER_1);
	}
	for (int i = 0; i < 6; i++)
		build_u16(&b, 2);
	build_u16(&b, 10);
	for (int i = 0; i < 3; i++)
		build_u16(&b, 0);
	play_event(&p, NT_PROV_RUNDOWN, 187, 0, 1, end_ms, &b);
}

/* That many samples, one a millisecond, of a leaf under Main. */
static void samples(uint64_t thread, int count, uint64_t leaf, unsigned type)
{
	for (int i = 0; i < count; i++) {
		play_stack(&p, 2, leaf + (leaf == SLEEP ? 0 : (uint64_t)i % 16),
			   (uint64_t)MAIN + 8);
		play_sample(&p, thread, now[thread]++, type);
	}
}

/* Work spread over a hundred methods. */
static void spread(uint64_t thread, int count)
{
	for (int i = 0; i < count; i++) {
		play_stack(&p, 2, (uint64_t)MANY + (uint64_t)(i % 100) * 0x100, (uint64_t)MAIN + 8);
		play_sample(&p, thread, now[thread]++, MANAGED);
	}
}

static void perf(const char *thread_name, uint64_t leaf, int count)
{
	for (int i = 0; i < count; i++) {
		const uint64_t frames[] = { leaf + (uint64_t)(i % 50) * (leaf == MANY ? 0x100 : 0),
					    MAIN + 8 };
		const struct an_cpu_sample s = { .time_ns = i,
						 .thread_id = thread_name ? 77 : 1,
						 .thread_name = thread_name,
						 .frames = frames,
						 .frame_count = 2,
						 .class = AN_CPU_RUNNING,
						 .weight_ns = 1000000 };

		assert_int_equal(an_engine_cpu_sample(p.engine, AN_CPU_PERF, &s), NT_OK);
	}
}

static const char *words(const char *id, const char *member)
{
	return an_get_text(play_find(&p, "findings", "id", id), member, "");
}

static bool found(const char *id)
{
	bool yes;

	finish(100000);
	yes = play_finds(&p, id);
	play_end(&p);
	return yes;
}

static void a_hot_method_has_a_fifth(void **state)
{
	(void)state;
	begin();
	samples(1, 200, HOT, MANAGED);
	spread(1, 800);
	assert_true(found("cpu.hot-method"));
	begin();
	samples(1, 199, HOT, MANAGED);
	spread(1, 801);
	assert_false(found("cpu.hot-method"));
	begin(); /* too few to say */
	samples(1, 49, HOT, MANAGED);
	assert_false(found("cpu.hot-method"));
	begin();
	samples(1, 50, HOT, MANAGED);
	assert_true(found("cpu.hot-method"));
}

/* The runtime's samples do not tell who runs from who only could: no more is said than that. */
static void cores_are_a_limit_unless_measured(void **state)
{
	(void)state;
	begin();
	samples(1, 200, HOT, MANAGED);
	finish(100000);
	assert_non_null(strstr(words("cpu.hot-method", "evidence"), "kept at most about"));
	assert_null(strstr(words("cpu.hot-method", "evidence"), "weighed"));
	play_end(&p);
}

static void a_hot_method_says_what_it_calls(void **state)
{
	(void)state;
	begin();
	samples(1, 95, HOT, MANAGED);
	for (int i = 0; i < 5; i++) { /* 5 % of what it does */
		play_stack(&p, 3, (uint64_t)WARM, (uint64_t)HOT + 8, (uint64_t)MAIN + 8);
		play_sample(&p, 1, now[1]++, MANAGED);
	}
	finish(100000);
	assert_non_null(strstr(words("cpu.hot-method", "evidence"), "5 % is in Shop.Cpu.Warm"));
	play_end(&p);
	begin();
	samples(1, 96, HOT, MANAGED);
	for (int i = 0; i < 4; i++) {
		play_stack(&p, 3, (uint64_t)WARM, (uint64_t)HOT + 8, (uint64_t)MAIN + 8);
		play_sample(&p, 1, now[1]++, MANAGED);
	}
	finish(100000);
	assert_non_null(strstr(words("cpu.hot-method", "evidence"), "nothing that it calls"));
	play_end(&p);
}

/* Only where the runtime's sampler is all there is. */
static void safepoints_are_mentioned(void **state)
{
	(void)state;
	begin();
	samples(1, 200, HOT, MANAGED);
	assert_true(found("cpu.safepoint-bias"));
	begin();
	spread(1, 1000); /* nothing is called hot: nothing may be at the wrong place */
	assert_false(found("cpu.safepoint-bias"));
	begin();
	samples(1, 200, HOT, MANAGED);
	perf(NULL, HOT, 200);
	assert_false(found("cpu.safepoint-bias"));
}

static bool one_thread(int busy, int others, int waiting, double end_ms)
{
	bool yes;

	begin();
	for (int i = 0; i < busy; i++) {
		play_stack(&p, 2, (uint64_t)HOT + (uint64_t)i % 16, (uint64_t)MAIN + 8);
		play_sample(&p, 1, i, MANAGED);
		if (i < others) {
			play_stack(&p, 1, (uint64_t)WARM + (uint64_t)i % 16);
			play_sample(&p, 2, i + 0.01, MANAGED);
		}
		if (i < waiting) {
			play_stack(&p, 2, (uint64_t)SLEEP, (uint64_t)MAIN + 8);
			play_sample(&p, 3, i + 0.02, EXTERNAL);
		}
	}
	finish(end_ms);
	yes = play_finds(&p, "cpu.one-thread");
	play_end(&p);
	return yes;
}

static void one_thread_does_all_the_work(void **state)
{
	(void)state;
	assert_true(one_thread(1910, 150, 1000, 2000));
	assert_false(one_thread(1750, 150, 1000, 2000)); /* not all the time */
	assert_false(one_thread(1910, 260, 1000, 2000)); /* another one works, too */
	assert_false(one_thread(1910, 0, 0, 2000)); /* nobody waits */
	assert_false(one_thread(1910, 0, 49, 2000)); /* too few samples to say so */
	assert_false(one_thread(900, 0, 800, 950)); /* less than a second */
}

static void spinning_is_a_tenth(void **state)
{
	(void)state;
	begin();
	samples(1, 100, SPIN, EXTERNAL);
	spread(1, 900);
	finish(100000);
	assert_true(play_finds(&p, "cpu.spinning"));
	assert_non_null(strstr(words("cpu.spinning", "evidence"), "Shop.Program.Main"));
	play_end(&p);
	begin();
	samples(1, 99, SPIN, EXTERNAL);
	spread(1, 901);
	assert_false(found("cpu.spinning"));
}

static void hot_code_that_was_never_optimized(void **state)
{
	(void)state;
	begin();
	samples(1, 200, TIER0, MANAGED);
	spread(1, 800);
	finish(100000);
	assert_true(play_finds(&p, "cpu.hot-tier0"));
	assert_non_null(strstr(words("cpu.hot-tier0", "title"), "Shop.Slow.Loop"));
	assert_null(strstr(words("cpu.hot-tier0", "advice"), "debugging"));
	play_end(&p);
	begin();
	samples(1, 199, TIER0, MANAGED);
	spread(1, 801);
	assert_false(found("cpu.hot-tier0"));
	begin();
	samples(1, 200, MINOPT, MANAGED);
	finish(100000);
	assert_non_null(strstr(words("cpu.hot-tier0", "advice"), "debugging"));
	play_end(&p);
	begin(); /* optimized */
	samples(1, 200, HOT, MANAGED);
	assert_false(found("cpu.hot-tier0"));
	/* Stopped in an optimized call that it waits in: it is not its code that runs. */
	begin();
	for (unsigned i = 0; i < 200; i++) {
		play_stack(&p, 2, (uint64_t)SLEEP, (uint64_t)TIER0 + 8);
		play_sample(&p, 1, i, MANAGED);
	}
	finish(100000);
	assert_false(play_finds(&p, "cpu.hot-tier0"));
	assert_int_equal(an_get_u64(play_find(&p, "cpu.methods", "method", "Shop.Slow.Loop"),
				    "exclusive_on_cpu", 0),
			 200);
	assert_int_equal(
		an_get(play_find(&p, "cpu.methods", "method", "Shop.Slow.Loop"), "tier")->kind,
		AN_NULL);
	play_end(&p);
}

static bool runtime_work(const char *id, const char *thread, const char *file, const char *name,
			 int of_200)
{
	bool yes;

	begin();
	perf(thread, JIT, of_200);
	perf(NULL, MANY, 200 - of_200);
	if (file)
		assert_int_equal(an_engine_native_code(p.engine, JIT, JIT + 0xfff, file, name),
				 NT_OK);
	finish(100000);
	yes = play_finds(&p, id);
	play_end(&p);
	return yes;
}

static void the_runtimes_own_work_is_a_fifth(void **state)
{
	(void)state;
	assert_true(runtime_work("cpu.jit", NULL, "/x/libclrjit.so", "Compiler::compile", 40));
	assert_false(runtime_work("cpu.jit", NULL, "/x/libclrjit.so", "Compiler::compile", 39));
	assert_true(runtime_work("cpu.jit", NULL, "/x/libclrjit.so", NULL, 40));
	assert_true(runtime_work("cpu.jit", ".NET Tiered Compilation Worker", NULL, NULL, 40));
	assert_true(runtime_work("cpu.gc", NULL, "/x/libcoreclr.so", "WKS::gc_heap::mark", 40));
	assert_false(runtime_work("cpu.gc", NULL, "/x/libcoreclr.so", "WKS::gc_heap::mark", 39));
	assert_true(runtime_work("cpu.gc", ".NET Server GC", NULL, NULL, 40));
	assert_false(runtime_work("cpu.gc", NULL, "/x/libcoreclr.so", "JIT_New", 40));
}

static void code_without_a_name_is_a_tenth(void **state)
{
	(void)state;
	begin();
	samples(1, 100, NOWHERE, MANAGED);
	spread(1, 900);
	assert_true(found("cpu.unresolved"));
	begin();
	samples(1, 99, NOWHERE, MANAGED);
	spread(1, 901);
	assert_false(found("cpu.unresolved"));
	/* A handful of samples, as of a program that idles, says nothing. */
	begin();
	samples(1, 50, NOWHERE, MANAGED);
	assert_true(found("cpu.unresolved"));
	begin();
	samples(1, 49, NOWHERE, MANAGED);
	assert_false(found("cpu.unresolved"));
}

static void mostly_waiting_is_below_a_twentieth(void **state)
{
	(void)state;
	begin();
	spread(1, 49);
	samples(2, 951, SLEEP, EXTERNAL);
	assert_true(found("cpu.mostly-waiting"));
	begin();
	spread(1, 50);
	samples(2, 950, SLEEP, EXTERNAL);
	assert_false(found("cpu.mostly-waiting"));
}

static void slow_rounds_are_coarse(void **state)
{
	(void)state;
	for (int slow = 0; slow < 2; slow++) {
		begin();
		for (int i = 0; i < 100; i++) {
			play_stack(&p, 1, (uint64_t)HOT + (uint64_t)i % 16);
			play_sample(&p, 1, i * (slow ? 5.02 : 4.98), MANAGED);
		}
		assert_int_equal(found("cpu.coarse"), slow);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hot_method_has_a_fifth),
		cmocka_unit_test(cores_are_a_limit_unless_measured),
		cmocka_unit_test(a_hot_method_says_what_it_calls),
		cmocka_unit_test(safepoints_are_mentioned),
		cmocka_unit_test(one_thread_does_all_the_work),
		cmocka_unit_test(spinning_is_a_tenth),
		cmocka_unit_test(hot_code_that_was_never_optimized),
		cmocka_unit_test(the_runtimes_own_work_is_a_fifth),
		cmocka_unit_test(code_without_a_name_is_a_tenth),
		cmocka_unit_test(mostly_waiting_is_below_a_twentieth),
		cmocka_unit_test(slow_rounds_are_coarse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
