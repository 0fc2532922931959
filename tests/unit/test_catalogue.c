/* SPDX-License-Identifier: MIT */
/* What the analyzers say about themselves is complete, and true of the options there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/analyzer.h"
#include "src/base/command.h"

static const struct opt_spec *option(const char *name)
{
	for (const struct opt_spec *s = cmd_report.options; s->name; s++)
		if (strcmp(s->name, name) == 0)
			return s;
	return NULL;
}

static void check_range(const struct an_param *p, const struct opt_spec *s)
{
	char text[256] = "";
	size_t n = 0;

	switch (s->kind) {
	case OPT_KIND_ENUM:
		assert_string_equal(p->type, "choice");
		for (size_t i = 0; s->values[i]; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? "|" : "",
					      s->values[i]);
		assert_string_equal(p->range, text);
		assert_non_null(strstr(p->range, p->initial));
		break;
	case OPT_KIND_UINT:
		assert_string_equal(p->type, "number");
		snprintf(text, sizeof(text), "%llu..%llu", (unsigned long long)s->min,
			 (unsigned long long)s->max);
		assert_string_equal(p->range, text);
		break;
	default:
		fail_msg("--%s: a kind that the catalogue does not know", s->name);
	}
	/* The help names the default too. */
	snprintf(text, sizeof(text), "%s (default", p->initial);
	if (!strstr(s->help, text)) {
		snprintf(text, sizeof(text), "default %s", p->initial);
		assert_non_null(strstr(s->help, text));
	}
}

static void parameters_are_options(void **state)
{
	(void)state;
	for (const struct an_class *const *c = an_classes; *c; c++) {
		for (const struct an_param *p = (*c)->params; p && p->name; p++) {
			const struct opt_spec *s = option(p->name);

			if (!s)
				fail_msg("%s: report has no option --%s", (*c)->name, p->name);
			assert_non_null(p->summary);
			check_range(p, s);
		}
	}
}

static bool asks(const struct an_provider *p)
{
	return p && p->name;
}

static void everything_is_stated(void **state)
{
	(void)state;
	for (const struct an_class *const *c = an_classes; *c; c++) {
		bool records = asks((*c)->providers) || asks((*c)->on_request);

		if (!(*c)->summary || !(*c)->symptom || (*c)->cost == AN_COST_UNSTATED)
			fail_msg("analyzer %s does not state summary, symptom and cost",
				 (*c)->name);
		if (records && !(*c)->seconds)
			fail_msg("analyzer %s does not state how long to record", (*c)->name);
		if (records == ((*c)->cost == AN_COST_NONE))
			fail_msg("analyzer %s: the cost is none if and only if nothing is "
				 "recorded",
				 (*c)->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters_are_options),
		cmocka_unit_test(everything_is_stated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
