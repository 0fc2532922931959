/* SPDX-License-Identifier: MIT */
#ifndef SRC_STORE_TREND_H
#define SRC_STORE_TREND_H

/*
 * Whether a series of measurements has changed between two periods, since when, and by how much.
 * Pure arithmetic: no clock, no store.
 *
 * The test is Mann and Whitney's: it asks how often a value of the later period is above one of the
 * earlier, so that single outliers and the shape of the distribution do not matter.  Two things of
 * real samples would make it cry wolf and are taken out first: the course of the day (each value
 * is compared with what its hour usually is, where hours have enough values) and the likeness of
 * neighbours (samples in a row that resemble each other count as fewer than they are).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trend_point {
	int64_t time_ms; /* since 1970, UTC */
	double value; /* finite */
};

/* When a difference is one. */
struct trend_limits {
	size_t min_samples; /* in each period */
	double min_change; /* of the median: 0.1 is 10 % */
	double min_effect; /* Cliff's delta, 0 to 1: 0.33 is a medium effect */
	double alarm_rate; /* false alarms of all the series together, where nothing changes */
	size_t series; /* how many are looked at in this run; at least 1 */
};

extern const struct trend_limits trend_limits_default;

enum trend_verdict {
	TREND_TOO_FEW, /* samples in one of the periods */
	TREND_SAME,
	TREND_UP,
	TREND_DOWN,
};

struct trend_change {
	enum trend_verdict verdict;
	size_t before_count, after_count; /* samples in the two periods */
	double before, after; /* median of each side of the change; of the periods when none */
	double share; /* how much more: 1 is twice as much; NaN where there was nothing before */
	double effect; /* Cliff's delta, -1 to 1, of the periods */
	double p; /* how likely such a difference is by chance, for this one series */
	int64_t since_ms; /* first sample that is different; 0: no change */
};

/*
 * points: in order of time; those before split_ms are the earlier period.  NULL limits: the
 * default.  False: out of memory.
 */
bool trend_compare(const struct trend_point *points, size_t count, int64_t split_ms,
		   const struct trend_limits *limits, struct trend_change *ret);

/* The q-quantile (0 to 1) of values, which are put in order; NaN when there is none. */
double trend_quantile(double *values, size_t count, double q);

/*
 * One character for each of width equal parts of the time from begin_ms to end_ms: the median of
 * the values in it between the least and the greatest of all, a space where there is none.  UTF-8,
 * 3 bytes a character at most; ret holds 3 * width + 1 bytes.
 */
bool trend_sparkline(const struct trend_point *points, size_t count, int64_t begin_ms,
		     int64_t end_ms, size_t width, char *ret);

#endif
