/* SPDX-License-Identifier: MIT */

/* The section of counters: one row a series, with its points. */

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "analyzers/counters/counters_internal.h"
#include "analyzers/grow.h"
#include "analyzers/text.h"

enum { TAG_BYTES = 256, MAX_TAGS = 32 };

static const char *text_of(const struct counters *c, uint32_t id)
{
	return an_textset_get(&c->texts, id);
}

static void add_text(const struct counters *c, struct an_value *v, const char *name, uint32_t id)
{
	const char *t = text_of(c, id);

	if (*t)
		an_add_text(v, name, t);
	else
		an_add_null(v, name);
}

/* --- tags --- */

static bool has_member(const struct an_value *v, const char *name)
{
	for (const struct an_value *m = v ? v->first : NULL; m; m = m->next)
		if (m->name && !strcmp(m->name, name))
			return true;
	return false;
}

/* A key that comes twice keeps its first value. */
static void add_tags(const char *s, struct an_value *row)
{
	struct an_value *v = an_add_object(row, "tags");
	size_t key_len, len;
	const char *at, *value;
	char key[TAG_BYTES];
	struct an_text t;

	for (size_t i = 0; i < MAX_TAGS && counter_next_tag(&s, &at, &key_len, &value, &len); i++) {
		t = an_text_of(key, sizeof(key));
		an_text_put(&t, at, key_len);
		if (!has_member(v, key))
			an_add_textn_named(v, key, value, len);
	}
}

/* --- rows --- */

static void add_point(const struct counter_series *s, const struct counter_point *p,
		      struct an_value *list)
{
	const char *const *columns = counter_columns(s->kind);
	struct an_value *v = an_add_object(list, NULL), *q;
	size_t n = 0;

	an_add_double(v, "time_ms", (double)p->time_ns / 1e6, 4);
	for (; columns[n]; n++)
		an_add_double(v, columns[n], p->v[n], AN_SHORTEST);
	if (s->kind != COUNTER_HISTOGRAM)
		return;
	q = an_add_object(v, "quantiles");
	for (size_t i = 0; i < s->quantile_count; i++)
		if (!isnan(p->v[n + i]))
			an_add_double_named(q, s->quantiles[i], p->v[n + i], AN_SHORTEST);
}

/* The same instrument: by its id, or by its names and as many before it as there were twins. */
static const struct counter_instrument *instrument_of(const struct counters *c,
						      const struct counter_series *s)
{
	uint32_t before = 0;

	for (size_t i = 0; i < c->instrument_count; i++) {
		const struct counter_instrument *in = &c->instruments[i];

		if (in->meter != s->key[KEY_PROVIDER] || in->version != s->key[KEY_VERSION] ||
		    in->name != s->key[KEY_NAME])
			continue;
		if (s->instrument ? in->id == s->instrument : before++ == s->twin)
			return in;
	}
	return NULL;
}

static void add_meter(const struct counters *c, const struct counter_series *s, struct an_value *v)
{
	const struct counter_instrument *in = instrument_of(c, s);

	add_text(c, v, "meter_version", s->key[KEY_VERSION]);
	if (s->instrument)
		an_add_uint(v, "instrument_id", s->instrument);
	else
		an_add_null(v, "instrument_id");
	if (s->twin)
		an_add_uint(v, "twin", s->twin);
	add_text(c, v, "session", s->key[KEY_SESSION]);
	if (!in)
		return;
	add_text(c, v, "instrument_type", in->type);
	add_text(c, v, "description", in->description);
	add_text(c, v, "instrument_tags", in->tags);
	add_text(c, v, "meter_tags", in->meter_tags);
	add_text(c, v, "meter_scope", in->scope);
}

static void add_series(const struct counters *c, const struct counter_series *s,
		       struct an_value *list)
{
	struct an_value *v = an_add_object(list, NULL), *points;
	bool meter = counter_is_meter(s->kind);

	add_text(c, v, "provider", s->key[KEY_PROVIDER]);
	add_text(c, v, "name", s->key[KEY_NAME]);
	an_add_text(v, "kind", counter_kinds[s->kind]);
	add_text(c, v, "unit", s->unit);
	add_tags(text_of(c, s->key[KEY_TAGS]), v);
	an_add_text(v, "source", meter ? "meter" : "event-counter");
	if (meter) {
		add_meter(c, s, v);
	} else {
		add_text(c, v, "display_name", s->title);
		add_text(c, v, "series", s->key[KEY_SESSION]);
		add_text(c, v, "rate_scale", s->scale);
		if (s->kind == COUNTER_SUM)
			an_add_double(v, "rate_scale_s", s->scale_s, AN_SHORTEST);
	}
	an_add_uint(v, "points_dropped", s->points_seen - s->count);
	points = an_add_array(v, "points");
	for (size_t i = 0; i < s->count; i++)
		add_point(s, &s->points[(s->start + i) % s->count], points);
}

struct ranked {
	const struct counters *c;
	const struct counter_series *s;
};

static int compare_series(const void *a, const void *b)
{
	static const enum counter_key order[] = { KEY_PROVIDER, KEY_NAME, KEY_TAGS, KEY_VERSION,
						  KEY_SESSION };
	const struct ranked *x = a, *y = b;

	for (size_t i = 0; i < KEYS; i++) {
		int r = strcmp(text_of(x->c, x->s->key[order[i]]),
			       text_of(y->c, y->s->key[order[i]]));

		if (r)
			return r;
	}
	if (x->s->instrument != y->s->instrument)
		return x->s->instrument < y->s->instrument ? -1 : 1;
	return (x->s > y->s) - (x->s < y->s);
}

/* --- findings --- */

static void check(const struct counters *c, struct an_report *out)
{
	const char *why = "";

	if (c->session_refused)
		why = "another tool was reading the meters, and the runtime serves only one";
	else if (c->series_limit || c->histogram_limit)
		why = "the runtime reached its limit of time series or histograms";
	else if (c->series_dropped)
		why = an_report_printf(out,
				       "%" PRIu64 " readings were of series beyond the %zu kept",
				       c->series_dropped, c->series_count);
	else if (c->errors)
		why = an_report_printf(out, "the runtime reports: %s", text_of(c, c->error_text));
	if (!*why)
		return;
	an_add_finding(out, AN_WARNING, "trace.counters-incomplete",
		       "Some counters or meters are missing in the trace", why,
		       "Ask for fewer meters, or raise MaxTimeSeries and MaxHistograms.");
}

enum nt_status counters_report(struct counters *c, struct an_report *out)
{
	struct an_value *list;
	struct ranked *ranked;

	check(c, out);
	if (!c->series_count) {
		an_add_null(an_report_root(out), "counters");
		return NT_OK;
	}
	ranked = an_mem_array(c->shared->alloc, c->series_count, sizeof(*ranked));
	if (!ranked)
		return NT_ENOMEM;
	for (size_t i = 0; i < c->series_count; i++)
		ranked[i] = (struct ranked){ c, &c->series[i] };
	qsort(ranked, c->series_count, sizeof(*ranked), compare_series);
	list = an_add_array(an_report_root(out), "counters");
	for (size_t i = 0; i < c->series_count; i++)
		add_series(c, ranked[i].s, list);
	an_mem_free(c->shared->alloc, ranked);
	return NT_OK;
}
