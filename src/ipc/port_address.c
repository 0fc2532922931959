/* SPDX-License-Identifier: MIT */
#include "src/ipc/port_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "src/ipc/ipc_find.h"

enum { BACKLOG = 128, MAX_PORT = 65535, LOCK_MS = 2000, LOCK_AGAIN_MS = 10 };

static const char unix_prefix[] = "uds:";

/* --- reading it --- */

static bool parse_tag(struct port_address *a, const char *tag, size_t len, unsigned *seen)
{
	static const struct {
		const char *name;
		unsigned kind; /* one of each kind may be given */
		bool connect, suspend;
	} tags[] = {
		{ "listen", 1, false, false },
		{ "connect", 1, true, false },
		{ "suspend", 2, false, true },
		{ "nosuspend", 2, false, false },
	};

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		if (strlen(tags[i].name) != len || strncasecmp(tags[i].name, tag, len) != 0)
			continue;
		if (*seen & tags[i].kind)
			return false;
		*seen |= tags[i].kind;
		if (tags[i].kind == 1)
			a->connect = tags[i].connect;
		else
			a->suspend = tags[i].suspend;
		return true;
	}
	return false;
}

/* "HOST:PORT", where the host has no slash. */
static bool looks_like_tcp(const char *text)
{
	const char *colon = strrchr(text, ':');

	return colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1) &&
	       !strchr(text, '/');
}

static bool parse_host(struct port_address *a, const char *host, in_port_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&a->tcp;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&a->tcp;
	size_t n = strlen(host);
	char inner[64];

	if (n > 2 && host[0] == '[' && host[n - 1] == ']' && n - 2 < sizeof(inner)) {
		memcpy(inner, host + 1, n - 2);
		inner[n - 2] = '\0';
		v6->sin6_family = AF_INET6;
		v6->sin6_port = port;
		a->tcp_bytes = sizeof(*v6);
		return inet_pton(AF_INET6, inner, &v6->sin6_addr) == 1;
	}
	v4->sin_family = AF_INET;
	v4->sin_port = port;
	a->tcp_bytes = sizeof(*v4);
	if (strcasecmp(host, "localhost") == 0)
		host = "127.0.0.1";
	else if (strcmp(host, "*") == 0 && !a->connect)
		host = "0.0.0.0";
	return inet_pton(AF_INET, host, &v4->sin_addr) == 1;
}

static const char *parse_tcp(struct port_address *a, char *text)
{
	char *colon = strrchr(text, ':');
	unsigned long port = strtoul(colon + 1, NULL, 10);

	if (strlen(text) >= sizeof(a->text))
		return "the address is too long";
	snprintf(a->text, sizeof(a->text), "%s", text);
	if (port == 0 || port > MAX_PORT)
		return "the number of the port must be 1 to 65535";
	*colon = '\0';
	if (!parse_host(a, text, htons((in_port_t)port)))
		return "the host must be a number or 'localhost'";
	return NULL;
}

static const char *parse_path(struct port_address *a, const char *text)
{
	char *cwd;
	int n;

	if (*text == '/') {
		a->path = strdup(text);
	} else {
		cwd = getcwd(NULL, 0);
		if (!cwd)
			return "the working directory is not known: give the whole path";
		n = asprintf(&a->path, "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, text);
		free(cwd);
		if (n < 0)
			a->path = NULL;
	}
	if (!a->path)
		return "out of memory";
	if (!a->connect && strlen(a->path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return "the path is longer than a socket's can be (107 bytes)";
	return NULL;
}

bool port_address_parse(struct port_address *ret, const char *text, const char **reterr)
{
	char *copy = strdup(text), *comma;
	const char *why = NULL, *address = copy;
	unsigned seen = 0;

	*ret = (struct port_address){ .suspend = true };
	if (!copy) {
		*reterr = "out of memory";
		return false;
	}
	comma = strchr(copy, ',');
	while (comma && !why) {
		char *tag = comma + 1;
		size_t len = strcspn(tag, ",");

		*comma = '\0';
		if (!parse_tag(ret, tag, len, &seen))
			why = "only 'listen' or 'connect', and 'suspend' or 'nosuspend' may follow "
			      "the address";
		comma = tag[len] ? tag + len : NULL;
	}
	if (strncasecmp(address, unix_prefix, sizeof(unix_prefix) - 1) == 0)
		address += sizeof(unix_prefix) - 1;
	if (!why && !*address)
		why = "the address is missing";
	if (!why && address == copy && looks_like_tcp(copy))
		why = parse_tcp(ret, copy);
	else if (!why)
		why = parse_path(ret, address);
	free(copy);
	*reterr = why;
	return !why;
}

void port_address_done(struct port_address *a)
{
	free(a->path);
	a->path = NULL;
}

const char *port_address_name(const struct port_address *a)
{
	return a->path ? a->path : a->text;
}

/* --- using it --- */

static int open_socket(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

int port_address_connect(void *ctx)
{
	const struct port_address *a = ctx;
	struct sockaddr_un addr;
	int error = 0, dir = -1, fd;

	if (a->path)
		error = ipc_socket_address(a->path, &addr, &dir);
	if (error < 0)
		return error;
	fd = open_socket(a->path ? AF_UNIX : a->tcp.ss_family);
	if (fd >= 0 && connect(fd, a->path ? (const void *)&addr : &a->tcp,
			       a->path ? sizeof(addr) : a->tcp_bytes) != 0)
		error = -errno;
	if (dir >= 0)
		close(dir);
	if (fd < 0 || error == 0 || error == -EINPROGRESS)
		return fd;
	close(fd);
	return error;
}

/* Whether the file is a socket that nobody serves: left behind by somebody who was killed. */
static bool is_stale(const struct port_address *a)
{
	struct stat st;
	int fd;

	if (lstat(a->path, &st) != 0 || !S_ISSOCK(st.st_mode))
		return false;
	fd = port_address_connect((void *)(uintptr_t)a);
	if (fd >= 0)
		close(fd);
	return fd == -ECONNREFUSED;
}

static int bind_path(int fd, const struct port_address *a)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	mode_t mask;
	int error = 0;

	memcpy(addr.sun_path, a->path, strlen(a->path) + 1);
	mask = umask(0177); /* for its owner, as the runtime's own */
	if (bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) != 0)
		error = -errno;
	if (error == -EADDRINUSE && is_stale(a) && unlink(a->path) == 0)
		error = bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 ? 0 : -errno;
	umask(mask);
	return error;
}

static int bind_tcp(int fd, const struct port_address *a)
{
	int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return bind(fd, (const struct sockaddr *)&a->tcp, a->tcp_bytes) == 0 ? 0 : -errno;
}

/*
 * Between bind() and listen() a socket looks left behind, so two of us that start at one time would
 * remove each other's: one after the other then.  -1: there is no lock to be had, which is no
 * reason to fail.
 */
static int lock_directory(const struct port_address *a)
{
	const struct timespec pause = { .tv_nsec = LOCK_AGAIN_MS * 1000000 };
	char *path = a->path ? strdup(a->path) : NULL, *slash = path ? strrchr(path, '/') : NULL;
	int fd = -1;

	if (slash) {
		slash[slash == path] = '\0';
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	free(path);
	for (int i = 0; fd >= 0 && i < LOCK_MS / LOCK_AGAIN_MS; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
			break;
		nanosleep(&pause, NULL);
	}
	return fd;
}

static int listen_locked(const struct port_address *a)
{
	int fd = open_socket(a->path ? AF_UNIX : a->tcp.ss_family), error;

	if (fd < 0)
		return fd;
	error = a->path ? bind_path(fd, a) : bind_tcp(fd, a);
	if (error == 0 && listen(fd, BACKLOG) != 0)
		error = -errno;
	if (error == 0)
		return fd;
	close(fd);
	return error;
}

int port_address_listen(const struct port_address *a)
{
	int lock = lock_directory(a), fd = listen_locked(a);

	if (lock >= 0)
		close(lock);
	return fd;
}
