/* SPDX-License-Identifier: MIT */
/* The report model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/report.h"
#include "tests/support/failalloc.h"

static void members_keep_their_order_and_text_is_copied(void **state)
{
	struct an_report *r = an_report_new(NULL);
	struct an_value *root = an_report_root(r), *list;
	const struct an_value *v;
	char name[] = "Shop";

	(void)state;
	an_add_text(root, "name", name);
	memset(name, '#', sizeof(name) - 1);
	an_add_uint(root, "count", UINT64_MAX);
	an_add_int(root, "delta", INT64_MIN);
	an_add_bool(root, "whole", true);
	list = an_add_array(root, "list");
	an_add_textn(list, NULL, "abcdef", 3);
	an_add_null(list, NULL);
	assert_int_equal(root->count, 5);
	v = root->first;
	assert_string_equal(v->name, "name");
	assert_string_equal(v->text, "Shop");
	assert_int_equal(v->next->u, UINT64_MAX);
	assert_int_equal(v->next->next->i, INT64_MIN);
	assert_int_equal(list->count, 2);
	assert_string_equal(list->first->text, "abc");
	assert_null(list->first->name);
	assert_int_equal(list->last->kind, AN_NULL);
	assert_int_equal(an_report_status(r), NT_OK);
	an_report_free(r);
}

static void what_is_no_number_becomes_null(void **state)
{
	struct an_report *r = an_report_new(NULL);
	struct an_value *root = an_report_root(r);
	const double zero = 0;

	(void)state;
	assert_int_equal(an_add_double(root, "nan", zero / zero, 2)->kind, AN_NULL);
	assert_int_equal(an_add_double(root, "inf", 1 / zero, 2)->kind, AN_NULL);
	assert_int_equal(an_add_double(root, "minus", -1 / zero, 2)->kind, AN_NULL);
	assert_int_equal(an_add_double(root, "fine", 1.5, 2)->kind, AN_DOUBLE);
	an_report_free(r);
}

static void values_are_found_by_path(void **state)
{
	struct an_report *r = an_report_new(NULL);
	struct an_value *gc = an_add_object(an_report_root(r), "gc");

	(void)state;
	an_add_double(gc, "pause_p99_ms", 12.5, 2);
	an_add_null(gc, "allocated_bytes");
	an_add_text(gc, "kind", "server");
	an_add_int(gc, "below", -3);
	an_add_uint_named(gc, "data.with.dots", 1);
	assert_true(an_get_f64(an_report_borrow_root(r), "gc.pause_p99_ms", -1) == 12.5);
	assert_int_equal(an_get_u64(an_report_borrow_root(r), "gc.pause_p99_ms", 0), 12);
	assert_int_equal(an_get_u64(an_report_borrow_root(r), "gc.allocated_bytes", 77), 77);
	assert_int_equal(an_get_u64(an_report_borrow_root(r), "gc.below", 5), 5);
	assert_true(an_get_f64(an_report_borrow_root(r), "gc.below", 0) == -3);
	assert_string_equal(an_get_text(an_report_borrow_root(r), "gc.kind", ""), "server");
	assert_string_equal(an_get_text(an_report_borrow_root(r), "gc.below", "?"), "?");
	assert_null(an_get(an_report_borrow_root(r), "gc.pause"));
	assert_null(an_get(an_report_borrow_root(r), "gc.kind.more"));
	assert_null(an_get(an_report_borrow_root(r), "gc..kind"));
	assert_ptr_equal(an_get(gc, ""), gc);
	an_report_free(r);
}

static void findings_come_last_most_severe_first(void **state)
{
	struct an_report *r = an_report_new(NULL);
	const struct an_value *v;

	(void)state;
	an_add_finding(r, AN_INFO, "a.info", "t", "e", "v");
	an_add_finding(r, AN_WARNING, "a.first", "t", "e", "v");
	an_add_finding(r, AN_CRITICAL, "a.worst", an_report_printf(r, "%d %s", 7, "things"), "e",
		       "v");
	an_add_finding(r, AN_WARNING, "a.second", "t", "e", "v");
	an_add_uint(an_report_root(r), "late", 1);
	an_report_seal(r);
	an_report_seal(r); /* the second time changes nothing */
	v = an_report_borrow_root(r)->last;
	assert_string_equal(v->name, "findings");
	assert_int_equal(v->count, 4);
	v = v->first;
	assert_string_equal(an_get_text(v, "id", ""), "a.worst");
	assert_string_equal(an_get_text(v, "severity", ""), "critical");
	assert_string_equal(an_get_text(v, "title", ""), "7 things");
	assert_string_equal(an_get_text(v->next, "id", ""), "a.first");
	assert_string_equal(an_get_text(v->next->next, "id", ""), "a.second");
	assert_string_equal(an_get_text(v->next->next->next, "severity", ""), "info");
	an_report_free(r);
}

/* Adds much, so that memory is asked for again and again. */
static void fill(struct an_report *r)
{
	struct an_value *root = an_report_root(r);

	for (int i = 0; i < 3000; i++) {
		struct an_value *row = an_add_object(root, NULL);

		an_add_text(row, "text", "some text that takes room");
		an_add_uint_named(row, "named", 1);
		an_add_finding(r, AN_INFO, "x", an_report_printf(r, "%d", i), "e", "a");
	}
	an_report_seal(r);
}

static void every_failing_allocation_is_remembered(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct an_report *r;

		r = an_report_new(&fa.alloc);
		if (r) {
			fill(r);
			assert_int_equal(an_report_status(r), fa.failed ? NT_ENOMEM : NT_OK);
		}
		an_report_free(r);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_keep_their_order_and_text_is_copied),
		cmocka_unit_test(what_is_no_number_becomes_null),
		cmocka_unit_test(values_are_found_by_path),
		cmocka_unit_test(findings_come_last_most_severe_first),
		cmocka_unit_test(every_failing_allocation_is_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
