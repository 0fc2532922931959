/* SPDX-License-Identifier: MIT */
#ifndef SRC_PROCESS_DOCTOR_H
#define SRC_PROCESS_DOCTOR_H

/*
 * Why a process cannot be traced: one check for each cause, each with a sentence of advice.
 *
 * Nothing here changes the target.  Its port is only asked with whole requests, and the session
 * that tells whether one can be opened is stopped at once.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/ipc/ipc_find.h"

enum doctor_level {
	DOCTOR_OK,
	DOCTOR_INFO, /* worth knowing, no obstacle */
	DOCTOR_WARNING, /* something will not work */
	DOCTOR_FAILED, /* the process cannot be traced because of this */
	DOCTOR_UNKNOWN, /* could not be found out */
};

const char *doctor_level_name(enum doctor_level level);

struct doctor_check {
	const char *id;
	enum doctor_level level;
	char message[512];
	char advice[256]; /* "" none */
};

enum { DOCTOR_MAX_CHECKS = 24 };

struct doctor_report {
	struct doctor_check checks[DOCTOR_MAX_CHECKS];
	size_t count;
	bool interrupted; /* by a signal: checks are missing */
};

void doctor_add(struct doctor_report *r, const char *id, enum doctor_level level, const char *fmt,
		...) __attribute__((format(printf, 4, 5)));
/* To the last check. */
void doctor_advise(struct doctor_report *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Whether any check has that level. */
bool doctor_has(const struct doctor_report *r, enum doctor_level level);

struct doctor_settings {
	const char *root; /* "/proc" */
	uint64_t ask_ms; /* how long each answer may take */
	bool session; /* also open a session and end it again */
	/* NULL, or what perf_event_open() says about a process (0: us): 0 or an errno. */
	int (*perf)(int32_t pid);
};

/* doctor_machine.c: what is the same for all processes. */
void doctor_check_machine(const struct doctor_settings *s, struct doctor_report *r);
/* Sockets in dir without a process of ours: pid 0 all, else only those of that number. */
void doctor_check_leftovers(const struct doctor_settings *s, const char *dir, int32_t pid,
			    struct doctor_report *r);
int doctor_perf_event(int32_t pid);
/* Our own effective capabilities; false: cannot be read.  Whether they allow any socket and file.
 */
bool doctor_capabilities(const char *root, uint64_t *ret);
bool doctor_overrides(const char *root);

/* doctor_checks.c: one process. */
void doctor_check_process(const struct doctor_settings *s, const struct ipc_target *t,
			  struct doctor_report *r);

/*
 * doctor_session.c: asks the runtime itself.  t has a socket.  waits: it looks suspended at its
 * start; told: it was started with a variable that says so.
 */
void doctor_check_runtime(const struct doctor_settings *s, const struct ipc_target *t, bool waits,
			  bool told, struct doctor_report *r);

#endif
