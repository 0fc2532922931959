/* SPDX-License-Identifier: MIT */

/* Findings about CPU.  What is only waiting is never called hot. */

#include <inttypes.h>

#include "analyzers/cpu_internal.h"
#include "analyzers/wait_frames.h"

enum {
	WAITING_PERCENT = 50, /* known to wait, where it is called mostly waiting */
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

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Cores kept busy by what was seen running; -1 when time is not known. */
static double busy_cores(const struct cpu *c, const struct cpu_totals *t)
{
	int64_t observed = an_observed_ns(c->shared);

	return observed > 0 && t->timed && t->on_ns ? (double)t->on_ns / (double)observed : -1;
}

static void check_hot(struct cpu_judge *j, const struct cpu_totals *t, const struct an_profile *p,
		      struct an_report *out)
{
	double cores = busy_cores(j->cpu, t), share;
	const struct an_profile_row *row = NULL;
	const char *evidence;
	char buf[NAME_BYTES];

	if ((double)t->samples[CPU_ON] < an_limit(j->cpu->shared, AN_LIMIT_CPU_HOT_SAMPLES))
		return;
	for (size_t i = 0; i < p->row_count && !row; i++) {
		const struct an_profile_row *r = &p->rows[p->order[i]];

		/* A thread stopped at the safepoint of a wait says nothing about that wait. */
		if (!r->method || an_frame_kind_of(r->method) == AN_FRAME_PLAIN)
			row = r;
	}
	if (!row)
		return;
	share = percent(row->self[CPU_ON], t->samples[CPU_ON]);
	if (share < an_limit(j->cpu->shared, AN_LIMIT_CPU_HOT))
		return;
	evidence = an_report_printf(out, "%" PRIu64 " of %" PRIu64 " running samples",
				    row->self[CPU_ON], t->samples[CPU_ON]);
	if (t->crowded)
		evidence = an_report_printf(out,
					    "%s; more threads were ready to run than the %" PRId64
					    " processors hold",
					    evidence, j->cpu->shared->trace.processors);
	else if (cores >= 0)
		evidence = an_report_printf(out,
					    "%s; all running code together kept about %.2f "
					    "cores busy",
					    evidence, cores);
	an_add_finding(
		out,
		cores >= an_limit(j->cpu->shared, AN_LIMIT_CPU_HOT_CORES) ? AN_WARNING : AN_INFO,
		"cpu.hot-method",
		an_report_printf(out, "%.0f %% of the CPU samples are in %s%s", share,
				 an_profile_name(p, row, buf, sizeof(buf)),
				 row->method ? row->method->args : ""),
		evidence, "Look at its loop and at who calls it: the hot path shows the callers.");
}

static void check_idle(const struct cpu *c, const struct cpu_totals *t, struct an_report *out)
{
	double running = percent(t->samples[CPU_ON], t->all);

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
		       "If it should be busy, see what it waits for: --view waiting.");
}

static void check_quality(const struct cpu_judge *j, const struct cpu_totals *t,
			  struct an_report *out)
{
	const struct cpu *c = j->cpu;
	int64_t interval = cpu_interval_ns(c, t->source);
	double unresolved = percent(t->unresolved, t->all);

	if (!j->types_mean_something && t->measured * 2 < t->all)
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
	if (unresolved >= an_limit(c->shared, AN_LIMIT_CPU_UNRESOLVED))
		an_add_finding(out, AN_WARNING, "cpu.unresolved",
			       an_report_printf(out,
						"%.0f %% of the samples are in code without a "
						"name",
						unresolved),
			       an_report_printf(out, "%" PRIu64 " of %" PRIu64 " samples",
						t->unresolved, t->all),
			       "Native code, stubs, or code whose name the trace does not hold.");
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
	const struct cpu_totals *t = r->t;
	struct an_profile *p = r->p;
	enum nt_status st = an_profile_sort(p, 1u << CPU_ON);

	if (st < 0)
		return st;
	check_hot(j, t, p, out);
	check_idle(j->cpu, t, out);
	check_quality(j, t, out);
	return NT_OK;
}
