/* SPDX-License-Identifier: MIT */

/* What the trace itself is: the summary of the report, and events --count. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/report/out_text.h"
#include "src/report/report_out.h"

static void row(struct table *t, const char *name, const char *value)
{
	table_cell(t, "%s", name);
	table_cell(t, "%s", value);
}

/* "linux x64, 4 processors" and the like: what is known of several members. */
static void join(char *buf, size_t size, const char *text)
{
	size_t n = strlen(buf);

	if (*text)
		snprintf(buf + n, size - n, "%s%s", n ? ", " : "", text);
}

static void put_process(struct table *t, const struct an_value *trace)
{
	char text[1024] = "", pid[32];

	text_number(trace, "process_id", pid, sizeof(pid));
	if (text_has(trace, "process_id"))
		join(text, sizeof(text), pid);
	join(text, sizeof(text), an_get_text(trace, "command_line", ""));
	row(t, "process", *text ? text : "not recorded");
	text[0] = '\0';
	join(text, sizeof(text), an_get_text(trace, "runtime", ""));
	join(text, sizeof(text), an_get_text(trace, "os", ""));
	join(text, sizeof(text), an_get_text(trace, "arch", ""));
	if (!*text)
		join(text, sizeof(text), "not recorded");
	if (text_has(trace, "processors")) {
		char n[32];

		snprintf(n, sizeof(n), "%" PRIu64 " processors",
			 an_get_u64(trace, "processors", 0));
		join(text, sizeof(text), n);
	}
	row(t, "runtime", text);
}

static void put_recording(struct table *t, const struct an_value *trace)
{
	char text[256], duration[48];

	text_ms(trace, "duration_ms", duration, sizeof(duration));
	snprintf(text, sizeof(text), "%s, from %s", duration,
		 an_get_text(trace, "start_time", "an unknown time"));
	row(t, "recorded", text);
	snprintf(text, sizeof(text), "%" PRIu64 ", %" PRIu64 " lost",
		 an_get_u64(trace, "events", 0), an_get_u64(trace, "events_lost", 0));
	row(t, "events", text);
	if (text_has(trace, "truncated_at"))
		snprintf(text, sizeof(text), "no: fault at byte %" PRIu64 " (0x%" PRIx64 ")",
			 an_get_u64(trace, "truncated_at", 0),
			 an_get_u64(trace, "truncated_at", 0));
	else
		snprintf(text, sizeof(text), "%s", an_get_u64(trace, "complete", 0) ? "yes" : "no");
	row(t, "complete", text);
}

static void put_child(struct table *t, const struct an_value *root)
{
	char text[64];

	if (text_has(root, "child.exit_code"))
		snprintf(text, sizeof(text), "exited with code %" PRIu64,
			 an_get_u64(root, "child.exit_code", 0));
	else if (text_has(root, "child.signal"))
		snprintf(text, sizeof(text), "ended by signal %" PRIu64,
			 an_get_u64(root, "child.signal", 0));
	else
		return;
	row(t, "child", text);
}

void text_summary(struct out *o, const struct an_value *root)
{
	const struct an_value *trace = an_get(root, "trace");
	char text[1024];
	struct table t;

	if (!trace)
		return;
	text_head(o, "SUMMARY");
	table_init(&t, "ll");
	snprintf(text, sizeof(text), "%s (%s)", an_get_text(trace, "file", "live session"),
		 an_get_text(trace, "format", "unknown format"));
	row(&t, "trace", text);
	put_process(&t, trace);
	put_recording(&t, trace);
	put_child(&t, root);
	table_print(&t, o, false);
}

static int more_events_first(const void *a, const void *b)
{
	const struct an_value *const *x = a, *const *y = b;

	if ((*x)->u != (*y)->u)
		return (*x)->u < (*y)->u ? 1 : -1;
	return strcmp((*x)->name, (*y)->name);
}

static const char *no_name(void *ctx, const char *key)
{
	(void)ctx;
	(void)key;
	return "";
}

static void put_counts(struct out *o, const struct an_value *counts, const char *const head[2],
		       report_name_of *name_of, void *ctx)
{
	size_t n = counts ? counts->count : 0, i = 0;
	const struct an_value **rows = calloc(n + 1, sizeof(const struct an_value *));
	struct table t;

	if (!rows) {
		out_text(o, "  (out of memory)\n");
		return;
	}
	for (const struct an_value *v = n ? counts->first : NULL; v; v = v->next)
		rows[i++] = v;
	qsort(rows, i, sizeof(const struct an_value *), more_events_first);
	table_init(&t, "rll");
	table_cell(&t, "events");
	table_cell(&t, "%s", head[0]);
	table_cell(&t, "%s", head[1]);
	for (size_t k = 0; k < i; k++) {
		table_cell(&t, "%" PRIu64, rows[k]->u);
		table_cell(&t, "%s", rows[k]->name);
		table_cell(&t, "%s", name_of(ctx, rows[k]->name));
	}
	table_print(&t, o, true);
	free(rows);
}

void report_text_counts(struct out *o, const struct an_value *root, report_name_of *name_of,
			void *ctx)
{
	static const char *const kinds[2] = { "provider/id/version", "name" };
	static const char *const threads[2] = { "thread", "" };
	const struct an_value *trace = an_get(root, "trace");
	char first[48], last[48];

	text_ms(trace, "first_event_ms", first, sizeof(first));
	text_ms(trace, "last_event_ms", last, sizeof(last));
	out_printf(o, "%" PRIu64 " events, %" PRIu64 " lost", an_get_u64(trace, "events", 0),
		   an_get_u64(trace, "events_lost", 0));
	if (text_has(trace, "first_event_ms"))
		out_printf(o, ", from %s to %s after the start", first, last);
	out_text(o, "\n\n");
	put_counts(o, an_get(trace, "counts"), kinds, name_of, ctx);
	out_char(o, '\n');
	put_counts(o, an_get(trace, "events_by_thread"), threads, no_name, NULL);
}
