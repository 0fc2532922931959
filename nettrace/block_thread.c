/* SPDX-License-Identifier: MIT */
/* Thread and remove-thread rows of version 6 (nettrace.md §9). */
#include "nettrace/decoder.h"

enum thread_entry {
	ENTRY_NAME = 1,
	ENTRY_PROCESS_ID = 2,
	ENTRY_THREAD_ID = 3,
	ENTRY_PAIR = 4,
};

const uint8_t *nt_str6(struct nt_span *s, size_t *ret_bytes)
{
	*ret_bytes = nt_varuint32(s);
	return nt_take(s, *ret_bytes);
}

uint32_t nt_find_thread(const struct nt_decoder *d, uint64_t index)
{
	uint32_t i = nt_idmap_get(&d->thread_by_index, index);

	return i == NT_IDMAP_NONE || d->threads[i].removed ? NT_IDMAP_NONE : i;
}

/* Numbering of capture threads starts anew as well. */
void nt_forget_threads(struct nt_decoder *d)
{
	d->thread_count = 0;
	nt_idmap_clear(&d->thread_by_index);
	nt_arena_clear(&d->thread_arena);
	d->capture_count = 0;
	d->last_capture = 0;
	nt_idmap_clear(&d->capture_by_id);
}

/*
 * A new row of the table.  That of a removed thread stays as it was: events that wait for their
 * turn still mean it.
 */
static struct nt_thread *add_thread(struct nt_decoder *d, const uint8_t *at, uint64_t index)
{
	struct nt_thread *grown;

	if (nt_find_thread(d, index) != NT_IDMAP_NONE) {
		nt_fail(d, NT_EFORMAT, at, "thread index is declared a second time");
		return NULL;
	}
	if (d->thread_count >= d->limits.max_ids) {
		nt_fail(d, NT_ELIMIT, at, "more threads than the limit");
		return NULL;
	}
	grown = nt_grow(d->alloc, d->threads, d->thread_count, &d->thread_room, sizeof(*grown));
	if (!grown) {
		nt_fail_nomem(d);
		return NULL;
	}
	d->threads = grown;
	if (nt_idmap_put(&d->thread_by_index, index, (uint32_t)d->thread_count) < 0) {
		nt_fail_nomem(d);
		return NULL;
	}
	return &d->threads[d->thread_count++];
}

static enum nt_status read_entry(struct nt_decoder *d, struct nt_span *s, struct nt_thread *t)
{
	const uint8_t *at = s->cur;
	const uint8_t *text;
	size_t bytes;

	switch (nt_u8(s)) {
	case ENTRY_NAME:
		text = nt_str6(s, &bytes);
		if (!text)
			return NT_OK;
		t->name = nt_arena_text(&d->thread_arena, (const char *)text, bytes);
		return t->name ? NT_OK
			       : nt_fail_arena(d, &d->thread_arena,
					       "thread names exceed the limit of memory");
	case ENTRY_PROCESS_ID:
		t->process_id = nt_varuint64(s);
		return NT_OK;
	case ENTRY_THREAD_ID:
		t->thread_id = nt_varuint64(s);
		return NT_OK;
	case ENTRY_PAIR:
		nt_str6(s, &bytes);
		nt_str6(s, &bytes);
		return NT_OK;
	default:
		return nt_fail(d, NT_EFORMAT, at, "thread row has an unknown kind of entry");
	}
}

static enum nt_status read_thread(struct nt_decoder *d, struct nt_span s)
{
	const uint8_t *start = s.cur;
	uint64_t index = nt_varuint64(&s);
	struct nt_thread thread = {
		.process_id = (uint64_t)d->trace.process_id,
		.thread_id = UINT64_MAX,
	};
	struct nt_thread *t;
	enum nt_status st = NT_OK;

	while (st == NT_OK && nt_left(&s))
		st = read_entry(d, &s, &thread);
	if (st != NT_OK)
		return st;
	if (s.bad)
		return nt_fail_span(d, &s, "thread row ends too early");
	t = add_thread(d, start, index);
	if (!t)
		return d->status;
	*t = thread;
	nt_renew_capture(d, index, thread.thread_id);
	return NT_OK;
}

enum nt_status nt_read_threads(struct nt_decoder *d, struct nt_span b)
{
	enum nt_status st = NT_OK;

	for (d->row = 0; st == NT_OK && nt_left(&b); d->row++) {
		struct nt_span row = nt_sub(&b, nt_u16(&b));

		if (b.bad)
			return nt_fail_span(d, &b, "thread row runs past its block");
		st = read_thread(d, row);
	}
	return st;
}

/* Removal checks the thread's numbers as a sequence point would. */
enum nt_status nt_read_removed_threads(struct nt_decoder *d, struct nt_span b)
{
	uint64_t ticks = d->stats.events ? d->last_ticks : (uint64_t)d->trace.sync_ticks;
	enum nt_status st = NT_OK;

	for (d->row = 0; st == NT_OK && nt_left(&b); d->row++) {
		const uint8_t *at = b.cur;
		uint64_t index = nt_varuint64(&b);
		uint32_t sequence = nt_varuint32(&b);
		uint32_t i;

		if (b.bad)
			return nt_fail_span(d, &b, "removed thread runs past its block");
		i = nt_find_thread(d, index);
		if (i == NT_IDMAP_NONE)
			return nt_fail(d, NT_EFORMAT, at, "a thread that is not there is removed");
		st = nt_check_reached(d, index, sequence, ticks);
		d->threads[i].removed = true;
	}
	return st;
}
