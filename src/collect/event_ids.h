/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_EVENT_IDS_H
#define SRC_COLLECT_EVENT_IDS_H

/*
 * --event-filter: which event ids of a provider are recorded.
 *
 *	Provider:only:1,2,10-12		these and no others
 *	Provider:except:7		all but these
 *
 * .NET 10 and later do this themselves; with older ones the events are recorded and left out of
 * the analysis.
 */

#include "nettrace/nettrace.h"
#include "src/ipc/ipc_wire.h"

enum { EVENT_IDS_MAX = 4096 }; /* of one provider */

struct event_ids {
	char *provider;
	struct ipc_event_filter filter;
	uint32_t *ids; /* what filter points to */
};

struct event_ids_set {
	struct event_ids *items;
	size_t count;
};

/* NULL when the text was added; else the reason: "'1-' is no event id". */
const char *event_ids_add(struct event_ids_set *set, const char *text);
void event_ids_done(struct event_ids_set *set);
/* The filter of a provider, whatever the case of its name, or NULL. */
const struct ipc_event_filter *event_ids_of(const struct event_ids_set *set, const char *provider);
/* Whether the filters let such events through. */
bool event_ids_pass(const struct event_ids_set *set, const struct nt_event_def *def);

#endif
