/* SPDX-License-Identifier: MIT */
/*
 * Files of perf-based recorders: a stream built byte by byte, with CPU samples and context switches
 * of two processes, their mappings and their symbols.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/play.h"

static const struct an_class *const classes[] = { &an_class_cpu, NULL };

enum { CPU = 1, CSWITCH = 2, EXISTING = 3, EXIT = 4, MAPPING = 5, SYMBOL = 6 }; /* definitions */
enum { OWNER_A = 1, OWNER_B = 2, A1 = 3, A2 = 4, B1 = 5 }; /* rows of the thread table */
enum { PID_A = 100, PID_B = 200 };

struct file {
	struct build rows; /* of the event block */
	uint32_t number;
};

static void event(struct file *f, uint32_t def, uint64_t thread, uint32_t stack, struct build *b)
{
	const struct build_row r = { .metadata_id = def,
				     .thread = thread,
				     .stack = stack,
				     .ticks_delta = 1000000,
				     .payload = b->bytes,
				     .payload_bytes = b->count };

	build_row(&f->rows, true, &r);
	build_done(b);
	f->number++;
}

static void sample(struct file *f, uint32_t def, uint64_t thread, uint32_t stack, uint64_t value)
{
	struct build b = { 0 };

	build_varuint(&b, value);
	event(f, def, thread, stack, &b);
}

/* u16 length and UTF-8: strings of Universal.*. */
static void text(struct build *b, const char *s)
{
	build_u16(b, (unsigned)strlen(s));
	build_bytes(b, s, strlen(s));
}

static void process(struct file *f, uint64_t owner, const char *name)
{
	struct build b = { 0 };

	build_varuint(&b, 1);
	text(&b, name);
	text(&b, "");
	event(f, EXISTING, owner, 0, &b);
}

static void mapping(struct file *f, uint64_t owner, uint64_t start, uint64_t end, const char *name)
{
	struct build b = { 0 };

	build_varuint(&b, 1);
	build_varuint(&b, start);
	build_varuint(&b, end);
	build_varuint(&b, 0);
	text(&b, name);
	build_varuint(&b, 0);
	text(&b, "");
	text(&b, "");
	event(f, MAPPING, owner, 0, &b);
}

static void symbol(struct file *f, uint64_t owner, uint64_t start, uint64_t last, const char *name)
{
	struct build b = { 0 };

	build_varuint(&b, 1);
	build_varuint(&b, 1);
	build_varuint(&b, start);
	build_varuint(&b, last);
	text(&b, name);
	event(f, SYMBOL, owner, 0, &b);
}

static void definition(struct build *b, uint32_t id, const char *provider, uint32_t event_id,
		       const char *name, bool valued)
{
	struct build row = { 0 };

	build_varuint(&row, id);
	build_str6(&row, provider);
	build_varuint(&row, event_id);
	build_str6(&row, name);
	build_u16(&row, valued);
	if (valued) {
		struct build field = { 0 };

		build_str6(&field, "Value");
		build_u8(&field, NT_T_VARUINT);
		build_u16(&row, (unsigned)field.count);
		build_append(&row, &field);
	}
	build_u16(&row, 0); /* options */
	build_sized_row(b, &row);
}

static void put_definitions(struct build *b)
{
	struct build content = { 0 };

	build_u16(&content, 0); /* header */
	definition(&content, CPU, "Universal.Events", 0, "cpu", true);
	definition(&content, CSWITCH, "Universal.Events", 1, "cswitch", true);
	definition(&content, EXISTING, "Universal.System", 0, "ExistingProcess", false);
	definition(&content, EXIT, "Universal.System", 2, "ProcessExit", false);
	definition(&content, MAPPING, "Universal.System", 3, "ProcessMapping", false);
	definition(&content, SYMBOL, "Universal.System", 4, "ProcessSymbol", false);
	build_block6(b, KIND6_METADATA, &content);
}

static void stack(struct build *b, size_t count, const uint64_t *frames)
{
	build_u32(b, (uint32_t)count * 8);
	for (size_t i = 0; i < count; i++)
		build_u64(b, frames[i]);
}

/* 1: A in Hot; 2: A in a futex of the kernel; 3: B in its own code at the address of Hot. */
static void put_tables(struct build *b)
{
	static const uint64_t hot[] = { 0x1010, 0x2020 };
	static const uint64_t futex[] = { 0xffff800000001000, 0x9010, 0x2020 };
	static const uint64_t native[] = { 0x1010 };
	struct build threads = { 0 }, stacks = { 0 };

	build_thread6(&threads, 0, NULL, 0, 0);
	build_thread6(&threads, OWNER_A, NULL, PID_A, 0);
	build_thread6(&threads, OWNER_B, NULL, PID_B, 0);
	build_thread6(&threads, A1, NULL, PID_A, 101);
	build_thread6(&threads, A2, NULL, PID_A, 102);
	build_thread6(&threads, B1, NULL, PID_B, 201);
	build_block6(b, KIND6_THREAD, &threads);
	build_u32(&stacks, 1); /* the first id */
	build_u32(&stacks, 3);
	stack(&stacks, 2, hot);
	stack(&stacks, 3, futex);
	stack(&stacks, 1, native);
	build_block6(b, KIND6_STACK, &stacks);
}

static void put_events(struct file *f)
{
	struct build none = { 0 };

	process(f, OWNER_A, "shop");
	process(f, OWNER_B, "db");
	process(f, OWNER_A, "shop"); /* said again */
	mapping(f, OWNER_A, 0x1000, 0x2fff, "/memfd:doublemapper (deleted)");
	mapping(f, OWNER_A, 0x9000, 0x9fff, "/usr/lib/libc.so.6");
	mapping(f, OWNER_A, 0xffff800000000000, UINT64_MAX, "vmlinux");
	mapping(f, OWNER_B, 0x1000, 0x1fff, "/usr/bin/db");
	symbol(f, OWNER_A, 0x1000, 0x17ff, "void [Shop] Shop.Cpu::Hot()[OptimizedTier1]");
	symbol(f, OWNER_A, 0x1800, 0x1fff, "void [Shop] Shop.Cpu::Hot()[InstrumentedTier]");
	symbol(f, OWNER_A, 0x2000, 0x2fff, "void [Shop] Shop.Program::Main()[QuickJitted]");
	symbol(f, OWNER_A, 0xffff800000001000, 0xffff800000001fff, "futex_wait");
	symbol(f, OWNER_A, 0, UINT64_MAX, "kernel without rights"); /* holds everything */
	symbol(f, OWNER_B, 0x1000, 0x1fff, "db_main");
	for (int i = 0; i < 60; i++)
		sample(f, CPU, A1, 1, 1);
	for (int i = 0; i < 40; i++)
		sample(f, CPU, B1, 3, 1);
	/* 102 comes back after 250 ms, after 2 ms, and after too short a time for any sampler */
	sample(f, CSWITCH, A2, 2, 250000000);
	sample(f, CSWITCH, A2, 2, 2000000);
	sample(f, CSWITCH, A2, 2, 1000);
	event(f, EXIT, OWNER_B, 0, &none);
}

static struct build whole_file(void)
{
	struct build b = { 0 }, trace = { 0 };
	struct file f = { 0 };

	build_begin6(&b);
	b.count = 20;
	build_trace6(&trace);
	build_u32(&trace, 2);
	build_str6(&trace, "HardwareThreadCount");
	build_str6(&trace, "4");
	build_str6(&trace, "ExpectedCPUSamplingRate");
	build_str6(&trace, "1000000");
	build_block6(&b, KIND6_TRACE, &trace);
	put_definitions(&b);
	put_tables(&b);
	put_events(&f);
	build_rows(&b, 6, &f.rows);
	build_end6(&b);
	return b;
}

static struct an_report *report_of(const struct an_options *options)
{
	struct an_engine *e = an_engine_new(NULL, options, classes);
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, an_engine_flags(e), &an_engine_sink, e);
	struct an_report *r = an_report_new(NULL);
	struct build b = whole_file();

	assert_int_equal(nt_decoder_push(d, b.bytes, b.count), NT_OK);
	assert_int_equal(nt_decoder_finish(d), NT_OK);
	assert_int_equal(an_engine_report(e, d, NULL, r), NT_OK);
	build_done(&b);
	nt_decoder_free(d);
	an_engine_free(e);
	return r;
}

static const struct an_value *find(const struct an_report *r, const char *path, const char *member,
				   const char *word)
{
	const struct an_value *v = an_get(an_report_borrow_root(r), path);

	for (v = v ? v->first : NULL; v; v = v->next)
		if (!strcmp(an_get_text(v, member, ""), word))
			return v;
	return NULL;
}

static uint64_t number(const struct an_report *r, const char *path)
{
	return an_get_u64(an_report_borrow_root(r), path, UINT64_MAX);
}

static void samples_and_switches(void **state)
{
	struct an_report *r = report_of(NULL);
	const struct an_value *v = an_report_borrow_root(r);

	(void)state;
	assert_string_equal(an_get_text(v, "cpu.source", ""), "universal");
	assert_int_equal(number(r, "cpu.samples_on_cpu"), 100);
	assert_int_equal(number(r, "cpu.samples_waiting"), 250 + 2 + 1);
	assert_int_equal(number(r, "cpu.context_switches"), 3);
	assert_true(an_get_f64(v, "cpu.blocked_ms", 0) == 252.001);
	v = find(r, "cpu.methods", "method", "Shop.Cpu.Hot");
	assert_int_equal(an_get_u64(v, "exclusive_samples", 0), 60);
	assert_string_equal(an_get_text(v, "tier", ""), "OptimizedTier1");
	assert_string_equal(an_get_text(v, "module", ""), "Shop");
	v = find(r, "cpu.methods", "method", "db_main");
	assert_int_equal(an_get_u64(v, "exclusive_samples", 0), 40);
	assert_string_equal(an_get_text(v, "module", ""), "db");
	an_report_free(r);
}

static void blocked_time_by_method_and_thread(void **state)
{
	const struct an_options waiting = { .view = AN_VIEW_WAITING };
	struct an_report *r = report_of(&waiting);
	const struct an_value *v = find(r, "cpu.methods", "method", "futex_wait");

	(void)state;
	assert_int_equal(an_get_u64(v, "exclusive_samples", 0), 253);
	v = find(r, "cpu.methods", "method", "Shop.Program.Main");
	assert_int_equal(an_get_u64(v, "inclusive_samples", 0), 253);
	v = an_get(an_report_borrow_root(r), "cpu.threads")->first;
	assert_int_equal(an_get_u64(v, "thread_id", 0), 102);
	assert_true(an_get_f64(v, "blocked_ms", 0) == 252.001);
	assert_true(an_get_f64(v, "cpu_time_ms", 9) == 0);
	an_report_free(r);
}

static void processes_are_told_apart(void **state)
{
	struct an_options options = { 0 };
	struct an_report *r = report_of(&options);
	const struct an_value *v = find(r, "cpu.processes", "name", "shop");

	(void)state;
	assert_int_equal(an_get(an_report_borrow_root(r), "cpu.processes")->count, 2);
	assert_int_equal(an_get_u64(v, "process_id", 0), PID_A);
	assert_int_equal(an_get_u64(v, "samples_on_cpu", 0), 60);
	assert_false(an_get(v, "ended")->u);
	v = find(r, "cpu.processes", "name", "db");
	assert_int_equal(an_get_u64(v, "samples", 0), 40);
	assert_true(an_get(v, "ended")->u);
	an_report_free(r);
	options.cpu = (struct an_cpu_options){ .one_process = true, .process_id = PID_B };
	r = report_of(&options);
	assert_int_equal(number(r, "cpu.samples"), 40);
	assert_null(find(r, "cpu.methods", "method", "Shop.Cpu.Hot"));
	an_report_free(r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_and_switches),
		cmocka_unit_test(blocked_time_by_method_and_thread),
		cmocka_unit_test(processes_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
