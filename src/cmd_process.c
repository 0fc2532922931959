/* SPDX-License-Identifier: MIT */

/* process: one question or order to a runtime.  Here: the command line and what actions share. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/base/trace_name.h"
#include "src/base/version.h"
#include "src/collect/collect_target.h"
#include "src/ipc/port_address.h"
#include "src/ipc/process_list.h"
#include "src/process/process_action.h"

#define NS_PER_MS UINT64_C(1000000)
#define SECOND	  UINT64_C(1000000000)

enum { DEFAULT_TIMEOUT_MS = 10000 };
enum { FORMAT_TEXT, FORMAT_JSON };
static const char *const formats[] = { "text", "json", NULL };

const char *const process_dump_types[] = { "mini", "heap", "triage", "full", NULL };
const char *const process_map_kinds[] = { "all", "jitdump", "perfmap", NULL };

static bool is_assignment(const char *text)
{
	const char *equals = strchr(text, '=');

	return equals && equals > text;
}

static const struct opt_spec process_options[] = {
	{ "process-id", 'p', "PID", "the process", OPT_UINT(struct process_args, pid), .min = 1,
	  .max = INT32_MAX, .aliases = { "pid" } },
	{ "name", 'n', "NAME", "the process, by process, assembly or .dll name",
	  OPT_STRING(struct process_args, name) },
	{ "diagnostic-port", 0, "PORT", "the process, by its socket's path, or HOST:PORT",
	  OPT_STRING(struct process_args, port), .aliases = { "dport" } },
	{ "format", 'f', "FORMAT", "text (default) or json",
	  OPT_ENUM(struct process_args, format, formats) },
	{ "json", 'j', NULL, "short for --format json", OPT_FLAG(struct process_args, json) },
	{ "timeout", 0, "TIME", "how long it may take in all (default 10s; dump: no limit)",
	  OPT_DURATION(struct process_args, timeout_ns), .min = NS_PER_MS, .max = 86400 * SECOND },
	{ "set", 0, "NAME=VALUE", "env: set a variable inside the process",
	  OPT_LIST(struct process_args, set), .check = is_assignment, .expected = "NAME=VALUE" },
	{ "output", 'o', "FILE", "dump: the file, written by the process; %p pid, %n name, %t time",
	  OPT_STRING(struct process_args, output), .check = trace_name_is_pattern,
	  .expected = TRACE_NAME_PATTERN },
	{ "type", 0, "TYPE", "dump: mini, heap (default), triage or full",
	  OPT_ENUM(struct process_args, type, process_dump_types) },
	{ "force", 0, NULL, "dump: replace an existing file",
	  OPT_FLAG(struct process_args, force) },
	{ "crash-report", 0, NULL, "dump: also write FILE.crashreport.json",
	  OPT_FLAG(struct process_args, crash_report), .aliases = { "crashreport" } },
	{ "diag", 0, NULL, "dump: the dumper logs to the standard output of the process",
	  OPT_FLAG(struct process_args, diag) },
	{ "map", 0, "KIND", "perfmap on: perfmap (default), jitdump or all",
	  OPT_ENUM(struct process_args, map, process_map_kinds) },
	{ 0 },
};

static const char process_notes[] =
	"actions:\n"
	"  info            what the runtime says about itself\n"
	"  env             its environment as it is now, which may hold secrets; --set changes it\n"
	"  resume          lets a runtime go on that was started suspended\n"
	"  dump            a core dump, written by the process itself: it stands still meanwhile\n"
	"  perfmap on|off  the file /tmp/perf-PID.map, which gives perf the names of methods\n"
	"\n"
	"examples:\n"
	"  drdotnet-trace process info -p 4711\n"
	"  drdotnet-trace process env -p 4711 --json\n"
	"  drdotnet-trace process env -p 4711 --set DOTNET_gcServer=1\n"
	"  drdotnet-trace process dump -p 4711 --type full -o /var/tmp/%n.dmp\n"
	"  drdotnet-trace process perfmap on -p 4711\n";

/* Options that only one action understands. */
enum { FOR_ENV = 1, FOR_DUMP = 2, FOR_MAP = 4 };

static const struct action {
	const char *name;
	int (*run)(struct process_job *job);
	unsigned options;
	bool on_off; /* a word follows */
} actions[] = {
	{ "info", process_action_info, 0, false },
	{ "env", process_action_env, FOR_ENV, false },
	{ "resume", process_action_resume, 0, false },
	{ "dump", process_action_dump, FOR_DUMP, false },
	{ "perfmap", process_action_perfmap, FOR_MAP, true },
};

enum { ACTION_COUNT = sizeof(actions) / sizeof(actions[0]) };

/* --- what actions share --- */

void process_job_target(const struct process_job *job, char *buf, size_t size)
{
	if (job->target)
		snprintf(buf, size, "process %" PRId32 " (%s)", job->target->pid, job->name);
	else
		snprintf(buf, size, "the process behind '%s'", job->name);
}

/* Not the 64 sessions that the number usually means. */
static void describe_refusal(const struct ipc_answer *a, char *buf, size_t size)
{
	if (a->why == IPC_CALL_ANSWERED && a->reply.ok)
		snprintf(buf, size, "%s", ipc_status_text(IPC_EPAYLOAD));
	else if (a->why == IPC_CALL_ANSWERED && a->reply.hresult == IPC_H_FAIL)
		snprintf(buf, size, "the runtime tried and failed (FAIL 0x%08x)",
			 (unsigned)a->reply.hresult);
	else
		ipc_answer_describe(a, buf, size);
}

int process_job_fail(const struct process_job *job, const char *what, const struct ipc_answer *a)
{
	char target[300], why[256];
	struct process_hold hold;
	bool held = a->why == IPC_CALL_TIMEOUT && process_is_held(PROC_ROOT, job->target, &hold);

	process_job_target(job, target, sizeof(target));
	if (held)
		snprintf(why, sizeof(why), "%s", hold.why);
	else if (job->target && a->why == IPC_CALL_FAILED && a->end.why == IPC_CONN_CONNECT &&
		 (a->end.error == UV_EACCES || a->end.error == UV_EPERM))
		process_whose(job->target, why, sizeof(why));
	else
		describe_refusal(a, why, sizeof(why));
	log_error("cannot %s %s: %s", what, target, why);
	switch (a->why) {
	case IPC_CALL_ANSWERED:
	case IPC_CALL_INTERRUPTED:
	case IPC_CALL_NO_MEMORY:
		return EXIT_FAILED;
	case IPC_CALL_TIMEOUT:
		log_advice("%s", held ? hold.advice
				      : "it may be overloaded, or another tool may block its "
					"diagnostics; --timeout waits longer");
		break;
	case IPC_CALL_FAILED:
	case IPC_CALL_CUT:
		break;
	}
	return EXIT_UNREACHABLE;
}

void process_json_begin(const struct process_job *job, struct json *j, struct out *o)
{
	json_init(j, o, false);
	json_begin_object(j, NULL);
	json_text(j, "schema", REPORT_SCHEMA);
	if (job->target)
		json_int(j, "pid", job->target->pid);
	else
		json_null(j, "pid");
}

bool process_job_ask_info(struct process_job *job, struct process_told *ret)
{
	uint8_t request[IPC_HEADER_BYTES];

	memset(ret, 0, sizeof(*ret));
	for (unsigned version = 3; version >= 1; version--) {
		size_t n = ipc_put_plain(request, sizeof(request), IPC_SET_PROCESS,
					 ipc_process_info_command(version));

		ipc_answer_done(&ret->answer);
		ipc_call(job->caller, request, n, NULL, &ret->answer);
		if (ipc_answer_unknown(&ret->answer))
			continue;
		if (ret->answer.why != IPC_CALL_ANSWERED ||
		    ipc_process_info_read(&ret->answer.reply, version, &ret->info) != IPC_OK)
			return false;
		ret->version = version;
		return true;
	}
	return true;
}

/* --- the command line --- */

static int wrong_action(const struct command *cmd, const char *word)
{
	const char *names[ACTION_COUNT + 1], *near;

	for (size_t i = 0; i < ACTION_COUNT; i++)
		names[i] = actions[i].name;
	names[ACTION_COUNT] = NULL;
	near = opt_nearest(word, names);
	if (near)
		return opt_usage_error(cmd, "'%s' is no action; did you mean '%s'?", word, near);
	return opt_usage_error(cmd, "'%s' is no action: info, env, resume, dump or perfmap", word);
}

static const struct action *find_action(const char *word)
{
	for (size_t i = 0; i < ACTION_COUNT; i++)
		if (strcmp(actions[i].name, word) == 0)
			return &actions[i];
	return NULL;
}

static int check_options(const struct command *cmd, const struct action *a, bool off,
			 const struct process_args *args)
{
	const struct {
		bool given;
		unsigned whose;
		const char *option, *action;
	} rows[] = {
		{ args->set.count > 0, FOR_ENV, "set", "env" },
		{ args->output != NULL, FOR_DUMP, "output", "dump" },
		{ args->type >= 0, FOR_DUMP, "type", "dump" },
		{ args->force, FOR_DUMP, "force", "dump" },
		{ args->crash_report, FOR_DUMP, "crash-report", "dump" },
		{ args->diag, FOR_DUMP, "diag", "dump" },
		{ args->map >= 0, FOR_MAP, "map", "perfmap" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].given && !(rows[i].whose & a->options))
			return opt_usage_error(cmd, "--%s belongs to 'process %s', not to '%s'",
					       rows[i].option, rows[i].action, a->name);
	if (off && args->map >= 0)
		return opt_usage_error(cmd, "--map belongs to 'perfmap on', not to 'off'");
	return -1;
}

static int check_words(const struct command *cmd, const struct opt_operands *words,
		       const struct action **ret)
{
	const struct action *a;
	size_t most;

	if (words->count == 0)
		return opt_usage_error(cmd, "an action is needed: info, env, resume, dump or "
					    "perfmap");
	a = find_action(words->v[0]);
	if (!a)
		return wrong_action(cmd, words->v[0]);
	most = a->on_off ? 2 : 1;
	if (words->count > most)
		return opt_usage_error(cmd, "'%s' is too much: give the process with -p or -n",
				       words->v[most]);
	if (a->on_off && (words->count < 2 ||
			  (strcmp(words->v[1], "on") != 0 && strcmp(words->v[1], "off") != 0)))
		return opt_usage_error(cmd, "'%s' needs 'on' or 'off' behind it", a->name);
	*ret = a;
	return -1;
}

static int check_target(const struct command *cmd, const struct process_args *args)
{
	unsigned given = (args->pid != 0) + (args->name != NULL) + (args->port != NULL);

	if (given == 0)
		return opt_usage_error(cmd, "which process? give it with -p or -n");
	if (given > 1)
		return opt_usage_error(cmd, "-p, -n and --diagnostic-port exclude each other");
	return -1;
}

/* --- running --- */

static int run_with(struct process_job *job, const struct action *a, const char *const *sockets,
		    size_t count, const struct ipc_source *source)
{
	uint64_t timeout_ms = job->args->timeout_ns / NS_PER_MS;
	struct ipc_caller caller;
	uv_loop_t loop;
	int code;

	if (uv_loop_init(&loop) < 0) {
		log_error("cannot set up the event loop");
		return EXIT_FAILED;
	}
	if (!ipc_caller_init(&caller, &loop, sockets, count,
			     timeout_ms ? timeout_ms : DEFAULT_TIMEOUT_MS)) {
		uv_loop_close(&loop);
		log_error("cannot set up the event loop");
		return EXIT_FAILED;
	}
	caller.source = source;
	job->caller = &caller;
	code = a->run(job);
	ipc_caller_done(&caller);
	uv_loop_close(&loop);
	return code;
}

/* The runtime is the one that listens, whether or not the address says so. */
static int parse_port(const struct command *cmd, const char *text, struct port_address *ret)
{
	const char *why, *options = strchr(text, ',');
	char *full = NULL;
	int code = -1;

	if (options && strstr(options, ",listen"))
		return opt_usage_error(cmd, "--diagnostic-port '%s': process only connects", text);
	if (asprintf(&full, "%s%s", text, options ? "" : ",connect") < 0) {
		log_error("out of memory");
		return EXIT_FAILED;
	}
	if (!port_address_parse(ret, full, &why))
		code = opt_usage_error(cmd, "--diagnostic-port '%s': %s", text, why);
	free(full);
	return code;
}

static int by_port(struct process_job *job, const struct action *a)
{
	struct port_address port = { 0 };
	const struct ipc_source source = { port_address_connect, &port };
	int code = parse_port(job->cmd, job->args->port, &port);
	const char *sockets[1];

	if (code < 0) {
		job->name = sockets[0] = port_address_name(&port);
		code = run_with(job, a, sockets, 1, &source);
	}
	port_address_done(&port);
	return code;
}

static int by_process(struct process_job *job, const struct action *a)
{
	const struct process_args *args = job->args;
	uint64_t ask_ms = args->timeout_ns ? args->timeout_ns / NS_PER_MS : DEFAULT_TIMEOUT_MS;
	struct collect_target found;
	const char **sockets = NULL;
	int code = collect_target_choose(&found, (int32_t)args->pid, args->name, ask_ms);

	if (code < 0) {
		sockets = calloc(found.target.socket_count, sizeof(*sockets));
		if (!sockets) {
			log_error("out of memory");
			code = EXIT_FAILED;
		}
	}
	if (code < 0) {
		for (size_t i = 0; i < found.target.socket_count; i++)
			sockets[i] = found.target.sockets[i].path;
		job->target = &found.target;
		job->name = found.name;
		code = run_with(job, a, sockets, found.target.socket_count, NULL);
	}
	free(sockets);
	collect_target_done(&found);
	return code;
}

static int run_process(const struct command *cmd, int argc, char **argv)
{
	struct process_args args = { .type = -1, .map = -1 };
	struct process_job job = { .cmd = cmd, .args = &args };
	const struct action *a = NULL;
	struct opt_operands words;
	int code = opt_parse(cmd, argc, argv, &args, &words);

	if (code < 0)
		code = check_words(cmd, &words, &a);
	if (code < 0)
		code = check_options(cmd, a, words.count > 1 && strcmp(words.v[1], "off") == 0,
				     &args);
	if (code < 0)
		code = check_target(cmd, &args);
	if (code < 0) {
		job.word = words.count > 1 ? words.v[1] : "";
		job.json = args.json || args.format == FORMAT_JSON;
		code = args.port ? by_port(&job, a) : by_process(&job, a);
	}
	opt_done(cmd, &args, &words);
	return code;
}

const struct command cmd_process = {
	.name = "process",
	.operands = "info|env|resume|dump|perfmap [on|off]",
	.summary = "ask a runtime, resume it, dump it",
	.notes = process_notes,
	.options = process_options,
	.run = run_process,
};
