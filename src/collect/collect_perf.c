/* SPDX-License-Identifier: MIT */
#include "src/collect/collect_perf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/log.h"
#include "src/collect/collect_progress.h"
#include "src/perf/perf_names.h"

struct collect_perf {
	struct perf_sampler *sampler;
	bool finished;
};

struct collect_perf *collect_perf_start(uv_loop_t *loop, const struct collect_settings *settings,
					int32_t pid, struct perf_refusal *ret)
{
	const struct perf_sampler_config config = { .pid = pid,
						    .frequency = settings->cpu_frequency,
						    .kernel_frames = settings->kernel_frames };
	struct collect_perf *p = calloc(1, sizeof(*p));

	if (!p) {
		*ret = (struct perf_refusal){ 0 };
		snprintf(ret->why, sizeof(ret->why), "out of memory");
		return NULL;
	}
	p->sampler = perf_sampler_start(loop, &config, ret);
	if (!p->sampler)
		return collect_perf_close(p);
	if (settings->kernel_frames && !perf_sampler_sees_kernel(p->sampler)) {
		collect_progress_clear(settings->quiet);
		log_warn("frames of the kernel are not recorded: we may not see its work for "
			 "process %d",
			 (int)pid);
		log_advice("run it as root or with CAP_PERFMON, or allow it with "
			   "kernel.perf_event_paranoid of 1 or less");
	}
	return p;
}

void collect_perf_stop(struct collect_perf *p)
{
	perf_sampler_stop(p->sampler);
}

static void say_what_lacks(const struct nt_perf *store, enum nt_status st)
{
	const struct nt_perf_info *i = &store->info;

	if (i->lost)
		log_warn("%" PRIu64 " CPU samples of the kernel were lost: we were too slow",
			 i->lost);
	if (i->dropped)
		log_warn("%" PRIu64 " CPU samples or names of the kernel had no room", i->dropped);
	if (i->throttled)
		log_warn("the kernel held CPU sampling back %" PRIu64
			 " times: a lower --cpu-frequency costs less",
			 i->throttled);
	if (st < 0)
		log_warn("some CPU samples of the kernel are missing: out of memory");
}

const struct nt_perf *collect_perf_finish(struct collect_perf *p)
{
	struct nt_perf *store = perf_sampler_store(p->sampler);

	if (!p->finished) {
		enum nt_status st;
		bool hidden;

		p->finished = true;
		collect_perf_stop(p);
		st = perf_names_add(store, perf_sampler_files(p->sampler), &hidden);
		if (st == NT_OK)
			st = perf_sampler_status(p->sampler);
		say_what_lacks(store, st);
		if (hidden)
			log_warn("functions of the kernel have no names: "
				 "we may not read addresses in /proc/kallsyms");
	}
	return store;
}

struct collect_perf *collect_perf_close(struct collect_perf *p)
{
	if (p)
		perf_sampler_close(p->sampler);
	free(p);
	return NULL;
}
