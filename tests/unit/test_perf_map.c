/* SPDX-License-Identifier: MIT */
/* Perf maps and jitdump files: lines, records, which of several names holds, and whole files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/perf/perf_jit.h"
#include "src/perf/perf_map.h"

static bool line(const char *text, struct perf_code *c)
{
	return perf_map_line(text, strlen(text), c);
}

static void lines(void **state)
{
	struct perf_code c;

	(void)state;
	assert_true(line("0x7f05bc800000 1a4 void [Shop] Shop.Cpu::Hot()[OptimizedTier1]", &c));
	assert_int_equal(c.start, 0x7f05bc800000);
	assert_int_equal(c.last, 0x7f05bc8001a3);
	assert_int_equal(c.time_ns, 0);
	assert_memory_equal(c.name, "void [Shop]", 11);
	assert_int_equal(c.name_bytes, strlen("void [Shop] Shop.Cpu::Hot()[OptimizedTier1]"));
	assert_true(line("7F05BC800000 0x1A4 x", &c));
	assert_int_equal(c.last, 0x7f05bc8001a3);
}

static void lines_of_no_sense(void **state)
{
	static const char *const bad[] = { "",
					   "0x",
					   "0x10",
					   "0x10 ",
					   "0x10 4",
					   "0x10 4 ",
					   "x 4 name",
					   "0x10 0 name",
					   "0x10 -4 name",
					   "ffffffffffffffff 2 name",
					   "10000000000000000 2 name",
					   "0x10 ffffffffffffffff name",
					   " 10 4 name" };
	struct perf_code c;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (line(bad[i], &c))
			fail_msg("'%s' makes sense", bad[i]);
}

/* --- records --- */

static size_t put_code(uint8_t *to, uint64_t time, uint64_t start, uint64_t bytes, const char *name,
		       size_t code_bytes)
{
	size_t n = PERF_DUMP_CODE_BYTES + strlen(name) + 1;
	const uint32_t length = (uint32_t)(n + code_bytes);

	memset(to, 0, n + code_bytes);
	memcpy(to + 4, &length, 4);
	memcpy(to + 8, &time, 8);
	memcpy(to + 24, &start, 8);
	memcpy(to + 32, &start, 8);
	memcpy(to + 40, &bytes, 8);
	memcpy(to + PERF_DUMP_CODE_BYTES, name, strlen(name));
	return length;
}

static void put_header(uint8_t to[PERF_DUMP_HEADER_BYTES])
{
	const uint32_t words[] = { 0x4a695444, 1, PERF_DUMP_HEADER_BYTES };

	memset(to, 0, PERF_DUMP_HEADER_BYTES);
	memcpy(to, words, sizeof(words));
}

static void records(void **state)
{
	uint8_t b[256];
	struct perf_code c;
	size_t n = put_code(b, 77, 0x1000, 0x20, "Hot", 0x20);

	(void)state;
	assert_int_equal(perf_dump_length(b), n);
	assert_true(perf_dump_code(b, n, &c));
	assert_int_equal(c.start, 0x1000);
	assert_int_equal(c.last, 0x101f);
	assert_int_equal(c.time_ns, 77);
	assert_int_equal(c.name_bytes, 3);
	assert_memory_equal(c.name, "Hot", 3);
	for (size_t cut = 0; cut < PERF_DUMP_CODE_BYTES + 4; cut++) {
		uint8_t *copy = malloc(cut + !cut);

		assert_non_null(copy);
		memcpy(copy, b, cut);
		assert_false(perf_dump_code(copy, cut, &c));
		free(copy);
	}
	b[0] = 2; /* not of code */
	assert_false(perf_dump_code(b, n, &c));
	n = put_code(b, 77, UINT64_MAX, 2, "Hot", 0);
	assert_false(perf_dump_code(b, n, &c));
	n = put_code(b, 77, 0x1000, 2, "", 0);
	assert_false(perf_dump_code(b, n, &c));
	b[4] = 15;
	assert_int_equal(perf_dump_length(b), 0);
	put_header(b);
	assert_int_equal(perf_dump_header(b), PERF_DUMP_HEADER_BYTES);
	b[8] = 39;
	assert_int_equal(perf_dump_header(b), 0);
	put_header(b);
	b[0] = 'j';
	assert_int_equal(perf_dump_header(b), 0);
}

static void the_newest_code_of_the_time_holds(void **state)
{
	const struct perf_code always = { .time_ns = 0 }, old = { .time_ns = 1000000 },
			       new = { .time_ns = 2000000 }, newest = { .time_ns = 9000000 };

	(void)state;
	assert_true(perf_code_better(&old, &new, 5000000));
	assert_false(perf_code_better(&new, &old, 5000000));
	assert_false(perf_code_better(&new, &newest, 5000000));
	assert_true(perf_code_better(&newest, &new, 5000000));
	assert_true(perf_code_better(&always, &always, 5000000)); /* the later line */
	/* A sample may be stamped before the record of its code: 200 us are within reason. */
	assert_true(perf_code_better(&old, &new, 2000000 - 200000));
	assert_false(perf_code_better(&old, &new, 2000000 - 200001));
	assert_true(perf_code_better(&newest, &new, 0)); /* all too late: the first */
	assert_true(perf_code_better(&old, &new, UINT64_MAX));
}

/* --- files --- */

static char dir[] = "/tmp/drd-jit-XXXXXX";
static struct perf_files files;

static void write_file(const char *name, const void *bytes, size_t n)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/tmp/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), (ssize_t)n);
	close(fd);
}

static int begin(void **state)
{
	char path[128];

	(void)state;
	memcpy(dir, "/tmp/drd-jit-XXXXXX", sizeof(dir));
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/tmp", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	files = (struct perf_files){ .root = open(dir, O_PATH | O_DIRECTORY), .inner_pid = 7 };
	return 0;
}

static int end(void **state)
{
	static const char *const names[] = { "tmp/perf-7.map", "tmp/jit-7.dump", "tmp", "" };
	char path[128];

	(void)state;
	perf_files_done(&files);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		remove(path);
	}
	return 0;
}

/* The name of an address that was seen last at that time, or "". */
static const char *name_of(uint64_t address, uint64_t time_ns)
{
	static char name[64];
	struct perf_jit_place places[] = { { .address = address, .last_ns = time_ns },
					   { .address = 5 } };
	struct nt_perf p;

	assert_int_equal(nt_perf_init(&p, NULL), NT_OK);
	assert_int_equal(perf_jit_add(&p, &files, places, 2), NT_OK);
	snprintf(name, sizeof(name), "%s", p.symbol_count ? p.symbols[0].name : "");
	nt_perf_done(&p);
	return name;
}

static void a_perf_map(void **state)
{
	static char text[3 * 4096];
	size_t n;

	(void)state;
	/* A later line replaces an earlier one; nonsense and long lines are passed over. */
	n = (size_t)snprintf(text, sizeof(text), "1000 10 first\n\nnonsense\n2000 10 ");
	memset(text + n, 'x', 2 * 4096);
	n += 2 * 4096;
	n += (size_t)snprintf(text + n, sizeof(text) - n, "\n1008 10 second\n3000 10 no end");
	write_file("perf-7.map", text, n);
	assert_string_equal(name_of(0x1007, 0), "first");
	assert_string_equal(name_of(0x1008, 0), "second");
	assert_string_equal(name_of(0x1017, 0), "second");
	assert_string_equal(name_of(0x1018, 0), "");
	assert_int_equal(strlen(name_of(0x2000, 0)), 63);
	assert_string_equal(name_of(0x3000, 0), "no end");
	files.started = INT64_MAX; /* the file is from a process before this one */
	assert_string_equal(name_of(0x1007, 0), "");
}

static void a_jitdump(void **state)
{
	uint8_t b[1024];
	size_t n = PERF_DUMP_HEADER_BYTES, first;

	(void)state;
	put_header(b);
	n += put_code(b + n, 1000000, 0x1000, 0x10, "old", 16);
	first = n - 1;
	n += put_code(b + n, 50000000, 0x1000, 0x10, "new", 0); /* its code is left out */
	n += put_code(b + n, 60000000, 0x4000, 0x10, "end", 16);
	write_file("jit-7.dump", b, n);
	assert_string_equal(name_of(0x100f, 3000000), "old");
	assert_string_equal(name_of(0x100f, 50000000 - 85000), "new");
	assert_string_equal(name_of(0x1010, 3000000), "");
	assert_string_equal(name_of(0x4000, 55000000), "end"); /* late, but not too late */
	assert_string_equal(name_of(0x4000, 40000000), "");
	for (size_t cut = 0; cut < n; cut++) { /* the process may just be writing */
		write_file("jit-7.dump", b, cut);
		assert_string_equal(name_of(0x4000, 55000000), "");
		assert_string_equal(name_of(0x100f, 3000000), cut > first ? "old" : "");
	}
	write_file("jit-7.dump", b, n);
	b[0] = 0;
	write_file("jit-7.dump", b, n);
	assert_string_equal(name_of(0x100f, 3000000), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(lines_of_no_sense),
		cmocka_unit_test(records),
		cmocka_unit_test(the_newest_code_of_the_time_holds),
		cmocka_unit_test_setup_teardown(a_perf_map, begin, end),
		cmocka_unit_test_setup_teardown(a_jitdump, begin, end),
	};

	return cmocka_run_group_tests_name("perf_map", tests, NULL, NULL);
}
