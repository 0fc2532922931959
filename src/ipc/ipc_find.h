/* SPDX-License-Identifier: MIT */
#ifndef SRC_IPC_IPC_FIND_H
#define SRC_IPC_IPC_FIND_H

/*
 * Finds the diagnostic sockets of running processes.
 *
 * A runtime binds "dotnet-diagnostic-PID-KEY-socket" in its own TMPDIR, else in /tmp, where PID is
 * its number in its own pid namespace and KEY its start time as in /proc/PID/stat.  So each process
 * is looked at in turn: its TMPDIR is read from its environment, its directory reached through
 * /proc/PID/root when it sees other files than we do.  Files of dead processes stay behind; the
 * key tells them apart, and where it cannot, the newest come first and the caller tries them in
 * turn.  Nothing here connects to anything.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include "src/proc/proc.h"

/* Why a process has no socket for us. */
enum ipc_why {
	IPC_WHY_FOUND, /* it has: sockets[] is not empty */
	IPC_WHY_GONE, /* no such process */
	IPC_WHY_KERNEL, /* a kernel thread */
	IPC_WHY_ENDED, /* a zombie */
	IPC_WHY_NO_SOCKET, /* no .NET, still starting, or diagnostics disabled */
	IPC_WHY_NO_ACCESS, /* its directory cannot be read by us */
	IPC_WHY_TOO_LONG, /* its TMPDIR is so long that the runtime could not bind a socket */
	IPC_WHY_NO_MEMORY,
};

struct ipc_socket {
	char *path; /* as reachable from here; may be longer than a socket address can hold */
	uint64_t key;
	int64_t mtime_ns;
};

struct ipc_target {
	int32_t pid; /* as we see it */
	int32_t ns_pid; /* as it sees itself */
	bool uid_known;
	uid_t uid;
	struct proc_stat stat;
	bool other_mount_ns, other_pid_ns;
	bool foreign; /* only its socket can be seen: pid is as it sees itself, stat means nothing
		       */
	bool dotnet; /* has a socket, or looks like .NET without one */
	char *dir; /* where its sockets were looked for; NULL: not found out */
	size_t own_dir_bytes; /* length of the directory's name as the process sees it */
	struct ipc_socket *sockets; /* newest first */
	size_t socket_count;
	enum ipc_why why;
};

struct ipc_found {
	struct ipc_target *targets; /* by pid */
	size_t count;
	size_t looked_at; /* processes, kernel threads aside */
	size_t skipped; /* of these: entries that vanished or that we may not read */
};

/* root: "/proc".  ret is filled whatever comes out; free it with ipc_target_done(). */
enum ipc_why ipc_find_process(const char *root, int32_t pid, struct ipc_target *ret);
void ipc_target_done(struct ipc_target *t);

/* All processes that have a socket or look like .NET.  False: no /proc, or out of memory. */
bool ipc_find_all(const char *root, struct ipc_found *ret);
/*
 * Adds the sockets in /tmp and in our own TMPDIR that belong to none of these: of processes that
 * cannot be seen in /proc because they live in another pid namespace and share the directory with
 * us, or of dead ones; only asking tells.
 */
bool ipc_find_foreign(struct ipc_found *f);
/* The same for one number only; f is empty before. */
bool ipc_find_foreign_pid(int32_t pid, struct ipc_found *f);
void ipc_found_done(struct ipc_found *f);

/* Whether a file's name is that of a runtime's socket (not dsrouter's). */
bool ipc_socket_name(const char *name, uint64_t *ret_pid, uint64_t *ret_key);

/*
 * The address of a socket file.  One that does not fit is reached through a descriptor of its
 * directory, which stays open in *ret_fd until the caller closes it (-1: none).
 * 0, or a negative errno.
 */
int ipc_socket_address(const char *path, struct sockaddr_un *ret, int *ret_fd);

#endif
