/* SPDX-License-Identifier: MIT */
/* The decoder as a whole: chunks, cuts, faults, memory, damage, and what its calls promise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failalloc.h"
#include "tests/support/sample.h"
#include "tests/support/tape.h"
#include "tests/support/trail.h"

static const unsigned formats[] = { 3, 4, 6 };

/* --- the samples themselves --- */

static void samples_are_sound(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (unsigned flags = 0; flags <= NT_TIME_ORDER; flags++) {
			struct build b = sample_stream(formats[i]);
			struct tape t = { 0 };

			tape_play(&t, &b, 0, flags);
			assert_int_equal(t.status, NT_OK);
			assert_true(t.stats.ended);
			assert_int_equal(t.stats.bad_definitions, 0);
			assert_true(t.stats.unknown_metadata > 0);
			assert_int_equal(t.stats.skipped_blocks, formats[i] == 3 ? 1 : 2);
			assert_int_equal(t.count, formats[i] == 3 ? 6 : 20);
			if (formats[i] != 3)
				assert_true(t.stats.lost > 0 && t.stats.unknown_stacks > 0);
		}
}

/* --- chunks and cuts --- */

static void every_chunk_size_gives_the_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (unsigned flags = 0; flags < 8; flags++) {
			struct build b = sample_stream(formats[i]);
			struct trail whole = { 0 };

			assert_int_equal(feed(b.bytes, b.count, 0, flags, &whole), NT_OK);
			for (size_t chunk = 1; chunk < b.count; chunk += chunk < 100 ? 1 : 13) {
				struct trail t = { 0 };

				assert_int_equal(feed(b.bytes, b.count, chunk, flags, &t), NT_OK);
				assert_true(t.hash == whole.hash);
				assert_memory_equal(&t.stats, &whole.stats, sizeof(t.stats));
			}
			build_done(&b);
		}
}

static void every_prefix_is_truncated_at_its_end(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct build b = sample_stream(formats[i]), copy = { 0 };
		static struct tape whole, t;

		build_bytes(&copy, b.bytes, b.count);
		memset(&whole, 0, sizeof(whole));
		tape_play(&whole, &copy, 0, 0);
		for (size_t cut = 0; cut < b.count; cut++) {
			size_t least = 0; /* events that another event follows */

			while (least + 1 < whole.count && whole.events[least + 1].offset <= cut)
				least++;
			build_bytes(&copy, b.bytes, cut);
			memset(&t, 0, sizeof(t));
			tape_play(&t, &copy, 0, 0);
			assert_int_equal(t.status, NT_ETRUNC);
			assert_int_equal(t.error.offset, cut);
			assert_int_equal(t.error.events_before, t.count);
			assert_true(t.count >= least && t.count <= least + 1);
			assert_memory_equal(t.log, whole.log, strlen(t.log));
			assert_true(t.stats.whole_bytes <= cut);
		}
		build_done(&b);
	}
}

static void every_prefix_gives_the_same_in_any_chunks(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct build b = sample_stream(formats[i]);

		for (size_t cut = 0; cut < b.count; cut += 3)
			for (unsigned flags = 0; flags <= NT_TIME_ORDER; flags++) {
				struct trail whole = { 0 }, t = { 0 };

				assert_int_equal(feed(b.bytes, cut, 0, flags, &whole), NT_ETRUNC);
				assert_int_equal(feed(b.bytes, cut, 7, flags, &t), NT_ETRUNC);
				assert_true(t.hash == whole.hash);
				assert_string_equal(t.message, whole.message);
			}
		build_done(&b);
	}
}

/* --- memory --- */

static void check_refused(const struct failalloc *fa, enum nt_status st, const struct trail *t)
{
	assert_int_equal(fa->live, 0);
	if (!fa->failed)
		return;
	assert_int_equal(st, NT_ENOMEM);
	if (t->error.code) /* else there was no decoder */
		assert_int_equal(t->error.code, NT_ENOMEM);
}

static void every_allocation_may_fail(void **state)
{
	(void)state;
	for (size_t i = 0; i < 12; i++) {
		struct build b = sample_stream(formats[i % 3]);
		unsigned flags = i / 3 % 2 ? NT_TIME_ORDER : 0;
		struct failalloc fa = { 0 };

		while (failalloc_next(&fa)) {
			struct trail t = { 0 };
			enum nt_status st;

			st = feed_with(&fa.alloc, NULL, b.bytes, b.count, i < 6 ? 0 : 11, flags,
				       &t);
			check_refused(&fa, st, &t);
			if (!fa.failed)
				assert_int_equal(st, NT_OK);
		}
		assert_true(fa.fail_at > 10);
		build_done(&b);
	}
}

/* While what waits is sent out after a cut, the cut is what is told. */
static void a_failure_behind_a_cut_leaves_the_cut(void **state)
{
	struct build b = sample_stream(4);
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct trail t = { 0 };
		enum nt_status st;

		st = feed_with(&fa.alloc, NULL, b.bytes, b.count * 2 / 3, 0, NT_TIME_ORDER, &t);
		assert_true(st == NT_ETRUNC || (fa.failed && st == NT_ENOMEM));
		if (t.error.code)
			assert_int_equal(t.error.code, st);
	}
	build_done(&b);
}

/* Every value of every limit: it is kept to, or told. */
static void every_limit_may_be_reached(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct build b = sample_stream(formats[i]);
		uint64_t reached = 0;

		for (size_t n = 1; n < 4000; n += n < 100 ? 1 : 37)
			for (size_t which = 0; which < 4; which++) {
				const struct nt_limits limits = {
					.max_block = which == 0 ? n : 0,
					.max_ids = which == 1 ? n : 0,
					.max_def_bytes = which == 2 ? n : 0,
					.max_stack_bytes = which == 3 ? n : 0,
				};
				struct trail t = { 0 };
				enum nt_status st = feed_with(NULL, &limits, b.bytes, b.count, 0,
							      NT_TIME_ORDER, &t);

				assert_true(st == NT_OK || st == NT_ELIMIT);
				assert_int_equal(t.error.code, st);
				reached += st == NT_ELIMIT;
			}
		assert_true(reached > 100);
		build_done(&b);
	}
}

static void every_cap_of_waiting_events_loses_none(void **state)
{
	(void)state;
	for (size_t n = 1; n < 10; n++) {
		const struct nt_limits limits = { .max_events_held = n };
		struct build b = sample_stream(4);
		struct trail t = { 0 };

		assert_int_equal(feed_with(NULL, &limits, b.bytes, b.count, 0, NT_TIME_ORDER, &t),
				 NT_OK);
		assert_int_equal(t.events, 20);
		assert_true(t.stats.late >= t.inversions);
		assert_int_equal(t.stats.late > 0, t.inversions > 0);
		build_done(&b);
	}
}

/* --- damage --- */

static uint64_t random_state;

static uint64_t next_random(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

/* Changes bytes, overwrites with telling numbers, cuts out, doubles. */
static void mutate(struct build *b)
{
	static const uint64_t numbers[] = {
		0,	    1,		0x7f,	    0x80,	0xffff,
		0x7fffffff, 0x80000000, 0xffffffff, UINT64_MAX, 0x808080808080
	};
	size_t times = 1 + next_random(4);

	while (times-- && b->count > 16) {
		size_t at = next_random(b->count - 8), n = 1 + next_random(8);

		switch (next_random(4)) {
		case 0:
			b->bytes[at] ^= (uint8_t)(1u << next_random(8));
			break;
		case 1:
			memcpy(b->bytes + at, &numbers[next_random(10)], n);
			break;
		case 2:
			memmove(b->bytes + at, b->bytes + at + n, b->count - at - n);
			b->count -= n;
			break;
		default:
			memmove(b->bytes + at, b->bytes + next_random(b->count - 8), n);
		}
	}
}

/* Whatever the bytes are: an outcome that says what and where, and the same in other chunks. */
static void check_damaged(const struct build *b, unsigned flags)
{
	const struct nt_limits limits = { .max_block = 1 << 20, .max_events_held = 8 };
	struct trail whole = { 0 }, t = { 0 };
	struct failalloc fa;
	enum nt_status st;

	failalloc_init(&fa, 0);
	st = feed_with(&fa.alloc, &limits, b->bytes, b->count, 0, flags, &whole);
	assert_int_equal(fa.live, 0);
	assert_true(fa.peak_bytes < 16 << 20);
	assert_true(st == NT_OK || st == NT_EFORMAT || st == NT_ETRUNC || st == NT_ELIMIT ||
		    st == NT_EVERSION);
	assert_int_equal(whole.error.code, st);
	if (st != NT_OK) {
		assert_true(whole.error.offset <= b->count);
		assert_true(whole.error.block_offset <= whole.error.offset);
		assert_non_null(whole.error.block);
	}
	assert_int_equal(
		feed_with(NULL, &limits, b->bytes, b->count, 1 + next_random(60), flags, &t), st);
	assert_true(t.hash == whole.hash);
	assert_string_equal(t.message, whole.message);
	whole.stats.bytes = t.stats.bytes; /* after a fault the rest need not be pushed */
	assert_memory_equal(&t.stats, &whole.stats, sizeof(t.stats));
}

static void damaged_samples(void **state)
{
	const char *more = getenv("DRD_LONG");
	uint64_t rounds = more && !strcmp(more, "1") ? 20000 : 700;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct build sample = sample_stream(formats[i]);

		for (uint64_t seed = 1; seed <= rounds; seed++) {
			struct build b = { 0 };

			random_state = seed * 0x9e3779b97f4a7c15u;
			build_bytes(&b, sample.bytes, sample.count);
			mutate(&b);
			check_damaged(&b, (unsigned)seed % 8);
			build_done(&b);
		}
		build_done(&sample);
	}
}

static void random_bytes_behind_a_good_start(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (uint64_t seed = 1; seed <= 200; seed++) {
			struct build b = build_new(formats[i]);
			size_t n = seed * 3;

			random_state = seed * 0x9e3779b97f4a7c15u;
			while (n--)
				build_u8(&b, (unsigned)next_random(256));
			check_damaged(&b, (unsigned)seed % 8);
			build_done(&b);
		}
}

/* --- what the calls promise --- */

static void a_decoder_that_was_never_fed(void **state)
{
	struct tape t = { 0 };
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, 0, &tape_sink, &t);

	(void)state;
	assert_non_null(d);
	assert_null(nt_decoder_borrow_error(d));
	assert_null(nt_decoder_borrow_trace(d));
	assert_int_equal(nt_decoder_borrow_stats(d)->bytes, 0);
	assert_int_equal(nt_decoder_push(d, NULL, 0), NT_OK);
	assert_int_equal(nt_decoder_finish(d), NT_ETRUNC);
	assert_int_equal(nt_decoder_finish(d), NT_ETRUNC);
	assert_string_equal(nt_decoder_borrow_error(d)->what, "the stream is empty");
	assert_string_equal(nt_decoder_borrow_error(d)->block, "header");
	assert_null(nt_decoder_free(d));
	assert_null(nt_decoder_free(NULL));
}

static void pushes_of_no_bytes_change_nothing(void **state)
{
	struct build b = sample_stream(4);
	struct trail whole = { 0 }, t = { 0 };
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, 0, &trail_sink, &t);

	(void)state;
	assert_int_equal(feed(b.bytes, b.count, 0, 0, &whole), NT_OK);
	t.hash = 0xcbf29ce484222325u; /* as feed() begins */
	for (size_t i = 0; i < b.count; i++) {
		assert_int_equal(nt_decoder_push(d, NULL, 0), NT_OK);
		assert_int_equal(nt_decoder_push(d, b.bytes + i, 1), NT_OK);
	}
	assert_int_equal(nt_decoder_push(d, b.bytes, 0), NT_OK);
	assert_int_equal(nt_decoder_finish(d), NT_OK);
	assert_int_equal(nt_decoder_finish(d), NT_OK);
	assert_true(t.hash == whole.hash);
	nt_decoder_free(d);
	build_done(&b);
}

static void a_fault_sticks(void **state)
{
	struct build b = build_new(4);
	struct tape t = { 0 };
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, 0, &tape_sink, &t);
	struct nt_error first;

	(void)state;
	build_u8(&b, 99);
	assert_int_equal(nt_decoder_push(d, b.bytes, b.count), NT_EFORMAT);
	first = *nt_decoder_borrow_error(d);
	assert_int_equal(first.offset, b.count - 1);
	assert_int_equal(nt_decoder_push(d, b.bytes, b.count), NT_EFORMAT);
	assert_int_equal(nt_decoder_push(d, NULL, 0), NT_EFORMAT);
	assert_int_equal(nt_decoder_finish(d), NT_EFORMAT);
	assert_int_equal(nt_decoder_abort(d, NT_ESINK, "something else"), NT_EFORMAT);
	assert_memory_equal(nt_decoder_borrow_error(d), &first, sizeof(first));
	assert_int_equal(nt_decoder_borrow_stats(d)->bytes, b.count);
	nt_decoder_free(d);
	build_done(&b);
}

static void the_trace_can_be_borrowed_once_it_was_read(void **state)
{
	struct build b = build_new(4);
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, 0, &tape_sink, &(struct tape){ 0 });
	size_t body_end = 53 + 48;

	(void)state;
	assert_int_equal(nt_decoder_push(d, b.bytes, body_end - 1), NT_OK);
	assert_null(nt_decoder_borrow_trace(d));
	assert_int_equal(nt_decoder_push(d, b.bytes + body_end - 1, 1), NT_OK);
	assert_non_null(nt_decoder_borrow_trace(d));
	assert_int_equal(nt_decoder_borrow_trace(d)->process_id, 42);
	nt_decoder_free(d);
	build_done(&b);
}

static void a_sink_needs_no_callbacks(void **state)
{
	static const struct nt_sink none = { 0 };

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		struct build b = sample_stream(formats[i % 3]);
		struct nt_decoder *d =
			nt_decoder_new(NULL, NULL, i < 3 ? 0 : NT_TIME_ORDER, &none, NULL);

		assert_int_equal(nt_decoder_push(d, b.bytes, b.count), NT_OK);
		assert_int_equal(nt_decoder_finish(d), NT_OK);
		assert_int_equal(nt_decoder_borrow_stats(d)->events, i % 3 ? 20 : 6);
		nt_decoder_free(d);
		build_done(&b);
	}
}

static void a_sink_can_stop_at_any_event(void **state)
{
	(void)state;
	for (size_t i = 0; i < 6; i++) {
		struct build b = sample_stream(formats[i / 2]);
		unsigned flags = i % 2 ? NT_TIME_ORDER : 0;
		struct trail whole = { 0 };

		assert_int_equal(feed(b.bytes, b.count, 0, flags, &whole), NT_OK);
		for (uint64_t n = 1; n <= whole.events; n++) {
			struct trail t = { .stop_after = n };
			struct nt_decoder *d = nt_decoder_new(NULL, NULL, flags, &trail_sink, &t);
			enum nt_status st = nt_decoder_push(d, b.bytes, b.count);

			if (st == NT_OK) /* it waited for the end */
				st = nt_decoder_finish(d);
			assert_int_equal(st, NT_STOPPED);
			assert_int_equal(nt_decoder_push(d, b.bytes, b.count), NT_STOPPED);
			assert_int_equal(nt_decoder_finish(d), NT_STOPPED);
			assert_null(nt_decoder_borrow_error(d));
			assert_int_equal(t.events, n);
			assert_memory_equal(t.text, whole.text, t.used);
			nt_decoder_free(d);
		}
		build_done(&b);
	}
}

static void a_sinks_failure_is_the_decoders(void **state)
{
	static const char *const callbacks[] = { "trace", "define", "event", "point", "lost" };

	(void)state;
	for (size_t i = 0; i < 10; i++) {
		struct build b = sample_stream(i < 5 ? 4 : 6);
		struct tape t = { .refuse = callbacks[i % 5], .refusal = NT_ESINK };

		tape_play(&t, &b, 0, NT_TIME_ORDER);
		assert_int_equal(t.status, NT_ESINK);
		assert_int_equal(t.error.code, NT_ESINK);
		assert_string_equal(t.error.what, "a consumer of events failed");
		assert_non_null(t.error.block);
	}
}

/* --- abort --- */

static void an_abort_is_like_a_cut_with_another_reason(void **state)
{
	struct build b = sample_stream(4);

	(void)state;
	for (size_t cut = 0; cut < b.count; cut++) {
		struct trail want = { 0 }, t = { 0 };
		struct nt_decoder *d = nt_decoder_new(NULL, NULL, NT_TIME_ORDER, &trail_sink, &t);
		const struct nt_error *err;

		assert_int_equal(feed(b.bytes, cut, 0, NT_TIME_ORDER, &want), NT_ETRUNC);
		t.hash = 0xcbf29ce484222325u;
		assert_int_equal(nt_decoder_push(d, b.bytes, cut), NT_OK);
		assert_int_equal(nt_decoder_abort(d, NT_EFORMAT, "damaged zstd frame"), NT_EFORMAT);
		err = nt_decoder_borrow_error(d);
		assert_int_equal(err->code, NT_EFORMAT);
		assert_string_equal(err->what, "damaged zstd frame");
		assert_int_equal(err->offset, cut);
		assert_int_equal(err->events_before, want.events);
		assert_true(t.hash == want.hash);
		assert_int_equal(nt_decoder_finish(d), NT_EFORMAT);
		assert_int_equal(nt_decoder_push(d, b.bytes, 1), NT_EFORMAT);
		assert_string_equal(nt_decoder_borrow_error(d)->what, "damaged zstd frame");
		nt_decoder_free(d);
	}
	build_done(&b);
}

static void an_abort_behind_the_end_counts_too(void **state)
{
	struct build b = sample_stream(4);
	struct trail t = { 0 };
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, 0, &trail_sink, &t);

	(void)state;
	assert_int_equal(nt_decoder_push(d, b.bytes, b.count), NT_OK);
	assert_int_equal(nt_decoder_abort(d, NT_ESINK, "read error"), NT_ESINK);
	assert_int_equal(nt_decoder_borrow_error(d)->offset, b.count);
	assert_true(nt_decoder_borrow_stats(d)->ended);
	nt_decoder_free(d);
	build_done(&b);
}

/* --- streams beyond 4 GiB --- */

static void add_skipped(struct build *b, unsigned format, size_t bytes)
{
	struct build content = { 0 };

	build_repeat(&content, 0, bytes);
	if (format == 6)
		build_block6(b, 200, &content);
	else
		build_object(b, 4, "LaterBlock", &content);
}

static void push_ok(struct nt_decoder *d, const uint8_t *bytes, size_t count)
{
	assert_int_equal(nt_decoder_push(d, bytes, count), NT_OK);
}

/*
 * A skipped block of 16 MiB, sent again and again, then an event and a fault behind it.  Objects of
 * V4 are aligned from the start of the stream: behind one whose size is a multiple of 4 another
 * such one takes a multiple of 4 bytes.
 */
static void offsets_have_64_bits(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		struct build b = build_new(format);
		struct tape *t = calloc(1, sizeof(*t));
		struct nt_decoder *d = nt_decoder_new(NULL, NULL, 0, &tape_sink, t);
		size_t start, skip;
		uint64_t total;

		build_hi(&b, format);
		add_skipped(&b, format, 4);
		push_ok(d, b.bytes, b.count);
		start = b.count;
		add_skipped(&b, format, 0xfffff0);
		skip = b.count - start;
		while (nt_decoder_borrow_stats(d)->bytes <= UINT32_MAX)
			push_ok(d, b.bytes + start, skip); /* in place: no byte is looked at */
		total = nt_decoder_borrow_stats(d)->bytes;
		assert_int_equal((total - start) % 4, 0);
		b.count = start;
		build_event(&b, format, 5, 1);
		build_u32(&b, 0x01ffffff); /* a wrong tag, a second trace */
		assert_int_equal(nt_decoder_push(d, b.bytes + start, b.count - start), NT_EFORMAT);
		assert_int_equal(t->count, 1);
		assert_true(t->events[0].offset > UINT32_MAX);
		assert_int_equal(nt_decoder_borrow_error(d)->offset, total + b.count - start - 4);
		nt_decoder_free(d);
		build_done(&b);
		free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_are_sound),
		cmocka_unit_test(every_chunk_size_gives_the_same),
		cmocka_unit_test(every_prefix_is_truncated_at_its_end),
		cmocka_unit_test(every_prefix_gives_the_same_in_any_chunks),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(a_failure_behind_a_cut_leaves_the_cut),
		cmocka_unit_test(every_limit_may_be_reached),
		cmocka_unit_test(every_cap_of_waiting_events_loses_none),
		cmocka_unit_test(damaged_samples),
		cmocka_unit_test(random_bytes_behind_a_good_start),
		cmocka_unit_test(a_decoder_that_was_never_fed),
		cmocka_unit_test(pushes_of_no_bytes_change_nothing),
		cmocka_unit_test(a_fault_sticks),
		cmocka_unit_test(the_trace_can_be_borrowed_once_it_was_read),
		cmocka_unit_test(a_sink_needs_no_callbacks),
		cmocka_unit_test(a_sink_can_stop_at_any_event),
		cmocka_unit_test(a_sinks_failure_is_the_decoders),
		cmocka_unit_test(an_abort_is_like_a_cut_with_another_reason),
		cmocka_unit_test(an_abort_behind_the_end_counts_too),
		cmocka_unit_test(offsets_have_64_bits),
	};

	return cmocka_run_group_tests_name("decoder", tests, NULL, NULL);
}
