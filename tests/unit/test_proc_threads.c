/* SPDX-License-Identifier: MIT */
/* Threads of a process from a /proc that was made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/proc/proc_threads.h"

static char root[64];

static void put(const char *path, const char *text)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	f = fopen(full, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void folder(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", root, path);
	assert_int_equal(mkdir(full, 0700), 0);
}

/* A thread with that name, state, time in ticks and start. */
static void thread(const char *tid, const char *name, char state, unsigned user, unsigned system,
		   unsigned start)
{
	char path[64], text[512];

	snprintf(path, sizeof(path), "7/task/%s", tid);
	folder(path);
	snprintf(path, sizeof(path), "7/task/%s/stat", tid);
	snprintf(text, sizeof(text),
		 "%s (%s) %c 1 7 7 0 -1 4194304 10 0 0 0 %u %u 0 0 20 0 3 0 %u 1000 200 0\n", tid,
		 name, state, user, system, start);
	put(path, text);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/drd-proc-XXXXXX");
	assert_non_null(mkdtemp(root));
	folder("7");
	folder("7/task");
	put("7/status", "Name:\tshop\nNSpid:\t7\n");
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static void names_states_and_times(void **state)
{
	struct proc_threads t;

	(void)state;
	thread("12", "worker) S (x", 'S', 3, 2, 50);
	thread("7", "shop", 'R', 100, 0, 40);
	put("7/task/12/schedstat", "123456789 5 6\n");
	folder("7/task/13"); /* it ends while we look */
	folder("7/task/x");
	assert_true(proc_threads_read(&t, root, 7));
	assert_int_equal(t.count, 2);
	assert_int_equal(t.rows[0].id, 7);
	assert_string_equal(t.rows[0].name, "shop");
	assert_int_equal(t.rows[0].state, 'R');
	assert_int_equal(t.rows[0].cpu_ns, 100 * (1000000000 / sysconf(_SC_CLK_TCK)));
	assert_int_equal(t.rows[0].start_ticks, 40);
	assert_int_equal(t.rows[1].id, 12);
	assert_string_equal(t.rows[1].name, "worker) S (x");
	assert_int_equal(t.rows[1].cpu_ns, 123456789);
	assert_false(t.cut);
	proc_threads_done(&t);
	assert_null(t.rows);
}

/* In a container the process has other numbers than we see. */
static void numbers_are_those_of_the_process(void **state)
{
	struct proc_threads t;

	(void)state;
	put("7/status", "Name:\tshop\nNSpid:\t7\t1\n");
	thread("7", "shop", 'S', 1, 0, 40);
	thread("9", "worker", 'S', 1, 0, 40);
	put("7/task/7/status", "Name:\tshop\nNSpid:\t7\t1\nVmRSS:\t1\n");
	put("7/task/9/status", "Name:\tworker\nNSpid:\t9\t3\nVmRSS:\t1\n");
	assert_true(proc_threads_read(&t, root, 7));
	assert_int_equal(t.rows[0].id, 1);
	assert_int_equal(t.rows[1].id, 3);
	assert_string_equal(t.rows[1].name, "worker");
	proc_threads_done(&t);
}

static void the_difference_is_what_was_used(void **state)
{
	struct proc_thread rows[] = { { .id = 1, .start_ticks = 5, .cpu_ns = 100 },
				      { .id = 2, .start_ticks = 5, .cpu_ns = 100 } };
	const struct proc_threads before = { rows, 2, false };
	struct proc_thread now = { .id = 2, .start_ticks = 5, .cpu_ns = 130 };

	(void)state;
	assert_int_equal(proc_thread_cpu_since(&now, &before), 30);
	now.start_ticks = 6; /* another thread of that number */
	assert_int_equal(proc_thread_cpu_since(&now, &before), 130);
	now.id = 3; /* new */
	assert_int_equal(proc_thread_cpu_since(&now, &before), 130);
	now = (struct proc_thread){ .id = 1, .start_ticks = 5, .cpu_ns = 90 };
	assert_int_equal(proc_thread_cpu_since(&now, &before), 90);
	assert_int_equal(proc_thread_cpu_since(&now, &(struct proc_threads){ 0 }), 90);
}

static void nonsense_is_left_out(void **state)
{
	static const char *const texts[] = {
		"", "9", "9 (", "9 (x", "9 (x)", "9 (x) ", ") (", "9 (x) S", "9 (x) S 1 2 3",
	};
	struct proc_threads t;

	(void)state;
	thread("7", "shop", 'S', 1, 0, 40);
	folder("7/task/9");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		put("7/task/9/stat", texts[i]);
		assert_true(proc_threads_read(&t, root, 7));
		assert_in_range(t.count, 1, 2);
		if (t.count == 2)
			assert_int_equal(t.rows[1].cpu_ns, 0);
		proc_threads_done(&t);
	}
	assert_false(proc_threads_read(&t, root, 8));
	assert_int_equal(t.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_states_and_times, set_up, tear_down),
		cmocka_unit_test_setup_teardown(numbers_are_those_of_the_process, set_up,
						tear_down),
		cmocka_unit_test(the_difference_is_what_was_used),
		cmocka_unit_test_setup_teardown(nonsense_is_left_out, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
