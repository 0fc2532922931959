/* SPDX-License-Identifier: MIT */

/* Two simulated weeks in a store, and what history says of them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <time.h>
#include <unistd.h>

#include "src/base/command.h"
#include "src/store/history.h"
#include "src/store/when.h"

#define HOUR INT64_C(3600000)
#define DAY  (24 * HOUR)

enum { A_DAY = 24, DAYS = 14, METHODS = 12, METRICS = 12 };

static char folder[] = "/tmp/drd-history-XXXXXX";
static struct store *store;
/* Monday, two weeks before; the week that is looked at begins on 2026-11-09. */
static int64_t begin_ms, now_ms;

static uint64_t seed;

static double uniform(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(seed >> 11) + 0.5) / 9007199254740992.0;
}

static double noise(void)
{
	return (uniform() + uniform() + uniform() + uniform() - 2) * 1.7;
}

/* What happens in those weeks, each from a moment on; 0: never. */
struct story {
	int64_t slow_since; /* the method Shop.Price.Sum takes twice the time */
	int64_t summer_since; /* clocks go forward: people come an hour earlier, by UTC */
};

static void simulate(const char *process, struct story story)
{
	static char names[METHODS][32], metric_names[METRICS][32];

	for (int m = 0; m < METHODS; m++)
		snprintf(names[m], sizeof(names[m]), "Shop.Work.Step%d", m);
	snprintf(names[3], sizeof(names[3]), "Shop.Price.Sum");
	for (int m = 0; m < METRICS; m++)
		snprintf(metric_names[m], sizeof(metric_names[m]), "gc.number%d", m);
	for (int i = 0; i < DAYS * A_DAY; i++) {
		int64_t t = begin_ms + i * HOUR;
		bool summer = story.summer_since && t >= story.summer_since;
		double busy = 1 + 0.5 * sin(6.283185307 * ((i + summer) % A_DAY) / A_DAY);
		struct store_method methods[METHODS];
		struct store_metric metrics[METRICS + 1] = { { "cpu.samples", 100 } };
		struct store_sample p = { .time_ms = t,
					  .name = process,
					  .pid = 7,
					  .complete = true,
					  .methods = methods,
					  .method_count = METHODS,
					  .metrics = metrics,
					  .metric_count = METRICS + 1 };
		int64_t id;

		for (int m = 0; m < METHODS; m++) {
			double v = busy * (4 + m) * (1 + 0.1 * noise());

			if (m == 3 && story.slow_since && t >= story.slow_since)
				v *= 2;
			methods[m] = (struct store_method){ names[m], v, v };
		}
		for (int m = 0; m < METRICS; m++)
			metrics[m + 1] =
				(struct store_metric){ metric_names[m], 50 * busy + 5 * noise() };
		assert_true(store_add(store, &p, &id));
	}
}

static int setup(void **state)
{
	(void)state;
	seed = 11;
	if (when_parse("2026-11-02", 0, &begin_ms))
		return -1;
	now_ms = begin_ms + DAYS * DAY;
	memcpy(folder, "/tmp/drd-history-XXXXXX", sizeof(folder));
	if (!mkdtemp(folder))
		return -1;
	store = store_open(folder, STORE_WRITE);
	return store ? 0 : -1;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	store = store_close(store);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

/* What an action prints; to be freed. */
static char *say(int (*run)(struct history_job *job), struct history_job *job)
{
	char path[96];
	char *text = calloc(1, 1 << 20);
	FILE *f;

	snprintf(path, sizeof(path), "%s/out", folder);
	job->store = store;
	job->now_ms = now_ms;
	job->out = out_open(path, true);
	assert_non_null(job->out);
	assert_int_equal(run(job), EXIT_DONE);
	assert_int_equal(out_close(job->out, EXIT_DONE), EXIT_DONE);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	return text;
}

static size_t count_of(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static double number_after(const char *text, const char *what)
{
	const char *p = strstr(text, what);

	assert_non_null(p);
	return strtod(p + strlen(what), NULL);
}

/* A method is twice as slow from Wednesday on: that method, that day, twice; and nothing else. */
static void test_planted(void **state)
{
	int64_t wednesday = begin_ms + 9 * DAY;
	struct history_job job = { .format = HISTORY_JSON,
				   .filter = { .begin_ms = INT64_MIN },
				   .span_ms = 7 * DAY,
				   .split_ms = now_ms - 7 * DAY };
	char *text;

	(void)state;
	simulate("Shop", (struct story){ .slow_since = wednesday });
	simulate("Other", (struct story){ 0 });
	text = say(history_regressions, &job);
	assert_int_equal(count_of(text, "\"direction\""), 1);
	assert_non_null(strstr(text, "\"name\": \"Shop\""));
	assert_non_null(strstr(text, "\"metric\": \"method:Shop.Price.Sum\""));
	assert_non_null(strstr(text, "\"direction\": \"up\""));
	assert_non_null(strstr(text, "\"since\": \"2026-11-11T")); /* a Wednesday */
	assert_true(fabs(number_after(text, "\"change_share\": ") - 1) < 0.1);
	free(text);
	job.format = HISTORY_TEXT;
	text = say(history_regressions, &job);
	assert_non_null(strstr(text, "Shop: method Shop.Price.Sum since Wed 2026-11-11"));
	assert_non_null(strstr(text, " times as much"));
	free(text);
}

static void test_nothing(void **state)
{
	struct history_job job = { .format = HISTORY_TEXT,
				   .filter = { .begin_ms = INT64_MIN },
				   .span_ms = 7 * DAY,
				   .split_ms = now_ms - 7 * DAY };
	char *text;

	(void)state;
	simulate("Shop", (struct story){ 0 });
	text = say(history_regressions, &job);
	assert_non_null(strstr(text, "nothing has changed"));
	assert_non_null(strstr(text, "24 series looked at"));
	free(text);
	/* A period with too few samples is said, and is not "nothing". */
	job.span_ms = 5 * HOUR;
	job.split_ms = now_ms - 5 * HOUR;
	text = say(history_regressions, &job);
	assert_non_null(strstr(text, "nothing can be said: too few samples"));
	free(text);
}

/* What only the clock of the people changes is no change of the program; and days are those of UTC
 * wherever the machine is. */
static void test_summer_time(void **state)
{
	struct history_job job = { .format = HISTORY_TEXT,
				   .filter = { .begin_ms = INT64_MIN },
				   .span_ms = 7 * DAY,
				   .split_ms = now_ms - 7 * DAY };
	char *text;

	(void)state;
	assert_int_equal(setenv("TZ", "Europe/Berlin", 1), 0);
	tzset();
	simulate("Shop", (struct story){ .summer_since = begin_ms + 6 * DAY + HOUR });
	simulate("Other", (struct story){ .summer_since = begin_ms + 7 * DAY });
	text = say(history_regressions, &job);
	assert_non_null(strstr(text, "nothing has changed"));
	assert_non_null(strstr(text, "Mon 2026-11-09 00:00"));
	free(text);
	simulate("Cart", (struct story){ .summer_since = begin_ms + 6 * DAY + HOUR,
					 .slow_since = begin_ms + 9 * DAY });
	text = say(history_regressions, &job);
	assert_non_null(strstr(text, "Cart: method Shop.Price.Sum since Wed 2026-11-11"));
	assert_int_equal(count_of(text, " times as much"), 1);
	free(text);
	unsetenv("TZ");
	tzset();
}

static void test_trend(void **state)
{
	struct history_job job = { .format = HISTORY_TEXT,
				   .filter = { .name = "Shop", .begin_ms = INT64_MIN },
				   .word = "method:Shop.Price.Sum" };
	double least = INFINITY, most = -INFINITY;
	char *text;

	(void)state;
	simulate("Shop", (struct story){ .slow_since = begin_ms + 7 * DAY });
	text = say(history_trend, &job);
	assert_non_null(strstr(text, "(336 samples)"));
	assert_non_null(strstr(text, "█"));
	free(text);
	job.format = HISTORY_CSV;
	text = say(history_trend, &job);
	assert_int_equal(count_of(text, "\n"), 337);
	assert_int_equal(strncmp(text, "time,value\n2026-11-02T00:00:00Z,", 32), 0);
	for (const char *p = strchr(text, '\n'); p[1]; p = strchr(p + 1, '\n')) {
		double v = number_after(p, ",");

		least = fmin(least, v);
		most = fmax(most, v);
	}
	free(text);
	job.format = HISTORY_JSON;
	text = say(history_trend, &job);
	assert_true(number_after(text, "\"min\": ") == least);
	assert_true(number_after(text, "\"max\": ") == most);
	assert_true(number_after(text, "\"median\": ") > least);
	free(text);
}

static void test_top(void **state)
{
	struct history_job job = { .format = HISTORY_CSV,
				   .filter = { .name = "Shop", .begin_ms = now_ms - 7 * DAY },
				   .top = 2 };
	char *text;

	(void)state;
	simulate("Shop", (struct story){ 0 });
	text = say(history_top, &job);
	assert_int_equal(count_of(text, "\n"), 3);
	/* 4 + 11 percent of a processor. */
	assert_true(fabs(number_after(text, "\nShop.Work.Step11,") - 15) < 0.3);
	free(text);
}

static void test_list_and_export(void **state)
{
	struct history_job job = { .format = HISTORY_JSON, .filter = { .begin_ms = now_ms - DAY } };
	struct store_sample odd = { .time_ms = now_ms - 1, .name = "a \"b\",\nc", .pid = 1 };
	int64_t id;
	char *text;

	(void)state;
	simulate("Shop", (struct story){ 0 });
	assert_true(store_add(store, &odd, &id));
	text = say(history_list, &job);
	assert_int_equal(count_of(text, "\"id\""), 25);
	assert_non_null(strstr(text, "\"trace_file\": null"));
	free(text);
	job.format = HISTORY_CSV;
	text = say(history_list, &job);
	assert_non_null(strstr(text, "\"a \"\"b\"\",\nc\"")); /* RFC 4180 */
	free(text);
	job.format = HISTORY_NDJSON;
	text = say(history_export, &job);
	assert_int_equal(count_of(text, "\n"), 25);
	free(text);
	job.format = HISTORY_CSV;
	text = say(history_export, &job);
	assert_int_equal(count_of(text, "\n"), 1 + 24 * (METRICS + 1));
	free(text);
}

static void test_when(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = {
		{ "1970-01-02", DAY },
		{ "1970-01-01T01:00", HOUR },
		{ "1970-01-01 01:00:01", HOUR + 1000 },
		{ "1970-01-01T01:00:01Z", HOUR + 1000 },
		{ "now", 10 * DAY },
		{ "1d", 9 * DAY },
		{ "90m", 10 * DAY - 90 * 60000 },
	};
	static const char *const bad[] = { "",		"2026-02-31", "2026-13-01",
					   "yesterday", "7",	      "1970-01-01x" };
	char text[WHEN_BYTES];
	int64_t ms;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_null(when_parse(good[i].text, 10 * DAY, &ms));
		assert_int_equal(ms, good[i].ms);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_non_null(when_parse(bad[i], 10 * DAY, &ms));
	assert_string_equal(when_text(-1, text), "1969-12-31T23:59:59Z");
	assert_string_equal(when_text_day(0, text), "Thu 1970-01-01 00:00");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_planted),	     TEST(test_nothing), TEST(test_trend),
		TEST(test_summer_time),	     TEST(test_top),	 TEST(test_list_and_export),
		cmocka_unit_test(test_when),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
