/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_BUILD_H
#define TESTS_SUPPORT_BUILD_H

/*
 * Builds traces byte by byte for tests: primitives, then the objects and blocks of V3, V4 and V6.
 * Nothing here shares code with the decoder, so a mistake in one does not hide one in the other.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct build {
	uint8_t *bytes;
	size_t count, room;
};

void build_done(struct build *b);
void build_bytes(struct build *b, const void *p, size_t n);
void build_u8(struct build *b, unsigned v);
void build_u16(struct build *b, unsigned v);
void build_u32(struct build *b, uint32_t v);
void build_u64(struct build *b, uint64_t v);
void build_varuint(struct build *b, uint64_t v);
/* ASCII text as UTF-16LE with its terminator. */
void build_utf16(struct build *b, const char *text);
/* V6 string: varuint length and UTF-8. */
void build_str6(struct build *b, const char *text);
/* Appends from and frees it. */
void build_append(struct build *b, struct build *from);
/* Overwrites what stands there, to damage it. */
void build_patch_u8(struct build *b, size_t at, unsigned v);
void build_patch_u16(struct build *b, size_t at, unsigned v);
void build_patch_u32(struct build *b, size_t at, uint32_t v);
void build_patch_u64(struct build *b, size_t at, uint64_t v);

/* --- V3 and V4: header, Trace object (clock 1e9 Hz, sync 1000, 2024-01-15 12:00:00.250) --- */
void build_begin(struct build *b, unsigned format);
/* A sized object with that content, padded as the format wants; frees content. */
void build_object(struct build *b, unsigned format, const char *name, struct build *content);
void build_end(struct build *b);

/* --- V6 --- */
enum build_kind6 {
	KIND6_END = 0,
	KIND6_TRACE = 1,
	KIND6_EVENT = 2,
	KIND6_METADATA = 3,
	KIND6_SEQUENCE = 4,
	KIND6_STACK = 5,
	KIND6_THREAD = 6,
	KIND6_REMOVE_THREAD = 7,
	KIND6_LABEL = 8,
};

void build_begin6(struct build *b);
void build_block6(struct build *b, unsigned kind, struct build *content);
void build_end6(struct build *b);

/* An event row with every part of the compressed header written out. */
struct build_row {
	uint32_t metadata_id;
	uint32_t sequence_delta; /* added with 1 */
	uint64_t capture, thread;
	uint32_t stack;
	uint64_t ticks_delta;
	uint32_t label; /* V6 */
	bool unsorted;
	const void *payload;
	size_t payload_bytes;
};

/* The 20 bytes before the rows of event and V4 metadata blocks. */
void build_rows_header(struct build *b, unsigned flags);
void build_row(struct build *b, bool v6, const struct build_row *r);
/* A metadata row of V4: definition of an event without fields. */
void build_definition(struct build *b, uint32_t id, const char *provider, uint32_t event_id,
		      const char *name);
/* The same as its payload only, up to and including the level; fields may follow. */
void build_definition_head(struct build *b, uint32_t id, const char *provider, uint32_t event_id,
			   const char *name);
/* Wraps a definition's payload into a row. */
void build_definition_row(struct build *b, struct build *payload);
void build_sequence_point(struct build *b, uint64_t ticks, const uint64_t *threads,
			  const uint32_t *sequences, uint32_t count);
/* --- any version --- */

/* A new stream of that format: header and Trace. */
struct build build_new(unsigned format);
void build_close(struct build *b, unsigned format); /* its end */
/* The same byte n times. */
void build_repeat(struct build *b, uint8_t byte, size_t n);
/* A whole MetadataBlock of V4 or V6 that defines event 1: Demo/7 "Hi", no fields. */
void build_hi(struct build *b, unsigned format);
/* A whole event block of V4 or V6 with these compressed rows; frees them. */
void build_rows(struct build *b, unsigned format, struct build *rows);
/* An event block with one sorted event 1 of thread 42: number 1, no stack, that payload byte. */
void build_event(struct build *b, unsigned format, uint64_t ticks, uint8_t payload);
/* A stack of a stack block: that many addresses of 8 bytes: first, first + 1 ... */
void build_stack(struct build *b, uint64_t first, uint32_t count);

/* --- rows of V6 blocks --- */
/* The trace block's content up to the pairs. */
void build_trace6(struct build *b);
/* A definition without fields and options, header of the block not included. */
void build_definition6(struct build *b, uint32_t id, const char *provider, uint32_t event_id,
		       const char *name);
/* Wraps a row's content into its size. */
void build_sized_row(struct build *b, struct build *row);
/* name NULL: none. */
void build_thread6(struct build *b, uint64_t index, const char *name, uint64_t process_id,
		   uint64_t thread_id);
void build_sequence_point6(struct build *b, uint64_t ticks, uint32_t flags, const uint64_t *threads,
			   const uint32_t *sequences, uint32_t count);

#endif
