/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_THREAD_IDS_H
#define ANALYZERS_THREAD_IDS_H

/*
 * A thread's names: what the OS calls it, its managed id, and the address of the runtime's Thread
 * object, by which its end is announced.  From ThreadCreated, ThreadTerminated and the rundown of
 * threads (runtime-events.md §2.10).
 *
 * Each kind of id is used again after a thread has ended; the newest user counts.
 */

#include "nettrace/idmap.h"
#include "nettrace/nettrace.h"

enum an_thread_flags { AN_THREAD_GC = 1, AN_THREAD_FINALIZER = 2, AN_THREAD_POOL = 4 };

struct an_thread_id {
	uint64_t os, object;
	uint64_t managed; /* 0: not known */
	uint32_t flags;
	uint32_t creator; /* node of the stack that started it, or AN_NODE_NONE */
	int64_t created_ns, ended_ns;
	bool created, ended; /* in the session, see the times */
	bool at_end; /* the rundown has it */
};

struct an_thread_ids {
	const struct nt_alloc *alloc;
	struct an_thread_id *rows;
	size_t count, cap;
	struct nt_idmap by_os, by_managed, by_object;
	uint64_t created, ended; /* events */
	uint64_t at_end; /* threads of the rundown */
	uint64_t dropped; /* threads that found no room */
	uint64_t retry_at; /* dropped: not before is it worth looking for ended threads again */
};

void an_thread_ids_init(struct an_thread_ids *t, const struct nt_alloc *alloc);
void an_thread_ids_done(struct an_thread_ids *t);
bool an_thread_ids_wants(const struct nt_event_def *def);
/* Acts on the events above, ignores others.  creator: see struct an_thread_id. */
NT_MUST_CHECK enum nt_status an_thread_ids_event(struct an_thread_ids *t,
						 const struct nt_event *ev);
/* A stack has started the thread whose object that is. */
NT_MUST_CHECK enum nt_status an_thread_ids_starts(struct an_thread_ids *t, uint64_t object,
						  uint32_t creator);

/* NULL when not known.  Dead at the next event. */
const struct an_thread_id *an_thread_by_os(const struct an_thread_ids *t, uint64_t os);
const struct an_thread_id *an_thread_by_managed(const struct an_thread_ids *t, uint64_t managed);

#endif
