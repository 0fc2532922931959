/* SPDX-License-Identifier: MIT */
#include "src/process/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/collect/providers.h"
#include "src/ipc/process_info.h"
#include "src/ipc/process_list.h"
#include "src/ipc/session.h"

enum {
	/* A stream begins at once, unless the runtime waits at its start. */
	STOP_MS = 5000,
	MAX_SESSIONS = 64,
	SIGNALS = 3,
};

struct probe {
	const struct doctor_settings *s;
	const struct ipc_target *t;
	struct doctor_report *r;
	uv_loop_t loop;
	uv_signal_t signals[SIGNALS];
	struct process_info info;
	struct session *session;
	struct session_end end;
	bool asked, began;
};

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* --- does it answer? --- */

static void on_asked(void *ctx)
{
	struct probe *p = ctx;

	p->asked = true;
}

/* Which of its sockets answers; false: none. */
static bool ask(struct probe *p, size_t *ret_socket)
{
	for (size_t i = 0; i < p->t->socket_count; i++) {
		p->asked = false;
		process_info_done(&p->info);
		if (!process_info_ask(&p->loop, p->t->sockets[i].path, p->s->ask_ms, &p->info,
				      on_asked, p))
			return false;
		while (!p->asked)
			uv_run(&p->loop, UV_RUN_ONCE);
		*ret_socket = i;
		if (p->info.answered || p->info.end.error != -ECONNREFUSED)
			return p->info.answered;
	}
	return false;
}

static void say_no_answer(struct probe *p)
{
	const struct ipc_conn_end *end = &p->info.end;
	struct process_hold hold;
	char text[256];

	if (end->why == IPC_CONN_CONNECT && end->error == -ECONNREFUSED) {
		doctor_add(p->r, "answer", DOCTOR_FAILED,
			   "its socket is dead: nobody listens there any more");
		doctor_advise(p->r, "it is ending, or its runtime gave up its diagnostics: start "
				    "it again");
	} else if (end->why == IPC_CONN_CONNECT &&
		   (end->error == -EACCES || end->error == -EPERM)) {
		process_whose(p->t, text, sizeof(text));
		doctor_add(p->r, "answer", DOCTOR_FAILED, "its socket may not be used: %s", text);
		doctor_advise(p->r, "run as root, or as the user of the process");
	} else if (end->why == IPC_CONN_TIMEOUT && process_is_held(p->s->root, p->t, &hold)) {
		doctor_add(p->r, "answer", DOCTOR_FAILED, "%s", hold.why);
		doctor_advise(p->r, "%s", hold.advice);
	} else if (end->why == IPC_CONN_TIMEOUT) {
		doctor_add(p->r, "answer", DOCTOR_FAILED,
			   "it does not answer within %" PRIu64 " ms", p->s->ask_ms);
		doctor_advise(p->r, "it is overloaded, or another tool blocks its diagnostics: end "
				    "that tool, or wait longer (--timeout)");
	} else if (end->why == IPC_CONN_PROTOCOL) {
		doctor_add(p->r, "answer", DOCTOR_FAILED, "%s", ipc_status_text(end->status));
		doctor_advise(p->r, "another program listens on this socket: find out which, with "
				    "ss -xlp");
	} else {
		doctor_add(p->r, "answer", DOCTOR_FAILED, "the connection broke: %s",
			   uv_strerror(end->error));
		doctor_advise(p->r, "it may be ending: try again");
	}
}

static void say_answer(struct probe *p, double took_ms)
{
	const char *version = p->info.runtime_version;

	if (version)
		doctor_add(p->r, "answer", DOCTOR_OK, "its runtime, %.*s, answered in %.1f ms",
			   (int)strcspn(version, "+@ "), version, took_ms);
	else
		doctor_add(p->r, "answer", DOCTOR_OK,
			   "its runtime answered in %.1f ms, and is too old to tell its version",
			   took_ms);
}

/* --- can a session be opened? --- */

static void on_signal(uv_signal_t *signal, int number)
{
	struct probe *p = signal->data;

	(void)number;
	p->r->interrupted = true;
	if (p->session)
		session_stop(p->session);
}

static void on_started(void *ctx, unsigned version, unsigned gave_up)
{
	struct probe *p = ctx;

	(void)version;
	(void)gave_up;
	p->began = true;
	session_stop(p->session);
}

static void on_data(void *ctx, const uint8_t *bytes, size_t len)
{
	(void)ctx; /* taken off it, and of no interest */
	(void)bytes;
	(void)len;
}

static void on_session_closed(void *ctx)
{
	struct probe *p = ctx;

	for (size_t i = 0; i < SIGNALS; i++)
		uv_close((uv_handle_t *)&p->signals[i], NULL);
}

static void on_end(void *ctx, const struct session_end *end)
{
	struct probe *p = ctx;
	struct session *session = p->session;

	p->end = *end;
	p->session = NULL;
	session_close(session, on_session_closed, p);
}

static const struct session_events session_events = {
	.started = on_started,
	.data = on_data,
	.end = on_end,
};

/* A session in which nothing is recorded, without rundown. */
static bool try_session(struct probe *p, const char *socket)
{
	static const struct ipc_provider provider = { .name = PROVIDER_RUNTIME, .level = 1 };
	static const int numbers[SIGNALS] = { SIGINT, SIGTERM, SIGHUP };
	const struct session_config config = {
		.sockets = &socket,
		.socket_count = 1,
		.collect = {
			.buffer_mb = 1,
			.rundown_keywords = IPC_RUNDOWN_NONE,
			.stacks = true,
			.providers = &provider,
			.provider_count = 1,
		},
		.timeout_ms = p->s->ask_ms,
		.stop_timeout_ms = STOP_MS,
	};

	for (size_t i = 0; i < SIGNALS; i++) {
		uv_signal_init(&p->loop, &p->signals[i]);
		p->signals[i].data = p;
		uv_signal_start(&p->signals[i], on_signal, numbers[i]);
	}
	p->session = session_start(&p->loop, &config, &session_events, p);
	if (!p->session)
		on_session_closed(p);
	uv_run(&p->loop, UV_RUN_DEFAULT);
	return p->end.why != SESSION_NO_MEMORY;
}

/* Connections to the socket that stand open on the side of the runtime; -1: cannot be seen. */
static int count_connections(const struct probe *p)
{
	char *text = proc_read_file(p->s->root, p->t->pid, "net/unix", 16 << 20, NULL);
	char name[96];
	int count = text ? 0 : -1;

	snprintf(name, sizeof(name), "/dotnet-diagnostic-%" PRId32 "-", p->t->ns_pid);
	for (char *line = text; line && *line;) {
		size_t n = strcspn(line, "\n");
		char *next = line + n + (line[n] == '\n');
		unsigned state = 0;

		line[n] = '\0';
		/* Num RefCount Protocol Flags Type St Inode Path; 03: connected */
		if (strstr(line, name) && sscanf(line, "%*s %*s %*s %*s %*s %x", &state) == 1)
			count += state == 3;
		line = next;
	}
	free(text);
	return count;
}

static void say_refused(struct probe *p)
{
	int open = count_connections(p);
	char why[256], many[64] = "";

	session_describe(&p->end, why, sizeof(why));
	if (open > 0)
		snprintf(many, sizeof(many), "; %d connections to it stand open", open);
	doctor_add(p->r, "session", DOCTOR_FAILED, "it opens no session: %s%s", why, many);
	if (p->end.hresult == IPC_H_FAIL && open < MAX_SESSIONS)
		doctor_advise(p->r,
			      "if it is not out of memory, %d sessions are open, which is "
			      "all: end other tools",
			      MAX_SESSIONS);
	else if (p->end.hresult == IPC_H_FAIL)
		doctor_advise(p->r, "%d sessions are open, which is all: end other tools",
			      MAX_SESSIONS);
	else
		doctor_advise(p->r, "if it is just starting, try again in a moment");
}

static void say_suspended(struct probe *p, bool told, const char *sign)
{
	doctor_add(p->r, "suspended", DOCTOR_WARNING, "%s: it %s", sign,
		   told ? "was started suspended, and waits to be resumed"
			: "is suspended at its start, or still starting");
	doctor_advise(p->r, "'drdotnet-trace process resume -p %" PRId32 "' lets it go on",
		      p->t->pid);
}

static void say_session(struct probe *p, bool told)
{
	struct process_hold hold;
	char why[256];

	if (p->r->interrupted) {
		doctor_add(p->r, "session", DOCTOR_UNKNOWN, "interrupted");
	} else if (p->end.why != SESSION_ENDED && process_is_held(p->s->root, p->t, &hold)) {
		doctor_add(p->r, "session", DOCTOR_FAILED, "%s", hold.why);
		doctor_advise(p->r, "%s", hold.advice);
	} else if (p->end.why == SESSION_REFUSED) {
		say_refused(p);
	} else if (p->end.why == SESSION_SILENT) {
		say_suspended(p, told, "it opens a session and sends nothing");
	} else if (p->began && p->end.why == SESSION_ENDED) {
		doctor_add(p->r, "session", DOCTOR_OK,
			   "a session can be opened, and was ended again");
	} else {
		session_describe(&p->end, why, sizeof(why));
		doctor_add(p->r, "session", DOCTOR_FAILED, "a session %s: %s",
			   p->began ? "was opened and did not end well" : "cannot be opened", why);
		doctor_advise(p->r, "it may be ending or overloaded: try again");
	}
}

void doctor_check_runtime(const struct doctor_settings *s, const struct ipc_target *t, bool waits,
			  bool told, struct doctor_report *r)
{
	struct probe p = { .s = s, .t = t, .r = r, .end.why = SESSION_NO_MEMORY };
	double begin = now_ms();
	size_t socket = 0;

	if (uv_loop_init(&p.loop) < 0) {
		doctor_add(r, "answer", DOCTOR_UNKNOWN, "out of memory");
		return;
	}
	if (!ask(&p, &socket)) {
		say_no_answer(&p);
	} else {
		say_answer(&p, now_ms() - begin);
		if (waits)
			say_suspended(&p, told, "it has not run any managed code yet");
		else if (s->session && !try_session(&p, t->sockets[socket].path))
			doctor_add(r, "session", DOCTOR_UNKNOWN, "out of memory");
		else if (s->session)
			say_session(&p, told);
	}
	process_info_done(&p.info);
	uv_loop_close(&p.loop);
}
