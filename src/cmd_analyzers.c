/* SPDX-License-Identifier: MIT */

/* analyzers: the catalogue, from the analyzers' own tables. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyzers/analyzer.h"
#include "src/base/command.h"
#include "src/base/json.h"
#include "src/base/output.h"
#include "src/base/version.h"

struct analyzers_args {
	int format;
	bool json;
};

enum { FORMAT_TEXT, FORMAT_JSON };
static const char *const formats[] = { "text", "json", NULL };

static const struct opt_spec analyzers_options[] = {
	{ "format", 'f', "FORMAT", "text (default) or json",
	  OPT_ENUM(struct analyzers_args, format, formats) },
	{ "json", 'j', NULL, "short for --format json", OPT_FLAG(struct analyzers_args, json) },
	{ 0 },
};

static const char analyzers_notes[] =
	"Each analyzer is a section of the report and a profile of collect by the same name.\n"
	"Limits are those of its findings; report and collect move them: --limit NAME=VALUE.\n"
	"\n"
	"cost to the process that is traced:\n"
	"  none      nothing is recorded for it\n"
	"  low       not to be measured in an ordinary program\n"
	"  moderate  a few percent\n"
	"  high      grows with what the program does: record for a short time\n";

static const char *cost_name(enum an_cost cost)
{
	static const char *const names[] = {
		[AN_COST_NONE] = "none",
		[AN_COST_LOW] = "low",
		[AN_COST_MODERATE] = "moderate",
		[AN_COST_HIGH] = "high",
	};

	return names[cost]; /* NULL: not stated */
}

/* --- JSON --- */

static void providers_json(struct json *j, const char *name, const struct an_provider *p)
{
	char keywords[24];

	json_begin_array(j, name);
	for (; p && p->name; p++) {
		snprintf(keywords, sizeof(keywords), "0x%" PRIx64, p->keywords);
		json_begin_object(j, NULL);
		json_text(j, "name", p->name);
		json_text(j, "keywords", keywords);
		json_uint(j, "level", p->level);
		json_end(j);
	}
	json_end(j);
}

/* The limits of findings about a section are named after it. */
static bool is_limit_of(const struct an_limit_spec *spec, const struct an_class *c)
{
	size_t len = strlen(c->name);

	return strncmp(spec->name, c->name, len) == 0 && spec->name[len] == '.';
}

static void limits_json(struct json *j, const struct an_class *c)
{
	json_begin_array(j, "limits");
	for (const struct an_limit_spec *s = an_limit_specs; s < an_limit_specs + AN_LIMITS; s++) {
		if (!is_limit_of(s, c))
			continue;
		json_begin_object(j, NULL);
		json_text(j, "name", s->name);
		json_double(j, "default", s->initial);
		json_text(j, "unit", s->unit);
		json_text(j, "summary", s->what);
		json_end(j);
	}
	json_end(j);
}

static void class_json(struct json *j, const struct an_class *c)
{
	json_begin_object(j, NULL);
	json_text(j, "id", c->name);
	json_text(j, "summary", c->summary);
	json_text(j, "symptom", c->symptom);
	providers_json(j, "providers", c->providers);
	if (c->on_request)
		providers_json(j, "providers_on_request", c->on_request);
	else
		json_null(j, "providers_on_request");
	json_text(j, "cost", cost_name(c->cost));
	if (c->seconds)
		json_uint(j, "default_duration_s", c->seconds);
	else
		json_null(j, "default_duration_s");
	json_begin_array(j, "parameters");
	for (const struct an_param *p = c->params; p && p->name; p++) {
		json_begin_object(j, NULL);
		json_text(j, "name", p->name);
		json_text(j, "summary", p->summary);
		json_text(j, "type", p->type);
		json_text(j, "default", p->initial);
		json_text(j, "range", p->range);
		json_end(j);
	}
	json_end(j);
	limits_json(j, c);
	json_end(j);
}

static void print_json(struct out *o)
{
	struct json j;

	json_init(&j, o, false);
	json_begin_object(&j, NULL);
	json_text(&j, "schema", REPORT_SCHEMA);
	json_begin_array(&j, "analyzers");
	for (const struct an_class *const *c = an_classes; *c; c++)
		class_json(&j, *c);
	json_end(&j);
	json_end(&j);
}

/* --- text --- */

static void providers_text(struct out *o, const char *what, const struct an_provider *p)
{
	for (; p && p->name; p++, what = "")
		out_printf(o, "  %-10s  %s:0x%" PRIx64 ":%u\n", what, p->name, p->keywords,
			   p->level);
}

static void limits_text(struct out *o, const struct an_class *c)
{
	const char *what = "limits";

	for (const struct an_limit_spec *s = an_limit_specs; s < an_limit_specs + AN_LIMITS; s++) {
		if (!is_limit_of(s, c))
			continue;
		out_printf(o, "  %-10s  %s=%g%s: %s\n", what, s->name, s->initial, s->unit,
			   s->what);
		what = "";
	}
}

static void class_text(struct out *o, const struct an_class *c)
{
	const char *what = "parameters", *cost = cost_name(c->cost);

	out_printf(o, "%s%s%s: %s\n", o->colour ? "\x1b[1m" : "", c->name,
		   o->colour ? "\x1b[0m" : "", c->summary);
	if (c->symptom)
		out_printf(o, "  %-10s  %s\n", "when", c->symptom);
	if (cost)
		out_printf(o, "  %-10s  %s\n", "cost", cost);
	if (c->seconds)
		out_printf(o, "  %-10s  %u s are usually enough\n", "duration", c->seconds);
	providers_text(o, "providers", c->providers);
	providers_text(o, "on request", c->on_request);
	for (const struct an_param *p = c->params; p && p->name; p++, what = "")
		out_printf(o, "  %-10s  --%s (%s, %s; default %s): %s\n", what, p->name, p->type,
			   p->range, p->initial, p->summary);
	limits_text(o, c);
}

static void print_text(struct out *o)
{
	for (const struct an_class *const *c = an_classes; *c; c++) {
		if (c != an_classes)
			out_char(o, '\n');
		class_text(o, *c);
	}
}

static int run_analyzers(const struct command *cmd, int argc, char **argv)
{
	struct analyzers_args args = { 0 };
	struct opt_operands words;
	struct out *o;
	int code = opt_parse(cmd, argc, argv, &args, &words);

	if (code < 0 && words.count)
		code = opt_usage_error(cmd, "'%s' is too much: analyzers takes no words",
				       words.v[0]);
	if (code < 0) {
		o = out_open(NULL, false);
		code = EXIT_FAILED;
		if (o) {
			if (args.json || args.format == FORMAT_JSON)
				print_json(o);
			else
				print_text(o);
			code = out_close(o, EXIT_DONE);
		}
	}
	opt_done(cmd, &args, &words);
	return code;
}

const struct command cmd_analyzers = {
	.name = "analyzers",
	.operands = "",
	.summary = "the catalogue: symptoms, what is recorded, cost, parameters",
	.notes = analyzers_notes,
	.options = analyzers_options,
	.run = run_analyzers,
};
