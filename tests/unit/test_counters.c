/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/counters/counter_event.h"
#include "tests/support/failalloc.h"
#include "tests/support/play.h"

static const struct an_class *const classes[] = { &an_class_counters, NULL };

#define TEXT(field_name)                                                                           \
	{                                                                                          \
		.name = (field_name), .type = NT_T_STRING16                                        \
	}
#define INT(field_name)                                                                            \
	{                                                                                          \
		.name = (field_name), .type = NT_T_I32                                             \
	}
#define METER TEXT("sessionId"), TEXT("meterName"), TEXT("meterVersion"), TEXT("instrumentName")

static const struct nt_field counter_fields[] = {
	METER, TEXT("unit"), TEXT("tags"), TEXT("rate"), TEXT("value"), INT("instrumentId")
};
static const struct nt_field gauge_fields[] = { METER, TEXT("unit"), TEXT("tags"),
						TEXT("lastValue"), INT("instrumentId") };
static const struct nt_field histogram_fields[] = {
	METER,
	TEXT("unit"),
	TEXT("tags"),
	TEXT("quantiles"),
	INT("count"),
	{ .name = "sum", .type = NT_T_F64 },
	INT("instrumentId"),
};
static const struct nt_field instrument_fields[] = {
	METER,
	TEXT("instrumentType"),
	TEXT("unit"),
	TEXT("description"),
	TEXT("instrumentTags"),
	TEXT("meterTags"),
	TEXT("meterScopeHash"),
	INT("instrumentId"),
};
static const struct nt_field session_fields[] = { TEXT("sessionId"), TEXT("error") };

static void meter_event(struct play *p, const char *name, uint32_t id, double ms,
			const struct nt_field *fields, size_t count, struct build *b)
{
	struct nt_event_def *d = NULL;

	for (size_t i = 0; i < p->def_count; i++)
		if (p->defs[i].event_id == id && p->defs[i].field_count == count)
			d = &p->defs[i];
	if (!d) {
		d = &p->defs[p->def_count];
		*d = (struct nt_event_def){ .index = p->def_count++,
					    .defined = true,
					    .provider = "System.Diagnostics.Metrics",
					    .name = name,
					    .event_id = id,
					    .layout = NT_LAYOUT_METADATA,
					    .fields = fields,
					    .field_count = count };
	}
	play_own(p, NT_PROV_OTHER, name, id, fields, count, 1, ms, b);
}

#define MEMBERS(a) (sizeof(a) / sizeof((a)[0]))

static void head(struct build *b, const char *meter, const char *instrument)
{
	build_utf16(b, "abc");
	build_utf16(b, meter);
	build_utf16(b, "1.2.0");
	build_utf16(b, instrument);
}

static void counter(struct play *p, double ms, const char *name, const char *tags, const char *rate,
		    const char *value, uint32_t id)
{
	struct build b = { 0 };

	head(&b, "Shop", name);
	build_utf16(&b, "{order}");
	build_utf16(&b, tags);
	build_utf16(&b, rate);
	build_utf16(&b, value);
	if (id)
		build_u32(&b, id);
	meter_event(p, "CounterRateValuePublished", 4, ms, counter_fields,
		    MEMBERS(counter_fields) - !id, &b);
}

static void gauge(struct play *p, double ms, const char *tags, const char *value, uint32_t id)
{
	struct build b = { 0 };

	head(&b, "Shop", "depth");
	build_utf16(&b, "");
	build_utf16(&b, tags);
	build_utf16(&b, value);
	build_u32(&b, id);
	meter_event(p, "GaugeValuePublished", 5, ms, gauge_fields, MEMBERS(gauge_fields), &b);
}

static void histogram(struct play *p, double ms, const char *quantiles, uint32_t count, double sum)
{
	struct build b = { 0 };
	uint64_t bits;

	head(&b, "Shop", "duration");
	build_utf16(&b, "ms");
	build_utf16(&b, "");
	build_utf16(&b, quantiles);
	build_u32(&b, count);
	memcpy(&bits, &sum, sizeof(bits));
	build_u64(&b, bits);
	build_u32(&b, 2);
	meter_event(p, "HistogramValuePublished", 6, ms, histogram_fields,
		    MEMBERS(histogram_fields), &b);
}

static void instrument(struct play *p, const char *name, const char *tags, uint32_t id)
{
	struct build b = { 0 };

	head(&b, "Shop", name);
	build_utf16(&b, "Counter`1");
	build_utf16(&b, "{order}");
	build_utf16(&b, "what it counts");
	build_utf16(&b, "");
	build_utf16(&b, tags);
	build_utf16(&b, "");
	build_u32(&b, id);
	meter_event(p, "BeginInstrumentReporting", 7, 1, instrument_fields,
		    MEMBERS(instrument_fields), &b);
}

static void session_event(struct play *p, uint32_t id, double ms)
{
	struct build b = { 0 };

	build_utf16(&b, "abc");
	build_utf16(&b, "it broke");
	meter_event(p, "Session", id, ms, session_fields, MEMBERS(session_fields), &b);
}

static const struct an_value *point(const struct an_value *series, size_t n)
{
	const struct an_value *v = an_get(series, "points");

	v = v ? v->first : NULL;
	while (v && n--)
		v = v->next;
	return v;
}

static const struct an_value *tag(const struct an_value *series, const char *name)
{
	const struct an_value *v = an_get(series, "tags");

	for (v = v ? v->first : NULL; v; v = v->next)
		if (!strcmp(v->name, name))
			return v;
	return NULL;
}

static void nothing(void **state)
{
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	session_event(&p, 2, 1);
	assert_int_equal(an_get(play_report(&p), "counters")->kind, AN_NULL);
	assert_false(play_finds(&p, "trace.counters-incomplete"));
	play_end(&p);
}

static void meters(void **state)
{
	const struct an_value *s;
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	instrument(&p, "orders", "", 1);
	session_event(&p, 2, 1000);
	counter(&p, 1000.5, "orders", "region=eu", "90", "90", 1);
	histogram(&p, 1001, "0.5=64;0.95=84;0.99=86.25", 45, 2880.5);
	session_event(&p, 3, 1002);
	session_event(&p, 2, 2000);
	counter(&p, 2000.25, "orders", "region=eu", "84", "174", 1);
	histogram(&p, 2001, "0.5=21;0.99=99", 42, 1615);
	assert_int_equal(an_get(play_report(&p), "counters")->count, 2);
	s = play_find(&p, "counters", "name", "orders");
	assert_string_equal(an_get_text(s, "provider", ""), "Shop");
	assert_string_equal(an_get_text(s, "kind", ""), "counter");
	assert_string_equal(an_get_text(s, "source", ""), "meter");
	assert_string_equal(an_get_text(s, "unit", ""), "{order}");
	assert_string_equal(an_get_text(s, "description", ""), "what it counts");
	assert_int_equal(an_get_u64(s, "instrument_id", 0), 1);
	assert_string_equal(tag(s, "region")->text, "eu");
	assert_int_equal(an_get(s, "points")->count, 2);
	assert_true(an_get_f64(point(s, 0), "time_ms", 0) == 1000.5);
	assert_true(an_get_f64(point(s, 1), "time_ms", 0) == 2000.25);
	assert_true(an_get_f64(point(s, 1), "value", 0) == 174);
	assert_true(an_get_f64(point(s, 1), "delta", 0) == 84);
	s = play_find(&p, "counters", "name", "duration");
	assert_string_equal(an_get_text(s, "kind", ""), "histogram");
	assert_true(an_get_f64(point(s, 0), "count", 0) == 45);
	assert_true(an_get_f64(point(s, 0), "sum", 0) == 2880.5);
	assert_int_equal(an_get(point(s, 0), "quantiles")->count, 3);
	assert_string_equal(an_get(point(s, 0), "quantiles")->first->name, "0.5");
	assert_true(an_get(point(s, 0), "quantiles")->last->f == 86.25);
	/* one quantile was not sent */
	assert_int_equal(an_get(point(s, 1), "quantiles")->count, 2);
	assert_string_equal(an_get(point(s, 1), "quantiles")->last->name, "0.99");
	play_end(&p);
}

/* Two instruments of one name and the same tags. */
static void twins(void **state)
{
	const struct an_value *a, *b;
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	instrument(&p, "hits", "side=a", 4);
	instrument(&p, "hits", "side=b", 9);
	for (int i = 1; i <= 2; i++) {
		session_event(&p, 2, i * 1000);
		counter(&p, i * 1000 + 1, "hits", "k=v", "1", i == 1 ? "1" : "2", 4);
		counter(&p, i * 1000 + 2, "hits", "k=v", "10", i == 1 ? "10" : "20", 9);
	}
	assert_int_equal(an_get(play_report(&p), "counters")->count, 2);
	a = play_row(&p, "counters", 0);
	b = play_row(&p, "counters", 1);
	assert_int_equal(an_get_u64(a, "instrument_id", 0), 4);
	assert_string_equal(an_get_text(a, "meter_tags", ""), "side=a");
	assert_string_equal(an_get_text(b, "meter_tags", ""), "side=b");
	assert_true(an_get_f64(point(a, 1), "value", 0) == 2);
	assert_true(an_get_f64(point(b, 1), "value", 0) == 20);
	play_end(&p);
}

/* The same from a runtime that sends no ids: the second one of a collection is the twin. */
static void twins_without_ids(void **state)
{
	const struct an_value *a, *b;
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	for (int i = 1; i <= 2; i++) {
		session_event(&p, 2, i * 1000);
		counter(&p, i * 1000 + 1, "hits", "k=v", "1", i == 1 ? "1" : "2", 0);
		counter(&p, i * 1000 + 2, "hits", "k=v", "10", i == 1 ? "10" : "20", 0);
		session_event(&p, 3, i * 1000 + 3);
	}
	assert_int_equal(an_get(play_report(&p), "counters")->count, 2);
	a = play_row(&p, "counters", 0);
	b = play_row(&p, "counters", 1);
	assert_int_equal(an_get(a, "instrument_id")->kind, AN_NULL);
	assert_int_equal(an_get_u64(b, "twin", 0), 1);
	assert_true(an_get_f64(point(a, 1), "value", 0) == 2);
	assert_true(an_get_f64(point(b, 1), "value", 0) == 20);
	play_end(&p);
}

static void check_tags(const char *text, const char *expected)
{
	char got[256] = "";
	size_t n = 0;
	struct play p;
	const struct an_value *v;

	assert_true(play_begin(&p, NULL, classes, NULL));
	gauge(&p, 1, text, "7", 3);
	v = an_get(play_row(&p, "counters", 0), "tags");
	for (v = v->first; v; v = v->next)
		n += (size_t)snprintf(got + n, sizeof(got) - n, "[%s|%s]", v->name, v->text);
	assert_string_equal(got, expected);
	play_end(&p);
}

/* There is no escaping in them. */
static void tags(void **state)
{
	(void)state;
	check_tags("", "");
	check_tags("zone=a", "[zone|a]");
	check_tags("zone=a,shelf=3", "[zone|a][shelf|3]");
	check_tags("zone=b\"=,", "[zone|b\"=,]");
	check_tags("a=1,2,b=x=y", "[a|1,2][b|x=y]");
	check_tags("a=,b=", "[a|][b|]");
	check_tags("a=1,a=2", "[a|1]");
	check_tags("no pair", "");
}

static void gauges(void **state)
{
	const struct an_value *s;
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	gauge(&p, 1, "", "-1.5e-7", 3);
	gauge(&p, 2, "", "what", 3);
	s = play_row(&p, "counters", 0);
	assert_true(an_get_f64(point(s, 0), "value", 0) == -1.5e-7);
	assert_int_equal(an_get(point(s, 1), "value")->kind, AN_NULL);
	play_end(&p);
}

/* --- EventCounters --- */

static const struct nt_field mean_payload[] = {
	TEXT("Name"),
	TEXT("DisplayName"),
	{ .name = "Mean", .type = NT_T_F64 },
	{ .name = "StandardDeviation", .type = NT_T_F64 },
	INT("Count"),
	{ .name = "Min", .type = NT_T_F64 },
	{ .name = "Max", .type = NT_T_F64 },
	{ .name = "IntervalSec", .type = NT_T_F32 },
	TEXT("Series"),
	TEXT("CounterType"),
	TEXT("Metadata"),
	TEXT("DisplayUnits"),
};
static const struct nt_field sum_payload[] = {
	TEXT("Name"),
	TEXT("DisplayName"),
	TEXT("DisplayRateTimeScale"),
	{ .name = "Increment", .type = NT_T_F64 },
	{ .name = "IntervalSec", .type = NT_T_F32 },
	TEXT("Metadata"),
	TEXT("Series"),
	TEXT("CounterType"),
	TEXT("DisplayUnits"),
};
#define OBJECT(field_name, fields)                                                                 \
	{                                                                                          \
		.name = (field_name), .type = NT_T_OBJECT, .children = (fields),                   \
		.child_count = MEMBERS(fields)                                                     \
	}
static const struct nt_field mean_object[] = { OBJECT("Payload", mean_payload) };
static const struct nt_field mean_fields[] = { OBJECT("", mean_object) };
static const struct nt_field sum_object[] = { OBJECT("Payload", sum_payload) };
static const struct nt_field sum_fields[] = { OBJECT("", sum_object) };

static void put_f64(struct build *b, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	build_u64(b, bits);
}

static void put_f32(struct build *b, float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof(bits));
	build_u32(b, bits);
}

static void mean(struct play *p, double ms, double value, float interval, const char *series)
{
	struct build b = { 0 };

	build_utf16(&b, "cpu-usage");
	build_utf16(&b, "CPU Usage");
	put_f64(&b, value);
	put_f64(&b, 0.5);
	build_u32(&b, 3);
	put_f64(&b, 1);
	put_f64(&b, 9);
	put_f32(&b, interval);
	build_utf16(&b, series);
	build_utf16(&b, "Mean");
	build_utf16(&b, "host:a,zone:b");
	build_utf16(&b, "%");
	play_own(p, NT_PROV_OTHER, "EventCounters", 21, mean_fields, 1, 1, ms, &b);
}

static void sum(struct play *p, double ms, double increment, const char *scale)
{
	struct build b = { 0 };

	build_utf16(&b, "gen-0-gc-count");
	build_utf16(&b, "Gen 0 GC Count");
	build_utf16(&b, scale);
	put_f64(&b, increment);
	put_f32(&b, 2);
	build_utf16(&b, "");
	build_utf16(&b, "Interval=2000");
	build_utf16(&b, "Sum");
	build_utf16(&b, "");
	play_own(p, NT_PROV_OTHER, "EventCounters", 22, sum_fields, 1, 1, ms, &b);
}

static void event_counters(void **state)
{
	const struct an_value *s;
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	mean(&p, 1, 50, 0.0001f, "Interval=1000"); /* when the session begins: no interval yet */
	mean(&p, 1000, 2.25, 1, "Interval=1000");
	mean(&p, 1000, 3.5, 5, "Interval=5000"); /* of somebody else's session */
	mean(&p, 2000, 4.5, 1, "Interval=1000");
	sum(&p, 2000, 3, "00:01:00");
	assert_int_equal(an_get(play_report(&p), "counters")->count, 3);
	s = play_find(&p, "counters", "series", "Interval=1000");
	assert_string_equal(an_get_text(s, "provider", ""), "Test-Provider");
	assert_string_equal(an_get_text(s, "name", ""), "cpu-usage");
	assert_string_equal(an_get_text(s, "kind", ""), "mean");
	assert_string_equal(an_get_text(s, "unit", ""), "%");
	assert_string_equal(an_get_text(s, "display_name", ""), "CPU Usage");
	assert_int_equal(an_get(s, "points")->count, 2);
	assert_true(an_get_f64(point(s, 0), "time_ms", 0) == 1000);
	assert_true(an_get_f64(point(s, 0), "value", 0) == 2.25);
	assert_true(an_get_f64(point(s, 0), "standard_deviation", 0) == 0.5);
	assert_true(an_get_f64(point(s, 0), "count", 0) == 3);
	assert_true(an_get_f64(point(s, 0), "min", 0) == 1);
	assert_true(an_get_f64(point(s, 0), "max", 0) == 9);
	assert_true(an_get_f64(point(s, 1), "value", 0) == 4.5);
	s = play_find(&p, "counters", "kind", "sum");
	assert_true(an_get_f64(point(s, 0), "value", 0) == 3);
	assert_true(an_get_f64(point(s, 0), "rate", 0) == 90); /* a minute */
	assert_true(an_get_f64(s, "rate_scale_s", 0) == 60);
	assert_null(an_get(play_find(&p, "counters", "kind", "mean"), "rate_scale_s"));
	play_end(&p);
}

/* TimeSpan.ToString("c"); what is anything else gives no rate rather than a wrong one. */
static void rate_scales(void **state)
{
	static const struct {
		const char *text;
		double seconds;
	} good[] = {
		{ "", 1 },
		{ "00:00:01", 1 },
		{ "00:01:00", 60 },
		{ "01:00:00", 3600 },
		{ "23:59:59", 86399 },
		{ "1.00:00:00", 86400 },
		{ "1.02:03:04", 93784 },
		{ "00:00:00.5000000", 0.5 },
		{ "00:00:00.0000001", 1e-7 },
		{ "10675199.02:48:05.4775807", 922337203685.4775807 },
	};
	static const char *const bad[] = {
		"00:00:00",  "-00:00:01",  "1",
		"00:01",     "00:01:",	   "::",
		"24:00:00",  "00:60:00",   "00:00:60",
		"00:00:01.", "00:00:01.5", "00:00:01.50000000",
		"00:00:01x", "a.00:00:01", ".00:00:01",
		" 00:00:01", "1.",	   "1.2.00:00:01",
		"00:00:+1",  "1:00:00:01", "99999999999999999999.00:00:01",
	};
	struct play p;

	(void)state;
	for (size_t i = 0; i < MEMBERS(good); i++)
		assert_true(counter_scale_seconds(good[i].text) == good[i].seconds);
	for (size_t i = 0; i < MEMBERS(bad); i++)
		if (!isnan(counter_scale_seconds(bad[i])))
			fail_msg("'%s' is taken", bad[i]);
	assert_true(play_begin(&p, NULL, classes, NULL));
	sum(&p, 2000, 3, "10675199.02:48:05.4775807"); /* as long as it can be */
	sum(&p, 4000, 3, "often");
	assert_true(an_get_f64(play_row(&p, "counters", 0), "rate_scale_s", 0) ==
		    922337203685.4775807);
	assert_int_equal(an_get(point(play_row(&p, "counters", 0), 1), "rate")->kind, AN_NULL);
	assert_true(an_get_f64(point(play_row(&p, "counters", 0), 1), "value", 0) == 3);
	play_end(&p);
}

/* --- limits and faults --- */

static void bounded(void **state)
{
	const struct an_value *s;
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	for (int i = 0; i < 4010; i++)
		gauge(&p, i, "", "7", 3);
	s = play_row(&p, "counters", 0);
	assert_int_equal(an_get(s, "points")->count, 4000);
	assert_int_equal(an_get_u64(s, "points_dropped", 0), 10);
	assert_true(an_get_f64(point(s, 0), "time_ms", 0) == 10); /* the oldest are gone */
	assert_true(an_get_f64(point(s, 3999), "time_ms", 0) == 4009);
	play_end(&p);
	assert_true(play_begin(&p, NULL, classes, NULL));
	for (uint32_t i = 1; i <= 2001; i++)
		gauge(&p, i, "", "7", i);
	assert_int_equal(an_get(play_report(&p), "counters")->count, 2000);
	assert_true(play_finds(&p, "trace.counters-incomplete"));
	play_end(&p);
}

static bool finds_incomplete(uint32_t id)
{
	struct play p;
	bool found;

	assert_true(play_begin(&p, NULL, classes, NULL));
	gauge(&p, 1, "", "7", 3);
	session_event(&p, id, 1);
	found = play_finds(&p, "trace.counters-incomplete");
	play_end(&p);
	return found;
}

static void complaints(void **state)
{
	(void)state;
	assert_false(finds_incomplete(1)); /* a message */
	assert_false(finds_incomplete(2));
	assert_false(finds_incomplete(10));
	assert_true(finds_incomplete(9));
	assert_true(finds_incomplete(12));
	assert_true(finds_incomplete(13));
	assert_true(finds_incomplete(14));
	assert_true(finds_incomplete(15));
}

static void damaged(void **state)
{
	struct play p;

	(void)state;
	assert_true(play_begin(&p, NULL, classes, NULL));
	for (uint32_t id = 1; id < 20; id++)
		meter_event(&p, "Empty", id, 1, counter_fields, MEMBERS(counter_fields), NULL);
	play_own(&p, NT_PROV_OTHER, "EventCounters", 21, mean_fields, 1, 1, 2, NULL);
	histogram(&p, 3, "=;0.5;x=;0.123456789012345678=1;0.5=zz", 1, 1);
	play_report(&p);
	assert_int_equal(p.status, NT_OK);
	play_end(&p);
}

static void out_of_memory(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct play p;

		if (play_begin(&p, &fa.alloc, classes, NULL)) {
			instrument(&p, "orders", "", 1);
			counter(&p, 1000.5, "orders", "region=eu,k=v", "90", "90", 1);
			histogram(&p, 1001, "0.5=64;0.95=84", 45, 2880.5);
			mean(&p, 1000, 2.25, 1, "Interval=1000");
			play_report(&p);
			assert_true(p.status == (fa.failed ? NT_ENOMEM : NT_OK));
		}
		play_end(&p);
	}
	assert_true(fa.fail_at > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing),	  cmocka_unit_test(meters),
		cmocka_unit_test(twins),	  cmocka_unit_test(twins_without_ids),
		cmocka_unit_test(tags),		  cmocka_unit_test(gauges),
		cmocka_unit_test(event_counters), cmocka_unit_test(rate_scales),
		cmocka_unit_test(bounded),	  cmocka_unit_test(complaints),
		cmocka_unit_test(damaged),	  cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
