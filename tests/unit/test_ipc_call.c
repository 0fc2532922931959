/* SPDX-License-Identifier: MIT */
/* Questions with one answer, against a runtime that does as it is told. */
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
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/ipc/ipc_call.h"
#include "src/process/process_action.h"
#include "tests/support/fake_runtime.h"

enum { ENVIRONMENT = 0x0402, PERF_OFF = 0x0406, PATIENCE_MS = 20000 };

/* A caller and a fake on one loop. */
struct talk {
	uv_loop_t loop;
	struct fake_runtime fake;
	struct ipc_caller caller;
	const char *sockets[2];
	uint64_t begin_ms;
};

static void open_talk(struct talk *t, const struct fake_script *script, const char *first_socket,
		      uint64_t timeout_ms)
{
	size_t n = 0;

	assert_int_equal(uv_loop_init(&t->loop), 0);
	fake_runtime_start(&t->fake, &t->loop, script);
	if (first_socket)
		t->sockets[n++] = first_socket;
	t->sockets[n++] = t->fake.path;
	assert_true(ipc_caller_init(&t->caller, &t->loop, t->sockets, n, timeout_ms));
	t->begin_ms = uv_now(&t->loop);
}

static uint64_t took_ms(struct talk *t)
{
	uv_update_time(&t->loop);
	return uv_now(&t->loop) - t->begin_ms;
}

static void close_talk(struct talk *t)
{
	ipc_caller_done(&t->caller);
	fake_runtime_stop(&t->fake);
	uv_run(&t->loop, UV_RUN_DEFAULT);
	assert_int_equal(t->fake.open, 0);
	assert_int_equal(uv_loop_close(&t->loop), 0);
}

static bool environment_follows(const struct ipc_reply *reply, size_t *ret)
{
	uint32_t bytes;

	if (ipc_environment_read(reply, &bytes) != IPC_OK)
		return false;
	*ret = bytes;
	return true;
}

static void ask(struct talk *t, uint8_t command, bool more, struct ipc_answer *ret)
{
	uint8_t request[IPC_HEADER_BYTES];
	size_t n = ipc_put_plain(request, sizeof(request), IPC_SET_PROCESS, command);

	ipc_call(&t->caller, request, n, more ? environment_follows : NULL, ret);
}

/* --- answers --- */

static const uint8_t zero[4];
static const uint8_t follows[] = "\x16\0\0\0\0\0";
static const uint8_t block[] = "\x02\0\0\0\x04\0\0\0A\0=\0B\0\0\0\x01\0\0\0\0";
static const struct fake_answer good[] = {
	{ PERF_OFF, .payload = zero, .bytes = 4 },
	{ ENVIRONMENT, .payload = follows, .bytes = 6, .more = block, .more_bytes = 22 },
	{ 0 },
};

static void whole_and_in_single_bytes(void **state)
{
	(void)state;
	for (size_t chunk = 0; chunk <= 3; chunk++) {
		const struct fake_script script = { .answers = good, .chunk = chunk };
		struct ipc_answer a;
		struct talk t;

		open_talk(&t, &script, NULL, PATIENCE_MS);
		ask(&t, IPC_DISABLE_PERF_MAP, false, &a);
		assert_int_equal(a.why, IPC_CALL_ANSWERED);
		assert_true(a.reply.ok);
		assert_int_equal(a.reply.payload_bytes, 4);
		ipc_answer_done(&a);
		ask(&t, IPC_PROCESS_ENVIRONMENT, true, &a);
		assert_int_equal(a.why, IPC_CALL_ANSWERED);
		assert_int_equal(a.more_bytes, 22);
		assert_memory_equal(a.more, block, 22);
		ipc_answer_done(&a);
		close_talk(&t);
	}
}

static void errors_of_four_and_eight_bytes(void **state)
{
	static const uint8_t failed[8] = { 0x05, 0x40, 0x00, 0x80 };
	char text[256];

	(void)state;
	for (size_t bytes = 4; bytes <= 8; bytes += 4) {
		const struct fake_answer answers[] = {
			{ PERF_OFF, .error = true, .payload = failed, .bytes = bytes },
			{ 0 },
		};
		const struct fake_script script = { .answers = answers, .error_bytes = bytes };
		struct ipc_answer a;
		struct talk t;

		open_talk(&t, &script, NULL, PATIENCE_MS);
		ask(&t, IPC_DISABLE_PERF_MAP, false, &a);
		assert_int_equal(a.why, IPC_CALL_ANSWERED);
		assert_false(a.reply.ok);
		assert_int_equal(a.reply.hresult, IPC_H_FAIL);
		assert_false(ipc_answer_unknown(&a));
		ipc_answer_done(&a);
		ask(&t, IPC_PROCESS_ENVIRONMENT, true, &a);
		assert_true(ipc_answer_unknown(&a));
		ipc_answer_describe(&a, text, sizeof(text));
		assert_non_null(strstr(text, "UNKNOWN_COMMAND 0x80131385"));
		ipc_answer_done(&a);
		close_talk(&t);
	}
}

static void one_that_is_still_starting_is_asked_again(void **state)
{
	const struct fake_script script = { .answers = good, .starting = 3 };
	const struct fake_script never = { .answers = good, .starting = 1000000 };
	struct ipc_answer a;
	struct talk t;

	(void)state;
	open_talk(&t, &script, NULL, PATIENCE_MS);
	ask(&t, IPC_DISABLE_PERF_MAP, false, &a);
	assert_int_equal(a.why, IPC_CALL_ANSWERED);
	assert_true(a.reply.ok);
	assert_int_equal(t.fake.command_count, 4);
	ipc_answer_done(&a);
	close_talk(&t);

	open_talk(&t, &never, NULL, 300);
	ask(&t, IPC_DISABLE_PERF_MAP, false, &a);
	assert_int_equal(a.why, IPC_CALL_ANSWERED);
	assert_int_equal(a.reply.hresult, IPC_H_NOT_YET_AVAILABLE);
	assert_true(took_ms(&t) < PATIENCE_MS);
	ipc_answer_done(&a);
	close_talk(&t);
}

/* --- no answer --- */

static void silence_ends_in_time(void **state)
{
	const struct fake_script script = { .silent = true };
	struct ipc_answer a;
	struct talk t;

	(void)state;
	open_talk(&t, &script, NULL, 150);
	ask(&t, IPC_DISABLE_PERF_MAP, false, &a);
	assert_int_equal(a.why, IPC_CALL_TIMEOUT);
	assert_true(took_ms(&t) >= 140);
	ipc_answer_done(&a);
	/* The limit is for everything together. */
	ask(&t, IPC_DISABLE_PERF_MAP, false, &a);
	assert_int_equal(a.why, IPC_CALL_TIMEOUT);
	assert_true(took_ms(&t) < PATIENCE_MS);
	ipc_answer_done(&a);
	close_talk(&t);
}

static void an_answer_cut_anywhere(void **state)
{
	(void)state;
	for (size_t n = 0; n < IPC_HEADER_BYTES + 4; n++) {
		const struct fake_script script = { .answers = good,
						    .cut_answer = true,
						    .cut_at = n };
		struct ipc_answer a;
		struct talk t;

		open_talk(&t, &script, NULL, PATIENCE_MS);
		if (n == 0) {
			/* Nothing is written then, and so nothing is closed either. */
			close_talk(&t);
			continue;
		}
		ask(&t, IPC_DISABLE_PERF_MAP, false, &a);
		assert_int_equal(a.why, IPC_CALL_FAILED);
		assert_int_equal(a.end.why, IPC_CONN_EOF);
		ipc_answer_done(&a);
		close_talk(&t);
	}
}

/* What follows the answer: closed within, silent within, and a size nobody would send. */
static void a_continuation_that_is_cut(void **state)
{
	static const uint8_t huge[] = "\xff\xff\xff\xff\0\0";
	struct ipc_answer a;
	struct talk t;

	(void)state;
	for (size_t n = 0; n < 22; n++) {
		const struct fake_answer answers[] = {
			{ ENVIRONMENT, .payload = follows, .bytes = 6, .more = block,
			  .more_bytes = n, .closes = true },
			{ 0 },
		};
		const struct fake_script script = { .answers = answers };

		open_talk(&t, &script, NULL, PATIENCE_MS);
		ask(&t, IPC_PROCESS_ENVIRONMENT, true, &a);
		assert_int_equal(a.why, IPC_CALL_CUT);
		assert_int_equal(a.more_bytes, n);
		assert_int_equal(a.more_wanted, 22);
		ipc_answer_done(&a);
		close_talk(&t);
	}
	const struct fake_answer silent[] = {
		{ ENVIRONMENT, .payload = follows, .bytes = 6, .more = block, .more_bytes = 10 },
		{ 0 },
	};
	const struct fake_answer too_much[] = {
		{ ENVIRONMENT, .payload = huge, .bytes = 6, .more = block, .more_bytes = 10 },
		{ 0 },
	};
	const struct fake_script waits = { .answers = silent }, promises = { .answers = too_much };

	open_talk(&t, &waits, NULL, 150);
	ask(&t, IPC_PROCESS_ENVIRONMENT, true, &a);
	assert_int_equal(a.why, IPC_CALL_TIMEOUT);
	assert_int_equal(a.more_bytes, 10);
	ipc_answer_done(&a);
	close_talk(&t);
	open_talk(&t, &promises, NULL, PATIENCE_MS);
	ask(&t, IPC_PROCESS_ENVIRONMENT, true, &a);
	assert_int_equal(a.why, IPC_CALL_CUT);
	assert_int_equal(a.more_room, 0);
	ipc_answer_done(&a);
	close_talk(&t);
}

static void something_else_listens(void **state)
{
	const struct fake_script script = { .answers = good, .wrong_magic = true };
	struct ipc_answer a;
	struct talk t;
	char text[256];

	(void)state;
	open_talk(&t, &script, NULL, PATIENCE_MS);
	ask(&t, IPC_DISABLE_PERF_MAP, false, &a);
	assert_int_equal(a.why, IPC_CALL_FAILED);
	assert_int_equal(a.end.why, IPC_CONN_PROTOCOL);
	ipc_answer_describe(&a, text, sizeof(text));
	assert_non_null(strstr(text, "not a .NET diagnostic port"));
	ipc_answer_done(&a);
	close_talk(&t);
}

static void a_dead_socket_and_the_next(void **state)
{
	const struct fake_script script = { .answers = good };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct ipc_answer a;
	struct talk t;

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/tmp/drd-dead-%ld", (long)getpid());
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	open_talk(&t, &script, addr.sun_path, PATIENCE_MS);
	ask(&t, IPC_DISABLE_PERF_MAP, false, &a);
	assert_int_equal(a.why, IPC_CALL_ANSWERED);
	assert_int_equal(t.caller.socket, 1);
	ipc_answer_done(&a);
	close_talk(&t);
	unlink(addr.sun_path);

	/* A path without a file is not tried around. */
	open_talk(&t, &script, addr.sun_path, PATIENCE_MS);
	ask(&t, IPC_DISABLE_PERF_MAP, false, &a);
	assert_int_equal(a.why, IPC_CALL_FAILED);
	assert_int_equal(a.end.error, -ENOENT);
	ipc_answer_done(&a);
	close_talk(&t);
}

static void raise_it(uv_timer_t *timer)
{
	raise(*(int *)timer->data);
}

static void signals_end_the_waiting(void **state)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	const struct fake_script script = { .silent = true };

	(void)state;
	signal(SIGHUP, SIG_DFL); /* whoever runs us may be under nohup */
	for (size_t i = 0; i < 3; i++) {
		int number = numbers[i];
		struct ipc_answer a;
		uv_timer_t timer;
		struct talk t;

		open_talk(&t, &script, NULL, PATIENCE_MS);
		uv_timer_init(&t.loop, &timer);
		timer.data = &number;
		uv_timer_start(&timer, raise_it, 20, 0);
		ask(&t, IPC_DISABLE_PERF_MAP, false, &a);
		assert_int_equal(a.why, IPC_CALL_INTERRUPTED);
		assert_int_equal(t.caller.signal, number);
		ipc_answer_done(&a);
		/* And what would come next is not begun. */
		ask(&t, IPC_DISABLE_PERF_MAP, false, &a);
		assert_int_equal(a.why, IPC_CALL_INTERRUPTED);
		assert_int_equal(t.fake.command_count, 1);
		ipc_answer_done(&a);
		assert_true(took_ms(&t) < PATIENCE_MS);
		uv_close((uv_handle_t *)&timer, NULL);
		close_talk(&t);
	}
}

/* --- ProcessInfo 3, 2, 1 --- */

static void information_of_every_version(void **state)
{
	(void)state;
	for (unsigned knows = 0; knows <= 3; knows++) {
		const struct fake_script script = { .info_knows = knows, .chunk = 7 };
		struct process_job job = { .name = "x" };
		struct process_told told;
		char text[16];
		struct talk t;

		open_talk(&t, &script, NULL, PATIENCE_MS);
		job.caller = &t.caller;
		assert_true(process_job_ask_info(&job, &told));
		assert_int_equal(told.version, knows);
		assert_int_equal(t.fake.command_count, knows ? 4 - knows : 3);
		if (knows) {
			assert_int_equal(told.info.pid, 7);
			ipc_text_utf8(&told.info.arch, text, sizeof(text));
			assert_string_equal(text, "x64");
		}
		if (knows >= 2) {
			ipc_text_utf8(&told.info.entry_assembly, text, sizeof(text));
			assert_string_equal(text, "E");
		}
		ipc_answer_done(&told.answer);
		close_talk(&t);
	}
}

static void information_that_does_not_come(void **state)
{
	const struct fake_script script = { .silent = true };
	struct process_job job = { .name = "x" };
	struct process_told told;
	struct talk t;

	(void)state;
	open_talk(&t, &script, NULL, 100);
	job.caller = &t.caller;
	assert_false(process_job_ask_info(&job, &told));
	assert_int_equal(told.answer.why, IPC_CALL_TIMEOUT);
	ipc_answer_done(&told.answer);
	close_talk(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_and_in_single_bytes),
		cmocka_unit_test(errors_of_four_and_eight_bytes),
		cmocka_unit_test(one_that_is_still_starting_is_asked_again),
		cmocka_unit_test(silence_ends_in_time),
		cmocka_unit_test(an_answer_cut_anywhere),
		cmocka_unit_test(a_continuation_that_is_cut),
		cmocka_unit_test(something_else_listens),
		cmocka_unit_test(a_dead_socket_and_the_next),
		cmocka_unit_test(signals_end_the_waiting),
		cmocka_unit_test(information_of_every_version),
		cmocka_unit_test(information_that_does_not_come),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
