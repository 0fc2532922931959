/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_PORT_GUARD_H
#define SRC_COLLECT_PORT_GUARD_H

/*
 * A process that does nothing, unless ours is killed.
 *
 * A runtime that came to our port suspended waits there until somebody tells it to go on, for ever
 * if need be.  Whoever is killed by signal 9 cannot.  So a second process holds the listening
 * socket: when ours is gone without having said that all is over, it tells every runtime that comes
 * to go on, as long as the command lives or for a short time, then removes the socket and ends.
 */

#include <stdint.h>

#include "src/ipc/port_address.h"

struct port_guard;

/* directory: removed too, when it comes to that; may be NULL.  NULL: *reterr is a negative errno.
 */
struct port_guard *port_guard_start(int listening, const struct port_address *address,
				    const char *directory, int *reterr);
/* Runtimes may come as long as this process lives. */
void port_guard_watch(struct port_guard *g, int32_t pid);
/* All is over and nobody waits; g may be NULL. */
void port_guard_end(struct port_guard *g);

#endif
