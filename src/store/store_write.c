/* SPDX-License-Identifier: MIT */

/* Samples into the store, each in one transaction. */

#include <math.h>
#include <string.h>

#include "src/store/store_internal.h"

static int64_t day_of(int64_t time_ms)
{
	int64_t day = time_ms / STORE_DAY_MS;

	return time_ms % STORE_DAY_MS < 0 ? day - 1 : day;
}

static bool has_metric(const struct store_sample *p, const char *name)
{
	for (size_t i = 0; i < p->metric_count; i++)
		if (strcmp(p->metrics[i].name, name) == 0)
			return true;
	return false;
}

static bool add_row(struct store *s, const struct store_sample *p, int64_t target)
{
	return store_run(
		s,
		"INSERT INTO sample(time_ms, target, host, command_line, runtime, build, pid,"
		" process_start, duration_ms, events, lost, complete, own_cpu_us, cpu_recorded,"
		" findings, trace_file, trace_bytes)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, "
		"?17)",
		"iittttiiiiiiiiiti", p->time_ms, target, p->host, p->command_line, p->runtime,
		p->build, (int64_t)p->pid, (int64_t)p->process_start, (int64_t)p->duration_ms,
		(int64_t)p->events, (int64_t)p->lost, (int64_t)p->complete, (int64_t)p->own_cpu_us,
		(int64_t)has_metric(p, "cpu.samples"), (int64_t)p->finding_count, p->trace_file,
		(int64_t)p->trace_bytes);
}

static bool add_metrics(struct store *s, const struct store_sample *p, int64_t id, int64_t target)
{
	for (size_t i = 0; i < p->metric_count; i++) {
		int64_t name;

		if (!isfinite(p->metrics[i].value))
			continue;
		name = store_word(s, p->metrics[i].name);
		if (!name || !store_run(s,
					"INSERT OR REPLACE INTO metric(sample, name, target, "
					"time_ms, value) VALUES(?1, ?2, ?3, ?4, ?5)",
					"iiiid", id, name, target, p->time_ms, p->metrics[i].value))
			return false;
	}
	return true;
}

/* Two methods of one name, in different modules: their shares add up. */
static bool add_methods(struct store *s, const struct store_sample *p, int64_t id, int64_t target)
{
	for (size_t i = 0; i < p->method_count; i++) {
		const struct store_method *m = &p->methods[i];
		int64_t name = store_word(s, m->name);

		if (!name ||
		    !store_run(
			    s,
			    "INSERT INTO method(sample, name, target, time_ms, exclusive, "
			    "inclusive) VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET "
			    "exclusive = exclusive + ?5, inclusive = inclusive + ?6",
			    "iiiidd", id, name, target, p->time_ms, m->exclusive, m->inclusive))
			return false;
	}
	return store_run(s,
			 "INSERT INTO method_day(day, target, name, exclusive, inclusive, samples)"
			 " SELECT ?2, target, name, exclusive, inclusive, 1 FROM method"
			 " WHERE sample = ?1 ON CONFLICT DO UPDATE SET"
			 " exclusive = exclusive + excluded.exclusive,"
			 " inclusive = inclusive + excluded.inclusive, samples = samples + 1",
			 "ii", id, day_of(p->time_ms));
}

static bool add_findings(struct store *s, const struct store_sample *p, int64_t id)
{
	for (size_t i = 0; i < p->finding_count; i++) {
		const struct store_finding *f = &p->findings[i];
		int64_t name = store_word(s, f->id);

		if (!name ||
		    !store_run(s,
			       "INSERT INTO finding(sample, place, id, severity, title, evidence)"
			       " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
			       "iiittt", id, (int64_t)i, name, f->severity, f->title, f->evidence))
			return false;
	}
	return true;
}

bool store_add(struct store *s, const struct store_sample *p, int64_t *ret_id)
{
	int64_t target, id;
	bool ok;

	if (!store_begin(s))
		return false;
	target = store_word(s, p->name);
	ok = target && add_row(s, p, target);
	id = sqlite3_last_insert_rowid(s->db);
	ok = ok && add_metrics(s, p, id, target) && add_methods(s, p, id, target) &&
	     add_findings(s, p, id);
	if (!store_end(s, ok))
		return false;
	*ret_id = id;
	return true;
}

bool store_add_marker(struct store *s, int64_t time_ms, const char *name, const char *label)
{
	int64_t target = 0;
	bool ok;

	if (!store_begin(s))
		return false;
	if (name)
		target = store_word(s, name);
	ok = !name || target;
	ok = ok && store_run(s,
			     "INSERT INTO marker(time_ms, target, label)"
			     " VALUES(?1, nullif(?2, 0), ?3)",
			     "iit", time_ms, target, label);
	return store_end(s, ok);
}
