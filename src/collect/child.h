/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_CHILD_H
#define SRC_COLLECT_CHILD_H

/*
 * The command behind "--", started so that every .NET runtime in it connects to a private port and
 * waits there before it runs any code.
 *
 * The port is a socket in a directory of our own that nobody else can enter.  The variable that
 * names it is inherited, so grandchildren come to the port as well, unless it is taken from their
 * parents first.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "src/ipc/port_address.h"

/* Names the port to runtimes. */
#define CHILD_PORT_VARIABLE "DOTNET_DiagnosticPorts"

struct child;

struct child_config {
	const char *const *argv; /* ends at NULL */
	bool show_io; /* else it reads and writes nothing */
	bool output_to_stderr; /* standard output has another use */
};

/* Makes the directory and the address of the port, which has to listen before child_start(). */
bool child_make_port(struct port_address *ret, char **ret_directory);
/* Removes the directory; frees both. */
void child_remove_port(struct port_address *port, char *directory);

/* Once, from the loop. */
typedef void (*child_ended)(void *ctx, int exit_code, int signal);

/* NULL: *reterr is a negative errno. */
struct child *child_start(uv_loop_t *loop, const struct child_config *config,
			  const struct port_address *port, child_ended ended, void *ctx,
			  int *reterr);
int32_t child_pid(const struct child *c);
/* Asks it to end, and sees to it that it does. */
void child_end(struct child *c);
/* After ended, or without one that is still to come: closes; the memory goes from the loop. */
void child_close(struct child *c);

#endif
