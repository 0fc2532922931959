/* SPDX-License-Identifier: MIT */
#include "src/store/trend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	HOURS = 24,
	MIN_PER_HOUR = 3, /* values of an hour of the day, to know what is usual in it */
};

#define HOUR_MS INT64_C(3600000)

const struct trend_limits trend_limits_default = {
	.min_samples = 12,
	.min_change = 0.10,
	.min_effect = 0.33,
	.alarm_rate = 0.01,
	.series = 1,
};

/* What the values are turned into, one for each point. */
struct residual {
	double value;
	double rank;
	size_t index; /* of its point */
};

static int by_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int by_value(const void *a, const void *b)
{
	const struct residual *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

static int by_index(const void *a, const void *b)
{
	const struct residual *x = a, *y = b;

	return (x->index > y->index) - (x->index < y->index);
}

double trend_quantile(double *values, size_t count, double q)
{
	double at;
	size_t low;

	if (!count)
		return NAN;
	qsort(values, count, sizeof(*values), by_double);
	at = q * (double)(count - 1);
	low = (size_t)at;
	if (low + 1 >= count)
		return values[count - 1];
	return values[low] + (at - (double)low) * (values[low + 1] - values[low]);
}

/* The median of the points from..to; room holds as many. */
static double median_of(const struct trend_point *p, size_t from, size_t to, double *room)
{
	for (size_t i = from; i < to; i++)
		room[i - from] = p[i].value;
	return trend_quantile(room, to - from, 0.5);
}

static bool all_positive(const struct trend_point *p, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!(p[i].value > 0))
			return false;
	return true;
}

static unsigned hour_of(int64_t time_ms)
{
	int64_t hour = time_ms / HOUR_MS % HOURS;

	return (unsigned)(hour < 0 ? hour + HOURS : hour);
}

/*
 * Values of which all are positive are compared by their ratios, others by their differences.
 * The usual value of an hour is taken of both periods together: a change moves all hours alike.
 */
static void take_out_hours(const struct trend_point *p, size_t count, bool ratios,
			   struct residual *r, double *room)
{
	for (size_t i = 0; i < count; i++)
		r[i] = (struct residual){ ratios ? log(p[i].value) : p[i].value, 0, i };
	for (unsigned h = 0; h < HOURS; h++) {
		size_t n = 0;
		double usual;

		for (size_t i = 0; i < count; i++)
			if (hour_of(p[i].time_ms) == h)
				room[n++] = r[i].value;
		if (n < MIN_PER_HOUR)
			continue;
		usual = trend_quantile(room, n, 0.5);
		for (size_t i = 0; i < count; i++)
			if (hour_of(p[i].time_ms) == h)
				r[i].value -= usual;
	}
}

/* Fills the ranks (ties share theirs); returns the sum of t^3 - t over the ties. */
static double rank(struct residual *r, size_t count)
{
	double ties = 0;

	qsort(r, count, sizeof(*r), by_value);
	for (size_t i = 0; i < count;) {
		size_t end = i + 1;
		double t;

		while (end < count && r[end].value == r[i].value)
			end++;
		t = (double)(end - i);
		ties += t * t * t - t;
		for (size_t j = i; j < end; j++)
			r[j].rank = (double)(i + end + 1) / 2;
		i = end;
	}
	qsort(r, count, sizeof(*r), by_index);
	return ties;
}

/* How many times as uncertain the mean of ranks is as it would be if neighbours were strangers. */
static double likeness(const struct residual *r, size_t from, size_t to)
{
	double mean = 0, own = 0, next = 0, rho;
	size_t n = to - from;

	if (n < 3)
		return 1;
	for (size_t i = from; i < to; i++)
		mean += r[i].rank / (double)n;
	for (size_t i = from; i < to; i++) {
		double d = r[i].rank - mean;

		own += d * d;
		if (i + 1 < to)
			next += d * (r[i + 1].rank - mean);
	}
	if (own <= 1e-6 * (double)n) /* nothing but rounding */
		return 1;
	/* The estimate is too low by about (1 + 4 rho) / n. */
	rho = next / own;
	rho += (1 + 4 * rho) / (double)n;
	if (rho <= 0)
		return 1;
	if (rho > 0.98)
		rho = 0.98;
	return (1 + rho) / (1 - rho);
}

/* Where the ranks part most: the number of points before it. */
static size_t find_change(const struct residual *r, size_t count)
{
	double sum = 0, most = -1, mean = (double)(count + 1) / 2;
	size_t at = 0;

	for (size_t i = 0; i + 1 < count; i++) {
		sum += r[i].rank - mean;
		if (fabs(sum) > most) {
			most = fabs(sum);
			at = i + 1;
		}
	}
	return at;
}

static void test(struct residual *r, size_t count, size_t before, size_t *ret_at,
		 struct trend_change *ret)
{
	double ties = rank(r, count), n1 = (double)before, n2 = (double)(count - before);
	double n = n1 + n2, sum = 0, u, variance, worst, z;
	size_t at = *ret_at = find_change(r, count);

	for (size_t i = before; i < count; i++)
		sum += r[i].rank;
	u = sum - n2 * (n2 + 1) / 2;
	ret->effect = 2 * u / (n1 * n2) - 1;
	/* On both sides of the change, if there is one: else the step itself makes neighbours
	 * alike. */
	worst = fmax(likeness(r, 0, at), likeness(r, at, count));
	variance = n1 * n2 / 12 * (n + 1 - ties / (n * (n - 1))) * worst;
	if (variance <= 0) {
		ret->p = 1;
		return;
	}
	z = (fabs(u - n1 * n2 / 2) - 0.5) / sqrt(variance);
	ret->p = z > 0 ? erfc(z / sqrt(2)) : 1;
}

static bool is_change(const struct trend_change *c, const struct trend_limits *l)
{
	double series = l->series ? (double)l->series : 1;
	double size = fabs(c->after - c->before);
	bool alike = !isnan(c->share) && fabs(c->share) < l->min_change;

	return c->p * series <= l->alarm_rate && fabs(c->effect) >= l->min_effect && size > 0 &&
	       !alike;
}

static double residual_median(const struct residual *r, size_t from, size_t to, double *room)
{
	for (size_t i = from; i < to; i++)
		room[i - from] = r[i].value;
	return trend_quantile(room, to - from, 0.5);
}

/* Of each side of the change; the share without what only the hours of the day make. */
static void measure(const struct trend_point *p, const struct residual *r, size_t count, size_t at,
		    bool ratios, double *room, struct trend_change *ret)
{
	double more = residual_median(r, at, count, room) - residual_median(r, 0, at, room);

	ret->before = median_of(p, 0, at, room);
	ret->after = median_of(p, at, count, room);
	if (ratios)
		ret->share = exp(more) - 1;
	else if (fabs(ret->before) > 0)
		ret->share = more / fabs(ret->before);
}

bool trend_compare(const struct trend_point *points, size_t count, int64_t split_ms,
		   const struct trend_limits *limits, struct trend_change *ret)
{
	const struct trend_limits *l = limits ? limits : &trend_limits_default;
	size_t at, before = 0, least = l->min_samples > 2 ? l->min_samples : 2;
	struct residual *r;
	double *room;

	while (before < count && points[before].time_ms < split_ms)
		before++;
	*ret = (struct trend_change){ .before_count = before,
				      .after_count = count - before,
				      .p = 1,
				      .before = NAN,
				      .after = NAN,
				      .share = NAN };
	if (before < least || count - before < least)
		return true; /* TREND_TOO_FEW */
	r = calloc(count, sizeof(*r));
	room = calloc(count, sizeof(*room));
	if (r && room) {
		bool ratios = all_positive(points, count);

		take_out_hours(points, count, ratios, r, room);
		test(r, count, before, &at, ret);
		measure(points, r, count, at, ratios, room, ret);
		ret->verdict = TREND_SAME;
		if (is_change(ret, l)) {
			ret->verdict = ret->effect > 0 ? TREND_UP : TREND_DOWN;
			ret->since_ms = points[at].time_ms;
		} else {
			measure(points, r, count, before, ratios, room, ret);
		}
	}
	free(room);
	free(r);
	return r && room;
}

bool trend_sparkline(const struct trend_point *points, size_t count, int64_t begin_ms,
		     int64_t end_ms, size_t width, char *ret)
{
	static const char *const bars[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	double least = INFINITY, most = -INFINITY;
	double *room = calloc(count ? count : 1, sizeof(*room));
	size_t next = 0;

	*ret = 0;
	if (!room)
		return false;
	for (size_t i = 0; i < count; i++) {
		least = fmin(least, points[i].value);
		most = fmax(most, points[i].value);
	}
	while (next < count && points[next].time_ms < begin_ms)
		next++;
	for (size_t part = 0; part < width; part++) {
		double end = (double)begin_ms +
			     (double)(end_ms - begin_ms) * (double)(part + 1) / (double)width;
		size_t n = 0, bar = 0;

		while (next < count && ((double)points[next].time_ms < end || part + 1 == width))
			room[n++] = points[next++].value;
		if (n && most > least)
			bar = (size_t)((trend_quantile(room, n, 0.5) - least) / (most - least) *
				       7.999);
		memcpy(ret, n ? bars[bar] : " ", n ? 3 : 1);
		ret += n ? 3 : 1;
	}
	*ret = 0;
	free(room);
	return true;
}
