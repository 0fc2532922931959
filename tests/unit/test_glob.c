/* SPDX-License-Identifier: MIT */

/* Which events a filter lets through. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/trace/event_filter.h"

static void globs(void **state)
{
	(void)state;
	assert_true(event_name_fits("*", "GCStart", 0));
	assert_true(event_name_fits("gc*", "GCStart", 0));
	assert_true(event_name_fits("GC?tart", "GCStart", 0));
	assert_true(event_name_fits("GC[RS]*", "GCStart", 0));
	assert_false(event_name_fits("GC", "GCHeapStats", 0));
	assert_false(event_name_fits("*Stop", "GCStart", 0));
	assert_false(event_name_fits("", "GCStart", 0));
}

/* Tools that turn the words into opcodes show other names for the same event. */
static void start_and_stop_in_both_spellings(void **state)
{
	(void)state;
	assert_true(event_name_fits("GC/Start", "GCStart", 0));
	assert_true(event_name_fits("GC", "GCStart", 0));
	assert_true(event_name_fits("Request/Stop", "RequestStop", 2));
	assert_false(event_name_fits("Request/Start", "RequestStop", 2));
	assert_true(event_name_fits("RequestStart", "Request", 1));
	assert_true(event_name_fits("Request/Stop", "Request", 2));
	assert_false(event_name_fits("RequestStop", "Request", 1));
	assert_false(event_name_fits("RequestStart", "Request", 0));
	assert_false(event_name_fits("RequestStart", "Request", 9));
	assert_true(event_name_fits("Start", "Start", 1));
}

static bool match(struct event_filter *f, const struct nt_event_def *def, int64_t time_ns,
		  uint64_t thread_id)
{
	const struct nt_event ev = { .def = def, .time_ns = time_ns, .thread_id = thread_id };
	bool ret = false;

	assert_int_equal(event_filter_match(f, &ev, &ret), NT_OK);
	return ret;
}

static void all_conditions_must_hold(void **state)
{
	static const struct nt_event_def defs[] = {
		{ .index = 0, .provider = "Demo", .name = "Hi", .event_id = 7 },
		{ .index = 500, .provider = "Demo", .name = "Bye", .event_id = 8 },
		{ .index = 1, .provider = "Other", .name = "Hi", .event_id = 7 },
	};
	const char *demo[] = { "dem?" }, *names[] = { "Hi", "B*" }, *ids[] = { "0x7", "9" };
	const char *threads[] = { "42" };
	struct event_filter f;

	(void)state;
	event_filter_init(&f);
	assert_true(event_filter_is_empty(&f));
	for (size_t i = 0; i < 3; i++)
		assert_true(match(&f, &defs[i], -5, UINT64_MAX));
	event_filter_done(&f);

	event_filter_init(&f);
	f.providers = (struct opt_list){ demo, 1 };
	f.names = (struct opt_list){ names, 2 };
	assert_false(event_filter_is_empty(&f));
	assert_true(match(&f, &defs[0], 0, 1));
	assert_true(match(&f, &defs[1], 0, 1));
	assert_false(match(&f, &defs[2], 0, 1));
	event_filter_done(&f);

	f.ids = (struct opt_list){ ids, 2 };
	f.threads = (struct opt_list){ threads, 1 };
	f.from_ns = 100;
	f.to_ns = 200;
	assert_true(match(&f, &defs[0], 100, 42));
	assert_false(match(&f, &defs[0], 99, 42));
	assert_false(match(&f, &defs[0], 200, 42));
	assert_false(match(&f, &defs[0], 100, 43));
	assert_false(match(&f, &defs[1], 100, 42));
	event_filter_done(&f);
	assert_true(event_filter_is_number("12"));
	assert_false(event_filter_is_number("twelve"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(globs),
		cmocka_unit_test(start_and_stop_in_both_spellings),
		cmocka_unit_test(all_conditions_must_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
