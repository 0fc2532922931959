/* SPDX-License-Identifier: MIT */

/* Names of tasks, from the names of their operations and the stacks they were seen with. */

#include <stdio.h>

#include "analyzers/grow.h"
#include "analyzers/names.h"
#include "analyzers/tasks/tasks_internal.h"
#include "analyzers/wait_frames.h"

enum { NAME_BYTES = 1024, WAIT_DEEP = 12 };

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

static const char *op_text(const struct tasks *t, const struct task *x)
{
	return x->op_name == TASK_NO_NAME ? "" : t->names[x->op_name].text;
}

bool tasks_is_timer(const struct tasks *t, const struct task *x)
{
	return !strcmp(op_text(t, x), "Task.Delay");
}

const char *tasks_combinator(const struct tasks *t, const struct task *x)
{
	const char *text = op_text(t, x);

	return !strncmp(text, "Task.When", 9) ? text : NULL;
}

/* A frame of an async method: MoveNext of a state machine, which has been given a better name. */
static bool is_async_frame(const struct an_method *m)
{
	return ends_with(m->raw, ".MoveNext") && !ends_with(m->name, ".MoveNext");
}

/* The innermost async frame; with piece: the one whose state machine is called that. */
static const struct an_method *find_async(const struct tasks *t, uint32_t node, const char *piece)
{
	const struct an_calltree *tree = t->shared->tree;

	while (node != AN_NODE_NONE) {
		const struct an_method *m = an_calltree_method(tree, node);

		if (m && is_async_frame(m) && (!piece || strstr(m->raw, piece)))
			return m;
		node = an_calltree_node(tree, node)->parent;
	}
	return NULL;
}

/* The innermost frame of the program itself. */
static const struct an_method *find_own(const struct tasks *t, uint32_t node)
{
	const struct an_calltree *tree = t->shared->tree;

	while (node != AN_NODE_NONE) {
		const struct an_method *m = an_calltree_method(tree, node);

		if (m && !an_frame_is_library(m))
			return m;
		node = an_calltree_node(tree, node)->parent;
	}
	return NULL;
}

/* "Async: <Fetch>d__2" gives "<Fetch>d__2". */
static const char *piece_of(const char *text)
{
	const char *colon = strstr(text, ": ");

	return colon ? colon + 2 : text;
}

/*
 * The operation's name has no namespace and no type.  The method that made it is on the stack:
 * "Run.<lambda>" made in Shop.Starve.Run is Shop.Starve.Run.<lambda>.
 */
static void qualify(const struct tasks *t, const struct task *x, char *buf, size_t size)
{
	char member[NAME_BYTES];
	const struct an_method *m = find_own(t, x->op_node);
	size_t outer, n;

	an_name_member(an_slice_of(piece_of(op_text(t, x))), member, sizeof(member));
	outer = strcspn(member, ".");
	n = m ? strlen(m->name) : 0;
	if (n > outer && m->name[n - outer - 1] == '.' &&
	    !strncmp(m->name + n - outer, member, outer))
		snprintf(buf, size, "%s%s", m->name, member + outer);
	else
		snprintf(buf, size, "%s", member);
}

static void make_name(const struct tasks *t, const struct task *x, char *buf, size_t size)
{
	const char *text = op_text(t, x);
	const struct an_method *m = NULL;

	if (!strncmp(text, "Async: ", 7))
		m = find_async(t, x->op_node, piece_of(text));
	if (!m && !*text && x->wait_node != AN_NODE_NONE)
		m = find_async(t, x->wait_node, NULL);
	if (m) {
		snprintf(buf, size, "%s", m->name);
	} else if (*text) {
		qualify(t, x, buf, size);
	} else {
		m = find_own(t, x->op_node != AN_NODE_NONE ? x->op_node : x->wait_node);
		snprintf(buf, size, m ? "%s (task)" : "[task]%s", m ? m->name : "");
	}
}

enum nt_status tasks_name(struct tasks_rows *r, const struct task *x, const char **ret)
{
	uint64_t key = (uint64_t)x->op_node << 32 | x->wait_node;
	const char **names;
	char buf[NAME_BYTES];
	uint32_t at;

	key = (key ^ x->op_name) * 0x9e3779b97f4a7c15u;
	key = (key ^ key >> 29) + x->op_name;
	at = nt_idmap_get(&r->name_by_key, key);
	if (at != NT_IDMAP_NONE) {
		*ret = r->names[at];
		return NT_OK;
	}
	make_name(r->tasks, x, buf, sizeof(buf));
	*ret = nt_arena_text(&r->arena, buf, strlen(buf));
	if (!*ret) {
		*ret = "[task]";
		return r->arena.full ? NT_OK : NT_ENOMEM;
	}
	names = an_mem_grow(r->arena.alloc, r->names, &r->name_cap, r->name_count + 1,
			    sizeof(*names));
	if (!names)
		return NT_ENOMEM;
	r->names = names;
	if (nt_idmap_put(&r->name_by_key, key, (uint32_t)r->name_count) < 0)
		return NT_ENOMEM;
	names[r->name_count++] = *ret;
	return NT_OK;
}

bool tasks_blocks(const struct tasks *t, uint32_t node)
{
	const struct an_calltree *tree = t->shared->tree;

	for (unsigned i = 0; i < WAIT_DEEP && node != AN_NODE_NONE; i++) {
		const struct an_method *m = an_calltree_method(tree, node);

		if (m && an_frame_waits_for_task(m))
			return true;
		node = an_calltree_node(tree, node)->parent;
	}
	return false;
}

const char *tasks_blocking_name(const struct tasks *t, uint32_t node)
{
	const struct an_calltree *tree = t->shared->tree;
	const struct an_method *m = find_own(t, node);
	bool waits = false;

	if (m)
		return m->name;
	/* Library code that blocks: the frame that called Wait. */
	while (node != AN_NODE_NONE) {
		m = an_calltree_method(tree, node);
		if (m && an_frame_waits_for_task(m))
			waits = true;
		else if (m && waits && strncmp(m->raw, "System.Threading.Tasks.", 23) != 0)
			return m->name;
		node = an_calltree_node(tree, node)->parent;
	}
	return "[unknown]";
}
