/* SPDX-License-Identifier: MIT */
#include "nettrace/perf_store.h"

#include <stdlib.h>
#include <string.h>

#include "nettrace/decoder.h"

enum { FIRST_SLOTS = 4096, MAX_TEXT_BYTES = 16 << 20, MAX_NAME_BYTES = 4096 };

static void *give(const struct nt_alloc *al, void *items, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		return NULL;
	return al->realloc(al->ctx, items, bytes);
}

static void give_back(const struct nt_alloc *al, void *items)
{
	if (items)
		al->realloc(al->ctx, items, 0);
}

enum nt_status nt_perf_init(struct nt_perf *p, const struct nt_alloc *alloc)
{
	*p = (struct nt_perf){ .alloc = alloc ? alloc : &nt_alloc_default,
			       .slot_count = FIRST_SLOTS,
			       .row_max = NT_PERF_MAX_ROWS,
			       .info = { .unit_ns = NT_PERF_TIME_UNIT_NS } };
	nt_idmap_init(&p->by_id, p->alloc);
	nt_arena_init(&p->text, p->alloc, MAX_TEXT_BYTES);
	p->slots = give(p->alloc, NULL, p->slot_count, sizeof(*p->slots));
	p->nodes = nt_grow(p->alloc, NULL, 0, &p->node_cap, sizeof(*p->nodes));
	if (!p->slots || !p->nodes) {
		nt_perf_done(p);
		return NT_ENOMEM;
	}
	memset(p->slots, 0, p->slot_count * sizeof(*p->slots));
	p->nodes[0] = (struct nt_perf_node){ 0 };
	p->node_count = 1; /* the root */
	return NT_OK;
}

void nt_perf_done(struct nt_perf *p)
{
	if (!p->alloc)
		return;
	give_back(p->alloc, p->slots);
	give_back(p->alloc, p->nodes);
	give_back(p->alloc, p->rows);
	give_back(p->alloc, p->threads);
	give_back(p->alloc, p->mappings);
	give_back(p->alloc, p->symbols);
	nt_idmap_done(&p->by_id);
	nt_arena_done(&p->text);
	*p = (struct nt_perf){ 0 };
}

/* --- stacks --- */

static size_t slot_of(uint32_t caller, uint64_t address, size_t slots)
{
	uint64_t h = (address ^ (uint64_t)caller << 40) * 0x9e3779b97f4a7c15u;

	h = (h ^ (h >> 32) ^ caller) * 0xbf58476d1ce4e5b9u;
	return (size_t)(h ^ (h >> 31)) & (slots - 1);
}

static bool grow_slots(struct nt_perf *p)
{
	size_t n = p->slot_count * 2;
	uint32_t *slots = give(p->alloc, NULL, n, sizeof(*slots));

	if (!slots)
		return false;
	memset(slots, 0, n * sizeof(*slots));
	for (size_t k = 1; k < p->node_count; k++) {
		size_t i = slot_of(p->nodes[k].caller, p->nodes[k].address, n);

		while (slots[i])
			i = (i + 1) & (n - 1);
		slots[i] = (uint32_t)k;
	}
	give_back(p->alloc, p->slots);
	p->slots = slots;
	p->slot_count = n;
	return true;
}

static size_t find_slot(const struct nt_perf *p, uint32_t caller, uint64_t address)
{
	size_t i = slot_of(caller, address, p->slot_count);

	while (p->slots[i] &&
	       (p->nodes[p->slots[i]].caller != caller || p->nodes[p->slots[i]].address != address))
		i = (i + 1) & (p->slot_count - 1);
	return i;
}

static enum nt_status child(struct nt_perf *p, uint32_t caller, uint64_t address, uint32_t *ret)
{
	size_t slot = find_slot(p, caller, address);
	struct nt_perf_node *nodes;

	if (p->slots[slot]) {
		*ret = p->slots[slot];
		return NT_OK;
	}
	if (p->node_count >= NT_PERF_MAX_NODES)
		return NT_ELIMIT;
	nodes = nt_grow(p->alloc, p->nodes, p->node_count, &p->node_cap, sizeof(*nodes));
	if (!nodes)
		return NT_ENOMEM;
	p->nodes = nodes;
	if ((p->node_count + 1) * 3 > p->slot_count * 2) {
		if (!grow_slots(p))
			return NT_ENOMEM;
		slot = find_slot(p, caller, address);
	}
	nodes[p->node_count] = (struct nt_perf_node){ .address = address, .caller = caller };
	p->slots[slot] = (uint32_t)p->node_count;
	*ret = (uint32_t)p->node_count++;
	return NT_OK;
}

enum nt_status nt_perf_intern(struct nt_perf *p, const uint64_t *frames, size_t count,
			      uint32_t *ret_node)
{
	uint32_t node = NT_PERF_NO_STACK;
	enum nt_status st = NT_OK;

	for (size_t i = count; i-- > 0 && st == NT_OK;)
		st = child(p, node, frames[i], &node);
	*ret_node = node;
	return st;
}

enum nt_status nt_perf_add_node(struct nt_perf *p, uint32_t caller, uint64_t address)
{
	size_t before = p->node_count;
	enum nt_status st;
	uint32_t node;

	if (caller >= p->node_count)
		return NT_EFORMAT;
	st = child(p, caller, address, &node);
	return st == NT_OK && p->node_count == before ? NT_EFORMAT : st;
}

size_t nt_perf_frames(const struct nt_perf *p, uint32_t node, uint64_t *frames)
{
	size_t n = 0;

	for (; node != NT_PERF_NO_STACK && n < NT_PERF_MAX_FRAMES; node = p->nodes[node].caller)
		frames[n++] = p->nodes[node].address;
	return n;
}

/* --- threads --- */

enum nt_status nt_perf_thread(struct nt_perf *p, uint64_t id, uint32_t *ret)
{
	struct nt_perf_thread *threads;

	*ret = nt_idmap_get(&p->by_id, id);
	if (*ret != NT_IDMAP_NONE)
		return NT_OK;
	if (p->thread_count >= NT_PERF_MAX_THREADS)
		return NT_ELIMIT;
	threads = nt_grow(p->alloc, p->threads, p->thread_count, &p->thread_cap, sizeof(*threads));
	if (!threads)
		return NT_ENOMEM;
	p->threads = threads;
	*ret = (uint32_t)p->thread_count;
	if (nt_idmap_put(&p->by_id, id, *ret) < 0)
		return NT_ENOMEM;
	threads[p->thread_count++] = (struct nt_perf_thread){ .id = id };
	return NT_OK;
}

void nt_perf_name_thread(struct nt_perf *p, uint32_t thread, const char *name, size_t n)
{
	char *to = p->threads[thread].name;

	if (n >= sizeof(p->threads[thread].name))
		n = sizeof(p->threads[thread].name) - 1;
	memcpy(to, name, n);
	to[n] = '\0';
}

/* --- samples --- */

static int by_time(const void *a, const void *b)
{
	const struct nt_perf_row *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

void nt_perf_sort(struct nt_perf *p)
{
	if (p->row_count > 1)
		qsort(p->rows, p->row_count, sizeof(*p->rows), by_time);
}

static bool same_row(const struct nt_perf_row *a, const struct nt_perf_row *b)
{
	return a->time == b->time && a->thread == b->thread && a->node == b->node &&
	       a->count <= UINT32_MAX - b->count;
}

/* Adds up rows that are equal now; they are in order. */
static void merge(struct nt_perf *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->row_count; i++) {
		if (n && same_row(&p->rows[n - 1], &p->rows[i]))
			p->rows[n - 1].count += p->rows[i].count;
		else
			p->rows[n++] = p->rows[i];
	}
	p->row_count = n;
}

/*
 * Until half of the room is free, or one unit of time holds all there is.  The first step goes far:
 * samples of one thread are never closer to each other than their period.
 */
static void coarsen(struct nt_perf *p)
{
	uint64_t last = 1;

	while (p->row_count > p->row_max / 2 && last) {
		uint64_t by = p->info.unit_ns <= NT_PERF_TIME_UNIT_NS ? 1024 : 8;

		if (__builtin_mul_overflow(p->info.unit_ns, by, &p->info.unit_ns))
			p->info.unit_ns = UINT64_MAX;
		for (size_t i = 0; i < p->row_count; i++)
			p->rows[i].time /= by;
		nt_perf_sort(p);
		last = p->rows[p->row_count - 1].time;
		merge(p);
	}
	/* To try again for every sample would take all our time. */
	p->full = p->row_count > p->row_max - p->row_max / 8;
}

enum nt_status nt_perf_add_row(struct nt_perf *p, const struct nt_perf_row *row)
{
	struct nt_perf_row *rows;

	if (p->row_count >= p->row_max) {
		p->info.dropped += row->count;
		return NT_OK;
	}
	rows = nt_grow(p->alloc, p->rows, p->row_count, &p->row_cap, sizeof(*rows));
	if (!rows)
		return NT_ENOMEM;
	p->rows = rows;
	rows[p->row_count++] = *row;
	p->samples += row->count;
	return NT_OK;
}

enum nt_status nt_perf_sample(struct nt_perf *p, uint64_t time_ns, uint64_t thread_id,
			      const uint64_t *frames, size_t count)
{
	struct nt_perf_row row = { .count = 1 };
	enum nt_status st = nt_perf_thread(p, thread_id, &row.thread);

	if (st == NT_ELIMIT) {
		p->info.dropped++;
		return NT_OK;
	}
	if (st == NT_OK)
		st = nt_perf_intern(p, frames, count, &row.node);
	if (st == NT_ELIMIT) {
		p->info.no_stack++;
		row.node = NT_PERF_NO_STACK;
		st = NT_OK;
	}
	if (st < 0)
		return st;
	/* Coarsening may change the unit, so it comes before the time is counted in it. */
	if (p->row_count >= p->row_max && !p->full)
		coarsen(p);
	row.time = time_ns > p->info.start_ns ? (time_ns - p->info.start_ns) / p->info.unit_ns : 0;
	return nt_perf_add_row(p, &row);
}

/* --- what names addresses --- */

static enum nt_status keep(struct nt_perf *p, const char *text, size_t n, const char **ret)
{
	*ret = nt_arena_text(&p->text, text, n < MAX_NAME_BYTES ? n : MAX_NAME_BYTES);
	if (*ret)
		return NT_OK;
	return p->text.full ? NT_ELIMIT : NT_ENOMEM;
}

enum nt_status nt_perf_map(struct nt_perf *p, const struct nt_perf_mapping *m, size_t file_bytes)
{
	struct nt_perf_mapping *mappings, kept = *m;
	enum nt_status st = NT_ELIMIT;

	if (m->last < m->start || m->build_id_bytes > NT_PERF_BUILD_ID_BYTES)
		return NT_EFORMAT;
	if (p->mapping_count < NT_PERF_MAX_MAPPINGS)
		st = keep(p, m->file, file_bytes, &kept.file);
	if (st == NT_ELIMIT) {
		p->info.dropped++;
		return NT_OK;
	}
	if (st < 0)
		return st;
	mappings = nt_grow(p->alloc, p->mappings, p->mapping_count, &p->mapping_cap,
			   sizeof(*mappings));
	if (!mappings)
		return NT_ENOMEM;
	p->mappings = mappings;
	mappings[p->mapping_count++] = kept;
	return NT_OK;
}

enum nt_status nt_perf_symbol(struct nt_perf *p, uint64_t start, uint64_t last, const char *file,
			      size_t file_bytes, const char *name, size_t name_bytes)
{
	struct nt_perf_symbol *symbols, s = { .start = start, .last = last, .file = p->last_file };
	enum nt_status st = NT_OK;

	if (last < start)
		return NT_EFORMAT;
	if (p->symbol_count >= NT_PERF_MAX_SYMBOLS)
		st = NT_ELIMIT;
	if (st == NT_OK &&
	    (!s.file || strlen(s.file) != file_bytes || memcmp(s.file, file, file_bytes) != 0))
		st = keep(p, file, file_bytes, &s.file);
	if (st == NT_OK)
		st = keep(p, name, name_bytes, &s.name);
	if (st == NT_ELIMIT) {
		p->info.dropped++;
		return NT_OK;
	}
	if (st < 0)
		return st;
	p->last_file = s.file;
	symbols = nt_grow(p->alloc, p->symbols, p->symbol_count, &p->symbol_cap, sizeof(*symbols));
	if (!symbols)
		return NT_ENOMEM;
	p->symbols = symbols;
	symbols[p->symbol_count++] = s;
	return NT_OK;
}
