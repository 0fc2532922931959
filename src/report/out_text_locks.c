/* SPDX-License-Identifier: MIT */

/* Sections of the text report on waiting: locks, the thread pool, threads. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/report/out_text.h"

enum { FRAME_ROWS = 16, QUEUED_ROWS = 8, WAITING_ROWS = 8 };

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* The innermost frame first; not where they only repeat the method. */
static void put_frames(struct out *o, const struct an_value *v, size_t top)
{
	const struct an_value *frames = an_get(v, "frames");
	size_t rows = text_rows(frames, top ? FRAME_ROWS : 0);
	const struct an_value *f = text_first(frames, rows);

	if (rows < 2)
		return;
	for (size_t i = 0; i < rows; i++, f = f->next) {
		out_text(o, "           ");
		text_put(o, TEXT_PLAIN, f->kind == AN_TEXT ? f->text : "?");
		out_char(o, '\n');
	}
	if (frames->count > rows)
		out_printf(o, "           ... %zu more frames\n", frames->count - rows);
}

/* --- locks --- */

/* "thread 7 in Shop.Till.Open waits for lock 0x10 held by thread 8" */
static void put_waiter(struct out *o, const struct an_value *v)
{
	char ms[48];

	out_printf(o, "    thread %" PRIu64 "  ", an_get_u64(v, "thread_id", 0));
	text_put(o, TEXT_BOLD, an_get_text(v, "method", "?"));
	out_printf(o, "  waits for lock %s", an_get_text(v, "lock", "?"));
	if (text_has(v, "owner_thread_id"))
		out_printf(o, " held by thread %" PRIu64, an_get_u64(v, "owner_thread_id", 0));
	else if (text_has(v, "owner_managed_id"))
		out_printf(o, " held by managed thread %" PRIu64,
			   an_get_u64(v, "owner_managed_id", 0));
	text_ms(v, "waiting_ms", ms, sizeof(ms));
	out_printf(o, ", for %s\n", ms);
}

static void put_waiters(struct out *o, const struct an_value *list, size_t max, bool frames,
			size_t top)
{
	size_t rows = text_rows(list, top ? max : 0);
	const struct an_value *v = text_first(list, rows);

	for (size_t i = 0; i < rows; i++, v = v->next) {
		put_waiter(o, v);
		if (frames)
			put_frames(o, v, top);
	}
	text_more(o, rows, list, 0, "threads");
}

static void put_cycles(struct out *o, const struct an_value *list, const char *what, size_t top)
{
	size_t rows = text_rows(list, top);
	const struct an_value *v = text_first(list, rows);

	for (size_t i = 0; i < rows; i++, v = v->next) {
		out_printf(o, "\n  %s of %" PRIu64 " threads\n", what, an_get_u64(v, "length", 0));
		put_waiters(o, an_get(v, "threads"), top, true, top);
		if (!an_get_u64(v, "queued_count", 0))
			continue;
		out_printf(o, "    %" PRIu64 " more wait behind them\n",
			   an_get_u64(v, "queued_count", 0));
		put_waiters(o, an_get(v, "queued"), QUEUED_ROWS, false, top);
	}
}

static void put_contention_rows(struct out *o, const struct an_value *list, size_t top)
{
	size_t rows = text_rows(list, top);
	const struct an_value *v = text_first(list, rows);
	struct table t;

	if (!rows)
		return;
	text_table(o, &t, "rrrrrllll",
		   (const char *const[]){ "waits", "total", "longest", "p99", "threads", "kind",
					  "lock", "waiting in", "held in", NULL });
	for (size_t i = 0; i < rows; i++, v = v->next) {
		const struct an_value *held = an_get(v, "held_in");

		text_cell_number(&t, v, "count");
		text_cell_ms(&t, v, "total_ms");
		text_cell_ms(&t, v, "max_ms");
		text_cell_ms(&t, v, "p99_ms");
		text_cell_number(&t, v, "threads");
		table_cell(&t, "%s", an_get_text(v, "kind", "-"));
		table_cell(&t, "%s", an_get_text(v, "lock", "-"));
		table_cell(&t, "%s", an_get_text(v, "site", "?"));
		table_cell(&t, "%s",
			   held && held->count ? an_get_text(held->first, "method", "?") : "-");
	}
	table_print(&t, o, true);
	text_more(o, rows, list, top, "places");
}

static void put_stuck(struct out *o, const struct an_value *list, size_t top)
{
	size_t rows = text_rows(list, top);
	const struct an_value *v = text_first(list, rows);
	char ms[48];

	if (!rows)
		return;
	out_text(o, "\n  threads that stood at a lock from the first sample to the last\n");
	for (size_t i = 0; i < rows; i++, v = v->next) {
		text_ms(v, "at_least_ms", ms, sizeof(ms));
		out_printf(o, "    thread %" PRIu64 "  ", an_get_u64(v, "thread_id", 0));
		text_put(o, TEXT_BOLD, an_get_text(v, "method", "?"));
		out_printf(o, ", for %s at least\n", ms);
		put_frames(o, v, top);
	}
	text_more(o, rows, list, top, "threads");
}

static void put_waits(struct out *o, const struct an_value *list, size_t top)
{
	size_t rows = text_rows(list, top);
	const struct an_value *v = text_first(list, rows);
	struct table t;

	if (!rows)
		return;
	out_text(o, "\n  other waits\n");
	table_init(&t, "rrrrll");
	table_cell(&t, "waits");
	table_cell(&t, "open");
	table_cell(&t, "total");
	table_cell(&t, "longest");
	table_cell(&t, "waiting in");
	table_cell(&t, "call");
	for (size_t i = 0; i < rows; i++, v = v->next) {
		text_cell_number(&t, v, "count");
		text_cell_number(&t, v, "still_waiting");
		text_cell_ms(&t, v, "total_ms");
		text_cell_ms(&t, v, "max_ms");
		table_cell(&t, "%s", an_get_text(v, "site", "?"));
		table_cell(&t, "%s", an_get_text(v, "call", "-"));
	}
	table_print(&t, o, true);
	text_more(o, rows, list, top, "places");
}

static void put_contention(struct out *o, const struct an_value *locks)
{
	uint64_t waits = an_get_u64(locks, "count", 0);
	uint64_t different = an_get_u64(locks, "locks", 0);
	char total[48], max[48];

	text_ms(locks, "total_ms", total, sizeof(total));
	text_ms(locks, "max_ms", max, sizeof(max));
	out_printf(o, "  %" PRIu64 " wait%s for %" PRIu64 " lock%s", waits, plural(waits),
		   different, plural(different));
	if (text_has(locks, "total_ms"))
		out_printf(o, "; %" PRIu64 " ended, after %s in all, the longest after %s",
			   an_get_u64(locks, "ended", 0), total, max);
	out_printf(o, "; %" PRIu64 " still waiting at the end\n",
		   an_get_u64(locks, "waiting_count", 0));
}

void text_locks(struct out *o, const struct an_value *locks, size_t top)
{
	text_head(o, "LOCKS");
	if (!text_has(locks, "count")) {
		out_text(o, "  no thread waited for a lock, or it was not recorded\n");
	} else {
		put_contention(o, locks);
		put_cycles(o, an_get(locks, "deadlocks"), "deadlock", top);
		put_cycles(o, an_get(locks, "suspected_deadlocks"), "possible deadlock", top);
		if (text_rows(an_get(locks, "orphaned"), 0)) {
			out_text(o, "\n  locks of threads that have ended\n");
			put_waiters(o, an_get(locks, "orphaned"), top, true, top);
		}
		put_contention_rows(o, an_get(locks, "contention"), top);
		if (!text_rows(an_get(locks, "deadlocks"), 0) &&
		    text_rows(an_get(locks, "waiting"), 0)) {
			out_text(o, "\n  still waiting at the end\n");
			put_waiters(o, an_get(locks, "waiting"), WAITING_ROWS, false, top);
		}
	}
	put_stuck(o, an_get(locks, "stuck_since_start"), top);
	put_waits(o, an_get(locks, "waits"), top);
}

/* --- the thread pool --- */

static void put_starvation(struct out *o, const struct an_value *pool)
{
	const struct an_value *v = an_get(pool, "starvation");
	char ms[48];

	if (!v || v->kind != AN_BOOL)
		return;
	out_printf(o, "  starved     %s", v->u ? "yes" : "no sign of it");
	if (an_get_f64(pool, "evidence.blocked_ms", 0) > 0) {
		text_ms(pool, "evidence.blocked_ms", ms, sizeof(ms));
		out_printf(o, ": for %s all workers waited, about %.0f of them", ms,
			   an_get_f64(pool, "evidence.blocked_workers", 0));
	}
	out_char(o, '\n');
}

static void put_adjustments(struct out *o, const struct an_value *pool)
{
	const struct an_value *reasons = an_get(pool, "adjustments.by_reason");
	const struct an_value *v = reasons ? reasons->first : NULL;

	if (!text_has(pool, "adjustments.workers_last"))
		return;
	out_printf(o,
		   "  threads     from %" PRIu64 " to %" PRIu64 ", at most %" PRIu64 "; %" PRIu64
		   " changes:",
		   an_get_u64(pool, "adjustments.workers_first", 0),
		   an_get_u64(pool, "adjustments.workers_last", 0),
		   an_get_u64(pool, "adjustments.workers_max", 0),
		   an_get_u64(pool, "adjustments.count", 0));
	for (; v; v = v->next)
		out_printf(o, "%s %s %" PRIu64, v == reasons->first ? "" : ",", v->name, v->u);
	out_char(o, '\n');
}

static void put_queue(struct out *o, const struct an_value *pool)
{
	char text[48];

	if (!text_has(pool, "queue"))
		return;
	out_printf(o, "  queue       %" PRIu64 " items queued, %" PRIu64 " of them started",
		   an_get_u64(pool, "queue.queued", 0), an_get_u64(pool, "queue.started", 0));
	if (text_has(pool, "queue.p95_ms")) {
		text_ms(pool, "queue.p95_ms", text, sizeof(text));
		out_printf(o, ", 95 %% within %s", text);
	}
	out_printf(o, "; %" PRIu64 " still waiting", an_get_u64(pool, "queue.waiting", 0));
	if (text_has(pool, "queue.oldest_ms")) {
		text_ms(pool, "queue.oldest_ms", text, sizeof(text));
		out_printf(o, ", the oldest for %s", text);
	}
	out_char(o, '\n');
}

static void put_settings(struct out *o, const struct an_value *list)
{
	const struct an_value *v = list && list->kind == AN_ARRAY ? list->first : NULL;
	char ms[48];

	for (; v; v = v->next) {
		text_ms(v, "time_ms", ms, sizeof(ms));
		out_printf(o,
			   "  settings    at %s: %" PRIu64 " to %" PRIu64 " workers, %" PRIu64
			   " to %" PRIu64 " for input and output\n",
			   ms, an_get_u64(v, "min_workers", 0), an_get_u64(v, "max_workers", 0),
			   an_get_u64(v, "min_io", 0), an_get_u64(v, "max_io", 0));
	}
}

static void put_blockers(struct out *o, const struct an_value *list, size_t top)
{
	size_t rows = text_rows(list, top);
	const struct an_value *v = text_first(list, rows);

	if (!rows)
		return;
	out_text(o, "\n  where workers waited\n");
	for (size_t i = 0; i < rows; i++, v = v->next) {
		out_printf(o, "  %6" PRIu64 " thread%s  ", an_get_u64(v, "threads", 0),
			   plural(an_get_u64(v, "threads", 0)));
		text_put(o, TEXT_BOLD, an_get_text(v, "method", "?"));
		if (text_has(v, "call")) {
			out_text(o, "  in ");
			text_put(o, TEXT_PLAIN, an_get_text(v, "call", ""));
		}
		out_printf(o, "  (%" PRIu64 " samples)\n", an_get_u64(v, "samples", 0));
		if (i == 0)
			put_frames(o, v, top);
	}
	text_more(o, rows, list, top, "places");
}

void text_threadpool(struct out *o, const struct an_value *pool, size_t top)
{
	text_head(o, "THREAD POOL");
	if (!text_has(pool, "starvation") && !text_has(pool, "queue")) {
		out_text(o, "  not recorded\n");
		return;
	}
	put_starvation(o, pool);
	put_adjustments(o, pool);
	put_queue(o, pool);
	put_settings(o, an_get(pool, "settings"));
	put_blockers(o, an_get(pool, "blockers"), top);
}

/* --- threads --- */

static void put_groups(struct out *o, const struct an_value *list, const char *what, size_t top)
{
	size_t rows = text_rows(list, top);
	const struct an_value *v = text_first(list, rows);
	struct table t;

	if (!rows)
		return;
	out_printf(o, "\n  %s\n", what);
	table_init(&t, "rrrlll");
	table_cell(&t, "threads");
	table_cell(&t, "new");
	table_cell(&t, "oldest");
	table_cell(&t, "began in");
	table_cell(&t, "waits in");
	table_cell(&t, "started by");
	for (size_t i = 0; i < rows; i++, v = v->next) {
		text_cell_number(&t, v, "threads");
		text_cell_number(&t, v, "created_in_session");
		text_cell_ms(&t, v, "oldest_ms");
		table_cell(&t, "%s", an_get_text(v, "method", "?"));
		table_cell(&t, "%s", an_get_text(v, "call", "-"));
		table_cell(&t, "%s", an_get_text(v, "started_by", "-"));
	}
	table_print(&t, o, true);
	text_more(o, rows, list, top, "groups");
}

void text_threads(struct out *o, const struct an_value *threads, size_t top)
{
	char text[48];

	text_head(o, "THREADS");
	if (!text_has(threads, "created") && !text_has(threads, "sampled_at_end") &&
	    !text_has(threads, "alive_at_end")) {
		out_text(o, "  not recorded\n");
		return;
	}
	if (text_has(threads, "created"))
		out_printf(o, "  %" PRIu64 " created, %" PRIu64 " ended\n",
			   an_get_u64(threads, "created", 0), an_get_u64(threads, "ended", 0));
	else
		out_text(o, "  how many came and went was not recorded\n");
	if (text_has(threads, "growth_per_minute")) {
		text_number(threads, "growth_per_minute", text, sizeof(text));
		out_printf(o, "  %s more each minute, at that rate\n", text);
	}
	if (text_has(threads, "alive_at_end"))
		out_printf(o, "  %" PRIu64 " alive at the end\n",
			   an_get_u64(threads, "alive_at_end", 0));
	if (text_has(threads, "sampled_at_end"))
		out_printf(o, "  %" PRIu64 " with managed code on their stack at the end\n",
			   an_get_u64(threads, "sampled_at_end", 0));
	put_groups(o, an_get(threads, "leaked"), "started, and waiting ever since", top);
	put_groups(o, an_get(threads, "parked"), "waiting all the time, many alike", top);
}
