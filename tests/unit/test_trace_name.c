/* SPDX-License-Identifier: MIT */
/* Names of output files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/trace_name.h"

static void check(const char *pattern, const char *process, const char *want)
{
	const struct trace_name v = { 42, process, 1767225599, "db-1" };
	char *got = trace_name_expand(pattern, &v);

	assert_string_equal(got, want);
	free(got);
}

static void letters(void **state)
{
	(void)state;
	check("plain", "Shop", "plain");
	check(TRACE_NAME_DEFAULT, "Shop", "./Shop_42_20251231T235959Z.nettrace");
	check("%h/%n-%p.nettrace", "Shop", "db-1/Shop-42.nettrace");
	check("100%%-%x-%", "Shop", "100%-%x-%");
	check("%n", "../a b/\x01\xc3\xa9", ".._a_b__\xc3\xa9");
	check("%n", "", "unknown");
	check("%n", NULL, "unknown");
}

static void which_are_patterns(void **state)
{
	static const char *const good[] = { "",	 "plain", TRACE_NAME_DEFAULT,	     "%p%n%t%h%%",
					    "-", "none",  "/data/100%%/%%x.nettrace" };
	/* Among them what date(1), printf(3) and createdump know. */
	static const char *const bad[] = { "%",	  "x%",	    "%%%", "%x",     "%P",
					   "%d",  "%e",	    "% n", "100%/x", "a%\xc3\xa9",
					   "%5p", "%n%Y%m", "%\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(trace_name_is_pattern(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(trace_name_is_pattern(bad[i]));
}

static void own_host(void **state)
{
	const struct trace_name v = { 42, "x", 0, NULL };
	char *got = trace_name_expand("%h-%t", &v);

	(void)state;
	assert_non_null(strstr(got, "-19700101T000000Z"));
	assert_null(strchr(got, '/'));
	free(got);
}

static void check_number(const char *path, unsigned n, const char *want)
{
	char *got = trace_name_numbered(path, n);

	assert_string_equal(got, want);
	free(got);
}

static void check_piece(const char *path, uint64_t n, const char *want)
{
	char *got = trace_name_piece(path, n);

	assert_string_equal(got, want);
	free(got);
}

static void pieces(void **state)
{
	(void)state;
	check_piece("a.nettrace", 1, "a.0001.nettrace");
	check_piece("d.x/a.b.nettrace.zst", 13, "d.x/a.b.0013.nettrace.zst");
	check_piece("a.zst", 9999, "a.9999.zst");
	check_piece("a.b.c", 10000, "a.b.c.10000");
}

static void numbers(void **state)
{
	(void)state;
	check_number("a.nettrace", 2, "a-2.nettrace");
	check_number("d.x/a.b.nettrace.zst", 13, "d.x/a.b-13.nettrace.zst");
	check_number("a.zst", 2, "a-2.zst");
	check_number("reports/a.json", 3, "reports/a-3.json");
	check_number("a.b.c", 2, "a.b.c-2"); /* appended, never replaced */
	assert_true(trace_name_is_compressed("a.nettrace.zst"));
	assert_false(trace_name_is_compressed("a.zst.nettrace"));
	assert_false(trace_name_is_compressed("zst"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(letters),  cmocka_unit_test(which_are_patterns),
		cmocka_unit_test(own_host), cmocka_unit_test(numbers),
		cmocka_unit_test(pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
