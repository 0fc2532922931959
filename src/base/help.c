/* SPDX-License-Identifier: MIT */
#include "src/base/help.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/base/command.h"
#include "src/base/output.h"

enum {
	HELP_COLUMN = 30,
	HELP_WIDTH = 79,
};

/* The largest unit that divides v. */
static void format_unit(uint64_t v, const char *const *names, const uint64_t *sizes, char *buf,
			size_t size)
{
	size_t i = 0;

	while (sizes[i] > 1 && (v < sizes[i] || v % sizes[i]))
		i++;
	snprintf(buf, size, "%" PRIu64 "%s", v / sizes[i], names[i]);
}

void opt_format_number(enum opt_kind kind, uint64_t v, char *buf, size_t size)
{
	static const char *const times[] = { "h", "m", "s", "ms", "us", "ns" };
	static const uint64_t time_ns[] = {
		UINT64_C(3600000000000), UINT64_C(60000000000), 1000000000, 1000000, 1000, 1
	};
	static const char *const sizes[] = { "T", "G", "M", "K", "B" };
	static const uint64_t size_bytes[] = { UINT64_C(1) << 40, 1 << 30, 1 << 20, 1 << 10, 1 };

	if (kind == OPT_KIND_DURATION)
		format_unit(v, times, time_ns, buf, size);
	else if (kind == OPT_KIND_SIZE)
		format_unit(v, sizes, size_bytes, buf, size);
	else
		snprintf(buf, size, "%" PRIu64, v);
}

/* Breaks text into lines between two columns; the first line starts at column at. */
static void print_wrapped(struct out *o, const char *text, size_t at)
{
	if (at + 2 > HELP_COLUMN) {
		out_char(o, '\n');
		at = 0;
	}
	out_printf(o, "%*s", (int)(HELP_COLUMN - at), "");
	at = HELP_COLUMN;
	while (*text) {
		size_t len = strcspn(text, " ");

		if (at > HELP_COLUMN && at + 1 + len > HELP_WIDTH) {
			out_printf(o, "\n%*s", HELP_COLUMN, "");
			at = HELP_COLUMN;
		} else if (at > HELP_COLUMN) {
			out_char(o, ' ');
			at++;
		}
		out_write(o, text, len);
		at += len;
		text += len;
		text += *text == ' ';
	}
	out_char(o, '\n');
}

/* "  -p, --process-id PID" */
static size_t print_names(struct out *o, const struct opt_spec *s)
{
	char line[256];
	size_t n;

	if (s->letter)
		n = (size_t)snprintf(line, sizeof(line), "  -%c, --%s", s->letter, s->name);
	else
		n = (size_t)snprintf(line, sizeof(line), "      --%s", s->name);
	for (size_t i = 0; i < OPT_MAX_ALIASES && s->aliases[i]; i++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, ", --%s", s->aliases[i]);
	if (s->kind == OPT_KIND_BOOL)
		n += (size_t)snprintf(line + n, sizeof(line) - n, " [true|false]");
	else if (s->arg)
		n += (size_t)snprintf(line + n, sizeof(line) - n, " %s", s->arg);
	out_write(o, line, n);
	return n;
}

int opt_print_help(const struct command *cmd)
{
	static const struct opt_spec help = { "help", 'h', NULL, "this text", .offset = 0 };
	struct out *o = out_open(NULL, false);

	if (!o)
		return EXIT_FAILED;
	out_printf(o, "usage: drdotnet-trace %s [OPTIONS]%s%s\n\n%s\n\noptions:\n", cmd->name,
		   *cmd->operands ? " " : "", cmd->operands, cmd->summary);
	for (const struct opt_spec *s = cmd->options; s->name; s++)
		if (!s->hidden)
			print_wrapped(o, s->help, print_names(o, s));
	print_wrapped(o, help.help, print_names(o, &help));
	if (cmd->notes)
		out_printf(o, "\n%s", cmd->notes);
	return out_close(o, EXIT_DONE);
}

static void print_argument(struct out *o, const struct opt_spec *s)
{
	out_char(o, '\t');
	if (s->kind == OPT_KIND_BOOL)
		out_text(o, "true false");
	else if (s->kind == OPT_KIND_ENUM)
		for (size_t i = 0; s->values[i]; i++)
			out_printf(o, "%s%s", i ? " " : "", s->values[i]);
	else if (s->arg)
		out_text(o, s->arg);
	out_char(o, '\n');
}

int opt_print_list(const struct command *cmd)
{
	struct out *o = out_open(NULL, false);

	if (!o)
		return EXIT_FAILED;
	for (const struct opt_spec *s = cmd->options; s->name; s++) {
		if (s->hidden)
			continue;
		out_printf(o, "--%s", s->name);
		print_argument(o, s);
		for (size_t i = 0; i < OPT_MAX_ALIASES && s->aliases[i]; i++) {
			out_printf(o, "--%s", s->aliases[i]);
			print_argument(o, s);
		}
		if (s->letter) {
			out_printf(o, "-%c", s->letter);
			print_argument(o, s);
		}
	}
	out_text(o, "--help\t\n-h\t\n");
	return out_close(o, EXIT_DONE);
}
