/* SPDX-License-Identifier: MIT */
#ifndef SRC_PROC_PROC_H
#define SRC_PROC_PROC_H

/*
 * What /proc says about one process.
 *
 * Processes vanish and entries are closed to us at any moment, so every function answers
 * "unknown" rather than fail: false, NULL or a negative number.  The root is a parameter because
 * tests bring their own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_ROOT "/proc"

struct proc_stat {
	char comm[64];
	char state; /* 'Z': ended, not yet collected by its parent */
	int32_t parent;
	uint64_t threads;
	uint64_t start_ticks; /* since boot, 1/sysconf(_SC_CLK_TCK) s */
	uint64_t cpu_ticks; /* used so far: user and system */
	bool kernel_thread;
	bool have_exit_code;
	int exit_code; /* as from wait(2); only of a process in state Z */
};

/* A thread has the same entry in the root PROC_ROOT/PID/task. */
bool proc_read_stat(const char *root, int32_t pid, struct proc_stat *ret);

/*
 * The last number of NSpid in the text of a status file: the pid, or the thread's number, as the
 * process itself sees it; dflt if there is none.
 */
int32_t proc_find_ns_pid(const char *status, int32_t dflt);
/* The same of a process, or of a thread by its number; pid if there is none. */
int32_t proc_read_ns_pid(const char *root, int32_t pid);
/* The owner of the entry: the effective user. */
bool proc_read_uid(const char *root, int32_t pid, uid_t *ret);

/*
 * A whole small file, NUL-terminated, at most max bytes; the caller frees it.  *ret_len may be
 * NULL.  NULL: unreadable; errno says why.
 */
char *proc_read_file(const char *root, int32_t pid, const char *name, size_t max, size_t *ret_len);

/*
 * A runtime that waits to be resumed has its server's thread, and not yet the one that every
 * runtime starts next.  Both have names since .NET 6.  Whoever opens a session in it and closes it
 * again harms it: .NET 9 and 10 crash when they are resumed in another session.
 */
bool proc_waits_at_start(const char *root, int32_t pid);
/* One that is just starting looks the same for a moment: looks for up to two seconds. */
bool proc_stays_at_start(const char *root, int32_t pid);
/* The value of a variable in what /proc/PID/environ holds, or NULL.  Points into env. */
const char *proc_environ_find(const char *env, size_t len, const char *name);
/* Arguments joined by spaces, control characters made spaces too; the caller frees it.  NULL:
 * unreadable or a kernel thread. */
char *proc_read_command_line(const char *root, int32_t pid);
/* The target of the link /proc/PID/NAME (exe, ns/pid, …); empty when unreadable. */
bool proc_read_link(const char *root, int32_t pid, const char *name, char *buf, size_t size);

/* The architecture of the running file, as the runtime names it ("x64"); NULL: unknown. */
const char *proc_exe_arch(const char *root, int32_t pid);

/* Whether the namespace is another than ours; false when that cannot be seen. */
bool proc_other_namespace(const char *root, int32_t pid, const char *ns);

/* The short id of a container from /proc/PID/cgroup; false if it is in none that can be told. */
bool proc_container(const char *root, int32_t pid, char *buf, size_t size);

/* Seconds since the process started; -1 unknown. */
double proc_uptime_s(const char *root, const struct proc_stat *st);

/*
 * The name of a user, from /etc/passwd read by ourselves: name services do not work in a static
 * binary.  The number itself when there is no such line.
 */
void proc_user_name(uid_t uid, char *buf, size_t size);

#endif
