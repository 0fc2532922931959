/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_CALLTREE_H
#define ANALYZERS_CALLTREE_H

/*
 * Interned call stacks: a tree from the outermost caller inwards, one node a (caller, address,
 * code epoch).  A stack is then one number, the node of its leaf.  Shared by all analyzers of a
 * trace; each keeps its own weights, indexed by node.
 */

#include "analyzers/methods.h"
#include "nettrace/nettrace.h"

struct an_calltree;

enum { AN_NODE_NONE = 0 }; /* the root: an empty stack */

struct an_node {
	uint64_t address; /* as in the stack: a return address unless the node was ever a leaf */
	uint32_t epoch;
	uint32_t parent; /* caller; AN_NODE_NONE at the outermost frame */
	bool leaf; /* leaf and caller frames of one address are different nodes */
	bool other; /* the one node that takes what did not fit: "[other]" */
};

struct an_calltree *an_calltree_new(const struct nt_alloc *alloc, const struct an_methods *methods);
struct an_calltree *an_calltree_free(struct an_calltree *t); /* returns NULL */

/* The node of the event's stack; AN_NODE_NONE when it has none. */
NT_MUST_CHECK enum nt_status an_calltree_intern(struct an_calltree *t, const struct nt_event *ev,
						uint32_t *ret_node);

/* The same for addresses from elsewhere, leaf first, of the process with that base epoch. */
NT_MUST_CHECK enum nt_status an_calltree_intern_frames(struct an_calltree *t, uint32_t base,
						       const uint64_t *frames, size_t count,
						       uint32_t *ret_node);

size_t an_calltree_count(const struct an_calltree *t); /* nodes, the root included */
const struct an_node *an_calltree_node(const struct an_calltree *t, uint32_t node);
/* The method of a node's frame, or NULL; valid once the trace has been read. */
const struct an_method *an_calltree_method(const struct an_calltree *t, uint32_t node);
/* Stacks folded into the "[other]" node because the cap was reached. */
uint64_t an_calltree_folded(const struct an_calltree *t);

#endif
