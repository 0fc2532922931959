/* SPDX-License-Identifier: MIT */
#include "src/report/expr.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/base/options.h"

enum { WORD_BYTES = 128, MAX_NAMES = 1024 };

/* --- names --- */

static const struct {
	const char *name, *path;
} aliases[] = {
	{ "events.lost", "trace.events_lost" },
	{ "events.count", "trace.events" },
};

enum { ALIASES = sizeof(aliases) / sizeof(aliases[0]) };

static const struct value_spec *find_path(const char *name, size_t len)
{
	for (const struct value_spec *v = values; v->path; v++)
		if (strlen(v->path) == len && !memcmp(v->path, name, len))
			return v;
	return NULL;
}

const struct value_spec *expr_find(const char *name, size_t len)
{
	for (size_t i = 0; i < ALIASES; i++)
		if (strlen(aliases[i].name) == len && !memcmp(aliases[i].name, name, len))
			return find_path(aliases[i].path, strlen(aliases[i].path));
	return find_path(name, len);
}

const char *expr_alias(size_t i, const struct value_spec **ret)
{
	if (i >= ALIASES)
		return NULL;
	*ret = find_path(aliases[i].path, strlen(aliases[i].path));
	return aliases[i].name;
}

const char *expr_unit_name(enum value_unit unit)
{
	static const char *const names[VALUE_UNITS] = {
		[UNIT_NONE] = "",	    [UNIT_BOOL] = "true/false", [UNIT_MS] = "ms",
		[UNIT_BYTES] = "B",	    [UNIT_PERCENT] = "%",	[UNIT_PER_S] = "/s",
		[UNIT_PER_MINUTE] = "/min", [UNIT_BYTES_PER_S] = "B/s",
	};

	return names[unit];
}

/* The member alone: "pause_p99_ms" for "gc.pause_p99_ms". */
static const char *by_member(const char *word)
{
	for (const struct value_spec *v = values; v->path; v++) {
		const char *member = strrchr(v->path, '.');

		if (member && !strcmp(member + 1, word))
			return v->path;
	}
	return NULL;
}

static const char *nearest(const char *word)
{
	const char *names[MAX_NAMES], *near;
	size_t n = 0;

	for (; n < ALIASES; n++)
		names[n] = aliases[n].name;
	for (const struct value_spec *v = values; v->path && n + 1 < MAX_NAMES; v++)
		names[n++] = v->path;
	names[n] = NULL;
	near = opt_nearest(word, names);
	return near ? near : by_member(word);
}

/* --- reading --- */

struct reader {
	const char *text, *at;
	struct expr_error *error;
};

static bool fail(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool fail(struct reader *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->error->text, sizeof(r->error->text), fmt, ap);
	va_end(ap);
	return false;
}

static void skip_space(struct reader *r)
{
	while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')
		r->at++;
}

/* The next word of such characters, empty where there is none. */
static size_t peek(const struct reader *r, const char *also)
{
	size_t n = 0;

	while (isalnum((unsigned char)r->at[n]) || (r->at[n] && strchr(also, r->at[n])))
		n++;
	return n;
}

static bool is_word(const struct reader *r, size_t n, const char *word)
{
	return n == strlen(word) && !strncasecmp(r->at, word, n);
}

/* For messages: what stands there, not all of it. */
static int shown(const char *at)
{
	size_t n = strlen(at);

	return n > 40 ? 40 : (int)n;
}

static bool read_value(struct reader *r, struct expr_term *t)
{
	size_t n = peek(r, "._-");
	char word[WORD_BYTES];
	const char *near;

	if (!n && !*r->at)
		return fail(r, "a value is missing at the end");
	if (!n)
		return fail(r, "a value is expected at '%.*s'", shown(r->at), r->at);
	t->value = expr_find(r->at, n);
	if (t->value) {
		r->at += n;
		return true;
	}
	snprintf(word, sizeof(word), "%.*s", n < WORD_BYTES ? (int)n : WORD_BYTES - 1, r->at);
	near = nearest(word);
	if (near)
		return fail(r, "there is no value '%s'; did you mean '%s'?", word, near);
	return fail(r, "there is no value '%s'; 'report --list-values' names all", word);
}

static bool read_op(struct reader *r, struct expr_term *t)
{
	static const struct {
		const char *text;
		enum expr_op op;
	} ops[] = {
		{ ">=", EXPR_GE }, { "<=", EXPR_LE }, { "==", EXPR_EQ }, { "!=", EXPR_NE },
		{ ">", EXPR_GT },  { "<", EXPR_LT },  { "=", EXPR_EQ },
	};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (strncmp(r->at, ops[i].text, strlen(ops[i].text)) != 0)
			continue;
		r->at += strlen(ops[i].text);
		t->op = ops[i].op;
		return true;
	}
	return fail(r, "'%s' is compared with nothing: >, >=, <, <=, == or != is expected",
		    t->value->path);
}

/* What one of the unit is, in the unit of its kind (ms, bytes, percent, a second). */
static const struct {
	const char *name;
	enum value_unit kind;
	double factor;
} units[] = {
	{ "ns", UNIT_MS, 1e-6 },
	{ "us", UNIT_MS, 1e-3 },
	{ "ms", UNIT_MS, 1 },
	{ "s", UNIT_MS, 1e3 },
	{ "m", UNIT_MS, 60e3 },
	{ "min", UNIT_MS, 60e3 },
	{ "h", UNIT_MS, 3600e3 },
	{ "d", UNIT_MS, 86400e3 },
	{ "B", UNIT_BYTES, 1 },
	{ "K", UNIT_BYTES, 1024 },
	{ "KB", UNIT_BYTES, 1024 },
	{ "KiB", UNIT_BYTES, 1024 },
	{ "M", UNIT_BYTES, 1048576 },
	{ "MB", UNIT_BYTES, 1048576 },
	{ "MiB", UNIT_BYTES, 1048576 },
	{ "G", UNIT_BYTES, 1073741824 },
	{ "GB", UNIT_BYTES, 1073741824 },
	{ "GiB", UNIT_BYTES, 1073741824 },
	{ "T", UNIT_BYTES, 1099511627776 },
	{ "TB", UNIT_BYTES, 1099511627776 },
	{ "TiB", UNIT_BYTES, 1099511627776 },
	{ "%", UNIT_PERCENT, 1 },
	{ "/s", UNIT_PER_S, 1 },
	{ "/min", UNIT_PER_MINUTE, 1 },
};

static bool unit_factor(enum value_unit unit, const char *at, size_t n, double *ret)
{
	if (unit == UNIT_BYTES_PER_S) {
		unit = UNIT_BYTES;
		if (n > 2 && !memcmp(at + n - 2, "/s", 2))
			n -= 2;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (units[i].kind != unit || strlen(units[i].name) != n ||
		    memcmp(units[i].name, at, n) != 0)
			continue;
		*ret = units[i].factor;
		return true;
	}
	return false;
}

static bool wrong_unit(struct reader *r, const struct expr_term *t, size_t n)
{
	static const char *const expected[VALUE_UNITS] = {
		[UNIT_NONE] = "is a plain number",
		[UNIT_BOOL] = "is true or false",
		[UNIT_MS] = "is a time: ms, s, m, h",
		[UNIT_BYTES] = "is a size: B, K, M, G",
		[UNIT_PERCENT] = "is a share: %",
		[UNIT_PER_S] = "is a rate: /s",
		[UNIT_PER_MINUTE] = "is a rate: /min",
		[UNIT_BYTES_PER_S] = "is a rate: K/s, M/s, G/s",
	};

	return fail(r, "'%.*s' is no unit of '%s', which %s", n > 40 ? 40 : (int)n, r->at,
		    t->value->path, expected[t->value->unit]);
}

/* Digits, a point, an exponent; not what else strtod() takes. */
static size_t number_length(const char *at)
{
	size_t n = *at == '-' || *at == '+', digits = strspn(at + n, "0123456789"), exponent;

	n += digits;
	if (at[n] == '.') {
		size_t behind = strspn(at + n + 1, "0123456789");

		digits += behind;
		n += 1 + behind;
	}
	if (!digits)
		return 0;
	if (at[n] == 'e' || at[n] == 'E') {
		exponent = n + 1 + (at[n + 1] == '-' || at[n + 1] == '+');
		if (isdigit((unsigned char)at[exponent]))
			n = exponent + strspn(at + exponent, "0123456789");
	}
	return n;
}

static bool read_bool(struct reader *r, struct expr_term *t)
{
	size_t n = peek(r, "");
	bool yes = is_word(r, n, "true") || is_word(r, n, "1");

	if (!yes && !is_word(r, n, "false") && !is_word(r, n, "0"))
		return fail(r, "'%s' is true or false, not '%.*s'", t->value->path, shown(r->at),
			    r->at);
	t->limit = yes;
	r->at += n;
	return true;
}

static bool read_number(struct reader *r, struct expr_term *t)
{
	size_t n = number_length(r->at), unit;
	double factor = 1;

	if (t->value->unit == UNIT_BOOL)
		return read_bool(r, t);
	if (!n && !*r->at)
		return fail(r, "a number is missing behind '%s'", t->value->path);
	if (!n)
		return fail(r, "a number is expected at '%.*s'", shown(r->at), r->at);
	t->limit = strtod(r->at, NULL);
	r->at += n;
	skip_space(r);
	unit = peek(r, "/%");
	if (unit && !is_word(r, unit, "and") && !is_word(r, unit, "or") &&
	    !is_word(r, unit, "for")) {
		if (!unit_factor(t->value->unit, r->at, unit, &factor))
			return wrong_unit(r, t, unit);
		r->at += unit;
	}
	t->limit *= factor;
	return isfinite(t->limit) ? true
				  : fail(r, "the number behind '%s' is too large", t->value->path);
}

static bool read_for(struct reader *r, const struct expr_term *t)
{
	size_t n = peek(r, "");
	char word[WORD_BYTES];
	uint64_t unused_ns;
	const char *why;

	if (!is_word(r, n, "for"))
		return true;
	r->at += n;
	skip_space(r);
	n = peek(r, ":");
	snprintf(word, sizeof(word), "%.*s", n < WORD_BYTES ? (int)n : WORD_BYTES - 1, r->at);
	why = opt_parse_duration(word, &unused_ns);
	if (why)
		return fail(r, "for '%s': %s", word, why);
	r->at += n;
	return fail(r, "'%s' is one number for the whole recording: 'for' makes no sense with it",
		    t->value->path);
}

static bool read_term(struct reader *r, struct expr_term *t)
{
	bool good;

	skip_space(r);
	t->begin = (size_t)(r->at - r->text);
	good = read_value(r, t);
	skip_space(r);
	good = good && read_op(r, t);
	skip_space(r);
	good = good && read_number(r, t);
	t->end = (size_t)(r->at - r->text);
	skip_space(r);
	good = good && read_for(r, t);
	if (!good)
		return false;
	while (t->end > t->begin && isspace((unsigned char)r->text[t->end - 1]))
		t->end--;
	skip_space(r);
	return true;
}

/* Between two terms. */
static bool read_join(struct reader *r, bool *ret_or)
{
	size_t n = peek(r, "");

	*ret_or = is_word(r, n, "or");
	if (!*ret_or && !is_word(r, n, "and"))
		return fail(r, "'and' or 'or' is expected at '%.*s'", shown(r->at), r->at);
	r->at += n;
	return true;
}

bool expr_parse(struct expr *ret, const char *text, struct expr_error *ret_error)
{
	struct reader r = { .text = text, .at = text, .error = ret_error };
	bool is_or = false;

	*ret = (struct expr){ .text = text };
	if (strlen(text) > EXPR_MAX_BYTES)
		return fail(&r, "it is longer than %d bytes", EXPR_MAX_BYTES);
	for (;;) {
		struct expr_term *t = &ret->terms[ret->count];

		if (ret->count == EXPR_MAX_TERMS)
			return fail(&r, "it has more than %d terms", EXPR_MAX_TERMS);
		if (!read_term(&r, t))
			return false;
		t->or_before = is_or;
		ret->count++;
		if (!*r.at)
			return true;
		if (!read_join(&r, &is_or))
			return false;
	}
}

/* --- judging --- */

static bool number_at(const struct an_value *root, const char *path, double *ret)
{
	const struct an_value *v = an_get(root, path);

	if (!v)
		return false;
	switch (v->kind) {
	case AN_UINT:
	case AN_BOOL:
		*ret = (double)v->u;
		return true;
	case AN_INT:
		*ret = (double)v->i;
		return true;
	case AN_DOUBLE:
		*ret = v->f;
		return true;
	default:
		return false;
	}
}

static bool compare(double is, enum expr_op op, double limit)
{
	switch (op) {
	case EXPR_GT:
		return is > limit;
	case EXPR_GE:
		return is >= limit;
	case EXPR_LT:
		return is < limit;
	case EXPR_LE:
		return is <= limit;
	case EXPR_EQ:
		return is >= limit && is <= limit;
	case EXPR_NE:
		return is < limit || is > limit;
	}
	return false;
}

enum expr_result expr_judge_term(const struct expr_term *t, const struct an_value *root,
				 double *ret_is)
{
	if (!number_at(root, t->value->path, ret_is))
		return EXPR_UNKNOWN;
	return compare(*ret_is, t->op, t->limit) ? EXPR_TRUE : EXPR_FALSE;
}

bool expr_judge(const struct expr *e, const struct an_value *root, enum expr_result *results)
{
	bool holds = false, group = true;
	double is;

	for (size_t i = 0; i < e->count; i++) {
		results[i] = expr_judge_term(&e->terms[i], root, &is);
		if (e->terms[i].or_before) {
			holds = holds || group;
			group = true;
		}
		group = group && results[i] == EXPR_TRUE;
	}
	return holds || (group && e->count);
}
