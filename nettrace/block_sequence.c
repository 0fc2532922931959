/* SPDX-License-Identifier: MIT */
/*
 * Sequence points, and lost events by gaps of sequence numbers (nettrace.md §6).
 *
 * Each capture thread numbers its events, lost ones included.  A thread first seen in the middle
 * of its numbers has lost nothing that we can know of; one that starts again at 1 is a recycled
 * thread id.  V6 declares its threads, so there numbering is known to start at 1.
 */
#include "nettrace/decoder.h"

#include <stdlib.h>

enum { MAX_CAPTURES = 65536, MAX_LOSS_ROWS = 65536 };

enum { FLUSH_THREADS = 1, FLUSH_METADATA = 2 };

/*
 * Forgets the threads that have no events waiting; their next event counts as a first sight.
 * Threads that wait keep their place in the heap by index, so nothing moves while any of them
 * does: then the queue is drained first.
 */
static enum nt_status evict_captures(struct nt_decoder *d)
{
	enum nt_status st = nt_queue_drain(d);

	d->stats.evicted_threads += d->capture_count;
	d->capture_count = 0;
	d->last_capture = 0;
	nt_idmap_clear(&d->capture_by_id);
	return st;
}

static struct nt_capture *add_capture(struct nt_decoder *d, uint64_t id)
{
	struct nt_capture *grown;
	struct nt_capture *c;

	if (d->capture_count >= MAX_CAPTURES && nt_settle(d, evict_captures(d)) != NT_OK)
		return NULL;
	grown = nt_grow(d->alloc, d->captures, d->capture_count, &d->capture_room, sizeof(*c));
	if (!grown) {
		nt_fail_nomem(d);
		return NULL;
	}
	d->captures = grown;
	if (nt_idmap_put(&d->capture_by_id, id, (uint32_t)d->capture_count) < 0) {
		nt_fail_nomem(d);
		return NULL;
	}
	d->last_capture = (uint32_t)d->capture_count;
	c = &d->captures[d->capture_count++];
	*c = (struct nt_capture){ .id = id, .shown_id = id };
	if (d->trace.format == 6) {
		uint32_t i = nt_find_thread(d, id);

		c->declared = i != NT_IDMAP_NONE;
		if (c->declared)
			c->shown_id = d->threads[i].thread_id;
	}
	return c;
}

void nt_renew_capture(struct nt_decoder *d, uint64_t id, uint64_t shown_id)
{
	uint32_t i = nt_idmap_get(&d->capture_by_id, id);
	struct nt_capture *c;

	if (i == NT_IDMAP_NONE)
		return;
	c = &d->captures[i];
	c->shown_id = shown_id;
	c->last_sequence = 0;
	c->seen = false;
	c->declared = true;
}

struct nt_capture *nt_get_capture(struct nt_decoder *d, uint64_t id)
{
	uint32_t i;

	if (d->last_capture < d->capture_count && d->captures[d->last_capture].id == id)
		return &d->captures[d->last_capture];
	i = nt_idmap_get(&d->capture_by_id, id);
	if (i == NT_IDMAP_NONE)
		return add_capture(d, id);
	d->last_capture = i;
	return &d->captures[i];
}

/* The loss row of that thread, made when new; NULL: no memory. */
static struct nt_thread_loss *loss_row(struct nt_decoder *d, uint64_t thread)
{
	uint32_t i = nt_idmap_get(&d->loss_by_thread, thread);
	struct nt_thread_loss *grown;

	if (i != NT_IDMAP_NONE)
		return &d->losses[i];
	grown = nt_grow(d->alloc, d->losses, d->loss_count, &d->loss_room, sizeof(*grown));
	if (!grown)
		return NULL;
	d->losses = grown;
	if (nt_idmap_put(&d->loss_by_thread, thread, (uint32_t)d->loss_count) < 0)
		return NULL;
	grown[d->loss_count] = (struct nt_thread_loss){ .thread_id = thread };
	return &grown[d->loss_count++];
}

static enum nt_status note_loss(struct nt_decoder *d, uint64_t thread, uint64_t lost,
				uint64_t ticks)
{
	bool known = nt_idmap_get(&d->loss_by_thread, thread) != NT_IDMAP_NONE;
	struct nt_thread_loss *row;

	/* Beyond the limit all other threads together have one row. */
	row = loss_row(d, known || d->loss_count < MAX_LOSS_ROWS ? thread : UINT64_MAX);
	if (!row)
		return nt_fail_nomem(d);
	row->lost += lost;
	d->stats.lost += lost;
	if (!d->sink->lost)
		return NT_OK;
	return d->sink->lost(d->ctx, thread, lost, nt_ticks_to_ns(&d->trace, ticks));
}

/* gap numbers lie between the last one seen and what comes now. */
static enum nt_status note_gap(struct nt_decoder *d, const struct nt_capture *c, int32_t gap,
			       uint64_t ticks)
{
	if (gap > 0)
		return note_loss(d, c->shown_id, (uint64_t)gap, ticks);
	if (gap < 0)
		d->stats.inconsistent++;
	return NT_OK;
}

enum nt_status nt_check_sequence(struct nt_decoder *d, struct nt_capture *c, uint32_t sequence,
				 uint64_t ticks)
{
	uint32_t last = c->last_sequence;
	bool known = c->seen || c->declared;

	c->seen = true;
	c->last_sequence = sequence;
	if (!known || sequence == last + 1)
		return NT_OK;
	if (sequence == 1 && d->trace.format < 6)
		return NT_OK; /* a new thread with the id of an old one */
	return note_gap(d, c, (int32_t)(sequence - 1 - last), ticks);
}

enum nt_status nt_check_reached(struct nt_decoder *d, uint64_t id, uint32_t sequence,
				uint64_t ticks)
{
	struct nt_capture *c = nt_get_capture(d, id);
	uint32_t last;
	bool known;

	if (!c)
		return d->status;
	last = c->last_sequence;
	known = c->seen || c->declared;
	c->seen = true;
	c->last_sequence = sequence;
	return known ? note_gap(d, c, (int32_t)(sequence - last), ticks) : NT_OK;
}

static enum nt_status check_list(struct nt_decoder *d, struct nt_span *b, uint32_t count,
				 uint64_t ticks)
{
	bool v6 = d->trace.format == 6;
	enum nt_status st = NT_OK;

	for (d->row = 0; st == NT_OK && d->row < count; d->row++) {
		uint64_t id = v6 ? nt_varuint64(b) : nt_u64(b);
		uint32_t sequence = v6 ? nt_varuint32(b) : nt_u32(b);

		if (b->bad)
			return nt_fail_span(d, b, "sequence point runs past its block");
		st = nt_check_reached(d, id, sequence, ticks);
	}
	return st;
}

enum nt_status nt_read_sequence_point(struct nt_decoder *d, struct nt_span b)
{
	uint64_t ticks = nt_u64(&b);
	uint32_t flags = d->trace.format == 6 ? nt_u32(&b) : 0;
	uint32_t count = nt_u32(&b);
	enum nt_status st;

	if (b.bad)
		return nt_fail_span(d, &b, "sequence point runs past its block");
	/* All earlier events are before it in the file: they go out while their stacks live. */
	st = nt_queue_drain(d);
	if (st == NT_OK)
		st = check_list(d, &b, count, ticks);
	if (st != NT_OK)
		return st;
	nt_idtable_clear(&d->stacks);
	nt_idtable_clear(&d->lists);
	nt_arena_clear(&d->epoch_arena);
	d->epoch++;
	if (flags & FLUSH_THREADS)
		nt_forget_threads(d);
	if (flags & FLUSH_METADATA)
		nt_forget_metadata_ids(d);
	return d->sink->sequence_point
		       ? d->sink->sequence_point(d->ctx, nt_ticks_to_ns(&d->trace, ticks))
		       : NT_OK;
}

static int by_loss(const void *a, const void *b)
{
	const struct nt_thread_loss *x = a, *y = b;

	if (x->lost != y->lost)
		return x->lost < y->lost ? 1 : -1;
	return x->thread_id < y->thread_id ? -1 : x->thread_id > y->thread_id;
}

enum nt_status nt_decoder_borrow_losses(struct nt_decoder *d, const struct nt_thread_loss **ret,
					size_t *ret_count)
{
	/* Sorting moves the rows, so the map that counts into them is made anew. */
	if (d->loss_count > 1)
		qsort(d->losses, d->loss_count, sizeof(*d->losses), by_loss);
	nt_idmap_clear(&d->loss_by_thread);
	for (size_t i = 0; i < d->loss_count; i++)
		if (nt_idmap_put(&d->loss_by_thread, d->losses[i].thread_id, (uint32_t)i) < 0)
			return NT_ENOMEM;
	*ret = d->losses;
	*ret_count = d->loss_count;
	return NT_OK;
}
