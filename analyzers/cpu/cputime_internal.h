/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_CPU_CPUTIME_INTERNAL_H
#define ANALYZERS_CPU_CPUTIME_INTERNAL_H

/* Inside of cputime.h: the table itself, for cputime.c, cputime_trailer.c and tests of limits. */

#include "analyzers/cpu/cputime.h"
#include "nettrace/idmap.h"

enum {
	CPUTIME_MAX_WINDOWS = 16 * 1024, /* 27 minutes of 100 ms */
	CPUTIME_MAX_SLICES = 512 * 1024, /* 8 MiB */
	CPUTIME_MAX_THREADS = 16 * 1024,
};

struct cputime_window {
	int64_t begin_ns, end_ns;
};

/* A thread ran in that window. */
struct cputime_slice {
	uint64_t cpu_ns;
	uint32_t ready_us; /* ready to run, but without a CPU */
	uint32_t window;
};

struct cputime_thread {
	struct an_cputime_thread seen;
	struct cputime_slice *slices; /* by window, rising */
	size_t count, cap;
	uint32_t older; /* another life of the same thread id; NT_IDMAP_NONE: none */
	bool used; /* false: an empty place */
	bool ended;
};

struct an_cputime {
	const struct nt_alloc *alloc;
	struct an_cputime_info info;
	struct cputime_window *windows;
	size_t window_count, window_cap;
	struct cputime_thread *threads;
	size_t count, cap; /* places */
	size_t used; /* of them */
	size_t next_free; /* no place before it is free */
	size_t slices; /* of all threads */
	struct nt_idmap by_id; /* thread id -> its latest life */
	uint64_t merged, forgotten, forgotten_ns, crowded;
	size_t max_windows, max_slices, max_threads;
	bool loaded; /* windows came from a file: */
	size_t file_windows; /* as many, */
	uint32_t file_shift; /* 2^shift of them are one of ours, or more since */
	uint64_t file_merged; /* merged was that */
};

/* Two windows become one, everywhere. */
void cputime_merge(struct an_cputime *t);
/* Behind what the thread has; a window rises or stays.  NT_ENOMEM. */
NT_MUST_CHECK enum nt_status cputime_add_slice(struct an_cputime *t, struct cputime_thread *th,
					       const struct cputime_slice *slice);

#endif
