/* SPDX-License-Identifier: MIT */
/* Field lists of definitions: how deep, how long, how much memory; and bytes that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nettrace/decoder.h"
#include "tests/support/build.h"
#include "tests/support/failalloc.h"

enum { ROOM = 1 << 20, GRAMMARS = 3 };

static void code(struct build *b, enum nt_field_grammar g, unsigned v)
{
	if (g == NT_FIELDS_V6)
		build_u8(b, v);
	else
		build_u32(b, v);
}

static void list_count(struct build *b, enum nt_field_grammar g, unsigned count)
{
	if (g == NT_FIELDS_V6)
		build_u16(b, count);
	else
		build_u32(b, count);
}

/* A field of that type, which is freed; V1's is the type and a name. */
static void field(struct build *b, enum nt_field_grammar g, struct build *type)
{
	struct build f = { 0 };

	if (g == NT_FIELDS_V1) {
		build_append(b, type);
		build_utf16(b, "n");
		return;
	}
	if (g == NT_FIELDS_V6)
		build_str6(&f, "n");
	else
		build_utf16(&f, "n");
	build_append(&f, type);
	list_count(b, g, (unsigned)f.count + (g == NT_FIELDS_V2 ? 4 : 0));
	build_append(b, &f);
}

/* depth objects around a number. */
static struct build objects(enum nt_field_grammar g, size_t depth)
{
	struct build list = { 0 }, type = { 0 };

	code(&type, g, NT_T_I32);
	field(&list, g, &type);
	while (depth--) {
		code(&type, g, NT_T_OBJECT);
		list_count(&type, g, 1);
		build_append(&type, &list);
		field(&list, g, &type);
	}
	return list;
}

static struct build arrays(enum nt_field_grammar g, size_t depth)
{
	struct build list = { 0 }, type = { 0 };

	while (depth--)
		code(&type, g, NT_T_ARRAY);
	code(&type, g, NT_T_I32);
	field(&list, g, &type);
	return list;
}

/* Walks all of a list; names must be there. */
static size_t weigh(const struct nt_field *fields, size_t count, size_t depth)
{
	size_t weight = count;

	assert_true(depth < 2000);
	for (size_t i = 0; i < count; i++)
		weight += strlen(fields[i].name) +
			  weigh(fields[i].children, fields[i].child_count, depth + 1);
	return weight;
}

/* Reads from a heap block of exactly that size. */
static enum nt_status read_list(struct nt_arena *arena, enum nt_field_grammar g,
				const struct build *b, uint32_t count, size_t *ret_weight)
{
	uint8_t *copy = malloc(b->count ? b->count : 1);
	const struct nt_field *fields = NULL;
	struct nt_span s = nt_span_of(copy, b->count);
	size_t n = 0;
	enum nt_status st;

	if (b->count)
		memcpy(copy, b->bytes, b->count);
	st = nt_read_fields(arena, &s, g, false, count, &fields, &n);
	free(copy);
	*ret_weight = st == NT_OK ? weigh(fields, n, 0) : 0;
	return st;
}

static enum nt_status read_alone(enum nt_field_grammar g, struct build *b, uint32_t count)
{
	struct nt_arena arena;
	size_t weight;
	enum nt_status st;

	nt_arena_init(&arena, &nt_alloc_default, ROOM);
	st = read_list(&arena, g, b, count, &weight);
	nt_arena_done(&arena);
	build_done(b);
	return st;
}

static void no_fields_are_a_list_too(void **state)
{
	(void)state;
	for (int g = 0; g < GRAMMARS; g++) {
		struct build b = { 0 };

		build_u8(&b, 0xff);
		assert_int_equal(read_alone((enum nt_field_grammar)g, &b, 0), NT_OK);
	}
}

static void objects_are_nested_32_deep_at_most(void **state)
{
	(void)state;
	for (int g = 0; g < GRAMMARS; g++) {
		struct build fine = objects((enum nt_field_grammar)g, 31);
		struct build deep = objects((enum nt_field_grammar)g, 32);

		assert_int_equal(read_alone((enum nt_field_grammar)g, &fine, 1), NT_OK);
		assert_int_equal(read_alone((enum nt_field_grammar)g, &deep, 1), NT_EFORMAT);
	}
}

static void arrays_are_nested_32_deep_at_most(void **state)
{
	(void)state;
	for (int g = NT_FIELDS_V2; g < GRAMMARS; g++) {
		struct build fine = arrays((enum nt_field_grammar)g, 32);
		struct build deep = arrays((enum nt_field_grammar)g, 33);

		assert_int_equal(read_alone((enum nt_field_grammar)g, &fine, 1), NT_OK);
		assert_int_equal(read_alone((enum nt_field_grammar)g, &deep, 1), NT_EFORMAT);
	}
}

static void endless_nesting_is_refused_at_once(void **state)
{
	(void)state;
	for (int g = 0; g < GRAMMARS; g++) {
		struct build b = { 0 };

		for (size_t i = 0; i < 100000; i++) {
			code(&b, (enum nt_field_grammar)g, NT_T_OBJECT);
			list_count(&b, (enum nt_field_grammar)g, 1);
		}
		assert_int_equal(read_alone((enum nt_field_grammar)g, &b, 1), NT_EFORMAT);
		build_repeat(&b, g == NT_FIELDS_V6 ? NT_T_ARRAY : 0, 100000);
		assert_int_equal(read_alone((enum nt_field_grammar)g, &b, 1), NT_EFORMAT);
	}
}

/* No memory is asked for by a count that the bytes cannot hold. */
static void a_count_without_bytes_costs_nothing(void **state)
{
	(void)state;
	for (int g = 0; g < GRAMMARS; g++) {
		struct build b = objects((enum nt_field_grammar)g, 0);
		struct failalloc fa;
		struct nt_arena arena;
		size_t weight;

		failalloc_init(&fa, 0);
		nt_arena_init(&arena, &fa.alloc, ROOM);
		assert_int_equal(
			read_list(&arena, (enum nt_field_grammar)g, &b, UINT32_MAX, &weight),
			NT_EFORMAT);
		assert_int_equal(fa.calls, 0);
		nt_arena_done(&arena);
		build_done(&b);
	}
}

static void a_span_that_is_bad_already_is_no_list(void **state)
{
	struct nt_arena arena;
	struct nt_span s = nt_span_of((const uint8_t *)"", 0);
	const struct nt_field *fields;
	size_t n;

	(void)state;
	nt_u8(&s);
	nt_arena_init(&arena, &nt_alloc_default, ROOM);
	assert_int_equal(nt_read_fields(&arena, &s, NT_FIELDS_V2, false, 0, &fields, &n),
			 NT_EFORMAT);
	nt_arena_done(&arena);
}

/* --- memory --- */

static struct build long_list(enum nt_field_grammar g, unsigned count)
{
	struct build list = { 0 };

	for (unsigned i = 0; i < count; i++) {
		struct build one = objects(g, i % 3);

		build_append(&list, &one);
	}
	return list;
}

static void memory_may_end_at_any_allocation(void **state)
{
	(void)state;
	for (int g = 0; g < GRAMMARS; g++) {
		struct build b = long_list((enum nt_field_grammar)g, 2000);
		struct failalloc fa = { 0 };
		size_t weight;

		while (failalloc_next(&fa)) {
			struct nt_arena arena;
			enum nt_status st;

			nt_arena_init(&arena, &fa.alloc, ROOM);
			st = read_list(&arena, (enum nt_field_grammar)g, &b, 2000, &weight);
			assert_int_equal(st, fa.failed ? NT_ENOMEM : NT_OK);
			nt_arena_done(&arena);
		}
		assert_true(fa.fail_at > 3);
		build_done(&b);
	}
}

static void a_full_arena_is_a_limit(void **state)
{
	(void)state;
	for (int g = 0; g < GRAMMARS; g++) {
		struct build b = long_list((enum nt_field_grammar)g, 2000);

		for (size_t room = 0; room < 100000; room += 9000) {
			struct nt_arena arena;
			size_t weight;

			nt_arena_init(&arena, &nt_alloc_default, room);
			assert_int_equal(
				read_list(&arena, (enum nt_field_grammar)g, &b, 2000, &weight),
				NT_ELIMIT);
			assert_true(arena.bytes <= room);
			nt_arena_done(&arena);
		}
		build_done(&b);
	}
}

/* --- bytes that are no list --- */

static uint32_t seed;

static uint32_t next_random(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

/* Small numbers are what types, counts and sizes are made of. */
static void put_noise(struct build *b, size_t n)
{
	while (n--)
		build_u8(b, next_random(3)   ? 0
			    : next_random(4) ? next_random(28)
					     : next_random(256));
}

static void any_bytes_are_read_or_refused(void **state)
{
	size_t read = 0;

	(void)state;
	for (seed = 1; seed < 30000; seed += 7) {
		enum nt_field_grammar g = (enum nt_field_grammar)(seed % GRAMMARS);
		uint32_t saved = seed;
		struct build b = objects(g, next_random(4));
		struct nt_arena arena;
		size_t weight;
		enum nt_status st;

		for (size_t n = next_random(4); n--;)
			build_patch_u8(&b, next_random((uint32_t)b.count), next_random(30));
		put_noise(&b, next_random(60));
		nt_arena_init(&arena, &nt_alloc_default, ROOM);
		st = read_list(&arena, g, &b, 1 + next_random(3), &weight);
		assert_true(st == NT_OK || st == NT_EFORMAT);
		read += st == NT_OK;
		nt_arena_done(&arena);
		build_done(&b);
		seed = saved;
	}
	assert_true(read > 100); /* the noise was not only refused */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_fields_are_a_list_too),
		cmocka_unit_test(objects_are_nested_32_deep_at_most),
		cmocka_unit_test(arrays_are_nested_32_deep_at_most),
		cmocka_unit_test(endless_nesting_is_refused_at_once),
		cmocka_unit_test(a_count_without_bytes_costs_nothing),
		cmocka_unit_test(a_span_that_is_bad_already_is_no_list),
		cmocka_unit_test(memory_may_end_at_any_allocation),
		cmocka_unit_test(a_full_arena_is_a_limit),
		cmocka_unit_test(any_bytes_are_read_or_refused),
	};

	return cmocka_run_group_tests_name("fields", tests, NULL, NULL);
}
