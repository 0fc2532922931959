/* SPDX-License-Identifier: MIT */
/* Lost events by gaps of numbers, and sequence points. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failalloc.h"
#include "tests/support/tape.h"
#include "tests/support/trail.h"

/* A row of that thread with that number (rows of one block only count up, so each starts at 0). */
static void row(struct build *b, unsigned format, uint64_t thread, uint32_t number, uint64_t ticks)
{
	const struct build_row r = {
		.metadata_id = 1,
		.sequence_delta = number - 1,
		.capture = thread,
		.thread = thread,
		.ticks_delta = ticks,
	};
	struct build rows = { 0 };

	build_row(&rows, format == 6, &r);
	build_rows(b, format, &rows);
}

static void point_of(struct build *b, unsigned format, uint64_t ticks, const uint64_t *threads,
		     const uint32_t *numbers, uint32_t count)
{
	struct build content = { 0 };

	if (format == 6) {
		build_sequence_point6(&content, ticks, 0, threads, numbers, count);
		build_block6(b, KIND6_SEQUENCE, &content);
		return;
	}
	build_sequence_point(&content, ticks, threads, numbers, count);
	build_object(b, 4, "SPBlock", &content);
}

static void point(struct build *b, unsigned format, uint64_t thread, uint32_t number)
{
	point_of(b, format, 3000, &thread, &number, 1);
}

static struct build begun(unsigned format)
{
	struct build b = build_new(format), rows = { 0 };

	build_hi(&b, format);
	if (format == 6) {
		build_thread6(&rows, 7, NULL, 1, 107);
		build_thread6(&rows, 8, NULL, 1, 108);
		build_block6(&b, KIND6_THREAD, &rows);
	}
	return b;
}

static void play(struct tape *t, struct build *b, unsigned format)
{
	build_close(b, format);
	tape_play(t, b, 0, 0);
	assert_int_equal(t->status, NT_OK);
}

/* Events of thread 7 with these numbers; 0 ends them. */
static void play_numbers(struct tape *t, unsigned format, const uint32_t *numbers)
{
	struct build b = begun(format);

	for (; *numbers; numbers++)
		row(&b, format, 7, *numbers, 2000);
	play(t, &b, format);
}

struct numbers {
	uint32_t numbers[8];
	uint64_t lost, inconsistent;
};

static void check_numbers(unsigned format, const struct numbers *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct tape t = { 0 };

		play_numbers(&t, format, cases[i].numbers);
		assert_int_equal(t.stats.lost, cases[i].lost);
		assert_int_equal(t.stats.inconsistent, cases[i].inconsistent);
	}
}

static void gaps_of_version_4(void **state)
{
	static const struct numbers cases[] = {
		{ { 1, 2, 3 }, 0, 0 },
		{ { 1, 5 }, 3, 0 },
		{ { 900 }, 0, 0 }, /* what was before the first sight cannot be known */
		{ { 900, 905, 906, 910 }, 4 + 3, 0 },
		{ { UINT32_MAX - 1, UINT32_MAX }, 0, 0 },
		{ { UINT32_MAX - 1, 2 }, 3, 0 }, /* 2^32-1, 0 and 1 */
		{ { 1, INT32_MAX + 1u }, INT32_MAX - 1, 0 },
		{ { 1, INT32_MAX + 3u }, 0, 1 }, /* more than half of all: it went back */
		{ { 500, 499 }, 0, 1 },
		{ { 500, 500 }, 0, 1 },
		{ { 500, 20, 22 }, 1, 1 }, /* goes on from where it is */
	};

	(void)state;
	check_numbers(4, cases, sizeof(cases) / sizeof(*cases));
}

static void a_thread_that_starts_at_1_again_is_a_new_one(void **state)
{
	static const struct numbers cases[] = {
		{ { 500, 1, 2 }, 0, 0 },
		{ { 500, 1, 4 }, 2, 0 },
		{ { 1, 1, 1 }, 0, 0 },
		{ { UINT32_MAX, 1 }, 0, 0 },
	};

	(void)state;
	check_numbers(4, cases, sizeof(cases) / sizeof(*cases));
}

static void gaps_of_version_6(void **state)
{
	static const struct numbers cases[] = {
		{ { 1, 2, 3 }, 0, 0 }, { { 5 }, 4, 0 }, /* a declared thread starts at 1 */
		{ { 1, 5 }, 3, 0 },    { { 500, 1 }, 499, 1 }, /* never recycled */
		{ { 2, 1 }, 1, 1 },
	};

	(void)state;
	check_numbers(6, cases, sizeof(cases) / sizeof(*cases));
}

static void number_0_comes_after_the_last_one(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		struct build b = begun(format);
		struct tape t = { 0 };

		row(&b, format, 7, UINT32_MAX, 2000);
		row(&b, format, 7, 0, 2001);
		row(&b, format, 7, 1, 2002);
		row(&b, format, 7, 2, 2003);
		play(&t, &b, format);
		/* In V6 2^32-2 events before the first: that is taken for going back. */
		assert_int_equal(t.stats.lost, 0);
		assert_int_equal(t.stats.inconsistent, format == 6);
	}
}

static void a_gap_inside_of_a_block(void **state)
{
	static const struct build_row rows_of[] = {
		{ .metadata_id = 1, .capture = 7, .ticks_delta = 2000 }, /* 7: 1 */
		{ .metadata_id = 1, .capture = 8, .ticks_delta = 1 }, /* 8: 2 */
		{ .metadata_id = 1,
		  .capture = 7,
		  .sequence_delta = 4,
		  .ticks_delta = 1 }, /* 7: 7 */
		{ .metadata_id = 1, .capture = 8, .ticks_delta = 1 }, /* 8: 8 */
	};
	struct build b = begun(4), rows = { 0 };
	struct tape t = { 0 };

	(void)state;
	for (size_t i = 0; i < 4; i++)
		build_row(&rows, false, &rows_of[i]);
	build_rows(&b, 4, &rows);
	play(&t, &b, 4);
	assert_string_equal(t.log, "trace define:Hi Hi@2000 Hi@2001 lost:7=5@1002 Hi@2002 "
				   "lost:8=5@1003 Hi@2003");
	assert_int_equal(t.stats.lost, 10);
	assert_int_equal(t.loss_count, 2);
}

static void rows_of_metadata_have_no_place_in_the_numbers(void **state)
{
	struct build b = begun(4);
	struct tape t = { 0 };

	(void)state;
	row(&b, 4, 0, 900, 2000); /* thread 0, as those rows have */
	build_hi(&b, 4);
	row(&b, 4, 0, 901, 2001);
	play(&t, &b, 4);
	assert_int_equal(t.stats.lost + t.stats.inconsistent, 0);
}

/* --- at sequence points --- */

static void a_point_says_how_far_a_thread_came(void **state)
{
	static const struct {
		uint32_t seen, reached;
		uint64_t lost, inconsistent;
	} cases[] = {
		{ 3, 3, 0, 0 }, { 3, 8, 5, 0 },		 { 3, 2, 0, 1 },
		{ 3, 0, 0, 1 }, { UINT32_MAX, 4, 5, 0 }, { UINT32_MAX, 0, 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct build b = begun(4);
		struct tape t = { 0 };

		row(&b, 4, 7, cases[i].seen, 2000);
		point(&b, 4, 7, cases[i].reached);
		row(&b, 4, 7, cases[i].reached + 1, 4000); /* goes on behind it */
		play(&t, &b, 4);
		assert_int_equal(t.stats.lost, cases[i].lost);
		assert_int_equal(t.stats.inconsistent, cases[i].inconsistent);
	}
}

static void losses_are_told_before_the_point(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		uint64_t shown = format == 6 ? 107 : 7;
		struct build b = begun(format);
		struct tape t = { 0 };

		row(&b, format, 7, 1, 2000);
		point(&b, format, 7, 4);
		play(&t, &b, format);
		assert_string_equal(
			t.log, format == 6 ? "trace define:Hi Hi@2000 lost:107=3@2000 point@2000"
					   : "trace define:Hi Hi@2000 lost:7=3@2000 point@2000");
		assert_int_equal(t.losses[0].thread_id, shown);
		assert_int_equal(t.losses[0].lost, 3);
	}
}

static void a_thread_first_seen_in_a_point_counts_from_there(void **state)
{
	struct build b = begun(4);
	struct tape t = { 0 };

	(void)state;
	point(&b, 4, 7, 50);
	row(&b, 4, 7, 51, 4000);
	row(&b, 4, 7, 54, 4001);
	play(&t, &b, 4);
	assert_int_equal(t.stats.lost, 2);
}

static void in_v6_a_declared_thread_may_have_lost_all_before_a_point(void **state)
{
	struct build b = begun(6);
	struct tape t = { 0 };

	(void)state;
	point(&b, 6, 7, 50);
	point(&b, 6, 99, 50); /* not declared */
	play(&t, &b, 6);
	assert_int_equal(t.stats.lost, 50);
}

static void a_thread_that_is_not_listed_keeps_its_numbers(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		struct build b = begun(format);
		struct tape t = { 0 };

		row(&b, format, 7, 1, 2000);
		point(&b, format, 8, 0);
		row(&b, format, 7, 4, 4000);
		play(&t, &b, format);
		assert_int_equal(t.stats.lost, 2);
	}
}

static void a_point_may_list_many_threads_or_none(void **state)
{
	static const uint64_t threads[] = { UINT64_MAX, 0, 7, 8 };
	static const uint32_t numbers[] = { 1, 2, 3, UINT32_MAX };
	struct build b = begun(4);
	struct tape t = { 0 };

	(void)state;
	row(&b, 4, 7, 2, 2000);
	point_of(&b, 4, 3000, threads, numbers, 4);
	point_of(&b, 4, 3001, NULL, NULL, 0);
	play(&t, &b, 4);
	assert_string_equal(t.log, "trace define:Hi Hi@2000 lost:7=1@2000 point@2000 point@2001");
}

static void points_have_times_like_events(void **state)
{
	struct build b = begun(4);
	struct tape t = { 0 };

	(void)state;
	point_of(&b, 4, 0, NULL, NULL, 0);
	point_of(&b, 4, UINT64_MAX, NULL, NULL, 0);
	play(&t, &b, 4);
	/* NT_TIME_MAX_NS */
	assert_string_equal(t.log, "trace define:Hi point@-1000 point@2305843009213693952");
}

/* Where the parts of a point with two threads begin: time, flags, count, ids and numbers; its end.
 */
static const size_t parts_v4[] = { 0, 8, 8, 12, 20, 24, 32, 36 };
static const size_t parts_v6[] = { 0, 8, 12, 16, 18, 20, 21, 22 };

static void check_cut_point(unsigned format, const size_t *parts, size_t size)
{
	static const uint64_t threads[] = { 300, 8 };
	static const uint32_t numbers[] = { 300, 2 };
	struct build b = begun(format), content = { 0 };
	struct tape t = { 0 };
	size_t start, part = 7;

	if (format == 6)
		build_sequence_point6(&content, 3000, 0, threads, numbers, 2);
	else
		build_sequence_point(&content, 3000, threads, numbers, 2);
	assert_int_equal(content.count, parts[7]);
	content.count = size;
	if (format == 6)
		build_block6(&b, KIND6_SEQUENCE, &content);
	else
		build_object(&b, 4, "SPBlock", &content);
	start = b.count - size - (format == 6 ? 0 : 1);
	build_close(&b, format);
	tape_play(&t, &b, 0, 0);
	if (size == parts[7]) {
		assert_int_equal(t.status, NT_OK);
		return;
	}
	while (parts[part] > size)
		part--;
	assert_int_equal(t.status, NT_EFORMAT);
	assert_string_equal(t.error.what, "sequence point runs past its block");
	assert_int_equal(t.error.offset, start + parts[part]);
	assert_int_equal(t.error.row, part >= 5);
	assert_string_equal(t.log, "trace define:Hi");
}

static void a_point_cut_at_every_byte(void **state)
{
	(void)state;
	for (size_t size = 0; size <= parts_v4[7]; size++)
		check_cut_point(4, parts_v4, size);
	for (size_t size = 0; size <= parts_v6[7]; size++)
		check_cut_point(6, parts_v6, size);
}

static void hostile_counts_of_threads(void **state)
{
	static const uint32_t counts[] = { 2, INT32_MAX, 0x80000000, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		unsigned format = i % 2 ? 6 : 4;
		struct build b = begun(format);
		struct tape t = { 0 };
		size_t end;

		point(&b, format, 7, 1);
		end = b.count - (format == 6 ? 0 : 1);
		build_patch_u32(&b, end - (format == 6 ? 2 : 12) - 4, counts[i / 2]);
		build_close(&b, format);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_EFORMAT);
		assert_string_equal(t.error.what, "sequence point runs past its block");
		assert_int_equal(t.error.offset, end);
		assert_int_equal(t.error.row, 1);
	}
}

/* --- what is known of losses --- */

static void losses_are_listed_most_first(void **state)
{
	struct build b = begun(4);
	struct tape t = { 0 };

	(void)state;
	for (uint64_t thread = 1; thread <= 6; thread++)
		row(&b, 4, thread, 10, 2000);
	for (uint64_t thread = 1; thread <= 6; thread++) /* 0, 1, 2, 0, 1, 2 */
		row(&b, 4, thread, 11 + (uint32_t)((thread - 1) % 3), 2001);
	row(&b, 4, 2, 16, 2002); /* 3 more */
	play(&t, &b, 4);
	assert_int_equal(t.stats.lost, 1 + 2 + 1 + 2 + 3);
	assert_int_equal(t.loss_count, 4);
	assert_int_equal(t.losses[0].thread_id, 2);
	assert_int_equal(t.losses[0].lost, 4);
	assert_int_equal(t.losses[1].thread_id, 3);
	assert_int_equal(t.losses[2].thread_id, 6);
	assert_int_equal(t.losses[3].thread_id, 5);
	assert_int_equal(t.losses[3].lost, 1);
}

static void the_list_can_be_asked_for_at_any_time(void **state)
{
	struct build b = begun(4);
	struct trail trail = { 0 };
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, 0, &trail_sink, &trail);
	const struct nt_thread_loss *losses;
	size_t count, pushed;

	(void)state;
	assert_int_equal(nt_decoder_borrow_losses(d, &losses, &count), NT_OK);
	assert_int_equal(count, 0);
	for (uint64_t thread = 1; thread <= 5; thread++)
		row(&b, 4, thread, 10, 2000);
	for (uint64_t thread = 1; thread <= 5; thread++)
		row(&b, 4, thread, 10 + (uint32_t)thread, 2001);
	assert_int_equal(nt_decoder_push(d, b.bytes, b.count), NT_OK);
	assert_int_equal(nt_decoder_borrow_losses(d, &losses, &count), NT_OK);
	assert_int_equal(count, 4);
	assert_int_equal(losses[0].thread_id, 5);

	/* The rows have moved; the next losses still find theirs. */
	pushed = b.count;
	row(&b, 4, 2, 113, 2002);
	assert_int_equal(nt_decoder_push(d, b.bytes + pushed, b.count - pushed), NT_OK);
	build_done(&b);
	assert_int_equal(nt_decoder_borrow_losses(d, &losses, &count), NT_OK);
	assert_int_equal(count, 4);
	assert_int_equal(losses[0].thread_id, 2);
	assert_int_equal(losses[0].lost, 1 + 100);
	assert_int_equal(losses[1].thread_id, 5);
	assert_int_equal(losses[1].lost, 4);
	nt_decoder_free(d);
}

static void what_the_callbacks_answer_counts(void **state)
{
	static const enum nt_status answers[] = { NT_STOPPED, NT_ESINK, NT_ENOMEM };
	static const char *const callbacks[] = { "lost", "point" };

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		struct build b = begun(4);
		struct tape t = { .refuse = callbacks[i / 3], .refusal = answers[i % 3] };

		row(&b, 4, 7, 1, 2000);
		point(&b, 4, 7, 2);
		row(&b, 4, 7, 3, 4000);
		build_end(&b);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, answers[i % 3]);
		assert_int_equal(t.count, 1);
		assert_int_equal(t.error.code, answers[i % 3] < 0 ? answers[i % 3] : NT_OK);
	}
}

/* --- many threads --- */

enum { FIRST = 1000000 };

/* Rows of many capture threads in few blocks: number is what each of them has. */
static void many_rows(struct build *b, uint64_t first, uint64_t threads, uint32_t number,
		      uint64_t ticks, bool unsorted)
{
	for (uint64_t done = 0; done < threads;) {
		struct build rows = { 0 };
		uint32_t at = 0; /* the block's running number */

		for (size_t i = 0; i < 1000 && done < threads; i++, done++) {
			const struct build_row r = {
				.metadata_id = 1,
				.sequence_delta = number - 1 - at,
				.capture = first + done,
				.ticks_delta = i ? 0 : ticks,
				.unsorted = unsorted,
			};

			build_row(&rows, false, &r);
			at = number;
		}
		build_rows(b, 4, &rows);
	}
}

static void losses_of_6000_threads_are_all_seen(void **state)
{
	struct build b = begun(4);
	struct tape t = { 0 };

	(void)state;
	many_rows(&b, FIRST, 6500, 10, 2000, false);
	many_rows(&b, FIRST, 6500, 13, 2001, false);
	play(&t, &b, 4);
	assert_int_equal(t.count, 13000);
	assert_int_equal(t.stats.lost, 2 * 6500);
	assert_int_equal(t.loss_count, 6500);
	assert_int_equal(t.stats.evicted_threads, 0);
	assert_int_equal(t.stats.inconsistent, 0);
}

static void beyond_65536_threads_the_known_ones_are_forgotten(void **state)
{
	struct build b = begun(4);
	struct trail t = { 0 };

	(void)state;
	many_rows(&b, FIRST, 70000, 10, 2000, false);
	many_rows(&b, FIRST, 4464, 11, 2001,
		  false); /* not known any more: nothing lost, nothing wrong */
	build_end(&b);
	assert_int_equal(feed(b.bytes, b.count, 0, 0, &t), NT_OK);
	assert_int_equal(t.events, 74464);
	assert_int_equal(t.stats.evicted_threads, 65536);
	assert_int_equal(t.stats.lost, 0);
	assert_int_equal(t.stats.inconsistent, 0);
	build_done(&b);
}

static void forgotten_threads_let_their_waiting_events_go(void **state)
{
	struct build b = begun(4);
	struct trail t = { 0 };

	(void)state;
	many_rows(&b, FIRST, 65540, 10, 2000, true);
	row(&b, 4, 7, 1, 3000);
	build_end(&b);
	assert_int_equal(feed(b.bytes, b.count, 0, NT_TIME_ORDER, &t), NT_OK);
	assert_int_equal(t.events, 65541);
	assert_int_equal(t.inversions, 0);
	assert_int_equal(t.stats.evicted_threads, 65536);
	build_done(&b);
}

static void a_refusal_while_threads_are_forgotten_counts(void **state)
{
	static const enum nt_status answers[] = { NT_STOPPED, NT_ESINK };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct build b = begun(4);
		struct tape t = { .refuse = "event", .skip = 5, .refusal = answers[i] };

		many_rows(&b, FIRST, 65540, 10, 2000, true);
		build_end(&b);
		tape_play(&t, &b, 0, NT_TIME_ORDER);
		assert_int_equal(t.status, answers[i]);
		assert_int_equal(t.count, 6);
		assert_int_equal(t.error.code, answers[i] < 0 ? answers[i] : NT_OK);
	}
}

static void beyond_65536_losing_threads_the_others_are_one_row(void **state)
{
	struct build b = begun(4);
	struct tape t = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		many_rows(&b, FIRST + 32000 * i, 32000, 10, 2000, false);
		many_rows(&b, FIRST + 32000 * i, 32000, 12, 2001, false);
	}
	build_end(&b);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_OK);
	/* The first events of 1536 threads were forgotten on the way. */
	assert_int_equal(t.stats.lost, 96000 - 1536);
	assert_int_equal(t.loss_count, 65537);
	assert_true(t.losses[0].thread_id == UINT64_MAX);
	assert_int_equal(t.losses[0].lost, 96000 - 1536 - 65536);
}

static void a_long_list_of_losses_may_find_no_memory(void **state)
{
	struct build b = begun(4);
	struct trail t = { 0 };
	struct failalloc fa;
	struct nt_decoder *d;
	const struct nt_thread_loss *losses;
	size_t count;

	(void)state;
	many_rows(&b, FIRST, 50000, 10, 2000, false);
	many_rows(&b, FIRST, 50000, 12, 2001, false);
	failalloc_init(&fa, 0);
	d = nt_decoder_new(&fa.alloc, NULL, 0, &trail_sink, &t);
	assert_int_equal(nt_decoder_push(d, b.bytes, b.count), NT_OK);
	fa.fail_at = fa.calls + 1;
	assert_int_equal(nt_decoder_borrow_losses(d, &losses, &count), NT_ENOMEM);
	assert_true(fa.failed);
	assert_int_equal(nt_decoder_borrow_losses(d, &losses, &count), NT_OK);
	assert_int_equal(count, 50000);
	nt_decoder_free(d);
	assert_int_equal(fa.live, 0);
	build_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gaps_of_version_4),
		cmocka_unit_test(a_thread_that_starts_at_1_again_is_a_new_one),
		cmocka_unit_test(gaps_of_version_6),
		cmocka_unit_test(number_0_comes_after_the_last_one),
		cmocka_unit_test(a_gap_inside_of_a_block),
		cmocka_unit_test(rows_of_metadata_have_no_place_in_the_numbers),
		cmocka_unit_test(a_point_says_how_far_a_thread_came),
		cmocka_unit_test(losses_are_told_before_the_point),
		cmocka_unit_test(a_thread_first_seen_in_a_point_counts_from_there),
		cmocka_unit_test(in_v6_a_declared_thread_may_have_lost_all_before_a_point),
		cmocka_unit_test(a_thread_that_is_not_listed_keeps_its_numbers),
		cmocka_unit_test(a_point_may_list_many_threads_or_none),
		cmocka_unit_test(points_have_times_like_events),
		cmocka_unit_test(a_point_cut_at_every_byte),
		cmocka_unit_test(hostile_counts_of_threads),
		cmocka_unit_test(losses_are_listed_most_first),
		cmocka_unit_test(the_list_can_be_asked_for_at_any_time),
		cmocka_unit_test(what_the_callbacks_answer_counts),
		cmocka_unit_test(losses_of_6000_threads_are_all_seen),
		cmocka_unit_test(beyond_65536_threads_the_known_ones_are_forgotten),
		cmocka_unit_test(forgotten_threads_let_their_waiting_events_go),
		cmocka_unit_test(a_refusal_while_threads_are_forgotten_counts),
		cmocka_unit_test(beyond_65536_losing_threads_the_others_are_one_row),
		cmocka_unit_test(a_long_list_of_losses_may_find_no_memory),
	};

	return cmocka_run_group_tests_name("block_sequence", tests, NULL, NULL);
}
