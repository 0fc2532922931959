/* SPDX-License-Identifier: MIT */

/* events: the decoded events of a trace, or how many there are of each kind. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/trace/analysis.h"
#include "src/trace/event_count.h"
#include "src/trace/event_filter.h"
#include "src/trace/event_write.h"
#include "src/trace/fault.h"
#include "src/trace/input.h"

enum format { FORMAT_TEXT, FORMAT_NDJSON, FORMAT_CSV, FORMAT_JSON };

struct events_args {
	struct event_filter filter;
	const char *output;
	uint64_t from_ns, to_ns;
	uint64_t limit;
	uint64_t zstd_window;
	int format;
	bool stacks, count, json, force;
};

static const char *const formats[] = { [FORMAT_TEXT] = "text",
				       [FORMAT_NDJSON] = "ndjson",
				       [FORMAT_CSV] = "csv",
				       [FORMAT_JSON] = "json",
				       NULL };

#define TO_END ((uint64_t)INT64_MAX)

static const struct opt_spec events_options[] = {
	{ "provider", 'P', "GLOB", "only providers that match; may be given again",
	  OPT_LIST(struct events_args, filter.providers) },
	{ "name", 'n', "GLOB", "only events whose name matches; may be given again",
	  OPT_LIST(struct events_args, filter.names) },
	{ "id", 0, "ID", "only events with that number; may be given again",
	  OPT_LIST(struct events_args, filter.ids), .check = event_filter_is_number,
	  .expected = "a number" },
	{ "thread", 0, "TID", "only events of that thread; may be given again",
	  OPT_LIST(struct events_args, filter.threads), .check = event_filter_is_number,
	  .expected = "a number" },
	{ "from", 0, "TIME", "only from that time after the start on (250ms, 1m30s)",
	  OPT_DURATION(struct events_args, from_ns), .max = TO_END },
	{ "to", 0, "TIME", "only before that time after the start",
	  OPT_DURATION(struct events_args, to_ns), .min = 1, .max = TO_END },
	{ "limit", 'l', "N", "stop after N events", OPT_UINT(struct events_args, limit), .min = 1 },
	{ "stacks", 's', NULL, "show call stacks (a file is read twice, to know all names)",
	  OPT_FLAG(struct events_args, stacks) },
	{ "count", 'c', NULL, "only count: by kind and by thread",
	  OPT_FLAG(struct events_args, count) },
	{ "format", 'f', "FORMAT", "text (default), ndjson or csv; json with --count",
	  OPT_ENUM(struct events_args, format, formats) },
	{ "json", 'j', NULL, "short for --format json; without --count the same as ndjson",
	  OPT_FLAG(struct events_args, json) },
	{ "output", 'o', "FILE", "write there instead of standard output",
	  OPT_STRING(struct events_args, output) },
	{ "force", 0, NULL, "replace an existing output file",
	  OPT_FLAG(struct events_args, force) },
	{ "zstd-window", 0, "LOG",
	  "allow compressed input that needs 2^LOG bytes of memory (default 25)",
	  OPT_UINT(struct events_args, zstd_window), .min = INPUT_WINDOW_LOG_MIN,
	  .max = INPUT_WINDOW_LOG_MAX },
	{ 0 },
};

static const char events_notes[] =
	"FILE is a .nettrace or .netperf file, plain or zstd-compressed, or '-' for standard\n"
	"input.  Globs (* ? [a-z]) ignore capitals; 'GC' and 'GC/Start' also find GCStart.\n"
	"Times are milliseconds since the session started.\n"
	"\n"
	"examples:\n"
	"  drdotnet-trace events api.nettrace --count\n"
	"  drdotnet-trace events api.nettrace --name 'GC*' --from 1s --to 2s\n"
	"  drdotnet-trace events api.nettrace --name ExceptionThrown --stacks --limit 10\n"
	"  drdotnet-trace events api.nettrace --format ndjson | jq .payload\n";

/* Printing: what the sink of the decoder knows. */
struct printing {
	struct event_filter *filter;
	struct event_writer writer;
	struct an_methods *follow, *complete; /* NULL: no names wanted */
	uint64_t limit, seen, shown;
};

static enum nt_status print_event(void *ctx, const struct nt_event *ev)
{
	struct printing *p = ctx;
	enum nt_status st = NT_OK;
	bool match = false;

	p->seen++;
	if (p->follow)
		st = an_methods_event(p->follow, ev);
	if (st == NT_OK)
		st = event_filter_match(p->filter, ev, &match);
	if (st != NT_OK || !match)
		return st;
	st = event_write(&p->writer, ev);
	p->shown++;
	return st == NT_OK && p->shown == p->limit ? NT_STOPPED : st;
}

static enum nt_status learn_names(void *ctx, const struct nt_event *ev)
{
	return an_methods_event(ctx, ev);
}

/* The names of all methods: most come at the end of a trace. */
static struct an_methods *read_names(struct input *in)
{
	static const struct nt_sink sink = { .event = learn_names };
	struct an_methods *methods = an_methods_new(NULL);
	struct nt_decoder *d = NULL;
	enum nt_status st = NT_ENOMEM;

	if (methods)
		d = nt_decoder_new(NULL, NULL, NT_TIME_ORDER | NT_SKIP_STACKS | NT_RECOVER, &sink,
				   methods);
	if (d)
		st = input_feed(in, d);
	nt_decoder_free(d);
	/* A fault of the stream is met again, and told, when the events are read. */
	if (st == NT_ENOMEM)
		return an_methods_free(methods);
	return methods;
}

static int prepare_stacks(struct printing *p, struct input *in)
{
	if (!input_can_rewind(in)) {
		log_warn("stacks show addresses: names come last in a trace, and '%s' cannot be "
			 "read twice",
			 input_name(in));
		return -1;
	}
	p->follow = an_methods_new(NULL);
	p->writer.names.follow = p->follow;
	if (p->follow)
		p->complete = read_names(in);
	p->writer.names.complete = p->complete;
	if (!p->complete) {
		log_error("cannot read '%s': out of memory", input_name(in));
		return EXIT_FAILED;
	}
	if (!input_rewind(in)) {
		log_error("cannot read '%s' a second time", input_name(in));
		return EXIT_FAILED;
	}
	return -1;
}

static int print(struct printing *p, struct input *in)
{
	static const struct nt_sink sink = { .event = print_event };
	struct nt_decoder *d = nt_decoder_new(NULL, NULL, NT_TIME_ORDER | NT_RECOVER, &sink, p);
	enum nt_status st;
	int code;

	if (!d) {
		log_error("cannot read '%s': out of memory", input_name(in));
		return EXIT_FAILED;
	}
	event_write_head(&p->writer);
	st = input_feed(in, d);
	code = fault_report(in, d);
	if (code != EXIT_FAILED && st != NT_STOPPED && !p->shown)
		log_warn("none of the %" PRIu64 " events matches", p->seen);
	nt_decoder_free(d);
	return code;
}

static int print_events(struct events_args *args, struct input *in, struct out *out)
{
	struct printing p = { .filter = &args->filter, .limit = args->limit };
	int code = -1;

	p.writer.out = out;
	p.writer.stacks = args->stacks;
	p.writer.format = EVENT_TEXT;
	if (args->format == FORMAT_CSV)
		p.writer.format = EVENT_CSV;
	else if (args->format != FORMAT_TEXT)
		p.writer.format = EVENT_NDJSON;
	if (args->stacks)
		code = prepare_stacks(&p, in);
	if (code < 0)
		code = print(&p, in);
	event_writer_done(&p.writer);
	an_methods_free(p.follow);
	an_methods_free(p.complete);
	return code;
}

static int check(const struct command *cmd, struct events_args *args,
		 const struct opt_operands *words)
{
	if (args->json)
		args->format = FORMAT_JSON;
	if (words->count != 1)
		return opt_usage_error(cmd,
				       words->count ? "one FILE is enough" : "no FILE was given");
	if (args->count && args->format != FORMAT_TEXT && args->format != FORMAT_JSON)
		return opt_usage_error(cmd, "--count has the formats text and json only");
	if (args->count && (args->stacks || args->limit))
		return opt_usage_error(cmd, "--count goes with neither --stacks nor --limit");
	if (args->format == FORMAT_CSV && args->stacks)
		return opt_usage_error(cmd, "--stacks goes with text and ndjson only");
	if (args->from_ns >= args->to_ns)
		return opt_usage_error(cmd, "--from must be before --to");
	if (args->from_ns)
		args->filter.from_ns = (int64_t)args->from_ns;
	if (args->to_ns < TO_END)
		args->filter.to_ns = (int64_t)args->to_ns;
	return -1;
}

static int work(const struct command *cmd, struct events_args *args, const char *file)
{
	struct out *out = NULL;
	int code = EXIT_FAILED;
	struct input *in;

	if (args->output && out_same_file(args->output, file))
		return opt_usage_error(cmd, "the events would replace the trace '%s'", file);
	in = input_open(file, (unsigned)args->zstd_window);
	if (in)
		out = out_open(args->output, args->force);
	if (out && args->count)
		code = event_count(in, &args->filter, out, args->format == FORMAT_JSON, file);
	else if (out)
		code = print_events(args, in, out);
	input_close(in);
	if (!out)
		return EXIT_FAILED;
	if (code != EXIT_FAILED)
		return out_close(out, code);
	out_discard(out);
	return code;
}

static int run_events(const struct command *cmd, int argc, char **argv)
{
	struct events_args args = { .zstd_window = INPUT_WINDOW_LOG, .to_ns = TO_END };
	struct opt_operands words;
	int code;

	event_filter_init(&args.filter);
	code = opt_parse(cmd, argc, argv, &args, &words);
	if (code < 0)
		code = check(cmd, &args, &words);
	if (code < 0)
		code = work(cmd, &args, words.v[0]);
	event_filter_done(&args.filter);
	opt_done(cmd, &args, &words);
	return code;
}

const struct command cmd_events = {
	.name = "events",
	.operands = "FILE",
	.summary = "the decoded events of a trace, or how many there are of each kind",
	.notes = events_notes,
	.options = events_options,
	.run = run_events,
};
