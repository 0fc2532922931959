/* SPDX-License-Identifier: MIT */
/* The thread table of V6: declared, removed, forgotten; and what its events say then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/tape.h"

static void threads(struct build *b, struct build *rows)
{
	build_block6(b, KIND6_THREAD, rows);
}

/* A block with that one thread. */
static void declare(struct build *b, uint64_t index, const char *name, uint64_t thread_id)
{
	struct build rows = { 0 };

	build_thread6(&rows, index, name, 900, thread_id);
	threads(b, &rows);
}

/* An event that the thread itself wrote. */
static void event_with(struct build *b, uint64_t index, uint32_t number, uint64_t ticks,
		       bool unsorted)
{
	const struct build_row r = {
		.metadata_id = 1,
		.sequence_delta = number - 1,
		.capture = index,
		.thread = index,
		.ticks_delta = ticks,
		.unsorted = unsorted,
	};
	struct build rows = { 0 };

	build_row(&rows, true, &r);
	build_rows(b, 6, &rows);
}

static void event_of(struct build *b, uint64_t index, uint32_t number, uint64_t ticks)
{
	event_with(b, index, number, ticks, false);
}

static void remove_thread(struct build *b, uint64_t index, uint32_t sequence)
{
	struct build rows = { 0 };

	build_varuint(&rows, index);
	build_varuint(&rows, sequence);
	build_block6(b, KIND6_REMOVE_THREAD, &rows);
}

static void point(struct build *b, uint32_t flags)
{
	struct build content = { 0 };

	build_sequence_point6(&content, 1000, flags, NULL, NULL, 0);
	build_block6(b, KIND6_SEQUENCE, &content);
}

static struct build begun(void)
{
	struct build b = build_new(6);

	build_hi(&b, 6);
	return b;
}

static void play(struct tape *t, struct build *b, unsigned flags)
{
	build_close(b, 6);
	tape_play(t, b, 0, flags);
}

/* --- rows --- */

static void a_row_says_who_a_thread_is(void **state)
{
	struct build b = begun(), rows = { 0 }, row = { 0 };
	struct tape t = { 0 };
	const struct tape_event *e = t.events;

	(void)state;
	build_thread6(&rows, 5, "main \xe2\x82\xac", 0x100000000, 0x200000000);
	build_varuint(&row, UINT64_MAX);
	build_u8(&row, 4); /* a pair */
	build_str6(&row, "key");
	build_str6(&row, "value");
	build_u8(&row, 3);
	build_varuint(&row, 77);
	build_sized_row(&rows, &row);
	build_varuint(&row, 0);
	build_sized_row(&rows, &row); /* nothing but the index */
	threads(&b, &rows);
	event_of(&b, 5, 1, 10);
	event_of(&b, UINT64_MAX, 1, 11);
	event_of(&b, 0, 1, 12);
	play(&t, &b, 0);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.count, 3);
	assert_string_equal(e[0].thread_name, "main \xe2\x82\xac");
	assert_true(e[0].process_id == 0x100000000);
	assert_true(e[0].thread_id == 0x200000000);
	assert_int_equal(e[0].capture_thread_id, 5);
	assert_false(e[1].has_thread_name);
	assert_int_equal(e[1].process_id, 42); /* the trace's */
	assert_int_equal(e[1].thread_id, 77);
	assert_true(e[2].thread_id == UINT64_MAX);
	assert_int_equal(e[2].process_id, 42);
	assert_int_equal(t.stats.unknown_threads, 0);
}

static void several_blocks_make_one_table(void **state)
{
	struct build b = begun();
	struct tape t = { 0 };

	(void)state;
	declare(&b, 7, "a", 107);
	declare(&b, 8, "b", 108);
	event_of(&b, 7, 1, 10);
	declare(&b, 9, "c", 109);
	event_of(&b, 9, 1, 11);
	event_of(&b, 8, 1, 12);
	play(&t, &b, 0);
	assert_int_equal(t.events[0].thread_id, 107);
	assert_int_equal(t.events[1].thread_id, 109);
	assert_int_equal(t.events[2].thread_id, 108);
}

static void an_event_tells_its_thread_and_its_capture_thread_apart(void **state)
{
	const struct build_row r = { .metadata_id = 1, .capture = 7, .thread = 8 };
	struct build b = begun(), rows = { 0 };
	struct tape t = { 0 };

	(void)state;
	declare(&b, 7, "sampler", 107);
	declare(&b, 8, "sampled", 108);
	build_row(&rows, true, &r);
	build_rows(&b, 6, &rows);
	play(&t, &b, 0);
	assert_int_equal(t.events[0].capture_thread_id, 7);
	assert_int_equal(t.events[0].thread_id, 108);
	assert_string_equal(t.events[0].thread_name, "sampled");
}

static void without_a_thread_block_threads_are_unknown_and_counted(void **state)
{
	struct build b = begun();
	struct tape t = { 0 };

	(void)state;
	event_of(&b, 5, 1, 10);
	event_of(&b, 5, 2, 11);
	play(&t, &b, NT_TIME_ORDER);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.count, 2);
	assert_int_equal(t.stats.unknown_threads, 2);
	assert_true(t.events[0].thread_id == UINT64_MAX);
	assert_int_equal(t.events[0].process_id, 42);
	assert_false(t.events[0].has_thread_name);
}

/* A thread that was never declared may have begun anywhere in its numbers. */
static void an_unknown_thread_has_lost_nothing_before_its_first_event(void **state)
{
	struct build b = begun();
	struct tape t = { 0 };

	(void)state;
	event_of(&b, 5, 900, 10);
	event_of(&b, 5, 903, 11);
	play(&t, &b, 0);
	assert_int_equal(t.stats.lost, 2);
}

static void a_declared_thread_starts_at_number_1(void **state)
{
	struct build b = begun();
	struct tape t = { 0 };

	(void)state;
	declare(&b, 5, NULL, 105);
	event_of(&b, 5, 5, 1010);
	play(&t, &b, 0);
	assert_string_equal(t.log, "trace define:Hi lost:105=4@10 Hi@1010");
}

/* --- damage --- */

static void an_index_cannot_be_declared_twice(void **state)
{
	struct build b = begun(), rows = { 0 };
	struct tape t = { 0 };
	size_t end;

	(void)state;
	declare(&b, 5, NULL, 105);
	build_thread6(&rows, 6, NULL, 900, 106);
	build_thread6(&rows, 5, NULL, 900, 105);
	threads(&b, &rows);
	end = b.count;
	play(&t, &b, 0);
	assert_int_equal(t.status, NT_EFORMAT);
	assert_string_equal(t.error.what, "thread index is declared a second time");
	assert_int_equal(t.error.offset, end - 6);
	assert_string_equal(t.error.block, "ThreadBlock");
	assert_int_equal(t.error.row, 1);
}

static void a_row_cut_at_every_byte(void **state)
{
	struct build whole = { 0 };
	/* index; name; pair; process; thread: where each entry begins */
	static const size_t starts[] = { 0, 2, 6, 11, 14 };

	(void)state;
	build_varuint(&whole, 300);
	build_u8(&whole, 1);
	build_str6(&whole, "ab");
	build_u8(&whole, 4);
	build_str6(&whole, "c");
	build_str6(&whole, "d");
	build_u8(&whole, 2);
	build_varuint(&whole, 300);
	build_u8(&whole, 3);
	build_varuint(&whole, 1);
	for (size_t size = 0; size <= whole.count; size++) {
		struct build b = begun(), row = { 0 }, rows = { 0 };
		struct tape t = { 0 };
		bool sound = size == whole.count;

		for (size_t i = 1; i < 5; i++)
			sound = sound || size == starts[i];
		build_bytes(&row, whole.bytes, size);
		build_sized_row(&rows, &row);
		threads(&b, &rows);
		play(&t, &b, 0);
		assert_int_equal(t.status, sound ? NT_OK : NT_EFORMAT);
		if (!sound)
			assert_string_equal(t.error.what, "thread row ends too early");
	}
	build_done(&whole);
}

static void an_unknown_entry_is_refused(void **state)
{
	static const unsigned kinds[] = { 0, 5, 255 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct build b = begun(), row = { 0 }, rows = { 0 };
		struct tape t = { 0 };
		size_t end;

		build_varuint(&row, 5);
		build_u8(&row, 2);
		build_varuint(&row, 1);
		build_u8(&row, kinds[i]);
		build_varuint(&row, 1);
		build_sized_row(&rows, &row);
		threads(&b, &rows);
		end = b.count;
		play(&t, &b, 0);
		assert_int_equal(t.status, NT_EFORMAT);
		assert_string_equal(t.error.what, "thread row has an unknown kind of entry");
		assert_int_equal(t.error.offset, end - 2);
	}
}

static void a_row_longer_than_its_block_is_refused(void **state)
{
	static const unsigned sizes[] = { 8, 0xffff };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct build b = begun(), rows = { 0 };
		struct tape t = { 0 };
		size_t start = b.count + 4;

		build_thread6(&rows, 5, NULL, 1, 2);
		assert_int_equal(rows.count, 2 + 5);
		build_patch_u16(&rows, 0, sizes[i]);
		threads(&b, &rows);
		play(&t, &b, 0);
		assert_int_equal(t.status, NT_EFORMAT);
		assert_string_equal(t.error.what, "thread row runs past its block");
		assert_int_equal(t.error.offset, start + 2);
	}
}

static void the_number_of_threads_has_a_limit(void **state)
{
	const struct nt_limits limits = { .max_ids = 10 };

	(void)state;
	for (uint64_t n = 10; n <= 11; n++) {
		struct build b = begun(), rows = { 0 };
		struct tape t = { 0 };

		for (uint64_t i = 0; i < n; i++)
			build_thread6(&rows, i, "name", 1, i);
		threads(&b, &rows);
		build_close(&b, 6);
		tape_play_with(&t, &b, 0, 0, &limits);
		assert_int_equal(t.status, n == 10 ? NT_OK : NT_ELIMIT);
		if (n == 11)
			assert_string_equal(t.error.what, "more threads than the limit");
	}
}

static void the_memory_of_names_has_a_limit(void **state)
{
	const struct nt_limits limits = { .max_def_bytes = 1000 };
	struct build b = begun(), rows = { 0 };
	struct tape t = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		build_thread6(&rows, i, "a name of some length", 1, i);
	threads(&b, &rows);
	build_close(&b, 6);
	tape_play_with(&t, &b, 0, 0, &limits);
	assert_int_equal(t.status, NT_ELIMIT);
	assert_string_equal(t.error.what, "thread names exceed the limit of memory");
}

/* --- removal --- */

static void a_removed_thread_tells_how_far_it_came(void **state)
{
	static const struct {
		uint32_t reached;
		uint64_t lost, inconsistent;
	} cases[] = { { 2, 0, 0 }, { 5, 3, 0 }, { 1, 0, 1 } };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct build b = begun();
		struct tape t = { 0 };

		declare(&b, 5, NULL, 105);
		event_of(&b, 5, 1, 10);
		event_of(&b, 5, 2, 11);
		remove_thread(&b, 5, cases[i].reached);
		play(&t, &b, 0);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.stats.lost, cases[i].lost);
		assert_int_equal(t.stats.inconsistent, cases[i].inconsistent);
		if (cases[i].lost)
			assert_int_equal(t.losses[0].thread_id, 105);
	}
}

static void a_thread_may_have_lost_all_its_events(void **state)
{
	struct build b = begun();
	struct tape t = { 0 };

	(void)state;
	declare(&b, 5, NULL, 105);
	remove_thread(&b, 5, 9);
	play(&t, &b, 0);
	assert_string_equal(t.log, "trace define:Hi lost:105=9@0");
}

static void only_threads_that_are_there_can_be_removed(void **state)
{
	(void)state;
	for (size_t twice = 0; twice < 2; twice++) {
		struct build b = begun();
		struct tape t = { 0 };
		size_t end;

		if (twice) {
			declare(&b, 5, NULL, 105);
			remove_thread(&b, 5, 0);
		}
		remove_thread(&b, 5, 0);
		end = b.count;
		play(&t, &b, 0);
		assert_int_equal(t.status, NT_EFORMAT);
		assert_string_equal(t.error.what, "a thread that is not there is removed");
		assert_int_equal(t.error.offset, end - 2);
		assert_string_equal(t.error.block, "RemoveThreadBlock");
	}
}

static void half_a_removal_is_refused(void **state)
{
	struct build b = begun(), rows = { 0 };
	struct tape t = { 0 };

	(void)state;
	declare(&b, 5, NULL, 105);
	build_varuint(&rows, 5);
	build_block6(&b, KIND6_REMOVE_THREAD, &rows);
	play(&t, &b, 0);
	assert_int_equal(t.status, NT_EFORMAT);
	assert_string_equal(t.error.what, "removed thread runs past its block");
}

static void events_after_removal_are_of_an_unknown_thread(void **state)
{
	struct build b = begun();
	struct tape t = { 0 };

	(void)state;
	declare(&b, 5, "gone", 105);
	event_of(&b, 5, 1, 10);
	remove_thread(&b, 5, 1);
	event_of(&b, 5, 2, 11);
	play(&t, &b, NT_TIME_ORDER);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.events[0].thread_id, 105);
	assert_true(t.events[1].thread_id == UINT64_MAX);
	assert_int_equal(t.stats.unknown_threads, 1);
}

static void events_that_wait_outlive_their_thread(void **state)
{
	struct build b = begun();
	struct tape t = { 0 };

	(void)state;
	declare(&b, 5, "old", 105);
	declare(&b, 6, "other", 106);
	event_with(&b, 5, 1, 100, true); /* waits */
	remove_thread(&b, 5, 1);
	event_with(&b, 6, 1, 90, true); /* older, and later in the file */
	declare(&b, 5, "new", 205);
	event_of(&b, 5, 1, 200);
	play(&t, &b, NT_TIME_ORDER);
	assert_int_equal(t.status, NT_OK);
	assert_string_equal(t.log, "trace define:Hi Hi@90 Hi@100 Hi@200");
	assert_string_equal(t.events[1].thread_name, "old");
	assert_int_equal(t.events[1].thread_id, 105);
	assert_string_equal(t.events[2].thread_name, "new");
	assert_int_equal(t.stats.late, 0);
	assert_int_equal(t.stats.unknown_threads, 0);
	assert_int_equal(t.stats.lost + t.stats.inconsistent, 0);
}

static void a_reused_index_is_another_thread(void **state)
{
	struct build b = begun();
	struct tape t = { 0 };

	(void)state;
	declare(&b, 5, "old", 105);
	event_of(&b, 5, 1, 1010);
	remove_thread(&b, 5, 1);
	declare(&b, 5, "new", 205);
	event_of(&b, 5, 4, 1011); /* numbers from 1 again: 3 are lost */
	play(&t, &b, 0);
	assert_string_equal(t.log, "trace define:Hi Hi@1010 lost:205=3@11 Hi@1011");
}

/* --- flush at a sequence point --- */

static void flag_1_forgets_the_threads(void **state)
{
	(void)state;
	for (uint32_t flags = 0; flags <= 3; flags++) {
		struct build b = begun();
		struct tape t = { 0 };
		bool kept = !(flags & 1);

		declare(&b, 5, "main", 105);
		event_of(&b, 5, 1, 10);
		point(&b, flags);
		event_of(&b, 5, 2, 11);
		play(&t, &b, 0);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.stats.unknown_threads, !kept);
		assert_int_equal(t.events[1].has_thread_name, kept);
		assert_int_equal(t.stats.unknown_metadata, flags >> 1);
		assert_int_equal(t.stats.lost, 0);
	}
}

/* As recorders do before each of their blocks. */
static void after_flag_1_threads_are_declared_anew_and_count_from_1(void **state)
{
	(void)state;
	for (uint32_t flags = 1; flags <= 3; flags += 2) {
		struct build b = begun();
		struct tape t = { 0 };

		declare(&b, 0, NULL, 0);
		event_of(&b, 0, 1, 10);
		event_of(&b, 0, 2, 11);
		point(&b, flags);
		declare(&b, 0, "again", 1);
		build_hi(&b, 6);
		event_of(&b, 0, 1, 12);
		event_of(&b, 0, 3, 13);
		play(&t, &b, 0);
		assert_int_equal(t.status, NT_OK);
		assert_string_equal(t.events[2].thread_name, "again");
		assert_int_equal(t.stats.lost, 1);
		assert_int_equal(t.stats.inconsistent, 0);
		assert_int_equal(t.stats.unknown_metadata, 0);
	}
}

static void without_flag_1_an_index_is_still_taken(void **state)
{
	struct build b = begun();
	struct tape t = { 0 };

	(void)state;
	declare(&b, 5, NULL, 105);
	point(&b, 2);
	declare(&b, 5, NULL, 105);
	play(&t, &b, 0);
	assert_int_equal(t.status, NT_EFORMAT);
}

static void many_flushes_do_not_pile_up(void **state)
{
	const struct nt_limits limits = { .max_ids = 20, .max_def_bytes = 4000 };
	struct build b = begun();
	struct tape t = { 0 };

	(void)state;
	for (size_t round = 0; round < 50; round++) {
		for (uint64_t i = 0; i < 15; i++)
			declare(&b, i, "a name of some length", i);
		point(&b, 1);
	}
	build_close(&b, 6);
	tape_play_with(&t, &b, 0, 0, &limits);
	assert_int_equal(t.status, NT_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_says_who_a_thread_is),
		cmocka_unit_test(several_blocks_make_one_table),
		cmocka_unit_test(an_event_tells_its_thread_and_its_capture_thread_apart),
		cmocka_unit_test(without_a_thread_block_threads_are_unknown_and_counted),
		cmocka_unit_test(an_unknown_thread_has_lost_nothing_before_its_first_event),
		cmocka_unit_test(a_declared_thread_starts_at_number_1),
		cmocka_unit_test(an_index_cannot_be_declared_twice),
		cmocka_unit_test(a_row_cut_at_every_byte),
		cmocka_unit_test(an_unknown_entry_is_refused),
		cmocka_unit_test(a_row_longer_than_its_block_is_refused),
		cmocka_unit_test(the_number_of_threads_has_a_limit),
		cmocka_unit_test(the_memory_of_names_has_a_limit),
		cmocka_unit_test(a_removed_thread_tells_how_far_it_came),
		cmocka_unit_test(a_thread_may_have_lost_all_its_events),
		cmocka_unit_test(only_threads_that_are_there_can_be_removed),
		cmocka_unit_test(half_a_removal_is_refused),
		cmocka_unit_test(events_after_removal_are_of_an_unknown_thread),
		cmocka_unit_test(events_that_wait_outlive_their_thread),
		cmocka_unit_test(a_reused_index_is_another_thread),
		cmocka_unit_test(flag_1_forgets_the_threads),
		cmocka_unit_test(after_flag_1_threads_are_declared_anew_and_count_from_1),
		cmocka_unit_test(without_flag_1_an_index_is_still_taken),
		cmocka_unit_test(many_flushes_do_not_pile_up),
	};

	return cmocka_run_group_tests_name("block_thread", tests, NULL, NULL);
}
