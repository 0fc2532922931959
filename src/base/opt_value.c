/* SPDX-License-Identifier: MIT */

/* Words of the command line to numbers, and the nearest name to a word that is none. */

#include "src/base/options.h"

#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits at *at; false when there are none or they do not fit. */
static bool take_digits(const char **at, uint64_t *ret)
{
	const char *p = *at;
	uint64_t v = 0;

	for (; is_digit(*p); p++) {
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return false;
	}
	if (p == *at)
		return false;
	*at = p;
	*ret = v;
	return true;
}

static const char *parse_hex(const char *p, uint64_t *ret)
{
	uint64_t v = 0;
	size_t n = 0;

	for (; *p; p++, n++) {
		const char *digits = "0123456789abcdef";
		const char *d = strchr(digits, *p | 0x20);

		if (!d || (*p < 'A' && !is_digit(*p)))
			return "not a number";
		if (v >> 60)
			return "the number is too large";
		v = v << 4 | (uint64_t)(d - digits);
	}
	if (!n)
		return "not a number";
	*ret = v;
	return NULL;
}

const char *opt_parse_uint(const char *text, uint64_t *ret)
{
	const char *p = text;
	uint64_t v;

	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		return parse_hex(p + 2, ret);
	if (text[strspn(text, "0123456789")] || !*text)
		return "not a number";
	if (!take_digits(&p, &v))
		return "the number is too large";
	*ret = v;
	return NULL;
}

static const char duration_form[] = "not a duration: write 250ms, 30s, 5m, 1h30m or dd:hh:mm:ss";
static const char duration_unit[] = "a unit is needed: 250ms, 30s, 5m, 1h30m";
static const char duration_large[] = "the duration is too long";
static const char duration_order[] = "units must go from the largest to the smallest: 1h30m";

static bool only_digits(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

/* hh:mm:ss or dd:hh:mm:ss, as other .NET tools take it. */
static const char *parse_clock(const char *text, uint64_t *ret_ns)
{
	static const uint64_t most[] = { UINT64_MAX, 23, 59, 59 };
	static const uint64_t seconds[] = { 86400, 3600, 60, 1 };
	uint64_t part[4], total = 0;
	size_t n = 0, first;

	for (const char *p = text;; p++) {
		if (n == 4 || !take_digits(&p, &part[n++]))
			return duration_form;
		if (!*p)
			break;
		if (*p != ':')
			return duration_form;
	}
	if (n < 3)
		return duration_form;
	first = 4 - n;
	for (size_t i = 0; i < n; i++) {
		uint64_t ns;

		if (part[i] > most[first + i])
			return duration_form;
		if (__builtin_mul_overflow(part[i], seconds[first + i] * 1000000000u, &ns) ||
		    __builtin_add_overflow(total, ns, &total))
			return duration_large;
	}
	*ret_ns = total;
	return NULL;
}

struct unit {
	const char *name;
	uint64_t size;
};

static const struct unit duration_units[] = {
	{ "d", UINT64_C(86400000000000) },
	{ "h", UINT64_C(3600000000000) },
	{ "ms", 1000000 },
	{ "m", UINT64_C(60000000000) },
	{ "s", 1000000000 },
	{ "us", 1000 },
	{ "ns", 1 },
	{ NULL, 0 },
};

/* The unit that p starts with; longer names come first where one begins another. */
static const struct unit *find_unit(const struct unit *units, const char *p)
{
	for (; units->name; units++)
		if (strncmp(p, units->name, strlen(units->name)) == 0)
			return units;
	return NULL;
}

/* ".25" of a unit, in ns. */
static bool take_fraction(const char **at, uint64_t *ret_part, uint64_t *ret_whole)
{
	const char *p = *at + 1;
	uint64_t part = 0, whole = 1;

	if (!is_digit(*p))
		return false;
	for (; is_digit(*p); p++) {
		if (whole >= 1000000)
			continue; /* finer than any use */
		part = part * 10 + (uint64_t)(*p - '0');
		whole *= 10;
	}
	*at = p;
	*ret_part = part;
	*ret_whole = whole;
	return true;
}

const char *opt_parse_duration(const char *text, uint64_t *ret_ns)
{
	const char *p = text;
	uint64_t total = 0, last = UINT64_MAX;

	if (only_digits(text))
		return duration_unit;
	if (strchr(text, ':'))
		return parse_clock(text, ret_ns);
	if (!*text)
		return duration_form;
	while (*p) {
		uint64_t n, part = 0, whole = 1;
		const struct unit *unit;

		if (!is_digit(*p))
			return duration_form;
		if (!take_digits(&p, &n))
			return duration_large;
		if (*p == '.' && !take_fraction(&p, &part, &whole))
			return duration_form;
		if (!*p)
			return duration_unit;
		unit = find_unit(duration_units, p);
		if (!unit)
			return duration_form;
		if (unit->size >= last)
			return duration_order;
		last = unit->size;
		p += strlen(unit->name);
		if (__builtin_mul_overflow(n, unit->size, &n) ||
		    __builtin_add_overflow(total, n, &total) ||
		    __builtin_add_overflow(total, unit->size / whole * part, &total))
			return duration_large;
	}
	*ret_ns = total;
	return NULL;
}

const char *opt_parse_size(const char *text, uint64_t *ret_bytes)
{
	static const char letters[] = "BKMGT";
	const char *p = text;
	const char *letter;
	uint64_t v;

	if (only_digits(text))
		return "a unit is needed: 512K, 64M, 2G";
	if (!is_digit(*p))
		return "not a size: write 512K, 64M or 2G";
	if (!take_digits(&p, &v))
		return "the size is too large";
	letter = strchr(letters, *p >= 'a' && *p <= 'z' ? *p - 32 : *p);
	p++;
	if (letter && letter != letters && (strcmp(p, "B") == 0 || strcmp(p, "iB") == 0))
		p += strlen(p);
	if (!letter || *p)
		return "not a size: write 512K, 64M or 2G";
	if (__builtin_mul_overflow(v, UINT64_C(1) << (10 * (letter - letters)), &v))
		return "the size is too large";
	*ret_bytes = v;
	return NULL;
}

enum { NEAR_MAX_WORD = 64 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Insertions, deletions, changes and swaps of neighbours that turn a into b. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t rows[3][NEAR_MAX_WORD + 1] = { 0 };
	size_t la = strlen(a), lb = strlen(b);

	for (size_t k = 0; k <= lb; k++)
		rows[0][k] = k;
	for (size_t i = 1; i <= la; i++) {
		size_t *now = rows[i % 3];
		const size_t *prev = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

		now[0] = i;
		for (size_t k = 1; k <= lb; k++) {
			bool same = a[i - 1] == b[k - 1];

			now[k] = least(least(prev[k], now[k - 1]) + 1, prev[k - 1] + !same);
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				now[k] = least(now[k], before[k - 2] + 1);
		}
	}
	return rows[la % 3][lb];
}

const char *opt_nearest(const char *word, const char *const *names)
{
	const char *best = NULL;
	size_t len = strlen(word), best_distance = SIZE_MAX;

	if (!len || len > NEAR_MAX_WORD)
		return NULL;
	for (; *names; names++) {
		size_t distance;

		if (strlen(*names) > NEAR_MAX_WORD)
			continue;
		distance = edit_distance(word, *names);
		if (len >= 3 && strncmp(word, *names, len) == 0)
			distance = 1; /* cut short */
		if (distance < best_distance && distance <= (len < 4 ? 1 : len < 8 ? 2 : 3)) {
			best = *names;
			best_distance = distance;
		}
	}
	return best;
}
