/* SPDX-License-Identifier: MIT */
#ifndef SRC_PERF_PERF_MAP_H
#define SRC_PERF_PERF_MAP_H

/*
 * What a runtime writes for profilers of the operating system when it is told to (process perfmap
 * on, DOTNET_PerfMapEnabled): lines of /tmp/perf-PID.map, records of jit-PID.dump.  Pure.  Both are
 * files of the traced process and may hold anything.
 *
 *	perf map  "0x7f05bc800000 1a4 void [Shop] Shop.Cpu::Hot()[OptimizedTier1]"
 *	          (0x may be missing)
 *	jitdump   header of 40 bytes: u32 magic 0x4a695444, u32 version, u32 its length
 *	          records: u32 kind, u32 length of all of it, u64 time; kind 0, code: u32 pid,
 *	          u32 tid, u64 address (twice), u64 bytes, u64 number, name with NUL, code
 *	          (sometimes left out)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_code {
	uint64_t start, last;
	uint64_t time_ns; /* CLOCK_MONOTONIC; 0: not known, holds always */
	const char *name; /* not ended by NUL */
	size_t name_bytes;
};

/* A line without its end; false: it makes no sense. */
bool perf_map_line(const char *line, size_t n, struct perf_code *ret);

enum {
	PERF_DUMP_HEADER_BYTES = 40,
	PERF_DUMP_RECORD_BYTES = 16,
	PERF_DUMP_CODE_BYTES = 56, /* of a record of code, up to the name */
};

/* Of the first PERF_DUMP_HEADER_BYTES: where the first record is; 0: it is no such file. */
uint32_t perf_dump_header(const uint8_t *p);
/* Of the first PERF_DUMP_RECORD_BYTES of a record: its length, 0 where it makes no sense. */
uint32_t perf_dump_length(const uint8_t *p);
/* A record, or its first n bytes, with the end of its name; false: it is none of code. */
bool perf_dump_code(const uint8_t *p, size_t n, struct perf_code *ret);

/*
 * Whether b names code at a moment better than a, both of which hold the address.  The newest code
 * that was there by then; a sample may be stamped a little before the record of its code (up to
 * 85 us were seen), and a record may be late.
 */
bool perf_code_better(const struct perf_code *a, const struct perf_code *b, uint64_t time_ns);

#endif
