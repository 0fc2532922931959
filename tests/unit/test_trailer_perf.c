/* SPDX-License-Identifier: MIT */
/* CPU samples behind the end of a trace: what is written comes back; nonsense is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nettrace/trailer_perf.h"
#include "tests/support/failalloc.h"

static void fill(struct nt_perf *p)
{
	static const uint64_t stacks[][3] = { { 0x7f0000001000, 0x7f0000000800, 0x400100 },
					      { 0x7f0000001004, 0x7f0000000800, 0x400100 },
					      { 0x400200, 0x400100, UINT64_MAX } };
	struct nt_perf_mapping m = { .start = 0x400000,
				     .last = 0x4fffff,
				     .offset = 0x1000,
				     .file = "/lib/a.so",
				     .build_id = { 1, 2, 3 },
				     .build_id_bytes = 3 };
	uint32_t thread;

	assert_int_equal(nt_perf_init(p, NULL), NT_OK);
	p->info.start_ns = 1000000000;
	p->info.end_ns = 9000000000;
	p->info.period_ns = 2004008;
	p->info.lost = 3;
	p->info.throttled = 4;
	p->info.dropped = 5;
	p->info.no_stack = 6;
	p->info.kernel_time = true;
	for (uint64_t i = 0; i < 50; i++)
		assert_int_equal(
			nt_perf_sample(p, 1000000000 + i * 2004008, 4711 + i % 2, stacks[i % 3], 3),
			NT_OK);
	assert_int_equal(nt_perf_thread(p, 4712, &thread), NT_OK);
	nt_perf_name_thread(p, thread, "worker", 6);
	assert_int_equal(nt_perf_map(p, &m, 9), NT_OK);
	m.start = 0x100;
	m.last = UINT64_MAX;
	m.file = "";
	m.build_id_bytes = 0;
	assert_int_equal(nt_perf_map(p, &m, 0), NT_OK);
	assert_int_equal(nt_perf_symbol(p, 0x400100, 0x4001ff, "/lib/a.so", 9, "f", 1), NT_OK);
	assert_int_equal(nt_perf_symbol(p, 0x10, 0x10, "/lib/other.so", 13, "g", 1), NT_OK);
	nt_perf_sort(p);
}

/* A whole block; the caller frees it. */
static uint8_t *save(const struct nt_perf *p, size_t *ret_len)
{
	struct nt_trailer t;
	const uint8_t *bytes;
	uint8_t *copy;

	nt_trailer_init(&t, &nt_alloc_default);
	nt_perf_save(p, &t);
	assert_int_equal(nt_trailer_finish(&t, &bytes, ret_len), NT_OK);
	copy = malloc(*ret_len);
	assert_non_null(copy);
	memcpy(copy, bytes, *ret_len);
	nt_trailer_done(&t);
	return copy;
}

static enum nt_status load(struct nt_perf *p, const uint8_t *block, size_t len)
{
	struct nt_trailer_record r;
	struct nt_span records;
	enum nt_status st = NT_OK;

	assert_null(nt_trailer_open(block, len, &records));
	while (st == NT_OK && nt_trailer_next(&records, &r))
		st = nt_perf_load(p, &r);
	return st;
}

static void what_is_written_comes_back(void **state)
{
	struct nt_perf p, q;
	uint8_t *block;
	size_t len;

	(void)state;
	fill(&p);
	block = save(&p, &len);
	assert_int_equal(nt_perf_init(&q, NULL), NT_OK);
	assert_int_equal(load(&q, block, len), NT_OK);
	assert_int_equal(q.info.start_ns, 1000000000);
	assert_int_equal(q.info.end_ns, 9000000000);
	assert_int_equal(q.info.period_ns, 2004008);
	assert_int_equal(q.info.unit_ns, NT_PERF_TIME_UNIT_NS);
	assert_int_equal(q.info.lost, 3);
	assert_int_equal(q.info.throttled, 4);
	assert_int_equal(q.info.dropped, 5);
	assert_int_equal(q.info.no_stack, 6);
	assert_true(q.info.kernel_time);
	assert_int_equal(q.samples, 50);
	assert_int_equal(q.node_count, p.node_count);
	for (size_t i = 0; i < p.node_count; i++)
		assert_true(q.nodes[i].address == p.nodes[i].address &&
			    q.nodes[i].caller == p.nodes[i].caller);
	assert_int_equal(q.row_count, p.row_count);
	for (size_t i = 0; i < p.row_count; i++)
		assert_true(q.rows[i].time == p.rows[i].time && q.rows[i].node == p.rows[i].node &&
			    q.rows[i].thread == p.rows[i].thread &&
			    q.rows[i].count == p.rows[i].count);
	assert_int_equal(q.thread_count, 2);
	assert_int_equal(q.threads[1].id, 4712);
	assert_string_equal(q.threads[1].name, "worker");
	assert_int_equal(q.mapping_count, 2);
	assert_string_equal(q.mappings[0].file, "/lib/a.so");
	assert_int_equal(q.mappings[0].last, 0x4fffff);
	assert_int_equal(q.mappings[0].build_id_bytes, 3);
	assert_int_equal(q.mappings[0].build_id[2], 3);
	assert_int_equal(q.mappings[1].start, 0x100);
	assert_int_equal(q.mappings[1].last, UINT64_MAX);
	assert_int_equal(q.symbol_count, 2);
	assert_string_equal(q.symbols[0].file, "/lib/a.so");
	assert_string_equal(q.symbols[0].name, "f");
	assert_int_equal(q.symbols[0].last, 0x4001ff);
	assert_string_equal(q.symbols[1].file, ""); /* no mapping of it is there */
	nt_perf_done(&p);
	nt_perf_done(&q);
	free(block);
}

/* The body of the first record of a kind. */
static struct nt_span body_of(const uint8_t *block, size_t len, uint32_t kind)
{
	struct nt_trailer_record r = { 0 };
	struct nt_span records;

	assert_null(nt_trailer_open(block, len, &records));
	while (r.kind != kind)
		assert_true(nt_trailer_next(&records, &r));
	return r.body;
}

/* Every record cut at every byte, and every byte of it changed: refused, or taken within bounds. */
static void hostile_records(void **state)
{
	struct nt_perf p;
	uint8_t *block;
	size_t len;

	(void)state;
	fill(&p);
	block = save(&p, &len);
	nt_perf_done(&p);
	for (uint32_t kind = NT_TRAILER_PERF_INFO; kind <= NT_TRAILER_PERF_THREAD; kind++) {
		struct nt_span body = body_of(block, len, kind);
		size_t n = nt_left(&body);

		for (size_t i = 0; i < 2 * n; i++) {
			size_t bytes = i < n ? i : n;
			uint8_t *copy = malloc(bytes + !bytes);
			struct nt_trailer_record r = { .kind = kind };
			enum nt_status st;

			assert_non_null(copy);
			memcpy(copy, body.cur, bytes);
			if (i >= n)
				copy[i - n] ^= 0xff;
			r.body = nt_span_of(copy, bytes);
			assert_int_equal(nt_perf_init(&p, NULL), NT_OK);
			assert_int_equal(load(&p, block, len), NT_OK);
			st = nt_perf_load(&p, &r);
			if (i < n)
				assert_int_equal(st, NT_EFORMAT);
			else
				assert_true(st == NT_OK || st == NT_EFORMAT);
			for (size_t k = 0; k < p.row_count; k++)
				assert_true(p.rows[k].node < p.node_count &&
					    p.rows[k].thread < p.thread_count);
			nt_perf_done(&p);
			free(copy);
		}
	}
	free(block);
}

static void load_bytes(uint32_t kind, const char *bytes, size_t n)
{
	struct nt_trailer_record r = { .kind = kind,
				       .body = nt_span_of((const uint8_t *)bytes, n) };
	struct nt_perf p;

	assert_int_equal(nt_perf_init(&p, NULL), NT_OK);
	assert_int_equal(nt_perf_load(&p, &r), NT_EFORMAT);
	nt_perf_done(&p);
}

static void references_to_nothing(void **state)
{
	(void)state;
	load_bytes(NT_TRAILER_PERF_STACK, "\1\2\0", 3); /* a caller before the root */
	load_bytes(NT_TRAILER_PERF_STACK, "\1\0\0", 3); /* itself */
	load_bytes(NT_TRAILER_PERF_STACK, "\2\1\2\2\0", 5); /* the same node twice */
	load_bytes(NT_TRAILER_PERF_SAMPLE, "\1\0\0\0\1", 5); /* no such thread */
	load_bytes(NT_TRAILER_PERF_SYMBOL, "\1\1\0\0\0", 5); /* no such mapping */
	load_bytes(NT_TRAILER_PERF_THREAD, "\2\5\0\5\0", 5); /* a thread twice */
	load_bytes(NT_TRAILER_PERF_INFO, "\0\0\0\0\0\0\0\0\0", 9); /* no unit of time */
	load_bytes(NT_TRAILER_PERF_THREAD, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 9);
}

static void every_allocation_may_fail(void **state)
{
	struct failalloc fa = { 0 };
	struct nt_perf p;
	uint8_t *block;
	size_t len;

	(void)state;
	fill(&p);
	block = save(&p, &len);
	nt_perf_done(&p);
	while (failalloc_next(&fa)) {
		enum nt_status st;

		st = nt_perf_init(&p, &fa.alloc);
		if (st == NT_OK)
			st = load(&p, block, len);
		assert_int_equal(st, fa.failed ? NT_ENOMEM : NT_OK);
		nt_perf_done(&p);
	}
	free(block);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_comes_back),
		cmocka_unit_test(hostile_records),
		cmocka_unit_test(references_to_nothing),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests_name("trailer_perf", tests, NULL, NULL);
}
