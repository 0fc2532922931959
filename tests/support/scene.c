/* SPDX-License-Identifier: MIT */
#include "tests/support/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { CODE_BYTES = 0x100, OBJECT_OF = 0x10000 /* Thread objects, by OS id */ };

bool scene_begin_with(struct scene *s, const struct nt_alloc *alloc,
		      const struct an_options *options)
{
	static const struct an_class *const classes[] = {
		&an_class_trace,   &an_class_locks,  &an_class_threadpool,
		&an_class_threads, &an_class_stacks, NULL,
	};

	s->code = 0x7f0000000000;
	return play_begin(&s->play, alloc, classes, options);
}

bool scene_begin(struct scene *s, const struct nt_alloc *alloc)
{
	return scene_begin_with(s, alloc, NULL);
}

uint64_t scene_code(struct scene *s, const char *type, const char *name)
{
	uint64_t start = s->code;

	s->code += CODE_BYTES;
	play_method(&s->play, false, start, CODE_BYTES, type, name, "void  ()", 0);
	return start + CODE_BYTES / 2;
}

static void runtime(struct scene *s, uint32_t id, uint32_t version, uint64_t thread, double ms,
		    struct build *b)
{
	play_event(&s->play, NT_PROV_RUNTIME, id, version, thread, ms, b);
}

void scene_lock_start(struct scene *s, uint64_t thread, double ms, uint64_t lock, uint64_t owner)
{
	struct build b = { 0 };

	build_u8(&b, 0);
	build_u16(&b, 0);
	build_u64(&b, lock);
	build_u64(&b, lock ? lock + 8 : 0);
	build_u64(&b, owner);
	runtime(s, 81, 2, thread, ms, &b);
}

void scene_lock_stop(struct scene *s, uint64_t thread, double ms, double duration_ms)
{
	struct build b = { 0 };
	double ns = duration_ms * 1e6;
	uint64_t bits;

	memcpy(&bits, &ns, sizeof(bits));
	build_u8(&b, 0);
	build_u16(&b, 0);
	build_u64(&b, bits);
	runtime(s, 91, 1, thread, ms, &b);
}

void scene_wait_start(struct scene *s, uint64_t thread, double ms)
{
	struct build b = { 0 };

	build_u8(&b, 1);
	build_u64(&b, 0);
	build_u16(&b, 0);
	runtime(s, 301, 0, thread, ms, &b);
}

void scene_wait_stop(struct scene *s, uint64_t thread, double ms)
{
	struct build b = { 0 };

	build_u16(&b, 0);
	runtime(s, 302, 0, thread, ms, &b);
}

static struct build thread_payload(uint64_t os, uint32_t managed, uint32_t flags)
{
	struct build b = { 0 };

	build_u64(&b, OBJECT_OF + os);
	build_u64(&b, 1);
	build_u32(&b, flags);
	build_u32(&b, managed);
	build_u32(&b, (uint32_t)os);
	build_u16(&b, 0);
	return b;
}

void scene_thread_created(struct scene *s, uint64_t os, uint32_t managed, uint32_t flags, double ms)
{
	struct build b = thread_payload(os, managed, flags);

	runtime(s, 85, 0, os, ms, &b);
}

void scene_thread_alive(struct scene *s, uint64_t os, uint32_t managed, double ms)
{
	struct build b = thread_payload(os, managed, 0);

	play_event(&s->play, NT_PROV_RUNDOWN, 159, 0, 1, ms, &b);
}

void scene_thread_ended(struct scene *s, uint64_t os, double ms)
{
	struct build b = { 0 };

	build_u64(&b, OBJECT_OF + os);
	build_u64(&b, 1);
	build_u16(&b, 0);
	runtime(s, 86, 0, os, ms, &b);
}

void scene_thread_creating(struct scene *s, uint64_t os, double ms)
{
	struct build b = { 0 };

	build_u64(&b, OBJECT_OF + os);
	build_u16(&b, 0);
	runtime(s, 70, 0, 1, ms, &b);
}

void scene_adjustment(struct scene *s, double ms, uint32_t workers, uint32_t reason)
{
	struct build b = { 0 };

	build_u64(&b, 0);
	build_u32(&b, workers);
	build_u32(&b, reason);
	build_u16(&b, 0);
	runtime(s, 55, 0, 1, ms, &b);
}

void scene_min_max(struct scene *s, double ms, unsigned min_workers, unsigned max_workers)
{
	struct build b = { 0 };

	build_u16(&b, min_workers);
	build_u16(&b, max_workers);
	build_u16(&b, 1);
	build_u16(&b, 1000);
	build_u16(&b, 0);
	runtime(s, 59, 0, 1, ms, &b);
}

void scene_worker(struct scene *s, uint32_t id, double ms, uint32_t active)
{
	struct build b = { 0 };

	build_u32(&b, active);
	build_u32(&b, 0);
	build_u16(&b, 0);
	runtime(s, id, 0, 1, ms, &b);
}

/* Fields as the runtime describes them; the ones before the last two do not matter here. */
static const struct nt_field task_fields[] = {
	{ .name = "TaskID", .type = NT_T_I32 },
	{ .name = "TaskCreationOptions", .type = NT_T_I32 },
};

void scene_task_queued(struct scene *s, double ms, uint32_t task, uint32_t options)
{
	struct build b = { 0 };

	build_u32(&b, task);
	build_u32(&b, options);
	play_own(&s->play, NT_PROV_TPL, "TaskScheduled", 7, task_fields, 2, 1, ms, &b);
}

void scene_task_started(struct scene *s, double ms, uint32_t task)
{
	struct build b = { 0 };

	build_u32(&b, task);
	play_own(&s->play, NT_PROV_TPL, "TaskStarted", 8, task_fields, 1, 1, ms, &b);
}

void scene_lost(struct scene *s, uint64_t count)
{
	if (s->play.status == NT_OK)
		s->play.status = an_engine_sink.lost(s->play.engine, 1, count, 0);
}

void scene_end(struct scene *s, unsigned major, double ms)
{
	struct build b = { 0 };

	s->play.frame_count = 0;
	build_u16(&b, 0);
	play_event(&s->play, NT_PROV_RUNDOWN, 148, 1, 1, ms, &b);
	if (major) {
		build_u16(&b, 0);
		build_u16(&b, 2);
		for (size_t i = 0; i < 8; i++)
			build_u16(&b, i == 4 ? major : 0);
		build_u32(&b, 0);
		build_u8(&b, 1);
		build_utf16(&b, "");
		build_repeat(&b, 0, 16);
		build_utf16(&b, "");
		play_event(&s->play, NT_PROV_RUNDOWN, 187, 0, 1, ms, &b);
	}
	build_u16(&b, 0);
	play_event(&s->play, NT_PROV_RUNDOWN, 146, 1, 1, ms, &b);
}

/* --- what came of it --- */

void scene_done(struct scene *s)
{
	(void)play_report(&s->play);
	assert_int_equal(s->play.status, NT_OK);
	play_end(&s->play);
}

double scene_number(struct scene *s, const char *path)
{
	const struct an_value *v = an_get(play_report(&s->play), path);

	assert_non_null(v);
	assert_int_not_equal(v->kind, AN_NULL);
	return an_get_f64(play_report(&s->play), path, -1);
}

void scene_is_null(struct scene *s, const char *path)
{
	const struct an_value *v = an_get(play_report(&s->play), path);

	assert_non_null(v);
	assert_int_equal(v->kind, AN_NULL);
}

size_t scene_count(struct scene *s, const char *path)
{
	const struct an_value *v = an_get(play_report(&s->play), path);

	assert_non_null(v);
	assert_int_equal(v->kind, AN_ARRAY);
	return v->count;
}

void scene_is_silent(struct scene *s)
{
	const struct an_value *f = an_get(play_report(&s->play), "findings");

	for (f = f ? f->first : NULL; f; f = f->next) {
		assert_int_not_equal(strncmp(an_get_text(f, "id", ""), "locks.", 6), 0);
		assert_int_not_equal(strncmp(an_get_text(f, "id", ""), "threads.", 8), 0);
		assert_int_not_equal(strncmp(an_get_text(f, "id", ""), "threadpool.", 11), 0);
	}
}

const char *scene_severity(struct scene *s, const char *id)
{
	return an_get_text(play_find(&s->play, "findings", "id", id), "severity", "");
}
