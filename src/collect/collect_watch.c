/* SPDX-License-Identifier: MIT */

/*
 * The feed of processes that appear: the first one of a name (--wait-for), or whatever a process
 * has started and starts (--children).  There is nothing to be told by, so /proc is looked through
 * again and again; new numbers at each look, all of them from time to time, as a process may
 * become another program, and a .NET runtime takes a moment to open its port.
 */

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "src/base/command.h"
#include "src/base/log.h"
#include "src/collect/collect_feed.h"
#include "src/ipc/process_info.h"
#include "src/ipc/process_list.h"

enum {
	LOOK_MS = 25,
	FULL_LOOKS = 40, /* so many looks at new numbers for one at all */
	YOUNG_S = 3,
};

struct watch_feed;

/* A process that was seen at the last look. */
struct seen {
	int32_t pid, parent;
	uint64_t start_ticks;
	bool in_tree; /* the root, or descends from it */
	bool taken; /* recorded, or asked for its name, or of no use for good */
};

/* A process to be recorded, or asked whether it is the one. */
struct candidate {
	struct watch_feed *feed;
	struct ipc_target target;
	struct collect_subject who;
	char *name;
	struct process_info info;
	struct candidate *next;
};

struct watch_feed {
	struct collect_feed feed; /* first, so that one is the other */
	struct collect *run;
	const char *wait_for; /* NULL: a tree */
	int32_t tree;
	uv_timer_t timer, limit;
	unsigned looks;
	struct seen *seen; /* by pid */
	size_t count;
	struct candidate *candidates;
	size_t asking;
	bool found, stopped, gave_up;
};

static struct watch_feed *feed_of(struct collect_feed *f)
{
	return (struct watch_feed *)f;
}

/* --- what is there --- */

static int by_pid(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static struct seen *find_seen(const struct watch_feed *f, int32_t pid)
{
	const struct seen key = { .pid = pid };

	return f->count ? bsearch(&key, f->seen, f->count, sizeof(key), by_pid) : NULL;
}

static bool parse_pid(const char *text, int32_t *ret)
{
	uint64_t v;

	if (opt_parse_uint(text, &v) != NULL || v == 0 || v > INT32_MAX)
		return false;
	*ret = (int32_t)v;
	return true;
}

/* The numbers in /proc, rising; NULL: none, or out of memory. */
static struct seen *list_numbers(size_t *ret_count)
{
	struct seen *all = NULL;
	size_t count = 0, room = 0;
	DIR *dir = opendir(PROC_ROOT);
	struct dirent *de;

	while (dir && (de = readdir(dir)) != NULL) {
		struct seen s = { 0 };

		if (de->d_name[0] < '1' || de->d_name[0] > '9' || !parse_pid(de->d_name, &s.pid))
			continue;
		if (count == room) {
			struct seen *more = reallocarray(all, room ? room * 2 : 256, sizeof(*all));

			if (!more)
				break;
			all = more;
			room = room ? room * 2 : 256;
		}
		all[count++] = s;
	}
	if (dir)
		closedir(dir);
	if (count > 1)
		qsort(all, count, sizeof(*all), by_pid);
	*ret_count = count;
	return all;
}

/* Parents mostly have lower numbers than their children, but numbers come round. */
static void mark_tree(struct watch_feed *f)
{
	bool changed = f->tree != 0;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < f->count; i++) {
			struct seen *s = &f->seen[i], *parent;

			if (s->in_tree)
				continue;
			parent = s->parent ? find_seen(f, s->parent) : NULL;
			s->in_tree = s->pid == f->tree || (parent && parent->in_tree);
			changed = changed || s->in_tree;
		}
	}
}

/* --- one of them --- */

static void take(struct watch_feed *f, struct candidate *c)
{
	c->who.target = &c->target;
	c->who.pid = c->target.pid;
	c->who.name = c->name;
	if (!c->name || (f->wait_for && f->found))
		return;
	if (collect_add(f->run, &c->who)) {
		f->found = true;
		uv_timer_stop(&f->limit);
	}
}

static bool is_it(const struct watch_feed *f, const struct candidate *c)
{
	return strcasecmp(c->name, f->wait_for) == 0 ||
	       strcmp(c->target.stat.comm, f->wait_for) == 0;
}

static void on_told(void *ctx)
{
	struct candidate *c = ctx;
	struct watch_feed *f = c->feed;

	f->asking--;
	if (c->info.entry_assembly && strcasecmp(c->info.entry_assembly, f->wait_for) == 0) {
		free(c->name);
		c->name = strdup(c->info.entry_assembly);
		take(f, c);
	}
	process_info_done(&c->info);
	collect_settle(f->run);
}

/* Whether there is nothing more to learn about it. */
static bool consider(struct watch_feed *f, const struct seen *s)
{
	struct candidate *c = calloc(1, sizeof(*c));
	char *line;

	if (!c)
		return false;
	if (ipc_find_process(PROC_ROOT, s->pid, &c->target) != IPC_WHY_FOUND) {
		ipc_target_done(&c->target);
		free(c);
		return false;
	}
	c->feed = f;
	line = proc_read_command_line(PROC_ROOT, s->pid);
	c->name = process_guess_name(line, c->target.stat.comm);
	free(line);
	c->next = f->candidates;
	f->candidates = c;
	if (f->tree || (c->name && is_it(f, c)))
		take(f, c);
	else if (process_info_ask(collect_loop(f->run), c->target.sockets[0].path,
				  collect_get_settings(f->run)->timeout_ms, &c->info, on_told, c))
		f->asking++;
	return true;
}

/* --- looking --- */

/* What has started since is young: it may still become what is waited for. */
static uint64_t young_since_ticks(void)
{
	const struct proc_stat boot = { .start_ticks = 0 };
	double up = proc_uptime_s(PROC_ROOT, &boot);

	return up > YOUNG_S ? (uint64_t)((up - YOUNG_S) * (double)sysconf(_SC_CLK_TCK)) : 0;
}

static void look(struct watch_feed *f)
{
	uint64_t young = young_since_ticks();
	bool full = f->looks++ % FULL_LOOKS == 0;
	size_t count;
	struct seen *now = list_numbers(&count);

	if (!now)
		return;
	for (size_t i = 0; i < count; i++) {
		const struct seen *old = find_seen(f, now[i].pid);
		struct proc_stat st;

		if (old && !full) {
			now[i] = *old;
			continue;
		}
		if (!proc_read_stat(PROC_ROOT, now[i].pid, &st))
			continue;
		if (old && old->start_ticks == st.start_ticks)
			now[i] = *old;
		now[i].start_ticks = st.start_ticks;
		now[i].parent = st.parent;
		now[i].taken = now[i].taken || st.kernel_thread;
	}
	free(f->seen);
	f->seen = now;
	f->count = count;
	mark_tree(f);
	for (size_t i = 0; i < count && !(f->wait_for && f->found); i++) {
		struct seen *s = &f->seen[i];

		if (s->taken || (f->tree && !s->in_tree))
			continue;
		if (full || s->start_ticks >= young)
			s->taken = consider(f, s);
	}
}

static void on_look(uv_timer_t *timer)
{
	struct watch_feed *f = timer->data;

	look(f);
	if (f->wait_for && f->found)
		uv_timer_stop(timer);
	collect_settle(f->run);
}

static void on_limit(uv_timer_t *timer)
{
	struct watch_feed *f = timer->data;

	f->gave_up = true;
	uv_timer_stop(&f->timer);
	if (f->wait_for)
		log_error("no .NET process named '%s' appeared in time", f->wait_for);
	else
		log_error("process %d has started no .NET process that can be traced",
			  (int)f->tree);
	collect_failed(f->run, EXIT_UNREACHABLE);
	collect_settle(f->run);
}

/* --- as a feed --- */

static void feed_stop(struct collect_feed *feed)
{
	struct watch_feed *f = feed_of(feed);

	f->stopped = true;
	uv_timer_stop(&f->timer);
	uv_timer_stop(&f->limit);
}

static bool feed_busy(const struct collect_feed *feed)
{
	const struct watch_feed *f = (const struct watch_feed *)feed;

	return f->asking > 0 || (!f->found && !f->stopped && !f->gave_up);
}

static void feed_close(struct collect_feed *feed)
{
	struct watch_feed *f = feed_of(feed);

	uv_close((uv_handle_t *)&f->timer, NULL);
	uv_close((uv_handle_t *)&f->limit, NULL);
}

static void feed_free(struct collect_feed *feed)
{
	struct watch_feed *f = feed_of(feed);

	while (f->candidates) {
		struct candidate *c = f->candidates;

		f->candidates = c->next;
		ipc_target_done(&c->target);
		free(c->name);
		free(c);
	}
	free(f->seen);
	free(f);
}

static const struct collect_feed feed_functions = {
	.stop = feed_stop, .busy = feed_busy, .close = feed_close, .free = feed_free
};

struct collect_feed *collect_watch_open(struct collect *c)
{
	const struct collect_plan *plan = collect_get_plan(c);
	struct watch_feed *f = calloc(1, sizeof(*f));
	uint64_t limit_ms = plan->wait_ms;

	if (!f) {
		log_error("cannot collect: out of memory");
		return NULL;
	}
	f->feed = feed_functions;
	f->run = c;
	f->wait_for = plan->wait_for;
	f->tree = plan->wait_for ? 0 : plan->tree;
	uv_timer_init(collect_loop(c), &f->timer);
	uv_timer_init(collect_loop(c), &f->limit);
	f->timer.data = f;
	f->limit.data = f;
	uv_timer_start(&f->timer, on_look, 0, LOOK_MS);
	if (limit_ms)
		uv_timer_start(&f->limit, on_limit, limit_ms, 0);
	if (f->wait_for && !collect_get_settings(c)->quiet)
		log_info("waiting for a .NET process named '%s'", f->wait_for);
	return &f->feed;
}
