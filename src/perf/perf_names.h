/* SPDX-License-Identifier: MIT */
#ifndef SRC_PERF_PERF_NAMES_H
#define SRC_PERF_PERF_NAMES_H

/*
 * At the end of a recording: which files the sampled addresses lie in, and which of their
 * functions.  Managed code gets its names from the trace.
 */

#include "nettrace/perf_store.h"
#include "src/perf/perf_files.h"

/* kernel_hidden: there are frames of the kernel, whose names we may not know.  NT_ENOMEM: some are
 * missing. */
NT_MUST_CHECK enum nt_status perf_names_add(struct nt_perf *p, const struct perf_files *files,
					    bool *ret_kernel_hidden);

#endif
