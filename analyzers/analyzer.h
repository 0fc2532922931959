/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_ANALYZER_H
#define ANALYZERS_ANALYZER_H

/*
 * What an analyzer is, and the engine that feeds a set of them from one decoder.
 *
 * An analyzer is a constant table of functions.  It gets events in time order, keeps bounded
 * state, and fills its section of the report at the end.  It knows no output format.  How to add
 * one: README.md of this folder.
 */

#include "analyzers/calltree.h"
#include "analyzers/cpu_source.h"
#include "analyzers/limit.h"
#include "analyzers/methods.h"
#include "analyzers/report.h"
#include "nettrace/nettrace.h"

/* A provider an analyzer wants enabled; a list of them ends at a NULL name. */
struct an_provider {
	const char *name;
	uint64_t keywords;
	unsigned level;
};

enum an_view { AN_VIEW_CPU, AN_VIEW_WALL, AN_VIEW_WAITING };

/* Whether a name is one of those that the user asked for. */
struct an_matcher {
	bool (*matches)(void *ctx, const char *name);
	void *ctx;
};

enum an_tree { AN_TREE_NONE, AN_TREE_CALLEES, AN_TREE_CALLERS };

/* Which samples the CPU section is about, and what it shows of them.  All zeros: all, no tree. */
struct an_cpu_options {
	int64_t from_ns, to_ns; /* since session start; to_ns 0: to the end */
	bool one_thread, one_process;
	uint64_t thread_id;
	int64_t process_id;
	const struct an_matcher *include, *exclude; /* by any frame of the stack; NULL: none */
	enum an_tree tree;
	size_t depth; /* of the tree; 0: the usual */
	double min_percent; /* branches of the tree with less are left out */
	bool inclusive_first; /* order of methods */
	bool fold_generics;
};

struct an_options {
	size_t top; /* rows of each list; 0 means all */
	enum an_view view; /* which samples the CPU section ranks */
	const struct an_limits *limits; /* of findings; NULL: as they are initially */
	struct an_cpu_options cpu;
};

/* A thread as the operating system has it, watched while the recording went on. */
struct an_os_thread {
	uint64_t id; /* as events have it */
	const char *name; /* ".NET TP Worker"; "" unknown */
	char state; /* of /proc: 'R' running, 'S' sleeping, 'T' stopped, ...; 0: not known */
	bool cpu_known;
	uint64_t cpu_ns; /* used while it was watched */
};

/* How it came that a stream has no end. */
enum an_cut {
	AN_CUT_UNKNOWN, /* as of a file */
	AN_CUT_TARGET, /* the process ended */
	AN_CUT_ASKED, /* whoever recorded did not want to wait */
	AN_CUT_SILENT, /* the process did not send it */
};

/* What the world knows of the input beyond its bytes. */
struct an_input {
	const char *file; /* name to show; NULL: none */
	enum an_cut cut;
	const char *cut_why; /* "the process was killed by ..."; NULL: not known */
	const char *file_cut; /* why the file ends before what was analysed; NULL: it does not */
	/* What the recording asked for; ends at a NULL name.  NULL: not known, as of a file. */
	const struct an_provider *enabled;
	/* All threads of the process at the end, by rising id; NULL: not known, as of a file. */
	const struct an_os_thread *threads;
	size_t thread_count;
	uint64_t watched_ns; /* for how long they were watched */
};

/* From RuntimeInformation (187), which may come last: known only when reporting. */
struct an_runtime {
	bool known;
	unsigned sku; /* 1 .NET Framework, 2 CoreCLR, 4 Mono */
	uint32_t startup_flags; /* 1 concurrent collector, 0x1000 server collector */
	unsigned vm[4]; /* major, minor, build, QFE of the runtime's library */
	char directory[32]; /* "3.1.3" where the path of the runtime's library says so, or "" */
};

/* What all analyzers of one trace share.  Owned by the engine. */
struct an_shared {
	const struct nt_alloc *alloc;
	struct an_options options;
	struct nt_trace_info trace; /* valid once the first event arrives */
	struct an_methods *methods; /* addresses to names; complete only when reporting */
	struct an_calltree *tree; /* interned stacks */
	unsigned runtime_major; /* 3 (.NET Core 3.1), 8, 9, …; 0 unknown */
	int64_t first_ns, last_ns; /* first and last event seen, rundown included */
	int64_t last_live_ns; /* last event that is not rundown */
	int64_t rundown_ns; /* first rundown event: the session was stopped just before */
	bool have_events, have_live, have_rundown;
	bool not_counted; /* the event at hand; see an_engine_count() */
	uint64_t lost; /* events lost by the writer so far */
	struct an_runtime runtime;
	const struct an_cpu_time *cpu_time; /* NULL: not measured */
	/* Set before any report() is called. */
	const struct an_input *input;
	const struct nt_decoder *decoder;
	const struct nt_thread_loss *losses; /* most first */
	size_t loss_count;
};

/* How long was watched, from session start to its stop; -1 when nothing says so. */
int64_t an_observed_ns(const struct an_shared *shared);
/*
 * Whether the recording asked for all these keywords of a provider at that level or a higher one:
 * then their absence means that nothing happened.  False when that is not known.  Only when
 * reporting.
 */
bool an_was_enabled(const struct an_shared *shared, const char *provider, uint64_t keywords,
		    unsigned level);
/* The limit of a finding, as the user wants it, in the unit of its table. */
double an_limit(const struct an_shared *shared, enum an_limit which);
/* Whether the trace looks like one of NativeAOT, whose names are not in the trace. */
bool an_looks_native(const struct an_shared *shared);

/* That thread, or NULL when it is not known.  Only when reporting. */
const struct an_os_thread *an_find_os_thread(const struct an_shared *shared, uint64_t id);

struct analyzer; /* each analyzer's own state */

enum an_needs {
	AN_NEED_ORDER = 1, /* events in the order of time */
	AN_NEED_STACKS = 2, /* the call tree, and with it the names of methods */
};

/* What recording for an analyzer costs the process that is traced. */
enum an_cost {
	AN_COST_UNSTATED,
	AN_COST_NONE, /* it asks for nothing of its own */
	AN_COST_LOW, /* not to be measured in an ordinary program */
	AN_COST_MODERATE, /* a few percent */
	AN_COST_HIGH, /* grows with what the program does: short recordings */
};

/* Something a user may choose; the option of the same name sets it.  A list ends at a NULL name. */
struct an_param {
	const char *name; /* "top" */
	const char *summary;
	const char *type; /* "number", "choice", "duration" */
	const char *initial; /* what it is when nothing is said */
	const char *range; /* "0..1000000", "cpu|wall|waiting" */
};

/* For analyzers without parameters but the number of rows. */
extern const struct an_param an_params_rows[];

/* Something that a person should hear of while the recording still goes on. */
struct an_live {
	const char *id; /* of the finding that it will be */
	char text[200];
};

struct an_class {
	const char *name; /* its section of the report */
	const char *summary;
	const struct an_provider *providers; /* what collect enables by default: cheap */
	const struct an_provider
		*on_request; /* its own profile: instead of providers; may be NULL */
	/* Which events it wants; asked once per definition.  NULL: all. */
	bool (*wants)(const struct nt_event_def *def);
	struct analyzer *(*new)(struct an_shared *shared); /* NULL: out of memory */
	enum nt_status (*event)(struct analyzer *a, const struct nt_event *ev);
	enum nt_status (*report)(struct analyzer *a, struct an_report *out);
	/*
	 * After the reports of all: joins what the sections say.  It adds no section.  May be
	 * NULL.
	 */
	void (*conclude)(struct analyzer *a, struct an_report *out);
	struct analyzer *(*free)(struct analyzer *a); /* returns NULL; accepts NULL */
	/* now_ns: on the clock of the events, which may be silent.  NULL: it never has any. */
	bool (*live)(struct analyzer *a, int64_t now_ns, struct an_live *ret);
	unsigned needs; /* enum an_needs */
	bool asked_only; /* part of a report only where it is named */
	bool uses_waits; /* samples of waiting threads tell it more, where they are recorded */
	/* For the catalogue. */
	const char
		*symptom; /* what a user sees when this is the one to ask: "the service is slow" */
	enum an_cost cost; /* of providers; where there are none, of on_request */
	unsigned seconds; /* a recording that is usually long enough; 0: no idea */
	const struct an_param *params; /* NULL: none */
};

extern const struct an_class an_class_trace; /* metadata of the trace, counts, losses */
extern const struct an_class an_class_cpu;
extern const struct an_class an_class_gc;
extern const struct an_class an_class_tasks;
extern const struct an_class an_class_alloc;
extern const struct an_class an_class_exceptions;
extern const struct an_class an_class_jit;
extern const struct an_class an_class_counters; /* EventCounters and Meters as time series */
extern const struct an_class an_class_locks;
extern const struct an_class an_class_threadpool;
extern const struct an_class an_class_threads;
extern const struct an_class an_class_stacks; /* what each thread was doing at the end */

/* All of them, in the order of the report; ends at NULL. */
extern const struct an_class *const an_classes[];

/* --- engine.c --- */

struct an_engine;

/*
 * classes: those to run; ends at NULL.  NULL when out of memory.  The engine's sink is
 * an_engine_sink with the engine as context; the decoder's flags are an_engine_flags().
 */
struct an_engine *an_engine_new(const struct nt_alloc *alloc, const struct an_options *options,
				const struct an_class *const *classes);
struct an_engine *an_engine_free(struct an_engine *e); /* returns NULL */
extern const struct nt_sink an_engine_sink;
/* Flags for the decoder (NT_TIME_ORDER, NT_SKIP_STACKS), by what the classes need. */
unsigned an_engine_flags(const struct an_engine *e);
/*
 * Whether section trace counts the events from now on (it does).  What they say of the trace
 * itself, its process and how long it is, is taken from all of them.
 */
void an_engine_count(struct an_engine *e, bool counted);
/*
 * Events that were not asked for but came all the same: only counted as part of the trace.  Before
 * the first byte is pushed.
 */
void an_engine_ignore(struct an_engine *e, bool (*ignored)(void *ctx, const struct nt_event_def *d),
		      void *ctx);
/*
 * An event of another stream of the same process that may name code, as an early rundown has them.
 * It is not part of the trace.
 */
NT_MUST_CHECK enum nt_status an_engine_name(struct an_engine *e, const struct nt_event *ev);
/* For live figures while the trace is still being read. */
const struct an_shared *an_engine_borrow_shared(const struct an_engine *e);

/* What most needs to be said now; names of code are not known yet.  False: nothing. */
bool an_engine_live(struct an_engine *e, int64_t now_ns, struct an_live *ret);

/*
 * Fills the report: the sections of the engine's classes, findings about the trace itself
 * (truncated, lost events, no rundown), then seals it.  d is the decoder that fed the engine.
 */
NT_MUST_CHECK enum nt_status an_engine_report(struct an_engine *e, struct nt_decoder *d,
					      const struct an_input *input, struct an_report *out);

#endif
