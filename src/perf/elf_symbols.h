/* SPDX-License-Identifier: MIT */
#ifndef SRC_PERF_ELF_SYMBOLS_H
#define SRC_PERF_ELF_SYMBOLS_H

/*
 * Names of functions in ELF files and their separate debug files, by libelf.  The files belong to
 * whoever is traced and are taken for hostile: they are read, not mapped, so that one that shrinks
 * is an error and no signal, and nothing is larger than the limits here.
 *
 * Not read: symbols packed inside the file (.gnu_debugdata, which is xz), and names of C++ stay as
 * the linker has them.
 *
 * Built without libelf, nothing has a name.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/perf/perf_files.h"

struct elf_symbols;

/* "0.188", or NULL: built without. */
const char *elf_symbols_version(void);

/*
 * A file that a process has mapped; where its debug file is looked for: beside it, and under
 * /usr/lib/debug, in the process's root and in ours.  NULL: it has no names, or is another file
 * than the one that was mapped.
 */
struct elf_symbols *elf_symbols_open(const struct perf_files *files,
				     const struct perf_file_map *map);
struct elf_symbols *elf_symbols_close(struct elf_symbols *s); /* returns NULL */

struct elf_symbol {
	const char *name; /* lives as long as the symbols */
	uint64_t before; /* bytes of it before the place, */
	uint64_t behind; /* and behind it */
};

/* The function at that byte of the file. */
bool elf_symbols_find(const struct elf_symbols *s, uint64_t offset, struct elf_symbol *ret);

#endif
