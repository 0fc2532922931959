/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_PIECES_H
#define SRC_COLLECT_PIECES_H

/*
 * Cuts one endless V4 stream into pieces that are traces of their own.
 *
 * A piece is the stream's blocks as they came, cut before an event block.  In front stand the
 * definitions and the stacks that its events may refer to; behind stand the methods that its stacks
 * touch, as rundown events, so each piece can be read alone.  Sequence numbers go on from piece to
 * piece: nobody sees a loss where none was.
 *
 * No I/O here: bytes go out through a table of functions.
 */

#include "nettrace/nettrace.h"

struct pieces_output {
	/* The next bytes of the current piece. */
	void (*write)(void *ctx, const uint8_t *bytes, size_t len);
	/* The piece is whole; what comes next belongs to a new one. */
	void (*next)(void *ctx);
	/*
	 * The piece has its size, and its stacks touch code without a name.  True: names are asked
	 * for, hold the cut until pieces_hold(p, false).  May be NULL.
	 */
	bool (*unnamed)(void *ctx);
};

struct pieces;

/*
 * max_bytes: where a piece is cut, give or take what the runtime flushes at a time (at most as much
 * again) and its names.  NULL: out of memory.
 */
struct pieces *pieces_new(const struct nt_alloc *alloc, uint64_t max_bytes,
			  const struct pieces_output *output, void *ctx);
struct pieces *pieces_free(struct pieces *p); /* returns NULL */

/* Every block of the stream, from nt_sink.block. */
NT_MUST_CHECK enum nt_status pieces_block(struct pieces *p, const struct nt_raw_block *block);
/* Every event of the stream, and of an early rundown from elsewhere: it keeps what names code. */
NT_MUST_CHECK enum nt_status pieces_event(struct pieces *p, const struct nt_event *ev);
/*
 * While names are on their way, no cut: up to eight times the size.  When they have come, code that
 * still has no name is not asked for again.
 */
void pieces_hold(struct pieces *p, bool hold);
/* The runtime's own rundown may come from now on: no more cuts. */
void pieces_stopping(struct pieces *p);
/*
 * The stream is over; rundown: its own rundown was complete, so that no names have to be added.
 * Writes the end of the last piece.
 */
NT_MUST_CHECK enum nt_status pieces_finish(struct pieces *p, bool rundown);

uint64_t pieces_count(const struct pieces *p);
/* Methods and modules that had no room and will be missing as names. */
uint64_t pieces_dropped(const struct pieces *p);

#endif
