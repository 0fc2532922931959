/* SPDX-License-Identifier: MIT */
#include "src/collect/port_server.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	ADVERTISE_MS = 2000, /* it writes at once; a loaded machine may be slow all the same */
	MAX_READING = 256, /* connections that have not advertised yet */
	MAX_PEERS = 65536,
	BREATH_MS = 100, /* out of descriptors */
};

static const uint8_t magic[8] = "ADVR_V1";

struct port_conn {
	struct port_server *server;
	struct port_peer *peer; /* NULL while it is read */
	uv_poll_t poll;
	uv_timer_t timer;
	int fd; /* -1: handed on */
	uint8_t in[IPC_ADVERTISE_BYTES];
	size_t len;
	unsigned handles;
	struct port_conn *next;
};

struct port_server {
	uv_loop_t *loop;
	const struct port_address *address;
	const struct port_server_events *events;
	void *ctx;
	void (*closed)(void *ctx);
	void *closed_ctx;
	int fd;
	dev_t dev; /* of the socket file, so that only our own is removed */
	ino_t ino;
	uv_poll_t poll;
	uv_timer_t breath;
	struct port_peer *peers;
	size_t peer_count, reading, dropped;
	struct port_conn *conns;
	unsigned handles; /* own ones and connections not yet closed */
	bool closing;
};

/* --- memory --- */

static void maybe_release(struct port_server *s)
{
	struct port_peer *p, *next;

	if (s->handles > 0 || !s->closing)
		return;
	for (p = s->peers; p; p = next) {
		next = p->next;
		free(p);
	}
	if (s->closed)
		s->closed(s->closed_ctx);
	free(s);
}

static void on_conn_closed(uv_handle_t *h)
{
	struct port_conn *c = h->data, **at;
	struct port_server *s = c->server;

	if (--c->handles > 0)
		return;
	for (at = &s->conns; *at != c; at = &(*at)->next)
		;
	*at = c->next;
	free(c);
	s->handles--;
	maybe_release(s);
}

/* Lets go of the descriptor too, unless it was handed on. */
static void close_conn(struct port_conn *c)
{
	if (uv_is_closing((uv_handle_t *)&c->timer))
		return;
	if (!c->peer)
		c->server->reading--;
	else if (c->peer->idle == c)
		c->peer->idle = NULL;
	uv_poll_stop(&c->poll);
	uv_close((uv_handle_t *)&c->poll, on_conn_closed);
	uv_close((uv_handle_t *)&c->timer, on_conn_closed);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static void drop(struct port_conn *c)
{
	c->server->dropped++;
	close_conn(c);
}

/* --- peers --- */

/*
 * Takes the idle connection.  What has ended since, or says more than a runtime would, is of no
 * use: the runtime is at its end, or it comes back.
 */
static int take_connection(void *ctx)
{
	struct port_peer *p = ctx;
	struct port_conn *c = p->idle;
	struct pollfd ready;
	int fd;

	if (!c)
		return p->gone ? -ECONNREFUSED : -EAGAIN;
	ready = (struct pollfd){ .fd = c->fd, .events = POLLIN | POLLRDHUP };
	if (poll(&ready, 1, 0) != 0) {
		close_conn(c);
		p->gone = true;
		return -ECONNREFUSED;
	}
	fd = c->fd;
	c->fd = -1;
	close_conn(c);
	return fd;
}

/* Two that have one cookie are told apart by their pids. */
static struct port_peer *find_peer(struct port_server *s, const struct port_peer *like)
{
	struct port_peer *p = s->peers;

	while (p && (memcmp(p->cookie, like->cookie, sizeof(p->cookie)) != 0 ||
		     p->told_pid != like->told_pid || p->pid != like->pid))
		p = p->next;
	return p;
}

static int32_t peer_pid(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0 || cred.pid <= 0)
		return 0;
	return cred.pid;
}

static void on_idle(uv_poll_t *poll, int status, int events)
{
	struct port_conn *c = poll->data;
	struct port_peer *p = c->peer;

	(void)status;
	(void)events;
	close_conn(c);
	p->gone = true;
	if (p->server->events->gone)
		p->server->events->gone(p->server->ctx, p);
}

static struct port_peer *add_peer(struct port_server *s, const struct port_peer *like)
{
	struct port_peer *p = s->peer_count < MAX_PEERS ? malloc(sizeof(*p)) : NULL;

	if (!p)
		return NULL;
	*p = *like;
	p->source = (struct ipc_source){ take_connection, p };
	p->next = s->peers;
	s->peers = p;
	s->peer_count++;
	return p;
}

static void take_advertise(struct port_conn *c)
{
	struct port_server *s = c->server;
	struct port_peer like = { .server = s }, *p;
	bool is_new;

	if (memcmp(c->in, magic, sizeof(magic)) != 0) {
		drop(c);
		return;
	}
	memcpy(like.cookie, c->in + IPC_ADVERTISE_COOKIE_AT, sizeof(like.cookie));
	for (size_t i = 0; i < 8; i++)
		like.told_pid |= (uint64_t)c->in[24 + i] << (8 * i);
	like.pid = s->address->path ? peer_pid(c->fd) : 0;
	p = find_peer(s, &like);
	is_new = !p;
	if (is_new)
		p = add_peer(s, &like);
	if (!p) {
		drop(c);
		return;
	}
	if (p->idle)
		close_conn(p->idle); /* the runtime has given that one up */
	s->reading--;
	c->peer = p;
	p->idle = c;
	p->gone = false;
	uv_timer_stop(&c->timer);
	uv_poll_start(&c->poll, UV_READABLE | UV_DISCONNECT, on_idle);
	if (is_new)
		s->events->peer(s->ctx, p);
}

/* --- connections --- */

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct port_conn *c = poll->data;
	ssize_t n = -1;

	(void)events;
	if (status == 0)
		n = recv(c->fd, c->in + c->len, sizeof(c->in) - c->len, MSG_DONTWAIT);
	if (n < 0 && status == 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop(c);
		return;
	}
	c->len += (size_t)n;
	if (c->len == sizeof(c->in))
		take_advertise(c);
}

static void on_slow(uv_timer_t *timer)
{
	drop(timer->data);
}

/* False: it must be closed by the caller. */
static bool add_conn(struct port_server *s, int fd)
{
	struct port_conn *c = s->reading < MAX_READING ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return false;
	if (uv_poll_init(s->loop, &c->poll, fd) < 0) {
		free(c);
		return false;
	}
	uv_timer_init(s->loop, &c->timer);
	c->server = s;
	c->fd = fd;
	c->poll.data = c;
	c->timer.data = c;
	c->handles = 2;
	c->next = s->conns;
	s->conns = c;
	s->handles++;
	s->reading++;
	uv_poll_start(&c->poll, UV_READABLE, on_readable);
	uv_timer_start(&c->timer, on_slow, ADVERTISE_MS, 0);
	return true;
}

static void on_acceptable(uv_poll_t *poll, int status, int events);

static void on_breath(uv_timer_t *timer)
{
	struct port_server *s = timer->data;

	uv_poll_start(&s->poll, UV_READABLE, on_acceptable);
}

static void on_acceptable(uv_poll_t *poll, int status, int events)
{
	struct port_server *s = poll->data;
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)status;
	(void)events;
	if (fd >= 0 && !add_conn(s, fd)) {
		s->dropped++;
		close(fd);
	} else if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		uv_poll_stop(&s->poll);
		uv_timer_start(&s->breath, on_breath, BREATH_MS, 0);
	}
}

/* --- the whole --- */

struct port_server *port_server_open(uv_loop_t *loop, const struct port_address *address,
				     const struct port_server_events *events, void *ctx,
				     int *reterr)
{
	struct port_server *s = calloc(1, sizeof(*s));
	struct stat st;

	*reterr = -ENOMEM;
	if (!s)
		return NULL;
	s->fd = port_address_listen(address);
	if (s->fd < 0) {
		*reterr = s->fd;
		free(s);
		return NULL;
	}
	if (address->path && lstat(address->path, &st) == 0) {
		s->dev = st.st_dev;
		s->ino = st.st_ino;
	}
	s->loop = loop;
	s->address = address;
	s->events = events;
	s->ctx = ctx;
	uv_poll_init(loop, &s->poll, s->fd);
	uv_timer_init(loop, &s->breath);
	s->poll.data = s;
	s->breath.data = s;
	s->handles = 2;
	uv_poll_start(&s->poll, UV_READABLE, on_acceptable);
	return s;
}

static void on_own_closed(uv_handle_t *h)
{
	struct port_server *s = h->data;

	s->handles--;
	maybe_release(s);
}

void port_server_close(struct port_server *s, void (*closed)(void *ctx), void *ctx)
{
	struct stat st;

	s->closing = true;
	s->closed = closed;
	s->closed_ctx = ctx;
	for (struct port_conn *c = s->conns; c; c = c->next)
		close_conn(c);
	uv_poll_stop(&s->poll);
	uv_close((uv_handle_t *)&s->poll, on_own_closed);
	uv_close((uv_handle_t *)&s->breath, on_own_closed);
	close(s->fd);
	if (s->address->path && lstat(s->address->path, &st) == 0 && st.st_dev == s->dev &&
	    st.st_ino == s->ino)
		unlink(s->address->path);
}

int port_server_fd(const struct port_server *s)
{
	return s->fd;
}

size_t port_server_dropped(const struct port_server *s)
{
	return s->dropped;
}
