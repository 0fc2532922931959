/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_GC_TICK_H
#define ANALYZERS_GC_TICK_H

/*
 * GCAllocationTick (runtime-events.md §4): it comes once for every 100 KB allocated, often as half
 * of all events, so it is read without the detour over named fields.
 *
 *    offset  bytes  field
 *         0      4  AllocationAmount
 *         4      4  AllocationKind
 *         8      2  ClrInstanceID
 *        10      8  AllocationAmount64         from version 2 on
 *        18    4/8  TypeID
 *         .      .  TypeName, UTF-16, ended by 0
 */

#include "nettrace/nettrace.h"
#include "nettrace/span.h"

struct gc_tick {
	uint64_t bytes; /* allocated since the tick before */
	uint32_t kind; /* 1: large objects */
	uint64_t type_id; /* 0 when there is none */
	struct nt_value type_name; /* NT_V_NONE when there is none; borrows the event's payload */
};

/* False when the event does not say how much; what else is cut off is 0 or not there. */
static inline bool gc_tick_read(const struct nt_event *ev, struct gc_tick *ret)
{
	enum { HAS_TYPE = 2 }; /* version */
	struct nt_span s = nt_span_of(ev->payload, ev->payload_bytes), name;
	uint64_t bytes;

	*ret = (struct gc_tick){ 0 };
	ret->bytes = nt_u32(&s);
	if (s.bad)
		return false;
	ret->kind = nt_u32(&s);
	if (ev->def->version < HAS_TYPE)
		return true;
	nt_u16(&s);
	bytes = nt_u64(&s);
	if (s.bad)
		return true;
	ret->bytes = bytes;
	ret->type_id = nt_pointer(&s, ev->trace->pointer_size);
	name = nt_take_utf16(&s);
	if (nt_left(&name))
		ret->type_name = (struct nt_value){
			.kind = NT_V_UTF16,
			.data = name.cur,
			.bytes = nt_left(&name),
		};
	return true;
}

#endif
