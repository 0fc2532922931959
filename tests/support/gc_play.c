/* SPDX-License-Identifier: MIT */
#include "tests/support/gc_play.h"

void gc_play_simple(struct play *p, uint32_t id, uint64_t thread, double ms)
{
	struct build b = { 0 };

	build_u16(&b, 0);
	play_event(p, NT_PROV_RUNTIME, id, 1, thread, ms, &b);
}

void gc_play_suspend(struct play *p, uint64_t thread, double ms, uint32_t reason)
{
	struct build b = { 0 };

	build_u32(&b, reason);
	build_u32(&b, 0);
	build_u16(&b, 0);
	play_event(p, NT_PROV_RUNTIME, 9, 1, thread, ms, &b);
}

void gc_play_start(struct play *p, uint64_t thread, double ms, uint32_t number, uint32_t gen,
		   uint32_t reason, uint32_t type)
{
	struct build b = { 0 };

	build_u32(&b, number);
	build_u32(&b, gen);
	build_u32(&b, reason);
	build_u32(&b, type);
	build_u16(&b, 0);
	build_u64(&b, 0);
	play_event(p, NT_PROV_RUNTIME, 1, 2, thread, ms, &b);
}

void gc_play_end(struct play *p, uint64_t thread, double ms, uint32_t number)
{
	struct build b = { 0 };

	build_u32(&b, number);
	build_u32(&b, 0);
	build_u16(&b, 0);
	play_event(p, NT_PROV_RUNTIME, 2, 1, thread, ms, &b);
}

void gc_play_triggered(struct play *p, uint64_t thread, double ms, uint32_t reason)
{
	struct build b = { 0 };

	build_u32(&b, reason);
	build_u16(&b, 0);
	play_event(p, NT_PROV_RUNTIME, 35, 0, thread, ms, &b);
}

void gc_play_tick(struct play *p, uint64_t thread, double ms, uint64_t bytes, uint32_t kind,
		  const char *type)
{
	struct build b = { 0 };

	build_u32(&b, (uint32_t)bytes);
	build_u32(&b, kind);
	build_u16(&b, 0);
	build_u64(&b, bytes);
	build_u64(&b, 0x7000);
	build_utf16(&b, type);
	build_u32(&b, 0);
	build_u64(&b, 0x10000);
	build_u64(&b, 32);
	play_event(p, NT_PROV_RUNTIME, 10, 4, thread, ms, &b);
}

void gc_play_heap_stats(struct play *p, uint64_t thread, double ms,
			const struct gc_play_heap_stats *s)
{
	struct build b = { 0 };

	for (int gen = 0; gen < 4; gen++) {
		build_u64(&b, s->size[gen]);
		build_u64(&b, s->promoted[gen]);
	}
	build_u64(&b, s->finalizable_bytes);
	build_u64(&b, s->finalizable);
	build_u32(&b, s->pinned);
	build_u32(&b, 0);
	build_u32(&b, s->handles);
	build_u16(&b, 0);
	build_u64(&b, s->size[4]);
	build_u64(&b, s->promoted[4]);
	play_event(p, NT_PROV_RUNTIME, 4, 2, thread, ms, &b);
}

void gc_play_per_heap(struct play *p, uint64_t thread, double ms, const struct gc_play_heap *h)
{
	struct build b = { 0 };

	build_u16(&b, 0);
	for (int i = 0; i < 6; i++)
		build_u64(&b, 0);
	build_u32(&b, 0);
	build_u32(&b, h->condemned0);
	build_u32(&b, h->condemned1);
	build_u32(&b, h->compact);
	build_u32(&b, 0);
	build_u32(&b, h->heap);
	build_u64(&b, 0);
	build_u32(&b, GC_PLAY_SIZES);
	for (int gen = 0; gen < GC_PLAY_SIZES; gen++) {
		build_u64(&b, h->before[gen]);
		build_u64(&b, h->free_before[gen]);
		build_u64(&b, 0);
		build_u64(&b, h->after[gen]);
		build_u64(&b, h->free_after[gen]);
		for (int i = 0; i < 5; i++)
			build_u64(&b, 0);
	}
	play_event(p, NT_PROV_RUNTIME, 204, 3, thread, ms, &b);
}

void gc_play_global(struct play *p, uint64_t thread, double ms, uint32_t heaps, uint32_t mechanisms,
		    uint32_t condemned0, uint32_t condemned1, const uint32_t *us, uint32_t count)
{
	struct build b = { 0 };

	build_u64(&b, 6291456);
	build_u32(&b, heaps);
	build_u32(&b, 0);
	build_u32(&b, 0);
	build_u32(&b, 0);
	build_u32(&b, mechanisms);
	build_u16(&b, 0);
	build_u32(&b, 1); /* interactive */
	build_u32(&b, 37); /* memory load */
	build_u32(&b, condemned0);
	build_u32(&b, condemned1);
	build_u32(&b, count);
	for (uint32_t i = 0; i < count; i++)
		build_u32(&b, us[i]);
	play_event(p, NT_PROV_RUNTIME, 205, 4, thread, ms, &b);
}

void gc_play_mark(struct play *p, uint64_t thread, double ms, uint32_t heap, uint32_t roots,
		  uint64_t bytes)
{
	struct build b = { 0 };

	build_u32(&b, heap);
	build_u16(&b, 0);
	build_u32(&b, roots);
	build_u64(&b, bytes);
	play_event(p, NT_PROV_RUNTIME, 202, 0, thread, ms, &b);
}

void gc_play_committed(struct play *p, uint64_t thread, double ms, uint64_t bytes)
{
	struct build b = { 0 };

	build_utf16(&b, "CommittedUsage");
	build_u32(&b, 42);
	build_u16(&b, 1);
	build_u64(&b, bytes);
	for (int i = 0; i < 4; i++)
		build_u64(&b, 0);
	build_u16(&b, 0);
	play_event(p, NT_PROV_RUNTIME, 39, 0, thread, ms, &b);
}

void gc_play_blocking(struct play *p, uint64_t thread, double ms,
		      const struct gc_play_collection *c)
{
	gc_play_suspend(p, thread, ms, 1);
	gc_play_simple(p, 8, thread, ms + 0.01);
	gc_play_start(p, thread, ms + 0.02, c->number, c->generation, c->reason, 0);
	gc_play_per_heap(p, thread, ms + 0.03, &c->heap);
	gc_play_end(p, thread, ms + 0.04, c->number);
	gc_play_heap_stats(p, thread, ms + 0.05, &c->stats);
	gc_play_simple(p, 7, thread, ms + c->length - 0.01);
	gc_play_simple(p, 3, thread, ms + c->length);
}
