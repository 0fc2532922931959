/* SPDX-License-Identifier: MIT */
#ifndef SRC_STORE_SAMPLE_ROW_H
#define SRC_STORE_SAMPLE_ROW_H

/* What of a report goes into the store: every number that has one place, methods, findings. */

#include <stdbool.h>

#include "analyzers/report.h"
#include "src/store/store.h"

struct sample_row {
	struct store_sample sample; /* points into the rest */
	struct store_metric *metrics;
	struct store_method *methods;
	struct store_finding *findings;
	char **texts;
	size_t text_count, text_room;
	bool failed;
};

/*
 * Fills metrics, methods and findings, and events, lost, runtime and command line of the sample;
 * the others are the caller's.  The report may go afterwards.  sample_row_done() in any case.
 * False: out of memory.
 */
bool sample_row_make(const struct an_value *root, struct sample_row *ret);
/* A copy of a text that lives as long as the row; NULL for NULL, and when out of memory. */
const char *sample_row_keep(struct sample_row *r, const char *text);
void sample_row_done(struct sample_row *r);

#endif
