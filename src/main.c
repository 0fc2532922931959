/* SPDX-License-Identifier: MIT */

/* The command line: finds the command and runs it. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>
#include <zstd.h>
#ifdef HAVE_STORE
#include <sqlite3.h>
#endif

#include "src/base/command.h"
#include "src/base/help.h"
#include "src/base/log.h"
#include "src/base/output.h"
#include "src/base/version.h"
#include "src/perf/elf_symbols.h"

/* In the order in which a newcomer needs them. */
static const struct command *const commands[] = {
	&cmd_ps,       &cmd_collect, &cmd_report, &cmd_events,	  &cmd_stack,
	&cmd_counters, &cmd_process, &cmd_doctor, &cmd_analyzers,
#ifdef HAVE_STORE
	&cmd_sample,   &cmd_history,
#endif
};

/* Commands that this program was built without, because a library was not there. */
static const char *const left_out[] = {
#ifndef HAVE_STORE
	"sample",
	"history",
#endif
	NULL,
};

enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static const char main_notes[] =
	"options:\n"
	"  -h, --help                  this text; 'drdotnet-trace COMMAND --help' says more\n"
	"      --version               versions, and what this program was built with\n"
	"      --list-options COMMAND  the options of a command, for shell completion\n"
	"\n"
	"examples:\n"
	"  drdotnet-trace ps\n"
	"  drdotnet-trace collect -p 4711 --duration 30s\n"
	"  drdotnet-trace report api.nettrace\n"
	"\n"
	"exit codes:\n"
	"  0 done   1 failed   2 wrong usage   3 the result is partial   4 a condition holds\n"
	"  5 cannot reach the target\n";

static int print_help(void)
{
	struct out *o = out_open(NULL, false);

	if (!o)
		return EXIT_FAILED;
	out_text(o, "drdotnet-trace: what is this .NET process doing, and what is wrong with it?\n"
		    "\n"
		    "usage: drdotnet-trace COMMAND [OPTIONS] ...\n"
		    "       drdotnet-trace FILE      short for 'drdotnet-trace report FILE'\n"
		    "\n"
		    "commands:\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		out_printf(o, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
	out_printf(o, "\n%s", main_notes);
	return out_close(o, EXIT_DONE);
}

static int print_version(void)
{
	struct out *o = out_open(NULL, false);

	if (!o)
		return EXIT_FAILED;
	out_printf(o, "drdotnet-trace %s\n", PACKAGE_VERSION);
	out_printf(o, "libuv    %s\n", uv_version_string());
	out_printf(o, "libzstd  %s\n", ZSTD_versionString());
	if (elf_symbols_version())
		out_printf(o, "libelf   %s\n", elf_symbols_version());
	else
		out_text(o, "libelf   not built in: native functions have no names\n");
#ifdef HAVE_STORE
	out_printf(o, "SQLite   %s\n", sqlite3_libversion());
#else
	out_text(o, "SQLite   not built in: no sample, no history\n");
#endif
	out_text(o,
		 "reads    .nettrace formats 4, 5 and 6, .netperf format 3, also zstd-compressed\n"
		 "schema   " REPORT_SCHEMA "\n");
	return out_close(o, EXIT_DONE);
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static int print_commands(void)
{
	struct out *o = out_open(NULL, false);

	if (!o)
		return EXIT_FAILED;
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		out_printf(o, "%s\t%s\n", commands[i]->name, commands[i]->summary);
	return out_close(o, EXIT_DONE);
}

static int unknown_word(const char *word)
{
	static const char *const own[] = { "--help", "--version", "--list-options", NULL };
	const char *names[COMMAND_COUNT + 1];
	bool option = word[0] == '-';
	const char *near;

	for (size_t i = 0; left_out[i]; i++)
		if (strcmp(left_out[i], word) == 0) {
			log_error("cannot run '%s': this program was built without SQLite", word);
			return EXIT_FAILED;
		}
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		names[i] = commands[i]->name;
	names[COMMAND_COUNT] = NULL;
	near = opt_nearest(word, option ? own : names);
	if (option)
		log_error("unknown option '%s'", word);
	else
		log_error("'%s' is neither a command nor a file", word);
	if (near)
		log_advice("did you mean '%s'?", near);
	else if (option)
		log_advice("options of a command come after its name; see 'drdotnet-trace --help'");
	else
		log_advice("see 'drdotnet-trace --help'");
	return EXIT_USAGE;
}

static int list_options(int argc, char **argv)
{
	const struct command *cmd = argc > 2 ? find(argv[2]) : NULL;

	if (argc < 3)
		return print_commands();
	return cmd ? opt_print_list(cmd) : unknown_word(argv[2]);
}

/* "help", and "help COMMAND" as other programs have it. */
static int help(int argc, char **argv)
{
	const struct command *cmd = argc > 2 ? find(argv[2]) : NULL;

	if (argc < 3)
		return print_help();
	return cmd ? opt_print_help(cmd) : unknown_word(argv[2]);
}

/* A word that can only be meant as a file, whether or not it is there. */
static bool is_file(const char *word)
{
	return strcmp(word, "-") == 0 || access(word, F_OK) == 0 ||
	       (word[0] != '-' && strpbrk(word, "/."));
}

static int report_file(int argc, char **argv)
{
	char **words = malloc(((size_t)argc + 1) * sizeof(*words));
	char name[] = "report";
	int code;

	if (!words) {
		log_error("out of memory");
		return EXIT_FAILED;
	}
	words[0] = name;
	memcpy(words + 1, argv + 1, (size_t)argc * sizeof(*words)); /* the NULL at the end too */
	code = cmd_report.run(&cmd_report, argc, words);
	free(words);
	return code;
}

static int dispatch(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	const struct command *cmd = find(word);

	if (cmd)
		return cmd->run(cmd, argc - 1, argv + 1);
	if (argc < 2) {
		log_error("no command was given");
		log_advice("see 'drdotnet-trace --help'");
		return EXIT_USAGE;
	}
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
		return help(argc, argv);
	if (strcmp(word, "--version") == 0)
		return print_version();
	if (strcmp(word, "--list-options") == 0)
		return list_options(argc, argv);
	if (is_file(word))
		return report_file(argc, argv);
	return unknown_word(word);
}

/* Started with a closed descriptor, our next file would take its place. */
static void open_standard_files(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		if (open("/dev/null", O_RDWR) < 0)
			_exit(EXIT_FAILED);
		if (fd == STDOUT_FILENO)
			out_note_closed_stdout();
	}
}

int main(int argc, char **argv)
{
	open_standard_files();
	signal(SIGPIPE, SIG_IGN); /* a write tells us */
	signal(SIGXFSZ, SIG_IGN); /* so it does of a limit on file sizes */
	return dispatch(argc, argv);
}
