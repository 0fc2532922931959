/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_SAMPLE_H
#define TESTS_SUPPORT_SAMPLE_H

/*
 * Small traces with as much of the format in them as fits: every kind of block, row, tag, label and
 * option, two epochs, losses, unsorted events, ids that are unknown.
 */

#include "tests/support/build.h"

/* Formats 3, 4 and 6.  Sound: decodes to NT_OK. */
struct build sample_stream(unsigned format);

#endif
