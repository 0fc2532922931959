/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_REPORT_H
#define ANALYZERS_REPORT_H

/*
 * The one report model: a tree of named values plus findings.  Analyzers fill it; writers in src/
 * turn it into text or JSON and so cannot disagree.  Members appear in the order in which they
 * were added; their names are those of the JSON schema "drdotnet-trace/1".
 *
 * Building cannot fail half-way: when memory runs out the report remembers it, add functions
 * return NULL and accept NULL as parent, and an_report_status() says NT_ENOMEM at the end.
 */

#include "nettrace/nettrace.h"

/* As decimals: as many digits as it takes to read the same number back. */
#define AN_SHORTEST 99

enum an_kind { AN_NULL, AN_BOOL, AN_UINT, AN_INT, AN_DOUBLE, AN_TEXT, AN_OBJECT, AN_ARRAY };

struct an_report;

struct an_value {
	struct an_report *owner;
	struct an_value *next; /* sibling, in order of adding */
	struct an_value *first, *last; /* members or elements */
	const char *name; /* NULL for elements of arrays */
	enum an_kind kind;
	unsigned decimals; /* AN_DOUBLE: digits behind the point that mean something */
	union {
		uint64_t u; /* AN_UINT; AN_BOOL 0 or 1 */
		int64_t i;
		double f; /* never NaN or infinite: those become AN_NULL */
		const char *text; /* UTF-8 */
	};
	size_t count; /* members or elements */
};

enum an_severity { AN_CRITICAL, AN_WARNING, AN_INFO };

/* alloc NULL: nt_alloc_default.  NULL when out of memory. */
struct an_report *an_report_new(const struct nt_alloc *alloc);
struct an_report *an_report_free(struct an_report *r); /* returns NULL */
enum nt_status an_report_status(const struct an_report *r);

/* The top object: its members are the sections (trace, cpu, gc, …) and, last, findings. */
struct an_value *an_report_root(struct an_report *r);
const struct an_value *an_report_borrow_root(const struct an_report *r);

/* name must be static, or NULL when parent is an array.  Text is copied. */
struct an_value *an_add_object(struct an_value *parent, const char *name);
struct an_value *an_add_array(struct an_value *parent, const char *name);
struct an_value *an_add_uint(struct an_value *parent, const char *name, uint64_t v);
struct an_value *an_add_int(struct an_value *parent, const char *name, int64_t v);
struct an_value *an_add_double(struct an_value *parent, const char *name, double v,
			       unsigned decimals);
struct an_value *an_add_text(struct an_value *parent, const char *name, const char *text);
struct an_value *an_add_textn(struct an_value *parent, const char *name, const char *text,
			      size_t len);
struct an_value *an_add_bool(struct an_value *parent, const char *name, bool v);
/* "Not recorded". */
struct an_value *an_add_null(struct an_value *parent, const char *name);
/* The number where it is known, else null. */
struct an_value *an_add_known(struct an_value *parent, const char *name, bool known, uint64_t v);
/* Members whose name is data (an event's "Provider/ID/vN"); the name is copied. */
struct an_value *an_add_uint_named(struct an_value *parent, const char *name, uint64_t v);
struct an_value *an_add_double_named(struct an_value *parent, const char *name, double v,
				     unsigned decimals);
struct an_value *an_add_textn_named(struct an_value *parent, const char *name, const char *text,
				    size_t len);

/*
 * A sentence a tired person understands at 3 a.m., its evidence in numbers, and what to look at
 * next.  id is one of docs/findings.md.  All text is copied; use an_report_printf() to format it.
 */
void an_add_finding(struct an_report *r, enum an_severity severity, const char *id,
		    const char *title, const char *evidence, const char *advice);
bool an_report_has_finding(const struct an_report *r, const char *id);
/* Other evidence for the first finding of that id, when other sections know more. */
void an_report_set_evidence(struct an_report *r, const char *id, const char *evidence);
/* Formats into the report's own memory; "" when out of memory. */
const char *an_report_printf(struct an_report *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Sorts the findings by severity (stable) and puts them into the tree.  Call once, at the end. */
void an_report_seal(struct an_report *r);

/* path: names joined by dots, "gc.pause_p99_ms".  NULL when there is no such value. */
const struct an_value *an_get(const struct an_value *v, const char *path);
/* Convenience for writers: the number or text at path, or the default when absent or null. */
uint64_t an_get_u64(const struct an_value *v, const char *path, uint64_t dflt);
double an_get_f64(const struct an_value *v, const char *path, double dflt);
const char *an_get_text(const struct an_value *v, const char *path, const char *dflt);

#endif
