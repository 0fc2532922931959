/* SPDX-License-Identifier: MIT */
/*
 * Stream header and tagged objects of versions 3, 4 and "5" (nettrace.md §1, §2), and the first
 * bytes of every stream, which tell the version.
 */
#include "nettrace/decoder.h"

#include <string.h>

enum {
	TAG_NULL = 1,
	TAG_BEGIN_V3 = 4, /* BeginObject */
	TAG_BEGIN_V4 = 5, /* BeginPrivateObject */
	TAG_END = 6,
	MAX_TYPE_NAME = 38,
	MAX_TRACE_VERSION = 4,
	MAX_BLOCK_VERSION = 2,
	TRACE_BYTES = 48,
};

static const char fs_name[] = "!FastSerialization.1";

static enum nt_status at_magic(struct nt_decoder *d, const uint8_t *p)
{
	if (!memcmp(p, "Nettrace", 8)) {
		nt_expect(d, ST_MAGIC_WORD, 4);
		return NT_OK;
	}
	if (!memcmp(p, "\x14\0\0\0!Fas", 8)) {
		d->trace.format = 3;
		nt_expect(d, ST_PERF_NAME, 16);
		return NT_OK;
	}
	return nt_fail(d, NT_EFORMAT, NULL, "not a trace: neither Nettrace nor netperf header");
}

static enum nt_status at_magic_word(struct nt_decoder *d, const uint8_t *p)
{
	uint32_t word = nt_load32(p);

	if (word == 0) {
		nt_expect(d, ST_V6_VERSION, 8);
		return NT_OK;
	}
	if (word != 20)
		return nt_fail(d, NT_EFORMAT, NULL, "stream header has a wrong length");
	d->trace.format = 4;
	nt_expect(d, ST_FS_NAME, 20);
	return NT_OK;
}

static enum nt_status at_fs_name(struct nt_decoder *d, const uint8_t *p)
{
	const char *want = d->state == ST_FS_NAME ? fs_name : fs_name + 4;

	if (memcmp(p, want, strlen(want)) != 0)
		return nt_fail(d, NT_EFORMAT, NULL, "stream header lacks !FastSerialization.1");
	nt_expect(d, ST_OBJECT, 1);
	return NT_OK;
}

static uint8_t begin_tag(const struct nt_decoder *d)
{
	return d->trace.format == 3 ? TAG_BEGIN_V3 : TAG_BEGIN_V4;
}

static enum nt_status at_object(struct nt_decoder *d, const uint8_t *p)
{
	d->block_name = "object";
	d->kind = NT_BLOCK_UNKNOWN;
	d->row = 0;
	if (*p == TAG_NULL) {
		if (!d->have_trace)
			return nt_fail(d, NT_EFORMAT, NULL, "the stream ends without a Trace");
		d->state = ST_DONE;
		return NT_OK;
	}
	if (*p != begin_tag(d))
		return nt_fail(d, NT_EFORMAT, NULL, "object begins with a wrong tag");
	nt_expect(d, ST_OBJECT_HEAD, 14);
	return NT_OK;
}

static enum nt_status at_object_head(struct nt_decoder *d, const uint8_t *p)
{
	int32_t name_bytes = (int32_t)nt_load32(p + 10);

	nt_enter_block(d, p);
	if (p[0] != begin_tag(d))
		return nt_fail(d, NT_EFORMAT, p, "type of an object begins with a wrong tag");
	if (p[1] != TAG_NULL)
		return nt_fail(d, NT_EFORMAT, p + 1, "type of an object has a type of its own");
	if (name_bytes < 0 || name_bytes > MAX_TYPE_NAME)
		return nt_fail(d, NT_EFORMAT, p + 10, "type name has an impossible length");
	d->object_version = nt_load32(p + 2);
	d->name_bytes = (size_t)name_bytes;
	/* The smallest reader that can read it; V3 writes 0, V4 what the object's version is. */
	d->object_reader = nt_load32(p + 6);
	if (d->object_reader > MAX_TRACE_VERSION)
		return nt_fail(d, NT_EVERSION, p + 6, "object asks for a newer reader");
	nt_expect(d, ST_OBJECT_NAME, d->name_bytes + 1);
	return NT_OK;
}

static const struct {
	const char *name;
	enum nt_block_kind kind;
	unsigned min_format;
} v4_types[] = {
	{ "Trace", NT_BLOCK_TRACE, 3 },
	{ "EventBlock", NT_BLOCK_EVENT, 3 },
	{ "MetadataBlock", NT_BLOCK_METADATA, 4 },
	{ "StackBlock", NT_BLOCK_STACK, 4 },
	{ "SPBlock", NT_BLOCK_SEQUENCE, 4 },
};

static enum nt_status check_trace_version(struct nt_decoder *d, const uint8_t *p)
{
	if (d->object_version != d->trace.format)
		return nt_fail(d, NT_EVERSION, p,
			       "unsupported version of the trace format: not 3, 4, 5 or 6");
	if (d->have_trace)
		return nt_fail(d, NT_EFORMAT, p, "a second Trace object");
	nt_expect(d, ST_TRACE_BODY, TRACE_BYTES);
	return NT_OK;
}

static enum nt_status at_object_name(struct nt_decoder *d, const uint8_t *p)
{
	static const char v2_name[] = "Microsoft.DotNet.Runtime.EventPipeFile";

	nt_enter_block(d, p);
	if (d->name_bytes == strlen(v2_name) && !memcmp(p, v2_name, d->name_bytes))
		return nt_fail(d, NT_EVERSION, p,
			       "unsupported version 1 or 2 of the trace format (.NET Core 2.0)");
	if (p[d->name_bytes] != TAG_END)
		return nt_fail(d, NT_EFORMAT, p + d->name_bytes, "type of an object has no end");
	d->kind = NT_BLOCK_UNKNOWN;
	d->block_name = "unknown block";
	for (size_t i = 0; i < sizeof(v4_types) / sizeof(*v4_types); i++) {
		const char *name = v4_types[i].name;

		if (d->trace.format < v4_types[i].min_format || strlen(name) != d->name_bytes ||
		    memcmp(p, name, d->name_bytes) != 0)
			continue;
		d->kind = v4_types[i].kind;
		d->block_name = name;
	}
	if (d->kind == NT_BLOCK_TRACE)
		return check_trace_version(d, p);
	if (!d->have_trace)
		return nt_fail(d, NT_EFORMAT, p, "the first object is not a Trace");
	if (d->kind != NT_BLOCK_UNKNOWN && d->object_version > MAX_BLOCK_VERSION)
		return nt_fail(d, NT_EVERSION, p, "unsupported version of a block");
	if (d->kind != NT_BLOCK_UNKNOWN && d->object_reader > MAX_BLOCK_VERSION)
		return nt_fail(d, NT_EVERSION, p, "block asks for a newer reader");
	nt_expect(d, ST_BLOCK_SIZE, 4);
	return NT_OK;
}

static enum nt_status at_block_size(struct nt_decoder *d, const uint8_t *p)
{
	int32_t size = (int32_t)nt_load32(p);
	size_t need;

	nt_enter_block(d, p);
	if (size < 0)
		return nt_fail(d, NT_EFORMAT, p, "block has a negative size");
	if ((size_t)size > d->limits.max_block)
		return nt_fail(d, NT_ELIMIT, p, "block is larger than the limit");
	d->block_bytes = (size_t)size;
	/* Content starts at a multiple of 4, counted from the first byte of the stream. */
	d->block_pad = (size_t)(-(d->offset + 4) & 3);
	need = d->block_pad + d->block_bytes;
	nt_expect(d, ST_BLOCK_BODY, need);
	return NT_OK;
}

enum nt_status nt_block_v4(struct nt_decoder *d, struct nt_span b)
{
	switch (d->kind) {
	case NT_BLOCK_EVENT:
		return d->trace.format == 3 ? nt_read_events_v3(d, b) : nt_read_events(d, b);
	case NT_BLOCK_METADATA:
		return nt_read_events(d, b);
	case NT_BLOCK_STACK:
		return nt_read_stacks(d, b);
	case NT_BLOCK_SEQUENCE:
		return nt_read_sequence_point(d, b);
	default:
		d->stats.skipped_blocks++;
		return NT_OK;
	}
}

/* Hands a block that was read on as it is. */
static enum nt_status show_block(struct nt_decoder *d, struct nt_span b)
{
	const struct nt_raw_block block = {
		.name = d->block_name,
		.body = b.cur,
		.bytes = nt_left(&b),
		.offset = d->block_offset + (uint64_t)(b.cur - d->block_start),
	};

	nt_expect(d, ST_OBJECT_END, 1);
	return d->sink->block ? d->sink->block(d->ctx, &block) : NT_OK;
}

static enum nt_status at_block_body(struct nt_decoder *d, const uint8_t *p)
{
	struct nt_span b = nt_span_of(p, d->need);
	enum nt_status st;

	nt_enter_block(d, p);
	nt_take(&b, d->block_pad);
	st = nt_block_v4(d, b);
	return st == NT_OK ? show_block(d, b) : st;
}

static enum nt_status at_object_end(struct nt_decoder *d, const uint8_t *p)
{
	if (*p != TAG_END)
		return nt_fail(d, NT_EFORMAT, NULL, "block has no end tag");
	d->stats.blocks++;
	nt_between_blocks(d, "object");
	nt_expect(d, ST_OBJECT, 1);
	return NT_OK;
}

static enum nt_status at_trace_body(struct nt_decoder *d, const uint8_t *p)
{
	struct nt_span b = nt_span_of(p, TRACE_BYTES);
	enum nt_status st;

	nt_enter_block(d, p);
	st = nt_trace_v4(d, b);
	return st == NT_OK ? show_block(d, b) : st;
}

enum nt_status nt_step_v4(struct nt_decoder *d, const uint8_t *p)
{
	switch (d->state) {
	case ST_MAGIC:
		return at_magic(d, p);
	case ST_MAGIC_WORD:
		return at_magic_word(d, p);
	case ST_FS_NAME:
	case ST_PERF_NAME:
		return at_fs_name(d, p);
	case ST_OBJECT:
		return at_object(d, p);
	case ST_OBJECT_HEAD:
		return at_object_head(d, p);
	case ST_OBJECT_NAME:
		return at_object_name(d, p);
	case ST_TRACE_BODY:
		return at_trace_body(d, p);
	case ST_BLOCK_SIZE:
		return at_block_size(d, p);
	case ST_BLOCK_BODY:
		return at_block_body(d, p);
	default:
		return at_object_end(d, p);
	}
}
