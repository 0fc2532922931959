/* SPDX-License-Identifier: MIT */

/* Findings about CPU.  What is only waiting is never called hot. */

#include <inttypes.h>

#include "analyzers/cpu/cpu_internal.h"
#include "analyzers/grow.h"
#include "analyzers/wait_frames.h"

enum {
	CALLEE_PERCENT = 5, /* of a hot method, in one that it calls: worth a word */
	WAITING_PERCENT = 50, /* known to wait, where it is called mostly waiting */
	WAITER_PERCENT = 90, /* of a thread's samples, for it to be one that waits */
	WAITER_SAMPLES = 50, /* at least */
	UNRESOLVED_SAMPLES = 50, /* in all, before it counts that some have no name */
	SECOND_NS = 1000 * 1000 * 1000,
	NAME_BYTES = 512,
};

void cpu_findings_none(const struct cpu *c, struct an_report *out)
{
	if (an_looks_native(c->shared)) {
		an_add_finding(out, AN_INFO, "cpu.not-recorded",
			       "CPU use is unknown: NativeAOT programs have no sample profiler",
			       "no samples in the trace; the target is compiled ahead of time",
			       "Use a profiler of the operating system with the program's debug "
			       "symbols.");
		return;
	}
	an_add_finding(out, AN_INFO, "cpu.not-recorded", "No CPU samples were recorded",
		       "no events of Microsoft-DotNETCore-SampleProfiler in the trace",
		       "To see what runs, record with the cpu profile.");
}

static const char waits_advice[] = "If it should be busy, see what it waits for: --view waiting.";

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Cores kept busy by what was seen running; -1 when time is not known. */
static double busy_cores(const struct cpu *c, const struct cpu_totals *t)
{
	int64_t observed = cpu_observed_ns(c);

	return observed > 0 && t->timed && t->on_ns ? (double)t->on_ns / (double)observed : -1;
}

/* What running samples are ranked by: their number, or measured time. */
static unsigned on_weight(const struct cpu_totals *t)
{
	return t->by_time ? CPU_ON_NS : CPU_ON;
}

static uint64_t all_on(const struct cpu_rows *r)
{
	unsigned weight = on_weight(r->t);
	uint64_t sum = 0;

	for (size_t i = 0; i < r->p->row_count; i++)
		sum += r->p->rows[i].self[weight];
	return sum;
}

static bool is_few(const struct cpu_rows *r)
{
	return (double)r->t->samples[CPU_ON] < an_limit(r->c->shared, AN_LIMIT_CPU_HOT_SAMPLES);
}

/* The method that a row calls most, by running samples; NULL when it calls nothing to speak of. */
static enum nt_status find_callee(const struct cpu_rows *r, size_t row,
				  const struct an_profile_row **ret, double *ret_share)
{
	const struct an_profile *p = r->p;
	uint64_t *sums = an_mem_array(p->shared->alloc, p->row_count, sizeof(*sums));
	size_t best = row;

	*ret = NULL;
	if (!sums)
		return NT_ENOMEM;
	for (size_t i = 1; i < p->node_count; i++) {
		uint32_t parent = an_calltree_node(p->shared->tree, (uint32_t)i)->parent;

		if (p->row_of[i] != UINT32_MAX && p->row_of[i] != row && parent &&
		    p->row_of[parent] == row)
			sums[p->row_of[i]] += p->total[i][CPU_ON];
	}
	for (size_t i = 0; i < p->row_count; i++)
		if (sums[i] > sums[best])
			best = i;
	*ret_share = percent(sums[best], p->rows[row].total[CPU_ON]);
	if (best != row && *ret_share >= CALLEE_PERCENT)
		*ret = &p->rows[best];
	an_mem_free(p->shared->alloc, sums);
	return NT_OK;
}

static const char *busy_words(const struct cpu_rows *r, struct an_report *out)
{
	double cores = busy_cores(r->c, r->t);

	if (r->t->crowded)
		return an_report_printf(out,
					"; more threads were ready to run than the %" PRId64
					" processors hold",
					r->c->shared->trace.processors);
	if (cores < 0)
		return "";
	/* Where other programs want the processors, too, not all that could run did. */
	if (r->t->source == AN_CPU_SAMPLER && !r->t->by_time)
		return an_report_printf(out,
					"; all running code together kept at most about %.2f cores "
					"busy, as waiting for a processor looks like running",
					cores);
	return an_report_printf(out, "; all running code together kept about %.2f cores busy",
				cores);
}

/* The hottest method that does something; stopped in a wait says nothing about that wait. */
static size_t hottest(const struct cpu_rows *r)
{
	for (size_t i = 0; i < r->p->row_count; i++) {
		const struct an_profile_row *row = &r->p->rows[r->p->order[i]];

		if (row->method && an_frame_kind_of(row->method) == AN_FRAME_PLAIN)
			return r->p->order[i];
	}
	return SIZE_MAX;
}

static enum nt_status check_hot(const struct cpu_rows *r, struct an_report *out)
{
	const struct cpu_totals *t = r->t;
	size_t index = hottest(r);
	const struct an_profile_row *row, *callee;
	char buf[NAME_BYTES], other[NAME_BYTES];
	const char *calls = "; nothing that it calls stands out";
	double share, callee_share;
	enum nt_status st;

	if (is_few(r) || index == SIZE_MAX)
		return NT_OK;
	row = &r->p->rows[index];
	share = percent(row->self[on_weight(t)], all_on(r));
	if (share < an_limit(r->c->shared, AN_LIMIT_CPU_HOT))
		return NT_OK;
	st = find_callee(r, index, &callee, &callee_share);
	if (st < 0)
		return st;
	if (callee)
		calls = an_report_printf(out, "; of what it does, %.0f %% is in %s, which it calls",
					 callee_share,
					 an_profile_name(r->p, callee, other, sizeof(other)));
	an_add_finding(
		out,
		busy_cores(r->c, t) >= an_limit(r->c->shared, AN_LIMIT_CPU_HOT_CORES) ? AN_WARNING
										      : AN_INFO,
		"cpu.hot-method",
		an_report_printf(out, "%.0f %% of the CPU samples are in %s%s", share,
				 an_profile_name(r->p, row, buf, sizeof(buf)), row->method->args),
		an_report_printf(out, "%" PRIu64 " of %" PRIu64 " running samples%s%s%s",
				 row->self[CPU_ON], t->samples[CPU_ON],
				 t->by_time ? ", weighed by measured CPU time" : "", calls,
				 busy_words(r, out)),
		"Look at its loop and at who calls it: the hot path shows the callers.");
	if (t->source == AN_CPU_SAMPLER && !cpu_was_on(r->c, AN_CPU_PERF))
		an_add_finding(
			out, AN_INFO, "cpu.safepoint-bias",
			"The place of the CPU use may be off by a call or a loop",
			"only the runtime's sampler was recorded: it stops threads where the "
			"runtime can, and shows native code as the method that called it",
			"Where it matters, record with --cpu-source perf.");
	return NT_OK;
}

/* --- threads --- */

static bool waits(const struct cpu_thread_total *x)
{
	return x->all >= WAITER_SAMPLES &&
	       percent(x->samples[CPU_WAITING], x->all) >= WAITER_PERCENT;
}

static void check_saturated(const struct cpu_rows *r, struct an_report *out)
{
	int64_t observed = cpu_observed_ns(r->c);
	uint64_t sum = 0, most = 0;
	size_t busiest = 0, waiting = 0;
	double share;

	if (!r->t->timed || observed < SECOND_NS || r->c->shared->trace.processors < 2)
		return;
	for (size_t i = 0; i < r->c->thread_count; i++) {
		const struct cpu_thread_total *x = &r->t->threads[i];

		sum += x->on_ns;
		waiting += waits(x);
		if (x->on_ns > most) {
			most = x->on_ns;
			busiest = i;
		}
	}
	share = percent(most, (uint64_t)observed);
	if (share < an_limit(r->c->shared, AN_LIMIT_CPU_ONE_THREAD) || !waiting ||
	    percent(sum - most, (uint64_t)observed) >
		    an_limit(r->c->shared, AN_LIMIT_CPU_ONE_THREAD_OTHERS))
		return;
	an_add_finding(
		out, AN_INFO, "cpu.one-thread",
		an_report_printf(out, "One thread does all the work while %zu other%s wait%s",
				 waiting, waiting == 1 ? "" : "s", waiting == 1 ? "s" : ""),
		an_report_printf(out,
				 "thread %" PRIu64 " was on a processor %.0f %% of the time, all "
				 "others together %.1f %%; there are %" PRId64 " processors",
				 r->c->threads[busiest].id, share > 100 ? 100 : share,
				 percent(sum - most, (uint64_t)observed),
				 r->c->shared->trace.processors),
		"More processors will not help. See what the others wait for: --view waiting.");
}

/* --- what the CPU is spent on --- */

/* The method of the program that most of the spinning is done for. */
static enum nt_status find_spinner(struct cpu_judge *j, const struct cpu_rows *r,
				   const struct an_method **ret)
{
	const struct cpu *c = r->c;
	uint32_t *counts = an_mem_array(c->shared->alloc, j->kind_count, sizeof(*counts));
	uint32_t most = 0;

	*ret = NULL;
	if (!counts)
		return NT_ENOMEM;
	for (size_t i = 0; i < c->slot_count; i++) {
		const struct cpu_slot *s = &c->slots[i];
		const struct an_method *m;
		uint32_t worker;

		if (s->source != r->t->source || cpu_judge_leaf(j, s->node) != LEAF_SPIN)
			continue;
		worker = cpu_judge_program(j, s->node);
		m = worker == AN_NODE_NONE ? NULL : an_calltree_method(c->shared->tree, worker);
		if (!m)
			continue;
		for (unsigned bin = 0; bin < BINS; bin++)
			counts[m->index] += s->count[bin];
		if (counts[m->index] > most) {
			most = counts[m->index];
			*ret = m;
		}
	}
	an_mem_free(c->shared->alloc, counts);
	return NT_OK;
}

static enum nt_status check_spinning(struct cpu_judge *j, const struct cpu_rows *r,
				     struct an_report *out)
{
	const struct cpu_totals *t = r->t;
	double share = percent(t->spinning, t->samples[CPU_ON]);
	const struct an_method *m;
	enum nt_status st;

	if (is_few(r) || share < an_limit(r->c->shared, AN_LIMIT_CPU_SPINNING))
		return NT_OK;
	st = find_spinner(j, r, &m);
	if (st < 0)
		return st;
	an_add_finding(out, AN_WARNING, "cpu.spinning",
		       an_report_printf(out,
					"%.0f %% of the CPU samples spin: they burn CPU and wait",
					share),
		       an_report_printf(out,
					"%" PRIu64 " of %" PRIu64 " running samples are in "
					"spin loops%s%s",
					t->spinning, t->samples[CPU_ON], m ? ", most for " : "",
					m ? m->name : ""),
		       "Threads fight for something that is held too long: see section locks.");
	return NT_OK;
}

static void check_runtime(const struct cpu_rows *r, struct an_report *out)
{
	const struct cpu_totals *t = r->t;
	double gc = percent(t->gc, t->samples[CPU_ON]), jit = percent(t->jit, t->samples[CPU_ON]);

	if (is_few(r))
		return;
	if (gc >= an_limit(r->c->shared, AN_LIMIT_CPU_GC))
		an_add_finding(out, AN_WARNING, "cpu.gc",
			       an_report_printf(out,
						"%.0f %% of the CPU goes into the garbage "
						"collector",
						gc),
			       an_report_printf(out, "%" PRIu64 " of %" PRIu64 " running samples",
						t->gc, t->samples[CPU_ON]),
			       "Find what allocates so much: sections gc and alloc.");
	if (jit >= an_limit(r->c->shared, AN_LIMIT_CPU_JIT))
		an_add_finding(
			out, AN_WARNING, "cpu.jit",
			an_report_printf(out, "%.0f %% of the CPU goes into the JIT compiler", jit),
			an_report_printf(out, "%" PRIu64 " of %" PRIu64 " running samples", t->jit,
					 t->samples[CPU_ON]),
			"Normal while a program starts, else see section jit for what is "
			"compiled again and again.");
}

/* Code that was compiled in a hurry should not be where the time goes. */
static void check_tier0(const struct cpu_rows *r, struct an_report *out)
{
	uint64_t most = 0, whole = r->t->samples[CPU_ON];
	size_t worst = 0;
	const char *advice =
		"It runs long without being called again: put the body of the loop into "
		"a method, or see whether tiered compilation was configured away.";
	char buf[NAME_BYTES];

	for (size_t i = 0; i < r->p->row_count; i++) {
		uint64_t quick = 0;

		for (unsigned k = 0; k < AN_TIERS; k++)
			if (an_tier_is_quick((enum an_tier)k))
				quick += r->tiers[i][k];
		if (quick > most) {
			most = quick;
			worst = i;
		}
	}
	if (is_few(r) || percent(most, whole) < an_limit(r->c->shared, AN_LIMIT_CPU_TIER0))
		return;
	if (r->tiers[worst][AN_TIER_MINOPT] * 2 > most)
		advice = "The code was built for debugging, or a debugger or profiler asked for "
			 "unoptimized code: run a release build.";
	an_add_finding(
		out, AN_WARNING, "cpu.hot-tier0",
		an_report_printf(out, "%s is hot and was never optimized",
				 an_profile_name(r->p, &r->p->rows[worst], buf, sizeof(buf))),
		an_report_printf(out,
				 "%" PRIu64 " of %" PRIu64
				 " running samples (%.0f %%) are in its unoptimized code",
				 most, whole, percent(most, whole)),
		advice);
}

/* Of the time in which the process was seen, by samples of nothing but running threads. */
static void check_idle_time(const struct cpu *c, const struct cpu_totals *t, struct an_report *out)
{
	int64_t observed = cpu_observed_ns(c);
	double running = percent(t->on_ns, (uint64_t)observed);

	if (!t->timed || observed < SECOND_NS || t->left_out ||
	    running >= an_limit(c->shared, AN_LIMIT_CPU_WAITING))
		return;
	an_add_finding(out, AN_INFO, "cpu.mostly-waiting",
		       "The process was mostly waiting, not computing",
		       an_report_printf(out,
					"it used %.0f ms of CPU time in %.1f s, %.1f %% of a "
					"processor",
					(double)t->on_ns / 1e6, (double)observed / 1e9, running),
		       waits_advice);
}

static void check_idle(const struct cpu *c, const struct cpu_totals *t, struct an_report *out)
{
	double running = percent(t->samples[CPU_ON], t->all);

	if (t->source == AN_CPU_PERF)
		check_idle_time(c, t, out);
	if (running >= an_limit(c->shared, AN_LIMIT_CPU_WAITING) || t->source != AN_CPU_SAMPLER ||
	    percent(t->samples[CPU_WAITING], t->all) < WAITING_PERCENT)
		return;
	an_add_finding(out, AN_INFO, "cpu.mostly-waiting",
		       "The process was mostly waiting, not computing",
		       an_report_printf(out,
					"%.1f %% of %" PRIu64
					" thread samples were running, %.1f %% waiting, %.1f %% "
					"unknown",
					running, t->all, percent(t->samples[CPU_WAITING], t->all),
					percent(t->samples[CPU_UNKNOWN], t->all)),
		       waits_advice);
}

static void check_waits(const struct cpu *c, const struct cpu_totals *t, struct an_report *out)
{
	if (c->shared->options.view == AN_VIEW_CPU || t->knows_waits)
		return;
	an_add_finding(
		out, AN_INFO, "cpu.waits-not-recorded", "Where threads wait was not recorded",
		"the samples are of running threads only",
		t->source == AN_CPU_UNIVERSAL
			? "Record context switches as well."
			: "Record with --view waiting, which asks for the runtime's sampler, "
			  "too; 'drdotnet-trace stack' shows where all threads are now.");
}

static void check_quality(const struct cpu_judge *j, const struct cpu_totals *t,
			  struct an_report *out)
{
	const struct cpu *c = j->cpu;
	int64_t interval = cpu_interval_ns(c, t->source);
	double unresolved = percent(t->unresolved, t->all);

	if (!j->types_mean_something && t->all && !t->by_time)
		an_add_finding(
			out, AN_INFO, "cpu.state-estimated",
			c->shared->runtime_major == 9
				? "Running and waiting are estimates: .NET 9 does not tell them "
				  "apart"
				: "Running and waiting are estimates: the samples do not tell them "
				  "apart",
			"every sample says that its thread was outside managed code",
			"Stacks and wait events were used instead. Threads blocked at a lock look "
			"busy unless contention events were recorded.");
	if (unresolved >= an_limit(c->shared, AN_LIMIT_CPU_UNRESOLVED) &&
	    t->all >= UNRESOLVED_SAMPLES)
		an_add_finding(
			out, AN_WARNING, "cpu.unresolved",
			an_report_printf(out,
					 "%.0f %% of the samples are in code without a "
					 "name",
					 unresolved),
			an_report_printf(out, "%" PRIu64 " of %" PRIu64 " samples", t->unresolved,
					 t->all),
			t->source == AN_CPU_PERF
				? "Mostly native code of libraries without symbols: the modules "
				  "say of which; their debug symbols, installed, name it."
				: "Native code, stubs, or code whose name the trace does not "
				  "hold.");
	if (t->source == AN_CPU_SAMPLER &&
	    (double)interval / 1e6 > an_limit(c->shared, AN_LIMIT_CPU_COARSE))
		an_add_finding(
			out, AN_INFO, "cpu.coarse", "The profile is coarse: sampling took long",
			an_report_printf(out, "%.1f ms between rounds of samples, %zu threads",
					 (double)interval / 1e6, c->thread_count),
			"Each round stops all threads and walks their stacks. Keep "
			"recordings of such a process short.");
	if (c->crowded)
		an_add_finding(out, AN_WARNING, "cpu.too-many-stacks",
			       "Some samples are counted without their stack",
			       an_report_printf(out, "%" PRIu64 " of %" PRIu64 " samples",
						c->crowded, t->all),
			       "Record for a shorter time.");
}

enum nt_status cpu_findings(struct cpu_judge *j, const struct cpu_rows *r, struct an_report *out)
{
	enum nt_status st = an_profile_sort(r->p, 1u << on_weight(r->t));

	if (st == NT_OK)
		st = check_hot(r, out);
	if (st == NT_OK)
		st = check_spinning(j, r, out);
	if (st < 0)
		return st;
	check_tier0(r, out);
	check_runtime(r, out);
	check_saturated(r, out);
	check_idle(r->c, r->t, out);
	check_waits(r->c, r->t, out);
	check_quality(j, r->t, out);
	return NT_OK;
}
