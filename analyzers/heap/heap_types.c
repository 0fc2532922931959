/* SPDX-License-Identifier: MIT */
#include "analyzers/heap/heap_types.h"

#include "analyzers/grow.h"
#include "nettrace/span.h"

enum {
	MAX_TYPES = 1 << 20,
	MAX_NAME_BYTES = 128 << 20,
	NAME_BYTES = 8192, /* of one; a longer one is cut */
};

enum nt_status an_heap_types_init(struct an_heap_types *t, const struct nt_alloc *alloc)
{
	*t = (struct an_heap_types){ .alloc = alloc };
	nt_idmap_init(&t->by_id, alloc);
	nt_arena_init(&t->names, alloc, MAX_NAME_BYTES);
	t->types = an_mem_grow(alloc, NULL, &t->cap, 1, sizeof(*t->types));
	if (!t->types)
		return NT_ENOMEM;
	t->count = 1;
	return NT_OK;
}

void an_heap_types_done(struct an_heap_types *t)
{
	an_mem_free(t->alloc, t->types);
	t->types = NULL;
	nt_idmap_done(&t->by_id);
	nt_arena_done(&t->names);
}

enum nt_status an_heap_types_find(struct an_heap_types *t, uint64_t id, uint32_t *ret)
{
	struct an_heap_type *types;
	enum nt_status st;

	*ret = nt_idmap_get(&t->by_id, id);
	if (*ret != NT_IDMAP_NONE)
		return NT_OK;
	*ret = 0;
	if (t->count >= MAX_TYPES) {
		t->beyond++;
		return NT_OK;
	}
	types = an_mem_grow(t->alloc, t->types, &t->cap, t->count + 1, sizeof(*types));
	if (!types)
		return NT_ENOMEM;
	t->types = types;
	st = nt_idmap_put(&t->by_id, id, (uint32_t)t->count);
	if (st < 0)
		return st;
	types[t->count] = (struct an_heap_type){ .id = id };
	*ret = (uint32_t)t->count++;
	return NT_OK;
}

/* UTF-16 up to its terminator, or to the end of a cut payload. */
static size_t take_text(struct nt_span *s, const uint8_t **ret)
{
	size_t n = 0;

	*ret = s->cur;
	while (nt_left(s) >= 2) {
		if (!nt_u16(s))
			return n;
		n += 2;
	}
	return n;
}

static enum nt_status set_name(struct an_heap_types *t, struct an_heap_type *type,
			       const uint8_t *text, size_t len)
{
	char buf[NAME_BYTES];
	size_t n = nt_utf16_to_utf8(text, len, buf, sizeof(buf));

	if (type->name && (type->name[0] || !n))
		return NT_OK; /* told before; a method table is not used for another type */
	type->name = n ? nt_arena_text(&t->names, buf, n) : "";
	if (type->name)
		return NT_OK;
	if (!t->names.full)
		return NT_ENOMEM;
	t->beyond++;
	return NT_OK;
}

static enum nt_status take_type(struct an_heap_types *t, struct nt_span *s)
{
	struct an_heap_type row = { 0 }, *type;
	const uint8_t *text;
	size_t len;
	uint32_t at, parameters;
	enum nt_status st;

	row.id = nt_u64(s);
	row.module = nt_u64(s);
	row.token = nt_u32(s);
	row.flags = nt_u32(s);
	nt_u8(s); /* CorElementType: told by the flags, too */
	len = take_text(s, &text);
	parameters = nt_u32(s);
	for (uint32_t i = 0; i < parameters && !s->bad; i++) {
		uint64_t parameter = nt_u64(s);

		row.parameter = i == 0 ? parameter : row.parameter;
	}
	if (s->bad)
		return NT_OK;
	st = an_heap_types_find(t, row.id, &at);
	if (st < 0 || at == 0)
		return st;
	type = &t->types[at];
	row.name = type->name;
	*type = row;
	return set_name(t, type, text, len);
}

enum nt_status an_heap_types_event(struct an_heap_types *t, const struct nt_event *ev)
{
	struct nt_span s = nt_span_of(ev->payload, ev->payload_bytes);
	uint32_t count = nt_u32(&s);
	enum nt_status st = NT_OK;

	nt_u16(&s);
	for (uint32_t i = 0; i < count && !s.bad && st == NT_OK; i++)
		st = take_type(t, &s);
	return st;
}
