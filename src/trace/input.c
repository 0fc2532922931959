/* SPDX-License-Identifier: MIT */
#include "src/trace/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "nettrace/span.h"
#include "nettrace/trailer.h"
#include "src/base/log.h"

enum {
	RAW_BYTES = 256 * 1024, /* one read(); measured: no difference from 64 KiB to 2 MiB */
	PLAIN_BYTES = 256 * 1024, /* one piece of decompressed data */
	MAGIC_BYTES = 4,
	HEAD_BYTES = 64,
};

struct input {
	int fd;
	char *name;
	bool seekable;
	off_t end; /* what is behind it is not read; 0: all is */
	uint8_t *skipped; /* the last frame without data that may hold a trailer */
	size_t skipped_len, skipped_room;
	uint64_t skip; /* bytes of such a frame that are still to come */
	off_t start; /* where reading began: standard input may be in the middle of a file */
	unsigned window_log;
	ZSTD_DStream *zstd; /* NULL: not compressed */
	bool begun; /* the kind is known */
	bool at_eof; /* read() has returned 0 */
	bool in_frame; /* between the first and the last byte of a frame */
	bool output_full; /* the decompressor may hold more than it could write */
	enum input_fault fault;
	const char *fault_text;
	int read_errno; /* with INPUT_READ */
	uint64_t raw_bytes;
	size_t head_len; /* the first plain bytes, to tell what they are */
	unsigned char head[HEAD_BYTES];
	size_t raw_at, raw_len; /* unused part of raw */
	unsigned char *plain;
	unsigned char raw[RAW_BYTES];
};

static const char *shown(const char *path)
{
	return strcmp(path, "-") == 0 ? "standard input" : path;
}

static int open_fd(const char *path)
{
	struct stat st;
	int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
					: open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0) {
		log_error("cannot read '%s': %s", shown(path), strerror(errno));
		return -1;
	}
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		log_error("cannot read '%s': it is a directory", shown(path));
		close(fd);
		return -1;
	}
	return fd;
}

struct input *input_open(const char *path, unsigned window_log)
{
	struct input *in;
	int fd = open_fd(path);

	if (fd < 0)
		return NULL;
	in = malloc(sizeof(*in));
	if (in) {
		memset(in, 0, offsetof(struct input, raw));
		in->name = strdup(shown(path));
	}
	if (!in || !in->name) {
		log_error("cannot read '%s': out of memory", shown(path));
		free(in);
		close(fd);
		return NULL;
	}
	in->fd = fd;
	in->start = lseek(fd, 0, SEEK_CUR);
	in->seekable = in->start >= 0;
	in->window_log = window_log;
	return in;
}

struct input *input_close(struct input *in)
{
	if (!in)
		return NULL;
	ZSTD_freeDStream(in->zstd);
	close(in->fd);
	free(in->plain);
	free(in->skipped);
	free(in->name);
	free(in);
	return NULL;
}

bool input_can_rewind(const struct input *in)
{
	return in->seekable;
}

bool input_rewind(struct input *in)
{
	if (!in->seekable || lseek(in->fd, in->start, SEEK_SET) < 0)
		return false;
	if (in->zstd)
		in->zstd = (ZSTD_freeDStream(in->zstd), NULL);
	in->begun = in->at_eof = in->in_frame = in->output_full = false;
	in->fault = INPUT_OK;
	in->fault_text = NULL;
	in->read_errno = 0;
	in->raw_bytes = 0;
	in->head_len = 0;
	in->raw_at = in->raw_len = 0;
	in->skipped_len = 0;
	in->skip = 0;
	return true;
}

/* --- the block at the end --- */

/* len bytes at that place, or NULL. */
static uint8_t *read_piece(const struct input *in, off_t at, size_t len)
{
	uint8_t *p = malloc(len);
	size_t have = 0;

	while (p && have < len) {
		ssize_t n = pread(in->fd, p + have, len - have, at + (off_t)have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			free(p);
			return NULL;
		}
		have += (size_t)n;
	}
	return p;
}

/* Whether it is a frame of zstd: its head stands before it. */
static bool is_framed(const struct input *in, off_t at, size_t len)
{
	uint8_t want[NT_TRAILER_ZSTD_HEAD_BYTES], have[NT_TRAILER_ZSTD_HEAD_BYTES];

	nt_trailer_zstd_head(len, want);
	return at - in->start >= (off_t)sizeof(have) &&
	       pread(in->fd, have, sizeof(have), at - (off_t)sizeof(have)) == sizeof(have) &&
	       memcmp(want, have, sizeof(have)) == 0;
}

uint8_t *input_take_trailer(struct input *in, size_t *ret_len)
{
	uint8_t footer[NT_TRAILER_FOOTER_BYTES], *block;
	struct stat st;
	uint64_t len;
	off_t at;

	if (!in->seekable || fstat(in->fd, &st) != 0 || !S_ISREG(st.st_mode) ||
	    st.st_size - in->start < (off_t)sizeof(footer) ||
	    pread(in->fd, footer, sizeof(footer), st.st_size - (off_t)sizeof(footer)) !=
		    sizeof(footer))
		return NULL;
	len = nt_trailer_claimed(footer);
	if (len < sizeof(footer) || len > NT_TRAILER_MAX_BYTES ||
	    len > (uint64_t)(st.st_size - in->start))
		return NULL;
	at = st.st_size - (off_t)len;
	block = read_piece(in, at, (size_t)len);
	if (!block || !nt_trailer_has_head(block, (size_t)len)) {
		free(block);
		return NULL;
	}
	in->end = is_framed(in, at, (size_t)len) ? at - (off_t)NT_TRAILER_ZSTD_HEAD_BYTES : at;
	*ret_len = (size_t)len;
	return block;
}

static void set_fault(struct input *in, enum input_fault fault, const char *text)
{
	in->fault = fault;
	in->fault_text = text;
}

/* More raw bytes behind those that are there; false when none came. */
static bool fill(struct input *in)
{
	size_t room;
	ssize_t n;

	if (in->raw_at) {
		memmove(in->raw, in->raw + in->raw_at, in->raw_len - in->raw_at);
		in->raw_len -= in->raw_at;
		in->raw_at = 0;
	}
	if (in->at_eof || in->fault)
		return false;
	room = RAW_BYTES - in->raw_len;
	if (in->end && (uint64_t)(in->end - in->start) - in->raw_bytes < room)
		room = (size_t)((uint64_t)(in->end - in->start) - in->raw_bytes);
	do
		n = read(in->fd, in->raw + in->raw_len, room);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		set_fault(in, INPUT_READ, "the input cannot be read any further");
		in->read_errno = errno;
		return false;
	}
	in->at_eof = n == 0;
	in->raw_len += (size_t)n;
	in->raw_bytes += (uint64_t)n;
	return n > 0;
}

/* The magic of a frame, or of one that holds no data and is skipped. */
static bool is_zstd(const unsigned char *p, size_t len)
{
	if (len < MAGIC_BYTES)
		return false;
	return memcmp(p, "\x28\xb5\x2f\xfd", 4) == 0 ||
	       ((p[0] & 0xf0) == 0x50 && memcmp(p + 1, "\x2a\x4d\x18", 3) == 0);
}

/* Looks at the first bytes: compressed or not. */
static bool begin(struct input *in)
{
	while (in->raw_len - in->raw_at < MAGIC_BYTES && fill(in))
		continue;
	in->begun = true;
	if (in->fault || !is_zstd(in->raw + in->raw_at, in->raw_len - in->raw_at))
		return !in->fault;
	if (!in->plain)
		in->plain = malloc(PLAIN_BYTES);
	in->zstd = ZSTD_createDStream();
	if (!in->plain || !in->zstd ||
	    ZSTD_isError(
		    ZSTD_DCtx_setParameter(in->zstd, ZSTD_d_windowLogMax, (int)in->window_log))) {
		set_fault(in, INPUT_MEMORY, "out of memory");
		return false;
	}
	return true;
}

static void zstd_fault(struct input *in, size_t code)
{
	switch (ZSTD_getErrorCode(code)) {
	case ZSTD_error_frameParameter_windowTooLarge:
		set_fault(in, INPUT_WINDOW, "the zstd frame needs a larger window");
		break;
	case ZSTD_error_memory_allocation:
		set_fault(in, INPUT_MEMORY, "out of memory");
		break;
	case ZSTD_error_checksum_wrong:
		set_fault(in, INPUT_DAMAGED, "the checksum of the zstd frame does not match");
		break;
	case ZSTD_error_prefix_unknown: /* the first frame's was seen in begin() */
		set_fault(in, INPUT_TRAILING, "what follows the zstd frame is not zstd");
		break;
	default:
		set_fault(in, INPUT_DAMAGED, "the zstd frame is damaged");
	}
}

/* --- frames without data --- */

static void keep_skipped(struct input *in, const uint8_t *p, size_t n)
{
	size_t room = in->skipped_room ? in->skipped_room : 4096;
	uint8_t *grown;

	if (n > NT_TRAILER_MAX_BYTES - in->skipped_len)
		return;
	while (room < in->skipped_len + n)
		room *= 2;
	grown = room == in->skipped_room ? in->skipped : realloc(in->skipped, room);
	if (!grown)
		return; /* what is missing shows when it is opened */
	in->skipped = grown;
	in->skipped_room = room;
	memcpy(in->skipped + in->skipped_len, p, n);
	in->skipped_len += n;
}

/* Between two frames: whether the next one is skipped, as one that may hold a trailer is. */
static bool begin_skipping(struct input *in)
{
	uint8_t head[NT_TRAILER_ZSTD_HEAD_BYTES];

	while (in->raw_len - in->raw_at < sizeof(head) && fill(in))
		continue;
	if (in->raw_len - in->raw_at < sizeof(head))
		return false;
	nt_trailer_zstd_head(nt_load32(in->raw + in->raw_at + 4), head);
	if (memcmp(head, in->raw + in->raw_at, sizeof(head)) != 0)
		return false;
	in->skip = nt_load32(head + 4);
	in->raw_at += sizeof(head);
	in->skipped_len = 0;
	return true;
}

/* False at the end of the input. */
static bool skip_frame(struct input *in)
{
	while (in->skip > 0) {
		size_t n = in->raw_len - in->raw_at;

		if (n == 0 && !fill(in))
			return false;
		n = in->raw_len - in->raw_at;
		if (n > in->skip)
			n = (size_t)in->skip;
		keep_skipped(in, in->raw + in->raw_at, n);
		in->raw_at += n;
		in->skip -= n;
	}
	return true;
}

const uint8_t *input_borrow_trailer(const struct input *in, size_t *ret_len)
{
	bool any = nt_trailer_has_head(in->skipped, in->skipped_len);

	*ret_len = any ? in->skipped_len : 0;
	return any ? in->skipped : NULL;
}

static bool read_zstd(struct input *in, const void **ret_data, size_t *ret_len)
{
	ZSTD_outBuffer out = { in->plain, PLAIN_BYTES, 0 };

	while (!out.pos) {
		ZSTD_inBuffer src;
		size_t rest;

		while (!in->in_frame && !in->output_full && begin_skipping(in))
			if (!skip_frame(in))
				break;
		if (in->raw_at == in->raw_len && !in->output_full && !fill(in)) {
			if (in->in_frame && !in->fault)
				set_fault(in, INPUT_CUT, "the zstd frame is cut");
			return false;
		}
		src = (ZSTD_inBuffer){ in->raw, in->raw_len, in->raw_at };
		rest = ZSTD_decompressStream(in->zstd, &out, &src);
		in->raw_at = src.pos;
		if (ZSTD_isError(rest)) {
			zstd_fault(in, rest);
			break; /* what came out before it counts */
		}
		in->in_frame = rest != 0;
		in->output_full = out.pos == out.size && rest;
	}
	*ret_data = in->plain;
	*ret_len = out.pos;
	return out.pos > 0;
}

static bool read_plain(struct input *in, const void **ret_data, size_t *ret_len)
{
	if (in->raw_at == in->raw_len && !fill(in))
		return false;
	*ret_data = in->raw + in->raw_at;
	*ret_len = in->raw_len - in->raw_at;
	in->raw_at = in->raw_len;
	return true;
}

static void keep_head(struct input *in, const void *data, size_t len)
{
	size_t room = HEAD_BYTES - in->head_len;

	if (len > room)
		len = room;
	memcpy(in->head + in->head_len, data, len);
	in->head_len += len;
}

bool input_read(struct input *in, const void **ret_data, size_t *ret_len)
{
	bool ok;

	if (in->fault || (!in->begun && !begin(in)))
		return false;
	ok = in->zstd ? read_zstd(in, ret_data, ret_len) : read_plain(in, ret_data, ret_len);
	if (ok && in->head_len < HEAD_BYTES)
		keep_head(in, *ret_data, *ret_len);
	return ok;
}

enum input_fault input_fault(const struct input *in)
{
	return in->fault;
}

const char *input_fault_text(const struct input *in)
{
	return in->fault_text;
}

int input_read_errno(const struct input *in)
{
	return in->read_errno;
}

unsigned input_window_log(const struct input *in)
{
	return in->window_log;
}

const char *input_name(const struct input *in)
{
	return in->name;
}

size_t input_head(const struct input *in, const void **ret)
{
	*ret = in->head;
	return in->head_len;
}

bool input_is_zstd(const struct input *in)
{
	return in->zstd != NULL;
}

uint64_t input_raw_bytes(const struct input *in)
{
	return in->raw_bytes - (in->raw_len - in->raw_at);
}

static enum nt_status abort_stream(struct input *in, struct nt_decoder *d)
{
	if (nt_decoder_borrow_stats(d)
		    ->ended) /* what goes wrong behind the trace is no part of it */
		return nt_decoder_finish(d);
	switch (in->fault) {
	case INPUT_OK:
		break;
	case INPUT_READ:
	case INPUT_CUT:
		return nt_decoder_abort(d, NT_ETRUNC, in->fault_text);
	case INPUT_MEMORY:
		return nt_decoder_abort(d, NT_ENOMEM, in->fault_text);
	case INPUT_DAMAGED:
	case INPUT_WINDOW:
	case INPUT_TRAILING:
		return nt_decoder_abort(d, NT_EFORMAT, in->fault_text);
	}
	return nt_decoder_finish(d);
}

enum nt_status input_feed(struct input *in, struct nt_decoder *d)
{
	const void *data;
	size_t len;

	while (input_read(in, &data, &len)) {
		enum nt_status st = nt_decoder_push(d, data, len);

		if (st != NT_OK)
			return st;
	}
	return abort_stream(in, d);
}
