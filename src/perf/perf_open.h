/* SPDX-License-Identifier: MIT */
#ifndef SRC_PERF_PERF_OPEN_H
#define SRC_PERF_PERF_OPEN_H

/*
 * Opens sampling events of perf_event_open(2): a clock of CPU time, which needs no hardware
 * counters and so works in virtual machines.  What this kernel or our rights do not allow is left
 * out, once, and remembered.
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How to ask the kernel; tests bring their own.  Returns a descriptor, or -errno. */
struct perf_kernel {
	int (*open)(void *ctx, const struct perf_event_attr *attr, int32_t tid, int cpu);
	void *ctx;
};

extern const struct perf_kernel perf_kernel_real;

struct perf_opener {
	const struct perf_kernel *kernel;
	unsigned frequency; /* samples a second of CPU time */
	bool kernel_frames; /* with the kernel's part of call chains, where that is allowed */
	/* What was found possible; all true at first. */
	bool kernel_time; /* time in the kernel on behalf of the threads is sampled, too */
	bool modern; /* build ids, and no inheritance to other processes (Linux 5.13) */
};

void perf_opener_init(struct perf_opener *o, const struct perf_kernel *kernel, unsigned frequency);
/* A descriptor, or -errno.  Threads that this thread starts are sampled, too. */
int perf_opener_open(struct perf_opener *o, int32_t tid, int cpu);

/*
 * Why it failed and what to do, each without full stop; paranoid: what
 * /proc/sys/kernel/perf_event_paranoid holds, or a number below -1 where that is not known.
 */
void perf_open_describe(int error, int paranoid, char *why, size_t why_size, const char **advice);

#endif
