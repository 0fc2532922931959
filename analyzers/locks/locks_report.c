/* SPDX-License-Identifier: MIT */

/* The section "locks" of the report. */

#include <stdlib.h>

#include "analyzers/grow.h"
#include "analyzers/locks/locks_internal.h"
#include "analyzers/stacks.h"

enum { MAX_ROWS = 1000, MAX_FRAMES = 24, MAX_HELD = 5 };

static size_t row_limit(const struct locks *l)
{
	size_t top = l->shared->options.top;

	return top && top < MAX_ROWS ? top : MAX_ROWS;
}

const struct an_method *lock_waiter_site(const struct locks *l, const struct lock_waiter *w)
{
	uint32_t site = w->thread->site;

	return site == LOCK_NONE ? NULL : an_stack_place(&l->stacks, l->sites[site].node);
}

/* --- rows: one lock at one method --- */

static void merge_owners(struct lock_row *row, const struct lock_site *s)
{
	row->owner_unknown += s->owner_unknown;
	row->owner_other += s->owner_other;
	for (size_t i = 0; i < LOCK_OWNERS && s->owners[i].count; i++) {
		size_t k = 0;

		while (k < LOCK_OWNERS && row->owners[k].count &&
		       row->owners[k].id != s->owners[i].id)
			k++;
		if (k == LOCK_OWNERS) {
			row->owner_other += s->owners[i].count;
			continue;
		}
		row->owners[k].id = s->owners[i].id;
		row->owners[k].count += s->owners[i].count;
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct lock_row *x = a, *y = b;

	if (x->waits.total_ns != y->waits.total_ns)
		return x->waits.total_ns < y->waits.total_ns ? 1 : -1;
	if (x->starts != y->starts)
		return x->starts < y->starts ? 1 : -1;
	if (x->lock != y->lock)
		return x->lock > y->lock ? 1 : -1;
	return (x->node > y->node) - (x->node < y->node);
}

static void rows_done(const struct locks *l, struct lock_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		an_spread_done(&rows->rows[i].waits, l->shared->alloc);
	an_mem_free(l->shared->alloc, rows->rows);
}

static enum nt_status rows_init(const struct locks *l, struct lock_rows *rows)
{
	const struct nt_alloc *al = l->shared->alloc;
	struct nt_idmap by_key;
	enum nt_status st = NT_OK;

	*rows = (struct lock_rows){ .rows = an_mem_array(al, l->site_count, sizeof(*rows->rows)) };
	if (!rows->rows)
		return NT_ENOMEM;
	nt_idmap_init(&by_key, al);
	for (size_t i = 0; i < l->site_count && st == NT_OK; i++) {
		const struct lock_site *s = &l->sites[i];
		const struct an_method *m = an_stack_place(&l->stacks, s->node);
		uint64_t key = (uint64_t)s->lock << 32 | (m ? m->index + 1u : 0u);
		uint32_t k = nt_idmap_get(&by_key, key);
		struct lock_row *row;

		if (k == NT_IDMAP_NONE) {
			k = (uint32_t)rows->count;
			st = nt_idmap_put(&by_key, key, k);
			if (st < 0)
				break;
			rows->rows[rows->count++] =
				(struct lock_row){ .lock = s->lock, .node = s->node, .site = m };
		}
		row = &rows->rows[k];
		row->starts += s->starts;
		row->open += s->open;
		merge_owners(row, s);
		st = an_spread_merge(&row->waits, al, &s->waits);
	}
	nt_idmap_done(&by_key);
	if (st < 0)
		rows_done(l, rows);
	else if (rows->count)
		qsort(rows->rows, rows->count, sizeof(*rows->rows), compare_rows);
	return st;
}

/* --- contention --- */

static const char *kind_of(const struct locks *l, const struct lock_row *row)
{
	if (l->locks[row->lock].native)
		return "native";
	return an_stack_lock_frame(&l->stacks, row->node) == AN_LOCK_LOCK ? "lock" : "monitor";
}

static void add_thread_ids(struct an_value *v, const char *os_name, const char *managed_name,
			   uint64_t os, uint64_t managed)
{
	if (os)
		an_add_uint(v, os_name, os);
	else
		an_add_null(v, os_name);
	if (managed)
		an_add_uint(v, managed_name, managed);
	else
		an_add_null(v, managed_name);
}

static void add_owners(const struct locks *l, const struct lock_row *row, struct an_value *v)
{
	struct an_value *list = an_add_array(v, "owners");

	for (size_t i = 0; i < LOCK_OWNERS && row->owners[i].count; i++) {
		struct an_value *o = an_add_object(list, NULL);
		uint64_t managed, os = lock_owner_os(l, row->owners[i].id, &managed);

		add_thread_ids(o, "thread_id", "managed_id", os, managed);
		an_add_uint(o, "count", row->owners[i].count);
	}
	an_add_uint(v, "owners_other", row->owner_other);
	an_add_uint(v, "owners_unknown", row->owner_unknown);
}

/* In which methods the lock was held while others waited: the most sampled ones. */
static void add_held_in(const struct locks *l, uint32_t lock, struct an_value *v)
{
	struct {
		const struct an_method *method;
		uint64_t samples;
	} rows[64];
	size_t n = 0;
	struct an_value *list = an_add_array(v, "held_in");

	for (size_t i = 0; i < l->holder_count; i++) {
		const struct lock_holder *h = &l->holders[i];
		const struct an_method *m;
		size_t k = 0;

		if (h->lock != lock || h->reading != l->reading)
			continue;
		m = an_stack_place(&l->stacks, h->node);
		while (k < n && rows[k].method != m)
			k++;
		if (k == sizeof(rows) / sizeof(rows[0]))
			continue;
		if (k == n) {
			rows[n].method = m;
			rows[n++].samples = 0;
		}
		rows[k].samples += h->samples;
	}
	for (size_t shown = 0; shown < n && shown < MAX_HELD; shown++) {
		struct an_value *o = an_add_object(list, NULL);
		size_t best = 0;

		for (size_t k = 1; k < n; k++)
			if (rows[k].samples > rows[best].samples)
				best = k;
		an_add_method(o, "method", rows[best].method);
		an_add_uint(o, "samples", rows[best].samples);
		rows[best].samples = 0;
	}
}

static void add_row(const struct locks *l, struct lock_row *row, struct an_value *list)
{
	const struct lock *k = &l->locks[row->lock];
	struct an_value *v = an_add_object(list, NULL);

	an_add_hex(v, "lock", k->id);
	an_add_hex(v, "object", k->object);
	an_add_text(v, "kind", k->shared ? "other" : kind_of(l, row));
	an_add_method(v, "site", row->site);
	an_add_uint(v, "count", row->starts);
	an_add_uint(v, "still_waiting", row->open);
	if (row->waits.count) {
		an_add_ms(v, "total_ms", row->waits.total_ns);
		an_add_ms(v, "max_ms", row->waits.max_ns);
		an_add_ms(v, "p99_ms", an_spread_percentile(&row->waits, 99));
	} else { /* none has ended yet */
		an_add_null(v, "total_ms");
		an_add_null(v, "max_ms");
		an_add_null(v, "p99_ms");
	}
	if (l->pairs_full)
		an_add_null(v, "threads");
	else
		an_add_uint(v, "threads", k->threads);
	an_add_uint(v, "waiting_max", k->waiting_max);
	add_owners(l, row, v);
	add_held_in(l, row->lock, v);
	an_stack_add(&l->stacks, row->node, MAX_FRAMES, v, "frames");
}

static void add_contention(const struct locks *l, struct lock_rows *rows, struct an_value *v)
{
	struct an_value *list;

	an_add_uint(v, "count", l->starts);
	an_add_uint(v, "ended", l->stops);
	if (l->stops) {
		an_add_ms(v, "total_ms", l->total_ns);
		an_add_ms(v, "max_ms", l->max_ns);
	} else {
		an_add_null(v, "total_ms");
		an_add_null(v, "max_ms");
	}
	an_add_uint(v, "locks", l->lock_count);
	an_add_uint(v, "started_before", l->stops_without_start);
	list = an_add_array(v, "contention");
	for (size_t i = 0; i < rows->count && i < row_limit(l); i++)
		add_row(l, &rows->rows[i], list);
	an_add_uint(v, "contention_rows", rows->count);
	an_add_uint(v, "not_told_apart",
		    l->locks_dropped + l->sites_dropped + l->threads_dropped + l->holders_dropped);
}

/* --- who waits for whom --- */

static void add_waiter(const struct locks *l, const struct lock_waiter *w, bool frames,
		       struct an_value *list)
{
	const struct lock *k = &l->locks[w->thread->lock];
	const struct an_thread_id *id = an_thread_by_os(&l->ids, w->thread->id);
	struct an_value *v = an_add_object(list, NULL);

	add_thread_ids(v, "thread_id", "managed_id", w->thread->id, id ? id->managed : 0);
	an_add_method(v, "method", lock_waiter_site(l, w));
	an_add_hex(v, "lock", k->id);
	add_thread_ids(v, "owner_thread_id", "owner_managed_id", w->owner_os, w->owner_managed);
	an_add_double(v, "since_ms", (double)w->thread->since_ns / 1e6, 3);
	an_add_ms(v, "waiting_ms", w->age_ns);
	if (frames && w->thread->site != LOCK_NONE)
		an_stack_add(&l->stacks, l->sites[w->thread->site].node, MAX_FRAMES, v, "frames");
}

static void add_cycle(const struct locks *l, const struct lock_graph *g, uint32_t number,
		      struct an_value *list)
{
	const struct lock_cycle *c = &g->cycles[number];
	struct an_value *v = an_add_object(list, NULL), *threads, *locks, *queued;
	size_t limit = row_limit(l);
	uint32_t w = c->first;

	an_add_uint(v, "length", c->length);
	an_add_ms(v, "waiting_ms", c->age_ns);
	threads = an_add_array(v, "threads");
	locks = an_add_array(v, "locks");
	for (uint32_t i = 0; i < c->length && i < limit; i++) {
		add_waiter(l, &g->waiters[w], true, threads);
		an_add_hex(locks, NULL, l->locks[g->waiters[w].thread->lock].id);
		w = g->waiters[w].owner;
	}
	an_add_uint(v, "queued_count", c->queued);
	queued = an_add_array(v, "queued");
	for (size_t i = 0; c->queued && i < g->waiter_count && queued && queued->count < limit; i++)
		if (g->waiters[i].cycle == number && !g->waiters[i].member)
			add_waiter(l, &g->waiters[i], false, queued);
}

static void add_graph(const struct locks *l, const struct lock_graph *g, struct an_value *v)
{
	struct an_value *proven = an_add_array(v, "deadlocks");
	struct an_value *suspected = an_add_array(v, "suspected_deadlocks");
	struct an_value *orphaned = an_add_array(v, "orphaned");
	struct an_value *waiting = an_add_array(v, "waiting");
	size_t limit = row_limit(l);

	for (uint32_t i = 0; i < g->cycle_count; i++) {
		struct an_value *list = g->cycles[i].proven ? proven : suspected;

		if (list && list->count < limit && (g->cycles[i].proven || g->cycles[i].suspected))
			add_cycle(l, g, i, list);
	}
	for (size_t i = 0; i < g->waiter_count; i++) {
		const struct lock_waiter *w = &g->waiters[i];

		if (w->orphaned && orphaned && orphaned->count < limit)
			add_waiter(l, w, true, orphaned);
		if (waiting && waiting->count < limit)
			add_waiter(l, w, false, waiting);
	}
	an_add_uint(v, "waiting_count", g->waiter_count);
}

/* --- the rest --- */

static void add_convoys(const struct locks *l, struct an_value *v)
{
	struct an_value *list = an_add_array(v, "convoys");

	for (size_t i = 0; i < l->lock_count && list && list->count < row_limit(l); i++) {
		const struct lock *k = &l->locks[i];
		struct an_value *row;

		if (!k->convoys)
			continue;
		row = an_add_object(list, NULL);
		an_add_hex(row, "lock", k->id);
		an_add_uint(row, "count", k->convoys);
		an_add_ms(row, "total_ms", k->convoy_ns);
		an_add_ms(row, "max_ms", k->convoy_max_ns);
		an_add_uint(row, "waiting_max", k->waiting_max);
	}
}

/* Threads that stood at a lock all the time: they began before the session. */
static void add_stuck(const struct locks *l, struct an_value *v)
{
	struct an_value *list = an_add_array(v, "stuck_since_start");

	for (size_t i = 0; i < l->thread_count && list && list->count < row_limit(l); i++) {
		const struct lock_thread *t = &l->threads[i];
		struct an_value *row;

		if (!lock_thread_is_stuck(l, t))
			continue;
		row = an_add_object(list, NULL);
		an_add_uint(row, "thread_id", t->id);
		an_add_method(row, "method", an_stack_place(&l->stacks, t->node));
		an_add_bool(row, "lock_frame", lock_thread_is_stuck(l, t) == STUCK_BY_FRAME);
		an_add_ms(row, "at_least_ms", an_ns_between(t->first_sample_ns, t->last_sample_ns));
		an_stack_add(&l->stacks, t->node, MAX_FRAMES, row, "frames");
	}
}

struct wait_row {
	const struct an_method *site, *call;
	uint64_t starts, open, total_ns, max_ns;
};

static int compare_waits(const void *a, const void *b)
{
	const struct wait_row *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	if (x->starts != y->starts)
		return x->starts < y->starts ? 1 : -1;
	return (x->site->index > y->site->index) - (x->site->index < y->site->index);
}

/* By method and the call it waits in; waits of the runtime's own threads are left out. */
static size_t merge_waits(const struct locks *l, struct wait_row *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < l->wait_count; i++) {
		const struct lock_wait_site *w = &l->waits[i];
		const struct an_method *site = an_stack_site(&l->stacks, w->node);
		const struct an_method *call = an_stack_call(&l->stacks, w->node);
		size_t k = 0;

		if (!site)
			continue;
		while (k < n && (rows[k].site != site || rows[k].call != call))
			k++;
		if (k == n)
			rows[n++] = (struct wait_row){ .site = site, .call = call };
		rows[k].starts += w->starts;
		rows[k].open += w->open;
		rows[k].total_ns += w->waits.total_ns;
		if (w->waits.max_ns > rows[k].max_ns)
			rows[k].max_ns = w->waits.max_ns;
	}
	if (n)
		qsort(rows, n, sizeof(*rows), compare_waits);
	return n;
}

static enum nt_status add_waits(const struct locks *l, struct an_value *v)
{
	struct wait_row *rows;
	struct an_value *list;
	size_t n;

	if (!l->waits_recorded) {
		an_add_null(v, "waits");
		return NT_OK;
	}
	rows = an_mem_array(l->shared->alloc, l->wait_count, sizeof(*rows));
	if (!rows)
		return NT_ENOMEM;
	n = merge_waits(l, rows);
	list = an_add_array(v, "waits");
	for (size_t i = 0; i < n && i < row_limit(l); i++) {
		struct an_value *row = an_add_object(list, NULL);

		an_add_method(row, "site", rows[i].site);
		an_add_method(row, "call", rows[i].call);
		an_add_uint(row, "count", rows[i].starts);
		an_add_uint(row, "still_waiting", rows[i].open);
		an_add_ms(row, "total_ms", rows[i].total_ns);
		an_add_ms(row, "max_ms", rows[i].max_ns);
	}
	an_mem_free(l->shared->alloc, rows);
	return NT_OK;
}

/* No event may mean that no thread ever had to wait, or that nobody asked: both are unknown. */
static void add_nothing(struct an_value *v)
{
	static const char *const names[] = {
		"count",
		"ended",
		"total_ms",
		"max_ms",
		"contention",
		"deadlocks",
		"suspected_deadlocks",
		"orphaned",
		"waiting",
		"convoys",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		an_add_null(v, names[i]);
}

enum nt_status locks_report(struct locks *l, struct an_report *out)
{
	struct an_value *v = an_add_object(an_report_root(out), "locks");
	struct lock_rows rows;
	struct lock_graph g;
	enum nt_status st = an_stacks_init(&l->stacks, l->shared);

	if (st == NT_OK)
		st = rows_init(l, &rows);
	if (st < 0)
		return st;
	st = lock_graph_init(&g, l, an_observed_ns(l->shared));
	if (st < 0) {
		rows_done(l, &rows);
		return st;
	}
	if (l->starts || l->stops) {
		add_contention(l, &rows, v);
		add_graph(l, &g, v);
		add_convoys(l, v);
	} else {
		add_nothing(v);
	}
	add_stuck(l, v);
	st = add_waits(l, v);
	locks_findings(l, &g, &rows, out);
	lock_graph_done(&g, l);
	rows_done(l, &rows);
	return st;
}
