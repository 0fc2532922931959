/* SPDX-License-Identifier: MIT */
#include "src/collect/profiles.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analyzers/analyzer.h"
#include "src/collect/heap_walk.h"
#include "src/ipc/ipc_wire.h"

#define KEYWORD_GC UINT64_C(0x1)

/* Text of SQL commands, from the two libraries that announce them. */
#define DATABASE_SPECS                                                                             \
	"FilterAndPayloadSpecs=\""                                                                 \
	"SqlClientDiagnosticListener/System.Data.SqlClient.WriteCommandBefore@Activity1Start:"     \
	"-Command.CommandText;Command.CommandTimeout;ConnectionId;Operation\n"                     \
	"SqlClientDiagnosticListener/System.Data.SqlClient.WriteCommandAfter@Activity1Stop:\n"     \
	"Microsoft.EntityFrameworkCore/"                                                           \
	"Microsoft.EntityFrameworkCore.Database.Command.CommandExecuting@Activity2Start:"          \
	"-Command.CommandText;ConnectionId;IsAsync\n"                                              \
	"Microsoft.EntityFrameworkCore/"                                                           \
	"Microsoft.EntityFrameworkCore.Database.Command.CommandExecuted@Activity2Stop:\""

struct entry {
	const char *name;
	uint64_t keywords;
	unsigned level;
	const char *args;
};

static const struct entry common[] = {
	{ PROVIDER_RUNTIME, 0x100003801d, 4, NULL },
	{ 0 },
};
static const struct entry sampled[] = {
	{ PROVIDER_SAMPLER, 0, 4, NULL },
	{ 0 },
};
static const struct entry cpu_sampling[] = {
	{ PROVIDER_SAMPLER, 0, 4, NULL },
	{ PROVIDER_RUNTIME, 0x14c14fccbd, 4, NULL },
	{ 0 },
};
static const struct entry gc_verbose[] = {
	{ PROVIDER_RUNTIME, 0x8003, 5, NULL },
	{ 0 },
};
static const struct entry gc_collect[] = {
	{ PROVIDER_RUNTIME, KEYWORD_GC, 4, NULL },
	{ PROVIDER_PRIVATE, KEYWORD_GC, 4, NULL },
	{ 0 },
};
/* EventCounters of the base library, and the meters it and ASP.NET Core have. */
static const struct entry counters[] = {
	{ "System.Runtime", 0, 4, "EventCounterIntervalSec=1" },
	{ PROVIDER_METERS, 0x7, 5,
	  "SessionId=drdotnet-trace;"
	  "Metrics=System.Runtime,Microsoft.AspNetCore.Hosting,Microsoft.AspNetCore.Server.Kestrel,"
	  "System.Net.Http,System.Net.NameResolution;"
	  "RefreshInterval=1;MaxTimeSeries=1000;MaxHistograms=20" },
	{ 0 },
};
static const struct entry heap_tasks[] = {
	{ PROVIDER_RUNTIME, HEAP_WALK_KEYWORDS, HEAP_WALK_LEVEL, NULL },
	{ 0 },
};
static const struct entry database[] = {
	{ PROVIDER_TPL, 0x80, 4, NULL },
	{ "Microsoft-Diagnostics-DiagnosticSource", 0x3, 5, DATABASE_SPECS },
	{ 0 },
};

/* Requests served and sent, with the activities that connect them. */
static const struct entry http[] = {
	{ "System.Net.Http", UINT64_MAX, 4, NULL },
	{ "System.Net.NameResolution", UINT64_MAX, 4, NULL },
	{ "System.Net.Security", UINT64_MAX, 4, NULL },
	{ "System.Net.Sockets", UINT64_MAX, 4, NULL },
	{ "Microsoft.AspNetCore.Hosting", UINT64_MAX, 4, NULL },
	{ "Microsoft-AspNetCore-Server-Kestrel", UINT64_MAX, 4, NULL },
	{ PROVIDER_TPL, 0x80, 4, NULL },
	{ 0 },
};

static const struct {
	struct profile profile;
	const struct entry *entries; /* ends at a NULL name */
	uint64_t rundown;
} fixed[] = {
	{ { "dotnet-common", "GC, JIT, loader, exceptions: little cost" },
	  common,
	  IPC_RUNDOWN_DEFAULT },
	{ { "dotnet-sampled-thread-time", "stacks of all threads, many times a second" },
	  sampled,
	  IPC_RUNDOWN_DEFAULT },
	{ { "cpu-sampling", "the old name of both: stacks and the runtime's events" },
	  cpu_sampling,
	  IPC_RUNDOWN_DEFAULT },
	{ { "gc-verbose", "collections and sampled allocations" },
	  gc_verbose,
	  IPC_RUNDOWN_DEFAULT },
	{ { "gc-collect", "collections only: next to no cost" }, gc_collect, KEYWORD_GC },
	{ { "counters", "EventCounters and the base library's meters, once a second" },
	  counters,
	  KEYWORD_GC },
	{ { "http", "requests served and sent, name look-ups, connections" },
	  http,
	  IPC_RUNDOWN_DEFAULT },
	{ { PROFILE_HEAP, "every pending async chain, by walks of the heap (as --heap)" },
	  heap_tasks,
	  IPC_RUNDOWN_DEFAULT },
	{ { "database", "commands of ADO.NET and Entity Framework" },
	  database,
	  IPC_RUNDOWN_DEFAULT },
};

enum { FIXED = sizeof(fixed) / sizeof(fixed[0]) };

/* What the profile of an analyzer enables. */
static const struct an_provider *wanted_by(const struct an_class *c)
{
	return c->on_request ? c->on_request : c->providers;
}

/* The i-th analyzer that wants providers. */
static const struct an_class *analyzer_at(size_t i)
{
	for (const struct an_class *const *c = an_classes; *c; c++)
		if (!(*c)->asked_only && wanted_by(*c) && wanted_by(*c)->name && i-- == 0)
			return *c;
	return NULL;
}

bool profile_get(size_t i, struct profile *ret)
{
	const struct an_class *c;

	if (i < 2) {
		*ret = i == 0 ? (struct profile){ "default", "cpu, gc and tasks" }
			      : (struct profile){ "all", "what any analyzer can use: costs much" };
		return true;
	}
	i -= 2;
	if (i < FIXED) {
		*ret = fixed[i].profile;
		return true;
	}
	c = analyzer_at(i - FIXED);
	if (c)
		*ret = (struct profile){ c->name, c->summary };
	return c != NULL;
}

static const struct an_class *const main_classes[] = { &an_class_cpu, &an_class_gc, &an_class_tasks,
						       NULL };

static bool add(struct provider_set *set, const char *name, uint64_t keywords, unsigned level,
		const char *args, struct provider_error *reterr)
{
	struct provider p = { .keywords = keywords, .level = level };
	bool ok;

	p.name = strdup(name);
	p.args = args ? strdup(args) : NULL;
	if (!p.name || (args && !p.args)) {
		snprintf(reterr->text, sizeof(reterr->text), "out of memory");
		ok = false;
	} else {
		ok = provider_set_add(set, &p, reterr);
	}
	free(p.name);
	free(p.args);
	return ok;
}

static bool add_list(struct provider_set *set, const struct an_provider *p,
		     struct provider_error *reterr)
{
	for (; p && p->name; p++)
		if (!add(set, p->name, p->keywords, p->level, NULL, reterr))
			return false;
	return true;
}

bool profile_add_default(struct provider_set *set, struct provider_error *reterr)
{
	for (const struct an_class *const *c = main_classes; *c; c++)
		if (!add_list(set, (*c)->providers, reterr))
			return false;
	return true;
}

static bool add_fixed(struct provider_set *set, const struct entry *e,
		      struct provider_error *reterr)
{
	for (; e->name; e++)
		if (!add(set, e->name, e->keywords, e->level, e->args, reterr))
			return false;
	return true;
}

static bool add_all(struct provider_set *set, struct provider_error *reterr)
{
	const struct an_class *c;

	for (size_t i = 0; (c = analyzer_at(i)) != NULL; i++)
		if (!add_list(set, wanted_by(c), reterr))
			return false;
	return add_fixed(set, counters, reterr);
}

static bool unknown_profile(const char *name, struct provider_error *reterr)
{
	struct profile p;
	size_t n = (size_t)snprintf(reterr->text, sizeof(reterr->text),
				    "'%.60s' is no profile; there are", name);

	for (size_t i = 0; n < sizeof(reterr->text) && profile_get(i, &p); i++)
		n += (size_t)snprintf(reterr->text + n, sizeof(reterr->text) - n, "%s %s",
				      i ? "," : "", p.name);
	return false;
}

static bool add_one(struct provider_set *set, const char *name, uint64_t *rundown,
		    struct provider_error *reterr)
{
	const struct an_class *c;

	for (size_t i = 0; i < FIXED; i++) {
		if (strcasecmp(name, fixed[i].profile.name) != 0)
			continue;
		*rundown |= fixed[i].rundown;
		return add_fixed(set, fixed[i].entries, reterr);
	}
	*rundown |= IPC_RUNDOWN_DEFAULT;
	if (strcasecmp(name, "default") == 0)
		return profile_add_default(set, reterr);
	if (strcasecmp(name, "all") == 0)
		return add_all(set, reterr);
	for (size_t i = 0; (c = analyzer_at(i)) != NULL; i++)
		if (strcasecmp(name, c->name) == 0)
			return add_list(set, wanted_by(c), reterr);
	return unknown_profile(name, reterr);
}

bool profile_add_list(struct provider_set *set, const char *list, uint64_t *rundown,
		      struct provider_error *reterr)
{
	uint64_t keywords = 0;
	const char *p = list;
	bool ok = true;

	while (ok && *p) {
		char name[100];
		size_t n = strcspn(p, ",");

		snprintf(name, sizeof(name), "%.*s", (int)(n < sizeof(name) ? n : sizeof(name)), p);
		if (n > 0)
			ok = add_one(set, name, &keywords, reterr);
		p += n + (p[n] == ',');
	}
	if (ok && keywords == 0) {
		snprintf(reterr->text, sizeof(reterr->text), "'%.100s' names no profile", list);
		ok = false;
	}
	if (ok)
		*rundown = keywords;
	return ok;
}

/* --- the runtime's sampler --- */

static enum profile_sampler use_of_class(const struct an_class *c)
{
	if (c == &an_class_cpu)
		return PROFILE_SAMPLER_CPU;
	for (const struct an_provider *p = wanted_by(c); p && p->name; p++)
		if (strcasecmp(p->name, PROVIDER_SAMPLER) == 0)
			return PROFILE_SAMPLER_NEEDED;
	return c->uses_waits ? PROFILE_SAMPLER_WAITS : PROFILE_SAMPLER_CPU;
}

enum profile_sampler profile_sampler_use_of_default(void)
{
	enum profile_sampler most = PROFILE_SAMPLER_CPU;

	for (const struct an_class *const *c = main_classes; *c; c++)
		if (use_of_class(*c) > most)
			most = use_of_class(*c);
	return most;
}

enum profile_sampler profile_sampler_use(const char *list)
{
	enum profile_sampler most = PROFILE_SAMPLER_CPU;
	const struct an_class *c;

	if (profile_list_has(list, "all"))
		return PROFILE_SAMPLER_NEEDED;
	for (size_t i = 0; i < FIXED; i++)
		for (const struct entry *e = fixed[i].entries; e->name; e++)
			if (strcasecmp(e->name, PROVIDER_SAMPLER) == 0 &&
			    profile_list_has(list, fixed[i].profile.name))
				return PROFILE_SAMPLER_NEEDED;
	if (profile_list_has(list, "default"))
		most = profile_sampler_use_of_default();
	for (size_t i = 0; (c = analyzer_at(i)) != NULL; i++)
		if (profile_list_has(list, c->name) && use_of_class(c) > most)
			most = use_of_class(c);
	return most;
}

bool profile_list_has(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = list; *p;) {
		size_t n = strcspn(p, ",");

		if (n == len && strncasecmp(p, name, n) == 0)
			return true;
		p += n + (p[n] == ',');
	}
	return false;
}
