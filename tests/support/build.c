/* SPDX-License-Identifier: MIT */
#include "tests/support/build.h"

#include <stdlib.h>
#include <string.h>

void build_done(struct build *b)
{
	free(b->bytes);
	*b = (struct build){ 0 };
}

void build_bytes(struct build *b, const void *p, size_t n)
{
	if (n > b->room - b->count) {
		b->room = (b->count + n) * 2;
		b->bytes = realloc(b->bytes, b->room);
		if (!b->bytes)
			abort();
	}
	if (n)
		memcpy(b->bytes + b->count, p, n);
	b->count += n;
}

static void little_endian(struct build *b, uint64_t v, size_t n)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(v >> (8 * i));
	build_bytes(b, bytes, n);
}

void build_u8(struct build *b, unsigned v)
{
	little_endian(b, v, 1);
}

void build_u16(struct build *b, unsigned v)
{
	little_endian(b, v, 2);
}

void build_u32(struct build *b, uint32_t v)
{
	little_endian(b, v, 4);
}

void build_u64(struct build *b, uint64_t v)
{
	little_endian(b, v, 8);
}

void build_varuint(struct build *b, uint64_t v)
{
	while (v >= 0x80) {
		build_u8(b, (unsigned)(v & 0x7f) | 0x80);
		v >>= 7;
	}
	build_u8(b, (unsigned)v);
}

void build_utf16(struct build *b, const char *text)
{
	for (; *text; text++)
		build_u16(b, (unsigned char)*text);
	build_u16(b, 0);
}

void build_str6(struct build *b, const char *text)
{
	build_varuint(b, strlen(text));
	build_bytes(b, text, strlen(text));
}

void build_append(struct build *b, struct build *from)
{
	build_bytes(b, from->bytes, from->count);
	build_done(from);
}

static void patch(struct build *b, size_t at, uint64_t v, size_t n)
{
	if (at + n > b->count)
		abort();
	for (size_t i = 0; i < n; i++)
		b->bytes[at + i] = (uint8_t)(v >> (8 * i));
}

void build_patch_u8(struct build *b, size_t at, unsigned v)
{
	patch(b, at, v, 1);
}

void build_patch_u16(struct build *b, size_t at, unsigned v)
{
	patch(b, at, v, 2);
}

void build_patch_u32(struct build *b, size_t at, uint32_t v)
{
	patch(b, at, v, 4);
}

void build_patch_u64(struct build *b, size_t at, uint64_t v)
{
	patch(b, at, v, 8);
}

static void systemtime(struct build *b)
{
	static const unsigned parts[8] = { 2024, 1, 1, 15, 12, 0, 0, 250 };

	for (size_t i = 0; i < 8; i++)
		build_u16(b, parts[i]);
	build_u64(b, 1000);
	build_u64(b, 1000000000);
	build_u32(b, 8);
}

static void object_head(struct build *b, unsigned format, const char *name, uint32_t version)
{
	unsigned tag = format == 3 ? 4 : 5;

	build_u8(b, tag);
	build_u8(b, tag);
	build_u8(b, 1);
	build_u32(b, version);
	build_u32(b, format == 3 ? 0 : version);
	build_u32(b, (uint32_t)strlen(name));
	build_bytes(b, name, strlen(name));
	build_u8(b, 6);
}

void build_begin(struct build *b, unsigned format)
{
	if (format == 4)
		build_bytes(b, "Nettrace", 8);
	build_u32(b, 20);
	build_bytes(b, "!FastSerialization.1", 20);
	object_head(b, format, "Trace", format);
	systemtime(b);
	build_u32(b, 42);
	build_u32(b, 4);
	build_u32(b, 1000000);
	build_u8(b, 6);
}

void build_object(struct build *b, unsigned format, const char *name, struct build *content)
{
	object_head(b, format, name, format == 3 ? 1 : 2);
	build_u32(b, (uint32_t)content->count);
	while (b->count % 4)
		build_u8(b, 0xee); /* readers must not care */
	build_append(b, content);
	build_u8(b, 6);
}

void build_end(struct build *b)
{
	build_u8(b, 1);
}

void build_block6(struct build *b, unsigned kind, struct build *content)
{
	build_u32(b, (uint32_t)content->count | kind << 24);
	build_append(b, content);
}

void build_begin6(struct build *b)
{
	struct build t = { 0 };

	build_bytes(b, "Nettrace", 8);
	build_u32(b, 0);
	build_u32(b, 6);
	build_u32(b, 0);
	build_trace6(&t);
	build_u32(&t, 1);
	build_str6(&t, "ProcessId");
	build_str6(&t, "42");
	build_block6(b, KIND6_TRACE, &t);
}

void build_trace6(struct build *b)
{
	systemtime(b);
}

void build_end6(struct build *b)
{
	build_u32(b, 0);
}

void build_rows_header(struct build *b, unsigned flags)
{
	build_u16(b, 20);
	build_u16(b, flags);
	build_u64(b, 0);
	build_u64(b, 0);
}

void build_row(struct build *b, bool v6, const struct build_row *r)
{
	bool label = v6 && r->label;

	build_u8(b,
		 0x80 | 0x01 | 0x02 | 0x04 | 0x08 | (label ? 0x10 : 0) | (r->unsorted ? 0 : 0x40));
	build_varuint(b, r->metadata_id);
	build_varuint(b, r->sequence_delta);
	build_varuint(b, r->capture);
	build_varuint(b, 0);
	build_varuint(b, r->thread);
	build_varuint(b, r->stack);
	build_varuint(b, r->ticks_delta);
	if (label)
		build_varuint(b, r->label);
	build_varuint(b, r->payload_bytes);
	build_bytes(b, r->payload, r->payload_bytes);
}

void build_definition_head(struct build *b, uint32_t id, const char *provider, uint32_t event_id,
			   const char *name)
{
	build_u32(b, id);
	build_utf16(b, provider);
	build_u32(b, event_id);
	build_utf16(b, name);
	build_u64(b, 1); /* keywords */
	build_u32(b, 0); /* version */
	build_u32(b, 4); /* level */
}

void build_definition_row(struct build *b, struct build *payload)
{
	const struct build_row r = {
		.sequence_delta = UINT32_MAX, /* as real writers: the number becomes 0 */
		.payload = payload->bytes,
		.payload_bytes = payload->count,
	};

	build_row(b, false, &r);
	build_done(payload);
}

void build_definition(struct build *b, uint32_t id, const char *provider, uint32_t event_id,
		      const char *name)
{
	struct build p = { 0 };

	build_definition_head(&p, id, provider, event_id, name);
	build_u32(&p, 0); /* fields */
	build_definition_row(b, &p);
}

void build_sequence_point(struct build *b, uint64_t ticks, const uint64_t *threads,
			  const uint32_t *sequences, uint32_t count)
{
	build_u64(b, ticks);
	build_u32(b, count);
	for (uint32_t i = 0; i < count; i++) {
		build_u64(b, threads[i]);
		build_u32(b, sequences[i]);
	}
}

void build_stack(struct build *b, uint64_t first, uint32_t count)
{
	build_u32(b, count * 8);
	for (uint32_t i = 0; i < count; i++)
		build_u64(b, first + i);
}

void build_sized_row(struct build *b, struct build *row)
{
	build_u16(b, (unsigned)row->count);
	build_append(b, row);
}

void build_definition6(struct build *b, uint32_t id, const char *provider, uint32_t event_id,
		       const char *name)
{
	struct build row = { 0 };

	build_varuint(&row, id);
	build_str6(&row, provider);
	build_varuint(&row, event_id);
	build_str6(&row, name);
	build_u16(&row, 0); /* fields */
	build_u16(&row, 0); /* options */
	build_sized_row(b, &row);
}

void build_thread6(struct build *b, uint64_t index, const char *name, uint64_t process_id,
		   uint64_t thread_id)
{
	struct build row = { 0 };

	build_varuint(&row, index);
	if (name) {
		build_u8(&row, 1);
		build_str6(&row, name);
	}
	build_u8(&row, 2);
	build_varuint(&row, process_id);
	build_u8(&row, 3);
	build_varuint(&row, thread_id);
	build_sized_row(b, &row);
}

void build_sequence_point6(struct build *b, uint64_t ticks, uint32_t flags, const uint64_t *threads,
			   const uint32_t *sequences, uint32_t count)
{
	build_u64(b, ticks);
	build_u32(b, flags);
	build_u32(b, count);
	for (uint32_t i = 0; i < count; i++) {
		build_varuint(b, threads[i]);
		build_varuint(b, sequences[i]);
	}
}

void build_hi(struct build *b, unsigned format)
{
	struct build rows = { 0 };

	if (format == 6) {
		build_u16(&rows, 0); /* header */
		build_definition6(&rows, 1, "Demo", 7, "Hi");
		build_block6(b, KIND6_METADATA, &rows);
		return;
	}
	build_rows_header(&rows, 1);
	build_definition(&rows, 1, "Demo", 7, "Hi");
	build_object(b, format, "MetadataBlock", &rows);
}

void build_rows(struct build *b, unsigned format, struct build *rows)
{
	struct build content = { 0 };

	build_rows_header(&content, 1);
	build_append(&content, rows);
	if (format == 6)
		build_block6(b, KIND6_EVENT, &content);
	else
		build_object(b, format, "EventBlock", &content);
}

void build_event(struct build *b, unsigned format, uint64_t ticks, uint8_t payload)
{
	const struct build_row r = {
		.metadata_id = 1,
		.capture = 42,
		.thread = 42,
		.ticks_delta = ticks,
		.payload = &payload,
		.payload_bytes = 1,
	};
	struct build rows = { 0 };

	build_row(&rows, format == 6, &r);
	build_rows(b, format, &rows);
}

struct build build_new(unsigned format)
{
	struct build b = { 0 };

	if (format == 6)
		build_begin6(&b);
	else
		build_begin(&b, format);
	return b;
}

void build_close(struct build *b, unsigned format)
{
	if (format == 6)
		build_end6(b);
	else
		build_end(b);
}

void build_repeat(struct build *b, uint8_t byte, size_t n)
{
	while (n--)
		build_u8(b, byte);
}
