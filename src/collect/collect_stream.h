/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_COLLECT_STREAM_H
#define SRC_COLLECT_COLLECT_STREAM_H

/*
 * All that takes the bytes of one session: the analysis, the file or the pieces of one, and who
 * looks for a reason to stop.  A recording that begins anew throws one away and opens another.
 */

#include <uv.h>

#include "src/collect/collect.h"
#include "src/collect/collect_pieces.h"
#include "src/perf/perf_sampler.h"

struct collect_stream;

enum collect_stop_why {
	COLLECT_STOP_EVENT, /* the stopping event came */
	COLLECT_STOP_SIZE, /* --max-size is reached */
	COLLECT_STOP_TAP, /* the tap wants no more */
};

/* From collect_stream_push(), or from the loop. */
struct collect_stream_events {
	void (*full)(void *ctx); /* please pause; ready follows */
	void (*ready)(void *ctx);
	void (*failed)(void *ctx, int error); /* the file cannot be written: an errno; once */
	void (*stop)(void *ctx, enum collect_stop_why why); /* once */
	/* Names of code are missing; true: collect_stream_name() will get them. */
	bool (*unnamed)(void *ctx);
};

/*
 * path: of the file; "-"; NULL: none.  renumber: take another name if there is such a file.  NULL:
 * said on standard error.
 */
struct collect_stream *collect_stream_open(uv_loop_t *loop, const struct collect_settings *settings,
					   const char *path, bool renumber,
					   const struct collect_stream_events *events, void *ctx);
/* After collect_stream_finish(), or when nothing was opened. */
struct collect_stream *collect_stream_free(struct collect_stream *s); /* returns NULL */

/*
 * Measures from now on, outside the process, what its threads use, until collect_stream_finish();
 * the measurements go to the analysis and into the file.  0, or an errno: nothing is measured.
 */
int collect_stream_measure(struct collect_stream *s, int32_t pid);
/*
 * Samples its CPU use through the kernel, until collect_stream_stopping().  False: it cannot be,
 * ret says why.
 */
bool collect_stream_sample(struct collect_stream *s, int32_t pid, struct perf_refusal *ret);
/* The process is about to end, or has been stopped: a last reading. */
void collect_stream_measured(struct collect_stream *s);

/* The analysis leaves out what --event-filter does: the runtime could not.  Before any byte. */
void collect_stream_filter(struct collect_stream *s);
void collect_stream_push(struct collect_stream *s, const uint8_t *bytes, size_t len);
/* An event of an early rundown. */
enum nt_status collect_stream_name(struct collect_stream *s, const struct nt_event *ev);
/* Whether such events are still to come. */
void collect_stream_names_pending(struct collect_stream *s, bool pending);
/* A stop was asked for: nothing pauses from now on, and nothing asks for another stop. */
void collect_stream_stopping(struct collect_stream *s);

/* Whether what was written can be thrown away, to begin anew. */
bool collect_stream_can_restart(const struct collect_stream *s);
/* Counts the events of tasks from now on; false ends it. */
void collect_stream_count_tasks(struct collect_stream *s, bool on);
uint64_t collect_stream_tasks(const struct collect_stream *s);

struct analysis *collect_stream_analysis(struct collect_stream *s);
const struct nt_stats *collect_stream_stats(const struct collect_stream *s);

/* What should be said while it still goes on; now_ns: since the session began.  False: nothing. */
bool collect_stream_live(struct collect_stream *s, int64_t now_ns, struct an_live *ret);

/*
 * Ends the file, or removes it; then done from the loop, at once where there is no file.  The
 * analysis lives until collect_stream_free().
 */
void collect_stream_finish(struct collect_stream *s, bool discard,
			   void (*done)(void *ctx, const struct collect_pieces_result *result),
			   void *ctx);

#endif
