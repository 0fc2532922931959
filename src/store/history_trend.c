/* SPDX-License-Identifier: MIT */

/* history trend and top: one number over time, and the hottest methods. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/csv.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/table.h"
#include "src/base/version.h"
#include "src/store/history.h"
#include "src/store/trend.h"
#include "src/store/when.h"

enum { WIDTH = 60 };

struct summary {
	double least, median, p95, most, last;
};

static bool summarize(const struct trend_point *p, size_t count, struct summary *ret)
{
	double *v = calloc(count, sizeof(*v));

	if (!v) {
		log_error("cannot read the store: out of memory");
		return false;
	}
	for (size_t i = 0; i < count; i++)
		v[i] = p[i].value;
	ret->median = trend_quantile(v, count, 0.5); /* puts them in order */
	ret->p95 = trend_quantile(v, count, 0.95);
	ret->least = v[0];
	ret->most = v[count - 1];
	ret->last = p[count - 1].value;
	free(v);
	return true;
}

static void trend_json(struct history_job *job, const struct trend_point *p, size_t count,
		       const struct summary *s)
{
	char time[WHEN_BYTES];
	struct json j;

	json_init(&j, job->out, false);
	json_begin_object(&j, NULL);
	json_text(&j, "schema", REPORT_SCHEMA);
	json_text(&j, "metric", job->word);
	json_text(&j, "name", job->filter.name);
	json_uint(&j, "samples", count);
	json_double(&j, "min", s->least);
	json_double(&j, "median", s->median);
	json_double(&j, "p95", s->p95);
	json_double(&j, "max", s->most);
	json_double(&j, "last", s->last);
	json_begin_array(&j, "points");
	for (size_t i = 0; i < count; i++) {
		json_begin_object(&j, NULL);
		json_text(&j, "time", when_text(p[i].time_ms, time));
		json_double(&j, "value", p[i].value);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
}

static void trend_csv(struct out *o, const struct trend_point *p, size_t count)
{
	char time[WHEN_BYTES];

	out_text(o, "time,value\n");
	for (size_t i = 0; i < count; i++)
		out_printf(o, "%s,%.17g\n", when_text(p[i].time_ms, time), p[i].value);
}

static bool trend_text(struct history_job *job, const struct trend_point *p, size_t count,
		       const struct summary *s)
{
	char line[3 * WIDTH + 1], begin[WHEN_BYTES], end[WHEN_BYTES];
	int64_t first = p[0].time_ms, last = p[count - 1].time_ms;

	if (!trend_sparkline(p, count, first, last, WIDTH, line)) {
		log_error("cannot draw the trend: out of memory");
		return false;
	}
	out_printf(job->out, "%s%s%s\n", job->word, job->filter.name ? " of " : "",
		   job->filter.name ? job->filter.name : "");
	out_printf(job->out, "  %s\n  %-*s%20s\n", line, WIDTH - 20, when_text(first, begin),
		   when_text(last, end));
	out_printf(job->out,
		   "  min %.4g   median %.4g   p95 %.4g   max %.4g   last %.4g   (%zu samples)\n",
		   s->least, s->median, s->p95, s->most, s->last, count);
	return true;
}

static int no_such_metric(struct history_job *job)
{
	struct store_filter all = { .name = job->filter.name, .begin_ms = INT64_MIN };
	const char *near = NULL, **names;
	char **list;
	size_t count;

	log_error("no sample has '%s'%s%s", job->word, job->filter.name ? " of " : "",
		  job->filter.name ? job->filter.name : "");
	if (!store_metrics(job->store, &all, &list, &count))
		return EXIT_FAILED;
	names = calloc(count + 1, sizeof(*names));
	for (size_t i = 0; names && i < count; i++)
		names[i] = list[i];
	if (names)
		near = opt_nearest(job->word, names);
	if (near && strcmp(near, job->word) == 0)
		log_advice("other times have it; see --since and --until");
	else if (near)
		log_advice("did you mean '%s'?", near);
	else
		log_advice("'drdotnet-trace history show ID' lists the metrics of a sample");
	free(names);
	for (size_t i = 0; i < count; i++)
		free(list[i]);
	free(list);
	return EXIT_FAILED;
}

static bool trend_print(struct history_job *job, const struct trend_point *p, size_t count)
{
	struct summary s;

	if (job->format == HISTORY_CSV) {
		trend_csv(job->out, p, count);
		return true;
	}
	if (!summarize(p, count, &s))
		return false;
	if (job->format == HISTORY_TEXT)
		return trend_text(job, p, count, &s);
	trend_json(job, p, count, &s);
	return true;
}

int history_trend(struct history_job *job)
{
	struct trend_point *p;
	size_t count;
	bool ok;

	if (!store_series(job->store, &job->filter, job->word, &p, &count))
		return EXIT_FAILED;
	if (!count)
		return no_such_metric(job);
	ok = trend_print(job, p, count);
	free(p);
	return ok ? EXIT_DONE : EXIT_FAILED;
}

/* --- top --- */

struct top {
	struct history_job *job;
	struct json json;
	struct table table;
	size_t count;
};

static bool top_row(void *ctx, const struct store_top *row)
{
	struct top *t = ctx;

	t->count++;
	switch (t->job->format) {
	case HISTORY_JSON:
		json_begin_object(&t->json, NULL);
		json_text(&t->json, "method", row->name);
		json_fixed(&t->json, "exclusive_processor_percent", row->exclusive, 3);
		json_fixed(&t->json, "inclusive_processor_percent", row->inclusive, 3);
		json_uint(&t->json, "samples", row->samples);
		json_end(&t->json);
		break;
	case HISTORY_CSV:
		csv_text(t->job->out, row->name);
		out_printf(t->job->out, ",%.3f,%.3f,%" PRIu64 "\n", row->exclusive, row->inclusive,
			   row->samples);
		break;
	case HISTORY_TEXT:
	case HISTORY_NDJSON:
		table_cell(&t->table, "%.1f %%", row->exclusive);
		table_cell(&t->table, "%.1f %%", row->inclusive);
		table_cell(&t->table, "%" PRIu64, row->samples);
		table_cell(&t->table, "%s", row->name);
		break;
	}
	return true;
}

int history_top(struct history_job *job)
{
	static const char *const heads[] = { "EXCLUSIVE", "INCLUSIVE", "SAMPLES", "METHOD" };
	struct top t = { .job = job };
	uint64_t samples = 0;
	bool ok;

	if (job->format == HISTORY_JSON) {
		json_init(&t.json, job->out, false);
		json_begin_object(&t.json, NULL);
		json_text(&t.json, "schema", REPORT_SCHEMA);
		json_text(&t.json, "name", job->filter.name);
		json_begin_array(&t.json, "methods");
	} else if (job->format == HISTORY_CSV) {
		out_text(
			job->out,
			"method,exclusive_processor_percent,inclusive_processor_percent,samples\n");
	} else {
		table_init(&t.table, "rrrl");
		for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
			table_cell(&t.table, "%s", heads[i]);
	}
	ok = store_top_methods(job->store, &job->filter, job->top, top_row, &t, &samples);
	if (job->format == HISTORY_JSON) {
		json_end(&t.json);
		json_uint(&t.json, "samples", samples);
		json_end(&t.json);
	} else if (job->format != HISTORY_CSV) {
		if (ok)
			out_printf(job->out,
				   "methods by their mean share of the CPU in %" PRIu64
				   " samples\n",
				   samples);
		table_print(&t.table, job->out, t.count > 0);
	}
	return ok ? EXIT_DONE : EXIT_FAILED;
}
