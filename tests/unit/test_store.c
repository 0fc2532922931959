/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/store/store.h"

#define BEGIN  INT64_C(1790000000000)
#define MINUTE INT64_C(60000)
#define DAY    INT64_C(86400000)

static char folder[] = "/tmp/drd-store-XXXXXX";
static char dir[64];

static int setup(void **state)
{
	(void)state;
	memcpy(folder, "/tmp/drd-store-XXXXXX", sizeof(folder));
	if (!mkdtemp(folder))
		return -1;
	snprintf(dir, sizeof(dir), "%s/a/store", folder);
	return 0;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "chmod -R u+w '%s'; rm -rf '%s'", folder, folder);
	return system(command);
}

static const struct store_metric metrics[] = {
	{ "cpu.samples", 100 }, { "gc.count", 7 }, { "gc.pause_percent", 1.5 }, { "gc.odd", NAN }
};
static const struct store_method methods[] = { { "Shop.Cpu.Hot", 60, 90 },
					       { "Shop.Cpu.Warm", 30, 30 } };
static const struct store_finding findings[] = { { "gc.pauses", "warning", "long pauses",
						   "1.5 %" } };

static struct store_sample make(int64_t time_ms)
{
	return (struct store_sample){
		.time_ms = time_ms,
		.host = "web1",
		.name = "Shop",
		.command_line = "dotnet Shop.dll",
		.runtime = "10.0.15",
		.build = "1.0",
		.pid = 4711,
		.process_start = 12345,
		.duration_ms = 5000,
		.events = 1000,
		.lost = 3,
		.complete = true,
		.own_cpu_us = 20000,
		.metric_count = sizeof(metrics) / sizeof(metrics[0]),
		.metrics = metrics,
		.method_count = sizeof(methods) / sizeof(methods[0]),
		.methods = methods,
		.finding_count = sizeof(findings) / sizeof(findings[0]),
		.findings = findings,
	};
}

static int64_t add(struct store *s, int64_t time_ms)
{
	struct store_sample sample = make(time_ms);
	int64_t id;

	assert_true(store_add(s, &sample, &id));
	return id;
}

static bool count_one(void *ctx, const struct store_sample *sample)
{
	(void)sample;
	++*(size_t *)ctx;
	return true;
}

static size_t count(struct store *s, const char *name)
{
	struct store_filter f = { .name = name };
	size_t n = 0;

	assert_true(store_list(s, &f, count_one, &n));
	return n;
}

static bool check_whole(void *ctx, const struct store_sample *p)
{
	*(bool *)ctx = true;
	assert_string_equal(p->name, "Shop");
	assert_string_equal(p->host, "web1");
	assert_string_equal(p->command_line, "dotnet Shop.dll");
	assert_string_equal(p->runtime, "10.0.15");
	assert_int_equal(p->pid, 4711);
	assert_int_equal(p->lost, 3);
	assert_true(p->complete);
	assert_null(p->trace_file);
	assert_int_equal(p->metric_count, 3); /* NaN is no value */
	assert_string_equal(p->metrics[1].name, "gc.count");
	assert_float_equal(p->metrics[1].value, 7, 0);
	assert_int_equal(p->method_count, 2);
	assert_string_equal(p->methods[0].name, "Shop.Cpu.Hot");
	assert_float_equal(p->methods[0].inclusive, 90, 0);
	assert_int_equal(p->finding_count, 1);
	assert_string_equal(p->findings[0].id, "gc.pauses");
	assert_string_equal(p->findings[0].evidence, "1.5 %");
	return true;
}

static void test_round_trip(void **state)
{
	struct store *s = store_open(dir, STORE_WRITE);
	bool seen = false, found;
	int64_t id;

	(void)state;
	assert_non_null(s);
	id = add(s, BEGIN);
	store_close(s);
	s = store_open(dir, STORE_READ);
	assert_non_null(s);
	assert_true(store_show(s, id, check_whole, &seen, &found));
	assert_true(seen && found);
	assert_true(store_show(s, id + 1, check_whole, &seen, &found));
	assert_false(found);
	assert_int_equal(count(s, "Shop"), 1);
	assert_int_equal(count(s, "Other"), 0);
	store_close(s);
}

/* Whatever the umask: nobody else may read traces or numbers. */
static void test_modes(void **state)
{
	static const char *const names[] = { "", "/samples.db", "/samples.db-wal", "/traces",
					     "/lock" };
	mode_t old = umask(0);
	struct store *s = store_open(dir, STORE_WRITE);
	char path[96];
	struct stat st;

	(void)state;
	assert_non_null(s);
	add(s, BEGIN);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", dir, names[i]);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 077, 0);
	}
	store_close(s);
	umask(old);
	assert_int_equal(chmod(dir, 0770), 0);
	assert_null(store_open(dir, STORE_WRITE)); /* others may write to it */
}

static void test_missing_and_foreign(void **state)
{
	char path[96];
	FILE *f;
	sqlite3 *db;

	(void)state;
	assert_null(store_open(dir, STORE_READ));
	store_close(store_open(dir, STORE_WRITE));
	snprintf(path, sizeof(path), "%s/samples.db", dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 999", NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	assert_null(store_open(dir, STORE_WRITE)); /* of a newer version */
	assert_null(store_open(dir, STORE_READ));
	unlink(path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE x(y)", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_null(store_open(dir, STORE_WRITE)); /* somebody else's */
	f = fopen(path, "w");
	assert_non_null(f);
	for (int i = 0; i < 10000; i++)
		fputc('x', f);
	fclose(f);
	assert_null(store_open(dir, STORE_WRITE)); /* no database at all */
}

static void test_read_only(void **state)
{
	struct store *s = store_open(dir, STORE_WRITE);
	pid_t pid;
	int status;

	(void)state;
	assert_non_null(s);
	add(s, BEGIN);
	store_close(s);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(chmod(dir, 0555), 0);
	pid = fork();
	if (pid == 0) { /* root may write everywhere */
		char path[96];

		snprintf(path, sizeof(path), "%s/samples.db", dir);
		chmod(path, 0444);
		if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
			_exit(3);
		if (store_open(dir, STORE_WRITE))
			_exit(4);
		s = store_open(dir, STORE_READ);
		status = !s ? 1 : count(s, NULL) == 1 ? 0 : 2;
		store_close(s);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Adds samples until it is killed; a byte says that the first is there. */
static void write_for_ever(int told)
{
	struct store *s = store_open(dir, STORE_WRITE);
	int64_t id;

	if (!s)
		_exit(1);
	for (int64_t t = 0;; t++) {
		struct store_sample sample = make(BEGIN + t);

		if (!store_add(s, &sample, &id) || (t == 0 && write(told, "", 1) != 1))
			_exit(1);
	}
}

/*
 * Killed at any moment of its writing: what is there is whole, and the next one goes on.  Every
 * second one has begun to write, however slow the machine is.
 */
static void test_killed(void **state)
{
	int rounds = getenv("DRD_LONG") ? 300 : 30;
	size_t before = 0;

	(void)state;
	store_close(store_open(dir, STORE_WRITE));
	srand(7);
	for (int i = 0; i < rounds; i++) {
		struct timespec pause = { 0, 1000000 + rand() % 20000000 };
		struct store *s;
		size_t now;
		bool found;
		int64_t id;
		int told[2];
		char byte;
		pid_t pid;

		assert_int_equal(pipe(told), 0);
		pid = fork();
		if (pid == 0)
			write_for_ever(told[1]);
		close(told[1]);
		if (i % 2)
			assert_int_equal(read(told[0], &byte, 1), 1);
		nanosleep(&pause, NULL);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		close(told[0]);
		s = store_open(dir, STORE_WRITE);
		assert_non_null(s);
		now = count(s, NULL);
		assert_true(now >= before);
		id = add(s, BEGIN);
		for (int64_t check = id > 3 ? id - 3 : 1; check <= id; check++) {
			bool seen = false;

			assert_true(store_show(s, check, check_whole, &seen, &found));
			assert_true(seen);
		}
		before = now + 1;
		store_close(s);
	}
	assert_true(before >= (size_t)rounds + (size_t)rounds / 2);
}

/* Two runs at once wait for each other. */
static void test_two_writers(void **state)
{
	enum { WRITERS = 4, EACH = 50 };
	struct store *s;
	pid_t pids[WRITERS];

	(void)state;
	for (int w = 0; w < WRITERS; w++) {
		pids[w] = fork();
		if (pids[w] == 0) {
			s = store_open(dir, STORE_WRITE);
			for (int i = 0; s && i < EACH; i++) {
				struct store_sample sample = make(BEGIN + i);
				int64_t id;

				if (!store_add(s, &sample, &id))
					_exit(1);
			}
			_exit(s ? 0 : 2);
		}
	}
	for (int w = 0; w < WRITERS; w++) {
		int status;

		assert_int_equal(waitpid(pids[w], &status, 0), pids[w]);
		assert_int_equal(status, 0);
	}
	s = store_open(dir, STORE_READ);
	assert_int_equal(count(s, NULL), WRITERS * EACH);
	store_close(s);
}

static void test_locks(void **state)
{
	struct store *s = store_open(dir, STORE_WRITE);
	int first, second;

	(void)state;
	assert_non_null(s);
	assert_true(store_lock_target(s, "../../etc/Shop", &first));
	assert_true(first >= 0);
	assert_true(store_lock_target(s, "../../etc/Shop", &second));
	assert_int_equal(second, -1);
	close(first);
	assert_true(store_lock_target(s, "../../etc/Shop", &second));
	assert_true(second >= 0);
	close(second);
	store_close(s);
}

static void test_series(void **state)
{
	struct store *s = store_open(dir, STORE_WRITE);
	struct store_filter f = { .name = "Shop" };
	struct store_sample other = make(BEGIN + 5 * MINUTE);
	struct trend_point *p;
	char **names;
	size_t n;
	int64_t id;

	(void)state;
	assert_non_null(s);
	add(s, BEGIN + 2 * MINUTE);
	add(s, BEGIN); /* the clock went back */
	other.method_count = 1;
	assert_true(store_add(s, &other, &id));
	other.name = "Other";
	assert_true(store_add(s, &other, &id));
	other.name = "Shop";
	other.method_count = 0;
	other.metric_count = 0; /* nothing of the CPU was recorded: no value, not 0 */
	assert_true(store_add(s, &other, &id));

	assert_true(store_series(s, &f, "gc.count", &p, &n));
	assert_int_equal(n, 3);
	assert_true(p[0].time_ms == BEGIN && p[2].time_ms == BEGIN + 5 * MINUTE);
	free(p);
	assert_true(store_series(s, &f, "method:Shop.Cpu.Warm", &p, &n));
	assert_int_equal(n, 3);
	assert_true(p[1].value > 29 && p[2].value < 1);
	free(p);
	assert_true(store_series(s, &f, "method:No.Such", &p, &n));
	assert_int_equal(n, 0);
	f.name = NULL;
	assert_true(store_series(s, &f, "gc.count", &p, &n));
	assert_int_equal(n, 4);
	free(p);
	f.begin_ms = BEGIN + MINUTE;
	f.end_ms = BEGIN + 5 * MINUTE; /* not with the end */
	assert_true(store_series(s, &f, "gc.count", &p, &n));
	assert_int_equal(n, 1);
	free(p);
	assert_true(store_metrics(s, &f, &names, &n));
	assert_int_equal(n, 3);
	assert_string_equal(names[0], "cpu.samples");
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
	store_close(s);
}

static bool sum_top(void *ctx, const struct store_top *row)
{
	if (strcmp(row->name, "Shop.Cpu.Hot") == 0)
		*(double *)ctx = row->exclusive;
	return true;
}

/* Sums of days and single samples together, whatever part of a day is asked for. */
static void test_top(void **state)
{
	struct store *s = store_open(dir, STORE_WRITE);
	int64_t day = (BEGIN / DAY + 1) * DAY;
	int samples = 0;

	(void)state;
	assert_non_null(s);
	for (int64_t t = day - DAY / 2; t < day + 3 * DAY; t += DAY / 8, samples++)
		add(s, t);
	for (int64_t begin = day - DAY; begin < day + 2 * DAY; begin += DAY / 3)
		for (int64_t end = begin; end < day + 4 * DAY; end += DAY / 5) {
			struct store_filter f = { .name = "Shop",
						  .begin_ms = begin,
						  .end_ms = end };
			double hot = -1;
			uint64_t n;
			size_t in = 0;

			assert_true(store_list(s, &f, count_one, &in));
			assert_true(store_top_methods(s, &f, 5, sum_top, &hot, &n));
			assert_int_equal(n, in);
			assert_float_equal(hot, in ? 60 : -1, 1e-9);
		}
	store_close(s);
}

static void touch(struct store *s, const char *name, time_t age)
{
	struct timespec times[2] = { { .tv_sec = time(NULL) - age },
				     { .tv_sec = time(NULL) - age } };
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", store_traces_dir(s), name);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	futimens(fd, times);
	close(fd);
}

static bool is_there(struct store *s, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", store_traces_dir(s), name);
	return access(path, F_OK) == 0;
}

static void add_trace(struct store *s, int64_t time_ms, const char *name, bool found)
{
	struct store_sample p = make(time_ms);
	int64_t id;

	touch(s, name, 0);
	p.trace_file = name;
	p.trace_bytes = 100;
	p.finding_count = found;
	assert_true(store_add(s, &p, &id));
}

static void test_prune(void **state)
{
	struct store *s = store_open(dir, STORE_WRITE);
	struct store_limits l = { .keep_bytes = 250 };
	struct store_pruned gone;

	(void)state;
	assert_non_null(s);
	add_trace(s, BEGIN, "old-found", true);
	add_trace(s, BEGIN + MINUTE, "old", false);
	add_trace(s, BEGIN + 2 * MINUTE, "new", false);
	add_trace(s, BEGIN + 3 * MINUTE, "new-found", true);
	assert_true(store_prune(s, BEGIN + 4 * MINUTE, &l, &gone));
	assert_int_equal(gone.traces, 2); /* those without findings, before older ones with */
	assert_true(is_there(s, "old-found") && is_there(s, "new-found"));
	assert_false(is_there(s, "old") || is_there(s, "new"));
	l = (struct store_limits){ .keep_ms = 2 * MINUTE };
	assert_true(store_prune(s, BEGIN + 4 * MINUTE, &l, &gone));
	assert_int_equal(gone.traces, 1);
	assert_false(is_there(s, "old-found"));
	assert_int_equal(count(s, NULL), 4); /* numbers stay */
	l = (struct store_limits){ .keep_rows_ms = 2 * MINUTE };
	assert_true(store_prune(s, BEGIN + 4 * MINUTE, &l, &gone));
	assert_int_equal(gone.samples, 2);
	assert_int_equal(count(s, NULL), 2);
	store_close(s);
}

/* Whoever can write to the database shall not make us touch other files. */
static void test_names_stay_inside(void **state)
{
	static const char *const names[] = { "../../victim", "/etc/hostname", "..", ".hidden" };
	struct store *s = store_open(dir, STORE_WRITE);
	struct store_limits l = { .keep_ms = 1 };
	struct store_pruned gone;
	char path[96];
	int64_t id;

	(void)state;
	assert_non_null(s);
	snprintf(path, sizeof(path), "%s/a/victim", folder);
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct store_sample p = make(BEGIN);
		bool seen = false, found;

		p.trace_file = names[i];
		p.trace_bytes = 1;
		assert_true(store_add(s, &p, &id));
		assert_true(store_show(s, id, check_whole, &seen, &found)); /* without a trace */
		assert_true(seen);
	}
	assert_true(store_prune(s, BEGIN + DAY, &l, &gone));
	assert_int_equal(access(path, F_OK), 0);
	assert_true(store_would_replace(s, "x") == false);
	snprintf(path, sizeof(path), "%s/traces/../samples.db", dir);
	assert_true(store_would_replace(s, path));
	store_close(s);
}

/* Where a folder of the store leads elsewhere, nothing is written or removed there. */
static void test_linked_folders(void **state)
{
	static const char *const names[] = { "traces", "lock" };
	char elsewhere[96], file[128], path[96];
	struct store *s;
	struct stat st;

	(void)state;
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", folder);
	snprintf(file, sizeof(file), "%s/old.nettrace.zst", elsewhere);
	assert_int_equal(mkdir(elsewhere, 0700), 0);
	assert_int_equal(close(open(file, O_CREAT | O_WRONLY, 0600)), 0);
	for (size_t i = 0; i < 2; i++) {
		store_close(store_open(dir, STORE_WRITE));
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		assert_int_equal(rmdir(path), 0);
		assert_int_equal(symlink(elsewhere, path), 0);
		assert_null(store_open(dir, STORE_WRITE));
		assert_int_equal(unlink(path), 0);
		assert_int_equal(mkdir(path, 0700), 0);
		assert_int_equal(chmod(path, 0777), 0); /* others could link there */
		assert_null(store_open(dir, STORE_WRITE));
		if (geteuid() == 0) {
			assert_int_equal(chmod(path, 0700), 0);
			assert_int_equal(chown(path, 65534, 65534), 0);
			assert_null(store_open(dir, STORE_WRITE));
		}
		assert_int_equal(rmdir(path), 0);
	}
	assert_int_equal(stat(file, &st), 0);
	/* The whole store behind a link of the user's is fine, somebody else's store is not. */
	snprintf(path, sizeof(path), "%s/link", folder);
	assert_int_equal(symlink(dir, path), 0);
	s = store_open(path, STORE_WRITE);
	assert_non_null(s);
	store_close(s);
	if (geteuid() == 0) {
		assert_int_equal(chown(dir, 65534, 65534), 0);
		assert_null(store_open(dir, STORE_WRITE));
		s = store_open(dir, STORE_READ);
		assert_non_null(s);
		store_close(s);
	}
}

static void test_no_file(void **state)
{
	char path[96];

	(void)state;
	store_close(store_open(dir, STORE_WRITE));
	snprintf(path, sizeof(path), "%s/samples.db", dir);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(store_open(dir, STORE_READ)); /* and does not wait for a writer */
	assert_null(store_open(dir, STORE_WRITE));
}

/* As a run that writes the file; the descriptor. */
static int lock(struct store *s, const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", store_traces_dir(s), name);
	fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	return fd;
}

static void test_repair(void **state)
{
	/* Of somebody: nothing that we would have made. */
	static const char *const others[] = { "passwd",
					      "notes.part",
					      "a.nettrace",
					      "a.nettrace.zst.bak",
					      "a.nettrace.zst.part",
					      "a.nettrace.zst.abcdefg.part",
					      "a.zst.abcdef.part",
					      ".nettrace.zst" };
	struct store *s = store_open(dir, STORE_WRITE);
	char path[128];
	size_t removed;
	int writer;

	(void)state;
	assert_non_null(s);
	add_trace(s, BEGIN, "known", false);
	add_trace(s, BEGIN, "vanished", false);
	touch(s, "killed.nettrace.zst.a1b2c3.part", 0); /* just now */
	touch(s, "orphan.nettrace.zst", 3600);
	touch(s, "of-the-future.nettrace.zst", -3600); /* the clock was set back */
	touch(s, "to-be-named.nettrace.zst", 1);
	touch(s, "long-written.nettrace.zst.a1b2c3.part",
	      3600); /* the target was stopped meanwhile */
	writer = lock(s, "long-written.nettrace.zst.a1b2c3.part");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		touch(s, others[i], 3600);
	snprintf(path, sizeof(path), "%s/link.nettrace.zst.a1b2c3.part", store_traces_dir(s));
	assert_int_equal(symlink("known", path), 0);
	snprintf(path, sizeof(path), "%s/pipe.nettrace.zst.a1b2c3.part", store_traces_dir(s));
	assert_int_equal(mkfifo(path, 0600), 0); /* nobody waits for its writer */
	snprintf(path, sizeof(path), "%s/vanished", store_traces_dir(s));
	unlink(path);
	assert_true(store_repair(s, &removed));
	assert_int_equal(removed, 3);
	assert_true(is_there(s, "known") && is_there(s, "to-be-named.nettrace.zst"));
	assert_true(is_there(s, "long-written.nettrace.zst.a1b2c3.part"));
	assert_true(is_there(s, "link.nettrace.zst.a1b2c3.part"));
	assert_true(is_there(s, "pipe.nettrace.zst.a1b2c3.part"));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_true(is_there(s, others[i]));
	assert_true(store_repair(s, &removed));
	assert_int_equal(removed, 0);
	close(writer); /* which died */
	assert_true(store_repair(s, &removed));
	assert_int_equal(removed, 1);
	assert_false(is_there(s, "long-written.nettrace.zst.a1b2c3.part"));
	store_close(s);
}

static bool note_marker(void *ctx, const struct store_marker *m)
{
	char *all = ctx;
	size_t used = strlen(all);

	snprintf(all + used, 256 - used, "[%s]", m->label);
	return true;
}

static void test_markers(void **state)
{
	struct store *s = store_open(dir, STORE_WRITE);
	struct store_filter f = { .name = "Shop" };
	char all[256] = "";
	int64_t id;

	(void)state;
	assert_non_null(s);
	for (int i = 0; i < 6; i++) {
		struct store_sample p = make(BEGIN + i * MINUTE);

		p.build = i < 3 ? "1.0" : "1.1";
		assert_true(store_add(s, &p, &id));
	}
	assert_true(store_add_marker(s, BEGIN + MINUTE, "Shop", "canary"));
	assert_true(store_add_marker(s, BEGIN + 2 * MINUTE, NULL, "new kernel"));
	assert_true(store_add_marker(s, BEGIN + 2 * MINUTE, "Other", "not ours"));
	assert_true(store_markers(s, &f, note_marker, all));
	assert_string_equal(all, "[canary][new kernel][build 1.1]");
	store_close(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_round_trip), TEST(test_modes),	  TEST(test_missing_and_foreign),
		TEST(test_read_only),  TEST(test_killed),	  TEST(test_two_writers),
		TEST(test_locks),      TEST(test_series),	  TEST(test_top),
		TEST(test_prune),      TEST(test_repair),	  TEST(test_names_stay_inside),
		TEST(test_no_file),    TEST(test_linked_folders), TEST(test_markers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
