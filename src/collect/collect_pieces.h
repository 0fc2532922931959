/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_COLLECT_PIECES_H
#define SRC_COLLECT_COLLECT_PIECES_H

/*
 * The output of a recording without an end: files of a size, NAME.0001.nettrace and so on, each a
 * trace of its own (pieces.h), of which the latest few are kept.
 *
 * Used like a trace_file; it has a decoder of its own, for blocks and names in the order of the
 * stream.
 */

#include "nettrace/nettrace.h"
#include "src/trace/trace_file.h"

struct collect_pieces;

struct collect_pieces_config {
	struct trace_file_config file; /* its path: where the numbers go in */
	uint64_t max_bytes; /* of a piece, before it is compressed */
	uint64_t keep; /* whole files, besides the one that is being written */
	/* Names are missing; true: collect_pieces_name() will get them.  With the ctx of events. */
	bool (*unnamed)(void *ctx);
	/* A file is about to be finished; its stream came since that time, uv_hrtime().  May be
	 * NULL. */
	void (*ending)(void *ctx, struct trace_file *file, uint64_t since_ns);
};

/* NULL: the first file could not be opened; said on standard error. */
struct collect_pieces *collect_pieces_open(uv_loop_t *loop,
					   const struct collect_pieces_config *config,
					   const struct trace_file_events *events, void *ctx);

/* The next bytes of the stream. */
void collect_pieces_write(struct collect_pieces *p, const uint8_t *bytes, size_t len);
/* An event of an early rundown: names for code that the stream itself may never name. */
enum nt_status collect_pieces_name(struct collect_pieces *p, const struct nt_event *ev);
/* Names of that kind are on their way: no piece ends without them if it can be helped. */
void collect_pieces_hold(struct collect_pieces *p, bool hold);
/* A stop was asked for: never pause from now on, and cut no more. */
void collect_pieces_stopping(struct collect_pieces *p);
/* None of it is wanted after all: all files are removed. */
void collect_pieces_discard(struct collect_pieces *p);

struct collect_pieces_result {
	struct trace_file_result file; /* of all together; path is the last one's */
	uint64_t pieces, removed;
	uint64_t unnamed; /* methods and modules for whose names there was no room */
};

/* Writes the end of the last piece; then done from the loop, and the memory goes. */
void collect_pieces_finish(struct collect_pieces *p,
			   void (*done)(void *ctx, const struct collect_pieces_result *result),
			   void *ctx);

#endif
