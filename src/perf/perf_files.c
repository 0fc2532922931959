/* SPDX-License-Identifier: MIT */
#include "src/perf/perf_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/proc/proc.h"

enum { MAX_MAPS = 16 * 1024, MAX_LINE = 4096 + 128, MAX_LINES = 256 * 1024, CLOCK_STEPS_S = 2 };

/* --- what is mapped --- */

/* A number in hexadecimal that ends at that character; *text moves behind it. */
static bool take_hex(const char **text, char end, uint64_t *ret)
{
	char *stop;

	if (!strchr("0123456789abcdef", **text) || !**text)
		return false;
	errno = 0;
	*ret = strtoull(*text, &stop, 16);
	if (errno || *stop != end)
		return false;
	*text = stop + 1;
	return true;
}

static bool is_code_of_file(const struct perf_mapping *m)
{
	return m->executable && m->bytes && m->start <= UINT64_MAX - (m->bytes - 1) &&
	       (m->file[0] == '/' || strcmp(m->file, "[vdso]") == 0) &&
	       strncmp(m->file, "//anon", 6) != 0 && strncmp(m->file, "/memfd:", 7) != 0 &&
	       strncmp(m->file, "/dev/zero", 9) != 0;
}

/* "START-END PROT OFFSET MAJOR:MINOR INODE     FILE" */
bool perf_files_parse(const char *line, struct perf_mapping *ret)
{
	uint64_t end, major, minor;
	char *stop;

	*ret = (struct perf_mapping){ 0 };
	if (!take_hex(&line, '-', &ret->start) || !take_hex(&line, ' ', &end) ||
	    strnlen(line, 5) < 5 || line[4] != ' ')
		return false;
	ret->executable = line[2] == 'x';
	line += 5;
	if (!take_hex(&line, ' ', &ret->offset) || !take_hex(&line, ':', &major) ||
	    !take_hex(&line, ' ', &minor) || *line < '0' || *line > '9')
		return false;
	errno = 0;
	ret->inode = strtoull(line, &stop, 10);
	if (errno || end <= ret->start)
		return false;
	ret->bytes = end - ret->start;
	ret->file = stop + strspn(stop, " ");
	return is_code_of_file(ret);
}

void perf_files_add(struct perf_files *f, const struct perf_mapping *m)
{
	struct perf_file_map map = { .start = m->start,
				     .last = m->start + (m->bytes - 1),
				     .offset = m->offset,
				     .build_id_bytes = m->build_id_bytes };

	if (!is_code_of_file(m))
		return;
	if (f->count == f->cap && f->count < MAX_MAPS) {
		size_t cap = f->cap ? f->cap * 2 : 256;
		struct perf_file_map *more = reallocarray(f->maps, cap, sizeof(*more));

		if (more) {
			f->maps = more;
			f->cap = cap;
		}
	}
	memcpy(map.build_id, m->build_id, sizeof(map.build_id));
	map.file = f->count < f->cap ? strdup(m->file) : NULL;
	if (map.file)
		f->maps[f->count++] = map;
	else
		f->dropped++;
}

static void read_maps(struct perf_files *f, int32_t pid)
{
	char path[64], line[MAX_LINE];
	FILE *in;

	snprintf(path, sizeof(path), PROC_ROOT "/%d/maps", (int)pid);
	in = fopen(path, "re");
	for (unsigned i = 0; in && i < MAX_LINES && fgets(line, sizeof(line), in); i++) {
		struct perf_mapping m;

		line[strcspn(line, "\n")] = '\0';
		if (perf_files_parse(line, &m))
			perf_files_add(f, &m);
	}
	if (in)
		fclose(in);
}

void perf_files_init(struct perf_files *f, int32_t pid)
{
	struct proc_stat st;
	char path[64];
	double up_s = -1;

	*f = (struct perf_files){ 0 };
	snprintf(path, sizeof(path), PROC_ROOT "/%d/root", (int)pid);
	f->inner_pid = proc_read_ns_pid(PROC_ROOT, pid);
	if (proc_read_stat(PROC_ROOT, pid, &st))
		up_s = proc_uptime_s(PROC_ROOT, &st);
	f->started = up_s < 0 ? INT64_MAX : (int64_t)time(NULL) - (int64_t)up_s - CLOCK_STEPS_S;
	f->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	read_maps(f, pid);
}

void perf_files_done(struct perf_files *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->maps[i].file);
	free(f->maps);
	if (f->root >= 0)
		close(f->root);
	*f = (struct perf_files){ .root = -1 };
}

/* --- the way to a file --- */

/* 0, or -errno when it is none we want to read. */
static int check_ordinary(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? 0 : -EINVAL;
}

int perf_files_open(const struct perf_files *f, const char *path)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	long fd;
	int error;

	if (f->root < 0)
		return -ENOENT;
	fd = syscall(SYS_openat2, f->root, path, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	error = check_ordinary((int)fd);
	if (error < 0) {
		close((int)fd);
		return error;
	}
	return (int)fd;
}
