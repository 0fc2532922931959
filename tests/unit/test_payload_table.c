/* SPDX-License-Identifier: MIT */
/*
 * The built-in layouts read to the byte: known payload lengths, and the records of bulk events for
 * both sizes of pointers, including those that no fixture has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nettrace/runtime_events.h"
#include "nettrace/runtime_table.h"
#include "tests/support/one_event.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { ROOM = 1 << 20 };

struct layout {
	struct nt_arena arena;
	const struct nt_field *fields;
	size_t count;
};

static void layout_init(struct layout *l, enum nt_provider provider, uint32_t id, uint32_t version)
{
	bool known = false;

	nt_arena_init(&l->arena, &nt_alloc_default, ROOM);
	assert_int_equal(
		nt_table_layout(&l->arena, provider, id, version, &l->fields, &l->count, &known),
		NT_OK);
	assert_true(known);
}

static void check(enum nt_provider provider, uint32_t id, uint32_t version, unsigned pointer_size,
		  const char *hex, const char *expected)
{
	struct event_text t = { .stop_after = 0 };
	struct nt_payload_fit fit, read_fit;
	struct one_event o;
	struct layout l;

	layout_init(&l, provider, id, version);
	one_event_hex(&o, NT_LAYOUT_TABLE, l.fields, l.count, hex);
	o.trace.pointer_size = pointer_size;
	assert_int_equal(event_text(&t, &o.ev, &fit), NT_OK);
	assert_string_equal(t.text, expected);
	assert_true(fit.complete);
	assert_int_equal(fit.used, o.ev.payload_bytes);
	nt_payload_read(&o.ev, NULL, 0, &read_fit);
	assert_true(same_fit(&fit, &read_fit));
	one_event_done(&o);
	nt_arena_done(&l.arena);
}

#define check_runtime(...) check(NT_PROV_RUNTIME, __VA_ARGS__)

/* Lengths of events with empty strings and no records, from runtime-events.md, for both sizes. */
static void test_lengths(void **state)
{
	static const struct {
		enum nt_provider provider;
		uint32_t id, version;
		size_t bytes8, bytes4;
	} events[] = {
		{ NT_PROV_RUNTIME, 1, 0, 8, 8 },     { NT_PROV_RUNTIME, 1, 1, 18, 18 },
		{ NT_PROV_RUNTIME, 1, 2, 26, 26 },   { NT_PROV_RUNTIME, 2, 0, 6, 6 },
		{ NT_PROV_RUNTIME, 2, 1, 10, 10 },   { NT_PROV_RUNTIME, 3, 0, 0, 0 },
		{ NT_PROV_RUNTIME, 3, 1, 2, 2 },     { NT_PROV_RUNTIME, 4, 0, 92, 92 },
		{ NT_PROV_RUNTIME, 4, 1, 94, 94 },   { NT_PROV_RUNTIME, 4, 2, 110, 110 },
		{ NT_PROV_RUNTIME, 5, 1, 22, 22 },   { NT_PROV_RUNTIME, 6, 1, 10, 10 },
		{ NT_PROV_RUNTIME, 9, 0, 2, 2 },     { NT_PROV_RUNTIME, 9, 1, 10, 10 },
		{ NT_PROV_RUNTIME, 10, 1, 10, 10 },  { NT_PROV_RUNTIME, 10, 2, 32, 28 },
		{ NT_PROV_RUNTIME, 10, 3, 40, 32 },  { NT_PROV_RUNTIME, 10, 4, 48, 40 },
		{ NT_PROV_RUNTIME, 20, 0, 30, 22 },  { NT_PROV_RUNTIME, 23, 0, 27, 23 },
		{ NT_PROV_RUNTIME, 30, 0, 34, 26 },  { NT_PROV_RUNTIME, 35, 0, 6, 6 },
		{ NT_PROV_RUNTIME, 56, 0, 76, 76 },  { NT_PROV_RUNTIME, 58, 0, 18, 18 },
		{ NT_PROV_RUNTIME, 80, 0, 0, 0 },    { NT_PROV_RUNTIME, 81, 1, 3, 3 },
		{ NT_PROV_RUNTIME, 81, 2, 27, 19 },  { NT_PROV_RUNTIME, 85, 0, 30, 30 },
		{ NT_PROV_RUNTIME, 91, 0, 3, 3 },    { NT_PROV_RUNTIME, 91, 1, 11, 11 },
		{ NT_PROV_RUNTIME, 141, 0, 36, 36 }, { NT_PROV_RUNTIME, 141, 1, 38, 38 },
		{ NT_PROV_RUNTIME, 141, 2, 46, 46 }, { NT_PROV_RUNTIME, 143, 0, 42, 42 },
		{ NT_PROV_RUNTIME, 143, 2, 52, 52 }, { NT_PROV_RUNTIME, 146, 0, 46, 46 },
		{ NT_PROV_RUNTIME, 152, 3, 76, 76 }, { NT_PROV_RUNTIME, 202, 0, 18, 18 },
		{ NT_PROV_RUNTIME, 204, 3, 86, 58 }, { NT_PROV_RUNTIME, 205, 2, 38, 38 },
		{ NT_PROV_RUNTIME, 205, 4, 50, 50 }, { NT_PROV_RUNTIME, 298, 0, 36, 36 },
		{ NT_PROV_RUNTIME, 301, 0, 11, 7 },  { NT_PROV_RUNTIME, 303, 0, 40, 32 },
		{ NT_PROV_RUNDOWN, 10, 0, 50, 50 },  { NT_PROV_RUNDOWN, 146, 1, 2, 2 },
		{ NT_PROV_PRIVATE, 199, 0, 26, 14 }, { NT_PROV_SAMPLER, 0, 0, 4, 4 },
		{ NT_PROV_EVENTPIPE, 1, 0, 2, 2 },   { NT_PROV_EVENTPIPE, 1, 1, 6, 6 },
	};
	static const uint8_t zeros[128];

	(void)state;
	for (size_t i = 0; i < COUNT(events); i++) {
		for (unsigned size = 4; size <= 8; size += 4) {
			size_t expected = size == 8 ? events[i].bytes8 : events[i].bytes4;
			struct nt_payload_fit fit;
			struct one_event o;
			struct layout l;

			layout_init(&l, events[i].provider, events[i].id, events[i].version);
			one_event_init(&o, NT_LAYOUT_TABLE, l.fields, l.count, zeros,
				       sizeof(zeros));
			o.trace.pointer_size = size;
			nt_payload_read(&o.ev, NULL, 0, &fit);
			if (!fit.complete || fit.used != expected)
				fail_msg("%u v%u: %zu bytes, not %zu", events[i].id,
					 events[i].version, fit.used, expected);
			one_event_done(&o);
			nt_arena_done(&l.arena);
		}
	}
}

/* Every row reads zeros in full: no layout needs something that is not in the payload. */
static void test_every_row_reads_zeros(void **state)
{
	static const uint8_t zeros[256];

	(void)state;
	for (unsigned p = 0; p < NT_PROV_COUNT; p++) {
		struct nt_table_rows t = nt_table_rows_of((enum nt_provider)p);

		for (size_t i = 0; i < t.count; i++) {
			struct event_text text = { .stop_after = 0 };
			struct nt_payload_fit fit;
			struct one_event o;
			struct layout l;

			layout_init(&l, (enum nt_provider)p, t.rows[i].id, 100);
			one_event_init(&o, NT_LAYOUT_TABLE, l.fields, l.count, zeros,
				       sizeof(zeros));
			assert_int_equal(event_text(&text, &o.ev, &fit), NT_OK);
			assert_true(fit.complete);
			one_event_done(&o);
			nt_arena_done(&l.arena);
		}
	}
}

static void test_bulk_types(void **state)
{
	(void)state;
	/* Numbers of 8 bytes for 4-byte pointers too. */
	check_runtime(15, 0, 4,
		      "02 00 00 00 00 00"
		      " 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 03 00 00 02 08 00 00 00 1d"
		      " 'X' 00 00 00 01 00 00 00 04 00 00 00 00 00 00 00"
		      " 05 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 04 00 00 02 00 00 00 00 12"
		      " 00 00 00 00 00 00",
		      "Count=2 ClrInstanceID=0 Values=[{TypeID=1 ModuleID=2 TypeNameID=33554435 "
		      "Flags=8 CorElementType=29 Name='X' TypeParameterCount=1 "
		      "TypeParameters=[4]#1} {TypeID=5 ModuleID=2 TypeNameID=33554436 Flags=0 "
		      "CorElementType=18 Name='' TypeParameterCount=0 TypeParameters=[]#0}]#2");
}

static void test_heap_walk(void **state)
{
	(void)state;
	check_runtime(18, 0, 8,
		      "07 00 00 00 01 00 00 00 00 00 01 00 00 00 00 00 00 00"
		      " 02 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00",
		      "Index=7 Count=1 ClrInstanceID=0 Values=[{Address=1 Size=2 TypeID=3 "
		      "EdgeCount=4}]#1");
	check_runtime(18, 0, 4,
		      "07 00 00 00 01 00 00 00 00 00 01 00 00 00"
		      " 02 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00",
		      "Index=7 Count=1 ClrInstanceID=0 Values=[{Address=1 Size=2 TypeID=3 "
		      "EdgeCount=4}]#1");
	check_runtime(19, 0, 8,
		      "00 00 00 00 02 00 00 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00"
		      " 02 00 00 00 00 00 00 00 00 00 00 00",
		      "Index=0 Count=2 ClrInstanceID=0 Values=[{Value=1 ReferencingFieldID=0} "
		      "{Value=2 ReferencingFieldID=0}]#2");
	check_runtime(16, 0, 4,
		      "00 00 00 00 01 00 00 00 00 00 01 00 00 00 02 03 00 00 00 04 00 00 00",
		      "Index=0 Count=1 ClrInstanceID=0 Values=[{RootedNodeAddress=1 GCRootKind=2 "
		      "GCRootFlag=3 GCRootID=4}]#1");
	check_runtime(38, 0, 8,
		      "01 00 00 00 09 00 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00"
		      " 02 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 01 00 00 00 'f' 00 00 00",
		      "Count=1 AppDomainID=9 ClrInstanceID=0 Values=[{GCRootID=1 ObjectID=2 "
		      "TypeID=3 Flags=1 FieldName='f'}]#1");
}

#define CCW(n) n " 00 00 00 00 00 00 00"
#define CCW_RECORD(first)                                                                          \
	CCW(first) CCW("02") CCW("03") CCW("04") " 05 00 00 00 06 00 00 00 07 00 00 00"
#define CCW_TEXT(first)                                                                            \
	"{GCRootID=" first " ObjectID=2 TypeID=3 IUnknown=4 RefCount=5 PeggedRefCount=6 Flags=7}"

/* Records of 44 bytes, or 48: the payload tells. */
static void test_records_of_unknown_length(void **state)
{
	(void)state;
	check_runtime(36, 0, 8, "02 00 00 00 00 00 " CCW_RECORD("01") CCW_RECORD("0a"),
		      "Count=2 ClrInstanceID=0 Values=[" CCW_TEXT("1") " " CCW_TEXT("10") "]#2");
	check_runtime(36, 0, 8,
		      "02 00 00 00 00 00 " CCW_RECORD("01") " 00 00 00 00" CCW_RECORD(
			      "0a") " 00 00 00 00",
		      "Count=2 ClrInstanceID=0 Values=[" CCW_TEXT("1") " " CCW_TEXT("10") "]#2");
	check_runtime(36, 0, 8, "00 00 00 00 00 00", "Count=0 ClrInstanceID=0 Values=[]#0");
}

static void test_records_of_unknown_length_cut(void **state)
{
	struct event_text t = { .stop_after = 0 };
	struct nt_payload_fit fit;
	struct one_event o;
	struct layout l;

	(void)state;
	layout_init(&l, NT_PROV_RUNTIME, 36, 0);
	/* 3 records are announced, 88 bytes are there: no stride, and the third one is missing. */
	one_event_hex(&o, NT_LAYOUT_TABLE, l.fields, l.count,
		      "03 00 00 00 00 00 " CCW_RECORD("01") CCW_RECORD("0a"));
	assert_int_equal(event_text(&t, &o.ev, &fit), NT_OK);
	assert_string_equal(
		t.text, "Count=3 ClrInstanceID=0 Values=[" CCW_TEXT("1") " " CCW_TEXT("10") "]#2");
	assert_false(fit.complete);
	one_event_done(&o);
	nt_arena_done(&l.arena);
}

static void test_padded_records(void **state)
{
	(void)state;
	/* C structures: a pointer is aligned where it has 8 bytes. */
	check_runtime(208, 0, 8,
		      "00 00 01 00 01 00 00 00 02 00 00 00 03 00 00 00 ee ee ee ee"
		      " 04 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00",
		      "ClrInstanceID=0 Count=1 Values=[{TimePlan=1 TimeCompact=2 TimeRelocate=3 "
		      "TotalRefs=4 ZeroRefs=5}]#1");
	check_runtime(208, 0, 4,
		      "00 00 01 00 01 00 00 00 02 00 00 00 03 00 00 00 04 00 00 00 05 00 00 00",
		      "ClrInstanceID=0 Count=1 Values=[{TimePlan=1 TimeCompact=2 TimeRelocate=3 "
		      "TotalRefs=4 ZeroRefs=5}]#1");
	check_runtime(209, 0, 8,
		      "00 00 01 00 08 00 00 00 00 00 00 00 02 00"
		      " 01 00 ee ee 02 00 00 00 03 00 00 00 00 00 00 00"
		      " 04 00 ee ee 05 00 00 00 06 00 00 00 00 00 00 00",
		      "ClrInstanceID=0 BucketKind=1 TotalSize=8 Count=2 Values=[{Index=1 Count=2 "
		      "Size=3} {Index=4 Count=5 Size=6}]#2");
}

static void test_counted_data(void **state)
{
	(void)state;
	check_runtime(39, 0, 8, "'N' 00 00 00 03 00 00 00 01 02 03 07 00",
		      "Name='N' DataSize=3 Data=010203 ClrInstanceID=7");
	check_runtime(190, 1, 8,
		      "01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 00 02 00"
		      " ff ff ff ff 05 00 00 00 00 00 00 00 09 00 00 00 07 00"
		      " 08 00 00 00 00 00 00 00",
		      "MethodID=1 ReJITID=2 MethodExtent=0 CountOfMapEntries=2 "
		      "ILOffsets=[-1 5]#2 NativeOffsets=[0 9]#2 ClrInstanceID=7 ILVersionID=8");
	check_runtime(260, 0, 8, "01 00 00 00 00 00 00 00 02 00 01 00 02 00 00 00 aa bb 07 00",
		      "ModuleId=1 TotalChunks=2 ChunkNumber=1 ChunkLength=2 Chunk=aabb "
		      "ClrInstanceID=7");
}

static void test_ansi_strings(void **state)
{
	(void)state;
	check_runtime(
		186, 0, 8,
		"00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 'no' 00 07 00",
		"MethodBeingCompiledNamespace='' MethodBeingCompiledName='' "
		"MethodBeingCompiledNameSignature='' InlinerNamespace='' InlinerName='' "
		"InlinerNameSignature='' InlineeNamespace='' InlineeName='' "
		"InlineeNameSignature='' FailAlways=true FailReason='no' ClrInstanceID=7");
}

/* With the two strings that the stream's own description leaves out. */
static void test_universal(void **state)
{
	(void)state;
	check(NT_PROV_UNIVERSAL_SYSTEM, 3, 0, 8,
	      "05 80 a0 01 80 c0 01 00 01 00 'f' 02 01 00 's' 00 00",
	      "Id=5 StartAddress=20480 EndAddress=24576 FileOffset=0 FileName='f' MetadataId=2 "
	      "SymbolMetadata='s' VersionMetadata=''");
	check(NT_PROV_UNIVERSAL_SYSTEM, 1, 0, 8, "ac 02 03 00 'app' 00 00",
	      "NamespaceId=300 Name='app' NamespaceName=''");
}

static void test_mono(void **state)
{
	(void)state;
	check(NT_PROV_MONO, 53, 0, 8,
	      "01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 20 00 00 00 00 00 00 00 01"
	      " 01 00 00 00 10 00 00 00 03 00 00 00 00 00 00 00",
	      "ObjectID=1 VTableID=2 ObjectSize=32 ObjectGeneration=1 Count=1 "
	      "Values=[{ReferencesOffset=16 ObjectID=3}]#1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_every_row_reads_zeros),
		cmocka_unit_test(test_bulk_types),
		cmocka_unit_test(test_heap_walk),
		cmocka_unit_test(test_records_of_unknown_length),
		cmocka_unit_test(test_records_of_unknown_length_cut),
		cmocka_unit_test(test_padded_records),
		cmocka_unit_test(test_counted_data),
		cmocka_unit_test(test_ansi_strings),
		cmocka_unit_test(test_universal),
		cmocka_unit_test(test_mono),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
