/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_COLLECT_FEED_H
#define SRC_COLLECT_COLLECT_FEED_H

/*
 * What brings processes to a run while it is going on: a port that runtimes connect to, a command
 * that was started, a look-out for processes that appear.  collect.c holds the run, each feed has
 * a file collect_NAME.c.
 */

#include "src/collect/collection.h"

struct collect; /* the run */

struct collect_feed {
	/* A stop was asked for: bring no more.  Once, before any close(). */
	void (*stop)(struct collect_feed *f);
	/* One of the run's collections has ended.  May be NULL. */
	void (*ended)(struct collect_feed *f, struct collection *item);
	/* Whether the run must go on although nothing is being recorded. */
	bool (*busy)(const struct collect_feed *f);
	/* How the command ended; NULL: there is none. */
	const struct analysis_child *(*child)(const struct collect_feed *f);
	/* Lets go of everything on the loop; nothing is recorded any more. */
	void (*close)(struct collect_feed *f);
	/* After the loop. */
	void (*free)(struct collect_feed *f);
};

/* --- for feeds; collect.c --- */

uv_loop_t *collect_loop(struct collect *c);
const struct collect_settings *collect_get_settings(const struct collect *c);
const struct collect_plan *collect_get_plan(const struct collect *c);

/*
 * Starts recording; who must live until free().  False when that failed, said, and the exit code
 * kept; or when the run is being stopped.
 */
bool collect_add(struct collect *c, const struct collect_subject *who);
size_t collect_active(const struct collect *c);
bool collect_is_stopping(const struct collect *c);
/* Something has changed: the run may be over. */
void collect_settle(struct collect *c);
/* What has been said on standard error means this exit code. */
void collect_failed(struct collect *c, int code);

/* NULL: said on standard error. */
struct collect_feed *collect_port_open(struct collect *c);
struct collect_feed *collect_watch_open(struct collect *c);

#endif
