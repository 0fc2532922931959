/* SPDX-License-Identifier: MIT */
#ifndef NETTRACE_IDMAP_H
#define NETTRACE_IDMAP_H

/* 64-bit id to a 32-bit index, open addressing; entries leave only all together. */

#include "nettrace/nettrace.h"

#define NT_IDMAP_NONE UINT32_MAX

struct nt_idmap {
	const struct nt_alloc *alloc;
	uint64_t *keys;
	uint32_t *values; /* NT_IDMAP_NONE marks a free slot */
	size_t slots; /* 0, or a power of two */
	size_t used;
};

void nt_idmap_init(struct nt_idmap *m, const struct nt_alloc *alloc);
void nt_idmap_done(struct nt_idmap *m);
void nt_idmap_clear(struct nt_idmap *m);
/* NT_IDMAP_NONE when key is not there. */
uint32_t nt_idmap_get(const struct nt_idmap *m, uint64_t key);
/* Adds or replaces.  value must not be NT_IDMAP_NONE.  NT_ENOMEM leaves the map as it was. */
NT_MUST_CHECK enum nt_status nt_idmap_put(struct nt_idmap *m, uint64_t key, uint32_t value);

#endif
