/* SPDX-License-Identifier: MIT */
#include "analyzers/counters/counter_event.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzers/textset.h"

enum {
	COLLECTION_START = 2,
	COUNTER_VALUE = 4,
	GAUGE_VALUE = 5,
	HISTOGRAM_VALUE = 6,
	BEGIN_INSTRUMENT = 7,
	ERROR_MESSAGE = 9,
	SERIES_LIMIT = 12,
	HISTOGRAM_LIMIT = 13,
	CALLBACK_ERROR = 14,
	SESSIONS_NOT_SUPPORTED = 15,
	UP_DOWN_VALUE = 16,
	SESSIONS_WRONG = 17,
	EXPONENTIAL_VALUE = 19,
	EXPONENTIAL_FIRST = 8, /* the field of its scale; numbers follow */
	MAX_FIELDS = 16,
	NUMBER_BYTES = 64,
	CUT_BYTES = 20, /* for the number of a text that was cut */
};

#define LEAST_INTERVAL_S 0.001 /* shorter ones come once, when the session begins */

const char *const counter_kinds[COUNTER_KINDS] = {
	[COUNTER_MEAN] = "mean",
	[COUNTER_SUM] = "sum",
	[COUNTER_COUNTER] = "counter",
	[COUNTER_UP_DOWN] = "up-down-counter",
	[COUNTER_GAUGE] = "gauge",
	[COUNTER_HISTOGRAM] = "histogram",
	[COUNTER_EXPONENTIAL] = "exponential-histogram",
};

const char *const *counter_columns(enum counter_kind kind)
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

size_t counter_column_count(enum counter_kind kind)
{
	const char *const *columns = counter_columns(kind);
	size_t n = 0;

	while (columns[n])
		n++;
	return n;
}

static bool is_meter(const struct nt_event_def *def)
{
	return !strcmp(def->provider, "System.Diagnostics.Metrics");
}

bool counter_event_wanted(const struct nt_event_def *def)
{
	return !strcmp(def->name, "EventCounters") || is_meter(def);
}

/* --- values --- */

static void copy_text(const struct nt_value *v, char *buf, size_t size)
{
	size_t n;

	buf[0] = '\0';
	if (!v)
		return;
	n = nt_value_text(v, buf, size);
	/* As full as it can be: very likely cut, and then it must not be taken for its like. */
	if (n + 4 < size || size < 4 * CUT_BYTES)
		return;
	n = size - CUT_BYTES;
	while (n && ((unsigned char)buf[n] & 0xc0) == 0x80)
		n--; /* not amid a character */
	snprintf(buf + n, size - n, "~%" PRIx64, an_hash(v->data, v->bytes, 0));
}

/* Numbers are text, of invariant culture; in some fields they are numbers. */
static double number_of(const struct nt_value *v)
{
	char text[NUMBER_BYTES], *end;
	double number;

	if (!v)
		return NAN;
	switch (v->kind) {
	case NT_V_UINT:
		return (double)v->u;
	case NT_V_INT:
		return (double)v->i;
	case NT_V_DOUBLE:
		return v->f;
	case NT_V_UTF16:
	case NT_V_UTF8:
		break;
	default:
		return NAN;
	}
	nt_value_text(v, text, sizeof(text));
	number = strtod(text, &end);
	return end == text ? NAN : number;
}

/* The texts that a row does not have are empty, its numbers are none. */
static void row_init(struct counter_row *r, enum counter_kind kind, int64_t time_ns)
{
	r->kind = kind;
	r->time_ns = time_ns;
	r->session[0] = r->provider[0] = r->version[0] = r->name[0] = r->tags[0] = '\0';
	r->unit[0] = r->title[0] = r->scale[0] = '\0';
	r->type[0] = r->text[0] = r->instrument_tags[0] = r->meter_tags[0] = r->scope[0] = '\0';
	r->instrument = 0;
	r->quantile_count = r->quantiles_dropped = 0;
	for (size_t i = 0; i < COUNTER_COLUMNS; i++)
		r->v[i] = NAN;
}

/* --- meters --- */

/* "0.5=21;0.95=97;0.99=99" */
static void read_quantiles(const struct nt_value *v, struct counter_row *r)
{
	char buf[COUNTER_TEXT_BYTES];
	const char *text = buf;

	buf[0] = '\0';
	if (v)
		nt_value_text(v, buf, sizeof(buf));
	while (*text) {
		size_t name = strcspn(text, "=;");
		struct counter_quantile *q = &r->quantiles[r->quantile_count];
		char *end;
		double value;

		if (!name || text[name] != '=' || name >= COUNTER_QUANTILE_BYTES)
			return;
		value = strtod(text + name + 1, &end);
		if (end == text + name + 1)
			return;
		if (r->quantile_count == COUNTER_QUANTILES) {
			r->quantiles_dropped++;
		} else {
			memcpy(q->name, text, name);
			q->name[name] = '\0';
			q->value = value;
			r->quantile_count++;
		}
		text = end + (*end == ';');
	}
}

static void read_numbers(const struct nt_value *v, size_t n, struct counter_row *r)
{
	static const size_t exponential[] = { 1, 0, 4, 2, 3 }; /* sum, count, zeros, min, max */

	switch (r->kind) {
	case COUNTER_GAUGE:
		r->v[0] = number_of(nt_value_find(v, n, "lastValue"));
		break;
	case COUNTER_HISTOGRAM:
		r->v[0] = number_of(nt_value_find(v, n, "count"));
		r->v[1] = number_of(nt_value_find(v, n, "sum"));
		read_quantiles(nt_value_find(v, n, "quantiles"), r);
		break;
	case COUNTER_EXPONENTIAL:
		for (size_t i = 0; i < 5 && EXPONENTIAL_FIRST + i < n; i++)
			r->v[exponential[i]] = number_of(&v[EXPONENTIAL_FIRST + i]);
		break;
	default:
		r->v[0] = number_of(nt_value_find(v, n, "value"));
		r->v[1] = number_of(nt_value_find(v, n, "rate"));
		break;
	}
}

#define COPY(field, member) copy_text(nt_value_find(v, n, field), r->member, sizeof(r->member))

static void read_names(const struct nt_value *v, size_t n, struct counter_row *r)
{
	COPY("sessionId", session);
	COPY("meterName", provider);
	COPY("meterVersion", version);
	COPY("instrumentName", name);
	COPY("unit", unit);
	r->instrument = (uint32_t)nt_value_u64(v, n, "instrumentId", 0);
}

static enum counter_event read_value(const struct nt_event *ev, enum counter_kind kind,
				     struct counter_row *r)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);

	row_init(r, kind, ev->time_ns);
	read_names(v, n, r);
	COPY("tags", tags);
	read_numbers(v, n, r);
	return COUNTER_EVENT_READING;
}

/* Comes once an instrument and session. */
static enum counter_event read_instrument(const struct nt_event *ev, struct counter_row *r)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);

	row_init(r, COUNTER_COUNTER, ev->time_ns);
	read_names(v, n, r);
	COPY("instrumentType", type);
	COPY("description", text);
	COPY("instrumentTags", instrument_tags);
	COPY("meterTags", meter_tags);
	COPY("meterScopeHash", scope);
	return COUNTER_EVENT_INSTRUMENT;
}

/* {session, text} */
static enum counter_event read_error(const struct nt_event *ev, enum counter_event what,
				     struct counter_row *r)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);

	row_init(r, COUNTER_COUNTER, ev->time_ns);
	copy_text(n > 0 ? &v[0] : NULL, r->session, sizeof(r->session));
	copy_text(n > 1 ? &v[1] : NULL, r->text, sizeof(r->text));
	return what;
}

static enum counter_event read_meter(const struct nt_event *ev, struct counter_row *r)
{
	switch (ev->def->event_id) {
	case COLLECTION_START:
		return read_error(ev, COUNTER_EVENT_COLLECTION, r);
	case COUNTER_VALUE:
		return read_value(ev, COUNTER_COUNTER, r);
	case UP_DOWN_VALUE:
		return read_value(ev, COUNTER_UP_DOWN, r);
	case GAUGE_VALUE:
		return read_value(ev, COUNTER_GAUGE, r);
	case HISTOGRAM_VALUE:
		return read_value(ev, COUNTER_HISTOGRAM, r);
	case EXPONENTIAL_VALUE:
		return read_value(ev, COUNTER_EXPONENTIAL, r);
	case BEGIN_INSTRUMENT:
		return read_instrument(ev, r);
	case SERIES_LIMIT:
		return read_error(ev, COUNTER_EVENT_SERIES_LIMIT, r);
	case HISTOGRAM_LIMIT:
		return read_error(ev, COUNTER_EVENT_HISTOGRAM_LIMIT, r);
	case CALLBACK_ERROR:
		return read_error(ev, COUNTER_EVENT_CALLBACK_ERROR, r);
	case ERROR_MESSAGE:
		return read_error(ev, COUNTER_EVENT_ERROR, r);
	case SESSIONS_NOT_SUPPORTED:
	case SESSIONS_WRONG:
		return read_error(ev, COUNTER_EVENT_REFUSED, r);
	default:
		return COUNTER_EVENT_OTHER;
	}
}

/* --- EventCounters --- */

enum { N_MEAN, N_DEVIATION, N_COUNT, N_MIN, N_MAX, N_INTERVAL, N_INCREMENT, NUMBERS };

struct reader {
	struct counter_row *row;
	double numbers[NUMBERS];
};

static const char *const number_names[NUMBERS] = { "Mean", "StandardDeviation", "Count",    "Min",
						   "Max",  "IntervalSec",	"Increment" };

static void take_text(struct counter_row *r, const struct nt_value *v)
{
	const struct {
		const char *field;
		char *buf;
		size_t size;
	} texts[] = {
		{ "Name", r->name, sizeof(r->name) },
		{ "DisplayName", r->title, sizeof(r->title) },
		{ "DisplayRateTimeScale", r->scale, sizeof(r->scale) },
		{ "Series", r->session, sizeof(r->session) },
		{ "Metadata", r->tags, sizeof(r->tags) },
		{ "DisplayUnits", r->unit, sizeof(r->unit) },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!strcmp(v->field->name, texts[i].field))
			copy_text(v, texts[i].buf, texts[i].size);
}

static enum nt_status take_value(void *ctx, const struct nt_value *v)
{
	struct reader *r = ctx;

	if (v->kind == NT_V_UTF16 || v->kind == NT_V_UTF8) {
		take_text(r->row, v);
		return NT_OK;
	}
	for (size_t i = 0; i < NUMBERS; i++)
		if (!strcmp(v->field->name, number_names[i]))
			r->numbers[i] = number_of(v);
	return NT_OK;
}

/* Digits, up to a largest number; false where there are none. */
static bool take_digits(const char **at, unsigned long max, double *ret)
{
	unsigned long n = 0;
	const char *s = *at;

	for (; *s >= '0' && *s <= '9'; s++) {
		n = n * 10 + (unsigned long)(*s - '0');
		if (n > max)
			return false;
	}
	if (s == *at)
		return false;
	*at = s;
	*ret = (double)n;
	return true;
}

static bool take_char(const char **at, char ch)
{
	if (**at != ch)
		return false;
	++*at;
	return true;
}

double counter_scale_seconds(const char *scale)
{
	double days = 0, hours, minutes, seconds, ticks = 0, all;
	const char *s = scale;

	if (!*s)
		return 1;
	if (s[strcspn(s, ".:")] == '.' &&
	    (!take_digits(&s, 10675199, &days) || !take_char(&s, '.')))
		return NAN;
	if (!take_digits(&s, 23, &hours) || !take_char(&s, ':') || !take_digits(&s, 59, &minutes) ||
	    !take_char(&s, ':') || !take_digits(&s, 59, &seconds))
		return NAN;
	if (take_char(&s, '.') && (strlen(s) != 7 || !take_digits(&s, 9999999, &ticks)))
		return NAN;
	all = ((days * 24 + hours) * 60 + minutes) * 60 + seconds + ticks / 1e7;
	return *s || all <= 0 ? NAN : all;
}

static enum counter_event read_event_counter(const struct nt_event *ev, struct counter_row *row)
{
	static const struct nt_visitor visitor = { .value = take_value };
	struct reader in = { .row = row };
	double interval;

	for (size_t i = 0; i < NUMBERS; i++)
		in.numbers[i] = NAN;
	row_init(row, COUNTER_MEAN, ev->time_ns);
	snprintf(row->provider, sizeof(row->provider), "%s", ev->def->provider);
	if (nt_payload_visit(ev, &visitor, &in, NULL) < 0)
		return COUNTER_EVENT_UNREADABLE;
	interval = in.numbers[N_INTERVAL];
	if (isnan(in.numbers[N_MEAN]) && isnan(in.numbers[N_INCREMENT]))
		return COUNTER_EVENT_UNREADABLE;
	/* Not a number counts as none, and a clock that went back is no interval. */
	if (!(interval >= LEAST_INTERVAL_S))
		return COUNTER_EVENT_EARLY;
	if (isnan(in.numbers[N_INCREMENT])) {
		memcpy(row->v, &in.numbers[N_MEAN], 6 * sizeof(double));
		return COUNTER_EVENT_READING;
	}
	row->kind = COUNTER_SUM;
	row->v[0] = in.numbers[N_INCREMENT];
	row->v[1] = in.numbers[N_INCREMENT] / interval * counter_scale_seconds(row->scale);
	row->v[2] = interval;
	return COUNTER_EVENT_READING;
}

enum counter_event counter_event_read(const struct nt_event *ev, struct counter_row *ret)
{
	if (is_meter(ev->def))
		return read_meter(ev, ret);
	if (!strcmp(ev->def->name, "EventCounters"))
		return read_event_counter(ev, ret);
	return COUNTER_EVENT_OTHER;
}

/* --- tags --- */

static bool is_key_char(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
	       ch == '.' || ch == '_' || ch == '-' || ch == '/' || ch == ':';
}

/* The length of a key that is followed by '=', or 0. */
static size_t key_length(const char *s)
{
	size_t n = 0;

	while (is_key_char(s[n]))
		n++;
	return s[n] == '=' ? n : 0;
}

/* Where the next ",key=" begins, or the end. */
static size_t value_length(const char *s)
{
	size_t n = 0;

	for (; s[n]; n++)
		if (s[n] == ',' && key_length(s + n + 1))
			break;
	return n;
}

bool counter_next_tag(const char **at, const char **ret_key, size_t *ret_key_len,
		      const char **ret_value, size_t *ret_value_len)
{
	const char *s = *at;
	size_t n = strcspn(s, "=");

	if (!s[n])
		return false;
	*ret_key = s;
	*ret_key_len = n;
	s += n + 1;
	*ret_value = s;
	*ret_value_len = value_length(s);
	s += *ret_value_len;
	*at = s + (*s == ',');
	return true;
}
