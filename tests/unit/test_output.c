/* SPDX-License-Identifier: MIT */
/* Files that are there whole or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/output.h"

static char dir[] = "/tmp/drd-output-XXXXXX";
static char path[64];

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/report.txt", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(dir);
}

static unsigned files(void)
{
	unsigned count = 0;
	DIR *d = opendir(dir);

	assert_non_null(d);
	for (struct dirent *de; (de = readdir(d)) != NULL;)
		count += de->d_name[0] != '.';
	closedir(d);
	return count;
}

static void check_text(const char *want)
{
	char text[64] = "";
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	(void)!fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	assert_string_equal(text, want);
}

static void write_it(const char *text, bool force)
{
	struct out *o = out_open(path, force);

	assert_non_null(o);
	out_text(o, text);
	assert_int_equal(out_close(o, 0), 0);
	check_text(text);
	assert_int_equal(files(), 1);
}

static void whole_or_not_at_all(void **state)
{
	mode_t mask = umask(027);
	struct out *o = out_open(path, false);
	struct stat st;

	(void)state;
	assert_non_null(o);
	out_text(o, "thrown away");
	out_flush(o);
	assert_int_not_equal(access(path, F_OK), 0);
	out_discard(o);
	assert_int_equal(files(), 0);

	write_it("one", false);
	umask(mask);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640); /* as open() makes them */
	assert_null(out_open(path, false));
	check_text("one");
	write_it("two", true);
	unlink(path);
}

/* Somebody else takes the name while we write. */
static void a_name_that_is_taken_meanwhile(void **state)
{
	struct out *o = out_open(path, false);
	int fd;

	(void)state;
	assert_non_null(o);
	out_text(o, "ours");
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "theirs", 6), 6);
	close(fd);
	assert_int_equal(out_close(o, 0), 1);
	check_text("theirs");
	assert_int_equal(files(), 1);
	unlink(path);
}

/* A pipe is waited for, but not for ever; one whose reader is there gets all. */
static void pipes(void **state)
{
	char text[8] = "";
	struct out *o;
	int fd;

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(out_open(path, false));
	assert_int_equal(errno, ENXIO);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	o = out_open(path, false);
	assert_non_null(o);
	assert_int_equal(fcntl(o->fd, F_GETFL) & O_NONBLOCK, 0);
	out_text(o, "all");
	assert_int_equal(out_close(o, 0), 0);
	assert_int_equal(read(fd, text, sizeof(text)), 3);
	assert_string_equal(text, "all");
	close(fd);
	assert_int_equal(unlink(path), 0);
}

/* What can be known before anything is written is said then. */
static void names_that_cannot_be(void **state)
{
	char name[400];

	(void)state;
	memset(name, 'x', sizeof(name));
	memcpy(name, dir, strlen(dir));
	name[strlen(dir)] = '/';
	name[sizeof(name) - 1] = '\0';
	assert_null(out_open(name, false));
	assert_null(out_open(name, true));
	snprintf(name, sizeof(name), "%s/none/x", dir);
	assert_null(out_open(name, false));
	assert_null(out_open(dir, true));
	assert_int_equal(files(), 0);
}

/* Where files without names can be had; else one is left beside. */
static bool has_nameless(void)
{
	int fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void nothing_is_left_of_who_is_killed(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (child == 0) {
		struct out *o = out_open(path, false);

		out_text(o, "half of it");
		out_flush(o);
		_exit(3); /* as if killed: nothing is cleaned up */
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 3);
	assert_int_not_equal(access(path, F_OK), 0);
	if (has_nameless())
		assert_int_equal(files(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_or_not_at_all),
		cmocka_unit_test(a_name_that_is_taken_meanwhile),
		cmocka_unit_test(pipes),
		cmocka_unit_test(names_that_cannot_be),
		cmocka_unit_test(nothing_is_left_of_who_is_killed),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
