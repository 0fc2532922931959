/* SPDX-License-Identifier: MIT */
#ifndef NETTRACE_WRITER_H
#define NETTRACE_WRITER_H

/*
 * Writes V4 streams (nettrace.md §2 to §6): blocks taken whole from another stream, and rows of
 * our own.  The bytes collect in the writer until the caller takes them; only padding depends on
 * what was written before, so they may be taken at any time.
 *
 * Writing cannot fail half-way: when memory runs out the writer remembers it and ignores the rest.
 */

#include "nettrace/nettrace.h"

struct nt_writer {
	const struct nt_alloc *alloc;
	uint8_t *bytes; /* written and not yet taken */
	size_t count, room;
	uint64_t taken; /* bytes of the stream before bytes[0] */
	bool failed; /* out of memory */
	/* the block that is open */
	const char *block_name; /* NULL: none */
	uint8_t *rows;
	size_t row_bytes, row_room;
	uint64_t last_ticks;
	uint64_t first_ticks;
};

enum { NT_TRACE_BODY_BYTES = 48 };

/* One event or definition of our own. */
struct nt_out_row {
	uint32_t metadata_id; /* 0 in MetadataBlock */
	uint32_t sequence;
	uint64_t thread_id;
	uint64_t ticks; /* not before the row before it */
	const void *payload;
	size_t payload_bytes;
};

void nt_writer_init(struct nt_writer *w, const struct nt_alloc *alloc);
void nt_writer_done(struct nt_writer *w);
/* The bytes are the caller's: written, or given up.  The writer goes on behind them. */
void nt_writer_take(struct nt_writer *w);

/* Header and Trace object, with the body of another stream's. */
void nt_writer_begin(struct nt_writer *w, const uint8_t trace_body[NT_TRACE_BODY_BYTES]);
/* A block with that content, as struct nt_raw_block has it. */
void nt_writer_object(struct nt_writer *w, const char *name, const uint8_t *body, size_t n);
void nt_writer_end(struct nt_writer *w);

/* name: "EventBlock" or "MetadataBlock"; rows until nt_writer_close(). */
void nt_writer_open(struct nt_writer *w, const char *name);
void nt_writer_row(struct nt_writer *w, const struct nt_out_row *row);
void nt_writer_close(struct nt_writer *w);
/* A row that defines an event without fields, as the runtime's own providers have it (§4.1). */
void nt_writer_define(struct nt_writer *w, uint32_t metadata_id, const char *provider,
		      uint32_t event_id, uint32_t version, uint32_t level, uint64_t keywords);
/* A sequence point that lists no thread: stacks before it are forgotten. */
void nt_writer_sequence_point(struct nt_writer *w, uint64_t ticks);

#endif
