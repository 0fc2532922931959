/* SPDX-License-Identifier: MIT */
#include "src/collect/collect_target.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/ipc/process_info.h"
#include "src/ipc/process_list.h"

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

/* The number may mean a process of another pid namespace, whose socket we share. */
static bool advise_foreign(int32_t pid)
{
	struct ipc_found f;
	bool advised = false;

	if (!ipc_find_foreign_pid(pid, &f))
		return false;
	for (size_t i = 0; i < f.count && !advised; i++) {
		const char *path = f.targets[i].sockets[0].path;
		struct port_address a = { .path = (char *)(uintptr_t)path, .connect = true };
		int fd = port_address_connect(&a);

		if (fd < 0)
			continue;
		close(fd);
		log_advice("a process of another pid namespace has that number: trace it with "
			   "--diagnostic-port %s,connect",
			   path);
		advised = true;
	}
	ipc_found_done(&f);
	return advised;
}

static int by_pid(struct collect_target *ret, int32_t pid)
{
	enum ipc_why why = find_patiently(pid, &ret->target);
	char *line, text[256];

	if (why != IPC_WHY_FOUND) {
		process_why_not(&ret->target, text, sizeof(text));
		log_error("cannot trace process %" PRId32 ": %s", pid, text);
		if (!advise_foreign(pid) && (why == IPC_WHY_NO_SOCKET || why == IPC_WHY_GONE))
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

/* Nothing of it but the socket can be seen. */
static int by_socket(struct collect_target *ret, const struct process *p)
{
	const struct ipc_target *t = p->target;

	ret->target = *t;
	ret->target.dir = NULL;
	ret->target.socket_count = 0;
	ret->target.sockets = calloc(1, sizeof(*t->sockets));
	ret->name = strdup(p->name ? p->name : "process");
	if (!ret->target.sockets || !ret->name)
		return EXIT_FAILED;
	ret->target.sockets[0] = t->sockets[0];
	ret->target.sockets[0].path = strdup(t->sockets[0].path);
	ret->target.socket_count = 1;
	return ret->target.sockets[0].path ? -1 : EXIT_FAILED;
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
	} else if (match->target->foreign) {
		code = by_socket(ret, match);
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

/* --- behind a port --- */

static void on_told(void *ctx)
{
	(void)ctx; /* the loop ends */
}

static bool ask(const struct ipc_source *source, uint64_t ask_ms, struct process_info *ret)
{
	uv_loop_t loop;
	bool ok;

	*ret = (struct process_info){ 0 };
	if (uv_loop_init(&loop) < 0)
		return false;
	ok = process_info_ask_from(&loop, source, ask_ms, ret, on_told, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	return ok;
}

/* Who has opened the socket; 0: it cannot be seen from here. */
static int32_t socket_owner(const struct ipc_source *source)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);
	int fd = source->connect(source->ctx);

	if (fd < 0)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		cred.pid = 0;
	close(fd);
	return cred.pid > 0 ? cred.pid : 0;
}

static int no_answer(const struct port_address *port, const struct ipc_target *t,
		     const struct ipc_conn_end *end)
{
	const char *name = port_address_name(port);
	struct process_hold hold = { .advice = "" };

	if (end->why == IPC_CONN_TIMEOUT && process_is_held(PROC_ROOT, t, &hold))
		log_error("cannot trace '%s': %s", name, hold.why);
	else if (end->why == IPC_CONN_TIMEOUT)
		log_error("cannot trace '%s': it did not answer in time", name);
	else if (end->why == IPC_CONN_PROTOCOL)
		log_error("cannot trace '%s': %s", name, ipc_status_text(end->status));
	else if (end->why == IPC_CONN_EOF)
		log_error("cannot trace '%s': it closed the connection without an answer", name);
	else
		log_error("cannot trace '%s': cannot connect: %s", name, uv_strerror(end->error));
	if (*hold.advice)
		log_advice("%s", hold.advice);
	return EXIT_UNREACHABLE;
}

/* .NET Core 3 does not say who it is, and a suspended runtime little. */
static char *name_from(const struct process_info *info, const struct ipc_target *t)
{
	char *line, *name;

	if (info->entry_assembly && *info->entry_assembly)
		return strdup(info->entry_assembly);
	if (info->command_line && *info->command_line)
		return process_guess_name(info->command_line, "process");
	if (t->foreign)
		return strdup("process");
	line = proc_read_command_line(PROC_ROOT, t->pid);
	name = process_guess_name(line, t->stat.comm);
	free(line);
	return name;
}

int collect_target_ask(struct collect_target *ret, const struct port_address *port,
		       const struct ipc_source *source, uint64_t ask_ms)
{
	struct process_info info;
	struct ipc_target *t = &ret->target;
	int code = -1;

	*ret = (struct collect_target){ 0 };
	if (!ask(source, ask_ms, &info)) {
		log_error("cannot collect: out of memory");
		return EXIT_FAILED;
	}
	t->pid = port->path ? socket_owner(source) : 0;
	t->foreign = t->pid == 0 || !proc_read_stat(PROC_ROOT, t->pid, &t->stat);
	if (t->foreign)
		t->pid = info.pid <= INT32_MAX ? (int32_t)info.pid : 0;
	else
		t->uid_known = proc_read_uid(PROC_ROOT, t->pid, &t->uid);
	if (!info.answered)
		code = no_answer(port, t, &info.end);
	ret->name = name_from(&info, t);
	process_info_done(&info);
	return code < 0 && !ret->name ? EXIT_FAILED : code;
}
