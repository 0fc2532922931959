/* SPDX-License-Identifier: MIT */
#include "tests/support/trail.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void say(struct trail *t, const char *fmt, ...)
{
	va_list args;
	int n;

	if (t->used >= sizeof(t->text) - 1)
		return;
	va_start(args, fmt);
	n = vsnprintf(t->text + t->used, sizeof(t->text) - t->used, fmt, args);
	va_end(args);
	if (n > 0)
		t->used += (size_t)n;
	if (t->used >= sizeof(t->text))
		t->used = sizeof(t->text) - 1;
}

static void mix(struct trail *t, const void *p, size_t n)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		t->hash = (t->hash ^ b[i]) * 0x100000001b3u;
}

static void mix_u64(struct trail *t, uint64_t v)
{
	mix(t, &v, sizeof(v));
}

static enum nt_status on_event(void *ctx, const struct nt_event *ev)
{
	struct trail *t = ctx;

	/* name@ticks/thread, then ^frames of the stack and +payload bytes when there are any */
	say(t, "%s%s@%" PRIu64 "/%" PRIu64, t->events ? " " : "", ev->def->name, ev->ticks,
	    ev->thread_id);
	if (ev->frame_count)
		say(t, "^%zu", ev->frame_count);
	if (ev->payload_bytes)
		say(t, "+%zu", ev->payload_bytes);
	mix_u64(t, ev->def->metadata_id);
	mix(t, ev->def->name, strlen(ev->def->name));
	mix_u64(t, ev->ticks);
	mix_u64(t, ev->thread_id);
	mix_u64(t, ev->capture_thread_id);
	mix_u64(t, ev->processor);
	mix_u64(t, ev->stack_epoch);
	mix_u64(t, ev->offset);
	mix(t, ev->stack, ev->frame_count * sizeof(*ev->stack));
	mix(t, ev->labels->activity_id, 16);
	mix(t, ev->labels->related_activity_id, 16);
	for (size_t i = 0; i < ev->labels->pair_count; i++)
		mix(t, ev->labels->pairs[i].key, strlen(ev->labels->pairs[i].key));
	mix(t, ev->payload, ev->payload_bytes);
	t->inversions += t->events && ev->time_ns < t->last_ns;
	t->last_ns = ev->time_ns;
	t->events++;
	return t->stop_after && t->events >= t->stop_after ? NT_STOPPED : NT_OK;
}

static enum nt_status on_define(void *ctx, const struct nt_event_def *def)
{
	struct trail *t = ctx;

	t->definitions++;
	mix(t, def->provider, strlen(def->provider));
	mix_u64(t, def->event_id);
	return NT_OK;
}

static enum nt_status on_sequence_point(void *ctx, int64_t time_ns)
{
	struct trail *t = ctx;

	t->sequence_points++;
	mix_u64(t, (uint64_t)time_ns);
	return NT_OK;
}

static enum nt_status on_lost(void *ctx, uint64_t thread_id, uint64_t count, int64_t time_ns)
{
	struct trail *t = ctx;

	(void)time_ns;
	t->lost += count;
	mix_u64(t, thread_id);
	return NT_OK;
}

const struct nt_sink trail_sink = {
	.event = on_event,
	.define = on_define,
	.sequence_point = on_sequence_point,
	.lost = on_lost,
};

static enum nt_status push_copy(struct nt_decoder *d, const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);
	enum nt_status st;

	if (!copy)
		abort();
	memcpy(copy, bytes, n);
	st = nt_decoder_push(d, copy, n);
	free(copy);
	return st;
}

enum nt_status feed_with(const struct nt_alloc *alloc, const struct nt_limits *limits,
			 const uint8_t *bytes, size_t count, size_t chunk, unsigned flags,
			 struct trail *t)
{
	struct nt_decoder *d = nt_decoder_new(alloc, limits, flags, &trail_sink, t);
	enum nt_status st = NT_OK;

	if (!d)
		return NT_ENOMEM;
	t->hash = 0xcbf29ce484222325u;
	if (!chunk)
		chunk = count;
	for (size_t i = 0; st == NT_OK && i < count; i += chunk)
		st = push_copy(d, bytes + i, count - i < chunk ? count - i : chunk);
	if (st == NT_OK)
		st = nt_decoder_finish(d);
	t->stats = *nt_decoder_borrow_stats(d);
	if (nt_decoder_borrow_error(d)) {
		t->error = *nt_decoder_borrow_error(d);
		nt_error_format(&t->error, t->message, sizeof(t->message));
	}
	nt_decoder_free(d);
	return st;
}

enum nt_status feed(const uint8_t *bytes, size_t count, size_t chunk, unsigned flags,
		    struct trail *t)
{
	return feed_with(NULL, NULL, bytes, count, chunk, flags, t);
}
