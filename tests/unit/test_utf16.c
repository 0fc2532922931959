/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nettrace/nettrace.h"

static const struct {
	const char *utf16;
	size_t bytes;
	const char *utf8;
} cases[] = {
	{ "", 0, "" },
	{ "H\0i\0", 4, "Hi" },
	{ "\xe9\0", 2, "\xc3\xa9" }, /* e acute */
	{ "\x7f\0\x80\0\xff\x07\0\x08", 8, "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80" },
	{ "\xac\x20", 2, "\xe2\x82\xac" }, /* euro */
	{ "\x3d\xd8\x00\xde", 4, "\xf0\x9f\x98\x80" }, /* a pair: U+1F600 */
	{ "\xff\xdb\xff\xdf", 4, "\xf4\x8f\xbf\xbf" }, /* the last one: U+10FFFF */
	{ "\x3d\xd8", 2, "\xef\xbf\xbd" }, /* high alone at the end */
	{ "\x3d\xd8"
	  "A\0",
	  4,
	  "\xef\xbf\xbd"
	  "A" }, /* high alone */
	{ "\0\xde"
	  "A\0",
	  4,
	  "\xef\xbf\xbd"
	  "A" }, /* low alone */
	{ "\0\xde\x3d\xd8", 4, "\xef\xbf\xbd\xef\xbf\xbd" }, /* the wrong way round */
	{ "\x3d\xd8\x3d\xd8\0\xde", 6, "\xef\xbf\xbd\xf0\x9f\x98\x80" },
	{ "\xff\xff", 2, "\xef\xbf\xbf" },
	{ "A\0B", 3, "A" }, /* half a unit at the end */
};

static void text_is_converted(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char out[64] = { 0 };
		size_t n = nt_utf16_to_utf8((const uint8_t *)cases[i].utf16, cases[i].bytes, out,
					    sizeof(out));

		assert_int_equal(n, strlen(cases[i].utf8));
		assert_string_equal(out, cases[i].utf8);
		assert_true(n <= 3 * (cases[i].bytes / 2));
	}
}

static void a_nul_inside_is_kept(void **state)
{
	char out[8];

	(void)state;
	assert_int_equal(nt_utf16_to_utf8((const uint8_t *)"A\0\0\0B\0", 6, out, sizeof(out)), 3);
	assert_memory_equal(out, "A\0B", 3);
}

/* At every capacity: what fits is a prefix of whole characters, and nothing is written behind. */
static void a_character_is_never_cut(void **state)
{
	static const char text[] = "A\0\xe9\0\xac\x20\x3d\xd8\x00\xde";
	static const size_t whole[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10 };

	(void)state;
	for (size_t cap = 0; cap < 12; cap++) {
		char out[16];

		memset(out, '#', sizeof(out));
		assert_int_equal(nt_utf16_to_utf8((const uint8_t *)text, 10, out, cap), whole[cap]);
		for (size_t i = whole[cap]; i < sizeof(out); i++)
			assert_int_equal(out[i], '#');
	}
}

/* Wherever a character beyond ASCII stands, and however much room there is. */
static void ascii_around_another(void **state)
{
	enum { N = 13 };

	(void)state;
	for (size_t at = 0; at <= N; at++) {
		uint8_t src[2 * N];
		char want[N + 1];
		size_t n = 0;

		for (size_t i = 0; i < N; i++) {
			src[2 * i] = (uint8_t)(i == at ? 0xe9 : 'a' + i);
			src[2 * i + 1] = 0;
			if (i == at)
				want[n++] = (char)0xc3;
			want[n++] = (char)(i == at ? 0xa9 : 'a' + i);
		}
		for (size_t cap = 0; cap <= n + 1; cap++) {
			char out[N + 2];
			size_t fits = cap < n ? cap : n;

			if (fits == at + 1 && at < N) /* half of it */
				fits--;
			memset(out, '#', sizeof(out));
			assert_int_equal(nt_utf16_to_utf8(src, sizeof(src), out, cap), fits);
			assert_memory_equal(out, want, fits);
			for (size_t i = fits; i < sizeof(out); i++)
				assert_int_equal(out[i], '#');
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_converted),
		cmocka_unit_test(a_nul_inside_is_kept),
		cmocka_unit_test(a_character_is_never_cut),
		cmocka_unit_test(ascii_around_another),
	};

	return cmocka_run_group_tests_name("utf16", tests, NULL, NULL);
}
