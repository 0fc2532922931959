/* SPDX-License-Identifier: MIT */

/*
 * CPU: which methods run, and which only wait.
 *
 * The runtime's sample profiler stops all managed threads about once a millisecond and writes down
 * every stack, waiting ones included: its samples are wall-clock time.  Who of them was running is
 * decided in cpu_classify.c.  Samples of version 6 files (Universal.Events) are of running threads.
 */

#include <stdio.h>

#include "analyzers/cpu_internal.h"
#include "analyzers/grow.h"
#include "nettrace/span.h"

enum {
	MAX_THREADS = 16 * 1024,
	MAX_SLOTS = 100 * 1000,
	SAMPLE = 0, /* ids of events */
	CONTENTION_START = 81,
	CONTENTION_STOP = 91,
	WAIT_START = 301,
	WAIT_STOP = 302,
	TYPE_MANAGED = 2,
	ROUND_GAP_NS = 500 * 1000, /* half of the sampler's period */
	PARKED_NS = 50 * 1000 * 1000,
	LONG_NS = 500 * 1000 * 1000,
	MIN_RUN = 8, /* samples; fewer are too few to say that nothing moved */
	MAX_WEIGHT_NS = 50 * 1000 * 1000, /* the sampler was held up: not all of it is known */
};

struct analyzer {
	struct cpu c;
};

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
		return id == CONTENTION_START || id == CONTENTION_STOP || id == WAIT_START ||
		       id == WAIT_STOP;
	case NT_PROV_UNIVERSAL_EVENTS:
		return !strcmp(def->name, "cpu");
	default:
		return false;
	}
}

/* --- threads and slots --- */

/* Threads beyond the cap share the last place. */
static enum nt_status find_thread(struct cpu *c, uint64_t id, uint32_t *ret)
{
	struct cpu_thread *threads;

	*ret = nt_idmap_get(&c->by_id, id);
	if (*ret != NT_IDMAP_NONE)
		return NT_OK;
	*ret = MAX_THREADS - 1;
	if (c->thread_count >= MAX_THREADS)
		return NT_OK;
	threads = an_mem_grow(c->shared->alloc, c->threads, &c->thread_cap, c->thread_count + 1,
			      sizeof(*threads));
	if (!threads)
		return NT_ENOMEM;
	c->threads = threads;
	*ret = (uint32_t)c->thread_count;
	if (nt_idmap_put(&c->by_id, id, *ret) < 0)
		return NT_ENOMEM;
	threads[*ret].id = *ret == MAX_THREADS - 1 ? UINT64_MAX : id;
	c->thread_count++;
	return NT_OK;
}

static enum nt_status find_slot(struct cpu *c, uint32_t thread, uint32_t node, uint32_t *ret)
{
	uint64_t key = (uint64_t)thread << 32 | node;
	struct cpu_slot *slots;

	*ret = nt_idmap_get(&c->by_stack, key);
	if (*ret != NT_IDMAP_NONE)
		return NT_OK;
	slots = an_mem_grow(c->shared->alloc, c->slots, &c->slot_cap, c->slot_count + 1,
			    sizeof(*slots));
	if (!slots)
		return NT_ENOMEM;
	c->slots = slots;
	*ret = (uint32_t)c->slot_count;
	if (nt_idmap_put(&c->by_stack, key, *ret) < 0)
		return NT_ENOMEM;
	slots[*ret].thread = thread;
	slots[*ret].node = node;
	c->slot_count++;
	return NT_OK;
}

static enum nt_status count(struct cpu *c, uint32_t thread, uint32_t node, enum cpu_bin bin,
			    uint32_t samples, uint64_t ns)
{
	uint32_t slot;
	enum nt_status st;

	if (!samples)
		return NT_OK;
	if (c->slot_count >= MAX_SLOTS &&
	    nt_idmap_get(&c->by_stack, (uint64_t)thread << 32 | node) == NT_IDMAP_NONE) {
		c->crowded += samples;
		node = AN_NODE_NONE; /* one more slot a thread at most */
	}
	st = find_slot(c, thread, node, &slot);
	if (st < 0)
		return st;
	c->slots[slot].count[bin] += samples;
	c->slots[slot].ns[bin] += ns;
	return NT_OK;
}

/* --- rounds --- */

static void note_round(struct cpu *c, int64_t time_ns)
{
	int64_t gap = c->round_count ? time_ns - c->rounds[(c->round_count - 1) % CPU_ROUNDS] : 0;

	if (c->round_count && time_ns - c->last_sample_ns < ROUND_GAP_NS) {
		c->last_sample_ns = time_ns;
		return;
	}
	c->last_sample_ns = time_ns;
	c->rounds[c->round_count++ % CPU_ROUNDS] = time_ns;
	if (gap > 0 && gap / CPU_GAP_NS < CPU_GAP_BUCKETS)
		c->gaps[gap / CPU_GAP_NS]++;
	else if (gap > 0)
		c->gaps[CPU_GAP_BUCKETS]++;
}

/* From that round to the next, or the usual time where that is not known. */
static uint64_t round_ns(const struct cpu *c, uint64_t round)
{
	int64_t ns = -1;

	if (round + 1 < c->round_count && c->round_count - round < CPU_ROUNDS)
		ns = c->rounds[(round + 1) % CPU_ROUNDS] - c->rounds[round % CPU_ROUNDS];
	if (ns < 0)
		ns = cpu_interval_ns(c);
	if (ns > MAX_WEIGHT_NS)
		ns = MAX_WEIGHT_NS;
	return ns > 0 ? (uint64_t)ns : 0;
}

/* --- runs --- */

/* The newest sample's time reaches to the round after it. */
static void weigh_last(const struct cpu *c, struct cpu_thread *t)
{
	uint64_t ns;

	if (!t->last_counts)
		return;
	t->last_counts = false;
	ns = round_ns(c, t->last_round);
	if (t->last_managed)
		t->run.managed_ns += ns;
	else
		t->run.outside_ns += ns;
}

static enum nt_status end_run(struct cpu *c, uint32_t thread)
{
	const struct cpu_run run = c->threads[thread].run;
	int64_t length = run.last_ns - run.start_ns;
	bool many = run.managed + run.outside >= MIN_RUN;
	enum cpu_bin managed = BIN_MANAGED, outside = BIN_OUTSIDE;
	enum nt_status st;

	if (many && length >= LONG_NS) {
		managed = BIN_MANAGED_LONG;
		outside = run.managed ? BIN_OUTSIDE_MIXED : BIN_OUTSIDE_LONG;
	} else if (many && length >= PARKED_NS && !run.managed) {
		outside = BIN_OUTSIDE_PARKED;
	}
	c->threads[thread].run = (struct cpu_run){ 0 };
	st = count(c, thread, run.node, managed, run.managed, run.managed_ns);
	if (st == NT_OK)
		st = count(c, thread, run.node, outside, run.outside, run.outside_ns);
	return st;
}

static bool is_waiting_by_events(const struct cpu *c, const struct cpu_thread *t)
{
	/* After a loss the end of the wait may be among what is missing. */
	return (t->locks || t->waits) && t->lost == c->shared->lost;
}

static enum nt_status on_sample(struct cpu *c, const struct nt_event *ev)
{
	struct nt_span s = nt_span_of(ev->payload, ev->payload_bytes);
	bool managed = nt_u32(&s) == TYPE_MANAGED;
	uint32_t thread, node;
	struct cpu_thread *t;
	struct cpu_run *run;
	enum nt_status st = an_calltree_intern(c->shared->tree, ev, &node);

	if (st == NT_OK)
		st = find_thread(c, ev->thread_id, &thread);
	if (st < 0)
		return st;
	c->source = CPU_SOURCE_SAMPLER;
	c->samples++;
	note_round(c, ev->time_ns);
	t = &c->threads[thread];
	t->samples++;
	weigh_last(c, t);
	run = &t->run;
	if (is_waiting_by_events(c, t)) {
		st = end_run(c, thread);
		return st < 0 ? st : count(c, thread, node, BIN_EVENT_WAIT, 1, 0);
	}
	if ((run->managed || run->outside) && run->node != node) {
		st = end_run(c, thread);
		if (st < 0)
			return st;
	}
	if (!run->managed && !run->outside) {
		run->node = node;
		run->start_ns = ev->time_ns;
	}
	run->last_ns = ev->time_ns;
	run->managed += managed;
	run->outside += !managed;
	t->last_managed = managed;
	t->last_counts = true;
	t->last_round = c->round_count - 1;
	return NT_OK;
}

static enum nt_status on_universal(struct cpu *c, const struct nt_event *ev)
{
	struct nt_value v[4];
	size_t n = nt_payload_read(ev, v, 4, NULL);
	uint64_t weight = nt_value_u64(v, n, "Value", 1), ns;
	int64_t interval = ev->trace->sample_interval_ns;
	uint32_t thread, node;
	enum nt_status st = an_calltree_intern(c->shared->tree, ev, &node);

	if (st == NT_OK)
		st = find_thread(c, ev->thread_id, &thread);
	if (st < 0)
		return st;
	if (c->source == CPU_SOURCE_SAMPLER)
		return NT_OK; /* two clocks in one section would not add up */
	c->source = CPU_SOURCE_UNIVERSAL;
	c->samples++;
	if (ev->thread_name && !*c->threads[thread].name)
		snprintf(c->threads[thread].name, sizeof(c->threads[thread].name), "%s",
			 ev->thread_name);
	c->threads[thread].samples++;
	if (interval <= 0 || __builtin_mul_overflow(weight, (uint64_t)interval, &ns))
		ns = 0;
	return count(c, thread, node, BIN_MANAGED, 1, ns);
}

static enum nt_status on_wait(struct cpu *c, const struct nt_event *ev)
{
	uint32_t thread;
	struct cpu_thread *t;
	enum nt_status st = find_thread(c, ev->thread_id, &thread);

	if (st < 0)
		return st;
	t = &c->threads[thread];
	if (t->lost != c->shared->lost) { /* nothing before the loss is sure any more */
		t->locks = t->waits = 0;
		t->lost = c->shared->lost;
	}
	switch (ev->def->event_id) {
	case CONTENTION_START:
		t->locks = 1; /* never nested */
		break;
	case CONTENTION_STOP:
		t->locks = 0;
		break;
	case WAIT_START:
		t->waits++;
		break;
	default:
		if (t->waits)
			t->waits--;
	}
	return NT_OK;
}

static enum nt_status cpu_event(struct analyzer *a, const struct nt_event *ev)
{
	if (ev->def->provider_id == NT_PROV_SAMPLER)
		return on_sample(&a->c, ev);
	if (ev->def->provider_id == NT_PROV_UNIVERSAL_EVENTS)
		return on_universal(&a->c, ev);
	return on_wait(&a->c, ev);
}

static enum nt_status report(struct analyzer *a, struct an_report *out)
{
	struct cpu *c = &a->c;

	for (size_t i = 0; i < c->thread_count; i++) {
		enum nt_status st;

		weigh_last(c, &c->threads[i]);
		st = end_run(c, (uint32_t)i);
		if (st < 0)
			return st;
	}
	return cpu_report(c, out);
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
