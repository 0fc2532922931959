/* SPDX-License-Identifier: MIT */
#include "src/stack/stack_run.h"

#include <inttypes.h>
#include <stdlib.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/collect/collect_end.h"
#include "src/collect/heap_walk.h"
#include "src/collect/providers.h"
#include "src/ipc/process_list.h"
#include "src/proc/proc.h"
#include "src/stack/stack_session.h"

/* What is analysed, and what of it the text shows. */
static const char *const sections[] = { "stacks", "tasks", "locks", "threadpool", "threads" };
static const char *const shown[] = { "stacks", "tasks", "locks" };

enum {
	SECTIONS = sizeof(sections) / sizeof(sections[0]),
	SHOWN = sizeof(shown) / sizeof(shown[0]),
};

/* Contention; Threading */
#define KEYWORDS (UINT64_C(0x4000) | UINT64_C(0x10000))

static const struct ipc_provider providers[] = {
	{ .name = PROVIDER_SAMPLER, .level = 4 },
	{ .name = PROVIDER_RUNTIME, .keywords = KEYWORDS, .level = 4 },
};
static const struct ipc_provider heap_providers[] = {
	{ .name = PROVIDER_SAMPLER, .level = 4 },
	{ .name = PROVIDER_RUNTIME,
	  .keywords = KEYWORDS | HEAP_WALK_KEYWORDS,
	  .level = HEAP_WALK_LEVEL },
};

enum { PROVIDERS = sizeof(providers) / sizeof(providers[0]) };

/* --- what went wrong --- */

static void say_held(const struct collect_target *t, const struct process_hold *hold)
{
	log_error("cannot take the stacks of process %" PRId32 " (%s): %s", t->target.pid, t->name,
		  hold->why);
	log_advice("%s", hold->advice);
}

/* A session that is opened and closed meanwhile makes some runtimes crash when they go on. */
static void say_suspended(const struct collect_target *t)
{
	log_error("cannot take the stacks of process %" PRId32
		  " (%s): it is suspended at its start and has run nothing yet",
		  t->target.pid, t->name);
	log_advice("let it go on: drdotnet-trace process resume -p %" PRId32, t->target.pid);
}

static int refuse(const struct collect_target *t, const struct session_end *end, bool heap)
{
	char why[256];

	if (end->why == SESSION_UNREACHABLE && (end->error == UV_EACCES || end->error == UV_EPERM))
		process_whose(&t->target, why, sizeof(why));
	else
		session_describe(end, why, sizeof(why));
	log_error("cannot take the stacks of process %" PRId32 " (%s): %s", t->target.pid, t->name,
		  why);
	if (end->why == SESSION_TIMEOUT)
		log_advice("it may get no processor time, or another tool may block its "
			   "diagnostics%s; --timeout waits longer",
			   heap ? ", or its heap is large: --no-heap leaves that out" : "");
	return end->why == SESSION_NO_MEMORY ? EXIT_FAILED : EXIT_UNREACHABLE;
}

/* Not one stack: that is never a result. */
static int say_none(const struct collect_target *t, const struct stack_session_result *r,
		    const struct nt_decoder *d)
{
	const struct nt_trace_info *trace = nt_decoder_borrow_trace(d);
	bool native = trace && trace->processors == UINT16_MAX;

	log_error("no stack of process %" PRId32 " (%s) came%s", t->target.pid, t->name,
		  native	   ? ": NativeAOT has no sampler"
		  : r->interrupted ? ": interrupted"
				   : "");
	if (!native && !r->interrupted)
		log_advice("its sampler got no processor time in %.0f s; --timeout waits longer",
			   (double)r->watched_ns / 1e9);
	return EXIT_FAILED;
}

/* The exit code of a stream that has stacks. */
static int judge(const struct collect_target *t, const struct stack_session_result *r,
		 struct nt_decoder *d)
{
	enum nt_status st = nt_decoder_finish(d);
	char why[256];

	if (st == NT_OK && nt_decoder_borrow_stats(d)->ended)
		return EXIT_DONE;
	if (st != NT_ETRUNC && st != NT_OK)
		return analysis_fault(d, NULL);
	if (r->end.why == SESSION_ENDED)
		snprintf(why, sizeof(why), "process %" PRId32 " closed the session, or ended",
			 t->target.pid);
	else
		session_describe(&r->end, why, sizeof(why));
	log_error("the stacks are incomplete: %s", r->interrupted ? "interrupted" : why);
	return EXIT_PARTIAL;
}

/* --- the report --- */

/* The system's threads as analyzers know them; false: out of memory. */
static bool make_threads(const struct stack_session_result *r, struct an_os_thread **ret)
{
	struct an_os_thread *rows = calloc(r->after.count + 1, sizeof(*rows));

	for (size_t i = 0; rows && i < r->after.count; i++) {
		const struct proc_thread *t = &r->after.rows[i];

		rows[i] = (struct an_os_thread){
			.id = t->id,
			.name = t->name,
			.state = t->state,
			.cpu_known = true,
			.cpu_ns = proc_thread_cpu_since(t, &r->before),
		};
	}
	*ret = rows;
	return rows != NULL;
}

static int print(const struct stack_wish *w, struct analysis *a,
		 const struct stack_session_result *r)
{
	static const struct an_provider enabled[] = {
		{ PROVIDER_SAMPLER, 0, 4 },
		{ PROVIDER_RUNTIME, KEYWORDS, 4 },
		{ 0 },
	};
	const struct report_choice choice = { .sections = shown,
					      .count = SHOWN,
					      .top = 20,
					      .in_order = true,
					      .no_merge = w->no_merge,
					      .all_stacks = w->all };
	struct an_os_thread *rows;
	struct analysis_threads threads;
	struct out *o = NULL;
	int code = EXIT_FAILED;

	if (!make_threads(r, &rows))
		log_error("cannot take stacks: out of memory");
	else
		o = out_open(w->output, w->force);
	if (o) {
		threads = (struct analysis_threads){ rows, r->after.count, r->watched_ns };
		if (r->threads_known)
			analysis_set_threads(a, &threads);
		analysis_set_enabled(a, enabled);
		analysis_set_choice(a, &choice);
		code = analysis_print(a, o, w->format, NULL, NULL);
		if (code == EXIT_DONE)
			code = out_close(o, code);
		else
			out_discard(o);
	}
	free(rows);
	return code;
}

static int take(const struct stack_wish *w, struct analysis *a)
{
	const struct stack_session_config config = {
		.target = &w->target->target,
		.providers = w->heap_walks ? heap_providers : providers,
		.provider_count = PROVIDERS,
		.watch_ms = w->watch_ms,
		.timeout_ms = w->timeout_ms,
		.heap_walks = w->heap_walks,
		.quiet = w->quiet,
	};
	struct nt_decoder *d = analysis_decoder(a);
	struct stack_session_result r;
	int code = EXIT_FAILED, printed;

	if (!stack_session_run(&config, a, &r))
		return EXIT_FAILED;
	if (r.held) {
		say_held(w->target, &r.hold);
		code = EXIT_UNREACHABLE;
	} else if (!r.end.started && !r.interrupted) {
		code = refuse(w->target, &r.end, w->heap_walks > 0);
	} else if (!r.samples) {
		code = say_none(w->target, &r, d);
	} else {
		code = judge(w->target, &r, d);
		if (code == EXIT_DONE && r.walked < w->heap_walks)
			code = EXIT_PARTIAL;
		printed = code == EXIT_FAILED ? code : print(w, a, &r);
		code = printed != EXIT_DONE ? printed : code;
	}
	stack_session_done(&r);
	return code;
}

int stack_run(const struct stack_wish *w)
{
	const struct an_options options = { .top = 0 };
	struct process_hold hold;
	struct analysis *a;
	int code;

	if (process_is_held(PROC_ROOT, &w->target->target, &hold)) {
		say_held(w->target, &hold);
		return EXIT_UNREACHABLE;
	}
	if (proc_stays_at_start(PROC_ROOT, w->target->target.pid)) {
		say_suspended(w->target);
		return EXIT_UNREACHABLE;
	}
	a = analysis_new(&options, sections, SECTIONS, NULL);
	if (!a) {
		log_error("cannot take stacks: out of memory");
		return EXIT_FAILED;
	}
	code = take(w, a);
	analysis_free(a);
	return code;
}
