/* SPDX-License-Identifier: MIT */
#include "src/event_count.h"

#include "analyzers/analyzer.h"
#include "src/command.h"
#include "src/fault.h"
#include "src/log.h"
#include "src/report_out.h"

struct counting {
	struct event_filter *filter;
	struct an_engine *engine;
};

static enum nt_status on_trace(void *ctx, const struct nt_trace_info *info)
{
	const struct counting *c = ctx;

	return an_engine_sink.trace ? an_engine_sink.trace(c->engine, info) : NT_OK;
}

static enum nt_status on_define(void *ctx, const struct nt_event_def *def)
{
	const struct counting *c = ctx;

	return an_engine_sink.define ? an_engine_sink.define(c->engine, def) : NT_OK;
}

static enum nt_status on_event(void *ctx, const struct nt_event *ev)
{
	const struct counting *c = ctx;
	bool match = false;
	enum nt_status st = event_filter_match(c->filter, ev, &match);

	return st == NT_OK && match ? an_engine_sink.event(c->engine, ev) : st;
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

static int print(struct an_engine *e, struct nt_decoder *d, struct out *out, bool json,
		 const char *file)
{
	const struct an_input input = { .file = file };
	struct an_report *r = an_report_new(NULL);
	enum nt_status st = r ? an_engine_report(e, d, &input, r) : NT_ENOMEM;

	if (st == NT_OK)
		st = an_report_status(r);
	if (st != NT_OK)
		log_error("cannot count the events: %s", nt_status_name(st));
	else if (json)
		report_json_member(out, an_report_borrow_root(r), "trace");
	else
		report_text_counts(out, an_report_borrow_root(r));
	an_report_free(r);
	return st == NT_OK ? EXIT_DONE : EXIT_FAILED;
}

int event_count(struct input *in, struct event_filter *filter, struct out *out, bool json,
		const char *file)
{
	static const struct an_class *const classes[] = { &an_class_trace, NULL };
	static const struct nt_sink sink = { on_trace, on_define, on_event, on_point, on_lost };
	const struct an_options options = { 0 };
	struct an_engine *e = an_engine_new(NULL, &options, classes);
	struct counting counting = { filter, e };
	bool all = event_filter_is_empty(filter);
	struct nt_decoder *d = NULL;
	int code = EXIT_FAILED, printed;

	if (e)
		d = nt_decoder_new(NULL, NULL, an_engine_flags(e) | NT_RECOVER,
				   all ? &an_engine_sink : &sink, all ? (void *)e : &counting);
	if (!d) {
		log_error("cannot read '%s': out of memory", input_name(in));
	} else {
		input_feed(in, d);
		code = fault_report(in, d);
	}
	if (code != EXIT_FAILED) {
		printed = print(e, d, out, json, file);
		code = printed == EXIT_DONE ? code : printed;
	}
	nt_decoder_free(d);
	an_engine_free(e);
	return code;
}
