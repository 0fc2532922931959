/* SPDX-License-Identifier: MIT */
#ifndef SRC_STORE_OUT_PROMETHEUS_H
#define SRC_STORE_OUT_PROMETHEUS_H

/*
 * The newest sample of each process in the text format of Prometheus, version 0.0.4, for the
 * textfile collector of its node exporter.  The file is replaced as a whole.
 *
 * Labels are bounded: a process is its name and pid, a method is one of the hottest few of its
 * process, a finding one of docs/findings.md.  What was not recorded has no line.
 */

#include <stdbool.h>
#include <stddef.h>

#include "src/store/store.h"

/* False: it could not be written, said. */
bool prometheus_write(const char *path, const struct store_sample *const *samples, size_t count);

#endif
