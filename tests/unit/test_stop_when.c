/* SPDX-License-Identifier: MIT */
/* The event that ends a recording: by provider, name and payload, at once. */
#include "src/collect/stop_when.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nettrace/nettrace.h"
#include "tests/support/fixture.h"

static uint8_t *rich, *cpu;
static size_t rich_bytes, cpu_bytes;

static int setup(void **state)
{
	(void)state;
	rich = fixture_read("rich-net10.nettrace.zst", &rich_bytes);
	cpu = fixture_read("cpu-net10.nettrace.zst", &cpu_bytes);
	return rich && cpu ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free(rich);
	free(cpu);
	return 0;
}

/* Bytes pushed when the event was found, in chunks of that size; 0: never. */
static size_t found_at(const uint8_t *bytes, size_t size, const struct stop_when_config *config,
		       size_t chunk)
{
	struct stop_when *w = stop_when_new(config);
	size_t at = 0;
	bool found = false;

	assert_non_null(w);
	while (at < size && !found) {
		size_t n = size - at < chunk ? size - at : chunk;

		found = stop_when_push(w, bytes + at, n);
		at += n;
	}
	if (found)
		assert_true(stop_when_push(w, bytes, 1)); /* ever after */
	assert_null(stop_when_free(w));
	return found ? at : 0;
}

static bool finds(const char *provider, const char *event, const char *payload)
{
	const struct stop_when_config config = { provider, event, payload };

	return found_at(rich, rich_bytes, &config, 65536) > 0;
}

static void by_provider_and_name(void **state)
{
	(void)state;
	assert_true(finds("Warehouse-Rich", NULL, NULL));
	assert_true(finds("warehouse-rich", "PickStop", NULL));
	assert_true(finds("Warehouse-Rich", "Pick/Stop", NULL)); /* as other tools spell it */
	assert_false(finds("Warehouse", NULL, NULL)); /* the whole name */
	assert_false(finds("Warehouse-Rich", "PickNothing", NULL));
	assert_false(finds("No-Such", "PickStop", NULL));
}

static void by_payload(void **state)
{
	(void)state;
	assert_true(finds("Warehouse-Rich", "PickStop", "order:21"));
	assert_true(finds("Warehouse-Rich", "PickStop", "order:0x15"));
	assert_false(finds("Warehouse-Rich", "PickStop", "order:210000"));
	assert_false(finds("Warehouse-Rich", "PickStop", "order:2x"));
	assert_false(finds("Warehouse-Rich", "PickStop", "order:"));
	assert_false(finds("Warehouse-Rich", "PickStop", "nothing:21"));
	assert_true(finds("Microsoft-Windows-DotNETRuntimeRundown", "MethodDCEndVerbose",
			  "MethodNamespace:System.String,MethodName:Concat"));
	/* All of them must match. */
	assert_false(finds("Microsoft-Windows-DotNETRuntimeRundown", "MethodDCEndVerbose",
			   "MethodNamespace:System.String,MethodName:NoSuch"));
	assert_false(finds("Microsoft-Windows-DotNETRuntimeRundown", "MethodDCEndVerbose",
			   "MethodName:Conca"));
}

static void what_is_a_payload_filter(void **state)
{
	(void)state;
	assert_true(stop_when_is_payload("a:1"));
	assert_true(stop_when_is_payload("a:1,b:x:y,c:"));
	assert_false(stop_when_is_payload(""));
	assert_false(stop_when_is_payload("a"));
	assert_false(stop_when_is_payload("a:1,b"));
	assert_false(stop_when_is_payload(":1"));
}

/* Where the first event of that name stands, and where its block ends at the latest. */
struct first {
	const char *name;
	uint64_t offset;
};

static enum nt_status look(void *ctx, const struct nt_event *ev)
{
	struct first *f = ctx;

	if (strcmp(ev->def->name, f->name) != 0)
		return NT_OK;
	f->offset = ev->offset;
	return NT_STOPPED;
}

/* Not when the next event comes: when its own block is there. */
static void at_once(void **state)
{
	static const struct nt_sink sink = { .event = look };
	static const size_t chunks[] = { 100, 4096 };
	const struct stop_when_config config = { "Warehouse-Rich", "Blob", NULL };
	struct first f = { .name = "Blob" };
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, NT_SKIP_STACKS, &sink, &f);

	(void)state;
	assert_non_null(d);
	assert_int_equal(nt_decoder_push(d, rich, rich_bytes), NT_STOPPED);
	nt_decoder_free(d);
	for (size_t i = 0; i < 2; i++) {
		size_t at = found_at(rich, rich_bytes, &config, chunks[i]);

		assert_true(at > f.offset);
		assert_true(at < f.offset + 110 * 1024 + chunks[i]); /* blocks are that large */
	}
}

static void garbage_has_no_events(void **state)
{
	static const char garbage[] = "Nettrace, but not really, and then something else";
	const struct stop_when_config config = { "Warehouse-Rich", NULL, NULL };

	(void)state;
	assert_int_equal(found_at((const uint8_t *)garbage, sizeof(garbage), &config, 5), 0);
	assert_int_equal(found_at(cpu, cpu_bytes, &config, 5000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_provider_and_name),	    cmocka_unit_test(by_payload),
		cmocka_unit_test(what_is_a_payload_filter), cmocka_unit_test(at_once),
		cmocka_unit_test(garbage_has_no_events),
	};

	return cmocka_run_group_tests_name("stop_when", tests, setup, teardown);
}
