/* SPDX-License-Identifier: MIT */
/* Causes why a process cannot be traced, each made up alone in a /proc of our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/process/doctor.h"

enum { PID = 4242 };

static char root[64];

static void put_file(const char *name, const void *data, size_t len)
{
	char path[256];
	int fd;

	for (size_t i = 1; name[i]; i++) {
		if (name[i] != '/')
			continue;
		snprintf(path, sizeof(path), "%s/%.*s", root, (int)i, name);
		mkdir(path, 0755);
	}
	snprintf(path, sizeof(path), "%s/%s", root, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	close(fd);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/drd-doctor-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	(void)state;
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int perf_ok(int32_t pid)
{
	(void)pid;
	return 0;
}

static int perf_denied(int32_t pid)
{
	(void)pid;
	return EACCES;
}

/* A healthy process of ours that simply has no socket. */
static struct ipc_target target(enum ipc_why why)
{
	struct ipc_target t = { .pid = PID,
				.ns_pid = PID,
				.uid_known = true,
				.uid = geteuid(),
				.dotnet = true,
				.dir = root,
				.own_dir_bytes = 4,
				.why = why };

	snprintf(t.stat.comm, sizeof(t.stat.comm), "app");
	t.stat.state = 'S';
	t.stat.start_ticks = 77;
	return t;
}

#define PUT(name, text) put_file(name, text, sizeof(text) - 1)
#define ENVIRON(text)	put_file("4242/environ", text, sizeof(text))

static struct doctor_report examine(const struct ipc_target *t)
{
	const struct doctor_settings s = { .root = root, .ask_ms = 100, .perf = perf_ok };
	struct doctor_report r = { 0 };

	doctor_check_process(&s, t, &r);
	return r;
}

static const struct doctor_check *find(const struct doctor_report *r, const char *id)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(r->checks[i].id, id) == 0)
			return &r->checks[i];
	return NULL;
}

static void expect(const struct doctor_report *r, const char *id, enum doctor_level level,
		   const char *message, const char *advice)
{
	const struct doctor_check *c = find(r, id);

	assert_non_null(c);
	assert_int_equal(c->level, level);
	assert_non_null(strstr(c->message, message));
	assert_non_null(strstr(c->advice, advice));
	/* Every obstacle comes with advice. */
	assert_true(level != DOCTOR_FAILED || c->advice[0]);
}

static void processes_that_are_none(void **state)
{
	struct ipc_target t = target(IPC_WHY_GONE);
	struct doctor_report r = examine(&t);

	(void)state;
	expect(&r, "process", DOCTOR_FAILED, "no process 4242", "ps");
	t = target(IPC_WHY_KERNEL);
	r = examine(&t);
	expect(&r, "process", DOCTOR_FAILED, "kernel", "ps");
	assert_int_equal(r.count, 1);
	t = target(IPC_WHY_ENDED);
	r = examine(&t);
	expect(&r, "process", DOCTOR_FAILED, "ended", "start");
	assert_int_equal(r.count, 1);
}

static void stopped_ones(void **state)
{
	struct ipc_target t = target(IPC_WHY_NO_SOCKET);
	struct doctor_report r;

	(void)state;
	ENVIRON("A=1");
	t.stat.state = 'T';
	r = examine(&t);
	expect(&r, "process", DOCTOR_FAILED, "stopped by a signal", "kill -CONT 4242");
	t.stat.state = 't';
	r = examine(&t);
	expect(&r, "process", DOCTOR_FAILED, "debugger", "4242");
}

static void diagnostics_switched_off(void **state)
{
	struct ipc_target t = target(IPC_WHY_NO_SOCKET);
	struct doctor_report r;

	(void)state;
	ENVIRON("A=1\0DOTNET_EnableDiagnostics=0");
	r = examine(&t);
	expect(&r, "diagnostics", DOCTOR_FAILED, "DOTNET_EnableDiagnostics=0",
	       "without DOTNET_EnableDiagnostics");
	expect(&r, "socket", DOCTOR_FAILED, "no diagnostic socket", "see diagnostics");
	ENVIRON("DOTNET_EnableDiagnostics_IPC=0x0");
	r = examine(&t);
	expect(&r, "diagnostics", DOCTOR_FAILED, "DOTNET_EnableDiagnostics_IPC", "without");
	ENVIRON("COMPlus_EnableDiagnostics=00");
	r = examine(&t);
	expect(&r, "diagnostics", DOCTOR_FAILED, "COMPlus_EnableDiagnostics", "without");
	ENVIRON("COMPlus_EnableDiagnostics_IPC=0");
	r = examine(&t);
	expect(&r, "diagnostics", DOCTOR_FAILED, "COMPlus_EnableDiagnostics_IPC", "without");
	ENVIRON("DOTNET_EnableDiagnostics=1\0XDOTNET_EnableDiagnostics_IPC=0\0Q");
	r = examine(&t);
	expect(&r, "diagnostics", DOCTOR_OK, "no variable", "");
	ENVIRON("DOTNET_EnableDiagnostics=");
	r = examine(&t);
	expect(&r, "diagnostics", DOCTOR_OK, "no variable", "");
}

static void no_socket_and_no_reason(void **state)
{
	struct ipc_target t = target(IPC_WHY_NO_SOCKET);
	struct doctor_report r;

	(void)state;
	ENVIRON("A=1");
	PUT("uptime", "100.0 1.0\n");
	r = examine(&t);
	expect(&r, "socket", DOCTOR_FAILED, "no diagnostic socket", "start the program again");
	t.stat.start_ticks = (uint64_t)(98 * sysconf(_SC_CLK_TCK));
	r = examine(&t);
	expect(&r, "socket", DOCTOR_FAILED, "no diagnostic socket", "started 2 s ago");
	t.dotnet = false;
	r = examine(&t);
	expect(&r, "socket", DOCTOR_FAILED, "does not look like .NET", "EventSourceSupport");
}

static void other_users(void **state)
{
	struct ipc_target t = target(IPC_WHY_NO_ACCESS);
	struct doctor_report r;

	(void)state;
	ENVIRON("A=1");
	t.uid = geteuid() + 4321;
	r = examine(&t);
	/* The made-up /proc says nothing of our capabilities: so there are none. */
	if (geteuid() == 0)
		expect(&r, "user", DOCTOR_FAILED, "lacks CAP_DAC_OVERRIDE", "run as 4321");
	else
		expect(&r, "user", DOCTOR_FAILED, "only", "or as root");
	expect(&r, "socket", DOCTOR_FAILED, "cannot be read", "root");
	t.uid_known = false;
	r = examine(&t);
	expect(&r, "user", DOCTOR_UNKNOWN, "cannot be seen", "root");
}

static void other_namespaces(void **state)
{
	struct ipc_target t = target(IPC_WHY_NO_SOCKET);
	struct doctor_report r;

	(void)state;
	ENVIRON("A=1");
	t.other_mount_ns = true;
	r = examine(&t);
	expect(&r, "namespace", DOCTOR_INFO, "other files,", "");
	t.other_pid_ns = true;
	t.ns_pid = 5;
	r = examine(&t);
	expect(&r, "namespace", DOCTOR_INFO, "other files and processes, as process 5", "");
	t.why = IPC_WHY_NO_ACCESS;
	r = examine(&t);
	expect(&r, "namespace", DOCTOR_FAILED, "may not look into", "SYS_PTRACE");
}

static void directories(void **state)
{
	struct ipc_target t = target(IPC_WHY_NO_SOCKET);
	char missing[] = "/tmp/drd-doctor-is-not-there", long_dir[150];
	struct doctor_report r;

	(void)state;
	ENVIRON("A=1\0TMPDIR=/somewhere");
	r = examine(&t);
	expect(&r, "tmpdir", DOCTOR_INFO, "/somewhere", "");
	t.dir = missing;
	r = examine(&t);
	expect(&r, "tmpdir", DOCTOR_FAILED, "does not exist", "create it");
	expect(&r, "socket", DOCTOR_FAILED, "no diagnostic socket", "see tmpdir");
	t.dir = root;
	memset(long_dir, 'x', sizeof(long_dir));
	t.why = IPC_WHY_TOO_LONG;
	t.own_dir_bytes = sizeof(long_dir);
	r = examine(&t);
	expect(&r, "path-length", DOCTOR_FAILED, "183 bytes, and only 107",
	       "TMPDIR of at most 74 bytes");
	expect(&r, "socket", DOCTOR_FAILED, "no diagnostic socket", "see path-length");
}

static void an_environment_that_cannot_be_read(void **state)
{
	struct ipc_target t = target(IPC_WHY_NO_SOCKET);
	struct doctor_report r = examine(&t);

	(void)state;
	expect(&r, "tmpdir", DOCTOR_UNKNOWN, "cannot be read", "root");
	expect(&r, "diagnostics", DOCTOR_UNKNOWN, "cannot be read", "");
}

static void ports(void **state)
{
	struct ipc_target t = target(IPC_WHY_NO_SOCKET);
	struct doctor_report r;

	(void)state;
	ENVIRON("DOTNET_DiagnosticPorts=/run/x.sock");
	r = examine(&t);
	expect(&r, "ports", DOCTOR_INFO, "/run/x.sock", "waits at its start");
	ENVIRON("DOTNET_DiagnosticPorts=/run/x.sock,NoSuspend");
	r = examine(&t);
	expect(&r, "ports", DOCTOR_INFO, "/run/x.sock", "");
	assert_int_equal(find(&r, "ports")->advice[0], '\0');
	ENVIRON("A=1");
	r = examine(&t);
	assert_null(find(&r, "ports"));
}

/* A socket that nobody listens on, with this process's own name. */
static void a_dead_socket(void **state)
{
	struct ipc_target t = target(IPC_WHY_FOUND);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct ipc_socket socket_file = { .path = addr.sun_path, .key = 77 };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct doctor_report r;

	(void)state;
	ENVIRON("A=1");
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/dotnet-diagnostic-%d-77-socket", root,
		 PID);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	t.sockets = &socket_file;
	t.socket_count = 1;
	PUT("4242/stat", "4242 (app) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 2 0 77 1 2 3\n");
	r = examine(&t);
	expect(&r, "answer", DOCTOR_FAILED, "dead", "start it again");
	assert_null(find(&r, "dead-socket"));
	/* The same file, and the process of that number is another one. */
	PUT("4242/stat", "4242 (app) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 2 0 99 1 2 3\n");
	t = target(IPC_WHY_NO_SOCKET);
	t.stat.start_ticks = 99;
	r = examine(&t);
	expect(&r, "dead-socket", DOCTOR_INFO, addr.sun_path, "removed");
}

static void machine(void **state)
{
	struct doctor_settings s = { .root = root, .perf = perf_denied };
	struct doctor_report r = { 0 };
	char name[64];

	(void)state;
	doctor_check_machine(&s, &r);
	expect(&r, "proc", DOCTOR_FAILED, root, "mount");
	expect(&r, "user", DOCTOR_UNKNOWN, "cannot be read", "");
	expect(&r, "perf_event", DOCTOR_WARNING, "paranoid unknown, CAP_PERFMON unknown",
	       "perf_event_paranoid");

	snprintf(name, sizeof(name), "%d/status", (int)getpid());
	PUT(name, "Name:\tx\nCapEff:\t0000004000000000\n");
	snprintf(name, sizeof(name), "%d/stat", (int)getpid());
	PUT(name, "1 (app) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 2 0 77 1 2 3\n");
	PUT("sys/kernel/perf_event_paranoid", "4\n");
	memset(&r, 0, sizeof(r));
	doctor_check_machine(&s, &r);
	assert_int_equal(find(&r, "proc")->level, DOCTOR_OK);
	expect(&r, "perf_event", DOCTOR_WARNING, "paranoid 4, CAP_PERFMON yes", "seccomp");
	if (geteuid() == 0)
		expect(&r, "user", DOCTOR_WARNING, "without all of its rights", "SYS_PTRACE");
	s.perf = perf_ok;
	memset(&r, 0, sizeof(r));
	doctor_check_machine(&s, &r);
	expect(&r, "perf_event", DOCTOR_OK, "can be opened", "");
}

static void more_checks_than_there_is_room_for(void **state)
{
	struct doctor_report r = { 0 };

	(void)state;
	for (unsigned i = 0; i < 2 * DOCTOR_MAX_CHECKS; i++)
		doctor_add(&r, "x", DOCTOR_OK, "%u", i);
	assert_int_equal(r.count, DOCTOR_MAX_CHECKS);
	assert_false(doctor_has(&r, DOCTOR_FAILED));
	r.checks[3].level = DOCTOR_FAILED;
	assert_true(doctor_has(&r, DOCTOR_FAILED));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(processes_that_are_none),
		TEST(stopped_ones),
		TEST(diagnostics_switched_off),
		TEST(no_socket_and_no_reason),
		TEST(other_users),
		TEST(other_namespaces),
		TEST(directories),
		TEST(an_environment_that_cannot_be_read),
		TEST(ports),
		TEST(a_dead_socket),
		TEST(machine),
		TEST(more_checks_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
