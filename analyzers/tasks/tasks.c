/* SPDX-License-Identifier: MIT */

/*
 * Tasks: asynchronous work that has begun and not ended, and what it waits for.
 *
 * Events of TplEventSource say when an operation begins (14) and ends (15), when a task is
 * scheduled (7), started (8) and completed (9), and that a continuation awaits a task (10 to 11).
 * .NET Core 3.1 sends no 14 and 15: there pending is what awaits.  A thread that blocks on a task
 * shows in 10 with Behavior 1, or, when it began earlier, in the samples of its stack
 * (runtime-events.md §4).
 */

#include "analyzers/grow.h"
#include "analyzers/tasks/tasks_internal.h"

enum {
	SCHEDULED = 7,
	STARTED = 8,
	COMPLETED = 9,
	WAIT_BEGIN = 10,
	WAIT_END = 11,
	CONTINUATION_SCHEDULED = 12,
	OPERATION_BEGIN = 14,
	OPERATION_END = 15,
	CONTINUATION_STARTED = 19,
	INCOMPLETE_ASYNC_METHOD = 27,
};

enum { BEHAVIOR_SYNCHRONOUS = 1 };

enum {
	MAX_FIELDS = 8,
	MAX_NAMES = 4096,
	MAX_NAME_BYTES = 1 << 20,
	MAX_THREADS = 16 * 1024,
	NAME_BYTES = 512,
};

struct analyzer {
	struct tasks t;
};

static struct analyzer *tasks_free(struct analyzer *a)
{
	const struct nt_alloc *al;

	if (!a)
		return NULL;
	al = a->t.shared->alloc;
	task_table_done(&a->t.table);
	an_heap_tasks_free(a->t.heap);
	nt_arena_done(&a->t.name_arena);
	an_mem_free(al, a->t.names);
	an_mem_free(al, a->t.threads);
	nt_idmap_done(&a->t.names_by_hash);
	nt_idmap_done(&a->t.threads_by_id);
	an_mem_free(al, a);
	return NULL;
}

static struct analyzer *tasks_new(struct an_shared *shared)
{
	struct analyzer *a = an_mem_get(shared->alloc, sizeof(*a));

	if (!a)
		return NULL;
	a->t.shared = shared;
	nt_arena_init(&a->t.name_arena, shared->alloc, MAX_NAME_BYTES);
	nt_idmap_init(&a->t.names_by_hash, shared->alloc);
	nt_idmap_init(&a->t.threads_by_id, shared->alloc);
	if (task_table_init(&a->t.table, shared->alloc) < 0)
		return tasks_free(a);
	a->t.heap = an_heap_tasks_new(shared->alloc);
	return a->t.heap ? a : tasks_free(a);
}

static bool tasks_wants(const struct nt_event_def *def)
{
	switch (def->provider_id) {
	case NT_PROV_TPL:
		return def->event_id >= SCHEDULED && def->event_id <= INCOMPLETE_ASYNC_METHOD;
	case NT_PROV_SAMPLER:
		return true;
	default:
		return an_heap_tasks_wants(def);
	}
}

/* --- fields, names, threads --- */

/* Fields are told by place: the spelling of their names differs between versions. */
struct fields {
	struct nt_value v[MAX_FIELDS];
	size_t n;
};

static void read_fields(struct fields *f, const struct nt_event *ev)
{
	f->n = nt_payload_read(ev, f->v, MAX_FIELDS, NULL);
}

/* The task id, or another number, in that field; 0 when it is not there. */
static uint32_t number(const struct fields *f, size_t field)
{
	if (field >= f->n || (f->v[field].kind != NT_V_INT && f->v[field].kind != NT_V_UINT))
		return 0;
	return (uint32_t)f->v[field].u;
}

/* Names beyond the cap are not told apart. */
static enum nt_status take_name(struct tasks *t, const struct nt_value *v, uint32_t *ret)
{
	uint64_t hash = 14695981039346656037u;
	struct task_op_name *names;
	char buf[NAME_BYTES];
	size_t len;

	*ret = TASK_NO_NAME;
	if (v->kind != NT_V_UTF16)
		return NT_OK;
	len = nt_value_text(v, buf, sizeof(buf));
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)buf[i]) * 1099511628211u;
	*ret = nt_idmap_get(&t->names_by_hash, hash);
	if (*ret != NT_IDMAP_NONE || t->name_count >= MAX_NAMES)
		return NT_OK;
	names = an_mem_grow(t->shared->alloc, t->names, &t->name_cap, t->name_count + 1,
			    sizeof(*names));
	if (!names)
		return NT_ENOMEM;
	t->names = names;
	names[t->name_count] =
		(struct task_op_name){ .text = nt_arena_text(&t->name_arena, buf, len) };
	if (!names[t->name_count].text)
		return t->name_arena.full ? NT_OK : NT_ENOMEM;
	if (nt_idmap_put(&t->names_by_hash, hash, (uint32_t)t->name_count) < 0)
		return NT_ENOMEM;
	*ret = (uint32_t)t->name_count++;
	return NT_OK;
}

/* NULL in *ret when there are too many. */
static enum nt_status find_thread(struct tasks *t, uint64_t id, struct tasks_thread **ret)
{
	uint32_t i = nt_idmap_get(&t->threads_by_id, id);
	struct tasks_thread *threads;

	*ret = NULL;
	if (i == NT_IDMAP_NONE) {
		if (t->thread_count >= MAX_THREADS)
			return NT_OK;
		threads = an_mem_grow(t->shared->alloc, t->threads, &t->thread_cap,
				      t->thread_count + 1, sizeof(*threads));
		if (!threads)
			return NT_ENOMEM;
		t->threads = threads;
		i = (uint32_t)t->thread_count;
		if (nt_idmap_put(&t->threads_by_id, id, i) < 0)
			return NT_ENOMEM;
		threads[i] = (struct tasks_thread){ .id = id };
		t->thread_count++;
	}
	*ret = &t->threads[i];
	return NT_OK;
}

/* --- events --- */

static enum nt_status on_operation_begin(struct tasks *t, const struct nt_event *ev,
					 const struct fields *f)
{
	uint32_t slot, name = TASK_NO_NAME, node;
	enum nt_status st = task_take(&t->table, number(f, 0), &slot);

	t->operations = true;
	t->begun++;
	if (st == NT_OK && f->n > 1)
		st = take_name(t, &f->v[1], &name);
	if (st == NT_OK)
		st = an_calltree_intern(t->shared->tree, ev, &node);
	if (st < 0)
		return st;
	if (name != TASK_NO_NAME)
		t->names[name].begun++;
	if (slot != TASK_NONE) {
		struct task *x = &t->table.tasks[slot];

		x->begun = true;
		x->done = false;
		x->begun_ns = ev->time_ns;
		x->op_name = name;
		x->op_node = node;
	}
	return NT_OK;
}

/* The task itself is over; its waiters go on when their 11 comes. */
static void end_task(struct tasks *t, uint32_t slot)
{
	struct task *x = &t->table.tasks[slot];

	x->begun = x->scheduled = x->started = false;
	x->ready = false;
	x->done = true;
	task_await(&t->table, slot, TASK_NONE);
	task_prune(&t->table, slot);
}

static void on_operation_end(struct tasks *t, const struct nt_event *ev, const struct fields *f)
{
	uint32_t slot = task_find(&t->table, number(f, 0));
	const struct task *x;

	if (slot == TASK_NONE)
		return;
	x = &t->table.tasks[slot];
	if (x->begun) {
		t->ended++;
		if (x->op_name != TASK_NO_NAME) {
			struct task_op_name *name = &t->names[x->op_name];

			name->ended++;
			if (ev->time_ns - x->begun_ns > name->longest_ns)
				name->longest_ns = ev->time_ns - x->begun_ns;
		}
	}
	end_task(t, slot);
}

/* Where operations are recorded, their own end (15) says it better. */
static void on_completed(struct tasks *t, const struct fields *f)
{
	uint32_t slot = task_find(&t->table, number(f, 2));

	if (slot != TASK_NONE && !t->table.tasks[slot].begun)
		end_task(t, slot);
}

static enum nt_status on_scheduled(struct tasks *t, const struct nt_event *ev,
				   const struct fields *f)
{
	uint32_t slot, node;
	enum nt_status st = task_take(&t->table, number(f, 2), &slot);

	t->scheduled++;
	if (st == NT_OK)
		st = an_calltree_intern(t->shared->tree, ev, &node);
	if (st < 0 || slot == TASK_NONE)
		return st;
	t->table.tasks[slot].scheduled = true;
	t->table.tasks[slot].scheduled_ns = ev->time_ns;
	if (!t->table.tasks[slot].begun)
		t->table.tasks[slot].op_node = node;
	return NT_OK;
}

static void on_started(struct tasks *t, const struct nt_event *ev, const struct fields *f)
{
	uint32_t slot = task_find(&t->table, number(f, 2));

	t->started++;
	if (slot == TASK_NONE)
		return;
	t->table.tasks[slot].scheduled = false;
	t->table.tasks[slot].started = true;
	t->table.tasks[slot].started_ns = ev->time_ns;
	t->table.tasks[slot].thread = ev->thread_id;
}

static enum nt_status on_sync_wait(struct tasks *t, const struct nt_event *ev, uint32_t slot,
				   uint32_t node)
{
	struct tasks_thread *thread;
	enum nt_status st = find_thread(t, ev->thread_id, &thread);

	if (st < 0 || slot == TASK_NONE)
		return st;
	if (!thread) {
		task_prune(&t->table, slot);
		return NT_OK;
	}
	if (thread->depth == TASKS_SYNC_DEPTH) { /* their ends were lost: forget the oldest */
		uint32_t old = task_find(&t->table, thread->waits[0].task_id);

		if (old != TASK_NONE && t->table.tasks[old].sync_waiters)
			t->table.tasks[old].sync_waiters--;
		memmove(thread->waits, thread->waits + 1,
			sizeof(thread->waits) - sizeof(thread->waits[0]));
		thread->depth--;
	}
	thread->waits[thread->depth++] = (struct tasks_sync_wait){
		.task_id = t->table.tasks[slot].id, .node = node, .since_ns = ev->time_ns
	};
	t->table.tasks[slot].sync_waiters++;
	return NT_OK;
}

static enum nt_status on_wait_begin(struct tasks *t, const struct nt_event *ev,
				    const struct fields *f)
{
	uint32_t behavior = number(f, 3), target, c, node;
	enum nt_status st = task_take(&t->table, number(f, 2), &target);
	struct task *x;

	if (st == NT_OK)
		st = an_calltree_intern(t->shared->tree, ev, &node);
	if (st < 0)
		return st;
	if (behavior == BEHAVIOR_SYNCHRONOUS)
		return on_sync_wait(t, ev, target, node);
	st = task_take(&t->table, number(f, 4), &c);
	if (st < 0)
		return st;
	if (c == TASK_NONE) {
		if (target != TASK_NONE)
			task_prune(&t->table, target);
		return NT_OK;
	}
	x = &t->table.tasks[c];
	x->wait_ns = ev->time_ns;
	x->wait_node = node;
	x->ready = false;
	if (target != c)
		task_await(&t->table, c, target);
	task_prune(&t->table, c);
	return NT_OK;
}

/* True when this thread was blocked on that task: then nobody else goes on because of this. */
static bool end_sync_wait(struct tasks *t, uint64_t thread_id, uint32_t task_id)
{
	uint32_t i = nt_idmap_get(&t->threads_by_id, thread_id), slot;
	struct tasks_thread *thread = i == NT_IDMAP_NONE ? NULL : &t->threads[i];

	if (!thread)
		return false;
	for (unsigned k = thread->depth; k-- > 0;) {
		if (thread->waits[k].task_id != task_id)
			continue;
		memmove(thread->waits + k, thread->waits + k + 1,
			(thread->depth - k - 1) * sizeof(thread->waits[0]));
		thread->depth--;
		slot = task_find(&t->table, task_id);
		if (slot != TASK_NONE && t->table.tasks[slot].sync_waiters) {
			t->table.tasks[slot].sync_waiters--;
			task_prune(&t->table, slot);
		}
		return true;
	}
	return false;
}

static void on_wait_end(struct tasks *t, const struct nt_event *ev, const struct fields *f)
{
	uint32_t slot;

	if (end_sync_wait(t, ev->thread_id, number(f, 2)))
		return;
	slot = task_find(&t->table, number(f, 2));
	if (slot == TASK_NONE)
		return;
	task_resume_waiters(&t->table, slot, ev->time_ns);
	/* Its waiters hear first; then comes its own end (15), where operations are recorded. */
	if (t->table.tasks[slot].begun)
		t->table.tasks[slot].done = true;
	else
		end_task(t, slot);
}

static enum nt_status on_continuation(struct tasks *t, const struct nt_event *ev,
				      const struct fields *f)
{
	uint32_t slot;
	enum nt_status st;

	if (ev->def->event_id == CONTINUATION_STARTED) {
		slot = task_find(&t->table, number(f, 0));
		if (slot != TASK_NONE) {
			t->table.tasks[slot].ready = false;
			task_prune(&t->table, slot);
		}
		return NT_OK;
	}
	st = task_take(&t->table, number(f, 2), &slot);
	if (st < 0 || slot == TASK_NONE)
		return st;
	t->table.tasks[slot].ready = true;
	t->table.tasks[slot].wait_ns = ev->time_ns;
	return an_calltree_intern(t->shared->tree, ev, &t->table.tasks[slot].wait_node);
}

static enum nt_status on_sample(struct tasks *t, const struct nt_event *ev)
{
	struct tasks_thread *thread;
	uint32_t node;
	enum nt_status st = find_thread(t, ev->thread_id, &thread);

	if (st == NT_OK)
		st = an_calltree_intern(t->shared->tree, ev, &node);
	if (st < 0 || !thread)
		return st;
	if (!thread->sampled || thread->node != node) {
		thread->sampled = true;
		thread->node = node;
		thread->since_ns = ev->time_ns;
	}
	thread->last_ns = ev->time_ns;
	return NT_OK;
}

static enum nt_status tasks_event(struct analyzer *a, const struct nt_event *ev)
{
	struct tasks *t = &a->t;
	struct fields f;

	if (ev->def->provider_id == NT_PROV_SAMPLER)
		return on_sample(t, ev);
	if (ev->def->provider_id == NT_PROV_RUNTIME)
		return an_heap_tasks_event(t->heap, ev);
	t->recorded = true;
	read_fields(&f, ev);
	switch (ev->def->event_id) {
	case SCHEDULED:
		return on_scheduled(t, ev, &f);
	case STARTED:
		on_started(t, ev, &f);
		return NT_OK;
	case COMPLETED:
		on_completed(t, &f);
		return NT_OK;
	case OPERATION_END:
		on_operation_end(t, ev, &f);
		return NT_OK;
	case WAIT_BEGIN:
		return on_wait_begin(t, ev, &f);
	case WAIT_END:
		on_wait_end(t, ev, &f);
		return NT_OK;
	case CONTINUATION_SCHEDULED:
	case CONTINUATION_STARTED:
		return on_continuation(t, ev, &f);
	case OPERATION_BEGIN:
		return on_operation_begin(t, ev, &f);
	case INCOMPLETE_ASYNC_METHOD:
		t->abandoned++;
		return NT_OK;
	default:
		return NT_OK;
	}
}

static enum nt_status report(struct analyzer *a, struct an_report *out)
{
	return tasks_report(&a->t, out);
}

static const struct an_provider providers[] = {
	{ "System.Threading.Tasks.TplEventSource", 0x17B, 5 },
	/* Loader, Jit and NGen give names. */
	{ "Microsoft-Windows-DotNETRuntime", 0x8 | 0x10 | 0x20, 4 },
	{ 0 },
};

const struct an_class an_class_tasks = {
	.name = "tasks",
	.summary = "asynchronous work that has not ended, threads that block on tasks",
	.providers = providers,
	.wants = tasks_wants,
	.new = tasks_new,
	.event = tasks_event,
	.report = report,
	.free = tasks_free,
	.needs = AN_NEED_ORDER | AN_NEED_STACKS,
	.uses_waits = true,
	.symptom = "requests that never end, awaits that hang, threads that wait for tasks",
	.cost = AN_COST_HIGH,
	.seconds = 30,
	.params = an_params_rows,
};
