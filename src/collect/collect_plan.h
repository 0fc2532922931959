/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_COLLECT_PLAN_H
#define SRC_COLLECT_COLLECT_PLAN_H

/* From the words of the command line to whom a run records. */

#include "src/base/command.h"
#include "src/base/options.h"
#include "src/collect/collect.h"
#include "src/collect/collect_target.h"

/* As it was given. */
struct collect_wish {
	const struct opt_list *pids;
	const char *name, *wait_for, *port;
	bool children;
	const char *const *command; /* behind "--", ends at NULL; NULL: none */
	bool to_stdout; /* the trace: one process only */
	uint64_t ask_ms;
	uint64_t wait_ms; /* for somebody to come; 0: --timeout was not given */
};

/* A plan with what it points into. */
struct collect_planned {
	struct collect_plan plan;
	struct collect_target *targets;
	size_t target_count;
	struct collect_subject *subjects;
	struct port_address port;
	struct ipc_source port_source;
};

/* Returns -1 when it can begin; else the exit code, with the reason on standard error. */
int collect_plan_make(const struct command *cmd, const struct collect_wish *wish,
		      struct collect_planned *ret);
void collect_plan_done(struct collect_planned *p);
/* A process as -p names it; the same codes. */
int collect_plan_pid(const struct command *cmd, const char *text, int32_t *ret);

/* The words behind "--", ended by NULL; the caller frees them.  NULL: out of memory. */
const char **collect_plan_command(const struct opt_operands *words);
/*
 * What was given with --duration (0: nothing), or some of its own, said: where nobody sees that it
 * runs on, and it does not end by itself.
 */
uint64_t collect_plan_duration(uint64_t given_ns, bool ends);

#endif
