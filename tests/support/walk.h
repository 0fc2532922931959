/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_WALK_H
#define TESTS_SUPPORT_WALK_H

/*
 * Where the blocks of a sound trace lie, found without the library: tests cut and damage traces at
 * the places where that is most likely to hurt.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * Offsets at which blocks (or objects) begin, then where the stream ends; in *ret_count.  The
 * caller frees the result.  NULL when the bytes are no trace.
 */
size_t *walk_edges(const uint8_t *data, size_t size, size_t *ret_count);

#endif
