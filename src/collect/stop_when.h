/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_STOP_WHEN_H
#define SRC_COLLECT_STOP_WHEN_H

/*
 * Looks for the event that ends a recording: --stopping-event-provider-name, -event-name,
 * -payload-filter, with dotnet-trace's meaning.
 *
 * Has a decoder of its own that keeps the order of the file: events that wait for their time could
 * wait until the next one arrives, and in a quiet process that is never.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stop_when_config {
	const char *provider; /* never NULL; capitals do not matter, as in providers */
	const char *event; /* NULL: any event of it */
	const char *payload; /* NULL, or "Field:Value,Field:Value": all must match */
};

struct stop_when;

/* Whether the text is such a list of fields and values. */
bool stop_when_is_payload(const char *text);

/* The texts must outlive it.  NULL: out of memory. */
struct stop_when *stop_when_new(const struct stop_when_config *config);
struct stop_when *stop_when_free(struct stop_when *w); /* returns NULL */

/* The next bytes of the stream; true once the event is among them, and ever after. */
bool stop_when_push(struct stop_when *w, const uint8_t *bytes, size_t len);

#endif
