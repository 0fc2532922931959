/* SPDX-License-Identifier: MIT */
#ifndef SRC_PROCESS_PROCESS_ACTION_H
#define SRC_PROCESS_PROCESS_ACTION_H

/*
 * What the command "process" can do with one process.  cmd_process.c reads the command line, finds
 * the process and sets up the caller; each action asks, prints, and returns an exit code.
 */

#include "src/base/json.h"
#include "src/base/options.h"
#include "src/ipc/ipc_call.h"
#include "src/ipc/ipc_find.h"

enum { PROCESS_DUMP_TYPES = 4 };
extern const char *const process_dump_types[]; /* "mini" …; ends at NULL; index + 1 is the type */
extern const char *const process_map_kinds[]; /* "all" …; likewise */

struct process_args {
	uint64_t pid;
	const char *name, *port;
	const char *output;
	int type, map; /* indexes into the above; negative: not given */
	bool force, diag, crash_report;
	struct opt_list set;
	uint64_t timeout_ns; /* 0: not given */
	int format;
	bool json;
};

struct process_job {
	const struct command *cmd;
	const struct process_args *args;
	const char *word; /* behind the action: "on" */
	struct ipc_caller *caller;
	/* NULL: only the path of a socket is known, so nothing of /proc. */
	const struct ipc_target *target;
	const char *name; /* of the process, or the socket's path */
	bool json;
};

int process_action_info(struct process_job *job);
int process_action_env(struct process_job *job);
int process_action_resume(struct process_job *job);
int process_action_perfmap(struct process_job *job);
int process_action_dump(struct process_job *job);

/* --- shared by them --- */

/* "process 4711 (Shop)" or "the process behind /run/x.sock". */
void process_job_target(const struct process_job *job, char *buf, size_t size);
/*
 * Says that the answer is not the wished one, and returns the exit code: "cannot <what> of process
 * 4711 (Shop): why".
 */
int process_job_fail(const struct process_job *job, const char *what, const struct ipc_answer *a);
/* Opens {"schema","pid"…; json_end() twice is not needed: once, and out_close() by the caller. */
void process_json_begin(const struct process_job *job, struct json *j, struct out *o);

struct process_told {
	struct ipc_answer answer; /* what info's texts point into */
	struct ipc_process_info info;
	unsigned version; /* of ProcessInfo that was answered; 0: the runtime knows none */
};

/* ProcessInfo 3, 2, 1.  False: no answer, or a damaged one; say it with process_job_fail(). */
bool process_job_ask_info(struct process_job *job, struct process_told *ret);

#endif
