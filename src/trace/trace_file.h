/* SPDX-License-Identifier: MIT */
#ifndef SRC_TRACE_TRACE_FILE_H
#define SRC_TRACE_TRACE_FILE_H

/*
 * Writes a session's stream to a file, byte for byte, plain or through zstd, without ever holding
 * up the loop that reads it.
 *
 * A thread of the loop's pool writes whole blocks while the next ones gather.  When the disk is
 * slower than the stream, the caller is asked to pause; when it must not pause (a stop is pending),
 * or the disk is full, the file ends at the last whole block and later bytes are dropped: what is
 * there stays a valid trace.
 *
 * The file has another name in the same directory, and is locked (flock), until it is complete:
 * NAME.xxxxxx.part without a lock is what a writer that was killed has left.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct trace_file;

struct trace_file_events {
	/* Too much is waiting to be written; ready follows when that is over.  Either may be NULL.
	 */
	void (*full)(void *ctx);
	void (*ready)(void *ctx);
	/* Once, when writing failed: an errno.  What is in the file so far is kept. */
	void (*failed)(void *ctx, int error);
};

struct trace_file_config {
	const char *path; /* "-": standard output */
	bool force; /* replace an existing file */
	bool renumber; /* our own choice of name: take the next free one instead of failing */
	bool compress;
	int level; /* of zstd; 0: its default */
};

/* NULL: it could not be opened; said on standard error. */
struct trace_file *trace_file_open(uv_loop_t *loop, const struct trace_file_config *config,
				   const struct trace_file_events *events, void *ctx);

/*
 * Takes a copy of the next bytes of the stream.  whole_bytes: where in the stream its last complete
 * block ends, these bytes included.
 */
void trace_file_write(struct trace_file *f, const uint8_t *bytes, size_t len, uint64_t whole_bytes);

/*
 * A block as in nettrace/trailer.h, to stand behind the stream; a copy is taken.  It is written by
 * trace_file_finish(), if all of the stream could be; where there is no room for it the file does
 * without.  False: out of memory.
 */
bool trace_file_trailer(struct trace_file *f, const uint8_t *block, size_t len);

/* From now on the reader cannot pause: drop instead of asking for it. */
void trace_file_never_pause(struct trace_file *f);

/* The file is not wanted after all: it is removed when it is finished. */
void trace_file_discard(struct trace_file *f);
/* Standard output, a pipe, a device: what was written cannot be taken back. */
bool trace_file_is_in_place(const struct trace_file *f);

struct trace_file_result {
	int error; /* errno of the first failure; 0 none */
	bool dropped; /* the file lacks the end of the stream */
	uint64_t stream_bytes; /* of the stream that are in it */
	uint64_t file_bytes;
	const char *path; /* its final name; NULL: standard output, or there is no file */
};

/*
 * Writes what is left, closes, renames; then done(ctx, result) from the loop.  The file's memory
 * goes when done returns.  A file without any byte is removed.
 */
void trace_file_finish(struct trace_file *f,
		       void (*done)(void *ctx, const struct trace_file_result *result), void *ctx);

#endif
