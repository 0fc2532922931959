/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/robust.h"

#include <stdlib.h>
#include <string.h>

#include "analyzers/analyzer.h"
#include "tests/support/walk.h"

bool robust_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return true;
#else
	return false;
#endif
}

enum nt_status robust_report(const struct nt_alloc *alloc, const uint8_t *data, size_t size)
{
	const struct an_options options = { .top = 20, .view = AN_VIEW_CPU };
	const struct an_input input = { .file = "damaged" };
	struct an_engine *e = an_engine_new(alloc, &options, an_classes);
	struct an_report *r = an_report_new(alloc);
	struct nt_decoder *d = NULL;
	enum nt_status st = NT_ENOMEM, built = NT_ENOMEM;

	if (e && r)
		d = nt_decoder_new(alloc, NULL, NT_TIME_ORDER, &an_engine_sink, e);
	if (d) {
		st = nt_decoder_push(d, data, size);
		if (st == NT_OK)
			st = nt_decoder_finish(d);
		built = an_engine_report(e, d, &input, r);
		if (built == NT_OK)
			built = an_report_status(r);
	}
	nt_decoder_free(d);
	an_report_free(r);
	an_engine_free(e);
	return built == NT_ENOMEM ? built : st;
}

uint8_t *robust_shorten(const uint8_t *data, size_t size, size_t max, size_t *ret_size)
{
	size_t count, *edges = walk_edges(data, size, &count), cut = 0;
	uint8_t *copy = calloc(1, size + 4);

	if (!copy || !edges)
		abort();
	for (size_t i = 0; i + 1 < count; i++) {
		/* At least two blocks more than the first, however large they are. */
		if (i < 3 || edges[i] <= max)
			cut = edges[i];
	}
	memcpy(copy, data, cut);
	if (memcmp(data, "Nettrace\0\0\0\0", 12) == 0) {
		*ret_size = cut + 4; /* an empty block of kind 0 */
	} else {
		copy[cut] = 1;
		*ret_size = cut + 1;
	}
	free(edges);
	return copy;
}

/* Marsaglia's xorshift: the same on every machine. */
static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* One change; returns the new size. */
static size_t mutate_once(uint8_t *data, size_t size, size_t room, uint64_t *rng)
{
	static const uint8_t extreme[] = { 0x00, 0xff, 0x7f, 0x80, 0x01 };
	size_t at = draw(rng) % size, n = 1 + draw(rng) % 8;

	if (n > size - at)
		n = size - at;
	switch (draw(rng) % 7) {
	case 0: /* one bit */
		data[at] ^= (uint8_t)(1u << draw(rng) % 8);
		break;
	case 1: /* one byte */
		data[at] = (uint8_t)draw(rng);
		break;
	case 2: /* some bytes of an extreme value, as lengths and counts like it */
		memset(data + at, extreme[draw(rng) % sizeof(extreme)], n);
		break;
	case 3: /* a number a little larger or smaller */
		data[at] = (uint8_t)(data[at] + draw(rng) % 9 - 4);
		break;
	case 4: /* bytes from elsewhere */
		memmove(data + at, data + draw(rng) % (size - n + 1), n);
		break;
	case 5: /* bytes taken out */
		if (n < size) {
			memmove(data + at, data + at + n, size - at - n);
			size -= n;
		}
		break;
	default: /* bytes put in */
		if (n <= room - size) {
			memmove(data + at + n, data + at, size - at);
			size += n;
		}
	}
	return size;
}

size_t robust_mutate(uint8_t *data, size_t size, uint64_t seed)
{
	uint64_t rng = seed * 0x9e3779b97f4a7c15 + 1;
	size_t room = 2 * size + 64, changes;

	for (int i = 0; i < 4; i++)
		draw(&rng);
	changes = 1 + draw(&rng) % 6;
	while (changes-- > 0)
		size = mutate_once(data, size, room, &rng);
	return size;
}
