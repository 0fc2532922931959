/* SPDX-License-Identifier: MIT */
/*
 * The push side: gathers the bytes each state needs, in place when a chunk holds them whole, else
 * joined in one buffer that doubles as bytes arrive; keeps the sticky status and the first error.
 */
#include "nettrace/decoder.h"

#include <string.h>

#include "nettrace/trailer.h"

static void set_limit(size_t *limit, size_t dflt)
{
	if (!*limit)
		*limit = dflt;
}

static void default_limits(struct nt_limits *l)
{
	set_limit(&l->max_block, (size_t)64 << 20);
	set_limit(&l->max_events_held, 1000000);
	set_limit(&l->max_bytes_held, (size_t)24 << 20);
	set_limit(&l->max_stack_bytes, (size_t)24 << 20);
	set_limit(&l->max_ids, 300000);
	set_limit(&l->max_def_bytes, (size_t)16 << 20);
}

struct nt_decoder *nt_decoder_new(const struct nt_alloc *alloc, const struct nt_limits *limits,
				  unsigned flags, const struct nt_sink *sink, void *ctx)
{
	struct nt_decoder *d;

	if (!alloc)
		alloc = &nt_alloc_default;
	d = alloc->realloc(alloc->ctx, NULL, sizeof(*d));
	if (!d)
		return NULL;
	*d = (struct nt_decoder){ .alloc = alloc, .flags = flags, .sink = sink, .ctx = ctx };
	if (limits)
		d->limits = *limits;
	default_limits(&d->limits);
	d->block_name = "header";
	nt_arena_init(&d->defs_arena, alloc, d->limits.max_def_bytes);
	nt_arena_init(&d->epoch_arena, alloc, d->limits.max_stack_bytes);
	nt_arena_init(&d->thread_arena, alloc, d->limits.max_def_bytes);
	nt_idmap_init(&d->def_by_big_id, alloc);
	nt_idmap_init(&d->def_by_hash, alloc);
	nt_idmap_init(&d->undefined, alloc);
	nt_idmap_init(&d->capture_by_id, alloc);
	nt_idmap_init(&d->loss_by_thread, alloc);
	nt_idmap_init(&d->thread_by_index, alloc);
	nt_idtable_init(&d->stacks, alloc, sizeof(struct nt_stack));
	nt_idtable_init(&d->lists, alloc, sizeof(struct nt_label_list));
	nt_expect(d, ST_MAGIC, 8);
	return d;
}

static void release(const struct nt_alloc *alloc, void *p)
{
	if (p)
		alloc->realloc(alloc->ctx, p, 0);
}

struct nt_decoder *nt_decoder_free(struct nt_decoder *d)
{
	if (!d)
		return NULL;
	nt_queue_done(d);
	nt_arena_done(&d->defs_arena);
	nt_arena_done(&d->epoch_arena);
	nt_arena_done(&d->thread_arena);
	nt_idmap_done(&d->def_by_big_id);
	nt_idmap_done(&d->def_by_hash);
	nt_idmap_done(&d->undefined);
	nt_idmap_done(&d->capture_by_id);
	nt_idmap_done(&d->loss_by_thread);
	nt_idmap_done(&d->thread_by_index);
	nt_idtable_done(&d->stacks);
	nt_idtable_done(&d->lists);
	release(d->alloc, d->defs);
	release(d->alloc, d->def_hashes);
	release(d->alloc, d->def_by_id);
	release(d->alloc, d->captures);
	release(d->alloc, d->losses);
	release(d->alloc, d->threads);
	release(d->alloc, d->v3_stack);
	release(d->alloc, d->held);
	release(d->alloc, d);
	return NULL;
}

void *nt_grow(const struct nt_alloc *alloc, void *items, size_t n, size_t *room, size_t size)
{
	size_t want = *room ? *room * 2 : 16;
	size_t bytes;
	void *grown;

	if (n < *room)
		return items;
	if (__builtin_mul_overflow(want, size, &bytes))
		return NULL;
	grown = alloc->realloc(alloc->ctx, items, bytes);
	if (grown)
		*room = want;
	return grown;
}

void nt_expect(struct nt_decoder *d, enum nt_state state, size_t need)
{
	d->state = state;
	d->need = need;
}

void nt_enter_block(struct nt_decoder *d, const uint8_t *start)
{
	d->block_start = start;
	d->block_offset = d->offset;
	d->row = 0;
}

void nt_between_blocks(struct nt_decoder *d, const char *name)
{
	d->block_index++;
	d->block_name = name;
	d->row = 0;
}

enum nt_status nt_fail(struct nt_decoder *d, enum nt_status code, const uint8_t *at,
		       const char *what)
{
	uint64_t offset = d->offset;

	if (d->status < 0)
		return d->status;
	if (d->block_start)
		offset = d->block_offset + (at ? (uint64_t)(at - d->block_start) : 0);
	d->status = code;
	d->error = (struct nt_error){
		.code = code,
		.offset = offset,
		.what = what,
		.block = d->block_name,
		.block_index = d->block_index,
		.block_offset = d->block_start ? d->block_offset : d->offset,
		.row = d->row,
	};
	return code;
}

void nt_blemish(struct nt_decoder *d, const uint8_t *at, const char *what)
{
	if (d->status < 0)
		return;
	d->stats.faults++;
	if (d->blemished)
		return;
	nt_fail(d, NT_EFORMAT, at, what);
	d->status = NT_OK;
	d->blemished = true;
	d->first_fault = d->error;
	d->first_fault.events_before = d->stats.events;
}

enum nt_status nt_fail_span(struct nt_decoder *d, const struct nt_span *s, const char *what)
{
	return nt_fail(d, NT_EFORMAT, s->bad, what);
}

enum nt_status nt_fail_nomem(struct nt_decoder *d)
{
	return nt_fail(d, NT_ENOMEM, NULL, "out of memory");
}

enum nt_status nt_fail_arena(struct nt_decoder *d, const struct nt_arena *a, const char *what)
{
	return a->full ? nt_fail(d, NT_ELIMIT, NULL, what) : nt_fail_nomem(d);
}

enum nt_status nt_settle(struct nt_decoder *d, enum nt_status st)
{
	if (st == NT_STOPPED) {
		if (d->status == NT_OK)
			d->status = NT_STOPPED;
		return d->status;
	}
	if (st < 0 && d->status >= 0)
		nt_fail(d, st, NULL,
			st == NT_ENOMEM ? "out of memory" : "a consumer of events failed");
	return d->status;
}

/* After a fault in the bytes, what came before it is still owed to the sink. */
static enum nt_status drain(struct nt_decoder *d)
{
	const struct nt_error first = d->error;
	enum nt_status st = d->status;
	enum nt_status drained;

	if (d->drained || st == NT_STOPPED || st == NT_ENOMEM || st == NT_ESINK)
		return st;
	d->drained = true;
	d->block_start = NULL;
	d->status = NT_OK;
	drained = nt_queue_drain(d);
	if (st == NT_OK)
		return nt_settle(d, drained);
	d->status = st;
	d->error = first;
	return st;
}

static enum nt_status conclude(struct nt_decoder *d, enum nt_status st)
{
	nt_settle(d, st);
	if (d->status < 0)
		drain(d);
	d->error.events_before = d->stats.events;
	return d->status;
}

static size_t held_bytes(const struct nt_decoder *d)
{
	return d->held_count - d->held_at;
}

/* Moves what is held to the front when at least as much before it is done with. */
static void compact(struct nt_decoder *d)
{
	size_t bytes = held_bytes(d);

	if (!d->held_at || d->held_at < bytes)
		return;
	memmove(d->held, d->held + d->held_at, bytes);
	d->held_at = 0;
	d->held_count = bytes;
}

static bool hold(struct nt_decoder *d, const uint8_t *p, size_t n)
{
	if (n > d->held_room - d->held_count)
		compact(d);
	if (n > d->held_room - d->held_count) {
		size_t want = d->held_room ? d->held_room * 2 : 4096;
		uint8_t *grown;

		while (want < d->held_count + n)
			want *= 2;
		grown = d->alloc->realloc(d->alloc->ctx, d->held, want);
		if (!grown)
			return false;
		d->held = grown;
		d->held_room = want;
	}
	if (n)
		memcpy(d->held + d->held_count, p, n);
	d->held_count += n;
	return true;
}

/* d->need bytes, or NULL when the chunk is used up (or memory is: then status is set). */
static const uint8_t *gather(struct nt_decoder *d, struct nt_span *in)
{
	size_t missing, n;
	const uint8_t *p;

	if (held_bytes(d) && held_bytes(d) >= d->need)
		return d->held + d->held_at; /* left over by a recovery */
	missing = d->need - held_bytes(d);
	n = nt_left(in) < missing ? nt_left(in) : missing;
	p = nt_take(in, n);

	if (!held_bytes(d) && n == d->need)
		return p;
	if (!hold(d, p, n)) {
		nt_fail_nomem(d);
		return NULL;
	}
	return held_bytes(d) == d->need ? d->held + d->held_at : NULL;
}

static enum nt_status step(struct nt_decoder *d, const uint8_t *p)
{
	return d->state >= ST_V6_VERSION ? nt_step_v6(d, p) : nt_step_v4(d, p);
}

/* The step used the first bytes of what it was given at p; the rest is read again. */
static void consume(struct nt_decoder *d, struct nt_span *in, const uint8_t *p, size_t bytes)
{
	d->offset += bytes;
	if (!held_bytes(d)) {
		in->cur = p + bytes;
		return;
	}
	d->held_at += bytes;
	if (!held_bytes(d))
		d->held_at = d->held_count = 0;
}

/* Whether what is held begins like a block of trailer.h, or may still do so. */
static bool may_be_trailer(const struct nt_decoder *d, bool surely)
{
	enum { MAGIC = 8 };

	if (held_bytes(d) < MAGIC)
		return !surely;
	return nt_trailer_has_head(d->held + d->held_at, held_bytes(d));
}

/* Behind the end of the stream. */
static void keep_trailing(struct nt_decoder *d, struct nt_span *in)
{
	size_t n = nt_left(in);

	if (!d->no_trailer)
		d->no_trailer = held_bytes(d) + n > NT_TRAILER_MAX_BYTES ||
				!hold(d, nt_take(in, n), n) || !may_be_trailer(d, false);
	d->stats.trailing_bytes = d->stats.bytes - d->offset;
	if (!d->no_trailer && may_be_trailer(d, true))
		d->stats.trailing_bytes = 0;
}

const uint8_t *nt_decoder_borrow_trailer(const struct nt_decoder *d, size_t *ret_len)
{
	bool any = d->state == ST_DONE && !d->no_trailer && may_be_trailer(d, true);

	*ret_len = any ? held_bytes(d) : 0;
	return any ? d->held + d->held_at : NULL;
}

enum nt_status nt_decoder_push(struct nt_decoder *d, const void *data, size_t len)
{
	enum nt_status st = d->status;
	struct nt_span in;

	if (st != NT_OK || !len)
		return st;
	in = nt_span_of(data, len);
	d->stats.bytes += len;
	while (st == NT_OK && d->state != ST_DONE) {
		size_t bytes = d->need;
		const uint8_t *p = gather(d, &in);

		if (!p)
			break; /* the chunk is used up; nothing is half decoded */
		st = d->state == ST_SCAN ? nt_scan(d, p, &bytes) : step(d, p);
		d->block_start = NULL;
		if (st < 0 && d->flags & NT_RECOVER)
			st = nt_recover(d, st, p, &bytes);
		consume(d, &in, p, bytes);
		if (d->state == ST_OBJECT || d->state == ST_V6_BLOCK || d->state == ST_DONE)
			d->stats.whole_bytes = d->offset;
	}
	if (d->state == ST_DONE) {
		d->stats.ended = true;
		keep_trailing(d, &in);
	}
	return conclude(d, st);
}

/* The whole rows of a block that was cut. */
static enum nt_status read_partial(struct nt_decoder *d)
{
	struct nt_span b;

	if (d->state != ST_BLOCK_BODY && d->state != ST_V6_BODY)
		return NT_OK;
	if (d->kind != NT_BLOCK_EVENT || held_bytes(d) <= d->block_pad)
		return NT_OK;
	d->partial = true;
	d->cut_bytes = d->need - held_bytes(d);
	nt_enter_block(d, d->held + d->held_at);
	b = nt_span_of(d->held + d->held_at, held_bytes(d));
	nt_take(&b, d->block_pad);
	return d->state == ST_BLOCK_BODY ? nt_block_v4(d, b) : nt_block_v6(d, b);
}

/* At the end of the stream the first fault is told, though decoding went on after it. */
static enum nt_status tell_first(struct nt_decoder *d)
{
	if (d->blemished && d->status <= 0) {
		d->error = d->first_fault;
		d->status = d->error.code;
	}
	return d->status;
}

static enum nt_status cut(struct nt_decoder *d, enum nt_status code, const char *what)
{
	uint64_t end = d->offset + held_bytes(d);
	enum nt_status st = read_partial(d);

	if (st != NT_OK)
		return conclude(d, st);
	d->block_start = NULL;
	nt_fail(d, code, NULL, what);
	d->error.offset = end;
	conclude(d, code);
	return tell_first(d);
}

enum nt_status nt_decoder_finish(struct nt_decoder *d)
{
	if (d->status != NT_OK)
		return d->status;
	if (d->state == ST_DONE)
		return drain(d) == NT_OK ? tell_first(d) : d->status;
	if (!d->stats.bytes)
		return cut(d, NT_ETRUNC, "the stream is empty");
	if (!d->have_trace)
		return cut(d, NT_ETRUNC, "the stream ends inside its header");
	return cut(d, NT_ETRUNC, "the stream ends before its end tag");
}

enum nt_status nt_decoder_abort(struct nt_decoder *d, enum nt_status code, const char *what)
{
	if (d->status != NT_OK)
		return d->status;
	return cut(d, code, what);
}

const struct nt_error *nt_decoder_borrow_error(const struct nt_decoder *d)
{
	return d->status < 0 ? &d->error : NULL;
}

const struct nt_stats *nt_decoder_borrow_stats(const struct nt_decoder *d)
{
	return &d->stats;
}

const struct nt_trace_info *nt_decoder_borrow_trace(const struct nt_decoder *d)
{
	return d->have_trace ? &d->trace : NULL;
}
