/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_STACKS_H
#define ANALYZERS_STACKS_H

/*
 * What a whole stack says, for analyzers of waiting threads.  All of it needs names, so it can be
 * asked only when reporting.
 */

#include "analyzers/analyzer.h"

/* The innermost frame outside the runtime's own libraries, or NULL. */
const struct an_method *an_stack_site(const struct an_shared *s, uint32_t node);
/* That, or else the innermost frame of all that has a name. */
const struct an_method *an_stack_place(const struct an_shared *s, uint32_t node);
/* The outermost one: where the program's part of the thread began, or NULL. */
const struct an_method *an_stack_start(const struct an_shared *s, uint32_t node);
/* Whether the innermost frames are those of a thread that waits (wait_frames.h). */
bool an_stack_waits(const struct an_shared *s, uint32_t node);
/* Whether some frame has that raw name, "Namespace.Type+Nested.Method"; type arguments aside. */
bool an_stack_has(const struct an_shared *s, uint32_t node, const char *raw);

/*
 * The frames where the thread enters the lock it waits for: Monitor and Lock have frames from
 * .NET 10 on, Lock already in 9.
 */
enum an_lock_frame { AN_LOCK_NO_FRAME, AN_LOCK_MONITOR, AN_LOCK_LOCK };
enum an_lock_frame an_stack_lock_frame(const struct an_shared *s, uint32_t node);

/* The call that the program waits in: the outermost of the library's frames above its own. */
const struct an_method *an_stack_call(const struct an_shared *s, uint32_t node);

/* Adds "name": the frames' names, the innermost first, at most max; "..." stands for the rest. */
void an_stack_add(const struct an_shared *s, uint32_t node, size_t max, struct an_value *parent,
		  const char *name);

/* A name or null. */
void an_add_method(struct an_value *parent, const char *name, const struct an_method *m);
/* Lock and object ids: hexadecimal text; null for 0. */
void an_add_hex(struct an_value *parent, const char *name, uint64_t v);
/* Nanoseconds as milliseconds with microseconds behind the point. */
void an_add_ms(struct an_value *parent, const char *name, uint64_t ns);

#endif
