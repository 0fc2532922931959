/* SPDX-License-Identifier: MIT */

/* collect: records a process and analyses it live.  Here: the command line. */

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/base/output.h"
#include "src/base/trace_name.h"
#include "src/collect/collect.h"
#include "src/collect/collect_plan.h"
#include "src/collect/collect_request.h"
#include "src/collect/heap_walk.h"
#include "src/collect/profiles.h"
#include "src/perf/perf_sampler.h"
#include "src/report/opt_limit.h"

#define NS_PER_MS  UINT64_C(1000000)
#define SECOND	   UINT64_C(1000000000)
#define TIMEOUT_NS (10 * SECOND) /* unless --timeout says otherwise */

struct collect_args {
	struct opt_list pids;
	const char *name, *wait_for, *port;
	bool children, resume, show_child_io;
	int exit_code; /* enum exit_code_of */
	uint64_t duration_ns;
	struct opt_list providers, profiles;
	const char *clr_events, *clr_level;
	uint64_t buffer_mb;
	int buffering; /* enum buffering */
	bool rundown, no_stacks;
	const char *rundown_keyword;
	bool heap;
	uint64_t walks; /* of the heap */
	bool heap_only; /* nothing else is recorded */
	struct opt_list event_filters;
	const char *stop_provider, *stop_event, *stop_payload;
	uint64_t max_size, keep, zstd_level;
	bool early_symbols, no_early_symbols;
	const char *output, *report;
	bool force, json, quiet;
	int format; /* enum report_format */
	uint64_t top;
	int view; /* enum an_view */
	struct opt_list limit;
	struct an_limits limits; /* what becomes of it */
	int cpu_source; /* enum collect_cpu_source */
	uint64_t cpu_frequency;
	bool kernel_frames;
	struct opt_list fail_if;
	int fail_on; /* enum fail_on */
	uint64_t timeout_ns, stop_timeout_ns;
};

enum { BUFFER_MB = 256 };
enum buffering { BUFFERING_DROP, BUFFERING_BLOCK };

static const char *const bufferings[] = {
	[BUFFERING_DROP] = "drop", [BUFFERING_BLOCK] = "block", NULL
};
enum exit_code_of { EXIT_CODE_CHILD, EXIT_CODE_TOOL };

static const char *const exit_codes[] = {
	[EXIT_CODE_CHILD] = "child", [EXIT_CODE_TOOL] = "tool", NULL
};
static const char *const cpu_sources[] = {
	[COLLECT_CPU_AUTO] = "auto",
	[COLLECT_CPU_PERF] = "perf",
	[COLLECT_CPU_PROC] = "proc",
	[COLLECT_CPU_EVENTPIPE] = "eventpipe",
	NULL,
};

static const char *const views[] = {
	[AN_VIEW_CPU] = "cpu", [AN_VIEW_WALL] = "wall", [AN_VIEW_WAITING] = "waiting", NULL
};
static const char *const formats[] = { [REPORT_TEXT] = "text", [REPORT_JSON] = "json", NULL };

static const struct opt_spec collect_options[] = {
	{ "process-id", 'p', "PID", "process to trace (default: the only one); may be repeated",
	  OPT_LIST(struct collect_args, pids), .aliases = { "pid" } },
	{ "name", 'n', "NAME", "process to trace, by process, assembly or .dll name",
	  OPT_STRING(struct collect_args, name) },
	{ "wait-for", 0, "NAME", "the same, as soon as there is one",
	  OPT_STRING(struct collect_args, wait_for) },
	{ "children", 0, NULL, "trace what the process has started and starts, too",
	  OPT_FLAG(struct collect_args, children) },
	{ "diagnostic-port", 0, "PORT",
	  "PATH or HOST:PORT[,listen|connect][,suspend|nosuspend]: runtimes that connect to it",
	  OPT_STRING(struct collect_args, port), .aliases = { "dport" } },
	{ "show-child-io", 0, NULL, "let the command behind -- read and write as we do",
	  OPT_FLAG(struct collect_args, show_child_io) },
	{ "exit-code", 0, "child|tool",
	  "whose exit code is ours when all went well: (default) child",
	  OPT_ENUM(struct collect_args, exit_code, exit_codes) },
	{ "resume-runtime", 0, "true|false", "let a runtime that waits at the port go on (default)",
	  OPT_BOOL(struct collect_args, resume) },
	{ "duration", 'd', "TIME", "stop after TIME: 30s, 5m, 1h30m (default: Ctrl-C)",
	  OPT_DURATION(struct collect_args, duration_ns), .min = NS_PER_MS,
	  .max = UINT64_C(366) * 86400 * SECOND },
	{ "output", 'o', "FILE",
	  "trace file; .zst compresses; %p pid, %n name, %t time, %h host; - stdout; none",
	  OPT_STRING(struct collect_args, output), .check = trace_name_is_pattern,
	  .expected = TRACE_NAME_PATTERN },
	{ "force", 0, NULL, "replace existing files", OPT_FLAG(struct collect_args, force) },
	{ "profile", 0, "LIST", "what to record: names of profiles, see below",
	  OPT_LIST(struct collect_args, profiles) },
	{ "providers", 0, "LIST", "what to record: Name[:Keywords[:Level[:Key=Value;...]]],...",
	  OPT_LIST(struct collect_args, providers) },
	{ "clrevents", 0, "LIST", "keywords of the runtime's provider, joined by '+'",
	  OPT_STRING(struct collect_args, clr_events) },
	{ "clreventlevel", 0, "LEVEL", "level of --clrevents (default informational)",
	  OPT_STRING(struct collect_args, clr_level) },
	{ "heap", 0, NULL, "walk the heap, too: every pending async chain; stops the process",
	  OPT_FLAG(struct collect_args, heap) },
	{ "walks", 0, "N", "of the heap: 2 s apart (default) tell stuck from busy, 1 cannot",
	  OPT_UINT(struct collect_args, walks), .min = 1, .max = 2 },
	{ "buffersize", 0, "MB", "the runtime's buffer for events (default 256; --heap: 1024)",
	  OPT_UINT(struct collect_args, buffer_mb), .min = 1, .max = 65536 },
	{ "buffering-mode", 0, "MODE",
	  "when that is full: drop events (default), or block the process's threads (.NET 11+)",
	  OPT_ENUM(struct collect_args, buffering, bufferings) },
	{ "event-filter", 0, "FILTER", "Provider:only:IDS or Provider:except:IDS; IDS as in 1,5-9",
	  OPT_LIST(struct collect_args, event_filters) },
	{ "no-stacks", 0, NULL, "record events without their stacks (.NET 9+)",
	  OPT_FLAG(struct collect_args, no_stacks) },
	{ "rundown", 0, "true|false", "end with the names of all methods (default true)",
	  OPT_BOOL(struct collect_args, rundown) },
	{ "rundown-keyword", 0, "KEYWORDS", "what the rundown holds, as in --clrevents (.NET 9+)",
	  OPT_STRING(struct collect_args, rundown_keyword) },
	{ "early-symbols", 0, NULL, "ask for the names of methods at the start, too",
	  OPT_FLAG(struct collect_args, early_symbols) },
	{ "no-early-symbols", 0, NULL, "do not: --keep then leaves old methods without names",
	  OPT_FLAG(struct collect_args, no_early_symbols) },
	{ "max-size", 0, "SIZE", "stop at that size; with --keep: begin another file",
	  OPT_SIZE(struct collect_args, max_size), .min = 1 << 20, .max = UINT64_C(1) << 50 },
	{ "keep", 0, "N", "keep the last N files of --max-size, NAME.0001.nettrace and so on",
	  OPT_UINT(struct collect_args, keep), .min = 1, .max = 100000 },
	{ "zstd-level", 0, "N", "how hard to compress a .zst file (default 3)",
	  OPT_UINT(struct collect_args, zstd_level), .min = 1, .max = 19 },
	{ "stopping-event-provider-name", 0, "NAME", "stop at an event of that provider",
	  OPT_STRING(struct collect_args, stop_provider) },
	{ "stopping-event-event-name", 0, "NAME", "... with that name",
	  OPT_STRING(struct collect_args, stop_event) },
	{ "stopping-event-payload-filter", 0, "Field:Value,...", "... and these values",
	  OPT_STRING(struct collect_args, stop_payload), .check = stop_when_is_payload,
	  .expected = "Field:Value,Field:Value" },
	{ "format", 'f', "FORMAT", "of the report: text (default) or json",
	  OPT_ENUM(struct collect_args, format, formats) },
	{ "json", 'j', NULL, "short for --format json", OPT_FLAG(struct collect_args, json) },
	{ "report", 0, "FILE", "write the report there instead of standard output",
	  OPT_STRING(struct collect_args, report), .check = trace_name_is_pattern,
	  .expected = TRACE_NAME_PATTERN },
	{ "top", 't', "N", "rows of each table of the report (default 20; 0: all)",
	  OPT_UINT(struct collect_args, top), .max = 1000000 },
	{ "view", 'v', "VIEW", "samples the CPU section ranks: cpu (default), wall, waiting",
	  OPT_ENUM(struct collect_args, view, views) },
	{ "limit", 0, "NAME=VALUE", "move the limit of a finding: gc.time=5 (all: analyzers)",
	  OPT_LIST(struct collect_args, limit) },
	{ "cpu-source", 0, "SOURCE",
	  "what tells who used the CPU: auto (default), perf (kernel), proc (/proc and samples), "
	  "eventpipe",
	  OPT_ENUM(struct collect_args, cpu_source, cpu_sources) },
	{ "cpu-frequency", 0, "HZ", "kernel samples in a second of CPU time (default 499)",
	  OPT_UINT(struct collect_args, cpu_frequency), .min = PERF_MIN_HZ, .max = PERF_MAX_HZ },
	{ "kernel-frames", 0, NULL, "with the kernel's functions in these samples",
	  OPT_FLAG(struct collect_args, kernel_frames) },
	{ "fail-if", 0, "EXPR",
	  "exit code 4 if that holds: 'gc.pause_p99_ms > 100 or events.lost > 0'",
	  OPT_LIST(struct collect_args, fail_if) },
	{ "fail-on", 0, "SEVERITY", "exit code 4 at a finding of that severity: critical, warning",
	  OPT_ENUM(struct collect_args, fail_on, fail_on_names) },
	{ "timeout", 0, "TIME", "how long the process may take to begin (default 10s)",
	  OPT_DURATION(struct collect_args, timeout_ns), .min = NS_PER_MS, .max = 3600 * SECOND },
	{ "stop-timeout", 0, "TIME", "how long it may take to end the trace (default 2m)",
	  OPT_DURATION(struct collect_args, stop_timeout_ns), .min = NS_PER_MS,
	  .max = 86400 * SECOND },
	{ "quiet", 'q', NULL, "say only what went wrong, and the file's name",
	  OPT_FLAG(struct collect_args, quiet) },
	{ 0 },
};

static const char collect_notes[] =
	"Records .NET processes and analyses them meanwhile; nothing is loaded into them.\n"
	"Stops after --duration, or at Enter, Ctrl-C, SIGTERM or SIGHUP, with the names of all\n"
	"methods; a second Ctrl-C stops at once.  The file's name is the last line on standard\n"
	"error.\n"
	"\n"
	"The default, and other profiles that tell where threads wait, stop all threads 1,000 "
	"times\n"
	"a second: 15 % of the throughput with 10 busy threads, 60 % with 1,000. --cpu-source "
	"perf,\n"
	"and --profile cpu where the kernel takes samples for us, cost about 1 %.\n"
	"\n"
	"profiles: default (cpu, gc and tasks), cpu, gc, alloc, tasks, locks, threadpool, "
	"threads,\n"
	"  exceptions, jit, counters, http, database, heap-tasks, all; and those of dotnet-trace:\n"
	"  dotnet-common, dotnet-sampled-thread-time, cpu-sampling, gc-verbose, gc-collect\n"
	"--heap records nothing else unless that is asked for, and ends by itself.\n"
	"--providers beats --profile beats --clrevents where they name the same provider.\n"
	"\n"
	"examples:\n"
	"  drdotnet-trace collect -p 4711 --duration 30s\n"
	"  drdotnet-trace collect -n Shop -o shop.nettrace.zst --json --report shop.json\n"
	"  drdotnet-trace collect -p 4711 --profile gc-verbose --duration 5m\n"
	"  drdotnet-trace collect -p 4711 --max-size 50M --keep 5 -o last.nettrace.zst\n"
	"  drdotnet-trace collect --show-child-io -- dotnet shop.dll --port 8080\n"
	"  drdotnet-trace collect --diagnostic-port /run/shop.sock --duration 1m\n";

/* --- what to record --- */

static int wrong_list(const struct command *cmd, const char *option,
		      const struct provider_error *error)
{
	return opt_usage_error(cmd, "--%s: %s", option, error->text);
}

static int add_profiles(const struct command *cmd, const struct collect_args *args,
			struct provider_set *set, uint64_t *rundown)
{
	struct provider_set more = { 0 };
	struct provider_error error;
	int code = -1;

	*rundown = 0;
	for (size_t i = 0; code < 0 && i < args->profiles.count; i++) {
		uint64_t keywords = 0;

		if (!profile_add_list(&more, args->profiles.items[i], &keywords, &error))
			code = wrong_list(cmd, "profile", &error);
		*rundown |= keywords;
	}
	if (code < 0 && !provider_set_add_missing(set, &more, &error))
		code = wrong_list(cmd, "profile", &error);
	provider_set_done(&more);
	return code;
}

static int add_clr_events(const struct command *cmd, const struct collect_args *args,
			  struct provider_set *set)
{
	char name[] = PROVIDER_RUNTIME;
	struct provider p = { .name = name, .level = PROVIDER_LEVEL_INFORMATIONAL };
	struct provider_error error;

	if (args->clr_level && !args->clr_events)
		return opt_usage_error(cmd, "--clreventlevel needs --clrevents");
	if (!args->clr_events)
		return -1;
	if (!provider_clr_events_parse(args->clr_events, &p.keywords, &error))
		return wrong_list(cmd, "clrevents", &error);
	if (args->clr_level && !provider_level_parse(args->clr_level, &p.level))
		return opt_usage_error(cmd, "--clreventlevel: '%s' is no level", args->clr_level);
	if (provider_set_find(set, name)) {
		log_warn("--clrevents has no effect: the runtime's provider is named by "
			 "--providers or --profile");
		return -1;
	}
	return provider_set_add(set, &p, &error) ? -1 : wrong_list(cmd, "clrevents", &error);
}

/*
 * From .NET 11 on the owner of a lock is known by its managed number alone; the rundown tells which
 * thread that is.
 */
static uint64_t add_threads(const struct provider_set *set, uint64_t rundown)
{
	const struct provider *p = provider_set_find(set, PROVIDER_RUNTIME);
	bool locks = p && (p->keywords & PROVIDER_RUNTIME_CONTENTION);

	return locks && rundown == IPC_RUNDOWN_DEFAULT ? IPC_RUNDOWN_THREADS : rundown;
}

/* Whether the profile of heap walks is the only one. */
static bool is_heap_alone(const struct collect_args *args)
{
	for (size_t i = 0; i < args->profiles.count; i++)
		if (strcasecmp(args->profiles.items[i], PROFILE_HEAP) != 0)
			return false;
	return args->providers.count == 0 && !args->clr_events;
}

/* --heap alone records nothing else, and ends when the walks have ended. */
static int add_heap(const struct command *cmd, struct collect_args *args, struct provider_set *set)
{
	struct provider_error error;
	char name[] = PROVIDER_RUNTIME;
	struct provider p = { .name = name,
			      .keywords = HEAP_WALK_KEYWORDS,
			      .level = HEAP_WALK_LEVEL };

	for (size_t i = 0; i < args->profiles.count; i++)
		args->heap = args->heap || profile_list_has(args->profiles.items[i], PROFILE_HEAP);
	if (args->walks && !args->heap)
		return opt_usage_error(cmd, "--walks needs --heap");
	if (!args->heap)
		return -1;
	args->walks = args->walks ? args->walks : 2;
	args->buffer_mb = args->buffer_mb ? args->buffer_mb : HEAP_WALK_BUFFER_MB;
	args->heap_only = args->duration_ns == 0 && (set->count == 0 || is_heap_alone(args));
	if (provider_set_add(set, &p, &error))
		return -1;
	log_error("cannot collect: %s", error.text);
	return EXIT_FAILED;
}

/* --providers beats --profile beats --clrevents; without any, what the main analyzers want. */
static int choose_providers(const struct command *cmd, struct collect_args *args,
			    struct provider_set *set, uint64_t *rundown)
{
	struct provider_error error;
	int code;

	for (size_t i = 0; i < args->providers.count; i++)
		if (!provider_set_parse(set, args->providers.items[i], &error))
			return wrong_list(cmd, "providers", &error);
	code = add_profiles(cmd, args, set, rundown);
	if (code < 0)
		code = add_clr_events(cmd, args, set);
	if (code < 0)
		code = add_heap(cmd, args, set);
	if (code >= 0)
		return code;
	if (set->count == 0 && !profile_add_default(set, &error)) {
		log_error("cannot collect: %s", error.text);
		return EXIT_FAILED;
	}
	if (args->providers.count || args->profiles.count == 0)
		*rundown = IPC_RUNDOWN_DEFAULT;
	*rundown = add_threads(set, *rundown);
	if (args->rundown_keyword &&
	    !provider_clr_events_parse(args->rundown_keyword, rundown, &error))
		return wrong_list(cmd, "rundown-keyword", &error);
	if (!args->rundown)
		*rundown = IPC_RUNDOWN_NONE;
	return -1;
}

/* Whether nobody asked for tasks by name: then they may be left out where they cost too much. */
static bool tasks_are_optional(const struct collect_args *args)
{
	bool only_default = args->providers.count == 0 && !args->clr_events;

	for (size_t i = 0; i < args->profiles.count; i++)
		only_default = only_default && strcasecmp(args->profiles.items[i], "default") == 0;
	return only_default;
}

static int choose_filters(const struct command *cmd, const struct collect_args *args,
			  const struct provider_set *set, struct event_ids_set *ids)
{
	for (size_t i = 0; i < args->event_filters.count; i++) {
		const char *text = args->event_filters.items[i];
		const char *why = event_ids_add(ids, text);

		if (why)
			return opt_usage_error(cmd, "--event-filter '%s': %s", text, why);
		if (!provider_set_find(set, ids->items[ids->count - 1].provider))
			return opt_usage_error(cmd,
					       "--event-filter '%s': that provider is not "
					       "recorded",
					       text);
	}
	return -1;
}

/* Options that only make sense together. */
static int check_together(const struct command *cmd, const struct collect_args *args,
			  const char *const *command)
{
	bool to_file = !args->output || (strcmp(args->output, "-") && strcmp(args->output, "none"));

	if (args->output && args->report && strcmp(args->output, "-") == 0 &&
	    strcmp(args->report, "-") == 0)
		return opt_usage_error(cmd, "the trace and the report cannot both go to standard "
					    "output");
	if (args->output && args->report && out_same_file(args->output, args->report))
		return opt_usage_error(cmd, "the report would replace the trace '%s'",
				       args->report);
	if (args->output && strcmp(args->output, "-") == 0 && !out_stdout_is_open())
		return opt_usage_error(cmd, "the trace has nowhere to go: standard output is "
					    "closed");
	if (!command && (args->show_child_io || args->exit_code != EXIT_CODE_CHILD))
		return opt_usage_error(cmd, "--show-child-io and --exit-code need -- COMMAND");
	if (args->keep && !args->max_size)
		return opt_usage_error(cmd, "--keep needs --max-size");
	if (args->keep && !to_file)
		return opt_usage_error(cmd, "--keep needs files: give another -o");
	if (args->zstd_level && (!args->output || !trace_name_is_compressed(args->output)))
		return opt_usage_error(cmd, "--zstd-level needs an -o that ends in .zst");
	if (args->early_symbols && args->no_early_symbols)
		return opt_usage_error(cmd, "--early-symbols and --no-early-symbols exclude each "
					    "other");
	if (args->kernel_frames && args->cpu_source != COLLECT_CPU_AUTO &&
	    args->cpu_source != COLLECT_CPU_PERF)
		return opt_usage_error(cmd, "--kernel-frames needs --cpu-source perf or auto");
	if ((args->stop_event || args->stop_payload) && !args->stop_provider)
		return opt_usage_error(cmd, "--stopping-event-... needs "
					    "--stopping-event-provider-name");
	if (args->stop_payload && !args->stop_event)
		return opt_usage_error(cmd, "--stopping-event-payload-filter needs "
					    "--stopping-event-event-name");
	return -1;
}

/* --- running --- */

/* What is to be recorded, chosen. */
struct choice {
	struct provider_set set;
	struct event_ids_set ids;
	uint64_t rundown;
	struct fail_if conditions;
	struct collect_request request; /* the set, as it goes on the wire */
};

/* What the runtime's sampler is wanted for, besides the use of CPU. */
static enum profile_sampler sampler_use(const struct collect_args *args)
{
	enum profile_sampler most = PROFILE_SAMPLER_CPU;

	if (args->view != AN_VIEW_CPU)
		return PROFILE_SAMPLER_NEEDED;
	for (size_t i = 0; i < args->providers.count; i++)
		if (strcasestr(args->providers.items[i], PROVIDER_SAMPLER))
			return PROFILE_SAMPLER_NEEDED;
	if (args->profiles.count == 0)
		return profile_sampler_use_of_default();
	for (size_t i = 0; i < args->profiles.count; i++)
		if (profile_sampler_use(args->profiles.items[i]) > most)
			most = profile_sampler_use(args->profiles.items[i]);
	return most;
}

static int run_with(const struct collect_args *args, const struct choice *choice,
		    const struct collect_plan *plan)
{
	const char *output = args->output ? args->output : TRACE_NAME_DEFAULT;
	const struct stop_when_config stop_event = { args->stop_provider, args->stop_event,
						     args->stop_payload };
	struct collect_settings settings = {
		.session = {
			.buffer_mb = (uint32_t)(args->buffer_mb ? args->buffer_mb : BUFFER_MB),
			.rundown_keywords = choice->rundown,
			.stacks = !args->no_stacks,
			.block = args->buffering == BUFFERING_BLOCK,
			.providers = choice->request.providers,
			.provider_count = choice->set.count,
		},
		.event_ids = choice->ids.count ? &choice->ids : NULL,
		.stop_event = args->stop_provider ? &stop_event : NULL,
		.duration_ms = (args->duration_ns + NS_PER_MS - 1) / NS_PER_MS,
		.max_bytes = args->max_size,
		.keep = args->keep,
		.heap_walks = args->heap ? (unsigned)args->walks : 0,
		.heap_only = args->heap_only,
		.early_symbols = args->early_symbols || (args->keep && !args->no_early_symbols),
		.zstd_level = (int)args->zstd_level,
		.timeout_ms = args->timeout_ns / NS_PER_MS,
		.stop_timeout_ms = args->stop_timeout_ns / NS_PER_MS,
		.output = strcmp(output, "none") == 0 ? NULL : output,
		.output_is_default = !args->output,
		.force = args->force,
		.report = args->report,
		.format = args->json ? REPORT_JSON : (enum report_format)args->format,
		.options = { .top = args->top, .view = (enum an_view)args->view,
			     .limits = &args->limits },
		.cpu_source = (enum collect_cpu_source)args->cpu_source,
		.cpu_frequency = (unsigned)args->cpu_frequency,
		.kernel_frames = args->kernel_frames,
		.sampler = sampler_use(args),
		.conditions = &choice->conditions,
		.quiet = args->quiet,
		.resume = args->resume,
	};

	if (tasks_are_optional(args) && choice->request.without_tasks &&
	    choice->request.without_tasks < choice->set.count) {
		settings.without_tasks = settings.session;
		settings.without_tasks.provider_count = choice->request.without_tasks;
	}
	if (settings.session.block)
		log_warn("--buffering-mode block: whenever we cannot keep up, threads of the "
			 "process wait for us");
	return collect_run(&settings, plan);
}

static int collect(const struct command *cmd, struct collect_args *args, const char **command)
{
	struct choice choice = { .rundown = IPC_RUNDOWN_DEFAULT };
	struct collect_planned planned = { 0 };
	const struct collect_wish wish = {
		.pids = &args->pids,
		.name = args->name,
		.wait_for = args->wait_for,
		.port = args->port,
		.children = args->children,
		.command = command,
		.to_stdout = args->output && strcmp(args->output, "-") == 0,
		.ask_ms = (args->timeout_ns ? args->timeout_ns : TIMEOUT_NS) / NS_PER_MS,
		.wait_ms = args->timeout_ns / NS_PER_MS,
	};
	int code = check_together(cmd, args, command);

	if (code < 0)
		code = limits_of(cmd, &args->limit, &args->limits);
	if (code < 0)
		code = choose_providers(cmd, args, &choice.set, &choice.rundown);
	if (code < 0)
		code = choose_filters(cmd, args, &choice.set, &choice.ids);
	if (code < 0 && !collect_request_make(&choice.request, &choice.set, &choice.ids))
		code = EXIT_FAILED;
	if (code < 0)
		code = fail_if_parse(&choice.conditions, cmd, &args->fail_if, args->fail_on);
	if (code < 0)
		code = collect_plan_make(cmd, &wish, &planned);
	if (code < 0) {
		args->duration_ns =
			collect_plan_duration(args->duration_ns, command || args->heap_only);
		if (args->timeout_ns == 0)
			args->timeout_ns = TIMEOUT_NS;
		planned.plan.show_child_io = args->show_child_io;
		planned.plan.pass_exit_code = args->exit_code == EXIT_CODE_CHILD;
		code = run_with(args, &choice, &planned.plan);
	}
	collect_plan_done(&planned);
	collect_request_done(&choice.request);
	provider_set_done(&choice.set);
	event_ids_done(&choice.ids);
	fail_if_done(&choice.conditions);
	return code;
}

static int run_collect(const struct command *cmd, int argc, char **argv)
{
	struct collect_args args = {
		.rundown = true,
		.resume = true,
		.top = 20,
		.cpu_frequency = PERF_DEFAULT_HZ,
		.stop_timeout_ns = 120 * SECOND,
	};
	struct opt_operands words;
	const char **command = NULL;
	int code = opt_parse(cmd, argc, argv, &args, &words);

	if (code < 0 && words.before_dashes > 0)
		code = opt_usage_error(cmd,
				       "'%s' is too much: give the process with -p or -n, or a "
				       "command behind '--'",
				       words.v[0]);
	if (code < 0 && words.dashes) {
		command = collect_plan_command(&words);
		if (!command) {
			log_error("cannot collect: out of memory");
			code = EXIT_FAILED;
		}
	}
	if (code < 0)
		code = collect(cmd, &args, command);
	free(command);
	opt_done(cmd, &args, &words);
	return code;
}

const struct command cmd_collect = {
	.name = "collect",
	.operands = "[-- COMMAND [ARGS...]]",
	.summary = "record a running process and analyse it live",
	.notes = collect_notes,
	.options = collect_options,
	.run = run_collect,
};
