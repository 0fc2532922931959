/* SPDX-License-Identifier: MIT */
#ifndef SRC_PROC_PROC_CPU_H
#define SRC_PROC_PROC_CPU_H

/*
 * Reads about every 100 ms how much CPU each thread of a process has used, from
 * /proc/PID/task/TID/schedstat (ns) or, where the kernel has none, .../stat (ticks of 10 ms).
 *
 * Nothing of it happens in the process.  What it costs us is measured; with thousands of threads
 * the readings are further apart, so that they take about one percent of a CPU, and no more than
 * five where samples come all the time and ask for them.  Measured, in ms of CPU a reading: 0.06
 * with 10 threads, 0.5 with 200, 2.3 with 1,000 (every 240 ms), 37 with 10,000 (every 3.5 s).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "analyzers/cpu/cputime.h"

struct proc_cpu;

struct proc_cpu_config {
	const char *root; /* PROC_ROOT, or a test's */
	int32_t pid; /* as we see it */
	uint64_t interval_ms; /* at least; 0: 100 */
};

/*
 * Reads once and then from the loop, into the table, which must live until proc_cpu_close().  NULL:
 * *ret_error is an errno, ENOENT where there is no such process in /proc.
 */
struct proc_cpu *proc_cpu_start(uv_loop_t *loop, const struct proc_cpu_config *config,
				struct an_cputime *table, int *ret_error);
/* One more reading now, unless the last was a moment ago; the next one comes later then. */
void proc_cpu_read(struct proc_cpu *p);
/* No reading follows; the rest goes from the loop.  Accepts NULL; returns NULL. */
struct proc_cpu *proc_cpu_close(struct proc_cpu *p);

struct proc_cpu_stats {
	uint64_t readings;
	uint64_t cost_ns; /* CPU time of all */
	uint64_t interval_ms; /* now */
	size_t threads; /* alive */
	size_t open_files; /* kept */
};

void proc_cpu_get_stats(const struct proc_cpu *p, struct proc_cpu_stats *ret);

/* --- texts of /proc, for tests --- */

/* ns on a CPU, ns ready without one, times it was put on one. */
bool proc_cpu_parse_schedstat(const char *text, size_t len, uint64_t ret[3]);

struct proc_cpu_stat {
	char name[AN_CPUTIME_NAME]; /* cut; may hold anything but NUL */
	char state;
	uint64_t ticks; /* user and system */
};

bool proc_cpu_parse_stat(const char *text, size_t len, struct proc_cpu_stat *ret);

#endif
