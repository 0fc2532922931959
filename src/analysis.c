/* SPDX-License-Identifier: MIT */
#include "src/analysis.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/command.h"
#include "src/log.h"
#include "src/report_out.h"

enum { MAX_CLASSES = 32 };

struct analysis {
	struct an_engine *engine;
	struct nt_decoder *decoder;
	struct report_choice choice;
	const struct an_class *classes[MAX_CLASSES + 1];
	const char *file_cut;
	const struct an_provider *enabled;
	const struct analysis_threads *threads;
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

		if (c->asked_only && !count)
			continue;
		if (c == &an_class_trace || report_chosen(&a->choice, c->name))
			a->classes[n++] = c;
	}
}

struct analysis *analysis_new(const struct an_options *options, const char *const *sections,
			      size_t count)
{
	struct analysis *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	choose(a, sections, count);
	a->choice.top = options->top;
	a->engine = an_engine_new(NULL, options, a->classes);
	if (a->engine)
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
					.file_cut = a->file_cut,
					.enabled = a->enabled,
					.threads = a->threads ? a->threads->rows : NULL,
					.thread_count = a->threads ? a->threads->count : 0,
					.watched_ns = a->threads ? a->threads->watched_ns : 0 };
	struct an_report *r = an_report_new(NULL);
	enum nt_status st = NT_ENOMEM;

	if (r)
		st = an_engine_report(a->engine, a->decoder, &input, r);
	if (r && child)
		add_child(r, child);
	if (st == NT_OK)
		st = an_report_status(r);
	if (st == NT_OK && format == REPORT_JSON)
		report_json(out, an_report_borrow_root(r));
	else if (st == NT_OK)
		report_text(out, an_report_borrow_root(r), &a->choice);
	else
		log_error("cannot make the report: %s", nt_status_name(st));
	an_report_free(r);
	return st == NT_OK ? EXIT_DONE : EXIT_FAILED;
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
