/* SPDX-License-Identifier: MIT */
#ifndef SRC_REPORT_VALUES_H
#define SRC_REPORT_VALUES_H

/*
 * The numbers of a report that conditions may name (expr.h).  The table is made from
 * docs/report.schema.json by tools/make-values.py when the program is built.
 */

enum value_unit {
	UNIT_NONE,
	UNIT_BOOL, /* 1 or 0 */
	UNIT_MS,
	UNIT_BYTES,
	UNIT_PERCENT,
	UNIT_PER_S,
	UNIT_PER_MINUTE,
	UNIT_BYTES_PER_S,
	VALUE_UNITS
};

struct value_spec {
	const char *path; /* in the report: "gc.pause_p99_ms" */
	enum value_unit unit;
	const char *summary;
};

/* In the order of the report; ends at a NULL path. */
extern const struct value_spec values[];

#endif
