/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_WAIT_FRAMES_H
#define ANALYZERS_WAIT_FRAMES_H

/*
 * Methods of the base library in which threads wait or spin, by runtime version: what a sample's
 * innermost frames say about the state of its thread (runtime-events.md §3.3).
 */

#include "analyzers/methods.h"

enum an_frame_kind {
	AN_FRAME_PLAIN,
	AN_FRAME_WAIT, /* waits when among the innermost frames */
	AN_FRAME_WAIT_LEAF, /* waits only as the innermost frame */
	AN_FRAME_SPIN, /* burns CPU without doing work */
	AN_FRAME_POLL, /* where a running thread is stopped: the work is its caller's */
	AN_FRAME_NATIVE, /* a call into native code: running or waiting, who knows */
};

/* How many of the innermost frames to look at: inlining removes some. */
enum { AN_WAIT_FRAMES = 4 };

enum an_frame_kind an_frame_kind_of(const struct an_method *m);

/* Frames in which a thread waits for a Task to end: sync over async. */
bool an_frame_waits_for_task(const struct an_method *m);

/* What a thread with this frame waits for, for people: "a semaphore"; NULL where it says nothing.
 */
const char *an_frame_waits_for(const struct an_method *m);

/* What a frame has to do with async methods. */
enum an_async_frame {
	AN_ASYNC_NONE,
	AN_ASYNC_BODY, /* the state machine of an async method (or of an iterator) */
	AN_ASYNC_CARRIER, /* the runtime's way from one async method into another */
	AN_ASYNC_RESUMER, /* ... by which one is carried on after an await */
};
enum an_async_frame an_frame_async(const struct an_method *m);

/* Part of the runtime's own libraries: System.*, Microsoft.*, Interop and stubs. */
bool an_frame_is_library(const struct an_method *m);

#endif
