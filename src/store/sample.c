/* SPDX-License-Identifier: MIT */
#include "src/store/sample.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/base/output.h"
#include "src/base/utf8.h"
#include "src/ipc/process_list.h"
#include "src/store/out_prometheus.h"
#include "src/store/sample_row.h"
#include "src/store/when.h"

uint64_t sample_next(uint64_t begin_ns, uint64_t every_ns, uint64_t now_ns, uint64_t done,
		     uint64_t *ret_missed)
{
	uint64_t due = (now_ns - begin_ns) / every_ns + 1;

	*ret_missed = due > done ? due - done : 0;
	return begin_ns + due * every_ns;
}

/* --- whom --- */

/* A process that is sampled in this round. */
struct target {
	const struct process *process;
	struct collect_subject subject;
	char build[64]; /* "" not known */
	int lock;
};

struct round {
	struct store *store;
	const struct sample_settings *settings;
	struct sample_result *result;
	struct process_list list;
	struct target *targets;
	size_t count;
	char host[256]; /* "" not known */
	int64_t begin_ms;
	uint64_t cpu_us; /* ours, when it began */
	struct sample_row *rows; /* one a target; those that were stored, for the metrics */
	size_t row_count;
};

static bool is_in(const struct opt_list *l, const struct process *p)
{
	uint64_t pid;

	for (size_t i = 0; i < l->count; i++)
		if (!opt_parse_uint(l->items[i], &pid) && pid == (uint64_t)p->target->pid)
			return true;
	return false;
}

static bool is_wanted(const struct sample_settings *s, const struct process *p)
{
	if (s->all || is_in(s->pids, p))
		return true;
	for (size_t i = 0; i < s->names->count; i++)
		if (process_is_named(p, s->names->items[i]))
			return true;
	for (size_t i = 0; p->command_line && i < s->matches->count; i++)
		if (strstr(p->command_line, s->matches->items[i]) ||
		    fnmatch(s->matches->items[i], p->command_line, 0) == 0)
			return true;
	return false;
}

/* What tells versions of a program apart: when its assembly was written, and its size. */
static void find_build(const struct process *p, char *ret, size_t size)
{
	const char *line = p->command_line ? p->command_line : "";
	const char *end = strstr(line, ".dll");
	char path[4096], time[WHEN_BYTES];
	struct stat st;
	const char *begin;

	*ret = 0;
	if (end && (end[4] == 0 || end[4] == ' ')) {
		for (begin = end; begin > line && begin[-1] != ' '; begin--)
			;
		snprintf(path, sizeof(path), "/proc/%" PRId32 "/%s%.*s.dll", p->target->pid,
			 *begin == '/' ? "root" : "cwd/", (int)(end - begin), begin);
	} else {
		snprintf(path, sizeof(path), "/proc/%" PRId32 "/exe", p->target->pid);
	}
	if (stat(path, &st) == 0)
		snprintf(ret, size, "%s %jd bytes",
			 when_text((int64_t)st.st_mtim.tv_sec * 1000, time), (intmax_t)st.st_size);
}

static bool lock_target(struct round *r, const struct process *p, int *ret_fd)
{
	char name[300];

	snprintf(name, sizeof(name), "%" PRId32 "-%s", p->target->pid, p->name ? p->name : "");
	if (!store_lock_target(r->store, name, ret_fd))
		return false;
	if (*ret_fd < 0) {
		r->result->busy++;
		if (!r->settings->quiet)
			log_warn("process %" PRId32 " (%s) is left out: another run samples it",
				 p->target->pid, p->name ? p->name : "?");
	}
	return true;
}

static bool choose(struct round *r)
{
	const struct sample_settings *s = r->settings;
	size_t left_out = 0;

	r->targets = calloc(r->list.count ? r->list.count : 1, sizeof(*r->targets));
	r->rows = calloc(r->list.count ? r->list.count : 1, sizeof(*r->rows));
	if (!r->targets || !r->rows) {
		log_error("cannot sample: out of memory");
		return false;
	}
	for (size_t i = 0; i < r->list.count; i++) {
		const struct process *p = &r->list.items[i];
		struct target *t = &r->targets[r->count];

		if (p->target->foreign || !is_wanted(s, p))
			continue;
		if (!p->traceable) {
			/* With --all that is no news, each time. */
			if (!s->all)
				log_warn("process %" PRId32 " (%s) cannot be sampled: %s",
					 p->target->pid, p->name ? p->name : "?", p->why_not);
			r->result->failed++;
			continue;
		}
		/* One that was asked for and is just starting is worth a moment. */
		if (s->all ? proc_waits_at_start(PROC_ROOT, p->target->pid)
			   : proc_stays_at_start(PROC_ROOT, p->target->pid)) {
			if (!s->all)
				log_warn("process %" PRId32 " (%s) cannot be sampled: it is "
					 "suspended at its start",
					 p->target->pid, p->name ? p->name : "?");
			r->result->failed++;
			continue;
		}
		if (r->count == s->max_targets) {
			left_out++;
			continue;
		}
		if (!lock_target(r, p, &t->lock))
			return false;
		if (t->lock < 0)
			continue;
		t->process = p;
		t->subject = (struct collect_subject){ .target = p->target,
						       .pid = p->target->pid,
						       .name = p->name ? p->name : "process" };
		find_build(p, t->build, sizeof(t->build));
		r->count++;
	}
	if (left_out)
		log_warn("%zu more processes match: --max-targets is %" PRIu64, left_out,
			 s->max_targets);
	return true;
}

/* --- what came of it --- */

static uint64_t own_cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static const struct target *find_target(const struct round *r, const struct collect_subject *who)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->targets[i].subject.pid == who->pid)
			return &r->targets[i];
	return NULL;
}

/* One line a finding: what cron mails. */
static void say_findings(const struct round *r, const struct store_sample *p, const char *trace)
{
	struct out *o = r->settings->quiet || !p->finding_count ? NULL : out_open(NULL, false);

	for (size_t i = 0; o && i < p->finding_count; i++) {
		const struct store_finding *f = &p->findings[i];
		char name[256], title[1024];

		utf8_escape(p->name, strlen(p->name), name, sizeof(name));
		utf8_escape(f->title, strlen(f->title), title, sizeof(title));
		out_printf(o, "%s[%" PRId32 "] %s %s: %s (sample %" PRId64 "%s%s)\n", name, p->pid,
			   f->severity, f->id, title, p->id, trace ? ", " : "", trace ? trace : "");
	}
	if (o && out_close(o, EXIT_DONE) != EXIT_DONE)
		r->result->code = EXIT_FAILED;
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

static void take_outcome(void *ctx, const struct collect_outcome *outcome)
{
	struct round *r = ctx;
	const struct target *t = find_target(r, outcome->who);
	struct sample_row *row = &r->rows[r->row_count];
	struct store_sample *p = &row->sample;

	if (!outcome->report || !t) {
		r->result->failed++;
		return;
	}
	if (!sample_row_make(outcome->report, row)) {
		log_error("cannot store a sample: out of memory");
		sample_row_done(row);
		r->result->failed++;
		return;
	}
	p->time_ms = r->begin_ms;
	p->host = sample_row_keep(row, *r->host ? r->host : NULL);
	p->name = sample_row_keep(row, t->subject.name);
	p->pid = t->subject.pid;
	p->process_start = t->process->target->stat.start_ticks;
	if (!p->command_line)
		p->command_line = sample_row_keep(row, t->process->command_line);
	if (!p->runtime)
		p->runtime = sample_row_keep(row, t->process->runtime_version);
	p->build = sample_row_keep(row, *t->build ? t->build : NULL);
	p->duration_ms = outcome->duration_ns / 1000000;
	p->complete = outcome->code == EXIT_DONE || outcome->code == EXIT_CONDITION;
	p->own_cpu_us = (own_cpu_us() - r->cpu_us) / r->count;
	p->trace_file = sample_row_keep(row, base_name(outcome->path));
	p->trace_bytes = outcome->file_bytes;
	if (row->failed || !store_add(r->store, p, &p->id)) {
		sample_row_done(row);
		r->result->failed++;
		r->result->code = EXIT_FAILED;
		return;
	}
	r->result->sampled++;
	r->result->findings += p->finding_count;
	say_findings(r, p, outcome->path);
	r->row_count++;
}

/* --- the whole --- */

static int record(struct round *r)
{
	struct collect_settings c = r->settings->collect;
	struct collect_subject *subjects = calloc(r->count, sizeof(*subjects));
	struct collect_plan plan = { .subjects = subjects, .count = r->count };
	char *output = NULL;
	int code = EXIT_FAILED;

	if (subjects && r->settings->keep_traces &&
	    asprintf(&output, "%s/%%n_%%p_%%t.nettrace.zst", store_traces_dir(r->store)) < 0)
		output = NULL;
	if (!subjects || (r->settings->keep_traces && !output)) {
		log_error("cannot sample: out of memory");
	} else {
		for (size_t i = 0; i < r->count; i++)
			subjects[i] = r->targets[i].subject;
		c.output = output;
		c.output_is_default = true; /* a name that is taken gets a number */
		c.outcome = take_outcome;
		c.outcome_ctx = r;
		c.ret_interrupted = &r->result->interrupted;
		code = collect_run(&c, &plan);
	}
	free(output);
	free(subjects);
	return code;
}

static bool write_metrics(const struct round *r)
{
	const struct store_sample **list = calloc(r->row_count + 1, sizeof(*list));
	bool ok = list != NULL;

	for (size_t i = 0; ok && i < r->row_count; i++)
		list[i] = &r->rows[i].sample;
	ok = ok && prometheus_write(r->settings->prometheus, list, r->row_count);
	free(list);
	return ok;
}

static void tidy(struct round *r)
{
	struct store_pruned pruned;
	size_t removed;

	if (!store_repair(r->store, &removed) ||
	    !store_prune(r->store, when_now_ms(), &r->settings->limits, &pruned))
		r->result->code = EXIT_FAILED;
}

static void worsen(struct sample_result *result, int code)
{
	if (result->code == EXIT_DONE || code == EXIT_FAILED)
		result->code = code;
}

static void nobody(struct round *r)
{
	worsen(r->result, EXIT_UNREACHABLE);
	if (!r->settings->loop && r->result->failed == 0)
		log_error("no .NET process to sample%s", r->settings->all ? "" : " matches");
}

void sample_round(struct store *store, const struct sample_settings *s, struct sample_result *ret)
{
	struct round r = { .store = store, .settings = s, .result = ret };
	size_t busy = ret->busy;

	r.begin_ms = when_now_ms();
	r.cpu_us = own_cpu_us();
	if (gethostname(r.host, sizeof(r.host) - 1) != 0)
		r.host[0] = 0;
	if (process_list_load(&r.list, "/proc", s->ask_ms) && choose(&r)) {
		if (r.count)
			worsen(ret, record(&r));
		else if (r.result->busy == busy)
			nobody(&r);
		tidy(&r);
		if (s->prometheus && !write_metrics(&r))
			worsen(ret, EXIT_FAILED);
	} else {
		worsen(ret, EXIT_FAILED);
	}
	for (size_t i = 0; i < r.count; i++)
		close(r.targets[i].lock);
	for (size_t i = 0; i < r.row_count; i++)
		sample_row_done(&r.rows[i]);
	free(r.targets);
	free(r.rows);
	process_list_done(&r.list);
}
