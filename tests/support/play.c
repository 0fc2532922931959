/* SPDX-License-Identifier: MIT */
#include "tests/support/play.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nettrace/runtime_events.h"

static const char *const provider_names[NT_PROV_COUNT] = {
	[NT_PROV_OTHER] = "Test-Provider",
	[NT_PROV_RUNTIME] = "Microsoft-Windows-DotNETRuntime",
	[NT_PROV_RUNDOWN] = "Microsoft-Windows-DotNETRuntimeRundown",
	[NT_PROV_SAMPLER] = "Microsoft-DotNETCore-SampleProfiler",
	[NT_PROV_EVENTPIPE] = "Microsoft-DotNETCore-EventPipe",
	[NT_PROV_TPL] = "System.Threading.Tasks.TplEventSource",
	[NT_PROV_UNIVERSAL_SYSTEM] = "Universal.System",
	[NT_PROV_UNIVERSAL_EVENTS] = "Universal.Events",
};

/* The report asks a decoder how the stream was; this one has read a whole one. */
static bool make_decoder(struct play *p)
{
	static const struct nt_sink deaf;
	struct build b = { 0 };
	enum nt_status st = NT_ENOMEM;

	build_begin(&b, 4);
	build_end(&b);
	p->decoder = nt_decoder_new(p->alloc, NULL, 0, &deaf, NULL);
	if (p->decoder)
		st = nt_decoder_push(p->decoder, b.bytes, b.count);
	if (st == NT_OK)
		st = nt_decoder_finish(p->decoder);
	build_done(&b);
	return st == NT_OK;
}

bool play_begin(struct play *p, const struct nt_alloc *alloc, const struct an_class *const *classes,
		const struct an_options *options)
{
	*p = (struct play){ .alloc = alloc ? alloc : &nt_alloc_default, .process_id = 1 };
	p->trace = (struct nt_trace_info){ .format = 4,
					   .wall_clock_known = true,
					   .ticks_per_second = 1000000000,
					   .pointer_size = 8,
					   .process_id = 1,
					   .processors = 2,
					   .sample_interval_ns = 1000000 };
	nt_arena_init(&p->arena, &nt_alloc_default, 1 << 20);
	p->engine = an_engine_new(alloc, options, classes);
	if (!p->engine || !make_decoder(p))
		return false;
	p->status = an_engine_sink.trace(p->engine, &p->trace);
	return true;
}

void play_end(struct play *p)
{
	an_report_free(p->report);
	an_engine_free(p->engine);
	nt_decoder_free(p->decoder);
	nt_arena_done(&p->arena);
}

void play_stack(struct play *p, size_t count, ...)
{
	va_list ap;

	va_start(ap, count);
	for (size_t i = 0; i < count; i++)
		p->stack[i] = va_arg(ap, uint64_t);
	va_end(ap);
	p->frame_count = count;
}

static struct nt_event_def *find_def(struct play *p, enum nt_provider provider, uint32_t id,
				     uint32_t version, const char *name)
{
	for (size_t i = 0; i < p->def_count; i++) {
		struct nt_event_def *d = &p->defs[i];

		if (d->provider_id == provider && d->event_id == id && d->version == version &&
		    (!name || !strcmp(d->name, name)))
			return d;
	}
	return NULL;
}

static struct nt_event_def *new_def(struct play *p, enum nt_provider provider, uint32_t id,
				    uint32_t version)
{
	struct nt_event_def *d = &p->defs[p->def_count];

	assert_true(p->def_count < PLAY_KINDS);
	*d = (struct nt_event_def){ .index = p->def_count++,
				    .defined = true,
				    .provider_id = provider,
				    .provider = provider_names[provider],
				    .event_id = id,
				    .version = version };
	return d;
}

static void send(struct play *p, const struct nt_event_def *def, uint64_t thread, double ms,
		 const struct build *b)
{
	/* The payload in a block of its own size: reading one byte too far is seen by ASan. */
	size_t size = b ? b->count : 0;
	uint8_t *payload = malloc(size ? size : 1);
	const struct nt_event ev = {
		.def = def,
		.trace = &p->trace,
		.time_ns = (int64_t)(ms * 1e6 + (ms < 0 ? -0.5 : 0.5)),
		.thread_id = thread,
		.capture_thread_id = thread,
		.process_id = p->process_id,
		.thread_name = p->thread_name,
		.processor = UINT32_MAX,
		.version = def->version,
		.stack_id = p->stack_id,
		.stack_epoch = p->stack_epoch,
		.stack = p->frame_count ? p->stack : NULL,
		.frame_count = p->frame_count,
		.labels = &p->labels,
		.payload = payload,
		.payload_bytes = size,
	};

	assert_non_null(payload);
	if (size)
		memcpy(payload, b->bytes, size);
	if (p->status == NT_OK)
		p->status = an_engine_sink.event(p->engine, &ev);
	free(payload);
}

void play_event(struct play *p, enum nt_provider provider, uint32_t id, uint32_t version,
		uint64_t thread, double ms, struct build *b)
{
	struct nt_event_def *d = find_def(p, provider, id, version, NULL);

	if (!d) {
		const char *name = nt_table_name(provider, id);
		bool known;

		d = new_def(p, provider, id, version);
		d->name = name ? name : "Event";
		assert_int_equal(nt_table_layout(&p->arena, provider, id, version, &d->fields,
						 &d->field_count, &known),
				 NT_OK);
		d->layout = known ? NT_LAYOUT_TABLE : NT_LAYOUT_NONE;
	}
	send(p, d, thread, ms, b);
	if (b)
		build_done(b);
}

void play_own(struct play *p, enum nt_provider provider, const char *name, uint32_t id,
	      const struct nt_field *fields, size_t field_count, uint64_t thread, double ms,
	      struct build *b)
{
	struct nt_event_def *d = find_def(p, provider, id, 0, name);

	if (!d) {
		d = new_def(p, provider, id, 0);
		d->name = name;
		d->layout = NT_LAYOUT_METADATA;
		d->fields = fields;
		d->field_count = field_count;
	}
	send(p, d, thread, ms, b);
	if (b)
		build_done(b);
}

void play_method(struct play *p, bool rundown, uint64_t start, uint32_t size, const char *type,
		 const char *name, const char *signature, double ms)
{
	struct build b = { .bytes = malloc(1024), .room = 1024 }; /* in one go: called often */

	assert_non_null(b.bytes);
	build_u64(&b, start); /* MethodID: anything that differs */
	build_u64(&b, 0x1000); /* ModuleID */
	build_u64(&b, start);
	build_u32(&b, size);
	build_u32(&b, 0);
	build_u32(&b, 0);
	build_utf16(&b, type);
	build_utf16(&b, name);
	build_utf16(&b, signature);
	build_u16(&b, 0);
	play_event(p, rundown ? NT_PROV_RUNDOWN : NT_PROV_RUNTIME, rundown ? 144 : 143, 1, 1, ms,
		   &b);
}

void play_sample(struct play *p, uint64_t thread, double ms, unsigned type)
{
	struct build b = { 0 };

	build_u32(&b, type);
	play_event(p, NT_PROV_SAMPLER, 0, 0, thread, ms, &b);
}

const struct an_value *play_report(struct play *p)
{
	const struct an_input input = { .file = "made-up",
					.enabled = p->enabled,
					.threads = p->threads,
					.thread_count = p->thread_count,
					.watched_ns = p->watched_ns };

	if (!p->report) {
		p->report = an_report_new(p->alloc);
		if (!p->report) {
			p->status = NT_ENOMEM;
			return NULL;
		}
		if (p->status == NT_OK)
			p->status = an_engine_report(p->engine, p->decoder, &input, p->report);
	}
	return an_report_borrow_root(p->report);
}

const struct an_value *play_row(struct play *p, const char *path, size_t n)
{
	const struct an_value *v = an_get(play_report(p), path);

	v = v ? v->first : NULL;
	while (v && n--)
		v = v->next;
	return v;
}

const struct an_value *play_find(struct play *p, const char *path, const char *member,
				 const char *text)
{
	const struct an_value *v = an_get(play_report(p), path);

	for (v = v ? v->first : NULL; v; v = v->next)
		if (!strcmp(an_get_text(v, member, ""), text))
			return v;
	return NULL;
}

bool play_finds(struct play *p, const char *id)
{
	return play_find(p, "findings", "id", id) != NULL;
}
