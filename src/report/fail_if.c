/* SPDX-License-Identifier: MIT */
#include "src/report/fail_if.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/command.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/output.h"
#include "src/base/table.h"
#include "src/base/version.h"

const char *const fail_on_names[] = {
	[FAIL_ON_NEVER] = "never",
	[FAIL_ON_CRITICAL] = "critical",
	[FAIL_ON_WARNING] = "warning",
	NULL,
};

int fail_if_parse(struct fail_if *ret, const struct command *cmd, const struct opt_list *exprs,
		  int on)
{
	struct expr_error error;

	*ret = (struct fail_if){ .on = (enum fail_on)on };
	if (!exprs->count)
		return -1;
	ret->exprs = calloc(exprs->count, sizeof(*ret->exprs));
	if (!ret->exprs) {
		log_error("out of memory");
		return EXIT_FAILED;
	}
	for (; ret->count < exprs->count; ret->count++)
		if (!expr_parse(&ret->exprs[ret->count], exprs->items[ret->count], &error))
			return opt_usage_error(cmd, "--fail-if: %s", error.text);
	return -1;
}

void fail_if_done(struct fail_if *f)
{
	free(f->exprs);
	*f = (struct fail_if){ 0 };
}

bool fail_if_needs(const struct fail_if *f, const char *section)
{
	size_t len = strlen(section);

	if (!f)
		return false;
	if (f->on != FAIL_ON_NEVER) /* any may have such a finding */
		return true;
	for (size_t i = 0; i < f->count; i++)
		for (size_t k = 0; k < f->exprs[i].count; k++) {
			const char *path = f->exprs[i].terms[k].value->path;

			if (strncmp(path, section, len) == 0 && path[len] == '.')
				return true;
		}
	return false;
}

/* --- judging --- */

static void say_term(const struct expr *e, const struct expr_term *t, const struct an_value *root)
{
	double is = 0;
	char unit[16] = "";

	expr_judge_term(t, root, &is);
	if (t->value->unit != UNIT_NONE && t->value->unit != UNIT_BOOL)
		snprintf(unit, sizeof(unit), " %s", expr_unit_name(t->value->unit));
	log_error("condition holds: %.*s: it is %.10g%s", (int)(t->end - t->begin),
		  e->text + t->begin, is, unit);
}

static bool judge(const struct expr *e, const struct an_value *root)
{
	enum expr_result results[EXPR_MAX_TERMS] = { EXPR_FALSE };
	bool holds = expr_judge(e, root, results);

	for (size_t i = 0; i < e->count; i++) {
		const struct expr_term *t = &e->terms[i];

		if (results[i] == EXPR_UNKNOWN)
			log_warn("'%s' was not recorded: '%.*s' is not fulfilled", t->value->path,
				 (int)(t->end - t->begin), e->text + t->begin);
		else if (holds && results[i] == EXPR_TRUE)
			say_term(e, t, root);
	}
	return holds;
}

static bool judge_findings(const struct fail_if *f, const struct an_value *root)
{
	const struct an_value *list = an_get(root, "findings");
	const char *first = NULL;
	size_t count = 0;

	if (f->on == FAIL_ON_NEVER || !list)
		return false;
	for (const struct an_value *v = list->first; v; v = v->next) {
		const char *severity = an_get_text(v, "severity", "");

		if (strcmp(severity, "critical") != 0 &&
		    (f->on == FAIL_ON_CRITICAL || strcmp(severity, "warning") != 0))
			continue;
		if (!first)
			first = an_get_text(v, "title", "");
		count++;
	}
	if (count)
		log_error("condition holds: --fail-on %s: %zu %s: %s", fail_on_names[f->on], count,
			  count == 1 ? "finding" : "findings", first);
	return count > 0;
}

bool fail_if_judge(const struct fail_if *f, const struct an_value *root)
{
	bool holds = false;

	if (!f)
		return false;
	for (size_t i = 0; i < f->count; i++)
		holds = judge(&f->exprs[i], root) || holds;
	return judge_findings(f, root) || holds;
}

/* --- the list --- */

static void list_json_row(struct json *j, const char *name, const struct value_spec *v,
			  const char *alias_of)
{
	json_begin_object(j, NULL);
	json_text(j, "value", name);
	json_text(j, "unit", *expr_unit_name(v->unit) ? expr_unit_name(v->unit) : NULL);
	json_text(j, "summary", v->summary);
	json_text(j, "alias_of", alias_of);
	json_end(j);
}

static void list_json(struct out *o)
{
	const struct value_spec *of;
	const char *alias;
	struct json j;

	json_init(&j, o, false);
	json_begin_object(&j, NULL);
	json_text(&j, "schema", REPORT_SCHEMA);
	json_begin_array(&j, "values");
	for (const struct value_spec *v = values; v->path; v++)
		list_json_row(&j, v->path, v, NULL);
	for (size_t i = 0; (alias = expr_alias(i, &of)); i++)
		list_json_row(&j, alias, of, of->path);
	json_end(&j);
	json_end(&j);
}

void fail_if_list(struct out *o, bool json)
{
	const struct value_spec *of;
	const char *alias;
	struct table t;

	if (json) {
		list_json(o);
		return;
	}
	table_init(&t, "lll");
	table_cell(&t, "VALUE");
	table_cell(&t, "UNIT");
	table_cell(&t, "MEANING");
	for (const struct value_spec *v = values; v->path; v++) {
		table_cell(&t, "%s", v->path);
		table_cell(&t, "%s", expr_unit_name(v->unit));
		table_cell(&t, "%s", v->summary);
	}
	for (size_t i = 0; (alias = expr_alias(i, &of)); i++) {
		table_cell(&t, "%s", alias);
		table_cell(&t, "%s", expr_unit_name(of->unit));
		table_cell(&t, "the same as %s", of->path);
	}
	table_print(&t, o, true);
}
