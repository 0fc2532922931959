/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_PORT_SERVER_H
#define SRC_COLLECT_PORT_SERVER_H

/*
 * A port that runtimes connect to, as DOTNET_DiagnosticPorts tells them.
 *
 * A runtime connects and advertises itself with 34 bytes: "ADVR_V1" and a NUL, a cookie of 16 bytes
 * that is its own for life, its pid (u64), two zero bytes.  Then it waits for one request; once it
 * has read that, it connects and advertises again.  So each runtime has at most one idle
 * connection, the newest, and a request takes it.  Connections that advertise nothing, or nothing
 * proper, in a short time are dropped.  Idle ones are watched, for their runtime may end.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "src/ipc/ipc_wire.h"
#include "src/ipc/port_address.h"

struct port_server;

/* A runtime that has advertised itself; lives as long as the server. */
struct port_peer {
	struct port_server *server;
	uint8_t cookie[IPC_COOKIE_BYTES];
	uint64_t told_pid; /* as it sees itself */
	int32_t pid; /* as we see it; 0: not known (TCP, another pid namespace) */
	struct ipc_source source; /* for its sessions and requests */
	bool gone; /* an idle connection ended, and no new one has come */
	/* The server's own. */
	struct port_conn *idle;
	struct port_peer *next;
};

struct port_server_events {
	/* A runtime that was not seen before.  From the loop. */
	void (*peer)(void *ctx, struct port_peer *peer);
	/* An idle connection of it ended; it comes back unless it has ended.  May be NULL. */
	void (*gone)(void *ctx, struct port_peer *peer);
};

/* Starts listening; address must outlive it.  NULL: *reterr is a negative errno. */
struct port_server *port_server_open(uv_loop_t *loop, const struct port_address *address,
				     const struct port_server_events *events, void *ctx,
				     int *reterr);

/*
 * Ends all idle connections, removes the socket file, forgets the peers.  No request may be under
 * way that uses one.  closed(ctx), which may be NULL, comes from the loop.
 */
void port_server_close(struct port_server *s, void (*closed)(void *ctx), void *ctx);

/* The socket that it listens at. */
int port_server_fd(const struct port_server *s);

/* Connections that were dropped because they advertised nothing proper. */
size_t port_server_dropped(const struct port_server *s);

#endif
