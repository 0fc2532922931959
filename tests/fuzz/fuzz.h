/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

/*
 * What every fuzz_NAME.c defines: one run on one input.  Built with clang and libFuzzer by
 * tools/fuzz; with gcc and fuzz_main.c it replays the corpus in every ordinary test run.
 */

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
