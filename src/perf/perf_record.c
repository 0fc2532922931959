/* SPDX-License-Identifier: MIT */
#include "src/perf/perf_record.h"

#include <linux/perf_event.h>
#include <string.h>

#include "src/base/native.h"

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

/* The text at p, or NULL if it does not end before end. */
static const char *text_at(const uint8_t *p, const uint8_t *end)
{
	return p < end && memchr(p, 0, (size_t)(end - p)) ? (const char *)p : NULL;
}

/* What of the program's stack came with a sample. */
struct stack {
	const uint8_t *bytes;
	uint64_t start, n;
};

/* 8 bytes of it; false: they are not there. */
static bool peek(const struct stack *s, uint64_t at, uint64_t *ret)
{
	if (at < s->start || s->n < 8 || at - s->start > s->n - 8)
		return false;
	*ret = native_load64(s->bytes + (at - s->start));
	return true;
}

static bool may_be_code(uint64_t address, const struct stack *s)
{
	const uint64_t lowest = 64 << 10, highest = UINT64_C(1) << 56, near = 8 << 20;

	return address >= lowest && address < highest &&
	       (address + near < s->start || address > s->start + near);
}

/*
 * Between a frame and its caller's there should be no second link to the latter.  Where there is
 * one, the return address behind it goes into the chain after frame i.  Returns whether it did.
 */
static bool insert_hidden(struct perf_sample *sample, uint64_t *frames, size_t i,
			  const struct stack *s, uint64_t fp, uint64_t next)
{
	uint64_t word, ret = 0;

	for (uint64_t at = fp + 16; at < next && peek(s, at, &word); at += 8) {
		if (word != next || !peek(s, at + 8, &ret) || !may_be_code(ret, s))
			continue;
		if (sample->frame_count >= PERF_MAX_FRAMES)
			return false;
		memmove(&frames[i + 2], &frames[i + 1],
			(sample->frame_count - i - 1) * sizeof(*frames));
		frames[i + 1] = ret | PERF_HIDDEN;
		sample->frame_count++;
		return true;
	}
	return false;
}

/* Follows the frame pointers as the kernel did, as far as the copy of the stack goes. */
static void find_hidden(struct perf_sample *sample, uint64_t *frames, const struct stack *s,
			uint64_t fp)
{
	uint64_t next, ret;

	for (size_t i = sample->kernel_count + 1; i < sample->frame_count; i++) {
		if (!peek(s, fp, &next) || !peek(s, fp + 8, &ret) || ret != frames[i] || next <= fp)
			return;
		if (insert_hidden(sample, frames, i, s, fp, next))
			i++;
		fp = next;
	}
}

/* Registers and stack behind the call chain, at p + at; nothing, where they are not there. */
static void on_stack(struct perf_sample *sample, uint64_t *frames, const uint8_t *p, size_t n,
		     size_t at)
{
	struct stack s;
	uint64_t fp, size;

	if (n - at < 32 || native_load64(p + at) == 0)
		return;
	fp = native_load64(p + at + 8);
	s.start = native_load64(p + at + 16);
	size = native_load64(p + at + 24);
	at += 32;
	if (size > n - at || n - at - size < 8)
		return;
	s.bytes = p + at;
	s.n = native_load64(p + at + size);
	if (s.n > size)
		s.n = size;
	find_hidden(sample, frames, &s, fp);
}

/* Of a call chain of count words: the kernel's frames come first. */
static void take_frames(struct perf_sample *s, uint64_t *frames, const uint8_t *p, size_t count)
{
	uint64_t context = CONTEXT_USER;

	for (size_t i = 0; i < count && s->frame_count < PERF_MAX_FRAMES; i++) {
		uint64_t ip = native_load64(p + i * 8);

		if (ip >= CONTEXT_LAST) {
			context = ip;
		} else if (context == CONTEXT_USER && ip && ip >> 62 == 0) { /* else no code */
			frames[s->frame_count++] = ip;
		} else if (context == CONTEXT_KERNEL && ip >> 62 == 3 &&
			   s->kernel_count == s->frame_count) {
			frames[s->frame_count++] = ip;
			s->kernel_count++;
		}
	}
}

static bool on_sample(const struct reader *r, const uint8_t *p, size_t n, unsigned misc)
{
	struct perf_sample s = { .frames = r->scratch->frames };
	uint64_t count;

	if (n < 32)
		return false;
	s.pid = native_load32(p + 8);
	s.tid = native_load32(p + 12);
	s.time_ns = native_load64(p + 16);
	s.in_kernel = (misc & MODE_MASK) == MODE_KERNEL;
	count = native_load64(p + 24);
	if (count > (n - 32) / 8)
		return false;
	take_frames(&s, r->scratch->frames, p + 32, (size_t)count);
	on_stack(&s, r->scratch->frames, p, n, 32 + (size_t)count * 8);
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
		.pid = native_load32(p + 8),
		.start = native_load64(p + 16),
		.bytes = native_load64(p + 24),
		.offset = native_load64(p + 32),
		.executable = native_load32(p + 64) & PROT_EXECUTE,
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
		m.inode = native_load64(p + 48);
	}
	r->sink->mapping(r->ctx, &m);
	return true;
}

static bool on_name(const struct reader *r, const uint8_t *p, size_t n, unsigned misc)
{
	struct perf_thread t;

	if (n < 17)
		return false;
	t = (struct perf_thread){ .pid = native_load32(p + 8),
				  .tid = native_load32(p + 12),
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
	t = (struct perf_thread){ .pid = native_load32(p + 8),
				  .tid = native_load32(p + 16),
				  .parent_tid = native_load32(p + 20) };
	r->sink->thread_new(r->ctx, &t);
	return true;
}

static bool on_lost(const struct reader *r, const uint8_t *p, size_t n, size_t at)
{
	if (n < at + 8)
		return false;
	if (__builtin_add_overflow(r->counts->lost, native_load64(p + at), &r->counts->lost))
		r->counts->lost = UINT64_MAX;
	return true;
}

/* n bytes, of which the header's length says the same. */
static bool on_record(const struct reader *r, const uint8_t *p, size_t n)
{
	unsigned misc = (unsigned)p[4] | (unsigned)p[5] << 8;
	/* What stands behind all records but samples is not asked for. */
	size_t own = n >= HEADER_BYTES + SAMPLE_ID_BYTES ? n - SAMPLE_ID_BYTES : HEADER_BYTES;

	switch (native_load32(p)) {
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
