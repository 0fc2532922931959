/* SPDX-License-Identifier: MIT */
/* Who hears which events, and what the engine asks of the decoder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failalloc.h"
#include "tests/support/play.h"

struct analyzer {
	struct an_shared *shared;
};

static unsigned asked, heard_some, heard_all, reported, freed;
static enum nt_status answer;

static struct analyzer *new_one(struct an_shared *shared)
{
	struct analyzer *a = shared->alloc->realloc(shared->alloc->ctx, NULL, sizeof(*a));

	if (a)
		a->shared = shared;
	return a;
}

static struct analyzer *free_one(struct analyzer *a)
{
	if (a)
		a->shared->alloc->realloc(a->shared->alloc->ctx, a, 0);
	freed += a != NULL;
	return NULL;
}

static bool wants_ten(const struct nt_event_def *def)
{
	asked++;
	return def->event_id == 10;
}

static enum nt_status hear_some(struct analyzer *a, const struct nt_event *ev)
{
	assert_int_equal(ev->def->event_id, 10);
	assert_non_null(a->shared);
	heard_some++;
	return answer;
}

static enum nt_status hear_all(struct analyzer *a, const struct nt_event *ev)
{
	(void)a;
	(void)ev;
	heard_all++;
	return NT_OK;
}

static enum nt_status report_one(struct analyzer *a, struct an_report *out)
{
	assert_non_null(a->shared->decoder);
	an_add_object(an_report_root(out), "one");
	reported++;
	return answer;
}

static const struct an_class some = { .name = "some",
				      .wants = wants_ten,
				      .new = new_one,
				      .event = hear_some,
				      .report = report_one,
				      .free = free_one,
				      .needs = AN_NEED_ORDER };
static const struct an_class all = {
	.name = "all", .new = new_one, .event = hear_all, .report = report_one, .free = free_one
};
static const struct an_class *const both[] = { &some, &all, NULL };
static const struct an_class *const plain[] = { &all, NULL };

static struct play p;

static int clear(void **state)
{
	(void)state;
	asked = heard_some = heard_all = reported = freed = 0;
	answer = NT_OK;
	return 0;
}

static void classes_hear_what_they_want(void **state)
{
	(void)state;
	assert_true(play_begin(&p, NULL, both, NULL));
	for (int i = 0; i < 100; i++) {
		play_event(&p, NT_PROV_RUNTIME, 10, 4, 1, i, NULL);
		play_event(&p, NT_PROV_RUNTIME, 11, 1, 1, i, NULL);
	}
	assert_int_equal(p.status, NT_OK);
	assert_int_equal(asked, 2); /* once for each kind */
	assert_int_equal(heard_some, 100);
	assert_int_equal(heard_all, 200);
	assert_non_null(play_report(&p));
	assert_int_equal(reported, 2);
	assert_string_equal(an_report_borrow_root(p.report)->last->name, "findings");
	play_end(&p);
	assert_int_equal(freed, 2);
}

static void the_decoder_does_no_more_than_needed(void **state)
{
	(void)state;
	assert_true(play_begin(&p, NULL, both, NULL));
	assert_int_equal(an_engine_flags(p.engine), NT_TIME_ORDER | NT_SKIP_STACKS);
	assert_null(an_engine_borrow_shared(p.engine)->methods);
	play_end(&p);
	assert_true(play_begin(&p, NULL, plain, NULL));
	assert_int_equal(an_engine_flags(p.engine), NT_SKIP_STACKS);
	play_end(&p);
	assert_true(play_begin(&p, NULL, an_classes, NULL));
	assert_int_equal(an_engine_flags(p.engine), NT_TIME_ORDER);
	assert_non_null(an_engine_borrow_shared(p.engine)->tree);
	play_end(&p);
}

static void what_a_class_answers_ends_the_reading(void **state)
{
	(void)state;
	assert_true(play_begin(&p, NULL, both, NULL));
	answer = NT_ENOMEM;
	play_event(&p, NT_PROV_RUNTIME, 10, 4, 1, 1, NULL);
	assert_int_equal(p.status, NT_ENOMEM);
	assert_int_equal(heard_all, 0);
	play_end(&p);
	answer = NT_OK;
	assert_true(play_begin(&p, NULL, both, NULL));
	answer = NT_ENOMEM;
	play_report(&p);
	assert_int_equal(p.status, NT_ENOMEM);
	assert_int_equal(reported, 1);
	play_end(&p);
}

static bool is_ten(void *ctx, const struct nt_event_def *def)
{
	assert_ptr_equal(ctx, &p);
	return def->event_id == 10;
}

/* What was not asked for counts as part of the trace, and for nothing else. */
static void ignored_events_are_only_counted(void **state)
{
	(void)state;
	assert_true(play_begin(&p, NULL, both, NULL));
	an_engine_ignore(p.engine, is_ten, &p);
	play_event(&p, NT_PROV_RUNTIME, 10, 4, 1, 1, NULL);
	play_event(&p, NT_PROV_RUNTIME, 11, 1, 1, 2, NULL);
	assert_int_equal(heard_some, 0);
	assert_int_equal(heard_all, 1);
	play_end(&p);
	assert_true(play_begin(&p, NULL, an_classes, NULL));
	an_engine_ignore(p.engine, is_ten, &p);
	play_event(&p, NT_PROV_RUNTIME, 10, 4, 1, 1, NULL);
	assert_non_null(play_report(&p));
	assert_non_null(an_get(an_get(play_report(&p), "trace"), "counts")->first);
	play_end(&p);
}

/* A name from elsewhere names, but it is no rundown of this trace. */
static void names_from_elsewhere(void **state)
{
	static struct play other;
	size_t before;

	(void)state;
	assert_true(play_begin(&p, NULL, an_classes, NULL));
	before = an_methods_count(an_engine_borrow_shared(p.engine)->methods);
	assert_true(play_begin(&other, NULL, an_classes, NULL));
	play_method(&other, true, 0x1000, 0x1000, "Shop.T", "M", "", 1);
	play_event(&other, NT_PROV_RUNDOWN, 146, 1, 1, 2, NULL);
	for (size_t i = 0; i < other.def_count; i++) {
		const struct nt_event ev = { .def = &other.defs[i], .trace = &other.trace };

		if (ev.def->event_id == 146)
			assert_int_equal(an_engine_name(p.engine, &ev), NT_OK);
	}
	assert_false(an_methods_rundown_complete(an_engine_borrow_shared(p.engine)->methods));
	assert_int_equal(an_methods_count(an_engine_borrow_shared(p.engine)->methods), before);
	assert_false(an_engine_borrow_shared(p.engine)->have_events);
	play_end(&other);
	play_end(&p);
	/* Without stacks there is nothing to name. */
	assert_true(play_begin(&p, NULL, plain, NULL));
	assert_int_equal(an_engine_name(p.engine, &(const struct nt_event){ .def = &p.defs[0] }),
			 NT_OK);
	play_end(&p);
}

static void losses_are_added_up(void **state)
{
	(void)state;
	assert_true(play_begin(&p, NULL, plain, NULL));
	assert_int_equal(an_engine_sink.lost(p.engine, 1, 5, 0), NT_OK);
	assert_int_equal(an_engine_sink.lost(p.engine, 2, 7, 0), NT_OK);
	assert_int_equal(an_engine_borrow_shared(p.engine)->lost, 12);
	play_end(&p);
}

/* Stacks without names: said in the first place, with what to do about it. */
static void missing_names_are_said(void **state)
{
	(void)state;
	assert_true(play_begin(&p, NULL, an_classes, NULL));
	play_stack(&p, 2, UINT64_C(0x1000), UINT64_C(0x2000));
	for (int i = 0; i < 20; i++)
		play_sample(&p, 1, i, 2);
	assert_true(play_finds(&p, "trace.no-rundown"));
	assert_string_equal(an_get_text(play_row(&p, "findings", 0), "id", ""), "trace.no-rundown");
	play_end(&p);
	/* With a rundown, all is well. */
	assert_true(play_begin(&p, NULL, an_classes, NULL));
	play_stack(&p, 2, UINT64_C(0x1000), UINT64_C(0x2000));
	for (int i = 0; i < 20; i++)
		play_sample(&p, 1, i, 2);
	p.frame_count = 0;
	play_method(&p, true, 0x1000, 0x1000, "Shop.T", "M", "", 30);
	play_event(&p, NT_PROV_RUNDOWN, 146, 1, 1, 31, NULL);
	assert_false(play_finds(&p, "trace.no-rundown"));
	play_end(&p);
}

static void no_class_and_every_class_are_fine(void **state)
{
	static const struct an_class *const none[] = { NULL };

	(void)state;
	assert_true(play_begin(&p, NULL, none, NULL));
	play_event(&p, NT_PROV_RUNTIME, 10, 4, 1, 1, NULL);
	assert_int_equal(play_report(&p)->count, 1); /* findings */
	play_end(&p);
	assert_true(play_begin(&p, NULL, an_classes, NULL));
	for (size_t i = 0; an_classes[i]; i++) {
		const struct an_class *c = an_classes[i];

		assert_non_null(c->name);
		assert_non_null(c->summary);
		assert_non_null(an_get(play_report(&p), c->name));
	}
	play_end(&p);
	an_engine_free(NULL);
}

static void every_failing_allocation_is_survived(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		if (play_begin(&p, &fa.alloc, an_classes, NULL)) {
			play_stack(&p, 2, UINT64_C(0x1000), UINT64_C(0x2000));
			play_method(&p, false, 0x1000, 0x100, "A", "B", "void  ()", 1);
			play_sample(&p, 1, 2, 2);
			play_event(&p, NT_PROV_OTHER, 1, 1, 1, 3, NULL);
			play_report(&p);
			assert_int_equal(p.status, fa.failed ? NT_ENOMEM : NT_OK);
		}
		play_end(&p);
	}
}

/* Sections of a quiet program, recorded with these providers. */
static void play_quiet(const struct an_provider *enabled)
{
	assert_true(play_begin(&p, NULL, an_classes, NULL));
	p.enabled = enabled;
	play_event(&p, NT_PROV_OTHER, 1, 1, 1, 3, NULL);
	assert_non_null(play_report(&p));
}

/* What was asked for and did not come did not happen: 0, and no advice to ask for it. */
static void enabled_and_silent_means_none(void **state)
{
	static const struct an_provider enough[] = {
		{ "Microsoft-Windows-DotNETRuntime", 0x8001, 4 },
		{ "System.Threading.Tasks.TplEventSource", 0x17B, 5 },
		{ NULL, 0, 0 },
	};
	static const struct an_provider less[] = {
		{ "Microsoft-Windows-DotNETRuntime", 0x10, 4 },
		{ "System.Threading.Tasks.TplEventSource", 0x17B, 3 },
		{ NULL, 0, 0 },
	};

	(void)state;
	play_quiet(enough);
	assert_int_equal(an_get(play_report(&p), "gc.count")->kind, AN_UINT);
	assert_int_equal(an_get(play_report(&p), "exceptions.count")->kind, AN_UINT);
	assert_int_equal(an_get(play_report(&p), "tasks.pending")->kind, AN_ARRAY);
	assert_false(play_finds(&p, "gc.not-recorded"));
	assert_false(play_finds(&p, "tasks.not-recorded"));
	play_end(&p);
	for (int known = 0; known < 2; known++) {
		play_quiet(known ? less : NULL);
		assert_int_equal(an_get(play_report(&p), "gc.count")->kind, AN_NULL);
		assert_int_equal(an_get(play_report(&p), "exceptions.count")->kind, AN_NULL);
		assert_int_equal(an_get(play_report(&p), "tasks.pending")->kind, AN_NULL);
		assert_true(play_finds(&p, "gc.not-recorded"));
		assert_true(play_finds(&p, "tasks.not-recorded"));
		play_end(&p);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(enabled_and_silent_means_none, clear),
		cmocka_unit_test_setup(classes_hear_what_they_want, clear),
		cmocka_unit_test_setup(the_decoder_does_no_more_than_needed, clear),
		cmocka_unit_test_setup(what_a_class_answers_ends_the_reading, clear),
		cmocka_unit_test_setup(ignored_events_are_only_counted, clear),
		cmocka_unit_test_setup(names_from_elsewhere, clear),
		cmocka_unit_test_setup(losses_are_added_up, clear),
		cmocka_unit_test_setup(missing_names_are_said, clear),
		cmocka_unit_test_setup(no_class_and_every_class_are_fine, clear),
		cmocka_unit_test_setup(every_failing_allocation_is_survived, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
