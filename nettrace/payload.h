/* SPDX-License-Identifier: MIT */
#ifndef NETTRACE_PAYLOAD_H
#define NETTRACE_PAYLOAD_H

/*
 * What the readers of payloads share.
 *
 * payload.c reads the top level of an event in one straight loop; payload_walk.c goes through
 * nested fields with a stack of its own, to visit them or to know where they end.  Both take every
 * scalar from nt_read_scalar().
 *
 * The bytes are hostile: a payload may be shorter than its fields, name counts it does not hold,
 * or be described by fields that take no bytes at all.  So a read goes forward only, never past
 * the payload, and steps that take no bytes are counted (free_steps).
 */

#include "nettrace/nettrace.h"
#include "nettrace/span.h"

enum {
	/* Counts of NT_T_COUNTED_* must be among the first fields of their object. */
	NT_COUNT_FIELDS = 24,
	/* NT_T_PAD, count: none where pointers have 4 bytes, 4 bytes where they have 8. */
	NT_PAD_POINTER = INT32_MAX,
	/* NT_T_PAD, count: what is left of a record of an array that ends with the payload. */
	NT_PAD_REST = INT32_MAX - 1,
	/* How deep objects and arrays may be nested. */
	NT_MAX_NESTING = 32,
};

/* How to take fields that are not what the stream says they are (nettrace.md §4.4). */
struct nt_reading {
	bool bool8; /* NT_T_BOOL32 has 1 byte */
	size_t widen_from; /* integers of 1 or 2 bytes have 4 from this top-level field on */
};

struct nt_reader {
	struct nt_span s; /* what is still to be read */
	const uint8_t *payload;
	size_t payload_bytes;
	size_t pointer_size;
	size_t located_end; /* end of the farthest data that a RelLoc or DataLoc points to */
	size_t free_steps; /* steps without bytes that are still allowed */
	bool cut; /* a field was not there in full; nothing can be read behind it */
	bool bool8;
};

void nt_reader_init(struct nt_reader *r, const struct nt_event *ev, bool bool8);

/* The bytes of a type whose size does not depend on the payload; 0 for all others. */
size_t nt_plain_size(const struct nt_reader *r, enum nt_type type);

/* Arrays of characters are strings. */
bool nt_is_text(const struct nt_field *f);

/* True for every type that nt_read_scalar() cannot read: objects, arrays of anything else. */
bool nt_is_nested(const struct nt_field *f);

/*
 * Reads one field that has no fields of its own; counts are those of its siblings.  Sets r->cut
 * when it is not there in full; v then is what there is of it, or NT_V_NONE.
 */
void nt_read_scalar(struct nt_reader *r, const struct nt_field *f, const uint64_t *counts,
		    struct nt_value *v);

/* Remembers the number in sibling i for the counted fields that follow. */
static inline void nt_note_count(uint64_t *counts, size_t i, const struct nt_value *v)
{
	if (i < NT_COUNT_FIELDS)
		counts[i] = v->kind == NT_V_UINT ? v->u : 0;
}

/* The number of elements of an array, or of bytes.  False, and r->cut, when it is not there. */
bool nt_read_count(struct nt_reader *r, const struct nt_field *f, const uint64_t *counts,
		   uint64_t *ret);

/* One step without bytes.  False, and r->cut, when there have been too many. */
bool nt_free_step(struct nt_reader *r);

/*
 * The data a RelLoc or DataLoc points to.  False when it lies outside of the payload or does not
 * consist of whole elements.  Sets r->cut when the field itself is not there.
 */
bool nt_locate(struct nt_reader *r, const struct nt_field *f, struct nt_value *v);

/* Steps over a nested field and says what it was. */
void nt_skip_nested(struct nt_reader *r, const struct nt_field *f, const uint64_t *counts,
		    struct nt_value *v);

/* For nt_payload_visit(): all fields, with the callbacks. */
enum nt_status nt_walk_event(struct nt_reader *r, const struct nt_event_def *def,
			     const struct nt_reading *how, const struct nt_visitor *visitor,
			     void *ctx);

/* An integer that the stream announced with 1 or 2 bytes and that has 4. */
bool nt_is_small_int(const struct nt_field *f);
void nt_read_widened(struct nt_reader *r, const struct nt_field *f, struct nt_value *v);

#endif
