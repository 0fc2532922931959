/* SPDX-License-Identifier: MIT */
#include "analyzers/sites.h"

#include "analyzers/grow.h"
#include "analyzers/wait_frames.h"

enum { NAME_BYTES = 512 };

/* Callers come before their callees, so one pass is enough. */
enum nt_status an_sites_init(struct an_sites *s, const struct an_shared *shared)
{
	size_t n = an_calltree_count(shared->tree);

	s->shared = shared;
	s->of = an_mem_array(shared->alloc, n, sizeof(*s->of));
	if (!s->of)
		return NT_ENOMEM;
	for (size_t i = 1; i < n; i++) {
		const struct an_method *m = an_calltree_method(shared->tree, (uint32_t)i);

		if (m && an_frame_is_library(m))
			s->of[i] = s->of[an_calltree_node(shared->tree, (uint32_t)i)->parent];
		else
			s->of[i] = (uint32_t)i;
	}
	for (size_t i = 1; i < n; i++)
		if (s->of[i] == AN_NODE_NONE)
			s->of[i] = (uint32_t)i; /* nothing but the base library */
	return NT_OK;
}

void an_sites_done(struct an_sites *s)
{
	an_mem_free(s->shared->alloc, s->of);
	s->of = NULL;
}

uint64_t an_sites_key(const struct an_sites *s, uint32_t site)
{
	const struct an_method *m = an_calltree_method(s->shared->tree, site);
	const struct an_node *n = an_calltree_node(s->shared->tree, site);

	if (m)
		return m->index;
	if (n->other)
		return UINT64_MAX;
	return (n->address ^ (uint64_t)n->epoch << 40) | UINT64_C(1) << 63;
}

const char *an_sites_name(const struct an_sites *s, uint32_t site, char *buf, size_t size)
{
	const struct an_method *m = an_calltree_method(s->shared->tree, site);
	const struct an_node *n = an_calltree_node(s->shared->tree, site);

	if (m)
		return m->name;
	if (n->other)
		return "[other]";
	an_methods_describe_at(s->shared->methods, n->address - !n->leaf, n->epoch, buf, size);
	return buf;
}

void an_sites_add(const struct an_sites *s, uint32_t site, struct an_value *row)
{
	const struct an_method *m = an_calltree_method(s->shared->tree, site);
	char buf[NAME_BYTES];
	const char *name = an_sites_name(s, site, buf, sizeof(buf));

	an_add_text(row, "method", name);
	if (m) {
		an_add_text(row, "signature", m->signature);
		an_add_text(row, "args", m->args);
		an_add_text(row, "raw", m->raw);
		an_add_text(row, "module", m->module);
		return;
	}
	an_add_null(row, "signature");
	an_add_null(row, "args");
	an_add_text(row, "raw", name);
	an_add_null(row, "module");
}
