/* SPDX-License-Identifier: MIT */
#ifndef SRC_REPORT_EXPR_H
#define SRC_REPORT_EXPR_H

/*
 * Conditions on the numbers of a report:
 *
 *	EXPR = TERM { ("and" | "or") TERM }, where "and" binds tighter
 *	TERM = VALUE OP NUMBER[UNIT] [ "for" DURATION ]
 *	OP   = ">" | ">=" | "<" | "<=" | "==" | "=" | "!="
 *
 *	gc.pause_p99_ms > 100ms and gc.count >= 10 or events.lost > 0
 *
 * VALUE is one that expr_find() knows.  A number without a unit has that of the value's name; one
 * with a unit is converted.  What was not recorded fulfils nothing.  "for" is understood, and
 *refused: a report has one number for the whole recording.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzers/report.h"
#include "src/report/values.h"

enum { EXPR_MAX_TERMS = 32, EXPR_MAX_BYTES = 4096 };

enum expr_op { EXPR_GT, EXPR_GE, EXPR_LT, EXPR_LE, EXPR_EQ, EXPR_NE };

struct expr_term {
	const struct value_spec *value;
	enum expr_op op;
	double limit; /* in the value's unit */
	bool or_before; /* a new group of terms begins here */
	size_t begin, end; /* in the text */
};

struct expr {
	const char *text; /* as given; must outlive the expression */
	struct expr_term terms[EXPR_MAX_TERMS];
	size_t count;
};

struct expr_error {
	char text[512]; /* what is wrong */
};

/* False: *ret_error says why. */
bool expr_parse(struct expr *ret, const char *text, struct expr_error *ret_error);

/* The value that a name stands for, also by another name; NULL: there is none. */
const struct value_spec *expr_find(const char *name, size_t len);
/* Other names; NULL behind the last. */
const char *expr_alias(size_t i, const struct value_spec **ret);
/* "ms", "bytes/s", "" */
const char *expr_unit_name(enum value_unit unit);

enum expr_result { EXPR_FALSE, EXPR_TRUE, EXPR_UNKNOWN };

/* root: of a report.  EXPR_UNKNOWN: the value is null or absent. */
enum expr_result expr_judge_term(const struct expr_term *t, const struct an_value *root,
				 double *ret_is);
/*
 * Whether the condition holds; a term that is unknown does not.  results: one for each term.
 */
bool expr_judge(const struct expr *e, const struct an_value *root, enum expr_result *results);

#endif
