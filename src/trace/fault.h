/* SPDX-License-Identifier: MIT */
#ifndef SRC_TRACE_FAULT_H
#define SRC_TRACE_FAULT_H

/* What is wrong with an input, in words for a person, and the exit code it means. */

#include <stddef.h>

#include "nettrace/nettrace.h"
#include "src/trace/input.h"

/*
 * For input_feed()'s outcome.  Says nothing and returns EXIT_DONE when all is well; EXIT_FAILED
 * when nothing could be read (no report then); EXIT_PARTIAL when it went wrong later.
 */
int fault_report(const struct input *in, const struct nt_decoder *d);

/*
 * What bytes that are no trace are instead: "a heap snapshot (.gcdump)"; NULL: no idea.
 * *ret_advice is what to do with it, or NULL.
 */
const char *fault_recognise(const void *data, size_t len, const char **ret_advice);

#endif
