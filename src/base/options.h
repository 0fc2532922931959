/* SPDX-License-Identifier: MIT */
#ifndef SRC_BASE_OPTIONS_H
#define SRC_BASE_OPTIONS_H

/*
 * Options of a command as one table: parsing, --help, shell completion and the check that the
 * manual names every option come from it.
 *
 *	struct ps_args {
 *		bool json;
 *		uint64_t timeout_ns;
 *	};
 *	#define PS_AT(member, type) OPT_AT(struct ps_args, member, type)
 *	static const struct opt_spec ps_options[] = {
 *		{ "json", 0, NULL, "print JSON", OPT_FLAG(struct ps_args, json) },
 *		{ "timeout", 't', "TIME", "give up after TIME",
 *		  OPT_DURATION(struct ps_args, timeout_ns), .min = 1, .max = UINT64_MAX },
 *		{ 0 },
 *	};
 *
 * A member of the wrong type is a compile error.  --help is understood by every command.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct command;

enum opt_kind {
	OPT_KIND_FLAG, /* bool; takes no argument */
	OPT_KIND_BOOL, /* bool; "true" or "false" may follow, alone it means true */
	OPT_KIND_UINT, /* uint64_t; decimal or 0x… */
	OPT_KIND_DURATION, /* uint64_t, ns: 30s 5m 1h30m 250ms 2d dd:hh:mm:ss */
	OPT_KIND_SIZE, /* uint64_t, bytes: 512K 64M 2G (powers of 1024), 100B */
	OPT_KIND_STRING, /* const char *, points into argv */
	OPT_KIND_LIST, /* struct opt_list: one item each time the option is given */
	OPT_KIND_ENUM, /* int: index into .values */
};

/* Items point into argv. */
struct opt_list {
	const char **items;
	size_t count;
};

enum { OPT_MAX_ALIASES = 3 };

struct opt_spec {
	const char *name; /* long name without dashes */
	char letter; /* 0: none */
	const char *arg; /* name of the argument in --help; NULL for flags */
	const char *help; /* one line, lower case, no full stop */
	enum opt_kind kind;
	size_t offset; /* of the member in the structure given to opt_parse() */
	uint64_t min, max; /* of numbers, durations (ns) and sizes; max 0: no upper limit */
	const char *const *values; /* of an enum; ends at NULL */
	const char *aliases[OPT_MAX_ALIASES]; /* other long names with the same meaning */
	bool (*check)(const char *text); /* of strings and list items: NULL any */
	const char *expected; /* what check() wants, for the error: "KEY=VALUE" */
	bool hidden; /* understood, but not shown in --help and completion */
};

/* The offset of a member that must have exactly that type. */
#define OPT_AT(structure, member, type)                                                            \
	.offset = offsetof(structure, member) +                                                    \
		  0 * sizeof(char[_Generic(&((structure *)0)->member, type * : 1)])

#define OPT_FLAG(structure, member) OPT_AT(structure, member, bool), .kind = OPT_KIND_FLAG
#define OPT_BOOL(structure, member) OPT_AT(structure, member, bool), .kind = OPT_KIND_BOOL
#define OPT_UINT(structure, member) OPT_AT(structure, member, uint64_t), .kind = OPT_KIND_UINT
#define OPT_DURATION(structure, member)                                                            \
	OPT_AT(structure, member, uint64_t), .kind = OPT_KIND_DURATION
#define OPT_SIZE(structure, member) OPT_AT(structure, member, uint64_t), .kind = OPT_KIND_SIZE
#define OPT_STRING(structure, member)                                                              \
	OPT_AT(structure, member, const char *), .kind = OPT_KIND_STRING
#define OPT_LIST(structure, member)                                                                \
	OPT_AT(structure, member, struct opt_list), .kind = OPT_KIND_LIST
#define OPT_ENUM(structure, member, names)                                                         \
	OPT_AT(structure, member, int), .kind = OPT_KIND_ENUM, .values = (names)

/* The words that are not options, in order; v[0..count) points into argv. */
struct opt_operands {
	const char **v;
	size_t count;
	size_t before_dashes; /* how many stood before "--"; count when there was none */
	bool dashes; /* "--" was given */
};

/*
 * Fills the structure at args, whose members hold the defaults, and *ret_operands.
 * Returns -1 to go on; else the exit code to end with: 0 after --help (printed), 2 after a
 * mistake (one line on standard error).  Whatever it returns, opt_done() frees what it allocated.
 */
int opt_parse(const struct command *cmd, int argc, char **argv, void *args,
	      struct opt_operands *ret_operands);
void opt_done(const struct command *cmd, void *args, struct opt_operands *operands);

/*
 * Says "drdotnet-trace: COMMAND: <why>" and "see 'drdotnet-trace COMMAND --help'"; returns
 * EXIT_USAGE.  For mistakes that the table cannot express.
 */
int opt_usage_error(const struct command *cmd, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* --- values; pure, for tests and for commands that parse words of their own --- */

/* NULL when the text is fine, else the static reason: "a unit is needed: 30s, 5m, 1h30m". */
const char *opt_parse_uint(const char *text, uint64_t *ret);
const char *opt_parse_duration(const char *text, uint64_t *ret_ns);
const char *opt_parse_size(const char *text, uint64_t *ret_bytes);

/* The entry of names (ends at NULL) that is nearest to word, or NULL when none is near. */
const char *opt_nearest(const char *word, const char *const *names);

#endif
