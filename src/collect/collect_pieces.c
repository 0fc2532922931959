/* SPDX-License-Identifier: MIT */
#include "src/collect/collect_pieces.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/trace_name.h"
#include "src/collect/pieces.h"

enum {
	MAX_FINISHING = 2, /* files still being written when reading has to wait for the disk */
	RUNDOWN_COMPLETE = 146, /* DCEndComplete */
};

struct piece_file {
	struct collect_pieces *owner;
	struct trace_file *file;
	uint64_t taken; /* bytes handed to it */
	uint64_t since_ns; /* uv_hrtime() when it began */
	uint64_t number;
};

/* A whole file. */
struct kept_file {
	uint64_t number;
	char *path;
};

struct collect_pieces {
	uv_loop_t *loop;
	struct collect_pieces_config config;
	char *path;
	const struct trace_file_events *events;
	void *ctx;
	void (*done)(void *ctx, const struct collect_pieces_result *result);
	void *done_ctx;
	struct pieces *pieces;
	struct nt_decoder *decoder;
	struct piece_file *current; /* NULL between two pieces, and once writing failed */
	size_t finishing; /* files on their way */
	bool full, current_full; /* as told, and of the current file */
	bool stopping, ending, failed, discard;
	bool rundown_complete;
	struct kept_file *kept; /* by number: they need not become whole in that order */
	size_t kept_count;
	struct collect_pieces_result result;
};

/* --- back-pressure --- */

static void tell_full(struct collect_pieces *p)
{
	bool full = !p->stopping && (p->current_full || p->finishing > MAX_FINISHING);

	if (full == p->full)
		return;
	p->full = full;
	if (full && p->events->full)
		p->events->full(p->ctx);
	if (!full && p->events->ready)
		p->events->ready(p->ctx);
}

static void on_full(void *ctx)
{
	struct piece_file *f = ctx;

	if (f != f->owner->current)
		return;
	f->owner->current_full = true;
	tell_full(f->owner);
}

static void on_ready(void *ctx)
{
	struct piece_file *f = ctx;

	if (f != f->owner->current)
		return;
	f->owner->current_full = false;
	tell_full(f->owner);
}

static void fail(struct collect_pieces *p, int error)
{
	p->result.file.dropped = true;
	if (p->failed)
		return;
	p->failed = true;
	p->result.file.error = error;
	if (p->events->failed)
		p->events->failed(p->ctx, error);
}

static void on_failed(void *ctx, int error)
{
	struct piece_file *f = ctx;

	fail(f->owner, error);
}

static const struct trace_file_events file_events = { on_full, on_ready, on_failed };

/* --- whole files --- */

static void remove_oldest(struct collect_pieces *p)
{
	char *path = p->kept[0].path;

	if (unlink(path) != 0 && errno != ENOENT)
		log_warn("cannot remove '%s': %s", path, strerror(errno));
	free(path);
	p->kept_count--;
	memmove(p->kept, p->kept + 1, p->kept_count * sizeof(*p->kept));
	p->result.removed++;
}

static void keep_file(struct collect_pieces *p, uint64_t number, const char *path)
{
	struct kept_file *kept = reallocarray(p->kept, p->kept_count + 1, sizeof(*kept));
	char *copy = strdup(path);
	size_t at = p->kept_count;

	if (kept)
		p->kept = kept;
	if (!kept || !copy) {
		log_warn("out of memory: '%s' will not be removed by itself", path);
		free(copy);
		return;
	}
	for (; at > 0 && kept[at - 1].number > number; at--)
		kept[at] = kept[at - 1];
	kept[at] = (struct kept_file){ .number = number, .path = copy };
	p->kept_count++;
	while (p->kept_count > (p->discard ? 0 : p->config.keep))
		remove_oldest(p);
}

static void all_done(struct collect_pieces *p);

static void on_file_done(void *ctx, const struct trace_file_result *r)
{
	struct piece_file *f = ctx;
	struct collect_pieces *p = f->owner;
	uint64_t number = f->number;

	free(f);
	p->finishing--;
	p->result.file.stream_bytes += r->stream_bytes;
	p->result.file.file_bytes += r->file_bytes;
	if (r->dropped)
		p->result.file.dropped = true;
	if (r->error)
		fail(p, r->error);
	if (r->path) {
		p->result.pieces++;
		keep_file(p, number, r->path);
	}
	tell_full(p);
	if (p->ending && p->finishing == 0 && !p->current)
		all_done(p);
}

/* --- the current file --- */

static bool open_next(struct collect_pieces *p, uint64_t number)
{
	struct piece_file *f = calloc(1, sizeof(*f));
	struct trace_file_config config = p->config.file;
	char *path = trace_name_piece(p->path, number);

	if (f && path) {
		f->owner = p;
		f->number = number;
		f->since_ns = uv_hrtime();
		config.path = path;
		f->file = trace_file_open(p->loop, &config, &file_events, f);
	} else {
		log_error("cannot write the trace: out of memory");
	}
	free(path);
	if (!f || !f->file) {
		free(f);
		return false;
	}
	if (p->stopping)
		trace_file_never_pause(f->file);
	p->current = f;
	p->current_full = false;
	return true;
}

static void finish_current(struct collect_pieces *p)
{
	struct piece_file *f = p->current;

	p->current = NULL;
	p->current_full = false;
	p->finishing++;
	if (p->config.ending)
		p->config.ending(p->ctx, f->file, f->since_ns);
	trace_file_finish(f->file, on_file_done, f);
}

static void on_write(void *ctx, const uint8_t *bytes, size_t len)
{
	struct collect_pieces *p = ctx;

	if (p->failed)
		return;
	if (!p->current && !open_next(p, pieces_count(p->pieces))) {
		fail(p, EIO);
		return;
	}
	/* What comes here ends where a block ends. */
	p->current->taken += len;
	trace_file_write(p->current->file, bytes, len, p->current->taken);
}

static void on_next(void *ctx)
{
	struct collect_pieces *p = ctx;

	if (p->current)
		finish_current(p);
	tell_full(p);
}

static bool on_unnamed(void *ctx)
{
	struct collect_pieces *p = ctx;

	return p->config.unnamed && p->config.unnamed(p->ctx);
}

static const struct pieces_output output = { on_write, on_next, on_unnamed };

/* --- the stream --- */

static enum nt_status on_event(void *ctx, const struct nt_event *ev)
{
	struct collect_pieces *p = ctx;

	if (ev->def->provider_id == NT_PROV_RUNDOWN) {
		/* A process that ends sends its rundown without having been asked. */
		pieces_stopping(p->pieces);
		if (ev->def->event_id == RUNDOWN_COMPLETE)
			p->rundown_complete = true;
	}
	return pieces_event(p->pieces, ev);
}

static enum nt_status on_block(void *ctx, const struct nt_raw_block *block)
{
	struct collect_pieces *p = ctx;

	return pieces_block(p->pieces, block);
}

static const struct nt_sink sink = { .event = on_event, .block = on_block };

void collect_pieces_write(struct collect_pieces *p, const uint8_t *bytes, size_t len)
{
	enum nt_status st = nt_decoder_push(p->decoder, bytes, len);

	/* What a damaged stream holds is the analysis's to say; the files end before it. */
	if (st < 0 && !p->failed && !p->discard)
		fail(p, st == NT_ENOMEM ? ENOMEM : st == NT_ELIMIT ? EFBIG : EILSEQ);
}

enum nt_status collect_pieces_name(struct collect_pieces *p, const struct nt_event *ev)
{
	return pieces_event(p->pieces, ev);
}

void collect_pieces_hold(struct collect_pieces *p, bool hold)
{
	pieces_hold(p->pieces, hold);
}

void collect_pieces_stopping(struct collect_pieces *p)
{
	p->stopping = true;
	pieces_stopping(p->pieces);
	if (p->current)
		trace_file_never_pause(p->current->file);
	tell_full(p);
}

void collect_pieces_discard(struct collect_pieces *p)
{
	p->discard = true;
	if (p->current)
		trace_file_discard(p->current->file);
	while (p->kept_count > 0)
		remove_oldest(p);
}

/* --- begin and end --- */

static void release(struct collect_pieces *p)
{
	pieces_free(p->pieces);
	nt_decoder_free(p->decoder);
	for (size_t i = 0; i < p->kept_count; i++)
		free(p->kept[i].path);
	free(p->kept);
	free(p->path);
	free(p);
}

static void all_done(struct collect_pieces *p)
{
	if (p->kept_count > 0)
		p->result.file.path = p->kept[p->kept_count - 1].path;
	p->result.unnamed = pieces_dropped(p->pieces);
	p->done(p->done_ctx, &p->result);
	release(p);
}

void collect_pieces_finish(struct collect_pieces *p,
			   void (*done)(void *ctx, const struct collect_pieces_result *result),
			   void *ctx)
{
	p->done = done;
	p->done_ctx = ctx;
	/* A cut stream says so elsewhere; what there is of it becomes a whole file. */
	(void)!nt_decoder_finish(p->decoder);
	if (!p->failed && !p->discard && pieces_finish(p->pieces, p->rundown_complete) != NT_OK)
		fail(p, ENOMEM);
	p->ending = true;
	if (p->current)
		finish_current(p);
	else if (p->finishing == 0)
		all_done(p);
}

/* Whether a name in the directory is that of a piece: STEM.NUMBER.END. */
static bool is_piece(const char *name, const char *stem, size_t stem_len, const char *end)
{
	const char *number = name + stem_len + 1;
	size_t digits;

	if (strncmp(name, stem, stem_len) != 0 || name[stem_len] != '.')
		return false;
	digits = strspn(number, "0123456789");
	return digits >= 4 && strcmp(number + digits, end) == 0;
}

/*
 * Pieces of an earlier run would be taken for ours.  *ret_name: one of them, NULL if there is none;
 * with force they are removed.
 */
static void look_for_old(const struct collect_pieces *p, char **ret_name)
{
	const char *slash = strrchr(p->path, '/'), *stem = slash ? slash + 1 : p->path;
	char *folder = slash ? strndup(p->path, (size_t)(slash - p->path) + 1) : strdup(".");
	const char *end = trace_name_ending(p->path);
	DIR *dir = folder ? opendir(folder) : NULL;
	struct dirent *de;

	*ret_name = NULL;
	while (dir && (de = readdir(dir)) != NULL) {
		if (!is_piece(de->d_name, stem, (size_t)(end - stem), end))
			continue;
		if (p->config.file.force && unlinkat(dirfd(dir), de->d_name, 0) == 0)
			continue;
		free(*ret_name);
		*ret_name = strdup(de->d_name);
	}
	if (dir)
		closedir(dir);
	free(folder);
}

/* Says why not. */
static bool may_begin(struct collect_pieces *p)
{
	char *old;

	if (p->config.file.renumber)
		return true;
	look_for_old(p, &old);
	if (!old)
		return true;
	log_error("cannot write '%s' in pieces: '%s' exists", p->path, old);
	log_advice("give another name, or --force to remove the old pieces");
	free(old);
	return false;
}

struct collect_pieces *collect_pieces_open(uv_loop_t *loop,
					   const struct collect_pieces_config *config,
					   const struct trace_file_events *events, void *ctx)
{
	struct collect_pieces *p = calloc(1, sizeof(*p));

	if (!p) {
		log_error("cannot write '%s': out of memory", config->file.path);
		return NULL;
	}
	p->loop = loop;
	p->config = *config;
	p->events = events;
	p->ctx = ctx;
	p->path = strdup(config->file.path);
	p->pieces = pieces_new(&nt_alloc_default, config->max_bytes, &output, p);
	p->decoder = nt_decoder_new(NULL, NULL, 0, &sink, p);
	if (!p->path || !p->pieces || !p->decoder)
		log_error("cannot write '%s': out of memory", config->file.path);
	else if (may_begin(p) && open_next(p, 1))
		return p;
	release(p);
	return NULL;
}
