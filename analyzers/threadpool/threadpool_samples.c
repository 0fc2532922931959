/* SPDX-License-Identifier: MIT */
#include "analyzers/grow.h"
#include "analyzers/threadpool/threadpool_internal.h"

enum {
	FIRST_WIDTH_NS = 250 * 1000 * 1000,
	ROUND_GAP_NS = 500 * 1000, /* half of the sampler's period */
	MAX_CELLS = 64 * 1024,
	MAX_SLOTS = 64 * 1024,
	MAX_THREADS = 32 * 1024,
};

void pool_samples_init(struct pool_samples *s, const struct nt_alloc *alloc)
{
	*s = (struct pool_samples){ .alloc = alloc, .width_ns = FIRST_WIDTH_NS };
	nt_idmap_init(&s->cell_by_key, alloc);
	nt_idmap_init(&s->slot_by_key, alloc);
	nt_idmap_init(&s->thread_by_id, alloc);
}

void pool_samples_done(struct pool_samples *s)
{
	an_mem_free(s->alloc, s->cells);
	an_mem_free(s->alloc, s->slots);
	an_mem_free(s->alloc, s->threads);
	s->cells = NULL;
	s->slots = NULL;
	s->threads = NULL;
	nt_idmap_done(&s->cell_by_key);
	nt_idmap_done(&s->slot_by_key);
	nt_idmap_done(&s->thread_by_id);
}

static uint64_t key_of(uint32_t a, uint32_t node, bool by_event)
{
	return (uint64_t)a << 33 | (uint64_t)node << 1 | by_event;
}

/* Two windows become one. */
static enum nt_status widen(struct pool_samples *s)
{
	size_t n = 0;

	s->width_ns *= 2;
	for (size_t i = 0; i < POOL_WINDOWS / 2; i++)
		s->rounds[i] = s->rounds[2 * i] + s->rounds[2 * i + 1];
	memset(&s->rounds[POOL_WINDOWS / 2], 0, sizeof(s->rounds) / 2);
	nt_idmap_clear(&s->cell_by_key);
	for (size_t i = 0; i < s->cell_count; i++) {
		struct pool_cell c = s->cells[i];
		uint64_t key = key_of(c.window /= 2, c.node, c.by_event);
		uint32_t at = nt_idmap_get(&s->cell_by_key, key);

		if (at != NT_IDMAP_NONE) {
			s->cells[at].count += c.count;
			continue;
		}
		if (nt_idmap_put(&s->cell_by_key, key, (uint32_t)n) < 0)
			return NT_ENOMEM;
		s->cells[n++] = c;
	}
	s->cell_count = n;
	for (size_t i = 0; i < s->thread_count; i++)
		s->threads[i].cell = POOL_NONE;
	return NT_OK;
}

/* NULL in *ret when there is no room. */
static enum nt_status find_thread(struct pool_samples *s, uint64_t id, struct pool_thread **ret)
{
	size_t next = s->last_thread + 1;
	struct pool_thread *threads;
	uint32_t i;

	*ret = NULL;
	/* Samples come in rounds, the threads always in the same order. */
	if (next < s->thread_count && s->threads[next].id == id) {
		s->last_thread = next;
		*ret = &s->threads[next];
		return NT_OK;
	}
	i = nt_idmap_get(&s->thread_by_id, id);
	if (i == NT_IDMAP_NONE) {
		if (s->thread_count >= MAX_THREADS)
			return NT_OK;
		threads = an_mem_grow(s->alloc, s->threads, &s->thread_cap, s->thread_count + 1,
				      sizeof(*threads));
		if (!threads)
			return NT_ENOMEM;
		s->threads = threads;
		i = (uint32_t)s->thread_count;
		if (nt_idmap_put(&s->thread_by_id, id, i) < 0)
			return NT_ENOMEM;
		threads[s->thread_count++] =
			(struct pool_thread){ .id = id, .cell = POOL_NONE, .slot = POOL_NONE };
	}
	s->last_thread = i;
	*ret = &s->threads[i];
	return NT_OK;
}

/* POOL_NONE in *ret when there is no room. */
static enum nt_status find_cell(struct pool_samples *s, uint32_t window, uint32_t node,
				bool by_event, uint32_t *ret)
{
	uint64_t key = key_of(window, node, by_event);
	struct pool_cell *cells;

	*ret = nt_idmap_get(&s->cell_by_key, key);
	if (*ret != NT_IDMAP_NONE || s->cell_count >= MAX_CELLS)
		return NT_OK;
	cells = an_mem_grow(s->alloc, s->cells, &s->cell_cap, s->cell_count + 1, sizeof(*cells));
	if (!cells)
		return NT_ENOMEM;
	s->cells = cells;
	*ret = (uint32_t)s->cell_count;
	if (nt_idmap_put(&s->cell_by_key, key, *ret) < 0)
		return NT_ENOMEM;
	cells[s->cell_count++] = (struct pool_cell){ window, node, by_event, 0 };
	return NT_OK;
}

static enum nt_status find_slot(struct pool_samples *s, uint32_t thread, uint32_t node,
				bool by_event, uint32_t *ret)
{
	uint64_t key = key_of(thread, node, by_event);
	struct pool_slot *slots;

	*ret = nt_idmap_get(&s->slot_by_key, key);
	if (*ret != NT_IDMAP_NONE || s->slot_count >= MAX_SLOTS)
		return NT_OK;
	slots = an_mem_grow(s->alloc, s->slots, &s->slot_cap, s->slot_count + 1, sizeof(*slots));
	if (!slots)
		return NT_ENOMEM;
	s->slots = slots;
	*ret = (uint32_t)s->slot_count;
	if (nt_idmap_put(&s->slot_by_key, key, *ret) < 0)
		return NT_ENOMEM;
	slots[s->slot_count++] = (struct pool_slot){ thread, node, by_event, 0 };
	return NT_OK;
}

/* The window of that time, which is the newest one or a later one. */
static enum nt_status note_time(struct pool_samples *s, int64_t time_ns, uint32_t *ret)
{
	bool new_round = !s->any || an_ns_between(s->last_ns, time_ns) >= ROUND_GAP_NS;
	uint64_t since;

	if (!s->any) {
		s->any = true;
		s->start_ns = time_ns;
	}
	if (time_ns > s->last_ns || new_round)
		s->last_ns = time_ns;
	since = an_ns_between(s->start_ns, time_ns);
	/* Room for new stacks is worth more than exact times. */
	while (since / s->width_ns >= POOL_WINDOWS ||
	       (s->cell_count >= MAX_CELLS && since / s->width_ns > 0)) {
		if (widen(s) < 0)
			return NT_ENOMEM;
	}
	*ret = (uint32_t)(since / s->width_ns);
	s->rounds[*ret] += new_round;
	return NT_OK;
}

enum nt_status pool_samples_add(struct pool_samples *s, int64_t time_ns, uint64_t thread,
				uint32_t node, bool by_event)
{
	struct pool_thread *t;
	uint32_t window;
	enum nt_status st = note_time(s, time_ns, &window);
	bool same;

	if (st == NT_OK)
		st = find_thread(s, thread, &t);
	if (st < 0)
		return st;
	if (!t) {
		s->dropped++;
		return NT_OK;
	}
	same = t->node == node && t->by_event == by_event;
	if (!same || t->cell == POOL_NONE || s->cells[t->cell].window != window)
		st = find_cell(s, window, node, by_event, &t->cell);
	if (st == NT_OK && (!same || t->slot == POOL_NONE))
		st = find_slot(s, (uint32_t)(t - s->threads), node, by_event, &t->slot);
	if (st < 0)
		return st;
	t->node = node;
	t->by_event = by_event;
	if (t->cell == POOL_NONE || t->slot == POOL_NONE) {
		s->dropped++;
		return NT_OK;
	}
	s->cells[t->cell].count++;
	s->slots[t->slot].count++;
	return NT_OK;
}
