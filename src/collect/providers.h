/* SPDX-License-Identifier: MIT */
#ifndef SRC_COLLECT_PROVIDERS_H
#define SRC_COLLECT_PROVIDERS_H

/*
 * Which events to record: the command line's spelling of providers, keywords and levels, and how
 * several wishes for one provider become one.
 *
 * The grammar is that of dotnet-trace: P[,P...] with P = Name[:Keywords[:Level[:Arguments]]].
 * Keywords are hexadecimal; a level is 0 to 5 or its name; arguments are KEY=VALUE;KEY=VALUE with
 * quotes around what holds ';' or '='.  A comma always ends a provider.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PROVIDER_LEVEL_ALWAYS = 0,
	PROVIDER_LEVEL_INFORMATIONAL = 4,
	PROVIDER_LEVEL_VERBOSE = 5,
};

struct provider {
	char *name;
	uint64_t keywords;
	unsigned level;
	char *args; /* as on the wire; NULL: none */
};

/* At most one entry for a name, whatever its case. */
struct provider_set {
	struct provider *items;
	size_t count;
};

/* Where a mistake is explained: "'12x' is no hexadecimal number". */
struct provider_error {
	char text[600];
};

void provider_set_done(struct provider_set *set);
struct provider *provider_set_find(const struct provider_set *set, const char *name);

/*
 * Adds or merges one: keywords join, the higher level wins, but level "always" beats all others
 * (as with dotnet-trace).  False: both have arguments, or out of memory.
 */
bool provider_set_add(struct provider_set *set, const struct provider *p,
		      struct provider_error *reterr);
/* Adds those of more whose names set does not have. */
bool provider_set_add_missing(struct provider_set *set, const struct provider_set *more,
			      struct provider_error *reterr);
/* --providers */
bool provider_set_parse(struct provider_set *set, const char *list, struct provider_error *reterr);

/* "verbose", "4"; a number above 5 is 5. */
bool provider_level_parse(const char *text, unsigned *ret);
/* --clrevents: names of the runtime's keywords joined by '+', or hexadecimal numbers. */
bool provider_clr_events_parse(const char *text, uint64_t *ret, struct provider_error *reterr);

#define PROVIDER_RUNTIME "Microsoft-Windows-DotNETRuntime"
/* Its keyword of locks. */
#define PROVIDER_RUNTIME_CONTENTION UINT64_C(0x4000)
#define PROVIDER_PRIVATE	    "Microsoft-Windows-DotNETRuntimePrivate"
#define PROVIDER_SAMPLER	    "Microsoft-DotNETCore-SampleProfiler"
#define PROVIDER_METERS		    "System.Diagnostics.Metrics"
#define PROVIDER_TPL		    "System.Threading.Tasks.TplEventSource"

#endif
