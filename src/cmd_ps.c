/* SPDX-License-Identifier: MIT */

/* ps: the .NET processes of this machine, and whether each can be traced. */

#include <stdio.h>
#include <string.h>

#include "src/base/command.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/output.h"
#include "src/base/table.h"
#include "src/base/utf8.h"
#include "src/base/version.h"
#include "src/ipc/process_list.h"

struct ps_args {
	uint64_t timeout_ns;
	int format;
	bool json, verbose;
};

enum { FORMAT_TEXT, FORMAT_JSON };
static const char *const formats[] = { "text", "json", NULL };

static const struct opt_spec ps_options[] = {
	{ "format", 'f', "FORMAT", "text (default) or json",
	  OPT_ENUM(struct ps_args, format, formats) },
	{ "json", 'j', NULL, "short for --format json", OPT_FLAG(struct ps_args, json) },
	{ "timeout", 0, "TIME", "how long a process may take to answer (default 1s)",
	  OPT_DURATION(struct ps_args, timeout_ns), .min = 1000000, .max = 3600000000000 },
	{ "verbose", 'v', NULL, "also say how many processes were looked at",
	  OPT_FLAG(struct ps_args, verbose) },
	{ 0 },
};

static const char ps_notes[] =
	"Lists processes with a .NET runtime (.NET Core 3.0 and later, NativeAOT), also in other\n"
	"containers where /proc can be read.  Processes of other users show up for root.\n"
	"\n"
	"examples:\n"
	"  drdotnet-trace ps\n"
	"  drdotnet-trace ps --json\n";

static void text_or_null(struct json *j, const char *name, const char *text)
{
	if (text && *text)
		json_text(j, name, text);
	else
		json_null(j, name);
}

static void print_json(struct out *o, const struct process_list *l)
{
	struct json j;

	json_init(&j, o, false);
	json_begin_object(&j, NULL);
	json_text(&j, "schema", REPORT_SCHEMA);
	json_begin_array(&j, "processes");
	for (size_t i = 0; i < l->count; i++) {
		const struct process *p = &l->items[i];

		json_begin_object(&j, NULL);
		json_int(&j, "pid", p->target->pid);
		json_text(&j, "name", p->name ? p->name : "");
		text_or_null(&j, "runtime_version", p->runtime_version);
		text_or_null(&j, "arch", p->arch);
		text_or_null(&j, "user", p->user);
		text_or_null(&j, "container", p->container);
		if (p->uptime_s >= 0)
			json_fixed(&j, "uptime_s", p->uptime_s, 2);
		else
			json_null(&j, "uptime_s");
		text_or_null(&j, "command_line", p->command_line);
		json_bool(&j, "traceable", p->traceable);
		text_or_null(&j, "why_not", p->why_not);
		text_or_null(&j, "socket",
			     p->target->socket_count ? p->target->sockets[0].path : NULL);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
}

/* "3d04h", "4h05m", "12m30s", "9s" */
static void format_uptime(double s, char *buf, size_t size)
{
	unsigned long t = s > 0 ? (unsigned long)s : 0;

	if (s < 0)
		snprintf(buf, size, "-");
	else if (t >= 86400)
		snprintf(buf, size, "%lud%02luh", t / 86400, t % 86400 / 3600);
	else if (t >= 3600)
		snprintf(buf, size, "%luh%02lum", t / 3600, t % 3600 / 60);
	else if (t >= 60)
		snprintf(buf, size, "%lum%02lus", t / 60, t % 60);
	else
		snprintf(buf, size, "%lus", t);
}

static const char *or_dash(const char *text)
{
	return text && *text ? text : "-";
}

static void print_table(struct out *o, const struct process_list *l)
{
	static const char *const heads[] = { "PID",  "NAME",	  "RUNTIME", "ARCH",
					     "USER", "CONTAINER", "UPTIME",  "COMMAND" };
	struct table t;
	char uptime[32];

	table_init(&t, "rlllllrl");
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		table_cell(&t, "%s", heads[i]);
	for (size_t i = 0; i < l->count; i++) {
		const struct process *p = &l->items[i];

		format_uptime(p->uptime_s, uptime, sizeof(uptime));
		table_cell(&t, "%d", (int)p->target->pid);
		table_cell(&t, "%s", or_dash(p->name));
		table_cell(&t, "%s", or_dash(p->runtime_version));
		table_cell(&t, "%s", or_dash(p->arch));
		table_cell(&t, "%s", or_dash(p->user));
		table_cell(&t, "%s", or_dash(p->container));
		table_cell(&t, "%s", uptime);
		table_cell(&t, "%s", or_dash(p->command_line));
	}
	table_print(&t, o, true);
}

static void print_text(struct out *o, const struct process_list *l)
{
	if (l->count == 0) {
		log_info("no .NET process was found");
		return;
	}
	print_table(o, l);
	for (size_t i = 0; i < l->count; i++) {
		const struct process *p = &l->items[i];
		char why[sizeof(p->why_not) * 4];

		if (p->traceable && p->target->foreign) {
			utf8_escape(p->target->sockets[0].path, strlen(p->target->sockets[0].path),
				    why, sizeof(why));
			out_printf(o,
				   "%d is of another pid namespace, not process %d here: trace "
				   "it with --diagnostic-port %s,connect\n",
				   (int)p->target->pid, (int)p->target->pid, why);
		}
		if (p->traceable)
			continue;
		utf8_escape(p->why_not, strlen(p->why_not), why, sizeof(why));
		out_printf(o, "%d cannot be traced: %s\n", (int)p->target->pid, why);
	}
}

static int list(const struct ps_args *args)
{
	struct process_list l;
	struct out *o;
	int code = EXIT_FAILED;

	if (!process_list_load(&l, PROC_ROOT, args->timeout_ns / 1000000))
		return EXIT_FAILED;
	o = out_open(NULL, false);
	if (o) {
		if (args->json || args->format == FORMAT_JSON)
			print_json(o, &l);
		else
			print_text(o, &l);
		code = out_close(o, EXIT_DONE);
	}
	if (args->verbose)
		log_info("%zu processes looked at, %zu of them not readable", l.found.looked_at,
			 l.found.skipped);
	process_list_done(&l);
	return code;
}

static int run_ps(const struct command *cmd, int argc, char **argv)
{
	struct ps_args args = { .timeout_ns = 1000000000 };
	struct opt_operands words;
	int code = opt_parse(cmd, argc, argv, &args, &words);

	if (code < 0 && words.count)
		code = opt_usage_error(cmd, "'%s' is too much: ps takes no words", words.v[0]);
	if (code < 0)
		code = list(&args);
	opt_done(cmd, &args, &words);
	return code;
}

const struct command cmd_ps = {
	.name = "ps",
	.operands = "",
	.summary = "list .NET processes that can be traced",
	.notes = ps_notes,
	.options = ps_options,
	.run = run_ps,
};
