/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_FIXTURE_H
#define TESTS_SUPPORT_FIXTURE_H

/*
 * Reads the traces of fixtures/ into memory, unpacked.  The folder is $DRD_FIXTURES, which meson
 * sets for every test.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * name: "cpu-net8.nettrace.zst", relative to the folder, or an absolute path.  A zstd file comes
 * back unpacked.  The caller frees the result.  NULL, with a line on standard error, when the file
 * is not there or damaged.
 */
uint8_t *fixture_read(const char *name, size_t *ret_size);

#endif
