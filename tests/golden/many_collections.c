/* SPDX-License-Identifier: MIT */

/*
 * many_collections COUNT: writes a V4 trace of a program with that many collections to standard
 * output, each with all events that a runtime sends for it; every hundredth has a long pause.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/build.h"

enum { BLOCK = 500, THREAD = 42, MS = 1000000 };

static const struct {
	uint32_t id, version;
} kinds[] = { { 1, 2 }, { 2, 1 }, { 3, 1 },   { 4, 2 },	 { 7, 1 },
	      { 8, 1 }, { 9, 1 }, { 202, 0 }, { 204, 3 } };

static void define(struct build *b)
{
	struct build rows = { 0 }, content = { 0 };

	for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct build def = { 0 };
		size_t version;

		build_definition_head(&def, i + 1, "Microsoft-Windows-DotNETRuntime", kinds[i].id,
				      "");
		version = def.count - 8;
		build_u32(&def, 0); /* fields: the reader knows them */
		build_patch_u32(&def, version, kinds[i].version);
		build_definition_row(&rows, &def);
	}
	build_rows_header(&content, 1);
	build_append(&content, &rows);
	build_object(b, 4, "MetadataBlock", &content);
}

struct writer {
	struct build rows;
	uint64_t now, last; /* ns since the start */
};

static void event(struct writer *w, uint32_t id, uint64_t ns, struct build *payload)
{
	uint32_t kind = 0;
	struct build_row r;

	while (kinds[kind].id != id)
		kind++;
	r = (struct build_row){ .metadata_id = kind + 1,
				.sequence_delta = 1,
				.capture = THREAD,
				.thread = THREAD,
				.ticks_delta = ns - w->last,
				.payload = payload->bytes,
				.payload_bytes = payload->count };
	w->last = ns;
	build_row(&w->rows, false, &r);
	build_done(payload);
}

static void numbers(struct writer *w, uint32_t id, uint64_t ns, const uint32_t *v, size_t n)
{
	struct build b = { 0 };

	for (size_t i = 0; i < n; i++)
		build_u32(&b, v[i]);
	build_u16(&b, 0);
	if (id == 1)
		build_u64(&b, 0);
	event(w, id, ns, &b);
}

static void heap_stats(struct writer *w, uint64_t ns)
{
	struct build b = { 0 };

	for (uint64_t i = 0; i < 10; i++)
		build_u64(&b, i * 1000);
	for (int i = 0; i < 3; i++)
		build_u32(&b, 1);
	build_u16(&b, 0);
	build_u64(&b, 0);
	build_u64(&b, 0);
	event(w, 4, ns, &b);
}

static void per_heap(struct writer *w, uint64_t ns)
{
	struct build b = { 0 };

	build_repeat(&b, 0, 82);
	build_u32(&b, 5);
	for (uint64_t i = 0; i < 50; i++)
		build_u64(&b, i * 1000);
	event(w, 204, ns, &b);
}

static void collection(struct writer *w, uint32_t i)
{
	const uint32_t start[] = { i, i % 3, 0, 0 }, suspend[] = { 1, i }, end[] = { i, i % 3 };
	uint64_t at = (uint64_t)i * 5 * MS + MS, length = i % 100 ? 400000 + i : 3 * MS + i;

	numbers(w, 9, at, suspend, 2);
	numbers(w, 8, at + 10000, NULL, 0);
	numbers(w, 1, at + 20000, start, 4);
	for (uint32_t k = 0; k < 4; k++) {
		struct build b = { 0 };

		build_u32(&b, 0);
		build_u16(&b, 0);
		build_u32(&b, k);
		build_u64(&b, 1000);
		event(w, 202, at + 30000 + k * 1000, &b);
	}
	per_heap(w, at + 50000);
	numbers(w, 2, at + 60000, end, 2);
	heap_stats(w, at + 70000);
	numbers(w, 7, at + length - 10000, NULL, 0);
	numbers(w, 3, at + length, NULL, 0);
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000;
	struct build b = build_new(4);
	struct writer w = { .last = 0 };

	define(&b);
	for (uint32_t i = 0; i < count; i++) {
		collection(&w, i);
		if (i % BLOCK == BLOCK - 1 || i + 1 == count) {
			build_rows(&b, 4, &w.rows);
			w.last = 0; /* times in a block begin anew */
		}
	}
	build_close(&b, 4);
	if (fwrite(b.bytes, 1, b.count, stdout) != b.count)
		return 1;
	build_done(&b);
	return 0;
}
