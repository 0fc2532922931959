/* SPDX-License-Identifier: MIT */
#include "tests/support/one_event.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void one_event_init(struct one_event *o, enum nt_layout layout, const struct nt_field *fields,
		    size_t field_count, const void *bytes, size_t size)
{
	*o = (struct one_event){ 0 };
	o->bytes = malloc(size ? size : 1);
	assert_non_null(o->bytes);
	if (size)
		memcpy(o->bytes, bytes, size);
	o->trace.pointer_size = 8;
	o->def = (struct nt_event_def){
		.defined = true,
		.provider = "Test",
		.name = "Test",
		.layout = layout,
		.fields = fields,
		.field_count = field_count,
	};
	o->ev = (struct nt_event){
		.def = &o->def,
		.trace = &o->trace,
		.labels = &o->labels,
		.payload = size ? o->bytes : NULL,
		.payload_bytes = size,
	};
}

static unsigned hex_digit(char c)
{
	const char *digits = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	assert_non_null(at);
	return (unsigned)(at - digits);
}

void one_event_hex(struct one_event *o, enum nt_layout layout, const struct nt_field *fields,
		   size_t field_count, const char *hex)
{
	uint8_t *bytes = malloc(strlen(hex) + 1);
	size_t n = 0;

	assert_non_null(bytes);
	while (*hex) {
		if (*hex == ' ') {
			hex++;
		} else if (*hex == '\'') {
			for (hex++; *hex != '\''; hex++)
				bytes[n++] = (uint8_t)*hex;
			hex++;
		} else {
			bytes[n++] = (uint8_t)(hex_digit(hex[0]) << 4 | hex_digit(hex[1]));
			hex += 2;
		}
	}
	one_event_init(o, layout, fields, field_count, bytes, n);
	free(bytes);
}

void one_event_done(struct one_event *o)
{
	free(o->bytes);
	o->bytes = NULL;
}

bool same_fit(const struct nt_payload_fit *a, const struct nt_payload_fit *b)
{
	return a->used == b->used && a->complete == b->complete && a->bool8 == b->bool8 &&
	       a->widened == b->widened;
}

static void add(struct event_text *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add(struct event_text *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->text + t->len, sizeof(t->text) - t->len, format, args);
	va_end(args);
	assert_true(n >= 0);
	/* Long output is cut: the counters still tell what happened. */
	t->len += (size_t)n;
	if (t->len >= sizeof(t->text))
		t->len = sizeof(t->text) - 1;
}

static void add_name(struct event_text *t, const struct nt_value *v)
{
	char last = t->len ? t->text[t->len - 1] : '{';

	if (last != '{' && last != '[')
		add(t, " ");
	if (*v->field->name)
		add(t, "%s=", v->field->name);
}

static void add_data(struct event_text *t, const struct nt_value *v)
{
	for (size_t i = 0; i < v->bytes && t->len < sizeof(t->text) - 1; i++)
		add(t, "%02x", v->data[i]);
}

static void add_string(struct event_text *t, const struct nt_value *v)
{
	char text[512];

	nt_value_text(v, text, sizeof(text));
	add(t, "'%s'", text);
}

static enum nt_status called(struct event_text *t)
{
	t->calls++;
	return t->stop_after && t->calls >= t->stop_after ? t->stop_with : NT_OK;
}

static void check_range(const struct event_text *t, const struct nt_value *v)
{
	const struct nt_event *ev = t->ev;

	assert_non_null(v->field);
	if (!v->data || !ev->payload)
		return;
	assert_true(v->data >= ev->payload && v->data <= ev->payload + ev->payload_bytes);
	assert_true(v->bytes <= (size_t)(ev->payload + ev->payload_bytes - v->data));
}

static enum nt_status on_value(void *ctx, const struct nt_value *v)
{
	struct event_text *t = ctx;

	check_range(t, v);
	add_name(t, v);
	switch (v->kind) {
	case NT_V_BOOL:
		add(t, v->u ? "true" : "false");
		break;
	case NT_V_UINT:
		add(t, "%" PRIu64, v->u);
		break;
	case NT_V_INT:
		add(t, "%" PRId64, v->i);
		break;
	case NT_V_DOUBLE:
		add(t, "%g", v->f);
		break;
	case NT_V_UTF16:
	case NT_V_UTF8:
		add_string(t, v);
		break;
	case NT_V_TIME:
		add(t, "@%" PRId64, v->i);
		break;
	case NT_V_GUID:
	case NT_V_BYTES:
		add_data(t, v);
		break;
	case NT_V_BAD:
		add(t, "BAD");
		break;
	default:
		fail_msg("value of kind %d", (int)v->kind);
	}
	return called(t);
}

static enum nt_status on_begin(void *ctx, const struct nt_value *v)
{
	struct event_text *t = ctx;

	check_range(t, v);
	assert_true(v->kind == NT_V_OBJECT || v->kind == NT_V_ARRAY);
	add_name(t, v);
	add(t, v->kind == NT_V_OBJECT ? "{" : "[");
	t->depth++;
	return called(t);
}

static enum nt_status on_end(void *ctx, const struct nt_value *v)
{
	struct event_text *t = ctx;

	check_range(t, v);
	assert_true(t->depth > 0);
	t->depth--;
	if (v->kind == NT_V_OBJECT)
		add(t, "}");
	else
		add(t, "]#%" PRIu64, v->u);
	return called(t);
}

enum nt_status event_text(struct event_text *t, const struct nt_event *ev,
			  struct nt_payload_fit *ret_fit)
{
	static const struct nt_visitor visitor = { on_value, on_begin, on_end };
	enum nt_status st;

	t->text[0] = '\0';
	t->len = t->depth = t->calls = 0;
	t->ev = ev;
	st = nt_payload_visit(ev, &visitor, t, ret_fit);
	if (st == NT_OK)
		assert_int_equal(t->depth, 0);
	return st;
}
