/* SPDX-License-Identifier: MIT */
#include "src/base/utf8.h"

#include <stdio.h>
#include <string.h>

struct utf8_form {
	unsigned char mask, lead;
	size_t bytes;
	uint32_t least; /* smaller values have a shorter form */
};

static const struct utf8_form forms[] = {
	{ 0xe0, 0xc0, 2, 0x80 },
	{ 0xf0, 0xe0, 3, 0x800 },
	{ 0xf8, 0xf0, 4, 0x10000 },
};

static uint32_t multibyte(const unsigned char *p, size_t len, size_t *ret_used)
{
	const struct utf8_form *form = NULL;
	uint32_t c;

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]) && !form; i++)
		if ((p[0] & forms[i].mask) == forms[i].lead)
			form = &forms[i];
	if (!form || form->bytes > len)
		return UTF8_BAD;
	c = p[0] & (unsigned char)~form->mask;
	for (size_t i = 1; i < form->bytes; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return UTF8_BAD;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < form->least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return UTF8_BAD;
	*ret_used = form->bytes;
	return c;
}

uint32_t utf8_next(const char *text, size_t len, size_t *ret_used)
{
	const unsigned char *p = (const unsigned char *)text;

	*ret_used = 1;
	return p[0] < 0x80 ? p[0] : multibyte(p, len, ret_used);
}

size_t utf8_plain(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && text[n] >= 0x20 && text[n] < 0x7f && text[n] != '"' && text[n] != '\\')
		n++;
	return n;
}

bool utf8_is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0xfeff ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f);
}

static int escape_one(uint32_t c, char *buf, size_t size)
{
	if (c == '\n')
		return snprintf(buf, size, "\\n");
	if (c == '\t')
		return snprintf(buf, size, "\\t");
	if (c == '\r')
		return snprintf(buf, size, "\\r");
	if (c < 0x100)
		return snprintf(buf, size, "\\x%02x", (unsigned)c);
	return snprintf(buf, size, "\\u{%04x}", (unsigned)c);
}

size_t utf8_escape(const char *text, size_t len, char *dst, size_t size)
{
	size_t at = 0, used, n;

	if (!size)
		return 0;
	for (size_t i = 0; i < len; i += used) {
		uint32_t c = utf8_next(text + i, len - i, &used);
		char buf[16];
		const char *from = text + i;

		n = used;
		if (utf8_is_control(c)) {
			n = (size_t)escape_one(c, buf, sizeof(buf));
			from = buf;
		} else if (c == UTF8_BAD) {
			n = 3;
			from = "\xef\xbf\xbd";
		}
		if (n >= size - at)
			break;
		memcpy(dst + at, from, n);
		at += n;
	}
	dst[at] = '\0';
	return at;
}

size_t utf8_columns(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}
