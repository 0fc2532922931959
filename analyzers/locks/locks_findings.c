/* SPDX-License-Identifier: MIT */

/* What stands out among locks.  The thresholds are in docs/findings.md. */

#include <inttypes.h>

#include "analyzers/locks/locks_internal.h"
#include "analyzers/stacks.h"

enum { MAX_FINDINGS = 3, MAX_NAMED = 4 };

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static const char *name_of(const struct an_method *m)
{
	return m ? m->name : "code without a name";
}

/* "thread 17 in Shop.A waits for a lock held by thread 18" */
static const char *describe(const struct locks *l, const struct lock_waiter *w,
			    struct an_report *out)
{
	const char *text = an_report_printf(out, "thread %" PRIu64 " in %s waits for a lock",
					    w->thread->id, name_of(lock_waiter_site(l, w)));

	if (w->owner_os)
		return an_report_printf(out, "%s held by thread %" PRIu64, text, w->owner_os);
	if (w->owner_managed)
		return an_report_printf(out, "%s held by managed thread %" PRIu64, text,
					w->owner_managed);
	return text;
}

/* --- cycles --- */

static const char *describe_cycle(const struct locks *l, const struct lock_graph *g,
				  const struct lock_cycle *c, struct an_report *out)
{
	const char *text = "";
	uint32_t w = c->first;

	for (uint32_t i = 0; i < c->length && i < MAX_NAMED; i++) {
		text = an_report_printf(out, "%s%s%s", text, i ? "; " : "",
					describe(l, &g->waiters[w], out));
		w = g->waiters[w].owner;
	}
	if (c->length > MAX_NAMED)
		text = an_report_printf(out, "%s; and so on, %" PRIu32 " threads in all", text,
					c->length);
	text = an_report_printf(out, "%s; for %.1f s", text, seconds(c->age_ns));
	if (c->queued)
		text = an_report_printf(out, "%s; %" PRIu32 " more wait behind them", text,
					c->queued);
	return text;
}

static void check_cycles(const struct locks *l, const struct lock_graph *g, struct an_report *out)
{
	size_t proven = 0, suspected = 0;

	for (size_t i = 0; i < g->cycle_count; i++) {
		const struct lock_cycle *c = &g->cycles[i];

		if (c->proven && proven++ < MAX_FINDINGS)
			an_add_finding(
				out, AN_CRITICAL, "locks.deadlock",
				an_report_printf(out,
						 "Deadlock: %" PRIu32
						 " threads wait for each other's locks for ever",
						 c->length),
				describe_cycle(l, g, c, out),
				"Only a restart helps this process. In the code, take these locks "
				"in the same order everywhere, or hold only one at a time.");
		if (c->suspected && suspected++ < MAX_FINDINGS)
			an_add_finding(
				out, AN_WARNING, "locks.suspected-deadlock",
				an_report_printf(out,
						 "%" PRIu32 " threads seem to wait for each "
						 "other's locks",
						 c->length),
				describe_cycle(l, g, c, out),
				"It is not proven: events were lost, or a lock changed hands after "
				"its owner was seen. Record again, from before it happens.");
	}
}

static void check_orphans(const struct locks *l, const struct lock_graph *g, struct an_report *out)
{
	const struct lock_waiter *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < g->waiter_count; i++) {
		if (!g->waiters[i].orphaned)
			continue;
		if (!first)
			first = &g->waiters[i];
		n++;
	}
	if (!first)
		return;
	an_add_finding(out, AN_CRITICAL, "locks.orphaned",
		       "A thread has ended and still holds a lock that others wait for",
		       an_report_printf(out, "%s; that thread has ended; %zu waiting, for %.1f s",
					describe(l, first, out), n, seconds(first->age_ns)),
		       "Nobody will ever release it. Look for Monitor.Enter without a finally "
		       "that exits, in what the ended thread ran.");
}

static void check_blocked(const struct locks *l, const struct lock_graph *g, struct an_report *out)
{
	const struct lock_waiter *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < g->waiter_count; i++) {
		const struct lock_waiter *w = &g->waiters[i];

		if (ms(w->age_ns) < an_limit(l->shared, AN_LIMIT_LOCKS_BLOCKED) ||
		    w->cycle != LOCK_NONE || w->orphaned)
			continue;
		if (!first)
			first = w; /* the longest wait */
		n++;
	}
	if (!first)
		return;
	an_add_finding(out, AN_WARNING, "locks.blocked",
		       n == 1 ? "A thread was still waiting for a lock when the recording ended"
			      : an_report_printf(out,
						 "%zu threads were still waiting for locks when "
						 "the recording ended",
						 n),
		       an_report_printf(out, "%s, for %.1f s", describe(l, first, out),
					seconds(first->age_ns)),
		       "Look at what the owner of the lock does meanwhile.");
}

/* --- contention --- */

enum grouping { BY_LOCK, BY_SITE };

static bool same_group(const struct lock_row *a, const struct lock_row *b, enum grouping by)
{
	return by == BY_LOCK ? a->lock == b->lock : a->site == b->site;
}

struct group {
	const struct lock_row *top;
	uint64_t count, ended, total_ns, max_ns;
};

/* The sum of all rows like row i, or false when an earlier one was of the same group. */
static bool sum_group(const struct lock_rows *rows, size_t i, enum grouping by, struct group *ret)
{
	*ret = (struct group){ .top = &rows->rows[i] };
	for (size_t k = 0; k < rows->count; k++) {
		const struct lock_row *r = &rows->rows[k];

		if (!same_group(r, ret->top, by))
			continue;
		if (k < i)
			return false;
		ret->count += r->starts;
		ret->ended += r->waits.count;
		ret->total_ns += r->waits.total_ns;
		if (r->waits.max_ns > ret->max_ns)
			ret->max_ns = r->waits.max_ns;
	}
	return true;
}

static void add_contention(const struct locks *l, const struct group *g, enum grouping by,
			   double share, struct an_report *out)
{
	const char *site = name_of(g->top->site);
	const char *evidence = an_report_printf(
		out,
		"%" PRIu64 " waits, %.1f ms in all, longest %.1f ms: at any time %.2f "
		"threads stood there on average",
		g->count, ms(g->total_ns), ms(g->max_ns), share);

	if (by == BY_LOCK && !l->pairs_full)
		evidence = an_report_printf(out, "%s; %" PRIu32 " threads took part", evidence,
					    l->locks[g->top->lock].threads);
	an_add_finding(
		out, AN_WARNING, "locks.contention",
		by == BY_LOCK ? an_report_printf(out, "Threads wait for one lock, most in %s", site)
			      : an_report_printf(out, "Threads wait for locks in %s", site),
		evidence,
		"Do less while holding it, split it, or use a lock-free or "
		"reader-friendly structure. held_in says where its owners were.");
}

static size_t check_groups(const struct locks *l, const struct lock_rows *rows, enum grouping by,
			   struct an_report *out)
{
	double observed = (double)an_observed_ns(l->shared);
	size_t found = 0;

	for (size_t i = 0; observed > 0 && i < rows->count && found < MAX_FINDINGS; i++) {
		struct group g;
		double share;

		if (!sum_group(rows, i, by, &g))
			continue;
		share = (double)g.total_ns / observed;
		if ((double)g.count < an_limit(l->shared, AN_LIMIT_LOCKS_CONTENTION_COUNT) ||
		    ms(g.total_ns) < an_limit(l->shared, AN_LIMIT_LOCKS_CONTENTION_TIME) ||
		    100 * share < an_limit(l->shared, AN_LIMIT_LOCKS_CONTENTION))
			continue;
		add_contention(l, &g, by, share, out);
		found++;
	}
	return found;
}

static void check_convoys(const struct locks *l, const struct lock_rows *rows,
			  struct an_report *out)
{
	const struct lock *worst = NULL;
	const struct lock_row *row = NULL;

	for (size_t i = 0; i < l->lock_count; i++)
		if (l->locks[i].convoys && (!worst || l->locks[i].convoy_ns > worst->convoy_ns))
			worst = &l->locks[i];
	if (!worst)
		return;
	for (size_t i = 0; i < rows->count && !row; i++)
		if (&l->locks[rows->rows[i].lock] == worst)
			row = &rows->rows[i];
	an_add_finding(
		out, AN_WARNING, "locks.convoy",
		an_report_printf(out, "Threads queue up at a lock that is never free, most in %s",
				 name_of(row ? row->site : NULL)),
		an_report_printf(out,
				 "the queue did not empty for up to %.1f ms, %.1f ms in %" PRIu32
				 " times; up to %" PRIu32 " threads waited",
				 ms(worst->convoy_max_ns), ms(worst->convoy_ns), worst->convoys,
				 worst->waiting_max),
		"Each thread does a little and queues again: the lock sets the pace. Make what "
		"it guards shorter, or take it less often, for more work at once.");
}

void locks_findings(const struct locks *l, const struct lock_graph *g, const struct lock_rows *rows,
		    struct an_report *out)
{
	check_cycles(l, g, out);
	check_orphans(l, g, out);
	locks_check_stuck(l, out);
	check_blocked(l, g, out);
	if (!check_groups(l, rows, BY_LOCK, out))
		check_groups(l, rows, BY_SITE, out);
	check_convoys(l, rows, out);
}
