/* SPDX-License-Identifier: MIT */
#include "src/perf/elf_symbols.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/version.h>

enum {
	MAX_FILE_BYTES = 2000 * 1024 * 1024,
	MAX_TABLE_BYTES = 96 << 20, /* of symbols, 4 million of them; of their names */
	MAX_SECTIONS = 64 * 1024,
	MAX_SEGMENTS = 256,
	MAX_NOTE_BYTES = 64 << 10,
	MAX_LINK_BYTES = 4096,
	MAX_UNSIZED_BYTES = 64 << 10, /* a function without a size reaches no farther */
	MAX_PATH = 4096,
	NOTE_BUILD_ID = 3,
};

struct function {
	uint64_t start, bytes;
	uint32_t name; /* in the table of names */
	bool global;
};

struct file {
	int fd;
	Elf *elf;
	uint8_t build_id[PERF_BUILD_ID_BYTES];
	size_t build_id_bytes; /* 0: it has none */
};

struct segment {
	uint64_t offset, bytes, address;
};

struct elf_symbols {
	struct file file, debug;
	struct segment segments[MAX_SEGMENTS];
	size_t segment_count;
	Elf *names; /* the file that the functions are from, */
	size_t name_section; /* and where in it their names are */
	struct function *functions;
	size_t count;
};

const char *elf_symbols_version(void)
{
	static char text[16];

	if (!*text)
		snprintf(text, sizeof(text), "%d.%d", _ELFUTILS_VERSION / 1000,
			 _ELFUTILS_VERSION % 1000);
	return text;
}

/* --- a file --- */

/* The content of a section of a kind and a name (NULL: any), or NULL; the first of them. */
static Elf_Data *find_section(Elf *elf, uint32_t type, const char *name, size_t max, GElf_Shdr *ret)
{
	size_t count, names;

	if (elf_getshdrnum(elf, &count) != 0 || count > MAX_SECTIONS ||
	    elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	for (size_t i = 1; i < count; i++) {
		Elf_Scn *section = elf_getscn(elf, i);
		const char *n;

		if (!section || !gelf_getshdr(section, ret) || ret->sh_type != type)
			continue;
		n = name ? elf_strptr(elf, names, ret->sh_name) : NULL;
		if (name && (!n || strcmp(n, name) != 0))
			continue;
		return ret->sh_size <= max ? elf_getdata(section, NULL) : NULL;
	}
	return NULL;
}

static void read_build_id(struct file *f)
{
	GElf_Shdr header;
	Elf_Data *d = find_section(f->elf, SHT_NOTE, ".note.gnu.build-id", MAX_NOTE_BYTES, &header);
	size_t at = 0, name, desc;
	GElf_Nhdr note;

	while (d && (at = gelf_getnote(d, at, &note, &name, &desc)) > 0) {
		if (note.n_type != NOTE_BUILD_ID || note.n_descsz == 0 ||
		    note.n_descsz > sizeof(f->build_id) || desc > d->d_size ||
		    note.n_descsz > d->d_size - desc)
			continue;
		f->build_id_bytes = note.n_descsz;
		memcpy(f->build_id, (const char *)d->d_buf + desc, note.n_descsz);
		return;
	}
}

static void close_file(struct file *f)
{
	if (f->elf)
		elf_end(f->elf);
	if (f->fd >= 0)
		close(f->fd);
	*f = (struct file){ .fd = -1 };
}

/* Takes the descriptor, or a negative number. */
static bool open_file(struct file *f, int take_fd)
{
	struct stat st;

	*f = (struct file){ .fd = take_fd };
	if (take_fd >= 0 && fstat(take_fd, &st) == 0 && st.st_size <= MAX_FILE_BYTES)
		f->elf = elf_begin(take_fd, ELF_C_READ, NULL);
	if (!f->elf || elf_kind(f->elf) != ELF_K_ELF) {
		close_file(f);
		return false;
	}
	read_build_id(f);
	return true;
}

static bool same_build(const struct file *f, const uint8_t *id, size_t bytes)
{
	return f->build_id_bytes == bytes && memcmp(f->build_id, id, bytes) == 0;
}

/* --- functions --- */

static int by_start(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	/* The best name of a place comes last. */
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return (x->global > y->global) - (x->global < y->global);
}

static bool is_function(const GElf_Sym *sym)
{
	unsigned type = GELF_ST_TYPE(sym->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && sym->st_shndx != SHN_UNDEF &&
	       sym->st_value != 0;
}

/* From one table of symbols; false when it has no function. */
static bool read_functions(struct elf_symbols *s, Elf *elf, uint32_t type)
{
	GElf_Shdr header, names;
	Elf_Data *d = find_section(elf, type, NULL, MAX_TABLE_BYTES, &header);
	Elf_Scn *name_section = d ? elf_getscn(elf, header.sh_link) : NULL;
	size_t n, kept = 0;
	GElf_Sym sym;

	if (!name_section || !header.sh_entsize || !gelf_getshdr(name_section, &names) ||
	    names.sh_type != SHT_STRTAB || names.sh_size > MAX_TABLE_BYTES)
		return false;
	n = d->d_size / header.sh_entsize;
	for (size_t i = 0; i < n && i <= INT32_MAX; i++)
		kept += gelf_getsym(d, (int)i, &sym) && is_function(&sym);
	s->functions = kept ? calloc(kept, sizeof(*s->functions)) : NULL;
	if (!s->functions)
		return false;
	for (size_t i = 0; i < n && s->count < kept; i++) {
		if (!gelf_getsym(d, (int)i, &sym) || !is_function(&sym))
			continue;
		s->functions[s->count++] = (struct function){
			.start = sym.st_value,
			.bytes = sym.st_size,
			.name = sym.st_name,
			.global = GELF_ST_BIND(sym.st_info) != STB_LOCAL,
		};
	}
	s->names = elf;
	s->name_section = header.sh_link;
	qsort(s->functions, s->count, sizeof(*s->functions), by_start);
	return true;
}

static void read_segments(struct elf_symbols *s)
{
	size_t count;

	if (elf_getphdrnum(s->file.elf, &count) != 0 || count > MAX_SEGMENTS)
		return;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(s->file.elf, (int)i, &p) || p.p_type != PT_LOAD)
			continue;
		s->segments[s->segment_count++] =
			(struct segment){ p.p_offset, p.p_filesz, p.p_vaddr };
	}
}

/* --- separate debug files --- */

/* A debug file is only good when it is of the same build. */
static bool try_debug(struct elf_symbols *s, const struct perf_files *root, const char *path)
{
	if (!open_file(&s->debug, perf_files_open(root, path)))
		return false;
	if (same_build(&s->debug, s->file.build_id, s->file.build_id_bytes) &&
	    read_functions(s, s->debug.elf, SHT_SYMTAB))
		return true;
	close_file(&s->debug);
	return false;
}

/* "/usr/lib/debug/.build-id/ab/cdef….debug" */
static bool try_by_build_id(struct elf_symbols *s, const struct perf_files *root)
{
	char path[128];
	int n;

	if (s->file.build_id_bytes < 2)
		return false;
	n = snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%02x/", s->file.build_id[0]);
	for (size_t i = 1; i < s->file.build_id_bytes; i++)
		n += snprintf(path + n, sizeof(path) - (size_t)n, "%02x", s->file.build_id[i]);
	snprintf(path + n, sizeof(path) - (size_t)n, ".debug");
	return try_debug(s, root, path);
}

static bool try_by_link(struct elf_symbols *s, const struct perf_files *root, const char *file,
			const char *link)
{
	static const struct {
		const char *above, *below;
	} places[] = { { "", "" }, { "", "/.debug" }, { "/usr/lib/debug", "" } };
	const char *slash = strrchr(file, '/');
	int dir = slash ? (int)(slash - file) : 0;
	char path[MAX_PATH];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int n = snprintf(path, sizeof(path), "%s%.*s%s/%s", places[i].above, dir, file,
				 places[i].below, link);

		if (n > 0 && (size_t)n < sizeof(path) && try_debug(s, root, path))
			return true;
	}
	return false;
}

static bool find_debug(struct elf_symbols *s, const struct perf_files *files, const char *file)
{
	struct perf_files ours = { .root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) };
	const struct perf_files *const roots[] = { files, &ours };
	GElf_Shdr header;
	Elf_Data *d =
		find_section(s->file.elf, SHT_PROGBITS, ".gnu_debuglink", MAX_LINK_BYTES, &header);
	const char *link = d && d->d_buf && memchr(d->d_buf, 0, d->d_size) ? d->d_buf : NULL;
	bool found = false;

	if (link && (!*link || strchr(link, '/')))
		link = NULL;
	for (size_t i = 0; i < 2 && !found; i++)
		found = try_by_build_id(s, roots[i]) ||
			(link && try_by_link(s, roots[i], file, link));
	perf_files_done(&ours);
	return found;
}

/* --- the whole --- */

struct elf_symbols *elf_symbols_open(const struct perf_files *files,
				     const struct perf_file_map *map)
{
	struct elf_symbols *s;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->debug.fd = -1;
	if (!open_file(&s->file, perf_files_open(files, map->file)))
		return elf_symbols_close(s);
	if (map->build_id_bytes && s->file.build_id_bytes &&
	    !same_build(&s->file, map->build_id, map->build_id_bytes))
		return elf_symbols_close(s);
	read_segments(s);
	if (!s->segment_count ||
	    (!read_functions(s, s->file.elf, SHT_SYMTAB) && !find_debug(s, files, map->file) &&
	     !read_functions(s, s->file.elf, SHT_DYNSYM)))
		return elf_symbols_close(s);
	return s;
}

struct elf_symbols *elf_symbols_close(struct elf_symbols *s)
{
	if (!s)
		return NULL;
	free(s->functions);
	close_file(&s->file);
	close_file(&s->debug);
	free(s);
	return NULL;
}

static bool address_of(const struct elf_symbols *s, uint64_t offset, uint64_t *ret)
{
	for (size_t i = 0; i < s->segment_count; i++) {
		const struct segment *g = &s->segments[i];

		if (offset < g->offset || offset - g->offset >= g->bytes)
			continue;
		return !__builtin_add_overflow(g->address, offset - g->offset, ret);
	}
	return false;
}

/* The last function that begins at or before the address, or NULL. */
static const struct function *function_before(const struct elf_symbols *s, uint64_t address)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->functions[mid].start <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? &s->functions[low - 1] : NULL;
}

bool elf_symbols_find(const struct elf_symbols *s, uint64_t offset, struct elf_symbol *ret)
{
	const struct function *f;
	uint64_t address, bytes;

	if (!address_of(s, offset, &address))
		return false;
	f = function_before(s, address);
	if (!f)
		return false;
	bytes = f->bytes;
	if (!bytes) { /* hand-written code: up to the next one, within reason */
		bytes = MAX_UNSIZED_BYTES;
		if (f + 1 < s->functions + s->count && f[1].start - f->start < bytes)
			bytes = f[1].start - f->start;
	}
	if (address - f->start >= bytes)
		return false;
	ret->name = elf_strptr(s->names, s->name_section, f->name);
	ret->before = address - f->start;
	ret->behind = bytes - 1 - ret->before;
	return ret->name && *ret->name;
}
