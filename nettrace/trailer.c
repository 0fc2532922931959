/* SPDX-License-Identifier: MIT */
#include "nettrace/trailer.h"

#include <string.h>

enum {
	MAGIC_BYTES = 8,
	HEAD_VERSION_AT = 8, /* u32, then 4 bytes that are 0 */
	HEAD_LENGTH_AT = 16,
	FOOTER_CRC_AT = 8, /* u32, then 4 bytes that are 0 */
	FOOTER_MAGIC_AT = 16,
	FRAME_BYTES = NT_TRAILER_HEAD_BYTES + NT_TRAILER_FOOTER_BYTES,
	FIRST_ROOM = 4096,
	ZSTD_SKIPPABLE = 0x184D2A5D, /* one of the sixteen magic numbers for skippable frames */
};

/* Not text, and broken by whatever changes line ends. */
static const uint8_t head_magic[MAGIC_BYTES] = { 0x9d, 'D', 'R', 'D', 'T', '\r', '\n', 0x1a };
static const uint8_t footer_magic[MAGIC_BYTES] = { 0x9d, 'd', 'r', 'd', 'e', '\r', '\n', 0x1a };

/* CRC-32 as zlib and Ethernet have it. */
static uint32_t checksum(const uint8_t *p, size_t n)
{
	uint32_t table[256], crc = 0xffffffff;

	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (0xedb88320 & (0 - (table[i] & 1)));
	}
	for (size_t i = 0; i < n; i++)
		crc = crc >> 8 ^ table[(crc ^ p[i]) & 0xff];
	return ~crc;
}

/* --- writing --- */

void nt_trailer_init(struct nt_trailer *t, const struct nt_alloc *alloc)
{
	*t = (struct nt_trailer){ .alloc = alloc };
}

void nt_trailer_done(struct nt_trailer *t)
{
	if (t->bytes)
		t->alloc->realloc(t->alloc->ctx, t->bytes, 0);
	nt_trailer_init(t, t->alloc);
}

static void append(struct nt_trailer *t, const void *p, size_t n)
{
	size_t need, room = t->room ? t->room : FIRST_ROOM;
	uint8_t *grown;

	if (t->status != NT_OK || n == 0)
		return;
	if (n > NT_TRAILER_MAX_BYTES - t->count) {
		t->status = NT_ELIMIT;
		return;
	}
	need = t->count + n;
	while (room < need)
		room *= 2;
	if (room != t->room) {
		grown = t->alloc->realloc(t->alloc->ctx, t->bytes, room);
		if (!grown) {
			t->status = NT_ENOMEM;
			return;
		}
		t->bytes = grown;
		t->room = room;
	}
	memcpy(t->bytes + t->count, p, n);
	t->count = need;
}

/* Before the first record. */
static void put_head(struct nt_trailer *t)
{
	uint8_t head[NT_TRAILER_HEAD_BYTES] = { 0 };

	if (t->count > 0)
		return;
	memcpy(head, head_magic, MAGIC_BYTES);
	nt_store(head + HEAD_VERSION_AT, NT_TRAILER_VERSION, 4);
	append(t, head, sizeof(head));
}

void nt_trailer_begin(struct nt_trailer *t, enum nt_trailer_kind kind)
{
	uint8_t record[NT_TRAILER_RECORD_BYTES] = { 0 };

	put_head(t);
	t->record = t->count;
	nt_store(record, (uint32_t)kind, 4);
	append(t, record, sizeof(record));
}

void nt_trailer_end(struct nt_trailer *t)
{
	if (t->status == NT_OK && t->record)
		nt_store(t->bytes + t->record + 4, t->count - t->record - NT_TRAILER_RECORD_BYTES,
			 4);
	t->record = 0;
}

void nt_trailer_put(struct nt_trailer *t, const void *bytes, size_t n)
{
	append(t, bytes, n);
}

void nt_trailer_u8(struct nt_trailer *t, uint8_t v)
{
	append(t, &v, 1);
}

void nt_trailer_u64(struct nt_trailer *t, uint64_t v)
{
	uint8_t bytes[8];

	nt_store(bytes, v, sizeof(bytes));
	append(t, bytes, sizeof(bytes));
}

void nt_trailer_varuint(struct nt_trailer *t, uint64_t v)
{
	uint8_t bytes[NT_VARUINT_BYTES];

	append(t, bytes, nt_store_varuint(bytes, v));
}

void nt_trailer_varint(struct nt_trailer *t, int64_t v)
{
	nt_trailer_varuint(t, (uint64_t)v << 1 ^ (0 - ((uint64_t)v >> 63)));
}

void nt_trailer_text(struct nt_trailer *t, const void *bytes, size_t n)
{
	nt_trailer_varuint(t, n);
	append(t, bytes, n);
}

bool nt_trailer_is_empty(const struct nt_trailer *t)
{
	return t->count == 0;
}

enum nt_status nt_trailer_finish(struct nt_trailer *t, const uint8_t **ret, size_t *ret_len)
{
	uint8_t footer[NT_TRAILER_FOOTER_BYTES] = { 0 };
	size_t body_end;

	put_head(t);
	body_end = t->count;
	append(t, footer, sizeof(footer));
	if (t->status != NT_OK)
		return t->status;
	nt_store(t->bytes + HEAD_LENGTH_AT, t->count, 8);
	nt_store(t->bytes + body_end, t->count, 8);
	nt_store(t->bytes + body_end + FOOTER_CRC_AT, checksum(t->bytes, body_end + FOOTER_CRC_AT),
		 4);
	memcpy(t->bytes + body_end + FOOTER_MAGIC_AT, footer_magic, MAGIC_BYTES);
	*ret = t->bytes;
	*ret_len = t->count;
	return NT_OK;
}

void nt_trailer_zstd_head(size_t block_bytes, uint8_t ret[NT_TRAILER_ZSTD_HEAD_BYTES])
{
	nt_store(ret, ZSTD_SKIPPABLE, 4);
	nt_store(ret + 4, block_bytes, 4);
}

/* --- reading --- */

bool nt_trailer_has_head(const uint8_t *bytes, size_t len)
{
	return len >= MAGIC_BYTES && memcmp(bytes, head_magic, MAGIC_BYTES) == 0;
}

uint64_t nt_trailer_claimed(const uint8_t footer[NT_TRAILER_FOOTER_BYTES])
{
	if (memcmp(footer + FOOTER_MAGIC_AT, footer_magic, MAGIC_BYTES) != 0)
		return 0;
	return nt_load64(footer);
}

const char *nt_trailer_open(const uint8_t *block, size_t len, struct nt_span *ret_records)
{
	size_t body_end;

	if (!nt_trailer_has_head(block, len))
		return "it does not begin as it should";
	if (len < FRAME_BYTES)
		return "it is cut";
	if (nt_load32(block + HEAD_VERSION_AT) != NT_TRAILER_VERSION)
		return "it is of another version";
	if (len > NT_TRAILER_MAX_BYTES)
		return "it is too long";
	body_end = len - NT_TRAILER_FOOTER_BYTES;
	if (nt_load64(block + HEAD_LENGTH_AT) != len)
		return "its length is not what it says";
	if (nt_trailer_claimed(block + body_end) != len)
		return "its end does not fit its beginning";
	if (nt_load32(block + body_end + FOOTER_CRC_AT) !=
	    checksum(block, body_end + FOOTER_CRC_AT))
		return "its checksum does not match";
	*ret_records = nt_span_of(block + NT_TRAILER_HEAD_BYTES, body_end - NT_TRAILER_HEAD_BYTES);
	return NULL;
}

struct nt_span nt_trailer_take_text(struct nt_span *body)
{
	uint64_t n = nt_varuint64(body);

	return nt_sub(body, n <= nt_left(body) ? (size_t)n : SIZE_MAX);
}

bool nt_trailer_next(struct nt_span *records, struct nt_trailer_record *ret)
{
	uint32_t length;

	if (nt_left(records) == 0)
		return false;
	ret->kind = nt_u32(records);
	length = nt_u32(records);
	ret->body = nt_sub(records, length);
	return !records->bad;
}
