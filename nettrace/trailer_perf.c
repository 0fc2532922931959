/* SPDX-License-Identifier: MIT */
#include "nettrace/trailer_perf.h"

#include <string.h>

enum { FLAG_KERNEL_TIME = 1 };

/* Also where the difference is more than half of what 64 bits hold: both sides count modulo that.
 */
static int64_t step(uint64_t to, uint64_t from)
{
	return (int64_t)(to - from);
}

/* --- writing --- */

static void save_info(const struct nt_perf *p, struct nt_trailer *to)
{
	const struct nt_perf_info *i = &p->info;
	const uint64_t numbers[] = {
		i->start_ns, i->end_ns,	 i->period_ns,
		i->unit_ns,  i->lost,	 i->throttled,
		i->no_stack, i->dropped, i->kernel_time ? FLAG_KERNEL_TIME : 0
	};

	nt_trailer_begin(to, NT_TRAILER_PERF_INFO);
	for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
		nt_trailer_varuint(to, numbers[k]);
	nt_trailer_end(to);
}

static void save_threads(const struct nt_perf *p, struct nt_trailer *to)
{
	nt_trailer_begin(to, NT_TRAILER_PERF_THREAD);
	nt_trailer_varuint(to, p->thread_count);
	for (size_t i = 0; i < p->thread_count; i++) {
		nt_trailer_varuint(to, p->threads[i].id);
		nt_trailer_text(to, p->threads[i].name, strlen(p->threads[i].name));
	}
	nt_trailer_end(to);
}

static void save_stacks(const struct nt_perf *p, struct nt_trailer *to)
{
	uint64_t address = 0;

	nt_trailer_begin(to, NT_TRAILER_PERF_STACK);
	nt_trailer_varuint(to, p->node_count - 1);
	for (size_t i = 1; i < p->node_count; i++) {
		nt_trailer_varuint(to, i - p->nodes[i].caller);
		nt_trailer_varint(to, step(p->nodes[i].address, address));
		address = p->nodes[i].address;
	}
	nt_trailer_end(to);
}

static void save_samples(const struct nt_perf *p, struct nt_trailer *to)
{
	uint64_t time = 0, node = 0;

	nt_trailer_begin(to, NT_TRAILER_PERF_SAMPLE);
	nt_trailer_varuint(to, p->row_count);
	for (size_t i = 0; i < p->row_count; i++) {
		const struct nt_perf_row *row = &p->rows[i];

		nt_trailer_varuint(to, row->time - time);
		nt_trailer_varuint(to, row->thread);
		nt_trailer_varint(to, step(row->node, node));
		nt_trailer_varuint(to, row->count);
		time = row->time;
		node = row->node;
	}
	nt_trailer_end(to);
}

static void save_mappings(const struct nt_perf *p, struct nt_trailer *to)
{
	uint64_t start = 0;

	nt_trailer_begin(to, NT_TRAILER_PERF_MAPPING);
	nt_trailer_varuint(to, p->mapping_count);
	for (size_t i = 0; i < p->mapping_count; i++) {
		const struct nt_perf_mapping *m = &p->mappings[i];

		nt_trailer_varint(to, step(m->start, start));
		nt_trailer_varuint(to, m->last - m->start);
		nt_trailer_varuint(to, m->offset);
		nt_trailer_text(to, m->file, strlen(m->file));
		nt_trailer_text(to, m->build_id, m->build_id_bytes);
		start = m->start;
	}
	nt_trailer_end(to);
}

/* A mapping of that file, counted from 1; looks at the one before first, as symbols come by file.
 */
static size_t mapping_of(const struct nt_perf *p, const char *file, size_t before)
{
	if (before && strcmp(p->mappings[before - 1].file, file) == 0)
		return before;
	for (size_t i = 0; i < p->mapping_count; i++)
		if (strcmp(p->mappings[i].file, file) == 0)
			return i + 1;
	return 0;
}

static void save_symbols(const struct nt_perf *p, struct nt_trailer *to)
{
	uint64_t start = 0;
	size_t mapping = 0;

	nt_trailer_begin(to, NT_TRAILER_PERF_SYMBOL);
	nt_trailer_varuint(to, p->symbol_count);
	for (size_t i = 0; i < p->symbol_count; i++) {
		const struct nt_perf_symbol *s = &p->symbols[i];

		mapping = mapping_of(p, s->file, mapping);
		nt_trailer_varuint(to, mapping);
		nt_trailer_varint(to, step(s->start, start));
		nt_trailer_varuint(to, s->last - s->start);
		nt_trailer_text(to, s->name, strlen(s->name));
		start = s->start;
	}
	nt_trailer_end(to);
}

void nt_perf_save(const struct nt_perf *p, struct nt_trailer *to)
{
	save_info(p, to);
	save_threads(p, to);
	save_stacks(p, to);
	save_samples(p, to);
	save_mappings(p, to);
	save_symbols(p, to);
}

/* --- reading --- */

static enum nt_status load_info(struct nt_perf *p, struct nt_span *s)
{
	struct nt_perf_info i = { .start_ns = nt_varuint64(s) };
	uint64_t flags;

	i.end_ns = nt_varuint64(s);
	i.period_ns = nt_varuint64(s);
	i.unit_ns = nt_varuint64(s);
	i.lost = nt_varuint64(s);
	i.throttled = nt_varuint64(s);
	i.no_stack = nt_varuint64(s);
	i.dropped = nt_varuint64(s);
	flags = nt_varuint64(s);
	i.kernel_time = flags & FLAG_KERNEL_TIME;
	if (s->bad || !i.unit_ns)
		return NT_EFORMAT;
	p->info = i;
	return NT_OK;
}

static enum nt_status load_thread(struct nt_perf *p, struct nt_span *s)
{
	uint64_t id = nt_varuint64(s);
	struct nt_span name = nt_trailer_take_text(s);
	size_t before = p->thread_count;
	enum nt_status st;
	uint32_t index;

	if (s->bad)
		return NT_EFORMAT;
	st = nt_perf_thread(p, id, &index);
	if (st == NT_ELIMIT || (st == NT_OK && p->thread_count == before))
		return NT_EFORMAT;
	if (st == NT_OK)
		nt_perf_name_thread(p, index, (const char *)name.cur, nt_left(&name));
	return st;
}

/* What the entry before said. */
struct last {
	uint64_t time, node, address, start;
};

static enum nt_status load_node(struct nt_perf *p, struct nt_span *s, struct last *last)
{
	uint64_t back = nt_varuint64(s);
	int64_t by = nt_varint64(s);
	enum nt_status st;

	if (s->bad || !back || back > p->node_count)
		return NT_EFORMAT;
	last->address += (uint64_t)by;
	st = nt_perf_add_node(p, (uint32_t)(p->node_count - back), last->address);
	return st == NT_ELIMIT ? NT_EFORMAT : st;
}

static enum nt_status load_sample(struct nt_perf *p, struct nt_span *s, struct last *last)
{
	uint64_t by = nt_varuint64(s), thread = nt_varuint64(s);
	int64_t node_by = nt_varint64(s);
	uint64_t count = nt_varuint64(s);

	last->node += (uint64_t)node_by;
	if (s->bad || __builtin_add_overflow(last->time, by, &last->time) ||
	    thread >= p->thread_count || last->node >= p->node_count || !count ||
	    count > NT_PERF_MAX_COUNT || p->row_count >= NT_PERF_MAX_ROWS ||
	    count > NT_PERF_MAX_COUNT - p->samples)
		return NT_EFORMAT;
	return nt_perf_add_row(p, &(const struct nt_perf_row){ .time = last->time,
							       .thread = (uint32_t)thread,
							       .node = (uint32_t)last->node,
							       .count = (uint32_t)count });
}

static enum nt_status load_mapping(struct nt_perf *p, struct nt_span *s, struct last *last)
{
	int64_t by = nt_varint64(s);
	uint64_t more = nt_varuint64(s);
	struct nt_perf_mapping m = { .offset = nt_varuint64(s) };
	struct nt_span file = nt_trailer_take_text(s), id = nt_trailer_take_text(s);

	last->start += (uint64_t)by;
	m.start = last->start;
	if (s->bad || nt_left(&id) > sizeof(m.build_id) ||
	    __builtin_add_overflow(m.start, more, &m.last))
		return NT_EFORMAT;
	m.file = (const char *)file.cur;
	m.build_id_bytes = (uint8_t)nt_left(&id);
	memcpy(m.build_id, id.cur, m.build_id_bytes);
	return nt_perf_map(p, &m, nt_left(&file));
}

static enum nt_status load_symbol(struct nt_perf *p, struct nt_span *s, struct last *last)
{
	uint64_t mapping = nt_varuint64(s);
	int64_t by = nt_varint64(s);
	uint64_t more = nt_varuint64(s), end;
	struct nt_span name = nt_trailer_take_text(s);
	const char *file;

	last->start += (uint64_t)by;
	if (s->bad || mapping > p->mapping_count || __builtin_add_overflow(last->start, more, &end))
		return NT_EFORMAT;
	file = mapping ? p->mappings[mapping - 1].file : "";
	return nt_perf_symbol(p, last->start, end, file, strlen(file), (const char *)name.cur,
			      nt_left(&name));
}

static enum nt_status load_entry(struct nt_perf *p, uint32_t kind, struct nt_span *s,
				 struct last *last)
{
	switch (kind) {
	case NT_TRAILER_PERF_THREAD:
		return load_thread(p, s);
	case NT_TRAILER_PERF_STACK:
		return load_node(p, s, last);
	case NT_TRAILER_PERF_SAMPLE:
		return load_sample(p, s, last);
	case NT_TRAILER_PERF_MAPPING:
		return load_mapping(p, s, last);
	default:
		return load_symbol(p, s, last);
	}
}

enum nt_status nt_perf_load(struct nt_perf *p, const struct nt_trailer_record *r)
{
	struct last last = { 0 };
	struct nt_span s = r->body;
	enum nt_status st = NT_OK;
	uint64_t count;

	if (r->kind == NT_TRAILER_PERF_INFO)
		return load_info(p, &s);
	if (r->kind < NT_TRAILER_PERF_INFO || r->kind > NT_TRAILER_PERF_THREAD)
		return NT_OK;
	count = nt_varuint64(&s);
	for (uint64_t i = 0; i < count && st == NT_OK; i++)
		st = load_entry(p, r->kind, &s, &last);
	return s.bad ? NT_EFORMAT : st;
}
