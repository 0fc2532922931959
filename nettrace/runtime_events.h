/* SPDX-License-Identifier: MIT */
#ifndef NETTRACE_RUNTIME_EVENTS_H
#define NETTRACE_RUNTIME_EVENTS_H

/*
 * Names and payload layouts of the events that native providers send without metadata
 * (nettrace.md §4.5, runtime-events.md), as one data table: provider, id, name, fields with the
 * version that added each.
 */

#include "nettrace/arena.h"
#include "nettrace/nettrace.h"

/* NT_PROV_OTHER when the name is none of the known ones.  Exact match. */
enum nt_provider nt_provider_find(const char *name);

/* The table's name of an event, or NULL.  Static. */
const char *nt_table_name(enum nt_provider provider, uint32_t event_id);

/*
 * The fields that version has, allocated from arena.  An unknown, newer version gets the newest
 * known layout (new versions only append fields).  *ret_fields NULL and *ret_count 0 when the
 * event is not in the table or has no fields; *ret_known tells these two apart.
 * NT_ENOMEM or NT_ELIMIT when the arena is exhausted.
 */
NT_MUST_CHECK enum nt_status nt_table_layout(struct nt_arena *arena, enum nt_provider provider,
					     uint32_t event_id, uint32_t version,
					     const struct nt_field **ret_fields, size_t *ret_count,
					     bool *ret_known);

/* True where the stream's own field list for this event is known to be wrong or incomplete. */
bool nt_table_overrides(enum nt_provider provider, uint32_t event_id);

#endif
