/* SPDX-License-Identifier: MIT */
/* Writing a stream to a file: whole, compressed, on a full disk, on a slow one. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include "nettrace/trailer.h"
#include "src/trace/trace_file.h"

enum { BLOCK = 1000 }; /* the made-up stream has a block edge at each multiple */

struct job {
	uv_loop_t loop;
	char dir[64], path[96];
	struct trace_file_config config;
	unsigned full, ready, failed;
	int error;
	bool done;
	struct trace_file_result result;
	char result_path[128];
};

static int setup(void **state)
{
	struct job *j = calloc(1, sizeof(*j));

	snprintf(j->dir, sizeof(j->dir), "/tmp/drd-file-XXXXXX");
	assert_non_null(mkdtemp(j->dir));
	snprintf(j->path, sizeof(j->path), "%s/a.nettrace", j->dir);
	j->config.path = j->path;
	assert_int_equal(uv_loop_init(&j->loop), 0);
	*state = j;
	return 0;
}

/* Files in the directory, which is emptied. */
static unsigned empty_dir(const struct job *j)
{
	DIR *dir = opendir(j->dir);
	struct dirent *de;
	unsigned n = 0;

	while ((de = readdir(dir)) != NULL) {
		if (de->d_name[0] == '.')
			continue;
		unlinkat(dirfd(dir), de->d_name, 0);
		n++;
	}
	closedir(dir);
	return n;
}

static int teardown(void **state)
{
	struct job *j = *state;

	assert_int_equal(uv_loop_close(&j->loop), 0);
	empty_dir(j);
	rmdir(j->dir);
	free(j);
	return 0;
}

static void on_full(void *ctx)
{
	((struct job *)ctx)->full++;
}

static void on_ready(void *ctx)
{
	((struct job *)ctx)->ready++;
}

static void on_failed(void *ctx, int error)
{
	struct job *j = ctx;

	j->failed++;
	j->error = error;
}

static const struct trace_file_events file_events = { on_full, on_ready, on_failed };

static void on_done(void *ctx, const struct trace_file_result *r)
{
	struct job *j = ctx;

	j->done = true;
	j->result = *r;
	j->result_path[0] = '\0';
	if (r->path)
		snprintf(j->result_path, sizeof(j->result_path), "%s", r->path);
}

static struct trace_file *begin(struct job *j)
{
	return trace_file_open(&j->loop, &j->config, &file_events, j);
}

static uint8_t byte_at(size_t i)
{
	uint32_t x = (uint32_t)i * 2654435761u;

	x = (x ^ x >> 16) * 0x7feb352du;
	x = (x ^ x >> 15) * 0x846ca68bu;
	return (uint8_t)('a' + (x >> 13 & 15)); /* half of it is noise */
}

/* Bytes from..to of the stream; runs the loop now and then, as reading would. */
static void feed(struct job *j, struct trace_file *f, size_t from, size_t to, size_t chunk)
{
	uint8_t *buf = malloc(chunk);

	for (size_t at = from; at < to;) {
		size_t n = to - at < chunk ? to - at : chunk;

		for (size_t i = 0; i < n; i++)
			buf[i] = byte_at(at + i);
		at += n;
		trace_file_write(f, buf, n, at / BLOCK * BLOCK);
		uv_run(&j->loop, UV_RUN_NOWAIT);
	}
	free(buf);
}

static void end(struct job *j, struct trace_file *f)
{
	trace_file_finish(f, on_done, j);
	uv_run(&j->loop, UV_RUN_DEFAULT);
	assert_true(j->done);
}

static uint8_t *slurp(const char *path, size_t *ret_len)
{
	struct stat st;
	int fd = open(path, O_RDONLY);
	uint8_t *data;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	data = malloc((size_t)st.st_size + 1);
	assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
	close(fd);
	*ret_len = (size_t)st.st_size;
	return data;
}

static void check_stream(const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] != byte_at(i))
			fail_msg("byte %zu of %zu differs", i, len);
}

static void same_bytes(void **state)
{
	static const size_t chunks[] = { 1, 7, 999, 1000, 1001, 262144 };
	struct job *j = *state;

	for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		size_t size = chunks[i] < 100 ? 12345 : 1234567, len;
		struct trace_file *f = begin(j);
		uint8_t *data;

		feed(j, f, 0, size, chunks[i]);
		assert_int_not_equal(access(j->path, F_OK), 0); /* not yet under its name */
		end(j, f);
		assert_int_equal(j->result.error, 0);
		assert_false(j->result.dropped);
		assert_string_equal(j->result_path, j->path);
		assert_int_equal(j->result.stream_bytes, size);
		data = slurp(j->path, &len);
		assert_int_equal(len, size);
		check_stream(data, len);
		free(data);
		assert_int_equal(empty_dir(j), 1); /* nothing else was left */
	}
	assert_int_equal(j->failed, 0);
}

static size_t unpack(const char *path, uint8_t **ret)
{
	enum { ROOM = 8 << 20 };
	size_t len, n;
	uint8_t *data = slurp(path, &len);
	ZSTD_DCtx *d = ZSTD_createDCtx();
	ZSTD_inBuffer in = { data, len, 0 };
	ZSTD_outBuffer out = { malloc(ROOM), ROOM, 0 };

	do {
		n = ZSTD_decompressStream(d, &out, &in);
		assert_false(ZSTD_isError(n));
	} while (n != 0 && in.pos < in.size);
	assert_int_equal(n, 0); /* the frame is closed */
	assert_int_equal(in.pos, in.size); /* and nothing follows it */
	ZSTD_freeDCtx(d);
	free(data);
	*ret = out.dst;
	return out.pos;
}

static void compressed(void **state)
{
	struct job *j = *state;
	struct trace_file *f;
	uint8_t *data;

	j->config.compress = true;
	f = begin(j);
	feed(j, f, 0, 2345678, 50000);
	end(j, f);
	assert_int_equal(j->result.error, 0);
	assert_true(j->result.file_bytes < j->result.stream_bytes);
	assert_int_equal(unpack(j->path, &data), 2345678);
	check_stream(data, 2345678);
	free(data);
}

/* While it is written, all whole blocks handed over so far can be read from it. */
static void compressed_is_flushed(void **state)
{
	struct job *j = *state;
	struct trace_file *f;
	struct dirent *de;
	size_t len, got = 0;
	uint8_t *data, *out = malloc(1 << 20);
	char path[400] = "";
	DIR *dir;

	j->config.compress = true;
	f = begin(j);
	feed(j, f, 0, 500000, 100000);
	uv_run(&j->loop, UV_RUN_DEFAULT); /* until nothing is being written */
	dir = opendir(j->dir);
	while ((de = readdir(dir)) != NULL)
		if (de->d_name[0] != '.')
			snprintf(path, sizeof(path), "%s/%s", j->dir, de->d_name);
	closedir(dir);
	assert_non_null(strstr(path, "a.nettrace."));
	data = slurp(path, &len);
	{
		ZSTD_DCtx *d = ZSTD_createDCtx();
		ZSTD_inBuffer in = { data, len, 0 };
		ZSTD_outBuffer o = { out, 1 << 20, 0 };

		while (in.pos < in.size)
			assert_false(ZSTD_isError(ZSTD_decompressStream(d, &o, &in)));
		got = o.pos;
		ZSTD_freeDCtx(d);
	}
	assert_int_equal(got, 500000);
	check_stream(out, got);
	free(data);
	free(out);
	end(j, f);
}

static uint8_t *make_block(size_t *ret_len)
{
	uint8_t *block;
	const uint8_t *bytes;
	struct nt_trailer t;

	nt_trailer_init(&t, &nt_alloc_default);
	nt_trailer_begin(&t, NT_TRAILER_CPU_INFO);
	for (int i = 0; i < 200000; i++)
		nt_trailer_u8(&t, (uint8_t)i);
	nt_trailer_end(&t);
	assert_int_equal(nt_trailer_finish(&t, &bytes, ret_len), NT_OK);
	block = malloc(*ret_len);
	memcpy(block, bytes, *ret_len);
	nt_trailer_done(&t);
	return block;
}

/* Behind the stream, which is untouched; in a compressed file in a frame that holds no data. */
static void trailer(void **state)
{
	static const size_t sizes[] = { 1000, 1500, 700000 };
	struct job *j = *state;
	size_t block_len;
	uint8_t *block = make_block(&block_len);

	for (size_t i = 0; i < 6; i++) {
		size_t size = sizes[i / 2], len;
		struct trace_file *f;
		uint8_t *data, *plain = NULL;

		j->config.compress = i % 2;
		f = begin(j);
		assert_true(trace_file_trailer(f, block, block_len));
		feed(j, f, 0, size, 300);
		end(j, f);
		assert_int_equal(j->result.error, 0);
		assert_int_equal(j->result.stream_bytes, size);
		data = slurp(j->path, &len);
		assert_int_equal(len, j->result.file_bytes);
		assert_memory_equal(data + len - block_len, block, block_len);
		if (j->config.compress) {
			uint8_t head[NT_TRAILER_ZSTD_HEAD_BYTES];

			nt_trailer_zstd_head(block_len, head);
			assert_memory_equal(data + len - block_len - sizeof(head), head,
					    sizeof(head));
			plain = malloc(size + 1);
			assert_int_equal(ZSTD_decompress(plain, size + 1, data, len), size);
			check_stream(plain, size);
		} else {
			assert_int_equal(len, size + block_len);
			check_stream(data, size);
		}
		free(plain);
		free(data);
		assert_int_equal(empty_dir(j), 1);
	}
	free(block);
}

static void no_stream_no_trailer(void **state)
{
	struct job *j = *state;
	size_t block_len;
	uint8_t *block = make_block(&block_len);
	struct trace_file *f = begin(j);

	assert_true(trace_file_trailer(f, block, block_len));
	end(j, f);
	assert_int_equal(j->result.file_bytes, 0);
	assert_int_equal(empty_dir(j), 0);
	free(block);
}

/* The end of the stream does not fit, or only the stream does: no half block, and no whole one. */
static void no_room_no_trailer(void **state)
{
	static const size_t sizes[] = { 4000000, 600000 };
	struct rlimit old, small = { 700777, RLIM_INFINITY };
	struct job *j = *state;
	size_t block_len;
	uint8_t *block = make_block(&block_len);

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	for (size_t i = 0; i < 2; i++) {
		struct trace_file *f = begin(j);
		uint8_t *data;
		size_t len;

		assert_true(trace_file_trailer(f, block, block_len));
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		feed(j, f, 0, sizes[i], 30000);
		end(j, f);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
		assert_int_equal(j->result.error, i == 0 ? EFBIG : 0);
		data = slurp(j->path, &len);
		assert_int_equal(len, j->result.stream_bytes);
		assert_true(i == 0 || len == sizes[i]);
		check_stream(data, len);
		free(data);
		assert_int_equal(empty_dir(j), 1);
	}
	free(block);
}

/* A limit on the file's size stands for a full disk. */
static void full_disk(void **state)
{
	struct job *j = *state;
	struct rlimit old, small = { 700777, RLIM_INFINITY };

	for (unsigned compress = 0; compress < 2; compress++) {
		struct trace_file *f;
		uint8_t *data;
		size_t len;

		j->failed = 0;
		j->config.compress = compress;
		assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
		small.rlim_max = old.rlim_max;
		f = begin(j);
		feed(j, f, 0, 5000, 5000);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		feed(j, f, 5000, 4000000, 30000);
		end(j, f);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
		assert_int_equal(j->failed, 1);
		assert_int_equal(j->error, EFBIG);
		assert_int_equal(j->result.error, EFBIG);
		assert_true(j->result.dropped);
		if (compress)
			len = unpack(j->path, &data);
		else
			data = slurp(j->path, &len);
		assert_int_equal(len, j->result.stream_bytes);
		assert_in_range(len, 5000, 3999999);
		if (compress)
			assert_in_range(len, 1000000, 2000000);
		else
			assert_in_range(len, 600000, 700777);
		assert_int_equal(len % BLOCK, 0); /* whole blocks only */
		check_stream(data, len);
		free(data);
		assert_int_equal(empty_dir(j), 1);
	}
}

/* A level costs time and saves room. */
static void level(void **state)
{
	struct job *j = *state;
	uint64_t size[2];
	uint8_t *data;

	j->config.compress = true;
	for (int i = 0; i < 2; i++) {
		struct trace_file *f;

		j->config.level = i ? 12 : 1;
		f = begin(j);
		feed(j, f, 0, 500000, 50000);
		end(j, f);
		assert_int_equal(unpack(j->path, &data), 500000);
		check_stream(data, 500000);
		free(data);
		size[i] = j->result.file_bytes;
		assert_int_equal(empty_dir(j), 1);
	}
	assert_int_not_equal(size[0], size[1]);
}

static void discarded(void **state)
{
	struct job *j = *state;

	for (unsigned i = 0; i < 4; i++) {
		struct trace_file *f;

		j->config.compress = i & 1;
		f = begin(j);
		if (i & 2)
			feed(j, f, 0, 500000, 50000);
		trace_file_discard(f);
		feed(j, f, 500000, 600000, 50000); /* too late to count */
		end(j, f);
		assert_int_equal(j->result.error, 0);
		assert_string_equal(j->result_path, "");
		assert_int_equal(empty_dir(j), 0);
	}
	assert_int_equal(j->failed, 0);
}

static void existing_files(void **state)
{
	struct job *j = *state;
	struct trace_file *f;
	char want[128];
	size_t len;
	uint8_t *data;
	int fd = open(j->path, O_WRONLY | O_CREAT, 0600);

	assert_int_equal(write(fd, "old", 3), 3);
	close(fd);
	assert_null(begin(j));
	/* Our own choice of name: the next free one. */
	j->config.renumber = true;
	f = begin(j);
	feed(j, f, 0, 3000, 500);
	end(j, f);
	snprintf(want, sizeof(want), "%s/a-2.nettrace", j->dir);
	assert_string_equal(j->result_path, want);
	data = slurp(j->path, &len);
	assert_int_equal(len, 3);
	free(data);
	j->config.renumber = false;
	j->config.force = true;
	f = begin(j);
	feed(j, f, 0, 3000, 500);
	data = slurp(j->path, &len); /* the old one until the new one is complete */
	assert_int_equal(len, 3);
	free(data);
	end(j, f);
	data = slurp(j->path, &len);
	assert_int_equal(len, 3000);
	check_stream(data, len);
	free(data);
	assert_int_equal(empty_dir(j), 2);
}

/* Somebody takes the name while we record: nothing is overwritten, nothing is lost. */
static void name_taken_meanwhile(void **state)
{
	struct job *j = *state;
	struct trace_file *f = begin(j);
	char want[128];
	size_t len;
	uint8_t *data;
	int fd;

	feed(j, f, 0, 3000, 500);
	fd = open(j->path, O_WRONLY | O_CREAT, 0600);
	close(fd);
	end(j, f);
	snprintf(want, sizeof(want), "%s/a-2.nettrace", j->dir);
	assert_string_equal(j->result_path, want);
	data = slurp(want, &len);
	assert_int_equal(len, 3000);
	free(data);
	assert_int_equal(empty_dir(j), 2);
}

/* Removes what no writer has locked, as the next run of sample does, until it is killed. */
static void sweep_for_ever(const char *path)
{
	for (;;) {
		DIR *dir = opendir(path);
		struct dirent *de;

		while ((de = readdir(dir)) != NULL) {
			int fd = strstr(de->d_name, ".part")
					 ? openat(dirfd(dir), de->d_name, O_RDONLY)
					 : -1;

			if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
				unlinkat(dirfd(dir), de->d_name, 0);
			if (fd >= 0)
				close(fd);
		}
		closedir(dir);
	}
}

/* From its making until it has its name: whoever sweeps up meanwhile, the file is kept. */
static void kept_from_sweepers(void **state)
{
	struct job *j = *state;
	uint8_t *data;
	size_t len;
	pid_t pid = fork();

	if (pid == 0)
		sweep_for_ever(j->dir);
	for (int i = 0; i < 300; i++) {
		struct trace_file *f = begin(j);

		assert_non_null(f);
		feed(j, f, 0, 3 * BLOCK, BLOCK);
		end(j, f);
		assert_int_equal(j->result.error, 0);
		data = slurp(j->result_path, &len);
		assert_int_equal(len, 3 * BLOCK);
		check_stream(data, len);
		free(data);
		assert_int_equal(unlink(j->result_path), 0);
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(empty_dir(j), 0);
}

static void nothing_recorded_leaves_nothing(void **state)
{
	struct job *j = *state;
	struct trace_file *f = begin(j);

	end(j, f);
	assert_null(j->result.path);
	assert_int_equal(empty_dir(j), 0);
	j->config.compress = true;
	f = begin(j);
	end(j, f);
	assert_int_equal(empty_dir(j), 0);
}

static void bad_places(void **state)
{
	struct job *j = *state;
	char path[128];

	snprintf(path, sizeof(path), "%s/none/a.nettrace", j->dir);
	j->config.path = path;
	assert_null(begin(j));
	j->config.path = j->dir;
	assert_null(begin(j));
	assert_int_equal(empty_dir(j), 0);
}

/* Nobody reads the pipe: the reader of the stream is asked to pause, and to go on later. */
static void slow_disk(void **state)
{
	struct job *j = *state;
	struct trace_file *f;
	size_t got = 0, size = 20000000;
	uint8_t *data = malloc(size);
	int fd;

	assert_int_equal(mkfifo(j->path, 0600), 0);
	fd = open(j->path, O_RDONLY | O_NONBLOCK);
	f = begin(j);
	assert_non_null(f);
	feed(j, f, 0, 17000000, 100000);
	assert_int_equal(j->full, 1); /* once, however much more comes */
	assert_int_equal(j->ready, 0);
	while (j->ready == 0 || got < 17000000) {
		ssize_t n = read(fd, data + got, size - got);

		if (n > 0)
			got += (size_t)n;
		uv_run(&j->loop, UV_RUN_NOWAIT);
	}
	check_stream(data, got);
	end(j, f);
	assert_false(j->result.dropped);
	free(data);
	close(fd);
}

/* The same while a stop is pending: bytes are dropped behind the last whole block instead. */
static void slow_disk_that_must_not_pause(void **state)
{
	struct job *j = *state;
	struct trace_file *f;
	size_t got = 0, size = 40000000;
	uint8_t *data = malloc(size);
	int fd;

	assert_int_equal(mkfifo(j->path, 0600), 0);
	fd = open(j->path, O_RDONLY | O_NONBLOCK);
	f = begin(j);
	trace_file_never_pause(f);
	feed(j, f, 0, 30000500, 100100);
	assert_int_equal(j->full, 0);
	trace_file_finish(f, on_done, j);
	while (!j->done) {
		ssize_t n = read(fd, data + got, size - got);

		if (n > 0)
			got += (size_t)n;
		uv_run(&j->loop, UV_RUN_NOWAIT);
	}
	for (ssize_t n = 1; n > 0; got += n > 0 ? (size_t)n : 0)
		n = read(fd, data + got, size - got);
	assert_true(j->result.dropped);
	assert_int_equal(j->result.error, 0);
	assert_int_equal(got, j->result.stream_bytes);
	assert_int_equal(got % BLOCK, 0);
	assert_in_range(got, 8000000, 30000000);
	check_stream(data, got);
	free(data);
	close(fd);
}

static void reader_went_away(void **state)
{
	struct job *j = *state;
	struct trace_file *f;
	int fd;

	assert_int_equal(mkfifo(j->path, 0600), 0);
	fd = open(j->path, O_RDONLY | O_NONBLOCK);
	f = begin(j);
	feed(j, f, 0, 5000, 1000);
	uv_run(&j->loop, UV_RUN_DEFAULT);
	close(fd);
	feed(j, f, 5000, 50000, 1000);
	end(j, f);
	assert_int_equal(j->failed, 1);
	assert_int_equal(j->result.error, EPIPE);
	assert_int_equal(j->result.stream_bytes, 5000);
}

#define JOB(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOB(same_bytes),
		JOB(compressed),
		JOB(compressed_is_flushed),
		JOB(trailer),
		JOB(no_stream_no_trailer),
		JOB(no_room_no_trailer),
		JOB(full_disk),
		JOB(level),
		JOB(discarded),
		JOB(existing_files),
		JOB(name_taken_meanwhile),
		JOB(kept_from_sweepers),
		JOB(nothing_recorded_leaves_nothing),
		JOB(bad_places),
		JOB(slow_disk),
		JOB(slow_disk_that_must_not_pause),
		JOB(reader_went_away),
	};

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
