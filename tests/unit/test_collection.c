/* SPDX-License-Identifier: MIT */
/* A recording from a runtime that does as it is told: what is kept, and the exit code. */
#include "src/collect/collection.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nettrace/trailer.h"
#include "src/base/command.h"
#include "tests/support/fake_runtime.h"
#include "tests/support/fixture.h"

enum { FIRST_BYTES = 100000 };

static const struct ipc_provider provider = { "A", 1, 4, NULL, NULL };
static const struct ipc_provider *wanted = &provider;
static uint8_t *trace;
static size_t trace_bytes;

struct run {
	/* What is to be done. */
	struct collect_settings settings;
	bool abort_at_start;
	int32_t pid; /* of whom /proc tells; 0: of nobody */
	bool foreign; /* and it tells of somebody else */
	/* What came of it. */
	uv_loop_t loop;
	struct fake_runtime fake;
	struct collection *collection;
	char dir[64], path[96], report[96];
	unsigned starts, ends;
	int code;
	uint64_t took_ms;
	uint8_t *file;
	size_t file_bytes; /* 0: there is none */
	bool have_report;
};

static void on_started(void *ctx, struct collection *c)
{
	struct run *r = ctx;

	r->starts++;
	if (r->abort_at_start)
		collection_abort(c);
}

static void on_ended(void *ctx, struct collection *c)
{
	struct run *r = ctx;

	(void)c;
	r->ends++;
	fake_runtime_stop(&r->fake);
}

static const struct collection_events events = { on_started, on_ended };

static uint8_t *slurp(const char *path, size_t *ret_bytes)
{
	struct stat st;
	FILE *f = fopen(path, "rb");
	uint8_t *data;

	*ret_bytes = 0;
	if (!f)
		return NULL;
	assert_int_equal(fstat(fileno(f), &st), 0);
	data = malloc((size_t)st.st_size + 1);
	*ret_bytes = fread(data, 1, (size_t)st.st_size, f);
	fclose(f);
	return data;
}

static void defaults(struct run *r)
{
	struct collect_settings *s = &r->settings;

	snprintf(r->dir, sizeof(r->dir), "/tmp/drd-collection-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	snprintf(r->path, sizeof(r->path), "%s/a.nettrace", r->dir);
	snprintf(r->report, sizeof(r->report), "%s/report.json", r->dir);
	s->session = (struct ipc_collect){ 1, IPC_RUNDOWN_DEFAULT, true, false, wanted, 1 };
	if (!s->duration_ms)
		s->duration_ms = 200;
	s->timeout_ms = 2000;
	s->stop_timeout_ms = 500;
	s->output = r->path;
	s->report = r->report;
	s->format = REPORT_JSON;
	s->options.top = 5;
	s->quiet = true;
}

static void run(struct run *r, const struct fake_script *script)
{
	struct ipc_socket socket = { 0 };
	struct ipc_target target = { .sockets = &socket, .socket_count = 1, .foreign = r->foreign };
	const struct collect_subject who = { .target = &target,
					     .pid = r->pid ? r->pid : 7,
					     .name = "fake" };
	uint64_t begin = uv_hrtime();
	size_t bytes;

	defaults(r);
	assert_int_equal(uv_loop_init(&r->loop), 0);
	fake_runtime_start(&r->fake, &r->loop, script);
	socket.path = r->fake.path;
	r->collection = collection_start(&r->loop, &r->settings, &who, 0, &events, r);
	assert_non_null(r->collection);
	uv_run(&r->loop, UV_RUN_DEFAULT);
	assert_int_equal(r->ends, 1);
	assert_int_equal(r->fake.open, 0);
	r->code = collection_conclude(r->collection, NULL);
	assert_int_equal(uv_loop_close(&r->loop), 0);
	r->took_ms = (uv_hrtime() - begin) / 1000000;
	r->file = slurp(r->path, &r->file_bytes);
	free(slurp(r->report, &bytes));
	r->have_report = bytes > 0;
	unlink(r->path);
	unlink(r->report);
	assert_int_equal(rmdir(r->dir), 0); /* nothing else was left */
}

static struct fake_script script(enum fake_stop stop)
{
	return (struct fake_script){
		.knows = 6,
		.session_id = 0x8000000000000001,
		.stream = trace,
		.stream_bytes = FIRST_BYTES,
		.rest = trace + FIRST_BYTES,
		.rest_bytes = trace_bytes - FIRST_BYTES,
		.stop = stop,
	};
}

static void check_whole(struct run *r)
{
	assert_int_equal(r->code, EXIT_DONE);
	assert_true(r->have_report);
	assert_int_equal(r->file_bytes, trace_bytes);
	assert_memory_equal(r->file, trace, trace_bytes);
	free(r->file);
}

/* What is there is the beginning of the stream. */
static void check_prefix(struct run *r, int code)
{
	assert_int_equal(r->code, code);
	assert_true(r->have_report);
	assert_in_range(r->file_bytes, 1, FIRST_BYTES);
	assert_memory_equal(r->file, trace, r->file_bytes);
	assert_true(r->took_ms < 3000);
	free(r->file);
}

static void however_the_stop_is_answered(void **state)
{
	static const enum fake_stop ways[] = { FAKE_STOP_PROPER, FAKE_STOP_ANSWER_FIRST,
					       FAKE_STOP_NO_ANSWER, FAKE_STOP_ERROR };

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct fake_script s = script(ways[i]);
		struct run r = { 0 };

		s.chunk = 7000;
		run(&r, &s);
		check_whole(&r);
		assert_true(r.fake.stopped_id == 0x8000000000000001);
	}
}

static size_t thread_records(const uint8_t *block, size_t len)
{
	struct nt_span records;
	struct nt_trailer_record record;
	size_t n = 0;

	assert_null(nt_trailer_open(block, len, &records));
	while (nt_trailer_next(&records, &record))
		n += record.kind == NT_TRAILER_THREAD_CPU;
	return n;
}

/* The stream is in the file as it came, and what was measured stands behind it. */
static void a_process_that_is_measured(void **state)
{
	struct fake_script s = script(FAKE_STOP_PROPER);
	struct run r = { .pid = getpid(), .settings.cpu_source = COLLECT_CPU_PROC };

	(void)state;
	run(&r, &s);
	assert_int_equal(r.code, EXIT_DONE);
	assert_true(r.file_bytes > trace_bytes);
	assert_memory_equal(r.file, trace, trace_bytes);
	assert_true(thread_records(r.file + trace_bytes, r.file_bytes - trace_bytes) >= 1);
	free(r.file);
	/* Cut inside a block: nothing stands where the rest of it would. */
	r = (struct run){ .pid = getpid(), .settings.cpu_source = COLLECT_CPU_PROC };
	s.rest_bytes = 0;
	run(&r, &s);
	check_prefix(&r, EXIT_PARTIAL);
	/* Who is not in /proc is recorded all the same. */
	r = (struct run){ .pid = INT32_MAX, .settings.cpu_source = COLLECT_CPU_PROC };
	s.rest_bytes = trace_bytes - FIRST_BYTES;
	run(&r, &s);
	check_whole(&r);
	/* The number is somebody else's here. */
	r = (struct run){ .pid = getpid(),
			  .foreign = true,
			  .settings.cpu_source = COLLECT_CPU_PROC };
	run(&r, &s);
	check_whole(&r);
}

static void a_stop_that_is_ignored(void **state)
{
	struct fake_script s = script(FAKE_STOP_IGNORED);
	struct run r = { 0 };

	(void)state;
	run(&r, &s);
	check_prefix(&r, EXIT_PARTIAL);
	assert_true(r.took_ms >= 700);
}

static void a_stream_that_never_ends(void **state)
{
	struct fake_script s = script(FAKE_STOP_ENDLESS);
	struct run r = { 0 };

	(void)state;
	run(&r, &s);
	assert_int_equal(r.code, EXIT_PARTIAL);
	assert_true(r.have_report);
	assert_true(r.file_bytes >= FIRST_BYTES / 2);
	assert_in_range(r.took_ms, 700, 5000);
	free(r.file);
}

static void a_stream_that_is_none(void **state)
{
	static const uint8_t garbage[] = "HTTP/1.1 400 Bad Request, and so on for a while";
	struct fake_script s = script(FAKE_STOP_PROPER);
	struct run r = { 0 };

	(void)state;
	s.stream = garbage;
	s.stream_bytes = sizeof(garbage);
	s.rest_bytes = 0;
	run(&r, &s);
	assert_int_equal(r.code, EXIT_FAILED);
	assert_false(r.have_report);
	assert_int_equal(r.file_bytes, sizeof(garbage)); /* kept, just as it came */
	assert_true(r.took_ms < 3000);
	free(r.file);
}

/* Nothing comes before it is told to go on; a stop would harm it, so none is sent. */
static void a_suspended_runtime(void **state)
{
	struct fake_script s = script(FAKE_STOP_PROPER);
	struct run r = { 0 };

	(void)state;
	s.suspended = true;
	run(&r, &s);
	assert_int_equal(r.starts, 1);
	assert_int_equal(r.fake.stopped_id, 0);
	assert_int_equal(r.code, EXIT_FAILED);
	assert_int_equal(r.file_bytes, 0);
	assert_false(r.have_report);
}

static void the_target_ends(void **state)
{
	struct fake_script s = script(FAKE_STOP_PROPER);
	struct run proper = { .settings.duration_ms = 60000 };
	struct run killed = { .settings.duration_ms = 60000 };

	(void)state;
	s.closes = true;
	run(&killed, &s);
	check_prefix(&killed, EXIT_PARTIAL);
	s.stream_bytes = trace_bytes;
	run(&proper, &s);
	check_whole(&proper);
}

static void no_session(void **state)
{
	struct fake_script s = script(FAKE_STOP_PROPER);
	struct run refused = { 0 }, mute = { 0 };

	(void)state;
	s.error = 0x80004005;
	run(&refused, &s);
	assert_int_equal(refused.code, EXIT_UNREACHABLE);
	assert_int_equal(refused.file_bytes, 0);
	s.error = 0;
	s.silent = true;
	run(&mute, &s);
	assert_int_equal(mute.code, EXIT_UNREACHABLE);
	assert_in_range(mute.took_ms, 1900, 5000);
	assert_int_equal(mute.starts, 0);
}

static void taking_what_there_is(void **state)
{
	struct fake_script s = script(FAKE_STOP_PROPER);
	struct run r = { .settings.duration_ms = 60000, .abort_at_start = true };

	(void)state;
	run(&r, &s);
	assert_true(r.took_ms < 2000);
	assert_true(r.code == EXIT_PARTIAL || r.code == EXIT_FAILED); /* as fast as bytes came */
	free(r.file);
}

/* Long before the duration is over. */
static void reasons_to_stop(void **state)
{
	static const struct stop_when_config event = { "Microsoft-DotNETCore-SampleProfiler",
						       "ThreadSample", NULL };
	struct fake_script s = script(FAKE_STOP_PROPER);
	struct run by_event = { .settings = { .duration_ms = 60000, .stop_event = &event } };
	struct run by_size = { .settings = { .duration_ms = 60000, .max_bytes = 50000 } };

	(void)state;
	run(&by_event, &s);
	check_whole(&by_event);
	assert_true(by_event.took_ms < 5000);
	run(&by_size, &s);
	check_whole(&by_size);
	assert_true(by_size.took_ms < 5000);
}

static int setup(void **state)
{
	(void)state;
	trace = fixture_read("cpu-net10.nettrace.zst", &trace_bytes);
	return trace && trace_bytes > FIRST_BYTES ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free(trace);
	return 0;
}

/* Not when meters are read for the first time: that can lock up the runtime. */
static void meters_are_not_stopped_while_they_are_read(void **state)
{
	static const struct ipc_provider meters = { "system.diagnostics.METRICS", 7, 5, NULL,
						    NULL };
	static const struct {
		uint64_t duration_ms, least_ms, most_ms;
		bool meters;
	} rows[] = {
		{ 200, 200, 1490, true },
		{ 900, 1500, 4000, true },
		{ 750, 750, 1490, false },
		{ 1700, 1700, 4000, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fake_script s = script(FAKE_STOP_PROPER);
		struct run r = { .settings.duration_ms = rows[i].duration_ms };

		wanted = rows[i].meters ? &meters : &provider;
		run(&r, &s);
		wanted = &provider;
		check_whole(&r);
		assert_in_range(r.took_ms, rows[i].least_ms, rows[i].most_ms);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(however_the_stop_is_answered),
		cmocka_unit_test(a_process_that_is_measured),
		cmocka_unit_test(a_stop_that_is_ignored),
		cmocka_unit_test(a_stream_that_never_ends),
		cmocka_unit_test(a_stream_that_is_none),
		cmocka_unit_test(a_suspended_runtime),
		cmocka_unit_test(the_target_ends),
		cmocka_unit_test(no_session),
		cmocka_unit_test(taking_what_there_is),
		cmocka_unit_test(reasons_to_stop),
		cmocka_unit_test(meters_are_not_stopped_while_they_are_read),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("collection", tests, setup, teardown);
}
