/* SPDX-License-Identifier: MIT */
/*
 * Time order with bounded memory (nettrace.md §7).
 *
 * Each capture thread's events are in order in the file.  A sorted event at time t promises that
 * everything after it is not older than t, so all that waits and is older can go, smallest first,
 * from one queue a thread.  Queued rows are copies: the caller's bytes are gone by then.  They
 * live in pages that are given back when their last row has left.
 */
#include "nettrace/decoder.h"

#include <stddef.h>
#include <string.h>

enum { PAGE_BYTES = 64 * 1024 };

struct nt_held_page {
	size_t room, used;
	size_t rows; /* still waiting */
	_Alignas(16) unsigned char data[];
};

/* A waiting row, short: a storm of events keeps hundreds of thousands.  Behind it the activity ids
 * if it has any, then the payload.  V3, which has stacks in its rows, is in order and never waits.
 */
struct nt_held {
	struct nt_held *next;
	uint64_t ticks;
	uint64_t offset;
	uint64_t capture;
	uint64_t thread;
	size_t payload_bytes;
	uint32_t metadata_id;
	uint32_t sequence;
	uint32_t thread_row;
	uint32_t processor;
	uint32_t stack_id;
	uint32_t label_id;
	uint32_t at; /* in the data of its page: below PAGE_BYTES, a longer row has a page alone */
	bool sorted;
	bool has_activity;
};

static struct nt_held_page *page_of(struct nt_held *h)
{
	unsigned char *data = (unsigned char *)h - h->at;

	return (struct nt_held_page *)(void *)(data - offsetof(struct nt_held_page, data));
}

static bool is_zero(const uint8_t *p, size_t n)
{
	uint8_t any = 0;

	for (size_t i = 0; i < n; i++)
		any |= p[i];
	return !any;
}

static void pack(struct nt_held *h, const struct nt_row *row, bool has_activity)
{
	uint8_t *behind = (uint8_t *)(h + 1);

	*h = (struct nt_held){
		.ticks = row->ticks,
		.offset = row->offset,
		.capture = row->capture,
		.thread = row->thread,
		.payload_bytes = row->payload_bytes,
		.metadata_id = row->metadata_id,
		.sequence = row->sequence,
		.thread_row = row->thread_row,
		.processor = row->processor,
		.stack_id = row->stack_id,
		.label_id = row->label_id,
		.at = h->at,
		.sorted = row->sorted,
		.has_activity = has_activity,
	};
	if (has_activity) {
		memcpy(behind, row->activity, sizeof(row->activity));
		behind += sizeof(row->activity);
	}
	if (row->payload_bytes)
		memcpy(behind, row->payload, row->payload_bytes);
}

/* The row again; its payload stays where it waits. */
static void unpack(const struct nt_held *h, struct nt_row *ret_row)
{
	const uint8_t *behind = (const uint8_t *)(h + 1);

	*ret_row = (struct nt_row){
		.metadata_id = h->metadata_id,
		.sequence = h->sequence,
		.capture = h->capture,
		.thread = h->thread,
		.thread_row = h->thread_row,
		.ticks = h->ticks,
		.processor = h->processor,
		.stack_id = h->stack_id,
		.label_id = h->label_id,
		.sorted = h->sorted,
		.payload_bytes = h->payload_bytes,
		.offset = h->offset,
	};
	if (h->has_activity) {
		memcpy(ret_row->activity, behind, sizeof(ret_row->activity));
		behind += sizeof(ret_row->activity);
	}
	ret_row->payload = behind;
}

static void drop_page(struct nt_decoder *d, struct nt_held_page *page)
{
	struct nt_queue *q = &d->queue;

	if (page->room == PAGE_BYTES && !q->spare) {
		page->used = 0;
		q->spare = page;
		return;
	}
	q->bytes -= page->room;
	d->alloc->realloc(d->alloc->ctx, page, 0);
}

static struct nt_held_page *new_page(struct nt_decoder *d, size_t bytes)
{
	struct nt_queue *q = &d->queue;
	size_t room = bytes > PAGE_BYTES ? bytes : PAGE_BYTES;
	struct nt_held_page *page = q->spare;

	if (page && room == PAGE_BYTES) {
		q->spare = NULL;
		return page;
	}
	page = d->alloc->realloc(d->alloc->ctx, NULL, sizeof(*page) + room);
	if (!page)
		return NULL;
	*page = (struct nt_held_page){ .room = room };
	q->bytes += room;
	return page;
}

static struct nt_held *hold_row(struct nt_decoder *d, const struct nt_row *row)
{
	struct nt_queue *q = &d->queue;
	bool has_activity = !is_zero(row->activity, sizeof(row->activity));
	size_t bytes = sizeof(struct nt_held) + row->payload_bytes;
	struct nt_held_page *page = q->fill;
	struct nt_held *h;

	if (has_activity)
		bytes += sizeof(row->activity);
	bytes = (bytes + 7) & ~(size_t)7;
	if (!page || bytes > page->room - page->used) {
		struct nt_held_page *next = new_page(d, bytes);

		if (!next)
			return NULL;
		if (page && !page->rows)
			drop_page(d, page);
		q->fill = page = next;
	}
	h = (struct nt_held *)(void *)(page->data + page->used);
	h->at = (uint32_t)page->used;
	page->used += bytes;
	page->rows++;
	pack(h, row, has_activity);
	return h;
}

static bool before(const struct nt_decoder *d, uint32_t a, uint32_t b)
{
	const struct nt_held *x = d->captures[a].head;
	const struct nt_held *y = d->captures[b].head;

	if (x->ticks != y->ticks)
		return x->ticks < y->ticks;
	return x->offset < y->offset;
}

static void sift_up(struct nt_decoder *d, size_t i)
{
	uint32_t *heap = d->queue.heap;

	while (i && before(d, heap[i], heap[(i - 1) / 2])) {
		uint32_t t = heap[i];

		heap[i] = heap[(i - 1) / 2];
		heap[(i - 1) / 2] = t;
		i = (i - 1) / 2;
	}
}

static void sift_down(struct nt_decoder *d, size_t i)
{
	struct nt_queue *q = &d->queue;

	for (;;) {
		size_t small = i;

		for (size_t c = 2 * i + 1; c <= 2 * i + 2 && c < q->heap_count; c++)
			if (before(d, q->heap[c], q->heap[small]))
				small = c;
		if (small == i)
			return;

		uint32_t t = q->heap[i];

		q->heap[i] = q->heap[small];
		q->heap[small] = t;
		i = small;
	}
}

/* Takes the smallest head off its queue and delivers it. */
static enum nt_status pop(struct nt_decoder *d)
{
	struct nt_queue *q = &d->queue;
	struct nt_capture *c = &d->captures[q->heap[0]];
	struct nt_held *h = c->head;
	struct nt_held_page *page = page_of(h);
	struct nt_row row;
	enum nt_status st;

	c->head = h->next;
	if (!c->head) {
		c->tail = NULL;
		q->heap[0] = q->heap[--q->heap_count];
	}
	if (q->heap_count)
		sift_down(d, 0);
	q->events--;
	unpack(h, &row);
	st = nt_deliver(d, &row);
	if (!--page->rows) {
		if (page == q->fill && page->room == PAGE_BYTES) {
			page->used = 0;
		} else {
			if (page == q->fill)
				q->fill = NULL;
			drop_page(d, page);
		}
	}
	return st;
}

enum nt_status nt_queue_release(struct nt_decoder *d, uint64_t ticks)
{
	struct nt_queue *q = &d->queue;
	enum nt_status st = NT_OK;

	while (st == NT_OK && q->heap_count && d->captures[q->heap[0]].head->ticks < ticks)
		st = pop(d);
	return st;
}

enum nt_status nt_queue_drain(struct nt_decoder *d)
{
	enum nt_status st = NT_OK;

	while (st == NT_OK && d->queue.heap_count)
		st = pop(d);
	return st;
}

/* A cap was reached: the oldest go out although an older one may still come. */
static enum nt_status make_room(struct nt_decoder *d)
{
	struct nt_queue *q = &d->queue;
	enum nt_status st = NT_OK;

	while (st == NT_OK && q->heap_count &&
	       (q->events >= d->limits.max_events_held || q->bytes >= d->limits.max_bytes_held))
		st = pop(d);
	return st;
}

enum nt_status nt_queue_add(struct nt_decoder *d, struct nt_capture *c, const struct nt_row *row)
{
	struct nt_queue *q = &d->queue;
	uint32_t index = (uint32_t)(c - d->captures);
	enum nt_status st = make_room(d);
	struct nt_held *h;
	uint32_t *grown;

	if (st != NT_OK)
		return st;
	h = hold_row(d, row);
	if (!h)
		return nt_fail_nomem(d);
	q->events++;
	if (c->tail) {
		c->tail->next = h;
		c->tail = h;
		return NT_OK;
	}
	grown = nt_grow(d->alloc, q->heap, q->heap_count, &q->heap_room, sizeof(*grown));
	if (!grown) {
		q->events--;
		page_of(h)->rows--;
		return nt_fail_nomem(d);
	}
	q->heap = grown;
	c->head = c->tail = h;
	q->heap[q->heap_count++] = index;
	sift_up(d, q->heap_count - 1);
	return NT_OK;
}

void nt_queue_done(struct nt_decoder *d)
{
	struct nt_queue *q = &d->queue;

	for (size_t i = 0; i < q->heap_count; i++) {
		struct nt_held *h = d->captures[q->heap[i]].head;

		while (h) {
			struct nt_held *next = h->next;
			struct nt_held_page *page = page_of(h);

			if (!--page->rows && page != q->fill)
				d->alloc->realloc(d->alloc->ctx, page, 0);
			h = next;
		}
	}
	if (q->fill)
		d->alloc->realloc(d->alloc->ctx, q->fill, 0);
	if (q->spare)
		d->alloc->realloc(d->alloc->ctx, q->spare, 0);
	if (q->heap)
		d->alloc->realloc(d->alloc->ctx, q->heap, 0);
	*q = (struct nt_queue){ 0 };
}
