/* SPDX-License-Identifier: MIT */
/*
 * Real traces: sound from end to end, in any chunks and in order; and what a cut leaves of them.
 * With $DRD_LONG=1 nothing is left out; otherwise one byte at a time is tried on the first part
 * of each trace, and not every byte is a place to cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/fixture.h"
#include "tests/support/trail.h"
#include "tests/support/walk.h"

static const char *const names[] = {
	"synthetic-v4.nettrace",	"synthetic-v6.nettrace",
	"v6-cpu-net10.nettrace.zst",	"v6-offcpu-net10.nettrace.zst",
	"v3-mixed-net8.netperf.zst",	"cpu-net31.nettrace.zst",
	"cpu-net8.nettrace.zst",	"cpu-net10.nettrace.zst",
	"cpu-net11.nettrace.zst",	"deadlock-net8.nettrace.zst",
	"deadlock-net10.nettrace.zst",	"deadlock-net11.nettrace.zst",
	"exceptions-net8.nettrace.zst", "gc-aot10.nettrace.zst",
	"gc-net8.nettrace.zst",		"gc-net10.nettrace.zst",
	"gc-server-net10.nettrace.zst", "lost-net10.nettrace.zst",
	"rich-net10.nettrace.zst",	"stuck-net31.nettrace.zst",
	"stuck-net9.nettrace.zst",	"stuck-net10.nettrace.zst",
};

enum { NAMES = sizeof(names) / sizeof(*names), SHORT = 40000, STRIDE = 41 };

static bool take_all(void)
{
	const char *wanted = getenv("DRD_LONG");

	return wanted && !strcmp(wanted, "1"); /* tools/test says 0 where it is not */
}

struct trace {
	uint8_t *bytes;
	size_t count;
};

static struct trace open_trace(const char *name)
{
	struct trace t;

	t.bytes = fixture_read(name, &t.count);
	assert_non_null(t.bytes);
	return t;
}

static void real_traces_are_sound(void **state)
{
	(void)state;
	for (size_t i = 0; i < NAMES; i++) {
		struct trace f = open_trace(names[i]);
		static struct trail t;

		memset(&t, 0, sizeof(t));
		assert_int_equal(feed(f.bytes, f.count, 0, 0, &t), NT_OK);
		assert_true(t.stats.ended);
		assert_int_equal(t.stats.bytes, f.count);
		assert_int_equal(t.stats.whole_bytes, f.count);
		assert_int_equal(t.stats.unknown_metadata, 0);
		assert_int_equal(t.stats.unknown_stacks, 0);
		assert_int_equal(t.stats.unknown_threads, 0);
		assert_int_equal(t.stats.unknown_labels, 0);
		assert_int_equal(t.stats.bad_definitions, 0);
		assert_int_equal(t.stats.skipped_blocks, 0);
		assert_int_equal(t.stats.inconsistent, 0);
		assert_int_equal(t.stats.trailing_bytes, 0);
		assert_int_equal(t.lost, t.stats.lost);
		free(f.bytes);
	}
}

static void real_traces_come_in_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < NAMES; i++) {
		struct trace f = open_trace(names[i]);
		static struct trail plain, ordered;

		memset(&plain, 0, sizeof(plain));
		memset(&ordered, 0, sizeof(ordered));
		assert_int_equal(feed(f.bytes, f.count, 0, 0, &plain), NT_OK);
		assert_int_equal(feed(f.bytes, f.count, 0, NT_TIME_ORDER, &ordered), NT_OK);
		assert_int_equal(ordered.inversions, 0);
		assert_int_equal(ordered.stats.late, 0);
		assert_int_equal(ordered.events, plain.events);
		assert_int_equal(ordered.lost, plain.lost);
		assert_int_equal(ordered.sequence_points, plain.sequence_points);
		assert_int_equal(ordered.definitions, plain.definitions);
		free(f.bytes);
	}
}

static void recovery_and_skipped_stacks_change_no_sound_trace(void **state)
{
	(void)state;
	for (size_t i = 0; i < NAMES; i++) {
		struct trace f = open_trace(names[i]);
		static struct trail plain, t;

		memset(&plain, 0, sizeof(plain));
		memset(&t, 0, sizeof(t));
		assert_int_equal(feed(f.bytes, f.count, 0, 0, &plain), NT_OK);
		assert_int_equal(feed(f.bytes, f.count, 0, NT_RECOVER, &t), NT_OK);
		assert_true(t.hash == plain.hash);
		memset(&t, 0, sizeof(t));
		assert_int_equal(feed(f.bytes, f.count, 0, NT_SKIP_STACKS, &t), NT_OK);
		assert_int_equal(t.events, plain.events);
		assert_string_equal(t.message, plain.message);
		free(f.bytes);
	}
}

/* --- chunks --- */

static void check_chunk(const struct trace *f, size_t count, size_t chunk, unsigned flags)
{
	static struct trail whole, t;

	memset(&whole, 0, sizeof(whole));
	memset(&t, 0, sizeof(t));
	assert_int_equal(feed(f->bytes, count, 0, flags, &whole),
			 count == f->count ? NT_OK : NT_ETRUNC);
	assert_int_equal(feed(f->bytes, count, chunk, flags, &t),
			 count == f->count ? NT_OK : NT_ETRUNC);
	assert_true(t.hash == whole.hash);
	assert_string_equal(t.message, whole.message);
	assert_memory_equal(&t.stats, &whole.stats, sizeof(t.stats));
}

static void one_byte_at_a_time_gives_the_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < NAMES; i++) {
		struct trace f = open_trace(names[i]);

		check_chunk(&f, take_all() || f.count < SHORT ? f.count : SHORT, 1, 0);
		free(f.bytes);
	}
}

static void chunks_that_fit_nothing_give_the_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < NAMES; i++) {
		struct trace f = open_trace(names[i]);

		check_chunk(&f, f.count, 4093, i % 2 ? NT_TIME_ORDER : 0);
		free(f.bytes);
	}
}

/* --- cuts --- */

/* The events of a trace in the order of the file. */
struct log {
	uint64_t *offsets; /* where each begins */
	uint64_t *hashes; /* over it and all before it */
	size_t count, room;
	uint64_t hash;
};

static enum nt_status note(void *ctx, const struct nt_event *ev)
{
	struct log *l = ctx;

	if (l->count == l->room) {
		l->room = l->room ? l->room * 2 : 1024;
		l->offsets = realloc(l->offsets, l->room * sizeof(*l->offsets));
		l->hashes = realloc(l->hashes, l->room * sizeof(*l->hashes));
		if (!l->offsets || !l->hashes)
			abort();
	}
	l->hash = (l->hash ^ ev->ticks ^ ev->thread_id << 32) * 0x9e3779b97f4a7c15u;
	l->hash = (l->hash ^ ev->frame_count ^ ev->def->metadata_id << 16) * 0x9e3779b97f4a7c15u;
	for (size_t i = 0; i < ev->payload_bytes; i++)
		l->hash = (l->hash ^ ev->payload[i]) * 0x100000001b3u;
	l->offsets[l->count] = ev->offset;
	l->hashes[l->count++] = l->hash;
	return NT_OK;
}

static enum nt_status read_log(const uint8_t *bytes, size_t count, struct log *l,
			       struct nt_error *ret_error)
{
	static const struct nt_sink sink = { .event = note };
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, 0, &sink, l);
	enum nt_status st;

	l->count = 0;
	l->hash = 1;
	st = nt_decoder_push(d, bytes, count);
	if (st == NT_OK)
		st = nt_decoder_finish(d);
	if (nt_decoder_borrow_error(d))
		*ret_error = *nt_decoder_borrow_error(d);
	nt_decoder_free(d);
	return st;
}

static void close_log(struct log *l)
{
	free(l->offsets);
	free(l->hashes);
}

/*
 * Where the row of event i ends: where the next begins, or the content of its block.  The end tag
 * of V4's objects is not content.
 */
static uint64_t row_end(const struct log *l, size_t i, const size_t *edges, size_t tag)
{
	size_t k = 0;

	while (edges[k] <= l->offsets[i])
		k++;
	if (i + 1 < l->count && l->offsets[i + 1] < edges[k])
		return l->offsets[i + 1];
	return edges[k] - tag;
}

struct cuts {
	struct trace f;
	struct log whole, part;
	uint64_t *ends;
};

static void check_cut(struct cuts *c, size_t cut)
{
	struct nt_error err = { 0 };
	size_t events = 0;

	while (events < c->whole.count && c->ends[events] <= cut)
		events++;
	assert_int_equal(read_log(c->f.bytes, cut, &c->part, &err), NT_ETRUNC);
	assert_int_equal(err.offset, cut);
	assert_int_equal(err.events_before, events);
	assert_int_equal(c->part.count, events);
	if (events)
		assert_true(c->part.hash == c->whole.hashes[events - 1]);
}

static void check_cuts(const char *name, size_t tag, size_t stride, size_t limit)
{
	struct cuts c = { .f = open_trace(name) };
	struct nt_error err;
	size_t edge_count, *edges = walk_edges(c.f.bytes, c.f.count, &edge_count);

	assert_non_null(edges);
	assert_int_equal(read_log(c.f.bytes, c.f.count, &c.whole, &err), NT_OK);
	c.ends = calloc(c.whole.count, sizeof(*c.ends));
	for (size_t i = 0; i < c.whole.count; i++)
		c.ends[i] = row_end(&c.whole, i, edges, tag);
	if (take_all())
		limit = c.f.count;
	for (size_t cut = 0; cut < c.f.count && cut < limit; cut += take_all() ? 1 : stride)
		check_cut(&c, cut);
	for (size_t i = 0; i < edge_count && edges[i] < limit; i++)
		for (size_t cut = edges[i] > 6 ? edges[i] - 6 : 0; cut < edges[i] + 6; cut++)
			if (cut < c.f.count)
				check_cut(&c, cut);
	free(edges);
	free(c.ends);
	close_log(&c.whole);
	close_log(&c.part);
	free(c.f.bytes);
}

static void a_cut_leaves_all_whole_events_of_version_6(void **state)
{
	(void)state;
	check_cuts("synthetic-v6.nettrace", 0, 1, SIZE_MAX);
	check_cuts("v6-cpu-net10.nettrace.zst", 0, STRIDE, SIZE_MAX);
}

static void a_cut_leaves_all_whole_events_of_version_4(void **state)
{
	(void)state;
	check_cuts("synthetic-v4.nettrace", 1, 1, SIZE_MAX);
	check_cuts("cpu-net31.nettrace.zst", 1, 3 * STRIDE, 80000);
}

/* Blocks of 100 kB each, as live streams have them: the last part is where a crash cuts. */
static void a_cut_in_the_last_bytes(void **state)
{
	static const char *const some[] = { "cpu-net8.nettrace.zst",
					    "v6-offcpu-net10.nettrace.zst" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct trace f = open_trace(some[i]);

		for (size_t cut = f.count - 60; cut < f.count; cut++) {
			struct log l = { 0 };
			struct nt_error err = { 0 };

			assert_int_equal(read_log(f.bytes, cut, &l, &err), NT_ETRUNC);
			assert_int_equal(err.offset, cut);
			assert_int_equal(err.events_before, l.count);
			close_log(&l);
		}
		free(f.bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_traces_are_sound),
		cmocka_unit_test(real_traces_come_in_order),
		cmocka_unit_test(recovery_and_skipped_stacks_change_no_sound_trace),
		cmocka_unit_test(one_byte_at_a_time_gives_the_same),
		cmocka_unit_test(chunks_that_fit_nothing_give_the_same),
		cmocka_unit_test(a_cut_leaves_all_whole_events_of_version_6),
		cmocka_unit_test(a_cut_leaves_all_whole_events_of_version_4),
		cmocka_unit_test(a_cut_in_the_last_bytes),
	};

	return cmocka_run_group_tests_name("fixtures", tests, NULL, NULL);
}
