/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <inttypes.h>

#include "analyzers/analyzer.h"

#include "analyzers/grow.h"
#include "analyzers/trace_findings.h"
#include <string.h>

enum {
	MAX_CLASSES = 16,
	RUNTIME_INFORMATION = 187,
	RUNDOWN_COMPLETE = 146, /* DCEndComplete */
	RUNDOWN_BEGIN = 148, /* DCEndInit */
};

/* Which classes want events of a definition: one bit each, by their place in the list. */
enum { WANT_KNOWN = 1 << 16, WANT_METHODS = 1 << 17, WANT_RUNTIME = 1 << 18 };

struct an_engine {
	struct an_shared shared;
	const struct an_class *classes[MAX_CLASSES];
	struct analyzer *analyzers[MAX_CLASSES];
	size_t count;
	unsigned needs;
	uint32_t *wants; /* by index of the definition */
	size_t want_cap;
	bool (*ignored)(void *ctx, const struct nt_event_def *def); /* NULL: none are */
	void *ignored_ctx;
};

static bool start_classes(struct an_engine *e, const struct an_class *const *classes)
{
	for (; *classes && e->count < MAX_CLASSES; classes++) {
		e->classes[e->count++] = *classes;
		e->needs |= (*classes)->needs;
	}
	if (e->needs & AN_NEED_STACKS) {
		e->shared.methods = an_methods_new(e->shared.alloc);
		if (!e->shared.methods)
			return false;
		e->shared.tree = an_calltree_new(e->shared.alloc, e->shared.methods);
		if (!e->shared.tree)
			return false;
	}
	for (size_t i = 0; i < e->count; i++) {
		e->analyzers[i] = e->classes[i]->new (&e->shared);
		if (!e->analyzers[i])
			return false;
	}
	return true;
}

struct an_engine *an_engine_new(const struct nt_alloc *alloc, const struct an_options *options,
				const struct an_class *const *classes)
{
	struct an_engine *e;

	if (!alloc)
		alloc = &nt_alloc_default;
	e = an_mem_get(alloc, sizeof(*e));
	if (!e)
		return NULL;
	e->shared.alloc = alloc;
	if (options)
		e->shared.options = *options;
	if (!start_classes(e, classes))
		return an_engine_free(e);
	return e;
}

struct an_engine *an_engine_free(struct an_engine *e)
{
	if (!e)
		return NULL;
	for (size_t i = 0; i < e->count; i++)
		e->classes[i]->free(e->analyzers[i]);
	an_calltree_free(e->shared.tree);
	an_methods_free(e->shared.methods);
	an_mem_free(e->shared.alloc, e->wants);
	an_mem_free(e->shared.alloc, e);
	return NULL;
}

unsigned an_engine_flags(const struct an_engine *e)
{
	return (e->needs & AN_NEED_ORDER ? (unsigned)NT_TIME_ORDER : 0) |
	       (e->needs & AN_NEED_STACKS ? 0 : (unsigned)NT_SKIP_STACKS);
}

void an_engine_count(struct an_engine *e, bool counted)
{
	e->shared.not_counted = !counted;
}

void an_engine_ignore(struct an_engine *e, bool (*ignored)(void *ctx, const struct nt_event_def *d),
		      void *ctx)
{
	e->ignored = ignored;
	e->ignored_ctx = ctx;
}

/* Whether this trace's own rundown is there is another question: its marks are left out. */
enum nt_status an_engine_name(struct an_engine *e, const struct nt_event *ev)
{
	bool mark = ev->def->provider_id == NT_PROV_RUNDOWN &&
		    (ev->def->event_id == RUNDOWN_BEGIN || ev->def->event_id == RUNDOWN_COMPLETE);

	if (!e->shared.methods || mark || !an_methods_wants(ev->def))
		return NT_OK;
	return an_methods_event(e->shared.methods, ev);
}

enum nt_status an_engine_cpu_sample(struct an_engine *e, enum an_cpu_source source,
				    const struct an_cpu_sample *sample)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->classes[i] == &an_class_cpu)
			return an_cpu_add_sample(e->analyzers[i], source, sample);
	return NT_OK;
}

void an_engine_cpu_source(struct an_engine *e, enum an_cpu_source source, uint64_t period_ns)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->classes[i] == &an_class_cpu)
			an_cpu_add_source(e->analyzers[i], source, period_ns);
}

enum nt_status an_engine_native_code(struct an_engine *e, uint64_t start, uint64_t last,
				     const char *file, const char *function)
{
	if (!e->shared.methods)
		return NT_OK;
	return an_methods_native(e->shared.methods, start, last, file, function);
}

void an_engine_set_cpu_time(struct an_engine *e, const struct an_cpu_time *time)
{
	e->shared.cpu_time = time;
}

const struct an_shared *an_engine_borrow_shared(const struct an_engine *e)
{
	return &e->shared;
}

int64_t an_observed_ns(const struct an_shared *shared)
{
	int64_t end = -1;

	if (shared->have_live)
		end = shared->last_live_ns;
	if (shared->have_rundown && shared->rundown_ns > end)
		end = shared->rundown_ns;
	return end > 0 ? end : -1;
}

const struct an_os_thread *an_find_os_thread(const struct an_shared *shared, uint64_t id)
{
	const struct an_os_thread *t = shared->input->threads;
	size_t low = 0, high = t ? shared->input->thread_count : 0;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t[mid].id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return t && low < shared->input->thread_count && t[low].id == id ? &t[low] : NULL;
}

bool an_was_enabled(const struct an_shared *shared, const char *provider, uint64_t keywords,
		    unsigned level)
{
	const struct an_provider *p = shared->input ? shared->input->enabled : NULL;

	for (; p && p->name; p++)
		if (strcmp(p->name, provider) == 0 && (p->keywords & keywords) == keywords &&
		    p->level >= level)
			return true;
	return false;
}

double an_limit(const struct an_shared *shared, enum an_limit which)
{
	return shared->options.limits ? shared->options.limits->value[which]
				      : an_limit_specs[which].initial;
}

/* Figures of a report whose findings rest on other limits than usual say so. */
static void add_limits(const struct an_shared *shared, struct an_report *out)
{
	struct an_value *v = NULL;

	for (enum an_limit i = 0; i < AN_LIMITS; i++) {
		if (an_limit(shared, i) == an_limit_specs[i].initial)
			continue;
		if (!v)
			v = an_add_object(an_report_root(out), "limits");
		an_add_double(v, an_limit_specs[i].name, an_limit(shared, i), AN_SHORTEST);
	}
}

bool an_looks_native(const struct an_shared *shared)
{
	return shared->have_events && !shared->runtime.known && shared->trace.format == 4 &&
	       shared->trace.processors < 0;
}

/* --- the sink --- */

static enum nt_status on_trace(void *ctx, const struct nt_trace_info *info)
{
	struct an_engine *e = ctx;

	e->shared.trace = *info;
	return NT_OK;
}

static uint32_t ask(const struct an_engine *e, const struct nt_event_def *def)
{
	bool ignored = e->ignored && e->ignored(e->ignored_ctx, def);
	uint32_t want = WANT_KNOWN;

	for (size_t i = 0; i < e->count; i++) {
		if (ignored && e->classes[i] != &an_class_trace)
			continue;
		if (!e->classes[i]->wants || e->classes[i]->wants(def))
			want |= UINT32_C(1) << i;
	}
	if (e->shared.methods && an_methods_wants(def))
		want |= WANT_METHODS;
	if (def->event_id == RUNTIME_INFORMATION &&
	    (def->provider_id == NT_PROV_RUNTIME || def->provider_id == NT_PROV_RUNDOWN))
		want |= WANT_RUNTIME;
	return want;
}

static enum nt_status on_define(void *ctx, const struct nt_event_def *def)
{
	struct an_engine *e = ctx;
	uint32_t *wants;

	wants = an_mem_grow(e->shared.alloc, e->wants, &e->want_cap, def->index + 1,
			    sizeof(*wants));
	if (!wants)
		return NT_ENOMEM;
	e->wants = wants;
	wants[def->index] = ask(e, def);
	return NT_OK;
}

/* "…/Microsoft.NETCore.App/3.1.3/libcoreclr.so" has the version that 3.1 does not tell itself. */
static void note_directory(struct an_runtime *r, const char *path)
{
	static const char parent[] = "Microsoft.NETCore.App";
	const char *at = strstr(path, parent);
	size_t n;

	if (!at)
		return;
	at += strlen(parent);
	if (*at != '/' && *at != '\\')
		return;
	at++;
	n = strspn(at, "0123456789.");
	if (n && n < sizeof(r->directory) && (at[n] == '/' || at[n] == '\\')) {
		memcpy(r->directory, at, n);
		r->directory[n] = '\0';
	}
}

static void note_runtime(struct an_shared *s, const struct nt_event *ev)
{
	static const char *const names[] = { "VMMajorVersion", "VMMinorVersion", "VMBuildNumber",
					     "VMQfeNumber" };
	struct nt_value v[16];
	size_t n = nt_payload_read(ev, v, 16, NULL);
	struct an_runtime r = { .known = true };
	const struct nt_value *path = nt_value_find(v, n, "RuntimeDllPath");
	char buf[512];

	r.startup_flags = (uint32_t)nt_value_u64(v, n, "StartupFlags", 0);
	r.sku = (unsigned)nt_value_u64(v, n, "Sku", 0);
	for (size_t i = 0; i < 4; i++) {
		if (!nt_value_find(v, n, names[i]))
			return;
		r.vm[i] = (unsigned)nt_value_u64(v, n, names[i], 0);
	}
	if (path) {
		nt_value_text(path, buf, sizeof(buf));
		note_directory(&r, buf);
	}
	s->runtime = r;
	s->runtime_major = r.vm[0] == 4 ? 3 : r.vm[0]; /* .NET Core 3.1 calls itself 4.0.30319 */
}

static void note_time(struct an_shared *s, const struct nt_event *ev)
{
	if (!s->have_events) {
		s->have_events = true;
		s->first_ns = s->last_ns = ev->time_ns;
	}
	if (ev->time_ns < s->first_ns)
		s->first_ns = ev->time_ns;
	if (ev->time_ns > s->last_ns)
		s->last_ns = ev->time_ns;
	if (ev->def->provider_id == NT_PROV_RUNDOWN) {
		if (!s->have_rundown || ev->time_ns < s->rundown_ns)
			s->rundown_ns = ev->time_ns;
		s->have_rundown = true;
	} else if (!s->have_live || ev->time_ns > s->last_live_ns) {
		s->have_live = true;
		s->last_live_ns = ev->time_ns;
	}
}

static enum nt_status on_event(void *ctx, const struct nt_event *ev)
{
	struct an_engine *e = ctx;
	enum nt_status st = NT_OK;
	uint32_t want;

	if (ev->def->index >= e->want_cap || !e->wants[ev->def->index]) {
		st = on_define(e, ev->def);
		if (st < 0)
			return st;
	}
	want = e->wants[ev->def->index];
	note_time(&e->shared, ev);
	if (want & WANT_RUNTIME)
		note_runtime(&e->shared, ev);
	if (want & WANT_METHODS)
		st = an_methods_event(e->shared.methods, ev);
	for (want &= WANT_KNOWN - 1; want && st == NT_OK; want &= want - 1) {
		int i = __builtin_ctz(want);

		st = e->classes[i]->event(e->analyzers[i], ev);
	}
	return st;
}

static enum nt_status on_lost(void *ctx, uint64_t thread_id, uint64_t count, int64_t time_ns)
{
	struct an_engine *e = ctx;

	(void)thread_id;
	(void)time_ns;
	e->shared.lost += count;
	return NT_OK;
}

/* Events that are only counted, most of many a trace, need not wait for those that are compared. */
static bool on_any_time(void *ctx, const struct nt_event_def *def)
{
	const struct an_engine *e = ctx;
	uint32_t want = e->wants[def->index];

	for (size_t i = 0; i < e->count; i++)
		if (want & UINT32_C(1) << i && e->classes[i]->needs & AN_NEED_ORDER)
			return false;
	return !(want & WANT_METHODS);
}

const struct nt_sink an_engine_sink = {
	.trace = on_trace,
	.define = on_define,
	.any_time = on_any_time,
	.event = on_event,
	.lost = on_lost,
};

bool an_engine_live(struct an_engine *e, int64_t now_ns, struct an_live *ret)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->classes[i]->live && e->classes[i]->live(e->analyzers[i], now_ns, ret))
			return true;
	return false;
}

enum nt_status an_engine_report(struct an_engine *e, struct nt_decoder *d,
				const struct an_input *input, struct an_report *out)
{
	static const struct an_input nameless;
	enum nt_status st;

	e->shared.input = input ? input : &nameless;
	e->shared.decoder = d;
	st = nt_decoder_borrow_losses(d, &e->shared.losses, &e->shared.loss_count);
	if (st == NT_OK)
		an_trace_findings(&e->shared, out);
	for (size_t i = 0; i < e->count && st == NT_OK; i++)
		st = e->classes[i]->report(e->analyzers[i], out);
	for (size_t i = 0; i < e->count && st == NT_OK; i++)
		if (e->classes[i]->conclude)
			e->classes[i]->conclude(e->analyzers[i], out);
	if (st == NT_OK && e->shared.methods)
		st = an_methods_status(e->shared.methods);
	add_limits(&e->shared, out);
	an_report_seal(out);
	e->shared.input = NULL;
	e->shared.decoder = NULL;
	return st == NT_OK ? an_report_status(out) : st;
}
