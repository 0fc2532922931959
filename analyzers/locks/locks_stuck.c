/* SPDX-License-Identifier: MIT */

/*
 * Threads that stand at a lock since before anybody watched.
 *
 * No event tells of their waits, nor who owns the locks.  From .NET 10 on there are frames of the
 * lock.  Before, such a thread stands in a method of the program as if it ran; but it sleeps, its
 * innermost address never changes, and it uses no processor, which only the system knows
 * (runtime-events.md §8.4.4).
 */

#include <inttypes.h>

#include "analyzers/locks/locks_internal.h"
#include "analyzers/stacks.h"

#define SAMPLED_NS                                                                                 \
	(500 * UINT64_C(1000000)) /* a stuck thread was sampled so short before the end */
#define ASLEEP 0.5 /* of the limit is enough when the system says that it slept all the time */

enum { MAX_NAMED = 4, RUNTIME_10 = 10 };

/* It slept all the time, and never ran. */
static bool is_asleep(const struct locks *l, const struct lock_thread *t)
{
	const struct an_os_thread *os = an_find_os_thread(l->shared, t->id);

	return os && os->cpu_known && !os->cpu_ns && (os->state == 'S' || os->state == 'D');
}

enum lock_stuck lock_thread_is_stuck(const struct locks *l, const struct lock_thread *t)
{
	double limit = an_limit(l->shared, AN_LIMIT_LOCKS_SUSPECTED);
	double ms = (double)an_ns_between(t->first_sample_ns, t->last_sample_ns) / 1e6;
	bool asleep;

	if (!t->sampled || t->moved || t->contended || ms < ASLEEP * limit ||
	    an_ns_between(t->last_sample_ns, l->last_sample_ns) > SAMPLED_NS)
		return STUCK_NOT;
	asleep = is_asleep(l, t);
	if (an_stack_lock_frame(&l->stacks, t->node) != AN_LOCK_NO_FRAME)
		return asleep || ms >= limit ? STUCK_BY_FRAME : STUCK_NOT;
	if (asleep && l->shared->runtime_major && l->shared->runtime_major < RUNTIME_10 &&
	    an_stack_is_leaf_own(&l->stacks, t->node))
		return STUCK_ASLEEP;
	return STUCK_NOT;
}

/* The threads, and how one knows. */
struct found {
	const char *text;
	size_t count, asleep;
	uint64_t shortest_ns;
};

static void note(const struct locks *l, const struct lock_thread *t, struct found *f,
		 struct an_report *out)
{
	enum lock_stuck how = lock_thread_is_stuck(l, t);
	uint64_t ns = an_ns_between(t->first_sample_ns, t->last_sample_ns);
	const struct an_method *m;

	if (how == STUCK_NOT)
		return;
	if (ns < f->shortest_ns)
		f->shortest_ns = ns;
	f->asleep += how == STUCK_ASLEEP;
	if (f->count++ >= MAX_NAMED)
		return;
	m = an_stack_place(&l->stacks, t->node);
	f->text = an_report_printf(out, "%s%sthread %" PRIu64 " in %s", f->text,
				   f->count > 1 ? ", " : "", t->id,
				   m ? m->name : "code without a name");
}

void locks_check_stuck(const struct locks *l, struct an_report *out)
{
	struct found f = { .text = "", .shortest_ns = UINT64_MAX };

	for (size_t i = 0; i < l->thread_count; i++)
		note(l, &l->threads[i], &f, out);
	if (!f.count)
		return;
	f.text = an_report_printf(out, "%s%s; for %.1f s at least%s", f.text,
				  f.count > MAX_NAMED ? ", and more" : "",
				  (double)f.shortest_ns / 1e9,
				  f.asleep ? "; they sleep in these methods and use no processor: "
					     "before .NET 10 a lock has no frame, so it may also "
					     "be native code that they call"
					   : "");
	if (f.count > 1)
		an_add_finding(
			out, AN_WARNING, "locks.suspected-deadlock",
			an_report_printf(out,
					 f.asleep == f.count
						 ? "%zu threads stood still all the time, as "
						   "at locks"
						 : "%zu threads stood at locks all the time",
					 f.count),
			f.text,
			"They began to wait before the recording, and who owns a lock cannot be "
			"known after the fact. Two of them may wait for each other: compare which "
			"locks these methods take. Recording from before it happens gives proof.");
	else
		an_add_finding(out, AN_WARNING, "locks.blocked",
			       f.asleep ? "A thread stood still all the time, as at a lock"
					: "A thread stood at a lock all the time",
			       f.text,
			       "It began to wait before the recording, and who owns a lock cannot "
			       "be known after the fact. See which code takes this lock.");
}
