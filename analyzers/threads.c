/* SPDX-License-Identifier: MIT */

/*
 * Threads: how many come and go, and which were started and forgotten.
 *
 * Ends of threads are announced by the address of their Thread object, so a thread is followed
 * through three kinds of ids (thread_ids.h).  What it does is known from samples only.
 */

#include "analyzers/grow.h"
#include "analyzers/threads_internal.h"

enum {
	MAX_THREADS = 32 * 1024,
	SAMPLE = 0, /* ids of events */
	CREATING = 70, /* with the stack of who starts it */
	FIELDS = 4,
	GONE_NS = 2 * 1000 * 1000 * 1000 - 1, /* not sampled for so long: most likely ended */
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
	an_open_waits_done(&a->t.waits);
	an_mem_free(al, a->t.seen);
	nt_idmap_done(&a->t.by_id);
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
	an_open_waits_init(&a->t.waits, shared->alloc);
	nt_idmap_init(&a->t.by_id, shared->alloc);
	return a;
}

static bool threads_wants(const struct nt_event_def *def)
{
	if (def->provider_id == NT_PROV_SAMPLER)
		return def->event_id == SAMPLE;
	return an_thread_ids_wants(def) || an_open_waits_wants(def) ||
	       (def->provider_id == NT_PROV_RUNTIME && def->event_id == CREATING);
}

/* Forgets threads that are not sampled any more. */
static enum nt_status make_room(struct threads *t)
{
	size_t n = 0;
	enum nt_status st = NT_OK;

	for (size_t i = 0; i < t->seen_count; i++)
		if (an_ns_between(t->seen[i].last_ns, t->last_sample_ns) < GONE_NS)
			t->seen[n++] = t->seen[i];
	t->seen_count = n;
	nt_idmap_clear(&t->by_id);
	for (size_t i = 0; i < n && st == NT_OK; i++)
		st = nt_idmap_put(&t->by_id, t->seen[i].id, (uint32_t)i);
	return st;
}

/* NULL in *ret when there is no room. */
static enum nt_status find(struct threads *t, const struct nt_event *ev, struct seen_thread **ret)
{
	size_t next = t->last_seen + 1;
	struct seen_thread *seen;
	uint32_t i;

	*ret = NULL;
	/* Samples come in rounds, the threads always in the same order. */
	if (next < t->seen_count && t->seen[next].id == ev->thread_id) {
		t->last_seen = next;
		*ret = &t->seen[next];
		return NT_OK;
	}
	i = nt_idmap_get(&t->by_id, ev->thread_id);
	if (i == NT_IDMAP_NONE) {
		if (t->seen_count >= MAX_THREADS && !(t->dropped & 1023) && make_room(t) < 0)
			return NT_ENOMEM;
		if (t->seen_count >= MAX_THREADS) {
			t->dropped++;
			return NT_OK;
		}
		seen = an_mem_grow(t->shared->alloc, t->seen, &t->seen_cap, t->seen_count + 1,
				   sizeof(*seen));
		if (!seen)
			return NT_ENOMEM;
		t->seen = seen;
		i = (uint32_t)t->seen_count;
		if (nt_idmap_put(&t->by_id, ev->thread_id, i) < 0)
			return NT_ENOMEM;
		seen[t->seen_count++] = (struct seen_thread){
			.id = ev->thread_id,
			.first_ns = ev->time_ns,
			.since_ns = ev->time_ns,
			.node = UINT32_MAX,
		};
	}
	t->last_seen = i;
	*ret = &t->seen[i];
	return NT_OK;
}

static enum nt_status on_sample(struct threads *t, const struct nt_event *ev)
{
	struct seen_thread *s = NULL;
	uint32_t node;
	enum nt_status st = an_calltree_intern(t->shared->tree, ev, &node);

	t->sampled = true;
	t->last_sample_ns = ev->time_ns;
	if (st == NT_OK)
		st = find(t, ev, &s);
	if (st < 0 || !s)
		return st;
	if (s->node != node || an_ns_between(s->last_ns, ev->time_ns) > GONE_NS) {
		s->node = node;
		s->since_ns = ev->time_ns;
	}
	s->last_ns = ev->time_ns;
	s->waits_by_event = an_open_waits_has(&t->waits, s->id, t->shared->lost);
	return NT_OK;
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

	if (ev->def->provider_id == NT_PROV_SAMPLER)
		return on_sample(t, ev);
	if (an_open_waits_wants(ev->def))
		return an_open_waits_event(&t->waits, ev, t->shared->lost);
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
