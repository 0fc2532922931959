/* SPDX-License-Identifier: MIT */
#ifndef SRC_TRACE_ANALYSIS_H
#define SRC_TRACE_ANALYSIS_H

/*
 * A set of analyzers with the decoder that feeds them, and the printing of their report.  Who
 * pushes the bytes is not its business: report reads a file, collect a live session.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzers/analyzer.h"
#include "analyzers/cpu/cputime.h"
#include "nettrace/nettrace.h"
#include "nettrace/perf_store.h"
#include "src/base/output.h"
#include "src/report/fail_if.h"
#include "src/report/report_out.h"

struct analysis;

enum report_format { REPORT_TEXT, REPORT_JSON };

/*
 * sections: names, count of them; 0 means all.  They must be valid, see analysis_unknown_section(),
 * and live as long as the analysis.  conditions: judged by analysis_print(); the sections they need
 * are analysed as well; NULL: none.  NULL: out of memory.
 */
struct analysis *analysis_new(const struct an_options *options, const char *const *sections,
			      size_t count, const struct fail_if *conditions);
struct analysis *analysis_free(struct analysis *a); /* returns NULL */

/* The first of the names that is no section, or NULL when all are. */
const char *analysis_unknown_section(const char *const *sections, size_t count);
/* "summary", then the classes of analyzers that have a section; NULL behind the last. */
const char *analysis_section(size_t i);

/* Push the bytes into this; finish or abort it before the report. */
struct nt_decoder *analysis_decoder(struct analysis *a);

/* See an_engine_ignore() and an_engine_name(). */
void analysis_ignore(struct analysis *a, bool (*ignored)(void *ctx, const struct nt_event_def *def),
		     void *ctx);
enum nt_status analysis_name(struct analysis *a, const struct nt_event *ev);

/*
 * CPU times of threads, for whoever measures them to fill: by itself (live), or from the block
 * behind the end of a trace.  What comes after the samples serves for totals only.
 */
struct an_cputime *analysis_cputime(struct analysis *a);
/* Is called when samples come that are newer than the last measurement.  NULL: there will be none.
 */
void analysis_set_measure(struct analysis *a, void (*measure)(void *ctx), void *ctx);
/*
 * Takes the records of such a block.  NULL: done.  Else why it cannot be used, in static words:
 * then nothing of it was used.
 */
const char *analysis_load_trailer(struct analysis *a, const uint8_t *block, size_t len);

/*
 * CPU samples that were taken beside the trace; p must live until the report is printed.  What a
 * trailer brings is taken by analysis_load_trailer().  NULL: none.
 */
void analysis_set_perf(struct analysis *a, const struct nt_perf *p);

/* What the recording asked for; ends at a NULL name; must live until the report is printed. */
void analysis_set_enabled(struct analysis *a, const struct an_provider *enabled);
/* Why the file to be named in the report lacks the end of the stream; static text. */
void analysis_set_file_cut(struct analysis *a, const char *why);

/* How long was recorded, as the report has it: from the session's start to its stop; -1 unknown. */
int64_t analysis_observed_ns(const struct analysis *a);
/* Why the stream has no end; why must live until the report is printed. */
void analysis_set_cut(struct analysis *a, enum an_cut cut, const char *why);

/* All threads of the process as the system had them at the end; must live until the report. */
struct analysis_threads {
	const struct an_os_thread *rows; /* by rising id */
	size_t count;
	uint64_t watched_ns;
};

void analysis_set_threads(struct analysis *a, const struct analysis_threads *threads);

/* What the text shows, instead of all sections; its lists must live until then. */
void analysis_set_choice(struct analysis *a, const struct report_choice *choice);

/* see gets the top of the finished report before it is printed; it is dead afterwards. */
void analysis_see(struct analysis *a, void (*see)(void *ctx, const struct an_value *root),
		  void *ctx);

/* What collect knows of the child it started; NULL where there was none. */
struct analysis_child {
	bool exited; /* exit_code counts; else signal */
	int exit_code;
	int signal;
	bool ended_by_us; /* told to end when the recording was over */
	int32_t pid;
};

/*
 * Prints the report of what was pushed so far; out NULL: it is only judged.  file: the name to
 * show, or NULL.  Returns an exit code: EXIT_DONE; EXIT_CONDITION when a condition holds (said);
 * EXIT_FAILED when out of memory (said).  Faults of the stream are the caller's to report: see
 * analysis_fault().
 */
int analysis_print(struct analysis *a, struct out *out, enum report_format format, const char *file,
		   const struct analysis_child *child);

/*
 * Says on standard error what is wrong with the stream, if anything, and returns the exit code
 * it means: EXIT_DONE; EXIT_FAILED when not even the header could be read (then there is no
 * report); EXIT_PARTIAL when it went wrong later.
 */
int analysis_fault(const struct nt_decoder *d, const char *file);

#endif
