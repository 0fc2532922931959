/* SPDX-License-Identifier: MIT */
/* What processes are called, and why one cannot be traced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/ipc/process_list.h"

static void check_name(const char *command_line, const char *comm, const char *want)
{
	char *got = process_guess_name(command_line, comm);

	assert_string_equal(got, want);
	free(got);
}

static void guessed_names(void **state)
{
	(void)state;
	check_name("dotnet /srv/app.dll --urls http://x", "dotnet", "app");
	check_name("/usr/bin/dotnet exec --depsfile a.json My.App.DLL", "dotnet", "My.App");
	check_name("/opt/shop/Shop cpu 10", "Shop", "Shop");
	check_name("dotnet --version", "dotnet", "dotnet");
	check_name(NULL, "Shop", "Shop");
	check_name("", "Shop", "Shop");
	/* The kernel cuts names at 15 characters. */
	check_name("/opt/Contoso.Warehouse.Api --x", "Contoso.Warehou", "Contoso.Warehouse.Api");
	check_name("/opt/other --x", "Contoso.Warehou", "Contoso.Warehou");
	check_name("x .dll", "x", "x");
}

static void names_that_match(void **state)
{
	struct ipc_target t = { .stat = { .comm = "dotnet" } };
	char name[] = "Shop.Api", line[] = "dotnet /srv/host.dll";
	const struct process p = { .target = &t, .name = name, .command_line = line };

	(void)state;
	assert_true(process_is_named(&p, "dotnet"));
	assert_true(process_is_named(&p, "Shop.Api"));
	assert_true(process_is_named(&p, "shop.api"));
	assert_true(process_is_named(&p, "host"));
	assert_false(process_is_named(&p, "Shop"));
	assert_false(process_is_named(&p, ""));
}

static void reasons(void **state)
{
	struct ipc_target t = { .uid_known = true, .uid = 0, .dir = NULL };
	char why[256];

	(void)state;
	for (t.why = IPC_WHY_GONE; t.why <= IPC_WHY_NO_MEMORY; t.why++) {
		why[0] = '\0';
		process_why_not(&t, why, sizeof(why));
		assert_true(strlen(why) > 5);
	}
	t.why = IPC_WHY_NO_ACCESS;
	process_why_not(&t, why, sizeof(why));
	assert_string_equal(why, "it belongs to user root: run as root");
	t.uid = 3999999999u;
	process_why_not(&t, why, sizeof(why));
	assert_string_equal(why, "it belongs to user 3999999999: run as 3999999999 or as root");
}

static void set_stat(const char *root, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/85/stat", root);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fprintf(f, "85 (app) %s\n", text) > 0);
	assert_int_equal(fclose(f), 0);
}

static void held_by(void **state)
{
	static const char rest[] = "1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0";
	struct ipc_target t = { .pid = 85, .stat = { .start_ticks = 3 } };
	char root[] = "/tmp/drd-list-XXXXXX", dir[64], text[128], file[80];
	struct process_hold hold;

	(void)state;
	assert_non_null(mkdtemp(root));
	snprintf(dir, sizeof(dir), "%s/85", root);
	snprintf(file, sizeof(file), "%s/stat", dir);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_false(process_is_held(root, &t, &hold)); /* gone */
	assert_false(process_is_held(root, NULL, &hold));
	for (const char *s = "RSDZXI"; *s; s++) {
		snprintf(text, sizeof(text), "%c %s 3 0 0", *s, rest);
		set_stat(root, text);
		assert_false(process_is_held(root, &t, &hold));
	}
	snprintf(text, sizeof(text), "T %s 3 0 0", rest);
	set_stat(root, text);
	assert_true(process_is_held(root, &t, &hold));
	assert_string_equal(hold.why, "it is stopped by a signal, so its runtime cannot answer");
	assert_string_equal(hold.advice, "let it go on: kill -CONT 85");
	t.foreign = true; /* the number is somebody else's */
	assert_false(process_is_held(root, &t, &hold));
	t.foreign = false;
	snprintf(text, sizeof(text), "T %s 4 0 0", rest);
	set_stat(root, text); /* another process by now */
	assert_false(process_is_held(root, &t, &hold));
	snprintf(text, sizeof(text), "t %s 3 0 0", rest);
	set_stat(root, text);
	t.pid = 85;
	assert_true(process_is_held(root, &t, &hold));
	assert_string_equal(hold.why, "it is stopped by a debugger, so its runtime cannot answer");
	assert_string_equal(hold.advice, "let the debugger of 85 go on");
	unlink(file);
	rmdir(dir);
	rmdir(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guessed_names),
		cmocka_unit_test(names_that_match),
		cmocka_unit_test(reasons),
		cmocka_unit_test(held_by),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
