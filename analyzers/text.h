/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_TEXT_H
#define ANALYZERS_TEXT_H

/* Text put together in a buffer of fixed size; what does not fit is cut, never written. */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Bytes somewhere else, not terminated. */
struct an_slice {
	const char *p;
	size_t n;
};

static inline struct an_slice an_slice_of(const char *text)
{
	return (struct an_slice){ .p = text, .n = strlen(text) };
}

static inline struct an_slice an_slice_from(struct an_slice s, size_t at)
{
	return (struct an_slice){ .p = s.p + at, .n = s.n - at };
}

static inline struct an_slice an_slice_cut(struct an_slice s, size_t n)
{
	return (struct an_slice){ .p = s.p, .n = n };
}

static inline bool an_slice_is(struct an_slice s, const char *text)
{
	return s.n == strlen(text) && !memcmp(s.p, text, s.n);
}

static inline bool an_slice_begins(struct an_slice s, const char *text)
{
	size_t n = strlen(text);

	return s.n >= n && !memcmp(s.p, text, n);
}

/* The first c in s, or s.n. */
static inline size_t an_slice_find(struct an_slice s, char c)
{
	const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

	return at ? (size_t)(at - s.p) : s.n;
}

struct an_text {
	char *buf;
	size_t size; /* of buf, at least 1 */
	size_t len; /* without the terminator that is always there */
};

static inline struct an_text an_text_of(char *buf, size_t size)
{
	if (size)
		buf[0] = '\0';
	return (struct an_text){ .buf = buf, .size = size };
}

static inline void an_text_put(struct an_text *t, const char *p, size_t n)
{
	size_t room = t->size ? t->size - 1 - t->len : 0;

	if (n > room)
		n = room;
	if (!n)
		return;
	memcpy(t->buf + t->len, p, n);
	t->len += n;
	t->buf[t->len] = '\0';
}

static inline void an_text_slice(struct an_text *t, struct an_slice s)
{
	an_text_put(t, s.p, s.n);
}

static inline void an_text_str(struct an_text *t, const char *s)
{
	an_text_put(t, s, strlen(s));
}

static inline void an_text_char(struct an_text *t, char c)
{
	an_text_put(t, &c, 1);
}

#endif
