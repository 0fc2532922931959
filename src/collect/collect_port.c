/* SPDX-License-Identifier: MIT */

/*
 * The feed of runtimes that connect to us: to a port that was asked for, or to the private one of a
 * command that we start.
 *
 * Every runtime that connects is told to go on, recorded or not: the variable that brought it here
 * is inherited by whatever its process starts.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/collect/child.h"
#include "src/collect/collect_feed.h"
#include "src/collect/collect_progress.h"
#include "src/collect/port_guard.h"
#include "src/collect/port_server.h"
#include "src/ipc/ipc_once.h"
#include "src/ipc/process_info.h"
#include "src/ipc/process_list.h"

struct port_feed;

/* A runtime that has come. */
struct guest {
	struct port_feed *feed;
	struct port_peer *peer;
	struct ipc_target target;
	struct collect_subject who;
	char *name;
	struct process_info info; /* while it is asked */
	struct guest *next;
};

struct port_feed {
	struct collect_feed feed; /* first, so that one is the other */
	struct collect *run;
	struct port_address own_port;
	const struct port_address *port;
	char *directory; /* of the private port; NULL: a port that was asked for */
	struct port_server *server;
	struct port_guard *guard; /* NULL: nobody who comes waits for us */
	struct child *child;
	struct analysis_child child_end;
	uv_timer_t timer; /* for the first to come; then for the command to end */
	struct guest *guests;
	size_t recorded;
	size_t asking; /* requests under way that use a guest's connection */
	bool child_started, child_ended, stopped, gave_up;
};

static struct port_feed *feed_of(struct collect_feed *f)
{
	return (struct port_feed *)f;
}

/* --- a runtime that is not recorded --- */

static void on_resumed(void *ctx, const struct ipc_reply *reply, const struct ipc_conn_end *end)
{
	struct port_feed *f = ctx;

	(void)reply;
	(void)end;
	f->asking--;
	collect_settle(f->run);
}

static void let_go_on(struct port_feed *f, struct port_peer *p)
{
	uint8_t request[IPC_HEADER_BYTES];
	size_t n = ipc_put_plain(request, sizeof(request), IPC_SET_PROCESS, IPC_RESUME_RUNTIME);
	const struct collect_settings *s = collect_get_settings(f->run);

	if (!s->resume)
		return;
	if (ipc_once_start(collect_loop(f->run), NULL, &p->source, request, n, s->timeout_ms,
			   on_resumed, f))
		f->asking++;
}

/* --- a runtime that is --- */

static bool is_wanted(const struct port_feed *f)
{
	const struct collect_plan *plan = collect_get_plan(f->run);
	const struct collect_settings *s = collect_get_settings(f->run);
	bool one = (plan->command && !plan->children) || (s->output && strcmp(s->output, "-") == 0);

	return !f->stopped && !collect_is_stopping(f->run) && (f->recorded == 0 || !one);
}

static void record_guest(struct guest *g)
{
	struct port_feed *f = g->feed;

	if (!g->name)
		g->name = strdup("process");
	g->who.name = g->name;
	g->who.source = &g->peer->source;
	if (!g->name || !collect_add(f->run, &g->who)) {
		let_go_on(f, g->peer);
		return;
	}
	f->recorded++;
	uv_timer_stop(&f->timer);
}

static void on_told(void *ctx)
{
	struct guest *g = ctx;

	g->feed->asking--;
	if (g->info.entry_assembly)
		g->name = strdup(g->info.entry_assembly);
	else if (g->info.command_line)
		g->name = process_guess_name(g->info.command_line, "process");
	process_info_done(&g->info);
	if (is_wanted(g->feed))
		record_guest(g);
	else
		let_go_on(g->feed, g->peer);
	collect_settle(g->feed->run);
}

/* What /proc says of it; nothing, where it cannot be seen. */
static bool look_up(struct guest *g)
{
	char *line;

	g->target.pid = g->target.ns_pid = g->peer->pid;
	if (g->peer->pid == 0 || !proc_read_stat(PROC_ROOT, g->peer->pid, &g->target.stat))
		return false;
	g->target.uid_known = proc_read_uid(PROC_ROOT, g->peer->pid, &g->target.uid);
	line = proc_read_command_line(PROC_ROOT, g->peer->pid);
	g->name = process_guess_name(line, g->target.stat.comm);
	free(line);
	g->who.target = &g->target;
	return true;
}

static void decide(struct guest *g)
{
	struct port_feed *f = g->feed;
	uint64_t timeout_ms = collect_get_settings(f->run)->timeout_ms;

	if (!is_wanted(f)) {
		let_go_on(f, g->peer);
	} else if (!look_up(g) && process_info_ask_from(collect_loop(f->run), &g->peer->source,
							timeout_ms, &g->info, on_told, g)) {
		f->asking++;
	} else {
		record_guest(g);
	}
}

static void on_alone(void *ctx, const struct ipc_reply *reply, const struct ipc_conn_end *end)
{
	struct guest *g = ctx;

	(void)reply; /* .NET 5 does not know how to */
	(void)end;
	g->feed->asking--;
	decide(g);
	collect_settle(g->feed->run);
}

/*
 * What a runtime in our command starts later shall not come here and wait: the way here is taken
 * out of its environment, as long as it has not started.
 */
static bool forget_us(struct guest *g)
{
	uint8_t request[IPC_MAX_MESSAGE];
	struct port_feed *f = g->feed;
	const struct collect_plan *plan = collect_get_plan(f->run);
	const char *before = getenv(CHILD_PORT_VARIABLE);
	size_t n;

	if (!plan->command || plan->children || !collect_get_settings(f->run)->resume)
		return false;
	n = ipc_put_set_environment(request, sizeof(request), CHILD_PORT_VARIABLE,
				    before ? before : "");
	if (n == 0 || !ipc_once_start(collect_loop(f->run), NULL, &g->peer->source, request, n,
				      collect_get_settings(f->run)->timeout_ms, on_alone, g))
		return false;
	f->asking++;
	return true;
}

static void on_peer(void *ctx, struct port_peer *p)
{
	struct port_feed *f = ctx;
	struct guest *g = calloc(1, sizeof(*g));

	if (!g) {
		let_go_on(f, p);
		return;
	}
	g->feed = f;
	g->peer = p;
	g->next = f->guests;
	f->guests = g;
	g->who.pid = p->pid;
	if (p->pid == 0 && p->told_pid <= INT32_MAX)
		g->who.pid = (int32_t)p->told_pid;
	if (!forget_us(g))
		decide(g);
}

static const struct port_server_events server_events = { .peer = on_peer };

/* --- the command --- */

static void end_child(struct port_feed *f)
{
	if (!f->child || f->child_ended)
		return;
	f->child_end.ended_by_us = true;
	child_end(f->child);
}

static void say_child(const struct port_feed *f)
{
	const struct analysis_child *end = &f->child_end;
	const char *name = collect_get_plan(f->run)->command[0];

	collect_progress_clear(collect_get_settings(f->run)->quiet);
	if (f->recorded == 0 && !f->gave_up && !f->stopped) {
		if (end->exited)
			log_error("cannot trace '%s': it ended with exit code %d, and no .NET "
				  "runtime in it connected",
				  name, end->exit_code);
		else
			log_error("cannot trace '%s': it was killed by signal %d (%s), and no .NET "
				  "runtime in it connected",
				  name, end->signal, strsignal(end->signal));
		log_advice("it must start .NET 5 or newer; older ones are traced with -p");
	} else if (end->ended_by_us) {
		return;
	} else if (!end->exited) {
		log_info("'%s' was killed by signal %d (%s)", name, end->signal,
			 strsignal(end->signal));
	} else if (end->exit_code != 0) {
		log_info("'%s' ended with exit code %d", name, end->exit_code);
	}
}

static void on_child_ended(void *ctx, int exit_code, int signal)
{
	struct port_feed *f = ctx;

	f->child_ended = true;
	f->child_end.exited = signal == 0;
	f->child_end.exit_code = exit_code;
	f->child_end.signal = signal;
	uv_timer_stop(&f->timer);
	say_child(f);
	if (f->recorded == 0 && !f->stopped)
		collect_failed(f->run, EXIT_UNREACHABLE);
	collect_settle(f->run);
}

static bool start_child(struct port_feed *f)
{
	const struct collect_plan *plan = collect_get_plan(f->run);
	const struct collect_settings *s = collect_get_settings(f->run);
	const struct child_config config = {
		.argv = plan->command,
		.show_io = plan->show_child_io,
		.output_to_stderr =
			s->format == REPORT_JSON || (s->output && strcmp(s->output, "-") == 0),
	};
	int error;

	f->child = child_start(collect_loop(f->run), &config, f->port, on_child_ended, f, &error);
	if (!f->child) {
		log_error("cannot start '%s': %s", plan->command[0], uv_strerror(error));
		return false;
	}
	f->child_started = true;
	if (f->guard)
		port_guard_watch(f->guard, child_pid(f->child));
	f->child_end.pid = child_pid(f->child);
	return true;
}

/* --- time --- */

static void on_nobody_came(uv_timer_t *timer)
{
	struct port_feed *f = timer->data;
	const struct collect_plan *plan = collect_get_plan(f->run);

	f->gave_up = true;
	collect_failed(f->run, EXIT_UNREACHABLE);
	if (plan->command) {
		log_error("cannot trace '%s': no .NET runtime in it connected in time",
			  plan->command[0]);
		log_advice("it must start .NET 5 or newer; --timeout waits longer");
		end_child(f);
	} else {
		log_error("no runtime connected to '%s' in time", port_address_name(f->port));
	}
	collect_settle(f->run);
}

static void on_command_lasts(uv_timer_t *timer)
{
	end_child(timer->data);
}

static void start_waiting(struct port_feed *f)
{
	uint64_t wait_ms = collect_get_plan(f->run)->wait_ms;

	if (wait_ms)
		uv_timer_start(&f->timer, on_nobody_came, wait_ms, 0);
}

/* --- as a feed --- */

static void feed_stop(struct collect_feed *feed)
{
	struct port_feed *f = feed_of(feed);

	f->stopped = true;
	if (collect_active(f->run) == 0)
		end_child(f);
}

/*
 * A recording that we have ended ends the command.  One that ended by itself waits for the
 * command's end, to tell how it went, as long as it would have recorded.
 */
static void feed_ended(struct collect_feed *feed, struct collection *item)
{
	struct port_feed *f = feed_of(feed);
	uint64_t duration_ms = collect_get_settings(f->run)->duration_ms;
	struct collection_state s;
	uint64_t spent_ms;

	collection_get_state(item, &s);
	if (collect_active(f->run) > 0 || !f->child || f->child_ended)
		return;
	spent_ms = s.started ? (uv_hrtime() - s.start_ns) / 1000000 : 0;
	if (s.stopping || f->stopped || !s.started)
		end_child(f);
	else if (duration_ms)
		uv_timer_start(&f->timer, on_command_lasts,
			       duration_ms > spent_ms ? duration_ms - spent_ms : 0, 0);
}

static bool feed_busy(const struct collect_feed *feed)
{
	const struct port_feed *f = (const struct port_feed *)feed;

	if (f->asking > 0)
		return true;
	if (f->child_started)
		return !f->child_ended;
	return f->server && f->recorded == 0 && !f->stopped && !f->gave_up;
}

static const struct analysis_child *feed_child(const struct collect_feed *feed)
{
	const struct port_feed *f = (const struct port_feed *)feed;

	return f->child_ended ? &f->child_end : NULL;
}

static void feed_close(struct collect_feed *feed)
{
	struct port_feed *f = feed_of(feed);

	if (f->server)
		port_server_close(f->server, NULL, NULL);
	if (f->child)
		child_close(f->child);
	uv_close((uv_handle_t *)&f->timer, NULL);
}

static void feed_free(struct collect_feed *feed)
{
	struct port_feed *f = feed_of(feed);

	while (f->guests) {
		struct guest *g = f->guests;

		f->guests = g->next;
		free(g->name);
		free(g);
	}
	port_guard_end(f->guard);
	if (f->directory)
		child_remove_port(&f->own_port, f->directory);
	free(f);
}

static const struct collect_feed feed_functions = { feed_stop,	feed_ended, feed_busy,
						    feed_child, feed_close, feed_free };

/* --- opening --- */

static void say_port(const struct port_feed *f)
{
	const char *name = port_address_name(f->port);

	if (collect_get_settings(f->run)->quiet)
		return;
	log_info("waiting for runtimes at %s", name);
	log_info("  start them with DOTNET_DiagnosticPorts='%s,%s'", name,
		 f->port->suspend ? "suspend" : "nosuspend");
}

/* Should we be killed, nobody is left waiting. */
static void start_guard(struct port_feed *f)
{
	int error;

	if (!collect_get_settings(f->run)->resume || (!f->directory && !f->port->suspend))
		return;
	f->guard = port_guard_start(port_server_fd(f->server), f->port, f->directory, &error);
	if (!f->guard)
		log_warn("should this program be killed, processes that wait for it go on waiting: "
			 "%s",
			 uv_strerror(error));
}

static bool open_port(struct port_feed *f)
{
	const struct collect_plan *plan = collect_get_plan(f->run);
	int error;

	if (plan->command && !child_make_port(&f->own_port, &f->directory))
		return false;
	f->port = plan->command ? &f->own_port : plan->port;
	f->server = port_server_open(collect_loop(f->run), f->port, &server_events, f, &error);
	if (!f->server) {
		log_error("cannot listen at '%s': %s", port_address_name(f->port),
			  error == -EADDRINUSE ? "another program does, or a file is in the way"
					       : uv_strerror(error));
		return false;
	}
	start_guard(f);
	return true;
}

struct collect_feed *collect_port_open(struct collect *c)
{
	struct port_feed *f = calloc(1, sizeof(*f));

	if (!f) {
		log_error("cannot collect: out of memory");
		return NULL;
	}
	f->feed = feed_functions;
	f->run = c;
	uv_timer_init(collect_loop(c), &f->timer);
	f->timer.data = f;
	if (open_port(f) && (!collect_get_plan(c)->command || start_child(f))) {
		if (!f->child)
			say_port(f);
		start_waiting(f);
	} else {
		f->gave_up = true;
		collect_failed(c, EXIT_FAILED);
	}
	return &f->feed;
}
