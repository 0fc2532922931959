/* SPDX-License-Identifier: MIT */
#ifndef SRC_IPC_PORT_ADDRESS_H
#define SRC_IPC_PORT_ADDRESS_H

/*
 * What --diagnostic-port takes: ADDRESS[,listen|connect][,suspend|nosuspend], where the address is
 * the path of a socket or HOST:PORT.  Hosts are numbers or "localhost": nothing is resolved.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "src/ipc/ipc_conn.h"

struct port_address {
	char *path; /* absolute; NULL: TCP */
	char text[64]; /* of TCP, as it was given: "127.0.0.1:9000" */
	struct sockaddr_storage tcp;
	socklen_t tcp_bytes;
	bool connect; /* to a port that listens; else we listen and runtimes connect */
	bool suspend; /* what to tell runtimes that connect */
};

/* False: *reterr says why, static text.  Free it with port_address_done() whatever comes out. */
bool port_address_parse(struct port_address *ret, const char *text, const char **reterr);
void port_address_done(struct port_address *a);
/* The path, or HOST:PORT. */
const char *port_address_name(const struct port_address *a);

/* Connects to it; ctx is the address.  For struct ipc_source. */
int port_address_connect(void *ctx);

/*
 * Opens it for listening.  A socket file that nobody serves any more is replaced, anything else
 * that is there is not.  A descriptor that does not block, or a negative errno.
 */
int port_address_listen(const struct port_address *a);

#endif
