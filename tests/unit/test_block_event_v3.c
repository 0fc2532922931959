/* SPDX-License-Identifier: MIT */
/* Records of version 3: events and definitions in one block, stacks inline, padding at the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/tape.h"

/* Where the parts of a record are, counted from its first byte. */
enum { AT_PAYLOAD_SIZE = 52, AT_PAYLOAD = 56, TRACE_POINTER = 45 + 32 };

struct record {
	uint32_t metadata_id, thread;
	uint64_t ticks;
	const void *payload;
	size_t payload_bytes;
	size_t stack_bytes; /* addresses: bytes 1, 2, 3 ... */
};

static void add_record(struct build *b, const struct record *r)
{
	size_t bytes = 56 + r->payload_bytes + r->stack_bytes; /* behind the size */
	size_t padding = (0 - (4 + bytes)) & 3;

	build_u32(b, (uint32_t)(bytes + padding));
	build_u32(b, r->metadata_id);
	build_u32(b, r->thread);
	build_u64(b, r->ticks);
	build_repeat(b, 0xaa, 16);
	build_repeat(b, 0xbb, 16);
	build_u32(b, (uint32_t)r->payload_bytes);
	build_bytes(b, r->payload, r->payload_bytes);
	build_u32(b, (uint32_t)r->stack_bytes);
	for (size_t i = 0; i < r->stack_bytes; i++)
		build_u8(b, (unsigned)i + 1);
	build_repeat(b, 0xee, padding);
}

static void add_definition(struct build *b, uint32_t id, const char *name)
{
	struct record r = { .ticks = 1 };
	struct build payload = { 0 };

	build_definition_head(&payload, id, "Demo", 7, name);
	build_u32(&payload, 0);
	r.payload = payload.bytes;
	r.payload_bytes = payload.count;
	add_record(b, &r);
	build_done(&payload);
}

static const struct record plain = {
	.metadata_id = 1,
	.thread = 4711,
	.ticks = 2000,
	.payload = "abcde",
	.payload_bytes = 5,
	.stack_bytes = 16,
};

static void close_block(struct build *b, struct build *records)
{
	build_object(b, 3, "EventBlock", records);
	build_end(b);
}

static void every_value_of_a_record_is_told(void **state)
{
	struct build b = build_new(3), records = { 0 };
	struct tape t = { 0 };
	const struct tape_event *e = &t.events[0];

	(void)state;
	add_definition(&records, 1, "Hi");
	add_record(&records, &plain);
	close_block(&b, &records);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_OK);
	assert_string_equal(t.log, "trace define:Hi Hi@2000");
	assert_int_equal(e->time_ns, 1000);
	assert_int_equal(e->thread_id, 4711);
	assert_int_equal(e->capture_thread_id, 4711);
	assert_int_equal(e->process_id, 42);
	assert_int_equal(e->processor, UINT32_MAX);
	assert_int_equal(e->activity_id[15], 0xaa);
	assert_int_equal(e->related_activity_id[0], 0xbb);
	assert_int_equal(e->payload_bytes, 5);
	assert_memory_equal(e->payload, "abcde", 5);
	assert_int_equal(e->stack_id, 0);
	assert_int_equal(e->frame_count, 2);
	assert_true(e->stack[0] == 0x0807060504030201);
	assert_true(e->stack[1] == 0x100f0e0d0c0b0a09);
	assert_int_equal(t.stats.lost, 0);
}

static void addresses_may_have_4_bytes(void **state)
{
	struct build b = build_new(3), records = { 0 };
	struct tape t = { 0 };

	(void)state;
	build_patch_u32(&b, TRACE_POINTER, 4);
	add_definition(&records, 1, "Hi");
	add_record(&records, &plain);
	close_block(&b, &records);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.events[0].frame_count, 4);
	assert_int_equal(t.events[0].stack[3], 0x100f0e0d);
}

static void the_padding_is_at_the_very_end(void **state)
{
	(void)state;
	for (size_t bytes = 0; bytes <= 5; bytes++) {
		struct build b = build_new(3), records = { 0 };
		struct record r = plain;
		struct tape t = { 0 };

		r.payload_bytes = bytes;
		add_definition(&records, 1, "Hi");
		add_record(&records, &r);
		add_record(&records, &plain);
		close_block(&b, &records);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.count, 2);
		assert_int_equal(t.events[0].payload_bytes, bytes);
		assert_int_equal(t.events[0].frame_count, 2);
		assert_true(t.events[0].stack[0] == 0x0807060504030201);
	}
}

static void an_event_without_stack_has_none_after_one_that_had(void **state)
{
	struct build b = build_new(3), records = { 0 };
	struct record r = plain;
	struct tape t = { 0 };

	(void)state;
	r.stack_bytes = 0;
	add_definition(&records, 1, "Hi");
	add_record(&records, &plain);
	add_record(&records, &r);
	close_block(&b, &records);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.events[0].frame_count, 2);
	assert_int_equal(t.events[1].frame_count, 0);
}

static void definitions_may_come_between_events(void **state)
{
	struct build b = build_new(3), records = { 0 };
	struct record second = plain;
	struct tape t = { 0 };

	(void)state;
	second.metadata_id = 2;
	second.ticks = 3000;
	add_definition(&records, 1, "Hi");
	add_record(&records, &plain);
	add_definition(&records, 2, "Ho");
	add_record(&records, &second);
	build_object(&b, 3, "EventBlock", &records);
	second.ticks = 4000;
	add_record(&records, &second);
	close_block(&b, &records);
	tape_play(&t, &b, 0, NT_TIME_ORDER);
	assert_int_equal(t.status, NT_OK);
	assert_string_equal(t.log, "trace define:Hi Hi@2000 define:Ho Ho@3000 Ho@4000");
}

static void a_block_without_records_is_empty(void **state)
{
	struct build b = build_new(3), records = { 0 };
	struct tape t = { 0 };

	(void)state;
	close_block(&b, &records);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.count, 0);
}

static void a_record_size_that_cannot_be_ends_the_block(void **state)
{
	static const struct {
		uint32_t size;
		const char *what;
		size_t at; /* from the record's start */
	} cases[] = {
		{ 0, "event is smaller than its header", 0 },
		{ 55, "event is smaller than its header", 0 },
		{ 200, "event runs past its block", 4 },
		{ INT32_MAX, "event runs past its block", 4 },
		{ UINT32_MAX, "event runs past its block", 4 },
		{ UINT32_MAX - 3, "event runs past its block", 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct build b = build_new(3), records = { 0 };
		struct tape t = { 0 };
		size_t at, end;

		add_definition(&records, 1, "Hi");
		add_record(&records, &plain);
		at = records.count;
		add_record(&records, &plain);
		build_patch_u32(&records, at, cases[i].size);
		end = records.count;
		build_object(&b, 3, "EventBlock", &records);
		at += b.count - 1 - end;
		build_end(&b);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_EFORMAT);
		assert_string_equal(t.error.what, cases[i].what);
		assert_int_equal(t.error.offset, at + cases[i].at);
		assert_int_equal(t.error.row, 2);
		assert_int_equal(t.count, 1);
	}
}

/* Its own size still leads to the next record. */
static void sizes_inside_a_record_that_cannot_be_cost_that_record(void **state)
{
	static const struct {
		size_t at; /* of the size, and of the fault */
		uint32_t size;
		size_t fault;
	} cases[] = {
		{ AT_PAYLOAD_SIZE, 5 + 4 + 16 + 3 + 1, AT_PAYLOAD }, /* one byte past the record */
		{ AT_PAYLOAD_SIZE, INT32_MAX, AT_PAYLOAD },
		{ AT_PAYLOAD_SIZE, UINT32_MAX, AT_PAYLOAD },
		{ AT_PAYLOAD_SIZE, 5 + 4 + 16 + 3, AT_PAYLOAD + 28 }, /* no room for the stack */
		{ AT_PAYLOAD + 5, 24, AT_PAYLOAD + 9 },
		{ AT_PAYLOAD + 5, INT32_MAX, AT_PAYLOAD + 9 },
		{ AT_PAYLOAD + 5, UINT32_MAX, AT_PAYLOAD + 9 },
		{ AT_PAYLOAD + 5, 15, AT_PAYLOAD + 5 }, /* not whole addresses */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct build b = build_new(3), records = { 0 };
		struct record other = plain;
		struct tape t = { 0 };
		size_t at, end;

		other.ticks = 3000;
		add_definition(&records, 1, "Hi");
		at = records.count;
		add_record(&records, &plain);
		build_patch_u32(&records, at + cases[i].at, cases[i].size);
		add_record(&records, &other);
		end = records.count;
		build_object(&b, 3, "EventBlock", &records);
		at += b.count - 1 - end;
		add_record(&records, &other);
		close_block(&b, &records);
		tape_play(&t, &b, 0, 0);
		assert_string_equal(t.log, "trace define:Hi Hi@3000 Hi@3000");
		assert_int_equal(t.status, NT_EFORMAT);
		assert_string_equal(t.error.what, "sizes inside an event contradict each other");
		assert_int_equal(t.error.offset, at + cases[i].fault);
		assert_int_equal(t.error.row, 1);
		assert_int_equal(t.error.events_before, 0);
		assert_int_equal(t.stats.damaged_records, 1);
		assert_true(t.stats.ended);
	}
}

static void the_largest_stack(void **state)
{
	static const struct {
		size_t bytes;
		uint64_t damaged;
	} cases[] = { { 65520, 0 }, { 65528, 1 } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct build b = build_new(3), records = { 0 };
		struct record r = plain;
		struct tape t = { 0 };

		r.stack_bytes = cases[i].bytes;
		add_definition(&records, 1, "Hi");
		add_record(&records, &r);
		close_block(&b, &records);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.stats.damaged_records, cases[i].damaged);
		assert_int_equal(t.count, 1 - cases[i].damaged);
		if (t.count)
			assert_int_equal(t.events[0].frame_count, 65520 / 8);
	}
}

static void only_the_first_fault_is_told_but_all_are_counted(void **state)
{
	struct build b = build_new(3), records = { 0 };
	struct tape t = { 0 };
	size_t first, end;

	(void)state;
	add_definition(&records, 1, "Hi");
	add_record(&records, &plain);
	first = records.count;
	for (size_t i = 0; i < 3; i++) {
		add_record(&records, &plain);
		build_patch_u32(&records, first + i * 84 + AT_PAYLOAD_SIZE, 1000);
	}
	end = records.count;
	build_object(&b, 3, "EventBlock", &records);
	first += b.count - 1 - end;
	build_end(&b);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_EFORMAT);
	assert_int_equal(t.stats.damaged_records, 3);
	assert_int_equal(t.stats.faults, 3);
	assert_int_equal(t.error.offset, first + AT_PAYLOAD);
	assert_int_equal(t.error.events_before, 1);
}

static void a_truncated_definition_ends_the_stream(void **state)
{
	struct build b = build_new(3), records = { 0 };
	struct record r = { .payload = "\x01\0\0\0D\0e\0", .payload_bytes = 8 };
	struct tape t = { 0 };

	(void)state;
	add_record(&records, &r);
	close_block(&b, &records);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_EFORMAT);
	assert_string_equal(t.error.what, "event definition ends too early");
}

static void a_cut_leaves_the_whole_records(void **state)
{
	struct build b = build_new(3), records = { 0 };
	size_t start, block;

	(void)state;
	add_definition(&records, 1, "Hi");
	block = records.count;
	add_record(&records, &plain);
	add_record(&records, &plain);
	block = records.count - block; /* of two events */
	build_object(&b, 3, "EventBlock", &records);
	start = b.count - 1 - block;
	for (size_t cut = start; cut <= b.count; cut++) {
		struct build head = { 0 };
		struct tape t = { 0 };
		size_t whole = (cut - start) / (block / 2);

		build_bytes(&head, b.bytes, cut);
		tape_play(&t, &head, 0, 0);
		assert_int_equal(t.status, NT_ETRUNC);
		assert_int_equal(t.error.offset, cut);
		assert_int_equal(t.count, whole);
	}
	build_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_value_of_a_record_is_told),
		cmocka_unit_test(addresses_may_have_4_bytes),
		cmocka_unit_test(the_padding_is_at_the_very_end),
		cmocka_unit_test(an_event_without_stack_has_none_after_one_that_had),
		cmocka_unit_test(definitions_may_come_between_events),
		cmocka_unit_test(a_block_without_records_is_empty),
		cmocka_unit_test(a_record_size_that_cannot_be_ends_the_block),
		cmocka_unit_test(sizes_inside_a_record_that_cannot_be_cost_that_record),
		cmocka_unit_test(the_largest_stack),
		cmocka_unit_test(only_the_first_fault_is_told_but_all_are_counted),
		cmocka_unit_test(a_truncated_definition_ends_the_stream),
		cmocka_unit_test(a_cut_leaves_the_whole_records),
	};

	return cmocka_run_group_tests_name("block_event_v3", tests, NULL, NULL);
}
