/* SPDX-License-Identifier: MIT */
#include "src/ipc/process_list.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/base/log.h"
#include "src/ipc/process_info.h"

enum { COMM_MAX = 15 }; /* what the kernel keeps of a name */

/* One process being asked: its sockets in turn, newest first. */
struct asking {
	uv_loop_t *loop;
	struct process *process;
	const char *root;
	struct process_info info;
	size_t socket;
	uint64_t ask_ms;
};

/* The first word without its folders, if comm is a cut version of it. */
static char *longer_name(const char *command_line, const char *comm)
{
	size_t n = command_line ? strcspn(command_line, " ") : 0;
	const char *base = command_line ? command_line + n : NULL;

	while (base && base > command_line && base[-1] != '/')
		base--;
	if (base && strlen(comm) == COMM_MAX && strncmp(base, comm, COMM_MAX) == 0)
		return strndup(base, (size_t)(command_line + n - base));
	return strdup(comm);
}

char *process_guess_name(const char *command_line, const char *comm)
{
	const char *p = command_line;

	while (p && *p) {
		size_t n = strcspn(p, " ");
		const char *base = p + n;

		if (n > 4 && strncasecmp(p + n - 4, ".dll", 4) == 0) {
			while (base > p && base[-1] != '/')
				base--;
			return strndup(base, (size_t)(p + n - 4 - base));
		}
		p += n + (p[n] == ' ');
	}
	return longer_name(command_line, comm);
}

void process_whose(const struct ipc_target *t, char *buf, size_t size)
{
	char user[64];

	if (!t->uid_known) {
		snprintf(buf, size, "it belongs to another user: run as root");
		return;
	}
	proc_user_name(t->uid, user, sizeof(user));
	if (t->uid == 0)
		snprintf(buf, size, "it belongs to user %s: run as root", user);
	else
		snprintf(buf, size, "it belongs to user %s: run as %s or as root", user, user);
}

void process_why_not(const struct ipc_target *t, char *buf, size_t size)
{
	switch (t->why) {
	case IPC_WHY_FOUND:
		snprintf(buf, size, "%s", "");
		break;
	case IPC_WHY_GONE:
		snprintf(buf, size, "there is no such process");
		break;
	case IPC_WHY_KERNEL:
		snprintf(buf, size, "it is a thread of the kernel");
		break;
	case IPC_WHY_ENDED:
		snprintf(buf, size, "it has ended");
		break;
	case IPC_WHY_NO_SOCKET:
		snprintf(buf, size, "%s%s: %s", "it has no diagnostic socket in ",
			 t->dir ? t->dir : "its directory",
			 t->dotnet ? "disabled by DOTNET_EnableDiagnostics=0, or still starting"
				   : "no .NET runtime, or diagnostics disabled");
		break;
	case IPC_WHY_NO_ACCESS:
		process_whose(t, buf, size);
		break;
	case IPC_WHY_TOO_LONG:
		snprintf(buf, size, "its TMPDIR is too long for a socket: give it a shorter one");
		break;
	case IPC_WHY_NO_MEMORY:
		snprintf(buf, size, "out of memory");
		break;
	}
}

bool process_is_held(const char *root, const struct ipc_target *t, struct process_hold *ret)
{
	struct proc_stat now;
	bool debugger;

	if (!t || t->foreign)
		return false;
	now = t->stat;
	proc_read_stat(root, t->pid, &now); /* it may have stopped since, or gone on */
	if (now.start_ticks != t->stat.start_ticks || (now.state != 'T' && now.state != 't'))
		return false;
	debugger = now.state == 't';
	snprintf(ret->why, sizeof(ret->why), "it is stopped by a %s, so its runtime cannot answer",
		 debugger ? "debugger" : "signal");
	snprintf(ret->advice, sizeof(ret->advice),
		 debugger ? "let the debugger of %" PRId32 " go on"
			  : "let it go on: kill -CONT %" PRId32,
		 t->pid);
	return true;
}

/* Why a socket that is there does not serve us. */
static void describe_silence(struct process *p, const struct process_info *info, const char *root)
{
	int error = info->end.error;
	struct process_hold hold;

	p->unreachable = info->end.why == IPC_CONN_CONNECT;
	if (info->end.why == IPC_CONN_TIMEOUT && process_is_held(root, p->target, &hold))
		snprintf(p->why_not, sizeof(p->why_not), "%s: %s", hold.why, hold.advice);
	else if (info->end.why == IPC_CONN_TIMEOUT)
		snprintf(p->why_not, sizeof(p->why_not),
			 "it does not answer: overloaded, or another tool blocks its diagnostics");
	else if (error == -EACCES || error == -EPERM)
		process_whose(p->target, p->why_not, sizeof(p->why_not));
	else if (info->end.why == IPC_CONN_PROTOCOL)
		snprintf(p->why_not, sizeof(p->why_not), "%s", ipc_status_text(info->end.status));
	else
		snprintf(p->why_not, sizeof(p->why_not), "its socket is dead: %s",
			 uv_strerror(error));
}

/* .NET Core 3 and .NET 5 do not tell their version; the file they were loaded from does. */
char *process_version_from_maps(const char *root, int32_t pid)
{
	static const char folder[] = "/Microsoft.NETCore.App/";
	char *maps = proc_read_file(root, pid, "maps", 8 << 20, NULL), *version = NULL;
	const char *p = maps ? strstr(maps, folder) : NULL;

	if (p) {
		size_t n;

		p += sizeof(folder) - 1;
		n = strcspn(p, "/\n");
		if (isdigit((unsigned char)*p) && p[n] == '/')
			version = strndup(p, n);
	}
	free(maps);
	return version;
}

/* "10.0.12+commit" and "10.0.12-servicing.1 @commit": what stands before. */
static void cut_commit(char *version)
{
	if (version)
		version[strcspn(version, "+@ ")] = '\0';
}

static void take_answer(struct asking *a)
{
	struct process *p = a->process;

	p->traceable = true;
	cut_commit(a->info.runtime_version);
	p->runtime_version = a->info.runtime_version;
	p->arch = a->info.arch;
	a->info.runtime_version = a->info.arch = NULL;
	if (a->info.entry_assembly) {
		free(p->name);
		p->name = a->info.entry_assembly;
		a->info.entry_assembly = NULL;
	}
	if (!p->command_line) {
		p->command_line = a->info.command_line;
		a->info.command_line = NULL;
	}
	if (!p->name && p->command_line)
		p->name = process_guess_name(p->command_line, "");
}

static void on_answer(void *ctx)
{
	struct asking *a = ctx;
	const struct ipc_target *t = a->process->target;

	if (a->info.answered) {
		take_answer(a);
	} else if (a->info.end.error == -ECONNREFUSED && a->socket + 1 < t->socket_count) {
		a->socket++;
		if (process_info_ask(a->loop, t->sockets[a->socket].path, a->ask_ms, &a->info,
				     on_answer, a))
			return;
	}
	if (!a->process->traceable)
		describe_silence(a->process, &a->info, a->root);
	process_info_done(&a->info);
}

static void fill(struct process *p, const struct ipc_target *t, const char *root)
{
	char container[64];

	p->target = t;
	if (t->uid_known)
		proc_user_name(t->uid, p->user, sizeof(p->user));
	if (t->foreign) {
		p->container = strdup("foreign");
		p->uptime_s = -1;
		return;
	}
	p->command_line = proc_read_command_line(root, t->pid);
	p->name = process_guess_name(p->command_line, t->stat.comm);
	if (proc_container(root, t->pid, container, sizeof(container)))
		p->container = strdup(container);
	else if (t->other_pid_ns &&
		 proc_read_link(root, t->pid, "ns/pid", container, sizeof(container)))
		p->container = strdup(container);
	p->uptime_s = proc_uptime_s(root, &t->stat);
	if (t->why != IPC_WHY_FOUND)
		process_why_not(t, p->why_not, sizeof(p->why_not));
}

static bool ask_all(struct process_list *l, const char *root, uint64_t ask_ms)
{
	struct asking *all = calloc(l->count ? l->count : 1, sizeof(*all));
	uv_loop_t loop;

	if (!all || uv_loop_init(&loop) < 0) {
		free(all);
		return false;
	}
	for (size_t i = 0; i < l->count; i++) {
		const struct ipc_target *t = l->items[i].target;
		struct asking *a = &all[i];

		*a = (struct asking){
			.loop = &loop, .process = &l->items[i], .root = root, .ask_ms = ask_ms
		};
		if (t->why == IPC_WHY_FOUND &&
		    !process_info_ask(&loop, t->sockets[0].path, ask_ms, &a->info, on_answer, a))
			snprintf(l->items[i].why_not, sizeof(l->items[i].why_not), "out of memory");
	}
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	free(all);
	return true;
}

/* Old runtimes and NativeAOT leave gaps that /proc can fill. */
static void fill_gaps(struct process_list *l, const char *root)
{
	for (size_t i = 0; i < l->count; i++) {
		struct process *p = &l->items[i];

		if (p->target->foreign)
			continue;
		if (!p->runtime_version || !*p->runtime_version) {
			free(p->runtime_version);
			p->runtime_version = process_version_from_maps(root, p->target->pid);
		}
		if (!p->arch) {
			const char *arch = proc_exe_arch(root, p->target->pid);

			p->arch = arch ? strdup(arch) : NULL;
		}
	}
}

static void free_process(struct process *p)
{
	free(p->name);
	free(p->runtime_version);
	free(p->arch);
	free(p->container);
	free(p->command_line);
}

/*
 * A socket that nobody can be seen to own and nobody answers is one that a process left behind, or
 * another user's affair.
 */
static void forget_dead_sockets(struct process_list *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++) {
		struct process *p = &l->items[i];

		if (p->target->foreign && !p->traceable && p->unreachable)
			free_process(p);
		else
			l->items[kept++] = *p;
	}
	l->count = kept;
}

bool process_list_load(struct process_list *ret, const char *root, uint64_t ask_ms)
{
	*ret = (struct process_list){ 0 };
	if (!ipc_find_all(root, &ret->found)) {
		log_error("cannot list processes in '%s': %s", root, strerror(errno));
		return false;
	}
	if (strcmp(root, PROC_ROOT) == 0 && !ipc_find_foreign(&ret->found)) {
		log_error("cannot list processes: out of memory");
		process_list_done(ret);
		return false;
	}
	ret->items = calloc(ret->found.count ? ret->found.count : 1, sizeof(*ret->items));
	if (!ret->items) {
		log_error("cannot list processes: out of memory");
		process_list_done(ret);
		return false;
	}
	ret->count = ret->found.count;
	for (size_t i = 0; i < ret->count; i++)
		fill(&ret->items[i], &ret->found.targets[i], root);
	if (!ask_all(ret, root, ask_ms)) {
		log_error("cannot ask the processes: out of memory");
		process_list_done(ret);
		return false;
	}
	forget_dead_sockets(ret);
	fill_gaps(ret, root);
	return true;
}

void process_list_done(struct process_list *l)
{
	for (size_t i = 0; l->items && i < l->count; i++)
		free_process(&l->items[i]);
	free(l->items);
	ipc_found_done(&l->found);
	*l = (struct process_list){ 0 };
}

bool process_is_named(const struct process *p, const char *name)
{
	char *guess;
	bool is;

	if (strcmp(p->target->stat.comm, name) == 0 || (p->name && strcasecmp(p->name, name) == 0))
		return true;
	guess = process_guess_name(p->command_line, p->target->stat.comm);
	is = guess && strcasecmp(guess, name) == 0;
	free(guess);
	return is;
}
