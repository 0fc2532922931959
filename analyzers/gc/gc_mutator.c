/* SPDX-License-Identifier: MIT */

/*
 * Minimum mutator utilisation: of all windows of 10, 50 and 100 ms, the one in which the program
 * ran least.  Some window that ends with a pause is as bad as any, so only those are looked at.
 */

#include "analyzers/gc/gc_internal.h"

const unsigned gc_window_ms[GC_WINDOWS] = { 10, 50, 100 };

static uint64_t length(const struct gc_span *s)
{
	return an_elapsed(s->begin_ns, s->end_ns);
}

static const struct gc_span *at(const struct gc_mutator *m, uint64_t i)
{
	return &m->pause[i % GC_WINDOW_PAUSES];
}

static void slide(struct gc_mutator *m, size_t w, int64_t end_ns)
{
	uint64_t window = UINT64_C(1000000) * gc_window_ms[w], paused;
	const struct gc_span *first;

	while (m->from[w] < m->count && an_elapsed(at(m, m->from[w])->end_ns, end_ns) >= window)
		m->sum_ns[w] -= length(at(m, m->from[w]++));
	paused = m->sum_ns[w];
	first = at(m, m->from[w]);
	if (m->from[w] < m->count && an_elapsed(first->begin_ns, end_ns) > window)
		paused -= an_elapsed(first->begin_ns, end_ns) - window; /* began before it */
	if (paused > window)
		paused = window; /* times of a damaged trace may be anything */
	if (paused > m->worst_ns[w])
		m->worst_ns[w] = paused;
}

void gc_mutator_add(struct gc_mutator *m, int64_t begin_ns, int64_t end_ns)
{
	struct gc_span s = { begin_ns, end_ns };

	if (end_ns < begin_ns || (m->count && end_ns < at(m, m->count - 1)->end_ns))
		return;
	for (size_t w = 0; w < GC_WINDOWS; w++) {
		if (m->count - m->from[w] == GC_WINDOW_PAUSES)
			m->sum_ns[w] -= length(at(m, m->from[w]++));
		m->sum_ns[w] += length(&s);
	}
	m->pause[m->count++ % GC_WINDOW_PAUSES] = s;
	for (size_t w = 0; w < GC_WINDOWS; w++)
		slide(m, w, end_ns);
}

double gc_mutator_percent(const struct gc_mutator *m, size_t window)
{
	return 100.0 - (double)m->worst_ns[window] / (1e4 * gc_window_ms[window]);
}
