/* SPDX-License-Identifier: MIT */
/* Nested fields: objects in arrays in objects, with a stack of levels instead of recursion. */
#include "nettrace/payload.h"

/* Fields that a type may consist of to be measured; larger ones are walked element by element. */
enum { MAX_MEASURED = 256 };

/* An object or an array that has been begun and not ended. */
struct level {
	const struct nt_field *fields; /* of the object, or the one of all elements */
	size_t n; /* fields or elements to read */
	size_t i; /* begun so far */
	size_t done; /* elements read in full */
	const uint8_t *start;
	const uint8_t *whole; /* end of the last element read in full */
	size_t stride; /* of records whose length only the payload tells; 0: none */
	bool is_array;
	bool is_located;
	struct nt_span back; /* located: where reading goes on afterwards */
	struct nt_value value; /* value.field NULL: the event itself */
	uint64_t counts[NT_COUNT_FIELDS];
};

struct walk {
	struct nt_reader *r;
	const struct nt_visitor *visitor; /* NULL: only find the end */
	void *ctx;
	size_t widen_from;
	enum nt_status st;
	struct nt_value last; /* what was ended last */
	size_t depth;
	size_t max_depth;
	struct level levels[NT_MAX_NESTING + 1];
};

/* --- measuring --- */

struct measure {
	const struct nt_field *fields;
	size_t n, i;
	size_t times;
};

static bool is_located(const struct nt_field *f)
{
	return f->type == NT_T_RELLOC || f->type == NT_T_DATALOC;
}

static bool leaf_size(const struct nt_reader *r, const struct nt_field *f, size_t *ret)
{
	*ret = nt_plain_size(r, f->type);
	if (*ret)
		return true;
	if (is_located(f))
		*ret = 4;
	else if (f->type == NT_T_PAD && f->count == NT_PAD_POINTER)
		*ret = r->pointer_size - 4;
	else if (f->type == NT_T_PAD && f->count != NT_PAD_REST)
		*ret = f->count;
	else
		return false;
	return true;
}

/*
 * The bytes that every value of this field has; false when values differ or are too many.
 * *ret_odd tells whether some are pointers to data elsewhere or take no bytes.
 */
static bool fixed_size(const struct nt_reader *r, const struct nt_field *f, size_t *ret,
		       bool *ret_odd)
{
	struct measure stack[NT_MAX_NESTING + 1];
	size_t depth = 1, total = 0, nodes = 0, size;

	*ret_odd = false;
	stack[0] = (struct measure){ .fields = f, .n = 1, .times = 1 };
	while (depth) {
		struct measure *m = &stack[depth - 1];

		if (m->i == m->n) {
			depth--;
			continue;
		}
		const struct nt_field *g = &m->fields[m->i++];
		size_t times = m->times;

		if (++nodes > MAX_MEASURED)
			return false;
		if (leaf_size(r, g, &size)) {
			*ret_odd |= is_located(g) || !size;
			if (__builtin_mul_overflow(times, size, &size) ||
			    __builtin_add_overflow(total, size, &total))
				return false;
			continue;
		}
		if (g->type == NT_T_FIXED_ARRAY && g->child_count) {
			*ret_odd |= !g->count;
			if (__builtin_mul_overflow(times, (size_t)g->count, &times))
				return false;
		} else if (g->type == NT_T_OBJECT) {
			*ret_odd |= !g->child_count;
		} else {
			return false;
		}
		if (depth == NT_MAX_NESTING + 1)
			return false;
		stack[depth++] = (struct measure){
			.fields = g->children,
			.n = g->type == NT_T_OBJECT ? g->child_count : 1,
			.times = times,
		};
	}
	*ret = total;
	return true;
}

/* --- data elsewhere in the payload --- */

bool nt_locate(struct nt_reader *r, const struct nt_field *f, struct nt_value *v)
{
	const uint8_t *p = nt_take(&r->s, 4);
	size_t size, at, element = 0;
	bool text = nt_is_text(f), odd;

	*v = (struct nt_value){ .field = f, .kind = NT_V_NONE };
	if (!p) {
		r->cut = true;
		return false;
	}
	v->kind = NT_V_BAD;
	size = nt_load16(p + 2);
	at = nt_load16(p);
	if (f->type == NT_T_RELLOC)
		at += (size_t)(r->s.cur - r->payload);
	if (!f->child_count || !fixed_size(r, &f->children[0], &element, &odd))
		return false;
	if (size && (!element || size % element))
		return false;
	/* The same bytes, pointed to again and again, must not make a small event a huge one. */
	if (size > r->free_steps || at > r->payload_bytes || size > r->payload_bytes - at)
		return false;
	r->free_steps -= size;
	if (size && at + size > r->located_end)
		r->located_end = at + size;
	v->data = r->payload + at;
	v->bytes = size;
	v->u = size ? size / element : 0;
	v->kind = NT_V_ARRAY;
	if (text)
		v->kind = f->children[0].type == NT_T_CHAR16 ? NT_V_UTF16 : NT_V_UTF8;
	return true;
}

/* --- walking --- */

typedef enum nt_status callback(void *ctx, const struct nt_value *v);

static void tell(struct walk *w, callback *fn, const struct nt_value *v)
{
	if (fn && w->st == NT_OK)
		w->st = fn(w->ctx, v);
}

static const uint8_t *position(const struct nt_reader *r)
{
	return r->s.bad ? r->s.bad : r->s.cur;
}

/* If l is an array, one more of its elements was read, unless the payload ended in it. */
static void count_element(const struct walk *w, struct level *l)
{
	if (!l->is_array || w->r->cut)
		return;
	l->done++;
	l->whole = w->r->s.cur;
}

static void end_level(struct walk *w)
{
	struct level *l = &w->levels[--w->depth];
	struct level *up = w->depth ? &w->levels[w->depth - 1] : NULL;
	struct nt_reader *r = w->r;
	const uint8_t *at = position(r);

	if (l->is_located)
		r->s = l->back;
	else
		l->value.bytes = (size_t)((l->is_array ? l->whole : at) - l->value.data);
	if (l->is_array)
		l->value.u = l->done;
	w->last = l->value;
	if (w->visitor && l->value.field)
		tell(w, w->visitor->end, &l->value);
	if (!l->is_located && at == l->start && !r->cut)
		nt_free_step(r);
	if (up)
		count_element(w, up);
}

/* Goes over all elements at once where that is possible and nobody wants to see them. */
static void jump(struct walk *w, struct level *l)
{
	size_t size, whole;
	bool odd;

	if (w->visitor || !fixed_size(w->r, l->fields, &size, &odd) || !size || odd)
		return;
	whole = nt_left(&w->r->s) / size;
	if (whole > l->n)
		whole = l->n;
	nt_take(&w->r->s, whole * size);
	l->whole = w->r->s.cur;
	l->i = l->done = whole; /* an element that is cut is still to be read */
}

/* Records that end in NT_PAD_REST share what is left of the payload evenly. */
static size_t find_stride(const struct walk *w, const struct level *l)
{
	const struct nt_field *e = l->fields;
	size_t left = nt_left(&w->r->s);

	if (e->type != NT_T_OBJECT || !e->child_count || !l->n || left % l->n)
		return 0;
	e = &e->children[e->child_count - 1];
	return e->type == NT_T_PAD && e->count == NT_PAD_REST ? left / l->n : 0;
}

static void skip_rest(struct walk *w, const struct level *l)
{
	size_t stride = w->depth > 1 ? w->levels[w->depth - 2].stride : 0;
	size_t gone = (size_t)(w->r->s.cur - l->start);

	if (stride > gone && !nt_take(&w->r->s, stride - gone))
		w->r->cut = true;
}

static struct level *begin_level(struct walk *w, const struct nt_value *v)
{
	struct level *l = &w->levels[w->depth++];

	l->i = l->done = l->stride = 0;
	l->start = l->whole = w->r->s.cur;
	l->is_located = false;
	l->value = *v;
	l->is_array = v->kind == NT_V_ARRAY;
	if (v->field) {
		l->fields = v->field->children;
		l->n = l->is_array ? (size_t)v->u : v->field->child_count;
	}
	return l;
}

static void enter_located(struct walk *w, const struct nt_field *f)
{
	struct nt_span back;
	struct nt_value v;
	struct level *l;
	bool found = nt_locate(w->r, f, &v);

	w->last = v;
	if (w->r->cut)
		return;
	if (!found) {
		if (w->visitor)
			tell(w, w->visitor->value, &v);
		return;
	}
	if (w->visitor)
		tell(w, w->visitor->begin, &v);
	back = w->r->s;
	w->r->s = nt_span_of(v.data, v.bytes);
	l = begin_level(w, &v);
	l->is_located = true;
	l->back = back;
	jump(w, l);
}

/* An object that begins where the payload ends is missing, unless it needs no bytes. */
static bool is_missing(const struct walk *w, const struct nt_field *f)
{
	size_t size;
	bool odd;

	return !nt_left(&w->r->s) && (!fixed_size(w->r, f, &size, &odd) || size);
}

static void enter(struct walk *w, const struct nt_field *f, const uint64_t *counts)
{
	struct nt_reader *r = w->r;
	struct nt_value v = { .field = f, .kind = NT_V_OBJECT };
	struct level *l;

	w->last = (struct nt_value){ .field = f, .kind = NT_V_NONE };
	if (w->depth == w->max_depth) {
		r->cut = true;
		return;
	}
	if (is_located(f)) {
		enter_located(w, f);
		return;
	}
	if (f->type == NT_T_OBJECT) {
		if (is_missing(w, f)) {
			r->cut = true;
			return;
		}
	} else {
		v.kind = NT_V_ARRAY;
		if (!f->child_count)
			r->cut = true;
		else
			nt_read_count(r, f, counts, &v.u);
		if (r->cut)
			return;
	}
	v.data = r->s.cur;
	v.bytes = nt_left(&r->s);
	if (w->visitor)
		tell(w, w->visitor->begin, &v);
	l = begin_level(w, &v);
	if (l->is_array) {
		jump(w, l);
		l->stride = find_stride(w, l);
	}
}

static void step(struct walk *w, struct level *l)
{
	const struct nt_field *f = l->is_array ? l->fields : &l->fields[l->i];
	size_t index = l->i++;
	struct nt_value v;

	if (f->type == NT_T_PAD && f->count == NT_PAD_REST) {
		skip_rest(w, l);
		return;
	}
	if (nt_is_nested(f)) {
		size_t depth = w->depth;

		enter(w, f, l->counts);
		if (w->depth == depth)
			count_element(w, l); /* it was over at once */
		return;
	}
	if (!l->value.field && index >= w->widen_from)
		nt_read_widened(w->r, f, &v);
	else
		nt_read_scalar(w->r, f, l->counts, &v);
	nt_note_count(l->counts, index, &v);
	count_element(w, l);
	if (w->visitor && v.kind != NT_V_NONE)
		tell(w, w->visitor->value, &v);
}

static void run(struct walk *w)
{
	while (w->depth && w->st == NT_OK) {
		struct level *l = &w->levels[w->depth - 1];

		if (w->r->cut || l->i == l->n)
			end_level(w);
		else
			step(w, l);
	}
}

static void walk_init(struct walk *w, struct nt_reader *r)
{
	w->r = r;
	w->visitor = NULL;
	w->ctx = NULL;
	w->widen_from = SIZE_MAX;
	w->st = NT_OK;
	w->depth = 0;
	w->max_depth = NT_MAX_NESTING;
}

void nt_skip_nested(struct nt_reader *r, const struct nt_field *f, const uint64_t *counts,
		    struct nt_value *v)
{
	struct walk w;

	walk_init(&w, r);
	enter(&w, f, counts);
	run(&w);
	*v = w.last;
}

enum nt_status nt_walk_event(struct nt_reader *r, const struct nt_event_def *def,
			     const struct nt_reading *how, const struct nt_visitor *visitor,
			     void *ctx)
{
	const struct nt_value event = { .field = NULL, .kind = NT_V_OBJECT, .data = r->s.cur };
	struct walk w;
	struct level *l;

	walk_init(&w, r);
	w.visitor = visitor;
	w.ctx = ctx;
	w.widen_from = how->widen_from;
	w.max_depth++; /* the event itself */
	l = begin_level(&w, &event);
	l->fields = def->fields;
	l->n = def->field_count;
	run(&w);
	return w.st;
}
