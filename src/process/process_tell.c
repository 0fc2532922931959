/* SPDX-License-Identifier: MIT */

/* process info, process env: what a runtime says about itself. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/base/table.h"
#include "src/base/utf8.h"
#include "src/ipc/process_info.h"
#include "src/ipc/process_list.h"
#include "src/process/process_action.h"

/* --- info --- */

/* Everything there is to say; texts are NULL when unknown. */
struct facts {
	unsigned version; /* of ProcessInfo */
	char *entry, *runtime, *build, *arch, *os, *rid, *command_line;
	char cookie[2 * IPC_COOKIE_BYTES + 5];
	uint64_t own_pid; /* as the process sees itself */
	char user[64], container[64];
	double uptime_s;
};

static void facts_done(struct facts *f)
{
	free(f->entry);
	free(f->runtime);
	free(f->build);
	free(f->arch);
	free(f->os);
	free(f->rid);
	free(f->command_line);
}

/* A GUID: its first three numbers are stored with the low byte first. */
static void format_cookie(const uint8_t *c, char *buf, size_t size)
{
	snprintf(buf, size, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 c[3], c[2], c[1], c[0], c[5], c[4], c[7], c[6], c[8], c[9], c[10], c[11], c[12],
		 c[13], c[14], c[15]);
}

static void take_told(struct facts *f, const struct process_told *told)
{
	const struct ipc_process_info *i = &told->info;

	f->version = told->version;
	if (told->version == 0)
		return;
	f->own_pid = i->pid;
	f->entry = ipc_text_copy(&i->entry_assembly);
	f->build = ipc_text_copy(&i->runtime_version); /* "10.0.12+commit", "8.0.1 @Commit: …" */
	if (f->build)
		f->runtime = strndup(f->build, strcspn(f->build, "+@ "));
	f->arch = ipc_text_copy(&i->arch);
	f->os = ipc_text_copy(&i->os);
	f->rid = ipc_text_copy(&i->rid);
	f->command_line = ipc_text_copy(&i->command_line);
	format_cookie(i->cookie, f->cookie, sizeof(f->cookie));
}

/* .NET Core 3 tells nothing, and older runtimes not all; /proc knows some of it. */
static void take_proc(struct facts *f, const struct ipc_target *t)
{
	const char *arch;

	f->uptime_s = -1;
	if (!t)
		return;
	if (!f->own_pid)
		f->own_pid = (uint64_t)t->ns_pid;
	if (!f->command_line)
		f->command_line = proc_read_command_line(PROC_ROOT, t->pid);
	if (!f->runtime)
		f->runtime = process_version_from_maps(PROC_ROOT, t->pid);
	arch = f->arch ? NULL : proc_exe_arch(PROC_ROOT, t->pid);
	if (arch)
		f->arch = strdup(arch);
	if (t->uid_known)
		proc_user_name(t->uid, f->user, sizeof(f->user));
	if (!proc_container(PROC_ROOT, t->pid, f->container, sizeof(f->container)) &&
	    t->other_pid_ns)
		proc_read_link(PROC_ROOT, t->pid, "ns/pid", f->container, sizeof(f->container));
	f->uptime_s = proc_uptime_s(PROC_ROOT, &t->stat);
}

static void text_or_null(struct json *j, const char *name, const char *text)
{
	if (text && *text)
		json_text(j, name, text);
	else
		json_null(j, name);
}

static void info_json(const struct process_job *job, const struct facts *f, struct out *o)
{
	struct json j;

	process_json_begin(job, &j, o);
	json_begin_object(&j, "process");
	text_or_null(&j, "name", f->entry ? f->entry : job->name);
	if (f->own_pid)
		json_uint_safe(&j, "own_pid", f->own_pid);
	else
		json_null(&j, "own_pid");
	text_or_null(&j, "entry_assembly", f->entry);
	text_or_null(&j, "runtime_version", f->runtime);
	text_or_null(&j, "runtime_build", f->build);
	text_or_null(&j, "arch", f->arch);
	text_or_null(&j, "os", f->os);
	text_or_null(&j, "rid", f->rid);
	text_or_null(&j, "cookie", f->cookie);
	text_or_null(&j, "user", f->user);
	text_or_null(&j, "container", f->container);
	if (f->uptime_s >= 0)
		json_fixed(&j, "uptime_s", f->uptime_s, 2);
	else
		json_null(&j, "uptime_s");
	text_or_null(&j, "command_line", f->command_line);
	json_text(&j, "socket", job->caller->sockets[job->caller->socket]);
	json_uint(&j, "process_info_version", f->version);
	json_end(&j);
	json_end(&j);
}

static void row(struct table *t, const char *name, const char *text)
{
	if (!text || !*text)
		return;
	table_cell(t, "%s", name);
	table_cell(t, "%s", text);
}

static void info_text(const struct process_job *job, const struct facts *f, struct out *o)
{
	struct table t;
	char text[64];

	table_init(&t, "ll");
	if (job->target) {
		snprintf(text, sizeof(text), "%" PRId32, job->target->pid);
		row(&t, "pid", text);
	}
	if (f->own_pid && (!job->target || f->own_pid != (uint64_t)job->target->pid)) {
		snprintf(text, sizeof(text), "%" PRIu64, f->own_pid);
		row(&t, "pid in its namespace", text);
	}
	row(&t, "name", f->entry ? f->entry : job->name);
	row(&t, "runtime", f->build ? f->build : f->runtime);
	row(&t, "arch", f->arch);
	row(&t, "os", f->os);
	row(&t, "rid", f->rid);
	row(&t, "user", f->user);
	row(&t, "container", f->container);
	row(&t, "command line", f->command_line);
	row(&t, "runtime cookie", f->cookie);
	row(&t, "socket", job->caller->sockets[job->caller->socket]);
	table_print(&t, o, false);
}

int process_action_info(struct process_job *job)
{
	struct process_told told;
	struct facts f = { 0 };
	struct out *o;
	int code = EXIT_FAILED;

	if (!process_job_ask_info(job, &told)) {
		code = process_job_fail(job, "ask", &told.answer);
		ipc_answer_done(&told.answer);
		return code;
	}
	if (told.version == 0)
		log_info("this runtime knows no ProcessInfo (.NET Core 3): what follows is from "
			 "/proc");
	take_told(&f, &told);
	take_proc(&f, job->target);
	o = out_open(NULL, false);
	if (o) {
		if (job->json)
			info_json(job, &f, o);
		else
			info_text(job, &f, o);
		code = out_close(o, EXIT_DONE);
	}
	facts_done(&f);
	ipc_answer_done(&told.answer);
	return code;
}

/* --- env --- */

static bool environment_follows(const struct ipc_reply *reply, size_t *ret_bytes)
{
	uint32_t bytes;

	if (!reply->ok || ipc_environment_read(reply, &bytes) != IPC_OK)
		return false;
	*ret_bytes = bytes;
	return true;
}

static void print_variable(struct out *o, struct json *j, char *text)
{
	size_t len = strlen(text);
	char *equals = strchr(text, '='), *safe;

	if (j) {
		json_begin_object(j, NULL);
		json_textn(j, "name", text, equals ? (size_t)(equals - text) : len);
		json_text(j, "value", equals ? equals + 1 : NULL);
		json_end(j);
		return;
	}
	safe = malloc(len * 10 + 1); /* "\u{10ffff}" is the longest form of a byte or more */
	if (!safe) {
		o->error = ENOMEM;
		return;
	}
	utf8_escape(text, len, safe, len * 10 + 1);
	out_text(o, safe);
	out_char(o, '\n');
	free(safe);
}

/* IPC_OK: all variables were whole. */
static enum ipc_status print_variables(const struct ipc_answer *a, struct out *o, struct json *j)
{
	struct ipc_environment e;
	struct ipc_text text;
	enum ipc_status st = ipc_environment_begin(&e, a->more, a->more_bytes);

	while (st == IPC_OK && !out_failed(o)) {
		char *copy;

		st = ipc_environment_next(&e, &text);
		if (st != IPC_OK || text.bytes == 0)
			continue;
		copy = ipc_text_copy(&text);
		if (!copy) {
			o->error = ENOMEM;
			break;
		}
		print_variable(o, j, copy);
		free(copy);
	}
	return st == IPC_MORE ? IPC_OK : st;
}

static int print_environment(const struct process_job *job, const struct ipc_answer *a)
{
	struct out *o = out_open(NULL, false);
	enum ipc_status st;
	struct json j;

	if (!o)
		return EXIT_FAILED;
	if (job->json) {
		process_json_begin(job, &j, o);
		json_begin_array(&j, "variables");
	}
	st = print_variables(a, o, job->json ? &j : NULL);
	if (job->json) {
		json_end(&j);
		json_bool(&j, "complete", st == IPC_OK);
		json_end(&j);
	}
	if (st != IPC_OK)
		log_error("the environment is incomplete: %zu of %zu bytes came", a->more_bytes,
			  a->more_wanted);
	return out_close(o, st == IPC_OK ? EXIT_DONE : EXIT_PARTIAL);
}

static int show_environment(struct process_job *job)
{
	uint8_t request[IPC_HEADER_BYTES];
	size_t n =
		ipc_put_plain(request, sizeof(request), IPC_SET_PROCESS, IPC_PROCESS_ENVIRONMENT);
	struct ipc_answer a;
	int code;

	ipc_call(job->caller, request, n, environment_follows, &a);
	if ((a.why == IPC_CALL_ANSWERED && a.reply.ok && a.more_wanted > 0) ||
	    (a.why == IPC_CALL_CUT && a.more_bytes >= 4)) {
		code = print_environment(job, &a);
	} else {
		code = process_job_fail(job, "read the environment of", &a);
		if (ipc_answer_unknown(&a))
			log_advice("runtimes tell it since .NET 5; /proc/PID/environ has the one "
				   "it was started with");
	}
	ipc_answer_done(&a);
	return code;
}

static int set_one(struct process_job *job, const char *name, const char *value)
{
	static uint8_t request[IPC_MAX_MESSAGE];
	size_t n = ipc_put_set_environment(request, sizeof(request), name, value);
	struct ipc_answer a;
	char what[300];
	int code = -1;

	if (n == 0)
		return opt_usage_error(job->cmd, "--set '%s': not UTF-8, or too long for a request",
				       name);
	ipc_call(job->caller, request, n, NULL, &a);
	if (a.why != IPC_CALL_ANSWERED || !a.reply.ok) {
		snprintf(what, sizeof(what), "set '%s' in", name);
		code = process_job_fail(job, what, &a);
		if (ipc_answer_unknown(&a))
			log_advice("runtimes can do it since .NET 6");
	}
	ipc_answer_done(&a);
	return code;
}

/* Values are not repeated: they may be secret. */
static int print_set(const struct process_job *job, size_t done, int code)
{
	const struct opt_list *set = &job->args->set;
	struct out *o = out_open(NULL, false);
	struct json j;

	if (!o)
		return EXIT_FAILED;
	process_json_begin(job, &j, o);
	json_begin_array(&j, "set");
	for (size_t i = 0; i < done; i++)
		json_textn(&j, NULL, set->items[i], strcspn(set->items[i], "="));
	json_end(&j);
	json_end(&j);
	return out_close(o, code);
}

static int change_environment(struct process_job *job)
{
	const struct opt_list *set = &job->args->set;
	size_t done = 0;
	int code = -1;

	while (code < 0 && done < set->count) {
		const char *equals = strchr(set->items[done], '=');
		char *name = strndup(set->items[done], (size_t)(equals - set->items[done]));

		code = name ? set_one(job, name, equals + 1) : EXIT_FAILED;
		free(name);
		done += code < 0;
	}
	if (code >= 0 && done == 0)
		return code;
	log_info("%zu set: seen by code that reads them from now on", done);
	if (code < 0)
		code = EXIT_DONE;
	else
		code = EXIT_PARTIAL;
	return job->json ? print_set(job, done, code) : code;
}

int process_action_env(struct process_job *job)
{
	if (job->args->set.count)
		return change_environment(job);
	return show_environment(job);
}
