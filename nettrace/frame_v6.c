/* SPDX-License-Identifier: MIT */
/* Stream header and block headers of version 6 (nettrace.md §1, §9). */
#include "nettrace/decoder.h"

enum { KIND_END = 0 };

static const struct {
	enum nt_block_kind kind;
	const char *name;
} v6_kinds[] = {
	[0] = { NT_BLOCK_UNKNOWN, "end of stream" },
	[1] = { NT_BLOCK_TRACE, "Trace" },
	[2] = { NT_BLOCK_EVENT, "EventBlock" },
	[3] = { NT_BLOCK_METADATA, "MetadataBlock" },
	[4] = { NT_BLOCK_SEQUENCE, "SequencePoint" },
	[5] = { NT_BLOCK_STACK, "StackBlock" },
	[6] = { NT_BLOCK_THREAD, "ThreadBlock" },
	[7] = { NT_BLOCK_REMOVE_THREAD, "RemoveThreadBlock" },
	[8] = { NT_BLOCK_LABEL, "LabelListBlock" },
};

static enum nt_status at_version(struct nt_decoder *d, const uint8_t *p)
{
	/* Minor versions only add what a reader may skip. */
	if (nt_load32(p) != 6)
		return nt_fail(d, NT_EVERSION, NULL,
			       "unsupported version of the trace format: not 3, 4, 5 or 6");
	d->trace.format = 6;
	d->trace.format_minor = nt_load32(p + 4);
	nt_expect(d, ST_V6_BLOCK, 4);
	return NT_OK;
}

static enum nt_status at_block(struct nt_decoder *d, const uint8_t *p)
{
	uint32_t header = nt_load32(p);
	size_t size = header & 0xffffff;
	uint32_t kind = header >> 24;

	d->block_name = "unknown block";
	d->kind = NT_BLOCK_UNKNOWN;
	if (kind < sizeof(v6_kinds) / sizeof(*v6_kinds)) {
		d->kind = v6_kinds[kind].kind;
		d->block_name = v6_kinds[kind].name;
	}
	nt_enter_block(d, p);
	if (!d->have_trace && d->kind != NT_BLOCK_TRACE)
		return nt_fail(d, NT_EFORMAT, p, "the first block is not a Trace");
	if (d->have_trace && d->kind == NT_BLOCK_TRACE)
		return nt_fail(d, NT_EFORMAT, p, "a second Trace block");
	if (size > d->limits.max_block)
		return nt_fail(d, NT_ELIMIT, p, "block is larger than the limit");
	d->block_bytes = size;
	d->block_pad = 0;
	if (kind == KIND_END)
		d->state = ST_DONE;
	else
		nt_expect(d, ST_V6_BODY, size);
	return NT_OK;
}

enum nt_status nt_block_v6(struct nt_decoder *d, struct nt_span b)
{
	switch (d->kind) {
	case NT_BLOCK_TRACE:
		return nt_trace_v6(d, b);
	case NT_BLOCK_EVENT:
		return nt_read_events(d, b);
	case NT_BLOCK_METADATA:
		return nt_read_metadata_v6(d, b);
	case NT_BLOCK_STACK:
		return nt_read_stacks(d, b);
	case NT_BLOCK_SEQUENCE:
		return nt_read_sequence_point(d, b);
	case NT_BLOCK_THREAD:
		return nt_read_threads(d, b);
	case NT_BLOCK_REMOVE_THREAD:
		return nt_read_removed_threads(d, b);
	case NT_BLOCK_LABEL:
		return nt_read_labels(d, b);
	default:
		d->stats.skipped_blocks++;
		return NT_OK;
	}
}

enum nt_status nt_step_v6(struct nt_decoder *d, const uint8_t *p)
{
	enum nt_status st;

	if (d->state == ST_V6_VERSION)
		return at_version(d, p);
	if (d->state == ST_V6_BLOCK)
		return at_block(d, p);
	nt_enter_block(d, p);
	st = nt_block_v6(d, nt_span_of(p, d->need));
	if (st == NT_OK) {
		d->stats.blocks++;
		nt_between_blocks(d, "block header");
		nt_expect(d, ST_V6_BLOCK, 4);
	}
	return st;
}
