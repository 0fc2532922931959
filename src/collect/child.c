/* SPDX-License-Identifier: MIT */
#include "src/collect/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/log.h"

enum { PATIENCE_MS = 5000 /* between SIGTERM and SIGKILL */ };

static const char variable[] = CHILD_PORT_VARIABLE;

struct child {
	uv_process_t process;
	uv_timer_t timer;
	child_ended ended;
	void *ctx;
	unsigned handles;
	bool has_ended, own_group;
};

/* --- the port --- */

static char *make_directory(const char *parent)
{
	char *path;

	if (asprintf(&path, "%s/drdotnet-trace-XXXXXX", parent) < 0)
		return NULL;
	if (strlen(path) + sizeof("/port") <= sizeof(((struct sockaddr_un *)0)->sun_path) &&
	    mkdtemp(path))
		return path;
	free(path);
	return NULL;
}

bool child_make_port(struct port_address *ret, char **ret_directory)
{
	const char *tmp = getenv("TMPDIR"), *why;
	char *directory = tmp && *tmp == '/' ? make_directory(tmp) : NULL, *path;

	if (!directory)
		directory = make_directory("/tmp");
	if (!directory) {
		log_error("cannot make a directory in '/tmp': %s", strerror(errno));
		return false;
	}
	if (asprintf(&path, "%s/port", directory) >= 0) {
		bool ok = port_address_parse(ret, path, &why);

		free(path);
		if (ok) {
			*ret_directory = directory;
			return true;
		}
	}
	log_error("cannot make a diagnostic port in '%s'", directory);
	rmdir(directory);
	free(directory);
	return false;
}

void child_remove_port(struct port_address *port, char *directory)
{
	if (directory)
		rmdir(directory);
	free(directory);
	port_address_done(port);
}

/* --- its environment --- */

/* A port that somebody else has set stays. */
static char *port_variable(const struct port_address *port)
{
	const char *others = getenv(variable);
	char *text;

	if (asprintf(&text, "%s=%s,suspend%s%s", variable, port->path, others && *others ? ";" : "",
		     others ? others : "") < 0)
		return NULL;
	return text;
}

/* The texts are not ours but for the first; NULL: out of memory. */
static char **make_environment(char *first)
{
	size_t n = 0, len = sizeof(variable) - 1;
	char **env;

	while (environ[n])
		n++;
	env = calloc(n + 2, sizeof(*env));
	if (!env)
		return NULL;
	env[0] = first;
	n = 1;
	for (char **e = environ; *e; e++)
		if (strncmp(*e, variable, len) != 0 || (*e)[len] != '=')
			env[n++] = *e;
	return env;
}

/* --- running --- */

static void on_child_exit(uv_process_t *process, int64_t exit_code, int signal)
{
	struct child *c = process->data;

	c->has_ended = true;
	uv_timer_stop(&c->timer);
	c->ended(c->ctx, (int)exit_code, signal);
}

/*
 * A child with the terminal's input has to stay in the terminal's foreground, where Ctrl-C reaches
 * it as well.  Any other is a group of its own: Ctrl-C ends the recording first.
 */
static struct child *spawn(uv_loop_t *loop, const struct child_config *config, char **env,
			   struct child *c, int *reterr)
{
	bool terminal = config->show_io && isatty(STDIN_FILENO);
	uv_stdio_container_t io[3] = { { 0 } };
	uv_process_options_t options = {
		.exit_cb = on_child_exit,
		.file = config->argv[0],
		.args = (char **)(uintptr_t)config->argv,
		.env = env,
		.flags = terminal ? 0 : UV_PROCESS_DETACHED,
		.stdio_count = 3,
		.stdio = io,
	};

	for (int i = 0; i < 3; i++) {
		io[i].flags = config->show_io ? UV_INHERIT_FD : UV_IGNORE;
		io[i].data.fd = i == 1 && config->output_to_stderr ? 2 : i;
	}
	c->own_group = !terminal;
	uv_timer_init(loop, &c->timer);
	c->process.data = c;
	c->timer.data = c;
	c->handles = 2;
	*reterr = uv_spawn(loop, &c->process, &options);
	if (*reterr == 0)
		return c;
	child_close(c);
	return NULL;
}

struct child *child_start(uv_loop_t *loop, const struct child_config *config,
			  const struct port_address *port, child_ended ended, void *ctx,
			  int *reterr)
{
	char *text = port_variable(port);
	char **env = text ? make_environment(text) : NULL;
	struct child *c = env ? calloc(1, sizeof(*c)) : NULL;

	*reterr = -ENOMEM;
	if (c) {
		c->ended = ended;
		c->ctx = ctx;
		c = spawn(loop, config, env, c, reterr);
	}
	free(env);
	free(text);
	return c;
}

int32_t child_pid(const struct child *c)
{
	return c->process.pid;
}

/* All of it where it is a group: a shell in front passes nothing on. */
static void signal_child(struct child *c, int number)
{
	if (!c->own_group || kill(-c->process.pid, number) != 0)
		uv_process_kill(&c->process, number);
}

static void on_patience(uv_timer_t *timer)
{
	signal_child(timer->data, SIGKILL);
}

void child_end(struct child *c)
{
	if (c->has_ended || uv_is_active((uv_handle_t *)&c->timer))
		return;
	signal_child(c, SIGTERM);
	uv_timer_start(&c->timer, on_patience, PATIENCE_MS, 0);
}

static void on_closed(uv_handle_t *h)
{
	struct child *c = h->data;

	if (--c->handles == 0)
		free(c);
}

void child_close(struct child *c)
{
	uv_close((uv_handle_t *)&c->process, on_closed);
	uv_close((uv_handle_t *)&c->timer, on_closed);
}
