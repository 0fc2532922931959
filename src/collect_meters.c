/* SPDX-License-Identifier: MIT */
#include "src/collect_meters.h"

#include <stdbool.h>
#include <strings.h>

#include "src/providers.h"

enum { FIRST_MS = 700, LAST_MS = 1500 /* a busy process is late */ };

uint64_t collect_meters_ms(const struct ipc_collect *c, uint64_t passed_ms)
{
	bool meters = false;

	for (size_t i = 0; i < c->provider_count; i++)
		meters = meters || strcasecmp(c->providers[i].name, PROVIDER_METERS) == 0;
	if (!meters || passed_ms < FIRST_MS || passed_ms > LAST_MS)
		return 0;
	return LAST_MS - passed_ms + 1;
}
