/* SPDX-License-Identifier: MIT */

/* Text and JSON of a report: from one tree, safe to show, and honest about what is missing. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "src/report/out_text.h"
#include "src/report/report_out.h"

static struct out *memory(bool colour)
{
	struct out *o = calloc(1, sizeof(*o));

	assert_non_null(o);
	o->fd = -1;
	o->colour = colour;
	return o;
}

static char *taken(struct out *o)
{
	assert_int_equal(o->error, 0);
	assert_true(o->used < sizeof(o->buffer));
	o->buffer[o->used] = '\0';
	o->used = 0;
	return o->buffer;
}

static const struct report_choice everything = { .top = 20 };

/* Names from a trace must not move the cursor of whoever reads the report. */
static void nothing_steers_the_terminal(void **state)
{
	static const char evil[] = "x\x1b[2J\r\xc2\x9b"
				   "1m\xe2\x80\xae\x07";
	struct an_report *r = an_report_new(NULL);
	struct an_value *root = an_report_root(r), *v, *row;
	struct out *o = memory(false);

	(void)state;
	v = an_add_object(root, "trace");
	an_add_text(v, "file", evil);
	an_add_text(v, "command_line", evil);
	v = an_add_object(root, "cpu");
	an_add_uint(v, "samples", 1);
	row = an_add_object(an_add_array(v, "methods"), NULL);
	an_add_text(row, "method", evil);
	row = an_add_object(an_add_array(v, "hot_path"), NULL);
	an_add_text(row, "method", evil);
	v = an_add_object(root, "tasks");
	row = an_add_object(an_add_array(v, "pending"), NULL);
	an_add_text(row, "method", evil);
	an_add_text(an_add_array(row, "chain"), NULL, evil);
	an_add_finding(r, AN_WARNING, "trace.test", evil, evil, evil);
	an_report_seal(r);
	assert_int_equal(an_report_status(r), NT_OK);

	report_text(o, an_report_borrow_root(r), &everything);
	taken(o);
	assert_non_null(strstr(o->buffer, "x\\x1b[2J\\r\\x9b1m\\u{202e}\\x07"));
	for (const char *p = o->buffer; *p; p++)
		assert_true(*p == '\n' || (unsigned char)*p >= 0x20);
	assert_null(strstr(o->buffer, "\xc2\x9b"));
	assert_null(strstr(o->buffer, "\xe2\x80\xae"));
	an_report_free(r);
	free(o);
}

static void missing_is_not_zero(void **state)
{
	struct an_report *r = an_report_new(NULL);
	struct an_value *root = an_report_root(r), *v;
	struct out *o = memory(false);

	(void)state;
	an_add_object(root, "trace");
	v = an_add_object(root, "cpu");
	an_add_null(v, "samples");
	v = an_add_object(root, "gc");
	an_add_null(v, "count");
	v = an_add_object(root, "tasks");
	an_add_null(v, "pending");
	an_report_seal(r);
	report_text(o, an_report_borrow_root(r), &everything);
	taken(o);
	assert_non_null(strstr(o->buffer, "Nothing stands out"));
	assert_non_null(strstr(o->buffer, "CPU (view: cpu)\n  not recorded\n"));
	assert_non_null(strstr(o->buffer, "GARBAGE COLLECTION\n  not recorded\n"));
	assert_non_null(strstr(o->buffer, "TASKS\n  not recorded\n"));
	assert_non_null(strstr(o->buffer, "process   not recorded\n"));
	an_report_free(r);
	free(o);
}

static void rows_beyond_top_are_counted(void **state)
{
	struct an_report *r = an_report_new(NULL);
	struct an_value *v = an_add_object(an_report_root(r), "cpu"), *methods;
	const char *cpu[] = { "cpu" };
	struct report_choice choice = { .sections = cpu, .count = 1, .top = 2 };
	struct out *o = memory(false);

	(void)state;
	an_add_uint(v, "samples", 5);
	methods = an_add_array(v, "methods");
	for (int i = 0; i < 5; i++) {
		struct an_value *row = an_add_object(methods, NULL);

		an_add_text(row, "method", an_report_printf(r, "Method%d", i));
		an_add_uint(row, "exclusive_samples", 1);
	}
	an_report_seal(r);
	report_text(o, an_report_borrow_root(r), &choice);
	taken(o);
	assert_non_null(strstr(o->buffer, "Method1"));
	assert_null(strstr(o->buffer, "Method2"));
	assert_non_null(strstr(o->buffer, "3 more methods"));
	choice.top = 0;
	report_text(o, an_report_borrow_root(r), &choice);
	taken(o);
	assert_non_null(strstr(o->buffer, "Method4"));
	assert_null(strstr(o->buffer, "more methods"));
	an_report_free(r);
	free(o);
}

/* A handful of samples, or of measured time, makes no order of methods. */
static void little_evidence_is_said(void **state)
{
	static const struct {
		unsigned samples, left_out;
		double cpu_ms, interval_ms; /* 0: null */
		const char *weighted_by, *view;
		const char *line; /* NULL: there is enough */
	} rows[] = {
		{ 100, 0, 200, 2, "samples", "cpu", NULL },
		{ 99, 0, 198, 2, "samples", "cpu", "only 99 of them count in this view" },
		{ 5000, 0, 100, 1, "cpu-time", "cpu", NULL },
		{ 5000, 0, 99.9, 1, "cpu-time", "cpu", "only 99.90 ms of CPU time were measured" },
		{ 5000, 0, 199, 2, "cpu-time", "cpu", "only 199.0 ms of CPU time were" },
		{ 5000, 0, 99, 0, "cpu-time", "cpu", "only 99.00 ms of CPU time were measured" },
		{ 0, 7, 0, 2, "samples", "cpu", "no sample is left of what was asked for" },
		{ 0, 0, 0, 2, "samples", "cpu", "nothing ran for as long as one sample is worth" },
		{ 100, 0, 200, 2, "samples", "waiting", "who waits was not recorded" },
	};
	const char *cpu[] = { "cpu" };
	const struct report_choice choice = { .sections = cpu, .count = 1, .top = 20 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct an_report *r = an_report_new(NULL);
		struct an_value *v = an_add_object(an_report_root(r), "cpu");
		struct out *o = memory(false);

		an_add_text(v, "view", rows[i].view);
		an_add_uint(v, "samples", rows[i].samples);
		an_add_uint(v, "samples_on_cpu", rows[i].samples);
		an_add_null(v, "samples_waiting");
		if (rows[i].left_out)
			an_add_uint(v, "samples_left_out", rows[i].left_out);
		if (rows[i].interval_ms > 0)
			an_add_double(v, "interval_ms", rows[i].interval_ms, 2);
		else
			an_add_null(v, "interval_ms");
		an_add_text(v, "weighted_by", rows[i].weighted_by);
		an_add_double(v, "cpu_time_ms", rows[i].cpu_ms, 3);
		an_report_seal(r);
		report_text(o, an_report_borrow_root(r), &choice);
		taken(o);
		if (rows[i].line)
			assert_non_null(strstr(o->buffer, rows[i].line));
		else
			assert_null(strstr(o->buffer, "means little"));
		assert_null(strstr(o->buffer, "only 0 of them"));
		an_report_free(r);
		free(o);
	}
}

/* A section that has no form of its own yet. */
static void any_section_is_shown(void **state)
{
	struct an_report *r = an_report_new(NULL);
	struct an_value *v = an_add_object(an_report_root(r), "fridge"), *list;
	const char *fridge[] = { "fridge" };
	const struct report_choice choice = { .sections = fridge, .count = 1, .top = 2 };
	struct out *o = memory(false);

	(void)state;
	an_add_uint(v, "eggs", 12);
	an_add_null(v, "milk_ml");
	list = an_add_array(v, "shelves");
	for (unsigned i = 0; i < 3; i++) {
		struct an_value *row = an_add_object(list, NULL);

		an_add_uint(row, "number", i);
		if (i == 1)
			an_add_null(row, "holds");
		else
			an_add_text(row, "holds", "jam");
		an_add_text(an_add_array(row, "labels"), NULL, "\x1b[1m");
	}
	an_report_seal(r);
	report_text(o, an_report_borrow_root(r), &choice);
	taken(o);
	assert_non_null(strstr(o->buffer, "FRIDGE\n"
					  "  eggs     12\n"
					  "  milk_ml  not recorded\n"
					  "\n"
					  "  shelves\n"
					  "  number  holds  labels\n"
					  "       0  jam    \\x1b[1m\n"
					  "       1  -      \\x1b[1m\n"
					  "  ... 1 more shelves: --top 0 shows all\n"));
	an_report_free(r);
	free(o);
}

static void colours_only_when_wanted(void **state)
{
	struct an_report *r = an_report_new(NULL);
	struct out *o = memory(true);

	(void)state;
	an_add_finding(r, AN_CRITICAL, "trace.test", "title", "", "");
	an_report_seal(r);
	report_text(o, an_report_borrow_root(r), &everything);
	assert_non_null(strstr(taken(o), "\x1b[1;31mcritical\x1b[0m"));
	o->colour = false;
	report_text(o, an_report_borrow_root(r), &everything);
	assert_null(strchr(taken(o), '\x1b'));
	an_report_free(r);
	free(o);
}

static void sizes_and_times(void **state)
{
	struct an_report *r = an_report_new(NULL);
	struct an_value *v = an_report_root(r);
	char text[48];

	(void)state;
	an_add_double(v, "a", 0.0123, 4);
	an_add_double(v, "b", 1234.5, 1);
	an_add_double(v, "c", 7200000, 0);
	an_add_uint(v, "d", 1536);
	an_add_uint(v, "e", 512);
	an_add_uint(v, "f", UINT64_C(3) << 40);
	an_add_null(v, "g");
	text_ms(v, "a", text, sizeof(text));
	assert_string_equal(text, "0.012 ms");
	text_ms(v, "b", text, sizeof(text));
	assert_string_equal(text, "1.23 s");
	text_ms(v, "c", text, sizeof(text));
	assert_string_equal(text, "120.0 min");
	text_bytes(v, "d", text, sizeof(text));
	assert_string_equal(text, "1.5 KiB");
	text_bytes(v, "e", text, sizeof(text));
	assert_string_equal(text, "512 B");
	text_bytes(v, "f", text, sizeof(text));
	assert_string_equal(text, "3.0 TiB");
	text_bytes(v, "g", text, sizeof(text));
	assert_string_equal(text, "not recorded");
	text_ms(v, "no.such", text, sizeof(text));
	assert_string_equal(text, "not recorded");
	an_report_free(r);
}

static void json_has_the_same_tree(void **state)
{
	struct an_report *r = an_report_new(NULL);
	struct an_value *v = an_add_object(an_report_root(r), "gc"), *list;
	struct out *o = memory(false);

	(void)state;
	an_add_uint(v, "count", 2);
	an_add_double(v, "pause_max_ms", 1.23456, 3);
	an_add_null(v, "promoted_bytes");
	list = an_add_array(v, "collections");
	an_add_int(an_add_object(list, NULL), "number", -1);
	an_add_bool(an_add_object(list, NULL), "background", true);
	an_report_seal(r);
	report_json(o, an_report_borrow_root(r));
	assert_string_equal(taken(o), "{\n"
				      "  \"schema\": \"drdotnet-trace/1\",\n"
				      "  \"tool\": \"drdotnet-trace " PACKAGE_VERSION "\",\n"
				      "  \"gc\": {\n"
				      "    \"count\": 2,\n"
				      "    \"pause_max_ms\": 1.235,\n"
				      "    \"promoted_bytes\": null,\n"
				      "    \"collections\": [\n"
				      "      {\"number\": -1},\n"
				      "      {\"background\": true}\n"
				      "    ]\n"
				      "  },\n"
				      "  \"findings\": []\n"
				      "}\n");
	report_json_member(o, an_report_borrow_root(r), "no-such");
	assert_null(strstr(taken(o), "\"gc\""));
	an_report_free(r);
	free(o);
}

/* What a rate is per is said with it. */
static void rates_have_a_unit(void **state)
{
	static const struct {
		double seconds;
		const char *text;
	} cases[] = { { 1, "90 a second)" },  { 60, "90 a minute)" },  { 3600, "90 an hour)" },
		      { 86400, "90 a day)" }, { 0.5, "90 in 0.5 s)" }, { NAN, "3  " } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct an_report *r = an_report_new(NULL);
		struct an_value *list = an_add_array(an_report_root(r), "counters"), *v, *p;
		struct out *o = memory(false);

		v = an_add_object(list, NULL);
		an_add_text(v, "provider", "E");
		an_add_text(v, "name", "n");
		an_add_text(v, "kind", "sum");
		an_add_text(v, "unit", "B");
		an_add_double(v, "rate_scale_s", cases[i].seconds, AN_SHORTEST);
		p = an_add_object(an_add_array(v, "points"), NULL);
		an_add_double(p, "value", 3, AN_SHORTEST);
		an_add_double(p, "rate", isnan(cases[i].seconds) ? NAN : 90, AN_SHORTEST);
		an_report_seal(r);
		assert_int_equal(an_report_status(r), NT_OK);
		text_counters(o, list, 0);
		if (!strstr(taken(o), cases[i].text))
			fail_msg("'%s' is not in: %s", cases[i].text, o->buffer);
		an_report_free(r);
		free(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_steers_the_terminal),
		cmocka_unit_test(missing_is_not_zero),
		cmocka_unit_test(rows_beyond_top_are_counted),
		cmocka_unit_test(little_evidence_is_said),
		cmocka_unit_test(any_section_is_shown),
		cmocka_unit_test(colours_only_when_wanted),
		cmocka_unit_test(sizes_and_times),
		cmocka_unit_test(rates_have_a_unit),
		cmocka_unit_test(json_has_the_same_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
