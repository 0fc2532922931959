/* SPDX-License-Identifier: MIT */
#include "src/collect/collection.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/base/trace_name.h"
#include "src/collect/collect_end.h"
#include "src/collect/collect_meters.h"
#include "src/collect/collect_progress.h"
#include "src/collect/collect_stream.h"
#include "src/collect/early_symbols.h"
#include "src/collect/heap_walk.h"
#include "src/collect/providers.h"
#include "src/ipc/ipc_once.h"
#include "src/ipc/session.h"

enum {
	PATIENCE_MS = 10000, /* how often it is said that a walk takes long */
	PROBE_MS = 2000, /* how long the events of tasks are counted */
	NAMES_PAUSE = 5, /* between two rundowns, times what one takes */
	MAX_TASKS_PER_S = 20000, /* more of them cost the process too much */
};

struct collection {
	const struct collect_settings *settings;
	const struct collect_subject *who;
	const struct collection_events *events;
	void *ctx;
	uv_loop_t *loop;
	size_t number; /* how many this run has started before */
	uv_timer_t timer; /* first the probe, then the duration */
	struct session *session;
	struct early_symbols *early;
	bool walk_answers; /* the process can be reached: a walk may take its time */
	unsigned waited_s; /* for the first one */
	struct heap_walk *walk; /* NULL: none goes on or is to come */
	struct collect_stream *stream;
	struct out *report;
	struct ipc_once *resume; /* being asked */
	bool resume_asked, written;
	bool finishing, ended;
	bool stop_waits; /* for a better moment */
	bool early_again; /* not for the first time */
	uint64_t early_end_ns, early_took_ns; /* of the last one */
	bool waiting; /* reading pauses, for the disk */
	bool restarting; /* the stream is being thrown away */
	bool no_tasks; /* recorded without them: there were too many */
	struct ipc_provider *providers; /* of the session, if they are not those of the settings */
	struct collect_facts facts;
};

/* --- ending --- */

static void on_timer_closed(uv_handle_t *h)
{
	struct collection *c = h->data;

	c->ended = true;
	c->events->ended(c->ctx, c);
}

/* Both the file is complete and the runtime, if it waited for us, goes on. */
static void maybe_close(struct collection *c)
{
	if (c->written && !c->resume && !uv_is_closing((uv_handle_t *)&c->timer))
		uv_close((uv_handle_t *)&c->timer, on_timer_closed);
}

static void on_file_done(void *ctx, const struct collect_pieces_result *result)
{
	struct collection *c = ctx;

	c->facts.written = *result;
	c->facts.written.file.path = NULL;
	if (result->file.path)
		c->facts.path = strdup(result->file.path);
	c->written = true;
	maybe_close(c);
}

static void on_resumed(void *ctx, const struct ipc_reply *reply, const struct ipc_conn_end *end)
{
	struct collection *c = ctx;

	(void)end;
	c->resume = NULL;
	/* Before .NET 5 there is nothing to resume. */
	if (reply && !reply->ok && reply->hresult != IPC_H_UNKNOWN_COMMAND)
		log_warn("process %d could not be told to go on: %s", (int)c->who->pid,
			 ipc_hresult_text(reply->hresult));
	maybe_close(c);
}

/*
 * A runtime may wait at its port until somebody tells it to start.  Whatever became of the session,
 * nobody is left waiting; to all others this means nothing.
 */
static void resume(struct collection *c)
{
	const struct ipc_target *t = c->who->target;
	uint8_t request[IPC_HEADER_BYTES];
	size_t n = ipc_put_plain(request, sizeof(request), IPC_SET_PROCESS, IPC_RESUME_RUNTIME);

	if (!c->settings->resume || c->resume_asked)
		return;
	c->resume_asked = true;
	c->resume =
		ipc_once_start(c->loop, c->who->source ? NULL : t->sockets[0].path, c->who->source,
			       request, n, c->settings->timeout_ms, on_resumed, c);
	if (!c->resume)
		log_warn("process %d could not be told to go on: out of memory", (int)c->who->pid);
}

static void close_sessions(struct collection *c)
{
	uv_timer_stop(&c->timer);
	if (c->session)
		session_close(c->session, NULL, NULL);
	collect_stream_measured(c->stream);
	if (c->early)
		early_symbols_close(c->early);
	if (c->walk)
		heap_walk_close(c->walk);
	c->session = NULL;
	c->early = NULL;
	c->walk = NULL;
}

/* The stream is over, one way or the other; all is over when the file is complete. */
static void finish(struct collection *c)
{
	if (c->finishing)
		return;
	c->finishing = true;
	c->facts.end_ns = uv_hrtime();
	close_sessions(c);
	if (c->who->source && !c->facts.started)
		resume(c);
	if (!c->restarting)
		collect_stream_finish(c->stream, false, on_file_done, c);
}

static void on_meters_read(uv_timer_t *timer)
{
	struct collection *c = timer->data;

	c->stop_waits = false;
	if (c->session)
		session_stop(c->session);
}

void collection_stop(struct collection *c)
{
	uint64_t wait_ms = 0;

	if (c->facts.stop_ns == 0) {
		c->facts.stop_ns = uv_hrtime();
		if (c->facts.started)
			wait_ms =
				collect_meters_ms(&c->settings->session,
						  (c->facts.stop_ns - c->facts.start_ns) / 1000000);
		uv_timer_stop(&c->timer); /* neither the duration nor the probe matters any more */
	}
	collect_stream_stopping(c->stream);
	if (wait_ms)
		uv_timer_start(&c->timer, on_meters_read, wait_ms, 0);
	c->stop_waits = c->stop_waits || wait_ms;
	if (c->stop_waits)
		return;
	if (c->session) {
		session_stop(c->session);
	} else if (c->walk && !c->finishing) {
		c->facts.end.why = SESSION_CANCELLED; /* not yet begun */
		finish(c);
	}
}

void collection_abort(struct collection *c)
{
	if (!c->finishing)
		c->facts.forced = true;
	finish(c);
}

static void on_duration(uv_timer_t *timer)
{
	collection_stop(timer->data);
}

/* One line about the run, between two states of the line in place. */
static bool may_say(const struct collection *c)
{
	if (c->settings->quiet)
		return false;
	collect_progress_clear(c->settings->quiet);
	return true;
}

/* --- the session --- */

/* None where it is reached otherwise.  The caller frees the array, not the names. */
static const char **borrow_sockets(const struct collection *c, size_t *ret_count)
{
	const struct ipc_target *t = c->who->target;
	size_t count = c->who->source ? 0 : t->socket_count;
	const char **sockets = calloc(count + 1, sizeof(*sockets));

	for (size_t i = 0; sockets && i < count; i++)
		sockets[i] = t->sockets[i].path;
	*ret_count = count;
	return sockets;
}

static enum nt_status on_early_event(void *ctx, const struct nt_event *ev)
{
	struct collection *c = ctx;

	return collect_stream_name(c->stream, ev);
}

static void on_early_done(void *ctx, const struct early_symbols_result *r)
{
	struct collection *c = ctx;
	char text[256];

	early_symbols_close(c->early);
	c->early = NULL;
	collect_stream_names_pending(c->stream, false);
	c->early_end_ns = uv_hrtime();
	c->early_took_ns = r->took_ns;
	if (r->complete) {
		if (!c->early_again && may_say(c))
			log_info("names of code loaded before: %s in %.2f s (--no-early-symbols "
				 "leaves them out)",
				 collect_format_bytes(r->bytes, text, sizeof(text)),
				 (double)r->took_ns / 1e9);
		return;
	}
	if (r->end.why == SESSION_ENDED)
		snprintf(text, sizeof(text), "the runtime did not send all of them");
	else
		session_describe(&r->end, text, sizeof(text));
	collect_progress_clear(c->settings->quiet);
	log_warn("no names of code loaded before: %s", text);
}

static const struct early_symbols_events early_events = { on_early_event, on_early_done };

/* Who has no names is no worse off than before: nothing here ends the recording. */
static void start_early(struct collection *c)
{
	size_t count;
	const char **sockets = borrow_sockets(c, &count);
	const struct early_symbols_config config = {
		.sockets = sockets,
		.socket_count = count,
		.source = c->who->source,
		.timeout_ms = c->settings->timeout_ms,
		.stop_timeout_ms = c->settings->stop_timeout_ms,
	};

	if (sockets)
		c->early = early_symbols_start(c->loop, &config, &early_events, c);
	collect_stream_names_pending(c->stream, c->early != NULL);
	if (!c->early)
		log_warn("no names of code loaded before: out of memory");
	free(sockets);
}

/*
 * Code that was compiled beforehand and is used for the first time is announced by no event: a
 * piece that has some asks for all names again.  They cost what they cost, so not all the time.
 */
static bool on_unnamed(void *ctx)
{
	struct collection *c = ctx;

	if (!c->settings->early_symbols || c->early || c->facts.stop_ns || c->finishing ||
	    (c->early_again && uv_hrtime() - c->early_end_ns < NAMES_PAUSE * c->early_took_ns))
		return false;
	c->early_again = true;
	start_early(c);
	return c->early != NULL;
}

static void start_duration(struct collection *c, uint64_t passed_ms)
{
	uint64_t all = c->settings->duration_ms;

	if (all)
		uv_timer_start(&c->timer, on_duration, all > passed_ms ? all - passed_ms : 0, 0);
}

static void on_restart(void *ctx, const struct collect_pieces_result *result);

/* Two seconds have passed: whether the process has more tasks than it can well report. */
static void on_probe(uv_timer_t *timer)
{
	struct collection *c = timer->data;
	uint64_t tasks = collect_stream_tasks(c->stream);

	collect_stream_count_tasks(c->stream, false);
	if (tasks <= MAX_TASKS_PER_S * (PROBE_MS / 1000)) {
		start_duration(c, PROBE_MS);
		return;
	}
	collect_progress_clear(c->settings->quiet);
	log_warn("%" PRIu64 " events of tasks a second: that slows the process down, so the "
		 "recording begins anew without them",
		 tasks / (PROBE_MS / 1000));
	log_advice("--profile tasks,cpu,gc records them all the same");
	c->no_tasks = true;
	c->restarting = true;
	close_sessions(c);
	collect_stream_finish(c->stream, true, on_restart, c);
}

/*
 * A probe pays only where there is something left to record behind it, and costs too much where it
 * would throw away the start of a program.
 */
static bool should_probe(const struct collection *c)
{
	return c->settings->without_tasks.provider_count && !c->no_tasks && !c->walk &&
	       !c->who->source && collect_stream_can_restart(c->stream) &&
	       (c->settings->duration_ms == 0 || c->settings->duration_ms > PROBE_MS);
}

static void on_started(void *ctx, unsigned version, unsigned gave_up)
{
	struct collection *c = ctx;

	(void)version;
	c->facts.started = true;
	c->facts.start_ns = uv_hrtime();
	if (!c->no_tasks && !c->settings->tap)
		collect_say_gave_up(gave_up);
	if (gave_up & IPC_GAVE_UP_FILTER)
		collect_stream_filter(c->stream);
	uv_update_time(c->loop);
	uv_timer_stop(&c->timer);
	if (should_probe(c)) {
		collect_stream_count_tasks(c->stream, true);
		uv_timer_start(&c->timer, on_probe, PROBE_MS, 0);
	} else {
		start_duration(c, 0);
	}
	if (c->walk)
		heap_walk_opened(c->walk);
	/* A runtime that has not begun yet has nothing to name, and tells no names before it has.
	 */
	if (c->settings->early_symbols && !(c->settings->resume && c->who->source))
		start_early(c);
	resume(c);
	c->events->started(c->ctx, c);
}

static void on_data(void *ctx, const uint8_t *bytes, size_t len)
{
	struct collection *c = ctx;

	c->facts.stream_bytes += len;
	if (c->facts.stop_ns == 0)
		c->facts.stop_bytes = c->facts.stream_bytes;
	collect_stream_push(c->stream, bytes, len);
	if (c->walk)
		heap_walk_push(c->walk, bytes, len);
}

static void on_session_end(void *ctx, const struct session_end *end)
{
	struct collection *c = ctx;

	c->facts.end = *end;
	finish(c);
}

static const struct session_events session_events = { on_started, on_data, on_session_end };

static bool samples_threads(const struct collection *c)
{
	return ipc_collect_find(&c->settings->session, PROVIDER_SAMPLER);
}

/* A number that is its own in another namespace is somebody else's in ours. */
static bool is_in_proc(const struct collection *c)
{
	return c->who->target && !c->who->target->foreign;
}

/* Once for each recording, from before the first sample on. */
static void start_measuring(struct collection *c)
{
	enum collect_cpu_source source = c->settings->cpu_source;
	bool asked = source == COLLECT_CPU_PROC || source == COLLECT_CPU_PERF;
	const char *why = "it is not in our /proc";

	if (source == COLLECT_CPU_EVENTPIPE || (!asked && !samples_threads(c)))
		return;
	if (is_in_proc(c)) {
		int error = collect_stream_measure(c->stream, c->who->pid);

		if (error == 0)
			return;
		why = strerror(error);
	}
	if (!asked && !may_say(c))
		return;
	collect_progress_clear(c->settings->quiet);
	if (asked)
		log_warn("the CPU use of the threads of process %d cannot be measured: %s",
			 (int)c->who->pid, why);
	else
		log_info("the CPU use of threads is estimated from samples: process %d cannot be "
			 "measured: %s",
			 (int)c->who->pid, why);
}

/* Once for each recording; who cannot be sampled is measured all the same. */
static bool start_sampling(struct collection *c)
{
	enum collect_cpu_source source = c->settings->cpu_source;
	bool asked = source == COLLECT_CPU_PERF;
	struct perf_refusal refusal = { .why = "it is not in our /proc" };

	if (!asked && (source != COLLECT_CPU_AUTO || !samples_threads(c)))
		return false;
	if (c->settings->keep)
		snprintf(refusal.why, sizeof(refusal.why), "--keep has no room for them");
	else if (is_in_proc(c) && collect_stream_sample(c->stream, c->who->pid, &refusal))
		return true;
	if (!asked && !may_say(c))
		return false;
	collect_progress_clear(c->settings->quiet);
	if (asked)
		log_warn("the kernel takes no CPU samples of process %d: %s", (int)c->who->pid,
			 refusal.why);
	else
		log_info("CPU samples are the runtime's, not the kernel's: %s", refusal.why);
	if (asked && refusal.advice)
		log_advice("%s", refusal.advice);
	return false;
}

/*
 * The runtime's sampler stops all threads a thousand times a second.  Whoever has the kernel's
 * samples and wants to know of nothing but CPU does without; so does who asked for these, unless
 * he cannot.
 */
static void leave_out_sampler(struct collection *c, struct ipc_collect *session)
{
	const struct collect_settings *s = c->settings;
	enum profile_sampler least =
		s->cpu_source == COLLECT_CPU_PERF ? PROFILE_SAMPLER_NEEDED : PROFILE_SAMPLER_WAITS;
	struct ipc_provider *list;
	size_t n = 0;

	if (s->sampler >= least || session->provider_count < 2)
		return;
	list = calloc(session->provider_count, sizeof(*list));
	for (size_t i = 0; list && i < session->provider_count; i++)
		if (strcasecmp(session->providers[i].name, PROVIDER_SAMPLER) != 0)
			list[n++] = session->providers[i];
	free(c->providers);
	c->providers = list;
	if (!list)
		return;
	c->facts.without_sampler = true;
	session->providers = list;
	session->provider_count = n;
}

static bool start_session(struct collection *c)
{
	struct session_config config = {
		.collect = c->no_tasks ? c->settings->without_tasks : c->settings->session,
		.timeout_ms = c->settings->timeout_ms,
		.stop_timeout_ms = c->settings->stop_timeout_ms,
		.source = c->who->source,
	};
	const char **sockets = borrow_sockets(c, &config.socket_count);

	if (c->walk_answers && config.timeout_ms < HEAP_WALK_ANSWER_MS)
		config.timeout_ms = HEAP_WALK_ANSWER_MS;
	config.sockets = sockets;
	if (start_sampling(c))
		leave_out_sampler(c, &config.collect);
	start_measuring(c);
	if (sockets)
		c->session = session_start(c->loop, &config, &session_events, c);
	free(sockets);
	if (c->session)
		return true;
	log_error("cannot start a session: out of memory");
	c->facts.end.why = SESSION_NO_MEMORY;
	finish(c);
	return false;
}

/* --- walks of the heap --- */

static void on_patience(uv_timer_t *timer)
{
	struct collection *c = timer->data;

	c->waited_s += PATIENCE_MS / 1000;
	if (may_say(c))
		log_info("heap walk 1 of %u goes on for %u s; the process stands still",
			 c->settings->heap_walks, c->waited_s);
}

/* The answer comes when the walk has ended, as the runtime does both on one thread. */
static void on_walk_ready(void *ctx, bool answers)
{
	struct collection *c = ctx;

	c->walk_answers = answers;
	if (start_session(c) && answers)
		uv_timer_start(&c->timer, on_patience, PATIENCE_MS, PATIENCE_MS);
}

static void on_walked(void *ctx, unsigned number, const struct heap_walk_facts *facts)
{
	struct collection *c = ctx;

	if (may_say(c))
		heap_walk_say(number, c->settings->heap_walks, facts);
}

static void on_walks_done(void *ctx, enum heap_walk_why why)
{
	struct collection *c = ctx;

	if (why != HEAP_WALK_DONE) {
		collect_progress_clear(c->settings->quiet);
		log_error("%s", heap_walk_describe(why));
		c->facts.heap_failed = true;
	}
	if (c->settings->heap_only && !c->facts.stop_ns)
		collection_stop(c);
}

static const struct heap_walk_events walk_events = { on_walk_ready, on_walked, on_walks_done };

static bool start_walks(struct collection *c)
{
	const struct collect_settings *s = c->settings;
	struct heap_walk_config config = {
		.source = c->who->source,
		.walks = s->heap_walks,
		.apart_ms = HEAP_WALK_APART_MS,
		.timeout_ms = s->timeout_ms,
	};
	const char **sockets = borrow_sockets(c, &config.socket_count);

	if (may_say(c))
		heap_walk_announce(s->heap_walks, "");
	config.sockets = sockets;
	if (sockets)
		c->walk = heap_walk_start(c->loop, &config, &walk_events, c);
	free(sockets);
	if (c->walk)
		return true;
	log_error("cannot walk the heap: out of memory");
	c->facts.end.why = SESSION_NO_MEMORY;
	finish(c);
	return false;
}

/* --- the files --- */

static void on_file_full(void *ctx)
{
	struct collection *c = ctx;

	c->facts.paused = true;
	c->waiting = true;
	if (c->session)
		session_pause(c->session);
}

static void on_file_ready(void *ctx)
{
	struct collection *c = ctx;

	c->waiting = false;
	if (c->session)
		session_resume(c->session);
}

/* Nobody would have the rest: the process shall not go on making it. */
static void on_file_failed(void *ctx, int error)
{
	struct collection *c = ctx;

	collect_progress_clear(c->settings->quiet);
	if (!c->facts.stop_ns && !c->finishing)
		log_error("cannot write the trace: %s; recording stops", strerror(error));
	else
		log_error("cannot write the trace: %s", strerror(error));
	if (!c->finishing)
		collection_stop(c);
}

static void on_stop(void *ctx, enum collect_stop_why why)
{
	struct collection *c = ctx;

	c->facts.stop_event_came |= why == COLLECT_STOP_EVENT;
	if (why != COLLECT_STOP_TAP && may_say(c))
		log_info(why == COLLECT_STOP_EVENT ? "stopping: the stopping event came"
						   : "stopping: --max-size is reached");
	collection_stop(c);
}

static const struct collect_stream_events stream_events = { on_file_full, on_file_ready,
							    on_file_failed, on_stop, on_unnamed };

/*
 * "-" stays what it is.  Names that do not tell one process from the other get a number.  The
 * caller frees it.
 */
static char *expand(const struct collection *c, const char *pattern, size_t number)
{
	const struct trace_name name = { c->who->pid, c->who->name, time(NULL), NULL };
	bool is_stdout = strcmp(pattern, "-") == 0;
	char *path = is_stdout ? strdup("-") : trace_name_expand(pattern, &name);

	if (path && !is_stdout && number > 0 && !strstr(pattern, "%p")) {
		char *numbered = trace_name_numbered(path, (unsigned)number + 1);

		free(path);
		path = numbered;
	}
	if (!path)
		log_error("cannot collect: out of memory");
	return path;
}

static bool open_stream(struct collection *c)
{
	const struct collect_settings *s = c->settings;
	char *path = NULL;

	if (s->output) {
		path = expand(c, s->output, c->number);
		if (!path)
			return false;
	}
	c->stream = collect_stream_open(c->loop, s, path, s->output_is_default, &stream_events, c);
	free(path);
	return c->stream != NULL;
}

/* What was recorded with tasks is gone; now without them. */
static void on_restart(void *ctx, const struct collect_pieces_result *result)
{
	struct collection *c = ctx;
	struct collect_stream *old = c->stream;

	c->restarting = false;
	if (c->finishing || c->facts.stop_ns || !open_stream(c)) {
		/* Stopped in between: the report tells of the two seconds, there is no file. */
		c->stream = old;
		c->finishing = true;
		c->facts.end_ns = uv_hrtime();
		c->facts.end.why = SESSION_CANCELLED;
		on_file_done(c, result);
		return;
	}
	collect_stream_free(old);
	c->facts = (struct collect_facts){ 0 };
	start_session(c);
}

/* Before anything is recorded: a report that cannot be written is no reason to fail at the end. */
static bool open_report(struct collection *c)
{
	const struct collect_settings *s = c->settings;
	bool to_stdout = !s->report || strcmp(s->report, "-") == 0;
	char *path;

	if (s->tap || s->outcome)
		return true;
	if (to_stdout && s->output && strcmp(s->output, "-") == 0)
		return true; /* the trace goes there */
	path = expand(c, s->report ? s->report : "-", c->number);
	if (!path)
		return false;
	c->report = out_open(path, s->force);
	free(path);
	return c->report != NULL;
}

/* --- the whole --- */

static void release(struct collection *c)
{
	collect_stream_free(c->stream);
	free(c->facts.path);
	free(c->providers);
	free(c);
}

struct collection *collection_start(uv_loop_t *loop, const struct collect_settings *settings,
				    const struct collect_subject *who, size_t number,
				    const struct collection_events *events, void *ctx)
{
	struct collection *c = calloc(1, sizeof(*c));

	if (!c) {
		log_error("cannot collect: out of memory");
		return NULL;
	}
	c->loop = loop;
	c->settings = settings;
	c->who = who;
	c->number = number;
	c->events = events;
	c->ctx = ctx;
	if (!open_report(c) || !open_stream(c)) {
		if (c->report)
			out_discard(c->report);
		release(c);
		return NULL;
	}
	uv_timer_init(loop, &c->timer);
	c->timer.data = c;
	if (settings->heap_walks)
		start_walks(c);
	else
		start_session(c);
	return c;
}

void collection_get_state(const struct collection *c, struct collection_state *ret)
{
	const struct nt_stats *stats = collect_stream_stats(c->stream);
	uint64_t objects = 0;
	unsigned walk = c->walk ? heap_walk_progress(c->walk, &objects) : 0;

	*ret = (struct collection_state){
		.started = c->facts.started,
		.stopping = c->facts.stop_ns != 0,
		.ended = c->ended,
		.waiting = c->waiting,
		.start_ns = c->facts.start_ns,
		.stop_ns = c->facts.stop_ns,
		.bytes = stats->bytes,
		.events = stats->events,
		.lost = stats->lost,
		.rundown_bytes = stats->bytes - c->facts.stop_bytes,
		.heap_walk = walk,
		.heap_objects = objects,
	};
}

bool collection_look(struct collection *c, struct an_live *ret)
{
	return c->facts.started && !c->facts.stop_ns && !c->finishing &&
	       collect_stream_live(c->stream, (int64_t)(uv_hrtime() - c->facts.start_ns), ret);
}

const struct collect_subject *collection_borrow_subject(const struct collection *c)
{
	return c->who;
}

int collection_conclude(struct collection *c, const struct analysis_child *child)
{
	int code = collect_conclude(c->settings, c->who, &c->facts,
				    collect_stream_analysis(c->stream), child, c->report);

	release(c);
	return code;
}
