/* SPDX-License-Identifier: MIT */
#ifndef SRC_BASE_COMMAND_H
#define SRC_BASE_COMMAND_H

/*
 * What a command of the program is.  main.c holds the list; each command has a file cmd_NAME.c
 * with one constant struct command.  Parsing, --help, completion and the check of the manual all
 * walk these tables, so nothing about a command is written twice.
 */

#include "src/base/options.h"

/* Exit codes, a contract with scripts: see "EXIT STATUS" of drdotnet-trace(1). */
enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1, /* for input: nothing readable, no valid header */
	EXIT_USAGE = 2, /* wrong command line */
	EXIT_PARTIAL = 3, /* there is a result and it is valid, but incomplete */
	EXIT_CONDITION = 4, /* a --fail-if condition held */
	EXIT_UNREACHABLE = 5, /* the target was not found, refused, or did not answer in time */
};

struct command {
	const char *name;
	const char *operands; /* as shown in --help: "FILE [SECTION...]"; "" for none */
	const char *summary; /* one line for the list of commands */
	const char *notes; /* more for --help, whole lines; NULL: none */
	const struct opt_spec *options; /* ends at a row without a name */
	/*
	 * argv[0] is the command's name.  Calls opt_parse() first.  The result is the exit code;
	 * whatever went wrong has been said on standard error.
	 */
	int (*run)(const struct command *cmd, int argc, char **argv);
};

extern const struct command cmd_ps;
extern const struct command cmd_collect;
extern const struct command cmd_report;
extern const struct command cmd_events;
extern const struct command cmd_stack;
extern const struct command cmd_counters;
extern const struct command cmd_process;
extern const struct command cmd_doctor;
extern const struct command cmd_analyzers;
#ifdef HAVE_STORE
extern const struct command cmd_sample;
extern const struct command cmd_history;
#endif

#endif
