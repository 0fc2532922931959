/* SPDX-License-Identifier: MIT */
#ifndef SRC_REPORT_OPT_LIMIT_H
#define SRC_REPORT_OPT_LIMIT_H

/* --limit NAME=VALUE: other limits of findings than usual. */

#include "analyzers/limit.h"
#include "src/base/options.h"

/* Returns -1 to go on; else one line was printed and it is the exit code to end with. */
int limits_of(const struct command *cmd, const struct opt_list *given, struct an_limits *ret);

#endif
