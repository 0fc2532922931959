/* SPDX-License-Identifier: MIT */
/* Names of native functions: of this very program, and of files that are no better than noise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/perf/elf_symbols.h"
#include "src/perf/kernel_symbols.h"
#include "src/perf/perf_names.h"

int a_function_with_a_name(int n);

__attribute__((noinline)) int a_function_with_a_name(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

static uint64_t address_of_it(void)
{
	int (*f)(int) = a_function_with_a_name;
	uint64_t address = 0;

	memcpy(&address, &f, sizeof(f));
	return address;
}

static const struct nt_perf_symbol *find(const struct nt_perf *p, const char *name)
{
	for (size_t i = 0; i < p->symbol_count; i++)
		if (strcmp(p->symbols[i].name, name) == 0)
			return &p->symbols[i];
	return NULL;
}

/* --- the kernel's --- */

#define KERNEL UINT64_C(0xffffffff81000000)

static const char kallsyms[] = "ffffffff81003000 t later\n"
			       "ffffffff81000000 T first\n"
			       "ffffffff81000000 T alias\n"
			       "ffffffff81000800 D some_data\n"
			       "0000000000001000 T a_function_of_nobody\n"
			       "ffffffff81001000 t second\n"
			       "nonsense\n"
			       "ffffffff81002000 x what\n"
			       "ffffffff81002000 T\n"
			       "ffffffffc0400000 t in_module\t[ext4]";

static struct nt_perf *kernel_names(struct nt_perf *p, const char *text, const uint64_t *addresses,
				    size_t count, bool *ret_hidden)
{
	char path[] = "/tmp/drd-kallsyms-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	assert_int_equal(nt_perf_init(p, NULL), NT_OK);
	assert_int_equal(kernel_symbols_add(p, path, addresses, count, ret_hidden), NT_OK);
	unlink(path);
	return p;
}

static void functions_of_the_kernel(void **state)
{
	static const uint64_t at[] = {
		KERNEL - 1,
		KERNEL,
		KERNEL + 0xfff,
		KERNEL + 0x1000,
		KERNEL + 0x2500,
		KERNEL + 0x3000,
		KERNEL + 0x3000 + (1 << 20) - 1,
		KERNEL + 0x3000 + (1 << 20),
		UINT64_C(0xffffffffc0400123),
	};
	static const struct {
		const char *name;
		uint64_t start, last;
	} want[] = {
		{ "[kernel] first", KERNEL, KERNEL + 0xfff },
		{ "[kernel] second", KERNEL + 0x1000, KERNEL + 0x2fff },
		{ "[kernel] later", KERNEL + 0x3000, UINT64_C(0xffffffffc03fffff) },
		{ "[kernel] in_module", UINT64_C(0xffffffffc0400000),
		  UINT64_C(0xffffffffc0400123) },
	};
	struct nt_perf p;
	bool hidden;

	(void)state;
	kernel_names(&p, kallsyms, at, sizeof(at) / sizeof(at[0]), &hidden);
	assert_false(hidden);
	assert_int_equal(p.symbol_count, sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		const struct nt_perf_symbol *s = find(&p, want[i].name);

		assert_non_null(s);
		assert_string_equal(s->file, "[kernel]");
		assert_true(s->start == want[i].start && s->last == want[i].last);
	}
	/* Each place lies in a mapping, small enough to be one of code. */
	assert_int_equal(p.mapping_count, 2);
	assert_true(p.mappings[0].start == at[0] && p.mappings[0].last == at[7]);
	assert_true(p.mappings[1].start == at[8] && p.mappings[1].last == at[8]);
	nt_perf_done(&p);
}

static void names_of_the_kernel_may_be_secret(void **state)
{
	static const uint64_t at[] = { KERNEL };
	static const char *const texts[] = {
		"0000000000000000 T first\n0000000000000000 t second\n",
		"",
	};
	struct nt_perf p;
	bool hidden;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		kernel_names(&p, texts[i], at, 1, &hidden);
		assert_true(hidden);
		assert_int_equal(p.symbol_count, 0);
		assert_int_equal(p.mapping_count, 1);
		nt_perf_done(&p);
	}
	assert_int_equal(nt_perf_init(&p, NULL), NT_OK);
	assert_int_equal(kernel_symbols_add(&p, "/nowhere", at, 1, &hidden), NT_OK);
	assert_true(hidden);
	assert_int_equal(kernel_symbols_add(&p, "/nowhere", at, 0, &hidden), NT_OK);
	assert_false(hidden); /* none is needed */
	nt_perf_done(&p);
}

static void functions_of_this_program(void **state)
{
	const uint64_t at = address_of_it(), frames[] = { at, at + 1, 0x10 };
	const struct nt_perf_symbol *s;
	struct perf_files files;
	struct nt_perf p;
	bool hidden;

	(void)state;
	perf_files_init(&files, (int32_t)getpid());
	assert_int_equal(nt_perf_init(&p, NULL), NT_OK);
	assert_int_equal(nt_perf_sample(&p, 0, 1, frames, 3), NT_OK);
	assert_int_equal(perf_names_add(&p, &files, &hidden), NT_OK);
	assert_int_equal(p.mapping_count, 1); /* of all that are there the one that was touched */
	assert_true(p.mappings[0].start <= at && at <= p.mappings[0].last);
	assert_non_null(strstr(p.mappings[0].file, "test_perf_names"));
	s = find(&p, "a_function_with_a_name");
	if (elf_symbols_version()) {
		assert_non_null(s);
		assert_int_equal(s->start, at);
		assert_in_range(s->last - s->start, 1, 4096);
	} else {
		assert_null(s);
	}
	nt_perf_done(&p);
	perf_files_done(&files);
}

/* --- hostile files --- */

enum { NAME_ROOM = 4096 };

/* With so much room behind it. */
static uint8_t *read_self(size_t *ret_len)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	struct stat st;
	uint8_t *bytes;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	*ret_len = (size_t)st.st_size;
	bytes = calloc(1, *ret_len + NAME_ROOM);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, *ret_len), (ssize_t)*ret_len);
	close(fd);
	return bytes;
}

static void try_file(const char *path, const uint8_t *bytes, size_t len)
{
	char file[] = "/victim";
	const struct perf_file_map map = { .start = 0, .last = UINT64_MAX, .file = file };
	struct perf_files files = { .root = -1 };
	struct elf_symbols *s;
	char full[128];
	int fd;

	files.root = open(path, O_PATH | O_DIRECTORY);
	snprintf(full, sizeof(full), "%s/victim", path);
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	close(fd);
	s = elf_symbols_open(&files, &map);
	for (uint64_t at = 0; s && at < len; at += len / 50 + 1) {
		struct elf_symbol found;

		if (elf_symbols_find(s, at, &found))
			assert_true(strlen(found.name) > 0);
	}
	elf_symbols_close(s);
	unlink(full);
	perf_files_done(&files);
}

static void cut_and_changed_files(void **state)
{
	char dir[] = "/tmp/drd-elf-XXXXXX";
	size_t len;
	uint8_t *bytes = read_self(&len), *copy = malloc(len);
	uint32_t chance = 1;

	(void)state;
	assert_non_null(copy);
	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < 64; i++) /* the header, cut */
		try_file(dir, bytes, i);
	for (size_t i = 1; i < 20; i++)
		try_file(dir, bytes, len / 20 * i);
	for (size_t round = 0; round < 120; round++) {
		size_t tables = len > 8192 ? len - 8192 : 0; /* section headers, mostly */

		memcpy(copy, bytes, len);
		for (size_t i = 0; i < 4; i++) {
			chance = chance * 1664525 + 1013904223;
			copy[round % 2 ? chance % 64 : tables + chance % (len - tables)] =
				(uint8_t)(chance >> 24);
		}
		try_file(dir, copy, len);
	}
	free(copy);
	free(bytes);
	rmdir(dir);
}

/* What this program is mapped from, of the place where that function is. */
static struct perf_file_map map_of_it(const struct perf_files *files)
{
	struct perf_file_map map = { 0 };

	for (size_t i = 0; i < files->count; i++)
		if (files->maps[i].start <= address_of_it() &&
		    address_of_it() <= files->maps[i].last)
			map = files->maps[i];
	assert_non_null(map.file);
	return map;
}

static void another_build_has_other_names(void **state)
{
	struct perf_files files;
	struct elf_symbols *s;
	struct perf_file_map map;

	(void)state;
	perf_files_init(&files, (int32_t)getpid());
	map = map_of_it(&files);
	s = elf_symbols_open(&files, &map);
	assert_int_equal(s != NULL, elf_symbols_version() != NULL);
	elf_symbols_close(s);
	map.build_id_bytes = 20;
	memset(map.build_id, 0x5a, 20);
	assert_null(elf_symbols_open(&files, &map));
	perf_files_done(&files);
}

/* --- names that are in a file of their own --- */

static Elf64_Shdr *section_of(uint8_t *bytes, const char *name)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)(void *)bytes;
	Elf64_Shdr *all = (Elf64_Shdr *)(void *)(bytes + header->e_shoff);
	const char *names = (const char *)bytes + all[header->e_shstrndx].sh_offset;

	for (unsigned i = 1; i < header->e_shnum; i++)
		if (strcmp(names + all[i].sh_name, name) == 0)
			return &all[i];
	fail_msg("there is no section %s", name);
	return NULL;
}

/*
 * Takes away the symbols; link: the name of the file that has them, NULL: none.  The names of
 * sections move to the end, where there is NAME_ROOM.  Returns the new length.
 */
static size_t strip(uint8_t *bytes, size_t len, const char *link)
{
	static const char name[] = ".gnu_debuglink";
	Elf64_Ehdr *header = (Elf64_Ehdr *)(void *)bytes;
	Elf64_Shdr *all = (Elf64_Shdr *)(void *)(bytes + header->e_shoff);
	Elf64_Shdr *names = &all[header->e_shstrndx], *comment = section_of(bytes, ".comment");

	section_of(bytes, ".symtab")->sh_type = SHT_PROGBITS;
	if (!link)
		return len;
	assert_true(names->sh_size + sizeof(name) <= NAME_ROOM);
	assert_true(strlen(link) < comment->sh_size);
	memcpy(bytes + comment->sh_offset, link, strlen(link) + 1);
	memcpy(bytes + len, bytes + names->sh_offset, names->sh_size);
	memcpy(bytes + len + names->sh_size, name, sizeof(name));
	comment->sh_name = (Elf64_Word)names->sh_size;
	names->sh_offset = len;
	names->sh_size += sizeof(name);
	return len + names->sh_size;
}

static void write_under(const char *root, const char *path, const uint8_t *bytes, size_t len)
{
	char full[512];
	int fd;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		mkdir(full, 0700);
	}
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	close(fd);
}

/* With the folders above it that are empty then. */
static void remove_under(const char *root, const char *path)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", root, path);
	unlink(full);
	for (char *p; (p = strrchr(full, '/')) && (size_t)(p - full) > strlen(root);) {
		*p = '\0';
		if (rmdir(full) != 0)
			return;
	}
}

/* In the root of the process, which is not ours: where its debug files are. */
static bool finds_names(const char *debug, const char *link, bool same_build)
{
	char dir[] = "/tmp/drd-debug-XXXXXX", file[] = "/app/lib.so";
	struct perf_files self, files = { .root = -1 };
	struct perf_file_map map;
	struct elf_symbol found = { 0 };
	struct elf_symbols *s;
	size_t len;
	uint8_t *bytes = read_self(&len);
	Elf64_Shdr *note = section_of(bytes, ".note.gnu.build-id");
	bool yes;

	assert_non_null(mkdtemp(dir));
	perf_files_init(&self, (int32_t)getpid());
	map = map_of_it(&self);
	if (!same_build)
		bytes[note->sh_offset + note->sh_size - 1] ^= 1;
	write_under(dir, debug, bytes, len);
	if (!same_build)
		bytes[note->sh_offset + note->sh_size - 1] ^= 1;
	len = strip(bytes, len, link);
	write_under(dir, file, bytes, len);
	map.file = file;
	files.root = open(dir, O_PATH | O_DIRECTORY);
	s = elf_symbols_open(&files, &map);
	yes = s && elf_symbols_find(s, address_of_it() - map.start + map.offset, &found) &&
	      strcmp(found.name, "a_function_with_a_name") == 0;
	elf_symbols_close(s);
	perf_files_done(&files);
	perf_files_done(&self);
	remove_under(dir, debug);
	remove_under(dir, file);
	assert_int_equal(rmdir(dir), 0);
	free(bytes);
	return yes;
}

static void names_in_a_file_of_their_own(void **state)
{
	char by_id[128] = "/usr/lib/debug/.build-id/", *p = by_id + strlen(by_id);
	size_t len;
	uint8_t *bytes = read_self(&len);
	Elf64_Shdr *note = section_of(bytes, ".note.gnu.build-id");
	const uint8_t *id = bytes + note->sh_offset + 16;

	(void)state;
	p += snprintf(p, 8, "%02x/", id[0]);
	for (size_t i = 1; i < note->sh_size - 16; i++)
		p += snprintf(p, 4, "%02x", id[i]);
	snprintf(p, 8, ".debug");
	free(bytes);
	if (!elf_symbols_version())
		return;
	assert_true(finds_names(by_id, NULL, true));
	assert_false(finds_names(by_id, NULL, false)); /* of another build */
	assert_true(finds_names("/app/lib.debug", "lib.debug", true));
	assert_true(finds_names("/app/.debug/lib.debug", "lib.debug", true));
	assert_true(finds_names("/usr/lib/debug/app/lib.debug", "lib.debug", true));
	assert_false(finds_names("/app/lib.debug", "lib.debug", false));
	assert_false(finds_names("/app/lib.debug", NULL, true)); /* nothing says so */
	assert_false(finds_names("/app/lib.debug", "../app/lib.debug", true)); /* no path */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_this_program),
		cmocka_unit_test(functions_of_the_kernel),
		cmocka_unit_test(names_of_the_kernel_may_be_secret),
		cmocka_unit_test(cut_and_changed_files),
		cmocka_unit_test(another_build_has_other_names),
		cmocka_unit_test(names_in_a_file_of_their_own),
	};

	return cmocka_run_group_tests_name("perf_names", tests, NULL, NULL);
}
