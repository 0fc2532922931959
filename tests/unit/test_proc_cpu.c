/* SPDX-License-Identifier: MIT */
/* CPU times of threads from a /proc that the test makes, where threads do as they are told. */
#include "src/proc/proc_cpu.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <unistd.h>

enum { PID = 100, MS = 1000000 };

struct world {
	char root[64];
	uv_loop_t loop;
	struct an_cputime *table;
	struct proc_cpu *cpu;
	bool no_schedstat;
};

static void write_file(const struct world *w, int tid, const char *name, const char *text)
{
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d/task/%d/%s", w->root, PID, tid, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* The thread has used that much so far. */
static void set(const struct world *w, int tid, uint64_t cpu_ns, uint64_t ready_ns)
{
	char text[160];

	if (!w->no_schedstat) {
		snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 " 12\n", cpu_ns, ready_ns);
		write_file(w, tid, "schedstat", text);
	}
	snprintf(text, sizeof(text),
		 "%d (a) (\nb) S 1 2 3 4 -1 4194560 5 6 7 8 %" PRIu64 " %" PRIu64 " 0 0 20 0\n",
		 tid, cpu_ns / (10 * MS), UINT64_C(1));
	write_file(w, tid, "stat", text);
}

static void add(const struct world *w, int tid, uint64_t cpu_ns)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%d/task/%d", w->root, PID, tid);
	assert_int_equal(mkdir(path, 0700), 0);
	set(w, tid, cpu_ns, 0);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_thread(const struct world *w, int tid)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%d/task/%d", w->root, PID, tid);
	nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	char path[128];

	snprintf(w->root, sizeof(w->root), "/tmp/drd-proc-XXXXXX");
	assert_non_null(mkdtemp(w->root));
	snprintf(path, sizeof(path), "%s/%d", w->root, PID);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/%d/task", w->root, PID);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(uv_loop_init(&w->loop), 0);
	w->table = an_cputime_new(&nt_alloc_default);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	proc_cpu_close(w->cpu);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w->loop), 0);
	an_cputime_free(w->table);
	nftw(w->root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	free(w);
	return 0;
}

/* Readings are the test's business: the loop does not run. */
static void start(struct world *w)
{
	const struct proc_cpu_config config = { .root = w->root, .pid = PID };
	int error;

	w->cpu = proc_cpu_start(&w->loop, &config, w->table, &error);
	assert_non_null(w->cpu);
	assert_int_equal(error, 0);
}

static void read_now(struct world *w)
{
	usleep(6000);
	proc_cpu_read(w->cpu);
}

static uint64_t total_ms(const struct world *w, uint64_t tid)
{
	const struct an_cputime_thread *t = an_cputime_find(w->table, tid);

	return t ? t->cpu_ns / MS : UINT64_MAX;
}

static void differences_are_counted(void **state)
{
	struct world *w = *state;

	add(w, 100, 5000 * (uint64_t)MS);
	add(w, 101, 7000 * (uint64_t)MS);
	start(w);
	assert_int_equal(an_cputime_borrow_info(w->table)->source, AN_CPUTIME_SCHEDSTAT);
	set(w, 100, 5003 * (uint64_t)MS, 9 * MS);
	read_now(w);
	set(w, 100, 5005 * (uint64_t)MS, 9 * MS);
	read_now(w);
	assert_int_equal(total_ms(w, 100), 5);
	assert_int_equal(an_cputime_find(w->table, 100)->ready_ns, 9 * MS);
	assert_int_equal(total_ms(w, 101), 0);
	assert_string_equal(an_cputime_find(w->table, 100)->name, "a) (\nb");
	assert_int_equal(an_cputime_find(w->table, 100)->state, 'S');
	assert_true(an_cputime_used(w->table, 101, an_cputime_since(w->table),
				    an_cputime_until(w->table)) == 0);
}

/* One that was not there has used all of it since; one that is gone keeps what it used. */
static void threads_come_and_go(void **state)
{
	struct world *w = *state;

	add(w, 100, 0);
	add(w, 101, 50 * (uint64_t)MS);
	start(w);
	add(w, 102, 3 * (uint64_t)MS);
	set(w, 101, 54 * (uint64_t)MS, 0);
	read_now(w);
	assert_int_equal(total_ms(w, 101), 4);
	assert_int_equal(total_ms(w, 102), 3);
	remove_thread(w, 101);
	set(w, 102, 4 * (uint64_t)MS, 0);
	read_now(w);
	assert_int_equal(total_ms(w, 101), 4);
	assert_int_equal(total_ms(w, 102), 4);
	/* The number is used again. */
	add(w, 101, 1 * (uint64_t)MS);
	read_now(w);
	assert_int_equal(total_ms(w, 101), 1);
	set(w, 101, 3 * (uint64_t)MS, 0);
	read_now(w);
	assert_int_equal(total_ms(w, 101), 3);
}

/* The number is used again between two readings: what it has used went back. */
static void a_number_used_again_is_seen(void **state)
{
	struct world *w = *state;
	struct an_cputime_stats stats;

	add(w, 100, 0);
	add(w, 101, 500 * (uint64_t)MS);
	start(w);
	set(w, 101, 2 * (uint64_t)MS, 0);
	read_now(w);
	read_now(w);
	set(w, 101, 5 * (uint64_t)MS, 0);
	read_now(w);
	an_cputime_get_stats(w->table, &stats);
	assert_int_equal(stats.threads, 3);
	assert_in_range(total_ms(w, 101), 3, 5);
}

/* A thread vanishes after it was listed: its files are not there. */
static void half_a_thread_is_no_thread(void **state)
{
	struct world *w = *state;
	char path[160];

	add(w, 100, 0);
	snprintf(path, sizeof(path), "%s/%d/task/102", w->root, PID);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/%d/task/notes", w->root, PID);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/%d/task/99999999999999999999", w->root, PID);
	assert_int_equal(mkdir(path, 0700), 0);
	start(w);
	read_now(w);
	assert_null(an_cputime_find(w->table, 102));
	assert_int_equal(total_ms(w, 100), 0);
	write_file(w, 100, "schedstat", "nonsense");
	read_now(w);
	read_now(w);
	assert_int_equal(total_ms(w, 100), 0);
}

static void make_namespace(const struct world *w, const char *who, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", w->root, who);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/ns", w->root, who);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/%s/ns/pid", w->root, who);
	assert_int_equal(symlink(name, path), 0);
}

/* In a container threads have other numbers: those the trace has. */
static void threads_have_the_numbers_of_the_trace(void **state)
{
	struct world *w = *state;

	make_namespace(w, "self", "pid:[1]");
	make_namespace(w, "100", "pid:[2]");
	add(w, 100, 0);
	add(w, 101, 0);
	add(w, 102, 0);
	write_file(w, 100, "status", "Name:\tNSpid:\nNSpid:\t100\t1\nThreads:\t3\n");
	write_file(w, 101, "status", "Name:\tx\nNSpid:\t101\t33\t7\nThreads:\t3\n");
	write_file(w, 102, "status", "NSpid:\t102");
	start(w);
	set(w, 100, 3 * (uint64_t)MS, 0);
	set(w, 101, 4 * (uint64_t)MS, 0);
	set(w, 102, 5 * (uint64_t)MS, 0);
	read_now(w);
	assert_int_equal(total_ms(w, 1), 3);
	assert_int_equal(total_ms(w, 7), 4);
	assert_int_equal(total_ms(w, 102), 5);
	assert_null(an_cputime_find(w->table, 101));
}

static void without_schedstat_ticks_do(void **state)
{
	struct world *w = *state;

	w->no_schedstat = true;
	add(w, 100, 500 * (uint64_t)MS);
	start(w);
	assert_int_equal(an_cputime_borrow_info(w->table)->source, AN_CPUTIME_STAT);
	set(w, 100, 550 * (uint64_t)MS, 0);
	read_now(w);
	assert_int_equal(total_ms(w, 100), 50);
}

/* A kernel that does not count shows zeros. */
static void zeros_are_no_schedstat(void **state)
{
	struct world *w = *state;

	add(w, 100, 500 * (uint64_t)MS);
	write_file(w, 100, "schedstat", "0 0 0\n");
	start(w);
	assert_int_equal(an_cputime_borrow_info(w->table)->source, AN_CPUTIME_STAT);
}

static void who_is_not_there_is_not_measured(void **state)
{
	struct world *w = *state;
	const struct proc_cpu_config config = { .root = w->root, .pid = 99 };
	int error = 0;

	assert_null(proc_cpu_start(&w->loop, &config, w->table, &error));
	assert_int_equal(error, ENOENT);
	/* No thread can be read. */
	assert_null(proc_cpu_start(&w->loop, &(const struct proc_cpu_config){ w->root, PID, 0 },
				   w->table, &error));
	assert_int_equal(error, ESRCH);
}

static void the_loop_reads(void **state)
{
	struct world *w = *state;
	struct proc_cpu_stats stats = { 0 };

	add(w, 100, 0);
	start(w);
	set(w, 100, 1 * (uint64_t)MS, 0);
	while (stats.readings < 2) {
		uv_run(&w->loop, UV_RUN_ONCE);
		proc_cpu_get_stats(w->cpu, &stats);
	}
	assert_int_equal(total_ms(w, 100), 1);
	assert_int_equal(stats.threads, 1);
	assert_true(stats.cost_ns > 0);
	assert_true(stats.interval_ms >= 100);
}

/* Files are kept open only as far as there are enough of them. */
static void many_threads_are_read(void **state)
{
	enum { MANY = 1500 };
	struct world *w = *state;
	struct proc_cpu_stats stats;

	for (int i = 0; i < MANY; i++)
		add(w, 100 + i, 0);
	start(w);
	for (int i = 0; i < MANY; i++)
		set(w, 100 + i, (uint64_t)i * MS, 0);
	read_now(w);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(total_ms(w, (uint64_t)(100 + i)), i);
	proc_cpu_get_stats(w->cpu, &stats);
	assert_int_equal(stats.threads, MANY);
	assert_true(stats.open_files > 0);
	assert_true(stats.open_files <= 2048);
}

/* --- texts --- */

static bool parse(const char *text, struct proc_cpu_stat *ret)
{
	return proc_cpu_parse_stat(text, strlen(text), ret);
}

static void stat_texts(void **state)
{
	struct proc_cpu_stat s;

	(void)state;
	assert_true(parse("7 (x) R 1 2 3 4 -1 6 7 8 9 10 30 4 0 0", &s));
	assert_string_equal(s.name, "x");
	assert_int_equal(s.state, 'R');
	assert_int_equal(s.ticks, 34);
	assert_true(parse("7 (R 1 2 (3) S 1) D 1 2 3 4 -1 6 7 8 9 10 30 4", &s));
	assert_string_equal(s.name, "R 1 2 (3) S 1");
	assert_int_equal(s.state, 'D');
	assert_int_equal(s.ticks, 34);
	assert_true(parse("7 () S 1 2 3 4 -1 6 7 8 9 10 30 4", &s));
	assert_string_equal(s.name, "");
	assert_true(parse("7 (a name longer than the kernel has) S 1 2 3 4 -1 6 7 8 9 10 3 4", &s));
	assert_string_equal(s.name, "a name longer t");
	assert_false(parse("", &s));
	assert_false(parse("7 (x", &s));
	assert_false(parse("7 (x)", &s));
	assert_false(parse("7 (x) S", &s));
	assert_false(parse(")(", &s));
	assert_false(parse("7 (x) S 1 2 3 4 -1 6 7 8 9 10", &s));
	assert_false(parse("7 (x) S 1 2 3 4 -1 6 7 8 9 10 30", &s));
	assert_false(parse("7 (x) S 1 2 3 4 -1 6 7 8 9 10 -30 4", &s));
	assert_false(parse("7 (x) S 1 2 3 4 -1 6 7 8 9 10 99999999999999999999 4", &s));
	assert_false(parse("7 (x) S 1 2 3 4 -1 6 7 8 9 10 18446744073709551615 4", &s));
}

static void schedstat_texts(void **state)
{
	uint64_t v[3];

	(void)state;
	assert_true(proc_cpu_parse_schedstat("1 2 3\n", 6, v));
	assert_int_equal(v[0], 1);
	assert_int_equal(v[2], 3);
	assert_false(proc_cpu_parse_schedstat("1 2\n", 4, v));
	assert_false(proc_cpu_parse_schedstat("", 0, v));
	assert_false(proc_cpu_parse_schedstat("-1 2 3", 6, v));
	assert_false(proc_cpu_parse_schedstat("99999999999999999999 2 3", 24, v));
}

#define WORLD(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD(differences_are_counted),
		WORLD(threads_come_and_go),
		WORLD(a_number_used_again_is_seen),
		WORLD(half_a_thread_is_no_thread),
		WORLD(threads_have_the_numbers_of_the_trace),
		WORLD(without_schedstat_ticks_do),
		WORLD(zeros_are_no_schedstat),
		WORLD(who_is_not_there_is_not_measured),
		WORLD(the_loop_reads),
		WORLD(many_threads_are_read),
		cmocka_unit_test(stat_texts),
		cmocka_unit_test(schedstat_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
