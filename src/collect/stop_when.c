/* SPDX-License-Identifier: MIT */
#include "src/collect/stop_when.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "nettrace/nettrace.h"
#include "src/base/options.h"
#include "src/trace/event_filter.h"
#include "src/trace/event_write.h"

enum { MAX_FIELDS = 64, MAX_NAME = 256 };

struct stop_when {
	struct stop_when_config config;
	struct nt_decoder *decoder;
	struct event_buffer buffer;
	bool found;
};

/* The next "Field:Value" of a list; false at its end. */
static bool next_pair(const char **list, char field[MAX_NAME], const char **ret_value,
		      size_t *ret_len)
{
	const char *colon, *p = *list;
	size_t all = strcspn(p, ",");

	if (!*p)
		return false;
	colon = memchr(p, ':', all);
	*list = p + all + (p[all] == ',');
	if (!colon || (size_t)(colon - p) >= MAX_NAME)
		return false;
	memcpy(field, p, (size_t)(colon - p));
	field[colon - p] = '\0';
	*ret_value = colon + 1;
	*ret_len = all - (size_t)(colon + 1 - p);
	return true;
}

bool stop_when_is_payload(const char *text)
{
	char field[MAX_NAME];
	const char *value;
	size_t len;

	do {
		if (!next_pair(&text, field, &value, &len) || !*field)
			return false;
	} while (*text);
	return true;
}

static bool same(const char *text, size_t len, const char *want, size_t want_len)
{
	return len == want_len && memcmp(text, want, len) == 0;
}

static bool same_uint(uint64_t v, const char *want, size_t len)
{
	char text[32];
	uint64_t number;

	if (len >= sizeof(text))
		return false;
	memcpy(text, want, len);
	text[len] = '\0';
	return !opt_parse_uint(text, &number) && number == v;
}

static bool same_word(const char *text, const char *want, size_t len)
{
	return strlen(text) == len && strncasecmp(text, want, len) == 0;
}

/* Whether a field's value reads like that. */
static bool value_is(struct stop_when *w, const struct nt_value *v, const char *want, size_t len)
{
	char text[64], *end;

	switch (v->kind) {
	case NT_V_UTF16:
	case NT_V_UTF8:
		w->buffer.len = 0;
		return event_string(&w->buffer, v) &&
		       same(w->buffer.text, w->buffer.len, want, len);
	case NT_V_UINT:
		return same_uint(v->u, want, len);
	case NT_V_BOOL:
		return same_word(v->u ? "true" : "false", want, len) || same_uint(v->u, want, len);
	case NT_V_INT:
		snprintf(text, sizeof(text), "%" PRId64, v->i);
		return same_word(text, want, len) || (v->i >= 0 && same_uint(v->u, want, len));
	case NT_V_DOUBLE:
		return strtod(want, &end) == v->f && end == want + len && len > 0;
	case NT_V_GUID:
		event_guid(v->data, text);
		return same_word(text, want, len);
	default:
		return false; /* bytes, arrays, objects, times: no one text */
	}
}

static bool payload_fits(struct stop_when *w, const struct nt_event *ev)
{
	struct nt_value values[MAX_FIELDS];
	size_t len, n = nt_payload_read(ev, values, MAX_FIELDS, NULL);
	const char *list = w->config.payload, *want;
	char field[MAX_NAME];

	while (next_pair(&list, field, &want, &len)) {
		const struct nt_value *v = nt_value_find(values, n, field);

		if (!v || !value_is(w, v, want, len))
			return false;
	}
	return true;
}

static enum nt_status on_event(void *ctx, const struct nt_event *ev)
{
	struct stop_when *w = ctx;

	if (strcasecmp(ev->def->provider, w->config.provider) != 0)
		return NT_OK;
	if (w->config.event && !event_name_fits(w->config.event, ev->def->name, ev->def->opcode))
		return NT_OK;
	if (w->config.payload && !payload_fits(w, ev))
		return NT_OK;
	w->found = true;
	return NT_STOPPED;
}

struct stop_when *stop_when_new(const struct stop_when_config *config)
{
	static const struct nt_sink sink = { .event = on_event };
	struct stop_when *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->config = *config;
	w->decoder = nt_decoder_new(NULL, NULL, NT_SKIP_STACKS | NT_RECOVER, &sink, w);
	return w->decoder ? w : stop_when_free(w);
}

struct stop_when *stop_when_free(struct stop_when *w)
{
	if (!w)
		return NULL;
	nt_decoder_free(w->decoder);
	free(w->buffer.text);
	free(w);
	return NULL;
}

bool stop_when_push(struct stop_when *w, const uint8_t *bytes, size_t len)
{
	/* A stream that cannot be read is the analysis's to report; here it just has no events. */
	if (!w->found && nt_decoder_push(w->decoder, bytes, len) < 0)
		return false;
	return w->found;
}
