/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_CPU_CPU_INTERNAL_H
#define ANALYZERS_CPU_CPU_INTERNAL_H

/*
 * Inside of the CPU analyzer: cpu.c hears the events, cpu_samples.c counts samples of any source
 * while the trace is read, cpu_classify.c decides at the end who was running, cpu_report.c writes
 * the section.
 *
 * Names and the runtime's version come last, so samples are counted by thread, stack and by those
 * facts of their state that do not need names ("bins").
 */

#include "analyzers/analyzer.h"
#include "analyzers/profile.h"
#include "nettrace/idmap.h"

/*
 * A run is a row of samples of one thread with the identical stack, to the address of the leaf.
 * Runs of 50 ms and more whose thread was outside managed code all the time are most likely a
 * parked thread; at half a second even a tight loop is unlikely, whatever the runtime says.
 */
enum cpu_bin {
	BIN_EVENT_WAIT, /* between the start and the stop of a wait, by events */
	BIN_MANAGED, /* in managed code, or a sample of a CPU profiler */
	BIN_MANAGED_LONG, /* ... in a run of 500 ms and more */
	BIN_OUTSIDE, /* native code or waiting, or unknown */
	BIN_OUTSIDE_PARKED, /* ... all of a run of 50 ms and more */
	BIN_OUTSIDE_LONG, /* ... all of a run of 500 ms and more */
	BIN_OUTSIDE_MIXED, /* ... in a run of 500 ms and more with managed samples between */
	BINS
};

/* How busy the OS says the thread was at the time of a sample (an_cpu_time). */
enum cpu_level { LEVEL_UNMEASURED, LEVEL_IDLE, LEVEL_PARTLY, LEVEL_BUSY, LEVELS };

/* Samples of one thread with one stack, one source and one level. */
struct cpu_slot {
	uint32_t thread, node;
	uint8_t source; /* enum an_cpu_source */
	uint8_t level; /* enum cpu_level */
	uint32_t count[BINS];
	uint64_t ns[BINS]; /* time until the next round of samples, or the weight of the sample */
};

struct cpu_run_part {
	uint32_t count; /* samples */
	uint64_t ns;
};

struct cpu_run {
	bool open;
	uint32_t node;
	int64_t start_ns, last_ns;
	struct cpu_run_part managed[LEVELS], outside[LEVELS];
};

struct cpu_thread {
	uint64_t id;
	int64_t process_id; /* -1 unknown */
	char name[32]; /* "" unknown */
	bool sampled;
	int64_t first_ns, last_ns; /* samples */
	uint64_t blocked_ns; /* off the CPU, by context switches */
	uint64_t used_ns[LEVELS]; /* measured, while there were samples of that level */
	uint32_t locks, waits; /* open intervals, by events */
	uint64_t lost; /* events lost when the interval began: later ones may miss its end */
	struct cpu_run run;
	int64_t newest_ns; /* the newest sample, whose time is not known yet */
	uint64_t newest_round;
	bool newest_managed, newest_waits; /* newest_waits: in the run */
};

/* Of a file that may hold several. */
struct cpu_process {
	int64_t id;
	char name[32]; /* "" unknown */
	bool ended;
};

/* Time by kind of sample: its bin, or what the OS measured.  Intervals double as time goes on. */
enum { CPU_INTERVALS = 512, CPU_KIND_MEASURED = BINS, CPU_KINDS };

struct cpu_series {
	int64_t width_ns;
	size_t used;
	double ns[CPU_INTERVALS][CPU_KINDS];
};

enum { CPU_ROUNDS = 1024, CPU_GAP_BUCKETS = 10 * 1000, CPU_GAP_NS = 10 * 1000 };

struct cpu {
	struct an_shared *shared;
	uint64_t samples[AN_CPU_SOURCES];
	uint64_t outside[AN_CPU_SOURCES]; /* of the time that was asked for */
	bool blocked[AN_CPU_SOURCES]; /* among them are threads that came back from a wait */
	uint64_t period_ns[AN_CPU_SOURCES]; /* of one that was on, samples or not; 0: not told */
	struct cpu_thread *threads;
	size_t thread_count, thread_cap;
	struct nt_idmap by_id; /* thread id -> index */
	struct cpu_slot *slots;
	size_t slot_count, slot_cap;
	struct nt_idmap by_stack; /* thread, source, level and node -> slot */
	uint64_t crowded; /* samples counted without their stack: too many slots */
	struct cpu_process *processes;
	size_t process_count, process_cap;
	struct nt_idmap by_pid;
	uint64_t switches, blocked_ns; /* context switches in, and how long threads were out */
	uint64_t weight_ns, weighed; /* of samples of AN_CPU_PERF that had a weight */
	struct cpu_series series[2]; /* of the sample profiler; of the other sources */
	/* Rounds: all threads are sampled at nearly the same time. */
	int64_t rounds[CPU_ROUNDS]; /* when they began, by number modulo CPU_ROUNDS */
	uint64_t round_count;
	int64_t last_sample_ns;
	/* Rounds by time to the next, in steps of CPU_GAP_NS; the last takes more. */
	uint32_t *gaps;
	int64_t usual_ns; /* what they said after that many rounds: */
	uint64_t usual_of;
};

struct analyzer {
	struct cpu c;
};

/* --- cpu_samples.c --- */

/* Events of the runtime that tell of waits. */
enum {
	CPU_CONTENTION_START = 81,
	CPU_CONTENTION_STOP = 91,
	CPU_WAIT_START = 301,
	CPU_WAIT_STOP = 302,
};

/* A sample whose stack is a node already; the frames of sample do not count. */
NT_MUST_CHECK enum nt_status cpu_add(struct cpu *c, enum an_cpu_source source, uint32_t node,
				     const struct an_cpu_sample *sample);
/* A wait of the thread began or ended, by events. */
NT_MUST_CHECK enum nt_status cpu_note_wait(struct cpu *c, uint64_t thread_id, uint32_t event_id);
/* The last sample of each thread is counted as well; once. */
NT_MUST_CHECK enum nt_status cpu_samples_end(struct cpu *c);
/* The median time between rounds; -1 when there are too few. */
int64_t cpu_round_ns(const struct cpu *c);

/* --- cpu_series.c --- */

struct cpu_totals;

void cpu_series_add(struct cpu_series *s, int64_t from_ns, int64_t to_ns, unsigned kind, double ns);
void cpu_series_report(const struct cpu *c, const struct cpu_totals *t, struct an_value *cpu);

/* --- cpu_classify.c --- */

/* The first three count samples, the last is the time of those that ran. */
enum cpu_state { CPU_ON, CPU_WAITING, CPU_UNKNOWN, CPU_ON_NS };

/* What the innermost frames of a stack say. */
enum cpu_leaf {
	LEAF_PLAIN,
	LEAF_WAIT,
	LEAF_SPIN,
	LEAF_NATIVE,
	LEAF_UNNAMED,
};

struct cpu_judge {
	const struct cpu *cpu;
	enum an_cpu_source source; /* whose samples the section is about */
	bool types_mean_something; /* see cpu_judge_init() */
	uint8_t *kinds; /* by method: enum an_frame_kind + 1, 0 not yet known */
	size_t kind_count;
	uint8_t *leaves; /* by node: enum cpu_leaf + 1 */
};

NT_MUST_CHECK enum nt_status cpu_judge_init(struct cpu_judge *j, const struct cpu *cpu,
					    enum an_cpu_source source);
void cpu_judge_done(struct cpu_judge *j);
enum cpu_leaf cpu_judge_leaf(struct cpu_judge *j, uint32_t node);
enum cpu_state cpu_judge_state(struct cpu_judge *j, const struct cpu_slot *slot, enum cpu_bin bin);
/* The frame that the work of a running thread belongs to: past the calls that only wait or spin. */
uint32_t cpu_judge_worker(struct cpu_judge *j, uint32_t node);
/* The innermost frame of the program itself that neither waits nor spins, or AN_NODE_NONE. */
uint32_t cpu_judge_program(struct cpu_judge *j, uint32_t node);

/* --- cpu_sum.c --- */

/* Of a node: what its stack holds.  MARK_KNOWN: of a method. */
enum cpu_marks {
	MARK_INCLUDED = 1,
	MARK_EXCLUDED = 2,
	MARK_JIT = 4,
	MARK_GC = 8,
	MARK_KNOWN = 16,
};

struct cpu_thread_total {
	uint64_t samples[AN_STATES]; /* by enum cpu_state, without the time */
	uint64_t all; /* of the section's source */
	double level_on_ns[LEVELS]; /* running samples */
	uint64_t on_ns; /* CPU time of the thread: measured, or that of its running samples */
	bool measured;
	bool shown;
};

struct cpu_totals {
	enum an_cpu_source source; /* whose samples count */
	bool knows_waits; /* they tell who waits, too */
	uint64_t samples[AN_STATES]; /* ditto */
	uint64_t all; /* samples */
	uint64_t measured; /* of them, while the CPU use of their thread was measured */
	uint64_t unresolved;
	uint64_t on_ns;
	bool timed; /* on_ns means something */
	bool by_time; /* most is measured: running samples are ranked by time, not by number */
	bool crowded; /* more threads were ready than there are cores */
	double bin_ns[BINS], bin_on_ns[BINS]; /* time of samples, and of those that ran */
	uint64_t left_out; /* samples that the user's filters take away */
	/* Running samples by what they run in: */
	uint64_t spinning; /* methods that spin */
	uint64_t gc, jit; /* of the runtime; profilers of the operating system only */
	uint8_t *marks; /* by node: enum cpu_marks; NULL: not needed */
	/* By node: running samples that count for it and were in calls of it that only wait. */
	uint64_t *moved;
	struct cpu_thread_total *threads;
};

NT_MUST_CHECK enum nt_status cpu_totals_init(struct cpu_totals *t, const struct cpu *c);
void cpu_totals_done(struct cpu_totals *t, const struct cpu *c);
NT_MUST_CHECK enum nt_status cpu_sum(const struct cpu *c, struct cpu_judge *j, struct cpu_totals *t,
				     struct an_profile *p);
enum an_cpu_source cpu_choose_source(const struct cpu *c);
/* Whether the source was on, samples or not. */
bool cpu_was_on(const struct cpu *c, enum an_cpu_source source);
/* Whether samples of the source tell who waits. */
bool cpu_knows_waits(const struct cpu *c, enum an_cpu_source source);

/* The time one sample stands for, usually; -1 not known. */
int64_t cpu_interval_ns(const struct cpu *c, enum an_cpu_source source);
/* How much of the time that was asked for was observed; -1 where that is not known. */
int64_t cpu_observed_ns(const struct cpu *c);

/* --- cpu_report.c --- */

/* What the section is made of. */
struct cpu_rows {
	const struct cpu *c;
	struct cpu_totals *t;
	struct an_profile *p;
	unsigned states; /* samples of the view */
	unsigned rank; /* what it is ranked by: its samples, or measured time */
	uint64_t whole; /* of that */
	uint64_t (*tiers)[AN_TIERS]; /* by row: running samples in code of the method itself */
};

void cpu_add_percent(struct an_value *v, const char *name, uint64_t part, uint64_t whole);

/* --- cpu_paths.c --- */

NT_MUST_CHECK enum nt_status cpu_rows_tiers(struct cpu_rows *r);
NT_MUST_CHECK enum nt_status cpu_add_modules(const struct cpu_rows *r, struct an_value *cpu);
NT_MUST_CHECK enum nt_status cpu_add_paths(const struct cpu_rows *r, struct an_value *cpu);

NT_MUST_CHECK enum nt_status cpu_report(struct cpu *c, struct an_report *out);

/* --- cpu_findings.c --- */

NT_MUST_CHECK enum nt_status cpu_findings(struct cpu_judge *j, const struct cpu_rows *r,
					  struct an_report *out);
/* There were no samples at all. */
void cpu_findings_none(const struct cpu *c, struct an_report *out);

#endif
