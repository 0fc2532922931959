/* SPDX-License-Identifier: MIT */
/* Stream headers and tagged objects of versions 3 and 4: what is accepted, skipped and refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/tape.h"

/* Where things are in an object, counted from its first byte. */
enum { AT_TYPE_TAG = 1, AT_TYPE_NULL = 2, AT_VERSION = 3, AT_MIN_READER = 7, AT_NAME = 15 };
enum { AT_NAME_BYTES = 11, AT_EVENT_SIZE = AT_NAME + 10 + 1 };

enum { HEADER_V3 = 24, HEADER_V4 = 32 }; /* behind them stands the Trace object */

/* A definition, then an event block at *ret_at. */
static struct build with_event(size_t *ret_at)
{
	struct build b = build_new(4);

	build_hi(&b, 4);
	*ret_at = b.count;
	build_event(&b, 4, 2000, 5);
	return b;
}

static void refuse(struct build *b, enum nt_status code, size_t offset, const char *what)
{
	struct tape t = { 0 };
	struct build again = { 0 };

	build_bytes(&again, b->bytes, b->count);
	tape_play(&t, b, 0, 0);
	assert_int_equal(t.status, code);
	assert_int_equal(t.error.code, code);
	assert_string_equal(t.error.what, what);
	assert_int_equal(t.error.offset, offset);
	tape_play(&t, &again, 1, 0);
	assert_int_equal(t.status, code);
	assert_int_equal(t.error.offset, offset);
}

/* --- headers --- */

static void an_empty_trace_of_each_version_is_fine(void **state)
{
	(void)state;
	for (unsigned format = 3; format <= 4; format++) {
		struct build b = build_new(format);
		struct tape t = { 0 };

		build_end(&b);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.trace.format, format);
		assert_string_equal(t.log, "trace");
		assert_int_equal(t.stats.blocks, 1);
	}
}

static void nothing_at_all_is_truncated(void **state)
{
	struct build b = { 0 };

	(void)state;
	refuse(&b, NT_ETRUNC, 0, "the stream is empty");
}

static void every_wrong_byte_of_the_magic_is_seen(void **state)
{
	(void)state;
	for (unsigned format = 3; format <= 4; format++)
		for (size_t i = 0; i < 8; i++) {
			struct build b = build_new(format);

			build_patch_u8(&b, i, b.bytes[i] ^ 1u);
			refuse(&b, NT_EFORMAT, 0,
			       "not a trace: neither Nettrace nor netperf header");
		}
}

static void objects_without_a_header_are_not_guessed_at(void **state)
{
	struct build b = build_new(4);

	(void)state;
	memmove(b.bytes, b.bytes + HEADER_V4, b.count - HEADER_V4);
	b.count -= HEADER_V4;
	refuse(&b, NT_EFORMAT, 0, "not a trace: neither Nettrace nor netperf header");
}

static void the_rest_of_the_header_is_checked(void **state)
{
	struct build b = build_new(4);

	(void)state;
	build_patch_u32(&b, 8, 21);
	refuse(&b, NT_EFORMAT, 8, "stream header has a wrong length");
	for (size_t i = 12; i < HEADER_V4; i++) {
		b = build_new(4);
		build_patch_u8(&b, i, '?');
		refuse(&b, NT_EFORMAT, 12, "stream header lacks !FastSerialization.1");
	}
	b = build_new(3);
	build_patch_u8(&b, HEADER_V3 - 1, '2');
	refuse(&b, NT_EFORMAT, 8, "stream header lacks !FastSerialization.1");
}

/* As .NET Core 2.0 wrote it. */
static void versions_1_and_2_are_named_when_refused(void **state)
{
	(void)state;
	for (uint32_t version = 1; version <= 2; version++) {
		struct build b = build_new(3);
		struct build content = { 0 };

		b.count = HEADER_V3;
		build_u64(&content, 0);
		build_object(&b, 3, "Microsoft.DotNet.Runtime.EventPipeFile", &content);
		build_patch_u32(&b, HEADER_V3 + AT_VERSION, version);
		refuse(&b, NT_EVERSION, HEADER_V3 + AT_NAME,
		       "unsupported version 1 or 2 of the trace format (.NET Core 2.0)");
	}
}

static void the_version_must_be_that_of_the_container(void **state)
{
	static const struct {
		unsigned format;
		uint32_t version;
	} cases[] = { { 4, 3 }, { 4, 5 }, { 4, UINT32_MAX }, { 3, 2 }, { 3, 4 }, { 3, 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct build b = build_new(cases[i].format);
		size_t trace = cases[i].format == 3 ? HEADER_V3 : HEADER_V4;

		build_patch_u32(&b, trace + AT_VERSION, cases[i].version);
		refuse(&b, NT_EVERSION, trace + AT_NAME,
		       "unsupported version of the trace format: not 3, 4, 5 or 6");
	}
}

static void what_asks_for_a_newer_reader_is_refused(void **state)
{
	struct build b = build_new(4);
	size_t at;

	(void)state;
	build_patch_u32(&b, HEADER_V4 + AT_MIN_READER, 5);
	refuse(&b, NT_EVERSION, HEADER_V4 + AT_MIN_READER, "object asks for a newer reader");
	for (uint32_t version = 3; version <= 4; version++) { /* the trace's, not a block's */
		b = with_event(&at);
		build_patch_u32(&b, at + AT_MIN_READER, version);
		refuse(&b, NT_EVERSION, at + AT_NAME, "block asks for a newer reader");
	}
}

static void a_block_may_name_any_older_reader(void **state)
{
	(void)state;
	for (uint32_t version = 0; version <= 2; version++) {
		struct tape t = { 0 };
		struct build b;
		size_t at;

		b = with_event(&at);
		build_patch_u32(&b, at + AT_MIN_READER, version);
		build_end(&b);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.count, 1);
	}
}

/* --- objects --- */

static void an_object_must_begin_with_the_tag_of_its_container(void **state)
{
	size_t at;
	struct build b = with_event(&at);

	(void)state;
	build_patch_u8(&b, at, 4);
	refuse(&b, NT_EFORMAT, at, "object begins with a wrong tag");
	b = with_event(&at);
	build_patch_u8(&b, at + AT_TYPE_TAG, 4);
	refuse(&b, NT_EFORMAT, at + AT_TYPE_TAG, "type of an object begins with a wrong tag");
	b = with_event(&at);
	build_patch_u8(&b, at + AT_TYPE_NULL, 5);
	refuse(&b, NT_EFORMAT, at + AT_TYPE_NULL, "type of an object has a type of its own");
	b = build_new(3);
	build_patch_u8(&b, HEADER_V3, 5);
	refuse(&b, NT_EFORMAT, HEADER_V3, "object begins with a wrong tag");
	b = build_new(3);
	build_patch_u8(&b, HEADER_V3 + AT_TYPE_TAG, 5);
	refuse(&b, NT_EFORMAT, HEADER_V3 + AT_TYPE_TAG,
	       "type of an object begins with a wrong tag");
}

static void hostile_lengths_of_a_type_name(void **state)
{
	static const uint32_t lengths[] = { UINT32_MAX, 0x80000000, 39, 40, INT32_MAX };
	size_t at;
	struct build b;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		b = with_event(&at);
		build_patch_u32(&b, at + AT_NAME_BYTES, lengths[i]);
		refuse(&b, NT_EFORMAT, at + AT_NAME_BYTES, "type name has an impossible length");
	}
	b = with_event(&at);
	build_patch_u32(&b, at + AT_NAME_BYTES, 0);
	refuse(&b, NT_EFORMAT, at + AT_NAME, "type of an object has no end");
	b = with_event(&at);
	build_patch_u32(&b, at + AT_NAME_BYTES, 38);
	refuse(&b, NT_EFORMAT, at + AT_NAME + 38, "type of an object has no end");
}

static void missing_end_tags_are_seen(void **state)
{
	size_t at;
	struct build b = with_event(&at);
	size_t end = b.count - 1;

	(void)state;
	build_patch_u8(&b, at + AT_NAME + strlen("EventBlock"), 5);
	refuse(&b, NT_EFORMAT, at + AT_NAME + strlen("EventBlock"), "type of an object has no end");
	b = with_event(&at);
	build_patch_u8(&b, end, 7);
	refuse(&b, NT_EFORMAT, end, "block has no end tag");
	b = build_new(4);
	build_patch_u8(&b, b.count - 1, 1);
	refuse(&b, NT_EFORMAT, b.count - 1, "block has no end tag");
}

static void blocks_of_unknown_types_are_skipped(void **state)
{
	static const char *const names[] = { "X", "FutureBlock", "EventBlocks", "",
					     "12345678901234567890123456789012345678" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct build b = build_new(4), content = { 0 };
		struct tape t = { 0 };
		size_t at = b.count;

		build_bytes(&content, "any bytes", i);
		build_object(&b, 4, names[i], &content);
		build_patch_u32(&b, at + AT_VERSION, 77);
		build_hi(&b, 4);
		build_event(&b, 4, 2000, 5);
		build_end(&b);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_OK);
		assert_string_equal(t.log, "trace define:Hi Hi@2000");
		assert_int_equal(t.stats.skipped_blocks, 1);
		assert_int_equal(t.stats.blocks, 4);
	}
}

static void version_3_knows_only_trace_and_event_blocks(void **state)
{
	struct build b = build_new(3), content = { 0 };
	struct tape t = { 0 };

	(void)state;
	build_bytes(&content, "not a stack block", 17);
	build_object(&b, 3, "StackBlock", &content);
	build_end(&b);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.stats.skipped_blocks, 1);
}

static void newer_versions_of_known_blocks_are_refused(void **state)
{
	static const uint32_t versions[] = { 3, INT32_MAX, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		size_t at;
		struct build b = with_event(&at);

		build_patch_u32(&b, at + AT_VERSION, versions[i]);
		refuse(&b, NT_EVERSION, at + AT_NAME, "unsupported version of a block");
	}
}

static void the_trace_comes_first_and_once(void **state)
{
	struct build b = build_new(4), other = build_new(4);
	struct build content = { 0 };
	size_t at = b.count;

	(void)state;
	build_bytes(&b, other.bytes + HEADER_V4, other.count - HEADER_V4);
	build_done(&other);
	refuse(&b, NT_EFORMAT, at + AT_NAME, "a second Trace object");

	b = build_new(4);
	b.count = HEADER_V4;
	build_object(&b, 4, "StackBlock", &content);
	refuse(&b, NT_EFORMAT, HEADER_V4 + AT_NAME, "the first object is not a Trace");

	b = build_new(4);
	b.count = HEADER_V4;
	build_end(&b);
	refuse(&b, NT_EFORMAT, HEADER_V4, "the stream ends without a Trace");
}

/* --- sizes and padding --- */

static void content_is_aligned_whatever_stands_before(void **state)
{
	unsigned seen = 0;

	(void)state;
	for (unsigned format = 3; format <= 4; format++)
		for (size_t shift = 1; shift <= 4; shift++) {
			struct build b = build_new(format), content = { 0 };
			struct tape t = { 0 };
			size_t size_at;

			build_bytes(&content, "12345678", shift);
			build_object(&b, format, "Future", &content);
			build_u32(&content, 0); /* a record of version 3 that is too short */
			size_at = b.count + AT_EVENT_SIZE;
			seen |= 1u << (-(size_at + 4) % 4);
			build_object(&b, format, "EventBlock", &content);
			tape_play(&t, &b, 0, 0);
			assert_int_equal(t.status, NT_EFORMAT);
			assert_int_equal(t.error.offset, (size_at + 4 + 3) / 4 * 4);
		}
	assert_int_equal(seen, 0xf); /* paddings of 0, 1, 2 and 3 bytes */
}

static void events_are_found_behind_each_padding(void **state)
{
	(void)state;
	for (size_t shift = 1; shift <= 4; shift++) {
		struct build b = build_new(4), content = { 0 };
		struct tape t = { 0 };

		build_bytes(&content, "12345678", shift);
		build_object(&b, 4, "Future", &content);
		build_hi(&b, 4);
		build_event(&b, 4, 2000, 5);
		build_end(&b);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.count, 1);
		assert_int_equal(t.events[0].payload[0], 5);
	}
}

static void hostile_block_sizes(void **state)
{
	static const struct {
		uint32_t size;
		enum nt_status code;
		const char *what;
	} cases[] = {
		{ UINT32_MAX, NT_EFORMAT, "block has a negative size" },
		{ 0x80000000, NT_EFORMAT, "block has a negative size" },
		{ INT32_MAX, NT_ELIMIT, "block is larger than the limit" },
		{ (64 << 20) + 1, NT_ELIMIT, "block is larger than the limit" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t at;
		struct build b = with_event(&at);

		build_patch_u32(&b, at + AT_EVENT_SIZE, cases[i].size);
		refuse(&b, cases[i].code, at + AT_EVENT_SIZE, cases[i].what);
	}
}

static void a_block_larger_than_the_stream_is_truncated(void **state)
{
	size_t at;
	struct build b = with_event(&at);
	struct tape t = { 0 };
	size_t end = b.count - 1;

	(void)state;
	build_patch_u32(&b, at + AT_EVENT_SIZE, 64 << 20);
	b.count--; /* the end tag would be content now */
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_ETRUNC);
	assert_int_equal(t.error.offset, end);
	assert_int_equal(t.count, 1);
}

static void the_limit_of_a_block_is_exact(void **state)
{
	(void)state;
	for (size_t size = 20; size <= 21; size++) {
		const struct nt_limits limits = { .max_block = 20 };
		struct build b = build_new(4), content = { 0 };
		struct tape t = { 0 };
		size_t at = b.count;

		while (content.count < size)
			build_u8(&content, 0);
		build_object(&b, 4, "Future", &content);
		build_end(&b);
		tape_play_with(&t, &b, 0, 0, &limits);
		assert_int_equal(t.status, size == 20 ? NT_OK : NT_ELIMIT);
		if (size == 21)
			assert_int_equal(t.error.offset, at + AT_NAME + 6 + 1);
	}
}

static void blocks_of_no_bytes(void **state)
{
	static const struct {
		const char *name, *what;
	} cases[] = {
		{ "EventBlock", "block header runs past its block" },
		{ "MetadataBlock", "block header runs past its block" },
		{ "StackBlock", "stack block header runs past its block" },
		{ "SPBlock", "sequence point runs past its block" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct build b = build_new(4), content = { 0 };
		size_t offset;

		build_object(&b, 4, cases[i].name, &content);
		offset = b.count - 1;
		build_end(&b);
		refuse(&b, NT_EFORMAT, offset, cases[i].what);
	}
}

/* --- the end, and what an error says --- */

static void bytes_behind_the_end_are_counted_and_ignored(void **state)
{
	(void)state;
	for (size_t chunk = 0; chunk < 4; chunk++) {
		size_t at;
		struct build b = with_event(&at);
		struct tape t = { 0 };

		build_end(&b);
		build_bytes(&b, "\x05\x05\x01garbage", 10);
		tape_play(&t, &b, chunk, 0);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.count, 1);
		assert_true(t.stats.ended);
		/* Chunks behind the end need not be looked at. */
		assert_int_equal(t.stats.trailing_bytes, 10);
	}
}

static void a_missing_end_tag_is_truncation(void **state)
{
	size_t at;
	struct build b = with_event(&at);
	struct tape t = { 0 };
	size_t end = b.count;

	(void)state;
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_ETRUNC);
	assert_string_equal(t.error.what, "the stream ends before its end tag");
	assert_int_equal(t.error.offset, end);
	assert_int_equal(t.error.events_before, 1);
	assert_string_equal(t.error.block, "object");
	assert_int_equal(t.error.block_index, 3);
	assert_int_equal(t.error.block_offset, end);
	assert_int_equal(t.error.row, 0);
	assert_int_equal(t.stats.whole_bytes, end);
}

static void an_error_names_block_row_and_events(void **state)
{
	static const struct build_row good = {
		.metadata_id = 1,
		.capture = 42,
		.thread = 42,
		.ticks_delta = 2000,
		.payload = "x",
		.payload_bytes = 1,
	};
	struct build b = build_new(4), rows = { 0 };
	struct tape t = { 0 };
	size_t offset, block_end;

	(void)state;
	build_hi(&b, 4);
	for (size_t i = 0; i < 3; i++)
		build_row(&rows, false, &good);
	build_rows(&b, 4, &rows);
	block_end = b.count - 1;
	build_patch_u8(&b, block_end - 2, 99); /* the last payload has 1 byte, not 99 */
	offset = block_end - 1;
	build_end(&b);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_EFORMAT);
	assert_string_equal(t.error.what, "event runs past its block");
	assert_int_equal(t.error.offset, offset);
	assert_string_equal(t.error.block, "EventBlock");
	assert_int_equal(t.error.block_index, 2);
	assert_int_equal(t.error.row, 2);
	assert_int_equal(t.error.events_before, 2);
	assert_int_equal(t.count, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_trace_of_each_version_is_fine),
		cmocka_unit_test(nothing_at_all_is_truncated),
		cmocka_unit_test(every_wrong_byte_of_the_magic_is_seen),
		cmocka_unit_test(objects_without_a_header_are_not_guessed_at),
		cmocka_unit_test(the_rest_of_the_header_is_checked),
		cmocka_unit_test(versions_1_and_2_are_named_when_refused),
		cmocka_unit_test(the_version_must_be_that_of_the_container),
		cmocka_unit_test(what_asks_for_a_newer_reader_is_refused),
		cmocka_unit_test(a_block_may_name_any_older_reader),
		cmocka_unit_test(an_object_must_begin_with_the_tag_of_its_container),
		cmocka_unit_test(hostile_lengths_of_a_type_name),
		cmocka_unit_test(missing_end_tags_are_seen),
		cmocka_unit_test(blocks_of_unknown_types_are_skipped),
		cmocka_unit_test(version_3_knows_only_trace_and_event_blocks),
		cmocka_unit_test(newer_versions_of_known_blocks_are_refused),
		cmocka_unit_test(the_trace_comes_first_and_once),
		cmocka_unit_test(content_is_aligned_whatever_stands_before),
		cmocka_unit_test(events_are_found_behind_each_padding),
		cmocka_unit_test(hostile_block_sizes),
		cmocka_unit_test(a_block_larger_than_the_stream_is_truncated),
		cmocka_unit_test(the_limit_of_a_block_is_exact),
		cmocka_unit_test(blocks_of_no_bytes),
		cmocka_unit_test(bytes_behind_the_end_are_counted_and_ignored),
		cmocka_unit_test(a_missing_end_tag_is_truncation),
		cmocka_unit_test(an_error_names_block_row_and_events),
	};

	return cmocka_run_group_tests_name("frame_v4", tests, NULL, NULL);
}
