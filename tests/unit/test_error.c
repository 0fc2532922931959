/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nettrace/nettrace.h"

static const struct nt_error sample = {
	.code = NT_EFORMAT,
	.offset = 0x1f3c,
	.what = "event payload runs past its block",
	.block = "EventBlock",
	.block_index = 12,
	.block_offset = 0x1e00,
	.row = 7,
	.events_before = 48211,
};

static void an_error_names_every_place(void **state)
{
	char text[256];
	int n = nt_error_format(&sample, text, sizeof(text));

	(void)state;
	assert_string_equal(text,
			    "byte 0x1f3c: event payload runs past its block (block 12, EventBlock, "
			    "starts at 0x1e00, row 7); 48211 events before it were read");
	assert_int_equal(n, strlen(text));
}

static void a_small_buffer_gets_the_start_and_the_full_length(void **state)
{
	char text[12];
	int n = nt_error_format(&sample, text, sizeof(text));

	(void)state;
	assert_string_equal(text, "byte 0x1f3c");
	assert_int_equal(n, nt_error_format(&sample, NULL, 0));
}

static void places_beyond_4_gib_are_whole(void **state)
{
	struct nt_error err = sample;
	char text[256];

	(void)state;
	err.offset = 0x123456789abcdef0;
	nt_error_format(&err, text, sizeof(text));
	assert_non_null(strstr(text, "byte 0x123456789abcdef0:"));
}

static void every_status_has_its_own_name(void **state)
{
	const char *names[8];

	(void)state;
	for (int st = NT_ESINK; st <= NT_STOPPED; st++) {
		names[st - NT_ESINK] = nt_status_name((enum nt_status)st);
		for (int other = NT_ESINK; other < st; other++)
			assert_string_not_equal(names[other - NT_ESINK], names[st - NT_ESINK]);
	}
	assert_string_equal(nt_status_name(NT_ETRUNC), "truncated");
	assert_string_equal(nt_status_name((enum nt_status)99), "unknown status");
}

static void the_default_allocator_frees_at_size_zero(void **state)
{
	const struct nt_alloc *a = &nt_alloc_default;
	char *p = a->realloc(a->ctx, NULL, 3);

	(void)state;
	assert_non_null(p);
	memcpy(p, "ab", 3);
	p = a->realloc(a->ctx, p, 4000);
	assert_non_null(p);
	assert_string_equal(p, "ab");
	assert_null(a->realloc(a->ctx, p, 0));
	assert_null(a->realloc(a->ctx, NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_names_every_place),
		cmocka_unit_test(a_small_buffer_gets_the_start_and_the_full_length),
		cmocka_unit_test(places_beyond_4_gib_are_whole),
		cmocka_unit_test(every_status_has_its_own_name),
		cmocka_unit_test(the_default_allocator_frees_at_size_zero),
	};

	return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
