/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "src/base/json.h"
#include "src/base/version.h"
#include "src/report/report_out.h"

static void put(struct json *j, const struct an_value *v)
{
	switch (v->kind) {
	case AN_NULL:
		json_null(j, v->name);
		break;
	case AN_BOOL:
		json_bool(j, v->name, v->u != 0);
		break;
	case AN_UINT:
		json_uint(j, v->name, v->u);
		break;
	case AN_INT:
		json_int(j, v->name, v->i);
		break;
	case AN_DOUBLE:
		if (v->decimals == AN_SHORTEST)
			json_double(j, v->name, v->f);
		else
			json_fixed(j, v->name, v->f, v->decimals);
		break;
	case AN_TEXT:
		json_text(j, v->name, v->text);
		break;
	case AN_OBJECT:
		json_begin_object(j, v->name);
		break;
	case AN_ARRAY:
		json_begin_array(j, v->name);
		break;
	}
}

/* Writes v and all below it, without recursion. */
static void walk(struct json *j, const struct an_value *top)
{
	const struct an_value *stack[JSON_MAX_DEPTH];
	const struct an_value *v = top;
	size_t depth = 0;

	for (;;) {
		if (v) {
			put(j, v);
			if (v->kind == AN_OBJECT || v->kind == AN_ARRAY) {
				assert(depth < JSON_MAX_DEPTH);
				stack[depth++] = v;
				v = v->first;
				continue;
			}
		} else {
			json_end(j);
			v = stack[--depth];
		}
		if (!depth)
			return;
		v = v->next;
	}
}

static void begin(struct json *j, struct out *o)
{
	json_init(j, o, false);
	json_begin_object(j, NULL);
	json_text(j, "schema", REPORT_SCHEMA);
	json_text(j, "tool", "drdotnet-trace " PACKAGE_VERSION);
}

void report_json(struct out *o, const struct an_value *root)
{
	struct json j;

	begin(&j, o);
	for (const struct an_value *v = root->first; v; v = v->next)
		walk(&j, v);
	json_end(&j);
}

void report_json_member(struct out *o, const struct an_value *root, const char *name)
{
	const struct an_value *v = an_get(root, name);
	struct json j;

	begin(&j, o);
	if (v)
		walk(&j, v);
	json_end(&j);
}
