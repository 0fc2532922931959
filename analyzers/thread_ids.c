/* SPDX-License-Identifier: MIT */
#include "analyzers/thread_ids.h"

#include "analyzers/grow.h"

enum {
	MAX_THREADS = 32 * 1024,
	CREATED = 85,
	TERMINATED = 86,
	RUNDOWN = 159, /* of the rundown provider */
	FIELDS = 8,
};

void an_thread_ids_init(struct an_thread_ids *t, const struct nt_alloc *alloc)
{
	*t = (struct an_thread_ids){ .alloc = alloc };
	nt_idmap_init(&t->by_os, alloc);
	nt_idmap_init(&t->by_managed, alloc);
	nt_idmap_init(&t->by_object, alloc);
}

void an_thread_ids_done(struct an_thread_ids *t)
{
	an_mem_free(t->alloc, t->rows);
	t->rows = NULL;
	nt_idmap_done(&t->by_os);
	nt_idmap_done(&t->by_managed);
	nt_idmap_done(&t->by_object);
}

bool an_thread_ids_wants(const struct nt_event_def *def)
{
	if (def->provider_id == NT_PROV_RUNTIME)
		return def->event_id == CREATED || def->event_id == TERMINATED;
	return def->provider_id == NT_PROV_RUNDOWN && def->event_id == RUNDOWN;
}

static enum nt_status index_row(struct an_thread_ids *t, uint32_t i)
{
	const struct an_thread_id *r = &t->rows[i];
	enum nt_status st = NT_OK;

	if (r->os)
		st = nt_idmap_put(&t->by_os, r->os, i);
	if (r->managed && st == NT_OK)
		st = nt_idmap_put(&t->by_managed, r->managed, i);
	if (r->object && st == NT_OK)
		st = nt_idmap_put(&t->by_object, r->object, i);
	return st;
}

/* Forgets threads that have ended, when there are so many that this is worth it. */
static enum nt_status make_room(struct an_thread_ids *t)
{
	size_t n = 0;
	enum nt_status st = NT_OK;

	for (size_t i = 0; i < t->count; i++)
		if (!t->rows[i].ended)
			t->rows[n++] = t->rows[i];
	t->count = n;
	if (n > MAX_THREADS - MAX_THREADS / 8)
		t->retry_at = t->dropped + MAX_THREADS / 8;
	nt_idmap_clear(&t->by_os);
	nt_idmap_clear(&t->by_managed);
	nt_idmap_clear(&t->by_object);
	for (size_t i = 0; i < n && st == NT_OK; i++)
		st = index_row(t, (uint32_t)i);
	return st;
}

/* NULL in *ret when there is no room. */
static enum nt_status add_row(struct an_thread_ids *t, const struct an_thread_id *row,
			      struct an_thread_id **ret)
{
	struct an_thread_id *rows;

	*ret = NULL;
	if (t->count >= MAX_THREADS && t->dropped >= t->retry_at && make_room(t) < 0)
		return NT_ENOMEM;
	if (t->count >= MAX_THREADS) {
		t->dropped++;
		return NT_OK;
	}
	rows = an_mem_grow(t->alloc, t->rows, &t->cap, t->count + 1, sizeof(*rows));
	if (!rows)
		return NT_ENOMEM;
	t->rows = rows;
	rows[t->count] = *row;
	if (index_row(t, (uint32_t)t->count) < 0)
		return NT_ENOMEM;
	*ret = &rows[t->count++];
	return NT_OK;
}

static struct an_thread_id *by_object(const struct an_thread_ids *t, uint64_t object)
{
	uint32_t i = object ? nt_idmap_get(&t->by_object, object) : NT_IDMAP_NONE;

	return i == NT_IDMAP_NONE ? NULL : &t->rows[i];
}

enum nt_status an_thread_ids_starts(struct an_thread_ids *t, uint64_t object, uint32_t creator)
{
	struct an_thread_id *row;

	/* The thread says who it is a moment later. */
	return add_row(t, &(struct an_thread_id){ .object = object, .creator = creator }, &row);
}

static enum nt_status on_thread(struct an_thread_ids *t, const struct nt_event *ev, bool rundown)
{
	struct nt_value v[FIELDS];
	size_t n = nt_payload_read(ev, v, FIELDS, NULL);
	struct an_thread_id row = {
		.object = nt_value_u64(v, n, "ManagedThreadID", 0),
		.os = nt_value_u64(v, n, "OSThreadID", 0),
		.managed = nt_value_u64(v, n, "ManagedThreadIndex", 0),
		.flags = (uint32_t)nt_value_u64(v, n, "Flags", 0),
	};
	struct an_thread_id *known = by_object(t, row.object);
	enum nt_status st;

	/* An object that is used again belongs to a new thread: a row of its own. */
	if (known && (known->ended || (known->os && known->os != row.os)))
		known = NULL;
	if (!known) {
		st = add_row(t, &row, &known);
		if (st < 0 || !known)
			return st;
	}
	known->os = row.os;
	known->managed = row.managed;
	known->flags = row.flags;
	if (rundown) {
		known->at_end = true;
	} else {
		known->created = true;
		known->created_ns = ev->time_ns;
	}
	return index_row(t, (uint32_t)(known - t->rows));
}

static void on_end(struct an_thread_ids *t, const struct nt_event *ev)
{
	struct nt_value v[FIELDS];
	size_t n = nt_payload_read(ev, v, FIELDS, NULL);
	struct an_thread_id *row = by_object(t, nt_value_u64(v, n, "ManagedThreadID", 0));

	t->ended++;
	if (row && !row->ended) {
		row->ended = true;
		row->ended_ns = ev->time_ns;
	}
}

enum nt_status an_thread_ids_event(struct an_thread_ids *t, const struct nt_event *ev)
{
	if (!an_thread_ids_wants(ev->def))
		return NT_OK;
	if (ev->def->provider_id == NT_PROV_RUNDOWN) {
		t->at_end++;
		return on_thread(t, ev, true);
	}
	if (ev->def->event_id == CREATED) {
		t->created++;
		return on_thread(t, ev, false);
	}
	on_end(t, ev);
	return NT_OK;
}

const struct an_thread_id *an_thread_by_os(const struct an_thread_ids *t, uint64_t os)
{
	uint32_t i = os ? nt_idmap_get(&t->by_os, os) : NT_IDMAP_NONE;

	return i == NT_IDMAP_NONE ? NULL : &t->rows[i];
}

const struct an_thread_id *an_thread_by_managed(const struct an_thread_ids *t, uint64_t managed)
{
	uint32_t i = managed ? nt_idmap_get(&t->by_managed, managed) : NT_IDMAP_NONE;

	return i == NT_IDMAP_NONE ? NULL : &t->rows[i];
}
