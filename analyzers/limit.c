/* SPDX-License-Identifier: MIT */
#include "analyzers/limit.h"

#include <string.h>

const struct an_limit_spec an_limit_specs[AN_LIMITS] = {
	[AN_LIMIT_TRACE_UNNAMED] = { "trace.no-rundown", 5, "%", "of the frames have no name" },
	[AN_LIMIT_TRACE_LOST_CRITICAL] = { "trace.events-lost.critical", 5, "%",
					   "of the events were lost" },
	[AN_LIMIT_CPU_HOT] = { "cpu.hot-method", 20, "%", "of the running samples in one method" },
	[AN_LIMIT_CPU_HOT_SAMPLES] = { "cpu.hot-method.samples", 50, "", "running samples" },
	[AN_LIMIT_CPU_HOT_CORES] = { "cpu.hot-method.warning", 0.5, "cores",
				     "kept busy by all running code" },
	[AN_LIMIT_CPU_WAITING] = { "cpu.mostly-waiting", 5, "%", "of the samples were running" },
	[AN_LIMIT_CPU_UNRESOLVED] = { "cpu.unresolved", 10, "%", "of the samples have no name" },
	[AN_LIMIT_CPU_COARSE] = { "cpu.coarse", 5, "ms", "between rounds of samples" },
	[AN_LIMIT_CPU_ONE_THREAD] = { "cpu.one-thread", 90, "%", "of the time on a processor" },
	[AN_LIMIT_CPU_ONE_THREAD_OTHERS] = { "cpu.one-thread.others", 10, "%",
					     "of the time, all others together at most" },
	[AN_LIMIT_CPU_SPINNING] = { "cpu.spinning", 10, "%", "of the running samples spin" },
	[AN_LIMIT_CPU_GC] = { "cpu.gc", 20, "%", "of the running samples collect garbage" },
	[AN_LIMIT_CPU_JIT] = { "cpu.jit", 20, "%", "of the running samples compile" },
	[AN_LIMIT_CPU_TIER0] = { "cpu.hot-tier0", 20, "%",
				 "of the running samples in one method's unoptimized code" },
	[AN_LIMIT_GC_LONG_PAUSE] = { "gc.long-pause", 200, "ms", "the longest pause" },
	[AN_LIMIT_GC_LONG_PAUSE_CRITICAL] = { "gc.long-pause.critical", 1000, "ms",
					      "the longest pause" },
	[AN_LIMIT_GC_LONG_PAUSE_P99] = { "gc.long-pause.p99", 100, "ms", "the 99th percentile" },
	[AN_LIMIT_GC_TIME] = { "gc.time", 10, "%", "of the time the program stood still" },
	[AN_LIMIT_GC_TIME_CRITICAL] = { "gc.time.critical", 30, "%",
					"of the time the program stood still" },
	[AN_LIMIT_GC_FULL] = { "gc.full-blocking", 2, "%",
			       "of the time in blocking collections of generation 2" },
	[AN_LIMIT_GC_FULL_RATE] = { "gc.full-blocking.rate", 1, "/s",
				    "blocking collections of generation 2" },
	[AN_LIMIT_GC_INDUCED_WARNING] = { "gc.induced.warning", 5, "",
					  "collections asked for by code" },
	[AN_LIMIT_GC_SUSPENSION] = { "gc.slow-suspension", 10, "ms", "to stop all threads" },
	[AN_LIMIT_GC_LOH] = { "gc.loh-churn", 5, "", "collections because of large objects" },
	[AN_LIMIT_GC_LOH_RATE] = { "gc.loh-churn.rate", 1, "/s",
				   "collections because of large objects" },
	[AN_LIMIT_GC_FRAGMENTATION] = { "gc.fragmentation", 50, "%",
					"of generation 2, or of large objects' heap, is free" },
	[AN_LIMIT_GC_FRAGMENTATION_SIZE] = { "gc.fragmentation.size", 20, "MB", "are free there" },
	[AN_LIMIT_GC_PINNING] = { "gc.pinning", 500, "",
				  "objects pinned, on average of all collections" },
	[AN_LIMIT_GC_FINALIZERS] = { "gc.finalizer-backlog", 1000, "ms",
				     "finalizers ran without a break" },
	[AN_LIMIT_GC_FINALIZERS_OBJECTS] = { "gc.finalizer-backlog.objects", 10000, "",
					     "objects survived to be finalized and were not" },
	[AN_LIMIT_GC_MID_LIFE] = { "gc.mid-life", 50, "%",
				   "of generation 2 was dead when it was collected" },
	[AN_LIMIT_GC_MID_LIFE_RATE] = { "gc.mid-life.rate", 10, "MB/s",
					"promoted to generation 2" },
	[AN_LIMIT_ALLOC_RATE] = { "alloc.rate", 200, "MB/s", "allocated" },
	[AN_LIMIT_ALLOC_LARGE] = { "alloc.large-objects", 25, "%", "of the bytes, large objects" },
	[AN_LIMIT_ALLOC_LARGE_RATE] = { "alloc.large-objects.rate", 20, "MB/s",
					"of large objects" },
	[AN_LIMIT_TASKS_STUCK] = { "tasks.stuck", 2000, "ms", "a call awaits, or runs" },
	[AN_LIMIT_TASKS_STUCK_TIMES] = { "tasks.stuck.times", 3, "times",
					 "as long as any of its kind that ended" },
	[AN_LIMIT_TASKS_SYNC] = { "tasks.sync-over-async", 250, "ms", "a thread blocks on a task" },
	[AN_LIMIT_TASKS_SYNC_CRITICAL] = { "tasks.sync-over-async.critical", 4, "",
					   "threads block on a task" },
	[AN_LIMIT_TASKS_QUEUED] = { "tasks.queued", 10, "", "tasks of one kind are queued" },
	[AN_LIMIT_TASKS_QUEUED_AGE] = { "tasks.queued.age", 500, "ms", "the oldest of them" },
	[AN_LIMIT_LOCKS_BLOCKED] = { "locks.blocked", 2000, "ms", "a thread waits at the end" },
	[AN_LIMIT_LOCKS_SUSPECTED] = { "locks.suspected-deadlock.sampled", 2000, "ms",
				       "threads stood at locks from the first sample on" },
	[AN_LIMIT_LOCKS_CONTENTION] = { "locks.contention", 10, "%",
					"of the time, as if so much of a thread always waited" },
	[AN_LIMIT_LOCKS_CONTENTION_COUNT] = { "locks.contention.waits", 10, "", "for one lock" },
	[AN_LIMIT_LOCKS_CONTENTION_TIME] = { "locks.contention.time", 100, "ms", "of waits" },
	[AN_LIMIT_POOL_STARVATION] = { "threadpool.starvation", 1000, "ms",
				       "without a break, workers waited inside of work" },
	[AN_LIMIT_POOL_STARVATION_BLOCKED] = { "threadpool.starvation.blocked", 95, "%",
					       "of the workers' samples" },
	[AN_LIMIT_POOL_STARVATION_ADJUSTMENTS] = { "threadpool.starvation.adjustments", 3, "",
						   "changes of the number of threads" },
	[AN_LIMIT_POOL_QUEUE_DELAY] = { "threadpool.queue-delay", 100, "ms",
					"that 5 % of the items waited" },
	[AN_LIMIT_POOL_QUEUE_DELAY_OLDEST] = { "threadpool.queue-delay.oldest", 1000, "ms",
					       "an item is still queued" },
	[AN_LIMIT_POOL_QUEUE_DELAY_WAITING] = { "threadpool.queue-delay.waiting", 10, "",
						"items are still queued" },
	[AN_LIMIT_THREADS_LEAK] = { "threads.leak", 10, "", "threads alike" },
	[AN_LIMIT_THREADS_LEAK_CREATED] = { "threads.leak.created", 5, "",
					    "of them during the recording" },
	[AN_LIMIT_THREADS_GROWTH] = { "threads.growth", 50, "", "threads have not ended" },
	[AN_LIMIT_THREADS_CHURN] = { "threads.churn", 100, "/s", "threads created" },
	[AN_LIMIT_THREADS_CHURN_CREATED] = { "threads.churn.created", 200, "", "threads created" },
	[AN_LIMIT_THREADS_CHURN_ENDED] = { "threads.churn.ended", 80, "%", "of them" },
	[AN_LIMIT_EXCEPTIONS_STORM] = { "exceptions.storm", 100, "/s", "new exceptions" },
	[AN_LIMIT_EXCEPTIONS_STORM_CRITICAL] = { "exceptions.storm.critical", 1000, "/s",
						 "new exceptions" },
	[AN_LIMIT_JIT_STORM] = { "jit.storm", 20, "%", "of the time threads waited for code" },
	[AN_LIMIT_JIT_STORM_TIME] = { "jit.storm.time", 500, "ms", "that they waited" },
	[AN_LIMIT_JIT_STORM_METHODS] = { "jit.storm.methods", 1000, "/s", "methods compiled" },
	[AN_LIMIT_JIT_DYNAMIC] = { "jit.dynamic-methods", 200, "", "dynamic methods compiled" },
	[AN_LIMIT_JIT_DYNAMIC_RATE] = { "jit.dynamic-methods.rate", 10, "/s",
					"dynamic methods compiled" },
	[AN_LIMIT_JIT_TIER0] = { "jit.tier0-loop", 20, "%",
				 "of the running samples in one method that is not optimised" },
	[AN_LIMIT_JIT_TIER0_SAMPLES] = { "jit.tier0-loop.samples", 100, "", "running samples" },
	[AN_LIMIT_JIT_REJECTED] = { "jit.r2r-rejected", 50, "", "methods whose code was rejected" },
	[AN_LIMIT_JIT_REJECTED_SHARE] = { "jit.r2r-rejected.share", 10, "%",
					  "of the methods compiled" },
};

void an_limits_init(struct an_limits *l)
{
	for (size_t i = 0; i < AN_LIMITS; i++)
		l->value[i] = an_limit_specs[i].initial;
}

enum an_limit an_limits_find(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < AN_LIMITS; i++)
		if (strlen(an_limit_specs[i].name) == len &&
		    !memcmp(an_limit_specs[i].name, name, len))
			break;
	return (enum an_limit)i;
}

/* Digits, and digits behind one point; no sign, no exponent, whatever the locale. */
static const char *take_number(const char *p, double *ret)
{
	enum { MOST = 15 }; /* that a double has exactly */
	size_t before = strspn(p, "0123456789"), behind = 0, point = p[before] == '.';
	double v = 0, scale = 1;

	if (point)
		behind = strspn(p + before + 1, "0123456789");
	if (!before || behind < point || before + behind > MOST)
		return NULL;
	for (const char *end = p + before; p < end; p++)
		v = v * 10 + (*p - '0');
	p += point;
	for (const char *end = p + behind; p < end; p++) {
		v = v * 10 + (*p - '0');
		scale *= 10;
	}
	*ret = v / scale;
	return p;
}

bool an_limits_set(struct an_limits *l, enum an_limit which, const char *text)
{
	const char *unit = an_limit_specs[which].unit;
	bool needed = *unit == 'm' || *unit == 'M'; /* of a time or a size */
	double v, scale = 1;
	const char *p = take_number(text, &v);

	if (!p)
		return false;
	if (!strcmp(unit, "ms") && !strcmp(p, "s"))
		scale = 1000;
	else if (strcmp(p, unit) != 0 && (*p || needed))
		return false;
	l->value[which] = v * scale;
	return true;
}
