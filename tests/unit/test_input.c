/* SPDX-License-Identifier: MIT */

/* Files, pipes and zstd frames as one stream of bytes, and every way in which they can end. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include "nettrace/trailer.h"
#include "src/trace/fault.h"
#include "src/trace/input.h"
#include "tests/support/fixture.h"

static char path[64];

static int make_file(void **state)
{
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/drdotnet-input-XXXXXX");
	fd = mkstemp(path);
	return fd < 0 || close(fd) < 0;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

struct bytes {
	unsigned char *p;
	size_t len;
};

static void append(struct bytes *b, const void *data, size_t len)
{
	b->p = realloc(b->p, b->len + len + 1);
	assert_non_null(b->p);
	memcpy(b->p + b->len, data, len);
	b->len += len;
}

static void release(struct bytes *b)
{
	free(b->p);
	memset(b, 0, sizeof(*b));
}

static void write_file(const void *data, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

/* Not the same twice, and not easy to compress. */
static struct bytes noise(size_t len, uint32_t seed)
{
	struct bytes b = { malloc(len + 1), len };

	assert_non_null(b.p);
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1664525u + 1013904223u;
		b.p[i] = (unsigned char)(seed >> 26 | 'a');
	}
	return b;
}

static void append_frame(struct bytes *to, const void *data, size_t len, int window_log,
			 int checksum)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	size_t room = ZSTD_compressBound(len), n;
	unsigned char *buf = malloc(room);
	ZSTD_outBuffer out = { buf, room, 0 };
	ZSTD_inBuffer in = { data, len, 0 };

	assert_non_null(c);
	assert_non_null(buf);
	ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, checksum);
	if (window_log)
		ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, window_log);
	ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, 0);
	do
		n = ZSTD_compressStream2(c, &out, &in, ZSTD_e_continue);
	while (!ZSTD_isError(n) && in.pos < in.size);
	n = ZSTD_compressStream2(c, &out, &in, ZSTD_e_end);
	assert_int_equal(n, 0);
	append(to, buf, out.pos);
	ZSTD_freeCCtx(c);
	free(buf);
}

static void append_skippable(struct bytes *to, uint32_t len)
{
	const unsigned char head[8] = {
		0x5a, 0x2a, 0x4d, 0x18, (unsigned char)len, (unsigned char)(len >> 8)
	};

	append(to, head, sizeof(head));
	for (uint32_t i = 0; i < len; i++)
		append(to, "x", 1);
}

/* A block with a record of so many bytes. */
static struct bytes trailer(size_t len)
{
	struct bytes b = { 0 }, content = noise(len, 9);
	const uint8_t *block;
	struct nt_trailer t;
	size_t n;

	nt_trailer_init(&t, &nt_alloc_default);
	nt_trailer_begin(&t, NT_TRAILER_CPU_INFO);
	nt_trailer_put(&t, content.p, len);
	nt_trailer_end(&t);
	assert_int_equal(nt_trailer_finish(&t, &block, &n), NT_OK);
	append(&b, block, n);
	nt_trailer_done(&t);
	release(&content);
	return b;
}

static void append_framed(struct bytes *to, const struct bytes *block)
{
	uint8_t head[NT_TRAILER_ZSTD_HEAD_BYTES];

	nt_trailer_zstd_head(block->len, head);
	append(to, head, sizeof(head));
	append(to, block->p, block->len);
}

static enum input_fault read_all(struct input *in, struct bytes *ret)
{
	const void *data;
	size_t len;

	memset(ret, 0, sizeof(*ret));
	while (input_read(in, &data, &len)) {
		assert_true(len > 0);
		append(ret, data, len);
	}
	assert_false(input_read(in, &data, &len)); /* the end stays the end */
	return input_fault(in);
}

static void expect(const struct bytes *want, enum input_fault fault)
{
	struct input *in = input_open(path, INPUT_WINDOW_LOG);
	struct bytes got;

	assert_non_null(in);
	assert_int_equal(read_all(in, &got), fault);
	assert_int_equal(input_fault_text(in) != NULL, fault != INPUT_OK);
	assert_int_equal(got.len, want->len);
	assert_memory_equal(got.p, want->p, want->len);
	release(&got);
	if (fault == INPUT_OK) {
		assert_true(input_rewind(in));
		assert_int_equal(read_all(in, &got), INPUT_OK);
		assert_int_equal(got.len, want->len);
		release(&got);
	}
	input_close(in);
}

static void plain_files(void **state)
{
	struct bytes b = noise(1500000, 1);

	(void)state;
	write_file(b.p, b.len);
	expect(&b, INPUT_OK);
	for (b.len = 1; b.len < 6; b.len++) { /* around the length of zstd's magic */
		write_file(b.p, b.len);
		expect(&b, INPUT_OK);
	}
	release(&b);
}

static void frames_are_one_stream(void **state)
{
	struct bytes plain = noise(1300000, 2), file = { 0 };

	(void)state;
	append_skippable(&file, 300);
	append_frame(&file, plain.p, 1000000, 0, 1);
	append_skippable(&file, 0);
	append_frame(&file, plain.p, 0, 0, 0); /* a frame without content */
	append_frame(&file, plain.p + 1000000, 300000, 0, 0);
	append_skippable(&file, 10);
	write_file(file.p, file.len);
	expect(&plain, INPUT_OK);
	release(&plain);
	release(&file);
}

/* Whatever is cut off, what is left of the content comes first, then the fault. */
static void every_cut_is_noticed(void **state)
{
	struct bytes plain = noise(3000, 3), file = { 0 }, got;

	(void)state;
	append_frame(&file, plain.p, plain.len, 0, 1);
	for (size_t cut = 4; cut < file.len; cut++) {
		struct input *in;

		write_file(file.p, cut);
		in = input_open(path, INPUT_WINDOW_LOG);
		assert_non_null(in);
		assert_int_equal(read_all(in, &got), INPUT_CUT);
		assert_true(got.len <= plain.len);
		if (got.len)
			assert_memory_equal(got.p, plain.p, got.len);
		assert_int_equal(input_raw_bytes(in), cut);
		release(&got);
		input_close(in);
	}
	release(&plain);
	release(&file);
}

static void damage_is_named(void **state)
{
	struct bytes plain = noise(700000, 4), file = { 0 }, none = { plain.p, 0 };
	const size_t whole_blocks = plain.len / ZSTD_BLOCKSIZE_MAX * ZSTD_BLOCKSIZE_MAX;
	struct bytes verified = { plain.p, whole_blocks };

	(void)state;
	append_frame(&file, plain.p, plain.len, 0, 1);
	file.p[file.len - 1] ^= 1; /* the checksum: its last block is not to be trusted */
	write_file(file.p, file.len);
	expect(&verified, INPUT_DAMAGED);
	file.p[file.len - 1] ^= 1;

	append(&file, "rubbish!", 8);
	write_file(file.p, file.len);
	expect(&plain, INPUT_TRAILING);

	file.p[4] |= 0x08; /* a reserved bit of the frame header */
	write_file(file.p, file.len);
	expect(&none, INPUT_DAMAGED);
	release(&plain);
	release(&file);
}

static void large_windows_must_be_allowed(void **state)
{
	struct bytes plain = noise(100000, 5), file = { 0 }, none = { plain.p, 0 }, got;
	struct input *in;

	(void)state;
	append_frame(&file, plain.p, plain.len, 27, 0);
	write_file(file.p, file.len);
	expect(&none, INPUT_WINDOW);
	in = input_open(path, 27);
	assert_non_null(in);
	assert_int_equal(read_all(in, &got), INPUT_OK);
	assert_int_equal(got.len, plain.len);
	release(&got);
	input_close(in);
	release(&plain);
	release(&file);
}

/* A pipe gives a few bytes at a time, even in the middle of the magic. */
static void pipes(void **state)
{
	struct bytes plain = noise(5000, 6), file = { 0 }, got;
	int fds[2], status, saved = dup(STDIN_FILENO);
	struct input *in;
	pid_t child;

	(void)state;
	append_frame(&file, plain.p, plain.len, 0, 1);
	assert_int_equal(pipe(fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		bool sent = true;

		for (size_t i = 0; i < file.len && sent; i++)
			sent = write(fds[1], file.p + i, 1) == 1;
		release(&plain); /* valgrind looks at the child too */
		release(&file);
		_exit(!sent);
	}
	close(fds[1]);
	dup2(fds[0], STDIN_FILENO);
	close(fds[0]);
	in = input_open("-", INPUT_WINDOW_LOG);
	assert_non_null(in);
	assert_string_equal(input_name(in), "standard input");
	assert_false(input_can_rewind(in));
	assert_false(input_rewind(in));
	assert_int_equal(read_all(in, &got), INPUT_OK);
	assert_int_equal(got.len, plain.len);
	assert_memory_equal(got.p, plain.p, plain.len);
	input_close(in);
	dup2(saved, STDIN_FILENO);
	close(saved);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	release(&got);
	release(&plain);
	release(&file);
}

static void what_cannot_be_opened(void **state)
{
	(void)state;
	assert_null(input_open("/tmp", INPUT_WINDOW_LOG));
	assert_null(input_open("/tmp/drdotnet-no-such-file", INPUT_WINDOW_LOG));
	assert_null(input_close(NULL));
}

struct count {
	uint64_t events;
};

static enum nt_status on_event(void *ctx, const struct nt_event *ev)
{
	struct count *c = ctx;

	(void)ev;
	c->events++;
	return NT_OK;
}

static enum nt_status feed(struct count *c, struct nt_error *ret_error)
{
	static const struct nt_sink sink = { .event = on_event };
	struct input *in = input_open(path, INPUT_WINDOW_LOG);
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, NT_TIME_ORDER, &sink, c);
	enum nt_status st;

	assert_non_null(in);
	assert_non_null(d);
	c->events = 0;
	st = input_feed(in, d);
	memset(ret_error, 0, sizeof(*ret_error));
	if (nt_decoder_borrow_error(d))
		*ret_error = *nt_decoder_borrow_error(d);
	nt_decoder_free(d);
	input_close(in);
	return st;
}

static void a_trace_is_decoded_however_packed(void **state)
{
	struct bytes trace = { 0 }, file = { 0 };
	struct nt_error err;
	struct count c;

	(void)state;
	trace.p = fixture_read("synthetic-v4.nettrace", &trace.len);
	assert_non_null(trace.p);
	write_file(trace.p, trace.len);
	assert_int_equal(feed(&c, &err), NT_OK);
	assert_int_equal(c.events, 3);

	for (size_t i = 0; i < trace.len; i++) /* a frame a byte */
		append_frame(&file, trace.p + i, 1, 0, 0);
	write_file(file.p, file.len);
	assert_int_equal(feed(&c, &err), NT_OK);
	assert_int_equal(c.events, 3);

	release(&file);
	append_frame(&file, trace.p, 300, 0, 0);
	append_frame(&file, trace.p + 300, trace.len - 300, 0, 0);
	write_file(file.p, file.len - 8);
	assert_int_equal(feed(&c, &err), NT_ETRUNC);
	assert_int_equal(err.code, NT_ETRUNC);
	assert_string_equal(err.what, "the zstd frame is cut");
	assert_int_equal(err.offset, 300);
	release(&trace);
	release(&file);
}

static void foreign_files_are_recognised(void **state)
{
	static const char snapshot[] = "\x14\0\0\0!FastSerialization.1\x04\x04\x01\x0a\0\0\0"
				       "\x08\0\0\0\x0a\0\0\0GCHeapDump\x06";
	const char *advice;

	(void)state;
	assert_string_equal(fault_recognise(snapshot, sizeof(snapshot), &advice),
			    "a heap snapshot (.gcdump)");
	assert_non_null(advice);
	assert_string_equal(fault_recognise("\x1f\x8b\x08", 3, &advice), "gzip data");
	assert_string_equal(fault_recognise("{\"shared\":{}}", 13, &advice), "JSON text");
	assert_null(fault_recognise("Nettrace", 8, &advice));
	assert_null(fault_recognise("", 0, &advice));
	for (size_t n = 0; n < 0x23 + 14; n++) /* never beyond what is there */
		assert_null(fault_recognise(snapshot, n, &advice));
}

/* --- the block at the end --- */

/* It is taken from the end of a file, and the stream ends where it begins. */
static void trailer_comes_first(void **state)
{
	struct bytes plain = noise(300000, 3), block = trailer(70000), file = { 0 }, got;

	(void)state;
	for (int packed = 0; packed < 2; packed++) {
		struct input *in;
		uint8_t *have;
		size_t len;

		release(&file);
		if (packed) {
			append_frame(&file, plain.p, plain.len, 0, 1);
			append_framed(&file, &block);
		} else {
			append(&file, plain.p, plain.len);
			append(&file, block.p, block.len);
		}
		write_file(file.p, file.len);
		in = input_open(path, INPUT_WINDOW_LOG);
		have = input_take_trailer(in, &len);
		assert_non_null(have);
		assert_int_equal(len, block.len);
		assert_memory_equal(have, block.p, len);
		free(have);
		for (int again = 0; again < 2; again++) {
			assert_int_equal(read_all(in, &got), INPUT_OK);
			assert_int_equal(got.len, plain.len);
			assert_memory_equal(got.p, plain.p, plain.len);
			release(&got);
			assert_null(input_borrow_trailer(in, &len));
			assert_true(input_rewind(in));
		}
		input_close(in);
	}
	release(&file);
	release(&block);
	release(&plain);
}

/* In a compressed stream it is kept as it comes by, between frames as well; others are not. */
static void trailer_comes_by(void **state)
{
	struct bytes plain = noise(30000, 3), block = trailer(600000), file = { 0 }, got;
	struct input *in;
	const uint8_t *have;
	size_t len;

	(void)state;
	append_frame(&file, plain.p, 10000, 0, 1);
	append_skippable(&file, 77);
	append_framed(&file, &block);
	append_frame(&file, plain.p + 10000, 20000, 0, 1);
	write_file(file.p, file.len);
	in = input_open(path, INPUT_WINDOW_LOG);
	assert_null(input_take_trailer(in, &len));
	assert_int_equal(read_all(in, &got), INPUT_OK);
	assert_int_equal(got.len, plain.len);
	assert_memory_equal(got.p, plain.p, plain.len);
	have = input_borrow_trailer(in, &len);
	assert_non_null(have);
	assert_int_equal(len, block.len);
	assert_memory_equal(have, block.p, len);
	input_close(in);
	release(&got);
	/* Cut inside of it. */
	write_file(file.p, file.len - 400000);
	in = input_open(path, INPUT_WINDOW_LOG);
	assert_int_equal(read_all(in, &got), INPUT_OK);
	assert_int_equal(got.len, 10000);
	assert_non_null(input_borrow_trailer(in, &len));
	assert_in_range(len, 1, block.len - 1);
	input_close(in);
	release(&got);
	release(&file);
	release(&block);
	release(&plain);
}

/* Ends that only look like one: nothing is taken, and nothing is missing. */
static void ends_that_lie(void **state)
{
	static const size_t lengths[] = { 0, 1, 23, 24, 48, 1000, 100000, 1 << 27, SIZE_MAX };
	struct bytes plain = noise(2000, 5), got;
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct bytes block = trailer(10), file = { 0 };
		struct input *in;

		for (size_t k = 0; k < 8; k++)
			block.p[block.len - NT_TRAILER_FOOTER_BYTES + k] =
				(unsigned char)(lengths[i] >> (8 * k));
		append(&file, plain.p, plain.len);
		append(&file, block.p, block.len);
		write_file(file.p, file.len);
		in = input_open(path, INPUT_WINDOW_LOG);
		assert_null(input_take_trailer(in, &len));
		assert_int_equal(read_all(in, &got), INPUT_OK);
		assert_int_equal(got.len, file.len);
		input_close(in);
		release(&got);
		release(&file);
		release(&block);
	}
	release(&plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_files),
		cmocka_unit_test(frames_are_one_stream),
		cmocka_unit_test(every_cut_is_noticed),
		cmocka_unit_test(damage_is_named),
		cmocka_unit_test(large_windows_must_be_allowed),
		cmocka_unit_test(pipes),
		cmocka_unit_test(what_cannot_be_opened),
		cmocka_unit_test(a_trace_is_decoded_however_packed),
		cmocka_unit_test(foreign_files_are_recognised),
		cmocka_unit_test(trailer_comes_first),
		cmocka_unit_test(trailer_comes_by),
		cmocka_unit_test(ends_that_lie),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
