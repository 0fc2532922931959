/* SPDX-License-Identifier: MIT */
#include "src/trace/analysis.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyzers/cpu/cpu_perf.h"
#include "nettrace/trailer.h"
#include "nettrace/trailer_perf.h"
#include "src/base/command.h"
#include "src/base/log.h"
#include "src/report/report_out.h"

enum { MAX_CLASSES = 32 };

struct analysis {
	struct an_engine *engine;
	struct nt_decoder *decoder;
	struct report_choice choice;
	const struct an_class *classes[MAX_CLASSES + 1];
	const char *file_cut, *cut_why;
	enum an_cut cut;
	const struct an_provider *enabled;
	const struct analysis_threads *threads;
	struct an_cputime *cputime;
	struct an_cpu_time cpu_time; /* the same, as the engine asks */
	struct nt_perf loaded; /* from the trailer */
	const struct nt_perf *perf; /* NULL: no samples of perf_event_open() */
	void (*measure)(void *ctx);
	void *measure_ctx;
	const struct fail_if *conditions;
	void (*see)(void *ctx, const struct an_value *root);
	void *see_ctx;
};

const char *analysis_section(size_t i)
{
	const struct an_class *const *c = an_classes;

	if (i == 0)
		return "summary";
	for (; *c; c++)
		if (*c != &an_class_trace && --i == 0)
			return (*c)->name;
	return NULL;
}

static bool is_section(const char *name)
{
	const char *section;

	for (size_t i = 0; (section = analysis_section(i)); i++)
		if (strcmp(section, name) == 0)
			return true;
	return false;
}

const char *analysis_unknown_section(const char *const *sections, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!is_section(sections[i]))
			return sections[i];
	return NULL;
}

/* "summary" is the trace itself: always analysed, as every finding rests on it. */
static void choose(struct analysis *a, const char *const *sections, size_t count)
{
	size_t n = 0;

	a->choice.sections = sections;
	a->choice.count = count;
	for (size_t i = 0; an_classes[i] && n < MAX_CLASSES; i++) {
		const struct an_class *c = an_classes[i];

		bool needed = fail_if_needs(a->conditions, c->name);

		if (c->asked_only && !report_chosen(&a->choice, c->name))
			continue;
		if (c->asked_only && !count)
			continue;
		if (c == &an_class_trace || needed || report_chosen(&a->choice, c->name))
			a->classes[n++] = c;
	}
}

/* --- CPU times --- */

/* The trace's clock in ns, as an_cputime has it; false: out of all bounds. */
static bool to_clock(const struct nt_trace_info *trace, int64_t time_ns, int64_t *ret)
{
	long double ns = (long double)trace->sync_ticks;

	if (trace->ticks_per_second != 1000000000)
		ns = ns * 1e9L / (long double)trace->ticks_per_second;
	ns += (long double)time_ns;
	if (ns < -(long double)NT_TIME_MAX_NS || ns > (long double)NT_TIME_MAX_NS)
		return false;
	*ret = (int64_t)ns;
	return true;
}

static int64_t used_ns(void *ctx, uint64_t thread_id, int64_t from_ns, int64_t to_ns)
{
	const struct analysis *a = ctx;
	const struct nt_trace_info *trace = &an_engine_borrow_shared(a->engine)->trace;

	if (!a->measure && an_cputime_since(a->cputime) == INT64_MAX)
		return -1;
	if (!trace->ticks_per_second || !to_clock(trace, from_ns, &from_ns) ||
	    !to_clock(trace, to_ns, &to_ns))
		return -1;
	if (a->measure && to_ns > an_cputime_until(a->cputime))
		a->measure(a->measure_ctx);
	return an_cputime_used(a->cputime, thread_id, from_ns, to_ns);
}

static const char *thread_name(void *ctx, uint64_t thread_id)
{
	const struct analysis *a = ctx;
	const struct an_cputime_thread *t = an_cputime_find(a->cputime, thread_id);

	return t && *t->name ? t->name : NULL;
}

struct an_cputime *analysis_cputime(struct analysis *a)
{
	return a->cputime;
}

static void drop_perf(struct analysis *a)
{
	if (a->perf == &a->loaded)
		a->perf = NULL;
	nt_perf_done(&a->loaded);
}

static enum nt_status load_perf(struct analysis *a, const struct nt_trailer_record *r)
{
	enum nt_status st = NT_OK;

	if (r->kind < NT_TRAILER_PERF_INFO || r->kind > NT_TRAILER_PERF_THREAD)
		return NT_OK;
	if (!a->loaded.alloc)
		st = nt_perf_init(&a->loaded, &nt_alloc_default);
	if (st == NT_OK)
		st = nt_perf_load(&a->loaded, r);
	if (st == NT_OK && a->loaded.row_count)
		a->perf = &a->loaded;
	return st;
}

void analysis_set_perf(struct analysis *a, const struct nt_perf *p)
{
	a->perf = p;
}

void analysis_set_measure(struct analysis *a, void (*measure)(void *ctx), void *ctx)
{
	a->measure = measure;
	a->measure_ctx = ctx;
}

static const char *load_records(struct analysis *a, struct nt_span records)
{
	struct nt_trailer_record r;

	while (nt_trailer_next(&records, &r)) {
		enum nt_status st = an_cputime_load(a->cputime, &r);

		if (st == NT_OK)
			st = load_perf(a, &r);
		if (st == NT_ENOMEM)
			return "out of memory";
		if (st < 0)
			return "a record in it makes no sense";
	}
	return records.bad ? "a record in it makes no sense" : NULL;
}

const char *analysis_load_trailer(struct analysis *a, const uint8_t *block, size_t len)
{
	struct nt_span records;
	const char *why = nt_trailer_open(block, len, &records);

	if (!why)
		why = load_records(a, records);
	if (why)
		an_cputime_clear(a->cputime);
	if (why)
		drop_perf(a);
	return why;
}

struct analysis *analysis_new(const struct an_options *options, const char *const *sections,
			      size_t count, const struct fail_if *conditions)
{
	struct analysis *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->conditions = conditions;
	choose(a, sections, count);
	a->choice.top = options->top;
	a->cputime = an_cputime_new(&nt_alloc_default);
	a->cpu_time = (struct an_cpu_time){ used_ns, thread_name, a };
	a->engine = an_engine_new(NULL, options, a->classes);
	if (a->engine)
		an_engine_set_cpu_time(a->engine, &a->cpu_time);
	if (a->engine && a->cputime)
		a->decoder = nt_decoder_new(NULL, NULL, an_engine_flags(a->engine) | NT_RECOVER,
					    &an_engine_sink, a->engine);
	return a->decoder ? a : analysis_free(a);
}

struct analysis *analysis_free(struct analysis *a)
{
	if (!a)
		return NULL;
	nt_decoder_free(a->decoder);
	an_engine_free(a->engine);
	an_cputime_free(a->cputime);
	drop_perf(a);
	free(a);
	return NULL;
}

struct nt_decoder *analysis_decoder(struct analysis *a)
{
	return a->decoder;
}

void analysis_ignore(struct analysis *a, bool (*ignored)(void *ctx, const struct nt_event_def *def),
		     void *ctx)
{
	an_engine_ignore(a->engine, ignored, ctx);
}

enum nt_status analysis_name(struct analysis *a, const struct nt_event *ev)
{
	return an_engine_name(a->engine, ev);
}

void analysis_set_file_cut(struct analysis *a, const char *why)
{
	a->file_cut = why;
}

int64_t analysis_observed_ns(const struct analysis *a)
{
	return an_observed_ns(an_engine_borrow_shared(a->engine));
}

void analysis_set_cut(struct analysis *a, enum an_cut cut, const char *why)
{
	a->cut = cut;
	a->cut_why = why;
}

void analysis_see(struct analysis *a, void (*see)(void *ctx, const struct an_value *root),
		  void *ctx)
{
	a->see = see;
	a->see_ctx = ctx;
}

void analysis_set_enabled(struct analysis *a, const struct an_provider *enabled)
{
	a->enabled = enabled;
}

void analysis_set_threads(struct analysis *a, const struct analysis_threads *threads)
{
	a->threads = threads;
}

void analysis_set_choice(struct analysis *a, const struct report_choice *choice)
{
	a->choice = *choice;
}

static void add_child(struct an_report *r, const struct analysis_child *child)
{
	struct an_value *v = an_add_object(an_report_root(r), "child");

	if (child->exited)
		an_add_int(v, "exit_code", child->exit_code);
	else
		an_add_null(v, "exit_code");
	if (child->exited)
		an_add_null(v, "signal");
	else
		an_add_int(v, "signal", child->signal);
}

int analysis_print(struct analysis *a, struct out *out, enum report_format format, const char *file,
		   const struct analysis_child *child)
{
	const struct an_input input = { .file = file,
					.cut = a->cut,
					.cut_why = a->cut_why,
					.file_cut = a->file_cut,
					.enabled = a->enabled,
					.threads = a->threads ? a->threads->rows : NULL,
					.thread_count = a->threads ? a->threads->count : 0,
					.watched_ns = a->threads ? a->threads->watched_ns : 0 };
	struct an_report *r = an_report_new(NULL);
	enum nt_status st = NT_ENOMEM;
	int code = EXIT_FAILED;

	if (r && a->perf && report_chosen(&a->choice, an_class_cpu.name))
		an_perf_findings(a->perf, r);
	if (r && a->perf)
		st = an_engine_perf(a->engine, a->perf);
	else if (r)
		st = NT_OK;
	if (st == NT_OK)
		st = an_engine_report(a->engine, a->decoder, &input, r);
	if (r && child)
		add_child(r, child);
	if (st == NT_OK)
		st = an_report_status(r);
	if (st == NT_OK)
		code = fail_if_judge(a->conditions, an_report_borrow_root(r)) ? EXIT_CONDITION
									      : EXIT_DONE;
	if (st == NT_OK && a->see)
		a->see(a->see_ctx, an_report_borrow_root(r));
	if (st != NT_OK)
		log_error("cannot make the report: %s", nt_status_name(st));
	else if (out && format == REPORT_JSON)
		report_json(out, an_report_borrow_root(r));
	else if (out)
		report_text(out, an_report_borrow_root(r), &a->choice);
	an_report_free(r);
	return code;
}

int analysis_fault(const struct nt_decoder *d, const char *file)
{
	const struct nt_error *err = nt_decoder_borrow_error(d);
	char text[512];

	if (!err)
		return EXIT_DONE;
	if (!nt_decoder_borrow_trace(d)) {
		log_error("cannot read '%s': byte 0x%" PRIx64 ": %s", file ? file : "the stream",
			  err->offset, err->what);
		return EXIT_FAILED;
	}
	nt_error_format(err, text, sizeof(text));
	log_error("cannot read all of '%s': %s", file ? file : "the stream", text);
	return EXIT_PARTIAL;
}
