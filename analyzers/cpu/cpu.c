/* SPDX-License-Identifier: MIT */

/*
 * CPU: which methods run, and which only wait.
 *
 * The runtime's sample profiler stops all managed threads about once a millisecond and writes down
 * every stack, waiting ones included: its samples are wall-clock time.  Who of them was running is
 * decided in cpu_classify.c.  Samples of version 6 files (Universal.Events) are of running threads.
 */

#include "analyzers/cpu/cpu_internal.h"
#include "analyzers/grow.h"
#include "nettrace/span.h"

enum { SAMPLE = 0, TYPE_MANAGED = 2, MAX_PROCESSES = 4096 };

static struct analyzer *cpu_free(struct analyzer *a)
{
	const struct nt_alloc *al;

	if (!a)
		return NULL;
	al = a->c.shared->alloc;
	an_mem_free(al, a->c.threads);
	an_mem_free(al, a->c.slots);
	an_mem_free(al, a->c.gaps);
	an_mem_free(al, a->c.processes);
	nt_idmap_done(&a->c.by_pid);
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
	nt_idmap_init(&a->c.by_pid, shared->alloc);
	a->c.gaps = an_mem_array(shared->alloc, CPU_GAP_BUCKETS + 1, sizeof(*a->c.gaps));
	return a->c.gaps ? a : cpu_free(a);
}

static bool is_process_event(const char *name)
{
	return !strcmp(name, "ExistingProcess") || !strcmp(name, "ProcessCreate") ||
	       !strcmp(name, "ProcessExit");
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
		return !strcmp(def->name, "cpu") || !strcmp(def->name, "cswitch");
	case NT_PROV_UNIVERSAL_SYSTEM:
		return is_process_event(def->name);
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

/* --- files of perf-based recorders --- */

/* NULL: out of memory, or no room for one more (then *ret_status is NT_OK). */
static struct cpu_process *find_process(struct cpu *c, int64_t id, enum nt_status *ret_status)
{
	uint32_t i = nt_idmap_get(&c->by_pid, (uint64_t)id);
	struct cpu_process *processes;

	*ret_status = NT_OK;
	if (i != NT_IDMAP_NONE)
		return &c->processes[i];
	if (id < 0 || c->process_count >= MAX_PROCESSES)
		return NULL;
	*ret_status = NT_ENOMEM;
	processes = an_mem_grow(c->shared->alloc, c->processes, &c->process_cap,
				c->process_count + 1, sizeof(*processes));
	if (!processes)
		return NULL;
	c->processes = processes;
	i = (uint32_t)c->process_count;
	if (nt_idmap_put(&c->by_pid, (uint64_t)id, i) < 0)
		return NULL;
	processes[i].id = id;
	c->process_count++;
	*ret_status = NT_OK;
	return &processes[i];
}

static enum nt_status on_process(struct cpu *c, const struct nt_event *ev)
{
	struct nt_value v[8];
	size_t n = nt_payload_read(ev, v, 8, NULL);
	const struct nt_value *name = nt_value_find(v, n, "Name");
	enum nt_status st;
	struct cpu_process *process = find_process(c, ev->process_id, &st);

	if (!process)
		return st;
	if (!strcmp(ev->def->name, "ProcessExit"))
		process->ended = true;
	else if (name && !*process->name)
		nt_value_text(name, process->name, sizeof(process->name));
	return NT_OK;
}

/* A context switch: for so many ticks the thread that comes back was off the CPU. */
static enum nt_status on_switch(struct cpu *c, uint32_t node, uint64_t ticks,
				struct an_cpu_sample *sample, const struct nt_event *ev)
{
	double ns = (double)ticks * 1e9 / (double)ev->trace->ticks_per_second;

	sample->class = AN_CPU_BLOCKED;
	sample->weight_ns = ns < 1e18 ? (uint64_t)ns : 0;
	return cpu_add(c, AN_CPU_UNIVERSAL, node, sample);
}

static enum nt_status on_universal(struct cpu *c, const struct nt_event *ev)
{
	struct nt_value v[4];
	size_t n = nt_payload_read(ev, v, 4, NULL);
	uint64_t weight = nt_value_u64(v, n, "Value", 1), ns;
	bool is_switch = !strcmp(ev->def->name, "cswitch");
	int64_t interval = ev->trace->sample_interval_ns;
	struct an_cpu_sample sample = {
		.time_ns = ev->time_ns,
		.thread_id = ev->thread_id,
		.process_id = ev->process_id,
		.thread_name = ev->thread_name,
		.class = AN_CPU_RUNNING,
	};
	uint32_t node;
	enum nt_status st = an_calltree_intern(c->shared->tree, ev, &node);

	if (st == NT_OK)
		find_process(c, ev->process_id, &st);
	if (st < 0)
		return st;
	if (is_switch && !nt_value_find(v, n, "Value"))
		return NT_OK; /* cut */
	if (is_switch)
		return on_switch(c, node, weight, &sample, ev);
	if (interval > 0 && !__builtin_mul_overflow(weight, (uint64_t)interval, &ns))
		sample.weight_ns = ns;
	return cpu_add(c, AN_CPU_UNIVERSAL, node, &sample);
}

static enum nt_status cpu_event(struct analyzer *a, const struct nt_event *ev)
{
	if (ev->def->provider_id == NT_PROV_SAMPLER)
		return on_sample(&a->c, ev);
	if (ev->def->provider_id == NT_PROV_UNIVERSAL_EVENTS)
		return on_universal(&a->c, ev);
	if (ev->def->provider_id == NT_PROV_UNIVERSAL_SYSTEM)
		return on_process(&a->c, ev);
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
