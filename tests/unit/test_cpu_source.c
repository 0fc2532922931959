/* SPDX-License-Identifier: MIT */
/* Samples of a profiler of the operating system, and measured CPU use of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failalloc.h"
#include "tests/support/play.h"

static const struct an_class *const classes[] = { &an_class_cpu, NULL };

static struct play p;

enum { EXTERNAL = 1, MANAGED = 2 };
enum {
	MAIN = 0x1000,
	HOT = 0x2000,
	WARM = 0x3000,
	SLEEP = 0x4000,
	LOCK = 0x5000,
	NATIVE = 0x900000
};

static void begin(enum an_view view)
{
	const struct an_options options = { .view = view };

	assert_true(play_begin(&p, NULL, classes, &options));
}

static void finish(unsigned major)
{
	static const char *const names[] = { "Main", "Hot", "Warm", "Sleep", "Locks" };
	struct build b = { 0 };

	p.frame_count = 0;
	for (unsigned i = 0; i < 5; i++)
		play_method(&p, true, 0x1000u * (i + 1), 0x1000,
			    i == 3 ? "System.Threading.Thread" : "Shop.Cpu", names[i], "void  ()",
			    100000);
	for (int i = 0; i < 6; i++)
		build_u16(&b, 2);
	build_u16(&b, major);
	for (int i = 0; i < 3; i++)
		build_u16(&b, 0);
	play_event(&p, NT_PROV_RUNDOWN, 187, 0, 1, 100000, &b);
}

static void perf(uint64_t thread, double ms, int count, uint64_t leaf, enum an_cpu_class class)
{
	for (int i = 0; i < count; i++) {
		const uint64_t frames[] = { leaf + (uint64_t)i % 8, MAIN + 0x10 };
		const struct an_cpu_sample s = { .time_ns = (int64_t)((ms + i) * 1e6),
						 .thread_id = thread,
						 .thread_name = "worker",
						 .frames = frames,
						 .frame_count = 2,
						 .class = class,
						 .weight_ns = 1000000 };

		if (p.status == NT_OK)
			p.status = an_engine_cpu_sample(p.engine, AN_CPU_PERF, &s);
	}
}

static void samples(uint64_t thread, double ms, int count, uint64_t leaf, unsigned type)
{
	for (int i = 0; i < count; i++) {
		play_stack(&p, 2, leaf + (uint64_t)i % 8, (uint64_t)MAIN + 0x10);
		play_sample(&p, thread, ms + i, type);
	}
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

static const struct an_value *thread_row(uint64_t id)
{
	const struct an_value *v = an_get(play_report(&p), "cpu.threads")->first;

	while (v && an_get_u64(v, "thread_id", 0) != id)
		v = v->next;
	assert_non_null(v);
	return v;
}

static void perf_samples_make_the_cpu_view(void **state)
{
	(void)state;
	begin(AN_VIEW_CPU);
	samples(1, 0, 100, WARM, MANAGED); /* the sampler's clock is another */
	samples(2, 0, 100, SLEEP, EXTERNAL);
	perf(1, 0, 60, HOT, AN_CPU_RUNNING);
	perf(1, 60, 30, WARM, AN_CPU_RUNNING);
	perf(1, 90, 10, NATIVE, AN_CPU_RUNNING);
	assert_int_equal(an_engine_native_code(p.engine, NATIVE, NATIVE + 0xff,
					       "/usr/lib/libcoreclr.so", "JIT_New"),
			 NT_OK);
	finish(10);
	assert_string_equal(an_get_text(play_report(&p), "cpu.source", ""), "perf");
	assert_int_equal(number("cpu.samples"), 100);
	assert_int_equal(number("cpu.samples_on_cpu"), 100);
	assert_int_equal(number("cpu.samples_unresolved"), 0);
	assert_int_equal(of_method("Shop.Cpu.Hot", "exclusive_samples"), 60);
	assert_int_equal(of_method("Shop.Cpu.Warm", "exclusive_samples"), 30);
	assert_int_equal(of_method("JIT_New", "exclusive_samples"), 10);
	assert_string_equal(
		an_get_text(play_find(&p, "cpu.methods", "method", "JIT_New"), "module", ""),
		"libcoreclr.so");
	assert_true(an_get_f64(play_report(&p), "cpu.interval_ms", 0) == 1);
	assert_true(an_get_f64(thread_row(1), "cpu_time_ms", 0) == 100);
	assert_string_equal(an_get_text(thread_row(1), "name", ""), "worker");
	play_end(&p);
}

/* CPU samples say nothing of threads that wait: those views stay with the sampler. */
static void waiting_is_told_by_the_sampler(void **state)
{
	(void)state;
	begin(AN_VIEW_WAITING);
	samples(2, 0, 100, SLEEP, EXTERNAL);
	perf(1, 0, 60, HOT, AN_CPU_RUNNING);
	finish(10);
	assert_string_equal(an_get_text(play_report(&p), "cpu.source", ""), "sample-profiler");
	assert_int_equal(number("cpu.samples_waiting"), 100);
	play_end(&p);
	begin(AN_VIEW_WALL); /* no sampler: what there is */
	perf(1, 0, 60, HOT, AN_CPU_RUNNING);
	perf(1, 60, 5, SLEEP, AN_CPU_BLOCKED);
	perf(1, 70, 3, HOT, AN_CPU_OUTSIDE);
	finish(10);
	assert_int_equal(number("cpu.samples_on_cpu"), 60);
	assert_int_equal(number("cpu.samples_waiting"), 5);
	assert_int_equal(number("cpu.samples_unknown"), 3);
	play_end(&p);
}

/* Only the runtime's sampler: its bias is said; with others beside it that is not so in any view.
 */
static void bias_is_of_the_only_source(void **state)
{
	(void)state;
	for (int with_perf = 0; with_perf < 2; with_perf++) {
		begin(AN_VIEW_WAITING);
		samples(1, 0, 100, HOT, MANAGED);
		if (with_perf)
			perf(1, 0, 60, HOT, AN_CPU_RUNNING);
		finish(10);
		assert_string_equal(an_get_text(play_report(&p), "cpu.source", ""),
				    "sample-profiler");
		assert_true(play_finds(&p, "cpu.hot-method"));
		assert_int_equal(play_finds(&p, "cpu.safepoint-bias"), !with_perf);
		play_end(&p);
	}
}

/* A mapped file tells where code is that has no name. */
static void native_code_without_a_name_has_its_file(void **state)
{
	(void)state;
	begin(AN_VIEW_CPU);
	assert_int_equal(an_engine_native_code(p.engine, NATIVE, NATIVE + 0xffff,
					       "/usr/lib/libcoreclr.so", NULL),
			 NT_OK);
	assert_int_equal(an_engine_native_code(p.engine, 1, 0, "x", "backwards"), NT_OK);
	assert_int_equal(an_engine_native_code(p.engine, 0, UINT64_MAX, "x", "all"), NT_OK);
	perf(1, 0, 10, NATIVE, AN_CPU_RUNNING);
	finish(10);
	assert_int_equal(of_method("libcoreclr.so![unnamed]", "exclusive_samples"), 10);
	assert_int_equal(number("cpu.samples_unresolved"), 10);
	play_end(&p);
}

/* Share of the time each thread ran, in percent; below 0: not measured. */
static int use[8];

static int64_t used_ns(void *ctx, uint64_t thread, int64_t from_ns, int64_t to_ns)
{
	(void)ctx;
	assert_true(from_ns <= to_ns);
	return thread < 8 && use[thread] >= 0 ? (to_ns - from_ns) * use[thread] / 100 : -1;
}

static void measured_cpu_use_decides(void **state)
{
	static const struct an_cpu_time time = { .used_ns = used_ns };
	static const int of_thread[8] = { -1, 100, 0, 50, -1, 97, 1, 0 };
	const char *evidence;

	(void)state;
	memcpy(use, of_thread, sizeof(use));
	begin(AN_VIEW_CPU);
	an_engine_set_cpu_time(p.engine, &time);
	samples(1, 0, 100, HOT, EXTERNAL); /* says External, and ran: .NET 9, or an inlined call */
	samples(2, 0, 100, LOCK, MANAGED); /* looks busy, and used nothing */
	samples(3, 0, 100, WARM, MANAGED); /* ready all the time, ran half of it */
	samples(4, 0, 100, LOCK, EXTERNAL); /* not measured: unknown stays unknown */
	samples(5, 0, 100, SLEEP, EXTERNAL); /* a wait is a wait */
	finish(10);
	assert_int_equal(number("cpu.samples_on_cpu"), 200);
	assert_int_equal(number("cpu.samples_waiting"), 200);
	assert_int_equal(number("cpu.samples_unknown"), 100);
	assert_int_equal(of_method("Shop.Cpu.Locks", "exclusive_samples"), 0);
	assert_true(an_get_f64(thread_row(1), "cpu_time_ms", 0) > 98);
	assert_true(an_get_f64(thread_row(2), "cpu_time_ms", 9) == 0);
	assert_true(an_get_f64(thread_row(3), "cpu_time_ms", 0) > 49);
	assert_true(an_get_f64(thread_row(3), "cpu_time_ms", 0) < 51);
	assert_true(an_get(thread_row(3), "cpu_time_measured")->u);
	assert_false(an_get(thread_row(4), "cpu_time_measured")->u);
	/* The share is of the time, the counts beside it are not; the cores are measured. */
	evidence = an_get_text(play_find(&p, "findings", "id", "cpu.hot-method"), "evidence", "");
	assert_non_null(strstr(evidence, "weighed by measured CPU time"));
	assert_null(strstr(evidence, "at most"));
	play_end(&p);
}

static void every_failing_allocation_is_survived(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		if (play_begin(&p, &fa.alloc, classes, NULL)) {
			for (uint64_t thread = 0; thread < 20; thread++)
				perf(thread, 0, 3, NATIVE, AN_CPU_RUNNING);
			if (p.status == NT_OK)
				p.status = an_engine_native_code(p.engine, NATIVE, NATIVE + 9,
								 "/lib/x.so", "run");
			if (p.status == NT_OK)
				p.status = an_engine_native_code(p.engine, NATIVE, NATIVE + 99,
								 "/lib/x.so", NULL);
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
		cmocka_unit_test(perf_samples_make_the_cpu_view),
		cmocka_unit_test(waiting_is_told_by_the_sampler),
		cmocka_unit_test(bias_is_of_the_only_source),
		cmocka_unit_test(native_code_without_a_name_has_its_file),
		cmocka_unit_test(measured_cpu_use_decides),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
