/* SPDX-License-Identifier: MIT */
/*
 * Field lists of event definitions, in the three grammars of the format: V1 and V2 of metadata
 * payloads (nettrace.md §4.1), and V6 (§4.2).
 *
 * Lists nest, and input decides how deep, so the walk keeps its own stack of open lists.
 */
#include "nettrace/decoder.h"

enum { MAX_DEPTH = 32, MIN_FIELD_BYTES = 3 };

/* A field list that is being read: the top level, or that of an object. */
struct open_list {
	struct nt_field *fields;
	size_t count, next;
	struct nt_field *owner; /* the field of the list above that holds the object */
	struct nt_span rest; /* V2, V6: what remains of the owner, to be skipped at its end */
};

struct reader {
	struct nt_arena *arena;
	struct nt_span *s;
	enum nt_field_grammar grammar;
	bool universal;
	struct open_list open[MAX_DEPTH];
	size_t depth;
};

static char *read_name16(struct reader *r)
{
	const uint8_t *start = r->s->cur;
	size_t bytes;
	char *name;

	while (!r->s->bad && nt_u16(r->s))
		;
	if (r->s->bad)
		return NULL;
	bytes = (size_t)(r->s->cur - start) - 2;
	name = nt_arena_get(r->arena, bytes / 2 * 3 + 1);
	if (name)
		name[nt_utf16_to_utf8(start, bytes, name, bytes / 2 * 3)] = '\0';
	return name;
}

static char *read_name(struct reader *r)
{
	size_t bytes;
	const uint8_t *p;

	if (r->grammar != NT_FIELDS_V6)
		return read_name16(r);
	p = nt_str6(r->s, &bytes);
	return p ? nt_arena_text(r->arena, (const char *)p, bytes) : NULL;
}

static enum nt_status refused(const struct reader *r)
{
	if (r->s->bad)
		return NT_EFORMAT;
	return r->arena->full ? NT_ELIMIT : NT_ENOMEM;
}

static bool is_wrapper(uint32_t code)
{
	return code == NT_T_ARRAY || code == NT_T_FIXED_ARRAY || code == NT_T_RELLOC ||
	       code == NT_T_DATALOC;
}

static bool is_known(const struct reader *r, uint32_t code)
{
	if (code == NT_T_OBJECT || (code >= NT_T_BOOL32 && code <= NT_T_STRING16))
		return true;
	if (code == NT_T_ARRAY)
		return r->grammar != NT_FIELDS_V1;
	return r->grammar == NT_FIELDS_V6 && code > NT_T_ARRAY && code <= NT_T_BOOL8;
}

static uint32_t read_code(struct reader *r)
{
	return r->grammar == NT_FIELDS_V6 ? nt_u8(r->s) : nt_u32(r->s);
}

/*
 * Reads a type into f.  Array types hold their element's type; the innermost type of such a chain
 * is left in *ret_inner.
 */
static enum nt_status read_type(struct reader *r, struct nt_field *f, struct nt_field **ret_inner)
{
	uint32_t code = read_code(r);

	for (size_t depth = 0; is_wrapper(code); depth++) {
		struct nt_field *element;

		if (!is_known(r, code) || depth == MAX_DEPTH)
			return NT_EFORMAT;
		element = nt_arena_array(r->arena, 1, sizeof(*element));
		if (!element)
			return refused(r);
		element->name = "";
		f->type = (enum nt_type)code;
		f->children = element;
		f->child_count = 1;
		f = element;
		code = read_code(r);
	}
	if (r->s->bad || !is_known(r, code))
		return NT_EFORMAT;
	f->type = (enum nt_type)code;
	/* Universal providers announce their strings by this code with an older meaning (§11). */
	if (code == NT_T_CHAR8 && r->universal)
		f->type = NT_T_STRING8_LEN16;
	*ret_inner = f;
	return NT_OK;
}

static struct nt_field *child(const struct nt_field *f)
{
	/* Made by read_type() a moment ago, in memory of our own. */
	union {
		const struct nt_field *borrowed;
		struct nt_field *own;
	} u = { .borrowed = f->children };

	return u.own;
}

/* Fixed-length arrays have their element count behind their element's type: inner ones first. */
static enum nt_status read_lengths(struct reader *r, struct nt_field *f)
{
	struct nt_field *chain[MAX_DEPTH + 1];
	size_t n = 0;

	for (; is_wrapper(f->type) && n <= MAX_DEPTH; f = child(f))
		chain[n++] = f;
	while (n--)
		if (chain[n]->type == NT_T_FIXED_ARRAY)
			chain[n]->count = nt_u16(r->s);
	return r->s->bad ? NT_EFORMAT : NT_OK;
}

static enum nt_status open_list(struct reader *r, struct nt_field *target, struct nt_field *owner,
				uint32_t count, struct nt_span rest)
{
	struct nt_field *fields;

	if (r->depth == MAX_DEPTH || count > nt_left(r->s) / MIN_FIELD_BYTES)
		return NT_EFORMAT;
	fields = nt_arena_array(r->arena, count, sizeof(*fields));
	if (!fields)
		return refused(r);
	target->children = fields;
	target->child_count = count;
	r->open[r->depth++] = (struct open_list){
		.fields = fields,
		.count = count,
		.owner = owner,
		.rest = rest,
	};
	return NT_OK;
}

/* What stands behind a field's type: its name in V1, unknown extras in V2 and V6. */
static enum nt_status end_field(struct reader *r, struct nt_field *f, struct nt_span rest)
{
	enum nt_status st = read_lengths(r, f);

	if (st != NT_OK)
		return st;
	if (r->grammar == NT_FIELDS_V1) {
		f->name = read_name(r);
		return f->name ? NT_OK : refused(r);
	}
	if (r->s->cur > rest.end)
		return NT_EFORMAT;
	r->s->cur = rest.end;
	return NT_OK;
}

static enum nt_status begin_field(struct reader *r, struct nt_field *f)
{
	struct nt_span rest = *r->s;
	struct nt_field *inner = NULL;
	enum nt_status st;

	if (r->grammar != NT_FIELDS_V1) {
		size_t bytes = r->grammar == NT_FIELDS_V6 ? nt_u16(r->s) : nt_u32(r->s);

		if (r->grammar == NT_FIELDS_V2 && bytes < 4)
			return NT_EFORMAT; /* the size counts itself there */
		bytes -= r->grammar == NT_FIELDS_V2 ? 4 : 0;
		rest = *r->s;
		rest = nt_sub(&rest, bytes);
		if (rest.bad)
			return NT_EFORMAT;
		f->name = read_name(r);
		if (!f->name)
			return refused(r);
	}
	st = read_type(r, f, &inner);
	if (st != NT_OK)
		return st;
	if (inner->type == NT_T_OBJECT) {
		uint32_t count = r->grammar == NT_FIELDS_V6 ? nt_u16(r->s) : nt_u32(r->s);

		return r->s->bad ? NT_EFORMAT : open_list(r, inner, f, count, rest);
	}
	return end_field(r, f, rest);
}

enum nt_status nt_read_fields(struct nt_arena *arena, struct nt_span *s,
			      enum nt_field_grammar grammar, bool universal, uint32_t count,
			      const struct nt_field **ret_fields, size_t *ret_count)
{
	struct reader r = {
		.arena = arena,
		.s = s,
		.grammar = grammar,
		.universal = universal,
	};
	struct nt_field top = { .name = "" };
	enum nt_status st = s->bad ? NT_EFORMAT : open_list(&r, &top, NULL, count, *s);

	while (st == NT_OK && r.depth) {
		struct open_list *l = &r.open[r.depth - 1];

		if (l->next < l->count) {
			st = begin_field(&r, &l->fields[l->next++]);
		} else {
			r.depth--;
			if (l->owner)
				st = end_field(&r, l->owner, l->rest);
		}
	}
	if (st != NT_OK)
		return st;
	*ret_fields = top.children;
	*ret_count = top.child_count;
	return NT_OK;
}
