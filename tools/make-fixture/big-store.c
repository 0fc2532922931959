/* SPDX-License-Identifier: MIT */

/*
 * big-store DIR ROWS
 *
 * Fills a new store with samples of two processes, one every five minutes each and the last of them
 * now, until it has that many rows of metrics and methods.  Their numbers go up and down with the
 * day, and the method Shop.Price.Sum of the first takes twice the time since three days ago.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/store/store.h"
#include "src/store/when.h"

enum { METRICS = 80, METHODS = 40 };

static uint64_t seed = 7;

static double uniform(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(seed >> 11) + 0.5) / 9007199254740992.0;
}

static double noise(void)
{
	return (uniform() + uniform() + uniform() + uniform() - 2) * 1.7;
}

static bool add(struct store *s, int64_t time_ms, int64_t slow_since, int process)
{
	static char metric_names[METRICS][32], method_names[METHODS][48];
	struct store_metric metrics[METRICS];
	struct store_method methods[METHODS];
	double hour = (double)(time_ms / 60000 % 1440) / 60;
	double busy = 1 + 0.5 * sin(6.283185307 * hour / 24);
	struct store_finding finding = { "gc.pauses", "warning", "long pauses", "of 120 ms" };
	struct store_sample p = { .time_ms = time_ms,
				  .host = "web1",
				  .name = process ? "Cart" : "Shop",
				  .command_line = "dotnet Shop.dll",
				  .runtime = "10.0.0",
				  .build = time_ms < slow_since ? "1.0" : "1.1",
				  .pid = 4711 + process,
				  .duration_ms = 5000,
				  .events = 50000,
				  .complete = true,
				  .metrics = metrics,
				  .metric_count = METRICS,
				  .methods = methods,
				  .method_count = METHODS,
				  .findings = &finding,
				  .finding_count = uniform() < 0.1 };
	int64_t id;

	for (int i = 0; i < METRICS; i++) {
		if (i == 0)
			snprintf(metric_names[i], sizeof(metric_names[i]), "cpu.samples");
		else
			snprintf(metric_names[i], sizeof(metric_names[i]), "gc.number%d", i);
		metrics[i] = (struct store_metric){ metric_names[i], 50 * busy + 5 * noise() };
	}
	for (int i = 0; i < METHODS; i++) {
		double v = busy * (METHODS - i) * (1 + 0.1 * noise());

		snprintf(method_names[i], sizeof(method_names[i]), "Shop.Work%d.Step", i);
		if (i == 3) {
			snprintf(method_names[i], sizeof(method_names[i]), "Shop.Price.Sum");
			v *= time_ms >= slow_since && !process ? 2 : 1;
		}
		methods[i] = (struct store_method){ method_names[i], v, 1.5 * v };
	}
	return store_add(s, &p, &id);
}

int main(int argc, char **argv)
{
	const int64_t every_ms = 300000;
	int64_t now = when_now_ms(), samples;
	struct store *s;
	bool ok = true;

	if (argc != 3 || (samples = strtoll(argv[2], NULL, 10) / (METRICS + METHODS)) < 1) {
		fputs("usage: big-store DIR ROWS\n", stderr);
		return 2;
	}
	s = store_open(argv[1], STORE_WRITE);
	for (int64_t i = samples - 1; s && ok && i >= 0; i--)
		ok = add(s, now - i / 2 * every_ms, now - INT64_C(3) * 86400000, (int)(i % 2));
	ok = ok && s;
	store_close(s);
	return ok ? 0 : 1;
}
