/* SPDX-License-Identifier: MIT */
#include "nettrace/idmap.h"

#include <string.h>

enum { FIRST_SLOTS = 64 };

void nt_idmap_init(struct nt_idmap *m, const struct nt_alloc *alloc)
{
	*m = (struct nt_idmap){ .alloc = alloc };
}

void nt_idmap_done(struct nt_idmap *m)
{
	if (m->keys)
		m->alloc->realloc(m->alloc->ctx, m->keys, 0);
	if (m->values)
		m->alloc->realloc(m->alloc->ctx, m->values, 0);
	nt_idmap_init(m, m->alloc);
}

void nt_idmap_clear(struct nt_idmap *m)
{
	if (m->slots > 65536) {
		nt_idmap_done(m); /* do not sweep a huge table for ever after */
		return;
	}
	if (m->used)
		memset(m->values, 0xff, m->slots * sizeof(*m->values));
	m->used = 0;
}

static size_t slot_of(uint64_t key, size_t slots)
{
	key ^= key >> 32;
	key *= 0x9e3779b97f4a7c15u;
	key ^= key >> 29;
	key *= 0xbf58476d1ce4e5b9u;
	key ^= key >> 32;
	return (size_t)key & (slots - 1);
}

uint32_t nt_idmap_get(const struct nt_idmap *m, uint64_t key)
{
	size_t i;

	if (!m->used)
		return NT_IDMAP_NONE;
	i = slot_of(key, m->slots);
	while (m->values[i] != NT_IDMAP_NONE && m->keys[i] != key)
		i = (i + 1) & (m->slots - 1);
	return m->values[i];
}

static void insert(uint64_t *keys, uint32_t *values, size_t slots, uint64_t key, uint32_t value)
{
	size_t i = slot_of(key, slots);

	while (values[i] != NT_IDMAP_NONE && keys[i] != key)
		i = (i + 1) & (slots - 1);
	keys[i] = key;
	values[i] = value;
}

static enum nt_status grow(struct nt_idmap *m)
{
	size_t slots = m->slots ? m->slots * 2 : FIRST_SLOTS;
	const struct nt_alloc *al = m->alloc;
	uint64_t *keys;
	uint32_t *values;

	if (slots > SIZE_MAX / sizeof(*keys))
		return NT_ENOMEM;
	keys = al->realloc(al->ctx, NULL, slots * sizeof(*keys));
	values = keys ? al->realloc(al->ctx, NULL, slots * sizeof(*values)) : NULL;
	if (!values) {
		if (keys)
			al->realloc(al->ctx, keys, 0);
		return NT_ENOMEM;
	}
	memset(values, 0xff, slots * sizeof(*values));
	for (size_t i = 0; i < m->slots; i++)
		if (m->values[i] != NT_IDMAP_NONE)
			insert(keys, values, slots, m->keys[i], m->values[i]);
	if (m->keys) {
		al->realloc(al->ctx, m->keys, 0);
		al->realloc(al->ctx, m->values, 0);
	}
	m->keys = keys;
	m->values = values;
	m->slots = slots;
	return NT_OK;
}

enum nt_status nt_idmap_put(struct nt_idmap *m, uint64_t key, uint32_t value)
{
	if (nt_idmap_get(m, key) == NT_IDMAP_NONE) {
		if (m->used + m->used / 2 + 1 >= m->slots && grow(m) < 0)
			return NT_ENOMEM;
		m->used++;
	}
	insert(m->keys, m->values, m->slots, key, value);
	return NT_OK;
}
