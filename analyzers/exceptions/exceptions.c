/* SPDX-License-Identifier: MIT */

/*
 * Exceptions: which types are thrown where, how often, and who catches them.
 *
 * An exception that leaves an async method is thrown again in each method that awaits it, so one
 * failure shows as many events.  They are told apart in two ways: here, when the same exception is
 * thrown while a catch block for it is open on the thread; and in the report, by the frames of
 * ExceptionDispatchInfo on the stack (runtime-events.md §2.8).
 */

#include "analyzers/exceptions/exceptions_internal.h"
#include "analyzers/grow.h"

enum {
	THROWN = 80,
	CATCH_START = 250,
	CATCH_STOP = 251,
	FINALLY_START = 252,
	FILTER_START = 254,
	THROWN_STOP = 256,
	FLAG_INNER = 1,
	FLAG_NESTED = 2,
	FLAG_AGAIN = 4,
	MAX_FIELDS = 8,
	MAX_TYPES = 1000,
	MAX_CATCHERS = 2000,
	MAX_CELLS = 50 * 1000,
	MAX_CATCHES = 10 * 1000,
	MAX_THREADS = 4096,
};

struct analyzer {
	struct exceptions x;
};

static struct analyzer *ex_free(struct analyzer *a)
{
	const struct nt_alloc *al;

	if (!a)
		return NULL;
	al = a->x.shared->alloc;
	an_textset_done(&a->x.names);
	an_textset_done(&a->x.catchers);
	an_mem_free(al, a->x.types);
	an_mem_free(al, a->x.cells);
	an_mem_free(al, a->x.catches);
	an_mem_free(al, a->x.threads);
	nt_idmap_done(&a->x.by_name);
	nt_idmap_done(&a->x.by_place);
	nt_idmap_done(&a->x.by_catch);
	nt_idmap_done(&a->x.by_thread);
	an_mem_free(al, a);
	return NULL;
}

static struct analyzer *ex_new(struct an_shared *shared)
{
	struct analyzer *a = an_mem_get(shared->alloc, sizeof(*a));

	if (!a)
		return NULL;
	a->x.shared = shared;
	an_textset_init(&a->x.names, shared->alloc, MAX_TYPES);
	an_textset_init(&a->x.catchers, shared->alloc, MAX_CATCHERS);
	nt_idmap_init(&a->x.by_name, shared->alloc);
	nt_idmap_init(&a->x.by_place, shared->alloc);
	nt_idmap_init(&a->x.by_catch, shared->alloc);
	nt_idmap_init(&a->x.by_thread, shared->alloc);
	return a;
}

static bool ex_wants(const struct nt_event_def *def)
{
	switch (def->event_id) {
	case THROWN:
	case CATCH_START:
	case CATCH_STOP:
	case FINALLY_START:
	case FILTER_START:
	case THROWN_STOP:
		return def->provider_id == NT_PROV_RUNTIME;
	default:
		return false;
	}
}

/* --- tables --- */

/* *ret NULL: too many threads. */
static enum nt_status find_thread(struct exceptions *x, uint64_t id, struct ex_thread **ret)
{
	uint32_t at = nt_idmap_get(&x->by_thread, id);
	struct ex_thread *threads;

	*ret = NULL;
	if (at == NT_IDMAP_NONE) {
		if (x->thread_count >= MAX_THREADS)
			return NT_OK;
		threads = an_mem_grow(x->shared->alloc, x->threads, &x->thread_cap,
				      x->thread_count + 1, sizeof(*threads));
		if (!threads)
			return NT_ENOMEM;
		x->threads = threads;
		at = (uint32_t)x->thread_count;
		if (nt_idmap_put(&x->by_thread, id, at) < 0)
			return NT_ENOMEM;
		threads[x->thread_count++] = (struct ex_thread){ .id = id };
	}
	*ret = &x->threads[at];
	return NT_OK;
}

/* NT_IDMAP_NONE: too many types. */
static enum nt_status find_type(struct exceptions *x, const struct nt_value *name, uint32_t *ret)
{
	uint32_t text;
	struct ex_type *types;
	enum nt_status st = an_textset_add_value(&x->names, name, &text);

	*ret = NT_IDMAP_NONE;
	if (st < 0 || text == AN_TEXT_OTHER)
		return st;
	*ret = nt_idmap_get(&x->by_name, text);
	if (*ret != NT_IDMAP_NONE)
		return NT_OK;
	types = an_mem_grow(x->shared->alloc, x->types, &x->type_cap, x->type_count + 1,
			    sizeof(*types));
	if (!types)
		return NT_ENOMEM;
	x->types = types;
	*ret = (uint32_t)x->type_count;
	types[x->type_count++] = (struct ex_type){ .name = text };
	return nt_idmap_put(&x->by_name, text, *ret);
}

static enum nt_status add_cell(struct exceptions *x, uint32_t type, uint32_t node, bool repeat)
{
	uint64_t key = (uint64_t)type << 32 | node;
	uint32_t at = nt_idmap_get(&x->by_place, key);
	struct ex_cell *cells;

	if (at == NT_IDMAP_NONE) {
		if (x->cell_count >= MAX_CELLS) {
			x->crowded++;
			return NT_OK;
		}
		cells = an_mem_grow(x->shared->alloc, x->cells, &x->cell_cap, x->cell_count + 1,
				    sizeof(*cells));
		if (!cells)
			return NT_ENOMEM;
		x->cells = cells;
		at = (uint32_t)x->cell_count;
		if (nt_idmap_put(&x->by_place, key, at) < 0)
			return NT_ENOMEM;
		cells[x->cell_count++] = (struct ex_cell){ .type = type, .node = node };
	}
	x->cells[at].count++;
	x->cells[at].repeats += repeat;
	return NT_OK;
}

static enum nt_status add_catch(struct exceptions *x, uint32_t type, const struct nt_value *method)
{
	uint32_t text, at;
	struct ex_catch *catches;
	uint64_t key;
	enum nt_status st = an_textset_add_value(&x->catchers, method, &text);

	if (st < 0)
		return st;
	key = (uint64_t)type << 32 | text;
	at = nt_idmap_get(&x->by_catch, key);
	if (at == NT_IDMAP_NONE) {
		if (x->catch_count >= MAX_CATCHES) {
			x->catches_dropped++;
			return NT_OK;
		}
		catches = an_mem_grow(x->shared->alloc, x->catches, &x->catch_cap,
				      x->catch_count + 1, sizeof(*catches));
		if (!catches)
			return NT_ENOMEM;
		x->catches = catches;
		at = (uint32_t)x->catch_count;
		if (nt_idmap_put(&x->by_catch, key, at) < 0)
			return NT_ENOMEM;
		catches[x->catch_count++] = (struct ex_catch){ .type = type, .method = text };
	}
	x->catches[at].count++;
	return NT_OK;
}

/* --- events --- */

/* A hash of the text in which every row of digits is the same. */
static uint64_t hash_message(const char *text)
{
	uint64_t h = 0;
	bool digits = false;

	for (; *text; text++) {
		bool digit = *text >= '0' && *text <= '9';

		if (digit && digits)
			continue;
		h = an_hash(digit ? "#" : text, 1, h);
		digits = digit;
	}
	return h;
}

static void note_message(struct ex_type *type, const char *text)
{
	uint64_t hash = hash_message(text);
	struct ex_message *m = type->messages;

	for (size_t i = 0; i < type->message_count; i++, m++) {
		if (m->hash == hash) {
			m->count++;
			return;
		}
	}
	if (type->message_count == EX_MESSAGES) {
		type->other_messages++;
		return;
	}
	type->message_count++;
	m->hash = hash;
	m->count = 1;
	memcpy(m->text, text, strlen(text) + 1);
}

static bool is_open(const struct ex_thread *t, uint64_t hash)
{
	for (size_t i = 0; i < t->depth; i++)
		if (t->open[i].hash == hash)
			return true;
	return false;
}

static void note_type(struct ex_type *type, const struct nt_value *v, size_t n, bool repeat)
{
	uint64_t flags = nt_value_u64(v, n, "ExceptionFlags", 0);

	type->count++;
	type->repeats += repeat;
	type->inner += (flags & FLAG_INNER) != 0;
	type->nested += (flags & FLAG_NESTED) != 0;
	type->flagged += (flags & FLAG_AGAIN) != 0;
	type->hresult = (uint32_t)nt_value_u64(v, n, "ExceptionHRESULT", 0);
}

/* Which exception: by its type, and its message as far as it is kept. */
static uint64_t hash_exception(const struct exceptions *x, uint32_t type, const char *message)
{
	const char *name =
		type == NT_IDMAP_NONE ? "" : an_textset_get(&x->names, x->types[type].name);

	return an_hash(message, strlen(message), an_hash(name, strlen(name), 0)) | 1;
}

static enum nt_status on_thrown(struct exceptions *x, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	const struct nt_value *message = nt_value_find(v, n, "ExceptionMessage");
	char text[EX_MESSAGE_BYTES] = "";
	struct ex_thread *t;
	uint32_t type, node = AN_NODE_NONE;
	uint64_t hash;
	bool repeat;
	enum nt_status st = find_type(x, nt_value_find(v, n, "ExceptionType"), &type);

	if (st == NT_OK)
		st = find_thread(x, ev->thread_id, &t);
	if (st == NT_OK)
		st = an_calltree_intern(x->shared->tree, ev, &node);
	if (st < 0)
		return st;
	if (message)
		nt_value_text(message, text, sizeof(text));
	hash = hash_exception(x, type, text);
	repeat = (t && is_open(t, hash)) ||
		 (nt_value_u64(v, n, "ExceptionFlags", 0) & FLAG_AGAIN) != 0;
	x->count++;
	x->repeats += repeat;
	if (!repeat)
		an_rate_add(&x->rate, ev->time_ns, 1);
	if (t) {
		x->in_catch += t->depth && !repeat;
		t->pending = true;
		t->type = type;
		t->hash = hash;
		t->time_ns = ev->time_ns;
	}
	if (type == NT_IDMAP_NONE) {
		x->other_types++;
		return NT_OK;
	}
	note_type(&x->types[type], v, n, repeat);
	note_message(&x->types[type], text);
	return add_cell(x, type, node, repeat);
}

static void note_handling(struct ex_type *type, uint64_t ns)
{
	type->caught++;
	type->handling_ns += ns;
	if (ns > type->handling_max_ns)
		type->handling_max_ns = ns;
}

/*
 * Catch blocks that are further inside than the one that begins now have been left by a throw.
 * Returns what the innermost of them had caught: what is caught now, unless that was thrown anew.
 */
static struct ex_open leave(struct ex_thread *t, size_t frames)
{
	struct ex_open left = { .type = NT_IDMAP_NONE };

	while (frames && t->depth && t->open[t->depth - 1].frames >= frames) {
		if (left.type == NT_IDMAP_NONE)
			left = t->open[t->depth - 1];
		t->depth--;
	}
	return left;
}

static void enter(struct exceptions *x, struct ex_thread *t, const struct ex_open *o)
{
	if (t->depth < EX_CATCHES)
		t->open[t->depth++] = *o;
	else
		x->catches_dropped++;
	if (t->depth > x->deepest)
		x->deepest = t->depth;
}

static enum nt_status on_catch(struct exceptions *x, const struct nt_event *ev)
{
	struct nt_value v[MAX_FIELDS];
	size_t n = nt_payload_read(ev, v, MAX_FIELDS, NULL);
	struct ex_thread *t;
	struct ex_open o;
	enum nt_status st = find_thread(x, ev->thread_id, &t);

	x->caught++;
	if (st < 0 || !t)
		return st;
	o = leave(t, ev->frame_count);
	if (t->pending)
		o = (struct ex_open){ .hash = t->hash, .type = t->type };
	else if (o.hash)
		x->passed_on++;
	if (t->pending && t->type != NT_IDMAP_NONE)
		note_handling(&x->types[t->type], an_elapsed(t->time_ns, ev->time_ns));
	o.frames = ev->frame_count;
	enter(x, t, &o);
	t->pending = false;
	return add_catch(x, o.type, nt_value_find(v, n, "MethodName"));
}

/* Without stacks it is not known which catch blocks a throw has left: then a new start is safest.
 */
static enum nt_status on_stop(struct exceptions *x, const struct nt_event *ev)
{
	struct ex_thread *t;
	enum nt_status st = find_thread(x, ev->thread_id, &t);

	if (st < 0 || !t)
		return st;
	if (ev->def->event_id == CATCH_STOP && t->depth)
		t->depth--;
	else if (ev->def->event_id == THROWN_STOP && !ev->frame_count)
		t->depth = 0;
	t->pending = false;
	return NT_OK;
}

static enum nt_status ex_event(struct analyzer *a, const struct nt_event *ev)
{
	struct exceptions *x = &a->x;

	x->handling_recorded |= ev->def->event_id != THROWN;
	switch (ev->def->event_id) {
	case THROWN:
		return on_thrown(x, ev);
	case CATCH_START:
		return on_catch(x, ev);
	case FINALLY_START:
		x->finally++;
		return NT_OK;
	case FILTER_START:
		x->filters++;
		return NT_OK;
	default:
		return on_stop(x, ev);
	}
}

static enum nt_status report(struct analyzer *a, struct an_report *out)
{
	return exceptions_report(&a->x, out);
}

static const struct an_provider providers[] = {
	{ "Microsoft-Windows-DotNETRuntime", 0x8000, 2 },
	{ 0 },
};

/* With who catches them. */
static const struct an_provider on_request[] = {
	{ "Microsoft-Windows-DotNETRuntime", 0x8000, 4 },
	{ 0 },
};

const struct an_class an_class_exceptions = {
	.name = "exceptions",
	.summary = "exceptions by type and throw site, how often, who catches them",
	.providers = providers,
	.on_request = on_request,
	.wants = ex_wants,
	.new = ex_new,
	.event = ex_event,
	.report = report,
	.free = ex_free,
	.needs = AN_NEED_ORDER | AN_NEED_STACKS,
	.symptom = "many exceptions, or one that nobody sees",
	.cost = AN_COST_LOW,
	.seconds = 60,
	.params = an_params_rows,
};
