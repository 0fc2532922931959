/* SPDX-License-Identifier: MIT */
#include "src/collect/collect_request.h"

#include <stdlib.h>
#include <strings.h>

#include "src/base/log.h"
#include "src/collect/profiles.h"

bool collect_request_make(struct collect_request *ret, const struct provider_set *set,
			  const struct event_ids_set *ids)
{
	size_t n = 0;

	*ret = (struct collect_request){ calloc(set->count, sizeof(*ret->providers)), set->count };
	if (!ret->providers) {
		log_error("cannot collect: out of memory");
		return false;
	}
	for (size_t i = 0; i < set->count; i++) {
		const struct provider *p = &set->items[i];
		bool tasks = strcasecmp(p->name, PROVIDER_TPL) == 0;

		if (tasks)
			ret->without_tasks = set->count - 1;
		ret->providers[tasks ? set->count - 1 : n++] = (struct ipc_provider){
			.name = p->name,
			.keywords = p->keywords,
			.level = p->level,
			.args = p->args,
			.filter = ids ? event_ids_of(ids, p->name) : NULL,
		};
	}
	return true;
}

void collect_request_done(struct collect_request *r)
{
	free(r->providers);
	r->providers = NULL;
}
