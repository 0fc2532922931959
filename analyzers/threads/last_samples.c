/* SPDX-License-Identifier: MIT */
#include "analyzers/threads/last_samples.h"

#include "analyzers/grow.h"
#include "analyzers/spread.h"
#include "nettrace/span.h"

enum {
	MAX_THREADS = 32 * 1024,
	SAMPLE = 0, /* id of the event */
	TYPE_MANAGED = 2,
	GONE_NS = 2 * 1000 * 1000 * 1000 - 1, /* not sampled for so long: most likely ended */
};

void an_last_samples_init(struct an_last_samples *l, struct an_shared *shared)
{
	*l = (struct an_last_samples){ .shared = shared };
	an_open_waits_init(&l->waits, shared->alloc);
	nt_idmap_init(&l->by_id, shared->alloc);
}

void an_last_samples_done(struct an_last_samples *l)
{
	an_open_waits_done(&l->waits);
	an_mem_free(l->shared->alloc, l->rows);
	nt_idmap_done(&l->by_id);
}

bool an_last_samples_wants(const struct nt_event_def *def)
{
	if (def->provider_id == NT_PROV_SAMPLER)
		return def->event_id == SAMPLE;
	return an_open_waits_wants(def);
}

/* Forgets threads that are not sampled any more. */
static enum nt_status make_room(struct an_last_samples *l)
{
	size_t n = 0;
	enum nt_status st = NT_OK;

	for (size_t i = 0; i < l->count; i++)
		if (an_ns_between(l->rows[i].last_ns, l->last_ns) < GONE_NS)
			l->rows[n++] = l->rows[i];
	l->count = n;
	nt_idmap_clear(&l->by_id);
	for (size_t i = 0; i < n && st == NT_OK; i++)
		st = nt_idmap_put(&l->by_id, l->rows[i].id, (uint32_t)i);
	return st;
}

/* NULL in *ret when there is no room. */
static enum nt_status find(struct an_last_samples *l, const struct nt_event *ev,
			   struct an_last_sample **ret)
{
	size_t next = l->last + 1;
	struct an_last_sample *rows;
	uint32_t i;

	*ret = NULL;
	/* Samples come in rounds, the threads always in the same order. */
	if (next < l->count && l->rows[next].id == ev->thread_id) {
		l->last = next;
		*ret = &l->rows[next];
		return NT_OK;
	}
	i = nt_idmap_get(&l->by_id, ev->thread_id);
	if (i == NT_IDMAP_NONE) {
		if (l->count >= MAX_THREADS && !(l->dropped & 1023) && make_room(l) < 0)
			return NT_ENOMEM;
		if (l->count >= MAX_THREADS) {
			l->dropped++;
			return NT_OK;
		}
		rows = an_mem_grow(l->shared->alloc, l->rows, &l->cap, l->count + 1, sizeof(*rows));
		if (!rows)
			return NT_ENOMEM;
		l->rows = rows;
		i = (uint32_t)l->count;
		if (nt_idmap_put(&l->by_id, ev->thread_id, i) < 0)
			return NT_ENOMEM;
		rows[l->count++] = (struct an_last_sample){
			.id = ev->thread_id,
			.first_ns = ev->time_ns,
			.since_ns = ev->time_ns,
			.node = UINT32_MAX,
		};
	}
	l->last = i;
	*ret = &l->rows[i];
	return NT_OK;
}

static bool in_managed_code(const struct nt_event *ev)
{
	struct nt_span s = nt_span_of(ev->payload, ev->payload_bytes);

	return nt_u32(&s) == TYPE_MANAGED;
}

static enum nt_status on_sample(struct an_last_samples *l, const struct nt_event *ev)
{
	struct an_last_sample *s = NULL;
	uint32_t node;
	enum nt_status st = an_calltree_intern(l->shared->tree, ev, &node);

	l->last_ns = ev->time_ns;
	if (st == NT_OK)
		st = find(l, ev, &s);
	if (st < 0 || !s)
		return st;
	if (s->node != node || an_ns_between(s->last_ns, ev->time_ns) > GONE_NS) {
		s->node = node;
		s->since_ns = ev->time_ns;
	}
	s->last_ns = ev->time_ns;
	s->managed = in_managed_code(ev);
	s->waits_by_event = an_open_waits_has(&l->waits, s->id, l->shared->lost);
	return NT_OK;
}

enum nt_status an_last_samples_event(struct an_last_samples *l, const struct nt_event *ev)
{
	if (ev->def->provider_id == NT_PROV_SAMPLER)
		return on_sample(l, ev);
	return an_open_waits_event(&l->waits, ev, l->shared->lost);
}
