/* SPDX-License-Identifier: MIT */
/* Records of the kernel's ring buffer: each kind, round the ring's end, and nonsense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/perf/perf_record.h"

enum { RING = 4096 };

static struct perf_scratch scratch;

/* What was told, as text: "S 1/2 @3 k [a b]\n" */
struct heard {
	char text[4096];
	size_t n;
	struct perf_counts counts;
};

__attribute__((format(printf, 2, 3))) static void add(struct heard *h, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	h->n += (size_t)vsnprintf(h->text + h->n, sizeof(h->text) - h->n, fmt, args);
	va_end(args);
	assert_true(h->n < sizeof(h->text));
}

static void on_sample(void *ctx, const struct perf_sample *s)
{
	struct heard *h = ctx;

	add(h, "S %u/%u @%llu%s [", s->pid, s->tid, (unsigned long long)s->time_ns,
	    s->in_kernel ? " k" : "");
	for (size_t i = 0; i < s->frame_count; i++)
		add(h, "%s%llx", i ? " " : "", (unsigned long long)s->frames[i]);
	add(h, "]\n");
}

static void on_mapping(void *ctx, const struct perf_mapping *m)
{
	add(ctx, "M %u %llx+%llx @%llx %s%s id %u:%02x ino %llu\n", m->pid,
	    (unsigned long long)m->start, (unsigned long long)m->bytes,
	    (unsigned long long)m->offset, m->file, m->executable ? " x" : "", m->build_id_bytes,
	    m->build_id[0], (unsigned long long)m->inode);
}

static void on_new(void *ctx, const struct perf_thread *t)
{
	add(ctx, "N %u/%u from %u\n", t->pid, t->tid, t->parent_tid);
}

static void on_name(void *ctx, const struct perf_thread *t)
{
	add(ctx, "C %u/%u %s%s\n", t->pid, t->tid, t->name, t->exec ? " exec" : "");
}

static const struct perf_sink sink = { on_sample, on_mapping, on_new, on_name };

/* --- bytes --- */

struct bytes {
	uint8_t b[RING];
	size_t n;
};

static void put(struct bytes *b, uint64_t v, size_t size)
{
	memcpy(b->b + b->n, &v, size);
	b->n += size;
}

static void put_text(struct bytes *b, const char *text)
{
	size_t n = strlen(text) + 1, padded = (n + 7) & ~(size_t)7;

	memset(b->b + b->n, 0, padded);
	memcpy(b->b + b->n, text, n);
	b->n += padded;
}

static size_t begin(struct bytes *b, uint32_t type, uint16_t misc)
{
	size_t at = b->n;

	put(b, type, 4);
	put(b, misc, 2);
	put(b, 0, 2);
	return at;
}

/* id: with what the kernel puts behind records that are no samples. */
static void end(struct bytes *b, size_t at, bool id)
{
	uint16_t size;

	if (id) {
		put(b, 1, 4);
		put(b, 2, 4);
		put(b, 999, 8);
	}
	size = (uint16_t)(b->n - at);
	memcpy(b->b + at + 6, &size, 2);
}

static void put_sample(struct bytes *b, uint16_t misc, size_t count, const uint64_t *chain)
{
	size_t at = begin(b, 9, misc);

	put(b, 11, 4);
	put(b, 12, 4);
	put(b, 1000, 8);
	put(b, count, 8);
	for (size_t i = 0; i < count; i++)
		put(b, chain[i], 8);
	end(b, at, false);
}

static void put_mapping(struct bytes *b, bool build_id)
{
	size_t at = begin(b, 10, build_id ? 1 << 14 : 0);

	put(b, 11, 4);
	put(b, 12, 4);
	put(b, 0x1000, 8);
	put(b, 0x200, 8);
	put(b, 0x40, 8);
	if (build_id) {
		put(b, 20, 4);
		put(b, 0xab, 8);
		put(b, 0, 8);
		put(b, 0, 4);
	} else {
		put(b, 8, 4);
		put(b, 1, 4);
		put(b, 77, 8);
		put(b, 0, 8);
	}
	put(b, 5, 4);
	put(b, 2, 4);
	put_text(b, "/lib/x.so");
	end(b, at, true);
}

/* Reads b as if the ring had been written up to start before. */
static void read_at(const struct bytes *b, uint64_t start, struct heard *h)
{
	uint8_t *ring = malloc(RING);

	assert_non_null(ring);
	memset(h, 0, sizeof(*h));
	for (size_t i = 0; i < b->n; i++)
		ring[(start + i) % RING] = b->b[i];
	assert_int_equal(
		perf_ring_read(ring, RING, start, start + b->n, &scratch, &sink, h, &h->counts),
		start + b->n);
	free(ring);
}

static const uint64_t chain[] = { (uint64_t)-128, 0xffff1, 0xffff2, (uint64_t)-512, 0xa, 0xb };

static void each_kind(void **state)
{
	struct bytes b = { .n = 0 };
	struct heard h;
	size_t at;

	(void)state;
	put_sample(&b, 2, 3, chain + 3);
	put_sample(&b, 1, 6, chain);
	put_sample(&b, 1, 0, chain);
	put_mapping(&b, true);
	put_mapping(&b, false);
	at = begin(&b, 3, 1 << 13);
	put(&b, 11, 4);
	put(&b, 12, 4);
	put_text(&b, "worker");
	end(&b, at, true);
	at = begin(&b, 7, 0);
	put(&b, 11, 4);
	put(&b, 11, 4);
	put(&b, 13, 4);
	put(&b, 12, 4);
	put(&b, 5, 8);
	end(&b, at, true);
	at = begin(&b, 2, 0);
	put(&b, 1, 8);
	put(&b, 40, 8);
	end(&b, at, true);
	at = begin(&b, 13, 0);
	put(&b, 2, 8);
	end(&b, at, true);
	at = begin(&b, 5, 0);
	put(&b, 0, 8);
	put(&b, 0, 8);
	put(&b, 0, 8);
	end(&b, at, true);
	at = begin(&b, 4711, 0);
	end(&b, at, true);
	read_at(&b, 0, &h);
	assert_string_equal(h.text, "S 11/12 @1000 [a b]\n"
				    "S 11/12 @1000 k [a b]\n"
				    "S 11/12 @1000 k []\n"
				    "M 11 1000+200 @40 /lib/x.so x id 20:ab ino 0\n"
				    "M 11 1000+200 @40 /lib/x.so x id 0:00 ino 77\n"
				    "C 11/12 worker exec\n"
				    "N 11/13 from 12\n");
	assert_int_equal(h.counts.samples, 3);
	assert_int_equal(h.counts.lost, 42);
	assert_int_equal(h.counts.throttled, 1);
	assert_int_equal(h.counts.damaged, 0);
}

static void round_the_end_of_the_ring(void **state)
{
	struct bytes b = { .n = 0 };
	struct heard want, h;

	(void)state;
	put_sample(&b, 2, 3, chain + 3);
	put_mapping(&b, true);
	read_at(&b, 0, &want);
	for (size_t back = 0; back <= b.n; back += 8) {
		read_at(&b, RING - back, &h);
		assert_string_equal(h.text, want.text);
		/* The counters of the ring go on for ever, and over the end of their type. */
		read_at(&b, (uint64_t)0 - back, &h);
		assert_string_equal(h.text, want.text);
	}
}

/* Every length of every record that is not its own: never out of bounds, and said. */
static void wrong_lengths(void **state)
{
	struct bytes whole = { .n = 0 };
	struct heard h;

	(void)state;
	put_mapping(&whole, true);
	for (size_t kind = 0; kind < 16; kind++) {
		for (size_t n = 0; n <= whole.n; n++) {
			struct bytes b = whole;

			memset(b.b, 0, 8);
			b.b[0] = (uint8_t)kind;
			b.b[6] = (uint8_t)n;
			b.n = n;
			read_at(&b, RING - 20, &h);
			if (n && n < 8)
				assert_int_equal(h.counts.damaged, 1);
		}
	}
}

static void contradictions(void **state)
{
	struct bytes b = { .n = 0 };
	struct heard h;
	uint64_t many = UINT64_MAX / 8;

	(void)state;
	put_sample(&b, 2, 3, chain + 3);
	memcpy(b.b + 24, &many, 8); /* more frames than bytes */
	put_sample(&b, 2, 3, chain + 3);
	read_at(&b, 0, &h);
	assert_string_equal(h.text, "S 11/12 @1000 [a b]\n");
	assert_int_equal(h.counts.damaged, 1);
	/* A record that says it is longer than what is there ends the reading. */
	b.b[6] = 0xff;
	b.b[7] = 0xff;
	read_at(&b, 0, &h);
	assert_string_equal(h.text, "");
	assert_int_equal(h.counts.damaged, 1);
}

static void more_than_the_ring_holds(void **state)
{
	static uint8_t ring[RING];
	struct heard h = { .n = 0 };

	(void)state;
	assert_int_equal(
		perf_ring_read(ring, RING, 10, 10 + RING + 1, &scratch, &sink, &h, &h.counts),
		10 + RING + 1);
	assert_int_equal(h.counts.damaged, 1);
}

static void a_name_without_end(void **state)
{
	struct bytes b = { .n = 0 };
	struct heard h;
	size_t at = begin(&b, 3, 0);

	(void)state;
	put(&b, 11, 4);
	put(&b, 12, 4);
	put(&b, UINT64_MAX, 8);
	end(&b, at, true);
	read_at(&b, 0, &h);
	assert_string_equal(h.text, "");
	assert_int_equal(h.counts.damaged, 1);
}

static void deep_stacks_keep_their_leaves(void **state)
{
	struct bytes b = { .n = 0 };
	struct perf_counts counts = { 0 };
	struct heard h = { .n = 0 };
	static uint8_t ring[1 << 14];
	size_t at = begin(&b, 9, 2);
	uint16_t size;

	(void)state;
	put(&b, 11, 4);
	put(&b, 12, 4);
	put(&b, 1, 8);
	put(&b, PERF_MAX_FRAMES + 100, 8);
	memcpy(ring, b.b, b.n);
	size = (uint16_t)(b.n - at + (PERF_MAX_FRAMES + 100) * 8);
	memcpy(ring + 6, &size, 2);
	for (uint64_t i = 1; i <= PERF_MAX_FRAMES + 100; i++) /* 0 is no code */
		memcpy(ring + b.n + (i - 1) * 8, &i, 8);
	perf_ring_read(ring, sizeof(ring), 0, size, &scratch, &sink, &h, &counts);
	assert_int_equal(counts.damaged, 0);
	assert_memory_equal(h.text, "S 11/12 @1 [1 2 3 4", 19);
	assert_int_equal(scratch.frames[PERF_MAX_FRAMES - 1], PERF_MAX_FRAMES);
}

/* --- frames of the kernel --- */

#define KERNEL UINT64_C(0xffffffff81000010)

static void frames_of_the_kernel_come_first(void **state)
{
	static const uint64_t both[] = { (uint64_t)-128,    KERNEL, KERNEL + 1,
					 (uint64_t)-512,    0xa,    UINT64_C(1) << 63 | 5,
					 UINT64_C(1) << 62, 0,	    0xb };
	static const uint64_t alone[] = { (uint64_t)-128, KERNEL };
	static const uint64_t swapped[] = { (uint64_t)-512, 0xa, (uint64_t)-128, KERNEL,
					    (uint64_t)-512, 0xb };
	struct bytes b = { .n = 0 };
	struct heard h;

	(void)state;
	put_sample(&b, 1, 9, both); /* what is no address of a program was no caller */
	put_sample(&b, 1, 2, alone);
	put_sample(&b, 1, 6, swapped);
	read_at(&b, 0, &h);
	assert_string_equal(h.text, "S 11/12 @1000 k [ffffffff81000010 ffffffff81000011 a b]\n"
				    "S 11/12 @1000 k [ffffffff81000010]\n"
				    "S 11/12 @1000 k [a b]\n");
	assert_int_equal(h.counts.samples, 3);
}

/* --- frames that no frame pointer leads to --- */

enum { STACK = 0x7ff000001000, WORDS = 12 };

/* A sample with frame pointer, stack pointer and a copy of the stack. */
static void put_stack_sample(struct bytes *b, uint64_t fp, const uint64_t words[WORDS],
			     uint64_t valid, bool in_kernel)
{
	static const uint64_t frames[] = { (uint64_t)-128, KERNEL,     KERNEL + 1, (uint64_t)-512,
					   0xaaaa1000,	   0xaaaa2000, 0xaaaa3000 };
	size_t at = begin(b, 9, in_kernel ? 1 : 2), first = in_kernel ? 0 : 3;

	put(b, 11, 4);
	put(b, 12, 4);
	put(b, 1000, 8);
	put(b, 7 - first, 8);
	for (size_t i = first; i < 7; i++)
		put(b, frames[i], 8);
	put(b, 2, 8);
	put(b, fp, 8);
	put(b, STACK, 8);
	put(b, WORDS * sizeof(uint64_t), 8);
	for (size_t i = 0; i < WORDS; i++)
		put(b, words[i], 8);
	put(b, valid, 8);
	end(b, at, false);
}

/* New code at [1], whose link skips the old frame at [4]; its caller's frame is at [8]. */
static const uint64_t replaced[WORDS] = { 7, STACK + 64,  0xaaaa2000, 7, STACK + 64, 0xbbbb0001, 7,
					  7, STACK + 800, 0xaaaa3000, 7, 7 };

static const char *chain_of(uint64_t fp, const uint64_t words[WORDS], uint64_t valid,
			    struct heard *h)
{
	struct bytes b = { .n = 0 };

	put_stack_sample(&b, fp, words, valid, false);
	read_at(&b, RING - 100, h);
	assert_int_equal(h->counts.damaged, 0);
	return h->text;
}

static void a_hidden_caller_is_found(void **state)
{
	static const char found[] = "S 11/12 @1000 [aaaa1000 aaaa2000 80000000bbbb0001 aaaa3000]\n";
	static const char plain[] = "S 11/12 @1000 [aaaa1000 aaaa2000 aaaa3000]\n";
	uint64_t words[WORDS];
	struct heard h;

	(void)state;
	assert_string_equal(chain_of(STACK + 8, replaced, sizeof(words), &h), found);
	/* The copy may be shorter than its room, and the frame pointer may lead elsewhere. */
	assert_string_equal(chain_of(STACK + 8, replaced, 48, &h), found);
	assert_string_equal(chain_of(STACK + 8, replaced, 47, &h), plain);
	assert_string_equal(chain_of(STACK + 8, replaced, 0, &h), plain);
	assert_string_equal(chain_of(STACK + 8, replaced, UINT64_MAX, &h), found);
	assert_string_equal(chain_of(STACK, replaced, sizeof(words), &h), plain);
	assert_string_equal(chain_of(STACK - 8, replaced, sizeof(words), &h), plain);
	assert_string_equal(chain_of(UINT64_MAX, replaced, sizeof(words), &h), plain);
	assert_string_equal(chain_of(STACK + 96, replaced, sizeof(words), &h), plain);
	/* What stands behind the second link must be able to be code. */
	memcpy(words, replaced, sizeof(words));
	words[5] = 5;
	assert_string_equal(chain_of(STACK + 8, words, sizeof(words), &h), plain);
	words[5] = STACK + 0x100;
	assert_string_equal(chain_of(STACK + 8, words, sizeof(words), &h), plain);
	/* A chain that goes down or in a circle ends. */
	memcpy(words, replaced, sizeof(words));
	words[1] = STACK + 8;
	assert_string_equal(chain_of(STACK + 8, words, sizeof(words), &h), plain);
}

static void a_hidden_caller_is_found_from_the_kernel_too(void **state)
{
	struct bytes b = { .n = 0 };
	struct heard h;

	(void)state;
	put_stack_sample(&b, STACK + 8, replaced, sizeof(replaced), true);
	read_at(&b, 0, &h);
	assert_string_equal(h.text, "S 11/12 @1000 k [ffffffff81000010 ffffffff81000011 aaaa1000 "
				    "aaaa2000 80000000bbbb0001 aaaa3000]\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind),
		cmocka_unit_test(round_the_end_of_the_ring),
		cmocka_unit_test(wrong_lengths),
		cmocka_unit_test(contradictions),
		cmocka_unit_test(more_than_the_ring_holds),
		cmocka_unit_test(a_name_without_end),
		cmocka_unit_test(deep_stacks_keep_their_leaves),
		cmocka_unit_test(frames_of_the_kernel_come_first),
		cmocka_unit_test(a_hidden_caller_is_found),
		cmocka_unit_test(a_hidden_caller_is_found_from_the_kernel_too),
	};

	return cmocka_run_group_tests_name("perf_record", tests, NULL, NULL);
}
