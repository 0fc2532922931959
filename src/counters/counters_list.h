/* SPDX-License-Identifier: MIT */
#ifndef SRC_COUNTERS_COUNTERS_LIST_H
#define SRC_COUNTERS_COUNTERS_LIST_H

/*
 * What 'counters' is asked for, spelled as dotnet-counters does:
 *
 *	System.Runtime,Shop.Meter\orders,Microsoft.AspNetCore.Hosting[requests-per-second]
 *	EventCounters\System.Runtime[cpu-usage,working-set]
 *
 * A name without more is both a meter and an event source; one that has a meter of that name is not
 * read twice.  '*' at the end of a name stands for anything.
 */

#include <stdbool.h>
#include <stddef.h>

#include "analyzers/counters/counter_event.h"

enum counters_source { COUNTERS_BOTH, COUNTERS_METER, COUNTERS_EVENT_COUNTER };

struct counters_entry {
	char *provider;
	char **names; /* of counters or instruments */
	size_t count; /* 0: all */
	enum counters_source source;
	bool has_meter; /* its meter has been seen */
	bool seen; /* a reading came */
};

struct counters_list {
	struct counters_entry *items;
	size_t count;
};

struct counters_list_error {
	char text[256];
};

/* Adds what text names.  False: *ret_error says why; the list may hold a part. */
bool counters_list_parse(struct counters_list *l, const char *text,
			 struct counters_list_error *ret_error);
void counters_list_done(struct counters_list *l);

/* The entry that asks for that reading, or NULL. */
struct counters_entry *counters_list_find(struct counters_list *l, const struct counter_row *row);
/* A meter of that name has instruments. */
void counters_list_has_meter(struct counters_list *l, const char *meter);
/* "MeterA,MeterB\orders" as the runtime takes it; the caller frees it; NULL: out of memory. */
char *counters_list_metrics(const struct counters_list *l);

#endif
