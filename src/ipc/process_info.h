/* SPDX-License-Identifier: MIT */
#ifndef SRC_IPC_PROCESS_INFO_H
#define SRC_IPC_PROCESS_INFO_H

/*
 * Asks a runtime who it is: ProcessInfo 3, then 2, then 1, whichever it knows.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "src/ipc/ipc_conn.h"

/* As UTF-8, to be freed; NULL: there is none, or no memory. */
char *ipc_text_copy(const struct ipc_text *t);

struct process_info {
	bool answered; /* even if only with "unknown command", as .NET Core 3 does */
	unsigned version; /* of ProcessInfo that was answered; 0: none is known */
	uint64_t pid; /* as the process sees itself; 0 not told */
	/* NULL: not told. */
	char *entry_assembly, *runtime_version, *arch, *os, *command_line;
	struct ipc_conn_end end; /* why there was no answer */
};

void process_info_done(struct process_info *i);

struct process_question;

/*
 * Starts asking the socket; done(ctx) is called from the loop when *ret is complete, even if
 * memory ran out on the way (then with nothing told).  False: out of memory, done is not called.
 */
bool process_info_ask(uv_loop_t *loop, const char *socket, uint64_t timeout_ms,
		      struct process_info *ret, void (*done)(void *ctx), void *ctx);
/* The same of a runtime that is not reached through a path. */
bool process_info_ask_from(uv_loop_t *loop, const struct ipc_source *source, uint64_t timeout_ms,
			   struct process_info *ret, void (*done)(void *ctx), void *ctx);

#endif
