/* SPDX-License-Identifier: MIT */
#include "src/base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/base/log.h"

enum { READER_MS = 2000, READER_LOOK_MS = 20 };

static struct out *out_new(int fd)
{
	struct out *o = malloc(sizeof(*o));

	if (!o) {
		log_error("cannot write: out of memory");
		return NULL;
	}
	o->fd = fd;
	o->error = 0;
	o->colour = false;
	o->path = o->aside = NULL;
	o->force = o->nameless = false;
	o->used = 0;
	return o;
}

static struct out *open_stdout(void)
{
	struct out *o = out_new(STDOUT_FILENO);
	const char *no_colour = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (o)
		o->colour = isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && term &&
			    strcmp(term, "dumb") != 0;
	return o;
}

static void out_free(struct out *o)
{
	free(o->path);
	free(o->aside);
	free(o);
}

/* mkostemp() makes files for the owner only; this one shall be as open() would have made it. */
static int make_aside(const char *path, char **ret_name)
{
	mode_t mask;
	int fd;

	if (asprintf(ret_name, "%s.XXXXXX", path) < 0) {
		*ret_name = NULL;
		errno = ENOMEM;
		return -1;
	}
	fd = mkostemp(*ret_name, O_CLOEXEC);
	if (fd < 0)
		return -1;
	mask = umask(0);
	umask(mask);
	if (fchmod(fd, 0666 & ~mask) < 0) {
		close(fd);
		unlink(*ret_name);
		return -1;
	}
	return fd;
}

/* The name of an open file that has none, or none any more. */
static void fd_name(int fd, char buf[48])
{
	snprintf(buf, 48, "/proc/self/fd/%d", fd);
}

/* A file without a name goes with us, however we end; -1: not on this file system, or no /proc. */
static int make_nameless(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	char name[48];
	struct stat st;
	int fd;

	if (!folder)
		return -1;
	if (lstat(path, &st) != 0 &&
	    errno != ENOENT) { /* a name that cannot be, as it is too long */
		free(folder);
		return -1;
	}
	fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	free(folder);
	if (fd < 0)
		return -1;
	fd_name(fd, name);
	if (access(name, F_OK) == 0)
		return fd;
	close(fd);
	return -1;
}

/*
 * A plain open() of a pipe that nobody reads would wait for ever, with signals that are only
 * noted meanwhile.
 */
int out_open_in_place(const char *path)
{
	const struct timespec pause = { .tv_nsec = READER_LOOK_MS * 1000000 };
	int fd = -1;

	for (unsigned n = 0; fd < 0 && n < READER_MS / READER_LOOK_MS; n++) {
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (fd < 0 && errno != ENXIO)
			return -1;
		if (fd < 0)
			nanosleep(&pause, NULL);
	}
	if (fd >= 0)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	else
		errno = ENXIO;
	return fd;
}

static struct out *open_file(const char *path, bool force)
{
	struct out *o = out_new(-1);
	struct stat st;

	if (!o)
		return NULL;
	o->path = strdup(path);
	o->force = force;
	if (!o->path) {
		log_error("cannot write '%s': out of memory", path);
		goto fail;
	}
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		o->fd = out_open_in_place(path);
	} else if (!force && lstat(path, &st) == 0) {
		log_error("cannot write '%s': it exists", path);
		log_advice("give another name, or --force to replace it");
		goto fail;
	} else {
		o->fd = make_nameless(path);
		o->nameless = o->fd >= 0;
		if (!o->nameless)
			o->fd = make_aside(path, &o->aside);
	}
	if (o->fd < 0) {
		log_error("cannot write '%s': %s", path, strerror(errno));
		goto fail;
	}
	return o;
fail:
	out_free(o);
	return NULL;
}

/* The folder a name is in, resolved, and the name's last part; "" when there is no such folder. */
static const char *split_name(const char *path, char folder[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	char *cut = slash ? strndup(path, (size_t)(slash - path) + 1) : NULL;

	if ((slash && !cut) || !realpath(cut ? cut : ".", folder))
		folder[0] = '\0';
	free(cut);
	return slash ? slash + 1 : path;
}

bool out_same_file(const char *a, const char *b)
{
	char folder_a[PATH_MAX], folder_b[PATH_MAX];
	struct stat x, y;
	const char *name_a, *name_b;

	if (strcmp(a, "-") == 0 || strcmp(b, "-") == 0)
		return false;
	if (stat(a, &x) == 0 && stat(b, &y) == 0)
		return x.st_dev == y.st_dev && x.st_ino == y.st_ino && S_ISREG(x.st_mode);
	name_a = split_name(a, folder_a);
	name_b = split_name(b, folder_b);
	return strcmp(folder_a, folder_b) == 0 && strcmp(name_a, name_b) == 0;
}

static bool stdout_was_closed;

void out_note_closed_stdout(void)
{
	stdout_was_closed = true;
}

bool out_stdout_is_open(void)
{
	return !stdout_was_closed;
}

struct out *out_open(const char *path, bool force)
{
	if (!path || strcmp(path, "-") == 0)
		return open_stdout();
	return open_file(path, force);
}

/* A name beside the file's that nobody has; the caller frees it.  NULL: no memory. */
static char *link_beside(const struct out *o, const char *fd)
{
	struct timespec now;
	char *name = NULL;
	int error = -1;

	clock_gettime(CLOCK_MONOTONIC, &now);
	for (unsigned n = 0; error < 0 && n < 100; n++) {
		free(name);
		if (asprintf(&name, "%s.%x%lx", o->path, n, (unsigned long)now.tv_nsec) < 0)
			return NULL;
		error = linkat(AT_FDCWD, fd, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
		if (error < 0 && errno != EEXIST)
			break;
	}
	if (error == 0)
		return name;
	free(name);
	return NULL;
}

/* Before it is closed: what a close would say is known by then. */
static int publish_nameless(struct out *o)
{
	int twin = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
	char fd[48];

	if (twin < 0 || close(twin) < 0)
		return -1;
	fd_name(o->fd, fd);
	if (linkat(AT_FDCWD, fd, AT_FDCWD, o->path, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	if (errno != EEXIST || !o->force)
		return -1;
	o->aside = link_beside(o, fd);
	return o->aside ? rename(o->aside, o->path) : -1;
}

/* Gives the file its name.  Without force the name must be new even now. */
static int publish(struct out *o)
{
	if (o->force)
		return rename(o->aside, o->path);
	if (link(o->aside, o->path) == 0)
		return unlink(o->aside);
	if (errno == EEXIST || access(o->path, F_OK) == 0) {
		errno = EEXIST;
		return -1;
	}
	return rename(o->aside, o->path); /* a file system without hard links */
}

int out_close(struct out *o, int code)
{
	const char *name = o->path ? o->path : "standard output";

	out_flush(o);
	if (o->nameless && !o->error && publish_nameless(o) < 0)
		o->error = errno;
	if (o->path && close(o->fd) < 0 && !o->error)
		o->error = errno;
	if (o->aside && !o->nameless && !o->error && publish(o) < 0)
		o->error = errno;
	if (o->error && o->aside)
		unlink(o->aside);
	if (o->error && o->error != EPIPE) {
		log_error("cannot write '%s': %s", name, strerror(o->error));
		code = 1;
	}
	out_free(o);
	return code;
}

void out_discard(struct out *o)
{
	if (o->path)
		close(o->fd);
	if (o->aside)
		unlink(o->aside);
	out_free(o);
}

/* After a failure everything is taken and dropped. */
static void put(struct out *o, const char *data, size_t len)
{
	while (len && !o->error) {
		ssize_t n = write(o->fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			o->error = errno;
			return;
		}
		data += n;
		len -= (size_t)n;
	}
}

void out_flush(struct out *o)
{
	put(o, o->buffer, o->used);
	o->used = 0;
}

void out_write(struct out *o, const void *data, size_t len)
{
	if (len > sizeof(o->buffer) - o->used)
		out_flush(o);
	if (len > sizeof(o->buffer)) {
		put(o, data, len);
		return;
	}
	memcpy(o->buffer + o->used, data, len);
	o->used += len;
}

void out_text(struct out *o, const char *text)
{
	out_write(o, text, strlen(text));
}

void out_printf(struct out *o, const char *fmt, ...)
{
	char small[512];
	char *big = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(small)) {
		out_write(o, small, (size_t)n);
		return;
	}
	va_start(ap, fmt);
	if (n >= 0)
		n = vasprintf(&big, fmt, ap);
	va_end(ap);
	if (n >= 0)
		out_write(o, big, (size_t)n);
	else if (!o->error)
		o->error = ENOMEM;
	if (n >= 0)
		free(big);
}

void out_uint(struct out *o, uint64_t v)
{
	char buf[20];
	size_t at = sizeof(buf);

	for (; v > UINT32_MAX; v /= 10)
		buf[--at] = (char)('0' + v % 10);
	for (uint32_t w = (uint32_t)v;; w /= 10) { /* much quicker */
		buf[--at] = (char)('0' + w % 10);
		if (w < 10)
			break;
	}
	out_write(o, buf + at, sizeof(buf) - at);
}

void out_int(struct out *o, int64_t v)
{
	if (v < 0)
		out_char(o, '-');
	out_uint(o, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void out_hex(struct out *o, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++) {
		out_char(o, "0123456789abcdef"[p[i] >> 4]);
		out_char(o, "0123456789abcdef"[p[i] & 15]);
	}
}

void out_fixed(struct out *o, double v, unsigned decimals)
{
	char buf[64];
	size_t n =
		(size_t)snprintf(buf, sizeof(buf), "%.*f", decimals > 15 ? 15 : (int)decimals, v);

	if (strchr(buf, '.')) {
		while (buf[n - 1] == '0')
			n--;
		n -= buf[n - 1] == '.';
	}
	if (n == 2 && memcmp(buf, "-0", 2) == 0)
		out_char(o, '0');
	else
		out_write(o, buf, n);
}

void out_ms(struct out *o, int64_t ns)
{
	uint64_t abs_ns = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	uint64_t rest = abs_ns % 1000000;
	char digits[7];
	size_t n = 7;

	if (ns < 0)
		out_char(o, '-');
	out_uint(o, abs_ns / 1000000);
	if (!rest)
		return;
	digits[0] = '.';
	for (size_t i = 6; i > 0; i--, rest /= 10)
		digits[i] = (char)('0' + rest % 10);
	while (digits[n - 1] == '0')
		n--;
	out_write(o, digits, n);
}
