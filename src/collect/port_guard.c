/* SPDX-License-Identifier: MIT */
#include "src/collect/port_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "src/ipc/ipc_wire.h"

enum {
	ADVERTISE_MS = 250,
	GRACE_MS = 2000, /* a runtime looks for its port at least twice a second */
	MAX_GUESTS = 128,
	OVER = 0, /* instead of a pid */
};

struct port_guard {
	int fd; /* our end of a pair of sockets */
	pid_t pid;
};

/* --- in the other process --- */

/* A runtime that was told to go on comes back, and is content with a connection that stays. */
struct guest {
	uint8_t cookie[IPC_COOKIE_BYTES];
	int fd;
};

struct guard {
	int owner, listening, command; /* command: descriptor of the process; -1 none */
	struct guest guests[MAX_GUESTS];
	size_t guest_count;
	uint8_t resume[IPC_HEADER_BYTES];
	size_t resume_bytes;
};

static int64_t now_ms(void)
{
	return (int64_t)(uv_hrtime() / 1000000);
}

static bool read_advertise(int fd, uint8_t *buf)
{
	int64_t end = now_ms() + ADVERTISE_MS, left;
	size_t len = 0;

	while (len < IPC_ADVERTISE_BYTES && (left = end - now_ms()) > 0) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (poll(&ready, 1, (int)left) <= 0)
			continue;
		n = recv(fd, buf + len, IPC_ADVERTISE_BYTES - len, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		if (n > 0)
			len += (size_t)n;
	}
	return len == IPC_ADVERTISE_BYTES;
}

/* False: it was not seen before. */
static bool keep(struct guard *g, const uint8_t *cookie, int fd)
{
	struct guest *guest;

	for (size_t i = 0; i < g->guest_count; i++) {
		guest = &g->guests[i];
		if (memcmp(guest->cookie, cookie, sizeof(guest->cookie)) != 0)
			continue;
		close(guest->fd);
		guest->fd = fd;
		return true;
	}
	if (g->guest_count < MAX_GUESTS) {
		guest = &g->guests[g->guest_count++];
	} else {
		guest = &g->guests[0]; /* it will be told once more, which does no harm */
		close(guest->fd);
	}
	memcpy(guest->cookie, cookie, sizeof(guest->cookie));
	guest->fd = fd;
	return false;
}

static void welcome(struct guard *g)
{
	uint8_t advertise[IPC_ADVERTISE_BYTES];
	int fd = accept4(g->listening, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (!read_advertise(fd, advertise))
		close(fd);
	else if (!keep(g, advertise + IPC_ADVERTISE_COOKIE_AT, fd))
		(void)!send(fd, g->resume, g->resume_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void serve(struct guard *g)
{
	int64_t end = g->command < 0 ? now_ms() + GRACE_MS : 0;

	for (;;) {
		struct pollfd ready[] = {
			{ .fd = g->listening, .events = POLLIN },
			{ .fd = g->command, .events = POLLIN }, /* it has ended */
		};
		int64_t left = end ? end - now_ms() : -1;

		if (end && left <= 0)
			return;
		if (poll(ready, 2, (int)left) < 0 && errno != EINTR)
			return;
		if (ready[1].revents) {
			g->command = -1;
			end = now_ms() + GRACE_MS; /* what it has started may be about to come */
		}
		if (ready[0].revents & (POLLERR | POLLNVAL))
			return;
		if (ready[0].revents)
			welcome(g);
	}
}

/* Until its owner says that all is over (true), or is gone. */
static bool wait_for_owner(struct guard *g)
{
	for (;;) {
		int32_t pid;
		ssize_t n = recv(g->owner, &pid, sizeof(pid), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n != (ssize_t)sizeof(pid))
			return false;
		if (pid == OVER)
			return true;
		if (g->command >= 0)
			close(g->command);
		g->command = (int)syscall(SYS_pidfd_open, pid, 0u);
	}
}

/* Whatever else its owner has open, pipes above all, must not stay open in here. */
static void close_others(int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd < 3; fd++)
		if (fd != a && fd != b)
			dup2(null, fd);
	for (int fd = 3; fd < low; fd++)
		close(fd);
	for (int fd = low < 3 ? 3 : low + 1; fd < high; fd++)
		close(fd);
	close_range((unsigned)(high < 3 ? 3 : high + 1), ~0u, 0);
}

static _Noreturn void guard(int owner, int listening, const struct port_address *address,
			    const char *directory)
{
	static struct guard g;

	g.owner = owner;
	g.listening = listening;
	g.command = -1;
	setsid(); /* what ends the group of its owner shall not end it */
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	(void)!chdir("/");
	prctl(PR_SET_NAME, "drdotnet-guard");
	close_others(owner, listening);
	g.resume_bytes =
		ipc_put_plain(g.resume, sizeof(g.resume), IPC_SET_PROCESS, IPC_RESUME_RUNTIME);
	if (wait_for_owner(&g))
		_exit(0);
	serve(&g);
	if (address->path)
		unlink(address->path);
	if (directory)
		rmdir(directory);
	_exit(0);
}

/* --- in ours --- */

struct port_guard *port_guard_start(int listening, const struct port_address *address,
				    const char *directory, int *reterr)
{
	struct port_guard *g = calloc(1, sizeof(*g));
	int ends[2];

	*reterr = -ENOMEM;
	if (!g)
		return NULL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
		*reterr = -errno;
		free(g);
		return NULL;
	}
	g->fd = ends[0];
	g->pid = fork();
	if (g->pid == 0) {
		close(ends[0]);
		guard(ends[1], listening, address, directory);
	}
	*reterr = g->pid < 0 ? -errno : 0;
	close(ends[1]);
	if (g->pid > 0)
		return g;
	close(ends[0]);
	free(g);
	return NULL;
}

static void tell(struct port_guard *g, int32_t what)
{
	(void)!send(g->fd, &what, sizeof(what), MSG_NOSIGNAL);
}

void port_guard_watch(struct port_guard *g, int32_t pid)
{
	tell(g, pid);
}

void port_guard_end(struct port_guard *g)
{
	if (!g)
		return;
	tell(g, OVER);
	close(g->fd);
	while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(g);
}
