/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "nettrace/runtime_events.h"
#include "nettrace/runtime_table.h"
#include "tests/support/failalloc.h"

enum { ROOM = 1 << 20, TEXT_ROOM = 4096 };

/* --- a layout as text, to compare --- */

struct out {
	char text[TEXT_ROOM];
	size_t len;
};

static void put(struct out *o, const char *text)
{
	size_t n = strlen(text);

	assert_true(o->len + n < sizeof(o->text));
	memcpy(o->text + o->len, text, n + 1);
	o->len += n;
}

static void put_number(struct out *o, unsigned n)
{
	char digits[16];

	snprintf(digits, sizeof(digits), "%u", n);
	put(o, digits);
}

/* "Count:10 Values:67#0(1{Address:64})": type numbers, # before the number of the count field. */
static void put_fields(struct out *o, const struct nt_field *fields, size_t n, int depth)
{
	assert_true(depth < 8); /* the table nests twice at most */
	for (size_t i = 0; i < n; i++) {
		const struct nt_field *f = &fields[i];

		put(o, i ? " " : "");
		assert_non_null(f->name);
		put(o, f->name);
		put(o, ":");
		put_number(o, f->type);
		if (f->count) {
			put(o, "#");
			put_number(o, f->count);
		}
		if (f->child_count) {
			put(o, "(");
			put_fields(o, f->children, f->child_count, depth + 1);
			put(o, ")");
		}
	}
}

static void layout_text(struct out *o, enum nt_provider provider, uint32_t id, uint32_t version)
{
	struct nt_arena arena;
	const struct nt_field *fields;
	size_t count;
	bool known;

	o->len = 0;
	o->text[0] = '\0';
	nt_arena_init(&arena, &nt_alloc_default, ROOM);
	assert_int_equal(nt_table_layout(&arena, provider, id, version, &fields, &count, &known),
			 NT_OK);
	if (known)
		put_fields(o, fields, count, 0);
	else
		put(o, "unknown");
	nt_arena_done(&arena);
}

static void assert_layout(enum nt_provider provider, uint32_t id, uint32_t version,
			  const char *expected)
{
	struct out o;

	layout_text(&o, provider, id, version);
	assert_string_equal(o.text, expected);
}

/* --- the table as a whole --- */

/* The highest version that a row mentions. */
static uint32_t last_version(const char *fields)
{
	uint32_t last = 0;

	for (const char *p = fields; *p; p++) {
		uint32_t n = 0;

		if (*p != '@' && *p != '<')
			continue;
		while (p[1] >= '0' && p[1] <= '9')
			n = n * 10 + (uint32_t)(*++p - '0');
		if (n > last)
			last = n;
	}
	return last;
}

static void check_fields(const struct nt_field *fields, size_t n, int depth)
{
	assert_true(depth < 8);
	assert_int_equal(fields == NULL, n == 0);
	for (size_t i = 0; i < n; i++) {
		const struct nt_field *f = &fields[i];
		bool counted = f->type == NT_T_COUNTED_ARRAY || f->type == NT_T_COUNTED_BYTES;

		assert_non_null(f->name);
		/* Only elements and padding are nameless. */
		assert_true(*f->name || f->type == NT_T_PAD);
		assert_int_equal(f->type == NT_T_COUNTED_ARRAY, f->child_count != 0);
		if (counted)
			assert_true(f->count < i);
		for (size_t k = 0; k < i; k++)
			assert_true(!*f->name || strcmp(fields[k].name, f->name) != 0);
		if (f->type == NT_T_COUNTED_ARRAY) {
			assert_int_equal(f->child_count, 1);
			assert_string_equal(f->children[0].name, "");
			if (f->children[0].type == NT_T_OBJECT)
				check_fields(f->children[0].children, f->children[0].child_count,
					     depth + 1);
		}
	}
}

static void test_every_row(void **state)
{
	size_t rows = 0;

	(void)state;
	for (unsigned p = 0; p < NT_PROV_COUNT; p++) {
		struct nt_table_rows t = nt_table_rows_of((enum nt_provider)p);

		for (size_t i = 0; i < t.count; i++, rows++) {
			const struct nt_table_row *row = &t.rows[i];
			uint32_t last = last_version(row->fields);
			struct out newest, newer;

			assert_true(i == 0 || t.rows[i - 1].id < row->id);
			assert_true(*row->name);
			assert_string_equal(nt_table_name((enum nt_provider)p, row->id), row->name);
			for (uint32_t v = 0; v <= last + 1; v++) {
				struct nt_arena arena;
				const struct nt_field *fields;
				size_t count;
				bool known;

				nt_arena_init(&arena, &nt_alloc_default, ROOM);
				if (nt_table_layout(&arena, (enum nt_provider)p, row->id, v,
						    &fields, &count, &known) != NT_OK)
					fail_msg("%s v%u: %s", row->name, v, row->fields);
				check_fields(fields, count, 0);
				assert_true(known || *row->fields == '@');
				nt_arena_done(&arena);
			}
			/* Versions to come have the newest layout. */
			layout_text(&newest, (enum nt_provider)p, row->id, last);
			layout_text(&newer, (enum nt_provider)p, row->id, UINT32_MAX - 1);
			assert_string_equal(newest.text, newer.text);
		}
	}
	assert_true(rows > 200);
}

/* The array indexes of names are unique: an id in the wrong place would be found by no one. */
static void test_names_of_a_provider_differ(void **state)
{
	(void)state;
	for (unsigned p = 0; p < NT_PROV_COUNT; p++) {
		struct nt_table_rows t = nt_table_rows_of((enum nt_provider)p);

		for (size_t i = 0; i < t.count; i++)
			for (size_t k = 0; k < i; k++)
				assert_string_not_equal(t.rows[i].name, t.rows[k].name);
	}
}

/* --- single events --- */

static void test_versions(void **state)
{
	(void)state;
	/* Depth came between Count and Reason. */
	assert_layout(NT_PROV_RUNTIME, 1, 0, "Count:10 Reason:10");
	assert_layout(NT_PROV_RUNTIME, 1, 1, "Count:10 Depth:10 Reason:10 Type:10 ClrInstanceID:8");
	assert_layout(NT_PROV_RUNTIME, 1, 2,
		      "Count:10 Depth:10 Reason:10 Type:10 ClrInstanceID:8 "
		      "ClientSequenceNumber:12");
	assert_layout(NT_PROV_RUNTIME, 1, 9,
		      "Count:10 Depth:10 Reason:10 Type:10 ClrInstanceID:8 "
		      "ClientSequenceNumber:12");
	/* A field that changed its type. */
	assert_layout(NT_PROV_RUNTIME, 2, 0, "Count:10 Depth:8");
	assert_layout(NT_PROV_RUNTIME, 2, 1, "Count:10 Depth:10 ClrInstanceID:8");
	/* Nothing at first. */
	assert_layout(NT_PROV_RUNTIME, 3, 0, "");
	assert_layout(NT_PROV_RUNTIME, 3, 1, "ClrInstanceID:8");
	/* Older versions are another event. */
	assert_layout(NT_PROV_RUNTIME, 204, 2, "unknown");
	/* Never any fields. */
	assert_layout(NT_PROV_RUNTIME, 251, 0, "");
}

static void test_arrays(void **state)
{
	(void)state;
	assert_layout(NT_PROV_RUNTIME, 15, 0,
		      "Count:10 ClrInstanceID:8 Values:67(:1(TypeID:12 ModuleID:12 TypeNameID:10 "
		      "Flags:10 CorElementType:6 Name:18 TypeParameterCount:10 "
		      "TypeParameters:67#6(:12)))");
	assert_layout(NT_PROV_RUNTIME, 39, 0, "Name:18 DataSize:10 Data:68#1 ClrInstanceID:8");
	assert_layout(NT_PROV_RUNTIME, 205, 4,
		      "FinalYoungestDesired:12 NumHeaps:9 CondemnedGeneration:10 "
		      "Gen0ReductionCount:10 Reason:10 GlobalMechanisms:10 ClrInstanceID:8 "
		      "PauseMode:10 MemoryPressure:10 CondemnReasons0:10 CondemnReasons1:10 "
		      "Count:10 Times:67#11(:10)");
	assert_layout(NT_PROV_RUNTIME, 209, 0,
		      "ClrInstanceID:8 BucketKind:8 TotalSize:12 Count:8 "
		      "Values:67#3(:1(Index:8 :69#2 Count:10 Size:64))");
	assert_layout(NT_PROV_RUNDOWN, 150, 1,
		      "MethodID:12 ReJITID:12 MethodExtent:6 CountOfMapEntries:8 "
		      "ILOffsets:67#3(:9) NativeOffsets:67#3(:9) ClrInstanceID:8 ILVersionID:12");
}

/* The same number means different things to the runtime and to the rundown provider. */
static void test_providers(void **state)
{
	(void)state;
	assert_int_equal(nt_provider_find("Microsoft-Windows-DotNETRuntime"), NT_PROV_RUNTIME);
	assert_int_equal(nt_provider_find("Microsoft-Windows-DotNETRuntimeRundown"),
			 NT_PROV_RUNDOWN);
	assert_int_equal(nt_provider_find("Microsoft-Windows-DotNETRuntimePrivate"),
			 NT_PROV_PRIVATE);
	assert_int_equal(nt_provider_find("Microsoft-Windows-DotNETRuntimeStress"), NT_PROV_STRESS);
	assert_int_equal(nt_provider_find("Microsoft-DotNETCore-SampleProfiler"), NT_PROV_SAMPLER);
	assert_int_equal(nt_provider_find("Microsoft-DotNETCore-EventPipe"), NT_PROV_EVENTPIPE);
	assert_int_equal(nt_provider_find("System.Threading.Tasks.TplEventSource"), NT_PROV_TPL);
	assert_int_equal(nt_provider_find("Microsoft-DotNETRuntimeMonoProfiler"), NT_PROV_MONO);
	assert_int_equal(nt_provider_find("Universal.System"), NT_PROV_UNIVERSAL_SYSTEM);
	assert_int_equal(nt_provider_find("Universal.Events"), NT_PROV_UNIVERSAL_EVENTS);
	assert_int_equal(nt_provider_find("Microsoft-Windows-DotNETRuntim"), NT_PROV_OTHER);
	assert_int_equal(nt_provider_find("microsoft-windows-dotnetruntime"), NT_PROV_OTHER);
	assert_int_equal(nt_provider_find(""), NT_PROV_OTHER);
	assert_string_equal(nt_table_name(NT_PROV_RUNTIME, 144), "MethodUnloadVerbose");
	assert_string_equal(nt_table_name(NT_PROV_RUNDOWN, 144), "MethodDCEndVerbose");
	assert_string_equal(nt_table_name(NT_PROV_SAMPLER, 0), "ThreadSample");
}

static void test_unknown_events(void **state)
{
	(void)state;
	assert_null(nt_table_name(NT_PROV_RUNTIME, 0));
	assert_null(nt_table_name(NT_PROV_RUNTIME, 304));
	assert_null(nt_table_name(NT_PROV_RUNTIME, UINT32_MAX));
	assert_null(nt_table_name(NT_PROV_RUNTIME, 65536 + 1)); /* GCStart, cut to 16 bits */
	assert_null(nt_table_name(NT_PROV_OTHER, 1));
	assert_null(nt_table_name(NT_PROV_STRESS, 1));
	assert_null(nt_table_name(NT_PROV_COUNT, 1));
	assert_layout(NT_PROV_RUNTIME, 304, 0, "unknown");
	assert_layout(NT_PROV_OTHER, 1, 0, "unknown");
	assert_layout(NT_PROV_UNIVERSAL_EVENTS, 1, 0, "unknown");
}

static void test_overrides(void **state)
{
	(void)state;
	assert_true(nt_table_overrides(NT_PROV_UNIVERSAL_SYSTEM, 3));
	assert_false(nt_table_overrides(NT_PROV_UNIVERSAL_SYSTEM, 99));
	assert_false(nt_table_overrides(NT_PROV_UNIVERSAL_EVENTS, 1));
	assert_false(nt_table_overrides(NT_PROV_TPL, 7));
	assert_false(nt_table_overrides(NT_PROV_RUNTIME, 1));
}

/* --- faults --- */

static void test_malformed_rows(void **state)
{
	static const char *const rows[] = {
		"Count",
		"Count:",
		"Count:u33",
		":u32",
		"Count:u32@",
		"Count:u32@x",
		"Count:u32@12345",
		"Count:u32<",
		"Count:u32  Depth:u32",
		"Count:u32,Depth:u32",
		"Count:u32[",
		"Count:u32 Values:u32[Count",
		"Values:u32[Count]", /* no such field */
		"Values:u32[Count] Count:u32", /* it comes later */
		"Name:str Values:u32[Name]", /* not a number */
		"Count:i32 Values:u32[Count]", /* may be negative */
		"Data:bytes", /* how many? */
		"Count:u32 -:pad2[Count]", /* padding is not counted */
		"-:u32", /* only padding is nameless */
		"Pad:pad2",
		"Count:u32 Values:{A:u32}", /* how many? */
		"Count:u32 Values:{A:u32[Count]",
		"Count:u32 Values:{A:u33}[Count]",
		"Count:u32 Values:{A:u32[Count]}[Count]", /* of another object */
		"Count:u16@1 Values:u32[Count]", /* not in version 0 */
		"@ Count:u32",
		"@0Count:u32",
		" ",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nt_arena arena;
		const struct nt_field *fields;
		size_t count;
		bool known;

		nt_arena_init(&arena, &nt_alloc_default, ROOM);
		if (nt_table_compile(&arena, rows[i], 0, &fields, &count, &known) != NT_EFORMAT)
			fail_msg("accepted: '%s'", rows[i]);
		assert_null(fields);
		assert_int_equal(count, 0);
		assert_false(known);
		nt_arena_done(&arena);
	}
}

static void test_count_too_far_back(void **state)
{
	char row[1024] = "Count:u32";
	struct nt_arena arena;
	const struct nt_field *fields;
	size_t count, len = strlen(row);
	bool known;

	(void)state;
	/* NT_COUNT_FIELDS siblings are remembered by the readers, more are not. */
	for (int i = 0; i < 30; i++)
		len += (size_t)snprintf(row + len, sizeof(row) - len, " F%d:u8", i);
	snprintf(row + len, sizeof(row) - len, " Values:u8[F29]");
	nt_arena_init(&arena, &nt_alloc_default, ROOM);
	assert_int_equal(nt_table_compile(&arena, row, 0, &fields, &count, &known), NT_EFORMAT);
	snprintf(row + len, sizeof(row) - len, " Values:u8[Count]");
	assert_int_equal(nt_table_compile(&arena, row, 0, &fields, &count, &known), NT_OK);
	assert_int_equal(count, 32);
	nt_arena_done(&arena);
}

static void test_out_of_memory(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		struct nt_arena arena;
		const struct nt_field *fields;
		size_t count;
		bool known;
		enum nt_status st;

		nt_arena_init(&arena, &fa.alloc, ROOM);
		st = nt_table_layout(&arena, NT_PROV_RUNTIME, 15, 0, &fields, &count, &known);
		assert_int_equal(st, fa.failed ? NT_ENOMEM : NT_OK);
		nt_arena_done(&arena);
	}
}

static void test_limit(void **state)
{
	bool all = false;

	(void)state;
	for (size_t room = 0; !all; room += 16) {
		struct nt_arena arena;
		const struct nt_field *fields;
		size_t count;
		bool known;
		enum nt_status st;

		nt_arena_init(&arena, &nt_alloc_default, room);
		st = nt_table_layout(&arena, NT_PROV_RUNTIME, 15, 0, &fields, &count, &known);
		all = st == NT_OK;
		assert_true(all || st == NT_ELIMIT);
		assert_int_equal(all, known);
		assert_true(room < 4096);
		nt_arena_done(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_row),
		cmocka_unit_test(test_names_of_a_provider_differ),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_providers),
		cmocka_unit_test(test_unknown_events),
		cmocka_unit_test(test_overrides),
		cmocka_unit_test(test_malformed_rows),
		cmocka_unit_test(test_count_too_far_back),
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
