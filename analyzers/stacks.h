/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_STACKS_H
#define ANALYZERS_STACKS_H

/*
 * What a whole stack says, for analyzers of waiting threads.  Needs names, so it is made when
 * reporting: one pass over the call tree, however deep the stacks, then every answer is at hand.
 */

#include "analyzers/analyzer.h"

struct an_stacks {
	const struct an_shared *shared;
	/* All by node; AN_NODE_NONE where there is no such frame. */
	uint32_t *site; /* the innermost frame outside the runtime's own libraries */
	uint32_t *start; /* the outermost such frame */
	uint32_t *call; /* the outermost of the library's frames that the site has called */
	uint8_t *pool; /* enum an_pool_frame */
};

/* Frames of the thread pool, anywhere on the stack. */
enum an_pool_frame {
	AN_POOL_LOOP = 1, /* a worker's loop */
	AN_POOL_WORK = 2, /* a worker, inside of work */
};

NT_MUST_CHECK enum nt_status an_stacks_init(struct an_stacks *s, const struct an_shared *shared);
/* Accepts all zeros. */
void an_stacks_done(struct an_stacks *s);

/* The methods of these frames, or NULL. */
const struct an_method *an_stack_site(const struct an_stacks *s, uint32_t node);
const struct an_method *an_stack_start(const struct an_stacks *s, uint32_t node);
const struct an_method *an_stack_call(const struct an_stacks *s, uint32_t node);
/* The site, or else the first of the innermost frames that has a name. */
const struct an_method *an_stack_place(const struct an_stacks *s, uint32_t node);
unsigned an_stack_pool(const struct an_stacks *s, uint32_t node); /* enum an_pool_frame */

/* Whether the innermost frames are those of a thread that waits (wait_frames.h). */
bool an_stack_waits(const struct an_stacks *s, uint32_t node);

/*
 * What a thread that waits with this stack waits for, for people; NULL where nothing says it.  The
 * outermost of the library's innermost frames knows best: a task's Wait is made of an event's.
 */
const char *an_stack_waits_for(const struct an_stacks *s, uint32_t node);
/* Whether any frame is outside the runtime's own libraries. */
bool an_stack_is_own(const struct an_stacks *s, uint32_t node);
/* Whether the innermost frame is. */
bool an_stack_is_leaf_own(const struct an_stacks *s, uint32_t node);

/*
 * The frames where the thread enters the lock it waits for: Monitor and Lock have frames from
 * .NET 10 on, Lock already in 9.
 */
enum an_lock_frame { AN_LOCK_NO_FRAME, AN_LOCK_MONITOR, AN_LOCK_LOCK };
enum an_lock_frame an_stack_lock_frame(const struct an_stacks *s, uint32_t node);

/* Adds "name": the frames' names, the innermost first, at most max; "..." stands for the rest. */
void an_stack_add(const struct an_stacks *s, uint32_t node, size_t max, struct an_value *parent,
		  const char *name);

/* A name or null. */
void an_add_method(struct an_value *parent, const char *name, const struct an_method *m);
/* Lock and object ids: hexadecimal text; null for 0. */
void an_add_hex(struct an_value *parent, const char *name, uint64_t v);
/* Nanoseconds as milliseconds with microseconds behind the point. */
void an_add_ms(struct an_value *parent, const char *name, uint64_t ns);

#endif
