/* SPDX-License-Identifier: MIT */
#include "analyzers/textset.h"

#include <string.h>

#include "analyzers/grow.h"

enum { MAX_PROBES = 64 }; /* texts of one hash; more are refused */

void an_textset_init(struct an_textset *s, const struct nt_alloc *alloc, size_t max)
{
	*s = (struct an_textset){ .alloc = alloc, .max = max };
	nt_idmap_init(&s->by_hash, alloc);
}

void an_textset_done(struct an_textset *s)
{
	an_mem_free(s->alloc, s->pool);
	an_mem_free(s->alloc, s->at);
	nt_idmap_done(&s->by_hash);
}

static enum nt_status append(struct an_textset *s, const char *text, size_t n, uint64_t hash,
			     uint32_t *ret)
{
	uint32_t *at;
	char *pool;

	*ret = AN_TEXT_OTHER;
	if (s->count >= s->max) {
		s->refused++;
		return NT_OK;
	}
	at = an_mem_grow(s->alloc, s->at, &s->cap, s->count + 1, sizeof(*at));
	if (!at)
		return NT_ENOMEM;
	s->at = at;
	pool = an_mem_grow(s->alloc, s->pool, &s->pool_cap, s->pool_used + n + 1, 1);
	if (!pool)
		return NT_ENOMEM;
	s->pool = pool;
	if (nt_idmap_put(&s->by_hash, hash, (uint32_t)s->count) < 0)
		return NT_ENOMEM;
	memcpy(pool + s->pool_used, text, n);
	pool[s->pool_used + n] = '\0';
	at[s->count] = (uint32_t)s->pool_used;
	s->pool_used += n + 1;
	*ret = (uint32_t)s->count++;
	return NT_OK;
}

static enum nt_status find(struct an_textset *s, const char *text, size_t n, uint32_t *ret)
{
	uint64_t hash = an_hash(text, n, 0);

	for (size_t i = 0; i < MAX_PROBES; i++, hash += UINT64_C(0x9e3779b97f4a7c15)) {
		uint32_t at = nt_idmap_get(&s->by_hash, hash);
		const char *known;

		if (at == NT_IDMAP_NONE)
			return append(s, text, n, hash, ret);
		known = s->pool + s->at[at];
		if (!strncmp(known, text, n) && !known[n]) {
			*ret = at;
			return NT_OK;
		}
	}
	s->refused++;
	*ret = AN_TEXT_OTHER;
	return NT_OK;
}

enum nt_status an_textset_add(struct an_textset *s, const char *text, uint32_t *ret)
{
	return find(s, text, strnlen(text, AN_TEXT_BYTES - 1), ret);
}

enum nt_status an_textset_add_value(struct an_textset *s, const struct nt_value *v, uint32_t *ret)
{
	char buf[AN_TEXT_BYTES];

	buf[0] = '\0';
	if (v)
		nt_value_text(v, buf, sizeof(buf));
	return find(s, buf, strlen(buf), ret);
}

const char *an_textset_get(const struct an_textset *s, uint32_t text)
{
	return text < s->count ? s->pool + s->at[text] : "[other]";
}
