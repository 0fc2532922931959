/* SPDX-License-Identifier: MIT */
/* Event definitions as metadata payloads of V3 to "V5" have them, and how events find theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/tape.h"

enum { INT32 = 9, ARRAY = 19, OBJECT = 1, STRING = 18 };
enum { TAG_OPCODE = 1, TAG_V2 = 2 };

/* Bytes of a definition's head with those names: id, event id, keywords, version, level. */
#define HEAD_BYTES(provider, name) (4 + 4 + 8 + 4 + 4 + 2 * sizeof(provider) + 2 * sizeof(name))

static void head(struct build *p)
{
	build_definition_head(p, 1, "Demo", 7, "Hi");
}

static void field(struct build *p, uint32_t code, const char *name)
{
	build_u32(p, code);
	build_utf16(p, name);
}

static void tag(struct build *p, unsigned kind, struct build *content)
{
	build_u32(p, (uint32_t)content->count);
	build_u8(p, kind);
	build_append(p, content);
}

static void opcode_tag(struct build *p, unsigned opcode)
{
	struct build content = { 0 };

	build_u8(&content, opcode);
	tag(p, TAG_OPCODE, &content);
}

/* A V2 field: size, name, then its type in type, which is freed; extra bytes behind it. */
static void field_v2(struct build *to, const char *name, struct build *type, size_t extra)
{
	struct build f = { 0 };

	build_utf16(&f, name);
	build_append(&f, type);
	build_repeat(&f, 0x55, extra);
	build_u32(to, (uint32_t)f.count + 4);
	build_append(to, &f);
}

static void simple_v2(struct build *to, const char *name, uint32_t code)
{
	struct build type = { 0 };

	build_u32(&type, code);
	field_v2(to, name, &type, 0);
}

/* A stream with that one definition and an event of it. */
static void play(struct tape *t, struct build *payload)
{
	struct build b = build_new(4), rows = { 0 };

	build_rows_header(&rows, 1);
	build_definition_row(&rows, payload);
	build_object(&b, 4, "MetadataBlock", &rows);
	build_event(&b, 4, 2000, 5);
	build_end(&b);
	tape_play(t, &b, 0, 0);
}

/* The definition must be read as that line says, without any complaint. */
static void expect(struct build *payload, const char *def)
{
	struct tape t = { 0 };

	play(&t, payload);
	assert_int_equal(t.status, NT_OK);
	assert_string_equal(t.defs, def);
	assert_int_equal(t.stats.bad_definitions, 0);
	assert_int_equal(t.count, 1);
	assert_true(t.events[0].defined);
}

/* The event is kept, but its fields cannot be known. */
static void expect_raw(struct build *payload)
{
	struct tape t = { 0 };

	play(&t, payload);
	assert_int_equal(t.status, NT_OK);
	assert_string_equal(t.defs, "Demo/7 Hi l4 k1 v0 o0 none\n");
	assert_int_equal(t.stats.bad_definitions, 1);
	assert_int_equal(t.count, 1);
	assert_int_equal(t.events[0].layout, NT_LAYOUT_NONE);
	assert_int_equal(t.events[0].field_count, 0);
}

/* --- the fixed part --- */

static void a_payload_may_end_before_the_count_of_fields(void **state)
{
	struct build p = { 0 };

	(void)state;
	head(&p);
	expect(&p, "Demo/7 Hi l4 k1 v0 o0 none\n");
}

static void half_a_count_of_fields_leaves_the_event_raw(void **state)
{
	(void)state;
	for (size_t bytes = 1; bytes < 4; bytes++) {
		struct build p = { 0 };

		head(&p);
		build_repeat(&p, 0, bytes);
		expect_raw(&p);
	}
}

static void numbers_of_the_fixed_part(void **state)
{
	struct build p = { 0 };

	(void)state;
	build_u32(&p, 1);
	build_utf16(&p, "P");
	build_u32(&p, 65535);
	build_utf16(&p, "E");
	build_u64(&p, 0xf000000000000000);
	build_u32(&p, 3);
	build_u32(&p, 5);
	expect(&p, "P/65535 E l5 k17293822569102704640 v3 o0 none\n");
}

static void names_may_be_empty(void **state)
{
	struct build p = { 0 };

	(void)state;
	build_definition_head(&p, 1, "", 7, "");
	build_u32(&p, 1);
	field(&p, INT32, "");
	expect(&p, "/7 Event7 l4 k1 v0 o0 {:9}\n");
}

static void names_may_be_in_any_language(void **state)
{
	struct build p = { 0 };

	(void)state;
	build_u32(&p, 1);
	build_bytes(&p, "\xe9\0\0", 4); /* e acute */
	build_u32(&p, 1);
	build_bytes(&p, "\x3d\xd8\x00\xde\0", 6); /* U+1F600 */
	build_repeat(&p, 0, 16);
	build_u32(&p, 1);
	build_u32(&p, INT32);
	build_bytes(&p, "\xac\x20\0", 4); /* euro */
	expect(&p, "\xc3\xa9/1 \xf0\x9f\x98\x80 l0 k0 v0 o0 {\xe2\x82\xac:9}\n");
}

static void nameless_events_of_the_runtime_are_in_the_table(void **state)
{
	struct build p = { 0 };
	struct tape t = { 0 };

	(void)state;
	build_definition_head(&p, 1, "Microsoft-Windows-DotNETRuntime", 1, "");
	build_u32(&p, 0);
	play(&t, &p);
	assert_string_equal(t.defs,
			    "Microsoft-Windows-DotNETRuntime/1 GCStart l4 k1 v0 o0 table\n");
	assert_int_equal(t.events[0].layout, NT_LAYOUT_TABLE);
}

static void cut_in_its_fixed_part_a_definition_is_a_fault(void **state)
{
	struct build whole = { 0 };

	(void)state;
	head(&whole);
	assert_int_equal(whole.count, HEAD_BYTES("Demo", "Hi"));
	for (size_t size = 0; size < whole.count; size++) {
		struct build p = { 0 };
		struct tape t = { 0 };

		build_bytes(&p, whole.bytes, size);
		play(&t, &p);
		assert_int_equal(t.status, NT_EFORMAT);
		assert_string_equal(t.error.what, "event definition ends too early");
		assert_string_equal(t.error.block, "MetadataBlock");
		assert_string_equal(t.defs, "");
		assert_int_equal(t.count, 0);
	}
	build_done(&whole);
}

static void the_fault_is_at_the_value_that_is_cut(void **state)
{
	/* id, provider, event id, name, keywords, version, level */
	static const size_t parts[] = { 0, 4, 14, 18, 24, 32, 36, 40 };

	(void)state;
	for (size_t i = 0; i < 7; i++) {
		struct build b = build_new(4), rows = { 0 }, p = { 0 };
		struct tape t = { 0 };
		size_t size = parts[i + 1] - 1, end, want;

		head(&p);
		p.count = size;
		build_rows_header(&rows, 1);
		build_definition_row(&rows, &p);
		build_object(&b, 4, "MetadataBlock", &rows);
		end = b.count - 1;
		/* A string is read two bytes at a time. */
		want = i == 1 || i == 3 ? size - 1 : parts[i];
		tape_play(&t, &b, 0, 0);
		assert_int_equal(t.status, NT_EFORMAT);
		assert_int_equal(t.error.offset, end - size + want);
	}
}

/* --- fields --- */

static void scalar_fields(void **state)
{
	struct build p = { 0 };

	(void)state;
	head(&p);
	build_u32(&p, 16);
	for (uint32_t code = 3; code <= 18; code++)
		field(&p, code, (const char[]){ (char)('a' + code - 3), 0 });
	expect(&p, "Demo/7 Hi l4 k1 v0 o0 {a:3 b:4 c:5 d:6 e:7 f:8 g:9 h:10 i:11 j:12 k:13 l:14 "
		   "m:15 n:16 o:17 p:18}\n");
}

static void unknown_types_leave_the_event_raw(void **state)
{
	static const uint32_t codes[] = { 0,  2,  19, 20, 21, 22,  23,	  24,	     25,
					  26, 27, 64, 65, 66, 255, 0x109, INT32_MAX, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		struct build p = { 0 };

		head(&p);
		build_u32(&p, 2);
		field(&p, INT32, "a");
		field(&p, codes[i], "b");
		build_repeat(&p, 0, 40);
		expect_raw(&p);
	}
}

/* As counters have them. */
static void objects_are_nested_and_have_their_name_behind_them(void **state)
{
	struct build p = { 0 };

	(void)state;
	head(&p);
	build_u32(&p, 2);
	build_u32(&p, OBJECT);
	build_u32(&p, 3);
	field(&p, INT32, "a");
	build_u32(&p, OBJECT);
	build_u32(&p, 1);
	field(&p, STRING, "c");
	build_utf16(&p, "b");
	build_u32(&p, OBJECT);
	build_u32(&p, 0);
	build_utf16(&p, "empty");
	build_utf16(&p, "Payload");
	field(&p, 14, "last");
	expect(&p, "Demo/7 Hi l4 k1 v0 o0 {Payload:1{a:9 b:1{c:18} empty:1} last:14}\n");
}

static void hostile_counts_of_fields(void **state)
{
	static const uint32_t counts[] = { 2, 1000, INT32_MAX, 0x80000000, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		struct build p = { 0 };

		head(&p);
		build_u32(&p, counts[i]);
		field(&p, INT32, "n");
		expect_raw(&p);

		head(&p);
		build_u32(&p, 1);
		build_u32(&p, OBJECT);
		build_u32(&p, counts[i]);
		field(&p, INT32, "n");
		build_utf16(&p, "o");
		expect_raw(&p);
	}
}

/* --- tags --- */

static void an_opcode_stands_in_a_tag(void **state)
{
	struct build p = { 0 };

	(void)state;
	head(&p);
	build_u32(&p, 1);
	field(&p, INT32, "n");
	opcode_tag(&p, 255);
	expect(&p, "Demo/7 Hi l4 k1 v0 o255 {n:9}\n");
}

static void bytes_behind_the_opcode_are_ignored(void **state)
{
	struct build p = { 0 }, content = { 0 };

	(void)state;
	head(&p);
	build_u32(&p, 0);
	build_bytes(&content, "\x02more", 5);
	tag(&p, TAG_OPCODE, &content);
	expect(&p, "Demo/7 Hi l4 k1 v0 o2 none\n");
}

static void an_opcode_tag_may_be_empty(void **state)
{
	struct build p = { 0 }, content = { 0 };

	(void)state;
	head(&p);
	build_u32(&p, 0);
	tag(&p, TAG_OPCODE, &content);
	expect(&p, "Demo/7 Hi l4 k1 v0 o0 none\n");
}

static void unknown_tags_are_skipped(void **state)
{
	static const unsigned kinds[] = { 0, 3, 77, 255 };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct build p = { 0 }, content = { 0 };

		head(&p);
		build_u32(&p, 1);
		field(&p, INT32, "n");
		build_bytes(&content, "whatever", 2 * i);
		tag(&p, kinds[i], &content);
		opcode_tag(&p, 9);
		expect(&p, "Demo/7 Hi l4 k1 v0 o9 {n:9}\n");
	}
}

static void a_tag_that_runs_past_the_payload_is_left_out(void **state)
{
	static const uint32_t sizes[] = { 2, INT32_MAX, 0x80000000, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct build p = { 0 };
		struct tape t = { 0 };

		head(&p);
		build_u32(&p, 1);
		field(&p, INT32, "n");
		build_u32(&p, sizes[i]);
		build_u8(&p, TAG_OPCODE);
		build_u8(&p, 9);
		play(&t, &p);
		assert_int_equal(t.status, NT_OK);
		assert_string_equal(t.defs, "Demo/7 Hi l4 k1 v0 o0 {n:9}\n");
		assert_int_equal(t.stats.bad_definitions, 1);
		assert_int_equal(t.count, 1);
	}
}

/* --- the V2 parameters --- */

static void v2_params(struct build *p, uint32_t count, struct build *fields)
{
	struct build content = { 0 };

	build_u32(&content, count);
	build_append(&content, fields);
	tag(p, TAG_V2, &content);
}

static void arrays_stand_in_v2_parameters(void **state)
{
	struct build p = { 0 }, fields = { 0 }, type = { 0 };

	(void)state;
	head(&p);
	build_u32(&p, 0);
	opcode_tag(&p, 1);
	simple_v2(&fields, "n", INT32);
	build_u32(&type, ARRAY);
	build_u32(&type, 6);
	field_v2(&fields, "bytes", &type, 0);
	build_u32(&type, ARRAY);
	build_u32(&type, ARRAY);
	build_u32(&type, STRING);
	field_v2(&fields, "lists", &type, 0);
	v2_params(&p, 3, &fields);
	expect(&p, "Demo/7 Hi l4 k1 v0 o1 {n:9 bytes:19{:6} lists:19{:19{:18}}}\n");
}

/* As the arguments of DiagnosticSource events are. */
static void arrays_of_objects(void **state)
{
	struct build p = { 0 }, fields = { 0 }, type = { 0 };

	(void)state;
	head(&p);
	build_u32(&p, 0);
	build_u32(&type, ARRAY);
	build_u32(&type, OBJECT);
	build_u32(&type, 2);
	simple_v2(&type, "Key", STRING);
	simple_v2(&type, "Value", STRING);
	field_v2(&fields, "Arguments", &type, 0);
	simple_v2(&fields, "n", INT32);
	v2_params(&p, 2, &fields);
	expect(&p, "Demo/7 Hi l4 k1 v0 o0 {Arguments:19{:1{Key:18 Value:18}} n:9}\n");
}

static void objects_in_objects(void **state)
{
	struct build p = { 0 }, fields = { 0 }, inner = { 0 }, outer = { 0 };

	(void)state;
	head(&p);
	build_u32(&p, 0);
	build_u32(&inner, ARRAY);
	build_u32(&inner, OBJECT);
	build_u32(&inner, 1);
	simple_v2(&inner, "x", 14);
	build_u32(&outer, OBJECT);
	build_u32(&outer, 2);
	field_v2(&outer, "points", &inner, 0);
	simple_v2(&outer, "y", 13);
	field_v2(&fields, "o", &outer, 0);
	v2_params(&p, 1, &fields);
	expect(&p, "Demo/7 Hi l4 k1 v0 o0 {o:1{points:19{:1{x:14}} y:13}}\n");
}

static void bytes_behind_a_v2_parameter_are_skipped(void **state)
{
	struct build p = { 0 }, fields = { 0 }, type = { 0 };

	(void)state;
	head(&p);
	build_u32(&p, 0);
	build_u32(&type, INT32);
	field_v2(&fields, "a", &type, 5);
	build_u32(&type, OBJECT);
	build_u32(&type, 1);
	simple_v2(&type, "c", INT32);
	field_v2(&fields, "b", &type, 9);
	simple_v2(&fields, "d", INT32);
	build_bytes(&fields, "behind all of them", 18);
	v2_params(&p, 3, &fields);
	expect(&p, "Demo/7 Hi l4 k1 v0 o0 {a:9 b:1{c:9} d:9}\n");
}

static void v2_parameters_win_over_v1_fields(void **state)
{
	struct build p = { 0 }, fields = { 0 };

	(void)state;
	head(&p);
	build_u32(&p, 1);
	field(&p, INT32, "old");
	simple_v2(&fields, "new", STRING);
	v2_params(&p, 1, &fields);
	expect(&p, "Demo/7 Hi l4 k1 v0 o0 {new:18}\n");
}

static void sizes_of_v2_parameters_that_cannot_be(void **state)
{
	/* 16 is right: itself, "n", the type */
	static const uint32_t sizes[] = { 0, 3, 4, 11, 13, INT32_MAX, 0x80000000, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct build p = { 0 }, fields = { 0 };

		head(&p);
		build_u32(&p, 0);
		simple_v2(&fields, "n", INT32);
		build_patch_u32(&fields, 0, sizes[i]);
		v2_params(&p, 1, &fields);
		expect_raw(&p);
	}
}

static void hostile_counts_of_v2_parameters(void **state)
{
	static const uint32_t counts[] = { 2, 1000, INT32_MAX, 0x80000000, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		struct build p = { 0 }, fields = { 0 }, type = { 0 };

		head(&p);
		build_u32(&p, 0);
		simple_v2(&fields, "n", INT32);
		v2_params(&p, counts[i], &fields);
		expect_raw(&p);

		head(&p);
		build_u32(&p, 0);
		build_u32(&type, OBJECT);
		build_u32(&type, counts[i]);
		simple_v2(&type, "n", INT32);
		field_v2(&fields, "o", &type, 0);
		v2_params(&p, 1, &fields);
		expect_raw(&p);
	}
}

static void a_v2_tag_without_its_count_leaves_the_event_raw(void **state)
{
	(void)state;
	for (size_t bytes = 0; bytes < 4; bytes++) {
		struct build p = { 0 }, content = { 0 };

		head(&p);
		build_u32(&p, 1);
		field(&p, INT32, "n");
		build_repeat(&content, 0, bytes);
		tag(&p, TAG_V2, &content);
		expect_raw(&p);
	}
}

/* A definition with everything, cut at every byte behind the level: the event stays. */
static void cut_behind_its_fixed_part_a_definition_keeps_its_event(void **state)
{
	struct build whole = { 0 }, fields = { 0 }, type = { 0 };
	size_t fixed, opcode_end;

	(void)state;
	head(&whole);
	fixed = whole.count;
	build_u32(&whole, 0);
	opcode_tag(&whole, 1);
	opcode_end = whole.count;
	build_u32(&type, ARRAY);
	build_u32(&type, OBJECT);
	build_u32(&type, 1);
	simple_v2(&type, "x", INT32);
	field_v2(&fields, "list", &type, 0);
	v2_params(&whole, 1, &fields);
	for (size_t size = fixed; size <= whole.count; size++) {
		bool sound = size == fixed || size == fixed + 4 || size == opcode_end ||
			     size == whole.count;
		struct build p = { 0 };
		struct tape t = { 0 };

		build_bytes(&p, whole.bytes, size);
		play(&t, &p);
		assert_int_equal(t.status, NT_OK);
		assert_int_equal(t.stats.bad_definitions, !sound);
		assert_int_equal(t.count, 1);
		assert_string_equal(t.events[0].name, "Hi");
		assert_int_equal(t.events[0].opcode, size >= opcode_end);
		assert_int_equal(t.events[0].field_count, size == whole.count);
	}
	build_done(&whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_payload_may_end_before_the_count_of_fields),
		cmocka_unit_test(half_a_count_of_fields_leaves_the_event_raw),
		cmocka_unit_test(numbers_of_the_fixed_part),
		cmocka_unit_test(names_may_be_empty),
		cmocka_unit_test(names_may_be_in_any_language),
		cmocka_unit_test(nameless_events_of_the_runtime_are_in_the_table),
		cmocka_unit_test(cut_in_its_fixed_part_a_definition_is_a_fault),
		cmocka_unit_test(the_fault_is_at_the_value_that_is_cut),
		cmocka_unit_test(scalar_fields),
		cmocka_unit_test(unknown_types_leave_the_event_raw),
		cmocka_unit_test(objects_are_nested_and_have_their_name_behind_them),
		cmocka_unit_test(hostile_counts_of_fields),
		cmocka_unit_test(an_opcode_stands_in_a_tag),
		cmocka_unit_test(bytes_behind_the_opcode_are_ignored),
		cmocka_unit_test(an_opcode_tag_may_be_empty),
		cmocka_unit_test(unknown_tags_are_skipped),
		cmocka_unit_test(a_tag_that_runs_past_the_payload_is_left_out),
		cmocka_unit_test(arrays_stand_in_v2_parameters),
		cmocka_unit_test(arrays_of_objects),
		cmocka_unit_test(objects_in_objects),
		cmocka_unit_test(bytes_behind_a_v2_parameter_are_skipped),
		cmocka_unit_test(v2_parameters_win_over_v1_fields),
		cmocka_unit_test(sizes_of_v2_parameters_that_cannot_be),
		cmocka_unit_test(hostile_counts_of_v2_parameters),
		cmocka_unit_test(a_v2_tag_without_its_count_leaves_the_event_raw),
		cmocka_unit_test(cut_behind_its_fixed_part_a_definition_keeps_its_event),
	};

	return cmocka_run_group_tests_name("block_metadata", tests, NULL, NULL);
}
