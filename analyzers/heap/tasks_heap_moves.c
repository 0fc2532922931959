/* SPDX-License-Identifier: MIT */

/*
 * Where the objects of the first walk are by now: a collection that compacts the heap
 * says which ranges it has moved (GCBulkMovedObjectRanges), and whoever follows all of them knows
 * the same object in another walk.
 */

#include <stdlib.h>

#include "analyzers/heap/tasks_heap_internal.h"
#include "nettrace/span.h"

static int by_address(const void *a, const void *b)
{
	const struct th_track *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static void track(struct th_moves *m, uint64_t *slot)
{
	m->items[m->count++] = (struct th_track){ .address = *slot, .moved = *slot, .slot = slot };
}

enum nt_status th_moves_start(struct th_moves *m, const struct nt_alloc *alloc,
			      const struct th_rows *rows)
{
	m->count = 0;
	m->pending = false;
	for (size_t i = 0; i < rows->count; i++) {
		const struct th_row *row = &rows->rows[i];
		struct th_track *items =
			an_mem_grow(alloc, m->items, &m->cap, m->count + 2 * row->head_count + 1,
				    sizeof(*items));

		if (!items)
			return NT_ENOMEM;
		m->items = items;
		for (size_t k = 0; k < row->head_count; k++) {
			track(m, &row->heads[k].outer);
			track(m, &row->heads[k].inner);
		}
	}
	if (m->count)
		qsort(m->items, m->count, sizeof(*m->items), by_address);
	return NT_OK;
}

/* The first that is not below that address. */
static size_t lower_bound(const struct th_moves *m, uint64_t address)
{
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->items[mid].address < address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

void th_moves_event(struct th_moves *m, const struct nt_event *ev)
{
	struct nt_span s = nt_span_of(ev->payload, ev->payload_bytes);
	unsigned pointer_size = ev->trace->pointer_size;
	uint32_t count;

	m->told = true;
	if (!m->count)
		return;
	nt_u32(&s); /* which event of its kind: a lost one only leaves some behind */
	count = nt_u32(&s);
	nt_u16(&s);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t from = nt_pointer(&s, pointer_size);
		uint64_t to = nt_pointer(&s, pointer_size);
		uint64_t bytes = nt_u64(&s);

		if (s.bad)
			return;
		for (size_t k = lower_bound(m, from);
		     k < m->count && m->items[k].address - from < bytes; k++) {
			m->items[k].moved = to + (m->items[k].address - from);
			m->pending = true;
		}
	}
}

/* All ranges of a collection are in terms of where things were before it. */
void th_moves_commit(struct th_moves *m)
{
	if (!m->pending)
		return;
	m->pending = false;
	for (size_t i = 0; i < m->count; i++)
		m->items[i].address = m->items[i].moved;
	qsort(m->items, m->count, sizeof(*m->items), by_address);
}

int th_compare_ends(const void *a, const void *b)
{
	const struct th_ends *x = a, *y = b;

	if (x->outer != y->outer)
		return x->outer > y->outer ? 1 : -1;
	return (x->inner > y->inner) - (x->inner < y->inner);
}

void th_moves_apply(const struct th_moves *m, struct th_rows *rows)
{
	for (size_t i = 0; i < m->count; i++)
		*m->items[i].slot = m->items[i].address;
	for (size_t i = 0; i < rows->count; i++)
		if (rows->rows[i].head_count)
			qsort(rows->rows[i].heads, rows->rows[i].head_count,
			      sizeof(*rows->rows[i].heads), th_compare_ends);
}
