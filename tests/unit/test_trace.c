/* SPDX-License-Identifier: MIT */
/* The section about the trace itself, and the engine that feeds it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failalloc.h"
#include "tests/support/play.h"

static const struct an_class *const only_trace[] = { &an_class_trace, NULL };

static struct play p;

static void begin(void)
{
	assert_true(play_begin(&p, NULL, only_trace, NULL));
}

static uint64_t number(const char *path)
{
	return an_get_u64(play_report(&p), path, UINT64_MAX);
}

static const char *text(const char *path)
{
	return an_get_text(play_report(&p), path, "(none)");
}

/* Names with dots in them are no paths. */
static uint64_t member(const char *object, const char *name)
{
	const struct an_value *v = an_get(play_report(&p), object);

	for (v = v ? v->first : NULL; v; v = v->next)
		if (!strcmp(v->name, name))
			return v->u;
	return UINT64_MAX;
}

static void events_are_counted_by_kind_and_thread(void **state)
{
	begin();
	(void)state;
	for (int i = 0; i < 10; i++)
		play_event(&p, NT_PROV_RUNTIME, 10, 4, 100, i, NULL);
	for (int i = 0; i < 5; i++)
		play_event(&p, NT_PROV_RUNTIME, 10, 3, 200, 20 + i, NULL);
	play_event(&p, NT_PROV_RUNTIME, 9, 1, 100, 30.25, NULL);
	play_event(&p, NT_PROV_OTHER, 9, 1, UINT64_MAX, -0.5, NULL);
	assert_int_equal(number("trace.events"), 17);
	assert_int_equal(member("trace.counts", "Microsoft-Windows-DotNETRuntime/10/v4"), 10);
	assert_int_equal(member("trace.counts", "Microsoft-Windows-DotNETRuntime/10/v3"), 5);
	assert_int_equal(member("trace.counts", "Microsoft-Windows-DotNETRuntime/9/v1"), 1);
	assert_int_equal(member("trace.counts", "Test-Provider/9/v1"), 1);
	assert_int_equal(an_get(play_report(&p), "trace.counts")->count, 4);
	assert_int_equal(member("trace.events_by_thread", "100"), 11);
	assert_int_equal(member("trace.events_by_thread", "200"), 5);
	assert_int_equal(member("trace.events_by_thread", "unknown"), 1);
	assert_true(an_get_f64(play_report(&p), "trace.first_event_ms", 0) == -0.5);
	assert_true(an_get_f64(play_report(&p), "trace.last_event_ms", 0) == 30.25);
	assert_true(an_get_f64(play_report(&p), "trace.duration_ms", 0) == 30.25);
	assert_string_equal(text("trace.file"), "made-up");
	assert_int_equal(an_get(play_report(&p), "trace.complete")->u, 1);
	assert_int_equal(an_get(play_report(&p), "trace.truncated_at")->kind, AN_NULL);
	play_end(&p);
}

/* What is not asked for still says how long the trace is. */
static void events_that_are_not_counted(void **state)
{
	begin();
	(void)state;
	an_engine_count(p.engine, false);
	play_event(&p, NT_PROV_RUNTIME, 10, 4, 100, 1, NULL);
	an_engine_count(p.engine, true);
	play_event(&p, NT_PROV_RUNTIME, 11, 1, 200, 2, NULL);
	an_engine_count(p.engine, false);
	play_event(&p, NT_PROV_RUNTIME, 10, 4, 100, 30, NULL);
	assert_int_equal(number("trace.events"), 1);
	assert_int_equal(an_get(play_report(&p), "trace.counts")->count, 1);
	assert_int_equal(an_get(play_report(&p), "trace.events_by_thread")->count, 1);
	assert_true(an_get_f64(play_report(&p), "trace.first_event_ms", 0) == 2);
	assert_true(an_get_f64(play_report(&p), "trace.last_event_ms", 0) == 2);
	assert_true(an_get_f64(play_report(&p), "trace.duration_ms", 0) == 30);
	play_end(&p);
}

/* Two definitions of one kind, as in files that hold several sessions. */
static void equal_kinds_are_one_member(void **state)
{
	begin();
	(void)state;
	play_own(&p, NT_PROV_OTHER, "One", 1, NULL, 0, 1, 1, NULL);
	play_own(&p, NT_PROV_OTHER, "Two", 1, NULL, 0, 1, 1, NULL);
	assert_int_equal(member("trace.counts", "Test-Provider/1/v0"), 2);
	assert_int_equal(an_get(play_report(&p), "trace.counts")->count, 1);
	play_end(&p);
}

static void very_many_threads_are_bounded(void **state)
{
	begin();
	(void)state;
	for (uint64_t i = 0; i < 70000; i++)
		play_event(&p, NT_PROV_OTHER, 1, 0, i, 1, NULL);
	assert_int_equal(number("trace.events"), 70000);
	assert_int_equal(an_get(play_report(&p), "trace.events_by_thread")->count, 65536 + 1);
	assert_int_equal(member("trace.events_by_thread", "other"), 70000 - 65536);
	play_end(&p);
}

/* What the built trace says: 2024-01-15 12:00:00.250, format 4. */
static void the_header_is_shown(void **state)
{
	struct build b = { 0 };

	begin();
	(void)state;
	build_utf16(&b, "/opt/shop/Shop \"x\"");
	build_utf16(&b, "Linux");
	build_utf16(&b, "x64");
	play_event(&p, NT_PROV_EVENTPIPE, 1, 1, 1, 1, &b);
	assert_string_equal(text("trace.format"), "nettrace-4");
	assert_string_equal(text("trace.start_time"), "2024-01-15T12:00:00.250Z");
	assert_string_equal(text("trace.command_line"), "/opt/shop/Shop \"x\"");
	assert_string_equal(text("trace.os"), "Linux");
	assert_string_equal(text("trace.arch"), "x64");
	assert_int_equal(an_get(play_report(&p), "trace.runtime")->kind, AN_NULL);
	assert_int_equal(number("trace.pointer_size"), 8);
	play_end(&p);
}

static void runtime(unsigned sku, unsigned major, unsigned build_number, const char *dll)
{
	struct build b = { 0 };

	build_u16(&b, 0);
	build_u16(&b, sku);
	for (int i = 0; i < 4; i++)
		build_u16(&b, 4);
	build_u16(&b, major);
	build_u16(&b, 0);
	build_u16(&b, build_number);
	build_u16(&b, 0);
	build_u32(&b, 1);
	build_u8(&b, 0);
	build_utf16(&b, "");
	for (int i = 0; i < 4; i++)
		build_u32(&b, 0);
	build_utf16(&b, dll);
	play_event(&p, NT_PROV_RUNDOWN, 187, 0, 1, 5, &b);
}

static void check_runtime(unsigned sku, unsigned major, unsigned build_number, const char *dll,
			  const char *want, unsigned want_major)
{
	begin();
	runtime(sku, major, build_number, dll);
	assert_string_equal(text("trace.runtime"), want);
	assert_int_equal(an_engine_borrow_shared(p.engine)->runtime_major, want_major);
	play_end(&p);
}

static void the_runtime_has_the_version_people_know(void **state)
{
	(void)state;
	check_runtime(2, 10, 1526, "/x/libcoreclr.so", ".NET 10.0.15", 10);
	check_runtime(2, 8, 3426, "", ".NET 8.0.34", 8);
	check_runtime(2, 11, 26, "", ".NET 11.0.0", 11);
	check_runtime(2, 42, 42, "", ".NET 42.0.0", 42);
	check_runtime(2, 9, 7, "", ".NET 9.0.7", 9); /* somebody's own build */
	check_runtime(2, 4, 30319, "/dotnet/shared/Microsoft.NETCore.App/3.1.3/libcoreclr.so",
		      ".NET Core 3.1.3", 3);
	check_runtime(2, 4, 30319, "/opt/app/libcoreclr.so", ".NET Core 3.1 or older", 3);
	check_runtime(2, 9, 100, "C:\\shared\\Microsoft.NETCore.App\\9.0.1\\coreclr.dll",
		      ".NET 9.0.1", 9);
	check_runtime(1, 4, 30319, "", ".NET Framework 4.0.30319", 3);
}

static void a_short_runtime_event_says_nothing(void **state)
{
	struct build b = { 0 };

	begin();
	(void)state;
	build_u32(&b, 2);
	play_event(&p, NT_PROV_RUNTIME, 187, 0, 1, 5, &b);
	assert_int_equal(an_engine_borrow_shared(p.engine)->runtime_major, 0);
	play_end(&p);
}

/* The session was stopped when the rundown began, and rundown events are no part of it. */
static void the_rundown_does_not_count_as_observed(void **state)
{
	begin();
	(void)state;
	play_event(&p, NT_PROV_OTHER, 1, 0, 1, 100, NULL);
	play_event(&p, NT_PROV_RUNDOWN, 148, 1, 1, 500, NULL);
	play_event(&p, NT_PROV_RUNDOWN, 146, 1, 1, 900, NULL);
	assert_true(an_get_f64(play_report(&p), "trace.duration_ms", 0) == 500);
	assert_true(an_get_f64(play_report(&p), "trace.last_event_ms", 0) == 900);
	play_end(&p);
}

static void a_trace_without_events_is_said_to_be_empty(void **state)
{
	begin();
	(void)state;
	assert_int_equal(number("trace.events"), 0);
	assert_int_equal(an_get(play_report(&p), "trace.duration_ms")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "trace.first_event_ms")->kind, AN_NULL);
	assert_true(play_finds(&p, "trace.empty"));
	play_end(&p);
}

/* Feeds a cut stream to a real decoder; what the report says of its end. */
static void check_cut(const struct an_input *in, const char *title, const char *advice)
{
	struct build b = { 0 };
	struct an_engine *e = an_engine_new(NULL, NULL, only_trace);
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, an_engine_flags(e), &an_engine_sink, e);
	struct an_report *r = an_report_new(NULL);
	const struct an_value *v;

	build_begin(&b, 4);
	assert_int_equal(nt_decoder_push(d, b.bytes, b.count), NT_OK);
	assert_int_equal(nt_decoder_finish(d), NT_ETRUNC);
	assert_int_equal(an_engine_report(e, d, in, r), NT_OK);
	v = an_report_borrow_root(r);
	assert_int_equal(an_get(v, "trace.complete")->u, 0);
	assert_int_equal(an_get_u64(v, "trace.truncated_at", 0), b.count);
	assert_int_equal(an_get(v, "trace.file")->kind, AN_NULL);
	v = an_get(v, "findings")->first;
	assert_string_equal(an_get_text(v, "id", ""), "trace.truncated");
	assert_string_equal(an_get_text(v, "severity", ""), "critical");
	assert_non_null(strstr(an_get_text(v, "title", ""), title));
	assert_non_null(strstr(an_get_text(v, "advice", ""), advice));
	build_done(&b);
	an_report_free(r);
	nt_decoder_free(d);
	an_engine_free(e);
}

static void a_cut_trace_says_where(void **state)
{
	(void)state;
	check_cut(NULL, "nothing after byte ", "To record again");
}

/* Who recorded knows why, and gives no advice that has nothing to do with it. */
static void a_cut_recording_says_why(void **state)
{
	static const struct {
		enum an_cut cut;
		const char *advice;
	} rows[] = {
		{ AN_CUT_TARGET, "All that it had sent by then is in the figures" },
		{ AN_CUT_ASKED, "stop but once" },
		{ AN_CUT_SILENT, "it may need longer (--stop-timeout)" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct an_input in = { .cut = rows[i].cut, .cut_why = "it was so" };

		check_cut(&in, "The recording is cut: it was so", rows[i].advice);
	}
}

/* Nothing at all was read: still a report. */
static void a_report_without_a_header_is_all_null(void **state)
{
	struct an_engine *e = an_engine_new(NULL, NULL, only_trace);
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, 0, &an_engine_sink, e);
	struct an_report *r = an_report_new(NULL);

	(void)state;
	assert_int_equal(nt_decoder_finish(d), NT_ETRUNC);
	assert_int_equal(an_engine_report(e, d, NULL, r), NT_OK);
	assert_int_equal(an_get(an_report_borrow_root(r), "trace.format")->kind, AN_NULL);
	assert_int_equal(an_get(an_report_borrow_root(r), "trace.processors")->kind, AN_NULL);
	assert_int_equal(an_get(an_report_borrow_root(r), "trace.start_time")->kind, AN_NULL);
	an_report_free(r);
	nt_decoder_free(d);
	an_engine_free(e);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_counted_by_kind_and_thread),
		cmocka_unit_test(events_that_are_not_counted),
		cmocka_unit_test(equal_kinds_are_one_member),
		cmocka_unit_test(very_many_threads_are_bounded),
		cmocka_unit_test(the_header_is_shown),
		cmocka_unit_test(the_runtime_has_the_version_people_know),
		cmocka_unit_test(a_short_runtime_event_says_nothing),
		cmocka_unit_test(the_rundown_does_not_count_as_observed),
		cmocka_unit_test(a_trace_without_events_is_said_to_be_empty),
		cmocka_unit_test(a_cut_trace_says_where),
		cmocka_unit_test(a_cut_recording_says_why),
		cmocka_unit_test(a_report_without_a_header_is_all_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
