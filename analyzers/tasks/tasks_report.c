/* SPDX-License-Identifier: MIT */

/* The tasks section of the report, and its findings. */

#include <inttypes.h>

#include "analyzers/grow.h"
#include "analyzers/stacks.h"
#include "analyzers/tasks/tasks_internal.h"

enum { MAX_CHAIN_SHOWN = 65 };

static const char *state_name(enum tasks_state s)
{
	static const char *const names[] = { "awaiting", "blocked", "queued", "running", "ready" };

	return names[s];
}

static double ms(int64_t ns)
{
	return (double)ns / 1e6;
}

/* --- the section --- */

static const char *rule_name(const struct tasks *t, const struct tasks_row *row);

static void add_row(const struct tasks *t, const struct tasks_row *row, struct an_value *list)
{
	const struct an_stacks stacks = { .shared = t->shared };
	const char *rule = rule_name(t, row);
	struct an_value *v = an_add_object(list, NULL), *chain;

	if (row->task_id)
		an_add_uint(v, "task_id", row->task_id);
	else
		an_add_null(v, "task_id");
	an_add_text(v, "method", row->method);
	an_add_text(v, "state", state_name(row->state));
	an_add_double(v, "age_ms", ms(row->age_ns), 1);
	an_add_double(v, "youngest_ms", ms(row->youngest_ns), 1);
	an_add_bool(v, "age_at_least", row->age_at_least);
	an_add_uint(v, "count", row->count);
	chain = an_add_array(v, "chain");
	for (size_t i = 0; i < row->chain_count && i < MAX_CHAIN_SHOWN; i++)
		an_add_text(chain, NULL, row->chain[i]);
	an_add_text(v, "waiting_on", row->waiting_on);
	if (row->thread == UINT64_MAX)
		an_add_null(v, "thread_id");
	else
		an_add_uint(v, "thread_id", row->thread);
	if (row->state == TASKS_AWAITING || row->state == TASKS_RUNNING)
		an_add_bool(v, "stuck", rule != NULL);
	else
		an_add_null(v, "stuck");
	if (rule)
		an_add_text(v, "rule", rule);
	else
		an_add_null(v, "rule");
	if (row->node != AN_NODE_NONE)
		an_stack_add(&stacks, row->node, MAX_CHAIN_SHOWN, v, "frames");
	an_add_text(v, "source", "events");
}

static void add_section(const struct tasks *t, const struct tasks_rows *r, struct an_value *v)
{
	size_t top = t->shared->options.top;
	size_t heap_rows = an_heap_tasks_count(t->heap);
	bool walked = an_heap_tasks_facts(t->heap, 0) != NULL;
	struct an_value *list;

	an_add_bool(v, "recorded", t->recorded);
	if (!t->recorded && !r->count && !walked) {
		an_add_null(v, "pending");
	} else {
		list = an_add_array(v, "pending");
		for (size_t i = 0; i < r->count && (!top || i < top); i++)
			add_row(t, &r->rows[i], list);
		an_heap_tasks_add_rows(t->heap, list, top);
	}
	an_add_known(v, "pending_kinds", t->recorded || r->count || walked,
		     r->count + r->not_kept + heap_rows);
	an_add_known(v, "healthy", t->recorded, r->healthy);
	an_add_known(v, "operations_begun", t->operations, t->begun);
	an_add_known(v, "operations_ended", t->operations, t->ended);
	an_add_known(v, "scheduled", t->recorded, t->scheduled);
	an_add_known(v, "started", t->recorded, t->started);
	an_add_known(v, "abandoned", t->recorded, t->abandoned);
	an_add_known(v, "untracked", t->recorded, t->table.untracked);
	an_heap_tasks_add_facts(t->heap, v);
}

/* --- findings --- */

/* "A <- B <- C": from the innermost wait outwards. */
static const char *chain_text(const struct tasks_row *row, struct an_report *out)
{
	enum { SHOWN = 6 };
	const char *text = "";

	for (size_t i = 0; i < row->chain_count && i < SHOWN; i++)
		text = an_report_printf(out, "%s%s%s", text, i ? " <- " : "", row->chain[i]);
	if (row->chain_count > SHOWN)
		text = an_report_printf(out, "%s <- ... (%zu more)", text,
					row->chain_count - SHOWN);
	return text;
}

/* Why a row is said to be stuck: its rule. */
enum rule { RULE_NONE, RULE_NONE_ENDED, RULE_LONGER };

static const struct task_op_name *kind_of(const struct tasks *t, const struct tasks_row *row)
{
	return row->op_name == TASK_NO_NAME ? NULL : &t->names[row->op_name];
}

/* Of work that awaits, or runs: older than anything has to be, and out of line with its kind. */
static enum rule find_rule(const struct tasks *t, const struct tasks_row *row)
{
	const struct task_op_name *kind = kind_of(t, row);

	if ((row->state != TASKS_AWAITING && row->state != TASKS_RUNNING) || row->timer ||
	    row->cycle || ms(row->age_ns) < an_limit(t->shared, AN_LIMIT_TASKS_STUCK))
		return RULE_NONE;
	if (!kind || !kind->ended)
		return row->state == TASKS_RUNNING ? RULE_NONE : RULE_NONE_ENDED;
	return (double)row->age_ns > an_limit(t->shared, AN_LIMIT_TASKS_STUCK_TIMES) *
					     (double)kind->longest_ns
		       ? RULE_LONGER
		       : RULE_NONE;
}

static const char *rule_name(const struct tasks *t, const struct tasks_row *row)
{
	static const char *const names[] = { NULL, "none-ended", "longer-than-ended" };

	return names[find_rule(t, row)];
}

/* "1.2 to 3.0 s" */
static const char *ages(const struct tasks_row *row, struct an_report *out)
{
	const char *least = row->age_at_least ? "at least " : "";

	if (row->count > 1)
		return an_report_printf(out, "%.1f to %s%.1f s", ms(row->youngest_ns) / 1e3, least,
					ms(row->age_ns) / 1e3);
	return an_report_printf(out, "%s%.1f s", least, ms(row->age_ns) / 1e3);
}

static const char *explain(const struct tasks *t, const struct tasks_row *row, enum rule rule,
			   struct an_report *out)
{
	const struct task_op_name *kind = kind_of(t, row);

	if (rule == RULE_LONGER)
		return an_report_printf(out,
					"longer than %.0f times the longest of its kind that ended "
					"(%.1f ms; %" PRIu64 " ended)",
					an_limit(t->shared, AN_LIMIT_TASKS_STUCK_TIMES),
					ms(kind->longest_ns), kind->ended);
	if (kind)
		return an_report_printf(out, "none of its kind has ended (%" PRIu64 " begun)",
					kind->begun);
	return "none of its kind was seen to end";
}

static void add_stuck(const struct tasks *t, const struct tasks_row *row, enum rule rule,
		      struct an_report *out)
{
	an_add_finding(out, AN_WARNING, "tasks.stuck",
		       row->count == 1
			       ? an_report_printf(out, "A call of %s does not get on", row->method)
			       : an_report_printf(out, "%" PRIu64 " calls of %s do not get on",
						  row->count, row->method),
		       an_report_printf(out, "for %s: %s; waits: %s; the innermost waits for %s",
					ages(row, out), explain(t, row, rule, out),
					chain_text(row, out), row->waiting_on),
		       "Look at the innermost method of the chain: what it awaits is never "
		       "completed, or is slow.");
}

static void add_long(const struct tasks *t, const struct tasks_row *row, struct an_report *out)
{
	an_add_finding(
		out, AN_INFO, "tasks.long-running",
		row->count == 1
			? an_report_printf(out, "A task of %s runs unusually long", row->method)
			: an_report_printf(out, "%" PRIu64 " tasks of %s run unusually long",
					   row->count, row->method),
		an_report_printf(out, "for %s: %s", ages(row, out),
				 explain(t, row, RULE_LONGER, out)),
		"Their threads' stacks say what they do: drdotnet-trace stack, or section cpu.");
}

static void add_blocked(const struct tasks *t, const struct tasks_row *row, struct an_report *out)
{
	an_add_finding(
		out,
		row->starved || (double)row->count >=
					an_limit(t->shared, AN_LIMIT_TASKS_SYNC_CRITICAL)
			? AN_CRITICAL
			: AN_WARNING,
		"tasks.sync-over-async",
		row->count == 1
			? an_report_printf(out,
					   "Thread %" PRIu64 " is blocked in %s until a task ends",
					   row->thread, row->method)
			: an_report_printf(out,
					   "%" PRIu64 " threads are blocked in %s until tasks end",
					   row->count, row->method),
		an_report_printf(out, "the longest for %s%.0f ms; waits for %s%s%s%s",
				 row->age_at_least ? "at least " : "", ms(row->age_ns),
				 row->waiting_on, row->chain_count ? "; chain: " : "",
				 chain_text(row, out),
				 row->starved ? "; what it waits for is ready and only needs a "
						"thread"
					      : ""),
		"Await the task instead of .Result or .Wait(): a blocked pool thread cannot run "
		"the work that would release it.");
}

static void add_queued(const struct tasks *t, const struct tasks_row *row, struct an_report *out)
{
	an_add_finding(out, AN_WARNING, "tasks.queued",
		       an_report_printf(out, "%" PRIu64 " tasks of %s are queued and not started",
					row->count, row->method),
		       an_report_printf(out,
					"the oldest for %.0f ms; %" PRIu64 " scheduled, %" PRIu64
					" started",
					ms(row->age_ns), t->scheduled, t->started),
		       "The thread pool does not keep up: its threads are blocked or busy.");
}

static void check_rows(const struct tasks *t, const struct tasks_rows *r, struct an_report *out)
{
	enum { MAX_FINDINGS = 10 };
	size_t n = 0;

	for (size_t i = 0; i < r->count && n < MAX_FINDINGS; i++) {
		const struct tasks_row *row = &r->rows[i];

		n++;
		if (row->cycle)
			an_add_finding(out, AN_CRITICAL, "tasks.deadlock",
				       "Tasks wait for each other in a circle",
				       chain_text(row, out),
				       "None of them can ever go on: break the circle.");
		else if (row->state == TASKS_BLOCKED &&
			 ms(row->age_ns) >= an_limit(t->shared, AN_LIMIT_TASKS_SYNC))
			add_blocked(t, row, out);
		else if (row->state == TASKS_QUEUED &&
			 (double)row->count >= an_limit(t->shared, AN_LIMIT_TASKS_QUEUED) &&
			 ms(row->age_ns) >= an_limit(t->shared, AN_LIMIT_TASKS_QUEUED_AGE))
			add_queued(t, row, out);
		else if (row->state == TASKS_RUNNING && find_rule(t, row) != RULE_NONE)
			add_long(t, row, out);
		else if (find_rule(t, row) != RULE_NONE)
			add_stuck(t, row, find_rule(t, row), out);
		else
			n--;
	}
}

static void check_limits(const struct tasks *t, struct an_report *out)
{
	bool walked = an_heap_tasks_facts(t->heap, 0) != NULL;

	if (!t->recorded && walked)
		return;
	if (!t->recorded) {
		an_add_finding(
			out, AN_INFO, "tasks.not-recorded",
			"Pending asynchronous work is not known: no task events were recorded",
			"no events of System.Threading.Tasks.TplEventSource in the trace",
			"To see stuck tasks and what they wait for, record with the tasks "
			"profile.");
		return;
	}
	if (!walked)
		an_add_finding(
			out, AN_INFO, "tasks.older-invisible",
			"Tasks pending since before the recording are invisible to events",
			t->operations || t->shared->runtime_major != 3
				? an_report_printf(out,
						   "%" PRIu64 " operations begun and %" PRIu64
						   " ended while recording",
						   t->begun, t->ended)
				: "the runtime (.NET Core 3.1 or older) does not tell when "
				  "operations begin and end",
			"What got stuck earlier and was not touched since leaves no event. Record "
			"from the start of the trouble, or take a heap snapshot.");
	if (t->abandoned)
		an_add_finding(out, AN_WARNING, "tasks.abandoned",
			       an_report_printf(out,
						"%" PRIu64
						" async methods were thrown away before they ended",
						t->abandoned),
			       "IncompleteAsyncMethod events: nobody held them any more",
			       "What they awaited was never completed.");
	if (t->table.untracked)
		an_add_finding(
			out, AN_WARNING, "tasks.too-many",
			"More tasks were pending than memory was set aside for",
			an_report_printf(out, "%" PRIu64 " not followed", t->table.untracked),
			"Record for a shorter time.");
}

/* Those by which tasks show themselves: TaskTransfer, Tasks, AsyncCausalityOperation. */
enum { KEYWORDS_TPL = 0x1 | 0x2 | 0x8 };

enum nt_status tasks_report(struct tasks *t, struct an_report *out)
{
	struct tasks_rows rows;
	enum nt_status st;

	/* NativeAOT may lack the event source whatever was asked for. */
	if (!t->recorded && !an_looks_native(t->shared))
		t->recorded = an_was_enabled(t->shared, "System.Threading.Tasks.TplEventSource",
					     KEYWORDS_TPL, 5);
	st = tasks_rows_make(&rows, t);
	if (st == NT_OK)
		st = an_heap_tasks_finish(t->heap);
	if (st == NT_OK) {
		add_section(t, &rows, an_add_object(an_report_root(out), "tasks"));
		check_rows(t, &rows, out);
		an_heap_tasks_add_findings(t->heap, out);
		check_limits(t, out);
	}
	tasks_rows_done(&rows);
	return st;
}
