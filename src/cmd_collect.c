/* SPDX-License-Identifier: MIT */

/* collect: records a process and analyses it live.  Here: the command line. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/collect.h"
#include "src/collect_target.h"
#include "src/command.h"
#include "src/log.h"
#include "src/profiles.h"
#include "src/trace_name.h"

#define NS_PER_MS UINT64_C(1000000)
#define SECOND	  UINT64_C(1000000000)

struct collect_args {
	uint64_t pid;
	const char *name;
	uint64_t duration_ns;
	struct opt_list providers, profiles;
	const char *clr_events, *clr_level;
	uint64_t buffer_mb;
	bool rundown;
	const char *output, *report;
	bool force, json, quiet;
	int format; /* enum report_format */
	uint64_t top;
	int view; /* enum an_view */
	uint64_t timeout_ns, stop_timeout_ns;
};

static const char *const views[] = {
	[AN_VIEW_CPU] = "cpu", [AN_VIEW_WALL] = "wall", [AN_VIEW_WAITING] = "waiting", NULL
};
static const char *const formats[] = { [REPORT_TEXT] = "text", [REPORT_JSON] = "json", NULL };

static const struct opt_spec collect_options[] = {
	{ "process-id", 'p', "PID", "process to trace (default: the only one that can be)",
	  OPT_UINT(struct collect_args, pid), .min = 1, .max = INT32_MAX, .aliases = { "pid" } },
	{ "name", 'n', "NAME", "process to trace, by process, assembly or .dll name",
	  OPT_STRING(struct collect_args, name) },
	{ "duration", 'd', "TIME", "stop after TIME: 30s, 5m, 1h30m (default: Ctrl-C)",
	  OPT_DURATION(struct collect_args, duration_ns), .min = NS_PER_MS,
	  .max = UINT64_C(366) * 86400 * SECOND },
	{ "output", 'o', "FILE",
	  "trace file; .zst compresses; %p pid, %n name, %t time, %h host; - stdout; none",
	  OPT_STRING(struct collect_args, output) },
	{ "force", 0, NULL, "replace existing files", OPT_FLAG(struct collect_args, force) },
	{ "profile", 0, "LIST", "what to record: names of profiles, see below",
	  OPT_LIST(struct collect_args, profiles) },
	{ "providers", 0, "LIST", "what to record: Name[:Keywords[:Level[:Key=Value;...]]],...",
	  OPT_LIST(struct collect_args, providers) },
	{ "clrevents", 0, "LIST", "keywords of the runtime's provider, joined by '+'",
	  OPT_STRING(struct collect_args, clr_events) },
	{ "clreventlevel", 0, "LEVEL", "level of --clrevents (default informational)",
	  OPT_STRING(struct collect_args, clr_level) },
	{ "buffersize", 0, "MB", "the runtime's buffer for events (default 256)",
	  OPT_UINT(struct collect_args, buffer_mb), .min = 1, .max = 65536 },
	{ "rundown", 0, "true|false", "end with the names of all methods (default true)",
	  OPT_BOOL(struct collect_args, rundown) },
	{ "format", 'f', "FORMAT", "of the report: text (default) or json",
	  OPT_ENUM(struct collect_args, format, formats) },
	{ "json", 'j', NULL, "short for --format json", OPT_FLAG(struct collect_args, json) },
	{ "report", 0, "FILE", "write the report there instead of standard output",
	  OPT_STRING(struct collect_args, report) },
	{ "top", 't', "N", "rows of each table of the report (default 20; 0: all)",
	  OPT_UINT(struct collect_args, top), .max = 1000000 },
	{ "view", 'v', "VIEW", "samples the CPU section ranks: cpu (default), wall, waiting",
	  OPT_ENUM(struct collect_args, view, views) },
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
	"Records a running .NET process and analyses it meanwhile; nothing is loaded into it.\n"
	"Stops after --duration, or at Ctrl-C, SIGTERM or SIGHUP, with the names of all methods;\n"
	"a second Ctrl-C stops at once.  The file's name is the last line on standard error.\n"
	"\n"
	"profiles: default (what all analyzers want), cpu, gc, alloc, tasks, locks, threadpool,\n"
	"  threads, exceptions, jit, counters, dotnet-common, dotnet-sampled-thread-time,\n"
	"  cpu-sampling, gc-verbose, gc-collect, database\n"
	"--providers beats --profile beats --clrevents where they name the same provider.\n"
	"\n"
	"examples:\n"
	"  drdotnet-trace collect -p 4711 --duration 30s\n"
	"  drdotnet-trace collect -n Shop -o shop.nettrace.zst --json --report shop.json\n"
	"  drdotnet-trace collect -p 4711 --profile gc-verbose --duration 5m\n";

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

/* --providers beats --profile beats --clrevents; without any, what all analyzers want. */
static int choose_providers(const struct command *cmd, const struct collect_args *args,
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
	if (code >= 0)
		return code;
	if (set->count == 0 && !profile_add_default(set, &error)) {
		log_error("cannot collect: %s", error.text);
		return EXIT_FAILED;
	}
	if (args->providers.count || args->profiles.count == 0)
		*rundown = IPC_RUNDOWN_DEFAULT;
	return -1;
}

/* --- running --- */

static int run_with(const struct collect_args *args, const struct provider_set *set,
		    uint64_t rundown, struct collect_target *target)
{
	struct ipc_provider *providers = calloc(set->count, sizeof(*providers));
	const char *output = args->output ? args->output : TRACE_NAME_DEFAULT;
	const struct collect_settings settings = {
		.session = {
			.buffer_mb = (uint32_t)args->buffer_mb,
			.rundown_keywords = args->rundown ? rundown : IPC_RUNDOWN_NONE,
			.stacks = true,
			.providers = providers,
			.provider_count = set->count,
		},
		.duration_ms = (args->duration_ns + NS_PER_MS - 1) / NS_PER_MS,
		.timeout_ms = args->timeout_ns / NS_PER_MS,
		.stop_timeout_ms = args->stop_timeout_ns / NS_PER_MS,
		.output = strcmp(output, "none") == 0 ? NULL : output,
		.output_is_default = !args->output,
		.force = args->force,
		.report = args->report,
		.format = args->json ? REPORT_JSON : (enum report_format)args->format,
		.options = { .top = args->top, .view = (enum an_view)args->view },
		.quiet = args->quiet,
	};
	const struct collect_subject who = { &target->target, target->target.pid, target->name };
	int code;

	if (!providers) {
		log_error("cannot collect: out of memory");
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < set->count; i++)
		providers[i] = (struct ipc_provider){
			.name = set->items[i].name,
			.keywords = set->items[i].keywords,
			.level = set->items[i].level,
			.args = set->items[i].args,
		};
	code = collect_run(&settings, &who, 1);
	free(providers);
	return code;
}

static int collect(const struct command *cmd, struct collect_args *args)
{
	struct provider_set set = { 0 };
	struct collect_target target = { 0 };
	uint64_t rundown = IPC_RUNDOWN_DEFAULT;
	int code;

	if (args->pid && args->name)
		return opt_usage_error(cmd, "-p and -n exclude each other");
	code = choose_providers(cmd, args, &set, &rundown);
	if (code < 0)
		code = collect_target_choose(&target, (int32_t)args->pid, args->name,
					     args->timeout_ns / NS_PER_MS);
	if (code < 0 && args->duration_ns == 0 && !isatty(STDIN_FILENO) && !isatty(STDERR_FILENO)) {
		args->duration_ns = 30 * SECOND;
		log_info("no terminal and no --duration: stopping after 30s");
	}
	if (code < 0)
		code = run_with(args, &set, rundown, &target);
	collect_target_done(&target);
	provider_set_done(&set);
	return code;
}

static int run_collect(const struct command *cmd, int argc, char **argv)
{
	struct collect_args args = {
		.buffer_mb = 256,
		.rundown = true,
		.top = 20,
		.timeout_ns = 10 * SECOND,
		.stop_timeout_ns = 120 * SECOND,
	};
	struct opt_operands words;
	int code = opt_parse(cmd, argc, argv, &args, &words);

	if (code < 0 && words.count)
		code = opt_usage_error(cmd, "'%s' is too much: give the process with -p or -n",
				       words.v[0]);
	if (code < 0)
		code = collect(cmd, &args);
	opt_done(cmd, &args, &words);
	return code;
}

const struct command cmd_collect = {
	.name = "collect",
	.operands = "",
	.summary = "record a running process and analyse it live",
	.notes = collect_notes,
	.options = collect_options,
	.run = run_collect,
};
