/* SPDX-License-Identifier: MIT */
#include "nettrace/nettrace.h"
#include "nettrace/span.h"

/* A character beyond ASCII. */
static size_t put_utf8(uint32_t c, char out[4])
{
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* How many characters from the start are ASCII, by fours; they are in dst then. */
static size_t take_ascii(const uint8_t *src, size_t len, char *dst, size_t cap)
{
	const uint64_t beyond = 0xff80ff80ff80ff80u;
	size_t n = 0;

	for (; 2 * n + 8 <= len && n + 4 <= cap; n += 4) {
		uint64_t four = nt_load64(src + 2 * n);

		if (four & beyond)
			break;
		dst[n] = (char)(four & 0x7f);
		dst[n + 1] = (char)(four >> 16 & 0x7f);
		dst[n + 2] = (char)(four >> 32 & 0x7f);
		dst[n + 3] = (char)(four >> 48);
	}
	return n;
}

size_t nt_utf16_to_utf8(const uint8_t *src, size_t len, char *dst, size_t cap)
{
	size_t used = take_ascii(src, len, dst, cap);

	for (size_t i = 2 * used; i + 2 <= len; i += 2) {
		uint32_t c = nt_load16(src + i);
		char bytes[4];
		size_t n;

		if (c < 0x80) {
			if (used == cap)
				break;
			dst[used++] = (char)c;
			continue;
		}
		if (c >= 0xd800 && c < 0xe000) {
			uint32_t low = i + 4 <= len ? nt_load16(src + i + 2) : 0;

			if (c < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
				c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
				i += 2;
			} else {
				c = 0xfffd;
			}
		}
		n = put_utf8(c, bytes);
		if (n > cap - used)
			break;
		for (size_t k = 0; k < n; k++)
			dst[used++] = bytes[k];
	}
	return used;
}
