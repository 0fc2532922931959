/* SPDX-License-Identifier: MIT */
/* The Trace object (nettrace.md §2) and Trace block of version 6 (§9); conversion of time (§8). */
#include "nettrace/decoder.h"

#include <string.h>

enum { NS_PER_S = 1000000000, UNKNOWN_PROCESSORS = 0xffff };

static bool leap(unsigned year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Days from 1970-01-01 to the first of January of year. */
static int64_t days_before_year(unsigned year)
{
	int64_t y = (int64_t)year - 1;

	return y * 365 + y / 4 - y / 100 + y / 400 - 719162;
}

/* SYSTEMTIME, UTC; the day of the week is ignored: writers disagree on it. */
static bool read_systemtime(struct nt_span *s, int64_t *ret_unix_ns)
{
	static const uint8_t month_days[12] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	unsigned year = nt_u16(s);
	unsigned month = nt_u16(s);
	unsigned day, hour, minute, second, ms, last;
	int64_t days;

	nt_u16(s);
	day = nt_u16(s);
	hour = nt_u16(s);
	minute = nt_u16(s);
	second = nt_u16(s);
	ms = nt_u16(s);
	/* Beyond 2261 a 64-bit count of nanoseconds ends. */
	if (s->bad || year < 1970 || year > 2261 || month < 1 || month > 12)
		return false;
	last = month_days[month - 1] + (month == 2 && leap(year) ? 1u : 0u);
	if (day < 1 || day > last || hour > 23 || minute > 59 || second > 59 || ms > 999)
		return false;
	days = days_before_year(year) + day - 1;
	for (unsigned m = 1; m < month; m++)
		days += month_days[m - 1] + (m == 2 && leap(year));
	*ret_unix_ns = ((days * 24 + hour) * 60 + minute) * 60 + second;
	*ret_unix_ns = *ret_unix_ns * NS_PER_S + (int64_t)ms * 1000000;
	return true;
}

static int64_t clamp(__int128 ns)
{
	if (ns > NT_TIME_MAX_NS)
		return NT_TIME_MAX_NS;
	return ns < -NT_TIME_MAX_NS ? -NT_TIME_MAX_NS : (int64_t)ns;
}

/* Clock values are unsigned: the last sequence point of V6 may be at 2^64-1. */
int64_t nt_ticks_to_ns(const struct nt_trace_info *t, uint64_t ticks)
{
	__int128 delta = (__int128)ticks - (uint64_t)t->sync_ticks;

	if (t->ticks_per_second != NS_PER_S)
		delta = delta * NS_PER_S / t->ticks_per_second;
	return clamp(delta);
}

static enum nt_status announce(struct nt_decoder *d, const struct nt_span *b)
{
	struct nt_trace_info *t = &d->trace;

	if (b->bad)
		return nt_fail_span(d, b, "Trace runs past its block");
	if (t->ticks_per_second <= 0)
		return nt_fail(d, NT_EFORMAT, d->block_start + 24,
			       "clock frequency is not positive");
	if (t->pointer_size != 4 && t->pointer_size != 8)
		return nt_fail(d, NT_EFORMAT, d->block_start + 32, "pointer size is not 4 or 8");
	d->have_trace = true;
	d->ev.trace = t;
	d->ev.labels = &d->labels;
	return d->sink->trace ? d->sink->trace(d->ctx, t) : NT_OK;
}

static void read_common(struct nt_decoder *d, struct nt_span *b)
{
	struct nt_trace_info *t = &d->trace;

	t->wall_clock_known = read_systemtime(b, &t->start_unix_ns);
	t->sync_ticks = nt_i64(b);
	t->ticks_per_second = nt_i64(b);
	t->pointer_size = nt_u32(b);
	t->process_id = -1;
	t->processors = -1;
	t->sample_interval_ns = -1;
}

enum nt_status nt_trace_v4(struct nt_decoder *d, struct nt_span b)
{
	struct nt_trace_info *t = &d->trace;
	int32_t processors, interval;

	read_common(d, &b);
	t->process_id = nt_i32(&b);
	processors = nt_i32(&b);
	if (processors > 0 && processors != UNKNOWN_PROCESSORS)
		t->processors = processors;
	interval = nt_i32(&b);
	if (interval > 0)
		t->sample_interval_ns = interval;
	return announce(d, &b);
}

static bool read_decimal(const uint8_t *p, size_t n, int64_t *ret)
{
	int64_t v = 0;

	if (!n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (p[i] < '0' || p[i] > '9')
			return false;
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, p[i] - '0', &v))
			return false;
	}
	*ret = v;
	return true;
}

static void read_pair(struct nt_trace_info *t, const uint8_t *key, size_t key_bytes,
		      const uint8_t *text, size_t text_bytes)
{
	const struct {
		const char *key;
		int64_t *value;
		int64_t least;
	} known[] = {
		{ "ProcessId", &t->process_id, 0 },
		{ "HardwareThreadCount", &t->processors, 1 },
		{ "ExpectedCPUSamplingRate", &t->sample_interval_ns, 1 },
	};
	int64_t v;

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strlen(known[i].key) == key_bytes && !memcmp(known[i].key, key, key_bytes) &&
		    read_decimal(text, text_bytes, &v) && v >= known[i].least)
			*known[i].value = v;
}

enum nt_status nt_trace_v6(struct nt_decoder *d, struct nt_span b)
{
	uint32_t pairs;

	read_common(d, &b);
	pairs = nt_u32(&b);
	for (uint32_t i = 0; i < pairs && !b.bad; i++) {
		size_t key_bytes, text_bytes;
		const uint8_t *key = nt_str6(&b, &key_bytes);
		const uint8_t *text = nt_str6(&b, &text_bytes);

		if (key && text)
			read_pair(&d->trace, key, key_bytes, text, text_bytes);
	}
	return announce(d, &b);
}
