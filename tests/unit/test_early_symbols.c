/* SPDX-License-Identifier: MIT */
/* One rundown at the start, from a runtime that does as it is told. */
#include "src/collect/early_symbols.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/methods.h"
#include "tests/support/fake_runtime.h"
#include "tests/support/fixture.h"

struct run {
	uv_loop_t loop;
	struct fake_runtime fake;
	struct early_symbols *early;
	uint64_t events, names;
	unsigned ends;
	bool close_at_once;
	enum nt_status answer;
	struct early_symbols_result result;
};

static uint8_t *trace;
static size_t trace_bytes;

static enum nt_status on_event(void *ctx, const struct nt_event *ev)
{
	struct run *r = ctx;

	r->events++;
	r->names += an_methods_wants(ev->def);
	return r->answer;
}

static void on_done(void *ctx, const struct early_symbols_result *result)
{
	struct run *r = ctx;

	r->ends++;
	r->result = *result;
	early_symbols_close(r->early);
	fake_runtime_stop(&r->fake);
}

static const struct early_symbols_events events = { on_event, on_done };

static void run(struct run *r, const struct fake_script *script)
{
	const char *sockets[1];
	const struct early_symbols_config config = {
		.sockets = sockets,
		.socket_count = 1,
		.timeout_ms = 500,
		.stop_timeout_ms = 500,
	};

	assert_int_equal(uv_loop_init(&r->loop), 0);
	fake_runtime_start(&r->fake, &r->loop, script);
	sockets[0] = r->fake.path;
	r->early = early_symbols_start(&r->loop, &config, &events, r);
	assert_non_null(r->early);
	if (r->close_at_once) {
		early_symbols_close(r->early);
		fake_runtime_stop(&r->fake);
	}
	uv_run(&r->loop, UV_RUN_DEFAULT);
	assert_int_equal(r->ends, !r->close_at_once);
	assert_int_equal(r->fake.open, 0);
	assert_int_equal(uv_loop_close(&r->loop), 0);
}

static struct fake_script script_of_trace(unsigned knows)
{
	return (struct fake_script){
		.knows = knows,
		.session_id = 0x8000000000000001,
		.stream = trace,
		.stream_bytes = 1000,
		.rest = trace + 1000,
		.rest_bytes = trace_bytes - 1000,
		.chunk = 10000,
	};
}

static void names_arrive(void **state)
{
	(void)state;
	for (unsigned knows = 1; knows <= 6; knows++) {
		struct fake_script s = script_of_trace(knows);
		struct run r = { 0 };

		run(&r, &s);
		assert_true(r.result.complete);
		assert_int_equal(r.result.bytes, trace_bytes);
		assert_int_equal(r.result.events, r.events);
		assert_true(r.names > 100);
		assert_true(r.fake.stopped_id == 0x8000000000000001);
		/* The oldest command is enough. */
		assert_int_equal(r.fake.commands[0], 0x0203);
	}
}

static void a_refusal_is_no_harm(void **state)
{
	struct fake_script s = script_of_trace(6);
	struct run r = { 0 };

	(void)state;
	s.error = 0x80004005;
	run(&r, &s);
	assert_false(r.result.complete);
	assert_int_equal(r.result.end.why, SESSION_REFUSED);
	assert_int_equal(r.events, 0);
}

static void a_cut_rundown_is_not_complete(void **state)
{
	struct fake_script s = script_of_trace(6);
	struct run r = { 0 };

	(void)state;
	s.rest_bytes = trace_bytes / 2;
	run(&r, &s);
	assert_false(r.result.complete);
	assert_int_equal(r.result.end.why, SESSION_ENDED);
	assert_true(r.events > 0);
}

static void nothing_waits_for_ever(void **state)
{
	struct fake_script s = script_of_trace(6);
	struct run silent = { 0 }, ignored = { 0 }, endless = { 0 };

	(void)state;
	s.silent = true;
	run(&silent, &s);
	assert_int_equal(silent.result.end.why, SESSION_TIMEOUT);
	s.silent = false;
	s.stop = FAKE_STOP_IGNORED;
	run(&ignored, &s);
	assert_int_equal(ignored.result.end.why, SESSION_STOP_TIMEOUT);
	s.stop = FAKE_STOP_ENDLESS;
	run(&endless, &s);
	assert_int_equal(endless.result.end.why, SESSION_STOP_TIMEOUT);
	assert_false(endless.result.complete);
}

static void an_error_ends_the_names_not_the_draining(void **state)
{
	struct fake_script s = script_of_trace(6);
	struct run r = { .answer = NT_ENOMEM };

	(void)state;
	run(&r, &s);
	assert_int_equal(r.events, 1);
	assert_false(r.result.complete);
	assert_int_equal(r.result.end.why, SESSION_ENDED);
	assert_false(r.fake.stream_lost);
}

static void closing_early(void **state)
{
	struct fake_script s = script_of_trace(6);
	struct run r = { .close_at_once = true };

	(void)state;
	run(&r, &s);
	assert_int_equal(r.events, 0);
}

static int setup(void **state)
{
	(void)state;
	trace = fixture_read("cpu-net8.nettrace.zst", &trace_bytes);
	return trace ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free(trace);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_arrive),
		cmocka_unit_test(a_refusal_is_no_harm),
		cmocka_unit_test(a_cut_rundown_is_not_complete),
		cmocka_unit_test(nothing_waits_for_ever),
		cmocka_unit_test(an_error_ends_the_names_not_the_draining),
		cmocka_unit_test(closing_early),
	};

	return cmocka_run_group_tests_name("early_symbols", tests, setup, teardown);
}
