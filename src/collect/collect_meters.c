/* SPDX-License-Identifier: MIT */
#include "src/collect/collect_meters.h"

#include "src/collect/providers.h"

enum { FIRST_MS = 700, LAST_MS = 1500 /* a busy process is late */ };

uint64_t collect_meters_ms(const struct ipc_collect *c, uint64_t passed_ms)
{
	if (passed_ms < FIRST_MS || passed_ms > LAST_MS || !ipc_collect_find(c, PROVIDER_METERS))
		return 0;
	return LAST_MS - passed_ms + 1;
}
