/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_COUNTERS_COUNTER_EVENT_H
#define ANALYZERS_COUNTERS_COUNTER_EVENT_H

/*
 * Events of EventCounters and Meters, read into one shape (runtime-events.md §6).  Keeps nothing:
 * the analyzer makes series of the readings, 'counters collect' writes them down as they come.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nettrace/nettrace.h"

enum counter_kind {
	COUNTER_MEAN, /* EventCounter, PollingCounter */
	COUNTER_SUM, /* IncrementingEventCounter, IncrementingPollingCounter */
	COUNTER_COUNTER, /* meters from here on */
	COUNTER_UP_DOWN,
	COUNTER_GAUGE,
	COUNTER_HISTOGRAM,
	COUNTER_EXPONENTIAL,
	COUNTER_KINDS
};

enum {
	COUNTER_COLUMNS = 10, /* numbers of one reading, at most */
	COUNTER_QUANTILES = 8, /* of one histogram */
	COUNTER_QUANTILE_BYTES = 16, /* of "0.95" */
	COUNTER_SCALE_BYTES = 32, /* of "10675199.02:48:05.4775807" */
	COUNTER_NAME_BYTES = 256,
	COUNTER_TEXT_BYTES = 512,
};

/* What an event of theirs is. */
enum counter_event {
	COUNTER_EVENT_OTHER, /* messages, versions, ends */
	COUNTER_EVENT_READING,
	COUNTER_EVENT_EARLY, /* a reading of no time, which comes when the session begins */
	COUNTER_EVENT_UNREADABLE, /* neither */
	COUNTER_EVENT_COLLECTION, /* readings of one moment follow */
	COUNTER_EVENT_INSTRUMENT, /* what an instrument is */
	COUNTER_EVENT_SERIES_LIMIT,
	COUNTER_EVENT_HISTOGRAM_LIMIT,
	COUNTER_EVENT_CALLBACK_ERROR,
	COUNTER_EVENT_ERROR,
	COUNTER_EVENT_REFUSED, /* another session has the meters, or asks for something else */
};

struct counter_quantile {
	char name[COUNTER_QUANTILE_BYTES]; /* "0.95" */
	double value;
};

/*
 * What an event says.  A text that is not there is "", a number NAN.  One that is too long is cut,
 * and ends in a number that tells it from others with the same beginning.
 */
struct counter_row {
	enum counter_kind kind;
	int64_t time_ns;
	char session[COUNTER_NAME_BYTES]; /* of a meter; of an EventCounter "Interval=1000" */
	char provider[COUNTER_NAME_BYTES]; /* the event source, or the meter */
	char version[COUNTER_NAME_BYTES]; /* of the meter */
	char name[COUNTER_NAME_BYTES];
	char tags[COUNTER_TEXT_BYTES];
	char unit[COUNTER_NAME_BYTES];
	char title[COUNTER_NAME_BYTES]; /* of an EventCounter, for people */
	char scale[COUNTER_SCALE_BYTES]; /* of its rate: "00:01:00" */
	uint32_t instrument; /* 0: the runtime does not say */
	double v[COUNTER_COLUMNS]; /* by counter_columns() */
	struct counter_quantile quantiles[COUNTER_QUANTILES]; /* of a histogram */
	size_t quantile_count;
	size_t quantiles_dropped;
	/* Of an instrument; text also of an error. */
	char type[COUNTER_NAME_BYTES];
	char text[COUNTER_TEXT_BYTES]; /* description */
	char instrument_tags[COUNTER_TEXT_BYTES], meter_tags[COUNTER_TEXT_BYTES];
	char scope[COUNTER_NAME_BYTES];
};

extern const char *const counter_kinds[COUNTER_KINDS];

/* The names of a kind's numbers; NULL ends.  Histograms have quantiles besides. */
const char *const *counter_columns(enum counter_kind kind);
size_t counter_column_count(enum counter_kind kind);

static inline bool counter_is_meter(enum counter_kind kind)
{
	return kind >= COUNTER_COUNTER;
}

/*
 * What a sum's rate is per, in seconds: "[d.]hh:mm:ss[.fffffff]" as the runtime writes it, a second
 * where it writes nothing.  NAN: cannot be read, and then there is no rate.
 */
double counter_scale_seconds(const char *scale);

/* Whether there can be anything to read in such events. */
bool counter_event_wanted(const struct nt_event_def *def);
/* ret is filled as far as the result says. */
enum counter_event counter_event_read(const struct nt_event *ev, struct counter_row *ret);

/*
 * Tags are "k=v,k2=v2" without any escaping: a value may hold commas and equal signs.  Takes the
 * next pair at *at and moves on; a comma ends a value where what looks like a key follows.  False:
 * there is none.
 */
bool counter_next_tag(const char **at, const char **ret_key, size_t *ret_key_len,
		      const char **ret_value, size_t *ret_value_len);

#endif
