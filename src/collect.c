/* SPDX-License-Identifier: MIT */
#include "src/collect.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "src/collect_end.h"
#include "src/collect_progress.h"
#include "src/command.h"
#include "src/log.h"
#include "src/session.h"
#include "src/trace_file.h"
#include "src/trace_name.h"

enum {
	SIGNALS = 3,
	PROGRESS_MS = 500,
	SAME_MS = 250, /* timeout(1) signals us and then our group: that is one wish, not two */
};

struct collect {
	const struct collect_settings *settings;
	uv_loop_t loop;
	uv_signal_t signals[SIGNALS];
	uv_timer_t duration, progress;
	struct session *session;
	struct trace_file *file;
	struct out *report;
	struct analysis *analysis;
	struct nt_decoder *decoder;
	uint64_t interrupt_ns; /* of the first signal; 0 none */
	bool finishing;
	struct collect_facts facts;
};

/* --- ending --- */

static void close_handles(struct collect *c)
{
	for (size_t i = 0; i < SIGNALS; i++)
		uv_close((uv_handle_t *)&c->signals[i], NULL);
	uv_close((uv_handle_t *)&c->duration, NULL);
	uv_close((uv_handle_t *)&c->progress, NULL);
}

static void on_file_done(void *ctx, const struct trace_file_result *result)
{
	struct collect *c = ctx;

	c->file = NULL;
	c->facts.file = *result;
	c->facts.file.path = NULL;
	if (result->path) {
		c->facts.path = strdup(result->path);
		c->facts.file.path = c->facts.path;
	}
	close_handles(c);
}

/* The stream is over, one way or the other; the loop ends when the file is complete. */
static void finish(struct collect *c)
{
	if (c->finishing)
		return;
	c->finishing = true;
	c->facts.end_ns = uv_hrtime();
	uv_timer_stop(&c->duration);
	uv_timer_stop(&c->progress);
	collect_progress_clear(c->settings->quiet);
	if (c->session)
		session_close(c->session, NULL, NULL);
	c->session = NULL;
	if (c->file)
		trace_file_finish(c->file, on_file_done, c);
	else
		close_handles(c);
}

static void stop(struct collect *c)
{
	if (c->facts.stop_ns == 0)
		c->facts.stop_ns = uv_hrtime();
	if (c->file)
		trace_file_never_pause(c->file);
	if (c->session)
		session_stop(c->session);
}

/* The first asks for a clean stop; the next takes what there is; one more is the system's. */
static void on_signal(uv_signal_t *signal, int number)
{
	struct collect *c = signal->data;

	uint64_t now = uv_hrtime();

	(void)number;
	if (c->interrupt_ns == 0) {
		c->interrupt_ns = now;
		collect_progress_clear(c->settings->quiet);
		if (!c->settings->quiet && c->facts.started)
			log_info("stopping; once more to stop at once, without method names");
		stop(c);
		return;
	}
	if (now - c->interrupt_ns < SAME_MS * UINT64_C(1000000))
		return;
	c->facts.forced = true;
	for (size_t i = 0; i < SIGNALS; i++)
		uv_signal_stop(&c->signals[i]);
	finish(c);
}

static void on_duration(uv_timer_t *timer)
{
	stop(timer->data);
}

static void on_progress(uv_timer_t *timer)
{
	struct collect *c = timer->data;
	const struct nt_stats *stats = nt_decoder_borrow_stats(c->decoder);
	uint64_t now = uv_hrtime();

	collect_progress_show(&(struct collect_progress){
		.elapsed_ns = (c->facts.stop_ns ? c->facts.stop_ns : now) - c->facts.start_ns,
		.duration_ms = c->settings->duration_ms,
		.bytes = stats->bytes,
		.events = stats->events,
		.lost = stats->lost,
		.stopping = c->facts.stop_ns != 0,
		.rundown_bytes = stats->bytes - c->facts.stop_bytes,
	});
}

/* --- the session --- */

static void on_started(void *ctx, unsigned version, unsigned gave_up)
{
	struct collect *c = ctx;

	(void)version;
	c->facts.started = true;
	c->facts.start_ns = uv_hrtime();
	collect_say_gave_up(gave_up);
	uv_update_time(&c->loop);
	if (c->settings->duration_ms)
		uv_timer_start(&c->duration, on_duration, c->settings->duration_ms, 0);
	if (collect_progress_wanted(c->settings->quiet))
		uv_timer_start(&c->progress, on_progress, PROGRESS_MS, PROGRESS_MS);
}

static void on_data(void *ctx, const uint8_t *bytes, size_t len)
{
	struct collect *c = ctx;
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
	struct collect *c = ctx;

	c->facts.end = *end;
	finish(c);
}

static const struct session_events session_events = { on_started, on_data, on_session_end };

/* --- the file --- */

static void on_file_full(void *ctx)
{
	struct collect *c = ctx;

	c->facts.paused = true;
	if (c->session)
		session_pause(c->session);
}

static void on_file_ready(void *ctx)
{
	struct collect *c = ctx;

	if (c->session)
		session_resume(c->session);
}

static void on_file_failed(void *ctx, int error)
{
	struct collect *c = ctx;

	collect_progress_clear(c->settings->quiet);
	log_error("cannot write the trace: %s", strerror(error));
	/* Whoever read our standard output is gone, and with it the reason to go on. */
	if (strcmp(c->settings->output, "-") == 0)
		stop(c);
	else if (!c->finishing)
		log_info("  analysing goes on; the file ends here");
}

static const struct trace_file_events file_events = { on_file_full, on_file_ready, on_file_failed };

static bool open_file(struct collect *c)
{
	const struct collect_settings *s = c->settings;
	const struct trace_name name = { s->target->pid, s->process_name, time(NULL), NULL };
	struct trace_file_config config = { .force = s->force, .renumber = s->output_is_default };
	char *path;

	if (!s->output)
		return true;
	path = strcmp(s->output, "-") == 0 ? strdup("-") : trace_name_expand(s->output, &name);
	if (!path) {
		log_error("cannot write the trace: out of memory");
		return false;
	}
	config.path = path;
	config.compress = trace_name_is_compressed(path);
	c->file = trace_file_open(&c->loop, &config, &file_events, c);
	free(path);
	return c->file != NULL;
}

/* --- the whole --- */

static void start_signals(struct collect *c)
{
	static const int numbers[SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; i < SIGNALS; i++) {
		struct sigaction old;

		uv_signal_init(&c->loop, &c->signals[i]);
		c->signals[i].data = c;
		/* nohup stays nohup. */
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN &&
		    numbers[i] == SIGHUP)
			continue;
		uv_signal_start(&c->signals[i], on_signal, numbers[i]);
	}
}

static bool start_session(struct collect *c)
{
	const struct ipc_target *t = c->settings->target;
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
	c->session = session_start(&c->loop, &config, &session_events, c);
	free(sockets);
	return c->session != NULL;
}

static int run_loop(struct collect *c)
{
	start_signals(c);
	uv_timer_init(&c->loop, &c->duration);
	uv_timer_init(&c->loop, &c->progress);
	c->duration.data = c;
	c->progress.data = c;
	if (!start_session(c)) {
		log_error("cannot start a session: out of memory");
		c->facts.end.why = SESSION_NO_MEMORY;
		finish(c);
	}
	uv_run(&c->loop, UV_RUN_DEFAULT);
	return collect_conclude(c->settings, &c->facts, c->analysis, c->report);
}

/* Before anything is recorded: a report that cannot be written is no reason to fail at the end. */
static bool open_report(struct collect *c)
{
	const struct collect_settings *s = c->settings;
	bool to_stdout = !s->report || strcmp(s->report, "-") == 0;

	if (to_stdout && s->output && strcmp(s->output, "-") == 0)
		return true; /* the trace goes there */
	c->report = out_open(s->report, s->force);
	return c->report != NULL;
}

static int record(struct collect *c)
{
	c->analysis = analysis_new(&c->settings->options, NULL, 0);
	if (!c->analysis) {
		log_error("cannot collect: out of memory");
		return EXIT_FAILED;
	}
	c->decoder = analysis_decoder(c->analysis);
	if (!open_report(c))
		return EXIT_FAILED;
	if (!open_file(c)) {
		if (c->report)
			out_discard(c->report);
		return EXIT_FAILED;
	}
	return run_loop(c);
}

int collect_run(const struct collect_settings *s)
{
	struct collect *c = calloc(1, sizeof(*c));
	int code;

	if (!c || uv_loop_init(&c->loop) != 0) {
		log_error("cannot collect: out of memory");
		free(c);
		return EXIT_FAILED;
	}
	c->settings = s;
	code = record(c);
	uv_loop_close(&c->loop);
	analysis_free(c->analysis);
	free(c->facts.path);
	free(c);
	return code;
}
