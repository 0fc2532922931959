/* SPDX-License-Identifier: MIT */
/* Event rows of V4 and V6, with compressed and with plain headers, and the header of a block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/tape.h"

enum { METADATA = 1, CAPTURE = 2, THREAD = 4, STACK = 8, ACTIVITY = 16, LABEL = 16 };
enum { RELATED = 32, SORTED = 64, LENGTH = 128 };

/* Definitions 1 "Hi" and 2 "Ho". */
static void define_two(struct build *b, unsigned format)
{
	struct build rows = { 0 };

	if (format == 6) {
		build_u16(&rows, 0);
		build_definition6(&rows, 1, "Demo", 7, "Hi");
		build_definition6(&rows, 2, "Demo", 8, "Ho");
		build_block6(b, KIND6_METADATA, &rows);
		return;
	}
	build_rows_header(&rows, 1);
	build_definition(&rows, 1, "Demo", 7, "Hi");
	build_definition(&rows, 2, "Demo", 8, "Ho");
	build_object(b, 4, "MetadataBlock", &rows);
}

/* V6: threads 5 and 6, capture threads 3 and 4, with OS ids 105, 106, 103 and 104. */
static void declare_threads(struct build *b)
{
	struct build rows = { 0 };

	for (uint64_t i = 3; i <= 6; i++)
		build_thread6(&rows, i, NULL, 42, 100 + i);
	build_block6(b, KIND6_THREAD, &rows);
}

/* Stacks 1 and 2, of one and of two frames. */
static void add_stacks(struct build *b, unsigned format)
{
	struct build rows = { 0 };

	build_u32(&rows, 1);
	build_u32(&rows, 2);
	build_stack(&rows, 0x1000, 1);
	build_stack(&rows, 0x2000, 2);
	if (format == 6)
		build_block6(b, KIND6_STACK, &rows);
	else
		build_object(b, 4, "StackBlock", &rows);
}

/* A row with every part of its header: see check_first_row(). */
static void full_row(struct build *rows, unsigned format)
{
	build_u8(rows, 0xff);
	build_varuint(rows, 1);
	build_varuint(rows, 0); /* number 1 */
	build_varuint(rows, 3);
	build_varuint(rows, 9); /* processor */
	build_varuint(rows, 5);
	build_varuint(rows, 1); /* stack */
	build_varuint(rows, 2000);
	if (format == 6) {
		build_varuint(rows, 1);
	} else {
		build_repeat(rows, 0xaa, 16);
		build_repeat(rows, 0xbb, 16);
	}
	build_varuint(rows, 3);
	build_bytes(rows, "abc", 3);
}

static void start_rows_test(struct build *b, unsigned format)
{
	struct build labels = { 0 };

	*b = build_new(format);
	define_two(b, format);
	add_stacks(b, format);
	if (format != 6)
		return;
	declare_threads(b);
	build_u32(&labels, 1);
	build_u32(&labels, 2);
	build_u8(&labels, 0x80 | 4); /* a span id */
	build_u64(&labels, 111);
	build_u8(&labels, 0x80 | 4);
	build_u64(&labels, 222);
	build_block6(b, KIND6_LABEL, &labels);
}

static const uint8_t aa[16] = { 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa,
				0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa };
static const uint8_t bb[16] = { 0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb,
				0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb };
static const uint8_t cc[16] = { 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
				0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc };

/* What a row with that one flag has in common with full_row(), and what not. */
static void check_row(const struct tape_event *e, unsigned format, unsigned flag)
{
	uint64_t os = format == 6 ? 100 : 0;

	assert_string_equal(e->name, flag == METADATA ? "Ho" : "Hi");
	assert_int_equal(e->capture_thread_id, flag == CAPTURE ? 4 : 3);
	assert_int_equal(e->processor, flag == CAPTURE ? 10 : 9);
	assert_int_equal(e->thread_id, os + (flag == THREAD ? 6 : 5));
	assert_int_equal(e->stack_id, flag == STACK ? 2 : 1);
	assert_int_equal(e->frame_count, flag == STACK ? 2 : 1);
	assert_int_equal(e->payload_bytes, flag == LENGTH ? 2 : 3);
	assert_memory_equal(e->payload, "xyz", flag == LENGTH ? 2 : 3);
	if (format == 6) {
		assert_int_equal(e->span_id, flag == LABEL ? 222 : 111);
	} else {
		assert_memory_equal(e->activity_id, flag == ACTIVITY ? cc : aa, 16);
		assert_memory_equal(e->related_activity_id, flag == RELATED ? cc : bb, 16);
	}
}

static void row_with_flag(struct build *rows, unsigned format, unsigned flag)
{
	build_u8(rows, flag);
	if (flag == METADATA)
		build_varuint(rows, 2);
	if (flag == CAPTURE) {
		build_varuint(rows, 0);
		build_varuint(rows, 4);
		build_varuint(rows, 10);
	}
	if (flag == THREAD)
		build_varuint(rows, 6);
	if (flag == STACK)
		build_varuint(rows, 2);
	build_varuint(rows, 50);
	if (flag == LABEL && format == 6)
		build_varuint(rows, 2);
	else if (flag == ACTIVITY || (flag == RELATED && format != 6))
		build_repeat(rows, 0xcc, 16);
	if (flag == LENGTH)
		build_varuint(rows, 2);
	build_bytes(rows, "xyz", flag == LENGTH ? 2 : 3);
}

static void each_flag_changes_its_part_only(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2)
		for (unsigned flag = 0; flag <= 128; flag = flag ? flag * 2 : 1) {
			struct build b, rows = { 0 };
			struct tape t = { 0 };

			start_rows_test(&b, format);
			full_row(&rows, format);
			row_with_flag(&rows, format, flag);
			build_rows(&b, format, &rows);
			build_close(&b, format);
			tape_play(&t, &b, 0, 0);
			assert_int_equal(t.status, NT_OK);
			assert_int_equal(t.count, 2);
			assert_memory_equal(t.events[0].payload, "abc", 3);
			assert_int_equal(t.events[0].ticks, 2000);
			assert_int_equal(t.events[1].ticks, 2050);
			check_row(&t.events[1], format, flag);
			/* Number 2 of thread 3, or of thread 4, whose first one V6 knows to be 1.
			 */
			assert_int_equal(t.stats.lost, format == 6 && flag == CAPTURE);
		}
}

static void being_sorted_is_not_kept(void **state)
{
	struct build b, rows = { 0 };
	struct tape t = { 0 };

	(void)state;
	start_rows_test(&b, 4);
	full_row(&rows, 4); /* sorted, at 2000 */
	row_with_flag(&rows, 4, 0); /* unsorted, at 2050: waits */
	row_with_flag(&rows, 4, METADATA); /* unsorted, at 2100: waits */
	row_with_flag(&rows, 4, SORTED); /* sorted, at 2150: lets the two go */
	build_rows(&b, 4, &rows);
	b.count--; /* cut, so that nothing else lets them go */
	tape_play(&t, &b, 0, NT_TIME_ORDER);
	assert_string_equal(t.log, "trace define:Hi define:Ho Hi@2000 Hi@2050 Ho@2100 Ho@2150");
}

static void state_starts_at_zero_in_each_block(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		struct build b, rows = { 0 };
		struct tape t = { 0 };
		const struct tape_event *e = &t.events[1];

		start_rows_test(&b, format);
		full_row(&rows, format);
		build_rows(&b, format, &rows);
		build_u8(&rows, METADATA);
		build_varuint(&rows, 2);
		build_varuint(&rows, 7); /* not behind 2000 */
		build_rows(&b, format, &rows);
		build_close(&b, format);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.count, 2);
		assert_string_equal(e->name, "Ho");
		assert_int_equal(e->ticks, 7);
		assert_int_equal(e->capture_thread_id, 0);
		assert_int_equal(e->thread_id, format == 6 ? UINT64_MAX : 0); /* not declared */
		assert_int_equal(e->processor, 0);
		assert_int_equal(e->stack_id, 0);
		assert_int_equal(e->frame_count, 0);
		assert_int_equal(e->span_id, 0);
		assert_int_equal(e->activity_id[0], 0);
		assert_int_equal(e->related_activity_id[0], 0);
		assert_int_equal(e->payload_bytes, 0);
	}
}

static void without_a_thread_the_id_is_0_not_that_of_the_capture_thread(void **state)
{
	struct build b, rows = { 0 };
	struct tape t = { 0 };

	(void)state;
	start_rows_test(&b, 4);
	build_u8(&rows, METADATA | CAPTURE);
	build_bytes(&rows, "\x01\x00\x03\x00\x05", 5);
	build_rows(&b, 4, &rows);
	build_end(&b);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.events[0].capture_thread_id, 3);
	assert_int_equal(t.events[0].thread_id, 0);
}

static void an_event_without_stack_has_none_after_one_that_had(void **state)
{
	struct build b, rows = { 0 };
	struct tape t = { 0 };

	(void)state;
	start_rows_test(&b, 4);
	full_row(&rows, 4);
	build_u8(&rows, STACK);
	build_varuint(&rows, 0);
	build_varuint(&rows, 1);
	build_bytes(&rows, "xyz", 3);
	build_rows(&b, 4, &rows);
	build_end(&b);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.events[0].frame_count, 1);
	assert_int_equal(t.events[1].stack_id, 0);
	assert_int_equal(t.events[1].frame_count, 0);
	assert_int_equal(t.stats.unknown_stacks, 0);
}

static void processor_minus_one_is_unknown(void **state)
{
	struct build b, rows = { 0 };
	struct tape t = { 0 };

	(void)state;
	start_rows_test(&b, 4);
	build_u8(&rows, METADATA | CAPTURE);
	build_bytes(&rows, "\x01\x00\x03\xff\xff\xff\xff\x0f\x05", 9);
	build_rows(&b, 4, &rows);
	build_end(&b);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.events[0].processor, UINT32_MAX);
}

static void time_can_go_back_by_wrapping_around(void **state)
{
	struct build b, rows = { 0 };
	struct tape t = { 0 };

	(void)state;
	start_rows_test(&b, 4);
	build_u8(&rows, METADATA);
	build_varuint(&rows, 1);
	build_varuint(&rows, 5000);
	build_u8(&rows, 0);
	build_varuint(&rows, (uint64_t)-393);
	build_u8(&rows, 0);
	build_varuint(&rows, (uint64_t)-5000);
	build_rows(&b, 4, &rows);
	build_end(&b);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.events[1].ticks, 4607);
	assert_true(t.events[2].ticks == (uint64_t)-393);
}

/* The number of an event shows only in what is said to be lost. */
static void numbers_wrap_around(void **state)
{
	static const uint64_t thread = 3;
	static const uint32_t reached = 7;
	struct build b, rows = { 0 }, point = { 0 };
	struct tape t = { 0 };

	(void)state;
	start_rows_test(&b, 4);
	build_u8(&rows, METADATA | CAPTURE);
	build_varuint(&rows, 1);
	build_varuint(&rows, UINT32_MAX - 1); /* 0 + 2^32-2 + 1 */
	build_bytes(&rows, "\x03\x00\x05", 3);
	build_u8(&rows, 0); /* number 0 */
	build_varuint(&rows, 1);
	build_u8(&rows, CAPTURE);
	build_varuint(&rows, UINT32_MAX - 1); /* number 2^32-1: goes back by one */
	build_bytes(&rows, "\x03\x00\x05", 3);
	build_u8(&rows, CAPTURE);
	build_varuint(&rows, 5); /* number 5 */
	build_bytes(&rows, "\x03\x00\x05", 3);
	build_rows(&b, 4, &rows);
	build_sequence_point(&point, 9000, &thread, &reached, 1);
	build_object(&b, 4, "SPBlock", &point);
	build_end(&b);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.count, 4);
	assert_int_equal(t.stats.inconsistent, 1);
	assert_int_equal(t.stats.lost, 5 + 2);
}

static void metadata_id_0_does_not_count_in_numbers(void **state)
{
	static const uint64_t thread = 3;
	static const uint32_t reached = 5;
	struct build b, rows = { 0 }, point = { 0 };
	struct tape t = { 0 };

	(void)state;
	start_rows_test(&b, 4);
	build_u8(&rows, METADATA | CAPTURE);
	build_bytes(&rows, "\x01\x00\x03\x00\x05", 5); /* number 1 */
	build_u8(&rows, METADATA);
	build_bytes(&rows, "\x00\x05", 2); /* id 0: number 1 still */
	build_u8(&rows, METADATA);
	build_bytes(&rows, "\x01\x05", 2); /* number 2 */
	build_rows(&b, 4, &rows);
	build_sequence_point(&point, 9000, &thread, &reached, 1);
	build_object(&b, 4, "SPBlock", &point);
	build_end(&b);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.count, 3);
	assert_int_equal(t.stats.unknown_metadata, 1);
	assert_int_equal(t.stats.lost, 3);
}

/* --- damage in compressed rows --- */

static void refuse_rows(unsigned format, struct build *rows, size_t at, const char *what)
{
	struct build b;
	struct tape t = { 0 };
	size_t end, size = rows->count;

	start_rows_test(&b, format);
	build_rows(&b, format, rows);
	end = format == 6 ? b.count : b.count - 1;
	build_close(&b, format);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_EFORMAT);
	assert_string_equal(t.error.what, what);
	assert_int_equal(t.error.offset, end - size + at);
	assert_string_equal(t.error.block, "EventBlock");
}

static void a_varint_of_too_many_bytes_is_refused(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		struct build rows = { 0 };

		full_row(&rows, format);
		size_t at = rows.count + 1;

		build_u8(&rows, 0);
		build_repeat(&rows, 0x80, 10); /* time: 11 bytes */
		build_u8(&rows, 0);
		build_repeat(&rows, 0, 20);
		refuse_rows(format, &rows, at, "event runs past its block");
		build_u8(&rows, METADATA);
		build_repeat(&rows, 0x80, 5); /* metadata id: 6 bytes */
		build_repeat(&rows, 0, 20);
		refuse_rows(format, &rows, 1, "event runs past its block");
	}
}

/* Where the parts of full_row() begin: the fault is at the part that is not whole. */
static size_t part_at(unsigned format, size_t offset)
{
	static const size_t v4[] = { 0, 1, 2, 3, 4, 5, 6, 7, 9, 25, 41, 42 };
	static const size_t v6[] = { 0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 11 };
	const size_t *parts = format == 6 ? v6 : v4;
	size_t i = 11;

	while (parts[i] > offset)
		i--;
	return parts[i];
}

static void a_row_that_is_cut_anywhere_is_refused(void **state)
{
	struct build whole = { 0 };

	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		full_row(&whole, format);
		for (size_t size = 1; size < whole.count; size++) {
			struct build b, rows = { 0 };
			struct tape t = { 0 };
			size_t end;

			start_rows_test(&b, format);
			build_bytes(&rows, whole.bytes, whole.count);
			build_bytes(&rows, whole.bytes, size);
			build_rows(&b, format, &rows);
			end = format == 6 ? b.count : b.count - 1;
			build_close(&b, format);
			tape_play(&t, &b, 0, 0);
			assert_int_equal(t.status, NT_EFORMAT);
			assert_int_equal(t.error.offset, end - size + part_at(format, size));
			assert_int_equal(t.error.row, 1);
			assert_int_equal(t.error.events_before, 1);
			assert_int_equal(t.count, 1);
		}
		build_done(&whole);
	}
}

static void hostile_payload_sizes(void **state)
{
	static const uint64_t sizes[] = { 1, 4, INT32_MAX, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct build rows = { 0 };

		build_u8(&rows, LENGTH);
		build_varuint(&rows, 1);
		build_varuint(&rows, sizes[i]);
		refuse_rows(4, &rows, rows.count, "event runs past its block");
	}
}

/* --- the header of a block --- */

static void play_header(struct tape *t, unsigned format, unsigned header_bytes, size_t written,
			unsigned flags)
{
	struct build b, content = { 0 };

	start_rows_test(&b, format);
	build_u16(&content, header_bytes);
	build_u16(&content, flags);
	build_repeat(&content, 0x77, written - 4);
	full_row(&content, format);
	if (format == 6)
		build_block6(&b, KIND6_EVENT, &content);
	else
		build_object(&b, format, "EventBlock", &content);
	build_close(&b, format);
	tape_play(t, &b, 0, 0);
}

static void a_longer_header_is_skipped(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2)
		for (unsigned bytes = 20; bytes <= 28; bytes += 4) {
			struct tape t = { 0 };

			play_header(&t, format, bytes, bytes, 0xffff); /* bit 0 counts only */
			assert_int_equal(t.status, NT_OK);
			assert_int_equal(t.count, 1);
			assert_memory_equal(t.events[0].payload, "abc", 3);
		}
}

static void a_header_that_is_too_short_is_refused(void **state)
{
	static const unsigned sizes[] = { 0, 4, 19 };

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		struct tape t = { 0 };

		play_header(&t, i < 3 ? 4 : 6, sizes[i % 3], 20, 1);
		assert_int_equal(t.status, NT_EFORMAT);
		assert_string_equal(t.error.what, "block header is too short");
		assert_int_equal(t.count, 0);
	}
}

static void a_header_longer_than_its_block_is_refused(void **state)
{
	struct tape t = { 0 };

	(void)state;
	play_header(&t, 4, 65535, 20, 1);
	assert_int_equal(t.status, NT_EFORMAT);
	assert_string_equal(t.error.what, "block header runs past its block");
}

static void a_block_without_rows_is_empty(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		struct build b = build_new(format), rows = { 0 };
		struct tape t = { 0 };

		build_rows(&b, format, &rows);
		if (format == 4) {
			build_rows_header(&rows, 1);
			build_object(&b, 4, "MetadataBlock", &rows);
		}
		build_close(&b, format);
		tape_play(&t, &b, 0, NT_TIME_ORDER);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.count, 0);
	}
}

/* --- plain headers --- */

struct plain {
	uint32_t id; /* with bit 31: unsorted */
	uint32_t sequence;
	uint64_t ticks;
	size_t padding; /* written, and counted in the event's size */
	size_t uncounted; /* written only */
	uint32_t wrong_size; /* instead of the right one */
};

static void plain_row(struct build *b, unsigned format, const struct plain *r)
{
	uint32_t rest = format == 6 ? 48 : 76;

	build_u32(b, r->wrong_size ? r->wrong_size : rest + 3 + (uint32_t)r->padding);
	build_u32(b, r->id);
	build_u32(b, r->sequence);
	build_u64(b, 5);
	build_u64(b, 3);
	build_u32(b, 9);
	build_u32(b, 2);
	build_u64(b, r->ticks);
	if (format == 6) {
		build_u32(b, 2);
	} else {
		build_repeat(b, 0xaa, 16);
		build_repeat(b, 0xbb, 16);
	}
	build_u32(b, 3);
	build_bytes(b, "abc", 3);
	build_repeat(b, 0xee, r->padding + r->uncounted);
}

static void plain_block(struct build *b, unsigned format, struct build *rows)
{
	struct build content = { 0 };

	build_rows_header(&content, 0);
	build_append(&content, rows);
	if (format == 6)
		build_block6(b, KIND6_EVENT, &content);
	else
		build_object(b, format, "EventBlock", &content);
}

static void plain_rows_have_every_value(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		const struct plain r = { .id = 2, .sequence = 1, .ticks = 3000 };
		struct build b, rows = { 0 };
		struct tape t = { 0 };
		const struct tape_event *e = &t.events[0];

		start_rows_test(&b, format);
		plain_row(&rows, format, &r);
		plain_block(&b, format, &rows);
		build_close(&b, format);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.count, 1);
		assert_string_equal(e->name, "Ho");
		assert_int_equal(e->thread_id, format == 6 ? 105 : 5);
		assert_int_equal(e->capture_thread_id, 3);
		assert_int_equal(e->processor, 9);
		assert_int_equal(e->stack_id, 2);
		assert_int_equal(e->frame_count, 2);
		assert_int_equal(e->ticks, 3000);
		assert_int_equal(e->payload_bytes, 3);
		assert_memory_equal(e->payload, "abc", 3);
		if (format == 6) {
			assert_int_equal(e->span_id, 222);
		} else {
			assert_memory_equal(e->activity_id, aa, 16);
			assert_memory_equal(e->related_activity_id, bb, 16);
		}
		assert_int_equal(t.stats.lost, 0);
	}
}

static void bit_31_set_means_unsorted(void **state)
{
	static const uint32_t bit = 0x80000000;
	static const struct plain rows_of[] = {
		{ .id = 1, .sequence = 1, .ticks = 1000 },
		{ .id = 2 | bit, .sequence = 2, .ticks = 3000 }, /* waits */
		{ .id = 1, .sequence = 3, .ticks = 2000 }, /* sorted: goes at once */
		{ .id = 2 | bit, .sequence = 4, .ticks = 4000 },
	};

	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		struct build b, rows = { 0 };
		struct tape t = { 0 };

		start_rows_test(&b, format);
		for (size_t i = 0; i < 4; i++)
			plain_row(&rows, format, &rows_of[i]);
		plain_block(&b, format, &rows);
		build_close(&b, format);
		tape_play(&t, &b, 0, NT_TIME_ORDER);
		assert_int_equal(t.status, NT_OK);
		assert_string_equal(t.log,
				    "trace define:Hi define:Ho Hi@1000 Hi@2000 Ho@3000 Ho@4000");
		assert_int_equal(t.stats.lost + t.stats.inconsistent, 0);
	}
}

static void plain_rows_may_be_padded_or_not(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2)
		for (size_t padding = 0; padding <= 9; padding++) {
			const struct plain r = { .id = 1, .ticks = 10, .padding = padding };
			struct build b, rows = { 0 };
			struct tape t = { 0 };

			start_rows_test(&b, format);
			for (size_t i = 0; i < 3; i++)
				plain_row(&rows, format, &r);
			plain_block(&b, format, &rows);
			build_close(&b, format);
			tape_play(&t, &b, 0, 0);
			assert_int_equal(t.status, NT_OK);
			assert_int_equal(t.count, 3);
			assert_int_equal(t.events[2].offset - t.events[1].offset,
					 (format == 6 ? 55 : 83) + padding);
		}
}

/* Then the payload's end is where the next row starts. */
static void an_event_size_that_cannot_be_is_ignored(void **state)
{
	static const uint32_t sizes[] = { 1,	      4,	  50,
					  INT32_MAX,  UINT32_MAX, UINT32_MAX - 3,
					  0x80000000, 1000 };

	(void)state;
	for (unsigned format = 4; format <= 6; format += 2)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			const struct plain r = { .id = 1, .ticks = 10, .wrong_size = sizes[i] };
			struct build b, rows = { 0 };
			struct tape t = { 0 };

			start_rows_test(&b, format);
			plain_row(&rows, format, &r);
			plain_row(&rows, format, &r);
			plain_block(&b, format, &rows);
			build_close(&b, format);
			tape_play(&t, &b, 0, 0);
			assert_int_equal(t.status, NT_OK);
			assert_int_equal(t.count, 2);
		}
}

static void padding_that_is_not_counted_is_a_row_that_is_cut(void **state)
{
	const struct plain r = { .id = 1, .ticks = 10, .uncounted = 1 };
	struct build b, rows = { 0 };
	struct tape t = { 0 };

	(void)state;
	start_rows_test(&b, 4);
	plain_row(&rows, 4, &r);
	plain_block(&b, 4, &rows);
	build_end(&b);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_EFORMAT);
	assert_int_equal(t.count, 1);
	assert_int_equal(t.error.row, 1);
}

/* A cut at any byte: the rows that were whole, padding included, and nothing made up. */
static void a_cut_among_plain_rows(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2)
		for (size_t padding = 0; padding <= 160; padding += 40) {
			const struct plain r = { .id = 1, .ticks = 10, .padding = padding };
			struct build b, rows = { 0 };
			size_t start, row = (format == 6 ? 55 : 83) + padding;

			start_rows_test(&b, format);
			plain_row(&rows, format, &r);
			plain_row(&rows, format, &r);
			plain_block(&b, format, &rows);
			start = b.count - (format == 6 ? 0 : 1) - 2 * row;
			for (size_t cut = start; cut < start + 2 * row; cut++) {
				struct build head = { 0 };
				struct tape t = { 0 };

				build_bytes(&head, b.bytes, cut);
				tape_play(&t, &head, 0, 0);
				assert_int_equal(t.status, NT_ETRUNC);
				assert_int_equal(t.error.offset, cut);
				assert_int_equal(t.count, (cut - start) / row);
			}
			build_done(&b);
		}
}

static void metadata_may_have_plain_headers(void **state)
{
	const struct plain r = { .id = 1, .ticks = 10 };
	struct build b = build_new(4), content = { 0 }, definition = { 0 }, rows = { 0 };
	struct tape t = { 0 };

	(void)state;
	build_definition_head(&definition, 1, "Demo", 7, "Hi");
	build_u32(&definition, 0);
	build_rows_header(&content, 0);
	build_u32(&content, 76 + (uint32_t)definition.count);
	build_repeat(&content, 0, 72);
	build_u32(&content, (uint32_t)definition.count);
	build_append(&content, &definition);
	build_object(&b, 4, "MetadataBlock", &content);
	plain_row(&rows, 4, &r);
	plain_block(&b, 4, &rows);
	build_end(&b);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_OK);
	assert_string_equal(t.log, "trace define:Hi Hi@10");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_flag_changes_its_part_only),
		cmocka_unit_test(being_sorted_is_not_kept),
		cmocka_unit_test(state_starts_at_zero_in_each_block),
		cmocka_unit_test(without_a_thread_the_id_is_0_not_that_of_the_capture_thread),
		cmocka_unit_test(an_event_without_stack_has_none_after_one_that_had),
		cmocka_unit_test(processor_minus_one_is_unknown),
		cmocka_unit_test(time_can_go_back_by_wrapping_around),
		cmocka_unit_test(numbers_wrap_around),
		cmocka_unit_test(metadata_id_0_does_not_count_in_numbers),
		cmocka_unit_test(a_varint_of_too_many_bytes_is_refused),
		cmocka_unit_test(a_row_that_is_cut_anywhere_is_refused),
		cmocka_unit_test(hostile_payload_sizes),
		cmocka_unit_test(a_longer_header_is_skipped),
		cmocka_unit_test(a_header_that_is_too_short_is_refused),
		cmocka_unit_test(a_header_longer_than_its_block_is_refused),
		cmocka_unit_test(a_block_without_rows_is_empty),
		cmocka_unit_test(plain_rows_have_every_value),
		cmocka_unit_test(bit_31_set_means_unsorted),
		cmocka_unit_test(plain_rows_may_be_padded_or_not),
		cmocka_unit_test(an_event_size_that_cannot_be_is_ignored),
		cmocka_unit_test(padding_that_is_not_counted_is_a_row_that_is_cut),
		cmocka_unit_test(a_cut_among_plain_rows),
		cmocka_unit_test(metadata_may_have_plain_headers),
	};

	return cmocka_run_group_tests_name("block_event", tests, NULL, NULL);
}
