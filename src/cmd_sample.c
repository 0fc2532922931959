/* SPDX-License-Identifier: MIT */

/* sample: one short recording into the store, for cron; --every for a loop.  Here: the command
 * line and the loop. */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/collect/collect_plan.h"
#include "src/collect/collect_request.h"
#include "src/collect/profiles.h"
#include "src/perf/perf_sampler.h"
#include "src/report/fail_if.h"
#include "src/store/sample.h"

#define NS_PER_MS UINT64_C(1000000)
#define SECOND	  UINT64_C(1000000000)
#define DAY_NS	  (86400 * SECOND)

struct sample_args {
	struct opt_list pids, names, matches, profiles, fail_if;
	bool all, no_traces, quiet;
	int fail_on; /* enum fail_on */
	uint64_t max_targets, duration_ns, every_ns, jitter_ns, count, timeout_ns, nice;
	uint64_t keep_days, keep_size, keep_rows_days, max_size;
	const char *store, *prometheus;
};

static bool is_prom(const char *text)
{
	size_t len = strlen(text);

	return len > 5 && strcmp(text + len - 5, ".prom") == 0;
}

static const struct opt_spec sample_options[] = {
	{ "process-id", 'p', "PID", "process to sample; may be repeated",
	  OPT_LIST(struct sample_args, pids), .aliases = { "pid" } },
	{ "name", 'n', "NAME", "processes to sample, by process, assembly or .dll name",
	  OPT_LIST(struct sample_args, names) },
	{ "match", 0, "TEXT", "processes whose command line has that text, or matches it (* ?)",
	  OPT_LIST(struct sample_args, matches) },
	{ "all", 0, NULL, "every .NET process that can be traced",
	  OPT_FLAG(struct sample_args, all) },
	{ "max-targets", 0, "N", "processes in one round at most (default 10)",
	  OPT_UINT(struct sample_args, max_targets), .min = 1, .max = 1000 },
	{ "duration", 0, "TIME", "how long to record (default 5s)",
	  OPT_DURATION(struct sample_args, duration_ns), .min = 100 * NS_PER_MS, .max = DAY_NS },
	{ "profile", 0, "NAME,...", "what to record, as of collect (default: default)",
	  OPT_LIST(struct sample_args, profiles) },
	{ "every", 0, "TIME", "again and again, beginning so long after each other",
	  OPT_DURATION(struct sample_args, every_ns), .min = SECOND, .max = 366 * DAY_NS },
	{ "count", 0, "N", "with --every: stop after so many rounds",
	  OPT_UINT(struct sample_args, count), .min = 1 },
	{ "jitter", 0, "TIME", "begin up to so much later, at random",
	  OPT_DURATION(struct sample_args, jitter_ns), .max = DAY_NS },
	{ "store", 0, "DIR", "where samples are kept", OPT_STRING(struct sample_args, store) },
	{ "no-traces", 0, NULL, "keep numbers and findings, not the traces",
	  OPT_FLAG(struct sample_args, no_traces) },
	{ "keep-days", 0, "N", "days traces are kept (default 7; 0: for ever)",
	  OPT_UINT(struct sample_args, keep_days), .max = 36500 },
	{ "keep-size", 0, "SIZE",
	  "of all traces together (default 1G); those with findings longest",
	  OPT_SIZE(struct sample_args, keep_size), .min = 1 << 20 },
	{ "keep-rows-days", 0, "N", "days numbers are kept (default 400; 0: for ever)",
	  OPT_UINT(struct sample_args, keep_rows_days), .max = 36500 },
	{ "max-size", 0, "SIZE", "of one trace; the recording ends there (default 64M)",
	  OPT_SIZE(struct sample_args, max_size), .min = 1 << 20, .max = UINT64_C(1) << 50 },
	{ "prometheus", 0, "FILE", "also write the newest numbers there, for its node exporter",
	  OPT_STRING(struct sample_args, prometheus), .check = is_prom,
	  .expected = "a name that ends in .prom: the exporter reads no other" },
	{ "fail-if", 0, "EXPR", "exit code 4 if that holds for a process: 'gc.pause_percent > 20'",
	  OPT_LIST(struct sample_args, fail_if) },
	{ "fail-on", 0, "SEVERITY", "exit code 4 at a finding of that severity: critical, warning",
	  OPT_ENUM(struct sample_args, fail_on, fail_on_names) },
	{ "nice", 0, "N", "give way to others, 0 to 19 (default 10)",
	  OPT_UINT(struct sample_args, nice), .max = 19 },
	{ "timeout", 0, "TIME", "how long a process may take to begin (default 5s)",
	  OPT_DURATION(struct sample_args, timeout_ns), .min = NS_PER_MS, .max = 3600 * SECOND },
	{ "quiet", 'q', NULL, "say only what went wrong", OPT_FLAG(struct sample_args, quiet) },
	{ 0 },
};

static const char sample_notes[] =
	"Records processes for a short time, keeps the numbers, the findings and the traces in a\n"
	"store, and says nothing when all is well: one line for each finding otherwise.\n"
	"'drdotnet-trace history' tells trends and regressions from the store.\n"
	"\n"
	"examples:\n"
	"  */10 * * * *  drdotnet-trace sample --all --jitter 30s     (a line for crontab)\n"
	"  drdotnet-trace sample -n Shop --duration 10s --fail-on warning\n"
	"  drdotnet-trace sample -n Shop --every 60s --prometheus /var/lib/node/shop.prom\n";

/* --- signals --- */

enum { SIGNALS = 3 };

/*
 * Watches them from the first round to the last, so that none ever has its default effect,
 * whichever thread gets it.  In a round collect watches them as well.
 */
struct wake {
	uv_loop_t loop;
	uv_timer_t timer;
	uv_signal_t signals[SIGNALS];
	bool stopped;
};

static void on_signal(uv_signal_t *signal, int number)
{
	struct wake *w = signal->data;

	(void)number;
	w->stopped = true;
	uv_stop(&w->loop);
}

static void on_due(uv_timer_t *timer)
{
	uv_stop(timer->loop);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	uv_close(handle, NULL);
}

static void wake_close(struct wake *w)
{
	uv_walk(&w->loop, close_handle, NULL);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	uv_loop_close(&w->loop);
}

static bool wake_open(struct wake *w)
{
	static const int numbers[SIGNALS] = { SIGINT, SIGTERM, SIGHUP };
	int error = uv_loop_init(&w->loop);

	if (error < 0) {
		log_error("cannot sample: %s", uv_strerror(error));
		return false;
	}
	uv_timer_init(&w->loop, &w->timer);
	for (size_t i = 0; i < SIGNALS && error == 0; i++) {
		struct sigaction old;

		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN)
			continue; /* nohup stays nohup */
		error = uv_signal_init(&w->loop, &w->signals[i]);
		w->signals[i].data = w;
		if (error == 0)
			error = uv_signal_start(&w->signals[i], on_signal, numbers[i]);
	}
	if (error == 0)
		return true;
	log_error("cannot sample: %s", uv_strerror(error));
	wake_close(w);
	return false;
}

/* Until then or a signal: false. */
static bool sleep_until(struct wake *w, uint64_t when_ns)
{
	uint64_t now_ns = uv_hrtime();
	uint64_t rest_ns = when_ns > now_ns ? when_ns - now_ns : 0;

	uv_update_time(&w->loop);
	uv_timer_start(&w->timer, on_due, (rest_ns + NS_PER_MS - 1) / NS_PER_MS, 0);
	if (!w->stopped)
		uv_run(&w->loop, UV_RUN_DEFAULT);
	uv_timer_stop(&w->timer);
	return !w->stopped;
}

/* Whether a signal has come meanwhile. */
static bool was_stopped(struct wake *w)
{
	uv_run(&w->loop, UV_RUN_NOWAIT);
	return w->stopped;
}

static uint64_t jitter(uint64_t most_ns)
{
	struct timespec ts;

	if (!most_ns)
		return 0;
	clock_gettime(CLOCK_REALTIME, &ts);
	/* Many machines begin at the same second: neither time nor pid alone tells them apart. */
	srandom((unsigned)ts.tv_nsec ^ (unsigned)getpid() << 12);
	return (uint64_t)((double)random() / 2147483648.0 * (double)most_ns);
}

/* --- running --- */

static bool any_lives(const struct opt_list *pids)
{
	uint64_t pid;

	for (size_t i = 0; i < pids->count; i++)
		if (!opt_parse_uint(pids->items[i], &pid) &&
		    (kill((pid_t)pid, 0) == 0 || errno == EPERM))
			return true;
	return false;
}

/*
 * A round without a process.  One that was chosen by its name may come, or come back; a pid that
 * has ended does not.  True: nothing will ever come.
 */
static bool is_over(const struct sample_args *args, const struct sample_result *all, bool *said)
{
	bool may_come =
		args->all || args->names.count || args->matches.count || any_lives(&args->pids);

	if (!may_come)
		log_error(all->sampled ? "the process has ended" : "no such process");
	else if (!*said && !args->quiet && !all->sampled)
		log_info("no process that can be sampled yet; waiting for one");
	*said = true;
	return !may_come;
}

static int loop(struct wake *wake, struct store *store, const struct sample_args *args,
		const struct sample_settings *settings)
{
	struct sample_result all = { 0 };
	uint64_t begin = uv_hrtime(), due = begin, rounds = 0, missed_all = 0;
	bool said = false;

	for (;;) {
		uint64_t missed;

		if (!sleep_until(wake, due + jitter(args->jitter_ns)))
			break;
		sample_round(store, settings, &all);
		rounds++;
		if (args->every_ns && all.code == EXIT_UNREACHABLE) {
			if (is_over(args, &all, &said))
				break;
			all.code = EXIT_DONE;
		}
		if (!args->every_ns || all.interrupted || was_stopped(wake) ||
		    (args->count && rounds == args->count))
			break;
		due = sample_next(begin, args->every_ns, uv_hrtime(),
				  (due - begin) / args->every_ns + 1, &missed);
		missed_all += missed;
	}
	if (args->every_ns && !args->quiet)
		log_info("%" PRIu64 " rounds (%" PRIu64 " left out), %zu samples, %zu findings, "
			 "%zu failed",
			 rounds, missed_all, all.sampled, all.findings, all.failed);
	if (all.code == EXIT_UNREACHABLE && all.sampled)
		return EXIT_DONE;
	return said && !all.sampled && all.code == EXIT_DONE ? EXIT_UNREACHABLE : all.code;
}

static int watched_loop(struct store *store, const struct sample_args *args,
			const struct sample_settings *settings)
{
	struct wake wake = { 0 };
	int code;

	if (!wake_open(&wake))
		return EXIT_FAILED;
	code = loop(&wake, store, args, settings);
	wake_close(&wake);
	return code;
}

static bool needs_sampler(const struct opt_list *profiles)
{
	for (size_t i = 0; i < profiles->count; i++)
		if (profile_sampler_use(profiles->items[i]) == PROFILE_SAMPLER_NEEDED)
			return true;
	return false;
}

static int run_with(const struct command *cmd, const struct sample_args *args,
		    const struct provider_set *set, const struct fail_if *conditions)
{
	struct collect_request request;
	struct sample_settings settings = {
		.pids = &args->pids,
		.names = &args->names,
		.matches = &args->matches,
		.all = args->all,
		.max_targets = args->max_targets,
		.ask_ms = args->timeout_ns / NS_PER_MS,
		.keep_traces = !args->no_traces,
		.limits = { args->keep_days * (DAY_NS / NS_PER_MS), args->keep_size,
			    args->keep_rows_days * (DAY_NS / NS_PER_MS) },
		.prometheus = args->prometheus,
		.quiet = args->quiet,
		.loop = args->every_ns != 0,
	};
	struct store *store;
	int code;

	if (!collect_request_make(&request, set, NULL))
		return EXIT_FAILED;
	settings.collect = (struct collect_settings){
		.session = { .buffer_mb = 64,
			     .rundown_keywords = IPC_RUNDOWN_DEFAULT,
			     .stacks = true,
			     .providers = request.providers,
			     .provider_count = set->count },
		.duration_ms = args->duration_ns / NS_PER_MS,
		.max_bytes = args->max_size,
		.timeout_ms = args->timeout_ns / NS_PER_MS,
		.stop_timeout_ms = 30000,
		.options = { .top = 50 },
		.cpu_frequency = PERF_DEFAULT_HZ,
		/* Nobody asked for it just now: it must not cost. */
		.sampler = needs_sampler(&args->profiles) ? PROFILE_SAMPLER_NEEDED
							  : PROFILE_SAMPLER_CPU,
		.conditions = conditions,
		.quiet = true,
	};
	if (request.without_tasks && request.without_tasks < set->count &&
	    args->profiles.count == 0) {
		settings.collect.without_tasks = settings.collect.session;
		settings.collect.without_tasks.provider_count = request.without_tasks;
	}
	umask(077); /* traces tell what a program does */
	store = store_open(args->store, STORE_WRITE);
	if (store && args->prometheus && store_would_replace(store, args->prometheus))
		code = opt_usage_error(cmd, "--prometheus '%s': it is the store itself",
				       args->prometheus);
	else
		code = store ? watched_loop(store, args, &settings) : EXIT_FAILED;
	store_close(store);
	collect_request_done(&request);
	return code;
}

static int choose_providers(const struct command *cmd, const struct sample_args *args,
			    struct provider_set *set)
{
	struct provider_error error;
	uint64_t rundown;

	for (size_t i = 0; i < args->profiles.count; i++) {
		/* One walk is no proof, and each holds the process. */
		if (profile_list_has(args->profiles.items[i], "heap-tasks"))
			return opt_usage_error(cmd, "--profile: a sample does not walk the heap; "
						    "'stack' and 'collect --heap' do");
		if (!profile_add_list(set, args->profiles.items[i], &rundown, &error))
			return opt_usage_error(cmd, "--profile: %s", error.text);
	}
	if (set->count == 0 && !profile_add_default(set, &error)) {
		log_error("cannot sample: %s", error.text);
		return EXIT_FAILED;
	}
	return -1;
}

static int check_pids(const struct command *cmd, const struct sample_args *args)
{
	int code = -1;
	int32_t pid;

	for (size_t i = 0; code < 0 && i < args->pids.count; i++)
		code = collect_plan_pid(cmd, args->pids.items[i], &pid);
	return code;
}

static int sample(const struct command *cmd, const struct sample_args *args)
{
	struct provider_set set = { 0 };
	struct fail_if conditions = { 0 };
	int code = -1;

	if (!args->all && !args->pids.count && !args->names.count && !args->matches.count)
		code = opt_usage_error(cmd, "which processes? -n, -p, --match or --all");
	if (code < 0)
		code = check_pids(cmd, args);
	if (code < 0 && args->count && !args->every_ns)
		code = opt_usage_error(cmd, "--count needs --every");
	if (code < 0 && args->every_ns && args->jitter_ns >= args->every_ns)
		code = opt_usage_error(cmd, "--jitter must be shorter than --every");
	if (code < 0)
		code = choose_providers(cmd, args, &set);
	if (code < 0)
		code = fail_if_parse(&conditions, cmd, &args->fail_if, args->fail_on);
	if (code < 0) {
		/* Not worth a word where it is not allowed. */
		(void)!setpriority(PRIO_PROCESS, 0, (int)args->nice);
		code = run_with(cmd, args, &set, &conditions);
	}
	fail_if_done(&conditions);
	provider_set_done(&set);
	return code;
}

static int run_sample(const struct command *cmd, int argc, char **argv)
{
	struct sample_args args = {
		.max_targets = 10,
		.duration_ns = 5 * SECOND,
		.keep_days = 7,
		.keep_size = UINT64_C(1) << 30,
		.keep_rows_days = 400,
		.max_size = 64 << 20,
		.nice = 10,
		.timeout_ns = 5 * SECOND,
	};
	struct opt_operands words;
	int code = opt_parse(cmd, argc, argv, &args, &words);

	if (code < 0 && words.count)
		code = opt_usage_error(cmd,
				       "'%s' is too much: give processes with -n, -p, --match "
				       "or --all",
				       words.v[0]);
	if (code < 0)
		code = sample(cmd, &args);
	opt_done(cmd, &args, &words);
	return code;
}

const struct command cmd_sample = {
	.name = "sample",
	.operands = "",
	.summary = "a short recording into a store, for cron",
	.notes = sample_notes,
	.options = sample_options,
	.run = run_sample,
};
