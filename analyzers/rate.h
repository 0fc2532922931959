/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_RATE_H
#define ANALYZERS_RATE_H

/*
 * How much happened when: sums over equal intervals from the start of the session.  Their number
 * is fixed, so they get twice as long whenever the trace outgrows them.  And how much there was in
 * the busiest second, wherever it began (to a tenth of a second).
 */

#include "analyzers/report.h"

enum { AN_RATE_INTERVALS = 256, AN_RATE_STEPS = 10, AN_RATE_STEP_MS = 100 };

struct an_rate {
	int64_t interval_ns; /* 0: nothing yet */
	size_t used;
	uint64_t sums[AN_RATE_INTERVALS];
	/* the last second */
	int64_t step;
	uint64_t steps[AN_RATE_STEPS];
	uint64_t second; /* their sum */
	uint64_t peak; /* the highest that it was */
};

/* Nanoseconds between two times; 0 when they are the wrong way round. */
static inline uint64_t an_elapsed(int64_t from_ns, int64_t to_ns)
{
	return to_ns > from_ns ? (uint64_t)to_ns - (uint64_t)from_ns : 0;
}

void an_rate_add(struct an_rate *r, int64_t time_ns, uint64_t amount);
/* {"interval_ms","sums":[...]}, up to end_ns (or the last that happened); null when empty. */
void an_rate_report(const struct an_rate *r, int64_t end_ns, struct an_value *parent,
		    const char *name);

#endif
