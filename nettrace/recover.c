/* SPDX-License-Identifier: MIT */
/*
 * Going on after a fault, where the caller asked for it (nettrace.md §10).
 *
 * V3 and V4 objects begin with bytes that can be found again anywhere: two begin tags, a null
 * tag, small version numbers and a known name.  V6 has no such mark, but its blocks have sizes, so
 * there a fault inside a block costs that block only.  What is known of definitions stays; stacks
 * are unknown until the next sequence point.
 */
#include "nettrace/decoder.h"

#include <string.h>

enum { HEAD_BYTES = 15, LONGEST_MARK = HEAD_BYTES + 14 };

static const char *const block_types[] = { "EventBlock", "MetadataBlock", "StackBlock", "SPBlock" };

/* Whether an object of a known type begins at p, as far as n bytes can tell. */
static bool is_object(const struct nt_decoder *d, const uint8_t *p, size_t n)
{
	uint8_t tag = d->trace.format == 3 ? 4 : 5;
	size_t name_bytes;

	if (n < LONGEST_MARK || p[0] != tag || p[1] != tag || p[2] != 1)
		return false;
	if (nt_load32(p + 3) > 2 || nt_load32(p + 7) > 2)
		return false;
	name_bytes = nt_load32(p + 11);
	for (size_t i = 0; i < sizeof(block_types) / sizeof(*block_types); i++)
		if (strlen(block_types[i]) == name_bytes &&
		    !memcmp(p + HEAD_BYTES, block_types[i], name_bytes) &&
		    p[HEAD_BYTES + name_bytes] == 6)
			return true;
	return false;
}

/* Where in [from, n) an object begins; else the first byte that may still turn out to be one. */
static size_t find_object(const struct nt_decoder *d, const uint8_t *p, size_t from, size_t n,
			  bool *ret_found)
{
	*ret_found = false;
	for (size_t i = from; i + LONGEST_MARK <= n; i++) {
		const uint8_t *tag = memchr(p + i, d->trace.format == 3 ? 4 : 5, n - i);

		if (!tag)
			return n;
		i = (size_t)(tag - p);
		*ret_found = is_object(d, tag, n - i);
		if (*ret_found)
			return i;
	}
	return n < LONGEST_MARK + from ? from : n - LONGEST_MARK + 1;
}

static enum nt_status resume(struct nt_decoder *d)
{
	enum nt_status st = nt_queue_drain(d);

	nt_idtable_clear(&d->stacks);
	nt_arena_clear(&d->epoch_arena);
	d->epoch++;
	nt_expect(d, ST_OBJECT, 1);
	return st;
}

/* A scan that ends well looks at enough bytes to know an object from a likeness. */
enum nt_status nt_scan(struct nt_decoder *d, const uint8_t *p, size_t *used)
{
	bool found;
	size_t at = find_object(d, p, 0, d->need, &found);

	d->stats.skipped_bytes += at;
	*used = at;
	return found ? resume(d) : NT_OK;
}

static bool can_recover(const struct nt_decoder *d, enum nt_status st)
{
	/* A limit of memory stays reached; a size beyond all limits is just a damaged size. */
	if (st == NT_ELIMIT && d->state != ST_BLOCK_SIZE)
		return false;
	return d->have_trace && d->state < ST_DONE && st != NT_ENOMEM && st != NT_ESINK;
}

enum nt_status nt_recover(struct nt_decoder *d, enum nt_status st, const uint8_t *p, size_t *used)
{
	size_t bytes = *used;
	size_t from = 0;
	bool found;

	if (!can_recover(d, st))
		return st;
	if (d->trace.format == 6 && d->state != ST_V6_BODY)
		return st; /* a block header that lies: nothing tells where the next one is */
	/*
	 * Never before the fault: what was read once is not read again, so the work is bounded.
	 * But the tag before a wrong head of an object may itself be what is too much.
	 */
	if (d->error.offset > d->offset && d->state != ST_OBJECT_HEAD)
		from = (size_t)(d->error.offset - d->offset);
	d->stats.faults++;
	if (!d->blemished) {
		d->first_fault = d->error;
		d->first_fault.events_before = d->stats.events + d->queue.events;
	}
	d->status = NT_OK;
	d->blemished = true;
	from = from < bytes ? from : bytes;
	if (d->trace.format == 6) {
		d->stats.skipped_bytes += bytes - from;
		nt_between_blocks(d, "block header");
		nt_expect(d, ST_V6_BLOCK, 4);
		return NT_OK;
	}
	nt_between_blocks(d, "object");
	/* A wrong tag is what the fault is about, not the next object. */
	*used = find_object(d, p, d->state == ST_OBJECT ? 1 : from, bytes, &found);
	if (*used > bytes)
		*used = bytes;
	d->stats.skipped_bytes += *used - from;
	if (found)
		return resume(d);
	nt_expect(d, ST_SCAN, LONGEST_MARK);
	return NT_OK;
}
