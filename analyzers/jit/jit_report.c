/* SPDX-License-Identifier: MIT */

/* The section about the JIT compiler and the loader, and its findings. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzers/grow.h"
#include "analyzers/jit/jit_internal.h"

enum {
	NAME_BYTES = 512,
	MAX_NAMES_SHOWN = 20,
};

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void add_ms(struct an_value *v, const char *name, bool known, uint64_t ns)
{
	if (known)
		an_add_double(v, name, (double)ns / 1e6, 4);
	else
		an_add_null(v, name);
}

/* --- methods --- */

static int compare_time(const void *a, const void *b)
{
	const struct jit_row *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	if (x->code_bytes != y->code_bytes)
		return x->code_bytes < y->code_bytes ? 1 : -1;
	return (x->address > y->address) - (x->address < y->address);
}

static int compare_samples(const void *a, const void *b)
{
	const struct jit_row *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return compare_time(a, b);
}

static const char *row_name(const struct jit *j, const struct jit_row *r, char *buf, size_t size)
{
	if (r->method)
		return r->method->name;
	an_methods_describe_at(j->shared->methods, r->address, r->epoch, buf, size);
	return buf;
}

static void add_method(const struct jit *j, const struct jit_row *r, struct an_value *v)
{
	char buf[NAME_BYTES];
	const char *name = row_name(j, r, buf, sizeof(buf));

	an_add_text(v, "method", name);
	if (r->method) {
		an_add_text(v, "signature", r->method->signature);
		an_add_text(v, "args", r->method->args);
		an_add_text(v, "raw", r->method->raw);
		an_add_text(v, "module", r->method->module);
		return;
	}
	an_add_null(v, "signature");
	an_add_null(v, "args");
	an_add_text(v, "raw", name);
	an_add_null(v, "module");
}

static void add_tiers(unsigned tiers, struct an_value *v)
{
	struct an_value *list = an_add_array(v, "tiers");

	for (unsigned i = 0; i < AN_TIERS; i++)
		if (tiers & 1u << i)
			an_add_text(list, NULL, an_tier_name((enum an_tier)i));
}

static void add_methods(const struct jit *j, struct jit_rows *r, struct an_value *parent)
{
	struct an_value *list = an_add_array(parent, "methods");
	size_t top = j->shared->options.top;

	if (r->count)
		qsort(r->row, r->count, sizeof(*r->row), compare_time);
	for (size_t i = 0; i < r->count && list && (!top || list->count < top); i++) {
		const struct jit_row *row = &r->row[i];
		struct an_value *v;

		if (!row->count)
			continue; /* only samples */
		v = an_add_object(list, NULL);
		add_method(j, row, v);
		an_add_uint(v, "count", row->count);
		add_ms(v, "time_ms", row->timed, row->ns);
		add_ms(v, "max_ms", row->timed, row->max_ns);
		if (row->il_bytes)
			an_add_uint(v, "il_bytes", row->il_bytes);
		else
			an_add_null(v, "il_bytes");
		an_add_uint(v, "code_bytes", row->code_bytes);
		an_add_bool(v, "r2r_rejected", row->rejected);
		add_tiers(row->tiers, v);
	}
	an_add_uint(parent, "methods_not_listed", j->loads_dropped);
}

static void add_osr(const struct jit *j, const struct jit_rows *r, struct an_value *parent)
{
	struct an_value *list = an_add_array(parent, "osr");
	size_t top = j->shared->options.top;

	for (size_t i = 0; i < r->count && list && (!top || list->count < top); i++)
		if (r->row[i].tiers & 1u << AN_TIER_1_OSR)
			add_method(j, &r->row[i], an_add_object(list, NULL));
}

/* Where the samples of code that is not optimised are. */
static void add_slow(const struct jit *j, struct jit_rows *r, struct an_value *parent)
{
	struct an_value *v, *list;
	size_t top = j->shared->options.top;

	if (!j->running) {
		an_add_null(parent, "unoptimized");
		return;
	}
	v = an_add_object(parent, "unoptimized");
	an_add_uint(v, "samples", r->slow_samples);
	an_add_double(v, "percent", percent(r->slow_samples, j->running), 2);
	list = an_add_array(v, "methods");
	if (r->count)
		qsort(r->row, r->count, sizeof(*r->row), compare_samples);
	for (size_t i = 0; i < r->count && list && (!top || i < top); i++) {
		struct an_value *row;

		if (!r->row[i].samples)
			break;
		row = an_add_object(list, NULL);
		add_method(j, &r->row[i], row);
		an_add_uint(row, "samples", r->row[i].samples);
		an_add_double(row, "percent", percent(r->row[i].samples, j->running), 2);
	}
}

/* --- dynamic methods --- */

static int compare_dynamic(const void *a, const void *b)
{
	const struct jit_dynamic *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (x->name > y->name) - (x->name < y->name);
}

static int compare_places(const void *a, const void *b)
{
	const struct jit_place *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (x->node > y->node) - (x->node < y->node);
}

/* Places of one method become one: the table is rewritten in place, most first. */
static enum nt_status sum_places(struct jit *j, struct an_sites *sites)
{
	struct nt_idmap map;
	enum nt_status st = NT_OK;
	size_t n = 0;

	nt_idmap_init(&map, j->shared->alloc);
	for (size_t i = 0; i < j->place_count && st == NT_OK; i++) {
		struct jit_place p = j->places[i];
		uint64_t key;
		uint32_t at;

		p.node = sites->of[p.node];
		key = an_sites_key(sites, p.node);
		at = nt_idmap_get(&map, key);
		if (at == NT_IDMAP_NONE) {
			st = nt_idmap_put(&map, key, (uint32_t)n);
			j->places[n++] = p;
		} else {
			j->places[at].count += p.count;
		}
	}
	nt_idmap_done(&map);
	if (st < 0)
		return st;
	j->place_count = n;
	if (n)
		qsort(j->places, n, sizeof(*j->places), compare_places);
	nt_idmap_clear(&j->by_place);
	for (size_t i = 0; i < n && st == NT_OK; i++)
		st = nt_idmap_put(&j->by_place, j->places[i].node, (uint32_t)i);
	return st;
}

static enum nt_status sort_dynamic(struct jit *j)
{
	enum nt_status st = NT_OK;

	if (j->dynamic_count)
		qsort(j->dynamic, j->dynamic_count, sizeof(*j->dynamic), compare_dynamic);
	for (size_t i = 0; i < j->dynamic_count && st == NT_OK; i++)
		st = nt_idmap_put(&j->by_dynamic, j->dynamic[i].name, (uint32_t)i);
	return st;
}

static void add_dynamic(struct jit *j, const struct an_sites *sites, struct an_value *parent)
{
	struct an_value *v = an_add_object(parent, "dynamic"), *list;
	size_t top = j->shared->options.top;

	an_add_known(v, "count", j->loads_recorded, j->dynamic_loaded);
	an_add_known(v, "unloaded", j->loads_recorded, j->dynamic_unloaded);
	add_ms(v, "time_ms", j->timed, j->dynamic_ns);
	an_add_known(v, "il_stubs", j->loads_recorded, j->stubs);
	list = an_add_array(v, "names");
	for (size_t i = 0; i < j->dynamic_count && i < MAX_NAMES_SHOWN; i++) {
		struct an_value *row = an_add_object(list, NULL);

		an_add_text(row, "name", an_textset_get(&j->names, j->dynamic[i].name));
		an_add_uint(row, "count", j->dynamic[i].count);
	}
	an_add_uint(v, "of_other_names", j->dynamic_other);
	list = an_add_array(v, "sites");
	for (size_t i = 0; i < j->place_count && list && (!top || list->count < top); i++) {
		struct an_value *row = an_add_object(list, NULL);

		an_sites_add(sites, j->places[i].node, row);
		an_add_uint(row, "count", j->places[i].count);
	}
}

/* --- the rest --- */

static void add_counts(const struct jit *j, struct an_value *v)
{
	int64_t observed = an_observed_ns(j->shared);
	struct an_value *tiers;

	an_add_known(v, "count", j->loads_recorded, j->compiled);
	add_ms(v, "time_ms", j->timed, j->total_ns);
	add_ms(v, "waited_ms", j->timed, j->waited_ns);
	if (j->timed && observed > 0)
		an_add_double(v, "time_percent", 100.0 * (double)j->total_ns / (double)observed, 3);
	else
		an_add_null(v, "time_percent");
	if (j->timed)
		an_add_uint(v, "il_bytes", j->il_bytes);
	else
		an_add_null(v, "il_bytes");
	an_add_known(v, "code_bytes", j->loads_recorded, j->code_bytes);
	an_add_known(v, "precompiled", j->loads_recorded, j->precompiled);
	an_add_known(v, "r2r_rejected", j->loads_recorded, j->rejected);
	an_add_uint(v, "r2r_rejected_before", j->rejected_before);
	an_add_known(v, "peak_per_s", j->loads_recorded, j->rate.peak);
	tiers = an_add_object(v, "by_tier");
	for (unsigned i = 0; i < AN_TIERS; i++)
		if (j->tiers[i])
			an_add_uint(tiers, an_tier_name((enum an_tier)i), j->tiers[i]);
	an_rate_report(&j->rate, observed, v, "over_time");
}

/* What compiling took in the second that began with the first method: the cost of a start. */
static void add_first_second(const struct jit *j, struct an_value *parent)
{
	struct an_value *v;

	if (!j->compiled) {
		an_add_null(parent, "first_second");
		return;
	}
	v = an_add_object(parent, "first_second");
	an_add_double(v, "start_ms", (double)j->first_ns / 1e6, 4);
	an_add_uint(v, "count", j->first_count);
	add_ms(v, "time_ms", j->timed, j->first_jit_ns);
}

static void add_tiering(const struct jit *j, struct an_value *parent)
{
	struct an_value *v;

	if (!j->background_batches && !j->pauses && !j->resumes) {
		an_add_null(parent, "tiering");
		return;
	}
	v = an_add_object(parent, "tiering");
	an_add_uint(v, "background_batches", j->background_batches);
	an_add_uint(v, "background_methods", j->background_methods);
	an_add_double(v, "background_ms", (double)j->background_ns / 1e6, 4);
	an_add_uint(v, "pauses", j->pauses);
	an_add_double(v, "pause_ms", (double)j->pause_ns / 1e6, 4);
}

static void add_loader(const struct jit *j, struct an_value *parent)
{
	struct an_value *v = an_add_object(parent, "assemblies"), *list;

	an_add_known(v, "loaded", j->assemblies_recorded, j->assemblies_loaded);
	an_add_known(v, "unloaded", j->assemblies_recorded, j->assemblies_unloaded);
	an_add_known(v, "dynamic", j->assemblies_recorded, j->assemblies_dynamic);
	an_add_known(v, "collectible", j->assemblies_recorded, j->assemblies_collectible);
	list = an_add_array(v, "first");
	for (size_t i = 0; i < j->assembly_count; i++) {
		struct an_value *row = an_add_object(list, NULL);

		an_add_text(row, "name", an_textset_get(&j->names, j->assemblies[i].name));
		an_add_double(row, "time_ms", (double)j->assemblies[i].time_ns / 1e6, 4);
	}
	if (!j->types_loaded) {
		an_add_null(parent, "types");
		return;
	}
	v = an_add_object(parent, "types");
	an_add_uint(v, "loaded", j->types_loaded);
	an_add_double(v, "time_ms", (double)j->type_ns / 1e6, 4);
}

/* --- findings --- */

static void check_storm(const struct jit *j, struct an_report *out)
{
	int64_t observed = an_observed_ns(j->shared);
	double share = observed > 0 ? 100.0 * (double)j->waited_ns / (double)observed : 0;
	double ms = (double)j->waited_ns / 1e6;
	bool slow = j->timed && share >= an_limit(j->shared, AN_LIMIT_JIT_STORM) &&
		    ms >= an_limit(j->shared, AN_LIMIT_JIT_STORM_TIME);

	if (!slow && (double)j->rate.peak < an_limit(j->shared, AN_LIMIT_JIT_STORM_METHODS))
		return;
	an_add_finding(
		out, AN_WARNING, "jit.storm",
		slow ? an_report_printf(out,
					"The program waited %.0f ms of %.0f ms for the compiler",
					ms, (double)observed / 1e6)
		     : an_report_printf(out, "%" PRIu64 " methods were compiled within one second",
					j->rate.peak),
		an_report_printf(out, "%" PRIu64 " methods compiled, %" PRIu64 " of them dynamic",
				 j->compiled, j->dynamic_loaded),
		"At start-up, ReadyToRun code saves most of it. Later on it is code that is made "
		"again and again: see jit.dynamic and the methods compiled most often.");
}

static void check_dynamic(const struct jit *j, const struct an_sites *sites, struct an_report *out)
{
	int64_t observed = an_observed_ns(j->shared);
	double rate = observed > 0 ? (double)j->dynamic_loaded * 1e9 / (double)observed : 0;
	const char *who = "";
	char buf[NAME_BYTES];

	if ((double)j->dynamic_loaded < an_limit(j->shared, AN_LIMIT_JIT_DYNAMIC) ||
	    rate < an_limit(j->shared, AN_LIMIT_JIT_DYNAMIC_RATE))
		return;
	if (j->place_count)
		who = an_report_printf(out, "; most of them for %s",
				       an_sites_name(sites, j->places[0].node, buf, sizeof(buf)));
	an_add_finding(
		out, AN_WARNING, "jit.dynamic-methods",
		an_report_printf(out, "%" PRIu64 " dynamic methods were compiled, %.0f a second",
				 j->dynamic_loaded, rate),
		an_report_printf(out, "%" PRIu64 " were freed; most frequent name \"%s\"%s",
				 j->dynamic_unloaded,
				 j->dynamic_count ? an_textset_get(&j->names, j->dynamic[0].name)
						  : "[other]",
				 who),
		"Something makes code again that it could keep: compiled Regex objects, "
		"Expression.Compile(), DynamicMethod or serialisers that are made anew each time. "
		"Cache them in a static field.");
}

static void check_slow(const struct jit *j, const struct jit_rows *r, struct an_report *out)
{
	const struct jit_row *row = r->count ? &r->row[0] : NULL;
	char buf[NAME_BYTES];

	if (!row || (double)j->running < an_limit(j->shared, AN_LIMIT_JIT_TIER0_SAMPLES) ||
	    percent(row->samples, j->running) < an_limit(j->shared, AN_LIMIT_JIT_TIER0))
		return;
	an_add_finding(
		out, AN_WARNING, "jit.tier0-loop",
		an_report_printf(out, "%.0f %% of the running code is %s, which is not optimised",
				 percent(row->samples, j->running),
				 row_name(j, row, buf, sizeof(buf))),
		an_report_printf(out,
				 "%" PRIu64 " of %" PRIu64
				 " running samples are in code of tier 0 of this method",
				 row->samples, j->running),
		"A method that is called once and loops stays at tier 0 where on-stack "
		"replacement is off (.NET 6 and older, debug builds, DOTNET_TC_QuickJitForLoops). "
		"Mark it AggressiveOptimization or move the loop's body into a method.");
}

static void check_rejected(const struct jit *j, struct an_report *out)
{
	double share = percent(j->rejected, j->compiled);

	if ((double)j->rejected < an_limit(j->shared, AN_LIMIT_JIT_REJECTED) ||
	    share < an_limit(j->shared, AN_LIMIT_JIT_REJECTED_SHARE))
		return;
	an_add_finding(out, AN_WARNING, "jit.r2r-rejected",
		       an_report_printf(out, "Precompiled code of %" PRIu64 " methods was not used",
					j->rejected),
		       an_report_printf(out, "%.0f %% of %" PRIu64 " methods that were compiled",
					share, j->compiled),
		       "The assemblies were compiled against other versions of their dependencies. "
		       "Publish them together.");
}

/* --- all --- */

static enum nt_status add_section(struct jit *j, struct jit_rows *r, struct an_sites *sites,
				  struct an_report *out, struct an_value *v)
{
	enum nt_status st = sum_places(j, sites);

	if (st == NT_OK)
		st = sort_dynamic(j);
	if (st < 0)
		return st;
	add_counts(j, v);
	add_methods(j, r, v);
	add_osr(j, r, v);
	add_slow(j, r, v);
	add_dynamic(j, sites, v);
	add_first_second(j, v);
	add_tiering(j, v);
	add_loader(j, v);
	check_storm(j, out);
	check_dynamic(j, sites, out);
	check_slow(j, r, out);
	check_rejected(j, out);
	return NT_OK;
}

enum nt_status jit_report(struct jit *j, struct an_report *out)
{
	struct an_value *v = an_add_object(an_report_root(out), "jit");
	struct an_sites sites;
	struct jit_rows r;
	enum nt_status st;

	if (!j->recorded) {
		an_add_null(v, "count");
		an_add_null(v, "time_ms");
		an_add_null(v, "methods");
		return NT_OK;
	}
	st = an_sites_init(&sites, j->shared);
	if (st < 0)
		return st;
	st = jit_rows_init(&r, j);
	if (st == NT_OK)
		st = add_section(j, &r, &sites, out, v);
	jit_rows_done(&r, j);
	an_sites_done(&sites);
	return st;
}
