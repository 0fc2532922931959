/* SPDX-License-Identifier: MIT */

/* history list, show and export: samples as they are. */

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/csv.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/table.h"
#include "src/base/version.h"
#include "src/store/history.h"
#include "src/store/when.h"

static void json_sample(struct json *j, const struct store_sample *p)
{
	char time[WHEN_BYTES];

	json_int(j, "id", p->id);
	json_text(j, "time", when_text(p->time_ms, time));
	json_int(j, "pid", p->pid);
	json_text(j, "name", p->name);
	json_text(j, "host", p->host);
	json_text(j, "command_line", p->command_line);
	json_text(j, "runtime", p->runtime);
	json_text(j, "build", p->build);
	json_uint(j, "duration_ms", p->duration_ms);
	json_uint(j, "events", p->events);
	json_uint(j, "events_lost", p->lost);
	json_bool(j, "complete", p->complete);
	json_fixed(j, "own_cpu_ms", (double)p->own_cpu_us / 1000, 3);
}

/* --- list --- */

struct list {
	struct history_job *job;
	struct json json;
	struct table table;
	size_t count;
};

static bool list_json(void *ctx, const struct store_sample *p)
{
	struct list *l = ctx;

	json_begin_object(&l->json, NULL);
	json_sample(&l->json, p);
	json_uint(&l->json, "findings", p->finding_count);
	json_text(&l->json, "trace_file", p->trace_file);
	json_end(&l->json);
	return !out_failed(l->job->out);
}

static bool list_csv(void *ctx, const struct store_sample *p)
{
	struct list *l = ctx;
	struct out *o = l->job->out;
	char time[WHEN_BYTES];

	out_printf(o, "%" PRId64 ",%s,%" PRId32 ",", p->id, when_text(p->time_ms, time), p->pid);
	csv_text(o, p->name);
	out_printf(o, ",%" PRIu64 ",%zu,", p->duration_ms, p->finding_count);
	csv_text(o, p->trace_file);
	out_text(o, "\n");
	return !out_failed(o);
}

static bool list_text(void *ctx, const struct store_sample *p)
{
	struct list *l = ctx;
	char time[WHEN_BYTES];

	table_cell(&l->table, "%" PRId64, p->id);
	table_cell(&l->table, "%s", when_text(p->time_ms, time));
	table_cell(&l->table, "%" PRId32, p->pid);
	table_cell(&l->table, "%s", p->name);
	table_cell(&l->table, "%.1f s", (double)p->duration_ms / 1000);
	table_cell(&l->table, "%zu", p->finding_count);
	table_cell(&l->table, "%s", p->trace_file ? p->trace_file : "-");
	l->count++;
	return true;
}

static bool list_all(struct history_job *job, struct list *l)
{
	static const char *const heads[] = { "ID",	 "TIME",     "PID",  "NAME",
					     "DURATION", "FINDINGS", "TRACE" };
	struct store_filter f = job->filter;
	bool ok;

	switch (job->format) {
	case HISTORY_JSON:
		json_init(&l->json, job->out, false);
		json_begin_object(&l->json, NULL);
		json_text(&l->json, "schema", REPORT_SCHEMA);
		json_begin_array(&l->json, "samples");
		ok = store_list(job->store, &f, list_json, l);
		json_end(&l->json);
		json_end(&l->json);
		return ok;
	case HISTORY_CSV:
		out_text(job->out, "id,time,pid,name,duration_ms,findings,trace_file\n");
		return store_list(job->store, &f, list_csv, l);
	case HISTORY_TEXT:
	case HISTORY_NDJSON:
		break;
	}
	f.limit = job->top;
	table_init(&l->table, "rlrlrrl");
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		table_cell(&l->table, "%s", heads[i]);
	ok = store_list(job->store, &f, list_text, l);
	table_print(&l->table, job->out, true);
	return ok;
}

int history_list(struct history_job *job)
{
	struct list l = { .job = job };

	if (!list_all(job, &l))
		return EXIT_FAILED;
	if (job->format == HISTORY_TEXT && l.count && l.count == job->top)
		log_info("the newest %zu; --top 0 for all", l.count);
	return EXIT_DONE;
}

/* --- show --- */

static void show_json(struct out *o, const struct store_sample *p)
{
	struct json j;

	json_init(&j, o, false);
	json_begin_object(&j, NULL);
	json_text(&j, "schema", REPORT_SCHEMA);
	json_begin_object(&j, "sample");
	json_sample(&j, p);
	json_begin_array(&j, "findings");
	for (size_t i = 0; i < p->finding_count; i++) {
		json_begin_object(&j, NULL);
		json_text(&j, "id", p->findings[i].id);
		json_text(&j, "severity", p->findings[i].severity);
		json_text(&j, "title", p->findings[i].title);
		json_text(&j, "evidence", p->findings[i].evidence);
		json_end(&j);
	}
	json_end(&j);
	json_text(&j, "trace_file", p->trace_file);
	json_begin_object(&j, "metrics");
	for (size_t i = 0; i < p->metric_count; i++)
		json_double(&j, p->metrics[i].name, p->metrics[i].value);
	json_end(&j);
	json_begin_array(&j, "methods");
	for (size_t i = 0; i < p->method_count; i++) {
		json_begin_object(&j, NULL);
		json_text(&j, "method", p->methods[i].name);
		json_fixed(&j, "exclusive_processor_percent", p->methods[i].exclusive, 3);
		json_fixed(&j, "inclusive_processor_percent", p->methods[i].inclusive, 3);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	json_end(&j);
}

static void show_text(struct history_job *job, const struct store_sample *p)
{
	struct out *o = job->out;
	struct table t;
	char time[WHEN_BYTES];

	table_init(&t, "ll");
	table_cell(&t, "sample");
	table_cell(&t, "%" PRId64 ", %s", p->id, when_text(p->time_ms, time));
	table_cell(&t, "process");
	table_cell(&t, "%s (pid %" PRId32 ")%s%s", p->name, p->pid, p->host ? " on " : "",
		   p->host ? p->host : "");
	table_cell(&t, "command line");
	table_cell(&t, "%s", p->command_line ? p->command_line : "not known");
	table_cell(&t, "runtime");
	table_cell(&t, "%s", p->runtime ? p->runtime : "not known");
	table_cell(&t, "recorded");
	table_cell(&t, "%.1f s, %" PRIu64 " events, %" PRIu64 " lost%s",
		   (double)p->duration_ms / 1000, p->events, p->lost,
		   p->complete ? "" : ", not complete");
	table_cell(&t, "trace");
	if (p->trace_file)
		table_cell(&t, "%s/%s", store_traces_dir(job->store), p->trace_file);
	else
		table_cell(&t, "not kept");
	table_print(&t, o, false);

	out_printf(o, "\nFINDINGS%s\n", p->finding_count ? "" : "\n  none");
	table_init(&t, "lll");
	for (size_t i = 0; i < p->finding_count; i++) {
		table_cell(&t, "%s", p->findings[i].severity);
		table_cell(&t, "%s", p->findings[i].id);
		table_cell(&t, "%s", p->findings[i].title);
	}
	table_print(&t, o, false);
	out_printf(o, "\nMETHODS%s\n", p->method_count ? "" : "\n  none recorded");
	table_init(&t, "rrl");
	for (size_t i = 0; i < p->method_count && (!job->top || i < job->top); i++) {
		table_cell(&t, "%.1f %%", p->methods[i].exclusive);
		table_cell(&t, "%.1f %%", p->methods[i].inclusive);
		table_cell(&t, "%s", p->methods[i].name);
	}
	table_print(&t, o, false);
	out_text(o, "\nMETRICS\n");
	table_init(&t, "lr");
	for (size_t i = 0; i < p->metric_count; i++) {
		table_cell(&t, "%s", p->metrics[i].name);
		table_cell(&t, "%.6g", p->metrics[i].value);
	}
	table_print(&t, o, false);
}

static bool show(void *ctx, const struct store_sample *p)
{
	struct history_job *job = ctx;

	if (job->format == HISTORY_JSON)
		show_json(job->out, p);
	else
		show_text(job, p);
	return true;
}

int history_show(struct history_job *job)
{
	uint64_t id;
	bool found;

	if (opt_parse_uint(job->word, &id) || id > INT64_MAX)
		return opt_usage_error(job->cmd, "'%s' is no number of a sample", job->word);
	if (!store_show(job->store, (int64_t)id, show, job, &found))
		return EXIT_FAILED;
	if (found)
		return EXIT_DONE;
	log_error("there is no sample %" PRIu64 " in '%s'", id, store_dir(job->store));
	return EXIT_FAILED;
}

/* --- export --- */

/* A row a metric: what databases of columns like, and whatever metrics a later version adds. */
static bool export_csv(void *ctx, const struct store_sample *p)
{
	struct out *o = ((struct history_job *)ctx)->out;
	char time[WHEN_BYTES];

	for (size_t i = 0; i < p->metric_count; i++) {
		out_printf(o, "%" PRId64 ",%s,", p->id, when_text(p->time_ms, time));
		csv_text(o, p->host);
		out_text(o, ",");
		csv_text(o, p->name);
		out_printf(o, ",%" PRId32 ",", p->pid);
		csv_text(o, p->build);
		out_text(o, ",");
		csv_text(o, p->metrics[i].name);
		out_printf(o, ",%.17g\n", p->metrics[i].value);
	}
	return true;
}

static bool export_ndjson(void *ctx, const struct store_sample *p)
{
	struct json j;

	json_init(&j, ((struct history_job *)ctx)->out, true);
	json_begin_object(&j, NULL);
	json_sample(&j, p);
	json_begin_object(&j, "metrics");
	for (size_t i = 0; i < p->metric_count; i++)
		json_double(&j, p->metrics[i].name, p->metrics[i].value);
	json_end(&j);
	json_begin_array(&j, "findings");
	for (size_t i = 0; i < p->finding_count; i++)
		json_text(&j, NULL, p->findings[i].id);
	json_end(&j);
	json_end(&j);
	return true;
}

struct ids {
	int64_t *v;
	size_t count;
	bool failed;
};

static bool note_id(void *ctx, const struct store_sample *p)
{
	struct ids *ids = ctx;

	if ((ids->count & (ids->count - 1)) == 0) {
		int64_t *grown =
			realloc(ids->v, (ids->count ? 2 * ids->count : 1) * sizeof(*grown));

		if (!grown) {
			ids->failed = true;
			return false;
		}
		ids->v = grown;
	}
	ids->v[ids->count++] = p->id;
	return true;
}

int history_export(struct history_job *job)
{
	bool csv = job->format == HISTORY_CSV;
	struct ids ids = { 0 };
	bool ok = store_list(job->store, &job->filter, note_id, &ids);

	if (ids.failed)
		log_error("cannot export: out of memory");
	ok = ok && !ids.failed;
	if (csv)
		out_text(job->out, "sample,time,host,name,pid,build,metric,value\n");
	for (size_t i = 0; ok && i < ids.count && !out_failed(job->out); i++) {
		bool found; /* gone meanwhile: not there */

		ok = store_show(job->store, ids.v[i], csv ? export_csv : export_ndjson, job,
				&found);
	}
	free(ids.v);
	return ok ? EXIT_DONE : EXIT_FAILED;
}
