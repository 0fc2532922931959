/* SPDX-License-Identifier: MIT */

/* history regressions: what has changed between two periods, of every process and metric. */

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/version.h"
#include "src/store/history.h"
#include "src/store/trend.h"
#include "src/store/when.h"

enum { HOT_METHODS = 30 /* of each process, are looked at */ };

struct series {
	char *process, *metric;
	struct trend_change change;
};

struct search {
	struct history_job *job;
	struct store_filter both; /* periods */
	struct series *series;
	size_t count, room;
	bool failed;
};

/* Numbers that say what was recorded, not how the process does. */
static bool is_neutral(const char *metric)
{
	static const char *const names[] = { "trace.", "cpu.samples", "cpu.interval_ms", "self." };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(metric, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static bool fail(struct search *s)
{
	if (!s->failed)
		log_error("cannot compare: out of memory");
	s->failed = true;
	return false;
}

static bool add_series(struct search *s, const char *process, const char *prefix,
		       const char *metric)
{
	struct series *row;

	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 64;
		struct series *grown = realloc(s->series, room * sizeof(*grown));

		if (!grown)
			return fail(s);
		s->series = grown;
		s->room = room;
	}
	row = &s->series[s->count];
	*row = (struct series){ .process = strdup(process) };
	if (asprintf(&row->metric, "%s%s", prefix, metric) < 0)
		row->metric = NULL;
	s->count++;
	return (row->process && row->metric) || fail(s);
}

struct names {
	char **v;
	size_t count;
	bool failed;
};

static void free_names(struct names *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->v[i]);
	free(n->v);
}

static bool add_name(struct names *n, const char *name)
{
	char **grown;

	for (size_t i = 0; i < n->count; i++)
		if (strcmp(n->v[i], name) == 0)
			return true;
	grown = realloc(n->v, (n->count + 1) * sizeof(*grown));
	if (grown)
		n->v = grown;
	if (!grown || !(n->v[n->count] = strdup(name))) {
		n->failed = true;
		return false;
	}
	n->count++;
	return true;
}

static bool note_process(void *ctx, const struct store_sample *p)
{
	return add_name(ctx, p->name);
}

static bool note_method(void *ctx, const struct store_top *row)
{
	return add_name(ctx, row->name);
}

/* Metrics, and what was hot in either period: a method that is new would not be found in one. */
static bool add_process(struct search *s, const char *process)
{
	struct store_filter before = s->both, after = s->both, both = s->both;
	struct names methods = { 0 };
	uint64_t samples;
	char **metrics;
	size_t count;
	bool ok;

	both.name = before.name = after.name = process;
	before.end_ms = after.begin_ms = s->job->split_ms;
	if (!store_metrics(s->job->store, &both, &metrics, &count))
		return false;
	ok = true;
	for (size_t i = 0; i < count; i++) {
		if (ok && !is_neutral(metrics[i]))
			ok = add_series(s, process, "", metrics[i]);
		free(metrics[i]);
	}
	free(metrics);
	ok = ok &&
	     store_top_methods(s->job->store, &before, HOT_METHODS, note_method, &methods,
			       &samples) &&
	     store_top_methods(s->job->store, &after, HOT_METHODS, note_method, &methods, &samples);
	if (methods.failed)
		ok = fail(s);
	for (size_t i = 0; ok && i < methods.count; i++)
		ok = add_series(s, process, "method:", methods.v[i]);
	free_names(&methods);
	return ok;
}

static bool find_series(struct search *s)
{
	struct names processes = { 0 };
	bool ok = store_list(s->job->store, &s->both, note_process, &processes);

	if (processes.failed)
		ok = fail(s);
	for (size_t i = 0; ok && i < processes.count; i++)
		ok = add_process(s, processes.v[i]);
	free_names(&processes);
	return ok;
}

static bool compare_all(struct search *s)
{
	struct trend_limits limits = trend_limits_default;

	limits.series = s->count;
	for (size_t i = 0; i < s->count; i++) {
		struct series *row = &s->series[i];
		struct store_filter f = s->both;
		struct trend_point *points;
		size_t count;
		bool ok;

		f.name = row->process;
		if (!store_series(s->job->store, &f, row->metric, &points, &count))
			return false;
		ok = trend_compare(points, count, s->job->split_ms, &limits, &row->change);
		free(points);
		if (!ok)
			return fail(s);
	}
	return true;
}

/* The surest first; of those the largest. */
static int by_weight(const void *a, const void *b)
{
	const struct trend_change *x = &((const struct series *)a)->change;
	const struct trend_change *y = &((const struct series *)b)->change;
	double wx = fabs(x->effect), wy = fabs(y->effect);

	if (wx != wy)
		return wx < wy ? 1 : -1;
	wx = isnan(x->share) ? INFINITY : fabs(x->share);
	wy = isnan(y->share) ? INFINITY : fabs(y->share);
	return (wx < wy) - (wx > wy);
}

/* --- what came of it --- */

static size_t count_verdict(const struct search *s, enum trend_verdict v)
{
	size_t n = 0;

	for (size_t i = 0; i < s->count; i++)
		n += s->series[i].change.verdict == v;
	return n;
}

static void print_json(struct search *s)
{
	struct history_job *job = s->job;
	char time[WHEN_BYTES];
	struct json j;

	json_init(&j, job->out, false);
	json_begin_object(&j, NULL);
	json_text(&j, "schema", REPORT_SCHEMA);
	json_text(&j, "before", when_text(s->both.begin_ms, time));
	json_text(&j, "split", when_text(job->split_ms, time));
	json_text(&j, "until", when_text(s->both.end_ms, time));
	json_uint(&j, "series", s->count);
	json_uint(&j, "series_with_too_few_samples", count_verdict(s, TREND_TOO_FEW));
	json_double(&j, "alarm_rate", trend_limits_default.alarm_rate);
	json_begin_array(&j, "changes");
	for (size_t i = 0; i < s->count; i++) {
		const struct trend_change *c = &s->series[i].change;

		if (c->verdict != TREND_UP && c->verdict != TREND_DOWN)
			continue;
		json_begin_object(&j, NULL);
		json_text(&j, "name", s->series[i].process);
		json_text(&j, "metric", s->series[i].metric);
		json_text(&j, "direction", c->verdict == TREND_UP ? "up" : "down");
		json_text(&j, "since", when_text(c->since_ms, time));
		json_double(&j, "before", c->before);
		json_double(&j, "after", c->after);
		json_double(&j, "change_share", c->share);
		json_double(&j, "effect", c->effect);
		json_double(&j, "p", c->p);
		json_uint(&j, "samples_before", c->before_count);
		json_uint(&j, "samples_after", c->after_count);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
}

static void print_change(struct out *o, const struct series *row)
{
	const struct trend_change *c = &row->change;
	bool method = strncmp(row->metric, "method:", 7) == 0;
	char time[WHEN_BYTES];

	out_printf(o, "  %s: %s%s since %s UTC", row->process, method ? "method " : "",
		   method ? row->metric + 7 : row->metric, when_text_day(c->since_ms, time));
	if (isnan(c->share))
		out_printf(o, ", from nothing");
	else if (c->share >= 0.5)
		out_printf(o, ", %.1f times as much", c->share + 1);
	else
		out_printf(o, ", %+.0f %%", 100 * c->share);
	out_printf(o,
		   "\n    %.4g%s before, %.4g%s after (median); effect %.2f, p %s%.1g, %zu and %zu "
		   "samples\n",
		   c->before, method ? " %" : "", c->after, method ? " %" : "", c->effect,
		   c->p < 1e-12 ? "< " : "", c->p < 1e-12 ? 1e-12 : c->p, c->before_count,
		   c->after_count);
}

static void print_part(struct search *s, const char *title, enum trend_verdict verdict)
{
	struct out *o = s->job->out;
	size_t shown = 0, all = count_verdict(s, verdict);

	if (!all)
		return;
	out_printf(o, "%s\n", title);
	for (size_t i = 0; i < s->count && (!s->job->top || shown < s->job->top); i++) {
		if (s->series[i].change.verdict != verdict)
			continue;
		print_change(o, &s->series[i]);
		shown++;
	}
	if (shown < all)
		out_printf(o, "  and %zu more: --top 0\n", all - shown);
}

static void print_text(struct search *s)
{
	struct out *o = s->job->out;
	char begin[WHEN_BYTES], split[WHEN_BYTES], end[WHEN_BYTES];
	size_t few = count_verdict(s, TREND_TOO_FEW);

	out_printf(o, "%s .. %s against the time since %s UTC\n",
		   when_text_day(s->job->split_ms, split), when_text_day(s->both.end_ms, end),
		   when_text_day(s->both.begin_ms, begin));
	print_part(s, "MORE", TREND_UP);
	print_part(s, "LESS", TREND_DOWN);
	if (!count_verdict(s, TREND_UP) && !count_verdict(s, TREND_DOWN))
		out_printf(o, "%s\n",
			   !s->count	     ? "nothing to compare: there are no samples"
			   : few == s->count ? "nothing can be said: too few samples"
					     : "nothing has changed");
	out_printf(o, "%zu series looked at", s->count - few);
	if (few)
		out_printf(o, ", %zu left out (fewer than %zu samples in one of the periods)", few,
			   trend_limits_default.min_samples);
	out_printf(o, "; where nothing changes, %.0f %% of such runs find something\n",
		   100 * trend_limits_default.alarm_rate);
}

int history_regressions(struct history_job *job)
{
	struct search s = { .job = job, .both = job->filter };
	int64_t span = (int64_t)job->span_ms;
	bool ok;

	s.both.begin_ms = job->split_ms - span;
	s.both.end_ms = job->split_ms + span;
	if (s.both.end_ms > job->now_ms)
		s.both.end_ms = job->now_ms + 1;
	ok = find_series(&s) && compare_all(&s);
	if (ok) {
		if (s.count)
			qsort(s.series, s.count, sizeof(*s.series), by_weight);
		if (job->format == HISTORY_JSON)
			print_json(&s);
		else
			print_text(&s);
	}
	for (size_t i = 0; i < s.count; i++) {
		free(s.series[i].process);
		free(s.series[i].metric);
	}
	free(s.series);
	return ok ? EXIT_DONE : EXIT_FAILED;
}
