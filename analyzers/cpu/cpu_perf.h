/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_CPU_CPU_PERF_H
#define ANALYZERS_CPU_CPU_PERF_H

/*
 * CPU samples that this program took beside the trace (nettrace/perf_store.h) go into the analysis:
 * names of native code first, then the samples, with the frames of on-stack replacement put right.
 */

#include "analyzers/analyzer.h"
#include "nettrace/perf_store.h"

/* After the whole trace was read, before the report.  p must live until then. */
NT_MUST_CHECK enum nt_status an_engine_perf(struct an_engine *e, const struct nt_perf *p);

/* What lacks in the samples.  Before an_engine_report(), into the same report. */
void an_perf_findings(const struct nt_perf *p, struct an_report *out);

#endif
