/* SPDX-License-Identifier: MIT */
/* Lists of counters as dotnet-counters spells them; files that are valid after each reading. */
#include "src/counters/counters_write.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/counters/counters_list.h"

static char *metrics(const char *text)
{
	struct counters_list l = { 0 };
	struct counters_list_error error;
	char *got;

	if (!counters_list_parse(&l, text, &error))
		fail_msg("%s: %s", text, error.text);
	got = counters_list_metrics(&l);
	counters_list_done(&l);
	assert_non_null(got);
	return got;
}

static void assert_metrics(const char *text, const char *expected)
{
	char *got = metrics(text);

	assert_string_equal(got, expected);
	free(got);
}

static void test_list(void **state)
{
	static const char *const wrong[] = {
		"",	   ",",	  "a,",	   "a[",  "a[b",
		"a[]",	   "[b]", "a[b]c", "a\\", "a;b=c",
		"a\\b\\c", "\\b", "a[b,]", "a=b", "EventCounters\\a\\b"
	};

	(void)state;
	assert_metrics("System.Runtime", "System.Runtime");
	assert_metrics("A, B", "A,B");
	assert_metrics("A[x,y],B", "A\\x,A\\y,B");
	assert_metrics("A\\x,B*", "A\\x,B*");
	assert_metrics("EventCounters\\A[x]", "");
	assert_metrics("EventCounters\\A,B", "B");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct counters_list l = { 0 };
		struct counters_list_error error = { "" };

		if (counters_list_parse(&l, wrong[i], &error))
			fail_msg("'%s' is taken", wrong[i]);
		assert_true(*error.text);
		counters_list_done(&l);
	}
}

static bool wants(struct counters_list *l, enum counter_kind kind, const char *provider,
		  const char *name)
{
	struct counter_row row = { .kind = kind };

	snprintf(row.provider, sizeof(row.provider), "%s", provider);
	snprintf(row.name, sizeof(row.name), "%s", name);
	return counters_list_find(l, &row) != NULL;
}

/* An event source that is a meter as well is not read twice, unless by name. */
static void test_both(void **state)
{
	struct counters_list l = { 0 };
	struct counters_list_error error;

	(void)state;
	assert_true(counters_list_parse(&l, "R,S[cpu],M\\i,EventCounters\\E,W*", &error));
	assert_true(wants(&l, COUNTER_MEAN, "R", "cpu"));
	assert_true(wants(&l, COUNTER_GAUGE, "R", "g"));
	assert_true(wants(&l, COUNTER_SUM, "S", "cpu"));
	assert_false(wants(&l, COUNTER_SUM, "S", "other"));
	assert_true(wants(&l, COUNTER_COUNTER, "M", "i"));
	assert_false(wants(&l, COUNTER_COUNTER, "M", "j"));
	assert_false(wants(&l, COUNTER_MEAN, "M", "i"));
	assert_true(wants(&l, COUNTER_MEAN, "E", "x"));
	assert_false(wants(&l, COUNTER_GAUGE, "E", "x"));
	assert_true(wants(&l, COUNTER_HISTOGRAM, "Warehouse", "x"));
	assert_false(wants(&l, COUNTER_HISTOGRAM, "X", "x"));
	counters_list_has_meter(&l, "R");
	counters_list_has_meter(&l, "S");
	assert_false(wants(&l, COUNTER_MEAN, "R", "cpu"));
	assert_true(wants(&l, COUNTER_GAUGE, "R", "g"));
	assert_true(wants(&l, COUNTER_MEAN, "S", "cpu"));
	counters_list_done(&l);
}

/* --- files --- */

static char folder[] = "/tmp/counters-XXXXXX", path[64];

static char *read_all(void)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	assert_non_null(f);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 20) - 1, f) < (1 << 20) - 1);
	fclose(f);
	return text;
}

/* Brackets outside of strings close in order, and nothing follows the last. */
static bool is_closed(const char *text)
{
	char stack[16];
	size_t depth = 0;
	bool quoted = false, over = false;

	for (; *text; text++) {
		if (quoted) {
			if (*text == '\\' && text[1])
				text++;
			else
				quoted = *text != '"';
			continue;
		}
		if (over && *text != '\n')
			return false;
		if (*text == '"')
			quoted = true;
		if (*text == '{' || *text == '[') {
			if (depth == sizeof(stack))
				return false;
			stack[depth++] = *text == '{' ? '}' : ']';
		}
		if ((*text == '}' || *text == ']') && (!depth || stack[--depth] != *text))
			return false;
		over = over || ((*text == '}' || *text == ']') && !depth);
	}
	return over && !depth && !quoted;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static struct counter_row hostile(int i)
{
	struct counter_row row = { .kind = (enum counter_kind)(i % COUNTER_KINDS),
				   .time_ns = i * INT64_C(1000000007),
				   .instrument = (uint32_t)i,
				   .quantile_count = 2,
				   .quantiles = { { "0.5", 1.5 }, { "=,\"", NAN } } };

	for (size_t k = 0; k < COUNTER_COLUMNS; k++)
		row.v[k] = k % 3 ? (double)i / 3 : i % 2 ? NAN : -INFINITY;
	snprintf(row.provider, sizeof(row.provider), "\"prov]}ider\n%d", i);
	snprintf(row.name, sizeof(row.name), "n,\xff%d", i);
	memset(row.tags, i % 2 ? '"' : '\1', sizeof(row.tags) - 1);
	memcpy(row.tags, "k=v,k=w,", 8);
	row.tags[sizeof(row.tags) - 1] = '\0';
	return row;
}

static void test_always_valid(void **state)
{
	struct counters_writer *w = counters_writer_open(path, COUNTERS_JSON, false);

	(void)state;
	assert_non_null(w);
	assert_true(counters_writer_begin(w, 7, "na\"me"));
	for (int i = 0; i < 40; i++) {
		struct counter_row row = hostile(i);
		struct counters_reading r = { .row = &row,
					      .start_unix_ns = 1700000000000000000,
					      .gap_ns = i % 4 ? 0 : 2500000000,
					      .interval_s = 1 };
		char *text = read_all();

		assert_true(is_closed(text));
		assert_int_equal(count(text, "\"provider\""), i);
		free(text);
		assert_true(counters_writer_put(w, &r));
	}
	assert_int_equal(counters_writer_close(w, 0), 0);
	/* Not again without being told so. */
	assert_null(counters_writer_open(path, COUNTERS_JSON, false));
	unlink(path);
}

#define CSV_HEAD                                                                                   \
	"time,provider,name,tags,kind,unit,statistic,value,instrument_id,twin,gap_ms,rate_scale_"  \
	"s\n"

/* What a file of one reading holds. */
static char *written(enum counters_format format, const struct counters_reading *r)
{
	struct counters_writer *w = counters_writer_open(path, format, true);
	char *text;

	assert_non_null(w);
	assert_true(counters_writer_begin(w, 7, "x"));
	assert_true(counters_writer_put(w, r));
	assert_int_equal(counters_writer_close(w, 0), 0);
	text = read_all();
	unlink(path);
	return text;
}

static void test_csv(void **state)
{
	struct counter_row row = { .kind = COUNTER_HISTOGRAM,
				   .time_ns = 1500000000,
				   .quantile_count = 1,
				   .quantiles = { { "0.95", 97 } },
				   .v = { 4, 100 } };
	struct counters_reading r = { .row = &row,
				      .start_unix_ns = 1700000000000000000,
				      .twin = 1,
				      .gap_ns = 4000000000,
				      .interval_s = 2 };
	char *text;

	(void)state;
	for (size_t k = 2; k < COUNTER_COLUMNS; k++)
		row.v[k] = NAN;
	snprintf(row.provider, sizeof(row.provider), "M");
	snprintf(row.name, sizeof(row.name), "a,\"b\"");
	snprintf(row.unit, sizeof(row.unit), "ms");
	snprintf(row.tags, sizeof(row.tags), "zone=\033a"); /* what a terminal would obey */
	text = written(COUNTERS_CSV, &r);
#define LINE "2023-11-14T22:13:21.500000Z,M,\"a,\"\"b\"\"\",zone=\\x1ba,histogram,ms,"
	assert_string_equal(text, CSV_HEAD LINE "count,4,,1,4000,\n" LINE "sum,100,,1,4000,\n" LINE
						"rate_per_s,2,,1,4000,\n" LINE
						"quantile_0.95,97,,1,4000,\n");
	free(text);
}

/* 3 in 2 seconds, which the program wants to be shown as 90 a minute. */
static void test_rates(void **state)
{
	struct counter_row row = { .kind = COUNTER_SUM,
				   .provider = "E",
				   .name = "n",
				   .unit = "B",
				   .scale = "00:01:00",
				   .v = { 3, 90, 2 } };
	struct counters_reading r = { .row = &row };
	char *text;

	(void)state;
	for (size_t k = 3; k < COUNTER_COLUMNS; k++)
		row.v[k] = NAN;
	text = written(COUNTERS_CSV, &r);
	assert_string_equal(text, CSV_HEAD ",E,n,,sum,B,value,3,,,,\n"
					   ",E,n,,sum,B,rate,90,,,,60\n"
					   ",E,n,,sum,B,interval_s,2,,,,\n"
					   ",E,n,,sum,B,rate_per_s,1.5,,,,\n");
	free(text);
	text = written(COUNTERS_NDJSON, &r);
	assert_non_null(strstr(text, "\"rate\":90,"));
	assert_non_null(strstr(text, "\"rate_scale_s\":60,"));
	assert_non_null(strstr(text, "\"rate_per_s\":1.5"));
	free(text);
	snprintf(row.scale, sizeof(row.scale), "often");
	row.v[1] = NAN;
	text = written(COUNTERS_NDJSON, &r);
	assert_non_null(strstr(text, "\"rate\":null,"));
	assert_non_null(strstr(text, "\"rate_scale_s\":null,"));
	free(text);
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/x", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),	     cmocka_unit_test(test_both),
		cmocka_unit_test(test_always_valid), cmocka_unit_test(test_csv),
		cmocka_unit_test(test_rates),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
