/* SPDX-License-Identifier: MIT */
/* Event definitions as rows of V6's metadata blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/tape.h"

enum { INT32 = 9, OBJECT = 1, ARRAY = 19, VARINT = 20, FIXED = 22, CHAR8 = 23, BOOL8 = 26 };
enum { OPCODE = 1, KEYWORDS = 3, TEMPLATE = 4, DESCRIPTION = 5, PAIR = 6, GUID = 7 };
enum { LEVEL = 8, VERSION = 9 };

/* A row without its size: fields as they were built, options likewise; both are freed. */
static struct build row_of(const char *provider, unsigned count, struct build *fields,
			   struct build *options)
{
	struct build row = { 0 };

	build_varuint(&row, 1);
	build_str6(&row, provider);
	build_varuint(&row, 7);
	build_str6(&row, "Hi");
	build_u16(&row, count);
	build_append(&row, fields);
	build_u16(&row, (unsigned)options->count);
	build_append(&row, options);
	return row;
}

/* A field: size, name, type, then bytes that nobody knows. */
static void field(struct build *to, const char *name, struct build *type, size_t extra)
{
	struct build f = { 0 };

	build_str6(&f, name);
	build_append(&f, type);
	build_repeat(&f, 0x55, extra);
	build_u16(to, (unsigned)f.count);
	build_append(to, &f);
}

static void simple(struct build *to, const char *name, unsigned code)
{
	struct build type = { 0 };

	build_u8(&type, code);
	field(to, name, &type, 0);
}

/* A type of that many codes. */
static void codes(struct build *to, size_t n, const char *text)
{
	build_bytes(to, text, n);
}

/* A stream with a metadata block of that content, and one event. */
static void play_block(struct tape *t, struct build *content)
{
	struct build b = build_new(6);

	build_block6(&b, KIND6_METADATA, content);
	build_event(&b, 6, 2000, 5);
	build_close(&b, 6);
	tape_play(t, &b, 0, 0);
}

static void play(struct tape *t, struct build *row)
{
	struct build content = { 0 };

	build_u16(&content, 0);
	build_sized_row(&content, row);
	play_block(t, &content);
}

static void expect(struct build *row, const char *def)
{
	struct tape t = { 0 };

	play(&t, row);
	assert_int_equal(t.status, NT_OK);
	assert_string_equal(t.defs, def);
	assert_int_equal(t.stats.bad_definitions, 0);
	assert_int_equal(t.count, 1);
	assert_true(t.events[0].defined);
}

/* The event is kept without fields; options are where nobody knows. */
static void expect_raw(struct build *row)
{
	struct tape t = { 0 };

	play(&t, row);
	assert_int_equal(t.status, NT_OK);
	assert_string_equal(t.defs, "Demo/7 Hi l0 k0 v0 o0 none\n");
	assert_int_equal(t.stats.bad_definitions, 1);
	assert_int_equal(t.count, 1);
}

/* --- rows and their options --- */

static void without_options_all_is_zero(void **state)
{
	struct build none = { 0 }, row = row_of("Demo", 0, &none, &none);

	(void)state;
	expect(&row, "Demo/7 Hi l0 k0 v0 o0 none\n");
}

static void add_all_options(struct build *options)
{
	build_u8(options, TEMPLATE);
	build_str6(options, "{0} is late");
	build_u8(options, OPCODE);
	build_u8(options, 200);
	build_u8(options, DESCRIPTION);
	build_str6(options, "");
	build_u8(options, KEYWORDS);
	build_u64(options, 0x8000000000000000);
	build_u8(options, PAIR);
	build_str6(options, "key");
	build_str6(options, "value");
	build_u8(options, GUID);
	build_repeat(options, 0x11, 16);
	build_u8(options, LEVEL);
	build_u8(options, 5);
	build_u8(options, VERSION);
	build_u8(options, 255);
}

static void every_option_is_read_or_skipped(void **state)
{
	struct build none = { 0 }, options = { 0 }, row;

	(void)state;
	add_all_options(&options);
	row = row_of("Demo", 0, &none, &options);
	expect(&row, "Demo/7 Hi l5 k9223372036854775808 v255 o200 none\n");
}

static void an_unknown_option_ends_the_options_only(void **state)
{
	static const unsigned kinds[] = { 0, 2, 10, 255 };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct build fields = { 0 }, options = { 0 }, row;

		simple(&fields, "n", INT32);
		build_u8(&options, OPCODE);
		build_u8(&options, 3);
		build_u8(&options, kinds[i]);
		build_u8(&options, LEVEL);
		build_u8(&options, 5);
		row = row_of("Demo", 1, &fields, &options);
		expect(&row, "Demo/7 Hi l0 k0 v0 o3 {n:9}\n");
	}
}

static void bytes_behind_the_options_are_skipped(void **state)
{
	struct build none = { 0 }, row = row_of("Demo", 0, &none, &none), content = { 0 };
	struct tape t = { 0 };

	(void)state;
	build_bytes(&row, "from the future", 15);
	build_u16(&content, 0);
	build_sized_row(&content, &row);
	build_definition6(&content, 2, "Demo", 8, "Ho");
	play_block(&t, &content);
	assert_int_equal(t.status, NT_OK);
	assert_string_equal(t.log, "trace define:Hi define:Ho Hi@2000");
}

static void a_row_of_everything_cut_at_every_byte(void **state)
{
	struct build fields = { 0 }, options = { 0 }, type = { 0 }, whole;
	/* id, provider, event id, name, count */
	const size_t fixed = 1 + 5 + 1 + 3 + 2;
	size_t fields_end;

	(void)state;
	simple(&fields, "n", INT32);
	codes(&type, 2, "\x13\x12"); /* array of strings */
	field(&fields, "list", &type, 2);
	fields_end = fixed + fields.count;
	add_all_options(&options);
	whole = row_of("Demo", 2, &fields, &options);
	for (size_t size = 0; size < whole.count; size++) {
		struct build row = { 0 };
		struct tape t = { 0 };

		build_bytes(&row, whole.bytes, size);
		play(&t, &row);
		if (size < fixed) {
			assert_int_equal(t.status, NT_EFORMAT);
			assert_string_equal(t.error.what, "event definition ends too early");
			assert_int_equal(t.count, 0);
			continue;
		}
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.stats.bad_definitions, 1);
		assert_int_equal(t.count, 1);
		assert_string_equal(t.events[0].name, "Hi");
		assert_int_equal(t.events[0].field_count, size < fields_end ? 0 : 2);
		assert_int_equal(t.events[0].opcode, 0); /* the options' size is wrong */
	}
	build_done(&whole);
}

static void an_option_cut_by_the_options_size(void **state)
{
	struct build none = { 0 }, options = { 0 }, row;
	struct tape t = { 0 };

	(void)state;
	build_u8(&options, OPCODE);
	build_u8(&options, 3);
	build_u8(&options, KEYWORDS);
	build_u32(&options, 0xffffffff); /* half of them */
	row = row_of("Demo", 0, &none, &options);
	build_repeat(&row, 0xff, 8);
	play(&t, &row);
	assert_int_equal(t.status, NT_OK);
	assert_string_equal(t.defs, "Demo/7 Hi l0 k0 v0 o3 none\n");
	assert_int_equal(t.stats.bad_definitions, 1);
}

/* --- the block --- */

static void the_block_header_does_not_count_itself(void **state)
{
	static const unsigned sizes[] = { 0, 1, 8 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct build content = { 0 };
		struct tape t = { 0 };

		build_u16(&content, sizes[i]);
		build_repeat(&content, 0x77, sizes[i]);
		build_definition6(&content, 1, "Demo", 7, "Hi");
		play_block(&t, &content);
		assert_int_equal(t.status, NT_OK);
		assert_string_equal(t.log, "trace define:Hi Hi@2000");
	}
}

static void a_block_without_rows_is_empty(void **state)
{
	struct build content = { 0 };
	struct tape t = { 0 };

	(void)state;
	build_u16(&content, 0);
	play_block(&t, &content);
	assert_int_equal(t.status, NT_OK);
	assert_int_equal(t.stats.unknown_metadata, 1);
}

static void sizes_that_run_past_the_block(void **state)
{
	static const struct {
		unsigned header, row;
		const char *what;
		size_t at; /* behind the block's start */
	} cases[] = {
		{ 0xffff, 13, "metadata block header runs past its block", 2 },
		{ 17, 13, "metadata block header runs past its block", 2 },
		{ 0, 15, "event definition runs past its block", 4 },
		{ 0, 0xffff, "event definition runs past its block", 4 },
		{ 15, 14, "event definition runs past its block", 17 }, /* half a size */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct build b = build_new(6), content = { 0 };
		struct tape t = { 0 };
		size_t start = b.count + 4;

		build_u16(&content, 0);
		build_definition6(&content, 1, "Demo", 7, "Hi");
		assert_int_equal(content.count, 2 + 2 + 14);
		build_patch_u16(&content, 0, cases[i].header);
		build_patch_u16(&content, 2, cases[i].row);
		build_block6(&b, KIND6_METADATA, &content);
		build_close(&b, 6);
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_EFORMAT);
		assert_string_equal(t.error.what, cases[i].what);
		assert_int_equal(t.error.offset, start + cases[i].at);
		assert_string_equal(t.error.block, "MetadataBlock");
	}
}

static void a_string_longer_than_its_row_is_refused(void **state)
{
	static const uint64_t lengths[] = { 100, 0x7fffffff, 0xffffffff };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct build row = { 0 };
		struct tape t = { 0 };

		build_varuint(&row, 1);
		build_varuint(&row, lengths[i]);
		build_bytes(&row, "Demo", 4);
		play(&t, &row);
		assert_int_equal(t.status, NT_EFORMAT);
		assert_string_equal(t.error.what, "event definition ends too early");
	}
}

/* --- fields --- */

static void scalar_types(void **state)
{
	struct build fields = { 0 }, none = { 0 }, row;

	(void)state;
	for (unsigned code = 3; code <= 18; code++)
		simple(&fields, (const char[]){ (char)('a' + code - 3), 0 }, code);
	simple(&fields, "q", 20);
	simple(&fields, "r", 21);
	simple(&fields, "s", CHAR8);
	simple(&fields, "t", BOOL8);
	row = row_of("Demo", 20, &fields, &none);
	expect(&row, "Demo/7 Hi l0 k0 v0 o0 {a:3 b:4 c:5 d:6 e:7 f:8 g:9 h:10 i:11 j:12 k:13 l:14 "
		     "m:15 n:16 o:17 p:18 q:20 r:21 s:23 t:26}\n");
}

static void types_with_elements(void **state)
{
	struct build fields = { 0 }, none = { 0 }, type = { 0 }, row;

	(void)state;
	codes(&type, 2, "\x13\x09"); /* array */
	field(&fields, "a", &type, 0);
	codes(&type, 4, "\x16\x06\x10\x00"); /* 16 bytes */
	field(&fields, "f", &type, 0);
	codes(&type, 2, "\x18\x17"); /* RelLoc of characters */
	field(&fields, "r", &type, 0);
	codes(&type, 2, "\x19\x0a"); /* DataLoc */
	field(&fields, "d", &type, 0);
	codes(&type, 3, "\x13\x13\x12"); /* array of arrays */
	field(&fields, "aa", &type, 0);
	codes(&type, 7, "\x16\x16\x04\x03\x00\x02\x00"); /* the inner length stands first */
	field(&fields, "ff", &type, 0);
	codes(&type, 5, "\x13\x16\x14\x05\x00"); /* array of 5 VarInts each */
	field(&fields, "af", &type, 0);
	row = row_of("Demo", 7, &fields, &none);
	expect(&row, "Demo/7 Hi l0 k0 v0 o0 {a:19{:9} f:22*16{:6} r:24{:23} d:25{:10} "
		     "aa:19{:19{:18}} ff:22*2{:22*3{:4}} af:19{:22*5{:20}}}\n");
}

static void objects(void **state)
{
	struct build fields = { 0 }, none = { 0 }, type = { 0 }, row;

	(void)state;
	build_u8(&type, OBJECT);
	build_u16(&type, 2);
	simple(&type, "x", INT32);
	simple(&type, "y", VARINT);
	field(&fields, "o", &type, 0);
	build_u8(&type, ARRAY);
	build_u8(&type, OBJECT);
	build_u16(&type, 1);
	simple(&type, "z", INT32);
	field(&fields, "list", &type, 3);
	build_u8(&type, FIXED);
	build_u8(&type, OBJECT);
	build_u16(&type, 1);
	simple(&type, "w", INT32);
	build_u16(&type, 4); /* the length stands behind the object */
	field(&fields, "four", &type, 1);
	build_u8(&type, OBJECT);
	build_u16(&type, 0);
	field(&fields, "empty", &type, 0);
	row = row_of("Demo", 4, &fields, &none);
	expect(&row, "Demo/7 Hi l0 k0 v0 o0 {o:1{x:9 y:20} list:19{:1{z:9}} four:22*4{:1{w:9}} "
		     "empty:1}\n");
}

static void bytes_behind_a_field_are_skipped(void **state)
{
	struct build fields = { 0 }, options = { 0 }, type = { 0 }, row;

	(void)state;
	build_u8(&type, INT32);
	field(&fields, "a", &type, 6);
	simple(&fields, "b", INT32);
	build_u8(&options, LEVEL);
	build_u8(&options, 2);
	row = row_of("Demo", 2, &fields, &options);
	expect(&row, "Demo/7 Hi l2 k0 v0 o0 {a:9 b:9}\n");
}

/* They mean a 16-bit length and UTF-8 there. */
static void type_23_is_a_string_of_universal_providers(void **state)
{
	static const char *const providers[] = { "Universal.System", "Universal.Events",
						 "Universal.Later", "universal.x", "Universal" };

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct build fields = { 0 }, none = { 0 }, row;
		struct tape t = { 0 };

		simple(&fields, "s", CHAR8);
		row = row_of(providers[i], 1, &fields, &none);
		play(&t, &row);
		assert_non_null(strstr(t.defs, i < 3 ? "{s:66}" : "{s:23}"));
		assert_int_equal(NT_T_STRING8_LEN16, 66);
	}
}

static void types_that_are_unknown_leave_the_event_raw(void **state)
{
	static const unsigned unknown[] = { 0, 2, 27, 64, 65, 66, 255 };

	(void)state;
	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++) {
		struct build fields = { 0 }, options = { 0 }, row;

		simple(&fields, "a", INT32);
		simple(&fields, "b", unknown[i]);
		add_all_options(&options);
		row = row_of("Demo", 2, &fields, &options);
		expect_raw(&row);
	}
}

static void hostile_counts_and_sizes_of_fields(void **state)
{
	static const unsigned sizes[] = { 0, 1, 2, 4, 9, 0x7fff, 0xffff }; /* 3 is right */
	static const unsigned counts[] = { 2, 3, 0x7fff, 0xffff };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		struct build fields = { 0 }, none = { 0 }, type = { 0 }, row;

		simple(&fields, "n", INT32);
		row = row_of("Demo", counts[i], &fields, &none);
		expect_raw(&row);
		build_u8(&type, OBJECT);
		build_u16(&type, counts[i]);
		simple(&type, "n", INT32);
		field(&fields, "o", &type, 0);
		row = row_of("Demo", 1, &fields, &none);
		expect_raw(&row);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct build fields = { 0 }, none = { 0 }, row;
		struct tape t = { 0 };

		simple(&fields, "n", INT32);
		build_patch_u16(&fields, 0, sizes[i]);
		row = row_of("Demo", 1, &fields, &none);
		play(&t, &row);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.stats.bad_definitions, 1);
		assert_int_equal(t.count, 1);
		assert_int_equal(t.events[0].opcode + t.events[0].level, 0);
	}
}

/* --- and events are read by them --- */

static enum nt_status check_values(void *ctx, const struct nt_event *ev)
{
	struct nt_value v[8];
	struct nt_payload_fit fit;

	*(size_t *)ctx += 1;
	assert_int_equal(nt_payload_read(ev, v, 8, &fit), 7);
	assert_int_equal(v[0].kind, NT_V_INT);
	assert_int_equal(v[0].i, -3);
	assert_int_equal(v[1].kind, NT_V_UINT);
	assert_int_equal(v[1].u, 300);
	assert_int_equal(v[2].kind, NT_V_ARRAY);
	assert_int_equal(v[2].u, 3);
	assert_memory_equal(v[2].data, "\x01\x02\x03", 3);
	assert_int_equal(v[3].kind, NT_V_BOOL);
	assert_int_equal(v[3].u, 1);
	assert_int_equal(v[4].kind, NT_V_UTF16);
	assert_int_equal(v[4].bytes, 4);
	assert_memory_equal(v[4].data, "H\0i\0", 4);
	assert_int_equal(v[5].kind, NT_V_ARRAY);
	assert_int_equal(v[5].u, 1);
	assert_int_equal(v[6].kind, NT_V_ARRAY);
	assert_int_equal(v[6].u, 2);
	assert_true(fit.complete);
	return NT_OK;
}

/* The types that only V6 has; where located data begins is written behind each. */
static void the_types_of_v6_from_definition_to_value(void **state)
{
	static const struct nt_sink sink = { .event = check_values };
	static const char payload[] = "\x05" /* VarInt: -3 */
				      "\xac\x02" /* VarUInt: 300 */
				      "\x01\x02\x03" /* 3 bytes */
				      "\x01" /* Boolean8 */
				      "\x08\x00\x04\x00" /* RelLoc: 4 bytes at 11 + 8 */
				      "\x17\x00\x04\x00" /* DataLoc: 4 bytes at 23 */
				      "\x02\x00\x01\x02" /* an array: -1, 1 */
				      "H\0i\0\x07\0\0";
	const struct build_row event = {
		.metadata_id = 1,
		.payload = payload,
		.payload_bytes = sizeof(payload), /* the last 0 is the number's */
	};
	struct build b = build_new(6), content = { 0 }, fields = { 0 }, none = { 0 }, type = { 0 };
	struct build row, rows = { 0 };
	size_t seen = 0;
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, 0, &sink, &seen);

	(void)state;
	simple(&fields, "a", VARINT);
	simple(&fields, "b", 21);
	codes(&type, 4, "\x16\x06\x03\x00");
	field(&fields, "c", &type, 0);
	simple(&fields, "d", BOOL8);
	codes(&type, 2, "\x18\x04");
	field(&fields, "e", &type, 0);
	codes(&type, 2, "\x19\x09");
	field(&fields, "f", &type, 0);
	codes(&type, 2, "\x13\x14");
	field(&fields, "g", &type, 0);
	row = row_of("Demo", 7, &fields, &none);
	build_u16(&content, 0);
	build_sized_row(&content, &row);
	build_block6(&b, KIND6_METADATA, &content);
	build_row(&rows, true, &event);
	build_rows(&b, 6, &rows);
	build_close(&b, 6);
	assert_int_equal(nt_decoder_push(d, b.bytes, b.count), NT_OK);
	assert_int_equal(nt_decoder_finish(d), NT_OK);
	assert_int_equal(seen, 1);
	nt_decoder_free(d);
	build_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_options_all_is_zero),
		cmocka_unit_test(every_option_is_read_or_skipped),
		cmocka_unit_test(an_unknown_option_ends_the_options_only),
		cmocka_unit_test(bytes_behind_the_options_are_skipped),
		cmocka_unit_test(a_row_of_everything_cut_at_every_byte),
		cmocka_unit_test(an_option_cut_by_the_options_size),
		cmocka_unit_test(the_block_header_does_not_count_itself),
		cmocka_unit_test(a_block_without_rows_is_empty),
		cmocka_unit_test(sizes_that_run_past_the_block),
		cmocka_unit_test(a_string_longer_than_its_row_is_refused),
		cmocka_unit_test(scalar_types),
		cmocka_unit_test(types_with_elements),
		cmocka_unit_test(objects),
		cmocka_unit_test(bytes_behind_a_field_are_skipped),
		cmocka_unit_test(type_23_is_a_string_of_universal_providers),
		cmocka_unit_test(types_that_are_unknown_leave_the_event_raw),
		cmocka_unit_test(hostile_counts_and_sizes_of_fields),
		cmocka_unit_test(the_types_of_v6_from_definition_to_value),
	};

	return cmocka_run_group_tests_name("block_metadata_v6", tests, NULL, NULL);
}
