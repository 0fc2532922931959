/* SPDX-License-Identifier: MIT */
/* Pending async chains out of made-up heaps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/heap/tasks_heap.h"
#include "tests/support/failalloc.h"
#include "tests/support/heap_scene.h"

#define BOX(method) "AsyncStateMachineBox`1[System.Int32,Shop.Api+<" method ">d__1]"
#define TASK	    "System.Threading.Tasks.Task`1[System.Int32]"
#define SOURCE	    "System.Threading.Tasks.TaskCompletionSource`1[System.Int32]"
#define CONTEXT	    "System.Threading.ExecutionContext"
#define LIST	    "System.Collections.Generic.List`1[System.Object]"

static const struct an_class *const classes[] = { &an_class_tasks, NULL };

static struct play p;
static struct heap_scene h;

static void begin(void)
{
	assert_true(play_begin(&p, NULL, classes, NULL));
	heap_begin(&h, &p);
}

static void end(void)
{
	play_end(&p);
	heap_end(&h);
}

/* An async method that awaits something, with a continuation (0: none), as Release builds have it.
 */
static uint64_t await_in(const char *box_type, uint64_t awaited, uint64_t continuation)
{
	uint64_t box = heap_object(&h, box_type);
	uint64_t context = heap_object(&h, CONTEXT);

	if (continuation)
		heap_edges(&h, box, 4, context, continuation, box, awaited);
	else
		heap_edges(&h, box, 3, context, box, awaited);
	return box;
}

static const struct an_value *row(size_t i)
{
	return play_row(&p, "tasks.pending", i);
}

static size_t rows(void)
{
	const struct an_value *v = an_get(play_report(&p), "tasks.pending");

	assert_non_null(v);
	return v->kind == AN_ARRAY ? v->count : 0;
}

/* "A,B,C" of the row's chain. */
static const char *chain(size_t i)
{
	static char buf[4096];
	const struct an_value *v = an_get(row(i), "chain");
	size_t n = 0;

	buf[0] = '\0';
	for (v = v->first; v && n < sizeof(buf); v = v->next)
		n += (size_t)snprintf(buf + n, sizeof(buf) - n, "%s%s", n ? "," : "",
				      strncmp(v->text, "Shop.Api.", 9) ? v->text : v->text + 9);
	return buf;
}

static const char *text(size_t i, const char *member)
{
	return an_get_text(row(i), member, "(none)");
}

static uint64_t number(size_t i, const char *member)
{
	return an_get_u64(row(i), member, UINT64_MAX);
}

/* n calls of Handle -> Price -> Fetch -> one task of a TaskCompletionSource in a static field. */
static void stuck(size_t n)
{
	uint64_t task = heap_object(&h, TASK);
	uint64_t source = heap_object(&h, SOURCE);

	heap_edges(&h, source, 1, task);
	heap_static(&h, source, "never");
	for (size_t i = 0; i < n; i++) {
		uint64_t handle = heap_object(&h, BOX("Handle"));
		uint64_t price = heap_object(&h, BOX("Price"));
		uint64_t fetch = await_in(BOX("Fetch"), task, price);

		heap_edges(&h, price, 3, handle, price, fetch);
		heap_edges(&h, handle, 2, handle, price);
	}
}

static void equal_chains_are_one_row(void **state)
{
	(void)state;
	begin();
	stuck(25);
	heap_walk(&h, 1, 10);
	assert_int_equal(rows(), 1);
	assert_string_equal(chain(0), "Fetch,Price,Handle");
	assert_string_equal(text(0, "method"), "Shop.Api.Handle");
	assert_int_equal(number(0, "count"), 25);
	assert_string_equal(text(0, "state"), "pending");
	assert_string_equal(text(0, "leaf"), "source");
	assert_string_equal(text(0, "source"), "heap");
	assert_string_equal(text(0, "kept_by"), "static field 'never', TaskCompletionSource<int>");
	assert_int_equal(an_get(row(0), "stuck")->kind, AN_NULL);
	assert_true(play_finds(&p, "tasks.one-walk"));
	assert_false(play_finds(&p, "tasks.stuck"));
	end();
}

/* Two walks; the same objects in both. */
static void walk_twice(uint64_t moved_by, bool told)
{
	heap_walk(&h, 1, 10);
	if (moved_by)
		heap_move(&h, moved_by, told, 2000);
	heap_walk(&h, 2, 2010);
}

static void three_in_both_walks_are_stuck(void **state)
{
	(void)state;
	begin();
	stuck(3);
	walk_twice(0, true);
	assert_true(play_finds(&p, "tasks.stuck"));
	assert_false(play_finds(&p, "tasks.one-walk"));
	assert_int_equal(number(0, "same_objects"), 3);
	assert_string_equal(text(0, "state"), "stuck");
	assert_true(an_get_f64(row(0), "age_ms", 0) > 1999);
	end();
}

static void two_are_told_but_not_found_fault_with(void **state)
{
	(void)state;
	begin();
	stuck(2);
	walk_twice(0, true);
	assert_false(play_finds(&p, "tasks.stuck"));
	assert_string_equal(text(0, "state"), "stuck");
	assert_int_equal(number(0, "count"), 2);
	end();
}

static void moved_objects_are_the_same(void **state)
{
	(void)state;
	begin();
	stuck(3);
	walk_twice(0x12340, true);
	assert_int_equal(number(0, "same_objects"), 3);
	assert_true(play_finds(&p, "tasks.stuck"));
	end();
}

/* The loop is the same object; what it waits for is a new one each time. */
static void a_loop_that_gets_on_is_not_stuck(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 5; i++)
		await_in(BOX("Loop"), heap_object(&h, TASK), 0);
	heap_walk(&h, 1, 10);
	for (size_t i = 0; i < 5; i++) { /* loops, each with its task in front */
		uint64_t loop = h.objects[3 * i + 1].address;
		uint64_t context = h.objects[3 * i + 2].address;

		assert_int_equal(h.objects[3 * i + 1].edge_count, 3);
		heap_edges(&h, loop, 3, context, loop, heap_object(&h, TASK));
	}
	heap_walk(&h, 2, 2010);
	assert_int_equal(number(0, "count"), 5);
	assert_int_equal(number(0, "count_before"), 5);
	assert_int_equal(number(0, "same_objects"), 0);
	assert_false(play_finds(&p, "tasks.stuck"));
	end();
}

/* Busy work of the same shape: every object is another one. */
static void others_of_the_same_shape_are_not_stuck(void **state)
{
	(void)state;
	begin();
	stuck(3);
	heap_walk(&h, 1, 10);
	heap_move(&h, 0x12340, true, 2000); /* told, */
	heap_move(&h, 0x100000, false, 2000); /* but then there are others */
	heap_walk(&h, 2, 2010);
	assert_int_equal(number(0, "same_objects"), 0);
	assert_int_equal(number(0, "count_before"), 3);
	assert_string_equal(text(0, "state"), "pending");
	assert_false(play_finds(&p, "tasks.stuck"));
	end();
}

static void without_moves_in_the_trace_the_shape_tells(void **state)
{
	const struct an_value *f;

	(void)state;
	begin();
	stuck(3);
	walk_twice(0x12340, false);
	assert_int_equal(number(0, "same_objects"), 0);
	assert_string_equal(text(0, "state"), "stuck");
	f = play_find(&p, "findings", "id", "tasks.stuck");
	assert_non_null(f);
	assert_non_null(strstr(an_get_text(f, "evidence", ""), "likely, not certain"));
	end();
}

static void a_thread_that_waits_is_blocked(void **state)
{
	uint64_t task, mres;

	(void)state;
	begin();
	task = heap_object(&h, TASK);
	mres = heap_object(&h, "SetOnInvokeMres");
	await_in(BOX("Price"), task, mres);
	walk_twice(0, true);
	assert_int_equal(rows(), 1);
	assert_string_equal(text(0, "state"), "blocked");
	assert_string_equal(text(0, "leaf"), "task");
	assert_true(play_finds(&p, "tasks.sync-over-async"));
	end();
}

/* .Wait() on a timer is slow, but ends. */
static void waiting_for_a_timer_is_no_fault(void **state)
{
	uint64_t delay, timer, mres;

	(void)state;
	begin();
	delay = heap_object(&h, "DelayPromise");
	timer = heap_object(&h, "System.Threading.TimerQueueTimer");
	mres = heap_object(&h, "SetOnInvokeMres");
	heap_edges(&h, delay, 2, mres, timer);
	for (int i = 0; i < 5; i++)
		await_in(BOX("Loop"), heap_object(&h, "DelayPromise"), 0);
	walk_twice(0, true);
	assert_int_equal(rows(), 2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(text(i, "leaf"), "delay");
		assert_false(an_get_u64(row(i), "stuck", 1));
	}
	assert_false(play_finds(&p, "tasks.stuck"));
	assert_false(play_finds(&p, "tasks.sync-over-async"));
	end();
}

/* What stands behind the own box is what is awaited; in front of it are mere variables. */
static void the_last_edge_behind_the_box_counts(void **state)
{
	uint64_t task, other, token, box;

	(void)state;
	begin();
	task = heap_object(&h, TASK);
	other = await_in(BOX("Started"), heap_object(&h, TASK), 0);
	token = heap_object(&h, "System.Threading.CancellationTokenSource");
	box = heap_object(&h, BOX("Main"));
	heap_edges(&h, box, 5, heap_object(&h, CONTEXT), other, box, token, task);
	heap_walk(&h, 1, 10);
	assert_int_equal(rows(), 2); /* Started is not awaited by Main */
	assert_string_equal(chain(0), "Main");
	assert_string_equal(chain(1), "Started");
	end();
}

/* Behind the box is nothing but a token: what it awaits cannot be seen. */
static void what_is_no_awaitable_is_not_awaited(void **state)
{
	uint64_t token, box;

	(void)state;
	begin();
	token = heap_object(&h, "System.Threading.CancellationTokenSource");
	box = heap_object(&h, BOX("Main"));
	heap_edges(&h, box, 2, box, token);
	box = heap_object(&h, BOX("Ended")); /* no edge to itself: it has ended */
	heap_edges(&h, box, 1, heap_object(&h, CONTEXT));
	heap_walk(&h, 1, 10);
	assert_int_equal(rows(), 0);
	assert_int_equal(an_get_u64(an_get(play_report(&p), "tasks.heap.walks")->first,
				    "methods_unknown", 9),
			 1);
	end();
}

static void debug_builds_and_iterators_have_holders(void **state)
{
	uint64_t task, box, holder, outer;

	(void)state;
	begin();
	task = heap_object(&h, TASK);
	box = heap_object(
		&h, "DebugFinalizableAsyncStateMachineBox`1[System.Int32,Shop.Api+<Get>d__1]");
	holder = heap_object(&h, "<Get>d__1");
	heap_edges(&h, box, 2, heap_object(&h, CONTEXT), holder);
	heap_edges(&h, holder, 3, heap_object(&h, "System.String"), box, task);
	/* An iterator is awaited by way of its variables. */
	outer = heap_object(&h, BOX("Outer"));
	heap_edges(&h, outer, 2, outer, holder);
	heap_walk(&h, 1, 10);
	assert_int_equal(rows(), 1);
	assert_string_equal(chain(0), "Get,Outer");
	end();
}

static void parts_of_combinations_are_found(void **state)
{
	uint64_t all, any, list, array, task, main_box, boxes[3];

	(void)state;
	begin();
	all = heap_object(&h, "WhenAllPromise");
	task = heap_object(&h, TASK);
	for (int i = 0; i < 3; i++)
		boxes[i] = await_in(i < 2 ? BOX("Part") : BOX("Other"), task, all);
	main_box = await_in(BOX("Main"), all, 0);
	heap_edges(&h, all, 1, main_box);
	any = heap_object(&h, "CompleteOnInvokePromise`1[System.Threading.Tasks.Task]");
	list = heap_object(&h, LIST);
	array = heap_object(&h, "System.Object[]");
	heap_edges(&h, list, 1, array);
	heap_edges(&h, array, 2, any, heap_object(&h, "System.Action"));
	heap_edges(&h, task, 1, list);
	heap_edges(&h, any, 1, await_in(BOX("Racer"), any, 0));
	heap_walk(&h, 1, 10);
	assert_int_equal(rows(), 3);
	assert_string_equal(chain(0), "Part,Task.WhenAll,Main");
	assert_int_equal(number(0, "count"), 2);
	assert_int_equal(number(0, "calls"), 1);
	assert_string_equal(chain(1), "Other,Task.WhenAll,Main");
	assert_string_equal(chain(2), "Task.WhenAny,Racer");
	assert_true(boxes[0] != 0);
	end();
}

static void run_and_continue_with_are_followed(void **state)
{
	uint64_t unwrap, task, cont, link, box;

	(void)state;
	begin();
	task = heap_object(&h, TASK);
	unwrap = heap_object(&h, "System.Threading.Tasks.UnwrapPromise`1[System.Int32]");
	await_in(BOX("Inner"), task, unwrap);
	heap_edges(&h, unwrap, 1, await_in(BOX("Main"), unwrap, 0));
	cont = heap_object(&h, "System.Threading.Tasks.ContinuationTaskFromTask");
	link = heap_object(&h, "System.Threading.Tasks.ContinueWithTaskContinuation");
	heap_edges(&h, link, 1, cont);
	box = await_in(BOX("First"), task, link);
	heap_edges(&h, cont, 2, heap_object(&h, "System.Action"), box);
	heap_walk(&h, 1, 10);
	assert_int_equal(rows(), 2);
	assert_string_equal(chain(0), "First,Task.ContinueWith");
	assert_string_equal(chain(1), "Inner,Task.Run,Main");
	end();
}

static void leaves_are_told_apart(void **state)
{
	static const struct {
		const char *type, *leaf;
	} kinds[] = {
		{ "TaskNode", "semaphore" },
		{ "DelayPromise", "delay" },
		{ "DelayPromiseWithCancellation", "delay" },
		{ "System.Threading.Channels.AsyncOperation`1[System.Int32]", "channel-read" },
		{ "System.Threading.Channels.BlockedReadAsyncOperation`1[System.Int32]",
		  "channel-read" },
		{ "System.Threading.Channels.WaitingWriteAsyncOperation", "channel-write" },
		{ "AwaitableSocketAsyncEventArgs", "io" },
		{ "Shop.OwnSource", "value-task" },
		{ "System.Threading.Tasks.Task", "task" },
		{ "WhenAllPromise", "combined" },
	};
	enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		uint64_t leaf, box;

		begin();
		leaf = heap_object(&h, kinds[i].type);
		box = await_in(BOX("Main"), leaf, 0);
		heap_edges(&h, leaf, 1, box);
		heap_walk(&h, 1, 10);
		assert_int_equal(rows(), 1);
		assert_string_equal(text(0, "leaf"), kinds[i].leaf);
		end();
	}
}

static void code_of_its_own_is_no_source(void **state)
{
	uint64_t task;

	(void)state;
	begin();
	task = heap_object(&h, TASK);
	heap_edges(&h, task, 2, heap_object(&h, "System.Action"), heap_object(&h, CONTEXT));
	for (int i = 0; i < 5; i++)
		await_in(BOX("Main"), task, 0);
	walk_twice(0, true);
	assert_string_equal(text(0, "leaf"), "work");
	assert_string_equal(text(0, "state"), "pending");
	assert_false(play_finds(&p, "tasks.stuck"));
	end();
}

static void circles_are_deadlocks(void **state)
{
	uint64_t a, b, head;

	(void)state;
	begin();
	a = heap_object(&h, BOX("A"));
	b = heap_object(&h, BOX("B"));
	heap_edges(&h, a, 2, a, b);
	heap_edges(&h, b, 2, b, a);
	head = heap_object(&h, BOX("Head"));
	heap_edges(&h, head, 2, head, a);
	heap_walk(&h, 1, 10);
	assert_true(play_finds(&p, "tasks.deadlock"));
	assert_int_equal(rows(), 2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(text(i, "leaf"), "cycle");
		assert_string_equal(text(i, "state"), "stuck");
	}
	end();
}

enum { DEEP = 10000, MANY = 100000 };

static void deep_chains_are_one_row(void **state)
{
	uint64_t awaited;

	(void)state;
	begin();
	awaited = heap_object(&h, TASK);
	for (int i = 0; i < DEEP; i++)
		awaited = await_in(BOX("Again"), awaited, 0);
	heap_walk(&h, 1, 10);
	assert_int_equal(rows(), 1);
	assert_int_equal(number(0, "depth"), DEEP);
	assert_int_equal(an_get(row(0), "chain")->count, 64);
	end();
}

static void a_circle_of_thousands_is_one_row(void **state)
{
	uint64_t first, last;

	(void)state;
	begin();
	first = last = heap_object(&h, BOX("Ring"));
	for (int i = 1; i < DEEP; i++)
		last = await_in(BOX("Ring"), last, 0);
	heap_edges(&h, first, 2, first, last);
	heap_walk(&h, 1, 10);
	assert_int_equal(rows(), 1);
	assert_int_equal(number(0, "depth"), DEEP);
	assert_true(play_finds(&p, "tasks.deadlock"));
	end();
}

static void a_hundred_thousand_are_one_row(void **state)
{
	uint64_t task;

	(void)state;
	begin();
	task = heap_object(&h, TASK);
	for (int i = 0; i < MANY; i++) {
		uint64_t box = heap_object(&h, BOX("Get"));

		heap_edges(&h, box, 2, box, task);
	}
	walk_twice(0x40000, true);
	assert_int_equal(rows(), 1);
	assert_int_equal(number(0, "count"), MANY);
	assert_int_equal(number(0, "same_objects"), MANY);
	end();
}

/* Paths double at each level: they are counted, not walked one by one. */
static void combinations_of_combinations_end(void **state)
{
	uint64_t all[40], task;

	(void)state;
	begin();
	task = heap_object(&h, TASK);
	for (int i = 0; i < 40; i++)
		all[i] = heap_object(&h,
				     i % 2 ? "WhenAllPromise" : "WhenAllPromise`1[System.Int32]");
	for (int i = 1; i < 39; i += 2) {
		uint64_t left = heap_object(&h, "WhenAllPromise"), right;

		right = heap_object(&h, "WhenAllPromise`1[System.Int64]");
		heap_edges(&h, all[i - 1], 2, left, right);
		heap_edges(&h, left, 1, all[i + 1]);
		heap_edges(&h, right, 1, all[i + 1]);
	}
	heap_edges(&h, task, 1, all[0]);
	heap_walk(&h, 1, 10);
	assert_true(rows() > 0);
	end();
}

/* "[N[N[…]]]", and arguments behind that: the method is the last one of the outermost brackets. */
static void nested_names_are_read(void **state)
{
	char type[1024] = "AsyncStateMachineBox`1[";
	uint64_t task;

	(void)state;
	begin();
	for (int i = 0; i < 20; i++)
		strcat(type, "Ns.G`2[System.Int32,");
	strcat(type, "System.String");
	for (int i = 0; i < 20; i++)
		strcat(type, "]");
	strcat(type, ",Shop.Api+<Get>d__1`1[System.Int32]]");
	task = heap_object(&h, TASK);
	await_in(type, task, 0);
	heap_walk(&h, 1, 10);
	assert_int_equal(rows(), 1);
	assert_non_null(strstr(chain(0), "Get"));
	assert_null(strstr(chain(0), "d__1"));
	end();
}

static void a_walk_of_young_objects_does_not_count(void **state)
{
	(void)state;
	begin();
	stuck(3);
	heap_walk(&h, 1, 10);
	h.generation = 0;
	h.object_count = 1;
	heap_walk(&h, 2, 500);
	assert_int_equal(an_get(play_report(&p), "tasks.heap.walks")->count, 1);
	assert_int_equal(number(0, "count"), 3);
	end();
}

static void losses_make_it_partial(void **state)
{
	(void)state;
	for (int which = 0; which < 3; which++) {
		begin();
		h.rows_an_event = 10;
		stuck(25);
		h.lose_node_event = which == 0 ? 3 : -1;
		h.lose_edge_event = which == 1 ? 3 : -1;
		h.no_end = which == 2;
		heap_walk(&h, 1, 10);
		assert_true(play_finds(&p, "tasks.heap-partial"));
		assert_false(an_get_u64(an_get(play_report(&p), "tasks.heap.walks")->first,
					"complete", 1));
		assert_true(rows() <= 2);
		end();
	}
}

static void a_whole_walk_is_not_partial(void **state)
{
	(void)state;
	begin();
	h.rows_an_event = 10;
	stuck(25);
	heap_walk(&h, 1, 10);
	assert_false(play_finds(&p, "tasks.heap-partial"));
	assert_int_equal(number(0, "count"), 25);
	end();
}

/* The second snapshot of .NET 8 names no types where another session knows them: said. */
static void types_without_names_are_said(void **state)
{
	(void)state;
	begin();
	stuck(3);
	h.types_told = 5; /* of 5: none is told */
	heap_walk(&h, 1, 10);
	assert_true(play_finds(&p, "tasks.heap-unnamed"));
	assert_int_equal(rows(), 0);
	end();
	begin();
	stuck(3);
	heap_walk(&h, 1, 10);
	assert_false(play_finds(&p, "tasks.heap-unnamed"));
	end();
}

/* The collection of a walk is a tool's doing; another one of the same kind is the program's. */
static void walks_are_not_induced_by_code(void **state)
{
	static const struct an_class *const both[] = { &an_class_gc, &an_class_tasks, NULL };

	(void)state;
	for (int code = 0; code < 2; code++) {
		assert_true(play_begin(&p, NULL, both, NULL));
		heap_begin(&h, &p);
		if (code)
			heap_walk(&h, 1, 5); /* no objects: no walk */
		stuck(3);
		heap_walk(&h, 2, 10);
		assert_int_equal(an_get_u64(play_report(&p), "gc.induced", 9), 1 + code);
		assert_int_equal(play_finds(&p, "gc.induced"), code);
		end();
	}
}

static void no_walk_is_null(void **state)
{
	(void)state;
	begin();
	assert_int_equal(an_get(play_report(&p), "tasks.heap")->kind, AN_NULL);
	assert_int_equal(an_get(play_report(&p), "tasks.pending")->kind, AN_NULL);
	end();
}

static void every_failing_allocation_is_survived(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		if (play_begin(&p, &fa.alloc, classes, NULL)) {
			heap_begin(&h, &p);
			stuck(2);
			walk_twice(0x1000, true);
			if (p.status == NT_OK)
				play_report(&p);
			heap_end(&h);
			assert_int_equal(p.status, fa.failed ? NT_ENOMEM : NT_OK);
		}
		play_end(&p);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_chains_are_one_row),
		cmocka_unit_test(three_in_both_walks_are_stuck),
		cmocka_unit_test(two_are_told_but_not_found_fault_with),
		cmocka_unit_test(moved_objects_are_the_same),
		cmocka_unit_test(a_loop_that_gets_on_is_not_stuck),
		cmocka_unit_test(others_of_the_same_shape_are_not_stuck),
		cmocka_unit_test(without_moves_in_the_trace_the_shape_tells),
		cmocka_unit_test(a_thread_that_waits_is_blocked),
		cmocka_unit_test(waiting_for_a_timer_is_no_fault),
		cmocka_unit_test(the_last_edge_behind_the_box_counts),
		cmocka_unit_test(what_is_no_awaitable_is_not_awaited),
		cmocka_unit_test(debug_builds_and_iterators_have_holders),
		cmocka_unit_test(parts_of_combinations_are_found),
		cmocka_unit_test(run_and_continue_with_are_followed),
		cmocka_unit_test(leaves_are_told_apart),
		cmocka_unit_test(code_of_its_own_is_no_source),
		cmocka_unit_test(circles_are_deadlocks),
		cmocka_unit_test(deep_chains_are_one_row),
		cmocka_unit_test(a_circle_of_thousands_is_one_row),
		cmocka_unit_test(a_hundred_thousand_are_one_row),
		cmocka_unit_test(combinations_of_combinations_end),
		cmocka_unit_test(nested_names_are_read),
		cmocka_unit_test(a_walk_of_young_objects_does_not_count),
		cmocka_unit_test(losses_make_it_partial),
		cmocka_unit_test(a_whole_walk_is_not_partial),
		cmocka_unit_test(types_without_names_are_said),
		cmocka_unit_test(walks_are_not_induced_by_code),
		cmocka_unit_test(no_walk_is_null),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
