/* SPDX-License-Identifier: MIT */

/* A run that dies at any of its writes into the store, or finds no room for it: what is there is
 * whole, and the next run goes on. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/store/store.h"

#define BEGIN  INT64_C(1790000000000)
#define MINUTE INT64_C(60000)

static char folder[] = "/tmp/drd-steps-XXXXXX";
static char dir[64];

static int setup(void **state)
{
	(void)state;
	memcpy(folder, "/tmp/drd-steps-XXXXXX", sizeof(folder));
	if (!mkdtemp(folder))
		return -1;
	snprintf(dir, sizeof(dir), "%s/store", folder);
	return 0;
}

static void remove_all(const char *path)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf '%s'", path);
	assert_int_equal(system(command), 0);
}

static int teardown(void **state)
{
	(void)state;
	remove_all(folder);
	return 0;
}

static const struct store_metric metrics[] = { { "cpu.samples", 100 }, { "gc.count", 7 } };
static const struct store_method methods[] = { { "Shop.Hot", 60, 90 }, { "Shop.Warm", 30, 30 } };
static const struct store_finding finding = { "gc.pauses", "warning", "long pauses", "1.5 %" };

static const struct store_sample sample = {
	.time_ms = BEGIN,
	.name = "Shop",
	.pid = 4711,
	.complete = true,
	.metric_count = 2,
	.metrics = metrics,
	.method_count = 2,
	.methods = methods,
	.finding_count = 1,
	.findings = &finding,
};

/*
 * Every write of a run, one after the other: sqlite3's own files, through its own methods, counted.
 * What is written into the shared index of the log is not: that is memory, which nothing survives.
 */
static struct {
	struct {
		sqlite3_io_methods ours; /* a file of that kind points to it */
		const sqlite3_io_methods *real;
	} kinds[8]; /* the database has others than its log */
	size_t kind_count;
	int (*real_open)(sqlite3_vfs *, sqlite3_filename, sqlite3_file *, int, int *);
	int left; /* until it happens; below 0: never */
	bool kill; /* the process dies just before; else there is no room, from then on */
} steps;

static bool is_due(void)
{
	if (steps.left > 0)
		steps.left--;
	if (steps.left == 0 && steps.kill)
		raise(SIGKILL);
	return steps.left == 0;
}

static const sqlite3_io_methods *real_methods(const sqlite3_file *f)
{
	size_t i = 0;

	while (&steps.kinds[i].ours != f->pMethods)
		i++;
	return steps.kinds[i].real;
}

static int step_write(sqlite3_file *f, const void *data, int bytes, sqlite3_int64 at)
{
	return is_due() ? SQLITE_FULL : real_methods(f)->xWrite(f, data, bytes, at);
}

static int step_sync(sqlite3_file *f, int flags)
{
	return is_due() ? SQLITE_IOERR_FSYNC : real_methods(f)->xSync(f, flags);
}

static int step_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	return is_due() ? SQLITE_IOERR_TRUNCATE : real_methods(f)->xTruncate(f, size);
}

static int step_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *f, int flags,
		     int *ret_flags)
{
	int status = steps.real_open(vfs, name, f, flags, ret_flags);
	size_t i = 0;

	if (status != SQLITE_OK || !f->pMethods)
		return status;
	while (i < steps.kind_count && steps.kinds[i].real != f->pMethods)
		i++;
	if (i == sizeof(steps.kinds) / sizeof(steps.kinds[0]))
		abort();
	if (i == steps.kind_count) {
		steps.kinds[i].real = f->pMethods;
		steps.kinds[i].ours = *f->pMethods;
		steps.kinds[i].ours.xWrite = step_write;
		steps.kinds[i].ours.xSync = step_sync;
		steps.kinds[i].ours.xTruncate = step_truncate;
		steps.kind_count++;
	}
	f->pMethods = &steps.kinds[i].ours;
	return status;
}

/* A run: the store is opened (made, where it is not there), gets a sample, is cleaned up. */
static int run_with_steps(int left, bool with_kill)
{
	static sqlite3_vfs vfs;
	struct store_limits limits = { .keep_rows_ms = 30 * MINUTE };
	struct store_pruned gone;
	struct store *s;
	size_t removed;
	int64_t id;
	bool ok;

	vfs = *sqlite3_vfs_find(NULL);
	vfs.zName = "steps";
	steps.real_open = vfs.xOpen;
	vfs.xOpen = step_open;
	steps.left = left;
	steps.kill = with_kill;
	if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK)
		return 2;
	s = store_open(dir, STORE_WRITE);
	ok = s && store_add(s, &sample, &id) && store_repair(s, &removed) &&
	     store_prune(s, BEGIN + MINUTE, &limits, &gone);
	store_close(s);
	return ok ? 0 : 1;
}

/* The status of such a run in a process of its own. */
static int child_with_steps(int left, bool with_kill)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(run_with_steps(left, with_kill));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void check_sound(void)
{
	char path[96];
	sqlite3 *db;
	sqlite3_stmt *q;

	snprintf(path, sizeof(path), "%s/samples.db", dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &q, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(q), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(q, 0), "ok");
	sqlite3_finalize(q);
	sqlite3_close(db);
}

struct found {
	size_t count;
	int64_t ids[512];
};

static bool note_id(void *ctx, const struct store_sample *p)
{
	struct found *f = ctx;

	assert_true(f->count < sizeof(f->ids) / sizeof(f->ids[0]));
	f->ids[f->count++] = p->id;
	return true;
}

static bool check_whole(void *ctx, const struct store_sample *p)
{
	(void)ctx;
	assert_string_equal(p->name, "Shop");
	assert_int_equal(p->metric_count, 2);
	assert_int_equal(p->method_count, 2);
	assert_int_equal(p->finding_count, 1);
	assert_string_equal(p->findings[0].evidence, "1.5 %");
	return true;
}

/* After a run that came to its end or not: all of the samples that are there are whole. */
static size_t whole_samples(void)
{
	struct store *s = store_open(dir, STORE_WRITE);
	struct store_filter all = { .begin_ms = INT64_MIN };
	static struct found found;
	bool there;

	assert_non_null(s);
	check_sound();
	found.count = 0;
	assert_true(store_list(s, &all, note_id, &found));
	for (size_t i = 0; i < found.count; i++) {
		assert_true(store_show(s, found.ids[i], check_whole, NULL, &there));
		assert_true(there);
	}
	store_close(s);
	return found.count;
}

static void each_step(bool with_kill, bool new_store)
{
	int step = 1, status;
	size_t before = 0;

	if (!new_store)
		assert_int_equal(child_with_steps(-1, false), 0);
	before = new_store ? 0 : 1;
	while ((status = child_with_steps(step, with_kill)) != 0) {
		size_t now;

		assert_true(with_kill ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
				      : WIFEXITED(status) && WEXITSTATUS(status) == 1);
		now = whole_samples();
		assert_true(now == before || now == before + 1);
		before = now;
		if (new_store) {
			remove_all(dir);
			before = 0;
		}
		assert_true(++step < 500);
	}
	assert_int_equal(whole_samples(), before + 1);
	print_message("%d writes, each the last one\n", step - 1);
	assert_true(step > 3);
}

static void test_killed_at_each_write(void **state)
{
	(void)state;
	each_step(true, false);
}

static void test_killed_while_it_is_made(void **state)
{
	(void)state;
	each_step(true, true);
}

static void test_full_disk_at_each_write(void **state)
{
	(void)state;
	each_step(false, false);
}

static void test_full_disk_while_it_is_made(void **state)
{
	(void)state;
	each_step(false, true);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_killed_at_each_write),
		TEST(test_killed_while_it_is_made),
		TEST(test_full_disk_at_each_write),
		TEST(test_full_disk_while_it_is_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
