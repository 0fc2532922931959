/* SPDX-License-Identifier: MIT */

/*
 * Who was running (runtime-events.md §3.3).  Running is a lower bound, waiting is known, the rest
 * is unknown: a sample never counts as CPU because nothing better is known about it.
 */

#include "analyzers/cpu/cpu_internal.h"
#include "analyzers/grow.h"
#include "analyzers/wait_frames.h"

enum { RUNTIME_9 = 9 };

/* Too many waits of one thread inside each other to be looked through. */
enum { MAX_WAITS_DEEP = 16 };

static enum an_frame_kind kind_of(struct cpu_judge *j, uint32_t node)
{
	const struct an_method *m = an_calltree_method(j->cpu->shared->tree, node);

	if (!m)
		return AN_FRAME_PLAIN;
	if (!j->kinds[m->index])
		j->kinds[m->index] = (uint8_t)(an_frame_kind_of(m) + 1);
	return (enum an_frame_kind)(j->kinds[m->index] - 1);
}

static enum cpu_leaf look(struct cpu_judge *j, uint32_t node)
{
	const struct an_calltree *tree = j->cpu->shared->tree;
	bool native = false;

	if (node == AN_NODE_NONE || !an_calltree_method(tree, node))
		return LEAF_UNNAMED;
	for (unsigned i = 0; i < AN_WAIT_FRAMES && node != AN_NODE_NONE; i++) {
		switch (kind_of(j, node)) {
		case AN_FRAME_WAIT:
			return LEAF_WAIT;
		case AN_FRAME_WAIT_LEAF:
			if (!i)
				return LEAF_WAIT;
			break;
		case AN_FRAME_SPIN:
			return LEAF_SPIN;
		case AN_FRAME_NATIVE:
			native = native || !i;
			break;
		case AN_FRAME_POLL:
		case AN_FRAME_PLAIN:
			break;
		}
		node = an_calltree_node(tree, node)->parent;
	}
	return native ? LEAF_NATIVE : LEAF_PLAIN;
}

enum cpu_leaf cpu_judge_leaf(struct cpu_judge *j, uint32_t node)
{
	if (!j->leaves[node])
		j->leaves[node] = (uint8_t)(look(j, node) + 1);
	return (enum cpu_leaf)(j->leaves[node] - 1);
}

/*
 * .NET 9 says "outside managed code" of every sample, also in a pure loop.  Where the runtime's
 * version is not known the same is assumed when practically no sample is managed.
 */
static bool do_types_mean_something(struct cpu_judge *j)
{
	const struct cpu *c = j->cpu;
	uint64_t managed = 0, all = 0;

	if (j->source != AN_CPU_SAMPLER)
		return true;
	if (c->shared->runtime_major)
		return c->shared->runtime_major != RUNTIME_9;
	for (size_t i = 0; i < c->slot_count; i++) {
		const struct cpu_slot *s = &c->slots[i];

		if (s->source != AN_CPU_SAMPLER || cpu_judge_leaf(j, s->node) == LEAF_WAIT)
			continue;
		for (unsigned bin = BIN_MANAGED; bin < BINS; bin++)
			all += s->count[bin];
		managed += s->count[BIN_MANAGED] + s->count[BIN_MANAGED_LONG];
	}
	return all && managed * 100 >= all;
}

enum nt_status cpu_judge_init(struct cpu_judge *j, const struct cpu *cpu, enum an_cpu_source source)
{
	const struct an_shared *s = cpu->shared;

	*j = (struct cpu_judge){ .cpu = cpu,
				 .source = source,
				 .kind_count = an_methods_count(s->methods) };
	j->kinds = an_mem_array(s->alloc, j->kind_count, 1);
	j->leaves = an_mem_array(s->alloc, an_calltree_count(s->tree), 1);
	if (!j->kinds || !j->leaves) {
		cpu_judge_done(j);
		return NT_ENOMEM;
	}
	j->types_mean_something = do_types_mean_something(j);
	return NT_OK;
}

void cpu_judge_done(struct cpu_judge *j)
{
	an_mem_free(j->cpu->shared->alloc, j->kinds);
	an_mem_free(j->cpu->shared->alloc, j->leaves);
	j->kinds = j->leaves = NULL;
}

uint32_t cpu_judge_program(struct cpu_judge *j, uint32_t node)
{
	const struct an_calltree *tree = j->cpu->shared->tree;

	for (unsigned i = 0; i < MAX_WAITS_DEEP && node != AN_NODE_NONE; i++) {
		const struct an_method *m = an_calltree_method(tree, node);

		if (m && kind_of(j, node) == AN_FRAME_PLAIN && !an_frame_is_library(m))
			return node;
		node = an_calltree_node(tree, node)->parent;
	}
	return AN_NODE_NONE;
}

/* The runtime says where a thread was: in managed code it runs, or would if a core were free. */
static enum cpu_state by_type(struct cpu_judge *j, uint32_t node, enum cpu_bin bin)
{
	enum cpu_leaf leaf = cpu_judge_leaf(j, node);

	if (bin == BIN_MANAGED || bin == BIN_MANAGED_LONG) {
		/*
		 * Stopped at the safepoint of a wait is not waiting: the program did something
		 * just before.  The runtime's own threads only look for work there.
		 */
		if (leaf == LEAF_WAIT && cpu_judge_program(j, node) == AN_NODE_NONE)
			return CPU_UNKNOWN;
		return CPU_ON;
	}
	switch (leaf) {
	case LEAF_WAIT:
		return CPU_WAITING;
	case LEAF_SPIN:
		return CPU_ON;
	case LEAF_NATIVE:
		return CPU_UNKNOWN;
	default:
		/* Native code behind an inlined call, or a wait that leaves no frame. */
		return bin == BIN_OUTSIDE_PARKED || bin == BIN_OUTSIDE_LONG ? CPU_WAITING
									    : CPU_UNKNOWN;
	}
}

/*
 * Only the stack says something.  A loop with one safepoint keeps its address for as long as a
 * call of it takes, so short of half a second that is no sign of waiting.
 */
static enum cpu_state by_stack(enum cpu_leaf leaf, enum cpu_bin bin)
{
	bool moves = bin == BIN_MANAGED || bin == BIN_OUTSIDE || bin == BIN_OUTSIDE_PARKED;

	switch (leaf) {
	case LEAF_WAIT:
		return CPU_WAITING;
	case LEAF_SPIN:
		return CPU_ON;
	case LEAF_PLAIN:
		return moves ? CPU_ON : CPU_UNKNOWN;
	default:
		return CPU_UNKNOWN;
	}
}

/* A profiler of the operating system sees who runs. */
static enum cpu_state by_claim(enum cpu_bin bin)
{
	return bin == BIN_OUTSIDE ? CPU_UNKNOWN : CPU_ON;
}

enum cpu_state cpu_judge_state(struct cpu_judge *j, const struct cpu_slot *slot, enum cpu_bin bin)
{
	enum cpu_state state;

	if (bin == BIN_EVENT_WAIT)
		return CPU_WAITING;
	if (slot->source != AN_CPU_SAMPLER)
		return by_claim(bin);
	if (slot->level == LEVEL_IDLE)
		return CPU_WAITING; /* whatever it looks like: it used no CPU */
	state = j->types_mean_something ? by_type(j, slot->node, bin)
					: by_stack(cpu_judge_leaf(j, slot->node), bin);
	return state == CPU_UNKNOWN && slot->level == LEVEL_BUSY ? CPU_ON : state;
}

uint32_t cpu_judge_worker(struct cpu_judge *j, uint32_t node)
{
	const struct an_calltree *tree = j->cpu->shared->tree;
	uint32_t at = node;

	if (j->source != AN_CPU_SAMPLER)
		return node;
	while (at != AN_NODE_NONE && kind_of(j, at) == AN_FRAME_POLL)
		at = an_calltree_node(tree, at)->parent;
	if (cpu_judge_leaf(j, node) != LEAF_WAIT)
		return at == AN_NODE_NONE ? node : at;
	at = cpu_judge_program(j, node);
	return at == AN_NODE_NONE ? node : at;
}
