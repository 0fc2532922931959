/* SPDX-License-Identifier: MIT */
/* Our own CPU samples in the report: weights, native names, frames of on-stack replacement. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/cpu/cpu_perf.h"
#include "tests/support/failalloc.h"
#include "tests/support/play.h"

static const struct an_class *const classes[] = { &an_class_cpu, NULL };

static struct play p;
static struct nt_perf samples;

enum { MAIN = 0x1000, RUN = 0x2000, HOT_OLD = 0x3000, HOT_NEW = 0x8000, NATIVE = 0x900000 };

static void begin_with(const struct an_options *options)
{
	assert_true(play_begin(&p, NULL, classes, options));
	assert_int_equal(nt_perf_init(&samples, NULL), NT_OK);
	samples.info.period_ns = 2000000;
	samples.info.start_ns = (uint64_t)p.trace.sync_ticks;
}

static void begin(void)
{
	begin_with(NULL);
}

static void end(void)
{
	play_end(&p);
	nt_perf_done(&samples);
}

static void add(uint64_t thread, double ms, size_t count, ...)
{
	uint64_t frames[16];
	va_list args;

	va_start(args, count);
	for (size_t i = 0; i < count; i++)
		frames[i] = va_arg(args, uint64_t);
	va_end(args);
	assert_int_equal(nt_perf_sample(&samples, samples.info.start_ns + (uint64_t)(ms * 1e6),
					thread, frames, count),
			 NT_OK);
}

/* Names come after the samples. */
static void finish(void)
{
	play_method(&p, true, MAIN, 0x1000, "Shop", "Main", "void  ()", 5000);
	play_method(&p, true, RUN, 0x1000, "Shop", "Run", "void  ()", 5000);
	play_method(&p, true, HOT_OLD, 0x1000, "Shop", "Hot", "void  ()", 5000);
	play_method(&p, true, HOT_NEW, 0x1000, "Shop", "Hot", "void  ()", 5000);
	if (p.status == NT_OK)
		p.status = an_engine_perf(p.engine, &samples);
	assert_int_equal(p.status, NT_OK);
}

static uint64_t of(const char *name, const char *member)
{
	const struct an_value *row = play_find(&p, "cpu.methods", "method", name);

	return row ? an_get_u64(row, member, UINT64_MAX) : 0;
}

static void samples_have_names_threads_and_weights(void **state)
{
	struct nt_perf_mapping m = { .start = NATIVE, .last = NATIVE + 0xffff, .file = "/x/n.so" };
	const struct an_value *thread;

	(void)state;
	begin();
	for (int i = 0; i < 60; i++)
		add(7, i * 2, 3, (uint64_t)HOT_NEW + 5, (uint64_t)RUN + 9, (uint64_t)MAIN + 9);
	for (int i = 60; i < 90; i++)
		add(7, i * 2, 2, (uint64_t)NATIVE + 4, (uint64_t)RUN + 5);
	for (int i = 90; i < 100; i++)
		add(7, i * 2, 1, (uint64_t)NATIVE + 0x2000);
	assert_int_equal(nt_perf_map(&samples, &m, 7), NT_OK);
	assert_int_equal(nt_perf_symbol(&samples, NATIVE, NATIVE + 9, "/x/n.so", 7, "copy", 4),
			 NT_OK);
	finish();
	assert_string_equal(an_get_text(play_report(&p), "cpu.source", ""), "perf");
	assert_int_equal(an_get_u64(play_report(&p), "cpu.samples", 0), 100);
	assert_int_equal(an_get_u64(play_report(&p), "cpu.samples_on_cpu", 0), 100);
	assert_int_equal(an_get_u64(play_report(&p), "cpu.samples_unknown", 9), 0);
	assert_int_equal(an_get_u64(play_report(&p), "cpu.samples_unresolved", 0), 10);
	assert_int_equal(of("Shop.Hot", "exclusive_samples"), 60);
	assert_int_equal(of("Shop.Run", "inclusive_samples"), 90);
	assert_int_equal(of("copy", "exclusive_samples"), 30);
	assert_int_equal(of("n.so![unnamed]", "exclusive_samples"), 10);
	thread = an_get(play_report(&p), "cpu.threads")->first;
	assert_int_equal(an_get_u64(thread, "thread_id", 0), 7);
	assert_int_equal(an_get_u64(thread, "samples", 0), 100);
	end();
}

/* Rows of coarse time stand for many samples, and take no longer than one. */
static void a_row_is_as_many_samples_as_it_says(void **state)
{
	static const uint32_t counts[] = { 3, NT_PERF_MAX_COUNT };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		const struct an_value *hot;

		begin();
		add(7, 0, 2, (uint64_t)HOT_NEW + 5, (uint64_t)MAIN + 9);
		add(7, 2, 2, (uint64_t)RUN + 5, (uint64_t)MAIN + 9);
		samples.rows[0].count = counts[i];
		finish();
		assert_int_equal(an_get_u64(play_report(&p), "cpu.samples", 0), counts[i] + 1);
		assert_int_equal(of("Shop.Hot", "exclusive_samples"), counts[i]);
		assert_int_equal(of("Shop.Main", "inclusive_samples"), counts[i] + 1);
		assert_true(an_get_f64(play_report(&p), "cpu.interval_ms", 0) == 2);
		hot = play_find(&p, "cpu.methods", "method", "Shop.Hot");
		assert_true(an_get_f64(hot, "exclusive_cpu_ms", 0) == 2.0 * counts[i]);
		end();
	}
}

/* New code, its old frame, and the caller where it was found on the stack. */
static void replaced_code_is_one_frame_and_has_its_caller(void **state)
{
	(void)state;
	begin();
	add(7, 0, 4, (uint64_t)HOT_NEW + 5, (uint64_t)HOT_OLD + 9, (RUN + 9) | NT_PERF_HIDDEN,
	    (uint64_t)MAIN + 9);
	add(7, 2, 5, (uint64_t)NATIVE, (uint64_t)HOT_NEW + 5, (uint64_t)HOT_OLD + 9,
	    (RUN + 9) | NT_PERF_HIDDEN, (uint64_t)MAIN + 9);
	finish();
	assert_int_equal(of("Shop.Run", "inclusive_samples"), 2);
	assert_int_equal(of("Shop.Hot", "inclusive_samples"), 2);
	assert_int_equal(of("Shop.Hot", "exclusive_samples"), 1);
	assert_int_equal(of("Shop.Main", "inclusive_samples"), 2);
	end();
}

/* What looks like a caller elsewhere is only a number on the stack. */
static void other_finds_mean_nothing(void **state)
{
	(void)state;
	begin();
	add(7, 0, 3, (uint64_t)HOT_NEW + 5, (RUN + 9) | NT_PERF_HIDDEN, (uint64_t)MAIN + 9);
	add(7, 2, 4, (uint64_t)HOT_NEW + 5, (uint64_t)HOT_NEW + 9, (RUN + 9) | NT_PERF_HIDDEN,
	    (uint64_t)MAIN + 9); /* recursion */
	finish();
	assert_int_equal(of("Shop.Run", "inclusive_samples"), 0);
	assert_int_equal(of("Shop.Hot", "exclusive_samples"), 2);
	assert_int_equal(of("Shop.Main", "inclusive_samples"), 2);
	end();
}

static void strange_times_are_cut(void **state)
{
	(void)state;
	begin();
	add(7, 0, 1, (uint64_t)HOT_NEW + 5);
	samples.rows[0].time = UINT64_MAX;
	finish();
	assert_int_equal(an_get_u64(play_report(&p), "cpu.samples", 0), 1);
	end();
	begin();
	add(7, 0, 1, (uint64_t)HOT_NEW + 5);
	samples.info.start_ns = 0;
	p.trace.sync_ticks = INT64_MAX;
	p.trace.ticks_per_second = 1;
	finish();
	assert_int_equal(an_get_u64(play_report(&p), "cpu.samples", 0), 1);
	end();
}

static const struct an_value *find_finding(const char *id)
{
	return play_find(&p, "findings", "id", id);
}

static void what_lacks_is_a_finding(void **state)
{
	static const struct {
		uint64_t lost, dropped, throttled, no_stack;
		bool kernel;
		const char *severity; /* of cpu.samples-lost; NULL: none */
	} rows[] = {
		{ .kernel = true },
		{ .lost = 1, .kernel = true, .severity = "info" },
		{ .dropped = 1, .kernel = true, .severity = "info" },
		{ .throttled = 1, .kernel = true, .severity = "info" },
		{ .lost = 5, .kernel = true, .severity = "info" }, /* of 105 */
		{ .lost = 4, .dropped = 2, .kernel = true, .severity = "warning" }, /* of 106 */
		{ .no_stack = 1, .kernel = true },
		{ .kernel = false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct an_value *found;
		struct an_report *report = an_report_new(NULL);

		begin();
		for (int k = 0; k < 100; k++)
			add(7, k, 1, (uint64_t)HOT_NEW);
		samples.info.lost = rows[i].lost;
		samples.info.dropped = rows[i].dropped;
		samples.info.throttled = rows[i].throttled;
		samples.info.no_stack = rows[i].no_stack;
		samples.info.kernel_time = rows[i].kernel;
		finish();
		assert_non_null(report);
		an_perf_findings(&samples, report);
		assert_int_equal(an_engine_report(p.engine, p.decoder, NULL, report), NT_OK);
		p.report = report;
		found = find_finding("cpu.samples-lost");
		assert_int_equal(found != NULL, rows[i].severity != NULL);
		if (found)
			assert_string_equal(an_get_text(found, "severity", ""), rows[i].severity);
		assert_int_equal(find_finding("cpu.too-many-stacks") != NULL, rows[i].no_stack);
		assert_int_equal(find_finding("cpu.user-only") != NULL, !rows[i].kernel);
		end();
	}
}

/* What writes the stream is in the process only because of us. */
static void recording_is_not_the_programs_work(void **state)
{
	static const struct {
		const char *name;
		int own, other;
		bool left_out, said;
	} rows[] = {
		{ ".NET EventPipe", 20, 380, true, true },
		{ ".NET EventPipe", 19, 361, true, false }, /* too few */
		{ ".NET EventPipe", 20, 381, true, false }, /* less than a twentieth */
		{ ".NET Worker", 50, 50, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct an_report *report = an_report_new(NULL);

		begin();
		for (int k = 0; k < rows[i].other; k++)
			add(7, k, 1, (uint64_t)HOT_NEW);
		for (int k = 0; k < rows[i].own; k++)
			add(8, k, 1, (uint64_t)NATIVE);
		for (uint32_t t = 0; t < samples.thread_count; t++)
			if (samples.threads[t].id == 8)
				nt_perf_name_thread(&samples, t, rows[i].name,
						    strlen(rows[i].name));
		finish();
		assert_non_null(report);
		an_perf_findings(&samples, report);
		assert_int_equal(an_engine_report(p.engine, p.decoder, NULL, report), NT_OK);
		p.report = report;
		assert_int_equal(an_get_u64(an_report_borrow_root(report), "cpu.samples", 0),
				 rows[i].other + (rows[i].left_out ? 0 : rows[i].own));
		assert_int_equal(find_finding("cpu.recording") != NULL, rows[i].said);
		end();
	}
}

/* The source was on, so that no sample came is an answer. */
static void an_idle_process_is_idle(void **state)
{
	static const struct {
		int samples; /* of 2 ms, in 5 s */
		bool said;
	} rows[] = { { 0, true }, { 124, true }, { 125, false } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct an_value *r;

		begin();
		for (int k = 0; k < rows[i].samples; k++)
			add(7, k, 1, (uint64_t)HOT_NEW);
		finish();
		r = play_report(&p);
		assert_string_equal(an_get_text(r, "cpu.source", ""), "perf");
		assert_int_equal(an_get_u64(r, "cpu.samples", 9), rows[i].samples);
		assert_int_equal(an_get_u64(r, "cpu.samples_on_cpu", 9), rows[i].samples);
		assert_true(an_get_f64(r, "cpu.interval_ms", 0) == 2);
		assert_true(an_get_f64(r, "cpu.cpu_time_ms", 9) == 2 * rows[i].samples);
		assert_int_equal(find_finding("cpu.mostly-waiting") != NULL, rows[i].said);
		assert_null(find_finding("cpu.not-recorded"));
		end();
	}
}

/* Samples of running threads tell nothing of those that wait; the runtime's do. */
static void who_waits_is_not_known_from_them(void **state)
{
	static const struct {
		enum an_view view;
		bool sampler, from_perf, finding;
	} rows[] = {
		{ AN_VIEW_CPU, false, true, false },	{ AN_VIEW_WALL, false, true, true },
		{ AN_VIEW_WAITING, false, true, true }, { AN_VIEW_CPU, true, true, false },
		{ AN_VIEW_WALL, true, false, false },	{ AN_VIEW_WAITING, true, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct an_options options = { .view = rows[i].view };
		const struct an_value *r;

		begin_with(&options);
		for (int k = 0; k < 200; k++)
			add(7, k, 1, (uint64_t)HOT_NEW);
		play_stack(&p, 1, (uint64_t)RUN);
		for (int k = 0; k < 200 && rows[i].sampler; k++)
			play_sample(&p, 8, k, 1);
		finish();
		r = play_report(&p);
		assert_string_equal(an_get_text(r, "cpu.source", ""),
				    rows[i].from_perf ? "perf" : "sample-profiler");
		assert_int_equal(an_get(r, "cpu.samples_waiting")->kind,
				 rows[i].from_perf ? AN_NULL : AN_UINT);
		assert_int_equal(an_get(r, "cpu.waits_recorded")->u, rows[i].sampler);
		assert_int_equal(find_finding("cpu.waits-not-recorded") != NULL, rows[i].finding);
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_have_names_threads_and_weights),
		cmocka_unit_test(a_row_is_as_many_samples_as_it_says),
		cmocka_unit_test(replaced_code_is_one_frame_and_has_its_caller),
		cmocka_unit_test(other_finds_mean_nothing),
		cmocka_unit_test(strange_times_are_cut),
		cmocka_unit_test(what_lacks_is_a_finding),
		cmocka_unit_test(recording_is_not_the_programs_work),
		cmocka_unit_test(an_idle_process_is_idle),
		cmocka_unit_test(who_waits_is_not_known_from_them),
	};

	return cmocka_run_group_tests_name("cpu_perf", tests, NULL, NULL);
}
