/* SPDX-License-Identifier: MIT */

/* What all samples come to: which of them count, their states, their time, by thread. */

#include "analyzers/cpu/cpu_internal.h"
#include "analyzers/grow.h"

enum { NAME_BYTES = 512 };

int64_t cpu_interval_ns(const struct cpu *c, enum an_cpu_source source)
{
	switch (source) {
	case AN_CPU_SAMPLER:
		return cpu_round_ns(c);
	case AN_CPU_UNIVERSAL:
		return c->shared->trace.sample_interval_ns;
	case AN_CPU_PERF:
		if (c->weighed)
			return (int64_t)(c->weight_ns / c->weighed);
		return c->period_ns[source] ? (int64_t)c->period_ns[source] : -1;
	default:
		return -1;
	}
}

int64_t cpu_observed_ns(const struct cpu *c)
{
	const struct an_cpu_options *o = &c->shared->options.cpu;
	int64_t end = an_observed_ns(c->shared), from = o->from_ns > 0 ? o->from_ns : 0;

	if (end < 0)
		return -1;
	if (o->to_ns && o->to_ns < end)
		end = o->to_ns;
	return end > from ? end - from : -1;
}

bool cpu_was_on(const struct cpu *c, enum an_cpu_source source)
{
	return c->samples[source] || c->outside[source] || c->period_ns[source];
}

/* CPU samples tell best who runs, wall-clock samples alone who waits. */
enum an_cpu_source cpu_choose_source(const struct cpu *c)
{
	if (c->shared->options.view != AN_VIEW_CPU && cpu_was_on(c, AN_CPU_SAMPLER))
		return AN_CPU_SAMPLER;
	for (unsigned i = AN_CPU_SOURCES; i-- > 1;)
		if (cpu_was_on(c, (enum an_cpu_source)i))
			return (enum an_cpu_source)i;
	return AN_CPU_NONE;
}

/* Samples of running threads tell it only with context switches and the like between them. */
bool cpu_knows_waits(const struct cpu *c, enum an_cpu_source source)
{
	return source == AN_CPU_SAMPLER ? cpu_was_on(c, source) : c->blocked[source];
}

/* --- what stacks hold --- */

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static unsigned mark_of(const struct cpu *c, const char *module, const char *name)
{
	const struct an_cpu_options *o = &c->shared->options.cpu;
	unsigned marks = 0;

	if (o->include && o->include->matches(o->include->ctx, name))
		marks |= MARK_INCLUDED;
	if (o->exclude && o->exclude->matches(o->exclude->ctx, name))
		marks |= MARK_EXCLUDED;
	if (begins(module, "libclrjit"))
		marks |= MARK_JIT;
	if (begins(module, "libclrgc") || begins(name, "WKS::") || begins(name, "SVR::"))
		marks |= MARK_GC;
	return marks;
}

static unsigned mark_of_node(const struct cpu *c, uint32_t node, uint8_t *by_method)
{
	const struct an_method *m = an_calltree_method(c->shared->tree, node);
	const struct an_node *n = an_calltree_node(c->shared->tree, node);
	uint64_t addr = n->address - !n->leaf;
	char buf[NAME_BYTES];

	if (m && by_method[m->index])
		return by_method[m->index];
	if (m) {
		unsigned marks = MARK_KNOWN | mark_of(c, m->module, m->name);

		if (!(marks & (MARK_INCLUDED | MARK_EXCLUDED)))
			marks |= mark_of(c, m->module, m->raw);
		by_method[m->index] = (uint8_t)marks;
		return marks;
	}
	if (n->other)
		return 0;
	an_methods_describe_at(c->shared->methods, addr, n->epoch, buf, sizeof(buf));
	return mark_of(c, an_methods_module_at(c->shared->methods, addr, n->epoch), buf);
}

static bool needs_marks(const struct cpu *c, enum an_cpu_source source)
{
	const struct an_cpu_options *o = &c->shared->options.cpu;

	return o->include || o->exclude || source != AN_CPU_SAMPLER;
}

/* Callers come first: what holds of them holds of all their callees. */
static enum nt_status mark_nodes(const struct cpu *c, struct cpu_totals *t)
{
	const struct nt_alloc *al = c->shared->alloc;
	size_t n = an_calltree_count(c->shared->tree);
	uint8_t *by_method;

	if (!needs_marks(c, t->source))
		return NT_OK;
	t->marks = an_mem_array(al, n, 1);
	by_method = an_mem_array(al, an_methods_count(c->shared->methods), 1);
	for (size_t i = 1; i < n && t->marks && by_method; i++)
		t->marks[i] =
			(uint8_t)(mark_of_node(c, (uint32_t)i, by_method) |
				  t->marks[an_calltree_node(c->shared->tree, (uint32_t)i)->parent]);
	an_mem_free(al, by_method);
	return t->marks && by_method ? NT_OK : NT_ENOMEM;
}

static bool counts(const struct cpu *c, const struct cpu_totals *t, const struct cpu_slot *s)
{
	const struct an_cpu_options *o = &c->shared->options.cpu;
	const struct cpu_thread *thread = &c->threads[s->thread];
	unsigned marks = t->marks ? t->marks[s->node] : 0;

	if (o->one_thread && thread->id != o->thread_id)
		return false;
	if (o->one_process && thread->process_id != o->process_id)
		return false;
	if (o->include && !(marks & MARK_INCLUDED))
		return false;
	return !(marks & MARK_EXCLUDED);
}

/* CPU that goes into the runtime itself; only profilers of the operating system see it. */
static void count_runtime(const struct cpu *c, struct cpu_totals *t, const struct cpu_slot *s,
			  uint32_t n)
{
	const char *name = c->threads[s->thread].name;
	unsigned marks = t->marks ? t->marks[s->node] : 0;

	if (s->source == AN_CPU_SAMPLER)
		return;
	if (marks & MARK_JIT || begins(name, ".NET Tiered Com"))
		t->jit += n;
	else if (marks & MARK_GC || begins(name, ".NET Server GC") || begins(name, ".NET BGC"))
		t->gc += n;
}

/* --- states and time --- */

/* The state of a slot's samples of one kind, and the time of those that ran. */
static enum cpu_state state_of(struct cpu_judge *j, const struct cpu_totals *t,
			       const struct cpu_slot *s, enum cpu_bin bin, uint64_t *ret_ns)
{
	const struct cpu_thread_total *thread = &t->threads[s->thread];
	enum cpu_state state = cpu_judge_state(j, s, bin);
	double on_ns = thread->level_on_ns[s->level];
	double used_ns = (double)j->cpu->threads[s->thread].used_ns[s->level];

	*ret_ns = s->ns[bin];
	if (state != CPU_ON || s->level == LEVEL_UNMEASURED)
		return state;
	*ret_ns = on_ns > 0 ? (uint64_t)((double)s->ns[bin] * used_ns / on_ns) : 0;
	return state;
}

/* How long threads seem to have run while their use was measured. */
static void sum_levels(const struct cpu *c, struct cpu_judge *j, struct cpu_totals *t)
{
	for (size_t i = 0; i < c->slot_count && t->source == AN_CPU_SAMPLER; i++) {
		const struct cpu_slot *s = &c->slots[i];

		if (s->source != AN_CPU_SAMPLER || s->level == LEVEL_UNMEASURED || !counts(c, t, s))
			continue;
		for (unsigned bin = 0; bin < BINS; bin++) {
			if (!s->count[bin])
				continue;
			t->measured += s->count[bin];
			if (cpu_judge_state(j, s, (enum cpu_bin)bin) == CPU_ON)
				t->threads[s->thread].level_on_ns[s->level] += (double)s->ns[bin];
		}
	}
}

static void count_slot(struct cpu_judge *j, struct cpu_totals *t, struct an_profile *p,
		       const struct cpu_slot *s)
{
	bool move = j->cpu->shared->options.view == AN_VIEW_CPU;
	struct cpu_thread_total *thread = &t->threads[s->thread];

	for (unsigned bin = 0; bin < BINS; bin++) {
		uint32_t node = s->node, n = s->count[bin];
		enum cpu_state state;
		uint64_t ns;

		if (!n)
			continue;
		state = state_of(j, t, s, (enum cpu_bin)bin, &ns);
		t->bin_ns[bin] += (double)s->ns[bin];
		t->bin_on_ns[bin] += state == CPU_ON ? (double)ns : 0;
		t->all += n;
		thread->all += n;
		t->samples[state] += n;
		thread->samples[state] += n;
		if (cpu_judge_leaf(j, node) == LEAF_UNNAMED)
			t->unresolved += n;
		if (state == CPU_ON)
			count_runtime(j->cpu, t, s, n);
		if (state == CPU_ON && cpu_judge_leaf(j, node) == LEAF_SPIN)
			t->spinning += n;
		if (move && state == CPU_ON)
			node = cpu_judge_worker(j, node);
		if (node != s->node)
			t->moved[node] += n;
		an_profile_add(p, node, state, n);
		if (state != CPU_ON)
			continue;
		thread->on_ns += ns;
		an_profile_add(p, node, CPU_ON_NS, ns);
	}
}

/* What the OS measured counts more than what samples say. */
static void measure_threads(const struct cpu *c, struct cpu_totals *t)
{
	const struct an_cpu_time *time = c->shared->cpu_time;
	int64_t interval = cpu_interval_ns(c, t->source);

	for (size_t i = 0; i < c->thread_count && time; i++) {
		const struct cpu_thread *x = &c->threads[i];
		int64_t used = t->threads[i].all
				       ? time->used_ns(time->ctx, x->id, x->first_ns,
						       x->last_ns + (interval > 0 ? interval : 0))
				       : -1;

		if (used < 0)
			continue;
		t->threads[i].on_ns = (uint64_t)used;
		t->threads[i].measured = true;
	}
}

/*
 * A thread that is ready but has no core looks like a running one.  Together they cannot have used
 * more than all cores all the time.
 */
static void sum_time(const struct cpu *c, struct cpu_totals *t)
{
	double most = (double)cpu_observed_ns(c) * (double)c->shared->trace.processors;
	double sum = 0, measured = 0;

	measure_threads(c, t);
	t->timed = cpu_interval_ns(c, t->source) > 0;
	for (size_t i = 0; i < c->thread_count; i++) {
		sum += (double)t->threads[i].on_ns;
		if (t->threads[i].measured)
			measured += (double)t->threads[i].on_ns;
	}
	t->on_ns = (uint64_t)sum;
	if (most <= 0 || sum <= most || sum <= measured)
		return;
	t->crowded = true;
	t->on_ns = (uint64_t)most;
	most = most > measured ? most - measured : 0;
	for (size_t i = 0; i < c->thread_count; i++)
		if (!t->threads[i].measured)
			t->threads[i].on_ns =
				(uint64_t)((double)t->threads[i].on_ns * most / (sum - measured));
}

/* Sorts all samples into states; in the CPU view work is moved out of calls that only wait. */
enum nt_status cpu_sum(const struct cpu *c, struct cpu_judge *j, struct cpu_totals *t,
		       struct an_profile *p)
{
	enum nt_status st = mark_nodes(c, t);

	if (st < 0)
		return st;
	sum_levels(c, j, t);
	t->left_out += c->outside[t->source];
	for (size_t i = 0; i < c->slot_count; i++) {
		const struct cpu_slot *s = &c->slots[i];

		if (s->source != t->source)
			continue;
		if (counts(c, t, s)) {
			count_slot(j, t, p, s);
			continue;
		}
		for (unsigned bin = 0; bin < BINS; bin++)
			t->left_out += s->count[bin];
	}
	sum_time(c, t);
	t->by_time = t->measured && t->measured * 2 >= t->all;
	return NT_OK;
}

enum nt_status cpu_totals_init(struct cpu_totals *t, const struct cpu *c)
{
	*t = (struct cpu_totals){ .source = cpu_choose_source(c) };
	t->knows_waits = cpu_knows_waits(c, t->source);
	t->moved = an_mem_array(c->shared->alloc, an_calltree_count(c->shared->tree),
				sizeof(*t->moved));
	t->threads = an_mem_array(c->shared->alloc, c->thread_count, sizeof(*t->threads));
	if (t->threads && t->moved)
		return NT_OK;
	cpu_totals_done(t, c);
	return NT_ENOMEM;
}

void cpu_totals_done(struct cpu_totals *t, const struct cpu *c)
{
	an_mem_free(c->shared->alloc, t->threads);
	an_mem_free(c->shared->alloc, t->marks);
	an_mem_free(c->shared->alloc, t->moved);
}
