/* SPDX-License-Identifier: MIT */
#include "src/collect_target.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/command.h"
#include "src/log.h"
#include "src/process_list.h"

enum { YOUNG_S = 3, LOOK_AGAIN_MS = 20 };

void collect_target_done(struct collect_target *t)
{
	ipc_target_done(&t->target);
	free(t->name);
	t->name = NULL;
}

/* A process that has just been started may not have its port yet: "app & collect -p $!". */
static enum ipc_why find_patiently(int32_t pid, struct ipc_target *ret)
{
	enum ipc_why why = ipc_find_process(PROC_ROOT, pid, ret);

	while (why == IPC_WHY_NO_SOCKET && proc_uptime_s(PROC_ROOT, &ret->stat) < YOUNG_S) {
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_AGAIN_MS * 1000000 }, NULL);
		ipc_target_done(ret);
		why = ipc_find_process(PROC_ROOT, pid, ret);
	}
	return why;
}

static int by_pid(struct collect_target *ret, int32_t pid)
{
	enum ipc_why why = find_patiently(pid, &ret->target);
	char *line, text[256];

	if (why != IPC_WHY_FOUND) {
		process_why_not(&ret->target, text, sizeof(text));
		log_error("cannot trace process %" PRId32 ": %s", pid, text);
		if (why == IPC_WHY_NO_SOCKET || why == IPC_WHY_GONE)
			log_advice("'drdotnet-trace ps' lists the processes that can be traced");
		return EXIT_UNREACHABLE;
	}
	line = proc_read_command_line(PROC_ROOT, pid);
	ret->name = process_guess_name(line, ret->target.stat.comm);
	free(line);
	return ret->name ? -1 : EXIT_FAILED;
}

static void list_candidates(const struct process_list *l, const char *name)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct process *p = &l->items[i];

		if (name ? process_is_named(p, name) : p->traceable)
			log_info("  %" PRId32 "  %s  %s", p->target->pid, p->name ? p->name : "",
				 p->command_line ? p->command_line : "");
	}
}

/* None, or several. */
static int not_one(const struct process_list *l, const char *name, size_t matches)
{
	if (matches == 0 && name)
		log_error("cannot find a .NET process named '%s'", name);
	else if (matches == 0)
		log_error("cannot find a .NET process that can be traced");
	if (matches == 0) {
		log_advice("'drdotnet-trace ps' says which there are, and why they cannot be "
			   "traced");
		return EXIT_UNREACHABLE;
	}
	if (name)
		log_error("%zu processes are named '%s': choose one with -p", matches, name);
	else
		log_error("%zu processes can be traced: choose one with -p", matches);
	list_candidates(l, name);
	return EXIT_USAGE;
}

static int from_list(struct collect_target *ret, const char *name, uint64_t ask_ms)
{
	struct process_list l;
	const struct process *match = NULL;
	size_t matches = 0;
	int code = -1;

	if (!process_list_load(&l, PROC_ROOT, ask_ms))
		return EXIT_FAILED;
	for (size_t i = 0; i < l.count; i++) {
		const struct process *p = &l.items[i];

		if (name ? process_is_named(p, name) : p->traceable) {
			match = p;
			matches++;
		}
	}
	if (matches != 1) {
		code = not_one(&l, name, matches);
	} else if (!match->traceable) {
		log_error("cannot trace process %" PRId32 " (%s): %s", match->target->pid,
			  match->name ? match->name : "", match->why_not);
		code = EXIT_UNREACHABLE;
	} else {
		code = by_pid(ret, match->target->pid);
		if (code < 0 && match->name) {
			free(ret->name);
			ret->name = strdup(match->name);
		}
	}
	process_list_done(&l);
	return code < 0 && !ret->name ? EXIT_FAILED : code;
}

int collect_target_choose(struct collect_target *ret, int32_t pid, const char *name,
			  uint64_t ask_ms)
{
	*ret = (struct collect_target){ 0 };
	return pid ? by_pid(ret, pid) : from_list(ret, name, ask_ms);
}
