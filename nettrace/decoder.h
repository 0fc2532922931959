/* SPDX-License-Identifier: MIT */
#ifndef NETTRACE_DECODER_H
#define NETTRACE_DECODER_H

/*
 * The inside of a decoder, shared by the files that each read one part of the format.
 *
 * Bytes come in through decoder.c, which gathers as many as the current state needs and calls the
 * step of that state (frame_v4.c, frame_v6.c).  Steps hand whole blocks to the readers
 * (block_*.c); those hand rows to deliver.c, which checks sequence numbers and sends events to the
 * sink, directly or through the queue of order.c.
 */

#include "nettrace/arena.h"
#include "nettrace/idmap.h"
#include "nettrace/nettrace.h"
#include "nettrace/span.h"

enum nt_state {
	ST_MAGIC, /* 8 bytes: "Nettrace", or the start of a .netperf header */
	ST_MAGIC_WORD, /* 4: 20 for V4, 0 for V6 */
	ST_FS_NAME, /* 20: "!FastSerialization.1" */
	ST_PERF_NAME, /* 16: the rest of it in a .netperf file */
	ST_OBJECT, /* 1: begin tag, or the end of the stream */
	ST_OBJECT_HEAD, /* 14: tags, versions, length of the type name */
	ST_OBJECT_NAME, /* name and the end tag of the type */
	ST_TRACE_BODY, /* 48 */
	ST_BLOCK_SIZE, /* 4 */
	ST_BLOCK_BODY, /* padding and the block */
	ST_OBJECT_END, /* 1 */
	ST_SCAN, /* after a fault: looks for the next object (recover.c) */
	ST_V6_VERSION, /* 8: major, minor */
	ST_V6_BLOCK, /* 4: size and kind */
	ST_V6_BODY,
	ST_DONE, /* the end tag was read; the rest is ignored */
};

enum nt_block_kind {
	NT_BLOCK_UNKNOWN,
	NT_BLOCK_TRACE,
	NT_BLOCK_EVENT,
	NT_BLOCK_METADATA,
	NT_BLOCK_STACK,
	NT_BLOCK_SEQUENCE,
	NT_BLOCK_THREAD,
	NT_BLOCK_REMOVE_THREAD,
	NT_BLOCK_LABEL,
};

/* One event row as the wire has it; ids are resolved when it is delivered. */
struct nt_row {
	uint32_t metadata_id;
	uint32_t sequence;
	uint64_t capture; /* V6: thread index */
	uint64_t thread; /* V6: thread index */
	uint32_t thread_row; /* V6: of the thread table; NT_IDMAP_NONE: not declared */
	uint64_t ticks;
	uint32_t processor;
	uint32_t stack_id;
	uint32_t label_id; /* V6 */
	bool sorted;
	uint8_t activity[32]; /* V4: activity id, related activity id */
	const uint8_t *payload;
	size_t payload_bytes;
	uint64_t offset;
	/* V3 has its stack in the row. */
	const uint64_t *inline_stack;
	size_t inline_frames;
};

/* A capture thread: numbers its events, and its events are in order of time. */
struct nt_capture {
	uint64_t id;
	uint64_t shown_id; /* OS thread id for reports; the same but in V6 */
	uint32_t last_sequence;
	bool seen;
	bool declared; /* V6: the thread table knew it, so numbering starts at 1 */
	struct nt_held *head, *tail;
};

/* A thread of V6's table. */
struct nt_thread {
	uint64_t process_id;
	uint64_t thread_id;
	const char *name;
	bool removed;
};

struct nt_stack {
	const uint64_t *frames;
	size_t count;
};

/* A label list of V6: labels, and values that override the event's definition. */
struct nt_label_list {
	struct nt_labels labels;
	unsigned overrides; /* enum nt_override bits */
	uint32_t opcode, level, version;
	uint64_t keywords;
};

enum nt_override {
	NT_OVER_OPCODE = 1,
	NT_OVER_KEYWORDS = 2,
	NT_OVER_LEVEL = 4,
	NT_OVER_VERSION = 8,
};

/* A growing array of things numbered from some first id, as stacks and label lists are. */
struct nt_idtable {
	size_t item_bytes;
	void *items;
	size_t count, room;
	uint32_t first_id; /* id of items[0] .. items[dense - 1] */
	size_t dense; /* ids above that, or out of line, are in others */
	struct nt_idmap others;
};

/* Events that wait for their turn (order.c). */
struct nt_queue {
	struct nt_held_page *fill; /* the page that takes new events */
	struct nt_held_page *spare;
	uint32_t *heap; /* capture indexes with events, smallest head first */
	size_t heap_count, heap_room;
	size_t events, bytes;
};

struct nt_decoder {
	const struct nt_alloc *alloc;
	struct nt_limits limits;
	unsigned flags;
	const struct nt_sink *sink;
	void *ctx;

	/* input */
	enum nt_state state;
	size_t need; /* bytes the state's step takes */
	uint8_t *held; /* bytes of the step that came in earlier chunks, from held_at on */
	size_t held_at, held_count, held_room;
	bool no_trailer; /* what comes behind the end of the stream is not to be kept in held */
	uint64_t offset; /* stream position of the step's bytes */

	/* the object or block being read */
	enum nt_block_kind kind;
	const char *block_name;
	const uint8_t *block_start; /* while a step runs on it */
	uint64_t block_offset; /* stream position of block_start */
	uint64_t block_index, row;
	size_t block_bytes, block_pad;
	size_t name_bytes;
	uint32_t object_version, object_reader;
	bool partial; /* the block is cut: read what is whole, then stop */
	size_t cut_bytes; /* so many bytes of it are missing */

	/* outcome */
	enum nt_status status; /* sticky */
	bool drained;
	struct nt_error error;
	bool blemished; /* decoding went on after first_fault */
	struct nt_error first_fault;
	struct nt_stats stats;
	struct nt_trace_info trace;
	bool have_trace;

	/* definitions */
	struct nt_arena defs_arena;
	struct nt_event_def **defs; /* by index */
	uint64_t *def_hashes; /* of the bytes that defined them */
	size_t def_count, def_room;
	struct nt_event_def **def_by_id; /* small metadata ids */
	size_t def_by_id_count;
	struct nt_idmap def_by_big_id;
	struct nt_idmap def_by_hash;
	struct nt_idmap undefined; /* metadata id -> index of a made-up definition */

	/* capture threads, and losses by thread */
	struct nt_capture *captures;
	size_t capture_count, capture_room;
	struct nt_idmap capture_by_id;
	uint32_t last_capture; /* index of the one used last */
	struct nt_thread_loss *losses;
	size_t loss_count, loss_room;
	struct nt_idmap loss_by_thread;

	/* between sequence points */
	uint64_t epoch;
	struct nt_arena epoch_arena;
	struct nt_idtable stacks; /* struct nt_stack */
	struct nt_idtable lists; /* struct nt_label_list; V6 */

	/* V6 threads */
	struct nt_arena thread_arena;
	struct nt_thread *threads;
	size_t thread_count, thread_room;
	struct nt_idmap thread_by_index;

	/* delivery */
	struct nt_queue queue;
	uint64_t last_ticks; /* of the last delivered event */
	struct nt_labels labels;
	struct nt_event ev;
	uint64_t *v3_stack; /* room for one inline stack */
	size_t v3_stack_room;
};

/* --- decoder.c --- */

/* Records the first error; returns code.  at: a byte of the current block, or NULL for its start.
 */
enum nt_status nt_fail(struct nt_decoder *d, enum nt_status code, const uint8_t *at,
		       const char *what);
/* Records a fault that decoding can go on after; it is returned at the end of the stream. */
void nt_blemish(struct nt_decoder *d, const uint8_t *at, const char *what);
/* The span went bad: something in a complete block is longer than its surroundings. */
enum nt_status nt_fail_span(struct nt_decoder *d, const struct nt_span *s, const char *what);
enum nt_status nt_fail_nomem(struct nt_decoder *d);
/* An arena refused: NT_ELIMIT or NT_ENOMEM. */
enum nt_status nt_fail_arena(struct nt_decoder *d, const struct nt_arena *a, const char *what);
/*
 * Makes the status of a step, perhaps a callback's answer, that of the decoder; a refusal becomes
 * its error unless there is one.  Returns the decoder's status; NT_STOPPED is no fault.
 */
enum nt_status nt_settle(struct nt_decoder *d, enum nt_status st);
/* Sets the next state. */
void nt_expect(struct nt_decoder *d, enum nt_state state, size_t need);
/* items with room for one more than n of them, perhaps moved; NULL: no memory, items untouched. */
void *nt_grow(const struct nt_alloc *alloc, void *items, size_t n, size_t *room, size_t size);
/* Starts a block for error messages and row counting. */
void nt_enter_block(struct nt_decoder *d, const uint8_t *start);

/* A block is over; errors until the next one are about what name says. */
void nt_between_blocks(struct nt_decoder *d, const char *name);

/* --- frame_v4.c, frame_v6.c: one step a state; p has d->need bytes --- */
enum nt_status nt_step_v4(struct nt_decoder *d, const uint8_t *p);
enum nt_status nt_step_v6(struct nt_decoder *d, const uint8_t *p);
/* Reads the kind of block that d->kind says; V4 block bodies and all V6 ones. */
enum nt_status nt_block_v4(struct nt_decoder *d, struct nt_span b);
enum nt_status nt_block_v6(struct nt_decoder *d, struct nt_span b);

/* --- recover.c --- */
/*
 * After a fault in the step that had *used bytes at p: notes it and goes on where the next block
 * may begin, if that can be found.  Sets *used to the bytes that are done with.  Returns NT_OK, or
 * st when nothing can be done.
 */
enum nt_status nt_recover(struct nt_decoder *d, enum nt_status st, const uint8_t *p, size_t *used);
/* The step of ST_SCAN. */
enum nt_status nt_scan(struct nt_decoder *d, const uint8_t *p, size_t *used);

/* --- block_trace.c --- */
enum nt_status nt_trace_v4(struct nt_decoder *d, struct nt_span b);
enum nt_status nt_trace_v6(struct nt_decoder *d, struct nt_span b);
int64_t nt_ticks_to_ns(const struct nt_trace_info *t, uint64_t ticks);

/* --- block_event.c --- */
enum nt_status nt_read_events_v3(struct nt_decoder *d, struct nt_span b);
/* Event and metadata blocks of V4, event blocks of V6. */
enum nt_status nt_read_events(struct nt_decoder *d, struct nt_span b);

/* --- block_metadata.c --- */
enum nt_status nt_read_definition(struct nt_decoder *d, struct nt_span payload);
enum nt_status nt_read_metadata_v6(struct nt_decoder *d, struct nt_span b);
struct nt_event_def *nt_find_def(struct nt_decoder *d, uint32_t metadata_id);
/* A definition made up for an id that has none; NULL: d->status says why. */
struct nt_event_def *nt_undefined_def(struct nt_decoder *d, uint32_t metadata_id);
void nt_forget_metadata_ids(struct nt_decoder *d);

/* --- fields.c: field lists of definitions --- */
enum nt_field_grammar { NT_FIELDS_V1, NT_FIELDS_V2, NT_FIELDS_V6 };
/* NT_OK, NT_ENOMEM, NT_ELIMIT; NT_EFORMAT when the list makes no sense (nothing is recorded). */
enum nt_status nt_read_fields(struct nt_arena *arena, struct nt_span *s,
			      enum nt_field_grammar grammar, bool universal, uint32_t count,
			      const struct nt_field **ret_fields, size_t *ret_count);

/* --- block_stack.c --- */
enum nt_status nt_read_stacks(struct nt_decoder *d, struct nt_span b);
void nt_idtable_init(struct nt_idtable *t, const struct nt_alloc *alloc, size_t item_bytes);
void nt_idtable_done(struct nt_idtable *t);
void nt_idtable_clear(struct nt_idtable *t);
/* Zeroed room for the item of that id; an older item of that id is forgotten.  NULL: no memory. */
void *nt_idtable_add(struct nt_idtable *t, uint32_t id);
bool nt_idtable_full(const struct nt_decoder *d, const struct nt_idtable *t);
const void *nt_idtable_find(const struct nt_idtable *t, uint32_t id);

/* --- block_thread.c, block_label.c (V6) --- */
enum nt_status nt_read_threads(struct nt_decoder *d, struct nt_span b);
enum nt_status nt_read_removed_threads(struct nt_decoder *d, struct nt_span b);
/* The row of the thread table that index means now; NT_IDMAP_NONE: none, or removed. */
uint32_t nt_find_thread(const struct nt_decoder *d, uint64_t index);
void nt_forget_threads(struct nt_decoder *d);
enum nt_status nt_read_labels(struct nt_decoder *d, struct nt_span b);
/* A V6 string: varuint length, UTF-8. */
const uint8_t *nt_str6(struct nt_span *s, size_t *ret_bytes);

/* --- block_sequence.c --- */
enum nt_status nt_read_sequence_point(struct nt_decoder *d, struct nt_span b);
/* The capture thread with that id, made when new.  NULL: d->status says why. */
struct nt_capture *nt_get_capture(struct nt_decoder *d, uint64_t id);
enum nt_status nt_check_sequence(struct nt_decoder *d, struct nt_capture *c, uint32_t sequence,
				 uint64_t ticks);
/* That id means another thread from now on, with numbers from 1. */
void nt_renew_capture(struct nt_decoder *d, uint64_t id, uint64_t shown_id);
/* Says that the thread's numbering has reached sequence (at a sequence point or removal). */
enum nt_status nt_check_reached(struct nt_decoder *d, uint64_t id, uint32_t sequence,
				uint64_t ticks);

/* --- deliver.c --- */
/* Takes a row of an event: checks its number, then delivers or queues it. */
enum nt_status nt_take_row(struct nt_decoder *d, const struct nt_row *row);
/* Sends a row to the sink now. */
enum nt_status nt_deliver(struct nt_decoder *d, const struct nt_row *row);

/* --- order.c --- */
enum nt_status nt_queue_add(struct nt_decoder *d, struct nt_capture *c, const struct nt_row *row);
/* Delivers what is older than ticks; all of it with nt_queue_drain(). */
enum nt_status nt_queue_release(struct nt_decoder *d, uint64_t ticks);
enum nt_status nt_queue_drain(struct nt_decoder *d);
void nt_queue_done(struct nt_decoder *d);

#endif
