/* SPDX-License-Identifier: MIT */
/* Which events make which walk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/heap/heap_events.h"
#include "analyzers/heap/suspension.h"
#include "tests/support/build.h"

enum { MAX_WALKS = 8, START = 1, END = 2, TYPE = 15, ROOT = 16, NODE = 18, EDGE = 19, FIXED = 38 };

/* What was handed over. */
static struct {
	struct an_heapwalk info;
	uint64_t objects, edges;
	size_t trusted; /* objects whose references are known */
	bool whole;
} walks[MAX_WALKS];
static size_t walk_count;

static struct an_heap_events *h;

static enum nt_status on_walk(void *ctx, const struct an_heapwalk *w, const struct an_heapgraph *g,
			      const struct an_heap_types *types)
{
	(void)ctx;
	(void)types;
	assert_true(walk_count < MAX_WALKS);
	assert_true(g->finished);
	walks[walk_count].info = *w;
	walks[walk_count].objects = g->object_total;
	walks[walk_count].edges = g->edge_total;
	walks[walk_count].whole = an_heapwalk_is_whole(w, g);
	walks[walk_count].trusted = 0;
	for (uint32_t i = 0; i < g->objects.count; i++)
		walks[walk_count].trusted += an_heapgraph_has_edges(g, i);
	walk_count++;
	return NT_OK;
}

static const struct an_heap_sink sink = { .walk = on_walk };

static void begin(void)
{
	walk_count = 0;
	h = an_heap_events_new(&nt_alloc_default, 0, &sink, NULL);
	assert_non_null(h);
}

static void end(void)
{
	h = an_heap_events_free(h);
}

static const struct nt_field gc_fields[] = { { .name = "Count", .type = NT_T_U32 },
					     { .name = "Depth", .type = NT_T_U32 },
					     { .name = "Reason", .type = NT_T_U32 },
					     { .name = "Type", .type = NT_T_U32 } };

/* Uses up b. */
static void send(uint32_t id, uint64_t thread, unsigned pointer_size, struct build *b)
{
	static int64_t now_ns;
	const struct nt_trace_info trace = { .format = 4,
					     .pointer_size = pointer_size,
					     .ticks_per_second = 1000000000 };
	const struct nt_event_def def = { .defined = true,
					  .provider_id = NT_PROV_RUNTIME,
					  .event_id = id,
					  .layout = NT_LAYOUT_TABLE,
					  .fields = gc_fields,
					  .field_count = id == START ? 4
							 : id == END ? 2
								     : 0 };
	/* In a block of its own size: reading one byte too far is seen by ASan. */
	uint8_t *payload = malloc(b->count ? b->count : 1);
	const struct nt_event ev = { .def = &def,
				     .trace = &trace,
				     .time_ns = now_ns += 1000,
				     .thread_id = thread,
				     .payload = payload,
				     .payload_bytes = b->count };

	assert_non_null(payload);
	if (b->count)
		memcpy(payload, b->bytes, b->count);
	assert_true(an_heap_events_wants(&def));
	assert_int_equal(an_heap_events_event(h, &ev), NT_OK);
	free(payload);
	build_done(b);
}

static void gc(bool start, uint64_t thread, uint32_t number, uint32_t generation)
{
	struct build b = { 0 };

	build_u32(&b, number);
	build_u32(&b, generation);
	build_u32(&b, 1);
	build_u32(&b, 0);
	send(start ? START : END, thread, 8, &b);
}

static void head(struct build *b, uint32_t index, uint32_t count)
{
	build_u32(b, index);
	build_u32(b, count);
	build_u16(b, 0);
}

/* n objects of one reference each. */
static void nodes(uint64_t thread, uint32_t index, uint32_t n)
{
	struct build b = { 0 };

	head(&b, index, n);
	for (uint32_t i = 0; i < n; i++) {
		build_u64(&b, 0x10000 + 0x10000 * index + 32 * i);
		build_u64(&b, 32);
		build_u64(&b, 0x5000);
		build_u64(&b, 1);
	}
	send(NODE, thread, 8, &b);
}

static void edges(uint64_t thread, uint32_t index, uint32_t n)
{
	struct build b = { 0 };

	head(&b, index, n);
	for (uint32_t i = 0; i < n; i++) {
		build_u64(&b, 0x10000);
		build_u32(&b, 0);
	}
	send(EDGE, thread, 8, &b);
}

static void statics(uint64_t thread)
{
	struct build b = { 0 };

	build_u32(&b, 1);
	build_u64(&b, 0);
	build_u16(&b, 0);
	build_u64(&b, 1);
	build_u64(&b, 0x10000);
	build_u64(&b, 0);
	build_u32(&b, 0);
	build_utf16(&b, "field");
	send(FIXED, thread, 8, &b);
}

static void a_walk_is_between_start_and_end(void **state)
{
	(void)state;
	begin();
	gc(true, 1, 7, 2);
	statics(1);
	nodes(1, 0, 3);
	edges(1, 0, 4);
	nodes(1, 1, 2);
	edges(1, 1, 1);
	assert_int_equal(walk_count, 0);
	gc(false, 1, 7, 2);
	assert_int_equal(walk_count, 1);
	assert_true(walks[0].whole);
	assert_int_equal(walks[0].objects, 5);
	assert_int_equal(walks[0].trusted, 5);
	assert_int_equal(walks[0].info.gc, 7);
	assert_int_equal(walks[0].info.static_rows, 1);
	end();
}

/* Other collections, and statics without a walk, are none. */
static void collections_without_objects_are_no_walks(void **state)
{
	(void)state;
	begin();
	gc(true, 1, 1, 2);
	statics(1);
	gc(false, 1, 1, 2);
	gc(true, 1, 2, 0);
	gc(false, 1, 2, 0);
	assert_int_equal(an_heap_events_finish(h), NT_OK);
	assert_int_equal(walk_count, 0);
	end();
}

static void two_walks_are_two(void **state)
{
	(void)state;
	begin();
	for (uint32_t i = 0; i < 2; i++) {
		gc(true, 1, 5 + i, 2);
		nodes(1, 0, 3 + i);
		edges(1, 0, 3 + i);
		gc(false, 1, 5 + i, 2);
	}
	assert_int_equal(walk_count, 2);
	assert_int_equal(walks[1].objects, 4);
	assert_true(walks[0].whole && walks[1].whole);
	end();
}

/* Starts and ends of collections may be lost: numbers that begin anew tell. */
static void without_collections_numbers_tell(void **state)
{
	(void)state;
	begin();
	for (uint32_t i = 0; i < 2; i++) {
		statics(1);
		nodes(1, 0, 3 + i);
		edges(1, 0, 3 + i);
	}
	nodes(1, 0, 6);
	assert_int_equal(an_heap_events_finish(h), NT_OK);
	assert_int_equal(walk_count, 3);
	assert_int_equal(walks[0].objects, 3);
	assert_int_equal(walks[1].objects, 4);
	assert_int_equal(walks[2].objects, 6);
	assert_false(walks[0].whole);
	assert_false(walks[0].info.gc_known);
	end();
}

/* Another thread collects what is young, and walks it as well, while the first is at work. */
static void threads_are_told_apart(void **state)
{
	(void)state;
	begin();
	gc(true, 1, 9, 2);
	nodes(1, 0, 3);
	nodes(2, 0, 1);
	edges(1, 0, 2);
	edges(2, 0, 1);
	nodes(1, 1, 1);
	edges(1, 1, 2);
	gc(false, 1, 9, 2);
	assert_int_equal(an_heap_events_finish(h), NT_OK);
	assert_int_equal(walk_count, 2);
	assert_int_equal(walks[0].objects + walks[1].objects, 5);
	assert_true(walks[0].objects == 4 ? walks[0].whole : walks[1].whole);
	end();
}

static void a_walk_by_another_collection_is_known_as_such(void **state)
{
	(void)state;
	begin();
	gc(true, 1, 3, 0);
	nodes(1, 0, 3);
	edges(1, 0, 3);
	gc(false, 1, 3, 0);
	assert_int_equal(walk_count, 1);
	assert_false(an_heapwalk_is_full(&walks[0].info));
	assert_false(walks[0].whole);
	end();
}

static void gaps_are_losses(void **state)
{
	(void)state;
	begin();
	gc(true, 1, 1, 2);
	nodes(1, 0, 3);
	nodes(1, 2, 3); /* 1 is missing */
	edges(1, 0, 3);
	edges(1, 1, 6);
	gc(false, 1, 1, 2);
	gc(true, 1, 2, 2);
	nodes(1, 0, 3);
	edges(1, 0, 1);
	edges(1, 3, 2); /* two are missing */
	gc(false, 1, 2, 2);
	assert_int_equal(walk_count, 2);
	assert_int_equal(walks[0].info.lost_objects, 1);
	assert_int_equal(walks[0].trusted, 3);
	assert_false(walks[0].whole);
	assert_int_equal(walks[1].info.lost_edges, 2);
	assert_int_equal(walks[1].trusted, 1);
	assert_false(walks[1].whole);
	end();
}

/* As many rows are read as are there, whatever the count says. */
static void cut_payloads_are_losses(void **state)
{
	static const uint32_t ids[] = { TYPE, ROOT, 17, NODE, EDGE, FIXED };

	(void)state;
	for (size_t k = 0; k < sizeof(ids) / sizeof(ids[0]); k++) {
		for (size_t cut = 0; cut < 80; cut++) {
			struct build b = { 0 };

			begin();
			head(&b, ids[k] == TYPE || ids[k] == FIXED ? UINT32_MAX : 0, UINT32_MAX);
			for (size_t i = b.count; i < cut; i++)
				build_u8(&b, (unsigned)i);
			if (cut < b.count)
				b.count = cut;
			send(ids[k], 1, cut % 2 ? 4 : 8, &b);
			assert_int_equal(an_heap_events_finish(h), NT_OK);
			end();
		}
	}
}

static void pointers_of_four_bytes(void **state)
{
	struct build b = { 0 };

	(void)state;
	begin();
	gc(true, 1, 1, 2);
	head(&b, 0, 2);
	for (uint32_t i = 0; i < 2; i++) {
		build_u32(&b, 0x10000 + 16 * i);
		build_u64(&b, 16);
		build_u64(&b, 0x5000);
		build_u64(&b, i);
	}
	send(NODE, 1, 4, &b);
	b = (struct build){ 0 };
	head(&b, 0, 1);
	build_u32(&b, 0x10000);
	build_u32(&b, 0);
	send(EDGE, 1, 4, &b);
	gc(false, 1, 1, 2);
	assert_int_equal(walk_count, 1);
	assert_int_equal(walks[0].objects, 2);
	assert_true(walks[0].whole);
	end();
}

static void too_many_mixed_walks_are_counted(void **state)
{
	(void)state;
	begin();
	for (uint64_t thread = 1; thread <= 5; thread++)
		nodes(thread, 0, 1);
	assert_int_equal(an_heap_events_finish(h), NT_OK);
	assert_int_equal(walk_count + an_heap_events_dropped(h), 5);
	assert_true(walk_count >= 2);
	end();
}

/* The pause of a walk holds all of it; one before, behind or inside is another's. */
static void suspensions(void **state)
{
	static const struct nt_event_def restarted = { .provider_id = NT_PROV_RUNTIME,
						       .event_id = AN_EVENT_RESTARTED };
	struct an_suspension s = { .open = true, .thread = 7, .begin_ns = 100 };
	struct nt_event ev = { .def = &restarted, .thread_id = 8, .time_ns = 500 };

	(void)state;
	assert_true(an_suspension_wants(&restarted));
	assert_false(an_suspension_ends(&s, &ev)); /* another thread's */
	ev.thread_id = 7;
	assert_true(an_suspension_ends(&s, &ev));
	assert_false(an_suspension_ends(&s, &ev)); /* it has ended */
	assert_int_equal(an_suspension_around(&s, 100, 500, 500), 400);
	assert_int_equal(an_suspension_around(&s, 200, 300, 500), 400);
	assert_int_equal(an_suspension_around(&s, 99, 300, 500), -1);
	assert_int_equal(an_suspension_around(&s, 200, 501, 500), -1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(suspensions),
		cmocka_unit_test(a_walk_is_between_start_and_end),
		cmocka_unit_test(collections_without_objects_are_no_walks),
		cmocka_unit_test(two_walks_are_two),
		cmocka_unit_test(without_collections_numbers_tell),
		cmocka_unit_test(threads_are_told_apart),
		cmocka_unit_test(a_walk_by_another_collection_is_known_as_such),
		cmocka_unit_test(gaps_are_losses),
		cmocka_unit_test(cut_payloads_are_losses),
		cmocka_unit_test(pointers_of_four_bytes),
		cmocka_unit_test(too_many_mixed_walks_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
