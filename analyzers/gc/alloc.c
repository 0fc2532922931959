/* SPDX-License-Identifier: MIT */

/*
 * Allocations: how many bytes of which type, and from where.  Both sources are samples.
 *
 * AllocationTick comes once for about every 100 KiB and says how much that was; all of it is
 * charged to the object that crossed the limit, so large objects show too often and objects cannot
 * be counted.  AllocationSampled (.NET 10) picks each byte with the same small chance, whatever the
 * object; its estimates are unbiased and their error is known (runtime-events.md §8.2).  While it
 * is on, the runtime leaves out nearly all ticks.
 */

#include <string.h>

#include "analyzers/gc/alloc_internal.h"
#include "analyzers/gc/tick.h"
#include "analyzers/grow.h"

enum {
	TICK = 10,
	SAMPLED = 303,
	KIND_LARGE = 1,
	MAX_FIELDS = 12,
	MAX_TYPES = 10 * 1000,
	MAX_CELLS = 100 * 1000,
	MEAN_BYTES = 102400, /* between two sampled bytes */
};

struct analyzer {
	struct alloc a;
};

static struct analyzer *alloc_free(struct analyzer *x)
{
	const struct nt_alloc *al;

	if (!x)
		return NULL;
	al = x->a.shared->alloc;
	an_textset_done(&x->a.names);
	an_mem_free(al, x->a.types);
	an_mem_free(al, x->a.cells);
	nt_idmap_done(&x->a.by_name);
	nt_idmap_done(&x->a.by_id);
	nt_idmap_done(&x->a.by_place);
	an_mem_free(al, x);
	return NULL;
}

static struct analyzer *alloc_new(struct an_shared *shared)
{
	struct analyzer *x = an_mem_get(shared->alloc, sizeof(*x));

	if (!x)
		return NULL;
	x->a.shared = shared;
	an_textset_init(&x->a.names, shared->alloc, MAX_TYPES);
	nt_idmap_init(&x->a.by_name, shared->alloc);
	nt_idmap_init(&x->a.by_id, shared->alloc);
	nt_idmap_init(&x->a.by_place, shared->alloc);
	return x;
}

static bool alloc_wants(const struct nt_event_def *def)
{
	return def->provider_id == NT_PROV_RUNTIME &&
	       (def->event_id == TICK || def->event_id == SAMPLED);
}

void alloc_sum_add(struct alloc_sum *to, const struct alloc_sum *what)
{
	to->samples += what->samples;
	to->large_samples += what->large_samples;
	to->bytes += what->bytes;
	to->large_bytes += what->large_bytes;
	to->objects += what->objects;
	to->variance += what->variance;
}

/* --- types and cells --- */

static enum nt_status new_type(struct alloc *a, const struct alloc_type *type, uint32_t *ret)
{
	struct alloc_type *types = an_mem_grow(a->shared->alloc, a->types, &a->type_cap,
					       a->type_count + 2, sizeof(*types));

	if (!types)
		return NT_ENOMEM;
	a->types = types;
	if (!a->type_count)
		types[a->type_count++] =
			(struct alloc_type){ .text = AN_TEXT_OTHER, .named = true };
	*ret = (uint32_t)a->type_count;
	types[a->type_count++] = *type;
	return NT_OK;
}

/* NativeAOT writes "NULL" for every name. */
static bool has_name(const struct nt_value *name)
{
	static const uint8_t none[] = { 'N', 0, 'U', 0, 'L', 0, 'L', 0 };

	return name->bytes &&
	       (name->bytes != sizeof(none) || memcmp(name->data, none, sizeof(none)) != 0);
}

static enum nt_status find_type(struct alloc *a, const struct nt_value *name, uint64_t type_id,
				uint32_t *ret)
{
	struct alloc_type type = { .text = AN_TEXT_OTHER, .type_id = type_id };
	struct nt_idmap *map = &a->by_id;
	uint64_t key = type_id;
	enum nt_status st;

	type.named = has_name(name);
	if (type.named) {
		st = an_textset_add_value(&a->names, name, &type.text);
		if (st < 0)
			return st;
		map = &a->by_name;
		key = type.text;
	} else {
		a->unnamed++;
	}
	*ret = nt_idmap_get(map, key);
	if (*ret != NT_IDMAP_NONE)
		return NT_OK;
	if (a->type_count >= MAX_TYPES || (type.named && type.text == AN_TEXT_OTHER)) {
		*ret = 0;
		return NT_OK;
	}
	st = new_type(a, &type, ret);
	return st == NT_OK ? nt_idmap_put(map, key, *ret) : st;
}

static enum nt_status add_cell(struct alloc *a, uint32_t type, uint32_t node,
			       const struct alloc_sum *sum)
{
	uint64_t key = (uint64_t)type << 32 | node;
	uint32_t at = nt_idmap_get(&a->by_place, key);
	struct alloc_cell *cells;

	if (at == NT_IDMAP_NONE) {
		if (a->cell_count >= MAX_CELLS) {
			a->crowded++;
			return NT_OK;
		}
		cells = an_mem_grow(a->shared->alloc, a->cells, &a->cell_cap, a->cell_count + 1,
				    sizeof(*cells));
		if (!cells)
			return NT_ENOMEM;
		a->cells = cells;
		at = (uint32_t)a->cell_count;
		if (nt_idmap_put(&a->by_place, key, at) < 0)
			return NT_ENOMEM;
		cells[a->cell_count++] = (struct alloc_cell){ .type = type, .node = node };
	}
	alloc_sum_add(&a->cells[at].sum, sum);
	return NT_OK;
}

/* --- events --- */

/* The chance that at least one of size bytes is picked; nearly 0 for small ones. */
static double chance(uint64_t size)
{
	double missed = 1, base = 1 - 1.0 / MEAN_BYTES;

	for (; size; size >>= 1, base *= base)
		if (size & 1)
			missed *= base;
	return 1 - missed;
}

/* What one event says. */
struct sample {
	struct alloc_sum sum;
	uint64_t type_id;
	struct nt_value type_name; /* borrows the event's payload */
};

static void set_sum(struct alloc_sum *sum, double bytes, bool large)
{
	sum->samples = 1;
	sum->bytes = bytes;
	if (large) {
		sum->large_samples = 1;
		sum->large_bytes = bytes;
	}
}

static void read_sampled(const struct nt_event *ev, struct sample *ret)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	uint64_t size = nt_value_u64(v, n, "ObjectSize", 0);
	const struct nt_value *name = nt_value_find(v, n, "TypeName");
	double p = chance(size ? size : 1), bytes = (double)size / p;

	set_sum(&ret->sum, bytes, nt_value_u64(v, n, "AllocationKind", 0) == KIND_LARGE);
	ret->sum.objects = 1 / p;
	ret->sum.variance = (1 - p) * bytes * bytes;
	ret->type_id = nt_value_u64(v, n, "TypeID", 0);
	if (name)
		ret->type_name = *name;
}

static bool read_tick(const struct nt_event *ev, struct sample *ret)
{
	struct gc_tick tick;

	if (!gc_tick_read(ev, &tick))
		return false;
	set_sum(&ret->sum, (double)tick.bytes, tick.kind == KIND_LARGE);
	ret->type_id = tick.type_id;
	ret->type_name = tick.type_name;
	return true;
}

/* The first sampled allocation: what ticks told is only a part from now on. */
static void forget_ticks(struct alloc *a)
{
	a->ticks_ignored = a->sum.samples;
	a->sum = (struct alloc_sum){ 0 };
	a->with_stack = a->unnamed = a->crowded = 0;
	a->rate = (struct an_rate){ 0 };
	a->type_count = a->cell_count = 0;
	nt_idmap_clear(&a->by_name);
	nt_idmap_clear(&a->by_id);
	nt_idmap_clear(&a->by_place);
}

static enum nt_status alloc_event(struct analyzer *x, const struct nt_event *ev)
{
	struct alloc *a = &x->a;
	bool sampled = ev->def->event_id == SAMPLED;
	struct sample s = { 0 };
	uint32_t type, node = AN_NODE_NONE;
	enum nt_status st;

	if (!sampled && a->source == ALLOC_SAMPLED) {
		a->ticks_ignored++;
		return NT_OK;
	}
	if (sampled)
		read_sampled(ev, &s);
	else if (!read_tick(ev, &s))
		return NT_OK;
	if (sampled && a->source == ALLOC_TICKS)
		forget_ticks(a);
	a->source = sampled ? ALLOC_SAMPLED : ALLOC_TICKS;
	st = find_type(a, &s.type_name, s.type_id, &type);
	if (st == NT_OK)
		st = an_calltree_intern(a->shared->tree, ev, &node);
	if (st < 0)
		return st;
	if (a->type_count)
		alloc_sum_add(&a->types[type].sum, &s.sum);
	alloc_sum_add(&a->sum, &s.sum);
	a->with_stack += node != AN_NODE_NONE;
	an_rate_add(&a->rate, ev->time_ns, s.sum.bytes < 1e15 ? (uint64_t)s.sum.bytes : 0);
	return add_cell(a, type, node, &s.sum);
}

static enum nt_status report(struct analyzer *x, struct an_report *out)
{
	return alloc_report(&x->a, out);
}

/* Ticks come at the level Verbose, with much else: only for those who ask. */
static const struct an_provider on_request[] = {
	{ .name = "Microsoft-Windows-DotNETRuntime", .keywords = 0x1, .level = 5 },
	{ 0 },
};

const struct an_class an_class_alloc = {
	.name = "alloc",
	.summary = "allocated bytes by type and by call site, from samples",
	.on_request = on_request,
	.wants = alloc_wants,
	.new = alloc_new,
	.event = alloc_event,
	.report = report,
	.free = alloc_free,
	.needs = AN_NEED_ORDER | AN_NEED_STACKS,
	.symptom = "memory fills with garbage: who allocates what, and where",
	.cost = AN_COST_MODERATE,
	.seconds = 30,
	.params = an_params_rows,
};
