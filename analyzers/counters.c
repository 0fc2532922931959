/* SPDX-License-Identifier: MIT */

/*
 * EventCounters and Meters that a trace has, as series of readings at the events' own times.
 *
 * An EventCounter writes one object a reading, in an event of that name of its own source.  Meters
 * are written by System.Diagnostics.Metrics, all numbers as text; two instruments may have one name
 * and are told apart by their ids, which .NET 9 and newer send (runtime-events.md §6).
 */

#include "analyzers/counters_internal.h"

#include <math.h>
#include <stdlib.h>

#include "analyzers/grow.h"

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
	MAX_FIELDS = 16,
	MAX_TEXTS = 20 * 1000,
	MAX_INSTRUMENTS = 4000,
	NUMBER_BYTES = 64,
	QUANTILES_BYTES = 512,
};

#define LEAST_INTERVAL_S 0.001 /* shorter ones come once, when the session begins */

struct analyzer {
	struct counters c;
};

static struct analyzer *counters_free(struct analyzer *a)
{
	const struct nt_alloc *al;

	if (!a)
		return NULL;
	al = a->c.shared->alloc;
	for (size_t i = 0; i < a->c.series_count; i++)
		an_mem_free(al, a->c.series[i].points);
	an_mem_free(al, a->c.series);
	an_mem_free(al, a->c.instruments);
	an_textset_done(&a->c.texts);
	nt_idmap_done(&a->c.by_key);
	an_mem_free(al, a);
	return NULL;
}

static struct analyzer *counters_new(struct an_shared *shared)
{
	struct analyzer *a = an_mem_get(shared->alloc, sizeof(*a));

	if (!a)
		return NULL;
	a->c.shared = shared;
	a->c.error_text = AN_TEXT_OTHER;
	an_textset_init(&a->c.texts, shared->alloc, MAX_TEXTS);
	nt_idmap_init(&a->c.by_key, shared->alloc);
	return a;
}

static bool is_meter(const struct nt_event_def *def)
{
	return !strcmp(def->provider, "System.Diagnostics.Metrics");
}

static bool counters_wants(const struct nt_event_def *def)
{
	return !strcmp(def->name, "EventCounters") || is_meter(def);
}

static void reading_init(struct counter_reading *r, enum counter_kind kind, int64_t time_ns)
{
	*r = (struct counter_reading){ .kind = kind };
	r->point.time_ns = time_ns;
	for (size_t i = 0; i < COUNTER_COLUMNS; i++)
		r->point.v[i] = NAN;
}

/* --- meters --- */

static enum nt_status keep_text(struct counters *c, const struct nt_value *v, size_t n,
				const char *name, uint32_t *ret)
{
	return an_textset_add_value(&c->texts, nt_value_find(v, n, name), ret);
}

/* Several fields of an event; ends at a NULL name. */
struct wanted {
	const char *name;
	uint32_t *text;
};

static enum nt_status keep_texts(struct counters *c, const struct nt_value *v, size_t n,
				 const struct wanted *w)
{
	enum nt_status st = NT_OK;

	for (; w->name && st == NT_OK; w++)
		st = keep_text(c, v, n, w->name, w->text);
	return st;
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

static enum nt_status on_value(struct counters *c, const struct nt_event *ev,
			       enum counter_kind kind)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	char quantiles[QUANTILES_BYTES] = "";
	const struct nt_value *q;
	struct counter_reading r;
	const struct wanted texts[] = {
		{ "sessionId", &r.key[KEY_SESSION] },
		{ "meterName", &r.key[KEY_PROVIDER] },
		{ "meterVersion", &r.key[KEY_VERSION] },
		{ "instrumentName", &r.key[KEY_NAME] },
		{ "tags", &r.key[KEY_TAGS] },
		{ "unit", &r.unit },
		{ "", &r.title },
		{ "", &r.scale },
		{ NULL, NULL },
	};
	enum nt_status st;

	reading_init(&r, kind, ev->time_ns);
	st = keep_texts(c, v, n, texts);
	if (st < 0)
		return st;
	r.instrument = (uint32_t)nt_value_u64(v, n, "instrumentId", 0);
	switch (kind) {
	case COUNTER_GAUGE:
		r.point.v[0] = number_of(nt_value_find(v, n, "lastValue"));
		break;
	case COUNTER_HISTOGRAM:
		r.point.v[0] = number_of(nt_value_find(v, n, "count"));
		r.point.v[1] = number_of(nt_value_find(v, n, "sum"));
		q = nt_value_find(v, n, "quantiles");
		if (q)
			nt_value_text(q, quantiles, sizeof(quantiles));
		r.quantiles = quantiles;
		break;
	case COUNTER_EXPONENTIAL: /* ... scale, sum, count, zero count, min, max, buckets */
		for (size_t i = 0; i < 5 && 8 + i < n; i++) {
			static const size_t columns[] = { 1, 0, 4, 2, 3 };

			r.point.v[columns[i]] = number_of(&v[8 + i]);
		}
		break;
	default:
		r.point.v[0] = number_of(nt_value_find(v, n, "value"));
		r.point.v[1] = number_of(nt_value_find(v, n, "rate"));
		break;
	}
	return counters_add(c, &r);
}

/* Comes once an instrument and session. */
static enum nt_status on_instrument(struct counters *c, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	struct counter_instrument i = { .id = (uint32_t)nt_value_u64(v, n, "instrumentId", 0) };
	struct counter_instrument *list;
	const struct wanted texts[] = {
		{ "meterName", &i.meter },
		{ "meterVersion", &i.version },
		{ "instrumentName", &i.name },
		{ "instrumentType", &i.type },
		{ "description", &i.description },
		{ "instrumentTags", &i.tags },
		{ "meterTags", &i.meter_tags },
		{ "meterScopeHash", &i.scope },
		{ NULL, NULL },
	};
	enum nt_status st;

	if (c->instrument_count >= MAX_INSTRUMENTS)
		return NT_OK;
	st = keep_texts(c, v, n, texts);
	if (st < 0)
		return st;
	list = an_mem_grow(c->shared->alloc, c->instruments, &c->instrument_cap,
			   c->instrument_count + 1, sizeof(*list));
	if (!list)
		return NT_ENOMEM;
	c->instruments = list;
	list[c->instrument_count++] = i;
	return NT_OK;
}

static enum nt_status on_error(struct counters *c, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);

	c->errors++;
	if (c->error_text != AN_TEXT_OTHER || n < 2)
		return NT_OK;
	return an_textset_add_value(&c->texts, &v[1], &c->error_text);
}

static enum nt_status on_meter(struct counters *c, const struct nt_event *ev)
{
	switch (ev->def->event_id) {
	case COLLECTION_START:
		c->collection++;
		return NT_OK;
	case COUNTER_VALUE:
		return on_value(c, ev, COUNTER_COUNTER);
	case UP_DOWN_VALUE:
		return on_value(c, ev, COUNTER_UP_DOWN);
	case GAUGE_VALUE:
		return on_value(c, ev, COUNTER_GAUGE);
	case HISTOGRAM_VALUE:
		return on_value(c, ev, COUNTER_HISTOGRAM);
	case EXPONENTIAL_VALUE:
		return on_value(c, ev, COUNTER_EXPONENTIAL);
	case BEGIN_INSTRUMENT:
		return on_instrument(c, ev);
	case SERIES_LIMIT:
		c->series_limit++;
		return NT_OK;
	case HISTOGRAM_LIMIT:
		c->histogram_limit++;
		return NT_OK;
	case CALLBACK_ERROR:
		c->callback_errors++;
		return on_error(c, ev);
	case ERROR_MESSAGE:
		return on_error(c, ev);
	case SESSIONS_NOT_SUPPORTED:
	case SESSIONS_WRONG:
		c->session_refused = true;
		return NT_OK;
	default:
		return NT_OK; /* messages, versions, ends of collections */
	}
}

/* --- EventCounters --- */

enum { T_NAME, T_TITLE, T_SCALE, T_SERIES, T_METADATA, T_UNIT, TEXTS };
enum { N_MEAN, N_DEVIATION, N_COUNT, N_MIN, N_MAX, N_INTERVAL, N_INCREMENT, NUMBERS };

struct reader {
	struct counters *c;
	uint32_t texts[TEXTS];
	double numbers[NUMBERS];
};

static const char *const text_names[TEXTS] = { "Name",	 "DisplayName", "DisplayRateTimeScale",
					       "Series", "Metadata",	"DisplayUnits" };
static const char *const number_names[NUMBERS] = { "Mean", "StandardDeviation", "Count",    "Min",
						   "Max",  "IntervalSec",	"Increment" };

static enum nt_status take_value(void *ctx, const struct nt_value *v)
{
	struct reader *r = ctx;

	if (v->kind == NT_V_UTF16 || v->kind == NT_V_UTF8) {
		for (size_t i = 0; i < TEXTS; i++)
			if (!strcmp(v->field->name, text_names[i]))
				return an_textset_add_value(&r->c->texts, v, &r->texts[i]);
		return NT_OK;
	}
	for (size_t i = 0; i < NUMBERS; i++)
		if (!strcmp(v->field->name, number_names[i]))
			r->numbers[i] = number_of(v);
	return NT_OK;
}

/* "00:01:00" in seconds; 1 where there is none. */
static double scale_of(const char *text)
{
	unsigned long parts[3] = { 0 };
	char *end = NULL;

	for (size_t i = 0; i < 3; i++) {
		parts[i] = strtoul(text, &end, 10);
		if (end == text || (i < 2 && *end != ':'))
			return 1;
		text = end + 1;
	}
	if (parts[0] > 1000000 || parts[1] > 59 || parts[2] > 59)
		return 1;
	return parts[0] + parts[1] + parts[2] ? (double)(parts[0] * 3600 + parts[1] * 60 + parts[2])
					      : 1;
}

static enum nt_status on_event_counter(struct counters *c, const struct nt_event *ev)
{
	static const struct nt_visitor visitor = { .value = take_value };
	struct reader in = { .c = c };
	struct counter_reading r;
	double interval;
	enum nt_status st = an_textset_add(&c->texts, "", &in.texts[0]);

	for (size_t i = 1; i < TEXTS; i++)
		in.texts[i] = in.texts[0];
	for (size_t i = 0; i < NUMBERS; i++)
		in.numbers[i] = NAN;
	reading_init(&r, COUNTER_MEAN, ev->time_ns);
	r.key[KEY_VERSION] = in.texts[0];
	if (st == NT_OK)
		st = an_textset_add(&c->texts, ev->def->provider, &r.key[KEY_PROVIDER]);
	if (st == NT_OK)
		st = nt_payload_visit(ev, &visitor, &in, NULL);
	if (st < 0)
		return st;
	r.key[KEY_SESSION] = in.texts[T_SERIES];
	r.key[KEY_NAME] = in.texts[T_NAME];
	r.key[KEY_TAGS] = in.texts[T_METADATA];
	r.unit = in.texts[T_UNIT];
	r.title = in.texts[T_TITLE];
	r.scale = in.texts[T_SCALE];
	interval = in.numbers[N_INTERVAL];
	if (isnan(in.numbers[N_MEAN]) && isnan(in.numbers[N_INCREMENT])) {
		c->unreadable++;
		return NT_OK;
	}
	if (interval < LEAST_INTERVAL_S)
		return NT_OK;
	if (isnan(in.numbers[N_INCREMENT])) {
		memcpy(r.point.v, &in.numbers[N_MEAN], 6 * sizeof(double));
	} else {
		r.kind = COUNTER_SUM;
		r.point.v[0] = in.numbers[N_INCREMENT];
		r.point.v[1] = in.numbers[N_INCREMENT] / interval *
			       scale_of(an_textset_get(&c->texts, r.scale));
		r.point.v[2] = interval;
	}
	return counters_add(c, &r);
}

static enum nt_status counters_event(struct analyzer *a, const struct nt_event *ev)
{
	return is_meter(ev->def) ? on_meter(&a->c, ev) : on_event_counter(&a->c, ev);
}

static enum nt_status report(struct analyzer *a, struct an_report *out)
{
	return counters_report(&a->c, out);
}

/* They come with arguments, so their profile is a fixed one (src/profiles.c). */
static const struct an_provider providers[] = { { 0 } };

const struct an_class an_class_counters = {
	.name = "counters",
	.summary = "EventCounters and Meters as series of readings",
	.providers = providers,
	.wants = counters_wants,
	.new = counters_new,
	.event = counters_event,
	.report = report,
	.free = counters_free,
	.needs = AN_NEED_ORDER,
	.symptom = "numbers over time: rates, sizes, percentiles",
	.cost = AN_COST_NONE,
};
