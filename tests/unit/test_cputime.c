/* SPDX-License-Identifier: MIT */
#include "analyzers/cpu/cputime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/cpu/cputime_internal.h"
#include "tests/support/failalloc.h"

#define MS INT64_C(1000000)

enum { BASE_MS = 5000000 };

/* Window number n, of 100 ms. */
static int64_t begin_of(int64_t n)
{
	return (BASE_MS + 100 * n) * MS;
}

static enum nt_status window(struct an_cputime *t, int64_t n)
{
	return an_cputime_window(t, begin_of(n), begin_of(n + 1));
}

static uint32_t begin(struct an_cputime *t, uint64_t id, int64_t since_ns)
{
	uint32_t i;

	assert_int_equal(an_cputime_begin(t, id, since_ns, &i), NT_OK);
	return i;
}

static void use(struct an_cputime *t, uint32_t i, int64_t ms)
{
	assert_int_equal(an_cputime_use(t, i, (uint64_t)(ms * MS), 0), NT_OK);
}

static int64_t used_ms(const struct an_cputime *t, uint64_t id, int64_t from_ms, int64_t to_ms)
{
	int64_t ns = an_cputime_used(t, id, (BASE_MS + from_ms) * MS, (BASE_MS + to_ms) * MS);

	return ns < 0 ? ns : ns / MS;
}

/* Thread 7 uses 60, 0, 30 ms in three windows; thread 8 nothing, and is there from the second on.
 */
static struct an_cputime *scene(const struct nt_alloc *alloc)
{
	static const int64_t ms[] = { 60, 0, 30 };
	struct an_cputime *t = an_cputime_new(alloc);
	uint32_t busy, idle = 0;

	assert_non_null(t);
	busy = begin(t, 7, begin_of(0));
	for (int64_t n = 0; n < 3; n++) {
		if (n == 1)
			idle = begin(t, 8, begin_of(1));
		assert_int_equal(window(t, n), NT_OK);
		use(t, busy, ms[n]);
		if (n > 0)
			use(t, idle, 0);
	}
	an_cputime_look(t, busy, "worker 1", 'R');
	an_cputime_look(t, idle, "", 'S');
	return t;
}

static void check_scene(const struct an_cputime *t)
{
	assert_int_equal(used_ms(t, 7, 0, 100), 60);
	assert_int_equal(used_ms(t, 7, 100, 200), 0);
	assert_int_equal(used_ms(t, 7, 0, 300), 90);
	assert_int_equal(used_ms(t, 7, 50, 250), 45); /* in proportion */
	assert_int_equal(used_ms(t, 7, 98, 99), 0); /* 0.6 ms of it */
	assert_int_equal(an_cputime_used(t, 7, begin_of(0), begin_of(0) + MS), 600000);
	assert_int_equal(used_ms(t, 8, 100, 300), 0); /* idle is 0 … */
	assert_int_equal(used_ms(t, 8, 0, 100), -1); /* … but before it lived nothing is known, */
	assert_int_equal(used_ms(t, 9, 0, 100), -1); /* nor of other threads, */
	assert_int_equal(used_ms(t, 7, -200, -100), -1); /* nor of other times */
	assert_int_equal(used_ms(t, 7, 300, 400), -1);
	assert_int_equal(used_ms(t, 7, 250, 251), 0);
	assert_int_equal(used_ms(t, 7, 250, 250), -1);
	assert_true(an_cputime_until(t) == begin_of(3));
	assert_true(an_cputime_since(t) == begin_of(0));
	assert_string_equal(an_cputime_find(t, 7)->name, "worker 1");
	assert_int_equal(an_cputime_find(t, 7)->state, 'R');
	assert_true(an_cputime_find(t, 7)->cpu_ns == 90 * (uint64_t)MS);
	assert_null(an_cputime_find(t, 9));
}

static void windows_answer_in_proportion(void **state)
{
	struct an_cputime *t = scene(&nt_alloc_default);

	(void)state;
	check_scene(t);
	an_cputime_free(t);
}

static void windows_must_rise(void **state)
{
	struct an_cputime *t = scene(&nt_alloc_default);

	(void)state;
	assert_int_equal(window(t, 2), NT_EFORMAT);
	assert_int_equal(an_cputime_window(t, begin_of(4), begin_of(4)), NT_EFORMAT);
	assert_int_equal(an_cputime_window(t, begin_of(5), begin_of(4)), NT_EFORMAT);
	assert_int_equal(an_cputime_window(t, begin_of(4), INT64_MAX), NT_EFORMAT);
	assert_int_equal(window(t, 4), NT_OK); /* a gap is none of ours */
	an_cputime_free(t);
}

/* A thread id comes back as another thread: each has its own time. */
static void thread_ids_are_used_again(void **state)
{
	struct an_cputime *t = an_cputime_new(&nt_alloc_default);
	uint32_t i;

	(void)state;
	i = begin(t, 7, begin_of(0));
	assert_int_equal(window(t, 0), NT_OK);
	use(t, i, 50);
	an_cputime_end(t, i);
	assert_int_equal(window(t, 1), NT_OK);
	i = begin(t, 7, begin_of(2));
	assert_int_equal(window(t, 2), NT_OK);
	use(t, i, 20);
	assert_int_equal(used_ms(t, 7, 0, 100), 50);
	assert_int_equal(used_ms(t, 7, 100, 200), -1);
	assert_int_equal(used_ms(t, 7, 200, 300), 20);
	assert_true(an_cputime_find(t, 7)->cpu_ns == 20 * (uint64_t)MS);
	an_cputime_free(t);
}

/* Resolution goes, totals stay. */
static void many_windows_become_fewer(void **state)
{
	struct an_cputime *t = an_cputime_new(&nt_alloc_default);
	struct an_cputime_stats stats;
	uint32_t i;

	(void)state;
	t->max_windows = 10;
	i = begin(t, 7, begin_of(0));
	for (int64_t n = 0; n < 11; n++) {
		assert_int_equal(window(t, n), NT_OK);
		use(t, i, n < 2 ? 40 : 10);
	}
	an_cputime_get_stats(t, &stats);
	assert_int_equal(stats.merged, 1);
	assert_int_equal(stats.windows, 6);
	assert_int_equal(used_ms(t, 7, 0, 200), 80);
	assert_int_equal(used_ms(t, 7, 0, 1100), 170);
	assert_int_equal(used_ms(t, 7, 1000, 1100), 10);
	for (int64_t n = 11; n < 1000; n++) {
		assert_int_equal(window(t, n), NT_OK);
		use(t, i, 10);
	}
	an_cputime_get_stats(t, &stats);
	assert_true(stats.windows <= 10);
	assert_int_equal(used_ms(t, 7, 0, 100000), 80 + 998 * 10);
	an_cputime_free(t);
}

static void many_slices_become_fewer(void **state)
{
	struct an_cputime *t = an_cputime_new(&nt_alloc_default);

	(void)state;
	t->max_slices = 40;
	for (uint64_t k = 1; k <= 10; k++)
		begin(t, k, begin_of(0));
	for (int64_t n = 0; n < 64; n++) {
		assert_int_equal(window(t, n), NT_OK);
		for (uint32_t i = 0; i < 10; i++)
			use(t, i, (int64_t)i);
	}
	assert_true(t->slices <= 50);
	assert_int_equal(used_ms(t, 10, 0, 6400), 9 * 64);
	assert_int_equal(used_ms(t, 1, 0, 6400), 0);
	an_cputime_free(t);
}

/* Those that ended first go first; those that live stay, and further ones have no place. */
static void many_threads_are_forgotten(void **state)
{
	struct an_cputime *t = an_cputime_new(&nt_alloc_default);
	struct an_cputime_stats stats;
	uint32_t index;

	(void)state;
	t->max_threads = 4;
	for (uint64_t id = 1; id <= 5; id++) {
		index = begin(t, id, begin_of((int64_t)id));
		assert_int_equal(window(t, (int64_t)id), NT_OK);
		use(t, index, 10);
		if (id <= 2)
			an_cputime_end(t, index);
	}
	an_cputime_get_stats(t, &stats);
	assert_int_equal(stats.forgotten, 2);
	assert_true(stats.forgotten_ns == 20 * (uint64_t)MS);
	assert_null(an_cputime_find(t, 1));
	assert_int_equal(used_ms(t, 3, 300, 400), 10);
	assert_int_equal(used_ms(t, 5, 500, 600), 10);
	begin(t, 6, begin_of(6));
	assert_int_equal(begin(t, 7, begin_of(6)), AN_CPUTIME_NONE);
	an_cputime_get_stats(t, &stats);
	assert_int_equal(stats.crowded, 1);
	assert_int_equal(an_cputime_use(t, AN_CPUTIME_NONE, 1, 1), NT_OK);
	an_cputime_free(t);
}

/* --- the block --- */

static enum nt_status save_and_load(const struct an_cputime *t, int64_t from, int64_t to,
				    struct an_cputime *into)
{
	struct nt_trailer out;
	const uint8_t *block;
	struct nt_span records;
	struct nt_trailer_record r;
	enum nt_status st = NT_OK;
	size_t len;

	nt_trailer_init(&out, &nt_alloc_default);
	an_cputime_save(t, from, to, &out);
	assert_int_equal(nt_trailer_finish(&out, &block, &len), NT_OK);
	assert_null(nt_trailer_open(block, len, &records));
	while (st == NT_OK && nt_trailer_next(&records, &r))
		st = an_cputime_load(into, &r);
	nt_trailer_done(&out);
	return st;
}

static void what_is_saved_comes_back(void **state)
{
	const struct an_cputime_info info = { AN_CPUTIME_SCHEDSTAT, 4711, 123 * 1000, true, 99 };
	struct an_cputime *t = scene(&nt_alloc_default), *u = an_cputime_new(&nt_alloc_default);

	(void)state;
	an_cputime_set_info(t, &info);
	assert_int_equal(save_and_load(t, INT64_MIN, INT64_MAX, u), NT_OK);
	check_scene(u);
	assert_int_equal(an_cputime_borrow_info(u)->source, AN_CPUTIME_SCHEDSTAT);
	assert_int_equal(an_cputime_borrow_info(u)->process_id, 4711);
	assert_int_equal(an_cputime_borrow_info(u)->process_ns, 123 * 1000);
	assert_true(an_cputime_borrow_info(u)->process_known);
	assert_int_equal(an_cputime_borrow_info(u)->cost_ns, 99);
	an_cputime_free(u);
	an_cputime_free(t);
}

/* A piece of a recording has its own windows. */
static void a_part_can_be_saved(void **state)
{
	struct an_cputime *t = scene(&nt_alloc_default), *u = an_cputime_new(&nt_alloc_default);

	(void)state;
	assert_int_equal(save_and_load(t, begin_of(2), INT64_MAX, u), NT_OK);
	assert_int_equal(used_ms(u, 7, 200, 300), 30);
	assert_true(an_cputime_since(u) == begin_of(2));
	assert_true(an_cputime_find(u, 7)->cpu_ns == 30 * (uint64_t)MS);
	an_cputime_free(u);
	u = an_cputime_new(&nt_alloc_default);
	assert_int_equal(save_and_load(t, begin_of(3), INT64_MAX, u), NT_OK);
	assert_true(an_cputime_since(u) == INT64_MAX);
	an_cputime_free(u);
	an_cputime_free(t);
}

/* A file may have more than this program keeps. */
static void more_is_loaded_than_fits(void **state)
{
	struct an_cputime *t = an_cputime_new(&nt_alloc_default);

	(void)state;
	begin(t, 7, begin_of(0));
	for (int64_t n = 0; n < 1000; n++) {
		assert_int_equal(window(t, n), NT_OK);
		use(t, 0, n % 2 ? 20 : 40);
	}
	for (size_t limit = 1; limit <= 1000; limit = limit * 3 + 1) {
		struct an_cputime *u = an_cputime_new(&nt_alloc_default);

		u->max_windows = limit + 1;
		u->max_slices = limit;
		assert_int_equal(save_and_load(t, INT64_MIN, INT64_MAX, u), NT_OK);
		assert_true(u->window_count <= limit + 1);
		assert_int_equal(used_ms(u, 7, 0, 100000), 30000);
		assert_in_range(used_ms(u, 7, 20000, 30000), 2980, 3020);
		an_cputime_free(u);
	}
	an_cputime_free(t);
}

/* Records made of every byte value at every place: refused or not, nothing worse. */
static void records_are_not_believed(void **state)
{
	struct an_cputime *t = scene(&nt_alloc_default);
	struct nt_trailer out;
	struct nt_span records;
	struct nt_trailer_record r[8];
	const uint8_t *block;
	size_t len, count = 0;

	(void)state;
	nt_trailer_init(&out, &nt_alloc_default);
	an_cputime_save(t, INT64_MIN, INT64_MAX, &out);
	assert_int_equal(nt_trailer_finish(&out, &block, &len), NT_OK);
	assert_null(nt_trailer_open(block, len, &records));
	while (nt_trailer_next(&records, &r[count]))
		count++;
	assert_int_equal(count, 4);
	for (size_t at = 0; at < len * 256; at++) {
		uint8_t *byte = &out.bytes[at / 256], was = *byte;
		struct an_cputime *u = an_cputime_new(&nt_alloc_default);

		*byte = (uint8_t)at;
		for (size_t i = 0; i < count; i++)
			(void)!an_cputime_load(u, &r[i]);
		(void)!an_cputime_load(u, &r[1]);
		an_cputime_used(u, 7, INT64_MIN, INT64_MAX);
		an_cputime_used(u, 7, begin_of(0), begin_of(3));
		an_cputime_free(u);
		*byte = was;
	}
	nt_trailer_done(&out);
	an_cputime_free(t);
}

static enum nt_status everything(const struct nt_alloc *alloc, struct an_cputime **ret)
{
	struct an_cputime *t = an_cputime_new(alloc);
	enum nt_status st = t ? NT_OK : NT_ENOMEM;

	*ret = t;
	for (uint64_t id = 1; id < 40 && st == NT_OK; id++) {
		uint32_t index;

		t->max_threads = 16;
		st = an_cputime_begin(t, id, begin_of((int64_t)id), &index);
		if (st == NT_OK)
			st = window(t, (int64_t)id);
		if (st == NT_OK)
			st = an_cputime_use(t, index, 5, 0);
		an_cputime_end(t, index);
	}
	return st;
}

static void each_allocation_may_fail(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct an_cputime *t;
		enum nt_status st;

		st = everything(&fa.alloc, &t);
		assert_int_equal(st, fa.failed ? NT_ENOMEM : NT_OK);
		an_cputime_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_answer_in_proportion),
		cmocka_unit_test(windows_must_rise),
		cmocka_unit_test(thread_ids_are_used_again),
		cmocka_unit_test(many_windows_become_fewer),
		cmocka_unit_test(many_slices_become_fewer),
		cmocka_unit_test(many_threads_are_forgotten),
		cmocka_unit_test(what_is_saved_comes_back),
		cmocka_unit_test(a_part_can_be_saved),
		cmocka_unit_test(more_is_loaded_than_fits),
		cmocka_unit_test(records_are_not_believed),
		cmocka_unit_test(each_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
