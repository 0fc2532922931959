/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_JIT_JIT_INTERNAL_H
#define ANALYZERS_JIT_JIT_INTERNAL_H

/*
 * Inside of the JIT analyzer: jit.c takes the events, jit_methods.c sums up by method and
 * jit_report.c writes the section.
 */

#include "analyzers/rate.h"
#include "analyzers/sites.h"
#include "analyzers/textset.h"

enum {
	JIT_DEPTH = 32, /* methods being compiled inside of each other, on one thread */
	JIT_ASSEMBLIES = 256, /* kept by name */
};

/* One version of the code of a method, compiled while we watched. */
struct jit_load {
	uint64_t address;
	uint64_t jit_ns; /* without what was compiled meanwhile */
	uint32_t epoch;
	uint32_t code_bytes, il_bytes; /* il_bytes 0: not known */
	uint8_t tier;
	bool timed; /* jit_ns is known */
	bool rejected; /* its precompiled code could not be used */
};

/* Running samples by the address of the leaf. */
struct jit_sample {
	uint64_t address;
	uint32_t epoch;
	uint64_t count;
};

struct jit_open {
	uint64_t method_id;
	int64_t start_ns;
	uint64_t nested_ns; /* compilations inside of it */
	uint32_t il_bytes;
	uint32_t node;
};

struct jit_thread {
	uint64_t id;
	size_t depth;
	struct jit_open open[JIT_DEPTH];
	/* types being loaded */
	size_t type_depth;
	int64_t type_start_ns;
	/* the compiler's background work */
	bool background;
	int64_t background_ns;
};

struct jit_assembly {
	uint32_t name;
	int64_t time_ns;
};

/* Dynamic methods whose names differ in numbers only. */
struct jit_dynamic {
	uint32_t name;
	uint64_t count;
};

struct jit_place {
	uint32_t node;
	uint64_t count;
};

struct jit {
	struct an_shared *shared;
	bool recorded; /* anything but samples and rundown */
	bool timed; /* with starts of compilations */
	bool loads_recorded; /* methods as they were loaded; without them nothing was counted */
	bool assemblies_recorded;
	/* methods */
	uint64_t compiled, precompiled, stubs, tiers[AN_TIERS];
	uint64_t rejected; /* of those compiled */
	uint64_t rejected_before; /* by the rundown: compiled before the session as well */
	uint64_t code_bytes, il_bytes;
	uint64_t total_ns;
	uint64_t waited_ns; /* of it, what threads of the program waited for */
	uint64_t matched; /* compilations whose time is known */
	struct jit_load *loads;
	size_t load_count, load_cap;
	uint64_t loads_dropped;
	/* dynamic methods */
	uint64_t dynamic_loaded, dynamic_unloaded;
	uint64_t dynamic_ns;
	struct an_textset names;
	struct jit_dynamic *dynamic;
	size_t dynamic_count, dynamic_cap;
	struct nt_idmap by_dynamic;
	uint64_t dynamic_other;
	struct jit_place *places;
	size_t place_count, place_cap;
	struct nt_idmap by_place;
	/* samples in code that is not optimised */
	struct jit_sample *samples;
	size_t sample_count, sample_cap;
	struct nt_idmap by_address;
	uint64_t running; /* samples */
	uint64_t samples_dropped;
	/* tiers */
	uint64_t background_batches, background_methods, pauses, resumes;
	uint64_t background_ns;
	uint64_t pause_ns;
	int64_t pause_start_ns; /* -1: not paused */
	/* types and assemblies */
	uint64_t types_loaded;
	uint64_t type_ns;
	uint64_t assemblies_loaded, assemblies_unloaded, assemblies_dynamic, assemblies_collectible;
	struct jit_assembly assemblies[JIT_ASSEMBLIES];
	size_t assembly_count;
	/* threads */
	struct jit_thread *threads;
	size_t thread_count, thread_cap;
	struct nt_idmap by_thread;
	struct an_rate rate; /* methods compiled */
	/* Within a second of the first one: start-up, where the recording has it. */
	int64_t first_ns;
	uint64_t first_count, first_jit_ns;
};

/* --- jit_methods.c --- */

struct jit_row {
	const struct an_method *method; /* NULL: no name */
	uint64_t address;
	uint32_t epoch;
	uint64_t count, code_bytes, il_bytes;
	bool timed; /* ns and max_ns are known */
	uint64_t ns, max_ns;
	unsigned tiers; /* bits */
	bool rejected;
	uint64_t samples; /* in its code that is not optimised */
};

struct jit_rows {
	struct jit_row *row;
	size_t count, cap;
	struct nt_idmap by_method;
	uint64_t slow_samples; /* in code that is not optimised, of any method */
};

/* From loads and samples; any order. */
NT_MUST_CHECK enum nt_status jit_rows_init(struct jit_rows *r, struct jit *j);
void jit_rows_done(struct jit_rows *r, const struct jit *j);

/* --- jit_report.c --- */

NT_MUST_CHECK enum nt_status jit_report(struct jit *j, struct an_report *out);

#endif
