/* SPDX-License-Identifier: MIT */
/* Label lists of version 6 (nettrace.md §9). */
#include "nettrace/decoder.h"

#include <string.h>

enum { LAST_LABEL = 0x80, MAX_PAIRS = 256 };

enum label_kind {
	LABEL_ACTIVITY = 1,
	LABEL_RELATED = 2,
	LABEL_TRACE = 3,
	LABEL_SPAN = 4,
	LABEL_TEXT = 5,
	LABEL_NUMBER = 6,
	LABEL_OPCODE = 7,
	LABEL_KEYWORDS = 8,
	LABEL_LEVEL = 9,
	LABEL_VERSION = 10,
};

struct label_reader {
	struct nt_decoder *d;
	struct nt_label_list list;
	struct nt_label pairs[MAX_PAIRS];
	size_t pair_count;
	enum nt_status status;
};

static const char *copy_text(struct label_reader *r, struct nt_span *b)
{
	size_t bytes;
	const uint8_t *p = nt_str6(b, &bytes);
	const char *text;

	if (!p)
		return NULL;
	text = nt_arena_text(&r->d->epoch_arena, (const char *)p, bytes);
	if (!text)
		r->status = nt_fail_arena(r->d, &r->d->epoch_arena,
					  "labels between two sequence points exceed the limit");
	return text;
}

static void read_pair(struct label_reader *r, struct nt_span *b, bool number)
{
	struct nt_label label = { .key = copy_text(r, b) };

	if (number)
		label.number = nt_varint64(b);
	else
		label.text = copy_text(r, b);
	if (b->bad || r->status != NT_OK)
		return;
	if (r->pair_count == MAX_PAIRS)
		r->status = nt_fail(r->d, NT_ELIMIT, b->cur, "label list is longer than the limit");
	else
		r->pairs[r->pair_count++] = label;
}

static void read_id(struct nt_span *b, uint8_t to[16])
{
	const uint8_t *p = nt_take(b, 16);

	if (p)
		memcpy(to, p, 16);
}

static void read_label(struct label_reader *r, struct nt_span *b, unsigned kind)
{
	struct nt_label_list *l = &r->list;

	switch (kind) {
	case LABEL_ACTIVITY:
		read_id(b, l->labels.activity_id);
		break;
	case LABEL_RELATED:
		read_id(b, l->labels.related_activity_id);
		break;
	case LABEL_TRACE:
		read_id(b, l->labels.trace_id);
		break;
	case LABEL_SPAN:
		l->labels.span_id = nt_u64(b);
		break;
	case LABEL_TEXT:
	case LABEL_NUMBER:
		read_pair(r, b, kind == LABEL_NUMBER);
		break;
	case LABEL_OPCODE:
		l->opcode = nt_u8(b);
		l->overrides |= NT_OVER_OPCODE;
		break;
	case LABEL_KEYWORDS:
		l->keywords = nt_u64(b);
		l->overrides |= NT_OVER_KEYWORDS;
		break;
	case LABEL_LEVEL:
		l->level = nt_u8(b);
		l->overrides |= NT_OVER_LEVEL;
		break;
	case LABEL_VERSION:
		l->version = nt_u8(b);
		l->overrides |= NT_OVER_VERSION;
		break;
	default:
		/* Its length is unknown, so nothing behind it can be found. */
		r->status = nt_fail(r->d, NT_EFORMAT, b->cur - 1, "label of an unknown kind");
	}
}

static enum nt_status read_list(struct label_reader *r, struct nt_span *b, uint32_t id)
{
	struct nt_decoder *d = r->d;
	struct nt_label_list *to;
	struct nt_label *pairs = NULL;
	unsigned kind = 0;

	r->list = (struct nt_label_list){ 0 };
	r->pair_count = 0;
	while (r->status == NT_OK && !b->bad && !(kind & LAST_LABEL)) {
		kind = nt_u8(b);
		if (!b->bad)
			read_label(r, b, kind & ~(unsigned)LAST_LABEL);
	}
	if (r->status != NT_OK)
		return r->status;
	if (b->bad)
		return nt_fail_span(d, b, "label list runs past its block");
	if (r->pair_count) {
		pairs = nt_arena_array(&d->epoch_arena, r->pair_count, sizeof(*pairs));
		if (!pairs)
			return nt_fail_arena(d, &d->epoch_arena,
					     "labels between two sequence points exceed the limit");
		memcpy(pairs, r->pairs, r->pair_count * sizeof(*pairs));
	}
	if (nt_idtable_full(d, &d->lists))
		return nt_fail(d, NT_ELIMIT, NULL,
			       "labels between two sequence points exceed the limit");
	to = nt_idtable_add(&d->lists, id);
	if (!to)
		return nt_fail_nomem(d);
	*to = r->list;
	to->labels.pairs = pairs;
	to->labels.pair_count = r->pair_count;
	return NT_OK;
}

enum nt_status nt_read_labels(struct nt_decoder *d, struct nt_span b)
{
	struct label_reader r = { .d = d };
	uint32_t first = nt_u32(&b);
	uint32_t count = nt_u32(&b);
	enum nt_status st = NT_OK;

	if (b.bad)
		return nt_fail_span(d, &b, "label block header runs past its block");
	for (d->row = 0; st == NT_OK && d->row < count; d->row++)
		st = read_list(&r, &b, first + (uint32_t)d->row);
	return st;
}
