/* SPDX-License-Identifier: MIT */

/*
 * EventCounters and Meters that a trace has, as series of readings at the events' own times.
 * counter_event.c reads the events.  Two instruments may have one name; they are told apart by
 * their ids, which .NET 9 and newer send (runtime-events.md §6).
 */

#include "analyzers/counters/counters_internal.h"

#include <math.h>

#include "analyzers/grow.h"

enum { MAX_TEXTS = 20 * 1000, MAX_INSTRUMENTS = 4000 };

struct analyzer {
	struct counters c;
};

static struct analyzer *counters_free(struct analyzer *a)
{
	const struct nt_alloc *al;

	if (!a)
		return NULL;
	al = a->c.shared->alloc;
	for (size_t i = 0; i < a->c.series_count; i++)
		an_mem_free(al, a->c.series[i].points);
	an_mem_free(al, a->c.series);
	an_mem_free(al, a->c.instruments);
	an_textset_done(&a->c.texts);
	nt_idmap_done(&a->c.by_key);
	an_mem_free(al, a);
	return NULL;
}

static struct analyzer *counters_new(struct an_shared *shared)
{
	struct analyzer *a = an_mem_get(shared->alloc, sizeof(*a));

	if (!a)
		return NULL;
	a->c.shared = shared;
	a->c.error_text = AN_TEXT_OTHER;
	an_textset_init(&a->c.texts, shared->alloc, MAX_TEXTS);
	nt_idmap_init(&a->c.by_key, shared->alloc);
	return a;
}

static bool counters_wants(const struct nt_event_def *def)
{
	return counter_event_wanted(def);
}

/* Texts of a row; ends at a NULL text. */
struct wanted {
	const char *text;
	uint32_t *id;
};

static enum nt_status keep_texts(struct counters *c, const struct wanted *w)
{
	enum nt_status st = NT_OK;

	for (; w->text && st == NT_OK; w++)
		st = an_textset_add(&c->texts, w->text, w->id);
	return st;
}

static enum nt_status on_reading(struct counters *c, const struct counter_row *row)
{
	struct counter_reading r = { .row = row };
	const struct wanted texts[] = {
		{ row->session, &r.key[KEY_SESSION] },
		{ row->provider, &r.key[KEY_PROVIDER] },
		{ row->version, &r.key[KEY_VERSION] },
		{ row->name, &r.key[KEY_NAME] },
		{ row->tags, &r.key[KEY_TAGS] },
		{ row->unit, &r.unit },
		{ row->title, &r.title },
		{ row->scale, &r.scale },
		{ NULL, NULL },
	};
	enum nt_status st = keep_texts(c, texts);

	return st < 0 ? st : counters_add(c, &r);
}

static enum nt_status on_instrument(struct counters *c, const struct counter_row *row)
{
	struct counter_instrument i = { .id = row->instrument }, *list;
	const struct wanted texts[] = {
		{ row->provider, &i.meter },
		{ row->version, &i.version },
		{ row->name, &i.name },
		{ row->type, &i.type },
		{ row->text, &i.description },
		{ row->instrument_tags, &i.tags },
		{ row->meter_tags, &i.meter_tags },
		{ row->scope, &i.scope },
		{ NULL, NULL },
	};
	enum nt_status st;

	if (c->instrument_count >= MAX_INSTRUMENTS)
		return NT_OK;
	st = keep_texts(c, texts);
	if (st < 0)
		return st;
	list = an_mem_grow(c->shared->alloc, c->instruments, &c->instrument_cap,
			   c->instrument_count + 1, sizeof(*list));
	if (!list)
		return NT_ENOMEM;
	c->instruments = list;
	list[c->instrument_count++] = i;
	return NT_OK;
}

static enum nt_status on_error(struct counters *c, const struct counter_row *row)
{
	c->errors++;
	if (c->error_text != AN_TEXT_OTHER || !*row->text)
		return NT_OK;
	return an_textset_add(&c->texts, row->text, &c->error_text);
}

static enum nt_status counters_event(struct analyzer *a, const struct nt_event *ev)
{
	struct counters *c = &a->c;

	switch (counter_event_read(ev, &c->row)) {
	case COUNTER_EVENT_READING:
		return on_reading(c, &c->row);
	case COUNTER_EVENT_INSTRUMENT:
		return on_instrument(c, &c->row);
	case COUNTER_EVENT_COLLECTION:
		c->collection++;
		break;
	case COUNTER_EVENT_SERIES_LIMIT:
		c->series_limit++;
		break;
	case COUNTER_EVENT_HISTOGRAM_LIMIT:
		c->histogram_limit++;
		break;
	case COUNTER_EVENT_CALLBACK_ERROR:
		c->callback_errors++;
		return on_error(c, &c->row);
	case COUNTER_EVENT_ERROR:
		return on_error(c, &c->row);
	case COUNTER_EVENT_REFUSED:
		c->session_refused = true;
		break;
	case COUNTER_EVENT_UNREADABLE:
		c->unreadable++;
		break;
	case COUNTER_EVENT_EARLY:
	case COUNTER_EVENT_OTHER:
		break;
	}
	return NT_OK;
}

static enum nt_status report(struct analyzer *a, struct an_report *out)
{
	return counters_report(&a->c, out);
}

/* They come with arguments, so their profile is a fixed one (src/collect/profiles.c). */
static const struct an_provider providers[] = { { 0 } };

const struct an_class an_class_counters = {
	.name = "counters",
	.summary = "EventCounters and Meters as series of readings",
	.providers = providers,
	.wants = counters_wants,
	.new = counters_new,
	.event = counters_event,
	.report = report,
	.free = counters_free,
	.needs = AN_NEED_ORDER,
	.symptom = "numbers over time: rates, sizes, percentiles",
	.cost = AN_COST_NONE,
};
