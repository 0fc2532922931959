/* SPDX-License-Identifier: MIT */
/* Sums by method against a walk over every stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/profile.h"
#include "tests/support/failalloc.h"
#include "tests/support/play.h"

/* The CPU class brings the call tree; its section is not looked at. */
static const struct an_class *const classes[] = { &an_class_cpu, NULL };

static struct play p;

enum { METHODS = 6, STACKS = 3000, DEEP = 12 };

static uint32_t rng(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Method k has the addresses from 0x1000 * (k + 1) on. */
static uint64_t address(uint32_t method, uint32_t *seed)
{
	return 0x1000 * (uint64_t)(method + 1) + 8 + rng(seed) % 4;
}

static void name_methods(void)
{
	static const char *const names[METHODS] = { "A", "B", "C", "D", "E", "F" };

	p.frame_count = 0;
	for (uint64_t k = 0; k + 1 < METHODS; k++) /* F has no name */
		play_method(&p, true, 0x1000 * (k + 1), 0x1000, "", names[k], "", 1);
}

static const struct an_profile_row *find(const struct an_profile *profile, const char *name)
{
	for (size_t i = 0; i < profile->row_count; i++)
		if (profile->rows[i].method && !strcmp(profile->rows[i].method->raw, name))
			return &profile->rows[i];
	return NULL;
}

struct sums {
	uint64_t self[METHODS][AN_STATES], total[METHODS][AN_STATES];
};

/* Interns random stacks, the same each time; adds them to the profile and to the plain sums. */
static void play_stacks(const struct an_shared *s, struct an_profile *profile, struct sums *sums)
{
	uint32_t seed = 5;

	for (int i = 0; i < STACKS; i++) {
		size_t depth = 1 + rng(&seed) % DEEP;
		unsigned st = rng(&seed) % AN_STATES;
		uint64_t weight = 1 + rng(&seed) % 9;
		uint32_t node, seen = 0;
		const struct nt_event ev = {
			.trace = &p.trace, .process_id = 1, .stack = p.stack, .frame_count = depth
		};

		for (size_t k = 0; k < depth; k++) {
			uint32_t method = rng(&seed) % METHODS;

			p.stack[k] = address(method, &seed);
			sums->self[method][st] += k ? 0 : weight;
			sums->total[method][st] += seen & 1u << method ? 0 : weight;
			seen |= 1u << method;
		}
		assert_int_equal(an_calltree_intern(s->tree, &ev, &node), NT_OK);
		if (profile)
			an_profile_add(profile, node, st, weight);
	}
}

static void sums_agree_with_every_stack(void **state)
{
	struct sums sums = { 0 }, ignored = { 0 };
	const struct an_shared *s;
	struct an_profile profile;
	uint64_t unnamed = 0;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	s = an_engine_borrow_shared(p.engine);
	play_stacks(s, NULL, &ignored); /* a profile is made when the tree is complete */
	assert_int_equal(an_profile_init(&profile, s), NT_OK);
	play_stacks(s, &profile, &sums);
	name_methods();
	assert_int_equal(an_profile_build(&profile), NT_OK);
	for (size_t k = 0; k + 1 < METHODS; k++) {
		const char name[2] = { (char)('A' + k), 0 };
		const struct an_profile_row *row = find(&profile, name);

		assert_non_null(row);
		assert_memory_equal(row->self, sums.self[k], sizeof(sums.self[k]));
		assert_memory_equal(row->total, sums.total[k], sizeof(sums.total[k]));
	}
	for (size_t i = 0; i < profile.row_count; i++)
		if (!profile.rows[i].method)
			unnamed += an_profile_sum(profile.rows[i].self, ~0u);
	assert_int_equal(unnamed, an_profile_sum(sums.self[METHODS - 1], ~0u));
	for (unsigned states = 1; states < 1u << AN_STATES; states++) {
		assert_int_equal(an_profile_sort(&profile, states), NT_OK);
		for (size_t i = 1; i < profile.row_count; i++) {
			const struct an_profile_row *a = &profile.rows[profile.order[i - 1]];
			const struct an_profile_row *b = &profile.rows[profile.order[i]];

			assert_true(an_profile_sum(a->self, states) >=
				    an_profile_sum(b->self, states));
		}
	}
	an_profile_done(&profile);
	play_end(&p);
}

static void nothing_counted_has_no_path(void **state)
{
	struct an_hot_frame frames[4];
	struct an_profile profile;
	size_t n = 9;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	assert_int_equal(an_profile_init(&profile, an_engine_borrow_shared(p.engine)), NT_OK);
	assert_int_equal(an_profile_build(&profile), NT_OK);
	assert_int_equal(profile.row_count, 0);
	assert_int_equal(an_profile_hot_path(&profile, 7, false, frames, 4, &n), NT_OK);
	assert_int_equal(n, 0);
	assert_int_equal(an_profile_sort(&profile, 7), NT_OK);
	an_profile_done(&profile);
	play_end(&p);
}

/* One frame twice in a row, as on-stack replacement leaves it, is one step. */
static void equal_neighbours_can_be_merged(void **state)
{
	static const uint64_t stack[] = { 0x2010, 0x2020, 0x2030, 0x1010 };
	const struct nt_event ev = {
		.trace = &p.trace, .process_id = 1, .stack = stack, .frame_count = 4
	};
	struct an_hot_frame frames[8];
	struct an_profile profile;
	const struct an_shared *s;
	uint32_t node;
	size_t n;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	s = an_engine_borrow_shared(p.engine);
	assert_int_equal(an_calltree_intern(s->tree, &ev, &node), NT_OK);
	name_methods();
	assert_int_equal(an_profile_init(&profile, s), NT_OK);
	an_profile_add(&profile, node, 0, 5);
	assert_int_equal(an_profile_build(&profile), NT_OK);
	assert_int_equal(an_profile_hot_path(&profile, 1, false, frames, 8, &n), NT_OK);
	assert_int_equal(n, 4);
	assert_int_equal(an_profile_hot_path(&profile, 1, false, frames, 2, &n), NT_OK);
	assert_int_equal(n, 2);
	assert_int_equal(an_profile_hot_path(&profile, 1, true, frames, 8, &n), NT_OK);
	assert_int_equal(n, 2);
	assert_int_equal(frames[1].self, 5);
	assert_int_equal(frames[1].total, 5);
	an_profile_done(&profile);
	play_end(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_agree_with_every_stack),
		cmocka_unit_test(nothing_counted_has_no_path),
		cmocka_unit_test(equal_neighbours_can_be_merged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
