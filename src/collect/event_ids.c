/* SPDX-License-Identifier: MIT */
#include "src/collect/event_ids.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char no_memory[] = "out of memory";
static const char no_number[] = "an event id is a number, or a range as in 10-12";

/* A number of at most nine digits at *p, which moves behind it. */
static bool take_id(const char **p, uint32_t *ret)
{
	size_t n = strspn(*p, "0123456789");
	uint32_t v = 0;

	if (n == 0 || n > 9)
		return false;
	for (size_t i = 0; i < n; i++)
		v = v * 10 + (uint32_t)((*p)[i] - '0');
	*p += n;
	*ret = v;
	return true;
}

static const char *add_range(struct event_ids *e, uint32_t first, uint32_t last)
{
	size_t n = e->filter.count;
	uint32_t *ids;

	if (last < first)
		return "a range goes from the smaller id to the larger";
	if (last - first >= EVENT_IDS_MAX || n + (last - first) + 1 > EVENT_IDS_MAX)
		return "too many event ids";
	ids = reallocarray(e->ids, n + (last - first) + 1, sizeof(*ids));
	if (!ids)
		return no_memory;
	e->ids = ids;
	for (uint32_t id = first; id <= last; id++)
		ids[n++] = id;
	e->filter.ids = ids;
	e->filter.count = n;
	return NULL;
}

static const char *read_ids(struct event_ids *e, const char *p)
{
	for (;;) {
		uint32_t first, last;
		const char *why;

		if (!take_id(&p, &first))
			return no_number;
		last = first;
		if (*p == '-') {
			p++;
			if (!take_id(&p, &last))
				return no_number;
		}
		why = add_range(e, first, last);
		if (why || !*p)
			return why;
		if (*p++ != ',')
			return no_number;
	}
}

static const char *read_filter(struct event_ids *e, const char *text)
{
	const char *colon = strchr(text, ':'), *p;

	if (!colon || colon == text)
		return "write Provider:only:IDS or Provider:except:IDS";
	e->provider = strndup(text, (size_t)(colon - text));
	if (!e->provider)
		return no_memory;
	p = colon + 1;
	if (strncasecmp(p, "only:", 5) == 0) {
		e->filter.enable = true;
		return read_ids(e, p + 5);
	}
	if (strncasecmp(p, "except:", 7) == 0)
		return read_ids(e, p + 7);
	return "write Provider:only:IDS or Provider:except:IDS";
}

static void clear(struct event_ids *e)
{
	free(e->provider);
	free(e->ids);
}

const char *event_ids_add(struct event_ids_set *set, const char *text)
{
	struct event_ids e = { 0 }, *items;
	const char *why = read_filter(&e, text);

	if (!why && event_ids_of(set, e.provider))
		why = "this provider has a filter already";
	if (!why) {
		items = reallocarray(set->items, set->count + 1, sizeof(*items));
		if (items) {
			set->items = items;
			items[set->count++] = e;
			return NULL;
		}
		why = no_memory;
	}
	clear(&e);
	return why;
}

void event_ids_done(struct event_ids_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		clear(&set->items[i]);
	free(set->items);
	*set = (struct event_ids_set){ 0 };
}

const struct ipc_event_filter *event_ids_of(const struct event_ids_set *set, const char *provider)
{
	for (size_t i = 0; i < set->count; i++)
		if (strcasecmp(set->items[i].provider, provider) == 0)
			return &set->items[i].filter;
	return NULL;
}

bool event_ids_pass(const struct event_ids_set *set, const struct nt_event_def *def)
{
	const struct ipc_event_filter *f = event_ids_of(set, def->provider);
	bool listed = false;

	if (!f)
		return true;
	for (size_t i = 0; i < f->count && !listed; i++)
		listed = f->ids[i] == def->event_id;
	return listed == f->enable;
}
