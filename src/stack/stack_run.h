/* SPDX-License-Identifier: MIT */
#ifndef SRC_STACK_STACK_RUN_H
#define SRC_STACK_STACK_RUN_H

/* From one process to the printed stacks of its threads. */

#include <stdbool.h>
#include <stdint.h>

#include "src/collect/collect_target.h"
#include "src/trace/analysis.h"

struct stack_wish {
	const struct collect_target *target;
	uint64_t watch_ms, timeout_ms;
	enum report_format format;
	unsigned heap_walks; /* 0: none */
	bool no_merge, all, quiet;
	const char *output; /* NULL: standard output */
	bool force;
};

/* Returns an exit code; what went wrong has been said. */
int stack_run(const struct stack_wish *wish);

#endif
