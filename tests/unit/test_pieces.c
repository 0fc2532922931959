/* SPDX-License-Identifier: MIT */
#include "src/collect/pieces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/methods.h"
#include "tests/support/build.h"
#include "tests/support/failalloc.h"
#include "tests/support/fixture.h"

enum { MAX_PIECES = 64 };

/* A stream cut into pieces, each in memory. */
struct cutting {
	struct pieces *pieces;
	struct build piece[MAX_PIECES];
	size_t count; /* of those that were begun */
	unsigned asked; /* for names */
	bool answers; /* that they will come */
	enum nt_status status;
};

static void on_write(void *ctx, const uint8_t *bytes, size_t len)
{
	struct cutting *c = ctx;

	if (!c->count)
		c->count = 1;
	assert_true(c->count <= MAX_PIECES);
	build_bytes(&c->piece[c->count - 1], bytes, len);
}

static void on_next(void *ctx)
{
	struct cutting *c = ctx;

	c->count++;
}

static bool on_unnamed(void *ctx)
{
	struct cutting *c = ctx;

	c->asked++;
	return c->answers;
}

static const struct pieces_output output = { on_write, on_next, on_unnamed };

static enum nt_status on_block(void *ctx, const struct nt_raw_block *block)
{
	struct cutting *c = ctx;

	return pieces_block(c->pieces, block);
}

static enum nt_status on_event(void *ctx, const struct nt_event *ev)
{
	struct cutting *c = ctx;

	return pieces_event(c->pieces, ev);
}

static enum nt_status on_name(void *ctx, const struct nt_event *ev)
{
	return on_event(ctx, ev);
}

static const struct nt_sink cutting_sink = { .event = on_event, .block = on_block };
static const struct nt_sink names_sink = { .event = on_name };

static enum nt_status run(const struct nt_sink *sink, void *ctx, const struct build *b,
			  struct nt_stats *stats)
{
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, NT_TIME_ORDER, sink, ctx);
	enum nt_status st;

	assert_non_null(d);
	st = nt_decoder_push(d, b->bytes, b->count);
	if (st == NT_OK)
		st = nt_decoder_finish(d);
	if (stats)
		*stats = *nt_decoder_borrow_stats(d);
	nt_decoder_free(d);
	return st;
}

/* early: the names are known before the stream begins, as by a rundown at the start. */
static void cut(struct cutting *c, const struct nt_alloc *alloc, const char *fixture,
		uint64_t max_bytes, bool early, struct nt_stats *stats)
{
	struct build b = { 0 };
	size_t size;

	*c = (struct cutting){ 0 };
	b.bytes = fixture_read(fixture, &size);
	assert_non_null(b.bytes);
	b.count = size;
	c->pieces = pieces_new(alloc, max_bytes, &output, c);
	c->status = c->pieces ? NT_OK : NT_ENOMEM;
	if (c->status == NT_OK && early)
		c->status = run(&names_sink, c, &b, NULL);
	if (c->status == NT_OK)
		c->status = run(&cutting_sink, c, &b, stats);
	if (c->status == NT_OK)
		c->status = pieces_finish(c->pieces, false);
	build_done(&b);
}

static void cut_done(struct cutting *c)
{
	pieces_free(c->pieces);
	for (size_t i = 0; i < MAX_PIECES; i++)
		build_done(&c->piece[i]);
}

/* What one piece holds when it is read alone. */
struct reading {
	struct an_methods *methods;
	uint64_t events; /* but those that only name things */
	uint64_t samples, frames, unnamed;
	uint64_t *addresses; /* of the frames, to be named at the end */
	size_t address_count, address_room;
};

static bool is_name(const struct nt_event_def *def)
{
	return def->provider_id == NT_PROV_RUNDOWN || def->provider_id == NT_PROV_EVENTPIPE;
}

static enum nt_status read_event(void *ctx, const struct nt_event *ev)
{
	struct reading *r = ctx;

	assert_int_equal(an_methods_event(r->methods, ev), NT_OK);
	if (is_name(ev->def))
		return NT_OK;
	r->events++;
	if (ev->def->provider_id != NT_PROV_SAMPLER)
		return NT_OK;
	r->samples++;
	assert_true(ev->frame_count > 0);
	for (size_t i = 0; i < ev->frame_count; i++) {
		if (r->address_count == r->address_room) {
			r->address_room = r->address_room * 2 + 1024;
			r->addresses = realloc(r->addresses, r->address_room * sizeof(uint64_t));
			assert_non_null(r->addresses);
		}
		r->addresses[r->address_count++] = ev->stack[i] - (i ? 1 : 0);
	}
	return NT_OK;
}

static void read_piece(struct reading *r, const struct build *piece)
{
	static const struct nt_sink sink = { .event = read_event };
	struct nt_stats stats;

	r->methods = an_methods_new(&nt_alloc_default);
	assert_non_null(r->methods);
	assert_int_equal(run(&sink, r, piece, &stats), NT_OK);
	assert_int_equal(stats.lost, 0);
	assert_int_equal(stats.inconsistent, 0);
	assert_int_equal(stats.unknown_stacks, 0);
	assert_int_equal(stats.unknown_metadata, 0);
	assert_int_equal(stats.late, 0);
	for (size_t i = 0; i < r->address_count; i++)
		r->unnamed += !an_methods_find(r->methods, r->addresses[i], 0);
	r->frames += r->address_count;
	r->address_count = 0;
	assert_true(an_methods_rundown_complete(r->methods));
	r->methods = an_methods_free(r->methods);
}

static uint64_t count_events(const char *fixture, struct reading *r)
{
	struct build b = { 0 };
	size_t size;
	uint64_t before = r->events;

	b.bytes = fixture_read(fixture, &size);
	assert_non_null(b.bytes);
	b.count = size;
	read_piece(r, &b);
	build_done(&b);
	return r->events - before;
}

static void check_pieces(const char *fixture, uint64_t max_bytes)
{
	struct reading whole = { 0 }, parts = { 0 };
	uint64_t wanted = count_events(fixture, &whole);
	struct cutting c;

	cut(&c, &nt_alloc_default, fixture, max_bytes, true, NULL);
	assert_int_equal(c.status, NT_OK);
	assert_true(c.count > 2);
	assert_int_equal(pieces_count(c.pieces), c.count);
	assert_int_equal(pieces_dropped(c.pieces), 0);
	for (size_t i = 0; i < c.count; i++)
		read_piece(&parts, &c.piece[i]);
	assert_int_equal(parts.events, wanted);
	assert_int_equal(parts.samples, whole.samples);
	assert_int_equal(parts.frames, whole.frames);
	assert_int_equal(parts.unnamed, whole.unnamed);
	free(whole.addresses);
	free(parts.addresses);
	cut_done(&c);
}

static void each_piece_is_a_trace_with_names(void **state)
{
	(void)state;
	check_pieces("cpu-net10.nettrace.zst", 40000);
	check_pieces("cpu-net31.nettrace.zst", 40000);
	check_pieces("stuck-net10.nettrace.zst", 100000);
}

static void a_stream_below_the_size_stays_whole(void **state)
{
	struct cutting c;

	(void)state;
	cut(&c, &nt_alloc_default, "cpu-net8.nettrace.zst", UINT64_MAX, false, NULL);
	assert_int_equal(c.status, NT_OK);
	assert_int_equal(c.count, 1);
	cut_done(&c);
}

/* Names are awaited, but not for ever. */
static void fewer_cuts_while_names_are_on_their_way(void **state)
{
	uint64_t counts[2];

	(void)state;
	for (unsigned hold = 0; hold < 2; hold++) {
		struct cutting c = { 0 };
		struct build b = { 0 };
		size_t size;

		b.bytes = fixture_read("cpu-net10.nettrace.zst", &size);
		assert_non_null(b.bytes);
		b.count = size;
		c.pieces = pieces_new(&nt_alloc_default, 20000, &output, &c);
		assert_non_null(c.pieces);
		pieces_hold(c.pieces, hold);
		assert_int_equal(run(&cutting_sink, &c, &b, NULL), NT_OK);
		assert_int_equal(pieces_finish(c.pieces, true), NT_OK);
		counts[hold] = pieces_count(c.pieces);
		build_done(&b);
		cut_done(&c);
	}
	assert_true(counts[1] > 1);
	assert_true(counts[0] > 2 * counts[1]);
}

/* Each piece asks once for names that it lacks; what stays without one is not asked for again. */
static void names_are_asked_for(void **state)
{
	struct cutting c = { 0 };
	struct build b = { 0 };
	size_t size, pieces;

	(void)state;
	b.bytes = fixture_read("cpu-net10.nettrace.zst", &size);
	assert_non_null(b.bytes);
	b.count = size;
	c.pieces = pieces_new(&nt_alloc_default, 20000, &output, &c);
	assert_non_null(c.pieces);
	assert_int_equal(run(&cutting_sink, &c, &b, NULL), NT_OK);
	pieces = pieces_count(c.pieces);
	assert_true(pieces > 2);
	assert_in_range(c.asked, 2, pieces);
	cut_done(&c);
	/* The answer is awaited; when it was of no use, nothing asks again. */
	c = (struct cutting){ .answers = true };
	c.pieces = pieces_new(&nt_alloc_default, 20000, &output, &c);
	assert_non_null(c.pieces);
	for (size_t at = 0; at < 3; at++) {
		assert_int_equal(run(&cutting_sink, &c, &b, NULL), NT_OK);
		assert_int_equal(c.asked, 1);
		pieces_hold(c.pieces, false);
	}
	assert_true(pieces_count(c.pieces) > 1);
	build_done(&b);
	cut_done(&c);
}

static void no_cut_once_the_rundown_may_come(void **state)
{
	struct cutting c = { 0 };
	struct build b = { 0 };
	size_t size;

	(void)state;
	b.bytes = fixture_read("cpu-net8.nettrace.zst", &size);
	assert_non_null(b.bytes);
	b.count = size;
	c.pieces = pieces_new(&nt_alloc_default, 100000, &output, &c);
	assert_non_null(c.pieces);
	pieces_stopping(c.pieces);
	assert_int_equal(run(&cutting_sink, &c, &b, NULL), NT_OK);
	assert_int_equal(pieces_finish(c.pieces, true), NT_OK);
	assert_int_equal(c.count, 1);
	/* Nothing was added: the piece is the stream, up to its padding. */
	assert_int_equal(c.piece[0].count, b.count);
	build_done(&b);
	cut_done(&c);
}

static void every_failed_allocation_is_survived(void **state)
{
	struct failalloc fa;
	size_t n = 0;

	(void)state;
	do {
		struct cutting c;

		/* Every one at first, then in growing steps: there are thousands of names. */
		n += 1 + n / 16;
		failalloc_init(&fa, n);
		cut(&c, &fa.alloc, "cpu-net8.nettrace.zst", 40000, true, NULL);
		assert_int_equal(c.status, fa.failed ? NT_ENOMEM : NT_OK);
		cut_done(&c);
		assert_int_equal(fa.live, 0);
	} while (fa.failed);
	assert_true(n > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_piece_is_a_trace_with_names),
		cmocka_unit_test(a_stream_below_the_size_stays_whole),
		cmocka_unit_test(fewer_cuts_while_names_are_on_their_way),
		cmocka_unit_test(names_are_asked_for),
		cmocka_unit_test(no_cut_once_the_rundown_may_come),
		cmocka_unit_test(every_failed_allocation_is_survived),
	};

	return cmocka_run_group_tests_name("pieces", tests, NULL, NULL);
}
