/* SPDX-License-Identifier: MIT */
#include "tests/support/walk.h"

#include <stdlib.h>
#include <string.h>

struct edges {
	size_t *at;
	size_t count, room;
};

static void add(struct edges *e, size_t at)
{
	if (e->count == e->room) {
		e->room = e->room ? e->room * 2 : 256;
		e->at = realloc(e->at, e->room * sizeof(*e->at));
		if (!e->at)
			abort();
	}
	e->at[e->count++] = at;
}

static uint32_t u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* V6: u32 of size and kind, then the payload. */
static void walk_v6(struct edges *e, const uint8_t *data, size_t size)
{
	size_t at = 20;

	while (size - at >= 4) {
		size_t bytes = u32(data + at) & 0xffffff;

		add(e, at);
		if (bytes > size - at - 4)
			break;
		at += 4 + bytes;
	}
	add(e, size);
}

/* V3 and V4: objects of the form "B B 1, versions, name, 6, [size, padding], body, 6". */
static void walk_objects(struct edges *e, const uint8_t *data, size_t size, size_t at)
{
	while (size - at > 20 && data[at] != 1) {
		size_t name_bytes = u32(data + at + 11), body;

		add(e, at);
		if (name_bytes > 38)
			break;
		body = at + 15 + name_bytes + 1;
		if (name_bytes == 5) { /* Trace has neither size nor padding */
			at = body + 48 + 1;
		} else {
			if (size - body < 4)
				break;
			at = (body + 4 + 3) / 4 * 4 + u32(data + body) + 1;
		}
		if (at > size)
			break;
	}
	if (at < size)
		add(e, at);
	add(e, size);
}

size_t *walk_edges(const uint8_t *data, size_t size, size_t *ret_count)
{
	struct edges e = { 0 };

	if (size >= 40 && memcmp(data, "Nettrace", 8) == 0) {
		if (u32(data + 8) == 0)
			walk_v6(&e, data, size);
		else
			walk_objects(&e, data, size, 32);
	} else if (size >= 40 && memcmp(data + 4, "!FastSerialization.1", 20) == 0) {
		walk_objects(&e, data, size, 24);
	}
	*ret_count = e.count;
	return e.at;
}
