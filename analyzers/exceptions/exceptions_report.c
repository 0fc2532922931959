/* SPDX-License-Identifier: MIT */

/* The section about exceptions, and its findings. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzers/exceptions/exceptions_internal.h"
#include "analyzers/grow.h"
#include "analyzers/names.h"

enum {
	NAME_BYTES = 512,
	THROW_FRAMES = 4, /* innermost frames among which an async re-raise shows */
	MAX_CATCHERS_SHOWN = 5,
	CUT_NS = 1000 * 1000 * 1000,
};

struct ex_site {
	uint32_t type, node;
	uint64_t count, thrown;
};

struct ex_sum {
	uint64_t async, again; /* events that are no new exceptions */
};

struct ex_work {
	struct exceptions *x;
	struct an_sites sites;
	struct ex_site *site; /* by type, most thrown first */
	size_t site_count, site_cap;
	struct ex_sum *sums; /* by type */
	struct ex_sum all;
	uint32_t *order; /* types, most events first */
};

/* --- sums --- */

/* Whether the exception was thrown by what carries it from a task to who awaits it. */
static bool is_carried(const struct an_calltree *tree, uint32_t node)
{
	static const char carrier[] =
		"System.Runtime.ExceptionServices.ExceptionDispatchInfo.Throw";

	for (int i = 0; i < THROW_FRAMES && node != AN_NODE_NONE; i++) {
		const struct an_method *m = an_calltree_method(tree, node);

		if (m && !strncmp(m->raw, carrier, sizeof(carrier) - 1))
			return true;
		node = an_calltree_node(tree, node)->parent;
	}
	return false;
}

static enum nt_status find_site(struct ex_work *w, struct nt_idmap *map, const struct ex_cell *cell,
				struct ex_site **ret)
{
	uint32_t place = w->sites.of[cell->node], at;
	uint64_t key = an_sites_key(&w->sites, place) * UINT64_C(0x9e3779b97f4a7c15) + cell->type;
	struct ex_site *site;

	at = nt_idmap_get(map, key);
	if (at == NT_IDMAP_NONE) {
		site = an_mem_grow(w->x->shared->alloc, w->site, &w->site_cap, w->site_count + 1,
				   sizeof(*site));
		if (!site)
			return NT_ENOMEM;
		w->site = site;
		at = (uint32_t)w->site_count;
		site[w->site_count++] = (struct ex_site){ .type = cell->type, .node = place };
		if (nt_idmap_put(map, key, at) < 0)
			return NT_ENOMEM;
	}
	*ret = &w->site[at];
	return NT_OK;
}

static int compare_sites(const void *a, const void *b)
{
	const struct ex_site *x = a, *y = b;

	if (x->type != y->type)
		return x->type > y->type ? 1 : -1;
	if (x->thrown != y->thrown)
		return x->thrown < y->thrown ? 1 : -1;
	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (x->node > y->node) - (x->node < y->node);
}

static enum nt_status sum_cells(struct ex_work *w)
{
	struct nt_idmap map;
	enum nt_status st = NT_OK;

	nt_idmap_init(&map, w->x->shared->alloc);
	for (size_t i = 0; i < w->x->cell_count && st == NT_OK; i++) {
		const struct ex_cell *cell = &w->x->cells[i];
		bool carried = is_carried(w->x->shared->tree, cell->node);
		struct ex_sum *sum = &w->sums[cell->type];
		struct ex_site *site;

		sum->async += carried ? cell->count : 0;
		sum->again += carried ? 0 : cell->repeats;
		if (cell->node == AN_NODE_NONE)
			continue;
		st = find_site(w, &map, cell, &site);
		if (st < 0)
			break;
		site->count += cell->count;
		site->thrown += carried ? 0 : cell->count - cell->repeats;
	}
	nt_idmap_done(&map);
	if (st == NT_OK && w->site_count)
		qsort(w->site, w->site_count, sizeof(*w->site), compare_sites);
	for (size_t i = 0; i < w->x->type_count; i++) {
		w->all.async += w->sums[i].async;
		w->all.again += w->sums[i].again;
	}
	return st;
}

struct ranked {
	uint64_t count;
	uint32_t index;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (x->index > y->index) - (x->index < y->index);
}

static enum nt_status order_types(struct ex_work *w)
{
	const struct nt_alloc *al = w->x->shared->alloc;
	size_t n = w->x->type_count;
	struct ranked *ranked = an_mem_array(al, n, sizeof(*ranked));

	w->order = an_mem_array(al, n, sizeof(*w->order));
	if (!ranked || !w->order) {
		an_mem_free(al, ranked);
		return NT_ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		ranked[i] = (struct ranked){ w->x->types[i].count, (uint32_t)i };
	qsort(ranked, n, sizeof(*ranked), compare_ranked);
	for (size_t i = 0; i < n; i++)
		w->order[i] = ranked[i].index;
	an_mem_free(al, ranked);
	return NT_OK;
}

/* --- rows --- */

static void add_messages(struct ex_type *t, struct an_value *v)
{
	struct an_value *list;
	size_t best = 0;

	for (size_t i = 1; i < t->message_count; i++)
		if (t->messages[i].count > t->messages[best].count)
			best = i;
	an_add_text(v, "message", t->message_count ? t->messages[best].text : "");
	list = an_add_array(v, "messages");
	for (size_t i = 0; i < t->message_count; i++) {
		struct an_value *row = an_add_object(list, NULL);

		an_add_text(row, "text", t->messages[i].text);
		an_add_uint(row, "count", t->messages[i].count);
	}
	an_add_uint(v, "other_messages", t->other_messages);
}

static void add_sites(const struct ex_work *w, uint32_t type, struct an_value *v)
{
	size_t top = w->x->shared->options.top, low = 0, high = w->site_count;
	struct an_value *list = an_add_array(v, "sites");

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (w->site[mid].type < type)
			low = mid + 1;
		else
			high = mid;
	}
	for (size_t i = low; i < w->site_count && w->site[i].type == type; i++) {
		struct an_value *row;

		if (!list || (top && list->count >= top))
			break;
		row = an_add_object(list, NULL);
		an_sites_add(&w->sites, w->site[i].node, row);
		an_add_uint(row, "count", w->site[i].count);
		an_add_uint(row, "thrown", w->site[i].thrown);
	}
}

/* "void [Shop] Shop.Exceptions::Run(valuetype ...)" for people. */
static void add_catcher(const char *text, struct an_value *row)
{
	struct an_perf_name parts;
	char name[NAME_BYTES];

	an_name_split_perf(an_slice_of(text), &parts);
	an_name_tidy(parts.type, parts.method, name, sizeof(name));
	if (*name)
		an_add_text(row, "method", name);
	else
		an_add_null(row, "method");
	an_add_text(row, "raw", text);
}

/* Those with most first; only few are wanted, so the rest stays unsorted. */
static void add_catchers(const struct exceptions *x, uint32_t type, struct an_value *v)
{
	struct an_value *list;
	uint64_t below = UINT64_MAX;
	size_t last = SIZE_MAX;

	if (!x->handling_recorded) {
		an_add_null(v, "caught_by");
		return;
	}
	list = an_add_array(v, "caught_by");
	for (size_t shown = 0; shown < MAX_CATCHERS_SHOWN; shown++) {
		size_t best = SIZE_MAX;
		struct an_value *row;

		for (size_t i = 0; i < x->catch_count; i++) {
			const struct ex_catch *c = &x->catches[i];

			if (c->type != type || c->count > below ||
			    (c->count == below && last != SIZE_MAX && i <= last))
				continue;
			if (best == SIZE_MAX || c->count > x->catches[best].count)
				best = i;
		}
		if (best == SIZE_MAX)
			return;
		row = an_add_object(list, NULL);
		add_catcher(an_textset_get(&x->catchers, x->catches[best].method), row);
		an_add_uint(row, "count", x->catches[best].count);
		below = x->catches[best].count;
		last = best;
	}
}

static void add_handling(const struct exceptions *x, const struct ex_type *t, struct an_value *v)
{
	if (!x->handling_recorded) {
		an_add_null(v, "caught");
		return;
	}
	an_add_uint(v, "caught", t->caught);
	an_add_double(v, "handling_total_ms", (double)t->handling_ns / 1e6, 4);
	an_add_double(v, "handling_max_ms", (double)t->handling_max_ns / 1e6, 4);
}

static void add_type(const struct ex_work *w, uint32_t type, struct an_value *list)
{
	struct ex_type *t = &w->x->types[type];
	const struct ex_sum *sum = &w->sums[type];
	struct an_value *v = an_add_object(list, NULL);
	char hresult[16];

	an_add_text(v, "type", an_textset_get(&w->x->names, t->name));
	snprintf(hresult, sizeof(hresult), "0x%08" PRIx32, t->hresult);
	an_add_text(v, "hresult", hresult);
	an_add_uint(v, "count", t->count);
	an_add_uint(v, "thrown", t->count - sum->async - sum->again);
	an_add_uint(v, "rethrown_async", sum->async);
	an_add_uint(v, "rethrown", sum->again);
	an_add_uint(v, "with_inner", t->inner);
	an_add_uint(v, "nested", t->nested);
	add_handling(w->x, t, v);
	add_messages(t, v);
	add_sites(w, type, v);
	add_catchers(w->x, type, v);
}

/* --- findings --- */

static uint64_t all_thrown(const struct ex_work *w)
{
	return w->x->count - w->all.async - w->all.again;
}

/*
 * The busiest second was counted before names were known, with re-raises that only the stack
 * tells: their share is taken off.
 */
static uint64_t peak(const struct ex_work *w)
{
	uint64_t counted = w->x->count - w->x->repeats, thrown = all_thrown(w);

	if (!counted || thrown >= counted)
		return w->x->rate.peak;
	return (uint64_t)((double)w->x->rate.peak * (double)thrown / (double)counted + 0.5);
}

static const char *name_site(const struct ex_work *w, uint32_t type, struct an_report *out)
{
	char buf[NAME_BYTES];

	for (size_t i = 0; i < w->site_count; i++)
		if (w->site[i].type == type)
			return an_report_printf(
				out, " in %s",
				an_sites_name(&w->sites, w->site[i].node, buf, sizeof(buf)));
	return "";
}

static void check_storm(const struct ex_work *w, struct an_report *out)
{
	uint64_t most = peak(w);
	const struct ex_type *t;

	if ((double)most < an_limit(w->x->shared, AN_LIMIT_EXCEPTIONS_STORM) || !w->x->type_count)
		return;
	t = &w->x->types[w->order[0]];
	an_add_finding(
		out,
		(double)most >= an_limit(w->x->shared, AN_LIMIT_EXCEPTIONS_STORM_CRITICAL)
			? AN_CRITICAL
			: AN_WARNING,
		"exceptions.storm",
		an_report_printf(out, "%" PRIu64 " exceptions were thrown within one second", most),
		an_report_printf(out,
				 "%" PRIu64 " new exceptions in all, and %" PRIu64
				 " thrown again; most often %s%s: \"%s\"",
				 all_thrown(w), w->all.async + w->all.again,
				 an_textset_get(&w->x->names, t->name),
				 name_site(w, w->order[0], out),
				 t->message_count ? t->messages[0].text : ""),
		"Each costs tens of microseconds and more in deep stacks. Test for the condition "
		"instead of catching it (TryParse, TryGetValue), or fix what fails all the time.");
}

/* The stream was cut while nobody had caught the last exception of a thread. */
static void check_unhandled(const struct ex_work *w, struct an_report *out)
{
	const struct exceptions *x = w->x;

	if (!x->handling_recorded || !nt_decoder_borrow_error(x->shared->decoder))
		return;
	for (size_t i = 0; i < x->thread_count; i++) {
		const struct ex_thread *t = &x->threads[i];

		if (!t->pending || t->type == NT_IDMAP_NONE ||
		    an_elapsed(t->time_ns, x->shared->last_ns) > CUT_NS)
			continue;
		an_add_finding(out, AN_CRITICAL, "exceptions.unhandled",
			       an_report_printf(out,
						"The recording ends right after an exception that "
						"nobody caught: %s",
						an_textset_get(&x->names, x->types[t->type].name)),
			       an_report_printf(out, "thrown at %.3f ms by thread %" PRIu64 "%s",
						(double)t->time_ns / 1e6, t->id,
						name_site(w, t->type, out)),
			       "An unhandled exception ends the process. See its exit code (134 is "
			       "SIGABRT) and what it wrote to standard error.");
		return;
	}
}

/* --- the section --- */

static void add_head(const struct ex_work *w, struct an_value *v)
{
	const struct exceptions *x = w->x;
	int64_t observed = an_observed_ns(x->shared);

	an_add_uint(v, "count", x->count);
	an_add_uint(v, "thrown", all_thrown(w));
	an_add_uint(v, "rethrown_async", w->all.async);
	an_add_uint(v, "rethrown", w->all.again);
	an_add_uint(v, "peak_per_s", peak(w));
	if (observed > 0)
		an_add_double(v, "rate_per_s", (double)all_thrown(w) * 1e9 / (double)observed, 2);
	else
		an_add_null(v, "rate_per_s");
	if (x->handling_recorded) {
		an_add_uint(v, "caught", x->caught);
		an_add_uint(v, "passed_on", x->passed_on);
		an_add_uint(v, "finally_blocks", x->finally);
		an_add_uint(v, "filters", x->filters);
		an_add_uint(v, "thrown_in_catch", x->in_catch);
		an_add_uint(v, "deepest_nesting", x->deepest);
	} else {
		an_add_null(v, "caught");
	}
	an_add_uint(v, "of_other_types", x->other_types);
	an_add_uint(v, "without_site", x->crowded);
	an_rate_report(&x->rate, observed, v, "over_time");
}

static enum nt_status add_section(struct ex_work *w, struct an_report *out, struct an_value *v)
{
	size_t top = w->x->shared->options.top;
	struct an_value *list;
	enum nt_status st = sum_cells(w);

	if (st == NT_OK)
		st = order_types(w);
	if (st < 0)
		return st;
	add_head(w, v);
	list = an_add_array(v, "types");
	for (size_t i = 0; i < w->x->type_count && (!top || i < top); i++)
		add_type(w, w->order[i], list);
	check_storm(w, out);
	check_unhandled(w, out);
	return NT_OK;
}

enum { KEYWORD_EXCEPTION = 0x8000 };

enum nt_status exceptions_report(struct exceptions *x, struct an_report *out)
{
	struct an_value *v = an_add_object(an_report_root(out), "exceptions");
	const struct nt_alloc *al = x->shared->alloc;
	struct ex_work w = { .x = x };
	enum nt_status st;

	if (!x->count && !x->handling_recorded &&
	    !an_was_enabled(x->shared, "Microsoft-Windows-DotNETRuntime", KEYWORD_EXCEPTION, 2)) {
		an_add_null(v, "count");
		an_add_null(v, "types");
		return NT_OK;
	}
	st = an_sites_init(&w.sites, x->shared);
	w.sums = an_mem_array(al, x->type_count, sizeof(*w.sums));
	if (st == NT_OK && !w.sums)
		st = NT_ENOMEM;
	if (st == NT_OK)
		st = add_section(&w, out, v);
	an_sites_done(&w.sites);
	an_mem_free(al, w.site);
	an_mem_free(al, w.sums);
	an_mem_free(al, w.order);
	return st;
}
