/* SPDX-License-Identifier: MIT */

/* What one collection did: sizes, what survived, why this generation, where time went. */

#include "analyzers/gc/gc_internal.h"
#include "analyzers/grow.h"
#include "nettrace/span.h"

enum {
	MAX_FIELDS = 24,
	MAX_GENERATIONS = 16, /* of an event, more than any runtime has */
	POINTERS_A_GENERATION = 10,
	DECISION_RECORDED = 1u << 31,
};

/* Belongs to the collection that ended last. */
void gc_heap_stats(struct gc *g, const struct nt_event *ev)
{
	static const char *const sizes[GC_SIZES] = { "GenerationSize0", "GenerationSize1",
						     "GenerationSize2", "GenerationSize3",
						     "GenerationSize4" };
	static const char *const promoted[GC_SIZES] = { "TotalPromotedSize0", "TotalPromotedSize1",
							"TotalPromotedSize2", "TotalPromotedSize3",
							"TotalPromotedSize4" };
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	struct gc_collection *c = NULL;

	if (g->have_last_ended)
		c = gc_find(g, g->last_number, g->last_type);
	if (!c || c->have_stats || !nt_value_find(v, n, sizes[0]))
		return;
	c->have_stats = true;
	for (unsigned i = 0; i < GC_SIZES; i++) {
		if (!nt_value_find(v, n, sizes[i]))
			break;
		c->size_count = i + 1;
		c->heap_after_bytes += nt_value_u64(v, n, sizes[i], 0);
		c->promoted[i] = nt_value_u64(v, n, promoted[i], 0);
		c->promoted_bytes += c->promoted[i];
	}
	c->pinned_objects = nt_value_u64(v, n, "PinnedObjectCount", 0);
	c->handles = nt_value_u64(v, n, "GCHandleCount", 0);
	c->finalizable = nt_value_u64(v, n, "FinalizationPromotedCount", 0);
	c->finalizable_bytes = nt_value_u64(v, n, "FinalizationPromotedSize", 0);
	g->have_promoted = true;
	g->promoted_bytes += c->promoted_bytes;
	g->pinned_collections++;
	g->pinned += c->pinned_objects;
	if (c->pinned_objects > g->pinned_max)
		g->pinned_max = c->pinned_objects;
	g->finalizers.survivors += c->finalizable;
	if (c->finalizable > g->finalizers.survivors_max)
		g->finalizers.survivors_max = c->finalizable;
}

/*
 * How much generation 0 and the heaps of large and pinned objects have grown since the collection
 * before: what was allocated meanwhile.  A background collection frees large objects in between,
 * so that is the least.  Its own sizes are of another time.
 */
static void note_growth(struct gc *g, const struct gc_collection *c)
{
	static const size_t grow[] = { 0, GC_LARGE, GC_PINNED };
	uint64_t bytes = 0;

	if (c->type == GC_BACKGROUND)
		return;
	for (size_t i = 0; i < sizeof(grow) / sizeof(grow[0]) && g->have_after; i++) {
		size_t k = grow[i];

		if (c->sizes[k].before > g->after[k])
			bytes += c->sizes[k].before - g->after[k];
	}
	if (g->have_after && c->heaps) {
		g->grown_bytes += bytes;
		g->grown_ns += an_elapsed(g->after_ns, c->start_ns);
		an_rate_add(&g->grown, c->start_ns, bytes);
	}
	for (size_t k = 0; k < GC_SIZES; k++)
		g->after[k] = c->sizes[k].after;
	g->after_ns = c->start_ns;
	g->have_after = c->heaps > 0; /* else nothing is known of it, and of what came next */
}

/* Sizes of the generations before and after; one event for each heap. */
void gc_per_heap(struct gc *g, const struct nt_event *ev)
{
	struct nt_span s = nt_span_of(ev->payload, ev->payload_bytes);
	size_t pointer = ev->trace->pointer_size == 4 ? 4 : 8;
	struct gc_collection *c = gc_current(g);
	struct gc_sizes sizes[MAX_GENERATIONS] = { 0 };
	uint32_t generations, condemned[2], compact;

	nt_take(&s, 2 + 6 * pointer + 4); /* up to the reasons */
	condemned[0] = nt_u32(&s);
	condemned[1] = nt_u32(&s);
	compact = nt_u32(&s);
	nt_take(&s, 4 + 4 + pointer); /* up to the number of generations */
	generations = nt_u32(&s);
	if (s.bad || generations > MAX_GENERATIONS || !c)
		return;
	for (uint32_t i = 0; i < generations; i++) {
		uint64_t v[POINTERS_A_GENERATION];

		for (size_t k = 0; k < POINTERS_A_GENERATION; k++)
			v[k] = nt_pointer(&s, pointer);
		sizes[i] = (struct gc_sizes){ .before = v[0],
					      .free_before = v[1] + v[2],
					      .after = v[3],
					      .free_after = v[4] + v[5],
					      .survived = v[7] + v[8] };
	}
	if (s.bad)
		return;
	c->heaps++;
	for (uint32_t i = 0; i < generations; i++)
		c->heap_before_bytes += sizes[i].before;
	for (uint32_t i = 0; i < GC_SIZES; i++) {
		c->sizes[i].before += sizes[i].before;
		c->sizes[i].free_before += sizes[i].free_before;
		c->sizes[i].after += sizes[i].after;
		c->sizes[i].free_after += sizes[i].free_after;
		c->sizes[i].survived += sizes[i].survived;
	}
	if (!c->have_condemned) {
		c->condemned0 = condemned[0];
		c->have_condemned = true;
	}
	c->condemned1 |= condemned[1];
	if (compact & DECISION_RECORDED)
		c->compact |= compact & ~DECISION_RECORDED;
}

void gc_global(struct gc *g, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	struct gc_collection *c = gc_current(g);
	struct nt_span s = nt_span_of(ev->payload, ev->payload_bytes);
	uint32_t count;

	if (!c || !nt_value_find(v, n, "NumHeaps"))
		return;
	c->have_global = true;
	c->budget_bytes = nt_value_u64(v, n, "FinalYoungestDesired", 0);
	c->heap_count = (uint32_t)nt_value_u64(v, n, "NumHeaps", 0);
	c->mechanisms = (uint32_t)nt_value_u64(v, n, "GlobalMechanisms", 0);
	if (nt_value_find(v, n, "PauseMode")) {
		c->have_pause_mode = true;
		c->pause_mode = (uint32_t)nt_value_u64(v, n, "PauseMode", 0);
		c->memory_load = (uint32_t)nt_value_u64(v, n, "MemoryPressure", 0);
	}
	if (nt_value_find(v, n, "CondemnReasons0")) {
		c->have_condemned = true;
		c->condemned0 = (uint32_t)nt_value_u64(v, n, "CondemnReasons0", 0);
		c->condemned1 |= (uint32_t)nt_value_u64(v, n, "CondemnReasons1", 0);
	}
	if (c->heap_count > g->heap_count && c->heap_count <= UINT16_MAX)
		g->heap_count = c->heap_count;
	g->budget_bytes = c->budget_bytes;
	if (!nt_value_find(v, n, "Count"))
		return;
	nt_take(&s, 46); /* up to the number of times */
	count = nt_u32(&s);
	for (uint32_t i = 0; i < count && i < GC_PHASES; i++)
		c->phase_us[i] = nt_u32(&s);
	c->phases = s.bad ? 0 : count < GC_PHASES ? count : GC_PHASES;
}

static struct gc_mark *find_mark(struct gc *g, struct gc_collection *c, uint32_t heap,
				 uint32_t roots, int64_t *ret_from_ns)
{
	struct gc_mark *marks, *found = NULL;

	*ret_from_ns = c->start_ns;
	for (size_t i = 0; i < c->mark_count; i++) {
		struct gc_mark *m = &c->marks[i];

		if (m->heap != heap)
			continue;
		if (m->until_ns > *ret_from_ns)
			*ret_from_ns = m->until_ns;
		if (m->roots == roots)
			found = m;
	}
	if (found)
		return found;
	marks = an_mem_grow(g->shared->alloc, c->marks, &c->mark_cap, c->mark_count + 1,
			    sizeof(*marks));
	if (!marks)
		return NULL;
	c->marks = marks;
	marks[c->mark_count] = (struct gc_mark){ .heap = heap, .roots = roots };
	return &marks[c->mark_count++];
}

/* Comes when all objects reached from one kind of roots of one heap are marked. */
enum nt_status gc_mark(struct gc *g, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	uint64_t heap = nt_value_u64(v, n, "HeapNum", GC_HEAPS);
	uint64_t roots = nt_value_u64(v, n, "Type", GC_ROOTS);
	struct gc_collection *c = gc_current(g);
	struct gc_mark *m;
	uint64_t ns, bytes;
	int64_t from;

	if (!c || heap >= GC_HEAPS || roots >= GC_ROOTS)
		return NT_OK;
	m = find_mark(g, c, (uint32_t)heap, (uint32_t)roots, &from);
	if (!m)
		return NT_ENOMEM;
	ns = an_elapsed(from, ev->time_ns);
	bytes = nt_value_u64(v, n, "Promoted", 0);
	m->until_ns = ev->time_ns;
	m->ns += ns;
	m->bytes += bytes;
	g->have_roots = true;
	g->root_ns[roots] += ns;
	g->root_bytes[roots] += bytes;
	return NT_OK;
}

static bool has_name(const struct nt_value *name, const char *wanted)
{
	char text[32] = "";

	if (name)
		nt_value_text(name, text, sizeof(text));
	return strcmp(text, wanted) == 0;
}

/* CommittedUsage, before and after each collection; other names tell of other things. */
void gc_dynamic(struct gc *g, const struct nt_event *ev)
{
	enum { LAYOUT = 1, BYTES = 42 };
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	const struct nt_value *data = nt_value_find(v, n, "Data");
	struct gc_collection *c = gc_current(g);
	struct nt_span s;
	uint64_t committed;

	if (!data || data->kind != NT_V_BYTES || data->bytes < BYTES ||
	    !has_name(nt_value_find(v, n, "Name"), "CommittedUsage"))
		return;
	s = nt_span_of(data->data, data->bytes);
	if (nt_u16(&s) != LAYOUT)
		return;
	committed = nt_u64(&s);
	if (s.bad)
		return;
	g->committed_bytes = committed;
	if (committed > g->committed_max_bytes)
		g->committed_max_bytes = committed;
	if (c)
		c->committed_bytes = committed;
}

/* Regions are made one by one and are small; segments of .NET 6 and older are large. */
void gc_segment(struct gc *g, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	uint64_t size = nt_value_u64(v, n, "Size", 0);

	if (size && nt_value_u64(v, n, "Type", 1) == 0 &&
	    (!g->smallest_segment || size < g->smallest_segment))
		g->smallest_segment = size;
}

enum nt_status gc_pinned_object(struct gc *g, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	struct gc_pinned *types;
	uint32_t name, at;
	enum nt_status st =
		an_textset_add_value(&g->pinned_names, nt_value_find(v, n, "TypeName"), &name);

	g->pinned_recorded = true;
	if (st < 0 || name == AN_TEXT_OTHER)
		return st;
	at = nt_idmap_get(&g->pinned_types, name);
	if (at == NT_IDMAP_NONE) {
		types = an_mem_grow(g->shared->alloc, g->pinned_type, &g->pinned_cap,
				    g->pinned_count + 1, sizeof(*types));
		if (!types)
			return NT_ENOMEM;
		g->pinned_type = types;
		at = (uint32_t)g->pinned_count;
		if (nt_idmap_put(&g->pinned_types, name, at) < 0)
			return NT_ENOMEM;
		types[g->pinned_count++] = (struct gc_pinned){ .name = name };
	}
	g->pinned_type[at].count++;
	g->pinned_type[at].bytes += nt_value_u64(v, n, "ObjectSize", 0);
	return NT_OK;
}

void gc_finalizers_begin(struct gc *g, const struct nt_event *ev)
{
	g->finalizers.since_ns = ev->time_ns;
	g->finalizers.recorded = true;
}

void gc_finalizers_end(struct gc *g, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	struct gc_finalizers *f = &g->finalizers;
	uint64_t ns;

	f->recorded = true;
	f->count += nt_value_u64(v, n, "Count", 0);
	if (f->since_ns < 0)
		return; /* began before the session */
	ns = an_elapsed(f->since_ns, ev->time_ns);
	f->since_ns = -1;
	f->runs++;
	f->ns += ns;
	if (ns > f->max_ns)
		f->max_ns = ns;
}

/* A generation is collected with all younger ones; large and pinned objects with generation 2. */
static bool is_collected(const struct gc_collection *c, size_t size)
{
	return size <= c->generation || c->generation >= GC_GENERATIONS - 1;
}

void gc_sum_sizes(struct gc *g, const struct gc_collection *c)
{
	for (size_t i = 0; i < GC_SIZES; i++) {
		struct gc_generation_sum *sum = &g->generations[i];
		const struct gc_sizes *s = &c->sizes[i];

		if (c->have_stats)
			sum->promoted += c->promoted[i];
		if (!c->heaps || !c->ended)
			continue;
		/* A background collection may end after others that began later. */
		if (c->end_ns >= sum->until_ns) {
			sum->until_ns = c->end_ns;
			sum->after = s->after;
			sum->free_after = s->free_after;
			sum->known = true;
		}
		if (s->after > sum->after_max)
			sum->after_max = s->after;
		if (!c->have_stats || !is_collected(c, i) || s->before <= s->free_before)
			continue;
		sum->collected++;
		sum->live_before += s->before - s->free_before;
		sum->survived += c->promoted[i];
	}
	note_growth(g, c);
}
