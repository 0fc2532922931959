/* SPDX-License-Identifier: MIT */
#include "src/proc_threads.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/proc.h"

enum { MAX_TEXT = 8192 };

void proc_threads_done(struct proc_threads *t)
{
	free(t->rows);
	*t = (struct proc_threads){ 0 };
}

/* The n-th word (from 1) of what stands behind the name in parentheses, as a number. */
static uint64_t word(const char *rest, unsigned n)
{
	while (n-- > 1) {
		rest = strchr(rest, ' ');
		if (!rest)
			return 0;
		rest++;
	}
	return strtoull(rest, NULL, 10);
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

/* Times in /proc/PID/task/TID/stat are in hundredths of a second; schedstat has nanoseconds. */
static uint64_t read_cpu_ns(const char *root, int32_t pid, const char *task, const char *rest)
{
	enum { UTIME = 12, STIME = 13 };
	char name[64], *text;
	uint64_t ns = 0;

	snprintf(name, sizeof(name), "task/%s/schedstat", task);
	text = proc_read_file(root, pid, name, MAX_TEXT, NULL);
	if (text)
		ns = strtoull(text, NULL, 10);
	free(text);
	return ns ? ns : ticks_to_ns(word(rest, UTIME) + word(rest, STIME));
}

static uint64_t read_inner_id(const char *root, int32_t pid, const char *task, uint64_t dflt)
{
	char name[64], *text;
	int32_t id;

	snprintf(name, sizeof(name), "task/%s/status", task);
	text = proc_read_file(root, pid, name, MAX_TEXT, NULL);
	id = text ? proc_find_ns_pid(text, 0) : 0;
	free(text);
	return id ? (uint64_t)id : dflt;
}

static bool read_one(struct proc_thread *ret, const char *root, int32_t pid, const char *task,
		     bool inner)
{
	enum { START_TIME = 20 };
	char name[64], *text, *open, *close;

	snprintf(name, sizeof(name), "task/%s/stat", task);
	text = proc_read_file(root, pid, name, MAX_TEXT, NULL);
	open = text ? strchr(text, '(') : NULL;
	close = text ? strrchr(text, ')') : NULL; /* a name may hold any character */
	if (!open || !close || close < open || close[1] != ' ' || !close[2]) {
		free(text);
		return false;
	}
	*close = '\0';
	*ret = (struct proc_thread){
		.id = strtoull(task, NULL, 10),
		.start_ticks = word(close + 2, START_TIME),
		.state = close[2],
		.cpu_ns = read_cpu_ns(root, pid, task, close + 2),
	};
	snprintf(ret->name, sizeof(ret->name), "%s", open + 1);
	free(text);
	if (inner)
		ret->id = read_inner_id(root, pid, task, ret->id);
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
		if (de->d_name[0] < '1' || de->d_name[0] > '9' || strlen(de->d_name) > 20)
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
		if (read_one(&ret->rows[ret->count], root, pid, de->d_name, inner))
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
