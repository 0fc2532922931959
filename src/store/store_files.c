/* SPDX-License-Identifier: MIT */

/* The files of the store: what is kept, what goes, what dead runs have left. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/store/store_internal.h"

enum { SETTLED_S = 600 /* a trace is named by a sample long before */ };

bool store_is_name(const char *text)
{
	return text && *text && *text != '.' && !strchr(text, '/');
}

/* --- what goes --- */

static bool remove_trace(struct store *s, int64_t id, const char *name)
{
	int fd = open(s->traces, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ok;

	/* The row first: a name without a file would be a promise, a file without one is swept up.
	 */
	ok = store_run(s, "UPDATE sample SET trace_file = NULL, trace_bytes = 0 WHERE id = ?1", "i",
		       id);
	/* Whoever can write to the database shall not make us remove other files. */
	if (ok && fd >= 0 && store_is_name(name) && unlinkat(fd, name, 0) != 0 && errno != ENOENT)
		log_warn("cannot remove '%s/%s': %s", s->traces, name, strerror(errno));
	if (fd >= 0)
		close(fd);
	return ok;
}

struct doomed {
	int64_t id;
	uint64_t bytes;
	char *name;
};

/* The next trace to go: too old, or while there is too much the one without findings, the oldest.
 */
static bool next_doomed(struct store *s, int64_t too_old, bool too_much, struct doomed *ret)
{
	sqlite3_stmt *q = store_prepare(
		s,
		"SELECT id, trace_bytes, trace_file FROM sample WHERE trace_file IS NOT NULL"
		" AND (time_ms < ?1 OR ?2)"
		" ORDER BY time_ms >= ?1, findings > 0, time_ms, id LIMIT 1",
		"ii", too_old, (int64_t)too_much);
	int status;

	*ret = (struct doomed){ 0 };
	if (!q)
		return false;
	status = sqlite3_step(q);
	if (status == SQLITE_ROW) {
		ret->id = sqlite3_column_int64(q, 0);
		ret->bytes = (uint64_t)sqlite3_column_int64(q, 1);
		ret->name = strdup((const char *)sqlite3_column_text(q, 2));
		if (!ret->name)
			log_error("cannot clean up the store: out of memory");
	}
	return store_finish(s, q, status) && (!ret->id || ret->name);
}

static bool total_bytes(struct store *s, uint64_t *ret)
{
	sqlite3_stmt *q = store_prepare(s,
					"SELECT coalesce(sum(trace_bytes), 0) FROM sample WHERE"
					" trace_file IS NOT NULL",
					"");
	int status;

	if (!q)
		return false;
	status = sqlite3_step(q);
	*ret = (uint64_t)sqlite3_column_int64(q, 0);
	return store_finish(s, q, status);
}

static int64_t before(int64_t now_ms, uint64_t keep_ms)
{
	return keep_ms && keep_ms < (uint64_t)INT64_MAX ? now_ms - (int64_t)keep_ms : INT64_MIN;
}

static bool prune_rows(struct store *s, int64_t too_old, size_t *ret)
{
	static const char *const tables[] = { "metric", "method", "finding" };
	bool ok = store_begin(s);
	char sql[160];

	if (!ok)
		return false;
	for (size_t i = 0; ok && i < sizeof(tables) / sizeof(tables[0]); i++) {
		snprintf(
			sql, sizeof(sql),
			"DELETE FROM %s WHERE sample IN (SELECT id FROM sample WHERE time_ms < ?1)",
			tables[i]);
		ok = store_run(s, sql, "i", too_old);
	}
	ok = ok &&
	     store_run(s, "DELETE FROM method_day WHERE day < ?1", "i", too_old / STORE_DAY_MS);
	ok = ok && store_run(s, "DELETE FROM sample WHERE time_ms < ?1", "i", too_old);
	*ret = (size_t)sqlite3_changes64(s->db);
	return store_end(s, ok);
}

bool store_prune(struct store *s, int64_t now_ms, const struct store_limits *limits,
		 struct store_pruned *ret)
{
	int64_t too_old = before(now_ms, limits->keep_ms);
	int64_t rows_too_old = before(now_ms, limits->keep_rows_ms);
	uint64_t total;

	*ret = (struct store_pruned){ 0 };
	if (rows_too_old > too_old)
		too_old = rows_too_old;
	if (!total_bytes(s, &total))
		return false;
	for (;;) {
		struct doomed d;
		bool too_much = limits->keep_bytes && total > limits->keep_bytes;
		bool ok = next_doomed(s, too_old, too_much, &d);

		if (!ok || !d.id)
			return ok && (rows_too_old == INT64_MIN ||
				      prune_rows(s, rows_too_old, &ret->samples));
		ok = remove_trace(s, d.id, d.name);
		free(d.name);
		if (!ok)
			return false;
		ret->traces++;
		ret->bytes += d.bytes;
		total -= d.bytes < total ? d.bytes : total;
	}
}

/* --- what is left over --- */

static bool has_sample(struct store *s, const char *name, bool *ret)
{
	sqlite3_stmt *q = store_prepare(s, "SELECT 1 FROM sample WHERE trace_file = ?1", "t", name);
	int status;

	if (!q)
		return false;
	status = sqlite3_step(q);
	*ret = status == SQLITE_ROW;
	return store_finish(s, q, status);
}

/* What is being written is locked by its writer (trace_file.c).  *ret_fd: to be closed when the
 * file is gone; -1: nothing can be said where files cannot be locked. */
static bool is_being_written(int folder, const char *name, int *ret_fd)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool busy;

	*ret_fd = -1;
	if (fd < 0)
		return false;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		*ret_fd = fd;
		return false;
	}
	busy = errno == EWOULDBLOCK;
	close(fd);
	return busy;
}

/* Names that runs of ours give: X.nettrace.zst, and X.nettrace.zst.abcdef.part while it is written.
 * Other files are somebody's, wherever they come from. */
static bool is_trace_name(const char *name, bool *ret_part)
{
	static const char trace[] = ".nettrace.zst", part[] = ".abcdef.part";
	const char *at = strstr(name, trace), *rest = at ? at + strlen(trace) : "";

	*ret_part = *rest != 0;
	if (!at || *name == '.')
		return false;
	return !*rest || (strlen(rest) == strlen(part) && *rest == '.' &&
			  strcmp(rest + strlen(".abcdef"), ".part") == 0);
}

/* Whether a file that no sample names may go. */
static bool is_left_over(int folder, const char *name, int *ret_fd)
{
	time_t now = time(NULL);
	struct stat st;
	bool part;

	*ret_fd = -1;
	if (!is_trace_name(name, &part) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
	    !S_ISREG(st.st_mode))
		return false;
	if (part) {
		if (is_being_written(folder, name, ret_fd))
			return false;
		if (*ret_fd >= 0)
			return true;
	}
	/* From the future: of a clock that was set back. */
	return st.st_mtime > now || now - st.st_mtime >= SETTLED_S;
}

static bool sweep(struct store *s, DIR *dir, size_t *ret_removed)
{
	struct dirent *e;

	while ((e = readdir(dir))) {
		bool known = true, ok = true;
		int fd;

		if (is_left_over(dirfd(dir), e->d_name, &fd))
			ok = has_sample(s, e->d_name, &known);
		if (ok && !known && unlinkat(dirfd(dir), e->d_name, 0) == 0)
			++*ret_removed;
		if (fd >= 0)
			close(fd);
		if (!ok)
			return false;
	}
	return true;
}

/* Samples whose trace somebody has removed. */
static bool forget_missing(struct store *s)
{
	sqlite3_stmt *q = store_prepare(
		s, "SELECT id, trace_file FROM sample WHERE trace_file IS NOT NULL", "");
	int fd = open(s->traces, O_RDONLY | O_DIRECTORY | O_CLOEXEC), status;
	bool ok = q && fd >= 0;

	if (!q || fd < 0) {
		if (fd < 0)
			log_error("cannot read '%s': %s", s->traces, strerror(errno));
		sqlite3_finalize(q);
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (ok && (status = sqlite3_step(q)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(q, 1);

		if (faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
			ok = store_run(s,
				       "UPDATE sample SET trace_file = NULL, trace_bytes = 0"
				       " WHERE id = ?1",
				       "i", sqlite3_column_int64(q, 0));
	}
	close(fd);
	return store_finish(s, q, ok ? status : SQLITE_DONE) && ok;
}

bool store_repair(struct store *s, size_t *ret_removed)
{
	DIR *dir = opendir(s->traces);
	bool ok;

	*ret_removed = 0;
	if (!dir) {
		log_error("cannot read '%s': %s", s->traces, strerror(errno));
		return false;
	}
	ok = sweep(s, dir, ret_removed);
	closedir(dir);
	return ok && forget_missing(s);
}
