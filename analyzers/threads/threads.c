/* SPDX-License-Identifier: MIT */

/*
 * Threads: how many come and go, and which were started and forgotten.
 *
 * Ends of threads are announced by the address of their Thread object, so a thread is followed
 * through three kinds of ids (thread_ids.h).  What it does is known from samples only.
 */

#include "analyzers/grow.h"
#include "analyzers/threads/threads_internal.h"

enum {
	CREATING = 70, /* id of an event, with the stack of who starts it */
	FIELDS = 4,
};

struct analyzer {
	struct threads t;
};

static struct analyzer *threads_free(struct analyzer *a)
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

static struct analyzer *threads_new(struct an_shared *shared)
{
	struct analyzer *a = an_mem_get(shared->alloc, sizeof(*a));

	if (!a)
		return NULL;
	a->t.shared = shared;
	an_thread_ids_init(&a->t.ids, shared->alloc);
	an_last_samples_init(&a->t.samples, shared);
	return a;
}

static bool threads_wants(const struct nt_event_def *def)
{
	return an_thread_ids_wants(def) || an_last_samples_wants(def) ||
	       (def->provider_id == NT_PROV_RUNTIME && def->event_id == CREATING);
}

static enum nt_status on_creating(struct threads *t, const struct nt_event *ev)
{
	struct nt_value v[FIELDS];
	size_t n = nt_payload_read(ev, v, FIELDS, NULL);
	uint64_t object = nt_value_u64(v, n, "ID", 0);
	uint32_t node;
	enum nt_status st = an_calltree_intern(t->shared->tree, ev, &node);

	if (st < 0 || !object)
		return st;
	return an_thread_ids_starts(&t->ids, object, node);
}

static enum nt_status threads_event(struct analyzer *a, const struct nt_event *ev)
{
	struct threads *t = &a->t;

	if (an_last_samples_wants(ev->def))
		return an_last_samples_event(&t->samples, ev);
	if (ev->def->provider_id == NT_PROV_RUNTIME)
		t->recorded = true;
	if (ev->def->event_id == CREATING)
		return on_creating(t, ev);
	return an_thread_ids_event(&t->ids, ev);
}

static enum nt_status report(struct analyzer *a, struct an_report *out)
{
	enum nt_status st = threads_report(&a->t, out);

	an_stacks_done(&a->t.stacks);
	return st;
}

static const struct an_provider providers[] = {
	{ "Microsoft-DotNETCore-SampleProfiler", 0, 4 },
	/* Threading */
	{ "Microsoft-Windows-DotNETRuntime", 0x10000, 4 },
	{ 0 },
};

const struct an_class an_class_threads = {
	.name = "threads",
	.summary = "threads that come and go, threads that were started and forgotten",
	.providers = providers,
	.wants = threads_wants,
	.new = threads_new,
	.event = threads_event,
	.report = report,
	.free = threads_free,
	.needs = AN_NEED_ORDER | AN_NEED_STACKS,
	.symptom = "the number of threads grows",
	.cost = AN_COST_MODERATE,
	.seconds = 120,
	.params = an_params_rows,
};
