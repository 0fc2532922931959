/* SPDX-License-Identifier: MIT */
#include "analyzers/cpu/cputime.h"

#include <stdio.h>
#include <stdlib.h>

#include "analyzers/cpu/cputime_internal.h"
#include "analyzers/grow.h"
#include "nettrace/idmap.h"

static void set_up(struct an_cputime *t, const struct nt_alloc *alloc)
{
	*t = (struct an_cputime){
		.alloc = alloc,
		.info = { .process_id = -1 },
		.max_windows = CPUTIME_MAX_WINDOWS,
		.max_slices = CPUTIME_MAX_SLICES,
		.max_threads = CPUTIME_MAX_THREADS,
	};
	nt_idmap_init(&t->by_id, alloc);
}

struct an_cputime *an_cputime_new(const struct nt_alloc *alloc)
{
	struct an_cputime *t = an_mem_get(alloc, sizeof(*t));

	if (t)
		set_up(t, alloc);
	return t;
}

void an_cputime_clear(struct an_cputime *t)
{
	for (size_t i = 0; i < t->count; i++)
		an_mem_free(t->alloc, t->threads[i].slices);
	an_mem_free(t->alloc, t->threads);
	an_mem_free(t->alloc, t->windows);
	nt_idmap_done(&t->by_id);
	set_up(t, t->alloc);
}

struct an_cputime *an_cputime_free(struct an_cputime *t)
{
	if (!t)
		return NULL;
	an_cputime_clear(t);
	an_mem_free(t->alloc, t);
	return NULL;
}

void an_cputime_set_info(struct an_cputime *t, const struct an_cputime_info *info)
{
	t->info = *info;
}

const struct an_cputime_info *an_cputime_borrow_info(const struct an_cputime *t)
{
	return &t->info;
}

/* --- too much of it --- */

static void add_up(struct cputime_slice *to, const struct cputime_slice *s)
{
	to->cpu_ns += s->cpu_ns;
	if (__builtin_add_overflow(to->ready_us, s->ready_us, &to->ready_us))
		to->ready_us = UINT32_MAX;
}

/* Two neighbours become one. */
static void merge_slices(struct cputime_thread *th)
{
	size_t to = 0;

	for (size_t i = 0; i < th->count; i++) {
		struct cputime_slice s = th->slices[i];

		s.window /= 2;
		if (to > 0 && th->slices[to - 1].window == s.window)
			add_up(&th->slices[to - 1], &s);
		else
			th->slices[to++] = s;
	}
	th->count = to;
}

/* The time between two windows becomes part of the one that they are merged into. */
void cputime_merge(struct an_cputime *t)
{
	size_t to = 0;

	t->slices = 0;
	for (size_t i = 0; i < t->window_count; i += 2) {
		struct cputime_window w = t->windows[i];

		if (i + 1 < t->window_count)
			w.end_ns = t->windows[i + 1].end_ns;
		t->windows[to++] = w;
	}
	t->window_count = to;
	for (size_t i = 0; i < t->count; i++) {
		merge_slices(&t->threads[i]);
		t->slices += t->threads[i].count;
	}
	t->merged++;
}

static int by_end(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The map knows the threads that are left. */
static enum nt_status map_again(struct an_cputime *t)
{
	enum nt_status st = NT_OK;

	nt_idmap_clear(&t->by_id);
	for (size_t i = 0; i < t->count && st == NT_OK; i++) {
		struct cputime_thread *th = &t->threads[i];

		if (!th->used)
			continue;
		th->older = nt_idmap_get(&t->by_id, th->seen.thread_id);
		st = nt_idmap_put(&t->by_id, th->seen.thread_id, (uint32_t)i);
	}
	return st;
}

static void forget(struct an_cputime *t, struct cputime_thread *th)
{
	t->forgotten++;
	t->forgotten_ns += th->seen.cpu_ns;
	t->slices -= th->count;
	an_mem_free(t->alloc, th->slices);
	*th = (struct cputime_thread){ 0 };
	t->used--;
}

/* The older half of those that have ended. */
static enum nt_status forget_old(struct an_cputime *t)
{
	int64_t *ends = an_mem_array(t->alloc, t->count, sizeof(*ends)), limit;
	size_t n = 0;

	if (!ends)
		return NT_ENOMEM;
	for (size_t i = 0; i < t->count; i++)
		if (t->threads[i].used && t->threads[i].ended)
			ends[n++] = t->threads[i].seen.last_ns;
	if (n > 0) {
		qsort(ends, n, sizeof(*ends), by_end);
		limit = ends[n / 2];
		for (size_t i = 0; i < t->count; i++)
			if (t->threads[i].used && t->threads[i].ended &&
			    t->threads[i].seen.last_ns <= limit)
				forget(t, &t->threads[i]);
	}
	an_mem_free(t->alloc, ends);
	t->next_free = 0;
	return n > 0 ? map_again(t) : NT_OK;
}

/* --- feeding --- */

enum nt_status an_cputime_window(struct an_cputime *t, int64_t begin_ns, int64_t end_ns)
{
	struct cputime_window *windows;

	if (begin_ns >= end_ns || begin_ns < -NT_TIME_MAX_NS || end_ns > NT_TIME_MAX_NS ||
	    begin_ns < an_cputime_until(t))
		return NT_EFORMAT;
	while (t->window_count >= t->max_windows)
		cputime_merge(t);
	windows = an_mem_grow(t->alloc, t->windows, &t->window_cap, t->window_count + 1,
			      sizeof(*windows));
	if (!windows)
		return NT_ENOMEM;
	t->windows = windows;
	windows[t->window_count++] = (struct cputime_window){ begin_ns, end_ns };
	return NT_OK;
}

/* A place for a thread, or AN_CPUTIME_NONE. */
static enum nt_status find_place(struct an_cputime *t, uint32_t *ret)
{
	struct cputime_thread *threads;
	enum nt_status st = t->used >= t->max_threads ? forget_old(t) : NT_OK;

	*ret = AN_CPUTIME_NONE;
	if (st < 0 || t->used >= t->max_threads)
		return st;
	if (t->used < t->count) {
		while (t->threads[t->next_free].used)
			t->next_free++;
		*ret = (uint32_t)t->next_free;
		return NT_OK;
	}
	threads = an_mem_grow(t->alloc, t->threads, &t->cap, t->count + 1, sizeof(*threads));
	if (!threads)
		return NT_ENOMEM;
	t->threads = threads;
	*ret = (uint32_t)t->count++;
	return NT_OK;
}

enum nt_status an_cputime_begin(struct an_cputime *t, uint64_t thread_id, int64_t since_ns,
				uint32_t *ret_index)
{
	struct cputime_thread *th;
	enum nt_status st = find_place(t, ret_index);

	if (st < 0)
		return st;
	if (*ret_index == AN_CPUTIME_NONE) {
		t->crowded++;
		return NT_OK;
	}
	th = &t->threads[*ret_index];
	*th = (struct cputime_thread){
		.used = true,
		.older = nt_idmap_get(&t->by_id, thread_id),
		.seen = { .thread_id = thread_id, .first_ns = since_ns, .last_ns = since_ns },
	};
	t->used++;
	if (nt_idmap_put(&t->by_id, thread_id, *ret_index) < 0) {
		*th = (struct cputime_thread){ 0 };
		t->used--;
		t->next_free = 0;
		return NT_ENOMEM;
	}
	return NT_OK;
}

static struct cputime_thread *at(struct an_cputime *t, uint32_t index)
{
	return index < t->count && t->threads[index].used ? &t->threads[index] : NULL;
}

enum nt_status cputime_add_slice(struct an_cputime *t, struct cputime_thread *th,
				 const struct cputime_slice *slice)
{
	struct cputime_slice *s = th->count ? &th->slices[th->count - 1] : NULL;

	th->seen.cpu_ns += slice->cpu_ns;
	th->seen.ready_ns += slice->ready_us * UINT64_C(1000);
	if (s && s->window == slice->window) {
		add_up(s, slice);
		return NT_OK;
	}
	s = an_mem_grow(t->alloc, th->slices, &th->cap, th->count + 1, sizeof(*s));
	if (!s)
		return NT_ENOMEM;
	th->slices = s;
	s[th->count++] = *slice;
	t->slices++;
	return NT_OK;
}

enum nt_status an_cputime_use(struct an_cputime *t, uint32_t index, uint64_t cpu_ns,
			      uint64_t ready_ns)
{
	struct cputime_thread *th = at(t, index);
	struct cputime_slice s = { .cpu_ns = cpu_ns };

	if (!th || !t->window_count)
		return NT_OK;
	while (t->slices >= t->max_slices && t->window_count > 1)
		cputime_merge(t);
	th->seen.last_ns = t->windows[t->window_count - 1].end_ns;
	s.window = (uint32_t)t->window_count - 1;
	s.ready_us = ready_ns / 1000 < UINT32_MAX ? (uint32_t)(ready_ns / 1000) : UINT32_MAX;
	return s.cpu_ns || s.ready_us ? cputime_add_slice(t, th, &s) : NT_OK;
}

void an_cputime_look(struct an_cputime *t, uint32_t index, const char *name, char state)
{
	struct cputime_thread *th = at(t, index);

	if (!th)
		return;
	if (*name)
		snprintf(th->seen.name, sizeof(th->seen.name), "%s", name);
	th->seen.state = state;
}

void an_cputime_end(struct an_cputime *t, uint32_t index)
{
	struct cputime_thread *th = at(t, index);

	if (th)
		th->ended = true;
}

/* --- asking --- */

int64_t an_cputime_until(const struct an_cputime *t)
{
	return t->window_count ? t->windows[t->window_count - 1].end_ns : INT64_MIN;
}

int64_t an_cputime_since(const struct an_cputime *t)
{
	return t->window_count ? t->windows[0].begin_ns : INT64_MAX;
}

/* The first slice whose window ends after that time. */
static size_t first_slice(const struct an_cputime *t, const struct cputime_thread *th,
			  int64_t time_ns)
{
	size_t low = 0, high = th->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->windows[th->slices[mid].window].end_ns <= time_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int64_t overlap(int64_t a, int64_t b, int64_t from, int64_t to)
{
	int64_t begin = a > from ? a : from, end = b < to ? b : to;

	return end > begin ? end - begin : 0;
}

/* The life of that thread id which has most of the time. */
static const struct cputime_thread *alive(const struct an_cputime *t, uint64_t thread_id,
					  int64_t from, int64_t to, int64_t *ret_covered)
{
	enum { MAX_LIVES = 64 };
	const struct cputime_thread *best = NULL;
	uint32_t i = nt_idmap_get(&t->by_id, thread_id);

	*ret_covered = 0;
	for (int n = 0; i != NT_IDMAP_NONE && n < MAX_LIVES; n++) {
		const struct cputime_thread *th = &t->threads[i];
		int64_t covered = overlap(th->seen.first_ns, th->seen.last_ns, from, to);

		if (covered > *ret_covered) {
			*ret_covered = covered;
			best = th;
		}
		i = th->older;
	}
	return best;
}

int64_t an_cputime_used(const struct an_cputime *t, uint64_t thread_id, int64_t from_ns,
			int64_t to_ns)
{
	const struct cputime_thread *th;
	int64_t covered;
	double used = 0;

	if (from_ns >= to_ns || from_ns < -NT_TIME_MAX_NS || to_ns > NT_TIME_MAX_NS)
		return -1;
	th = alive(t, thread_id, from_ns, to_ns, &covered);
	if (!th || covered < (to_ns - from_ns) / 2)
		return -1;
	for (size_t i = first_slice(t, th, from_ns); i < th->count; i++) {
		const struct cputime_slice *s = &th->slices[i];
		const struct cputime_window *w = &t->windows[s->window];

		if (w->begin_ns >= to_ns)
			break;
		used += (double)s->cpu_ns *
			(double)overlap(w->begin_ns, w->end_ns, from_ns, to_ns) /
			(double)(w->end_ns - w->begin_ns);
	}
	used = used * (double)(to_ns - from_ns) / (double)covered;
	return used < (double)NT_TIME_MAX_NS ? (int64_t)(used + 0.5) : NT_TIME_MAX_NS;
}

const struct an_cputime_thread *an_cputime_borrow(const struct an_cputime *t, size_t i)
{
	return i < t->count ? &t->threads[i].seen : NULL;
}

const struct an_cputime_thread *an_cputime_find(const struct an_cputime *t, uint64_t thread_id)
{
	uint32_t i = nt_idmap_get(&t->by_id, thread_id);

	return i == NT_IDMAP_NONE ? NULL : &t->threads[i].seen;
}

void an_cputime_get_stats(const struct an_cputime *t, struct an_cputime_stats *ret)
{
	*ret = (struct an_cputime_stats){
		.windows = t->window_count,
		.threads = t->used,
		.merged = t->merged,
		.forgotten = t->forgotten,
		.forgotten_ns = t->forgotten_ns,
		.crowded = t->crowded,
	};
}
