/* SPDX-License-Identifier: MIT */
/* Time order from sorted and unsorted rows, and what happens when too many have to wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failalloc.h"
#include "tests/support/tape.h"
#include "tests/support/trail.h"

/* An event of the tests below; time 0 ends a list. */
struct ev {
	uint64_t thread, time;
	bool unsorted;
};

/* Adds a row to a block whose last row was at *last; all have number 1, so none are lost. */
static void add(struct build *rows, unsigned format, const struct ev *e, uint64_t *last)
{
	const struct build_row r = {
		.metadata_id = 1,
		.sequence_delta = *last ? UINT32_MAX : 0,
		.capture = e->thread,
		.thread = e->thread,
		.ticks_delta = e->time - *last, /* may wrap around */
		.unsorted = e->unsorted,
		.payload = &e->thread,
		.payload_bytes = 1,
	};

	build_row(rows, format == 6, &r);
	*last = e->time;
}

static void block(struct build *b, unsigned format, const struct ev *list)
{
	struct build rows = { 0 };
	uint64_t last = 0;

	for (; list->time; list++)
		add(&rows, format, list, &last);
	build_rows(b, format, &rows);
}

static struct build begun(unsigned format)
{
	struct build b = build_new(format);

	build_hi(&b, format);
	return b;
}

static void point(struct build *b, unsigned format, uint64_t ticks)
{
	struct build content = { 0 };

	if (format == 6) {
		build_sequence_point6(&content, ticks, 0, NULL, NULL, 0);
		build_block6(b, KIND6_SEQUENCE, &content);
		return;
	}
	build_sequence_point(&content, ticks, NULL, NULL, 0);
	build_object(b, 4, "SPBlock", &content);
}

static void expect(struct build *b, unsigned format, const char *log)
{
	struct tape t = { 0 };

	build_close(b, format);
	tape_play(&t, b, 0, NT_TIME_ORDER);
	assert_int_equal(t.status, NT_OK);
	assert_string_equal(t.log, log);
	assert_int_equal(t.stats.late, 0);
}

/* --- what is released when --- */

static void unsorted_events_wait_for_a_later_sorted_one(void **state)
{
	static const struct ev first[] = {
		{ 1, 10, false }, { 1, 40, true }, { 2, 20, false }, { 2, 30, true }, { 0 }
	};
	static const struct ev second[] = { { 1, 50, false }, { 0 } };

	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		struct build b = begun(format);

		block(&b, format, first);
		block(&b, format, second);
		expect(&b, format, "trace define:Hi Hi@10 Hi@20 Hi@30 Hi@40 Hi@50");
	}
}

static void they_wait_across_blocks(void **state)
{
	static const struct ev blocks[][4] = {
		{ { 1, 10, false }, { 1, 70, true }, { 0 } },
		{ { 1, 90, true }, { 0 } }, /* begins unsorted: a run cut at a block's limit */
		{ { 2, 20, false }, { 2, 60, true }, { 2, 80, true }, { 0 } },
		{ { 3, 65, false }, { 0 } },
		{ { 3, 100, false }, { 0 } },
	};
	struct build b = begun(4);

	(void)state;
	for (size_t i = 0; i < 5; i++)
		block(&b, 4, blocks[i]);
	expect(&b, 4, "trace define:Hi Hi@10 Hi@20 Hi@60 Hi@65 Hi@70 Hi@80 Hi@90 Hi@100");
}

static void a_sorted_event_goes_before_waiting_ones_of_its_time(void **state)
{
	static const struct ev list[] = {
		{ 1, 10, false }, { 1, 20, true }, { 2, 20, false }, { 2, 30, false }, { 0 }
	};
	struct build b = begun(4);
	struct tape t = { 0 };

	(void)state;
	block(&b, 4, list);
	build_end(&b);
	tape_play(&t, &b, 0, NT_TIME_ORDER);
	assert_string_equal(t.log, "trace define:Hi Hi@10 Hi@20 Hi@20 Hi@30");
	assert_int_equal(t.events[1].thread_id, 2);
	assert_int_equal(t.events[2].thread_id, 1);
	assert_int_equal(t.stats.late, 0);
}

static void equal_times_of_one_thread_stay_as_in_the_file(void **state)
{
	struct build b = begun(4), rows = { 0 };
	struct tape t = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 40; i++) {
		const struct build_row r = {
			.metadata_id = 1,
			.capture = i % 2,
			.thread = i,
			.ticks_delta = i ? 0 : 500,
			.unsorted = true,
		};

		build_row(&rows, false, &r);
	}
	build_rows(&b, 4, &rows);
	build_end(&b);
	tape_play(&t, &b, 0, NT_TIME_ORDER);
	assert_int_equal(t.count, 40);
	/* Between capture threads there is no order, but within each there is. */
	for (size_t i = 0; i < 40; i++)
		for (size_t k = i + 1; k < 40; k++)
			if (t.events[i].capture_thread_id == t.events[k].capture_thread_id)
				assert_true(t.events[i].thread_id < t.events[k].thread_id);
}

static void a_sequence_point_releases_all(void **state)
{
	static const struct ev before[] = { { 1, 30, true }, { 2, 20, true }, { 0 } };
	static const struct ev behind[] = { { 1, 50, true }, { 2, 40, true }, { 0 } };

	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		struct build b = begun(format);

		block(&b, format, before);
		point(&b, format, 1035);
		block(&b, format, behind);
		expect(&b, format, "trace define:Hi Hi@20 Hi@30 point@35 Hi@40 Hi@50");
	}
}

static void the_end_releases_all(void **state)
{
	static const struct ev list[] = {
		{ 1, 30, true }, { 2, 20, true }, { 3, 25, true }, { 0 }
	};

	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		struct build b = begun(format);

		block(&b, format, list);
		expect(&b, format, "trace define:Hi Hi@20 Hi@25 Hi@30");
	}
}

static void a_fault_releases_what_came_before_it(void **state)
{
	static const struct ev list[] = { { 1, 30, true }, { 2, 20, true }, { 0 } };
	struct build b = begun(4);
	struct tape t = { 0 };
	size_t fault;

	(void)state;
	block(&b, 4, list);
	fault = b.count;
	build_u8(&b, 99);
	tape_play(&t, &b, 0, NT_TIME_ORDER);
	assert_int_equal(t.status, NT_EFORMAT);
	assert_int_equal(t.error.offset, fault);
	assert_string_equal(t.error.what, "object begins with a wrong tag");
	assert_string_equal(t.log, "trace define:Hi Hi@20 Hi@30");
	assert_int_equal(t.error.events_before, 2);
}

static void without_the_flag_events_come_as_in_the_file(void **state)
{
	static const struct ev list[] = {
		{ 1, 30, true }, { 2, 20, true }, { 3, 25, false }, { 1, 5, true }, { 0 }
	};
	struct build b = begun(4);
	struct tape t = { 0 };

	(void)state;
	block(&b, 4, list);
	build_end(&b);
	tape_play(&t, &b, 0, 0);
	assert_string_equal(t.log, "trace define:Hi Hi@30 Hi@20 Hi@25 Hi@5");
	assert_int_equal(t.stats.late, 0);
}

static void times_are_compared_without_sign(void **state)
{
	static const struct ev list[] = { { 1, UINT64_MAX, true },
					  { 2, INT64_MAX, true },
					  { 3, (uint64_t)1 << 63, true },
					  { 4, 1, true },
					  { 0 } };
	struct build b = begun(4);

	(void)state;
	block(&b, 4, list);
	expect(&b, 4,
	       "trace define:Hi Hi@1 Hi@9223372036854775807 Hi@9223372036854775808 "
	       "Hi@18446744073709551615");
}

/* --- caps --- */

static void a_cap_of_events_lets_the_oldest_go(void **state)
{
	static const struct ev list[] = { { 1, 50, true },
					  { 1, 60, true },
					  { 2, 20, true }, /* 3 wait */
					  { 2, 70, true }, /* 20 goes */
					  { 3, 10, true }, /* 50 goes */
					  { 3, 80, true }, /* 10 goes, too late */
					  { 0 } };
	const struct nt_limits limits = { .max_events_held = 3 };
	struct build b = begun(4);
	struct tape t = { 0 };

	(void)state;
	block(&b, 4, list);
	build_end(&b);
	tape_play_with(&t, &b, 0, NT_TIME_ORDER, &limits);
	assert_int_equal(t.status, NT_OK);
	assert_string_equal(t.log, "trace define:Hi Hi@20 Hi@50 Hi@10 Hi@60 Hi@70 Hi@80");
	assert_int_equal(t.stats.late, 1);
	assert_int_equal(t.stats.events, 6);
}

static void a_sorted_event_older_than_what_went_is_late(void **state)
{
	static const struct ev list[] = {
		{ 1, 50, true }, { 1, 60, true }, { 2, 20, false }, { 2, 70, false }, { 0 }
	};
	const struct nt_limits limits = { .max_events_held = 1 };
	struct build b = begun(4);
	struct tape t = { 0 };

	(void)state;
	block(&b, 4, list);
	build_end(&b);
	tape_play_with(&t, &b, 0, NT_TIME_ORDER, &limits);
	assert_string_equal(t.log, "trace define:Hi Hi@50 Hi@20 Hi@60 Hi@70");
	assert_int_equal(t.stats.late, 1);
}

/* A stream of unsorted events of equal size, in the order of time. */
static struct build stream_of(size_t count, size_t payload)
{
	struct build b = begun(4);
	uint8_t *zeros = calloc(1, payload ? payload : 1);

	for (size_t done = 0; done < count;) {
		struct build rows = { 0 };

		for (size_t i = 0; i < 1000 && done < count; i++, done++) {
			const struct build_row r = {
				.metadata_id = 1,
				.capture = done % 7,
				.ticks_delta = i ? 1 : 1 + done,
				.unsorted = true,
				.payload = zeros,
				.payload_bytes = payload,
			};

			build_row(&rows, false, &r);
		}
		build_rows(&b, 4, &rows);
	}
	free(zeros);
	build_end(&b);
	return b;
}

static void without_a_sorted_event_memory_stays_bounded(void **state)
{
	static const struct {
		size_t events, bytes;
	} caps[] = { { 1000, 0 }, { 0, 1 << 20 }, { 0, 1 } };

	(void)state;
	for (size_t payload = 0; payload <= 200; payload += 100)
		for (size_t i = 0; i < 3; i++) {
			const struct nt_limits limits = {
				.max_events_held = caps[i].events,
				.max_bytes_held = caps[i].bytes,
			};
			struct build b = stream_of(20000, payload);
			struct trail t = { 0 };
			struct failalloc fa;

			failalloc_init(&fa, 0);
			assert_int_equal(feed_with(&fa.alloc, &limits, b.bytes, b.count, 5000,
						   NT_TIME_ORDER, &t),
					 NT_OK);
			assert_int_equal(t.events, 20000);
			assert_int_equal(t.inversions, 0);
			assert_int_equal(t.stats.late, 0);
			/* The queue, one block of 1000 rows, and what else a decoder needs. */
			assert_true(fa.peak_bytes < (1 << 20) + 700000);
			assert_int_equal(fa.live, 0);
			build_done(&b);
		}
}

static void payloads_larger_than_a_page_of_the_queue(void **state)
{
	static const size_t sizes[] = { 65535, 65536, 70000, 200000 };
	struct build b = begun(4), rows = { 0 };
	struct trail ordered = { 0 }, plain = { 0 };
	uint8_t *bytes = malloc(200000);

	(void)state;
	for (size_t i = 0; i < 200000; i++)
		bytes[i] = (uint8_t)(i * 7);
	for (size_t i = 0; i < 24; i++) {
		const struct build_row r = {
			.metadata_id = 1,
			.capture = 1,
			.ticks_delta = 1,
			.unsorted = i % 5 != 0,
			.payload = bytes,
			.payload_bytes = i % 2 ? sizes[i % 4] : i,
		};

		build_row(&rows, false, &r);
	}
	build_rows(&b, 4, &rows);
	build_end(&b);
	assert_int_equal(feed(b.bytes, b.count, 4096, NT_TIME_ORDER, &ordered), NT_OK);
	assert_int_equal(feed(b.bytes, b.count, 4096, 0, &plain), NT_OK);
	assert_true(ordered.hash == plain.hash); /* it was in order already */
	build_done(&b);
	free(bytes);
}

/* --- any legal stream comes out in order --- */

enum { EVENTS = 3000, THREADS = 9 };

static uint32_t seed;

static uint32_t next_random(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

static void put_run(struct build *rows, const struct ev *all, size_t from, size_t to,
		    uint64_t thread, uint64_t *last)
{
	bool unsorted = false;

	for (size_t i = from; i < to; i++) {
		struct ev e = all[i];

		if (e.thread != thread)
			continue;
		e.unsorted = unsorted;
		add(rows, 4, &e, last);
		unsorted = true;
	}
}

/*
 * As the runtime writes them: time is cut into windows, and of each window the threads' runs follow
 * each other by their first event, which is sorted.  Blocks are cut anywhere.
 */
static void put_window(struct build *b, const struct ev *all, size_t from, size_t to)
{
	bool done[THREADS] = { false };
	struct build rows = { 0 };
	uint64_t last = 0;

	for (size_t i = from; i < to; i++) {
		if (done[all[i].thread])
			continue;
		done[all[i].thread] = true;
		put_run(&rows, all, from, to, all[i].thread, &last);
		if (next_random(3) == 0) {
			build_rows(b, 4, &rows);
			last = 0;
		}
	}
	build_rows(b, 4, &rows);
}

static struct build random_stream(uint64_t *times)
{
	static struct ev all[EVENTS];
	struct build b = begun(4);
	uint64_t time = 1;

	for (size_t i = 0; i < EVENTS; i++) {
		time += 1 + next_random(50);
		times[i] = time;
		all[i] = (struct ev){ .thread = next_random(THREADS), .time = time };
	}
	for (size_t from = 0; from < EVENTS;) {
		size_t to = from + 1 + next_random(200);

		to = to < EVENTS ? to : EVENTS;
		put_window(&b, all, from, to);
		if (next_random(4) == 0)
			point(&b, 4, times[to - 1] + 1);
		from = to;
	}
	build_end(&b);
	return b;
}

static uint64_t *expected;
static size_t seen;

static enum nt_status compare(void *ctx, const struct nt_event *ev)
{
	(void)ctx;
	assert_true(seen < EVENTS);
	assert_int_equal(ev->ticks, expected[seen]);
	assert_int_equal(ev->payload[0], ev->thread_id);
	seen++;
	return NT_OK;
}

static void any_legal_stream_comes_out_in_order(void **state)
{
	static const struct nt_sink sink = { .event = compare };
	static uint64_t times[EVENTS];

	(void)state;
	expected = times;
	for (seed = 1; seed < 400; seed += 37) {
		struct build b = random_stream(times);
		struct nt_decoder *d = nt_decoder_new(NULL, NULL, NT_TIME_ORDER, &sink, NULL);

		seen = 0;
		assert_int_equal(nt_decoder_push(d, b.bytes, b.count), NT_OK);
		assert_int_equal(nt_decoder_finish(d), NT_OK);
		assert_int_equal(seen, EVENTS);
		assert_int_equal(nt_decoder_borrow_stats(d)->late, 0);
		nt_decoder_free(d);
		build_done(&b);
	}
}

/* --- callbacks --- */

static void a_refusal_while_events_are_released_counts(void **state)
{
	static const enum nt_status answers[] = { NT_STOPPED, NT_ESINK, NT_ENOMEM };
	static const struct ev waiting[] = {
		{ 1, 10, true }, { 1, 20, true }, { 2, 15, true }, { 0 }
	};
	static const struct ev release[] = { { 2, 30, false }, { 0 } };

	(void)state;
	for (size_t how = 0; how < 4; how++) /* by an event, a point, the end, a cut */
		for (size_t i = 0; i < 3; i++) {
			struct build b = begun(4);
			struct tape t = { .refuse = "event", .skip = 1, .refusal = answers[i] };

			block(&b, 4, waiting);
			if (how == 0)
				block(&b, 4, release);
			else if (how == 1)
				point(&b, 4, 30);
			if (how < 3)
				build_end(&b);
			tape_play(&t, &b, 0, NT_TIME_ORDER);
			assert_string_equal(t.log, "trace define:Hi Hi@10 Hi@15");
			if (how == 3) { /* the cut came first */
				assert_int_equal(t.status, NT_ETRUNC);
				assert_int_equal(t.error.code, NT_ETRUNC);
				continue;
			}
			assert_int_equal(t.status, answers[i]);
			assert_int_equal(t.error.code, answers[i] < 0 ? answers[i] : NT_OK);
		}
}

/* --- what need not wait --- */

static bool is_hi(void *ctx, const struct nt_event_def *def)
{
	(void)ctx;
	return strcmp(def->name, "Hi") == 0;
}

static enum nt_status note(void *ctx, const struct nt_event *ev)
{
	char *text = ctx;
	size_t used = strlen(text);

	snprintf(text + used, 128 - used, "%s@%d ", ev->def->name, (int)ev->ticks);
	return NT_OK;
}

/* They come at once, and the others in their order all the same, none of them late. */
static void what_may_come_at_any_time_does_not_wait(void **state)
{
	static const struct nt_sink sink = { .event = note, .any_time = is_hi };
	static const struct {
		uint32_t id;
		uint64_t thread, time;
		bool unsorted;
	} list[] = {
		{ 2, 1, 10, false }, { 2, 1, 40, true },  { 1, 1, 90, true },  { 1, 2, 20, true },
		{ 2, 2, 30, true },  { 1, 3, 35, false }, { 2, 3, 50, false },
	};
	struct build b = begun(4), rows = { 0 }, more = { 0 };
	struct nt_decoder *d;
	char text[128] = "";
	uint64_t last = 0;

	(void)state;
	build_rows_header(&more, 1);
	build_definition(&more, 2, "Demo", 8, "Ho");
	build_object(&b, 4, "MetadataBlock", &more);
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		const struct build_row r = {
			.metadata_id = list[i].id,
			.sequence_delta = last ? UINT32_MAX : 0,
			.capture = list[i].thread,
			.thread = list[i].thread,
			.ticks_delta = list[i].time - last,
			.unsorted = list[i].unsorted,
		};

		build_row(&rows, false, &r);
		last = list[i].time;
	}
	build_rows(&b, 4, &rows);
	build_end(&b);
	d = nt_decoder_new(NULL, NULL, NT_TIME_ORDER, &sink, text);
	assert_non_null(d);
	assert_int_equal(nt_decoder_push(d, b.bytes, b.count), NT_OK);
	assert_int_equal(nt_decoder_finish(d), NT_OK);
	/* A sorted one says what it says of the others' time, whether it waits itself or not. */
	assert_string_equal(text, "Ho@10 Hi@90 Hi@20 Ho@30 Hi@35 Ho@40 Ho@50 ");
	assert_int_equal(nt_decoder_borrow_stats(d)->late, 0);
	assert_int_equal(nt_decoder_borrow_stats(d)->events, 7);
	nt_decoder_free(d);
	build_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unsorted_events_wait_for_a_later_sorted_one),
		cmocka_unit_test(they_wait_across_blocks),
		cmocka_unit_test(a_sorted_event_goes_before_waiting_ones_of_its_time),
		cmocka_unit_test(equal_times_of_one_thread_stay_as_in_the_file),
		cmocka_unit_test(a_sequence_point_releases_all),
		cmocka_unit_test(the_end_releases_all),
		cmocka_unit_test(a_fault_releases_what_came_before_it),
		cmocka_unit_test(without_the_flag_events_come_as_in_the_file),
		cmocka_unit_test(times_are_compared_without_sign),
		cmocka_unit_test(a_cap_of_events_lets_the_oldest_go),
		cmocka_unit_test(a_sorted_event_older_than_what_went_is_late),
		cmocka_unit_test(without_a_sorted_event_memory_stays_bounded),
		cmocka_unit_test(payloads_larger_than_a_page_of_the_queue),
		cmocka_unit_test(any_legal_stream_comes_out_in_order),
		cmocka_unit_test(a_refusal_while_events_are_released_counts),
		cmocka_unit_test(what_may_come_at_any_time_does_not_wait),
	};

	return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
