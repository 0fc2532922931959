/* SPDX-License-Identifier: MIT */

/* doctor: can this process be traced, and if not, why and what to do. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/command.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/output.h"
#include "src/base/utf8.h"
#include "src/base/version.h"
#include "src/ipc/process_list.h"
#include "src/process/doctor.h"

struct doctor_args {
	uint64_t pid;
	uint64_t timeout_ns;
	int format;
	bool json;
};

enum { FORMAT_TEXT, FORMAT_JSON };
static const char *const formats[] = { "text", "json", NULL };

static const struct opt_spec doctor_options[] = {
	{ "process-id", 'p', "PID",
	  "check this process (default: every .NET process, more lightly)",
	  OPT_UINT(struct doctor_args, pid), .min = 1, .max = INT32_MAX, .aliases = { "pid" } },
	{ "format", 'f', "FORMAT", "text (default) or json",
	  OPT_ENUM(struct doctor_args, format, formats) },
	{ "json", 'j', NULL, "short for --format json", OPT_FLAG(struct doctor_args, json) },
	{ "timeout", 0, "TIME", "how long a process may take to answer (default 2s)",
	  OPT_DURATION(struct doctor_args, timeout_ns), .min = 1000000, .max = 3600000000000 },
	{ 0 },
};

static const char doctor_notes[] =
	"Checks one cause after the other, with a sentence of advice for each that applies.\n"
	"With -p a session is opened for a moment, and ended again; nothing is recorded.\n"
	"Exit code 5: that process cannot be traced.\n"
	"\n"
	"examples:\n"
	"  drdotnet-trace doctor\n"
	"  drdotnet-trace doctor -p 4711\n";

/* One process and what was found out about it. */
struct visit {
	int32_t pid;
	char *name; /* NULL: not known */
	struct doctor_report report;
};

/* --- output --- */

static void checks_json(struct json *j, const struct doctor_report *r)
{
	json_begin_array(j, "checks");
	for (size_t i = 0; i < r->count; i++) {
		const struct doctor_check *c = &r->checks[i];

		json_begin_object(j, NULL);
		json_text(j, "id", c->id);
		json_text(j, "level", doctor_level_name(c->level));
		json_text(j, "message", c->message);
		json_text(j, "advice", c->advice[0] ? c->advice : NULL);
		json_end(j);
	}
	json_end(j);
}

static void print_json(struct out *o, const struct doctor_report *machine,
		       const struct visit *visits, size_t count)
{
	struct json j;

	json_init(&j, o, false);
	json_begin_object(&j, NULL);
	json_text(&j, "schema", REPORT_SCHEMA);
	json_begin_object(&j, "machine");
	checks_json(&j, machine);
	json_end(&j);
	json_begin_array(&j, "processes");
	for (size_t i = 0; i < count; i++) {
		const struct visit *v = &visits[i];

		json_begin_object(&j, NULL);
		json_int(&j, "pid", v->pid);
		json_text(&j, "name", v->name);
		json_bool(&j, "traceable", !doctor_has(&v->report, DOCTOR_FAILED));
		checks_json(&j, &v->report);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
}

static void safe_text(struct out *o, const char *text)
{
	char safe[4 * sizeof(((struct doctor_check *)0)->message)];

	utf8_escape(text, strlen(text), safe, sizeof(safe));
	out_text(o, safe);
}

static void checks_text(struct out *o, const struct doctor_report *r)
{
	static const char *const colours[] = {
		[DOCTOR_OK] = "32",	[DOCTOR_INFO] = "36",	 [DOCTOR_WARNING] = "33",
		[DOCTOR_FAILED] = "31", [DOCTOR_UNKNOWN] = "35",
	};

	for (size_t i = 0; i < r->count; i++) {
		const struct doctor_check *c = &r->checks[i];

		out_text(o, "  ");
		if (o->colour)
			out_printf(o, "\x1b[%sm", colours[c->level]);
		out_printf(o, "%-8s", doctor_level_name(c->level));
		if (o->colour)
			out_text(o, "\x1b[0m");
		out_printf(o, " %-14s  ", c->id);
		safe_text(o, c->message);
		out_char(o, '\n');
		if (c->advice[0]) {
			out_printf(o, "%*s-> ", 27, "");
			safe_text(o, c->advice);
			out_char(o, '\n');
		}
	}
}

static void print_text(struct out *o, const struct doctor_report *machine,
		       const struct visit *visits, size_t count)
{
	out_text(o, "this machine\n");
	checks_text(o, machine);
	for (size_t i = 0; i < count; i++) {
		const struct visit *v = &visits[i];
		bool not = doctor_has(&v->report, DOCTOR_FAILED);

		out_printf(o, "\nprocess %" PRId32, v->pid);
		if (v->name) {
			out_text(o, " (");
			safe_text(o, v->name);
			out_char(o, ')');
		}
		out_printf(o, ": %s\n", not ? "cannot be traced" : "can be traced");
		checks_text(o, &v->report);
	}
	if (count == 0)
		out_text(o, "\nno .NET process was found\n");
}

/* --- the rounds --- */

static void examine(const struct doctor_settings *s, const struct ipc_target *t, struct visit *v)
{
	char *line;

	v->pid = t->pid;
	doctor_check_process(s, t, &v->report);
	if (t->why == IPC_WHY_GONE)
		return;
	line = proc_read_command_line(s->root, t->pid);
	v->name = process_guess_name(line, t->stat.comm);
	free(line);
}

static int print(const struct doctor_args *args, const struct doctor_report *machine,
		 const struct visit *visits, size_t count, int code)
{
	struct out *o = out_open(NULL, false);

	if (!o)
		return EXIT_FAILED;
	if (args->json || args->format == FORMAT_JSON)
		print_json(o, machine, visits, count);
	else
		print_text(o, machine, visits, count);
	return out_close(o, code);
}

static int examine_one(const struct doctor_args *args, const struct doctor_settings *s,
		       const struct doctor_report *machine)
{
	struct ipc_target t;
	struct visit *v = calloc(1, sizeof(*v));
	int code = EXIT_DONE;

	if (!v) {
		log_error("cannot check: out of memory");
		return EXIT_FAILED;
	}
	ipc_find_process(s->root, (int32_t)args->pid, &t);
	examine(s, &t, v);
	if (doctor_has(&v->report, DOCTOR_FAILED))
		code = EXIT_UNREACHABLE;
	else if (v->report.interrupted)
		code = EXIT_FAILED;
	code = print(args, machine, v, 1, code);
	ipc_target_done(&t);
	free(v->name);
	free(v);
	return code;
}

static int examine_all(const struct doctor_args *args, const struct doctor_settings *s,
		       const struct doctor_report *machine)
{
	struct ipc_found found;
	struct visit *visits;
	int code;

	if (!ipc_find_all(s->root, &found))
		log_warn("cannot list the processes in '%s'", s->root);
	visits = calloc(found.count ? found.count : 1, sizeof(*visits));
	if (!visits) {
		log_error("cannot check: out of memory");
		ipc_found_done(&found);
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < found.count; i++)
		examine(s, &found.targets[i], &visits[i]);
	code = doctor_has(machine, DOCTOR_FAILED) ? EXIT_FAILED : EXIT_DONE;
	code = print(args, machine, visits, found.count, code);
	for (size_t i = 0; i < found.count; i++)
		free(visits[i].name);
	free(visits);
	ipc_found_done(&found);
	return code;
}

static int run_doctor(const struct command *cmd, int argc, char **argv)
{
	struct doctor_args args = { .timeout_ns = 2000000000 };
	struct doctor_report machine = { 0 };
	struct opt_operands words;
	int code = opt_parse(cmd, argc, argv, &args, &words);

	if (code < 0 && words.count)
		code = opt_usage_error(cmd, "'%s' is too much: give the process with -p",
				       words.v[0]);
	if (code < 0) {
		const struct doctor_settings s = {
			.root = PROC_ROOT,
			.ask_ms = args.timeout_ns / 1000000,
			.session = args.pid != 0,
			.perf = doctor_perf_event,
		};

		doctor_check_machine(&s, &machine);
		code = args.pid ? examine_one(&args, &s, &machine)
				: examine_all(&args, &s, &machine);
	}
	opt_done(cmd, &args, &words);
	return code;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.operands = "",
	.summary = "why a process cannot be traced, and what to do",
	.notes = doctor_notes,
	.options = doctor_options,
	.run = run_doctor,
};
