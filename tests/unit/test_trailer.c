/* SPDX-License-Identifier: MIT */
#include "nettrace/trailer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failalloc.h"

/* Two records, the second of a kind that nobody knows. */
static void fill(struct nt_trailer *t)
{
	nt_trailer_begin(t, NT_TRAILER_CPU_INFO);
	nt_trailer_varuint(t, 300);
	nt_trailer_varint(t, -2);
	nt_trailer_u64(t, UINT64_C(0x1122334455667788));
	nt_trailer_text(t, "name", 4);
	nt_trailer_end(t);
	nt_trailer_begin(t, (enum nt_trailer_kind)4711);
	nt_trailer_put(t, "xyz", 3);
	nt_trailer_end(t);
	nt_trailer_begin(t, NT_TRAILER_PERF_INFO);
	nt_trailer_u8(t, 9);
	nt_trailer_end(t);
}

static uint8_t *make(size_t *ret_len)
{
	struct nt_trailer t;
	const uint8_t *bytes;
	uint8_t *copy;

	nt_trailer_init(&t, &nt_alloc_default);
	assert_true(nt_trailer_is_empty(&t));
	fill(&t);
	assert_false(nt_trailer_is_empty(&t));
	assert_int_equal(nt_trailer_finish(&t, &bytes, ret_len), NT_OK);
	copy = malloc(*ret_len);
	assert_non_null(copy);
	memcpy(copy, bytes, *ret_len);
	nt_trailer_done(&t);
	return copy;
}

static void records_come_back_as_written(void **state)
{
	struct nt_trailer_record r;
	struct nt_span records;
	size_t len;
	uint8_t *block = make(&len);

	(void)state;
	assert_null(nt_trailer_open(block, len, &records));
	assert_true(nt_trailer_next(&records, &r));
	assert_int_equal(r.kind, NT_TRAILER_CPU_INFO);
	assert_int_equal(nt_varuint64(&r.body), 300);
	assert_int_equal(nt_varint64(&r.body), -2);
	assert_true(nt_u64(&r.body) == UINT64_C(0x1122334455667788));
	assert_int_equal(nt_varuint64(&r.body), 4);
	assert_memory_equal(nt_take(&r.body, 4), "name", 4);
	assert_int_equal(nt_left(&r.body), 0);
	assert_true(nt_trailer_next(&records, &r));
	assert_int_equal(r.kind, 4711);
	assert_int_equal(nt_left(&r.body), 3);
	assert_true(nt_trailer_next(&records, &r));
	assert_int_equal(r.kind, NT_TRAILER_PERF_INFO);
	assert_int_equal(nt_u8(&r.body), 9);
	assert_false(nt_trailer_next(&records, &r));
	assert_null(records.bad);
	free(block);
}

/* The bytes of README.md: a block is the same in every version of the program. */
static const char documented[] = "\x9d"
				 "DRDT\r\n\x1a" /* magic */
				 "\1\0\0\0\0\0\0\0" /* version */
				 "\x39\0\0\0\0\0\0\0" /* length */
				 "\x10\0\0\0\1\0\0\0\x09" /* a record */
				 "\x39\0\0\0\0\0\0\0" /* length */
				 "\xe3\xf5\xc7\x5c\0\0\0\0" /* zlib.crc32() of all before it */
				 "\x9d"
				 "drde\r\n\x1a";

static void layout_is_as_documented(void **state)
{
	uint8_t head[NT_TRAILER_ZSTD_HEAD_BYTES];
	const uint8_t *bytes;
	struct nt_trailer t;
	size_t len;

	(void)state;
	nt_trailer_init(&t, &nt_alloc_default);
	nt_trailer_begin(&t, NT_TRAILER_PERF_INFO);
	nt_trailer_u8(&t, 9);
	nt_trailer_end(&t);
	assert_int_equal(nt_trailer_finish(&t, &bytes, &len), NT_OK);
	assert_int_equal(len, sizeof(documented) - 1);
	assert_memory_equal(bytes, documented, len);
	nt_trailer_done(&t);
	nt_trailer_zstd_head(0x1234, head);
	assert_memory_equal(head, "\x5d\x2a\x4d\x18\x34\x12\0\0", sizeof(head));
}

static void footer_tells_the_length(void **state)
{
	size_t len;
	uint8_t *block = make(&len);

	(void)state;
	assert_true(nt_trailer_has_head(block, len));
	assert_false(nt_trailer_has_head(block, 7));
	assert_int_equal(nt_trailer_claimed(block + len - NT_TRAILER_FOOTER_BYTES), len);
	assert_int_equal(nt_trailer_claimed(block), 0);
	free(block);
}

/* Whatever bit is wrong, the block is refused; it is never read in part. */
static void each_damage_is_seen(void **state)
{
	struct nt_span records;
	size_t len;
	uint8_t *block = make(&len);

	(void)state;
	for (size_t i = 0; i < len * 8; i++) {
		bool spare = i / 8 >= len - 12 && i / 8 < len - 8; /* bytes without a meaning */

		block[i / 8] ^= (uint8_t)(1u << i % 8);
		if (!spare)
			assert_non_null(nt_trailer_open(block, len, &records));
		block[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	for (size_t n = 0; n < len; n++)
		assert_non_null(nt_trailer_open(block, n, &records));
	assert_null(nt_trailer_open(block, len, &records));
	free(block);
}

static void lengths_of_records_are_not_believed(void **state)
{
	static const uint32_t lengths[] = { 2, 3, 0x7fffffff, 0xffffffff };

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint8_t bytes[9] = { 16, 0, 0, 0 };
		struct nt_span records = nt_span_of(bytes, sizeof(bytes));
		struct nt_trailer_record r;

		for (size_t k = 0; k < 4; k++)
			bytes[4 + k] = (uint8_t)(lengths[i] >> (8 * k));
		assert_false(nt_trailer_next(&records, &r));
		assert_non_null(records.bad);
	}
}

static void each_allocation_may_fail(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct nt_trailer t;
		const uint8_t *bytes;
		size_t len;

		nt_trailer_init(&t, &fa.alloc);
		for (size_t i = 0; i < 1000; i++)
			fill(&t);
		assert_int_equal(nt_trailer_finish(&t, &bytes, &len),
				 fa.failed ? NT_ENOMEM : NT_OK);
		nt_trailer_done(&t);
	}
}

static void too_long_is_refused(void **state)
{
	static const uint8_t mebibyte[1 << 20];
	struct nt_trailer t;
	const uint8_t *bytes;
	size_t len;

	(void)state;
	nt_trailer_init(&t, &nt_alloc_default);
	nt_trailer_begin(&t, NT_TRAILER_PERF_SAMPLE);
	for (size_t i = 0; i < 64; i++)
		nt_trailer_put(&t, mebibyte, sizeof(mebibyte));
	nt_trailer_end(&t);
	assert_int_equal(nt_trailer_finish(&t, &bytes, &len), NT_ELIMIT);
	nt_trailer_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_back_as_written),
		cmocka_unit_test(layout_is_as_documented),
		cmocka_unit_test(footer_tells_the_length),
		cmocka_unit_test(each_damage_is_seen),
		cmocka_unit_test(lengths_of_records_are_not_believed),
		cmocka_unit_test(each_allocation_may_fail),
		cmocka_unit_test(too_long_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
