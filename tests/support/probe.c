/* SPDX-License-Identifier: MIT */
#include "tests/support/probe.h"

#include <stdlib.h>
#include <string.h>

static void mix_number(struct probe *p, uint64_t v)
{
	p->hash = (p->hash ^ v) * 0x9e3779b97f4a7c15;
	p->hash ^= p->hash >> 29;
}

static void mix(struct probe *p, const void *data, size_t size)
{
	const uint8_t *bytes = data;
	uint64_t word;

	for (; size >= sizeof(word); bytes += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		mix_number(p, word);
	}
	for (size_t i = 0; i < size; i++)
		mix_number(p, bytes[i]);
}

static void mix_text(struct probe *p, const char *text)
{
	mix(p, text, strlen(text) + 1);
}

static void mix_fields(struct probe *p, const struct nt_field *fields, size_t count)
{
	/* Definitions nest no deeper than the decoder allows, so this recursion is bounded. */
	for (size_t i = 0; i < count; i++) {
		mix_text(p, fields[i].name);
		mix_number(p, fields[i].type);
		mix_number(p, fields[i].count);
		mix_fields(p, fields[i].children, fields[i].child_count);
	}
}

static enum nt_status on_trace(void *ctx, const struct nt_trace_info *t)
{
	mix_number(ctx, t->format);
	mix_number(ctx, (uint64_t)t->start_unix_ns);
	mix_number(ctx, (uint64_t)t->process_id);
	return NT_OK;
}

static enum nt_status on_define(void *ctx, const struct nt_event_def *def)
{
	mix_number(ctx, def->index);
	mix_text(ctx, def->provider);
	mix_text(ctx, def->name);
	mix_number(ctx, def->event_id);
	mix_fields(ctx, def->fields, def->field_count);
	return NT_OK;
}

static enum nt_status on_value(void *ctx, const struct nt_value *v)
{
	struct probe *p = ctx;
	char text[64];

	p->values++;
	mix_number(p, v->kind);
	mix_text(p, v->field->name);
	switch (v->kind) {
	case NT_V_NONE:
	case NT_V_BAD:
		break;
	case NT_V_UTF16:
	case NT_V_UTF8:
	case NT_V_GUID:
	case NT_V_BYTES:
	case NT_V_OBJECT:
	case NT_V_ARRAY:
		mix(p, v->data, v->bytes);
		mix(p, text, nt_value_text(v, text, sizeof(text)));
		break;
	default:
		mix_number(p, v->u);
	}
	return NT_OK;
}

static const struct nt_visitor visitor = { .value = on_value, .begin = on_value, .end = on_value };

static void mix_labels(struct probe *p, const struct nt_labels *l)
{
	mix(p, l->activity_id, sizeof(l->activity_id));
	mix(p, l->related_activity_id, sizeof(l->related_activity_id));
	mix(p, l->trace_id, sizeof(l->trace_id));
	mix_number(p, l->span_id);
	for (size_t i = 0; i < l->pair_count; i++) {
		mix_text(p, l->pairs[i].key);
		if (l->pairs[i].text)
			mix_text(p, l->pairs[i].text);
		else
			mix_number(p, (uint64_t)l->pairs[i].number);
	}
}

static enum nt_status on_event(void *ctx, const struct nt_event *ev)
{
	struct probe *p = ctx;
	struct nt_value first[4];
	struct nt_payload_fit fit;

	if (p->events++ > 0 && ev->time_ns < p->last_ns)
		p->backwards++;
	p->last_ns = ev->time_ns;
	mix_number(p, ev->def->index);
	mix_number(p, ev->ticks);
	mix_number(p, ev->thread_id);
	mix_number(p, ev->capture_thread_id);
	mix_number(p, ev->offset);
	if (ev->thread_name)
		mix_text(p, ev->thread_name);
	for (size_t i = 0; i < ev->frame_count; i++)
		mix_number(p, ev->stack[i]);
	mix_labels(p, ev->labels);
	mix(p, ev->payload, ev->payload_bytes);
	mix_number(p, nt_payload_read(ev, first, 4, &fit));
	mix_number(p, fit.used);
	return nt_payload_visit(ev, &visitor, p, NULL);
}

static enum nt_status on_sequence_point(void *ctx, int64_t time_ns)
{
	struct probe *p = ctx;

	p->sequence_points++;
	mix_number(p, (uint64_t)time_ns);
	return NT_OK;
}

static enum nt_status on_lost(void *ctx, uint64_t thread_id, uint64_t count, int64_t time_ns)
{
	struct probe *p = ctx;

	p->lost += count;
	mix_number(p, thread_id);
	mix_number(p, count);
	mix_number(p, (uint64_t)time_ns);
	return NT_OK;
}

const struct nt_sink probe_sink = {
	.trace = on_trace,
	.define = on_define,
	.event = on_event,
	.sequence_point = on_sequence_point,
	.lost = on_lost,
};

enum nt_status probe_feed(struct nt_decoder *d, const uint8_t *data, size_t size, size_t chunk)
{
	enum nt_status st = NT_OK;

	if (chunk == 0)
		chunk = size ? size : 1;
	for (size_t at = 0; at < size && st == NT_OK; at += chunk) {
		size_t n = size - at < chunk ? size - at : chunk;
		uint8_t *copy = malloc(n);

		if (!copy)
			abort();
		memcpy(copy, data + at, n);
		st = nt_decoder_push(d, copy, n);
		free(copy);
	}
	return st == NT_OK ? nt_decoder_finish(d) : st;
}

enum nt_status probe_decode(const struct nt_alloc *alloc, const struct nt_limits *limits,
			    unsigned flags, const uint8_t *data, size_t size, size_t chunk,
			    struct probe *ret, struct nt_error *ret_error)
{
	struct nt_decoder *d;
	const struct nt_error *err;
	enum nt_status st;

	*ret = (struct probe){ 0 };
	*ret_error = (struct nt_error){ 0 };
	d = nt_decoder_new(alloc, limits, flags, &probe_sink, ret);
	if (!d)
		return NT_ENOMEM;
	st = probe_feed(d, data, size, chunk);
	err = nt_decoder_borrow_error(d);
	if (err)
		*ret_error = *err;
	nt_decoder_free(d);
	return st;
}
