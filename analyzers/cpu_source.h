/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_CPU_SOURCE_H
#define ANALYZERS_CPU_SOURCE_H

/*
 * What feeds the CPU analyzer: three sources of samples with one way in, and measurements of how
 * much CPU each thread has really used.
 *
 * Events of the trace (sample profiler, Universal.Events) come in by themselves.  What a profiler
 * of the operating system saw, live or from the end of a file, is handed over sample by sample:
 *
 *	st = an_engine_cpu_sample(engine, AN_CPU_PERF, &sample);
 *
 * Its native frames get names by an_engine_native_code(), before or after the samples; managed
 * ones by the events of the trace.
 */

#include "nettrace/nettrace.h"

/* The later, the better: the best that has samples makes the CPU view. */
enum an_cpu_source {
	AN_CPU_NONE,
	AN_CPU_SAMPLER, /* the runtime's sample profiler: wall-clock samples of managed threads */
	AN_CPU_UNIVERSAL, /* CPU samples of a perf-based recorder, in a file of version 6 */
	AN_CPU_PERF, /* CPU samples that this program took */
	AN_CPU_SOURCES
};

enum an_cpu_class {
	AN_CPU_RUNNING,
	AN_CPU_OUTSIDE, /* native code or a wait: the source does not tell */
	AN_CPU_BLOCKED, /* was off the CPU for weight_ns */
};

struct an_cpu_sample {
	int64_t time_ns; /* since session start */
	uint64_t thread_id; /* as the trace has it: of the target's innermost pid namespace */
	int64_t process_id; /* 0: that of the trace */
	const char *thread_name; /* NULL: unknown */
	const uint64_t *frames; /* addresses, leaf first */
	size_t frame_count;
	enum an_cpu_class class;
	uint64_t weight_ns; /* of one; 0: not known */
	uint32_t count; /* so many that are equal; 0: one.  Of AN_CPU_SAMPLER each is one. */
};

/*
 * How much CPU a thread used from from_ns to to_ns (since session start), in ns, in proportion
 * where measurements do not fall on these times; -1 when that was not measured.
 *
 * Asked once for each sample of the sample profiler, when the one after it is read, and at the end
 * for each thread.  Must be quick, and must not fail.
 */
struct an_cpu_time {
	int64_t (*used_ns)(void *ctx, uint64_t thread_id, int64_t from_ns, int64_t to_ns);
	/* As the OS has it; NULL: unknown.  May be NULL.  Only for the report. */
	const char *(*name)(void *ctx, uint64_t thread_id);
	void *ctx;
};

struct an_engine;

/* Also after the trace has been read, before the report.  Nothing happens when no section needs it.
 */
NT_MUST_CHECK enum nt_status an_engine_cpu_sample(struct an_engine *e, enum an_cpu_source source,
						  const struct an_cpu_sample *sample);
/*
 * The source was on and takes one sample of so much CPU time: where none comes nothing ran.  Like
 * the samples.
 */
void an_engine_cpu_source(struct an_engine *e, enum an_cpu_source source, uint64_t period_ns);
/*
 * Native code of a function at [start, last] in a file; function NULL: only the file is known; file
 * "": function is the text of a perf map.  Text is copied.
 */
NT_MUST_CHECK enum nt_status an_engine_native_code(struct an_engine *e, uint64_t start,
						   uint64_t last, const char *file,
						   const char *function);
/* Before the first byte is pushed.  NULL: nothing was measured.  Must live until the report is
 * made. */
void an_engine_set_cpu_time(struct an_engine *e, const struct an_cpu_time *time);

/* --- for the engine: cpu_samples.c --- */

struct analyzer;

NT_MUST_CHECK enum nt_status an_cpu_add_sample(struct analyzer *cpu, enum an_cpu_source source,
					       const struct an_cpu_sample *sample);

void an_cpu_add_source(struct analyzer *cpu, enum an_cpu_source source, uint64_t period_ns);

#endif
