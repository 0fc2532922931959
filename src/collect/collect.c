/* SPDX-License-Identifier: MIT */
#include "src/collect/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/base/stop_key.h"
#include "src/collect/collect_feed.h"
#include "src/collect/collect_progress.h"
#include "src/collect/collection.h"

enum {
	SIGNALS = 3,
	LOOK_MS = 1000, /* for what should be said at once */
	SAME_MS = 250, /* timeout(1) signals us and then our group: that is one wish, not two */
	NEEDED_DESCRIPTORS = 16,
};

enum { MAX_FEEDS = 2, MAX_ITEMS = 1024 /* at once and in all: each has a file open */ };

struct collect {
	const struct collect_settings *settings;
	const struct collect_plan *plan;
	uv_loop_t loop;
	uv_signal_t signals[SIGNALS];
	uv_timer_t progress, look;
	struct an_live live; /* the newest; its id NULL: none yet */
	uint64_t last_ns, last_events; /* of the progress line before */
	struct stop_key *key; /* NULL: there is no terminal to hit it on */
	struct collect_feed *feeds[MAX_FEEDS];
	size_t feed_count;
	struct collection *items[MAX_ITEMS];
	size_t count, ended;
	bool any_started, stopping, over;
	uint64_t interrupt_ns; /* of the first signal; 0 none */
	int code; /* the worst so far */
};

/* The code that says most: a failure more than a condition, and that more than a partial result. */
static int worse(int a, int b)
{
	static const int rank[] = {
		[EXIT_DONE] = 0,  [EXIT_PARTIAL] = 1,	  [EXIT_CONDITION] = 2,
		[EXIT_USAGE] = 3, [EXIT_UNREACHABLE] = 4, [EXIT_FAILED] = 5,
	};

	return rank[a] >= rank[b] ? a : b;
}

static const int signal_numbers[SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

/* --- ending --- */

/* Reports may block on their reader: none is printed while a stream has still to be read. */
void collect_settle(struct collect *c)
{
	if (c->over || c->ended < c->count)
		return;
	for (size_t i = 0; i < c->feed_count; i++)
		if (c->feeds[i]->busy(c->feeds[i]))
			return;
	c->over = true;
	uv_timer_stop(&c->progress);
	uv_timer_stop(&c->look);
	collect_progress_clear(c->settings->quiet);
	for (size_t i = 0; i < SIGNALS; i++)
		uv_close((uv_handle_t *)&c->signals[i], NULL);
	uv_close((uv_handle_t *)&c->progress, NULL);
	uv_close((uv_handle_t *)&c->look, NULL);
	stop_key_end(c->key);
	c->key = NULL;
	for (size_t i = 0; i < c->feed_count; i++)
		c->feeds[i]->close(c->feeds[i]);
}

static void on_ended(void *ctx, struct collection *item)
{
	struct collect *c = ctx;

	c->ended++;
	for (size_t i = 0; i < c->feed_count; i++)
		if (c->feeds[i]->ended)
			c->feeds[i]->ended(c->feeds[i], item);
	collect_settle(c);
}

static void stop_all(struct collect *c)
{
	c->stopping = true;
	collect_progress_clear(c->settings->quiet);
	if (!c->settings->quiet && c->any_started)
		log_info("stopping; Ctrl-C stops at once, without method names");
	for (size_t i = 0; i < c->feed_count; i++)
		c->feeds[i]->stop(c->feeds[i]);
	for (size_t i = 0; i < c->count; i++)
		collection_stop(c->items[i]);
	collect_settle(c);
}

/* Enter or q: as the first signal, but hit twice it means no more. */
static void on_key(void *ctx)
{
	struct collect *c = ctx;

	if (c->interrupt_ns == 0) {
		c->interrupt_ns = uv_hrtime();
		stop_all(c);
	}
}

/* The first asks for a clean stop; the next takes what there is; one more is the system's. */
static void on_signal(uv_signal_t *signal, int number)
{
	struct collect *c = signal->data;
	uint64_t now = uv_hrtime();

	(void)number;
	if (c->interrupt_ns == 0) {
		c->interrupt_ns = now;
		stop_all(c);
		return;
	}
	if (now - c->interrupt_ns < SAME_MS * UINT64_C(1000000))
		return;
	for (size_t i = 0; i < SIGNALS; i++)
		uv_signal_stop(&c->signals[i]);
	stop_key_end(c->key); /* the next one may end us here and now */
	c->key = NULL;
	for (size_t i = 0; i < c->count; i++)
		collection_abort(c->items[i]);
}

static void start_signals(struct collect *c)
{
	for (size_t i = 0; i < SIGNALS; i++) {
		struct sigaction old;

		uv_signal_init(&c->loop, &c->signals[i]);
		c->signals[i].data = c;
		/* nohup stays nohup. */
		if (sigaction(signal_numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN &&
		    signal_numbers[i] == SIGHUP)
			continue;
		uv_signal_start(&c->signals[i], on_signal, signal_numbers[i]);
	}
}

/* --- running --- */

static void on_progress(uv_timer_t *timer)
{
	struct collect *c = timer->data;
	struct collect_progress p = {
		.duration_ms = c->settings->duration_ms,
		.stopping = true,
		.keys = c->key != NULL,
		.live = c->live.id ? c->live.text : NULL,
	};
	uint64_t now = uv_hrtime();

	for (size_t i = 0; i < c->count; i++) {
		struct collection_state s;
		uint64_t elapsed;

		collection_get_state(c->items[i], &s);
		if (!s.started)
			continue;
		elapsed = (s.stop_ns ? s.stop_ns : now) - s.start_ns;
		if (elapsed > p.elapsed_ns)
			p.elapsed_ns = elapsed;
		p.bytes += s.bytes;
		p.events += s.events;
		p.lost += s.lost;
		p.waiting = p.waiting || s.waiting;
		p.stopping = p.stopping && (s.stopping || s.ended);
		if (s.heap_walk) {
			p.heap_walk = s.heap_walk;
			p.heap_objects += s.heap_objects;
		}
		p.rundown_bytes += s.stopping ? s.rundown_bytes : 0;
	}
	if (p.events > c->last_events && now > c->last_ns)
		p.events_per_s = (uint64_t)((double)(p.events - c->last_events) * 1e9 /
					    (double)(now - c->last_ns));
	c->last_events = p.events;
	c->last_ns = now;
	collect_progress_show(&p);
}

/* On the progress line, or once as a line where there is none. */
static void on_look(uv_timer_t *timer)
{
	struct collect *c = timer->data;
	struct an_live found = { 0 };
	bool first = !c->live.id;

	for (size_t i = 0; i < c->count && !found.id; i++)
		if (!collection_look(c->items[i], &found))
			found.id = NULL;
	if (!found.id)
		return;
	c->live = found;
	if (first && !collect_progress_in_place())
		log_warn("%s [%s]", found.text, found.id);
}

static void on_started(void *ctx, struct collection *item)
{
	struct collect *c = ctx;

	unsigned ms = collect_progress_ms(c->settings->quiet);

	(void)item;
	if (!c->any_started && ms) {
		uv_timer_start(&c->progress, on_progress, ms, ms);
		uv_timer_start(&c->look, on_look, LOOK_MS, LOOK_MS);
	}
	if (!c->any_started)
		c->last_ns = uv_hrtime();
	c->any_started = true;
}

static const struct collection_events collection_events = { on_started, on_ended };

/* --- what feeds may do --- */

uv_loop_t *collect_loop(struct collect *c)
{
	return &c->loop;
}

const struct collect_settings *collect_get_settings(const struct collect *c)
{
	return c->settings;
}

const struct collect_plan *collect_get_plan(const struct collect *c)
{
	return c->plan;
}

size_t collect_active(const struct collect *c)
{
	return c->count - c->ended;
}

bool collect_is_stopping(const struct collect *c)
{
	return c->stopping;
}

void collect_failed(struct collect *c, int code)
{
	c->code = worse(c->code, code);
}

bool collect_add(struct collect *c, const struct collect_subject *who)
{
	struct collection *item;

	if (c->stopping || c->over)
		return false;
	if (c->count == MAX_ITEMS) {
		log_warn("process %d is not recorded: %d are the most for one run", (int)who->pid,
			 MAX_ITEMS);
		return false;
	}
	item = collection_start(&c->loop, c->settings, who, c->count, &collection_events, c);
	if (item)
		c->items[c->count++] = item;
	else
		collect_failed(c, EXIT_FAILED);
	return item != NULL;
}

/* --- the whole --- */

static bool open_feeds(struct collect *c)
{
	const struct collect_plan *p = c->plan;
	struct collect_feed *(*const open[])(struct collect *) = {
		p->port || p->command ? collect_port_open : NULL,
		p->tree || p->wait_for ? collect_watch_open : NULL,
	};

	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		struct collect_feed *f = open[i] ? open[i](c) : NULL;

		if (open[i] && !f)
			return false;
		if (f)
			c->feeds[c->feed_count++] = f;
	}
	return true;
}

static const struct analysis_child *find_child(const struct collect *c)
{
	const struct analysis_child *child = NULL;

	for (size_t i = 0; i < c->feed_count && !child; i++)
		if (c->feeds[i]->child)
			child = c->feeds[i]->child(c->feeds[i]);
	return child;
}

/* 128 and the signal's number, as shells have it. */
static int child_code(const struct collect *c)
{
	const struct analysis_child *child = find_child(c);

	if (!child || !c->plan->pass_exit_code || child->ended_by_us)
		return EXIT_DONE;
	return child->exited ? child->exit_code : 128 + child->signal;
}

static int record(struct collect *c)
{
	start_signals(c);
	uv_timer_init(&c->loop, &c->progress);
	c->progress.data = c;
	uv_timer_init(&c->loop, &c->look);
	c->look.data = c;
	if (!c->plan->show_child_io) /* else the command reads what is typed */
		c->key = stop_key_start(&c->loop, on_key, c);
	if (open_feeds(c)) {
		for (size_t i = 0; i < c->plan->count; i++)
			collect_add(c, &c->plan->subjects[i]);
		collect_settle(c);
	} else {
		collect_failed(c, EXIT_FAILED);
		stop_all(c);
	}
	uv_run(&c->loop, UV_RUN_DEFAULT);
	if (c->settings->ret_interrupted && c->interrupt_ns)
		*c->settings->ret_interrupted = true;
	if (c->count == 0 && c->code == EXIT_DONE) {
		log_error("nothing was recorded: stopped before a process came");
		collect_failed(c, EXIT_UNREACHABLE);
	}
	for (size_t i = 0; i < c->count; i++)
		c->code = worse(c->code, collection_conclude(c->items[i], find_child(c)));
	return c->code != EXIT_DONE ? c->code : child_code(c);
}

/* libuv ends the whole program when it gets none of the descriptors that it needs. */
static bool has_descriptors(void)
{
	int fds[NEEDED_DESCRIPTORS / 2][2], n = 0, most = NEEDED_DESCRIPTORS / 2, error;

	while (n < most && pipe2(fds[n], O_CLOEXEC) == 0)
		n++;
	error = errno;
	for (int i = 0; i < n; i++) {
		close(fds[i][0]);
		close(fds[i][1]);
	}
	if (n == most)
		return true;
	log_error("cannot collect: %s", strerror(error));
	log_advice("'ulimit -n' must allow for %d more", NEEDED_DESCRIPTORS);
	return false;
}

int collect_run(const struct collect_settings *s, const struct collect_plan *plan)
{
	struct collect *c;
	int code = EXIT_FAILED;

	if (!has_descriptors())
		return EXIT_FAILED;
	c = calloc(1, sizeof(*c));
	if (!c || uv_loop_init(&c->loop) != 0) {
		log_error("cannot collect: out of memory");
		free(c);
		return EXIT_FAILED;
	}
	c->settings = s;
	c->plan = plan;
	code = record(c);
	for (size_t i = 0; i < c->feed_count; i++)
		c->feeds[i]->free(c->feeds[i]);
	uv_loop_close(&c->loop);
	free(c);
	return code;
}
