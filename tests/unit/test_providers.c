/* SPDX-License-Identifier: MIT */
/* The grammar of --providers, --profile and --clrevents, and how wishes are merged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyzers/analyzer.h"
#include "src/collect/profiles.h"
#include "src/collect/providers.h"
#include "src/ipc/ipc_wire.h"

/* "Name:keywords:level:args" of each, joined by spaces; or "error: ...". */
static const char *parse(const char *list)
{
	static char text[2000];
	struct provider_set set = { 0 };
	struct provider_error error;
	size_t n = 0;

	text[0] = '\0';
	if (!provider_set_parse(&set, list, &error)) {
		snprintf(text, sizeof(text), "error: %s", error.text);
	} else {
		for (size_t i = 0; i < set.count; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s:%llx:%u%s%s",
					      i ? " " : "", set.items[i].name,
					      (unsigned long long)set.items[i].keywords,
					      set.items[i].level, set.items[i].args ? ":" : "",
					      set.items[i].args ? set.items[i].args : "");
	}
	provider_set_done(&set);
	return text;
}

static void defaults_and_spellings(void **state)
{
	(void)state;
	assert_string_equal(parse("A"), "A:0:4");
	assert_string_equal(parse("A:1f"), "A:1f:4");
	assert_string_equal(parse("A:0x1F:5"), "A:1f:5");
	assert_string_equal(parse("A::Verbose"), "A:0:5");
	assert_string_equal(parse("A::logalways"), "A:0:0");
	assert_string_equal(parse("A::critical"), "A:0:1");
	assert_string_equal(parse("A::error"), "A:0:2");
	assert_string_equal(parse("A::WARNING"), "A:0:3");
	assert_string_equal(parse("A::informational"), "A:0:4");
	assert_string_equal(parse("A::9"), "A:0:5"); /* larger is 5 */
	assert_string_equal(parse("A:::"), "A:0:4");
	assert_string_equal(parse(" A , ,B:1:2, "), "A:0:4 B:1:2");
	assert_string_equal(parse("A:ffffffffffffffff"), "A:ffffffffffffffff:4");
}

static void mistakes(void **state)
{
	(void)state;
	assert_string_equal(parse("A:xyz"), "error: 'xyz' is no hexadecimal number of keywords");
	assert_string_equal(parse("A:0x"), "error: '0x' is no hexadecimal number of keywords");
	assert_string_equal(parse("A:1ffffffffffffffff"),
			    "error: '1ffffffffffffffff' is no hexadecimal number of keywords");
	assert_int_equal(strncmp(parse("A:1:loud"), "error: 'loud' is no level", 25), 0);
	assert_int_equal(strncmp(parse("A:1:-1"), "error: '-1' is no level", 23), 0);
	assert_string_equal(parse(" , "), "error: ' , ' names no provider");
	assert_int_equal(strncmp(parse(":1"), "error: ", 7), 0);
	assert_int_equal(strncmp(parse("A:1:4:nonsense"), "error: 'nonsense' has no value", 30), 0);
}

static void arguments(void **state)
{
	(void)state;
	assert_string_equal(parse("A:1:4:k=v"), "A:1:4:k=v");
	assert_string_equal(parse("A:1:4:k=v;k2=v2;"), "A:1:4:k=v;k2=v2");
	assert_string_equal(parse("A:1:4:url=http://x:1/"), "A:1:4:url=http://x:1/");
	assert_string_equal(parse("A:::k=\"a b\""), "A:0:4:k=a b");
	assert_string_equal(parse("A:::k=\"a;b=c:d\";l=1"), "A:0:4:k=\"a;b=c:d\";l=1");
	assert_string_equal(parse("A:::k=a\\nb\\\\c"), "A:0:4:k=a\nb\\c");
	assert_string_equal(parse("A:::k=\\\"q\\\""), "A:0:4:k=\"q\"");
	assert_string_equal(parse("A:::k="), "A:0:4:k=");
	/* A comma ends the provider, quotes or not. */
	assert_string_equal(parse("A:::k=\"a,B"), "A:0:4:k=a B:0:4");
}

static void merging(void **state)
{
	(void)state;
	assert_string_equal(parse("A:1:3,a:2:4"), "A:3:4");
	assert_string_equal(parse("A:1:5,A:2:1"), "A:3:5");
	assert_string_equal(parse("A:1:5,A:2:0"), "A:3:0");
	assert_string_equal(parse("A:1:0,A:2:5"), "A:3:0");
	assert_string_equal(parse("A:1:4:k=v,A:2"), "A:3:4:k=v");
	assert_string_equal(parse("A:1:4,A:2:4:k=v"), "A:3:4:k=v");
	assert_string_equal(parse("A:::k=v,A:::k=v"), "error: 'A' is given arguments twice");
}

static void first_come_is_not_changed(void **state)
{
	struct provider_set a = { 0 }, b = { 0 };
	struct provider_error error;

	(void)state;
	assert_true(provider_set_parse(&a, "A:1:2", &error));
	assert_true(provider_set_parse(&b, "a:4:5,B:8:5,C", &error));
	assert_true(provider_set_add_missing(&a, &b, &error));
	assert_int_equal(a.count, 3);
	assert_int_equal(a.items[0].keywords, 1);
	assert_int_equal(a.items[0].level, 2);
	assert_string_equal(a.items[1].name, "B");
	provider_set_done(&a);
	provider_set_done(&b);
}

static void clr_events(void **state)
{
	struct provider_error error;
	uint64_t v = 0;

	(void)state;
	assert_true(provider_clr_events_parse("gc", &v, &error));
	assert_true(v == 1);
	assert_true(provider_clr_events_parse("GC+Exception + contention", &v, &error));
	assert_true(v == 0xc001);
	assert_true(provider_clr_events_parse("fusion+assemblyloader", &v, &error));
	assert_true(v == 4);
	assert_true(provider_clr_events_parse("allocationsampling+waithandle", &v, &error));
	assert_true(v == 0xc0000000000);
	assert_true(provider_clr_events_parse("0x10+gc", &v, &error));
	assert_true(v == 0x11);
	assert_false(provider_clr_events_parse("gc+nothing", &v, &error));
	assert_string_equal(error.text, "'nothing' is no keyword of the runtime's provider");
	assert_false(provider_clr_events_parse("", &v, &error));
}

static void check_profile(const char *list, uint64_t want_rundown, const char *want)
{
	struct provider_set set = { 0 };
	struct provider_error error;
	uint64_t rundown = 0;
	char text[1000] = "";
	size_t n = 0;

	assert_true(profile_add_list(&set, list, &rundown, &error));
	for (size_t i = 0; i < set.count; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s:%llx:%u", i ? " " : "",
				      set.items[i].name, (unsigned long long)set.items[i].keywords,
				      set.items[i].level);
	assert_string_equal(text, want);
	assert_true(rundown == want_rundown);
	provider_set_done(&set);
}

static void profiles(void **state)
{
	struct provider_set set = { 0 };
	struct provider_error error;
	uint64_t rundown = 0;

	(void)state;
	check_profile("gc-verbose", IPC_RUNDOWN_DEFAULT, PROVIDER_RUNTIME ":8003:5");
	check_profile("gc-collect", 1, PROVIDER_RUNTIME ":1:4 " PROVIDER_PRIVATE ":1:4");
	check_profile("dotnet-common", IPC_RUNDOWN_DEFAULT, PROVIDER_RUNTIME ":100003801d:4");
	check_profile("Cpu-Sampling", IPC_RUNDOWN_DEFAULT,
		      PROVIDER_SAMPLER ":0:4 " PROVIDER_RUNTIME ":14c14fccbd:4");
	check_profile("dotnet-common,dotnet-sampled-thread-time", IPC_RUNDOWN_DEFAULT,
		      PROVIDER_RUNTIME ":100003801d:4 " PROVIDER_SAMPLER ":0:4");
	check_profile("gc-collect,gc-verbose", IPC_RUNDOWN_DEFAULT | 1,
		      PROVIDER_RUNTIME ":8003:5 " PROVIDER_PRIVATE ":1:4");
	assert_false(profile_add_list(&set, "gc-collect,none-such", &rundown, &error));
	assert_int_equal(strncmp(error.text, "'none-such' is no profile; there are default, ", 46),
			 0);
	assert_non_null(strstr(error.text, " gc-collect,"));
	assert_non_null(strstr(error.text, " tasks"));
	provider_set_done(&set);
	assert_false(profile_add_list(&set, ",", &rundown, &error));
	provider_set_done(&set);
}

/* It stops all threads all the time: who wants it for more than the kernel's samples tell? */
static void who_needs_the_sampler(void **state)
{
	static const struct {
		const char *list;
		enum profile_sampler use;
	} rows[] = {
		{ "cpu", PROFILE_SAMPLER_CPU },
		{ "gc,jit,cpu,http,counters,exceptions", PROFILE_SAMPLER_CPU },
		{ "gc-verbose", PROFILE_SAMPLER_CPU },
		{ "tasks", PROFILE_SAMPLER_WAITS },
		{ "cpu,locks", PROFILE_SAMPLER_WAITS },
		{ "default", PROFILE_SAMPLER_WAITS },
		{ "cpu,gc,tasks", PROFILE_SAMPLER_WAITS },
		{ "cpu,threadpool", PROFILE_SAMPLER_NEEDED },
		{ "Threads,cpu", PROFILE_SAMPLER_NEEDED },
		{ "all", PROFILE_SAMPLER_NEEDED },
		{ "cpu-sampling", PROFILE_SAMPLER_NEEDED },
		{ "gc,dotnet-sampled-thread-time", PROFILE_SAMPLER_NEEDED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(profile_sampler_use(rows[i].list), rows[i].use);
	assert_int_equal(profile_sampler_use_of_default(), profile_sampler_use("default"));
}

/* The database profile's argument is one quoted value. */
static void database_profile(void **state)
{
	struct provider_set set = { 0 };
	struct provider_error error;
	struct provider *p;
	uint64_t rundown = 0;

	(void)state;
	assert_true(profile_add_list(&set, "database", &rundown, &error));
	p = provider_set_find(&set, "microsoft-diagnostics-diagnosticsource");
	assert_non_null(p);
	assert_int_equal(p->level, 5);
	assert_int_equal(strncmp(p->args, "FilterAndPayloadSpecs=\"", 23), 0);
	assert_int_equal(p->args[strlen(p->args) - 1], '"');
	assert_null(memchr(p->args + 23, '"', strlen(p->args) - 24));
	provider_set_done(&set);
}

static void check_holds(const struct provider_set *set, const struct an_provider *w)
{
	for (; w && w->name; w++) {
		const struct provider *p = provider_set_find(set, w->name);

		assert_non_null(p);
		assert_true((p->keywords & w->keywords) == w->keywords);
		assert_true(p->level >= w->level);
	}
}

/* What the three main analyzers ask for, and nothing else. */
static void default_is_cpu_gc_tasks(void **state)
{
	struct provider_set set = { 0 }, named = { 0 };
	struct provider_error error;
	struct profile profile;
	uint64_t rundown;

	(void)state;
	assert_true(profile_add_default(&set, &error));
	assert_true(profile_add_list(&named, "cpu,gc,tasks", &rundown, &error));
	check_holds(&set, an_class_cpu.providers);
	check_holds(&set, an_class_gc.providers);
	check_holds(&set, an_class_tasks.providers);
	assert_int_equal(set.count, named.count);
	for (size_t i = 0; i < set.count; i++) {
		const struct provider *p = provider_set_find(&named, set.items[i].name);

		assert_non_null(p);
		assert_true(p->keywords == set.items[i].keywords);
		assert_int_equal(p->level, set.items[i].level);
	}
	assert_true(profile_get(0, &profile));
	assert_string_equal(profile.name, "default");
	provider_set_done(&set);
	provider_set_done(&named);
}

/* Whatever an analyzer can use is in "all", and each has a profile of its name. */
static void all_holds_every_analyzer(void **state)
{
	struct provider_set set = { 0 };
	struct provider_error error;
	struct profile profile;
	size_t named = 0, want = 0;
	uint64_t rundown;

	(void)state;
	assert_true(profile_add_list(&set, "all", &rundown, &error));
	for (const struct an_class *const *c = an_classes; *c; c++) {
		check_holds(&set, (*c)->providers);
		check_holds(&set, (*c)->on_request);
		want += ((*c)->providers && (*c)->providers->name) || (*c)->on_request;
		for (size_t i = 0; profile_get(i, &profile); i++)
			named += strcmp(profile.name, (*c)->name) == 0;
	}
	assert_true(want >= 3);
	assert_true(named >= want);
	assert_non_null(provider_set_find(&set, "System.Diagnostics.Metrics"));
	assert_true(profile_get(1, &profile));
	assert_string_equal(profile.name, "all");
	provider_set_done(&set);
}

static void http_profile(void **state)
{
	struct provider_set set = { 0 };
	struct provider_error error;
	uint64_t rundown;

	(void)state;
	assert_true(profile_add_list(&set, "HTTP", &rundown, &error));
	assert_int_equal(rundown, IPC_RUNDOWN_DEFAULT);
	assert_non_null(provider_set_find(&set, "System.Net.Http"));
	assert_non_null(provider_set_find(&set, "Microsoft-AspNetCore-Server-Kestrel"));
	provider_set_done(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_and_spellings),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(arguments),
		cmocka_unit_test(merging),
		cmocka_unit_test(first_come_is_not_changed),
		cmocka_unit_test(clr_events),
		cmocka_unit_test(profiles),
		cmocka_unit_test(who_needs_the_sampler),
		cmocka_unit_test(database_profile),
		cmocka_unit_test(default_is_cpu_gc_tasks),
		cmocka_unit_test(all_holds_every_analyzer),
		cmocka_unit_test(http_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
