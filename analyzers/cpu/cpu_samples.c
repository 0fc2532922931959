/* SPDX-License-Identifier: MIT */

/*
 * Samples of any source, counted by thread, stack and state while the trace is read.
 */

#include <stdio.h>

#include "analyzers/cpu/cpu_internal.h"
#include "analyzers/grow.h"

enum {
	MAX_THREADS = 16 * 1024,
	MAX_SLOTS = 100 * 1000,
	MIN_GAPS = 3, /* fewer rounds tell no period */
	ROUND_GAP_NS = 500 * 1000, /* half of the sampler's period */
	PARKED_NS = 50 * 1000 * 1000,
	LONG_NS = 500 * 1000 * 1000,
	MIN_RUN = 8, /* samples; fewer are too few to say that nothing moved */
	MAX_WEIGHT_NS = 50 * 1000 * 1000, /* the sampler was held up: not all of it is known */
	USUAL_INTERVAL_NS = 1000 * 1000,
	MAX_SWITCH_SAMPLES = 10 * 1000 * 1000, /* of one wait */
	IDLE_PERCENT = 2, /* of the time: less is no running thread, */
	BUSY_PERCENT = 90, /* and more is one that did not wait */
};

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
	threads[*ret].process_id = -1;
	c->thread_count++;
	return NT_OK;
}

/* 14, 2, 2 and 32 bits. */
static uint64_t key_of(uint32_t thread, enum an_cpu_source source, enum cpu_level level,
		       uint32_t node)
{
	return ((uint64_t)thread << 4 | (uint64_t)source << 2 | level) << 32 | node;
}

static enum nt_status find_slot(struct cpu *c, uint32_t thread, enum an_cpu_source source,
				enum cpu_level level, uint32_t node, uint32_t *ret)
{
	uint64_t key = key_of(thread, source, level, node);
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
	slots[*ret].source = (uint8_t)source;
	slots[*ret].level = (uint8_t)level;
	slots[*ret].node = node;
	c->slot_count++;
	return NT_OK;
}

/* What is counted in one go. */
struct amount {
	enum an_cpu_source source;
	enum cpu_level level;
	enum cpu_bin bin;
	uint32_t samples;
	uint64_t ns;
};

static enum nt_status count(struct cpu *c, uint32_t thread, uint32_t node, const struct amount *a)
{
	uint32_t slot;
	enum nt_status st;

	if (!a->samples)
		return NT_OK;
	if (c->slot_count >= MAX_SLOTS &&
	    nt_idmap_get(&c->by_stack, key_of(thread, a->source, a->level, node)) ==
		    NT_IDMAP_NONE) {
		c->crowded += a->samples;
		node = AN_NODE_NONE; /* a few more slots a thread at most */
	}
	st = find_slot(c, thread, a->source, a->level, node, &slot);
	if (st < 0)
		return st;
	if (__builtin_add_overflow(c->slots[slot].count[a->bin], a->samples,
				   &c->slots[slot].count[a->bin]))
		c->slots[slot].count[a->bin] = UINT32_MAX;
	c->slots[slot].ns[a->bin] += a->ns;
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

int64_t cpu_round_ns(const struct cpu *c)
{
	uint64_t all = 0, seen = 0;

	for (size_t i = 0; i <= CPU_GAP_BUCKETS; i++)
		all += c->gaps[i];
	if (all < MIN_GAPS)
		return -1;
	for (size_t i = 0; i <= CPU_GAP_BUCKETS; i++) {
		seen += c->gaps[i];
		if (seen * 2 >= all)
			return (int64_t)i * CPU_GAP_NS + CPU_GAP_NS / 2;
	}
	return -1;
}

/* The same, found once for each round: it may be asked for at every sample. */
static int64_t usual_round_ns(struct cpu *c)
{
	if (c->usual_of != c->round_count) {
		c->usual_ns = cpu_round_ns(c);
		c->usual_of = c->round_count;
	}
	return c->usual_ns;
}

/* From that round to the next, or the usual time where that is not known. */
static uint64_t round_ns(struct cpu *c, uint64_t round)
{
	int64_t ns = -1;

	if (round + 1 < c->round_count && c->round_count - round < CPU_ROUNDS)
		ns = c->rounds[(round + 1) % CPU_ROUNDS] - c->rounds[round % CPU_ROUNDS];
	if (ns < 0)
		ns = usual_round_ns(c);
	if (ns > MAX_WEIGHT_NS)
		ns = MAX_WEIGHT_NS;
	return ns > 0 ? (uint64_t)ns : 0;
}

/* --- runs --- */

/* What the OS measured while the sample stood for its thread. */
static enum cpu_level level_of(struct cpu *c, struct cpu_thread *t, uint64_t ns)
{
	const struct an_cpu_time *time = c->shared->cpu_time;
	enum cpu_level level = LEVEL_PARTLY;
	int64_t used;

	if (!time || !ns)
		return LEVEL_UNMEASURED;
	used = time->used_ns(time->ctx, t->id, t->newest_ns, t->newest_ns + (int64_t)ns);
	if (used < 0)
		return LEVEL_UNMEASURED;
	if ((double)used < (double)ns * IDLE_PERCENT / 100)
		level = LEVEL_IDLE;
	else if ((double)used >= (double)ns * BUSY_PERCENT / 100)
		level = LEVEL_BUSY;
	t->used_ns[level] += (uint64_t)used;
	cpu_series_add(&c->series[0], t->newest_ns, t->newest_ns, CPU_KIND_MEASURED, (double)used);
	return level;
}

/* The newest sample's time reaches to the round after it. */
static void weigh_newest(struct cpu *c, struct cpu_thread *t)
{
	struct cpu_run_part *part;
	enum cpu_level level;
	uint64_t ns;

	if (!t->newest_waits)
		return;
	t->newest_waits = false;
	ns = round_ns(c, t->newest_round);
	level = level_of(c, t, ns);
	part = t->newest_managed ? &t->run.managed[level] : &t->run.outside[level];
	part->count++;
	part->ns += ns;
}

static uint32_t count_parts(const struct cpu_run_part parts[LEVELS])
{
	uint32_t n = 0;

	for (unsigned i = 0; i < LEVELS; i++)
		n += parts[i].count;
	return n;
}

static double sum_ns(const struct cpu_run_part parts[LEVELS])
{
	double ns = 0;

	for (unsigned i = 0; i < LEVELS; i++)
		ns += (double)parts[i].ns;
	return ns;
}

static enum nt_status count_part(struct cpu *c, uint32_t thread, uint32_t node, unsigned level,
				 enum cpu_bin bin, const struct cpu_run_part *part)
{
	const struct amount a = { AN_CPU_SAMPLER, (enum cpu_level)level, bin, part->count,
				  part->ns };

	return count(c, thread, node, &a);
}

static enum nt_status end_run(struct cpu *c, uint32_t thread)
{
	const struct cpu_run run = c->threads[thread].run;
	uint32_t managed_count = count_parts(run.managed);
	int64_t length = run.last_ns - run.start_ns;
	bool many = managed_count + count_parts(run.outside) >= MIN_RUN;
	enum cpu_bin managed = BIN_MANAGED, outside = BIN_OUTSIDE;
	enum nt_status st = NT_OK;

	if (!run.open)
		return NT_OK;
	if (many && length >= LONG_NS) {
		managed = BIN_MANAGED_LONG;
		outside = managed_count ? BIN_OUTSIDE_MIXED : BIN_OUTSIDE_LONG;
	} else if (many && length >= PARKED_NS && !managed_count) {
		outside = BIN_OUTSIDE_PARKED;
	}
	c->threads[thread].run = (struct cpu_run){ 0 };
	cpu_series_add(&c->series[0], run.start_ns, run.last_ns, managed, sum_ns(run.managed));
	cpu_series_add(&c->series[0], run.start_ns, run.last_ns, outside, sum_ns(run.outside));
	for (unsigned i = 0; i < LEVELS && st == NT_OK; i++) {
		st = count_part(c, thread, run.node, i, managed, &run.managed[i]);
		if (st == NT_OK)
			st = count_part(c, thread, run.node, i, outside, &run.outside[i]);
	}
	return st;
}

static bool is_waiting_by_events(const struct cpu *c, const struct cpu_thread *t)
{
	/* After a loss the end of the wait may be among what is missing. */
	return (t->locks || t->waits) && t->lost == c->shared->lost;
}

/* --- the way in --- */

static enum nt_status add_to_run(struct cpu *c, uint32_t thread, uint32_t node,
				 const struct an_cpu_sample *sample)
{
	struct cpu_thread *t = &c->threads[thread];
	struct cpu_run *run = &t->run;
	const struct amount waits = { AN_CPU_SAMPLER, LEVEL_UNMEASURED, BIN_EVENT_WAIT, 1, 0 };
	enum nt_status st = NT_OK;

	note_round(c, sample->time_ns);
	weigh_newest(c, t);
	if (is_waiting_by_events(c, t)) {
		st = end_run(c, thread);
		return st < 0 ? st : count(c, thread, node, &waits);
	}
	if (run->open && run->node != node)
		st = end_run(c, thread);
	if (st < 0)
		return st;
	if (!run->open) {
		run->open = true;
		run->node = node;
		run->start_ns = sample->time_ns;
	}
	run->last_ns = sample->time_ns;
	t->newest_ns = sample->time_ns;
	t->newest_managed = sample->class == AN_CPU_RUNNING;
	t->newest_waits = true;
	t->newest_round = c->round_count - 1;
	return NT_OK;
}

static void note_thread(struct cpu_thread *t, const struct an_cpu_sample *sample)
{
	if (!t->sampled || sample->time_ns < t->first_ns)
		t->first_ns = sample->time_ns;
	if (!t->sampled || sample->time_ns > t->last_ns)
		t->last_ns = sample->time_ns;
	t->sampled = true;
	if (sample->process_id > 0)
		t->process_id = sample->process_id;
	if (sample->thread_name && !*t->name)
		snprintf(t->name, sizeof(t->name), "%s", sample->thread_name);
}

/*
 * How many samples a wait is worth: as many as a sampler of all threads would have taken, so that
 * waits weigh by their length.
 */
static uint32_t note_switch(struct cpu *c, struct cpu_thread *t, uint64_t ns)
{
	int64_t interval = c->shared->trace.sample_interval_ns;
	uint64_t n = interval > 0 ? ns / (uint64_t)interval : ns / USUAL_INTERVAL_NS;

	c->switches++;
	if (!__builtin_add_overflow(c->blocked_ns, ns, &c->blocked_ns))
		t->blocked_ns += ns;
	return n > MAX_SWITCH_SAMPLES ? MAX_SWITCH_SAMPLES : n ? (uint32_t)n : 1;
}

enum nt_status cpu_add(struct cpu *c, enum an_cpu_source source, uint32_t node,
		       const struct an_cpu_sample *sample)
{
	const struct an_cpu_options *o = &c->shared->options.cpu;
	uint32_t n = sample->count ? sample->count : 1;
	struct amount a = { .source = source, .samples = n, .ns = sample->weight_ns * n };
	uint32_t thread;
	enum nt_status st = find_thread(c, sample->thread_id, &thread);

	if (st < 0)
		return st;
	if (sample->time_ns < o->from_ns || (o->to_ns && sample->time_ns >= o->to_ns)) {
		c->outside[source] += n;
		return NT_OK;
	}
	note_thread(&c->threads[thread], sample);
	if (source == AN_CPU_UNIVERSAL && sample->class == AN_CPU_BLOCKED)
		a.samples = note_switch(c, &c->threads[thread], sample->weight_ns);
	c->samples[source] += a.samples;
	c->blocked[source] = c->blocked[source] || sample->class == AN_CPU_BLOCKED;
	if (source == AN_CPU_SAMPLER)
		return add_to_run(c, thread, node, sample);
	if (source == AN_CPU_PERF && sample->weight_ns && sample->class == AN_CPU_RUNNING &&
	    !__builtin_add_overflow(c->weight_ns, a.ns, &c->weight_ns))
		c->weighed += n;
	a.bin = sample->class == AN_CPU_RUNNING	  ? BIN_MANAGED
		: sample->class == AN_CPU_OUTSIDE ? BIN_OUTSIDE
						  : BIN_EVENT_WAIT;
	cpu_series_add(&c->series[1], sample->time_ns, sample->time_ns, a.bin, (double)a.ns);
	return count(c, thread, node, &a);
}

enum nt_status an_cpu_add_sample(struct analyzer *cpu, enum an_cpu_source source,
				 const struct an_cpu_sample *sample)
{
	struct cpu *c = &cpu->c;
	uint32_t node;
	enum nt_status st = an_calltree_intern_frames(c->shared->tree, 0, sample->frames,
						      sample->frame_count, &node);

	return st < 0 ? st : cpu_add(c, source, node, sample);
}

void an_cpu_add_source(struct analyzer *cpu, enum an_cpu_source source, uint64_t period_ns)
{
	cpu->c.period_ns[source] = period_ns;
}

enum nt_status cpu_note_wait(struct cpu *c, uint64_t thread_id, uint32_t event_id)
{
	uint32_t thread;
	struct cpu_thread *t;
	enum nt_status st = find_thread(c, thread_id, &thread);

	if (st < 0)
		return st;
	t = &c->threads[thread];
	if (t->lost != c->shared->lost) { /* nothing before the loss is sure any more */
		t->locks = t->waits = 0;
		t->lost = c->shared->lost;
	}
	switch (event_id) {
	case CPU_CONTENTION_START:
		t->locks = 1; /* never nested */
		break;
	case CPU_CONTENTION_STOP:
		t->locks = 0;
		break;
	case CPU_WAIT_START:
		t->waits++;
		break;
	default:
		if (t->waits)
			t->waits--;
	}
	return NT_OK;
}

enum nt_status cpu_samples_end(struct cpu *c)
{
	enum nt_status st = NT_OK;

	for (size_t i = 0; i < c->thread_count && st == NT_OK; i++) {
		weigh_newest(c, &c->threads[i]);
		st = end_run(c, (uint32_t)i);
	}
	return st;
}
