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

#include <string.h>

enum { PAGE_BYTES = 64 * 1024 };

struct nt_held_page {
	size_t room, used;
	size_t rows; /* still waiting */
	_Alignas(16) unsigned char data[];
};

struct nt_held {
	struct nt_held *next;
	struct nt_held_page *page;
	struct nt_row row; /* payload points behind this struct */
};

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
	size_t bytes = sizeof(struct nt_held) + row->payload_bytes;
	struct nt_held_page *page = q->fill;
	struct nt_held *h;

	bytes = (bytes + 15) & ~(size_t)15;
	if (!page || bytes > page->room - page->used) {
		struct nt_held_page *next = new_page(d, bytes);

		if (!next)
			return NULL;
		if (page && !page->rows)
			drop_page(d, page);
		q->fill = page = next;
	}
	h = (struct nt_held *)(void *)(page->data + page->used);
	page->used += bytes;
	page->rows++;
	h->next = NULL;
	h->page = page;
	h->row = *row;
	h->row.payload = (const uint8_t *)(h + 1);
	if (row->payload_bytes)
		memcpy(h + 1, row->payload, row->payload_bytes);
	return h;
}

static bool before(const struct nt_decoder *d, uint32_t a, uint32_t b)
{
	const struct nt_row *x = &d->captures[a].head->row;
	const struct nt_row *y = &d->captures[b].head->row;

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
	struct nt_held_page *page = h->page;
	enum nt_status st;

	c->head = h->next;
	if (!c->head) {
		c->tail = NULL;
		q->heap[0] = q->heap[--q->heap_count];
	}
	if (q->heap_count)
		sift_down(d, 0);
	q->events--;
	st = nt_deliver(d, &h->row);
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

	while (st == NT_OK && q->heap_count && d->captures[q->heap[0]].head->row.ticks < ticks)
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
		h->page->rows--;
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
			struct nt_held_page *page = h->page;

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
