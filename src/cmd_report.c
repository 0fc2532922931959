/* SPDX-License-Identifier: MIT */

/* report: analyses a recorded trace. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/base/pattern.h"
#include "src/report/opt_limit.h"
#include "src/trace/analysis.h"
#include "src/trace/fault.h"
#include "src/trace/input.h"

static const uint64_t MAX_TIME_NS = UINT64_C(10000) * 86400 * 1000000000;

struct report_args {
	const char *output;
	uint64_t top;
	uint64_t zstd_window;
	int view; /* enum an_view */
	struct opt_list limit;
	int format; /* enum report_format */
	bool json;
	bool force;
	struct opt_list fail_if;
	int fail_on; /* enum fail_on */
	bool list_values;
	struct an_limits limits; /* what becomes of --limit */
	struct fail_if conditions;
	/* the CPU section */
	uint64_t from_ns, to_ns;
	uint64_t thread_id, process_id;
	uint64_t depth, min_percent;
	const char *include, *exclude;
	struct pattern *included, *excluded; /* what becomes of these; NULL: not given */
	int order;
	bool tree, inverted, fold_generics;
};

static const char *const views[] = {
	[AN_VIEW_CPU] = "cpu", [AN_VIEW_WALL] = "wall", [AN_VIEW_WAITING] = "waiting", NULL
};

static const char *const orders[] = { "exclusive", "inclusive", NULL };

static const char *const formats[] = { [REPORT_TEXT] = "text", [REPORT_JSON] = "json", NULL };

static const struct opt_spec report_options[] = {
	{ "top", 't', "N", "rows of each table (default 20; 0: all)",
	  OPT_UINT(struct report_args, top), .max = 1000000 },
	{ "view", 'v', "VIEW",
	  "samples the CPU section ranks: cpu (default; running code), wall (all), waiting",
	  OPT_ENUM(struct report_args, view, views) },
	{ "limit", 0, "NAME=VALUE", "move the limit of a finding: gc.time=5 (all: analyzers)",
	  OPT_LIST(struct report_args, limit) },
	{ "order", 0, "ORDER", "methods by exclusive (default) or inclusive samples",
	  OPT_ENUM(struct report_args, order, orders) },
	{ "tree", 0, NULL, "show who calls whom, as a tree from the outermost caller",
	  OPT_FLAG(struct report_args, tree) },
	{ "inverted", 0, NULL, "show that tree from what ran to its callers",
	  OPT_FLAG(struct report_args, inverted) },
	{ "depth", 0, "N", "levels of the tree (default 16)", OPT_UINT(struct report_args, depth),
	  .min = 1, .max = 512 },
	{ "min-percent", 0, "N", "leave out branches of the tree below N % (default 1)",
	  OPT_UINT(struct report_args, min_percent), .max = 100 },
	{ "include", 0, "REGEX", "CPU samples with such a method on their stack only",
	  OPT_STRING(struct report_args, include) },
	{ "exclude", 0, "REGEX", "no CPU samples with such a method on their stack",
	  OPT_STRING(struct report_args, exclude) },
	{ "from", 0, "TIME", "CPU samples from TIME after the start on (1500ms, 10s)",
	  OPT_DURATION(struct report_args, from_ns) },
	{ "to", 0, "TIME", "CPU samples before TIME after the start",
	  OPT_DURATION(struct report_args, to_ns) },
	{ "thread", 0, "ID", "CPU samples of that thread only",
	  OPT_UINT(struct report_args, thread_id), .min = 1 },
	{ "process", 0, "PID", "CPU samples of that process only (of several in one file)",
	  OPT_UINT(struct report_args, process_id), .min = 1, .max = INT32_MAX },
	{ "fold-generics", 0, NULL, "all instantiations of a generic method are one method",
	  OPT_FLAG(struct report_args, fold_generics) },
	{ "format", 'f', "FORMAT", "text (default) or json",
	  OPT_ENUM(struct report_args, format, formats) },
	{ "json", 'j', NULL, "short for --format json", OPT_FLAG(struct report_args, json) },
	{ "output", 'o', "FILE", "write the report there instead of standard output",
	  OPT_STRING(struct report_args, output) },
	{ "force", 0, NULL, "replace an existing output file",
	  OPT_FLAG(struct report_args, force) },
	{ "fail-if", 0, "EXPR",
	  "exit code 4 if that holds: 'gc.pause_p99_ms > 100 or events.lost > 0'",
	  OPT_LIST(struct report_args, fail_if) },
	{ "fail-on", 0, "SEVERITY", "exit code 4 at a finding of that severity: critical, warning",
	  OPT_ENUM(struct report_args, fail_on, fail_on_names) },
	{ "list-values", 0, NULL, "print what --fail-if can name, and end",
	  OPT_FLAG(struct report_args, list_values) },
	{ "zstd-window", 0, "LOG",
	  "allow compressed input that needs 2^LOG bytes of memory (default 25)",
	  OPT_UINT(struct report_args, zstd_window), .min = INPUT_WINDOW_LOG_MIN,
	  .max = INPUT_WINDOW_LOG_MAX },
	{ 0 },
};

static const char report_notes[] =
	"FILE is a .nettrace or .netperf file, plain or zstd-compressed, or '-' for standard\n"
	"input.  SECTION is summary, cpu, gc, alloc, tasks, locks, threadpool, threads,\n"
	"exceptions, jit or counters; without one all are shown.\n"
	"\n"
	"examples:\n"
	"  drdotnet-trace report api.nettrace\n"
	"  drdotnet-trace report api.nettrace.zst gc --json\n"
	"  drdotnet-trace report --view wall --top 50 api.nettrace cpu\n"
	"  drdotnet-trace report --tree --include 'Shop\\.Cart' api.nettrace cpu\n"
	"\n"
	"A trace that is damaged or cut is analysed up to the fault: exit code 3.\n";

/* What was measured outside the process stands behind the trace, and is wanted before it. */
static void load_before(struct input *in, struct analysis *a, const char **ret_why)
{
	size_t len;
	uint8_t *block = input_take_trailer(in, &len);

	*ret_why = block ? analysis_load_trailer(a, block, len) : NULL;
	free(block);
}

/* It comes only now, from a pipe. */
static void load_after(const struct input *in, struct analysis *a, const char **ret_why)
{
	size_t len;
	const uint8_t *block = nt_decoder_borrow_trailer(analysis_decoder(a), &len);

	if (!block)
		block = input_borrow_trailer(in, &len);
	if (!block)
		return;
	*ret_why = analysis_load_trailer(a, block, len);
	if (!*ret_why && an_cputime_since(analysis_cputime(a)) != INT64_MAX)
		log_info("the measured CPU times stand behind the trace, which cannot be read from "
			 "its end: they count for threads, not for methods");
}

static struct an_options options_of(const struct report_args *args)
{
	enum an_tree tree = args->inverted ? AN_TREE_CALLERS
			    : args->tree   ? AN_TREE_CALLEES
					   : AN_TREE_NONE;

	return (struct an_options){
		.top = args->top,
		.view = (enum an_view)args->view,
		.limits = &args->limits,
		.cpu = {
			.from_ns = (int64_t)args->from_ns,
			.to_ns = (int64_t)args->to_ns,
			.one_thread = args->thread_id,
			.thread_id = args->thread_id,
			.one_process = args->process_id,
			.process_id = (int64_t)args->process_id,
			.include = args->included ? pattern_matcher(args->included) : NULL,
			.exclude = args->excluded ? pattern_matcher(args->excluded) : NULL,
			.tree = tree,
			.depth = args->depth,
			.min_percent = (double)args->min_percent,
			.inclusive_first = args->order == 1,
			.fold_generics = args->fold_generics,
		},
	};
}

static int analyse(struct input *in, struct out *o, const struct report_args *args,
		   const struct opt_operands *words)
{
	const struct an_options options = options_of(args);
	struct analysis *a =
		analysis_new(&options, words->v + 1, words->count - 1, &args->conditions);
	const char *why = NULL;
	int code, printed;

	if (!a) {
		log_error("cannot read '%s': out of memory", input_name(in));
		return EXIT_FAILED;
	}
	load_before(in, a, &why);
	input_feed(in, analysis_decoder(a));
	load_after(in, a, &why);
	code = fault_report(in, analysis_decoder(a));
	if (why)
		log_warn("'%s': what was measured outside the process cannot be used: %s",
			 input_name(in), why);
	if (code != EXIT_FAILED) {
		printed = analysis_print(a, o, (enum report_format)args->format, words->v[0], NULL);
		code = printed == EXIT_DONE ? code : printed;
	}
	analysis_free(a);
	return code;
}

/* The output is opened first: nobody waits for an analysis that has nowhere to go. */
static int work(const struct report_args *args, const struct opt_operands *words)
{
	struct input *in = input_open(words->v[0], (unsigned)args->zstd_window);
	struct out *o = in ? out_open(args->output, args->force) : NULL;
	int code = EXIT_FAILED;

	if (o)
		code = analyse(in, o, args, words);
	input_close(in);
	if (!o)
		return code;
	if (code != EXIT_FAILED)
		return out_close(o, code);
	out_discard(o);
	return code;
}

static int wrong_section(const struct command *cmd, const char *word)
{
	char list[512] = "";
	const char *section;
	size_t n = 0;

	for (size_t i = 0; (section = analysis_section(i)) && n < sizeof(list); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "", section);
	return opt_usage_error(cmd, "'%s' is no section: %s", word, list);
}

static int list_values(const struct report_args *args)
{
	struct out *o = out_open(args->output, args->force);

	if (!o)
		return EXIT_FAILED;
	fail_if_list(o, args->json || args->format == REPORT_JSON);
	return out_close(o, EXIT_DONE);
}

static int check_words(const struct command *cmd, const struct opt_operands *words)
{
	const char *unknown;

	if (!words->count)
		return opt_usage_error(cmd, "no FILE was given");
	unknown = analysis_unknown_section(words->v + 1, words->count - 1);
	if (unknown)
		return wrong_section(cmd, unknown);
	return -1;
}

static int make_pattern(const struct command *cmd, const char *option, const char *text,
			struct pattern **ret)
{
	char why[128];

	*ret = text ? pattern_new(text, why, sizeof(why)) : NULL;
	if (!text || *ret)
		return -1;
	return opt_usage_error(cmd, "--%s '%s': %s", option, text, why);
}

static int check_cpu(const struct command *cmd, struct report_args *args)
{
	int code;

	if (args->from_ns > MAX_TIME_NS || args->to_ns > MAX_TIME_NS)
		return opt_usage_error(cmd, "--from and --to are at most 10000d");
	if (args->to_ns && args->to_ns <= args->from_ns)
		return opt_usage_error(cmd, "--to must be later than --from");
	code = make_pattern(cmd, "include", args->include, &args->included);
	return code < 0 ? make_pattern(cmd, "exclude", args->exclude, &args->excluded) : code;
}

static int run_report(const struct command *cmd, int argc, char **argv)
{
	struct report_args args = { .top = 20, .zstd_window = INPUT_WINDOW_LOG, .min_percent = 1 };
	struct opt_operands words;
	int code = opt_parse(cmd, argc, argv, &args, &words);

	if (code < 0 && args.list_values)
		code = list_values(&args);
	if (code < 0)
		code = check_words(cmd, &words);
	if (code < 0)
		code = limits_of(cmd, &args.limit, &args.limits);
	if (code < 0 && args.output && out_same_file(args.output, words.v[0]))
		code = opt_usage_error(cmd, "the report would replace the trace '%s'", words.v[0]);
	if (code < 0)
		code = check_cpu(cmd, &args);
	if (code < 0)
		code = fail_if_parse(&args.conditions, cmd, &args.fail_if, args.fail_on);
	if (code < 0) {
		if (args.json)
			args.format = REPORT_JSON;
		code = work(&args, &words);
	}
	pattern_free(args.included);
	pattern_free(args.excluded);
	fail_if_done(&args.conditions);
	opt_done(cmd, &args, &words);
	return code;
}

const struct command cmd_report = {
	.name = "report",
	.operands = "FILE [SECTION...]",
	.summary = "analyse a trace: findings, CPU hot paths, garbage collection, stuck tasks",
	.notes = report_notes,
	.options = report_options,
	.run = run_report,
};
