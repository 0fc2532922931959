/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_PROBE_H
#define TESTS_SUPPORT_PROBE_H

/*
 * A sink that reads everything a decoder hands out, to the last byte, and folds it into one number.
 * Two ways of decoding one trace that give the same number gave the same events in the same order;
 * and a pointer into freed or foreign memory cannot hide from a sanitizer.
 */

#include "nettrace/nettrace.h"

struct probe {
	uint64_t hash;
	uint64_t events;
	uint64_t values; /* payload values seen */
	uint64_t lost;
	uint64_t sequence_points;
	int64_t last_ns;
	uint64_t backwards; /* events earlier than the one before */
};

extern const struct nt_sink probe_sink; /* ctx: a zeroed struct probe */

/*
 * Pushes data in chunks of that size (0: all at once), each from a heap block of exactly its size,
 * so that reading one byte too far is seen; then finishes.  Returns the final status.
 */
enum nt_status probe_feed(struct nt_decoder *d, const uint8_t *data, size_t size, size_t chunk);

/* A decoder from alloc with the probe as sink, fed and freed.  NT_ENOMEM: none could be made. */
enum nt_status probe_decode(const struct nt_alloc *alloc, const struct nt_limits *limits,
			    unsigned flags, const uint8_t *data, size_t size, size_t chunk,
			    struct probe *ret, struct nt_error *ret_error);

#endif
