/* SPDX-License-Identifier: MIT */
#include "src/collect/providers.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool fail(struct provider_error *reterr, const char *text, const char *why)
{
	snprintf(reterr->text, sizeof(reterr->text), "'%.100s' %s", text, why);
	return false;
}

static bool no_memory(struct provider_error *reterr)
{
	snprintf(reterr->text, sizeof(reterr->text), "out of memory");
	return false;
}

void provider_set_done(struct provider_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		free(set->items[i].name);
		free(set->items[i].args);
	}
	free(set->items);
	*set = (struct provider_set){ 0 };
}

struct provider *provider_set_find(const struct provider_set *set, const char *name)
{
	for (size_t i = 0; i < set->count; i++)
		if (strcasecmp(set->items[i].name, name) == 0)
			return &set->items[i];
	return NULL;
}

static bool append(struct provider_set *set, const struct provider *p,
		   struct provider_error *reterr)
{
	struct provider *more = reallocarray(set->items, set->count + 1, sizeof(*more)), *item;

	if (!more)
		return no_memory(reterr);
	set->items = more;
	item = &more[set->count];
	*item = *p;
	item->name = strdup(p->name);
	item->args = p->args ? strdup(p->args) : NULL;
	if (!item->name || (p->args && !item->args)) {
		free(item->name);
		free(item->args);
		return no_memory(reterr);
	}
	set->count++;
	return true;
}

bool provider_set_add(struct provider_set *set, const struct provider *p,
		      struct provider_error *reterr)
{
	struct provider *old = provider_set_find(set, p->name);

	if (!old)
		return append(set, p, reterr);
	if (old->args && p->args)
		return fail(reterr, p->name, "is given arguments twice");
	if (p->args) {
		old->args = strdup(p->args);
		if (!old->args)
			return no_memory(reterr);
	}
	old->keywords |= p->keywords;
	if (old->level == PROVIDER_LEVEL_ALWAYS || p->level == PROVIDER_LEVEL_ALWAYS)
		old->level = PROVIDER_LEVEL_ALWAYS;
	else if (p->level > old->level)
		old->level = p->level;
	return true;
}

bool provider_set_add_missing(struct provider_set *set, const struct provider_set *more,
			      struct provider_error *reterr)
{
	size_t count = set->count;

	for (size_t i = 0; i < more->count; i++) {
		bool there = false;

		for (size_t k = 0; k < count && !there; k++)
			there = strcasecmp(set->items[k].name, more->items[i].name) == 0;
		if (!there && !provider_set_add(set, &more->items[i], reterr))
			return false;
	}
	return true;
}

/* --- words --- */

bool provider_level_parse(const char *text, unsigned *ret)
{
	static const char *const names[] = { "logalways", "critical",	   "error",
					     "warning",	  "informational", "verbose" };
	unsigned long v;
	char *end;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(text, names[i]) == 0) {
			*ret = i;
			return true;
		}
	}
	if (!isdigit((unsigned char)*text))
		return false;
	v = strtoul(text, &end, 10);
	if (*end)
		return false;
	*ret = v > PROVIDER_LEVEL_VERBOSE ? PROVIDER_LEVEL_VERBOSE : (unsigned)v;
	return true;
}

static bool parse_hex(const char *text, uint64_t *ret)
{
	uint64_t v = 0;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		text += 2;
	if (!*text)
		return false;
	for (; *text; text++) {
		int c = tolower((unsigned char)*text);

		if (!isxdigit(c) || v >> 60 != 0)
			return false;
		v = v << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	*ret = v;
	return true;
}

static const struct {
	const char *name;
	uint64_t value;
} clr_keywords[] = {
	{ "gc", 0x1 },
	{ "gchandle", 0x2 },
	{ "assemblyloader", 0x4 },
	{ "fusion", 0x4 },
	{ "loader", 0x8 },
	{ "jit", 0x10 },
	{ "ngen", 0x20 },
	{ "startenumeration", 0x40 },
	{ "endenumeration", 0x80 },
	{ "security", 0x400 },
	{ "appdomainresourcemanagement", 0x800 },
	{ "jittracing", 0x1000 },
	{ "interop", 0x2000 },
	{ "contention", 0x4000 },
	{ "exception", 0x8000 },
	{ "threading", 0x10000 },
	{ "jittedmethodiltonativemap", 0x20000 },
	{ "overrideandsuppressngenevents", 0x40000 },
	{ "type", 0x80000 },
	{ "gcheapdump", 0x100000 },
	{ "gcsampledobjectallocationhigh", 0x200000 },
	{ "gcheapsurvivalandmovement", 0x400000 },
	{ "gcheapcollect", 0x800000 },
	{ "managedheadcollect", 0x800000 },
	{ "managedheapcollect", 0x800000 },
	{ "gcheapandtypenames", 0x1000000 },
	{ "gcsampledobjectallocationlow", 0x2000000 },
	{ "perftrack", 0x20000000 },
	{ "stack", 0x40000000 },
	{ "threadtransfer", 0x80000000 },
	{ "debugger", 0x100000000 },
	{ "monitoring", 0x200000000 },
	{ "codesymbols", 0x400000000 },
	{ "eventsource", 0x800000000 },
	{ "compilation", 0x1000000000 },
	{ "compilationdiagnostic", 0x2000000000 },
	{ "methoddiagnostic", 0x4000000000 },
	{ "typediagnostic", 0x8000000000 },
	{ "jitinstrumentationdata", 0x10000000000 },
	{ "profiler", 0x20000000000 },
	{ "waithandle", 0x40000000000 },
	{ "allocationsampling", 0x80000000000 },
};

static bool clr_keyword(const char *word, uint64_t *ret)
{
	for (size_t i = 0; i < sizeof(clr_keywords) / sizeof(clr_keywords[0]); i++) {
		if (strcasecmp(word, clr_keywords[i].name) == 0) {
			*ret = clr_keywords[i].value;
			return true;
		}
	}
	return strncasecmp(word, "0x", 2) == 0 && parse_hex(word, ret);
}

/* The next item up to one of the separators, without blanks around it; NULL at the end. */
static char *next_item(char **rest, const char *separators)
{
	char *item = strsep(rest, separators);
	size_t n;

	if (!item)
		return NULL;
	while (isspace((unsigned char)*item))
		item++;
	n = strlen(item);
	while (n > 0 && isspace((unsigned char)item[n - 1]))
		item[--n] = '\0';
	return item;
}

bool provider_clr_events_parse(const char *text, uint64_t *ret, struct provider_error *reterr)
{
	char *copy = strdup(text), *rest = copy, *word;
	uint64_t all = 0, one;
	bool ok = true;

	if (!copy)
		return no_memory(reterr);
	while (ok && (word = next_item(&rest, "+,")) != NULL) {
		if (!*word)
			continue;
		ok = clr_keyword(word, &one);
		if (ok)
			all |= one;
		else
			fail(reterr, word, "is no keyword of the runtime's provider");
	}
	if (ok && all == 0)
		ok = fail(reterr, text, "names no keyword of the runtime's provider");
	free(copy);
	if (ok)
		*ret = all;
	return ok;
}

/* --- arguments --- */

/* What stands behind a backslash; unknown ones stay as they are. */
static char unescape(char c)
{
	switch (c) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'r':
		return '\r';
	default:
		return c;
	}
}

struct text {
	char *buf; /* twice the input's size always suffices */
	size_t len;
};

/* One key or value up to an unquoted stop; quotes are dropped. */
static const char *take_word(const char *p, const char *stops, struct text *t)
{
	bool quoted = false;

	for (; *p && (quoted || !strchr(stops, *p)); p++) {
		if (*p == '"')
			quoted = !quoted;
		else if (*p == '\\' && p[1])
			t->buf[t->len++] = unescape(*++p);
		else
			t->buf[t->len++] = *p;
	}
	t->buf[t->len] = '\0';
	return p;
}

static void put_value(struct text *out, const struct text *value)
{
	bool quote = strpbrk(value->buf, ";=") != NULL;

	if (quote)
		out->buf[out->len++] = '"';
	memcpy(out->buf + out->len, value->buf, value->len);
	out->len += value->len;
	if (quote)
		out->buf[out->len++] = '"';
}

/*
 * KEY=VALUE;KEY=VALUE as typed to the same as the runtime wants it: it takes quotes away, so they
 * are put only where they are needed.  NULL with *reterr set.
 */
static char *parse_args(const char *text, struct provider_error *reterr)
{
	size_t room = 3 * strlen(text) + 1;
	struct text out = { malloc(room), 0 }, word = { malloc(room), 0 };
	const char *p = text;

	while (out.buf && word.buf && *p) {
		word.len = 0;
		p = take_word(p, ";=", &word);
		if (*p != '=' && word.len > 0) {
			fail(reterr, word.buf, "has no value: arguments are KEY=VALUE;KEY=VALUE");
			goto fail;
		}
		if (*p == '=') {
			if (out.len > 0)
				out.buf[out.len++] = ';';
			put_value(&out, &word);
			out.buf[out.len++] = '=';
			word.len = 0;
			p = take_word(p + 1, ";", &word);
			put_value(&out, &word);
		}
		if (*p == ';')
			p++;
	}
	free(word.buf);
	if (out.buf && word.buf) {
		out.buf[out.len] = '\0';
		return out.buf;
	}
	no_memory(reterr);
	free(out.buf);
	return NULL;
fail:
	free(word.buf);
	free(out.buf);
	return NULL;
}

/* --- lists --- */

static bool parse_one(struct provider_set *set, char *text, struct provider_error *reterr)
{
	struct provider p = { .level = PROVIDER_LEVEL_INFORMATIONAL };
	char *rest = text, *keywords, *level;
	bool ok;

	p.name = strsep(&rest, ":");
	keywords = strsep(&rest, ":");
	level = strsep(&rest, ":"); /* the rest, colons and all, are arguments */
	if (!*p.name)
		return fail(reterr, text, "has no name before the colon");
	if (keywords && *keywords && !parse_hex(keywords, &p.keywords))
		return fail(reterr, keywords, "is no hexadecimal number of keywords");
	if (level && *level && !provider_level_parse(level, &p.level))
		return fail(reterr, level,
			    "is no level: 0 to 5, critical, error, informational, logalways, "
			    "verbose or warning");
	if (rest && *rest) {
		p.args = parse_args(rest, reterr);
		if (!p.args)
			return false;
	}
	ok = provider_set_add(set, &p, reterr);
	free(p.args);
	return ok;
}

bool provider_set_parse(struct provider_set *set, const char *list, struct provider_error *reterr)
{
	char *copy = strdup(list), *rest = copy, *item;
	bool ok = true;

	if (!copy)
		return no_memory(reterr);
	while (ok && (item = next_item(&rest, ",")) != NULL)
		if (*item)
			ok = parse_one(set, item, reterr);
	if (ok && set->count == 0)
		ok = fail(reterr, list, "names no provider");
	free(copy);
	return ok;
}
