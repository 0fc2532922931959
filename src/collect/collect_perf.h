/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_COLLECT_PERF_H
#define SRC_COLLECT_COLLECT_PERF_H

/* The part of a recording that samples CPU use through the kernel (perf_sampler.h). */

#include "src/collect/collect.h"
#include "src/perf/perf_sampler.h"

struct collect_perf;

/* Begins at once.  NULL: it cannot be, ret says why. */
struct collect_perf *collect_perf_start(uv_loop_t *loop, const struct collect_settings *settings,
					int32_t pid, struct perf_refusal *ret);
/* The recording was told to stop: what the process does from now on is not its work. */
void collect_perf_stop(struct collect_perf *p);
/*
 * Finds names; what was sampled.  Lives until the close.  What is
 * missing in it is said on standard error, once.
 */
const struct nt_perf *collect_perf_finish(struct collect_perf *p);
struct collect_perf *collect_perf_close(struct collect_perf *p); /* returns NULL; accepts NULL */

#endif
