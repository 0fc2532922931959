/* SPDX-License-Identifier: MIT */
#include "analyzers/method_table.h"

#include <assert.h>
#include <stdio.h>

#include "analyzers/grow.h"
#include "analyzers/names.h"

enum {
	MAX_METHODS = 400 * 1000,
	MAX_TEXT_BYTES = 24 << 20,
	MAX_MODULES = 64 * 1024,
	MAX_MODULE_BYTES = 8 << 20,
	MAX_FACE_BYTES = 48 << 20,
	SQUEEZE_BYTES = 256 << 10, /* garbage below this is not worth the copying */
	NAME_BYTES = 2048,
};

struct an_method_entry {
	uint64_t module_id;
	uint64_t method_id;
	struct an_method *face;
	uint32_t hash;
	uint32_t next; /* in its bucket, or in the free list */
	uint32_t refs;
	uint32_t offset; /* of module, type, name, signature in the text pool, one behind another */
	uint32_t module_len, type_len, name_len, signature_len;
	bool dynamic;
	bool taken; /* not in the free list */
};

struct an_method_faces {
	struct nt_arena arena;
	bool failed;
};

enum nt_status an_method_table_init(struct an_method_table *t, const struct nt_alloc *alloc)
{
	*t = (struct an_method_table){ .alloc = alloc, .free = AN_METHOD_NONE };
	nt_idmap_init(&t->modules, alloc);
	nt_arena_init(&t->module_arena, alloc, MAX_MODULE_BYTES);
	t->faces = an_mem_get(alloc, sizeof(*t->faces));
	if (!t->faces)
		return NT_ENOMEM;
	nt_arena_init(&t->faces->arena, alloc, MAX_FACE_BYTES);
	return NT_OK;
}

void an_method_table_done(struct an_method_table *t)
{
	if (t->faces)
		nt_arena_done(&t->faces->arena);
	an_mem_free(t->alloc, t->faces);
	an_mem_free(t->alloc, t->entries);
	an_mem_free(t->alloc, t->buckets);
	an_mem_free(t->alloc, t->text);
	an_mem_free(t->alloc, t->module_names);
	nt_idmap_done(&t->modules);
	nt_arena_done(&t->module_arena);
}

/* --- identity --- */

static uint32_t hash_bytes(uint32_t h, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)p[i]) * 16777619u;
	return (h ^ 0xff) * 16777619u; /* "ab" "c" is not "a" "bc" */
}

static bool is_nameless(const struct an_method_key *k)
{
	return !k->type.n && !k->name.n && !k->signature.n;
}

static uint32_t hash_key(const struct an_method_key *k)
{
	uint64_t id = k->module_id ^ (is_nameless(k) ? k->method_id * 31 : 0);
	uint32_t h = 2166136261u ^ (uint32_t)(id ^ (id >> 32));

	h = hash_bytes(h, k->module.p, k->module.n);
	h = hash_bytes(h, k->type.p, k->type.n);
	h = hash_bytes(h, k->name.p, k->name.n);
	return hash_bytes(h, k->signature.p, k->signature.n);
}

/* Compares the next len bytes of the pool with s and moves on. */
static bool same_text(const char **p, size_t len, struct an_slice s)
{
	const char *text = *p;

	*p += len;
	return len == s.n && (!len || !memcmp(text, s.p, len));
}

static bool is_method(const struct an_method_table *t, const struct an_method_entry *e,
		      const struct an_method_key *k, uint32_t hash)
{
	const char *p = t->text + e->offset;

	return e->hash == hash && e->module_id == k->module_id &&
	       (!is_nameless(k) || e->method_id == k->method_id) &&
	       same_text(&p, e->module_len, k->module) && same_text(&p, e->type_len, k->type) &&
	       same_text(&p, e->name_len, k->name) && same_text(&p, e->signature_len, k->signature);
}

static uint32_t find(const struct an_method_table *t, const struct an_method_key *k, uint32_t hash)
{
	uint32_t i;

	if (!t->bucket_count)
		return AN_METHOD_NONE;
	i = t->buckets[hash & (t->bucket_count - 1)];
	while (i != AN_METHOD_NONE && !is_method(t, &t->entries[i], k, hash))
		i = t->entries[i].next;
	return i;
}

/* Keeps at most one method a bucket on average. */
static enum nt_status make_buckets(struct an_method_table *t)
{
	size_t n = t->bucket_count ? t->bucket_count * 2 : 1024;
	uint32_t *buckets;

	if (t->bucket_count && t->live < t->bucket_count)
		return NT_OK;
	buckets = an_mem_array(t->alloc, n, sizeof(*buckets));
	if (!buckets)
		return NT_ENOMEM;
	memset(buckets, 0xff, n * sizeof(*buckets));
	for (size_t i = 0; i < t->count; i++) {
		struct an_method_entry *e = &t->entries[i];

		if (!e->taken)
			continue;
		e->next = buckets[e->hash & (n - 1)];
		buckets[e->hash & (n - 1)] = (uint32_t)i;
	}
	an_mem_free(t->alloc, t->buckets);
	t->buckets = buckets;
	t->bucket_count = n;
	return NT_OK;
}

/* --- the text pool --- */

static size_t text_len(const struct an_method_entry *e)
{
	return (size_t)e->module_len + e->type_len + e->name_len + e->signature_len;
}

/* Copies the text that is still referred to into a new pool. */
static enum nt_status squeeze(struct an_method_table *t)
{
	size_t used = 0, cap = t->text_used - t->text_garbage;
	char *text = an_mem_array(t->alloc, cap, 1);

	if (!text)
		return NT_ENOMEM;
	for (size_t i = 0; i < t->count; i++) {
		struct an_method_entry *e = &t->entries[i];

		if (!e->taken)
			continue;
		memcpy(text + used, t->text + e->offset, text_len(e));
		e->offset = (uint32_t)used;
		used += text_len(e);
	}
	an_mem_free(t->alloc, t->text);
	t->text = text;
	t->text_used = used;
	t->text_cap = cap ? cap : 1;
	t->text_garbage = 0;
	return NT_OK;
}

/* NT_ELIMIT: the pool is full. */
static enum nt_status make_room(struct an_method_table *t, size_t len)
{
	char *text;

	if (t->text_garbage > SQUEEZE_BYTES && t->text_garbage > t->text_used / 2) {
		enum nt_status st = squeeze(t);

		if (st < 0)
			return st;
	}
	if (len > MAX_TEXT_BYTES - t->text_used)
		return NT_ELIMIT;
	text = an_mem_grow(t->alloc, t->text, &t->text_cap, t->text_used + len, 1);
	if (!text)
		return NT_ENOMEM;
	t->text = text;
	return NT_OK;
}

static uint32_t put_text(struct an_method_table *t, struct an_slice s)
{
	if (s.n)
		memcpy(t->text + t->text_used, s.p, s.n);
	t->text_used += s.n;
	return (uint32_t)s.n;
}

/* --- entries --- */

static enum nt_status take_slot(struct an_method_table *t, uint32_t *ret)
{
	struct an_method_entry *entries;

	if (t->free != AN_METHOD_NONE) {
		*ret = t->free;
		t->free = t->entries[t->free].next;
		return NT_OK;
	}
	if (t->count >= MAX_METHODS)
		return NT_ELIMIT;
	entries = an_mem_grow(t->alloc, t->entries, &t->cap, t->count + 1, sizeof(*entries));
	if (!entries)
		return NT_ENOMEM;
	t->entries = entries;
	*ret = (uint32_t)t->count++;
	return NT_OK;
}

static enum nt_status add(struct an_method_table *t, const struct an_method_key *k, uint32_t hash,
			  uint32_t *ret)
{
	size_t len = k->module.n + k->type.n + k->name.n + k->signature.n;
	struct an_method_entry *e;
	enum nt_status st = make_room(t, len);

	if (st == NT_OK)
		st = make_buckets(t);
	if (st == NT_OK)
		st = take_slot(t, ret);
	if (st != NT_OK)
		return st;
	e = &t->entries[*ret];
	*e = (struct an_method_entry){ .module_id = k->module_id,
				       .method_id = k->method_id,
				       .hash = hash,
				       .offset = (uint32_t)t->text_used,
				       .dynamic = k->dynamic,
				       .taken = true };
	e->module_len = put_text(t, k->module);
	e->type_len = put_text(t, k->type);
	e->name_len = put_text(t, k->name);
	e->signature_len = put_text(t, k->signature);
	e->next = t->buckets[hash & (t->bucket_count - 1)];
	t->buckets[hash & (t->bucket_count - 1)] = *ret;
	t->live++;
	return NT_OK;
}

enum nt_status an_method_take(struct an_method_table *t, const struct an_method_key *key,
			      uint32_t *ret)
{
	uint32_t hash = hash_key(key);
	enum nt_status st = NT_OK;

	*ret = find(t, key, hash);
	if (*ret == AN_METHOD_NONE)
		st = add(t, key, hash, ret);
	if (st == NT_ELIMIT) {
		*ret = AN_METHOD_NONE;
		t->dropped++;
		return NT_OK;
	}
	if (st == NT_OK)
		t->entries[*ret].refs++;
	return st;
}

void an_method_ref(struct an_method_table *t, uint32_t method)
{
	t->entries[method].refs++;
}

void an_method_unref(struct an_method_table *t, uint32_t method)
{
	struct an_method_entry *e = &t->entries[method];
	uint32_t *link;

	assert(e->taken && e->refs);
	if (--e->refs || e->face)
		return;
	link = &t->buckets[e->hash & (t->bucket_count - 1)];
	while (*link != method)
		link = &t->entries[*link].next;
	*link = e->next;
	t->text_garbage += text_len(e);
	t->live--;
	e->taken = false;
	e->next = t->free;
	t->free = method;
}

uint64_t an_method_id(const struct an_method_table *t, uint32_t method)
{
	return t->entries[method].method_id;
}

bool an_method_is_nameless(const struct an_method_table *t, uint32_t method, uint64_t method_id)
{
	const struct an_method_entry *e = &t->entries[method];

	return !e->type_len && !e->name_len && !e->signature_len && e->method_id == method_id;
}

/* --- modules --- */

struct an_slice an_module_name(struct an_slice path)
{
	size_t start = 0;

	for (size_t i = 0; i < path.n; i++)
		if (path.p[i] == '/' || path.p[i] == '\\')
			start = i + 1;
	path = an_slice_from(path, start);
	if (path.n > 4) {
		struct an_slice end = an_slice_from(path, path.n - 4);

		if (an_slice_is(end, ".dll") || an_slice_is(end, ".DLL") ||
		    an_slice_is(end, ".exe") || an_slice_is(end, ".EXE"))
			path.n -= 4;
	}
	return path;
}

enum nt_status an_module_note(struct an_method_table *t, uint64_t module_id, struct an_slice path)
{
	uint32_t index = nt_idmap_get(&t->modules, module_id);
	struct an_slice name = an_module_name(path);
	const char **names, *text;

	if (!name.n)
		return NT_OK;
	if (index != NT_IDMAP_NONE && an_slice_is(name, t->module_names[index]))
		return NT_OK;
	if (index == NT_IDMAP_NONE && t->module_count >= MAX_MODULES)
		return NT_OK;
	text = nt_arena_text(&t->module_arena, name.p, name.n);
	if (!text)
		return t->module_arena.full ? NT_OK : NT_ENOMEM;
	if (index != NT_IDMAP_NONE) {
		t->module_names[index] = text;
		return NT_OK;
	}
	names = an_mem_grow(t->alloc, t->module_names, &t->module_cap, t->module_count + 1,
			    sizeof(*names));
	if (!names)
		return NT_ENOMEM;
	t->module_names = names;
	if (nt_idmap_put(&t->modules, module_id, (uint32_t)t->module_count) < 0)
		return NT_ENOMEM;
	names[t->module_count++] = text;
	return NT_OK;
}

/* --- faces --- */

bool an_method_faces_failed(const struct an_method_table *t)
{
	return t->faces->failed;
}

static const char *raw_name(struct an_method_faces *f, struct an_slice type, struct an_slice name)
{
	size_t dot = type.n && name.n;
	char *raw = nt_arena_get(&f->arena, type.n + dot + name.n + 1);

	if (!raw)
		return NULL;
	if (type.n)
		memcpy(raw, type.p, type.n);
	if (dot)
		raw[type.n] = '.';
	if (name.n)
		memcpy(raw + type.n + dot, name.p, name.n);
	raw[type.n + dot + name.n] = '\0';
	return raw;
}

static const char *keep(struct an_method_faces *f, const char *text)
{
	return *text ? nt_arena_text(&f->arena, text, strlen(text)) : "";
}

static const char *module_of(const struct an_method_table *t, const struct an_method_entry *e,
			     struct an_slice named)
{
	uint32_t index;

	if (named.n)
		return nt_arena_text(&t->faces->arena, named.p, named.n);
	index = nt_idmap_get(&t->modules, e->module_id);
	return index == NT_IDMAP_NONE ? "" : t->module_names[index];
}

static struct an_method *make_face(const struct an_method_table *t, uint32_t method)
{
	const struct an_method_entry *e = &t->entries[method];
	struct an_method_faces *f = t->faces;
	const char *p = t->text + e->offset;
	struct an_slice module = { p, e->module_len };
	struct an_slice type = { p + e->module_len, e->type_len };
	struct an_slice name = { type.p + type.n, e->name_len };
	struct an_slice signature = { name.p + name.n, e->signature_len };
	struct an_method *face = nt_arena_array(&f->arena, 1, sizeof(*face));
	char buf[NAME_BYTES];

	if (!face)
		return NULL;
	face->index = method;
	face->dynamic = e->dynamic;
	face->module = module_of(t, e, module);
	face->signature = nt_arena_text(&f->arena, signature.p, signature.n);
	if (type.n || name.n) {
		face->raw = raw_name(f, type, name);
		an_name_tidy(type, name, buf, sizeof(buf));
	} else {
		snprintf(buf, sizeof(buf), "[method 0x%llx]", (unsigned long long)e->method_id);
		face->raw = keep(f, buf);
	}
	face->name = keep(f, buf);
	an_name_args(signature, buf, sizeof(buf));
	face->args = keep(f, buf);
	if (!face->module || !face->signature || !face->raw || !face->name || !face->args)
		return NULL;
	return face;
}

const struct an_method *an_method_face(const struct an_method_table *t, uint32_t method)
{
	struct an_method_entry *e = &t->entries[method];

	if (!e->face) {
		e->face = make_face(t, method);
		if (!e->face && !t->faces->arena.full)
			t->faces->failed = true;
	} else if (!*e->face->module) { /* the name of its module may have come since */
		e->face->module = module_of(t, e, (struct an_slice){ "", 0 });
	}
	return e->face;
}
