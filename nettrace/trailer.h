/* SPDX-License-Identifier: MIT */
#ifndef NETTRACE_TRAILER_H
#define NETTRACE_TRAILER_H

/*
 * The block behind the end of a trace: what was measured outside the process while its stream was
 * recorded.  Readers of .nettrace files stop at the end tag and never see it; the bytes before it
 * are the runtime's own.  Layout: "The trailing block" in README.md.
 *
 * This file knows the frame and the records in it; what a record holds is the business of
 * those who measure.  A kind that a reader does not know is skipped by its length.
 */

#include "nettrace/nettrace.h"
#include "nettrace/span.h"

enum {
	NT_TRAILER_VERSION = 1,
	NT_TRAILER_HEAD_BYTES = 24,
	NT_TRAILER_FOOTER_BYTES = 24,
	NT_TRAILER_RECORD_BYTES = 8, /* before each record: kind and length */
	NT_TRAILER_ZSTD_HEAD_BYTES = 8, /* of the skippable frame around it in a .zst file */
	NT_TRAILER_MAX_BYTES = 64 << 20, /* the whole block; longer ones are not read */
};

/* A kind once used keeps its meaning for ever. */
enum nt_trailer_kind {
	/* CPU time of threads: analyzers/cpu/cputime_trailer.c */
	NT_TRAILER_CPU_INFO = 1,
	NT_TRAILER_CPU_WINDOWS = 2,
	NT_TRAILER_THREAD_CPU = 3,
	/* Samples of perf_event_open(). */
	NT_TRAILER_PERF_INFO = 16,
	NT_TRAILER_PERF_STACK = 17,
	NT_TRAILER_PERF_SAMPLE = 18,
	NT_TRAILER_PERF_MAPPING = 19,
	NT_TRAILER_PERF_SYMBOL = 20,
	NT_TRAILER_PERF_THREAD = 21,
};

/* --- writing --- */

/*
 * Collects a block in memory.  Writing cannot fail half-way: when memory runs out or the block
 * becomes too long the writer remembers it, and nt_trailer_finish() gives no block.
 */
struct nt_trailer {
	const struct nt_alloc *alloc;
	uint8_t *bytes;
	size_t count, room;
	size_t record; /* where the open one begins; 0: none is open */
	enum nt_status status; /* NT_ENOMEM or NT_ELIMIT: it failed, and the rest is ignored */
};

void nt_trailer_init(struct nt_trailer *t, const struct nt_alloc *alloc);
void nt_trailer_done(struct nt_trailer *t);

/* One record; its content comes from the functions below, until nt_trailer_end(). */
void nt_trailer_begin(struct nt_trailer *t, enum nt_trailer_kind kind);
void nt_trailer_end(struct nt_trailer *t);

void nt_trailer_put(struct nt_trailer *t, const void *bytes, size_t n);
void nt_trailer_u8(struct nt_trailer *t, uint8_t v);
void nt_trailer_u64(struct nt_trailer *t, uint64_t v); /* 8 bytes, little-endian */
void nt_trailer_varuint(struct nt_trailer *t, uint64_t v); /* read by nt_varuint64() */
void nt_trailer_varint(struct nt_trailer *t, int64_t v); /* read by nt_varint64() */
/* A varuint length, then the bytes. */
void nt_trailer_text(struct nt_trailer *t, const void *bytes, size_t n);

/* Whether there is any record in it. */
bool nt_trailer_is_empty(const struct nt_trailer *t);

/*
 * Closes the block: *ret, *ret_len is the whole of it, the writer's until nt_trailer_done().
 * NT_ENOMEM or NT_ELIMIT: there is none.
 */
NT_MUST_CHECK enum nt_status nt_trailer_finish(struct nt_trailer *t, const uint8_t **ret,
					       size_t *ret_len);

/* What stands before the block where it is a skippable frame of zstd. */
void nt_trailer_zstd_head(size_t block_bytes, uint8_t ret[NT_TRAILER_ZSTD_HEAD_BYTES]);

/* --- reading --- */

/* Whether the bytes are the beginning of a block. */
bool nt_trailer_has_head(const uint8_t *bytes, size_t len);

/*
 * The last bytes of a file: how long the block is that ends there, head and footer included.  0:
 * none does.  The number is only a claim.
 */
uint64_t nt_trailer_claimed(const uint8_t footer[NT_TRAILER_FOOTER_BYTES]);

/*
 * Checks a whole block, from its head to its footer.  NULL: it is sound, and *ret_records are its
 * records.  Else why it is not, in static words: "its checksum does not match".
 */
const char *nt_trailer_open(const uint8_t *block, size_t len, struct nt_span *ret_records);

struct nt_trailer_record {
	uint32_t kind; /* enum nt_trailer_kind, or one of a later version */
	struct nt_span body;
};

/* The next record; false at the end, and where the records' lengths make no sense (records->bad).
 */
bool nt_trailer_next(struct nt_span *records, struct nt_trailer_record *ret);

/* What nt_trailer_text() wrote; empty, and body->bad, where it is not whole. */
struct nt_span nt_trailer_take_text(struct nt_span *body);

#endif
