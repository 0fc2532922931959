/* SPDX-License-Identifier: MIT */
#ifndef SRC_BASE_HELP_H
#define SRC_BASE_HELP_H

/* What the option tables say, as text: --help and the words for shell completion. */

#include "src/base/options.h"

struct command;

/* Prints the help of a command on standard output; returns an exit code. */
int opt_print_help(const struct command *cmd);

/*
 * One line an option: its name with dashes, a tab, and the words or kind of its argument ("" for
 * none): "--format\ttext json".  For completion and for the check of the manual.
 */
int opt_print_list(const struct command *cmd);

/* A number as a person would write it for that kind: "1h30m", "64M", "20". */
void opt_format_number(enum opt_kind kind, uint64_t v, char *buf, size_t size);

#endif
