/* SPDX-License-Identifier: MIT */
#include "src/trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "nettrace/trailer.h"
#include "src/base/log.h"
#include "src/base/output.h"
#include "src/base/trace_name.h"

enum {
	HIGH_WATER = 8 << 20, /* waiting bytes at which the reader is asked to pause */
	LOW_WATER = 2 << 20,
	MAX_PARTIAL = 1 << 20, /* of a block: more is written before the block is whole */
	FIRST_ROOM = 256 << 10,
	EDGE_BYTES = 64 << 10, /* at least this far apart are the places where a file may be cut */
	MAX_EDGES = 160,
	DEFAULT_LEVEL = 3,
	MAX_NUMBER = 1000,
};

struct bytes {
	uint8_t *data;
	size_t len, room;
};

/* Places in a buffer behind which a block ends, rising. */
struct edges {
	size_t at[MAX_EDGES];
	size_t count;
};

struct trace_file {
	uv_loop_t *loop;
	uv_work_t work;
	const struct trace_file_events *events;
	void *ctx;
	void (*done)(void *ctx, const struct trace_file_result *result);
	void *done_ctx;
	struct trace_file_config config;
	char *path, *aside;
	int fd;
	bool in_place; /* standard output, a pipe, a device: cannot be cut or renamed */

	/* The loop's side. */
	struct bytes fill; /* gathering */
	struct edges fill_edges;
	uint64_t taken; /* bytes of the stream before fill[0] */
	uint64_t whole; /* where in the stream the last whole block ends */
	bool working, paused, never_pause, dropping, finishing, said_failed, discard;

	/* The writing thread's side while it works. */
	struct bytes busy;
	struct edges busy_edges;
	bool busy_whole; /* busy ends where a block ends */
	bool last; /* nothing follows busy */
	ZSTD_CCtx *zstd;
	struct bytes packed;
	struct bytes trailer; /* for the end; empty: none, or written */
	int trailer_error;
	uint64_t file_bytes, stream_bytes; /* written */
	uint64_t safe_file_bytes, safe_stream_bytes; /* of these, up to a block's end */
	int error;
};

/* --- the writing thread --- */

static void write_all(struct trace_file *f, const uint8_t *p, size_t len)
{
	while (len > 0 && f->error == 0) {
		ssize_t n = write(f->fd, p, len);

		if (n >= 0) {
			p += n;
			len -= (size_t)n;
			f->file_bytes += (uint64_t)n;
		} else if (errno == EAGAIN) {
			/* Somebody else made our standard output non-blocking. */
			struct pollfd wait = { .fd = f->fd, .events = POLLOUT };

			poll(&wait, 1, -1);
		} else if (errno != EINTR) {
			f->error = errno;
		}
	}
}

/* Flushed, so that a reader of the file gets all of it. */
static void write_packed(struct trace_file *f, const uint8_t *p, size_t len, bool last)
{
	ZSTD_inBuffer in = { p, len, 0 };
	ZSTD_EndDirective mode = last ? ZSTD_e_end : ZSTD_e_flush;
	size_t left = 1;

	while (left != 0 && f->error == 0) {
		ZSTD_outBuffer out = { f->packed.data, f->packed.room, 0 };

		left = ZSTD_compressStream2(f->zstd, &out, &in, mode);
		if (ZSTD_isError(left)) {
			f->error = ENOMEM;
			return;
		}
		write_all(f, f->packed.data, out.pos);
	}
}

/*
 * Cuts the file behind the last whole block.  A zstd frame is closed by an empty last block: three
 * bytes, for which there is room because more was cut off.
 */
static void cut(struct trace_file *f)
{
	static const uint8_t frame_end[3] = { 1, 0, 0 };
	int error = f->error;

	if (f->in_place || (f->safe_file_bytes == 0 && !f->zstd))
		return; /* half a block is better than nothing */
	if (ftruncate(f->fd, (off_t)f->safe_file_bytes) != 0 ||
	    lseek(f->fd, (off_t)f->safe_file_bytes, SEEK_SET) < 0)
		return;
	f->file_bytes = f->safe_file_bytes;
	f->stream_bytes = f->safe_stream_bytes;
	f->error = 0;
	if (f->zstd && f->file_bytes > 0)
		write_all(f, frame_end, sizeof(frame_end));
	f->error = error;
}

/* Bytes from..to of busy; whole: a block ends there. */
static void write_part(struct trace_file *f, size_t from, size_t to, bool whole)
{
	const uint8_t *p = f->busy.data + from;

	if (f->zstd)
		write_packed(f, p, to - from, f->last && to == f->busy.len);
	else
		write_all(f, p, to - from);
	if (f->error != 0)
		return;
	f->stream_bytes += to - from;
	if (whole) {
		f->safe_file_bytes = f->file_bytes;
		f->safe_stream_bytes = f->stream_bytes;
	}
}

/* In a compressed file it is a frame that holds no data.  Half of it is worse than nothing. */
static void write_trailer(struct trace_file *f)
{
	uint8_t head[NT_TRAILER_ZSTD_HEAD_BYTES];
	uint64_t end = f->file_bytes;

	nt_trailer_zstd_head(f->trailer.len, head);
	if (f->zstd)
		write_all(f, head, sizeof(head));
	write_all(f, f->trailer.data, f->trailer.len);
	f->trailer.len = 0;
	if (f->error == 0)
		return;
	f->trailer_error = f->error;
	if (!f->in_place && ftruncate(f->fd, (off_t)end) == 0) {
		f->file_bytes = end;
		f->error = 0;
	}
}

static void do_write(uv_work_t *work)
{
	struct trace_file *f = work->data;
	size_t at = 0;

	for (size_t i = 0; i < f->busy_edges.count && f->error == 0; i++) {
		size_t edge = f->busy_edges.at[i];

		if (edge >= f->busy.len)
			break;
		write_part(f, at, edge, true);
		at = edge;
	}
	if (f->error == 0)
		write_part(f, at, f->busy.len, f->busy_whole);
	if (f->error != 0)
		cut(f);
	else if (f->last && f->trailer.len > 0)
		write_trailer(f);
}

/* --- the loop's side --- */

static bool append(struct bytes *b, const uint8_t *p, size_t len)
{
	if (len > b->room - b->len) {
		size_t room = b->room ? b->room : FIRST_ROOM;
		uint8_t *data;

		while (room - b->len < len)
			room *= 2;
		data = realloc(b->data, room);
		if (!data)
			return false;
		b->data = data;
		b->room = room;
	}
	if (len > 0)
		memcpy(b->data + b->len, p, len);
	b->len += len;
	return true;
}

static void finish_now(struct trace_file *f);
static void on_written(uv_work_t *work, int status);

static void note_edge(struct edges *e, size_t at)
{
	size_t last = e->count ? e->at[e->count - 1] : 0;

	if (at >= last + EDGE_BYTES && e->count < MAX_EDGES)
		e->at[e->count++] = at;
}

/* The bytes of fill that end with a whole block. */
static size_t whole_of_fill(const struct trace_file *f)
{
	uint64_t n = f->whole > f->taken ? f->whole - f->taken : 0;

	return n < f->fill.len ? (size_t)n : f->fill.len;
}

static void report_failure(struct trace_file *f)
{
	f->dropping = true;
	f->fill.len = 0;
	if (f->said_failed)
		return;
	f->said_failed = true;
	if (f->events->failed)
		f->events->failed(f->ctx, f->error);
}

static void start_writing(struct trace_file *f, size_t len, bool whole)
{
	struct bytes next = f->busy;

	next.len = 0;
	if (!append(&next, f->fill.data + len, f->fill.len - len)) {
		f->error = ENOMEM;
		report_failure(f);
		return;
	}
	f->busy = f->fill;
	f->busy.len = len;
	f->busy_edges = f->fill_edges;
	f->fill_edges.count = 0; /* what moved over is less than a block */
	f->fill = next;
	f->taken += len;
	f->busy_whole = whole;
	f->last = f->finishing && f->fill.len == 0;
	if (f->dropping)
		f->trailer.len = 0;
	f->work.data = f;
	f->working = uv_queue_work(f->loop, &f->work, do_write, on_written) == 0;
}

/* A file without its end has none: the block would be taken for what is missing. */
static bool wants_trailer(const struct trace_file *f)
{
	return f->trailer.len > 0 && !f->dropping && f->stream_bytes > 0;
}

static void consider_writing(struct trace_file *f)
{
	size_t whole = whole_of_fill(f);

	if (f->working || f->error != 0)
		return;
	if (f->finishing) {
		/* The rest of a block that was cut is part of the stream too. */
		if (f->fill.len > 0 || (f->zstd && !f->last && f->stream_bytes > 0) ||
		    wants_trailer(f))
			start_writing(f, f->fill.len, whole == f->fill.len);
	} else if (whole > 0) {
		start_writing(f, whole, true);
	} else if (f->fill.len > MAX_PARTIAL) {
		start_writing(f, f->fill.len, false);
	}
}

static void on_written(uv_work_t *work, int status)
{
	struct trace_file *f = work->data;

	(void)status;
	f->working = false;
	if (f->error != 0)
		report_failure(f);
	if (f->paused && f->fill.len < LOW_WATER) {
		f->paused = false;
		if (f->events->ready)
			f->events->ready(f->ctx);
	}
	consider_writing(f);
	if (f->finishing && !f->working)
		finish_now(f);
}

void trace_file_write(struct trace_file *f, const uint8_t *bytes, size_t len, uint64_t whole_bytes)
{
	if (f->dropping)
		return;
	if (f->never_pause && f->fill.len + len > HIGH_WATER) {
		f->dropping = true;
		f->fill.len = whole_of_fill(f);
		return;
	}
	if (!append(&f->fill, bytes, len)) {
		f->error = ENOMEM;
		report_failure(f);
		return;
	}
	f->whole = whole_bytes;
	note_edge(&f->fill_edges, whole_of_fill(f));
	consider_writing(f);
	if (!f->paused && !f->never_pause && f->fill.len > HIGH_WATER) {
		f->paused = true;
		if (f->events->full)
			f->events->full(f->ctx);
	}
}

bool trace_file_trailer(struct trace_file *f, const uint8_t *block, size_t len)
{
	f->trailer.len = 0;
	return append(&f->trailer, block, len);
}

void trace_file_never_pause(struct trace_file *f)
{
	f->never_pause = true;
}

void trace_file_discard(struct trace_file *f)
{
	f->discard = true;
	f->dropping = true;
	f->fill.len = 0;
}

bool trace_file_is_in_place(const struct trace_file *f)
{
	return f->in_place;
}

/* --- opening --- */

/*
 * The file written aside, locked as long as it is: a lock that can be had means that its writer is
 * gone.  Whoever clears away after dead writers may come between its making and its lock; then
 * there is another one.
 */
static int make_aside(struct trace_file *f)
{
	static const char end[] = ".part";

	for (;;) {
		free(f->aside);
		if (asprintf(&f->aside, "%s.XXXXXX%s", f->path, end) < 0) {
			f->aside = NULL;
			return -ENOMEM;
		}
		f->fd = mkostemps(f->aside, (int)strlen(end), O_CLOEXEC);
		if (f->fd < 0)
			return -errno;
		/* A file system that knows no locks is no reason not to record. */
		if ((flock(f->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) &&
		    (access(f->aside, F_OK) == 0 || errno != ENOENT))
			return 0;
		unlink(f->aside);
		close(f->fd);
		f->fd = -1;
	}
}

/* mkostemps() makes files for the owner only; this one shall be as open() would have made it. */
static int open_aside(struct trace_file *f)
{
	int error = make_aside(f);
	mode_t mask;

	if (error)
		return error;
	mask = umask(0);
	umask(mask);
	if (fchmod(f->fd, 0666 & ~mask) != 0 && errno != EPERM && errno != ENOTSUP)
		return -errno; /* EPERM, ENOTSUP: a file system that knows no modes */
	return 0;
}

static int open_path(struct trace_file *f)
{
	struct stat st;

	f->fd = -1;
	if (strcmp(f->config.path, "-") == 0) {
		f->in_place = true;
		f->fd = STDOUT_FILENO;
		return 0;
	}
	f->path = strdup(f->config.path);
	if (!f->path)
		return -ENOMEM;
	if (stat(f->path, &st) == 0 && S_ISDIR(st.st_mode))
		return -EISDIR;
	if (stat(f->path, &st) == 0 && !S_ISREG(st.st_mode)) {
		f->in_place = true; /* a named pipe, /dev/null */
		f->fd = out_open_in_place(f->path);
		return f->fd < 0 ? -errno : 0;
	}
	if (!f->config.force && !f->config.renumber && lstat(f->path, &st) == 0)
		return -EEXIST;
	return open_aside(f);
}

static int open_zstd(struct trace_file *f)
{
	int level = f->config.level ? f->config.level : DEFAULT_LEVEL;

	if (!f->config.compress)
		return 0;
	f->zstd = ZSTD_createCCtx();
	f->packed.room = ZSTD_CStreamOutSize();
	f->packed.data = malloc(f->packed.room);
	if (!f->zstd || !f->packed.data ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(f->zstd, ZSTD_c_compressionLevel, level)))
		return -ENOMEM;
	return 0;
}

static void release(struct trace_file *f)
{
	ZSTD_freeCCtx(f->zstd);
	free(f->packed.data);
	free(f->trailer.data);
	free(f->fill.data);
	free(f->busy.data);
	free(f->path);
	free(f->aside);
	free(f);
}

struct trace_file *trace_file_open(uv_loop_t *loop, const struct trace_file_config *config,
				   const struct trace_file_events *events, void *ctx)
{
	struct trace_file *f = calloc(1, sizeof(*f));
	int error;

	if (!f) {
		log_error("cannot write '%s': out of memory", config->path);
		return NULL;
	}
	f->loop = loop;
	f->config = *config;
	f->events = events;
	f->ctx = ctx;
	error = open_path(f);
	if (error == 0)
		error = open_zstd(f);
	if (error == 0)
		return f;
	log_error("cannot write '%s': %s", config->path,
		  error == -EEXIST ? "it exists" : strerror(-error));
	if (error == -EEXIST)
		log_advice("give another name, or --force to replace it");
	if (f->fd >= 0 && !f->in_place)
		close(f->fd);
	if (f->fd >= 0 && f->aside)
		unlink(f->aside);
	release(f);
	return NULL;
}

/* --- finishing --- */

static int take_name(const struct trace_file *f, const char *path)
{
	if (f->config.force)
		return rename(f->aside, path) == 0 ? 0 : -errno;
	if (link(f->aside, path) == 0) {
		unlink(f->aside);
		return 0;
	}
	if (errno == EEXIST || access(path, F_OK) == 0)
		return -EEXIST;
	/* A file system without hard links. */
	return rename(f->aside, path) == 0 ? 0 : -errno;
}

/*
 * Gives the file its name.  If somebody took it meanwhile, the next free one: nothing that was
 * recorded is thrown away for a name.
 */
static int publish(struct trace_file *f)
{
	int error = take_name(f, f->path);

	for (unsigned n = 2; error == -EEXIST && n < MAX_NUMBER; n++) {
		char *path = trace_name_numbered(f->path, n);

		if (!path)
			return -ENOMEM;
		error = take_name(f, path);
		if (error == 0) {
			if (!f->config.renumber)
				log_warn("'%s' exists by now: the trace is in '%s'", f->path, path);
			free(f->path);
			f->path = path;
			return 0;
		}
		free(path);
	}
	return error;
}

static void finish_now(struct trace_file *f)
{
	struct trace_file_result r = { 0 };
	int error;

	if (f->trailer_error != 0)
		log_warn("'%s' lacks what was measured outside the process: %s", f->config.path,
			 strerror(f->trailer_error));
	if (f->aside && (f->file_bytes == 0 || f->discard)) {
		unlink(f->aside);
	} else if (f->aside) {
		error = publish(f);
		if (error != 0) {
			log_error("cannot rename '%s' to '%s': %s", f->aside, f->path,
				  strerror(-error));
			log_advice("the trace is in '%s'", f->aside);
			free(f->path);
			f->path = f->aside;
			f->aside = NULL;
			f->error = f->error ? f->error : -error;
		}
	}
	/* Only now: the lock is on it until it has its name. */
	if (f->path && close(f->fd) != 0 && f->error == 0)
		f->error = errno;
	r.error = f->error;
	r.dropped = f->dropping;
	r.stream_bytes = f->stream_bytes;
	r.file_bytes = f->file_bytes;
	r.path = f->file_bytes > 0 && !f->discard ? f->path : NULL;
	f->done(f->done_ctx, &r);
	release(f);
}

void trace_file_finish(struct trace_file *f,
		       void (*done)(void *ctx, const struct trace_file_result *result), void *ctx)
{
	f->done = done;
	f->done_ctx = ctx;
	f->finishing = true;
	consider_writing(f);
	if (!f->working)
		finish_now(f);
}
