/* SPDX-License-Identifier: MIT */
#include "src/collect/collect_plan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/log.h"

/* --- what excludes what --- */

static int check(const struct command *cmd, const struct collect_wish *w)
{
	unsigned ways = (w->pids->count > 0) + (w->name != NULL) + (w->wait_for != NULL) +
			(w->port != NULL) + (w->command != NULL);

	if (ways > 1)
		return opt_usage_error(cmd, "give one of -p, -n, --wait-for, --diagnostic-port and "
					    "-- COMMAND");
	if (w->command && !w->command[0])
		return opt_usage_error(cmd, "a command must follow '--'");
	if (w->children && !w->command && !w->name && w->pids->count != 1)
		return opt_usage_error(cmd, "--children needs -p, -n or -- COMMAND");
	if (w->to_stdout && (w->children || w->pids->count > 1))
		return opt_usage_error(cmd, "standard output can hold the trace of one process "
					    "only: give -o a file");
	return -1;
}

/* --- processes that are there --- */

int collect_plan_pid(const struct command *cmd, const char *text, int32_t *ret)
{
	uint64_t v;
	const char *why = opt_parse_uint(text, &v);

	if (!why && (v == 0 || v > INT32_MAX))
		why = "it must be 1 to 2147483647";
	if (why)
		return opt_usage_error(cmd, "-p %s: %s", text, why);
	*ret = (int32_t)v;
	return -1;
}

static bool make_room(struct collect_planned *p, size_t count)
{
	p->targets = calloc(count, sizeof(*p->targets));
	p->subjects = calloc(count, sizeof(*p->subjects));
	if (p->targets && p->subjects)
		return true;
	log_error("cannot collect: out of memory");
	return false;
}

static void add_target(struct collect_planned *p)
{
	const struct collect_target *t = &p->targets[p->target_count];

	p->subjects[p->target_count] = (struct collect_subject){ .target = &t->target,
								 .pid = t->target.pid,
								 .name = t->name };
	p->plan.subjects = p->subjects;
	p->plan.count = ++p->target_count;
}

static int choose_pids(const struct command *cmd, const struct collect_wish *w,
		       struct collect_planned *p)
{
	int code = make_room(p, w->pids->count) ? -1 : EXIT_FAILED;

	for (size_t i = 0; code < 0 && i < w->pids->count; i++) {
		int32_t pid = 0;
		bool twice = false;

		code = collect_plan_pid(cmd, w->pids->items[i], &pid);
		for (size_t k = 0; k < p->target_count; k++)
			twice = twice || p->targets[k].target.pid == pid;
		if (code >= 0 || twice)
			continue;
		code = collect_target_choose(&p->targets[p->target_count], pid, NULL, w->ask_ms);
		if (code < 0)
			add_target(p);
		else
			collect_target_done(&p->targets[p->target_count]);
	}
	return code;
}

static int choose_one(const struct collect_wish *w, struct collect_planned *p)
{
	int code;

	if (!make_room(p, 1))
		return EXIT_FAILED;
	code = collect_target_choose(&p->targets[0], 0, w->name, w->ask_ms);
	if (code < 0)
		add_target(p);
	else
		collect_target_done(&p->targets[0]);
	return code;
}

/* The root of a tree need not be a .NET process itself. */
static int choose_tree(const struct command *cmd, const struct collect_wish *w,
		       struct collect_planned *p)
{
	int code = w->name ? choose_one(w, p)
			   : collect_plan_pid(cmd, w->pids->items[0], &p->plan.tree);
	struct proc_stat st;

	if (code >= 0)
		return code;
	if (w->name) {
		p->plan.tree = p->targets[0].target.pid;
		p->plan.count = 0; /* it is found again, as the tree's root */
	}
	if (!proc_read_stat(PROC_ROOT, p->plan.tree, &st)) {
		log_error("cannot trace process %d: there is no such process", (int)p->plan.tree);
		return EXIT_UNREACHABLE;
	}
	p->plan.wait_ms = w->ask_ms;
	return -1;
}

/* --- ports --- */

static int choose_port(const struct command *cmd, const struct collect_wish *w,
		       struct collect_planned *p)
{
	const char *why;
	int code;

	if (!port_address_parse(&p->port, w->port, &why))
		return opt_usage_error(cmd, "--diagnostic-port %s: %s", w->port, why);
	p->plan.wait_ms = w->wait_ms;
	if (!p->port.connect) {
		p->plan.port = &p->port;
		return -1;
	}
	if (!make_room(p, 1))
		return EXIT_FAILED;
	p->port_source = (struct ipc_source){ port_address_connect, &p->port };
	code = collect_target_ask(&p->targets[0], &p->port, &p->port_source, w->ask_ms);
	if (code < 0) {
		add_target(p);
		p->subjects[0].source = &p->port_source;
	} else {
		collect_target_done(&p->targets[0]);
	}
	return code;
}

/* --- the whole --- */

int collect_plan_make(const struct command *cmd, const struct collect_wish *w,
		      struct collect_planned *ret)
{
	int code;

	*ret = (struct collect_planned){ .plan = { .children = w->children } };
	code = check(cmd, w);
	if (code >= 0)
		return code;
	if (w->command) {
		ret->plan.command = w->command;
		ret->plan.wait_ms = w->ask_ms;
		return -1;
	}
	if (w->port)
		return choose_port(cmd, w, ret);
	if (w->wait_for) {
		ret->plan.wait_for = w->wait_for;
		ret->plan.wait_ms = w->wait_ms;
		return -1;
	}
	if (w->children)
		return choose_tree(cmd, w, ret);
	return w->pids->count ? choose_pids(cmd, w, ret) : choose_one(w, ret);
}

void collect_plan_done(struct collect_planned *p)
{
	for (size_t i = 0; i < p->target_count; i++)
		collect_target_done(&p->targets[i]);
	free(p->targets);
	free(p->subjects);
	port_address_done(&p->port);
}

const char **collect_plan_command(const struct opt_operands *words)
{
	size_t count = words->count - words->before_dashes;
	const char **command = calloc(count + 1, sizeof(*command));

	for (size_t i = 0; command && i < count; i++)
		command[i] = words->v[words->before_dashes + i];
	return command;
}

uint64_t collect_plan_duration(uint64_t given_ns, bool ends)
{
	if (given_ns != 0 || ends || isatty(STDIN_FILENO) || isatty(STDERR_FILENO))
		return given_ns;
	log_info("no terminal and no --duration: stopping after 30s");
	return UINT64_C(30) * 1000000000;
}
