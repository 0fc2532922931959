/* SPDX-License-Identifier: MIT */
#include "analyzers/stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyzers/wait_frames.h"

enum { NAME_BYTES = 512, LOCK_FRAMES = 8 };

static uint32_t caller(const struct an_shared *s, uint32_t node)
{
	return an_calltree_node(s->tree, node)->parent;
}

const struct an_method *an_stack_site(const struct an_shared *s, uint32_t node)
{
	for (; node != AN_NODE_NONE; node = caller(s, node)) {
		const struct an_method *m = an_calltree_method(s->tree, node);

		if (m && !an_frame_is_library(m))
			return m;
	}
	return NULL;
}

const struct an_method *an_stack_place(const struct an_shared *s, uint32_t node)
{
	const struct an_method *m = an_stack_site(s, node);

	for (; !m && node != AN_NODE_NONE; node = caller(s, node))
		m = an_calltree_method(s->tree, node);
	return m;
}

const struct an_method *an_stack_start(const struct an_shared *s, uint32_t node)
{
	const struct an_method *found = NULL;

	for (; node != AN_NODE_NONE; node = caller(s, node)) {
		const struct an_method *m = an_calltree_method(s->tree, node);

		if (m && !an_frame_is_library(m))
			found = m;
	}
	return found;
}

const struct an_method *an_stack_call(const struct an_shared *s, uint32_t node)
{
	const struct an_method *found = NULL;

	for (; node != AN_NODE_NONE; node = caller(s, node)) {
		const struct an_method *m = an_calltree_method(s->tree, node);

		if (m && !an_frame_is_library(m))
			return found;
		if (m)
			found = m;
	}
	return NULL;
}

bool an_stack_waits(const struct an_shared *s, uint32_t node)
{
	for (unsigned i = 0; i < AN_WAIT_FRAMES && node != AN_NODE_NONE; i++) {
		const struct an_method *m = an_calltree_method(s->tree, node);
		enum an_frame_kind kind = m ? an_frame_kind_of(m) : AN_FRAME_PLAIN;

		if (kind == AN_FRAME_WAIT || (kind == AN_FRAME_WAIT_LEAF && !i))
			return true;
		if (kind == AN_FRAME_SPIN)
			return false;
		node = caller(s, node);
	}
	return false;
}

/* "List`1[System.Int32].Add" is "List`1.Add". */
static bool same_name(const char *name, const char *raw)
{
	size_t depth = 0;

	for (; *name; name++) {
		if (*name == '[') {
			depth++;
		} else if (*name == ']' && depth) {
			depth--;
		} else if (!depth) {
			if (*name != *raw)
				return false;
			raw++;
		}
	}
	return !*raw;
}

bool an_stack_has(const struct an_shared *s, uint32_t node, const char *raw)
{
	for (; node != AN_NODE_NONE; node = caller(s, node)) {
		const struct an_method *m = an_calltree_method(s->tree, node);

		if (m && same_name(m->raw, raw))
			return true;
	}
	return false;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

enum an_lock_frame an_stack_lock_frame(const struct an_shared *s, uint32_t node)
{
	enum an_lock_frame found = AN_LOCK_NO_FRAME;

	for (unsigned i = 0; i < LOCK_FRAMES && node != AN_NODE_NONE; i++) {
		const struct an_method *m = an_calltree_method(s->tree, node);

		if (m && !an_frame_is_library(m))
			break;
		if (m && (begins(m->raw, "System.Threading.Monitor.Enter") ||
			  begins(m->raw, "System.Threading.Monitor.ReliableEnter") ||
			  begins(m->raw, "System.Threading.Monitor.TryEnter")))
			return AN_LOCK_MONITOR; /* from 11 on above frames of Lock */
		if (m && (begins(m->raw, "System.Threading.Lock.Enter") ||
			  begins(m->raw, "System.Threading.Lock.TryEnter")))
			found = AN_LOCK_LOCK;
		node = caller(s, node);
	}
	return found;
}

static void add_frame(const struct an_shared *s, uint32_t node, struct an_value *list)
{
	const struct an_method *m = an_calltree_method(s->tree, node);
	const struct an_node *n = an_calltree_node(s->tree, node);
	char buf[NAME_BYTES];

	if (m) {
		an_add_text(list, NULL, m->name);
	} else if (n->other) {
		an_add_text(list, NULL, "[other]");
	} else {
		an_methods_describe_at(s->methods, n->address, n->epoch, buf, sizeof(buf));
		an_add_text(list, NULL, buf);
	}
}

void an_stack_add(const struct an_shared *s, uint32_t node, size_t max, struct an_value *parent,
		  const char *name)
{
	static const char own[] = "System.Diagnostics.Tracing.NativeRuntimeEventSource.";
	struct an_value *list = an_add_array(parent, name);
	const struct an_method *m = an_calltree_method(s->tree, node);
	size_t n = 0;

	/* The call that writes the event is none of the program's. */
	if (m && begins(m->raw, own))
		node = caller(s, node);
	for (; node != AN_NODE_NONE && n < max; node = caller(s, node), n++)
		add_frame(s, node, list);
	if (node != AN_NODE_NONE)
		an_add_text(list, NULL, "...");
}

void an_add_method(struct an_value *parent, const char *name, const struct an_method *m)
{
	if (m)
		an_add_text(parent, name, m->name);
	else
		an_add_null(parent, name);
}

void an_add_hex(struct an_value *parent, const char *name, uint64_t v)
{
	char buf[32];

	if (!v) {
		an_add_null(parent, name);
		return;
	}
	snprintf(buf, sizeof(buf), "0x%" PRIx64, v);
	an_add_text(parent, name, buf);
}

void an_add_ms(struct an_value *parent, const char *name, uint64_t ns)
{
	an_add_double(parent, name, (double)ns / 1e6, 3);
}
