/* SPDX-License-Identifier: MIT */
#include "src/perf/perf_map.h"

#include <string.h>

#include "src/base/native.h"

enum {
	DUMP_MAGIC = 0x4a695444,
	DUMP_CODE = 0,
	SKEW_NS = 200 * 1000, /* a sample may be so much older than the record of its code */
	MAX_CODE_BYTES = 256 << 20,
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A number and the blanks behind it. */
static bool take_hex(const char **p, const char *end, uint64_t *ret)
{
	const char *from;

	if (end - *p > 2 && (*p)[0] == '0' && ((*p)[1] == 'x' || (*p)[1] == 'X'))
		*p += 2;
	from = *p;
	*ret = 0;
	for (; *p < end && hex_digit(**p) >= 0; (*p)++) {
		if (*ret >> 60)
			return false;
		*ret = *ret << 4 | (uint64_t)hex_digit(**p);
	}
	if (*p == from || *p == end || **p != ' ')
		return false;
	while (*p < end && **p == ' ')
		(*p)++;
	return true;
}

static bool set_range(struct perf_code *c, uint64_t start, uint64_t bytes)
{
	c->start = start;
	return bytes && bytes <= MAX_CODE_BYTES &&
	       !__builtin_add_overflow(start, bytes - 1, &c->last);
}

bool perf_map_line(const char *line, size_t n, struct perf_code *ret)
{
	const char *end = line + n;
	uint64_t start, bytes;

	*ret = (struct perf_code){ 0 };
	if (!take_hex(&line, end, &start) || !take_hex(&line, end, &bytes) || line == end)
		return false;
	ret->name = line;
	ret->name_bytes = (size_t)(end - line);
	return set_range(ret, start, bytes);
}

/* --- jitdump, of a machine like ours --- */

uint32_t perf_dump_header(const uint8_t *p)
{
	uint32_t bytes = native_load32(p + 8);

	return native_load32(p) == DUMP_MAGIC && bytes >= PERF_DUMP_HEADER_BYTES ? bytes : 0;
}

uint32_t perf_dump_length(const uint8_t *p)
{
	uint32_t bytes = native_load32(p + 4);

	return bytes >= PERF_DUMP_RECORD_BYTES ? bytes : 0;
}

bool perf_dump_code(const uint8_t *p, size_t n, struct perf_code *ret)
{
	const uint8_t *end;

	*ret = (struct perf_code){ 0 };
	if (n <= PERF_DUMP_CODE_BYTES || native_load32(p) != DUMP_CODE)
		return false;
	end = memchr(p + PERF_DUMP_CODE_BYTES, 0, n - PERF_DUMP_CODE_BYTES);
	if (!end || end == p + PERF_DUMP_CODE_BYTES)
		return false;
	ret->time_ns = native_load64(p + 8);
	ret->name = (const char *)p + PERF_DUMP_CODE_BYTES;
	ret->name_bytes = (size_t)(end - p) - PERF_DUMP_CODE_BYTES;
	return set_range(ret, native_load64(p + 32), native_load64(p + 40));
}

bool perf_code_better(const struct perf_code *a, const struct perf_code *b, uint64_t time_ns)
{
	uint64_t until = time_ns > UINT64_MAX - SKEW_NS ? UINT64_MAX : time_ns + SKEW_NS;
	bool a_in_time = a->time_ns <= until, b_in_time = b->time_ns <= until;

	if (a_in_time != b_in_time)
		return b_in_time;
	/* Of equals the later one in the file; of those that came too late the first. */
	return a_in_time ? b->time_ns >= a->time_ns : b->time_ns < a->time_ns;
}
