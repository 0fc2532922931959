/* SPDX-License-Identifier: MIT */
/* A stream as files of a size, of which the latest are kept. */
#include "src/collect/collect_pieces.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nettrace/nettrace.h"
#include "nettrace/trailer.h"
#include "tests/support/fixture.h"

struct job {
	uv_loop_t loop;
	char dir[64], path[96];
	struct collect_pieces_config config;
	unsigned full, ready, failed;
	unsigned trailers;
	uint64_t since_ns; /* of the last piece */
	bool done;
	struct collect_pieces_result result;
	char result_path[128];
};

static uint8_t *trace;
static size_t trace_bytes;
static struct nt_stats whole; /* of the trace */
static uint64_t whole_events; /* but those of the rundown */

static int setup(void **state)
{
	struct job *j = calloc(1, sizeof(*j));

	snprintf(j->dir, sizeof(j->dir), "/tmp/drd-pieces-XXXXXX");
	assert_non_null(mkdtemp(j->dir));
	snprintf(j->path, sizeof(j->path), "%s/a.nettrace", j->dir);
	j->config = (struct collect_pieces_config){
		.file = { .path = j->path },
		.max_bytes = 20000,
		.keep = 1000,
	};
	assert_int_equal(uv_loop_init(&j->loop), 0);
	*state = j;
	return 0;
}

/* Names in the directory, sorted; the caller frees them. */
static int list(const struct job *j, struct dirent ***ret)
{
	int n = scandir(j->dir, ret, NULL, alphasort), kept = 0;

	assert_true(n >= 2);
	for (int i = 0; i < n; i++) {
		if ((*ret)[i]->d_name[0] == '.')
			free((*ret)[i]);
		else
			(*ret)[kept++] = (*ret)[i];
	}
	return kept;
}

static int teardown(void **state)
{
	struct job *j = *state;
	struct dirent **names;
	int n = list(j, &names);

	assert_int_equal(uv_loop_close(&j->loop), 0);
	for (int i = 0; i < n; i++) {
		char path[400];

		snprintf(path, sizeof(path), "%s/%s", j->dir, names[i]->d_name);
		unlink(path);
		free(names[i]);
	}
	free(names);
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

	(void)error;
	j->failed++;
}

static const struct trace_file_events file_events = { on_full, on_ready, on_failed };

static void on_done(void *ctx, const struct collect_pieces_result *r)
{
	struct job *j = ctx;

	j->done = true;
	j->result = *r;
	j->result_path[0] = '\0';
	if (r->file.path)
		snprintf(j->result_path, sizeof(j->result_path), "%s", r->file.path);
}

static void write_all(struct job *j, struct collect_pieces *p, const uint8_t *bytes, size_t len)
{
	for (size_t at = 0; at < len; at += 10000) {
		collect_pieces_write(p, bytes + at, len - at < 10000 ? len - at : 10000);
		uv_run(&j->loop, UV_RUN_NOWAIT);
		while (j->full > j->ready)
			uv_run(&j->loop, UV_RUN_ONCE);
	}
}

static void end(struct job *j, struct collect_pieces *p)
{
	collect_pieces_finish(p, on_done, j);
	uv_run(&j->loop, UV_RUN_DEFAULT);
	assert_true(j->done);
}

static enum nt_status count(void *ctx, const struct nt_event *ev)
{
	uint64_t *n = ctx;

	*n += ev->def->provider_id != NT_PROV_RUNDOWN && ev->def->provider_id != NT_PROV_EVENTPIPE;
	return NT_OK;
}

/* Events of one trace that are not its rundown's; it must be whole. */
static uint64_t read_whole(const uint8_t *bytes, size_t len, struct nt_stats *ret_stats)
{
	static const struct nt_sink sink = { .event = count };
	uint64_t n = 0;
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, NT_TIME_ORDER, &sink, &n);

	assert_non_null(d);
	assert_int_equal(nt_decoder_push(d, bytes, len), NT_OK);
	assert_int_equal(nt_decoder_finish(d), NT_OK);
	*ret_stats = *nt_decoder_borrow_stats(d);
	nt_decoder_free(d);
	return n;
}

/* Reads all files of the directory; returns their events. */
static uint64_t read_files(const struct job *j, int *ret_files)
{
	struct dirent **names;
	int n = list(j, &names);
	uint64_t events = 0;

	for (int i = 0; i < n; i++) {
		char path[400];
		struct nt_stats stats;
		size_t len;
		uint8_t *bytes;

		snprintf(path, sizeof(path), "%s/%s", j->dir, names[i]->d_name);
		bytes = fixture_read(path, &len);
		assert_non_null(bytes);
		events += read_whole(bytes, len, &stats);
		assert_int_equal(stats.lost, 0);
		assert_int_equal(stats.unknown_stacks + stats.unknown_metadata, 0);
		free(bytes);
		free(names[i]);
	}
	free(names);
	*ret_files = n;
	return events;
}

static void exists(const struct job *j, const char *name, bool want)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/%s", j->dir, name);
	assert_int_equal(access(path, F_OK) == 0, want);
}

static void every_piece_is_a_trace(void **state)
{
	struct job *j = *state;

	for (unsigned packed = 0; packed < 2; packed++) {
		struct collect_pieces *p;
		int files;

		j->config.file.compress = packed;
		snprintf(j->path, sizeof(j->path), "%s/a%u.nettrace%s", j->dir, packed,
			 packed ? ".zst" : "");
		p = collect_pieces_open(&j->loop, &j->config, &file_events, j);
		assert_non_null(p);
		write_all(j, p, trace, trace_bytes);
		end(j, p);
		assert_true(j->result.pieces > 3);
		assert_int_equal(j->result.removed, 0);
		assert_int_equal(j->result.file.error, 0);
		assert_false(j->result.file.dropped);
		assert_int_equal(read_files(j, &files), (packed + 1) * whole_events);
	}
	assert_int_equal(j->failed, 0);
	exists(j, "a0.0001.nettrace", true);
	exists(j, "a1.0002.nettrace.zst", true);
	assert_non_null(strstr(j->result_path, ".nettrace.zst"));
}

static void add_trailer(void *ctx, struct trace_file *file, uint64_t since_ns)
{
	struct job *j = ctx;
	struct nt_trailer t;
	const uint8_t *block;
	size_t len;

	assert_true(since_ns >= j->since_ns);
	assert_true(since_ns <= uv_hrtime());
	j->since_ns = since_ns;
	j->trailers++;
	nt_trailer_init(&t, &nt_alloc_default);
	nt_trailer_begin(&t, NT_TRAILER_CPU_INFO);
	nt_trailer_u64(&t, j->trailers);
	nt_trailer_end(&t);
	assert_int_equal(nt_trailer_finish(&t, &block, &len), NT_OK);
	assert_true(trace_file_trailer(file, block, len));
	nt_trailer_done(&t);
}

/* Every second file takes long to be written to its end: the next one is whole before it. */
static void add_long_trailer(void *ctx, struct trace_file *file, uint64_t since_ns)
{
	struct job *j = ctx;
	size_t len = j->trailers++ % 2 ? 1 : 32 << 20;
	uint8_t *bytes = calloc(1, len);

	(void)since_ns;
	assert_non_null(bytes);
	assert_true(trace_file_trailer(file, bytes, len));
	free(bytes);
}

/* Each has its own, behind a whole trace. */
static void every_piece_has_its_trailer(void **state)
{
	struct job *j = *state;
	struct collect_pieces *p;
	struct dirent **names;
	int n;

	j->config.ending = add_trailer;
	p = collect_pieces_open(&j->loop, &j->config, &file_events, j);
	assert_non_null(p);
	write_all(j, p, trace, trace_bytes);
	end(j, p);
	assert_int_equal(j->trailers, j->result.pieces);
	assert_int_equal(read_files(j, &n), whole_events);
	n = list(j, &names);
	for (int i = 0; i < n; i++) {
		enum { BLOCK_BYTES = 24 + 8 + 8 + 24 };
		struct nt_span records;
		struct nt_trailer_record r;
		char path[400];
		size_t len;
		uint8_t *bytes;

		snprintf(path, sizeof(path), "%s/%s", j->dir, names[i]->d_name);
		bytes = fixture_read(path, &len);
		assert_non_null(bytes);
		assert_null(nt_trailer_open(bytes + len - BLOCK_BYTES, BLOCK_BYTES, &records));
		assert_true(nt_trailer_next(&records, &r));
		assert_int_equal(nt_u64(&r.body), i + 1);
		free(bytes);
		free(names[i]);
	}
	free(names);
}

static void only_the_latest_are_kept(void **state)
{
	struct job *j = *state;
	struct collect_pieces *p;
	char last[64];
	int files;

	j->config.keep = 2;
	p = collect_pieces_open(&j->loop, &j->config, &file_events, j);
	assert_non_null(p);
	write_all(j, p, trace, trace_bytes);
	end(j, p);
	assert_true(read_files(j, &files) < whole_events);
	assert_int_equal(files, 2);
	assert_int_equal(j->result.removed, j->result.pieces - 2);
	exists(j, "a.0001.nettrace", false);
	snprintf(last, sizeof(last), "a.%04u.nettrace", (unsigned)j->result.pieces);
	exists(j, last, true);
	assert_non_null(strstr(j->result_path, last));
}

/* Whole in another order than they were begun in. */
static void latest_by_number(void **state)
{
	struct job *j = *state;
	struct collect_pieces *p;
	char name[64] = "";

	j->config.keep = 2;
	j->config.ending = add_long_trailer;
	p = collect_pieces_open(&j->loop, &j->config, &file_events, j);
	assert_non_null(p);
	write_all(j, p, trace, trace_bytes);
	end(j, p);
	assert_true(j->result.pieces > 3);
	for (unsigned i = 1; i <= j->result.pieces; i++) {
		snprintf(name, sizeof(name), "a.%04u.nettrace", i);
		exists(j, name, i + 2 > j->result.pieces);
	}
	assert_non_null(strstr(j->result_path, name));
}

/* A target that is killed: the last piece is closed all the same. */
static void a_cut_stream(void **state)
{
	struct job *j = *state;
	struct collect_pieces *p;
	int files;

	j->config.max_bytes = 1;
	p = collect_pieces_open(&j->loop, &j->config, &file_events, j);
	assert_non_null(p);
	write_all(j, p, trace, trace_bytes / 4);
	end(j, p);
	assert_true(j->result.pieces > 1);
	assert_in_range(read_files(j, &files), 1, whole_events - 1);
	assert_int_equal(files, j->result.pieces);
}

static void nothing_is_left_of_what_is_not_wanted(void **state)
{
	struct job *j = *state;
	struct dirent **names;

	for (unsigned at = 0; at < 3; at++) { /* before, within, and behind the stream */
		struct collect_pieces *p =
			collect_pieces_open(&j->loop, &j->config, &file_events, j);

		assert_non_null(p);
		write_all(j, p, trace, trace_bytes * at / 2);
		collect_pieces_discard(p);
		end(j, p);
		assert_int_equal(list(j, &names), 0);
		free(names);
		assert_null(j->result.file.path);
	}
	assert_int_equal(j->failed, 0);
}

static void nothing_came(void **state)
{
	struct job *j = *state;
	struct collect_pieces *p = collect_pieces_open(&j->loop, &j->config, &file_events, j);
	struct dirent **names;

	assert_non_null(p);
	end(j, p);
	assert_int_equal(list(j, &names), 0);
	free(names);
	assert_null(j->result.file.path);
	assert_int_equal(j->result.pieces, 0);
}

static void touch(const struct job *j, const char *name)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", j->dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
}

/* Pieces of another run would be taken for ours. */
static void old_pieces(void **state)
{
	struct job *j = *state;
	struct collect_pieces *p;

	touch(j, "a.0007.nettrace");
	touch(j, "a.x0007.nettrace"); /* these are not */
	touch(j, "a.0007.nettrace.zst");
	touch(j, "b.0007.nettrace");
	assert_null(collect_pieces_open(&j->loop, &j->config, &file_events, j));
	j->config.file.force = true;
	p = collect_pieces_open(&j->loop, &j->config, &file_events, j);
	assert_non_null(p);
	exists(j, "a.0007.nettrace", false);
	exists(j, "a.x0007.nettrace", true);
	exists(j, "a.0007.nettrace.zst", true);
	exists(j, "b.0007.nettrace", true);
	end(j, p);
}

static void no_such_directory(void **state)
{
	struct job *j = *state;

	j->config.file.path = "/tmp/drd-no-such/a.nettrace";
	assert_null(collect_pieces_open(&j->loop, &j->config, &file_events, j));
}

/* A limit on the file's size stands for a full disk. */
static void full_disk(void **state)
{
	struct job *j = *state;
	struct collect_pieces *p = collect_pieces_open(&j->loop, &j->config, &file_events, j);
	struct rlimit old, small = { 10000, RLIM_INFINITY };
	struct dirent **names;
	int n;

	assert_non_null(p);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	write_all(j, p, trace, trace_bytes);
	end(j, p);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(j->failed, 1);
	assert_int_equal(j->result.file.error, EFBIG);
	assert_true(j->result.file.dropped);
	n = list(j, &names);
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	assert_true(n <= 4); /* it does not go on and on */
}

static void garbage(void **state)
{
	struct job *j = *state;
	struct collect_pieces *p = collect_pieces_open(&j->loop, &j->config, &file_events, j);

	assert_non_null(p);
	write_all(j, p, (const uint8_t *)"this is no trace at all, is it?", 31);
	end(j, p);
	assert_int_equal(j->failed, 1);
	assert_int_equal(j->result.pieces, 0);
}

static int group_setup(void **state)
{
	(void)state;
	trace = fixture_read("cpu-net10.nettrace.zst", &trace_bytes);
	if (!trace)
		return -1;
	whole_events = read_whole(trace, trace_bytes, &whole);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	free(trace);
	return 0;
}

#define JOB(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOB(every_piece_is_a_trace),
		JOB(every_piece_has_its_trailer),
		JOB(only_the_latest_are_kept),
		JOB(latest_by_number),
		JOB(a_cut_stream),
		JOB(nothing_is_left_of_what_is_not_wanted),
		JOB(nothing_came),
		JOB(old_pieces),
		JOB(no_such_directory),
		JOB(full_disk),
		JOB(garbage),
	};

	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests_name("collect_pieces", tests, group_setup, group_teardown);
}
