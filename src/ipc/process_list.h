/* SPDX-License-Identifier: MIT */
#ifndef SRC_IPC_PROCESS_LIST_H
#define SRC_IPC_PROCESS_LIST_H

/*
 * The .NET processes of this machine as people and scripts see them: what /proc says, and what each
 * runtime answers about itself.  All runtimes are asked at once.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/ipc/ipc_find.h"

struct process {
	const struct ipc_target *target;
	char *name; /* entry assembly, else the *.dll on the command line, else the process name */
	char *runtime_version; /* NULL: not known; so the next three */
	char *arch;
	char *container;
	char *command_line;
	char user[64]; /* "" unknown */
	double uptime_s; /* negative: unknown */
	bool traceable;
	bool unreachable; /* its socket cannot be connected to */
	char why_not[256]; /* "" when traceable */
};

struct process_list {
	struct process *items; /* by pid */
	size_t count;
	struct ipc_found found; /* what items[].target points into */
};

/*
 * With the root "/proc", sockets without a process to be seen are looked at too: target->foreign.
 * ask_ms: how long a runtime may take to answer.  False when /proc cannot be read or memory is
 * out, said on standard error.
 */
bool process_list_load(struct process_list *ret, const char *root, uint64_t ask_ms);
void process_list_done(struct process_list *l);

/* Does this process go by that name: its own, its entry assembly's, its *.dll's? */
bool process_is_named(const struct process *p, const char *name);

/* For one process: why there is no socket, for people.  Needs t->why other than IPC_WHY_FOUND. */
void process_why_not(const struct ipc_target *t, char *buf, size_t size);
/* Whose it is and who may trace it. */
void process_whose(const struct ipc_target *t, char *buf, size_t size);

/* What holds a process, so that its runtime cannot answer, and what to do about it. */
struct process_hold {
	char why[64]; /* "it is stopped by a signal, so its runtime cannot answer" */
	char advice[64];
};

/* False: nothing does, or it cannot be seen from here.  t may be NULL. */
bool process_is_held(const char *root, const struct ipc_target *t, struct process_hold *ret);
/* The version of a runtime that does not tell it, from the files it was loaded from; the caller
 * frees it.  NULL: not to be seen. */
char *process_version_from_maps(const char *root, int32_t pid);
/* "app", from "dotnet /srv/app.dll --x" or the process's name; the caller frees it. */
char *process_guess_name(const char *command_line, const char *comm);

#endif
