/* SPDX-License-Identifier: MIT */
/* Samples in bounded memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nettrace/perf_store.h"
#include "tests/support/failalloc.h"

static const uint64_t stack[] = { 0xa, 0xb, 0xc };

static void a_stack_is_kept_once(void **state)
{
	uint64_t frames[NT_PERF_MAX_FRAMES];
	struct nt_perf p;
	uint32_t node, again;

	(void)state;
	assert_int_equal(nt_perf_init(&p, NULL), NT_OK);
	assert_int_equal(nt_perf_intern(&p, stack, 3, &node), NT_OK);
	assert_int_equal(nt_perf_intern(&p, stack, 3, &again), NT_OK);
	assert_int_equal(node, again);
	assert_int_equal(p.node_count, 4);
	assert_int_equal(nt_perf_frames(&p, node, frames), 3);
	assert_memory_equal(frames, stack, sizeof(stack));
	assert_int_equal(nt_perf_intern(&p, stack + 1, 2, &again), NT_OK);
	assert_int_equal(p.nodes[node].caller, again);
	assert_int_equal(nt_perf_intern(&p, stack, 0, &again), NT_OK);
	assert_int_equal(again, NT_PERF_NO_STACK);
	nt_perf_done(&p);
}

static void many_stacks_stay_apart(void **state)
{
	struct nt_perf p;

	(void)state;
	assert_int_equal(nt_perf_init(&p, NULL), NT_OK);
	for (uint64_t i = 0; i < 20000; i++) {
		const uint64_t frames[] = { i, i * 3, 7 };
		uint64_t back[NT_PERF_MAX_FRAMES];
		uint32_t node;

		assert_int_equal(nt_perf_intern(&p, frames, 3, &node), NT_OK);
		assert_int_equal(nt_perf_frames(&p, node, back), 3);
		assert_memory_equal(back, frames, sizeof(frames));
	}
	assert_int_equal(p.node_count, 1 + 1 + 20000 + 20000);
	nt_perf_done(&p);
}

static void too_many_stacks_are_counted(void **state)
{
	struct nt_perf p;

	(void)state;
	assert_int_equal(nt_perf_init(&p, NULL), NT_OK);
	for (uint64_t i = 0; i < NT_PERF_MAX_NODES + 10; i++)
		assert_int_equal(nt_perf_sample(&p, 0, 1, &i, 1), NT_OK);
	assert_int_equal(p.node_count, NT_PERF_MAX_NODES);
	assert_int_equal(p.info.no_stack, 11); /* the root is a node as well */
	assert_int_equal(p.samples, NT_PERF_MAX_NODES + 10);
	assert_int_equal(p.rows[p.row_count - 1].node, NT_PERF_NO_STACK);
	nt_perf_done(&p);
}

static uint64_t sum(const struct nt_perf *p)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->row_count; i++)
		n += p->rows[i].count;
	return n;
}

static void time_becomes_coarser(void **state)
{
	struct nt_perf p;

	(void)state;
	assert_int_equal(nt_perf_init(&p, NULL), NT_OK);
	p.row_max = 100;
	p.info.start_ns = 1000;
	for (uint64_t i = 0; i < 10000; i++)
		assert_int_equal(nt_perf_sample(&p, 1000 + i * 2000000, i % 3, stack, 3), NT_OK);
	assert_in_range(p.row_count, 1, 100);
	assert_int_equal(sum(&p), 10000);
	assert_int_equal(p.samples, 10000);
	assert_int_equal(p.info.dropped, 0);
	assert_true(p.info.unit_ns > NT_PERF_TIME_UNIT_NS);
	nt_perf_sort(&p);
	for (size_t i = 0; i < p.row_count; i++) {
		/* Nothing is later than it was, nor moved by more than a unit. */
		assert_true(p.rows[i].time * p.info.unit_ns <= UINT64_C(9999) * 2000000);
		if (i)
			assert_true(p.rows[i - 1].time <= p.rows[i].time);
	}
	assert_int_equal(p.rows[p.row_count - 1].time, UINT64_C(9999) * 2000000 / p.info.unit_ns);
	nt_perf_done(&p);
}

static void what_cannot_merge_is_dropped_and_counted(void **state)
{
	struct nt_perf p;

	(void)state;
	assert_int_equal(nt_perf_init(&p, NULL), NT_OK);
	p.row_max = 100;
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(nt_perf_sample(&p, i * 5000000, 1, &i, 1), NT_OK);
	assert_int_equal(p.row_count, 100);
	assert_int_equal(p.info.dropped, 900);
	assert_int_equal(p.samples, 100);
	nt_perf_done(&p);
}

static void threads_have_names_and_a_limit(void **state)
{
	struct nt_perf p;
	uint32_t i;

	(void)state;
	assert_int_equal(nt_perf_init(&p, NULL), NT_OK);
	assert_int_equal(nt_perf_thread(&p, 77, &i), NT_OK);
	nt_perf_name_thread(&p, i, "worker", 6);
	assert_string_equal(p.threads[i].name, "worker");
	nt_perf_name_thread(&p, i, "0123456789012345678901234567890123456789", 40);
	assert_int_equal(strlen(p.threads[i].name), 31);
	for (uint64_t id = 1000; p.thread_count < NT_PERF_MAX_THREADS; id++)
		assert_int_equal(nt_perf_thread(&p, id, &i), NT_OK);
	assert_int_equal(nt_perf_thread(&p, 5, &i), NT_ELIMIT);
	assert_int_equal(nt_perf_thread(&p, 77, &i), NT_OK);
	assert_int_equal(nt_perf_sample(&p, 0, 5, stack, 3), NT_OK);
	assert_int_equal(p.info.dropped, 1);
	nt_perf_done(&p);
}

static void mappings_and_symbols(void **state)
{
	struct nt_perf_mapping m = { .start = 10, .last = 19, .file = "/a" };
	struct nt_perf p;

	(void)state;
	assert_int_equal(nt_perf_init(&p, NULL), NT_OK);
	assert_int_equal(nt_perf_map(&p, &m, 2), NT_OK);
	m = (struct nt_perf_mapping){ .start = 15, .last = 30, .file = "/b" };
	assert_int_equal(nt_perf_map(&p, &m, 2), NT_OK);
	assert_int_equal(p.mapping_count, 2); /* in the order in which they came */
	assert_string_equal(p.mappings[0].file, "/a");
	assert_int_equal(p.mappings[0].last, 19);
	assert_string_equal(p.mappings[1].file, "/b");
	assert_int_equal(p.mappings[1].start, 15);
	m.last = 14;
	assert_int_equal(nt_perf_map(&p, &m, 2), NT_EFORMAT);
	assert_int_equal(nt_perf_symbol(&p, 5, 4, "/a", 2, "f", 1), NT_EFORMAT);
	assert_int_equal(nt_perf_symbol(&p, 4, 5, "/a", 2, "f", 1), NT_OK);
	assert_int_equal(nt_perf_symbol(&p, 6, 7, "/a", 2, "g", 1), NT_OK);
	assert_int_equal(nt_perf_symbol(&p, 8, 9, "/b", 2, "h", 1), NT_OK);
	assert_ptr_equal(p.symbols[0].file, p.symbols[1].file);
	assert_string_equal(p.symbols[1].file, "/a");
	assert_string_equal(p.symbols[2].file, "/b");
	assert_string_equal(p.symbols[2].name, "h");
	nt_perf_done(&p);
}

static enum nt_status all_of_it(struct nt_perf *p)
{
	struct nt_perf_mapping m = { .start = 10, .last = 19, .file = "/a" };
	enum nt_status st = NT_OK;

	for (uint64_t i = 0; i < 5000 && st == NT_OK; i++) {
		const uint64_t frames[] = { i, i / 2 };

		st = nt_perf_sample(p, i * 1000000, i / 10, frames, 2);
	}
	if (st == NT_OK)
		st = nt_perf_map(p, &m, 2);
	return st == NT_OK ? nt_perf_symbol(p, 4, 5, "/a", 2, "f", 1) : st;
}

static void every_allocation_may_fail(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct nt_perf p;
		enum nt_status st;

		st = nt_perf_init(&p, &fa.alloc);
		if (st == NT_OK)
			st = all_of_it(&p);
		assert_int_equal(st, fa.failed ? NT_ENOMEM : NT_OK);
		nt_perf_done(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_is_kept_once),
		cmocka_unit_test(many_stacks_stay_apart),
		cmocka_unit_test(too_many_stacks_are_counted),
		cmocka_unit_test(time_becomes_coarser),
		cmocka_unit_test(what_cannot_merge_is_dropped_and_counted),
		cmocka_unit_test(threads_have_names_and_a_limit),
		cmocka_unit_test(mappings_and_symbols),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests_name("perf_store", tests, NULL, NULL);
}
