/* SPDX-License-Identifier: MIT */
#ifndef SRC_PROC_PROC_THREADS_H
#define SRC_PROC_PROC_THREADS_H

/*
 * The threads of a process as /proc has them: name, state, time on a processor.  Read twice, the
 * difference says what each used in between.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROC_THREADS_MAX = 65536, PROC_THREAD_NAME = 16 };

struct proc_thread {
	uint64_t id; /* as the process itself has it: in its own pid namespace */
	uint64_t start_ticks; /* tells two threads of one number apart */
	char name[PROC_THREAD_NAME];
	char state;
	uint64_t cpu_ns;
};

struct proc_threads {
	struct proc_thread *rows; /* by rising id */
	size_t count;
	bool cut; /* there are more than PROC_THREADS_MAX */
};

/* Threads that end meanwhile are left out.  False: nothing can be read, or out of memory. */
bool proc_threads_read(struct proc_threads *ret, const char *root, int32_t pid);
void proc_threads_done(struct proc_threads *t);
/* What a thread has used since before was read; all it ever used if it was not there. */
uint64_t proc_thread_cpu_since(const struct proc_thread *now, const struct proc_threads *before);

#endif
