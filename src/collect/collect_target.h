/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_COLLECT_TARGET_H
#define SRC_COLLECT_COLLECT_TARGET_H

/* Which process to trace: by number, by name, the only one there is, or who is behind a port. */

#include <stdint.h>

#include "src/ipc/ipc_conn.h"
#include "src/ipc/ipc_find.h"
#include "src/ipc/port_address.h"

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
/*
 * Asks the port who it is; source connects to it.  Its process may be one that cannot be seen from
 * here.  Returns as above.
 */
int collect_target_ask(struct collect_target *ret, const struct port_address *port,
		       const struct ipc_source *source, uint64_t ask_ms);
void collect_target_done(struct collect_target *t);

#endif
