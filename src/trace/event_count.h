/* SPDX-License-Identifier: MIT */
#ifndef SRC_TRACE_EVENT_COUNT_H
#define SRC_TRACE_EVENT_COUNT_H

#include <stdbool.h>

#include "src/base/output.h"
#include "src/trace/event_filter.h"
#include "src/trace/input.h"

/*
 * Counts the events of a trace that match, by kind and by thread, as fast as can be: in the order
 * of the file, without stacks.  Prints them as text, or as JSON the "trace" object of the report.
 * Returns an exit code.
 */
int event_count(struct input *in, struct event_filter *filter, struct out *out, bool json,
		const char *file);

#endif
