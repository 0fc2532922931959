/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_PLAY_H
#define TESTS_SUPPORT_PLAY_H

/*
 * Plays made-up events to an analysis engine, without a stream: for tests of analyzers.
 *
 *	struct play p;
 *	play_begin(&p, NULL, classes, NULL);
 *	build_u32(&b, 7);
 *	play_event(&p, NT_PROV_RUNTIME, 1, 2, 100, 1.5, &b);
 *	assert_int_equal(an_get_u64(play_report(&p), "gc.count", 0), 1);
 *	play_end(&p);
 *
 * Layouts of events come from the built-in table, as for real ones.
 */

#include "analyzers/analyzer.h"
#include "nettrace/arena.h"
#include "tests/support/build.h"

enum { PLAY_KINDS = 64, PLAY_FRAMES = 8192 };

struct play {
	const struct nt_alloc *alloc;
	struct an_engine *engine;
	struct nt_decoder *decoder; /* of a complete trace without events, for the report */
	struct an_report *report;
	struct nt_trace_info trace; /* format 4, 8-byte pointers, 2 processors; may be changed */
	struct nt_event_def defs[PLAY_KINDS];
	size_t def_count;
	struct nt_arena arena; /* layouts */
	struct nt_labels labels;
	uint64_t stack[PLAY_FRAMES]; /* of the events to come, leaf first */
	size_t frame_count;
	uint32_t stack_id; /* ditto; 0: not remembered by id */
	uint64_t stack_epoch;
	int64_t process_id;
	const char *thread_name;
	const struct an_provider *enabled; /* what the recording asked for; NULL: not known */
	/* What the system says of threads; NULL: nothing. */
	const struct an_os_thread *threads;
	size_t thread_count;
	uint64_t watched_ns;
	enum nt_status status; /* the first that was not NT_OK; then nothing more is played */
};

/* alloc, options NULL: the defaults.  False when out of memory; play_end() then, too. */
bool play_begin(struct play *p, const struct nt_alloc *alloc, const struct an_class *const *classes,
		const struct an_options *options);
void play_end(struct play *p);

/* Sets the stack of the events to come: count addresses, leaf first. */
void play_stack(struct play *p, size_t count, ...);

/* Uses up the payload b, which may be NULL. */
void play_event(struct play *p, enum nt_provider provider, uint32_t id, uint32_t version,
		uint64_t thread, double ms, struct build *b);
/* An event with a provider and fields of its own, all static. */
void play_own(struct play *p, enum nt_provider provider, const char *name, uint32_t id,
	      const struct nt_field *fields, size_t field_count, uint64_t thread, double ms,
	      struct build *b);

/* Code of a method at [start, start + size): MethodLoadVerbose, or of the rundown. */
void play_method(struct play *p, bool rundown, uint64_t start, uint32_t size, const char *type,
		 const char *name, const char *signature, double ms);
/* A sample of the current stack; type 1 external, 2 managed. */
void play_sample(struct play *p, uint64_t thread, double ms, unsigned type);

/* The root of the report, made by the first call. */
const struct an_value *play_report(struct play *p);
/* The nth element of the array at path, or NULL. */
const struct an_value *play_row(struct play *p, const char *path, size_t n);
/* The element of the array at path whose member has that text, or NULL. */
const struct an_value *play_find(struct play *p, const char *path, const char *member,
				 const char *text);
/* Whether there is a finding of that id. */
bool play_finds(struct play *p, const char *id);

#endif
