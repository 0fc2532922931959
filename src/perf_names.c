/* SPDX-License-Identifier: MIT */
#include "src/perf_names.h"

#include <stdlib.h>
#include <string.h>

#include "src/elf_symbols.h"

enum { MAX_SYMBOL_NAME = 2048 };

/* An address that was sampled, and the mapping that holds it. */
struct place {
	const struct perf_file_map *map;
	uint64_t address;
};

/* --- which mapping --- */

struct index {
	const struct perf_file_map **by_start;
	size_t count;
};

static int by_start(const void *a, const void *b)
{
	const struct perf_file_map *x = *(const struct perf_file_map *const *)a;
	const struct perf_file_map *y = *(const struct perf_file_map *const *)b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x > y) - (x < y); /* the newest last */
}

static bool index_init(struct index *x, const struct perf_files *files)
{
	x->count = files->count;
	x->by_start = calloc(x->count + 1, sizeof(*x->by_start));
	if (!x->by_start)
		return false;
	for (size_t i = 0; i < x->count; i++)
		x->by_start[i] = &files->maps[i];
	if (x->count > 1)
		qsort(x->by_start, x->count, sizeof(*x->by_start), by_start);
	return true;
}

/* The newest of those that hold the address; an old one that begins far before it may be missed. */
static const struct perf_file_map *find_map(const struct index *x, uint64_t address)
{
	enum { LOOK_BACK = 16 };
	const struct perf_file_map *best = NULL;
	size_t low = 0, high = x->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (x->by_start[mid]->start <= address)
			low = mid + 1;
		else
			high = mid;
	}
	for (size_t i = low; i > 0 && low - i < LOOK_BACK; i--) {
		const struct perf_file_map *m = x->by_start[i - 1];

		if (m->last >= address && (!best || m > best))
			best = m;
	}
	return best;
}

/* --- which addresses --- */

static int by_map(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->map != y->map)
		return x->map < y->map ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

/* A return address may be the first byte of what comes behind the call: the call counts. */
static void mark_leaves(const struct nt_perf *p, bool *is_leaf)
{
	for (size_t i = 0; i < p->row_count; i++)
		is_leaf[p->rows[i].node] = true;
}

/* Sorted, each once; the caller frees it.  NULL: out of memory. */
static struct place *find_places(const struct nt_perf *p, const struct perf_files *files,
				 size_t *ret_count)
{
	struct place *places = calloc(p->node_count, sizeof(*places));
	bool *is_leaf = calloc(p->node_count, sizeof(*is_leaf));
	struct index index = { NULL, 0 };
	size_t n = 0, kept = 0;

	if (places && is_leaf && index_init(&index, files)) {
		mark_leaves(p, is_leaf);
		for (size_t i = 1; i < p->node_count; i++) {
			uint64_t at = p->nodes[i].address - !is_leaf[i];
			const struct perf_file_map *map = find_map(&index, at);

			if (map)
				places[n++] = (struct place){ map, at };
		}
		qsort(places, n, sizeof(*places), by_map);
		for (size_t i = 0; i < n; i++)
			if (!kept || by_map(&places[kept - 1], &places[i]) != 0)
				places[kept++] = places[i];
	} else {
		free(places);
		places = NULL;
	}
	free(index.by_start);
	free(is_leaf);
	*ret_count = kept;
	return places;
}

/* --- names --- */

static enum nt_status add_map(struct nt_perf *p, const struct perf_file_map *map)
{
	struct nt_perf_mapping m = { .start = map->start,
				     .last = map->last,
				     .offset = map->offset,
				     .file = map->file,
				     .build_id_bytes = map->build_id_bytes };

	memcpy(m.build_id, map->build_id, sizeof(m.build_id));
	return nt_perf_map(p, &m, strlen(map->file));
}

/* Names of the functions that the places lie in; all of them in one mapping, rising. */
static enum nt_status add_symbols(struct nt_perf *p, const struct elf_symbols *symbols,
				  const struct place *places, size_t count)
{
	const struct perf_file_map *map = places->map;
	uint64_t done = 0; /* up to there */

	for (size_t i = 0; i < count; i++) {
		uint64_t at = places[i].address, start, last;
		struct elf_symbol s;
		enum nt_status st;

		if (at < done || !elf_symbols_find(symbols, at - map->start + map->offset, &s))
			continue;
		start = s.before <= at - map->start ? at - s.before : map->start;
		last = s.behind <= map->last - at ? at + s.behind : map->last;
		st = nt_perf_symbol(p, start, last, map->file, strlen(map->file), s.name,
				    strnlen(s.name, MAX_SYMBOL_NAME));
		if (st < 0)
			return st;
		done = last + 1;
	}
	return NT_OK;
}

enum nt_status perf_names_add(struct nt_perf *p, const struct perf_files *files)
{
	size_t count, next;
	struct place *places = find_places(p, files, &count);
	struct elf_symbols *symbols = NULL;
	enum nt_status st = places ? NT_OK : NT_ENOMEM;

	for (size_t i = 0; i < count && st == NT_OK; i = next) {
		const struct perf_file_map *map = places[i].map;

		for (next = i; next < count && places[next].map == map;)
			next++;
		st = add_map(p, map);
		if (st < 0)
			break;
		symbols = elf_symbols_open(files, map);
		if (symbols)
			st = add_symbols(p, symbols, places + i, next - i);
		elf_symbols_close(symbols);
	}
	free(places);
	return st;
}
