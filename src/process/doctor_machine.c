/* SPDX-License-Identifier: MIT */
#include "src/process/doctor.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/proc/proc.h"

/* Numbers of capabilities, which never change. */
enum { DAC_OVERRIDE = 1, SYS_PTRACE = 19, SYS_ADMIN = 21, PERFMON = 38 };

static char *read_text(const char *root, const char *name)
{
	char path[PATH_MAX], text[256];
	size_t n = 0;
	FILE *f = NULL;

	if (snprintf(path, sizeof(path), "%s/%s", root, name) < (int)sizeof(path))
		f = fopen(path, "re");
	if (!f)
		return NULL;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	return strdup(text);
}

/* --- who we are --- */

bool doctor_capabilities(const char *root, uint64_t *ret)
{
	char *status = proc_read_file(root, (int32_t)getpid(), "status", 16384, NULL);
	const char *line = status ? strstr(status, "\nCapEff:") : NULL;

	if (line)
		*ret = strtoull(line + strlen("\nCapEff:"), NULL, 16);
	free(status);
	return line != NULL;
}

static bool has(uint64_t caps, unsigned number)
{
	return (caps >> number & 1) != 0;
}

bool doctor_overrides(const char *root)
{
	uint64_t caps;

	return doctor_capabilities(root, &caps) && has(caps, DAC_OVERRIDE);
}

static void check_identity(const struct doctor_settings *s, struct doctor_report *r)
{
	uint64_t caps = 0;
	uid_t uid = geteuid();
	char user[64], list[128] = "";

	proc_user_name(uid, user, sizeof(user));
	if (!doctor_capabilities(s->root, &caps)) {
		doctor_add(r, "user", DOCTOR_UNKNOWN,
			   "this is user %s (%lu); its capabilities cannot be read", user,
			   (unsigned long)uid);
		return;
	}
	snprintf(list, sizeof(list), "%s%s%s%s", has(caps, DAC_OVERRIDE) ? " DAC_OVERRIDE" : "",
		 has(caps, SYS_PTRACE) ? " SYS_PTRACE" : "", has(caps, PERFMON) ? " PERFMON" : "",
		 has(caps, SYS_ADMIN) ? " SYS_ADMIN" : "");
	if (uid == 0 && has(caps, DAC_OVERRIDE) && has(caps, SYS_PTRACE)) {
		doctor_add(r, "user", DOCTOR_OK,
			   "this is root: processes of all users can be traced (capabilities:%s)",
			   list);
	} else if (uid == 0) {
		doctor_add(r, "user", DOCTOR_WARNING,
			   "this is root, but without all of its rights (capabilities:%s): "
			   "processes of other users, or in other containers, may be out of reach",
			   *list ? list : " none of those that matter");
		doctor_advise(r, "give the container the capabilities DAC_OVERRIDE and "
				 "SYS_PTRACE");
	} else {
		doctor_add(r, "user", DOCTOR_INFO,
			   "this is user %s (%lu): only processes of the same user can be traced "
			   "(capabilities:%s)",
			   user, (unsigned long)uid, *list ? list : " none");
		doctor_advise(r, "run as root, or as the user of the process");
	}
}

/* --- /proc --- */

/* The options of the file system at /proc, from a line "… /proc … - proc proc rw,hidepid=2". */
static bool hides_processes(const char *root)
{
	char *mounts = proc_read_file(root, (int32_t)getpid(), "mountinfo", 1 << 20, NULL);
	bool hides = false;

	for (char *line = mounts; line && *line && !hides;) {
		size_t n = strcspn(line, "\n");
		char *next = line + n + (line[n] == '\n');
		const char *option;

		line[n] = '\0';
		option = strstr(line, " /proc ") ? strstr(line, "hidepid=") : NULL;
		hides = option && option[8] != '0' && strncmp(option + 8, "off", 3) != 0;
		line = next;
	}
	free(mounts);
	return hides;
}

static void check_proc(const struct doctor_settings *s, struct doctor_report *r)
{
	struct proc_stat st;

	if (!proc_read_stat(s->root, (int32_t)getpid(), &st)) {
		doctor_add(r, "proc", DOCTOR_FAILED, "%s does not show this very process", s->root);
		doctor_advise(r, "mount /proc: mount -t proc proc /proc");
	} else if (hides_processes(s->root) && geteuid() != 0) {
		doctor_add(r, "proc", DOCTOR_WARNING,
			   "%s is mounted with hidepid: processes of other users are not shown",
			   s->root);
		doctor_advise(r, "run as root to see all processes");
	} else {
		doctor_add(r, "proc", DOCTOR_OK, "%s shows the processes", s->root);
	}
}

static void check_tmpdir(struct doctor_report *r)
{
	const char *tmp = getenv("TMPDIR");

	if (!tmp || !*tmp)
		doctor_add(r, "tmpdir", DOCTOR_OK,
			   "TMPDIR is not set here; each process is looked for in its own");
	else
		doctor_add(r, "tmpdir", DOCTOR_INFO,
			   "TMPDIR is '%s' here; each process is looked for in its own, which may "
			   "be another",
			   tmp);
}

/* --- perf events --- */

int doctor_perf_event(int32_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1, /* opened to see whether it may be, never started */
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	long fd = syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno;
	close((int)fd);
	return 0;
}

static void check_perf(const struct doctor_settings *s, struct doctor_report *r)
{
	char *text = read_text(s->root, "sys/kernel/perf_event_paranoid");
	uint64_t caps = 0;
	bool known = doctor_capabilities(s->root, &caps);
	const char *perfmon = !known					   ? "unknown"
			      : has(caps, PERFMON) || has(caps, SYS_ADMIN) ? "yes"
									   : "no";
	int error = s->perf ? s->perf(0) : ENOSYS;
	char value[32] = "unknown";

	if (text)
		snprintf(value, sizeof(value), "%.*s", (int)strcspn(text, "\n"), text);
	free(text);
	if (error == 0) {
		doctor_add(r, "perf_event", DOCTOR_OK,
			   "perf events can be opened (kernel.perf_event_paranoid %s, CAP_PERFMON "
			   "%s)",
			   value, perfmon);
		return;
	}
	doctor_add(r, "perf_event", DOCTOR_WARNING,
		   "perf events cannot be opened: %s (kernel.perf_event_paranoid %s, CAP_PERFMON "
		   "%s); traces do not need them",
		   strerror(error), value, perfmon);
	if (error == ENOSYS)
		doctor_advise(r, "this kernel has no perf events");
	else if (strcmp(perfmon, "yes") == 0)
		doctor_advise(r, "a filter of system calls forbids it: allow perf_event_open in "
				 "the container's seccomp profile");
	else
		doctor_advise(r, "set kernel.perf_event_paranoid to 1, or give CAP_PERFMON");
}

/* --- what dead processes left behind --- */

enum liveness { DEAD, ALIVE, CANNOT_TELL };

/*
 * Closed as soon as it stands: a runtime that is there reads an end and goes on to the next client.
 */
static enum liveness try_socket(const char *path)
{
	struct sockaddr_un addr;
	enum liveness found = CANNOT_TELL;
	int dir, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return CANNOT_TELL;
	if (ipc_socket_address(path, &addr, &dir) == 0) {
		if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0)
			found = ALIVE;
		else if (errno == ECONNREFUSED)
			found = DEAD;
		if (dir >= 0)
			close(dir);
	}
	close(fd);
	return found;
}

struct leftovers {
	size_t count;
	char first[PATH_MAX];
};

static void note(struct leftovers *l, const char *path)
{
	if (l->count++ == 0)
		snprintf(l->first, sizeof(l->first), "%s", path);
}

static void say_leftovers(const struct leftovers *dead, const struct leftovers *alive,
			  struct doctor_report *r)
{
	if (dead->count) {
		doctor_add(r, "dead-socket", DOCTOR_INFO,
			   "%zu diagnostic socket%s left by killed processes: %.300s%s",
			   dead->count, dead->count == 1 ? "" : "s", dead->first,
			   dead->count == 1 ? "" : ", ...");
		doctor_advise(r, "such a file does no harm and can be removed");
	}
	if (alive->count) {
		doctor_add(r, "foreign-socket", DOCTOR_INFO,
			   "%zu diagnostic socket%s of processes that cannot be seen from here: "
			   "%.300s%s",
			   alive->count, alive->count == 1 ? "" : "s", alive->first,
			   alive->count == 1 ? "" : ", ...");
		doctor_advise(r, "they run in another container: name them by the path of the "
				 "socket (--diagnostic-port)");
	}
}

void doctor_check_leftovers(const struct doctor_settings *s, const char *dir, int32_t pid,
			    struct doctor_report *r)
{
	struct leftovers dead = { 0 }, alive = { 0 };
	DIR *d = opendir(dir);
	struct dirent *de;

	while (d && (de = readdir(d)) != NULL) {
		uint64_t owner, key;
		struct proc_stat st;
		char path[PATH_MAX];

		if (!ipc_socket_name(de->d_name, &owner, &key) || owner > INT32_MAX ||
		    (pid && owner != (uint64_t)pid))
			continue;
		if (proc_read_stat(s->root, (int32_t)owner, &st) &&
		    (st.start_ticks == key || key == 0))
			continue;
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, de->d_name) >= sizeof(path))
			continue;
		switch (try_socket(path)) {
		case DEAD:
			note(&dead, path);
			break;
		case ALIVE:
			note(&alive, path);
			break;
		case CANNOT_TELL:
			break;
		}
	}
	if (d)
		closedir(d);
	say_leftovers(&dead, &alive, r);
}

void doctor_check_machine(const struct doctor_settings *s, struct doctor_report *r)
{
	const char *tmp = getenv("TMPDIR");

	check_proc(s, r);
	check_identity(s, r);
	check_tmpdir(r);
	check_perf(s, r);
	doctor_check_leftovers(s, tmp && *tmp ? tmp : "/tmp", 0, r);
}
