/* SPDX-License-Identifier: MIT */
#include "tests/support/tape.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 3, 4))) static void say(char *text, size_t room, const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + used, room - used, fmt, args);
	va_end(args);
}

static void copy_text(char *to, size_t room, const char *from)
{
	snprintf(to, room, "%s", from);
}

static enum nt_status answer(struct tape *t, const char *callback)
{
	if (!t->refuse || strcmp(t->refuse, callback) != 0)
		return NT_OK;
	if (t->skip) {
		t->skip--;
		return NT_OK;
	}
	return t->refusal;
}

static enum nt_status on_trace(void *ctx, const struct nt_trace_info *info)
{
	struct tape *t = ctx;

	t->trace = *info;
	say(t->log, sizeof(t->log), "trace");
	return answer(t, "trace");
}

static void say_fields(struct tape *t, const struct nt_field *fields, size_t count, unsigned depth)
{
	say(t->defs, sizeof(t->defs), "{");
	for (size_t i = 0; i < count; i++) {
		const struct nt_field *f = &fields[i];

		say(t->defs, sizeof(t->defs), "%s%s:%d", i ? " " : "", f->name, (int)f->type);
		if (f->count)
			say(t->defs, sizeof(t->defs), "*%" PRIu32, f->count);
		if (f->child_count && depth < 40)
			say_fields(t, f->children, f->child_count, depth + 1);
	}
	say(t->defs, sizeof(t->defs), "}");
}

static enum nt_status on_define(void *ctx, const struct nt_event_def *def)
{
	struct tape *t = ctx;

	say(t->log, sizeof(t->log), " define:%s", def->name);
	say(t->defs, sizeof(t->defs),
	    "%s/%" PRIu32 " %s l%" PRIu32 " k%" PRIu64 " v%" PRIu32 " o%" PRIu32 " ", def->provider,
	    def->event_id, def->name, def->level, def->keywords, def->version, def->opcode);
	if (def->layout == NT_LAYOUT_METADATA)
		say_fields(t, def->fields, def->field_count, 0);
	else
		say(t->defs, sizeof(t->defs), def->layout == NT_LAYOUT_NONE ? "none" : "table");
	say(t->defs, sizeof(t->defs), "\n");
	return answer(t, "define");
}

static void copy_labels(struct tape_event *e, const struct nt_labels *labels)
{
	memcpy(e->activity_id, labels->activity_id, 16);
	memcpy(e->related_activity_id, labels->related_activity_id, 16);
	memcpy(e->trace_id, labels->trace_id, 16);
	e->span_id = labels->span_id;
	e->pair_count = labels->pair_count;
	for (size_t i = 0; i < labels->pair_count && i < TAPE_PAIRS; i++) {
		const struct nt_label *from = &labels->pairs[i];
		struct tape_pair *to = &e->pairs[i];

		copy_text(to->key, sizeof(to->key), from->key);
		to->is_text = from->text != NULL;
		if (from->text)
			copy_text(to->text, sizeof(to->text), from->text);
		to->number = from->number;
	}
}

static void copy_def(struct tape_event *e, const struct nt_event_def *def)
{
	copy_text(e->provider, sizeof(e->provider), def->provider);
	copy_text(e->name, sizeof(e->name), def->name);
	e->metadata_id = def->metadata_id;
	e->event_id = def->event_id;
	e->defined = def->defined;
	e->layout = def->layout;
	e->field_count = def->field_count;
}

static void copy_event(struct tape_event *e, const struct nt_event *ev)
{
	size_t frames = ev->frame_count < TAPE_FRAMES ? ev->frame_count : TAPE_FRAMES;
	size_t bytes = ev->payload_bytes < TAPE_PAYLOAD ? ev->payload_bytes : TAPE_PAYLOAD;

	copy_def(e, ev->def);
	e->level = ev->level;
	e->opcode = ev->opcode;
	e->version = ev->version;
	e->keywords = ev->keywords;
	e->time_ns = ev->time_ns;
	e->process_id = ev->process_id;
	e->ticks = ev->ticks;
	e->thread_id = ev->thread_id;
	e->capture_thread_id = ev->capture_thread_id;
	e->has_thread_name = ev->thread_name != NULL;
	if (ev->thread_name)
		copy_text(e->thread_name, sizeof(e->thread_name), ev->thread_name);
	e->processor = ev->processor;
	e->stack_id = ev->stack_id;
	e->stack_epoch = ev->stack_epoch;
	e->frame_count = ev->frame_count;
	if (frames)
		memcpy(e->stack, ev->stack, frames * sizeof(*e->stack));
	copy_labels(e, ev->labels);
	e->payload_bytes = ev->payload_bytes;
	if (bytes)
		memcpy(e->payload, ev->payload, bytes);
	e->offset = ev->offset;
}

static enum nt_status on_event(void *ctx, const struct nt_event *ev)
{
	struct tape *t = ctx;

	if (t->count < TAPE_EVENTS)
		copy_event(&t->events[t->count], ev);
	t->count++;
	say(t->log, sizeof(t->log), " %s@%" PRIu64, ev->def->name, ev->ticks);
	return answer(t, "event");
}

static enum nt_status on_sequence_point(void *ctx, int64_t time_ns)
{
	struct tape *t = ctx;

	say(t->log, sizeof(t->log), " point@%" PRId64, time_ns);
	return answer(t, "point");
}

static enum nt_status on_lost(void *ctx, uint64_t thread_id, uint64_t count, int64_t time_ns)
{
	struct tape *t = ctx;

	say(t->log, sizeof(t->log), " lost:%" PRIu64 "=%" PRIu64 "@%" PRId64, thread_id, count,
	    time_ns);
	return answer(t, "lost");
}

const struct nt_sink tape_sink = {
	.trace = on_trace,
	.define = on_define,
	.event = on_event,
	.sequence_point = on_sequence_point,
	.lost = on_lost,
};

static void keep_losses(struct tape *t, struct nt_decoder *d)
{
	const struct nt_thread_loss *losses;
	size_t count;

	if (nt_decoder_borrow_losses(d, &losses, &count) != NT_OK)
		abort();
	t->loss_count = count;
	for (size_t i = 0; i < count && i < sizeof(t->losses) / sizeof(*t->losses); i++)
		t->losses[i] = losses[i];
}

void tape_play_with(struct tape *t, struct build *b, size_t chunk, unsigned flags,
		    const struct nt_limits *limits)
{
	struct nt_decoder *d = nt_decoder_new(NULL, limits, flags, &tape_sink, t);
	enum nt_status st = NT_OK;

	if (!d)
		abort();
	if (!chunk)
		chunk = b->count;
	for (size_t i = 0; st == NT_OK && i < b->count; i += chunk)
		st = nt_decoder_push(d, b->bytes + i, b->count - i < chunk ? b->count - i : chunk);
	if (st == NT_OK)
		st = nt_decoder_finish(d);
	t->status = st;
	t->stats = *nt_decoder_borrow_stats(d);
	if (nt_decoder_borrow_error(d))
		t->error = *nt_decoder_borrow_error(d);
	keep_losses(t, d);
	nt_decoder_free(d);
	build_done(b);
}

void tape_play(struct tape *t, struct build *b, size_t chunk, unsigned flags)
{
	tape_play_with(t, b, chunk, flags, NULL);
}
