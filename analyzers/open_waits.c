/* SPDX-License-Identifier: MIT */
#include "analyzers/open_waits.h"

#include "analyzers/grow.h"

enum {
	MAX_THREADS = 32 * 1024,
	RETRY = 1024, /* look for room again after so many that found none */
	CONTENTION_START = 81,
	CONTENTION_STOP = 91,
	WAIT_START = 301,
	WAIT_STOP = 302,
};

void an_open_waits_init(struct an_open_waits *w, const struct nt_alloc *alloc)
{
	*w = (struct an_open_waits){ .alloc = alloc };
	nt_idmap_init(&w->by_thread, alloc);
}

void an_open_waits_done(struct an_open_waits *w)
{
	an_mem_free(w->alloc, w->rows);
	w->rows = NULL;
	nt_idmap_done(&w->by_thread);
}

bool an_open_waits_wants(const struct nt_event_def *def)
{
	uint32_t id = def->event_id;

	return def->provider_id == NT_PROV_RUNTIME &&
	       (id == CONTENTION_START || id == CONTENTION_STOP || id == WAIT_START ||
		id == WAIT_STOP);
}

/* Forgets threads that do not wait. */
static enum nt_status make_room(struct an_open_waits *w)
{
	size_t n = 0;
	enum nt_status st = NT_OK;

	for (size_t i = 0; i < w->count; i++)
		if (w->rows[i].locks || w->rows[i].waits)
			w->rows[n++] = w->rows[i];
	w->count = n;
	nt_idmap_clear(&w->by_thread);
	for (size_t i = 0; i < n && st == NT_OK; i++)
		st = nt_idmap_put(&w->by_thread, w->rows[i].thread, (uint32_t)i);
	return st;
}

/* NULL in *ret when all places are taken by threads that wait. */
static enum nt_status find(struct an_open_waits *w, uint64_t thread, struct an_open_wait **ret)
{
	uint32_t i = nt_idmap_get(&w->by_thread, thread);
	struct an_open_wait *rows;

	*ret = NULL;
	if (i == NT_IDMAP_NONE) {
		if (w->count >= MAX_THREADS && w->dropped % RETRY == 0 && make_room(w) < 0)
			return NT_ENOMEM;
		if (w->count >= MAX_THREADS) {
			w->dropped++;
			return NT_OK;
		}
		rows = an_mem_grow(w->alloc, w->rows, &w->cap, w->count + 1, sizeof(*rows));
		if (!rows)
			return NT_ENOMEM;
		w->rows = rows;
		i = (uint32_t)w->count;
		if (nt_idmap_put(&w->by_thread, thread, i) < 0)
			return NT_ENOMEM;
		rows[w->count++] = (struct an_open_wait){ .thread = thread };
	}
	*ret = &w->rows[i];
	return NT_OK;
}

enum nt_status an_open_waits_event(struct an_open_waits *w, const struct nt_event *ev,
				   uint64_t lost)
{
	struct an_open_wait *row;
	enum nt_status st = find(w, ev->thread_id, &row);

	if (st < 0 || !row)
		return st;
	if (row->lost != lost) { /* nothing before the loss is sure any more */
		row->locks = row->waits = 0;
		row->lost = lost;
	}
	switch (ev->def->event_id) {
	case CONTENTION_START:
		row->locks = 1; /* never nested */
		break;
	case CONTENTION_STOP:
		row->locks = 0;
		break;
	case WAIT_START:
		row->waits++;
		break;
	default:
		if (row->waits)
			row->waits--;
	}
	return NT_OK;
}

bool an_open_waits_has(const struct an_open_waits *w, uint64_t thread, uint64_t lost)
{
	uint32_t i = w->count ? nt_idmap_get(&w->by_thread, thread) : NT_IDMAP_NONE;

	return i != NT_IDMAP_NONE && (w->rows[i].locks || w->rows[i].waits) &&
	       w->rows[i].lost == lost;
}
