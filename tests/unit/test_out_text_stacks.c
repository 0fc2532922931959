/* SPDX-License-Identifier: MIT */
/* The tree of threads' stacks as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/report/out_text.h"

static struct an_report *report;
static struct an_value *list;

/* frames: separated by spaces, the innermost first. */
static struct an_value *thread(uint64_t id, const char *name, const char *state, const char *what,
			       bool own, const char *frames)
{
	struct an_value *v = an_add_object(list, NULL), *f;
	char text[256], *rest = text, *word;

	an_add_uint(v, "thread_id", id);
	an_add_text(v, "name", name);
	an_add_text(v, "state", state);
	if (what)
		an_add_text(v, "waiting_on", what);
	else
		an_add_null(v, "waiting_on");
	an_add_null(v, "cpu_ms");
	an_add_bool(v, "managed", *frames != '\0');
	an_add_bool(v, "own_code", own);
	f = an_add_array(v, "frames");
	snprintf(text, sizeof(text), "%s", frames);
	while ((word = strsep(&rest, " ")) != NULL)
		if (*word)
			an_add_text(f, NULL, word);
	return v;
}

static int set_up(void **state)
{
	(void)state;
	report = an_report_new(NULL);
	list = an_add_array(an_report_root(report), "stacks");
	return report ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	report = an_report_free(report);
	return 0;
}

static void prints(const struct report_choice *choice, const char *want)
{
	struct out *o = calloc(1, sizeof(*o));

	assert_non_null(o);
	o->fd = -1;
	text_stacks(o, list, choice);
	assert_int_equal(o->error, 0);
	assert_true(o->used < sizeof(o->buffer));
	o->buffer[o->used] = '\0';
	assert_string_equal(o->buffer, want);
	free(o);
}

static void common_frames_are_shown_once(void **state)
{
	const struct report_choice choice = { 0 };

	(void)state;
	thread(7, "shop", "waiting", "Thread.Sleep", true, "Sleep Run Main");
	thread(9, "a", "waiting", "a lock", true, "Enter A Start");
	thread(10, "b", "waiting", "a lock", true, "Enter B Start");
	thread(12, "b", "waiting", "a task", true, "Enter B Start");
	thread(11, "b", "waiting", "a lock", true, "Enter B Start");
	thread(20, "tp", "waiting", "work", false, "Wait Loop Start");
	thread(21, "tp", "waiting", "work", false, "Wait Loop Start");
	thread(30, "native", "waiting", NULL, false, "");
	prints(&choice, "\nSTACKS\n"
			"  7 threads with managed code, 1 without\n"
			"\n"
			"   4 Start\n"
			"        3 B\n"
			"          Enter\n"
			"          = waits for a lock: 10 b, 11 b\n"
			"          = waits for a task: 12 b\n"
			"        1 A\n"
			"          Enter\n"
			"          = waits for a lock: 9 a\n"
			"\n"
			"   1 Main\n"
			"     Run\n"
			"     Sleep\n"
			"     = sleeps: 7 shop\n"
			"\n"
			"  the runtime's own threads\n"
			"   2 tp: waits for work (20, 21)\n"
			"\n"
			"  threads without managed code on their stack\n"
			"   1 native: waits (30)\n");
}

/* A stack may be the beginning of another. */
static void threads_may_end_on_the_way(void **state)
{
	const struct report_choice choice = { 0 };

	(void)state;
	thread(1, "x", "running", NULL, true, "A Main");
	thread(2, "x", "ready", NULL, true, "B A Main");
	thread(3, "x", "unknown", NULL, true, "C A Main");
	thread(4, "x", "stopped", NULL, true, "C A Main");
	prints(&choice, "\nSTACKS\n"
			"  4 threads with managed code\n"
			"\n"
			"   4 Main\n"
			"     A\n"
			"     = running: 1 x\n"
			"        2 C\n"
			"          = runs or waits: 3 x\n"
			"          = stopped: 4 x\n"
			"        1 B\n"
			"          = ready, but gets no processor: 2 x\n");
}

static void one_after_the_other(void **state)
{
	const struct report_choice choice = { .no_merge = true };
	struct an_value *v;

	(void)state;
	v = thread(1, "x", "waiting", "a lock", true, "A Main");
	an_add_uint(v, "owner_thread_id", 2);
	thread(2, "y", "waiting", "work", false, "Loop");
	prints(&choice, "\nSTACKS\n"
			"  2 threads with managed code\n"
			"\n"
			"  thread 1 x: waits for a lock held by thread 2\n"
			"      A\n"
			"      Main\n"
			"\n"
			"  thread 2 y: waits for work\n"
			"      Loop\n");
}

static void the_runtimes_own_on_request(void **state)
{
	const struct report_choice choice = { .all_stacks = true };

	(void)state;
	thread(2, "y", "waiting", "work", false, "Wait Loop");
	prints(&choice, "\nSTACKS\n"
			"  1 thread with managed code\n"
			"\n"
			"   1 Loop\n"
			"     Wait\n"
			"     = waits for work: 2 y\n");
}

static void nothing_is_not_recorded(void **state)
{
	(void)state;
	prints(&(struct report_choice){ 0 }, "\nSTACKS\n  not recorded\n");
}

/* A thousand frames, ten thousand threads that differ in each: no recursion, no square of it. */
static void deep_and_many(void **state)
{
	enum { DEPTH = 1000, MANY = 2000 };
	const struct report_choice choice = { 0 };
	struct out *o = calloc(1, sizeof(*o));

	(void)state;
	assert_non_null(o);
	o->fd = -1;
	for (unsigned i = 0; i < MANY; i++) {
		struct an_value *v = thread(i, "x", "running", NULL, true, "leaf");
		struct an_value *frames = v->last;

		for (unsigned k = 0; k < (i < 3 ? DEPTH : 5); k++)
			an_add_text(frames, NULL, k == i % 5 ? "odd" : "even");
	}
	o->error = -1; /* nothing is written: only that it ends */
	text_stacks(o, list, &choice);
	free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(common_frames_are_shown_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(threads_may_end_on_the_way, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_after_the_other, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_runtimes_own_on_request, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_is_not_recorded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(deep_and_many, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
