/* SPDX-License-Identifier: MIT */
#include "nettrace/runtime_events.h"

#include <string.h>

#include "nettrace/payload.h"
#include "nettrace/runtime_table.h"

/* Records within records: BulkType has an array inside its records and nothing goes deeper. */
enum { MAX_GROUPS = 4 };

static const char *const provider_names[NT_PROV_COUNT] = {
	[NT_PROV_RUNTIME] = "Microsoft-Windows-DotNETRuntime",
	[NT_PROV_RUNDOWN] = "Microsoft-Windows-DotNETRuntimeRundown",
	[NT_PROV_PRIVATE] = "Microsoft-Windows-DotNETRuntimePrivate",
	[NT_PROV_STRESS] = "Microsoft-Windows-DotNETRuntimeStress",
	[NT_PROV_SAMPLER] = "Microsoft-DotNETCore-SampleProfiler",
	[NT_PROV_EVENTPIPE] = "Microsoft-DotNETCore-EventPipe",
	[NT_PROV_TPL] = "System.Threading.Tasks.TplEventSource",
	[NT_PROV_MONO] = "Microsoft-DotNETRuntimeMonoProfiler",
	[NT_PROV_UNIVERSAL_SYSTEM] = "Universal.System",
	[NT_PROV_UNIVERSAL_EVENTS] = "Universal.Events",
};

static const struct nt_table_rows *const tables[NT_PROV_COUNT] = {
	[NT_PROV_RUNTIME] = &nt_table_runtime,	   [NT_PROV_RUNDOWN] = &nt_table_rundown,
	[NT_PROV_PRIVATE] = &nt_table_private,	   [NT_PROV_SAMPLER] = &nt_table_sampler,
	[NT_PROV_EVENTPIPE] = &nt_table_eventpipe, [NT_PROV_TPL] = &nt_table_tpl,
	[NT_PROV_MONO] = &nt_table_mono,	   [NT_PROV_UNIVERSAL_SYSTEM] = &nt_table_universal,
};

static const struct {
	const char *word;
	enum nt_type type;
	uint32_t count;
} type_words[] = {
	{ "u8", NT_T_U8, 0 },
	{ "u16", NT_T_U16, 0 },
	{ "u32", NT_T_U32, 0 },
	{ "u64", NT_T_U64, 0 },
	{ "i32", NT_T_I32, 0 },
	{ "i64", NT_T_I64, 0 },
	{ "f64", NT_T_F64, 0 },
	{ "b4", NT_T_BOOL32, 0 },
	{ "ptr", NT_T_POINTER, 0 },
	{ "uvar", NT_T_VARUINT, 0 },
	{ "guid", NT_T_GUID, 0 },
	{ "str", NT_T_STRING16, 0 },
	{ "ansi", NT_T_STRING8, 0 },
	{ "str8", NT_T_STRING8_LEN16, 0 },
	{ "bytes", NT_T_COUNTED_BYTES, 0 },
	{ "pad2", NT_T_PAD, 2 },
	{ "pad4", NT_T_PAD, 4 },
	{ "padptr", NT_T_PAD, NT_PAD_POINTER },
	{ "padrest", NT_T_PAD, NT_PAD_REST },
};

struct text {
	const char *p;
	size_t len;
};

/* One field as it is written in a row. */
struct spec {
	struct text name;
	struct text type; /* without braces */
	struct text group; /* between the braces */
	struct text count; /* between the brackets */
	bool is_group;
	bool has_count;
	uint32_t since;
	uint32_t until; /* first version without it */
};

/* Fields that are still to be written to an array of the caller's. */
struct group {
	struct text text;
	const struct nt_field **ret_fields;
	size_t *ret_count;
};

struct builder {
	struct nt_arena *arena;
	uint32_t version;
	struct group open[MAX_GROUPS];
	size_t open_count;
};

enum nt_provider nt_provider_find(const char *name)
{
	for (size_t i = 0; i < NT_PROV_COUNT; i++)
		if (provider_names[i] && strcmp(provider_names[i], name) == 0)
			return (enum nt_provider)i;
	return NT_PROV_OTHER;
}

struct nt_table_rows nt_table_rows_of(enum nt_provider provider)
{
	if ((unsigned)provider >= NT_PROV_COUNT || !tables[provider])
		return (struct nt_table_rows){ NULL, 0 };
	return *tables[provider];
}

static const struct nt_table_row *find_row(enum nt_provider provider, uint32_t id)
{
	struct nt_table_rows t = nt_table_rows_of(provider);
	size_t from = 0, to = t.count;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (t.rows[mid].id == id)
			return &t.rows[mid];
		if (t.rows[mid].id < id)
			from = mid + 1;
		else
			to = mid;
	}
	return NULL;
}

const char *nt_table_name(enum nt_provider provider, uint32_t event_id)
{
	const struct nt_table_row *row = find_row(provider, event_id);

	return row ? row->name : NULL;
}

bool nt_table_overrides(enum nt_provider provider, uint32_t event_id)
{
	return provider == NT_PROV_UNIVERSAL_SYSTEM && find_row(provider, event_id);
}

/* --- the notation --- */

static bool eat(struct text *t, char c)
{
	if (!t->len || t->p[0] != c)
		return false;
	t->p++;
	t->len--;
	return true;
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static struct text take_word(struct text *t)
{
	struct text word = { t->p, 0 };

	while (word.len < t->len && is_word(word.p[word.len]))
		word.len++;
	t->p += word.len;
	t->len -= word.len;
	return word;
}

static bool take_number(struct text *t, uint32_t *ret)
{
	struct text digits = take_word(t);
	uint32_t n = 0;

	if (!digits.len || digits.len > 4)
		return false;
	for (size_t i = 0; i < digits.len; i++) {
		if (digits.p[i] < '0' || digits.p[i] > '9')
			return false;
		n = n * 10 + (uint32_t)(digits.p[i] - '0');
	}
	*ret = n;
	return true;
}

/* Up to the brace that closes the one already eaten. */
static bool take_group(struct text *t, struct text *ret)
{
	size_t depth = 1;

	for (size_t i = 0; i < t->len; i++) {
		if (t->p[i] == '{')
			depth++;
		else if (t->p[i] == '}')
			depth--;
		if (depth == 0) {
			*ret = (struct text){ t->p, i };
			t->p += i + 1;
			t->len -= i + 1;
			return true;
		}
	}
	return false;
}

static bool take_spec(struct text *t, struct spec *s)
{
	*s = (struct spec){ .until = UINT32_MAX };
	s->name = take_word(t);
	if (!s->name.len || !eat(t, ':'))
		return false;
	s->is_group = eat(t, '{');
	if (s->is_group) {
		if (!take_group(t, &s->group))
			return false;
	} else {
		s->type = take_word(t);
	}
	if (eat(t, '[')) {
		s->has_count = true;
		s->count = take_word(t);
		if (!eat(t, ']'))
			return false;
	}
	if (eat(t, '@') && !take_number(t, &s->since))
		return false;
	if (eat(t, '<') && !take_number(t, &s->until))
		return false;
	return !t->len || eat(t, ' ');
}

static bool text_is(struct text t, const char *word)
{
	return strlen(word) == t.len && memcmp(word, t.p, t.len) == 0;
}

/* --- from the notation to struct nt_field --- */

static enum nt_status out_of_room(const struct builder *b)
{
	return b->arena->full ? NT_ELIMIT : NT_ENOMEM;
}

static bool open_group(struct builder *b, struct text text, const struct nt_field **ret_fields,
		       size_t *ret_count)
{
	if (b->open_count == MAX_GROUPS)
		return false;
	b->open[b->open_count++] =
		(struct group){ .text = text, .ret_fields = ret_fields, .ret_count = ret_count };
	return true;
}

static bool find_type(const struct spec *s, struct nt_field *f)
{
	for (size_t i = 0; i < sizeof(type_words) / sizeof(type_words[0]); i++) {
		if (text_is(s->type, type_words[i].word)) {
			f->type = type_words[i].type;
			f->count = type_words[i].count;
			return true;
		}
	}
	return false;
}

/* The number of elements is in one of the fields written so far. */
static bool find_count(const struct spec *s, const struct nt_field *fields, size_t done,
		       uint32_t *ret)
{
	for (size_t i = 0; i < done && i < NT_COUNT_FIELDS; i++) {
		enum nt_type t = fields[i].type;

		if ((t == NT_T_U8 || t == NT_T_U16 || t == NT_T_U32) &&
		    text_is(s->count, fields[i].name)) {
			*ret = (uint32_t)i;
			return true;
		}
	}
	return false;
}

/* Makes f, whose type is that of one element, an array of such elements. */
static enum nt_status make_array(struct builder *b, const struct spec *s, struct nt_field *f,
				 uint32_t count_field)
{
	struct nt_field *element = nt_arena_array(b->arena, 1, sizeof(*element));

	if (!element)
		return out_of_room(b);
	if (s->is_group && !open_group(b, s->group, &element->children, &element->child_count))
		return NT_EFORMAT;
	element->name = "";
	element->type = f->type;
	f->type = NT_T_COUNTED_ARRAY;
	f->count = count_field;
	f->children = element;
	f->child_count = 1;
	return NT_OK;
}

static enum nt_status write_field(struct builder *b, const struct spec *s, struct nt_field *fields,
				  size_t done)
{
	struct nt_field *f = &fields[done];
	bool pad = text_is(s->name, "-");
	uint32_t count_field = 0;

	f->name = pad ? "" : nt_arena_text(b->arena, s->name.p, s->name.len);
	if (!f->name)
		return out_of_room(b);
	f->type = NT_T_OBJECT;
	if (!s->is_group && !find_type(s, f))
		return NT_EFORMAT;
	if (pad != (f->type == NT_T_PAD))
		return NT_EFORMAT;
	if (!s->has_count)
		return s->is_group || f->type == NT_T_COUNTED_BYTES ? NT_EFORMAT : NT_OK;
	if (pad || !find_count(s, fields, done, &count_field))
		return NT_EFORMAT;
	if (f->type == NT_T_COUNTED_BYTES) {
		f->count = count_field;
		return NT_OK;
	}
	return make_array(b, s, f, count_field);
}

static bool is_in(const struct builder *b, const struct spec *s)
{
	return b->version >= s->since && b->version < s->until;
}

static enum nt_status write_group(struct builder *b, struct group g)
{
	struct nt_field *fields;
	struct text rest = g.text;
	struct spec s;
	size_t n = 0, done = 0;
	enum nt_status st = NT_OK;

	while (rest.len) {
		if (!take_spec(&rest, &s))
			return NT_EFORMAT;
		n += is_in(b, &s);
	}
	if (!n)
		return NT_OK;
	fields = nt_arena_array(b->arena, n, sizeof(*fields));
	if (!fields)
		return out_of_room(b);
	for (rest = g.text; st == NT_OK && rest.len;) {
		if (!take_spec(&rest, &s))
			return NT_EFORMAT;
		if (is_in(b, &s))
			st = write_field(b, &s, fields, done++);
	}
	if (st == NT_OK) {
		*g.ret_fields = fields;
		*g.ret_count = n;
	}
	return st;
}

enum nt_status nt_table_compile(struct nt_arena *arena, const char *row, uint32_t version,
				const struct nt_field **ret_fields, size_t *ret_count,
				bool *ret_known)
{
	struct builder b = { .arena = arena, .version = version };
	struct text text = { row, strlen(row) };
	const struct nt_field *fields = NULL;
	size_t count = 0;
	uint32_t first = 0;
	enum nt_status st = NT_OK;

	*ret_fields = NULL;
	*ret_count = 0;
	*ret_known = false;
	if (eat(&text, '@') && (!take_number(&text, &first) || !eat(&text, ' ')))
		return NT_EFORMAT;
	if (version < first)
		return NT_OK;
	open_group(&b, text, &fields, &count);
	while (st == NT_OK && b.open_count)
		st = write_group(&b, b.open[--b.open_count]);
	if (st != NT_OK)
		return st;
	*ret_fields = fields;
	*ret_count = count;
	*ret_known = true;
	return NT_OK;
}

enum nt_status nt_table_layout(struct nt_arena *arena, enum nt_provider provider, uint32_t event_id,
			       uint32_t version, const struct nt_field **ret_fields,
			       size_t *ret_count, bool *ret_known)
{
	const struct nt_table_row *row = find_row(provider, event_id);

	if (!row) {
		*ret_fields = NULL;
		*ret_count = 0;
		*ret_known = false;
		return NT_OK;
	}
	return nt_table_compile(arena, row->fields, version, ret_fields, ret_count, ret_known);
}
