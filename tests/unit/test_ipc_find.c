/* SPDX-License-Identifier: MIT */
/* Finding sockets, in a /proc made of files. */
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
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "src/ipc/ipc_find.h"

struct world {
	char dir[64]; /* everything is below it */
	char proc[96]; /* the root that the module is given */
};

static char *at(const char *dir, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Static: good until the fourth call from here. */
static char *at(const char *dir, const char *fmt, ...)
{
	static char paths[4][PATH_MAX];
	static unsigned turn;
	char *path = paths[turn++ % 4], rest[PATH_MAX - 128];
	va_list args;

	va_start(args, fmt);
	vsnprintf(rest, sizeof(rest), fmt, args);
	va_end(args);
	snprintf(path, PATH_MAX, "%s/%s", dir, rest);
	return path;
}

static void make_dir(const char *path)
{
	char part[PATH_MAX];

	for (size_t i = 1; path[i - 1]; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)i, path);
		assert_true(mkdir(part, 0755) == 0 || errno == EEXIST);
	}
}

static void make_file(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	close(fd);
}

static void make_link(const char *target, const char *path)
{
	unlink(path);
	assert_int_equal(symlink(target, path), 0);
}

static int make_socket(const char *dir, const char *name, time_t mtime)
{
	const struct timeval times[2] = { { mtime, 0 }, { mtime, 0 } };
	struct sockaddr_un addr;
	char *path;
	int dir_fd, fd = socket(AF_UNIX, SOCK_STREAM, 0);

	make_dir(dir);
	path = strdup(at(dir, "%s", name));
	assert_int_equal(ipc_socket_address(path, &addr, &dir_fd), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(utimes(path, times), 0);
	if (dir_fd >= 0)
		close(dir_fd);
	free(path);
	close(fd); /* stays behind as a dead one */
	return 0;
}

/* comm, start time, NSpid line and environment of one process; env_len 0: unreadable. */
static void make_process(const struct world *w, int pid, const char *comm, unsigned start,
			 const char *ns_pid, const char *env, size_t env_len)
{
	char text[512], *p = strdup(at(w->proc, "%d", pid));
	int n;

	make_dir(p);
	make_dir(at(p, "ns"));
	n = snprintf(text, sizeof(text),
		     "%d (%s) S 1 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 2 0 %u 1 2 3\n", pid, comm,
		     start);
	make_file(at(p, "stat"), text, (size_t)n);
	n = snprintf(text, sizeof(text), "Name:\t%s\nPid:\t%d\nNSpid:\t%s\nThreads:\t2\n", comm,
		     pid, ns_pid);
	make_file(at(p, "status"), text, (size_t)n);
	if (env_len)
		make_file(at(p, "environ"), env, env_len);
	make_link("mnt:[1]", at(p, "ns/mnt"));
	make_link("pid:[1]", at(p, "ns/pid"));
	make_link("time:[1]", at(p, "ns/time"));
	make_link("/", at(p, "root"));
	free(p);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	snprintf(w->dir, sizeof(w->dir), "/tmp/drd-find-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->proc, sizeof(w->proc), "%s/proc", w->dir);
	make_process(w, 1, "init", 0, "1", "A=1", 4);
	make_link("1", at(w->proc, "self"));
	*state = w;
	return 0;
}

static int unlink_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	struct world *w = *state;

	nftw(w->dir, unlink_one, 16, FTW_DEPTH | FTW_PHYS);
	free(w);
	return 0;
}

/* "X=1", then TMPDIR, as the kernel lays it out. */
static size_t env_with_tmp(char *buf, size_t size, const char *tmp)
{
	int n = snprintf(buf, size, "X=1%cTMPDIR=%s", 0, tmp);

	return (size_t)n + 1;
}

static void socket_names(void **state)
{
	static const char *const bad[] = {
		"dotnet-diagnostic-dsrouter-12-34-socket",
		"dotnet-diagnostic-12-34",
		"dotnet-diagnostic-12-34-socket2",
		"dotnet-diagnostic--34-socket",
		"dotnet-diagnostic-12--socket",
		"dotnet-diagnostic-12-99999999999999999999-socket",
		"dotnet-diagnostic-1x-34-socket",
		"clr-debug-pipe-12-34-in",
		"",
	};
	uint64_t pid, key;

	(void)state;
	assert_true(ipc_socket_name("dotnet-diagnostic-12-34-socket", &pid, &key));
	assert_int_equal(pid, 12);
	assert_int_equal(key, 34);
	assert_true(ipc_socket_name("dotnet-diagnostic-12-0-socket", &pid, &key));
	assert_int_equal(key, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(ipc_socket_name(bad[i], &pid, &key));
}

static void tmpdir_of_the_target(void **state)
{
	const struct world *w = *state;
	static const char *const spellings[] = { "%s/t", "%s/t/", "%s/t//" };
	struct ipc_target t;
	char env[256], tmp[128], want[256];

	snprintf(want, sizeof(want), "%s/t", w->dir);
	make_socket(want, "dotnet-diagnostic-50-777-socket", 1000);
	snprintf(want, sizeof(want), "%s/t/dotnet-diagnostic-50-777-socket", w->dir);
	for (size_t i = 0; i < 3; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(tmp, sizeof(tmp), spellings[i], w->dir);
#pragma GCC diagnostic pop
		/* A name with ") (" in it: fields count from the last parenthesis. */
		make_process(w, 50, "a) (b", 777, "50", env, env_with_tmp(env, sizeof(env), tmp));
		assert_int_equal(ipc_find_process(w->proc, 50, &t), IPC_WHY_FOUND);
		assert_int_equal(t.socket_count, 1);
		assert_string_equal(t.sockets[0].path, want);
		assert_string_equal(t.stat.comm, "a) (b");
		assert_true(t.stat.start_ticks == 777);
		ipc_target_done(&t);
	}
}

static void without_tmpdir_it_is_tmp(void **state)
{
	const struct world *w = *state;
	struct ipc_target t;

	make_process(w, 51, "app", 1, "51", "X=1", 4);
	assert_int_equal(ipc_find_process(w->proc, 51, &t), IPC_WHY_NO_SOCKET);
	assert_string_equal(t.dir, "/tmp");
	ipc_target_done(&t);
	/* Nor when the environment cannot be read, or TMPDIR is empty. */
	make_process(w, 52, "app", 1, "52", NULL, 0);
	assert_int_equal(ipc_find_process(w->proc, 52, &t), IPC_WHY_NO_SOCKET);
	assert_string_equal(t.dir, "/tmp");
	ipc_target_done(&t);
	make_process(w, 53, "app", 1, "53", "TMPDIR=", 8);
	assert_int_equal(ipc_find_process(w->proc, 53, &t), IPC_WHY_NO_SOCKET);
	assert_string_equal(t.dir, "/tmp");
	ipc_target_done(&t);
}

static void sockets_of_the_dead_are_not_taken(void **state)
{
	const struct world *w = *state;
	struct ipc_target t;
	char env[256], tmp[128];

	snprintf(tmp, sizeof(tmp), "%s/t", w->dir);
	make_socket(tmp, "dotnet-diagnostic-60-100-socket", 3000); /* an earlier process */
	make_socket(tmp, "dotnet-diagnostic-61-200-socket", 3000); /* another pid */
	make_socket(tmp, "dotnet-diagnostic-dsrouter-60-200-socket", 4000);
	make_file(at(tmp, "dotnet-diagnostic-60-200-socket"), "", 0); /* no socket */
	make_process(w, 60, "app", 200, "60", env, env_with_tmp(env, sizeof(env), tmp));
	assert_int_equal(ipc_find_process(w->proc, 60, &t), IPC_WHY_NO_SOCKET);
	ipc_target_done(&t);
	unlink(at(tmp, "dotnet-diagnostic-60-200-socket"));
	make_socket(tmp, "dotnet-diagnostic-60-200-socket", 1000);
	make_socket(tmp, "dotnet-diagnostic-60-0-socket", 2000); /* key not determined */
	assert_int_equal(ipc_find_process(w->proc, 60, &t), IPC_WHY_FOUND);
	assert_int_equal(t.socket_count, 2);
	assert_int_equal(t.sockets[0].key, 0); /* the newest first */
	assert_int_equal(t.sockets[1].key, 200);
	ipc_target_done(&t);
	/* In another time namespace the runtime saw another start time. */
	make_link("time:[2]", at(w->proc, "60/ns/time"));
	assert_int_equal(ipc_find_process(w->proc, 60, &t), IPC_WHY_FOUND);
	assert_int_equal(t.socket_count, 3);
	assert_int_equal(t.sockets[0].key, 100);
	ipc_target_done(&t);
}

static void other_namespaces(void **state)
{
	const struct world *w = *state;
	struct ipc_target t;
	char root[128], want[256];

	snprintf(root, sizeof(root), "%s/container", w->dir);
	make_socket(at(root, "tmp"), "dotnet-diagnostic-7-500-socket", 1000);
	make_process(w, 70, "app", 500, "70\t7", "X=1", 4);
	make_link("mnt:[2]", at(w->proc, "70/ns/mnt"));
	make_link("pid:[2]", at(w->proc, "70/ns/pid"));
	make_link(root, at(w->proc, "70/root"));
	assert_int_equal(ipc_find_process(w->proc, 70, &t), IPC_WHY_FOUND);
	assert_int_equal(t.ns_pid, 7);
	assert_true(t.other_mount_ns && t.other_pid_ns);
	snprintf(want, sizeof(want), "%s/70/root/tmp/dotnet-diagnostic-7-500-socket", w->proc);
	assert_string_equal(t.sockets[0].path, want);
	ipc_target_done(&t);
	/* A private /tmp: pids are ours, files are not. */
	make_socket(at(root, "tmp"), "dotnet-diagnostic-71-500-socket", 1000);
	make_process(w, 71, "app", 500, "71", "X=1", 4);
	make_link("mnt:[2]", at(w->proc, "71/ns/mnt"));
	make_link(root, at(w->proc, "71/root"));
	assert_int_equal(ipc_find_process(w->proc, 71, &t), IPC_WHY_FOUND);
	assert_false(t.other_pid_ns);
	ipc_target_done(&t);
	/* A chroot: same namespaces, another root directory. */
	make_process(w, 71, "app", 500, "71", "X=1", 4);
	make_link(root, at(w->proc, "71/root"));
	assert_int_equal(ipc_find_process(w->proc, 71, &t), IPC_WHY_FOUND);
	ipc_target_done(&t);
}

static void entries_that_cannot_be_used(void **state)
{
	const struct world *w = *state;
	struct ipc_found f;
	struct ipc_target t;
	char env[256], tmp[128];

	snprintf(tmp, sizeof(tmp), "%s/t", w->dir);
	make_socket(tmp, "dotnet-diagnostic-82-5-socket", 1000);
	make_process(w, 82, "app", 5, "82", env, env_with_tmp(env, sizeof(env), tmp));
	make_process(w, 90, "dotnet", 5, "90", env, env_with_tmp(env, sizeof(env), tmp));
	make_dir(at(w->proc, "83")); /* vanished while we looked */
	make_dir(at(w->proc, "84"));
	make_file(at(w->proc, "84/stat"), "84 (broken", 10);
	make_dir(at(w->proc, "2")); /* a kernel thread */
	make_file(at(w->proc, "2/stat"),
		  "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 3 0 0 0\n", 68);
	make_dir(at(w->proc, "85"));
	make_file(at(w->proc, "85/stat"),
		  "85 (z) Z 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 3 0 0 0\n", 55);
	make_dir(at(w->proc, "net"));
	make_dir(at(w->proc, "99999999999999999999"));
	assert_int_equal(ipc_find_process(w->proc, 83, &t), IPC_WHY_GONE);
	ipc_target_done(&t);
	assert_int_equal(ipc_find_process(w->proc, 84, &t), IPC_WHY_GONE);
	ipc_target_done(&t);
	assert_int_equal(ipc_find_process(w->proc, 2, &t), IPC_WHY_KERNEL);
	ipc_target_done(&t);
	assert_int_equal(ipc_find_process(w->proc, 85, &t), IPC_WHY_ENDED);
	ipc_target_done(&t);
	assert_int_equal(ipc_find_process(w->proc, 4242, &t), IPC_WHY_GONE);
	ipc_target_done(&t);
	assert_true(ipc_find_all(w->proc, &f));
	assert_int_equal(f.count, 2);
	assert_int_equal(f.targets[0].pid, 82);
	assert_int_equal(f.targets[0].why, IPC_WHY_FOUND);
	assert_int_equal(f.targets[1].pid, 90); /* looks like .NET, has no socket */
	assert_int_equal(f.targets[1].why, IPC_WHY_NO_SOCKET);
	assert_int_equal(f.skipped, 2);
	ipc_found_done(&f);
	assert_false(ipc_find_all(at(w->dir, "nothing"), &f));
	ipc_found_done(&f);
}

static void long_directories(void **state)
{
	const struct world *w = *state;
	char dir[256], env[512], name[] = "dotnet-diagnostic-95-5-socket";
	struct sockaddr_un addr;
	struct ipc_target t;
	int fd, listener = socket(AF_UNIX, SOCK_STREAM, 0);
	int client = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(dir, sizeof(dir), "%s/%0150d", w->dir, 0);
	make_process(w, 95, "dotnet", 5, "95", env, env_with_tmp(env, sizeof(env), dir));
	/* Its own path would be too long for the runtime. */
	make_dir(dir);
	assert_int_equal(ipc_find_process(w->proc, 95, &t), IPC_WHY_TOO_LONG);
	ipc_target_done(&t);
	/* Through /proc/PID/root only ours is: a descriptor of the directory reaches it. */
	make_dir(at(dir, "tmp"));
	make_link("mnt:[2]", at(w->proc, "95/ns/mnt"));
	make_link(dir, at(w->proc, "95/root"));
	make_process(w, 95, "dotnet", 5, "95", "X=1", 4);
	make_link("mnt:[2]", at(w->proc, "95/ns/mnt"));
	make_link(dir, at(w->proc, "95/root"));
	assert_int_equal(ipc_socket_address(at(dir, "tmp/%s", name), &addr, &fd), 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 1), 0);
	close(fd);
	assert_int_equal(ipc_find_process(w->proc, 95, &t), IPC_WHY_FOUND);
	assert_int_equal(ipc_socket_address(t.sockets[0].path, &addr, &fd), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&addr, sizeof(addr)), 0);
	if (fd >= 0)
		close(fd);
	ipc_target_done(&t);
	close(client);
	close(listener);
	/* A directory that is not there. */
	assert_int_equal(ipc_socket_address(at(dir, "none/%s", name), &addr, &fd), -ENOENT);
}

static void small_readers(void **state)
{
	const struct world *w = *state;
	static const char env[] = "AB=1\0A=2\0=\0B";
	static const char cgroup[] = "0::/system.slice/docker-0123456789abcdef0123456789abcdef"
				     "0123456789abcdef0123456789abcdef.scope\n";
	char buf[64], *line;

	assert_string_equal(proc_environ_find(env, sizeof(env), "A"), "2");
	assert_string_equal(proc_environ_find(env, sizeof(env), "AB"), "1");
	assert_null(proc_environ_find(env, sizeof(env), "B"));
	assert_null(proc_environ_find(env, 0, "A"));
	make_process(w, 96, "x", 5, "96", "X=1", 4);
	make_file(at(w->proc, "96/cgroup"), cgroup, sizeof(cgroup) - 1);
	assert_true(proc_container(w->proc, 96, buf, sizeof(buf)));
	assert_string_equal(buf, "0123456789ab");
	make_file(at(w->proc, "96/cgroup"), "0::/user.slice\n", 15);
	assert_false(proc_container(w->proc, 96, buf, sizeof(buf)));
	make_file(at(w->proc, "96/cmdline"), "dotnet\0app.dll\0a b\0", 19);
	line = proc_read_command_line(w->proc, 96);
	assert_string_equal(line, "dotnet app.dll a b");
	free(line);
	make_file(at(w->proc, "96/cmdline"), "", 0);
	assert_null(proc_read_command_line(w->proc, 96));
	proc_user_name(0, buf, sizeof(buf));
	assert_string_equal(buf, "root");
	proc_user_name(3999999999u, buf, sizeof(buf));
	assert_string_equal(buf, "3999999999");
}

/* Of another pid namespace, or dead: what no process that can be seen accounts for. */
static void sockets_without_a_process(void **state)
{
	struct world *w = *state;
	char own[128], name[64];
	struct proc_stat self;
	struct ipc_found f;

	snprintf(own, sizeof(own), "%s/own/", w->dir);
	make_socket(own, "dotnet-diagnostic-2147483001-5-socket", 1000);
	make_socket(own, "dotnet-diagnostic-2147483002-5-socket", 1000);
	make_socket(own, "dotnet-diagnostic-dsrouter-7-5-socket", 1000);
	make_socket(own, "dotnet-diagnostic-99999999999-5-socket", 1000); /* no pid */
	/* Ours, were we .NET: just not looked at yet. */
	assert_true(proc_read_stat(PROC_ROOT, getpid(), &self));
	snprintf(name, sizeof(name), "dotnet-diagnostic-%d-%llu-socket", (int)getpid(),
		 (unsigned long long)self.start_ticks);
	make_socket(own, name, 1000);
	/* The same number with another start is not us. */
	snprintf(name, sizeof(name), "dotnet-diagnostic-%d-%llu-socket", (int)getpid(),
		 (unsigned long long)self.start_ticks + 1);
	make_socket(own, name, 1000);
	setenv("TMPDIR", own, 1);
	assert_true(ipc_find_foreign_pid(2147483001, &f));
	assert_int_equal(f.count, 1);
	assert_true(f.targets[0].foreign);
	assert_int_equal(f.targets[0].pid, 2147483001);
	assert_string_equal(f.targets[0].sockets[0].path,
			    at(w->dir, "own/dotnet-diagnostic-2147483001-5-socket"));
	assert_true(f.targets[0].uid_known && f.targets[0].uid == getuid());
	/* What is known already is not found again. */
	assert_true(ipc_find_foreign(&f));
	for (size_t i = 0, seen = 0; i < f.count; i++) {
		seen += f.targets[i].pid == 2147483001;
		assert_true(seen <= 1);
		assert_true(i == 0 || f.targets[i - 1].pid <= f.targets[i].pid);
	}
	ipc_found_done(&f);
	assert_true(ipc_find_foreign_pid(getpid(), &f));
	assert_int_equal(f.count, 1);
	assert_true(f.targets[0].sockets[0].key == self.start_ticks + 1);
	ipc_found_done(&f);
	unsetenv("TMPDIR");
}

#define WORLD(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(socket_names),	  WORLD(tmpdir_of_the_target),
		WORLD(without_tmpdir_it_is_tmp),  WORLD(sockets_of_the_dead_are_not_taken),
		WORLD(other_namespaces),	  WORLD(entries_that_cannot_be_used),
		WORLD(long_directories),	  WORLD(small_readers),
		WORLD(sockets_without_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
