/* SPDX-License-Identifier: MIT */
/* What --diagnostic-port may say, and opening it. */
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
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/ipc/port_address.h"

static struct port_address parse(const char *text)
{
	struct port_address a;
	const char *why = NULL;

	if (!port_address_parse(&a, text, &why))
		fail_msg("'%s': %s", text, why);
	return a;
}

static void paths(void **state)
{
	char cwd[4096], want[8192];
	struct port_address a = parse("/run/x.sock");

	(void)state;
	assert_string_equal(a.path, "/run/x.sock");
	assert_string_equal(port_address_name(&a), "/run/x.sock");
	assert_false(a.connect);
	assert_true(a.suspend);
	port_address_done(&a);
	/* The application may run elsewhere: a bare name becomes absolute. */
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	snprintf(want, sizeof(want), "%s/x.sock", cwd);
	a = parse("x.sock");
	assert_string_equal(a.path, want);
	port_address_done(&a);
	a = parse("uds:x.sock");
	assert_string_equal(a.path, want);
	port_address_done(&a);
	a = parse("/a/b:9000"); /* has a slash: no host */
	assert_string_equal(a.path, "/a/b:9000");
	port_address_done(&a);
}

static void tags(void **state)
{
	static const struct {
		const char *text;
		bool connect, suspend;
	} rows[] = {
		{ "/x,listen", false, true },
		{ "/x,connect", true, true },
		{ "/x,nosuspend", false, false },
		{ "/x,suspend", false, true },
		{ "/x,connect,nosuspend", true, false },
		{ "/x,nosuspend,connect", true, false },
		{ "/x,CONNECT,NoSuspend", true, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct port_address a = parse(rows[i].text);

		assert_string_equal(a.path, "/x");
		assert_int_equal(a.connect, rows[i].connect);
		assert_int_equal(a.suspend, rows[i].suspend);
		port_address_done(&a);
	}
}

static void hosts(void **state)
{
	struct port_address a = parse("127.0.0.1:9000");
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a.tcp;

	(void)state;
	assert_null(a.path);
	assert_string_equal(port_address_name(&a), "127.0.0.1:9000");
	assert_int_equal(v4->sin_family, AF_INET);
	assert_int_equal(ntohs(v4->sin_port), 9000);
	assert_int_equal(ntohl(v4->sin_addr.s_addr), INADDR_LOOPBACK);
	a = parse("localhost:1,connect");
	assert_true(a.connect);
	assert_int_equal(ntohl(v4->sin_addr.s_addr), INADDR_LOOPBACK);
	a = parse("*:65535");
	assert_int_equal(ntohl(v4->sin_addr.s_addr), INADDR_ANY);
	a = parse("[::1]:9000");
	assert_int_equal(((const struct sockaddr_in6 *)&a.tcp)->sin6_family, AF_INET6);
}

static void mistakes(void **state)
{
	char longest[200] = "/", listen[220], connect[220];
	struct port_address a;
	const char *why;
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "missing" },
		{ ",listen", "missing" },
		{ "/x,listen,connect", "may follow" },
		{ "/x,suspend,nosuspend", "may follow" },
		{ "/x,", "may follow" },
		{ "/x,suspended", "may follow" },
		{ "example.org:9000", "must be a number" },
		{ "*:9000,connect", "must be a number" },
		{ "127.0.0.1:0", "1 to 65535" },
		{ "127.0.0.1:65536", "1 to 65535" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_false(port_address_parse(&a, rows[i].text, &why));
		if (!strstr(why, rows[i].want))
			fail_msg("'%s': %s", rows[i].text, why);
		port_address_done(&a);
	}
	/* 107 bytes and a NUL are what the kernel takes. */
	memset(longest + 1, 'x', 107);
	longest[107] = '\0';
	a = parse(longest);
	port_address_done(&a);
	longest[107] = 'x';
	snprintf(listen, sizeof(listen), "%s,listen", longest);
	snprintf(connect, sizeof(connect), "%s,connect", longest);
	assert_false(port_address_parse(&a, listen, &why));
	assert_non_null(strstr(why, "107"));
	port_address_done(&a);
	a = parse(connect); /* that way there is a way round it */
	port_address_done(&a);
}

static void opening(void **state)
{
	char dir[] = "/tmp/drd-port-XXXXXX", path[64];
	struct port_address a;
	struct stat st;
	int fd, again;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x", dir);
	a = parse(path);
	assert_int_equal(port_address_connect(&a), -ENOENT);
	fd = port_address_listen(&a);
	assert_true(fd >= 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	again = port_address_connect(&a);
	assert_true(again >= 0);
	close(again);
	/* Served by somebody: left alone. */
	assert_int_equal(port_address_listen(&a), -EADDRINUSE);
	close(fd);
	/* Left behind by somebody who was killed: replaced. */
	assert_int_equal(port_address_connect(&a), -ECONNREFUSED);
	fd = port_address_listen(&a);
	assert_true(fd >= 0);
	close(fd);
	unlink(path);
	/* No socket at all: left alone. */
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	close(fd);
	assert_int_equal(port_address_listen(&a), -EADDRINUSE);
	assert_int_equal(stat(path, &st), 0);
	unlink(path);
	port_address_done(&a);
	rmdir(dir);
}

/* Between bind() and listen() a socket looks left behind; whoever makes it holds the directory. */
static void a_socket_in_the_making(void **state)
{
	char dir[] = "/tmp/drd-race-XXXXXX", path[64];
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), lock, status;
	struct port_address a;
	pid_t other;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x", dir);
	a = parse(path);
	lock = open(dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	memcpy(addr.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	other = fork();
	if (other == 0) {
		close(lock);
		_exit(port_address_listen(&a) == -EADDRINUSE ? 0 : 1);
	}
	usleep(300000);
	assert_int_equal(listen(fd, 1), 0);
	close(lock);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(status, 0);
	close(fd);
	unlink(path);
	rmdir(dir);
	port_address_done(&a);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths),   cmocka_unit_test(tags),
		cmocka_unit_test(hosts),   cmocka_unit_test(mistakes),
		cmocka_unit_test(opening), cmocka_unit_test(a_socket_in_the_making),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
