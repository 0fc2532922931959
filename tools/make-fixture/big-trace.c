/* SPDX-License-Identifier: MIT */

/*
 * big-trace MEGABYTES < SMALL.nettrace > BIG.nettrace
 *
 * Makes a long trace from a short one (format 4, compressed headers): all that was recorded live is
 * repeated until the result has the wanted size, each time later and with sequence numbers that go
 * on, and the rundown follows once, at the end.  Events lost in the short trace leave no gap in the
 * long one.  The result is what a runtime could have written, so any reader takes it; it reads and
 * writes the format without the library, so that a fault of the library is not copied into it.
 *
 * Input is trusted: this is a tool for benchmarks, not a reader.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 4096, MAX_DEFS = 1 << 16, HEADER_BYTES = 20 };

static const char rundown[] = "Microsoft-Windows-DotNETRuntimeRundown";

/* The state of compressed headers; all zero where a block starts (nettrace/README.md). */
struct row {
	uint32_t def, sequence, processor, stack, payload_bytes;
	uint64_t capture_thread, thread, ticks;
	uint8_t activity[16], related[16];
	bool sorted;
	const uint8_t *payload;
};

struct thread {
	uint64_t id;
	uint32_t written; /* sequence number of the last event written */
};

struct buffer {
	uint8_t *data;
	size_t size, cap;
};

struct maker {
	const uint8_t *in;
	size_t in_size;
	size_t objects; /* where the first block starts */
	bool is_rundown[MAX_DEFS];
	struct thread threads[MAX_THREADS];
	size_t thread_count;
	uint64_t first_ticks, last_ticks; /* of the input */
	bool last_pass, first_pass;
	uint64_t shift; /* ticks to add in this pass */
	uint64_t written; /* bytes */
	struct buffer block;
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("big-trace: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static void put(struct buffer *b, const void *data, size_t size)
{
	if (b->cap - b->size < size) {
		b->cap = (b->cap + size) * 2;
		b->data = realloc(b->data, b->cap);
		if (!b->data)
			die("out of memory");
	}
	if (size)
		memcpy(b->data + b->size, data, size);
	b->size += size;
}

static void put_varint(struct buffer *b, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	do {
		bytes[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
		v >>= 7;
	} while (v);
	put(b, bytes, n);
}

static uint64_t get_varint(const uint8_t **p, const uint8_t *end)
{
	uint64_t v = 0;

	for (unsigned shift = 0; *p < end && shift < 70; shift += 7) {
		uint8_t byte = *(*p)++;

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	die("bad number in an event header");
}

static uint32_t u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void emit(struct maker *m, const void *data, size_t size)
{
	if (size && fwrite(data, 1, size, stdout) != size)
		die("cannot write");
	m->written += size;
}

/* Writes m->block as a block object of that name. */
static void emit_block(struct maker *m, const char *name)
{
	static const uint8_t zeros[4];
	uint32_t words[3] = { 2, 2, (uint32_t)strlen(name) };
	uint32_t size = (uint32_t)m->block.size;

	emit(m, "\5\5\1", 3);
	emit(m, words, sizeof(words));
	emit(m, name, strlen(name));
	emit(m, "\6", 1);
	emit(m, &size, sizeof(size));
	emit(m, zeros, (4 - m->written % 4) % 4);
	emit(m, m->block.data, m->block.size);
	emit(m, "\6", 1);
	m->block.size = 0;
}

static struct thread *thread_of(struct maker *m, uint64_t id)
{
	for (size_t i = 0; i < m->thread_count; i++) {
		if (m->threads[i].id == id)
			return &m->threads[i];
	}
	if (m->thread_count == MAX_THREADS)
		die("more than %d threads", MAX_THREADS);
	m->threads[m->thread_count] = (struct thread){ .id = id };
	return &m->threads[m->thread_count++];
}

/* Reads one row of an event or metadata block. */
static void get_row(struct row *r, const uint8_t **p, const uint8_t *end)
{
	uint8_t flags = *(*p)++;

	if (flags & 0x01)
		r->def = (uint32_t)get_varint(p, end);
	if (flags & 0x02) {
		r->sequence += (uint32_t)get_varint(p, end) + 1;
		r->capture_thread = get_varint(p, end);
		r->processor = (uint32_t)get_varint(p, end);
	} else if (r->def != 0) {
		r->sequence++;
	}
	if (flags & 0x04)
		r->thread = get_varint(p, end);
	if (flags & 0x08)
		r->stack = (uint32_t)get_varint(p, end);
	r->ticks += get_varint(p, end);
	for (int i = 0; i < 2; i++) {
		if (flags & (0x10 << i)) {
			if (end - *p < 16)
				die("an event header runs past its block");
			memcpy(i ? r->related : r->activity, *p, 16);
			*p += 16;
		}
	}
	r->sorted = flags & 0x40;
	if (flags & 0x80)
		r->payload_bytes = (uint32_t)get_varint(p, end);
	if (r->payload_bytes > (size_t)(end - *p))
		die("a payload runs past its block");
	r->payload = *p;
	*p += r->payload_bytes;
}

/* Writes a row; old is the one before it in the same block. */
static void put_row(struct buffer *b, const struct row *old, const struct row *r)
{
	bool run = old->capture_thread != r->capture_thread || old->processor != r->processor ||
		   old->sequence + 1 != r->sequence;
	uint8_t flags = (uint8_t)((r->def != old->def ? 0x01 : 0) | (run ? 0x02 : 0) |
				  (r->thread != old->thread ? 0x04 : 0) |
				  (r->stack != old->stack ? 0x08 : 0) |
				  (memcmp(r->activity, old->activity, 16) ? 0x10 : 0) |
				  (memcmp(r->related, old->related, 16) ? 0x20 : 0) |
				  (r->sorted ? 0x40 : 0) |
				  (r->payload_bytes != old->payload_bytes ? 0x80 : 0));

	put(b, &flags, 1);
	if (flags & 0x01)
		put_varint(b, r->def);
	if (flags & 0x02) {
		put_varint(b, r->sequence - old->sequence - 1);
		put_varint(b, r->capture_thread);
		put_varint(b, r->processor);
	}
	if (flags & 0x04)
		put_varint(b, r->thread);
	if (flags & 0x08)
		put_varint(b, r->stack);
	put_varint(b, r->ticks - old->ticks);
	if (flags & 0x10)
		put(b, r->activity, 16);
	if (flags & 0x20)
		put(b, r->related, 16);
	if (flags & 0x80)
		put_varint(b, r->payload_bytes);
	put(b, r->payload, r->payload_bytes);
}

static void event_block(struct maker *m, const uint8_t *p, size_t size)
{
	const uint8_t *end = p + size, *body = p + (p[0] | p[1] << 8);
	struct row r = { 0 }, old = { 0 };
	uint64_t range[2] = { u64(p + 4) + m->shift, u64(p + 12) + m->shift };
	uint8_t header[4] = { HEADER_BYTES, 0, 1, 0 };
	bool any = false;

	if (!(p[2] & 1))
		die("event headers are not compressed");
	put(&m->block, header, sizeof(header));
	put(&m->block, range, sizeof(range));
	while (body < end) {
		struct row out;

		get_row(&r, &body, end);
		if (m->is_rundown[r.def] && !m->last_pass)
			continue;
		out = r;
		out.ticks = r.ticks + m->shift;
		out.sequence = ++thread_of(m, r.capture_thread)->written;
		/* A block's first event may belong to a run whose sorted event is left out. */
		put_row(&m->block, any ? &old : &(struct row){ 0 }, &out);
		old = out;
		any = true;
	}
	if (any)
		emit_block(m, "EventBlock");
	m->block.size = 0;
}

static void sequence_point(struct maker *m, const uint8_t *p)
{
	uint64_t ticks = u64(p) + m->shift;
	uint32_t count = u32(p + 8);

	put(&m->block, &ticks, sizeof(ticks));
	put(&m->block, &count, sizeof(count));
	for (uint32_t i = 0; i < count; i++) {
		uint64_t id = u64(p + 12 + 12 * (size_t)i);

		put(&m->block, &id, sizeof(id));
		put(&m->block, &thread_of(m, id)->written, sizeof(uint32_t));
	}
	emit_block(m, "SPBlock");
}

/* Which metadata ids belong to the rundown provider: its name follows the id in each payload. */
static void learn_definitions(struct maker *m, const uint8_t *p, size_t size)
{
	const uint8_t *end = p + size, *body = p + (p[0] | p[1] << 8);
	struct row r = { 0 };

	while (body < end) {
		bool same = true;

		get_row(&r, &body, end);
		if (u32(r.payload) >= MAX_DEFS)
			die("more than %d definitions", MAX_DEFS);
		for (size_t i = 0; i < sizeof(rundown) && same; i++)
			same = r.payload[4 + 2 * i] == (uint8_t)rundown[i];
		m->is_rundown[u32(r.payload)] = same;
	}
}

static void learn_times(struct maker *m, const uint8_t *p)
{
	uint64_t from = u64(p + 4), to = u64(p + 12);

	if (m->first_ticks == 0 || from < m->first_ticks)
		m->first_ticks = from;
	if (to > m->last_ticks)
		m->last_ticks = to;
}

/* Walks all blocks once: to learn (learn true), or to write them. */
static void pass(struct maker *m, bool learn)
{
	size_t at = m->objects;

	while (at < m->in_size && m->in[at] == 5) {
		const char *name = (const char *)m->in + at + 15;
		uint32_t name_size = u32(m->in + at + 11), size;
		const uint8_t *body;

		at += 15 + name_size + 1;
		size = u32(m->in + at);
		at += 4;
		at += (4 - at % 4) % 4;
		if (at > m->in_size || size > m->in_size - at)
			die("the trace is cut");
		body = m->in + at;
		at += size + 1;
		if (learn) {
			if (!strncmp(name, "MetadataBlock", name_size))
				learn_definitions(m, body, size);
			else if (!strncmp(name, "EventBlock", name_size))
				learn_times(m, body);
		} else if (!strncmp(name, "EventBlock", name_size)) {
			event_block(m, body, size);
		} else if (!strncmp(name, "SPBlock", name_size)) {
			sequence_point(m, body);
		} else if (!strncmp(name, "StackBlock", name_size)) {
			put(&m->block, body, size);
			emit_block(m, "StackBlock");
		} else if (m->first_pass) {
			put(&m->block, body, size);
			emit_block(m, "MetadataBlock");
		}
	}
}

static void read_all(struct buffer *b)
{
	static uint8_t chunk[1 << 16];
	size_t n;

	while ((n = fread(chunk, 1, sizeof(chunk), stdin)) > 0)
		put(b, chunk, n);
	if (ferror(stdin))
		die("cannot read");
}

int main(int argc, char **argv)
{
	static struct maker m;
	struct buffer in = { 0 };
	uint64_t wanted, start;
	char *end;

	if (argc != 2)
		die("usage: big-trace MEGABYTES < SMALL.nettrace > BIG.nettrace");
	wanted = strtoull(argv[1], &end, 10) * 1000000;
	if (*end || wanted == 0)
		die("'%s' is no number of megabytes", argv[1]);
	read_all(&in);
	if (in.size < 101 || memcmp(in.data, "Nettrace\24\0\0\0!FastSerialization.1\5\5\1\4", 36))
		die("not a nettrace file of format 4");
	m.in = in.data;
	m.in_size = in.size;
	m.objects = 32 + 15 + 5 + 1 + 48 + 1; /* the Trace object has a fixed size */
	pass(&m, true);
	emit(&m, m.in, m.objects);
	m.first_pass = true;
	for (bool done = false; !done; m.first_pass = false) {
		start = m.written;
		pass(&m, false);
		m.shift += m.last_ticks - m.first_ticks + 1;
		done = m.last_pass;
		m.last_pass = m.written + (m.written - start) >= wanted;
	}
	emit(&m, "\1", 1);
	if (fflush(stdout) != 0)
		die("cannot write");
	free(m.block.data);
	free(in.data);
	return 0;
}
