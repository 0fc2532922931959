/* SPDX-License-Identifier: MIT */
#ifndef SRC_BASE_STOP_KEY_H
#define SRC_BASE_STOP_KEY_H

/*
 * Enter or q on the terminal ends a recording.
 *
 * Only where standard input is the terminal that we are in the foreground of: a job in the
 * background that touched it would be stopped by the kernel, and the target's stream with it.
 */

#include <stdbool.h>
#include <uv.h>

struct stop_key;

/* NULL: there is no such terminal (or no memory): nothing to wait for. */
struct stop_key *stop_key_start(uv_loop_t *loop, void (*pressed)(void *ctx), void *ctx);
/* Gives the terminal back as it was; the memory goes when the loop has run.  Accepts NULL. */
void stop_key_end(struct stop_key *k);

#endif
