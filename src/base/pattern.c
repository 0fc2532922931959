/* SPDX-License-Identifier: MIT */
#include "src/base/pattern.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_PATTERN = 1000, /* bytes */
	MAX_REPEAT = 100,
	MAX_NAME = 1000, /* bytes of a name that are looked at */
};

struct pattern {
	regex_t regex;
	struct an_matcher matcher;
};

static bool matches(void *ctx, const char *name)
{
	struct pattern *p = ctx;
	char cut[MAX_NAME + 1];

	if (strlen(name) > MAX_NAME) {
		memcpy(cut, name, MAX_NAME);
		cut[MAX_NAME] = '\0';
		name = cut;
	}
	return regexec(&p->regex, name, 0, NULL, 0) == 0;
}

/* Why the C library's matcher had better not see it; NULL when it may. */
static const char *refuse(const char *text)
{
	unsigned braces = 0;

	if (strlen(text) > MAX_PATTERN)
		return "it is too long";
	for (const char *c = text; *c; c++) {
		if (c[0] == '\\' && c[1] >= '1' && c[1] <= '9')
			return "back-references are not supported";
		if (c[0] == '\\' && c[1])
			c++;
		else if (c[0] == '{' && (++braces > 2 || strtoul(c + 1, NULL, 10) > MAX_REPEAT))
			return "too many repeats";
		else if (c[0] == ',' && braces && strtoul(c + 1, NULL, 10) > MAX_REPEAT)
			return "too many repeats";
	}
	return NULL;
}

struct pattern *pattern_new(const char *text, char *reterr_why, size_t size)
{
	const char *why = refuse(text);
	struct pattern *p;
	int code;

	if (why) {
		snprintf(reterr_why, size, "%s", why);
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (!p) {
		snprintf(reterr_why, size, "out of memory");
		return NULL;
	}
	code = regcomp(&p->regex, text, REG_EXTENDED | REG_NOSUB);
	if (code) {
		regerror(code, &p->regex, reterr_why, size);
		free(p);
		return NULL;
	}
	p->matcher = (struct an_matcher){ matches, p };
	return p;
}

struct pattern *pattern_free(struct pattern *p)
{
	if (!p)
		return NULL;
	regfree(&p->regex);
	free(p);
	return NULL;
}

const struct an_matcher *pattern_matcher(const struct pattern *p)
{
	return &p->matcher;
}
