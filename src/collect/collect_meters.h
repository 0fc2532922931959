/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_COLLECT_METERS_H
#define SRC_COLLECT_COLLECT_METERS_H

#include <stdint.h>

#include "src/ipc/ipc_wire.h"

/*
 * A runtime that is told to stop just as it reads its meters for the first time, a second after the
 * start, may lock itself up: it holds the lock of all event sources, and waits for the thread that
 * reads, which needs that lock to make one.
 *
 * How long a stop should wait that is asked for so many milliseconds after the start; 0: not at
 * all.
 */
uint64_t collect_meters_ms(const struct ipc_collect *c, uint64_t passed_ms);

#endif
