/* SPDX-License-Identifier: MIT */
#ifndef NETTRACE_SPAN_H
#define NETTRACE_SPAN_H

/*
 * A bounds-checked cursor over bytes; the only place that follows raw pointers into input.
 *
 * The first read that does not fit, or a varint that is too long, sets bad to where it began; this
 * and all later reads give 0, so a row is checked once, before any of its values is used.
 * One read a statement: C does not order reads inside an expression.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nt_span {
	const uint8_t *cur;
	const uint8_t *end;
	const uint8_t *bad; /* NULL while all is well */
	bool malformed; /* bad because of the bytes' content, not because they end */
};

static inline struct nt_span nt_span_of(const uint8_t *p, size_t n)
{
	return (struct nt_span){ .cur = p, .end = p + n, .bad = NULL, .malformed = false };
}

static inline size_t nt_left(const struct nt_span *s)
{
	return s->bad ? 0 : (size_t)(s->end - s->cur);
}

static inline void nt_spoil(struct nt_span *s, const uint8_t *at, bool malformed)
{
	if (!s->bad) {
		s->bad = at;
		s->malformed = malformed;
	}
}

/* n bytes of the input, or NULL. */
static inline const uint8_t *nt_take(struct nt_span *s, size_t n)
{
	const uint8_t *p = s->cur;

	if (!s->bad && n <= (size_t)(s->end - s->cur)) {
		s->cur += n;
		return p;
	}
	nt_spoil(s, p, false);
	return NULL;
}

/* A child that cannot leave its parent: the next n bytes.  Bad when they are not there. */
static inline struct nt_span nt_sub(struct nt_span *s, size_t n)
{
	const uint8_t *p = nt_take(s, n);

	if (!p)
		return (struct nt_span){ .cur = s->cur, .end = s->cur, .bad = s->cur };
	return nt_span_of(p, n);
}

static inline uint16_t nt_load16(const uint8_t *p)
{
	return (uint16_t)(p[0] | (uint16_t)(p[1] << 8));
}

static inline uint32_t nt_load32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t nt_load64(const uint8_t *p)
{
	return (uint64_t)nt_load32(p) | (uint64_t)nt_load32(p + 4) << 32;
}

/* The lowest n bytes, little-endian; returns n. */
static inline size_t nt_store(uint8_t *to, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)(v >> (8 * i));
	return n;
}

enum { NT_VARUINT_BYTES = 10 }; /* at most */

/* As nt_varuint64() reads it; returns how many bytes it took. */
static inline size_t nt_store_varuint(uint8_t to[NT_VARUINT_BYTES], uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		to[n++] = (uint8_t)(v | 0x80);
	to[n++] = (uint8_t)v;
	return n;
}

static inline uint8_t nt_u8(struct nt_span *s)
{
	const uint8_t *p = nt_take(s, 1);

	return p ? *p : 0;
}

static inline uint16_t nt_u16(struct nt_span *s)
{
	const uint8_t *p = nt_take(s, 2);

	return p ? nt_load16(p) : 0;
}

static inline uint32_t nt_u32(struct nt_span *s)
{
	const uint8_t *p = nt_take(s, 4);

	return p ? nt_load32(p) : 0;
}

static inline uint64_t nt_u64(struct nt_span *s)
{
	const uint8_t *p = nt_take(s, 8);

	return p ? nt_load64(p) : 0;
}

/* The offset of the first 16-bit unit that is zero, or n; n is even. */
static inline size_t nt_find_nul16(const uint8_t *p, size_t n)
{
	const uint64_t ones = 0x0001000100010001u;
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		uint64_t w = nt_load64(p + i);

		if ((w - ones) & ~w & (ones << 15))
			break;
	}
	for (; i < n; i += 2)
		if (!(p[i] | p[i + 1]))
			break;
	return i;
}

/* UTF-16LE text up to its terminator, which is taken, too, or up to the end. */
static inline struct nt_span nt_take_utf16(struct nt_span *s)
{
	struct nt_span text = nt_sub(s, nt_find_nul16(s->cur, nt_left(s) & ~(size_t)1));

	nt_take(s, nt_left(s) < 2 ? nt_left(s) : 2);
	return text;
}

/* An address of the traced process. */
static inline uint64_t nt_pointer(struct nt_span *s, size_t pointer_size)
{
	return pointer_size == 4 ? nt_u32(s) : nt_u64(s);
}

static inline int32_t nt_i32(struct nt_span *s)
{
	return (int32_t)nt_u32(s);
}

static inline int64_t nt_i64(struct nt_span *s)
{
	return (int64_t)nt_u64(s);
}

/* LEB128 (nettrace.md §3.3): at most max_bytes; surplus high bits of the last byte are dropped. */
static inline uint64_t nt_leb(struct nt_span *s, unsigned max_bytes)
{
	const uint8_t *start = s->cur;
	uint64_t v = 0;

	if (s->bad)
		return 0;
	for (unsigned i = 0; i < max_bytes; i++) {
		if (s->cur == s->end) {
			nt_spoil(s, start, false);
			return 0;
		}
		uint8_t b = *s->cur++;

		v |= (uint64_t)(b & 0x7f) << (7 * i);
		if (!(b & 0x80))
			return v;
	}
	nt_spoil(s, start, true);
	return 0;
}

static inline uint32_t nt_varuint32(struct nt_span *s)
{
	return (uint32_t)nt_leb(s, 5);
}

static inline uint64_t nt_varuint64(struct nt_span *s)
{
	return nt_leb(s, 10);
}

static inline int64_t nt_varint64(struct nt_span *s)
{
	uint64_t u = nt_leb(s, 10);

	return (int64_t)((u >> 1) ^ (0 - (u & 1)));
}

#endif
