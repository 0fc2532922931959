/* SPDX-License-Identifier: MIT */

/* The CPU section of the report, and its findings. */

#include <inttypes.h>

#include "analyzers/cpu_internal.h"
#include "analyzers/grow.h"

enum { MAX_HOT_FRAMES = 512, NAME_BYTES = 512, MIN_GAPS = 3 };

int64_t cpu_interval_ns(const struct cpu *c)
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

/* Sorts all samples into states; in the CPU view work is moved out of calls that only wait. */
static void judge_samples(const struct cpu *c, struct cpu_judge *j, struct cpu_totals *t,
			  struct an_profile *p)
{
	bool move = c->shared->options.view == AN_VIEW_CPU;

	for (size_t i = 0; i < c->slot_count; i++) {
		const struct cpu_slot *s = &c->slots[i];

		for (unsigned bin = 0; bin < BINS; bin++) {
			enum cpu_state state;
			uint32_t node = s->node;

			if (!s->count[bin])
				continue;
			state = cpu_judge_state(j, node, (enum cpu_bin)bin);
			t->samples[state] += s->count[bin];
			t->threads[s->thread].samples[state] += s->count[bin];
			if (state == CPU_ON)
				t->threads[s->thread].on_ns += s->ns[bin];
			if (cpu_judge_leaf(j, node) == LEAF_UNNAMED)
				t->unresolved += s->count[bin];
			if (move && state == CPU_ON)
				node = cpu_judge_worker(j, node);
			an_profile_add(p, node, state, s->count[bin]);
		}
	}
}

/*
 * A thread that is ready but has no core looks like a running one.  Together they cannot have used
 * more than all cores all the time.
 */
static void sum_time(const struct cpu *c, struct cpu_totals *t)
{
	double most = (double)an_observed_ns(c->shared) * (double)c->shared->trace.processors;
	double sum = 0;

	for (size_t i = 0; i < c->thread_count; i++)
		sum += (double)t->threads[i].on_ns;
	t->on_ns = (uint64_t)sum;
	if (most <= 0 || sum <= most)
		return;
	t->crowded = true;
	t->on_ns = (uint64_t)most;
	for (size_t i = 0; i < c->thread_count; i++)
		t->threads[i].on_ns = (uint64_t)((double)t->threads[i].on_ns * most / sum);
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

		if (x->shown || !c->threads[i].samples)
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

static void add_threads(const struct cpu *c, struct cpu_totals *t, unsigned states,
			struct an_value *cpu)
{
	struct an_value *list = an_add_array(cpu, "threads");
	size_t top = c->shared->options.top;
	bool timed = c->source == CPU_SOURCE_SAMPLER ? cpu_interval_ns(c) > 0
						     : c->shared->trace.sample_interval_ns > 0;

	if (!top || top > MAX_THREAD_ROWS)
		top = MAX_THREAD_ROWS;
	for (size_t i = 0; i < top; i++) {
		size_t k;
		const struct cpu_thread_total *x = next_thread(c, t, states, &k);
		struct an_value *v;

		if (!x)
			break;
		v = an_add_object(list, NULL);
		if (c->threads[k].id == UINT64_MAX)
			an_add_null(v, "thread_id");
		else
			an_add_uint(v, "thread_id", c->threads[k].id);
		if (*c->threads[k].name)
			an_add_text(v, "name", c->threads[k].name);
		else
			an_add_null(v, "name");
		an_add_uint(v, "samples", c->threads[k].samples);
		an_add_uint(v, "samples_on_cpu", x->samples[CPU_ON]);
		an_add_uint(v, "samples_waiting", x->samples[CPU_WAITING]);
		an_add_uint(v, "samples_unknown", x->samples[CPU_UNKNOWN]);
		/* Where nothing is known of any sample, 0 would be a guess. */
		if (timed && x->samples[CPU_ON] + x->samples[CPU_WAITING])
			an_add_double(v, "cpu_time_ms", (double)x->on_ns / 1e6, 3);
		else
			an_add_null(v, "cpu_time_ms");
	}
}

static enum nt_status add_hot_path(const struct cpu *c, const struct an_profile *p, unsigned states,
				   uint64_t whole, struct an_value *list)
{
	struct an_hot_frame *frames =
		an_mem_array(c->shared->alloc, MAX_HOT_FRAMES, sizeof(*frames));
	size_t n = 0;
	enum nt_status st;

	if (!frames)
		return NT_ENOMEM;
	st = an_profile_hot_path(p, states, c->source == CPU_SOURCE_UNIVERSAL, frames,
				 MAX_HOT_FRAMES, &n);
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

static void add_interval(const struct cpu *c, struct an_value *v)
{
	int64_t ns = c->source == CPU_SOURCE_UNIVERSAL ? c->shared->trace.sample_interval_ns
						       : cpu_interval_ns(c);

	if (ns > 0)
		an_add_double(v, "interval_ms", (double)ns / 1e6, 2);
	else
		an_add_null(v, "interval_ms");
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
	an_add_text(v, "source",
		    c->source == CPU_SOURCE_UNIVERSAL ? "universal" : "sample-profiler");
	an_add_text(v, "view", view_name(c->shared->options.view));
	an_add_uint(v, "samples", c->samples);
	an_add_uint(v, "samples_on_cpu", t->samples[CPU_ON]);
	an_add_uint(v, "samples_waiting", t->samples[CPU_WAITING]);
	an_add_uint(v, "samples_unknown", t->samples[CPU_UNKNOWN]);
	an_add_uint(v, "samples_unresolved", t->unresolved);
	add_interval(c, v);
	st = cpu_findings(j, t, p, out);
	if (st == NT_OK)
		st = an_profile_sort(p, states);
	if (st < 0)
		return st;
	add_methods(p, states, whole, v);
	add_threads(c, t, states, v);
	return add_hot_path(c, p, states, whole, an_add_array(v, "hot_path"));
}

enum nt_status cpu_report(struct cpu *c, struct an_report *out)
{
	struct cpu_totals t = { 0 };
	struct cpu_judge j;
	struct an_profile p;
	enum nt_status st;

	if (!c->samples) {
		add_nothing(c, an_add_object(an_report_root(out), "cpu"));
		cpu_findings_none(c, out);
		return NT_OK;
	}
	st = cpu_judge_init(&j, c);
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
