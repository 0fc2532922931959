/* SPDX-License-Identifier: MIT */
/* Stack blocks (nettrace.md §5), and the table of things that a sequence point forgets. */
#include "nettrace/decoder.h"

#include <string.h>

void nt_idtable_init(struct nt_idtable *t, const struct nt_alloc *alloc, size_t item_bytes)
{
	*t = (struct nt_idtable){ .item_bytes = item_bytes };
	nt_idmap_init(&t->others, alloc);
}

void nt_idtable_done(struct nt_idtable *t)
{
	const struct nt_alloc *alloc = t->others.alloc;

	if (t->items)
		alloc->realloc(alloc->ctx, t->items, 0);
	nt_idmap_done(&t->others);
	nt_idtable_init(t, alloc, t->item_bytes);
}

void nt_idtable_clear(struct nt_idtable *t)
{
	t->count = 0;
	t->dense = 0;
	nt_idmap_clear(&t->others);
}

static void *item(const struct nt_idtable *t, size_t i)
{
	return (char *)t->items + i * t->item_bytes;
}

/* Writers number from 1 without holes; then items[] is dense and others stays empty. */
void *nt_idtable_add(struct nt_idtable *t, uint32_t id)
{
	void *grown = nt_grow(t->others.alloc, t->items, t->count, &t->room, t->item_bytes);
	void *it;

	if (!grown || t->count >= NT_IDMAP_NONE)
		return NULL;
	t->items = grown;
	if (!t->count)
		t->first_id = id;
	it = item(t, t->count);
	if (t->dense == t->count && id - t->first_id == t->dense)
		t->dense++;
	else if (id - t->first_id < t->dense)
		return memset(item(t, id - t->first_id), 0, t->item_bytes); /* the last wins */
	else if (nt_idmap_put(&t->others, id, (uint32_t)t->count) < 0)
		return NULL;
	t->count++;
	return memset(it, 0, t->item_bytes);
}

/* Empty items cost memory too, beyond what the arena counts. */
bool nt_idtable_full(const struct nt_decoder *d, const struct nt_idtable *t)
{
	return t->count >= d->limits.max_stack_bytes / 64;
}

const void *nt_idtable_find(const struct nt_idtable *t, uint32_t id)
{
	uint32_t i;

	if (id - t->first_id < t->dense)
		return item(t, id - t->first_id);
	i = nt_idmap_get(&t->others, id);
	return i == NT_IDMAP_NONE ? NULL : item(t, i);
}

static enum nt_status read_stack(struct nt_decoder *d, struct nt_span s, uint32_t id)
{
	unsigned pointer = d->trace.pointer_size;
	size_t count = nt_left(&s) / pointer; /* whole addresses only */
	struct nt_stack *stack;
	uint64_t *frames = NULL;

	if (count) {
		frames = nt_arena_get(&d->epoch_arena, count * sizeof(*frames));
		if (!frames)
			return nt_fail_arena(d, &d->epoch_arena,
					     "stacks between two sequence points exceed the limit");
	}
	if (nt_idtable_full(d, &d->stacks))
		return nt_fail(d, NT_ELIMIT, NULL,
			       "stacks between two sequence points exceed the limit");
	for (size_t i = 0; i < count; i++)
		frames[i] = pointer == 8 ? nt_u64(&s) : nt_u32(&s);
	stack = nt_idtable_add(&d->stacks, id);
	if (!stack)
		return nt_fail_nomem(d);
	stack->frames = frames;
	stack->count = count;
	return NT_OK;
}

enum nt_status nt_read_stacks(struct nt_decoder *d, struct nt_span b)
{
	uint32_t first = nt_u32(&b);
	uint32_t count = nt_u32(&b);
	enum nt_status st = NT_OK;

	if (b.bad)
		return nt_fail_span(d, &b, "stack block header runs past its block");
	if (d->flags & NT_SKIP_STACKS)
		return NT_OK;
	for (d->row = 0; st == NT_OK && d->row < count && nt_left(&b); d->row++) {
		struct nt_span s = nt_sub(&b, nt_u32(&b));

		if (b.bad)
			return nt_fail_span(d, &b, "stack runs past its block");
		st = read_stack(d, s, first + (uint32_t)d->row);
	}
	return st;
}
