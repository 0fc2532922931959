/* SPDX-License-Identifier: MIT */

/*
 * Series of readings.  A series keeps its newest points; all series together have a bound as well,
 * and one that may not grow any more drops its oldest point for each new one.
 */

#include <float.h>
#include <stdlib.h>

#include "analyzers/counters_internal.h"
#include "analyzers/grow.h"

enum { MAX_SERIES = 2000, MAX_POINTS = 100 * 1000, MAX_TWINS = 16 };

const char *const counters_kinds[COUNTER_KINDS] = {
	[COUNTER_MEAN] = "mean",
	[COUNTER_SUM] = "sum",
	[COUNTER_COUNTER] = "counter",
	[COUNTER_UP_DOWN] = "up-down-counter",
	[COUNTER_GAUGE] = "gauge",
	[COUNTER_HISTOGRAM] = "histogram",
	[COUNTER_EXPONENTIAL] = "exponential-histogram",
};

const char *const *counters_columns(enum counter_kind kind)
{
	static const char *const mean[] = { "value", "standard_deviation", "count", "min",
					    "max",   "interval_s",	   NULL };
	static const char *const sum[] = { "value", "rate", "interval_s", NULL };
	static const char *const counter[] = { "value", "delta", NULL };
	static const char *const gauge[] = { "value", NULL };
	static const char *const histogram[] = { "count", "sum", NULL };
	static const char *const exponential[] = {
		"count", "sum", "min", "max", "zero_count", NULL
	};
	static const char *const *const all[COUNTER_KINDS] = {
		[COUNTER_MEAN] = mean,
		[COUNTER_SUM] = sum,
		[COUNTER_COUNTER] = counter,
		[COUNTER_UP_DOWN] = counter,
		[COUNTER_GAUGE] = gauge,
		[COUNTER_HISTOGRAM] = histogram,
		[COUNTER_EXPONENTIAL] = exponential,
	};

	return all[kind];
}

size_t counters_column_count(enum counter_kind kind)
{
	const char *const *columns = counters_columns(kind);
	size_t n = 0;

	while (columns[n])
		n++;
	return n;
}

static enum nt_status new_series(struct counters *c, const struct counter_reading *r, uint32_t twin,
				 uint64_t key, struct counter_series **ret)
{
	struct counter_series *s;

	*ret = NULL;
	if (c->series_count >= MAX_SERIES) {
		c->series_dropped++;
		return NT_OK;
	}
	s = an_mem_grow(c->shared->alloc, c->series, &c->series_cap, c->series_count + 1,
			sizeof(*s));
	if (!s)
		return NT_ENOMEM;
	c->series = s;
	if (nt_idmap_put(&c->by_key, key, (uint32_t)c->series_count) < 0)
		return NT_ENOMEM;
	s += c->series_count++;
	*s = (struct counter_series){ .kind = r->kind,
				      .instrument = r->instrument,
				      .twin = twin,
				      .unit = r->unit,
				      .title = r->title,
				      .scale = r->scale,
				      .first_ns = r->point.time_ns };
	memcpy(s->key, r->key, sizeof(s->key));
	*ret = s;
	return NT_OK;
}

static bool is_same(const struct counter_series *s, const struct counter_reading *r, uint32_t twin)
{
	return s->kind == r->kind && s->instrument == r->instrument && s->twin == twin &&
	       !memcmp(s->key, r->key, sizeof(s->key));
}

/*
 * Older runtimes give instruments no ids.  A second reading of one name within one collection is
 * then another instrument: its twin.
 */
static enum nt_status find(struct counters *c, const struct counter_reading *r,
			   struct counter_series **ret)
{
	bool meter = r->kind >= COUNTER_COUNTER;

	*ret = NULL;
	for (uint32_t twin = 0; twin < MAX_TWINS; twin++) {
		uint64_t key =
			an_hash(r->key, sizeof(r->key),
				(uint64_t)r->instrument << 32 | (uint64_t)r->kind << 8 | twin);
		uint32_t at = nt_idmap_get(&c->by_key, key);

		if (at == NT_IDMAP_NONE)
			return new_series(c, r, twin, key, ret);
		if (!is_same(&c->series[at], r, twin))
			break; /* two keys with one hash */
		if (meter && !r->instrument && c->collection &&
		    c->series[at].collection == c->collection)
			continue;
		*ret = &c->series[at];
		return NT_OK;
	}
	c->series_dropped++;
	return NT_OK;
}

/* "0.5=21;0.95=97;0.99=99" into the columns behind those of the kind. */
static void read_quantiles(struct counter_series *s, const char *text, double *v)
{
	while (*text) {
		size_t name = strcspn(text, "=;"), i = 0;
		char *end;
		double value;

		if (!name || text[name] != '=' || name >= COUNTER_QUANTILE_BYTES)
			return;
		value = strtod(text + name + 1, &end);
		if (end == text + name + 1)
			return;
		while (i < s->quantile_count &&
		       (strncmp(s->quantiles[i], text, name) != 0 || s->quantiles[i][name]))
			i++;
		if (i == s->quantile_count && i < COUNTER_QUANTILES) {
			memcpy(s->quantiles[i], text, name);
			s->quantile_count++;
		}
		if (i < COUNTER_QUANTILES)
			v[i] = value;
		else
			s->quantiles_dropped++;
		text = end + (*end == ';');
	}
}

static enum nt_status add_point(struct counters *c, struct counter_series *s,
				const struct counter_point *p)
{
	struct counter_point *points;
	bool full = s->count >= COUNTER_SERIES_POINTS || c->points_total >= MAX_POINTS;

	if (s->count && full) {
		s->points[s->start] = *p;
		s->start = (s->start + 1) % s->count;
		return NT_OK;
	}
	points = an_mem_grow(c->shared->alloc, s->points, &s->cap, s->count + 1, sizeof(*points));
	if (!points)
		return NT_ENOMEM;
	s->points = points;
	points[s->count++] = *p;
	c->points_total++;
	return NT_OK;
}

enum nt_status counters_add(struct counters *c, const struct counter_reading *r)
{
	struct counter_point p = r->point;
	struct counter_series *s;
	enum nt_status st = find(c, r, &s);

	if (st < 0 || !s)
		return st;
	if (r->quantiles)
		read_quantiles(s, r->quantiles, p.v + counters_column_count(r->kind));
	s->collection = c->collection;
	s->points_seen++;
	s->last_ns = p.time_ns;
	return add_point(c, s, &p);
}
