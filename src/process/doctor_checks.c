/* SPDX-License-Identifier: MIT */
#include "src/process/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/ipc/process_list.h"
#include "src/proc/proc.h"

enum { MAX_ENVIRON = 4 << 20, YOUNG_S = 5 };

/* --- the list of checks --- */

const char *doctor_level_name(enum doctor_level level)
{
	static const char *const names[] = { "ok", "info", "warning", "failed", "unknown" };

	return names[level];
}

void doctor_add(struct doctor_report *r, const char *id, enum doctor_level level, const char *fmt,
		...)
{
	struct doctor_check *c;
	va_list ap;

	if (r->count == DOCTOR_MAX_CHECKS)
		return;
	c = &r->checks[r->count++];
	c->id = id;
	c->level = level;
	c->advice[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(c->message, sizeof(c->message), fmt, ap);
	va_end(ap);
}

void doctor_advise(struct doctor_report *r, const char *fmt, ...)
{
	struct doctor_check *c = &r->checks[r->count - 1];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->advice, sizeof(c->advice), fmt, ap);
	va_end(ap);
}

bool doctor_has(const struct doctor_report *r, enum doctor_level level)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->checks[i].level == level)
			return true;
	return false;
}

/* --- one process --- */

struct patient {
	const struct doctor_settings *s;
	const struct ipc_target *t;
	struct doctor_report *r;
	char *env; /* as it was started; NULL: not readable */
	size_t env_bytes;
	const char *tmp; /* its TMPDIR; NULL: not set, or not known */
};

static const char *variable(const struct patient *p, const char *name)
{
	return p->env ? proc_environ_find(p->env, p->env_bytes, name) : NULL;
}

/* DOTNET_NAME or COMPlus_NAME; *ret_full is the one that is set. */
static const char *setting(const struct patient *p, const char *name, char *full, size_t size)
{
	static const char *const prefixes[] = { "DOTNET_", "COMPlus_" };

	for (size_t i = 0; i < 2; i++) {
		const char *value;

		snprintf(full, size, "%s%s", prefixes[i], name);
		value = variable(p, full);
		if (value)
			return value;
	}
	return NULL;
}

/* False: there is nothing more to find out. */
static bool check_exists(const struct patient *p)
{
	const struct ipc_target *t = p->t;
	struct process_hold hold;

	switch (t->why) {
	case IPC_WHY_GONE:
		doctor_add(p->r, "process", DOCTOR_FAILED, "there is no process %" PRId32, t->pid);
		doctor_advise(p->r, "'drdotnet-trace ps' lists the .NET processes");
		doctor_check_leftovers(p->s, "/tmp", t->pid, p->r);
		return false;
	case IPC_WHY_KERNEL:
		doctor_add(p->r, "process", DOCTOR_FAILED, "it is a thread of the kernel");
		doctor_advise(p->r, "'drdotnet-trace ps' lists the .NET processes");
		return false;
	case IPC_WHY_ENDED:
		doctor_add(p->r, "process", DOCTOR_FAILED,
			   "it has ended, and its parent has not noticed yet");
		doctor_advise(p->r, "trace it from its start on");
		return false;
	default:
		break;
	}
	if (process_is_held(p->s->root, t, &hold)) {
		doctor_add(p->r, "process", DOCTOR_FAILED, "%s", hold.why);
		doctor_advise(p->r, "%s", hold.advice);
	} else {
		doctor_add(p->r, "process", DOCTOR_OK, "it runs: %s", t->stat.comm);
	}
	return true;
}

static void check_user(const struct patient *p)
{
	const struct ipc_target *t = p->t;
	char user[64];

	if (!t->uid_known) {
		doctor_add(p->r, "user", DOCTOR_UNKNOWN, "whose process it is cannot be seen");
		doctor_advise(p->r, "run as root");
		return;
	}
	proc_user_name(t->uid, user, sizeof(user));
	if (t->uid == geteuid()) {
		doctor_add(p->r, "user", DOCTOR_OK, "it belongs to this user, %s", user);
	} else if (doctor_overrides(p->s->root)) {
		doctor_add(p->r, "user", DOCTOR_OK,
			   "it belongs to user %s, which CAP_DAC_OVERRIDE makes no obstacle", user);
	} else if (geteuid() == 0) {
		doctor_add(p->r, "user", DOCTOR_FAILED,
			   "it belongs to user %s, and this root lacks CAP_DAC_OVERRIDE", user);
		doctor_advise(p->r, "run as %s, or give the container that capability", user);
	} else if (t->uid == 0) {
		doctor_add(p->r, "user", DOCTOR_FAILED,
			   "it belongs to root, whose sockets only root may use");
		doctor_advise(p->r, "run as root");
	} else {
		doctor_add(p->r, "user", DOCTOR_FAILED,
			   "it belongs to user %s, whose sockets only %s and root may use", user,
			   user);
		doctor_advise(p->r, "run as %s or as root", user);
	}
}

static void check_namespace(const struct patient *p)
{
	const struct ipc_target *t = p->t;
	const char *which = t->other_pid_ns ? "other processes" : "other files";

	if (t->other_pid_ns && t->other_mount_ns)
		which = "other files and processes";
	if (!t->other_pid_ns && !t->other_mount_ns) {
		doctor_add(p->r, "namespace", DOCTOR_OK, "it sees the same files and processes");
	} else if (t->why == IPC_WHY_NO_ACCESS) {
		doctor_add(p->r, "namespace", DOCTOR_FAILED,
			   "it runs in a namespace with %s, which this user may not look into",
			   which);
		doctor_advise(p->r, "run as root with the capability SYS_PTRACE");
	} else {
		doctor_add(p->r, "namespace", DOCTOR_INFO,
			   "it runs in a namespace with %s, as process %" PRId32
			   "; it is reached through %s/%" PRId32 "/root",
			   which, t->ns_pid, p->s->root, t->pid);
	}
}

static void check_tmpdir(const struct patient *p)
{
	const struct ipc_target *t = p->t;
	struct stat st;

	if (!p->env) {
		doctor_add(p->r, "tmpdir", DOCTOR_UNKNOWN,
			   "its environment cannot be read; %s is looked into", t->dir);
		doctor_advise(p->r, "run as root, or as the user of the process");
	} else if (stat(t->dir, &st) != 0 && errno == ENOENT) {
		doctor_add(p->r, "tmpdir", DOCTOR_FAILED,
			   "its directory for sockets does not exist: %s",
			   p->tmp ? p->tmp : "/tmp");
		doctor_advise(p->r, "create it before the process starts, or unset TMPDIR");
	} else if (p->tmp) {
		doctor_add(p->r, "tmpdir", DOCTOR_INFO, "its TMPDIR is '%.300s'", p->tmp);
	} else {
		doctor_add(p->r, "tmpdir", DOCTOR_OK, "it has no TMPDIR: its socket is in /tmp");
	}
}

static void check_path_length(const struct patient *p)
{
	const struct ipc_target *t = p->t;
	char name[96];
	size_t room = sizeof(((struct sockaddr_un *)0)->sun_path) - 1, len;

	len = t->own_dir_bytes + (size_t)snprintf(name, sizeof(name),
						  "/dotnet-diagnostic-%" PRId32 "-%" PRIu64
						  "-socket",
						  t->ns_pid, t->stat.start_ticks);
	if (t->why != IPC_WHY_TOO_LONG) {
		doctor_add(p->r, "path-length", DOCTOR_OK,
			   "the path of its socket has %zu of at most %zu bytes", len, room);
		return;
	}
	doctor_add(p->r, "path-length", DOCTOR_FAILED,
		   "the path of its socket would have %zu bytes, and only %zu are possible: it has "
		   "no socket",
		   len, room);
	doctor_advise(p->r, "start it with a TMPDIR of at most %zu bytes", room - strlen(name));
}

/* The runtime reads such numbers as hexadecimal. */
static bool is_zero(const char *text)
{
	char *end;
	unsigned long v = strtoul(text, &end, 16);

	return end != text && v == 0;
}

static void check_enabled(const struct patient *p)
{
	static const char *const names[] = { "EnableDiagnostics", "EnableDiagnostics_IPC" };
	bool socket = p->t->why == IPC_WHY_FOUND;
	char full[64];

	for (size_t i = 0; i < 2; i++) {
		const char *value = setting(p, names[i], full, sizeof(full));

		if (!value || !is_zero(value))
			continue;
		doctor_add(p->r, "diagnostics", socket ? DOCTOR_INFO : DOCTOR_FAILED,
			   "it was started with %s=%.20s%s", full, value,
			   socket ? ", which this runtime does not heed"
				  : ", which switches its diagnostics off");
		doctor_advise(p->r, "start it without %s", full);
		return;
	}
	if (p->env)
		doctor_add(p->r, "diagnostics", DOCTOR_OK,
			   "no variable switches its diagnostics off");
	else
		doctor_add(p->r, "diagnostics", DOCTOR_UNKNOWN,
			   "whether a variable switches its diagnostics off cannot be read");
}

/* Was it started to wait for a tool? */
static bool check_ports(const struct patient *p)
{
	char full[64];
	const char *suspend = setting(p, "DefaultDiagnosticPortSuspend", full, sizeof(full));
	const char *ports = setting(p, "DiagnosticPorts", full, sizeof(full));
	bool waits = suspend && !is_zero(suspend);

	if (ports && *ports) {
		doctor_add(p->r, "ports", DOCTOR_INFO, "it also connects to %.300s", ports);
		if (!strcasestr(ports, "nosuspend")) {
			doctor_advise(p->r, "until the tool that listens there resumes it, it "
					    "waits at its start");
			waits = true;
		}
	}
	return waits;
}

static bool failed(const struct doctor_report *r, const char *id)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->checks[i].level == DOCTOR_FAILED && strcmp(r->checks[i].id, id) == 0)
			return true;
	return false;
}

static void no_socket(const struct patient *p)
{
	const struct ipc_target *t = p->t;
	double age_s = proc_uptime_s(p->s->root, &t->stat);

	doctor_add(p->r, "socket", DOCTOR_FAILED, "there is no diagnostic socket of it in %s%s",
		   t->dir, t->dotnet ? "" : ", and it does not look like .NET");
	if (failed(p->r, "path-length"))
		doctor_advise(p->r, "see path-length");
	else if (failed(p->r, "diagnostics"))
		doctor_advise(p->r, "see diagnostics");
	else if (failed(p->r, "tmpdir"))
		doctor_advise(p->r, "see tmpdir");
	else if (t->dotnet && age_s >= 0 && age_s < YOUNG_S)
		doctor_advise(p->r, "it started %.0f s ago: try again in a moment", age_s);
	else if (t->dotnet)
		doctor_advise(p->r, "if nothing above explains it, its socket was removed from the "
				    "directory: start the program again");
	else
		doctor_advise(p->r, "needed is .NET Core 3.0 or later, or NativeAOT built with "
				    "EventSourceSupport");
}

static void check_socket(const struct patient *p)
{
	const struct ipc_target *t = p->t;

	if (t->why == IPC_WHY_FOUND) {
		doctor_add(p->r, "socket", DOCTOR_OK, "%s", t->sockets[0].path);
	} else if (t->why == IPC_WHY_NO_ACCESS) {
		doctor_add(p->r, "socket", DOCTOR_FAILED, "%s cannot be read by this user", t->dir);
		doctor_advise(p->r, "run as root, or as the user of the process");
	} else if (t->why == IPC_WHY_NO_MEMORY) {
		doctor_add(p->r, "socket", DOCTOR_UNKNOWN, "out of memory");
	} else {
		no_socket(p);
	}
}

/* Files of earlier processes with its number; with another start time they are not taken for it. */
static void check_stale(const struct patient *p)
{
	if (p->t->dir && !p->t->other_pid_ns)
		doctor_check_leftovers(p->s, p->t->dir, p->t->pid, p->r);
}

static void check_perf(const struct patient *p)
{
	int error = p->s->perf ? p->s->perf(p->t->pid) : 0;

	if (!p->s->perf)
		return;
	if (error == 0) {
		doctor_add(p->r, "perf_event", DOCTOR_OK, "perf events of it can be opened");
		return;
	}
	doctor_add(p->r, "perf_event", DOCTOR_WARNING,
		   "perf events of it cannot be opened: %s; traces do not need them",
		   strerror(error));
	doctor_advise(p->r, "see kernel.perf_event_paranoid and CAP_PERFMON in the part about this "
			    "machine");
}

void doctor_check_process(const struct doctor_settings *s, const struct ipc_target *t,
			  struct doctor_report *r)
{
	struct patient p = { .s = s, .t = t, .r = r };
	bool told_to_wait;

	if (!check_exists(&p))
		return;
	p.env = proc_read_file(s->root, t->pid, "environ", MAX_ENVIRON, &p.env_bytes);
	p.tmp = variable(&p, "TMPDIR");
	if (p.tmp && !*p.tmp)
		p.tmp = NULL;
	check_user(&p);
	check_namespace(&p);
	check_tmpdir(&p);
	check_path_length(&p);
	check_enabled(&p);
	told_to_wait = check_ports(&p);
	check_socket(&p);
	check_stale(&p);
	if (t->why == IPC_WHY_FOUND && !doctor_has(r, DOCTOR_FAILED))
		doctor_check_runtime(s, t,
				     told_to_wait ? proc_waits_at_start(s->root, t->pid)
						  : proc_stays_at_start(s->root, t->pid),
				     told_to_wait, r);
	if (s->session)
		check_perf(&p);
	free(p.env);
}
