/* SPDX-License-Identifier: MIT */
#ifndef NETTRACE_TRAILER_PERF_H
#define NETTRACE_TRAILER_PERF_H

/*
 * CPU samples of perf_event_open() in the block behind the end of a trace.  Numbers are varuints,
 * signed ones varints; each record holds a count and so many entries, and there may be several of a
 * kind, as an entry only refers to earlier ones:
 *
 *	PERF_INFO     start, end, period, unit of time, lost, throttled, without stack, dropped,
 *	              flags (1: time in the kernel is part of it); what follows is of later versions
 *	PERF_THREAD   id, text name
 *	PERF_STACK    back to the caller's number (1: the node before; its own number: the root),
 *	              signed step of the address; nodes are numbered from 1
 *	PERF_SAMPLE   step of the time, thread, signed step of the node, how many
 *	PERF_MAPPING  signed step of the start, length - 1, offset, text file, text build id
 *	PERF_SYMBOL   number of a mapping of its file from 1 (0: none), signed step of the start,
 *	              length - 1, text name
 *
 * Steps are from the entry before in the same record, from 0 at its first.
 */

#include "nettrace/perf_store.h"
#include "nettrace/trailer.h"

/* Everything.  The rows must be in the order of time: nt_perf_sort(). */
void nt_perf_save(const struct nt_perf *p, struct nt_trailer *to);
/*
 * One record, if it is one of ours; others are skipped.  NT_EFORMAT: it makes no sense; what was
 * read before stays.  NT_ENOMEM.
 */
NT_MUST_CHECK enum nt_status nt_perf_load(struct nt_perf *p, const struct nt_trailer_record *r);

#endif
