/* SPDX-License-Identifier: MIT */

/* What each thread is doing, and the section "stacks". */

#include <stdlib.h>

#include "analyzers/grow.h"
#include "analyzers/spread.h"
#include "analyzers/threads/thread_stacks_internal.h"

#define MS	   UINT64_C(1000000)
#define GONE_NS	   (500 * MS) /* sampled last so long before the others: it has ended */
#define BUSY_SHARE 0.05 /* of the time on a processor */

enum {
	RUNTIME_9 = 9, /* says of no sample that it was in managed code */
	MAX_ROWS = 64 * 1024,
	MAX_FRAMES = 512,
	MAX_ALL_FRAMES = 2 * 1024 * 1024, /* of all threads; 100 MiB of text */
};

enum doing { DOING_RUNNING, DOING_READY, DOING_WAITING, DOING_STOPPED, DOING_UNKNOWN };

/* One thread: sampled, or known to the system, or both. */
struct row {
	const struct an_last_sample *sampled; /* NULL: no managed code on its stack */
	const struct an_os_thread *os; /* NULL: not known */
	const struct an_thread_id *id; /* NULL: not known */
	const struct an_value *lock; /* the lock it waits for, by events; NULL: none */
	uint64_t thread;
	bool own; /* the program's code is on its stack */
	enum doing doing;
	const char *waits_for; /* NULL: not known */
};

static const char *doing_name(enum doing d)
{
	static const char *const names[] = { "running", "ready", "waiting", "stopped", "unknown" };

	return names[d];
}

/* --- what it does --- */

static bool is_busy(const struct thread_stacks *t, const struct row *r)
{
	uint64_t watched = t->shared->input->watched_ns;

	return r->os && r->os->cpu_known && watched &&
	       (double)r->os->cpu_ns / (double)watched >= BUSY_SHARE;
}

static bool is_idle(const struct row *r)
{
	return r->os && r->os->cpu_known && !r->os->cpu_ns &&
	       (r->os->state == 'S' || r->os->state == 'D');
}

/* Only the stack tells, and what the runtime says of the place where it was stopped. */
static enum doing by_sample(const struct thread_stacks *t, const struct an_last_sample *s)
{
	bool managed = s->managed && t->shared->runtime_major != RUNTIME_9;

	if (s->waits_by_event)
		return DOING_WAITING;
	if (an_stack_waits(&t->stacks, s->node))
		return managed ? DOING_UNKNOWN : DOING_WAITING;
	return managed ? DOING_RUNNING : DOING_UNKNOWN;
}

static enum doing judge(const struct thread_stacks *t, const struct row *r)
{
	enum doing d = r->sampled ? by_sample(t, r->sampled) : DOING_UNKNOWN;

	if (!r->os)
		return d;
	if (r->os->state == 'T' || r->os->state == 't')
		return DOING_STOPPED;
	if (r->lock)
		return DOING_WAITING;
	if (d == DOING_WAITING && !(r->sampled->managed && is_busy(t, r)))
		return d;
	if (is_busy(t, r))
		return DOING_RUNNING;
	if (r->os->state == 'R')
		return r->os->cpu_known && !r->os->cpu_ns ? DOING_READY : DOING_RUNNING;
	if (is_idle(r))
		return DOING_WAITING;
	return d == DOING_UNKNOWN && r->os->state == 'S' ? DOING_WAITING : d;
}

/*
 * Before .NET 10 a thread at a lock has no frame of it: it sleeps in code that has no reason to.
 */
static const char *find_reason(const struct thread_stacks *t, const struct row *r)
{
	const char *what;

	if (r->lock)
		return "a lock";
	if (!r->sampled || r->doing != DOING_WAITING)
		return NULL;
	what = an_stack_waits_for(&t->stacks, r->sampled->node);
	if (!what && an_stack_is_leaf_own(&t->stacks, r->sampled->node))
		return "a lock, or native code";
	return what;
}

/* Section "locks" has who waits for a lock when the recording ends. */
static enum nt_status find_locks(const struct thread_stacks *t, struct row *rows, size_t n,
				 const struct an_report *out)
{
	const struct an_value *list = an_get(an_report_borrow_root(out), "locks.waiting");
	const struct an_value *v = list && list->kind == AN_ARRAY ? list->first : NULL;
	struct nt_idmap by_thread;
	enum nt_status st = NT_OK;

	nt_idmap_init(&by_thread, t->shared->alloc);
	for (size_t i = 0; v && i < n && st == NT_OK; i++)
		st = nt_idmap_put(&by_thread, rows[i].thread, (uint32_t)i);
	for (; v && st == NT_OK; v = v->next) {
		uint32_t i = nt_idmap_get(&by_thread, an_get_u64(v, "thread_id", 0));

		if (i != NT_IDMAP_NONE)
			rows[i].lock = v;
	}
	nt_idmap_done(&by_thread);
	return st;
}

static void complete(const struct thread_stacks *t, struct row *r)
{
	r->id = an_thread_by_os(&t->ids, r->thread);
	r->own = r->sampled && an_stack_is_own(&t->stacks, r->sampled->node);
	r->doing = judge(t, r);
	r->waits_for = find_reason(t, r);
}

/* --- the section --- */

static void add_uint_or_null(struct an_value *v, const char *name, uint64_t n)
{
	if (n)
		an_add_uint(v, name, n);
	else
		an_add_null(v, name);
}

static const char *name_of(const struct row *r)
{
	if (r->os && *r->os->name)
		return r->os->name;
	if (r->id && r->id->flags & AN_THREAD_FINALIZER)
		return "finalizer";
	if (r->id && r->id->flags & AN_THREAD_GC)
		return "collector";
	if (r->id && r->id->flags & AN_THREAD_POOL)
		return "pool worker";
	return NULL;
}

static void add_lock(const struct row *r, struct an_value *v)
{
	const char *lock = an_get_text(r->lock, "lock", NULL);

	if (!r->lock)
		return;
	if (lock)
		an_add_text(v, "lock", lock);
	else
		an_add_null(v, "lock");
	add_uint_or_null(v, "owner_thread_id", an_get_u64(r->lock, "owner_thread_id", 0));
	add_uint_or_null(v, "owner_managed_id", an_get_u64(r->lock, "owner_managed_id", 0));
}

static void add_row(const struct thread_stacks *t, const struct row *r, size_t *frames,
		    struct an_value *list)
{
	struct an_value *v = an_add_object(list, NULL);
	const char *name = name_of(r);
	size_t max = MAX_ALL_FRAMES - *frames < MAX_FRAMES ? MAX_ALL_FRAMES - *frames : MAX_FRAMES;

	an_add_uint(v, "thread_id", r->thread);
	add_uint_or_null(v, "managed_id", r->id ? r->id->managed : 0);
	if (name)
		an_add_text(v, "name", name);
	else
		an_add_null(v, "name");
	an_add_text(v, "state", doing_name(r->doing));
	if (r->waits_for)
		an_add_text(v, "waiting_on", r->waits_for);
	else
		an_add_null(v, "waiting_on");
	add_lock(r, v);
	if (r->os && r->os->cpu_known)
		an_add_ms(v, "cpu_ms", r->os->cpu_ns);
	else
		an_add_null(v, "cpu_ms");
	an_add_bool(v, "managed", r->sampled != NULL);
	an_add_bool(v, "own_code", r->own);
	if (!r->sampled) {
		an_add_null(v, "unchanged_ms");
		an_add_array(v, "frames");
		return;
	}
	an_add_ms(v, "unchanged_ms", an_ns_between(r->sampled->since_ns, r->sampled->last_ns));
	an_stack_add(&t->stacks, r->sampled->node, max, v, "frames");
	*frames += an_get(v, "frames") ? an_get(v, "frames")->count : 0;
}

static int compare(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (!x->sampled != !y->sampled)
		return x->sampled ? -1 : 1;
	if (x->own != y->own)
		return x->own ? -1 : 1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

/* Those that were sampled and have not ended, then those that only the system knows. */
static size_t collect(const struct thread_stacks *t, struct row *rows)
{
	const struct an_input *in = t->shared->input;
	size_t n = 0;

	for (size_t i = 0; i < t->samples.count; i++) {
		const struct an_last_sample *s = &t->samples.rows[i];
		const struct an_thread_id *id = an_thread_by_os(&t->ids, s->id);
		const struct an_os_thread *os = an_find_os_thread(t->shared, s->id);

		if (in->threads ? !os
				: (id && id->ended) ||
					  an_ns_between(s->last_ns, t->samples.last_ns) > GONE_NS)
			continue;
		rows[n++] = (struct row){ .sampled = s, .os = os, .thread = s->id };
	}
	for (size_t i = 0; i < in->thread_count && n < MAX_ROWS; i++)
		if (nt_idmap_get(&t->samples.by_id, in->threads[i].id) == NT_IDMAP_NONE)
			rows[n++] =
				(struct row){ .os = &in->threads[i], .thread = in->threads[i].id };
	return n;
}

enum nt_status thread_stacks_report(struct thread_stacks *t, struct an_report *out)
{
	const struct nt_alloc *al = t->shared->alloc;
	struct an_value *list;
	struct row *rows;
	size_t n, frames = 0;
	enum nt_status st = an_stacks_init(&t->stacks, t->shared);

	if (st < 0)
		return st;
	rows = an_mem_array(al, t->samples.count + t->shared->input->thread_count, sizeof(*rows));
	if (!rows)
		return NT_ENOMEM;
	n = collect(t, rows);
	st = find_locks(t, rows, n, out);
	for (size_t i = 0; i < n; i++)
		complete(t, &rows[i]);
	if (n)
		qsort(rows, n, sizeof(*rows), compare);
	list = an_add_array(an_report_root(out), "stacks");
	for (size_t i = 0; i < n; i++)
		add_row(t, &rows[i], &frames, list);
	an_mem_free(al, rows);
	return st;
}
