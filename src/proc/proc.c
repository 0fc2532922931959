/* SPDX-License-Identifier: MIT */
#include "src/proc/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STARTING_MS = 2000, LOOK_AGAIN_MS = 20 };

static bool entry_path(char *buf, size_t size, const char *root, int32_t pid, const char *name)
{
	int n = snprintf(buf, size, "%s/%" PRId32 "/%s", root, pid, name);

	return n > 0 && (size_t)n < size;
}

char *proc_read_file(const char *root, int32_t pid, const char *name, size_t max, size_t *ret_len)
{
	char path[PATH_MAX], *buf = NULL;
	size_t len = 0, cap = 0;
	int fd;

	if (!entry_path(path, sizeof(path), root, pid, name)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	for (;;) {
		ssize_t n;

		if (len + 1 >= cap) {
			size_t want = cap ? cap * 2 : 1024;
			char *bigger = realloc(buf, want);

			if (!bigger)
				goto fail;
			buf = bigger;
			cap = want;
		}
		n = read(fd, buf + len, cap - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			goto fail;
		len += (size_t)n;
		if (n == 0 || len >= max)
			break;
	}
	close(fd);
	buf[len] = '\0';
	if (ret_len)
		*ret_len = len;
	return buf;
fail:
	free(buf);
	close(fd);
	return NULL;
}

/* The text of field number n (from 1) behind the closing parenthesis of comm, or NULL. */
static const char *stat_field(const char *rest, unsigned n)
{
	while (n-- > 1) {
		rest = strchr(rest, ' ');
		if (!rest)
			return NULL;
		rest++;
	}
	return rest;
}

bool proc_read_stat(const char *root, int32_t pid, struct proc_stat *ret)
{
	enum { KTHREAD = 0x00200000 }; /* PF_KTHREAD of the kernel's flags */
	char *text = proc_read_file(root, pid, "stat", 4096, NULL);
	char *open = text ? strchr(text, '(') : NULL;
	char *close = text ? strrchr(text, ')') : NULL; /* comm may hold any character */
	const char *start, *flags, *threads, *code;
	struct proc_stat st = { 0 };

	if (!open || !close || close < open || close[1] != ' ') {
		free(text);
		return false;
	}
	*close = '\0';
	snprintf(st.comm, sizeof(st.comm), "%s", open + 1);
	st.state = close[2];
	start = stat_field(close + 2, 20);
	flags = stat_field(close + 2, 7);
	threads = stat_field(close + 2, 18);
	code = stat_field(close + 2, 50);
	if (!start || !flags || !threads) {
		free(text);
		return false;
	}
	st.parent = (int32_t)strtol(stat_field(close + 2, 2), NULL, 10);
	st.start_ticks = strtoull(start, NULL, 10);
	st.cpu_ticks = strtoull(stat_field(close + 2, 12), NULL, 10) +
		       strtoull(stat_field(close + 2, 13), NULL, 10);
	st.threads = strtoull(threads, NULL, 10);
	st.kernel_thread = (strtoul(flags, NULL, 10) & KTHREAD) != 0;
	if (code && st.state == 'Z') {
		st.have_exit_code = true;
		st.exit_code = (int)strtol(code, NULL, 10);
	}
	free(text);
	*ret = st;
	return true;
}

int32_t proc_find_ns_pid(const char *status, int32_t dflt)
{
	const char *p = strstr(status, "\nNSpid:");
	long last = 0;

	p = p ? p + strlen("\nNSpid:") : "";
	for (;;) {
		char *after;

		while (*p == ' ' || *p == '\t')
			p++;
		if (!isdigit((unsigned char)*p))
			break;
		last = strtol(p, &after, 10);
		p = after;
	}
	return last > 0 && last <= INT32_MAX ? (int32_t)last : dflt;
}

int32_t proc_read_ns_pid(const char *root, int32_t pid)
{
	char *text = proc_read_file(root, pid, "status", 16384, NULL);
	int32_t inner = text ? proc_find_ns_pid(text, pid) : pid;

	free(text);
	return inner;
}

bool proc_read_uid(const char *root, int32_t pid, uid_t *ret)
{
	char path[PATH_MAX];
	struct stat st;

	if (!entry_path(path, sizeof(path), root, pid, "") || stat(path, &st) != 0)
		return false;
	*ret = st.st_uid;
	return true;
}

const char *proc_environ_find(const char *env, size_t len, const char *name)
{
	size_t n = strlen(name);
	const char *p = env, *end = env + len;

	while (p < end) {
		size_t l = strnlen(p, (size_t)(end - p));

		if (l > n && memcmp(p, name, n) == 0 && p[n] == '=')
			return p + n + 1;
		p += l + 1;
	}
	return NULL;
}

char *proc_read_command_line(const char *root, int32_t pid)
{
	size_t len;
	char *text = proc_read_file(root, pid, "cmdline", 65536, &len);

	if (!text)
		return NULL;
	while (len > 0 && text[len - 1] == '\0')
		len--;
	if (len == 0) {
		free(text);
		return NULL;
	}
	for (size_t i = 0; i < len; i++)
		if (iscntrl((unsigned char)text[i]))
			text[i] = ' ';
	return text;
}

bool proc_read_link(const char *root, int32_t pid, const char *name, char *buf, size_t size)
{
	char path[PATH_MAX];
	ssize_t n = -1;

	if (entry_path(path, sizeof(path), root, pid, name))
		n = readlink(path, buf, size - 1);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0;
}

const char *proc_exe_arch(const char *root, int32_t pid)
{
	char path[PATH_MAX];
	unsigned char head[20] = { 0 }; /* of an ELF file */
	unsigned machine;
	ssize_t n = 0;
	int fd = -1;

	if (entry_path(path, sizeof(path), root, pid, "exe"))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, head, sizeof(head));
		close(fd);
	}
	if (n != (ssize_t)sizeof(head) || memcmp(head, ELFMAG, SELFMAG) != 0)
		return NULL;
	machine = head[EI_DATA] == ELFDATA2MSB ? head[18] * 256u + head[19]
					       : head[19] * 256u + head[18];
	switch (machine) {
	case EM_X86_64:
		return "x64";
	case EM_386:
		return "x86";
	case EM_AARCH64:
		return "arm64";
	case EM_ARM:
		return "arm32";
	case EM_S390:
		return "s390x";
	case EM_PPC64:
		return "ppc64le";
	case EM_RISCV:
		return "riscv64";
	default:
		return NULL;
	}
}

bool proc_other_namespace(const char *root, int32_t pid, const char *ns)
{
	char name[32], path[PATH_MAX], theirs[64], ours[64];
	ssize_t n;

	snprintf(name, sizeof(name), "ns/%s", ns);
	snprintf(path, sizeof(path), "%s/self/%s", root, name);
	n = readlink(path, ours, sizeof(ours) - 1);
	if (n <= 0)
		return false;
	ours[n] = '\0';
	return proc_read_link(root, pid, name, theirs, sizeof(theirs)) && strcmp(ours, theirs) != 0;
}

/* Container engines put a 64-digit id into the cgroup's path; 12 of them are what people see. */
bool proc_container(const char *root, int32_t pid, char *buf, size_t size)
{
	char *text = proc_read_file(root, pid, "cgroup", 16384, NULL);
	size_t run = 0;
	bool found = false;

	for (const char *p = text; p && *p && !found; p++) {
		run = isxdigit((unsigned char)*p) ? run + 1 : 0;
		if (run == 64 && !isxdigit((unsigned char)p[1])) {
			snprintf(buf, size, "%.12s", p - 63);
			found = true;
		}
	}
	free(text);
	return found;
}

double proc_uptime_s(const char *root, const struct proc_stat *st)
{
	char path[PATH_MAX], text[64];
	long hertz = sysconf(_SC_CLK_TCK);
	double up, since;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/uptime", root);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0 || hertz <= 0)
		return -1;
	text[n] = '\0';
	up = strtod(text, NULL);
	since = up - (double)st->start_ticks / (double)hertz;
	return since > 0 ? since : 0;
}

void proc_user_name(uid_t uid, char *buf, size_t size)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *pw;

	snprintf(buf, size, "%lu", (unsigned long)uid);
	if (!f)
		return;
	while ((pw = fgetpwent(f)) != NULL) {
		if (pw->pw_uid == uid) {
			snprintf(buf, size, "%s", pw->pw_name);
			break;
		}
	}
	fclose(f);
}

bool proc_waits_at_start(const char *root, int32_t pid)
{
	char path[PATH_MAX];
	bool server = false, finalizer = false;
	struct dirent *de;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%" PRId32 "/task", root, pid);
	dir = opendir(path);
	while (dir && (de = readdir(dir)) != NULL) {
		char name[320], *comm;

		if (de->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "task/%s/comm", de->d_name);
		comm = proc_read_file(root, pid, name, 64, NULL);
		server |= comm && strncmp(comm, ".NET EventPipe", 14) == 0;
		finalizer |= comm && strncmp(comm, ".NET Finalizer", 14) == 0;
		free(comm);
	}
	if (dir)
		closedir(dir);
	return server && !finalizer;
}

bool proc_stays_at_start(const char *root, int32_t pid)
{
	const struct timespec pause = { .tv_nsec = LOOK_AGAIN_MS * 1000000 };
	bool waits = proc_waits_at_start(root, pid);

	for (int i = 0; waits && i < STARTING_MS / LOOK_AGAIN_MS; i++) {
		nanosleep(&pause, NULL);
		waits = proc_waits_at_start(root, pid);
	}
	return waits;
}
