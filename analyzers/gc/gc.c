/* SPDX-License-Identifier: MIT */

/*
 * Garbage collection: collections, pauses, what was allocated and promoted, who asked for it.
 *
 * A pause is a suspension for the collector, from SuspendEEBegin to RestartEEEnd on one thread.
 * Collections are matched by number, because with a server collector they begin and end on other
 * threads than those that suspend; a background collection has two or three pauses, with whole
 * collections in between (runtime-events.md §2.1, §8.1).
 */

#include <stdlib.h>

#include "analyzers/gc/gc_internal.h"
#include "analyzers/gc/tick.h"
#include "analyzers/grow.h"
#include "nettrace/span.h"

enum {
	GC_START = 1,
	GC_END = 2,
	RESTART_END = 3,
	HEAP_STATS = 4,
	RESTART_BEGIN = 7,
	SUSPEND_END = 8,
	SUSPEND_BEGIN = 9,
	ALLOCATION_TICK = 10,
	BULK_NODE = 18,
	CREATE_SEGMENT = 5,
	FINALIZERS_END = 13,
	FINALIZERS_BEGIN = 14,
	PIN_OBJECT = 33,
	TRIGGERED = 35,
	DYNAMIC = 39,
	MARK = 202,
	JOIN = 203,
	PER_HEAP_HISTORY = 204,
	GLOBAL_HEAP_HISTORY = 205,
	ALLOCATION_SAMPLED = 303,
};

enum { SUSPEND_FOR_GC = 1, SUSPEND_FOR_GC_PREP = 6, MAX_FIELDS = 24 };

struct analyzer {
	struct gc g;
};

static struct analyzer *gc_free(struct analyzer *a)
{
	const struct nt_alloc *al;

	if (!a)
		return NULL;
	al = a->g.shared->alloc;
	gc_pauses_done(&a->g.pauses);
	nt_idmap_done(&a->g.callers);
	nt_idmap_done(&a->g.pinned_types);
	an_textset_done(&a->g.pinned_names);
	for (size_t i = 0; i < GC_RECENT; i++)
		an_mem_free(al, a->g.recent[i].marks);
	for (size_t i = 0; i < a->g.kept_count; i++)
		an_mem_free(al, a->g.kept[i].marks);
	an_mem_free(al, a->g.kept);
	an_mem_free(al, a->g.caller);
	an_mem_free(al, a->g.pinned_type);
	an_mem_free(al, a);
	return NULL;
}

static struct analyzer *gc_new(struct an_shared *shared)
{
	struct analyzer *a = an_mem_get(shared->alloc, sizeof(*a));

	if (!a)
		return NULL;
	a->g.shared = shared;
	gc_pauses_init(&a->g.pauses, shared->alloc);
	nt_idmap_init(&a->g.callers, shared->alloc);
	nt_idmap_init(&a->g.pinned_types, shared->alloc);
	an_textset_init(&a->g.pinned_names, shared->alloc, GC_MAX_PINNED_TYPES);
	a->g.finalizers.since_ns = -1;
	return a;
}

static bool gc_wants(const struct nt_event_def *def)
{
	switch (def->event_id) {
	case GC_START:
	case GC_END:
	case RESTART_END:
	case HEAP_STATS:
	case RESTART_BEGIN:
	case SUSPEND_END:
	case SUSPEND_BEGIN:
	case ALLOCATION_TICK:
	case CREATE_SEGMENT:
	case FINALIZERS_END:
	case FINALIZERS_BEGIN:
	case PIN_OBJECT:
	case TRIGGERED:
	case DYNAMIC:
	case MARK:
	case JOIN:
	case PER_HEAP_HISTORY:
	case GLOBAL_HEAP_HISTORY:
	case ALLOCATION_SAMPLED:
	case BULK_NODE:
		return def->provider_id == NT_PROV_RUNTIME;
	default:
		return false;
	}
}

static bool is_for_large(uint32_t reason)
{
	return reason == 4 || reason == 6; /* AllocLarge, OutOfSpaceLOH */
}

bool gc_is_induced(uint32_t reason)
{
	/* Induced, InducedNotForced, InducedLowMemory, InducedCompacting */
	return reason == 1 || reason == 7 || reason == 9 || reason == 10;
}

/* --- collections --- */

/* Those with the longest pauses stay when there are too many. */
static int compare_pause(const void *a, const void *b)
{
	const struct gc_collection *x = a, *y = b;

	if (x->pause_ns != y->pause_ns)
		return x->pause_ns < y->pause_ns ? 1 : -1;
	return (x->start_ns < y->start_ns) - (x->start_ns > y->start_ns);
}

static void drop_marks(struct gc *g, struct gc_collection *c)
{
	g->marks_kept -= c->mark_count;
	an_mem_free(g->shared->alloc, c->marks);
	c->marks = NULL;
	c->mark_count = c->mark_cap = 0;
}

/* No more than the report can show, twice over so that one sorting makes room for many. */
static size_t most_kept(const struct gc *g)
{
	size_t top = g->shared->options.top;

	if (!top || top > GC_MAX_KEPT / 4)
		return GC_MAX_KEPT;
	return 4 * top < GC_MIN_KEPT ? GC_MIN_KEPT : 4 * top;
}

/* Those with the shortest pauses go, or else what is known of their marking. */
static void make_room(struct gc *g)
{
	size_t most = most_kept(g);
	bool rows = g->kept_count >= most, marks = g->marks_kept >= GC_MAX_MARKS;
	size_t n = g->kept_count;

	if (!rows && !marks)
		return;
	qsort(g->kept, n, sizeof(*g->kept), compare_pause);
	while (rows && n > most / 2)
		drop_marks(g, &g->kept[--n]);
	g->not_kept += g->kept_count - n;
	g->kept_count = n;
	while (n && g->marks_kept > GC_MAX_MARKS / 2)
		drop_marks(g, &g->kept[--n]);
}

/* Takes over what c owns. */
static enum nt_status keep(struct gc *g, struct gc_collection *c)
{
	struct gc_class_sum *sum;
	struct gc_collection *kept;
	uint32_t gen = c->generation < GC_GENERATIONS ? c->generation : GC_GENERATIONS - 1;

	sum = &g->sums[gen][c->type < GC_TYPES ? c->type : GC_BLOCKING];
	sum->count++;
	sum->pause_ns += c->pause_ns;
	if (c->pause_ns > sum->pause_max_ns)
		sum->pause_max_ns = c->pause_ns;
	if (!c->ended)
		g->incomplete_end++;
	gc_sum_sizes(g, c);
	make_room(g);
	kept = an_mem_grow(g->shared->alloc, g->kept, &g->kept_cap, g->kept_count + 1,
			   sizeof(*kept));
	if (!kept)
		return NT_ENOMEM;
	g->kept = kept;
	kept[g->kept_count++] = *c;
	g->marks_kept += c->mark_count;
	c->marks = NULL;
	c->used = false;
	return NT_OK;
}

enum nt_status gc_finish(struct gc *g)
{
	enum nt_status st = NT_OK;

	for (size_t i = 0; i < GC_RECENT && st == NT_OK; i++) {
		struct gc_collection *c = &g->recent[(g->started + i) % GC_RECENT];

		if (c->used)
			st = keep(g, c);
	}
	return st;
}

struct gc_collection *gc_find(struct gc *g, uint32_t number, uint32_t type)
{
	for (size_t i = 1; i <= GC_RECENT; i++) {
		struct gc_collection *c = &g->recent[(g->started + GC_RECENT - i) % GC_RECENT];

		if (c->used && c->number == number && c->type == type)
			return c;
	}
	return NULL;
}

struct gc_collection *gc_find_running(struct gc *g, uint32_t number)
{
	for (size_t i = 1; i <= GC_RECENT; i++) {
		struct gc_collection *c = &g->recent[(g->started + GC_RECENT - i) % GC_RECENT];

		if (c->used && !c->ended && c->number == number)
			return c;
	}
	return NULL;
}

struct gc_collection *gc_find_background(struct gc *g)
{
	for (size_t i = 1; i <= GC_RECENT; i++) {
		struct gc_collection *c = &g->recent[(g->started + GC_RECENT - i) % GC_RECENT];

		if (c->used && !c->ended && c->type == GC_BACKGROUND)
			return c;
	}
	return NULL;
}

/*
 * A place for a new collection.  The oldest one goes out, but a background collection may outlive
 * many others and changes places with the next.
 */
static enum nt_status make_place(struct gc *g, struct gc_collection **ret)
{
	struct gc_collection *c = &g->recent[g->started % GC_RECENT];
	struct gc_collection *next = &g->recent[(g->started + 1) % GC_RECENT];
	enum nt_status st = NT_OK;

	if (c->used && !c->ended && c->type == GC_BACKGROUND && next->used) {
		struct gc_collection out = *next;

		*next = *c;
		*c = out;
	}
	if (c->used)
		st = keep(g, c);
	*ret = c;
	return st;
}

/* --- suspensions --- */

static struct gc_open_pause *find_open(struct gc *g, uint64_t thread)
{
	for (size_t i = 0; i < g->open_count; i++)
		if (g->open[i].thread == thread)
			return &g->open[i];
	return NULL;
}

static void close_open(struct gc *g, const struct gc_open_pause *p)
{
	size_t i = (size_t)(p - g->open);

	memmove(g->open + i, g->open + i + 1, (g->open_count - i - 1) * sizeof(g->open[0]));
	g->open_count--;
}

/* The suspension in which the collector works now: the newest for it, or NULL. */
static struct gc_open_pause *current_pause(struct gc *g)
{
	for (size_t i = g->open_count; i-- > 0;)
		if (g->open[i].for_gc)
			return &g->open[i];
	return NULL;
}

struct gc_collection *gc_current(struct gc *g)
{
	struct gc_open_pause *pause = current_pause(g);
	struct gc_collection *c = NULL;

	if (pause && pause->started)
		c = gc_find_running(g, pause->number);
	return c ? c : gc_find_background(g);
}

static void on_suspend_begin(struct gc *g, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	uint64_t reason = nt_value_u64(v, n, "Reason", 0);
	struct gc_open_pause *old = find_open(g, ev->thread_id);

	if (old) { /* its end was lost */
		g->dropped_pauses += old->for_gc;
		close_open(g, old);
	}
	if (g->open_count == GC_MAX_OPEN) {
		g->dropped_pauses += g->open[0].for_gc;
		close_open(g, &g->open[0]);
	}
	g->open[g->open_count++] = (struct gc_open_pause){
		.thread = ev->thread_id,
		.begin_ns = ev->time_ns,
		.suspended_ns = ev->time_ns - 1,
		.lost = g->shared->lost,
		.runner = UINT64_MAX,
		.reason = reason < GC_SUSPEND_REASONS ? (uint32_t)reason : GC_SUSPEND_REASONS - 1,
		.for_gc = reason == SUSPEND_FOR_GC || reason == SUSPEND_FOR_GC_PREP,
	};
}

/*
 * The collection that a finished pause belongs to, or NULL: it began before the session, or events
 * were lost and the end may be that of another pause.
 */
static struct gc_collection *charged(struct gc *g, const struct gc_open_pause *p)
{
	bool whole = p->suspended_ns >= p->begin_ns && p->restarting;

	if (p->lost != g->shared->lost && !whole)
		return NULL;
	return p->started ? gc_find(g, p->number, p->type) : gc_find_background(g);
}

/* The longest suspensions, in order. */
static void note_slow(struct gc *g, const struct gc_open_pause *p, uint64_t ns,
		      const struct gc_collection *c)
{
	size_t at = g->slow_count;

	while (at && g->slow[at - 1].ns < ns)
		at--;
	if (!ns || at == GC_SLOW)
		return;
	if (g->slow_count < GC_SLOW)
		g->slow_count++;
	memmove(g->slow + at + 1, g->slow + at, (g->slow_count - at - 1) * sizeof(g->slow[0]));
	g->slow[at] = (struct gc_slow_suspension){ .begin_ns = p->begin_ns,
						   .ns = ns,
						   .thread = p->thread,
						   .runner = p->runner,
						   .number = c->number };
}

static void note_other(struct gc *g, const struct gc_open_pause *p, uint64_t ns)
{
	struct gc_other_sum *o = &g->other[p->reason];

	o->count++;
	o->ns += ns;
	if (ns > o->max_ns)
		o->max_ns = ns;
}

static enum nt_status on_restart_end(struct gc *g, const struct nt_event *ev)
{
	struct gc_open_pause *open = find_open(g, ev->thread_id);
	struct gc_open_pause p;
	struct gc_collection *c;
	uint64_t length, suspend = 0;

	if (!open)
		return NT_OK;
	p = *open;
	close_open(g, open);
	length = ev->time_ns > p.begin_ns ? (uint64_t)(ev->time_ns - p.begin_ns) : 0;
	if (p.suspended_ns >= p.begin_ns)
		suspend = (uint64_t)(p.suspended_ns - p.begin_ns);
	if (!p.for_gc) {
		note_other(g, &p, length);
		return NT_OK;
	}
	if (p.started)
		g->triggered = false; /* of what began in this pause */
	c = charged(g, &p);
	if (!c) {
		g->dropped_pauses++;
		return NT_OK;
	}
	c->pause_ns += length;
	c->suspend_ns += suspend;
	c->pauses++;
	note_slow(g, &p, suspend, c);
	gc_mutator_add(&g->mutator, p.begin_ns, ev->time_ns);
	return gc_pauses_add(&g->pauses, length);
}

/* --- collections, by events --- */

static enum nt_status on_start(struct gc *g, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	struct gc_open_pause *pause = current_pause(g);
	struct gc_collection *c;
	enum nt_status st;

	if (!nt_value_find(v, n, "Count"))
		return NT_OK;
	st = make_place(g, &c);
	if (st < 0)
		return st;
	*c = (struct gc_collection){
		.number = (uint32_t)nt_value_u64(v, n, "Count", 0),
		.generation = (uint32_t)nt_value_u64(v, n, "Depth", 0),
		.reason = (uint32_t)nt_value_u64(v, n, "Reason", 0),
		.type = (uint32_t)nt_value_u64(v, n, "Type", 0),
		.start_ns = ev->time_ns,
		.used = true,
		.triggered = g->triggered,
		.trigger_node = g->trigger_node,
		.trigger_thread = g->trigger_thread,
	};
	g->started++;
	g->by_generation[c->generation < GC_GENERATIONS ? c->generation : GC_GENERATIONS - 1]++;
	g->background += c->type == GC_BACKGROUND;
	g->induced += gc_is_induced(c->reason);
	g->large += is_for_large(c->reason);
	if (pause) { /* the later one of two: an ephemeral collection just before a background one
		      */
		pause->started = true;
		pause->number = c->number;
		pause->type = c->type;
	}
	return NT_OK;
}

static void on_end(struct gc *g, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	struct gc_collection *c = gc_find_running(g, (uint32_t)nt_value_u64(v, n, "Count", 0));

	g->have_last_ended = false;
	if (!c) {
		g->incomplete_start++;
		return;
	}
	c->ended = true;
	c->end_ns = ev->time_ns;
	g->last_number = c->number;
	g->last_type = c->type;
	g->have_last_ended = true;
}

static void on_tick(struct gc *g, const struct nt_event *ev)
{
	struct gc_tick tick;

	if (!gc_tick_read(ev, &tick))
		return;
	g->ticks++;
	g->allocated_bytes += tick.bytes;
	an_rate_add(&g->rate, ev->time_ns, tick.bytes);
	/* Whoever allocates while all threads are to stop has not stopped. */
	for (size_t i = 0; i < g->open_count; i++)
		if (g->open[i].suspended_ns < g->open[i].begin_ns)
			g->open[i].runner = ev->thread_id;
}

static enum nt_status note_caller(struct gc *g, uint32_t node)
{
	uint32_t at = nt_idmap_get(&g->callers, node);
	struct gc_caller *caller;

	if (at == NT_IDMAP_NONE) {
		if (g->caller_count >= GC_MAX_CALLERS) {
			g->callers_dropped++;
			return NT_OK;
		}
		caller = an_mem_grow(g->shared->alloc, g->caller, &g->caller_cap,
				     g->caller_count + 1, sizeof(*caller));
		if (!caller)
			return NT_ENOMEM;
		g->caller = caller;
		at = (uint32_t)g->caller_count;
		if (nt_idmap_put(&g->callers, node, at) < 0)
			return NT_ENOMEM;
		caller[g->caller_count++] = (struct gc_caller){ .node = node };
	}
	g->caller[at].count++;
	return NT_OK;
}

/* Before the suspension with a server collector, within it else: on the thread that asked. */
static enum nt_status on_triggered(struct gc *g, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	bool induced = gc_is_induced((uint32_t)nt_value_u64(v, n, "Reason", 0));
	uint32_t node;
	enum nt_status st = an_calltree_intern(g->shared->tree, ev, &node);

	if (st < 0)
		return st;
	g->triggered = true;
	g->trigger_node = node;
	g->trigger_thread = ev->thread_id;
	return induced ? note_caller(g, node) : NT_OK;
}

static void on_suspension(struct gc *g, const struct nt_event *ev)
{
	struct gc_open_pause *pause = find_open(g, ev->thread_id);

	if (pause && ev->def->event_id == RESTART_BEGIN)
		pause->restarting = true;
	else if (pause)
		pause->suspended_ns = ev->time_ns;
}

/* Events that tell more about what another one began. */
static enum nt_status detail(struct gc *g, const struct nt_event *ev)
{
	switch (ev->def->event_id) {
	case HEAP_STATS:
		gc_heap_stats(g, ev);
		return NT_OK;
	case CREATE_SEGMENT:
		gc_segment(g, ev);
		return NT_OK;
	case FINALIZERS_END:
		gc_finalizers_end(g, ev);
		return NT_OK;
	case FINALIZERS_BEGIN:
		gc_finalizers_begin(g, ev);
		return NT_OK;
	case PIN_OBJECT:
		return gc_pinned_object(g, ev);
	case DYNAMIC:
		gc_dynamic(g, ev);
		return NT_OK;
	case MARK:
		return gc_mark(g, ev);
	case JOIN:
		g->joins++;
		return NT_OK;
	case PER_HEAP_HISTORY:
		gc_per_heap(g, ev);
		return NT_OK;
	case GLOBAL_HEAP_HISTORY:
		gc_global(g, ev);
		return NT_OK;
	default:
		g->sampled++;
		return NT_OK;
	}
}

/* A collection that walks the heap was asked for by a tool, which may be this one. */
static void on_bulk_node(struct gc *g, const struct nt_event *ev)
{
	struct nt_value index;

	if (nt_payload_read(ev, &index, 1, NULL) == 1 && index.kind == NT_V_UINT && !index.u)
		g->walks++;
}

static enum nt_status gc_event(struct analyzer *a, const struct nt_event *ev)
{
	struct gc *g = &a->g;

	if (ev->def->event_id != ALLOCATION_SAMPLED)
		g->recorded = true;
	switch (ev->def->event_id) {
	case GC_START:
		return on_start(g, ev);
	case GC_END:
		on_end(g, ev);
		return NT_OK;
	case RESTART_END:
		return on_restart_end(g, ev);
	case SUSPEND_BEGIN:
		on_suspend_begin(g, ev);
		return NT_OK;
	case SUSPEND_END:
	case RESTART_BEGIN:
		on_suspension(g, ev);
		return NT_OK;
	case ALLOCATION_TICK:
		on_tick(g, ev);
		return NT_OK;
	case BULK_NODE:
		on_bulk_node(g, ev);
		return NT_OK;
	case TRIGGERED:
		return on_triggered(g, ev);
	default:
		return detail(g, ev);
	}
}

static enum nt_status report(struct analyzer *a, struct an_report *out)
{
	enum nt_status st = gc_finish(&a->g);

	return st == NT_OK ? gc_report(&a->g, out) : st;
}

static void conclude(struct analyzer *a, struct an_report *out)
{
	gc_conclude(&a->g, out);
}

static const struct an_provider providers[] = {
	{ "Microsoft-Windows-DotNETRuntime", 0x1, 4 },
	{ 0 },
};

const struct an_class an_class_gc = {
	.name = "gc",
	.summary = "collections, pauses, allocation, who called GC.Collect",
	.providers = providers,
	.wants = gc_wants,
	.new = gc_new,
	.event = gc_event,
	.report = report,
	.conclude = conclude,
	.free = gc_free,
	.needs = AN_NEED_ORDER | AN_NEED_STACKS,
	.symptom = "pauses, growing memory, much time in garbage collection",
	.cost = AN_COST_LOW,
	.seconds = 60,
	.params = an_params_rows,
};
