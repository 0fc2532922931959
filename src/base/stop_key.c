/* SPDX-License-Identifier: MIT */
#include "src/base/stop_key.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

struct stop_key {
	uv_poll_t poll;
	int fd; /* our own: polling makes it non-blocking, and standard input is shared */
	void (*pressed)(void *ctx);
	void *ctx;
	struct termios before;
	struct sigaction old_in, old_out;
};

static bool in_foreground(int fd)
{
	return tcgetpgrp(fd) == getpgrp();
}

static void on_input(uv_poll_t *poll, int status, int events)
{
	struct stop_key *k = poll->data;
	char keys[64];
	ssize_t n;

	(void)events;
	if (status < 0) {
		uv_poll_stop(poll);
		return;
	}
	if (!in_foreground(k->fd))
		return; /* "bg": what is typed is the shell's */
	n = read(k->fd, keys, sizeof(keys));
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		uv_poll_stop(poll); /* the terminal is gone */
	for (ssize_t i = 0; i < n; i++)
		if (keys[i] == '\n' || keys[i] == '\r' || keys[i] == 'q' || keys[i] == 'Q') {
			k->pressed(k->ctx);
			return;
		}
}

/* Single keys without echo; Ctrl-C stays what it is. */
static bool open_terminal(struct stop_key *k)
{
	struct termios keys;

	k->fd = open("/dev/tty", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (k->fd < 0)
		return false;
	if (!in_foreground(k->fd) || tcgetattr(k->fd, &k->before) != 0)
		return false;
	keys = k->before;
	keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	keys.c_cc[VMIN] = 1;
	keys.c_cc[VTIME] = 0;
	return tcsetattr(k->fd, TCSANOW, &keys) == 0;
}

struct stop_key *stop_key_start(uv_loop_t *loop, void (*pressed)(void *ctx), void *ctx)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct stop_key *k;

	if (!isatty(STDIN_FILENO))
		return NULL;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	/* Should we be in the background after all, these would stop us. */
	sigaction(SIGTTIN, &ignore, &k->old_in);
	sigaction(SIGTTOU, &ignore, &k->old_out);
	if (!open_terminal(k) || uv_poll_init(loop, &k->poll, k->fd) < 0)
		goto fail;
	k->poll.data = k;
	k->pressed = pressed;
	k->ctx = ctx;
	uv_poll_start(&k->poll, UV_READABLE, on_input);
	return k;
fail:
	sigaction(SIGTTIN, &k->old_in, NULL);
	sigaction(SIGTTOU, &k->old_out, NULL);
	if (k->fd >= 0)
		close(k->fd);
	free(k);
	return NULL;
}

static void on_closed(uv_handle_t *h)
{
	struct stop_key *k = h->data;

	close(k->fd);
	free(k);
}

void stop_key_end(struct stop_key *k)
{
	if (!k)
		return;
	if (in_foreground(k->fd))
		tcsetattr(k->fd, TCSANOW, &k->before);
	sigaction(SIGTTIN, &k->old_in, NULL);
	sigaction(SIGTTOU, &k->old_out, NULL);
	uv_close((uv_handle_t *)&k->poll, on_closed);
}
