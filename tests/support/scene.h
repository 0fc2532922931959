/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_SCENE_H
#define TESTS_SUPPORT_SCENE_H

/*
 * Threads, locks and a thread pool to play (play.h), for tests of the analyzers of waiting.
 *
 *	struct scene s;
 *	scene_begin(&s, NULL);
 *	play_stack(&s.play, 1, scene_code(&s, "Shop.Till", "Open"));
 *	scene_lock_start(&s, 7, 100, 0x1000, 8);	7 waits from 100 ms on; 8 has the lock
 *	scene_end(&s, 10, 3000);			.NET 10; the recording ends after 3 s
 *	assert_true(play_finds(&s.play, "locks.blocked"));
 *	play_end(&s.play);
 */

#include "tests/support/play.h"

struct scene {
	struct play play; /* classes trace, locks, threadpool, threads, stacks */
	uint64_t code; /* where the next method goes */
};

/* False when out of memory. */
bool scene_begin(struct scene *s, const struct nt_alloc *alloc);
/* The same with options. */
bool scene_begin_with(struct scene *s, const struct nt_alloc *alloc,
		      const struct an_options *options);
/* A new method; returns an address in it. */
uint64_t scene_code(struct scene *s, const char *type, const char *name);

void scene_lock_start(struct scene *s, uint64_t thread, double ms, uint64_t lock, uint64_t owner);
void scene_lock_stop(struct scene *s, uint64_t thread, double ms, double duration_ms);
void scene_wait_start(struct scene *s, uint64_t thread, double ms);
void scene_wait_stop(struct scene *s, uint64_t thread, double ms);
void scene_thread_created(struct scene *s, uint64_t os, uint32_t managed, uint32_t flags,
			  double ms);
/* Of the rundown at the end. */
void scene_thread_alive(struct scene *s, uint64_t os, uint32_t managed, double ms);
void scene_thread_ended(struct scene *s, uint64_t os, double ms);
/* What the thread is about to be created by: the current stack. */
void scene_thread_creating(struct scene *s, uint64_t os, double ms);
void scene_adjustment(struct scene *s, double ms, uint32_t workers, uint32_t reason);
void scene_min_max(struct scene *s, double ms, unsigned min_workers, unsigned max_workers);
/* Events of worker threads, by id: 50, 51 or 57. */
void scene_worker(struct scene *s, uint32_t id, double ms, uint32_t active);
void scene_task_queued(struct scene *s, double ms, uint32_t task, uint32_t options);
void scene_task_started(struct scene *s, double ms, uint32_t task);
void scene_lost(struct scene *s, uint64_t count);

/* The session is stopped: the rundown begins, names the runtime's version (0: not) and ends. */
void scene_end(struct scene *s, unsigned major, double ms);

/* --- the report; all fail the test when it is not as they say --- */

double scene_number(struct scene *s, const char *path); /* there, and not null */
void scene_is_null(struct scene *s, const char *path);
size_t scene_count(struct scene *s, const char *path); /* elements of an array */
/* No finding about locks, threads or the thread pool. */
void scene_is_silent(struct scene *s);
/* Of a finding; "" when there is none. */
const char *scene_severity(struct scene *s, const char *id);
/* Ends the play; everything must have gone well. */
void scene_done(struct scene *s);

#endif
