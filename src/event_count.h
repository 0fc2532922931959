/* SPDX-License-Identifier: MIT */
#ifndef SRC_EVENT_COUNT_H
#define SRC_EVENT_COUNT_H

#include <stdbool.h>

#include "src/event_filter.h"
#include "src/input.h"
#include "src/output.h"

/*
 * Counts the events of a trace that match, by kind and by thread, as fast as can be: in the order
 * of the file, without stacks.  Prints them as text, or as JSON the "trace" object of the report.
 * Returns an exit code.
 */
int event_count(struct input *in, struct event_filter *filter, struct out *out, bool json,
		const char *file);

#endif
