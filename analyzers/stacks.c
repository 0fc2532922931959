/* SPDX-License-Identifier: MIT */
#include "analyzers/stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyzers/grow.h"
#include "analyzers/wait_frames.h"

enum { NAME_BYTES = 512, LOCK_FRAMES = 8, REASON_FRAMES = 24, PLACE_FRAMES = 64 };

static uint32_t caller(const struct an_stacks *s, uint32_t node)
{
	return an_calltree_node(s->shared->tree, node)->parent;
}

static const struct an_method *method(const struct an_stacks *s, uint32_t node)
{
	return node == AN_NODE_NONE ? NULL : an_calltree_method(s->shared->tree, node);
}

/* Callers come before their callees, so what is true of the caller is known. */
static void look(struct an_stacks *s, uint32_t node)
{
	const struct an_method *m = method(s, node);
	uint32_t up = caller(s, node);

	s->site[node] = s->site[up];
	s->start[node] = s->start[up];
	s->pool[node] = s->pool[up];
	if (!m)
		s->call[node] = s->call[up];
	else if (!an_frame_is_library(m))
		s->site[node] = node;
	else if (up == s->site[up])
		s->call[node] = up == AN_NODE_NONE ? AN_NODE_NONE : node;
	else
		s->call[node] = s->call[up] != AN_NODE_NONE || s->site[up] == AN_NODE_NONE
					? s->call[up]
					: node;
	if (s->start[node] == AN_NODE_NONE)
		s->start[node] = s->site[node];
	if (m && !strcmp(m->raw, "System.Threading.ThreadPoolWorkQueue.Dispatch"))
		s->pool[node] |= AN_POOL_WORK;
	if (m &&
	    !strcmp(m->raw, "System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart"))
		s->pool[node] |= AN_POOL_LOOP;
}

enum nt_status an_stacks_init(struct an_stacks *s, const struct an_shared *shared)
{
	const struct nt_alloc *al = shared->alloc;
	size_t n = an_calltree_count(shared->tree);

	*s = (struct an_stacks){ .shared = shared };
	s->site = an_mem_array(al, n, sizeof(*s->site));
	s->start = an_mem_array(al, n, sizeof(*s->start));
	s->call = an_mem_array(al, n, sizeof(*s->call));
	s->pool = an_mem_array(al, n, 1);
	if (!s->site || !s->start || !s->call || !s->pool) {
		an_stacks_done(s);
		return NT_ENOMEM;
	}
	for (size_t i = 1; i < n; i++)
		look(s, (uint32_t)i);
	return NT_OK;
}

void an_stacks_done(struct an_stacks *s)
{
	if (!s->shared)
		return;
	an_mem_free(s->shared->alloc, s->site);
	an_mem_free(s->shared->alloc, s->start);
	an_mem_free(s->shared->alloc, s->call);
	an_mem_free(s->shared->alloc, s->pool);
	*s = (struct an_stacks){ 0 };
}

const struct an_method *an_stack_site(const struct an_stacks *s, uint32_t node)
{
	return method(s, s->site[node]);
}

const struct an_method *an_stack_start(const struct an_stacks *s, uint32_t node)
{
	return method(s, s->start[node]);
}

const struct an_method *an_stack_call(const struct an_stacks *s, uint32_t node)
{
	return method(s, s->call[node]);
}

unsigned an_stack_pool(const struct an_stacks *s, uint32_t node)
{
	return s->pool[node];
}

const struct an_method *an_stack_place(const struct an_stacks *s, uint32_t node)
{
	const struct an_method *m = an_stack_site(s, node);

	for (unsigned i = 0; !m && i < PLACE_FRAMES && node != AN_NODE_NONE; i++) {
		m = method(s, node);
		node = caller(s, node);
	}
	return m;
}

bool an_stack_waits(const struct an_stacks *s, uint32_t node)
{
	for (unsigned i = 0; i < AN_WAIT_FRAMES && node != AN_NODE_NONE; i++) {
		const struct an_method *m = method(s, node);
		enum an_frame_kind kind = m ? an_frame_kind_of(m) : AN_FRAME_PLAIN;

		if (kind == AN_FRAME_WAIT || (kind == AN_FRAME_WAIT_LEAF && !i))
			return true;
		if (kind == AN_FRAME_SPIN)
			return false;
		node = caller(s, node);
	}
	return false;
}

const char *an_stack_waits_for(const struct an_stacks *s, uint32_t node)
{
	const char *what = NULL;

	for (unsigned i = 0; i < REASON_FRAMES && node != AN_NODE_NONE; i++) {
		const struct an_method *m = method(s, node);
		const char *here = m ? an_frame_waits_for(m) : NULL;

		if (m && !an_frame_is_library(m))
			break;
		if (here)
			what = here;
		node = caller(s, node);
	}
	return what;
}

bool an_stack_is_own(const struct an_stacks *s, uint32_t node)
{
	return s->site[node] != AN_NODE_NONE;
}

bool an_stack_is_leaf_own(const struct an_stacks *s, uint32_t node)
{
	return node != AN_NODE_NONE && s->site[node] == node;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

enum an_lock_frame an_stack_lock_frame(const struct an_stacks *s, uint32_t node)
{
	enum an_lock_frame found = AN_LOCK_NO_FRAME;

	for (unsigned i = 0; i < LOCK_FRAMES && node != AN_NODE_NONE; i++) {
		const struct an_method *m = method(s, node);

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

static void add_frame(const struct an_stacks *s, uint32_t node, struct an_value *list)
{
	const struct an_method *m = method(s, node);
	const struct an_node *n = an_calltree_node(s->shared->tree, node);
	char buf[NAME_BYTES];

	if (m) {
		an_add_text(list, NULL, m->name);
	} else if (n->other) {
		an_add_text(list, NULL, "[other]");
	} else {
		an_methods_describe_at(s->shared->methods, n->address, n->epoch, buf, sizeof(buf));
		an_add_text(list, NULL, buf);
	}
}

void an_stack_add(const struct an_stacks *s, uint32_t node, size_t max, struct an_value *parent,
		  const char *name)
{
	static const char own[] = "System.Diagnostics.Tracing.NativeRuntimeEventSource.";
	struct an_value *list = an_add_array(parent, name);
	const struct an_method *m = method(s, node);
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
