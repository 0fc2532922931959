/* SPDX-License-Identifier: MIT */
/* The table of limits: whole, and moved only by values that say what they mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/limit.h"
#include "tests/support/play.h"

static void test_every_limit_has_a_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < AN_LIMITS; i++) {
		const struct an_limit_spec *s = &an_limit_specs[i];

		assert_non_null(s->name);
		assert_non_null(s->unit);
		assert_true(*s->what != '\0');
		assert_non_null(strchr(s->name, '.'));
		assert_int_equal(an_limits_find(s->name, strlen(s->name)), i);
	}
	assert_int_equal(an_limits_find("gc.tim", 6), AN_LIMITS);
	assert_int_equal(an_limits_find("gc.time", 6), AN_LIMITS);
	assert_int_equal(an_limits_find("", 0), AN_LIMITS);
}

static void test_initial_values(void **state)
{
	struct an_limits l;

	(void)state;
	an_limits_init(&l);
	for (size_t i = 0; i < AN_LIMITS; i++)
		assert_true(l.value[i] == an_limit_specs[i].initial);
}

/* The value of text for a limit; -1: refused, and nothing was changed. */
static double set(enum an_limit which, const char *text)
{
	struct an_limits l, before;
	bool good;

	an_limits_init(&l);
	before = l;
	good = an_limits_set(&l, which, text);
	if (!good)
		assert_memory_equal(&l, &before, sizeof(l));
	return good ? l.value[which] : -1;
}

static void test_values(void **state)
{
	(void)state;
	assert_true(set(AN_LIMIT_GC_TIME, "7.5") == 7.5);
	assert_true(set(AN_LIMIT_GC_TIME, "7.5%") == 7.5);
	assert_true(set(AN_LIMIT_GC_TIME, "0") == 0);
	assert_true(set(AN_LIMIT_CPU_HOT_CORES, "0.3cores") == 0.3);
	assert_true(set(AN_LIMIT_GC_TIME, "12.0000000000007") == 12.0000000000007);
	assert_true(set(AN_LIMIT_GC_LONG_PAUSE, "300ms") == 300);
	assert_true(set(AN_LIMIT_GC_LONG_PAUSE, "1.5s") == 1500);
	assert_true(set(AN_LIMIT_ALLOC_RATE, "50MB/s") == 50);
	assert_true(set(AN_LIMIT_JIT_DYNAMIC_RATE, "3/s") == 3);
	assert_true(set(AN_LIMIT_JIT_DYNAMIC_RATE, "3") == 3);
	assert_true(set(AN_LIMIT_TASKS_STUCK_TIMES, "2times") == 2);
}

static void test_refused(void **state)
{
	static const char *const bad[] = { "",
					   "x",
					   "-1",
					   "+1",
					   "1e3",
					   "1,5",
					   "1.",
					   ".5",
					   "1 %",
					   "1%%",
					   "nan",
					   "inf",
					   "1ms",
					   "0x10",
					   "1..2",
					   "1234567890123456",
					   "0.1234567890123456" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(set(AN_LIMIT_GC_TIME, bad[i]) == -1);
	assert_true(set(AN_LIMIT_GC_LONG_PAUSE, "300") == -1);
	assert_true(set(AN_LIMIT_GC_LONG_PAUSE, "300%") == -1);
	assert_true(set(AN_LIMIT_GC_LONG_PAUSE, "5m") == -1);
	assert_true(set(AN_LIMIT_ALLOC_RATE, "50") == -1);
	assert_true(set(AN_LIMIT_ALLOC_RATE, "50MB") == -1);
}

static void thrown(struct play *p, double ms)
{
	struct build b = { 0 };

	build_utf16(&b, "Shop.Broken");
	build_utf16(&b, "message");
	build_u64(&b, 0);
	build_u32(&b, 0);
	build_u16(&b, 0);
	build_u16(&b, 0);
	play_event(p, NT_PROV_RUNTIME, 80, 1, 7, ms, &b);
}

/* A moved limit is what the analyzer applies, and the report says that it was moved. */
static void test_applied(void **state)
{
	static const struct an_class *const classes[] = { &an_class_exceptions, NULL };
	struct an_limits l;
	const struct an_options options = { .limits = &l };

	(void)state;
	for (int many = 3; many <= 4; many++) {
		struct play p;

		an_limits_init(&l);
		l.value[AN_LIMIT_EXCEPTIONS_STORM] = 4;
		assert_true(play_begin(&p, NULL, classes, &options));
		for (int i = 0; i < many; i++)
			thrown(&p, 10 + i);
		assert_true(play_finds(&p, "exceptions.storm") == (many == 4));
		assert_true(an_get(play_report(&p), "limits") != NULL);
		assert_int_equal(an_get(play_report(&p), "limits")->count, 1);
		play_end(&p);
	}
}

static void test_not_moved_is_not_said(void **state)
{
	static const struct an_class *const classes[] = { &an_class_exceptions, NULL };
	struct an_limits l;
	const struct an_options options = { .limits = &l };
	struct play p;

	(void)state;
	an_limits_init(&l);
	assert_true(play_begin(&p, NULL, classes, &options));
	thrown(&p, 10);
	assert_null(an_get(play_report(&p), "limits"));
	play_end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_limit_has_a_row),
		cmocka_unit_test(test_initial_values),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_applied),
		cmocka_unit_test(test_not_moved_is_not_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
