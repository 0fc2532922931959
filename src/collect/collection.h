/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_COLLECTION_H
#define SRC_COLLECT_COLLECTION_H

/*
 * One process being recorded: its session, its file, its analysis.  Several run side by side on
 * one loop; whoever starts them decides what signals and terminals mean.
 *
 * A collection ends in two steps.  When its stream is over and its file complete it says so
 * (ended), from the loop.  Then collection_conclude() prints the report; that may block on a slow
 * reader, so it is not done while another collection still has to be drained.
 */

#include <uv.h>

#include "src/collect/collect.h"

struct collection;

struct collection_events {
	/* The runtime opened the session. */
	void (*started)(void *ctx, struct collection *c);
	/* Once and last: nothing more happens until collection_conclude(). */
	void (*ended)(void *ctx, struct collection *c);
};

/*
 * Opens the files and asks for the session.  settings and who must outlive the collection.
 * number: how many this run has started before.  NULL: said on standard error, EXIT_FAILED.
 */
struct collection *collection_start(uv_loop_t *loop, const struct collect_settings *settings,
				    const struct collect_subject *who, size_t number,
				    const struct collection_events *events, void *ctx);

/* Asks the runtime to end the session; more calls change nothing. */
void collection_stop(struct collection *c);
/* Takes what there is, without waiting for the runtime. */
void collection_abort(struct collection *c);

/* For the progress line, and for whoever wants to know. */
struct collection_state {
	bool started, stopping, ended;
	bool waiting; /* reading pauses, for the disk */
	uint64_t start_ns, stop_ns; /* uv_hrtime() */
	uint64_t bytes, events, lost;
	uint64_t rundown_bytes; /* since the stop */
	unsigned heap_walk; /* the walk of the heap that goes on; 0: none */
	uint64_t heap_objects; /* of it, so far */
};

void collection_get_state(const struct collection *c, struct collection_state *ret);
/* What should be said while the recording still goes on; false: nothing. */
bool collection_look(struct collection *c, struct an_live *ret);
const struct collect_subject *collection_borrow_subject(const struct collection *c);

/*
 * After ended: what came of it and the report; frees.  child: the command that was started, or
 * NULL.  Returns the exit code.
 */
int collection_conclude(struct collection *c, const struct analysis_child *child);

#endif
