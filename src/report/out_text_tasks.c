/* SPDX-License-Identifier: MIT */

/* The section of the text report on asynchronous work that has not ended. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/report/out_text.h"

enum { CHAIN_ROWS = 12, INDENT = 9 };

static void put_counts(struct out *o, const struct an_value *tasks)
{
	char text[48];

	if (text_has(tasks, "operations_begun"))
		out_printf(o,
			   "  %" PRIu64 " operations began and %" PRIu64
			   " ended while it was recorded\n",
			   an_get_u64(tasks, "operations_begun", 0),
			   an_get_u64(tasks, "operations_ended", 0));
	text_number(tasks, "healthy", text, sizeof(text));
	if (an_get_u64(tasks, "healthy", 0))
		out_printf(o, "  %s more wait for a timer: no sign of trouble\n", text);
}

/* From the innermost wait outwards; one that only repeats the method says nothing. */
static void put_chain(struct out *o, const struct an_value *chain, const char *method, size_t top)
{
	size_t rows = text_rows(chain, top ? CHAIN_ROWS : 0);
	const struct an_value *v = rows ? chain->first : NULL;

	if (rows == 1 && v->kind == AN_TEXT && strcmp(v->text, method) == 0)
		return;
	for (size_t i = 0; i < rows; i++, v = v->next) {
		out_printf(o, "%*s%s", INDENT, "", i ? "<- " : "");
		text_put(o, TEXT_PLAIN, v->kind == AN_TEXT ? v->text : "?");
		out_char(o, '\n');
	}
	text_more(o, rows, chain, 0, "frames");
}

/* What the walks of the heap were, and what they cost. */
static void put_walks(struct out *o, const struct an_value *heap)
{
	const struct an_value *walks = an_get(heap, "walks");
	const struct an_value *v = text_first(walks, text_rows(walks, 0));
	char bytes[48], pause[48], start[48];

	for (; v; v = v->next) {
		text_bytes(v, "bytes", bytes, sizeof(bytes));
		text_ms(v, "pause_ms", pause, sizeof(pause));
		text_ms(v, "start_ms", start, sizeof(start));
		out_printf(o,
			   "  heap walk at %s: %" PRIu64
			   " objects, %s; the program stood still for %s\n",
			   start, an_get_u64(v, "objects", 0), bytes, pause);
		if (!an_get_u64(v, "complete", 0))
			out_text(o, "    not complete: what is pending may be more\n");
	}
}

/* The stack of a blocked thread: it stands above what it waits for. */
static void put_stack(struct out *o, const struct an_value *frames, size_t top)
{
	size_t rows = text_rows(frames, top ? CHAIN_ROWS : 0);
	const struct an_value *f = rows ? frames->first : NULL;

	if (!rows)
		return;
	out_printf(o, "%*sstack of the thread\n", INDENT, "");
	for (size_t i = 0; i < rows; i++, f = f->next) {
		out_printf(o, "%*s", INDENT + 2, "");
		text_put(o, TEXT_DIM, f->kind == AN_TEXT ? f->text : "?");
		out_char(o, '\n');
	}
	if (frames->count > rows)
		out_printf(o, "%*s... %zu more frames\n", INDENT + 2, "", frames->count - rows);
}

static void put_age(struct out *o, const struct an_value *v, uint64_t count)
{
	char age[48], youngest[48];

	if (!text_has(v, "age_ms"))
		return;
	text_ms(v, "age_ms", age, sizeof(age));
	text_ms(v, "youngest_ms", youngest, sizeof(youngest));
	if (count > 1 && text_has(v, "youngest_ms") && strcmp(age, youngest) != 0)
		out_printf(o, ", for %s to %s%s", youngest,
			   an_get_u64(v, "age_at_least", 0) ? "at least " : "", age);
	else
		out_printf(o, "%s for %s%s", count > 1 ? ", the oldest" : "",
			   an_get_u64(v, "age_at_least", 0) ? "at least " : "", age);
}

static void put_pending(struct out *o, const struct an_value *v, size_t top)
{
	uint64_t count = an_get_u64(v, "count", 1);
	const char *method = an_get_text(v, "method", "an unknown method");

	out_printf(o, "\n  %4" PRIu64 " x ", count);
	text_put(o, TEXT_BOLD, method);
	out_text(o, ": ");
	text_put(o, TEXT_PLAIN, an_get_text(v, "state", "pending"));
	put_age(o, v, count);
	if (text_has(v, "thread_id"))
		out_printf(o, ", thread %" PRIu64, an_get_u64(v, "thread_id", 0));
	out_char(o, '\n');
	put_stack(o, an_get(v, "frames"), top);
	put_chain(o, an_get(v, "chain"), method, top);
	if (text_has(v, "waiting_on"))
		text_wrap(o, INDENT, "waits for ", an_get_text(v, "waiting_on", ""));
	if (text_has(v, "kept_by"))
		text_wrap(o, INDENT, "kept alive by ", an_get_text(v, "kept_by", ""));
}

/* By two walks of the heap: what waits for a timer, or comes and goes. */
static bool gets_on(const struct an_value *v)
{
	const struct an_value *stuck = an_get(v, "stuck");

	return stuck && stuck->kind == AN_BOOL && !stuck->u &&
	       strcmp(an_get_text(v, "source", ""), "heap") == 0 &&
	       strcmp(an_get_text(v, "state", ""), "pending") == 0;
}

void text_tasks(struct out *o, const struct an_value *tasks, size_t top)
{
	const struct an_value *pending = an_get(tasks, "pending");
	size_t rows = text_rows(pending, top);
	const struct an_value *v = rows ? pending->first : NULL;
	uint64_t kinds = an_get_u64(tasks, "pending_kinds", rows), well = 0;

	text_head(o, "TASKS");
	if (!pending || pending->kind == AN_NULL) {
		out_text(o, "  not recorded\n");
		return;
	}
	put_counts(o, tasks);
	put_walks(o, an_get(tasks, "heap"));
	if (!rows)
		out_text(o, "  nothing else was pending when the recording ended\n");
	for (size_t i = 0; i < rows; i++, v = v->next) {
		if (gets_on(v))
			well += an_get_u64(v, "count", 1);
		else
			put_pending(o, v, top);
	}
	if (well)
		out_printf(o,
			   "\n  %" PRIu64 " more wait%s for a timer, or come and go: no sign of "
			   "trouble\n",
			   well, well == 1 ? "s" : "");
	if (kinds > rows)
		out_printf(o, "\n  ... %" PRIu64 " more kinds: --top 0 shows all that were kept\n",
			   kinds - rows);
}
