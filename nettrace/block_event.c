/* SPDX-License-Identifier: MIT */
/* Event rows: V3 records (nettrace.md §3.4), compressed (§3.1) and plain headers (§3.2). */
#include "nettrace/decoder.h"

#include <string.h>

enum {
	MIN_HEADER = 20,
	BLOCK_COMPRESSED = 1,
	V3_MIN_RECORD = 56,
	V3_MAX_STACK = 65527,
};

enum row_flags {
	ROW_METADATA_ID = 0x01,
	ROW_CAPTURE = 0x02,
	ROW_THREAD = 0x04,
	ROW_STACK = 0x08,
	ROW_ACTIVITY = 0x10, /* V6: label list */
	ROW_RELATED = 0x20, /* V6: nothing */
	ROW_SORTED = 0x40,
	ROW_LENGTH = 0x80,
};

static void read_activity(struct nt_span *b, uint8_t *to)
{
	const uint8_t *p = nt_take(b, 16);

	if (p)
		memcpy(to, p, 16);
}

/* The order of reading is the wire's. */
static void read_compressed(struct nt_span *b, struct nt_row *r, bool v6)
{
	uint8_t flags = nt_u8(b);

	if (flags & ROW_METADATA_ID)
		r->metadata_id = nt_varuint32(b);
	if (flags & ROW_CAPTURE) {
		r->sequence += nt_varuint32(b) + 1;
		r->capture = nt_varuint64(b);
		r->processor = nt_varuint32(b);
	} else if (r->metadata_id) {
		r->sequence++;
	}
	if (flags & ROW_THREAD)
		r->thread = nt_varuint64(b);
	if (flags & ROW_STACK)
		r->stack_id = nt_varuint32(b);
	r->ticks += nt_varuint64(b);
	if (flags & ROW_ACTIVITY) {
		if (v6)
			r->label_id = nt_varuint32(b);
		else
			read_activity(b, r->activity);
	}
	if (flags & ROW_RELATED && !v6)
		read_activity(b, r->activity + 16);
	r->sorted = flags & ROW_SORTED;
	if (flags & ROW_LENGTH)
		r->payload_bytes = nt_varuint32(b);
	r->payload = nt_take(b, r->payload_bytes);
}

/*
 * Bit 31 of the metadata id SET means unsorted, whatever documents suggest.  cut_bytes: what is
 * missing of a block that was cut.
 */
static void read_plain(struct nt_span *b, struct nt_row *r, bool v6, size_t cut_bytes)
{
	const uint8_t *start = b->cur;
	size_t used, event_bytes = nt_u32(b);
	uint32_t id = nt_u32(b);

	r->metadata_id = id & 0x7fffffff;
	r->sorted = !(id >> 31);
	r->sequence = nt_u32(b);
	r->thread = nt_u64(b);
	r->capture = nt_u64(b);
	r->processor = nt_u32(b);
	r->stack_id = nt_u32(b);
	r->ticks = nt_u64(b);
	if (v6) {
		r->label_id = nt_u32(b);
	} else {
		read_activity(b, r->activity);
		read_activity(b, r->activity + 16);
	}
	r->payload_bytes = nt_u32(b);
	r->payload = nt_take(b, r->payload_bytes);
	if (b->bad)
		return;
	/* Some writers align the end to 4 bytes and count that in the event's size. */
	used = (size_t)(b->cur - start);
	if (event_bytes + 4 >= used && event_bytes + 4 - used <= nt_left(b) + cut_bytes)
		nt_take(b, event_bytes + 4 - used);
}

static enum nt_status bad_row(struct nt_decoder *d, const struct nt_span *b, const char *what)
{
	if (d->partial && !b->malformed)
		return NT_OK; /* the cut is reported by who found it */
	return nt_fail_span(d, b, what);
}

static enum nt_status take(struct nt_decoder *d, struct nt_row *r)
{
	if (d->kind == NT_BLOCK_METADATA)
		return nt_read_definition(d, nt_span_of(r->payload, r->payload_bytes));
	if (d->trace.format == 6)
		r->thread_row = nt_find_thread(d, r->thread);
	return nt_take_row(d, r);
}

enum nt_status nt_read_events(struct nt_decoder *d, struct nt_span b)
{
	bool v6 = d->trace.format == 6;
	struct nt_row r = { 0 };
	const uint8_t *header = b.cur;
	size_t header_bytes = nt_u16(&b);
	uint16_t flags = nt_u16(&b);
	enum nt_status st = NT_OK;

	if (!b.bad && header_bytes < MIN_HEADER)
		return nt_fail(d, NT_EFORMAT, header, "block header is too short");
	nt_take(&b, header_bytes - 4); /* the times of first and last event, and what is new */
	if (b.bad)
		return bad_row(d, &b, "block header runs past its block");
	while (st == NT_OK && nt_left(&b)) {
		r.offset = d->block_offset + (uint64_t)(b.cur - d->block_start);
		if (flags & BLOCK_COMPRESSED)
			read_compressed(&b, &r, v6);
		else
			read_plain(&b, &r, v6, d->cut_bytes);
		if (b.bad)
			return bad_row(d, &b, "event runs past its block");
		st = take(d, &r);
		d->row++;
	}
	return st;
}

/* --- V3 --- */

static enum nt_status v3_stack(struct nt_decoder *d, struct nt_span s, struct nt_row *r)
{
	unsigned pointer = d->trace.pointer_size;
	size_t frames = nt_left(&s) / pointer;

	if (frames > d->v3_stack_room) {
		uint64_t *room = d->alloc->realloc(d->alloc->ctx, d->v3_stack,
						   frames * sizeof(*d->v3_stack));

		if (!room)
			return nt_fail_nomem(d);
		d->v3_stack = room;
		d->v3_stack_room = frames;
	}
	for (size_t i = 0; i < frames; i++)
		d->v3_stack[i] = pointer == 8 ? nt_u64(&s) : nt_u32(&s);
	r->inline_stack = d->v3_stack;
	r->inline_frames = frames;
	return NT_OK;
}

static enum nt_status v3_record(struct nt_decoder *d, struct nt_span rec, struct nt_row *r)
{
	const uint8_t *stack_size;
	struct nt_span stack;
	enum nt_status st;
	size_t stack_bytes;

	r->metadata_id = nt_u32(&rec);
	r->thread = nt_u32(&rec);
	r->capture = r->thread;
	r->ticks = nt_u64(&rec);
	read_activity(&rec, r->activity);
	read_activity(&rec, r->activity + 16);
	r->payload_bytes = nt_u32(&rec);
	r->payload = nt_take(&rec, r->payload_bytes);
	stack_size = rec.cur;
	stack_bytes = nt_u32(&rec);
	stack = nt_sub(&rec, stack_bytes);
	if (rec.bad || stack_bytes > V3_MAX_STACK || stack_bytes % d->trace.pointer_size) {
		d->stats.damaged_records++;
		nt_blemish(d, rec.bad ? rec.bad : stack_size,
			   "sizes inside an event contradict each other");
		return NT_OK;
	}
	if (!r->metadata_id)
		return nt_read_definition(d, nt_span_of(r->payload, r->payload_bytes));
	st = v3_stack(d, stack, r);
	return st == NT_OK ? nt_deliver(d, r) : st;
}

/* Fully ordered by time, no sequence numbers; padding at the very end of each record. */
enum nt_status nt_read_events_v3(struct nt_decoder *d, struct nt_span b)
{
	struct nt_row r = { .processor = UINT32_MAX };
	enum nt_status st = NT_OK;

	while (st == NT_OK && nt_left(&b)) {
		const uint8_t *start = b.cur;
		size_t event_bytes = nt_u32(&b);
		struct nt_span rec;

		if (!b.bad && event_bytes + 4 < V3_MIN_RECORD + 4)
			return nt_fail(d, NT_EFORMAT, start, "event is smaller than its header");
		rec = nt_sub(&b, event_bytes);
		if (b.bad)
			return bad_row(d, &b, "event runs past its block");
		r.offset = d->block_offset + (uint64_t)(start - d->block_start);
		st = v3_record(d, rec, &r);
		d->row++;
	}
	return st;
}
