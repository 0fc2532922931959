/* SPDX-License-Identifier: MIT */
#include "analyzers/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "nettrace/arena.h"

enum { MAX_REPORT_BYTES = 256 << 20 };

struct finding {
	struct finding *next;
	enum an_severity severity;
	const char *id, *title, *evidence, *advice;
};

struct an_report {
	const struct nt_alloc *alloc;
	struct nt_arena arena;
	struct an_value root;
	struct finding *first, *last;
	bool failed; /* out of memory once: the tree has holes */
	bool sealed;
};

struct an_report *an_report_new(const struct nt_alloc *alloc)
{
	struct an_report *r;

	if (!alloc)
		alloc = &nt_alloc_default;
	r = alloc->realloc(alloc->ctx, NULL, sizeof(*r));
	if (!r)
		return NULL;
	memset(r, 0, sizeof(*r));
	r->alloc = alloc;
	nt_arena_init(&r->arena, alloc, MAX_REPORT_BYTES);
	r->root = (struct an_value){ .owner = r, .kind = AN_OBJECT };
	return r;
}

struct an_report *an_report_free(struct an_report *r)
{
	if (!r)
		return NULL;
	nt_arena_done(&r->arena);
	r->alloc->realloc(r->alloc->ctx, r, 0);
	return NULL;
}

enum nt_status an_report_status(const struct an_report *r)
{
	return r->failed ? NT_ENOMEM : NT_OK;
}

struct an_value *an_report_root(struct an_report *r)
{
	return &r->root;
}

const struct an_value *an_report_borrow_root(const struct an_report *r)
{
	return &r->root;
}

static struct an_value *add(struct an_value *parent, const char *name, enum an_kind kind)
{
	struct an_value *v;

	if (!parent)
		return NULL;
	v = nt_arena_array(&parent->owner->arena, 1, sizeof(*v));
	if (!v) {
		parent->owner->failed = true;
		return NULL;
	}
	v->owner = parent->owner;
	v->name = name;
	v->kind = kind;
	if (parent->last)
		parent->last->next = v;
	else
		parent->first = v;
	parent->last = v;
	parent->count++;
	return v;
}

static const char *keep(struct an_report *r, const char *text, size_t len)
{
	const char *copy = nt_arena_text(&r->arena, text, len);

	if (!copy) {
		r->failed = true;
		return "";
	}
	return copy;
}

struct an_value *an_add_object(struct an_value *parent, const char *name)
{
	return add(parent, name, AN_OBJECT);
}

struct an_value *an_add_array(struct an_value *parent, const char *name)
{
	return add(parent, name, AN_ARRAY);
}

struct an_value *an_add_uint(struct an_value *parent, const char *name, uint64_t u)
{
	struct an_value *v = add(parent, name, AN_UINT);

	if (v)
		v->u = u;
	return v;
}

struct an_value *an_add_int(struct an_value *parent, const char *name, int64_t i)
{
	struct an_value *v = add(parent, name, AN_INT);

	if (v)
		v->i = i;
	return v;
}

struct an_value *an_add_double(struct an_value *parent, const char *name, double f,
			       unsigned decimals)
{
	struct an_value *v;

	if (f != f || f - f != 0) /* NaN, infinite */
		return an_add_null(parent, name);
	v = add(parent, name, AN_DOUBLE);
	if (v) {
		v->f = f;
		v->decimals = decimals;
	}
	return v;
}

struct an_value *an_add_textn(struct an_value *parent, const char *name, const char *text,
			      size_t len)
{
	struct an_value *v = add(parent, name, AN_TEXT);

	if (v)
		v->text = keep(v->owner, text, len);
	return v;
}

struct an_value *an_add_text(struct an_value *parent, const char *name, const char *text)
{
	return an_add_textn(parent, name, text, strlen(text));
}

struct an_value *an_add_bool(struct an_value *parent, const char *name, bool b)
{
	struct an_value *v = add(parent, name, AN_BOOL);

	if (v)
		v->u = b;
	return v;
}

struct an_value *an_add_null(struct an_value *parent, const char *name)
{
	return add(parent, name, AN_NULL);
}

struct an_value *an_add_known(struct an_value *parent, const char *name, bool known, uint64_t v)
{
	return known ? an_add_uint(parent, name, v) : an_add_null(parent, name);
}

struct an_value *an_add_uint_named(struct an_value *parent, const char *name, uint64_t v)
{
	if (!parent)
		return NULL;
	return an_add_uint(parent, keep(parent->owner, name, strlen(name)), v);
}

struct an_value *an_add_double_named(struct an_value *parent, const char *name, double f,
				     unsigned decimals)
{
	if (!parent)
		return NULL;
	return an_add_double(parent, keep(parent->owner, name, strlen(name)), f, decimals);
}

struct an_value *an_add_textn_named(struct an_value *parent, const char *name, const char *text,
				    size_t len)
{
	if (!parent)
		return NULL;
	return an_add_textn(parent, keep(parent->owner, name, strlen(name)), text, len);
}

void an_add_finding(struct an_report *r, enum an_severity severity, const char *id,
		    const char *title, const char *evidence, const char *advice)
{
	struct finding *f = nt_arena_array(&r->arena, 1, sizeof(*f));

	if (!f) {
		r->failed = true;
		return;
	}
	f->severity = severity;
	f->id = keep(r, id, strlen(id));
	f->title = keep(r, title, strlen(title));
	f->evidence = keep(r, evidence, strlen(evidence));
	f->advice = keep(r, advice, strlen(advice));
	if (r->last)
		r->last->next = f;
	else
		r->first = f;
	r->last = f;
}

static struct finding *find_finding(const struct an_report *r, const char *id)
{
	struct finding *f = r->first;

	while (f && strcmp(f->id, id) != 0)
		f = f->next;
	return f;
}

bool an_report_has_finding(const struct an_report *r, const char *id)
{
	return find_finding(r, id) != NULL;
}

void an_report_set_evidence(struct an_report *r, const char *id, const char *evidence)
{
	struct finding *f = find_finding(r, id);

	if (f)
		f->evidence = keep(r, evidence, strlen(evidence));
}

const char *an_report_printf(struct an_report *r, const char *fmt, ...)
{
	va_list ap, again;
	char *buf = NULL;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	if (len >= 0)
		buf = nt_arena_get(&r->arena, (size_t)len + 1);
	if (buf)
		vsnprintf(buf, (size_t)len + 1, fmt, again);
	else
		r->failed = true;
	va_end(again);
	va_end(ap);
	return buf ? buf : "";
}

static const char *severity_name(enum an_severity s)
{
	static const char *const names[] = { "critical", "warning", "info" };

	return names[s];
}

void an_report_seal(struct an_report *r)
{
	struct an_value *list;

	if (r->sealed)
		return;
	r->sealed = true;
	list = an_add_array(&r->root, "findings");
	for (enum an_severity s = AN_CRITICAL; s <= AN_INFO; s++) {
		for (const struct finding *f = r->first; f; f = f->next) {
			struct an_value *v;

			if (f->severity != s)
				continue;
			v = an_add_object(list, NULL);
			an_add_text(v, "id", f->id);
			an_add_text(v, "severity", severity_name(s));
			an_add_text(v, "title", f->title);
			an_add_text(v, "evidence", f->evidence);
			an_add_text(v, "advice", f->advice);
		}
	}
}

static const struct an_value *member(const struct an_value *v, const char *name, size_t len)
{
	if (!v || v->kind != AN_OBJECT)
		return NULL;
	for (v = v->first; v; v = v->next)
		if (v->name && strlen(v->name) == len && !memcmp(v->name, name, len))
			return v;
	return NULL;
}

const struct an_value *an_get(const struct an_value *v, const char *path)
{
	while (v && *path) {
		size_t len = strcspn(path, ".");

		v = member(v, path, len);
		path += len;
		if (*path == '.')
			path++;
	}
	return v;
}

uint64_t an_get_u64(const struct an_value *v, const char *path, uint64_t dflt)
{
	v = an_get(v, path);
	if (!v)
		return dflt;
	switch (v->kind) {
	case AN_UINT:
	case AN_BOOL:
		return v->u;
	case AN_INT:
		return v->i >= 0 ? (uint64_t)v->i : dflt;
	case AN_DOUBLE:
		return v->f >= 0 && v->f < 18446744073709551616.0 ? (uint64_t)v->f : dflt;
	default:
		return dflt;
	}
}

double an_get_f64(const struct an_value *v, const char *path, double dflt)
{
	v = an_get(v, path);
	if (!v)
		return dflt;
	switch (v->kind) {
	case AN_UINT:
	case AN_BOOL:
		return (double)v->u;
	case AN_INT:
		return (double)v->i;
	case AN_DOUBLE:
		return v->f;
	default:
		return dflt;
	}
}

const char *an_get_text(const struct an_value *v, const char *path, const char *dflt)
{
	v = an_get(v, path);
	return v && v->kind == AN_TEXT ? v->text : dflt;
}
