/* SPDX-License-Identifier: MIT */

/* history: what the samples in the store say.  Here: the command line. */

#include <string.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/store/history.h"
#include "src/store/when.h"

#define DAY_NS UINT64_C(86400000000000)

struct history_args {
	const char *store, *name, *since, *until, *at;
	uint64_t span_ns, top;
	const char *output;
	int format; /* enum history_format, -1 not given */
	bool json, force;
};

static const char *const formats[] = { [HISTORY_TEXT] = "text",
				       [HISTORY_JSON] = "json",
				       [HISTORY_CSV] = "csv",
				       [HISTORY_NDJSON] = "ndjson",
				       NULL };

static const struct opt_spec history_options[] = {
	{ "store", 0, "DIR", "where sample keeps its samples",
	  OPT_STRING(struct history_args, store) },
	{ "name", 'n', "NAME", "only processes of that name",
	  OPT_STRING(struct history_args, name) },
	{ "since", 0, "TIME", "from then on: 2026-11-29, 2026-11-29T10:30:00Z, or 7d ago",
	  OPT_STRING(struct history_args, since) },
	{ "until", 0, "TIME", "until then", OPT_STRING(struct history_args, until) },
	{ "at", 0, "TIME|LABEL", "regressions: since when it may be worse; mark: when it was",
	  OPT_STRING(struct history_args, at) },
	{ "span", 0, "TIME", "regressions: length of each period (default 7d)",
	  OPT_DURATION(struct history_args, span_ns), .min = 60000000000, .max = 3660 * DAY_NS },
	{ "top", 't', "N", "rows (default 20; 0: all)", OPT_UINT(struct history_args, top),
	  .max = 1000000 },
	{ "format", 'f', "FORMAT", "text (default), json, csv or ndjson",
	  OPT_ENUM(struct history_args, format, formats) },
	{ "json", 'j', NULL, "short for --format json", OPT_FLAG(struct history_args, json) },
	{ "output", 'o', "FILE", "write there instead of standard output",
	  OPT_STRING(struct history_args, output) },
	{ "force", 0, NULL, "replace an existing file", OPT_FLAG(struct history_args, force) },
	{ 0 },
};

static const char history_notes[] =
	"actions:\n"
	"  list            the samples\n"
	"  show ID         one of them, whole\n"
	"  trend METRIC    how it went: gc.pause_percent, or method:NAME\n"
	"  top             the hottest methods (of a week, unless --since says otherwise)\n"
	"  regressions     what has become worse: this week against the last, or around --at\n"
	"  mark LABEL      notes a deployment, for --at LABEL\n"
	"  export          all samples with their metrics, for other tools: ndjson or csv\n"
	"\n"
	"examples:\n"
	"  drdotnet-trace history list -n Shop --since 1d\n"
	"  drdotnet-trace history trend gc.pause_percent -n Shop --since 30d\n"
	"  drdotnet-trace history regressions\n"
	"  drdotnet-trace history mark 'Shop 2.1' -n Shop\n"
	"  drdotnet-trace history regressions --at 'Shop 2.1' --span 2d\n";

#define F(format) (1u << (format))

static const struct action {
	const char *name;
	int (*run)(struct history_job *job); /* NULL: mark, which writes */
	const char *word; /* what has to follow; NULL: nothing */
	unsigned formats;
	uint64_t days; /* looked at unless --since says otherwise; 0: all */
} actions[] = {
	{ "list", history_list, NULL, F(HISTORY_TEXT) | F(HISTORY_JSON) | F(HISTORY_CSV), 0 },
	{ "show", history_show, "the number of a sample", F(HISTORY_TEXT) | F(HISTORY_JSON), 0 },
	{ "trend", history_trend, "the name of a metric",
	  F(HISTORY_TEXT) | F(HISTORY_JSON) | F(HISTORY_CSV), 0 },
	{ "top", history_top, NULL, F(HISTORY_TEXT) | F(HISTORY_JSON) | F(HISTORY_CSV), 7 },
	{ "regressions", history_regressions, NULL, F(HISTORY_TEXT) | F(HISTORY_JSON), 0 },
	{ "export", history_export, NULL, F(HISTORY_CSV) | F(HISTORY_NDJSON), 0 },
	{ "mark", NULL, "a label", F(HISTORY_TEXT), 0 },
};

enum { ACTION_COUNT = sizeof(actions) / sizeof(actions[0]) };

static int find_action(const struct command *cmd, const struct opt_operands *words,
		       const struct action **ret)
{
	const char *names[ACTION_COUNT + 1] = { NULL }, *near;
	size_t most;

	if (words->count == 0)
		return opt_usage_error(cmd, "an action is needed: list, show, trend, top, "
					    "regressions, mark or export");
	*ret = NULL;
	for (size_t i = 0; i < ACTION_COUNT; i++) {
		names[i] = actions[i].name;
		if (strcmp(words->v[0], actions[i].name) == 0)
			*ret = &actions[i];
	}
	near = opt_nearest(words->v[0], names);
	if (!*ret && near)
		return opt_usage_error(cmd, "'%s' is no action; did you mean '%s'?", words->v[0],
				       near);
	if (!*ret)
		return opt_usage_error(cmd, "'%s' is no action", words->v[0]);
	most = (*ret)->word ? 2 : 1;
	if (words->count < most || (most == 2 && !*words->v[1]))
		return opt_usage_error(cmd, "'%s' needs %s behind it", (*ret)->name, (*ret)->word);
	if (words->count > most)
		return opt_usage_error(cmd, "'%s' is too much", words->v[most]);
	return -1;
}

static int choose_format(const struct command *cmd, const struct history_args *args,
			 const struct action *a, struct history_job *job)
{
	int format = args->json ? HISTORY_JSON : args->format;

	if (format < 0)
		format = a->formats & F(HISTORY_TEXT) ? HISTORY_TEXT : HISTORY_NDJSON;
	if (!(a->formats & F(format)))
		return opt_usage_error(cmd, "'%s' has no format '%s'", a->name, formats[format]);
	job->format = (enum history_format)format;
	return -1;
}

static int parse_time(const struct command *cmd, const char *option, const char *text,
		      int64_t now_ms, int64_t *ret)
{
	const char *why = text ? when_parse(text, now_ms, ret) : NULL;

	return why ? opt_usage_error(cmd, "--%s '%s': %s", option, text, why) : -1;
}

static int choose_times(const struct command *cmd, const struct history_args *args,
			const struct action *a, struct history_job *job)
{
	int64_t day_ms = (int64_t)(DAY_NS / 1000000);
	int code;

	if (args->at && a->run && a->run != history_regressions)
		return opt_usage_error(cmd, "--at belongs to 'regressions' and 'mark'");
	if (args->span_ns && a->run != history_regressions)
		return opt_usage_error(cmd, "--span belongs to 'regressions'");
	if ((args->since || args->until) && (!a->run || a->run == history_regressions))
		return opt_usage_error(cmd, "'%s' takes --at instead of --since and --until",
				       a->name);
	job->filter.begin_ms = a->days ? job->now_ms - (int64_t)a->days * day_ms : INT64_MIN;
	code = parse_time(cmd, "since", args->since, job->now_ms, &job->filter.begin_ms);
	if (code < 0)
		code = parse_time(cmd, "until", args->until, job->now_ms, &job->filter.end_ms);
	if (code < 0 && job->filter.end_ms && job->filter.end_ms <= job->filter.begin_ms)
		return opt_usage_error(cmd, "--until %s is not after %s", args->until,
				       args->since ? "--since"
						   : "the last week's begin: give --since");
	job->span_ms = (args->span_ns ? args->span_ns : 7 * DAY_NS) / 1000000;
	return code;
}

/* --- around a deployment --- */

struct search {
	const char *label;
	bool found;
	int64_t time_ms;
};

static bool match_marker(void *ctx, const struct store_marker *m)
{
	struct search *s = ctx;

	if (strcmp(m->label, s->label) == 0) {
		s->found = true;
		s->time_ms = m->time_ms; /* the last of that name counts */
	}
	return true;
}

static int find_split(const struct history_args *args, struct history_job *job)
{
	struct search s = { .label = args->at };
	struct store_filter f = { .name = job->filter.name, .begin_ms = INT64_MIN };

	job->split_ms = job->now_ms - (int64_t)job->span_ms;
	if (!args->at || !when_parse(args->at, job->now_ms, &job->split_ms))
		return -1;
	if (!store_markers(job->store, &f, match_marker, &s))
		return EXIT_FAILED;
	if (!s.found) {
		log_error("--at '%s': neither a time nor the label of a marker", args->at);
		return EXIT_USAGE;
	}
	job->split_ms = s.time_ms;
	return -1;
}

static int choose_split(const struct history_args *args, struct history_job *job)
{
	int code = find_split(args, job);

	if (code < 0 && job->split_ms > job->now_ms)
		return opt_usage_error(job->cmd, "--at '%s' is in the future", args->at);
	return code;
}

static int mark(const struct history_args *args, struct history_job *job)
{
	int64_t time_ms = job->now_ms;
	int code = parse_time(job->cmd, "at", args->at, job->now_ms, &time_ms);

	if (code >= 0)
		return code;
	job->store = store_open(args->store, STORE_WRITE);
	if (!job->store)
		return EXIT_FAILED;
	return store_add_marker(job->store, time_ms, args->name, job->word) ? EXIT_DONE
									    : EXIT_FAILED;
}

static int look(const struct history_args *args, const struct action *a, struct history_job *job)
{
	int code = -1;

	job->store = store_open(args->store, STORE_READ);
	if (!job->store)
		return EXIT_FAILED;
	if (a->run == history_regressions)
		code = choose_split(args, job);
	if (code >= 0)
		return code;
	if (args->output && store_would_replace(job->store, args->output))
		return opt_usage_error(job->cmd, "'%s' is the store itself", args->output);
	job->out = out_open(args->output, args->force);
	if (!job->out)
		return EXIT_FAILED;
	code = a->run(job);
	if (code == EXIT_DONE)
		return out_close(job->out, code);
	out_discard(job->out);
	return code;
}

static int run_history(const struct command *cmd, int argc, char **argv)
{
	struct history_args args = { .format = -1, .top = 20 };
	struct history_job job = { .cmd = cmd, .now_ms = when_now_ms() };
	const struct action *a = NULL;
	struct opt_operands words;
	int code = opt_parse(cmd, argc, argv, &args, &words);

	if (code < 0)
		code = find_action(cmd, &words, &a);
	if (code < 0)
		code = choose_format(cmd, &args, a, &job);
	if (code < 0)
		code = choose_times(cmd, &args, a, &job);
	if (code < 0) {
		job.filter.name = args.name;
		job.top = args.top;
		job.word = words.count > 1 ? words.v[1] : NULL;
		code = a->run ? look(&args, a, &job) : mark(&args, &job);
		store_close(job.store);
	}
	opt_done(cmd, &args, &words);
	return code;
}

const struct command cmd_history = {
	.name = "history",
	.operands = "list|show|trend|top|regressions|mark|export [WORD]",
	.summary = "what the samples in the store say: trends, regressions",
	.notes = history_notes,
	.options = history_options,
	.run = run_history,
};
