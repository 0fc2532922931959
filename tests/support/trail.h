/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_TRAIL_H
#define TESTS_SUPPORT_TRAIL_H

/*
 * A sink that writes down what it hears, so that a test can compare one string; and the ways to
 * feed bytes to a decoder.
 */

#include "nettrace/nettrace.h"

struct trail {
	char text[8192]; /* one word an event: "name@ticks/thread", see trail.c */
	size_t used;
	uint64_t hash; /* over every value of every event, in order */
	uint64_t events, lost, sequence_points, definitions;
	int64_t last_ns;
	uint64_t inversions; /* events older than the one before */
	uint64_t stop_after; /* events; 0: never */
	/* of the decoder, when feed() is done */
	struct nt_stats stats;
	struct nt_error error; /* code NT_OK: none */
	char message[256];
};

extern const struct nt_sink trail_sink;

/*
 * Decodes bytes in chunks of that size (0: all at once) and finishes.  Each chunk is copied to a
 * heap block of its own size: reading one byte too far is seen by ASan.
 */
enum nt_status feed(const uint8_t *bytes, size_t count, size_t chunk, unsigned flags,
		    struct trail *t);
/* With limits and allocator; NULL for the defaults. */
enum nt_status feed_with(const struct nt_alloc *alloc, const struct nt_limits *limits,
			 const uint8_t *bytes, size_t count, size_t chunk, unsigned flags,
			 struct trail *t);

#endif
