/* SPDX-License-Identifier: MIT */
#include "src/perf/perf_names.h"

#include <stdlib.h>
#include <string.h>

#include "src/perf/elf_symbols.h"
#include "src/perf/kernel_symbols.h"
#include "src/perf/perf_jit.h"
#include "src/proc/proc.h"

enum { MAX_SYMBOL_NAME = 2048 };

/* An address that was sampled, when last, and the mapping that holds it (NULL: none). */
struct place {
	const struct perf_file_map *map;
	uint64_t address;
	uint64_t last_ns;
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
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (x->last_ns < y->last_ns) - (x->last_ns > y->last_ns); /* the newest first */
}

/* What rows say of a node. */
struct use {
	uint64_t last; /* in units of the rows, counted from 1; 0: never */
	/* A return address may be the first byte of what comes behind the call: the call counts. */
	bool is_leaf;
};

static void find_uses(const struct nt_perf *p, struct use *uses)
{
	for (size_t i = 0; i < p->row_count; i++) {
		struct use *u = &uses[p->rows[i].node];

		u->is_leaf = true;
		if (p->rows[i].time >= u->last)
			u->last = p->rows[i].time + 1;
	}
	for (size_t i = p->node_count; i-- > 1;) {
		struct use *caller = &uses[p->nodes[i].caller];

		if (uses[i].last > caller->last)
			caller->last = uses[i].last;
	}
}

static bool same_place(const struct place *a, const struct place *b)
{
	return a->map == b->map && a->address == b->address;
}

/* Sorted, each once; the caller frees it.  NULL: out of memory. */
static struct place *find_places(const struct nt_perf *p, const struct perf_files *files,
				 size_t *ret_count)
{
	struct place *places = calloc(p->node_count, sizeof(*places));
	struct use *uses = calloc(p->node_count, sizeof(*uses));
	struct index index = { NULL, 0 };
	size_t n = 0, kept = 0;

	if (places && uses && index_init(&index, files)) {
		find_uses(p, uses);
		for (size_t i = 1; i < p->node_count; i++) {
			uint64_t at = nt_perf_address(p->nodes[i].address) - !uses[i].is_leaf;
			uint64_t last = p->info.start_ns + uses[i].last * p->info.unit_ns;

			places[n++] = (struct place){ find_map(&index, at), at, last };
		}
		if (n > 1)
			qsort(places, n, sizeof(*places), by_map);
		for (size_t i = 0; i < n; i++)
			if (!kept || !same_place(&places[kept - 1], &places[i]))
				places[kept++] = places[i];
	} else {
		free(places);
		places = NULL;
	}
	free(index.by_start);
	free(uses);
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

/* What has no name in a file may be compiled code. */
static void add_jit_places(struct perf_jit_place *jit, size_t *count, const struct place *places,
			   size_t n)
{
	for (size_t i = 0; i < n; i++)
		jit[(*count)++] = (struct perf_jit_place){ .address = places[i].address,
							   .last_ns = places[i].last_ns };
}

/* Those of the kernel, the last of the places without a mapping. */
static enum nt_status add_kernel(struct nt_perf *p, const struct place *places, size_t count,
				 bool *ret_hidden)
{
	uint64_t *addresses = calloc(count + 1, sizeof(*addresses));
	enum nt_status st;

	for (size_t i = 0; addresses && i < count; i++)
		addresses[i] = places[i].address;
	st = addresses ? kernel_symbols_add(p, PROC_ROOT "/kallsyms", addresses, count, ret_hidden)
		       : NT_ENOMEM;
	free(addresses);
	return st;
}

/* Of places in one mapping, or in none. */
static enum nt_status add_group(struct nt_perf *p, const struct perf_files *files,
				const struct place *places, size_t n, struct perf_jit_place *jit,
				size_t *jit_count)
{
	const struct perf_file_map *map = places->map;
	struct elf_symbols *symbols = NULL;
	enum nt_status st = map ? add_map(p, map) : NT_OK;

	if (map && st == NT_OK)
		symbols = elf_symbols_open(files, map);
	if (symbols)
		st = add_symbols(p, symbols, places, n);
	else
		add_jit_places(jit, jit_count, places, n);
	elf_symbols_close(symbols);
	return st;
}

static size_t count_kernel(const struct place *places, size_t n)
{
	size_t count = 0;

	while (count < n && !places[n - 1 - count].map &&
	       nt_perf_is_kernel(places[n - 1 - count].address))
		count++;
	return count;
}

enum nt_status perf_names_add(struct nt_perf *p, const struct perf_files *files,
			      bool *ret_kernel_hidden)
{
	size_t count = 0, jit_count = 0, kernel, next;
	struct place *places = find_places(p, files, &count);
	struct perf_jit_place *jit = calloc(count + 1, sizeof(*jit));
	enum nt_status st = places && jit ? NT_OK : NT_ENOMEM;

	*ret_kernel_hidden = false;

	for (size_t i = 0; i < count && st == NT_OK; i = next) {
		for (next = i; next < count && places[next].map == places[i].map;)
			next++;
		kernel = count_kernel(places + i, next - i);
		if (kernel)
			st = add_kernel(p, places + next - kernel, kernel, ret_kernel_hidden);
		if (st == NT_OK && next - i > kernel)
			st = add_group(p, files, places + i, next - i - kernel, jit, &jit_count);
	}
	if (st == NT_OK)
		st = perf_jit_add(p, files, jit, jit_count);
	free(jit);
	free(places);
	return st;
}
