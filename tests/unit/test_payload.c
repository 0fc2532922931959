/* SPDX-License-Identifier: MIT */
/* Fields one by one: every type, every way in which bytes and description disagree. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nettrace/nettrace.h"
#include "tests/support/one_event.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
/* A field of that type, and an array of such elements. */
#define F(field_name, field_type)                                                                  \
	{                                                                                          \
		.name = (field_name), .type = (field_type)                                         \
	}
#define A(field_name, array_type, element)                                                         \
	{                                                                                          \
		.name = (field_name), .type = (array_type), .children = &(element),                \
		.child_count = 1                                                                   \
	}

static const struct nt_field char16 = F("", NT_T_CHAR16);
static const struct nt_field char8 = F("", NT_T_CHAR8);
static const struct nt_field u8 = F("", NT_T_U8);
static const struct nt_field u16 = F("", NT_T_U16);
static const struct nt_field i32 = F("", NT_T_I32);
static const struct nt_field str = F("", NT_T_STRING16);

enum { WHOLE = 1, CUT = 0 };

/* Reads it both ways and compares; used and complete are the expected fit. */
static void check_layout(enum nt_layout layout, const struct nt_field *fields, size_t n,
			 const char *hex, const char *expected, size_t used, int complete)
{
	struct nt_payload_fit fit = { 0 }, read_fit = { 0 };
	struct nt_value values[32];
	struct event_text t = { .stop_after = 0 };
	struct one_event o;

	one_event_hex(&o, layout, fields, n, hex);
	assert_int_equal(event_text(&t, &o.ev, &fit), NT_OK);
	assert_string_equal(t.text, expected);
	assert_int_equal(fit.used, used);
	assert_int_equal(fit.complete, complete);
	assert_int_equal(nt_payload_read(&o.ev, values, COUNT(values), &read_fit), n);
	assert_true(same_fit(&fit, &read_fit));
	for (size_t i = 0; i < n; i++)
		assert_ptr_equal(values[i].field, &fields[i]);
	one_event_done(&o);
}

#define check(fields, hex, expected, used, complete)                                               \
	check_layout(NT_LAYOUT_TABLE, fields, COUNT(fields), hex, expected, used, complete)
#define check_announced(fields, hex, expected, used, complete)                                     \
	check_layout(NT_LAYOUT_METADATA, fields, COUNT(fields), hex, expected, used, complete)

/* --- types --- */

static void test_numbers(void **state)
{
	static const struct nt_field fields[] = {
		F("b", NT_T_BOOL32),  F("c", NT_T_BOOL8), F("i8", NT_T_I8),   F("u8", NT_T_U8),
		F("i16", NT_T_I16),   F("u16", NT_T_U16), F("i32", NT_T_I32), F("u32", NT_T_U32),
		F("i64", NT_T_I64),   F("u64", NT_T_U64), F("f", NT_T_F32),   F("d", NT_T_F64),
		F("m", NT_T_DECIMAL),
	};

	(void)state;
	check(fields,
	      "00 01 00 00  02  ff  ff  fe ff  fe ff  fd ff ff ff  fd ff ff ff"
	      " fc ff ff ff ff ff ff ff  fc ff ff ff ff ff ff ff  00 00 c0 3f"
	      " 00 00 00 00 00 00 04 40  00 00 00 00 00 00 f8 bf",
	      "b=true c=true i8=-1 u8=255 i16=-2 u16=65534 i32=-3 u32=4294967293 "
	      "i64=-4 u64=18446744073709551612 f=1.5 d=2.5 m=-1.5",
	      55, WHOLE);
	check(fields,
	      "00 00 00 00  00  80  00  00 80  00 00  00 00 00 80  00 00 00 00"
	      " 00 00 00 00 00 00 00 80  00 00 00 00 00 00 00 00  00 00 00 00"
	      " 00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00",
	      "b=false c=false i8=-128 u8=0 i16=-32768 u16=0 i32=-2147483648 u32=0 "
	      "i64=-9223372036854775808 u64=0 f=0 d=0 m=0",
	      55, WHOLE);
}

static void test_pointers(void **state)
{
	static const struct nt_field fields[] = { F("p", NT_T_POINTER), F("u", NT_T_U8) };
	struct event_text t = { .stop_after = 0 };
	struct nt_payload_fit fit;
	struct one_event o;

	(void)state;
	check(fields, "01 00 00 00 00 00 00 80 07", "p=9223372036854775809 u=7", 9, WHOLE);
	one_event_hex(&o, NT_LAYOUT_TABLE, fields, COUNT(fields), "01 00 00 80 07");
	o.trace.pointer_size = 4;
	assert_int_equal(event_text(&t, &o.ev, &fit), NT_OK);
	assert_string_equal(t.text, "p=2147483649 u=7");
	assert_true(fit.complete && fit.used == 5);
	one_event_done(&o);
}

static void test_characters_and_guids(void **state)
{
	static const struct nt_field fields[] = {
		F("c", NT_T_CHAR16),
		F("d", NT_T_CHAR8),
		F("g", NT_T_GUID),
	};

	(void)state;
	check(fields, "ac 20 'x' 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f",
	      "c='\xe2\x82\xac' d='x' g=000102030405060708090a0b0c0d0e0f", 19, WHOLE);
}

/* FILETIME, 100 ns since 1601 (nettrace.md §4.3). */
static void test_times(void **state)
{
	static const struct nt_field fields[] = { F("t", NT_T_DATETIME) };

	(void)state;
	check(fields, "00 80 3e d5 de b1 9d 01", "t=@0", 8, WHOLE);
	check(fields, "01 80 3e d5 de b1 9d 01", "t=@100", 8, WHOLE);
	check(fields, "ff 7f 3e d5 de b1 9d 01", "t=@-100", 8, WHOLE);
	/* 2024-02-29 12:00 UTC */
	check(fields, "00 e0 1d d2 06 6b da 01", "t=@1709208000000000000", 8, WHOLE);
	/* What int64_t nanoseconds cannot hold: 1601, the last one before and the first one in. */
	check(fields, "00 00 00 00 00 00 00 00", "t=@-9223372036854775808", 8, WHOLE);
	check(fields, "52 38 5d 5a ca 03 56 00", "t=@-9223372036854775800", 8, WHOLE);
	check(fields, "51 38 5d 5a ca 03 56 00", "t=@-9223372036854775808", 8, WHOLE);
	check(fields, "ae c7 1f 50 f3 5f e5 02", "t=@9223372036854775800", 8, WHOLE);
	check(fields, "af c7 1f 50 f3 5f e5 02", "t=@9223372036854775807", 8, WHOLE);
	check(fields, "ff ff ff ff ff ff ff ff", "t=@9223372036854775807", 8, WHOLE);
}

static void test_time_has_raw_bytes(void **state)
{
	static const struct nt_field fields[] = { F("t", NT_T_DATETIME) };
	struct nt_value v;
	struct one_event o;

	(void)state;
	one_event_hex(&o, NT_LAYOUT_TABLE, fields, 1, "01 02 03 04 05 06 07 08");
	assert_int_equal(nt_payload_read(&o.ev, &v, 1, NULL), 1);
	assert_ptr_equal(v.data, o.bytes);
	assert_int_equal(v.bytes, 8);
	one_event_done(&o);
}

static void test_varints(void **state)
{
	static const struct nt_field u[] = { F("u", NT_T_VARUINT), F("x", NT_T_U8) };
	static const struct nt_field i[] = { F("i", NT_T_VARINT), F("x", NT_T_U8) };

	(void)state;
	check(u, "00 07", "u=0 x=7", 2, WHOLE);
	check(u, "ac 02 07", "u=300 x=7", 3, WHOLE);
	check(u, "80 80 00 07", "u=0 x=7", 4, WHOLE);
	check(u, "ff ff ff ff ff ff ff ff ff 01 07", "u=18446744073709551615 x=7", 11, WHOLE);
	check(i, "00 07", "i=0 x=7", 2, WHOLE);
	check(i, "01 07", "i=-1 x=7", 2, WHOLE);
	check(i, "02 07", "i=1 x=7", 2, WHOLE);
	check(i, "fe ff ff ff ff ff ff ff ff 01 07", "i=9223372036854775807 x=7", 11, WHOLE);
	check(i, "ff ff ff ff ff ff ff ff ff 01 07", "i=-9223372036854775808 x=7", 11, WHOLE);
	/* Too long, and cut: neither is used, and nothing behind it either. */
	check(u, "80 80 80 80 80 80 80 80 80 80 00 07", "", 0, CUT);
	check(u, "80 80", "", 0, CUT);
	check(i, "", "", 0, CUT);
}

static void test_strings16(void **state)
{
	static const struct nt_field fields[] = { F("s", NT_T_STRING16), F("x", NT_T_U8) };

	(void)state;
	check(fields, "00 00 07", "s='' x=7", 3, WHOLE);
	check(fields, "'a' 00 00 00 07", "s='a' x=7", 5, WHOLE);
	/* U+10FFFF, and a lone surrogate. */
	check(fields, "ff db ff df 00 d8 00 00 07", "s='\xf4\x8f\xbf\xbf\xef\xbf\xbd' x=7", 9,
	      WHOLE);
	/* Zero bytes that are no terminator: U+0100 U+0001 U+0100. */
	check(fields, "00 01 01 00 00 01 00 00 07", "s='\xc4\x80\x01\xc4\x80' x=7", 9, WHOLE);
	/* Without a terminator: what is there, but not complete. */
	check(fields, "'a' 00 'b' 00", "s='ab'", 4, CUT);
	check(fields, "'a' 00 'b'", "s='a'", 3, CUT);
	check(fields, "'a'", "s=''", 1, CUT);
	check(fields, "", "", 0, CUT);
	/* An embedded terminator ends the string; the writer's rest is misread (§4.4). */
	check(fields, "'a' 00 00 00 'b' 00 00 00", "s='a' x=98", 5, WHOLE);
}

/* The scanner takes eight bytes at a time. */
static void test_long_strings16(void **state)
{
	static const struct nt_field fields[] = { F("s", NT_T_STRING16) };

	(void)state;
	for (size_t units = 0; units < 40; units++) {
		for (size_t skew = 0; skew < 2; skew++) {
			uint8_t bytes[128];
			struct nt_payload_fit fit;
			struct nt_value v;
			struct one_event o;

			/* U+0100 or U+0001 all along: half of the bytes are zero. */
			for (size_t i = 0; i < units; i++) {
				bytes[2 * i] = (uint8_t)!skew;
				bytes[2 * i + 1] = (uint8_t)skew;
			}
			memset(bytes + 2 * units, 0, 2);
			one_event_init(&o, NT_LAYOUT_TABLE, fields, 1, bytes, 2 * units + 2);
			assert_int_equal(nt_payload_read(&o.ev, &v, 1, &fit), 1);
			assert_int_equal(v.kind, NT_V_UTF16);
			assert_int_equal(v.bytes, 2 * units);
			assert_true(fit.complete && fit.used == 2 * units + 2);
			one_event_done(&o);
		}
	}
}

static void test_strings8(void **state)
{
	static const struct nt_field zero[] = { F("s", NT_T_STRING8), F("x", NT_T_U8) };
	static const struct nt_field counted[] = { F("s", NT_T_STRING8_LEN16), F("x", NT_T_U8) };

	(void)state;
	check(zero, "'abc' 00 07", "s='abc' x=7", 5, WHOLE);
	check(zero, "00 07", "s='' x=7", 2, WHOLE);
	check(zero, "'ab'", "s='ab'", 2, CUT);
	check(zero, "", "", 0, CUT);
	check(counted, "03 00 'abc' 07", "s='abc' x=7", 6, WHOLE);
	check(counted, "00 00 07", "s='' x=7", 3, WHOLE);
	check(counted, "04 00 'abc'", "s='abc'", 5, CUT);
	check(counted, "ff ff", "", 2, CUT);
	check(counted, "03", "", 0, CUT);
}

static void test_arrays(void **state)
{
	static const struct nt_field fields[] = { A("a", NT_T_ARRAY, i32), F("x", NT_T_U8) };
	static const struct nt_field strings[] = { A("a", NT_T_ARRAY, str), F("x", NT_T_U8) };
	static const struct nt_field fixed[] = {
		{ .name = "a",
		  .type = NT_T_FIXED_ARRAY,
		  .count = 2,
		  .children = &u16,
		  .child_count = 1 },
		F("x", NT_T_U8),
	};

	(void)state;
	check(fields, "00 00 07", "a=[]#0 x=7", 3, WHOLE);
	check(fields, "02 00 01 00 00 00 ff ff ff ff 07", "a=[1 -1]#2 x=7", 11, WHOLE);
	/* More than there is: those that are there. */
	check(fields, "03 00 01 00 00 00 ff ff ff ff 07", "a=[1 -1]#2", 10, CUT);
	check(fields, "ff ff 01 00 00 00", "a=[1]#1", 6, CUT);
	check(fields, "02", "", 0, CUT);
	check(strings, "02 00 'a' 00 00 00 'b' 00 00 00 07", "a=['a' 'b']#2 x=7", 11, WHOLE);
	check(strings, "02 00 'a' 00 00 00 'b' 00", "a=['a' 'b']#1", 8, CUT);
	check(fixed, "01 00 02 00 07", "a=[1 2]#2 x=7", 5, WHOLE);
	check(fixed, "01 00 02", "a=[1]#1", 2, CUT);
}

/* The count has 16 bits without a sign. */
static void test_large_array(void **state)
{
	static const struct nt_field fields[] = { A("a", NT_T_ARRAY, u8) };
	enum { N = 40000 };
	uint8_t *bytes = calloc(1, N + 2);
	struct event_text t = { .stop_after = 0 };
	struct nt_payload_fit fit;
	struct nt_value v;
	struct one_event o;

	(void)state;
	assert_non_null(bytes);
	bytes[0] = N & 0xff;
	bytes[1] = N >> 8;
	one_event_init(&o, NT_LAYOUT_METADATA, fields, 1, bytes, N + 2);
	assert_int_equal(nt_payload_read(&o.ev, &v, 1, &fit), 1);
	assert_int_equal(v.kind, NT_V_ARRAY);
	assert_int_equal(v.u, N);
	assert_int_equal(v.bytes, N);
	assert_true(fit.complete && fit.used == N + 2);
	assert_int_equal(event_text(&t, &o.ev, &fit), NT_OK);
	assert_int_equal(t.calls, N + 2);
	one_event_done(&o);
	free(bytes);
}

static void test_arrays_of_characters(void **state)
{
	static const struct nt_field wide[] = { A("s", NT_T_ARRAY, char16), F("x", NT_T_U8) };
	static const struct nt_field narrow[] = { A("s", NT_T_ARRAY, char8), F("x", NT_T_U8) };
	static const struct nt_field fixed[] = {
		{ .name = "s",
		  .type = NT_T_FIXED_ARRAY,
		  .count = 2,
		  .children = &char16,
		  .child_count = 1 },
		F("x", NT_T_U8),
	};

	(void)state;
	check(wide, "02 00 'a' 00 'b' 00 07", "s='ab' x=7", 7, WHOLE);
	check(wide, "00 00 07", "s='' x=7", 3, WHOLE);
	check(wide, "03 00 'a' 00 'b'", "s='a'", 4, CUT);
	check(wide, "03 00 'a'", "", 2, CUT);
	check(narrow, "02 00 'ab' 07", "s='ab' x=7", 5, WHOLE);
	check(narrow, "03 00 'ab'", "s='ab'", 4, CUT);
	check(fixed, "'a' 00 'b' 00 07", "s='ab' x=7", 5, WHOLE);
	check(fixed, "'a' 00 'b'", "s='a'", 2, CUT);
}

/* The bytes lie elsewhere; used reaches to their end. */
static void test_located(void **state)
{
	static const struct nt_field rel[] = { A("r", NT_T_RELLOC, u16), F("x", NT_T_U8) };
	static const struct nt_field data[] = { A("d", NT_T_DATALOC, u16), F("x", NT_T_U8) };
	static const struct nt_field text[] = { A("s", NT_T_RELLOC, char8), F("x", NT_T_U8) };

	(void)state;
	/* From the end of the field: over x. */
	check(rel, "01 00 04 00 07 01 00 02 00", "r=[1 2]#2 x=7", 9, WHOLE);
	/* From the start of the payload. */
	check(data, "05 00 04 00 07 01 00 02 00", "d=[1 2]#2 x=7", 9, WHOLE);
	check(data, "00 00 04 00 07", "d=[0 4]#2 x=7", 5, WHOLE);
	check(text, "01 00 03 00 07 'abc'", "s='abc' x=7", 8, WHOLE);
	check(rel, "00 00 00 00 07", "r=[]#0 x=7", 5, WHOLE);
	/* Not whole elements, behind the end, across it: this field only is bad. */
	check(rel, "01 00 03 00 07 01 00 02 00", "r=BAD x=7", 5, WHOLE);
	check(rel, "06 00 02 00 07 01 00 02 00", "r=BAD x=7", 5, WHOLE);
	check(rel, "ff ff 02 00 07", "r=BAD x=7", 5, WHOLE);
	check(rel, "04 00 02 00 07 01 00 02 00", "r=BAD x=7", 5, WHOLE);
	check(data, "08 00 02 00 07 01 00 02 00", "d=BAD x=7", 5, WHOLE);
	check(text, "02 00 03 00 07 'abc'", "s=BAD x=7", 5, WHOLE);
	check(rel, "01 00 04", "", 0, CUT);
}

static void test_located_elements(void **state)
{
	static const struct nt_field pair[] = { F("a", NT_T_U8), F("b", NT_T_U16) };
	static const struct nt_field object = {
		.name = "", .type = NT_T_OBJECT, .children = pair, .child_count = 2
	};
	static const struct nt_field varint = F("", NT_T_VARUINT);
	static const struct nt_field inner = A("", NT_T_DATALOC, u8);
	static const struct nt_field objects[] = { A("r", NT_T_RELLOC, object) };
	static const struct nt_field varints[] = { A("r", NT_T_RELLOC, varint) };
	static const struct nt_field located[] = { A("r", NT_T_RELLOC, inner) };

	(void)state;
	check(objects, "00 00 06 00 01 02 00 03 04 00", "r=[{a=1 b=2} {a=3 b=4}]#2", 10, WHOLE);
	check(objects, "00 00 05 00 01 02 00 03 04 00", "r=BAD", 4, WHOLE);
	/* Elements must have a fixed size. */
	check(varints, "00 00 01 00 01", "r=BAD", 4, WHOLE);
	check(located, "00 00 04 00 08 00 02 00 05 06", "r=[[5 6]#2]#1", 10, WHOLE);
}

/* Fields that all point to the same bytes must not make a small event a huge one. */
static void test_located_bomb(void **state)
{
	enum { N = 2000, DATA = 8192 };
	static const struct nt_field element = A("", NT_T_DATALOC, u8);
	static const struct nt_field array[] = { A("a", NT_T_ARRAY, element) };
	uint8_t *bytes = calloc(1, 2 + 4 * N + DATA);
	struct event_text t = { .stop_after = 0 };
	struct nt_payload_fit fit;
	struct one_event o;

	(void)state;
	assert_non_null(bytes);
	bytes[0] = N & 0xff;
	bytes[1] = N >> 8;
	for (size_t i = 0; i < N; i++)
		bytes[2 + 4 * i + 3] = 0x20; /* 8192 bytes from 0 */
	one_event_init(&o, NT_LAYOUT_METADATA, array, 1, bytes, 2 + 4 * N + DATA);
	assert_int_equal(event_text(&t, &o.ev, &fit), NT_OK);
	assert_true(fit.complete);
	assert_true(t.calls < 2 * o.ev.payload_bytes + 4 * N);
	one_event_done(&o);
	free(bytes);
}

static void test_objects(void **state)
{
	static const struct nt_field inner[] = { F("c", NT_T_U8), F("s", NT_T_STRING16) };
	static const struct nt_field outer[] = {
		F("b", NT_T_U8),
		{ .name = "i", .type = NT_T_OBJECT, .children = inner, .child_count = 2 },
	};
	static const struct nt_field object = {
		.name = "", .type = NT_T_OBJECT, .children = outer, .child_count = 2
	};
	static const struct nt_field fields[] = { A("a", NT_T_ARRAY, object), F("x", NT_T_U8) };
	static const struct nt_field one[] = {
		{ .name = "o", .type = NT_T_OBJECT, .children = outer, .child_count = 2 },
		F("x", NT_T_U8),
	};

	(void)state;
	check(one, "01 02 'z' 00 00 00 07", "o={b=1 i={c=2 s='z'}} x=7", 7, WHOLE);
	check(one, "01 02 'z'", "o={b=1 i={c=2 s=''}}", 3, CUT);
	check(one, "01", "o={b=1}", 1, CUT);
	check(one, "", "", 0, CUT);
	check(fields, "02 00  01 02 'z' 00 00 00  03 04 00 00  07",
	      "a=[{b=1 i={c=2 s='z'}} {b=3 i={c=4 s=''}}]#2 x=7", 13, WHOLE);
	check(fields, "02 00  01 02 'z' 00 00 00  03 04 00",
	      "a=[{b=1 i={c=2 s='z'}} {b=3 i={c=4 s=''}}]#1", 11, CUT);
	check(fields, "02 00  01 02 'z' 00 00 00", "a=[{b=1 i={c=2 s='z'}}]#1", 8, CUT);
}

static void test_empty_objects(void **state)
{
	static const struct nt_field empty = { .name = "", .type = NT_T_OBJECT };
	static const struct nt_field fields[] = {
		{ .name = "o", .type = NT_T_OBJECT },
		F("x", NT_T_U8),
		{ .name = "e", .type = NT_T_OBJECT },
		A("a", NT_T_ARRAY, empty),
		{ .name = "n", .type = NT_T_FIXED_ARRAY, .children = &i32, .child_count = 1 },
	};

	(void)state;
	check(fields, "07 02 00", "o={} x=7 e={} a=[{} {}]#2 n=[]#0", 3, WHOLE);
}

/* Elements without bytes: only so many. */
static void test_many_empty_elements(void **state)
{
	static const struct nt_field empty = { .name = "", .type = NT_T_OBJECT };
	static const struct nt_field fixed0 = { .name = "",
						.type = NT_T_FIXED_ARRAY,
						.count = 65535,
						.children = &empty,
						.child_count = 1 };
	static const struct nt_field fixed1 = { .name = "",
						.type = NT_T_FIXED_ARRAY,
						.count = 65535,
						.children = &fixed0,
						.child_count = 1 };
	static const struct nt_field fields[] = { A("a", NT_T_ARRAY, fixed1) };
	static const struct nt_field flat[] = { A("a", NT_T_ARRAY, empty), F("x", NT_T_U8) };
	struct event_text t = { .stop_after = 0 };
	struct nt_payload_fit fit, read_fit;
	struct nt_value v;
	struct one_event o;

	(void)state;
	one_event_hex(&o, NT_LAYOUT_METADATA, fields, 1, "ff ff");
	assert_int_equal(event_text(&t, &o.ev, &fit), NT_OK);
	assert_false(fit.complete);
	assert_true(t.calls < 2000);
	assert_int_equal(nt_payload_read(&o.ev, &v, 1, &read_fit), 1);
	assert_true(same_fit(&fit, &read_fit));
	one_event_done(&o);
	one_event_hex(&o, NT_LAYOUT_METADATA, flat, 2, "ff ff 07");
	assert_int_equal(event_text(&t, &o.ev, &fit), NT_OK);
	assert_false(fit.complete);
	assert_true(t.calls < 2000);
	one_event_done(&o);
	one_event_hex(&o, NT_LAYOUT_METADATA, flat, 2, "c8 00 07"); /* 200 are fine */
	assert_int_equal(event_text(&t, &o.ev, &fit), NT_OK);
	assert_true(fit.complete);
	assert_int_equal(t.calls, 2 * 200 + 2 + 1);
	one_event_done(&o);
}

/* 32 levels are read, what is deeper is not. */
static void test_nesting(void **state)
{
	(void)state;
	for (size_t depth = 1; depth <= 40; depth++) {
		struct nt_field levels[40];
		struct nt_field leaf = F("x", NT_T_U8);
		struct event_text t = { .stop_after = 0 };
		struct nt_payload_fit fit, read_fit;
		struct nt_value v;
		struct one_event o;

		for (size_t i = 0; i < depth; i++)
			levels[i] = (struct nt_field){ .name = i ? "" : "o",
						       .type = NT_T_OBJECT,
						       .children = i + 1 < depth ? &levels[i + 1]
										 : &leaf,
						       .child_count = 1 };
		one_event_hex(&o, NT_LAYOUT_METADATA, levels, 1, "07");
		assert_int_equal(event_text(&t, &o.ev, &fit), NT_OK);
		assert_int_equal(fit.complete, depth <= 32);
		assert_int_equal(fit.used, depth <= 32);
		assert_int_equal(nt_payload_read(&o.ev, &v, 1, &read_fit), 1);
		assert_true(same_fit(&fit, &read_fit));
		one_event_done(&o);
	}
}

static void test_counted(void **state)
{
	static const struct nt_field fields[] = {
		F("n", NT_T_U16),
		F("size", NT_T_U32),
		{ .name = "a",
		  .type = NT_T_COUNTED_ARRAY,
		  .count = 0,
		  .children = &u8,
		  .child_count = 1 },
		{ .name = "d", .type = NT_T_COUNTED_BYTES, .count = 1 },
		{ .name = "", .type = NT_T_PAD, .count = 2 },
		F("x", NT_T_U8),
	};

	(void)state;
	check(fields, "02 00 03 00 00 00 01 02 aa bb cc 00 00 07",
	      "n=2 size=3 a=[1 2]#2 d=aabbcc x=7", 14, WHOLE);
	check(fields, "00 00 00 00 00 00 00 00 07", "n=0 size=0 a=[]#0 d= x=7", 9, WHOLE);
	check(fields, "02 00 ff ff ff ff 01 02 aa bb cc", "n=2 size=4294967295 a=[1 2]#2 d=aabbcc",
	      11, CUT);
	check(fields, "ff ff 03 00 00 00 01 02", "n=65535 size=3 a=[1 2]#2", 8, CUT);
	check(fields, "00 00 00 00 00 00 00", "n=0 size=0 a=[]#0 d=", 6, CUT);
}

/* --- payloads that are shorter or longer than their fields --- */

static const struct nt_field mixed[] = {
	F("a", NT_T_U32),	 F("s", NT_T_STRING16), F("b", NT_T_U16),
	A("l", NT_T_ARRAY, u16), F("z", NT_T_U8),
};

static void test_every_prefix(void **state)
{
	static const uint8_t bytes[] = { 1, 0, 0, 0, 'x', 0, 0, 0, 2, 0, 2, 0, 3, 0, 4, 0, 5 };
	static const size_t ends[] = { 4, 8, 10, 16, 17 };

	(void)state;
	for (size_t size = 0; size <= sizeof(bytes); size++) {
		struct nt_payload_fit fit;
		struct nt_value v[5];
		struct one_event o;

		one_event_init(&o, NT_LAYOUT_METADATA, mixed, 5, bytes, size);
		assert_int_equal(nt_payload_read(&o.ev, v, 5, &fit), 5);
		assert_int_equal(fit.complete, size == sizeof(bytes));
		assert_true(fit.used <= size);
		for (size_t i = 0; i < 5; i++) {
			bool partly = (i == 1 && size > ends[0]) || (i == 3 && size >= ends[2] + 2);

			assert_int_equal(v[i].kind != NT_V_NONE, size >= ends[i] || partly);
			assert_ptr_equal(v[i].field, &mixed[i]);
		}
		one_event_done(&o);
	}
}

static void test_surplus(void **state)
{
	(void)state;
	check_announced(mixed, "01 00 00 00 'x' 00 00 00 02 00 01 00 03 00 05 aa bb cc",
			"a=1 s='x' b=2 l=[3]#1 z=5", 15, WHOLE);
}

/* Fewer values than fields; the fit is that of all. */
static void test_few_values(void **state)
{
	struct nt_payload_fit fit;
	struct nt_value v[3] = { { .u = 0 } };
	struct one_event o;

	(void)state;
	one_event_hex(&o, NT_LAYOUT_TABLE, mixed, 5, "01 00 00 00 00 00 02 00 00 00 05");
	v[2].u = 99;
	assert_int_equal(nt_payload_read(&o.ev, v, 2, &fit), 2);
	assert_int_equal(v[0].u, 1);
	assert_int_equal(v[2].u, 99); /* not ours to write */
	assert_true(fit.complete && fit.used == 11);
	assert_int_equal(nt_payload_read(&o.ev, v, 2, NULL), 2);
	assert_int_equal(nt_payload_read(&o.ev, NULL, 0, &fit), 0);
	assert_true(fit.complete && fit.used == 11);
	assert_int_equal(nt_payload_read(&o.ev, NULL, 0, NULL), 0);
	one_event_done(&o);
}

static void test_no_layout(void **state)
{
	struct event_text t = { .stop_after = 0 };
	struct nt_payload_fit fit;
	struct nt_value v;
	struct one_event o;

	(void)state;
	one_event_hex(&o, NT_LAYOUT_NONE, NULL, 0, "04 00 00 00 01 02 03 ff");
	assert_int_equal(nt_payload_read(&o.ev, &v, 1, &fit), 0);
	assert_true(fit.complete && fit.used == 0);
	assert_int_equal(event_text(&t, &o.ev, &fit), NT_OK);
	assert_int_equal(t.calls, 0);
	one_event_done(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_pointers),
		cmocka_unit_test(test_characters_and_guids),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_time_has_raw_bytes),
		cmocka_unit_test(test_varints),
		cmocka_unit_test(test_strings16),
		cmocka_unit_test(test_long_strings16),
		cmocka_unit_test(test_strings8),
		cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_large_array),
		cmocka_unit_test(test_arrays_of_characters),
		cmocka_unit_test(test_located),
		cmocka_unit_test(test_located_elements),
		cmocka_unit_test(test_located_bomb),
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_empty_objects),
		cmocka_unit_test(test_many_empty_elements),
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_counted),
		cmocka_unit_test(test_every_prefix),
		cmocka_unit_test(test_surplus),
		cmocka_unit_test(test_few_values),
		cmocka_unit_test(test_no_layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
