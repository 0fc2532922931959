/* SPDX-License-Identifier: MIT */
#include "src/ipc/ipc_find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MAX_ENVIRON = 4 << 20,
	MAX_THREADS_SEEN = 16, /* the runtime names its first few */
};

/* --- names --- */

static bool parse_number(const char **p, uint64_t *ret)
{
	uint64_t v = 0;
	const char *s = *p;

	if (!isdigit((unsigned char)*s))
		return false;
	for (; isdigit((unsigned char)*s); s++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return false;
	*p = s;
	*ret = v;
	return true;
}

bool ipc_socket_name(const char *name, uint64_t *ret_pid, uint64_t *ret_key)
{
	static const char prefix[] = "dotnet-diagnostic-";
	uint64_t pid, key;

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return false;
	name += sizeof(prefix) - 1;
	if (!parse_number(&name, &pid) || *name++ != '-' || !parse_number(&name, &key) ||
	    strcmp(name, "-socket") != 0)
		return false;
	*ret_pid = pid;
	*ret_key = key;
	return true;
}

int ipc_socket_address(const char *path, struct sockaddr_un *ret, int *ret_fd)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];
	int fd, n;

	*ret_fd = -1;
	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	if (strlen(path) < sizeof(ret->sun_path)) {
		memcpy(ret->sun_path, path, strlen(path) + 1);
		return 0;
	}
	if (!slash || (size_t)(slash - path) >= sizeof(dir))
		return -ENAMETOOLONG;
	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d%s", fd, slash);
	if (n < 0 || (size_t)n >= sizeof(ret->sun_path)) {
		close(fd);
		return -ENAMETOOLONG;
	}
	*ret_fd = fd;
	return 0;
}

/* --- directories, each read once --- */

struct entry {
	uint64_t pid, key;
	int64_t mtime_ns;
	char *name;
};

struct directory {
	char *path;
	int error; /* errno of opening it */
	struct entry *entries;
	size_t count;
};

struct cache {
	struct directory *dirs;
	size_t count;
	bool no_memory;
};

static void *grow(void *items, size_t count, size_t size)
{
	/* Doubles at each power of two. */
	if (count & (count - 1))
		return items;
	return reallocarray(items, count ? count * 2 : 1, size);
}

static bool add_entry(struct directory *d, const struct entry *e)
{
	struct entry *more = grow(d->entries, d->count, sizeof(*more));

	if (!more)
		return false;
	d->entries = more;
	more[d->count] = *e;
	more[d->count].name = strdup(e->name);
	return more[d->count].name && ++d->count;
}

static bool read_directory(struct directory *d)
{
	DIR *dir = opendir(d->path);
	struct dirent *de;
	bool ok = true;

	if (!dir) {
		d->error = errno;
		return true;
	}
	while (ok && (de = readdir(dir)) != NULL) {
		struct entry e = { .name = de->d_name };
		struct stat st;

		if (!ipc_socket_name(de->d_name, &e.pid, &e.key) ||
		    fstatat(dirfd(dir), de->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISSOCK(st.st_mode))
			continue;
		e.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
		ok = add_entry(d, &e);
	}
	closedir(dir);
	return ok;
}

static const struct directory *cache_directory(struct cache *c, const char *path)
{
	struct directory *more, *d;

	for (size_t i = 0; i < c->count; i++)
		if (strcmp(c->dirs[i].path, path) == 0)
			return &c->dirs[i];
	more = grow(c->dirs, c->count, sizeof(*more));
	if (!more)
		goto fail;
	c->dirs = more;
	d = &more[c->count];
	*d = (struct directory){ .path = strdup(path) };
	if (!d->path)
		goto fail;
	c->count++;
	if (!read_directory(d))
		goto fail;
	return d;
fail:
	c->no_memory = true;
	return NULL;
}

static void cache_done(struct cache *c)
{
	for (size_t i = 0; i < c->count; i++) {
		for (size_t k = 0; k < c->dirs[i].count; k++)
			free(c->dirs[i].entries[k].name);
		free(c->dirs[i].entries);
		free(c->dirs[i].path);
	}
	free(c->dirs);
}

/* --- one process --- */

/* Sees other files than we do: another mount namespace, or another root directory. */
static bool other_files(const char *root, int32_t pid)
{
	char theirs[PATH_MAX], ours[PATH_MAX];
	struct stat a, b;

	if (proc_other_namespace(root, pid, "mnt"))
		return true;
	snprintf(theirs, sizeof(theirs), "%s/%" PRId32 "/%s/", root, pid, "root");
	snprintf(ours, sizeof(ours), "%s/self/%s/", root, "root");
	return stat(theirs, &a) == 0 && stat(ours, &b) == 0 &&
	       (a.st_dev != b.st_dev || a.st_ino != b.st_ino);
}

/* Where the process has its sockets, as reachable from here; NULL: out of memory. */
static char *socket_directory(const char *root, struct ipc_target *t)
{
	size_t len = 0;
	char *env = proc_read_file(root, t->pid, "environ", MAX_ENVIRON, &len);
	const char *tmp = env ? proc_environ_find(env, len, "TMPDIR") : NULL;
	char *path = NULL;
	int n, prefix;

	if (!tmp || !*tmp)
		tmp = "/tmp";
	if (*tmp != '/')
		n = asprintf(&path, "%s/%" PRId32 "/cwd/%s", root, t->pid, tmp);
	else if (t->other_mount_ns)
		n = asprintf(&path, "%s/%" PRId32 "/root%s", root, t->pid, tmp);
	else
		n = asprintf(&path, "%s", tmp);
	prefix = n - (int)strlen(tmp);
	free(env);
	if (n < 0)
		return NULL;
	while (n > prefix + 1 && path[n - 1] == '/')
		path[--n] = '\0';
	t->own_dir_bytes = (size_t)(n - prefix);
	return path;
}

static int newest_first(const void *a, const void *b)
{
	const struct ipc_socket *x = a, *y = b;

	return (x->mtime_ns < y->mtime_ns) - (x->mtime_ns > y->mtime_ns);
}

/*
 * The key is the start time, so a file of an earlier process with this number is not taken.  In
 * another time namespace the process read another value than we do; then any key will do.
 */
static bool take_sockets(struct ipc_target *t, const struct directory *d, bool other_time)
{
	for (size_t i = 0; i < d->count; i++) {
		const struct entry *e = &d->entries[i];
		struct ipc_socket *more;

		if (e->pid != (uint64_t)t->ns_pid ||
		    (e->key != t->stat.start_ticks && e->key != 0 && !other_time))
			continue;
		more = grow(t->sockets, t->socket_count, sizeof(*more));
		if (!more)
			return false;
		t->sockets = more;
		more[t->socket_count] = (struct ipc_socket){ NULL, e->key, e->mtime_ns };
		if (asprintf(&more[t->socket_count].path, "%s/%s", d->path, e->name) < 0)
			return false;
		t->socket_count++;
	}
	if (t->socket_count > 1)
		qsort(t->sockets, t->socket_count, sizeof(*t->sockets), newest_first);
	return true;
}

/* Since .NET 5 the runtime names its helper threads; before, only the host's name is a sign. */
static bool looks_like_dotnet(const char *root, const struct ipc_target *t)
{
	char path[PATH_MAX];
	struct dirent *de;
	bool found = strcmp(t->stat.comm, "dotnet") == 0;
	DIR *dir;

	if (found || t->stat.threads < 3)
		return found;
	snprintf(path, sizeof(path), "%s/%" PRId32 "/task", root, t->pid);
	dir = opendir(path);
	for (unsigned seen = 0; dir && !found && seen < MAX_THREADS_SEEN;) {
		char name[320], *comm;

		de = readdir(dir);
		if (!de)
			break;
		if (!isdigit((unsigned char)de->d_name[0]))
			continue;
		seen++;
		snprintf(name, sizeof(name), "task/%s/comm", de->d_name);
		comm = proc_read_file(root, t->pid, name, 64, NULL);
		found = comm && strncmp(comm, ".NET ", 5) == 0;
		free(comm);
	}
	if (dir)
		closedir(dir);
	return found;
}

static enum ipc_why no_socket(const struct ipc_target *t, const struct directory *d)
{
	struct sockaddr_un addr;
	char name[80];

	if (d->error == EACCES || d->error == EPERM)
		return IPC_WHY_NO_ACCESS;
	snprintf(name, sizeof(name), "/dotnet-diagnostic-%" PRId32 "-%" PRIu64 "-socket", t->ns_pid,
		 t->stat.start_ticks);
	if (t->own_dir_bytes + strlen(name) >= sizeof(addr.sun_path))
		return IPC_WHY_TOO_LONG;
	return IPC_WHY_NO_SOCKET;
}

static enum ipc_why look(const char *root, struct cache *c, struct ipc_target *t)
{
	const struct directory *d;

	if (!proc_read_stat(root, t->pid, &t->stat))
		return IPC_WHY_GONE;
	t->uid_known = proc_read_uid(root, t->pid, &t->uid);
	if (t->stat.kernel_thread)
		return IPC_WHY_KERNEL;
	if (t->stat.state == 'Z' || t->stat.state == 'X')
		return IPC_WHY_ENDED;
	t->ns_pid = proc_read_ns_pid(root, t->pid);
	t->other_mount_ns = other_files(root, t->pid);
	t->other_pid_ns = proc_other_namespace(root, t->pid, "pid");
	t->dir = socket_directory(root, t);
	if (!t->dir)
		return IPC_WHY_NO_MEMORY;
	d = cache_directory(c, t->dir);
	if (!d || !take_sockets(t, d, proc_other_namespace(root, t->pid, "time")))
		return IPC_WHY_NO_MEMORY;
	t->dotnet = t->socket_count > 0 || looks_like_dotnet(root, t);
	return t->socket_count > 0 ? IPC_WHY_FOUND : no_socket(t, d);
}

enum ipc_why ipc_find_process(const char *root, int32_t pid, struct ipc_target *ret)
{
	struct cache c = { 0 };

	*ret = (struct ipc_target){ .pid = pid, .ns_pid = pid };
	ret->why = look(root, &c, ret);
	cache_done(&c);
	return ret->why;
}

void ipc_target_done(struct ipc_target *t)
{
	for (size_t i = 0; i < t->socket_count; i++)
		free(t->sockets[i].path);
	free(t->sockets);
	free(t->dir);
	*t = (struct ipc_target){ 0 };
}

/* --- all processes --- */

static int by_pid(const void *a, const void *b)
{
	const struct ipc_target *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* False: out of memory. */
static bool look_and_keep(const char *root, int32_t pid, struct cache *c, struct ipc_found *f)
{
	struct ipc_target t = { .pid = pid, .ns_pid = pid }, *more;

	t.why = look(root, c, &t);
	if (t.why == IPC_WHY_NO_MEMORY) {
		ipc_target_done(&t);
		return false;
	}
	f->looked_at += t.why != IPC_WHY_KERNEL;
	f->skipped += t.why == IPC_WHY_GONE || t.why == IPC_WHY_NO_ACCESS;
	if (!t.dotnet) {
		ipc_target_done(&t);
		return true;
	}
	more = grow(f->targets, f->count, sizeof(*more));
	if (!more) {
		ipc_target_done(&t);
		return false;
	}
	f->targets = more;
	more[f->count++] = t;
	return true;
}

bool ipc_find_all(const char *root, struct ipc_found *ret)
{
	struct cache c = { 0 };
	DIR *dir = opendir(root);
	struct dirent *de;
	bool ok = dir != NULL;

	*ret = (struct ipc_found){ 0 };
	while (ok && (de = readdir(dir)) != NULL) {
		const char *p = de->d_name;
		uint64_t pid;

		if (parse_number(&p, &pid) && *p == '\0' && pid > 0 && pid <= INT32_MAX)
			ok = look_and_keep(root, (int32_t)pid, &c, ret);
	}
	if (dir)
		closedir(dir);
	cache_done(&c);
	if (ret->count > 1)
		qsort(ret->targets, ret->count, sizeof(*ret->targets), by_pid);
	return ok;
}

/* --- sockets without a process --- */

static bool is_claimed(const struct ipc_found *f, const struct entry *e)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct ipc_target *t = &f->targets[i];

		for (size_t k = 0; k < t->socket_count; k++)
			if ((uint64_t)t->ns_pid == e->pid && t->sockets[k].key == e->key)
				return true;
	}
	return false;
}

static bool add_foreign(struct ipc_found *f, const struct directory *d, const struct entry *e)
{
	struct ipc_target t = { .pid = (int32_t)e->pid,
				.ns_pid = (int32_t)e->pid,
				.foreign = true,
				.other_pid_ns = true,
				.dotnet = true };
	struct ipc_target *more;
	struct stat st;

	t.sockets = calloc(1, sizeof(*t.sockets));
	t.dir = strdup(d->path);
	if (!t.sockets || !t.dir || asprintf(&t.sockets[0].path, "%s/%s", d->path, e->name) < 0) {
		if (t.sockets)
			t.sockets[0].path = NULL;
		ipc_target_done(&t);
		return false;
	}
	t.socket_count = 1;
	t.sockets[0].key = e->key;
	t.sockets[0].mtime_ns = e->mtime_ns;
	t.uid_known = lstat(t.sockets[0].path, &st) == 0;
	t.uid = t.uid_known ? st.st_uid : 0;
	more = grow(f->targets, f->count, sizeof(*more));
	if (!more) {
		ipc_target_done(&t);
		return false;
	}
	f->targets = more;
	more[f->count++] = t;
	return true;
}

/* It has started since the processes were looked at. */
static bool is_new(const struct entry *e)
{
	struct proc_stat st;

	return proc_read_stat(PROC_ROOT, (int32_t)e->pid, &st) && st.start_ticks == e->key;
}

/* pid 0: any. */
static bool add_all_foreign(struct ipc_found *f, int32_t pid)
{
	const char *own = getenv("TMPDIR");
	char *paths[] = { strdup("/tmp"), own && *own == '/' ? strdup(own) : NULL };
	struct cache c = { 0 };
	bool ok = paths[0] != NULL;

	for (size_t i = 0; ok && i < 2 && paths[i]; i++) {
		size_t n = strlen(paths[i]);
		const struct directory *d;

		while (n > 1 && paths[i][n - 1] == '/')
			paths[i][--n] = '\0';
		if (i == 1 && strcmp(paths[0], paths[1]) == 0)
			break;
		d = cache_directory(&c, paths[i]);
		ok = d != NULL;
		for (size_t k = 0; ok && k < d->count; k++) {
			const struct entry *e = &d->entries[k];

			if (e->pid > 0 && e->pid <= INT32_MAX &&
			    (pid == 0 || e->pid == (uint64_t)pid) && !is_claimed(f, e) &&
			    !is_new(e))
				ok = add_foreign(f, d, e);
		}
	}
	cache_done(&c);
	free(paths[0]);
	free(paths[1]);
	if (f->count > 1)
		qsort(f->targets, f->count, sizeof(*f->targets), by_pid);
	return ok;
}

bool ipc_find_foreign(struct ipc_found *f)
{
	return add_all_foreign(f, 0);
}

bool ipc_find_foreign_pid(int32_t pid, struct ipc_found *f)
{
	*f = (struct ipc_found){ 0 };
	return add_all_foreign(f, pid);
}

void ipc_found_done(struct ipc_found *f)
{
	for (size_t i = 0; i < f->count; i++)
		ipc_target_done(&f->targets[i]);
	free(f->targets);
	*f = (struct ipc_found){ 0 };
}
