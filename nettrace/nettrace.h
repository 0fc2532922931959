/* SPDX-License-Identifier: MIT */
#ifndef NETTRACE_NETTRACE_H
#define NETTRACE_NETTRACE_H

/*
 * nettrace: bytes of a .nettrace or .netperf stream in, events out.
 *
 * A pure library: it uses the C library only, does no I/O, reads no clock and prints nothing.
 * The caller pushes bytes in chunks of any size; the decoder calls the functions of a sink.
 * What a callback receives is valid until the callback returns, except where a comment says more.
 *
 * The format is described in README.md of this folder, by block and version.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NT_MUST_CHECK __attribute__((warn_unused_result))

/* Negative: an error, and it sticks.  Positive: an outcome.  nt_status_name() has the words. */
enum nt_status {
	NT_OK = 0,
	NT_STOPPED = 1, /* the sink asked for no more events; later bytes are ignored */
	NT_EFORMAT = -1, /* the bytes contradict the format, or each other */
	NT_ETRUNC = -2, /* the stream ends before its end tag */
	NT_ELIMIT = -3, /* a limit of struct nt_limits was reached */
	NT_ENOMEM = -4, /* out of memory */
	NT_EVERSION = -5, /* a version of the format that is not supported */
	NT_ESINK = -6, /* a callback failed for a reason of its own */
};

const char *nt_status_name(enum nt_status st);

/*
 * Where all memory comes from.  Like realloc(): ptr NULL allocates, size 0 frees and returns NULL,
 * a failure returns NULL and leaves ptr as it was.
 */
struct nt_alloc {
	void *(*realloc)(void *ctx, void *ptr, size_t size);
	void *ctx;
};

extern const struct nt_alloc nt_alloc_default; /* the C library's realloc() and free() */

/* 0 in any member means the default, given behind it. */
struct nt_limits {
	size_t max_block; /* bytes of one block: 64 MiB */
	size_t max_events_held; /* events waiting for time order: 1,000,000 */
	size_t max_bytes_held; /* memory they take: 24 MiB */
	size_t max_stack_bytes; /* stacks and labels between two sequence points: 24 MiB */
	size_t max_ids; /* event definitions, threads of V6: 300,000 each */
	size_t max_def_bytes; /* memory of all event definitions: 16 MiB */
};

/* The first fault of a stream.  All words are static; nothing here has to be freed. */
struct nt_error {
	enum nt_status code;
	uint64_t offset; /* byte of the stream at which the fault was found */
	const char *what; /* "event payload runs past its block" */
	const char *block; /* "EventBlock", "header", …; never NULL in an error */
	uint64_t block_index; /* 0 for the first block */
	uint64_t block_offset; /* byte of the stream at which the block starts */
	uint64_t row; /* 0 for the first row of the block */
	uint64_t events_before; /* events delivered to the sink before the fault */
};

/*
 * Writes "byte 0x1f3c: event payload runs past its block (block 12, EventBlock, starts at 0x1e00,
 * row 7); 48211 events before it were read".  Returns the length as snprintf() does.
 */
int nt_error_format(const struct nt_error *err, char *buf, size_t size);

/* What the Trace object or block says (nettrace.md §2, §9). */
struct nt_trace_info {
	unsigned format; /* 3, 4 or 6; "V5" is 4 on the wire */
	unsigned format_minor; /* V6 only */
	bool wall_clock_known; /* false: the SYSTEMTIME is invalid, relative times still hold */
	int64_t start_unix_ns; /* UTC of sync_ticks, ns since 1970; resolution 1 ms */
	int64_t sync_ticks; /* clock value of session start */
	int64_t ticks_per_second; /* > 0 always */
	unsigned pointer_size; /* 4 or 8 */
	int64_t process_id; /* -1: not recorded */
	int64_t processors; /* -1: not recorded (65535 on the wire is NativeAOT's "unknown") */
	int64_t sample_interval_ns; /* -1: not recorded */
};

/*
 * Times lie in [-NT_TIME_MAX_NS, NT_TIME_MAX_NS], 73 years; a clock value beyond that is cut to it.
 * Their differences, and a time plus or minus any sane span, cannot overflow.
 */
#define NT_TIME_MAX_NS (INT64_C(1) << 61)

/* Providers whose events the program knows by number. */
enum nt_provider {
	NT_PROV_OTHER,
	NT_PROV_RUNTIME, /* Microsoft-Windows-DotNETRuntime */
	NT_PROV_RUNDOWN, /* Microsoft-Windows-DotNETRuntimeRundown */
	NT_PROV_PRIVATE, /* Microsoft-Windows-DotNETRuntimePrivate */
	NT_PROV_STRESS, /* Microsoft-Windows-DotNETRuntimeStress */
	NT_PROV_SAMPLER, /* Microsoft-DotNETCore-SampleProfiler */
	NT_PROV_EVENTPIPE, /* Microsoft-DotNETCore-EventPipe */
	NT_PROV_TPL, /* System.Threading.Tasks.TplEventSource */
	NT_PROV_MONO, /* Microsoft-DotNETRuntimeMonoProfiler */
	NT_PROV_UNIVERSAL_SYSTEM, /* Universal.System */
	NT_PROV_UNIVERSAL_EVENTS, /* Universal.Events */
	NT_PROV_COUNT
};

/* Field types: the wire's codes (nettrace.md §4.3), then those that only our tables use. */
enum nt_type {
	NT_T_OBJECT = 1,
	NT_T_BOOL32 = 3,
	NT_T_CHAR16 = 4,
	NT_T_I8 = 5,
	NT_T_U8 = 6,
	NT_T_I16 = 7,
	NT_T_U16 = 8,
	NT_T_I32 = 9,
	NT_T_U32 = 10,
	NT_T_I64 = 11,
	NT_T_U64 = 12,
	NT_T_F32 = 13,
	NT_T_F64 = 14,
	NT_T_DECIMAL = 15,
	NT_T_DATETIME = 16, /* 8 bytes, FILETIME, UTC */
	NT_T_GUID = 17,
	NT_T_STRING16 = 18, /* UTF-16LE up to 00 00 */
	NT_T_ARRAY = 19, /* u16 count, then elements of children[0] */
	NT_T_VARINT = 20,
	NT_T_VARUINT = 21,
	NT_T_FIXED_ARRAY = 22, /* count elements of children[0] */
	NT_T_CHAR8 = 23,
	NT_T_RELLOC = 24,
	NT_T_DATALOC = 25,
	NT_T_BOOL8 = 26,
	NT_T_POINTER = 64, /* pointer_size bytes */
	NT_T_STRING8, /* NUL-terminated, one byte a character */
	NT_T_STRING8_LEN16, /* u16 byte count, then UTF-8: strings of Universal.* (nettrace.md §11)
			     */
	NT_T_COUNTED_ARRAY, /* elements of children[0]; their number is in sibling field number
			       count */
	NT_T_COUNTED_BYTES, /* as many bytes as sibling field number count says */
	NT_T_PAD, /* count bytes to skip (or as in payload.h); never shown */
};

/* One field of an event, of an object or, nameless, the element of an array. */
struct nt_field {
	const char *name; /* UTF-8, never NULL, may be "" */
	enum nt_type type;
	uint32_t count; /* see the types above */
	const struct nt_field *children; /* fields of an object; children[0]: element of an array */
	size_t child_count;
};

enum nt_layout {
	NT_LAYOUT_NONE, /* fields unknown: the payload is raw bytes */
	NT_LAYOUT_METADATA, /* fields come from the stream */
	NT_LAYOUT_TABLE, /* fields come from the built-in table (runtime_events.c) */
};

/* The definition of one kind of event; lives as long as the decoder. */
struct nt_event_def {
	size_t index; /* 0, 1, 2 … in order of first sight; dense, for arrays of the caller */
	uint32_t metadata_id; /* as on the wire */
	bool defined; /* false: an event referred to a metadata id that was never defined */
	enum nt_provider provider_id;
	const char *provider; /* "" when not defined */
	const char *name; /* see "Event names" in README.md; never NULL, never "" */
	uint32_t event_id;
	uint32_t version;
	uint64_t keywords;
	uint32_t level;
	uint32_t opcode;
	enum nt_layout layout;
	const struct nt_field *fields;
	size_t field_count;
	bool any_time; /* as the sink has answered */
};

/* V6 labels and the two activity ids of older formats.  Ids of all zeros mean "none". */
struct nt_label {
	const char *key; /* UTF-8 */
	const char *text; /* NULL: number counts */
	int64_t number;
};

struct nt_labels {
	uint8_t activity_id[16];
	uint8_t related_activity_id[16];
	uint8_t trace_id[16];
	uint64_t span_id;
	const struct nt_label *pairs;
	size_t pair_count;
};

struct nt_event {
	const struct nt_event_def *def;
	const struct nt_trace_info *trace;
	int64_t time_ns; /* since session start, within NT_TIME_MAX_NS; may be slightly negative */
	uint64_t ticks; /* the raw clock value */
	uint64_t thread_id; /* OS thread id the event is about; 2^64-1 unknown (V6) */
	uint64_t capture_thread_id; /* OS thread that wrote it (V6: capture thread index) */
	int64_t process_id; /* -1 unknown */
	const char *thread_name; /* V6 only; NULL otherwise */
	uint32_t processor; /* UINT32_MAX unknown */
	uint32_t level; /* of the definition, unless a V6 label overrides it; */
	uint32_t opcode; /* so the next two */
	uint32_t version;
	uint64_t keywords;
	/* 0 none (V3: always 0, see stack).  Same id in the same stack_epoch: same frames. */
	uint32_t stack_id;
	uint64_t stack_epoch; /* rises at each sequence point */
	const uint64_t *stack; /* addresses, leaf first; NULL when frame_count is 0 */
	size_t frame_count;
	const struct nt_labels *labels; /* never NULL */
	const uint8_t *payload;
	size_t payload_bytes;
	uint64_t offset; /* byte of the stream at which the event's row starts */
};

/*
 * What a caller wants to hear.  Any function may be NULL.  A function returns NT_OK, NT_STOPPED to
 * end the decoding without a fault, or an error (NT_ENOMEM, NT_ESINK) that then sticks.
 */
struct nt_raw_block {
	const char *name; /* "EventBlock", …; static */
	const uint8_t *body; /* what follows the padding */
	size_t bytes;
	uint64_t offset; /* byte of the stream at which body starts */
};

struct nt_sink {
	enum nt_status (*trace)(void *ctx, const struct nt_trace_info *info);
	enum nt_status (*define)(void *ctx, const struct nt_event_def *def);
	/*
	 * Whether events of that definition may come when they are read, without waiting for their
	 * turn in NT_TIME_ORDER: asked once, after define.  NULL: none.
	 */
	bool (*any_time)(void *ctx, const struct nt_event_def *def);
	enum nt_status (*event)(void *ctx, const struct nt_event *ev);
	/* All earlier events have been delivered; stacks of this epoch end here. */
	enum nt_status (*sequence_point)(void *ctx, int64_t time_ns);
	/* count events of this capture thread were lost by the writer, just before time_ns. */
	enum nt_status (*lost)(void *ctx, uint64_t thread_id, uint64_t count, int64_t time_ns);
	/*
	 * A complete block of a V3 or V4 stream, the Trace object included, after it was read;
	 * events of it may still wait for their time.
	 */
	enum nt_status (*block)(void *ctx, const struct nt_raw_block *block);
};

enum nt_decoder_flags {
	NT_TIME_ORDER = 1, /* deliver by time (nettrace.md §7), not in the order of the file */
	NT_SKIP_STACKS = 2, /* do not read stack blocks; events come without stacks */
	/* Go on at the next block after a fault; finish returns the first one, later cuts or not.
	 */
	NT_RECOVER = 4,
};

struct nt_stats {
	uint64_t bytes; /* taken from the caller */
	uint64_t blocks; /* completely read */
	uint64_t whole_bytes; /* the stream up to the end of the last complete block or object */
	uint64_t events; /* delivered */
	uint64_t lost; /* by gaps of sequence numbers, all threads */
	uint64_t inconsistent; /* sequence numbers that went back (not counted as lost) */
	uint64_t late; /* delivered out of time order because a cap was reached */
	uint64_t unknown_metadata; /* events whose definition was never seen */
	uint64_t unknown_stacks; /* events whose stack id was never seen; delivered without */
	uint64_t unknown_threads; /* V6 events whose thread index was never declared */
	uint64_t unknown_labels; /* V6 events whose label list was never seen */
	uint64_t bad_definitions; /* definitions whose fields could not be read: shown raw */
	uint64_t skipped_blocks; /* of a kind this version does not know */
	uint64_t damaged_records; /* V3 records whose inner sizes contradict each other, skipped */
	uint64_t faults; /* that decoding went on after */
	uint64_t skipped_bytes; /* while looking for the next block after a fault */
	uint64_t evicted_threads; /* capture threads forgotten to bound memory */
	/* After the end of the stream; ignored.  A block as in trailer.h is not counted. */
	uint64_t trailing_bytes;
	bool ended; /* the end tag was read */
};

/* Lost events of one capture thread. */
struct nt_thread_loss {
	uint64_t thread_id;
	uint64_t lost;
};

struct nt_decoder;

/*
 * alloc NULL: nt_alloc_default.  limits NULL: all defaults.  sink and ctx must outlive the decoder.
 * Returns NULL when out of memory.
 */
struct nt_decoder *nt_decoder_new(const struct nt_alloc *alloc, const struct nt_limits *limits,
				  unsigned flags, const struct nt_sink *sink, void *ctx);
struct nt_decoder *nt_decoder_free(struct nt_decoder *d); /* returns NULL */

/*
 * Decodes data[0..len) and calls the sink for each event.  All bytes are used, or an error is
 * returned; after an error (or NT_STOPPED) every push returns it again.  data may be reused or
 * freed as soon as this returns.
 *
 * NT_EFORMAT, NT_ETRUNC, NT_EVERSION: the stream is damaged or foreign; nt_decoder_borrow_error()
 * says where.  NT_ELIMIT: a limit was reached.  NT_ENOMEM: out of memory.
 * Whatever was complete before the fault has been delivered when the error returns.
 */
NT_MUST_CHECK enum nt_status nt_decoder_push(struct nt_decoder *d, const void *data, size_t len);

/*
 * Says that no more bytes will come and delivers what is held.  NT_OK only if the stream had its
 * end tag; NT_ETRUNC otherwise, after the whole events of a cut block were delivered.
 * Calling it again, or after an error, returns the same status.
 */
NT_MUST_CHECK enum nt_status nt_decoder_finish(struct nt_decoder *d);

/*
 * Makes an error of the caller's the end of the stream, as a cut would be: what is held is
 * delivered, and the error sticks.  For input that fails before the decoder sees it (a damaged
 * zstd frame, a read error).  what must be static.
 */
enum nt_status nt_decoder_abort(struct nt_decoder *d, enum nt_status code, const char *what);

/* NULL while there is no error.  Dead at the next non-const call. */
const struct nt_error *nt_decoder_borrow_error(const struct nt_decoder *d);
const struct nt_stats *nt_decoder_borrow_stats(const struct nt_decoder *d);
const struct nt_trace_info *
nt_decoder_borrow_trace(const struct nt_decoder *d); /* NULL: none yet */
/*
 * What came behind the end of the stream, if it begins like a block of trailer.h; whether it is
 * one, nt_trailer_open() tells.  NULL: nothing of that kind.
 */
const uint8_t *nt_decoder_borrow_trailer(const struct nt_decoder *d, size_t *ret_len);
/* Threads with lost events, most first; *ret_count of them.  NT_ENOMEM possible. */
NT_MUST_CHECK enum nt_status nt_decoder_borrow_losses(struct nt_decoder *d,
						      const struct nt_thread_loss **ret,
						      size_t *ret_count);

/* --- payloads (payload.c) --- */

enum nt_value_kind {
	NT_V_NONE, /* the payload ends before this field, or this version has no such field */
	NT_V_BOOL, /* u */
	NT_V_UINT, /* u */
	NT_V_INT, /* i */
	NT_V_DOUBLE, /* f */
	NT_V_UTF16, /* data: bytes of UTF-16LE, no terminator */
	NT_V_UTF8, /* data: bytes, not checked, no terminator */
	NT_V_GUID, /* data: 16 bytes as on the wire */
	NT_V_TIME, /* i: ns since 1970, UTC; at its limits beyond them.  data: the FILETIME */
	NT_V_BYTES, /* data */
	NT_V_OBJECT, /* data: its bytes */
	NT_V_ARRAY, /* data: its bytes; u: number of elements */
	NT_V_BAD, /* a RelLoc/DataLoc that points outside; the rest of the event is fine */
};

struct nt_value {
	const struct nt_field *field;
	enum nt_value_kind kind;
	union {
		uint64_t u;
		int64_t i;
		double f;
	};
	const uint8_t *data;
	size_t bytes;
};

/* How the payload fitted its definition. */
struct nt_payload_fit {
	size_t used; /* payload bytes that belong to fields; the rest is surplus */
	bool complete; /* every field was there, in full */
	bool bool8; /* booleans announced as 4 bytes were 1 byte (nettrace.md §4.4) */
	bool widened; /* small enums were 4 bytes (nettrace.md §4.4) */
};

/*
 * Reads the top-level fields of an event: out[i] belongs to def->fields[i], for i < max.  Values
 * point into the payload.  Returns how many were written (NT_V_NONE for those that are missing).
 * ret_fit may be NULL.  An event with NT_LAYOUT_NONE has no fields: 0.
 */
size_t nt_payload_read(const struct nt_event *ev, struct nt_value *out, size_t max,
		       struct nt_payload_fit *ret_fit);

/* The value of that field among n, or NULL when it is not there (or NT_V_NONE). */
const struct nt_value *nt_value_find(const struct nt_value *values, size_t n, const char *name);
/* The number in that field; dflt when it is missing or no number. */
uint64_t nt_value_u64(const struct nt_value *values, size_t n, const char *name, uint64_t dflt);
double nt_value_f64(const struct nt_value *values, size_t n, const char *name, double dflt);
/* A string field as UTF-8, always NUL-terminated, cut at size-1; returns the bytes written. */
size_t nt_value_text(const struct nt_value *v, char *buf, size_t size);

/*
 * Walks all fields, nested ones included, in order.  Any function may be NULL.  Fields that the
 * payload does not reach are not visited; each begin has its end, unless a function returns
 * something else than NT_OK, which ends the walk and is the result.
 *
 * What begin is told is a promise of the bytes: the number of elements they announce, and all bytes
 * that are left.  What end is told is what was there.
 */
struct nt_visitor {
	/* A scalar.  Elements of arrays have a nameless field. */
	enum nt_status (*value)(void *ctx, const struct nt_value *v);
	/* NT_V_OBJECT or NT_V_ARRAY begins; end closes it. */
	enum nt_status (*begin)(void *ctx, const struct nt_value *v);
	enum nt_status (*end)(void *ctx, const struct nt_value *v);
};
NT_MUST_CHECK enum nt_status nt_payload_visit(const struct nt_event *ev,
					      const struct nt_visitor *visitor, void *ctx,
					      struct nt_payload_fit *ret_fit);

/* --- text --- */

/*
 * UTF-16LE to UTF-8; lone surrogates become U+FFFD.  Writes at most cap bytes, never half a
 * character, no terminator; returns the bytes written.  3 * (len / 2) bytes always suffice.
 */
size_t nt_utf16_to_utf8(const uint8_t *src, size_t len, char *dst, size_t cap);

#endif
