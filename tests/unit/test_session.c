/* SPDX-License-Identifier: MIT */
/* Sessions, and questions about a process, against a runtime that does as it is told. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/ipc/process_info.h"
#include "src/ipc/session.h"
#include "tests/support/fake_runtime.h"

static const uint8_t stream[] = "the stream";
static const uint8_t rest[] = " and its rundown";
#define WHOLE "the stream and its rundown"

static const struct ipc_provider provider = { "A", 1, 4, NULL, NULL };

static const struct fake_script proper = {
	.knows = 6,
	.session_id = 0x1122334455667788,
	.stream = stream,
	.stream_bytes = sizeof(stream) - 1,
	.rest = rest,
	.rest_bytes = sizeof(rest) - 1,
};

/* What a run is to do, and what came of it. */
struct run {
	struct ipc_collect collect;
	uint64_t timeout_ms, stop_timeout_ms;
	const char *first_socket; /* tried before the fake's; NULL: none */
	bool stop_at_start, stop_at_data, pause_first;
	uint64_t stop_after_ms; /* timed, whatever was seen */
	uint64_t resume_after_ms; /* a suspended runtime goes on, told by somebody else */

	uv_loop_t loop;
	struct fake_runtime fake;
	struct session *session;
	uv_timer_t timer;
	unsigned version, gave_up, starts, ends;
	uint8_t *got;
	size_t got_len;
	struct session_end end;
	uint64_t took_ms;
};

static void on_closed(void *ctx)
{
	struct run *r = ctx;

	fake_runtime_stop(&r->fake);
}

static void on_started(void *ctx, unsigned version, unsigned gave_up)
{
	struct run *r = ctx;

	r->starts++;
	r->version = version;
	r->gave_up = gave_up;
	if (r->pause_first)
		session_pause(r->session);
	if (r->stop_at_start)
		session_stop(r->session);
}

static void on_data(void *ctx, const uint8_t *bytes, size_t len)
{
	struct run *r = ctx;

	assert_true(len > 0);
	r->got = realloc(r->got, r->got_len + len);
	memcpy(r->got + r->got_len, bytes, len);
	r->got_len += len;
	if (r->stop_at_data) {
		session_stop(r->session);
		session_stop(r->session); /* changes nothing */
		session_pause(r->session); /* nor does this, now */
	}
}

static void on_end(void *ctx, const struct session_end *end)
{
	struct run *r = ctx;

	r->ends++;
	r->end = *end;
	if (!uv_is_closing((uv_handle_t *)&r->timer))
		uv_close((uv_handle_t *)&r->timer, NULL);
	session_close(r->session, on_closed, r);
}

static const struct session_events session_events = { on_started, on_data, on_end };

static void on_timer(uv_timer_t *timer)
{
	struct run *r = timer->data;

	if (r->resume_after_ms)
		fake_runtime_resume(&r->fake);
	else
		session_stop(r->session);
}

static void run(struct run *r, const struct fake_script *script)
{
	const char *sockets[2];
	struct session_config config = { 0 };
	uint64_t begin;

	if (r->collect.provider_count == 0)
		r->collect =
			(struct ipc_collect){ 1, IPC_RUNDOWN_DEFAULT, true, false, &provider, 1 };
	assert_int_equal(uv_loop_init(&r->loop), 0);
	fake_runtime_start(&r->fake, &r->loop, script);
	if (r->first_socket)
		sockets[config.socket_count++] = r->first_socket;
	sockets[config.socket_count++] = r->fake.path;
	config.sockets = sockets;
	config.collect = r->collect;
	config.timeout_ms = r->timeout_ms ? r->timeout_ms : 5000;
	config.stop_timeout_ms = r->stop_timeout_ms ? r->stop_timeout_ms : 5000;
	uv_timer_init(&r->loop, &r->timer);
	r->timer.data = r;
	begin = uv_hrtime();
	r->session = session_start(&r->loop, &config, &session_events, r);
	assert_non_null(r->session);
	if (r->stop_after_ms || r->resume_after_ms)
		uv_timer_start(&r->timer, on_timer, r->stop_after_ms + r->resume_after_ms, 0);
	uv_run(&r->loop, UV_RUN_DEFAULT);
	r->took_ms = (uv_hrtime() - begin) / 1000000;
	assert_int_equal(r->ends, 1);
	assert_true(r->starts <= 1);
	assert_int_equal(r->end.started, r->starts == 1);
	/* Nothing is left open on either side. */
	assert_int_equal(r->fake.open, 0);
	assert_int_equal(uv_loop_close(&r->loop), 0);
}

static void check_got(struct run *r, const char *want)
{
	assert_int_equal(r->got_len, strlen(want));
	if (r->got_len)
		assert_memory_equal(r->got, want, r->got_len);
	free(r->got);
}

static void clean_stop(void **state)
{
	struct run r = { .stop_at_data = true };

	(void)state;
	run(&r, &proper);
	check_got(&r, WHOLE);
	assert_int_equal(r.end.why, SESSION_ENDED);
	assert_true(r.end.stop_sent && r.end.stop_answered);
	assert_int_equal(r.version, 2);
	assert_int_equal(r.gave_up, 0);
	assert_true(r.fake.stopped_id == 0x1122334455667788);
	assert_int_equal(r.fake.command_count, 2);
	assert_false(r.fake.stream_lost);
}

/* Answer, stream and header may arrive cut or joined in any way. */
static void every_chunk_size(void **state)
{
	(void)state;
	for (size_t chunk = 1; chunk < 60; chunk++) {
		struct fake_script s = proper;
		struct run r = { .stop_at_data = true };

		s.chunk = chunk;
		run(&r, &s);
		check_got(&r, WHOLE);
		assert_int_equal(r.end.why, SESSION_ENDED);
		assert_true(r.end.stop_answered);
	}
}

static void session_id_with_the_top_bit(void **state)
{
	static const uint64_t ids[] = { 0x8000000000000001, UINT64_MAX, 0 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct fake_script s = proper;
		struct run r = { .stop_at_data = true };

		s.session_id = ids[i];
		run(&r, &s);
		check_got(&r, WHOLE);
		assert_true(r.fake.stopped_id == ids[i]);
	}
}

static void older_runtimes(void **state)
{
	static const uint32_t ids[] = { 1 };
	static const struct ipc_event_filter filter = { true, ids, 1 };
	static const struct ipc_provider filtered = { "A", 1, 4, NULL, &filter };
	static const unsigned want[7] = { 0, 1, 2, 2, 4, 5, 6 };

	(void)state;
	for (unsigned knows = 0; knows <= 6; knows++) {
		struct fake_script s = proper;
		struct run r = { .stop_at_data = true };

		r.collect = (struct ipc_collect){ 1, 1, true, true, &filtered, 1 };
		s.knows = knows;
		run(&r, &s);
		if (knows == 0) {
			assert_int_equal(r.end.why, SESSION_REFUSED);
			assert_int_equal(r.end.hresult, IPC_H_UNKNOWN_COMMAND);
			check_got(&r, "");
			continue;
		}
		check_got(&r, WHOLE);
		assert_int_equal(r.version, want[knows]);
		assert_int_equal(r.gave_up, (knows < 6 ? IPC_GAVE_UP_BLOCK : 0) |
						    (knows < 5 ? IPC_GAVE_UP_FILTER : 0) |
						    (knows < 4 ? IPC_GAVE_UP_RUNDOWN_KEYWORDS : 0));
	}
}

static void refusals(void **state)
{
	static const size_t sizes[] = { 4, 8 };
	char text[200];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct fake_script s = proper;
		struct run r = { 0 };

		s.error = IPC_H_FAIL;
		s.error_bytes = sizes[i];
		run(&r, &s);
		check_got(&r, "");
		assert_int_equal(r.end.why, SESSION_REFUSED);
		assert_int_equal(r.end.hresult, IPC_H_FAIL);
		session_describe(&r.end, text, sizeof(text));
		assert_non_null(strstr(text, "64 sessions"));
		assert_non_null(strstr(text, "0x80004005"));
	}
}

static void a_runtime_that_is_still_starting(void **state)
{
	struct fake_script s = proper;
	struct run r = { .stop_at_data = true }, late = { .timeout_ms = 100 };

	(void)state;
	s.starting = 3;
	run(&r, &s);
	check_got(&r, WHOLE);
	assert_int_equal(r.fake.accepted, 5);
	s.starting = 1000;
	run(&late, &s);
	assert_int_equal(late.end.why, SESSION_REFUSED);
	assert_int_equal(late.end.hresult, IPC_H_NOT_YET_AVAILABLE);
	assert_in_range(late.took_ms, 50, 3000);

	/* Then it is so busy that the last try is not answered any more: what it said holds. */
	late = (struct run){ .timeout_ms = 200 };
	s.starting = 2;
	s.then_silent = true;
	run(&late, &s);
	assert_int_equal(late.end.why, SESSION_REFUSED);
	assert_int_equal(late.end.hresult, IPC_H_NOT_YET_AVAILABLE);
}

static void silence_ends_with_the_timeout(void **state)
{
	struct fake_script s = proper;
	struct run r = { .timeout_ms = 100 };

	(void)state;
	s.silent = true;
	run(&r, &s);
	assert_int_equal(r.end.why, SESSION_TIMEOUT);
	assert_in_range(r.took_ms, 90, 3000);
}

/* A listener whose queue is full, as of a runtime that hangs: that counts as well. */
static void full_queue_ends_with_the_timeout(void **state)
{
	char dir[] = "/tmp/drd-full-XXXXXX", path[64];
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), filler[8];
	struct run r = { .timeout_ms = 150, .first_socket = path };

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/port", dir);
	memcpy(addr.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 0), 0);
	for (size_t i = 0; i < 8; i++) {
		filler[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)!connect(filler[i], (struct sockaddr *)&addr, sizeof(addr));
	}
	run(&r, &proper);
	assert_int_equal(r.end.why, SESSION_TIMEOUT);
	assert_in_range(r.took_ms, 140, 3000);
	for (size_t i = 0; i < 8; i++)
		close(filler[i]);
	close(listener);
	unlink(path);
	rmdir(dir);
}

static void dead_sockets_are_passed_over(void **state)
{
	char dir[] = "/tmp/drd-dead-XXXXXX", path[64];
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int dead = socket(AF_UNIX, SOCK_STREAM, 0);
	struct run r = { .stop_at_data = true, .first_socket = path };
	struct run gone = { .stop_at_data = true, .first_socket = "/tmp/drd-no-such/port" };

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/port", dir);
	memcpy(addr.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(dead, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(dead);
	run(&r, &proper);
	check_got(&r, WHOLE);
	unlink(path);
	rmdir(dir);
	run(&gone, &proper);
	check_got(&gone, WHOLE);
}

static void nobody_listens(void **state)
{
	static const char *const nowhere[] = { "/tmp/drd-no-such/port" };
	struct session_config config = {
		.sockets = nowhere,
		.socket_count = 1,
		.collect = { 1, 0, true, false, &provider, 1 },
		.timeout_ms = 1000,
	};
	struct run r = { 0 };

	(void)state;
	assert_int_equal(uv_loop_init(&r.loop), 0);
	fake_runtime_start(&r.fake, &r.loop, &proper); /* not asked */
	uv_timer_init(&r.loop, &r.timer);
	r.session = session_start(&r.loop, &config, &session_events, &r);
	uv_run(&r.loop, UV_RUN_DEFAULT);
	assert_int_equal(r.end.why, SESSION_UNREACHABLE);
	assert_int_equal(r.end.error, -ENOENT);
	assert_int_equal(uv_loop_close(&r.loop), 0);
}

static void answers_that_are_none(void **state)
{
	struct fake_script s = proper;
	struct run r = { 0 };

	(void)state;
	s.wrong_magic = true;
	run(&r, &s);
	assert_int_equal(r.end.why, SESSION_PROTOCOL);
	assert_int_equal(r.end.status, IPC_EMAGIC);
	/* The connection closes at every byte of the answer. */
	s.wrong_magic = false;
	s.cut_answer = true;
	for (s.cut_at = 0; s.cut_at < 28; s.cut_at++) {
		struct run cut = { .timeout_ms = s.cut_at == 0 ? 100 : 5000 };

		run(&cut, &s);
		assert_int_equal(cut.end.why, s.cut_at == 0 ? SESSION_TIMEOUT : SESSION_BROKEN);
		check_got(&cut, "");
	}
}

static void the_target_ends_first(void **state)
{
	struct fake_script s = proper;
	struct run r = { 0 };

	(void)state;
	s.closes = true;
	run(&r, &s);
	check_got(&r, "the stream");
	assert_int_equal(r.end.why, SESSION_ENDED);
	assert_false(r.end.stop_sent);
	assert_true(r.took_ms < 3000);
}

static void the_target_ends_while_stopping(void **state)
{
	struct fake_script s = proper;
	struct run r = { .stop_at_start = true };

	(void)state;
	s.closes = true;
	s.stop = FAKE_STOP_IGNORED;
	run(&r, &s);
	check_got(&r, "the stream");
	assert_int_equal(r.end.why, SESSION_ENDED);
	assert_false(r.end.stop_answered);
	assert_true(r.took_ms < 3000);
}

static void stop_answered_first(void **state)
{
	struct fake_script s = proper;
	struct run r = { .stop_at_data = true };

	(void)state;
	s.stop = FAKE_STOP_ANSWER_FIRST;
	run(&r, &s);
	check_got(&r, WHOLE);
	assert_int_equal(r.end.why, SESSION_ENDED);
	assert_true(r.end.stop_answered);
}

static void stop_never_answered(void **state)
{
	struct fake_script s = proper;
	struct run r = { .stop_at_data = true };

	(void)state;
	s.stop = FAKE_STOP_NO_ANSWER;
	run(&r, &s);
	check_got(&r, WHOLE);
	assert_int_equal(r.end.why, SESSION_ENDED);
	assert_false(r.end.stop_answered);
	assert_in_range(r.took_ms, 900, 4000); /* a second for the answer, no more */
}

static void stop_answered_with_an_error(void **state)
{
	struct fake_script s = proper;
	struct run r = { .stop_at_data = true };

	(void)state;
	s.stop = FAKE_STOP_ERROR;
	run(&r, &s);
	check_got(&r, WHOLE);
	assert_int_equal(r.end.why, SESSION_ENDED);
}

static void streams_that_do_not_end(void **state)
{
	static const enum fake_stop kinds[] = { FAKE_STOP_IGNORED, FAKE_STOP_ENDLESS,
						FAKE_STOP_HANG_UP };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct fake_script s = proper;
		struct run r = { .stop_at_data = true, .stop_timeout_ms = 200 };

		s.stop = kinds[i];
		run(&r, &s);
		assert_int_equal(r.end.why, SESSION_STOP_TIMEOUT);
		assert_in_range(r.took_ms, 190, 3000);
		free(r.got);
	}
}

/*
 * The runtime answers the stop only when all is written, and what it still has to write is more
 * than a socket holds: whoever stops reading while stopping waits for ever.
 */
static void a_long_rundown_is_drained(void **state)
{
	enum { LONG = 5 << 20 };
	struct fake_script s = proper;
	struct run r = { .stop_at_data = true };
	uint8_t *much = malloc(LONG);

	(void)state;
	for (size_t i = 0; i < LONG; i++)
		much[i] = (uint8_t)(i * 7 + (i >> 8));
	s.rest = much;
	s.rest_bytes = LONG;
	run(&r, &s);
	assert_int_equal(r.end.why, SESSION_ENDED);
	assert_true(r.end.stop_answered);
	assert_int_equal(r.got_len, sizeof(stream) - 1 + LONG);
	assert_memory_equal(r.got + sizeof(stream) - 1, much, LONG);
	free(r.got);
	free(much);
}

/* Paused when the stop comes: reading goes on. */
static void a_stop_resumes_reading(void **state)
{
	struct run r = { .pause_first = true, .stop_after_ms = 50 };

	(void)state;
	run(&r, &proper);
	check_got(&r, WHOLE);
	assert_int_equal(r.end.why, SESSION_ENDED);
}

static int late_listener;

static void on_listen(uv_timer_t *timer)
{
	(void)timer;
	assert_int_equal(listen(late_listener, 4), 0);
}

/* A runtime binds its socket, and listens a moment later; nobody answers here, in either case. */
static enum session_why ask_late(bool listens)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char dir[] = "/tmp/drd-late-XXXXXX";
	const char *sockets[] = { addr.sun_path };
	const struct session_config config = {
		.sockets = sockets,
		.socket_count = 1,
		.collect = { 1, IPC_RUNDOWN_DEFAULT, true, false, &provider, 1 },
		.timeout_ms = 1000,
		.stop_timeout_ms = 1000,
	};
	struct run r = { 0 };

	assert_non_null(mkdtemp(dir));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/port", dir);
	late_listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(late_listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(uv_loop_init(&r.loop), 0);
	fake_runtime_start(&r.fake, &r.loop, &proper);
	uv_timer_init(&r.loop, &r.timer);
	r.timer.data = &r;
	if (listens)
		uv_timer_start(&r.timer, on_listen, 50, 0);
	r.session = session_start(&r.loop, &config, &session_events, &r);
	assert_non_null(r.session);
	uv_run(&r.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&r.loop), 0);
	close(late_listener);
	unlink(addr.sun_path);
	rmdir(dir);
	return r.end.why;
}

static void a_socket_that_does_not_listen_yet(void **state)
{
	(void)state;
	assert_int_equal(ask_late(true), SESSION_TIMEOUT); /* it was connected */
	assert_int_equal(ask_late(false), SESSION_UNREACHABLE);
}

static void cancelled_before_it_began(void **state)
{
	struct fake_script s = proper;
	struct run r = { .stop_after_ms = 50 };

	(void)state;
	s.silent = true;
	run(&r, &s);
	assert_int_equal(r.end.why, SESSION_CANCELLED);
	assert_in_range(r.took_ms, 40, 3000);
}

static void requests_that_cannot_be_sent(void **state)
{
	static const struct ipc_provider bad = { "\xff", 1, 4, NULL, NULL };
	struct run r = { .collect = { 1, 0, true, false, &bad, 1 } };

	(void)state;
	run(&r, &proper);
	assert_int_equal(r.end.why, SESSION_BAD_REQUEST);
	assert_int_equal(r.fake.accepted, 0);
}

static bool was_stopped(const struct run *r)
{
	bool stopped = false;

	for (size_t i = 0; i < r->fake.command_count; i++)
		stopped = stopped ||
			  r->fake.commands[i] == (IPC_SET_EVENTPIPE << 8 | IPC_STOP_TRACING);
	return stopped;
}

/*
 * The suspended runtime: the answer comes, the stream does not.  It is never told to stop, as it
 * would crash later; only the connection is closed.
 */
static void a_silent_session_is_not_stopped(void **state)
{
	struct fake_script s = proper;
	struct run r = { .stop_after_ms = 50, .timeout_ms = 20000, .stop_timeout_ms = 300 };
	struct run at_once = { .stop_at_start = true, .stop_timeout_ms = 100 };

	(void)state;
	s.suspended = true;
	run(&r, &s);
	check_got(&r, "");
	assert_int_equal(r.end.why, SESSION_SILENT);
	assert_true(r.end.started);
	assert_false(r.end.stop_sent);
	assert_false(was_stopped(&r));
	assert_in_range(r.took_ms, 340, 3000);
	run(&at_once, &s);
	assert_int_equal(at_once.end.why, SESSION_SILENT);
	assert_false(was_stopped(&at_once));
}

/* What was asked for too early is done when the stream begins. */
static void a_stop_waits_for_the_first_bytes(void **state)
{
	struct fake_script s = proper;
	struct run r = { .stop_at_start = true, .resume_after_ms = 100 };

	(void)state;
	s.suspended = true;
	run(&r, &s);
	check_got(&r, WHOLE);
	assert_int_equal(r.end.why, SESSION_ENDED);
	assert_true(was_stopped(&r));
	assert_in_range(r.took_ms, 90, 3000);
}

static void every_end_has_words(void **state)
{
	struct session_end end = { .error = -EPIPE, .status = IPC_EMAGIC };
	char text[200];

	(void)state;
	for (end.why = SESSION_ENDED; end.why <= SESSION_BAD_REQUEST; end.why++) {
		text[0] = '\0';
		session_describe(&end, text, sizeof(text));
		assert_true(strlen(text) > 5);
	}
}

/* --- process_info.c --- */

static void note_done(void *ctx)
{
	struct run *r = ctx;

	r->ends++;
	fake_runtime_stop(&r->fake);
}

static void who_are_you(void **state)
{
	(void)state;
	for (unsigned knows = 0; knows <= 3; knows++) {
		struct fake_script s = { .info_knows = knows, .chunk = 1 };
		struct process_info info;
		struct run r = { 0 };

		assert_int_equal(uv_loop_init(&r.loop), 0);
		fake_runtime_start(&r.fake, &r.loop, &s);
		assert_true(process_info_ask(&r.loop, r.fake.path, 5000, &info, note_done, &r));
		uv_run(&r.loop, UV_RUN_DEFAULT);
		assert_int_equal(uv_loop_close(&r.loop), 0);
		assert_int_equal(r.ends, 1);
		assert_true(info.answered);
		assert_int_equal(info.version, knows);
		assert_int_equal(r.fake.accepted, knows == 0 ? 3 : 4 - knows);
		if (knows >= 1)
			assert_string_equal(info.arch, "x64");
		if (knows >= 2) {
			assert_string_equal(info.entry_assembly, "E");
			assert_string_equal(info.runtime_version, "8");
		} else {
			assert_null(info.entry_assembly);
		}
		assert_null(info.os);
		process_info_done(&info);
	}
}

static void no_answer_who_they_are(void **state)
{
	struct fake_script s = { .silent = true };
	struct process_info info;
	struct run r = { 0 };

	(void)state;
	assert_int_equal(uv_loop_init(&r.loop), 0);
	fake_runtime_start(&r.fake, &r.loop, &s);
	assert_true(process_info_ask(&r.loop, r.fake.path, 50, &info, note_done, &r));
	uv_run(&r.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&r.loop), 0);
	assert_false(info.answered);
	assert_int_equal(info.end.why, IPC_CONN_TIMEOUT);
	process_info_done(&info);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean_stop),
		cmocka_unit_test(every_chunk_size),
		cmocka_unit_test(session_id_with_the_top_bit),
		cmocka_unit_test(older_runtimes),
		cmocka_unit_test(refusals),
		cmocka_unit_test(a_runtime_that_is_still_starting),
		cmocka_unit_test(silence_ends_with_the_timeout),
		cmocka_unit_test(full_queue_ends_with_the_timeout),
		cmocka_unit_test(dead_sockets_are_passed_over),
		cmocka_unit_test(a_socket_that_does_not_listen_yet),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(answers_that_are_none),
		cmocka_unit_test(the_target_ends_first),
		cmocka_unit_test(the_target_ends_while_stopping),
		cmocka_unit_test(stop_answered_first),
		cmocka_unit_test(stop_never_answered),
		cmocka_unit_test(stop_answered_with_an_error),
		cmocka_unit_test(streams_that_do_not_end),
		cmocka_unit_test(a_long_rundown_is_drained),
		cmocka_unit_test(a_stop_resumes_reading),
		cmocka_unit_test(cancelled_before_it_began),
		cmocka_unit_test(requests_that_cannot_be_sent),
		cmocka_unit_test(a_silent_session_is_not_stopped),
		cmocka_unit_test(a_stop_waits_for_the_first_bytes),
		cmocka_unit_test(every_end_has_words),
		cmocka_unit_test(who_are_you),
		cmocka_unit_test(no_answer_who_they_are),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
