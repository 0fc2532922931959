/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_COLLECT_LIVE_H
#define SRC_COLLECT_COLLECT_LIVE_H

/*
 * What a person should hear of while the recording still goes on: a deadlock.
 *
 * Has a decoder of its own that keeps the order of the file: events that wait for their time could
 * wait until the next one arrives, and a process in a deadlock may be silent.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzers/analyzer.h"
#include "src/ipc/ipc_wire.h"

struct collect_live;

/* Whether such a session has events that say something. */
bool collect_live_is_useful(const struct ipc_collect *session);
struct collect_live *collect_live_new(void); /* NULL: out of memory */
struct collect_live *collect_live_free(struct collect_live *l); /* returns NULL */
void collect_live_push(struct collect_live *l, const uint8_t *bytes, size_t len);
/* now_ns: since the session began.  Accepts NULL. */
bool collect_live_look(struct collect_live *l, int64_t now_ns, struct an_live *ret);

#endif
