/* SPDX-License-Identifier: MIT */
/*
 * Whole runs of collect with runtimes that connect to a port: in processes of their own, as real
 * ones are, played by the fake runtime with a recorded stream.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/command.h"
#include "src/collect/child.h"
#include "src/collect/collect.h"
#include "tests/support/fake_runtime.h"
#include "tests/support/fixture.h"

enum { LIMIT_MS = 20000, MAX_GUESTS = 3 };

/* What a guest does, by the letters of its description. */
struct guest_plan {
	struct fake_script script;
	bool leaves_unasked; /* does not wait for ResumeRuntime */
	int exit_code;
};

static const char *own_path; /* of this program */
static char dir[64];
static uint8_t *stream; /* of each guest */
static size_t stream_bytes;

static struct ipc_provider provider = { "A", 1, 4, NULL, NULL };

/* --- the guest's process --- */

static struct guest_plan describe(const char *letters)
{
	struct guest_plan g = { .script = { .knows = 6,
					    .info_knows = 3,
					    .session_id = 9,
					    .cookie = 1,
					    .suspended = true,
					    .closes = true } };

	g.script.stream = stream;
	g.script.stream_bytes = stream_bytes;
	g.script.pid = (uint64_t)getpid();
	for (const char *p = letters; *p; p++) {
		if (*p == 'r')
			g.script.error = 0x80004005; /* no session */
		else if (*p == 'w')
			g.script.wrong_advertise = g.leaves_unasked = true;
		else if (*p == 'c')
			g.script.advertise_bytes = 33;
		else if (*p == 'h')
			g.script.closes = false; /* until it is stopped */
		else if (*p == '7')
			g.exit_code = 7;
		if (*p == 'c')
			g.leaves_unasked = true;
	}
	return g;
}

struct guest_run {
	struct fake_runtime fake;
	uint64_t begin;
	bool unasked;
};

/* Ends when it has been told to go on, and its stream was taken. */
static void on_check(uv_timer_t *timer)
{
	struct guest_run *g = timer->data;

	if (g->unasked ? g->fake.open > 0 : g->fake.resumes == 0 || g->fake.stream)
		return;
	uv_close((uv_handle_t *)timer, NULL);
	fake_runtime_stop(&g->fake);
}

static int be_guest(const char *letters, const char *port)
{
	static struct guest_run g;
	struct guest_plan plan = describe(letters);
	uv_loop_t loop;
	uv_timer_t timer;

	alarm(LIMIT_MS / 1000); /* not resumed: it shows as a signal */
	plan.script.dial = port;
	g.unasked = plan.leaves_unasked;
	uv_loop_init(&loop);
	uv_timer_init(&loop, &timer);
	timer.data = &g;
	fake_runtime_start(&g.fake, &loop, &plan.script);
	uv_timer_start(&timer, on_check, 20, 20);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	free(stream);
	return plan.exit_code;
}

/* As a command: it finds its port in the environment. */
static int be_command(const char *letters)
{
	const char *ports = getenv(CHILD_PORT_VARIABLE);
	char port[200];

	if (!ports || strcmp(ports + strcspn(ports, ","), ",suspend") != 0)
		return 99;
	snprintf(port, sizeof(port), "%.*s", (int)strcspn(ports, ","), ports);
	return be_guest(letters, port);
}

/* --- runs --- */

struct outcome {
	int code;
	int guests[MAX_GUESTS]; /* as from wait(2) */
	size_t files;
};

static char *in_dir(const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s", dir, name) > 0);
	return path;
}

static bool is_complete_trace(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_size == (off_t)stream_bytes;
}

/* x.nettrace, x-2.nettrace and so on; removes them. */
static size_t take_files(void)
{
	size_t n = 0;

	for (unsigned i = 1; i <= MAX_GUESTS; i++) {
		char name[32], *path;

		snprintf(name, sizeof(name), i == 1 ? "x.nettrace" : "x-%u.nettrace", i);
		path = in_dir(name);
		n += is_complete_trace(path);
		unlink(path);
		free(path);
	}
	return n;
}

static void run(const struct collect_plan *plan, uint64_t duration_ms, struct outcome *ret)
{
	char *output = in_dir("x.nettrace"), *report = in_dir("report");
	const struct collect_settings settings = {
		.session = { 1, IPC_RUNDOWN_DEFAULT, true, false, &provider, 1 },
		.duration_ms = duration_ms,
		.timeout_ms = LIMIT_MS / 2,
		.stop_timeout_ms = LIMIT_MS / 2,
		.output = output,
		.force = true,
		.report = report,
		.options = { .top = 5 },
		.quiet = true,
		.resume = true,
	};

	ret->code = collect_run(&settings, plan);
	ret->files = take_files();
	unlink(report);
	for (unsigned i = 2; i <= MAX_GUESTS; i++) {
		char *numbered;

		assert_true(asprintf(&numbered, "%s-%u", report, i) > 0);
		unlink(numbered);
		free(numbered);
	}
	free(output);
	free(report);
}

/* Guests by their letters; they start a moment before the port is there, and try again. */
static struct outcome serve(uint64_t duration_ms, const char *const *guests)
{
	char *path = in_dir("port");
	struct port_address address;
	struct collect_plan plan = { .port = &address, .wait_ms = LIMIT_MS / 4 };
	struct outcome o = { 0 };
	pid_t pids[MAX_GUESTS];
	size_t n = 0;
	const char *why;

	assert_true(port_address_parse(&address, path, &why));
	for (; guests[n]; n++) {
		pids[n] = fork();
		assert_true(pids[n] >= 0);
		if (pids[n] == 0) {
			while (access(path, F_OK) != 0)
				usleep(10000);
			usleep(20000);
			execl(own_path, own_path, "guest", guests[n], path, (char *)NULL);
			_exit(98);
		}
	}
	run(&plan, duration_ms, &o);
	assert_int_equal(access(path, F_OK), -1);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(waitpid(pids[i], &o.guests[i], 0), pids[i]);
	port_address_done(&address);
	free(path);
	return o;
}

#define SERVE(...) serve(0, (const char *const[]){ __VA_ARGS__, NULL })

static void one_that_waits(void **state)
{
	struct outcome o = SERVE("-");

	(void)state;
	assert_int_equal(o.code, EXIT_DONE);
	assert_int_equal(o.files, 1);
	assert_int_equal(o.guests[0], 0); /* it was told to go on */
}

static void two_with_one_cookie(void **state)
{
	/* Neither ends before the other has come. */
	struct outcome o = serve(3000, (const char *const[]){ "h", "h", NULL });

	(void)state;
	assert_int_equal(o.code, EXIT_DONE);
	assert_int_equal(o.files, 2);
	assert_int_equal(o.guests[0], 0);
	assert_int_equal(o.guests[1], 0);
}

/* No session, but the process goes on: whatever happens, nobody is left waiting. */
static void refused_and_resumed(void **state)
{
	struct outcome o = SERVE("r");

	(void)state;
	assert_int_equal(o.code, EXIT_UNREACHABLE);
	assert_int_equal(o.files, 0);
	assert_int_equal(o.guests[0], 0);
}

static void nonsense_beside_one(void **state)
{
	struct outcome o = SERVE("w", "c", "-");

	(void)state;
	assert_int_equal(o.code, EXIT_DONE);
	assert_int_equal(o.files, 1);
	assert_int_equal(o.guests[2], 0);
}

static void nobody_comes(void **state)
{
	char *path = in_dir("port");
	struct port_address address;
	struct collect_plan plan = { .port = &address, .wait_ms = 200 };
	struct outcome o = { 0 };
	const char *why;

	(void)state;
	assert_true(port_address_parse(&address, path, &why));
	run(&plan, 0, &o);
	assert_int_equal(o.code, EXIT_UNREACHABLE);
	assert_int_equal(o.files, 0);
	assert_int_equal(access(path, F_OK), -1);
	port_address_done(&address);
	free(path);
}

static struct outcome command(const char *const *argv, bool children, bool pass)
{
	struct collect_plan plan = { .command = argv,
				     .children = children,
				     .pass_exit_code = pass,
				     .wait_ms = LIMIT_MS / 4 };
	struct outcome o = { 0 };

	run(&plan, 0, &o);
	return o;
}

static void commands(void **state)
{
	const char *const good[] = { own_path, "command", "-", NULL };
	const char *const seven[] = { own_path, "command", "7", NULL };
	const char *const refused[] = { own_path, "command", "r", NULL };
	const char *const no_runtime[] = { "true", NULL };
	const char *const nothing[] = { "/nonexistent/program", NULL };
	struct outcome o = command(good, false, true);

	(void)state;
	assert_int_equal(o.code, 0);
	assert_int_equal(o.files, 1);
	assert_int_equal(command(seven, false, true).code, 7);
	assert_int_equal(command(seven, false, false).code, 0);
	assert_int_equal(command(refused, false, true).code, EXIT_UNREACHABLE);
	assert_int_equal(command(no_runtime, false, true).code, EXIT_UNREACHABLE);
	assert_int_equal(command(nothing, false, true).code, EXIT_FAILED);
}

/* All of them go on; one is recorded, or all. */
static void several_in_a_command(void **state)
{
	char *script;
	struct outcome o;

	(void)state;
	assert_true(asprintf(&script, "'%s' command - & '%s' command - & wait", own_path,
			     own_path) > 0);
	const char *const argv[] = { "sh", "-c", script, NULL };
	o = command(argv, false, true);
	assert_int_equal(o.code, 0);
	assert_int_equal(o.files, 1);
	o = command(argv, true, true);
	assert_int_equal(o.code, 0);
	assert_int_equal(o.files, 2);
	free(script);
}

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/drd-collect-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(dir); /* fails when anything was left */
}

#define WORLD(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		WORLD(one_that_waits),	     WORLD(two_with_one_cookie), WORLD(refused_and_resumed),
		WORLD(nonsense_beside_one),  WORLD(nobody_comes),	 WORLD(commands),
		WORLD(several_in_a_command),
	};

	int code;

	signal(SIGPIPE, SIG_IGN);
	stream = fixture_read("synthetic-v4.nettrace", &stream_bytes);
	if (!stream)
		return 1;
	if (argc > 3 && strcmp(argv[1], "guest") == 0)
		return be_guest(argv[2], argv[3]);
	if (argc > 2 && strcmp(argv[1], "command") == 0)
		return be_command(argv[2]);
	own_path = argv[0];
	code = cmocka_run_group_tests(tests, NULL, NULL);
	free(stream);
	return code;
}
