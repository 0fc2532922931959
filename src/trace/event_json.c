/* SPDX-License-Identifier: MIT */

/* One event as one line of JSON. */

#include <string.h>

#include "src/base/json.h"
#include "src/trace/event_write.h"

struct walk {
	struct json json;
	struct event_writer *writer;
	unsigned hidden; /* levels that are nested too deep to be written */
};

/* Elements of arrays have no name. */
static const char *name_of(const struct walk *w, const struct nt_value *v)
{
	return w->json.closing[w->json.depth] == ']' ? NULL : v->field->name;
}

static void put_string(struct walk *w, const char *name, const struct nt_value *v)
{
	struct event_buffer *b = &w->writer->buffer;

	if (event_string(b, v))
		json_textn(&w->json, name, b->text, b->len);
	else
		json_null(&w->json, name);
}

static void put_value(struct walk *w, const char *name, const struct nt_value *v)
{
	struct json *j = &w->json;
	char text[40];

	switch (v->kind) {
	case NT_V_BOOL:
		json_bool(j, name, v->u != 0);
		return;
	case NT_V_UINT:
		json_uint_safe(j, name, v->u);
		return;
	case NT_V_INT:
		json_int_safe(j, name, v->i);
		return;
	case NT_V_DOUBLE:
		json_shortest(j, name, v->f, v->field->type == NT_T_F32);
		return;
	case NT_V_UTF16:
	case NT_V_UTF8:
		put_string(w, name, v);
		return;
	case NT_V_GUID:
		event_guid(v->data, text);
		json_text(j, name, text);
		return;
	case NT_V_TIME:
		event_time(v->i, text);
		json_text(j, name, text);
		return;
	case NT_V_BYTES:
		json_hex(j, name, v->data, v->bytes);
		return;
	case NT_V_NONE:
	case NT_V_BAD:
	case NT_V_OBJECT:
	case NT_V_ARRAY:
		break;
	}
	json_null(j, name);
}

static enum nt_status on_value(void *ctx, const struct nt_value *v)
{
	struct walk *w = ctx;

	if (!w->hidden)
		put_value(w, name_of(w, v), v);
	return NT_OK;
}

static enum nt_status on_begin(void *ctx, const struct nt_value *v)
{
	struct walk *w = ctx;
	const char *name = name_of(w, v);

	if (w->hidden || w->json.depth == JSON_MAX_DEPTH) {
		w->hidden++;
		return NT_OK;
	}
	if (v->kind == NT_V_OBJECT)
		json_begin_object(&w->json, name);
	else
		json_begin_array(&w->json, name);
	return NT_OK;
}

static enum nt_status on_end(void *ctx, const struct nt_value *v)
{
	struct walk *w = ctx;

	(void)v;
	if (w->hidden)
		w->hidden--;
	else
		json_end(&w->json);
	return NT_OK;
}

static void put_stack(struct walk *w, const struct nt_event *ev)
{
	char frame[1024];

	json_begin_array(&w->json, "stack");
	for (size_t i = 0; i < ev->frame_count; i++) {
		event_frame(&w->writer->names, ev, i, frame, sizeof(frame));
		json_text(&w->json, NULL, frame);
	}
	json_end(&w->json);
}

static void put_activity(struct json *j, const char *name, const uint8_t id[16])
{
	static const uint8_t none[16];
	char text[37];

	if (memcmp(id, none, sizeof(none)) == 0)
		return;
	event_guid(id, text);
	json_text(j, name, text);
}

static void put_head(struct walk *w, const struct nt_event *ev)
{
	struct json *j = &w->json;

	json_ms(j, "time_ms", ev->time_ns);
	if (ev->thread_id == UINT64_MAX)
		json_null(j, "thread_id");
	else
		json_uint_safe(j, "thread_id", ev->thread_id);
	json_text(j, "provider", ev->def->provider);
	json_uint(j, "id", ev->def->event_id);
	json_uint(j, "version", ev->version);
	json_text(j, "name", ev->def->name);
	put_activity(j, "activity_id", ev->labels->activity_id);
	put_activity(j, "related_activity_id", ev->labels->related_activity_id);
	if (ev->stack_id)
		json_uint(j, "stack_id", ev->stack_id);
	if (w->writer->stacks && ev->frame_count)
		put_stack(w, ev);
}

enum nt_status event_write_json(struct event_writer *writer, const struct nt_event *ev)
{
	static const struct nt_visitor visitor = { on_value, on_begin, on_end };
	struct walk w = { .writer = writer };
	enum nt_status st = NT_OK;

	json_init(&w.json, writer->out, true);
	json_begin_object(&w.json, NULL);
	put_head(&w, ev);
	json_begin_object(&w.json, "payload");
	if (event_raw_payload(ev))
		json_hex(&w.json, "raw", ev->payload, ev->payload_bytes);
	else
		st = nt_payload_visit(ev, &visitor, &w, NULL);
	json_end(&w.json);
	json_end(&w.json);
	return st;
}
