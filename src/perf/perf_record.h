/* SPDX-License-Identifier: MIT */
#ifndef SRC_PERF_PERF_RECORD_H
#define SRC_PERF_PERF_RECORD_H

/*
 * Records of perf_event_open(2), from the ring buffer that the kernel writes.  Pure.  The bytes are
 * taken for hostile all the same: every length is checked.
 *
 * Layout, by the attributes of perf_open.c (sample_type TID | TIME | CALLCHAIN | REGS_USER |
 * STACK_USER, sample_id_all):
 *
 *	record   0 u32 type, 4 u16 misc, 6 u16 bytes of all of it; then
 *	SAMPLE   8 u32 pid, 12 u32 tid, 16 u64 time, 24 u64 n, 32 u64[n] addresses and markers;
 *	         where the program's registers are known: u64 not 0, u64 frame pointer, u64 stack
 *	         pointer, else u64 0; then u64 m, m bytes of stack, and if m is not 0 u64 how
 *	         many of them are valid
 *	MMAP2    8 u32 pid, 12 u32 tid, 16 u64 address, 24 u64 bytes, 32 u64 offset in the file,
 *	         40 device and inode, or (misc bit 14) u8 length, 3 unused, 20 bytes of build id,
 *	         64 u32 prot, 68 u32 flags, 72 name
 *	COMM     8 u32 pid, 12 u32 tid, 16 name
 *	FORK     8 u32 pid, 12 u32 parent's pid, 16 u32 tid, 20 u32 parent's tid, 24 u64 time;
 *	         EXIT too
 *	LOST     8 u64 id, 16 u64 records
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PERF_MAX_FRAMES = 512, PERF_BUILD_ID_BYTES = 20, PERF_MAX_RECORD = 1 << 16 };

/*
 * In an address: found on the stack, but no frame pointer led to it.  When a method is replaced
 * while it runs, the new code's frame lies on the old one and links to the caller's: the chain of
 * frame pointers then skips the return address of the old frame.  It stands behind a second copy of
 * that link.
 */
#define PERF_HIDDEN (UINT64_C(1) << 63)

struct perf_sample {
	uint32_t pid, tid;
	uint64_t time_ns;
	bool in_kernel; /* taken in the kernel, on behalf of the thread */
	const uint64_t *frames; /* leaf first */
	size_t frame_count;
	size_t kernel_count; /* of them, the first ones, are of the kernel; the program's follow */
};

struct perf_mapping {
	uint32_t pid;
	uint64_t start, bytes, offset;
	uint8_t build_id[PERF_BUILD_ID_BYTES];
	uint8_t build_id_bytes; /* 0: not known */
	uint64_t inode; /* 0: not known */
	bool executable;
	const char *file; /* ends with NUL */
};

struct perf_thread {
	uint32_t pid, tid, parent_tid;
	bool exec; /* the program was replaced by another */
	const char *name; /* NULL: not told */
};

struct perf_sink {
	void (*sample)(void *ctx, const struct perf_sample *s);
	void (*mapping)(void *ctx, const struct perf_mapping *m);
	void (*thread_new)(void *ctx, const struct perf_thread *t);
	void (*thread_name)(void *ctx, const struct perf_thread *t);
};

struct perf_counts {
	uint64_t samples;
	uint64_t lost; /* records the kernel had no room for */
	uint64_t throttled; /* how often it found us too expensive for a while */
	uint64_t damaged; /* records that contradict themselves */
};

/* Memory that reading needs. */
struct perf_scratch {
	uint8_t record[PERF_MAX_RECORD]; /* one that goes round the ring's end */
	uint64_t frames[PERF_MAX_FRAMES];
};

/*
 * Reads the records between tail and head of a ring of size bytes, a power of two.  Returns the
 * new tail, always head: what cannot be read is counted.
 */
uint64_t perf_ring_read(const uint8_t *ring, size_t size, uint64_t tail, uint64_t head,
			struct perf_scratch *scratch, const struct perf_sink *sink, void *ctx,
			struct perf_counts *counts);

#endif
