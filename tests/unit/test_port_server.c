/* SPDX-License-Identifier: MIT */
/* Runtimes that connect to us: what they advertise, and sessions over their connections. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "src/collect/port_server.h"
#include "src/ipc/ipc_once.h"
#include "src/ipc/process_info.h"
#include "src/ipc/session.h"
#include "tests/support/fake_runtime.h"

#define STREAM "the stream"
#define REST   " and its rundown"

enum { MAX_PEERS = 4, LIMIT_MS = 20000 };

static const struct fake_script guest = {
	.knows = 6,
	.info_knows = 3,
	.session_id = 0x8000000000000001,
	.stream = (const uint8_t *)STREAM,
	.stream_bytes = sizeof(STREAM) - 1,
	.rest = (const uint8_t *)REST,
	.rest_bytes = sizeof(REST) - 1,
	.cookie = 1,
	.pid = 7,
};

/* A server on a loop, and what came to it. */
struct world {
	uv_loop_t loop;
	uv_timer_t limit;
	char dir[64], path[80];
	struct port_address address;
	struct port_server *server;
	struct port_peer *peers[MAX_PEERS];
	size_t peer_count, gone;
	bool late;
	/* Of a session. */
	struct session *session;
	unsigned starts, ends;
	char got[64];
	size_t got_len;
	struct session_end end;
	bool resume, resumed;
	struct process_info info;
	bool told;
};

static void on_peer(void *ctx, struct port_peer *p)
{
	struct world *w = ctx;

	assert_true(w->peer_count < MAX_PEERS);
	w->peers[w->peer_count++] = p;
}

static void on_gone(void *ctx, struct port_peer *p)
{
	struct world *w = ctx;

	(void)p;
	w->gone++;
}

static const struct port_server_events server_events = { on_peer, on_gone };

static void on_limit(uv_timer_t *timer)
{
	((struct world *)timer->data)->late = true;
}

static struct world *begin(void)
{
	struct world *w = calloc(1, sizeof(*w));
	const char *why;
	int error;

	assert_int_equal(uv_loop_init(&w->loop), 0);
	snprintf(w->dir, sizeof(w->dir), "/tmp/drd-server-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->path, sizeof(w->path), "%s/port", w->dir);
	assert_true(port_address_parse(&w->address, w->path, &why));
	w->server = port_server_open(&w->loop, &w->address, &server_events, w, &error);
	assert_non_null(w->server);
	uv_timer_init(&w->loop, &w->limit);
	w->limit.data = w;
	uv_timer_start(&w->limit, on_limit, LIMIT_MS, 0);
	return w;
}

static void end(struct world *w)
{
	port_server_close(w->server, NULL, NULL);
	uv_close((uv_handle_t *)&w->limit, NULL);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w->loop), 0);
	assert_int_equal(access(w->path, F_OK), -1); /* the socket is gone */
	assert_int_equal(rmdir(w->dir), 0);
	port_address_done(&w->address);
	free(w);
}

/* Runs the loop until the condition holds. */
#define RUN_UNTIL(w, condition)                                                                    \
	do {                                                                                       \
		while (!(condition) && !(w)->late)                                                 \
			uv_run(&(w)->loop, UV_RUN_ONCE);                                           \
		assert_false((w)->late);                                                           \
	} while (0)

static struct fake_runtime *come(struct world *w, const struct fake_script *script)
{
	struct fake_runtime *f = malloc(sizeof(*f));
	struct fake_script s = *script;

	s.dial = w->path;
	fake_runtime_start(f, &w->loop, &s);
	return f;
}

static void leave(struct world *w, struct fake_runtime *f)
{
	fake_runtime_stop(f);
	RUN_UNTIL(w, f->open == 0);
	for (unsigned i = 0; i < 3; i++)
		uv_run(&w->loop, UV_RUN_NOWAIT);
	free(f);
}

/* --- sessions --- */

static void on_resumed(void *ctx, const struct ipc_reply *reply, const struct ipc_conn_end *end)
{
	struct world *w = ctx;

	assert_non_null(reply);
	assert_null(end);
	assert_true(reply->ok);
	w->resumed = true;
}

static void resume(struct world *w, struct port_peer *p)
{
	uint8_t request[IPC_HEADER_BYTES];
	size_t n = ipc_put_plain(request, sizeof(request), IPC_SET_PROCESS, IPC_RESUME_RUNTIME);

	assert_non_null(
		ipc_once_start(&w->loop, NULL, &p->source, request, n, LIMIT_MS, on_resumed, w));
}

static void on_started(void *ctx, unsigned version, unsigned gave_up)
{
	struct world *w = ctx;

	(void)version;
	assert_int_equal(gave_up, 0);
	w->starts++;
	if (w->resume)
		resume(w, w->peers[0]);
}

static void on_data(void *ctx, const uint8_t *bytes, size_t len)
{
	struct world *w = ctx;

	assert_true(w->got_len + len < sizeof(w->got));
	memcpy(w->got + w->got_len, bytes, len);
	w->got_len += len;
	if (w->got_len == sizeof(STREAM) - 1)
		session_stop(w->session);
}

static void on_session_end(void *ctx, const struct session_end *e)
{
	struct world *w = ctx;

	w->ends++;
	w->end = *e;
	session_close(w->session, NULL, NULL);
}

static const struct session_events session_events = { on_started, on_data, on_session_end };
static const struct ipc_provider provider = { "A", 1, 4, NULL, NULL };

static void record(struct world *w, struct port_peer *p, uint64_t timeout_ms)
{
	const struct session_config config = {
		.source = &p->source,
		.collect = { 1, IPC_RUNDOWN_DEFAULT, true, false, &provider, 1 },
		.timeout_ms = timeout_ms,
		.stop_timeout_ms = LIMIT_MS,
	};

	w->session = session_start(&w->loop, &config, &session_events, w);
	assert_non_null(w->session);
	RUN_UNTIL(w, w->ends > 0);
}

static void one_session(void **state)
{
	struct world *w = begin();
	struct fake_runtime *f = come(w, &guest);

	(void)state;
	RUN_UNTIL(w, w->peer_count == 1);
	assert_true(w->peers[0]->told_pid == 7);
	assert_int_equal(w->peers[0]->pid, getpid());
	assert_int_equal(w->peers[0]->cookie[15], 1);
	record(w, w->peers[0], LIMIT_MS);
	assert_int_equal(w->end.why, SESSION_ENDED);
	assert_true(w->end.stop_answered);
	assert_string_equal(w->got, STREAM REST);
	assert_true(f->stopped_id == 0x8000000000000001);
	assert_int_equal(f->command_count, 2); /* each took one connection, and one is idle */
	assert_int_equal(f->dialled, 3);
	assert_int_equal(w->peer_count, 1); /* the same cookie is the same runtime */
	leave(w, f);
	assert_int_equal(w->gone, 1);
	assert_true(w->peers[0]->gone);
	end(w);
}

/* The session is open, and nothing comes until the runtime is told to start. */
static void suspended(void **state)
{
	struct fake_script s = guest;
	struct world *w = begin();
	struct fake_runtime *f;

	(void)state;
	s.suspended = true;
	f = come(w, &s);
	w->resume = true;
	RUN_UNTIL(w, w->peer_count == 1);
	record(w, w->peers[0], LIMIT_MS);
	assert_string_equal(w->got, STREAM REST);
	assert_true(w->resumed);
	assert_int_equal(f->resumes, 1);
	leave(w, f);
	end(w);
}

static void on_told(void *ctx)
{
	((struct world *)ctx)->told = true;
}

static void who_is_there(void **state)
{
	struct world *w = begin();
	struct fake_runtime *f = come(w, &guest);

	(void)state;
	RUN_UNTIL(w, w->peer_count == 1);
	assert_true(process_info_ask_from(&w->loop, &w->peers[0]->source, LIMIT_MS, &w->info,
					  on_told, w));
	RUN_UNTIL(w, w->told);
	assert_true(w->info.answered);
	assert_true(w->info.pid == 7);
	assert_string_equal(w->info.entry_assembly, "E");
	process_info_done(&w->info);
	leave(w, f);
	end(w);
}

/* --- what they advertise --- */

static void nonsense_is_dropped(void **state)
{
	struct fake_script wrong = guest, cut = guest;
	struct world *w = begin();
	struct fake_runtime *a, *b, *c;

	(void)state;
	wrong.wrong_advertise = true;
	cut.advertise_bytes = 33; /* and then it closes */
	a = come(w, &wrong);
	b = come(w, &cut);
	c = come(w, &guest);
	RUN_UNTIL(w, w->peer_count == 1 && port_server_dropped(w->server) == 2);
	assert_true(w->peers[0]->told_pid == 7);
	leave(w, a);
	leave(w, b);
	leave(w, c);
	end(w);
}

/* Somebody who connects and says nothing holds up nobody, and not for long. */
static void silence_is_dropped(void **state)
{
	struct world *w = begin();
	int fd = port_address_connect(&w->address);
	struct fake_runtime *f = come(w, &guest);
	uint64_t begin_ms = uv_now(&w->loop);
	char byte;

	(void)state;
	assert_true(fd >= 0);
	RUN_UNTIL(w, w->peer_count == 1);
	assert_int_equal(port_server_dropped(w->server), 0);
	RUN_UNTIL(w, port_server_dropped(w->server) == 1);
	assert_true(uv_now(&w->loop) - begin_ms < 10000);
	assert_int_equal(read(fd, &byte, 1), 0); /* closed */
	close(fd);
	leave(w, f);
	end(w);
}

static void two_runtimes(void **state)
{
	struct fake_script other = guest;
	struct world *w = begin();
	struct fake_runtime *a = come(w, &guest), *b;

	(void)state;
	other.cookie = 2;
	other.pid = 8;
	b = come(w, &other);
	RUN_UNTIL(w, w->peer_count == 2);
	leave(w, a);
	leave(w, b);
	end(w);
}

/* As after a checkpoint was restored twice. */
static void two_with_one_cookie(void **state)
{
	struct fake_script other = guest;
	struct world *w = begin();
	struct fake_runtime *a = come(w, &guest), *b;

	(void)state;
	RUN_UNTIL(w, w->peer_count == 1);
	other.pid = 8;
	b = come(w, &other);
	RUN_UNTIL(w, w->peer_count == 2);
	record(w, w->peers[1], LIMIT_MS); /* reaches the one that is meant */
	assert_string_equal(w->got, STREAM REST);
	assert_int_equal(a->command_count, 0);
	assert_int_equal(b->command_count, 2);
	leave(w, a);
	leave(w, b);
	end(w);
}

/* The newer connection of one runtime takes the older one's place, which is closed. */
static void newest_connection_counts(void **state)
{
	struct world *w = begin();
	struct fake_runtime *a = come(w, &guest), *b;

	(void)state;
	RUN_UNTIL(w, w->peer_count == 1);
	b = come(w, &guest);
	RUN_UNTIL(w, a->open == 0);
	assert_int_equal(w->peer_count, 1);
	record(w, w->peers[0], LIMIT_MS);
	assert_int_equal(a->command_count, 0);
	assert_int_equal(b->command_count, 2);
	leave(w, a);
	leave(w, b);
	end(w);
}

static void idle_connection_dies(void **state)
{
	struct fake_script s = guest;
	struct world *w = begin();
	struct fake_runtime *f;

	(void)state;
	s.dies = true;
	f = come(w, &s);
	RUN_UNTIL(w, w->gone == 1);
	record(w, w->peers[0], LIMIT_MS);
	assert_int_equal(w->end.why, SESSION_UNREACHABLE);
	assert_int_equal(w->end.error, -ECONNREFUSED);
	assert_int_equal(f->command_count, 0);
	leave(w, f);
	/* It comes back: the same one, and of use again. */
	f = come(w, &guest);
	RUN_UNTIL(w, !w->peers[0]->gone);
	assert_int_equal(w->peer_count, 1);
	w->ends = 0;
	record(w, w->peers[0], LIMIT_MS);
	assert_string_equal(w->got, STREAM REST);
	leave(w, f);
	end(w);
}

/* A file that took the socket's name meanwhile is somebody else's. */
static void only_our_own_socket_is_removed(void **state)
{
	struct world *w = begin();
	struct port_address other = w->address;
	int fd;

	(void)state;
	assert_int_equal(unlink(w->path), 0);
	fd = port_address_listen(&other);
	assert_true(fd >= 0);
	port_server_close(w->server, NULL, NULL);
	assert_int_equal(access(w->path, F_OK), 0);
	close(fd);
	unlink(w->path);
	uv_close((uv_handle_t *)&w->limit, NULL);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w->loop), 0);
	rmdir(w->dir);
	port_address_done(&w->address);
	free(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_session),
		cmocka_unit_test(suspended),
		cmocka_unit_test(who_is_there),
		cmocka_unit_test(nonsense_is_dropped),
		cmocka_unit_test(silence_is_dropped),
		cmocka_unit_test(two_runtimes),
		cmocka_unit_test(two_with_one_cookie),
		cmocka_unit_test(newest_connection_counts),
		cmocka_unit_test(idle_connection_dies),
		cmocka_unit_test(only_our_own_socket_is_removed),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
