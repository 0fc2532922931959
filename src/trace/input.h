/* SPDX-License-Identifier: MIT */
#ifndef SRC_TRACE_INPUT_H
#define SRC_TRACE_INPUT_H

/*
 * Bytes of a trace from a file, a pipe or standard input, decompressed where they are zstd (told
 * by content, never by name).  Several frames one after the other, skippable ones included, are
 * one stream.  Memory does not depend on the size of the input.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nettrace/nettrace.h"

enum {
	INPUT_WINDOW_LOG = 25, /* zstd frames may need that much memory: 32 MiB */
	INPUT_WINDOW_LOG_MIN = 10,
	INPUT_WINDOW_LOG_MAX = 31,
};

/* How reading ended, when it was not simply the end. */
enum input_fault {
	INPUT_OK,
	INPUT_READ, /* read() failed */
	INPUT_CUT, /* the zstd frame is not complete */
	INPUT_DAMAGED, /* the zstd frame is damaged */
	INPUT_WINDOW, /* it needs a bigger window */
	INPUT_TRAILING, /* something that is not zstd follows the frame */
	INPUT_MEMORY,
};

struct input;

/* path "-": standard input.  NULL: it could not be opened; said on standard error. */
struct input *input_open(const char *path, unsigned window_log);
struct input *input_close(struct input *in); /* returns NULL */

/* Goes back to the first byte.  False for what cannot: pipes. */
bool input_rewind(struct input *in);
bool input_can_rewind(const struct input *in);

/*
 * The next bytes, valid until the next call.  False at the end and on a fault.
 */
bool input_read(struct input *in, const void **ret_data, size_t *ret_len);

/*
 * Looks for a block of nettrace/trailer.h at the end of a file that can be read from there, before
 * anything else is read: then input_read() ends where it begins.  It is told by its two ends only.
 * NULL: none, or it cannot be seen yet.  The caller frees it.
 */
uint8_t *input_take_trailer(struct input *in, size_t *ret_len);
/*
 * What input_read() came across of that kind instead, in a compressed stream: a frame that holds no
 * data, whole or not.  NULL: none.
 */
const uint8_t *input_borrow_trailer(const struct input *in, size_t *ret_len);

enum input_fault input_fault(const struct input *in);
const char *input_fault_text(const struct input *in); /* static; NULL: no fault */
const char *input_name(const struct input *in); /* for messages: the path, "standard input" */
int input_read_errno(const struct input *in); /* of INPUT_READ */
unsigned input_window_log(const struct input *in);
bool input_is_zstd(const struct input *in);
uint64_t input_raw_bytes(const struct input *in); /* taken from the file so far */
/* The first bytes, decompressed, 64 at most. */
size_t input_head(const struct input *in, const void **ret);

/*
 * Pushes everything into the decoder and finishes it; a fault of the input becomes the end of the
 * stream (nt_decoder_abort()).  Returns the decoder's status.
 */
enum nt_status input_feed(struct input *in, struct nt_decoder *d);

#endif
