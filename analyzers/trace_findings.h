/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_TRACE_FINDINGS_H
#define ANALYZERS_TRACE_FINDINGS_H

/*
 * Findings about the trace itself: cut, without names, with gaps.  They come before all others of
 * their severity, since every other finding rests on them, and each says what to do differently.
 */

#include "analyzers/analyzer.h"

void an_trace_findings(const struct an_shared *s, struct an_report *out);

#endif
