/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_PROFILES_H
#define SRC_COLLECT_PROFILES_H

/*
 * Named sets of providers: those of dotnet-trace under their own names, old ones included, and one
 * for each analyzer with what that analyzer asks for.
 */

#include "src/collect/providers.h"

/* Its session has to be watched: see heap_walk.h. */
#define PROFILE_HEAP "heap-tasks"

struct profile {
	const char *name, *summary;
};

/* The i-th profile, or false when there are no more. */
bool profile_get(size_t i, struct profile *ret);

/*
 * Adds the profiles of a list "a,b".  *rundown gets the keywords of the rundown they need: the
 * default, unless all of them are content with less.
 */
bool profile_add_list(struct provider_set *set, const char *list, uint64_t *rundown,
		      struct provider_error *reterr);

/* Whether the list has that profile. */
bool profile_list_has(const char *list, const char *name);

/* What profiles want the runtime's sampler for. */
enum profile_sampler {
	PROFILE_SAMPLER_CPU, /* for CPU use, if at all: the kernel's samples tell that better */
	PROFILE_SAMPLER_WAITS, /* where threads wait: an analyzer tells more with it */
	PROFILE_SAMPLER_NEEDED, /* an analyzer cannot do without, or it was asked for by its name */
};

/* Of all in the list. */
enum profile_sampler profile_sampler_use(const char *list);
enum profile_sampler profile_sampler_use_of_default(void);

/* What the three main analyzers want: cpu, gc, tasks. */
bool profile_add_default(struct provider_set *set, struct provider_error *reterr);

#endif
