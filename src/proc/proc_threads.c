/* SPDX-License-Identifier: MIT */
#include "src/proc/proc_threads.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/proc/proc.h"

enum { MAX_TEXT = 8192 };

void proc_threads_done(struct proc_threads *t)
{
	free(t->rows);
	*t = (struct proc_threads){ 0 };
}

static uint64_t ticks_to_ns(uint64_t ticks)
{
	long per_s = sysconf(_SC_CLK_TCK);
	uint64_t ns;

	if (per_s <= 0 ||
	    __builtin_mul_overflow(ticks, UINT64_C(1000000000) / (uint64_t)per_s, &ns))
		return 0;
	return ns;
}

/* Times in stat are in hundredths of a second; schedstat has nanoseconds. */
static uint64_t read_cpu_ns(const char *tasks, int32_t tid, uint64_t ticks)
{
	char *text = proc_read_file(tasks, tid, "schedstat", MAX_TEXT, NULL);
	uint64_t ns = text ? strtoull(text, NULL, 10) : 0;

	free(text);
	return ns ? ns : ticks_to_ns(ticks);
}

static bool read_one(struct proc_thread *ret, const char *tasks, int32_t tid, bool inner)
{
	struct proc_stat st;

	if (!proc_read_stat(tasks, tid, &st))
		return false;
	*ret = (struct proc_thread){
		.id = (uint64_t)(inner ? proc_read_ns_pid(tasks, tid) : tid),
		.start_ticks = st.start_ticks,
		.state = st.state,
		.cpu_ns = read_cpu_ns(tasks, tid, st.cpu_ticks),
	};
	snprintf(ret->name, sizeof(ret->name), "%.*s", PROC_THREAD_NAME - 1, st.comm);
	return true;
}

static int by_id(const void *a, const void *b)
{
	const struct proc_thread *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

bool proc_threads_read(struct proc_threads *ret, const char *root, int32_t pid)
{
	bool inner = proc_read_ns_pid(root, pid) != pid;
	size_t cap = 0;
	struct dirent *de;
	char path[PATH_MAX];
	DIR *dir;

	*ret = (struct proc_threads){ 0 };
	snprintf(path, sizeof(path), "%s/%" PRId32 "/task", root, pid);
	dir = opendir(path);
	if (!dir)
		return false;
	while ((de = readdir(dir)) != NULL) {
		long tid = strtol(de->d_name, NULL, 10);

		if (tid < 1 || tid > INT32_MAX)
			continue;
		if (ret->count == PROC_THREADS_MAX) {
			ret->cut = true;
			break;
		}
		if (ret->count == cap) {
			size_t want = cap ? cap * 2 : 64;
			struct proc_thread *more = reallocarray(ret->rows, want, sizeof(*more));

			if (!more) {
				closedir(dir);
				proc_threads_done(ret);
				return false;
			}
			ret->rows = more;
			cap = want;
		}
		if (read_one(&ret->rows[ret->count], path, (int32_t)tid, inner))
			ret->count++;
	}
	closedir(dir);
	if (ret->count > 1)
		qsort(ret->rows, ret->count, sizeof(*ret->rows), by_id);
	return ret->count > 0;
}

uint64_t proc_thread_cpu_since(const struct proc_thread *now, const struct proc_threads *before)
{
	const struct proc_thread *old =
		before->count ? bsearch(now, before->rows, before->count, sizeof(*now), by_id)
			      : NULL;

	if (!old || old->start_ticks != now->start_ticks || old->cpu_ns > now->cpu_ns)
		return now->cpu_ns;
	return now->cpu_ns - old->cpu_ns;
}
