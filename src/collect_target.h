/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_TARGET_H
#define SRC_COLLECT_TARGET_H

/* Which process to trace: by number, by name, or the only one there is. */

#include <stdint.h>

#include "src/ipc_find.h"

struct collect_target {
	struct ipc_target target;
	char *name;
};

/*
 * pid 0 and name NULL: the only traceable process.  Returns -1 when found; else the exit code,
 * with the reason (and the candidates) on standard error.
 */
int collect_target_choose(struct collect_target *ret, int32_t pid, const char *name,
			  uint64_t ask_ms);
void collect_target_done(struct collect_target *t);

#endif
