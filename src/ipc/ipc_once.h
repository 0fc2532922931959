/* SPDX-License-Identifier: MIT */
#ifndef SRC_IPC_IPC_ONCE_H
#define SRC_IPC_IPC_ONCE_H

/*
 * One request and its answer, on a loop that has other things to do: ResumeRuntime beside the
 * stream that waits for it.
 */

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "src/ipc/ipc_conn.h"

struct ipc_once;

/* reply NULL: there was no answer, and end says why.  Last and once, from the loop. */
typedef void (*ipc_once_done)(void *ctx, const struct ipc_reply *reply,
			      const struct ipc_conn_end *end);

/* path, or where it is NULL the source.  NULL: out of memory; done is not called. */
struct ipc_once *ipc_once_start(uv_loop_t *loop, const char *path, const struct ipc_source *source,
				const uint8_t *request, size_t request_bytes, uint64_t timeout_ms,
				ipc_once_done done, void *ctx);

#endif
