/* SPDX-License-Identifier: MIT */
#include "src/store/sample_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 8, MAX_METRICS = 4096, MAX_METHODS = 100 };

/* Members whose names are data, or that say how it was recorded and not how the process does. */
static bool is_left_out(const char *path)
{
	static const char *const names[] = { "trace.counts.", "trace.events_by_thread." };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(path, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static bool number_of(const struct an_value *v, double *ret)
{
	switch (v->kind) {
	case AN_BOOL:
	case AN_UINT:
		*ret = (double)v->u;
		return true;
	case AN_INT:
		*ret = (double)v->i;
		return true;
	case AN_DOUBLE:
		*ret = v->f;
		return true;
	case AN_NULL:
	case AN_TEXT:
	case AN_OBJECT:
	case AN_ARRAY:
		break;
	}
	return false;
}

const char *sample_row_keep(struct sample_row *r, const char *text)
{
	char *copy;

	if (!text)
		return NULL;
	if (r->text_count == r->text_room) {
		size_t room = r->text_room ? 2 * r->text_room : 256;
		char **grown = realloc(r->texts, room * sizeof(*grown));

		if (!grown) {
			r->failed = true;
			return NULL;
		}
		r->texts = grown;
		r->text_room = room;
	}
	copy = strdup(text);
	if (!copy)
		r->failed = true;
	else
		r->texts[r->text_count++] = copy;
	return copy;
}

static void add_metric(struct sample_row *r, const char *path, double value)
{
	const char *kept;

	if (r->sample.metric_count == MAX_METRICS || is_left_out(path))
		return;
	kept = sample_row_keep(r, path);
	if (kept)
		r->metrics[r->sample.metric_count++] = (struct store_metric){ kept, value };
}

/* Where a walk through objects is: the value to be looked at next at each depth. */
struct level {
	const struct an_value *next;
	size_t path_bytes;
};

/* Arrays have rows, not one number: they are not walked into. */
static void add_metrics(struct sample_row *r, const struct an_value *root)
{
	struct level levels[MAX_DEPTH] = { { root->first, 0 } };
	char path[512];
	size_t depth = 1;

	while (depth) {
		struct level *l = &levels[depth - 1];
		const struct an_value *v = l->next;
		double number;
		int n;

		if (!v) {
			depth--;
			continue;
		}
		l->next = v->next;
		if (!v->name)
			continue;
		n = snprintf(path + l->path_bytes, sizeof(path) - l->path_bytes, "%s%s",
			     l->path_bytes ? "." : "", v->name);
		if (n < 0 || (size_t)n >= sizeof(path) - l->path_bytes)
			continue;
		if (v->kind == AN_OBJECT && depth < MAX_DEPTH)
			levels[depth++] = (struct level){ v->first, l->path_bytes + (size_t)n };
		else if (number_of(v, &number))
			add_metric(r, path, number);
	}
}

/* Numbers that the report has as lists. */
static void add_counts(struct sample_row *r, const struct an_value *root)
{
	const struct an_value *deadlocks = an_get(root, "locks.deadlocks");
	const struct an_value *pending = an_get(root, "tasks.pending");
	uint64_t stuck = 0;

	if (deadlocks && deadlocks->kind == AN_ARRAY)
		add_metric(r, "locks.deadlocks", (double)deadlocks->count);
	if (!pending || pending->kind != AN_ARRAY) /* not recorded */
		return;
	for (const struct an_value *p = pending->first; p; p = p->next) {
		const struct an_value *is_stuck = an_get(p, "stuck");

		if (is_stuck && is_stuck->kind == AN_BOOL && is_stuck->u)
			stuck += an_get_u64(p, "count", 1);
	}
	add_metric(r, "tasks.stuck", (double)stuck);
}

/*
 * Percent of one processor: unlike its share of the samples it does not change when other methods
 * do.  Where the processor time of methods is not known, it is taken from the samples on the CPU.
 */
static double processor_percent(const struct an_value *m, const char *ms, const char *percent,
				double on_cpu_ms, double duration_ms)
{
	const struct an_value *measured = an_get(m, ms);

	if (measured && measured->kind != AN_NULL)
		return 100 * an_get_f64(m, ms, 0) / duration_ms;
	return an_get_f64(m, percent, 0) * on_cpu_ms / duration_ms;
}

static void add_methods(struct sample_row *r, const struct an_value *root)
{
	const struct an_value *methods = an_get(root, "cpu.methods");
	double duration_ms = an_get_f64(root, "trace.duration_ms", 0);
	double on_cpu_ms =
		an_get_f64(root, "cpu.samples_on_cpu", 0) * an_get_f64(root, "cpu.interval_ms", 0);

	if (!methods || methods->kind != AN_ARRAY || !(duration_ms > 0))
		return;
	for (const struct an_value *m = methods->first; m; m = m->next) {
		const char *name = sample_row_keep(r, an_get_text(m, "method", NULL));

		if (!name || r->sample.method_count == MAX_METHODS)
			continue;
		r->methods[r->sample.method_count++] = (struct store_method){
			name,
			processor_percent(m, "exclusive_cpu_ms", "exclusive_percent", on_cpu_ms,
					  duration_ms),
			processor_percent(m, "inclusive_cpu_ms", "inclusive_percent", on_cpu_ms,
					  duration_ms),
		};
	}
}

static void add_findings(struct sample_row *r, const struct an_value *findings)
{
	for (const struct an_value *f = findings ? findings->first : NULL; f; f = f->next) {
		const char *severity = an_get_text(f, "severity", "info");

		if (strcmp(severity, "info") == 0) /* nothing to be woken for */
			continue;
		r->findings[r->sample.finding_count++] = (struct store_finding){
			sample_row_keep(r, an_get_text(f, "id", "?")),
			sample_row_keep(r, severity),
			sample_row_keep(r, an_get_text(f, "title", "")),
			sample_row_keep(r, an_get_text(f, "evidence", "")),
		};
	}
}

bool sample_row_make(const struct an_value *root, struct sample_row *ret)
{
	const struct an_value *findings = an_get(root, "findings");

	*ret = (struct sample_row){ 0 };
	ret->metrics = calloc(MAX_METRICS, sizeof(*ret->metrics));
	ret->methods = calloc(MAX_METHODS, sizeof(*ret->methods));
	ret->findings = calloc(findings ? findings->count + 1 : 1, sizeof(*ret->findings));
	if (!ret->metrics || !ret->methods || !ret->findings)
		return false;
	add_metrics(ret, root);
	add_counts(ret, root);
	add_methods(ret, root);
	add_findings(ret, findings);
	ret->sample.metrics = ret->metrics;
	ret->sample.methods = ret->methods;
	ret->sample.findings = ret->findings;
	ret->sample.events = an_get_u64(root, "trace.events", 0);
	ret->sample.lost = an_get_u64(root, "trace.events_lost", 0);
	ret->sample.runtime = sample_row_keep(ret, an_get_text(root, "trace.runtime", NULL));
	ret->sample.command_line =
		sample_row_keep(ret, an_get_text(root, "trace.command_line", NULL));
	return !ret->failed;
}

void sample_row_done(struct sample_row *r)
{
	for (size_t i = 0; i < r->text_count; i++)
		free(r->texts[i]);
	free(r->texts);
	free(r->metrics);
	free(r->methods);
	free(r->findings);
}
