/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_METHOD_TABLE_H
#define ANALYZERS_METHOD_TABLE_H

/*
 * Methods by identity: module, type, name, signature.  Each is kept once, with its text in one
 * pool, for as long as some code range refers to it or somebody has asked for its face.
 *
 * The pool is bounded.  Text of methods that nobody refers to any more is squeezed out when it has
 * become the larger half.
 */

#include "analyzers/methods.h"
#include "analyzers/text.h"
#include "nettrace/arena.h"
#include "nettrace/idmap.h"

enum { AN_METHOD_NONE = UINT32_MAX };

struct an_method_key {
	uint64_t module_id; /* as in the events; 0 with module named directly */
	struct an_slice module; /* perf maps name it; empty otherwise */
	struct an_slice type, name, signature;
	uint64_t method_id; /* part of the identity of methods without any name only */
	bool dynamic;
};

struct an_method_entry;

struct an_method_table {
	const struct nt_alloc *alloc;
	struct an_method_entry *entries;
	size_t count, cap; /* slots, those of the free list included */
	uint32_t free; /* first free slot */
	uint32_t *buckets;
	size_t bucket_count; /* a power of two, or 0 */
	size_t live;
	char *text;
	size_t text_used, text_cap, text_garbage;
	struct nt_idmap modules; /* module id -> index of module_names */
	const char **module_names;
	size_t module_count, module_cap;
	struct nt_arena module_arena;
	uint64_t dropped; /* methods for which there was no room */
	/* What look-ups make, also through a const pointer. */
	struct an_method_faces *faces;
};

NT_MUST_CHECK enum nt_status an_method_table_init(struct an_method_table *t,
						  const struct nt_alloc *alloc);
void an_method_table_done(struct an_method_table *t);

/*
 * The slot of that method, new or old, with one reference more.  *ret is AN_METHOD_NONE, and the
 * method counted as dropped, when a cap is reached.
 */
NT_MUST_CHECK enum nt_status an_method_take(struct an_method_table *t,
					    const struct an_method_key *key, uint32_t *ret);
void an_method_ref(struct an_method_table *t, uint32_t method);
void an_method_unref(struct an_method_table *t, uint32_t method);
/* No type, name or signature is known, only this id. */
bool an_method_is_nameless(const struct an_method_table *t, uint32_t method, uint64_t method_id);
uint64_t an_method_id(const struct an_method_table *t, uint32_t method);

/* path: as in the module's event; the name is its last part without .dll or .exe. */
NT_MUST_CHECK enum nt_status an_module_note(struct an_method_table *t, uint64_t module_id,
					    struct an_slice path);
/* The last part of a path without .dll or .exe. */
struct an_slice an_module_name(struct an_slice path);

/* The method for people, made on first demand.  NULL when out of memory (faces_failed is set). */
const struct an_method *an_method_face(const struct an_method_table *t, uint32_t method);
bool an_method_faces_failed(const struct an_method_table *t);

#endif
