/* SPDX-License-Identifier: MIT */

/* The CPU section of the report. */

#include "analyzers/cpu/cpu_internal.h"
#include "analyzers/grow.h"

enum { NAME_BYTES = 512, MAX_THREAD_ROWS = 1000 };

/* Samples of the view. */
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

void cpu_add_percent(struct an_value *v, const char *name, uint64_t part, uint64_t whole)
{
	if (whole)
		an_add_double(v, name, 100.0 * (double)part / (double)whole, 2);
	else
		an_add_null(v, name);
}

/* Samples of waiting threads; null where the source knows of none. */
static void add_waiting(const struct cpu_rows *r, struct an_value *v, const char *name, uint64_t n)
{
	if (r->t->knows_waits)
		an_add_uint(v, name, n);
	else
		an_add_null(v, name);
}

/* --- methods --- */

static void add_tier(const struct cpu_rows *r, size_t row, struct an_value *v)
{
	unsigned best = AN_TIER_UNKNOWN;

	for (unsigned i = AN_TIER_UNKNOWN + 1; i < AN_TIERS; i++)
		if (r->tiers[row][i] > r->tiers[row][best] || best == AN_TIER_UNKNOWN)
			best = i;
	if (r->tiers[row][best])
		an_add_text(v, "tier", an_tier_name((enum an_tier)best));
	else
		an_add_null(v, "tier");
}

static void add_time(const struct cpu_rows *r, const struct an_profile_row *row, struct an_value *v)
{
	if (r->t->timed) {
		an_add_double(v, "exclusive_cpu_ms", (double)row->self[CPU_ON_NS] / 1e6, 3);
		an_add_double(v, "inclusive_cpu_ms", (double)row->total[CPU_ON_NS] / 1e6, 3);
	} else {
		an_add_null(v, "exclusive_cpu_ms");
		an_add_null(v, "inclusive_cpu_ms");
	}
}

static void add_row(const struct cpu_rows *r, size_t index, struct an_value *list)
{
	const struct an_profile *p = r->p;
	const struct an_profile_row *row = &p->rows[index];
	struct an_value *v = an_add_object(list, NULL);
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
	an_add_uint(v, "exclusive_samples", an_profile_sum(row->self, r->states));
	an_add_uint(v, "inclusive_samples", an_profile_sum(row->total, r->states));
	cpu_add_percent(v, "exclusive_percent", an_profile_sum(row->self, r->rank), r->whole);
	cpu_add_percent(v, "inclusive_percent", an_profile_sum(row->total, r->rank), r->whole);
	an_add_uint(v, "on_cpu", row->total[CPU_ON]);
	add_waiting(r, v, "waiting", row->total[CPU_WAITING]);
	an_add_uint(v, "unknown", row->total[CPU_UNKNOWN]);
	an_add_uint(v, "exclusive_on_cpu", row->self[CPU_ON]);
	add_waiting(r, v, "exclusive_waiting", row->self[CPU_WAITING]);
	an_add_uint(v, "exclusive_unknown", row->self[CPU_UNKNOWN]);
	add_time(r, row, v);
	add_tier(r, index, v);
}

/* Expects the rows in order of the view. */
static void add_methods(const struct cpu_rows *r, struct an_value *cpu)
{
	struct an_value *list = an_add_array(cpu, "methods");
	size_t top = r->p->shared->options.top;

	for (size_t i = 0; i < r->p->row_count && list && (!top || list->count < top); i++)
		if (an_profile_sum(r->p->rows[r->p->order[i]].total, r->states))
			add_row(r, r->p->order[i], list);
}

/* --- threads --- */

/* Most of the view first; ties by id.  Selection sort: only top rows are wanted. */
static const struct cpu_thread_total *next_thread(const struct cpu_rows *r, size_t *ret_index)
{
	struct cpu_thread_total *best = NULL;

	for (size_t i = 0; i < r->c->thread_count; i++) {
		struct cpu_thread_total *x = &r->t->threads[i];

		if (x->shown || !x->all)
			continue;
		if (!best || an_profile_sum(x->samples, r->states) >
				     an_profile_sum(best->samples, r->states)) {
			best = x;
			*ret_index = i;
		}
	}
	if (best)
		best->shown = true;
	return best;
}

/* As the samples have it, or the OS; NULL: unknown. */
static const char *name_of(const struct cpu *c, const struct cpu_thread *t)
{
	const struct an_cpu_time *time = c->shared->cpu_time;

	if (*t->name)
		return t->name;
	return time && time->name ? time->name(time->ctx, t->id) : NULL;
}

static void add_thread(const struct cpu_rows *r, const struct cpu_thread *thread,
		       const struct cpu_thread_total *x, struct an_value *list)
{
	const char *name = name_of(r->c, thread);
	struct an_value *v = an_add_object(list, NULL);

	if (thread->id == UINT64_MAX)
		an_add_null(v, "thread_id");
	else
		an_add_uint(v, "thread_id", thread->id);
	if (name)
		an_add_text(v, "name", name);
	else
		an_add_null(v, "name");
	if (r->c->process_count)
		an_add_int(v, "process_id", thread->process_id);
	an_add_uint(v, "samples", x->all);
	an_add_uint(v, "samples_on_cpu", x->samples[CPU_ON]);
	add_waiting(r, v, "samples_waiting", x->samples[CPU_WAITING]);
	an_add_uint(v, "samples_unknown", x->samples[CPU_UNKNOWN]);
	/* Where nothing is known of any sample, 0 would be a guess. */
	if (x->measured || (r->t->timed && x->samples[CPU_ON] + x->samples[CPU_WAITING]))
		an_add_double(v, "cpu_time_ms", (double)x->on_ns / 1e6, 3);
	else
		an_add_null(v, "cpu_time_ms");
	an_add_bool(v, "cpu_time_measured", x->measured);
	if (r->c->switches)
		an_add_double(v, "blocked_ms", (double)thread->blocked_ns / 1e6, 3);
}

static void add_threads(const struct cpu_rows *r, struct an_value *cpu)
{
	struct an_value *list = an_add_array(cpu, "threads");
	size_t top = r->c->shared->options.top;

	if (!top || top > MAX_THREAD_ROWS)
		top = MAX_THREAD_ROWS;
	for (size_t i = 0; i < top; i++) {
		size_t k = 0;
		const struct cpu_thread_total *x = next_thread(r, &k);

		if (!x)
			break;
		add_thread(r, &r->c->threads[k], x, list);
	}
}

/* --- processes of a file that may hold several --- */

static void add_processes(const struct cpu_rows *r, struct an_value *cpu)
{
	const struct cpu *c = r->c;
	struct an_value *list;

	if (!c->process_count)
		return;
	list = an_add_array(cpu, "processes");
	for (size_t i = 0; i < c->process_count; i++) {
		const struct cpu_process *process = &c->processes[i];
		struct an_value *v = an_add_object(list, NULL);
		uint64_t all = 0, on = 0;

		for (size_t k = 0; k < c->thread_count; k++) {
			if (c->threads[k].process_id != process->id)
				continue;
			all += r->t->threads[k].all;
			on += r->t->threads[k].samples[CPU_ON];
		}
		an_add_uint(v, "process_id", (uint64_t)process->id);
		if (*process->name)
			an_add_text(v, "name", process->name);
		else
			an_add_null(v, "name");
		an_add_uint(v, "samples", all);
		an_add_uint(v, "samples_on_cpu", on);
		an_add_bool(v, "ended", process->ended);
	}
}

/* --- the section --- */

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

/* By a source that may be another than that of the section. */
static bool waits_recorded(const struct cpu *c)
{
	for (unsigned i = AN_CPU_NONE + 1; i < AN_CPU_SOURCES; i++)
		if (cpu_knows_waits(c, (enum an_cpu_source)i))
			return true;
	return false;
}

static void add_scalars(const struct cpu_rows *r, struct an_value *v)
{
	const struct an_cpu_options *o = &r->c->shared->options.cpu;
	const struct cpu_totals *t = r->t;

	an_add_text(v, "source", source_name(t->source));
	an_add_text(v, "view", view_name(r->c->shared->options.view));
	an_add_uint(v, "samples", t->all);
	an_add_uint(v, "samples_on_cpu", t->samples[CPU_ON]);
	add_waiting(r, v, "samples_waiting", t->samples[CPU_WAITING]);
	an_add_uint(v, "samples_unknown", t->samples[CPU_UNKNOWN]);
	an_add_uint(v, "samples_unresolved", t->unresolved);
	an_add_bool(v, "waits_recorded", waits_recorded(r->c));
	if (o->one_thread || o->one_process || o->include || o->exclude || o->from_ns || o->to_ns)
		an_add_uint(v, "samples_left_out", t->left_out);
	add_interval(r->c, t->source, v);
	an_add_text(v, "weighted_by", r->rank == 1u << CPU_ON_NS ? "cpu-time" : "samples");
	if (t->timed)
		an_add_double(v, "cpu_time_ms", (double)t->on_ns / 1e6, 3);
	else
		an_add_null(v, "cpu_time_ms");
	if (r->c->samples[AN_CPU_UNIVERSAL]) {
		if (r->c->switches) {
			an_add_uint(v, "context_switches", r->c->switches);
			an_add_double(v, "blocked_ms", (double)r->c->blocked_ns / 1e6, 3);
		} else {
			an_add_null(v, "context_switches");
			an_add_null(v, "blocked_ms");
		}
	}
}

static enum nt_status add_samples(struct cpu_rows *r, struct cpu_judge *j, struct an_profile *p,
				  struct an_report *out)
{
	struct an_value *v = an_add_object(an_report_root(out), "cpu");
	enum an_view view = r->c->shared->options.view;
	enum nt_status st = cpu_sum(r->c, j, r->t, p);

	if (st == NT_OK)
		st = an_profile_build(p);
	if (st == NT_OK)
		st = cpu_rows_tiers(r);
	if (st < 0)
		return st;
	r->states = r->rank = view_states(view);
	if (view == AN_VIEW_CPU && r->t->by_time)
		r->rank = 1u << CPU_ON_NS;
	for (size_t i = 0; i < p->node_count; i++)
		r->whole += an_profile_sum(p->self[i], r->rank);
	add_scalars(r, v);
	st = cpu_findings(j, r, out);
	p->total_first = r->c->shared->options.cpu.inclusive_first;
	if (st == NT_OK)
		st = an_profile_sort(p, r->rank);
	if (st < 0)
		return st;
	add_methods(r, v);
	st = cpu_add_modules(r, v);
	if (st < 0)
		return st;
	add_threads(r, v);
	add_processes(r, v);
	cpu_series_report(r->c, r->t, v);
	return cpu_add_paths(r, v);
}

enum nt_status cpu_report(struct cpu *c, struct an_report *out)
{
	struct cpu_totals t;
	struct cpu_judge j;
	struct an_profile p;
	struct cpu_rows r = { .c = c, .t = &t, .p = &p };
	enum nt_status st;

	if (cpu_choose_source(c) == AN_CPU_NONE) {
		add_nothing(c, an_add_object(an_report_root(out), "cpu"));
		cpu_findings_none(c, out);
		return NT_OK;
	}
	st = cpu_totals_init(&t, c);
	if (st < 0)
		return st;
	st = cpu_judge_init(&j, c, t.source);
	if (st == NT_OK) {
		st = an_profile_init(&p, c->shared);
		p.fold = c->shared->options.cpu.fold_generics;
		if (st == NT_OK) {
			st = add_samples(&r, &j, &p, out);
			an_profile_done(&p);
		}
		cpu_judge_done(&j);
	}
	an_mem_free(c->shared->alloc, r.tiers);
	cpu_totals_done(&t, c);
	return st;
}
