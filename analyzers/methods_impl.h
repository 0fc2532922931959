/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_METHODS_IMPL_H
#define ANALYZERS_METHODS_IMPL_H

/* Inside of methods.c, shared with universal.c only. */

#include "analyzers/method_table.h"
#include "analyzers/ranges.h"

/*
 * An epoch is a number for one loading of code: in the upper bits the process (its space, 0 where a
 * trace has only one), in the lower ones a count; count 0 holds from the beginning of the trace.
 */
enum {
	AN_EPOCH_BITS = 20,
	AN_MAX_SPACES = 4095, /* the last takes processes for which there is no number left */
};

/* What look-ups make, also through a const pointer. */
struct an_methods_spaces {
	struct nt_idmap by_pid;
	uint32_t count; /* spaces given out; number 0 is for traces of one process */
	bool failed;
};

struct an_methods {
	const struct nt_alloc *alloc;
	struct an_method_table table;
	struct an_ranges live; /* code now; space: process; value: method */
	struct an_ranges old; /* code that was replaced; space: its epoch */
	struct an_ranges files; /* mapped files; space: process; value: index of file_names */
	const char **file_names;
	size_t file_count, file_cap;
	struct nt_idmap files_by_name; /* hash of the name -> number */
	struct nt_arena file_arena;
	struct nt_idmap reuse; /* range and method that were there before -> epoch */
	struct an_methods_spaces *spaces;
	uint32_t next_epoch;
	uint64_t changes;
	uint64_t dropped;
	uint64_t bad_ranges;
	bool rundown_begun, rundown_complete;
	char *scratch;
	size_t scratch_cap;
};

/*
 * Code of a method at [start, last] from now on, in the process of that base epoch.  Takes over one
 * reference to the method, also when it fails.
 */
NT_MUST_CHECK enum nt_status an_methods_load(struct an_methods *m, uint32_t base, uint64_t start,
					     uint64_t last, enum an_tier tier,
					     uint32_t take_method);

/* Events of Universal.System (version 6 files). */
NT_MUST_CHECK enum nt_status an_universal_event(struct an_methods *m, const struct nt_event *ev);
bool an_universal_wants(const struct nt_event_def *def);

#endif
