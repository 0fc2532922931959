/* SPDX-License-Identifier: MIT */
/* The grammar of --event-filter, and what it lets through. */
#include "src/collect/event_ids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_ids(const struct ipc_event_filter *f, bool enable, size_t count,
		      const uint32_t *ids)
{
	assert_non_null(f);
	assert_int_equal(f->enable, enable);
	assert_int_equal(f->count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(f->ids[i], ids[i]);
}

static void the_grammar(void **state)
{
	struct event_ids_set set = { 0 };

	(void)state;
	assert_null(event_ids_add(&set, "A-B.C:only:1,2,10-12"));
	assert_null(event_ids_add(&set, "D:EXCEPT:7"));
	assert_int_equal(set.count, 2);
	check_ids(event_ids_of(&set, "a-b.c"), true, 5, (const uint32_t[]){ 1, 2, 10, 11, 12 });
	check_ids(event_ids_of(&set, "D"), false, 1, (const uint32_t[]){ 7 });
	assert_null(event_ids_of(&set, "E"));
	/* One filter for each provider. */
	assert_non_null(event_ids_add(&set, "d:only:1"));
	assert_int_equal(set.count, 2);
	event_ids_done(&set);
	assert_int_equal(set.count, 0);
}

static void mistakes(void **state)
{
	static const char *const wrong[] = {
		"",
		"A",
		"A:",
		"A:only",
		"A:only:",
		":only:1",
		"A:some:1",
		"A:only:1,",
		"A:only:,1",
		"A:only:1-",
		"A:only:-1",
		"A:only:3-2",
		"A:only:1x",
		"A:only:1 ,2",
		"A:only:x",
		"A:only:0-4096",
		"A:only:9999999999",
	};
	struct event_ids_set set = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const char *why = event_ids_add(&set, wrong[i]);

		if (!why || !*why)
			fail_msg("'%s' was taken", wrong[i]);
	}
	assert_int_equal(set.count, 0);
	assert_null(event_ids_add(&set, "A:only:1-4096"));
	event_ids_done(&set);
}

static bool passes(const struct event_ids_set *set, const char *provider, uint32_t id)
{
	const struct nt_event_def def = { .provider = provider, .event_id = id };

	return event_ids_pass(set, &def);
}

static void what_passes(void **state)
{
	struct event_ids_set set = { 0 };

	(void)state;
	assert_true(passes(&set, "A", 1)); /* no filter at all */
	assert_null(event_ids_add(&set, "A:only:1,5-6"));
	assert_null(event_ids_add(&set, "B:except:2"));
	assert_true(passes(&set, "A", 1));
	assert_true(passes(&set, "a", 6));
	assert_false(passes(&set, "A", 2));
	assert_true(passes(&set, "B", 1));
	assert_false(passes(&set, "B", 2));
	assert_true(passes(&set, "C", 2));
	event_ids_done(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_grammar),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(what_passes),
	};

	return cmocka_run_group_tests_name("event_ids", tests, NULL, NULL);
}
