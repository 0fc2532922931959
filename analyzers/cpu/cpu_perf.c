/* SPDX-License-Identifier: MIT */
#include "analyzers/cpu/cpu_perf.h"

#include <inttypes.h>
#include <string.h>

/* A perf map knows what the trace may not tell, but nothing better. */
static bool is_named(const struct an_methods *m, const struct nt_perf_symbol *s)
{
	return an_methods_find(m, s->start, an_methods_epoch(m, s->start)) ||
	       an_methods_find(m, s->last, an_methods_epoch(m, s->last));
}

static enum nt_status add_names(struct an_engine *e, const struct nt_perf *p)
{
	const struct an_methods *m = an_engine_borrow_shared(e)->methods;
	enum nt_status st = NT_OK;

	for (size_t i = 0; i < p->mapping_count && st == NT_OK; i++)
		st = an_engine_native_code(e, p->mappings[i].start, p->mappings[i].last,
					   p->mappings[i].file, NULL);
	for (size_t i = 0; i < p->symbol_count && st == NT_OK; i++) {
		const struct nt_perf_symbol *s = &p->symbols[i];

		if (*s->file || !is_named(m, s))
			st = an_engine_native_code(e, s->start, s->last, s->file, s->name);
	}
	return st;
}

/*
 * A method that is replaced while it runs leaves its old frame on the stack, and its new code above
 * it: the same method twice, in two pieces of code.  (Recursion stays in one piece, or goes from
 * new to old code once.)  The old frame is skipped, and its caller, which the chain of frame
 * pointers misses, is where the sampler found it on the stack; elsewhere such a find means nothing.
 */
static size_t fold_replaced(const struct an_methods *m, uint64_t *frames, size_t count)
{
	bool replaced = false;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t callee = kept ? frames[kept - 1] - (kept > 1) : 0;
		uint64_t frame = nt_perf_address(frames[i]);

		if (nt_perf_is_hidden(frames[i])) {
			if (replaced)
				frames[kept++] = frame;
			replaced = false;
			continue;
		}
		replaced = kept && an_methods_is_replaced(m, callee, frame - 1);
		if (!replaced)
			frames[kept++] = frame;
	}
	return kept;
}

/* Of a moment of CLOCK_MONOTONIC, in the trace's time. */
static int64_t in_trace(const struct nt_trace_info *t, uint64_t ns)
{
	double start = (double)t->sync_ticks;
	int64_t ticks = t->sync_ticks, at;

	if (t->ticks_per_second != 1000000000)
		ticks = (int64_t)(start * (1e9 / (double)t->ticks_per_second));
	if (ns > INT64_MAX || __builtin_sub_overflow((int64_t)ns, ticks, &at))
		return 0;
	if (at > NT_TIME_MAX_NS)
		return NT_TIME_MAX_NS;
	return at < -NT_TIME_MAX_NS ? -NT_TIME_MAX_NS : at;
}

static uint64_t time_of(const struct nt_perf *p, const struct nt_perf_row *row)
{
	uint64_t ns;

	if (__builtin_mul_overflow(row->time, p->info.unit_ns, &ns) ||
	    __builtin_add_overflow(ns, p->info.start_ns, &ns))
		return UINT64_MAX;
	return ns;
}

/*
 * Threads that are in the process only because it is recorded: they write the stream that we read.
 * Their work is not the program's.
 */
static bool is_recorder(const struct nt_perf_thread *t)
{
	static const char name[] = ".NET EventPipe";

	return strncmp(t->name, name, sizeof(name) - 1) == 0;
}

enum nt_status an_engine_perf(struct an_engine *e, const struct nt_perf *p)
{
	const struct an_shared *shared = an_engine_borrow_shared(e);
	uint64_t frames[NT_PERF_MAX_FRAMES];
	enum nt_status st;

	if (!shared->methods)
		return NT_OK; /* no section needs it */
	an_engine_cpu_source(e, AN_CPU_PERF, p->info.period_ns);
	st = add_names(e, p);
	for (size_t i = 0; i < p->row_count && st == NT_OK; i++) {
		const struct nt_perf_row *row = &p->rows[i];
		const struct nt_perf_thread *t = &p->threads[row->thread];
		struct an_cpu_sample sample = {
			.time_ns = in_trace(&shared->trace, time_of(p, row)),
			.thread_id = t->id,
			.thread_name = *t->name ? t->name : NULL,
			.frames = frames,
			.class = AN_CPU_RUNNING,
			.weight_ns = p->info.period_ns,
			.count = row->count,
		};

		if (is_recorder(t))
			continue;
		sample.frame_count = fold_replaced(shared->methods, frames,
						   nt_perf_frames(p, row->node, frames));
		st = an_engine_cpu_sample(e, AN_CPU_PERF, &sample);
	}
	return st;
}

/* --- findings --- */

enum {
	MANY_LOST_PERCENT = 5,
	COSTLY_PERCENT = 5, /* of the CPU samples, by recording */
	COSTLY_SAMPLES = 20, /* at least */
};

static void say_cost(const struct nt_perf *p, struct an_report *out)
{
	uint64_t all = 0, own = 0;

	for (size_t i = 0; i < p->row_count; i++) {
		all += p->rows[i].count;
		if (is_recorder(&p->threads[p->rows[i].thread]))
			own += p->rows[i].count;
	}
	if (own >= COSTLY_SAMPLES && own * 100 >= all * COSTLY_PERCENT)
		an_add_finding(
			out, AN_INFO, "cpu.recording",
			an_report_printf(out,
					 "Being recorded took %.0f %% of the CPU time of the "
					 "process",
					 100 * (double)own / (double)all),
			an_report_printf(out,
					 "%" PRIu64 " of %" PRIu64
					 " samples, %.0f ms, are in threads named .NET EventPipe",
					 own, all, (double)own * (double)p->info.period_ns / 1e6),
			"They are left out of all other figures. Ask for fewer providers if it is "
			"too much.");
}

void an_perf_findings(const struct nt_perf *p, struct an_report *out)
{
	const struct nt_perf_info *i = &p->info;
	double lost = (double)i->lost + (double)i->dropped;
	double all = lost + (double)p->samples;

	if (lost > 0 || i->throttled)
		an_add_finding(
			out, lost * 100 >= all * MANY_LOST_PERCENT ? AN_WARNING : AN_INFO,
			"cpu.samples-lost", "Some CPU samples of the kernel are missing",
			an_report_printf(out,
					 "%" PRIu64 " lost by the kernel, %" PRIu64
					 " without room, next to %" PRIu64
					 " samples; the kernel held sampling back %" PRIu64
					 " times",
					 i->lost, i->dropped, p->samples, i->throttled),
			"Shares of methods still hold; for times record shorter or with a lower "
			"--cpu-frequency.");
	say_cost(p, out);
	if (i->no_stack)
		an_add_finding(out, AN_WARNING, "cpu.too-many-stacks",
			       "Some samples are counted without their stack",
			       an_report_printf(out, "%" PRIu64 " of %" PRIu64 " samples",
						i->no_stack, p->samples),
			       "Record for a shorter time.");
	if (!i->kernel_time)
		an_add_finding(out, AN_INFO, "cpu.user-only",
			       "Time in the kernel is not among the CPU samples",
			       "the recording had no right to sample the kernel's work for the "
			       "process",
			       "Record as root or with CAP_PERFMON to see system calls and page "
			       "faults, too.");
}
