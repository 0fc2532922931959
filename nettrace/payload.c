/* SPDX-License-Identifier: MIT */
#include "nettrace/payload.h"

#include <string.h>

/* Steps without bytes that an event may take beyond one for each of its bytes. */
enum { FREE_STEPS = 256 };

/* FILETIME counts 100 ns since 1601; these are 1970 and what int64_t nanoseconds can hold. */
#define UNIX_EPOCH   116444736000000000u
#define TICKS_BEFORE (UNIX_EPOCH - (uint64_t)(INT64_MAX / 100))
#define TICKS_BEHIND (UNIX_EPOCH + (uint64_t)(INT64_MAX / 100))

/* Types whose size does not depend on the payload.  Booleans and pointers: see plain_size(). */
static const uint8_t plain_sizes[NT_T_PAD + 1] = {
	[NT_T_BOOL32] = 4,  [NT_T_CHAR16] = 2,	[NT_T_I8] = 1,	     [NT_T_U8] = 1,
	[NT_T_I16] = 2,	    [NT_T_U16] = 2,	[NT_T_I32] = 4,	     [NT_T_U32] = 4,
	[NT_T_I64] = 8,	    [NT_T_U64] = 8,	[NT_T_F32] = 4,	     [NT_T_F64] = 8,
	[NT_T_DECIMAL] = 8, [NT_T_GUID] = 16,	[NT_T_DATETIME] = 8, [NT_T_CHAR8] = 1,
	[NT_T_BOOL8] = 1,   [NT_T_POINTER] = 8,
};

static inline size_t plain_size(const struct nt_reader *r, enum nt_type type)
{
	if ((unsigned)type > NT_T_PAD)
		return 0;
	if (type == NT_T_POINTER)
		return r->pointer_size;
	if (type == NT_T_BOOL32 && r->bool8)
		return 1;
	return plain_sizes[type];
}

size_t nt_plain_size(const struct nt_reader *r, enum nt_type type)
{
	return plain_size(r, type);
}

void nt_reader_init(struct nt_reader *r, const struct nt_event *ev, bool bool8)
{
	static const uint8_t nothing[1];
	const uint8_t *p = ev->payload ? ev->payload : nothing;
	size_t n = ev->payload ? ev->payload_bytes : 0;

	*r = (struct nt_reader){
		.s = nt_span_of(p, n),
		.payload = p,
		.payload_bytes = n,
		.pointer_size = ev->trace && ev->trace->pointer_size == 4 ? 4 : 8,
		.free_steps = n + FREE_STEPS,
		.bool8 = bool8,
	};
}

bool nt_free_step(struct nt_reader *r)
{
	if (!r->free_steps) {
		r->cut = true;
		return false;
	}
	r->free_steps--;
	return true;
}

static inline const uint8_t *take(struct nt_reader *r, size_t n)
{
	const uint8_t *p = nt_take(&r->s, n);

	if (!p)
		r->cut = true;
	return p;
}

/* --- one field --- */

static void set_float(struct nt_value *v, double d)
{
	v->kind = NT_V_DOUBLE;
	v->f = d;
}

static float load_f32(const uint8_t *p)
{
	uint32_t bits = nt_load32(p);
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static double load_f64(const uint8_t *p)
{
	uint64_t bits = nt_load64(p);
	double d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}

/* Times that int64_t nanoseconds cannot hold become its smallest or largest value. */
static int64_t unix_ns(uint64_t filetime)
{
	if (filetime < TICKS_BEFORE)
		return INT64_MIN;
	if (filetime > TICKS_BEHIND)
		return INT64_MAX;
	return (int64_t)(filetime - UNIX_EPOCH) * 100;
}

static inline void set_uint(struct nt_value *v, uint64_t u)
{
	v->kind = NT_V_UINT;
	v->u = u;
}

static inline void set_int(struct nt_value *v, int64_t i)
{
	v->kind = NT_V_INT;
	v->i = i;
}

static inline void set_data(struct nt_value *v, enum nt_value_kind kind, const uint8_t *p, size_t n)
{
	v->kind = kind;
	v->data = p;
	v->bytes = n;
}

/* p has n = plain_size() bytes. */
static inline void decode_plain(enum nt_type type, const uint8_t *p, size_t n, struct nt_value *v)
{
	switch (type) {
	case NT_T_BOOL32:
	case NT_T_BOOL8:
		v->kind = NT_V_BOOL;
		v->u = n == 1 ? *p != 0 : nt_load32(p) != 0;
		return;
	case NT_T_CHAR16:
		set_data(v, NT_V_UTF16, p, n);
		return;
	case NT_T_CHAR8:
		set_data(v, NT_V_UTF8, p, n);
		return;
	case NT_T_I8:
		set_int(v, (int8_t)*p);
		return;
	case NT_T_U8:
		set_uint(v, *p);
		return;
	case NT_T_I16:
		set_int(v, (int16_t)nt_load16(p));
		return;
	case NT_T_U16:
		set_uint(v, nt_load16(p));
		return;
	case NT_T_I32:
		set_int(v, (int32_t)nt_load32(p));
		return;
	case NT_T_U32:
		set_uint(v, nt_load32(p));
		return;
	case NT_T_I64:
		set_int(v, (int64_t)nt_load64(p));
		return;
	case NT_T_U64:
		set_uint(v, nt_load64(p));
		return;
	case NT_T_POINTER:
		set_uint(v, n == 4 ? nt_load32(p) : nt_load64(p));
		return;
	case NT_T_F32:
		set_float(v, (double)load_f32(p));
		return;
	case NT_T_F64:
	case NT_T_DECIMAL: /* 16 bytes by its name; all writers send a double */
		set_float(v, load_f64(p));
		return;
	case NT_T_DATETIME:
		set_data(v, NT_V_TIME, p, n);
		v->i = unix_ns(nt_load64(p));
		return;
	case NT_T_GUID:
		set_data(v, NT_V_GUID, p, n);
		return;
	default:
		return;
	}
}

/* n bytes of text or data in whole units; what there is of them when the payload ends. */
static void read_run(struct nt_reader *r, enum nt_value_kind kind, uint64_t n, size_t unit,
		     struct nt_value *v)
{
	size_t left = nt_left(&r->s);

	if (n == 0 && !nt_free_step(r))
		return;
	if (n > left) {
		r->cut = true;
		n = left - left % unit;
		if (n == 0)
			return;
	}
	set_data(v, kind, nt_take(&r->s, (size_t)n), (size_t)n);
}

static void read_string16(struct nt_reader *r, struct nt_value *v)
{
	size_t left = nt_left(&r->s);
	size_t even = left - left % 2;
	size_t len = nt_find_nul16(r->s.cur, even);

	if (len == even) {
		r->cut = true;
		if (left)
			set_data(v, NT_V_UTF16, nt_take(&r->s, left), even);
		return;
	}
	set_data(v, NT_V_UTF16, nt_take(&r->s, len + 2), len);
}

static void read_string8(struct nt_reader *r, struct nt_value *v)
{
	size_t left = nt_left(&r->s);
	const uint8_t *nul = left ? memchr(r->s.cur, 0, left) : NULL;

	if (!nul) {
		r->cut = true;
		if (left)
			set_data(v, NT_V_UTF8, nt_take(&r->s, left), left);
		return;
	}
	size_t len = (size_t)(nul - r->s.cur);

	set_data(v, NT_V_UTF8, nt_take(&r->s, len + 1), len);
}

/* The number of elements, or false when it is not there. */
bool nt_read_count(struct nt_reader *r, const struct nt_field *f, const uint64_t *counts,
		   uint64_t *ret)
{
	const uint8_t *p;

	if (f->type == NT_T_FIXED_ARRAY) {
		*ret = f->count;
		return true;
	}
	if (f->type == NT_T_COUNTED_ARRAY || f->type == NT_T_COUNTED_BYTES) {
		*ret = f->count < NT_COUNT_FIELDS ? counts[f->count] : 0;
		return true;
	}
	p = take(r, 2);
	*ret = p ? nt_load16(p) : 0;
	return p;
}

static void read_text_array(struct nt_reader *r, const struct nt_field *f, const uint64_t *counts,
			    struct nt_value *v)
{
	bool wide = f->children[0].type == NT_T_CHAR16;
	size_t unit = wide ? 2 : 1;
	uint64_t n;

	if (f->type == NT_T_RELLOC || f->type == NT_T_DATALOC) {
		nt_locate(r, f, v);
		return;
	}
	if (nt_read_count(r, f, counts, &n))
		read_run(r, wide ? NT_V_UTF16 : NT_V_UTF8, n * unit, unit, v);
}

static void read_varint(struct nt_reader *r, const struct nt_field *f, struct nt_value *v)
{
	uint64_t u = nt_varuint64(&r->s);

	if (r->s.bad)
		r->cut = true;
	else if (f->type == NT_T_VARUINT)
		set_uint(v, u);
	else
		set_int(v, (int64_t)((u >> 1) ^ (0 - (u & 1))));
}

static void read_pad(struct nt_reader *r, const struct nt_field *f)
{
	size_t n = f->count;

	if (f->count == NT_PAD_POINTER)
		n = r->pointer_size - 4;
	else if (f->count == NT_PAD_REST) /* outside of a record: nothing */
		n = 0;
	if (n)
		take(r, n);
	else
		nt_free_step(r);
}

static void read_varying(struct nt_reader *r, const struct nt_field *f, const uint64_t *counts,
			 struct nt_value *v)
{
	uint64_t n;

	switch (f->type) {
	case NT_T_STRING16:
		read_string16(r, v);
		return;
	case NT_T_STRING8:
		read_string8(r, v);
		return;
	case NT_T_STRING8_LEN16:
		if (nt_read_count(r, f, counts, &n))
			read_run(r, NT_V_UTF8, n, 1, v);
		return;
	case NT_T_COUNTED_BYTES:
		if (nt_read_count(r, f, counts, &n))
			read_run(r, NT_V_BYTES, n, 1, v);
		return;
	case NT_T_VARINT:
	case NT_T_VARUINT:
		read_varint(r, f, v);
		return;
	case NT_T_PAD:
		read_pad(r, f);
		return;
	case NT_T_ARRAY:
	case NT_T_FIXED_ARRAY:
	case NT_T_COUNTED_ARRAY:
	case NT_T_RELLOC:
	case NT_T_DATALOC:
		read_text_array(r, f, counts, v);
		return;
	default: /* no type of ours: its size is unknown */
		r->cut = true;
		return;
	}
}

static inline bool is_array(enum nt_type type)
{
	return type == NT_T_ARRAY || type == NT_T_FIXED_ARRAY || type == NT_T_COUNTED_ARRAY ||
	       type == NT_T_RELLOC || type == NT_T_DATALOC;
}

bool nt_is_text(const struct nt_field *f)
{
	return f->child_count &&
	       (f->children[0].type == NT_T_CHAR16 || f->children[0].type == NT_T_CHAR8);
}

bool nt_is_nested(const struct nt_field *f)
{
	return f->type == NT_T_OBJECT || (is_array(f->type) && !nt_is_text(f));
}

static inline void read_scalar(struct nt_reader *r, const struct nt_field *f,
			       const uint64_t *counts, struct nt_value *v)
{
	size_t n = plain_size(r, f->type);

	*v = (struct nt_value){ .field = f, .kind = NT_V_NONE };
	if (n) {
		const uint8_t *p = take(r, n);

		if (p)
			decode_plain(f->type, p, n, v);
	} else {
		read_varying(r, f, counts, v);
	}
}

void nt_read_scalar(struct nt_reader *r, const struct nt_field *f, const uint64_t *counts,
		    struct nt_value *v)
{
	read_scalar(r, f, counts, v);
}

/* --- fields that are wider than announced --- */

bool nt_is_small_int(const struct nt_field *f)
{
	return f->type == NT_T_I8 || f->type == NT_T_U8 || f->type == NT_T_I16 ||
	       f->type == NT_T_U16;
}

/* The upper bytes must be what widening makes of the lower ones, else this was no such field. */
void nt_read_widened(struct nt_reader *r, const struct nt_field *f, struct nt_value *v)
{
	const uint8_t *p = take(r, 4);
	int64_t wide;
	uint64_t low;

	*v = (struct nt_value){ .field = f, .kind = NT_V_NONE };
	if (!p)
		return;
	wide = (int32_t)nt_load32(p);
	decode_plain(f->type, p, plain_size(r, f->type), v);
	low = v->kind == NT_V_INT ? (uint64_t)v->i : v->u;
	if (low != (uint64_t)wide) {
		r->cut = true;
		v->kind = NT_V_NONE;
	}
}

/* The trailing run of small integers, or SIZE_MAX when the last field is none. */
static size_t first_widened(const struct nt_event_def *def)
{
	size_t i = def->field_count;

	while (i && nt_is_small_int(&def->fields[i - 1]))
		i--;
	return i < def->field_count ? i : SIZE_MAX;
}

/* --- the top level of an event --- */

static const struct nt_reading as_announced = { .bool8 = false, .widen_from = SIZE_MAX };

static struct nt_payload_fit fit_of(const struct nt_reader *r, const struct nt_reading *how,
				    bool all)
{
	const uint8_t *at = r->s.bad ? r->s.bad : r->s.cur;
	size_t used = (size_t)(at - r->payload);

	return (struct nt_payload_fit){
		.used = used > r->located_end ? used : r->located_end,
		.complete = all && !r->cut,
		.bool8 = how->bool8,
		.widened = how->widen_from != SIZE_MAX,
	};
}

/* Reads the first stop fields, of which the first max go to out. */
static struct nt_payload_fit scan(const struct nt_event *ev, const struct nt_reading *how,
				  struct nt_value *out, size_t max, size_t stop)
{
	const struct nt_event_def *def = ev->def;
	uint64_t counts[NT_COUNT_FIELDS];
	struct nt_value unwanted;
	struct nt_reader r;
	size_t i;

	nt_reader_init(&r, ev, how->bool8);
	for (i = 0; i < stop && !r.cut; i++) {
		const struct nt_field *f = &def->fields[i];
		struct nt_value *v = i < max ? &out[i] : &unwanted;

		if (i >= how->widen_from)
			nt_read_widened(&r, f, v);
		else if (plain_size(&r, f->type) || !nt_is_nested(f))
			read_scalar(&r, f, counts, v);
		else
			nt_skip_nested(&r, f, counts, v);
		nt_note_count(counts, i, v);
	}
	for (size_t k = i; k < max; k++)
		out[k] = (struct nt_value){ .field = &def->fields[k], .kind = NT_V_NONE };
	return fit_of(&r, how, i == def->field_count);
}

static bool fits(const struct nt_event *ev, const struct nt_payload_fit *fit)
{
	return fit->complete && fit->used == ev->payload_bytes;
}

/*
 * Looks for the one way to take the fields that leaves nothing over.  Called only for payloads
 * that do not fit as they are announced.
 */
static bool find_reading(const struct nt_event *ev, struct nt_reading *how)
{
	struct nt_reading try = { .bool8 = true, .widen_from = SIZE_MAX };
	size_t n = ev->def->field_count;
	struct nt_payload_fit fit = scan(ev, &try, NULL, 0, n);

	if (!fits(ev, &fit)) {
		try.bool8 = false;
		try.widen_from = first_widened(ev->def);
		if (try.widen_from == SIZE_MAX)
			return false;
		fit = scan(ev, &try, NULL, 0, n);
		if (!fits(ev, &fit))
			return false;
	}
	*how = try;
	return true;
}

size_t nt_payload_read(const struct nt_event *ev, struct nt_value *out, size_t max,
		       struct nt_payload_fit *ret_fit)
{
	const struct nt_event_def *def = ev->def;
	bool announced = def->layout == NT_LAYOUT_METADATA;
	size_t n = def->field_count;
	size_t written = n < max ? n : max;
	struct nt_reading how = as_announced;
	struct nt_payload_fit fit;

	if (def->layout == NT_LAYOUT_NONE)
		n = written = 0;
	fit = scan(ev, &how, out, written, announced || ret_fit ? n : written);
	if (announced && !fits(ev, &fit) && find_reading(ev, &how))
		fit = scan(ev, &how, out, written, n);
	if (ret_fit)
		*ret_fit = fit;
	return written;
}

enum nt_status nt_payload_visit(const struct nt_event *ev, const struct nt_visitor *visitor,
				void *ctx, struct nt_payload_fit *ret_fit)
{
	const struct nt_event_def *def = ev->def;
	struct nt_reading how = as_announced;
	enum nt_status st = NT_OK;
	struct nt_reader r;

	if (def->layout == NT_LAYOUT_METADATA) {
		struct nt_payload_fit fit = scan(ev, &how, NULL, 0, def->field_count);

		if (!fits(ev, &fit))
			find_reading(ev, &how);
	}
	nt_reader_init(&r, ev, how.bool8);
	if (def->layout != NT_LAYOUT_NONE)
		st = nt_walk_event(&r, def, &how, visitor, ctx);
	if (ret_fit)
		*ret_fit = fit_of(&r, &how, st == NT_OK);
	return st;
}
