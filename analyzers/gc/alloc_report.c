/* SPDX-License-Identifier: MIT */

/* The section about allocations, and its findings. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzers/gc/alloc_internal.h"
#include "analyzers/grow.h"

enum {
	NAME_BYTES = 512,
	MAX_HOT_FRAMES = 100,
	SITE_TYPES = 3, /* types shown of each call site */
	MIN_SAMPLES = 4, /* what rests on less is too uncertain to be a row */
	MIN_OBSERVED_MS = 500,
	EVIDENCE_ROWS = 3,
};

/* A call site; the types allocated there are rows of another table. */
struct site {
	uint32_t node;
	struct alloc_sum sum;
};

struct site_type {
	uint32_t site, type;
	struct alloc_sum sum;
};

struct work {
	const struct alloc *a;
	struct an_sites sites;
	struct site *site;
	size_t site_count, site_cap;
	struct site_type *pair; /* by site, most bytes first */
	size_t pair_count, pair_cap;
	const struct alloc_type **types; /* most bytes first */
	size_t type_count;
	uint32_t *site_order;
};

static uint64_t whole(double x)
{
	return x > 0 && x < 1.8e19 ? (uint64_t)(x + 0.5) : x > 0 ? UINT64_MAX : 0;
}

static double percent(double part, double all)
{
	return all > 0 ? 100.0 * part / all : 0;
}

/* --- how sure an estimate is --- */

/* How many samples of small objects would be as certain. */
static double worth(const struct alloc_sum *s)
{
	return s->variance > 0 ? s->bytes * s->bytes / s->variance : 1e12;
}

/*
 * The true value given that many samples has a gamma distribution; its quantiles by Wilson and
 * Hilferty's approximation.  z: -1.96 and 1.96 for the limits that hold in 95 % of all cases.
 */
static double limit(const struct alloc_sum *s, double z)
{
	double n = worth(s), root = 1 - 1 / (9 * n) + z / (3 * sqrt(n));

	return root > 0 ? s->bytes * root * root * root : 0;
}

static void add_sum(const struct work *w, const struct alloc_sum *s, struct an_value *v)
{
	an_add_uint(v, "bytes", whole(s->bytes));
	an_add_uint(v, "samples", s->samples);
	an_add_double(v, "percent", percent(s->bytes, w->a->sum.bytes), 2);
	an_add_uint(v, "large_bytes", whole(s->large_bytes));
	if (w->a->source != ALLOC_SAMPLED)
		return;
	an_add_uint(v, "objects", whole(s->objects));
	an_add_uint(v, "bytes_low", whole(limit(s, -1.96)));
	an_add_uint(v, "bytes_high", whole(limit(s, 1.96)));
}

static bool is_certain(const struct work *w, const struct alloc_sum *s)
{
	return w->a->source != ALLOC_SAMPLED || worth(s) >= MIN_SAMPLES;
}

/* --- tables --- */

static int compare_sums(const struct alloc_sum *x, const struct alloc_sum *y)
{
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return (x->samples < y->samples) - (x->samples > y->samples);
}

static int compare_types(const void *a, const void *b)
{
	const struct alloc_type *x = *(const struct alloc_type *const *)a;
	const struct alloc_type *y = *(const struct alloc_type *const *)b;
	int c = compare_sums(&x->sum, &y->sum);

	return c ? c : (x > y) - (x < y);
}

static int compare_pairs(const void *a, const void *b)
{
	const struct site_type *x = a, *y = b;
	int c = compare_sums(&x->sum, &y->sum);

	if (x->site != y->site)
		return x->site > y->site ? 1 : -1;
	return c ? c : (x->type > y->type) - (x->type < y->type);
}

struct ranked {
	const struct alloc_sum *sum;
	uint32_t index;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	int c = compare_sums(x->sum, y->sum);

	return c ? c : (x->index > y->index) - (x->index < y->index);
}

static enum nt_status find_site(struct work *w, struct nt_idmap *map, uint32_t node, uint32_t *ret)
{
	uint32_t place = w->sites.of[node];
	uint64_t key = an_sites_key(&w->sites, place);
	struct site *site;

	*ret = nt_idmap_get(map, key);
	if (*ret != NT_IDMAP_NONE)
		return NT_OK;
	site = an_mem_grow(w->a->shared->alloc, w->site, &w->site_cap, w->site_count + 1,
			   sizeof(*site));
	if (!site)
		return NT_ENOMEM;
	w->site = site;
	*ret = (uint32_t)w->site_count;
	site[w->site_count++] = (struct site){ .node = place };
	return nt_idmap_put(map, key, *ret);
}

static enum nt_status add_pair(struct work *w, struct nt_idmap *map, uint32_t site,
			       const struct alloc_cell *cell)
{
	uint64_t key = (uint64_t)site << 32 | cell->type;
	uint32_t at = nt_idmap_get(map, key);
	struct site_type *pair;

	if (at == NT_IDMAP_NONE) {
		pair = an_mem_grow(w->a->shared->alloc, w->pair, &w->pair_cap, w->pair_count + 1,
				   sizeof(*pair));
		if (!pair)
			return NT_ENOMEM;
		w->pair = pair;
		at = (uint32_t)w->pair_count;
		pair[w->pair_count++] = (struct site_type){ .site = site, .type = cell->type };
		if (nt_idmap_put(map, key, at) < 0)
			return NT_ENOMEM;
	}
	alloc_sum_add(&w->pair[at].sum, &cell->sum);
	return NT_OK;
}

static enum nt_status sum_sites(struct work *w)
{
	struct nt_idmap by_site, by_pair;
	enum nt_status st = NT_OK;

	nt_idmap_init(&by_site, w->a->shared->alloc);
	nt_idmap_init(&by_pair, w->a->shared->alloc);
	for (size_t i = 0; i < w->a->cell_count && st == NT_OK; i++) {
		const struct alloc_cell *cell = &w->a->cells[i];
		uint32_t site;

		if (cell->node == AN_NODE_NONE)
			continue;
		st = find_site(w, &by_site, cell->node, &site);
		if (st == NT_OK)
			st = add_pair(w, &by_pair, site, cell);
		if (st == NT_OK)
			alloc_sum_add(&w->site[site].sum, &cell->sum);
	}
	nt_idmap_done(&by_site);
	nt_idmap_done(&by_pair);
	if (st == NT_OK && w->pair_count)
		qsort(w->pair, w->pair_count, sizeof(*w->pair), compare_pairs);
	return st;
}

static enum nt_status order_sites(struct work *w)
{
	const struct nt_alloc *al = w->a->shared->alloc;
	struct ranked *ranked = an_mem_array(al, w->site_count, sizeof(*ranked));

	w->site_order = an_mem_array(al, w->site_count, sizeof(*w->site_order));
	if (!ranked || !w->site_order) {
		an_mem_free(al, ranked);
		return NT_ENOMEM;
	}
	for (size_t i = 0; i < w->site_count; i++)
		ranked[i] = (struct ranked){ &w->site[i].sum, (uint32_t)i };
	qsort(ranked, w->site_count, sizeof(*ranked), compare_ranked);
	for (size_t i = 0; i < w->site_count; i++)
		w->site_order[i] = ranked[i].index;
	an_mem_free(al, ranked);
	return NT_OK;
}

static enum nt_status order_types(struct work *w)
{
	w->types = an_mem_array(w->a->shared->alloc, w->a->type_count, sizeof(*w->types));
	if (!w->types)
		return NT_ENOMEM;
	for (size_t i = 0; i < w->a->type_count; i++)
		if (w->a->types[i].sum.samples)
			w->types[w->type_count++] = &w->a->types[i];
	if (w->type_count)
		qsort(w->types, w->type_count, sizeof(*w->types), compare_types);
	return NT_OK;
}

/* --- rows --- */

static void add_type_name(const struct work *w, const struct alloc_type *t, struct an_value *v)
{
	char id[24];

	if (t->named) {
		an_add_text(v, "type", an_textset_get(&w->a->names, t->text));
		return;
	}
	an_add_null(v, "type");
	snprintf(id, sizeof(id), "0x%" PRIx64, t->type_id);
	an_add_text(v, "type_id", id);
}

/* large: those with large objects only. */
static void add_types(const struct work *w, bool large, struct an_value *parent)
{
	struct an_value *list = an_add_array(parent, "types");
	size_t top = w->a->shared->options.top;

	for (size_t i = 0; i < w->type_count && list && (!top || list->count < top); i++) {
		const struct alloc_type *t = w->types[i];
		struct an_value *v;

		if (large ? !t->sum.large_samples : !is_certain(w, &t->sum))
			continue;
		v = an_add_object(list, NULL);
		add_type_name(w, t, v);
		if (!large) {
			add_sum(w, &t->sum, v);
			continue;
		}
		an_add_uint(v, "bytes", whole(t->sum.large_bytes));
		an_add_uint(v, "samples", t->sum.large_samples);
	}
}

/* The pairs are in the order of their sites. */
static void add_site_types(const struct work *w, uint32_t site, struct an_value *row)
{
	struct an_value *list = an_add_array(row, "types");
	size_t low = 0, high = w->pair_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (w->pair[mid].site < site)
			low = mid + 1;
		else
			high = mid;
	}
	for (size_t i = 0; i < SITE_TYPES && low + i < w->pair_count; i++) {
		const struct site_type *p = &w->pair[low + i];
		struct an_value *v;

		if (p->site != site)
			break;
		v = an_add_object(list, NULL);
		add_type_name(w, &w->a->types[p->type], v);
		an_add_uint(v, "bytes", whole(p->sum.bytes));
		an_add_uint(v, "samples", p->sum.samples);
	}
}

static void add_sites(const struct work *w, bool large, struct an_value *parent)
{
	size_t top = w->a->shared->options.top;
	struct an_value *list;

	if (!w->a->with_stack) {
		an_add_null(parent, "sites");
		return;
	}
	list = an_add_array(parent, "sites");
	for (size_t i = 0; i < w->site_count && list && (!top || list->count < top); i++) {
		uint32_t k = w->site_order[i];
		const struct site *s = &w->site[k];
		struct an_value *v;

		if (large ? !s->sum.large_samples : !is_certain(w, &s->sum))
			continue;
		v = an_add_object(list, NULL);
		an_sites_add(&w->sites, s->node, v);
		if (large) {
			an_add_uint(v, "bytes", whole(s->sum.large_bytes));
			an_add_uint(v, "samples", s->sum.large_samples);
			continue;
		}
		add_sum(w, &s->sum, v);
		add_site_types(w, k, v);
	}
}

/* Rows that rest on too few samples to say anything. */
static void add_hidden(const struct work *w, struct an_value *v)
{
	uint64_t types = 0, sites = 0;

	for (size_t i = 0; i < w->type_count; i++)
		types += !is_certain(w, &w->types[i]->sum);
	for (size_t i = 0; i < w->site_count; i++)
		sites += !is_certain(w, &w->site[i].sum);
	an_add_uint(v, "types_too_rare", types);
	an_add_uint(v, "sites_too_rare", sites);
}

static enum nt_status add_path(const struct work *w, struct an_value *parent)
{
	const struct an_shared *s = w->a->shared;
	struct an_hot_frame *frames;
	struct an_profile p;
	enum nt_status st = an_profile_init(&p, s);
	struct an_value *list = an_add_array(parent, "hot_path");
	size_t n = 0;

	if (st < 0)
		return st;
	for (size_t i = 0; i < w->a->cell_count; i++)
		if (w->a->cells[i].node != AN_NODE_NONE)
			an_profile_add(&p, w->a->cells[i].node, 0, whole(w->a->cells[i].sum.bytes));
	frames = an_mem_array(s->alloc, MAX_HOT_FRAMES, sizeof(*frames));
	st = frames ? an_profile_build(&p) : NT_ENOMEM;
	if (st == NT_OK)
		st = an_profile_hot_path(&p, 1, false, frames, MAX_HOT_FRAMES, &n);
	for (size_t i = 0; i < n; i++) {
		const struct an_profile_row *row = &p.rows[frames[i].row];
		struct an_value *v = an_add_object(list, NULL);
		char buf[NAME_BYTES];

		an_add_text(v, "method", an_profile_name(&p, row, buf, sizeof(buf)));
		an_add_text(v, "args", row->method ? row->method->args : "");
		an_add_uint(v, "inclusive_bytes", frames[i].total);
		an_add_uint(v, "exclusive_bytes", frames[i].self);
		an_add_double(v, "inclusive_percent",
			      percent((double)frames[i].total, w->a->sum.bytes), 2);
	}
	if (st == NT_OK)
		st = alloc_add_tree(s, &p, w->a->sum.bytes, parent);
	an_mem_free(s->alloc, frames);
	an_profile_done(&p);
	return st;
}

/* --- findings --- */

static const char *top_types(const struct work *w, struct an_report *out)
{
	const char *text = "";

	for (size_t i = 0; i < w->type_count && i < EVIDENCE_ROWS; i++) {
		const struct alloc_type *t = w->types[i];

		if (t->named)
			text = an_report_printf(out, "%s%s%.0f %% %s", text, *text ? ", " : "",
						percent(t->sum.bytes, w->a->sum.bytes),
						an_textset_get(&w->a->names, t->text));
	}
	return *text ? text : "types without names";
}

static const char *top_sites(const struct work *w, struct an_report *out)
{
	const char *text = "";

	for (size_t i = 0; i < w->site_count && i < EVIDENCE_ROWS; i++) {
		const struct site *s = &w->site[w->site_order[i]];
		char buf[NAME_BYTES];

		if (percent(s->sum.bytes, w->a->sum.bytes) < 1)
			break;
		text = an_report_printf(out, "%s%s%s (%.0f %%)", text, *text ? ", " : "; from ",
					an_sites_name(&w->sites, s->node, buf, sizeof(buf)),
					percent(s->sum.bytes, w->a->sum.bytes));
	}
	return text;
}

static void check_rate(const struct work *w, double seconds, struct an_report *out)
{
	double rate = w->a->sum.bytes / seconds;

	if (rate < (an_limit(w->a->shared, AN_LIMIT_ALLOC_RATE) * 1e6))
		return;
	an_add_finding(
		out, AN_WARNING, "alloc.rate",
		an_report_printf(out, "The program allocates %.0f MB a second", rate / 1e6),
		an_report_printf(out, "%.1f MB in %.2f s (%" PRIu64 " samples): %s%s",
				 w->a->sum.bytes / 1e6, seconds, w->a->sum.samples,
				 top_types(w, out), top_sites(w, out)),
		"Each byte has to be collected again. Reuse buffers (ArrayPool), avoid temporary "
		"strings and copies in the methods named here.");
}

static void check_large(const struct work *w, double seconds, struct an_report *out)
{
	const struct alloc_sum *s = &w->a->sum;
	double share = percent(s->large_bytes, s->bytes), rate = s->large_bytes / seconds;

	if (share < an_limit(w->a->shared, AN_LIMIT_ALLOC_LARGE) ||
	    rate < (an_limit(w->a->shared, AN_LIMIT_ALLOC_LARGE_RATE) * 1e6))
		return;
	an_add_finding(
		out, AN_WARNING, "alloc.large-objects",
		an_report_printf(out, "%.0f %% of the allocated bytes are large objects", share),
		an_report_printf(out,
				 "%.1f MB in %.2f s, %" PRIu64 " samples of 85,000 bytes and more",
				 s->large_bytes / 1e6, seconds, s->large_samples),
		"Large objects are freed by collections of generation 2 only. Rent them from an "
		"ArrayPool, or work in pieces; alloc.large_objects has their types and sites.");
}

static void findings(const struct work *w, struct an_report *out)
{
	int64_t observed = an_observed_ns(w->a->shared);

	if (observed < MIN_OBSERVED_MS * INT64_C(1000000))
		return;
	check_rate(w, (double)observed / 1e9, out);
	check_large(w, (double)observed / 1e9, out);
}

/* --- the section --- */

static void add_large(const struct work *w, struct an_value *parent)
{
	struct an_value *v = an_add_object(parent, "large_objects");

	an_add_uint(v, "bytes", whole(w->a->sum.large_bytes));
	an_add_uint(v, "samples", w->a->sum.large_samples);
	an_add_double(v, "percent", percent(w->a->sum.large_bytes, w->a->sum.bytes), 2);
	add_types(w, true, v);
	add_sites(w, true, v);
}

static void add_head(const struct work *w, struct an_value *v)
{
	const struct alloc *a = w->a;
	int64_t observed = an_observed_ns(a->shared);

	an_add_text(v, "source",
		    a->source == ALLOC_SAMPLED ? "allocation-sampled" : "allocation-tick");
	an_add_uint(v, "bytes", whole(a->sum.bytes));
	an_add_uint(v, "samples", a->sum.samples);
	if (a->source == ALLOC_SAMPLED) {
		an_add_uint(v, "objects", whole(a->sum.objects));
		an_add_uint(v, "bytes_low", whole(limit(&a->sum, -1.96)));
		an_add_uint(v, "bytes_high", whole(limit(&a->sum, 1.96)));
		an_add_uint(v, "ticks_ignored", a->ticks_ignored);
	} else {
		an_add_null(v, "objects");
		an_add_null(v, "bytes_low");
		an_add_null(v, "bytes_high");
	}
	if (observed > 0)
		an_add_uint(v, "rate_bytes_per_s", whole(a->sum.bytes * 1e9 / (double)observed));
	else
		an_add_null(v, "rate_bytes_per_s");
	an_add_uint(v, "samples_of_unnamed_types", a->unnamed);
	an_add_uint(v, "samples_without_site", a->sum.samples - a->with_stack + a->crowded);
	an_rate_report(&a->rate, observed, v, "over_time");
}

static enum nt_status add_section(struct work *w, struct an_report *out, struct an_value *v)
{
	enum nt_status st = sum_sites(w);

	if (st == NT_OK)
		st = order_sites(w);
	if (st == NT_OK)
		st = order_types(w);
	if (st < 0)
		return st;
	add_head(w, v);
	add_types(w, false, v);
	add_sites(w, false, v);
	add_hidden(w, v);
	add_large(w, v);
	findings(w, out);
	if (w->a->with_stack)
		return add_path(w, v);
	an_add_null(v, "hot_path");
	return NT_OK;
}

static void add_nothing(struct an_value *v)
{
	static const char *const names[] = { "source", "bytes", "samples",	 "rate_bytes_per_s",
					     "types",  "sites", "large_objects", "hot_path" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		an_add_null(v, names[i]);
}

enum nt_status alloc_report(const struct alloc *a, struct an_report *out)
{
	struct an_value *v = an_add_object(an_report_root(out), "alloc");
	const struct nt_alloc *al = a->shared->alloc;
	struct work w = { .a = a };
	enum nt_status st;

	if (a->source == ALLOC_NONE) {
		add_nothing(v);
		return NT_OK;
	}
	st = an_sites_init(&w.sites, a->shared);
	if (st == NT_OK)
		st = add_section(&w, out, v);
	an_sites_done(&w.sites);
	an_mem_free(al, w.site);
	an_mem_free(al, w.pair);
	an_mem_free(al, w.types);
	an_mem_free(al, w.site_order);
	return st;
}
