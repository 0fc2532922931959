/* SPDX-License-Identifier: MIT */

/* The CPU section of the report, and its findings. */

#include <inttypes.h>

#include "analyzers/cpu_internal.h"
#include "analyzers/grow.h"

enum { MAX_HOT_FRAMES = 512, NAME_BYTES = 512 };

int64_t cpu_interval_ns(const struct cpu *c, enum an_cpu_source source)
{
	switch (source) {
	case AN_CPU_SAMPLER:
		return cpu_round_ns(c);
	case AN_CPU_UNIVERSAL:
		return c->shared->trace.sample_interval_ns;
	case AN_CPU_PERF:
		return c->weighed ? (int64_t)(c->weight_ns / c->weighed) : -1;
	default:
		return -1;
	}
}

/* CPU samples tell best who runs, wall-clock samples alone who waits. */
static enum an_cpu_source choose_source(const struct cpu *c)
{
	if (c->shared->options.view != AN_VIEW_CPU && c->samples[AN_CPU_SAMPLER])
		return AN_CPU_SAMPLER;
	for (unsigned i = AN_CPU_SOURCES; i-- > 1;)
		if (c->samples[i])
			return (enum an_cpu_source)i;
	return AN_CPU_NONE;
}

static unsigned view_states(enum an_view view)
{
	switch (view) {
	case AN_VIEW_WALL:
		return 1u << CPU_ON | 1u << CPU_WAITING | 1u << CPU_UNKNOWN;
	case AN_VIEW_WAITING:
		return 1u << CPU_WAITING;
	default:
		return 1u << CPU_ON;
	}
}

static const char *view_name(enum an_view view)
{
	static const char *const names[] = { "cpu", "wall", "waiting" };

	return names[view];
}

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

		if (s->source != AN_CPU_SAMPLER || s->level == LEVEL_UNMEASURED)
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
		t->all += n;
		thread->all += n;
		t->samples[state] += n;
		thread->samples[state] += n;
		if (cpu_judge_leaf(j, node) == LEAF_UNNAMED)
			t->unresolved += n;
		if (move && state == CPU_ON)
			node = cpu_judge_worker(j, node);
		an_profile_add(p, node, state, n);
		if (state != CPU_ON)
			continue;
		thread->on_ns += ns;
		an_profile_add(p, node, CPU_ON_NS, ns);
	}
}

/* Sorts all samples into states; in the CPU view work is moved out of calls that only wait. */
static void judge_samples(const struct cpu *c, struct cpu_judge *j, struct cpu_totals *t,
			  struct an_profile *p)
{
	sum_levels(c, j, t);
	for (size_t i = 0; i < c->slot_count; i++)
		if (c->slots[i].source == t->source)
			count_slot(j, t, p, &c->slots[i]);
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
	double most = (double)an_observed_ns(c->shared) * (double)c->shared->trace.processors;
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

static void add_percent(struct an_value *v, const char *name, uint64_t part, uint64_t whole)
{
	if (whole)
		an_add_double(v, name, 100.0 * (double)part / (double)whole, 2);
	else
		an_add_null(v, name);
}

static void add_row(const struct an_profile *p, const struct an_profile_row *row, unsigned states,
		    uint64_t whole, struct an_value *list)
{
	struct an_value *v = an_add_object(list, NULL);
	uint64_t self = an_profile_sum(row->self, states);
	uint64_t total = an_profile_sum(row->total, states);
	char buf[NAME_BYTES];
	const char *name = an_profile_name(p, row, buf, sizeof(buf));

	an_add_text(v, "method", name);
	if (row->method) {
		an_add_text(v, "signature", row->method->signature);
		an_add_text(v, "args", row->method->args);
		an_add_text(v, "raw", row->method->raw);
		an_add_text(v, "module", row->method->module);
	} else {
		an_add_null(v, "signature");
		an_add_null(v, "args");
		an_add_text(v, "raw", name);
		an_add_text(v, "module", an_profile_module(p, row));
	}
	an_add_uint(v, "exclusive_samples", self);
	an_add_uint(v, "inclusive_samples", total);
	add_percent(v, "exclusive_percent", self, whole);
	add_percent(v, "inclusive_percent", total, whole);
	an_add_uint(v, "on_cpu", row->total[CPU_ON]);
	an_add_uint(v, "waiting", row->total[CPU_WAITING]);
	an_add_uint(v, "unknown", row->total[CPU_UNKNOWN]);
}

/* Expects the rows in order of the view. */
static void add_methods(const struct an_profile *p, unsigned states, uint64_t whole,
			struct an_value *cpu)
{
	struct an_value *list = an_add_array(cpu, "methods");
	size_t top = p->shared->options.top;

	for (size_t i = 0; i < p->row_count && list && (!top || list->count < top); i++) {
		const struct an_profile_row *row = &p->rows[p->order[i]];

		if (!an_profile_sum(row->total, states))
			continue;
		add_row(p, row, states, whole, list);
	}
}

/* Most samples of the view first; ties by id.  Selection sort: only top rows are wanted. */
static const struct cpu_thread_total *next_thread(const struct cpu *c, struct cpu_totals *t,
						  unsigned states, size_t *ret_index)
{
	struct cpu_thread_total *best = NULL;

	for (size_t i = 0; i < c->thread_count; i++) {
		struct cpu_thread_total *x = &t->threads[i];

		if (x->shown || !x->all)
			continue;
		if (!best ||
		    an_profile_sum(x->samples, states) > an_profile_sum(best->samples, states)) {
			best = x;
			*ret_index = i;
		}
	}
	if (best)
		best->shown = true;
	return best;
}

enum { MAX_THREAD_ROWS = 1000 };

/* As the samples have it, or the OS; NULL: unknown. */
static const char *name_of(const struct cpu *c, const struct cpu_thread *t)
{
	const struct an_cpu_time *time = c->shared->cpu_time;

	if (*t->name)
		return t->name;
	return time && time->name ? time->name(time->ctx, t->id) : NULL;
}

static void add_threads(const struct cpu *c, struct cpu_totals *t, unsigned states,
			struct an_value *cpu)
{
	struct an_value *list = an_add_array(cpu, "threads");
	size_t top = c->shared->options.top;

	if (!top || top > MAX_THREAD_ROWS)
		top = MAX_THREAD_ROWS;
	for (size_t i = 0; i < top; i++) {
		size_t k;
		const struct cpu_thread_total *x = next_thread(c, t, states, &k);
		struct an_value *v;
		const char *name;

		if (!x)
			break;
		name = name_of(c, &c->threads[k]);
		v = an_add_object(list, NULL);
		if (c->threads[k].id == UINT64_MAX)
			an_add_null(v, "thread_id");
		else
			an_add_uint(v, "thread_id", c->threads[k].id);
		if (name)
			an_add_text(v, "name", name);
		else
			an_add_null(v, "name");
		an_add_uint(v, "samples", x->all);
		an_add_uint(v, "samples_on_cpu", x->samples[CPU_ON]);
		an_add_uint(v, "samples_waiting", x->samples[CPU_WAITING]);
		an_add_uint(v, "samples_unknown", x->samples[CPU_UNKNOWN]);
		/* Where nothing is known of any sample, 0 would be a guess. */
		if (x->measured || (t->timed && x->samples[CPU_ON] + x->samples[CPU_WAITING]))
			an_add_double(v, "cpu_time_ms", (double)x->on_ns / 1e6, 3);
		else
			an_add_null(v, "cpu_time_ms");
		an_add_bool(v, "cpu_time_measured", x->measured);
	}
}

static enum nt_status add_hot_path(const struct cpu *c, const struct an_profile *p, bool merge,
				   unsigned states, uint64_t whole, struct an_value *list)
{
	struct an_hot_frame *frames =
		an_mem_array(c->shared->alloc, MAX_HOT_FRAMES, sizeof(*frames));
	size_t n = 0;
	enum nt_status st;

	if (!frames)
		return NT_ENOMEM;
	st = an_profile_hot_path(p, states, merge, frames, MAX_HOT_FRAMES, &n);
	for (size_t i = 0; i < n; i++) {
		const struct an_profile_row *row = &p->rows[frames[i].row];
		struct an_value *v = an_add_object(list, NULL);
		char buf[NAME_BYTES];

		an_add_text(v, "method", an_profile_name(p, row, buf, sizeof(buf)));
		an_add_text(v, "args", row->method ? row->method->args : "");
		an_add_uint(v, "inclusive_samples", frames[i].total);
		an_add_uint(v, "exclusive_samples", frames[i].self);
		add_percent(v, "inclusive_percent", frames[i].total, whole);
		add_percent(v, "exclusive_percent", frames[i].self, whole);
	}
	an_mem_free(c->shared->alloc, frames);
	return st;
}

static void add_interval(const struct cpu *c, enum an_cpu_source source, struct an_value *v)
{
	int64_t ns = cpu_interval_ns(c, source);

	if (ns > 0)
		an_add_double(v, "interval_ms", (double)ns / 1e6, 2);
	else
		an_add_null(v, "interval_ms");
}

static const char *source_name(enum an_cpu_source source)
{
	static const char *const names[AN_CPU_SOURCES] = {
		[AN_CPU_NONE] = "",
		[AN_CPU_SAMPLER] = "sample-profiler",
		[AN_CPU_UNIVERSAL] = "universal",
		[AN_CPU_PERF] = "perf",
	};

	return names[source];
}

static void add_nothing(const struct cpu *c, struct an_value *v)
{
	static const char *const names[] = {
		"samples",	   "samples_on_cpu",	 "samples_waiting",
		"samples_unknown", "samples_unresolved", "interval_ms"
	};

	an_add_null(v, "source");
	an_add_text(v, "view", view_name(c->shared->options.view));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		an_add_null(v, names[i]);
	an_add_array(v, "methods");
	an_add_array(v, "threads");
	an_add_array(v, "hot_path");
}

static enum nt_status add_samples(struct cpu *c, struct cpu_judge *j, struct cpu_totals *t,
				  struct an_profile *p, struct an_report *out)
{
	struct an_value *v = an_add_object(an_report_root(out), "cpu");
	unsigned states = view_states(c->shared->options.view);
	uint64_t whole;
	enum nt_status st;

	judge_samples(c, j, t, p);
	sum_time(c, t);
	st = an_profile_build(p);
	if (st < 0)
		return st;
	whole = an_profile_sum(t->samples, states);
	an_add_text(v, "source", source_name(t->source));
	an_add_text(v, "view", view_name(c->shared->options.view));
	an_add_uint(v, "samples", t->all);
	an_add_uint(v, "samples_on_cpu", t->samples[CPU_ON]);
	an_add_uint(v, "samples_waiting", t->samples[CPU_WAITING]);
	an_add_uint(v, "samples_unknown", t->samples[CPU_UNKNOWN]);
	an_add_uint(v, "samples_unresolved", t->unresolved);
	add_interval(c, t->source, v);
	st = cpu_findings(j, t, p, out);
	if (st == NT_OK)
		st = an_profile_sort(p, states);
	if (st < 0)
		return st;
	add_methods(p, states, whole, v);
	add_threads(c, t, states, v);
	return add_hot_path(c, p, t->source != AN_CPU_SAMPLER, states, whole,
			    an_add_array(v, "hot_path"));
}

enum nt_status cpu_report(struct cpu *c, struct an_report *out)
{
	struct cpu_totals t = { .source = choose_source(c) };
	struct cpu_judge j;
	struct an_profile p;
	enum nt_status st;

	if (t.source == AN_CPU_NONE) {
		add_nothing(c, an_add_object(an_report_root(out), "cpu"));
		cpu_findings_none(c, out);
		return NT_OK;
	}
	st = cpu_judge_init(&j, c, t.source);
	if (st < 0)
		return st;
	t.threads = an_mem_array(c->shared->alloc, c->thread_count, sizeof(*t.threads));
	st = t.threads ? an_profile_init(&p, c->shared) : NT_ENOMEM;
	if (st == NT_OK) {
		st = add_samples(c, &j, &t, &p, out);
		an_profile_done(&p);
	}
	an_mem_free(c->shared->alloc, t.threads);
	cpu_judge_done(&j);
	return st;
}
