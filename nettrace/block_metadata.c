/* SPDX-License-Identifier: MIT */
/* Event definitions: metadata payloads of V3 to "V5" (nettrace.md §4.1), metadata rows of V6
 * (§4.2). */
#include "nettrace/decoder.h"
#include "nettrace/runtime_events.h"

#include <stdio.h>
#include <string.h>

enum { SMALL_IDS = 1 << 16, NAME_ROOM = 32 };

enum { TAG_OPCODE = 1, TAG_V2_PARAMS = 2 };

enum optional_kind {
	OPT_OPCODE = 1,
	OPT_KEYWORDS = 3,
	OPT_TEMPLATE = 4,
	OPT_DESCRIPTION = 5,
	OPT_PAIR = 6,
	OPT_GUID = 7,
	OPT_LEVEL = 8,
	OPT_VERSION = 9,
};

static uint64_t hash_bytes(const uint8_t *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

struct nt_event_def *nt_find_def(struct nt_decoder *d, uint32_t metadata_id)
{
	uint32_t i;

	if (metadata_id < d->def_by_id_count)
		return d->def_by_id[metadata_id];
	i = nt_idmap_get(&d->def_by_big_id, metadata_id);
	return i == NT_IDMAP_NONE ? NULL : d->defs[i];
}

void nt_forget_metadata_ids(struct nt_decoder *d)
{
	if (d->def_by_id_count)
		memset(d->def_by_id, 0, d->def_by_id_count * sizeof(*d->def_by_id));
	nt_idmap_clear(&d->def_by_big_id);
}

static enum nt_status map_id(struct nt_decoder *d, struct nt_event_def *def)
{
	uint32_t id = def->metadata_id;

	if (id >= SMALL_IDS)
		return nt_idmap_put(&d->def_by_big_id, id, (uint32_t)def->index);
	if (id >= d->def_by_id_count) {
		size_t want = d->def_by_id_count ? d->def_by_id_count : 64;
		struct nt_event_def **grown;

		while (want <= id)
			want *= 2;
		grown = d->alloc->realloc(d->alloc->ctx, d->def_by_id, want * sizeof(*grown));
		if (!grown)
			return NT_ENOMEM;
		memset(grown + d->def_by_id_count, 0, (want - d->def_by_id_count) * sizeof(*grown));
		d->def_by_id = grown;
		d->def_by_id_count = want;
	}
	d->def_by_id[id] = def;
	return NT_OK;
}

static struct nt_event_def *add_def(struct nt_decoder *d, uint64_t hash)
{
	size_t room = d->def_room;
	struct nt_event_def *def;
	struct nt_event_def **defs;
	uint64_t *hashes;

	if (d->def_count >= d->limits.max_ids) {
		nt_fail(d, NT_ELIMIT, NULL, "more event definitions than the limit");
		return NULL;
	}
	def = nt_arena_array(&d->defs_arena, 1, sizeof(*def));
	if (!def) {
		nt_fail_arena(d, &d->defs_arena, "event definitions exceed the limit of memory");
		return NULL;
	}
	defs = nt_grow(d->alloc, d->defs, d->def_count, &room, sizeof(*defs));
	if (defs)
		d->defs = defs;
	room = d->def_room;
	hashes = defs ? nt_grow(d->alloc, d->def_hashes, d->def_count, &room, sizeof(*hashes))
		      : NULL;
	if (!hashes) {
		nt_fail_nomem(d);
		return NULL;
	}
	d->def_hashes = hashes;
	d->def_room = room;
	d->def_hashes[d->def_count] = hash;
	def->index = d->def_count;
	d->defs[d->def_count++] = def;
	return def;
}

/* One copy of each provider's name; there are few providers and many events of each. */
static const char *intern_provider(struct nt_decoder *d, const char *name)
{
	for (size_t i = d->def_count, seen = 0; i-- && seen < 64; seen++)
		if (d->defs[i]->provider && !strcmp(d->defs[i]->provider, name))
			return d->defs[i]->provider;
	return name;
}

/* The rule for names: the stream's, else the table's, else the number ("Event names", README.md).
 */
static const char *name_event(struct nt_decoder *d, const struct nt_event_def *def,
			      const char *name)
{
	char text[NAME_ROOM];
	const char *known;
	int n;

	if (name && *name)
		return name;
	known = nt_table_name(def->provider_id, def->event_id);
	if (known)
		return known;
	n = snprintf(text, sizeof(text), "Event%u", def->event_id);
	return nt_arena_text(&d->defs_arena, text, (size_t)n);
}

/* Where both describe an event its metadata wins, unless that is known to be wrong. */
static enum nt_status choose_layout(struct nt_decoder *d, struct nt_event_def *def)
{
	const struct nt_field *fields = NULL;
	size_t count = 0;
	bool known = false;
	enum nt_status st;

	if (def->field_count && !nt_table_overrides(def->provider_id, def->event_id)) {
		def->layout = NT_LAYOUT_METADATA;
		return NT_OK;
	}
	st = nt_table_layout(&d->defs_arena, def->provider_id, def->event_id, def->version, &fields,
			     &count, &known);
	if (st != NT_OK)
		return nt_fail_arena(d, &d->defs_arena,
				     "event definitions exceed the limit of memory");
	if (known) {
		def->layout = NT_LAYOUT_TABLE;
		def->fields = fields;
		def->field_count = count;
	} else if (def->field_count) {
		def->layout = NT_LAYOUT_METADATA;
	}
	return NT_OK;
}

static enum nt_status tell_sink(struct nt_decoder *d, struct nt_event_def *def)
{
	enum nt_status st = d->sink->define ? d->sink->define(d->ctx, def) : NT_OK;

	if (st == NT_OK && d->sink->any_time)
		def->any_time = d->sink->any_time(d->ctx, def);
	return st;
}

static enum nt_status publish(struct nt_decoder *d, struct nt_event_def *def, const char *provider,
			      const char *name)
{
	enum nt_status st;

	def->provider_id = nt_provider_find(provider);
	def->provider = intern_provider(d, provider);
	def->name = name_event(d, def, name);
	if (!def->name)
		return nt_fail_arena(d, &d->defs_arena,
				     "event definitions exceed the limit of memory");
	st = choose_layout(d, def);
	if (st != NT_OK)
		return st;
	if (map_id(d, def) < 0 ||
	    nt_idmap_put(&d->def_by_hash, d->def_hashes[def->index], (uint32_t)def->index) < 0)
		return nt_fail_nomem(d);
	return tell_sink(d, def);
}

struct nt_event_def *nt_undefined_def(struct nt_decoder *d, uint32_t metadata_id)
{
	uint32_t i = nt_idmap_get(&d->undefined, metadata_id);
	struct nt_event_def *def;
	enum nt_status st;

	if (i != NT_IDMAP_NONE)
		return d->defs[i];
	def = add_def(d, 0);
	if (!def)
		return NULL;
	def->metadata_id = metadata_id;
	def->event_id = metadata_id;
	def->provider = "";
	def->name = name_event(d, def, NULL);
	if (!def->name) {
		nt_fail_arena(d, &d->defs_arena, "event definitions exceed the limit of memory");
		return NULL;
	}
	if (nt_idmap_put(&d->undefined, metadata_id, (uint32_t)def->index) < 0) {
		nt_fail_nomem(d);
		return NULL;
	}
	st = tell_sink(d, def);
	return nt_settle(d, st) == NT_OK ? def : NULL;
}

/*
 * Whether these bytes defined an event before.  After a flush the same definition comes again
 * under a new or the old id; one copy of it serves for the whole stream.
 */
static struct nt_event_def *find_same(struct nt_decoder *d, uint64_t hash, uint32_t metadata_id)
{
	uint32_t i = nt_idmap_get(&d->def_by_hash, hash);

	return i != NT_IDMAP_NONE && d->defs[i]->metadata_id == metadata_id ? d->defs[i] : NULL;
}

/* at: where the definition is. */
static enum nt_status check_new(struct nt_decoder *d, const uint8_t *at, uint32_t id, uint64_t hash,
				bool *ret_again)
{
	struct nt_event_def *same = find_same(d, hash, id);
	struct nt_event_def *old = nt_find_def(d, id);

	*ret_again = same != NULL;
	if (old && old != same)
		return nt_fail(d, NT_EFORMAT, at, "metadata id is defined a second time");
	if (same && !old && map_id(d, same) < 0)
		return nt_fail_nomem(d);
	return NT_OK;
}

/* --- V3 to V5 --- */

static char *read_text16(struct nt_decoder *d, struct nt_span *s)
{
	const uint8_t *start = s->cur;
	size_t bytes;
	char *text;

	while (!s->bad && nt_u16(s))
		;
	if (s->bad)
		return NULL;
	bytes = (size_t)(s->cur - start) - 2;
	text = nt_arena_get(&d->defs_arena, bytes / 2 * 3 + 1);
	if (text)
		text[nt_utf16_to_utf8(start, bytes, text, bytes / 2 * 3)] = '\0';
	return text;
}

/* A field list that makes no sense leaves the event without fields; it is not a fault. */
static enum nt_status read_fields(struct nt_decoder *d, struct nt_span *s,
				  enum nt_field_grammar grammar, bool universal, uint32_t count,
				  struct nt_event_def *def)
{
	const struct nt_field *fields;
	size_t n;
	enum nt_status st =
		nt_read_fields(&d->defs_arena, s, grammar, universal, count, &fields, &n);

	if (st == NT_EFORMAT) {
		d->stats.bad_definitions++;
		def->field_count = 0;
		return NT_OK;
	}
	if (st != NT_OK)
		return nt_fail_arena(d, &d->defs_arena,
				     "event definitions exceed the limit of memory");
	def->fields = fields;
	def->field_count = n;
	return NT_OK;
}

static enum nt_status read_tags(struct nt_decoder *d, struct nt_span *s, struct nt_event_def *def)
{
	enum nt_status st = NT_OK;

	while (st == NT_OK && nt_left(s) >= 5) {
		size_t bytes = nt_u32(s);
		uint8_t kind = nt_u8(s);
		struct nt_span tag = nt_sub(s, bytes);

		if (tag.bad)
			break;
		if (kind == TAG_OPCODE)
			def->opcode = nt_u8(&tag);
		else if (kind == TAG_V2_PARAMS)
			st = read_fields(d, &tag, NT_FIELDS_V2, false, nt_u32(&tag), def);
	}
	if (s->bad || nt_left(s))
		d->stats.bad_definitions++;
	return st;
}

enum nt_status nt_read_definition(struct nt_decoder *d, struct nt_span s)
{
	const uint8_t *start = s.cur;
	uint64_t hash = hash_bytes(start, nt_left(&s));
	uint32_t id = nt_u32(&s);
	struct nt_event_def *def;
	const char *provider, *name;
	enum nt_status st;
	bool again;

	if (s.bad)
		return nt_fail_span(d, &s, "event definition ends too early");
	st = check_new(d, start, id, hash, &again);
	if (st != NT_OK || again)
		return st;
	def = add_def(d, hash);
	if (!def)
		return d->status;
	def->defined = true;
	def->metadata_id = id;
	provider = read_text16(d, &s);
	def->event_id = nt_u32(&s);
	name = read_text16(d, &s);
	def->keywords = nt_u64(&s);
	def->version = nt_u32(&s);
	def->level = nt_u32(&s);
	if (s.bad) {
		d->def_count--;
		return nt_fail_span(d, &s, "event definition ends too early");
	}
	if (!provider || !name) {
		d->def_count--;
		return nt_fail_arena(d, &d->defs_arena,
				     "event definitions exceed the limit of memory");
	}
	if (nt_left(&s) >= 4) {
		uint32_t count = nt_u32(&s);

		st = read_fields(d, &s, NT_FIELDS_V1, false, count, def);
		if (st == NT_OK && !s.bad && (def->field_count || !count))
			st = read_tags(d, &s, def);
	} else if (nt_left(&s)) {
		d->stats.bad_definitions++;
	}
	return st == NT_OK ? publish(d, def, provider, name) : st;
}

/* --- V6 --- */

static const char *read_text8(struct nt_decoder *d, struct nt_span *s)
{
	size_t bytes;
	const uint8_t *p = nt_str6(s, &bytes);

	return p ? nt_arena_text(&d->defs_arena, (const char *)p, bytes) : NULL;
}

/* Entries of unknown kinds have no length, so the row's other options are lost with them. */
static void read_options(struct nt_decoder *d, struct nt_span *s, struct nt_event_def *def)
{
	size_t bytes;

	while (nt_left(s)) {
		switch (nt_u8(s)) {
		case OPT_OPCODE:
			def->opcode = nt_u8(s);
			break;
		case OPT_KEYWORDS:
			def->keywords = nt_u64(s);
			break;
		case OPT_TEMPLATE:
		case OPT_DESCRIPTION:
			nt_str6(s, &bytes);
			break;
		case OPT_PAIR:
			nt_str6(s, &bytes);
			nt_str6(s, &bytes);
			break;
		case OPT_GUID:
			nt_take(s, 16);
			break;
		case OPT_LEVEL:
			def->level = nt_u8(s);
			break;
		case OPT_VERSION:
			def->version = nt_u8(s);
			break;
		default:
			return;
		}
	}
	if (s->bad)
		d->stats.bad_definitions++;
}

static enum nt_status read_definition_v6(struct nt_decoder *d, struct nt_span s)
{
	const uint8_t *start = s.cur;
	uint64_t hash = hash_bytes(start, nt_left(&s));
	uint32_t id = nt_varuint32(&s);
	struct nt_span options;
	struct nt_event_def *def;
	const char *provider, *name;
	enum nt_status st;
	uint32_t count;
	bool again;

	if (s.bad)
		return nt_fail_span(d, &s, "event definition ends too early");
	st = check_new(d, start, id, hash, &again);
	if (st != NT_OK || again)
		return st;
	def = add_def(d, hash);
	if (!def)
		return d->status;
	def->defined = true;
	def->metadata_id = id;
	provider = read_text8(d, &s);
	def->event_id = nt_varuint32(&s);
	name = read_text8(d, &s);
	count = nt_u16(&s);
	if (s.bad || !provider || !name) {
		d->def_count--;
		return s.bad ? nt_fail_span(d, &s, "event definition ends too early")
			     : nt_fail_arena(d, &d->defs_arena,
					     "event definitions exceed the limit of memory");
	}
	st = read_fields(d, &s, NT_FIELDS_V6, !strncmp(provider, "Universal.", 10), count, def);
	if (st != NT_OK)
		return st;
	if (def->field_count || !count) { /* else nothing tells where they begin */
		options = nt_sub(&s, nt_u16(&s));
		read_options(d, &options, def);
	}
	return publish(d, def, provider, name);
}

enum nt_status nt_read_metadata_v6(struct nt_decoder *d, struct nt_span b)
{
	enum nt_status st = NT_OK;

	nt_take(&b, nt_u16(&b)); /* a header that does not count itself */
	if (b.bad)
		return nt_fail_span(d, &b, "metadata block header runs past its block");
	for (d->row = 0; st == NT_OK && nt_left(&b); d->row++) {
		struct nt_span row = nt_sub(&b, nt_u16(&b));

		if (b.bad)
			return nt_fail_span(d, &b, "event definition runs past its block");
		st = read_definition_v6(d, row);
	}
	return st;
}
