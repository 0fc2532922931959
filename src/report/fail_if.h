/* SPDX-License-Identifier: MIT */
#ifndef SRC_REPORT_FAIL_IF_H
#define SRC_REPORT_FAIL_IF_H

/* --fail-if EXPR and --fail-on SEVERITY: when a report means exit code 4. */

#include <stdbool.h>
#include <stddef.h>

#include "analyzers/report.h"
#include "src/base/options.h"
#include "src/report/expr.h"

enum fail_on { FAIL_ON_NEVER, FAIL_ON_CRITICAL, FAIL_ON_WARNING };

extern const char *const fail_on_names[];

struct fail_if {
	struct expr *exprs; /* any of them */
	size_t count;
	enum fail_on on;
};

struct command;

/* -1, or the exit code after a mistake, said.  The texts must outlive it. */
int fail_if_parse(struct fail_if *ret, const struct command *cmd, const struct opt_list *exprs,
		  int on);
void fail_if_done(struct fail_if *f);

static inline bool fail_if_is_empty(const struct fail_if *f)
{
	return !f || (!f->count && f->on == FAIL_ON_NEVER);
}

/* Whether a condition needs that section of the report. */
bool fail_if_needs(const struct fail_if *f, const char *section);
/* Says what held, and what was not recorded.  root: of a sealed report. */
bool fail_if_judge(const struct fail_if *f, const struct an_value *root);

struct out;

/* All values that conditions may name. */
void fail_if_list(struct out *o, bool json);

#endif
