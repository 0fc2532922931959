/* SPDX-License-Identifier: MIT */

/*
 * The thread pool: whether work waits because its threads are blocked (runtime-events.md §8.5).
 *
 * The pool's own events say when it adds threads and why.  Samples say more: a starved pool has no
 * worker that idles and none that runs, only ones that wait inside of somebody's work.
 */

#include <string.h>

#include "analyzers/grow.h"
#include "analyzers/threadpool/threadpool_internal.h"

enum {
	SAMPLE = 0, /* ids of events */
	WORKER_START = 50,
	WORKER_STOP = 51,
	ADJUSTMENT = 55,
	WORKER_WAIT = 57,
	MIN_MAX = 59,
	WORKING_COUNT = 60,
	TASK_SCHEDULED = 7, /* System.Threading.Tasks.TplEventSource */
	TASK_STARTED = 8,
	WORK_ENQUEUED = 30, /* System.Diagnostics.Eventing.FrameworkEventSource */
	WORK_DEQUEUED = 31,
	LONG_RUNNING = 2, /* TaskCreationOptions: not for the pool */
	FIELDS = 8,
};

static const char framework[] = "System.Diagnostics.Eventing.FrameworkEventSource";

struct analyzer {
	struct pool p;
};

static struct analyzer *pool_free(struct analyzer *a)
{
	const struct nt_alloc *al;

	if (!a)
		return NULL;
	al = a->p.shared->alloc;
	an_open_waits_done(&a->p.waits);
	pool_samples_done(&a->p.samples);
	for (size_t i = 0; i < POOL_SOURCES; i++)
		pool_queue_done(&a->p.queues[i], al);
	an_stacks_done(&a->p.stacks);
	an_mem_free(al, a);
	return NULL;
}

static struct analyzer *pool_new(struct an_shared *shared)
{
	struct analyzer *a = an_mem_get(shared->alloc, sizeof(*a));

	if (!a)
		return NULL;
	a->p.shared = shared;
	an_open_waits_init(&a->p.waits, shared->alloc);
	pool_samples_init(&a->p.samples, shared->alloc);
	return a;
}

static bool pool_wants(const struct nt_event_def *def)
{
	uint32_t id = def->event_id;

	switch (def->provider_id) {
	case NT_PROV_SAMPLER:
		return id == SAMPLE;
	case NT_PROV_RUNTIME:
		return an_open_waits_wants(def) || id == WORKER_START || id == WORKER_STOP ||
		       id == ADJUSTMENT || id == WORKER_WAIT || id == MIN_MAX ||
		       id == WORKING_COUNT;
	case NT_PROV_TPL:
		return id == TASK_SCHEDULED || id == TASK_STARTED;
	case NT_PROV_OTHER:
		return (id == WORK_ENQUEUED || id == WORK_DEQUEUED) &&
		       !strcmp(def->provider, framework);
	default:
		return false;
	}
}

/* --- events of the pool --- */

static void on_adjustment(struct pool *p, const struct nt_event *ev)
{
	struct nt_value v[FIELDS];
	size_t n = nt_payload_read(ev, v, FIELDS, NULL);
	struct pool_adjustment a = {
		.time_ns = ev->time_ns,
		.workers = (uint32_t)nt_value_u64(v, n, "NewWorkerThreadCount", 0),
		.reason = (uint32_t)nt_value_u64(v, n, "Reason", 0),
		.throughput = nt_value_f64(v, n, "AverageThroughput", 0),
	};

	if (!nt_value_find(v, n, "Reason"))
		return; /* cut */
	if (a.reason < POOL_REASONS)
		p->by_reason[a.reason]++;
	else
		p->other_reasons++;
	if (!p->adjustments)
		p->first = a;
	else if ((a.reason == POOL_STARVATION || a.reason == POOL_COOPERATIVE) &&
		 a.workers > p->history[(p->adjustments - 1) % POOL_HISTORY].workers)
		p->injected++;
	if (a.workers > p->workers_max)
		p->workers_max = a.workers;
	p->history[p->adjustments++ % POOL_HISTORY] = a;
}

static void on_active(struct pool *p, const struct nt_event *ev, const char *field)
{
	struct nt_value v[FIELDS];
	size_t n = nt_payload_read(ev, v, FIELDS, NULL);

	if (!nt_value_find(v, n, field))
		return;
	p->have_active = true;
	p->active_last = (uint32_t)nt_value_u64(v, n, field, 0);
	if (p->active_last > p->active_max)
		p->active_max = p->active_last;
}

static void on_min_max(struct pool *p, const struct nt_event *ev)
{
	struct nt_value v[FIELDS];
	size_t n = nt_payload_read(ev, v, FIELDS, NULL);
	const struct pool_setting *last =
		p->setting_count ? &p->settings[p->setting_count - 1] : NULL;
	struct pool_setting s = {
		.time_ns = ev->time_ns,
		.min_workers = (uint32_t)nt_value_u64(v, n, "MinWorkerThreads", 0),
		.max_workers = (uint32_t)nt_value_u64(v, n, "MaxWorkerThreads", 0),
		.min_io = (uint32_t)nt_value_u64(v, n, "MinIOCompletionThreads", 0),
		.max_io = (uint32_t)nt_value_u64(v, n, "MaxIOCompletionThreads", 0),
	};

	if (!nt_value_find(v, n, "MaxIOCompletionThreads"))
		return; /* cut */
	if (last && last->min_workers == s.min_workers && last->max_workers == s.max_workers &&
	    last->min_io == s.min_io && last->max_io == s.max_io)
		return;
	if (p->setting_count == POOL_SETTINGS) { /* the newest one counts */
		memmove(&p->settings[0], &p->settings[1],
			sizeof(p->settings) - sizeof(p->settings[0]));
		p->setting_count--;
		p->settings_dropped++;
	}
	p->settings[p->setting_count++] = s;
}

static enum nt_status on_queue(struct pool *p, const struct nt_event *ev, enum pool_source source,
			       const char *field, bool put)
{
	struct nt_value v[FIELDS];
	size_t n = nt_payload_read(ev, v, FIELDS, NULL);
	uint64_t id = nt_value_u64(v, n, field, 0);
	struct pool_queue *q = &p->queues[source];

	if (!put)
		return pool_queue_take(q, p->shared->alloc, id, ev->time_ns);
	if (nt_value_u64(v, n, "TaskCreationOptions", 0) & LONG_RUNNING)
		return NT_OK; /* gets a thread of its own */
	return pool_queue_put(q, p->shared->alloc, id, ev->time_ns);
}

static enum nt_status on_sample(struct pool *p, const struct nt_event *ev)
{
	uint32_t node;
	enum nt_status st = an_calltree_intern(p->shared->tree, ev, &node);

	if (st < 0)
		return st;
	return pool_samples_add(&p->samples, ev->time_ns, ev->thread_id, node,
				an_open_waits_has(&p->waits, ev->thread_id, p->shared->lost));
}

static enum nt_status on_runtime(struct pool *p, const struct nt_event *ev)
{
	if (an_open_waits_wants(ev->def))
		return an_open_waits_event(&p->waits, ev, p->shared->lost);
	p->recorded = true;
	switch (ev->def->event_id) {
	case ADJUSTMENT:
		on_adjustment(p, ev);
		return NT_OK;
	case MIN_MAX:
		on_min_max(p, ev);
		return NT_OK;
	case WORKING_COUNT:
		on_active(p, ev, "Count");
		return NT_OK;
	default:
		on_active(p, ev, "ActiveWorkerThreadCount");
		return NT_OK;
	}
}

static enum nt_status pool_event(struct analyzer *a, const struct nt_event *ev)
{
	struct pool *p = &a->p;

	switch (ev->def->provider_id) {
	case NT_PROV_SAMPLER:
		return on_sample(p, ev);
	case NT_PROV_RUNTIME:
		return on_runtime(p, ev);
	case NT_PROV_TPL:
		return on_queue(p, ev, POOL_TASKS, "TaskID", ev->def->event_id == TASK_SCHEDULED);
	default:
		return on_queue(p, ev, POOL_WORK, "workID", ev->def->event_id == WORK_ENQUEUED);
	}
}

static enum nt_status report(struct analyzer *a, struct an_report *out)
{
	enum nt_status st = pool_report(&a->p, out);

	an_stacks_done(&a->p.stacks);
	return st;
}

static const struct an_provider providers[] = {
	{ "Microsoft-DotNETCore-SampleProfiler", 0, 4 },
	/* Threading; Contention for workers that wait at locks. */
	{ "Microsoft-Windows-DotNETRuntime", 0x10000 | 0x4000, 4 },
	{ 0 },
};

const struct an_class an_class_threadpool = {
	.name = "threadpool",
	.summary = "whether work waits because the pool's threads are blocked, and where",
	.providers = providers,
	.wants = pool_wants,
	.new = pool_new,
	.event = pool_event,
	.report = report,
	.free = pool_free,
	.needs = AN_NEED_ORDER | AN_NEED_STACKS,
	.symptom = "requests wait although the processors are idle",
	.cost = AN_COST_MODERATE,
	.seconds = 60,
	.params = an_params_rows,
};
