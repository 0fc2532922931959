/* SPDX-License-Identifier: MIT */
#ifndef SRC_TRACE_EVENT_FILTER_H
#define SRC_TRACE_EVENT_FILTER_H

/* Which events a command is about.  What depends on the definition only is asked once each. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nettrace/nettrace.h"
#include "src/base/options.h"

struct event_filter {
	struct opt_list providers; /* globs, any may match; none: all */
	struct opt_list names; /* globs */
	struct opt_list ids; /* event ids as text, checked by event_filter_is_number() */
	struct opt_list threads; /* thread ids as text */
	int64_t from_ns, to_ns; /* from_ns <= time < to_ns */
	unsigned char *verdicts; /* by index of the definition: 0 not asked, 1 yes, 2 no */
	size_t verdict_room;
};

void event_filter_init(struct event_filter *f); /* lets everything through */
void event_filter_done(struct event_filter *f); /* the lists stay the caller's */
bool event_filter_is_empty(const struct event_filter *f);

/* NT_OK and *ret_match, or NT_ENOMEM. */
enum nt_status event_filter_match(struct event_filter *f, const struct nt_event *ev,
				  bool *ret_match);

bool event_filter_is_number(const char *text);

/*
 * Whether a name fits a glob (* ? [a-z], capitals do not matter).  "GCStart" is also found as
 * "GC/Start" and "GC"; an event "GC" with the opcode Start also as "GCStart": other tools cut the
 * words Start and Stop off names.
 */
bool event_name_fits(const char *glob, const char *name, uint32_t opcode);

#endif
