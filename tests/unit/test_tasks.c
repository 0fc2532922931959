/* SPDX-License-Identifier: MIT */
/* Pending tasks and their chains, from made-up events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/tasks/task_table.h"
#include "tests/support/failalloc.h"
#include "tests/support/play.h"

static const struct an_class *const classes[] = { &an_class_tasks, NULL };

static struct play p;

enum {
	HANDLE = 0x1000,
	PRICE = 0x2000,
	FETCH = 0x3000,
	RUN = 0x4000,
	WAIT = 0x5000,
	BLOCKER = 0x6000,
	LOOP = 0x7000,
	SLEEP = 0x8000
};

enum { SYNC = 1, ASYNC = 2 };

static void begin(void)
{
	assert_true(play_begin(&p, NULL, classes, NULL));
}

static void names(double ms)
{
	p.frame_count = 0;
	play_method(&p, true, HANDLE, 0x1000, "Shop.Api+<HandleAsync>d__4", "MoveNext", "", ms);
	play_method(&p, true, PRICE, 0x1000, "Shop.Api+<PriceAsync>d__3", "MoveNext", "", ms);
	play_method(&p, true, FETCH, 0x1000, "Shop.Api+<FetchAsync>d__2", "MoveNext", "", ms);
	play_method(&p, true, RUN, 0x1000, "Shop.Api", "Run", "", ms);
	play_method(&p, true, WAIT, 0x1000, "System.Threading.Tasks.Task", "InternalWaitCore", "",
		    ms);
	play_method(&p, true, BLOCKER, 0x1000, "Shop.Api", "Blocker", "", ms);
	play_method(&p, true, LOOP, 0x1000, "Shop.Api+<LoopAsync>d__6", "MoveNext", "", ms);
	play_method(&p, true, SLEEP, 0x1000, "System.Threading.Thread", "Sleep", "", ms);
}

static void tpl(uint32_t id, uint64_t thread, double ms, struct build *b)
{
	play_event(&p, NT_PROV_TPL, id, 1, thread, ms, b);
}

static void op_begin(uint32_t task, const char *name, uint64_t frame, double ms)
{
	struct build b = { 0 };

	play_stack(&p, 1, frame);
	build_u32(&b, task);
	build_utf16(&b, name);
	build_u64(&b, 0);
	tpl(14, 1, ms, &b);
}

static void op_end(uint32_t task, double ms)
{
	struct build b = { 0 };

	build_u32(&b, task);
	build_u32(&b, 1);
	tpl(15, 1, ms, &b);
}

/* c awaits on; frame is where. */
static void wait_begin(uint64_t thread, uint32_t on, uint32_t behavior, uint32_t c, uint64_t frame,
		       double ms)
{
	struct build b = { 0 };

	play_stack(&p, 1, frame);
	build_u32(&b, 1);
	build_u32(&b, 0);
	build_u32(&b, on);
	build_u32(&b, behavior);
	build_u32(&b, c);
	tpl(10, thread, ms, &b);
}

static void three(uint32_t id, uint64_t thread, uint32_t task, double ms)
{
	struct build b = { 0 };

	build_u32(&b, 1);
	build_u32(&b, 0);
	build_u32(&b, task);
	tpl(id, thread, ms, &b);
}

static void wait_end(uint64_t thread, uint32_t on, double ms)
{
	three(11, thread, on, ms);
}

static void scheduled(uint32_t task, double ms)
{
	struct build b = { 0 };

	play_stack(&p, 1, (uint64_t)RUN);
	build_u32(&b, 1);
	build_u32(&b, 0);
	build_u32(&b, task);
	build_u32(&b, 0);
	build_u32(&b, 0);
	build_u32(&b, 1);
	tpl(7, 1, ms, &b);
}

static const struct an_value *row(size_t n)
{
	return play_row(&p, "tasks.pending", n);
}

static uint64_t number(const char *path)
{
	return an_get_u64(play_report(&p), path, UINT64_MAX);
}

static void check_chain(const struct an_value *v, const char *const *want, size_t n)
{
	const struct an_value *name = an_get(v, "chain");

	assert_non_null(name);
	assert_int_equal(name->count, n);
	name = name->first;
	for (size_t i = 0; i < n; i++, name = name->next)
		assert_string_equal(name->text, want[i]);
}

/* HandleAsync awaits PriceAsync awaits FetchAsync awaits a task nobody began. */
static void request(uint32_t id, double ms, bool operations)
{
	if (operations) {
		op_begin(id + 1, "Async: <FetchAsync>d__2", FETCH, ms);
		op_begin(id + 2, "Async: <PriceAsync>d__3", PRICE, ms);
		op_begin(id + 3, "Async: <HandleAsync>d__4", HANDLE, ms);
	}
	wait_begin(1, 1000000, ASYNC, id + 1, FETCH, ms);
	wait_begin(1, id + 1, ASYNC, id + 2, PRICE, ms);
	wait_begin(1, id + 2, ASYNC, id + 3, HANDLE, ms);
}

static const char *evidence(const char *id)
{
	return an_get_text(play_find(&p, "findings", "id", id), "evidence", "");
}

static const char *const chain[] = { "Shop.Api.FetchAsync", "Shop.Api.PriceAsync",
				     "Shop.Api.HandleAsync" };

static void equal_chains_are_one_row(void **state)
{
	(void)state;
	begin();
	for (uint32_t i = 0; i < 17; i++)
		request(10 + i * 10, 100 * i, true);
	names(3000);
	assert_int_equal(an_get(play_report(&p), "tasks.pending")->count, 1);
	assert_string_equal(an_get_text(row(0), "method", ""), "Shop.Api.HandleAsync");
	assert_string_equal(an_get_text(row(0), "state", ""), "awaiting");
	assert_int_equal(an_get_u64(row(0), "count", 0), 17);
	assert_int_equal(an_get_u64(row(0), "task_id", 0), 13);
	assert_true(an_get_f64(row(0), "age_ms", 0) == 3000);
	assert_true(an_get_f64(row(0), "youngest_ms", 0) == 1400);
	assert_int_equal(an_get_u64(row(0), "age_at_least", 9), 0);
	assert_true(an_get(row(0), "stuck")->u);
	assert_string_equal(an_get_text(row(0), "rule", ""), "none-ended");
	assert_non_null(strstr(evidence("tasks.stuck"), "for 1.4 to 3.0 s: none of its kind has "
							"ended (17 begun)"));
	check_chain(row(0), chain, 3);
	assert_non_null(strstr(an_get_text(row(0), "waiting_on", ""), "TaskCompletionSource"));
	assert_int_equal(an_get(row(0), "thread_id")->kind, AN_NULL);
	assert_int_equal(number("tasks.operations_begun"), 51);
	assert_int_equal(number("tasks.operations_ended"), 0);
	assert_true(play_finds(&p, "tasks.stuck"));
	assert_true(play_finds(&p, "tasks.older-invisible"));
	play_end(&p);
}

/* .NET Core 3.1 tells neither begin nor end of operations. */
static void without_operations_the_awaits_tell(void **state)
{
	(void)state;
	begin();
	for (uint32_t i = 0; i < 5; i++)
		request(10 + i * 10, 100 * i, false);
	names(3000);
	assert_int_equal(an_get(play_report(&p), "tasks.pending")->count, 1);
	assert_int_equal(an_get_u64(row(0), "count", 0), 5);
	assert_int_equal(an_get_u64(row(0), "age_at_least", 0), 1);
	check_chain(row(0), chain, 3);
	assert_int_equal(an_get(play_report(&p), "tasks.operations_begun")->kind, AN_NULL);
	assert_true(play_finds(&p, "tasks.stuck"));
	/* Which runtime it is did not come: it is not called an old one for that. */
	assert_non_null(strstr(evidence("tasks.older-invisible"),
			       "0 operations begun and 0 ended while recording"));
	play_end(&p);
}

static void what_has_ended_is_not_pending(void **state)
{
	(void)state;
	begin();
	request(10, 1, true);
	wait_end(2, 1000000, 5); /* the waiter hears first */
	op_end(11, 6);
	wait_end(2, 11, 6.1);
	op_end(12, 6.2);
	wait_end(2, 12, 6.3);
	op_end(13, 6.4);
	op_end(99, 7); /* begun before the session */
	names(3000);
	assert_int_equal(an_get(play_report(&p), "tasks.pending")->count, 0);
	assert_int_equal(number("tasks.operations_ended"), 3);
	assert_int_equal(number("tasks.healthy"), 0);
	assert_false(play_finds(&p, "tasks.stuck"));
	play_end(&p);
}

/* A loop around a delay is well as long as it keeps its rhythm. */
static void loops_are_healthy(void **state)
{
	(void)state;
	for (int operations = 0; operations < 2; operations++) {
		begin();
		for (uint32_t i = 0; i < 50; i++) {
			if (operations)
				op_begin(100 + i, "Task.Delay", LOOP, i * 50.0);
			wait_begin(1, 100 + i, ASYNC, 2, LOOP, i * 50.0);
			if (i == 49)
				break;
			wait_end(1, 100 + i, i * 50.0 + 49);
			if (operations)
				op_end(100 + i, i * 50.0 + 49);
		}
		names(2480);
		assert_int_equal(an_get(play_report(&p), "tasks.pending")->count, 0);
		assert_int_equal(number("tasks.healthy"), 1);
		play_end(&p);
	}
}

static void a_loop_that_stops_is_pending(void **state)
{
	(void)state;
	begin();
	for (uint32_t i = 0; i < 10; i++) {
		wait_begin(1, 100 + i, ASYNC, 2, LOOP, i * 50.0);
		if (i < 9)
			wait_end(1, 100 + i, i * 50.0 + 49);
	}
	names(10000);
	assert_int_equal(an_get(play_report(&p), "tasks.pending")->count, 1);
	assert_string_equal(an_get_text(row(0), "method", ""), "Shop.Api.LoopAsync");
	assert_int_equal(number("tasks.healthy"), 0);
	assert_true(play_finds(&p, "tasks.stuck"));
	play_end(&p);
}

static void threads_that_block_are_rows(void **state)
{
	(void)state;
	begin();
	op_begin(50, "Task.Delay", RUN, 1);
	for (uint64_t thread = 100; thread < 105; thread++)
		wait_begin(thread, 50, SYNC, 0, BLOCKER, 10);
	wait_begin(200, 60, SYNC, 0, BLOCKER, 20);
	wait_end(200, 60, 30); /* got on */
	names(3000);
	assert_int_equal(an_get(play_report(&p), "tasks.pending")->count, 1);
	assert_string_equal(an_get_text(row(0), "state", ""), "blocked");
	assert_string_equal(an_get_text(row(0), "method", ""), "Shop.Api.Blocker");
	assert_int_equal(an_get_u64(row(0), "count", 0), 5);
	assert_int_equal(an_get_u64(row(0), "thread_id", 0), 100);
	assert_string_equal(an_get_text(row(0), "waiting_on", ""), "a timer (Task.Delay)");
	assert_string_equal(an_get_text(play_find(&p, "findings", "id", "tasks.sync-over-async"),
					"severity", ""),
			    "critical");
	play_end(&p);
}

/* A wait with a time limit ends although the task has not. */
static void the_end_of_a_blocked_wait_ends_nobody_elses(void **state)
{
	(void)state;
	begin();
	wait_begin(1, 9, ASYNC, 20, FETCH, 1);
	wait_begin(2, 9, SYNC, 0, BLOCKER, 2);
	wait_end(2, 9, 100);
	names(3000);
	assert_int_equal(an_get(play_report(&p), "tasks.pending")->count, 1);
	assert_string_equal(an_get_text(row(0), "method", ""), "Shop.Api.FetchAsync");
	play_end(&p);
}

/* Blocked since before the session: only the samples show it. */
static void samples_show_threads_that_blocked_earlier(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 100; i++) {
		play_stack(&p, 2, (uint64_t)WAIT, (uint64_t)BLOCKER + 8);
		play_sample(&p, 7, i, 1);
		play_stack(&p, 2, (uint64_t)SLEEP, (uint64_t)RUN + 8);
		play_sample(&p, 8, i, 1);
		if (i < 20) { /* ends, or goes on */
			play_stack(&p, 2, (uint64_t)WAIT, (uint64_t)BLOCKER + 8);
			play_sample(&p, 9, i, 1);
		}
	}
	for (int i = 100; i < 2000; i++) {
		play_stack(&p, 2, (uint64_t)WAIT, (uint64_t)BLOCKER + 8);
		play_sample(&p, 7, i, 1);
	}
	names(2000);
	assert_int_equal(an_get(play_report(&p), "tasks.pending")->count, 1);
	assert_string_equal(an_get_text(row(0), "method", ""), "Shop.Api.Blocker");
	assert_int_equal(an_get_u64(row(0), "count", 0), 1);
	assert_int_equal(an_get_u64(row(0), "thread_id", 0), 7);
	assert_int_equal(an_get_u64(row(0), "age_at_least", 0), 1);
	assert_true(an_get_f64(row(0), "age_ms", 0) == 2000);
	assert_true(play_finds(&p, "tasks.not-recorded")); /* but this is known */
	play_end(&p);
}

static void queued_tasks_are_one_row(void **state)
{
	(void)state;
	begin();
	for (uint32_t i = 0; i < 400; i++) {
		op_begin(1000 + i, "Task: <Run>b__0_0", RUN, i);
		scheduled(1000 + i, i);
	}
	three(8, 5, 1000, 500); /* one runs */
	names(3000);
	assert_string_equal(an_get_text(row(0), "method", ""), "Shop.Api.Run.<lambda>");
	assert_string_equal(an_get_text(row(0), "state", ""), "queued");
	assert_int_equal(an_get_u64(row(0), "count", 0), 399);
	assert_string_equal(an_get_text(row(1), "state", ""), "running");
	assert_int_equal(an_get_u64(row(1), "count", 0), 1);
	assert_int_equal(number("tasks.scheduled"), 400);
	assert_int_equal(number("tasks.started"), 1);
	assert_true(play_finds(&p, "tasks.queued"));
	play_end(&p);
}

/* Without operations the end of a task is 9. */
static void completed_tasks_leave(void **state)
{
	(void)state;
	begin();
	scheduled(5, 1);
	three(8, 2, 5, 2);
	three(9, 2, 5, 3);
	names(3000);
	assert_int_equal(an_get(play_report(&p), "tasks.pending")->count, 0);
	play_end(&p);
}

static void a_circle_of_awaits_is_a_deadlock(void **state)
{
	(void)state;
	begin();
	op_begin(1, "Async: <HandleAsync>d__4", HANDLE, 1);
	op_begin(2, "Async: <PriceAsync>d__3", PRICE, 1);
	op_begin(3, "Async: <FetchAsync>d__2", FETCH, 1);
	wait_begin(1, 2, ASYNC, 1, HANDLE, 2);
	wait_begin(1, 3, ASYNC, 2, PRICE, 2);
	wait_begin(1, 1, ASYNC, 3, FETCH, 2);
	wait_begin(1, 4, ASYNC, 4, FETCH, 2); /* itself: a task that is about to end */
	names(3000);
	assert_true(play_finds(&p, "tasks.deadlock"));
	assert_int_equal(an_get(play_report(&p), "tasks.pending")->count, 1);
	assert_non_null(strstr(an_get_text(row(0), "waiting_on", ""), "each other"));
	play_end(&p);
}

static void a_queued_continuation_is_ready(void **state)
{
	(void)state;
	begin();
	play_stack(&p, 1, (uint64_t)FETCH);
	three(12, 1, 77, 1);
	play_stack(&p, 1, (uint64_t)PRICE);
	three(12, 1, 78, 1);
	{
		struct build b = { 0 };

		build_u32(&b, 78);
		tpl(19, 2, 2, &b);
	}
	names(3000);
	assert_int_equal(an_get(play_report(&p), "tasks.pending")->count, 1);
	assert_string_equal(an_get_text(row(0), "state", ""), "ready");
	assert_string_equal(an_get_text(row(0), "method", ""), "Shop.Api.FetchAsync");
	play_end(&p);
}

static void no_task_events_is_said_and_null(void **state)
{
	(void)state;
	begin();
	names(10);
	assert_int_equal(an_get(play_report(&p), "tasks.pending")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "tasks.healthy")->kind, AN_NULL);
	assert_true(play_finds(&p, "tasks.not-recorded"));
	assert_false(play_finds(&p, "tasks.older-invisible"));
	play_end(&p);
}

static void short_payloads_are_survived(void **state)
{
	static const uint32_t ids[] = { 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 27 };

	(void)state;
	begin();
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		for (size_t bytes = 0; bytes < 24; bytes++) {
			struct build b = { 0 };

			for (size_t k = 0; k < bytes; k++)
				build_u8(&b, 0xff);
			tpl(ids[i], 1, 1, &b);
		}
	}
	names(10);
	play_report(&p);
	assert_int_equal(p.status, NT_OK);
	play_end(&p);
}

/* One call has ended after so long, another waits for age_ms. */
static const char *rule_of(double ended_ms, double age_ms, bool timer)
{
	static char rule[32];
	const struct an_value *v;

	begin();
	if (ended_ms > 0) {
		op_begin(10, "Async: <FetchAsync>d__2", FETCH, 1);
		op_end(10, 1 + ended_ms);
	}
	op_begin(20, "Async: <FetchAsync>d__2", FETCH, 100);
	if (timer)
		op_begin(21, "Task.Delay", FETCH, 100);
	wait_begin(1, timer ? 21 : 1000000, ASYNC, 20, FETCH, 100);
	names(100 + age_ms);
	v = row(0);
	snprintf(rule, sizeof(rule), "%s", v ? an_get_text(v, "rule", "none") : "healthy");
	assert_int_equal(strcmp(rule, "none") && strcmp(rule, "healthy"),
			 play_finds(&p, "tasks.stuck"));
	play_end(&p);
	return rule;
}

static void what_is_stuck_depends_on_its_kind(void **state)
{
	(void)state;
	assert_string_equal(rule_of(0, 2000, false), "none-ended");
	assert_string_equal(rule_of(0, 1999.9, false), "none");
	/* three times as long as the longest that ended */
	assert_string_equal(rule_of(700, 2100, false), "none");
	assert_string_equal(rule_of(700, 2100.1, false), "longer-than-ended");
	assert_string_equal(rule_of(1, 1999.9, false), "none");
	assert_string_equal(rule_of(1, 2000, false), "longer-than-ended");
	assert_string_equal(rule_of(0, 9999, true), "healthy");
	assert_string_equal(rule_of(0, 20000, true), "none"); /* shown, but a timer ends */
}

/* A service may run for ever; one that takes so much longer than others of its kind is odd. */
static void long_running_depends_on_its_kind(void **state)
{
	(void)state;
	for (int ended = 0; ended < 2; ended++) {
		begin();
		if (ended) {
			op_begin(10, "Task: <Run>b__0_0", RUN, 1);
			op_end(10, 501);
		}
		op_begin(20, "Task: <Run>b__0_0", RUN, 100);
		scheduled(20, 100);
		three(8, 5, 20, 101);
		names(2100);
		assert_string_equal(an_get_text(row(0), "state", ""), "running");
		assert_int_equal(play_finds(&p, "tasks.long-running"), ended);
		assert_false(play_finds(&p, "tasks.stuck"));
		if (ended)
			assert_string_equal(
				an_get_text(play_find(&p, "findings", "id", "tasks.long-running"),
					    "severity", ""),
				"info");
		play_end(&p);
	}
}

/* The thread's stack stands above the chain of what it waits for. */
static void a_blocked_thread_has_stack_and_chain(void **state)
{
	const struct an_value *v;

	(void)state;
	begin();
	request(10, 1, true);
	wait_begin(100, 13, SYNC, 0, BLOCKER, 10);
	names(3000);
	v = play_find(&p, "tasks.pending", "state", "blocked");
	assert_non_null(v);
	check_chain(v, chain, 3);
	assert_string_equal(an_get(v, "frames")->first->text, "Shop.Api.Blocker");
	assert_non_null(strstr(evidence("tasks.sync-over-async"),
			       "chain: Shop.Api.FetchAsync <- Shop.Api.PriceAsync"));
	assert_string_equal(an_get_text(play_find(&p, "findings", "id", "tasks.sync-over-async"),
					"severity", ""),
			    "warning");
	play_end(&p);
}

/* What it waits for is queued: perhaps for the very thread that waits. */
static void blocked_on_queued_work_is_critical(void **state)
{
	(void)state;
	begin();
	op_begin(50, "Task: <Run>b__0_0", RUN, 1);
	scheduled(50, 1);
	wait_begin(100, 50, SYNC, 0, BLOCKER, 10);
	names(3000);
	assert_string_equal(an_get_text(play_find(&p, "findings", "id", "tasks.sync-over-async"),
					"severity", ""),
			    "critical");
	assert_non_null(strstr(evidence("tasks.sync-over-async"), "only needs a thread"));
	play_end(&p);
}

/* Ten thousand awaits in a row: both ends are kept, and the innermost is the right one. */
static void a_long_chain_keeps_both_ends(void **state)
{
	const struct an_value *v;

	(void)state;
	begin();
	op_begin(1, "Async: <FetchAsync>d__2", FETCH, 1);
	wait_begin(1, 2000000, ASYNC, 1, FETCH, 1);
	for (uint32_t i = 2; i <= 10000; i++) {
		op_begin(i, i == 10000 ? "Async: <HandleAsync>d__4" : "Async: <PriceAsync>d__3",
			 i == 10000 ? HANDLE : PRICE, 1);
		wait_begin(1, i - 1, ASYNC, i, i == 10000 ? HANDLE : PRICE, 1);
	}
	names(5000);
	assert_int_equal(an_get(play_report(&p), "tasks.pending")->count, 1);
	assert_string_equal(an_get_text(row(0), "method", ""), "Shop.Api.HandleAsync");
	v = an_get(row(0), "chain");
	assert_string_equal(v->first->text, "Shop.Api.FetchAsync");
	assert_string_equal(v->last->text, "Shop.Api.HandleAsync");
	assert_int_equal(v->count, 64); /* with "..." for what is left out, without what ends it */
	assert_non_null(strstr(an_get_text(row(0), "waiting_on", ""), "TaskCompletionSource"));
	assert_true(play_finds(&p, "tasks.stuck"));
	play_end(&p);
}

/* Many outermost ones lead into one circle: each walk ends. */
static void a_circle_that_many_wait_for(void **state)
{
	(void)state;
	begin();
	wait_begin(1, 2, ASYNC, 1, HANDLE, 1);
	wait_begin(1, 3, ASYNC, 2, PRICE, 1);
	wait_begin(1, 1, ASYNC, 3, FETCH, 1);
	for (uint32_t i = 100; i < 50000; i++)
		wait_begin(1, 1, ASYNC, i, HANDLE, 1);
	names(3000);
	assert_true(play_finds(&p, "tasks.deadlock"));
	play_end(&p);
}

/* Finished work leaves nothing behind. */
static void memory_does_not_grow_with_finished_work(void **state)
{
	struct failalloc fa;
	size_t bytes = 0;

	(void)state;
	failalloc_init(&fa, 0);
	assert_true(play_begin(&p, &fa.alloc, classes, NULL));
	for (uint32_t i = 0; i < 60000; i++) {
		uint32_t id = 10 + i * 2;

		op_begin(id, "Async: <FetchAsync>d__2", FETCH, i);
		wait_begin(1, id, ASYNC, id + 1, HANDLE, i);
		wait_end(1, id, i + 0.4);
		op_end(id, i + 0.5);
		if (i == 10000)
			bytes = fa.bytes;
	}
	assert_int_equal(fa.bytes, bytes);
	play_end(&p);
	assert_int_equal(fa.live, 0);
}

static void too_much_pending_work_is_counted(void **state)
{
	struct failalloc fa;

	(void)state;
	failalloc_init(&fa, 0);
	assert_true(play_begin(&p, &fa.alloc, classes, NULL));
	for (uint32_t i = 1; i <= 140000; i++)
		op_begin(i, "Async: <FetchAsync>d__2", FETCH, 1);
	names(3000);
	assert_int_equal(number("tasks.untracked"), 140000 - 128 * 1024);
	assert_int_equal(an_get_u64(row(0), "count", 0), 128 * 1024);
	assert_true(play_finds(&p, "tasks.too-many"));
	assert_true(fa.peak_bytes < 48 << 20);
	play_end(&p);
	assert_int_equal(fa.live, 0);
}

static uint32_t rng(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* The table against a plain array of who awaits whom. */
static void the_table_keeps_its_lists_straight(void **state)
{
	enum { N = 40 };
	uint32_t awaits[N] = { 0 }, seed = 3;
	struct task_table t;

	(void)state;
	assert_int_equal(task_table_init(&t, &nt_alloc_default), NT_OK);
	for (int step = 0; step < 20000; step++) {
		uint32_t c = rng(&seed) % N, on = rng(&seed) % N, slot, target;

		if (rng(&seed) % 3 && c && on && c != on) {
			assert_int_equal(task_take(&t, on, &target), NT_OK);
			assert_int_equal(task_take(&t, c, &slot), NT_OK);
			task_await(&t, slot, target);
			awaits[c] = on;
		} else if (on && (target = task_find(&t, on)) != TASK_NONE) {
			task_resume_waiters(&t, target, step);
			for (uint32_t k = 0; k < N; k++)
				if (awaits[k] == on)
					awaits[k] = 0;
			task_prune(&t, target);
		}
		for (uint32_t k = 1; k < N; k++) {
			slot = task_find(&t, k);
			if (slot == TASK_NONE) {
				assert_int_equal(awaits[k], 0);
				continue;
			}
			target = t.tasks[slot].awaits;
			assert_int_equal(target == TASK_NONE ? 0 : t.tasks[target].id, awaits[k]);
		}
	}
	assert_int_equal(task_take(&t, 0, &seed), NT_OK);
	assert_int_equal(seed, TASK_NONE); /* 0 is no task */
	task_table_done(&t);
}

static void every_failing_allocation_is_survived(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		if (play_begin(&p, &fa.alloc, classes, NULL)) {
			for (uint32_t i = 0; i < 40; i++)
				request(10 + i * 10, i, true);
			wait_begin(100, 50, SYNC, 0, BLOCKER, 10);
			play_stack(&p, 2, (uint64_t)WAIT, (uint64_t)BLOCKER + 8);
			play_sample(&p, 7, 20, 1);
			names(3000);
			play_report(&p);
			assert_int_equal(p.status, fa.failed ? NT_ENOMEM : NT_OK);
		}
		play_end(&p);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_chains_are_one_row),
		cmocka_unit_test(without_operations_the_awaits_tell),
		cmocka_unit_test(what_has_ended_is_not_pending),
		cmocka_unit_test(loops_are_healthy),
		cmocka_unit_test(a_loop_that_stops_is_pending),
		cmocka_unit_test(threads_that_block_are_rows),
		cmocka_unit_test(the_end_of_a_blocked_wait_ends_nobody_elses),
		cmocka_unit_test(samples_show_threads_that_blocked_earlier),
		cmocka_unit_test(queued_tasks_are_one_row),
		cmocka_unit_test(what_is_stuck_depends_on_its_kind),
		cmocka_unit_test(long_running_depends_on_its_kind),
		cmocka_unit_test(a_blocked_thread_has_stack_and_chain),
		cmocka_unit_test(blocked_on_queued_work_is_critical),
		cmocka_unit_test(a_long_chain_keeps_both_ends),
		cmocka_unit_test(a_circle_that_many_wait_for),
		cmocka_unit_test(completed_tasks_leave),
		cmocka_unit_test(a_circle_of_awaits_is_a_deadlock),
		cmocka_unit_test(a_queued_continuation_is_ready),
		cmocka_unit_test(no_task_events_is_said_and_null),
		cmocka_unit_test(short_payloads_are_survived),
		cmocka_unit_test(memory_does_not_grow_with_finished_work),
		cmocka_unit_test(too_much_pending_work_is_counted),
		cmocka_unit_test(the_table_keeps_its_lists_straight),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
