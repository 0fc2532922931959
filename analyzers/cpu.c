/* SPDX-License-Identifier: MIT */

/*
 * CPU: which methods run, and which only wait.
 *
 * The runtime's sample profiler stops all managed threads about once a millisecond and writes down
 * every stack, waiting ones included: its samples are wall-clock time.  Who of them was running is
 * decided in cpu_classify.c.  Samples of version 6 files (Universal.Events) are of running threads.
 */

#include "analyzers/cpu_internal.h"
#include "analyzers/grow.h"
#include "nettrace/span.h"

enum { SAMPLE = 0, TYPE_MANAGED = 2 };

static struct analyzer *cpu_free(struct analyzer *a)
{
	const struct nt_alloc *al;

	if (!a)
		return NULL;
	al = a->c.shared->alloc;
	an_mem_free(al, a->c.threads);
	an_mem_free(al, a->c.slots);
	an_mem_free(al, a->c.gaps);
	nt_idmap_done(&a->c.by_id);
	nt_idmap_done(&a->c.by_stack);
	an_mem_free(al, a);
	return NULL;
}

static struct analyzer *cpu_new(struct an_shared *shared)
{
	struct analyzer *a = an_mem_get(shared->alloc, sizeof(*a));

	if (!a)
		return NULL;
	a->c.shared = shared;
	nt_idmap_init(&a->c.by_id, shared->alloc);
	nt_idmap_init(&a->c.by_stack, shared->alloc);
	a->c.gaps = an_mem_array(shared->alloc, CPU_GAP_BUCKETS + 1, sizeof(*a->c.gaps));
	return a->c.gaps ? a : cpu_free(a);
}

static bool cpu_wants(const struct nt_event_def *def)
{
	uint32_t id = def->event_id;

	switch (def->provider_id) {
	case NT_PROV_SAMPLER:
		return id == SAMPLE;
	case NT_PROV_RUNTIME:
		return id == CPU_CONTENTION_START || id == CPU_CONTENTION_STOP ||
		       id == CPU_WAIT_START || id == CPU_WAIT_STOP;
	case NT_PROV_UNIVERSAL_EVENTS:
		return !strcmp(def->name, "cpu");
	default:
		return false;
	}
}

static enum nt_status on_sample(struct cpu *c, const struct nt_event *ev)
{
	struct nt_span s = nt_span_of(ev->payload, ev->payload_bytes);
	const struct an_cpu_sample sample = {
		.time_ns = ev->time_ns,
		.thread_id = ev->thread_id,
		.class = nt_u32(&s) == TYPE_MANAGED ? AN_CPU_RUNNING : AN_CPU_OUTSIDE,
	};
	uint32_t node;
	enum nt_status st = an_calltree_intern(c->shared->tree, ev, &node);

	return st < 0 ? st : cpu_add(c, AN_CPU_SAMPLER, node, &sample);
}

static enum nt_status on_universal(struct cpu *c, const struct nt_event *ev)
{
	struct nt_value v[4];
	size_t n = nt_payload_read(ev, v, 4, NULL);
	uint64_t weight = nt_value_u64(v, n, "Value", 1), ns;
	int64_t interval = ev->trace->sample_interval_ns;
	struct an_cpu_sample sample = {
		.time_ns = ev->time_ns,
		.thread_id = ev->thread_id,
		.thread_name = ev->thread_name,
		.class = AN_CPU_RUNNING,
	};
	uint32_t node;
	enum nt_status st = an_calltree_intern(c->shared->tree, ev, &node);

	if (interval > 0 && !__builtin_mul_overflow(weight, (uint64_t)interval, &ns))
		sample.weight_ns = ns;
	return st < 0 ? st : cpu_add(c, AN_CPU_UNIVERSAL, node, &sample);
}

static enum nt_status cpu_event(struct analyzer *a, const struct nt_event *ev)
{
	if (ev->def->provider_id == NT_PROV_SAMPLER)
		return on_sample(&a->c, ev);
	if (ev->def->provider_id == NT_PROV_UNIVERSAL_EVENTS)
		return on_universal(&a->c, ev);
	return cpu_note_wait(&a->c, ev->thread_id, ev->def->event_id);
}

static enum nt_status report(struct analyzer *a, struct an_report *out)
{
	enum nt_status st = cpu_samples_end(&a->c);

	return st < 0 ? st : cpu_report(&a->c, out);
}

static const struct an_provider providers[] = {
	{ "Microsoft-DotNETCore-SampleProfiler", 0, 4 },
	/* Contention tells waiting threads apart; Loader, Jit and NGen give names. */
	{ "Microsoft-Windows-DotNETRuntime", 0x4000 | 0x8 | 0x10 | 0x20, 4 },
	{ 0 },
};

static const struct an_param params[] = {
	{ "top", "rows of each table; 0: all", "number", "20", "0..1000000" },
	{ "view", "samples that are ranked", "choice", "cpu", "cpu|wall|waiting" },
	{ 0 },
};

const struct an_class an_class_cpu = {
	.name = "cpu",
	.summary = "methods that run, threads that wait, the hottest path",
	.providers = providers,
	.wants = cpu_wants,
	.new = cpu_new,
	.event = cpu_event,
	.report = report,
	.free = cpu_free,
	.needs = AN_NEED_ORDER | AN_NEED_STACKS,
	.symptom = "a processor is busy, or requests are slow and nobody knows where",
	.cost = AN_COST_MODERATE,
	.seconds = 30,
	.params = params,
};
