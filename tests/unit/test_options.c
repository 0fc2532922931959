/* SPDX-License-Identifier: MIT */

/* Option tables: values, parsing, and the line that a mistake gets. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/command.h"
#include "src/base/help.h"
#include "src/base/options.h"

struct args {
	bool flag, rundown;
	uint64_t top, pid, duration_ns, size_bytes;
	const char *output, *pair;
	struct opt_list lists;
	int format;
};

static const char *const formats[] = { "text", "json", NULL };

static bool has_equals(const char *text)
{
	return strchr(text, '=') != NULL;
}

static const struct opt_spec specs[] = {
	{ "flag", 'f', NULL, "a flag", OPT_FLAG(struct args, flag) },
	{ "rundown", 0, NULL, "a bool", OPT_BOOL(struct args, rundown) },
	{ "top", 't', "N", "a number", OPT_UINT(struct args, top), .max = 1000 },
	{ "process-id", 'p', "PID", "aliases", OPT_UINT(struct args, pid), .min = 1,
	  .max = INT32_MAX, .aliases = { "pid" } },
	{ "duration", 0, "TIME", "a duration", OPT_DURATION(struct args, duration_ns),
	  .min = 1000000000, .max = UINT64_C(3600000000000) },
	{ "size", 0, "SIZE", "a size", OPT_SIZE(struct args, size_bytes) },
	{ "output", 'o', "FILE", "a string", OPT_STRING(struct args, output) },
	{ "pair", 0, "KEY=VALUE", "checked", OPT_STRING(struct args, pair), .check = has_equals,
	  .expected = "KEY=VALUE" },
	{ "list", 'l', "ITEM", "a list", OPT_LIST(struct args, lists) },
	{ "format", 0, "FORMAT", "an enum", OPT_ENUM(struct args, format, formats) },
	{ "secret", 0, NULL, "hidden", OPT_FLAG(struct args, flag), .hidden = true },
	{ 0 },
};

static int not_run(const struct command *cmd, int argc, char **argv)
{
	(void)cmd;
	(void)argc;
	(void)argv;
	return 99;
}

static const struct command command = { .name = "test",
					.operands = "[WORD...]",
					.summary = "a test",
					.options = specs,
					.run = not_run };

static struct args args;
static struct opt_operands words;
static char said[4096]; /* on standard error, or standard output */

static int begin_capture(int fd, FILE **ret_file)
{
	int saved = dup(fd);

	*ret_file = tmpfile();
	assert_non_null(*ret_file);
	assert_true(saved >= 0);
	assert_int_equal(dup2(fileno(*ret_file), fd), fd);
	return saved;
}

static void end_capture(int fd, int saved, FILE *file)
{
	rewind(file);
	said[fread(said, 1, sizeof(said) - 1, file)] = '\0';
	fclose(file);
	assert_int_equal(dup2(saved, fd), fd);
	close(saved);
}

/* Parses the words of a line; argv lives until the next call. */
static int parse(const char *line)
{
	static char text[512];
	static char *argv[32];
	int argc = 0, code, saved;
	char *save = NULL;
	FILE *file;

	opt_done(&command, &args, &words);
	memset(&args, 0, sizeof(args));
	snprintf(text, sizeof(text), "test %s", line);
	for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	argv[argc] = NULL;
	saved = begin_capture(STDERR_FILENO, &file);
	code = opt_parse(&command, argc, argv, &args, &words);
	end_capture(STDERR_FILENO, saved, file);
	return code;
}

static void refused(const char *line, const char *message)
{
	char expected[1024];

	snprintf(expected, sizeof(expected), "drdotnet-trace: test: %s\n", message);
	assert_int_equal(parse(line), EXIT_USAGE);
	assert_int_equal(strncmp(said, expected, strlen(expected)), 0);
}

static void every_kind(void **state)
{
	(void)state;
	assert_int_equal(parse("-f --rundown -t 7 --pid 42 --duration 1m30s --size 64M -o out "
			       "--pair a=b -l x --list=y --format json"),
			 -1);
	assert_true(args.flag);
	assert_true(args.rundown);
	assert_int_equal(args.top, 7);
	assert_int_equal(args.pid, 42);
	assert_true(args.duration_ns == UINT64_C(90000000000));
	assert_true(args.size_bytes == 64 << 20);
	assert_string_equal(args.output, "out");
	assert_string_equal(args.pair, "a=b");
	assert_int_equal(args.lists.count, 2);
	assert_string_equal(args.lists.items[0], "x");
	assert_string_equal(args.lists.items[1], "y");
	assert_int_equal(args.format, 1);
	assert_int_equal(words.count, 0);
}

static void spellings(void **state)
{
	(void)state;
	assert_int_equal(parse("--process-id=7"), -1);
	assert_int_equal(args.pid, 7);
	assert_int_equal(parse("-p7"), -1);
	assert_int_equal(args.pid, 7);
	assert_int_equal(parse("-ft9"), -1);
	assert_true(args.flag);
	assert_int_equal(args.top, 9);
	assert_int_equal(parse("-t 0x10 -t 3"), -1); /* the last one counts */
	assert_int_equal(args.top, 3);
	assert_int_equal(parse("--rundown false word"), -1);
	assert_false(args.rundown);
	assert_int_equal(words.count, 1);
	assert_int_equal(parse("--rundown word"), -1);
	assert_true(args.rundown);
	assert_int_equal(words.count, 1);
	assert_int_equal(parse("--rundown=false"), -1);
	assert_false(args.rundown);
	assert_int_equal(parse("--secret"), -1);
	assert_true(args.flag);
}

static void operands_keep_their_order(void **state)
{
	(void)state;
	assert_int_equal(parse("one -t 5 two - -f"), -1);
	assert_int_equal(words.count, 3);
	assert_string_equal(words.v[0], "one");
	assert_string_equal(words.v[1], "two");
	assert_string_equal(words.v[2], "-");
	assert_int_equal(words.before_dashes, 3);
	assert_false(words.dashes);
	assert_true(args.flag);

	assert_int_equal(parse("one -- app -t 5 -- --flag"), -1);
	assert_true(words.dashes);
	assert_int_equal(words.before_dashes, 1);
	assert_int_equal(words.count, 6);
	assert_string_equal(words.v[1], "app");
	assert_string_equal(words.v[2], "-t");
	assert_string_equal(words.v[4], "--");
	assert_false(args.flag);
	assert_int_equal(args.top, 0);

	assert_int_equal(parse("-t 5 --"), -1);
	assert_true(words.dashes);
	assert_int_equal(words.count, 0);
}

static void mistakes_are_named(void **state)
{
	(void)state;
	refused("--tpo 5", "unknown option '--tpo'");
	assert_non_null(strstr(said, "did you mean '--top'?"));
	refused("--dur=5", "unknown option '--dur'"); /* no abbreviations */
	assert_non_null(strstr(said, "did you mean '--duration'?"));
	refused("--xyzzy", "unknown option '--xyzzy'");
	assert_non_null(strstr(said, "see 'drdotnet-trace test --help'"));
	refused("-x", "unknown option '-x'");
	refused("-fx", "unknown option '-x'");
	refused("--top", "--top: an argument is needed: N");
	refused("-t", "--top: an argument is needed: N");
	refused("--output=", "--output: an argument is needed: FILE");
	refused("--flag=1", "--flag takes no argument");
	refused("--top 5x", "--top '5x': not a number");
	refused("--top -5", "--top '-5': not a number");
	refused("--top 1001", "--top '1001': must be at most 1000");
	refused("--pid 0", "--process-id '0': must be at least 1");
	refused("--top 99999999999999999999",
		"--top '99999999999999999999': the number is too large");
	refused("--duration 30", "--duration '30': a unit is needed: 250ms, 30s, 5m, 1h30m");
	refused("--duration 2h", "--duration '2h': must be at most 1h");
	refused("--duration 10ms", "--duration '10ms': must be at least 1s");
	refused("--size 64", "--size '64': a unit is needed: 512K, 64M, 2G");
	refused("--format xml", "--format 'xml': must be one of text, json");
	refused("--rundown=maybe", "--rundown 'maybe': must be true or false");
	refused("--pair ab", "--pair 'ab': must be KEY=VALUE");
}

static void durations(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "30s", UINT64_C(30000000000) },
		{ "5m", UINT64_C(300000000000) },
		{ "1h30m", UINT64_C(5400000000000) },
		{ "250ms", 250000000 },
		{ "1m30s250ms", UINT64_C(90250000000) },
		{ "2d", UINT64_C(172800000000000) },
		{ "1.5s", 1500000000 },
		{ "10us", 10000 },
		{ "7ns", 7 },
		{ "0s", 0 },
		{ "00:00:00:05", UINT64_C(5000000000) },
		{ "01:02:03:04", UINT64_C(93784000000000) },
		{ "00:00:30", UINT64_C(30000000000) },
	};
	static const char *const bad[] = {
		"",	"30",  "0",	"s",	     "5x",	 "30m1h",
		"5s5s", "-5s", "1:30",	"0:0:60",    "24:00:00", "1:2:3:4:5",
		"5 s",	"1.s", "1..5s", "00:00:00:", "213504d",	 "18446744073709551616ns",
		"5S"
	};
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_null(opt_parse_duration(good[i].text, &ns));
		assert_true(ns == good[i].ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ns = 77;
		assert_non_null(opt_parse_duration(bad[i], &ns));
		assert_true(ns == 77);
	}
}

static void sizes_and_numbers(void **state)
{
	uint64_t v;

	(void)state;
	assert_null(opt_parse_size("100B", &v));
	assert_true(v == 100);
	assert_null(opt_parse_size("512k", &v));
	assert_true(v == 512 << 10);
	assert_null(opt_parse_size("2GB", &v));
	assert_true(v == UINT64_C(2) << 30);
	assert_null(opt_parse_size("1TiB", &v));
	assert_true(v == UINT64_C(1) << 40);
	assert_non_null(opt_parse_size("64", &v));
	assert_non_null(opt_parse_size("M", &v));
	assert_non_null(opt_parse_size("1MM", &v));
	assert_non_null(opt_parse_size("-1M", &v));
	assert_non_null(opt_parse_size("20000000T", &v));
	assert_null(opt_parse_uint("18446744073709551615", &v));
	assert_true(v == UINT64_MAX);
	assert_null(opt_parse_uint("0xFFFFFFFFFFFFFFFF", &v));
	assert_true(v == UINT64_MAX);
	assert_non_null(opt_parse_uint("0x10000000000000000", &v));
	assert_non_null(opt_parse_uint("0x", &v));
	assert_non_null(opt_parse_uint("0x1P", &v));
	assert_non_null(opt_parse_uint("18446744073709551616", &v));
	assert_non_null(opt_parse_uint("", &v));
	assert_non_null(opt_parse_uint("+1", &v));
}

static void near_names(void **state)
{
	static const char *const names[] = { "collect", "report", "events", "ps", NULL };
	char text[64];

	(void)state;
	assert_string_equal(opt_nearest("colect", names), "collect");
	assert_string_equal(opt_nearest("reprot", names), "report");
	assert_string_equal(opt_nearest("eve", names), "events");
	assert_string_equal(opt_nearest("sp", names), "ps");
	assert_null(opt_nearest("xyzzy", names));
	assert_null(opt_nearest("", names));
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_null(opt_nearest(text, names));
}

/* Every option that can be given is in the help and in the list for completion. */
static void help_names_every_option(void **state)
{
	char long_name[64];
	int saved;
	FILE *file;

	(void)state;
	for (int list = 0; list < 2; list++) {
		saved = begin_capture(STDOUT_FILENO, &file);
		assert_int_equal(list ? opt_print_list(&command) : opt_print_help(&command), 0);
		end_capture(STDOUT_FILENO, saved, file);
		for (const struct opt_spec *s = specs; s->name; s++) {
			snprintf(long_name, sizeof(long_name), "--%s", s->name);
			assert_int_equal(strstr(said, long_name) != NULL, !s->hidden);
		}
		assert_non_null(strstr(said, "--pid"));
		assert_non_null(strstr(said, "--help"));
	}
	assert_non_null(strstr(said, "--format\ttext json\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind),
		cmocka_unit_test(spellings),
		cmocka_unit_test(operands_keep_their_order),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(durations),
		cmocka_unit_test(sizes_and_numbers),
		cmocka_unit_test(near_names),
		cmocka_unit_test(help_names_every_option),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	opt_done(&command, &args, &words);
	return failed;
}
