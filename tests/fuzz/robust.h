/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_ROBUST_H
#define TESTS_FUZZ_ROBUST_H

/* The parts of robust.c that do not decide what is tried. */

#include "nettrace/nettrace.h"

/* Whether this program was built with a sanitizer, and so is slow. */
bool robust_sanitized(void);

/*
 * Runs all analyzers over the bytes and builds the report, which is thrown away.  Returns the
 * decoder's status, or NT_ENOMEM when the report could not be built.
 */
enum nt_status robust_report(const struct nt_alloc *alloc, const uint8_t *data, size_t size);

/*
 * A sound trace of at most max bytes, if a block edge lies there: the first blocks and the end tag.
 * The caller frees it.
 */
uint8_t *robust_shorten(const uint8_t *data, size_t size, size_t max, size_t *ret_size);

/* Changes the bytes as that seed says; room for 2 * size + 64.  Returns the new size, never 0. */
size_t robust_mutate(uint8_t *data, size_t size, uint64_t seed);

#endif
