/* SPDX-License-Identifier: MIT */
#ifndef ANALYZERS_METHODS_H
#define ANALYZERS_METHODS_H

/*
 * Addresses of managed code to methods.
 *
 * Most names arrive last, with the rundown, so whoever collects addresses keeps the raw address
 * plus its code epoch and asks for the name when the trace has been read.  The epoch of a range
 * rises when a different method is loaded over it, so one address can mean two methods, each at
 * its time.  Sources: runtime-events.md §2.5, §2.11, §7.5.
 */

#include "nettrace/nettrace.h"

struct an_methods;

/* One method (all its code ranges).  Rows are keyed by it, never by the printed name. */
struct an_method {
	uint32_t index; /* dense */
	const char *module; /* "Shop", file name without directory and .dll; "" unknown */
	const char *raw; /* "Shop.Stuck+<FetchPriceAsync>d__2.MoveNext" */
	const char *signature; /* as the runtime wrote it: "int32  (int32)" */
	const char *name; /* for people: "Shop.Stuck.FetchPriceAsync" */
	const char *args; /* "(int, string)", C#-like short types */
	bool dynamic; /* DynamicMethod or IL stub */
};

/* How code was compiled: bits 7 to 9 of a method's flags. */
enum an_tier {
	AN_TIER_UNKNOWN,
	AN_TIER_MINOPT,
	AN_TIER_OPTIMIZED, /* at once, or code that was compiled before */
	AN_TIER_QUICK, /* tier 0 */
	AN_TIER_1,
	AN_TIER_1_OSR,
	AN_TIER_QUICK_INSTRUMENTED,
	AN_TIER_1_INSTRUMENTED,
	AN_TIERS
};

static inline enum an_tier an_tier_of_flags(uint32_t flags)
{
	return (enum an_tier)(flags >> 7 & (AN_TIERS - 1));
}

const char *an_tier_name(enum an_tier tier);
/* Not optimized: tier 0 and the like. */
bool an_tier_is_quick(enum an_tier tier);

struct an_methods *an_methods_new(const struct nt_alloc *alloc);
struct an_methods *an_methods_free(struct an_methods *m); /* returns NULL */

/* Whether an_methods_event() would act on such events. */
bool an_methods_wants(const struct nt_event_def *def);

/* Takes any event; acts on method and module load, unload and rundown events, ignores others. */
NT_MUST_CHECK enum nt_status an_methods_event(struct an_methods *m, const struct nt_event *ev);

/* The code epoch of addr now: 0 unless different methods have been loaded over it. */
uint32_t an_methods_epoch(const struct an_methods *m, uint64_t addr);

/*
 * The method whose code held addr in that epoch, or NULL.  addr is a place inside the method: for
 * a return address pass ip - 1.  Lives as long as m.
 */
const struct an_method *an_methods_find(const struct an_methods *m, uint64_t addr, uint32_t epoch);

/* How the code there was compiled, see an_methods_find(). */
enum an_tier an_methods_tier(const struct an_methods *m, uint64_t addr, uint32_t epoch);

/*
 * Files of version 6 may hold many processes, whose addresses overlap.  Each process then has
 * epochs of its own, counted from the base that this gives for the event's process; 0 in all other
 * traces.  an_methods_epoch(m, addr) is an_methods_epoch_in(m, 0, addr).
 */
uint32_t an_methods_base(const struct an_methods *m, const struct nt_event *ev);
uint32_t an_methods_epoch_in(const struct an_methods *m, uint32_t base, uint64_t addr);
/* "module!0xADDR" when the range of a module is known, else "[unknown 0xADDR]". */
void an_methods_describe_at(const struct an_methods *m, uint64_t addr, uint32_t epoch, char *buf,
			    size_t size);
/* The module whose range holds addr, or "". */
const char *an_methods_module_at(const struct an_methods *m, uint64_t addr, uint32_t epoch);

/*
 * Native code from outside the trace, of its one process, at [start, last] in a file.  function
 * NULL: only the file is known.
 */
NT_MUST_CHECK enum nt_status an_methods_native(struct an_methods *m, uint64_t start, uint64_t last,
					       const char *file, const char *function);

/* Rises whenever the epoch of some address may have changed: cached epochs are stale then. */
uint64_t an_methods_changes(const struct an_methods *m);

/*
 * Whether the callee is newer code of the very method that calls it: what on-stack replacement
 * leaves on a stack.  Both are places inside, as for an_methods_find(), in a trace of one process.
 */
bool an_methods_is_replaced(const struct an_methods *m, uint64_t callee, uint64_t caller);

size_t an_methods_count(const struct an_methods *m);
/* Whether the end of the rundown (DCEndComplete) was seen; without it names are missing. */
bool an_methods_rundown_complete(const struct an_methods *m);
bool an_methods_rundown_begun(const struct an_methods *m);
/* Methods dropped because a cap of memory was reached. */
uint64_t an_methods_dropped(const struct an_methods *m);
/* Code ranges that make no sense (empty, backwards, larger than any code) and were ignored. */
uint64_t an_methods_bad_ranges(const struct an_methods *m);
/* NT_ENOMEM when a look-up could not be answered for want of memory. */
enum nt_status an_methods_status(const struct an_methods *m);

#endif
