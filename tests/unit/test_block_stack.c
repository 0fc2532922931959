/* SPDX-License-Identifier: MIT */
/* Stack blocks, and the table of what a sequence point forgets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nettrace/decoder.h"
#include "tests/support/failalloc.h"
#include "tests/support/tape.h"

enum { TRACE_POINTER_V4 = 53 + 32, TRACE_POINTER_V6 = 24 + 32 };

static void put(struct build *b, unsigned format, struct build *content)
{
	if (format == 6)
		build_block6(b, KIND6_STACK, content);
	else
		build_object(b, format, "StackBlock", content);
}

/* A block of count stacks from id first on; stack i has i frames, the first of them at base + i. */
static void stacks(struct build *b, unsigned format, uint32_t first, uint32_t count, uint64_t base)
{
	struct build content = { 0 };

	build_u32(&content, first);
	build_u32(&content, count);
	for (uint32_t i = 0; i < count; i++)
		build_stack(&content, base + i, i);
	put(b, format, &content);
}

/* An event with each of these stacks. */
static void events(struct build *b, unsigned format, const uint32_t *ids, size_t count)
{
	struct build rows = { 0 };

	for (size_t i = 0; i < count; i++) {
		const struct build_row r = { .metadata_id = 1, .stack = ids[i], .ticks_delta = 1 };

		build_row(&rows, format == 6, &r);
	}
	build_rows(b, format, &rows);
}

static void point(struct build *b, unsigned format)
{
	struct build content = { 0 };

	if (format == 6) {
		build_sequence_point6(&content, 1, 0, NULL, NULL, 0);
		build_block6(b, KIND6_SEQUENCE, &content);
		return;
	}
	build_sequence_point(&content, 1, NULL, NULL, 0);
	build_object(b, 4, "SPBlock", &content);
}

static void finish(struct tape *t, struct build *b, unsigned format, unsigned flags)
{
	build_close(b, format);
	tape_play(t, b, 0, flags);
}

static void ids_count_up_from_the_first(void **state)
{
	static const uint32_t ids[] = { 5, 6, 7, 8 };

	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		struct build b = build_new(format);
		struct tape t = { 0 };

		build_hi(&b, format);
		stacks(&b, format, 5, 4, 0x7f00000000001000);
		events(&b, format, ids, 4);
		finish(&t, &b, format, 0);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.count, 4);
		for (size_t i = 0; i < 4; i++) {
			assert_int_equal(t.events[i].stack_id, 5 + i);
			assert_int_equal(t.events[i].frame_count, i);
			for (size_t k = 0; k < i; k++)
				assert_true(t.events[i].stack[k] == 0x7f00000000001000 + i + k);
		}
		assert_int_equal(t.stats.unknown_stacks, 0);
	}
}

static void several_blocks_go_on_counting(void **state)
{
	static const uint32_t ids[] = { 2, 4, 6 };
	struct build b = build_new(4);
	struct tape t = { 0 };

	(void)state;
	build_hi(&b, 4);
	stacks(&b, 4, 1, 3, 0x1000);
	stacks(&b, 4, 4, 3, 0x2000);
	events(&b, 4, ids, 3);
	finish(&t, &b, 4, 0);
	assert_int_equal(t.events[0].stack[0], 0x1001);
	assert_int_equal(t.events[1].frame_count, 0);
	assert_int_equal(t.events[2].stack[1], 0x2003);
	assert_int_equal(t.stats.unknown_stacks, 0);
}

static void id_0_is_no_stack_even_if_one_was_sent(void **state)
{
	static const uint32_t ids[] = { 0, 1 };
	struct build b = build_new(4);
	struct tape t = { 0 };

	(void)state;
	build_hi(&b, 4);
	stacks(&b, 4, 0, 2, 0x1000);
	events(&b, 4, ids, 2);
	finish(&t, &b, 4, 0);
	assert_int_equal(t.events[0].frame_count, 0);
	assert_int_equal(t.events[0].stack_id, 0);
	assert_int_equal(t.events[1].frame_count, 1);
	assert_int_equal(t.stats.unknown_stacks, 0);
}

static void an_unknown_id_is_no_stack_and_counted(void **state)
{
	static const uint32_t ids[] = { 3, UINT32_MAX, 1 };
	struct build b = build_new(4);
	struct tape t = { 0 };

	(void)state;
	build_hi(&b, 4);
	stacks(&b, 4, 1, 2, 0x1000);
	events(&b, 4, ids, 3);
	finish(&t, &b, 4, 0);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.stats.unknown_stacks, 2);
	assert_int_equal(t.events[0].stack_id, 0);
	assert_int_equal(t.events[0].frame_count, 0);
	assert_int_equal(t.events[2].stack_id, 1);
}

static void of_two_stacks_with_one_id_the_last_counts(void **state)
{
	static const uint32_t ids[] = { 1, 2, 3, 900 };
	struct build b = build_new(4);
	struct tape t = { 0 };

	(void)state;
	build_hi(&b, 4);
	stacks(&b, 4, 1, 3, 0x1000);
	stacks(&b, 4, 899, 2, 0x3000); /* not next to the others */
	stacks(&b, 4, 1, 2, 0x2000);
	stacks(&b, 4, 899, 2, 0x4000);
	events(&b, 4, ids, 4);
	finish(&t, &b, 4, 0);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.events[0].frame_count, 0);
	assert_int_equal(t.events[1].stack[0], 0x2001);
	assert_int_equal(t.events[2].stack[0], 0x1002);
	assert_int_equal(t.events[3].stack[0], 0x4001);
}

static void addresses_may_have_4_bytes(void **state)
{
	static const uint32_t id = 1;

	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		struct build b = build_new(format), content = { 0 };
		struct tape t = { 0 };

		build_patch_u32(&b, format == 6 ? TRACE_POINTER_V6 : TRACE_POINTER_V4, 4);
		build_hi(&b, format);
		build_u32(&content, 1);
		build_u32(&content, 1);
		build_u32(&content, 8);
		build_u32(&content, 0xfffffff0);
		build_u32(&content, 0x10);
		put(&b, format, &content);
		events(&b, format, &id, 1);
		finish(&t, &b, format, 0);
		assert_int_equal(t.events[0].frame_count, 2);
		assert_true(t.events[0].stack[0] == 0xfffffff0);
		assert_true(t.events[0].stack[1] == 0x10);
	}
}

static void half_an_address_is_left_out(void **state)
{
	static const uint32_t ids[] = { 1, 2 };

	(void)state;
	for (uint32_t bytes = 0; bytes <= 24; bytes++) {
		struct build b = build_new(4), content = { 0 };
		struct tape t = { 0 };

		build_hi(&b, 4);
		build_u32(&content, 1);
		build_u32(&content, 2);
		build_u32(&content, bytes);
		build_repeat(&content, 0x11, bytes);
		build_stack(&content, 0x2000, 1);
		put(&b, 4, &content);
		events(&b, 4, ids, 2);
		finish(&t, &b, 4, 0);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.events[0].frame_count, bytes / 8);
		assert_int_equal(t.events[1].stack[0], 0x2000);
	}
}

static void a_stack_may_be_deeper_than_writers_make_them(void **state)
{
	static const uint32_t id = 1;
	struct build b = build_new(4), content = { 0 };
	struct tape t = { 0 };

	(void)state;
	build_hi(&b, 4);
	build_u32(&content, 1);
	build_u32(&content, 1);
	build_stack(&content, 0x1000, 20000);
	put(&b, 4, &content);
	events(&b, 4, &id, 1);
	finish(&t, &b, 4, 0);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.events[0].frame_count, 20000);
}

/* --- sequence points --- */

static void stacks_end_at_a_sequence_point(void **state)
{
	static const uint32_t ids[] = { 2, 3 };

	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		struct build b = build_new(format);
		struct tape t = { 0 };

		build_hi(&b, format);
		stacks(&b, format, 1, 3, 0x1000);
		events(&b, format, ids, 2);
		point(&b, format);
		events(&b, format, ids, 2); /* not known any more */
		stacks(&b, format, 1, 2, 0x2000);
		events(&b, format, ids, 2); /* 2 is another one, 3 not known */
		finish(&t, &b, format, 0);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.count, 6);
		assert_int_equal(t.events[0].stack[0], 0x1001);
		assert_int_equal(t.events[2].frame_count, 0);
		assert_int_equal(t.events[3].frame_count, 0);
		assert_int_equal(t.events[4].stack[0], 0x2001);
		assert_int_equal(t.events[5].frame_count, 0);
		assert_int_equal(t.stats.unknown_stacks, 3);
		assert_int_equal(t.events[1].stack_epoch, t.events[0].stack_epoch);
		assert_true(t.events[2].stack_epoch > t.events[1].stack_epoch);
		assert_int_equal(t.events[5].stack_epoch, t.events[2].stack_epoch);
	}
}

static void events_that_wait_still_get_their_stack(void **state)
{
	const struct build_row waits = {
		.metadata_id = 1,
		.stack = 2,
		.ticks_delta = 50,
		.unsorted = true,
	};
	struct build b = build_new(4), rows = { 0 };
	struct tape t = { 0 };

	(void)state;
	build_hi(&b, 4);
	stacks(&b, 4, 1, 3, 0x1000);
	build_row(&rows, false, &waits);
	build_rows(&b, 4, &rows);
	point(&b, 4);
	stacks(&b, 4, 1, 3, 0x2000);
	finish(&t, &b, 4, NT_TIME_ORDER);
	assert_string_equal(t.log, "trace define:Hi Hi@50 point@-999");
	assert_int_equal(t.events[0].stack[0], 0x1001);
}

/* --- damage --- */

static void hostile_sizes(void **state)
{
	static const struct {
		size_t at; /* in the block */
		uint32_t value;
		size_t fault;
	} cases[] = {
		{ 8, 17, 12 },	       { 8, INT32_MAX, 12 }, { 8, 0x80000000, 12 },
		{ 8, UINT32_MAX, 12 }, { 8, 14, 26 }, /* then two bytes are left for the next size
						       */
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		unsigned format = i % 2 ? 6 : 4;
		struct build b = build_new(format), content = { 0 };
		struct tape t = { 0 };
		size_t start;

		build_u32(&content, 1);
		build_u32(&content, 2);
		build_stack(&content, 0x1000, 2);
		build_patch_u32(&content, cases[i / 2].at, cases[i / 2].value);
		put(&b, format, &content);
		start = b.count - 28 - (format == 6 ? 0 : 1);
		build_close(&b, format);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_EFORMAT);
		assert_string_equal(t.error.what, "stack runs past its block");
		assert_int_equal(t.error.offset, start + cases[i / 2].fault);
		assert_string_equal(t.error.block, "StackBlock");
		assert_int_equal(t.error.row, cases[i / 2].fault == 26);
	}
}

static void half_a_header_is_refused(void **state)
{
	(void)state;
	for (size_t bytes = 0; bytes < 8; bytes++) {
		struct build b = build_new(4), content = { 0 };
		struct tape t = { 0 };

		build_repeat(&content, 0, bytes);
		put(&b, 4, &content);
		finish(&t, &b, 4, 0);
		assert_int_equal(t.status, NT_EFORMAT);
		assert_string_equal(t.error.what, "stack block header runs past its block");
	}
}

/* The reference reader goes by the bytes alone; so a count that promises more is no fault. */
static void a_count_of_stacks_that_are_not_there(void **state)
{
	static const uint32_t counts[] = { 2, INT32_MAX, 0x80000000, UINT32_MAX };
	static const uint32_t id = 1;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct build b = build_new(4), content = { 0 };
		struct tape t = { 0 };

		build_hi(&b, 4);
		build_u32(&content, 1);
		build_u32(&content, counts[i]);
		build_stack(&content, 0x1000, 1);
		put(&b, 4, &content);
		events(&b, 4, &id, 1);
		finish(&t, &b, 4, 0);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.events[0].frame_count, 1);
	}
}

static void skipped_stacks_are_not_looked_at(void **state)
{
	static const uint32_t ids[] = { 1, 2, 77 };
	struct build b = build_new(4), content = { 0 };
	struct tape t = { 0 };

	(void)state;
	build_hi(&b, 4);
	build_u32(&content, 1);
	build_u32(&content, 1);
	build_u32(&content, UINT32_MAX); /* damaged */
	put(&b, 4, &content);
	stacks(&b, 4, 1, 3, 0x1000);
	events(&b, 4, ids, 3);
	finish(&t, &b, 4, NT_SKIP_STACKS);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(t.events[i].frame_count, 0);
		assert_int_equal(t.events[i].stack_id, ids[i]);
	}
	assert_int_equal(t.stats.unknown_stacks, 0);
}

/* --- limits --- */

static void stacks_between_two_points_have_a_limit(void **state)
{
	const struct nt_limits limits = { .max_stack_bytes = 100000 };

	(void)state;
	for (size_t with_point = 0; with_point < 2; with_point++) {
		struct build b = build_new(4);
		struct tape t = { 0 };

		for (uint32_t i = 0; i < 20; i++) { /* each about 10 kB */
			stacks(&b, 4, 1 + 50 * i, 50, 0x1000);
			if (with_point)
				point(&b, 4);
		}
		build_end(&b);
		tape_play_with(&t, &b, 0, 0, &limits);
		assert_int_equal(t.status, with_point ? NT_OK : NT_ELIMIT);
		if (!with_point)
			assert_string_equal(t.error.what,
					    "stacks between two sequence points exceed the limit");
	}
}

static void stacks_of_no_frames_count_too(void **state)
{
	const struct nt_limits limits = { .max_stack_bytes = 6400 };

	(void)state;
	for (uint32_t n = 100; n <= 101; n++) {
		struct build b = build_new(4), content = { 0 };
		struct tape t = { 0 };

		build_u32(&content, 1);
		build_u32(&content, n);
		for (uint32_t i = 0; i < n; i++)
			build_u32(&content, 0);
		put(&b, 4, &content);
		build_end(&b);
		tape_play_with(&t, &b, 0, 0, &limits);
		assert_int_equal(t.status, n == 100 ? NT_OK : NT_ELIMIT);
	}
}

/* --- the table itself --- */

enum { IDS = 300 };

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Any order of ids gives what a plain array would give. */
static void the_table_agrees_with_an_array(void **state)
{
	uint32_t seed = 1;

	(void)state;
	for (unsigned round = 0; round < 60; round++) {
		uint32_t base = round % 3 ? round : UINT32_MAX - IDS / 2; /* over the top */
		int want[IDS] = { 0 };
		struct nt_idtable table;

		nt_idtable_init(&table, &nt_alloc_default, sizeof(int));
		for (int n = 1; n <= 400; n++) {
			uint32_t i = next_random(&seed) % IDS;
			int *item;

			if (n < 100 && round % 2)
				i = (uint32_t)n; /* in line at first */
			item = nt_idtable_add(&table, base + i);
			assert_non_null(item);
			assert_int_equal(*item, 0);
			*item = want[i] = n;
		}
		for (uint32_t i = 0; i < IDS; i++) {
			const int *item = nt_idtable_find(&table, base + i);

			assert_int_equal(item ? *item : 0, want[i]);
		}
		nt_idtable_clear(&table);
		for (uint32_t i = 0; i < IDS; i++)
			assert_null(nt_idtable_find(&table, base + i));
		nt_idtable_done(&table);
	}
}

static void the_table_survives_no_memory(void **state)
{
	(void)state;
	for (size_t fail_at = 1; fail_at < 8; fail_at++) {
		struct failalloc fa;
		struct nt_idtable table;
		uint32_t n = 0;

		failalloc_init(&fa, fail_at);
		nt_idtable_init(&table, &fa.alloc, sizeof(int));
		while (nt_idtable_add(&table, 2 * n)) /* out of line */
			n++;
		assert_true(fa.failed);
		assert_null(nt_idtable_find(&table, 2 * n));
		for (uint32_t i = 0; i < n; i++)
			assert_non_null(nt_idtable_find(&table, 2 * i));
		assert_non_null(nt_idtable_add(&table, 2 * n));
		nt_idtable_done(&table);
		assert_int_equal(fa.live, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_count_up_from_the_first),
		cmocka_unit_test(several_blocks_go_on_counting),
		cmocka_unit_test(id_0_is_no_stack_even_if_one_was_sent),
		cmocka_unit_test(an_unknown_id_is_no_stack_and_counted),
		cmocka_unit_test(of_two_stacks_with_one_id_the_last_counts),
		cmocka_unit_test(addresses_may_have_4_bytes),
		cmocka_unit_test(half_an_address_is_left_out),
		cmocka_unit_test(a_stack_may_be_deeper_than_writers_make_them),
		cmocka_unit_test(stacks_end_at_a_sequence_point),
		cmocka_unit_test(events_that_wait_still_get_their_stack),
		cmocka_unit_test(hostile_sizes),
		cmocka_unit_test(half_a_header_is_refused),
		cmocka_unit_test(a_count_of_stacks_that_are_not_there),
		cmocka_unit_test(skipped_stacks_are_not_looked_at),
		cmocka_unit_test(stacks_between_two_points_have_a_limit),
		cmocka_unit_test(stacks_of_no_frames_count_too),
		cmocka_unit_test(the_table_agrees_with_an_array),
		cmocka_unit_test(the_table_survives_no_memory),
	};

	return cmocka_run_group_tests_name("block_stack", tests, NULL, NULL);
}
