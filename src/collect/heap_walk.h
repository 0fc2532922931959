/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_HEAP_WALK_H
#define SRC_COLLECT_HEAP_WALK_H

/*
 * Walks of the heap beside a session: when to begin, when each has ended, and the second one.
 *
 * A session that asks for HEAP_WALK_KEYWORDS gets the first walk by being opened: the runtime
 * collects the whole heap, with the program standing still, and writes down every object.  The
 * second is brought about by another, empty session that asks for a collection.  Events of both go
 * to the first session, whose owner hands its bytes over with heap_walk_push().
 *
 *	heap_walk_start()   -> ready: open the session, with its keywords
 *	heap_walk_push()    -> walked, once or twice; then done
 *
 * The session stays the owner's: who ends it ends the walks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "src/ipc/ipc_conn.h"

/* For Microsoft-Windows-DotNETRuntime: GC, Type, GCHeapDump, GCHeapCollect, type names; and where
 * objects have moved, by which two walks tell the same ones. */
#define HEAP_WALK_KEYWORDS UINT64_C(0x1D80001)

enum {
	HEAP_WALK_LEVEL = 5,
	HEAP_WALK_BUFFER_MB = 1024, /* a walk is in the runtime's buffer before any of it is read */
	HEAP_WALK_APART_MS = 2000,
	/* The runtime answers who opens such a session when the walk has ended: of a large heap, in
	 * minutes. */
	HEAP_WALK_ANSWER_MS = 600 * 1000,
	HEAP_WALK_STALL_MS = 60 * 1000, /* without another object: something is wrong */
};

struct heap_walk;

struct heap_walk_facts {
	uint64_t objects;
	int64_t pause_ns; /* -1: not known yet */
};

enum heap_walk_why {
	HEAP_WALK_DONE, /* all walks have ended */
	HEAP_WALK_TIMEOUT, /* none began, or one did not go on */
	HEAP_WALK_FAILED, /* the second could not be asked for */
};

/* All from the loop or from heap_walk_push(). */
struct heap_walk_events {
	/*
	 * The session may be opened now; once.  answers: the process is there and answers, so it is
	 * worth to wait for as long as HEAP_WALK_ANSWER_MS.
	 */
	void (*ready)(void *ctx, bool answers);
	void (*walked)(void *ctx, unsigned number, const struct heap_walk_facts *facts); /* 1, 2 */
	void (*done)(void *ctx, enum heap_walk_why why); /* last and once */
};

struct heap_walk_config {
	const char *const *sockets;
	size_t socket_count;
	const struct ipc_source *source; /* instead of sockets; NULL: none */
	unsigned walks; /* 1 or 2 */
	uint64_t apart_ms; /* between the end of the first and the second */
	uint64_t timeout_ms; /* for a process to show that it answers */
};

/* The config is copied.  NULL: out of memory. */
struct heap_walk *heap_walk_start(uv_loop_t *loop, const struct heap_walk_config *config,
				  const struct heap_walk_events *events, void *ctx);
/* The session has been opened: time for the first walk runs from now on. */
void heap_walk_opened(struct heap_walk *w);
void heap_walk_push(struct heap_walk *w, const uint8_t *bytes, size_t len);
/* Objects of the walk that goes on, and which one that is; 0: none goes on. */
unsigned heap_walk_progress(const struct heap_walk *w, uint64_t *ret_objects);
/* No more callbacks; the memory goes later. */
void heap_walk_close(struct heap_walk *w);

/* --- for people, on standard error --- */

/* Each walk stops the process: that is said before.  more: behind it, or "". */
void heap_walk_announce(unsigned walks, const char *more);
void heap_walk_say(unsigned number, unsigned walks, const struct heap_walk_facts *facts);
/* Why there is no more of it; not for HEAP_WALK_DONE. */
const char *heap_walk_describe(enum heap_walk_why why);

#endif
