/* SPDX-License-Identifier: MIT */
#include "src/report/opt_limit.h"

#include <stdio.h>
#include <string.h>

#include "src/base/command.h"

static int unknown(const struct command *cmd, const char *item, size_t len)
{
	const char *names[AN_LIMITS + 1] = { 0 }, *near;
	char word[64] = "";

	for (size_t i = 0; i < AN_LIMITS; i++)
		names[i] = an_limit_specs[i].name;
	if (len < sizeof(word))
		memcpy(word, item, len);
	near = opt_nearest(word, names);
	if (near)
		return opt_usage_error(cmd, "--limit '%s': there is no such limit; near is %s",
				       item, near);
	return opt_usage_error(cmd,
			       "--limit '%s': there is no such limit; 'drdotnet-trace analyzers' "
			       "lists them",
			       item);
}

static int wrong_value(const struct command *cmd, const char *item, enum an_limit which)
{
	const struct an_limit_spec *spec = &an_limit_specs[which];

	return opt_usage_error(cmd, "--limit '%s': the value must be like %g%s", item,
			       spec->initial, spec->unit);
}

int limits_of(const struct command *cmd, const struct opt_list *given, struct an_limits *ret)
{
	an_limits_init(ret);
	for (size_t i = 0; i < given->count; i++) {
		const char *item = given->items[i], *equal = strchr(item, '=');
		size_t len = equal ? (size_t)(equal - item) : strlen(item);
		enum an_limit which = an_limits_find(item, len);

		if (which == AN_LIMITS)
			return unknown(cmd, item, len);
		if (!equal || !an_limits_set(ret, which, equal + 1))
			return wrong_value(cmd, item, which);
	}
	return -1;
}
