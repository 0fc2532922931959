/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_ONE_EVENT_H
#define TESTS_SUPPORT_ONE_EVENT_H

/* One event made of a field list and bytes, for tests of the payload readers. */

#include "nettrace/nettrace.h"

struct one_event {
	struct nt_event ev; /* hand &o.ev to the library; o must not move */
	struct nt_event_def def;
	struct nt_trace_info trace;
	struct nt_labels labels;
	uint8_t *bytes; /* the payload, in a heap block of exactly its size */
};

/* Copies the bytes.  8-byte pointers; set o->trace.pointer_size for others. */
void one_event_init(struct one_event *o, enum nt_layout layout, const struct nt_field *fields,
		    size_t field_count, const void *bytes, size_t size);
/* The same with bytes as text: "01 ff 2a"; 'ab' between apostrophes stands for itself. */
void one_event_hex(struct one_event *o, enum nt_layout layout, const struct nt_field *fields,
		   size_t field_count, const char *hex);
void one_event_done(struct one_event *o);

bool same_fit(const struct nt_payload_fit *a, const struct nt_payload_fit *b);

/*
 * What nt_payload_visit() tells, in one line: name=value, objects in braces, arrays in brackets
 * with their number of elements behind: "n=1 o={b=true} a=[1 2]#2".
 * Fails the test when the callbacks are not balanced or point outside of the payload.
 */
struct event_text {
	char text[4096];
	size_t len;
	size_t depth;
	size_t calls;
	size_t stop_after; /* calls; 0: never */
	enum nt_status stop_with;
	const struct nt_event *ev;
};

enum nt_status event_text(struct event_text *t, const struct nt_event *ev,
			  struct nt_payload_fit *ret_fit);

#endif
