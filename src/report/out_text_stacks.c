/* SPDX-License-Identifier: MIT */

/*
 * The section of the text report on threads' stacks: a tree of common frames, from the outermost
 * inwards, with the number of threads at each branch; or one stack after the other.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/report/out_text.h"
#include "src/report/report_out.h"

enum {
	STEP = 5, /* a branch is indented by so much, */
	MAX_INDENT = 60, /* but no more than this in all */
	NAMED = 8, /* threads of a line */
	OWN_NAMED = 3, /* ... of the runtime's own */
};

struct stack_row {
	const struct an_value *v;
	const char **frames; /* the outermost first; into stack_rows.texts */
	size_t count;
};

struct stack_rows {
	struct stack_row *rows;
	const char **texts;
	size_t count;
};

/* Threads from to to have the frames up to depth in common. */
struct branch {
	size_t from, to, depth;
	unsigned indent;
};

struct branches {
	struct branch *v;
	size_t count, cap;
};

/* --- rows --- */

static void rows_done(struct stack_rows *r)
{
	free(r->rows);
	free(r->texts);
}

static void fill(struct stack_row *row, const char **texts)
{
	const struct an_value *frames = an_get(row->v, "frames");
	size_t at = row->count;

	row->frames = texts;
	for (const struct an_value *f = at ? frames->first : NULL; f && at; f = f->next)
		texts[--at] = f->kind == AN_TEXT ? f->text : "?";
}

/* Those threads of the section for which member is as wanted. */
static bool rows_make(struct stack_rows *r, const struct an_value *list, bool managed, bool own)
{
	size_t texts = 0;

	*r = (struct stack_rows){ .rows = calloc(list->count + 1, sizeof(*r->rows)) };
	if (!r->rows)
		return false;
	for (const struct an_value *v = list->first; v; v = v->next) {
		const struct an_value *frames = an_get(v, "frames");

		if (an_get_u64(v, "managed", 0) != managed || an_get_u64(v, "own_code", 0) != own)
			continue;
		r->rows[r->count] = (struct stack_row){
			.v = v, .count = frames && frames->kind == AN_ARRAY ? frames->count : 0
		};
		texts += r->rows[r->count++].count;
	}
	r->texts = calloc(texts + 1, sizeof(*r->texts));
	if (!r->texts)
		return false;
	texts = 0;
	for (size_t i = 0; i < r->count; i++) {
		fill(&r->rows[i], r->texts + texts);
		texts += r->rows[i].count;
	}
	return true;
}

static int compare_rows(const void *a, const void *b)
{
	const struct stack_row *x = a, *y = b;
	uint64_t i = an_get_u64(x->v, "thread_id", 0), k = an_get_u64(y->v, "thread_id", 0);

	for (size_t n = 0; n < x->count && n < y->count; n++) {
		int order = strcmp(x->frames[n], y->frames[n]);

		if (order)
			return order;
	}
	if (x->count != y->count)
		return x->count < y->count ? -1 : 1;
	return (i > k) - (i < k);
}

/* --- what threads do --- */

static void describe_state(const struct an_value *v, char *buf, size_t size)
{
	const char *state = an_get_text(v, "state", "unknown");
	const char *what = an_get_text(v, "waiting_on", NULL);
	char owner[64] = "";

	if (text_has(v, "owner_thread_id"))
		snprintf(owner, sizeof(owner), " held by thread %" PRIu64,
			 an_get_u64(v, "owner_thread_id", 0));
	else if (text_has(v, "owner_managed_id"))
		snprintf(owner, sizeof(owner), " held by managed thread %" PRIu64,
			 an_get_u64(v, "owner_managed_id", 0));
	if (strcmp(state, "waiting") == 0 && what && strcmp(what, "Thread.Sleep") == 0)
		snprintf(buf, size, "sleeps");
	else if (strcmp(state, "waiting") == 0 && what)
		snprintf(buf, size, "waits for %s%s", what, owner);
	else if (strcmp(state, "waiting") == 0)
		snprintf(buf, size, "waits");
	else if (strcmp(state, "ready") == 0)
		snprintf(buf, size, "ready, but gets no processor");
	else if (strcmp(state, "unknown") == 0)
		snprintf(buf, size, "runs or waits");
	else
		snprintf(buf, size, "%s", state);
}

static bool alike(const struct an_value *a, const struct an_value *b)
{
	char x[160], y[160];

	describe_state(a, x, sizeof(x));
	describe_state(b, y, sizeof(y));
	return strcmp(x, y) == 0;
}

static void put_thread(struct out *o, const struct an_value *v)
{
	char ms[48];

	out_printf(o, "%" PRIu64, an_get_u64(v, "thread_id", 0));
	if (text_has(v, "name")) {
		out_char(o, ' ');
		text_put(o, TEXT_PLAIN, an_get_text(v, "name", ""));
	}
	if (an_get_f64(v, "cpu_ms", 0) >= 1) {
		text_ms(v, "cpu_ms", ms, sizeof(ms));
		out_printf(o, " (%s of CPU)", ms);
	}
}

/* "= waits for a lock: 17 worker, 18 worker": threads of one stack, by what they do. */
static void put_threads(struct out *o, const struct stack_row *rows, size_t count, unsigned indent)
{
	bool *done = calloc(count + 1, sizeof(*done));
	char state[160];

	if (!done)
		o->error = o->error ? o->error : ENOMEM;
	for (size_t i = 0; done && i < count; i++) {
		size_t n = 0;

		if (done[i])
			continue;
		describe_state(rows[i].v, state, sizeof(state));
		out_printf(o, "%*s= ", (int)indent, "");
		text_put(o, TEXT_CYAN, state);
		out_char(o, ':');
		for (size_t k = i; k < count; k++) {
			if (done[k] || !alike(rows[i].v, rows[k].v))
				continue;
			done[k] = true;
			if (n++ >= NAMED)
				continue;
			out_text(o, n > 1 ? ", " : " ");
			put_thread(o, rows[k].v);
		}
		if (n > NAMED)
			out_printf(o, " and %zu more", n - NAMED);
		out_char(o, '\n');
	}
	free(done);
}

/* --- the tree --- */

static bool push(struct branches *b, struct branch branch)
{
	if (b->count == b->cap) {
		size_t want = b->cap ? b->cap * 2 : 64;
		struct branch *more = reallocarray(b->v, want, sizeof(*more));

		if (!more)
			return false;
		b->v = more;
		b->cap = want;
	}
	b->v[b->count++] = branch;
	return true;
}

/* The last one is put first. */
static int compare_branches(const void *a, const void *b)
{
	const struct branch *x = a, *y = b;
	size_t n = x->to - x->from, m = y->to - y->from;

	if (n != m)
		return n < m ? -1 : 1;
	return x->from < y->from ? 1 : -1;
}

/* One branch for each next frame. */
static bool split(struct branches *b, const struct stack_row *rows, const struct branch *from,
		  unsigned indent)
{
	size_t first = b->count;

	for (size_t i = from->from; i < from->to;) {
		size_t k = i + 1;

		while (k < from->to &&
		       strcmp(rows[k].frames[from->depth], rows[i].frames[from->depth]) == 0)
			k++;
		if (!push(b, (struct branch){ i, k, from->depth, indent }))
			return false;
		i = k;
	}
	if (b->count > first)
		qsort(b->v + first, b->count - first, sizeof(*b->v), compare_branches);
	return true;
}

/* Rows are sorted: what the first and the last share, all do. */
static bool is_shared(const struct stack_row *rows, const struct branch *b)
{
	const struct stack_row *x = &rows[b->from], *y = &rows[b->to - 1];

	return x->count > b->depth && strcmp(x->frames[b->depth], y->frames[b->depth]) == 0;
}

/* The frames that all of them have, then the threads that end there; the rest branches off. */
static bool put_branch(struct out *o, struct branches *b, const struct stack_row *rows,
		       struct branch at)
{
	bool first = true;
	size_t here = at.from;
	unsigned indent = at.indent + STEP < MAX_INDENT ? at.indent + STEP : MAX_INDENT;

	for (; is_shared(rows, &at); at.depth++, first = false) {
		if (first)
			out_printf(o, "%*s%4zu ", (int)at.indent, "", at.to - at.from);
		else
			out_printf(o, "%*s", (int)(at.indent + STEP), "");
		text_put(o, TEXT_PLAIN, rows[at.from].frames[at.depth]);
		out_char(o, '\n');
	}
	while (here < at.to && rows[here].count == at.depth)
		here++;
	if (here > at.from)
		put_threads(o, rows + at.from, here - at.from, at.indent + STEP);
	at.from = here;
	return split(b, rows, &at, indent);
}

static bool put_tree(struct out *o, struct stack_rows *r)
{
	struct branches b = { 0 };
	struct branch whole = { 0, r->count, 0, 0 };
	bool ok;

	if (r->count)
		qsort(r->rows, r->count, sizeof(*r->rows), compare_rows);
	while (whole.from < r->count && r->rows[whole.from].count == 0)
		whole.from++; /* their stacks could not be taken */
	ok = split(&b, r->rows, &whole, 0);
	while (ok && b.count) {
		struct branch next = b.v[--b.count];

		if (next.indent == 0)
			out_char(o, '\n');
		ok = put_branch(o, &b, r->rows, next);
	}
	free(b.v);
	return ok;
}

/* --- one after the other --- */

static void put_plain(struct out *o, const struct stack_rows *r)
{
	char state[160];

	for (size_t i = 0; i < r->count; i++) {
		const struct stack_row *row = &r->rows[i];

		describe_state(row->v, state, sizeof(state));
		out_text(o, "\n  thread ");
		put_thread(o, row->v);
		out_text(o, ": ");
		text_put(o, TEXT_CYAN, state);
		out_char(o, '\n');
		for (size_t k = row->count; k-- > 0;) {
			out_text(o, "      ");
			text_put(o, TEXT_PLAIN, row->frames[k]);
			out_char(o, '\n');
		}
	}
}

/* --- threads of no interest --- */

static int compare_names(const void *a, const void *b)
{
	const struct stack_row *x = a, *y = b;
	char p[160], q[160];
	int order = strcmp(an_get_text(x->v, "name", ""), an_get_text(y->v, "name", ""));

	describe_state(x->v, p, sizeof(p));
	describe_state(y->v, q, sizeof(q));
	return order ? order : strcmp(p, q);
}

/* By name and what they do: "  6 .NET TP Worker: waits for work". */
static void put_brief(struct out *o, struct stack_rows *r, const char *what)
{
	char state[160];

	if (!r->count)
		return;
	qsort(r->rows, r->count, sizeof(*r->rows), compare_names);
	out_printf(o, "\n  %s\n", what);
	for (size_t i = 0; i < r->count;) {
		double cpu = 0;
		size_t k = i;

		for (; k < r->count && compare_names(&r->rows[i], &r->rows[k]) == 0; k++)
			cpu += an_get_f64(r->rows[k].v, "cpu_ms", 0);
		describe_state(r->rows[i].v, state, sizeof(state));
		out_printf(o, "%4zu ", k - i);
		text_put(o, TEXT_PLAIN, an_get_text(r->rows[i].v, "name", "without a name"));
		out_printf(o, ": %s", state);
		if (cpu >= 1)
			out_printf(o, ", %.0f ms of CPU", cpu);
		out_text(o, k - i <= OWN_NAMED ? " (" : "");
		for (size_t n = i; n < k && k - i <= OWN_NAMED; n++)
			out_printf(o, "%s%" PRIu64, n > i ? ", " : "",
				   an_get_u64(r->rows[n].v, "thread_id", 0));
		out_text(o, k - i <= OWN_NAMED ? ")\n" : "\n");
		i = k;
	}
}

/* --- the section --- */

static void put_kind(struct out *o, const struct an_value *list, bool managed, bool own,
		     const struct report_choice *choice)
{
	struct stack_rows r;
	bool ok = rows_make(&r, list, managed, own);

	if (ok && choice->no_merge && managed)
		put_plain(o, &r);
	else if (ok && (own || (managed && choice->all_stacks)))
		ok = put_tree(o, &r);
	else if (ok)
		put_brief(o, &r,
			  managed ? "the runtime's own threads"
				  : "threads without managed code on their stack");
	if (!ok)
		o->error = o->error ? o->error : ENOMEM;
	rows_done(&r);
}

void text_stacks(struct out *o, const struct an_value *list, const struct report_choice *choice)
{
	size_t managed = 0;
	double cpu = 0;
	bool known = false;

	text_head(o, "STACKS");
	if (!list || list->kind != AN_ARRAY || !list->count) {
		out_text(o, "  not recorded\n");
		return;
	}
	for (const struct an_value *v = list->first; v; v = v->next) {
		managed += an_get_u64(v, "managed", 0) != 0;
		cpu += an_get_f64(v, "cpu_ms", 0);
		known = known || text_has(v, "cpu_ms");
	}
	out_printf(o, "  %zu thread%s with managed code", managed, managed == 1 ? "" : "s");
	if (list->count > managed)
		out_printf(o, ", %zu without", list->count - managed);
	if (known)
		out_printf(o, "; %.0f ms of CPU while they were watched", cpu);
	out_char(o, '\n');
	put_kind(o, list, true, true, choice);
	put_kind(o, list, true, false, choice);
	put_kind(o, list, false, false, choice);
}
