/* SPDX-License-Identifier: MIT */
#include "nettrace/writer.h"

#include <string.h>

#include "nettrace/span.h"

enum {
	ROW_FLAGS = 0x01 | 0x02 | 0x04 | 0x08 | 0x40 | 0x80, /* every part that has no default */
	OBJECT_VERSION = 2,
	TRACE_VERSION = 4,
	BLOCK_HEADER_BYTES = 20,
	BLOCK_COMPRESSED = 1,
};

void nt_writer_init(struct nt_writer *w, const struct nt_alloc *alloc)
{
	*w = (struct nt_writer){ .alloc = alloc };
}

void nt_writer_done(struct nt_writer *w)
{
	if (w->bytes)
		w->alloc->realloc(w->alloc->ctx, w->bytes, 0);
	if (w->rows)
		w->alloc->realloc(w->alloc->ctx, w->rows, 0);
	nt_writer_init(w, w->alloc);
}

void nt_writer_take(struct nt_writer *w)
{
	w->taken += w->count;
	w->count = 0;
}

static void append(struct nt_writer *w, uint8_t **to, size_t *count, size_t *room, const void *p,
		   size_t n)
{
	if (w->failed || !n)
		return;
	if (n > *room - *count) {
		size_t want = (*count + n) * 2;
		uint8_t *grown = w->alloc->realloc(w->alloc->ctx, *to, want);

		if (!grown) {
			w->failed = true;
			return;
		}
		*to = grown;
		*room = want;
	}
	memcpy(*to + *count, p, n);
	*count += n;
}

static void put(struct nt_writer *w, const void *p, size_t n)
{
	append(w, &w->bytes, &w->count, &w->room, p, n);
}

static void put_row(struct nt_writer *w, const void *p, size_t n)
{
	append(w, &w->rows, &w->row_bytes, &w->row_room, p, n);
}

static void put_u32(struct nt_writer *w, uint32_t v)
{
	uint8_t bytes[4];

	put(w, bytes, nt_store(bytes, v, sizeof(bytes)));
}

static void put_byte(struct nt_writer *w, uint8_t v)
{
	put(w, &v, 1);
}

static void object_head(struct nt_writer *w, const char *name, uint32_t version)
{
	static const uint8_t begin[] = { 5, 5, 1 };

	put(w, begin, sizeof(begin));
	put_u32(w, version);
	put_u32(w, version);
	put_u32(w, (uint32_t)strlen(name));
	put(w, name, strlen(name));
	put_byte(w, 6);
}

void nt_writer_begin(struct nt_writer *w, const uint8_t trace_body[NT_TRACE_BODY_BYTES])
{
	put(w, "Nettrace", 8);
	put_u32(w, 20);
	put(w, "!FastSerialization.1", 20);
	object_head(w, "Trace", TRACE_VERSION);
	put(w, trace_body, NT_TRACE_BODY_BYTES);
	put_byte(w, 6);
}

void nt_writer_object(struct nt_writer *w, const char *name, const uint8_t *body, size_t n)
{
	static const uint8_t pad[3] = { 0 };

	if (n > INT32_MAX) {
		w->failed = true;
		return;
	}
	object_head(w, name, OBJECT_VERSION);
	put_u32(w, (uint32_t)n);
	put(w, pad, (size_t)(-(w->taken + w->count) & 3));
	put(w, body, n);
	put_byte(w, 6);
}

void nt_writer_end(struct nt_writer *w)
{
	put_byte(w, 1);
}

void nt_writer_open(struct nt_writer *w, const char *name)
{
	static const uint8_t header[BLOCK_HEADER_BYTES] = { BLOCK_HEADER_BYTES, 0,
							    BLOCK_COMPRESSED };

	w->block_name = name;
	w->row_bytes = 0;
	w->last_ticks = 0;
	w->first_ticks = 0;
	put_row(w, header, sizeof(header));
}

void nt_writer_row(struct nt_writer *w, const struct nt_out_row *row)
{
	/* Decoder state is all zero at block start; sequence is written as what is added to it. */
	uint8_t head[64];
	size_t n = 0;

	if (w->row_bytes == BLOCK_HEADER_BYTES)
		w->first_ticks = row->ticks;
	head[n++] = ROW_FLAGS;
	n += nt_store_varuint(head + n, row->metadata_id);
	n += nt_store_varuint(head + n,
			      w->row_bytes == BLOCK_HEADER_BYTES ? row->sequence - 1u : 0);
	n += nt_store_varuint(head + n, row->thread_id);
	n += nt_store_varuint(head + n, UINT32_MAX); /* processor: unknown */
	n += nt_store_varuint(head + n, row->thread_id);
	n += nt_store_varuint(head + n, 0); /* no stack */
	n += nt_store_varuint(head + n, row->ticks - w->last_ticks);
	n += nt_store_varuint(head + n, row->payload_bytes);
	w->last_ticks = row->ticks;
	put_row(w, head, n);
	put_row(w, row->payload, row->payload_bytes);
}

void nt_writer_close(struct nt_writer *w)
{
	if (w->row_bytes > BLOCK_HEADER_BYTES && !w->failed) {
		nt_store(w->rows + 4, w->first_ticks, 8);
		nt_store(w->rows + 12, w->last_ticks, 8);
		nt_writer_object(w, w->block_name, w->rows, w->row_bytes);
	}
	w->block_name = NULL;
}

static size_t utf16(uint8_t *to, const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += nt_store(to + n, (uint8_t)*text, 2);
	return n + nt_store(to + n, 0, 2);
}

void nt_writer_define(struct nt_writer *w, uint32_t metadata_id, const char *provider,
		      uint32_t event_id, uint32_t version, uint32_t level, uint64_t keywords)
{
	enum { MAX_PROVIDER = 64 };
	uint8_t payload[40 + 2 * MAX_PROVIDER];
	size_t n = 0;

	if (strlen(provider) > MAX_PROVIDER) {
		w->failed = true;
		return;
	}
	n += nt_store(payload + n, metadata_id, 4);
	n += utf16(payload + n, provider);
	n += nt_store(payload + n, event_id, 4);
	n += utf16(payload + n, "");
	n += nt_store(payload + n, keywords, 8);
	n += nt_store(payload + n, version, 4);
	n += nt_store(payload + n, level, 4);
	n += nt_store(payload + n, 0, 4);
	nt_writer_row(w, &(const struct nt_out_row){
				 .ticks = w->last_ticks, .payload = payload, .payload_bytes = n });
}

void nt_writer_sequence_point(struct nt_writer *w, uint64_t ticks)
{
	uint8_t body[12];

	nt_store(body, ticks, 8);
	nt_store(body + 8, 0, 4);
	nt_writer_object(w, "SPBlock", body, sizeof(body));
}
