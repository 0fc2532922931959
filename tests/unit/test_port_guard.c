/* SPDX-License-Identifier: MIT */
/* Who is killed while runtimes wait for it leaves none of them waiting. */
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
#include <poll.h>
#include <signal.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/collect/port_guard.h"
#include "src/ipc/port_address.h"

enum { PATIENCE_MS = 10000, ADVERTISE_BYTES = 34 };

static char directory[64], path[80];
static struct port_address address;

static void rest_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 },
		  NULL);
}

static int set_up(void **state)
{
	const char *why;

	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/drd-guard-XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/port", directory);
	return port_address_parse(&address, path, &why) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	port_address_done(&address);
	unlink(path);
	rmdir(directory);
	return 0;
}

/* A process with a guard; it lives until it is killed. */
static pid_t start_owner(pid_t command)
{
	int ready[2];
	pid_t pid;
	char c;

	assert_return_code(pipe2(ready, O_CLOEXEC), errno);
	pid = fork();
	if (pid == 0) {
		int fd = port_address_listen(&address), error;
		struct port_guard *g = port_guard_start(fd, &address, directory, &error);

		if (g && command)
			port_guard_watch(g, command);
		(void)!write(ready[1], g ? "y" : "n", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(c, 'y');
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void kill_owner(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int connect_to_port(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(a.sun_path, path, strlen(path) + 1);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* As a runtime does. */
static int come(char cookie)
{
	uint8_t advertise[ADVERTISE_BYTES] = "ADVR_V1";
	int fd = connect_to_port();

	assert_return_code(fd, errno);
	memset(advertise + 8, cookie, 16);
	/* In two parts: it need not come at once. */
	assert_int_equal(send(fd, advertise, 10, 0), 10);
	rest_ms(5);
	assert_int_equal(send(fd, advertise + 10, sizeof(advertise) - 10, 0),
			 sizeof(advertise) - 10);
	return fd;
}

static bool is_told(int fd, int ms)
{
	static const uint8_t resume[20] = "DOTNET_IPC_V1\0\x14\0\x04\x01";
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	uint8_t got[32];

	if (poll(&ready, 1, ms) != 1)
		return false;
	assert_int_equal(recv(fd, got, sizeof(got), 0), sizeof(resume));
	assert_memory_equal(got, resume, sizeof(resume));
	return true;
}

static bool is_gone_in_time(const char *what)
{
	for (int i = 0; i < PATIENCE_MS / 10; i++) {
		if (access(what, F_OK) != 0)
			return true;
		rest_ms(10);
	}
	return false;
}

static void who_waits_is_told_to_go_on(void **state)
{
	pid_t owner = start_owner(0);
	int early = come('e'), late, again, mute;

	(void)state;
	assert_false(is_told(early, 100)); /* that is the owner's to say */
	kill_owner(owner);
	assert_true(is_told(early, PATIENCE_MS)); /* it was in the queue still */
	late = come('l');
	assert_true(is_told(late, PATIENCE_MS));
	again = come('e'); /* as a runtime does once it has read the request */
	assert_false(is_told(again, 100));
	mute = connect_to_port();
	close(mute);
	close(late);
	late = come('m');
	assert_true(is_told(late, PATIENCE_MS)); /* silence of one does not keep the others */
	assert_true(is_gone_in_time(directory));
	close(early);
	close(late);
	close(again);
}

static void as_long_as_the_command_lives(void **state)
{
	pid_t command = fork(), owner;
	int fd;

	(void)state;
	if (command == 0) {
		rest_ms(60000);
		_exit(0);
	}
	owner = start_owner(command);
	kill_owner(owner);
	rest_ms(2500); /* longer than it would stay without */
	fd = come('c');
	assert_true(is_told(fd, PATIENCE_MS));
	close(fd);
	kill(command, SIGKILL);
	assert_int_equal(waitpid(command, NULL, 0), command);
	assert_true(is_gone_in_time(directory));
}

static void when_all_is_over_it_does_nothing(void **state)
{
	int error, listening = port_address_listen(&address), fd;
	struct port_guard *g;

	(void)state;
	assert_return_code(listening, -listening);
	g = port_guard_start(listening, &address, directory, &error);
	assert_non_null(g);
	fd = come('x');
	port_guard_end(g); /* waits for its end */
	assert_false(is_told(fd, 100));
	assert_int_equal(access(path, F_OK), 0);
	close(fd);
	close(listening);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	port_guard_end(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_waits_is_told_to_go_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(as_long_as_the_command_lives, set_up, tear_down),
		cmocka_unit_test_setup_teardown(when_all_is_over_it_does_nothing, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
