/* SPDX-License-Identifier: MIT */
#include "src/trace/event_count.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzers/analyzer.h"
#include "src/base/command.h"
#include "src/base/log.h"
#include "src/report/report_out.h"
#include "src/trace/fault.h"

/* Names beyond that many are left out: no trace in the field has a tenth of it. */
enum { MAX_NAMES = 20000 };

struct kind {
	char *key; /* as in the report: "Provider/ID/vVERSION" */
	const char *name; /* behind key */
};

struct counting {
	struct event_filter *filter;
	struct an_engine *engine;
	struct kind *kinds;
	size_t count, room;
};

static enum nt_status keep_name(struct counting *c, const struct nt_event_def *def)
{
	struct kind *k;
	int n;

	if (c->count == c->room) {
		size_t room = c->room ? c->room * 2 : 64;

		k = reallocarray(c->kinds, room, sizeof(*k));
		if (!k)
			return NT_ENOMEM;
		c->kinds = k;
		c->room = room;
	}
	k = &c->kinds[c->count];
	n = asprintf(&k->key, "%s/%" PRIu32 "/v%" PRIu32 "%c%s", def->provider, def->event_id,
		     def->version, '\0', def->name);
	if (n < 0)
		return NT_ENOMEM;
	k->name = k->key + strlen(k->key) + 1;
	c->count++;
	return NT_OK;
}

static int by_key(const void *a, const void *b)
{
	const struct kind *x = a, *y = b;

	return strcmp(x->key, y->key);
}

static const char *name_of(void *ctx, const char *key)
{
	const struct counting *c = ctx;
	size_t low = 0, high = c->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(key, c->kinds[mid].key);

		if (!order)
			return c->kinds[mid].name;
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return "";
}

static enum nt_status on_trace(void *ctx, const struct nt_trace_info *info)
{
	const struct counting *c = ctx;

	return an_engine_sink.trace ? an_engine_sink.trace(c->engine, info) : NT_OK;
}

static enum nt_status on_define(void *ctx, const struct nt_event_def *def)
{
	struct counting *c = ctx;
	enum nt_status st = NT_OK;

	if (c->count < MAX_NAMES)
		st = keep_name(c, def);
	if (st == NT_OK && an_engine_sink.define)
		st = an_engine_sink.define(c->engine, def);
	return st;
}

static enum nt_status on_event(void *ctx, const struct nt_event *ev)
{
	const struct counting *c = ctx;
	bool match = true;
	enum nt_status st = NT_OK;

	if (c->filter)
		st = event_filter_match(c->filter, ev, &match);

	an_engine_count(c->engine, match);
	return st == NT_OK ? an_engine_sink.event(c->engine, ev) : st;
}

static enum nt_status on_point(void *ctx, int64_t time_ns)
{
	const struct counting *c = ctx;

	return an_engine_sink.sequence_point ? an_engine_sink.sequence_point(c->engine, time_ns)
					     : NT_OK;
}

static enum nt_status on_lost(void *ctx, uint64_t thread_id, uint64_t count, int64_t time_ns)
{
	const struct counting *c = ctx;

	return an_engine_sink.lost ? an_engine_sink.lost(c->engine, thread_id, count, time_ns)
				   : NT_OK;
}

static int print(struct counting *c, struct nt_decoder *d, struct out *out, bool json,
		 const char *file)
{
	const struct an_input input = { .file = file };
	struct an_report *r = an_report_new(NULL);
	enum nt_status st = r ? an_engine_report(c->engine, d, &input, r) : NT_ENOMEM;

	if (st == NT_OK)
		st = an_report_status(r);
	if (c->count)
		qsort(c->kinds, c->count, sizeof(*c->kinds), by_key);
	if (st != NT_OK)
		log_error("cannot count the events: %s", nt_status_name(st));
	else if (json)
		report_json_member(out, an_report_borrow_root(r), "trace");
	else
		report_text_counts(out, an_report_borrow_root(r), name_of, c);
	an_report_free(r);
	return st == NT_OK ? EXIT_DONE : EXIT_FAILED;
}

static void done(struct counting *c, struct nt_decoder *d)
{
	nt_decoder_free(d);
	an_engine_free(c->engine);
	for (size_t i = 0; i < c->count; i++)
		free(c->kinds[i].key);
	free(c->kinds);
}

int event_count(struct input *in, struct event_filter *filter, struct out *out, bool json,
		const char *file)
{
	static const struct an_class *const classes[] = { &an_class_trace, NULL };
	static const struct nt_sink sink = {
		.trace = on_trace,
		.define = on_define,
		.event = on_event,
		.sequence_point = on_point,
		.lost = on_lost,
	};
	const struct an_options options = { 0 };
	struct counting c = { .engine = an_engine_new(NULL, &options, classes) };
	struct nt_decoder *d = NULL;
	int code = EXIT_FAILED, printed;

	if (!event_filter_is_empty(filter))
		c.filter = filter;
	if (c.engine)
		d = nt_decoder_new(NULL, NULL, an_engine_flags(c.engine) | NT_RECOVER, &sink, &c);
	if (!d) {
		log_error("cannot read '%s': out of memory", input_name(in));
		done(&c, d);
		return EXIT_FAILED;
	}
	input_feed(in, d);
	code = fault_report(in, d);
	if (code != EXIT_FAILED) {
		printed = print(&c, d, out, json, file);
		code = printed == EXIT_DONE ? code : printed;
	}
	done(&c, d);
	return code;
}
