/* SPDX-License-Identifier: MIT */

/* elf_symbols.h where there is no libelf. */

#include "src/perf/elf_symbols.h"

const char *elf_symbols_version(void)
{
	return NULL;
}

struct elf_symbols *elf_symbols_open(const struct perf_files *files,
				     const struct perf_file_map *map)
{
	(void)files;
	(void)map;
	return NULL;
}

struct elf_symbols *elf_symbols_close(struct elf_symbols *s)
{
	(void)s;
	return NULL;
}

bool elf_symbols_find(const struct elf_symbols *s, uint64_t offset, struct elf_symbol *ret)
{
	(void)s;
	(void)offset;
	(void)ret;
	return false;
}
