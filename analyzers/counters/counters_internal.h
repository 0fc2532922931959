/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_COUNTERS_COUNTERS_INTERNAL_H
#define ANALYZERS_COUNTERS_COUNTERS_INTERNAL_H

/*
 * Inside of the counters analyzer: counters.c takes the events, counters_series.c keeps the series,
 * counters_report.c writes the section.
 */

#include "analyzers/analyzer.h"
#include "analyzers/counters/counter_event.h"
#include "analyzers/textset.h"

enum { COUNTER_SERIES_POINTS = 4000 /* of one series; then the oldest go */ };

/* What makes a series one of its own; all texts. */
enum counter_key {
	KEY_SESSION, /* of a meter; of an EventCounter its interval ("Interval=1000") */
	KEY_PROVIDER, /* the meter, or the event source */
	KEY_VERSION, /* of the meter */
	KEY_NAME,
	KEY_TAGS,
	KEYS
};

/* Numbers of one point, by column; NaN where there is none. */
struct counter_point {
	int64_t time_ns;
	double v[COUNTER_COLUMNS];
};

struct counter_series {
	enum counter_kind kind;
	uint32_t key[KEYS]; /* in the text set */
	uint32_t instrument; /* 0: the runtime does not say */
	uint32_t twin; /* the n-th of its name in each collection, where instruments have no ids */
	uint32_t unit, title, scale; /* texts; title: display name; scale: of rates */
	double scale_s; /* of a sum: what its rate is per; NaN: unknown */
	uint64_t collection; /* of its newest point */
	int64_t first_ns, last_ns;
	uint64_t points_seen;
	struct counter_point *points; /* a ring once it is full */
	size_t count, cap, start;
	char quantiles[COUNTER_QUANTILES][COUNTER_QUANTILE_BYTES];
	size_t quantile_count;
	uint64_t quantiles_dropped;
};

/* What the runtime said about an instrument before its values. */
struct counter_instrument {
	uint32_t id; /* 0: unknown */
	uint32_t meter, version, name;
	uint32_t type, description, tags, meter_tags, scope;
};

/* One reading, before it has found its series. */
struct counter_reading {
	const struct counter_row *row;
	uint32_t key[KEYS];
	uint32_t unit, title, scale;
};

struct counters {
	struct an_shared *shared;
	struct an_textset texts;
	struct counter_series *series;
	size_t series_count, series_cap;
	struct nt_idmap by_key;
	uint64_t series_dropped; /* readings of series beyond the cap */
	uint64_t points_total; /* kept */
	uint64_t unreadable; /* events that are no reading */
	uint64_t collection; /* CollectionStart events */
	struct counter_row row; /* of the event at hand */
	struct counter_instrument *instruments;
	size_t instrument_count, instrument_cap;
	/* what the runtime complained about */
	uint64_t series_limit, histogram_limit, callback_errors, errors;
	bool session_refused; /* another session had the meters */
	uint32_t error_text; /* of the first, or AN_TEXT_OTHER */
};

NT_MUST_CHECK enum nt_status counters_add(struct counters *c, const struct counter_reading *r);
NT_MUST_CHECK enum nt_status counters_report(struct counters *c, struct an_report *out);

#endif
