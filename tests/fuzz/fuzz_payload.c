/* SPDX-License-Identifier: MIT */

/*
 * The payload reader on arbitrary field lists and bytes.  The first byte picks where the fields
 * come from: the table of runtime events (then provider, id, version follow), or a list made from
 * the input itself, which may nest.
 */

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "nettrace/arena.h"
#include "nettrace/runtime_events.h"
#include "tests/support/probe.h"

enum { MAX_FIELDS = 64, MAX_DEPTH = 4 };

struct reader {
	const uint8_t *cur, *end;
	size_t made;
};

static uint8_t next(struct reader *r)
{
	return r->cur < r->end ? *r->cur++ : 0;
}

/* An array of fields; depth bounds the recursion. */
static const struct nt_field *make_fields(struct nt_arena *arena, struct reader *r, size_t count,
					  unsigned depth)
{
	static const enum nt_type nested[] = {
		NT_T_OBJECT, NT_T_ARRAY,	 NT_T_FIXED_ARRAY,
		NT_T_RELLOC, NT_T_COUNTED_ARRAY, NT_T_DATALOC,
	};
	struct nt_field *f = nt_arena_array(arena, count ? count : 1, sizeof(*f));

	for (size_t i = 0; f && i < count; i++) {
		uint8_t type = next(r);

		f[i].name = "f";
		f[i].type = type;
		f[i].count =
			type == NT_T_FIXED_ARRAY ? next(r) * 257u : (uint32_t)(next(r) % count);
		for (size_t k = 0; k < sizeof(nested) / sizeof(*nested); k++) {
			size_t children = type == NT_T_OBJECT ? next(r) % 4 : 1;

			if (type != nested[k])
				continue;
			if (depth == MAX_DEPTH || r->made + children > MAX_FIELDS) {
				f[i].type = NT_T_U8;
				break;
			}
			r->made += children;
			f[i].children = make_fields(arena, r, children, depth + 1);
			f[i].child_count = children;
			break;
		}
	}
	return f;
}

static void define(struct nt_arena *arena, struct reader *r, struct nt_event_def *def)
{
	bool known;

	if (next(r) & 1) {
		def->provider_id = next(r) % NT_PROV_COUNT;
		def->event_id = next(r);
		def->version = next(r) % 6;
		if (nt_table_layout(arena, def->provider_id, def->event_id, def->version,
				    &def->fields, &def->field_count, &known) != NT_OK)
			abort();
		def->layout = def->field_count ? NT_LAYOUT_TABLE : NT_LAYOUT_NONE;
	} else {
		def->field_count = next(r) % 16;
		r->made = def->field_count;
		def->fields = make_fields(arena, r, def->field_count, 0);
		def->layout = NT_LAYOUT_METADATA;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct nt_labels no_labels;
	const struct nt_trace_info trace = { .pointer_size = size % 2 ? 8 : 4 };
	struct reader r = { data, data + size, 0 };
	struct nt_event_def def = { .provider = "", .name = "event" };
	struct nt_event ev = { .def = &def, .trace = &trace, .labels = &no_labels };
	struct nt_arena arena;
	struct probe p = { 0 };
	uint8_t *payload;

	nt_arena_init(&arena, &nt_alloc_default, 1 << 20);
	define(&arena, &r, &def);
	ev.payload_bytes = (size_t)(r.end - r.cur);
	payload = malloc(ev.payload_bytes ? ev.payload_bytes : 1);
	if (!payload || !def.fields)
		def.field_count = 0;
	if (payload) {
		memcpy(payload, r.cur, ev.payload_bytes);
		ev.payload = payload;
		if (probe_sink.event(&p, &ev) != NT_OK)
			abort();
	}
	free(payload);
	nt_arena_done(&arena);
	return 0;
}
