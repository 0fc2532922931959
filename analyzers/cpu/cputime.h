/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_CPU_CPUTIME_H
#define ANALYZERS_CPU_CPUTIME_H

/*
 * How much CPU each thread used, and when: measured outside the process, window by window, while
 * its trace was recorded, or read from the block behind the end of a trace.
 *
 * Times are those of the trace's clock (CLOCK_MONOTONIC, in ns).  A window in which a thread did
 * not run costs nothing.  Memory is bounded: when there is too much, two windows become one, for
 * all of them, so that old and new stay equally good; threads that ended long ago are forgotten
 * before those that live, and counted.
 */

#include "nettrace/nettrace.h"
#include "nettrace/trailer.h"

struct an_cputime;

enum { AN_CPUTIME_NAME = 16 }; /* the kernel's limit, with the NUL */

enum an_cputime_source {
	AN_CPUTIME_UNKNOWN,
	AN_CPUTIME_SCHEDSTAT, /* /proc/PID/task/TID/schedstat: ns */
	AN_CPUTIME_STAT, /* /proc/PID/task/TID/stat: ticks of usually 10 ms */
	AN_CPUTIME_PERF,
};

struct an_cputime *an_cputime_new(const struct nt_alloc *alloc); /* NULL: out of memory */
struct an_cputime *an_cputime_free(struct an_cputime *t); /* returns NULL; accepts NULL */

/* As it was when new. */
void an_cputime_clear(struct an_cputime *t);

/* --- feeding --- */

/* What the numbers are worth. */
struct an_cputime_info {
	enum an_cputime_source source;
	int64_t process_id; /* as in the trace; -1 unknown */
	uint64_t process_ns; /* of the whole process, with threads that nobody saw; see below */
	bool process_known;
	uint64_t cost_ns; /* CPU that measuring took */
};

void an_cputime_set_info(struct an_cputime *t, const struct an_cputime_info *info);
const struct an_cputime_info *an_cputime_borrow_info(const struct an_cputime *t);

/*
 * The next window; what an_cputime_use() says until the next one belongs to it.  Windows rise and
 * do not overlap: one that does not come behind the last is refused with NT_EFORMAT.
 */
NT_MUST_CHECK enum nt_status an_cputime_window(struct an_cputime *t, int64_t begin_ns,
					       int64_t end_ns);
/*
 * A thread that lives from then on, an earlier one with the same number notwithstanding.
 * *ret_index: for the functions below, until an_cputime_end(); AN_CPUTIME_NONE: there are too many,
 * it is only counted.
 */
#define AN_CPUTIME_NONE UINT32_MAX
NT_MUST_CHECK enum nt_status an_cputime_begin(struct an_cputime *t, uint64_t thread_id,
					      int64_t since_ns, uint32_t *ret_index);
/* It lived to the end of the window; what it used in it, and how long it was ready but had no CPU.
 */
NT_MUST_CHECK enum nt_status an_cputime_use(struct an_cputime *t, uint32_t index, uint64_t cpu_ns,
					    uint64_t ready_ns);
/* How it was found: name "" is none, state a letter as in /proc ('R', 'S', 'D'), 0 unknown. */
void an_cputime_look(struct an_cputime *t, uint32_t index, const char *name, char state);
void an_cputime_end(struct an_cputime *t, uint32_t index);

/* --- asking --- */

/*
 * CPU that a thread used from from_ns to to_ns, in proportion where these are not the ends of
 * windows; -1: not measured.
 */
int64_t an_cputime_used(const struct an_cputime *t, uint64_t thread_id, int64_t from_ns,
			int64_t to_ns);
/* Up to when everything is measured; INT64_MIN: nothing is. */
int64_t an_cputime_until(const struct an_cputime *t);
int64_t an_cputime_since(const struct an_cputime *t); /* INT64_MAX: nothing is */

struct an_cputime_thread {
	uint64_t thread_id;
	char name[AN_CPUTIME_NAME]; /* "" unknown */
	int64_t first_ns, last_ns; /* measured in between */
	uint64_t cpu_ns, ready_ns;
	char state; /* when it was last looked at; 0 unknown */
};

/* Threads, the newest last; NULL behind the last.  Forgotten places are empty: thread_id 0. */
const struct an_cputime_thread *an_cputime_borrow(const struct an_cputime *t, size_t i);
/* The latest thread of that number, or NULL. */
const struct an_cputime_thread *an_cputime_find(const struct an_cputime *t, uint64_t thread_id);

struct an_cputime_stats {
	size_t windows, threads;
	uint64_t merged; /* how often two windows were made one */
	uint64_t forgotten; /* threads */
	uint64_t forgotten_ns; /* CPU that they used */
	uint64_t crowded; /* threads that had no place */
};

void an_cputime_get_stats(const struct an_cputime *t, struct an_cputime_stats *ret);

/* --- cputime_trailer.c: the block behind the end of a trace --- */

/* Everything that was measured between these times. */
void an_cputime_save(const struct an_cputime *t, int64_t from_ns, int64_t to_ns,
		     struct nt_trailer *to);
/*
 * One record, if it is one of ours; others are skipped.  NT_EFORMAT: it makes no sense, and nothing
 * of it was taken that is not sound.
 */
NT_MUST_CHECK enum nt_status an_cputime_load(struct an_cputime *t,
					     const struct nt_trailer_record *r);

#endif
