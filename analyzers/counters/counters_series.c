/* SPDX-License-Identifier: MIT */

/*
 * Series of readings.  A series keeps its newest points; all series together have a bound as well,
 * and one that may not grow any more drops its oldest point for each new one.
 */

#include "analyzers/counters/counters_internal.h"
#include "analyzers/grow.h"

enum { MAX_SERIES = 2000, MAX_POINTS = 100 * 1000, MAX_TWINS = 16 };

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
	*s = (struct counter_series){ .kind = r->row->kind,
				      .instrument = r->row->instrument,
				      .twin = twin,
				      .unit = r->unit,
				      .title = r->title,
				      .scale = r->scale,
				      .scale_s = counter_scale_seconds(r->row->scale),
				      .first_ns = r->row->time_ns };
	memcpy(s->key, r->key, sizeof(s->key));
	*ret = s;
	return NT_OK;
}

static bool is_same(const struct counter_series *s, const struct counter_reading *r, uint32_t twin)
{
	return s->kind == r->row->kind && s->instrument == r->row->instrument && s->twin == twin &&
	       !memcmp(s->key, r->key, sizeof(s->key));
}

/*
 * Older runtimes give instruments no ids.  A second reading of one name within one collection is
 * then another instrument: its twin.
 */
static enum nt_status find(struct counters *c, const struct counter_reading *r,
			   struct counter_series **ret)
{
	const struct counter_row *row = r->row;
	bool meter = counter_is_meter(row->kind);

	*ret = NULL;
	for (uint32_t twin = 0; twin < MAX_TWINS; twin++) {
		uint64_t key =
			an_hash(r->key, sizeof(r->key),
				(uint64_t)row->instrument << 32 | (uint64_t)row->kind << 8 | twin);
		uint32_t at = nt_idmap_get(&c->by_key, key);

		if (at == NT_IDMAP_NONE)
			return new_series(c, r, twin, key, ret);
		if (!is_same(&c->series[at], r, twin))
			break; /* two keys with one hash */
		if (meter && !row->instrument && c->collection &&
		    c->series[at].collection == c->collection)
			continue;
		*ret = &c->series[at];
		return NT_OK;
	}
	c->series_dropped++;
	return NT_OK;
}

/* Quantiles into the columns behind those of the kind. */
static void take_quantiles(struct counter_series *s, const struct counter_row *row, double *v)
{
	size_t i;

	s->quantiles_dropped += row->quantiles_dropped;
	for (size_t k = 0; k < row->quantile_count; k++) {
		const struct counter_quantile *q = &row->quantiles[k];

		for (i = 0; i < s->quantile_count && strcmp(s->quantiles[i], q->name); i++)
			;
		if (i == COUNTER_QUANTILES) {
			s->quantiles_dropped++;
			continue;
		}
		if (i == s->quantile_count)
			memcpy(s->quantiles[s->quantile_count++], q->name, sizeof(q->name));
		v[i] = q->value;
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
	const struct counter_row *row = r->row;
	struct counter_point p = { .time_ns = row->time_ns };
	struct counter_series *s;
	enum nt_status st = find(c, r, &s);

	if (st < 0 || !s)
		return st;
	memcpy(p.v, row->v, sizeof(p.v));
	take_quantiles(s, row, p.v + counter_column_count(row->kind));
	s->collection = c->collection;
	s->points_seen++;
	s->last_ns = p.time_ns;
	return add_point(c, s, &p);
}
