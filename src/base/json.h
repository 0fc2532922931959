/* SPDX-License-Identifier: MIT */
#ifndef SRC_BASE_JSON_H
#define SRC_BASE_JSON_H

/*
 * A streaming JSON writer: constant memory, always well-formed as long as begin and end match.
 * name is the member's name inside an object and NULL inside an array or at the top.  Text that is
 * not UTF-8 is repaired (U+FFFD).  Numbers never depend on the locale; NaN and infinities are null.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/output.h"

enum { JSON_MAX_DEPTH = 64 };

struct json {
	struct out *out;
	bool compact; /* everything on one line */
	unsigned depth;
	bool filled[JSON_MAX_DEPTH + 1]; /* something was written at this depth */
	char closing[JSON_MAX_DEPTH + 1]; /* '}' or ']' */
};

void json_init(struct json *j, struct out *out, bool compact);

void json_begin(struct json *j, const char *name, char opening, char closing);

static inline void json_begin_object(struct json *j, const char *name)
{
	json_begin(j, name, '{', '}');
}

static inline void json_begin_array(struct json *j, const char *name)
{
	json_begin(j, name, '[', ']');
}

/* Closes the innermost object or array; a line break follows the outermost. */
void json_end(struct json *j);

void json_text(struct json *j, const char *name, const char *text); /* NULL: null */
void json_textn(struct json *j, const char *name, const char *text, size_t len);
void json_hex(struct json *j, const char *name, const void *data, size_t len);
void json_uint(struct json *j, const char *name, uint64_t v);
void json_int(struct json *j, const char *name, int64_t v);
/* As a string when a double cannot hold it (beyond 2^53). */
void json_uint_safe(struct json *j, const char *name, uint64_t v);
void json_int_safe(struct json *j, const char *name, int64_t v);
/* The shortest text that reads back as the same number, of a float if single. */
void json_shortest(struct json *j, const char *name, double v, bool single);

static inline void json_double(struct json *j, const char *name, double v)
{
	json_shortest(j, name, v, false);
}

static inline void json_float(struct json *j, const char *name, float v)
{
	json_shortest(j, name, (double)v, true);
}

/* Nanoseconds as milliseconds, exact. */
void json_ms(struct json *j, const char *name, int64_t ns);
/* Rounded to that many digits behind the point, without trailing zeros. */
void json_fixed(struct json *j, const char *name, double v, unsigned decimals);
void json_bool(struct json *j, const char *name, bool v);
void json_null(struct json *j, const char *name);

#endif
