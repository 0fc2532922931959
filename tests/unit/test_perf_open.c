/* SPDX-License-Identifier: MIT */
/* Opening perf events where the kernel, our rights or a container allow less; mappings as text. */
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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "src/perf/perf_files.h"
#include "src/perf/perf_sampler.h"

/* A kernel that only knows so much. */
struct kernel {
	bool modern, allows_kernel;
	int error; /* whatever is asked */
	unsigned asked;
	struct perf_event_attr last;
};

static int kernel_open(void *ctx, const struct perf_event_attr *attr, int32_t tid, int cpu)
{
	struct kernel *k = ctx;

	(void)tid;
	(void)cpu;
	k->asked++;
	k->last = *attr;
	if (k->error)
		return k->error;
	if ((attr->build_id || attr->inherit_thread) && !k->modern)
		return -EINVAL;
	if (!attr->exclude_kernel && !k->allows_kernel)
		return -EACCES;
	return 77;
}

static void all_there_is(void **state)
{
	struct kernel k = { .modern = true, .allows_kernel = true };
	const struct perf_kernel kernel = { kernel_open, &k };
	struct perf_opener o;

	(void)state;
	perf_opener_init(&o, &kernel, 499);
	assert_int_equal(perf_opener_open(&o, 1, 0), 77);
	assert_int_equal(k.asked, 1);
	assert_true(o.kernel_time);
	assert_int_equal(k.last.sample_freq, 499);
	assert_true(k.last.freq && k.last.inherit && k.last.inherit_thread && k.last.build_id);
	assert_int_equal(k.last.clockid, CLOCK_MONOTONIC);
	assert_false(k.last.exclude_kernel);
	assert_true(k.last.exclude_callchain_kernel);
}

/* Asked for where it is allowed; time in the kernel is counted either way. */
static void frames_of_the_kernel(void **state)
{
	(void)state;
	for (int allows = 0; allows < 2; allows++) {
		struct kernel k = { .modern = true, .allows_kernel = allows };
		const struct perf_kernel kernel = { kernel_open, &k };
		struct perf_opener o;

		perf_opener_init(&o, &kernel, 99);
		o.kernel_frames = true;
		assert_int_equal(perf_opener_open(&o, 1, 0), 77);
		assert_int_equal(o.kernel_time, allows);
		assert_int_equal(k.last.exclude_kernel, !allows);
		assert_int_equal(k.last.exclude_callchain_kernel, !allows);
	}
}

static void less_is_found_out_once(void **state)
{
	struct kernel k = { 0 };
	const struct perf_kernel kernel = { kernel_open, &k };
	struct perf_opener o;

	(void)state;
	perf_opener_init(&o, &kernel, 99);
	assert_int_equal(perf_opener_open(&o, 1, 0), 77);
	assert_int_equal(k.asked, 3);
	assert_false(o.kernel_time);
	assert_true(k.last.exclude_kernel && k.last.exclude_callchain_kernel);
	assert_false(k.last.inherit_thread || k.last.build_id);
	assert_int_equal(perf_opener_open(&o, 2, 0), 77);
	assert_int_equal(k.asked, 4);
}

/* Whoever asks is told why, and what to do; there is no sampler and nothing is left behind. */
static void refused(int error, const char *part, bool has_advice)
{
	struct kernel k = { .error = error };
	const struct perf_kernel kernel = { kernel_open, &k };
	const struct perf_sampler_config config = { .pid = (int32_t)getpid(),
						    .frequency = 99,
						    .kernel = &kernel };
	struct perf_refusal why;
	uv_loop_t loop;

	assert_int_equal(uv_loop_init(&loop), 0);
	assert_null(perf_sampler_start(&loop, &config, &why));
	if (!strstr(why.why, part))
		fail_msg("'%s' lacks '%s'", why.why, part);
	assert_int_equal(why.advice != NULL, has_advice);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
}

static void refusals_say_why(void **state)
{
	(void)state;
	refused(-EACCES, "may not", true);
	refused(-EPERM, "may not", true);
	refused(-ENOSYS, "no perf events", false);
	refused(-EMFILE, "open files", true);
	refused(-ESRCH, "ended", false);
	refused(-EOPNOTSUPP, "not supported", false);
}

static void the_distribution_may_forbid_it(void **state)
{
	const char *advice;
	char why[256];

	(void)state;
	perf_open_describe(-EACCES, 4, why, sizeof(why), &advice);
	assert_non_null(strstr(why, "perf_event_paranoid is 4"));
	assert_non_null(advice);
	perf_open_describe(-EACCES, 2, why, sizeof(why), &advice);
	assert_null(strstr(why, "paranoid"));
}

/* --- /proc/PID/maps --- */

static void a_line(void **state)
{
	struct perf_mapping m;

	(void)state;
	assert_true(perf_files_parse("7f05bc800000-7f05bd000000 r-xp 000a1000 fe:00 4711    "
				     "                   /usr/lib/lib with blank.so",
				     &m));
	assert_int_equal(m.start, 0x7f05bc800000);
	assert_int_equal(m.bytes, 0x800000);
	assert_int_equal(m.offset, 0xa1000);
	assert_int_equal(m.inode, 4711);
	assert_string_equal(m.file, "/usr/lib/lib with blank.so");
	assert_true(perf_files_parse("7ffd-8000 r-xp 00000000 00:00 0    [vdso]", &m));
}

static void lines_of_no_use(void **state)
{
	static const char *const lines[] = {
		"7f05bc800000-7f05bd000000 r--p 000a1000 fe:00 4711 /usr/lib/x.so",
		"7f05bc800000-7f05bd000000 rwxp 00000000 00:00 0 ",
		"7f05bc800000-7f05bd000000 rwxp 00000000 00:00 0",
		"7f05bc800000-7f05bd000000 r-xs 00000000 00:01 5 /memfd:doublemapper (deleted)",
		"7f05bd000000-7f05bd000000 r-xp 00000000 fe:00 1 /x",
		"7f05bd000000-7f05bc000000 r-xp 00000000 fe:00 1 /x",
		"7f05bc800000 7f05bd000000 r-xp 00000000 fe:00 1 /x",
		"7f05bc800000-7f05bd000000 r-x",
		"7f05bc800000-7f05bd000000 r-xp",
		"7f05bc800000-7f05bd000000 r-xp 0000",
		"7f05bc800000-7f05bd000000 r-xp 00000000 fe:00",
		"7f05bc800000-7f05bd000000 r-xp 00000000 fe:00 ",
		"7f05bc800000-7f05bd000000 r-xp 00000000 fe:00 99999999999999999999 /x",
		"7f05bc800000-99999999999999999999 r-xp 00000000 fe:00 1 /x",
		"-1-7f05bd000000 r-xp 00000000 fe:00 1 /x",
		"",
		"-",
	};
	struct perf_mapping m;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (perf_files_parse(lines[i], &m))
			fail_msg("'%s' is no code of a file", lines[i]);
}

/* --- files of another root --- */

static void write_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
}

/* Links of a container lead to its own files, never to ours. */
static void nothing_leaves_the_root(void **state)
{
	char dir[] = "/tmp/drd-perf-XXXXXX", path[128];
	struct perf_files f = { .root = -1 };
	struct stat outside, inside;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/passwd", dir);
	write_file(path);
	assert_int_equal(stat(path, &outside), 0);
	snprintf(path, sizeof(path), "%s/root", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	f.root = open(path, O_PATH | O_DIRECTORY);
	snprintf(path, sizeof(path), "%s/root/passwd", dir);
	write_file(path);
	assert_int_equal(stat(path, &inside), 0);
	snprintf(path, sizeof(path), "%s/root/up", dir);
	assert_int_equal(symlink("../passwd", path), 0);
	snprintf(path, sizeof(path), "%s/root/pipe", dir);
	assert_int_equal(mkfifo(path, 0600), 0);

	fd = perf_files_open(&f, "/up");
	if (fd != -ENOSYS) {
		struct stat st;

		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_ino, inside.st_ino);
		close(fd);
		fd = perf_files_open(&f, "/../../passwd");
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_ino, inside.st_ino);
		close(fd);
		assert_int_equal(perf_files_open(&f, "/pipe"), -EINVAL);
		assert_int_equal(perf_files_open(&f, "/"), -EINVAL);
		assert_int_equal(perf_files_open(&f, "/none"), -ENOENT);
	}
	perf_files_done(&f);
	for (size_t i = 0; i < 5; i++) {
		static const char *const names[] = { "root/up", "root/pipe", "root/passwd",
						     "passwd", "root" };

		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		remove(path);
	}
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_there_is),
		cmocka_unit_test(frames_of_the_kernel),
		cmocka_unit_test(less_is_found_out_once),
		cmocka_unit_test(refusals_say_why),
		cmocka_unit_test(the_distribution_may_forbid_it),
		cmocka_unit_test(a_line),
		cmocka_unit_test(lines_of_no_use),
		cmocka_unit_test(nothing_leaves_the_root),
	};

	return cmocka_run_group_tests_name("perf_open", tests, NULL, NULL);
}
