/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "src/store/out_prometheus.h"
#include "src/store/sample.h"
#include "src/store/sample_row.h"

/* Rounds begin at multiples, however long one takes and however late it began. */
static void test_schedule(void **state)
{
	static const struct {
		uint64_t now, done, next, missed;
	} cases[] = {
		{ 1000, 1, 1060, 0 }, /* took no time */
		{ 1059, 1, 1060, 0 },
		{ 1060, 1, 1120, 1 }, /* exactly one period: the second has just gone by */
		{ 1061, 1, 1120, 1 },
		{ 1200, 2, 1240, 2 },
	};
	uint64_t due = 1000, missed;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(sample_next(1000, 60, cases[i].now, cases[i].done, &missed),
				 cases[i].next);
		assert_int_equal(missed, cases[i].missed);
	}
	for (uint64_t round = 1; round <= 1000; round++) { /* each begins a little late */
		due = sample_next(1000, 60, due + 7, round, &missed);
		assert_int_equal(missed, 0);
	}
	assert_int_equal(due, 1000 + 1000 * 60);
}

static struct an_report *make_report(void)
{
	struct an_report *r = an_report_new(NULL);
	struct an_value *root = an_report_root(r);
	struct an_value *trace = an_add_object(root, "trace"), *cpu = an_add_object(root, "cpu");
	struct an_value *gc = an_add_object(root, "gc"), *methods, *m, *counts, *pending;

	an_add_double(trace, "duration_ms", 5000, 3);
	an_add_uint(trace, "events", 1234);
	an_add_uint(trace, "events_lost", 5);
	an_add_text(trace, "runtime", "10.0.15");
	counts = an_add_object(trace, "counts");
	an_add_uint_named(counts, "Provider/1/v1", 7);
	an_add_double(cpu, "interval_ms", 10, 2);
	an_add_uint(cpu, "samples", 500);
	an_add_uint(cpu, "samples_on_cpu", 250);
	methods = an_add_array(cpu, "methods");
	m = an_add_object(methods, NULL);
	an_add_text(m, "method", "Shop.\"Hot\"");
	an_add_double(m, "exclusive_percent", 60, 2);
	an_add_double(m, "inclusive_percent", 90, 2);
	m = an_add_object(methods, NULL);
	an_add_text(m, "method", "Shop.Measured");
	an_add_double(m, "exclusive_percent", 40, 2);
	an_add_double(m, "inclusive_percent", 40, 2);
	an_add_double(m, "exclusive_cpu_ms", 500, 3);
	an_add_double(m, "inclusive_cpu_ms", 1000, 3);
	an_add_double(gc, "pause_p99_ms", 12.5, 4);
	an_add_double(gc, "pause_percent", 3, 4);
	an_add_null(gc, "gen2"); /* not recorded */
	an_add_array(an_add_object(root, "locks"), "deadlocks");
	pending = an_add_array(an_add_object(root, "tasks"), "pending");
	for (int i = 0; i < 3; i++) {
		m = an_add_object(pending, NULL);
		an_add_uint(m, "count", 10);
		an_add_bool(m, "stuck", i > 0);
	}
	an_add_finding(r, AN_WARNING, "gc.pauses", "long pauses", "evidence", "advice");
	an_add_finding(r, AN_INFO, "trace.note", "a note", "evidence", "advice");
	an_report_seal(r);
	return r;
}

static double metric(const struct store_sample *p, const char *name)
{
	for (size_t i = 0; i < p->metric_count; i++)
		if (strcmp(p->metrics[i].name, name) == 0)
			return p->metrics[i].value;
	return -1;
}

static void test_row(void **state)
{
	struct an_report *r = make_report();
	struct sample_row row;

	(void)state;
	assert_true(sample_row_make(an_report_borrow_root(r), &row));
	an_report_free(r); /* the row stands alone */
	assert_int_equal(row.sample.events, 1234);
	assert_int_equal(row.sample.lost, 5);
	assert_string_equal(row.sample.runtime, "10.0.15");
	assert_null(row.sample.command_line);
	assert_float_equal(metric(&row.sample, "gc.pause_p99_ms"), 12.5, 0);
	assert_float_equal(metric(&row.sample, "cpu.samples_on_cpu"), 250, 0);
	assert_float_equal(metric(&row.sample, "gc.gen2"), -1, 0); /* no value, not 0 */
	assert_float_equal(metric(&row.sample, "locks.deadlocks"), 0, 0); /* none, and looked for */
	assert_float_equal(metric(&row.sample, "tasks.stuck"), 20, 0);
	assert_float_equal(metric(&row.sample, "trace.counts.Provider/1/v1"), -1, 0);
	assert_int_equal(row.sample.method_count, 2);
	/* 60 % of 250 samples of 10 ms in 5 s: 30 % of a processor. */
	assert_float_equal(row.methods[0].exclusive, 30, 1e-9);
	assert_float_equal(row.methods[0].inclusive, 45, 1e-9);
	assert_float_equal(row.methods[1].exclusive, 10, 1e-9); /* as measured */
	assert_int_equal(row.sample.finding_count, 1); /* notes wake nobody */
	assert_string_equal(row.findings[0].id, "gc.pauses");
	sample_row_done(&row);
}

static void test_prometheus(void **state)
{
	static const char expected[] =
		"# HELP drdotnet_gc_pause_seconds Length of the pauses for garbage collection in "
		"the "
		"sample.\n"
		"# TYPE drdotnet_gc_pause_seconds gauge\n"
		"drdotnet_gc_pause_seconds{process=\"Shop\",pid=\"7\",percentile=\"99\"} 0.0125\n"
		"# HELP drdotnet_gc_pause_ratio Share of the time in which garbage collection held "
		"the "
		"process.\n"
		"# TYPE drdotnet_gc_pause_ratio gauge\n"
		"drdotnet_gc_pause_ratio{process=\"Shop\",pid=\"7\"} 0.03\n"
		"# HELP drdotnet_deadlocks Threads that wait for each other in a circle.\n"
		"# TYPE drdotnet_deadlocks gauge\n"
		"drdotnet_deadlocks{process=\"Shop\",pid=\"7\"} 0\n"
		"# HELP drdotnet_stuck_tasks Chains of async methods that began in the sample, "
		"wait "
		"and do not go on; older ones are not seen.\n"
		"# TYPE drdotnet_stuck_tasks gauge\n"
		"drdotnet_stuck_tasks{process=\"Shop\",pid=\"7\"} 20\n"
		"# HELP drdotnet_events_lost Events the runtime had to drop in the sample.\n"
		"# TYPE drdotnet_events_lost gauge\n"
		"drdotnet_events_lost{process=\"Shop\",pid=\"7\"} 5\n"
		"# HELP drdotnet_method_cpu_cores Processors that the hottest methods keep busy, "
		"without what they call.\n"
		"# TYPE drdotnet_method_cpu_cores gauge\n"
		"drdotnet_method_cpu_cores{process=\"Shop\",pid=\"7\",method=\"Shop.\\\"Hot\\\"\"} "
		"0.3\n"
		"drdotnet_method_cpu_cores{process=\"Shop\",pid=\"7\",method=\"Shop.Measured\"} "
		"0.1\n"
		"# HELP drdotnet_finding 1 for each kind of finding.\n"
		"# TYPE drdotnet_finding gauge\n"
		"drdotnet_finding{process=\"Shop\",pid=\"7\",id=\"gc.pauses\",severity=\"warning\"}"
		" "
		"1\n";
	char path[] = "/tmp/drd-prom-XXXXXX", text[8192] = "";
	struct an_report *r = make_report();
	const struct store_sample *list[1];
	struct sample_row row;
	struct stat st;
	FILE *f;

	(void)state;
	close(mkstemp(path));
	assert_true(sample_row_make(an_report_borrow_root(r), &row));
	an_report_free(r);
	row.sample.name = "Shop";
	row.sample.pid = 7;
	list[0] = &row.sample;
	assert_true(prometheus_write(path, list, 1));
	f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	assert_int_equal(strncmp(text, expected, strlen(expected)), 0);
	assert_non_null(strstr(text, "drdotnet_sample_timestamp_seconds{"));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644); /* the exporter is somebody else */
	unlink(path);
	sample_row_done(&row);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schedule),
		cmocka_unit_test(test_row),
		cmocka_unit_test(test_prometheus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
