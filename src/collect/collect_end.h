/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_COLLECT_END_H
#define SRC_COLLECT_COLLECT_END_H

/* What came of a session: says it, prints the report, and knows the exit code. */

#include "src/collect/collect.h"
#include "src/collect/collect_pieces.h"
#include "src/ipc/session.h"

struct collect_facts {
	bool started;
	bool forced; /* a second signal: ended without waiting for the runtime */
	bool without_sampler; /* the runtime's: the kernel took samples instead */
	bool heap_failed; /* a walk of the heap that was asked for is not there; said */
	bool paused; /* the disk was too slow for a while */
	bool stop_event_came;
	uint64_t start_ns, stop_ns, end_ns; /* uv_hrtime(); stop_ns 0: no stop was asked for */
	uint64_t stream_bytes, stop_bytes; /* in all, and before the stop */
	struct session_end end;
	struct collect_pieces_result written; /* its path is dead, see path */
	char *path; /* of the file, or of the last piece; NULL: none */
};

/* Bits of enum ipc_gave_up: what an older runtime made us do without. */
void collect_say_gave_up(unsigned gave_up);

/*
 * Ends the decoder, prints the report.  take_report: where to; NULL: nowhere, as the trace is on
 * standard output.  Returns the exit code.
 */
int collect_conclude(const struct collect_settings *s, const struct collect_subject *who,
		     const struct collect_facts *facts, struct analysis *a,
		     const struct analysis_child *child, struct out *take_report);

#endif
