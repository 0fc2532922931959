/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_TAPE_H
#define TESTS_SUPPORT_TAPE_H

/*
 * A sink that keeps whole events, for tests that look at single values; trail.h keeps a digest of
 * any number of events instead.
 */

#include "nettrace/nettrace.h"
#include "tests/support/build.h"

enum { TAPE_EVENTS = 64, TAPE_FRAMES = 8, TAPE_PAIRS = 6, TAPE_PAYLOAD = 40 };

struct tape_pair {
	char key[16];
	char text[32];
	bool is_text;
	int64_t number;
};

struct tape_event {
	char provider[40], name[40];
	uint32_t metadata_id, event_id;
	bool defined;
	enum nt_layout layout;
	size_t field_count;
	uint32_t level, opcode, version;
	uint64_t keywords;
	int64_t time_ns, process_id;
	uint64_t ticks, thread_id, capture_thread_id;
	char thread_name[24];
	bool has_thread_name;
	uint32_t processor, stack_id;
	uint64_t stack_epoch;
	uint64_t stack[TAPE_FRAMES]; /* the first of frame_count */
	size_t frame_count;
	uint8_t activity_id[16], related_activity_id[16], trace_id[16];
	uint64_t span_id;
	struct tape_pair pairs[TAPE_PAIRS]; /* the first of pair_count */
	size_t pair_count;
	uint8_t payload[TAPE_PAYLOAD]; /* the first of payload_bytes */
	size_t payload_bytes;
	uint64_t offset;
};

struct tape {
	struct tape_event events[TAPE_EVENTS]; /* the first of count */
	size_t count;
	/*
	 * Each call of the sink as a word: "trace", "define:NAME", "NAME@TICKS",
	 * "point@NS", "lost:THREAD=COUNT@NS".
	 */
	char log[4096];
	/*
	 * Definitions, one a line: "PROVIDER/ID NAME l4 k1 v0 o0 {n:9 list:19{:9}}", a field being
	 * NAME:TYPE, then *COUNT when it has one, then its children in braces.
	 */
	char defs[4096];
	struct nt_trace_info trace;
	/* What the callback of that name answers, once it has been called skip times before. */
	const char *refuse;
	size_t skip;
	enum nt_status refusal;
	/* of the decoder, at its end */
	enum nt_status status;
	struct nt_stats stats;
	struct nt_error error; /* code NT_OK: none */
	struct nt_thread_loss losses[8];
	size_t loss_count;
};

extern const struct nt_sink tape_sink;

/* Decodes what was built and frees it; chunk 0: all at once.  Only what stands above changes. */
void tape_play(struct tape *t, struct build *b, size_t chunk, unsigned flags);
void tape_play_with(struct tape *t, struct build *b, size_t chunk, unsigned flags,
		    const struct nt_limits *limits);

#endif
