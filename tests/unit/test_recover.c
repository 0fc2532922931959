/* SPDX-License-Identifier: MIT */
/* Going on after a fault: what is lost, what is found again, and what is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/tape.h"
#include "tests/support/trail.h"

/* Where things are in an object, counted from its first byte. */
enum { AT_TYPE_TAG = 1, AT_TYPE_NULL = 2, AT_VERSION = 3, AT_NAME_BYTES = 11, AT_NAME = 15 };
enum { AT_EVENT_SIZE = AT_NAME + 10 + 1 };

/* Three event blocks at 1000, 2000 and 3000; *ret_at: where the second begins, *ret_end: ends. */
static struct build three_events(unsigned format, size_t *ret_at, size_t *ret_end)
{
	struct build b = build_new(format);

	build_hi(&b, format);
	build_event(&b, format, 1000, 1);
	*ret_at = b.count;
	build_event(&b, format, 2000, 2);
	*ret_end = b.count;
	build_event(&b, format, 3000, 3);
	build_close(&b, format);
	return b;
}

/* The second block is lost, nothing else. */
static void expect_lost(struct build *b, size_t chunk, enum nt_status code, size_t offset)
{
	struct tape t = { 0 };

	tape_play(&t, b, chunk, NT_RECOVER);
	assert_string_equal(t.log, "trace define:Hi Hi@1000 Hi@3000");
	assert_int_equal(t.status, code);
	assert_int_equal(t.error.code, code);
	assert_int_equal(t.error.offset, offset);
	assert_int_equal(t.error.events_before, 1);
	assert_int_equal(t.error.block_index, 3);
	assert_true(t.stats.faults >= 1);
	assert_true(t.stats.ended);
}

/* Damage to an object of V4: that many bytes of value at the place. */
struct damage {
	size_t at;
	uint32_t value;
	size_t bytes;
	enum nt_status code;
	size_t fault; /* where it is noticed, if not there */
};

static const struct damage damages[] = {
	{ 0, 4, 1, NT_EFORMAT, 0 },
	{ 0, 0xff, 1, NT_EFORMAT, 0 },
	{ AT_TYPE_TAG, 9, 1, NT_EFORMAT, 0 },
	{ AT_TYPE_NULL, 9, 1, NT_EFORMAT, 0 },
	{ AT_VERSION, 3, 4, NT_EVERSION, AT_NAME },
	{ AT_NAME_BYTES, UINT32_MAX, 4, NT_EFORMAT, 0 },
	{ AT_NAME_BYTES, 39, 4, NT_EFORMAT, 0 },
	{ AT_NAME_BYTES, 9, 4, NT_EFORMAT, AT_NAME + 9 },
	{ AT_NAME_BYTES, 0, 4, NT_EFORMAT, AT_NAME },
	{ AT_EVENT_SIZE, UINT32_MAX, 4, NT_EFORMAT, 0 },
	{ AT_EVENT_SIZE, INT32_MAX, 4, NT_ELIMIT, 0 },
};

static void a_damaged_object_costs_that_object(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++)
		for (size_t chunk = 0; chunk < 60; chunk++) {
			const struct damage *d = &damages[i];
			size_t at, end;
			struct build b = three_events(4, &at, &end);

			if (d->bytes == 1)
				build_patch_u8(&b, at + d->at, d->value);
			else
				build_patch_u32(&b, at + d->at, d->value);
			expect_lost(&b, chunk, d->code, at + (d->fault ? d->fault : d->at));
		}
}

static void a_missing_end_tag_costs_nothing_but_is_told(void **state)
{
	size_t at, end;
	struct build b = three_events(4, &at, &end);
	struct tape t = { 0 };

	(void)state;
	build_patch_u8(&b, end - 1, 0);
	tape_play(&t, &b, 0, NT_RECOVER);
	assert_string_equal(t.log, "trace define:Hi Hi@1000 Hi@2000 Hi@3000");
	assert_int_equal(t.status, NT_EFORMAT);
	assert_int_equal(t.error.offset, end - 1);
	assert_int_equal(t.stats.faults, 1);
	assert_int_equal(t.stats.skipped_bytes, 1);
}

/* The payload's size in the only row. */
static void damage_to_a_row_costs_the_rest_of_its_block(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2)
		for (size_t chunk = 0; chunk < 60; chunk++) {
			size_t at, end, payload;
			struct build b = three_events(format, &at, &end);

			payload = end - (format == 6 ? 1 : 2);
			build_patch_u8(&b, payload - 1, 100);
			expect_lost(&b, chunk, NT_EFORMAT, payload);
		}
}

static void bytes_of_nothing_between_objects(void **state)
{
	(void)state;
	for (size_t n = 1; n < 80; n++) {
		size_t at, end;
		struct build b = three_events(4, &at, &end), with = { 0 };
		struct tape t = { 0 };

		build_bytes(&with, b.bytes, at);
		build_repeat(&with, n % 2 ? 5 : 0, n - n % 4 + 4); /* 5 begins objects */
		build_bytes(&with, b.bytes + at, b.count - at);
		build_done(&b);
		tape_play(&t, &with, 0, NT_RECOVER);
		assert_string_equal(t.log, "trace define:Hi Hi@1000 Hi@2000 Hi@3000");
		assert_int_equal(t.status, NT_EFORMAT);
		/* Of the tags the first one was taken for that of an object. */
		assert_int_equal(t.stats.skipped_bytes, n - n % 4 + 4 - n % 2);
	}
}

static void what_only_looks_like_an_object_is_passed_over(void **state)
{
	static const char *const names[] = { "EventBlocq", "StackBlock", "Trace", "EventBlock" };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		size_t at, end;
		struct build b = three_events(4, &at, &end), with = { 0 };
		struct tape t = { 0 };

		build_bytes(&with, b.bytes, at);
		build_bytes(&with, "\xff\x05\x05\x01", 4);
		build_u32(&with, i == 3 ? 3 : 2); /* a version that is not */
		build_u32(&with, 2);
		build_u32(&with, (uint32_t)strlen(names[i]));
		build_bytes(&with, names[i], strlen(names[i]));
		build_repeat(&with, 7, 4 + (0 - with.count - 4 + at) % 4); /* no end tag */
		build_bytes(&with, b.bytes + at, b.count - at);
		build_done(&b);
		tape_play(&t, &with, 0, NT_RECOVER);
		assert_string_equal(t.log, "trace define:Hi Hi@1000 Hi@2000 Hi@3000");
		assert_int_equal(t.stats.faults, 1);
		assert_int_equal(t.error.offset, at);
	}
}

static void version_3_recovers_too(void **state)
{
	struct build b = build_new(3), content = { 0 };
	struct tape t = { 0 };
	size_t size_at;

	(void)state;
	for (size_t i = 0; i < 3; i++) { /* records that say nothing, of an unknown definition */
		build_u32(&content, 56);
		build_u32(&content, 9);
		build_u32(&content, 1);
		build_u64(&content, 1000 * (i + 1));
		build_repeat(&content, 0, 40);
		size_at = b.count + AT_EVENT_SIZE;
		build_object(&b, 3, "EventBlock", &content);
		if (i == 1)
			build_patch_u32(&b, size_at, UINT32_MAX);
	}
	build_end(&b);
	tape_play(&t, &b, 0, NT_RECOVER);
	assert_string_equal(t.log, "trace define:Event9 Event9@1000 Event9@3000");
	assert_int_equal(t.status, NT_EFORMAT);
	assert_int_equal(t.stats.faults, 1);
}

/* --- what is still known afterwards --- */

static void stacks(struct build *b)
{
	struct build content = { 0 };

	build_u32(&content, 1);
	build_u32(&content, 1);
	build_stack(&content, 0x1000, 1);
	build_object(b, 4, "StackBlock", &content);
}

static void event_with_stack(struct build *b, bool unsorted)
{
	const struct build_row r = {
		.metadata_id = 1,
		.stack = 1,
		.ticks_delta = 500,
		.unsorted = unsorted,
	};
	struct build rows = { 0 };

	build_row(&rows, false, &r);
	build_rows(b, 4, &rows);
}

static void stacks_are_unknown_until_they_come_again(void **state)
{
	struct build b = build_new(4);
	struct tape t = { 0 };

	(void)state;
	build_hi(&b, 4);
	stacks(&b);
	event_with_stack(&b, true); /* waits; it leaves with its stack */
	build_u8(&b, 0xff);
	build_repeat(&b, 0, 3);
	event_with_stack(&b, false);
	stacks(&b);
	event_with_stack(&b, false);
	build_end(&b);
	tape_play(&t, &b, 0, NT_RECOVER | NT_TIME_ORDER);
	assert_int_equal(t.count, 3);
	assert_int_equal(t.events[0].frame_count, 1);
	assert_int_equal(t.events[1].frame_count, 0);
	assert_int_equal(t.events[2].frame_count, 1);
	assert_true(t.events[1].stack_epoch > t.events[0].stack_epoch);
	assert_true(t.events[0].defined && t.events[1].defined);
	assert_int_equal(t.stats.unknown_stacks, 1);
}

static void every_fault_is_counted_and_the_first_is_told(void **state)
{
	struct build b = build_new(4);
	struct tape t = { 0 };
	size_t first = 0;

	(void)state;
	build_hi(&b, 4);
	for (size_t i = 0; i < 10; i++) {
		size_t at = b.count;

		build_event(&b, 4, 1000 + i, 1);
		if (i % 3 == 1)
			build_patch_u8(&b, at, 7);
		if (i == 1)
			first = at;
	}
	build_end(&b);
	tape_play(&t, &b, 0, NT_RECOVER);
	assert_int_equal(t.count, 7);
	assert_int_equal(t.stats.faults, 3);
	assert_int_equal(t.error.offset, first);
	assert_int_equal(t.error.events_before, 1);
}

static void a_fault_is_told_though_the_stream_is_cut_as_well(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		size_t at, end;
		struct build b = three_events(format, &at, &end);
		struct tape t = { 0 };

		build_patch_u8(&b, end - (format == 6 ? 2 : 3), 100);
		b.count -= format == 6 ? 4 : 1;
		tape_play(&t, &b, 0, NT_RECOVER);
		assert_string_equal(t.log, "trace define:Hi Hi@1000 Hi@3000");
		assert_int_equal(t.status, NT_EFORMAT);
		assert_int_equal(t.error.offset, end - (format == 6 ? 1 : 2));
		assert_false(t.stats.ended);
	}
}

/* --- V6 --- */

static void a_damaged_block_of_v6_costs_that_block(void **state)
{
	struct build b = build_new(6), content = { 0 };
	struct tape t = { 0 };
	size_t at;

	(void)state;
	build_hi(&b, 6);
	build_thread6(&content, 42, "main", 1, 2);
	build_thread6(&content, 42, "twice", 1, 2);
	at = b.count + 4;
	build_block6(&b, KIND6_THREAD, &content);
	build_repeat(&content, 0xff, 20);
	build_block6(&b, KIND6_STACK, &content);
	build_repeat(&content, 0xff, 20);
	build_block6(&b, KIND6_LABEL, &content);
	build_repeat(&content, 0xff, 20);
	build_block6(&b, KIND6_METADATA, &content);
	build_repeat(&content, 0xff, 30);
	build_block6(&b, KIND6_SEQUENCE, &content);
	build_event(&b, 6, 2000, 1);
	build_close(&b, 6);
	tape_play(&t, &b, 0, NT_RECOVER);
	assert_string_equal(t.log, "trace define:Hi Hi@2000");
	assert_string_equal(t.events[0].thread_name, "main"); /* it came before the fault */
	assert_int_equal(t.status, NT_EFORMAT);
	assert_string_equal(t.error.what, "thread index is declared a second time");
	assert_int_equal(t.error.offset, at + 15);
	assert_int_equal(t.stats.faults, 5);
}

/* Nothing tells where the next block would be. */
static void a_block_header_of_v6_that_lies_ends_the_stream(void **state)
{
	const struct nt_limits limits = { .max_block = 100 };
	size_t at, end;
	struct build b = three_events(6, &at, &end);
	struct tape t = { 0 };

	(void)state;
	build_patch_u8(&b, at + 3, KIND6_TRACE);
	tape_play(&t, &b, 0, NT_RECOVER);
	assert_int_equal(t.status, NT_EFORMAT);
	assert_int_equal(t.error.offset, at);
	assert_int_equal(t.count, 1);

	b = three_events(6, &at, &end);
	build_patch_u8(&b, at + 1, 1); /* 256 bytes more */
	t = (struct tape){ 0 };
	tape_play_with(&t, &b, 0, NT_RECOVER, &limits);
	assert_int_equal(t.status, NT_ELIMIT);
	assert_int_equal(t.error.offset, at);
}

/* --- what cannot be recovered from --- */

static void without_a_trace_there_is_nothing_to_go_on_with(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		size_t at, end;
		struct build b = three_events(format, &at, &end);
		struct tape t = { 0 };

		build_patch_u64(&b, (format == 6 ? 24 : 53) + 24, 0); /* frequency */
		tape_play(&t, &b, 0, NT_RECOVER);
		assert_int_equal(t.status, NT_EFORMAT);
		assert_string_equal(t.log, "");
		assert_int_equal(t.stats.faults, 0);
	}
}

static void a_refusal_is_not_a_fault_of_the_stream(void **state)
{
	static const enum nt_status answers[] = { NT_STOPPED, NT_ESINK, NT_ENOMEM };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		size_t at, end;
		struct build b = three_events(4, &at, &end);
		struct tape t = { .refuse = "event", .skip = 1, .refusal = answers[i] };

		tape_play(&t, &b, 0, NT_RECOVER);
		assert_int_equal(t.status, answers[i]);
		assert_int_equal(t.count, 2);
		assert_int_equal(t.stats.faults, 0);
	}
}

static void a_refusal_during_recovery_counts(void **state)
{
	static const enum nt_status answers[] = { NT_STOPPED, NT_ESINK };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct build b = build_new(4);
		struct tape t = { .refuse = "event", .refusal = answers[i] };

		build_hi(&b, 4);
		event_with_stack(&b, true); /* leaves when the next object is found */
		build_repeat(&b, 0xff, 4);
		event_with_stack(&b, true);
		event_with_stack(&b, true);
		build_end(&b);
		tape_play(&t, &b, 0, NT_RECOVER | NT_TIME_ORDER);
		assert_int_equal(t.status, answers[i]);
		assert_int_equal(t.count, 1);
	}
}

static void without_the_flag_the_first_fault_is_the_end(void **state)
{
	size_t at, end;
	struct build b = three_events(4, &at, &end);
	struct tape t = { 0 };

	(void)state;
	build_patch_u8(&b, at, 9);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_EFORMAT);
	assert_int_equal(t.error.offset, at);
	assert_int_equal(t.count, 1);
	assert_int_equal(t.stats.faults, 0);
}

/* --- hostile streams must not take for ever --- */

/* One huge block that is damaged at its start and full of small objects. */
static void a_huge_damaged_block_full_of_objects(void **state)
{
	struct build b = build_new(4), content = { 0 }, tiny = { 0 };
	struct trail t = { 0 };
	uint64_t objects = 0;

	(void)state;
	build_repeat(&content, 0, 20); /* a header that is too short */
	while (content.count < 6 << 20) {
		build_sequence_point(&tiny, 1, NULL, NULL, 0);
		build_object(&content, 4, "SPBlock", &tiny);
		objects++;
	}
	build_object(&b, 4, "EventBlock", &content);
	build_end(&b);
	assert_int_equal(feed(b.bytes, b.count, 65536, NT_RECOVER, &t), NT_EFORMAT);
	assert_int_equal(t.sequence_points, objects);
	build_done(&b);
}

/* Objects that each say they have megabytes, one every few bytes. */
static void many_objects_that_claim_to_be_huge(void **state)
{
	struct build b = build_new(4), content = { 0 };
	struct trail t = { 0 };

	(void)state;
	for (size_t i = 0; i < 200000; i++) {
		size_t at = b.count;

		build_object(&b, 4, "EventBlock", &content);
		build_patch_u32(&b, at + AT_EVENT_SIZE, 2 << 20);
		build_repeat(&b, 0, 8); /* a header of no bytes: damage */
	}
	assert_int_equal(feed(b.bytes, b.count, 65536, NT_RECOVER, &t), NT_EFORMAT);
	assert_true(t.stats.faults > 10000);
	build_done(&b);
}

/* What made a limit of memory be reached is still there behind the next block. */
static void a_limit_of_memory_is_the_end(void **state)
{
	const struct nt_limits limits = { .max_ids = 2 };
	struct build b = { 0 }, rows = { 0 };
	struct trail t = { 0 };
	size_t block;

	(void)state;
	build_begin(&b, 4);
	block = b.count;
	build_rows_header(&rows, 1);
	for (uint32_t id = 1; id <= 4; id++)
		build_definition(&rows, id, "Demo", id, "Hi");
	build_object(&b, 4, "MetadataBlock", &rows);
	build_event(&b, 4, 1000, 1);
	build_end(&b);
	assert_int_equal(feed_with(NULL, &limits, b.bytes, b.count, 0, NT_RECOVER, &t), NT_ELIMIT);
	assert_int_equal(t.error.code, NT_ELIMIT);
	assert_int_equal(t.error.row, 2);
	assert_true(t.error.offset > block && t.error.offset < b.count);
	assert_int_equal(t.stats.faults, 0);
	assert_int_equal(t.events, 0);
	build_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_damaged_object_costs_that_object),
		cmocka_unit_test(a_missing_end_tag_costs_nothing_but_is_told),
		cmocka_unit_test(damage_to_a_row_costs_the_rest_of_its_block),
		cmocka_unit_test(bytes_of_nothing_between_objects),
		cmocka_unit_test(what_only_looks_like_an_object_is_passed_over),
		cmocka_unit_test(version_3_recovers_too),
		cmocka_unit_test(stacks_are_unknown_until_they_come_again),
		cmocka_unit_test(every_fault_is_counted_and_the_first_is_told),
		cmocka_unit_test(a_fault_is_told_though_the_stream_is_cut_as_well),
		cmocka_unit_test(a_damaged_block_of_v6_costs_that_block),
		cmocka_unit_test(a_block_header_of_v6_that_lies_ends_the_stream),
		cmocka_unit_test(without_a_trace_there_is_nothing_to_go_on_with),
		cmocka_unit_test(a_refusal_is_not_a_fault_of_the_stream),
		cmocka_unit_test(a_refusal_during_recovery_counts),
		cmocka_unit_test(without_the_flag_the_first_fault_is_the_end),
		cmocka_unit_test(a_huge_damaged_block_full_of_objects),
		cmocka_unit_test(many_objects_that_claim_to_be_huge),
		cmocka_unit_test(a_limit_of_memory_is_the_end),
	};

	return cmocka_run_group_tests_name("recover", tests, NULL, NULL);
}
