/* SPDX-License-Identifier: MIT */

/*
 * process dump: a core dump.  The process writes the file itself (through the createdump beside
 * its runtime), with its own rights and into its own file system, and stands still meanwhile.
 */

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/base/trace_name.h"
#include "src/ipc/process_list.h"
#include "src/process/process_action.h"

#define DEFAULT_NAME   "%n_%p_%t.dmp"
#define DEFAULT_FOLDER "/tmp/" /* of the process, where we do not share its files */

struct dump {
	struct process_job *job;
	char *path; /* as the process sees it */
	char *outside; /* as reachable from here; NULL: not at all */
	enum ipc_dump_type type;
	unsigned version, gave_up;
	uint64_t took_ms;
	bool have_size;
	uint64_t bytes;
};

static void dump_done(struct dump *d)
{
	free(d->path);
	free(d->outside);
}

/* --- where to --- */

static bool same_files(const struct process_job *job)
{
	return job->target && !job->target->other_mount_ns;
}

static char *absolute(const char *path)
{
	char cwd[PATH_MAX], *text;

	while (path[0] == '.' && path[1] == '/')
		path += 2;
	if (!getcwd(cwd, sizeof(cwd)))
		return NULL;
	return asprintf(&text, "%s/%s", cwd, path) < 0 ? NULL : text;
}

static int no_memory(void)
{
	log_error("cannot dump: out of memory");
	return EXIT_FAILED;
}

static int choose_path(struct dump *d, const struct process_told *told)
{
	const struct process_job *job = d->job;
	char *entry = NULL;
	struct trace_name values = {
		.pid = job->target ? job->target->pid : (int32_t)told->info.pid,
		.process = job->target ? job->name : NULL,
		.time = time(NULL),
	};
	const char *pattern = job->args->output;
	char text[200];

	if (!pattern)
		pattern = same_files(job) ? DEFAULT_NAME : DEFAULT_FOLDER DEFAULT_NAME;
	if (!values.process && ipc_text_utf8(&told->info.entry_assembly, text, sizeof(text)) > 0)
		values.process = text;
	d->path = trace_name_expand(pattern, &values);
	if (d->path && d->path[0] != '/') {
		if (!same_files(job))
			return opt_usage_error(job->cmd,
					       "--output '%s': the process sees other files than "
					       "this shell: give a path from its root",
					       pattern);
		entry = d->path;
		d->path = absolute(entry);
		free(entry);
	}
	if (!d->path)
		return no_memory();
	if (same_files(job))
		d->outside = strdup(d->path);
	else if (job->target && asprintf(&d->outside, PROC_ROOT "/%" PRId32 "/root%s",
					 job->target->pid, d->path) < 0)
		d->outside = NULL;
	return job->target && !d->outside ? no_memory() : -1;
}

/* The dumper would write over it, and leave its end if it is longer. */
static int clear_path(const struct dump *d)
{
	struct stat st;

	if (!d->outside || lstat(d->outside, &st) != 0)
		return -1;
	if (!d->job->args->force) {
		log_error("cannot write '%s': it exists", d->path);
		log_advice("give another name, or --force to replace it");
		return EXIT_FAILED;
	}
	if (!S_ISREG(st.st_mode) || unlink(d->outside) != 0) {
		log_error("cannot replace '%s': %s", d->path,
			  S_ISREG(st.st_mode) ? strerror(errno) : "it is no file");
		return EXIT_FAILED;
	}
	return -1;
}

/* The dumper has a template language of its own, in which a percent sign is doubled. */
static char *for_dumper(const char *path)
{
	char *text = malloc(strlen(path) * 2 + 1), *p = text;

	for (; text && *path; path++) {
		*p++ = *path;
		if (*path == '%')
			*p++ = '%';
	}
	if (text)
		*p = '\0';
	return text;
}

/* --- asking --- */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int ask(struct dump *d, struct ipc_answer *ret)
{
	static uint8_t request[IPC_MAX_MESSAGE];
	const struct process_args *args = d->job->args;
	char *path = for_dumper(d->path);
	const struct ipc_dump what = {
		.path = path,
		.type = d->type,
		.log = args->diag,
		.crash_report = args->crash_report,
	};
	uint64_t begin = now_ms();
	size_t n;

	*ret = (struct ipc_answer){ .why = IPC_CALL_NO_MEMORY };
	if (!path)
		return no_memory();
	d->version = 3;
	for (;;) {
		n = ipc_put_dump(request, sizeof(request), &what, d->version);
		if (n == 0)
			break;
		ipc_call(d->job->caller, request, n, NULL, ret);
		if (!ipc_answer_unknown(ret) ||
		    !ipc_dump_fall_back(&what, &d->version, &d->gave_up))
			break;
		ipc_answer_done(ret);
	}
	free(path);
	d->took_ms = now_ms() - begin;
	return n ? -1 : opt_usage_error(d->job->cmd, "--output: too long, or not UTF-8");
}

/* --- saying --- */

static void say_gave_up(const struct dump *d, bool failed)
{
	if (d->gave_up & IPC_DUMP_GAVE_UP_CRASH_REPORT)
		log_warn("this runtime is older than the wish: it writes no crash report");
	if (failed && (d->gave_up & IPC_DUMP_GAVE_UP_WHY))
		log_info("runtimes before .NET 7 do not tell why a dump failed");
}

/* Lines of the dumper's log, as one. */
static void say_why(const struct ipc_text *text)
{
	char why[1024];
	size_t n = ipc_text_utf8(text, why, sizeof(why));

	while (n > 0 && (why[n - 1] == '\n' || why[n - 1] == ' '))
		why[--n] = '\0';
	for (size_t i = 0; i < n; i++)
		if (why[i] == '\n')
			why[i] = ';';
	if (n > 0)
		log_info("the runtime says: %s", why);
}

static int fail(const struct dump *d, const struct ipc_answer *a)
{
	struct ipc_text text = { NULL, 0 };
	bool refused = a->why == IPC_CALL_ANSWERED;
	int code = process_job_fail(d->job, "dump", a);

	if (refused)
		ipc_error_text(&a->reply, &text);
	say_why(&text);
	if (ipc_answer_unknown(a) || (refused && a->reply.hresult == IPC_H_NOT_SUPPORTED)) {
		log_advice("NativeAOT cannot dump itself: gcore of gdb can do it from outside");
		return code;
	}
	say_gave_up(d, true);
	if (a->why == IPC_CALL_INTERRUPTED || a->why == IPC_CALL_TIMEOUT)
		log_advice("the process may still be writing '%s'", d->path);
	else if (refused)
		log_advice("the process itself must be able to write '%s' and to run the "
			   "createdump beside its runtime (NativeAOT has none)",
			   d->path);
	return code;
}

static void print_json(const struct dump *d, struct out *o)
{
	struct json j;
	char command[32];

	/* The first has no number, and "%.0u" prints none for 0. */
	snprintf(command, sizeof(command), "GenerateCoreDump%.0u", d->version > 1 ? d->version : 0);
	process_json_begin(d->job, &j, o);
	json_begin_object(&j, "dump");
	json_text(&j, "path", d->path);
	json_text(&j, "type", process_dump_types[d->type - 1]);
	if (d->have_size)
		json_uint_safe(&j, "bytes", d->bytes);
	else
		json_null(&j, "bytes");
	json_uint(&j, "duration_ms", d->took_ms);
	json_text(&j, "command", command);
	json_bool(&j, "crash_report",
		  d->job->args->crash_report && !(d->gave_up & IPC_DUMP_GAVE_UP_CRASH_REPORT));
	json_end(&j);
	json_end(&j);
}

static int report(struct dump *d)
{
	struct stat st;
	struct out *o;

	say_gave_up(d, false);
	if (d->outside && stat(d->outside, &st) == 0) {
		d->have_size = true;
		d->bytes = (uint64_t)st.st_size;
		log_info("%.1f MB in %.1f s", (double)d->bytes / 1e6, (double)d->took_ms / 1e3);
	} else if (d->outside) {
		/* "Done" over a file that is not there would be a lie. */
		log_error("the runtime says that it wrote '%s', but it is not there", d->path);
		log_advice("a runtime that is suspended at its start cannot dump itself: 'process "
			   "resume' lets it go on");
		return EXIT_FAILED;
	}
	if (!same_files(d->job))
		log_info("the file is in the process's own file system%s%s",
			 d->outside ? "; seen from here: " : "", d->outside ? d->outside : "");
	o = out_open(NULL, false);
	if (!o)
		return EXIT_FAILED;
	if (d->job->json) {
		print_json(d, o);
	} else {
		out_text(o, d->path);
		out_char(o, '\n');
	}
	return out_close(o, EXIT_DONE);
}

static int dump(struct dump *d)
{
	const struct process_args *args = d->job->args;
	struct ipc_answer a;
	char target[300];
	int code = clear_path(d);

	if (code >= 0)
		return code;
	process_job_target(d->job, target, sizeof(target));
	log_info("%s writes '%s' and stands still meanwhile", target, d->path);
	if (!args->timeout_ns)
		ipc_caller_limit(d->job->caller, 0);
	code = ask(d, &a);
	if (code < 0)
		code = a.why == IPC_CALL_ANSWERED && a.reply.ok ? report(d) : fail(d, &a);
	ipc_answer_done(&a);
	return code;
}

/* A short question first: whether it answers at all, before a wait that has no limit. */
int process_action_dump(struct process_job *job)
{
	struct dump d = {
		.job = job,
		.type = job->args->type >= 0 ? (enum ipc_dump_type)(job->args->type + 1)
					     : IPC_DUMP_HEAP,
	};
	struct process_told told;
	int code;

	if (!process_job_ask_info(job, &told)) {
		code = process_job_fail(job, "dump", &told.answer);
	} else {
		code = choose_path(&d, &told);
		if (code < 0)
			code = dump(&d);
	}
	ipc_answer_done(&told.answer);
	dump_done(&d);
	return code;
}
