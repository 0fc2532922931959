/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_SITES_H
#define ANALYZERS_SITES_H

/*
 * Where in the program something happened, from the stack of an event: the innermost frame that is
 * not of the base library, or else the innermost of all.  Frames without a name count as the
 * program's.  Made when reporting, when names are known.
 */

#include "analyzers/analyzer.h"

struct an_sites {
	const struct an_shared *shared;
	uint32_t *of; /* by node: the node of its site */
};

NT_MUST_CHECK enum nt_status an_sites_init(struct an_sites *s, const struct an_shared *shared);
void an_sites_done(struct an_sites *s);

/* Equal for nodes of one method (or of one address without a name). */
uint64_t an_sites_key(const struct an_sites *s, uint32_t site);
/* Buf is used where there is no name. */
const char *an_sites_name(const struct an_sites *s, uint32_t site, char *buf, size_t size);
/* Adds the members method, signature, args, raw and module. */
void an_sites_add(const struct an_sites *s, uint32_t site, struct an_value *row);

#endif
