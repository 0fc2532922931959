/* SPDX-License-Identifier: MIT */
#include "src/trace/event_filter.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPCODE_START = 1, OPCODE_STOP = 2 };
enum { VERDICT_YES = 1, VERDICT_NO = 2 };

void event_filter_init(struct event_filter *f)
{
	memset(f, 0, sizeof(*f));
	f->from_ns = INT64_MIN;
	f->to_ns = INT64_MAX;
}

void event_filter_done(struct event_filter *f)
{
	free(f->verdicts);
	f->verdicts = NULL;
	f->verdict_room = 0;
}

bool event_filter_is_empty(const struct event_filter *f)
{
	return !f->providers.count && !f->names.count && !f->ids.count && !f->threads.count &&
	       f->from_ns == INT64_MIN && f->to_ns == INT64_MAX;
}

bool event_filter_is_number(const char *text)
{
	uint64_t v;

	return !opt_parse_uint(text, &v);
}

static bool fits(const char *glob, const char *text)
{
	return fnmatch(glob, text, FNM_NOESCAPE | FNM_CASEFOLD) == 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && strcmp(text + n - m, end) == 0;
}

bool event_name_fits(const char *glob, const char *name, uint32_t opcode)
{
	static const char *const words[] = { "Start", "Stop" };
	char other[512];
	size_t len = strlen(name);

	if (fits(glob, name))
		return true;
	if (len + 8 > sizeof(other))
		return false;
	for (size_t i = 0; i < 2; i++) {
		int base = (int)(len - strlen(words[i]));

		if (ends_with(name, words[i])) {
			snprintf(other, sizeof(other), "%.*s", base, name);
			if (fits(glob, other))
				return true;
			snprintf(other, sizeof(other), "%.*s/%s", base, name, words[i]);
			return fits(glob, other);
		}
	}
	if (opcode != OPCODE_START && opcode != OPCODE_STOP)
		return false;
	snprintf(other, sizeof(other), "%s%s", name, words[opcode - OPCODE_START]);
	if (fits(glob, other))
		return true;
	snprintf(other, sizeof(other), "%s/%s", name, words[opcode - OPCODE_START]);
	return fits(glob, other);
}

static bool any_number(const struct opt_list *list, uint64_t n)
{
	bool found = !list->count;

	for (size_t i = 0; i < list->count && !found; i++) {
		uint64_t v;

		found = !opt_parse_uint(list->items[i], &v) && v == n;
	}
	return found;
}

static bool any_glob(const struct opt_list *list, const char *text)
{
	bool found = !list->count;

	for (size_t i = 0; i < list->count && !found; i++)
		found = fits(list->items[i], text);
	return found;
}

static bool any_name(const struct opt_list *list, const struct nt_event_def *def)
{
	bool found = !list->count;

	for (size_t i = 0; i < list->count && !found; i++)
		found = event_name_fits(list->items[i], def->name, def->opcode);
	return found;
}

static bool definition_fits(const struct event_filter *f, const struct nt_event_def *def)
{
	return any_glob(&f->providers, def->provider) && any_number(&f->ids, def->event_id) &&
	       any_name(&f->names, def);
}

static bool make_room(struct event_filter *f, size_t index)
{
	size_t room = f->verdict_room ? f->verdict_room : 64;
	unsigned char *grown;

	while (room <= index)
		room *= 2; /* indices are dense: as many as definitions, which are capped */
	grown = realloc(f->verdicts, room);
	if (!grown)
		return false;
	memset(grown + f->verdict_room, 0, room - f->verdict_room);
	f->verdicts = grown;
	f->verdict_room = room;
	return true;
}

enum nt_status event_filter_match(struct event_filter *f, const struct nt_event *ev,
				  bool *ret_match)
{
	size_t index = ev->def->index;

	if (index >= f->verdict_room && !make_room(f, index))
		return NT_ENOMEM;
	if (!f->verdicts[index])
		f->verdicts[index] = definition_fits(f, ev->def) ? VERDICT_YES : VERDICT_NO;
	*ret_match = f->verdicts[index] == VERDICT_YES && ev->time_ns >= f->from_ns &&
		     ev->time_ns < f->to_ns && any_number(&f->threads, ev->thread_id);
	return NT_OK;
}
