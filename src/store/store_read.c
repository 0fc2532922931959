/* SPDX-License-Identifier: MIT */

/* Questions to the store of samples. */

#include <stdlib.h>
#include <string.h>

#include "src/base/log.h"
#include "src/store/store_internal.h"

#define COLUMNS                                                                                    \
	"sample.id, time_ms, host, word.text, command_line, runtime, build, pid, process_start, "  \
	"duration_ms, events, lost, complete, own_cpu_us, trace_file, trace_bytes, findings"

static int64_t end_of(const struct store_filter *f)
{
	return f->end_ms ? f->end_ms : INT64_MAX;
}

/* The number of the process's name: 0 where any will do, -1 where no sample has it. */
static bool find_target(struct store *s, const struct store_filter *f, int64_t *ret)
{
	*ret = 0;
	return !f->name || store_find_word(s, f->name, ret);
}

static const char *text(sqlite3_stmt *q, int column)
{
	return (const char *)sqlite3_column_text(q, column);
}

static uint64_t number(sqlite3_stmt *q, int column)
{
	int64_t v = sqlite3_column_int64(q, column);

	return v < 0 ? 0 : (uint64_t)v;
}

static void read_sample(sqlite3_stmt *q, struct store_sample *ret)
{
	*ret = (struct store_sample){
		.id = sqlite3_column_int64(q, 0),
		.time_ms = sqlite3_column_int64(q, 1),
		.host = text(q, 2),
		.name = text(q, 3),
		.command_line = text(q, 4),
		.runtime = text(q, 5),
		.build = text(q, 6),
		.pid = (int32_t)sqlite3_column_int64(q, 7),
		.process_start = number(q, 8),
		.duration_ms = number(q, 9),
		.events = number(q, 10),
		.lost = number(q, 11),
		.complete = sqlite3_column_int64(q, 12) != 0,
		.own_cpu_us = number(q, 13),
		.trace_file = text(q, 14),
		.trace_bytes = number(q, 15),
		.finding_count = (size_t)number(q, 16),
	};
	if (!store_is_name(ret->trace_file))
		ret->trace_file = NULL;
}

bool store_list(struct store *s, const struct store_filter *f,
		bool (*each)(void *ctx, const struct store_sample *sample), void *ctx)
{
	int64_t target;
	sqlite3_stmt *q;
	int status;

	if (!find_target(s, f, &target))
		return false;
	q = store_prepare(s,
			  "SELECT * FROM (SELECT " COLUMNS
			  " FROM sample JOIN word ON word.id = sample.target WHERE time_ms >= ?1"
			  " AND time_ms < ?2 AND (?3 = 0 OR target = ?3)"
			  " ORDER BY time_ms DESC, sample.id DESC LIMIT ?4)"
			  " ORDER BY 2, 1",
			  "iiii", f->begin_ms, end_of(f), target,
			  f->limit ? (int64_t)f->limit : INT64_C(-1));
	if (!q)
		return false;
	while ((status = sqlite3_step(q)) == SQLITE_ROW) {
		struct store_sample sample;

		read_sample(q, &sample);
		if (!each(ctx, &sample))
			break;
	}
	return store_finish(s, q, status);
}

/* --- one sample, whole --- */

struct whole {
	struct store_sample sample;
	struct store_metric *metrics;
	struct store_method *methods;
	struct store_finding *findings;
	char **texts; /* what the above point to */
	size_t text_count;
	bool failed;
};

/* One more of count, with room for twice as many each time that is a power of two. */
static void *grow(struct whole *w, void *list, size_t count, size_t bytes)
{
	void *grown = list;

	if ((count & (count - 1)) == 0)
		grown = realloc(list, (count ? 2 * count : 1) * bytes);
	if (!grown) {
		w->failed = true;
		return list;
	}
	return grown;
}

static const char *keep(struct whole *w, const char *t)
{
	char *copy = t ? strdup(t) : NULL;

	if (!t)
		return NULL;
	if (!w->failed)
		w->texts = grow(w, w->texts, w->text_count, sizeof(*w->texts));
	if (!copy || w->failed) {
		free(copy);
		w->failed = true;
		return "";
	}
	w->texts[w->text_count++] = copy;
	return copy;
}

static void take_metric(struct whole *w, sqlite3_stmt *q)
{
	w->metrics = grow(w, w->metrics, w->sample.metric_count, sizeof(*w->metrics));
	if (!w->failed)
		w->metrics[w->sample.metric_count++] =
			(struct store_metric){ keep(w, text(q, 0)), sqlite3_column_double(q, 1) };
}

static void take_method(struct whole *w, sqlite3_stmt *q)
{
	w->methods = grow(w, w->methods, w->sample.method_count, sizeof(*w->methods));
	if (!w->failed)
		w->methods[w->sample.method_count++] =
			(struct store_method){ keep(w, text(q, 0)), sqlite3_column_double(q, 1),
					       sqlite3_column_double(q, 2) };
}

static void take_finding(struct whole *w, sqlite3_stmt *q)
{
	w->findings = grow(w, w->findings, w->sample.finding_count, sizeof(*w->findings));
	if (!w->failed)
		w->findings[w->sample.finding_count++] =
			(struct store_finding){ keep(w, text(q, 0)), keep(w, text(q, 1)),
						keep(w, text(q, 2)), keep(w, text(q, 3)) };
}

static bool take_rows(struct store *s, struct whole *w, const char *sql,
		      void (*take)(struct whole *w, sqlite3_stmt *q))
{
	sqlite3_stmt *q = store_prepare(s, sql, "i", w->sample.id);
	int status = SQLITE_DONE;

	if (!q)
		return false;
	while (!w->failed && (status = sqlite3_step(q)) == SQLITE_ROW)
		take(w, q);
	if (w->failed)
		log_error("cannot read the store: out of memory");
	return store_finish(s, q, status) && !w->failed;
}

static bool take_sample(struct store *s, int64_t id, struct whole *w, bool *ret_found)
{
	sqlite3_stmt *q = store_prepare(s,
					"SELECT " COLUMNS " FROM sample JOIN word ON word.id = "
					"sample.target WHERE sample.id = ?1",
					"i", id);
	int status;

	if (!q)
		return false;
	status = sqlite3_step(q);
	*ret_found = status == SQLITE_ROW;
	if (*ret_found) {
		read_sample(q, &w->sample);
		w->sample.finding_count = 0;
		w->sample.host = keep(w, w->sample.host);
		w->sample.name = keep(w, w->sample.name);
		w->sample.command_line = keep(w, w->sample.command_line);
		w->sample.runtime = keep(w, w->sample.runtime);
		w->sample.build = keep(w, w->sample.build);
		w->sample.trace_file = keep(w, w->sample.trace_file);
	}
	return store_finish(s, q, status);
}

static void drop(struct whole *w)
{
	for (size_t i = 0; i < w->text_count; i++)
		free(w->texts[i]);
	free(w->texts);
	free(w->metrics);
	free(w->methods);
	free(w->findings);
}

bool store_show(struct store *s, int64_t id,
		bool (*each)(void *ctx, const struct store_sample *sample), void *ctx,
		bool *ret_found)
{
	struct whole w = { 0 };
	bool ok = take_sample(s, id, &w, ret_found);

	if (ok && *ret_found) {
		ok = take_rows(s, &w,
			       "SELECT text, value FROM metric JOIN word ON word.id = name"
			       " WHERE sample = ?1 ORDER BY name",
			       take_metric) &&
		     take_rows(s, &w,
			       "SELECT text, exclusive, inclusive FROM method JOIN word"
			       " ON word.id = name WHERE sample = ?1"
			       " ORDER BY exclusive DESC, inclusive DESC, text",
			       take_method) &&
		     take_rows(s, &w,
			       "SELECT text, severity, title, evidence FROM finding JOIN word"
			       " ON word.id = finding.id WHERE sample = ?1 ORDER BY place",
			       take_finding);
		w.sample.metrics = w.metrics;
		w.sample.methods = w.methods;
		w.sample.findings = w.findings;
		if (ok)
			each(ctx, &w.sample);
	}
	drop(&w);
	return ok;
}

/* --- series --- */

struct series {
	struct trend_point *points;
	size_t count, room;
};

static bool add_point(struct series *v, int64_t time_ms, double value)
{
	if (v->count == v->room) {
		size_t room = v->room ? 2 * v->room : 256;
		struct trend_point *grown = realloc(v->points, room * sizeof(*grown));

		if (!grown) {
			log_error("cannot read the store: out of memory");
			return false;
		}
		v->points = grown;
		v->room = room;
	}
	v->points[v->count++] = (struct trend_point){ time_ms, value };
	return true;
}

#define METHOD_PREFIX "method:"

/* A sample that recorded the CPU and does not name the method had none, or too little to name. */
static const char method_series[] =
	"SELECT sample.time_ms, coalesce(exclusive, 0) FROM sample LEFT JOIN method"
	" ON method.sample = sample.id AND method.name = ?4"
	" WHERE sample.time_ms >= ?1 AND sample.time_ms < ?2 AND (?3 = 0 OR sample.target = ?3)"
	" AND cpu_recorded ORDER BY sample.time_ms, sample.id";
static const char metric_series[] =
	"SELECT time_ms, value FROM metric WHERE time_ms >= ?1 AND time_ms < ?2 AND target = ?3"
	" AND name = ?4 ORDER BY time_ms, sample";
static const char metric_series_of_all[] =
	"SELECT time_ms, value FROM metric WHERE time_ms >= ?1 AND time_ms < ?2 AND ?3 = 0"
	" AND name = ?4 ORDER BY time_ms, sample";

bool store_series(struct store *s, const struct store_filter *f, const char *metric,
		  struct trend_point **ret, size_t *ret_count)
{
	bool method = strncmp(metric, METHOD_PREFIX, strlen(METHOD_PREFIX)) == 0;
	const char *sql = f->name ? metric_series : metric_series_of_all;
	struct series v = { 0 };
	int64_t target, name;
	sqlite3_stmt *q;
	int status = SQLITE_DONE;
	bool ok;

	*ret = NULL;
	*ret_count = 0;
	if (!find_target(s, f, &target) ||
	    !store_find_word(s, method ? metric + strlen(METHOD_PREFIX) : metric, &name))
		return false;
	if (name < 0) /* nothing has it: for a method not 0, but unknown */
		return true;
	q = store_prepare(s, method ? method_series : sql, "iiii", f->begin_ms, end_of(f), target,
			  name);
	ok = q != NULL;
	while (ok && (status = sqlite3_step(q)) == SQLITE_ROW)
		ok = add_point(&v, sqlite3_column_int64(q, 0), sqlite3_column_double(q, 1));
	if (q)
		ok = store_finish(s, q, status) && ok;
	if (!ok) {
		free(v.points);
		return false;
	}
	*ret = v.points;
	*ret_count = v.count;
	return true;
}

bool store_metrics(struct store *s, const struct store_filter *f, char ***ret, size_t *ret_count)
{
	struct whole w = { 0 };
	sqlite3_stmt *q;
	int64_t target;
	int status = SQLITE_DONE;
	bool ok;

	if (!find_target(s, f, &target))
		return false;
	/* One probe of the index for each word, not one for each row. */
	q = store_prepare(s,
			  "SELECT text FROM word WHERE EXISTS (SELECT 1 FROM metric WHERE"
			  " metric.name = word.id AND (?3 = 0 OR target = ?3) AND time_ms >= ?1"
			  " AND time_ms < ?2) ORDER BY text",
			  "iii", f->begin_ms, end_of(f), target);
	ok = q != NULL;
	while (ok && !w.failed && (status = sqlite3_step(q)) == SQLITE_ROW)
		keep(&w, text(q, 0));
	if (q)
		ok = store_finish(s, q, status) && ok;
	if (w.failed)
		log_error("cannot read the store: out of memory");
	if (!ok || w.failed) {
		drop(&w);
		return false;
	}
	*ret = w.texts;
	*ret_count = w.text_count;
	return true;
}

/* --- methods --- */

static bool count_samples(struct store *s, const struct store_filter *f, int64_t target,
			  uint64_t *ret)
{
	sqlite3_stmt *q =
		store_prepare(s,
			      "SELECT count(*) FROM sample WHERE time_ms >= ?1 AND"
			      " time_ms < ?2 AND (?3 = 0 OR target = ?3) AND cpu_recorded",
			      "iii", f->begin_ms, end_of(f), target);
	int status;

	if (!q)
		return false;
	status = sqlite3_step(q);
	*ret = number(q, 0);
	return store_finish(s, q, status);
}

static int64_t next_day(int64_t time_ms)
{
	if (time_ms <= 0)
		return 0;
	return time_ms > INT64_MAX - STORE_DAY_MS ? INT64_MAX / STORE_DAY_MS
						  : (time_ms + STORE_DAY_MS - 1) / STORE_DAY_MS;
}

/* Whole days from their sums, the two ends from the samples. */
static const char top_methods[] =
	"WITH part(name, exclusive, inclusive, samples) AS ("
	" SELECT name, exclusive, inclusive, samples FROM method_day"
	"  WHERE day >= ?5 AND day < ?6 AND (?3 = 0 OR target = ?3)"
	" UNION ALL SELECT method.name, exclusive, inclusive, 1 FROM sample JOIN method"
	"  ON method.sample = sample.id WHERE (?3 = 0 OR sample.target = ?3)"
	"  AND sample.time_ms >= ?1 AND sample.time_ms < min(?2, ?7)"
	" UNION ALL SELECT method.name, exclusive, inclusive, 1 FROM sample JOIN method"
	"  ON method.sample = sample.id WHERE (?3 = 0 OR sample.target = ?3)"
	"  AND sample.time_ms >= max(?1, ?7, ?8) AND sample.time_ms < ?2)"
	" SELECT text, total(part.exclusive), total(part.inclusive), sum(samples) FROM part"
	" JOIN word ON word.id = name GROUP BY name ORDER BY 2 DESC, 3 DESC, 1 LIMIT ?4";

bool store_top_methods(struct store *s, const struct store_filter *f, size_t limit,
		       bool (*each)(void *ctx, const struct store_top *row), void *ctx,
		       uint64_t *ret_samples)
{
	int64_t target, first = next_day(f->begin_ms);
	int64_t last = end_of(f) == INT64_MAX ? INT64_MAX / STORE_DAY_MS : end_of(f) / STORE_DAY_MS;
	sqlite3_stmt *q;
	int status;

	if (!find_target(s, f, &target) || !count_samples(s, f, target, ret_samples))
		return false;
	if (last < first)
		last = first;
	q = store_prepare(s, top_methods, "iiiiiiii", f->begin_ms, end_of(f), target,
			  limit ? (int64_t)limit : INT64_C(-1), first, last, first * STORE_DAY_MS,
			  last * STORE_DAY_MS);
	if (!q)
		return false;
	while ((status = sqlite3_step(q)) == SQLITE_ROW) {
		struct store_top row = {
			.name = text(q, 0),
			.exclusive = sqlite3_column_double(q, 1) / (double)*ret_samples,
			.inclusive = sqlite3_column_double(q, 2) / (double)*ret_samples,
			.samples = number(q, 3),
		};

		if (!each(ctx, &row))
			break;
	}
	return store_finish(s, q, status);
}

bool store_markers(struct store *s, const struct store_filter *f,
		   bool (*each)(void *ctx, const struct store_marker *marker), void *ctx)
{
	int64_t target;
	sqlite3_stmt *q;
	int status;

	if (!find_target(s, f, &target))
		return false;
	q = store_prepare(
		s,
		"SELECT marker.time_ms, text, label FROM marker LEFT JOIN word ON word.id = target"
		" WHERE marker.time_ms >= ?1 AND marker.time_ms < ?2"
		" AND (?3 = 0 OR target IS NULL OR target = ?3)"
		" UNION ALL SELECT time_ms, text, 'build ' || build FROM (SELECT time_ms, target,"
		"  build, lag(build) OVER (PARTITION BY target ORDER BY time_ms, id) AS earlier"
		"  FROM sample WHERE build IS NOT NULL AND (?3 = 0 OR target = ?3))"
		"  JOIN word ON word.id = target WHERE earlier IS NOT NULL AND earlier <> build"
		"  AND time_ms >= ?1 AND time_ms < ?2"
		" ORDER BY 1",
		"iii", f->begin_ms, end_of(f), target);
	if (!q)
		return false;
	while ((status = sqlite3_step(q)) == SQLITE_ROW) {
		struct store_marker m = { sqlite3_column_int64(q, 0), text(q, 1), text(q, 2) };

		if (!each(ctx, &m))
			break;
	}
	return store_finish(s, q, status);
}
