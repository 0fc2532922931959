/* SPDX-License-Identifier: MIT */
#ifndef SRC_STORE_HISTORY_H
#define SRC_STORE_HISTORY_H

/*
 * What history's actions share; cmd_history.c has the command line, history_NAME.c the actions.
 * Each prints to job->out and returns an exit code.
 */

#include "src/base/command.h"
#include "src/base/output.h"
#include "src/store/store.h"

enum history_format { HISTORY_TEXT, HISTORY_JSON, HISTORY_CSV, HISTORY_NDJSON };

struct history_job {
	const struct command *cmd;
	struct store *store;
	struct out *out;
	enum history_format format;
	struct store_filter filter;
	const char *word; /* what stands behind the action; NULL: nothing */
	int64_t now_ms;
	int64_t split_ms; /* regressions: begin of the later period */
	uint64_t span_ms; /* regressions: length of each period */
	uint64_t top; /* rows */
};

int history_list(struct history_job *job);
int history_show(struct history_job *job);
int history_trend(struct history_job *job);
int history_top(struct history_job *job);
int history_regressions(struct history_job *job);
int history_export(struct history_job *job);

#endif
