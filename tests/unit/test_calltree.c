/* SPDX-License-Identifier: MIT */
/* Stacks to nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/calltree.h"
#include "tests/support/build.h"
#include "tests/support/failalloc.h"

static const struct nt_trace_info trace = { .format = 4, .pointer_size = 8 };

static uint32_t intern(struct an_calltree *t, uint32_t stack_id, const uint64_t *stack, size_t n)
{
	const struct nt_event ev = { .trace = &trace,
				     .process_id = 1,
				     .stack_id = stack_id,
				     .stack = stack,
				     .frame_count = n };
	uint32_t node = 0;

	assert_int_equal(an_calltree_intern(t, &ev, &node), NT_OK);
	return node;
}

/* A method at [start, start + 0x100). */
static void load(struct an_methods *m, uint64_t start, const char *name)
{
	const struct nt_event_def def = {
		.provider_id = NT_PROV_RUNTIME, .event_id = 143, .name = "", .provider = ""
	};
	struct nt_event ev = { .def = &def, .trace = &trace, .process_id = 1 };
	struct build b = { 0 };

	build_u64(&b, start);
	build_u64(&b, 0);
	build_u64(&b, start);
	build_u32(&b, 0x100);
	build_u64(&b, 0);
	build_utf16(&b, "");
	build_utf16(&b, name);
	ev.payload = b.bytes;
	ev.payload_bytes = b.count;
	assert_int_equal(an_methods_event(m, &ev), NT_OK);
	build_done(&b);
}

static void equal_stacks_are_one_node(void **state)
{
	static const uint64_t a[] = { 0x10, 0x20, 0x30 }, b[] = { 0x11, 0x20, 0x30 };
	struct an_methods *m = an_methods_new(NULL);
	struct an_calltree *t = an_calltree_new(NULL, m);
	uint32_t node = intern(t, 0, a, 3), other = intern(t, 0, b, 3);

	(void)state;
	assert_int_equal(intern(t, 0, a, 3), node);
	assert_int_not_equal(node, other);
	assert_int_equal(an_calltree_count(t), 1 + 4); /* the root, two callers, two leaves */
	assert_int_equal(an_calltree_node(t, node)->address, 0x10);
	assert_true(an_calltree_node(t, node)->leaf);
	assert_int_equal(an_calltree_node(t, node)->parent, an_calltree_node(t, other)->parent);
	node = an_calltree_node(t, node)->parent;
	assert_int_equal(an_calltree_node(t, node)->address, 0x20);
	assert_false(an_calltree_node(t, node)->leaf);
	node = an_calltree_node(t, an_calltree_node(t, node)->parent)->parent;
	assert_int_equal(node, AN_NODE_NONE);
	assert_int_equal(intern(t, 0, NULL, 0), AN_NODE_NONE);
	assert_int_equal(intern(t, 9, NULL, 0), AN_NODE_NONE);
	an_calltree_free(t);
	an_methods_free(m);
}

/* A return address is behind the call: the first byte of the next method belongs to the caller. */
static void leaves_and_callers_are_looked_up_differently(void **state)
{
	static const uint64_t caller[] = { 0x5000, 0x1100 }, leaf[] = { 0x1100 };
	struct an_methods *m = an_methods_new(NULL);
	struct an_calltree *t = an_calltree_new(NULL, m);
	uint32_t a, b;

	(void)state;
	load(m, 0x1000, "Caller");
	load(m, 0x1100, "Next");
	a = an_calltree_node(t, intern(t, 0, caller, 2))->parent;
	b = intern(t, 0, leaf, 1);
	assert_int_not_equal(a, b);
	assert_string_equal(an_calltree_method(t, a)->raw, "Caller");
	assert_string_equal(an_calltree_method(t, b)->raw, "Next");
	assert_null(an_calltree_method(t, AN_NODE_NONE));
	an_calltree_free(t);
	an_methods_free(m);
}

static void new_code_at_an_address_is_a_new_node(void **state)
{
	static const uint64_t stack[] = { 0x1010, 0x2010 };
	struct an_methods *m = an_methods_new(NULL);
	struct an_calltree *t = an_calltree_new(NULL, m);
	uint32_t before, after;

	(void)state;
	load(m, 0x1000, "First");
	before = intern(t, 7, stack, 2);
	assert_int_equal(intern(t, 7, stack, 2), before);
	load(m, 0x1000, "Second"); /* the stack id stays the same: what it meant does not */
	after = intern(t, 7, stack, 2);
	assert_int_not_equal(after, before);
	assert_string_equal(an_calltree_method(t, before)->raw, "First");
	assert_string_equal(an_calltree_method(t, after)->raw, "Second");
	an_calltree_free(t);
	an_methods_free(m);
}

/* With an id the frames are not looked at again, until the ids begin anew. */
static void stack_ids_are_remembered_for_their_epoch(void **state)
{
	static const uint64_t a[] = { 0x10, 0x20 }, b[] = { 0x11, 0x21 };
	struct an_methods *m = an_methods_new(NULL);
	struct an_calltree *t = an_calltree_new(NULL, m);
	struct nt_event ev = {
		.trace = &trace, .process_id = 1, .stack_id = 5, .stack = a, .frame_count = 2
	};
	uint32_t first, again, next;

	(void)state;
	assert_int_equal(an_calltree_intern(t, &ev, &first), NT_OK);
	ev.stack = b; /* would be a fault of the decoder, but shows that the id was used */
	assert_int_equal(an_calltree_intern(t, &ev, &again), NT_OK);
	assert_int_equal(again, first);
	ev.stack_epoch = 1;
	assert_int_equal(an_calltree_intern(t, &ev, &next), NT_OK);
	assert_int_not_equal(next, first);
	assert_int_equal(an_calltree_node(t, next)->address, 0x11);
	ev.stack_id = 5 + 16 * 1024; /* the same place of the cache */
	ev.stack = a;
	assert_int_equal(an_calltree_intern(t, &ev, &again), NT_OK);
	assert_int_equal(again, first);
	an_calltree_free(t);
	an_methods_free(m);
}

static void stacks_of_any_depth_are_fine(void **state)
{
	enum { DEPTH = 20000 };
	static uint64_t stack[DEPTH];
	struct an_methods *m = an_methods_new(NULL);
	struct an_calltree *t = an_calltree_new(NULL, m);
	uint32_t node;
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < DEPTH; i++)
		stack[i] = 0x1000 + i % 3; /* deep recursion */
	node = intern(t, 1, stack, DEPTH);
	while (node != AN_NODE_NONE) {
		assert_int_equal(an_calltree_node(t, node)->address, stack[n++]);
		node = an_calltree_node(t, node)->parent;
	}
	assert_int_equal(n, DEPTH);
	an_calltree_free(t);
	an_methods_free(m);
}

static void what_does_not_fit_is_folded(void **state)
{
	struct failalloc fa;
	struct an_methods *m;
	struct an_calltree *t;
	uint32_t other = 0;

	(void)state;
	failalloc_init(&fa, 0);
	m = an_methods_new(&fa.alloc);
	t = an_calltree_new(&fa.alloc, m);
	for (uint64_t i = 0; i < 450000; i++) {
		uint32_t node = intern(t, (uint32_t)i + 1, &i, 1);

		if (an_calltree_node(t, node)->other) {
			assert_true(!other || node == other);
			other = node;
		} else {
			assert_int_equal(other, 0);
		}
	}
	assert_int_not_equal(other, 0);
	assert_int_equal(an_calltree_folded(t), 450000 - 399999);
	assert_int_equal(an_calltree_count(t), 400001);
	assert_null(an_calltree_method(t, other));
	assert_true(fa.peak_bytes < 48 << 20);
	intern(t, 450000, &(uint64_t){ 449999 }, 1); /* counted when it comes from the cache, too */
	assert_int_equal(an_calltree_folded(t), 450000 - 399999 + 1);
	an_calltree_free(t);
	an_methods_free(m);
	assert_int_equal(fa.live, 0);
}

static void every_failing_allocation_is_survived(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct an_methods *m;
		struct an_calltree *t = NULL;
		enum nt_status st = NT_OK;

		m = an_methods_new(&fa.alloc);
		if (m)
			t = an_calltree_new(&fa.alloc, m);
		for (uint64_t i = 0; t && i < 5000 && st == NT_OK; i++) {
			const struct nt_event ev = {
				.trace = &trace, .process_id = 1, .stack = &i, .frame_count = 1
			};
			uint32_t node;

			st = an_calltree_intern(t, &ev, &node);
		}
		assert_true(st == NT_OK || (st == NT_ENOMEM && fa.failed));
		an_calltree_free(t);
		an_methods_free(m);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_stacks_are_one_node),
		cmocka_unit_test(leaves_and_callers_are_looked_up_differently),
		cmocka_unit_test(new_code_at_an_address_is_a_new_node),
		cmocka_unit_test(stack_ids_are_remembered_for_their_epoch),
		cmocka_unit_test(stacks_of_any_depth_are_fine),
		cmocka_unit_test(what_does_not_fit_is_folded),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
