/* SPDX-License-Identifier: MIT */
#include "analyzers/rate.h"

#include <string.h>

static const int64_t step_ns = AN_RATE_STEP_MS * INT64_C(1000000);

static void widen(struct an_rate *r)
{
	r->interval_ns *= 2;
	for (size_t i = 0; i < AN_RATE_INTERVALS / 2; i++)
		r->sums[i] = r->sums[2 * i] + r->sums[2 * i + 1];
	memset(r->sums + AN_RATE_INTERVALS / 2, 0, sizeof(r->sums) / 2);
	r->used = (r->used + 1) / 2;
}

static void add_second(struct an_rate *r, int64_t step, uint64_t amount)
{
	int64_t forget = step - r->step;

	if (forget > AN_RATE_STEPS)
		forget = AN_RATE_STEPS;
	for (int64_t i = 0; i < forget; i++) {
		uint64_t *old = &r->steps[(step - i) % AN_RATE_STEPS];

		r->second -= *old;
		*old = 0;
	}
	if (forget > 0)
		r->step = step;
	else if (step <= r->step - AN_RATE_STEPS)
		return; /* much too late */
	r->steps[step % AN_RATE_STEPS] += amount;
	r->second += amount;
	if (r->second > r->peak)
		r->peak = r->second;
}

void an_rate_add(struct an_rate *r, int64_t time_ns, uint64_t amount)
{
	size_t i;

	if (time_ns < 0)
		time_ns = 0;
	if (!r->interval_ns)
		r->interval_ns = step_ns;
	while (time_ns / r->interval_ns >= AN_RATE_INTERVALS)
		widen(r);
	i = (size_t)(time_ns / r->interval_ns);
	r->sums[i] += amount;
	if (i >= r->used)
		r->used = i + 1;
	add_second(r, time_ns / step_ns, amount);
}

void an_rate_report(const struct an_rate *r, int64_t end_ns, struct an_value *parent,
		    const char *name)
{
	struct an_value *v, *sums;
	size_t n = r->used;

	if (!r->interval_ns) {
		an_add_null(parent, name);
		return;
	}
	if (end_ns > 0 && (end_ns - 1) / r->interval_ns + 1 > (int64_t)n)
		n = end_ns / r->interval_ns < AN_RATE_INTERVALS
			    ? (size_t)((end_ns - 1) / r->interval_ns + 1)
			    : AN_RATE_INTERVALS;
	v = an_add_object(parent, name);
	an_add_double(v, "interval_ms", (double)r->interval_ns / 1e6, 0);
	sums = an_add_array(v, "sums");
	for (size_t i = 0; i < n; i++)
		an_add_uint(sums, NULL, r->sums[i]);
}
