/* SPDX-License-Identifier: MIT */
/*
 * Symbols of version 6 files, which a recorder outside the process wrote: Universal.System events
 * instead of method events.  Names are as in perf maps.
 */
#include <string.h>

#include "analyzers/grow.h"
#include "analyzers/methods_impl.h"
#include "analyzers/names.h"

enum {
	MAX_FIELDS = 8,
	MAX_FILES = 64 * 1024,
	/* No code is larger; symbols from an unprivileged kernel may span everything. */
	MAX_SYMBOL_BYTES = 256 << 20,
};

static bool is_mapping(const struct nt_event_def *def)
{
	return !strcmp(def->name, "ProcessMapping");
}

static bool is_symbol(const struct nt_event_def *def)
{
	return !strcmp(def->name, "ProcessSymbol");
}

bool an_universal_wants(const struct nt_event_def *def)
{
	return def->provider_id == NT_PROV_UNIVERSAL_SYSTEM && (is_mapping(def) || is_symbol(def));
}

static struct an_slice text_of(const struct nt_value *v)
{
	if (!v || v->kind != NT_V_UTF8)
		return (struct an_slice){ "", 0 };
	return (struct an_slice){ (const char *)v->data, v->bytes };
}

static uint64_t hash_text(struct an_slice s)
{
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (uint8_t)s.p[i]) * 1099511628211u;
	return h;
}

/* The number of a file name. */
static enum nt_status note_file(struct an_methods *m, struct an_slice path, uint32_t *ret)
{
	struct an_slice name = an_module_name(path);
	uint64_t key = hash_text(name);
	const char **names, *text;

	*ret = nt_idmap_get(&m->files_by_name, key);
	if (*ret != NT_IDMAP_NONE)
		return NT_OK;
	*ret = AN_METHOD_NONE;
	if (!name.n || m->file_count >= MAX_FILES)
		return NT_OK;
	text = nt_arena_text(&m->file_arena, name.p, name.n);
	if (!text)
		return m->file_arena.full ? NT_OK : NT_ENOMEM;
	names = an_mem_grow(m->alloc, m->file_names, &m->file_cap, m->file_count + 1,
			    sizeof(*names));
	if (!names)
		return NT_ENOMEM;
	m->file_names = names;
	if (nt_idmap_put(&m->files_by_name, key, (uint32_t)m->file_count) < 0)
		return NT_ENOMEM;
	*ret = (uint32_t)m->file_count;
	names[m->file_count++] = text;
	return NT_OK;
}

/* A later mapping replaces the parts of earlier ones that it covers. */
static enum nt_status on_mapping(struct an_methods *m, uint32_t space, uint64_t start,
				 uint64_t last, struct an_slice path)
{
	struct an_range x = { .start = start, .last = last, .space = space };
	struct an_range *there;
	enum nt_status st = note_file(m, path, &x.value);

	if (st < 0 || x.value == AN_METHOD_NONE)
		return st;
	while ((there = an_ranges_first(&m->files, space, start, last))) {
		struct an_range was = *there;

		if (was.start >= start && was.last <= last) {
			an_ranges_remove(&m->files, there);
		} else if (was.start >= start) {
			there->start = last + 1;
		} else {
			there->last = start - 1;
			was.start = last + 1;
			if (was.last <= last)
				continue;
			st = an_ranges_add(&m->files, &was);
			if (st < 0 && st != NT_ELIMIT)
				return st;
		}
	}
	st = an_ranges_add(&m->files, &x);
	return st == NT_ELIMIT ? NT_OK : st;
}

/* Perf maps call two of the tiers by other words than events do. */
static enum an_tier tier_of(struct an_slice word)
{
	for (unsigned i = AN_TIER_UNKNOWN + 1; i < AN_TIERS; i++)
		if (an_slice_is(word, an_tier_name((enum an_tier)i)))
			return (enum an_tier)i;
	if (an_slice_is(word, "InstrumentedTier"))
		return AN_TIER_QUICK_INSTRUMENTED;
	if (an_slice_is(word, "InstrumentedTierOptimized"))
		return AN_TIER_1_INSTRUMENTED;
	return an_slice_is(word, "PreJIT") ? AN_TIER_OPTIMIZED : AN_TIER_UNKNOWN;
}

static enum nt_status on_symbol(struct an_methods *m, uint32_t base, uint64_t start, uint64_t last,
				struct an_slice text)
{
	struct an_method_key key = { 0 };
	struct an_perf_name name;
	enum nt_status st;
	uint32_t method;
	size_t n;

	an_name_split_perf(text, &name);
	key.module = name.module;
	if (!key.module.n)
		key.module = an_slice_of(an_methods_module_at(m, start, base));
	key.type = name.type;
	key.name = name.method;
	/* "void", "(int32)" as method events would have it: "void  (int32)" */
	if (name.arguments.n) {
		n = name.returns.n + 2 + name.arguments.n;
		if (n > m->scratch_cap) {
			char *p = an_mem_grow(m->alloc, m->scratch, &m->scratch_cap, n, 1);

			if (!p)
				return NT_ENOMEM;
			m->scratch = p;
		}
		memcpy(m->scratch, name.returns.p, name.returns.n);
		memcpy(m->scratch + name.returns.n, "  ", 2);
		memcpy(m->scratch + name.returns.n + 2, name.arguments.p, name.arguments.n);
		key.signature = (struct an_slice){ m->scratch, n };
	}
	st = an_method_take(&m->table, &key, &method);
	if (st < 0 || method == AN_METHOD_NONE)
		return st;
	return an_methods_load(m, base, start, last, tier_of(name.tier), method);
}

enum nt_status an_methods_native(struct an_methods *m, uint64_t start, uint64_t last,
				 const char *file, const char *function)
{
	struct an_method_key key = { 0 };
	enum nt_status st;
	uint32_t method;

	if (last < start || last - start >= MAX_SYMBOL_BYTES) {
		m->bad_ranges++;
		return NT_OK;
	}
	if (!function)
		return on_mapping(m, 0, start, last, an_slice_of(file));
	if (!*file)
		return on_symbol(m, 0, start, last, an_slice_of(function));
	key.module = an_module_name(an_slice_of(file));
	key.name = an_slice_of(function);
	st = an_method_take(&m->table, &key, &method);
	if (st < 0 || method == AN_METHOD_NONE)
		return st;
	return an_methods_load(m, 0, start, last, AN_TIER_UNKNOWN, method);
}

enum nt_status an_universal_event(struct an_methods *m, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	uint64_t start = nt_value_u64(v, n, "StartAddress", 1);
	uint64_t last = nt_value_u64(v, n, "EndAddress", 0);
	uint32_t base = an_methods_base(m, ev);

	if (last < start || base >> AN_EPOCH_BITS == AN_MAX_SPACES) {
		m->bad_ranges++;
		return NT_OK;
	}
	if (is_mapping(ev->def))
		return on_mapping(m, base >> AN_EPOCH_BITS, start, last,
				  text_of(nt_value_find(v, n, "FileName")));
	if (last - start >= MAX_SYMBOL_BYTES) {
		m->bad_ranges++;
		return NT_OK;
	}
	return on_symbol(m, base, start, last, text_of(nt_value_find(v, n, "Name")));
}
