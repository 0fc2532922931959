/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/store/trend.h"

#define HOUR  INT64_C(3600000)
#define DAY   (24 * HOUR)
#define BEGIN INT64_C(1790000000000)

enum { WEEKS = 2, A_DAY = 24, COUNT = WEEKS * 7 * A_DAY };

/* Numbers that look random and are the same everywhere. */
static uint64_t seed;

static double uniform(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(seed >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	double r = sqrt(-2 * log(uniform()));

	return r * cos(6.283185307179586 * uniform());
}

enum model { PLAIN, HEAVY_TAILS, LIKE_NEIGHBOURS, DAILY, DAILY_AND_LIKE, COUNTS, MODELS };

/* Two weeks of samples, one an hour, of something that does not change. */
static void make(struct trend_point *p, enum model model)
{
	double state = normal();

	for (int i = 0; i < COUNT; i++) {
		double hour = sin(6.283185307179586 * (i % A_DAY) / A_DAY);
		double v = 0;

		state = 0.6 * state + 0.8 * normal();
		switch (model) {
		case PLAIN:
			v = 100 + 10 * normal();
			break;
		case HEAVY_TAILS:
			v = exp(2 * normal());
			break;
		case LIKE_NEIGHBOURS:
			v = 100 + 10 * state;
			break;
		case DAILY:
			v = 100 + 50 * hour + 5 * normal();
			break;
		case DAILY_AND_LIKE:
			v = exp(hour + 0.2 * state);
			break;
		case COUNTS:
			v = uniform() < 0.1 ? floor(5 * uniform()) : 0;
			break;
		case MODELS:
			break;
		}
		p[i] = (struct trend_point){ BEGIN + i * HOUR, v };
	}
}

static struct trend_change compare(const struct trend_point *p, size_t count, size_t series)
{
	struct trend_limits l = trend_limits_default;
	struct trend_change c;

	l.series = series;
	assert_true(trend_compare(p, count, BEGIN + 7 * DAY, &l, &c));
	return c;
}

/* Of runs that look at many series in which nothing changes, at most one in a hundred cries. */
static void test_false_alarms(void **state)
{
	const char *is_long = getenv("DRD_LONG");
	int runs = is_long ? 2000 : 300, series = 18, cried = 0;
	struct trend_point p[COUNT];

	(void)state;
	seed = 1;
	for (int run = 0; run < runs; run++) {
		bool any = false;

		for (int s = 0; s < series; s++) {
			struct trend_change c;

			make(p, (enum model)(s % MODELS));
			c = compare(p, COUNT, (size_t)series);
			assert_int_not_equal(c.verdict, TREND_TOO_FEW);
			any = any || c.verdict != TREND_SAME;
		}
		cried += any;
	}
	print_message("false alarms: %d of %d runs\n", cried, runs);
	assert_true(cried * 100 <= runs);
}

/* The test by itself, without the limits of size, keeps what it promises for each kind of data. */
static void test_chances_are_right(void **state)
{
	int runs = getenv("DRD_LONG") ? 4000 : 600;
	struct trend_point p[COUNT];

	(void)state;
	seed = 2;
	for (int model = 0; model < MODELS; model++) {
		int below = 0;

		for (int run = 0; run < runs; run++) {
			make(p, (enum model)model);
			below += compare(p, COUNT, 1).p < 0.05;
		}
		print_message("model %d: p < 0.05 in %.1f %%\n", model, 100.0 * below / runs);
		assert_true(below <= runs * 0.08);
	}
}

/* How often a series that becomes that many times as large from a moment on is found, and when. */
static double power(enum model model, double times, int from)
{
	int runs = getenv("DRD_LONG") ? 1000 : 100, found = 0;
	struct trend_point p[COUNT];

	for (int run = 0; run < runs; run++) {
		struct trend_change c;

		make(p, model);
		for (int i = from; i < COUNT; i++)
			p[i].value *= times;
		c = compare(p, COUNT, 40);
		if (c.verdict != TREND_UP || llabs(c.since_ms - (BEGIN + from * HOUR)) > DAY)
			continue;
		found++;
		assert_true(fabs(c.share + 1 - times) < 0.25 * times);
	}
	print_message("%.2f times, model %d: found in %d of %d\n", times, (int)model, found, runs);
	return (double)found / runs;
}

static void test_power(void **state)
{
	int wednesday = 9 * A_DAY;

	(void)state;
	seed = 3;
	assert_true(power(PLAIN, 2, wednesday) > 0.99);
	assert_true(power(PLAIN, 1.2, wednesday) > 0.95);
	assert_true(power(LIKE_NEIGHBOURS, 2, wednesday) > 0.95);
	assert_true(power(DAILY, 2, wednesday) > 0.95);
	assert_true(power(DAILY_AND_LIKE, 2, wednesday) > 0.90);
}

static void test_down(void **state)
{
	struct trend_point p[COUNT];
	struct trend_change c;

	(void)state;
	seed = 4;
	make(p, PLAIN);
	for (int i = 8 * A_DAY; i < COUNT; i++)
		p[i].value /= 2;
	c = compare(p, COUNT, 1);
	assert_int_equal(c.verdict, TREND_DOWN);
	assert_true(c.effect < -0.5);
	assert_true(fabs(c.before - 100) < 5 && fabs(c.after - 50) < 5);
}

/* Just below and just at the least number of samples. */
static void test_too_few(void **state)
{
	struct trend_point p[COUNT];
	size_t least = trend_limits_default.min_samples;

	(void)state;
	seed = 5;
	for (size_t n = least - 1; n <= least; n++) {
		struct trend_change c;

		for (size_t i = 0; i < 2 * n; i++)
			p[i] = (struct trend_point){
				.time_ms = BEGIN + (i < n ? 0 : 7 * DAY) + (int64_t)(i % n) * HOUR,
				.value = i < n ? 10 + normal() : 30 + normal(),
			};
		c = compare(p, 2 * n, 1);
		assert_int_equal(c.verdict, n < least ? TREND_TOO_FEW : TREND_UP);
		assert_int_equal(c.before_count, n);
		assert_int_equal(c.after_count, n);
	}
	assert_int_equal(compare(p, 0, 1).verdict, TREND_TOO_FEW);
}

/* A change that is certain but small is none; the limit of size on both sides. */
static void test_small_change(void **state)
{
	static const struct {
		double times;
		enum trend_verdict verdict;
	} cases[] = { { 1.09, TREND_SAME }, { 1.12, TREND_UP } };
	struct trend_point p[COUNT];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		seed = 6;
		for (int j = 0; j < COUNT; j++)
			p[j] = (struct trend_point){ BEGIN + j * HOUR, 100 + normal() };
		for (int j = 7 * A_DAY; j < COUNT; j++)
			p[j].value *= cases[i].times;
		assert_int_equal(compare(p, COUNT, 1).verdict, cases[i].verdict);
	}
}

static void test_constant(void **state)
{
	struct trend_point p[COUNT];
	struct trend_change c;

	(void)state;
	for (int i = 0; i < COUNT; i++)
		p[i] = (struct trend_point){ BEGIN + i * HOUR, 0 };
	c = compare(p, COUNT, 1);
	assert_int_equal(c.verdict, TREND_SAME);
	assert_true(isnan(c.share));
	for (int i = 7 * A_DAY; i < COUNT; i++)
		p[i].value = 5; /* from nothing to something: certain, without a share */
	c = compare(p, COUNT, 1);
	assert_int_equal(c.verdict, TREND_UP);
	assert_int_equal(c.since_ms, BEGIN + 7 * DAY);
	assert_true(isnan(c.share));
}

static void test_quantiles(void **state)
{
	double v[] = { 5, 1, 3, 2, 4 };

	(void)state;
	assert_true(isnan(trend_quantile(v, 0, 0.5)));
	assert_float_equal(trend_quantile(v, 5, 0.5), 3, 0);
	assert_float_equal(trend_quantile(v, 5, 0), 1, 0);
	assert_float_equal(trend_quantile(v, 5, 1), 5, 0);
	assert_float_equal(trend_quantile(v, 5, 0.25), 2, 0);
	assert_float_equal(trend_quantile(v, 4, 0.5), 2.5, 0);
}

static void test_sparkline(void **state)
{
	const struct trend_point p[] = { { 0, 1 }, { 10, 1 }, { 30, 8 }, { 40, 4 } };
	char text[64];

	(void)state;
	assert_true(trend_sparkline(p, 4, 0, 50, 5, text));
	assert_string_equal(text, "▁▁ █▄");
	assert_true(trend_sparkline(p, 0, 0, 50, 3, text));
	assert_string_equal(text, "   ");
	assert_true(trend_sparkline(p, 2, 0, 20, 2, text)); /* all alike */
	assert_string_equal(text, "▁▁");
	assert_true(trend_sparkline(p + 2, 2, 40, 40, 2, text)); /* no time at all */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_false_alarms), cmocka_unit_test(test_chances_are_right),
		cmocka_unit_test(test_power),	     cmocka_unit_test(test_down),
		cmocka_unit_test(test_too_few),	     cmocka_unit_test(test_small_change),
		cmocka_unit_test(test_constant),     cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_sparkline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
