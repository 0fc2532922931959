/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_TEXTSET_H
#define ANALYZERS_TEXTSET_H

/*
 * Texts from events, each kept once and known by a number.  How many there may be and how long
 * each is are bounded; what does not fit any more is AN_TEXT_OTHER, and counted.
 */

#include "analyzers/analyzer.h"
#include "nettrace/idmap.h"

#define AN_TEXT_OTHER UINT32_MAX

struct an_textset {
	const struct nt_alloc *alloc;
	char *pool; /* all texts, each with its terminator */
	size_t pool_used, pool_cap;
	uint32_t *at; /* where in the pool each begins */
	size_t count, cap, max;
	uint64_t refused; /* times a text did not fit */
	struct nt_idmap by_hash;
};

enum { AN_TEXT_BYTES = 512 }; /* of one text, its terminator included; the rest is cut */

void an_textset_init(struct an_textset *s, const struct nt_alloc *alloc, size_t max);
void an_textset_done(struct an_textset *s);
NT_MUST_CHECK enum nt_status an_textset_add(struct an_textset *s, const char *text, uint32_t *ret);
/* The same with a field of an event; NULL is "". */
NT_MUST_CHECK enum nt_status an_textset_add_value(struct an_textset *s, const struct nt_value *v,
						  uint32_t *ret);
/* "[other]" for AN_TEXT_OTHER.  Dead at the next add. */
const char *an_textset_get(const struct an_textset *s, uint32_t text);

/* A hash of bytes: FNV-1a, 64 bits. */
static inline uint64_t an_hash(const void *bytes, size_t n, uint64_t seed)
{
	const unsigned char *p = bytes;
	uint64_t h = seed ^ UINT64_C(0xcbf29ce484222325);

	while (n--)
		h = (h ^ *p++) * UINT64_C(0x100000001b3);
	return h;
}

#endif
