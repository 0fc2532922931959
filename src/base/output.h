/* SPDX-License-Identifier: MIT */
#ifndef SRC_BASE_OUTPUT_H
#define SRC_BASE_OUTPUT_H

/*
 * Where data goes: standard output or a file, through one buffer.
 *
 * A failure sticks and keeps its errno, so writers need not check each call: they may look at
 * out_failed() to stop early, and out_close() says it at the end.  A file is written aside and
 * renamed when complete, so it is there whole or not at all.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OUT_BUFFER_BYTES = 64 * 1024 };

struct out {
	int fd;
	int error; /* errno of the first failure; 0: none */
	bool colour; /* a terminal that wants colours */
	char *path; /* NULL: standard output */
	char *aside; /* the name it is written under; NULL: none, or written in place */
	bool force;
	bool nameless; /* it gets its name when it is complete, and nothing is left until then */
	size_t used;
	char buffer[OUT_BUFFER_BYTES];
};

/*
 * path NULL or "-": standard output.  An existing file is refused unless force.  NULL: it could
 * not be opened, or no memory; said on standard error.
 */
struct out *out_open(const char *path, bool force);
/*
 * A descriptor for a pipe, a device, …: what is there and is no regular file.  A pipe that has no
 * reader may get one within two seconds.  -1: errno says why.
 */
int out_open_in_place(const char *path);
/*
 * Whether both names lead to one file, that is there or would be made; false for "-", which is
 * nobody's name.  Who writes over what he reads loses it.
 */
bool out_same_file(const char *a, const char *b);
/* False: standard output was closed when the program began, so that data sent there is lost. */
bool out_stdout_is_open(void);
void out_note_closed_stdout(void);
/*
 * Flushes, renames, frees.  Returns code; or EXIT_FAILED when the data could not be written,
 * said on standard error.  A reader that went away (EPIPE) is no failure and nothing is said.
 */
int out_close(struct out *o, int code);
/* Throws a file away (nothing of it appears) and frees. */
void out_discard(struct out *o);

void out_write(struct out *o, const void *data, size_t len);
void out_text(struct out *o, const char *text);
void out_printf(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void out_uint(struct out *o, uint64_t v);
void out_int(struct out *o, int64_t v);
void out_hex(struct out *o, const void *data, size_t len); /* two small digits a byte */
/* Rounded, without trailing zeros, never "-0"; v is finite and |v| < 1e15. */
void out_fixed(struct out *o, double v, unsigned decimals);
/* Nanoseconds as milliseconds with up to six digits behind the point, exact. */
void out_ms(struct out *o, int64_t ns);
void out_flush(struct out *o);

static inline void out_char(struct out *o, char c)
{
	if (o->used == sizeof(o->buffer))
		out_flush(o);
	o->buffer[o->used++] = c;
}

static inline bool out_failed(const struct out *o)
{
	return o->error != 0;
}

#endif
