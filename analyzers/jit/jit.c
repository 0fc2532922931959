/* SPDX-License-Identifier: MIT */

/*
 * The just-in-time compiler and the loader: what is compiled, how long it takes, what keeps being
 * compiled.
 *
 * MethodJittingStarted (145) comes at the level Verbose only; without it there are no times.  The
 * end of a compilation is the load of the method on the same thread; compilations nest, so each
 * one's time is counted without those inside of it (runtime-events.md §2.5, §8.9).
 */

#include "analyzers/grow.h"
#include "analyzers/jit/jit_internal.h"

enum {
	TYPE_LOAD_START = 73,
	TYPE_LOAD_STOP = 74,
	METHOD_LOAD = 143,
	METHOD_UNLOAD = 144, /* DCEndVerbose in the rundown */
	JITTING_STARTED = 145,
	ASSEMBLY_LOAD = 154,
	ASSEMBLY_UNLOAD = 155,
	TIERING_PAUSE = 281,
	TIERING_RESUME = 282,
	BACKGROUND_START = 283,
	BACKGROUND_STOP = 284,
	SAMPLE = 0,
	SAMPLE_MANAGED = 2,
	FLAG_DYNAMIC = 1,
	FLAG_JITTED = 8,
	FLAG_REJECTED = 0x40,
	ASSEMBLY_DYNAMIC = 2,
	ASSEMBLY_COLLECTIBLE = 8,
	MAX_FIELDS = 16,
	MAX_THREADS = 4096,
	MAX_LOADS = 60 * 1000,
	MAX_SAMPLES = 20 * 1000,
	MAX_NAMES = 2000,
	MAX_PLACES = 2000,
	NAME_BYTES = 256,
	FIRST_NS = 1000 * 1000 * 1000,
};

struct analyzer {
	struct jit j;
};

static struct analyzer *jit_free(struct analyzer *a)
{
	const struct nt_alloc *al;

	if (!a)
		return NULL;
	al = a->j.shared->alloc;
	an_textset_done(&a->j.names);
	an_mem_free(al, a->j.loads);
	an_mem_free(al, a->j.dynamic);
	an_mem_free(al, a->j.places);
	an_mem_free(al, a->j.samples);
	an_mem_free(al, a->j.threads);
	nt_idmap_done(&a->j.by_dynamic);
	nt_idmap_done(&a->j.by_place);
	nt_idmap_done(&a->j.by_address);
	nt_idmap_done(&a->j.by_thread);
	an_mem_free(al, a);
	return NULL;
}

static struct analyzer *jit_new(struct an_shared *shared)
{
	struct analyzer *a = an_mem_get(shared->alloc, sizeof(*a));

	if (!a)
		return NULL;
	a->j.shared = shared;
	a->j.pause_start_ns = -1;
	an_textset_init(&a->j.names, shared->alloc, MAX_NAMES);
	nt_idmap_init(&a->j.by_dynamic, shared->alloc);
	nt_idmap_init(&a->j.by_place, shared->alloc);
	nt_idmap_init(&a->j.by_address, shared->alloc);
	nt_idmap_init(&a->j.by_thread, shared->alloc);
	return a;
}

static bool jit_wants(const struct nt_event_def *def)
{
	switch (def->provider_id) {
	case NT_PROV_SAMPLER:
		return def->event_id == SAMPLE;
	case NT_PROV_RUNDOWN:
		return def->event_id == METHOD_UNLOAD;
	case NT_PROV_RUNTIME:
		break;
	default:
		return false;
	}
	switch (def->event_id) {
	case TYPE_LOAD_START:
	case TYPE_LOAD_STOP:
	case METHOD_LOAD:
	case METHOD_UNLOAD:
	case JITTING_STARTED:
	case ASSEMBLY_LOAD:
	case ASSEMBLY_UNLOAD:
	case TIERING_PAUSE:
	case TIERING_RESUME:
	case BACKGROUND_START:
	case BACKGROUND_STOP:
		return true;
	default:
		return false;
	}
}

/* *ret NULL: too many threads. */
static enum nt_status find_thread(struct jit *j, uint64_t id, struct jit_thread **ret)
{
	uint32_t at = nt_idmap_get(&j->by_thread, id);
	struct jit_thread *threads;

	*ret = NULL;
	if (at == NT_IDMAP_NONE) {
		if (j->thread_count >= MAX_THREADS)
			return NT_OK;
		threads = an_mem_grow(j->shared->alloc, j->threads, &j->thread_cap,
				      j->thread_count + 1, sizeof(*threads));
		if (!threads)
			return NT_ENOMEM;
		j->threads = threads;
		at = (uint32_t)j->thread_count;
		if (nt_idmap_put(&j->by_thread, id, at) < 0)
			return NT_ENOMEM;
		threads[j->thread_count++] = (struct jit_thread){ .id = id };
	}
	*ret = &j->threads[at];
	return NT_OK;
}

/* --- compilations --- */

static enum nt_status on_started(struct jit *j, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	struct jit_thread *t;
	struct jit_open *o;
	enum nt_status st = find_thread(j, ev->thread_id, &t);

	j->timed = true;
	if (st < 0 || !t)
		return st;
	if (t->depth == JIT_DEPTH) {
		/* The outermost was given up long ago. */
		memmove(t->open, t->open + 1, sizeof(t->open) - sizeof(t->open[0]));
		t->depth--;
	}
	o = &t->open[t->depth++];
	*o = (struct jit_open){ .method_id = nt_value_u64(v, n, "MethodID", 0),
				.start_ns = ev->time_ns,
				.il_bytes = (uint32_t)nt_value_u64(v, n, "MethodILSize", 0) };
	return an_calltree_intern(j->shared->tree, ev, &o->node);
}

/* Tier 1 is compiled on a thread of its own while the program runs on. */
static bool in_background(const struct jit_thread *t, unsigned tier)
{
	return t->background || tier == AN_TIER_1 || tier == AN_TIER_1_INSTRUMENTED;
}

/* The compilation that ends with this load: true when its start was seen. */
static bool close_open(struct jit_thread *t, uint64_t method_id, int64_t now, struct jit_open *ret,
		       uint64_t *ret_ns)
{
	size_t i = t->depth;
	uint64_t whole;

	while (i && t->open[i - 1].method_id != method_id)
		i--;
	if (!i)
		return false;
	*ret = t->open[i - 1];
	t->depth = i - 1;
	whole = an_elapsed(ret->start_ns, now);
	*ret_ns = whole > ret->nested_ns ? whole - ret->nested_ns : 0;
	if (t->depth)
		t->open[t->depth - 1].nested_ns += whole;
	return true;
}

static enum nt_status keep_load(struct jit *j, const struct jit_load *load)
{
	struct jit_load *loads;

	if (j->load_count >= MAX_LOADS) {
		j->loads_dropped++;
		return NT_OK;
	}
	loads = an_mem_grow(j->shared->alloc, j->loads, &j->load_cap, j->load_count + 1,
			    sizeof(*loads));
	if (!loads)
		return NT_ENOMEM;
	j->loads = loads;
	loads[j->load_count++] = *load;
	return NT_OK;
}

/* "Gen123" and "Gen124" are both "Gen#". */
static void fold_digits(char *text)
{
	char *to = text;
	bool digits = false;

	for (; *text; text++) {
		bool digit = *text >= '0' && *text <= '9';

		if (!digit || !digits)
			*to++ = digit ? '#' : *text;
		digits = digit;
	}
	*to = '\0';
}

static enum nt_status count_name(struct jit *j, const struct nt_value *name)
{
	char text[NAME_BYTES] = "";
	struct jit_dynamic *dynamic;
	uint32_t id, at;
	enum nt_status st;

	if (name)
		nt_value_text(name, text, sizeof(text));
	fold_digits(text);
	st = an_textset_add(&j->names, text, &id);
	if (st < 0)
		return st;
	if (id == AN_TEXT_OTHER) {
		j->dynamic_other++;
		return NT_OK;
	}
	at = nt_idmap_get(&j->by_dynamic, id);
	if (at == NT_IDMAP_NONE) {
		dynamic = an_mem_grow(j->shared->alloc, j->dynamic, &j->dynamic_cap,
				      j->dynamic_count + 1, sizeof(*dynamic));
		if (!dynamic)
			return NT_ENOMEM;
		j->dynamic = dynamic;
		at = (uint32_t)j->dynamic_count;
		if (nt_idmap_put(&j->by_dynamic, id, at) < 0)
			return NT_ENOMEM;
		dynamic[j->dynamic_count++] = (struct jit_dynamic){ .name = id };
	}
	j->dynamic[at].count++;
	return NT_OK;
}

static enum nt_status count_place(struct jit *j, uint32_t node)
{
	uint32_t at = nt_idmap_get(&j->by_place, node);
	struct jit_place *places;

	if (node == AN_NODE_NONE)
		return NT_OK;
	if (at == NT_IDMAP_NONE) {
		if (j->place_count >= MAX_PLACES)
			return NT_OK;
		places = an_mem_grow(j->shared->alloc, j->places, &j->place_cap, j->place_count + 1,
				     sizeof(*places));
		if (!places)
			return NT_ENOMEM;
		j->places = places;
		at = (uint32_t)j->place_count;
		if (nt_idmap_put(&j->by_place, node, at) < 0)
			return NT_ENOMEM;
		places[j->place_count++] = (struct jit_place){ .node = node };
	}
	j->places[at].count++;
	return NT_OK;
}

/* Stubs that the runtime makes for itself are dynamic methods as well, but nobody's leak. */
static bool is_stub(const struct nt_value *name)
{
	char text[16] = "";

	if (name)
		nt_value_text(name, text, sizeof(text));
	return !strncmp(text, "IL_STUB", 7);
}

/* The stack of the load itself is not needed: where there is none it is that of the start. */
static enum nt_status on_dynamic(struct jit *j, const struct nt_event *ev,
				 const struct nt_value *name, const struct jit_open *open,
				 uint64_t ns)
{
	uint32_t node = open ? open->node : AN_NODE_NONE;
	enum nt_status st = NT_OK;

	if (is_stub(name)) {
		j->stubs++;
		return NT_OK;
	}
	j->dynamic_loaded++;
	j->dynamic_ns += ns;
	if (node == AN_NODE_NONE)
		st = an_calltree_intern(j->shared->tree, ev, &node);
	if (st == NT_OK)
		st = count_place(j, node);
	return st == NT_OK ? count_name(j, name) : st;
}

static enum nt_status on_compiled(struct jit *j, const struct nt_event *ev,
				  const struct nt_value *v, size_t n, uint32_t flags)
{
	uint64_t address = nt_value_u64(v, n, "MethodStartAddress", 0);
	struct jit_load load = { .address = address,
				 .epoch = an_methods_epoch(j->shared->methods, address),
				 .code_bytes = (uint32_t)nt_value_u64(v, n, "MethodSize", 0),
				 .tier = (uint8_t)an_tier_of_flags(flags),
				 .rejected = (flags & FLAG_REJECTED) != 0 };
	struct jit_open open = { 0 };
	struct jit_thread *t;
	enum nt_status st = find_thread(j, ev->thread_id, &t);

	if (st < 0)
		return st;
	load.timed = t && close_open(t, nt_value_u64(v, n, "MethodID", 0), ev->time_ns, &open,
				     &load.jit_ns);
	if (load.timed) {
		j->matched++;
		j->total_ns += load.jit_ns;
		if (!in_background(t, load.tier))
			j->waited_ns += load.jit_ns;
		j->il_bytes += open.il_bytes;
		load.il_bytes = open.il_bytes;
	}
	if (!j->compiled)
		j->first_ns = ev->time_ns;
	if (an_elapsed(j->first_ns, ev->time_ns) < FIRST_NS) {
		j->first_count++;
		j->first_jit_ns += load.jit_ns;
	}
	j->compiled++;
	j->tiers[load.tier]++;
	j->rejected += load.rejected;
	j->code_bytes += load.code_bytes;
	an_rate_add(&j->rate, ev->time_ns, 1);
	if (flags & FLAG_DYNAMIC)
		return on_dynamic(j, ev, nt_value_find(v, n, "MethodName"),
				  load.timed ? &open : NULL, load.jit_ns);
	return keep_load(j, &load);
}

static enum nt_status on_load(struct jit *j, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	uint32_t flags = (uint32_t)nt_value_u64(v, n, "MethodFlags", 0);

	j->loads_recorded = true;
	if (flags & FLAG_JITTED)
		return on_compiled(j, ev, v, n, flags);
	j->precompiled++;
	return NT_OK;
}

/* In the rundown: what there is of code, however old. */
static enum nt_status on_unload(struct jit *j, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	uint32_t flags = (uint32_t)nt_value_u64(v, n, "MethodFlags", 0);

	if (ev->def->provider_id == NT_PROV_RUNTIME) {
		if (flags & FLAG_DYNAMIC && !is_stub(nt_value_find(v, n, "MethodName")))
			j->dynamic_unloaded++;
		return NT_OK;
	}
	if (!(flags & FLAG_JITTED))
		return NT_OK;
	j->rejected_before += (flags & FLAG_REJECTED) != 0;
	return NT_OK;
}

/* --- everything else --- */

static enum nt_status on_sample(struct jit *j, const struct nt_event *ev)
{
	struct nt_value v[1];
	struct jit_sample *samples;
	uint64_t address;
	uint32_t at;

	if (!ev->frame_count || !nt_payload_read(ev, v, 1, NULL) || v[0].kind != NT_V_UINT ||
	    v[0].u != SAMPLE_MANAGED)
		return NT_OK;
	j->running++;
	address = ev->stack[0];
	at = nt_idmap_get(&j->by_address, address);
	if (at == NT_IDMAP_NONE) {
		if (j->sample_count >= MAX_SAMPLES) {
			j->samples_dropped++;
			return NT_OK;
		}
		samples = an_mem_grow(j->shared->alloc, j->samples, &j->sample_cap,
				      j->sample_count + 1, sizeof(*samples));
		if (!samples)
			return NT_ENOMEM;
		j->samples = samples;
		at = (uint32_t)j->sample_count;
		if (nt_idmap_put(&j->by_address, address, at) < 0)
			return NT_ENOMEM;
		samples[j->sample_count++] = (struct jit_sample){
			.address = address, .epoch = an_methods_epoch(j->shared->methods, address)
		};
	}
	j->samples[at].count++;
	return NT_OK;
}

static enum nt_status on_assembly(struct jit *j, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	uint64_t flags = nt_value_u64(v, n, "AssemblyFlags", 0);
	struct jit_assembly *a;
	enum nt_status st;

	j->assemblies_recorded = true;
	j->assemblies_loaded++;
	j->assemblies_dynamic += (flags & ASSEMBLY_DYNAMIC) != 0;
	j->assemblies_collectible += (flags & ASSEMBLY_COLLECTIBLE) != 0;
	if (j->assembly_count == JIT_ASSEMBLIES)
		return NT_OK;
	a = &j->assemblies[j->assembly_count];
	st = an_textset_add_value(&j->names, nt_value_find(v, n, "FullyQualifiedAssemblyName"),
				  &a->name);
	if (st < 0)
		return st;
	a->time_ns = ev->time_ns;
	j->assembly_count++;
	return NT_OK;
}

/* Loads of types nest; the time is that of the outermost. */
static enum nt_status on_type(struct jit *j, const struct nt_event *ev)
{
	struct jit_thread *t;
	enum nt_status st = find_thread(j, ev->thread_id, &t);
	bool stop = ev->def->event_id == TYPE_LOAD_STOP;

	j->types_loaded += stop;
	if (st < 0 || !t)
		return st;
	if (!stop) {
		if (!t->type_depth++)
			t->type_start_ns = ev->time_ns;
	} else if (t->type_depth && !--t->type_depth) {
		j->type_ns += an_elapsed(t->type_start_ns, ev->time_ns);
	}
	return NT_OK;
}

static enum nt_status on_background(struct jit *j, const struct nt_event *ev)
{
	struct nt_value v[4];
	size_t n;
	struct jit_thread *t;
	enum nt_status st = find_thread(j, ev->thread_id, &t);

	if (st < 0 || !t)
		return st;
	if (ev->def->event_id == BACKGROUND_START) {
		t->background = true;
		t->background_ns = ev->time_ns;
		return NT_OK;
	}
	n = nt_payload_read(ev, v, 4, NULL);
	j->background_batches++;
	j->background_methods += nt_value_u64(v, n, "JittedMethodCount", 0);
	if (t->background)
		j->background_ns += an_elapsed(t->background_ns, ev->time_ns);
	t->background = false;
	return NT_OK;
}

/* New methods at tier 0 put off the next tier. */
static void on_tiering(struct jit *j, const struct nt_event *ev)
{
	if (ev->def->event_id == TIERING_PAUSE) {
		j->pauses++;
		j->pause_start_ns = ev->time_ns;
		return;
	}
	j->resumes++;
	if (j->pause_start_ns >= 0)
		j->pause_ns += an_elapsed(j->pause_start_ns, ev->time_ns);
	j->pause_start_ns = -1;
}

static enum nt_status jit_event(struct analyzer *a, const struct nt_event *ev)
{
	struct jit *j = &a->j;

	if (ev->def->provider_id == NT_PROV_SAMPLER)
		return on_sample(j, ev);
	if (ev->def->provider_id == NT_PROV_RUNTIME)
		j->recorded = true;
	switch (ev->def->event_id) {
	case JITTING_STARTED:
		return on_started(j, ev);
	case METHOD_LOAD:
		return on_load(j, ev);
	case METHOD_UNLOAD:
		return on_unload(j, ev);
	case ASSEMBLY_LOAD:
		return on_assembly(j, ev);
	case ASSEMBLY_UNLOAD:
		j->assemblies_unloaded++;
		return NT_OK;
	case TYPE_LOAD_START:
	case TYPE_LOAD_STOP:
		return on_type(j, ev);
	case TIERING_PAUSE:
	case TIERING_RESUME:
		on_tiering(j, ev);
		return NT_OK;
	default:
		return on_background(j, ev);
	}
}

static enum nt_status report(struct analyzer *a, struct an_report *out)
{
	return jit_report(&a->j, out);
}

/* Loader, Jit, Compilation: few events, and the names of methods need most of them anyway. */
static const struct an_provider providers[] = {
	{ "Microsoft-Windows-DotNETRuntime", 0x8 | 0x10 | 0x1000000000, 4 },
	{ 0 },
};

/* With the starts of compilations, and with them times; and loads of types. */
static const struct an_provider on_request[] = {
	{ "Microsoft-Windows-DotNETRuntime", 0x8 | 0x10 | 0x1000000000 | 0x8000000000, 5 },
	{ 0 },
};

const struct an_class an_class_jit = {
	.name = "jit",
	.summary = "compiled methods and their tiers, dynamic methods, loads of assemblies",
	.providers = providers,
	.on_request = on_request,
	.wants = jit_wants,
	.new = jit_new,
	.event = jit_event,
	.report = report,
	.free = jit_free,
	.needs = AN_NEED_ORDER | AN_NEED_STACKS,
	.symptom = "slow start, slow first requests, code that is compiled again and again",
	.cost = AN_COST_LOW,
	.seconds = 60,
	.params = an_params_rows,
};
