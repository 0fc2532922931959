/* SPDX-License-Identifier: MIT */
#ifndef SRC_BASE_PATTERN_H
#define SRC_BASE_PATTERN_H

/*
 * Regular expressions of the user on names of a trace: POSIX extended ones, anywhere in the name,
 * in time that grows with the length of the name alone.
 */

#include "analyzers/analyzer.h"

struct pattern;

/*
 * NULL when it is none; then *reterr_why says why, static text or the C library's, in buf.  What
 * takes time or memory beyond reason is refused: back-references, and repeats above 100.
 */
struct pattern *pattern_new(const char *text, char *reterr_why, size_t size);
struct pattern *pattern_free(struct pattern *p); /* returns NULL */
/* Lives as long as the pattern. */
const struct an_matcher *pattern_matcher(const struct pattern *p);

#endif
