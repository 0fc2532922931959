/* SPDX-License-Identifier: MIT */
#include "src/collection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/collect_end.h"
#include "src/collect_progress.h"
#include "src/command.h"
#include "src/log.h"
#include "src/session.h"
#include "src/trace_file.h"
#include "src/trace_name.h"

struct collection {
	const struct collect_settings *settings;
	const struct collect_subject *who;
	const struct collection_events *events;
	void *ctx;
	uv_loop_t *loop;
	uv_timer_t duration;
	struct session *session;
	struct trace_file *file;
	struct out *report;
	struct analysis *analysis;
	struct nt_decoder *decoder;
	bool finishing, ended;
	struct collect_facts facts;
};

/* --- ending --- */

static void on_timer_closed(uv_handle_t *h)
{
	struct collection *c = h->data;

	c->ended = true;
	c->events->ended(c->ctx, c);
}

static void on_file_done(void *ctx, const struct trace_file_result *result)
{
	struct collection *c = ctx;

	c->file = NULL;
	c->facts.file = *result;
	c->facts.file.path = NULL;
	if (result->path) {
		c->facts.path = strdup(result->path);
		c->facts.file.path = c->facts.path;
	}
	uv_close((uv_handle_t *)&c->duration, on_timer_closed);
}

/* The stream is over, one way or the other; all is over when the file is complete. */
static void finish(struct collection *c)
{
	if (c->finishing)
		return;
	c->finishing = true;
	c->facts.end_ns = uv_hrtime();
	uv_timer_stop(&c->duration);
	if (c->session)
		session_close(c->session, NULL, NULL);
	c->session = NULL;
	if (c->file)
		trace_file_finish(c->file, on_file_done, c);
	else
		uv_close((uv_handle_t *)&c->duration, on_timer_closed);
}

void collection_stop(struct collection *c)
{
	if (c->facts.stop_ns == 0)
		c->facts.stop_ns = uv_hrtime();
	if (c->file)
		trace_file_never_pause(c->file);
	if (c->session)
		session_stop(c->session);
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

/* --- the session --- */

static void on_started(void *ctx, unsigned version, unsigned gave_up)
{
	struct collection *c = ctx;

	(void)version;
	c->facts.started = true;
	c->facts.start_ns = uv_hrtime();
	collect_say_gave_up(gave_up);
	uv_update_time(c->loop);
	if (c->settings->duration_ms)
		uv_timer_start(&c->duration, on_duration, c->settings->duration_ms, 0);
	c->events->started(c->ctx, c);
}

static void on_data(void *ctx, const uint8_t *bytes, size_t len)
{
	struct collection *c = ctx;
	const struct nt_stats *stats = nt_decoder_borrow_stats(c->decoder);
	enum nt_status st = nt_decoder_push(c->decoder, bytes, len);

	c->facts.stream_bytes += len;
	if (c->facts.stop_ns == 0)
		c->facts.stop_bytes = c->facts.stream_bytes;
	/* A stream that we cannot read is kept all the same, just as it came. */
	if (c->file)
		trace_file_write(c->file, bytes, len,
				 st == NT_OK ? stats->whole_bytes : c->facts.stream_bytes);
}

static void on_session_end(void *ctx, const struct session_end *end)
{
	struct collection *c = ctx;

	c->facts.end = *end;
	finish(c);
}

static const struct session_events session_events = { on_started, on_data, on_session_end };

static bool start_session(struct collection *c)
{
	const struct ipc_target *t = c->who->target;
	struct session_config config = {
		.collect = c->settings->session,
		.timeout_ms = c->settings->timeout_ms,
		.stop_timeout_ms = c->settings->stop_timeout_ms,
		.socket_count = t->socket_count,
	};
	const char **sockets = calloc(t->socket_count, sizeof(*sockets));

	if (!sockets)
		return false;
	for (size_t i = 0; i < t->socket_count; i++)
		sockets[i] = t->sockets[i].path;
	config.sockets = sockets;
	c->session = session_start(c->loop, &config, &session_events, c);
	free(sockets);
	return c->session != NULL;
}

/* --- the files --- */

static void on_file_full(void *ctx)
{
	struct collection *c = ctx;

	c->facts.paused = true;
	if (c->session)
		session_pause(c->session);
}

static void on_file_ready(void *ctx)
{
	struct collection *c = ctx;

	if (c->session)
		session_resume(c->session);
}

static void on_file_failed(void *ctx, int error)
{
	struct collection *c = ctx;

	collect_progress_clear(c->settings->quiet);
	log_error("cannot write the trace: %s", strerror(error));
	/* Whoever read our standard output is gone, and with it the reason to go on. */
	if (strcmp(c->settings->output, "-") == 0)
		collection_stop(c);
	else if (!c->finishing)
		log_info("  analysing goes on; the file ends here");
}

static const struct trace_file_events file_events = { on_file_full, on_file_ready, on_file_failed };

/* "-" stays what it is; the caller frees it. */
static char *expand(const struct collection *c, const char *pattern)
{
	const struct trace_name name = { c->who->pid, c->who->name, time(NULL), NULL };
	char *path = strcmp(pattern, "-") == 0 ? strdup("-") : trace_name_expand(pattern, &name);

	if (!path)
		log_error("cannot collect: out of memory");
	return path;
}

static bool open_file(struct collection *c, size_t number)
{
	const struct collect_settings *s = c->settings;
	struct trace_file_config config = {
		.force = s->force,
		.renumber = s->output_is_default || number > 0,
	};
	char *path;

	if (!s->output)
		return true;
	path = expand(c, s->output);
	if (!path)
		return false;
	config.path = path;
	config.compress = trace_name_is_compressed(path);
	c->file = trace_file_open(c->loop, &config, &file_events, c);
	free(path);
	return c->file != NULL;
}

/* Before anything is recorded: a report that cannot be written is no reason to fail at the end. */
static bool open_report(struct collection *c)
{
	const struct collect_settings *s = c->settings;
	bool to_stdout = !s->report || strcmp(s->report, "-") == 0;

	if (to_stdout && s->output && strcmp(s->output, "-") == 0)
		return true; /* the trace goes there */
	c->report = out_open(s->report, s->force);
	return c->report != NULL;
}

/* --- the whole --- */

static void release(struct collection *c)
{
	analysis_free(c->analysis);
	free(c->facts.path);
	free(c);
}

struct collection *collection_start(uv_loop_t *loop, const struct collect_settings *settings,
				    const struct collect_subject *who, size_t number,
				    const struct collection_events *events, void *ctx)
{
	struct collection *c = calloc(1, sizeof(*c));

	if (c)
		c->analysis = analysis_new(&settings->options, NULL, 0);
	if (!c || !c->analysis) {
		log_error("cannot collect: out of memory");
		free(c);
		return NULL;
	}
	c->loop = loop;
	c->settings = settings;
	c->who = who;
	c->events = events;
	c->ctx = ctx;
	c->decoder = analysis_decoder(c->analysis);
	if (!open_report(c) || !open_file(c, number)) {
		if (c->report)
			out_discard(c->report);
		release(c);
		return NULL;
	}
	uv_timer_init(loop, &c->duration);
	c->duration.data = c;
	if (!start_session(c)) {
		log_error("cannot start a session: out of memory");
		c->facts.end.why = SESSION_NO_MEMORY;
		finish(c);
	}
	return c;
}

void collection_get_state(const struct collection *c, struct collection_state *ret)
{
	const struct nt_stats *stats = nt_decoder_borrow_stats(c->decoder);

	*ret = (struct collection_state){
		.started = c->facts.started,
		.stopping = c->facts.stop_ns != 0,
		.ended = c->ended,
		.start_ns = c->facts.start_ns,
		.stop_ns = c->facts.stop_ns,
		.bytes = stats->bytes,
		.events = stats->events,
		.lost = stats->lost,
		.rundown_bytes = stats->bytes - c->facts.stop_bytes,
	};
}

const struct collect_subject *collection_borrow_subject(const struct collection *c)
{
	return c->who;
}

int collection_conclude(struct collection *c)
{
	int code = collect_conclude(c->settings, c->who, &c->facts, c->analysis, c->report);

	release(c);
	return code;
}
