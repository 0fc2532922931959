/* SPDX-License-Identifier: MIT */
/* From the metadata id of an event to its definition: repeated, missing, forgotten, too many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/tape.h"

static void define(struct build *b, unsigned format, uint32_t id, const char *name)
{
	struct build rows = { 0 };

	if (format == 6) {
		build_u16(&rows, 0);
		build_definition6(&rows, id, "Demo", 7, name);
		build_block6(b, KIND6_METADATA, &rows);
		return;
	}
	build_rows_header(&rows, 1);
	build_definition(&rows, id, "Demo", 7, name);
	build_object(b, 4, "MetadataBlock", &rows);
}

static void event_of(struct build *b, unsigned format, uint32_t id, uint64_t ticks)
{
	const struct build_row r = {
		.metadata_id = id,
		.capture = 42,
		.ticks_delta = ticks,
	};
	struct build rows = { 0 };

	build_row(&rows, format == 6, &r);
	build_rows(b, format, &rows);
}

static void point(struct build *b, unsigned format, uint32_t flags)
{
	struct build content = { 0 };

	if (format == 6) {
		build_sequence_point6(&content, 1, flags, NULL, NULL, 0);
		build_block6(b, KIND6_SEQUENCE, &content);
		return;
	}
	build_sequence_point(&content, 1, NULL, NULL, 0);
	build_object(b, 4, "SPBlock", &content);
}

static void ids_of_any_size_lead_to_their_definition(void **state)
{
	static const uint32_t ids[] = { 1, 63, 64, 65, 1000, 65535, 65536, INT32_MAX, UINT32_MAX };

	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		struct build b = build_new(format);
		struct tape t = { 0 };

		for (size_t i = 0; i < 9; i++)
			define(&b, format, ids[i], (const char[]){ (char)('a' + i), 0 });
		for (size_t i = 0; i < 9; i++)
			event_of(&b, format, ids[i], 5);
		build_close(&b, format);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.count, 9);
		for (size_t i = 0; i < 9; i++) {
			assert_int_equal(t.events[i].metadata_id, ids[i]);
			assert_int_equal(t.events[i].name[0], 'a' + i);
		}
	}
}

static void an_id_with_another_meaning_is_refused(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2)
		for (size_t big = 0; big < 2; big++) {
			uint32_t id = big ? 70000 : 5;
			struct build b = build_new(format);
			struct tape t = { 0 };
			size_t row;

			define(&b, format, 1, "Hi");
			define(&b, format, id, "First");
			define(&b, format, id, "Other");
			row = b.count;
			build_close(&b, format);
			tape_play(&t, &b, 0, 0);
			assert_int_equal(t.status, NT_EFORMAT);
			assert_string_equal(t.error.what, "metadata id is defined a second time");
			assert_string_equal(t.log, "trace define:Hi define:First");
			/* The row that says so; V6's is from its id on. */
			if (format == 6)
				assert_int_equal(t.error.offset, row - (big ? 19 : 17));
			else
				assert_int_equal(t.error.offset, row - 1 - 50);
		}
}

/* Nothing can be misread then; a concatenated stream may well do it. */
static void the_same_definition_again_is_no_fault(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		struct build b = build_new(format);
		struct tape t = { 0 };

		define(&b, format, 1, "Hi");
		define(&b, format, 1, "Hi");
		event_of(&b, format, 1, 5);
		build_close(&b, format);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_OK);
		assert_string_equal(t.log, "trace define:Hi Hi@5");
	}
}

static void events_of_an_unknown_id_are_kept_and_counted(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2) {
		struct build b = build_new(format);
		struct tape t = { 0 };
		const struct tape_event *e = t.events;

		event_of(&b, format, 77, 5);
		event_of(&b, format, 77, 6);
		event_of(&b, format, 70000, 7);
		define(&b, format, 77, "Late");
		event_of(&b, format, 77, 8);
		build_close(&b, format);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_OK);
		assert_string_equal(t.log, "trace define:Event77 Event77@5 Event77@6 "
					   "define:Event70000 Event70000@7 define:Late Late@8");
		assert_int_equal(t.stats.unknown_metadata, 3);
		assert_false(e[0].defined);
		assert_string_equal(e[0].provider, "");
		assert_int_equal(e[0].metadata_id, 77);
		assert_int_equal(e[0].layout, NT_LAYOUT_NONE);
		assert_true(e[3].defined);
	}
}

/* --- V6 can forget definitions --- */

static void after_a_flush_an_id_may_mean_something_else(void **state)
{
	(void)state;
	for (uint32_t flags = 2; flags <= 3; flags++) {
		struct build b = build_new(6);
		struct tape t = { 0 };

		define(&b, 6, 1, "Old");
		event_of(&b, 6, 1, 5);
		point(&b, 6, flags);
		define(&b, 6, 1, "New");
		event_of(&b, 6, 1, 6);
		point(&b, 6, flags);
		define(&b, 6, 1, "Old"); /* known already: not announced again */
		event_of(&b, 6, 1, 7);
		build_close(&b, 6);
		tape_play(&t, &b, 0, NT_TIME_ORDER);
		assert_int_equal(t.status, NT_OK);
		assert_string_equal(t.log, "trace define:Old Old@5 point@-999 define:New New@6 "
					   "point@-999 Old@7");
		assert_int_equal(t.stats.unknown_metadata, 0);
	}
}

static void without_a_flush_it_may_not(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2)
		for (uint32_t flags = 0; flags < 2; flags++) {
			struct build b = build_new(format);
			struct tape t = { 0 };

			define(&b, format, 1, "Old");
			point(&b, format, flags);
			event_of(&b, format, 1, 5);
			define(&b, format, 1, "New");
			build_close(&b, format);
			tape_play(&t, &b, 0, 0);
			assert_int_equal(t.status, NT_EFORMAT);
			assert_string_equal(t.log, "trace define:Old point@-999 Old@5");
		}
}

static void a_forgotten_id_is_unknown(void **state)
{
	static const uint32_t ids[] = { 1, 70000 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct build b = build_new(6);
		struct tape t = { 0 };

		define(&b, 6, ids[i], "Old");
		point(&b, 6, 2);
		event_of(&b, 6, ids[i], 5);
		build_close(&b, 6);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_OK);
		assert_false(t.events[0].defined);
		assert_int_equal(t.stats.unknown_metadata, 1);
	}
}

static void events_that_wait_keep_the_definition_they_came_with(void **state)
{
	const struct build_row waits = {
		.metadata_id = 1,
		.capture = 42,
		.ticks_delta = 50,
		.unsorted = true,
	};
	struct build b = build_new(6), rows = { 0 };
	struct tape t = { 0 };

	(void)state;
	define(&b, 6, 1, "Old");
	build_row(&rows, true, &waits);
	build_rows(&b, 6, &rows);
	point(&b, 6, 2);
	define(&b, 6, 1, "New");
	event_of(&b, 6, 1, 60);
	build_close(&b, 6);
	tape_play(&t, &b, 0, NT_TIME_ORDER);
	assert_string_equal(t.log, "trace define:Old Old@50 point@-999 define:New New@60");
}

/* --- limits and callbacks --- */

static void the_number_of_definitions_has_a_limit(void **state)
{
	const struct nt_limits limits = { .max_ids = 3 };

	(void)state;
	for (uint32_t n = 3; n <= 4; n++) {
		struct build b = build_new(4);
		struct tape t = { 0 };

		for (uint32_t i = 1; i <= n; i++)
			define(&b, 4, i, "Hi");
		build_end(&b);
		tape_play_with(&t, &b, 0, 0, &limits);
		assert_int_equal(t.status, n == 3 ? NT_OK : NT_ELIMIT);
		if (n == 4)
			assert_string_equal(t.error.what, "more event definitions than the limit");
	}
}

static void made_up_definitions_count_too(void **state)
{
	const struct nt_limits limits = { .max_ids = 3 };
	struct build b = build_new(4);
	struct tape t = { 0 };

	(void)state;
	for (uint32_t i = 1; i <= 4; i++)
		event_of(&b, 4, i, i);
	build_end(&b);
	tape_play_with(&t, &b, 0, 0, &limits);
	assert_int_equal(t.status, NT_ELIMIT);
	assert_int_equal(t.count, 3);
	assert_int_equal(t.error.events_before, 3);
}

static void the_memory_of_definitions_has_a_limit(void **state)
{
	const struct nt_limits limits = { .max_def_bytes = 2000 };
	struct build b = build_new(4);
	struct tape t = { 0 };

	(void)state;
	for (uint32_t i = 1; i <= 100; i++)
		define(&b, 4, i, "A long name that takes some of the memory");
	build_end(&b);
	tape_play_with(&t, &b, 0, 0, &limits);
	assert_int_equal(t.status, NT_ELIMIT);
	assert_string_equal(t.error.what, "event definitions exceed the limit of memory");
	assert_string_equal(t.error.block, "MetadataBlock");
}

static const enum nt_status answers[] = { NT_STOPPED, NT_ESINK, NT_ENOMEM };

static void check_refusal(const struct tape *t, enum nt_status answer)
{
	assert_int_equal(t->status, answer);
	assert_int_equal(t->count, 0);
	if (answer == NT_STOPPED) {
		assert_int_equal(t->error.code, NT_OK);
		return;
	}
	assert_int_equal(t->error.code, answer);
	assert_non_null(t->error.what);
	assert_non_null(t->error.block);
}

static void what_the_callback_answers_counts(void **state)
{
	(void)state;
	for (unsigned format = 4; format <= 6; format += 2)
		for (size_t i = 0; i < 3; i++) {
			struct build b = build_new(format);
			struct tape t = { .refuse = "define", .refusal = answers[i] };

			define(&b, format, 1, "Hi");
			event_of(&b, format, 1, 5);
			build_close(&b, format);
			tape_play(&t, &b, 0, 0);
			check_refusal(&t, answers[i]);
			assert_string_equal(t.log, "trace define:Hi");
		}
}

static void it_counts_for_made_up_definitions_too(void **state)
{
	(void)state;
	for (unsigned flags = 0; flags <= NT_TIME_ORDER; flags++)
		for (size_t i = 0; i < 3; i++) {
			struct build b = build_new(4);
			struct tape t = { .refuse = "define", .refusal = answers[i] };

			event_of(&b, 4, 1, 5);
			event_of(&b, 4, 1, 6);
			build_end(&b);
			tape_play(&t, &b, 0, flags);
			check_refusal(&t, answers[i]);
			assert_string_equal(t.log, "trace define:Event1");
		}
}

static void many_definitions_of_many_providers(void **state)
{
	struct build b = build_new(4), rows = { 0 };
	struct tape t = { 0 };

	(void)state;
	build_rows_header(&rows, 1);
	for (uint32_t i = 1; i <= 3000; i++) {
		char provider[16];

		snprintf(provider, sizeof(provider), "P%u", i % 200);
		build_definition(&rows, i, provider, i, "Hi");
	}
	build_object(&b, 4, "MetadataBlock", &rows);
	event_of(&b, 4, 201, 1);
	event_of(&b, 4, 3000, 2);
	build_end(&b);
	tape_play(&t, &b, 0, 0);
	assert_int_equal(t.status, NT_OK);
	assert_string_equal(t.events[0].provider, "P1");
	assert_int_equal(t.events[0].event_id, 201);
	assert_string_equal(t.events[1].provider, "P0");
	assert_int_equal(t.events[1].event_id, 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_of_any_size_lead_to_their_definition),
		cmocka_unit_test(an_id_with_another_meaning_is_refused),
		cmocka_unit_test(the_same_definition_again_is_no_fault),
		cmocka_unit_test(events_of_an_unknown_id_are_kept_and_counted),
		cmocka_unit_test(after_a_flush_an_id_may_mean_something_else),
		cmocka_unit_test(without_a_flush_it_may_not),
		cmocka_unit_test(a_forgotten_id_is_unknown),
		cmocka_unit_test(events_that_wait_keep_the_definition_they_came_with),
		cmocka_unit_test(the_number_of_definitions_has_a_limit),
		cmocka_unit_test(made_up_definitions_count_too),
		cmocka_unit_test(the_memory_of_definitions_has_a_limit),
		cmocka_unit_test(what_the_callback_answers_counts),
		cmocka_unit_test(it_counts_for_made_up_definitions_too),
		cmocka_unit_test(many_definitions_of_many_providers),
	};

	return cmocka_run_group_tests_name("definitions", tests, NULL, NULL);
}
