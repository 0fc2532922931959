/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_EXCEPTIONS_EXCEPTIONS_INTERNAL_H
#define ANALYZERS_EXCEPTIONS_EXCEPTIONS_INTERNAL_H

/* Inside of the exceptions analyzer: exceptions.c counts, exceptions_report.c writes the section.
 */

#include "analyzers/rate.h"
#include "analyzers/sites.h"
#include "analyzers/textset.h"

enum {
	EX_MESSAGES = 6, /* kept of each type */
	EX_MESSAGE_BYTES = 200, /* of each message */
	EX_CATCHES = 32, /* open catch blocks known of a thread */
};

/* Messages that differ in numbers only are one. */
struct ex_message {
	uint64_t hash; /* of the text with its numbers left out */
	uint64_t count;
	char text[EX_MESSAGE_BYTES]; /* of the first */
};

struct ex_type {
	uint32_t name; /* AN_TEXT_OTHER: types beyond the cap */
	uint64_t count; /* events */
	uint64_t repeats; /* thrown while the same one was being caught */
	uint64_t inner, nested, flagged; /* flags of the event; flagged: thrown again */
	uint64_t caught;
	uint64_t handling_ns, handling_max_ns; /* from the throw to its catch block */
	uint32_t hresult;
	struct ex_message messages[EX_MESSAGES];
	size_t message_count;
	uint64_t other_messages;
};

/* One type at one stack. */
struct ex_cell {
	uint32_t type, node;
	uint64_t count, repeats;
};

/* Who caught what. */
struct ex_catch {
	uint32_t type, method;
	uint64_t count;
};

/* A catch block that was entered and not seen to be left. */
struct ex_open {
	uint64_t hash; /* of what it caught; 0 unknown */
	uint32_t type;
	size_t frames; /* of the stack there; 0 unknown */
};

struct ex_thread {
	uint64_t id;
	bool pending; /* thrown, not yet seen to be caught */
	uint32_t type; /* of the pending one */
	uint64_t hash; /* of its type and message */
	int64_t time_ns;
	size_t depth; /* open catch blocks */
	struct ex_open open[EX_CATCHES];
};

struct exceptions {
	struct an_shared *shared;
	bool handling_recorded; /* catch events are in the trace */
	uint64_t count, repeats, caught, finally, filters;
	uint64_t in_catch; /* thrown while some other exception was being caught */
	uint64_t passed_on; /* caught and thrown on by 'throw;', which sends no event of its own */
	size_t deepest; /* catch blocks inside of each other */
	uint64_t catches_dropped; /* too deep, or without a place */
	struct an_textset names, catchers;
	struct ex_type *types;
	size_t type_count, type_cap;
	uint64_t other_types; /* events of types beyond the cap */
	struct nt_idmap by_name;
	struct ex_cell *cells;
	size_t cell_count, cell_cap;
	struct nt_idmap by_place;
	uint64_t crowded; /* events counted without their stack */
	struct ex_catch *catches;
	size_t catch_count, catch_cap;
	struct nt_idmap by_catch;
	struct ex_thread *threads;
	size_t thread_count, thread_cap;
	struct nt_idmap by_thread;
	struct an_rate rate; /* without repeats */
};

NT_MUST_CHECK enum nt_status exceptions_report(struct exceptions *x, struct an_report *out);

#endif
