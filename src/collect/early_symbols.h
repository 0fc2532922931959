/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_EARLY_SYMBOLS_H
#define SRC_COLLECT_EARLY_SYMBOLS_H

/*
 * The names of code that was loaded before we came: a second session, opened and stopped at once,
 * makes the runtime send its rundown now and not only at the end.  The other session sees nothing
 * of it.  It costs the target one walk over its methods, the same as at the end.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "nettrace/nettrace.h"
#include "src/ipc/session.h"

struct early_symbols;

struct early_symbols_result {
	bool complete; /* the rundown was whole */
	uint64_t bytes, events, took_ns;
	struct session_end end; /* why not, unless complete */
};

/* From the loop. */
struct early_symbols_events {
	/* Of the rundown, in the order of the stream.  An error ends it. */
	enum nt_status (*event)(void *ctx, const struct nt_event *ev);
	void (*done)(void *ctx, const struct early_symbols_result *result); /* last and once */
};

struct early_symbols_config {
	const char *const *sockets;
	size_t socket_count;
	const struct ipc_source *source; /* instead of sockets; NULL: none */
	uint64_t timeout_ms, stop_timeout_ms;
};

/* The config is copied.  NULL: out of memory. */
struct early_symbols *early_symbols_start(uv_loop_t *loop,
					  const struct early_symbols_config *config,
					  const struct early_symbols_events *events, void *ctx);
/* No more callbacks.  Before done: the runtime ends the session at its next write. */
void early_symbols_close(struct early_symbols *e);

#endif
