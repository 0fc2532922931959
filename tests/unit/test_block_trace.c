/* SPDX-License-Identifier: MIT */
/* The Trace object and block, and time: start of the session, clock values to nanoseconds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/tape.h"

/* Where the Trace's values begin, and where each of them is. */
enum { BODY_V3 = 45, BODY_V4 = 53, BODY_V6 = 24 };
enum { AT_SYNC = 16, AT_FREQUENCY = 24, AT_POINTER = 32 };
enum { AT_PROCESS = 36, AT_PROCESSORS = 40, AT_INTERVAL = 44 };
/* Members of the SYSTEMTIME, two bytes each. */
enum { YEAR, MONTH, WEEKDAY, DAY, HOUR, MINUTE, SECOND, MS };

static const int64_t start_ns = 1705320000250000000; /* what build_begin() writes */

static struct build begun(unsigned format, size_t *ret_body)
{
	struct build b = { 0 };

	if (format == 6)
		build_begin6(&b);
	else
		build_begin(&b, format);
	*ret_body = format == 6 ? BODY_V6 : format == 4 ? BODY_V4 : BODY_V3;
	return b;
}

static void finish(struct tape *t, struct build *b, unsigned format)
{
	if (format == 6)
		build_end6(b);
	else
		build_end(b);
	tape_play(t, b, 0, 0);
}

/* --- the object of V3 and V4 --- */

static void every_value_of_v4_is_told(void **state)
{
	size_t body;
	struct build b = begun(4, &body);
	struct tape t = { 0 };

	(void)state;
	build_patch_u64(&b, body + AT_SYNC, 0x1122334455667788);
	build_patch_u64(&b, body + AT_FREQUENCY, 3124099);
	build_patch_u32(&b, body + AT_POINTER, 4);
	build_patch_u32(&b, body + AT_PROCESS, 77);
	build_patch_u32(&b, body + AT_PROCESSORS, 12);
	build_patch_u32(&b, body + AT_INTERVAL, 10000000);
	finish(&t, &b, 4);
	assert_int_equal(t.status, NT_OK);
	assert_true(t.trace.start_unix_ns == start_ns);
	assert_true(t.trace.sync_ticks == 0x1122334455667788);
	assert_int_equal(t.trace.ticks_per_second, 3124099);
	assert_int_equal(t.trace.pointer_size, 4);
	assert_int_equal(t.trace.process_id, 77);
	assert_int_equal(t.trace.processors, 12);
	assert_int_equal(t.trace.sample_interval_ns, 10000000);
}

static void what_was_not_recorded_is_minus_one(void **state)
{
	static const uint32_t processors[] = { 0, 0xffff, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		size_t body;
		struct build b = begun(4, &body);
		struct tape t = { 0 };

		build_patch_u32(&b, body + AT_PROCESSORS, processors[i]);
		build_patch_u32(&b, body + AT_INTERVAL, 0);
		finish(&t, &b, 4);
		assert_int_equal(t.trace.processors, -1);
		assert_int_equal(t.trace.sample_interval_ns, -1);
	}
}

static const unsigned formats[] = { 3, 4, 6 };

static void a_frequency_that_is_not_positive_is_refused(void **state)
{
	static const uint64_t frequencies[] = { 0, UINT64_MAX, (uint64_t)1 << 63 };

	(void)state;
	for (size_t i = 0; i < 9; i++) {
		unsigned format = formats[i / 3];
		size_t body;
		struct build b = begun(format, &body);
		struct tape t = { 0 };

		build_patch_u64(&b, body + AT_FREQUENCY, frequencies[i % 3]);
		finish(&t, &b, format);
		assert_int_equal(t.status, NT_EFORMAT);
		assert_string_equal(t.error.what, "clock frequency is not positive");
		assert_int_equal(t.error.offset, body + AT_FREQUENCY);
		assert_string_equal(t.error.block, "Trace");
		assert_string_equal(t.log, "");
	}
}

static void other_pointer_sizes_are_refused(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 5, 16, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < 15; i++) {
		unsigned format = formats[i / 5];
		size_t body;
		struct build b = begun(format, &body);
		struct tape t = { 0 };

		build_patch_u32(&b, body + AT_POINTER, sizes[i % 5]);
		finish(&t, &b, format);
		assert_int_equal(t.status, NT_EFORMAT);
		assert_string_equal(t.error.what, "pointer size is not 4 or 8");
		assert_int_equal(t.error.offset, body + AT_POINTER);
	}
}

/* --- start of the session --- */

struct date {
	unsigned parts[8];
	int64_t unix_s; /* -1: no date */
};

static void check_date(const struct date *date, unsigned format)
{
	size_t body;
	struct build b = begun(format, &body);
	struct tape t = { 0 };

	for (size_t i = 0; i < 8; i++)
		build_patch_u16(&b, body + 2 * i, date->parts[i]);
	build_hi(&b, format);
	build_event(&b, format, 1500, 0);
	finish(&t, &b, format);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.trace.wall_clock_known, date->unix_s >= 0);
	if (date->unix_s >= 0)
		assert_true(t.trace.start_unix_ns ==
			    date->unix_s * 1000000000 + (int64_t)date->parts[MS] * 1000000);
	assert_int_equal(t.events[0].time_ns, 500); /* whatever the date */
}

static void dates_become_unix_time(void **state)
{
	static const struct date dates[] = {
		{ { 1970, 1, 4, 1, 0, 0, 0, 0 }, 0 },
		{ { 2000, 2, 2, 29, 1, 2, 3, 4 }, 951786123 },
		{ { 2024, 12, 2, 31, 23, 59, 59, 999 }, 1735689599 },
		{ { 2100, 3, 1, 1, 0, 0, 0, 1 }, 4107542400 },
		{ { 2261, 12, 2, 31, 23, 59, 59, 999 }, 9214646399 },
		{ { 2026, 11, 0, 29, 17, 17, 15, 230 }, 1795972635 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(dates) / sizeof(*dates); i++) {
		check_date(&dates[i], 4);
		check_date(&dates[i], 6);
	}
}

static void the_day_of_the_week_does_not_matter(void **state)
{
	struct date date = { { 2024, 1, 0, 15, 12, 0, 0, 250 }, 1705320000 };
	static const unsigned days[] = { 0, 6, 7, 65535 };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		date.parts[WEEKDAY] = days[i];
		check_date(&date, 4);
	}
}

static void impossible_dates_leave_relative_times_right(void **state)
{
	static const struct {
		unsigned member, value;
	} cases[] = {
		{ MONTH, 13 },	{ MONTH, 0 },	{ MONTH, 65535 }, { DAY, 0 },	 { DAY, 32 },
		{ HOUR, 24 },	{ MINUTE, 60 }, { SECOND, 60 },	  { MS, 1000 },	 { YEAR, 1969 },
		{ YEAR, 2262 }, { YEAR, 0 },	{ YEAR, 65535 },  { MS, 65535 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct date date = { { 2024, 1, 1, 15, 12, 0, 0, 250 }, -1 };

		date.parts[cases[i].member] = cases[i].value;
		check_date(&date, 4);
		check_date(&date, 6);
	}
}

static void months_have_their_lengths(void **state)
{
	static const unsigned lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int64_t day = 1672531200; /* 2023-01-01 */

	(void)state;
	for (unsigned m = 0; m < 12; m++) {
		struct date last = { { 2023, m + 1, 0, lengths[m], 0, 0, 0, 0 }, 0 };
		struct date beyond = { { 2023, m + 1, 0, lengths[m] + 1, 0, 0, 0, 0 }, -1 };

		day += (int64_t)lengths[m] * 86400;
		last.unix_s = day - 86400;
		check_date(&last, 4);
		check_date(&beyond, 4);
	}
}

static void leap_years(void **state)
{
	static const struct date dates[] = {
		{ { 2024, 2, 0, 29, 0, 0, 0, 0 }, 1709164800 },
		{ { 2023, 2, 0, 29, 0, 0, 0, 0 }, -1 },
		{ { 2100, 2, 0, 29, 0, 0, 0, 0 }, -1 },
		{ { 2000, 2, 0, 29, 0, 0, 0, 0 }, 951782400 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(dates) / sizeof(*dates); i++)
		check_date(&dates[i], 4);
}

/* --- clock values --- */

static int64_t time_of(uint64_t sync, uint64_t frequency, uint64_t ticks)
{
	size_t body;
	struct build b = begun(4, &body);
	struct tape t = { 0 };

	build_patch_u64(&b, body + AT_SYNC, sync);
	build_patch_u64(&b, body + AT_FREQUENCY, frequency);
	build_hi(&b, 4);
	build_event(&b, 4, ticks, 0);
	finish(&t, &b, 4);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.count, 1);
	assert_true(t.events[0].ticks == ticks);
	return t.events[0].time_ns;
}

static void nanosecond_clocks_are_taken_as_they_are(void **state)
{
	(void)state;
	assert_int_equal(time_of(1000, 1000000000, 1000), 0);
	assert_int_equal(time_of(1000, 1000000000, 1001), 1);
	assert_true(time_of(0, 1000000000, NT_TIME_MAX_NS) == NT_TIME_MAX_NS);
}

static void other_clocks_are_converted_exactly(void **state)
{
	(void)state;
	assert_true(time_of(7, 3124099, 7 + 5 * 3124099 + 1) == 5000000320);
	assert_true(time_of(0, 10000000, 12345) == 1234500);
	/* Ten years; a double would be wrong in the last digits. */
	assert_true(time_of(0, 2533315, 798906219634567) == 315360000487332605);
	assert_true(time_of(5, 1, 8) == 3000000000);
	assert_true(time_of(0, 24000000000, 36) == 1);
}

static void events_before_the_start_have_negative_times(void **state)
{
	(void)state;
	assert_int_equal(time_of(1000, 1000000000, 400), -600);
	assert_int_equal(time_of(1000, 10000000, 990), -1000);
	assert_int_equal(time_of(1000, 1000000000, 0), -1000);
}

static void clock_values_near_2_63_are_cut(void **state)
{
	static const uint64_t top = (uint64_t)1 << 63;

	(void)state;
	assert_true(time_of(1000, 1000000000, top - 1) == NT_TIME_MAX_NS);
	assert_true(time_of(top - 1, 1000000000, top + 1) == 2);
	assert_true(time_of(1000, 1000000000, top + 5000) == NT_TIME_MAX_NS);
	assert_true(time_of(1000, 1000000000, UINT64_MAX) == NT_TIME_MAX_NS);
	assert_true(time_of(1000, 1, top - 1) == NT_TIME_MAX_NS);
	assert_true(time_of(top - 1, 1, 0) == -NT_TIME_MAX_NS);
	assert_true(time_of(0, INT64_MAX, INT64_MAX) == 1000000000);
	assert_true(time_of(1000, 10000000, UINT64_MAX) == NT_TIME_MAX_NS);
}

/* --- key/value pairs of V6 --- */

static void play_pairs(struct tape *t, const char *const *texts, uint32_t count)
{
	struct build b = { 0 }, trace = { 0 };

	build_begin6(&b);
	b.count = 20;
	build_trace6(&trace);
	build_u32(&trace, count);
	for (uint32_t i = 0; i < 2 * count; i++)
		build_str6(&trace, texts[i]);
	build_block6(&b, KIND6_TRACE, &trace);
	build_end6(&b);
	tape_play(t, &b, 0, 0);
}

static void pairs_that_mean_something_are_told(void **state)
{
	static const char *const texts[] = {
		"HardwareThreadCount",
		"16",
		"ExpectedCPUSamplingRate",
		"1000000",
		"SystemPageSize",
		"4096",
		"Anything",
		"",
		"",
		"nobody",
		"ProcessId",
		"4294967296",
	};
	struct tape t = { 0 };

	(void)state;
	play_pairs(&t, texts, 6);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.trace.processors, 16);
	assert_int_equal(t.trace.sample_interval_ns, 1000000);
	assert_true(t.trace.process_id == 4294967296);
}

static void without_pairs_nothing_is_recorded(void **state)
{
	struct tape t = { 0 };

	(void)state;
	play_pairs(&t, NULL, 0);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.trace.process_id, -1);
	assert_int_equal(t.trace.processors, -1);
	assert_int_equal(t.trace.sample_interval_ns, -1);
}

static void values_that_are_no_numbers_are_not_recorded(void **state)
{
	static const char *const values[] = { "",
					      "x",
					      "12x",
					      " 1",
					      "-1",
					      "+1",
					      "0x10",
					      "9223372036854775808",
					      "99999999999999999999" };

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		const char *const texts[] = { "ProcessId", values[i],	"HardwareThreadCount",
					      values[i],   "processid", "1" };
		struct tape t = { 0 };

		play_pairs(&t, texts, 3);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.trace.process_id, -1);
		assert_int_equal(t.trace.processors, -1);
	}
}

static void counts_of_zero_are_not_recorded(void **state)
{
	static const char *const texts[] = {
		"HardwareThreadCount", "0", "ExpectedCPUSamplingRate", "0", "ProcessId", "0"
	};
	struct tape t = { 0 };

	(void)state;
	play_pairs(&t, texts, 3);
	assert_int_equal(t.trace.processors, -1);
	assert_int_equal(t.trace.sample_interval_ns, -1);
	assert_int_equal(t.trace.process_id, 0); /* the kernel's */
}

static void a_count_of_pairs_that_are_not_there(void **state)
{
	static const uint32_t counts[] = { 2, INT32_MAX, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		size_t body;
		struct build b = begun(6, &body);
		struct tape t = { 0 };
		size_t end = b.count;

		build_patch_u32(&b, body + 36, counts[i]);
		finish(&t, &b, 6);
		assert_int_equal(t.status, NT_EFORMAT);
		assert_string_equal(t.error.what, "Trace runs past its block");
		assert_int_equal(t.error.offset, end);
		assert_string_equal(t.log, "");
	}
}

static void a_trace_block_may_be_longer_but_not_shorter(void **state)
{
	(void)state;
	for (size_t size = 0; size < 48; size++) {
		struct build b = { 0 }, trace = { 0 };
		struct tape t = { 0 };

		build_begin6(&b);
		b.count = 20;
		build_trace6(&trace);
		while (trace.count < 48)
			build_u8(&trace, 0); /* no pairs, then what we do not know */
		trace.count = size;
		build_block6(&b, KIND6_TRACE, &trace);
		build_end6(&b);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, size < 40 ? NT_EFORMAT : NT_OK);
	}
}

static void what_the_callback_answers_counts(void **state)
{
	static const enum nt_status answers[] = { NT_STOPPED, NT_ESINK, NT_ENOMEM };

	(void)state;
	for (size_t i = 0; i < 9; i++) {
		size_t body;
		struct build b = begun(formats[i / 3], &body);
		struct tape t = { .refuse = "trace", .refusal = answers[i % 3] };

		finish(&t, &b, formats[i / 3]);
		assert_int_equal(t.status, answers[i % 3]);
		assert_int_equal(t.error.code, answers[i % 3] < 0 ? answers[i % 3] : NT_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_value_of_v4_is_told),
		cmocka_unit_test(what_was_not_recorded_is_minus_one),
		cmocka_unit_test(a_frequency_that_is_not_positive_is_refused),
		cmocka_unit_test(other_pointer_sizes_are_refused),
		cmocka_unit_test(dates_become_unix_time),
		cmocka_unit_test(the_day_of_the_week_does_not_matter),
		cmocka_unit_test(impossible_dates_leave_relative_times_right),
		cmocka_unit_test(months_have_their_lengths),
		cmocka_unit_test(leap_years),
		cmocka_unit_test(nanosecond_clocks_are_taken_as_they_are),
		cmocka_unit_test(other_clocks_are_converted_exactly),
		cmocka_unit_test(events_before_the_start_have_negative_times),
		cmocka_unit_test(clock_values_near_2_63_are_cut),
		cmocka_unit_test(pairs_that_mean_something_are_told),
		cmocka_unit_test(without_pairs_nothing_is_recorded),
		cmocka_unit_test(values_that_are_no_numbers_are_not_recorded),
		cmocka_unit_test(counts_of_zero_are_not_recorded),
		cmocka_unit_test(a_count_of_pairs_that_are_not_there),
		cmocka_unit_test(a_trace_block_may_be_longer_but_not_shorter),
		cmocka_unit_test(what_the_callback_answers_counts),
	};

	return cmocka_run_group_tests_name("block_trace", tests, NULL, NULL);
}
