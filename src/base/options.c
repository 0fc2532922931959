/* SPDX-License-Identifier: MIT */
#include "src/base/options.h"

#include <assert.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/command.h"
#include "src/base/help.h"
#include "src/base/log.h"

enum {
	MAX_NAMES = 160, /* long names of one command, aliases included */
	LONG_BASE = 0x10000, /* what getopt_long() returns for a long name: LONG_BASE + its index */
	IN_ORDER = 1, /* an operand, because the short options start with '-' */
};

/* One command line being read. */
struct parse {
	const struct command *cmd;
	int argc;
	char **argv;
	char *args; /* the structure to fill */
	struct opt_operands *operands;
	char letters[2 * 64 + 4];
	struct option longs[MAX_NAMES + 2];
	const struct opt_spec *specs[MAX_NAMES + 2]; /* of each long name; NULL: --help */
	size_t long_count;
};

static bool takes_argument(enum opt_kind kind)
{
	return kind != OPT_KIND_FLAG && kind != OPT_KIND_BOOL;
}

static int usage_error(const struct command *cmd, const char *advice, const char *why)
{
	log_error("%s: %s", cmd->name, why);
	if (advice)
		log_advice("did you mean '%s'?", advice);
	else
		log_advice("see 'drdotnet-trace %s --help'", cmd->name);
	return EXIT_USAGE;
}

int opt_usage_error(const struct command *cmd, const char *fmt, ...)
{
	char why[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return usage_error(cmd, NULL, why);
}

static void add_long(struct parse *p, const struct opt_spec *spec, const char *name)
{
	struct option *o = &p->longs[p->long_count];

	assert(p->long_count < MAX_NAMES);
	o->name = name;
	o->has_arg = no_argument;
	if (spec && takes_argument(spec->kind))
		o->has_arg = required_argument;
	else if (spec && spec->kind == OPT_KIND_BOOL)
		o->has_arg = optional_argument;
	o->flag = NULL;
	o->val = LONG_BASE + (int)p->long_count;
	p->specs[p->long_count++] = spec;
}

/* The arrays getopt_long() wants, from the table. */
static void build(struct parse *p)
{
	size_t n = 0;

	p->letters[n++] = '-'; /* operands are returned in their place */
	p->letters[n++] = ':'; /* tell a missing argument from an unknown option */
	p->letters[n++] = 'h';
	for (const struct opt_spec *s = p->cmd->options; s->name; s++) {
		add_long(p, s, s->name);
		for (size_t i = 0; i < OPT_MAX_ALIASES && s->aliases[i]; i++)
			add_long(p, s, s->aliases[i]);
		if (!s->letter)
			continue;
		assert(n + 3 < sizeof(p->letters));
		p->letters[n++] = s->letter;
		if (takes_argument(s->kind))
			p->letters[n++] = ':';
	}
	p->letters[n] = '\0';
	add_long(p, NULL, "help");
	memset(&p->longs[p->long_count], 0, sizeof(p->longs[0]));
}

static const struct opt_spec *by_letter(const struct command *cmd, int letter)
{
	for (const struct opt_spec *s = cmd->options; s->name; s++)
		if (s->letter && s->letter == letter)
			return s;
	return NULL;
}

static int value_error(const struct parse *p, const struct opt_spec *s, const char *text,
		       const char *why)
{
	return opt_usage_error(p->cmd, "--%s '%s': %s", s->name, text, why);
}

static const char *parse_number(const struct opt_spec *s, const char *text, uint64_t *ret)
{
	if (s->kind == OPT_KIND_DURATION)
		return opt_parse_duration(text, ret);
	if (s->kind == OPT_KIND_SIZE)
		return opt_parse_size(text, ret);
	return opt_parse_uint(text, ret);
}

static int set_number(struct parse *p, const struct opt_spec *s, const char *text)
{
	uint64_t v = 0, max = s->max ? s->max : UINT64_MAX;
	const char *why = parse_number(s, text, &v);
	char limit[32];

	if (why)
		return value_error(p, s, text, why);
	if (v < s->min || v > max) {
		uint64_t bound = v < s->min ? s->min : max;

		opt_format_number(s->kind, bound, limit, sizeof(limit));
		return opt_usage_error(p->cmd, "--%s '%s': must be at %s %s", s->name, text,
				       v < s->min ? "least" : "most", limit);
	}
	memcpy(p->args + s->offset, &v, sizeof(v));
	return -1;
}

static int set_enum(struct parse *p, const struct opt_spec *s, const char *text)
{
	char list[256];
	size_t n = 0;

	for (int i = 0; s->values[i]; i++) {
		if (strcmp(s->values[i], text) == 0) {
			memcpy(p->args + s->offset, &i, sizeof(i));
			return -1;
		}
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "",
				      s->values[i]);
		assert(n < sizeof(list));
	}
	return opt_usage_error(p->cmd, "--%s '%s': must be one of %s", s->name, text, list);
}

static int set_bool(struct parse *p, const struct opt_spec *s, const char *text)
{
	bool v = strcmp(text, "true") == 0;

	if (!v && strcmp(text, "false") != 0)
		return value_error(p, s, text, "must be true or false");
	memcpy(p->args + s->offset, &v, sizeof(v));
	return -1;
}

static int set_item(struct parse *p, const struct opt_spec *s, const char *text)
{
	struct opt_list list;
	const char **items;

	memcpy(&list, p->args + s->offset, sizeof(list));
	items = realloc(list.items, (list.count + 1) * sizeof(*items));
	if (!items) {
		log_error("%s: out of memory", p->cmd->name);
		return EXIT_FAILED;
	}
	items[list.count++] = text;
	list.items = items;
	memcpy(p->args + s->offset, &list, sizeof(list));
	return -1;
}

static int set(struct parse *p, const struct opt_spec *s, const char *text)
{
	if ((s->kind == OPT_KIND_STRING || s->kind == OPT_KIND_LIST) && s->check && !s->check(text))
		return opt_usage_error(p->cmd, "--%s '%s': must be %s", s->name, text, s->expected);
	switch (s->kind) {
	case OPT_KIND_FLAG:
		return set_bool(p, s, "true");
	case OPT_KIND_BOOL:
		return set_bool(p, s, text);
	case OPT_KIND_ENUM:
		return set_enum(p, s, text);
	case OPT_KIND_LIST:
		return set_item(p, s, text);
	case OPT_KIND_STRING:
		memcpy(p->args + s->offset, &text, sizeof(text));
		return -1;
	case OPT_KIND_UINT:
	case OPT_KIND_DURATION:
	case OPT_KIND_SIZE:
		break;
	}
	return set_number(p, s, text);
}

/* The text of an option whose argument may be left out: "true" or "false" in the next word. */
static const char *bool_text(const struct parse *p)
{
	const char *next = optind < p->argc ? p->argv[optind] : "";

	if (optarg)
		return optarg;
	if (strcmp(next, "true") != 0 && strcmp(next, "false") != 0)
		return "true";
	optind++;
	return next;
}

static int unknown_long(struct parse *p, const char *word)
{
	const char *names[MAX_NAMES + 1];
	char bare[64], why[256], near[72];
	size_t n = 0, len = strcspn(word + 2, "=");
	const char *best = NULL;

	for (size_t i = 0; i < p->long_count; i++)
		if (!p->specs[i] || !p->specs[i]->hidden)
			names[n++] = p->longs[i].name;
	names[n] = NULL;
	if (len < sizeof(bare)) {
		memcpy(bare, word + 2, len);
		bare[len] = '\0';
		best = opt_nearest(bare, names);
	}
	snprintf(near, sizeof(near), "--%s", best ? best : "");
	snprintf(why, sizeof(why), "unknown option '%.*s'", (int)(len + 2 < 100 ? len + 2 : 100),
		 word);
	return usage_error(p->cmd, best ? near : NULL, why);
}

static int needs_argument(struct parse *p, const struct opt_spec *s)
{
	return opt_usage_error(p->cmd, "--%s: an argument is needed: %s", s->name, s->arg);
}

/* getopt_long() returned '?' or ':'. */
static int refuse(struct parse *p, int c, const char *word)
{
	bool is_long = word[0] == '-' && word[1] == '-';

	if (optopt >= LONG_BASE && c == ':')
		return needs_argument(p, p->specs[optopt - LONG_BASE]);
	if (optopt >= LONG_BASE)
		return opt_usage_error(p->cmd, "--%s takes no argument",
				       p->longs[optopt - LONG_BASE].name);
	if (is_long)
		return unknown_long(p, word);
	if (c == ':' && by_letter(p->cmd, optopt))
		return needs_argument(p, by_letter(p->cmd, optopt));
	return opt_usage_error(p->cmd, "unknown option '-%c'", optopt);
}

/* getopt_long() takes "--du" for "--duration"; we do not: a later option would break scripts. */
static bool is_whole_name(const char *word, const char *name)
{
	size_t len = strlen(name);

	return strncmp(word + 2, name, len) == 0 && (word[2 + len] == '\0' || word[2 + len] == '=');
}

static int take(struct parse *p, int c, const char *word)
{
	const struct opt_spec *s;

	if (c == IN_ORDER) {
		p->operands->v[p->operands->count++] = optarg;
		return -1;
	}
	if (c == '?' || c == ':')
		return refuse(p, c, word);
	if (c >= LONG_BASE && !is_whole_name(word, p->longs[c - LONG_BASE].name))
		return unknown_long(p, word);
	s = c >= LONG_BASE ? p->specs[c - LONG_BASE] : by_letter(p->cmd, c);
	if (!s)
		return opt_print_help(p->cmd);
	if (takes_argument(s->kind) && !*optarg)
		return needs_argument(p, s);
	return set(p, s, s->kind == OPT_KIND_BOOL ? bool_text(p) : optarg);
}

static int walk(struct parse *p)
{
	const char *word = NULL;
	int at = 0;

	opterr = 0;
	optind = 0; /* start afresh, whatever was parsed before */
	for (;;) {
		int c, code;

		/* The word getopt looks at; the same one again inside "-abc". */
		at = optind ? optind : 1;
		if (at < p->argc)
			word = p->argv[at];
		c = getopt_long(p->argc, p->argv, p->letters, p->longs, NULL);
		if (c == -1)
			break;
		code = take(p, c, word);
		if (code >= 0)
			return code;
	}
	p->operands->dashes = optind > 1 && strcmp(p->argv[optind - 1], "--") == 0;
	p->operands->before_dashes = p->operands->count;
	while (optind < p->argc)
		p->operands->v[p->operands->count++] = p->argv[optind++];
	return -1;
}

int opt_parse(const struct command *cmd, int argc, char **argv, void *args,
	      struct opt_operands *ret_operands)
{
	struct parse *p = calloc(1, sizeof(*p));
	int code = EXIT_FAILED;

	memset(ret_operands, 0, sizeof(*ret_operands));
	ret_operands->v = calloc((size_t)argc + 1, sizeof(*ret_operands->v));
	if (!p || !ret_operands->v) {
		log_error("%s: out of memory", cmd->name);
		free(p);
		return code;
	}
	p->cmd = cmd;
	p->argc = argc;
	p->argv = argv;
	p->args = args;
	p->operands = ret_operands;
	build(p);
	code = walk(p);
	free(p);
	return code;
}

void opt_done(const struct command *cmd, void *args, struct opt_operands *operands)
{
	for (const struct opt_spec *s = cmd->options; s->name; s++) {
		struct opt_list list;

		if (s->kind != OPT_KIND_LIST)
			continue;
		memcpy(&list, (char *)args + s->offset, sizeof(list));
		free(list.items);
		memset((char *)args + s->offset, 0, sizeof(list));
	}
	free(operands->v);
	memset(operands, 0, sizeof(*operands));
}
