/* SPDX-License-Identifier: MIT */
#ifndef SRC_COUNTERS_COUNTERS_RUN_H
#define SRC_COUNTERS_COUNTERS_RUN_H

/*
 * From events to readings that were asked for: whose they are, which of several instruments of one
 * name, how long since the last one.  Keeps a bounded note of each series.
 */

#include <stdbool.h>
#include <stdint.h>

#include "nettrace/nettrace.h"
#include "src/counters/counters_list.h"
#include "src/counters/counters_write.h"

/* As a session that others may share; before .NET 8 the runtime takes it for a name like any. */
#define COUNTERS_SESSION "SHARED"

struct counters_run;

struct counters_run_config {
	struct counters_list *list;
	int64_t refresh_ns;
	/* False: no more, please. */
	bool (*put)(void *ctx, const struct counters_reading *r);
	void *ctx;
};

struct counters_run *counters_run_new(const struct counters_run_config *config);
struct counters_run *counters_run_free(struct counters_run *r); /* returns NULL */
/* For the tap of a collection. */
enum nt_status counters_run_event(void *run, const struct nt_trace_info *info,
				  const struct nt_event *ev);

/* Says what is missing, and why.  Returns code, or another where that is worse. */
int counters_run_end(const struct counters_run *r, bool quiet, int code);

#endif
