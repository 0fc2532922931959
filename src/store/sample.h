/* SPDX-License-Identifier: MIT */
#ifndef SRC_STORE_SAMPLE_H
#define SRC_STORE_SAMPLE_H

/*
 * One round of sampling: chooses processes, records all of them at once for a short time, writes
 * what came of it into the store.
 */

#include <stdbool.h>
#include <stdint.h>

#include "src/base/options.h"
#include "src/collect/collect.h"
#include "src/store/store.h"

struct sample_settings {
	struct collect_settings collect; /* output, report and outcome are set by the round */
	const struct opt_list *pids, *names, *matches; /* of these, or all */
	bool all;
	uint64_t max_targets;
	uint64_t ask_ms;
	bool keep_traces;
	struct store_limits limits;
	const char *prometheus; /* file; NULL: none */
	bool quiet;
	bool loop; /* nobody to sample is no news: there will be somebody */
};

struct sample_result {
	size_t sampled, busy, failed; /* processes */
	size_t findings;
	bool interrupted; /* by a signal */
	int code; /* the worst */
};

/* ret: added to, so that several rounds sum up. */
void sample_round(struct store *store, const struct sample_settings *s, struct sample_result *ret);

/*
 * When the next round of --every begins: the first multiple of every_ns after begin_ns that lies
 * behind now_ns, so that neither the length of a round nor a late one moves those after it.
 * *ret_missed: how many were left out because a round took longer.
 */
uint64_t sample_next(uint64_t begin_ns, uint64_t every_ns, uint64_t now_ns, uint64_t done,
		     uint64_t *ret_missed);

#endif
