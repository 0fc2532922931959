/* SPDX-License-Identifier: MIT */

/* One event as a line of text for people, or of CSV for spreadsheets. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/trace/event_write.h"

enum { MAX_LEVELS = 64 };

struct walk {
	struct event_writer *writer;
	struct out *out;
	unsigned level;
	bool csv; /* quotes are doubled */
	bool filled[MAX_LEVELS + 1]; /* something was written at this level */
	bool array[MAX_LEVELS + 1]; /* the level is an array: its values have no names */
	unsigned hidden;
};

static void quote(struct walk *w)
{
	out_text(w->out, w->csv ? "\"\"" : "\"");
}

/* Names, text: safe to show, and safe inside the quotes of CSV. */
static void put_safe(struct walk *w, const char *text, size_t len)
{
	size_t used;

	for (size_t i = 0; i < len; i += used) {
		char shown[16];

		used = utf8_plain(text + i, len - i);
		out_write(w->out, text + i, used);
		i += used;
		if (i == len)
			break;
		used = 1;
		if (text[i] == '"') {
			out_text(w->out, w->csv ? "\"\"" : "\\\"");
			continue;
		}
		utf8_next(text + i, len - i, &used);
		utf8_escape(text + i, used, shown, sizeof(shown));
		out_text(w->out, shown);
	}
}

static void put_name(struct walk *w, const struct nt_value *v)
{
	if (w->filled[w->level])
		out_char(w->out, ' ');
	w->filled[w->level] = true;
	if (w->array[w->level] || !*v->field->name)
		return;
	put_safe(w, v->field->name, strlen(v->field->name));
	out_char(w->out, '=');
}

static void put_string(struct walk *w, const struct nt_value *v)
{
	struct event_buffer *b = &w->writer->buffer;

	quote(w);
	if (event_string(b, v))
		put_safe(w, b->text, b->len);
	quote(w);
}

static void put_double(struct walk *w, const struct nt_value *v)
{
	int digits = v->field->type == NT_T_F32 ? 9 : 17;
	char text[32];

	if (isnan(v->f)) {
		out_text(w->out, "NaN");
		return;
	}
	for (int n = 6; n <= digits; n++) {
		snprintf(text, sizeof(text), "%.*g", n, v->f);
		if (digits == 9 ? strtof(text, NULL) == (float)v->f : strtod(text, NULL) == v->f)
			break;
	}
	out_text(w->out, text);
}

static void put_value(struct walk *w, const struct nt_value *v)
{
	char text[40];

	switch (v->kind) {
	case NT_V_BOOL:
		out_text(w->out, v->u ? "true" : "false");
		return;
	case NT_V_UINT:
		if (v->field->type == NT_T_POINTER)
			out_printf(w->out, "0x%" PRIx64, v->u);
		else
			out_uint(w->out, v->u);
		return;
	case NT_V_INT:
		out_int(w->out, v->i);
		return;
	case NT_V_DOUBLE:
		put_double(w, v);
		return;
	case NT_V_UTF16:
	case NT_V_UTF8:
		put_string(w, v);
		return;
	case NT_V_GUID:
		event_guid(v->data, text);
		out_text(w->out, text);
		return;
	case NT_V_TIME:
		event_time(v->i, text);
		out_text(w->out, text);
		return;
	case NT_V_BYTES:
		out_text(w->out, "0x");
		out_hex(w->out, v->data, v->bytes);
		return;
	case NT_V_BAD:
		out_text(w->out, "(damaged)");
		return;
	case NT_V_NONE:
	case NT_V_OBJECT:
	case NT_V_ARRAY:
		break;
	}
	out_text(w->out, "-");
}

static enum nt_status on_value(void *ctx, const struct nt_value *v)
{
	struct walk *w = ctx;

	if (w->hidden)
		return NT_OK;
	put_name(w, v);
	put_value(w, v);
	return NT_OK;
}

static enum nt_status on_begin(void *ctx, const struct nt_value *v)
{
	struct walk *w = ctx;

	if (w->hidden || w->level == MAX_LEVELS) {
		w->hidden++;
		return NT_OK;
	}
	put_name(w, v);
	out_char(w->out, v->kind == NT_V_ARRAY ? '[' : '{');
	w->level++;
	w->filled[w->level] = false;
	w->array[w->level] = v->kind == NT_V_ARRAY;
	return NT_OK;
}

static enum nt_status on_end(void *ctx, const struct nt_value *v)
{
	struct walk *w = ctx;

	if (w->hidden) {
		w->hidden--;
		return NT_OK;
	}
	w->level--;
	out_char(w->out, v->kind == NT_V_ARRAY ? ']' : '}');
	return NT_OK;
}

static enum nt_status put_payload(struct walk *w, const struct nt_event *ev)
{
	static const struct nt_visitor visitor = { on_value, on_begin, on_end };

	if (event_raw_payload(ev)) {
		out_text(w->out, "raw=0x");
		out_hex(w->out, ev->payload, ev->payload_bytes);
		return NT_OK;
	}
	return nt_payload_visit(ev, &visitor, w, NULL);
}

static void put_stack(struct walk *w, const struct nt_event *ev)
{
	char frame[1024];

	for (size_t i = 0; i < ev->frame_count; i++) {
		event_frame(&w->writer->names, ev, i, frame, sizeof(frame));
		out_text(w->out, "\n                         at ");
		put_safe(w, frame, strlen(frame));
	}
}

enum nt_status event_write_text(struct event_writer *writer, const struct nt_event *ev)
{
	struct walk w = { .writer = writer, .out = writer->out };
	char thread[24] = "?";
	enum nt_status st;

	if (ev->thread_id != UINT64_MAX)
		snprintf(thread, sizeof(thread), "%" PRIu64, ev->thread_id);
	out_printf(w.out, "%14.6f %8s  ", (double)ev->time_ns / 1e6, thread);
	put_safe(&w, ev->def->provider, strlen(ev->def->provider));
	out_char(w.out, '/');
	put_safe(&w, ev->def->name, strlen(ev->def->name));
	if (ev->payload_bytes)
		out_text(w.out, "  ");
	st = put_payload(&w, ev);
	if (writer->stacks)
		put_stack(&w, ev);
	out_char(w.out, '\n');
	return st;
}

enum nt_status event_write_csv(struct event_writer *writer, const struct nt_event *ev)
{
	struct walk w = { .writer = writer, .out = writer->out, .csv = true };
	enum nt_status st;

	out_ms(w.out, ev->time_ns);
	out_char(w.out, ',');
	if (ev->thread_id != UINT64_MAX)
		out_uint(w.out, ev->thread_id);
	out_text(w.out, ",\"");
	put_safe(&w, ev->def->provider, strlen(ev->def->provider));
	out_printf(w.out, "\",%" PRIu32 ",%" PRIu32 ",\"", ev->def->event_id, ev->version);
	put_safe(&w, ev->def->name, strlen(ev->def->name));
	out_text(w.out, "\",\"");
	st = put_payload(&w, ev);
	out_text(w.out, "\"\n");
	return st;
}
