/* SPDX-License-Identifier: MIT */
/* Addresses to methods, each at its time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/failalloc.h"
#include "tests/support/play.h"

/* A class that wants nothing but the names. */
struct analyzer {
	const struct nt_alloc *alloc;
};

static struct analyzer *probe_new(struct an_shared *shared)
{
	struct analyzer *a = shared->alloc->realloc(shared->alloc->ctx, NULL, sizeof(*a));

	if (a)
		a->alloc = shared->alloc;
	return a;
}

static struct analyzer *probe_free(struct analyzer *a)
{
	if (a)
		a->alloc->realloc(a->alloc->ctx, a, 0);
	return NULL;
}

static bool probe_wants(const struct nt_event_def *def)
{
	(void)def;
	return false;
}

static enum nt_status probe_report(struct analyzer *a, struct an_report *out)
{
	(void)a;
	(void)out;
	return NT_OK;
}

static const struct an_class probe = {
	.name = "probe",
	.wants = probe_wants,
	.new = probe_new,
	.report = probe_report,
	.free = probe_free,
	.needs = AN_NEED_STACKS,
};

static const struct an_class *const classes[] = { &probe, NULL };

static struct play p;

static const struct an_methods *begin(const struct nt_alloc *alloc)
{
	assert_true(play_begin(&p, alloc, classes, NULL));
	return an_engine_borrow_shared(p.engine)->methods;
}

static void load(uint64_t start, const char *name)
{
	play_method(&p, false, start, 0x100, "Shop.T", name, "void  ()", 1);
}

static void rundown(uint64_t start, const char *name)
{
	play_method(&p, true, start, 0x100, "Shop.T", name, "void  ()", 9);
}

static void check(const struct an_methods *m, uint64_t addr, uint32_t epoch, const char *raw)
{
	const struct an_method *x = an_methods_find(m, addr, epoch);

	if (!raw) {
		assert_null(x);
		return;
	}
	assert_non_null(x);
	assert_string_equal(x->raw, raw);
}

static void a_rundown_names_what_came_before_it(void **state)
{
	const struct an_methods *m = begin(NULL);
	uint32_t epoch = an_methods_epoch(m, 0x1050);

	(void)state;
	assert_int_equal(epoch, 0);
	rundown(0x1000, "Run");
	check(m, 0x1000, epoch, "Shop.T.Run");
	check(m, 0x1050, epoch, "Shop.T.Run");
	check(m, 0x10ff, epoch, "Shop.T.Run");
	check(m, 0x1100, epoch, NULL);
	check(m, 0xfff, epoch, NULL);
	assert_int_equal(an_methods_epoch(m, 0x1050), 0);
	play_end(&p);
}

static void a_method_has_all_its_names(void **state)
{
	const struct an_methods *m = begin(NULL);
	const struct an_method *x;
	struct build b = { 0 };

	(void)state;
	play_method(&p, false, 0x1000, 0x10, "Shop.Stuck+<Fetch>d__2", "MoveNext",
		    "instance void  (int32)", 1);
	x = an_methods_find(m, 0x1000, 0);
	assert_string_equal(x->module, ""); /* not known yet */
	build_u64(&b, 0x1000);
	build_u64(&b, 7);
	build_u32(&b, 0);
	build_u32(&b, 0);
	build_utf16(&b, "/opt/shop/Shop.dll");
	build_utf16(&b, "");
	play_event(&p, NT_PROV_RUNDOWN, 154, 2, 1, 9, &b);
	x = an_methods_find(m, 0x1000, 0);
	assert_string_equal(x->module, "Shop");
	assert_string_equal(x->raw, "Shop.Stuck+<Fetch>d__2.MoveNext");
	assert_string_equal(x->name, "Shop.Stuck.Fetch");
	assert_string_equal(x->signature, "instance void  (int32)");
	assert_string_equal(x->args, "(int)");
	assert_true(x->index < an_methods_count(m));
	assert_ptr_equal(an_methods_find(m, 0x100f, 0), x);
	play_end(&p);
}

static void one_address_can_be_two_methods(void **state)
{
	const struct an_methods *m = begin(NULL);
	uint32_t before, after;
	uint64_t changes;

	(void)state;
	load(0x1000, "First");
	before = an_methods_epoch(m, 0x1010);
	changes = an_methods_changes(m);
	load(0x1000, "Second");
	after = an_methods_epoch(m, 0x1010);
	assert_int_equal(before, 0);
	assert_int_not_equal(after, before);
	assert_int_not_equal(an_methods_changes(m), changes);
	rundown(0x1000, "Second"); /* the same again is nothing new */
	assert_int_equal(an_methods_epoch(m, 0x1010), after);
	check(m, 0x1010, before, "Shop.T.First");
	check(m, 0x1010, after, "Shop.T.Second");
	play_end(&p);
}

/* Code that covers others partly: each address keeps the history of its own. */
static void overlaps_are_told_apart_by_address(void **state)
{
	const struct an_methods *m = begin(NULL);
	uint32_t middle;

	(void)state;
	load(0x1000, "A");
	load(0x1100, "B");
	an_methods_epoch(m, 0x1000);
	play_method(&p, false, 0x1080, 0x100, "Shop.T", "C", "void  ()", 2);
	middle = an_methods_epoch(m, 0x1100);
	assert_int_not_equal(middle, 0);
	assert_int_equal(an_methods_epoch(m, 0x1080), middle);
	assert_int_equal(an_methods_epoch(m, 0x107f), 0);
	assert_int_equal(an_methods_epoch(m, 0x1180), 0);
	check(m, 0x1000, 0, "Shop.T.A");
	check(m, 0x1090, 0, "Shop.T.A");
	check(m, 0x1110, 0, "Shop.T.B");
	check(m, 0x1190, 0, "Shop.T.B");
	check(m, 0x1090, middle, "Shop.T.C");
	check(m, 0x1000, middle, NULL);
	/* Code inside other code leaves both ends of it. */
	play_method(&p, false, 0x10a0, 0x10, "Shop.T", "D", "void  ()", 3);
	check(m, 0x10a0, an_methods_epoch(m, 0x10a0), "Shop.T.D");
	assert_int_equal(an_methods_epoch(m, 0x1090), middle);
	assert_int_equal(an_methods_epoch(m, 0x10b0), middle);
	check(m, 0x1090, middle, "Shop.T.C");
	check(m, 0x10b0, middle, "Shop.T.C");
	play_end(&p);
}

/*
 * For tests with very many methods: one payload in which only the address and the name, ten digits,
 * are changed.
 */
static void load_fast(uint64_t start, uint32_t size, uint32_t number)
{
	static const struct nt_event_def def = { .defined = true,
						 .provider_id = NT_PROV_RUNTIME,
						 .provider = "",
						 .name = "MethodLoadVerbose",
						 .event_id = 143 };
	static uint8_t payload[36 + 2 + 22 + 2];
	const struct nt_event ev = { .def = &def,
				     .trace = &p.trace,
				     .process_id = 1,
				     .labels = &p.labels,
				     .payload = payload,
				     .payload_bytes = sizeof(payload) };

	for (unsigned i = 0; i < 8; i++)
		payload[16 + i] = (uint8_t)(start >> (8 * i));
	for (unsigned i = 0; i < 4; i++)
		payload[24 + i] = (uint8_t)(size >> (8 * i));
	for (unsigned i = 10; i-- > 0; number /= 10)
		payload[38 + 2 * i] = (uint8_t)('0' + number % 10);
	if (p.status == NT_OK)
		p.status = an_methods_event(an_engine_borrow_shared(p.engine)->methods, &ev);
}

/* Two methods take turns at one address, each seen in samples: nothing piles up. */
static void taking_turns_costs_no_memory(void **state)
{
	struct failalloc fa;
	const struct an_methods *m;
	uint32_t first, second;
	size_t bytes = 0;

	(void)state;
	failalloc_init(&fa, 0);
	m = begin(&fa.alloc);
	load_fast(0x1000, 0x100, 1);
	first = an_methods_epoch(m, 0x1010);
	load_fast(0x1000, 0x100, 2);
	second = an_methods_epoch(m, 0x1010);
	for (uint32_t i = 0; i < 100000; i++) {
		load_fast(0x1000, 0x100, i % 2 ? 2 : 1);
		assert_int_equal(an_methods_epoch(m, 0x1010), i % 2 ? second : first);
		if (i == 100)
			bytes = fa.bytes;
	}
	assert_int_equal(p.status, NT_OK);
	assert_int_equal(fa.bytes, bytes);
	check(m, 0x1010, first, "0000000001");
	check(m, 0x1010, second, "0000000002");
	play_end(&p);
	assert_int_equal(fa.live, 0);
}

/* A hundred thousand different methods at one address, of which only two are in samples. */
static void code_that_nobody_saw_is_forgotten(void **state)
{
	struct failalloc fa;
	const struct an_methods *m;
	uint32_t first, last;

	(void)state;
	failalloc_init(&fa, 0);
	m = begin(&fa.alloc);
	load(0x1000, "First");
	first = an_methods_epoch(m, 0x1010);
	for (uint32_t i = 0; i < 100000; i++)
		load_fast(0x1000, 0x100, i);
	load(0x1000, "Last");
	last = an_methods_epoch(m, 0x1010);
	assert_true(fa.peak_bytes < 4 << 20);
	assert_int_equal(an_methods_dropped(m), 0);
	check(m, 0x1010, first, "Shop.T.First");
	check(m, 0x1010, last, "Shop.T.Last");
	play_end(&p);
	assert_int_equal(fa.live, 0);
}

/* More methods than there is room for: the rest is counted, and memory stays in bounds. */
static void too_many_methods_are_counted(void **state)
{
	struct failalloc fa;
	const struct an_methods *m;

	(void)state;
	failalloc_init(&fa, 0);
	m = begin(&fa.alloc);
	for (uint32_t i = 0; i < 401000; i++)
		load_fast(0x1000 + (uint64_t)i * 16, 16, i);
	assert_int_equal(p.status, NT_OK);
	assert_int_equal(an_methods_dropped(m), 1000);
	assert_true(fa.peak_bytes < 96 << 20);
	check(m, 0x1000, 0, "0000000000");
	check(m, 0x1000 + 399999 * 16, 0, "0000399999");
	check(m, 0x1000 + 400000 * 16, 0, NULL);
	play_end(&p);
	assert_int_equal(fa.live, 0);
}

static void code_that_leaves_says_who_was_there(void **state)
{
	const struct an_methods *m = begin(NULL);
	struct build b = { 0 };
	uint32_t before = an_methods_epoch(m, 0x1000);

	(void)state;
	build_u64(&b, 1);
	build_u64(&b, 0x1000);
	build_u64(&b, 0x1000);
	build_u32(&b, 0x100);
	build_u32(&b, 0);
	build_u32(&b, 1);
	build_utf16(&b, "dynamicClass");
	build_utf16(&b, "Generated");
	build_utf16(&b, "int32  (int32)");
	play_event(&p, NT_PROV_RUNTIME, 144, 1, 1, 2, &b);
	load(0x1000, "Later");
	check(m, 0x1000, before, "dynamicClass.Generated");
	assert_true(an_methods_find(m, 0x1000, before)->dynamic);
	check(m, 0x1000, an_methods_epoch(m, 0x1000), "Shop.T.Later");
	play_end(&p);
}

static void without_name(uint32_t id, double ms)
{
	struct build b = { 0 };

	build_u64(&b, 0x77); /* MethodID */
	build_u64(&b, 0x1000);
	build_u64(&b, 0x5000);
	build_u32(&b, 0x40);
	build_u32(&b, 0);
	build_u32(&b, 0);
	if (id == 144) {
		build_utf16(&b, "Shop.T");
		build_utf16(&b, "Named");
		build_utf16(&b, "void  ()");
	}
	play_event(&p, id == 144 ? NT_PROV_RUNDOWN : NT_PROV_RUNTIME, id, 1, 1, ms, &b);
}

static void a_name_may_come_later(void **state)
{
	const struct an_methods *m = begin(NULL);

	(void)state;
	without_name(141, 1);
	check(m, 0x5000, 0, "[method 0x77]");
	without_name(144, 2);
	check(m, 0x5000, 0, "Shop.T.Named");
	without_name(141, 3);
	check(m, 0x5000, an_methods_epoch(m, 0x5000), "Shop.T.Named");
	assert_int_equal(an_methods_epoch(m, 0x5000), 0);
	play_end(&p);
}

static void senseless_ranges_are_counted(void **state)
{
	const struct an_methods *m = begin(NULL);
	struct build b = { 0 };

	(void)state;
	play_method(&p, false, 0x1000, 0, "Shop.T", "Empty", "", 1);
	play_method(&p, false, UINT64_MAX - 3, 100, "Shop.T", "Around", "", 1);
	build_u64(&b, 1);
	play_event(&p, NT_PROV_RUNTIME, 143, 1, 1, 1, &b); /* too short */
	play_event(&p, NT_PROV_RUNTIME, 152, 2, 1, 1, NULL);
	assert_int_equal(an_methods_bad_ranges(m), 3);
	assert_int_equal(p.status, NT_OK);
	play_method(&p, false, UINT64_MAX - 3, 4, "Shop.T", "End", "", 1);
	check(m, UINT64_MAX, 0, "Shop.T.End");
	play_end(&p);
}

/* The last string of a payload may lack its end, and any may be missing. */
static void cut_names_are_taken_as_they_are(void **state)
{
	struct build whole = { 0 };

	(void)state;
	build_u64(&whole, 1);
	build_u64(&whole, 2);
	build_u64(&whole, 0x1000);
	build_u32(&whole, 0x100);
	build_u32(&whole, 0);
	build_u32(&whole, 0);
	build_utf16(&whole, "Ns");
	build_utf16(&whole, "Name");
	build_utf16(&whole, "void  ()");
	for (size_t cut = 0; cut <= whole.count; cut++) {
		const struct an_methods *m = begin(NULL);
		struct build b = { 0 };

		build_bytes(&b, whole.bytes, cut);
		play_event(&p, NT_PROV_RUNTIME, 143, 0, 1, 1, &b);
		assert_int_equal(p.status, NT_OK);
		assert_int_equal(an_methods_find(m, 0x1000, 0) != NULL, cut >= 36);
		if (cut >= 36 + 6 + 8)
			check(m, 0x1000, 0, "Ns.Name");
		play_end(&p);
	}
	build_done(&whole);
}

static void the_rundown_is_noticed(void **state)
{
	const struct an_methods *m = begin(NULL);
	struct build b = { 0 };

	(void)state;
	assert_false(an_methods_rundown_begun(m));
	build_u16(&b, 0);
	play_event(&p, NT_PROV_RUNDOWN, 148, 1, 1, 1, &b);
	assert_true(an_methods_rundown_begun(m));
	assert_false(an_methods_rundown_complete(m));
	build_u16(&b, 0);
	play_event(&p, NT_PROV_RUNDOWN, 146, 1, 1, 1, &b);
	assert_true(an_methods_rundown_complete(m));
	play_end(&p);
}

static void mapping(uint64_t start, uint64_t end, const char *file)
{
	struct build b = { 0 };

	build_varuint(&b, 1);
	build_varuint(&b, start);
	build_varuint(&b, end);
	build_varuint(&b, 0);
	build_u16(&b, (unsigned)strlen(file));
	build_bytes(&b, file, strlen(file));
	build_varuint(&b, 0);
	play_event(&p, NT_PROV_UNIVERSAL_SYSTEM, 3, 0, 0, 1, &b);
}

static void symbol(uint64_t start, uint64_t end, const char *name)
{
	struct build b = { 0 };

	build_varuint(&b, 1);
	build_varuint(&b, 1);
	build_varuint(&b, start);
	build_varuint(&b, end);
	build_u16(&b, (unsigned)strlen(name));
	build_bytes(&b, name, strlen(name));
	play_event(&p, NT_PROV_UNIVERSAL_SYSTEM, 4, 0, 0, 1, &b);
}

static uint32_t base_of(const struct an_methods *m, int64_t pid)
{
	struct nt_event ev = { .trace = &p.trace, .process_id = pid };

	return an_methods_base(m, &ev);
}

/* Files of version 6: symbols with their names in one text, many processes. */
static void processes_have_addresses_of_their_own(void **state)
{
	const struct an_methods *m = begin(NULL);
	const struct an_method *x;
	char buf[64];

	(void)state;
	p.trace.format = 6;
	p.process_id = 10;
	mapping(0x1000, 0x8fff, "/memfd:doublemapper (deleted)");
	mapping(0x9000, 0x9fff, "/usr/lib/libcoreclr.so");
	symbol(0x1000, 0x1fff, "void [Shop] Shop.Cpu::Hot(int32)[OptimizedTier1]");
	p.process_id = 20;
	symbol(0x1000, 0x1fff, "main");
	symbol(0, UINT64_MAX, "everything");
	symbol(0x3000, 0x2000, "backwards");
	assert_int_equal(an_methods_bad_ranges(m), 2);
	x = an_methods_find(m, 0x1500, an_methods_epoch_in(m, base_of(m, 10), 0x1500));
	assert_string_equal(x->name, "Shop.Cpu.Hot");
	assert_string_equal(x->args, "(int)");
	assert_string_equal(x->module, "Shop");
	check(m, 0x1500, base_of(m, 20), "main");
	check(m, 0x1500, base_of(m, 30), NULL);
	an_methods_describe_at(m, 0x9123, base_of(m, 10), buf, sizeof(buf));
	assert_string_equal(buf, "libcoreclr.so!0x9123");
	an_methods_describe_at(m, 0x9123, base_of(m, 20), buf, sizeof(buf));
	assert_string_equal(buf, "[unknown 0x9123]");
	mapping(0x9800, 0x98ff, "/usr/lib/libother.so"); /* of process 20 */
	assert_string_equal(an_methods_module_at(m, 0x9850, base_of(m, 20)), "libother.so");
	p.process_id = 10;
	mapping(0x9800, 0x98ff, "/usr/lib/libother.so"); /* inside of libcoreclr */
	assert_string_equal(an_methods_module_at(m, 0x97ff, base_of(m, 10)), "libcoreclr.so");
	assert_string_equal(an_methods_module_at(m, 0x9800, base_of(m, 10)), "libother.so");
	assert_string_equal(an_methods_module_at(m, 0x9900, base_of(m, 10)), "libcoreclr.so");
	play_end(&p);
}

static void more_processes_than_numbers_share_nothing(void **state)
{
	const struct an_methods *m = begin(NULL);

	(void)state;
	p.trace.format = 6;
	for (p.process_id = 1; p.process_id < 6000; p.process_id++)
		symbol(0x1000, 0x1fff, p.process_id % 2 ? "odd" : "even");
	check(m, 0x1000, base_of(m, 1), "odd");
	check(m, 0x1000, base_of(m, 2), "even");
	check(m, 0x1000, base_of(m, 5999), NULL);
	play_end(&p);
}

static void every_failing_allocation_is_survived(void **state)
{
	struct failalloc fa = { 0 };

	(void)state;
	while (failalloc_next(&fa)) {
		if (play_begin(&p, &fa.alloc, classes, NULL)) {
			const struct an_methods *m = an_engine_borrow_shared(p.engine)->methods;

			for (int i = 0; i < 40; i++) {
				load(0x1000, i % 2 ? "Second" : "First");
				an_methods_epoch(m, 0x1010);
				rundown(0x10000 + (uint64_t)i * 0x100, "Other");
			}
			if (p.status == NT_OK)
				an_methods_find(m, 0x1010, 0);
			assert_true(p.status == NT_OK || fa.failed);
			if (fa.failed && p.status == NT_OK)
				assert_int_equal(an_methods_status(m), NT_ENOMEM);
		}
		play_end(&p);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rundown_names_what_came_before_it),
		cmocka_unit_test(a_method_has_all_its_names),
		cmocka_unit_test(one_address_can_be_two_methods),
		cmocka_unit_test(overlaps_are_told_apart_by_address),
		cmocka_unit_test(taking_turns_costs_no_memory),
		cmocka_unit_test(code_that_nobody_saw_is_forgotten),
		cmocka_unit_test(too_many_methods_are_counted),
		cmocka_unit_test(code_that_leaves_says_who_was_there),
		cmocka_unit_test(a_name_may_come_later),
		cmocka_unit_test(senseless_ranges_are_counted),
		cmocka_unit_test(cut_names_are_taken_as_they_are),
		cmocka_unit_test(the_rundown_is_noticed),
		cmocka_unit_test(processes_have_addresses_of_their_own),
		cmocka_unit_test(more_processes_than_numbers_share_nothing),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
