/* SPDX-License-Identifier: MIT */

/*
 * What each thread is doing at the end: its newest stack, and for how long that has not changed.
 *
 * Not part of a report unless asked for: one row a thread is what a person wants of a process that
 * hangs, and nobody of a trace of an hour.
 */

#include "analyzers/grow.h"
#include "analyzers/threads/thread_stacks_internal.h"

struct analyzer {
	struct thread_stacks t;
};

static struct analyzer *stacks_free(struct analyzer *a)
{
	const struct nt_alloc *al;

	if (!a)
		return NULL;
	al = a->t.shared->alloc;
	an_thread_ids_done(&a->t.ids);
	an_last_samples_done(&a->t.samples);
	an_stacks_done(&a->t.stacks);
	an_mem_free(al, a);
	return NULL;
}

static struct analyzer *stacks_new(struct an_shared *shared)
{
	struct analyzer *a = an_mem_get(shared->alloc, sizeof(*a));

	if (!a)
		return NULL;
	a->t.shared = shared;
	an_thread_ids_init(&a->t.ids, shared->alloc);
	an_last_samples_init(&a->t.samples, shared);
	return a;
}

static bool stacks_wants(const struct nt_event_def *def)
{
	return an_thread_ids_wants(def) || an_last_samples_wants(def);
}

static enum nt_status stacks_event(struct analyzer *a, const struct nt_event *ev)
{
	struct thread_stacks *t = &a->t;

	if (an_last_samples_wants(ev->def))
		return an_last_samples_event(&t->samples, ev);
	return an_thread_ids_event(&t->ids, ev);
}

static enum nt_status report(struct analyzer *a, struct an_report *out)
{
	enum nt_status st = thread_stacks_report(&a->t, out);

	an_stacks_done(&a->t.stacks);
	return st;
}

static const struct an_provider providers[] = {
	{ "Microsoft-DotNETCore-SampleProfiler", 0, 4 },
	/* Contention; Threading */
	{ "Microsoft-Windows-DotNETRuntime", 0x4000 | 0x10000, 4 },
	{ 0 },
};

const struct an_class an_class_stacks = {
	.name = "stacks",
	.summary = "what each thread was doing at the end",
	.providers = providers,
	.wants = stacks_wants,
	.new = stacks_new,
	.event = stacks_event,
	.report = report,
	.free = stacks_free,
	.needs = AN_NEED_ORDER | AN_NEED_STACKS,
	.asked_only = true,
	.symptom = "the process hangs, or burns CPU, and nobody knows where",
	.cost = AN_COST_MODERATE,
	.seconds = 2,
	.params = an_params_rows,
};
