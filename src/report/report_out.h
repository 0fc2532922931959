/* SPDX-License-Identifier: MIT */
#ifndef SRC_REPORT_REPORT_OUT_H
#define SRC_REPORT_REPORT_OUT_H

/* Writers of the report: they walk the one tree of analyzers/report.h and add nothing to it. */

#include <stdbool.h>
#include <stddef.h>

#include "analyzers/report.h"
#include "src/base/output.h"

/* The sections of the text report; JSON has what was analysed. */
struct report_choice {
	const char *const *sections;
	size_t count; /* 0: all */
	size_t top; /* rows of each table; 0: all */
	bool in_order; /* the sections in the order they are named in, without empty ones */
	bool no_merge; /* stacks one after the other */
	bool all_stacks; /* those of the runtime's own threads, too */
};

bool report_chosen(const struct report_choice *choice, const char *section);

void report_json(struct out *o, const struct an_value *root);
/* The same with one member of root only. */
void report_json_member(struct out *o, const struct an_value *root, const char *name);
void report_text(struct out *o, const struct an_value *root, const struct report_choice *choice);
/* The name of the kind of event that counts as key ("Provider/ID/vVERSION"); "" unknown. */
typedef const char *report_name_of(void *ctx, const char *key);
/* What is in the trace, by kind and by thread: events --count. */
void report_text_counts(struct out *o, const struct an_value *root, report_name_of *name_of,
			void *ctx);

#endif
