/* SPDX-License-Identifier: MIT */
#ifndef SRC_STORE_STORE_H
#define SRC_STORE_STORE_H

/*
 * What samples leave behind: a folder with a database of their numbers and findings, and their
 * traces as files.
 *
 *	DIR/samples.db            SQLite, write-ahead log, PRAGMA user_version is the schema's
 *	DIR/traces/NAME           the traces that are kept, .nettrace.zst
 *	DIR/lock/TARGET           locked while it is sampled
 *
 * A sample is one transaction: it is there whole or not at all, whenever the process or the machine
 * dies.  Its trace is complete under its name before that; a trace without a sample, and a sample
 * whose trace is gone, are put right by store_repair().  Nobody but the owner can read any of it.
 *
 * Functions that can fail return false after they have said why on standard error.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/store/trend.h"

struct store;

enum store_mode {
	STORE_READ, /* must be there */
	STORE_WRITE, /* is made where it is missing */
};

/* dir NULL: store_default_dir().  NULL: said. */
struct store *store_open(const char *dir, enum store_mode mode);
struct store *store_close(struct store *s); /* returns NULL */
/* $XDG_STATE_HOME/drdotnet-trace, ~/.local/state/drdotnet-trace, for root
 * /var/lib/drdotnet-trace.  The caller frees it; NULL: said. */
char *store_default_dir(void);
const char *store_dir(const struct store *s);
const char *store_traces_dir(const struct store *s);
/* Whether a file written to that path would be written over the database. */
bool store_would_replace(const struct store *s, const char *path);

/*
 * So that no target is sampled twice at once.  *ret_fd: to be closed when done, which the system
 * does when we die; -1: somebody else has it.
 */
bool store_lock_target(struct store *s, const char *target, int *ret_fd);

/* --- writing --- */

struct store_metric {
	const char *name; /* path of the JSON report: "gc.pause_p99_ms" */
	double value; /* finite; what was not recorded has no row */
};

struct store_method {
	const char *name;
	double exclusive, inclusive; /* processor time, in percent of one processor */
};

struct store_finding {
	const char *id, *severity, *title, *evidence;
};

struct store_sample {
	int64_t id; /* given by the store */
	int64_t time_ms; /* begin, since 1970, UTC */
	const char *host, *name, *command_line, *runtime; /* NULL: not known */
	const char *build; /* what tells one version of the program from another; NULL: not known */
	int32_t pid;
	uint64_t process_start; /* with pid: one life of a process */
	uint64_t duration_ms, events, lost;
	bool complete; /* the session ended as it should */
	uint64_t own_cpu_us; /* processor time of ours */
	const char *trace_file; /* below store_traces_dir(); NULL: not kept */
	uint64_t trace_bytes;
	size_t metric_count, method_count, finding_count;
	const struct store_metric *metrics;
	const struct store_method *methods;
	const struct store_finding *findings;
};

bool store_add(struct store *s, const struct store_sample *sample, int64_t *ret_id);

/* "Version 2.1 of Shop went live": regressions can be looked for at it. */
bool store_add_marker(struct store *s, int64_t time_ms, const char *name, const char *label);

/* Traces go when older than keep_ms (0: never) and while together larger than keep_bytes (0: any):
 * those without findings first, then the oldest.  Rows stay keep_rows_ms (0: for ever). */
struct store_limits {
	uint64_t keep_ms, keep_bytes, keep_rows_ms;
};

struct store_pruned {
	size_t traces, samples;
	uint64_t bytes;
};

bool store_prune(struct store *s, int64_t now_ms, const struct store_limits *limits,
		 struct store_pruned *ret);

/* Removes what runs that died have left: files written aside and traces that no sample names. */
bool store_repair(struct store *s, size_t *ret_removed);

/* --- reading --- */

struct store_filter {
	const char *name; /* of the process; NULL: all */
	int64_t begin_ms, end_ms; /* [begin, end); end 0: no end */
	size_t limit; /* the newest; 0: all */
};

/* All of these call back in order of time; what is handed over is dead afterwards.  A callback that
 * returns false ends the query, which still counts as done. */
bool store_list(struct store *s, const struct store_filter *f,
		bool (*each)(void *ctx, const struct store_sample *sample), void *ctx);
/* One, with its metrics, methods and findings.  *ret_found false: there is none. */
bool store_show(struct store *s, int64_t id,
		bool (*each)(void *ctx, const struct store_sample *sample), void *ctx,
		bool *ret_found);
/* A metric, or with "method:NAME" the exclusive processor time of a method (0 where a sample does
 * not name it).  *ret: to be freed; in order of time. */
bool store_series(struct store *s, const struct store_filter *f, const char *metric,
		  struct trend_point **ret, size_t *ret_count);
/* Names of metrics that any sample of the filter has, in order; each to be freed, and the list. */
bool store_metrics(struct store *s, const struct store_filter *f, char ***ret, size_t *ret_count);

struct store_top {
	const char *name;
	double exclusive, inclusive; /* mean over all samples of the filter */
	uint64_t samples; /* that name it */
};

/* Methods by their share, hottest first; at most limit. */
bool store_top_methods(struct store *s, const struct store_filter *f, size_t limit,
		       bool (*each)(void *ctx, const struct store_top *row), void *ctx,
		       uint64_t *ret_samples);

struct store_marker {
	int64_t time_ms;
	const char *name, *label;
};

/* Markers, and moments at which the build of a process of that name changed. */
bool store_markers(struct store *s, const struct store_filter *f,
		   bool (*each)(void *ctx, const struct store_marker *marker), void *ctx);

#endif
