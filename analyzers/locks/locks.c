/* SPDX-License-Identifier: MIT */

/*
 * Locks: which are fought for and where, who holds them, and who waits for ever.
 *
 * Contention events come only after spinning has failed, so every one of them is a thread that
 * stopped.  Waits for anything but a lock have events from .NET 9 on, which are not enabled by
 * default: they are many.
 */

#include "analyzers/grow.h"
#include "analyzers/locks/locks_internal.h"

enum {
	MAX_LOCKS = 16 * 1024, /* and one that takes the rest */
	MAX_SITES = 2048,
	MAX_THREADS = 32 * 1024,
	MAX_WAIT_SITES = 1024,
	MAX_HOLDERS = 4096,
	MAX_PAIRS = 64 * 1024,
	SAMPLE = 0, /* ids of events */
	CONTENTION_START = 81,
	CONTENTION_STOP = 91,
	THREAD_CREATED = 85,
	THREAD_ENDED = 86,
	THREAD_RUNDOWN = 159,
	WAIT_START = 301,
	WAIT_STOP = 302,
	FIELDS = 6,
	CONVOY_NS = 100 * 1000 * 1000, /* its queue was never empty for so long, */
	CONVOY_WAITING = 3, /* had so many threads at least once, */
	CONVOY_STOPS = 10, /* and the lock changed hands so often */
	IDLE_NS = 1000 * 1000 * 1000, /* threads not seen for longer may be forgotten */
};

struct analyzer {
	struct locks l;
};

static struct analyzer *locks_free(struct analyzer *a)
{
	const struct nt_alloc *al;
	struct locks *l;

	if (!a)
		return NULL;
	l = &a->l;
	al = l->shared->alloc;
	for (size_t i = 0; i < l->site_count; i++)
		an_spread_done(&l->sites[i].waits, al);
	for (size_t i = 0; i < l->wait_count; i++)
		an_spread_done(&l->waits[i].waits, al);
	an_thread_ids_done(&l->ids);
	an_mem_free(al, l->locks);
	an_mem_free(al, l->sites);
	an_mem_free(al, l->threads);
	an_mem_free(al, l->waits);
	an_mem_free(al, l->holders);
	nt_idmap_done(&l->lock_by_id);
	nt_idmap_done(&l->site_by_key);
	nt_idmap_done(&l->thread_by_id);
	nt_idmap_done(&l->wait_by_node);
	nt_idmap_done(&l->holder_by_key);
	nt_idmap_done(&l->pairs);
	an_stacks_done(&a->l.stacks);
	an_mem_free(al, a);
	return NULL;
}

static struct analyzer *locks_new(struct an_shared *shared)
{
	struct analyzer *a = an_mem_get(shared->alloc, sizeof(*a));
	struct locks *l;

	if (!a)
		return NULL;
	l = &a->l;
	l->shared = shared;
	an_thread_ids_init(&l->ids, shared->alloc);
	nt_idmap_init(&l->lock_by_id, shared->alloc);
	nt_idmap_init(&l->site_by_key, shared->alloc);
	nt_idmap_init(&l->thread_by_id, shared->alloc);
	nt_idmap_init(&l->wait_by_node, shared->alloc);
	nt_idmap_init(&l->holder_by_key, shared->alloc);
	nt_idmap_init(&l->pairs, shared->alloc);
	return a;
}

static bool locks_wants(const struct nt_event_def *def)
{
	uint32_t id = def->event_id;

	if (an_thread_ids_wants(def))
		return true;
	if (def->provider_id == NT_PROV_SAMPLER)
		return id == SAMPLE;
	return def->provider_id == NT_PROV_RUNTIME &&
	       (id == CONTENTION_START || id == CONTENTION_STOP || id == WAIT_START ||
		id == WAIT_STOP);
}

/* --- tables --- */

static enum nt_status index_threads(struct locks *l)
{
	enum nt_status st = NT_OK;

	nt_idmap_clear(&l->thread_by_id);
	for (size_t i = 0; i < l->thread_count && st == NT_OK; i++)
		st = nt_idmap_put(&l->thread_by_id, l->threads[i].id, (uint32_t)i);
	return st;
}

/* Forgets threads that do not wait and have not been sampled lately: most likely they ended. */
static enum nt_status make_room(struct locks *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->thread_count; i++) {
		const struct lock_thread *t = &l->threads[i];

		if (t->lock != LOCK_NONE || t->wait_depth ||
		    (t->sampled && an_ns_between(t->last_sample_ns, l->last_sample_ns) < IDLE_NS))
			l->threads[n++] = *t;
	}
	l->thread_count = n;
	return index_threads(l);
}

/* NULL in *ret when there is no room. */
static enum nt_status find_thread(struct locks *l, uint64_t id, struct lock_thread **ret)
{
	struct lock_thread *threads;
	size_t next = l->last_thread + 1;
	uint32_t i;

	*ret = NULL;
	/* Samples come in rounds, the threads always in the same order. */
	if (next < l->thread_count && l->threads[next].id == id) {
		i = (uint32_t)next;
	} else {
		i = nt_idmap_get(&l->thread_by_id, id);
		if (i == NT_IDMAP_NONE) {
			if (l->thread_count >= MAX_THREADS && !(l->threads_dropped & 1023) &&
			    make_room(l) < 0)
				return NT_ENOMEM;
			if (l->thread_count >= MAX_THREADS) {
				l->threads_dropped++;
				return NT_OK;
			}
			threads = an_mem_grow(l->shared->alloc, l->threads, &l->thread_cap,
					      l->thread_count + 1, sizeof(*threads));
			if (!threads)
				return NT_ENOMEM;
			l->threads = threads;
			i = (uint32_t)l->thread_count;
			if (nt_idmap_put(&l->thread_by_id, id, i) < 0)
				return NT_ENOMEM;
			threads[l->thread_count++] = (struct lock_thread){
				.id = id,
				.lock = LOCK_NONE,
				.holds = { { LOCK_NONE, 0 }, { LOCK_NONE, 0 } },
			};
		}
	}
	l->last_thread = i;
	*ret = &l->threads[i];
	return NT_OK;
}

static enum nt_status find_lock(struct locks *l, uint64_t id, uint64_t object, uint32_t *ret)
{
	bool full = l->lock_count >= MAX_LOCKS;
	struct lock *locks;

	if (!id)
		id = object;
	*ret = nt_idmap_get(&l->lock_by_id, id);
	if (*ret != NT_IDMAP_NONE)
		return NT_OK;
	if (full)
		l->locks_dropped++;
	if (l->lock_count > MAX_LOCKS) {
		*ret = MAX_LOCKS;
		return NT_OK;
	}
	locks = an_mem_grow(l->shared->alloc, l->locks, &l->lock_cap, l->lock_count + 1,
			    sizeof(*locks));
	if (!locks)
		return NT_ENOMEM;
	l->locks = locks;
	*ret = (uint32_t)l->lock_count;
	if (!full && nt_idmap_put(&l->lock_by_id, id, *ret) < 0)
		return NT_ENOMEM;
	locks[l->lock_count++] = full ? (struct lock){ .shared = true }
				      : (struct lock){ .id = id, .object = object };
	return NT_OK;
}

/* Sites beyond the cap share one, of the lock for which it happened first. */
static enum nt_status find_site(struct locks *l, uint32_t lock, uint32_t node, uint32_t *ret)
{
	uint64_t key = (uint64_t)lock << 32 | node;
	struct lock_site *sites;

	*ret = nt_idmap_get(&l->site_by_key, key);
	if (*ret != NT_IDMAP_NONE)
		return NT_OK;
	if (l->site_count >= MAX_SITES) {
		l->sites_dropped++;
		*ret = LOCK_NONE;
		return NT_OK;
	}
	sites = an_mem_grow(l->shared->alloc, l->sites, &l->site_cap, l->site_count + 1,
			    sizeof(*sites));
	if (!sites)
		return NT_ENOMEM;
	l->sites = sites;
	*ret = (uint32_t)l->site_count;
	if (nt_idmap_put(&l->site_by_key, key, *ret) < 0)
		return NT_ENOMEM;
	sites[l->site_count++] = (struct lock_site){ .lock = lock, .node = node };
	return NT_OK;
}

static enum nt_status find_wait_site(struct locks *l, uint32_t node, uint32_t *ret)
{
	struct lock_wait_site *waits;

	*ret = nt_idmap_get(&l->wait_by_node, node);
	if (*ret != NT_IDMAP_NONE)
		return NT_OK;
	if (l->wait_count >= MAX_WAIT_SITES) {
		l->waits_dropped++;
		*ret = LOCK_NONE;
		return NT_OK;
	}
	waits = an_mem_grow(l->shared->alloc, l->waits, &l->wait_cap, l->wait_count + 1,
			    sizeof(*waits));
	if (!waits)
		return NT_ENOMEM;
	l->waits = waits;
	*ret = (uint32_t)l->wait_count;
	if (nt_idmap_put(&l->wait_by_node, node, *ret) < 0)
		return NT_ENOMEM;
	waits[l->wait_count++] = (struct lock_wait_site){ .node = node };
	return NT_OK;
}

/* Counts a thread once a lock. */
static enum nt_status note_pair(struct locks *l, uint32_t lock, uint64_t thread)
{
	uint64_t key = (uint64_t)lock << 40 ^ thread;

	if (nt_idmap_get(&l->pairs, key) != NT_IDMAP_NONE)
		return NT_OK;
	if (l->pairs.used >= MAX_PAIRS) {
		l->pairs_full = true;
		return NT_OK;
	}
	l->locks[lock].threads++;
	return nt_idmap_put(&l->pairs, key, 1);
}

/* --- contention --- */

static void end_queue(struct lock *k, int64_t now_ns)
{
	uint64_t ns = an_ns_between(k->queue_since_ns, now_ns);

	if (k->shared || ns < CONVOY_NS || k->queue_max < CONVOY_WAITING ||
	    k->queue_stops < CONVOY_STOPS)
		return;
	k->convoys++;
	k->convoy_ns += ns;
	if (ns > k->convoy_max_ns)
		k->convoy_max_ns = ns;
}

/* One thread fewer waits for its lock. */
static void leave_queue(struct locks *l, struct lock_thread *t, int64_t now_ns)
{
	struct lock *k = &l->locks[t->lock];

	l->waiting--;
	k->waiting--;
	if (!k->waiting)
		end_queue(k, now_ns);
	if (t->site != LOCK_NONE)
		l->sites[t->site].open--;
	t->lock = LOCK_NONE;
}

static void enter_queue(struct lock *k, int64_t now_ns)
{
	if (!k->waiting) {
		k->queue_since_ns = now_ns;
		k->queue_stops = 0;
		k->queue_max = 0;
	}
	k->waiting++;
	if (k->waiting > k->queue_max)
		k->queue_max = k->waiting;
	if (k->waiting > k->waiting_max)
		k->waiting_max = k->waiting;
}

static void count_owner(struct lock_site *s, uint64_t owner)
{
	if (!owner) {
		s->owner_unknown++;
		return;
	}
	for (size_t i = 0; i < LOCK_OWNERS; i++) {
		if (!s->owners[i].count)
			s->owners[i].id = owner;
		if (s->owners[i].id == owner) {
			s->owners[i].count++;
			return;
		}
	}
	s->owner_other++;
}

static void set_held(struct locks *l, uint64_t thread, enum lock_reading reading, uint32_t lock)
{
	uint32_t i = thread ? nt_idmap_get(&l->thread_by_id, thread) : NT_IDMAP_NONE;

	if (i != NT_IDMAP_NONE)
		l->threads[i].holds[reading] = (struct lock_held){ lock, l->locks[lock].changes };
}

static void note_owner(struct locks *l, uint32_t lock, uint64_t owner, uint64_t waiter)
{
	struct lock *k = &l->locks[lock];
	const struct an_thread_id *id;

	if (k->shared)
		return;
	if (!owner) {
		/* Who waits for a lock does not hold it. */
		if (k->basis == OWNER_ENTERED && k->owner == waiter)
			k->basis = OWNER_UNKNOWN;
		return;
	}
	if (k->basis != OWNER_NAMED || k->owner != owner)
		k->changes++;
	k->owner = owner;
	k->basis = OWNER_NAMED;
	set_held(l, owner, READ_OS, lock);
	id = an_thread_by_managed(&l->ids, owner);
	if (id)
		set_held(l, id->os, READ_MANAGED, lock);
}

/* It has waited and got the lock. */
static void note_entered(struct locks *l, struct lock_thread *t)
{
	struct lock *k = &l->locks[t->lock];

	if (k->shared)
		return;
	k->changes++;
	k->owner = t->id;
	k->basis = OWNER_ENTERED;
	for (size_t i = 0; i < READINGS; i++)
		t->holds[i] = (struct lock_held){ t->lock, k->changes };
}

static enum nt_status on_start(struct locks *l, const struct nt_event *ev)
{
	struct nt_value v[FIELDS];
	size_t n = nt_payload_read(ev, v, FIELDS, NULL);
	uint64_t owner = nt_value_u64(v, n, "LockOwnerThreadID", 0);
	struct lock_thread *t = NULL;
	uint32_t node, lock = 0, site = LOCK_NONE;
	enum nt_status st = an_calltree_intern(l->shared->tree, ev, &node);

	l->starts++;
	if (st == NT_OK)
		st = find_thread(l, ev->thread_id, &t);
	if (st == NT_OK)
		st = find_lock(l, nt_value_u64(v, n, "LockID", 0),
			       nt_value_u64(v, n, "AssociatedObjectID", 0), &lock);
	if (st == NT_OK)
		st = find_site(l, lock, node, &site);
	if (st < 0)
		return st;
	l->locks[lock].native = nt_value_u64(v, n, "ContentionFlags", 0) != 0;
	if (site != LOCK_NONE) {
		l->sites[site].starts++;
		count_owner(&l->sites[site], owner);
	}
	note_owner(l, lock, owner, ev->thread_id);
	st = note_pair(l, lock, ev->thread_id);
	if (st < 0 || !t)
		return st;
	if (t->lock != LOCK_NONE) { /* never nested: its stop was lost */
		leave_queue(l, t, ev->time_ns);
		l->lost_stops++;
	}
	enter_queue(&l->locks[lock], ev->time_ns);
	l->waiting++;
	if (site != LOCK_NONE)
		l->sites[site].open++;
	t->lock = lock;
	t->site = site;
	t->since_ns = ev->time_ns;
	t->lost = l->shared->lost;
	t->contended = true;
	return NT_OK;
}

/* The event has the length from .NET Core 3.0 on; it is the better one (§2.7). */
static uint64_t length_of(const struct nt_event *ev, const struct lock_thread *t)
{
	struct nt_value v[FIELDS];
	size_t n = nt_payload_read(ev, v, FIELDS, NULL);
	double ns = nt_value_f64(v, n, "DurationNs", -1);

	if (ns >= 0 && ns < 0x1p62)
		return (uint64_t)(ns + 0.5);
	return t && t->lock != LOCK_NONE ? an_ns_between(t->since_ns, ev->time_ns) : 0;
}

static enum nt_status on_stop(struct locks *l, const struct nt_event *ev)
{
	struct lock_thread *t;
	enum nt_status st = find_thread(l, ev->thread_id, &t);
	uint64_t ns;

	if (st < 0)
		return st;
	ns = length_of(ev, t);
	l->stops++;
	l->total_ns += ns;
	if (ns > l->max_ns)
		l->max_ns = ns;
	if (!t || t->lock == LOCK_NONE) {
		l->stops_without_start++;
		return NT_OK;
	}
	l->locks[t->lock].queue_stops++;
	note_entered(l, t);
	if (t->site != LOCK_NONE)
		st = an_spread_add(&l->sites[t->site].waits, l->shared->alloc, ns);
	leave_queue(l, t, ev->time_ns);
	return st;
}

/* --- other waits --- */

static enum nt_status on_wait_start(struct locks *l, const struct nt_event *ev)
{
	struct lock_thread *t;
	uint32_t node;
	enum nt_status st = find_thread(l, ev->thread_id, &t);

	l->waits_recorded = true;
	if (st < 0 || !t || t->wait_depth++)
		return st;
	t->wait_site = LOCK_NONE;
	t->wait_since_ns = ev->time_ns;
	if (t->lock != LOCK_NONE)
		return NT_OK; /* how the lock waits */
	st = an_calltree_intern(l->shared->tree, ev, &node);
	if (st == NT_OK)
		st = find_wait_site(l, node, &t->wait_site);
	if (st == NT_OK && t->wait_site != LOCK_NONE) {
		l->waits[t->wait_site].starts++;
		l->waits[t->wait_site].open++;
	}
	return st;
}

static enum nt_status on_wait_stop(struct locks *l, const struct nt_event *ev)
{
	struct lock_thread *t;
	struct lock_wait_site *w;
	enum nt_status st = find_thread(l, ev->thread_id, &t);

	l->waits_recorded = true;
	if (st < 0 || !t || !t->wait_depth || --t->wait_depth || t->wait_site == LOCK_NONE)
		return st;
	w = &l->waits[t->wait_site];
	w->open--;
	return an_spread_add(&w->waits, l->shared->alloc,
			     an_ns_between(t->wait_since_ns, ev->time_ns));
}

/* --- samples --- */

static enum nt_status count_holder(struct locks *l, uint32_t lock, enum lock_reading reading,
				   uint32_t node)
{
	uint64_t key = (uint64_t)reading << 63 | (uint64_t)lock << 32 | node;
	uint32_t i = nt_idmap_get(&l->holder_by_key, key);
	struct lock_holder *holders;

	if (i != NT_IDMAP_NONE) {
		l->holders[i].samples++;
		return NT_OK;
	}
	if (l->holder_count >= MAX_HOLDERS) {
		l->holders_dropped++;
		return NT_OK;
	}
	holders = an_mem_grow(l->shared->alloc, l->holders, &l->holder_cap, l->holder_count + 1,
			      sizeof(*holders));
	if (!holders)
		return NT_ENOMEM;
	l->holders = holders;
	if (nt_idmap_put(&l->holder_by_key, key, (uint32_t)l->holder_count) < 0)
		return NT_ENOMEM;
	holders[l->holder_count++] = (struct lock_holder){ lock, node, reading, 1 };
	return NT_OK;
}

/* Samples of who holds a lock for which others wait. */
static enum nt_status note_holder(struct locks *l, struct lock_thread *t, uint32_t node)
{
	enum nt_status st = NT_OK;

	for (unsigned i = 0; i < READINGS && st == NT_OK; i++) {
		struct lock_held *h = &t->holds[i];
		const struct lock *k;

		if (h->lock == LOCK_NONE)
			continue;
		k = &l->locks[h->lock];
		if (k->changes != h->changes || t->lock == h->lock)
			h->lock = LOCK_NONE;
		else if (k->waiting)
			st = count_holder(l, h->lock, (enum lock_reading)i, node);
	}
	return st;
}

static enum nt_status on_sample(struct locks *l, const struct nt_event *ev)
{
	struct lock_thread *t;
	uint32_t node;
	enum nt_status st = an_calltree_intern(l->shared->tree, ev, &node);

	l->last_sample_ns = ev->time_ns;
	if (st == NT_OK)
		st = find_thread(l, ev->thread_id, &t);
	if (st < 0 || !t)
		return st;
	if (!t->sampled) {
		t->sampled = true;
		t->node = node;
		t->first_sample_ns = ev->time_ns;
	}
	t->moved = t->moved || t->node != node;
	t->last_sample_ns = ev->time_ns;
	return note_holder(l, t, node);
}

static enum nt_status locks_event(struct analyzer *a, const struct nt_event *ev)
{
	struct locks *l = &a->l;

	if (ev->def->provider_id == NT_PROV_SAMPLER)
		return on_sample(l, ev);
	if (ev->def->provider_id == NT_PROV_RUNDOWN)
		return an_thread_ids_event(&l->ids, ev);
	switch (ev->def->event_id) {
	case CONTENTION_START:
		return on_start(l, ev);
	case CONTENTION_STOP:
		return on_stop(l, ev);
	case WAIT_START:
		return on_wait_start(l, ev);
	case WAIT_STOP:
		return on_wait_stop(l, ev);
	default:
		return an_thread_ids_event(&l->ids, ev);
	}
}

static enum nt_status report(struct analyzer *a, struct an_report *out)
{
	struct locks *l = &a->l;
	enum nt_status st;

	for (size_t i = 0; i < l->lock_count; i++)
		if (l->locks[i].waiting)
			end_queue(&l->locks[i], an_observed_ns(l->shared));
	l->reading = lock_owner_reading(l);
	st = locks_report(l, out);
	an_stacks_done(&l->stacks);
	return st;
}

static bool live(struct analyzer *a, int64_t now_ns, struct an_live *ret)
{
	return locks_live(&a->l, now_ns, ret);
}

static const struct an_provider providers[] = {
	/* Contention; Threading tells which managed id is which thread. */
	{ "Microsoft-Windows-DotNETRuntime", 0x4000 | 0x10000, 4 },
	{ 0 },
};

const struct an_class an_class_locks = {
	.name = "locks",
	.summary = "locks that are fought for, deadlocks, who holds what",
	.providers = providers,
	.wants = locks_wants,
	.new = locks_new,
	.event = locks_event,
	.report = report,
	.free = locks_free,
	.live = live,
	.needs = AN_NEED_ORDER | AN_NEED_STACKS,
	.uses_waits = true,
	.symptom = "threads wait for locks, work has stopped, a deadlock is suspected",
	.cost = AN_COST_LOW,
	.seconds = 60,
	.params = an_params_rows,
};
