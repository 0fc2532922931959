/* SPDX-License-Identifier: MIT */
#include "src/collect/pieces.h"

#include <string.h>

#include "analyzers/ranges.h"
#include "nettrace/arena.h"
#include "nettrace/idmap.h"
#include "nettrace/writer.h"

#define RUNDOWN_PROVIDER   "Microsoft-Windows-DotNETRuntimeRundown"
#define EVENTPIPE_PROVIDER "Microsoft-DotNETCore-EventPipe"

enum {
	MAX_METHODS = 1000000,
	MAX_ADDRESSES = 1000000, /* of one piece */
	NAMES_BYTES = 48 << 20,
	KEPT_BLOCKS_BYTES = 32 << 20,
	ROWS_BLOCK_BYTES = 100 * 1024,
	HELD = 8,
	FIRST_OWN_ID = 0x7f000000, /* metadata ids; the runtime counts from 1 */
};

/* Events of our own.  Versions of methods and modules are those of the events they are made from.
 */
enum own_event {
	OWN_BEGIN = 148, /* DCEndInit */
	OWN_METHOD = 144, /* MethodDCEndVerbose */
	OWN_MODULE = 154, /* ModuleDCEnd */
	OWN_RUNTIME = 187, /* RuntimeInformationDCStart */
	OWN_COMPLETE = 146, /* DCEndComplete */
	OWN_PROCESS = 1, /* ProcessInfo, of the other provider */
};

enum { MAX_VERSION = 3 };

/* Of event blocks: u16 size, u16 flags, u64 first time, u64 last time. */
enum { FIRST_TICKS_AT = 4, LAST_TICKS_AT = 12, ROWS_HEADER_BYTES = 20 };

/* An event's payload, kept to be written again. */
struct kept {
	const uint8_t *payload;
	uint32_t bytes;
	uint32_t version;
	uint64_t piece; /* the last one it was written to */
};

/* Blocks that every piece has to begin with. */
struct kept_blocks {
	uint8_t *bytes; /* u32 length, then the body, again and again */
	size_t count, room;
	bool full;
};

struct pieces {
	const struct nt_alloc *alloc;
	const struct pieces_output *output;
	void *ctx;
	uint64_t max_bytes;
	struct nt_writer writer;
	uint8_t trace_body[NT_TRACE_BODY_BYTES];
	bool begun, stopping, hold;
	bool asked; /* for names of this piece's code */
	struct nt_idmap nameless; /* addresses that stay without a name */
	uint64_t piece; /* number of the current one, from 1 */
	uint64_t last_ticks;
	struct kept_blocks definitions, stacks;
	/* names */
	struct nt_arena names;
	struct kept *kept;
	size_t kept_count, kept_room;
	struct an_ranges methods; /* value: index of kept */
	struct nt_idmap modules; /* module id -> index of kept */
	uint32_t runtime_info, process_info; /* index of kept; NT_IDMAP_NONE: none yet */
	struct nt_idmap addresses; /* in stacks of this piece and those before it that still live */
	uint64_t dropped;
	unsigned pointer_size;
	uint32_t sequence;
};

struct pieces *pieces_new(const struct nt_alloc *alloc, uint64_t max_bytes,
			  const struct pieces_output *output, void *ctx)
{
	struct pieces *p = alloc->realloc(alloc->ctx, NULL, sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct pieces){
		.alloc = alloc,
		.output = output,
		.ctx = ctx,
		.max_bytes = max_bytes,
		.runtime_info = NT_IDMAP_NONE,
		.process_info = NT_IDMAP_NONE,
		.pointer_size = 8,
	};
	nt_writer_init(&p->writer, alloc);
	nt_arena_init(&p->names, alloc, NAMES_BYTES);
	an_ranges_init(&p->methods, alloc, MAX_METHODS);
	nt_idmap_init(&p->modules, alloc);
	nt_idmap_init(&p->addresses, alloc);
	nt_idmap_init(&p->nameless, alloc);
	return p;
}

static void release(const struct nt_alloc *alloc, void *memory)
{
	if (memory)
		alloc->realloc(alloc->ctx, memory, 0);
}

struct pieces *pieces_free(struct pieces *p)
{
	if (!p)
		return NULL;
	nt_writer_done(&p->writer);
	nt_arena_done(&p->names);
	an_ranges_done(&p->methods);
	nt_idmap_done(&p->modules);
	nt_idmap_done(&p->addresses);
	nt_idmap_done(&p->nameless);
	release(p->alloc, p->definitions.bytes);
	release(p->alloc, p->stacks.bytes);
	release(p->alloc, p->kept);
	release(p->alloc, p);
	return NULL;
}

/* --- names --- */

/* A copy of the event's payload; NT_IDMAP_NONE in *ret when there is no room for it. */
static enum nt_status keep(struct pieces *p, const struct nt_event *ev, uint32_t *ret)
{
	struct kept *grown;
	char *copy;

	*ret = NT_IDMAP_NONE;
	if (ev->payload_bytes > UINT32_MAX || ev->version > MAX_VERSION) {
		p->dropped++;
		return NT_OK;
	}
	copy = nt_arena_text(&p->names, (const char *)ev->payload, ev->payload_bytes);
	if (!copy && !p->names.full)
		return NT_ENOMEM;
	if (!copy || p->kept_count == MAX_METHODS) {
		p->dropped++;
		return NT_OK;
	}
	if (p->kept_count == p->kept_room) {
		size_t room = p->kept_room ? p->kept_room * 2 : 1024;

		grown = p->alloc->realloc(p->alloc->ctx, p->kept, room * sizeof(*grown));
		if (!grown)
			return NT_ENOMEM;
		p->kept = grown;
		p->kept_room = room;
	}
	*ret = (uint32_t)p->kept_count;
	p->kept[p->kept_count++] = (struct kept){
		.payload = (const uint8_t *)copy,
		.bytes = (uint32_t)ev->payload_bytes,
		.version = ev->version,
	};
	return NT_OK;
}

/* Code at these addresses is this method from now on. */
static enum nt_status keep_method(struct pieces *p, const struct nt_event *ev)
{
	struct nt_value v[6];
	size_t n = nt_payload_read(ev, v, 6, NULL);
	uint64_t start = nt_value_u64(v, n, "MethodStartAddress", 0);
	uint64_t bytes = nt_value_u64(v, n, "MethodSize", 0);
	struct an_range range = { .start = start, .used = true, .whole = true };
	struct an_range *old;
	enum nt_status st;

	if (!start || !bytes || __builtin_add_overflow(start, bytes - 1, &range.last))
		return NT_OK;
	old = an_ranges_at(&p->methods, 0, start);
	if (old && old->start == start && old->last == range.last) {
		const struct kept *k = &p->kept[old->value];

		if (k->bytes == ev->payload_bytes && !memcmp(k->payload, ev->payload, k->bytes))
			return NT_OK;
	}
	st = keep(p, ev, &range.value);
	if (st != NT_OK || range.value == NT_IDMAP_NONE)
		return st;
	while ((old = an_ranges_first(&p->methods, 0, start, range.last)) != NULL)
		an_ranges_remove(&p->methods, old);
	st = an_ranges_add(&p->methods, &range);
	if (st == NT_ELIMIT) {
		p->dropped++;
		return NT_OK;
	}
	return st;
}

static enum nt_status keep_module(struct pieces *p, const struct nt_event *ev)
{
	struct nt_value v[1];
	size_t n = nt_payload_read(ev, v, 1, NULL);
	uint64_t id = nt_value_u64(v, n, "ModuleID", 0);
	uint32_t index;
	enum nt_status st;

	if (!id || nt_idmap_get(&p->modules, id) != NT_IDMAP_NONE)
		return NT_OK;
	st = keep(p, ev, &index);
	if (st != NT_OK || index == NT_IDMAP_NONE)
		return st;
	return nt_idmap_put(&p->modules, id, index);
}

static enum nt_status keep_once(struct pieces *p, const struct nt_event *ev, uint32_t *index)
{
	return *index == NT_IDMAP_NONE ? keep(p, ev, index) : NT_OK;
}

enum nt_status pieces_event(struct pieces *p, const struct nt_event *ev)
{
	bool rundown = ev->def->provider_id == NT_PROV_RUNDOWN;
	uint32_t id = ev->def->event_id;

	if (ev->def->provider_id == NT_PROV_EVENTPIPE)
		return id == 1 ? keep_once(p, ev, &p->process_info) : NT_OK;
	if (!rundown && ev->def->provider_id != NT_PROV_RUNTIME)
		return NT_OK;
	if (id == 143 || (rundown && id == 144))
		return keep_method(p, ev);
	if (rundown ? id == 153 || id == 154 : id == 152)
		return keep_module(p, ev);
	return id == 187 ? keep_once(p, ev, &p->runtime_info) : NT_OK;
}

/* --- blocks --- */

static enum nt_status keep_block(struct pieces *p, struct kept_blocks *k,
				 const struct nt_raw_block *block)
{
	size_t bytes = block->bytes + sizeof(uint32_t);
	uint32_t length = (uint32_t)block->bytes;

	if (bytes > KEPT_BLOCKS_BYTES - k->count) {
		k->full = true;
		return NT_ELIMIT;
	}
	if (bytes > k->room - k->count) {
		size_t room = (k->count + bytes) * 2;
		uint8_t *grown = p->alloc->realloc(p->alloc->ctx, k->bytes, room);

		if (!grown)
			return NT_ENOMEM;
		k->bytes = grown;
		k->room = room;
	}
	memcpy(k->bytes + k->count, &length, sizeof(length));
	memcpy(k->bytes + k->count + sizeof(length), block->body, block->bytes);
	k->count += bytes;
	return NT_OK;
}

static void write_kept(struct pieces *p, const struct kept_blocks *k, const char *name)
{
	size_t at = 0;

	while (at < k->count) {
		uint32_t length;

		memcpy(&length, k->bytes + at, sizeof(length));
		at += sizeof(length);
		nt_writer_object(&p->writer, name, k->bytes + at, length);
		at += length;
	}
}

static enum nt_status note_address(struct pieces *p, uint64_t addr)
{
	if (nt_idmap_get(&p->addresses, addr) != NT_IDMAP_NONE)
		return NT_OK;
	if (p->addresses.used >= MAX_ADDRESSES) {
		p->dropped++;
		return NT_OK;
	}
	return nt_idmap_put(&p->addresses, addr, 0);
}

static uint64_t load(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | p[n];
	return v;
}

/* The decoder has checked the block; u32 first id, u32 count, then size and addresses of each. */
static enum nt_status note_stacks(struct pieces *p, const uint8_t *body, size_t bytes)
{
	enum nt_status st = NT_OK;
	size_t at = 8;

	while (st == NT_OK && bytes >= 4 && at <= bytes - 4) {
		size_t size = (size_t)load(body + at, 4);

		at += 4;
		if (size > bytes - at)
			break;
		for (size_t i = 0; st == NT_OK && i + p->pointer_size <= size; i += p->pointer_size)
			/* Above the leaf stand return addresses: the call is before them. */
			st = note_address(p, load(body + at + i, p->pointer_size) - (i ? 1 : 0));
		at += size;
	}
	return st;
}

static enum nt_status note_kept_stacks(struct pieces *p)
{
	const struct kept_blocks *k = &p->stacks;
	enum nt_status st = NT_OK;

	for (size_t at = 0; st == NT_OK && at < k->count;) {
		uint32_t length;

		memcpy(&length, k->bytes + at, sizeof(length));
		st = note_stacks(p, k->bytes + at + sizeof(length), length);
		at += sizeof(length) + length;
	}
	return st;
}

static enum nt_status flush(struct pieces *p)
{
	if (p->writer.failed)
		return NT_ENOMEM;
	if (p->writer.count)
		p->output->write(p->ctx, p->writer.bytes, p->writer.count);
	nt_writer_take(&p->writer);
	return NT_OK;
}

static enum nt_status begin_piece(struct pieces *p)
{
	p->piece++;
	p->sequence = 0;
	p->asked = false;
	/* A new file: its padding counts from its own first byte. */
	p->writer.taken = 0;
	nt_idmap_clear(&p->addresses);
	nt_writer_begin(&p->writer, p->trace_body);
	write_kept(p, &p->definitions, "MetadataBlock");
	write_kept(p, &p->stacks, "StackBlock");
	p->begun = true;
	return note_kept_stacks(p);
}

/* --- the names at the end of a piece --- */

static uint32_t own_id(uint32_t event, uint32_t version)
{
	return FIRST_OWN_ID + event * (MAX_VERSION + 1) + version;
}

static void define_own(struct pieces *p)
{
	static const uint32_t events[] = { OWN_BEGIN, OWN_METHOD, OWN_MODULE, OWN_RUNTIME,
					   OWN_COMPLETE };
	enum { INFORMATIONAL = 4, KEYWORDS = 0x38 };

	nt_writer_open(&p->writer, "MetadataBlock");
	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
		for (uint32_t version = 0; version <= MAX_VERSION; version++)
			nt_writer_define(&p->writer, own_id(events[i], version), RUNDOWN_PROVIDER,
					 events[i], version, INFORMATIONAL, KEYWORDS);
	for (uint32_t version = 0; version <= MAX_VERSION; version++)
		nt_writer_define(&p->writer, own_id(OWN_PROCESS, version), EVENTPIPE_PROVIDER,
				 OWN_PROCESS, version, INFORMATIONAL, 0);
	nt_writer_close(&p->writer);
}

static void own_row(struct pieces *p, uint32_t event, uint32_t version, const void *payload,
		    size_t bytes)
{
	if (p->writer.row_bytes > ROWS_BLOCK_BYTES) {
		nt_writer_close(&p->writer);
		nt_writer_open(&p->writer, "EventBlock");
	}
	nt_writer_row(&p->writer, &(const struct nt_out_row){
					  .metadata_id = own_id(event, version),
					  .sequence = ++p->sequence,
					  .ticks = p->last_ticks,
					  .payload = payload,
					  .payload_bytes = bytes,
				  });
}

static void own_kept(struct pieces *p, uint32_t event, uint32_t index)
{
	struct kept *k;

	if (index == NT_IDMAP_NONE)
		return;
	k = &p->kept[index];
	if (k->piece == p->piece)
		return;
	k->piece = p->piece;
	own_row(p, event, k->version, k->payload, k->bytes);
}

static void write_names(struct pieces *p)
{
	static const uint8_t clr_instance[2] = { 0 };

	define_own(p);
	nt_writer_open(&p->writer, "EventBlock");
	own_kept(p, OWN_PROCESS, p->process_info);
	own_row(p, OWN_BEGIN, 1, clr_instance, sizeof(clr_instance));
	for (size_t i = 0; i < p->addresses.slots; i++) {
		const struct an_range *range;

		if (p->addresses.values[i] == NT_IDMAP_NONE)
			continue;
		range = an_ranges_at(&p->methods, 0, p->addresses.keys[i]);
		if (range)
			own_kept(p, OWN_METHOD, range->value);
	}
	for (size_t i = 0; i < p->modules.slots; i++)
		own_kept(p, OWN_MODULE, p->modules.values[i]);
	own_kept(p, OWN_RUNTIME, p->runtime_info);
	own_row(p, OWN_COMPLETE, 1, clr_instance, sizeof(clr_instance));
	nt_writer_close(&p->writer);
}

static enum nt_status end_piece(struct pieces *p, bool names)
{
	if (names)
		write_names(p);
	nt_writer_end(&p->writer);
	p->begun = false;
	return flush(p);
}

static bool is(const struct nt_raw_block *block, const char *name)
{
	return !strcmp(block->name, name);
}

static bool is_events(const struct nt_raw_block *block)
{
	return is(block, "EventBlock") && block->bytes >= ROWS_HEADER_BYTES;
}

static enum nt_status take_trace(struct pieces *p, const struct nt_raw_block *block)
{
	enum { POINTER_SIZE_AT = 32 };

	if (block->bytes != NT_TRACE_BODY_BYTES)
		return NT_EFORMAT;
	memcpy(p->trace_body, block->body, block->bytes);
	p->pointer_size = (unsigned)load(block->body + POINTER_SIZE_AT, 4);
	return NT_OK;
}

static enum nt_status note_block(struct pieces *p, const struct nt_raw_block *block)
{
	enum nt_status st;

	if (is(block, "MetadataBlock"))
		return keep_block(p, &p->definitions, block);
	if (is(block, "StackBlock")) {
		st = keep_block(p, &p->stacks, block);
		return st == NT_OK ? note_stacks(p, block->body, block->bytes) : st;
	}
	if (is(block, "SPBlock"))
		p->stacks.count = 0;
	if (is_events(block)) {
		uint64_t ticks = load(block->body + LAST_TICKS_AT, 8);

		if (ticks > p->last_ticks)
			p->last_ticks = ticks;
	}
	return NT_OK;
}

/* The next address of this piece, from slot *at on, that nothing names; false: no more. */
static bool next_unnamed(const struct pieces *p, size_t *at, uint64_t *ret)
{
	for (; *at < p->addresses.slots; ++*at) {
		uint64_t addr = p->addresses.keys[*at];

		if (p->addresses.values[*at] == NT_IDMAP_NONE ||
		    an_ranges_at(&p->methods, 0, addr) ||
		    nt_idmap_get(&p->nameless, addr) != NT_IDMAP_NONE)
			continue;
		++*at;
		*ret = addr;
		return true;
	}
	return false;
}

/*
 * Within one round of the runtime's flushing, threads come one after the other, each with its
 * times: a method may stand behind the samples of it.  Where a new round begins nothing older
 * follows; that is where to cut, unless it takes too long to come.
 */
static bool is_due(struct pieces *p, const struct nt_raw_block *block)
{
	uint64_t bytes = p->writer.taken + p->writer.count, addr;
	size_t at = 0;

	if (p->stopping || bytes < p->max_bytes || !is_events(block))
		return false;
	if (!p->asked && !p->hold) {
		p->asked = true;
		p->hold = p->output->unnamed && next_unnamed(p, &at, &addr) &&
			  p->output->unnamed(p->ctx);
	}
	bytes /= p->hold ? HELD : 1;
	if (bytes < p->max_bytes)
		return false;
	return load(block->body + FIRST_TICKS_AT, 8) >= p->last_ticks || bytes / 2 >= p->max_bytes;
}

static enum nt_status cut(struct pieces *p)
{
	enum nt_status st = end_piece(p, true);

	if (st != NT_OK)
		return st;
	p->output->next(p->ctx);
	return begin_piece(p);
}

enum nt_status pieces_block(struct pieces *p, const struct nt_raw_block *block)
{
	enum nt_status st = NT_OK;

	if (is(block, "Trace"))
		return take_trace(p, block);
	if (!p->begun)
		st = begin_piece(p);
	else if (is_due(p, block))
		st = cut(p);
	if (st == NT_OK)
		st = note_block(p, block);
	if (st != NT_OK)
		return st;
	nt_writer_object(&p->writer, block->name, block->body, block->bytes);
	return flush(p);
}

void pieces_hold(struct pieces *p, bool hold)
{
	size_t at = 0;
	uint64_t addr;

	/* Out of memory means that one is asked for again. */
	while (p->hold && !hold && p->nameless.used < MAX_ADDRESSES && next_unnamed(p, &at, &addr))
		if (nt_idmap_put(&p->nameless, addr, 0) != NT_OK)
			break;
	p->hold = hold;
}

void pieces_stopping(struct pieces *p)
{
	p->stopping = true;
}

enum nt_status pieces_finish(struct pieces *p, bool rundown)
{
	return p->begun ? end_piece(p, !rundown) : NT_OK;
}

uint64_t pieces_count(const struct pieces *p)
{
	return p->piece;
}

uint64_t pieces_dropped(const struct pieces *p)
{
	return p->dropped;
}
