/* SPDX-License-Identifier: MIT */
/* Objects, references and roots of a heap, by address and by index. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/heap/heapgraph.h"
#include "tests/support/failalloc.h"

static struct an_heapgraph g;

static void begin(unsigned pointer_size, size_t max_objects)
{
	an_heapgraph_init(&g, &nt_alloc_default, pointer_size, max_objects);
}

static void object(uint64_t address, uint64_t bytes, uint64_t edges)
{
	assert_int_equal(an_heapgraph_add_object(&g, address, bytes, 1, edges), NT_OK);
}

static void edge(uint64_t target)
{
	assert_int_equal(an_heapgraph_add_edge(&g, target), NT_OK);
}

static void finish(void)
{
	assert_int_equal(an_heapgraph_finish(&g), NT_OK);
}

static uint32_t edge_of(uint32_t object, size_t n)
{
	size_t first, end;

	an_heapgraph_edges(&g, object, &first, &end);
	assert_true(first + n < end);
	return an_heapgraph_edge(&g, first + n);
}

static size_t edges_of(uint32_t object)
{
	size_t first, end;

	an_heapgraph_edges(&g, object, &first, &end);
	return end - first;
}

static void edges_lead_to_objects(void **state)
{
	(void)state;
	begin(8, 0);
	edge(0x7f0000002000); /* references may come before their objects */
	object(0x7f0000001000, 24, 2);
	object(0x7f0000002000, 32, 0);
	object(0x550000000008, 40, 3);
	edge(0x550000000008);
	edge(0x7f0000001000);
	edge(0x550000000008); /* itself */
	edge(0x7f0000009000); /* nothing */
	finish();
	assert_int_equal(edges_of(0), 2);
	assert_int_equal(edge_of(0, 0), 1);
	assert_int_equal(edge_of(0, 1), 2);
	assert_int_equal(edges_of(1), 0);
	assert_int_equal(edge_of(2, 0), 0);
	assert_int_equal(edge_of(2, 1), 2);
	assert_int_equal(edge_of(2, 2), AN_HEAP_NONE);
	assert_int_equal(g.dangling, 1);
	assert_int_equal(an_heapgraph_address(&g, 2), 0x550000000008);
	assert_int_equal(g.bytes_total, 96);
	an_heapgraph_done(&g);
}

static void an_address_inside_finds_its_object(void **state)
{
	(void)state;
	begin(8, 0);
	object(0x7f0000000ff8, 24, 0);
	object(0x7f0000400000, 5u << 20, 0); /* over a page of addresses */
	object(0x7f0000a00000, 16, 0);
	finish();
	assert_int_equal(an_heapgraph_find(&g, 0x7f0000000ff8, false), 0);
	assert_int_equal(an_heapgraph_find(&g, 0x7f0000001000, false), AN_HEAP_NONE);
	assert_int_equal(an_heapgraph_find(&g, 0x7f0000001000, true), 0);
	assert_int_equal(an_heapgraph_find(&g, 0x7f0000001007, true), 0);
	assert_int_equal(an_heapgraph_find(&g, 0x7f0000001010, true), AN_HEAP_NONE);
	assert_int_equal(an_heapgraph_find(&g, 0x7f00008fffff, true), 1);
	assert_int_equal(an_heapgraph_find(&g, 0x7f0000900000, true), AN_HEAP_NONE);
	assert_int_equal(an_heapgraph_find(&g, 0x10, true), AN_HEAP_NONE);
	an_heapgraph_done(&g);
}

static void sizes_beyond_four_gigabytes_are_kept(void **state)
{
	(void)state;
	begin(8, 0);
	object(0x10000, UINT64_C(17) << 30, 0);
	object(0x20000, UINT32_MAX, 0);
	finish();
	assert_true(an_heapgraph_bytes(&g, 0) == UINT64_C(17) << 30);
	assert_true(an_heapgraph_bytes(&g, 1) == UINT32_MAX);
	an_heapgraph_done(&g);
}

static void pointers_of_four_bytes(void **state)
{
	(void)state;
	begin(4, 0);
	object(0x00801004, 12, 1);
	object(0xfffffffc, 12, 0);
	edge(0xfffffffc);
	finish();
	assert_int_equal(edge_of(0, 0), 1);
	assert_int_equal(an_heapgraph_address(&g, 0), 0x00801004);
	assert_int_equal(an_heapgraph_address(&g, 1), 0xfffffffc);
	an_heapgraph_done(&g);
}

static void what_makes_no_sense_is_counted(void **state)
{
	(void)state;
	begin(8, 0);
	object(0x1000, 24, 0);
	object(0x1000, 24, UINT64_MAX); /* the same address, and more references than can be */
	object(0x1003, 24, UINT64_MAX); /* no object is there */
	object(0, 24, 0);
	finish();
	assert_int_equal(g.duplicates, 1);
	assert_int_equal(an_heapgraph_find(&g, 0x1000, false), 0);
	assert_int_equal(edges_of(1), 0);
	assert_int_equal(g.object_total, 4);
	assert_int_equal(g.objects_beyond, 2);
	an_heapgraph_done(&g);
}

/* D#603: what is left out is counted, bytes and all. */
static void the_cap_is_counted(void **state)
{
	(void)state;
	begin(8, 3);
	for (uint64_t i = 0; i < 10; i++)
		object(0x1000 + 32 * i, 32, 1);
	for (uint64_t i = 0; i < 10; i++)
		edge(0x1000);
	finish();
	assert_int_equal(g.objects.count, 3);
	assert_int_equal(g.objects_beyond, 7);
	assert_int_equal(g.object_total, 10);
	assert_int_equal(g.bytes_total, 320);
	assert_int_equal(edge_of(1, 0), 0);
	an_heapgraph_done(&g);
}

static void pages_beyond_the_limit_are_counted(void **state)
{
	(void)state;
	begin(8, 0);
	for (uint64_t i = 0; i < 10000; i++)
		object(i << 40 | 0x1000, 24, 0);
	finish();
	assert_int_equal(g.addresses_beyond, 10000 - 8191);
	assert_int_equal(an_heapgraph_find(&g, UINT64_C(5) << 40 | 0x1000, false), 5);
	an_heapgraph_done(&g);
}

static void losses_leave_what_came_before(void **state)
{
	(void)state;
	begin(8, 0);
	object(0x1000, 24, 1);
	object(0x2000, 24, 1);
	an_heapgraph_lost_objects(&g);
	object(0x3000, 24, 1);
	edge(0x2000);
	an_heapgraph_lost_edges(&g);
	edge(0x1000);
	edge(0x1000);
	finish();
	assert_int_equal(edges_of(0), 1);
	assert_false(an_heapgraph_has_edges(&g, 1)); /* its reference was lost, or was not */
	assert_false(an_heapgraph_has_edges(&g, 2));
	assert_int_equal(edges_of(1), 0);
	an_heapgraph_done(&g);
}

static uint32_t label(const struct an_chunks *labels, uint32_t i)
{
	return *(const uint32_t *)an_chunks_at(labels, i);
}

static void root(uint64_t address, enum an_root_kind kind, unsigned flags)
{
	assert_int_equal(an_heapgraph_add_root(&g, address, kind, flags, 7, "field", 5), NT_OK);
}

static void the_nearest_root_labels(void **state)
{
	struct an_chunks labels;

	(void)state;
	begin(8, 0);
	object(0x1000, 24, 1); /* 0 -> 1 -> 2 */
	object(0x2000, 24, 1);
	object(0x3000, 24, 0);
	object(0x4000, 24, 0); /* a key of a weak table, */
	object(0x5000, 24, 0); /* its value */
	object(0x6000, 24, 0); /* only weakly held */
	edge(0x2000);
	edge(0x3000);
	root(0x3000, AN_ROOT_STACK, 0);
	root(0x1008, AN_ROOT_STATIC, AN_ROOT_INTERIOR);
	root(0x4000, AN_ROOT_HANDLE, 0);
	root(0x6000, AN_ROOT_HANDLE, AN_ROOT_WEAK);
	root(0, AN_ROOT_HANDLE, 0); /* refers to nothing */
	assert_int_equal(an_heapgraph_add_weak(&g, 0x4000, 0x5000), NT_OK);
	finish();
	assert_int_equal(g.root_count, 4);
	assert_int_equal(an_heapgraph_label_roots(&g, &labels), NT_OK);
	assert_int_equal(label(&labels, 0), 1);
	assert_int_equal(label(&labels, 1), 1);
	assert_int_equal(label(&labels, 2), 0); /* nearer than the static */
	assert_int_equal(label(&labels, 3), 2);
	assert_int_equal(label(&labels, 4), 2);
	assert_int_equal(label(&labels, 5), AN_HEAP_NONE);
	an_chunks_done(&labels, g.alloc);
	an_heapgraph_done(&g);
}

/* A million small objects side by side, two references each. */
static void an_object_takes_less_than_48_bytes(void **state)
{
	enum { N = 1000000 };
	struct failalloc fa;

	(void)state;
	failalloc_init(&fa, 0);
	an_heapgraph_init(&g, &fa.alloc, 8, 0);
	for (uint64_t i = 0; i < N; i++) {
		object(0x7f0000000000 + 24 * i, 24, 2);
		edge(0x7f0000000000 + 24 * (i * 7919 % N));
		edge(0x7f0000000000 + 24 * (i / 2));
	}
	finish();
	assert_int_equal(edge_of(1000, 0), 919000);
	assert_int_equal(edge_of(1000, 1), 500);
	assert_true(an_heapgraph_memory(&g) < 32u * N);
	assert_true(fa.peak_bytes < 48u * N);
	an_heapgraph_done(&g);
	assert_int_equal(fa.live, 0);
}

static void every_failing_allocation_is_survived(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct an_chunks labels = { 0 };
		enum nt_status st;

		an_heapgraph_init(&g, &fa.alloc, 8, 0);
		st = an_heapgraph_add_object(&g, 0x1000, UINT64_C(9) << 30, 1, 1);
		if (st == NT_OK)
			st = an_heapgraph_add_edge(&g, 0x1000);
		if (st == NT_OK)
			st = an_heapgraph_add_root(&g, 0x1000, AN_ROOT_STATIC, 0, 0, "f", 1);
		if (st == NT_OK)
			st = an_heapgraph_add_weak(&g, 0x1000, 0x1000);
		if (st == NT_OK)
			st = an_heapgraph_finish(&g);
		if (st == NT_OK)
			st = an_heapgraph_label_roots(&g, &labels);
		assert_int_equal(st, fa.failed ? NT_ENOMEM : NT_OK);
		an_chunks_done(&labels, &fa.alloc);
		an_heapgraph_done(&g);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(edges_lead_to_objects),
		cmocka_unit_test(an_address_inside_finds_its_object),
		cmocka_unit_test(sizes_beyond_four_gigabytes_are_kept),
		cmocka_unit_test(pointers_of_four_bytes),
		cmocka_unit_test(what_makes_no_sense_is_counted),
		cmocka_unit_test(the_cap_is_counted),
		cmocka_unit_test(pages_beyond_the_limit_are_counted),
		cmocka_unit_test(losses_leave_what_came_before),
		cmocka_unit_test(the_nearest_root_labels),
		cmocka_unit_test(an_object_takes_less_than_48_bytes),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
