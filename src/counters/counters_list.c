/* SPDX-License-Identifier: MIT */
#include "src/counters/counters_list.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_ENTRIES = 256, MAX_NAMES = 256 };

static const char event_counters[] = "EventCounters\\";

static bool fail(struct counters_list_error *error, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static bool fail(struct counters_list_error *error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error->text, sizeof(error->text), fmt, ap);
	va_end(ap);
	return false;
}

/* What the runtime's own syntax has no room for. */
static bool is_plain(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (strchr(";=\"[]\\", text[i]) || (unsigned char)text[i] < ' ')
			return false;
	return len > 0;
}

static bool add_name(struct counters_entry *e, const char *text, size_t len,
		     struct counters_list_error *error)
{
	char **names;

	while (len && *text == ' ') {
		text++;
		len--;
	}
	while (len && text[len - 1] == ' ')
		len--;
	if (!is_plain(text, len))
		return fail(error, "'%.*s' is no name of a counter", (int)(len > 60 ? 60 : len),
			    text);
	if (e->count == MAX_NAMES)
		return fail(error, "'%.60s' has more than %d names", e->provider, MAX_NAMES);
	names = realloc(e->names, (e->count + 1) * sizeof(*names));
	if (!names)
		return fail(error, "out of memory");
	e->names = names;
	names[e->count] = strndup(text, len);
	if (!names[e->count])
		return fail(error, "out of memory");
	e->count++;
	return true;
}

/* "a,b" */
static bool add_names(struct counters_entry *e, const char *text, size_t len,
		      struct counters_list_error *error)
{
	const char *end = text + len;

	for (;;) {
		size_t n = 0;

		while (text + n < end && text[n] != ',')
			n++;
		if (!add_name(e, text, n, error))
			return false;
		if (text + n == end)
			return true;
		text += n + 1;
	}
}

static bool add_entry(struct counters_list *l, const char *text, size_t len,
		      struct counters_list_error *error)
{
	struct counters_entry *e = realloc(l->items, (l->count + 1) * sizeof(*e));
	const char *end = text + len, *more;
	size_t n;

	if (!e)
		return fail(error, "out of memory");
	l->items = e;
	e += l->count;
	*e = (struct counters_entry){ .source = COUNTERS_BOTH };
	if (len > sizeof(event_counters) - 1 &&
	    !strncasecmp(text, event_counters, sizeof(event_counters) - 1)) {
		e->source = COUNTERS_EVENT_COUNTER;
		text += sizeof(event_counters) - 1;
	}
	for (n = 0; text + n < end && text[n] != '[' && text[n] != '\\'; n++)
		;
	if (!is_plain(text, n))
		return fail(error, "'%.*s' is no name of a meter or event source",
			    (int)(len > 60 ? 60 : len), end - len);
	e->provider = strndup(text, n);
	if (!e->provider)
		return fail(error, "out of memory");
	l->count++;
	more = text + n;
	if (more == end)
		return true;
	if (*more == '\\') {
		if (e->source == COUNTERS_EVENT_COUNTER)
			return fail(error, "'%.60s': EventCounters have their names in brackets",
				    e->provider);
		e->source = COUNTERS_METER;
		return add_name(e, more + 1, (size_t)(end - more - 1), error);
	}
	if (end[-1] != ']' || end - more < 2)
		return fail(error, "'%.60s[' has no end", e->provider);
	return add_names(e, more + 1, (size_t)(end - more - 2), error);
}

bool counters_list_parse(struct counters_list *l, const char *text,
			 struct counters_list_error *ret_error)
{
	for (;;) {
		size_t n = 0;
		bool inside = false;

		while (*text == ' ')
			text++;
		for (; text[n] && (inside || text[n] != ','); n++)
			inside = text[n] == '[' || (inside && text[n] != ']');
		if (l->count == MAX_ENTRIES)
			return fail(ret_error, "more than %d entries", MAX_ENTRIES);
		if (!add_entry(l, text, n, ret_error))
			return false;
		if (!text[n])
			return true;
		text += n + 1;
	}
}

void counters_list_done(struct counters_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		for (size_t k = 0; k < l->items[i].count; k++)
			free(l->items[i].names[k]);
		free(l->items[i].names);
		free(l->items[i].provider);
	}
	free(l->items);
	*l = (struct counters_list){ 0 };
}

static bool matches(const char *pattern, const char *name)
{
	size_t n = strlen(pattern);

	if (n && pattern[n - 1] == '*')
		return !strncasecmp(pattern, name, n - 1);
	return !strcasecmp(pattern, name);
}

static bool wants_name(const struct counters_entry *e, const char *name)
{
	for (size_t i = 0; i < e->count; i++)
		if (matches(e->names[i], name))
			return true;
	return !e->count;
}

struct counters_entry *counters_list_find(struct counters_list *l, const struct counter_row *row)
{
	bool meter = counter_is_meter(row->kind);

	for (size_t i = 0; i < l->count; i++) {
		struct counters_entry *e = &l->items[i];

		if (e->source == (meter ? COUNTERS_EVENT_COUNTER : COUNTERS_METER) ||
		    !matches(e->provider, row->provider) || !wants_name(e, row->name))
			continue;
		/* The same numbers twice, unless they were asked for by their names. */
		if (!meter && e->source == COUNTERS_BOTH && e->has_meter && !e->count)
			continue;
		return e;
	}
	return NULL;
}

void counters_list_has_meter(struct counters_list *l, const char *meter)
{
	for (size_t i = 0; i < l->count; i++)
		if (matches(l->items[i].provider, meter))
			l->items[i].has_meter = true;
}

char *counters_list_metrics(const struct counters_list *l)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	const char *comma = "";

	if (!f)
		return NULL;
	for (size_t i = 0; i < l->count; i++) {
		const struct counters_entry *e = &l->items[i];

		if (e->source == COUNTERS_EVENT_COUNTER)
			continue;
		if (!e->count)
			fprintf(f, "%s%s", comma, e->provider);
		for (size_t k = 0; k < e->count; k++)
			fprintf(f, "%s%s\\%s", k ? "," : comma, e->provider, e->names[k]);
		comma = ",";
	}
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
