/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_HEAP_HEAP_TYPES_H
#define ANALYZERS_HEAP_HEAP_TYPES_H

/*
 * Types by their id (the address of the method table), from BulkType.  A runtime says the name of
 * a type once in a session, whichever walk needs it: one table serves all walks of a trace.
 */

#include "nettrace/arena.h"
#include "nettrace/idmap.h"
#include "nettrace/nettrace.h"

struct an_heap_type {
	uint64_t id;
	uint64_t module;
	const char *name; /* UTF-8; NULL: never told; "": told without a name */
	uint32_t token;
	uint32_t flags; /* 1 delegate, 2 finalizable, 4 RCW, 8 array */
	uint64_t parameter; /* the element of an array; 0 none */
};

struct an_heap_types {
	const struct nt_alloc *alloc;
	struct an_heap_type *types; /* [0]: all that did not fit */
	size_t count, cap;
	struct nt_idmap by_id;
	struct nt_arena names;
	uint64_t beyond; /* more than there is room for */
};

NT_MUST_CHECK enum nt_status an_heap_types_init(struct an_heap_types *t,
						const struct nt_alloc *alloc);
void an_heap_types_done(struct an_heap_types *t);
/* Its place in the list, added when it is new; 0 when there is no room. */
NT_MUST_CHECK enum nt_status an_heap_types_find(struct an_heap_types *t, uint64_t id,
						uint32_t *ret);
/* Takes the rows of a BulkType event. */
NT_MUST_CHECK enum nt_status an_heap_types_event(struct an_heap_types *t,
						 const struct nt_event *ev);

#endif
