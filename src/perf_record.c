/* SPDX-License-Identifier: MIT */
#include "src/perf_record.h"

#include <linux/perf_event.h>
#include <string.h>

enum {
	HEADER_BYTES = 8,
	MODE_MASK = 7,
	MODE_KERNEL = 1,
	MISC_BUILD_ID = 1 << 14,
	MISC_EXEC = 1 << 13,
	PROT_EXECUTE = 4,
	SAMPLE_ID_BYTES = 16, /* pid, tid and time behind records that are no samples */
	TYPE_LOST_SAMPLES = 13,
};

/* Marks in a call chain of what follows: frames of the kernel, of the program, of something else.
 */
#define CONTEXT_LAST   UINT64_C(0xfffffffffffff001)
#define CONTEXT_KERNEL ((uint64_t)-128)
#define CONTEXT_USER   ((uint64_t)-512)

struct reader {
	struct perf_scratch *scratch;
	const struct perf_sink *sink;
	void *ctx;
	struct perf_counts *counts;
};

static uint32_t load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* The text at p, or NULL if it does not end before end. */
static const char *text_at(const uint8_t *p, const uint8_t *end)
{
	return p < end && memchr(p, 0, (size_t)(end - p)) ? (const char *)p : NULL;
}

static bool on_sample(const struct reader *r, const uint8_t *p, size_t n, unsigned misc)
{
	struct perf_sample s = { .frames = r->scratch->frames,
				 .kernel_frames = r->scratch->kernel_frames };
	uint64_t context = CONTEXT_USER, count;

	if (n < 32)
		return false;
	s.pid = load32(p + 8);
	s.tid = load32(p + 12);
	s.time_ns = load64(p + 16);
	s.in_kernel = (misc & MODE_MASK) == MODE_KERNEL;
	count = load64(p + 24);
	if (count > (n - 32) / 8)
		return false;
	for (size_t i = 0; i < count; i++) {
		uint64_t ip = load64(p + 32 + i * 8);

		if (ip >= CONTEXT_LAST)
			context = ip;
		else if (context == CONTEXT_USER && s.frame_count < PERF_MAX_FRAMES)
			r->scratch->frames[s.frame_count++] = ip;
		else if (context == CONTEXT_KERNEL && s.kernel_frame_count < PERF_MAX_FRAMES)
			r->scratch->kernel_frames[s.kernel_frame_count++] = ip;
	}
	r->counts->samples++;
	r->sink->sample(r->ctx, &s);
	return true;
}

static bool on_mapping(const struct reader *r, const uint8_t *p, size_t n, unsigned misc)
{
	struct perf_mapping m;

	if (n < 73)
		return false;
	m = (struct perf_mapping){
		.pid = load32(p + 8),
		.start = load64(p + 16),
		.bytes = load64(p + 24),
		.offset = load64(p + 32),
		.executable = load32(p + 64) & PROT_EXECUTE,
		.file = text_at(p + 72, p + n),
	};
	if (!m.file)
		return false;
	if (misc & MISC_BUILD_ID) {
		if (p[40] > PERF_BUILD_ID_BYTES)
			return false;
		m.build_id_bytes = p[40];
		memcpy(m.build_id, p + 44, m.build_id_bytes);
	} else {
		m.inode = load64(p + 48);
	}
	r->sink->mapping(r->ctx, &m);
	return true;
}

static bool on_name(const struct reader *r, const uint8_t *p, size_t n, unsigned misc)
{
	struct perf_thread t;

	if (n < 17)
		return false;
	t = (struct perf_thread){ .pid = load32(p + 8),
				  .tid = load32(p + 12),
				  .exec = misc & MISC_EXEC,
				  .name = text_at(p + 16, p + n) };
	if (!t.name)
		return false;
	r->sink->thread_name(r->ctx, &t);
	return true;
}

static bool on_fork(const struct reader *r, const uint8_t *p, size_t n)
{
	struct perf_thread t;

	if (n < 32)
		return false;
	t = (struct perf_thread){ .pid = load32(p + 8),
				  .tid = load32(p + 16),
				  .parent_tid = load32(p + 20) };
	r->sink->thread_new(r->ctx, &t);
	return true;
}

static bool on_lost(const struct reader *r, const uint8_t *p, size_t n, size_t at)
{
	if (n < at + 8)
		return false;
	if (__builtin_add_overflow(r->counts->lost, load64(p + at), &r->counts->lost))
		r->counts->lost = UINT64_MAX;
	return true;
}

/* n bytes, of which the header's length says the same. */
static bool on_record(const struct reader *r, const uint8_t *p, size_t n)
{
	unsigned misc = (unsigned)p[4] | (unsigned)p[5] << 8;
	/* What stands behind all records but samples is not asked for. */
	size_t own = n >= HEADER_BYTES + SAMPLE_ID_BYTES ? n - SAMPLE_ID_BYTES : HEADER_BYTES;

	switch (load32(p)) {
	case PERF_RECORD_SAMPLE:
		return on_sample(r, p, n, misc);
	case PERF_RECORD_MMAP2:
		return on_mapping(r, p, own, misc);
	case PERF_RECORD_COMM:
		return on_name(r, p, own, misc);
	case PERF_RECORD_FORK:
		return on_fork(r, p, own);
	case PERF_RECORD_LOST:
		return on_lost(r, p, own, 16);
	case TYPE_LOST_SAMPLES:
		return on_lost(r, p, own, 8);
	case PERF_RECORD_THROTTLE:
		r->counts->throttled++;
		return true;
	default:
		return true;
	}
}

/* n bytes from a place in the ring, put together where they go round its end. */
static const uint8_t *bytes_at(const uint8_t *ring, size_t size, uint64_t at, size_t n,
			       uint8_t *room)
{
	size_t from = (size_t)(at & (size - 1)), first = size - from;

	if (n <= first)
		return ring + from;
	memcpy(room, ring + from, first);
	memcpy(room + first, ring, n - first);
	return room;
}

uint64_t perf_ring_read(const uint8_t *ring, size_t size, uint64_t tail, uint64_t head,
			struct perf_scratch *scratch, const struct perf_sink *sink, void *ctx,
			struct perf_counts *counts)
{
	const struct reader r = { scratch, sink, ctx, counts };

	if (head - tail > size) { /* overwritten, or nonsense */
		counts->damaged++;
		return head;
	}
	while (tail != head) {
		uint64_t left = head - tail;
		const uint8_t *p;
		size_t n;

		p = left < HEADER_BYTES ? NULL
					: bytes_at(ring, size, tail, HEADER_BYTES, scratch->record);
		n = p ? (size_t)p[6] | (size_t)p[7] << 8 : 0;
		if (n < HEADER_BYTES || n > left) {
			counts->damaged++;
			return head;
		}
		if (!on_record(&r, bytes_at(ring, size, tail, n, scratch->record), n))
			counts->damaged++;
		tail += n;
	}
	return head;
}
