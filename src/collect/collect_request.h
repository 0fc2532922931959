/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_COLLECT_REQUEST_H
#define SRC_COLLECT_COLLECT_REQUEST_H

/* From the providers that were chosen to those that go on the wire. */

#include "src/collect/event_ids.h"
#include "src/collect/providers.h"
#include "src/ipc/ipc_wire.h"

struct collect_request {
	struct ipc_provider *providers; /* as many as in the set; point into it */
	/* The provider of tasks comes last: with so many it is left out.  As many as in the set
	 * when it is not among them. */
	size_t without_tasks;
};

/* ids: filters, or NULL.  False: out of memory, said. */
bool collect_request_make(struct collect_request *ret, const struct provider_set *set,
			  const struct event_ids_set *ids);
void collect_request_done(struct collect_request *r);

#endif
