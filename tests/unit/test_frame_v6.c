/* SPDX-License-Identifier: MIT */
/* Stream header and block headers of version 6. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/tape.h"

enum { AT_MAJOR = 12, AT_MINOR = 16, HEADER = 20 };

static void refuse(struct build *b, enum nt_status code, size_t offset, const char *what)
{
	struct tape t = { 0 };

	tape_play(&t, b, 0, 0);
	assert_int_equal(t.status, code);
	assert_string_equal(t.error.what, what);
	assert_int_equal(t.error.offset, offset);
}

static void an_empty_trace_is_fine(void **state)
{
	struct build b = build_new(6);
	struct tape t = { 0 };

	(void)state;
	build_end6(&b);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.trace.format, 6);
	assert_string_equal(t.log, "trace");
	assert_int_equal(t.stats.blocks, 1);
	assert_true(t.stats.ended);
}

static void any_minor_version_is_accepted_and_reported(void **state)
{
	static const uint32_t minors[] = { 0, 1, 25, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(minors) / sizeof(*minors); i++) {
		struct build b = build_new(6);
		struct tape t = { 0 };

		build_patch_u32(&b, AT_MINOR, minors[i]);
		build_end6(&b);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.trace.format_minor, minors[i]);
	}
}

static void other_major_versions_are_refused(void **state)
{
	static const uint32_t majors[] = { 0, 3, 5, 7, 8, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(majors) / sizeof(*majors); i++) {
		struct build b = build_new(6);

		build_patch_u32(&b, AT_MAJOR, majors[i]);
		refuse(&b, NT_EVERSION, AT_MAJOR,
		       "unsupported version of the trace format: not 3, 4, 5 or 6");
	}
}

static void the_trace_comes_first_and_once(void **state)
{
	struct build b = build_new(6), other = build_new(6);
	size_t at = b.count;

	(void)state;
	build_bytes(&b, other.bytes + HEADER, other.count - HEADER);
	build_done(&other);
	refuse(&b, NT_EFORMAT, at, "a second Trace block");
	for (unsigned kind = 0; kind < 12; kind++) {
		struct build content = { 0 };

		if (kind == KIND6_TRACE)
			continue;
		b = build_new(6);
		b.count = HEADER;
		build_block6(&b, kind, &content);
		refuse(&b, NT_EFORMAT, HEADER, "the first block is not a Trace");
	}
}

static void unknown_kinds_are_skipped_by_their_size(void **state)
{
	static const unsigned kinds[] = { 9, 10, 127, 128, 255 };

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct build b = build_new(6), content = { 0 };
		struct tape t = { 0 };

		build_bytes(&content, "what may this be", i);
		build_block6(&b, kinds[i], &content);
		build_hi(&b, 6);
		build_event(&b, 6, 2000, 5);
		build_end6(&b);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_OK);
		assert_string_equal(t.log, "trace define:Hi Hi@2000");
		assert_int_equal(t.stats.skipped_blocks, 1);
		assert_int_equal(t.stats.blocks, 4);
	}
}

static void blocks_are_not_aligned(void **state)
{
	(void)state;
	for (size_t size = 1; size < 8; size++) {
		struct build b = build_new(6), content = { 0 };
		struct tape t = { 0 };

		build_bytes(&content, "1234567", size);
		build_block6(&b, 99, &content);
		build_hi(&b, 6);
		build_event(&b, 6, 2000, 5);
		build_end6(&b);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.count, 1);
	}
}

static void an_end_block_with_content_still_ends(void **state)
{
	struct build b = build_new(6), content = { 0 };
	struct tape t = { 0 };

	(void)state;
	build_bytes(&content, "later versions may say more", 27);
	build_block6(&b, KIND6_END, &content);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_OK);
	assert_true(t.stats.ended);
	assert_int_equal(t.stats.trailing_bytes, 27);
}

static void bytes_behind_the_end_are_counted_and_ignored(void **state)
{
	(void)state;
	for (size_t chunk = 0; chunk < 4; chunk++) {
		struct build b = build_new(6);
		struct tape t = { 0 };

		build_end6(&b);
		build_bytes(&b, "garbage", 7);
		tape_play(&t, &b, chunk, 0);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.stats.trailing_bytes, 7);
	}
}

static void a_missing_end_block_is_truncation(void **state)
{
	struct build b = build_new(6);
	struct tape t = { 0 };
	size_t end;

	(void)state;
	build_hi(&b, 6);
	build_event(&b, 6, 2000, 5);
	end = b.count;
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_ETRUNC);
	assert_string_equal(t.error.what, "the stream ends before its end tag");
	assert_int_equal(t.error.offset, end);
	assert_int_equal(t.error.events_before, 1);
	assert_string_equal(t.error.block, "block header");
	assert_int_equal(t.error.block_index, 3);
	assert_int_equal(t.error.row, 0);
}

static void the_largest_block_of_the_format_is_read(void **state)
{
	struct build b = build_new(6), content = { 0 };
	struct tape t = { 0 };
	static uint8_t zeros[0xffffff];

	(void)state;
	build_bytes(&content, zeros, sizeof(zeros));
	build_block6(&b, 99, &content);
	build_hi(&b, 6);
	build_event(&b, 6, 2000, 5);
	build_end6(&b);
	tape_play(&t, &b, 1 << 20, 0);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.count, 1);
	assert_int_equal(t.stats.skipped_blocks, 1);
}

static void a_full_event_block_of_16_mb_is_read(void **state)
{
	static uint8_t payload[0xffffff - 100];
	const struct build_row r = {
		.metadata_id = 1,
		.capture = 1,
		.ticks_delta = 2000,
		.payload = payload,
		.payload_bytes = sizeof(payload),
	};
	struct build b = build_new(6), rows = { 0 };
	struct tape t = { 0 };

	(void)state;
	build_hi(&b, 6);
	build_row(&rows, true, &r);
	build_rows(&b, 6, &rows);
	build_end6(&b);
	tape_play(&t, &b, 0, NT_TIME_ORDER);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.events[0].payload_bytes, sizeof(payload));
}

static void the_limit_of_a_block_is_exact(void **state)
{
	(void)state;
	for (size_t size = 60; size <= 61; size++) {
		const struct nt_limits limits = { .max_block = 60 };
		struct build b = build_new(6), content = { 0 };
		struct tape t = { 0 };
		size_t at = b.count;

		while (content.count < size)
			build_u8(&content, 0);
		build_block6(&b, 99, &content);
		build_end6(&b);
		tape_play_with(&t, &b, 0, 0, &limits);
		assert_int_equal(t.status, size == 60 ? NT_OK : NT_ELIMIT);
		if (size == 61)
			assert_int_equal(t.error.offset, at);
	}
}

static void blocks_of_no_bytes(void **state)
{
	static const struct {
		unsigned kind;
		const char *what; /* NULL: they may be empty */
	} cases[] = {
		{ KIND6_EVENT, "block header runs past its block" },
		{ KIND6_METADATA, "metadata block header runs past its block" },
		{ KIND6_SEQUENCE, "sequence point runs past its block" },
		{ KIND6_STACK, "stack block header runs past its block" },
		{ KIND6_THREAD, NULL },
		{ KIND6_REMOVE_THREAD, NULL },
		{ KIND6_LABEL, "label block header runs past its block" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct build b = build_new(6), content = { 0 };
		struct tape t = { 0 };
		size_t offset;

		build_block6(&b, cases[i].kind, &content);
		offset = b.count;
		build_end6(&b);
		if (cases[i].what) {
			refuse(&b, NT_EFORMAT, offset, cases[i].what);
			continue;
		}
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_trace_is_fine),
		cmocka_unit_test(any_minor_version_is_accepted_and_reported),
		cmocka_unit_test(other_major_versions_are_refused),
		cmocka_unit_test(the_trace_comes_first_and_once),
		cmocka_unit_test(unknown_kinds_are_skipped_by_their_size),
		cmocka_unit_test(blocks_are_not_aligned),
		cmocka_unit_test(an_end_block_with_content_still_ends),
		cmocka_unit_test(bytes_behind_the_end_are_counted_and_ignored),
		cmocka_unit_test(a_missing_end_block_is_truncation),
		cmocka_unit_test(the_largest_block_of_the_format_is_read),
		cmocka_unit_test(a_full_event_block_of_16_mb_is_read),
		cmocka_unit_test(the_limit_of_a_block_is_exact),
		cmocka_unit_test(blocks_of_no_bytes),
	};

	return cmocka_run_group_tests_name("frame_v6", tests, NULL, NULL);
}
