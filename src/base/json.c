/* SPDX-License-Identifier: MIT */
#include "src/base/json.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"

/* Deeper members share a line: each row of a table is one line, so a diff shows rows. */
enum { LINES_UP_TO_DEPTH = 3 };
#define EXACT_IN_DOUBLE (UINT64_C(1) << 53)

void json_init(struct json *j, struct out *out, bool compact)
{
	j->out = out;
	j->compact = compact;
	j->depth = 0;
	j->filled[0] = false;
}

static void line_break(struct json *j)
{
	out_char(j->out, '\n');
	for (unsigned i = 0; i < j->depth; i++)
		out_write(j->out, "  ", 2);
}

static void put_text(struct json *j, const char *text, size_t len)
{
	size_t used;

	out_char(j->out, '"');
	for (size_t i = 0; i < len; i += used) {
		uint32_t c;

		used = utf8_plain(text + i, len - i);
		out_write(j->out, text + i, used);
		if (i + used == len)
			break;
		i += used;
		c = utf8_next(text + i, len - i, &used);
		if (c == UTF8_BAD)
			out_write(j->out, "\xef\xbf\xbd", 3);
		else if (c == '"' || c == '\\')
			out_printf(j->out, "\\%c", (int)c);
		else if (c < 0x20)
			out_printf(j->out, "\\u%04x", (unsigned)c);
		else
			out_write(j->out, text + i, used);
	}
	out_char(j->out, '"');
}

/* What stands before any value: comma, line break, name. */
static void lead(struct json *j, const char *name)
{
	if (j->filled[j->depth])
		out_char(j->out, ',');
	if (j->depth && !j->compact && j->depth <= LINES_UP_TO_DEPTH)
		line_break(j);
	else if (j->filled[j->depth] && !j->compact)
		out_char(j->out, ' ');
	j->filled[j->depth] = true;
	if (name) {
		put_text(j, name, strlen(name));
		out_char(j->out, ':');
		if (!j->compact)
			out_char(j->out, ' ');
	}
}

void json_begin(struct json *j, const char *name, char opening, char closing)
{
	assert(j->depth < JSON_MAX_DEPTH);
	lead(j, name);
	out_char(j->out, opening);
	j->depth++;
	j->filled[j->depth] = false;
	j->closing[j->depth] = closing;
}

void json_end(struct json *j)
{
	char closing = j->closing[j->depth];
	bool lines = !j->compact && j->depth <= LINES_UP_TO_DEPTH && j->filled[j->depth];

	assert(j->depth > 0);
	j->depth--;
	if (lines)
		line_break(j);
	out_char(j->out, closing);
	if (!j->depth) {
		out_char(j->out, '\n');
		j->filled[0] = false;
	}
}

void json_textn(struct json *j, const char *name, const char *text, size_t len)
{
	lead(j, name);
	put_text(j, text, len);
}

void json_text(struct json *j, const char *name, const char *text)
{
	if (text)
		json_textn(j, name, text, strlen(text));
	else
		json_null(j, name);
}

void json_hex(struct json *j, const char *name, const void *data, size_t len)
{
	lead(j, name);
	out_char(j->out, '"');
	out_hex(j->out, data, len);
	out_char(j->out, '"');
}

static void put_integer(struct json *j, const char *name, bool negative, uint64_t magnitude,
			bool safe)
{
	bool quoted = safe && magnitude > EXACT_IN_DOUBLE;

	lead(j, name);
	out_text(j->out, quoted ? "\"" : "");
	out_text(j->out, negative ? "-" : "");
	out_uint(j->out, magnitude);
	out_text(j->out, quoted ? "\"" : "");
}

void json_uint(struct json *j, const char *name, uint64_t v)
{
	put_integer(j, name, false, v, false);
}

void json_int(struct json *j, const char *name, int64_t v)
{
	put_integer(j, name, v < 0, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, false);
}

void json_uint_safe(struct json *j, const char *name, uint64_t v)
{
	put_integer(j, name, false, v, true);
}

void json_int_safe(struct json *j, const char *name, int64_t v)
{
	put_integer(j, name, v < 0, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, true);
}

void json_shortest(struct json *j, const char *name, double v, bool single)
{
	char buf[32];
	int digits = fabs(v) < (single ? (double)FLT_MIN : DBL_MIN) ? 1 : single ? 6 : 15;
	bool same;

	if (!isfinite(v)) {
		json_null(j, name);
		return;
	}
	do {
		snprintf(buf, sizeof(buf), "%.*g", digits++, v);
		same = single ? strtof(buf, NULL) == (float)v : strtod(buf, NULL) == v;
	} while (!same);
	lead(j, name);
	out_text(j->out, buf);
}

void json_fixed(struct json *j, const char *name, double v, unsigned decimals)
{
	if (!isfinite(v) || fabs(v) >= 1e15) {
		json_double(j, name, v);
		return;
	}
	lead(j, name);
	out_fixed(j->out, v, decimals);
}

void json_ms(struct json *j, const char *name, int64_t ns)
{
	lead(j, name);
	out_ms(j->out, ns);
}

void json_bool(struct json *j, const char *name, bool v)
{
	lead(j, name);
	out_text(j->out, v ? "true" : "false");
}

void json_null(struct json *j, const char *name)
{
	lead(j, name);
	out_write(j->out, "null", 4);
}
