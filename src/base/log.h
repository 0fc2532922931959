/* SPDX-License-Identifier: MIT */
#ifndef SRC_BASE_LOG_H
#define SRC_BASE_LOG_H

/*
 * Everything the program says beside its data: one line each, on standard error.
 *
 *	drdotnet-trace: cannot read 'api.nettrace': it is a directory
 *	drdotnet-trace: warning: 812 events were lost
 *	  give the session a bigger buffer: --buffersize 512
 *
 * Control characters in the text are escaped: names come from files and other processes.
 */

/* "drdotnet-trace: <what>: <why>"; fmt gives both, what failed first, no full stop. */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* What to do about it: an indented line under the last one. */
void log_advice(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Progress and facts: no prefix. */
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
