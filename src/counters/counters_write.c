/* SPDX-License-Identifier: MIT */
#include "src/counters/counters_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/command.h"
#include "src/base/csv.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/output.h"
#include "src/base/version.h"

static const char json_end_text[] = "\n]}\n";

enum { JSON_END_BYTES = sizeof(json_end_text) - 1, TIME_BYTES = 40 };

struct counters_writer {
	struct out *out;
	enum counters_format format;
	char *path; /* NULL: standard output */
	off_t tail; /* JSON: where its end begins */
	bool filled; /* JSON: a reading is there */
};

/* --- opening --- */

static struct counters_writer *writer_free(struct counters_writer *w)
{
	free(w->out);
	free(w->path);
	free(w);
	return NULL;
}

static struct counters_writer *failed(struct counters_writer *w, const char *path)
{
	if (errno == EEXIST) {
		log_error("cannot write '%s': it exists", path);
		log_advice("--force replaces it");
	} else {
		log_error("cannot write '%s': %s", path, strerror(errno));
	}
	return writer_free(w);
}

/*
 * In place, as it is to be read while it grows.  An existing file is replaced by another one, never
 * written over: who reads it keeps what he has.
 */
static int open_new(const char *path, bool force)
{
	if (force && unlink(path) < 0 && errno != ENOENT)
		return -1;
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

struct counters_writer *counters_writer_open(const char *path, enum counters_format format,
					     bool force)
{
	bool to_stdout = !path || strcmp(path, "-") == 0;
	struct counters_writer *w = calloc(1, sizeof(*w));

	if (!w) {
		log_error("out of memory");
		return NULL;
	}
	w->format = format;
	if (to_stdout) {
		w->out = out_open(NULL, false);
		return w->out ? w : writer_free(w);
	}
	w->path = strdup(path);
	w->out = calloc(1, sizeof(*w->out));
	if (!w->path || !w->out) {
		errno = ENOMEM;
		return failed(w, path);
	}
	w->out->fd = open_new(path, force);
	return w->out->fd < 0 ? failed(w, path) : w;
}

/* --- CSV --- */

static const char csv_head[] =
	"time,provider,name,tags,kind,unit,statistic,value,instrument_id,twin,gap_ms,"
	"rate_scale_s\n";

static void iso_time(const struct counters_reading *r, char buf[TIME_BYTES])
{
	int64_t ns = r->start_unix_ns + r->row->time_ns, second = ns / 1000000000;
	time_t t;
	struct tm tm;
	size_t n;

	if (ns % 1000000000 < 0)
		second--;
	t = (time_t)second;
	buf[0] = '\0';
	if (!r->start_unix_ns || !gmtime_r(&t, &tm))
		return;
	n = strftime(buf, TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + n, TIME_BYTES - n, ".%06" PRId64 "Z", (ns - second * 1000000000) / 1000);
}

static void csv_number(struct out *o, double v)
{
	struct json j;

	if (!isfinite(v))
		return;
	json_init(&j, o, true);
	json_double(&j, NULL, v);
}

static void csv_line(struct out *o, const struct counters_reading *r, const char *statistic,
		     double v)
{
	const struct counter_row *row = r->row;
	char time[TIME_BYTES];

	if (isnan(v))
		return;
	iso_time(r, time);
	out_text(o, time);
	out_char(o, ',');
	csv_text(o, row->provider);
	out_char(o, ',');
	csv_text(o, row->name);
	out_char(o, ',');
	csv_text(o, row->tags);
	out_printf(o, ",%s,", counter_kinds[row->kind]);
	csv_text(o, row->unit);
	out_printf(o, ",%s,", statistic);
	csv_number(o, v);
	out_char(o, ',');
	if (row->instrument)
		out_uint(o, row->instrument);
	out_char(o, ',');
	if (r->twin)
		out_uint(o, r->twin);
	out_char(o, ',');
	if (r->gap_ns)
		out_ms(o, r->gap_ns);
	out_char(o, ',');
	if (strcmp(statistic, "rate") == 0)
		csv_number(o, counter_scale_seconds(row->scale));
	out_char(o, '\n');
}

/* What an interval added, for a second. */
static double per_second(const struct counters_reading *r)
{
	const double *v = r->row->v;
	double n, interval_s = r->interval_s;

	switch (r->row->kind) {
	case COUNTER_COUNTER:
		n = v[1];
		break;
	case COUNTER_HISTOGRAM:
	case COUNTER_EXPONENTIAL:
		n = v[0];
		break;
	case COUNTER_SUM:
		n = v[0];
		interval_s = v[2];
		break;
	default:
		return NAN;
	}
	return interval_s > 0 ? n / interval_s : NAN;
}

static void csv_reading(struct out *o, const struct counters_reading *r)
{
	const struct counter_row *row = r->row;
	const char *const *columns = counter_columns(row->kind);
	char name[COUNTER_QUANTILE_BYTES + 16];

	for (size_t i = 0; columns[i]; i++)
		csv_line(o, r, columns[i], row->v[i]);
	csv_line(o, r, "rate_per_s", per_second(r));
	for (size_t i = 0; i < row->quantile_count; i++) {
		size_t n = strspn(row->quantiles[i].name, "0123456789.eE-+");

		/* A name of another make would need quotes. */
		if (row->quantiles[i].name[n])
			continue;
		snprintf(name, sizeof(name), "quantile_%s", row->quantiles[i].name);
		csv_line(o, r, name, row->quantiles[i].value);
	}
}

/* --- JSON --- */

/* Whether a key stands before end as well: an object has each member once. */
static bool is_again(const char *tags, const char *end, size_t end_len)
{
	const char *key, *value;
	size_t key_len, len;

	while (counter_next_tag(&tags, &key, &key_len, &value, &len) && key < end)
		if (key_len == end_len && memcmp(key, end, key_len) == 0)
			return true;
	return false;
}

static void json_tags(struct json *j, const char *tags)
{
	const char *key, *value, *all = tags;
	size_t key_len, len;
	char name[COUNTER_TEXT_BYTES];

	json_begin_object(j, "tags");
	while (counter_next_tag(&tags, &key, &key_len, &value, &len)) {
		if (is_again(all, key, key_len))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)key_len, key);
		json_textn(j, name, value, len);
	}
	json_end(j);
}

static void text_or_null(struct json *j, const char *name, const char *text)
{
	json_text(j, name, *text ? text : NULL);
}

static void json_reading(struct json *j, const struct counters_reading *r)
{
	const struct counter_row *row = r->row;
	const char *const *columns = counter_columns(row->kind);
	char time[TIME_BYTES];

	iso_time(r, time);
	json_begin_object(j, NULL);
	text_or_null(j, "time", time);
	json_ms(j, "time_ms", row->time_ns);
	json_text(j, "provider", row->provider);
	json_text(j, "name", row->name);
	json_text(j, "kind", counter_kinds[row->kind]);
	text_or_null(j, "unit", row->unit);
	json_tags(j, row->tags);
	if (row->instrument)
		json_uint(j, "instrument_id", row->instrument);
	if (r->twin)
		json_uint(j, "twin", r->twin);
	if (r->gap_ns)
		json_ms(j, "gap_ms", r->gap_ns);
	for (size_t i = 0; columns[i]; i++)
		json_double(j, columns[i], row->v[i]);
	if (row->kind == COUNTER_SUM)
		json_double(j, "rate_scale_s", counter_scale_seconds(row->scale));
	if (!isnan(per_second(r)))
		json_double(j, "rate_per_s", per_second(r));
	if (row->kind == COUNTER_HISTOGRAM) {
		json_begin_object(j, "quantiles");
		for (size_t i = 0; i < row->quantile_count; i++)
			json_double(j, row->quantiles[i].name, row->quantiles[i].value);
		json_end(j);
	}
	json_end(j);
}

/* Cuts off what a full disk took of a reading, so that the file ends as it did before. */
static void mend(struct counters_writer *w)
{
	ssize_t n;

	if (w->format != COUNTERS_JSON || w->tail == 0)
		return;
	n = pwrite(w->out->fd, json_end_text, JSON_END_BYTES, w->tail);
	if (n == JSON_END_BYTES && ftruncate(w->out->fd, w->tail + JSON_END_BYTES) < 0)
		n = -1;
	if (n != JSON_END_BYTES)
		log_error("'%s' is damaged at its end", w->path);
}

/* Sends what was put together, in one piece. */
static bool send(struct counters_writer *w)
{
	off_t bytes = (off_t)w->out->used;

	if (w->format == COUNTERS_JSON && lseek(w->out->fd, w->tail, SEEK_SET) < 0)
		w->out->error = errno;
	out_flush(w->out);
	if (out_failed(w->out)) {
		mend(w);
		return false;
	}
	w->tail += bytes - JSON_END_BYTES;
	return true;
}

bool counters_writer_begin(struct counters_writer *w, int32_t pid, const char *name)
{
	struct json j;

	if (w->format == COUNTERS_CSV)
		out_text(w->out, csv_head);
	if (w->format == COUNTERS_JSON) {
		out_text(w->out, "{");
		json_init(&j, w->out, true);
		out_text(w->out,
			 "\"schema\": \"" REPORT_SCHEMA
			 "\", \"tool\": \"drdotnet-trace " PACKAGE_VERSION "\", \"process_id\": ");
		if (pid)
			out_int(w->out, pid);
		else
			out_text(w->out, "null");
		out_text(w->out, ", \"process\": ");
		json_text(&j, NULL, name);
		out_text(w->out, ", \"readings\": [");
		out_text(w->out, json_end_text);
	}
	return send(w);
}

bool counters_writer_put(struct counters_writer *w, const struct counters_reading *r)
{
	struct json j;

	switch (w->format) {
	case COUNTERS_CSV:
		csv_reading(w->out, r);
		break;
	case COUNTERS_NDJSON:
		json_init(&j, w->out, true);
		json_reading(&j, r);
		break;
	case COUNTERS_JSON:
		out_text(w->out, w->filled ? ",\n" : "\n");
		json_init(&j, w->out, true);
		json_reading(&j, r);
		if (w->out->used && w->out->buffer[w->out->used - 1] == '\n')
			w->out->used--;
		out_text(w->out, json_end_text);
		w->filled = true;
		break;
	}
	return send(w);
}

int counters_writer_close(struct counters_writer *w, int code)
{
	if (!w->path) {
		code = out_close(w->out, code);
		w->out = NULL;
		writer_free(w);
		return code;
	}
	if (close(w->out->fd) < 0 && !w->out->error)
		w->out->error = errno;
	if (w->out->error) {
		log_error("cannot write '%s': %s", w->path, strerror(w->out->error));
		code = EXIT_FAILED;
	}
	writer_free(w);
	return code;
}
