/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_LIMIT_H
#define ANALYZERS_LIMIT_H

/*
 * From where on something is a finding: one table of all limits, each of which a user may move.
 *
 * A limit is called like its finding ("gc.time"), or "FINDING.WHAT" where a finding has more than
 * one ("gc.time.critical").  docs/findings.md lists them; the test "docs" compares.
 */

#include <stdbool.h>
#include <stddef.h>

enum an_limit {
	AN_LIMIT_TRACE_UNNAMED,
	AN_LIMIT_TRACE_LOST_CRITICAL,
	AN_LIMIT_CPU_HOT,
	AN_LIMIT_CPU_HOT_SAMPLES,
	AN_LIMIT_CPU_HOT_CORES,
	AN_LIMIT_CPU_WAITING,
	AN_LIMIT_CPU_UNRESOLVED,
	AN_LIMIT_CPU_COARSE,
	AN_LIMIT_GC_LONG_PAUSE,
	AN_LIMIT_GC_LONG_PAUSE_CRITICAL,
	AN_LIMIT_GC_LONG_PAUSE_P99,
	AN_LIMIT_GC_TIME,
	AN_LIMIT_GC_TIME_CRITICAL,
	AN_LIMIT_GC_FULL,
	AN_LIMIT_GC_FULL_RATE,
	AN_LIMIT_GC_INDUCED_WARNING,
	AN_LIMIT_GC_SUSPENSION,
	AN_LIMIT_GC_LOH,
	AN_LIMIT_GC_LOH_RATE,
	AN_LIMIT_GC_FRAGMENTATION,
	AN_LIMIT_GC_FRAGMENTATION_SIZE,
	AN_LIMIT_GC_PINNING,
	AN_LIMIT_GC_FINALIZERS,
	AN_LIMIT_GC_FINALIZERS_OBJECTS,
	AN_LIMIT_GC_MID_LIFE,
	AN_LIMIT_GC_MID_LIFE_RATE,
	AN_LIMIT_ALLOC_RATE,
	AN_LIMIT_ALLOC_LARGE,
	AN_LIMIT_ALLOC_LARGE_RATE,
	AN_LIMIT_TASKS_STUCK,
	AN_LIMIT_TASKS_STUCK_TIMES,
	AN_LIMIT_TASKS_SYNC,
	AN_LIMIT_TASKS_SYNC_CRITICAL,
	AN_LIMIT_TASKS_QUEUED,
	AN_LIMIT_TASKS_QUEUED_AGE,
	AN_LIMIT_LOCKS_BLOCKED,
	AN_LIMIT_LOCKS_SUSPECTED,
	AN_LIMIT_LOCKS_CONTENTION,
	AN_LIMIT_LOCKS_CONTENTION_COUNT,
	AN_LIMIT_LOCKS_CONTENTION_TIME,
	AN_LIMIT_POOL_STARVATION,
	AN_LIMIT_POOL_STARVATION_BLOCKED,
	AN_LIMIT_POOL_STARVATION_ADJUSTMENTS,
	AN_LIMIT_POOL_QUEUE_DELAY,
	AN_LIMIT_POOL_QUEUE_DELAY_OLDEST,
	AN_LIMIT_POOL_QUEUE_DELAY_WAITING,
	AN_LIMIT_THREADS_LEAK,
	AN_LIMIT_THREADS_LEAK_CREATED,
	AN_LIMIT_THREADS_GROWTH,
	AN_LIMIT_THREADS_CHURN,
	AN_LIMIT_THREADS_CHURN_CREATED,
	AN_LIMIT_THREADS_CHURN_ENDED,
	AN_LIMIT_EXCEPTIONS_STORM,
	AN_LIMIT_EXCEPTIONS_STORM_CRITICAL,
	AN_LIMIT_JIT_STORM,
	AN_LIMIT_JIT_STORM_TIME,
	AN_LIMIT_JIT_STORM_METHODS,
	AN_LIMIT_JIT_DYNAMIC,
	AN_LIMIT_JIT_DYNAMIC_RATE,
	AN_LIMIT_JIT_TIER0,
	AN_LIMIT_JIT_TIER0_SAMPLES,
	AN_LIMIT_JIT_REJECTED,
	AN_LIMIT_JIT_REJECTED_SHARE,
	AN_LIMITS
};

struct an_limit_spec {
	const char *name; /* "gc.time.critical" */
	double initial;
	const char *unit; /* "%", "ms", "MB/s", …; "" is a number of things */
	const char *what;
};

extern const struct an_limit_spec an_limit_specs[AN_LIMITS];

struct an_limits {
	double value[AN_LIMITS];
};

void an_limits_init(struct an_limits *l);
/* The limit that has that name; AN_LIMITS: none. */
enum an_limit an_limits_find(const char *name, size_t len);
/*
 * text is a number and the limit's unit ("300ms", "50MB/s"); "%" and no unit may be left out.
 * False when it is not that.
 */
bool an_limits_set(struct an_limits *l, enum an_limit which, const char *text);

#endif
