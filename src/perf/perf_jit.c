/* SPDX-License-Identifier: MIT */
#include "src/perf/perf_jit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MAX_LINE = 4096, /* longer names are cut */
	MAX_LINES = 4 * 1000 * 1000,
	MAX_RECORDS = 4 * 1000 * 1000,
	LATE_NS = 10 * 1000 * 1000, /* so late may a record of code be that was already running */
};

struct search {
	struct perf_jit_place *places; /* rising */
	size_t count;
	bool no_memory;
};

static int by_address(const void *a, const void *b)
{
	const struct perf_jit_place *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* The code names all places that it holds, unless something better does. */
static void consider(struct search *s, const struct perf_code *code)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->places[mid].address < code->start)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < s->count && s->places[low].address <= code->last; low++) {
		struct perf_jit_place *place = &s->places[low];
		char *name;

		if (code->time_ns > place->last_ns && code->time_ns - place->last_ns > LATE_NS)
			continue;
		if (place->name && !perf_code_better(&place->code, code, place->last_ns))
			continue;
		name = strndup(code->name, code->name_bytes);
		s->no_memory = s->no_memory || !name;
		free(place->name);
		place->name = name;
		place->code = *code;
	}
}

/* A file of the process's that is not from one before it; NULL: none. */
static FILE *open_own(const struct perf_files *files, const char *path)
{
	int fd = perf_files_open(files, path);
	struct stat st;
	FILE *in;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) < 0 || st.st_mtime < files->started) {
		close(fd);
		return NULL;
	}
	in = fdopen(fd, "r");
	if (!in)
		close(fd);
	return in;
}

static void read_map(struct search *s, const struct perf_files *files)
{
	char path[64], line[MAX_LINE];
	bool rest = false; /* of a line that was too long */
	FILE *in;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)files->inner_pid);
	in = open_own(files, path);
	for (unsigned i = 0; in && i < MAX_LINES && fgets(line, sizeof(line), in); i++) {
		size_t n = strcspn(line, "\n");
		struct perf_code code;

		if (!rest && perf_map_line(line, n, &code))
			consider(s, &code);
		rest = line[n] != '\n';
	}
	if (in)
		fclose(in);
}

/* The file is mapped, so that profilers learn of it; by default it is in /tmp. */
static const char *find_dump(const struct perf_files *files, char *path, size_t size)
{
	char name[64];

	snprintf(name, sizeof(name), "/jit-%d.dump", (int)files->inner_pid);
	for (size_t i = files->count; i-- > 0;) {
		const char *file = files->maps[i].file;
		size_t n = strlen(file);

		if (n >= strlen(name) && strcmp(file + n - strlen(name), name) == 0)
			return file;
	}
	snprintf(path, size, "/tmp%s", name);
	return path;
}

static void read_dump(struct search *s, const struct perf_files *files)
{
	static uint8_t record[PERF_DUMP_CODE_BYTES + MAX_LINE];
	char path[128];
	FILE *in = open_own(files, find_dump(files, path, sizeof(path)));
	uint32_t skip = 0;
	bool sound = in && fread(record, PERF_DUMP_HEADER_BYTES, 1, in) == 1;

	if (sound)
		skip = perf_dump_header(record);
	sound = skip != 0;
	if (sound)
		skip -= PERF_DUMP_HEADER_BYTES;
	for (unsigned i = 0; sound && skip <= INT32_MAX && i < MAX_RECORDS; i++) {
		struct perf_code code;
		size_t n;

		if (fseek(in, (long)skip, SEEK_CUR) != 0 ||
		    fread(record, PERF_DUMP_RECORD_BYTES, 1, in) != 1)
			break;
		skip = perf_dump_length(record);
		if (!skip)
			break;
		n = skip < sizeof(record) ? skip : sizeof(record);
		if (n > PERF_DUMP_RECORD_BYTES &&
		    fread(record + PERF_DUMP_RECORD_BYTES, n - PERF_DUMP_RECORD_BYTES, 1, in) != 1)
			break;
		if (perf_dump_code(record, n, &code))
			consider(s, &code);
		skip -= (uint32_t)n;
	}
	if (in)
		fclose(in);
}

static enum nt_status add_symbols(struct nt_perf *p, const struct search *s)
{
	enum nt_status st = s->no_memory ? NT_ENOMEM : NT_OK;
	const struct perf_jit_place *last = NULL;

	for (size_t i = 0; i < s->count && st == NT_OK; i++) {
		const struct perf_jit_place *x = &s->places[i];
		bool again = last && x->name && last->code.start == x->code.start &&
			     strcmp(last->name, x->name) == 0;

		if (!x->name || again)
			continue;
		last = x;
		st = nt_perf_symbol(p, x->code.start, x->code.last, "", 0, x->name,
				    strlen(x->name));
	}
	return st;
}

enum nt_status perf_jit_add(struct nt_perf *p, const struct perf_files *files,
			    struct perf_jit_place *places, size_t count)
{
	struct search s = { .places = places, .count = count };
	enum nt_status st;

	if (!count)
		return NT_OK;
	qsort(places, count, sizeof(*places), by_address);
	read_map(&s, files);
	read_dump(&s, files);
	st = add_symbols(p, &s);
	for (size_t i = 0; i < count; i++) {
		free(places[i].name);
		places[i].name = NULL;
	}
	return st;
}
