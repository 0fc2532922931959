/* SPDX-License-Identifier: MIT */
/* What processes are called, and why one cannot be traced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guessed_names),
		cmocka_unit_test(names_that_match),
		cmocka_unit_test(reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
