/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_GC_PLAY_H
#define TESTS_SUPPORT_GC_PLAY_H

/* Made-up events of the garbage collector, with layouts as on the wire of .NET 10. */

#include "tests/support/play.h"

enum { GC_PLAY_SIZES = 5 };

void gc_play_simple(struct play *p, uint32_t id, uint64_t thread, double ms);
void gc_play_suspend(struct play *p, uint64_t thread, double ms, uint32_t reason);
void gc_play_start(struct play *p, uint64_t thread, double ms, uint32_t number, uint32_t gen,
		   uint32_t reason, uint32_t type);
void gc_play_end(struct play *p, uint64_t thread, double ms, uint32_t number);
void gc_play_triggered(struct play *p, uint64_t thread, double ms, uint32_t reason);
void gc_play_tick(struct play *p, uint64_t thread, double ms, uint64_t bytes, uint32_t kind,
		  const char *type);

struct gc_play_heap_stats {
	uint64_t size[GC_PLAY_SIZES], promoted[GC_PLAY_SIZES];
	uint64_t finalizable, finalizable_bytes;
	uint32_t pinned, handles;
};

void gc_play_heap_stats(struct play *p, uint64_t thread, double ms,
			const struct gc_play_heap_stats *s);

struct gc_play_heap {
	uint64_t before[GC_PLAY_SIZES], free_before[GC_PLAY_SIZES];
	uint64_t after[GC_PLAY_SIZES], free_after[GC_PLAY_SIZES];
	uint32_t heap, condemned0, condemned1, compact;
};

void gc_play_per_heap(struct play *p, uint64_t thread, double ms, const struct gc_play_heap *h);
void gc_play_global(struct play *p, uint64_t thread, double ms, uint32_t heaps, uint32_t mechanisms,
		    uint32_t condemned0, uint32_t condemned1, const uint32_t *us, uint32_t count);
void gc_play_mark(struct play *p, uint64_t thread, double ms, uint32_t heap, uint32_t roots,
		  uint64_t bytes);
void gc_play_committed(struct play *p, uint64_t thread, double ms, uint64_t bytes);

/* A whole blocking collection whose pause takes length ms from ms on. */
struct gc_play_collection {
	uint32_t number, generation, reason;
	double length;
	struct gc_play_heap heap;
	struct gc_play_heap_stats stats;
};

void gc_play_blocking(struct play *p, uint64_t thread, double ms,
		      const struct gc_play_collection *c);

#endif
