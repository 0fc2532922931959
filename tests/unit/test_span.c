/* SPDX-License-Identifier: MIT */
/* The bounds-checked cursor: nothing is read that is not there, and the first failure sticks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nettrace/span.h"

static void numbers_are_little_endian(void **state)
{
	static const uint8_t bytes[] = { 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x88,
					 0xff, 0xfe, 0xff, 0xff, 0xff, 0x34, 0x12 };
	struct nt_span s = nt_span_of(bytes, sizeof(bytes));

	(void)state;
	assert_true(nt_u64(&s) == 0x8807060504030201u);
	assert_int_equal(nt_u8(&s), 0xff);
	assert_int_equal(nt_i32(&s), -2);
	assert_int_equal(nt_u16(&s), 0x1234);
	assert_int_equal(nt_left(&s), 0);
	assert_null(s.bad);
}

static void signed_numbers_keep_their_sign(void **state)
{
	static const uint8_t bytes[] = { 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80 };
	struct nt_span s = nt_span_of(bytes, sizeof(bytes));

	(void)state;
	assert_true(nt_i64(&s) == INT64_MIN);
}

static void a_read_past_the_end_gives_zero_and_spoils_the_span(void **state)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5 };
	struct nt_span s = nt_span_of(bytes, sizeof(bytes));

	(void)state;
	assert_int_equal(nt_u16(&s), 0x0201);
	assert_int_equal(nt_u32(&s), 0);
	assert_ptr_equal(s.bad, bytes + 2);
	assert_false(s.malformed);
	assert_int_equal(nt_left(&s), 0);
	assert_int_equal(nt_u8(&s), 0); /* there would be a byte */
	assert_null(nt_take(&s, 0));
	assert_ptr_equal(s.bad, bytes + 2);
}

static void a_huge_length_does_not_wrap_around(void **state)
{
	static const uint8_t bytes[] = { 1, 2, 3 };
	struct nt_span s = nt_span_of(bytes, sizeof(bytes));

	(void)state;
	assert_null(nt_take(&s, SIZE_MAX));
	assert_ptr_equal(s.bad, bytes);
}

static void a_child_cannot_leave_its_parent(void **state)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4 };
	struct nt_span s = nt_span_of(bytes, sizeof(bytes));
	struct nt_span child = nt_sub(&s, 3);

	(void)state;
	assert_int_equal(nt_u16(&child), 0x0201);
	assert_int_equal(nt_u16(&child), 0);
	assert_ptr_equal(child.bad, bytes + 2);
	assert_null(s.bad);
	assert_int_equal(nt_u8(&s), 4);
}

static void a_child_that_does_not_fit_spoils_both(void **state)
{
	static const uint8_t bytes[] = { 1, 2 };
	struct nt_span s = nt_span_of(bytes, sizeof(bytes));
	struct nt_span child = nt_sub(&s, 3);

	(void)state;
	assert_ptr_equal(s.bad, bytes);
	assert_ptr_equal(child.bad, bytes);
	assert_int_equal(nt_left(&child), 0);
}

struct leb {
	const char *bytes;
	size_t count;
	uint64_t value;
};

static void varuint32_values(void **state)
{
	static const struct leb cases[] = {
		{ "\x00", 1, 0 },
		{ "\x7f", 1, 127 },
		{ "\x80\x01", 2, 128 },
		{ "\xff\xff\xff\xff\x0f", 5, UINT32_MAX },
		{ "\x81\x00", 2, 1 }, /* not the shortest form */
		{ "\x80\x80\x80\x80\x00", 5, 0 },
		{ "\xff\xff\xff\xff\x7f", 5, UINT32_MAX }, /* surplus high bits are dropped */
		{ "\x00\x00\x00\x00\x10", 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const uint8_t *p = (const uint8_t *)cases[i].bytes;
		struct nt_span s = nt_span_of(p, 5);

		assert_int_equal(nt_varuint32(&s), cases[i].value);
		assert_null(s.bad);
		assert_ptr_equal(s.cur, p + cases[i].count);
	}
}

static void varuint64_values(void **state)
{
	static const struct leb cases[] = {
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, UINT64_MAX },
		{ "\xb8\xfe\xff\xff\xff\xff\xff\xff\xff\x01", 10, (uint64_t)-200 },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, UINT64_MAX }, /* surplus bits */
		{ "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 10, (uint64_t)1 << 63 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct nt_span s = nt_span_of((const uint8_t *)cases[i].bytes, 10);

		assert_true(nt_varuint64(&s) == cases[i].value);
		assert_null(s.bad);
		assert_int_equal(nt_left(&s), 10 - cases[i].count);
	}
}

static void a_varint_that_is_too_long_is_malformed(void **state)
{
	uint8_t bytes[16];
	struct nt_span s;

	(void)state;
	memset(bytes, 0x80, sizeof(bytes));
	s = nt_span_of(bytes, sizeof(bytes));
	nt_u8(&s);
	assert_int_equal(nt_varuint32(&s), 0);
	assert_ptr_equal(s.bad, bytes + 1); /* where it began */
	assert_true(s.malformed);

	s = nt_span_of(bytes, sizeof(bytes));
	assert_true(nt_varuint64(&s) == 0);
	assert_ptr_equal(s.bad, bytes);
	assert_true(s.malformed);
}

static void a_varint_that_is_cut_is_not_malformed(void **state)
{
	static const uint8_t bytes[] = { 0x05, 0x80, 0x80 };
	struct nt_span s = nt_span_of(bytes, sizeof(bytes));

	(void)state;
	assert_int_equal(nt_varuint32(&s), 5);
	assert_int_equal(nt_varuint32(&s), 0);
	assert_ptr_equal(s.bad, bytes + 1);
	assert_false(s.malformed);
}

static void zigzag_values(void **state)
{
	static const struct {
		const char *bytes;
		int64_t value;
	} cases[] = {
		{ "\x00", 0 },
		{ "\x01", -1 },
		{ "\x02", 1 },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", INT64_MIN },
		{ "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", INT64_MAX },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct nt_span s =
			nt_span_of((const uint8_t *)cases[i].bytes, strlen(cases[i].bytes) + 1);

		assert_true(nt_varint64(&s) == cases[i].value);
		assert_null(s.bad);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_little_endian),
		cmocka_unit_test(signed_numbers_keep_their_sign),
		cmocka_unit_test(a_read_past_the_end_gives_zero_and_spoils_the_span),
		cmocka_unit_test(a_huge_length_does_not_wrap_around),
		cmocka_unit_test(a_child_cannot_leave_its_parent),
		cmocka_unit_test(a_child_that_does_not_fit_spoils_both),
		cmocka_unit_test(varuint32_values),
		cmocka_unit_test(varuint64_values),
		cmocka_unit_test(a_varint_that_is_too_long_is_malformed),
		cmocka_unit_test(a_varint_that_is_cut_is_not_malformed),
		cmocka_unit_test(zigzag_values),
	};

	return cmocka_run_group_tests_name("span", tests, NULL, NULL);
}
