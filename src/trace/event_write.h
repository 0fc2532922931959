/* SPDX-License-Identifier: MIT */
#ifndef SRC_TRACE_EVENT_WRITE_H
#define SRC_TRACE_EVENT_WRITE_H

/* One event as a line of text, of NDJSON or of CSV. */

#include <stdbool.h>
#include <stddef.h>

#include "analyzers/methods.h"
#include "nettrace/nettrace.h"
#include "src/base/output.h"

enum event_format { EVENT_TEXT, EVENT_NDJSON, EVENT_CSV };

/* Names for the addresses of stacks.  Epochs come from the one that follows the stream. */
struct event_names {
	const struct an_methods *follow; /* has seen the stream up to this event */
	const struct an_methods *complete; /* has seen all of it; NULL: no names, only addresses */
};

/* Text that one event makes; grows, and is used again. */
struct event_buffer {
	char *text;
	size_t len, room;
	bool failed; /* out of memory */
};

struct event_writer {
	struct out *out;
	enum event_format format;
	bool stacks;
	struct event_names names;
	struct event_buffer buffer;
};

/* The line that names the columns, where the format has one. */
void event_write_head(struct event_writer *w);
enum nt_status event_write(struct event_writer *w, const struct nt_event *ev);
void event_writer_done(struct event_writer *w);

/* "Shop.Cpu.Hot(int)", or the address when it has no name. */
void event_frame(const struct event_names *names, const struct nt_event *ev, size_t frame,
		 char *buf, size_t size);

/* --- shared by the formats --- */

void event_guid(const uint8_t *bytes, char buf[37]);
/* "2024-01-15T12:00:00.250001Z" */
void event_time(int64_t unix_ns, char buf[40]);
/* The text of a string value as UTF-8 in the buffer; false when out of memory. */
bool event_string(struct event_buffer *b, const struct nt_value *v);
bool event_raw_payload(const struct nt_event *ev); /* its fields are not known */

enum nt_status event_write_json(struct event_writer *w, const struct nt_event *ev);
enum nt_status event_write_text(struct event_writer *w, const struct nt_event *ev);
enum nt_status event_write_csv(struct event_writer *w, const struct nt_event *ev);

#endif
