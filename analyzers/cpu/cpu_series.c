/* SPDX-License-Identifier: MIT */

/*
 * CPU use over time.  Who ran is known at the end only, so time is kept by kind of sample, and the
 * share of each kind that ran is put in then.
 */

#include "analyzers/cpu/cpu_internal.h"

static const int64_t second_ns = 1000 * 1000 * 1000;

static void widen(struct cpu_series *s)
{
	s->width_ns *= 2;
	for (size_t i = 0; i < CPU_INTERVALS / 2; i++)
		for (unsigned k = 0; k < CPU_KINDS; k++)
			s->ns[i][k] = s->ns[2 * i][k] + s->ns[2 * i + 1][k];
	memset(s->ns + CPU_INTERVALS / 2, 0, sizeof(s->ns) / 2);
	s->used = (s->used + 1) / 2;
}

static size_t interval_of(struct cpu_series *s, int64_t time_ns)
{
	size_t i;

	if (!s->width_ns)
		s->width_ns = second_ns;
	if (time_ns < 0)
		time_ns = 0;
	while (time_ns / s->width_ns >= CPU_INTERVALS)
		widen(s);
	i = (size_t)(time_ns / s->width_ns);
	if (i >= s->used)
		s->used = i + 1;
	return i;
}

void cpu_series_add(struct cpu_series *s, int64_t from_ns, int64_t to_ns, unsigned kind, double ns)
{
	size_t last = interval_of(s, to_ns), first = interval_of(s, from_ns);
	double length;

	last = interval_of(s, to_ns); /* may have got wider since */
	if (first >= last) {
		s->ns[last][kind] += ns;
		return;
	}
	length = (double)to_ns - (double)(from_ns > 0 ? from_ns : 0);
	for (size_t i = first; i <= last; i++) {
		double begin = (double)i * (double)s->width_ns;
		double end = begin + (double)s->width_ns;

		if (i == first && from_ns > 0)
			begin = (double)from_ns;
		if (i == last)
			end = (double)to_ns;
		s->ns[i][kind] += ns * (end - begin) / length;
	}
}

/* cpu_ms by interval; null where no time is known, or filters chose some of the samples. */
void cpu_series_report(const struct cpu *c, const struct cpu_totals *t, struct an_value *cpu)
{
	const struct cpu_series *s = &c->series[t->source != AN_CPU_SAMPLER];
	const struct an_cpu_options *o = &c->shared->options.cpu;
	struct an_value *v, *list;

	if (!t->timed || o->one_thread || o->one_process || o->include || o->exclude) {
		an_add_null(cpu, "over_time");
		return;
	}
	v = an_add_object(cpu, "over_time");
	an_add_double(v, "interval_ms", (double)s->width_ns / 1e6, 0);
	list = an_add_array(v, "cpu_ms");
	for (size_t i = 0; i < s->used; i++) {
		double ns = t->by_time ? s->ns[i][CPU_KIND_MEASURED] : 0;

		for (unsigned bin = 0; bin < BINS && !t->by_time; bin++)
			if (t->bin_ns[bin] > 0)
				ns += s->ns[i][bin] * t->bin_on_ns[bin] / t->bin_ns[bin];
		an_add_double(list, NULL, ns / 1e6, 1);
	}
}
