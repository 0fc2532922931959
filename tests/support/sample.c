/* SPDX-License-Identifier: MIT */
#include "tests/support/sample.h"

#include <string.h>

/* --- definitions --- */

static void field(struct build *p, uint32_t code, const char *name)
{
	build_u32(p, code);
	build_utf16(p, name);
}

/* An object in an object, then a number. */
static struct build counters_definition(void)
{
	struct build p = { 0 };

	build_definition_head(&p, 2, "System.Runtime", 2, "EventCounters");
	build_u32(&p, 2);
	build_u32(&p, 1);
	build_u32(&p, 2);
	field(&p, 18, "Name");
	build_u32(&p, 1);
	build_u32(&p, 1);
	field(&p, 14, "Mean");
	build_utf16(&p, "Values");
	build_utf16(&p, "Payload");
	field(&p, 9, "n");
	return p;
}

static void field_v2(struct build *to, const char *name, struct build *type)
{
	struct build f = { 0 };

	build_utf16(&f, name);
	build_append(&f, type);
	build_u32(to, (uint32_t)f.count + 4);
	build_append(to, &f);
}

/* An opcode, a tag that nobody knows, an array of objects. */
static struct build arguments_definition(void)
{
	struct build p = { 0 }, type = { 0 }, inner = { 0 }, params = { 0 };

	build_definition_head(&p, 3, "Microsoft-Diagnostics-DiagnosticSource", 1, "Event");
	build_u32(&p, 0);
	build_u32(&p, 1);
	build_bytes(&p, "\x01\x0b", 2);
	build_u32(&p, 3);
	build_bytes(&p, "\x63xyz", 4);
	build_u32(&params, 1);
	build_u32(&type, 19);
	build_u32(&type, 1);
	build_u32(&type, 1);
	build_u32(&inner, 18);
	field_v2(&type, "Key", &inner);
	field_v2(&params, "Arguments", &type);
	build_u32(&p, (uint32_t)params.count);
	build_u8(&p, 2);
	build_append(&p, &params);
	return p;
}

static struct build sampler_definition(void)
{
	struct build p = { 0 };

	build_definition_head(&p, 4, "Microsoft-DotNETCore-SampleProfiler", 0, "");
	build_u32(&p, 0);
	return p;
}

static void definitions_v4(struct build *b)
{
	struct build rows = { 0 };
	struct build payloads[] = {
		counters_definition(),
		arguments_definition(),
		sampler_definition(),
	};

	build_hi(b, 4);
	build_rows_header(&rows, 1);
	for (size_t i = 0; i < sizeof(payloads) / sizeof(*payloads); i++)
		build_definition_row(&rows, &payloads[i]);
	build_object(b, 4, "MetadataBlock", &rows);
}

/* --- blocks of V4 and V6 --- */

static void put(struct build *b, unsigned format, const char *name, unsigned kind,
		struct build *content)
{
	if (format == 6)
		build_block6(b, kind, content);
	else
		build_object(b, format, name, content);
}

static void stacks(struct build *b, unsigned format)
{
	struct build content = { 0 };

	build_u32(&content, 1);
	build_u32(&content, 3);
	build_stack(&content, 0, 0);
	build_stack(&content, 0x7f0000001000, 3);
	build_u32(&content, 13); /* an address and a half */
	build_repeat(&content, 0x22, 13);
	put(b, format, "StackBlock", KIND6_STACK, &content);
}

static const struct build_row sample_rows[] = {
	{ .metadata_id = 1,
	  .capture = 5,
	  .thread = 5,
	  .stack = 2,
	  .ticks_delta = 2000,
	  .payload = "first",
	  .payload_bytes = 5,
	  .label = 1 },
	{ .metadata_id = 2,
	  .capture = 5,
	  .thread = 6,
	  .stack = 1,
	  .ticks_delta = 900,
	  .unsorted = true,
	  .payload = "second one",
	  .payload_bytes = 10,
	  .label = 2 },
	{ .metadata_id = 3,
	  .sequence_delta = 3,
	  .capture = 6,
	  .thread = 6,
	  .stack = 3,
	  .ticks_delta = (uint64_t)-500,
	  .label = 3 },
	{ .metadata_id = 4,
	  .capture = 6,
	  .thread = 7,
	  .stack = 77,
	  .ticks_delta = 100,
	  .unsorted = true,
	  .payload = "abcd",
	  .payload_bytes = 4,
	  .label = 99 },
	{ .metadata_id = 55, .capture = 7, .thread = 7, .ticks_delta = 1000, .label = 4 },
};

static void rows(struct build *b, unsigned format)
{
	struct build content = { 0 };

	for (size_t i = 0; i < sizeof(sample_rows) / sizeof(*sample_rows); i++)
		build_row(&content, format == 6, &sample_rows[i]);
	/* A row that says almost nothing, and one with activity ids or their place in V6. */
	build_u8(&content, 0x81);
	build_bytes(&content, "\x01\x05\x00", 3);
	build_u8(&content, 0x30);
	build_u8(&content, 7);
	build_repeat(&content, 0, format == 6 ? 1 : 32);
	build_rows(b, format, &content);
}

static void plain_rows(struct build *b, unsigned format)
{
	struct build content = { 0 };

	build_rows_header(&content, 0);
	for (uint32_t i = 0; i < 3; i++) {
		build_u32(&content, (format == 6 ? 48 : 76) + 6 + (i & 2));
		build_u32(&content, 1 | (i & 1) << 31);
		build_u32(&content, 20 + i);
		build_u64(&content, 5);
		build_u64(&content, 6);
		build_u32(&content, UINT32_MAX);
		build_u32(&content, 2);
		build_u64(&content, 5000 + i);
		build_repeat(&content, 0, format == 6 ? 4 : 32);
		build_u32(&content, 6);
		build_bytes(&content, "plain!!!", 6 + (i & 2));
	}
	put(b, format, "EventBlock", KIND6_EVENT, &content);
}

static void unknown_block(struct build *b, unsigned format)
{
	struct build content = { 0 };

	build_bytes(&content, "\x05\x05\x01 what a later version has", 27);
	put(b, format, "LaterBlock", 200, &content);
}

static void empty_rows(struct build *b, unsigned format)
{
	struct build content = { 0 };

	build_rows(b, format, &content);
}

static void point(struct build *b, unsigned format, uint64_t ticks, uint32_t flags)
{
	static const uint64_t threads[] = { 5, 6, 99 };
	static const uint32_t numbers[] = { 4, 100, 3 };
	struct build content = { 0 };

	if (format == 6)
		build_sequence_point6(&content, ticks, flags, threads, numbers, 3);
	else
		build_sequence_point(&content, ticks, threads, numbers, 3);
	put(b, format, "SPBlock", KIND6_SEQUENCE, &content);
}

/* --- V6 --- */

static void threads_v6(struct build *b)
{
	struct build content = { 0 }, row = { 0 };

	build_thread6(&content, 5, "main", 42, 105);
	build_thread6(&content, 6, "worker", 42, 106);
	build_varuint(&row, 8);
	build_u8(&row, 4);
	build_str6(&row, "key");
	build_str6(&row, "value");
	build_sized_row(&content, &row);
	build_block6(b, KIND6_THREAD, &content);
}

static void labels_v6(struct build *b)
{
	struct build c = { 0 };

	build_u32(&c, 1);
	build_u32(&c, 4);
	build_u8(&c, 0x85);
	build_str6(&c, "k");
	build_str6(&c, "v");
	for (unsigned kind = 1; kind <= 3; kind++) {
		build_u8(&c, kind);
		build_repeat(&c, (uint8_t)(0x10 * kind), 16);
	}
	build_u8(&c, 0x84);
	build_u64(&c, 0x1122334455667788);
	build_u8(&c, 6);
	build_str6(&c, "number");
	build_varuint(&c, 301);
	build_bytes(&c, "\x07\x02\x09\x05\x0a\x01\x88", 7);
	build_u64(&c, 0x8000);
	build_u8(&c, 0x87);
	build_u8(&c, 1);
	build_block6(b, KIND6_LABEL, &c);
}

static void field_v6(struct build *to, const char *name, const char *type, size_t type_bytes)
{
	struct build f = { 0 };

	build_str6(&f, name);
	build_bytes(&f, type, type_bytes);
	build_u16(to, (unsigned)f.count);
	build_append(to, &f);
}

static void definitions_v6(struct build *b)
{
	struct build content = { 0 }, row = { 0 };

	build_u16(&content, 3);
	build_bytes(&content, "new", 3);
	build_definition6(&content, 1, "Demo", 7, "Hi");
	build_varuint(&row, 2);
	build_str6(&row, "Universal.System");
	build_varuint(&row, 3);
	build_str6(&row, "ProcessMapping");
	build_u16(&row, 4);
	field_v6(&row, "Id", "\x15", 1);
	field_v6(&row, "FileName", "\x17", 1);
	field_v6(&row, "Bytes", "\x16\x06\x04\x00", 4);
	field_v6(&row, "Where", "\x18\x04", 2);
	build_u16(&row, 17 + 2 + 2 + 9);
	build_u8(&row, 7);
	build_repeat(&row, 0xab, 16);
	build_bytes(&row, "\x01\x02\x09\x01\x03", 5);
	build_u64(&row, 7);
	build_sized_row(&content, &row);
	build_definition6(&content, 300, "Demo", 9, "");
	build_block6(b, KIND6_METADATA, &content);
}

static void remove_v6(struct build *b)
{
	struct build content = { 0 };

	build_varuint(&content, 6);
	build_varuint(&content, 40);
	build_block6(b, KIND6_REMOVE_THREAD, &content);
}

static struct build sample_v6(void)
{
	struct build b = build_new(6);

	definitions_v6(&b);
	threads_v6(&b);
	for (size_t epoch = 0; epoch < 2; epoch++) {
		stacks(&b, 6);
		labels_v6(&b);
		rows(&b, 6);
		unknown_block(&b, 6);
		remove_v6(&b);
		plain_rows(&b, 6);
		point(&b, 6, 9000, 3);
		definitions_v6(&b);
		threads_v6(&b);
	}
	empty_rows(&b, 6);
	point(&b, 6, UINT64_MAX, 0);
	build_end6(&b);
	return b;
}

/* --- V3 --- */

static void record_v3(struct build *to, uint32_t metadata_id, struct build *payload,
		      uint32_t frames)
{
	size_t bytes = 56 + payload->count + frames * 8;
	size_t padding = (0 - bytes) & 3;

	build_u32(to, (uint32_t)(bytes + padding));
	build_u32(to, metadata_id);
	build_u32(to, 105);
	build_u64(to, 2000 + to->count);
	build_repeat(to, 0x31, 32);
	build_u32(to, (uint32_t)payload->count);
	build_append(to, payload);
	build_u32(to, frames * 8);
	build_repeat(to, 0x44, frames * 8);
	build_repeat(to, 0xee, padding);
}

static struct build sample_v3(void)
{
	struct build b = build_new(3), content = { 0 }, payload = { 0 };

	payload = counters_definition();
	record_v3(&content, 0, &payload, 0);
	payload = sampler_definition();
	record_v3(&content, 0, &payload, 0);
	for (uint32_t i = 0; i < 5; i++) {
		build_bytes(&payload, "payload", i);
		record_v3(&content, i == 3 ? 9 : 2 + 2 * (i & 1), &payload, i);
	}
	build_object(&b, 3, "EventBlock", &content);
	unknown_block(&b, 3);
	build_object(&b, 3, "EventBlock", &content);
	record_v3(&content, 4, &payload, 2);
	build_object(&b, 3, "EventBlock", &content);
	build_end(&b);
	return b;
}

/* --- V4 --- */

static struct build sample_v4(void)
{
	struct build b = build_new(4);

	definitions_v4(&b);
	for (size_t epoch = 0; epoch < 2; epoch++) {
		stacks(&b, 4);
		rows(&b, 4);
		unknown_block(&b, 4);
		plain_rows(&b, 4);
		point(&b, 4, 9000, 0);
	}
	empty_rows(&b, 4);
	point(&b, 4, 9001, 0);
	build_end(&b);
	return b;
}

struct build sample_stream(unsigned format)
{
	if (format == 3)
		return sample_v3();
	return format == 6 ? sample_v6() : sample_v4();
}
