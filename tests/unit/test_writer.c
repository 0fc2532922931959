/* SPDX-License-Identifier: MIT */
#include "nettrace/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/build.h"
#include "tests/support/failalloc.h"
#include "tests/support/fixture.h"
#include "tests/support/trail.h"

/* The Trace object's content as build_begin() has it. */
static void trace_body(uint8_t to[NT_TRACE_BODY_BYTES])
{
	struct build b = { 0 };

	build_begin(&b, 4);
	memcpy(to, b.bytes + b.count - 1 - NT_TRACE_BODY_BYTES, NT_TRACE_BODY_BYTES);
	build_done(&b);
}

static void write_rows(struct nt_writer *w)
{
	uint8_t body[NT_TRACE_BODY_BYTES];

	trace_body(body);
	nt_writer_begin(w, body);
	nt_writer_open(w, "MetadataBlock");
	nt_writer_define(w, 9, "Microsoft-Windows-DotNETRuntimeRundown", 144, 2, 4, 0x30);
	nt_writer_define(w, 10, "Microsoft-Windows-DotNETRuntimeRundown", 146, 1, 4, 0x30);
	nt_writer_close(w);
	nt_writer_open(w, "EventBlock");
	nt_writer_row(w, &(const struct nt_out_row){ 9, 1, 77, 5000, "method", 6 });
	nt_writer_row(w, &(const struct nt_out_row){ 10, 2, 77, 5000, "", 0 });
	nt_writer_row(w, &(const struct nt_out_row){ 9, 3, 77, 6001, "x", 1 });
	nt_writer_close(w);
	nt_writer_sequence_point(w, 7000);
	nt_writer_end(w);
}

static void rows_come_back_as_written(void **state)
{
	struct nt_writer w;
	struct trail t = { 0 };

	(void)state;
	nt_writer_init(&w, &nt_alloc_default);
	write_rows(&w);
	assert_false(w.failed);
	assert_int_equal(feed(w.bytes, w.count, 1, NT_TIME_ORDER, &t), NT_OK);
	assert_string_equal(t.text, "MethodDCEndVerbose@5000/77+6 DCEndComplete@5000/77 "
				    "MethodDCEndVerbose@6001/77+1");
	assert_int_equal(t.lost, 0);
	assert_int_equal(t.stats.inconsistent, 0);
	assert_int_equal(t.sequence_points, 1);
	nt_writer_done(&w);
}

/* Padding counts from the start of the stream, also after bytes have been taken. */
static void taking_bytes_changes_nothing(void **state)
{
	struct build whole = { 0 }, parts = { 0 };
	uint8_t body[NT_TRACE_BODY_BYTES];
	struct nt_writer w;

	(void)state;
	trace_body(body);
	for (int take = 0; take < 2; take++) {
		nt_writer_init(&w, &nt_alloc_default);
		nt_writer_begin(&w, body);
		for (size_t n = 8; n < 40; n++) {
			static const uint8_t bytes[40];

			nt_writer_object(&w, "StackBlock", bytes, n);
			if (take) {
				build_bytes(&parts, w.bytes, w.count);
				nt_writer_take(&w);
			}
		}
		nt_writer_end(&w);
		build_bytes(take ? &parts : &whole, w.bytes, w.count);
		nt_writer_done(&w);
	}
	assert_int_equal(whole.count, parts.count);
	assert_memory_equal(whole.bytes, parts.bytes, whole.count);
	build_done(&whole);
	build_done(&parts);
}

static void no_memory_is_remembered(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct nt_writer w;

		nt_writer_init(&w, &fa.alloc);
		write_rows(&w);
		assert_int_equal(w.failed, fa.failed);
		nt_writer_done(&w);
	}
	assert_true(fa.fail_at > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_come_back_as_written),
		cmocka_unit_test(taking_bytes_changes_nothing),
		cmocka_unit_test(no_memory_is_remembered),
	};

	return cmocka_run_group_tests_name("writer", tests, NULL, NULL);
}
