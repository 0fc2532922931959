/* SPDX-License-Identifier: MIT */

/* counters: readings of EventCounters and Meters as they come. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/base/trace_name.h"
#include "src/collect/collect.h"
#include "src/collect/collect_plan.h"
#include "src/counters/counters_list.h"
#include "src/counters/counters_run.h"
#include "src/counters/counters_write.h"

#define NS_PER_MS UINT64_C(1000000)
#define SECOND	  UINT64_C(1000000000)

enum { ARGS_BYTES = 256, LEAST_REFRESH_MS = 100 };

struct counters_args {
	uint64_t pid;
	const char *name, *port;
	bool show_child_io, resume;
	struct opt_list counters;
	const char *refresh;
	uint64_t duration_ns, timeout_ns, stop_timeout_ns;
	int format; /* enum counters_format */
	const char *output;
	bool force, quiet;
	uint64_t max_histograms, max_series;
};

static const char *const formats[] = {
	[COUNTERS_CSV] = "csv", [COUNTERS_JSON] = "json", [COUNTERS_NDJSON] = "ndjson", NULL
};

/* Seconds alone, as dotnet-counters has it, or with a unit. */
static bool parse_refresh(const char *text, uint64_t *ret_ns)
{
	uint64_t v;

	if (!opt_parse_uint(text, &v)) {
		if (v > 86400)
			return false;
		*ret_ns = v * SECOND;
	} else if (opt_parse_duration(text, ret_ns)) {
		return false;
	}
	return *ret_ns >= LEAST_REFRESH_MS * NS_PER_MS && *ret_ns <= 86400 * SECOND;
}

static bool is_refresh(const char *text)
{
	uint64_t ns;

	return parse_refresh(text, &ns);
}

static const struct opt_spec counters_options[] = {
	{ "process-id", 'p', "PID", "the process (default: the only one)",
	  OPT_UINT(struct counters_args, pid), .min = 1, .max = INT32_MAX, .aliases = { "pid" } },
	{ "name", 'n', "NAME", "the process, by process, assembly or .dll name",
	  OPT_STRING(struct counters_args, name) },
	{ "diagnostic-port", 0, "PORT", "PATH or HOST:PORT[,listen|connect]: who is behind it",
	  OPT_STRING(struct counters_args, port), .aliases = { "dport" } },
	{ "show-child-io", 0, NULL, "let the command behind -- read and write as we do",
	  OPT_FLAG(struct counters_args, show_child_io) },
	{ "resume-runtime", 0, "true|false", "let a runtime that waits at the port go on (default)",
	  OPT_BOOL(struct counters_args, resume) },
	{ "counters", 0, "LIST", "Name, Name[a,b] or Meter\\Instrument, joined by commas",
	  OPT_LIST(struct counters_args, counters) },
	{ "refresh-interval", 0, "TIME", "between two readings: 1 (default; seconds), 500ms, 1m",
	  OPT_STRING(struct counters_args, refresh), .check = is_refresh,
	  .expected = "100ms and more, seconds without a unit" },
	{ "duration", 'd', "TIME", "stop after TIME: 30s, 5m, 1h30m (default: Ctrl-C)",
	  OPT_DURATION(struct counters_args, duration_ns), .min = NS_PER_MS,
	  .max = UINT64_C(366) * 86400 * SECOND },
	{ "format", 'f', "FORMAT", "csv (default), ndjson, or json (needs -o)",
	  OPT_ENUM(struct counters_args, format, formats) },
	{ "output", 'o', "FILE", "instead of standard output; %p pid, %n name, %t time, %h host",
	  OPT_STRING(struct counters_args, output), .check = trace_name_is_pattern,
	  .expected = TRACE_NAME_PATTERN },
	{ "force", 0, NULL, "replace an existing file", OPT_FLAG(struct counters_args, force) },
	{ "max-histograms", 0, "N", "histograms that the runtime keeps for us (default 10)",
	  OPT_UINT(struct counters_args, max_histograms), .min = 1, .max = 100000,
	  .aliases = { "maxHistograms" } },
	{ "max-time-series", 0, "N", "time series that the runtime keeps for us (default 1000)",
	  OPT_UINT(struct counters_args, max_series), .min = 1, .max = 1000000,
	  .aliases = { "maxTimeSeries" } },
	{ "timeout", 0, "TIME", "how long the process may take to begin (default 10s)",
	  OPT_DURATION(struct counters_args, timeout_ns), .min = NS_PER_MS, .max = 3600 * SECOND },
	{ "stop-timeout", 0, "TIME", "how long it may take to end (default 10s)",
	  OPT_DURATION(struct counters_args, stop_timeout_ns), .min = NS_PER_MS,
	  .max = 3600 * SECOND },
	{ "quiet", 'q', NULL, "say only what went wrong", OPT_FLAG(struct counters_args, quiet) },
	{ 0 },
};

static const char counters_notes[] =
	"actions:\n"
	"  collect  writes each reading down as it comes; what is written is always valid\n"
	"\n"
	"Names in --counters are event sources and meters (default System.Runtime).  Readings\n"
	"have the time of their event; one that comes late has gap_ms.  The program's own\n"
	"listeners share our interval while we read the EventCounters they read.\n"
	"\n"
	"examples:\n"
	"  drdotnet-trace counters collect -p 4711\n"
	"  drdotnet-trace counters collect -n Shop --counters "
	"'Shop.Meter,System.Runtime[cpu-usage]'\n"
	"  drdotnet-trace counters collect -p 4711 --refresh-interval 5 --format json -o "
	"shop.json\n";

/* --- what the runtime is asked for --- */

struct request {
	struct ipc_provider *providers;
	size_t count;
	char *metrics; /* arguments */
	char interval[64];
};

static void request_done(struct request *r)
{
	free(r->providers);
	free(r->metrics);
}

/* So that the runtime can tell us from another one that shares the session. */
static void client_id(char *buf, size_t size)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	snprintf(buf, size, "%08" PRIx32 "-%04x-4%03x-8000-%012" PRIx64, (uint32_t)t.tv_sec,
		 (unsigned)(t.tv_nsec >> 16) & 0xffff, (unsigned)(t.tv_nsec >> 4) & 0xfff,
		 (uint64_t)getpid());
}

static bool request_make(struct request *r, const struct counters_list *list,
			 const struct counters_args *args, uint64_t refresh_ns)
{
	double seconds = (double)refresh_ns / 1e9;
	char *metrics = counters_list_metrics(list), id[64];

	r->providers = calloc(list->count + 1, sizeof(*r->providers));
	client_id(id, sizeof(id));
	if (!metrics || !r->providers ||
	    asprintf(&r->metrics,
		     "SessionId=" COUNTERS_SESSION ";ClientId=%s;Metrics=%s;RefreshInterval=%g;"
		     "MaxTimeSeries=%" PRIu64 ";MaxHistograms=%" PRIu64,
		     id, metrics, seconds, args->max_series, args->max_histograms) < 0) {
		r->metrics = NULL;
		free(metrics);
		log_error("out of memory");
		return false;
	}
	snprintf(r->interval, sizeof(r->interval), "EventCounterIntervalSec=%g", seconds);
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].source != COUNTERS_METER)
			r->providers[r->count++] = (struct ipc_provider){
				.name = list->items[i].provider, .level = 4, .args = r->interval
			};
	if (*metrics)
		r->providers[r->count++] =
			(struct ipc_provider){ .name = "System.Diagnostics.Metrics",
					       .keywords = 7,
					       .level = 5,
					       .args = r->metrics };
	free(metrics);
	return true;
}

/* --- running --- */

static bool put(void *ctx, const struct counters_reading *reading)
{
	return counters_writer_put(ctx, reading);
}

/* The file has its name once the process is known. */
static struct counters_writer *open_output(const struct counters_args *args,
					   const struct collect_plan *plan)
{
	const struct collect_subject *who = plan->count ? &plan->subjects[0] : NULL;
	const struct trace_name name = { who ? who->pid : 0,
					 who		 ? who->name
					 : plan->command ? plan->command[0]
							 : "",
					 time(NULL), NULL };
	struct counters_writer *w;
	char *path = args->output ? trace_name_expand(args->output, &name) : NULL;

	if (args->output && !path) {
		log_error("out of memory");
		return NULL;
	}
	w = counters_writer_open(path, (enum counters_format)args->format, args->force);
	if (w && !counters_writer_begin(w, name.pid, name.process)) {
		counters_writer_close(w, EXIT_FAILED);
		w = NULL;
	}
	free(path);
	return w;
}

static int record(const struct counters_args *args, struct counters_list *list,
		  const struct collect_plan *plan, const struct request *request,
		  uint64_t refresh_ns)
{
	static const char *const sections[] = { "summary" };
	struct counters_writer *writer = open_output(args, plan);
	const struct counters_run_config config = { list, (int64_t)refresh_ns, put, writer };
	struct counters_run *run = writer ? counters_run_new(&config) : NULL;
	const struct collect_tap tap = { counters_run_event, run };
	const struct collect_settings settings = {
		.session = {
			.buffer_mb = 16,
			.rundown_keywords = IPC_RUNDOWN_NONE,
			.stacks = true,
			.providers = request->providers,
			.provider_count = request->count,
		},
		.duration_ms = (args->duration_ns + NS_PER_MS - 1) / NS_PER_MS,
		.timeout_ms = args->timeout_ns / NS_PER_MS,
		.stop_timeout_ms = args->stop_timeout_ns / NS_PER_MS,
		.cpu_source = COLLECT_CPU_EVENTPIPE,
		.tap = &tap,
		.sections = sections,
		.section_count = 1,
		.quiet = true,
		.resume = args->resume,
	};
	int code = EXIT_FAILED;

	if (!writer)
		return code;
	if (run)
		code = counters_run_end(run, args->quiet, collect_run(&settings, plan));
	else
		log_error("out of memory");
	counters_run_free(run);
	return counters_writer_close(writer, code);
}

static int collect(const struct command *cmd, struct counters_args *args,
		   struct counters_list *list, const char **command)
{
	char pid[16];
	const char *pids[] = { pid };
	const struct opt_list pid_list = { pids, args->pid != 0 };
	const struct collect_wish wish = {
		.pids = &pid_list,
		.name = args->name,
		.port = args->port,
		.command = command,
		.to_stdout = true, /* one process only */
		.ask_ms = args->timeout_ns / NS_PER_MS,
	};
	struct collect_planned planned = { 0 };
	struct request request = { 0 };
	uint64_t refresh_ns = SECOND;
	int code;

	snprintf(pid, sizeof(pid), "%" PRIu64, args->pid);
	if (args->refresh)
		parse_refresh(args->refresh, &refresh_ns);
	code = collect_plan_make(cmd, &wish, &planned);
	if (code < 0 && !request_make(&request, list, args, refresh_ns))
		code = EXIT_FAILED;
	if (code < 0) {
		args->duration_ns = collect_plan_duration(args->duration_ns, command != NULL);
		planned.plan.show_child_io = args->show_child_io;
		code = record(args, list, &planned.plan, &request, refresh_ns);
	}
	request_done(&request);
	collect_plan_done(&planned);
	return code;
}

/* --- the command line --- */

static int check_words(const struct command *cmd, const struct opt_operands *words)
{
	if (words->before_dashes == 0)
		return opt_usage_error(cmd, "an action is needed: collect");
	if (strcmp(words->v[0], "collect") != 0)
		return opt_usage_error(cmd, "'%s' is no action: collect", words->v[0]);
	if (words->before_dashes > 1)
		return opt_usage_error(cmd,
				       "'%s' is too much: give the process with -p or -n, or a "
				       "command behind '--'",
				       words->v[1]);
	return -1;
}

static int check_output(const struct command *cmd, const struct counters_args *args)
{
	bool to_stdout = !args->output || strcmp(args->output, "-") == 0;

	if (to_stdout && args->format == COUNTERS_JSON)
		return opt_usage_error(cmd, "--format json needs -o FILE, whose end moves on with "
					    "each reading; a pipe takes ndjson");
	return -1;
}

static int parse_list(const struct command *cmd, const struct counters_args *args,
		      struct counters_list *list)
{
	struct counters_list_error error;

	for (size_t i = 0; i < args->counters.count; i++)
		if (!counters_list_parse(list, args->counters.items[i], &error))
			return opt_usage_error(cmd, "--counters: %s", error.text);
	if (list->count == 0 && !counters_list_parse(list, "System.Runtime", &error)) {
		log_error("%s", error.text);
		return EXIT_FAILED;
	}
	return -1;
}

static int run_counters(const struct command *cmd, int argc, char **argv)
{
	struct counters_args args = {
		.resume = true,
		.timeout_ns = 10 * SECOND,
		.stop_timeout_ns = 10 * SECOND,
		.max_histograms = 10,
		.max_series = 1000,
	};
	struct counters_list list = { 0 };
	struct opt_operands words;
	const char **command = NULL;
	int code = opt_parse(cmd, argc, argv, &args, &words);

	if (code < 0)
		code = check_words(cmd, &words);
	if (code < 0)
		code = check_output(cmd, &args);
	if (code < 0)
		code = parse_list(cmd, &args, &list);
	if (code < 0 && words.dashes) {
		command = collect_plan_command(&words);
		if (!command) {
			log_error("out of memory");
			code = EXIT_FAILED;
		}
	}
	if (code < 0)
		code = collect(cmd, &args, &list, command);
	free(command);
	counters_list_done(&list);
	opt_done(cmd, &args, &words);
	return code;
}

const struct command cmd_counters = {
	.name = "counters",
	.operands = "collect [-- COMMAND [ARGS...]]",
	.summary = "readings of EventCounters and Meters, as they come",
	.notes = counters_notes,
	.options = counters_options,
	.run = run_counters,
};
