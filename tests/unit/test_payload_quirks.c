/* SPDX-License-Identifier: MIT */
/* Descriptions that lie, walks that stop, values by name, and fields and bytes at random. */
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
#define F(field_name, field_type)                                                                  \
	{                                                                                          \
		.name = (field_name), .type = (field_type)                                         \
	}

/* --- descriptions that lie (nettrace.md §4.4) --- */

static void check_layout(enum nt_layout layout, const struct nt_field *fields, size_t n,
			 const char *hex, const char *expected, struct nt_payload_fit expected_fit)
{
	struct event_text t = { .stop_after = 0 };
	struct nt_payload_fit fit;
	struct nt_value v[8];
	struct one_event o;

	one_event_hex(&o, layout, fields, n, hex);
	assert_int_equal(event_text(&t, &o.ev, &fit), NT_OK);
	assert_string_equal(t.text, expected);
	assert_int_equal(fit.used, expected_fit.used);
	assert_int_equal(fit.complete, expected_fit.complete);
	assert_int_equal(fit.bool8, expected_fit.bool8);
	assert_int_equal(fit.widened, expected_fit.widened);
	assert_int_equal(nt_payload_read(&o.ev, v, COUNT(v), &fit), n);
	assert_int_equal(fit.used, expected_fit.used);
	assert_int_equal(fit.complete, expected_fit.complete);
	assert_int_equal(fit.bool8, expected_fit.bool8);
	assert_int_equal(fit.widened, expected_fit.widened);
	one_event_done(&o);
}

#define check(fields, hex, text, ...)                                                              \
	check_layout(NT_LAYOUT_METADATA, fields, COUNT(fields), hex, text,                         \
		     (struct nt_payload_fit){ __VA_ARGS__ })

static void test_bool_of_one_byte(void **state)
{
	static const struct nt_field fields[] = {
		F("a", NT_T_BOOL32),
		F("n", NT_T_I32),
		F("b", NT_T_BOOL32),
	};

	(void)state;
	/* 4 bytes as announced: left as it is. */
	check(fields, "01 00 00 00 05 00 00 00 00 00 00 00", "a=true n=5 b=false", .used = 12,
	      .complete = true);
	check(fields, "01 05 00 00 00 00", "a=true n=5 b=false", .used = 6, .complete = true,
	      .bool8 = true);
	/* Neither way fits: taken as announced, and the fit says so. */
	check(fields, "01 05 00 00 00 00 00", "a=true", .used = 4, .complete = false);
	check(fields, "01 00 00 00 05 00 00 00 00 00 00 00 aa", "a=true n=5 b=false", .used = 12,
	      .complete = true);
}

static void test_bool_of_one_byte_in_array(void **state)
{
	static const struct nt_field boolean = F("", NT_T_BOOL32);
	static const struct nt_field fields[] = {
		{ .name = "a", .type = NT_T_ARRAY, .children = &boolean, .child_count = 1 },
		F("n", NT_T_U8),
	};

	(void)state;
	check(fields, "02 00 01 00 07", "a=[true false]#2 n=7", .used = 5, .complete = true,
	      .bool8 = true);
	check(fields, "02 00 01 00 00 00 00 00 00 00 07", "a=[true false]#2 n=7", .used = 11,
	      .complete = true);
}

static void test_widened_enum(void **state)
{
	static const struct nt_field fields[] = { F("s", NT_T_STRING16), F("e", NT_T_I16) };
	static const struct nt_field two[] = { F("s", NT_T_U32), F("e", NT_T_U8),
					       F("f", NT_T_U16) };

	(void)state;
	check(fields, "'a' 00 00 00 fd ff", "s='a' e=-3", .used = 6, .complete = true);
	check(fields, "'a' 00 00 00 fd ff ff ff", "s='a' e=-3", .used = 8, .complete = true,
	      .widened = true);
	check(fields, "'a' 00 00 00 03 00 00 00", "s='a' e=3", .used = 8, .complete = true,
	      .widened = true);
	/* The upper bytes are not those of a widened number: just two bytes too many. */
	check(fields, "'a' 00 00 00 fd ff 00 00", "s='a' e=-3", .used = 6, .complete = true);
	check(fields, "'a' 00 00 00 03 00 01 00", "s='a' e=3", .used = 6, .complete = true);
	/* All of the small numbers at the end, or none. */
	check(two, "01 00 00 00 c8 00 00 00 60 ea 00 00", "s=1 e=200 f=60000", .used = 12,
	      .complete = true, .widened = true);
	check(two, "01 00 00 00 c8 60 ea 00 00", "s=1 e=200 f=60000", .used = 7, .complete = true);
	check(two, "01 00 00 00 c8 ff ff ff 60 ea 00 00", "s=1 e=200 f=65535", .used = 7,
	      .complete = true);
}

static void test_small_numbers_before_others(void **state)
{
	static const struct nt_field fields[] = { F("e", NT_T_I16), F("n", NT_T_I32) };

	(void)state;
	check(fields, "01 00 00 00 05 00 00 00", "e=1 n=327680", .used = 6, .complete = true);
}

/* Layouts of the built-in table are right: what does not fit is damage, not a habit. */
static void test_table_is_never_repaired(void **state)
{
	static const struct nt_field fields[] = { F("b", NT_T_BOOL32), F("e", NT_T_U16) };

	(void)state;
	check_layout(NT_LAYOUT_TABLE, fields, 2, "01 02 00", "",
		     (struct nt_payload_fit){ .used = 0, .complete = false });
	check_layout(NT_LAYOUT_TABLE, fields, 2, "01 00 00 00 02 00 00 00", "b=true e=2",
		     (struct nt_payload_fit){ .used = 6, .complete = true });
}

/* --- walks that stop --- */

static void test_stop_at_every_call(void **state)
{
	static const struct nt_field inner[] = { F("c", NT_T_U8) };
	static const struct nt_field object = { "", NT_T_OBJECT, 0, inner, 1 };
	static const struct nt_field fields[] = {
		F("a", NT_T_U8),
		{ "l", NT_T_ARRAY, 0, &object, 1 },
		F("z", NT_T_U8),
	};
	struct event_text t = { .stop_after = 0 };
	struct nt_payload_fit fit;
	struct one_event o;
	size_t all;

	(void)state;
	one_event_hex(&o, NT_LAYOUT_METADATA, fields, 3, "01 02 00 03 04 05");
	assert_int_equal(event_text(&t, &o.ev, &fit), NT_OK);
	assert_string_equal(t.text, "a=1 l=[{c=3} {c=4}]#2 z=5");
	all = t.calls;
	assert_int_equal(all, 10);
	for (size_t n = 1; n <= all; n++) {
		t.stop_after = n;
		t.stop_with = n % 2 ? NT_STOPPED : NT_ESINK;
		assert_int_equal(event_text(&t, &o.ev, &fit), t.stop_with);
		assert_int_equal(t.calls, n);
		assert_false(fit.complete);
	}
	one_event_done(&o);
}

static void test_no_callbacks(void **state)
{
	static const struct nt_field u8 = F("", NT_T_U8);
	static const struct nt_field fields[] = { { "l", NT_T_ARRAY, 0, &u8, 1 }, F("z", NT_T_U8) };
	static const struct nt_visitor nothing;
	struct nt_payload_fit fit;
	struct one_event o;

	(void)state;
	one_event_hex(&o, NT_LAYOUT_TABLE, fields, 2, "02 00 03 04 05");
	assert_int_equal(nt_payload_visit(&o.ev, &nothing, NULL, &fit), NT_OK);
	assert_true(fit.complete && fit.used == 5);
	assert_int_equal(nt_payload_visit(&o.ev, &nothing, NULL, NULL), NT_OK);
	one_event_done(&o);
}

/* --- values by name --- */

static void test_values_by_name(void **state)
{
	static const struct nt_field fields[] = {
		F("i", NT_T_I32), F("u", NT_T_U64),	 F("b", NT_T_BOOL8), F("d", NT_T_F64),
		F("n", NT_T_F64), F("s", NT_T_STRING16), F("g", NT_T_F64),   F("x", NT_T_U8),
	};
	struct nt_value v[8];
	struct one_event o;
	char u[] = "u"; /* not the same pointer */

	(void)state;
	one_event_hex(&o, NT_LAYOUT_TABLE, fields, 8,
		      "fe ff ff ff  00 00 00 00 00 00 00 80  01  00 00 00 00 00 00 04 40"
		      " 00 00 00 00 00 00 f8 ff  'a' 00 00 00  00 00 00 00 00 00 f0 43");
	assert_int_equal(nt_payload_read(&o.ev, v, 8, NULL), 8);
	assert_ptr_equal(nt_value_find(v, 8, u), &v[1]);
	assert_ptr_equal(nt_value_find(v, 8, fields[1].name), &v[1]);
	assert_null(nt_value_find(v, 8, "U"));
	assert_null(nt_value_find(v, 8, "x")); /* the payload ends before it */
	assert_null(nt_value_find(v, 1, "u"));
	assert_int_equal(nt_value_u64(v, 8, "i", 7), (uint64_t)-2);
	assert_true(nt_value_u64(v, 8, u, 7) == (uint64_t)1 << 63);
	assert_int_equal(nt_value_u64(v, 8, "b", 7), 1);
	assert_int_equal(nt_value_u64(v, 8, "d", 7), 2);
	assert_int_equal(nt_value_u64(v, 8, "n", 7), 7); /* NaN */
	assert_int_equal(nt_value_u64(v, 8, "g", 7), 7); /* 2^64 */
	assert_int_equal(nt_value_u64(v, 8, "s", 7), 7);
	assert_int_equal(nt_value_u64(v, 8, "x", 7), 7);
	assert_true(nt_value_f64(v, 8, "i", 7) == -2);
	assert_true(nt_value_f64(v, 8, "u", 7) == 0x1p63);
	assert_true(nt_value_f64(v, 8, "b", 7) == 1);
	assert_true(nt_value_f64(v, 8, "d", 7) == 2.5);
	assert_true(isnan(nt_value_f64(v, 8, "n", 7)));
	assert_true(nt_value_f64(v, 8, "s", 7) == 7);
	assert_true(nt_value_f64(v, 8, "x", 7) == 7);
	one_event_done(&o);
}

static void check_text(const struct nt_value *v, size_t size, const char *expected)
{
	char *buf = malloc(size ? size : 1); /* exactly: one byte too many is seen */

	assert_non_null(buf);
	assert_int_equal(nt_value_text(v, buf, size), strlen(expected));
	if (size)
		assert_string_equal(buf, expected);
	free(buf);
}

static void test_text(void **state)
{
	static const struct nt_field fields[] = {
		F("w", NT_T_STRING16),
		F("n", NT_T_STRING8),
		F("u", NT_T_U8),
	};
	struct nt_value v[3];
	struct one_event o;

	(void)state;
	/* Both are "aé€", 6 bytes of UTF-8. */
	one_event_hex(&o, NT_LAYOUT_TABLE, fields, 3,
		      "'a' 00 e9 00 ac 20 00 00 'a' c3 a9 e2 82 ac 00 05");
	assert_int_equal(nt_payload_read(&o.ev, v, 3, NULL), 3);
	for (size_t i = 0; i < 2; i++) {
		check_text(&v[i], 0, "");
		check_text(&v[i], 1, "");
		check_text(&v[i], 2, "a");
		check_text(&v[i], 3, "a");
		check_text(&v[i], 4, "a\xc3\xa9");
		check_text(&v[i], 6, "a\xc3\xa9");
		check_text(&v[i], 7, "a\xc3\xa9\xe2\x82\xac");
		check_text(&v[i], 100, "a\xc3\xa9\xe2\x82\xac");
	}
	check_text(&v[2], 10, ""); /* no text */
	check_text(NULL, 10, "");
	one_event_done(&o);
}

/* Bytes that are no UTF-8 are cut somewhere, but never read beyond. */
static void test_text_of_continuations(void **state)
{
	static const struct nt_field fields[] = { F("n", NT_T_STRING8) };
	struct nt_value v;
	struct one_event o;
	char buf[8];

	(void)state;
	one_event_hex(&o, NT_LAYOUT_TABLE, fields, 1, "80 80 80 80 80 80 80 80 80 00");
	assert_int_equal(nt_payload_read(&o.ev, &v, 1, NULL), 1);
	for (size_t size = 1; size <= sizeof(buf); size++) {
		size_t n = nt_value_text(&v, buf, size);

		assert_true(n < size);
		assert_int_equal(buf[n], '\0');
	}
	one_event_done(&o);
}

/* --- fields and bytes at random --- */

struct random {
	uint32_t state;
};

static uint32_t next(struct random *r, uint32_t below)
{
	r->state = r->state * 1664525u + 1013904223u;
	return (r->state >> 8) % below;
}

static const enum nt_type scalars[] = {
	NT_T_BOOL32,  NT_T_CHAR16,  NT_T_I8,	  NT_T_U8,	NT_T_I16,	    NT_T_U16,
	NT_T_I32,     NT_T_U32,	    NT_T_I64,	  NT_T_U64,	NT_T_F32,	    NT_T_F64,
	NT_T_DECIMAL, NT_T_GUID,    NT_T_VARINT,  NT_T_VARUINT, NT_T_STRING16,	    NT_T_CHAR8,
	NT_T_BOOL8,   NT_T_STRING8, NT_T_POINTER, NT_T_PAD,	NT_T_STRING8_LEN16, NT_T_DATETIME,
};
static const enum nt_type arrays[] = {
	NT_T_ARRAY, NT_T_ARRAY, NT_T_FIXED_ARRAY, NT_T_RELLOC, NT_T_DATALOC,
};

/* Fills fields[0..n) and takes what they consist of from behind them. */
static void make_fields(struct random *r, struct nt_field *pool, size_t room)
{
	size_t made = 1 + next(r, 5), done = 0;

	/* Breadth first: each field may have children that come later in the pool. */
	for (size_t i = 0; i < made; i++)
		pool[i].name = "f";
	for (; done < made; done++) {
		struct nt_field *f = &pool[done];
		size_t kind = next(r, 8), children = 0;

		f->count = 0;
		if (kind == 0 && made + 4 < room) {
			f->type = NT_T_OBJECT;
			children = next(r, 4);
		} else if (kind <= 2 && made + 1 < room) {
			f->type = arrays[next(r, COUNT(arrays))];
			f->count = f->type == NT_T_FIXED_ARRAY ? next(r, 4) : 0;
			children = 1;
		} else {
			f->type = scalars[next(r, COUNT(scalars))];
			f->count = f->type == NT_T_PAD ? next(r, 4) : 0;
		}
		f->children = children ? &pool[made] : NULL;
		f->child_count = children;
		for (size_t i = 0; i < children; i++)
			pool[made++].name = f->type == NT_T_OBJECT ? "f" : "";
	}
}

/* Small numbers mostly: counts and offsets that lead somewhere. */
static size_t make_bytes(struct random *r, uint8_t *bytes, size_t room)
{
	size_t n = next(r, (uint32_t)room);

	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(next(r, 3) ? next(r, 8) : next(r, 256));
	return n;
}

static void check_random(uint32_t seed)
{
	struct random r = { seed };
	struct nt_field pool[64];
	uint8_t bytes[300];
	struct nt_payload_fit fit, read_fit;
	struct event_text t = { .stop_after = 0 };
	struct nt_value v[8];
	struct one_event o;
	size_t n, top;

	memset(pool, 0, sizeof(pool));
	top = 1 + next(&(struct random){ seed }, 5); /* what make_fields() draws first */
	make_fields(&r, pool, COUNT(pool));
	n = make_bytes(&r, bytes, sizeof(bytes));
	one_event_init(&o, next(&r, 2) ? NT_LAYOUT_METADATA : NT_LAYOUT_TABLE, pool, top, bytes, n);
	o.trace.pointer_size = next(&r, 2) ? 4 : 8;
	assert_int_equal(event_text(&t, &o.ev, &fit), NT_OK);
	assert_int_equal(nt_payload_read(&o.ev, v, COUNT(v), &read_fit), top);
	if (!same_fit(&fit, &read_fit))
		fail_msg("seed %u: visit used %zu, read used %zu", seed, fit.used, read_fit.used);
	assert_true(fit.used <= n);
	/* The work is bounded by the bytes: so many levels for each of them, and some for free. */
	assert_true(t.calls <= 64 * (2 * n + 256) + 64);
	one_event_done(&o);
}

static void test_random(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 20000; seed++)
		check_random(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bool_of_one_byte),
		cmocka_unit_test(test_bool_of_one_byte_in_array),
		cmocka_unit_test(test_widened_enum),
		cmocka_unit_test(test_small_numbers_before_others),
		cmocka_unit_test(test_table_is_never_repaired),
		cmocka_unit_test(test_stop_at_every_call),
		cmocka_unit_test(test_no_callbacks),
		cmocka_unit_test(test_values_by_name),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_text_of_continuations),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
