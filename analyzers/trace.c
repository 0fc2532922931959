/* SPDX-License-Identifier: MIT */

/*
 * The trace itself: where it comes from, how many events of each kind and thread, what was lost.
 * Counting all events of a trace runs this class only, so its event() must stay short.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzers/analyzer.h"
#include "analyzers/grow.h"
#include "nettrace/idmap.h"

enum {
	MAX_THREADS = 64 * 1024,
	MAX_KINDS_SHOWN = 20 * 1000,
	MAX_TEXT_BYTES = 32 * 1024,
	PROCESS_INFO = 1,
};

struct kind {
	const struct nt_event_def *def;
	uint64_t count;
};

struct thread {
	uint64_t id;
	uint64_t count;
};

enum { COMMAND_LINE, OS, ARCH, TEXTS };

struct analyzer {
	struct an_shared *shared;
	uint64_t events;
	int64_t first_ns, last_ns; /* of those */
	struct kind *kinds; /* by index of the definition */
	size_t kind_cap;
	struct thread *threads;
	size_t thread_count, thread_cap;
	struct nt_idmap by_id;
	size_t last; /* thread of the event before */
	uint64_t other_threads; /* events of threads beyond MAX_THREADS */
	char *texts[TEXTS]; /* from ProcessInfo */
};

static struct analyzer *trace_free(struct analyzer *a)
{
	const struct nt_alloc *al;

	if (!a)
		return NULL;
	al = a->shared->alloc;
	an_mem_free(al, a->kinds);
	an_mem_free(al, a->threads);
	nt_idmap_done(&a->by_id);
	for (size_t i = 0; i < TEXTS; i++)
		an_mem_free(al, a->texts[i]);
	an_mem_free(al, a);
	return NULL;
}

static struct analyzer *trace_new(struct an_shared *shared)
{
	struct analyzer *a = an_mem_get(shared->alloc, sizeof(*a));

	if (!a)
		return NULL;
	a->shared = shared;
	nt_idmap_init(&a->by_id, shared->alloc);
	return a;
}

static enum nt_status count_thread(struct analyzer *a, uint64_t id)
{
	uint32_t i = nt_idmap_get(&a->by_id, id);
	struct thread *threads;

	if (i == NT_IDMAP_NONE) {
		if (a->thread_count >= MAX_THREADS) {
			a->other_threads++;
			return NT_OK;
		}
		threads = an_mem_grow(a->shared->alloc, a->threads, &a->thread_cap,
				      a->thread_count + 1, sizeof(*threads));
		if (!threads)
			return NT_ENOMEM;
		a->threads = threads;
		i = (uint32_t)a->thread_count;
		if (nt_idmap_put(&a->by_id, id, i) < 0)
			return NT_ENOMEM;
		threads[i].id = id;
		a->thread_count++;
	}
	a->threads[i].count++;
	a->last = i;
	return NT_OK;
}

static enum nt_status keep_text(struct analyzer *a, size_t which, const struct nt_value *v)
{
	char *text;

	if (!v || a->texts[which])
		return NT_OK;
	text = an_mem_get(a->shared->alloc, MAX_TEXT_BYTES);
	if (!text)
		return NT_ENOMEM;
	nt_value_text(v, text, MAX_TEXT_BYTES);
	a->texts[which] = text;
	return NT_OK;
}

static enum nt_status on_process_info(struct analyzer *a, const struct nt_event *ev)
{
	struct nt_value v[8];
	size_t n = nt_payload_read(ev, v, 8, NULL);
	enum nt_status st = keep_text(a, COMMAND_LINE, nt_value_find(v, n, "CommandLine"));

	if (st == NT_OK)
		st = keep_text(a, OS, nt_value_find(v, n, "OSInformation"));
	if (st == NT_OK)
		st = keep_text(a, ARCH, nt_value_find(v, n, "ArchInformation"));
	return st;
}

static void note_time(struct analyzer *a, int64_t time_ns)
{
	if (!a->events || time_ns < a->first_ns)
		a->first_ns = time_ns;
	if (!a->events || time_ns > a->last_ns)
		a->last_ns = time_ns;
}

static enum nt_status trace_event(struct analyzer *a, const struct nt_event *ev)
{
	size_t k = ev->def->index;
	struct kind *kinds;

	if (ev->def->provider_id == NT_PROV_EVENTPIPE && ev->def->event_id == PROCESS_INFO) {
		enum nt_status st = on_process_info(a, ev);

		if (st < 0)
			return st;
	}
	if (a->shared->not_counted)
		return NT_OK;
	if (k >= a->kind_cap) {
		kinds = an_mem_grow(a->shared->alloc, a->kinds, &a->kind_cap, k + 1,
				    sizeof(*kinds));
		if (!kinds)
			return NT_ENOMEM;
		a->kinds = kinds;
	}
	a->kinds[k].def = ev->def;
	a->kinds[k].count++;
	note_time(a, ev->time_ns);
	a->events++;
	if (a->last < a->thread_count && a->threads[a->last].id == ev->thread_id) {
		a->threads[a->last].count++;
		return NT_OK;
	}
	return count_thread(a, ev->thread_id);
}

/* --- report --- */

static void add_ms(struct an_value *v, const char *name, bool known, int64_t ns)
{
	if (known)
		an_add_double(v, name, (double)ns / 1e6, 4);
	else
		an_add_null(v, name);
}

static void add_number(struct an_value *v, const char *name, int64_t number)
{
	if (number >= 0)
		an_add_int(v, name, number);
	else
		an_add_null(v, name);
}

static void add_text(struct an_value *v, const char *name, const char *text)
{
	if (text && *text)
		an_add_text(v, name, text);
	else
		an_add_null(v, name);
}

static void add_format(struct an_value *v, const struct nt_trace_info *info)
{
	char buf[32];

	snprintf(buf, sizeof(buf), info->format == 3 ? "netperf-%u" : "nettrace-%u", info->format);
	an_add_text(v, "format", buf);
}

/* ISO 8601 in UTC; the calendar is computed here because libraries below src/ ask no clock. */
static void add_start(struct an_value *v, const struct nt_trace_info *info)
{
	const int64_t day_ns = INT64_C(86400) * 1000000000;
	int64_t days = info->start_unix_ns / day_ns, rest = info->start_unix_ns % day_ns;
	int64_t era, of_era, year_of_era, day_of_year, month, year, ms;
	char buf[64];

	if (!info->wall_clock_known) {
		an_add_null(v, "start_time");
		return;
	}
	if (rest < 0) {
		rest += day_ns;
		days--;
	}
	/* Years begin in March, so that the leap day comes last; 400 years are 146097 days. */
	days += 719468;
	era = (days >= 0 ? days : days - 146096) / 146097;
	of_era = days - era * 146097;
	year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	month = (5 * day_of_year + 2) / 153;
	year = year_of_era + era * 400 + (month >= 10);
	ms = rest / 1000000;
	snprintf(buf, sizeof(buf),
		 "%04" PRId64 "-%02" PRId64 "-%02" PRId64 "T%02" PRId64 ":%02" PRId64 ":%02" PRId64
		 ".%03" PRId64 "Z",
		 year, month < 10 ? month + 3 : month - 9, day_of_year - (153 * month + 2) / 5 + 1,
		 ms / 3600000, ms / 60000 % 60, ms / 1000 % 60, ms % 1000);
	an_add_text(v, "start_time", buf);
}

/* The version people know: 8.0.3426 is 8.0.34 (patch times 100, plus the year it was built in). */
static void add_runtime(struct an_value *v, const struct an_runtime *r)
{
	char buf[96];

	if (!r->known) {
		an_add_null(v, "runtime");
		return;
	}
	if (r->sku == 1)
		snprintf(buf, sizeof(buf), ".NET Framework %u.%u.%u", r->vm[0], r->vm[1], r->vm[2]);
	else if (r->vm[0] == 4 && *r->directory)
		snprintf(buf, sizeof(buf), ".NET Core %s", r->directory);
	else if (r->vm[0] == 4)
		snprintf(buf, sizeof(buf), ".NET Core 3.1 or older");
	else if (*r->directory)
		snprintf(buf, sizeof(buf), ".NET %s", r->directory);
	else if (r->vm[2] % 100 >= 20)
		snprintf(buf, sizeof(buf), ".NET %u.%u.%u", r->vm[0], r->vm[1], r->vm[2] / 100);
	else
		snprintf(buf, sizeof(buf), ".NET %u.%u.%u", r->vm[0], r->vm[1], r->vm[2]);
	an_add_text(v, "runtime", buf);
}

static int compare_kinds(const void *a, const void *b)
{
	const struct nt_event_def *x = ((const struct kind *)a)->def;
	const struct nt_event_def *y = ((const struct kind *)b)->def;
	int c = strcmp(x->provider, y->provider);

	if (c)
		return c;
	if (x->event_id != y->event_id)
		return x->event_id < y->event_id ? -1 : 1;
	return (x->version > y->version) - (x->version < y->version);
}

static void add_kind(struct an_report *out, struct an_value *list, const struct kind *k)
{
	an_add_uint_named(list,
			  an_report_printf(out, "%s/%" PRIu32 "/v%" PRIu32,
					   k->def->defined ? k->def->provider : "[undefined]",
					   k->def->event_id, k->def->version),
			  k->count);
}

/* Several definitions may be of one kind, in files of several sessions or processes. */
static enum nt_status add_counts(const struct analyzer *a, struct an_report *out,
				 struct an_value *v)
{
	struct an_value *list = an_add_object(v, "counts");
	struct kind *sorted = an_mem_array(a->shared->alloc, a->kind_cap, sizeof(*sorted));
	uint64_t other = 0;
	size_t n = 0;

	if (!sorted)
		return NT_ENOMEM;
	for (size_t i = 0; i < a->kind_cap; i++)
		if (a->kinds[i].count)
			sorted[n++] = a->kinds[i];
	qsort(sorted, n, sizeof(*sorted), compare_kinds);
	for (size_t i = 0; i < n; i++) {
		if (i + 1 < n && !compare_kinds(&sorted[i], &sorted[i + 1]))
			sorted[i + 1].count += sorted[i].count;
		else if (list && list->count < MAX_KINDS_SHOWN)
			add_kind(out, list, &sorted[i]);
		else
			other += sorted[i].count;
	}
	if (other)
		an_add_uint(list, "[other]", other);
	an_mem_free(a->shared->alloc, sorted);
	return NT_OK;
}

static void add_threads(const struct analyzer *a, struct an_report *out, struct an_value *v)
{
	struct an_value *list = an_add_object(v, "events_by_thread");

	for (size_t i = 0; i < a->thread_count; i++) {
		if (a->threads[i].id == UINT64_MAX)
			an_add_uint(list, "unknown", a->threads[i].count);
		else
			an_add_uint_named(list, an_report_printf(out, "%" PRIu64, a->threads[i].id),
					  a->threads[i].count);
	}
	if (a->other_threads)
		an_add_uint(list, "other", a->other_threads);
}

static void add_losses(const struct an_shared *s, struct an_report *out, struct an_value *v)
{
	struct an_value *list = an_add_object(v, "events_lost_by_thread");

	for (size_t i = 0; i < s->loss_count; i++)
		an_add_uint_named(list, an_report_printf(out, "%" PRIu64, s->losses[i].thread_id),
				  s->losses[i].lost);
}

static void add_header(const struct analyzer *a, struct an_value *v)
{
	const struct an_shared *s = a->shared;
	const struct nt_trace_info *info = nt_decoder_borrow_trace(s->decoder);
	static const struct nt_trace_info unknown = { .process_id = -1, .processors = -1 };
	int64_t observed = an_observed_ns(s);

	if (!info)
		info = &unknown;
	add_text(v, "file", s->input->file);
	if (info->format)
		add_format(v, info);
	else
		an_add_null(v, "format");
	add_start(v, info);
	add_ms(v, "duration_ms", observed >= 0, observed);
	add_number(v, "processors", info->processors);
	add_number(v, "pointer_size", info->pointer_size ? (int64_t)info->pointer_size : -1);
	add_number(v, "process_id", info->process_id);
	add_text(v, "command_line", a->texts[COMMAND_LINE]);
	add_runtime(v, &s->runtime);
	add_text(v, "os", a->texts[OS]);
	add_text(v, "arch", a->texts[ARCH]);
}

static enum nt_status trace_report(struct analyzer *a, struct an_report *out)
{
	const struct an_shared *s = a->shared;
	struct an_value *v = an_add_object(an_report_root(out), "trace");
	const struct nt_error *err = nt_decoder_borrow_error(s->decoder);
	const struct nt_stats *stats = nt_decoder_borrow_stats(s->decoder);
	enum nt_status st;

	add_header(a, v);
	an_add_uint(v, "events", a->events);
	an_add_uint(v, "events_lost", stats->lost);
	add_losses(s, out, v);
	an_add_bool(v, "complete", !err && stats->ended);
	if (err)
		an_add_uint(v, "truncated_at", err->offset);
	else
		an_add_null(v, "truncated_at");
	st = add_counts(a, out, v);
	add_threads(a, out, v);
	add_ms(v, "first_event_ms", a->events > 0, a->first_ns);
	add_ms(v, "last_event_ms", a->events > 0, a->last_ns);
	return st;
}

static const struct an_provider no_providers[] = { { 0 } };

const struct an_class an_class_trace = {
	.name = "trace",
	.summary = "what the trace is, how many events of each kind, what was lost",
	.providers = no_providers,
	.new = trace_new,
	.event = trace_event,
	.report = trace_report,
	.free = trace_free,
	.symptom = "events were lost, names are missing, the trace is cut",
	.cost = AN_COST_NONE,
};
