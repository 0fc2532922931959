/* SPDX-License-Identifier: MIT */
/* From a row to an event: numbers checked, ids resolved, the sink called. */
#include "nettrace/decoder.h"

#include <string.h>

static bool may_come_now(struct nt_decoder *d, const struct nt_row *row)
{
	const struct nt_event_def *def = nt_find_def(d, row->metadata_id);

	return def && def->any_time;
}

enum nt_status nt_take_row(struct nt_decoder *d, const struct nt_row *row)
{
	struct nt_capture *c = nt_get_capture(d, row->capture);
	enum nt_status st;

	if (!c)
		return d->status;
	st = nt_check_sequence(d, c, row->sequence, row->ticks);
	if (st != NT_OK || !(d->flags & NT_TIME_ORDER))
		return st == NT_OK ? nt_deliver(d, row) : st;
	if (!row->sorted)
		return may_come_now(d, row) ? nt_deliver(d, row) : nt_queue_add(d, c, row);
	st = nt_queue_release(d, row->ticks);
	return st == NT_OK ? nt_deliver(d, row) : st;
}

static void resolve_stack(struct nt_decoder *d, const struct nt_row *row)
{
	struct nt_event *ev = &d->ev;
	const struct nt_stack *stack;

	ev->stack_id = row->stack_id;
	ev->stack = row->inline_stack;
	ev->frame_count = row->inline_frames;
	if (!row->stack_id || d->flags & NT_SKIP_STACKS)
		return;
	stack = nt_idtable_find(&d->stacks, row->stack_id);
	if (!stack) {
		d->stats.unknown_stacks++;
		ev->stack_id = 0;
		return;
	}
	ev->stack = stack->frames;
	ev->frame_count = stack->count;
}

static void resolve_ids_v4(struct nt_decoder *d, const struct nt_row *row)
{
	d->ev.thread_id = row->thread;
	d->ev.capture_thread_id = row->capture;
	d->ev.process_id = d->trace.process_id;
	memcpy(d->labels.activity_id, row->activity, 16);
	memcpy(d->labels.related_activity_id, row->activity + 16, 16);
}

static void apply_overrides(struct nt_event *ev, const struct nt_label_list *l)
{
	if (l->overrides & NT_OVER_OPCODE)
		ev->opcode = l->opcode;
	if (l->overrides & NT_OVER_KEYWORDS)
		ev->keywords = l->keywords;
	if (l->overrides & NT_OVER_LEVEL)
		ev->level = l->level;
	if (l->overrides & NT_OVER_VERSION)
		ev->version = l->version;
}

static void resolve_ids_v6(struct nt_decoder *d, const struct nt_row *row)
{
	const struct nt_thread *t = NULL;
	const struct nt_label_list *list;
	struct nt_event *ev = &d->ev;

	if (row->thread_row != NT_IDMAP_NONE)
		t = &d->threads[row->thread_row];
	ev->capture_thread_id = row->capture;
	ev->thread_id = t ? t->thread_id : UINT64_MAX;
	ev->process_id = t ? (int64_t)t->process_id : d->trace.process_id;
	ev->thread_name = t ? t->name : NULL;
	if (!t)
		d->stats.unknown_threads++;
	ev->labels = &d->labels;
	if (!row->label_id)
		return;
	list = nt_idtable_find(&d->lists, row->label_id);
	if (!list) {
		d->stats.unknown_labels++;
		return;
	}
	ev->labels = &list->labels;
	apply_overrides(ev, list);
}

enum nt_status nt_deliver(struct nt_decoder *d, const struct nt_row *row)
{
	struct nt_event_def *def = nt_find_def(d, row->metadata_id);
	struct nt_event *ev = &d->ev;

	if (!def) {
		d->stats.unknown_metadata++;
		def = nt_undefined_def(d, row->metadata_id);
		if (!def)
			return d->status;
	}
	if (row->ticks < d->last_ticks && d->flags & NT_TIME_ORDER && !def->any_time)
		d->stats.late++;
	else if (!def->any_time)
		d->last_ticks = row->ticks;
	ev->def = def;
	ev->ticks = row->ticks;
	ev->time_ns = nt_ticks_to_ns(&d->trace, row->ticks);
	ev->processor = row->processor;
	ev->level = def->level;
	ev->opcode = def->opcode;
	ev->version = def->version;
	ev->keywords = def->keywords;
	ev->stack_epoch = d->epoch;
	ev->payload = row->payload;
	ev->payload_bytes = row->payload_bytes;
	ev->offset = row->offset;
	resolve_stack(d, row);
	if (d->trace.format == 6)
		resolve_ids_v6(d, row);
	else
		resolve_ids_v4(d, row);
	d->stats.events++;
	return d->sink->event ? d->sink->event(d->ctx, ev) : NT_OK;
}
