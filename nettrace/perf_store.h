/* SPDX-License-Identifier: MIT */
#ifndef NETTRACE_PERF_STORE_H
#define NETTRACE_PERF_STORE_H

/*
 * CPU samples that were taken outside the process, with what names their addresses: what a
 * recording collects, writes behind the trace (trailer_perf.h) and reads back.  A recording and a
 * report of its file analyse the same struct, so they cannot disagree.
 *
 * Memory is bounded.  Stacks are a tree of frames, each kept once; samples are rows of (time,
 * thread, stack, how many).  When there are too many rows, time becomes coarser until equal ones
 * have merged to half of them; when there are too many stacks, later samples keep their thread and
 * their time but have no stack.  Both are counted.
 */

#include "nettrace/arena.h"
#include "nettrace/idmap.h"

enum {
	NT_PERF_NO_STACK = 0, /* the root of the tree: no frame at all */
	NT_PERF_BUILD_ID_BYTES = 20,
	NT_PERF_MAX_FRAMES = 512, /* of one stack */
	NT_PERF_MAX_NODES = 400 * 1000,
	NT_PERF_MAX_ROWS = 1000 * 1000,
	NT_PERF_MAX_THREADS = 16 * 1024,
	NT_PERF_MAX_MAPPINGS = 16 * 1024,
	NT_PERF_MAX_SYMBOLS = 64 * 1024,
	NT_PERF_MAX_COUNT = 100 * 1000 * 1000, /* samples in all; a day of 1,000 a second */
	NT_PERF_TIME_UNIT_NS = 100 * 1000, /* of rows that are not coarsened */
};

/* In the address of a frame: it was found on the stack, and no frame pointer led to it. */
#define NT_PERF_HIDDEN (UINT64_C(1) << 63)

/* The kernel's addresses have both upper bits, the program's none. */
static inline bool nt_perf_is_kernel(uint64_t address)
{
	return address >> 62 == 3;
}

static inline bool nt_perf_is_hidden(uint64_t address)
{
	return address >> 62 == 2;
}

/* Without that mark. */
static inline uint64_t nt_perf_address(uint64_t address)
{
	return nt_perf_is_hidden(address) ? address & ~NT_PERF_HIDDEN : address;
}

struct nt_perf_node {
	uint64_t address; /* a return address unless it is the end of a stack */
	uint32_t caller; /* a node with a smaller number; NT_PERF_NO_STACK: none */
};

struct nt_perf_row {
	uint64_t time; /* in units since the store's start */
	uint32_t thread; /* index */
	uint32_t node;
	uint32_t count;
};

struct nt_perf_thread {
	uint64_t id; /* as the trace has it */
	char name[32]; /* "": not known */
};

struct nt_perf_mapping {
	uint64_t start, last, offset;
	const char *file;
	uint8_t build_id[NT_PERF_BUILD_ID_BYTES];
	uint8_t build_id_bytes; /* 0: not known */
};

struct nt_perf_symbol {
	uint64_t start, last;
	const char *file, *name;
};

struct nt_perf_info {
	uint64_t start_ns; /* CLOCK_MONOTONIC, as the runtime's clock */
	uint64_t end_ns; /* 0: not known */
	uint64_t period_ns; /* CPU time that a sample stands for */
	uint64_t unit_ns; /* of the time of a row */
	uint64_t lost; /* records for which the kernel had no room */
	uint64_t throttled; /* how often the kernel held the sampler back */
	uint64_t no_stack; /* samples whose stack had no room here */
	uint64_t dropped; /* samples, mappings and symbols for which there was no room at all */
	bool kernel_time; /* time in the kernel is part of it */
};

struct nt_perf {
	const struct nt_alloc *alloc;
	struct nt_perf_info info;
	struct nt_perf_node *nodes;
	size_t node_count, node_cap;
	uint32_t *slots; /* node numbers by (caller, address); 0 free */
	size_t slot_count;
	struct nt_perf_row *rows;
	size_t row_count, row_cap, row_max;
	uint64_t samples; /* all counts of the rows */
	bool full; /* coarser time does not help any more */
	struct nt_perf_thread *threads;
	size_t thread_count, thread_cap;
	struct nt_idmap by_id; /* thread id -> index */
	struct nt_perf_mapping *mappings;
	size_t mapping_count, mapping_cap;
	struct nt_perf_symbol *symbols;
	size_t symbol_count, symbol_cap;
	struct nt_arena text;
	const char *last_file; /* of the symbol before: most share it */
};

/* NT_ENOMEM: nothing is to be undone. */
NT_MUST_CHECK enum nt_status nt_perf_init(struct nt_perf *p, const struct nt_alloc *alloc);
void nt_perf_done(struct nt_perf *p);

/* The node of a stack, leaf first.  NT_ELIMIT: there is no room for it. */
NT_MUST_CHECK enum nt_status nt_perf_intern(struct nt_perf *p, const uint64_t *frames, size_t count,
					    uint32_t *ret_node);
/* A node, which must not be there yet.  For readers. */
NT_MUST_CHECK enum nt_status nt_perf_add_node(struct nt_perf *p, uint32_t caller, uint64_t address);
/* Leaf first; returns how many frames it has, at most NT_PERF_MAX_FRAMES. */
size_t nt_perf_frames(const struct nt_perf *p, uint32_t node, uint64_t *frames);

/* The index of the thread, new if need be.  NT_ELIMIT: there is no room for it. */
NT_MUST_CHECK enum nt_status nt_perf_thread(struct nt_perf *p, uint64_t id, uint32_t *ret);
void nt_perf_name_thread(struct nt_perf *p, uint32_t thread, const char *name, size_t n);

/* One sample; what has no room is counted.  NT_ENOMEM. */
NT_MUST_CHECK enum nt_status nt_perf_sample(struct nt_perf *p, uint64_t time_ns, uint64_t thread_id,
					    const uint64_t *frames, size_t count);
/* A row as it is; its thread and node must be there. */
NT_MUST_CHECK enum nt_status nt_perf_add_row(struct nt_perf *p, const struct nt_perf_row *row);

NT_MUST_CHECK enum nt_status nt_perf_map(struct nt_perf *p, const struct nt_perf_mapping *m,
					 size_t file_bytes);
NT_MUST_CHECK enum nt_status nt_perf_symbol(struct nt_perf *p, uint64_t start, uint64_t last,
					    const char *file, size_t file_bytes, const char *name,
					    size_t name_bytes);

/* Puts the rows in the order of their time. */
void nt_perf_sort(struct nt_perf *p);

#endif
