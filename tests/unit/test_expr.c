/* SPDX-License-Identifier: MIT */
/* Conditions: what is read, what is refused and why, and what holds. */
#include "src/report/expr.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct an_report *report;

static int setup(void **state)
{
	struct an_value *root, *v;

	(void)state;
	report = an_report_new(NULL);
	if (!report)
		return -1;
	root = an_report_root(report);
	v = an_add_object(root, "trace");
	an_add_uint(v, "events", 1000);
	an_add_uint(v, "events_lost", 3);
	an_add_bool(v, "complete", true);
	v = an_add_object(root, "gc");
	an_add_uint(v, "count", 10);
	an_add_double(v, "pause_p99_ms", 250.5, 4);
	an_add_null(v, "pause_max_ms");
	an_add_double(v, "pause_percent", 12.5, 4);
	an_add_uint(v, "allocated_bytes", 3u << 20);
	an_add_uint(v, "allocation_rate_bytes_per_s", 2u << 20);
	an_add_null(root, "cpu");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	report = an_report_free(report);
	return 0;
}

static bool holds(const char *text)
{
	enum expr_result results[EXPR_MAX_TERMS];
	struct expr_error error;
	struct expr e;

	if (!expr_parse(&e, text, &error))
		fail_msg("%s: %s", text, error.text);
	return expr_judge(&e, an_report_borrow_root(report), results);
}

static const char *refused(const char *text)
{
	static struct expr_error error;
	struct expr e;

	memset(&error, 0, sizeof(error));
	if (expr_parse(&e, text, &error))
		fail_msg("'%s' is taken", text);
	return error.text;
}

#define assert_refused(text, why)                                                                  \
	do {                                                                                       \
		const char *is_ = refused(text);                                                   \
		if (!strstr(is_, (why)))                                                           \
			fail_msg("'%s': %s", (text), is_);                                         \
	} while (0)

static void test_operators(void **state)
{
	(void)state;
	assert_true(holds("gc.count > 9"));
	assert_false(holds("gc.count > 10"));
	assert_true(holds("gc.count >= 10"));
	assert_false(holds("gc.count >= 10.5"));
	assert_true(holds("gc.count < 11"));
	assert_false(holds("gc.count < 10"));
	assert_true(holds("gc.count <= 10"));
	assert_false(holds("gc.count <= 9.99"));
	assert_true(holds("gc.count == 10"));
	assert_true(holds("gc.count = 1e1"));
	assert_false(holds("gc.count == 11"));
	assert_true(holds("gc.count != 11"));
	assert_false(holds("gc.count != 10"));
	assert_true(holds("gc.count>-1"));
	assert_true(holds("  gc.count>9\t"));
}

static void test_units(void **state)
{
	(void)state;
	assert_true(holds("gc.pause_p99_ms > 250"));
	assert_true(holds("gc.pause_p99_ms > 250ms"));
	assert_true(holds("gc.pause_p99_ms > 0.25s"));
	assert_false(holds("gc.pause_p99_ms > 0.2506 s"));
	assert_true(holds("gc.pause_p99_ms > 250000us"));
	assert_true(holds("gc.pause_p99_ms < 1m"));
	assert_true(holds("gc.pause_p99_ms < 1h and gc.pause_p99_ms<1min"));
	assert_true(holds("gc.allocated_bytes == 3M"));
	assert_true(holds("gc.allocated_bytes == 3MiB"));
	assert_true(holds("gc.allocated_bytes == 3072KB"));
	assert_true(holds("gc.allocated_bytes == 3145728B"));
	assert_true(holds("gc.allocated_bytes < 1G"));
	assert_true(holds("gc.allocation_rate_bytes_per_s == 2M/s"));
	assert_true(holds("gc.allocation_rate_bytes_per_s == 2M"));
	assert_true(holds("gc.pause_percent > 12%"));
	assert_true(holds("trace.complete == true"));
	assert_true(holds("trace.complete != FALSE"));
	assert_false(holds("trace.complete == 0"));
}

static void test_joined(void **state)
{
	(void)state;
	/* "and" binds tighter. */
	assert_true(holds("gc.count == 10 or gc.count == 1 and gc.count == 2"));
	assert_true(holds("gc.count == 1 and gc.count == 2 or gc.count == 10"));
	assert_false(holds("gc.count == 1 or gc.count == 10 and gc.count == 2"));
	assert_true(holds("gc.count == 1 or gc.count == 10 AND trace.events == 1000"));
	assert_false(holds("gc.count == 10 and gc.count == 1"));
	assert_true(holds("gc.count==1or gc.count==10"));
}

static void test_other_names(void **state)
{
	const struct value_spec *of;

	(void)state;
	assert_true(holds("events.lost > 0"));
	assert_true(holds("events.lost == 3"));
	assert_true(holds("events.count == 1000"));
	assert_string_equal(expr_alias(0, &of), "events.lost");
	assert_string_equal(of->path, "trace.events_lost");
	for (size_t i = 0; expr_alias(i, &of); i++)
		assert_non_null(of);
}

/* What was not recorded holds under no operator, and is told apart. */
static void test_not_recorded(void **state)
{
	static const char *const terms[] = {
		"gc.pause_max_ms > 0",	"gc.pause_max_ms >= 0",	 "gc.pause_max_ms < 1",
		"gc.pause_max_ms <= 1", "gc.pause_max_ms == 0",	 "gc.pause_max_ms != 7",
		"cpu.samples < 1",	"exceptions.count == 0",
	};
	enum expr_result results[EXPR_MAX_TERMS];
	struct expr_error error;
	struct expr e;

	(void)state;
	for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++) {
		assert_true(expr_parse(&e, terms[i], &error));
		assert_false(expr_judge(&e, an_report_borrow_root(report), results));
		assert_int_equal(results[0], EXPR_UNKNOWN);
	}
	assert_true(expr_parse(&e, "cpu.samples > 1 or gc.count > 1", &error));
	assert_true(expr_judge(&e, an_report_borrow_root(report), results));
	assert_int_equal(results[0], EXPR_UNKNOWN);
	assert_int_equal(results[1], EXPR_TRUE);
	assert_false(holds("cpu.samples > 1 and gc.count > 1"));
}

static void test_unknown_names(void **state)
{
	(void)state;
	assert_refused("gc.cuont > 1", "did you mean 'gc.count'?");
	assert_refused("pause_p99_ms > 1", "did you mean 'gc.pause_p99_ms'?");
	assert_refused("gc.pause_p98_ms > 1", "did you mean 'gc.pause_p9");
	assert_refused("event.lost > 1", "did you mean 'events.lost'?");
	assert_refused("completely.different > 1", "'report --list-values' names all");
	/* Lists, texts and whole sections are no numbers. */
	assert_refused("gc.collections > 1", "there is no value");
	assert_refused("trace.runtime == 8", "there is no value");
	assert_refused("gc > 1", "there is no value");
}

static void test_mistakes(void **state)
{
	(void)state;
	assert_refused("", "a value is missing");
	assert_refused("   ", "a value is missing");
	assert_refused("> 1", "a value is expected");
	assert_refused("(gc.count > 1)", "a value is expected");
	assert_refused("gc.count", "is compared with nothing");
	assert_refused("gc.count 5", "is compared with nothing");
	assert_refused("gc.count >", "a number is missing");
	assert_refused("gc.count > x", "a number is expected");
	assert_refused("gc.count > nan", "a number is expected");
	assert_refused("gc.count > inf", "a number is expected");
	assert_refused("gc.count > 0x10", "is no unit of 'gc.count', which is a plain number");
	assert_refused("gc.count > 1e999", "too large");
	assert_refused("gc.count => 1", "a number is expected");
	assert_refused("gc.count > 1 gc.count > 2", "is no unit of");
	assert_refused("gc.count > 1 && gc.count > 2", "'and' or 'or' is expected");
	assert_refused("gc.count > 1 and", "a value is missing");
	assert_refused("gc.count > 1 or or gc.count > 2", "there is no value 'or'");
	assert_refused("gc.pause_p99_ms > 5K", "which is a time");
	assert_refused("gc.allocated_bytes > 5s", "which is a size");
	assert_refused("gc.allocated_bytes > 5M/s", "which is a size");
	assert_refused("gc.pause_percent > 5ms", "which is a share");
	assert_refused("trace.complete == maybe", "is true or false");
	assert_refused("trace.complete == 2", "is true or false");
	assert_refused("gc.count > 5 for 30s", "one number for the whole recording");
	assert_refused("gc.count > 5 for 30", "a unit is needed");
	assert_refused("gc.count > 5 for", "not a duration");
}

/* Whatever the bytes: an answer, and no more terms than there is room for. */
static void test_hostile(void **state)
{
	char text[EXPR_MAX_BYTES + 64] = "";
	uint32_t seed = 1;

	(void)state;
	memset(text, 'a', EXPR_MAX_BYTES + 1);
	assert_refused(text, "longer than");
	memset(text, 0, sizeof(text));
	memset(text, 'a', EXPR_MAX_BYTES);
	assert_refused(text, "there is no value");
	memset(text, 0, sizeof(text));
	for (size_t i = 0; i <= EXPR_MAX_TERMS; i++)
		strcat(text, i ? " or gc.count>1" : "gc.count>1");
	assert_refused(text, "more than 32 terms");
	for (size_t i = 0; i < 20000; i++) {
		static const char *const bits[] = { "gc.count", ">",  "=", "1",	  "e5", "ms", "and",
						    " or ",	" ",  "!", "for", "1s", "%",  ".",
						    "\xff",	"-9", "/", "\n",  "<",	"B" };
		struct expr_error error;
		struct expr e;
		size_t n = 0;

		text[0] = 0;
		for (size_t k = 0; k < 12; k++) {
			const char *bit;

			seed = seed * 1664525 + 1013904223;
			bit = bits[(seed >> 16) % (sizeof(bits) / sizeof(bits[0]))];
			memcpy(text + n, bit, strlen(bit) + 1);
			n += strlen(bit);
		}
		if (expr_parse(&e, text, &error))
			assert_true(e.count > 0 && isfinite(e.terms[0].limit));
	}
}

static void test_table(void **state)
{
	size_t n = 0;

	(void)state;
	for (const struct value_spec *v = values; v->path; v++, n++) {
		assert_ptr_equal(expr_find(v->path, strlen(v->path)), v);
		assert_non_null(expr_unit_name(v->unit));
		assert_true(*v->summary);
	}
	assert_true(n > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operators),    cmocka_unit_test(test_units),
		cmocka_unit_test(test_joined),	     cmocka_unit_test(test_other_names),
		cmocka_unit_test(test_not_recorded), cmocka_unit_test(test_unknown_names),
		cmocka_unit_test(test_mistakes),     cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
