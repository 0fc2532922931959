/* SPDX-License-Identifier: MIT */
/* The two worked examples of the format's description, value by value, in chunks and cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/fixture.h"
#include "tests/support/tape.h"
#include "tests/support/trail.h"

static const int64_t start_ns = 1705320000250000000; /* 2024-01-15 12:00:00.250 UTC */

static struct build example(const char *name, size_t size)
{
	struct build b = { 0 };
	size_t count;
	uint8_t *bytes = fixture_read(name, &count);

	assert_non_null(bytes);
	assert_int_equal(count, size);
	build_bytes(&b, bytes, count);
	free(bytes);
	return b;
}

static struct build example_v4(void)
{
	return example("synthetic-v4.nettrace", 470);
}

static struct build example_v6(void)
{
	return example("synthetic-v6.nettrace", 246);
}

/* --- version 4 --- */

static void v4_events_come_in_order_and_losses_before_the_point(void **state)
{
	struct build b = example_v4();
	struct tape t = { 0 };

	(void)state;
	tape_play(&t, &b, 0, NT_TIME_ORDER);
	assert_int_equal(t.status, NT_OK);
	assert_string_equal(t.log,
			    "trace define:Hi Hi@2000 Hi@2100 Hi@2300 lost:42=2@2000 point@2000");
	assert_int_equal(t.stats.lost, 2);
	assert_int_equal(t.loss_count, 1);
	assert_int_equal(t.losses[0].thread_id, 42);
	assert_int_equal(t.losses[0].lost, 2);
	assert_int_equal(t.stats.blocks, 5);
	assert_int_equal(t.stats.bytes, 470);
	assert_int_equal(t.stats.whole_bytes, 470);
	assert_int_equal(t.stats.late, 0);
	assert_int_equal(t.stats.inconsistent, 0);
	assert_true(t.stats.ended);
}

static void v4_without_order_events_come_as_in_the_file(void **state)
{
	struct build b = example_v4();
	struct tape t = { 0 };

	(void)state;
	tape_play(&t, &b, 0, 0);
	assert_string_equal(t.log,
			    "trace define:Hi Hi@2000 Hi@2300 Hi@2100 lost:42=2@2000 point@2000");
}

static void v4_trace(void **state)
{
	struct build b = example_v4();
	struct tape t = { 0 };

	(void)state;
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.trace.format, 4);
	assert_true(t.trace.wall_clock_known);
	assert_true(t.trace.start_unix_ns == start_ns);
	assert_int_equal(t.trace.sync_ticks, 1000);
	assert_int_equal(t.trace.ticks_per_second, 1000000000);
	assert_int_equal(t.trace.pointer_size, 8);
	assert_int_equal(t.trace.process_id, 42);
	assert_int_equal(t.trace.processors, 4);
	assert_int_equal(t.trace.sample_interval_ns, 1000000);
	assert_string_equal(t.defs, "Demo/7 Hi l4 k1 v0 o11 {n:9}\n");
}

static void assert_payload_i32(const struct tape_event *e, int32_t value)
{
	struct build b = { 0 };

	build_u32(&b, (uint32_t)value);
	assert_int_equal(e->payload_bytes, 4);
	assert_memory_equal(e->payload, b.bytes, 4);
	build_done(&b);
}

static void v4_first_event(void **state)
{
	struct build b = example_v4();
	struct tape t = { 0 };
	const struct tape_event *e = &t.events[0];

	(void)state;
	tape_play(&t, &b, 0, 0);
	assert_string_equal(e->provider, "Demo");
	assert_string_equal(e->name, "Hi");
	assert_int_equal(e->event_id, 7);
	assert_int_equal(e->metadata_id, 1);
	assert_true(e->defined);
	assert_int_equal(e->layout, NT_LAYOUT_METADATA);
	assert_int_equal(e->opcode, 11);
	assert_int_equal(e->level, 4);
	assert_int_equal(e->keywords, 1);
	assert_int_equal(e->ticks, 2000);
	assert_int_equal(e->time_ns, 1000); /* 12:00:00.250001 */
	assert_int_equal(e->thread_id, 42);
	assert_int_equal(e->capture_thread_id, 42);
	assert_int_equal(e->process_id, 42);
	assert_false(e->has_thread_name);
	assert_int_equal(e->processor, UINT32_MAX);
	assert_int_equal(e->stack_id, 2);
	assert_int_equal(e->frame_count, 2);
	assert_true(e->stack[0] == 0x7f0000001000 && e->stack[1] == 0x7f0000002000);
	assert_payload_i32(e, 5);
	assert_int_equal(e->offset, 0x15c);
}

static void v4_second_event_keeps_what_its_header_leaves_out(void **state)
{
	struct build b = example_v4();
	struct tape t = { 0 };
	const struct tape_event *e = &t.events[1];

	(void)state;
	tape_play(&t, &b, 0, 0);
	assert_int_equal(e->ticks, 2300);
	assert_int_equal(e->thread_id, 42);
	assert_int_equal(e->capture_thread_id, 42);
	assert_int_equal(e->stack_id, 2);
	assert_int_equal(e->frame_count, 2);
	assert_payload_i32(e, 6);
	assert_int_equal(e->offset, 0x16e);
}

static void v4_third_event_goes_back_in_time_and_number(void **state)
{
	struct build b = example_v4();
	struct tape t = { 0 };
	const struct tape_event *e = &t.events[2];

	(void)state;
	tape_play(&t, &b, 0, 0);
	assert_int_equal(e->ticks, 2100);
	assert_int_equal(e->time_ns, 1100);
	assert_int_equal(e->thread_id, 43);
	assert_int_equal(e->capture_thread_id, 43);
	assert_int_equal(e->stack_id, 1); /* the empty stack */
	assert_int_equal(e->frame_count, 0);
	assert_payload_i32(e, -1);
	assert_int_equal(e->offset, 0x175);
}

/* --- version 6 --- */

static void v6_events_come_with_threads_labels_and_stacks(void **state)
{
	struct build b = example_v6();
	struct tape t = { 0 };

	(void)state;
	tape_play(&t, &b, 0, NT_TIME_ORDER);
	assert_int_equal(t.status, NT_OK);
	assert_string_equal(t.log, "trace define:Hi Hi@2000 Hi@2300 point@2000");
	assert_string_equal(t.defs, "Demo/7 Hi l4 k1 v0 o0 {n:9}\n");
	for (size_t i = 0; i < 2; i++) {
		const struct tape_event *e = &t.events[i];

		assert_int_equal(e->thread_id, 300);
		assert_int_equal(e->process_id, 42);
		assert_int_equal(e->capture_thread_id, 5);
		assert_true(e->has_thread_name);
		assert_string_equal(e->thread_name, "main");
		assert_int_equal(e->processor, 2);
		assert_int_equal(e->stack_id, 1);
		assert_int_equal(e->frame_count, 1);
		assert_true(e->stack[0] == 0x7f0000001000);
		assert_int_equal(e->pair_count, 1);
		assert_string_equal(e->pairs[0].key, "k");
		assert_string_equal(e->pairs[0].text, "v");
		assert_payload_i32(e, 5 + (int32_t)i);
	}
	assert_int_equal(t.events[0].offset, 0xc6);
	assert_int_equal(t.events[1].offset, 0xd5);
}

static void v6_trace_and_totals(void **state)
{
	struct build b = example_v6();
	struct tape t = { 0 };

	(void)state;
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.trace.format, 6);
	assert_int_equal(t.trace.format_minor, 0);
	assert_true(t.trace.wall_clock_known);
	assert_true(t.trace.start_unix_ns == start_ns);
	assert_int_equal(t.trace.process_id, 42);
	assert_int_equal(t.trace.processors, -1);
	assert_int_equal(t.trace.sample_interval_ns, -1);
	assert_int_equal(t.stats.lost, 0);
	assert_int_equal(t.loss_count, 0);
	assert_int_equal(t.stats.unknown_threads, 0);
	assert_int_equal(t.stats.unknown_labels, 0);
	assert_int_equal(t.stats.blocks, 7);
	assert_int_equal(t.stats.whole_bytes, 246);
	assert_true(t.stats.ended);
}

/* --- both --- */

static void check_chunks(struct build *b)
{
	for (unsigned flags = 0; flags <= NT_TIME_ORDER; flags++) {
		struct trail whole = { 0 };

		assert_int_equal(feed(b->bytes, b->count, 0, flags, &whole), NT_OK);
		for (size_t chunk = 1; chunk <= b->count; chunk++) {
			struct trail t = { 0 };

			assert_int_equal(feed(b->bytes, b->count, chunk, flags, &t), NT_OK);
			assert_true(t.hash == whole.hash);
			assert_memory_equal(&t.stats, &whole.stats, sizeof(t.stats));
		}
	}
	build_done(b);
}

static void every_chunk_size_gives_the_same(void **state)
{
	struct build v4 = example_v4(), v6 = example_v6();

	(void)state;
	check_chunks(&v4);
	check_chunks(&v6);
}

/* ends[]: where each event's row ends. */
static void check_prefixes(struct build *b, const size_t *ends, size_t count)
{
	struct trail whole = { 0 };

	assert_int_equal(feed(b->bytes, b->count, 0, 0, &whole), NT_OK);
	assert_int_equal(whole.events, count);
	for (size_t cut = 0; cut < b->count; cut++) {
		size_t events = 0;

		while (events < count && ends[events] <= cut)
			events++;
		for (size_t chunk = 0; chunk < 3; chunk++) {
			struct trail t = { 0 };

			assert_int_equal(feed(b->bytes, cut, chunk, 0, &t), NT_ETRUNC);
			assert_int_equal(t.error.offset, cut);
			assert_int_equal(t.error.events_before, events);
			assert_int_equal(t.events, events);
			assert_memory_equal(t.text, whole.text, t.used);
			assert_false(t.stats.ended);
		}
	}
	build_done(b);
}

static void every_prefix_is_truncated_and_gives_its_whole_events(void **state)
{
	static const size_t ends_v4[] = { 0x16e, 0x175, 0x191 };
	static const size_t ends_v6[] = { 0xd5, 0xdc };
	struct build v4 = example_v4(), v6 = example_v6();

	(void)state;
	check_prefixes(&v4, ends_v4, 3);
	check_prefixes(&v6, ends_v6, 2);
}

static void a_cut_releases_what_waits_for_its_turn(void **state)
{
	struct build b = example_v4();
	struct tape t = { 0 };

	(void)state;
	b.count = 0x191; /* behind the third event */
	tape_play(&t, &b, 0, NT_TIME_ORDER);
	assert_int_equal(t.status, NT_ETRUNC);
	assert_string_equal(t.log, "trace define:Hi Hi@2000 Hi@2100 Hi@2300");
	assert_int_equal(t.error.events_before, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(v4_events_come_in_order_and_losses_before_the_point),
		cmocka_unit_test(v4_without_order_events_come_as_in_the_file),
		cmocka_unit_test(v4_trace),
		cmocka_unit_test(v4_first_event),
		cmocka_unit_test(v4_second_event_keeps_what_its_header_leaves_out),
		cmocka_unit_test(v4_third_event_goes_back_in_time_and_number),
		cmocka_unit_test(v6_events_come_with_threads_labels_and_stacks),
		cmocka_unit_test(v6_trace_and_totals),
		cmocka_unit_test(every_chunk_size_gives_the_same),
		cmocka_unit_test(every_prefix_is_truncated_and_gives_its_whole_events),
		cmocka_unit_test(a_cut_releases_what_waits_for_its_turn),
	};

	return cmocka_run_group_tests_name("synthetic", tests, NULL, NULL);
}
