/* SPDX-License-Identifier: MIT */
/* Label lists of V6: each kind, lists of several, and values that override the definition's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/tape.h"

enum { LAST = 0x80 };
enum { ACTIVITY = 1, RELATED = 2, TRACE_ID = 3, SPAN = 4, TEXT = 5, NUMBER = 6 };
enum { OPCODE = 7, KEYWORDS = 8, LEVEL = 9, VERSION = 10 };

static struct build block_head(uint32_t first, uint32_t count)
{
	struct build b = { 0 };

	build_u32(&b, first);
	build_u32(&b, count);
	return b;
}

static void events(struct build *b, const uint32_t *ids, size_t count)
{
	struct build rows = { 0 };

	for (size_t i = 0; i < count; i++) {
		const struct build_row r = { .metadata_id = 1, .label = ids[i], .ticks_delta = 1 };

		build_row(&rows, true, &r);
	}
	build_rows(b, 6, &rows);
}

/* A definition whose values differ from what labels say. */
static struct build begun(void)
{
	struct build b = build_new(6), content = { 0 }, row = { 0 };

	build_varuint(&row, 1);
	build_str6(&row, "Demo");
	build_varuint(&row, 7);
	build_str6(&row, "Hi");
	build_u16(&row, 0);
	build_u16(&row, 15);
	build_bytes(&row, "\x01\x0b\x08\x04\x09\x03\x03", 7); /* opcode, level, version */
	build_u64(&row, 1);
	build_u16(&content, 0);
	build_sized_row(&content, &row);
	build_block6(&b, KIND6_METADATA, &content);
	return b;
}

/* Events with lists 1 to count, after a block of that content. */
static void play(struct tape *t, struct build *content, uint32_t count)
{
	static const uint32_t ids[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	struct build b = begun();

	build_block6(&b, KIND6_LABEL, content);
	events(&b, ids, count);
	build_close(&b, 6);
	tape_play(t, &b, 0, 0);
}

static void ids_and_pairs(void **state)
{
	struct build c = block_head(1, 6);
	struct tape t = { 0 };
	const struct tape_event *e = t.events;

	(void)state;
	build_u8(&c, ACTIVITY | LAST);
	build_repeat(&c, 0xa1, 16);
	build_u8(&c, RELATED | LAST);
	build_repeat(&c, 0xb2, 16);
	build_u8(&c, TRACE_ID | LAST);
	build_repeat(&c, 0xc3, 16);
	build_u8(&c, SPAN | LAST);
	build_u64(&c, 0xfedcba9876543210);
	build_u8(&c, TEXT | LAST);
	build_str6(&c, "key");
	build_str6(&c, "\xe2\x82\xac 5");
	build_u8(&c, NUMBER | LAST);
	build_str6(&c, "count");
	build_varuint(&c, 9); /* zigzag of -5 */
	play(&t, &c, 6);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.count, 6);
	assert_int_equal(e[0].activity_id[15], 0xa1);
	assert_int_equal(e[0].related_activity_id[0], 0);
	assert_int_equal(e[1].related_activity_id[15], 0xb2);
	assert_int_equal(e[1].activity_id[0], 0);
	assert_int_equal(e[2].trace_id[15], 0xc3);
	assert_true(e[3].span_id == 0xfedcba9876543210);
	assert_int_equal(e[4].pair_count, 1);
	assert_string_equal(e[4].pairs[0].key, "key");
	assert_string_equal(e[4].pairs[0].text, "\xe2\x82\xac 5");
	assert_int_equal(e[5].pair_count, 1);
	assert_false(e[5].pairs[0].is_text);
	assert_int_equal(e[5].pairs[0].number, -5);
	assert_int_equal(t.stats.unknown_labels, 0);
}

static void numbers_are_zigzag(void **state)
{
	static const struct {
		uint64_t wire;
		int64_t value;
	} cases[] = {
		{ 0, 0 },
		{ 1, -1 },
		{ 2, 1 },
		{ UINT64_MAX, INT64_MIN },
		{ UINT64_MAX - 1, INT64_MAX },
	};

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct build c = block_head(1, 1);
		struct tape t = { 0 };

		build_u8(&c, NUMBER | LAST);
		build_str6(&c, "");
		build_varuint(&c, cases[i].wire);
		play(&t, &c, 1);
		assert_string_equal(t.events[0].pairs[0].key, "");
		assert_true(t.events[0].pairs[0].number == cases[i].value);
	}
}

static void values_of_the_definition_can_be_overridden(void **state)
{
	struct build c = block_head(1, 6);
	struct tape t = { 0 };
	const struct tape_event *e = t.events;

	(void)state;
	build_u8(&c, OPCODE | LAST);
	build_u8(&c, 0);
	build_u8(&c, KEYWORDS | LAST);
	build_u64(&c, 0x8000000000000000);
	build_u8(&c, LEVEL | LAST);
	build_u8(&c, 5);
	build_u8(&c, VERSION | LAST);
	build_u8(&c, 255);
	build_bytes(&c, "\x07\x01\x09\x02\x8a\x03", 6); /* opcode 1, level 2, version 3 */
	build_u8(&c, SPAN | LAST); /* none of them */
	build_u64(&c, 1);
	play(&t, &c, 6);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(e[0].opcode, 0);
	assert_int_equal(e[0].level, 4);
	assert_true(e[1].keywords == 0x8000000000000000);
	assert_int_equal(e[1].opcode, 11);
	assert_int_equal(e[2].level, 5);
	assert_int_equal(e[2].keywords, 1);
	assert_int_equal(e[3].version, 255);
	assert_int_equal(e[4].opcode, 1);
	assert_int_equal(e[4].level, 2);
	assert_int_equal(e[4].version, 3);
	assert_int_equal(e[4].keywords, 1);
	assert_int_equal(e[5].opcode, 11); /* not kept from the event before */
	assert_int_equal(e[5].level, 4);
	assert_int_equal(e[5].version, 3);
	assert_int_equal(e[5].keywords, 1);
}

static void a_list_has_any_number_of_labels(void **state)
{
	struct build c = block_head(1, 2);
	struct tape t = { 0 };
	const struct tape_event *e = t.events;

	(void)state;
	build_u8(&c, TEXT);
	build_str6(&c, "a");
	build_str6(&c, "1");
	build_u8(&c, SPAN);
	build_u64(&c, 5);
	build_u8(&c, NUMBER);
	build_str6(&c, "b");
	build_varuint(&c, 4);
	build_u8(&c, TEXT | LAST);
	build_str6(&c, "a"); /* the same key again */
	build_str6(&c, "3");
	build_u8(&c, TEXT | LAST);
	build_str6(&c, "z");
	build_str6(&c, "");
	play(&t, &c, 2);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(e[0].pair_count, 3);
	assert_string_equal(e[0].pairs[0].text, "1");
	assert_string_equal(e[0].pairs[1].key, "b");
	assert_int_equal(e[0].pairs[1].number, 2);
	assert_string_equal(e[0].pairs[2].text, "3");
	assert_int_equal(e[0].span_id, 5);
	assert_int_equal(e[1].pair_count, 1);
	assert_int_equal(e[1].span_id, 0);
	assert_true(e[1].pairs[0].is_text);
	assert_string_equal(e[1].pairs[0].text, "");
}

static void span_list(struct build *c, uint64_t span)
{
	build_u8(c, SPAN | LAST);
	build_u64(c, span);
}

static void index_0_is_no_list_even_if_one_was_sent(void **state)
{
	static const uint32_t ids[] = { 1, 0, 1 };
	struct build b = begun(), c = block_head(0, 2);
	struct tape t = { 0 };

	(void)state;
	span_list(&c, 100);
	span_list(&c, 101);
	build_block6(&b, KIND6_LABEL, &c);
	for (size_t i = 0; i < 3; i++)
		events(&b, &ids[i], 1);
	build_close(&b, 6);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.events[0].span_id, 101);
	assert_int_equal(t.events[1].span_id, 0);
	assert_int_equal(t.events[2].span_id, 101);
	assert_int_equal(t.stats.unknown_labels, 0);
}

static void an_unknown_index_is_no_list_and_counted(void **state)
{
	struct build c = block_head(1, 1);
	struct tape t = { 0 };

	(void)state;
	span_list(&c, 100);
	play(&t, &c, 3);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.stats.unknown_labels, 2);
	assert_int_equal(t.events[0].span_id, 100);
	assert_int_equal(t.events[1].span_id, 0);
	assert_int_equal(t.events[1].level, 4);
}

static void several_blocks_and_the_last_of_two_lists(void **state)
{
	static const uint32_t ids[] = { 1, 2, 3, 1000 };
	struct build b = begun(), c = block_head(1, 2);
	struct tape t = { 0 };

	(void)state;
	span_list(&c, 1);
	span_list(&c, 2);
	build_block6(&b, KIND6_LABEL, &c);
	c = block_head(2, 2);
	span_list(&c, 22);
	span_list(&c, 33);
	build_block6(&b, KIND6_LABEL, &c);
	c = block_head(1000, 1);
	span_list(&c, 44);
	build_block6(&b, KIND6_LABEL, &c);
	events(&b, ids, 4);
	build_close(&b, 6);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.events[0].span_id, 1);
	assert_int_equal(t.events[1].span_id, 22);
	assert_int_equal(t.events[2].span_id, 33);
	assert_int_equal(t.events[3].span_id, 44);
}

static void lists_end_at_a_sequence_point(void **state)
{
	static const uint32_t id = 1;
	const struct build_row waits = {
		.metadata_id = 1,
		.label = 1,
		.ticks_delta = 50,
		.unsorted = true,
	};
	struct build b = begun(), c = block_head(1, 1), rows = { 0 }, point = { 0 };
	struct tape t = { 0 };

	(void)state;
	build_u8(&c, TEXT | LAST);
	build_str6(&c, "k");
	build_str6(&c, "v");
	build_block6(&b, KIND6_LABEL, &c);
	build_row(&rows, true, &waits);
	build_rows(&b, 6, &rows);
	build_sequence_point6(&point, 60, 0, NULL, NULL, 0);
	build_block6(&b, KIND6_SEQUENCE, &point);
	events(&b, &id, 1);
	build_close(&b, 6);
	tape_play(&t, &b, 0, NT_TIME_ORDER);
	assert_int_equal(t.status, NT_OK);
	assert_string_equal(t.events[0].pairs[0].text, "v"); /* it left before the point */
	assert_int_equal(t.events[1].pair_count, 0);
	assert_int_equal(t.stats.unknown_labels, 1);
}

/* --- damage --- */

static void refuse(struct build *content, const char *what, size_t at)
{
	struct build b = begun();
	struct tape t = { 0 };
	size_t start = b.count + 4;

	build_block6(&b, KIND6_LABEL, content);
	build_close(&b, 6);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_EFORMAT);
	assert_string_equal(t.error.what, what);
	assert_int_equal(t.error.offset, start + at);
	assert_string_equal(t.error.block, "LabelListBlock");
}

/* Its length cannot be known, nor where the next label is. */
static void an_unknown_kind_is_refused(void **state)
{
	static const unsigned kinds[] = { 0, 11, 127, 0x80, 0x8b, 0xff };

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct build c = block_head(1, 2);

		span_list(&c, 1);
		build_u8(&c, kinds[i]);
		build_repeat(&c, 0, 30);
		refuse(&c, "label of an unknown kind", 8 + 9);
	}
}

static void a_list_without_its_last_label_is_refused(void **state)
{
	struct build c = block_head(1, 1);

	(void)state;
	build_u8(&c, SPAN);
	build_u64(&c, 1);
	refuse(&c, "label list runs past its block", 17);
}

static void lists_that_are_not_there_are_refused(void **state)
{
	static const uint32_t counts[] = { 2, INT32_MAX, 0x80000000, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct build c = block_head(1, counts[i]);

		span_list(&c, 1);
		refuse(&c, "label list runs past its block", 17);
	}
}

static void half_a_header_is_refused(void **state)
{
	(void)state;
	for (size_t size = 0; size < 8; size++) {
		struct build c = block_head(1, 1);

		c.count = size;
		refuse(&c, "label block header runs past its block", size < 4 ? 0 : 4);
	}
}

static void every_kind_cut_at_every_byte(void **state)
{
	struct build whole = { 0 };

	(void)state;
	build_u8(&whole, ACTIVITY);
	build_repeat(&whole, 1, 16);
	build_u8(&whole, SPAN);
	build_u64(&whole, 1);
	build_u8(&whole, TEXT);
	build_str6(&whole, "ab");
	build_str6(&whole, "cd");
	build_u8(&whole, NUMBER);
	build_str6(&whole, "n");
	build_varuint(&whole, 300);
	build_u8(&whole, KEYWORDS);
	build_u64(&whole, 1);
	build_u8(&whole, OPCODE);
	build_u8(&whole, 1);
	build_u8(&whole, LEVEL);
	build_u8(&whole, 1);
	build_u8(&whole, VERSION | LAST);
	build_u8(&whole, 1);
	for (size_t size = 0; size <= whole.count; size++) {
		struct build b = begun(), c = block_head(1, 1);
		struct tape t = { 0 };

		build_bytes(&c, whole.bytes, size);
		build_block6(&b, KIND6_LABEL, &c);
		build_close(&b, 6);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, size == whole.count ? NT_OK : NT_EFORMAT);
	}
	build_done(&whole);
}

static void strings_longer_than_the_block(void **state)
{
	static const uint64_t lengths[] = { 6, INT32_MAX, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct build c = block_head(1, 1);

		build_u8(&c, TEXT | LAST);
		build_str6(&c, "k");
		build_varuint(&c, lengths[i]);
		build_bytes(&c, "value", 5);
		refuse(&c, "label list runs past its block", i ? 16 : 12);
	}
}

/* --- limits --- */

static void the_pairs_of_a_list_have_a_limit(void **state)
{
	(void)state;
	for (size_t n = 256; n <= 257; n++) {
		struct build c = block_head(1, 1);
		struct tape t = { 0 };

		for (size_t i = 0; i < n; i++) {
			build_u8(&c, NUMBER | (i == n - 1 ? LAST : 0));
			build_str6(&c, "k");
			build_varuint(&c, 2 * i);
		}
		play(&t, &c, 1);
		assert_int_equal(t.status, n == 256 ? NT_OK : NT_ELIMIT);
		if (n == 256)
			assert_int_equal(t.events[0].pair_count, 256);
		else
			assert_string_equal(t.error.what, "label list is longer than the limit");
	}
}

static void lists_between_two_points_have_a_limit(void **state)
{
	const struct nt_limits limits = { .max_stack_bytes = 6400 };

	(void)state;
	for (size_t text = 0; text < 2; text++) {
		struct build b = begun(), c = block_head(1, 101);
		struct tape t = { 0 };

		for (size_t i = 0; i < 101; i++) {
			build_u8(&c, (text ? TEXT : OPCODE) | LAST);
			build_str6(&c, text ? "a key that takes memory for its copy" : "");
			if (text)
				build_str6(&c, "and a value that does");
		}
		build_block6(&b, KIND6_LABEL, &c);
		build_close(&b, 6);
		tape_play_with(&t, &b, 0, 0, &limits);
		assert_int_equal(t.status, NT_ELIMIT);
		assert_string_equal(t.error.what,
				    "labels between two sequence points exceed the limit");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_and_pairs),
		cmocka_unit_test(numbers_are_zigzag),
		cmocka_unit_test(values_of_the_definition_can_be_overridden),
		cmocka_unit_test(a_list_has_any_number_of_labels),
		cmocka_unit_test(index_0_is_no_list_even_if_one_was_sent),
		cmocka_unit_test(an_unknown_index_is_no_list_and_counted),
		cmocka_unit_test(several_blocks_and_the_last_of_two_lists),
		cmocka_unit_test(lists_end_at_a_sequence_point),
		cmocka_unit_test(an_unknown_kind_is_refused),
		cmocka_unit_test(a_list_without_its_last_label_is_refused),
		cmocka_unit_test(lists_that_are_not_there_are_refused),
		cmocka_unit_test(half_a_header_is_refused),
		cmocka_unit_test(every_kind_cut_at_every_byte),
		cmocka_unit_test(strings_longer_than_the_block),
		cmocka_unit_test(the_pairs_of_a_list_have_a_limit),
		cmocka_unit_test(lists_between_two_points_have_a_limit),
	};

	return cmocka_run_group_tests_name("block_label", tests, NULL, NULL);
}
