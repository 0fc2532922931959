/* SPDX-License-Identifier: MIT */
#ifndef SRC_PERF_PERF_SAMPLER_H
#define SRC_PERF_PERF_SAMPLER_H

/*
 * Samples the CPU use of all threads of a process through the kernel: so many times for each
 * second of CPU time that a thread uses, its call chain by frame pointers.  The process is not
 * touched; its time is that of the interrupts.
 *
 * There is one event for each thread and processor, as a buffer belongs to one processor and
 * threads that are started later inherit the events; they all write into one buffer a processor,
 * which is emptied from the loop.
 */

#include <uv.h>

#include "nettrace/perf_store.h"
#include "src/perf/perf_files.h"
#include "src/perf/perf_open.h"

enum { PERF_DEFAULT_HZ = 499, PERF_MIN_HZ = 1, PERF_MAX_HZ = 10000 };

struct perf_sampler;

struct perf_sampler_config {
	int32_t pid;
	unsigned frequency; /* samples a second of CPU time */
	bool kernel_frames; /* of the kernel, too, where it lets us */
	const struct perf_kernel *kernel; /* NULL: the real one */
};

/* Why there is no sampler. */
struct perf_refusal {
	char why[192];
	const char *advice; /* static; NULL: none */
};

/* Sampling begins at once.  NULL: ret says why. */
struct perf_sampler *perf_sampler_start(uv_loop_t *loop, const struct perf_sampler_config *config,
					struct perf_refusal *ret);
/* Takes what is left in the buffers and leaves the loop.  More calls change nothing. */
void perf_sampler_stop(struct perf_sampler *s);
/*
 * Frees it, at once if it was stopped and the loop has let go of it since, else when the loop does.
 * Accepts NULL.
 */
void perf_sampler_close(struct perf_sampler *s);

/* Whether it lets us see what it does for the process. */
bool perf_sampler_sees_kernel(const struct perf_sampler *s);

/* After the stop: what came of it, without mappings and symbols. */
struct nt_perf *perf_sampler_store(struct perf_sampler *s);
const struct perf_files *perf_sampler_files(const struct perf_sampler *s);
/* NT_ENOMEM: the samples are not complete. */
enum nt_status perf_sampler_status(const struct perf_sampler *s);

#endif
