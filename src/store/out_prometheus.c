/* SPDX-License-Identifier: MIT */
#include "src/store/out_prometheus.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/command.h"
#include "src/base/output.h"
#include "src/base/utf8.h"

enum { TOP_METHODS = 10 };

/* A row of a family: the path of the report, and a label of its own. */
struct row {
	const char *path, *label, *value;
	double factor; /* to the unit of the family */
};

struct family {
	const char *name, *help;
	struct row rows[4]; /* ends at a NULL path */
};

static const struct family families[] = {
	{ "drdotnet_gc_pause_seconds",
	  "Length of the pauses for garbage collection in the sample.",
	  { { "gc.pause_p50_ms", "percentile", "50", 1e-3 },
	    { "gc.pause_p95_ms", "percentile", "95", 1e-3 },
	    { "gc.pause_p99_ms", "percentile", "99", 1e-3 },
	    { "gc.pause_max_ms", "percentile", "100", 1e-3 } } },
	{ "drdotnet_gc_pause_ratio",
	  "Share of the time in which garbage collection held the process.",
	  { { "gc.pause_percent", NULL, NULL, 1e-2 } } },
	{ "drdotnet_gc_collections",
	  "Garbage collections in the sample.",
	  { { "gc.gen0", "generation", "0", 1 },
	    { "gc.gen1", "generation", "1", 1 },
	    { "gc.gen2", "generation", "2", 1 } } },
	{ "drdotnet_allocation_bytes_per_second",
	  "Memory that was allocated a second.",
	  { { "gc.allocation_rate_bytes_per_s", NULL, NULL, 1 } } },
	{ "drdotnet_deadlocks",
	  "Threads that wait for each other in a circle.",
	  { { "locks.deadlocks", NULL, NULL, 1 } } },
	{ "drdotnet_stuck_tasks",
	  "Chains of async methods that began in the sample, wait and do not go on; older ones are "
	  "not seen.",
	  { { "tasks.stuck", NULL, NULL, 1 } } },
	{ "drdotnet_threadpool_starvation",
	  "1 where all threads of the pool were blocked while work waited.",
	  { { "threadpool.starvation", NULL, NULL, 1 } } },
	{ "drdotnet_exceptions",
	  "Exceptions thrown in the sample.",
	  { { "exceptions.count", NULL, NULL, 1 } } },
	{ "drdotnet_events_lost",
	  "Events the runtime had to drop in the sample.",
	  { { "trace.events_lost", NULL, NULL, 1 } } },
};

/* As label values have it: backslash, quote and line break are escaped. */
static void label(struct out *o, const char *name, const char *text)
{
	size_t len = strlen(text);

	out_printf(o, "%s=\"", name);
	for (size_t i = 0, used; i < len; i += used) {
		uint32_t c = utf8_next(text + i, len - i, &used);

		if (c == UTF8_BAD)
			out_text(o, "\xef\xbf\xbd");
		else if (c == '\n')
			out_text(o, "\\n");
		else if (c == '"' || c == '\\')
			out_printf(o, "\\%c", (int)c);
		else
			out_write(o, text + i, used);
	}
	out_char(o, '"');
}

static void head(struct out *o, const char *name, const char *help)
{
	out_printf(o, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

static void open_labels(struct out *o, const char *name, const struct store_sample *s)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%" PRId32, s->pid);
	out_printf(o, "%s{", name);
	label(o, "process", s->name);
	out_char(o, ',');
	label(o, "pid", pid);
}

static bool find_metric(const struct store_sample *s, const char *path, double *ret)
{
	for (size_t i = 0; i < s->metric_count; i++)
		if (strcmp(s->metrics[i].name, path) == 0 && isfinite(s->metrics[i].value)) {
			*ret = s->metrics[i].value;
			return true;
		}
	return false;
}

static void write_family(struct out *o, const struct family *f,
			 const struct store_sample *const *samples, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++)
		for (size_t r = 0; r < sizeof(f->rows) / sizeof(f->rows[0]) && f->rows[r].path;
		     r++) {
			double v;

			if (!find_metric(samples[i], f->rows[r].path, &v))
				continue;
			if (!any)
				head(o, f->name, f->help);
			any = true;
			open_labels(o, f->name, samples[i]);
			if (f->rows[r].label) {
				out_char(o, ',');
				label(o, f->rows[r].label, f->rows[r].value);
			}
			out_printf(o, "} %.10g\n", v * f->rows[r].factor);
		}
}

static void write_methods(struct out *o, const struct store_sample *const *samples, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++)
		for (size_t m = 0; m < samples[i]->method_count && m < TOP_METHODS; m++) {
			if (!any)
				head(o, "drdotnet_method_cpu_cores",
				     "Processors that the hottest methods keep busy, without what "
				     "they call.");
			any = true;
			open_labels(o, "drdotnet_method_cpu_cores", samples[i]);
			out_char(o, ',');
			label(o, "method", samples[i]->methods[m].name);
			out_printf(o, "} %.10g\n", samples[i]->methods[m].exclusive / 100);
		}
}

static void write_findings(struct out *o, const struct store_sample *const *samples, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++)
		for (size_t f = 0; f < samples[i]->finding_count; f++) {
			const struct store_finding *x = &samples[i]->findings[f];
			bool again = false; /* one line for each set of labels */

			for (size_t g = 0; g < f; g++)
				again = again || strcmp(samples[i]->findings[g].id, x->id) == 0;
			if (again)
				continue;
			if (!any)
				head(o, "drdotnet_finding", "1 for each kind of finding.");
			any = true;
			open_labels(o, "drdotnet_finding", samples[i]);
			out_char(o, ',');
			label(o, "id", x->id);
			out_char(o, ',');
			label(o, "severity", x->severity);
			out_text(o, "} 1\n");
		}
}

static void write_own(struct out *o, const struct store_sample *const *samples, size_t count)
{
	static const char *const names[] = { "drdotnet_sample_timestamp_seconds",
					     "drdotnet_sample_duration_seconds",
					     "drdotnet_sample_cpu_seconds" };
	static const char *const helps[] = {
		"When the sample began.", "How long it was recorded.",
		"Processor time that sampling took, without the process's."
	};

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]) && count; n++) {
		head(o, names[n], helps[n]);
		for (size_t i = 0; i < count; i++) {
			const double values[] = { (double)samples[i]->time_ms / 1e3,
						  (double)samples[i]->duration_ms / 1e3,
						  (double)samples[i]->own_cpu_us / 1e6 };

			open_labels(o, names[n], samples[i]);
			out_printf(o, "} %.14g\n", values[n]);
		}
	}
}

bool prometheus_write(const char *path, const struct store_sample *const *samples, size_t count)
{
	mode_t old = umask(022); /* the exporter is somebody else and has to read it */
	struct out *o = out_open(path, true);

	umask(old);
	if (!o)
		return false;
	for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++)
		write_family(o, &families[f], samples, count);
	write_methods(o, samples, count);
	write_findings(o, samples, count);
	write_own(o, samples, count);
	return out_close(o, EXIT_DONE) == EXIT_DONE;
}
