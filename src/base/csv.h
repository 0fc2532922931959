/* SPDX-License-Identifier: MIT */
#ifndef SRC_BASE_CSV_H
#define SRC_BASE_CSV_H

#include "src/base/output.h"

/*
 * A field of a CSV file as RFC 4180 has it: in quotes where it holds quotes, commas or line breaks.
 * NULL: empty.  Other control characters and what is not UTF-8 are escaped.
 */
void csv_text(struct out *o, const char *text);

#endif
