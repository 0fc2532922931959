/* SPDX-License-Identifier: MIT */
#include "tests/support/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

static uint8_t *read_file(const char *path, size_t *ret_size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t size = 0, got;

	if (!f)
		return NULL;
	do {
		uint8_t *more = realloc(data, size + (1 << 16));

		if (!more)
			break;
		data = more;
		got = fread(data + size, 1, 1 << 16, f);
		size += got;
	} while (got > 0);
	if (ferror(f) || !feof(f)) {
		free(data);
		data = NULL;
	}
	fclose(f);
	*ret_size = size;
	return data;
}

static uint8_t *unpack(const uint8_t *packed, size_t packed_size, size_t *ret_size)
{
	ZSTD_DStream *z = ZSTD_createDStream();
	ZSTD_inBuffer in = { packed, packed_size, 0 };
	uint8_t *data = NULL;
	size_t size = 0, cap = 0, left = 1;

	while (z && (in.pos < in.size || left != 0)) {
		ZSTD_outBuffer out;

		if (size == cap) {
			uint8_t *more = realloc(data, cap = cap ? cap * 2 : 1 << 20);

			if (!more)
				break;
			data = more;
		}
		out = (ZSTD_outBuffer){ data + size, cap - size, 0 };
		left = ZSTD_decompressStream(z, &out, &in);
		if (ZSTD_isError(left) || (out.pos == 0 && in.pos == in.size && left != 0))
			break;
		size += out.pos;
	}
	ZSTD_freeDStream(z);
	if (in.pos == in.size && left == 0) {
		*ret_size = size;
		return data;
	}
	free(data);
	return NULL;
}

uint8_t *fixture_read(const char *name, size_t *ret_size)
{
	static const uint8_t magic[] = { 0x28, 0xb5, 0x2f, 0xfd };
	const char *folder = getenv("DRD_FIXTURES");
	char path[4096];
	uint8_t *data, *plain;
	size_t size = 0;

	snprintf(path, sizeof(path), "%s%s%s",
		 name[0] == '/' ? ""
		 : folder	? folder
				: "fixtures",
		 name[0] == '/' ? "" : "/", name);
	data = read_file(path, &size);
	if (data && size >= sizeof(magic) && memcmp(data, magic, sizeof(magic)) == 0) {
		plain = unpack(data, size, &size);
		free(data);
		data = plain;
	}
	if (!data)
		fprintf(stderr, "cannot read fixture '%s'\n", path);
	*ret_size = size;
	return data;
}
