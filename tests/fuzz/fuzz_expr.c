/* SPDX-License-Identifier: MIT */

/* Conditions of --fail-if: what is taken is what its text says, term by term. */

#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/report/expr.h"

/* The text of a term, alone, is that term. */
static void read_again(const struct expr *e, const struct expr_term *t)
{
	struct expr_error error;
	struct expr again;
	char *text;

	if (t->begin >= t->end || t->end > strlen(e->text) || !t->value || !isfinite(t->limit))
		abort();
	text = strndup(e->text + t->begin, t->end - t->begin);
	if (!text || !expr_parse(&again, text, &error) || again.count != 1 ||
	    again.terms[0].value != t->value || again.terms[0].op != t->op ||
	    memcmp(&again.terms[0].limit, &t->limit, sizeof(t->limit)) != 0)
		abort();
	free(text);
}

/* One of the groups between "or" is true throughout. */
static bool any_group(const struct expr *e, const enum expr_result *results)
{
	for (size_t i = 0; i < e->count;) {
		bool all = results[i] == EXPR_TRUE;

		for (i++; i < e->count && !e->terms[i].or_before; i++)
			all = results[i] == EXPR_TRUE && all;
		if (all)
			return true;
	}
	return false;
}

static void judge(const struct expr *e)
{
	enum expr_result results[EXPR_MAX_TERMS];
	struct an_report *r = an_report_new(NULL);
	struct an_value *gc = r ? an_add_object(an_report_root(r), "gc") : NULL;

	an_add_uint(gc, "count", 10);
	an_add_double(gc, "pause_p99_ms", 250.5, 4);
	an_add_null(gc, "pause_max_ms");
	if (!gc || expr_judge(e, an_report_borrow_root(r), results) != any_group(e, results))
		abort();
	an_report_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size); /* of exactly that size, for a sanitizer */
	struct expr_error error = { .text = "" };
	struct expr e;

	if (!text)
		abort();
	if (!expr_parse(&e, text, &error)) {
		if (!*error.text || strlen(error.text) >= sizeof(error.text))
			abort();
	} else {
		if (!e.count || e.count > EXPR_MAX_TERMS)
			abort();
		for (size_t i = 0; i < e.count; i++)
			read_again(&e, &e.terms[i]);
		judge(&e);
	}
	free(text);
	return 0;
}
