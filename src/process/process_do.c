/* SPDX-License-Identifier: MIT */

/* process resume, process perfmap: orders to a runtime. */

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/process/process_action.h"

/* The variable of the process as it was started, DOTNET_NAME or COMPlus_NAME; the caller frees. */
static char *started_with(const struct ipc_target *t, const char *name)
{
	static const char *const prefixes[] = { "DOTNET_", "COMPlus_", "" };
	size_t len = 0;
	char *env = t ? proc_read_file(PROC_ROOT, t->pid, "environ", 4 << 20, &len) : NULL;
	char full[64], *value = NULL;

	for (size_t i = 0; env && !value && i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		const char *found;

		snprintf(full, sizeof(full), "%s%s", prefixes[i], name);
		found = proc_environ_find(env, len, full);
		if (found && *found)
			value = strdup(found);
	}
	free(env);
	return value;
}

/* --- resume --- */

/* Each suspending port must be told by its own listener. */
static void say_other_ports(const struct ipc_target *t)
{
	char *ports = started_with(t, "DiagnosticPorts");

	if (ports && !strstr(ports, "nosuspend"))
		log_info("it may also wait for the tools behind its diagnostic ports: %s", ports);
	free(ports);
}

int process_action_resume(struct process_job *job)
{
	uint8_t request[IPC_HEADER_BYTES];
	size_t n = ipc_put_plain(request, sizeof(request), IPC_SET_PROCESS, IPC_RESUME_RUNTIME);
	struct ipc_answer a;
	char target[300];
	struct json j;
	struct out *o;
	int code = -1;

	ipc_call(job->caller, request, n, NULL, &a);
	if (a.why != IPC_CALL_ANSWERED || !a.reply.ok) {
		code = process_job_fail(job, "resume", &a);
		if (ipc_answer_unknown(&a))
			log_advice("runtimes can be started suspended since .NET 5: this one is "
				   "older and runs");
	}
	ipc_answer_done(&a);
	if (code >= 0)
		return code;
	process_job_target(job, target, sizeof(target));
	log_info("%s was told to go on", target);
	say_other_ports(job->target);
	if (!job->json)
		return EXIT_DONE;
	o = out_open(NULL, false);
	if (!o)
		return EXIT_FAILED;
	process_json_begin(job, &j, o);
	json_bool(&j, "resumed", true);
	json_end(&j);
	return out_close(o, EXIT_DONE);
}

/* --- perfmap --- */

/* The map as reachable from here, *ret_own its name inside the process; NULL: it is not there. */
static char *find_map(const struct ipc_target *t, char **ret_own)
{
	char *dir = started_with(t, "PerfMapJitDumpPath"), *outside = NULL;
	struct stat st;

	*ret_own = NULL;
	if (!dir)
		dir = started_with(t, "TMPDIR");
	if (asprintf(ret_own, "%s/perf-%" PRId32 ".map", dir ? dir : "/tmp", t->ns_pid) < 0)
		*ret_own = NULL;
	if (*ret_own && t->other_mount_ns) {
		if (asprintf(&outside, PROC_ROOT "/%" PRId32 "/root%s", t->pid, *ret_own) < 0)
			outside = NULL;
	} else if (*ret_own) {
		outside = strdup(*ret_own);
	}
	if (outside && stat(outside, &st) != 0) {
		free(outside);
		outside = NULL;
	}
	free(dir);
	return outside;
}

static void say_map(const struct process_job *job, const char *own, const char *outside)
{
	char target[300];

	process_job_target(job, target, sizeof(target));
	if (outside && strcmp(own, outside) == 0)
		log_info("%s writes %s", target, own);
	else if (outside)
		log_info("%s writes %s; seen from here: %s", target, own, outside);
	else
		log_info("%s was told to write its map", target);
}

static int report_map(const struct process_job *job, bool on, int kind)
{
	char *own = NULL, *outside = NULL;
	struct out *o;
	struct json j;

	if (on && job->target && kind != IPC_PERF_MAP_JITDUMP)
		outside = find_map(job->target, &own);
	if (on)
		say_map(job, own, outside);
	else
		log_info("the map is no longer written; the file stays");
	o = job->json ? out_open(NULL, false) : NULL;
	if (o) {
		process_json_begin(job, &j, o);
		json_begin_object(&j, "perf_map");
		json_bool(&j, "enabled", on);
		json_text(&j, "kind", on ? process_map_kinds[kind - 1] : NULL);
		json_text(&j, "file", outside ? own : NULL);
		json_end(&j);
		json_end(&j);
	}
	free(own);
	free(outside);
	if (!job->json)
		return EXIT_DONE;
	return o ? out_close(o, EXIT_DONE) : EXIT_FAILED;
}

int process_action_perfmap(struct process_job *job)
{
	bool on = strcmp(job->word, "on") == 0;
	int kind = job->args->map >= 0 ? job->args->map + 1 : IPC_PERF_MAP_PERFMAP;
	uint8_t request[IPC_HEADER_BYTES + 4];
	struct ipc_answer a;
	int code = -1;
	size_t n;

	if (on)
		n = ipc_put_perf_map(request, sizeof(request), (enum ipc_perf_map)kind);
	else
		n = ipc_put_plain(request, sizeof(request), IPC_SET_PROCESS, IPC_DISABLE_PERF_MAP);
	ipc_call(job->caller, request, n, NULL, &a);
	if (a.why != IPC_CALL_ANSWERED || !a.reply.ok) {
		code = process_job_fail(job, "change the perf map of", &a);
		if (ipc_answer_unknown(&a))
			log_advice(
				"runtimes can do it since .NET 8; before, DOTNET_PerfMapEnabled=1 "
				"at their start does");
		else if (a.why == IPC_CALL_ANSWERED && a.reply.hresult == IPC_H_NOT_SUPPORTED)
			log_advice("NativeAOT needs no map: its methods are in the symbol table of "
				   "the program");
	}
	ipc_answer_done(&a);
	return code < 0 ? report_map(job, on, kind) : code;
}
