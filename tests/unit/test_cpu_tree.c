/* SPDX-License-Identifier: MIT */
/* What the CPU section shows of its samples: trees, parts of them, generics, modules, tiers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failalloc.h"
#include "tests/support/play.h"

static const struct an_class *const classes[] = { &an_class_cpu, NULL };

static struct play p;

enum { EXTERNAL = 1, MANAGED = 2 };

enum {
	MAIN = 0x1000,
	HOT = 0x2000,
	WARM = 0x3000,
	KICKOFF = 0x4000, /* FetchAsync, which starts ... */
	BODY = 0x5000, /* ... its state machine */
	START = 0x6000,
	BOX = 0x7000, /* carries on state machines */
	RUN = 0x8000,
	LOOP = 0x9000,
	LIST_INT = 0xa000,
	LIST_LONG = 0xb000,
	TIER0 = 0xc000,
	OTHER = 0xd000
};

static void begin(const struct an_cpu_options *cpu)
{
	struct an_options options = { .top = 0 };

	if (cpu)
		options.cpu = *cpu;
	assert_true(play_begin(&p, NULL, classes, &options));
}

/* MethodLoadVerbose with a tier in its flags. */
static void tiered(uint64_t start, const char *type, const char *name, unsigned tier)
{
	struct build b = { 0 };

	p.frame_count = 0;
	build_u64(&b, start);
	build_u64(&b, 0);
	build_u64(&b, start);
	build_u32(&b, 0x1000);
	build_u32(&b, 0);
	build_u32(&b, tier << 7);
	build_utf16(&b, type);
	build_utf16(&b, name);
	build_utf16(&b, "void  ()");
	build_u16(&b, 0);
	build_u64(&b, 0);
	play_event(&p, NT_PROV_RUNDOWN, 144, 1, 1, 100000, &b);
}

static void finish(void)
{
	struct build b = { 0 };

	tiered(MAIN, "Shop.Program", "Main", 4);
	tiered(HOT, "Shop.Cpu", "Hot", 4);
	tiered(WARM, "Shop.Cpu", "Warm", 4);
	tiered(KICKOFF, "Shop.Web", "FetchAsync", 4);
	tiered(BODY, "Shop.Web+<FetchAsync>d__2", "MoveNext", 4);
	tiered(START, "System.Runtime.CompilerServices.AsyncMethodBuilderCore", "Start", 4);
	tiered(BOX,
	       "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1"
	       "[System.__Canon,System.__Canon]",
	       "MoveNext", 4);
	tiered(RUN, "System.Threading.ExecutionContext", "RunInternal", 4);
	tiered(LOOP, "System.Threading.ThreadPoolWorkQueue", "Dispatch", 4);
	tiered(LIST_INT, "System.Collections.Generic.List`1[System.Int32]", "Add", 4);
	tiered(LIST_LONG, "System.Collections.Generic.List`1[System.Int64]", "Add", 4);
	tiered(TIER0, "Shop.Slow", "Path", 3);
	for (int i = 0; i < 6; i++)
		build_u16(&b, 2);
	build_u16(&b, 10);
	for (int i = 0; i < 3; i++)
		build_u16(&b, 0);
	play_event(&p, NT_PROV_RUNDOWN, 187, 0, 1, 100000, &b);
}

/* One sample of thread 1 for each; times go on by a millisecond. */
static double now;

static void sample(int count)
{
	for (int i = 0; i < count; i++)
		play_sample(&p, 1, now++, MANAGED);
}

static const struct an_value *line(size_t n)
{
	return play_row(&p, "cpu.tree", n);
}

static void check_line(size_t n, uint64_t depth, const char *method, uint64_t total, uint64_t self)
{
	assert_non_null(line(n));
	assert_string_equal(an_get_text(line(n), "method", ""), method);
	assert_int_equal(an_get_u64(line(n), "depth", 99), depth);
	assert_int_equal(an_get_u64(line(n), "inclusive_samples", 0), total);
	assert_int_equal(an_get_u64(line(n), "exclusive_samples", 99999), self);
}

/* Main calls Hot (30), Warm (20, 5 of them in Hot), and itself works 10. */
static void play_calls(void)
{
	now = 0;
	play_stack(&p, 2, (uint64_t)HOT, (uint64_t)MAIN + 8);
	sample(30);
	play_stack(&p, 2, (uint64_t)WARM, (uint64_t)MAIN + 8);
	sample(15);
	play_stack(&p, 3, (uint64_t)HOT, (uint64_t)WARM + 8, (uint64_t)MAIN + 8);
	sample(5);
	play_stack(&p, 1, (uint64_t)MAIN);
	sample(10);
	finish();
}

static void callees_under_their_callers(void **state)
{
	const struct an_cpu_options tree = { .tree = AN_TREE_CALLEES };

	(void)state;
	begin(&tree);
	play_calls();
	assert_int_equal(an_get(play_report(&p), "cpu.tree")->count, 4);
	assert_string_equal(an_get_text(play_report(&p), "cpu.tree_kind", ""), "callees");
	check_line(0, 0, "Shop.Program.Main", 60, 10);
	check_line(1, 1, "Shop.Cpu.Hot", 30, 30);
	check_line(2, 1, "Shop.Cpu.Warm", 20, 15);
	check_line(3, 2, "Shop.Cpu.Hot", 5, 5);
	assert_true(an_get_f64(line(1), "inclusive_percent", 0) == 50);
	play_end(&p);
	begin(NULL); /* not asked for */
	play_calls();
	assert_null(an_get(play_report(&p), "cpu.tree"));
	play_end(&p);
}

static void callers_under_their_callees(void **state)
{
	const struct an_cpu_options tree = { .tree = AN_TREE_CALLERS };

	(void)state;
	begin(&tree);
	play_calls();
	assert_int_equal(an_get(play_report(&p), "cpu.tree")->count, 7);
	check_line(0, 0, "Shop.Cpu.Hot", 35, 35);
	check_line(1, 1, "Shop.Program.Main", 30, 0);
	check_line(2, 1, "Shop.Cpu.Warm", 5, 0);
	check_line(3, 2, "Shop.Program.Main", 5, 0);
	check_line(4, 0, "Shop.Cpu.Warm", 15, 15);
	check_line(6, 0, "Shop.Program.Main", 10, 10);
	play_end(&p);
}

static void trees_are_cut_by_depth_and_share(void **state)
{
	struct an_cpu_options tree = { .tree = AN_TREE_CALLEES, .depth = 2 };

	(void)state;
	begin(&tree);
	play_calls();
	assert_int_equal(an_get(play_report(&p), "cpu.tree")->count, 3);
	play_end(&p);
	tree = (struct an_cpu_options){ .tree = AN_TREE_CALLEES, .min_percent = 34 };
	begin(&tree);
	play_calls();
	assert_int_equal(an_get(play_report(&p), "cpu.tree")->count, 2); /* 20 of 60 is less */
	play_end(&p);
	tree = (struct an_cpu_options){ .tree = AN_TREE_CALLERS, .depth = 1 };
	begin(&tree);
	play_calls();
	assert_int_equal(an_get(play_report(&p), "cpu.tree")->count, 3);
	play_end(&p);
}

/* Recursion is one step, however deep. */
static void recursion_is_one_step(void **state)
{
	const struct an_cpu_options tree = { .tree = AN_TREE_CALLEES };

	(void)state;
	begin(&tree);
	now = 0;
	p.frame_count = 4000;
	for (size_t i = 0; i < 3999; i++)
		p.stack[i] = HOT + 1 + i % 5;
	p.stack[3999] = MAIN + 8;
	sample(10);
	finish();
	assert_int_equal(an_get(play_report(&p), "cpu.tree")->count, 2);
	check_line(1, 1, "Shop.Cpu.Hot", 10, 10);
	assert_int_equal(an_get(play_report(&p), "cpu.hot_path")->count, 2);
	play_end(&p);
}

/* Two callers, two ways to wake it: one async method, once before and once after its await. */
static void async_methods_are_one_across_their_awaits(void **state)
{
	const struct an_cpu_options tree = { .tree = AN_TREE_CALLEES };
	const struct an_value *v;

	(void)state;
	begin(&tree);
	now = 0;
	play_stack(&p, 5, (uint64_t)HOT, (uint64_t)BODY + 8, (uint64_t)START + 8,
		   (uint64_t)KICKOFF + 8, (uint64_t)MAIN + 8);
	sample(10);
	/* carried on by the pool, */
	play_stack(&p, 5, (uint64_t)HOT, (uint64_t)BODY + 8, (uint64_t)RUN + 8, (uint64_t)BOX + 8,
		   (uint64_t)LOOP + 8);
	sample(20);
	/* and by whoever completed what it waited for */
	play_stack(&p, 6, (uint64_t)HOT, (uint64_t)BODY + 8, (uint64_t)RUN + 8, (uint64_t)BOX + 8,
		   (uint64_t)WARM + 8, (uint64_t)MAIN + 8);
	sample(30);
	finish();
	v = an_get(play_report(&p), "cpu.tree");
	assert_int_equal(v->count, 5);
	check_line(0, 0, "Shop.Web.FetchAsync", 50, 0);
	assert_true(an_get(line(0), "resumed")->u);
	check_line(1, 1, "Shop.Cpu.Hot", 50, 50);
	check_line(2, 0, "Shop.Program.Main", 10, 0);
	check_line(3, 1, "Shop.Web.FetchAsync", 10, 0);
	assert_null(an_get(line(3), "resumed"));
	check_line(4, 2, "Shop.Cpu.Hot", 10, 10);
	/* Who was on the stack is still counted. */
	v = play_find(&p, "cpu.methods", "raw", "Shop.Web+<FetchAsync>d__2.MoveNext");
	assert_int_equal(an_get_u64(v, "inclusive_samples", 0), 60);
	play_end(&p);
}

static bool has_text(void *ctx, const char *name)
{
	return strstr(name, ctx) != NULL;
}

static void stacks_are_chosen_by_method(void **state)
{
	static char warm_text[] = "Warm", main_text[] = "Main";
	struct an_matcher warm = { has_text, warm_text }, main_only = { has_text, main_text };
	struct an_cpu_options o = { .include = &warm };

	(void)state;
	begin(&o);
	play_calls();
	assert_int_equal(an_get_u64(play_report(&p), "cpu.samples", 0), 20);
	assert_int_equal(an_get_u64(play_report(&p), "cpu.samples_left_out", 0), 40);
	assert_int_equal(an_get(play_report(&p), "cpu.over_time")->kind, AN_NULL);
	play_end(&p);
	o = (struct an_cpu_options){ .exclude = &warm, .include = &main_only };
	begin(&o);
	play_calls();
	assert_int_equal(an_get_u64(play_report(&p), "cpu.samples", 0), 40);
	assert_null(play_find(&p, "cpu.methods", "method", "Shop.Cpu.Warm"));
	play_end(&p);
	o = (struct an_cpu_options){ .exclude = &main_only };
	begin(&o);
	play_calls();
	assert_int_equal(an_get_u64(play_report(&p), "cpu.samples", 9), 0);
	assert_int_equal(an_get(play_report(&p), "cpu.methods")->count, 0);
	play_end(&p);
}

static void samples_are_chosen_by_time_and_thread(void **state)
{
	struct an_cpu_options o = { .from_ns = 10000000, .to_ns = 40000000 };

	(void)state;
	begin(&o);
	play_calls(); /* one a millisecond, from 0 on */
	assert_int_equal(an_get_u64(play_report(&p), "cpu.samples", 0), 30);
	play_end(&p);
	o = (struct an_cpu_options){ .one_thread = true, .thread_id = 2 };
	begin(&o);
	play_stack(&p, 1, (uint64_t)WARM);
	for (int i = 0; i < 7; i++)
		play_sample(&p, 2, 100 + i, MANAGED);
	play_calls();
	assert_int_equal(an_get_u64(play_report(&p), "cpu.samples", 0), 7);
	assert_int_equal(an_get(play_report(&p), "cpu.threads")->count, 1);
	play_end(&p);
}

static void generics_fold_when_asked(void **state)
{
	const struct an_cpu_options fold = { .fold_generics = true };

	(void)state;
	for (int i = 0; i < 2; i++) {
		begin(i ? &fold : NULL);
		now = 0;
		play_stack(&p, 2, (uint64_t)LIST_INT, (uint64_t)MAIN + 8);
		sample(3);
		play_stack(&p, 2, (uint64_t)LIST_LONG, (uint64_t)MAIN + 8);
		sample(4);
		finish();
		assert_int_equal(an_get(play_report(&p), "cpu.methods")->count, i ? 2 : 3);
		assert_string_equal(an_get_text(play_row(&p, "cpu.methods", 0), "method", ""),
				    i ? "System.Collections.Generic.List<>.Add"
				      : "System.Collections.Generic.List<long>.Add");
		assert_int_equal(an_get_u64(play_row(&p, "cpu.methods", 0), "exclusive_samples", 0),
				 i ? 7 : 4);
		play_end(&p);
	}
}

static void modules_namespaces_tiers_and_time(void **state)
{
	const struct an_value *v;

	(void)state;
	begin(NULL);
	now = 0;
	play_stack(&p, 2, (uint64_t)HOT, (uint64_t)MAIN + 8);
	sample(1500);
	play_stack(&p, 2, (uint64_t)LIST_INT, (uint64_t)MAIN + 8);
	sample(300);
	play_stack(&p, 2, (uint64_t)TIER0, (uint64_t)MAIN + 8);
	sample(200);
	finish();
	v = play_find(&p, "cpu.namespaces", "namespace", "Shop");
	assert_int_equal(an_get_u64(v, "exclusive_samples", 0), 1700);
	v = play_find(&p, "cpu.namespaces", "namespace", "System.Collections.Generic");
	assert_int_equal(an_get_u64(v, "exclusive_samples", 0), 300);
	assert_int_equal(an_get(play_report(&p), "cpu.modules")->count, 1);
	v = play_find(&p, "cpu.methods", "method", "Shop.Slow.Path");
	assert_string_equal(an_get_text(v, "tier", ""), "QuickJitted");
	assert_true(an_get_f64(v, "exclusive_cpu_ms", 0) > 198);
	assert_true(an_get_f64(v, "exclusive_cpu_ms", 0) < 202);
	v = play_find(&p, "cpu.methods", "method", "Shop.Cpu.Hot");
	assert_string_equal(an_get_text(v, "tier", ""), "OptimizedTier1");
	v = play_find(&p, "cpu.methods", "method", "Shop.Program.Main");
	assert_int_equal(an_get(v, "tier")->kind, AN_NULL); /* never seen running itself */
	assert_true(an_get_f64(v, "inclusive_cpu_ms", 0) > 1990);
	v = an_get(play_report(&p), "cpu.over_time.cpu_ms");
	assert_int_equal(v->count, 2);
	assert_true(v->first->f > 990 && v->first->f < 1010);
	assert_true(v->last->f > 990 && v->last->f < 1010);
	play_end(&p);
}

/* A day at one sample a second: the intervals get wider, the sum stays. */
static void time_is_kept_in_bounded_memory(void **state)
{
	const struct an_value *v;
	double sum = 0;

	(void)state;
	begin(NULL);
	play_stack(&p, 1, (uint64_t)HOT);
	for (int i = 0; i < 86400; i++)
		play_sample(&p, 1, i * 1000.0, MANAGED);
	tiered(HOT, "Shop.Cpu", "Hot", 4);
	v = an_get(play_report(&p), "cpu.over_time.cpu_ms");
	assert_true(v->count <= 512);
	for (const struct an_value *x = v->first; x; x = x->next)
		sum += x->f;
	/* No sample stands for more than 50 ms. */
	assert_true(sum > 86400 * 49.0 && sum < 86400 * 51.0);
	play_end(&p);
}

static void every_failing_allocation_is_survived(void **state)
{
	static char nothing[] = "";
	struct an_matcher any = { has_text, nothing };
	struct an_options options = { .cpu = { .include = &any, .fold_generics = true } };
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		options.cpu.tree = fa.fail_at % 2 ? AN_TREE_CALLERS : AN_TREE_CALLEES;
		if (play_begin(&p, &fa.alloc, classes, &options)) {
			play_calls();
			play_report(&p);
			assert_int_equal(p.status, fa.failed ? NT_ENOMEM : NT_OK);
		}
		play_end(&p);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(callees_under_their_callers),
		cmocka_unit_test(callers_under_their_callees),
		cmocka_unit_test(trees_are_cut_by_depth_and_share),
		cmocka_unit_test(recursion_is_one_step),
		cmocka_unit_test(async_methods_are_one_across_their_awaits),
		cmocka_unit_test(stacks_are_chosen_by_method),
		cmocka_unit_test(samples_are_chosen_by_time_and_thread),
		cmocka_unit_test(generics_fold_when_asked),
		cmocka_unit_test(modules_namespaces_tiers_and_time),
		cmocka_unit_test(time_is_kept_in_bounded_memory),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
