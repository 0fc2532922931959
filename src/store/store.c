/* SPDX-License-Identifier: MIT */

/* The store of samples: opening it, its schema, its locks. */

#include "src/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/output.h"
#include "src/store/store_internal.h"

enum {
	BUSY_MS = 20000, /* another run writes: one transaction, not long */
	APPLICATION_ID = 0x44724474, /* "DrDt" */
};

#define DATABASE "samples.db"

/*
 * What brings a store from version i to i + 1, each in one transaction.  Never changed once
 * released: a new version is a new entry.
 *
 * word: names of processes, metrics, methods and findings, each once.  metric_series and
 * method_series hold all that a trend reads.  method_day is what method sums up to, so that weeks
 * are read quickly.
 */
static const char *const migrations[] = {
	"CREATE TABLE word(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);"
	"CREATE TABLE sample(id INTEGER PRIMARY KEY AUTOINCREMENT, time_ms INTEGER NOT NULL,"
	"  target INTEGER NOT NULL REFERENCES word, host TEXT, command_line TEXT, runtime TEXT,"
	"  build TEXT, pid INTEGER NOT NULL, process_start INTEGER NOT NULL,"
	"  duration_ms INTEGER NOT NULL, events INTEGER NOT NULL, lost INTEGER NOT NULL,"
	"  complete INTEGER NOT NULL, own_cpu_us INTEGER NOT NULL, cpu_recorded INTEGER NOT NULL,"
	"  findings INTEGER NOT NULL, trace_file TEXT, trace_bytes INTEGER NOT NULL);"
	"CREATE INDEX sample_time ON sample(time_ms);"
	"CREATE INDEX sample_target ON sample(target, time_ms);"
	"CREATE INDEX sample_trace ON sample(trace_file) WHERE trace_file IS NOT NULL;"
	"CREATE TABLE metric(sample INTEGER NOT NULL REFERENCES sample, name INTEGER NOT NULL"
	"  REFERENCES word, target INTEGER NOT NULL, time_ms INTEGER NOT NULL, value REAL NOT NULL,"
	"  PRIMARY KEY(sample, name)) WITHOUT ROWID;"
	"CREATE INDEX metric_series ON metric(name, target, time_ms, value);"
	"CREATE TABLE method(sample INTEGER NOT NULL REFERENCES sample, name INTEGER NOT NULL"
	"  REFERENCES word, target INTEGER NOT NULL, time_ms INTEGER NOT NULL,"
	"  exclusive REAL NOT NULL, inclusive REAL NOT NULL,"
	"  PRIMARY KEY(sample, name)) WITHOUT ROWID;"
	"CREATE INDEX method_series ON method(name, target, time_ms, exclusive);"
	"CREATE TABLE method_day(day INTEGER NOT NULL, target INTEGER NOT NULL,"
	"  name INTEGER NOT NULL, exclusive REAL NOT NULL, inclusive REAL NOT NULL,"
	"  samples INTEGER NOT NULL, PRIMARY KEY(day, target, name)) WITHOUT ROWID;"
	"CREATE TABLE finding(sample INTEGER NOT NULL REFERENCES sample, place INTEGER NOT NULL,"
	"  id INTEGER NOT NULL REFERENCES word, severity TEXT NOT NULL, title TEXT NOT NULL,"
	"  evidence TEXT NOT NULL, PRIMARY KEY(sample, place)) WITHOUT ROWID;"
	"CREATE TABLE marker(id INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, target INTEGER"
	"  REFERENCES word, label TEXT NOT NULL);",
};

enum { VERSION = sizeof(migrations) / sizeof(migrations[0]) };

bool store_fail(const struct store *s, const char *what)
{
	int code = s->db ? sqlite3_errcode(s->db) : SQLITE_NOMEM;

	log_error("cannot %s the store '%s': %s", what, s->dir,
		  s->db ? sqlite3_errmsg(s->db) : "out of memory");
	if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
		log_advice("move '%s/" DATABASE "' away: the next sample begins a new one", s->dir);
	return false;
}

/* --- statements --- */

static sqlite3_stmt *prepare(struct store *s, const char *sql, const char *kinds, va_list values)
{
	sqlite3_stmt *q;

	if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK) {
		store_fail(s, "use");
		return NULL;
	}
	for (int i = 0; kinds[i]; i++) {
		int status = SQLITE_OK;

		if (kinds[i] == 'i')
			status = sqlite3_bind_int64(q, i + 1, va_arg(values, int64_t));
		else if (kinds[i] == 'd')
			status = sqlite3_bind_double(q, i + 1, va_arg(values, double));
		else
			status = sqlite3_bind_text(q, i + 1, va_arg(values, const char *), -1,
						   SQLITE_STATIC);
		if (status != SQLITE_OK) {
			store_fail(s, "use");
			sqlite3_finalize(q);
			return NULL;
		}
	}
	return q;
}

sqlite3_stmt *store_prepare(struct store *s, const char *sql, const char *kinds, ...)
{
	sqlite3_stmt *q;
	va_list values;

	va_start(values, kinds);
	q = prepare(s, sql, kinds, values);
	va_end(values);
	return q;
}

bool store_finish(struct store *s, sqlite3_stmt *q, int status)
{
	bool ok = status == SQLITE_DONE || status == SQLITE_ROW;

	if (!ok)
		store_fail(s, s->mode == STORE_WRITE ? "use" : "read");
	sqlite3_finalize(q);
	return ok;
}

bool store_run(struct store *s, const char *sql, const char *kinds, ...)
{
	sqlite3_stmt *q;
	va_list values;
	int status;

	va_start(values, kinds);
	q = prepare(s, sql, kinds, values);
	va_end(values);
	if (!q)
		return false;
	do
		status = sqlite3_step(q);
	while (status == SQLITE_ROW);
	return store_finish(s, q, status);
}

bool store_find_word(struct store *s, const char *text, int64_t *ret)
{
	sqlite3_stmt *q = store_prepare(s, "SELECT id FROM word WHERE text = ?1", "t", text);
	int status;

	if (!q)
		return false;
	status = sqlite3_step(q);
	*ret = status == SQLITE_ROW ? sqlite3_column_int64(q, 0) : -1;
	return store_finish(s, q, status);
}

int64_t store_word(struct store *s, const char *text)
{
	int64_t id;

	if (!store_find_word(s, text, &id))
		return 0;
	if (id >= 0)
		return id;
	if (!store_run(s, "INSERT INTO word(text) VALUES(?1)", "t", text))
		return 0;
	return sqlite3_last_insert_rowid(s->db);
}

bool store_begin(struct store *s)
{
	return store_run(s, "BEGIN IMMEDIATE", "");
}

bool store_end(struct store *s, bool ok)
{
	if (ok && store_run(s, "COMMIT", ""))
		return true;
	sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL); /* what failed has been said */
	return false;
}

/* --- the schema --- */

static bool read_number(struct store *s, const char *pragma, int64_t *ret)
{
	sqlite3_stmt *q = store_prepare(s, pragma, "");
	int status;

	if (!q)
		return false;
	status = sqlite3_step(q);
	*ret = status == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
	return store_finish(s, q, status);
}

static bool execute(struct store *s, const char *sql)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK || store_fail(s, "set up");
}

static bool migrate(struct store *s, int64_t *version)
{
	char set[128];
	bool ok;

	if (!store_begin(s))
		return false;
	/* Somebody else may have been quicker. */
	ok = read_number(s, "PRAGMA user_version", version);
	for (; ok && *version < VERSION; ++*version)
		ok = execute(s, migrations[*version]);
	snprintf(set, sizeof(set), "PRAGMA user_version = %d; PRAGMA application_id = %d", VERSION,
		 APPLICATION_ID);
	ok = ok && (*version > VERSION || execute(s, set));
	return store_end(s, ok);
}

static bool check_version(struct store *s)
{
	int64_t version, id, tables;

	if (!read_number(s, "PRAGMA user_version", &version) ||
	    !read_number(s, "PRAGMA application_id", &id) ||
	    !read_number(s, "SELECT count(*) FROM sqlite_master", &tables))
		return false;
	if (tables && id != APPLICATION_ID) {
		log_error("cannot use '%s/" DATABASE "': it is a database of something else",
			  s->dir);
		return false;
	}
	if (version < VERSION && s->mode == STORE_READ) {
		log_error("cannot read the store '%s': %s", s->dir,
			  version ? "it is of an older version" : "there are no samples in it");
		if (version)
			log_advice("the next 'drdotnet-trace sample' brings it up to date");
		return false;
	}
	if (version < VERSION && !migrate(s, &version))
		return false;
	if (version > VERSION) {
		log_error("cannot use the store '%s': it is of version %" PRId64 ", and this "
			  "program knows versions up to %d",
			  s->dir, version, VERSION);
		log_advice("use the newer drdotnet-trace that wrote it, or another --store");
		return false;
	}
	return true;
}

/* --- the folder --- */

static char *join(const char *a, const char *b)
{
	char *path;

	if (asprintf(&path, "%s/%s", a, b) >= 0)
		return path;
	log_error("cannot open the store: out of memory");
	return NULL;
}

char *store_default_dir(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *below, *dir;

	if (state && *state == '/')
		return join(state, "drdotnet-trace");
	if (geteuid() == 0)
		return join("/var/lib", "drdotnet-trace");
	if (!home || *home != '/') {
		log_error("cannot find a place for the store: HOME is not set");
		log_advice("say where: --store DIR");
		return NULL;
	}
	below = join(home, ".local/state");
	dir = below ? join(below, "drdotnet-trace") : NULL;
	free(below);
	return dir;
}

/* Makes the folder and those above it; ours is for the owner only. */
static bool make_dir(const char *path)
{
	char *copy = strdup(path);
	bool ok = copy != NULL;

	for (char *p = copy ? copy + 1 : NULL; ok && (p = strchr(p, '/')); p++) {
		*p = 0;
		ok = mkdir(copy, 0755) == 0 || errno == EEXIST || errno == EROFS || errno == EACCES;
		*p = '/';
	}
	ok = ok && (mkdir(path, 0700) == 0 || errno == EEXIST);
	if (!ok)
		log_error("cannot make the folder '%s': %s", path,
			  copy ? strerror(errno) : "out of memory");
	free(copy);
	return ok;
}

static bool refuse_dir(const char *path, const char *why)
{
	log_error("cannot use the store '%s': %s", path, why);
	return false;
}

/*
 * A folder that others may write to, or that is somebody else's, is no place for traces: they could
 * be made to follow links.
 */
static bool check_dir(const struct store *s, const char *path, const struct stat *st)
{
	if (!S_ISDIR(st->st_mode))
		return refuse_dir(path,
				  S_ISLNK(st->st_mode) ? "it is a link" : "it is not a folder");
	if (s->mode == STORE_WRITE && st->st_uid != geteuid()) {
		refuse_dir(path, "it belongs to another user");
		log_advice("run as that user, or another --store");
		return false;
	}
	if (st->st_mode & (S_IWGRP | S_IWOTH)) {
		refuse_dir(path, "others may write to it");
		log_advice("chmod go-w '%s', or another --store", path);
		return false;
	}
	return true;
}

/* The folder itself may be a link of the user's. */
static bool check_store_dir(const struct store *s)
{
	struct stat st;

	if (stat(s->dir, &st) != 0)
		return refuse_dir(s->dir, strerror(errno));
	return check_dir(s, s->dir, &st);
}

/* Those in it are ours: files are made and removed in them, and nowhere a link leads. */
static bool make_own_dir(const struct store *s, const char *path)
{
	struct stat st;

	if (!make_dir(path))
		return false;
	if (lstat(path, &st) != 0)
		return refuse_dir(path, strerror(errno));
	return check_dir(s, path, &st);
}

/* SQLite gives its other files the mode of this one. */
static bool make_database(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

	if (fd < 0) {
		log_error("cannot open '%s': %s", path, strerror(errno));
		return false;
	}
	close(fd);
	return true;
}

bool store_would_replace(const struct store *s, const char *path)
{
	char *own = join(s->dir, DATABASE);
	bool same = own && path && out_same_file(own, path);

	free(own);
	return same;
}

static bool open_database(struct store *s, const char *path)
{
	int flags = s->mode == STORE_WRITE ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
	char *uri = NULL;
	struct stat st;
	int status;

	if (lstat(path, &st) != 0) {
		log_error("cannot read the store '%s': %s", s->dir,
			  errno == ENOENT ? "there are no samples in it" : strerror(errno));
		return false;
	}
	if (!S_ISREG(st.st_mode)) {
		log_error("cannot use '%s': it is no file", path);
		return false;
	}
	/* A log beside it cannot be made where we may not write; then nobody else can, either. */
	if (s->mode == STORE_READ && access(s->dir, W_OK) != 0 && *path == '/' &&
	    !strpbrk(path, "?#%")) {
		if (asprintf(&uri, "file:%s?immutable=1", path) < 0)
			uri = NULL;
		flags |= SQLITE_OPEN_URI;
	}
	status = sqlite3_open_v2(uri ? uri : path, &s->db, flags, NULL);
	free(uri);
	if (status != SQLITE_OK)
		return store_fail(s, "open");
	sqlite3_busy_timeout(s->db, BUSY_MS);
	sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 0);
	if (s->mode == STORE_WRITE &&
	    !execute(s, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"))
		return false;
	return check_version(s);
}

static bool open_in(struct store *s)
{
	char *path;
	bool ok;

	if (s->mode == STORE_WRITE && !make_dir(s->dir))
		return false;
	if (!check_store_dir(s))
		return false;
	s->traces = join(s->dir, "traces");
	s->locks = join(s->dir, "lock");
	path = join(s->dir, DATABASE);
	ok = s->traces && s->locks && path;
	if (ok && s->mode == STORE_WRITE)
		ok = make_own_dir(s, s->traces) && make_own_dir(s, s->locks) && make_database(path);
	ok = ok && open_database(s, path);
	free(path);
	return ok;
}

struct store *store_open(const char *dir, enum store_mode mode)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s) {
		log_error("cannot open the store: out of memory");
		return NULL;
	}
	s->mode = mode;
	s->dir = dir ? strdup(dir) : store_default_dir();
	if (!s->dir) {
		if (dir)
			log_error("cannot open the store: out of memory");
		return store_close(s);
	}
	return open_in(s) ? s : store_close(s);
}

struct store *store_close(struct store *s)
{
	if (!s)
		return NULL;
	sqlite3_close_v2(s->db);
	free(s->dir);
	free(s->traces);
	free(s->locks);
	free(s);
	return NULL;
}

const char *store_dir(const struct store *s)
{
	return s->dir;
}

const char *store_traces_dir(const struct store *s)
{
	return s->traces;
}

/* --- locks --- */

bool store_lock_target(struct store *s, const char *target, int *ret_fd)
{
	char *name = strdup(target), *path;
	int fd;

	*ret_fd = -1;
	for (char *p = name; p && *p; p++)
		if (*p == '/' || *p == '.')
			*p = '_';
	path = name ? join(s->locks, name) : NULL;
	free(name);
	if (!path)
		return false;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		log_error("cannot open '%s': %s", path, strerror(errno));
		free(path);
		return false;
	}
	free(path);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		*ret_fd = fd;
		return true;
	}
	close(fd);
	return true;
}
