/* SPDX-License-Identifier: MIT */
#ifndef SRC_PERF_PERF_JIT_H
#define SRC_PERF_PERF_JIT_H

/*
 * Names of compiled code from the perf map and the jitdump file that a process may have written
 * (perf_map.h), for addresses that have no other.
 */

#include "nettrace/perf_store.h"
#include "src/perf/perf_files.h"
#include "src/perf/perf_map.h"

/* An address, when it was seen last, and what was found. */
struct perf_jit_place {
	uint64_t address;
	uint64_t last_ns;
	struct perf_code code; /* its name is not valid */
	char *name; /* NULL: none yet */
};

/*
 * Reads the files, if there are any, and adds symbols without a file to p.  Changes the order of
 * the places.  NT_ENOMEM.
 */
NT_MUST_CHECK enum nt_status perf_jit_add(struct nt_perf *p, const struct perf_files *files,
					  struct perf_jit_place *places, size_t count);

#endif
