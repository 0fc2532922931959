/* SPDX-License-Identifier: MIT */
#include "analyzers/methods.h"

#include <stdio.h>

#include "analyzers/grow.h"
#include "analyzers/methods_impl.h"
#include "nettrace/span.h"

enum {
	MAX_LIVE = 400 * 1000,
	MAX_OLD = 200 * 1000,
	MAX_REUSE = 100 * 1000,
	MAX_FILE_BYTES = 8 << 20,
};

/* Ids of events, where both providers use them (runtime-events: methods, loader, rundown). */
enum {
	METHOD_LOAD = 141,
	METHOD_UNLOAD = 142,
	METHOD_LOAD_VERBOSE = 143,
	METHOD_UNLOAD_VERBOSE = 144,
	RUNTIME_DOMAIN_MODULE_LOAD = 151,
	RUNTIME_MODULE_LOAD = 152,
	RUNDOWN_METHOD_START = 141,
	RUNDOWN_METHOD_END_VERBOSE = 144,
	RUNDOWN_COMPLETE = 146,
	RUNDOWN_BEGIN = 148,
	RUNDOWN_DOMAIN_MODULE_START = 151,
	RUNDOWN_DOMAIN_MODULE_END = 152,
	RUNDOWN_MODULE_START = 153,
	RUNDOWN_MODULE_END = 154,
};

enum { FLAG_DYNAMIC = 1 };

struct an_methods *an_methods_new(const struct nt_alloc *alloc)
{
	struct an_methods *m;

	if (!alloc)
		alloc = &nt_alloc_default;
	m = an_mem_get(alloc, sizeof(*m));
	if (!m)
		return NULL;
	m->alloc = alloc;
	an_ranges_init(&m->live, alloc, MAX_LIVE);
	an_ranges_init(&m->old, alloc, MAX_OLD);
	an_ranges_init(&m->files, alloc, MAX_OLD);
	nt_arena_init(&m->file_arena, alloc, MAX_FILE_BYTES);
	nt_idmap_init(&m->reuse, alloc);
	nt_idmap_init(&m->files_by_name, alloc);
	m->next_epoch = 1;
	m->spaces = an_mem_get(alloc, sizeof(*m->spaces));
	if (m->spaces)
		nt_idmap_init(&m->spaces->by_pid, alloc);
	if (an_method_table_init(&m->table, alloc) < 0 || !m->spaces)
		return an_methods_free(m);
	return m;
}

struct an_methods *an_methods_free(struct an_methods *m)
{
	if (!m)
		return NULL;
	an_method_table_done(&m->table);
	an_ranges_done(&m->live);
	an_ranges_done(&m->old);
	an_ranges_done(&m->files);
	an_mem_free(m->alloc, m->file_names);
	nt_arena_done(&m->file_arena);
	nt_idmap_done(&m->reuse);
	nt_idmap_done(&m->files_by_name);
	if (m->spaces)
		nt_idmap_done(&m->spaces->by_pid);
	an_mem_free(m->alloc, m->spaces);
	an_mem_free(m->alloc, m->scratch);
	an_mem_free(m->alloc, m);
	return NULL;
}

/* --- processes and epochs --- */

static uint32_t space_of(uint32_t epoch)
{
	return epoch >> AN_EPOCH_BITS;
}

static uint32_t base_of(uint32_t epoch)
{
	return epoch & ~((UINT32_C(1) << AN_EPOCH_BITS) - 1);
}

uint32_t an_methods_base(const struct an_methods *m, const struct nt_event *ev)
{
	struct an_methods_spaces *s = m->spaces;
	uint32_t space;

	if (ev->trace->format < 6 || ev->process_id < 0)
		return 0;
	space = nt_idmap_get(&s->by_pid, (uint64_t)ev->process_id);
	if (space == NT_IDMAP_NONE) {
		if (s->count + 1 >= AN_MAX_SPACES)
			return (uint32_t)AN_MAX_SPACES << AN_EPOCH_BITS;
		space = s->count + 1;
		if (nt_idmap_put(&s->by_pid, (uint64_t)ev->process_id, space) < 0) {
			s->failed = true;
			return (uint32_t)AN_MAX_SPACES << AN_EPOCH_BITS;
		}
		s->count++;
	}
	return space << AN_EPOCH_BITS;
}

uint32_t an_methods_epoch_in(const struct an_methods *m, uint32_t base, uint64_t addr)
{
	struct an_range *x = an_ranges_at(&m->live, space_of(base), addr);

	if (!x)
		return base;
	x->used = true;
	return x->epoch;
}

uint32_t an_methods_epoch(const struct an_methods *m, uint64_t addr)
{
	return an_methods_epoch_in(m, 0, addr);
}

uint64_t an_methods_changes(const struct an_methods *m)
{
	return m->changes;
}

/* --- code ranges --- */

static uint64_t reuse_key(uint32_t space, uint64_t start, uint64_t last, uint32_t method)
{
	uint64_t h = start * 0x9e3779b97f4a7c15u;

	h = (h ^ (h >> 29) ^ last) * 0xbf58476d1ce4e5b9u;
	h = (h ^ (h >> 32) ^ method) * 0x94d049bb133111ebu;
	return h ^ (h >> 31) ^ space;
}

/*
 * Keeps [start, last] of code that is about to be replaced, for the addresses that were taken from
 * it.  What was never asked for needs no keeping, unless it holds from the beginning: an address
 * may have been seen before its code was known.
 */
static enum nt_status retire(struct an_methods *m, const struct an_range *was, uint64_t start,
			     uint64_t last)
{
	struct an_range x = *was;
	enum nt_status st;

	if (start < was->start)
		start = was->start;
	if (last > was->last)
		last = was->last;
	if (!was->used && was->epoch != base_of(was->epoch))
		return NT_OK;
	if (an_ranges_first(&m->old, was->epoch, start, last))
		return NT_OK; /* from the time before */
	x.start = start;
	x.last = last;
	x.space = was->epoch;
	st = an_ranges_add(&m->old, &x);
	if (st == NT_ELIMIT) {
		m->dropped++;
		return NT_OK;
	}
	if (st < 0)
		return st;
	an_method_ref(&m->table, was->value);
	if (!was->whole || start != was->start || last != was->last)
		return NT_OK;
	if (m->reuse.used >= MAX_REUSE)
		nt_idmap_clear(&m->reuse);
	return nt_idmap_put(&m->reuse, reuse_key(was->space, start, last, was->value), was->epoch);
}

/* Takes [start, last] away from whatever code is there. */
static enum nt_status clear_range(struct an_methods *m, uint32_t space, uint64_t start,
				  uint64_t last)
{
	struct an_range *x;

	while ((x = an_ranges_first(&m->live, space, start, last))) {
		struct an_range was = *x;
		enum nt_status st = retire(m, &was, start, last);

		if (st < 0)
			return st;
		if (was.start >= start && was.last <= last) {
			an_ranges_remove(&m->live, x);
			an_method_unref(&m->table, was.value);
			continue;
		}
		x->whole = false;
		if (was.start >= start) {
			x->start = last + 1;
			continue;
		}
		x->last = start - 1;
		if (was.last <= last)
			continue;
		was.start = last + 1;
		was.whole = false;
		st = an_ranges_add(&m->live, &was);
		if (st == NT_OK)
			an_method_ref(&m->table, was.value);
		else if (st == NT_ELIMIT)
			m->dropped++;
		else
			return st;
	}
	return NT_OK;
}

/* The epoch of a method loaded over other code; false when there is no number left. */
static bool choose_epoch(struct an_methods *m, uint32_t base, uint64_t start, uint64_t last,
			 uint32_t method, uint32_t *ret)
{
	uint32_t space = space_of(base);
	const struct an_range *x = an_ranges_first(&m->live, space, start, last);
	uint32_t epoch = x->epoch, pieces = 0;
	bool same = true, unused = !x->used;

	while (x) {
		same = same && x->value == method && x->epoch == epoch;
		pieces++;
		if (x->last >= last || pieces > 1)
			break;
		x = an_ranges_first(&m->live, space, x->last + 1, last);
	}
	if (same && pieces == 1) {
		*ret = epoch;
		return true;
	}
	*ret = nt_idmap_get(&m->reuse, reuse_key(space, start, last, method));
	if (*ret != NT_IDMAP_NONE)
		return true;
	if (pieces == 1 && unused && epoch != base) {
		*ret = epoch; /* nobody has this number */
		return true;
	}
	if (m->next_epoch >> AN_EPOCH_BITS)
		return false;
	*ret = base | m->next_epoch++;
	return true;
}

/* Whether the range is known as it is, or only lacked its name; take_method is used up then. */
static bool is_known(struct an_methods *m, struct an_range *x, uint64_t start, uint64_t last,
		     enum an_tier tier, uint32_t take_method)
{
	const struct an_method_table *t = &m->table;

	if (!x || x->start != start || x->last != last)
		return false;
	if (x->value != take_method) {
		uint64_t id = an_method_id(t, take_method);

		if (an_method_is_nameless(t, x->value, id)) {
			uint32_t nameless = x->value;

			x->value = take_method;
			take_method = nameless;
		} else if (!an_method_is_nameless(t, take_method, id) ||
			   an_method_id(t, x->value) != id) {
			return false;
		}
	}
	if (tier != AN_TIER_UNKNOWN)
		x->tier = (uint8_t)tier;
	an_method_unref(&m->table, take_method);
	return true;
}

enum nt_status an_methods_load(struct an_methods *m, uint32_t base, uint64_t start, uint64_t last,
			       enum an_tier tier, uint32_t take_method)
{
	struct an_range x = { .start = start,
			      .last = last,
			      .space = space_of(base),
			      .value = take_method,
			      .epoch = base,
			      .whole = true,
			      .tier = (uint8_t)tier };
	struct an_range *there = an_ranges_first(&m->live, x.space, start, last);
	enum nt_status st = NT_OK;

	if (is_known(m, there, start, last, tier, take_method))
		return NT_OK;
	if (there) {
		m->changes++;
		if (!choose_epoch(m, base, start, last, take_method, &x.epoch))
			st = NT_ELIMIT;
		else
			st = clear_range(m, x.space, start, last);
	}
	if (st == NT_OK)
		st = an_ranges_add(&m->live, &x);
	if (st == NT_OK)
		return NT_OK;
	an_method_unref(&m->table, take_method);
	if (st != NT_ELIMIT)
		return st;
	m->dropped++;
	return NT_OK;
}

/* --- events --- */

/* Converts into the scratch buffer, from *used on. */
static struct an_slice put_utf8(struct an_methods *m, struct nt_span utf16, size_t *used)
{
	struct an_slice s = { .p = m->scratch + *used };

	s.n = nt_utf16_to_utf8(utf16.cur, nt_left(&utf16), m->scratch + *used,
			       m->scratch_cap - *used);
	*used += s.n;
	return s;
}

/* Room for all text of a payload as UTF-8. */
static enum nt_status make_scratch(struct an_methods *m, size_t payload_bytes)
{
	char *p = an_mem_grow(m->alloc, m->scratch, &m->scratch_cap,
			      payload_bytes + payload_bytes / 2 + 4, 1);

	if (!p)
		return NT_ENOMEM;
	m->scratch = p;
	return NT_OK;
}

static enum nt_status on_method(struct an_methods *m, const struct nt_event *ev, bool unload)
{
	struct nt_span s = nt_span_of(ev->payload, ev->payload_bytes);
	bool verbose = ev->def->event_id >= METHOD_LOAD_VERBOSE;
	uint32_t base = an_methods_base(m, ev), size, flags, method;
	struct an_method_key key = { .method_id = nt_u64(&s) };
	uint64_t start, last;
	size_t used = 0;
	enum nt_status st;

	key.module_id = nt_u64(&s);
	start = nt_u64(&s);
	size = nt_u32(&s);
	nt_u32(&s); /* token */
	flags = nt_u32(&s);
	if (s.bad || !size || __builtin_add_overflow(start, size - 1, &last) ||
	    base >> AN_EPOCH_BITS == AN_MAX_SPACES) {
		m->bad_ranges++;
		return NT_OK;
	}
	key.dynamic = flags & FLAG_DYNAMIC;
	if (verbose) {
		struct nt_span type = nt_take_utf16(&s), name = nt_take_utf16(&s);
		struct nt_span signature = nt_take_utf16(&s);

		st = make_scratch(m, ev->payload_bytes);
		if (st < 0)
			return st;
		key.type = put_utf8(m, type, &used);
		key.name = put_utf8(m, name, &used);
		key.signature = put_utf8(m, signature, &used);
	}
	/* Code that leaves says who was there, if nothing else has. */
	if (unload && (!verbose || an_ranges_first(&m->live, space_of(base), start, last)))
		return NT_OK;
	st = an_method_take(&m->table, &key, &method);
	if (st < 0 || method == AN_METHOD_NONE)
		return st;
	return an_methods_load(m, base, start, last, an_tier_of_flags(flags), method);
}

static enum nt_status on_module(struct an_methods *m, const struct nt_event *ev, size_t to_path)
{
	struct nt_span s = nt_span_of(ev->payload, ev->payload_bytes);
	uint64_t id = nt_u64(&s);
	struct nt_span il, native;
	struct an_slice path;
	enum nt_status st;
	size_t used = 0;

	nt_take(&s, to_path - sizeof(id));
	if (s.bad)
		return NT_OK;
	il = nt_take_utf16(&s);
	native = nt_take_utf16(&s);
	st = make_scratch(m, ev->payload_bytes);
	if (st < 0)
		return st;
	path = put_utf8(m, nt_left(&il) ? il : native, &used);
	return an_module_note(&m->table, id, path);
}

/* Bytes before the path: ids of module, assembly (and domain), flags, a reserved word. */
enum { TO_PATH_MODULE = 8 + 8 + 4 + 4, TO_PATH_DOMAIN_MODULE = 8 + 8 + 8 + 4 + 4 };

static enum nt_status on_runtime(struct an_methods *m, const struct nt_event *ev)
{
	switch (ev->def->event_id) {
	case METHOD_LOAD:
	case METHOD_LOAD_VERBOSE:
		return on_method(m, ev, false);
	case METHOD_UNLOAD:
	case METHOD_UNLOAD_VERBOSE:
		return on_method(m, ev, true);
	case RUNTIME_DOMAIN_MODULE_LOAD:
		return on_module(m, ev, TO_PATH_DOMAIN_MODULE);
	case RUNTIME_MODULE_LOAD:
		return on_module(m, ev, TO_PATH_MODULE);
	default:
		return NT_OK;
	}
}

static enum nt_status on_rundown(struct an_methods *m, const struct nt_event *ev)
{
	uint32_t id = ev->def->event_id;

	if (id >= RUNDOWN_METHOD_START && id <= RUNDOWN_METHOD_END_VERBOSE)
		return on_method(m, ev, false);
	switch (id) {
	case RUNDOWN_BEGIN:
		m->rundown_begun = true;
		return NT_OK;
	case RUNDOWN_COMPLETE:
		m->rundown_complete = true;
		return NT_OK;
	case RUNDOWN_DOMAIN_MODULE_START:
	case RUNDOWN_DOMAIN_MODULE_END:
		return on_module(m, ev, TO_PATH_DOMAIN_MODULE);
	case RUNDOWN_MODULE_START:
	case RUNDOWN_MODULE_END:
		return on_module(m, ev, TO_PATH_MODULE);
	default:
		return NT_OK;
	}
}

bool an_methods_wants(const struct nt_event_def *def)
{
	uint32_t id = def->event_id;

	switch (def->provider_id) {
	case NT_PROV_RUNTIME:
		return (id >= METHOD_LOAD && id <= METHOD_UNLOAD_VERBOSE) ||
		       id == RUNTIME_DOMAIN_MODULE_LOAD || id == RUNTIME_MODULE_LOAD;
	case NT_PROV_RUNDOWN:
		return (id >= RUNDOWN_METHOD_START && id <= RUNDOWN_METHOD_END_VERBOSE) ||
		       id == RUNDOWN_BEGIN || id == RUNDOWN_COMPLETE ||
		       (id >= RUNDOWN_DOMAIN_MODULE_START && id <= RUNDOWN_MODULE_END);
	default:
		return an_universal_wants(def);
	}
}

enum nt_status an_methods_event(struct an_methods *m, const struct nt_event *ev)
{
	if (!an_methods_wants(ev->def))
		return NT_OK;
	if (ev->def->provider_id == NT_PROV_RUNTIME)
		return on_runtime(m, ev);
	if (ev->def->provider_id == NT_PROV_RUNDOWN)
		return on_rundown(m, ev);
	return an_universal_event(m, ev);
}

/* --- look-ups --- */

static const struct an_range *range_at(const struct an_methods *m, uint64_t addr, uint32_t epoch)
{
	const struct an_range *x = an_ranges_at(&m->live, space_of(epoch), addr);

	return x && x->epoch == epoch ? x : an_ranges_at(&m->old, epoch, addr);
}

const struct an_method *an_methods_find(const struct an_methods *m, uint64_t addr, uint32_t epoch)
{
	const struct an_range *x = range_at(m, addr, epoch);

	return x ? an_method_face(&m->table, x->value) : NULL;
}

enum an_tier an_methods_tier(const struct an_methods *m, uint64_t addr, uint32_t epoch)
{
	const struct an_range *x = range_at(m, addr, epoch);

	return x ? (enum an_tier)x->tier : AN_TIER_UNKNOWN;
}

static const char *const tier_names[AN_TIERS] = {
	[AN_TIER_UNKNOWN] = "Unknown",
	[AN_TIER_MINOPT] = "MinOptJitted",
	[AN_TIER_OPTIMIZED] = "Optimized",
	[AN_TIER_QUICK] = "QuickJitted",
	[AN_TIER_1] = "OptimizedTier1",
	[AN_TIER_1_OSR] = "OptimizedTier1OSR",
	[AN_TIER_QUICK_INSTRUMENTED] = "QuickJittedInstrumented",
	[AN_TIER_1_INSTRUMENTED] = "OptimizedTier1Instrumented",
};

const char *an_tier_name(enum an_tier tier)
{
	return tier_names[tier];
}

bool an_tier_is_quick(enum an_tier tier)
{
	return tier == AN_TIER_MINOPT || tier == AN_TIER_QUICK ||
	       tier == AN_TIER_QUICK_INSTRUMENTED;
}

const char *an_methods_module_at(const struct an_methods *m, uint64_t addr, uint32_t epoch)
{
	const struct an_range *x = an_ranges_at(&m->files, space_of(epoch), addr);

	return x ? m->file_names[x->value] : "";
}

void an_methods_describe_at(const struct an_methods *m, uint64_t addr, uint32_t epoch, char *buf,
			    size_t size)
{
	const char *module = an_methods_module_at(m, addr, epoch);

	if (*module)
		snprintf(buf, size, "%s!0x%llx", module, (unsigned long long)addr);
	else
		snprintf(buf, size, "[unknown 0x%llx]", (unsigned long long)addr);
}

bool an_methods_is_replaced(const struct an_methods *m, uint64_t callee, uint64_t caller)
{
	const struct an_range *now = an_ranges_at(&m->live, 0, callee);
	const struct an_range *old = an_ranges_at(&m->live, 0, caller);

	return now && old && now->value == old->value && now->start != old->start;
}

size_t an_methods_count(const struct an_methods *m)
{
	return m->table.count;
}

bool an_methods_rundown_complete(const struct an_methods *m)
{
	return m->rundown_complete;
}

bool an_methods_rundown_begun(const struct an_methods *m)
{
	return m->rundown_begun;
}

uint64_t an_methods_dropped(const struct an_methods *m)
{
	return m->dropped + m->table.dropped;
}

uint64_t an_methods_bad_ranges(const struct an_methods *m)
{
	return m->bad_ranges;
}

enum nt_status an_methods_status(const struct an_methods *m)
{
	return m->spaces->failed || an_method_faces_failed(&m->table) ? NT_ENOMEM : NT_OK;
}
