/* SPDX-License-Identifier: MIT */

/*
 * What each thread is doing at the end: its newest stack, and for how long that has not changed.
 *
 * Not part of a report unless asked for: one row a thread is what a person wants of a process that
 * hangs, and nobody of a trace of an hour.
 */

#include "analyzers/grow.h"
#include "analyzers/thread_stacks_internal.h"
#include "nettrace/span.h"

enum {
	MAX_THREADS = 32 * 1024,
	SAMPLE = 0, /* id of the event */
	TYPE_MANAGED = 2,
	GONE_NS = 2 * 1000 * 1000 * 1000 - 1, /* not sampled for so long: most likely ended */
};

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
	an_open_waits_done(&a->t.waits);
	an_mem_free(al, a->t.threads);
	nt_idmap_done(&a->t.by_id);
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
	an_open_waits_init(&a->t.waits, shared->alloc);
	nt_idmap_init(&a->t.by_id, shared->alloc);
	return a;
}

static bool stacks_wants(const struct nt_event_def *def)
{
	if (def->provider_id == NT_PROV_SAMPLER)
		return def->event_id == SAMPLE;
	return an_thread_ids_wants(def) || an_open_waits_wants(def);
}

/* Forgets threads that are not sampled any more. */
static enum nt_status make_room(struct thread_stacks *t)
{
	size_t n = 0;
	enum nt_status st = NT_OK;

	for (size_t i = 0; i < t->count; i++)
		if (an_ns_between(t->threads[i].last_ns, t->last_ns) < GONE_NS)
			t->threads[n++] = t->threads[i];
	t->count = n;
	nt_idmap_clear(&t->by_id);
	for (size_t i = 0; i < n && st == NT_OK; i++)
		st = nt_idmap_put(&t->by_id, t->threads[i].id, (uint32_t)i);
	return st;
}

/* NULL in *ret when there is no room. */
static enum nt_status find(struct thread_stacks *t, const struct nt_event *ev,
			   struct sampled_thread **ret)
{
	size_t next = t->last + 1;
	struct sampled_thread *threads;
	uint32_t i;

	*ret = NULL;
	/* Samples come in rounds, the threads always in the same order. */
	if (next < t->count && t->threads[next].id == ev->thread_id) {
		t->last = next;
		*ret = &t->threads[next];
		return NT_OK;
	}
	i = nt_idmap_get(&t->by_id, ev->thread_id);
	if (i == NT_IDMAP_NONE) {
		if (t->count >= MAX_THREADS && !(t->dropped & 1023) && make_room(t) < 0)
			return NT_ENOMEM;
		if (t->count >= MAX_THREADS) {
			t->dropped++;
			return NT_OK;
		}
		threads = an_mem_grow(t->shared->alloc, t->threads, &t->cap, t->count + 1,
				      sizeof(*threads));
		if (!threads)
			return NT_ENOMEM;
		t->threads = threads;
		i = (uint32_t)t->count;
		if (nt_idmap_put(&t->by_id, ev->thread_id, i) < 0)
			return NT_ENOMEM;
		threads[t->count++] = (struct sampled_thread){
			.id = ev->thread_id,
			.first_ns = ev->time_ns,
			.node = UINT32_MAX,
		};
	}
	t->last = i;
	*ret = &t->threads[i];
	return NT_OK;
}

static bool in_managed_code(const struct nt_event *ev)
{
	struct nt_span s = nt_span_of(ev->payload, ev->payload_bytes);

	return nt_u32(&s) == TYPE_MANAGED;
}

static enum nt_status on_sample(struct thread_stacks *t, const struct nt_event *ev)
{
	struct sampled_thread *s = NULL;
	uint32_t node;
	enum nt_status st = an_calltree_intern(t->shared->tree, ev, &node);

	t->last_ns = ev->time_ns;
	if (st == NT_OK)
		st = find(t, ev, &s);
	if (st < 0 || !s)
		return st;
	if (s->node != node || an_ns_between(s->last_ns, ev->time_ns) > GONE_NS) {
		s->node = node;
		s->since_ns = ev->time_ns;
	}
	s->last_ns = ev->time_ns;
	s->samples++;
	s->managed = in_managed_code(ev);
	s->waits_by_event = an_open_waits_has(&t->waits, s->id, t->shared->lost);
	return NT_OK;
}

static enum nt_status stacks_event(struct analyzer *a, const struct nt_event *ev)
{
	struct thread_stacks *t = &a->t;

	if (ev->def->provider_id == NT_PROV_SAMPLER)
		return on_sample(t, ev);
	if (an_open_waits_wants(ev->def))
		return an_open_waits_event(&t->waits, ev, t->shared->lost);
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
