/* SPDX-License-Identifier: MIT */
#include "src/collect/collect_stream.h"

#include <stdlib.h>
#include <string.h>

#include "nettrace/trailer_perf.h"
#include "src/base/log.h"
#include "src/base/trace_name.h"
#include "src/collect/collect_live.h"
#include "src/collect/collect_perf.h"
#include "src/proc/proc.h"
#include "src/proc/proc_cpu.h"

struct collect_stream {
	const struct collect_settings *settings;
	const struct collect_stream_events *events;
	void *ctx;
	void (*done)(void *ctx, const struct collect_pieces_result *result);
	void *done_ctx;
	struct analysis *analysis;
	struct nt_decoder *decoder; /* of the analysis */
	struct trace_file *file; /* at most one of the two */
	struct collect_pieces *pieces;
	struct stop_when *stop_when;
	struct collect_live *live; /* NULL: nothing would be said */
	struct nt_decoder *tap; /* for settings->tap */
	struct nt_decoder *task_counter;
	uv_loop_t *loop;
	struct proc_cpu *cpu; /* NULL: not measured, or not any more */
	struct collect_perf *perf; /* NULL: no samples of the kernel */
	uint64_t tasks;
	uint64_t bytes;
	bool compressed; /* the file */
	bool stopping;
};

/* --- the file --- */

static void on_full(void *ctx)
{
	struct collect_stream *s = ctx;

	s->events->full(s->ctx);
}

static void on_ready(void *ctx)
{
	struct collect_stream *s = ctx;

	s->events->ready(s->ctx);
}

static void on_failed(void *ctx, int error)
{
	struct collect_stream *s = ctx;

	s->events->failed(s->ctx, error);
}

static bool on_unnamed(void *ctx)
{
	struct collect_stream *s = ctx;

	return s->events->unnamed(s->ctx);
}

/* What was measured since then goes behind the trace. */
static void add_trailer(struct collect_stream *s, struct trace_file *file, int64_t since_ns,
			const struct nt_perf *perf)
{
	struct nt_trailer t;
	const uint8_t *block;
	size_t len;

	nt_trailer_init(&t, &nt_alloc_default);
	an_cputime_save(analysis_cputime(s->analysis), since_ns, INT64_MAX, &t);
	if (perf)
		nt_perf_save(perf, &t);
	if (!nt_trailer_is_empty(&t) &&
	    (nt_trailer_finish(&t, &block, &len) != NT_OK || !trace_file_trailer(file, block, len)))
		log_warn("what was measured outside the process is not in the file: there was no "
			 "memory for it");
	nt_trailer_done(&t);
}

static void on_piece_ending(void *ctx, struct trace_file *file, uint64_t since_ns)
{
	enum { BEFORE_MS = 500 }; /* so old may be what comes in its first bytes */
	struct collect_stream *s = ctx;

	if (s->cpu)
		proc_cpu_read(s->cpu);
	add_trailer(s, file, (int64_t)(since_ns - BEFORE_MS * UINT64_C(1000000)), NULL);
}

static const struct trace_file_events file_events = { on_full, on_ready, on_failed };

static bool open_file(struct collect_stream *s, uv_loop_t *loop, const char *path, bool renumber)
{
	const struct collect_settings *settings = s->settings;
	struct collect_pieces_config config = {
		.file = {
			.path = path,
			.force = settings->force,
			.renumber = renumber,
			.compress = trace_name_is_compressed(path),
			.level = settings->zstd_level,
		},
		.max_bytes = settings->max_bytes,
		.keep = settings->keep,
		.unnamed = on_unnamed,
		.ending = on_piece_ending,
	};

	s->compressed = config.file.compress;
	if (settings->keep)
		s->pieces = collect_pieces_open(loop, &config, &file_events, s);
	else
		s->file = trace_file_open(loop, &config.file, &file_events, s);
	return s->pieces || s->file;
}

static enum nt_status on_tap(void *ctx, const struct nt_event *ev)
{
	struct collect_stream *s = ctx;

	return s->settings->tap->event(s->settings->tap->ctx, nt_decoder_borrow_trace(s->tap), ev);
}

/* A decoder of its own: the analysis's may hold events back until their time has come. */
static const struct nt_sink tap_sink = { .event = on_tap };

struct collect_stream *collect_stream_open(uv_loop_t *loop, const struct collect_settings *settings,
					   const char *path, bool renumber,
					   const struct collect_stream_events *events, void *ctx)
{
	struct collect_stream *s = calloc(1, sizeof(*s));
	bool enough;

	if (!s) {
		log_error("cannot collect: out of memory");
		return NULL;
	}
	s->loop = loop;
	s->settings = settings;
	s->events = events;
	s->ctx = ctx;
	s->analysis = analysis_new(&settings->options, settings->sections, settings->section_count,
				   settings->conditions);
	if (settings->stop_event)
		s->stop_when = stop_when_new(settings->stop_event);
	if (!settings->quiet && collect_live_is_useful(&settings->session))
		s->live = collect_live_new(); /* without it the report says it at the end */
	if (settings->tap)
		s->tap = nt_decoder_new(NULL, NULL, NT_SKIP_STACKS, &tap_sink, s);
	enough = s->analysis && (s->stop_when || !settings->stop_event) &&
		 (s->tap || !settings->tap);
	if (!enough)
		log_error("cannot collect: out of memory");
	if (!enough || (path && !open_file(s, loop, path, renumber)))
		return collect_stream_free(s);
	s->decoder = analysis_decoder(s->analysis);
	return s;
}

struct collect_stream *collect_stream_free(struct collect_stream *s)
{
	if (!s)
		return NULL;
	collect_stream_count_tasks(s, false);
	proc_cpu_close(s->cpu);
	collect_perf_close(s->perf);
	analysis_free(s->analysis);
	nt_decoder_free(s->tap);
	stop_when_free(s->stop_when);
	collect_live_free(s->live);
	free(s);
	return NULL;
}

/* --- CPU times --- */

static void measure(void *ctx)
{
	struct collect_stream *s = ctx;

	proc_cpu_read(s->cpu);
}

int collect_stream_measure(struct collect_stream *s, int32_t pid)
{
	const struct proc_cpu_config config = { .root = PROC_ROOT, .pid = pid };
	int error;

	s->cpu = proc_cpu_start(s->loop, &config, analysis_cputime(s->analysis), &error);
	if (!s->cpu)
		return error;
	analysis_set_measure(s->analysis, measure, s);
	return 0;
}

bool collect_stream_sample(struct collect_stream *s, int32_t pid, struct perf_refusal *ret)
{
	s->perf = collect_perf_start(s->loop, s->settings, pid, ret);
	return s->perf;
}

void collect_stream_measured(struct collect_stream *s)
{
	if (s->perf)
		collect_perf_stop(s->perf);
	if (s->cpu)
		proc_cpu_read(s->cpu);
	analysis_set_measure(s->analysis, NULL, NULL);
	s->cpu = proc_cpu_close(s->cpu);
}

/* --- the stream --- */

static bool is_ignored(void *ctx, const struct nt_event_def *def)
{
	const struct collect_stream *s = ctx;

	return !event_ids_pass(s->settings->event_ids, def);
}

void collect_stream_filter(struct collect_stream *s)
{
	if (s->settings->event_ids)
		analysis_ignore(s->analysis, is_ignored, s);
}

static void look_for_end(struct collect_stream *s, const uint8_t *bytes, size_t len)
{
	if (s->stop_when && stop_when_push(s->stop_when, bytes, len))
		s->events->stop(s->ctx, COLLECT_STOP_EVENT);
	else if (s->settings->max_bytes && !s->settings->keep && s->bytes >= s->settings->max_bytes)
		s->events->stop(s->ctx, COLLECT_STOP_SIZE);
}

void collect_stream_push(struct collect_stream *s, const uint8_t *bytes, size_t len)
{
	enum nt_status st = nt_decoder_push(s->decoder, bytes, len);

	s->bytes += len;
	/* A stream that we cannot read is kept all the same, just as it came. */
	if (s->file)
		trace_file_write(s->file, bytes, len,
				 st == NT_OK ? nt_decoder_borrow_stats(s->decoder)->whole_bytes
					     : s->bytes);
	if (s->pieces)
		collect_pieces_write(s->pieces, bytes, len);
	collect_live_push(s->live, bytes, len);
	if (s->tap && nt_decoder_push(s->tap, bytes, len) != NT_OK && !s->stopping)
		s->events->stop(s->ctx, COLLECT_STOP_TAP);
	if (s->task_counter && nt_decoder_push(s->task_counter, bytes, len) < 0)
		collect_stream_count_tasks(s, false);
	if (!s->stopping)
		look_for_end(s, bytes, len);
}

enum nt_status collect_stream_name(struct collect_stream *s, const struct nt_event *ev)
{
	enum nt_status st = analysis_name(s->analysis, ev);

	if (st == NT_OK && s->pieces)
		st = collect_pieces_name(s->pieces, ev);
	return st;
}

void collect_stream_names_pending(struct collect_stream *s, bool pending)
{
	if (s->pieces)
		collect_pieces_hold(s->pieces, pending);
}

void collect_stream_stopping(struct collect_stream *s)
{
	s->stopping = true;
	if (s->perf)
		collect_perf_stop(s->perf);
	if (s->cpu)
		proc_cpu_read(s->cpu);
	s->live = collect_live_free(s->live);
	collect_stream_count_tasks(s, false);
	if (s->file)
		trace_file_never_pause(s->file);
	if (s->pieces)
		collect_pieces_stopping(s->pieces);
}

/* --- tasks --- */

static enum nt_status count_task(void *ctx, const struct nt_event *ev)
{
	struct collect_stream *s = ctx;

	s->tasks += ev->def->provider_id == NT_PROV_TPL;
	return NT_OK;
}

/* A decoder of its own: the analysis's may hold events back until their time has come. */
void collect_stream_count_tasks(struct collect_stream *s, bool on)
{
	static const struct nt_sink sink = { .event = count_task };

	s->task_counter = nt_decoder_free(s->task_counter);
	if (on)
		s->task_counter = nt_decoder_new(NULL, NULL, NT_SKIP_STACKS, &sink, s);
}

uint64_t collect_stream_tasks(const struct collect_stream *s)
{
	return s->tasks;
}

bool collect_stream_can_restart(const struct collect_stream *s)
{
	return !s->file || !trace_file_is_in_place(s->file);
}

struct analysis *collect_stream_analysis(struct collect_stream *s)
{
	return s->analysis;
}

const struct nt_stats *collect_stream_stats(const struct collect_stream *s)
{
	return nt_decoder_borrow_stats(s->decoder);
}

bool collect_stream_live(struct collect_stream *s, int64_t now_ns, struct an_live *ret)
{
	return collect_live_look(s->live, now_ns, ret);
}

/* --- the end --- */

static void on_file_done(void *ctx, const struct trace_file_result *r)
{
	struct collect_stream *s = ctx;
	const struct collect_pieces_result result = { .file = *r };

	s->file = NULL;
	s->done(s->done_ctx, &result);
}

static void on_pieces_done(void *ctx, const struct collect_pieces_result *r)
{
	struct collect_stream *s = ctx;

	s->pieces = NULL;
	s->done(s->done_ctx, r);
}

/*
 * Behind a stream that is cut inside a block the trailer would be taken for the rest of it; in a
 * compressed file it is apart.
 */
static bool takes_trailer(const struct collect_stream *s)
{
	const struct nt_stats *stats = collect_stream_stats(s);

	return stats->ended || s->compressed || stats->whole_bytes == stats->bytes;
}

void collect_stream_finish(struct collect_stream *s, bool discard,
			   void (*done)(void *ctx, const struct collect_pieces_result *result),
			   void *ctx)
{
	const struct nt_perf *perf = NULL;

	s->done = done;
	s->done_ctx = ctx;
	collect_stream_measured(s);
	if (s->perf && !discard)
		perf = collect_perf_finish(s->perf);
	analysis_set_perf(s->analysis, perf);
	if (s->file && takes_trailer(s))
		add_trailer(s, s->file, INT64_MIN, perf);
	if (discard && s->file)
		trace_file_discard(s->file);
	if (discard && s->pieces)
		collect_pieces_discard(s->pieces);
	if (s->file)
		trace_file_finish(s->file, on_file_done, s);
	else if (s->pieces)
		collect_pieces_finish(s->pieces, on_pieces_done, s);
	else
		done(ctx, &(const struct collect_pieces_result){ 0 });
}
