/* SPDX-License-Identifier: MIT */

/* The JSON writer, the output it writes to, and the text both repair. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/json.h"
#include "src/base/output.h"
#include "src/base/utf8.h"

/* Buffered output is looked at in the buffer, before anything is written. */
static struct out *memory(void)
{
	struct out *o = calloc(1, sizeof(*o));

	assert_non_null(o);
	o->fd = -1;
	return o;
}

static void expect(struct out *o, const char *text)
{
	assert_int_equal(o->error, 0);
	assert_true(o->used < sizeof(o->buffer));
	o->buffer[o->used] = '\0';
	assert_string_equal(o->buffer, text);
	o->used = 0;
}

static void nesting_and_commas(void **state)
{
	struct out *o = memory();
	struct json j;

	(void)state;
	json_init(&j, o, true);
	json_begin_object(&j, NULL);
	json_uint(&j, "a", 1);
	json_begin_array(&j, "b");
	json_int(&j, NULL, -2);
	json_begin_object(&j, NULL);
	json_end(&j);
	json_begin_array(&j, NULL);
	json_end(&j);
	json_end(&j);
	json_bool(&j, "c", false);
	json_null(&j, "d");
	json_hex(&j, "e", "\x00\xff\x1a", 3);
	json_end(&j);
	expect(o, "{\"a\":1,\"b\":[-2,{},[]],\"c\":false,\"d\":null,\"e\":\"00ff1a\"}\n");

	json_begin_object(&j, NULL); /* a second one starts afresh */
	json_end(&j);
	expect(o, "{}\n");
	free(o);
}

static void rows_share_a_line(void **state)
{
	struct out *o = memory();
	struct json j;

	(void)state;
	json_init(&j, o, false);
	json_begin_object(&j, NULL);
	json_begin_object(&j, "cpu");
	json_begin_array(&j, "methods");
	json_begin_object(&j, NULL);
	json_uint(&j, "x", 1);
	json_uint(&j, "y", 2);
	json_end(&j);
	json_end(&j);
	json_begin_array(&j, "threads");
	json_end(&j);
	json_end(&j);
	json_end(&j);
	expect(o, "{\n"
		  "  \"cpu\": {\n"
		  "    \"methods\": [\n"
		  "      {\"x\": 1, \"y\": 2}\n"
		  "    ],\n"
		  "    \"threads\": []\n"
		  "  }\n"
		  "}\n");
	free(o);
}

static void text_is_escaped_and_repaired(void **state)
{
	static const struct {
		const char *text, *json;
	} cases[] = {
		{ "", "\"\"" },
		{ "plain", "\"plain\"" },
		{ "a\"b\\c/", "\"a\\\"b\\\\c/\"" },
		{ "\n\t\x01\x1f\x7f", "\"\\u000a\\u0009\\u0001\\u001f\x7f\"" },
		{ "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
		  "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\"" },
		{ "\xff", "\"\xef\xbf\xbd\"" },
		{ "a\xc3", "\"a\xef\xbf\xbd\"" }, /* cut */
		{ "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"" }, /* overlong */
		{ "\xed\xa0\x80z", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\"" }, /* surrogate */
		{ "\xf4\x90\x80\x80",
		  "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" }, /* beyond U+10FFFF */
	};
	struct out *o = memory();
	struct json j;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_init(&j, o, true);
		json_text(&j, NULL, cases[i].text);
		expect(o, cases[i].json);
	}
	json_init(&j, o, true);
	json_textn(&j, NULL, "a\0b", 3);
	expect(o, "\"a\\u0000b\"");
	json_init(&j, o, true);
	json_text(&j, NULL, NULL);
	expect(o, "null");
	free(o);
}

static void put_number(struct out *o, const char *text, double v)
{
	struct json j;

	json_init(&j, o, true);
	json_double(&j, NULL, v);
	expect(o, text);
}

static void doubles_are_shortest(void **state)
{
	struct out *o = memory();
	uint64_t seed = 1;
	struct json j;

	(void)state;
	put_number(o, "0.1", 0.1);
	put_number(o, "0", 0);
	put_number(o, "-1.5", -1.5);
	put_number(o, "1e+300", 1e300);
	put_number(o, "0.30000000000000004", 0.1 + 0.2);
	put_number(o, "5e-324", 5e-324);
	put_number(o, "null", NAN);
	put_number(o, "null", INFINITY);
	put_number(o, "null", -INFINITY);
	for (int i = 0; i < 20000; i++) {
		double v, back;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		memcpy(&v, &seed, sizeof(v));
		if (!isfinite(v))
			continue;
		json_init(&j, o, true);
		json_double(&j, NULL, v);
		o->buffer[o->used] = '\0';
		back = strtod(o->buffer, NULL);
		assert_memory_equal(&back, &v, sizeof(v));
		o->used = 0;
	}
	json_init(&j, o, true);
	json_float(&j, NULL, 0.1f);
	expect(o, "0.1");
	free(o);
}

static void numbers_keep_their_value(void **state)
{
	struct out *o = memory();
	struct json j;

	(void)state;
	json_init(&j, o, true);
	json_begin_array(&j, NULL);
	json_uint(&j, NULL, UINT64_MAX);
	json_int(&j, NULL, INT64_MIN);
	json_uint_safe(&j, NULL, UINT64_C(9007199254740992));
	json_uint_safe(&j, NULL, UINT64_C(9007199254740993));
	json_int_safe(&j, NULL, -INT64_C(9007199254740992));
	json_int_safe(&j, NULL, -INT64_C(9007199254740993));
	json_fixed(&j, NULL, 12.3456, 2);
	json_fixed(&j, NULL, 12.0, 3);
	json_fixed(&j, NULL, -0.0001, 2);
	json_fixed(&j, NULL, 1200, 0);
	json_fixed(&j, NULL, NAN, 2);
	json_fixed(&j, NULL, 1e20, 2);
	json_ms(&j, NULL, 1);
	json_ms(&j, NULL, -1500000);
	json_ms(&j, NULL, 2000000);
	json_ms(&j, NULL, INT64_MIN);
	json_end(&j);
	expect(o, "[18446744073709551615,-9223372036854775808,9007199254740992,"
		  "\"9007199254740993\",-9007199254740992,\"-9007199254740993\","
		  "12.35,12,0,1200,null,1e+20,0.000001,-1.5,2,-9223372036854.775808]\n");
	free(o);
}

static void control_characters_are_shown(void **state)
{
	char buf[64];

	(void)state;
	assert_int_equal(utf8_escape("a\x1b[31mb\n", 8, buf, sizeof(buf)), 12);
	assert_string_equal(buf, "a\\x1b[31mb\\n");
	utf8_escape("x\xe2\x80\xaey", 5, buf, sizeof(buf)); /* text that runs right to left */
	assert_string_equal(buf, "x\\u{202e}y");
	utf8_escape("\xc2\x9b"
		    "1m",
		    4, buf, sizeof(buf)); /* C1 */
	assert_string_equal(buf, "\\x9b1m");
	assert_int_equal(utf8_escape("\xe2\x82\xac\xe2\x82\xac", 6, buf, 6), 3);
	assert_string_equal(buf, "\xe2\x82\xac"); /* never half a character */
	assert_int_equal(utf8_escape("abc", 3, buf, 1), 0);
	assert_int_equal(utf8_columns("gr\xc3\xbc\xc3\x9f"), 4);
}

static char folder[32], path[48];

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/drdotnet-out-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
}

static void remove_folder(void)
{
	unlink(path);
	assert_int_equal(rmdir(folder), 0); /* nothing else was left there */
}

static void expect_file(const char *text)
{
	char buf[64];
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	buf[fread(buf, 1, sizeof(buf) - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(buf, text);
}

static void files_appear_whole(void **state)
{
	struct out *o;

	(void)state;
	make_folder();
	o = out_open(path, false);
	assert_non_null(o);
	out_text(o, "one");
	out_flush(o);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(out_close(o, 3), 3);
	expect_file("one");

	assert_null(out_open(path, false));
	o = out_open(path, true);
	out_text(o, "two");
	out_discard(o);
	expect_file("one");

	o = out_open(path, true);
	out_text(o, "three");
	assert_int_equal(out_close(o, 0), 0);
	expect_file("three");
	remove_folder();
}

static void a_file_made_meanwhile_is_kept(void **state)
{
	struct out *o;
	FILE *f;

	(void)state;
	make_folder();
	o = out_open(path, false);
	f = fopen(path, "w");
	assert_non_null(o);
	assert_non_null(f);
	fputs("theirs", f);
	fclose(f);
	out_text(o, "ours");
	assert_int_equal(out_close(o, 0), 1);
	expect_file("theirs");
	remove_folder();
}

static void a_full_disk_is_a_failure(void **state)
{
	struct out *o = out_open("/dev/full", false);

	(void)state;
	assert_non_null(o);
	for (int i = 0; i < 20000; i++)
		out_printf(o, "line %d\n", i);
	assert_true(out_failed(o));
	assert_int_equal(o->error, ENOSPC);
	assert_int_equal(out_close(o, 0), 1);
}

static void long_text_passes_the_buffer(void **state)
{
	static char big[3 * OUT_BUFFER_BYTES];
	struct out *o;
	struct stat st;

	(void)state;
	make_folder();
	o = out_open(path, false);
	memset(big, 'x', sizeof(big) - 1);
	assert_non_null(o);
	out_char(o, 'a');
	out_text(o, big);
	out_printf(o, "%s!", big);
	assert_int_equal(out_close(o, 0), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 2 * (sizeof(big) - 1) + 2);
	remove_folder();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nesting_and_commas),
		cmocka_unit_test(rows_share_a_line),
		cmocka_unit_test(text_is_escaped_and_repaired),
		cmocka_unit_test(doubles_are_shortest),
		cmocka_unit_test(numbers_keep_their_value),
		cmocka_unit_test(control_characters_are_shown),
		cmocka_unit_test(files_appear_whole),
		cmocka_unit_test(a_file_made_meanwhile_is_kept),
		cmocka_unit_test(a_full_disk_is_a_failure),
		cmocka_unit_test(long_text_passes_the_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
