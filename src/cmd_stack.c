/* SPDX-License-Identifier: MIT */

/* stack: what every thread of a process is doing.  Here: the command line. */

#include "src/base/command.h"
#include "src/stack/stack_run.h"

#define NS_PER_MS UINT64_C(1000000)
#define SECOND	  UINT64_C(1000000000)

struct stack_args {
	uint64_t pid;
	const char *name;
	uint64_t duration_ns, timeout_ns;
	uint64_t walks;
	bool no_heap, no_merge, all, json, force, quiet;
	int format; /* enum report_format */
	const char *output;
};

static const char *const formats[] = { [REPORT_TEXT] = "text", [REPORT_JSON] = "json", NULL };

static const struct opt_spec stack_options[] = {
	{ "process-id", 'p', "PID", "the process (default: the only one)",
	  OPT_UINT(struct stack_args, pid), .min = 1, .max = INT32_MAX, .aliases = { "pid" } },
	{ "name", 'n', "NAME", "the process, by process, assembly or .dll name",
	  OPT_STRING(struct stack_args, name) },
	{ "duration", 'd', "TIME", "watch the threads for TIME (default 2s)",
	  OPT_DURATION(struct stack_args, duration_ns), .min = 10 * NS_PER_MS,
	  .max = 600 * SECOND },
	{ "no-heap", 0, NULL, "no walks of the heap: async calls that wait are not shown",
	  OPT_FLAG(struct stack_args, no_heap) },
	{ "walks", 0, "1|2", "of the heap (default 2): one alone cannot tell stuck from busy",
	  OPT_UINT(struct stack_args, walks), .min = 1, .max = 2 },
	{ "no-merge", 0, NULL, "one stack after the other instead of a tree",
	  OPT_FLAG(struct stack_args, no_merge) },
	{ "all", 'a', NULL, "stacks of the runtime's own threads, too",
	  OPT_FLAG(struct stack_args, all) },
	{ "format", 'f', "FORMAT", "text (default) or json",
	  OPT_ENUM(struct stack_args, format, formats) },
	{ "json", 'j', NULL, "short for --format json", OPT_FLAG(struct stack_args, json) },
	{ "output", 'o', "FILE", "write there instead of standard output",
	  OPT_STRING(struct stack_args, output) },
	{ "force", 0, NULL, "replace an existing file", OPT_FLAG(struct stack_args, force) },
	{ "quiet", 'q', NULL, "say nothing about walks of the heap",
	  OPT_FLAG(struct stack_args, quiet) },
	{ "timeout", 0, "TIME", "give up after TIME, in all (default 60s)",
	  OPT_DURATION(struct stack_args, timeout_ns), .min = 100 * NS_PER_MS,
	  .max = 3600 * SECOND },
	{ 0 },
};

static const char stack_notes[] =
	"Shows the stack of each thread, merged into a tree of common frames, with what it waits\n"
	"for and the time it used on a processor meanwhile; and every async call that waits, also\n"
	"of a process that got stuck long ago.  For these the heap is walked twice: each walk is "
	"a\n"
	"full collection, for which the process stands still.\n"
	"\n"
	"examples:\n"
	"  drdotnet-trace stack -p 4711\n"
	"  drdotnet-trace stack -n shop --no-merge --no-heap\n"
	"  drdotnet-trace stack -p 4711 --json\n";

static int take(const struct stack_args *args)
{
	struct collect_target target;
	struct stack_wish wish = {
		.target = &target,
		.watch_ms = args->duration_ns / NS_PER_MS,
		.timeout_ms = args->timeout_ns / NS_PER_MS,
		.format = args->json ? REPORT_JSON : (enum report_format)args->format,
		.heap_walks = args->no_heap ? 0 : (unsigned)args->walks,
		.no_merge = args->no_merge,
		.quiet = args->quiet,
		.all = args->all,
		.output = args->output,
		.force = args->force,
	};
	uint64_t ask_ms = wish.timeout_ms < 10000 ? wish.timeout_ms : 10000;
	int code = collect_target_choose(&target, (int32_t)args->pid, args->name, ask_ms);

	if (code < 0)
		code = stack_run(&wish);
	collect_target_done(&target);
	return code;
}

static int run_stack(const struct command *cmd, int argc, char **argv)
{
	struct stack_args args = { .duration_ns = 2 * SECOND,
				   .timeout_ns = 60 * SECOND,
				   .walks = 2 };
	struct opt_operands words;
	int code = opt_parse(cmd, argc, argv, &args, &words);

	if (code < 0 && words.count)
		code = opt_usage_error(cmd, "'%s' is too much: give the process with -p or -n",
				       words.v[0]);
	if (code < 0 && args.pid && args.name)
		code = opt_usage_error(cmd, "-p and -n exclude each other");
	if (code < 0)
		code = take(&args);
	opt_done(cmd, &args, &words);
	return code;
}

const struct command cmd_stack = {
	.name = "stack",
	.operands = "",
	.summary = "what every thread of a process is doing now",
	.notes = stack_notes,
	.options = stack_options,
	.run = run_stack,
};
