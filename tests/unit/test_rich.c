/* SPDX-License-Identifier: MIT */
/*
 * The trace of a program whose events have every type of field: each value must be what the
 * program wrote.  What the stream itself does not let one know:
 *
 * - Unicode: the writer sends all of a string with a NUL inside, a reader stops at the NUL; the
 *   surplus shows in the fit.
 * - AllTypes.e: an enum of 2 bytes is announced as such and written with 4; the fit says widened.
 * - Blob and Nested are announced without fields (byte[] and arrays of objects are left out by the
 *   writer), so they stay raw; the test reads their bytes by what the program's source says.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nettrace/nettrace.h"
#include "tests/support/fixture.h"
#include "tests/support/one_event.h"

enum { PICKERS = 30, ROUNDS = 35, MAX_FIELDS = 16 };

struct seen {
	size_t all_types, price, unicode, empty, blob, nested, starts, stops;
	unsigned long first_text;
	uint64_t picker[PICKERS]; /* thread of each, 0: not seen yet */
	bool picking[PICKERS];
};

static size_t read_all(const struct nt_event *ev, struct nt_value *v, struct nt_payload_fit *fit)
{
	assert_int_equal(ev->def->layout, NT_LAYOUT_METADATA);
	assert_true(ev->def->field_count <= MAX_FIELDS);
	return nt_payload_read(ev, v, MAX_FIELDS, fit);
}

static void assert_text(const struct nt_value *v, const char *expected)
{
	char text[64];

	assert_true(v->kind == NT_V_UTF16 || v->kind == NT_V_UTF8);
	nt_value_text(v, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void assert_int(const struct nt_value *v, const char *name, int64_t expected)
{
	assert_string_equal(v->field->name, name);
	assert_int_equal(v->kind, NT_V_INT);
	assert_true(v->i == expected);
}

static void assert_uint(const struct nt_value *v, const char *name, uint64_t expected)
{
	assert_string_equal(v->field->name, name);
	assert_int_equal(v->kind, NT_V_UINT);
	assert_true(v->u == expected);
}

static void assert_double(const struct nt_value *v, const char *name, double expected)
{
	assert_string_equal(v->field->name, name);
	assert_int_equal(v->kind, NT_V_DOUBLE);
	assert_true(v->f == expected);
}

static void check_def(const struct nt_event *ev, uint32_t id, uint32_t version, uint32_t level,
		      uint64_t keywords, uint32_t opcode)
{
	assert_int_equal(ev->def->event_id, id);
	assert_int_equal(ev->version, version);
	assert_int_equal(ev->level, level);
	/* Bits 44 to 47 belong to sessions. */
	assert_true((ev->keywords & 0xfffffffffffu) == keywords);
	assert_int_equal(ev->opcode, opcode);
}

static void check_all_types(struct seen *s, const struct nt_event *ev)
{
	static const uint8_t guid[] = { 0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66,
					0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };
	struct nt_payload_fit fit;
	struct nt_value v[MAX_FIELDS];
	char text[32];

	check_def(ev, 1, 0, 4, 1, 0);
	assert_int_equal(read_all(ev, v, &fit), 15);
	assert_true(fit.complete && fit.used == ev->payload_bytes && fit.widened && !fit.bool8);
	assert_string_equal(v[0].field->name, "b");
	assert_true(v[0].kind == NT_V_BOOL && v[0].u == 1);
	assert_uint(&v[1], "u8", 200);
	assert_int(&v[2], "i8", -100);
	assert_int(&v[3], "i16", -30000);
	assert_uint(&v[4], "u16", 60000);
	assert_int(&v[5], "i32", -2000000000);
	assert_uint(&v[6], "u32", 4000000000u);
	assert_int(&v[7], "i64", INT64_MIN);
	assert_uint(&v[8], "u64", UINT64_MAX);
	assert_double(&v[9], "f", 1.5);
	assert_double(&v[10], "d", 3.141592653589793);
	if (!s->all_types) {
		nt_value_text(&v[11], text, sizeof(text));
		assert_int_equal(sscanf(text, "text-%lu", &s->first_text), 1);
	}
	snprintf(text, sizeof(text), "text-%lu", s->first_text + s->all_types++);
	assert_text(&v[11], text);
	assert_int_equal(v[12].kind, NT_V_GUID);
	assert_memory_equal(v[12].data, guid, sizeof(guid));
	assert_int_equal(v[13].kind, NT_V_TIME);
	assert_true(v[13].i == 1709208000 * INT64_C(1000000000)); /* 2024-02-29 12:00 UTC */
	assert_int(&v[14], "e", -3);
}

static void check_price(struct seen *s, const struct nt_event *ev)
{
	struct nt_payload_fit fit;
	struct nt_value v[MAX_FIELDS];

	check_def(ev, 2, 3, 3, 2, 0);
	assert_int_equal(read_all(ev, v, &fit), 2);
	assert_true(fit.complete && fit.used == ev->payload_bytes);
	assert_string_equal(v[0].field->name, "sku");
	assert_text(&v[0], "sku");
	assert_string_equal(v[1].field->name, "price");
	assert_int_equal(v[1].kind, NT_V_DOUBLE);
	assert_true(isnan(v[1].f));
	s->price++;
}

static void check_unicode(struct seen *s, const struct nt_event *ev)
{
	struct nt_payload_fit fit;
	struct nt_value v[MAX_FIELDS];

	check_def(ev, 5, 0, 2, 0, 0);
	assert_int_equal(read_all(ev, v, &fit), 1);
	assert_string_equal(v[0].field->name, "name");
	assert_true(fit.complete);
	switch (s->unicode++ % 3) {
	case 0:
		assert_text(&v[0], "\xc5\xbc\xc3\xb3\xc5\x82\xc4\x87 \xf0\x9f\x98\x80 "
				   "\xe2\x80\xae end");
		/* "after" and a terminator behind the embedded NUL. */
		assert_int_equal(ev->payload_bytes - fit.used, 12);
		break;
	case 1:
		assert_text(&v[0], ""); /* null */
		assert_int_equal(fit.used, ev->payload_bytes);
		break;
	default:
		assert_int_equal(v[0].bytes, 2 * 20000);
		for (size_t i = 0; i < v[0].bytes; i += 2)
			assert_true(v[0].data[i] == 'x' && v[0].data[i + 1] == 0);
		assert_int_equal(fit.used, ev->payload_bytes);
	}
}

static void check_pick(struct seen *s, const struct nt_event *ev, bool start)
{
	struct nt_payload_fit fit;
	struct nt_value v[MAX_FIELDS];

	check_def(ev, start ? 3 : 4, 0, 5, 0, start ? 1 : 2);
	assert_int_equal(read_all(ev, v, &fit), 1);
	assert_true(fit.complete && fit.used == ev->payload_bytes);
	assert_string_equal(v[0].field->name, "order");
	assert_true(v[0].kind == NT_V_INT && v[0].i >= 0 && v[0].i < PICKERS);
	/* Each thread has its number, and starts and stops in turn. */
	if (s->picker[v[0].i]) {
		assert_true(s->picker[v[0].i] == ev->thread_id);
		assert_int_equal(s->picking[v[0].i], !start);
	}
	s->picker[v[0].i] = ev->thread_id;
	s->picking[v[0].i] = start;
	if (start)
		s->starts++;
	else
		s->stops++;
}

static void check_blob(struct seen *s, const struct nt_event *ev)
{
	static const uint8_t expected[] = { 4, 0, 0, 0, 1, 2, 3, 255 };

	check_def(ev, 7, 0, 4, 0, 0);
	assert_int_equal(ev->def->layout, NT_LAYOUT_NONE);
	assert_int_equal(ev->payload_bytes, sizeof(expected));
	assert_memory_equal(ev->payload, expected, sizeof(expected));
	s->blob++;
}

static void check_nested(struct seen *s, const struct nt_event *ev)
{
	static const struct nt_field line_fields[] = {
		{ .name = "Sku", .type = NT_T_I32 },
		{ .name = "Name", .type = NT_T_STRING16 },
		{ .name = "Price", .type = NT_T_F64 },
	};
	static const struct nt_field line = { "", NT_T_OBJECT, 0, line_fields, 3 };
	static const struct nt_field number = { .name = "", .type = NT_T_I32 };
	static const struct nt_field basket[] = {
		{ .name = "Id", .type = NT_T_GUID },
		{ .name = "Owner", .type = NT_T_STRING16 },
		{ "Lines", NT_T_ARRAY, 0, &line, 1 },
		{ "Counts", NT_T_ARRAY, 0, &number, 1 },
		{ .name = "When", .type = NT_T_DATETIME },
		{ .name = "Colour", .type = NT_T_I16 },
	};
	struct event_text t = { .stop_after = 0 };
	struct nt_payload_fit fit;
	struct one_event o;

	check_def(ev, 156, 0, 4, 0, 0);
	assert_int_equal(ev->def->layout, NT_LAYOUT_NONE);
	one_event_init(&o, NT_LAYOUT_TABLE, basket, 6, ev->payload, ev->payload_bytes);
	assert_int_equal(event_text(&t, &o.ev, &fit), NT_OK);
	assert_string_equal(t.text, "Id=00000000000000000000000000000000 Owner='o' "
				    "Lines=[{Sku=1 Name='l1' Price=2.5} "
				    "{Sku=2 Name='l2' Price=3.5}]#2 Counts=[7 8]#2 When=@0 "
				    "Colour=2");
	assert_true(fit.complete && fit.used == ev->payload_bytes);
	one_event_done(&o);
	s->nested++;
}

static enum nt_status on_event(void *ctx, const struct nt_event *ev)
{
	const char *name = ev->def->name;
	struct seen *s = ctx;

	if (strncmp(ev->def->provider, "Warehouse-", 10) != 0)
		return NT_OK;
	if (!strcmp(name, "AllTypes")) {
		check_all_types(s, ev);
	} else if (!strcmp(name, "Price")) {
		check_price(s, ev);
	} else if (!strcmp(name, "Unicode")) {
		check_unicode(s, ev);
	} else if (!strcmp(name, "PickStart") || !strcmp(name, "PickStop")) {
		check_pick(s, ev, !strcmp(name, "PickStart"));
	} else if (!strcmp(name, "Empty")) {
		check_def(ev, 6, 0, 4, 0, 0);
		assert_int_equal(ev->payload_bytes, 0);
		s->empty++;
	} else if (!strcmp(name, "Blob")) {
		check_blob(s, ev);
	} else if (!strcmp(name, "Nested")) {
		check_nested(s, ev);
	} else {
		fail_msg("unexpected event %s", name);
	}
	return NT_OK;
}

static void test_warehouse(void **state)
{
	static const struct nt_sink sink = { .event = on_event };
	struct seen s = { 0 };
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, NT_TIME_ORDER, &sink, &s);
	size_t size;
	uint8_t *bytes = fixture_read("rich-net10.nettrace.zst", &size);

	(void)state;
	assert_non_null(d);
	assert_non_null(bytes);
	assert_int_equal(nt_decoder_push(d, bytes, size), NT_OK);
	assert_int_equal(nt_decoder_finish(d), NT_OK);
	assert_int_equal(nt_decoder_borrow_stats(d)->bad_definitions, 0);
	nt_decoder_free(d);
	free(bytes);
	assert_int_equal(s.all_types, ROUNDS);
	assert_int_equal(s.price, ROUNDS);
	assert_int_equal(s.unicode, 3 * ROUNDS);
	assert_int_equal(s.empty, ROUNDS);
	assert_int_equal(s.blob, ROUNDS);
	assert_int_equal(s.nested, ROUNDS);
	assert_int_equal(s.starts, 5254);
	assert_int_equal(s.stops, 5254);
	for (size_t i = 0; i < PICKERS; i++)
		assert_true(s.picker[i] != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_warehouse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
