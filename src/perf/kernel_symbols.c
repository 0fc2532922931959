/* SPDX-License-Identifier: MIT */
#include "src/perf/kernel_symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_LINE = 1024,
	MAX_SYMBOLS = 2 * 1000 * 1000,
	MAX_FUNCTION = 1 << 20, /* bytes; farther from the last symbol is something else */
	MAX_MAPPING = 128 << 20,
};

/* --- lines --- */

struct line {
	uint64_t address;
	const char *name;
	size_t name_bytes;
};

/* False: it is none of a function with an address. */
static bool parse(const char *text, struct line *ret)
{
	char *end;

	errno = 0;
	ret->address = strtoull(text, &end, 16);
	if (errno || end == text || end[0] != ' ' || !end[1] || !strchr("tTwW", end[1]) ||
	    end[2] != ' ')
		return false;
	ret->name = end + 3;
	ret->name_bytes = strcspn(ret->name, "\t\n");
	return ret->name_bytes && nt_perf_is_kernel(ret->address);
}

/* Calls for each line, until it returns less than NT_OK. */
static enum nt_status
read_lines(const char *path, enum nt_status (*see)(void *ctx, const struct line *line), void *ctx)
{
	FILE *in = fopen(path, "re");
	enum nt_status st = NT_OK;
	char text[MAX_LINE];
	struct line line;

	while (in && st == NT_OK && fgets(text, sizeof(text), in))
		if (parse(text, &line))
			st = see(ctx, &line);
	if (in)
		fclose(in);
	return st;
}

/* --- first pass: where functions begin --- */

struct starts {
	uint64_t *at;
	size_t count, cap;
};

static enum nt_status note_start(void *ctx, const struct line *line)
{
	struct starts *s = ctx;

	if (s->count == MAX_SYMBOLS)
		return NT_OK;
	if (s->count == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 64 * 1024;
		uint64_t *more = reallocarray(s->at, cap, sizeof(*more));

		if (!more)
			return NT_ENOMEM;
		s->at = more;
		s->cap = cap;
	}
	s->at[s->count++] = line->address;
	return NT_OK;
}

static int rising(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* --- second pass: the names of those that were sampled --- */

struct function {
	uint64_t start, last;
	bool named; /* several names may have one address: the first one counts */
};

struct search {
	struct nt_perf *perf;
	struct function *functions; /* rising */
	size_t count;
};

static void find_functions(struct search *s, const struct starts *starts, const uint64_t *addresses,
			   size_t count)
{
	size_t k = 0;

	for (size_t i = 0; i < count; i++) {
		struct function f;

		while (k < starts->count && starts->at[k] <= addresses[i])
			k++;
		if (k == 0 || addresses[i] - starts->at[k - 1] >= MAX_FUNCTION)
			continue;
		f = (struct function){ .start = starts->at[k - 1],
				       .last = k < starts->count ? starts->at[k] - 1
								 : addresses[i] };
		if (s->count && s->functions[s->count - 1].start == f.start)
			s->count--;
		s->functions[s->count++] = f;
	}
}

static int by_start(const void *key, const void *element)
{
	const uint64_t *at = key;
	const struct function *f = element;

	return (*at > f->start) - (*at < f->start);
}

static enum nt_status name_function(void *ctx, const struct line *line)
{
	struct search *s = ctx;
	struct function *f = bsearch(&line->address, s->functions, s->count, sizeof(*f), by_start);
	char name[MAX_LINE + sizeof(KERNEL_SYMBOLS_PREFIX)];

	if (!f || f->named)
		return NT_OK;
	f->named = true;
	snprintf(name, sizeof(name), KERNEL_SYMBOLS_PREFIX "%.*s", (int)line->name_bytes,
		 line->name);
	return nt_perf_symbol(s->perf, f->start, f->last, KERNEL_SYMBOLS_FILE,
			      strlen(KERNEL_SYMBOLS_FILE), name, strlen(name));
}

/* --- the whole --- */

/* So that code without a name is the kernel's at least. */
static enum nt_status add_mappings(struct nt_perf *p, const uint64_t *addresses, size_t count)
{
	enum nt_status st = NT_OK;

	for (size_t i = 0, next; i < count && st == NT_OK; i = next) {
		struct nt_perf_mapping m = { .start = addresses[i], .file = KERNEL_SYMBOLS_FILE };

		for (next = i; next < count && addresses[next] - m.start < MAX_MAPPING; next++)
			m.last = addresses[next];
		st = nt_perf_map(p, &m, strlen(KERNEL_SYMBOLS_FILE));
	}
	return st;
}

enum nt_status kernel_symbols_add(struct nt_perf *p, const char *path, const uint64_t *addresses,
				  size_t count, bool *ret_hidden)
{
	struct search search = { .perf = p };
	struct starts starts = { 0 };
	enum nt_status st;

	*ret_hidden = false;
	if (!count)
		return NT_OK;
	st = add_mappings(p, addresses, count);
	if (st == NT_OK)
		st = read_lines(path, note_start, &starts);
	search.functions = calloc(count, sizeof(*search.functions));
	if (st == NT_OK && !search.functions)
		st = NT_ENOMEM;
	*ret_hidden = st == NT_OK && !starts.count;
	if (st == NT_OK && starts.count) {
		qsort(starts.at, starts.count, sizeof(*starts.at), rising);
		find_functions(&search, &starts, addresses, count);
		st = read_lines(path, name_function, &search);
	}
	free(search.functions);
	free(starts.at);
	return st;
}
