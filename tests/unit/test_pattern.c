/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/pattern.h"

static bool matches(const char *pattern, const char *name)
{
	char why[128];
	struct pattern *p = pattern_new(pattern, why, sizeof(why));
	const struct an_matcher *m;
	bool yes;

	assert_non_null(p);
	m = pattern_matcher(p);
	yes = m->matches(m->ctx, name);
	pattern_free(p);
	return yes;
}

static void patterns_match_anywhere(void **state)
{
	(void)state;
	assert_true(matches("Cart", "Shop.Cart.Total"));
	assert_true(matches("^Shop\\.(Cart|Web)\\.", "Shop.Web.Fetch"));
	assert_false(matches("^Cart", "Shop.Cart.Total"));
	assert_false(matches("cart", "Shop.Cart.Total"));
	assert_true(matches("a{1,100}", "a"));
	assert_true(matches("[0-9]{2}", "x12"));
}

static void refused(const char *pattern, const char *because)
{
	char why[128] = "";

	assert_null(pattern_new(pattern, why, sizeof(why)));
	assert_non_null(strstr(why, because));
}

static void what_has_no_bound_is_refused(void **state)
{
	char longest[2000];

	(void)state;
	refused("(a*)\\1", "back-references");
	refused("a{101}", "repeats");
	refused("a{1,101}", "repeats");
	refused("(((a{50}){50}){50})", "repeats");
	refused("(", "");
	refused("[", "");
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	refused(longest, "too long");
	assert_true(matches("\\\\1", "\\1")); /* a backslash, then a digit */
}

/* Patterns that ruin matchers that go back, on names of any length. */
static void hostile_names_take_no_time(void **state)
{
	static char name[100001];

	(void)state;
	memset(name, 'a', sizeof(name) - 1);
	assert_false(matches("(a|a)*b$", name));
	assert_false(matches("(a*)*b", name));
	assert_false(matches("(.*.*.*=.*)x$", name));
	assert_true(matches("^a", name));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_match_anywhere),
		cmocka_unit_test(what_has_no_bound_is_refused),
		cmocka_unit_test(hostile_names_take_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
