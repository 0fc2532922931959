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

size_t nt_utf16_to_utf8(const uint8_t *src, size_t len, char *dst, size_t cap)
{
	size_t used = 0;

	for (size_t i = 0; i + 2 <= len; i += 2) {
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
