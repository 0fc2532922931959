/* SPDX-License-Identifier: MIT */

/* The kernel's ring buffer on arbitrary bytes; lines of /proc/PID/maps, perf maps, jitdump. */

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "nettrace/trailer_perf.h"
#include "src/perf/perf_files.h"
#include "src/perf/perf_map.h"
#include "src/perf/perf_record.h"

enum { RING = 1024 };

static void look_at_text(const char *text)
{
	if (strlen(text) > PERF_MAX_RECORD)
		abort();
}

static void on_sample(void *ctx, const struct perf_sample *s)
{
	(void)ctx;
	for (size_t i = 0; i < s->frame_count; i++)
		if (s->frames[i] >= UINT64_C(0xfffffffffffff001))
			abort();
}

static void on_mapping(void *ctx, const struct perf_mapping *m)
{
	(void)ctx;
	look_at_text(m->file);
	if (m->build_id_bytes > PERF_BUILD_ID_BYTES)
		abort();
}

static void on_thread(void *ctx, const struct perf_thread *t)
{
	(void)ctx;
	if (t->name)
		look_at_text(t->name);
}

static const struct perf_sink sink = { on_sample, on_mapping, on_thread, on_thread };

/* The bytes as a line of a perf map, and as the start of a jitdump file. */
static void look_at_code(const char *text, size_t size)
{
	const uint8_t *bytes = (const uint8_t *)text;
	struct perf_code code;

	if (perf_map_line(text, size, &code) && (code.last < code.start || !code.name_bytes))
		abort();
	if (size >= PERF_DUMP_RECORD_BYTES)
		perf_dump_length(bytes);
	if (size >= PERF_DUMP_HEADER_BYTES)
		perf_dump_header(bytes);
	if (perf_dump_code(bytes, size, &code) &&
	    (code.name + code.name_bytes >= text + size || code.last < code.start))
		abort();
}

/* The bytes as a record behind the end of a trace. */
static void load(const uint8_t *data, size_t size)
{
	struct nt_trailer_record r = { .kind = NT_TRAILER_PERF_INFO };
	struct nt_perf p;

	if (!size || nt_perf_init(&p, NULL) < 0)
		return;
	for (size_t i = 0; i < 2; i++) { /* again, on top of what is there */
		r.kind = NT_TRAILER_PERF_INFO + (data[0] >> (i * 3)) % 6u;
		r.body = nt_span_of(data + 1, size - 1);
		if (nt_perf_load(&p, &r) == NT_ENOMEM)
			abort();
	}
	for (size_t i = 0; i < p.row_count; i++)
		if (p.rows[i].node >= p.node_count || p.rows[i].thread >= p.thread_count)
			abort();
	nt_perf_done(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct perf_scratch scratch;
	struct perf_counts counts = { 0 };
	struct perf_mapping m;
	uint8_t *ring = malloc(RING);
	char *line = malloc(size + 1);
	uint64_t tail = size ? data[0] * 8u : 0;

	if (!ring || !line)
		abort();
	memcpy(line, data, size);
	line[size] = '\0';
	if (perf_files_parse(line, &m) && !m.bytes)
		abort();
	look_at_code(line, size);
	load(data, size);
	if (size > RING)
		size = RING;
	for (size_t i = 1; i < size; i++)
		ring[(tail + i - 1) % RING] = data[i];
	if (size && perf_ring_read(ring, RING, tail, tail + size - 1, &scratch, &sink, NULL,
				   &counts) != tail + size - 1)
		abort();
	free(ring);
	free(line);
	return 0;
}
